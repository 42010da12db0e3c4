"""The graph as a view: picture and list show and select the same, through time, branches and investigations."""

import asyncio
import os
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.errors import UsageError
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import GraphView, State, timebar
from tests.conftest import START
from tests.widgets.reading import HOSTILE, QUESTION, Tags, check_literal, shown


@pytest.fixture
def make() -> Iterator[Callable[..., GraphView]]:
    """Make views, and close them after the test."""
    views: list[GraphView] = []

    def make(source: Workspace | Graph, **settings: Any) -> GraphView:
        views.append(GraphView(source, **settings))
        return views[-1]

    yield make
    for view in views:
        view.close()


@pytest.fixture
def chain() -> Graph:
    """a0 - a1 - ... - a9 and b0 beside a0, in a log of an event each."""
    graph = Graph(clock=TickingClock(START))
    for n in range(10):
        graph.add_object("Entity", {"label": f"Service {n}"}, id=f"a{n}")
        if n:
            graph.add_relation(f"a{n - 1}", f"a{n}", "DEPENDS_ON", id=f"r{n}")
    graph.add_object("Memory", {"label": "A note"}, id="b0")
    graph.add_relation("b0", "a0", "MENTIONS", id="m")
    return graph


def drawn(view: GraphView) -> set[str]:
    return set(view.scene.ids)


def listed(view: GraphView) -> set[str]:
    return {row["id"] for row in view.table.rows}


def click(view: GraphView, object_id: str) -> None:
    """What a click on a node of the picture does."""
    view.canvas.picked(view.scene.ids.index(object_id))


def press(view: GraphView, text: str, *, enter: bool = True) -> None:
    """Type into the search box."""
    view.finder.text.value = text
    if enter:
        view.finder.text._handle_custom_msg({"event": "submit"}, [])


def places(view: GraphView) -> dict[str, list[float]]:
    return dict(zip(view.scene.ids, view.scene.positions.tolist(), strict=True))


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


# Filtering


