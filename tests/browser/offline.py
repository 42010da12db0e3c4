"""Pages without a network and without a kernel: what somebody sees to whom a file was sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from nbconvert import HTMLExporter
from playwright.sync_api import Browser, Page

from tests.browser.lab import HEIGHT, WIDTHS

# nbconvert's page fetches these for formulas and diagrams in notebooks; nothing is asked for where they are empty.
LIBRARIES = ("require_js_url", "mathjax_url", "mermaid_js_url", "mermaid_layout_elk_js_url", "jquery_url")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offline:
    """A page opened from a file; `requests` are all URLs that it asked for, its own left out."""

    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@contextmanager
def offline(browser: Browser, path: Path, *, width: int = WIDTHS[0], theme: str = "light") -> Iterator[Offline]:
    """Open a file in a browser that has no network, for a reader who prefers a light or a dark page."""
    scheme = "dark" if theme == "dark" else "light"
    with browser.new_context(viewport={"width": width, "height": HEIGHT}, offline=True, color_scheme=scheme) as context:
        opened = Offline(page=context.new_page())
        own = path.resolve().as_uri()
        carried = (own, "data:", "blob:")
        opened.page.on("request", lambda asked: asked.url.startswith(carried) or opened.requests.append(asked.url))
        opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
        opened.page.goto(own)
        yield opened


def exported(notebook: Path, folder: Path, *, libraries: bool = False) -> Path:
    """Export a notebook as `jupyter nbconvert --to html` does, and return the page's path.

    Args:
        notebook: the saved notebook.
        folder: where to put the page.
        libraries: whether the page links to the libraries on the web that nbconvert gives every page.
    """
    exporter = HTMLExporter() if libraries else HTMLExporter(**dict.fromkeys(LIBRARIES, ""))
    html, _ = exporter.from_filename(str(notebook))
    page = folder / f"{notebook.stem}.html"
    page.write_text(html, encoding="utf-8")
    return page
