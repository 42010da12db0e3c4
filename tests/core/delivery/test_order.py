"""What of a graph's commits is delivered, and in which order."""

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.core.sinks import JSONLEventSink, RecordingSink
from contextmesh.errors import ConcurrentWriterError, InvalidEventError, ProjectionError, ServerError
from tests.core.delivery.notes import note, positions, texts, works
from tests.core.faulty import PATIENCE_S, Calling


def test_what_is_committed_is_what_is_delivered(graph: Graph) -> None:
    sink = RecordingSink()
    graph.add_sink(sink)
    graph.add_object("Entity", {"label": "Checkout API"}, id="api")
    graph.patch_object("api", {"tier": 1})
    graph.emit(note("one"))
    assert graph.flush_sinks(PATIENCE_S)
    assert [event.type for event in sink.events] == ["object.created", "patch.proposed", "patch.applied", "note.taken"]
    assert sink.events == list(graph.events)
    assert positions(sink) == [1, 2, 3, 4]
    assert {context.run_id for _, context in sink.deliveries} == {graph._log.run_id}
    assert graph.sink_statuses()[0].run_id == graph._log.run_id


def test_history_is_not_delivered(graph: Graph) -> None:
    graph.emit(note("before"))
    sink = RecordingSink()
    graph.add_sink(sink)
    graph.rebuild()
    graph.emit(note("after"))
    assert graph.flush_sinks(PATIENCE_S)
    assert texts(sink) == ["after"]
    assert positions(sink) == [2]


def test_what_other_writers_commit_is_not_delivered(opened: Callable[[], Graph]) -> None:
    one, two = opened(), opened()
    mine, theirs = RecordingSink(), RecordingSink()
    one.add_sink(mine)
    two.add_sink(theirs)
    for text in ("a", "b", "c"):
        one.emit(note(f"one {text}"))
        two.emit(note(f"two {text}"))
    one.catch_up()
    assert one.flush_sinks(PATIENCE_S)
    assert two.flush_sinks(PATIENCE_S)
    assert (texts(mine), positions(mine)) == (["one a", "one b", "one c"], [1, 3, 5])
    assert (texts(theirs), positions(theirs)) == (["two a", "two b", "two c"], [2, 4, 6])


def test_what_is_replayed_is_not_delivered(memory: Graph) -> None:
    sink = RecordingSink()
    memory.add_sink(sink)
    past = Event(id="evt_old", type="note.taken", payload={"text": "past"}, timestamp="2026-01-01T00:00:00.000000Z")
    memory.replay(past)
    with memory.batch():
        memory.emit(note("one"))
        memory.replay(Event(id="evt_2", type="note.taken", payload={}, timestamp="2026-01-02T00:00:00.000000Z"))
    memory.emit(note("two"))
    assert memory.flush_sinks(PATIENCE_S)
    assert (texts(sink), positions(sink)) == (["one", "two"], [2, 4])


def test_what_is_replayed_stays_history_when_another_writer_was_faster(opened: Callable[[], Graph]) -> None:
    one, two = opened(), opened()
    sink = RecordingSink()
    one.add_sink(sink)
    past = Event(id="past", type="note.taken", payload={}, timestamp="2026-02-01T00:00:00.000000Z")
    with one.batch():
        one.replay(past)
        two.emit(note("theirs"))
    one.emit(note("mine"))
    assert one.flush_sinks(PATIENCE_S)
    assert one.events[1] == past
    assert (texts(sink), positions(sink)) == (["mine"], [3])


def test_the_run_is_that_of_the_log_in_use(memory: Graph) -> None:
    sink, log = RecordingSink(), InMemoryEventStore()
    handle = memory.add_sink(sink)
    memory.attach_store(log)
    memory.emit(note("one"))
    assert memory.flush_sinks(PATIENCE_S)
    assert [context.run_id for _, context in sink.deliveries] == [log.run_id]
    assert handle.status().run_id == log.run_id


def test_a_batch_comes_whole_and_in_order(graph: Graph) -> None:
    sink = RecordingSink()
    graph.add_sink(sink)
    with graph.batch():
        for n in range(20):
            graph.emit(note(f"{n}"))
        assert graph.flush_sinks(PATIENCE_S)
        assert sink.events == []  # nothing is committed yet
    assert graph.flush_sinks(PATIENCE_S)
    assert texts(sink) == [f"{n}" for n in range(20)]
    assert positions(sink) == list(range(1, 21))


