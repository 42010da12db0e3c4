"""Finder: a search box whose Enter acts like a click on the first hit."""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets as widgets

from contextmesh.core.display import counted
from contextmesh.investigation.words import cut, one_line
from contextmesh.widgets.buttons import pool
from contextmesh.widgets.closing import close_parts
from contextmesh.widgets.panel import bar
from contextmesh.widgets.status import StatusLine

HITS = 8
HIT_PX = 230
OVERTAKEN_S = 1.0  # a browser sends letters one by one, each when the last has been taken; Enter waits for none


class Finder(widgets.VBox):
    """Search while one types, list the hits as buttons, and select the first one on Enter.

    Args:
        search: called with the text; returns the hits, best first, each with `id`, `label` and `kind`.
        on_pick: called with the id of a hit when it is chosen.
        on_hits: called whenever there are other hits.
        status: where to say what goes wrong.
    """

    def __init__(
        self,
        search: Callable[[str], Sequence[Mapping[str, str]]],
        *,
        on_pick: Callable[[str], None],
        on_hits: Callable[[], None],
        status: StatusLine,
    ) -> None:
        self.search, self.on_pick, self.on_hits, self.status = search, on_pick, on_hits, status
        self.hits: tuple[str, ...] = ()
        self._entered_s = -OVERTAKEN_S
        self.text = widgets.Text(
            placeholder="a name, an id or some words; Enter selects the first hit",
            description="Search",
            style={"description_width": "initial"},
            layout=widgets.Layout(width="auto", min_width="200px", max_width="560px", flex="1 1 300px"),
        )
        self.text.observe(self._on_text, "value")
        self.text.on_msg(self._on_message)
        self.buttons = pool(HITS, self._on_hit)
        self._listed = bar()
        self._said = widgets.HTML()
        super().__init__([bar(self.text, self._said), self._listed])
        self.add_class("cm-finder")

    def __repr__(self) -> str:
        return f"<Finder: {counted(len(self.hits), 'hits')}>"

    def clear(self) -> None:
        """Empty the search box."""
        self.text.value = ""

    def _on_text(self, _change: Any) -> None:
        with self.status.catching("searching"):
            self._look(self.text.value)
            if time.monotonic() < self._entered_s + OVERTAKEN_S:
                self._pick_first()

    def _on_message(self, _widget: Any, content: Mapping[str, Any], _buffers: Any) -> None:
        """Select the first hit on Enter, and again where Enter has overtaken the last letters on their way here."""
        if content.get("event") == "submit":
            with self.status.catching("searching"):
                self._entered_s = time.monotonic()
                self._pick_first()

    def _pick_first(self) -> None:
        if self.hits:
            self.on_pick(self.hits[0])

    def _on_hit(self, at: int) -> None:
        with self.status.catching("selecting"):
            if at < len(self.hits):
                self.on_pick(self.hits[at])

    def _look(self, text: str) -> None:
        found = list(self.search(text))[:HITS] if text.strip() else []
        for hit, made in zip(found, self.buttons, strict=False):
            with made.hold_sync():
                made.description = cut(one_line(hit["label"], 200), HIT_PX, 13)
                made.tooltip = f"Select {one_line(hit['label'], 200)}, {hit['kind']}"
        self._listed.children = self.buttons[: len(found)]
        said = counted(len(found), "hits") if found else "nothing found" if text.strip() else ""
        first = "the first " if len(found) == HITS else ""
        self._said.value = f'<span class="cm-list-page" role="status">{first}{said}</span>'
        before, self.hits = self.hits, tuple(hit["id"] for hit in found)
        if self.hits != before:
            self.on_hits()

    def close(self) -> None:
        """Free all that it consists of."""
        if self.comm is not None:
            self._listed.children = self.buttons  # those that no hit needs now are parts of it, too
        close_parts(self)
        super().close()
