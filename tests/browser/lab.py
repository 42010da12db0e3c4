"""Drive notebooks in JupyterLab as a reader would, and see what the reader sees.

A `Lab` is one browser page on one notebook at a time. What is asked of JupyterLab goes through its own commands, as
its menus do; what a view is asked goes through mouse and keyboard (`lab.page` is Playwright's page).
"""

import json
import re
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from PIL import Image
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page, Playwright, Request, WebSocket

from tests.browser import looks as checks
from tests.browser.server import LabServer

ROOT = Path(__file__).parents[2]
SCREENSHOTS = ROOT / "screenshots"
WIDTHS = (1280, 900)
HEIGHT = 900
BELOW_NOTEBOOK = 60  # the status line, and a little air
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
PATIENCE_S = 60.0
CELL_S = 120.0
NOTICEABLE = 8  # of 255: a pixel that differs less from the background is background
MOST_CANVASES = 6  # browsers keep 8 to 16 WebGL contexts, and a closed view's is not freed at once
CANVAS = ".jp-Notebook .jp-OutputArea canvas"
QUIET = ("--no-sandbox", "--disable-quic", "--disable-background-networking", "--disable-component-update")
QUIET += ("--disable-sync",)
WITH_WEBGL = ("--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
WITHOUT_WEBGL = ("--disable-gpu", "--disable-3d-apis")
ANSI = re.compile(r"\x1b\[[0-9;]*m")

OPENED = """path => {
  const panel = window.jupyterapp?.shell.currentWidget;
  return panel?.context?.path === path && panel.context.isReady && panel.sessionContext.isReady
    && panel.sessionContext.session?.kernel?.connectionStatus === 'connected'
    && panel.sessionContext.session.kernel.status === 'idle';
}"""
OPEN = "async path => { await window.jupyterapp.commands.execute('docmanager:open', {path}); }"
CLOSE = """() => {
  for (const panel of [...window.jupyterapp.shell.widgets('main')]) {
    if (panel.context?.model) panel.context.model.dirty = false;  // else it would ask whether to save
    panel.close();
  }
}"""
START = """command => {
  window.contextmeshRun = {done: false, error: null};
  window.jupyterapp.commands.execute(command)
    .catch(error => { window.contextmeshRun.error = String(error); })
    .finally(() => { window.contextmeshRun.done = true; });
}"""
# A kernel may handle messages of views beside cells, in another thread: each is done when its own idle came.
WATCH = """() => {
  const unanswered = window.contextmeshUnanswered = new Set();
  window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.anyMessage.connect((_, {msg, direction}) => {
    if (direction === 'send' && msg.channel === 'shell') unanswered.add(msg.header.msg_id);
    if (msg.header.msg_type === 'status' && msg.content.execution_state === 'idle')
      unanswered.delete(msg.parent_header.msg_id);
  });
}"""
IDLE = """() => window.contextmeshUnanswered.size === 0
  && window.jupyterapp.shell.currentWidget.sessionContext.session.kernel.status === 'idle'"""
DONE = "() => window.contextmeshRun.done"
RENDERED = "() => !document.querySelector('.jp-Notebook').textContent.includes('Loading widget')"
END_OF_NOTEBOOK = """() => {
  document.querySelector('.jp-WindowedPanel-outer').scrollTop = 0;
  return Math.ceil([...document.querySelectorAll('.jp-Notebook .jp-Cell')].at(-1).getBoundingClientRect().bottom);
}"""
PAINTED = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
OUTPUTS = """() => {
  const cells = [...window.jupyterapp.shell.currentWidget.content.widgets].filter(cell => cell.model.type === 'code');
  return cells.map(cell => cell.model.outputs.toJSON());
}"""
EXECUTE = """async ([code, seconds]) => {
  const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
  const future = kernel.requestExecute({code, silent: false, store_history: false, stop_on_error: false});
  const answer = {text: '', error: null};
  future.onIOPub = ({header, content}) => {
    if (header.msg_type === 'stream' && content.name === 'stdout') answer.text += content.text;
    if (header.msg_type === 'error') answer.error = content.traceback.join('\\n');
  };
  const late = new Promise((_, fail) => setTimeout(() => fail(new Error(`no answer in ${seconds} s`)), 1000 * seconds));
  await Promise.race([future.done, late]);
  return answer;
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One of the ways in which a page is looked at."""

    width: int
    theme: str

    def __str__(self) -> str:
        return f"{self.width}-{self.theme}"


@contextmanager
def launched(playwright: Playwright, chromium: str, *, webgl: bool = True) -> Iterator[Browser]:
    """Start a headless browser: with WebGL drawn in software, or with none at all."""
    words = [*QUIET, *(WITH_WEBGL if webgl else WITHOUT_WEBGL)]
    browser = playwright.chromium.launch(executable_path=chromium, headless=True, args=words)
    try:
        yield browser
    finally:
        browser.close()


class Lab:
    """A browser page on JupyterLab.

    Attributes:
        page: Playwright's page, for mouse, keyboard and locators.
        console: every console line as (type, text), "pageerror" for an exception that nobody caught.
        requests: URL of every request, data and blob URLs left out.
        received: size in bytes of every message from a kernel.
    """

    def __init__(self, server: LabServer, context: BrowserContext) -> None:
        self.server = server
        self.page: Page = context.new_page()
        self.page.set_default_timeout(1000 * PATIENCE_S)
        self.console: list[tuple[str, str]] = []
        self.requests: list[str] = []
        self.received: list[int] = []
        self.notebook: Path | None = None
        self._is_loaded = False
        self._canvases = 0
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.console.append(("pageerror", str(error))))
        self.page.on("request", self._on_request)
        self.page.on("websocket", self._on_websocket)

    def _on_console(self, message: ConsoleMessage) -> None:
        self.console.append((message.type, message.text))

    def _on_request(self, request: Request) -> None:
        if not request.url.startswith(("data:", "blob:")):
            self.requests.append(request.url)

    def _on_websocket(self, socket: WebSocket) -> None:
        if "/channels" in socket.url:
            socket.on("framereceived", lambda frame: self.received.append(len(frame)))

    def close(self, *, reload: bool = False) -> None:
        """Close the notebook and shut its kernel down; the page stays, unless it is to be loaded anew."""
        if self._is_loaded:
            self._canvases += self.page.locator(CANVAS).count()
            self.page.evaluate(CLOSE)
        if reload or self._canvases > MOST_CANVASES:
            self.page.goto("about:blank")
            self._is_loaded, self._canvases = False, 0
        self.server.stop_kernels()
        for record in (self.console, self.requests, self.received):
            record.clear()

    # --- Notebooks

    def open(self, path: Path) -> None:
        """Open a copy of a notebook, and wait until its kernel is ready."""
        copy = self.server.root / f"{path.stem}-{uuid.uuid4().hex[:8]}.ipynb"
        shutil.copy(path, copy)
        self._open(copy)

    def reopen(self) -> None:
        """Save and close the notebook and its kernel, and open it again with a new one."""
        notebook = self.save()
        self.page.evaluate(CLOSE)
        self.server.stop_kernels()
        self._open(notebook)
        self.page.wait_for_function(RENDERED)

    def _open(self, notebook: Path) -> None:
        self.notebook = notebook
        if self._is_loaded:
            self.page.evaluate(OPEN, notebook.name)
        else:
            self._load(notebook)
        self.page.wait_for_function(OPENED, arg=notebook.name)
        self.page.evaluate(WATCH)
        self.page.evaluate("() => window.jupyterapp.shell.collapseLeft()")
        self.use_theme("light")
        self.resize(WIDTHS[0])

    def _load(self, notebook: Path) -> None:
        where = f"{self.server.url}/lab/workspaces/w{uuid.uuid4().hex[:8]}/tree/{notebook.name}"
        self.page.goto(f"{where}?token={self.server.token}&reset", wait_until="domcontentloaded")
        self._is_loaded = True

    def new(self, sources: Sequence[str] = ("",)) -> None:
        """Open a fresh notebook with these code cells, none of them run."""
        book = nbformat.v4.new_notebook()
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        book.cells = [nbformat.v4.new_code_cell(source) for source in sources]
        path = self.server.root / f"cells-{uuid.uuid4().hex[:8]}.ipynb"
        nbformat.write(book, path)
        self._open(path)

    def run_cells(self, sources: Sequence[str], *, seconds: float = CELL_S) -> None:
        """Open a fresh notebook with these code cells and run them all; an error in a cell is one here."""
        self.new(sources)
        self.run_all(seconds=seconds)

    def run_all(self, *, seconds: float = CELL_S) -> None:
        """Run all cells, and wait until the kernel is idle; an error in a cell is one here."""
        self._run("notebook:run-all-cells", seconds)

    def run_cell(self, number: int, *, seconds: float = CELL_S) -> None:
        """Run one cell, counted from 0 with the Markdown ones; an error in it is one here."""
        self._select(number)
        self._run("notebook:run-cell", seconds)

    def start_cell(self, number: int) -> None:
        """Start one cell and wait for nothing."""
        self._select(number)
        self.page.evaluate(START, "notebook:run-cell")

    def _select(self, number: int) -> None:
        select = "number => { window.jupyterapp.shell.currentWidget.content.activeCellIndex = number; }"
        self.page.evaluate(select, number)

    def _run(self, command: str, seconds: float) -> None:
        self.page.evaluate(START, command)
        self.page.wait_for_function(DONE, timeout=1000 * seconds)
        self.wait_for_idle(seconds=seconds)
        failure = self.page.evaluate("() => window.contextmeshRun.error")
        errors = [output for cell in self.outputs() for output in cell if output["output_type"] == "error"]
        assert failure is None, failure
        assert not errors, ANSI.sub("", "\n".join(errors[0]["traceback"]))

    def wait_for_idle(self, *, seconds: float = CELL_S) -> None:
        """Wait until the kernel has handled what the page sent, and the page has painted what came of it."""
        for _ in range(2):  # what is painted may send something again
            self.page.evaluate(PAINTED)
            self.page.wait_for_function(IDLE, timeout=1000 * seconds)
        self.page.evaluate(PAINTED)

    def outputs(self) -> list[list[dict[str, Any]]]:
        """Return the outputs of each code cell, as a notebook file holds them."""
        return self.page.evaluate(OUTPUTS)

    def python(self, source: str, *, seconds: float = CELL_S) -> str:
        """Run Python in the notebook's kernel, not in a cell of it, and return what it printed."""
        answer = self.page.evaluate(EXECUTE, [source, seconds])
        assert answer["error"] is None, ANSI.sub("", answer["error"])
        return answer["text"]

    def value(self, expression: str) -> Any:
        """Return the value of a Python expression in the notebook's kernel, by way of JSON."""
        return json.loads(self.python(f"import json as _json; print(_json.dumps({expression}))"))

    def save(self) -> Path:
        """Save the notebook, as Ctrl+S does, and return its path."""
        assert self.notebook is not None
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        return self.notebook

    # --- What went on

    @property
    def errors(self) -> list[str]:
        """The console's errors and uncaught exceptions, without what differs from page to page."""
        return [without_ids(text) for kind, text in self.console if kind in ("error", "pageerror")]

    @property
    def requests_elsewhere(self) -> list[str]:
        """The requests that went to anybody but the JupyterLab under test."""
        return [url for url in self.requests if not url.startswith(self.server.url)]

    # --- How it looks

    def resize(self, width: int, height: int = HEIGHT) -> None:
        """Give the page a size, and wait until it is painted."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate(PAINTED)

    def use_theme(self, theme: str) -> None:
        """Choose JupyterLab's theme, "light" or "dark", as its settings menu does."""
        change = "theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})"
        self.page.evaluate(change, THEMES[theme])
        shown = "light => document.body.dataset.jpThemeLight === light"
        self.page.wait_for_function(shown, arg=str(theme == "light").lower())
        self.page.evaluate(PAINTED)

    def looks(self, *, whole: bool = False) -> Iterator[Look]:
        """Show the page at each width and in each theme, one after the other; at the end as it was at first.

        With `whole` the page is as high as its notebook, so that a picture shows all of it.
        """
        for theme in THEMES:
            self.use_theme(theme)
            for width in WIDTHS:
                self.resize(width)
                if whole:
                    self._show_whole(width)
                yield Look(width=width, theme=theme)
        self.use_theme("light")
        self.resize(WIDTHS[0])

    def _show_whole(self, width: int) -> None:
        """Make the page as high as its notebook; cells have their true heights only once they come into sight."""
        height = 0
        while (end := self.page.evaluate(END_OF_NOTEBOOK)) + BELOW_NOTEBOOK != height:
            height = end + BELOW_NOTEBOOK
            self.resize(width, height)

    def screenshot(self, name: str, selector: str | None = None) -> Path:
        """Save a picture of the page, or of one part of it, as `screenshots/NAME.png`."""
        SCREENSHOTS.mkdir(exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        (self.page.locator(selector).first if selector else self.page).screenshot(path=path)
        return path

    def overlapping_texts(self, selector: str) -> list[str]:
        """Return a line for each text that overlaps another one or is cut off; see `looks.overlapping_texts`."""
        return checks.overlapping_texts(self.page, selector)

    def faint_texts(self, selector: str, *, least: float = checks.LEAST_CONTRAST) -> list[str]:
        """Return a line for each text that stands out too little; see `looks.faint_texts`."""
        return checks.faint_texts(self.page, selector, least=least)

    # --- The canvas

    def canvas(self, number: int = 0) -> Locator:
        """Return a WebGL canvas of the notebook, counted from its top."""
        return self.page.locator(CANVAS).nth(number)

    def wait_for_canvas(self, number: int = 0) -> None:
        """Wait until something is drawn on a canvas."""
        self.canvas(number).wait_for()
        end = time.monotonic() + PATIENCE_S
        while not self.canvas_pixels(number):
            assert time.monotonic() < end, "the canvas stays blank"

    def canvas_image(self, number: int = 0) -> np.ndarray:
        """Return a canvas as it is painted now, uint8 (height, width, 3), a pixel for each CSS pixel."""
        canvas = self.canvas(number)
        canvas.scroll_into_view_if_needed()
        self.page.evaluate(PAINTED)
        return pixels(canvas.screenshot())

    def canvas_pixels(self, number: int = 0) -> float:
        """Return the fraction of a canvas's pixels that differ from its background, its commonest colour."""
        return painted(self.canvas_image(number))

    def click_canvas(self, x: float, y: float, *, number: int = 0, clicks: int = 1) -> None:
        """Click into a canvas, in CSS pixels from its top left corner, and wait for what Python makes of it."""
        self.canvas(number).click(position={"x": x, "y": y}, click_count=clicks)
        self.wait_for_idle()

    def has_webgl(self) -> bool:
        """Whether this browser can draw in 3D."""
        return self.page.evaluate("() => document.createElement('canvas').getContext('webgl') !== null")


def without_ids(text: str) -> str:
    """Return a console line without the ids, addresses and places in files that differ from page to page."""
    text = re.sub(r"https?://[^\s)]+", "URL", text)
    return re.sub(r"\b[0-9a-f]{8,}(?:-[0-9a-f]{4,})*\b", "ID", text)


def pixels(png: bytes) -> np.ndarray:
    """Return a PNG's pixels, uint8 (height, width, 3)."""
    return np.asarray(Image.open(BytesIO(png)).convert("RGB"))


def painted(image: np.ndarray) -> float:
    """Return the fraction of an image's pixels that differ from its commonest colour."""
    packed = image.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], np.uint32)  # rows of three take 30 times as long
    colors, counts = np.unique(packed, return_counts=True)
    background = image[packed == colors[counts.argmax()]][0].astype(int)
    return float((np.abs(image.astype(int) - background).max(axis=2) > NOTICEABLE).mean())
