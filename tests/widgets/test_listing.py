"""The list of facts: what is on its pages, what its buttons do, and that no fact becomes markup."""

from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from typing import Any

import pytest

from contextmesh.errors import UsageError
from contextmesh.widgets import FactTable
from tests.widgets.reading import HOSTILE, is_literal, shown

ROWS = [
    {"id": "b", "label": "Billing", "kind": "Entity", "links": 2},
    {"id": "a", "label": "api gateway", "kind": "Memory", "links": 10},
    {"id": "c", "label": "Checkout", "kind": "Entity", "links": None},
]
MANY = [{"id": f"n{n}", "label": f"Service {n}", "kind": "Entity", "links": n} for n in range(1, 46)]


class Grid(HTMLParser):
    """A table as a screen reader goes through it: its elements with their attributes, and the texts in them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.caption = ""
        self.headers: list[dict[str, str | None]] = []
        self.lines: list[dict[str, str | None]] = []
        self.cells: list[list[str]] = []
        self._open = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        given = dict(attrs)
        if tag == "caption" or tag in ("th", "td"):
            self._open = tag if given.get("scope") != "col" else "head"
        if tag == "th" and given.get("scope") == "col":
            self.headers.append(given)
        if tag == "tr":
            self.lines.append(given)
            self.cells.append([])
        if tag in ("th", "td") and given.get("scope") != "col":
            self.cells[-1].append("")

    def handle_data(self, data: str) -> None:
        if self._open == "caption":
            self.caption += data
        elif self._open in ("th", "td"):
            self.cells[-1][-1] += data


@pytest.fixture
def picked() -> list[str]:
    return []


@pytest.fixture
def make(picked: list[str]) -> Iterator[Callable[..., FactTable]]:
    """Make tables, and close them after the test."""
    tables: list[FactTable] = []

    def make(rows: Any = ROWS, **settings: Any) -> FactTable:
        settings = {"columns": ["label", "kind", "links"], "title": "Facts", "on_pick": picked.append} | settings
        tables.append(FactTable(settings.pop("columns"), **settings))
        tables[-1].show(rows)
        return tables[-1]

    yield make
    for table in tables:
        table.close()


def grid(table: FactTable) -> Grid:
    return Grid(table._grid.value)


def labels(table: FactTable) -> list[str]:
    """The row headers of the page that is shown."""
    return [cells[0] for cells in grid(table).cells if cells]


def ids(table: FactTable) -> list[str]:
    return [row["id"] for row in table.rows]


def numbers(table: FactTable) -> list[str]:
    """What the buttons beside the rows say."""
    return [button.description for button in table._beside.children]


def test_a_table_that_a_screen_reader_can_read(make: Callable[..., FactTable]) -> None:
    page = grid(make())
    assert [(header["scope"], header["aria-sort"]) for header in page.headers] == [("col", "none")] * 3
    assert page.cells == [[], ["Billing", "Entity", "2"], ["api gateway", "Memory", "10"], ["Checkout", "Entity", ""]]
    assert page.caption == "Facts 3"


def test_each_row_has_a_button_that_picks_it(make: Callable[..., FactTable], picked: list[str]) -> None:
    table = make()
    assert numbers(table) == ["1", "2", "3"]
    assert [button.tooltip for button in table._beside.children] == [
        "Select Billing",
        "Select api gateway",
        "Select Checkout",
    ]
    table._buttons[1].click()
    assert picked == ["a"]


def test_the_selected_row_is_marked_and_named(make: Callable[..., FactTable]) -> None:
    table = make()
    table.selected = "a"
    page = grid(table)
    assert [line.get("aria-current") for line in page.lines] == [None, None, "true", None]
    assert page.cells[2][0] == "selected: api gateway"
    assert page.caption == "Facts 3; selected: api gateway"
    assert [button.button_style for button in table._beside.children] == ["", "primary", ""]
    table.selected = None
    assert [line.get("aria-current") for line in grid(table).lines] == [None] * 4


def test_pages(make: Callable[..., FactTable], picked: list[str]) -> None:
    table = make(MANY)
    assert (labels(table)[0], len(labels(table)), grid(table).caption) == ("Service 1", 20, "Facts 1 to 20 of 45")
    table.next.click()
    table.next.click()
    assert (labels(table), numbers(table)) == (
        [f"Service {n}" for n in range(41, 46)],
        [str(n) for n in range(41, 46)],
    )
    assert "Page 3 of 3" in table._page.value
    table._buttons[4].click()
    table._buttons[5].click()  # of a row that this page has not: a click that came late
    assert picked == ["n45"]
    table.next.click()  # after the last page comes the first
    assert labels(table)[0] == "Service 1"
    table.previous.click()
    assert labels(table)[0] == "Service 41"
    table.show(ROWS)
    assert table._foot.layout.display == "none"


def test_selecting_turns_to_the_row(make: Callable[..., FactTable]) -> None:
    table = make(MANY)
    table.selected = "n33"
    assert labels(table)[0] == "Service 21"
    table.show(MANY)
    assert labels(table)[0] == "Service 21"
    table.selected = "elsewhere"  # what is not listed turns no page
    assert (labels(table)[0], table.selected) == ("Service 21", "elsewhere")


def test_sorting(make: Callable[..., FactTable]) -> None:
    table = make()
    table.sorters["links"].click()
    assert (ids(table), grid(table).headers[2]["aria-sort"]) == (["b", "a", "c"], "ascending")  # 2, 10, nothing
    assert table.sorters["links"].description == "links ▲"
    table.sorters["links"].click()
    assert (ids(table), grid(table).headers[2]["aria-sort"]) == (["a", "b", "c"], "descending")
    table.sorters["label"].click()
    assert (ids(table), grid(table).caption) == (["a", "b", "c"], "Facts 3; by label, ascending")
    table.sorters["label"].click()
    table.sorters["label"].click()
    assert (ids(table), [header["aria-sort"] for header in grid(table).headers]) == (["b", "a", "c"], ["none"] * 3)


@pytest.mark.parametrize(("column", "direction"), [("size", "ascending"), ("label", "up")])
def test_a_wrong_order_is_refused(make: Callable[..., FactTable], column: str, direction: str) -> None:
    with pytest.raises(UsageError, match=r"expected one of label, kind, links and none, ascending, descending"):
        make().sort_by(column, direction)


def test_the_filter_wants_every_word(make: Callable[..., FactTable]) -> None:
    table = make()
    table.filter.value = "ENTITY check"
    assert (ids(table), grid(table).caption) == (["c"], "Facts 1; of 3 that the filter lets pass")
    table.filter.value = "nowhere"
    assert (ids(table), numbers(table), grid(table).caption) == ([], [], "Facts none; of 3 that the filter lets pass")
    table.filter.value = ""
    assert len(table.rows) == 3


def test_rows_are_plain_data_of_ones_own(make: Callable[..., FactTable]) -> None:
    table = make()
    assert table.rows == ROWS
    table.rows[0]["label"] = "changed"
    assert table.rows == ROWS


def test_what_goes_wrong_is_said(make: Callable[..., FactTable]) -> None:
    def fail(_key: str) -> None:
        raise UsageError("nobody picks this")

    table = make(on_pick=fail)
    table._buttons[0].click()
    assert table.status.text == "selecting failed: nobody picks this"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(make: Callable[..., FactTable], text: str) -> None:
    table = make([{"id": text, "label": text, "kind": text, "links": 1}], title=text)
    table.selected = text
    plain = " ".join(text.replace("\u202e", "").split())  # one line, and nothing turns the direction of what follows
    assert is_literal(shown(table), plain[:200])
    cut = plain if len(plain) <= 300 else f"{plain[:299]}…"
    assert grid(table).cells[1] == [f"selected: {cut}", cut, "1"]
    assert is_literal(table.to_html(), plain)


def test_a_cell_is_one_line_and_a_still_picture_has_more_of_it(make: Callable[..., FactTable]) -> None:
    table = make([{"id": "a", "label": "x" * 500, "kind": "one\ntwo", "links": [1204, "b"]}])
    [_, cells] = grid(table).cells
    assert (len(cells[0]), cells[1:]) == (300, ["one two", "1,204, b"])
    assert f'title="{"x" * 500}"' in shown(table)
    still = table.to_html()
    assert f"<summary><bdi>{'x' * 199}…</bdi></summary><bdi>{'x' * 500}</bdi></details>" in still
    assert "<td><bdi>one two</bdi>" in still.replace(' style="text-align: left"', "")


def test_a_still_picture_has_all_pages_up_to_a_bound(make: Callable[..., FactTable]) -> None:
    table = make([{"id": f"{n}", "label": f"Service {n}"} for n in range(310)])
    still = Grid(table.to_html())
    assert (len(still.cells) - 1, still.caption) == (300, "Facts 1 to 300 of 310")


@pytest.mark.parametrize("wrong", [0, 101, True, 2.0, "20", None])
def test_a_wrong_number_of_rows_is_refused(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"page_rows is .*; expected a whole number from 1 to 100"):
        FactTable(["label"], on_pick=print, title="Facts", page_rows=wrong)


def test_closing_frees_all_that_it_consists_of(left_open: Callable[[], set[str]]) -> None:
    table = FactTable(["label"], on_pick=print, title="Facts")
    table.show(ROWS)  # 17 of its buttons are on no page
    table.close()
    table.close()
    assert left_open() == set()
