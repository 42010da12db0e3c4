"""What a graph can be asked, over every store, and inside a batch that is not committed yet."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.core.model import ObjectQuery, ObjectQueryResult
from contextmesh.errors import UsageError
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from tests.conftest import START, Workspace


class Undecided(InMemoryGraphStore):
    """A store that decides nothing but the type, as the protocol allows."""

    def query(self, plan: ObjectQuery) -> ObjectQueryResult:
        everything = super().query(ObjectQuery(type=plan.type))
        return ObjectQueryResult(objects=everything.objects, residual=plan.where)


@pytest.fixture(params=["memory", "undecided", "falkordb"])
def graph(request: pytest.FixtureRequest, server: Server, name: str, clock: TickingClock) -> Graph:
    """An empty graph over each kind of store."""
    if request.param == "falkordb":
        return Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name), clock=clock)
    store = InMemoryGraphStore() if request.param == "memory" else Undecided()
    return Graph(InMemoryEventStore(), store, clock=clock)


def ids(rows: Any) -> list[str]:
    return [row.id for row in rows]


# objects


def test_objects_query_and_exists_agree(graph: Graph) -> None:
    for n, kind in enumerate(["Memory", "Entity", "Memory"]):
        graph.add_object(kind, {"n": n, "deep": {"er": n * 10}}, id=f"o{n}")
    for type_, where, found in [
        (None, None, ["o0", "o1", "o2"]),
        ("Memory", {}, ["o0", "o2"]),
        ("Memory", {"n": {">": 0}}, ["o2"]),
        (None, {"deep.er": {"in": (10, 20)}}, ["o1", "o2"]),
        ("Entity", {"n": {"!=": 1}}, []),
        ("Task", None, []),
    ]:
        assert ids(graph.objects(type_, where)) == ids(graph.query(type_, where)) == found
        assert graph.exists(type_, where) is bool(found)


def test_several_values_may_come_from_anything_that_can_be_iterated(graph: Graph) -> None:
    for n in range(4):
        graph.add_object("Memory", {"n": n}, id=f"o{n}")
    wanted: list[Any] = [[1, 3], (1, 3), {1, 3}, range(1, 4, 2), iter([1, 3]), {1: "a", 3: "b"}]
    for several in wanted:
        assert ids(graph.objects(where={"n": {"in": several}})) == ["o1", "o3"]


def test_a_batch_sees_its_own_objects(graph: Graph) -> None:
    for n in range(4):
        graph.add_object("Memory", {"n": n}, id=f"o{n}")
    with graph.batch():
        graph.remove_object("o0")
        graph.patch_object("o1", {"n": 7})
        graph.patch_object("o2", {"n": 8})
        graph.add_object("Memory", {"n": 9}, id="o4")
        assert ids(graph.objects("Memory", {"n": {">=": 7}})) == ["o1", "o2", "o4"]
        assert ids(graph.objects("Memory", {"n": {"<": 7}})) == ["o3"]
        assert (graph.exists(where={"n": 9}), graph.exists(where={"n": 0}), graph.exists(where={"n": 1})) == (
            True,
            False,
            False,
        )
    assert ids(graph.objects("Memory", {"n": {">=": 7}})) == ["o1", "o2", "o4"]


# relations and neighbourhoods


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[str], list[tuple[str, str, str]]]:
    """Objects, and relations (source, target, type) between them and ends that are none."""
    ends = st.sampled_from("abcdef")
    objects = draw(st.sets(ends))
    return sorted(objects), draw(st.lists(st.tuples(ends, ends, st.sampled_from("TU")), max_size=8))


def around(
    objects: list[str], links: list[tuple[str, str, str]], start: str, depth: int, types: Any
) -> list[list[str]]:
    """What a neighbourhood is, said in another way: distances over the undirected graph."""
    named = {f"r{n}": link for n, link in enumerate(links) if link[2] in (types or "TU")}
    distance = {start: 0}
    for step in range(depth):
        for source, target, _ in named.values():
            for here, there in ((source, target), (target, source)):
                if distance.get(here) == step:
                    distance.setdefault(there, step + 1)
    inside = [key for key, (source, target, _) in named.items() if {source, target} <= distance.keys()]
    return [[key for key in objects if key in distance], inside if depth else []]


@contextmanager
def opened(server: Server, workspace: Workspace) -> Iterator[list[Graph]]:
    """An empty graph in memory and one in FalkorDB."""
    with workspace() as name:
        log, store = FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name)
        yield [Graph(clock=TickingClock(START)), Graph(log, store, clock=TickingClock(START))]


def fill(graph: Graph, objects: list[str], links: list[tuple[str, str, str]], first: int = 0) -> None:
    for key in objects:
        graph.add_object("Memory", id=key)
    for n, (source, target, type_) in enumerate(links, first):
        graph.add_relation(source, target, type_, id=f"r{n}")


class Abandoned(Exception):  # noqa: N818 - it ends a batch on purpose
    pass


@given(graphs(), st.sampled_from("abcdef"), st.integers(0, 4), st.sampled_from([None, "T", ["T", "U"]]))
@settings(max_examples=40)
def test_a_neighborhood_is_what_lies_within_so_many_hops(  # noqa: PLR0917 - what is drawn
    server: Server, workspace: Workspace, shape: Any, start: str, depth: int, type: Any
) -> None:
    """Committed, and in a batch of which the second half is not committed."""
    objects, links = shape
    expected = around(objects, links, start, depth, type)
    touching = [f"r{n}" for n, link in enumerate(links) if start in link[:2] and link[2] in (type or "TU")]
    half = len(links) // 2
    with opened(server, workspace) as graphs:
        for graph in graphs:
            fill(graph, objects[::2], links[:half])
            with graph.batch():
                fill(graph, objects[1::2], links[half:], half)
                drafted = graph.neighborhood(start, depth, type)
            committed = graph.neighborhood(start, depth, type)
            assert [ids(part) for part in drafted] == [ids(part) for part in committed] == expected
            assert drafted[1] == committed[1]
            assert ids(graph.get_relations(start, type)) == touching


def test_a_batch_sees_its_own_relations(graph: Graph) -> None:
    fill(graph, list("abc"), [("a", "b", "T"), ("b", "c", "T"), ("c", "c", "U")])
    with graph.batch():
        graph.remove_relation("r0")
        graph.remove_object("c")
        graph.add_relation("d", "b", "T", id="r3")
        graph.add_object("Memory", id="e")
        graph.add_relation("e", "d", "U", id="r4")
        assert ids(graph.get_relations("b")) == ["r3"]
        assert ids(graph.get_relations(["a", "d", "c"])) == ["r3", "r4"]
        assert ids(graph.get_relations("d", "U")) == ids(graph.get_relations("d", "U", "in")) == ["r4"]
        assert ids(graph.get_relations("d", "U", "out")) == []
        assert [ids(part) for part in graph.neighborhood("b", 1)] == [["b"], ["r3"]]
        assert [ids(part) for part in graph.neighborhood("b", 2)] == [["b", "e"], ["r3", "r4"]]
        assert [ids(part) for part in graph.neighborhood("a", 3)] == [["a"], []]
    assert [ids(part) for part in graph.neighborhood("b", 2)] == [["b", "e"], ["r3", "r4"]]


# chains


def chain(graph: Graph, *arguments: Any) -> list[str]:
    return [" ".join(ids((*match.objects, *match.relations))) for match in graph.match_chain(*arguments)]


def test_a_chain_that_is_not_committed_yet(graph: Graph) -> None:
    fill(graph, list("abc"), [("a", "b", "T"), ("b", "c", "T")])
    two = ["Memory", None, None], [("T", "right"), ("T", "right")]
    assert chain(graph, *two) == ["a b c r0 r1"]
    with graph.batch():
        graph.add_relation("b", "b", "T", id="r2")
        graph.add_object("Entity", id="d")
        graph.add_relation("b", "d", "T", id="r3")
        graph.remove_object("c")
        assert chain(graph, *two) == ["a b b r0 r2", "a b d r0 r3", "b b b r2 r2", "b b d r2 r3"]
        assert chain(graph, *two, 1) == ["a b b r0 r2"]
        assert chain(graph, ["Entity", "Memory"], [(None, "left")]) == ["d b r3"]
        assert chain(graph, ["Memory", "Memory"], [("U", "right")]) == []
    assert chain(graph, *two) == ["a b b r0 r2", "a b d r0 r3", "b b b r2 r2", "b b d r2 r3"]


def test_what_a_chain_returns_is_detached(graph: Graph) -> None:
    fill(graph, list("ab"), [("a", "b", "T")])
    [match] = graph.match_chain([None, None], [(None, "right")])
    match.objects[0].data["edited"] = match.relations[0].data["edited"] = 1
    assert graph.objects()[0].data == graph.relations()[0].data == {}


def test_a_chain_that_does_not_fit_together(graph: Graph) -> None:
    with pytest.raises(UsageError, match="one node type more than relations"):
        graph.match_chain(["Memory"], [("T", "right")])
