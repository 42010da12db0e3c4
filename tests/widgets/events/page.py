"""What a browser would make of an event table, and the events that the tests put into it."""

from html.parser import HTMLParser
from typing import Any

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.widgets import EventTable

PATIENCE_S = 20.0
COLUMNS = ["position", "time (UTC)", "type", "actor", "about"]


class Page(HTMLParser):
    """What a browser would make of a page: its tags, its table and its other texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self._open = tag
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self._open in ("bdi", "th"):
            self.rows[-1][-1] += data
        else:
            self.texts[self._open] = self.texts.get(self._open, "") + data


def rows(table: EventTable) -> list[list[str]]:
    """The table that the widget shows, without its header."""
    page = Page(table._page.value)
    assert page.rows[:1] in ([], [COLUMNS]), page.rows[:1]
    return page.rows[1:]


def caption(table: EventTable) -> str:
    return Page(table._page.value).texts["caption"]


def note(table: EventTable) -> str:
    return Page(table._page.value).texts.get("p", "")


def settled(graph: Graph) -> bool:
    """Wait for the graph's sinks, and tell whether they have seen all of its events."""
    return graph.flush_sinks(PATIENCE_S)


def taken(text: str) -> Event:
    return Event(type="note.taken", payload={"text": text}, actor="maya")
