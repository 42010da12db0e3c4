"""What the tests of the event table share: a graph, tables that are closed after, what is displayed."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.widgets import EventTable
from contextmesh.widgets import events as module
from tests.conftest import START
from tests.widgets.events.page import PATIENCE_S


@pytest.fixture
def memory() -> Iterator[Graph]:
    """A graph whose store makes no difference."""
    graph = Graph(clock=TickingClock(START))
    yield graph
    graph.close_sinks(PATIENCE_S)


@pytest.fixture
def shown() -> Iterator[Callable[..., EventTable]]:
    """Make tables, and close them after the test."""
    tables: list[EventTable] = []

    def make(graph: Graph, **settings: Any) -> EventTable:
        tables.append(EventTable(graph, **settings))
        return tables[-1]

    yield make
    for table in tables:
        table.close()


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is displayed, in order."""
    outputs: list[dict[str, Any]] = []

    def display(data: dict[str, Any], *, raw: bool) -> None:
        assert raw
        outputs.append(data)

    monkeypatch.setattr(module, "display", display)
    return outputs
