"""Which events trigger which behaviours."""

from collections.abc import Callable
from typing import Any

import pytest

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.runtime import Context, Runtime, behavior
from contextmesh.errors import UsageError
from tests.core.branching import types
from tests.core.runtime.greeting import greeter, nothing


def test_only_events_of_its_types_trigger_a_behaviour(graph: Graph) -> None:
    graph.add_object("Guest", id="ada")
    graph.add_object("Table", id="t1")
    graph.add_relation("ada", "t1", "SITS_AT")
    runtime = Runtime(graph, [greeter()])
    assert [(item.behavior.name, item.event.payload["id"]) for item in runtime.pending()] == [("greeter", "ada")]


@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ({}, ["ada", "bob", "t1"]),
        ({"object.type": "Guest"}, ["ada", "bob"]),
        ({"object.type": "Guest", "object.data.age": {">": 40}}, ["bob"]),
        ({"object.data.age": None}, ["t1"]),
        ({"object.data.age": {"in": [36, 37]}}, ["ada"]),
        ({"object.data.age": {"not in": [36]}}, ["bob", "t1"]),
        ({"nowhere.at.all": {"!=": None}}, []),
    ],
)
def test_where_looks_into_the_payload_by_dotted_paths(graph: Graph, where: dict[str, Any], ids: list[str]) -> None:
    graph.add_object("Guest", {"age": 36}, id="ada")
    graph.add_object("Guest", {"age": 50}, id="bob")
    graph.add_object("Table", id="t1")
    runtime = Runtime(graph, [greeter(where=where)])
    assert [item.event.payload["id"] for item in runtime.pending()] == ids


def test_pending_asks_for_one_frame(graph: Graph) -> None:
    graph.add_object("Guest", id="ada", frame_id="Run#1")
    graph.add_object("Guest", id="bob", frame_id="Run#2")
    graph.add_object("Guest", id="eve")
    runtime = Runtime(graph, [greeter()])
    assert [item.event.payload["id"] for item in runtime.pending()] == ["ada", "bob", "eve"]
    assert [item.event.payload["id"] for item in runtime.pending("Run#2")] == ["bob"]
    assert runtime.pending("Run#3") == []
    assert [step.trigger.payload["id"] for step in runtime.run("Run#2")] == ["bob"]
    assert [item.event.payload["id"] for item in runtime.pending()] == ["ada", "eve"]


def test_pending_needs_no_state_of_its_own(opened: Callable[[], Graph]) -> None:
    graph = opened()
    graph.add_object("Guest", id="ada")
    graph.add_object("Guest", id="bob")
    first = Runtime(graph, [greeter()]).step()
    assert first is not None
    again = Runtime(opened(), [greeter()])
    assert [item.event.payload["id"] for item in again.pending()] == ["bob"]
    assert [step.trigger.payload["id"] for step in again.run()] == ["bob"]
    assert Runtime(opened(), [greeter()]).pending() == []


def test_making_a_runtime_runs_nothing(graph: Graph) -> None:
    graph.add_object("Guest", id="ada")
    Runtime(graph, [greeter()]).pending()
    assert types(graph.events) == ["object.created"]


def test_after_takes_what_lies_before_as_settled(graph: Graph) -> None:
    graph.add_object("Guest", id="ada")
    position = graph.position
    graph.add_object("Guest", id="bob")
    assert [item.event.payload["id"] for item in Runtime(graph, [greeter()], after=position).pending()] == ["bob"]


def test_several_behaviours_react_to_one_event_in_the_order_given(graph: Graph) -> None:
    graph.add_object("Guest", id="ada")
    quiet = [behavior(name=name, on=["object.created"], where={"object.type": "Guest"})(nothing) for name in "zax"]
    assert [step.behavior for step in Runtime(graph, quiet).run()] == ["z", "a", "x"]


def test_names_are_unique(graph: Graph) -> None:
    with pytest.raises(UsageError, match=r"behaviors share a name among \['greeter', 'greeter'\]"):
        Runtime(graph, [greeter(), greeter()])


def test_an_unknown_key_of_a_view_is_refused() -> None:
    with pytest.raises(UsageError, match="behavior 'greeter': its view names kinds; expected around, depth, inc"):
        greeter(view={"kinds": ["Guest"]})


@pytest.mark.parametrize("type_", ["behavior.started", "runtime.opened", "my.own"])
def test_any_event_type_may_be_named(graph: Graph, type_: str) -> None:
    graph.emit(Event(type=type_, payload={"behavior": "other", "trigger": "evt_000"}))
    runtime = Runtime(graph, [behavior(name="listener", on=[type_])(nothing)])
    assert [item.event.type for item in runtime.pending()] == [type_]


def test_what_a_promote_brought_never_triggers(graph: Graph) -> None:
    marker = graph.emit(Event(type="promote.applied", payload={"from_run": "alt"}))
    graph.add_object("Guest", id="ada", caused_by=marker.id)
    graph.add_object("Guest", id="bob", caused_by="evt_other")
    assert [item.event.payload["id"] for item in Runtime(graph, [greeter()]).pending()] == ["bob"]
    assert [item.event.payload["id"] for item in Runtime(graph, [greeter()], after=0).pending()] == ["bob"]


def test_a_fork_before_where_a_runtime_began_sees_its_own_triggers() -> None:
    @behavior(name="seer", on=["object.created"])
    def see(event: Event, graph: Graph, ctx: Context) -> None:
        graph.emit(Event(type="note.seen", payload={"id": event.payload["id"]}, **ctx.cause))

    graph = Graph()
    for n in range(5):
        graph.add_object("Entity", id=f"e{n}")
    forked = Runtime(graph, [see], after=5).fork(at_event=2)
    forked.graph.add_object("Entity", id="new")
    assert [trigger.event.payload["id"] for trigger in forked.pending()] == ["new"]
