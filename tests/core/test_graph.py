"""The graph: emit, batches, sugar, reads. Every test runs in memory and in FalkorDB."""

import copy
import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contextmesh.core import projection
from contextmesh.core.events import Clock, Event, FrozenClock, TickingClock, encode
from contextmesh.core.graph import Graph
from contextmesh.core.memory import InMemoryEventStore, InMemoryGraphStore
from contextmesh.core.model import Object, Patch, Relation
from contextmesh.errors import (
    AlreadyExistsError,
    ConcurrentWriterError,
    ContextMeshError,
    DuplicateEventError,
    InvalidEventError,
    InvalidNameError,
    InvalidPatchLifecycleState,
    InvalidPatchOperation,
    NonSerializableEventError,
    NotFoundError,
    ReservedFieldError,
    UsageError,
)
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server

Workspace = Any
START = datetime(2026, 1, 1, tzinfo=UTC)


VERSIONS = {"expected_version": None, "current_version": 1}


@pytest.fixture(params=["memory", "falkordb"])
def opened(request: pytest.FixtureRequest, server: Server, name: str) -> Callable[..., Graph]:
    """Open the test's graph; each call is another process's view of the same log and graph."""
    log, store = InMemoryEventStore(), InMemoryGraphStore()

    def opened(clock: Clock | None = None) -> Graph:
        clock = clock or TickingClock(START)
        if request.param == "memory":
            return Graph(log, store, clock=clock)
        return Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name), clock=clock)

    return opened


@pytest.fixture
def graph(opened: Callable[..., Graph]) -> Graph:
    return opened()


def types(graph: Graph) -> list[str]:
    return [event.type for event in graph.events]


def state(graph: Graph) -> Any:
    """Everything that the graph holds, patches included."""
    patches = {
        event.payload["patch"]["id"]
        for event in graph.events
        if event.type.startswith("patch.") and "patch" in event.payload
    }
    return graph.objects(), graph.relations(), graph.get_patches(patches)


def replayed(graph: Graph) -> Any:
    """The same, from a replay of the log into a fresh store."""
    store = InMemoryGraphStore()
    projection.catch_up(graph._log, store)
    return state(Graph(graph._log, store))


# Objects


def test_add_object(graph: Graph) -> None:
    row = graph.add_object(
        "Memory", {"tags": ("x",)}, id="a", actor="maya", caused_by="evt_000", frame_id="Run#1", evidence=["e1"]
    )
    provenance = {"created_by": "evt_001", "updated_by": "evt_001", "actor": "maya", "evidence": ["e1"]}
    assert row == Object(id="a", type="Memory", data={"tags": ["x"]}, version=1, provenance=provenance)
    assert graph.get_object("a") == row
    [event] = graph.events
    assert event == Event(
        id="evt_001",
        type="object.created",
        payload={"object": row.to_dict(), "id": "a"},
        actor="maya",
        caused_by="evt_000",
        frame_id="Run#1",
        timestamp="2026-01-01T00:00:00.000000Z",
    )


def test_ids_are_minted(graph: Graph) -> None:
    assert [graph.add_object("Memory").id, graph.add_object("Run").id, graph.add_object("Memory").id] == [
        "Memory#1",
        "Run#1",
        "Memory#2",
    ]
    assert [graph.add_relation("a", "b", "T").id, graph.add_relation("a", "b", "T").id] == ["rel_001", "rel_002"]
    assert [graph.propose_patch("a", {}).id, graph.patch_object("Memory#1", {}).id] == ["patch_001", "patch_002"]
    numbers = [int(event.id.removeprefix("evt_")) for event in graph.events]
    assert numbers[0] == 1
    assert len(set(numbers)) == len(numbers)


def test_ids_of_two_processes_never_meet(opened: Callable[..., Graph]) -> None:
    one, two = opened(), opened()
    for _ in range(5):
        one.add_object("Memory")
        two.add_object("Memory")
    ids = [event.id for event in one.events]
    assert len(set(ids)) == len(ids) == 10
    assert [row.id for row in one.objects()] == [row.id for row in two.objects()]
    assert len(one.objects()) == 10


def test_a_minted_id_steers_clear_of_brought_ones(graph: Graph) -> None:
    graph.add_object("Memory", id="Memory#1")
    assert graph.add_object("Memory").id != "Memory#1"


def test_a_minted_event_id_steers_clear_of_brought_ones(graph: Graph) -> None:
    with pytest.raises(InvalidEventError, match="ids such as 'evt_001' are the graph's to mint"):
        graph.emit(Event(id="evt_001", type="note.made", payload={}))
    assert graph.emit(Event(id="mine", type="note.made", payload={})).id == "mine"
    graph.add_object("Memory")
    assert [event.id for event in graph.events] == ["mine", "evt_001"]


def test_duplicate_object(graph: Graph) -> None:
    graph.add_object("Memory", {"n": 1}, id="a")
    with pytest.raises(AlreadyExistsError, match="the graph holds an object 'a' already; patch it, or choose another"):
        graph.add_object("Memory", {"n": 2}, id="a")
    assert (len(graph.events), graph.objects()[0].data) == (1, {"n": 1})


