"""Schemas of object types: what is refused, with which words, on every road by which data comes in."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contextmesh.core.branches import fork
from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.promote import promote
from contextmesh.errors import ConcurrentWriterError, InvalidNameError, InvalidSchemaError, SchemaViolationError
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from contextmesh.stores.sqlite import SQLiteEventStore

SERVICE = {
    "type": "object",
    "required": ["label"],
    "properties": {
        "label": {"type": "string"},
        "tier": {"type": "integer", "minimum": 1, "maximum": 3},
        "owner": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
    "additionalProperties": False,
}

Reopen = Callable[[], Graph]


@pytest.fixture(params=["memory", "sqlite", "falkordb"])
def reopen(request: pytest.FixtureRequest, server: Server, name: str, tmp_path) -> Iterator[Reopen]:
    """Return what opens the same graph again, as another process would."""
    log = {
        "memory": lambda: Graph().log,
        "sqlite": lambda: SQLiteEventStore(tmp_path / "log.sqlite"),
        "falkordb": lambda: FalkorDBEventStore(server, name),
    }[request.param]()
    store = FalkorDBGraphStore(server, name) if request.param == "falkordb" else InMemoryGraphStore()

    def opened() -> Graph:
        if request.param == "falkordb":
            return Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name))
        return Graph(log, store)

    yield opened
    log.close()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, r"Service 'api' breaks its schema: data: 'label' is a required property"),
        ({"label": 7}, r"label: 7 is not of type 'string'"),
        ({"label": "API", "tier": 4}, r"tier: 4 is greater than the maximum of 3"),
        ({"label": "API", "tier": 1.5}, r"tier: 1.5 is not of type 'integer'"),
        ({"label": "API", "tier": True}, r"tier: True is not of type 'integer'"),
        ({"label": "API", "owner": {"name": None}}, r"owner.name: None is not of type 'string'"),
        ({"label": "API", "teir": 1}, r"data: Additional properties are not allowed \('teir' was unexpected\)"),
        ({"label": 1, "tier": 9, "owner": 2, "x": 3}, r"; and 1 more$"),
    ],
)
def test_a_violation_names_the_field(reopen: Reopen, data: dict[str, Any], message: str) -> None:
    graph = reopen()
    graph.load_schema("Service", SERVICE)
    position = graph.position
    with pytest.raises(SchemaViolationError, match=message):
        graph.add_object("Service", data, id="api")
    row = {"id": "api", "type": "Service", "data": data, "version": 1, "provenance": {}}
    with pytest.raises(SchemaViolationError, match=message):
        graph.emit(Event(type="object.created", payload={"object": row, "id": "api"}))
    assert (graph.position, graph.get_object("api")) == (position, None)


def test_patches_are_held_to_it(reopen: Reopen) -> None:
    graph = reopen()
    graph.load_schema("Service", SERVICE)
    graph.add_object("Service", {"label": "API"}, id="api")
    position = graph.position
    with pytest.raises(SchemaViolationError, match="tier: 'one' is not of type 'integer'"):
        graph.patch_object("api", {"tier": "one"})
    with pytest.raises(SchemaViolationError, match="data: 'label' is a required property"):
        graph.patch_object("api", {"tier": 1}, op="replace")
    assert graph.position == position
    proposal = graph.propose_patch("api", {"tier": 9})
    with pytest.raises(SchemaViolationError, match="tier: 9 is greater"):
        graph.apply_patch(proposal.id)
    assert graph.get_patch(proposal.id).status == "proposed"
    creation = graph.propose_patch("web", {"tier": 1}, op="create", type="Service")
    with pytest.raises(SchemaViolationError, match="Service 'web' breaks its schema"):
        graph.apply_patch(creation.id)
    assert graph.patch_object("api", {"tier": 2}).status == "applied"
    assert graph.patch_object("api", {}, op="remove").status == "applied"


def test_other_types_are_free_and_a_later_schema_replaces(reopen: Reopen) -> None:
    graph = reopen()
    graph.load_schema("Service", SERVICE)
    graph.add_object("Host", {"anything": [1]}, id="h")
    graph.load_schema("Service", {})
    graph.add_object("Service", {"anything": [1]}, id="api")
    assert graph.schemas() == {"Service": {}}


def test_what_exists_is_looked_at_when_it_is_patched(reopen: Reopen) -> None:
    graph = reopen()
    graph.add_object("Service", {"tier": "one"}, id="api")
    graph.load_schema("Service", SERVICE)
    assert graph.get_object("api").data == {"tier": "one"}
    with pytest.raises(SchemaViolationError, match="breaks its schema"):
        graph.patch_object("api", {"label": "API"})
    assert graph.patch_object("api", {"label": "API", "tier": 1}).status == "applied"


def add_while_a_schema_comes(ours: Graph, theirs: Graph) -> None:
    with ours.batch():
        ours.add_object("Host", {}, id="h2")
        theirs.load_schema("Host", {"required": ["label"]})


def test_another_process_is_held_to_it(reopen: Reopen) -> None:
    ours, theirs = reopen(), reopen()
    ours.add_object("Host", id="h")
    theirs.load_schema("Service", SERVICE)
    with pytest.raises(SchemaViolationError, match="'label' is a required property"):
        ours.add_object("Service", {}, id="api")
    assert ours.schemas() == reopen().schemas() == {"Service": SERVICE}
    with pytest.raises(ConcurrentWriterError, match=r"relied on: Host 'h2' breaks its schema"):
        add_while_a_schema_comes(ours, theirs)
    assert reopen().get_object("h2") is None


def test_a_batch_sees_its_own(reopen: Reopen) -> None:
    graph = reopen()
    with graph.batch():
        graph.load_schema("Service", SERVICE)
        with pytest.raises(SchemaViolationError, match="'label' is a required property"):
            graph.add_object("Service", {}, id="api")
        graph.add_object("Service", {"label": "API"}, id="api")
    assert [event.type for event in graph.events] == ["schema.loaded", "object.created"]


def test_a_rebuild_and_a_fork_keep_it(reopen: Reopen) -> None:
    graph = reopen()
    graph.load_schema("Service", SERVICE)
    graph.rebuild()
    assert graph.schemas() == {"Service": SERVICE}
    alt = fork(graph, label="alt")
    assert alt.schemas() == {"Service": SERVICE}
    alt.load_schema("Host", {"required": ["label"]})
    assert graph.schemas() == {"Service": SERVICE}
    assert promote(graph, alt, dry_run=True).warnings == (
        "schemas that only the fork has stay there: Host; load them in the parent",
    )


def test_a_promote_is_held_to_the_parents(reopen: Reopen) -> None:
    graph = reopen()
    alt = fork(graph, label="alt")
    alt.add_object("Host", {"label": "fine"}, id="h")
    alt.add_object("Service", {"tier": 9}, id="api")
    graph.load_schema("Service", SERVICE)
    position = graph.position
    with pytest.raises(SchemaViolationError, match="Service 'api' breaks its schema"):
        promote(graph, alt)
    assert (graph.position, graph.get_object("h")) == (position, None)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"type": "strnig"}, r"the schema for Service is no JSON Schema: 'strnig' is not valid .* at \$.type"),
        ({"properties": {"a": {"minimum": "1"}}}, r"at \$.properties.a.minimum"),
        (True, "the schema for Service is a bool; expected a mapping"),
        (None, "the schema for Service is a NoneType; expected a mapping"),
    ],
)
def test_what_is_no_schema_is_refused(reopen: Reopen, schema: Any, message: str) -> None:
    graph = reopen()
    with pytest.raises(InvalidSchemaError, match=message):
        graph.load_schema("Service", schema)
    assert graph.position == 0


def test_a_reference_fetches_nothing(reopen: Reopen) -> None:
    graph = reopen()
    graph.load_schema("Service", {"properties": {"a": {"$ref": "http://localhost:9/schema"}}})
    with pytest.raises(InvalidSchemaError, match=r"refers to what it does not hold: .*localhost:9/schema"):
        graph.add_object("Service", {"a": 1}, id="api")
    graph.load_schema("Service", {"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}})
    graph.add_object("Service", {"a": 1}, id="api")


@pytest.mark.parametrize("type_", ["Node", "Schema", "a b", ""])
def test_a_schema_needs_a_type(reopen: Reopen, type_: str) -> None:
    with pytest.raises(InvalidNameError, match="type"):
        reopen().load_schema(type_, SERVICE)
