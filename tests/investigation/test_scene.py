"""Scenes: what is drawn of a graph and what is said of the rest, what is lit up, and in which colours."""

import itertools
import math

import numpy as np
import pytest

import contextmesh as cm
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object, Relation, View
from contextmesh.errors import NotFoundError, UsageError
from contextmesh.investigation.palette import GREY, PAPER, color_of, contrast, to_rgb
from contextmesh.investigation.scene import (
    CHANGE_COLORS,
    KIND_COLORS,
    RELATION_COLORS,
    Light,
    build_scene,
    light_of_diff,
    light_of_investigation,
    removed_rows,
    scene_of,
)
from contextmesh.investigation.vocabulary import KINDS, RELATIONS
from tests.investigation.making import QUESTION, told

FACTS = ("Decision", "Entity", "Evidence", "Hypothesis", "Memory", "Task")
# How a reader without one of the three cones sees linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.0.
SIGHTS = {
    "all": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
PROCESS = """
import json
from contextmesh.core.model import Object, Relation
from contextmesh.investigation.scene import scene_of
objects = [Object(id=f"o{n}", type="Entity", data={"label": f"Fact {n}"}) for n in range(60)]
relations = [Relation(id=f"r{n}", source=f"o{n}", target=f"o{n // 2}", type="AFFECTS") for n in range(1, 60)]
scene = scene_of(objects, relations)
print(json.dumps([scene.ids, scene.positions.tolist(), scene.sizes.tolist(), scene.ranked_labels()]))
"""


def fact(key: str, kind: str = "Entity", **data: object) -> Object:
    return Object(id=key, type=kind, data={"label": key.upper(), **data})


def line(source: str, type_: str, target: str) -> Relation:
    return Relation(id=f"{source}>{type_}>{target}", source=source, target=target, type=type_)


SMALL = scene_of(
    [fact("api"), fact("maya"), fact("note", "Memory"), fact("run", "Run"), fact("redis"), fact("alone")],
    [
        line("api", "OWNED_BY", "maya"),
        line("api", "DEPENDS_ON", "redis"),
        line("note", "MENTIONS", "api"),
        line("run", "GENERATED", "note"),
        line("api", "AFFECTS", "gone"),
    ],
)


def star(graph: Graph, leaves: int, hub: str = "hub") -> Graph:
    with graph.batch():
        graph.add_object("Entity", {"label": hub}, id=hub)
        for n in range(leaves):
            graph.add_object("Memory" if n % 3 else "Evidence", {"label": f"{hub} leaf {n}"}, id=f"{hub}-{n:04}")
            graph.add_relation(f"{hub}-{n:04}", hub, "MENTIONS" if n % 2 else "RELATES_TO", id=f"{hub}-line-{n:04}")
    return graph


# what is drawn


def test_a_scene_has_everything_in_one_order():
    assert SMALL.ids == ("alone", "api", "maya", "note", "redis", "run")
    assert SMALL.kinds == ("Entity", "Entity", "Entity", "Memory", "Entity", "Run")
    assert SMALL.labels == ("ALONE", "API", "MAYA", "NOTE", "REDIS", "RUN")
    drawn = [(SMALL.ids[a], kind, SMALL.ids[b]) for kind, (a, b) in zip(SMALL.relation_types, SMALL.ends, strict=True)]
    assert drawn == [
        ("api", "DEPENDS_ON", "redis"),
        ("api", "OWNED_BY", "maya"),
        ("note", "MENTIONS", "api"),
        ("run", "GENERATED", "note"),
    ]
    assert (SMALL.ends.dtype, SMALL.positions.dtype, SMALL.sizes.dtype) == (np.int32, np.float32, np.float32)
    assert (SMALL.ends.shape, SMALL.positions.shape, SMALL.sizes.shape) == ((4, 2), (6, 3), (6,))
    assert SMALL.left_out == "Not drawn: 1 of 5 relations"
    assert repr(SMALL) == "<Scene: 6 objects, 4 relations>"


def test_what_comes_first_does_not_count():
    objects = [fact(key) for key in "dacb"]
    relations = [line("a", "AFFECTS", "b"), line("c", "AFFECTS", "d")]
    one, other = scene_of(objects, relations), scene_of(objects[::-1], relations[::-1])
    assert one.ids == other.ids
    assert np.array_equal(one.positions, other.positions)
    assert np.array_equal(one.ends, other.ends)


def test_two_processes_make_the_same_scene():
    assert told(PROCESS) == told(PROCESS)


def test_hubs_are_larger_and_the_machinery_is_smaller():
    sizes = dict(zip(SMALL.ids, SMALL.sizes.tolist(), strict=True))
    assert sizes["api"] > sizes["maya"] > sizes["alone"]
    assert sizes["run"] < sizes["redis"]


def test_an_empty_scene_is_a_scene():
    empty = scene_of([], [])
    assert (empty.ids, empty.left_out, empty.radius) == ((), "", 1.0)
    assert empty.ranked_labels("nothing", ["nobody"]) == ()
    assert empty.node_colors().shape == (0, 3)
    assert empty.edge_colors().shape == (0, 3)


def test_texts_are_one_line_and_steer_nothing():
    hard = "two\nlines\u2028and\x00\x1b[31m \u202eturned\u202c \u05e9\u05dc\u05d5\u05dd \U0001f525 <b>"
    scene = scene_of(
        [fact("a", label=hard, text=hard * 100), fact("b", label=" \n "), fact("c", label=None, text=7)], []
    )
    assert scene.labels == ("two lines and [31m turned \u05e9\u05dc\u05d5\u05dd \U0001f525 <b>", "b", "c")
    assert len(scene.texts[0]) == 300
    assert scene.texts[0].endswith("…")
    assert scene.texts[1:] == ("", "")


def test_the_camera_sees_all_from_the_radius():
    positions = SMALL.positions.astype(float)
    depth = 2.9 * SMALL.radius - positions[:, 2]
    slope = math.tan(math.radians(22.5))
    assert (np.abs(positions[:, 1]) / depth < slope).all()
    assert (np.abs(positions[:, 0]) / depth < 1.5 * slope).all()


def test_what_was_there_stays_where_it_was():
    more = scene_of([fact(key) for key in (*SMALL.ids, "new")], [line("new", "AFFECTS", "api")], near=SMALL)
    assert np.array_equal(more.positions[[more.index(key) for key in SMALL.ids]], SMALL.positions)
    other = scene_of([fact("x"), fact("y")], [], near=SMALL)
    assert np.array_equal(other.positions, scene_of([fact("x"), fact("y")], []).positions)


def test_ten_thousand_facts_make_a_scene():
    objects = [fact(f"o{n:05}") for n in range(10_000)]
    relations = [line(f"o{n:05}", "AFFECTS", f"o{n // 7:05}") for n in range(1, 10_000)]
    scene = scene_of(objects, relations)
    assert (len(scene.ids), len(scene.ends), scene.left_out) == (10_000, 9_999, "")
    assert np.isfinite(scene.positions).all()
    assert (scene.sizes > 0).all()


# looking things up


def test_neighbours_are_those_at_the_other_ends():
    loop = scene_of(
        [fact("a"), fact("b")], [line("a", "AFFECTS", "a"), line("b", "AFFECTS", "a"), line("a", "OWNED_BY", "b")]
    )
    assert [SMALL.ids[at] for at in SMALL.neighbours("api")] == ["maya", "note", "redis"]
    assert (SMALL.neighbours("alone"), SMALL.neighbours("gone"), SMALL.index("gone"), SMALL.index(None)) == (
        (),
        (),
        None,
        None,
    )
    assert loop.neighbours("a") == (1,)


def test_labels_go_to_the_selection_its_neighbours_the_hits_and_then_to_hubs():
    named = [SMALL.ids[at] for at in SMALL.ranked_labels("note", ["alone"])]
    assert named[:3] == ["note", "api", "run"]
    assert named[3] == "alone"
    assert set(named[4:]) == {"maya", "redis"}
    assert [SMALL.ids[at] for at in SMALL.ranked_labels(most=1)] == ["api"]
    assert SMALL.ranked_labels("gone", ["nobody"], 0) == ()


def test_what_is_hidden_or_not_lit_has_no_label():
    hidden = Light(hidden_kinds=frozenset({"Entity"}))
    assert {SMALL.ids[at] for at in SMALL.labelled(hidden)} == {"note", "run"}
    lit = Light(lit=frozenset({"maya", "redis", "api>OWNED_BY>maya"}))
    assert {SMALL.ids[at] for at in SMALL.labelled(lit)} == {"maya", "redis"}


def test_counts_are_those_of_what_is_drawn():
    assert SMALL.kind_counts() == {"Entity": 4, "Memory": 1, "Run": 1}
    assert list(SMALL.relation_counts().items()) == [
        ("DEPENDS_ON", 1),
        ("GENERATED", 1),
        ("MENTIONS", 1),
        ("OWNED_BY", 1),
    ]


# light


def test_without_light_everything_has_the_colour_of_its_kind():
    assert [tuple(row) for row in SMALL.node_colors().tolist()] == [to_rgb(KIND_COLORS[kind]) for kind in SMALL.kinds]
    expected = [to_rgb(RELATION_COLORS[name]) for name in SMALL.relation_types]
    assert [tuple(row) for row in SMALL.edge_colors().tolist()] == expected
    assert np.array_equal(SMALL.node_sizes(), SMALL.sizes)


def test_a_selection_greys_all_but_itself_and_its_neighbours():
    light = Light(selection="note")
    assert dict(zip(SMALL.ids, SMALL.lit(light).tolist(), strict=True)) == {
        "alone": False,
        "api": True,
        "maya": False,
        "note": True,
        "redis": False,
        "run": True,
    }
    assert SMALL.lit_edges(light).tolist() == [False, False, True, True]
    grey, own = np.array(to_rgb(GREY["light"])), np.array(to_rgb(KIND_COLORS["Entity"]))
    faded = SMALL.node_colors(light)[0].astype(int)
    assert np.abs(faded - grey).sum() < 0.4 * np.abs(own - grey).sum()
    assert SMALL.node_sizes(light)[3] > SMALL.sizes[3]


def test_a_selection_that_is_not_drawn_greys_nothing():
    assert SMALL.lit(Light(selection="elsewhere")).all()
    assert SMALL.lit_edges(Light(selection="elsewhere")).all()


def test_an_investigation_lights_its_own_relations_and_a_search_those_between_hits():
    lit = Light(lit=frozenset({"api", "maya", "redis", "api>OWNED_BY>maya"}))
    assert SMALL.lit_edges(lit).tolist() == [False, True, False, False]
    hits = Light(hits=frozenset({"api", "maya", "redis"}))
    assert SMALL.lit_edges(hits).tolist() == [True, True, False, False]


def test_changes_have_colours_of_their_own():
    light = Light(changes={"maya": "added", "note": "removed", "api": "changed", "api>OWNED_BY>maya": "added"})
    colors = dict(zip(SMALL.ids, map(tuple, SMALL.node_colors(light).tolist()), strict=True))
    assert colors["maya"] == to_rgb(CHANGE_COLORS["added"])
    assert colors["note"] == to_rgb(CHANGE_COLORS["removed"])
    assert colors["api"] == to_rgb(CHANGE_COLORS["changed"])
    assert tuple(SMALL.edge_colors(light)[1].tolist()) == to_rgb(CHANGE_COLORS["added"])
    assert SMALL.lit_edges(light).tolist() == [False, True, False, False]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_hidden_has_no_size_and_the_colour_of_the_paper(theme):
    light = Light(hidden_kinds=frozenset({"Memory"}), hidden_relations=frozenset({"OWNED_BY"}), theme=theme)
    assert SMALL.visible(light).tolist() == [True, True, True, False, True, True]
    assert SMALL.visible_edges(light).tolist() == [True, False, False, False]
    assert SMALL.node_sizes(light)[3] == 0
    assert tuple(SMALL.node_colors(light)[3].tolist()) == to_rgb(PAPER[theme])
    assert {tuple(row) for row in SMALL.edge_colors(light)[1:].tolist()} == {to_rgb(PAPER[theme])}
    assert SMALL.node_colors(light).dtype == np.uint8


# colours


@pytest.mark.parametrize("color", sorted({*KIND_COLORS.values(), *RELATION_COLORS.values(), *CHANGE_COLORS.values()}))
@pytest.mark.parametrize("paper", PAPER.values())
def test_every_colour_stands_out_from_either_paper(color, paper):
    assert contrast(color, paper) >= 3.0


def test_every_kind_and_relation_of_the_vocabulary_has_a_colour():
    assert set(KIND_COLORS) == set(KINDS)
    assert set(RELATION_COLORS) == set(RELATIONS)


def test_an_unknown_kind_has_a_colour_that_stays():
    assert color_of("Gateway", KIND_COLORS) == color_of("Gateway", KIND_COLORS)
    assert {color_of(f"Kind{n}", KIND_COLORS) for n in range(100)} <= {KIND_COLORS[kind] for kind in FACTS}


def lab(color: str, sight: object) -> np.ndarray:
    """A colour as CIELAB, D65, as a reader of this sight sees it."""
    shares = np.array(to_rgb(color)) / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    seen = np.clip(np.array(sight) @ linear, 0, 1)
    to_xyz = [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
    xyz = np.array(to_xyz) @ seen / np.array([0.95047, 1.0, 1.08883])
    x, y, z = np.where(xyz > (6 / 29) ** 3, np.cbrt(xyz), xyz * 841 / 108 + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("colors", [[KIND_COLORS[kind] for kind in FACTS], list(CHANGE_COLORS.values())])
def test_readers_of_any_sight_tell_facts_and_changes_apart(colors, sight):
    """A difference of 10 is far beyond the 2.3 that an eye just notices (Mahy, Van Eycken and Oosterlinck, 1994)."""
    seen = [lab(color, SIGHTS[sight]) for color in colors]
    assert min(float(np.linalg.norm(a - b)) for a, b in itertools.combinations(seen, 2)) >= 10


def test_contrast_is_that_of_the_guidelines():
    """#767676 is the lightest grey with 4.5 : 1 on white."""
    assert contrast("#767676", "#ffffff") >= 4.5 > contrast("#777777", "#ffffff")


# which part of a graph


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


# investigations and forks


def test_an_investigation_lights_its_evidence_and_paths(acme):
    inv = acme.session("Tuesday").investigate(QUESTION)
    light = light_of_investigation(inv, theme="dark")
    assert {"redis-change", "checkout-api", "maya-chen"} <= light.lit
    assert set(inv.evidence["id"]) <= light.lit
    assert {key for keys in inv.paths["relations"] for key in keys} <= light.lit
    assert inv.decision["id"] in light.lit
    scene = build_scene(acme.graph, include=light.lit)
    ids = np.array(scene.ids)
    assert not scene.lit(light)[ids == "agent.planner"].any()
    supports = [key for key, name in zip(scene.relation_ids, scene.relation_types, strict=True) if name == "SUPPORTS"]
    assert supports
    assert set(supports) <= light.lit
    assert light.theme == "dark"


def test_an_investigation_without_an_answer_lights_nothing(acme):
    assert light_of_investigation(acme.session("Tuesday").investigate(QUESTION, run=False)).lit == frozenset()


def test_a_fork_shows_what_it_added_changed_and_removed(acme):
    alt = acme.fork("not the TTL")
    alt.fact("new-cache", "New cache")
    alt.relate("new-cache", "AFFECTS", "checkout-api")
    alt.graph.patch_object("redis-change", {"text": "another"})
    alt.graph.remove_object("maya-chen")
    diff = acme.diff(alt)
    light = light_of_diff(diff)
    assert light.changes["new-cache"] == "added"
    assert light.changes["redis-change"] == "changed"
    assert light.changes["maya-chen"] == "removed"
    removed = removed_rows(diff)
    assert [row.id for row in removed[0]] == ["maya-chen"]
    owned = [row for row in removed[1] if row.type == "OWNED_BY"]
    assert [(row.source, row.target) for row in owned] == [("checkout-api", "maya-chen")]
    before = build_scene(acme.graph)
    scene = build_scene(alt.graph, near=before, also=removed)
    assert set(light.changes) <= {*scene.ids, *scene.relation_ids}
    assert scene.left_out == ""
    kept = [key for key in before.ids if scene.index(key) is not None]
    assert kept == list(before.ids)


def test_a_graph_view_of_acmeshop_has_room_for_all(ws):
    cm.demo.acmeshop(ws)
    scene = build_scene(ws.graph)
    assert scene.left_out == ""
    assert scene.index("checkout-api") is not None
