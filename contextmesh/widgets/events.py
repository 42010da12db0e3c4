"""EventTable: the newest events of a graph, kept up to date while a notebook runs."""

import itertools
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from html import escape
from typing import Any

import ipywidgets as widgets
from IPython.display import display

from contextmesh.core.delivery import SinkHandle
from contextmesh.core.events import Event, to_json
from contextmesh.core.graph import Graph
from contextmesh.core.sinks import CallbackSink, DeliveryContext, OverflowPolicy, SinkState, SinkStatus
from contextmesh.errors import AlreadyExistsError, UsageError
from contextmesh.investigation.history import about as subject

MAX_ROWS = 1000
MAX_ABOUT = 160  # characters
PAUSE_S = 0.1  # between two updates of the view: a burst of events is shown by a few messages, not by one each
LEFT = 'style="text-align: left"'  # inline, since a notebook that is not trusted loses its style sheets
COLUMNS = ("position", "time (UTC)", "type", "actor", "about")

# The notebook's own colours, so that the table is readable in its light and its dark theme; elsewhere those around it.
STYLE = """<style>
.cm-events table {border-collapse: collapse; font-size: var(--jp-code-font-size, 13px); line-height: 1.4;
  color: var(--jp-content-font-color1, inherit); background: transparent;}
.cm-events caption, .cm-events p {caption-side: top; margin: 0; padding: 4px 0;
  color: var(--jp-content-font-color2, inherit);}
.cm-events th, .cm-events td {vertical-align: top; padding: 2px 12px 2px 0;
  border-bottom: 1px solid var(--jp-border-color2, rgba(128, 128, 128, 0.5));}
.cm-events td {font-weight: normal; overflow-wrap: anywhere;}
.cm-events td:nth-child(-n+4) {overflow-wrap: normal; white-space: nowrap;}
.cm-events .cm-trouble {
  color: color-mix(in srgb, var(--jp-error-color1, #c62828) 85%, var(--jp-content-font-color1, #000));}
</style>"""
# What is left beside the live table is for readers without a kernel; while the live one shows, it need not.
STILL_STYLE = """<style>
.jp-OutputArea-child:has(.cm-live-events) + .jp-OutputArea-child .cm-still-events {display: none;}
</style>"""


class EventTable(widgets.VBox):
    """Show a graph's newest events, and keep showing them as this process commits more.

    Its rows are always read from the log, so that they are complete: other writers' events are there too, as of the
    latest update. End a cell with it to show it; a still picture of the table is left in the notebook beside it, for
    readers without a kernel. Each table is a sink of its graph, so `close` it when it is no longer wanted.

    Args:
        graph: whose events to show.
        rows: how many, 1 to 1000.

    Example:
        >>> from contextmesh.core.graph import Graph
        >>> graph = Graph()
        >>> table = EventTable(graph, rows=10)
        >>> _ = graph.add_object("Entity", {"label": "Checkout API"}, id="checkout-api")
        >>> graph.flush_sinks()
        True
        >>> table
        <EventTable: 1 of 1 events, live>
        >>> table.close()
    """

    def __init__(self, graph: Graph, *, rows: int = 20) -> None:
        if type(rows) is not int or not 1 <= rows <= MAX_ROWS:
            msg = f"rows is {rows!r}; expected a whole number from 1 to {MAX_ROWS:,}"
            raise UsageError(msg)
        self._graph = graph
        self._rows = rows
        self._shown: list[tuple[int, Event]] = []
        self._trouble = ""
        self._reading = threading.RLock()
        self._closing = threading.Event()
        self._page = widgets.HTML()
        super().__init__([self._page])
        self.add_class("cm-live-events")
        self._sink = self._attach()  # first, so that no event falls between what is read and what is delivered
        self.refresh()

    def __repr__(self) -> str:
        return f"<EventTable: {len(self._shown)} of {self._tip:,} events, {'live' if self._is_live else 'not live'}>"

    @property
    def _tip(self) -> int:
        return self._shown[0][0] if self._shown else 0

    @property
    def _is_live(self) -> bool:
        return self._sink.status().state is SinkState.RUNNING

    def _attach(self) -> SinkHandle:
        sink = CallbackSink(self._on_event)
        for number in itertools.count(1):
            with suppress(AlreadyExistsError):
                name = "EventTable" if number == 1 else f"EventTable {number}"
                return self._graph.add_sink(sink, name=name, overflow_policy=OverflowPolicy.DROP_OLDEST)
        raise AssertionError  # pragma: no cover - there is always one more number

    def _on_event(self, _event: Event, context: DeliveryContext) -> None:
        """Show all that the log holds, unless this event is among what is shown; then let more events gather."""
        if context.sequence <= self._tip:
            return
        try:
            self.refresh()
        except Exception as error:  # noqa: BLE001 - it would vanish in this thread: show it, and try again at the next event
            self._trouble = f"the log could not be read: {type(error).__name__}: {error}"
            self._show()
        self._closing.wait(PAUSE_S)

    def refresh(self) -> None:
        """Read the newest events from the log and show them; this happens by itself whenever the graph commits."""
        with self._reading:
            self._shown = newest(self._graph, self._rows)
            self._trouble = ""
            self._show()

    def _show(self) -> None:
        with self._reading:
            self._page.value = self.to_html()

    def to_html(self) -> str:
        """Return the table as it is shown, as an HTML fragment with every text escaped; it needs no kernel."""
        with self._reading:
            note = self._trouble or described(self._sink.status())
            caption = f"The newest {len(self._shown)} of {self._tip:,} events" if self._shown else "No events yet"
            return f'{STYLE}<div class="cm-events">{page(self._shown, caption)}{note_line(note)}</div>'

    def close(self) -> None:
        """Detach the table from its graph and take it off the screen; closing twice is fine."""
        if hasattr(self, "_sink"):  # not if making it failed, and ipywidgets closes what is left
            self._closing.set()
            self._sink.close()
            self._page.close()
        super().close()

    def _ipython_display_(self, **_: Any) -> None:
        """Show the live table, and leave a still one beside it."""
        if self.comm is not None:
            self.refresh()
            display(self._repr_mimebundle_(), raw=True)
        still = f'{STILL_STYLE}<div class="cm-still-events">{self.to_html()}</div>'
        display({"text/plain": repr(self), "text/html": still}, raw=True)


