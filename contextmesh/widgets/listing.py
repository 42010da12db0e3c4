"""FactTable: facts as a table that can be read, sorted, filtered and chosen from with the keyboard alone."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any

import ipywidgets as widgets

from contextmesh.core.display import counted
from contextmesh.errors import UsageError
from contextmesh.investigation.words import cut, one_line
from contextmesh.widgets.buttons import buttons, pool
from contextmesh.widgets.closing import close_parts
from contextmesh.widgets.status import StatusLine

ROW_PX = 28  # height of a row, and so of the button beside it
MAX_PAGE_ROWS = 100
MAX_CELL, MAX_TITLE = 300, 2000  # characters of a cell, in one line, and of what pointing at it shows
MAX_STILL, FOLDED_STILL = 4000, 200  # of a cell in a still picture, and of what it shows before it is unfolded
STILL_ROWS = 300  # of a still picture; more would be a page that nobody reads
SORT_PX = 110  # of a sort button, at most
UNSORTED, UP, DOWN = "none", "ascending", "descending"  # the words of aria-sort
ARROWS = {UNSORTED: "", UP: " ▲", DOWN: " ▼"}
Row = dict[str, Any]

# The notebook's own colours, so that the table is readable in its light and its dark theme; elsewhere those around it.
STYLE = f"""<style>
.cm-list table {{width: 100%; table-layout: fixed; border-collapse: separate; border-spacing: 0; margin: 0;
  font-size: 13px; color: var(--jp-content-font-color1, inherit); background: transparent;}}
.cm-list caption, .cm-list th, .cm-list td {{box-sizing: border-box; height: {ROW_PX}px; line-height: {ROW_PX - 1}px;
  padding: 0 6px; text-align: left; white-space: nowrap; overflow: hidden; text-overflow: ellipsis;}}
.cm-list caption {{display: table-caption; caption-side: top; margin: 0; padding: 0 6px;
  color: var(--jp-content-font-color2, inherit); font-style: normal;}}
