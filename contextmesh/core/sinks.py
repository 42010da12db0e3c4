"""Event sinks: what one is, what is known of it while events are delivered, and three that are ready to use."""

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal, Protocol

from contextmesh.core.events import SCHEMA_VERSION, Event, to_json
from contextmesh.errors import UsageError

OPERATIONS = ("open", "on_event", "flush", "close")
MAX_NAME = 200


class OverflowPolicy(StrEnum):
    """What happens when an event finds a sink's queue full.

    `drop_newest` drops that event, `drop_oldest` drops the one that has waited longest, `fail_sink` ends the sink.
    """

    DROP_NEWEST = "drop_newest"
    DROP_OLDEST = "drop_oldest"
    FAIL_SINK = "fail_sink"


class SinkState(StrEnum):
    """Where a sink stands: `running`, then `closing` while its queue drains, then `closed`; or `failed` for good."""

    RUNNING = "running"
    CLOSING = "closing"
    CLOSED = "closed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryContext:
    """What a sink is told beside the event.

    Args:
        run_id: the log that the event was committed to; tells graphs and branches apart.
        sequence: the event's log position, from 1; it rises with each delivery, and a gap means other writers' events
            or dropped ones.
        mode: always `live`: history and replay are never delivered.
    """

    run_id: str
    sequence: int
    mode: Literal["live"] = "live"


class EventSink(Protocol):
    """Takes the events that a graph commits. All four are called by one thread of the sink's own, never at once.

    Whatever a sink raises ends it and nothing else: the graph goes on, and `Graph.sink_statuses` says what it was.
    """

    def open(self) -> None:
        """Get ready; called once, before all else."""
        ...

    def on_event(self, event: Event, context: DeliveryContext) -> None:
        """Take one event, a copy of the sink's own; events come in log order."""
        ...

    def flush(self) -> None:
        """Make what was taken so far last."""
        ...

    def close(self) -> None:
        """Make all of it last, and release what `open` took; called once, after a failure too, unless `open` raised."""
        ...


