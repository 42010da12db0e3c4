"""A line below a view that says what it did, or why it could not: what a callback raises would vanish otherwise."""

from collections.abc import Iterator
from contextlib import contextmanager
from html import escape

import ipywidgets as widgets

from contextmesh.errors import ContextMeshError

STYLE = """<style>
.cm-status {margin: 0; padding: 2px 0; line-height: 1.4; overflow-wrap: anywhere; unicode-bidi: plaintext;
  color: var(--jp-content-font-color2, inherit);}
.cm-status.cm-failed {
  color: color-mix(in srgb, var(--jp-error-color1, #c62828) 85%, var(--jp-content-font-color1, #000));}
</style>"""


class StatusLine(widgets.HTML):
    """One line of text, which screen readers announce when it changes; every text is escaped.

    Example:
        >>> status = StatusLine()
        >>> with status.catching("search"):
        ...     raise ValueError("<b>")
        >>> status
        <StatusLine: search failed: ValueError: <b>>
    """

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self._said = 0  # how often; the same text may be said again

    def __repr__(self) -> str:
        return f"<StatusLine: {self.text}>"

    def say(self, text: str, *, failed: bool = False) -> None:
        """Show a text in place of the last one; nothing for an empty text."""
        self.text = text
        self._said += 1
        kind = "cm-status cm-failed" if failed else "cm-status"
        self.value = f'{STYLE}<p class="{kind}" role="status">{escape(text)}</p>' if text else ""

    @contextmanager
    def catching(self, what: str) -> Iterator[None]:
        """Show what goes wrong inside, as `what failed: ...`; where nothing does, the last failure goes away.

        Errors of this package speak for themselves, others are shown with their type's name.
        """
        said_before = self._said
        try:
            yield
        except Exception as error:  # noqa: BLE001 - a widget's callback has nobody else who would see it
            name = "" if isinstance(error, ContextMeshError) else f"{type(error).__name__}: "
            self.say(f"{what} failed: {name}{error}", failed=True)
        else:
            if self._said == said_before:
                self.say("")
