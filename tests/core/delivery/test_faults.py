"""Sinks that raise, hang or call back: emit is unharmed, and the status says what happened."""

import subprocess
import sys
from pathlib import Path

import pytest

from contextmesh.core.graph import Graph
from contextmesh.core.sinks import RecordingSink
from contextmesh.errors import AlreadyExistsError, NotFoundError
from tests.core.delivery.notes import names, note, texts, works
from tests.core.faulty import PATIENCE_S, Calling, Gated, Raising

ROOT = Path(__file__).parents[3]


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
