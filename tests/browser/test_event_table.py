"""The table of newest events in a browser: it follows the graph, shows texts literally, and leaves a still picture."""

from pathlib import Path

from playwright.sync_api import Browser

from tests.browser.lab import Lab
from tests.browser.looks import faint_texts, overlapping_texts
from tests.browser.offline import exported, offline

LIVE, STILL = ".cm-live-events .cm-events", ".cm-still-events .cm-events"
CELLS = (
    "import contextmesh as cm",
    "ws = cm.open('live')\ncm.demo.acmeshop(ws)\ntable = cm.widgets.EventTable(ws.graph, rows=8)\ntable",
)
HOSTILE = (
    "<img src=x onerror=\"document.title = 'taken over'\">",
    "<script>document.title = 'taken over'</script>",
    "pneumono" * 20,
    "👩🏽‍🚒 \u202eright to left\u202c עברית",
    "two\nlines",
)


def note(text: str) -> str:
    return f"_ = ws.session('Class').note({text!r})"


def test_it_follows_the_graph_and_shows_texts_literally(lab: Lab, errors_of_an_empty_notebook: set[str]) -> None:
    lab.run_cells(CELLS)
    table, title = lab.page.locator(LIVE), lab.page.title()
    before = table.inner_text()
    for text in HOSTILE:
        lab.python(note(text))
        shown = " ".join(text.split())[:60]
        table.get_by_text(shown).first.wait_for()  # no cell was run: the table did it by itself
    assert table.inner_text() != before
    assert table.locator("img, script").count() == 0
    assert lab.page.title() == title
    assert not lab.page.locator(STILL).is_visible()  # one table is enough
    assert set(lab.errors) <= errors_of_an_empty_notebook


def test_it_can_be_read_at_each_width_in_each_theme(lab: Lab) -> None:
    lab.run_cells(CELLS)
    for text in HOSTILE:
        lab.python(note(text))
    lab.page.locator(LIVE).get_by_text("two lines").first.wait_for()
    for look in lab.looks():
        lab.screenshot(f"event-table-{look}", ".jp-Notebook")
        assert lab.overlapping_texts(LIVE) == [], look
        assert lab.faint_texts(LIVE) == [], look


def test_what_is_left_of_it_can_be_read_without_a_kernel(lab: Lab, browser: Browser, tmp_path: Path) -> None:
    lab.run_cells(CELLS)
    lab.reopen()
    assert lab.page.locator(STILL).is_visible()
    assert lab.page.locator(f"{STILL} tbody tr").count() == 8
    with offline(browser, exported(lab.save(), tmp_path)) as opened:
        assert opened.page.locator(STILL).is_visible()
        assert opened.page.locator(f"{STILL} tbody tr").count() == 8
        assert overlapping_texts(opened.page, STILL) == []
        assert faint_texts(opened.page, STILL) == []
        assert opened.requests == []
