"""The graph through time: as it was, played, and before anything has happened."""

import asyncio
from collections.abc import Callable

import pytest

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.widgets import GraphView, timebar
from tests.conftest import START
from tests.widgets.graphview.handling import drawn, places, press
from tests.widgets.reading import Tags, shown


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
