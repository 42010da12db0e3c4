"""Closing a view together with all that it consists of: each part holds a line to the browser of its own."""

from typing import Any

import ipywidgets as widgets


def parts_of(widget: widgets.Widget) -> list[widgets.Widget]:
    """Return all widgets that a widget consists of, itself left out, layouts and styles included."""
    found: dict[str, widgets.Widget] = {}
    waiting: list[Any] = [getattr(widget, name) for name in widget.keys]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list | tuple):
            waiting += value
        elif not isinstance(value, widgets.Widget) or value is widget or value.comm is None:
            continue  # one that is closed already may still be named, such as what was last clicked
        elif value.model_id not in found:
            found[value.model_id] = value
            waiting += [getattr(value, name) for name in value.keys]
    return list(found.values())


def close_parts(widget: widgets.Widget) -> None:
    """Close all that a widget consists of; a widget that is closed already has nothing to close."""
    for part in parts_of(widget) if widget.comm is not None else ():
        part.close()
