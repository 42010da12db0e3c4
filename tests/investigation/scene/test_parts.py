"""Which part of a graph is drawn, and what is said of the rest."""

import numpy as np
import pytest

import contextmesh as cm
from contextmesh.core.graph import Graph
from contextmesh.core.model import View
from contextmesh.errors import NotFoundError, UsageError
from contextmesh.investigation.scene import build_scene
from tests.investigation.scene.making import fact, line


def star(graph: Graph, leaves: int, hub: str = "hub") -> Graph:
    with graph.batch():
        graph.add_object("Entity", {"label": hub}, id=hub)
        for n in range(leaves):
            graph.add_object("Memory" if n % 3 else "Evidence", {"label": f"{hub} leaf {n}"}, id=f"{hub}-{n:04}")
            graph.add_relation(f"{hub}-{n:04}", hub, "MENTIONS" if n % 2 else "RELATES_TO", id=f"{hub}-line-{n:04}")
    return graph


@pytest.fixture(params=["memory", "falkordb"])
def empty(request: pytest.FixtureRequest) -> Graph:
    """A graph in memory, and one in FalkorDB."""
    return Graph() if request.param == "memory" else request.getfixturevalue("graph")


def test_all_of_a_small_graph_is_drawn(empty):
    scene = build_scene(star(empty, 5))
    assert scene.ids == ("hub", *(f"hub-{n:04}" for n in range(5)))
    assert (len(scene.relation_ids), scene.left_out) == (5, "")


def test_of_a_large_graph_the_hubs_come_first_and_the_rest_is_counted(empty):
    star(star(star(empty, 40, "big"), 20, "middle"), 3, "small")
    empty.add_relation("small-0001", "nowhere", "AFFECTS", id="dangling")
    scene = build_scene(empty, most=12)
    assert {"big", "middle"} <= set(scene.ids)
    assert len(scene.ids) == 12
    assert len(scene.relation_ids) == 9
    assert scene.left_out == "Not drawn: 54 of 66 facts, 55 of 64 relations"


def test_around_a_center_the_near_comes_first(empty):
    star(star(empty, 4, "a"), 4, "b")
    empty.add_relation("a", "b", "DEPENDS_ON", id="a-b")
    for hops, expected in ((0, 1), (1, 6), (2, 10), (3, 10)):
        assert len(build_scene(empty, center="a", hops=hops).ids) == expected
    assert build_scene(empty, center="a", hops=3, most=3).ids == ("a", "a-0000", "b")
    assert build_scene(empty, center="a-0001").ids == ("a", "a-0001")


def test_kinds_and_relation_types_bound_what_is_walked_and_drawn(empty):
    star(empty, 6)
    by_kind = build_scene(empty, center="hub", kinds=["Evidence"])
    assert by_kind.ids == ("hub", "hub-0000", "hub-0003")
    by_type = build_scene(empty, center="hub", relation_types=["MENTIONS"])
    assert by_type.ids == ("hub", "hub-0001", "hub-0003", "hub-0005")
    assert set(by_type.relation_types) == {"MENTIONS"}
    assert build_scene(empty, kinds=["Entity"]).ids == ("hub",)
    alone = build_scene(empty, relation_types=[])
    assert (len(alone.ids), alone.relation_ids) == (7, ())
    assert build_scene(empty, center="hub", relation_types=[]).ids == ("hub",)


def test_what_must_be_drawn_is_drawn(empty):
    star(empty, 30)
    scene = build_scene(empty, include=["hub-0029", "nobody", "hub-line-0001"], most=5)
    assert "hub-0029" in scene.ids
    assert len(scene.ids) == 5
    around = build_scene(empty, center="hub-0001", include=["hub-0029"], hops=0)
    assert around.ids == ("hub-0001", "hub-0029")


def test_only_the_chosen_part_is_read_from_a_database(graph, monkeypatch):
    star(graph, 50)
    read: list[int] = []
    get = type(graph).get_objects
    monkeypatch.setattr(type(graph), "get_objects", lambda self, ids: read.append(len(ids)) or get(self, ids))
    monkeypatch.setattr(type(graph), "objects", None)
    monkeypatch.setattr(type(graph), "neighborhood", None)
    scene = build_scene(graph, most=10)
    assert len(scene.ids) == 10
    assert max(read) <= 10


def test_both_kinds_of_store_choose_alike(graph):
    memory = star(star(Graph(), 40, "a"), 25, "b")
    star(star(graph, 40, "a"), 25, "b")
    for options in ({"most": 20}, {"center": "a", "most": 20}, {"center": "a-0001", "hops": 3}, {"kinds": ["Memory"]}):
        one, other = build_scene(memory, **options), build_scene(graph, **options)
        assert (one.ids, one.relation_ids, one.left_out) == (other.ids, other.relation_ids, other.left_out)
        assert np.array_equal(one.positions, other.positions)


def test_a_view_is_drawn_too():
    view = View(position=3, object_rows=(fact("a"), fact("b")), relation_rows=(line("a", "AFFECTS", "b"),))
    assert build_scene(view, center="a").ids == ("a", "b")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"most": 0}, "most is 0; expected a whole number from 1 to 2,000"),
        ({"most": 2001}, "most is 2001; expected a whole number from 1 to 2,000"),
        ({"hops": 4}, "hops is 4; expected a whole number from 0 to 3"),
        ({"hops": True}, "hops is True; expected a whole number from 0 to 3"),
    ],
)
def test_bounds_are_kept(options, message):
    with pytest.raises(UsageError, match=message):
        build_scene(Graph(), **options)


def test_a_center_that_is_not_there_is_named(empty):
    with pytest.raises(NotFoundError, match="no object 'nobody'"):
        build_scene(empty, center="nobody")


def test_a_graph_view_of_acmeshop_has_room_for_all(ws):
    cm.demo.acmeshop(ws)
    scene = build_scene(ws.graph)
    assert scene.left_out == ""
    assert scene.index("checkout-api") is not None
