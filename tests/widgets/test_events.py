"""The table of newest events: what it shows, when it changes, and that no event's text becomes markup."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from contextmesh.core.events import Event, TickingClock
from contextmesh.core.graph import Graph
from contextmesh.core.memory import InMemoryEventStore
from contextmesh.errors import ServerError, UsageError
from contextmesh.widgets import EventTable
from contextmesh.widgets import events as module
from tests.conftest import START

ROOT = Path(__file__).parents[2]
PATIENCE_S = 20.0
COLUMNS = ["position", "time (UTC)", "type", "actor", "about"]


class Page(HTMLParser):
    """What a browser would make of a page: its tags, its table and its other texts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.rows: list[list[str]] = []
        self.texts: dict[str, str] = {}
        self._open = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)
        self._open = tag
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self._open in ("bdi", "th"):
            self.rows[-1][-1] += data
        else:
            self.texts[self._open] = self.texts.get(self._open, "") + data


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


def rows(table: EventTable) -> list[list[str]]:
    """The table that the widget shows, without its header."""
    page = Page(table._page.value)
    assert page.rows[:1] in ([], [COLUMNS])
    return page.rows[1:]


def caption(table: EventTable) -> str:
    return Page(table._page.value).texts["caption"]


def note(table: EventTable) -> str:
    return Page(table._page.value).texts.get("p", "")


def settled(graph: Graph) -> None:
    assert graph.flush_sinks(PATIENCE_S)


def taken(text: str) -> Event:
    return Event(type="note.taken", payload={"text": text}, actor="maya")


# What it shows


def test_every_kind_of_event(graph: Graph, shown: Callable[..., EventTable]) -> None:
    table = shown(graph)
    graph.add_object("Entity", {"label": "Checkout API"}, id="api")
    graph.add_object("Memory", {"text": "errors\nrose"}, id="m", actor="maya")
    graph.add_object("Run", id="Run#7")
    graph.add_relation("m", "api", "MENTIONS", id="r")
    graph.patch_object("api", {"tier": 1, "owner": "maya"})
    graph.patch_object("api", {"tier": 2}, expected_version=9)
    graph.remove_relation("r")
    graph.remove_object("m")
    graph.emit(taken("as it is"))
    settled(graph)
    assert [(row[2], row[4]) for row in reversed(rows(table))] == [
        ("object.created", "Entity api: Checkout API"),
        ("object.created", "Memory m: errors rose"),
        ("object.created", "Run Run#7"),
        ("relation.created", "m -MENTIONS-> api"),
        ("patch.proposed", "update api: owner, tier"),
        ("patch.applied", "api: owner, tier"),
        ("patch.proposed", "update api: tier"),
        ("patch.rejected", "api: expected version 9, the object has version 2"),
        ("relation.removed", "m -MENTIONS-> api"),
        ("object.removed", "Memory m"),
        ("note.taken", '{"text":"as it is"}'),
    ]
    assert rows(table)[-2][:4] == ["2", "2026-01-01 00:00:01", "object.created", "maya"]
    assert caption(table) == "The newest 11 of 11 events"
    assert (note(table), repr(table)) == ("", "<EventTable: 11 of 11 events, live>")


def test_the_newest_come_first_and_the_older_are_left_out(memory: Graph, shown: Callable[..., EventTable]) -> None:
    for n in range(1, 1_205):
        memory.emit(taken(f"{n}"))
    table = shown(memory, rows=2)
    assert [(row[0], row[4]) for row in rows(table)] == [("1,204", '{"text":"1204"}'), ("1,203", '{"text":"1203"}')]
    assert caption(table) == "The newest 2 of 1,204 events"


def test_without_events(memory: Graph, shown: Callable[..., EventTable]) -> None:
    table = shown(memory)
    assert (rows(table), caption(table), repr(table)) == ([], "No events yet", "<EventTable: 0 of 0 events, live>")


def test_other_writers_events_come_with_the_next_update(
    log: Any, store: Any, graph: Graph, shown: Callable[..., EventTable]
) -> None:
    table = shown(graph)
    other = Graph(log, store, clock=TickingClock(START))
    other.emit(taken("theirs"))
    assert rows(table) == []
    graph.emit(taken("mine"))
    settled(graph)
    assert [row[4] for row in rows(table)] == ['{"text":"mine"}', '{"text":"theirs"}']


def test_a_long_text_is_cut(memory: Graph, shown: Callable[..., EventTable]) -> None:
    memory.add_object("Memory", {"label": "x" * 1_000}, id="m")
    memory.add_object("Memory", {"label": "y" + " " * 1_000 + "z"}, id="n")
    second, first = (row[4] for row in rows(shown(memory)))
    assert first == "Memory m: " + "x" * 150 + " …"
    assert second == "Memory n: y …"


