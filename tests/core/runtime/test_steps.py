"""One step: what a behaviour commits, and what its failure leaves."""

from collections.abc import Callable

import pytest

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.runtime import Context, Runtime, Step, behavior
from contextmesh.errors import AlreadyExistsError
from tests.core.branching import types
from tests.core.runtime.greeting import greeter


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