@pytest.mark.parametrize(
    ("type_", "data", "object_id", "error", "says"),
    [
        ("Node", {}, "a", InvalidNameError, "belongs to the storage"),
        ("a-b", {}, "a", InvalidNameError, "is no type"),
        ("`) DETACH DELETE n //", {}, "a", InvalidNameError, "is no type"),
        ("Memory", {}, "", InvalidNameError, "is no id"),
        ("Memory", {}, "a b", InvalidNameError, "is no id"),
        ("Memory", {}, 7, InvalidNameError, "is no id"),
        ("Memory", [], "a", InvalidEventError, "data is a list"),
        ("Memory", {"provenance": {}}, "a", ReservedFieldError, "holds the field 'provenance'"),
        ("Memory", {"x": object()}, "a", NonSerializableEventError, r"payload\.object\.data\.x is a object"),
        ("Memory", {"x": "y" * 4_210_688}, "a", InvalidEventError, "at most 4,210,688 fit"),
    ],
)
def test_refused_object(  # noqa: PLR0917 - its parameters
    graph: Graph, type_: Any, data: Any, object_id: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        graph.add_object(type_, data, id=object_id)
    assert (len(graph.events), graph.position, graph.objects()) == (0, 0, [])


def test_remove_object_takes_its_relations_along(graph: Graph) -> None:
    for key in "abc":
        graph.add_object("Memory", id=key)
    ends = [("a", "b"), ("b", "a"), ("a", "gone"), ("a", "a"), ("b", "c")]
    for source, target in ends:
        graph.add_relation(source, target, "MENTIONS")
    graph.remove_object("a", actor="maya")
    assert [row.id for row in graph.objects()] == ["b", "c"]
    assert [(row.source, row.target) for row in graph.relations()] == [("b", "c")]
    assert graph.events[-1].payload == {"id": "a", "type": "Memory"}
    assert types(graph)[-1] == "object.removed"  # one event
    with pytest.raises(NotFoundError, match=r"no object 'a' in the graph; `graph.objects..` lists what is there"):
        graph.remove_object("a")


def test_an_id_may_be_used_again(graph: Graph) -> None:
    graph.add_object("Memory", {"n": 1}, id="a")
    graph.patch_object("a", {"n": 2})
    graph.remove_object("a")
    row = graph.add_object("Entity", {"m": 1}, id="a")
    assert (row.version, graph.get_object("a"), graph.objects("Memory")) == (1, row, [])


# Relations


def test_add_relation(graph: Graph) -> None:
    row = graph.add_relation("a", "b", "AFFECTS", {"n": (1,)}, id="r", actor="maya", evidence=["e"])
    provenance = {"created_by": "evt_001", "updated_by": "evt_001", "actor": "maya", "evidence": ["e"]}
    assert row == Relation(id="r", source="a", target="b", type="AFFECTS", data={"n": [1]}, provenance=provenance)
    assert graph.get_relation("r") == row
    assert graph.get_relation("s") is None
    assert graph.events[0].payload == {"relation": row.to_dict(), "id": "r", "source": "a", "target": "b"}


def test_relations_may_dangle(graph: Graph) -> None:
    graph.add_relation("a", "b", "AFFECTS", id="r")
    assert (graph.objects(), graph.get_object("a")) == ([], None)
    assert [row.id for row in graph.relations("a")] == ["r"]
    graph.add_object("Memory", id="b")
    assert graph.neighborhood("b", 1) == ([graph.get_object("b")], graph.relations())
    graph.remove_object("b")
    assert graph.relations() == []


def test_duplicate_relation(graph: Graph) -> None:
    graph.add_relation("a", "b", "AFFECTS", id="r")
    with pytest.raises(AlreadyExistsError, match="the graph holds a relation 'r' already; remove it first"):
        graph.add_relation("c", "d", "MENTIONS", id="r")
    assert len(graph.events) == 1


@pytest.mark.parametrize(
    ("source", "target", "type_", "data", "error", "says"),
    [
        ("", "b", "T", {}, InvalidNameError, "is no id"),
        ("a", "b c", "T", {}, InvalidNameError, "is no id"),
        ("a", "b", "T`]->() DELETE a //", {}, InvalidNameError, "is no type"),
        ("a", "b", "T", {"provenance": 1}, ReservedFieldError, "provenance"),
        ("a", "b", "T", {"x": b""}, NonSerializableEventError, r"payload\.relation\.data\.x is a bytes"),
    ],
)
def test_refused_relation(  # noqa: PLR0917 - its parameters
    graph: Graph, source: str, target: str, type_: str, data: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        graph.add_relation(source, target, type_, data)
    assert (len(graph.events), graph.relations()) == (0, [])


def test_remove_relation(graph: Graph) -> None:
    graph.add_relation("a", "b", "AFFECTS", id="r")
    graph.remove_relation("r")
    assert graph.relations() == []
    assert graph.events[-1].payload == {"id": "r", "source": "a", "target": "b", "type": "AFFECTS"}
    with pytest.raises(NotFoundError, match=r"no relation 'r' in the graph; `graph.relations..` lists what is there"):
        graph.remove_relation("r")


# Patches


def test_patch_object(graph: Graph) -> None:
    graph.add_object("Memory", {"kept": 1, "changed": 1}, id="a")
    patch = graph.patch_object(
        "a",
        {"changed": 2, "new": None},
        actor="maya",
        rationale="because",
        evidence=["e"],
        llm_request_event_id="evt_9",
        tool_request_event_ids=["evt_8"],
        frame_id="Run#1",
        caused_by="evt_001",
    )
    assert patch == Patch(
        id="patch_001",
        target="a",
        op="update",
        updates={"changed": 2, "new": None},
        status="applied",
        actor="maya",
        rationale="because",
        evidence=["e"],
        llm_request_event_id="evt_9",
        tool_request_event_ids=["evt_8"],
    )
    row = graph.get_object("a")
    assert row is not None
    assert (row.data, row.version) == ({"kept": 1, "changed": 2, "new": None}, 2)
    proposed, applied = graph.events[-2:]
    assert row.provenance == {"created_by": "evt_001", "updated_by": applied.id, "actor": "system", "evidence": []}
    assert (proposed.type, applied.type) == ("patch.proposed", "patch.applied")
    assert (proposed.actor, proposed.frame_id, proposed.caused_by) == ("maya", "Run#1", "evt_001")
    assert applied.payload["diff"] == {"changed": {"old": 1, "new": 2}, "new": {"old": None, "new": None}}
    assert applied.payload["object"] == row.to_dict()
    assert graph.get_patch("patch_001") == patch


def test_versions_increment_by_one(graph: Graph) -> None:
    graph.add_object("Memory", {}, id="a")
    for version in (2, 3, 4):
        graph.patch_object("a", {"v": version}, expected_version=version - 1)
        row = graph.get_object("a")
        assert row is not None
        assert (row.version, row.data["v"]) == (version, version)


def test_operations(graph: Graph) -> None:
    assert graph.apply_patch(graph.propose_patch("a", {"x": 1}, op="create", type="Entity").id).status == "applied"
    row = graph.get_object("a")
    assert row is not None
    assert (row.type, row.data, row.version) == ("Entity", {"x": 1}, 1)
    graph.patch_object("a", {"y": 2}, op="replace")
    row = graph.get_object("a")
    assert row is not None
    assert (row.type, row.data, row.version) == ("Entity", {"y": 2}, 2)
    graph.add_relation("a", "b", "AFFECTS")
    graph.patch_object("a", {}, op="remove")
    assert (graph.objects(), graph.relations()) == ([], [])
    again = graph.propose_patch("a", {}, op="create", type="Entity")
    assert graph.apply_patch(again.id).status == "applied"
    twice = graph.apply_patch(graph.propose_patch("a", {}, op="create", type="Entity").id)
    assert (twice.status, twice.reason) == ("rejected", "the object exists already")


def test_version_mismatch_is_rejected_with_both_versions(graph: Graph) -> None:
    graph.add_object("Memory", {"n": 1}, id="a")
    graph.patch_object("a", {"n": 2})
    patch = graph.patch_object("a", {"n": 3}, expected_version=1)
    assert (patch.status, patch.reason) == ("rejected", "expected version 1, the object has version 2")
    event = graph.events[-1]
    assert event.type == "patch.rejected"
    assert event.payload == {
        "patch_id": patch.id,
        "target": "a",
        "reason": "expected version 1, the object has version 2",
        "expected_version": 1,
        "current_version": 2,
    }
    row = graph.get_object("a")
    assert row is not None
    assert (row.data, row.version) == ({"n": 2}, 2)
    assert graph.get_patch(patch.id) == patch


def test_missing_target_is_rejected(graph: Graph) -> None:
    for op in ("update", "replace", "remove"):
        patch = graph.patch_object("nobody", {"n": 1}, op=op)
        assert (patch.status, patch.reason) == ("rejected", "the object does not exist")
        assert graph.events[-1].payload["current_version"] is None
    assert graph.objects() == []


def test_a_patch_is_settled_once(graph: Graph) -> None:
    graph.add_object("Memory", {}, id="a")
    applied, rejected = graph.propose_patch("a", {"x": 1}), graph.propose_patch("a", {"x": 2})
    assert (applied.status, graph.get_patch(applied.id)) == ("proposed", applied)
    graph.apply_patch(applied.id, approved_by="maya")
    assert graph.events[-1].payload["approved_by"] == "maya"
    verdict = graph.reject_patch(rejected.id, "no need", actor="maya")
    assert (verdict.status, verdict.reason) == ("rejected", "no need")
    before = len(graph.events)
    for patch, status in ((applied, "applied"), (rejected, "rejected")):
        says = f"patch '{patch.id}' is {status}; only a proposed patch"
        with pytest.raises(InvalidPatchLifecycleState, match=says):
            graph.apply_patch(patch.id)
        with pytest.raises(InvalidPatchLifecycleState, match=says):
            graph.reject_patch(patch.id, "again")
        with pytest.raises(InvalidPatchLifecycleState, match=says):
            graph.emit(by_hand("patch.rejected", patch_id=patch.id, target="a", reason="x", **VERSIONS))
    assert len(graph.events) == before


def test_unknown_patch(graph: Graph) -> None:
    with pytest.raises(NotFoundError, match="no patch 'p' in the graph at position 0"):
        graph.apply_patch("p")
    with pytest.raises(NotFoundError, match="no patch 'p'"):
        graph.reject_patch("p", "x")
    assert graph.get_patch("p") is None


def test_duplicate_patch(graph: Graph) -> None:
    graph.propose_patch("a", {}, id="p")
    with pytest.raises(AlreadyExistsError, match="the graph holds a patch 'p' already"):
        graph.propose_patch("a", {}, id="p")


@pytest.mark.parametrize(("op", "type_"), [("upsert", None), ("", None), ("create", None), ("update", "Memory")])
def test_refused_operation(graph: Graph, op: str, type_: str | None) -> None:
    with pytest.raises((InvalidPatchOperation, InvalidEventError), match="op"):
        graph.propose_patch("a", {}, op=op, type=type_)
    assert len(graph.events) == 0


@pytest.mark.parametrize(
    ("target", "updates", "error", "says"),
    [
        ("a", {"provenance": 1}, ReservedFieldError, "provenance"),
        ("a", {"x": float("nan")}, NonSerializableEventError, r"updates\.x is nan"),
        ("a b", {}, InvalidNameError, "is no id"),
        ("a", [], InvalidEventError, "data is a list"),
    ],
)
def test_refused_patch(graph: Graph, target: str, updates: Any, error: type[Exception], says: str) -> None:
    graph.add_object("Memory", {}, id="a")
    with pytest.raises(error, match=says):
        graph.patch_object(target, updates)
    assert len(graph.events) == 1


def test_a_result_that_is_too_large_is_refused_whole(graph: Graph) -> None:
    graph.add_object("Memory", {"x": "y" * 2_500_000}, id="a")
    with pytest.raises(InvalidEventError, match=r"the event 'patch.applied' takes .* at most 4,210,688 fit"):
        graph.patch_object("a", {"z": "y" * 1_000_000})
    assert (len(graph.events), graph.get_patch("patch_001")) == (1, None)


# Emitting events by hand


def by_hand(kind: str, **payload: Any) -> Event:
    return Event(type=kind, payload=payload)


def row(**changes: Any) -> dict[str, Any]:
    return {"id": "a", "type": "Memory", "data": {}, "version": 1, "provenance": {}} | changes


def edge(**changes: Any) -> dict[str, Any]:
    return {"id": "r", "source": "a", "target": "b", "type": "MENTIONS", "data": {}, "provenance": {}} | changes


def proposal(**changes: Any) -> dict[str, Any]:
    return Patch(id="p", target="a", op="update").to_dict() | changes


@pytest.fixture
def prepared(graph: Graph) -> Graph:
    """A graph with the objects a and b, the relation r between them, and the proposed patch p on a."""
    graph.add_object("Memory", {"n": 1}, id="a")
    graph.add_object("Entity", {}, id="b")
    graph.add_relation("a", "b", "MENTIONS", id="r")
    graph.propose_patch("a", {"n": 2}, id="p")
    return graph


def applied(**changes: Any) -> Event:
    payload = {"patch": proposal(status="applied"), "target": "a", "diff": {}, "object": row(version=2)} | changes
    return by_hand("patch.applied", **payload)


@pytest.mark.parametrize(
    ("event", "error", "says"),
    [
        (by_hand("object.created", object=row(id="c", extra=1), id="c"), InvalidEventError, "cannot be projected"),
        (by_hand("object.created", object=row(), id="a"), AlreadyExistsError, "an object 'a' already"),
        (by_hand("object.created", object=row(id="c"), id="d"), InvalidEventError, "names 'd' outside"),
        (by_hand("object.removed", id="a", type="Entity"), InvalidEventError, "'a' is a Memory; the event calls it a"),
        (by_hand("object.removed", id="c", type="Memory"), NotFoundError, "no object 'c'"),
        (
            by_hand("relation.created", relation=edge(id="s", extra=1), id="s", source="a", target="b"),
            InvalidEventError,
            "cannot be projected",
        ),
        (
            by_hand("relation.created", relation=edge(), id="r", source="a", target="b"),
            AlreadyExistsError,
            "a relation 'r' already",
        ),
        (by_hand("relation.removed", id="r", source="b", target="a", type="MENTIONS"), InvalidEventError, "other ends"),
        (by_hand("relation.removed", id="r", source="a", target="b", type="AFFECTS"), InvalidEventError, "other ends"),
        (
            by_hand("relation.removed", id="s", source="a", target="b", type="MENTIONS"),
            NotFoundError,
            "no relation 's'",
        ),
        (by_hand("patch.proposed", patch=proposal(id="q", extra=1)), InvalidEventError, "cannot be projected"),
        (by_hand("patch.proposed", patch=proposal(id="q", status="applied")), InvalidEventError, "expected 'proposed'"),
        (by_hand("patch.proposed", patch=proposal(id="q", op="upsert")), InvalidEventError, "has op 'upsert'"),
        (by_hand("patch.proposed", patch=proposal()), AlreadyExistsError, "a patch 'p' already"),
        (applied(object=row(version=3)), InvalidEventError, "the object would have version 2"),
        (applied(object=row(version=2, type="Entity")), InvalidEventError, "an object's type never changes"),
        (applied(object=row(version=2, id="b")), InvalidEventError, "names 'a' outside and 'b' inside"),
        (applied(patch=proposal(status="rejected")), InvalidEventError, "cannot be applied"),
        (applied(patch=proposal(id="q", status="applied")), NotFoundError, "no patch 'q'"),
        (by_hand("patch.rejected", patch_id="q", target="a", reason="x", **VERSIONS), NotFoundError, "no patch 'q'"),
    ],
)
def test_refused_event(prepared: Graph, event: Event, error: type[Exception], says: str) -> None:
    before = state(prepared)
    with pytest.raises(error, match=says):
        prepared.emit(event)

    def write() -> None:
        with prepared.batch():
            prepared.add_object("Memory", id="z")
            prepared.emit(event)

    with pytest.raises(error, match=says):
        write()
    assert (len(prepared.events), state(prepared)) == (4, before)


@pytest.mark.parametrize(
    "event",
    [
        by_hand("patch.rejected", patch_id="p", target="a", reason=5, **VERSIONS),
        by_hand("patch.rejected", patch_id="p", target="a", reason={"no": 1}, **VERSIONS),
        by_hand("patch.proposed", patch=proposal(id="q", reason=5)),
        by_hand("patch.proposed", patch=proposal(id="q", updates=5)),
        by_hand("patch.proposed", patch=proposal(id="q", evidence=5)),
        by_hand("patch.proposed", patch=proposal(id="q", op="create", type=None)),
        by_hand("patch.proposed", patch=proposal(id="q", op="create", type="Node")),
        by_hand("patch.proposed", patch=proposal(id="q", updates={"provenance": 1})),
        by_hand("object.created", object=row(id="c", version=2**63), id="c"),
    ],
)
def test_refused_field(prepared: Graph, event: Event) -> None:
    with pytest.raises((InvalidEventError, InvalidNameError), match=r"expected|belongs|keeps for itself"):
        prepared.emit(event)
    assert len(prepared.events) == 4


@pytest.mark.parametrize(
    "event",
    [
        applied(patch=proposal(status="applied", target="b"), target="b", object=row(version=2, id="b")),
        applied(patch=proposal(status="applied", op="remove")),
        applied(target="b"),
    ],
)
def test_a_patch_is_applied_as_it_was_proposed(prepared: Graph, event: Event) -> None:
    with pytest.raises(InvalidEventError, match=r"patch 'p'|names"):
        prepared.emit(event)
    assert len(prepared.events) == 4


def test_unknown_events_are_kept_and_project_to_nothing(prepared: Graph) -> None:
    before = state(prepared)
    recorded = prepared.emit(Event(type="weather.changed", payload={"to": "rain"}, actor="sky", frame_id="f"))
    prepared.emit(Event(type="behavior.started", payload={}))
    assert recorded == prepared.events[4]
    assert (recorded.actor, recorded.frame_id, recorded.payload) == ("sky", "f", {"to": "rain"})
    assert recorded.timestamp > prepared.events[3].timestamp
    assert (state(prepared), prepared.position) == (before, 6)


def test_event_ids_are_unique(graph: Graph) -> None:
    graph.emit(Event(id="mine", type="t", payload={}))
    with pytest.raises(DuplicateEventError, match="the log holds an event 'mine' already; leave the id out"):
        graph.emit(Event(id="mine", type="t", payload={}))

    def twice() -> None:
        with graph.batch():
            graph.emit(Event(id="twice", type="t", payload={}))
            graph.emit(Event(id="twice", type="t", payload={}))

    with pytest.raises(DuplicateEventError, match="'twice'"):
        twice()
    assert len(graph.events) == 1


# Batches


def test_batch_is_one_commit_that_sees_its_own_writes(graph: Graph) -> None:
    graph.add_object("Memory", {"n": 1}, id="a")
    graph.add_object("Memory", {"n": 1}, id="b")
    graph.add_relation("a", "b", "MENTIONS", id="r1")
    with graph.batch() as same:
        assert same is graph
        graph.add_object("Entity", {"n": 5}, id="c")
        graph.add_relation("a", "c", "AFFECTS", id="r2")
        graph.patch_object("a", {"n": 2})
        proposed = graph.propose_patch("b", {"n": 9})
        graph.remove_object("b")
        assert [(row.id, row.data["n"], row.version) for row in graph.objects()] == [("a", 2, 2), ("c", 5, 1)]
        assert [row.id for row in graph.objects("Entity", {"n": {">": 4}})] == ["c"]
        assert [row.id for row in graph.objects(where={"n": 1})] == []
        assert [row.id for row in graph.relations()] == ["r2"]
        assert graph.get_relation("r1") is None
        assert [row.id for row in graph.get_relations("c", direction="in")] == ["r2"]
        assert [row.id for row in graph.neighborhood("a", 1)[0]] == ["a", "c"]
        assert graph.get_object("b") is None
        verdict = graph.apply_patch(proposed.id)
        assert (verdict.status, verdict.reason) == ("rejected", "the object does not exist")
        assert graph.get_patch(proposed.id) == verdict
        inside = state(graph)
        assert len(graph.events) == 3
    assert state(graph)[:2] == inside[:2]
    assert graph.get_patch(proposed.id) == verdict
    rows = graph._log.read(3, 1)
    assert {entry.last for entry in rows} == {len(graph.events)} == {10}
    assert state(graph) == replayed(graph)


def test_an_exception_appends_nothing(graph: Graph) -> None:
    graph.add_object("Memory", {"n": 1}, id="a")
    before = state(graph)

    def write() -> None:
        with graph.batch():
            graph.patch_object("a", {"n": 2})
            graph.add_object("Memory", id="b")
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        write()
    assert (len(graph.events), state(graph)) == (1, before)
    graph.add_object("Memory", id="b")  # nothing of it lingers
    assert len(graph.events) == 2


def test_an_empty_batch_is_no_commit(graph: Graph) -> None:
    with graph.batch():
        pass
    assert (len(graph.events), graph.position) == (0, 0)


def test_batches_nest(graph: Graph) -> None:
    with graph.batch():
        graph.add_object("Memory", id="a")
        with graph.batch():
            graph.add_object("Memory", id="b")
        assert len(graph.events) == 0
    assert [row.id for row in graph.objects()] == ["a", "b"]
    assert {entry.last for entry in graph._log.read(0, 1)} == {2}


def test_a_refused_write_leaves_the_batch_usable(graph: Graph) -> None:
    with graph.batch():
        graph.add_object("Memory", id="a")
        with pytest.raises(AlreadyExistsError, match="'a' already"):
            graph.add_object("Memory", id="a")
        with pytest.raises(InvalidNameError, match="is no id"):
            graph.add_relation("a", "", "T")
        graph.add_object("Memory", id="b")
    assert [row.id for row in graph.objects()] == ["a", "b"]
    assert len(graph.events) == 2


def test_other_threads_do_not_see_a_batch(graph: Graph) -> None:
    seen: list[int] = []
    with graph.batch():
        graph.add_object("Memory", id="a")
        thread = threading.Thread(target=lambda: seen.append(len(graph.objects())))
        thread.start()
        thread.join()
    assert (seen, len(graph.objects())) == ([0], 1)


def test_threads_write_one_after_another(graph: Graph) -> None:
    graph.add_object("Counter", {"n": 0}, id="c")

    def count() -> None:
        for _ in range(20):
            with graph.batch():
                row = graph.get_object("c")
                assert row is not None
                graph.patch_object("c", {"n": row.data["n"] + 1}, expected_version=row.version)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert graph.objects()[0].data == {"n": 80}
    assert graph.objects()[0].version == 81


# Two writers


def test_another_writer_is_caught_up_with(opened: Callable[..., Graph]) -> None:
    one, two = opened(), opened()
    one.add_object("Memory", id="a")
    two.add_object("Memory", id="b")
    one.add_object("Memory", id="c")
    assert [row.id for row in one.objects()] == [row.id for row in two.objects()] == ["a", "b", "c"]
    with pytest.raises(AlreadyExistsError, match="an object 'c' already"):
        two.add_object("Memory", id="c")


def test_a_batch_moves_behind_another_writers_events(opened: Callable[..., Graph]) -> None:
    one, two = opened(), opened()
    with one.batch():
        one.add_object("Memory", id="a")
        one.add_relation("a", "b", "MENTIONS", id="r")
        two.add_object("Memory", id="b")
    assert types(one) == ["object.created", "object.created", "relation.created"]
    assert [entry.last for entry in one._log.read(0, 9)] == [1, 3, 3]
    assert state(one) == replayed(one)


@pytest.mark.parametrize("what", ["object", "relation", "version", "patch"])
def test_a_batch_whose_ground_moved_is_refused_whole(opened: Callable[..., Graph], what: str) -> None:
    one, two = opened(), opened()
    one.add_object("Memory", {"n": 1}, id="a")
    one.propose_patch("a", {"n": 5}, id="p")
    actions: dict[str, Callable[[Graph], Any]] = {
        "object": lambda graph: graph.add_object("Memory", id="same"),
        "relation": lambda graph: graph.add_relation("a", "b", "MENTIONS", id="same"),
        "version": lambda graph: graph.patch_object("a", {"n": 2}),
        "patch": lambda graph: graph.reject_patch("p", "no"),
    }

    def write() -> None:
        with one.batch():
            one.add_object("Memory", id="lost")
            actions[what](one)
            actions[what](two)

    with pytest.raises(ConcurrentWriterError, match="another writer changed what this batch relied on"):
        write()
    assert one.get_object("lost") is None
    assert state(one) == replayed(one) == state(two)


def test_a_batch_is_not_applied_to_another_object_of_the_same_id(opened: Callable[..., Graph]) -> None:
    one, two = opened(), opened()
    one.add_object("Memory", {"who": "first"}, id="a")

    def write() -> None:
        with one.batch():
            one.patch_object("a", {"n": 2})
            two.remove_object("a")
            two.add_object("Memory", {"who": "second"}, id="a")

    with suppress(ConcurrentWriterError):
        write()
    assert one.objects()[0].data["who"] == "second"


def test_version_checks_are_exact_among_writers(opened: Callable[..., Graph]) -> None:
    one, two = opened(), opened()
    one.add_object("Memory", {"n": 1}, id="a")
    assert two.patch_object("a", {"n": 2}, expected_version=1).status == "applied"
    assert one.patch_object("a", {"n": 3}, expected_version=1).status == "rejected"
    assert one.objects()[0].data == {"n": 2}


# Time


class Backwards(Clock):
    def __init__(self) -> None:
        self._at = START

    def now(self) -> datetime:
        self._at -= timedelta(hours=1)
        return self._at


def test_timestamps_never_go_back(opened: Callable[..., Graph]) -> None:
    graph = opened(Backwards())
    graph.add_object("Memory", id="a")
    with graph.batch():
        graph.patch_object("a", {"n": 1})
        graph.add_object("Memory", id="b")
    late = opened(FrozenClock(START - timedelta(days=365)))
    late.add_object("Memory", id="c")
    graph.add_object("Memory", id="d")
    assert {event.timestamp for event in graph.events} == {"2025-12-31T23:00:00.000000Z"}
    later = opened(FrozenClock(START))
    later.add_object("Memory", id="e")
    assert graph.events[-1].timestamp == "2026-01-01T00:00:00.000000Z"
    graph.add_object("Memory", id="f")
    assert graph.events[-1].timestamp == "2026-01-01T00:00:00.000000Z"


# Reads


def test_reads_are_detached(graph: Graph) -> None:
    given = {"list": [1]}
    graph.add_object("Memory", given, id="a")
    graph.add_relation("a", "b", "MENTIONS", given, id="r")
    given["list"].append(2)
    for row in (
        graph.get_object("a"),
        *graph.objects(),
        *graph.query("Memory"),
        graph.get_relation("r"),
        *graph.relations(),
    ):
        assert row is not None
        row.data["list"].append(3)
        row.provenance.clear()
    graph.events[0].payload["object"]["data"].clear()
    assert graph.objects()[0].data == graph.relations()[0].data == {"list": [1]}
    assert graph.objects()[0].provenance["created_by"] == "evt_001"
    assert state(graph) == replayed(graph)


def test_handles_from_writes_are_detached(graph: Graph) -> None:
    graph.add_object("Memory", {"list": [1]}, id="a").data["list"].append(2)
    graph.add_relation("a", "b", "MENTIONS", {"list": [1]}).data["list"].append(2)
    graph.emit(Event(type="t", payload={"list": [1]})).payload["list"].append(2)
    assert graph.objects()[0].data == graph.relations()[0].data == graph.events[2].payload == {"list": [1]}


def test_handles_from_a_batch_are_detached(graph: Graph) -> None:
    with graph.batch():
        graph.add_object("Memory", {"list": [1]}, id="a").data["list"].append(2)
        graph.add_relation("a", "b", "MENTIONS", {"list": [1]}).data["list"].append(2)
        graph.emit(Event(type="t", payload={"list": [1]})).payload["list"].append(2)
    assert graph.objects()[0].data == graph.relations()[0].data == graph.events[2].payload == {"list": [1]}


def test_query_by_type_and_where(graph: Graph) -> None:
    for n, kind in enumerate(["Memory", "Entity", "Memory"]):
        graph.add_object(kind, {"n": n, "deep": {"er": n * 10}}, id=f"o{n}")
    assert [row.id for row in graph.objects()] == ["o0", "o1", "o2"]
    assert [row.id for row in graph.objects("Memory", {"deep.er": {">=": 10}})] == ["o2"]
    assert graph.query("Memory", {"n": 0}) == graph.objects("Memory", {"n": 0}) == [graph.get_object("o0")]
    assert list(graph.get_objects(["o2", "nobody", "o0"])) == ["o0", "o2"]


@pytest.fixture
def chain(graph: Graph) -> Graph:
    """a -> b -> c -> d, b -> b, x -> c; x and d are no objects."""
    for key in "abc":
        graph.add_object("Memory", id=key)
    for source, target, kind in [("a", "b", "T"), ("b", "c", "U"), ("c", "d", "T"), ("b", "b", "T"), ("x", "c", "U")]:
        graph.add_relation(source, target, kind, id=f"{source}{target}")
    return graph


def test_relations_and_directions(chain: Graph) -> None:
    def ids(rows: list[Relation]) -> list[str]:
        return [row.id for row in rows]

    assert ids(chain.relations("b")) == ["bb", "bc"]
    assert ids(chain.relations(target="c")) == ["bc", "xc"]
    assert ids(chain.relations(["a", "c"], type="T")) == ["ab", "cd"]
    assert ids(chain.relations(source="b", target=["b", "z"], type=["T", "U"])) == ["bb"]
    assert ids(chain.get_relations("b")) == ["ab", "bb", "bc"]
    assert ids(chain.get_relations("b", direction="in")) == ["ab", "bb"]
    assert ids(chain.get_relations("b", "T", "out")) == ["bb"]
    assert ids(chain.get_relations(["a", "d"])) == ["ab", "cd"]
    with pytest.raises(UsageError, match="direction is 'up'; expected 'out', 'in' or 'both'"):
        chain.get_relations("b", direction="up")


@pytest.mark.parametrize(
    ("start", "depth", "kind", "objects", "relations"),
    [
        ("a", 0, None, "a", []),
        ("a", 1, None, "ab", ["ab", "bb"]),
        ("a", 2, None, "abc", ["ab", "bb", "bc"]),
        ("a", 3, None, "abc", ["ab", "bb", "bc", "cd", "xc"]),
        ("a", 10, None, "abc", ["ab", "bb", "bc", "cd", "xc"]),
        ("a", 3, "T", "ab", ["ab", "bb"]),
        ("d", 1, None, "c", ["cd"]),
        ("x", 2, ["T", "U"], "bc", ["bb", "bc", "cd", "xc"]),
        ("nobody", 3, None, "", []),
    ],
)
def test_neighborhood(  # noqa: PLR0917 - its parameters
    chain: Graph, start: str, depth: int, kind: Any, objects: str, relations: list[str]
) -> None:
    found, edges = chain.neighborhood(start, depth, kind)
    assert ("".join(row.id for row in found), [row.id for row in edges]) == (objects, relations)


@pytest.mark.parametrize("depth", [-1, 11])
def test_neighborhood_is_bounded(graph: Graph, depth: int) -> None:
    with pytest.raises(UsageError, match=f"depth is {depth}; expected 0 to 10"):
        graph.neighborhood("a", depth)


def test_search(graph: Graph) -> None:
    graph.add_object("Memory", {"label": "Checkout API", "trusted": False}, id="a")
    graph.add_object("Entity", {"label": "Checkout"}, id="b")
    assert graph.count_terms(["checkout"], ["Memory", "Entity"]) == (2, {"checkout": 2})
    assert [hit.id for hit in graph.search({"checkout": 1.0}, ["Memory", "Entity"], (), 5)] == ["b", "a"]
    assert [hit.id for hit in graph.search({"checkout": 1.0}, ["Memory"], ["trusted"], 5)] == []


def test_events_are_a_sequence(graph: Graph) -> None:
    for n in range(5):
        graph.emit(Event(id=f"e{n}", type="t", payload={"n": n}))
    log, everything = graph.events, list(graph.events)
    assert [event.id for event in everything] == ["e0", "e1", "e2", "e3", "e4"]
    assert len(log) == 5
    for at in range(-5, 5):
        assert log[at] == everything[at]
    for cut in (
        slice(None),
        slice(1, 3),
        slice(-2, None),
        slice(None, None, 2),
        slice(None, None, -1),
        slice(4, 0, -2),
    ):
        assert log[cut] == everything[cut]
    for cut in (slice(3, 1), slice(9, 12), slice(0, 0)):
        assert log[cut] == []
    for at in (5, -6):
        with pytest.raises(IndexError, match=f"no event at index {at}; the log holds 5"):
            log[at]
    assert everything[3] in log
    assert (log.index(everything[3]), list(reversed(log))) == (3, everything[::-1])
    assert repr(log) == "<EventLog: 5 events>"
    graph.emit(Event(type="t", payload={}))
    assert len(log) == 6  # it reads the log, it is no copy


def test_repr_and_position(graph: Graph) -> None:
    graph.add_object("Memory")
    graph.add_object("Memory")
    assert (graph.position, repr(graph)) == (2, "<Graph at position 2>")


# No event poisons a replay

scalars = st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from([0.5, "", "a", "b", "p", "r", "Memory", "é"])
values = st.recursive(
    scalars | st.sampled_from(["applied", "update", "remove", 2**63, 10**30, "\0", "x y", "Node", "MENTIONS"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["id", "n", "provenance", "a b"]), inner)
    ),
    max_leaves=4,
)
TEMPLATES: dict[str, dict[str, Any]] = {
    "object.created": {"object": row(id="c"), "id": "c"},
    "object.removed": {"id": "a", "type": "Memory"},
    "relation.created": {"relation": edge(id="s"), "id": "s", "source": "a", "target": "b"},
    "relation.removed": {"id": "r", "source": "a", "target": "b", "type": "MENTIONS"},
    "patch.proposed": {"patch": proposal(id="q")},
    "patch.applied": {"patch": proposal(status="applied"), "target": "a", "diff": {}, "object": row(version=2)},
    "patch.rejected": {"patch_id": "p", "target": "a", "reason": "no", "expected_version": 1, "current_version": 1},
    "promote.applied": {"from_run": "alt", "warnings": []},
    "schema.loaded": {"type": "Memory", "schema": {}},
    "behavior.completed": {"trigger": "evt_001"},
}


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = [path for key, item in value.items() for path in paths(item, (*at, key))] if isinstance(value, dict) else []
    return [*([at] if at else []), *inner]


@st.composite
def damaged(draw: st.DrawFn) -> Event:
    """An event of the framework with up to two of its fields changed, dropped or added."""
    kind = draw(st.sampled_from(sorted(TEMPLATES)))
    payload = copy.deepcopy(TEMPLATES[kind])
    for _ in range(draw(st.integers(0, 2))):
        *way, last = draw(st.sampled_from(paths(TEMPLATES[kind])))
        holder: Any = payload
        for key in way:
            holder = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(holder, dict):
            action = draw(st.sampled_from(["change", "drop", "add"]))
            if action == "drop":
                holder.pop(last, None)
            else:
                holder[last if action == "change" else draw(st.sampled_from(["extra", "n"]))] = draw(values)
    return Event(type=kind, payload=payload)


@example(Event(type="patch.rejected", payload={"patch_id": "p", "target": "a", "reason": 5}))
@example(Event(type="patch.proposed", payload={"patch": proposal(id="q", reason=[])}))
@example(Event(type="object.created", payload={"object": row(id="c", version=2**63), "id": "c"}))
@given(damaged())
@settings(max_examples=150)
def test_no_event_poisons_a_replay(server: Server, workspace: Workspace, event: Event) -> None:
    with workspace() as name:
        graph = Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name))
        graph.add_object("Memory", {"n": 1}, id="a")
        graph.add_object("Entity", {}, id="b")
        graph.add_relation("a", "b", "MENTIONS", id="r")
        graph.propose_patch("a", {"n": 2}, id="p")
        before = state(graph)
        try:
            graph.emit(event)
        except ContextMeshError:
            assert (graph._log.tip(), state(graph)) == (4, before)
            return
        assert graph._log.tip() == 5
        graph.add_object("Memory", {}, id="next")
        now = state(graph)
        assert replayed(graph) == now
        graph.rebuild()
        assert state(graph) == now
        for line in map(encode, graph.events):
            assert line


