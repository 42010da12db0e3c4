"""What a browser would make of a panel: its tags, its text; and texts that would do harm if they became markup."""

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import ipywidgets as widgets

import contextmesh as cm
from contextmesh.investigation.workspace import Workspace

QUESTION = "Which earlier change might explain this, who owns the system, what did we learn before?"
HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></table></div><style>*{display:none}</style>",
    "&lt;b&gt; & \"quoted\" 'text'",
    "<!-- ",
    "W" * 400,
    "🔥 \u202eright to left שלום",
    "one line\nand another",
)


class Tags(HTMLParser):
    """The tags that a browser would find in a page, and the text that it would show, style sheets left out."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self._is_style = False
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self._is_style = tag == "style"

    def handle_endtag(self, tag: str) -> None:
        self._is_style = False

    def handle_data(self, data: str) -> None:
        self.text += "" if self._is_style else data


def elsewhere(ws: Workspace, act: Callable[[Workspace], object]) -> None:
    """Do something with a workspace as another process would."""
    with cm.open(ws.name, data_dir=ws._server._folder.path) as other:
        act(other)


def shown(panel: widgets.Widget) -> str:
    """Return all HTML that a panel shows live."""
    own = panel.value if isinstance(panel, widgets.HTML) else ""
    return own + "".join(shown(child) for child in getattr(panel, "children", ()))


def is_literal(html: str, text: str) -> bool:
    """Tell whether a text became no markup: none of its tags are there, and it can be read."""
    page = Tags(html)
    return not page.tags & {"script", "img", "u"} and text in page.text
