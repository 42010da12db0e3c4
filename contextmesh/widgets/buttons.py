"""Buttons that share how they look: a layout and a style of its own for each would travel to the browser as well."""

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets


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
