"""The quickstart in a browser: it runs, it can be read, and what it showed is still there where no kernel is."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.lab import ROOT, THEMES, WIDTHS, Lab
from tests.browser.looks import faint_texts, overlapping_texts
from tests.browser.offline import exported, offline

QUICKSTART = ROOT / "notebooks" / "01_quickstart.ipynb"
OUTPUT = ".jp-Notebook .jp-OutputArea-output"
RESULT = ".cm-inv"
OWNER = "Recorded owner of Checkout API: Maya Chen."
TABLES_OF_THE_RESULT = 3  # evidence, paths and warnings at least; one that is empty is a line of text


def test_it_runs_without_a_console_error_and_asks_nobody_else(lab: Lab, errors_of_an_empty_notebook: set[str]) -> None:
    lab.open(QUICKSTART)
    lab.run_all()
    assert lab.page.locator(RESULT).get_by_text(OWNER).first.is_visible()
    assert set(lab.errors) <= errors_of_an_empty_notebook
    assert lab.requests_elsewhere == []


def test_it_can_be_read_at_each_width_in_each_theme(lab: Lab) -> None:
    lab.open(QUICKSTART)
    lab.run_all()
    backgrounds = {}
    for look in lab.looks(whole=True):
        lab.screenshot(f"quickstart-{look}")
        assert lab.overlapping_texts(OUTPUT) == [], look
        assert lab.faint_texts(OUTPUT) == [], look
        backgrounds[look.theme] = lab.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert backgrounds["light"] != backgrounds["dark"]


def test_the_saved_notebook_shows_its_tables_without_a_kernel(lab: Lab) -> None:
    lab.open(QUICKSTART)
    lab.run_all()
    lab.reopen()
    result = lab.page.locator(RESULT)
    assert result.get_by_text(OWNER).first.is_visible()
    assert result.locator("table").count() >= TABLES_OF_THE_RESULT


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_exported_page_shows_its_tables_and_makes_no_request(
    browser: Browser, tmp_path: Path, width: int, theme: str
) -> None:
    with offline(browser, exported(QUICKSTART, tmp_path), width=width, theme=theme) as opened:
        result = opened.page.locator(RESULT)
        assert result.get_by_text(OWNER).first.is_visible()
        assert result.locator("table").count() >= TABLES_OF_THE_RESULT
        assert overlapping_texts(opened.page, RESULT) == []
        assert faint_texts(opened.page, RESULT) == []
        assert opened.requests == []
        assert opened.errors == []


def test_a_usual_export_asks_for_no_more_than_that_of_an_empty_notebook(browser: Browser, tmp_path: Path) -> None:
    empty = tmp_path / "empty.ipynb"
    empty.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}', encoding="utf-8")
    asked = []
    for notebook in (empty, QUICKSTART):
        with offline(browser, exported(notebook, tmp_path, libraries=True)) as opened:
            asked.append(set(opened.requests))
    assert asked[1] <= asked[0]