def test_the_legend_hides_in_picture_and_list(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    view.legend.kinds["Memory"].value = False
    view.legend.relations["DEPENDS_ON"].value = False
    assert (view.light.hidden_kinds, view.light.hidden_relations) == ({"Memory"}, {"DEPENDS_ON"})
    assert listed(view) == drawn(view) - {"b0"}
    view.state.selection = "b0"
    assert view.status.text == "A note is not drawn: the legend hides the kind Memory"
    view.legend.kinds["Memory"].value = True
    assert listed(view) == drawn(view)


# Which part


def test_hops_around_the_selection(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    view.around.click()
    assert view.status.text == "Select a fact first: hops are counted from it"
    view.state.selection = "a5"
    view.around.click()
    assert drawn(view) == {"a4", "a5", "a6"}
    view.hops.value = 3
    assert drawn(view) == {f"a{n}" for n in range(2, 9)}
    view.hops.value = 0
    assert drawn(view) == {"a5"}
    assert "Not drawn: 10 of 11 facts" in Tags(shown(view)).text
    view.whole.click()
    assert len(drawn(view)) == 11


def test_a_center_from_the_beginning(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain, center="a0", hops=1)
    assert (view.selection, drawn(view)) == ("a0", {"a0", "a1", "b0"})


def test_neighbours_are_added(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain, center="a5", hops=0)
    view.expand.click()
    assert (drawn(view), view.status.text) == ({"a4", "a5", "a6"}, "2 added")
    kept = places(view)
    view.canvas.on_open("a6")  # a double-click
    assert drawn(view) == {"a4", "a5", "a6", "a7"}
    assert {key: places(view)[key] for key in kept} == kept
    view.canvas.on_open("a6")
    assert view.status.text == "All its neighbours are drawn"
    view.clear.click()
    view.expand.click()
    assert view.status.text == "Select a fact first: its neighbours are added"


def test_a_new_note_does_not_reshuffle_the_picture(acme: Workspace, make: Callable[..., GraphView]) -> None:
    view = make(acme)
    before = places(view)
    note = acme.session("Tuesday").note("The Checkout API is slow again")
    view.again.click()
    assert note.id in drawn(view) & listed(view)
    assert {key: places(view)[key] for key in before} == before


# Through time


def test_the_graph_as_it_was(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    now = places(view)
    assert (view.time.slider.max, view.time.slider.value) == (21, 21)
    view.time.slider.value = 5  # a0, a1, r1, a2, r2
    assert (view.state.position, drawn(view), view.light.changes) == (5, {"a0", "a1", "a2"}, {})
    assert places(view) == {key: now[key] for key in ("a0", "a1", "a2")}
    view.time.slider.value = 7
    assert view.light.changes == {"a3": "added", "r3": "added"}
    assert view.table.rows[0]["text"] == "added"
    assert "As it was at position 7 of 21, 2026-01-01 00:00 UTC: relation.created" in Tags(shown(view)).text
    view.time.slider.value = 6  # nothing is new on a way back
    assert (drawn(view), view.light.changes) == ({"a0", "a1", "a2", "a3"}, {})
    view.time.newest.click()
    assert (view.state.position, places(view), view.time.slider.value) == (None, now, 21)


def test_the_state_moves_the_slider_and_a_wrong_position_is_told(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    view.state.position = 1
    assert (view.time.slider.value, drawn(view)) == (1, {"a0"})
    view.state.position = 99
    assert view.status.text == (
        "following the position failed: position is 99; expected a whole number from 0 to 21, where the log ends"
    )
    assert drawn(view) == {"a0"}


def test_what_is_selected_may_not_be_there_yet(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    view.state.selection = "a9"
    view.time.slider.value = 5
    assert "It is not there" in Tags(shown(view.details)).text
    press(view, "service 9", enter=False)
    assert view.finder.hits == ()
    press(view, "service 1")
    assert view.selection == "a1"
    assert [button.description for button in view.details._connected.children] == [
        "DEPENDS_ON → Service 2",
        "DEPENDS_ON ← Service 0",
    ]
    view.state.selection = "a8"
    assert view.status.text == "a8 is not drawn: it is not there at this position"


def test_what_was_removed_is_there_again_in_the_past(chain: Graph, make: Callable[..., GraphView]) -> None:
    chain.remove_object("b0")
    view = make(chain)
    assert "b0" not in drawn(view)
    view.time.slider.value = 21
    assert "b0" in drawn(view)


def test_playing(make: Callable[..., GraphView], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timebar, "STEP_S", 0)
    graph = Graph(clock=TickingClock(START))
    for n in range(5):
        graph.add_object("Entity", id=f"a{n}")
    view, seen = make(graph), []
    view.state.observe(lambda change: seen.append(change.new), "position")

    async def play(until: int | None) -> None:
        moved = asyncio.Event()
        view.state.observe(lambda change: change.new == until and moved.set(), "position")
        view.time.play.click()
        assert (view.time.is_playing, view.time.play.description) == (True, "Pause")
        await moved.wait()

    async def twice() -> None:
        await play(until=2)
        view.time.play.click()
        assert not view.time.is_playing
        await play(until=None)

    asyncio.run(twice())
    assert seen == [0, 1, 2, 3, 4, None]  # from the first event to a pause, and on to the newest
    assert (view.time.is_playing, view.time.play.description, view.status.text) == (False, "Play", "")


def test_closing_while_playing_ends_it(chain: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timebar, "STEP_S", 0)
    view = GraphView(chain)

    async def play() -> None:
        view.time.play.click()
        await asyncio.sleep(0.01)
        view.close()
        reached = view.state.position
        await asyncio.sleep(0.01)
        assert view.state.position == reached

    asyncio.run(play())
    assert (view.time.is_playing, view.status.text) == (False, "")


def test_the_slider_gets_its_end_before_its_value(chain: Graph, make: Callable[..., GraphView]) -> None:
    view, sent = make(chain), []
    view.time.slider.send_state = lambda key=None: sent.append(key)  # else a browser cuts the value to the old range
    chain.add_object("Memory", id="new")
    view.again.click()
    assert sent == ["max", "value"]


def test_nothing_has_happened_yet(make: Callable[..., GraphView]) -> None:
    view = make(Graph(clock=TickingClock(START)))
    for button in (view.time.newest, view.fit, view.nearer, view.clear, view.whole, view.again):
        button.click()
    view.time.step()
    assert (view.state.position, view.status.text) == (None, "")
    assert "Nothing has happened yet" in shown(view)


# Investigations and branches


def test_an_investigation_is_lit_up(acme: Workspace, make: Callable[..., GraphView]) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION)
    view = make(acme, investigation=inv)
    evidence = set(inv.evidence["id"])
    assert view.state.investigation == inv.run_id
    assert evidence <= view.light.lit & drawn(view)
    assert {row["id"] for row in view.table.rows[: len(evidence)]} <= view.light.lit
    view.state.investigation = None
    assert view.light.lit == frozenset()
    small = make(acme, state=State(investigation=inv.run_id), most=40)
    assert evidence <= small.light.lit & drawn(small)


def test_a_branch_and_what_differs_there(acme: Workspace, make: Callable[..., GraphView]) -> None:
    branch = acme.fork("what if")
    branch.fact("redis-cluster", "Redis cluster")
    branch.fact("badge-gateway", "Badge gateway")
    branch.graph.remove_object("inc-104")
    branch.graph.patch_object("maya-chen", {"tier": 1})
    view = make(acme)
    view.state.branch = "what-if"
    changes = {key: view.light.changes.get(key) for key in ("redis-cluster", "inc-104", "maya-chen", "checkout-api")}
    assert changes == {"redis-cluster": "added", "inc-104": "removed", "maya-chen": "changed", "checkout-api": None}
    assert {"redis-cluster", "inc-104"} <= drawn(view)
    assert Tags(view.legend._changes.value).text == "Changes+ added~ changed− removed"
    assert view.time.slider.max == len(branch.graph.events)
    view.state.branch = "main"
    assert (view.light.changes, "redis-cluster" in drawn(view)) == ({}, False)
    direct = make(branch, diff=acme.diff(branch))
    assert direct.light.changes["inc-104"] == "removed"


def test_a_branch_that_the_state_names_from_the_beginning(acme: Workspace, make: Callable[..., GraphView]) -> None:
    alt = acme.fork("alt")
    note = alt.session("What if").note("The pool was exhausted instead")
    view = make(acme, state=State(branch="alt"))
    assert note.id in drawn(view)
    assert view.light.changes[note.id] == "added"
    assert view.time.slider.max == len(alt.graph.events)


def test_a_look_into_the_past_is_not_called_now(acme: Workspace, make: Callable[..., GraphView]) -> None:
    view = make(acme.at(position=10))
    assert "Read-only, at position 10, " in shown(view)
    assert "Now" not in shown(view)


def test_an_investigation_that_is_not_there_lights_nothing_up(acme: Workspace, make: Callable[..., GraphView]) -> None:
    inv = acme.session("Tuesday").investigate("Which change might explain the checkout errors?")
    view = make(acme, investigation=inv)
    view.state.investigation = "Run#99"
    assert "no run 'Run#99'" in view.status.text
    assert not view.light.lit


def test_a_graph_has_neither(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    view.state.investigation = "Run#1"
    assert view.status.text.startswith("following the investigation failed: a graph has no investigation 'Run#1'")
    view.state.branch = "what-if"
    assert view.status.text.startswith("following the branch failed: a graph has no branch 'what-if'")


def test_what_goes_wrong_is_said(chain: Graph, make: Callable[..., GraphView], monkeypatch: pytest.MonkeyPatch) -> None:
    view = make(chain)

    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(chain, "objects", fail)
    view.again.click()
    assert view.status.text == "refreshing failed: ConnectionError: gone"


# Without a kernel


def test_a_still_picture_of_what_is_shown(
    acme: Workspace, make: Callable[..., GraphView], displayed: list[dict[str, str]]
) -> None:
    view = make(acme)
    view.state.position = 20
    view._ipython_display_()
    live, still = displayed
    assert "application/vnd.jupyter.widget-view+json" in live
    page = Tags(still["text/html"])
    assert {"svg", "table", "figcaption"} <= page.tags
    assert "as of position 20" in page.text
    assert all(label in page.text for label in view.scene.labels)


def test_saving(acme: Workspace, make: Callable[..., GraphView], tmp_path: Path) -> None:
    view = make(acme)
    path = view.save(tmp_path / "graph.svg")
    root = ET.fromstring(path.read_text("utf-8"))  # noqa: S314 - our own
    assert (root.tag, root.get("role")) == ("{http://www.w3.org/2000/svg}svg", "img")
    page = view.save(f"{tmp_path}/Graph.HTML").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert {"svg", "table"} <= Tags(page).tags
    view.save(path)  # an existing file is replaced
    assert sorted(found.name for found in tmp_path.iterdir()) == ["Graph.HTML", "graph.svg"]


@pytest.mark.parametrize("name", ["graph.png", "graph", "svg"])
def test_other_endings_are_refused(chain: Graph, make: Callable[..., GraphView], tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"expected \.svg or \.html, such as 'graph\.svg'"):
        make(chain).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_none_is_refused(chain: Graph, make: Callable[..., GraphView], tmp_path: Path) -> None:
    (tmp_path / "folder.svg").mkdir()
    for path in (tmp_path / "nowhere" / "graph.svg", tmp_path / "folder.svg"):
        with pytest.raises(UsageError, match="expected a file's name in a folder that does"):
            make(chain).save(path)


@pytest.mark.parametrize("name", ["\0.svg", f"{'x' * 300}.svg"])
def test_a_name_that_no_file_can_have_is_refused(
    chain: Graph, make: Callable[..., GraphView], tmp_path: Path, name: str
) -> None:
    with pytest.raises(UsageError, match="cannot be a file's name"):
        make(chain).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_not_replaced_by_a_file(chain: Graph, make: Callable[..., GraphView], tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "graph.svg"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with pytest.raises(UsageError, match="a device or a pipe"):
        make(chain).save(link)
    assert pipe.is_fifo()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(make: Callable[..., GraphView], text: str) -> None:
    graph = Graph(clock=TickingClock(START))
    graph.add_object("Entity", {"label": text, "text": text}, id="<script>", actor=text)
    view = make(graph)
    view.state.selection = "<script>"
    press(view, text.split(maxsplit=1)[0], enter=False)
    plain = " ".join(text.replace("\u202e", "").split())[:70]
    check_literal(shown(view), plain)
    check_literal(view.to_html(), plain)


def test_closing_frees_all_and_follows_no_longer(chain: Graph, left_open: Callable[[], set[str]]) -> None:
    state = State()
    view = GraphView(chain, state=state)
    press(view, "service 5")
    view.time.slider.value = 5
    view.close()
    view.close()
    state.selection, state.position = "a0", None
    assert left_open() == set()
