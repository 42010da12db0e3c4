"""Light on a scene: selections, hits, changes and hidden kinds; investigations and forks."""

import numpy as np
import pytest

from contextmesh.investigation.palette import GREY, PAPER, to_rgb
from contextmesh.investigation.scene import (
    CHANGE_COLORS,
    KIND_COLORS,
    RELATION_COLORS,
    Light,
    build_scene,
    light_of_diff,
    light_of_investigation,
    removed_rows,
)
from tests.investigation.making import QUESTION
from tests.investigation.scene.making import SMALL

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
