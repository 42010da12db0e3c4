"""Worker: one sink, its bounded queue, and the thread that empties it."""

import logging
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from contextmesh.core.events import Event
from contextmesh.core.sinks import DeliveryContext, OverflowPolicy, SinkConfig, SinkMetrics, SinkState, SinkStatus

MAX_ERROR = 500  # characters of a sink's error that its status keeps

_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Flush:
    """A flush that somebody waits for: due once `target` of all that was ever enqueued has left the queue."""

    target: int
    done: threading.Event = field(default_factory=threading.Event)
    succeeded: bool = False


class Worker:
    """One sink, its bounded queue, and the daemon thread that empties it.

    Only that thread ever calls the sink or its metrics, and nothing that they raise leaves it. Whoever offers events
    waits for a lock that is never held while the sink is called.
    """

    def __init__(self, config: SinkConfig, run_id: str, metrics: SinkMetrics | None = None) -> None:
        self.config = config
        self.run_id = run_id
        self._metrics = metrics
        self._told: Counter[str] = Counter()
        self._thread = threading.Thread(target=self._run, name=f"sink {config.name}", daemon=True)
        self._changed = threading.Condition()  # guards all that follows
        self._queue: deque[tuple[int, Event]] = deque()
        self._flushes: list[_Flush] = []
        self._state = SinkState.RUNNING
        self._enqueued = self._delivered = self._errors = 0
        self._dropped: Counter[str] = Counter()
        self._last_error: str | None = None
        self._last_error_operation: str | None = None

    # asked from any thread

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    @property
    def state(self) -> SinkState:
        """Where the sink stands."""
        return self._state

    @property
    def has_ended(self) -> bool:
        """Whether the thread has returned from its last call of the sink."""
        return not self._thread.is_alive()

    def status(self) -> SinkStatus:
        """Return what is known of the sink now."""
        with self._changed:
            return SinkStatus(
                name=self.config.name,
                run_id=self.run_id,
                state=self._state,
                queue_capacity=self.config.queue_capacity,
                queue_depth=len(self._queue),
                overflow_policy=OverflowPolicy(self.config.overflow_policy),
                enqueued=self._enqueued,
                delivered=self._delivered,
                dropped=self._dropped.total(),
                errors=self._errors,
                dropped_by_reason=tuple(sorted(self._dropped.items())),
                last_error=self._last_error,
                last_error_operation=self._last_error_operation,
            )

    def offer(self, entries: Sequence[tuple[int, Event]]) -> None:
        """Put events into the queue, or drop them; nothing happens unless the sink is running."""
        with self._changed:
            for entry in entries:
                if self._state is SinkState.RUNNING and (
                    len(self._queue) < self.config.queue_capacity or self._make_room()
                ):
                    self._queue.append(entry)
                    self._enqueued += 1
            self._changed.notify_all()

    def _make_room(self) -> bool:
        self._dropped["queue_full"] += 1
        if self.config.overflow_policy is OverflowPolicy.DROP_OLDEST:
            self._queue.popleft()
            return True
        if self.config.overflow_policy is OverflowPolicy.FAIL_SINK:
            self._fail("offer", f"the queue of {self.config.queue_capacity:,} events is full")
        return False

    def flush(self, timeout: float | None) -> bool:
        """Wait until the sink has taken and flushed what it was offered before; False if it has not within `timeout`.

        The sink's own thread, which cannot wait for itself, is told False at once.
        """
        if self._is_own_thread():
            return False
        with self._changed:
            if self._state in (SinkState.CLOSED, SinkState.FAILED) or self.has_ended:
                return self._state is SinkState.CLOSED
            ticket = _Flush(target=self._enqueued)
            self._flushes.append(ticket)
            self._changed.notify_all()
        ticket.done.wait(_seconds(timeout))
        with self._changed:
            if ticket in self._flushes:
                self._flushes.remove(ticket)
        return ticket.succeeded

    def stop(self) -> None:
        """Take no more events; those that wait are still delivered, then the sink is closed."""
        with self._changed:
            if self._state is SinkState.RUNNING:
                self._state = SinkState.CLOSING
                self._changed.notify_all()

    def close(self, timeout: float | None) -> bool:
        """Stop, and wait until the sink is closed; False if it failed, or is not closed within `timeout`.

        The sink's own thread, which cannot wait for itself, is told False at once; the sink closes after that call.
        """
        self.stop()
        return self.join(timeout) and self._state is SinkState.CLOSED

    def join(self, timeout: float | None) -> bool:
        """Wait until the thread has returned from its last call of the sink; False if that takes longer."""
        if not self._is_own_thread():
            self._thread.join(_seconds(timeout))
        return self.has_ended

    def _is_own_thread(self) -> bool:
        return threading.current_thread() is self._thread

    # the sink's own thread

    def _run(self) -> None:
        try:
            if self._attempt("open", self.config.sink.open):
                while task := self._next():
                    task()
                    self._count()
                self._tell_failure()
                self._attempt("close", self.config.sink.close)
            else:
                self._tell_failure()
        except BaseException as error:  # noqa: BLE001 - whatever it is, the status must not go on to say 'running'
            self._settle("deliver", described(error))
        finally:
            self._end()
            self._count()

    def _next(self) -> Callable[[], None] | None:
        """Wait for what is to be done next: a flush that is due, or an event; None when there will be no more."""
        with self._changed:
            self._changed.wait_for(lambda: self._queue or self._due() or self._state is not SinkState.RUNNING)
            if self._state is SinkState.FAILED:
                return None
            if due := self._due():
                return partial(self._flush, due)
            return partial(self._deliver, *self._queue.popleft()) if self._queue else None

    def _due(self) -> list[_Flush]:
        return [ticket for ticket in self._flushes if ticket.target <= self._enqueued - len(self._queue)]

    def _deliver(self, position: int, event: Event) -> None:
        context = DeliveryContext(run_id=self.run_id, sequence=position)

        def take() -> None:
            self.config.sink.on_event(event.copied(), context)

        self._attempt("on_event", take)

    def _flush(self, due: Collection[_Flush]) -> None:
        if self._attempt("flush", self.config.sink.flush):
            with self._changed:
                self._flushes = [ticket for ticket in self._flushes if ticket not in due]
            _release(due, succeeded=True)

    def _attempt(self, operation: str, call: Callable[[], None]) -> bool:
        """Call the sink, and settle what came of it; return whether it went well."""
        error = None
        try:
            call()
        except BaseException as raised:  # noqa: BLE001 - SystemExit would end the thread behind the status's back
            error = described(raised)
        self._settle(operation, error)
        return error is None

    def _settle(self, operation: str, error: str | None) -> None:
        with self._changed:
            if operation == "on_event":
                self._delivered += error is None
                self._dropped += Counter(sink_failed=int(error is not None))
            if error is not None:
                self._fail(operation, error)

    def _fail(self, operation: str, error: str) -> None:
        """End the sink, and drop what waits; called with the lock held. A first failure is never hidden by a later."""
        self._errors += 1
        if self._state is SinkState.FAILED:
            return
        self._state = SinkState.FAILED
        self._last_error, self._last_error_operation = error, operation
        self._dropped += Counter(sink_failed=len(self._queue))
        self._queue.clear()
        _release(self._flushes, succeeded=False)
        self._flushes = []
        self._changed.notify_all()

    def _end(self) -> None:
        with self._changed:
            if self._state is not SinkState.FAILED:
                self._state = SinkState.CLOSED
            _release(self._flushes, succeeded=self._state is SinkState.CLOSED)
            self._flushes = []

    def _tell_failure(self) -> None:
        """Log that the sink failed; what it said is left to its status, since it may hold what no log should."""
        status = self.status()
        if status.state is SinkState.FAILED:
            with suppress(Exception):  # a log handler that raises is no failure of the sink's
                _logger.warning(
                    "sink %r failed in %s; graph.sink_statuses() says why", status.name, status.last_error_operation
                )

    def _count(self) -> None:
        """Tell the metrics what has changed since the last time; should they raise, never again."""
        if self._metrics is None:
            return
        now = self.status()
        counts = Counter({name: getattr(now, name) for name in ("delivered", "dropped", "enqueued", "errors")})
        new, self._told = counts - self._told, counts
        try:
            for name, n in sorted(new.items()):
                self._metrics.count(name, now.name, n)
        except BaseException as error:  # noqa: BLE001 - as for the sink itself
            self._metrics = None
            text = described(error)
            with self._changed:
                self._errors += 1
                if self._last_error is None:
                    self._last_error, self._last_error_operation = text, "metrics"


def _release(tickets: Iterable[_Flush], *, succeeded: bool) -> None:
    for ticket in tickets:
        ticket.succeeded = succeeded
        ticket.done.set()


def _seconds(timeout: float | None) -> float | None:
    return None if timeout is None else min(max(timeout, 0.0), threading.TIMEOUT_MAX)


def described(error: BaseException) -> str:
    """Return an error's kind and message, even if the message cannot be had; at most 500 characters."""
    try:
        text = str(error)
        return f"{type(error).__name__}: {text}"[:MAX_ERROR] if text else type(error).__name__
    except BaseException:  # noqa: BLE001 - an error's own __str__ may raise anything
        return f"{type(error).__name__}, whose message cannot be read"
