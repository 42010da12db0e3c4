"""Panel: what the panels have in common. A shared State, a status line, and a still picture beside the live view."""

from collections.abc import Sequence
from contextlib import suppress
from html import escape
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from contextmesh.widgets.closing import close_parts
from contextmesh.widgets.state import State
from contextmesh.widgets.status import StatusLine

# What is left beside a live panel is for readers without a kernel; while the live one shows, it need not.
STILL_STYLE = """<style>
.jp-OutputArea-child:has(.cm-live-panel) + .jp-OutputArea-child .cm-still-panel {display: none;}
</style>"""
STYLE = """<style>
.cm-head {margin: 0; padding: 2px 0 4px; line-height: 1.4; overflow-wrap: anywhere; unicode-bidi: plaintext;
  color: var(--jp-content-font-color1, inherit);}
.cm-head h3 {margin: 0; font-size: 15px; font-weight: 600; unicode-bidi: plaintext;
  color: var(--jp-content-font-color1, inherit);}
.cm-live-panel.cm-live-panel button:focus-visible, .cm-live-panel summary:focus-visible {
  outline: 2px solid var(--jp-content-font-color1, currentColor); outline-offset: -2px;}
.cm-live-panel summary:focus-visible {outline-offset: 1px;}
.cm-busy button, button.cm-busy {opacity: 0.55; cursor: progress; pointer-events: none;}
.cm-live-panel textarea::placeholder {color: var(--jp-content-font-color2, inherit); opacity: 1;}
.cm-head p {margin: 0; font-size: 13px; color: var(--jp-content-font-color2, inherit); unicode-bidi: plaintext;}
</style>"""

TITLE = "margin: 0; font-size: 15px; font-weight: 600"  # in the tag: a notebook that is not trusted has no style sheets


class Panel(widgets.VBox):
    """A view with a heading, a body and a status line, which follows a State and leaves a still picture of itself.

    Args:
        state: what it shares with other views; by default a State of its own.
    """

    def __init__(self, state: State | None = None) -> None:
        self.state = State() if state is None else state
        self.status = StatusLine()
        self._heading = widgets.HTML()
        super().__init__()
        self.add_class("cm-live-panel")
        self.state.observe(self._on_selection, "selection")
        self.state.join(self._on_refusal)

    @property
    def selection(self) -> str | None:
        """Id of the selected object, or None."""
        return self.state.selection

    def refresh(self) -> None:
        """Read everything again and show it."""
        raise NotImplementedError

    def to_html(self) -> str:
        """Return the panel as an HTML fragment, every text escaped; it needs no kernel and no network."""
        raise NotImplementedError

    def _on_refusal(self, why: str) -> None:
        self.status.say(f"following the position failed: {why}", failed=True)

    def _on_selection(self, _change: Any) -> None:
        with self.status.catching("select"):
            self._select(self.state.selection)

    def follow(self) -> None:
        """Show what this process has just saved; where that fails, the status line says so."""
        with self.status.catching("refresh"):
            self.refresh()

    def _select(self, _object_id: str | None) -> None:
        """Show what is selected; a panel without a table has nothing to show of it."""

    def _pick(self, object_id: str) -> None:
        self.state.selection = object_id

    def _head(self, title: str, *lines: str) -> str:
        """Return the heading as HTML, and show it."""
        told = "".join(f'<p style="margin: 0">{escape(line)}</p>' for line in lines if line)
        self._heading.value = f'{STYLE}<div class="cm-head"><h3 style="{TITLE}">{escape(title)}</h3>{told}</div>'
        return str(self._heading.value)

    def close(self) -> None:
        """Take the panel off the screen and free what it holds in the browser; closing twice is fine."""
        if hasattr(self, "state"):  # not if making it failed, and ipywidgets closes what is left
            with suppress(ValueError):  # it was closed before
                self.state.unobserve(self._on_selection, "selection")
            self.state.leave(self._on_refusal)
            close_parts(self)
            close_parts(self._heading)  # which not every view shows
            self._heading.close()
        super().close()

    def _ipython_display_(self, **_: Any) -> None:
        """Show the live panel, and leave a still one beside it."""
        if self.comm is not None:
            display(self._repr_mimebundle_(), raw=True)
        still = f'{STILL_STYLE}<div class="cm-still-panel">{self.to_html()}</div>'
        display({"text/plain": repr(self), "text/html": still}, raw=True)


def bar(*buttons: widgets.Widget) -> widgets.HBox:
    """Return controls side by side, on several lines where there is no room."""
    return widgets.HBox(
        list(buttons), layout=widgets.Layout(flex_flow="row wrap", align_items="center", grid_gap="4px")
    )


def button(label: str, tooltip: str, on_click: Any, style: str = "") -> widgets.Button:
    """Return a button as wide as its words."""
    made = widgets.Button(
        description=label, tooltip=tooltip, button_style=style, layout=widgets.Layout(width="auto", max_width="100%")
    )
    made.on_click(on_click)
    return made


def rows_of(table: Any) -> Sequence[dict[str, Any]]:
    """Return a DataFrame's rows as plain dicts."""
    return [dict(zip(table.columns, row, strict=True)) for row in table.itertuples(index=False, name=None)]
