"""One sink and its queue: order, counts, overflow, and every fault that a sink can have."""

import logging
import threading
from collections.abc import Callable, Iterator

import pytest

from contextmesh.core.events import Event
from contextmesh.core.sinks import RecordingSink, SinkConfig, SinkState, SinkStatus
from contextmesh.core.worker import Worker
from tests.core.faulty import PATIENCE_S, Calling, Gated, Raising

FAULTS = [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit, BaseException]


def event(position: int) -> Event:
    return Event(id=f"evt_{position:03d}", type="note.taken", payload={"n": position, "tags": ["a"]})


def entries(*positions: int) -> list[tuple[int, Event]]:
    return [(position, event(position)) for position in positions]


@pytest.fixture
def started() -> Iterator[Callable[..., Worker]]:
    """Start a worker for a sink; at the end of the test each has ended."""
    workers: list[Worker] = []

    def start(sink, metrics=None, **settings) -> Worker:
        worker = Worker(SinkConfig(sink=sink, **settings), "run-a", metrics)
        workers.append(worker)
        worker.start()
        return worker

    yield start
    for worker in workers:
        worker.close(PATIENCE_S)
        assert worker.has_ended


def positions(sink: RecordingSink) -> list[int]:
    return [context.sequence for _, context in sink.deliveries]


def ended(worker: Worker) -> SinkStatus:
    """The status of a worker whose sink failed, once its thread is done."""
    assert worker.join(PATIENCE_S)
    return worker.status()


# Delivery


def test_events_come_in_order_with_their_context(started):
    sink = RecordingSink()
    worker = started(sink)
    worker.offer(entries(3, 4))
    worker.offer(entries(7))
    assert worker.flush(PATIENCE_S)
    assert positions(sink) == [3, 4, 7]
    assert sink.events == [event(3), event(4), event(7)]
    assert {(context.run_id, context.mode) for _, context in sink.deliveries} == {("run-a", "live")}


def test_the_status_of_a_sink_that_is_well(started):
    worker = started(RecordingSink(), name="copy", queue_capacity=5)
    worker.offer(entries(1, 2))
    assert worker.flush(PATIENCE_S)
    assert worker.status() == SinkStatus(
        name="copy",
        run_id="run-a",
        state=SinkState.RUNNING,
        queue_capacity=5,
        queue_depth=0,
        overflow_policy="drop_newest",
        enqueued=2,
        delivered=2,
        dropped=0,
        errors=0,
        dropped_by_reason=(),
        last_error=None,
        last_error_operation=None,
    )


def test_each_sink_gets_a_copy_of_its_own(started):
    def spoil(taken: Event) -> None:
        taken.payload["tags"].append("spoilt")

    offered = entries(1)
    sinks = [Calling(spoil), Calling(spoil)]
    for worker in [started(sink) for sink in sinks]:
        worker.offer(offered)
        assert worker.flush(PATIENCE_S)
    assert [sink.events[0].payload["tags"] for sink in sinks] == [["a", "spoilt"], ["a", "spoilt"]]
    assert offered == entries(1)


def test_the_sink_is_only_ever_called_by_its_own_thread(started):
    threads = []

    class Watched(RecordingSink):
        def open(self):
            threads.append(threading.current_thread())

        def on_event(self, event, context):
            threads.append(threading.current_thread())

        def flush(self):
            threads.append(threading.current_thread())

        def close(self):
            threads.append(threading.current_thread())

    worker = started(Watched(), name="watched")
    worker.offer(entries(1))
    assert worker.flush(PATIENCE_S)
    assert worker.close(PATIENCE_S)
    assert len(threads) == 4
    assert {(thread.name, thread.daemon) for thread in threads} == {("sink watched", True)}


# Overflow: the gate holds the first event in the sink's hands, two more fill the queue, two more overflow.


@pytest.mark.parametrize(
    ("policy", "kept", "enqueued"),
    [("drop_newest", [1, 2, 3], 3), ("drop_oldest", [1, 4, 5], 5)],
)
def test_overflow_drops(started, policy, kept, enqueued):
    sink = Gated()
    worker = started(sink, queue_capacity=2, overflow_policy=policy)
    worker.offer(entries(1))
    assert sink.reached.wait(PATIENCE_S)
    worker.offer(entries(2, 3, 4, 5))
    status = worker.status()
    assert (status.state, status.queue_depth, status.enqueued, status.delivered) == ("running", 2, enqueued, 0)
    assert (status.dropped, status.dropped_by_reason, status.errors) == (2, (("queue_full", 2),), 0)
    sink.gate.set()
    assert worker.close(PATIENCE_S)
    assert positions(sink) == kept
    assert (worker.status().delivered, worker.status().dropped) == (3, 2)


