"""What the table shows: the newest events, each told in a line."""

from collections.abc import Callable
from typing import Any

from contextmesh.core.events import Event, TickingClock
from contextmesh.core.graph import Graph
from contextmesh.widgets import EventTable
from contextmesh.widgets import events as module
from tests.conftest import START
from tests.widgets.events.page import caption, note, rows, settled, taken


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
    assert settled(graph)
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
    assert settled(graph)
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