.cm-list caption > div {{width: 0; min-width: 100%; overflow: hidden; text-overflow: ellipsis;}}
.cm-list caption strong {{color: var(--jp-content-font-color1, inherit);}}
.cm-list th, .cm-list td {{border-bottom: 1px solid var(--jp-border-color2, rgba(128, 128, 128, 0.4));}}
.cm-list th {{font-weight: 600;}}
.cm-list tbody th {{font-weight: 500;}}
.cm-list tbody tr:hover > * {{background: var(--jp-layout-color2, rgba(128, 128, 128, 0.12));}}
.cm-list tbody tr.cm-chosen > * {{background: rgba(0, 114, 178, 0.2);}}
.cm-list tbody tr.cm-chosen > th {{font-weight: 700; box-shadow: inset 4px 0 0 #0072b2;}}
.cm-list-buttons button {{line-height: {ROW_PX - 6}px;}}
.cm-list-page {{line-height: {ROW_PX}px; color: var(--jp-content-font-color2, inherit);}}
.cm-unseen {{position: absolute; width: 1px; height: 1px; overflow: hidden; clip: rect(0, 0, 0, 0);}}
.cm-still-list table {{border-collapse: collapse; font-size: 13px; color: var(--jp-content-font-color1, inherit);}}
.cm-still-list caption {{caption-side: top; text-align: left; padding: 4px 0;}}
.cm-still-list summary {{cursor: pointer;}}
.cm-still-list th, .cm-still-list td {{text-align: left; vertical-align: top; padding: 3px 14px 3px 0;
  overflow-wrap: anywhere; border-bottom: 1px solid var(--jp-border-color2, rgba(128, 128, 128, 0.4));}}
</style>"""


class FactTable(widgets.VBox):
    """List facts in pages: a table that screen readers read as one, and beside each row a button that selects it.

    A cell is one line, cut where it is too long; pointing at it shows all of it, up to 2,000 characters. Rows keep the
    order in which they were given until a column is sorted by.

    Args:
        columns: the names of the columns, or the names and how wide each is in relation to the others. The first
            one names its row.
        on_pick: called with a row's `id` when its button is pressed.
        title: what is listed, such as `Facts`.
        page_rows: rows of a page, 1 to 100.
        status: where to say what goes wrong; a line below the table by default.

    Example:
        >>> table = FactTable(["label", "kind"], on_pick=print, title="Facts", page_rows=2)
        >>> table.show([{"id": "api", "label": "Checkout API", "kind": "Entity"}])
        >>> table
        <FactTable Facts: 1 of 1 row>
        >>> table.close()
    """

    def __init__(
        self,
        columns: Sequence[str] | Mapping[str, float],
        *,
        on_pick: Callable[[str], None],
        title: str,
        page_rows: int = 20,
        status: StatusLine | None = None,
    ) -> None:
        if type(page_rows) is not int or not 1 <= page_rows <= MAX_PAGE_ROWS:
            msg = f"page_rows is {page_rows!r}; expected a whole number from 1 to {MAX_PAGE_ROWS}"
            raise UsageError(msg)
        self.columns = dict(columns) if isinstance(columns, Mapping) else dict.fromkeys(columns, 1.0)
        self.title, self.on_pick, self.status = title, on_pick, status or StatusLine()
        self._all: list[Row] = []
        self._listed: list[Row] = []
        self._first, self._page_rows = 0, page_rows
        self._selected: str | None = None
        self._order = (next(iter(self.columns)), UNSORTED)
        self._make(status)
        self._list_again()

    def _make(self, status: StatusLine | None) -> None:
        small = {"width": "46px", "height": f"{ROW_PX - 4}px", "margin": "2px", "padding": "0", "flex": "0 0 auto"}
        self._buttons = pool(self._page_rows, self._press, **small)
        self.filter = widgets.Text(
            placeholder="words in a row",
            description="Filter",
            style={"description_width": "initial"},
            layout=widgets.Layout(width="auto", min_width="130px", flex="1 1 130px"),
        )
        self.filter.observe(self._on_filter, "value")
        low = {"height": f"{ROW_PX}px", "padding": "0 8px"}
        sorters = buttons(*((name, "", lambda _, name=name: self._on_sort(name)) for name in self.columns), **low)
        self.sorters = dict(zip(self.columns, sorters, strict=True))
        self._head = widgets.HBox(
            [self.filter, widgets.HTML('<span class="cm-list-page">Sort by</span>'), *self.sorters.values()],
            layout=widgets.Layout(flex_flow="row wrap", align_items="center"),
        )
        aligned = widgets.Layout(
            flex="0 0 auto", padding=f"{2 * ROW_PX}px 0 0", overflow="hidden"
        )  # caption and header
        self._beside = widgets.VBox(layout=aligned)
        self._beside.add_class("cm-list-buttons")
        self._grid = widgets.HTML(layout=widgets.Layout(flex="1 1 auto", min_width="0", margin="0"))
        self._body = widgets.HBox([self._beside, self._grid], layout=widgets.Layout(align_items="flex-start"))
        self.previous, self.next = buttons(
            ("Previous page", "Before the first page comes the last", lambda _: self._turn(-1)),
            ("Next page", "After the last page comes the first", lambda _: self._turn(1)),
            **low,
        )
        self._page = widgets.HTML()
        self._foot = widgets.HBox([self.previous, self.next, self._page], layout=widgets.Layout(flex_flow="row wrap"))
        super().__init__([self._head, self._body, self._foot, *([] if status else [self.status])])
        self.add_class("cm-list")

    def __repr__(self) -> str:
        return f"<FactTable {self.title}: {len(self._listed):,} of {counted(len(self._all), 'rows')}>"

    # what it lists

    @property
    def rows(self) -> list[Row]:
        """The rows as they are listed, on all pages: filtered, and in their order."""
        return [dict(row) for row in self._listed]

    def show(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """List other rows; filter, order and selection stay.

        Args:
            rows: each with its `id`, and a value for each column; a missing one is left empty.
        """
        self._all = [dict(row) for row in rows]
        self._list_again()

    @property
    def selected(self) -> str | None:
        """The id of the row that is marked as selected, or None; it need not be listed."""
        return self._selected

    @selected.setter
    def selected(self, row_id: str | None) -> None:
        if row_id != self._selected:
            self._selected = row_id
            self._turn_to_selected()
            self._present()

    def sort_by(self, column: str, direction: str = UP) -> None:
        """Order the rows by a column.

        Args:
            column: one of the columns.
            direction: `ascending`, `descending`, or `none` for the order in which they were given.
        """
        if column not in self.columns or direction not in ARROWS:
            msg = f"sort by {column!r} {direction!r}; expected one of {', '.join(self.columns)} and {', '.join(ARROWS)}"
            raise UsageError(msg)
        self._order = (column, direction)
        self._list_again()

    def _list_again(self) -> None:
        """Filter and order anew, and show the page that holds the selected row, else the first."""
        wanted = self.filter.value.casefold().split()
        found = [row for row in self._all if _holds(row, self.columns, wanted)]
        column, direction = self._order
        if direction != UNSORTED:
            empty = [row for row in found if row.get(column) in (None, "")]  # last, whatever the direction
            filled = [row for row in found if row.get(column) not in (None, "")]
            found = sorted(filled, key=lambda row: _rank(row[column]), reverse=direction == DOWN) + empty
        self._listed, self._first = found, 0
        self._turn_to_selected()
        self._present()

    def _turn_to_selected(self) -> None:
        places = (at for at, row in enumerate(self._listed) if row["id"] == self._selected)
        at = next(places, None) if self._selected is not None else None
        if at is not None:
            self._first = at - at % self._page_rows

    def _shown(self) -> list[Row]:
        return self._listed[self._first : self._first + self._page_rows]

    # what its controls do

    def _press(self, at: int) -> None:
        with self.status.catching("selecting"):
            shown = self._shown()
            if at < len(shown):
                self.on_pick(shown[at]["id"])

    def _on_filter(self, _change: Any) -> None:
        with self.status.catching("filtering"):
            self._list_again()

    def _on_sort(self, column: str) -> None:
        with self.status.catching("sorting"):
            cycle = [*ARROWS]
            known = self._order[1] if self._order[0] == column else UNSORTED
            self.sort_by(column, cycle[(cycle.index(known) + 1) % len(cycle)])

    def _turn(self, pages: int) -> None:
        """Turn some pages; after the last one comes the first, so that no button goes dead under the keyboard."""
        with self.status.catching("turning the page"):
            count = self._pages()
            self._first = (self._first // self._page_rows + pages) % count * self._page_rows
            self._present()

    def _pages(self) -> int:
        return max(1, -(-len(self._listed) // self._page_rows))

    # how it looks

    def _present(self) -> None:
        shown = self._shown()
        self._grid.value = STYLE + self._table(shown)
        for at, (row, button) in enumerate(zip(shown, self._buttons, strict=False), self._first + 1):
            with button.hold_sync():
                button.description = f"{at:,}"
                button.tooltip = f"Select {one_line(self._name(row), MAX_CELL)}"
                button.button_style = "primary" if row["id"] == self._selected else ""
        self._beside.children = self._buttons[: len(shown)]
        for name, button in self.sorters.items():
            direction = self._order[1] if name == self._order[0] else UNSORTED
            button.description = cut(name, SORT_PX, 13) + ARROWS[direction]
            button.tooltip = f"Sort by {name}: now {'as given' if direction == UNSORTED else direction}"
        pages = self._pages()
        self._page.value = f'<span class="cm-list-page">Page {self._first // self._page_rows + 1:,} of {pages:,}</span>'
        self._foot.layout.display = "" if pages > 1 else "none"

    def _name(self, row: Mapping[str, Any]) -> str:
        return _text(row.get(next(iter(self.columns)))) or _text(row["id"])

    def _caption(self, first: int, last: int) -> str:
        """Say what is listed, in a line."""
        total = len(self._listed)
        which = f"{first:,} to {last:,} of {total:,}" if last - first + 1 < total else f"{total:,}"
        parts = [which if total else "none"]
        if total < len(self._all):
            parts.append(f"of {len(self._all):,} that the filter lets pass")
        if self._order[1] != UNSORTED:
            parts.append(f"by {self._order[0]}, {self._order[1]}")
        chosen = next((row for row in self._all if row["id"] == self._selected), None)
        if chosen:
            parts.append(f"selected: {one_line(self._name(chosen), MAX_CELL)}")
        return "; ".join(parts)

    def _table(self, shown: Sequence[Row]) -> str:
        caption = self._caption(self._first + 1, self._first + len(shown))
        whole = sum(self.columns.values())
        widths = "".join(f'<col style="width: {100 * width / whole:.1f}%">' for width in self.columns.values())
        told = f'<strong>{escape(self.title)}</strong> <span role="status">{escape(caption)}</span>'
        return (
            f'<table><caption title="{escape(f"{self.title} {caption}")}"><div>{told}</div></caption>'
            f"<colgroup>{widths}</colgroup><thead><tr>{self._headers()}</tr></thead>"
            f"<tbody>{''.join(self._line(row) for row in shown)}</tbody></table>"
        )

    def _headers(self) -> str:
        cells = []
        for name in self.columns:
            direction = self._order[1] if name == self._order[0] else UNSORTED
            cells.append(f'<th scope="col" aria-sort="{direction}" title="{escape(name)}">{escape(name)}</th>')
        return "".join(cells)

    def _line(self, row: Row) -> str:
        chosen = row["id"] == self._selected
        first, *rest = ((_text(row.get(name))) for name in self.columns)
        named = '<span class="cm-unseen">selected: </span>' if chosen else ""
        cells = "".join(f'<td title="{_title(text)}">{_cell(text)}</td>' for text in rest)
        mark = ' class="cm-chosen" aria-current="true"' if chosen else ""
        return f'<tr{mark}><th scope="row" title="{_title(first)}">{named}{_cell(first)}</th>{cells}</tr>'

    def to_html(self) -> str:
        """Return the listed rows as an HTML fragment, every text escaped; it needs no kernel and no network."""
        rows = self._listed[:STILL_ROWS]
        head = "".join(f'<th scope="col" style="text-align: left">{escape(name)}</th>' for name in self.columns)
        body = "".join(self._still_line(row) for row in rows)
        caption = f"<strong>{escape(self.title)}</strong> {escape(self._caption(1, len(rows)))}"
        return (
            f'{STYLE}<div class="cm-still-list"><table><caption style="text-align: left">{caption}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
        )

    def _still_line(self, row: Row) -> str:
        first, *rest = (_still_cell(_text(row.get(name))) for name in self.columns)
        left = 'style="text-align: left"'
        cells = "".join(f"<td {left}>{cell}</td>" for cell in rest)
        return f'<tr><th scope="row" {left}>{first}</th>{cells}</tr>'

    def close(self) -> None:
        """Take the table off the screen and free all that it consists of; closing twice is fine."""
        if hasattr(self, "_buttons") and self.comm is not None:  # not if making it failed
            self._beside.children = self._buttons  # those that no row needs now are parts of it, too
            close_parts(self)
        super().close()


def _text(value: object) -> str:
    """Return a value as a cell shows it.

    Example:
        >>> _text(1204), _text(None), _text(["checkout-api", "maya-chen"]), _text(True)
        ('1,204', '', 'checkout-api, maya-chen', 'True')
    """
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(_text(part) for part in value)
    return f"{value:,}" if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


def _cell(text: str, most: int = MAX_CELL) -> str:
    return f"<bdi>{escape(one_line(text, most))}</bdi>"


def _still_cell(text: str) -> str:
    """Return a text for a still picture, which has room for more lines; a long one is folded up behind its start."""
    if len(text) <= FOLDED_STILL:
        return _cell(text)
    return f"<details><summary>{_cell(text, FOLDED_STILL)}</summary>{_cell(text, MAX_STILL)}</details>"


def _title(text: str) -> str:
    return escape(one_line(text, MAX_TITLE))


def _holds(row: Mapping[str, Any], columns: Iterable[str], wanted: Sequence[str]) -> bool:
    told = "\n".join(_text(row.get(name)) for name in columns).casefold()
    return all(word in told for word in wanted)


def _rank(value: Any) -> tuple[bool, float, str]:
    """Return what to order by: numbers by size, before texts by their letters."""
    is_number = isinstance(value, int | float)
    return not is_number, float(value) if is_number else 0.0, "" if is_number else _text(value).casefold()
