"""Buttons that share how they look, since a layout and a style for each would travel as well; and that take turns."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ipywidgets as widgets

DOUBLE_CLICK_S = 0.5  # the longest time in which two clicks are meant as one
WAITED_S = 0.2  # after a turn, in which the presses come in that have waited for its end
BUSY = "cm-busy"  # how it looks, `panel.STYLE` says


def buttons(*told: tuple[str, str, Callable[[Any], None]], **layout: str) -> list[widgets.Button]:
    """Return buttons as wide as their words.

    Args:
        told: for each its words, its tooltip, and what to call with it when it is pressed.
        layout: what else their common layout says, such as `margin="2px"`.
    """
    shape = widgets.Layout(**{"width": "auto", "max_width": "100%"} | layout)
    style = widgets.ButtonStyle()
    made = []
    for description, tooltip, on_click in told:
        made.append(widgets.Button(description=description, tooltip=tooltip, layout=shape, style=style))
        made[-1].on_click(on_click)
    return made


def pool(n: int, on_press: Callable[[int], None], **layout: str) -> list[widgets.Button]:
    """Return so many buttons whose words are still to come; each calls with its number, from 0."""
    return buttons(*(("", "", lambda _, at=at: on_press(at)) for at in range(n)), **layout)


class Turns:
    """Let one press through at a time, and drop what comes meanwhile, such as the second half of a double click.

    A kernel handles one message after the other: a second press is heard of only once the first has been worked on. So
    a turn ends a moment later than its work, and for the same button not before a double click would be over. Until
    then a button looks switched off and takes no mouse; it is not switched off, for that would take the keyboard's
    focus away, and the notebook would read the next key as a command.

    Args:
        controls: what the buttons are in.
    """

    def __init__(self, controls: widgets.DOMWidget) -> None:
        self._controls = controls
        self._taken = threading.Lock()
        self._resting: set[widgets.Button] = set()

    @contextmanager
    def turn(self, button: widgets.Button) -> Iterator[bool]:
        """Yield whether the press is let through; if it is not, do nothing."""
        if button in self._resting or not self._taken.acquire(blocking=False):
            yield False
            return
        began = time.monotonic()
        self._controls.add_class(BUSY)
        try:
            yield True
        finally:
            self._resting.add(button)
            button.add_class(BUSY)
            later(WAITED_S, self._end)
            later(max(WAITED_S, began + DOUBLE_CLICK_S - time.monotonic()), lambda: self._rested(button))

    def _end(self) -> None:
        self._controls.remove_class(BUSY)
        self._taken.release()

    def _rested(self, button: widgets.Button) -> None:
        button.remove_class(BUSY)
        self._resting.discard(button)


def later(delay_s: float, callback: Callable[[], None]) -> None:
    """Call a function from this thread's event loop, which hears of presses; at once where there is none."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        callback()
    else:
        loop.call_later(delay_s, callback)
