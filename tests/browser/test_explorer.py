"""The Explorer in a browser: one workspace, in 3D, as a list, and as questions with their answers."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.lab import SCREENSHOTS, Lab
from tests.browser.looks import faint_texts, overlapping_texts
from tests.browser.offline import exported, offline

MADE = """import contextmesh as cm
cm.drop("look", missing_ok=True)
ws = cm.open("look")
cm.demo.acmeshop(ws)
note = ws.session("Monday night").note("Checkout errors rose at 14:05, after Release 2.4")
inv = ws.session("Tuesday").investigate("Which earlier change might explain the checkout errors, who owns it?")
alt = ws.fork("not the TTL")
_ = alt.session("What if").note("The pool was exhausted instead")"""
OPEN = (MADE, "explorer = ws.explore(investigation=inv)\nexplorer")
LIVE = ".jp-OutputArea-output:has(.cm-live-panel)"
TABS = ("Graph", "Ask", "Evidence", "Notes", "History", "Runs")


def open_tab(lab: Lab, name: str) -> None:
    lab.page.locator(".lm-TabBar-tab", has_text=name).first.click()
    lab.wait_for_idle()


def test_every_tab_can_be_read_at_each_width_in_each_theme(lab: Lab, errors_of_an_empty_notebook: set[str]) -> None:
    lab.run_cells(OPEN)
    lab.wait_for_canvas()
    assert lab.canvas_pixels() > 0.01
    found = {}
    for tab in TABS:
        open_tab(lab, tab)
        for look in lab.looks():
            lab.screenshot(f"explorer-{tab.lower()}-{look}", ".jp-Notebook")
            found[tab, str(look), "overlaps"] = lab.overlapping_texts(LIVE)
            found[tab, str(look), "faint"] = lab.faint_texts(LIVE)
    assert {key: texts for key, texts in found.items() if texts} == {}
    assert set(lab.errors) <= errors_of_an_empty_notebook


def test_a_long_word_in_full_ends_inside_its_box(lab: Lab) -> None:
    long = "word = ws.session('Tuesday').note('checkout ' + 'pneumono' * 60)"
    lab.run_cells([MADE, f"{long}\nnotes = cm.widgets.MemoryPanel(ws)\nnotes"])
    lab.python("notes.state.selection = word.id")
    lab.wait_for_idle()
    for look in lab.looks():
        beyond = "box => box.getBoundingClientRect().right - box.parentElement.getBoundingClientRect().right"
        assert lab.page.locator("dl.cm-whole:visible").first.evaluate(beyond) <= 0, look


def test_without_webgl_an_investigation_is_completed_from_the_keyboard(lab_without_webgl: Lab) -> None:
    lab = lab_without_webgl
    lab.run_cells([MADE, "explorer = ws.explore(session='Tuesday')\nexplorer"])
    assert not lab.has_webgl()
    page = lab.page
    open_tab(lab, "Ask")
    page.locator(".cm-live-panel textarea:visible").first.focus()
    page.keyboard.type("Who owns the checkout, and what did we learn before?")
    page.keyboard.press("Tab")  # the session
    page.keyboard.press("Tab")  # Ask
    page.keyboard.press("Enter")
    page.get_by_text("is completed.").first.wait_for()
    assert "maya-chen" in lab.value("list(explorer.evidence['id'])")
    open_tab(lab, "Evidence")
    page.get_by_role("button", name="1", exact=True).locator("visible=true").first.focus()
    page.keyboard.press("Enter")
    lab.wait_for_idle()
    assert lab.value("explorer.selection") == lab.value("explorer.evidence['id'][0]")


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_what_is_left_of_it_shows_picture_and_answer_offline(
    lab: Lab, browser: Browser, tmp_path: Path, theme: str
) -> None:
    lab.run_cells(OPEN)
    lab.wait_for_canvas()
    with offline(browser, exported(lab.save(), tmp_path), theme=theme) as opened:
        still = opened.page.locator(".cm-still-panel")
        assert still.locator("svg[role=img]").is_visible()
        assert still.locator("svg[role=img] text", has_text="Checkout API").first.is_visible()
        assert still.locator(".cm-inv .cm-a", has_text="Maya Chen").is_visible()
        opened.page.screenshot(path=SCREENSHOTS / f"explorer-still-{theme}.png", full_page=True)
        assert overlapping_texts(opened.page, ".cm-still-panel svg") == []
        assert faint_texts(opened.page, ".cm-still-panel svg") == []
        assert opened.requests == []
