"""How a graph's commits reach its sinks and listeners. What touches the store runs in memory and in FalkorDB."""

import gc
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contextmesh.core.events import Event, TickingClock
from contextmesh.core.graph import Graph
from contextmesh.core.memory import InMemoryEventStore, InMemoryGraphStore
from contextmesh.core.sinks import JSONLEventSink, RecordingSink
from contextmesh.errors import (
    AlreadyExistsError,
    ConcurrentWriterError,
    InvalidEventError,
    NotFoundError,
    ProjectionError,
    ServerError,
    UsageError,
)
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from tests.core.faulty import PATIENCE_S, Calling, Gated, Raising

ROOT = Path(__file__).parents[2]
START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["memory", "falkordb"])
def opened(request: pytest.FixtureRequest, server: Server, name: str) -> Iterator[Callable[[], Graph]]:
    """Open the test's graph; each call is another process's view of the same log and graph."""
    log, store, graphs = InMemoryEventStore(), InMemoryGraphStore(), []

    def opened() -> Graph:
        if request.param == "memory":
            graphs.append(Graph(log, store, clock=TickingClock(START)))
        else:
            stores = FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name)
            graphs.append(Graph(*stores, clock=TickingClock(START)))
        return graphs[-1]

    yield opened
    for graph in graphs:
        graph.close_sinks(PATIENCE_S)


@pytest.fixture
def graph(opened: Callable[[], Graph]) -> Graph:
    return opened()


@pytest.fixture
def memory() -> Iterator[Graph]:
    """A graph whose store makes no difference."""
    graph = Graph(clock=TickingClock(START))
    yield graph
    graph.close_sinks(PATIENCE_S)


def note(text: str) -> Event:
    return Event(type="note.taken", payload={"text": text})


def texts(sink: RecordingSink) -> list[str]:
    return [event.payload["text"] for event in sink.events]


def positions(sink: RecordingSink) -> list[int]:
    return [context.sequence for _, context in sink.deliveries]


def names(graph: Graph) -> list[tuple[str, str]]:
    return [(status.name, status.state) for status in graph.sink_statuses()]


def works(graph: Graph) -> bool:
    """Whether the graph still commits and reads."""
    row = graph.add_object("Entity")
    return graph.get_object(row.id) == row


# What is delivered


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
    with suppress(ConcurrentWriterError), one.batch():
        one.add_object("Entity", id="api")
        two.add_object("Entity", id="api")
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


# Faults: emit is unharmed, and the status says what happened


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("operation", ["open", "on_event", "flush"])
def test_a_sink_that_raises(graph: Graph, operation: str, error: type[BaseException]) -> None:
    healthy = RecordingSink()
    graph.add_sink(Raising(operation, error), name="raising")
    graph.add_sink(healthy)
    assert works(graph)
    assert not graph.flush_sinks(PATIENCE_S)
    assert works(graph)
    assert not graph.flush_sinks(PATIENCE_S)
    assert len(healthy.events) == 2
    assert names(graph) == [("RecordingSink", "running"), ("raising", "failed")]
    failed = graph.sink_statuses()[1]
    assert (failed.last_error, failed.last_error_operation, failed.errors) == (error.__name__, operation, 1)
    assert graph.remove_sink("raising")
    assert graph.flush_sinks(PATIENCE_S)


def test_a_sink_that_raises_when_it_is_closed(memory: Graph) -> None:
    memory.add_sink(Raising("close", SystemExit), name="raising")
    assert works(memory)
    assert not memory.close_sinks(PATIENCE_S)
    assert names(memory) == [("raising", "failed")]
    assert not memory.close_sinks(PATIENCE_S)  # the failure stays in sight
    assert names(memory) == [("raising", "failed")]
    assert memory.remove_sink("raising", timeout=PATIENCE_S)
    assert names(memory) == []


@pytest.mark.parametrize("policy", ["drop_newest", "drop_oldest", "fail_sink"])
def test_no_policy_lets_a_slow_sink_delay_a_commit(graph: Graph, policy: str) -> None:
    slow, quick = Gated(), RecordingSink()
    graph.add_sink(slow, queue_capacity=3, overflow_policy=policy)
    graph.add_sink(quick)
    for n in range(50):  # would never end if a commit waited for the gate
        graph.emit(note(f"{n}"))
    assert quick.wait_for(50, PATIENCE_S)
    status = graph.sink_statuses()[0]
    assert status.state == ("failed" if policy == "fail_sink" else "running")
    assert status.delivered == 0
    slow.gate.set()


