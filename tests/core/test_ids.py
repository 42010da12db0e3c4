"""Minted ids: none is given out twice, however the ids before it came into the log."""

from collections.abc import Callable

import pytest

from contextmesh.core.branches import fork, snapshot
from contextmesh.core.events import (
    Event,
)
from contextmesh.core.graph import Graph
from contextmesh.core.ids import IDGen, Minted, minted
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.errors import (
    AlreadyExistsError,
    InvalidEventError,
    InvalidPatchOperation,
    InvalidSchemaError,
    UsageError,
)
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server

# Minting


class Counters:
    """Counters that start where they are told to."""

    def __init__(self, **start: int) -> None:
        self.now = start

    def reserve(self, counter: str, n: int) -> int:
        self.now[counter] = self.now.get(counter, 0) + n
        return self.now[counter] - n + 1

    def raise_counter(self, counter: str, at_least: int) -> None:
        self.now[counter] = max(self.now.get(counter, 0), at_least)


def test_ids_count_each_kind_for_itself() -> None:
    counters = Counters()
    ids = IDGen(counters)
    assert [ids.event(), ids.event(), ids.relation(), ids.patch()] == ["evt_001", "evt_002", "rel_001", "patch_001"]
    assert [ids.object("Memory"), ids.object("Run"), ids.object("Memory")] == ["Memory#1", "Run#1", "Memory#2"]
    assert [ids.event() for _ in range(998)][-2:] == ["evt_999", "evt_1000"]
    other = IDGen(counters)
    assert int(other.event()[4:]) > 1000
    assert counters.now["evt"] < 2000  # a long run reserves by blocks, but wastes little


def test_a_brought_id_is_not_minted_again() -> None:
    ids = IDGen(Counters(Run=2))
    assert [ids.brought("Run#2"), ids.object("Run")] == ["Run#2", "Run#3"]
    assert [ids.brought("Run#9"), ids.object("Run")] == ["Run#9", "Run#10"]
    assert [ids.relation(), ids.brought("rel_005"), ids.relation()] == ["rel_001", "rel_005", "rel_006"]


def test_ids_of_a_branch_carry_its_name() -> None:
    ids = IDGen(Counters(evt=6, rel=6, patch=6, Run=6), branch="alt")
    assert [ids.event(), ids.relation(), ids.patch(), ids.object("Run")] == [
        "evt_alt-007",
        "rel_alt-007",
        "patch_alt-007",
        "Run#alt-7",
    ]


@pytest.mark.parametrize(
    ("identifier", "expected"),
    [
        ("evt_001", Minted("", "evt", 1)),
        ("rel_1234", Minted("", "rel", 1234)),
        ("patch_alt-007", Minted("alt", "patch", 7)),
        ("Memory#12", Minted("", "Memory", 12)),
        ("Run#not-the-ttl-3", Minted("not-the-ttl", "Run", 3)),
        ("checkout-api", None),
        ("Run#7.planner", None),
        ("evt_", None),
        ("Memory#", None),
    ],
)
def test_minted(identifier: str, expected: Minted | None) -> None:
    assert minted(identifier) == expected


# In a graph


@pytest.fixture(params=["memory", "falkordb"])
def made(request: pytest.FixtureRequest, server: Server, name: str) -> Callable[[], Graph]:
    if request.param == "memory":
        return Graph
    return lambda: Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name))


def test_what_a_patch_creates_counts(made: Callable[[], Graph]) -> None:
    graph = made()
    graph.propose_patch("Person#1", {"name": "Ann"}, op="create", type="Person", id="p")
    graph.apply_patch("p")
    assert graph.add_object("Person", {"name": "Bob"}).id == "Person#2"
    patch = {"id": "q", "target": "Person#3", "op": "create", "type": "Person", "status": "proposed"}
    graph.emit(Event(type="patch.proposed", payload={"patch": patch}))
    graph.apply_patch("q")
    assert graph.add_object("Person").id == "Person#4"
    assert graph.get_object("Person#1").data == {"name": "Ann"}


