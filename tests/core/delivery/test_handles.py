"""Names, handles and the removal of sinks."""

import gc

import pytest

from contextmesh.core.graph import Graph
from contextmesh.core.sinks import RecordingSink
from contextmesh.errors import AlreadyExistsError, NotFoundError, UsageError
from tests.core.delivery.notes import names, note, positions, texts, works
from tests.core.faulty import PATIENCE_S, Gated, Raising


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