@pytest.mark.parametrize("make", [InMemoryGraphStore, None])
def test_a_store_that_needs_no_arguments(make: Any) -> None:
    graph = Graph(store=make()) if make else Graph()
    graph.add_object("Memory", id="a")
    assert [row.id for row in graph.objects()] == ["a"]


def test_a_patch_names_one_target(prepared: Graph) -> None:
    row = prepared.get_object("a")
    patch = prepared.get_patch("p")
    assert row is not None
    assert patch is not None
    new = row.to_dict() | {"version": 2, "data": {"n": 2}}
    payload = {"patch": patch.settled("applied").to_dict(), "target": "b", "diff": {}, "object": new}
    with pytest.raises(InvalidEventError, match="names 'b' outside and 'a' inside"):
        prepared.emit(Event(type="patch.applied", payload=payload))


@pytest.mark.parametrize("field", ["updates", "evidence"])
def test_a_patch_that_was_accepted_can_be_applied(prepared: Graph, field: str) -> None:
    patch = Patch(id="q", target="new", op="create", type="Memory").to_dict() | {field: None}
    try:
        prepared.emit(Event(type="patch.proposed", payload={"patch": patch}))
    except InvalidEventError:
        return
    assert prepared.apply_patch("q").status == "applied"


def test_a_patch_tells_a_boolean_from_a_number_and_names_its_cause() -> None:
    graph = Graph()
    graph.add_object("Entity", {"n": 1}, id="a")
    graph.patch_object("a", {"n": True}, caused_by="evt_why")
    proposed, applied = list(graph.events)[-2:]
    assert applied.payload["diff"] == {"n": {"old": 1, "new": True}}
    assert (proposed.caused_by, applied.caused_by) == ("evt_why", "evt_why")