def test_a_stage_and_a_question_are_told_in_words() -> None:
    note = {"behavior": "planner", "trigger": "evt_007"}
    for kind in ("started", "completed"):
        assert module.about(Event(type=f"behavior.{kind}", payload=note)) == "planner, by evt_007"
    failed = Event(type="behavior.failed", payload={**note, "error": "HandoffError: gone"})
    assert module.about(failed) == "planner, by evt_007: HandoffError: gone"
    asked = Event(type="question.asked", payload={"run": "Run#1", "question": "Who owns it?", "session": "s"})
    assert module.about(asked) == "Run#1: Who owns it?"


def test_a_payload_of_another_form_is_shown_as_it_is() -> None:
    event = Event(type="object.created", payload={"id": "a", "object": ["b"]})
    assert module.about(event) == '{"id":"a","object":["b"]}'
    event = Event(type="patch.applied", payload={"target": "a", "diff": 1})
    assert module.about(event) == '{"diff":1,"target":"a"}'


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></table></div><style>*{display:none}</style>",
    "&lt;b&gt; & \"quoted\" 'text'",
    "<!--",
    "\u202eright to left",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(memory: Graph, shown: Callable[..., EventTable], text: str) -> None:
    plain = set(Page(shown(memory).to_html()).tags) | {"thead", "tbody", "tr", "th", "td", "bdi"}
    memory.add_object("Entity", {"label": text}, id="api", actor=text)
    memory.emit(Event(type=text, payload={"text": text}))
    table = shown(memory)
    page = Page(table.to_html())
    assert page.tags == plain
    assert page.rows == [
        COLUMNS,
        [
            "2",
            "2026-01-01 00:00:01",
            text,
            "system",
            json.dumps({"text": text}, ensure_ascii=False, separators=(",", ":")),
        ],
        ["1", "2026-01-01 00:00:00", "object.created", text, f"Entity api: {text}"],
    ]


def test_hostile_errors_stay_text(memory: Graph, shown: Callable[..., EventTable]) -> None:
    table = shown(memory)
    table._trouble = HOSTILE[0]
    page = Page(table.to_html())
    assert page.texts["p"] == HOSTILE[0]
    assert "script" not in page.tags


def test_colours_are_the_notebooks_own(memory: Graph, shown: Callable[..., EventTable]) -> None:
    css = Page(shown(memory).to_html()).texts["style"]
    assert "color: var(--jp-content-font-color1, inherit)" in css
    assert "background: transparent" in css


# When it changes


def test_a_burst_is_shown_by_one_update(memory: Graph, shown: Callable[..., EventTable]) -> None:
    table, updates = shown(memory, rows=3), []
    table._page.observe(updates.append, "value")
    with table._reading:  # nothing is read, and so nothing shown, while the events come
        for n in range(1_000):
            memory.emit(taken(f"{n}"))
    settled(memory)
    assert [row[0] for row in rows(table)] == ["1,000", "999", "998"]
    assert len(updates) == 1


def test_dropped_deliveries_are_told_and_leave_no_gap(memory: Graph, shown: Callable[..., EventTable]) -> None:
    table = shown(memory, rows=1_000)
    with memory.batch():
        for n in range(3_000):
            memory.emit(taken(f"{n}"))
    settled(memory)
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
    settled(graph)
    assert note(table) == "the log could not be read: ServerError: gone <away>"
    assert [row[0] for row in rows(table)] == ["1"]
    with pytest.raises(ServerError, match="gone <away>"):
        table.refresh()
    log.broken = False
    graph.emit(taken("three"))
    settled(graph)
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


# Settings, closing, display


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
    settled(memory)
    assert [len(rows(table)) for table in tables] == [1, 2, 3]


def test_closing_detaches(memory: Graph) -> None:
    table = EventTable(memory)
    memory.emit(taken("one"))
    settled(memory)
    table.close()
    assert memory.sink_statuses() == []
    memory.emit(taken("two"))
    table.close()
    assert (table.comm, table._page.comm) == (None, None)
    assert repr(table) == "<EventTable: 1 of 1 events, not live>"


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What is displayed, in order."""
    outputs: list[dict[str, Any]] = []

    def display(data: dict[str, Any], *, raw: bool) -> None:
        assert raw
        outputs.append(data)

    monkeypatch.setattr(module, "display", display)
    return outputs


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


def test_the_room_loads_nothing_before_it_is_used() -> None:
    code = "import sys, contextmesh.widgets; print('ipywidgets' in sys.modules, dir(contextmesh.widgets))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    names = (
        "AskPanel DetailPanel EventTable EvidenceTable Explorer FactTable GraphView HistoryPanel MemoryPanel Pipeline"
    )
    assert done.stdout == f"False {[*names.split(), 'RunPanel', 'State']}\n"
