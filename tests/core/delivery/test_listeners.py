"""Listeners are told of a commit before it returns, outside the lock."""

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

import pytest

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.errors import NotFoundError, UsageError
from tests.core.delivery.notes import names, note, works
from tests.core.faulty import PATIENCE_S, Raising


def test_a_listener_is_told_before_the_commit_returns(graph: Graph) -> None:
    heard: list[tuple[str, int]] = []
    graph.add_listener(lambda event: heard.append((event.type, threading.get_ident())))
    graph.add_object("Entity", id="api")
    assert heard == [("object.created", threading.get_ident())]
    graph.patch_object("api", {"tier": 1})
    assert [event_type for event_type, _ in heard] == ["object.created", "patch.proposed", "patch.applied"]


def test_a_listener_is_told_of_a_batch_once_it_is_committed(graph: Graph) -> None:
    heard: list[str] = []
    graph.add_listener(lambda event: heard.append(event.payload["text"]))
    with graph.batch():
        graph.emit(note("one"))
        with graph.batch():
            graph.emit(note("two"))
        assert heard == []
    assert heard == ["one", "two"]
    with suppress(ZeroDivisionError), graph.batch():
        graph.emit(note("never"))
        _ = 1 / 0
    graph.emit(note("three"))
    assert heard == ["one", "two", "three"]


def test_a_listener_is_called_outside_the_lock(graph: Graph) -> None:
    done: list[bool] = []

    def commit_elsewhere(event: Event) -> None:
        if event.type == "note.taken":
            thread = threading.Thread(target=graph.add_object, args=("Entity",))
            thread.start()
            thread.join(PATIENCE_S)
            done.append(not thread.is_alive())

    graph.add_listener(commit_elsewhere)
    graph.emit(note("one"))
    assert done == [True]


def test_a_listener_may_read_and_commit(graph: Graph) -> None:
    heard: list[str] = []

    def answer(event: Event) -> None:
        heard.append(event.type)
        if event.type == "object.created":
            assert graph.get_object(event.payload["id"])
            graph.emit(note("seen"))

    graph.add_listener(answer)
    with graph.batch():
        graph.add_object("Entity")
        graph.add_object("Entity")
    assert heard == ["object.created", "note.taken", "object.created", "note.taken"]
    assert len(graph.events) == 4


def test_a_listener_is_not_told_what_others_commit_or_what_is_replayed(opened: Callable[[], Graph]) -> None:
    one, two = opened(), opened()
    heard: list[str] = []
    one.add_listener(lambda event: heard.append(event.payload["text"]))
    two.emit(note("theirs"))
    one.catch_up()
    one.replay(Event(id="e", type="note.taken", payload={"text": "past"}, timestamp="2026-02-01T00:00:00.000000Z"))
    one.emit(note("mine"))
    assert heard == ["mine"]


def test_a_listener_that_fails_harms_nobody(graph: Graph, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    heard: list[str] = []

    def fail(event: Event) -> None:
        raise ValueError("broken")

    graph.add_listener(fail)
    graph.add_listener(lambda event: heard.append(event.payload["text"]))
    recorded = graph.emit(note("one"))
    assert heard == ["one"]
    [record] = caplog.records
    assert record.getMessage() == f"a listener of the graph failed at event {recorded.id}"
    assert record.exc_info
    assert str(record.exc_info[1]) == "broken"


def test_a_log_handler_that_fails_harms_nobody(memory: Graph) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise ValueError("no disk")

    def fail(event: Event) -> None:
        raise ValueError("broken")

    handler, logger = Broken(), logging.getLogger("contextmesh")
    logger.addHandler(handler)
    try:
        memory.add_listener(fail)
        memory.add_sink(Raising("on_event", ValueError))
        assert works(memory)
        assert not memory.flush_sinks(PATIENCE_S)
    finally:
        logger.removeHandler(handler)
    assert names(memory) == [("Raising", "failed")]


def test_ctrl_c_in_a_listener_reaches_who_pressed_it(memory: Graph) -> None:
    def interrupt(event: Event) -> None:
        raise KeyboardInterrupt("pressed")

    memory.add_listener(interrupt)
    with pytest.raises(KeyboardInterrupt, match="pressed"):
        memory.emit(note("one"))
    memory.remove_listener(interrupt)
    assert [event.type for event in memory.events] == ["note.taken"]
    assert works(memory)


def test_a_listener_is_added_once_and_removed_once(memory: Graph) -> None:
    heard: list[str] = []
    memory.add_listener(heard.append)
    memory.add_listener(heard.append)
    memory.emit(note("one"))
    assert len(heard) == 1
    memory.remove_listener(heard.append)
    memory.emit(note("two"))
    assert len(heard) == 1
    with pytest.raises(NotFoundError, match="this callback does not listen to the graph"):
        memory.remove_listener(heard.append)
    with pytest.raises(UsageError, match="a str cannot be called; expected a function of one event"):
        memory.add_listener("print")  # type: ignore[arg-type]