def test_overflow_fails_the_sink(started):
    sink = Gated()
    worker = started(sink, queue_capacity=2, overflow_policy="fail_sink")
    worker.offer(entries(1))
    assert sink.reached.wait(PATIENCE_S)
    worker.offer(entries(2, 3, 4, 5))
    worker.offer(entries(6))
    assert not worker.flush(PATIENCE_S)  # told at once, though the sink still holds the first event
    status = worker.status()
    assert (status.state, status.last_error_operation) == ("failed", "offer")
    assert status.last_error == "the queue of 2 events is full"
    assert status.dropped_by_reason == (("queue_full", 1), ("sink_failed", 2))
    sink.gate.set()
    status = ended(worker)
    assert positions(sink) == [1]
    assert (status.enqueued, status.delivered, status.dropped, status.errors) == (3, 1, 3, 1)


def test_a_failing_event_after_an_overflow_does_not_hide_it(started):
    class Both(Gated):
        def on_event(self, event, context):
            super().on_event(event, context)
            raise ValueError

    sink = Both()
    worker = started(sink, queue_capacity=1, overflow_policy="fail_sink")
    worker.offer(entries(1))
    assert sink.reached.wait(PATIENCE_S)
    worker.offer(entries(2, 3))
    sink.gate.set()
    status = ended(worker)
    assert (status.last_error_operation, status.errors) == ("offer", 2)
    assert (status.delivered, status.dropped_by_reason) == (0, (("queue_full", 1), ("sink_failed", 2)))


# Faults


@pytest.mark.parametrize("error", FAULTS)
def test_a_sink_that_raises_on_an_event(started, error):
    sink = Raising("on_event", lambda: error("no space"), at=2)
    gate = threading.Event()
    sink.open = lambda: gate.wait(PATIENCE_S)
    worker = started(sink)
    worker.offer(entries(1, 2, 3, 4))
    gate.set()
    status = ended(worker)
    assert (status.state, status.last_error_operation) == ("failed", "on_event")
    assert status.last_error == f"{error.__name__}: no space"
    assert (status.delivered, status.dropped_by_reason, status.errors) == (1, (("sink_failed", 3),), 1)
    assert sink.calls == ["on_event", "on_event", "close"]
    worker.offer(entries(5))
    assert (worker.status().queue_depth, worker.status().enqueued) == (0, 4)


@pytest.mark.parametrize("error", FAULTS)
def test_a_sink_that_raises_when_it_is_opened(started, error):
    sink = Raising("open", error)
    status = ended(started(sink))
    assert (status.state, status.last_error_operation) == ("failed", "open")
    assert (status.last_error, status.errors) == (error.__name__, 1)
    assert sink.calls == ["open"]  # what never opened is not closed


@pytest.mark.parametrize("error", FAULTS)
def test_a_sink_that_raises_when_it_is_flushed(started, error):
    sink = Raising("flush", error)
    worker = started(sink)
    worker.offer(entries(1))
    assert not worker.flush(PATIENCE_S)
    status = ended(worker)
    assert (status.state, status.last_error_operation, status.delivered) == ("failed", "flush", 1)
    assert sink.calls == ["open", "on_event", "flush", "close"]


@pytest.mark.parametrize("error", FAULTS)
def test_a_sink_that_raises_when_it_is_closed(started, error):
    worker = started(Raising("close", error))
    worker.offer(entries(1))
    assert not worker.close(PATIENCE_S)
    status = worker.status()
    assert (status.state, status.last_error_operation, status.delivered) == ("failed", "close", 1)


def test_a_second_failure_is_counted_and_hides_nothing(started):
    class Twice(Raising):
        def close(self):
            raise OSError("closed already")

    status = ended_after(started(Twice("on_event", lambda: ValueError("first"))))
    assert (status.errors, status.last_error, status.last_error_operation) == (2, "ValueError: first", "on_event")


def ended_after(worker: Worker) -> SinkStatus:
    worker.offer(entries(1))
    return ended(worker)


def test_an_error_that_cannot_be_read(started):
    class Silent(Exception):  # noqa: N818
        def __str__(self):
            raise SystemExit

    status = ended_after(started(Raising("on_event", Silent)))
    assert (status.state, status.last_error) == ("failed", "Silent, whose message cannot be read")


def test_a_long_error_is_cut(started):
    status = ended_after(started(Raising("on_event", lambda: ValueError("x" * 10_000))))
    assert status.last_error == "ValueError: " + "x" * 488


def test_a_method_that_vanishes(started):
    sink = RecordingSink()
    worker = started(sink)
    assert worker.flush(PATIENCE_S)
    sink.on_event = None
    assert ended_after(worker).last_error == "TypeError: 'NoneType' object is not callable"


