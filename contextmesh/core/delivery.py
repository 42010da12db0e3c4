"""The sinks and listeners of a graph, and how its commits reach them."""

import logging
import threading
import weakref
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from contextmesh.core.events import Event
from contextmesh.core.sinks import EventSink, SinkConfig, SinkMetrics, SinkState, SinkStatus
from contextmesh.core.worker import Worker
from contextmesh.errors import AlreadyExistsError, NotFoundError, UsageError

ENDING_S = 1.0  # how long a failed sink that is attached anew is given to return from its last call

Listener = Callable[[Event], object]

_logger = logging.getLogger(__name__)


class SinkHandle:
    """A sink as it is attached to a graph; `Graph.add_sink` returns it."""

    def __init__(self, sinks: "Sinks", worker: Worker) -> None:
        self._sinks = sinks
        self._worker = worker

    def __repr__(self) -> str:
        return f"<SinkHandle {self.name!r}: {self._worker.state}>"

    @property
    def name(self) -> str:
        """The sink's name in its graph."""
        return self._worker.config.name

    def status(self) -> SinkStatus:
        """Return what is known of the sink now, after its close too."""
        return self._worker.status()

    def flush(self, timeout: float | None = 5.0) -> bool:
        """Wait until the sink has taken and flushed what was committed before.

        Args:
            timeout: seconds to wait at most; None for as long as it takes.

        Returns:
            False if the sink failed or needs longer.
        """
        return self._worker.flush(timeout)

    def close(self, timeout: float | None = 5.0) -> bool:
        """Detach the sink, as `Graph.remove_sink` does; closing twice is fine."""
        return self._sinks.remove(self, timeout)


