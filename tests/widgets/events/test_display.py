"""A table's settings, its closing, and how it is displayed, in a running kernel too."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from contextmesh.core.graph import Graph
from contextmesh.errors import UsageError
from contextmesh.widgets import EventTable
from tests.widgets.events.page import Page, rows, settled, taken


@pytest.mark.parametrize("wrong", [0, 1_001, -1, True, 2.0, "20", None])
def test_a_wrong_number_of_rows_is_refused(memory: Graph, wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"rows is .*; expected a whole number from 1 to 1,000"):
        EventTable(memory, rows=wrong)
    assert memory.sink_statuses() == []


def test_several_tables_of_one_graph(memory: Graph, shown: Callable[..., EventTable]) -> None:
    tables = [shown(memory, rows=n) for n in (1, 2, 3)]
    assert [status.name for status in memory.sink_statuses()] == ["EventTable", "EventTable 2", "EventTable 3"]
    for text in ("one", "two", "three"):
        memory.emit(taken(text))
    assert settled(memory)
    assert [len(rows(table)) for table in tables] == [1, 2, 3]


def test_closing_detaches(memory: Graph) -> None:
    table = EventTable(memory)
    memory.emit(taken("one"))
    assert settled(memory)
    table.close()
    assert memory.sink_statuses() == []
    memory.emit(taken("two"))
    table.close()
    assert (table.comm, table._page.comm) == (None, None)
    assert repr(table) == "<EventTable: 1 of 1 events, not live>"


def test_showing_it_leaves_a_still_picture_as_of_now(
    memory: Graph, shown: Callable[..., EventTable], displayed: list[dict[str, Any]]
) -> None:
    table = shown(memory)
    with table._reading:  # the sink's own update waits
        memory.emit(taken("one"))
        table._ipython_display_()
    live, still = displayed
    assert sorted(live) == ["application/vnd.jupyter.widget-view+json", "text/plain"]
    assert live["text/plain"] == still["text/plain"] == "<EventTable: 1 of 1 events, live>"
    assert [row[4] for row in Page(still["text/html"]).rows] == ["about", '{"text":"one"}']
    assert "id=" not in still["text/html"]  # the same table, the same picture


def test_a_closed_table_still_shows_its_still_picture(memory: Graph, displayed: list[dict[str, Any]]) -> None:
    memory.emit(taken("one"))
    table = EventTable(memory)
    table.close()
    table._ipython_display_()
    [still] = displayed
    assert len(Page(still["text/html"]).rows) == 2
    assert "no longer live" in still["text/html"]


def test_in_a_running_kernel(tmp_path: Path) -> None:
    commit = "for n in range(500): _ = graph.emit(Event(type='note.taken', payload={'n': n}))"
    imports = [
        "from contextmesh.core.graph import Graph",
        "from contextmesh.core.events import Event",
        "from contextmesh.widgets import EventTable",
    ]
    cells = [
        "\n".join([*imports, "graph = Graph()", "table = EventTable(graph, rows=3)", commit, "table"]),
        f"{commit}\nassert graph.flush_sinks()\ntable",
        "table.close()\ngraph.sink_statuses()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(
        notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    executed = client.execute()
    outputs = [cell.outputs for cell in executed.cells]
    for cell, total in zip(outputs[:2], ("500", "1,000"), strict=True):
        assert [output.output_type for output in cell] == ["display_data", "display_data"]
        assert cell[0].data["text/plain"] == f"<EventTable: 3 of {total} events, live>"
        assert Page(cell[1].data["text/html"]).rows[1][0] == total
    assert [output.data["text/plain"] for output in outputs[2]] == ["[]"]
    values = [
        state["state"].get("value", "")
        for state in executed.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"].values()
    ]
    assert any("The newest 3 of 1,000 events" in value for value in values)
