"""What a scene draws: everything, in one order, and what can be looked up in it."""

import math

import numpy as np

from contextmesh.investigation.scene import Light, scene_of
from tests.investigation.making import told
from tests.investigation.scene.making import SMALL, fact, line

PROCESS = """
import json
from contextmesh.core.model import Object, Relation
from contextmesh.investigation.scene import scene_of
objects = [Object(id=f"o{n}", type="Entity", data={"label": f"Fact {n}"}) for n in range(60)]
relations = [Relation(id=f"r{n}", source=f"o{n}", target=f"o{n // 2}", type="AFFECTS") for n in range(1, 60)]
scene = scene_of(objects, relations)
print(json.dumps([scene.ids, scene.positions.tolist(), scene.sizes.tolist(), scene.ranked_labels()]))
"""


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