def test_a_sink_that_hangs(graph: Graph) -> None:
    sink = Gated()
    handle = graph.add_sink(sink, name="hanging")
    graph.emit(note("one"))
    graph.emit(note("two"))
    assert not graph.flush_sinks(0)
    assert not graph.remove_sink(sink, timeout=0)
    graph.emit(note("three"))  # it is detached
    assert names(graph) == [("hanging", "closing")]
    assert repr(handle) == "<SinkHandle 'hanging': closing>"
    assert not graph.close_sinks(0)
    with pytest.raises(AlreadyExistsError, match="the graph has a sink 'hanging' that is closing; remove it, or"):
        graph.add_sink(RecordingSink(), name="hanging")
    sink.gate.set()
    assert graph.remove_sink("hanging", timeout=PATIENCE_S)
    assert texts(sink) == ["one", "two"]
    assert names(graph) == []
    assert handle.close()
    assert handle.status().state == "closed"


@pytest.mark.parametrize("retry", ["sink", "handle", "name", "all"])
def test_a_close_that_ended_behind_our_back_can_be_repeated(memory: Graph, retry: str) -> None:
    sink = Gated()
    handle = memory.add_sink(sink)
    memory.emit(note("one"))
    assert not memory.remove_sink(sink, timeout=0)
    sink.gate.set()
    assert handle._worker.join(PATIENCE_S)
    assert names(memory) == []
    if retry == "all":
        assert memory.close_sinks(PATIENCE_S)
    else:
        assert memory.remove_sink({"sink": sink, "handle": handle, "name": handle.name}[retry])
    with pytest.raises(NotFoundError, match="the graph has no sink 'Gated'; its sinks: none"):
        memory.remove_sink("Gated")


def test_a_failed_sink_that_hangs_is_not_forgotten_before_it_ends(memory: Graph) -> None:
    sink = Gated()
    memory.add_sink(sink, queue_capacity=1, overflow_policy="fail_sink")
    memory.emit(note("one"))
    assert sink.reached.wait(PATIENCE_S)
    for _ in range(2):
        memory.emit(note("one"))
    assert names(memory) == [("Gated", "failed")]
    assert not memory.remove_sink(sink, timeout=0)
    assert names(memory) == [("Gated", "failed")]
    sink.gate.set()
    assert memory.remove_sink(sink, timeout=PATIENCE_S)
    assert names(memory) == []


def run(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-X", "dev", "-c", f"from contextmesh.core.graph import Graph\n{code}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=3 * PATIENCE_S)


def test_a_sink_that_never_returns_does_not_keep_the_process_alive() -> None:
    done = run(
        "import threading\n"
        "from contextmesh.core.sinks import CallbackSink\n"
        "reached = threading.Event()\n"
        "def hang(event, context):\n"
        "    reached.set()\n"
        "    threading.Event().wait()\n"
        "graph = Graph()\n"
        "graph.add_sink(CallbackSink(hang))\n"
        "graph.add_object('Entity')\n"
        "reached.wait()\n"
        "print(graph.close_sinks(0), graph.sink_statuses()[0].state)\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False closing\n", "")


