"""Selecting and searching: picture, list and legend show and select the same."""

from collections.abc import Callable

import numpy as np
import pytest

from contextmesh.core.graph import Graph
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import GraphView, State
from tests.widgets.graphview.handling import click, drawn, listed, places, press
from tests.widgets.reading import Tags, shown

# Selecting


def test_picture_list_and_legend_show_the_same(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    assert drawn(view) == listed(view) == {*(f"a{n}" for n in range(10)), "b0"}
    assert view.canvas.scene is view.scene
    assert [box.description for box in view.legend.kinds.values()] == ["Entity 10", "Memory 1"]
    assert [box.description for box in view.legend.relations.values()] == ["DEPENDS_ON 9", "MENTIONS 1"]
    assert repr(view) == "<GraphView: 11 objects, 10 relations>"
    assert "no size is a relevance score" in Tags(shown(view)).text
    row = next(row for row in view.table.rows if row["id"] == "a1")
    assert row == {"id": "a1", "label": "Service 1", "kind": "Entity", "text": "", "relations": 2}


def test_a_click_selects_and_leaves_the_picture_where_it_is(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    eye = view.canvas.eye
    click(view, "a5")
    assert view.selection == view.table.selected == view.light.selection == view.details.selection == "a5"
    assert view.canvas.eye == eye
    assert "DEPENDS_ON → Service 6" in [button.description for button in view.details._connected.children]


def test_the_list_selects_and_flies_there(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    view.table.on_pick("a5")
    at = view.scene.positions[view.scene.ids.index("a5")]
    assert (view.selection, np.allclose(view.canvas.eye.target, at, atol=1e-4)) == ("a5", True)
    view.fit.click()
    assert view.canvas.eye.target == (0.0, 0.0, 0.0)
    view.nearer.click()
    near = view.canvas.eye.distance
    view.further.click()
    assert view.canvas.eye.distance == pytest.approx(1.5 * near)


def test_clearing(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    press(view, "service 5")
    assert (view.selection, view.light.hits) == ("a5", frozenset({"a5"}))
    view.clear.click()
    assert (view.selection, view.light.hits, view.table.selected) == (None, frozenset(), None)


def test_views_of_one_state_follow_each_other_and_others_do_not(chain: Graph, make: Callable[..., GraphView]) -> None:
    state = State()
    one, two, other = make(chain, state=state), make(chain, state=state), make(chain)
    click(one, "a5")
    assert (two.selection, two.table.selected, other.selection) == ("a5", "a5", None)


# Searching


def test_searching_lists_hits_and_enter_selects_the_first(acme: Workspace, make: Callable[..., GraphView]) -> None:
    view = make(acme)
    press(view, "checkout", enter=False)
    assert view.selection is None
    assert {"checkout-api", "checkout-errors"} <= set(view.finder.hits) == set(view.light.hits)
    press(view, "session ttl")
    assert view.selection == "session-ttl"
    press(view, "release")
    view.finder.buttons[0].click()
    assert view.selection == view.finder.hits[0]
    press(view, "zzz")
    assert (view.finder.hits, "nothing found" in view.finder._said.value) == ((), True)
    press(view, "maya-chen")  # an id is found, too
    assert view.selection == "maya-chen"


def test_what_is_found_and_not_drawn_is_drawn_then(acme: Workspace, make: Callable[..., GraphView]) -> None:
    view = make(acme, most=3)
    [hidden] = {"maya-chen"} - drawn(view)
    assert "Not drawn: " in Tags(shown(view)).text
    before = places(view)
    press(view, "maya chen")
    assert view.selection == hidden
    assert drawn(view) == {*before, hidden}
    assert {key: places(view)[key] for key in before} == before
