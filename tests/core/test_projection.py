"""The laws that tie log and graph together, over random histories, in memory and in FalkorDB."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextmesh.core import projection
from contextmesh.core.events import Event, FrozenClock, TickingClock, to_timestamp
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.core.model import Object
from contextmesh.core.projection import Changes, catch_up, fold, rebuild
from contextmesh.core.reader import Reader
from contextmesh.core.stores import EventStore, GraphStore
from contextmesh.core.terms import terms
from contextmesh.errors import ConcurrentWriterError, ContextMeshError, IncompatibleRuntimeState
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from contextmesh.testing import (
    event,
    object_created,
    object_removed,
    objects,
    patch_rejected,
    relation_created,
    relation_removed,
)
from tests.conftest import START, Workspace

# Random histories: few ids, so that they collide; texts that are searched, and texts that break what is careless.

OBJECTS = ("a", "b", "c", "d'}")
RELATIONS = ("r1", "r2", "r3")
KINDS = ("Memory", "Entity", "Task")
TYPES = ("MENTIONS", "AFFECTS")
WORDS = ("redis session", "Checkout-API", "OrderService v1.2.3", "שלום 🔥", "", 'it\'s "a" `b` \\ $c', "nul\0 Straße")

ids = st.sampled_from(OBJECTS)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
fields = st.dictionaries(
    st.sampled_from(["label", "text", "n", "a b", "id", "kind", "version", "updated_at", "search", "trusted", "é"]),
    st.sampled_from(WORDS)
    | scalars
    | st.lists(scalars, max_size=2)
    | st.dictionaries(st.text(max_size=3), scalars, max_size=2),
    max_size=4,
)
versions = st.none() | st.integers(1, 3)
single = st.one_of(
    st.tuples(st.just("add"), ids, st.sampled_from(KINDS), fields),
    st.tuples(st.just("add"), ids, st.sampled_from(KINDS), fields),
    st.tuples(st.just("relate"), st.sampled_from(RELATIONS), ids, ids, st.sampled_from(TYPES)),
    st.tuples(st.just("relate"), st.sampled_from(RELATIONS), ids, ids, st.sampled_from(TYPES)),
    st.tuples(st.just("patch"), ids, fields, st.sampled_from(["update", "replace", "remove"]), versions),
    st.tuples(st.just("propose"), ids, fields, versions),
    st.tuples(st.just("create"), ids, fields, st.sampled_from(KINDS)),
    st.tuples(st.just("settle"), st.integers(1, 6), st.booleans()),
    st.tuples(st.just("remove"), ids),
    st.tuples(st.just("unrelate"), st.sampled_from(RELATIONS)),
    st.tuples(st.just("note")),
)
histories = st.lists(single | st.tuples(st.just("batch"), st.lists(single, max_size=8), st.booleans()), max_size=20)
Action = tuple[Any, ...]


class Stop(Exception):  # noqa: N818 - it stops a batch, nothing is wrong
    pass


def perform(graph: Graph, actions: list[Action]) -> None:
    """Do what can be done; what the graph refuses changes nothing."""
    for action in actions:
        with suppress(ContextMeshError, Stop):
            perform_one(graph, *action)


def perform_one(graph: Graph, kind: str, *given: Any) -> None:  # noqa: C901 - one case an operation
    match kind, given:
        case "add", (key, type_, data):
            graph.add_object(type_, data, id=key)
        case "relate", (key, source, target, type_):
            graph.add_relation(source, target, type_, {"w": key}, id=key)
        case "patch", (key, updates, op, version):
            graph.patch_object(key, updates, op=op, expected_version=version)
        case "propose", (key, updates, version):
            graph.propose_patch(key, updates, expected_version=version)
        case "create", (key, updates, type_):
            graph.propose_patch(key, updates, op="create", type=type_)
        case "settle", (number, True):
            graph.apply_patch(f"patch_{number:03d}")
        case "settle", (number, False):
            graph.reject_patch(f"patch_{number:03d}", 'it\'s "no"')
        case "remove", (key,):
            graph.remove_object(key)
        case "unrelate", (key,):
            graph.remove_relation(key)
        case "note", ():
            graph.emit(Event(type="note.made", payload={}))
        case "batch", (actions, fails):
            with graph.batch():
                perform(graph, actions)
                if fails:
                    raise Stop


def in_memory() -> Graph:
    return Graph(InMemoryEventStore(), InMemoryGraphStore(), clock=TickingClock(START))


def in_falkordb(server: Server, name: str) -> Graph:
    return Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name), clock=TickingClock(START))


def state(store: GraphStore, log: EventStore) -> dict[str, Any]:
    """What a graph holds and how it answers, patches, neighbourhoods and searches included."""
    reader = Reader(log, store)
    patches = {row.payload["patch"]["id"] for row in log.iter_events() if "patch" in row.payload}
    weights = {term: 1.0 + at / 8 for at, term in enumerate(sorted({t for word in WORDS for t in terms(word)}))}
    kinds = sorted(KINDS)
    return {
        "head": store.head(),
        "objects": objects(store),
        "by kind": {kind: [row.id for row in objects(store, kind)] for kind in KINDS},
        "relations": store.relations(),
        "by end": {key: (store.relations([key]), store.relations(None, [key], ["MENTIONS"])) for key in OBJECTS},
        "by id": (store.get_objects(OBJECTS), store.get_relations(RELATIONS)),
        "patches": store.get_patches(patches),
        "neighborhood": {(key, depth): reader.neighborhood(key, depth) for key in OBJECTS for depth in (1, 2)},
        "terms": store.count_terms(weights, kinds),
        "search": store.search(weights, kinds, (), 10),
        "expanded": store.expand(OBJECTS, TYPES, kinds, (), 2),
        "untrusted": store.search(weights, kinds[:2], {"trusted": False}, 10),
    }


def drawing(store: FalkorDBGraphStore, *, exact: bool = False) -> dict[str, Any]:
    """Every node and edge of a FalkorDB graph with all that it carries, and the indexes."""

    def rows(query: str) -> list[str]:
        return sorted(repr(row) for row in store.cypher(query)[1])

    nodes = [row[0] for row in store.cypher("MATCH (n) RETURN n")[1]]
    for node in nodes:
        if node["labels"] == ["Patch"] and not exact:
            # A verdict of a later batch reaches the node's properties, not the proposal that it keeps in `data`.
            node["data"] = {
                key: value for key, value in json.loads(node["data"]).items() if key not in ("status", "reason")
            }
    return {
        "nodes": sorted(repr(sorted(node.items())) for node in nodes),
        "edges": rows("MATCH (a)-[x]->(b) RETURN a.id, type(x), b.id, x.id, x.data, x.provenance"),
        "indexes": rows(
            "CALL db.indexes() YIELD label, properties, types, entitytype RETURN label, properties, types, entitytype"
        ),
    }


@given(histories)
@settings(max_examples=100)
def test_in_memory_equals_falkordb(server: Server, workspace: Workspace, actions: list[Action]) -> None:
    with workspace() as name:
        memory, real = in_memory(), in_falkordb(server, name)
        perform(memory, actions)
        perform(real, actions)
        assert list(real.events) == list(memory.events)
        assert state(real._store, real._log) == state(memory._store, memory._log)


@given(histories)
@settings(max_examples=60)
def test_rebuilt_equals_incremental(server: Server, workspace: Workspace, actions: list[Action]) -> None:
    with workspace() as name:
        for graph in (in_memory(), in_falkordb(server, name)):
            perform(graph, actions)
            before = state(graph._store, graph._log)
            drawn = drawing(graph._store) if isinstance(graph._store, FalkorDBGraphStore) else {}
            graph.rebuild()
            assert state(graph._store, graph._log) == before
            if drawn:
                again = drawing(graph._store)
                assert (again["nodes"], again["edges"]) == (drawn["nodes"], drawn["edges"])
                perform(graph, [("relate", "r9", "a", "b", "NEW_TYPE")])
                assert graph._store.get_relations(["r9"])


def test_a_rejected_patch_is_rebuilt_as_it_stood(server: Server, name: str) -> None:
    graph = in_falkordb(server, name)
    perform(graph, [("propose", "a", {}, None), ("settle", 1, False)])
    before = drawing(graph._store, exact=True)
    graph.rebuild()
    assert drawing(graph._store, exact=True) == before


@given(histories, st.data())
@settings(max_examples=60)
def test_applied_twice_is_applied_once(
    server: Server, workspace: Workspace, actions: list[Action], data: st.DataObject
) -> None:
    with workspace() as name:
        for graph in (in_memory(), in_falkordb(server, name)):
            perform(graph, actions)
            before = state(graph._store, graph._log)
            ends = sorted({0, *(entry.last for entry in graph._log.read(0, 10_000))})
            start = data.draw(st.sampled_from(ends[:-1] or ends))
            changes = fold(graph._log.iter_events(start))
            if start < graph.position:
                assert graph._store.apply(changes, expected=start, new=graph.position) is False
            assert state(graph._store, graph._log) == before


@given(histories, st.data())
@settings(max_examples=60)
def test_at_once_equals_one_by_one(
    server: Server, workspace: Workspace, actions: list[Action], data: st.DataObject
) -> None:
    """However a log is cut into pages, at its batches' ends, the graph comes out the same."""
    memory = in_memory()
    perform(memory, actions)
    ends = sorted({entry.last for entry in memory._log.read(0, 10_000)})
    cuts = sorted(data.draw(st.sets(st.sampled_from(ends)))) if ends else []
    expected = state(memory._store, memory._log)
    with workspace() as name:
        for store in (InMemoryGraphStore(), FalkorDBGraphStore(server, name)):
            for stop in [*cuts, memory.position]:
                head = store.head()
                if stop > head:
                    assert store.apply(fold(memory._log.iter_events(head, stop)), expected=head, new=stop)
            assert state(store, memory._log) == expected