def test_a_failure_is_logged_without_what_it_said(started, caplog):
    caplog.set_level(logging.WARNING)
    ended_after(started(Raising("on_event", lambda: ValueError("token=abc")), name="copy"))
    assert [record.getMessage() for record in caplog.records] == [
        "sink 'copy' failed in on_event; graph.sink_statuses() says why"
    ]


# Flush and close


def test_a_flush_waits_for_what_was_offered_before(started):
    sink = Gated()
    worker = started(sink)
    worker.offer(entries(1, 2))
    assert sink.reached.wait(PATIENCE_S)
    assert not worker.flush(0)
    flushed = []
    thread = threading.Thread(target=lambda: flushed.append((worker.flush(PATIENCE_S), positions(sink))))
    thread.start()
    sink.gate.set()
    thread.join(PATIENCE_S)
    assert flushed == [(True, [1, 2])]


def test_a_flush_is_not_held_up_by_what_drop_oldest_lets_go(started):
    sink = Gated()
    worker = started(sink, queue_capacity=1, overflow_policy="drop_oldest")
    worker.offer(entries(1, 2))
    assert sink.reached.wait(PATIENCE_S)
    worker.offer(entries(3, 4))
    sink.gate.set()
    assert worker.flush(PATIENCE_S)
    assert positions(sink)[-1] == 4


def test_a_close_drains_first(started):
    sink = Gated()
    worker = started(sink)
    worker.offer(entries(1, 2, 3))
    worker.stop()
    worker.offer(entries(4))  # detached already
    sink.gate.set()
    assert worker.close(PATIENCE_S)
    assert positions(sink) == [1, 2, 3]
    assert worker.state == "closed"
    assert worker.flush(PATIENCE_S)
    assert worker.close(PATIENCE_S)


def test_a_close_that_takes_too_long_can_be_repeated(started):
    sink = Gated()
    worker = started(sink)
    worker.offer(entries(1, 2))
    assert not worker.close(0)
    assert (worker.state, worker.close(0)) == ("closing", False)
    sink.gate.set()
    assert worker.close(None)
    assert (worker.state, worker.status().delivered) == ("closed", 2)


def test_a_flush_of_a_closing_sink(started):
    sink = Gated()
    worker = started(sink)
    worker.offer(entries(1))
    worker.stop()
    flushed = []
    thread = threading.Thread(target=lambda: flushed.append(worker.flush(PATIENCE_S)))
    thread.start()
    sink.gate.set()
    thread.join(PATIENCE_S)
    assert flushed == [True]


def test_a_sink_cannot_wait_for_itself(started):
    workers = []
    sink = Calling(lambda _: (workers[0].flush(None), workers[0].close(None)))
    workers.append(started(sink))
    workers[0].offer(entries(1, 2))
    assert workers[0].join(PATIENCE_S)
    assert sink.results == [(False, False), (False, False)]
    assert (workers[0].state, positions(sink)) == ("closed", [1, 2])


# Metrics


class Metrics:
    def __init__(self, error: type[BaseException] | None = None) -> None:
        self.counts: dict[tuple[str, str], int] = {}
        self.calls = 0
        self._error = error

    def count(self, name: str, sink: str, n: int) -> None:
        self.calls += 1
        if self._error:
            raise self._error
        self.counts[name, sink] = self.counts.get((name, sink), 0) + n


def test_metrics_get_every_count(started):
    metrics, sink = Metrics(), Gated()
    worker = started(sink, metrics, name="copy", queue_capacity=2)
    worker.offer(entries(1))
    assert sink.reached.wait(PATIENCE_S)
    worker.offer(entries(2, 3, 4, 5))
    sink.gate.set()
    assert worker.close(PATIENCE_S)
    assert metrics.counts == {("enqueued", "copy"): 3, ("delivered", "copy"): 3, ("dropped", "copy"): 2}


def test_metrics_get_failures(started):
    metrics = Metrics()
    ended_after(started(Raising("on_event", ValueError), metrics, name="copy"))
    assert metrics.counts == {("enqueued", "copy"): 1, ("dropped", "copy"): 1, ("errors", "copy"): 1}


@pytest.mark.parametrize("error", FAULTS)
def test_metrics_that_fail_are_asked_no_more(started, error):
    metrics, sink = Metrics(error), RecordingSink()
    worker = started(sink, metrics)
    worker.offer(entries(1, 2, 3))
    assert worker.close(PATIENCE_S)
    assert (positions(sink), metrics.calls) == ([1, 2, 3], 1)
    status = worker.status()
    assert (status.state, status.errors, status.last_error_operation) == ("closed", 1, "metrics")
    assert status.last_error == error.__name__