def test_what_is_replayed_counts(made: Callable[[], Graph]) -> None:
    source = Graph()
    for n in range(2):
        source.add_object("Person", {"n": n})
    source.add_relation("a", "b", "KNOWS")
    graph = made()
    for event in source.events:
        graph.replay(event)
    assert graph.add_object("Person").id == "Person#3"
    assert graph.add_relation("c", "d", "KNOWS").id == "rel_002"
    ids = [event.id for event in graph.events]
    assert len(set(ids)) == len(ids) == 5


def test_a_log_that_was_filled_without_its_counters_overwrites_nothing() -> None:
    source = Graph()
    source.add_object("Person", {"name": "Ann"})
    log = InMemoryEventStore()
    log.append_many(list(source.events), expected=0, commit_id="a")
    graph = Graph(log, InMemoryGraphStore())
    with pytest.raises(AlreadyExistsError, match="Person#1"):
        graph.add_object("Person", {"name": "Bob"})
    assert graph.get_object("Person#1").data == {"name": "Ann"}
    assert graph.add_object("Person", {"name": "Bob"}).id == "Person#2"


def test_evidence_is_a_list(made: Callable[[], Graph]) -> None:
    graph = made()
    for wrong in ("evt_001", None, 5):
        with pytest.raises(InvalidEventError, match=r"evidence is .*; expected a list of ids"):
            graph.add_object("Person", evidence=wrong)
    assert len(graph.events) == 0


def test_an_open_batch_is_no_moment_to_fork_or_look_back(made: Callable[[], Graph]) -> None:
    graph = made()
    with graph.batch():
        graph.add_object("Person")
        with pytest.raises(UsageError, match="a batch is open"):
            fork(graph)
        with pytest.raises(UsageError, match="a batch is open"):
            snapshot(graph, 0)


@pytest.mark.parametrize("schema", [{"$ref": "#"}, {"properties": {"a": {"$ref": "#/properties/a"}}}])
def test_a_schema_that_goes_round_in_circles(made: Callable[[], Graph], schema: dict) -> None:
    graph = made()
    graph.load_schema("Person", schema)
    with pytest.raises(InvalidSchemaError, match="cannot be worked out"):
        graph.add_object("Person", {"a": 1})
    assert len(graph.events) == 1


def test_a_graph_beside_its_log_can_be_attached(server: Server, name: str) -> None:
    Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name)).add_object("Person", id="ann")
    graph = Graph(InMemoryEventStore(), FalkorDBGraphStore(server, f"{name}-b"))
    graph.attach_store(FalkorDBEventStore(server, f"{name}-b"))
    assert graph.store.key == f"cm:{{{name}-b}}:graph"
    graph.add_object("Person", id="bob")
    assert Graph(FalkorDBEventStore(server, f"{name}-b"), FalkorDBGraphStore(server, f"{name}-b")).get_object("bob")


def test_a_patch_creates_and_removes_in_one_call(made: Callable[[], Graph]) -> None:
    graph = made()
    assert graph.patch_object("ann", {"n": 1}, op="create", type="Person").status == "applied"
    assert graph.get_object("ann").data == {"n": 1}
    assert graph.patch_object("ann", {}, op="remove").status == "applied"
    assert graph.get_object("ann") is None
    assert graph.patch_object("ann", {"n": 2}).status == "rejected"


def test_an_unknown_operation(made: Callable[[], Graph]) -> None:
    with pytest.raises(InvalidPatchOperation, match="op 'weird'; expected one of create, update, replace, remove"):
        made().propose_patch("ann", {}, op="weird")


def test_a_minted_id_spares_no_other_check(made: Callable[[], Graph]) -> None:
    graph = made()
    first = graph.propose_patch("ann", {"n": 1})  # its counter is known to be ahead of the log from now on
    assert first.id == "patch_001"
    patch = {"id": graph.ids.patch(), "target": "ann", "op": "update", "status": "applied"}
    with pytest.raises(InvalidEventError, match="carries the status 'applied'; expected 'proposed'"):
        graph.emit(Event(type="patch.proposed", payload={"patch": patch}))