@given(histories)
@settings(max_examples=60)
def test_event_by_event_equals_batch_by_batch(actions: list[Action]) -> None:
    """A batch's changes are the same folded at once and applied one event at a time."""
    memory = in_memory()
    perform(memory, actions)
    store = InMemoryGraphStore()
    for head, row in enumerate(memory.events):
        assert store.apply(fold([row]), expected=head, new=head + 1)
    assert state(store, memory._log) == state(memory._store, memory._log)


# Folding


def test_fold_keeps_one_row_an_entity() -> None:
    changes = fold(
        [
            object_created(1, "a", data={"n": 1}),
            relation_created(2, "r", "a", "b"),
            object_removed(3, "a"),
            object_created(4, "a", "Entity", {"n": 2}),
            event(5, "behavior.started"),
        ]
    )
    [(row, timestamp)] = changes.objects.values()
    assert (row.type, row.data, timestamp) == ("Entity", {"n": 2}, "2026-01-01T00:00:04.000000Z")
    assert list(changes.removed_objects) == ["a"]
    assert ([key[0] for key in changes.removed_relations], changes.relations) == (["r"], {})


def test_fold_of_nothing() -> None:
    assert fold([]) == fold([event(1), event(2, "runtime.started")]) == Changes()


def test_a_verdict_without_its_proposal() -> None:
    assert fold([patch_rejected(1, "p", "a", "no")]).verdicts == {"p": ("rejected", "no")}


