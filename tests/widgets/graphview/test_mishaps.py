"""What goes wrong is said, no text becomes markup, and a closed view leaves nothing open."""

from collections.abc import Callable

import pytest

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.widgets import GraphView, State
from tests.conftest import START
from tests.widgets.graphview.handling import press
from tests.widgets.reading import HOSTILE, is_literal, shown


def test_what_goes_wrong_is_said(chain: Graph, make: Callable[..., GraphView], monkeypatch: pytest.MonkeyPatch) -> None:
    view = make(chain)

    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(chain, "objects", fail)
    view.again.click()
    assert view.status.text == "refreshing failed: ConnectionError: gone"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(make: Callable[..., GraphView], text: str) -> None:
    graph = Graph(clock=TickingClock(START))
    graph.add_object("Entity", {"label": text, "text": text}, id="<script>", actor=text)
    view = make(graph)
    view.state.selection = "<script>"
    press(view, text.split(maxsplit=1)[0], enter=False)
    plain = " ".join(text.replace("\u202e", "").split())[:70]
    assert is_literal(shown(view), plain)
    assert is_literal(view.to_html(), plain)


def test_closing_frees_all_and_follows_no_longer(chain: Graph, left_open: Callable[[], set[str]]) -> None:
    state = State()
    view = GraphView(chain, state=state)
    press(view, "service 5")
    view.time.slider.value = 5
    view.close()
    view.close()
    state.selection, state.position = "a0", None
    assert left_open() == set()