class Sinks:
    """The sinks of one graph, by name."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: dict[str, Worker] = {}
        self._offered: tuple[Worker, ...] = ()  # what `offer` reads without the lock
        forgotten = weakref.finalize(self, _stop, self._workers)  # a graph that nobody holds leaves no thread behind
        forgotten.atexit = False

    def __repr__(self) -> str:
        return f"<Sinks: {', '.join(status.name for status in self.statuses()) or 'none'}>"

    def add(self, config: SinkConfig, run_id: str, metrics: SinkMetrics | None = None) -> SinkHandle:
        """Attach a sink; it is offered what is committed from now on.

        Raises:
            AlreadyExistsError: the name is that of a sink that is running or closing.
            UsageError: the very same sink is attached already.
        """
        with self._lock:
            for worker in self._workers.values():
                self._check_free(worker, config)
            worker = Worker(config, run_id, metrics)
            worker.start()
            self._workers[config.name] = worker
            self._offered = tuple(self._workers.values())
        return SinkHandle(self, worker)

    def _check_free(self, worker: Worker, config: SinkConfig) -> None:
        ended = worker.state in (SinkState.CLOSED, SinkState.FAILED)
        if worker.config.name == config.name and not ended:
            msg = f"the graph has a sink {config.name!r} that is {worker.state}; remove it, or choose another name"
            raise AlreadyExistsError(msg)
        if worker.config.sink is config.sink and not (ended and worker.join(ENDING_S)):
            msg = f"this sink is attached as {worker.config.name!r} and would take each event twice; make another one"
            raise UsageError(msg)

    def follow(self, run_id: str) -> None:
        """Tell every sink that what comes next is of another log; the one before it held no events."""
        with self._lock:
            for worker in self._workers.values():
                worker.run_id = run_id

    def remove(self, target: "EventSink | SinkHandle | str", timeout: float | None) -> bool:
        """Detach, drain and close a sink, or forget a failed one; False if it stays, closing or failed.

        Raises:
            NotFoundError: the graph has no such sink.
        """
        worker = self._find(target)
        if worker.state is not SinkState.FAILED:
            return self._close(worker, timeout)
        if worker.join(timeout):
            self._forget(worker)
        return worker.has_ended

    def _close(self, worker: Worker, timeout: float | None) -> bool:
        closed = worker.close(timeout)
        if closed:
            self._forget(worker)
        return closed

    def _forget(self, worker: Worker) -> None:
        with self._lock:
            if self._workers.get(worker.config.name) is worker:
                del self._workers[worker.config.name]
                self._offered = tuple(self._workers.values())

    def _find(self, target: "EventSink | SinkHandle | str") -> Worker:
        if isinstance(target, SinkHandle) and target._sinks is self:  # noqa: SLF001 - the handle is this class's own
            return target._worker  # noqa: SLF001
        workers = self._by_name()
        named = target if isinstance(target, str) else None
        found = [worker for worker in workers if target is worker.config.sink or named == worker.config.name]
        if not found:
            names = ", ".join(repr(worker.config.name) for worker in workers) or "none"
            shown = f"sink {target!r}" if isinstance(target, str) else f"such {type(target).__name__}"
            msg = f"the graph has no {shown}; its sinks: {names}"
            raise NotFoundError(msg)
        return min(found, key=lambda worker: worker.state in (SinkState.CLOSED, SinkState.FAILED))

    def offer(self, events: Sequence[Event], first: int, without: Collection[str] = ()) -> None:
        """Offer committed events to every sink; it never raises and never waits for a sink.

        Args:
            events: those of one commit, in log order; never changed afterwards.
            first: the log position of the first.
            without: ids of events that are history and not delivered.
        """
        if self._offered:
            entries = [(at, event) for at, event in enumerate(events, first) if event.id not in without]
            for worker in self._offered:
                worker.offer(entries)

    def statuses(self) -> list[SinkStatus]:
        """Return the sinks that are running, closing or failed, by name."""
        found = [worker.status() for worker in self._by_name()]
        return [status for status in found if status.state is not SinkState.CLOSED]

    def flush(self, timeout: float | None) -> bool:
        """Flush each sink, each for at most `timeout`; True if all of them could."""
        flushed = [worker.flush(timeout) for worker in self._by_name()]
        return all(flushed)

    def close(self, timeout: float | None) -> bool:
        """Remove each sink that has not failed, each for at most `timeout`; True if none is left."""
        workers = self._by_name()
        for worker in workers:
            worker.stop()
        closed = [self._close(worker, timeout) for worker in workers]
        return all(closed)

    def _by_name(self) -> list[Worker]:
        with self._lock:
            return [worker for _, worker in sorted(self._workers.items())]


def _stop(workers: dict[str, Worker]) -> None:
    for worker in list(workers.values()):
        worker.stop()


class Listeners:
    """Callbacks that are told of each commit by the thread that made it.

    Enter them as a context before the graph's lock, `with listeners, lock:`, and they are told once it is free again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._callbacks: tuple[Listener, ...] = ()
        self._untold = threading.local()

    def __repr__(self) -> str:
        return f"<Listeners: {len(self._callbacks)}>"

    def add(self, callback: Listener) -> None:
        """Add a callback; adding it again changes nothing."""
        if not callable(callback):
            msg = f"a {type(callback).__name__} cannot be called; expected a function of one event"
            raise UsageError(msg)
        with self._lock:
            if callback not in self._callbacks:
                self._callbacks = (*self._callbacks, callback)

    def remove(self, callback: Listener) -> None:
        """Remove a callback.

        Raises:
            NotFoundError: it was not added.
        """
        with self._lock:
            if callback not in self._callbacks:
                msg = "this callback does not listen to the graph; graph.add_listener(callback) would make it"
                raise NotFoundError(msg)
            self._callbacks = tuple(each for each in self._callbacks if each != callback)

    def hold(self, events: Sequence[Event], without: Collection[str] = ()) -> None:
        """Keep what this thread has committed until it leaves the `with` block of these listeners."""
        if self._callbacks:
            self._untold.events = [event for event in events if event.id not in without]

    def __enter__(self) -> None:
        return

    def __exit__(self, *_: object) -> None:
        """Tell every callback what this thread has committed; one that raises an exception is logged, and no more."""
        events: list[Event] = getattr(self._untold, "events", [])
        if events:
            self._untold.events = []
        for event in events:
            for callback in self._callbacks:
                self._call(callback, event)

    def _call(self, callback: Listener, event: Event) -> None:
        try:
            callback(event.copied())
        except Exception as error:  # one listener must harm neither the commit nor the others
            with suppress(Exception):  # the same for a log handler
                _logger.warning("a listener of the graph failed at event %s", event.id, exc_info=error)
