"""TablePanel: a panel whose body is a table, with the selected row in full below it."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any

import ipywidgets as widgets

from contextmesh.widgets.listing import FactTable
from contextmesh.widgets.panel import Panel, bar, button
from contextmesh.widgets.state import State

WHOLE_STYLE = """<style>
dl.cm-whole.cm-whole {display: grid; grid-template-columns: minmax(4em, auto) minmax(0, 1fr); gap: 2px 12px;
  box-sizing: border-box; width: auto; max-width: 100%;
  margin: 6px 0; padding: 8px 12px; max-height: 260px; overflow: auto; font-size: 13px; line-height: 1.45;
  border-left: 4px solid #0072b2; color: var(--jp-content-font-color1, inherit);
  background: var(--jp-layout-color2, rgba(128, 128, 128, .12));}
dl.cm-whole > dt, dl.cm-whole > dd {float: none; width: auto; margin: 0; padding: 0; font-weight: normal;}
dl.cm-whole > dt {font-weight: 600;}
dl.cm-whole > dd {white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: plaintext;}
</style>"""
PAGE_ROWS = 10
MAX_WHOLE = 20_000  # characters of a text in full; a browser shows more of them badly, and nobody reads them there


class TablePanel(Panel):
    """A panel whose body is a table; below it stands the selected row in full.

    A row's `id` is its own; it tells of the object that its `object` names, or else its `id`.

    Args:
        columns: as `FactTable` takes them.
        title: what is listed.
        state: what it shares with other views; picking a row selects its object.
        page_rows: rows of a page.
    """

    def __init__(
        self, columns: Mapping[str, float], *, title: str, state: State | None = None, page_rows: int = PAGE_ROWS
    ) -> None:
        super().__init__(state)
        self.table = FactTable(columns, on_pick=self._pick, title=title, page_rows=page_rows, status=self.status)
        self._whole = widgets.HTML()
        self._rows: dict[str, Mapping[str, Any]] = {}
        self._picked: str | None = None
        self._again = button("Refresh", "Read it again: other processes may have added to it", self._on_refresh)
        self._beside = bar(self._again)
        self._heading.layout.flex = "1 1 200px"
        self._above = widgets.HBox([self._heading, self._beside], layout=widgets.Layout(align_items="flex-start"))
        self.children = [self._above, self.table, self._whole, self.status]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as plain data, in the order in which they are listed."""
        return self.table.rows

    def _list(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows = {row["id"]: row for row in rows}
        self.table.show(self._rows.values())
        self._select(self.state.selection)

    def _pick(self, row_id: str) -> None:
        self._picked = row_id
        self.state.selection = _object_of(self._rows[row_id])
        self._select(self.state.selection)  # the state tells of no change where another row tells of the same object

    def _select(self, object_id: str | None) -> None:
        rows = [row for row in self._rows.values() if _object_of(row) == object_id]
        row = next((row for row in rows if row["id"] == self._picked), rows[0] if rows else None)
        self.table.selected = row["id"] if row else None
        self._whole.value = self._in_full(row) if row else ""

    def _in_full(self, row: Mapping[str, Any]) -> str:
        """Return a row as HTML with every text whole."""
        return in_full({name: row.get(name) for name in self.table.columns} | {"id": _object_of(row)})

    def _on_refresh(self, _button: Any) -> None:
        with self.status.catching("refresh"):
            self.refresh()

    def close(self) -> None:  # noqa: D102
        if hasattr(self, "table"):
            self.table.close()
        super().close()

    def to_html(self) -> str:  # noqa: D102
        return f"{self._heading.value}{self.table.to_html()}"


def _object_of(row: Mapping[str, Any]) -> str:
    return str(row.get("object", row["id"]))


def in_full(values: Mapping[str, Any]) -> str:
    """Return names and values as HTML, every text whole up to 20,000 characters and literal, its line breaks kept."""
    told = {name: _bounded(_text(value)) for name, value in values.items()}
    lines = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in told.items() if text)
    return f'{WHOLE_STYLE}<dl class="cm-whole">{lines}</dl>'


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else f"{value:,}" if type(value) is int else str(value)


def _bounded(text: str) -> str:
    return text if len(text) <= MAX_WHOLE else f"{text[:MAX_WHOLE]} … ({len(text):,} characters; the graph has all)"
