"""Reads: by type, condition, end, direction and distance; whatever they return is detached."""

from typing import Any

import pytest

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.model import Relation
from contextmesh.errors import UsageError
from tests.core.graph.emitted import replayed, state


@pytest.mark.parametrize("make", [InMemoryGraphStore, None])
def test_a_store_that_needs_no_arguments(make: Any) -> None:
    graph = Graph(store=make()) if make else Graph()
    graph.add_object("Memory", id="a")
    assert [row.id for row in graph.objects()] == ["a"]


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