def test_a_process_ends_quietly_with_sinks_attached(tmp_path: Path) -> None:
    done = run(
        "from contextmesh.core.sinks import JSONLEventSink, RecordingSink\n"
        "graph = Graph()\n"
        "graph.add_sink(RecordingSink())\n"
        f"graph.add_sink(JSONLEventSink({str(tmp_path / 'events.jsonl')!r}))\n"
        "for _ in range(100): graph.add_object('Entity')\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_sink_may_commit(graph: Graph) -> None:
    sink = Calling(lambda event: event.type == "note.taken" and graph.add_object("Entity", id=event.payload["text"]))
    graph.add_sink(sink)
    with graph.batch():
        graph.emit(note("a"))
        graph.emit(note("b"))
    assert sink.wait_for(4, PATIENCE_S)
    assert [event.type for event in sink.events] == ["note.taken"] * 2 + ["object.created"] * 2
    assert [row.id for row in graph.objects("Entity")] == ["a", "b"]


def test_a_sink_may_remove_itself(memory: Graph) -> None:
    sink = Calling(lambda _: memory.remove_sink(sink, timeout=None))
    handle = memory.add_sink(sink)
    memory.emit(note("one"))
    assert handle._worker.join(PATIENCE_S)
    memory.emit(note("two"))
    assert (texts(sink), sink.results) == (["one"], [False])
    assert names(memory) == []
    memory.add_sink(sink)  # its name is free again
    assert names(memory) == [("Calling", "running")]


def test_a_sink_may_flush_and_close_all(memory: Graph) -> None:
    sink = Calling(lambda _: (memory.flush_sinks(PATIENCE_S), memory.close_sinks(PATIENCE_S)))
    memory.add_sink(sink)
    memory.emit(note("one"))
    assert sink.wait_for(1, PATIENCE_S)
    assert sink.results == [(False, False)]


# Names, handles, removal


def test_a_name_that_is_in_use_is_refused(memory: Graph) -> None:
    memory.add_sink(RecordingSink())
    with pytest.raises(AlreadyExistsError, match="the graph has a sink 'RecordingSink' that is running"):
        memory.add_sink(RecordingSink())
    memory.add_sink(RecordingSink(), name="another")
    assert names(memory) == [("RecordingSink", "running"), ("another", "running")]


def test_a_sink_that_is_attached_is_refused(memory: Graph) -> None:
    sink = RecordingSink()
    memory.add_sink(sink)
    with pytest.raises(UsageError, match="this sink is attached as 'RecordingSink' and would take each event twice"):
        memory.add_sink(sink, name="another")
    assert names(memory) == [("RecordingSink", "running")]


def test_what_is_no_sink_is_refused(memory: Graph) -> None:
    with pytest.raises(UsageError, match="a function is no sink"):
        memory.add_sink(lambda event: event)  # type: ignore[arg-type]
    assert names(memory) == []


def test_the_name_of_a_failed_sink_may_be_used_again(memory: Graph) -> None:
    sink = Raising("on_event", ValueError)
    memory.add_sink(sink)
    works(memory)
    assert not memory.flush_sinks(PATIENCE_S)
    assert names(memory) == [("Raising", "failed")]
    memory.add_sink(sink)
    assert names(memory) == [("Raising", "running")]
    works(memory)
    assert memory.flush_sinks(PATIENCE_S)
    assert positions(sink) == [2]


def test_a_handle(memory: Graph) -> None:
    sink = RecordingSink()
    handle = memory.add_sink(sink, name="copy")
    assert (handle.name, repr(handle)) == ("copy", "<SinkHandle 'copy': running>")
    memory.emit(note("one"))
    assert handle.flush(PATIENCE_S)
    assert handle.status() == memory.sink_statuses()[0]
    assert handle.status().delivered == 1
    assert handle.close(PATIENCE_S)
    assert handle.close(PATIENCE_S)
    assert memory.sink_statuses() == []


@pytest.mark.parametrize("by", ["sink", "handle", "name"])
def test_a_sink_is_removed_by_any_of_three(memory: Graph, by: str) -> None:
    sink, other = RecordingSink(), RecordingSink()
    handle = memory.add_sink(sink)
    memory.add_sink(other, name="other")
    memory.emit(note("one"))
    assert memory.remove_sink({"sink": sink, "handle": handle, "name": "RecordingSink"}[by], timeout=PATIENCE_S)
    memory.emit(note("two"))
    assert memory.flush_sinks(PATIENCE_S)
    assert (texts(sink), texts(other)) == (["one"], ["one", "two"])
    assert names(memory) == [("other", "running")]


def test_a_sink_that_is_not_there_cannot_be_removed(memory: Graph) -> None:
    memory.add_sink(RecordingSink(), name="copy")
    with pytest.raises(NotFoundError, match="the graph has no sink 'other'; its sinks: 'copy'"):
        memory.remove_sink("other")
    with pytest.raises(NotFoundError, match="the graph has no such RecordingSink; its sinks: 'copy'"):
        memory.remove_sink(RecordingSink())
    with pytest.raises(NotFoundError, match="the graph has no such SinkHandle; its sinks: 'copy'"):
        memory.remove_sink(Graph().add_sink(RecordingSink(), name="copy"))


def test_a_sink_that_was_removed_may_come_back(memory: Graph) -> None:
    sink = RecordingSink()
    for text in ("one", "two"):
        memory.add_sink(sink)
        memory.emit(note(text))
        assert memory.remove_sink(sink, timeout=PATIENCE_S)
        memory.emit(note("between"))
    assert texts(sink) == ["one", "two"]


def test_without_sinks_all_is_well(memory: Graph) -> None:
    assert (memory.sink_statuses(), memory.flush_sinks(0), memory.close_sinks(0)) == ([], True, True)


def test_closing_all_closes_the_others_while_one_hangs(memory: Graph) -> None:
    hanging, others = Gated(), [RecordingSink(), RecordingSink()]
    memory.add_sink(hanging, name="a")
    handles = [memory.add_sink(sink, name=name) for name, sink in zip("bc", others, strict=True)]
    memory.emit(note("one"))
    assert not memory.close_sinks(0)
    assert all(handle._worker.join(PATIENCE_S) for handle in handles)
    assert names(memory) == [("a", "closing")]
    assert [texts(sink) for sink in others] == [["one"], ["one"]]
    hanging.gate.set()
    assert memory.close_sinks(PATIENCE_S)


def test_a_graph_that_nobody_holds_leaves_no_thread() -> None:
    graph, sink = Graph(), Raising("", ValueError)
    thread = graph.add_sink(sink)._worker._thread
    works(graph)
    del graph
    gc.collect()
    thread.join(PATIENCE_S)
    assert not thread.is_alive()
    assert sink.calls == ["open", "on_event", "close"]


# Listeners


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
        raise KeyboardInterrupt

    memory.add_listener(interrupt)
    with pytest.raises(KeyboardInterrupt):
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
