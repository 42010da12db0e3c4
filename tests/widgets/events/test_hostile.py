"""No event's text becomes markup, and no colour fights with the notebook's."""

import json
from collections.abc import Callable

import pytest

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.widgets import EventTable
from tests.widgets.events.page import COLUMNS, Page

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></table></div><style>*{display:none}</style>",
    "&lt;b&gt; & \"quoted\" 'text'",
    "<!--",
    "\u202eright to left",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(memory: Graph, shown: Callable[..., EventTable], text: str) -> None:
    plain = set(Page(shown(memory).to_html()).tags) | {"thead", "tbody", "tr", "th", "td", "bdi"}
    memory.add_object("Entity", {"label": text}, id="api", actor=text)
    memory.emit(Event(type=text, payload={"text": text}))
    table = shown(memory)
    page = Page(table.to_html())
    assert page.tags == plain
    assert page.rows == [
        COLUMNS,
        [
            "2",
            "2026-01-01 00:00:01",
            text,
            "system",
            json.dumps({"text": text}, ensure_ascii=False, separators=(",", ":")),
        ],
        ["1", "2026-01-01 00:00:00", "object.created", text, f"Entity api: {text}"],
    ]


def test_hostile_errors_stay_text(memory: Graph, shown: Callable[..., EventTable]) -> None:
    table = shown(memory)
    table._trouble = HOSTILE[0]
    page = Page(table.to_html())
    assert page.texts["p"] == HOSTILE[0]
    assert "script" not in page.tags


def test_colours_are_the_notebooks_own(memory: Graph, shown: Callable[..., EventTable]) -> None:
    css = Page(shown(memory).to_html()).texts["style"]
    assert "color: var(--jp-content-font-color1, inherit)" in css
    assert "background: transparent" in css