def test_fold_of_a_relation_that_went_and_came() -> None:
    changes = fold([relation_removed(1, "r", "a", "b"), relation_created(2, "r", "c", "d")])
    assert ([key[0] for key in changes.removed_relations], changes.relations["r"].source) == (["r"], "c")


# Catching up


def filled(log: EventStore, *sizes: int) -> None:
    """Append batches of these sizes, each event creating an object."""
    for size in sizes:
        tip = log.tip()
        batch = [object_created(tip + n, f"o{tip + n}") for n in range(1, size + 1)]
        log.append_many(batch, expected=tip, commit_id=f"c{tip}")


class Watched(InMemoryGraphStore):
    """Notes each page that it takes."""

    def __init__(self) -> None:
        super().__init__()
        self.pages: list[tuple[int, int]] = []

    def apply(self, changes: Changes, *, expected: int, new: int) -> bool:
        self.pages.append((expected, new))
        return super().apply(changes, expected=expected, new=new)


def test_catch_up_goes_by_pages_that_end_with_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projection, "PAGE", 3)
    log, store, seen = InMemoryEventStore(), Watched(), []
    filled(log, 1, 1, 4, 1, 1)
    assert catch_up(log, store, progress=lambda done, total: seen.append((done, total))) == 8
    assert store.pages == [(0, 6), (6, 8)]
    assert seen == [(6, 8), (8, 8)]
    assert catch_up(log, store) == 8
    assert store.pages == [(0, 6), (6, 8)]


