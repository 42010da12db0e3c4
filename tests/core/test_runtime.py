"""Behaviours: what triggers them, what they see, what they commit. Every test runs in memory and in FalkorDB."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from contextmesh.core.events import Event, TickingClock
from contextmesh.core.graph import Graph
from contextmesh.core.memory import InMemoryEventStore, InMemoryGraphStore
from contextmesh.core.reader import Reader
from contextmesh.core.runtime import MAX_VIEWS, Behavior, Context, Runtime, Step, behavior
from contextmesh.errors import AlreadyExistsError, ConcurrentWriterError, UsageError
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server

START = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["memory", "falkordb"])
def opened(request: pytest.FixtureRequest, server: Server, name: str) -> Callable[[], Graph]:
    """Open the test's graph; each call is another process's view of the same log and graph."""
    log, store = InMemoryEventStore(), InMemoryGraphStore()

    def opened() -> Graph:
        if request.param == "memory":
            return Graph(log, store, clock=TickingClock(START))
        return Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name), clock=TickingClock(START))

    return opened


@pytest.fixture
def graph(opened: Callable[[], Graph]) -> Graph:
    return opened()


def greeter(name: str = "greeter", *, error: Exception | None = None, **declared: Any) -> Behavior:
    """Return a behaviour that welcomes each guest."""
    fields = {"on": ["object.created"], "where": {"object.type": "Guest"}, **declared}

    @behavior(name=name, **fields)
    def greet(event: Event, graph: Graph, ctx: Context) -> None:
        graph.add_object("Greeting", {"to": event.payload["id"]}, id=f"hello.{event.payload['id']}", **ctx.cause)
        if error:
            raise error

    return greet


def seen(view: dict[str, Any], graph: Graph, trigger: Event | None = None) -> Any:
    """Return the view that a behaviour of this declaration gets."""
    views = []

    @behavior(name="looker", on=["looked"], view=view)
    def look(event: Event, graph: Graph, ctx: Context) -> None:
        views.append(ctx.view)

    graph.emit(trigger or Event(type="looked", payload={}))
    Runtime(graph, [look]).step()
    return views[0]


def types(events: Any) -> list[str]:
    return [event.type for event in events]


# what is pending


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
    quiet = [behavior(name=name, on=["object.created"], where={"object.type": "Guest"})(_nothing) for name in "zax"]
    assert [step.behavior for step in Runtime(graph, quiet).run()] == ["z", "a", "x"]


def _nothing(event: Event, graph: Graph, ctx: Context) -> None:
    return


def test_names_are_unique(graph: Graph) -> None:
    with pytest.raises(UsageError, match=r"behaviors share a name among \['greeter', 'greeter'\]"):
        Runtime(graph, [greeter(), greeter()])


def test_an_unknown_key_of_a_view_is_refused() -> None:
    with pytest.raises(UsageError, match="behavior 'greeter': its view names kinds; expected around, depth, inc"):
        greeter(view={"kinds": ["Guest"]})


@pytest.mark.parametrize("type_", ["behavior.started", "runtime.opened", "my.own"])
def test_any_event_type_may_be_named(graph: Graph, type_: str) -> None:
    graph.emit(Event(type=type_, payload={"behavior": "other", "trigger": "evt_000"}))
    runtime = Runtime(graph, [behavior(name="listener", on=[type_])(_nothing)])
    assert [item.event.type for item in runtime.pending()] == [type_]


def test_what_a_promote_brought_never_triggers(graph: Graph) -> None:
    marker = graph.emit(Event(type="promote.applied", payload={"from_run": "alt"}))
    graph.add_object("Guest", id="ada", caused_by=marker.id)
    graph.add_object("Guest", id="bob", caused_by="evt_other")
    assert [item.event.payload["id"] for item in Runtime(graph, [greeter()]).pending()] == ["bob"]
    assert [item.event.payload["id"] for item in Runtime(graph, [greeter()], after=0).pending()] == ["bob"]


# one step


def test_a_step_commits_its_records_and_its_completion_as_one_batch(graph: Graph) -> None:
    graph.add_object("Guest", id="ada", frame_id="Run#1")
    step = Runtime(graph, [greeter()]).step()
    assert step is not None
    assert (step.behavior, step.status) == ("greeter", "completed")
    assert types(step.events) == ["behavior.started", "object.created", "behavior.completed"]
    assert [event.id for event in step.events] == [event.id for event in graph.events][1:]
    assert {(event.actor, event.caused_by, event.frame_id) for event in step.events} == {
        ("greeter", step.trigger.id, "Run#1")
    }
    entries = graph._log.read(1, 1)
    assert [entry.last for entry in entries] == [4, 4, 4]
    assert graph.get_object("hello.ada").data == {"to": "ada"}


def test_a_step_without_a_trigger_is_none(graph: Graph) -> None:
    runtime = Runtime(graph, [greeter()])
    assert runtime.step() is None
    assert runtime.run() == []


def test_run_goes_on_with_what_its_steps_trigger(graph: Graph) -> None:
    graph.add_object("Guest", id="ada")

    @behavior(name="waiter", on=["object.created"], where={"object.type": "Greeting"})
    def serve(event: Event, graph: Graph, ctx: Context) -> None:
        graph.add_object("Drink", id=f"drink.{event.payload['id']}", **ctx.cause)

    steps = Runtime(graph, [greeter(), serve]).run()
    assert [step.behavior for step in steps] == ["greeter", "waiter"]
    assert graph.get_object("drink.hello.ada") is not None
    assert steps[1].trigger.id == steps[0].events[1].id


def test_a_failure_writes_its_own_event_and_nothing_else(graph: Graph) -> None:
    graph.add_object("Guest", id="ada", frame_id="Run#1")
    runtime = Runtime(graph, [greeter(error=ZeroDivisionError("no such table"))])
    with pytest.raises(ZeroDivisionError, match="no such table"):
        runtime.step()
    assert types(graph.events) == ["object.created", "behavior.failed"]
    failed = graph.events[-1]
    assert failed.payload == {
        "behavior": "greeter",
        "trigger": graph.events[0].id,
        "error": "ZeroDivisionError: no such table",
    }
    assert (failed.frame_id, failed.actor) == ("Run#1", "greeter")
    assert graph.get_object("hello.ada") is None


def test_a_failure_is_settled_until_it_is_retried(opened: Callable[[], Graph]) -> None:
    graph = opened()
    graph.add_object("Guest", id="ada")
    broken = Runtime(graph, [greeter(error=ValueError("closed"))])
    with pytest.raises(ValueError, match="closed"):
        broken.run()
    assert broken.pending() == []
    assert broken.run() == []
    with pytest.raises(ValueError, match="closed"):
        broken.run(retry=True)
    again = Runtime(opened(), [greeter()])
    assert again.step() is None
    assert [item.event.payload["id"] for item in again.pending(retry=True)] == ["ada"]
    assert [step.status for step in again.run(retry=True)] == ["completed"]
    assert again.pending(retry=True) == []
    assert again.run(retry=True) == []


def test_pending_is_oldest_first_also_with_failed_ones(graph: Graph) -> None:
    graph.add_object("Guest", id="ada", frame_id="Run#1")
    graph.add_object("Guest", id="bob", frame_id="Run#2")
    runtime = Runtime(graph, [greeter(error=ValueError("closed"))])
    with pytest.raises(ValueError, match="closed"):
        runtime.step("Run#2")
    assert [item.event.payload["id"] for item in runtime.pending(retry=True)] == ["ada", "bob"]


def test_a_step_that_another_process_took_first_is_told_apart(opened: Callable[[], Graph]) -> None:
    graph, elsewhere = opened(), opened()
    graph.add_object("Guest", id="ada")
    raced: list[Step | None] = []

    @behavior(name="greeter", on=["object.created"], where={"object.type": "Guest"})
    def slow(event: Event, graph: Graph, ctx: Context) -> None:
        raced.append(Runtime(elsewhere, [greeter()]).step())
        graph.add_object("Greeting", {"to": "ada"}, id="hello.ada", **ctx.cause)

    step = Runtime(graph, [slow]).step()
    assert step is not None
    assert (step.status, step.events) == ("elsewhere", ())
    assert [other.status for other in raced if other] == ["completed"]
    assert types(graph.events).count("behavior.completed") == 1
    assert len(graph.objects("Greeting")) == 1


def test_a_taken_id_that_no_other_process_explains_is_a_failure(graph: Graph) -> None:
    graph.add_object("Guest", id="ada")
    graph.add_object("Greeting", id="hello.ada")
    with pytest.raises(AlreadyExistsError, match=r"the graph holds an object 'hello\.ada' already"):
        Runtime(graph, [greeter()]).step()
    assert types(graph.events)[-1] == "behavior.failed"


def test_another_writer_in_between_does_not_disturb_a_step(opened: Callable[[], Graph]) -> None:
    graph, elsewhere = opened(), opened()
    graph.add_object("Guest", id="ada")

    @behavior(name="greeter", on=["object.created"], where={"object.type": "Guest"})
    def slow(event: Event, graph: Graph, ctx: Context) -> None:
        elsewhere.add_object("Table", id="t1")
        graph.add_object("Greeting", {"to": "ada"}, id="hello.ada", **ctx.cause)

    step = Runtime(graph, [slow]).step()
    assert step is not None
    assert step.status == "completed"
    assert types(step.events) == ["behavior.started", "object.created", "behavior.completed"]
    assert {row.id for row in graph.objects()} == {"ada", "t1", "hello.ada"}


# the view


@pytest.fixture
def chain(graph: Graph) -> Graph:
    """Four objects in a row, a -> b -> c -> d, of the kinds Odd and Even."""
    for key, kind in zip("abcd", ["Odd", "Even", "Odd", "Even"], strict=True):
        graph.add_object(kind, {"size": ord(key) - 96}, id=key)
    for near, far in zip("abc", "bcd", strict=True):
        graph.add_relation(near, far, "NEXT", id=f"{near}{far}")
    return graph


def test_a_view_without_a_declaration_is_empty(chain: Graph) -> None:
    view = seen({}, chain)
    assert (view.objects(), view.relations(), view.events(), view.hits, view.paths) == ([], [], [], None, None)
    assert view.position == 8


def test_include_types_shows_these_kinds_and_the_relations_among_them(chain: Graph) -> None:
    chain.add_relation("a", "c", "SKIPS", id="ac")
    view = seen({"include_types": ["Odd"]}, chain)
    assert [row.id for row in view.objects()] == ["a", "c"]
    assert [row.id for row in view.relations()] == ["ac"]
    both = seen({"include_types": ["Odd", "Even"]}, chain)
    assert [row.id for row in both.objects()] == ["a", "b", "c", "d"]
    assert [row.id for row in both.relations()] == ["ab", "ac", "bc", "cd"]


@pytest.mark.parametrize(
    ("declared", "objects", "relations"),
    [
        ({"depth": 0}, ["b"], []),
        ({}, ["a", "b", "c"], ["ab", "bc"]),
        ({"depth": 2}, ["a", "b", "c", "d"], ["ab", "bc", "cd"]),
        ({"depth": 2, "include_types": ["Even"]}, ["b", "d"], []),
    ],
)
def test_around_shows_what_lies_near_the_payloads_object(
    chain: Graph, declared: dict[str, Any], objects: list[str], relations: list[str]
) -> None:
    trigger = Event(type="looked", payload={"at": {"id": "b"}})
    view = seen({"around": "at.id", **declared}, chain, trigger)
    assert [row.id for row in view.objects()] == objects
    assert [row.id for row in view.relations()] == relations


def test_around_takes_a_list_of_ids_and_none(chain: Graph) -> None:
    several = Event(type="looked", payload={"at": ["d", "a"]})
    assert [row.id for row in seen({"around": "at", "depth": 0}, chain, several).objects()] == ["a", "d"]
    assert seen({"around": "at"}, chain, Event(type="looked", payload={})).objects() == []


def test_recent_events_are_the_last_ones_oldest_first(chain: Graph) -> None:
    events = list(chain.events)
    view = seen({"recent_events": 3}, chain)
    assert [event.id for event in view.events()][:2] == [event.id for event in events[-2:]]
    assert types(view.events())[-1] == "looked"
    assert len(seen({"recent_events": 100}, chain).events()) == 11  # 7 of the chain, 3 of the first look, and its own


def test_search_and_paths_are_called_with_trigger_and_reader(chain: Graph) -> None:
    def search(event: Event, reader: Reader) -> list[str]:
        assert not isinstance(reader, Graph)
        return [row.id for row in reader.objects(where={"size": {">=": event.payload["least"]}})]

    def paths(event: Event, reader: Reader) -> int:
        return len(reader.relations(source="a"))

    view = seen({"search": search, "paths": paths}, chain, Event(type="looked", payload={"least": 3}))
    assert view.hits == ["c", "d"]
    assert view.paths == 1


def test_a_views_objects_can_be_filtered_as_a_graphs(chain: Graph) -> None:
    view = seen({"include_types": ["Odd", "Even"]}, chain)
    for where in ({"size": {">": 1}}, {"size": 2}, {"size": None}, {"size": {"in": [1, 4]}}):
        assert [row.id for row in view.objects(where=where)] == [row.id for row in chain.objects(where=where)]
    assert [row.id for row in view.objects("Even", {"size": {"<": 4}})] == ["b"]
    assert [row.id for row in view.relations("NEXT")] == ["ab", "bc", "cd"]
    assert view.relations("OTHER") == []


def test_a_view_shows_the_moment_before_its_step_wrote_anything(graph: Graph) -> None:
    graph.add_object("Guest", id="ada")
    counted = []

    @behavior(name="writer", on=["object.created"], where={"object.type": "Guest"}, view={"include_types": ["Note"]})
    def write(event: Event, graph: Graph, ctx: Context) -> None:
        graph.add_object("Note", id="n1", **ctx.cause)
        counted.append((len(ctx.view.objects()), len(graph.objects("Note"))))

    step = Runtime(graph, [write]).step()
    assert counted == [(0, 1)]
    graph.add_object("Note", id="n2")
    assert step is not None
    assert step.view.objects() == []


def test_editing_a_view_changes_neither_it_nor_the_graph(chain: Graph) -> None:
    view = seen({"include_types": ["Odd", "Even"], "recent_events": 1}, chain)
    view.objects()[0].data["size"] = 99
    view.relations()[0].data["edited"] = True
    view.events()[0].payload["edited"] = True
    assert view.objects()[0].data == {"size": 1}
    assert view.relations()[0].data == {}
    assert "edited" not in view.events()[0].payload
    assert chain.get_object("a").data == {"size": 1}
    assert not hasattr(view, "add_object")
    with pytest.raises(AttributeError, match="cannot assign to field 'position'"):
        view.position = 0


def test_a_view_is_built_again_when_the_graph_moves(opened: Callable[[], Graph]) -> None:
    graph, elsewhere = opened(), opened()
    graph.emit(Event(type="looked", payload={}))
    calls = []

    def search(event: Event, reader: Reader) -> int:
        if len(calls) < MAX_VIEWS - 1:
            elsewhere.add_object("Table", id=f"t{len(calls)}")
        calls.append(None)
        return len(reader.objects("Table"))

    looker = behavior(name="looker", on=["looked"], view={"search": search})(_nothing)
    step = Runtime(graph, [looker]).step()
    assert step is not None
    assert len(calls) == 5
    assert step.view.hits == 4
    assert step.view.position == 5


def test_a_view_that_never_rests_is_given_up(opened: Callable[[], Graph]) -> None:
    graph, elsewhere = opened(), opened()
    graph.emit(Event(type="looked", payload={}))

    def search(event: Event, reader: Reader) -> None:
        elsewhere.add_object("Table")

    looker = behavior(name="looker", on=["looked"], view={"search": search})(_nothing)
    with pytest.raises(ConcurrentWriterError, match="other writers moved the graph 5 times while a view was built"):
        Runtime(graph, [looker]).step()
    assert types(graph.events)[-1] == "behavior.failed"


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
