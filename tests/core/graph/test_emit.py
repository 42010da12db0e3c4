"""Events emitted by hand: what is malformed is refused whole, and no event poisons a replay."""

import copy
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contextmesh.core.events import Event, encode
from contextmesh.core.graph import Graph
from contextmesh.core.model import Patch
from contextmesh.errors import (
    AlreadyExistsError,
    ContextMeshError,
    DuplicateEventError,
    InvalidEventError,
    InvalidNameError,
    NotFoundError,
)
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from tests.conftest import Workspace
from tests.core.graph.emitted import VERSIONS, applied, by_hand, edge, prepare, proposal, replayed, row, state

# What is refused, and what is kept


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
    """What could not be applied is refused when it is proposed; the same patch with the field is taken."""
    patch = Patch(id="q", target="new", op="create", type="Memory").to_dict()
    with pytest.raises(InvalidEventError, match=f"patch 'q' has an? {field} of type NoneType; expected"):
        prepared.emit(by_hand("patch.proposed", patch=patch | {field: None}))
    assert prepared.get_patch("q") is None
    prepared.emit(by_hand("patch.proposed", patch=patch))
    assert prepared.apply_patch("q").status == "applied"


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
        graph = prepare(Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name)))
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