def test_catch_up_until() -> None:
    log, store = InMemoryEventStore(), InMemoryGraphStore()
    filled(log, 1, 1, 1, 1)
    assert catch_up(log, store, until=2) == 2
    assert [row.id for row in objects(store)] == ["o1", "o2"]
    assert catch_up(log, store, until=2) == 2
    assert catch_up(log, store) == 4


def test_another_process_may_be_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    log, store = InMemoryEventStore(), InMemoryGraphStore()
    filled(log, 1, 1)
    real = store.apply
    overtaken = []

    def apply(changes: Changes, *, expected: int, new: int) -> bool:
        if not overtaken:
            overtaken.append(real(fold(log.iter_events(0, 1)), expected=0, new=1))
        return real(changes, expected=expected, new=new)

    monkeypatch.setattr(store, "apply", apply)
    assert catch_up(log, store) == 2
    assert [row.id for row in objects(store)] == ["o1", "o2"]


def test_a_head_beyond_the_tip() -> None:
    log, store = InMemoryEventStore(), InMemoryGraphStore()
    graph = Graph(log, store)
    graph.add_object("Memory", id="a")
    graph.add_object("Memory", id="b")
    log.truncate_after(1)
    with pytest.raises(IncompatibleRuntimeState, match="the graph stands at 2, its log ends at 1; rebuild the graph"):
        graph.catch_up()
    with pytest.raises(IncompatibleRuntimeState, match="rebuild the graph"):
        Graph(log, store)
    assert graph.rebuild() == 1
    assert [row.id for row in graph.objects()] == ["a"]
    graph.add_object("Memory", id="c")
    assert [row.id for row in Graph(log, store).objects()] == ["a", "c"]


def test_rebuild_gives_up_after_twenty_swaps(monkeypatch: pytest.MonkeyPatch) -> None:
    log, store = InMemoryEventStore(), InMemoryGraphStore()
    filled(log, 1)
    tries = []
    monkeypatch.setattr(store, "swap", lambda shadow, *, tip: tries.append(tip))
    with pytest.raises(ConcurrentWriterError, match="moved the log before each of 20 swaps; rebuild again"):
        rebuild(log, store)
    assert len(tries) == 20


def test_provenance_follows_the_events() -> None:
    graph = Graph(clock=FrozenClock(START))
    graph.add_object("Memory", {}, id="a")
    graph.patch_object("a", {"n": 1})
    [row] = graph.objects()
    assert isinstance(row, Object)
    assert row.provenance["created_by"] == graph.events[0].id
    assert row.provenance["updated_by"] == graph.events[-1].id
    assert graph.events[0].timestamp == to_timestamp(START)