def test_of_an_aborted_batch_nothing_comes(graph: Graph) -> None:
    sink = RecordingSink()
    graph.add_sink(sink)
    with suppress(ZeroDivisionError), graph.batch():
        graph.emit(note("never"))
        _ = 1 / 0
    with pytest.raises(InvalidEventError, match="expected text"):
        graph.emit(Event(type="", payload={}))
    graph.emit(note("then"))
    assert graph.flush_sinks(PATIENCE_S)
    assert (texts(sink), positions(sink)) == (["then"], [1])


def test_of_a_commit_that_another_writer_forestalled_nothing_comes(opened: Callable[[], Graph]) -> None:
    one, two = opened(), opened()
    sink = RecordingSink()
    one.add_sink(sink)

    def write() -> None:
        with one.batch():
            one.add_object("Entity", id="api")
            two.add_object("Entity", id="api")

    with pytest.raises(ConcurrentWriterError, match="the graph holds an object 'api' already"):
        write()
    one.emit(note("then"))
    assert one.flush_sinks(PATIENCE_S)
    assert (texts(sink), positions(sink)) == (["then"], [2])


class Unwilling(InMemoryGraphStore):
    """A graph store that a test can make unreachable."""

    reachable = True

    def apply(self, changes, *, expected, new):
        if not self.reachable:
            raise ServerError("gone")
        return super().apply(changes, expected=expected, new=new)


def test_what_is_saved_is_delivered_even_if_it_could_not_be_projected() -> None:
    store = Unwilling()
    graph, sink, heard = Graph(store=store), RecordingSink(), []
    graph.add_sink(sink)
    graph.add_listener(lambda event: heard.append(event.payload["text"]))
    store.reachable = False
    with pytest.raises(ProjectionError, match="saved, the graph could not take them yet: gone"):
        graph.emit(note("saved"))
    store.reachable = True
    graph.emit(note("next"))
    assert graph.close_sinks(PATIENCE_S)
    assert (texts(sink), positions(sink), heard) == (["saved", "next"], [1, 2], ["saved", "next"])


def test_a_sink_that_edits_what_it_gets_harms_nobody(graph: Graph) -> None:
    def spoil(event: Event) -> None:
        event.payload["object"]["data"]["label"] = "spoilt"
        event.payload.clear()

    spoiler, other, heard = Calling(spoil), RecordingSink(), []
    graph.add_sink(spoiler)
    graph.add_sink(other)
    graph.add_listener(spoil)
    graph.add_listener(heard.append)
    returned = graph.add_object("Entity", {"label": "Checkout API"}, id="api")
    assert graph.flush_sinks(PATIENCE_S)
    assert spoiler.events[0].payload == {}
    assert returned.data == {"label": "Checkout API"}
    assert graph.get_object("api") == returned
    assert other.events == heard == list(graph.events)
    assert heard[0].payload["object"]["data"] == {"label": "Checkout API"}


def test_the_order_is_that_of_the_log_under_many_threads(graph: Graph) -> None:
    sinks = [RecordingSink(), RecordingSink()]
    for n, sink in enumerate(sinks):
        graph.add_sink(sink, name=f"sink {n}", queue_capacity=10_000)

    def commit(writer: int) -> None:
        for n in range(15):
            with graph.batch():
                graph.emit(note(f"{writer}.{n}"))
                graph.emit(note(f"{writer}.{n} again"))

    threads = [threading.Thread(target=commit, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert graph.flush_sinks(PATIENCE_S)
    for sink in sinks:
        assert positions(sink) == list(range(1, 181))
        assert sink.events == list(graph.events)


def test_two_graphs_may_share_a_sink(memory: Graph) -> None:
    other, sink = Graph(), RecordingSink()
    memory.add_sink(sink)
    other.add_sink(sink)
    memory.emit(note("one"))
    other.emit(note("two"))
    assert memory.close_sinks(PATIENCE_S)
    assert other.close_sinks(PATIENCE_S)
    runs = {context.run_id: event.payload["text"] for event, context in sink.deliveries}
    assert runs == {memory._log.run_id: "one", other._log.run_id: "two"}


def test_two_graphs_do_not_share_a_file(memory: Graph, tmp_path: Path) -> None:
    other, sink = Graph(), JSONLEventSink(tmp_path / "events.jsonl")
    memory.add_sink(sink)
    assert memory.flush_sinks(PATIENCE_S)
    other.add_sink(sink)
    assert not other.flush_sinks(PATIENCE_S)
    assert works(memory)
    assert works(other)
    [failed] = other.sink_statuses()
    assert (failed.state, failed.last_error_operation) == ("failed", "open")
    assert "is open already; give each graph a JSONLEventSink of its own" in failed.last_error
    assert memory.close_sinks(PATIENCE_S)
    assert len(sink.path.read_text("utf-8").splitlines()) == 1
