"""When the table changes, and what it says when it cannot."""

from collections.abc import Callable

import pytest

from contextmesh.core.graph import Graph
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.errors import ServerError
from contextmesh.widgets import EventTable
from contextmesh.widgets import events as module
from tests.widgets.events.page import PATIENCE_S, note, rows, settled, taken


def test_a_burst_is_shown_by_one_update(memory: Graph, shown: Callable[..., EventTable]) -> None:
    table, updates = shown(memory, rows=3), []
    table._page.observe(updates.append, "value")
    with table._reading:  # nothing is read, and so nothing shown, while the events come
        for n in range(1_000):
            memory.emit(taken(f"{n}"))
    assert settled(memory)
    assert [row[0] for row in rows(table)] == ["1,000", "999", "998"]
    assert len(updates) == 1


def test_dropped_deliveries_are_told_and_leave_no_gap(memory: Graph, shown: Callable[..., EventTable]) -> None:
    table = shown(memory, rows=1_000)
    with memory.batch():
        for n in range(3_000):
            memory.emit(taken(f"{n}"))
    assert settled(memory)
    assert [row[0] for row in rows(table)] == [f"{n:,}" for n in range(3_000, 2_000, -1)]
    assert note(table) == "dropped deliveries: 1,976; the rows are read from the log, and complete"  # 1,024 may wait


class Unreadable(InMemoryEventStore):
    """A log that a test can make unreadable."""

    broken = False

    def count(self) -> int:
        if self.broken:
            raise ServerError("gone <away>")
        return super().count()


def test_a_log_that_cannot_be_read_is_told_until_it_can(shown: Callable[..., EventTable]) -> None:
    log = Unreadable()
    graph = Graph(log)
    graph.emit(taken("one"))
    table = shown(graph)
    log.broken = True
    graph.emit(taken("two"))
    assert settled(graph)
    assert note(table) == "the log could not be read: ServerError: gone <away>"
    assert [row[0] for row in rows(table)] == ["1"]
    with pytest.raises(ServerError, match="gone <away>"):
        table.refresh()
    log.broken = False
    graph.emit(taken("three"))
    assert settled(graph)
    assert ([row[0] for row in rows(table)], note(table)) == (["3", "2", "1"], "")


def test_a_failed_sink_is_told(
    memory: Graph, shown: Callable[..., EventTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(graph: Graph, rows: int) -> None:
        raise SystemExit

    table = shown(memory)
    with monkeypatch.context() as patch:
        patch.setattr(module, "newest", leave)
        memory.emit(taken("one"))
        assert not memory.flush_sinks(PATIENCE_S)
    table.refresh()
    assert note(table).startswith("no longer live: its sink failed in on_event, SystemExit; dropped deliveries: 1;")
    assert repr(table) == "<EventTable: 1 of 1 events, not live>"


def test_a_detached_sink_is_told(memory: Graph, shown: Callable[..., EventTable]) -> None:
    table = shown(memory)
    assert memory.close_sinks(PATIENCE_S)
    memory.emit(taken("one"))
    table.refresh()
    assert (note(table), len(rows(table))) == ("no longer live: its sink is detached", 1)