def newest(graph: Graph, rows: int) -> list[tuple[int, Event]]:
    """Return the newest events of a graph's log with their positions, newest first."""
    log = graph.events
    tip = len(log)
    first = max(0, tip - rows)
    return list(enumerate(log[first:tip], first + 1))[::-1]


def page(shown: Sequence[tuple[int, Event]], caption: str) -> str:
    """Return a table of events, every text escaped, and kept apart so that none turns its neighbours' direction."""
    head = "".join(f'<th scope="col" {LEFT}>{name}</th>' for name in COLUMNS)
    body = "".join(
        f"<tr>{''.join(f'<td {LEFT}><bdi>{escape(text)}</bdi></td>' for text in row(*item))}</tr>" for item in shown
    )
    grid = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>" if shown else ""
    return f"<table><caption {LEFT}>{escape(caption)}</caption>{grid}</table>"


def row(position: int, event: Event) -> tuple[str, ...]:
    """Return an event's cells, in the order of the columns."""
    time = event.timestamp[:19].replace("T", " ")
    return f"{position:,}", time, event.type, event.actor, shortened(about(event))


def about(event: Event) -> str:
    """Say in a line what an event is about: what it created, changed or removed, else its payload."""
    try:
        return subject(event) if event.type in TOLD_BY_IDS else _ABOUT.get(event.type, to_json)(event.payload)
    except (KeyError, TypeError, AttributeError):  # an older log may hold other payloads under the same type
        return to_json(event.payload)


def _created(payload: Any) -> str:
    data = payload["object"]["data"]
    label = data.get("label") or data.get("text")
    return f"{payload['object']['type']} {payload['id']}{f': {label}' if label else ''}"


def _proposed(payload: Any) -> str:
    patch = payload["patch"]
    return f"{patch['op']} {patch['target']}: {_fields(patch['updates'])}"


def _fields(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"


TOLD_BY_IDS = frozenset({"relation.created", "promote.applied"})  # as the table of the log tells them
_ABOUT: dict[str, Callable[[Any], str]] = {
    "object.created": _created,
    "object.removed": lambda payload: f"{payload['type']} {payload['id']}",
    "relation.removed": lambda payload: f"{payload['source']} -{payload['type']}-> {payload['target']}",
    "patch.proposed": _proposed,
    "patch.applied": lambda payload: f"{payload['target']}: {_fields(payload['diff'])}",
    "question.asked": lambda payload: f"{payload['run']}: {payload['question']}",
    "behavior.started": lambda payload: f"{payload['behavior']}, by {payload['trigger']}",
    "behavior.completed": lambda payload: f"{payload['behavior']}, by {payload['trigger']}",
    "behavior.failed": lambda payload: f"{payload['behavior']}, by {payload['trigger']}: {payload['error']}",
    "patch.rejected": lambda payload: f"{payload['target']}: {payload['reason']}",
}


def shortened(text: str) -> str:
    """Return a text in one line, cut where it is too long for a table."""
    line = " ".join(text[: 2 * MAX_ABOUT].split())
    return line if len(line) <= MAX_ABOUT and len(text) <= 2 * MAX_ABOUT else f"{line[:MAX_ABOUT]} …"


def described(status: SinkStatus) -> str:
    """Say what a reader of the table has to know about its sink; nothing if all is well."""
    notes = []
    if status.state is SinkState.FAILED:
        notes.append(f"no longer live: its sink failed in {status.last_error_operation}, {status.last_error}")
    elif status.state is not SinkState.RUNNING:
        notes.append("no longer live: its sink is detached")
    if status.dropped:
        notes.append(f"dropped deliveries: {status.dropped:,}; the rows are read from the log, and complete")
    return "; ".join(notes)


def note_line(note: str) -> str:
    """Return a line below the table, which screen readers announce when it changes."""
    return f'<p class="cm-trouble" role="status">{escape(note)}</p>' if note else ""