class SinkMetrics(Protocol):
    """Takes counts, for whoever watches a process. Called by a sink's thread, so a slow one delays that sink alone."""

    def count(self, name: str, sink: str, n: int) -> None:
        """Add `n` to the count `enqueued`, `delivered`, `dropped` or `errors` of the sink of this name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkConfig:
    """How a sink is attached.

    Args:
        sink: has the methods open, on_event, flush and close.
        name: unique in a graph, 1 to 200 printable characters; by default the name of the sink's class.
        queue_capacity: how many events may wait, from 1.
        overflow_policy: what happens to one more: `drop_newest`, `drop_oldest` or `fail_sink`.

    Raises:
        UsageError: one of these is not as described.

    Example:
        >>> SinkConfig(sink=RecordingSink()).name
        'RecordingSink'
    """

    sink: EventSink
    name: str = ""
    queue_capacity: int = 1024
    overflow_policy: OverflowPolicy | str = OverflowPolicy.DROP_NEWEST

    def __post_init__(self) -> None:
        kind = type(self.sink).__name__
        lacking = [name for name in OPERATIONS if not callable(getattr(self.sink, name, None))]
        if isinstance(self.sink, type) or lacking:
            msg = f"a {kind} is no sink; expected an object with the methods {', '.join(OPERATIONS)}"
            raise UsageError(msg)
        name: object = self.name or kind
        if not (isinstance(name, str) and name.isprintable() and 1 <= len(name.strip()) <= len(name) <= MAX_NAME):
            msg = f"{str(name)[:80]!r} is no name of a sink; expected 1 to {MAX_NAME} printable characters"
            raise UsageError(msg)
        if type(self.queue_capacity) is not int or self.queue_capacity < 1:
            msg = f"sink {name!r}: queue_capacity is {self.queue_capacity!r}; expected a whole number from 1"
            raise UsageError(msg)
        if self.overflow_policy not in list(OverflowPolicy):
            msg = f"sink {name!r}: overflow_policy is {self.overflow_policy!r}; expected {', '.join(OverflowPolicy)}"
            raise UsageError(msg)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "overflow_policy", OverflowPolicy(self.overflow_policy))


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkStatus:
    """A sink at one moment. Each event that was offered is delivered, dropped, waiting, or in the sink's hands.

    Args:
        name: its name in the graph.
        run_id: the log whose events it takes.
        state: running, closing, closed or failed; a failed sink is offered nothing more.
        queue_capacity: how many events may wait.
        queue_depth: how many do; the one that the sink is taking is not among them.
        overflow_policy: what happens to one more.
        enqueued: events that were ever put into the queue.
        delivered: events that the sink took.
        dropped: events that it never took.
        errors: how often one of its operations raised, or the queue's overflow ended it.
        dropped_by_reason: the parts of `dropped`, sorted: `queue_full`, and `sink_failed` for the event that ended
            the sink and those that waited then.
        last_error: kind and message of what ended it; None if nothing did.
        last_error_operation: what it came from: `open`, `on_event`, `flush`, `close`; `offer` when an overflow ended
            it; `metrics` when only the counting stopped.
    """

    name: str
    run_id: str
    state: SinkState
    queue_capacity: int
    queue_depth: int
    overflow_policy: OverflowPolicy
    enqueued: int
    delivered: int
    dropped: int
    errors: int
    dropped_by_reason: tuple[tuple[str, int], ...]
    last_error: str | None
    last_error_operation: str | None


class RecordingSink:
    """Keep every event in memory; for tests and for trying things out. Usable from any thread."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._deliveries: list[tuple[Event, DeliveryContext]] = []

    def __repr__(self) -> str:
        return f"<RecordingSink: {len(self._deliveries)} events>"

    @property
    def deliveries(self) -> list[tuple[Event, DeliveryContext]]:
        """What was delivered so far, each event with its context, in order."""
        with self._changed:
            return list(self._deliveries)

    @property
    def events(self) -> list[Event]:
        """The events that were delivered so far, in order."""
        return [event for event, _ in self.deliveries]

    def wait_for(self, count: int, timeout: float | None = 5.0) -> bool:
        """Wait until at least `count` events are kept; False if that takes longer than `timeout` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._deliveries) >= count, timeout)

    def clear(self) -> None:
        """Forget what was delivered so far."""
        with self._changed:
            self._deliveries.clear()

    def open(self) -> None:
        """Do nothing; memory is always ready."""

    def on_event(self, event: Event, context: DeliveryContext) -> None:
        """Keep the event."""
        with self._changed:
            self._deliveries.append((event, context))
            self._changed.notify_all()

    def flush(self) -> None:
        """Do nothing; what is kept is kept."""

    def close(self) -> None:
        """Do nothing; what was kept can still be read."""


class CallbackSink:
    """Call a function with each event and its context. It runs in the sink's own thread, so it may be slow.

    Args:
        callback: called as `callback(event, context)`.

    Example:
        >>> from contextmesh.core.graph import Graph
        >>> graph, seen = Graph(), []
        >>> sink = graph.add_sink(CallbackSink(lambda event, context: seen.append((context.sequence, event.type))))
        >>> _ = graph.add_object("Entity", id="checkout-api")
        >>> sink.flush()
        True
        >>> seen
        [(1, 'object.created')]
    """

    def __init__(self, callback: Callable[[Event, DeliveryContext], object]) -> None:
        if not callable(callback):
            msg = f"a {type(callback).__name__} cannot be called; expected a function of (event, context)"
            raise UsageError(msg)
        self._callback = callback

    def open(self) -> None:
        """Do nothing; a function is always ready."""

    def on_event(self, event: Event, context: DeliveryContext) -> None:
        """Call the function."""
        self._callback(event, context)

    def flush(self) -> None:
        """Do nothing; each call has ended."""

    def close(self) -> None:
        """Do nothing; a function holds nothing."""


class JSONLEventSink:
    """Append each event to a file, as one line of canonical JSON: `{"event":…,"position":…,"run_id":…,"v":1}`.

    Each line is handed to the operating system before the next event is taken, so that the death of the process loses
    none; `flush` and `close` make them last through a power cut too. A last line that an earlier process was
    interrupted in stays as it is, and a new line begins after it. Not safe to share between graphs: each gets its own.

    Args:
        path: the file, made if it does not exist, readable by its owner alone; its folder must exist.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._file: int | None = None

    def __repr__(self) -> str:
        return f"<JSONLEventSink: {self.path.name}>"

    def open(self) -> None:
        """Open the file.

        Raises:
            UsageError: it cannot be written to, or is open already; the message says why.
        """
        if self._file is not None:
            msg = f"{self.path} is open already; give each graph a JSONLEventSink of its own"
            raise UsageError(msg)
        if not self.path.parent.is_dir():
            msg = f"there is no folder {self.path.parent}; create it, or write elsewhere"
            raise UsageError(msg)
        try:
            self._check_ordinary()
            file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o600)
        except OSError as error:
            msg = f"{self.path} cannot be written: {error.strerror}; write elsewhere"
            raise UsageError(msg) from None
        try:
            _begin_line(file)
        except BaseException:
            os.close(file)
            raise
        self._file = file

    def _check_ordinary(self) -> None:
        if self.path.exists() and not self.path.is_file():
            msg = f"{self.path} is no ordinary file; expected the name of one, such as 'events.jsonl'"
            raise UsageError(msg)

    def on_event(self, event: Event, context: DeliveryContext) -> None:
        """Append the event."""
        row = {
            "v": SCHEMA_VERSION,
            "run_id": context.run_id,
            "position": context.sequence,
            "event": event.to_dict(),
        }
        _write(self._opened(), f"{to_json(row)}\n".encode())

    def flush(self) -> None:
        """Have the operating system put the file on the disk."""
        os.fsync(self._opened())

    def close(self) -> None:
        """Put the file on the disk and close it; closing twice is fine."""
        file, self._file = self._file, None
        if file is not None:
            try:
                os.fsync(file)
            finally:
                os.close(file)

    def _opened(self) -> int:
        if self._file is None:
            msg = f"{self.path} is not open; attach the sink with graph.add_sink(sink)"
            raise UsageError(msg)
        return self._file


def _begin_line(file: int) -> None:
    size = os.fstat(file).st_size
    if size and os.pread(file, 1, size - 1) != b"\n":
        _write(file, b"\n")


def _write(file: int, line: bytes) -> None:
    """Write a line in one piece where the disk has room for it, else as much as there is room for, and raise."""
    while line:
        line = line[os.write(file, line) :]
