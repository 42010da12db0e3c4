"""What tests in a browser may use: `lab`, a page on a real JupyterLab with a real kernel and a real FalkorDB.

Playwright keeps an event loop running in the thread that started it, which would be in the way of tests that need one
of their own. So it is stopped after the last test of this folder, which is what makes the folder a package.
"""

import re
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Playwright, sync_playwright

from tests.browser import chromium as browsers
from tests.browser.lab import HEIGHT, WIDTHS, Lab, launched
from tests.browser.server import LabServer, lab_server

SIZE: Any = {"width": WIDTHS[0], "height": HEIGHT}
HAS_FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember whether a test failed, so that its page can be looked at."""
    report = yield
    item.stash[HAS_FAILED] = item.stash.get(HAS_FAILED, False) or report.failed
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say once why tests were skipped, and how to have them run."""
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if browsers.HOW in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} browser tests skipped: {browsers.HOW}", yellow=True)


@pytest.fixture(scope="package")
def chromium() -> str:
    """The browser's path; without one the test is skipped, or fails where a browser is required."""
    path = browsers.find()
    if path is None:
        (pytest.fail if browsers.REQUIRED else pytest.skip)(browsers.HOW)
    return path


@pytest.fixture(scope="package")
def server_of_notebooks(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabServer]:
    """A JupyterLab, its folder of notebooks and its data folder; nobody's own settings or workspaces."""
    with lab_server(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture(scope="package")
def playwright(chromium: str) -> Iterator[Playwright]:
    """Playwright, started once it is known that there is a browser to drive."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="package")
def browser(chromium: str, playwright: Playwright) -> Iterator[Browser]:
    """A headless browser that draws WebGL in software."""
    with launched(playwright, chromium) as browser:
        yield browser


@pytest.fixture(scope="package")
def page_on_lab(server_of_notebooks: LabServer, browser: Browser) -> Iterator[Lab]:
    """The page that all tests share: to load JupyterLab takes longer than most of them."""
    with browser.new_context(viewport=SIZE) as context:
        yield Lab(server_of_notebooks, context)


@pytest.fixture
def lab(page_on_lab: Lab, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A page on JupyterLab with no notebook open and nothing recorded yet; of a test that fails a picture is kept."""
    yield page_on_lab
    has_failed = request.node.stash.get(HAS_FAILED, False)
    if has_failed:
        page_on_lab.screenshot(f"failed-{re.sub(r'[^a-zA-Z0-9]+', '-', request.node.name)}")
    page_on_lab.close(reload=has_failed)


@pytest.fixture
def lab_without_webgl(server_of_notebooks: LabServer, chromium: str, playwright: Playwright) -> Iterator[Lab]:
    """The same in a browser that has no WebGL, and with a page of its own."""
    with launched(playwright, chromium, webgl=False) as browser, browser.new_context(viewport=SIZE) as context:
        lab = Lab(server_of_notebooks, context)
        yield lab
        lab.close()


@pytest.fixture(scope="package")
def found_in_an_empty_notebook() -> list[set[str]]:
    """What `errors_of_an_empty_notebook` found, once it was asked."""
    return []


@pytest.fixture
def errors_of_an_empty_notebook(page_on_lab: Lab, found_in_an_empty_notebook: list[set[str]]) -> set[str]:
    """The console errors of a notebook whose one cell shows nothing: they are JupyterLab's own."""
    if not found_in_an_empty_notebook:
        page_on_lab.run_cells(["pass"])
        found_in_an_empty_notebook.append(set(page_on_lab.errors))
        page_on_lab.close()
    return found_in_an_empty_notebook[0]
