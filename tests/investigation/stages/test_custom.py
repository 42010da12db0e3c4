"""A fifth stage of one's own, on a workspace's graph."""

from collections.abc import Callable
from typing import Any

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.runtime import Context, Runtime, behavior
from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION

views: list[Any] = []


@behavior(
    name="reviewer",
    on=["object.created"],
    where={"object.type": "AgentRun", "object.data.stage": "verifier"},
    view={"around": "id", "depth": 1, "include_types": ["AgentRun", "Run"], "recent_events": 2},
)
def reviewer(event: Event, graph: Graph, ctx: Context) -> None:
    run = event.payload["object"]["data"]["run"]
    views.append(ctx.view)
    data = {
        "run": run,
        "label": "Review",
        "text": f"{len(ctx.view.objects('AgentRun'))} records near",
        "stage": "reviewer",
    }
    graph.add_object("Decision", data, id=f"{run}.review", **ctx.cause)
    graph.add_relation(event.payload["id"], f"{run}.review", "GENERATED", id=f"{run}.reviewed", **ctx.cause)


def test_a_fifth_behaviour_reacts_to_the_verifiers_record(acme: Workspace, opened: Callable[..., Workspace]) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    assert Runtime(acme.graph, [reviewer]).run() == []
    inv.run()
    other = opened(acme.name)
    (step,) = Runtime(other.graph, [reviewer]).run(inv.run_id)
    assert [event.type for event in step.events] == [
        "behavior.started", "object.created", "relation.created", "behavior.completed",
    ]  # fmt: skip
    assert {event.frame_id for event in step.events} == {inv.run_id}
    made = acme.graph.get_object(f"{inv.run_id}.review")
    assert made is not None
    assert made.data["text"] == "2 records near"  # the verifier's, and the executor's that handed over to it
    assert [row.id for row in views[-1].objects()] == ["Run#1", "Run#1.executor", "Run#1.verifier"]
    assert {row.type for row in views[-1].relations()} == {"GENERATED", "HANDOFF_TO"}
    assert len(views[-1].events()) == 2
    assert Runtime(acme.graph, [reviewer]).run() == []
    assert acme.resume(inv.run_id).status == "completed"
    assert acme.session("Tuesday").investigate(QUESTION).to_dict()["evidence"] == inv.to_dict()["evidence"]


def test_a_fifth_behaviour_runs_along_with_the_four(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    runtime = acme._runtime(0)
    five = Runtime(acme.graph, [*runtime._behaviors, reviewer])
    assert [step.behavior for step in five.run(inv.run_id)] == [
        "researcher", "planner", "executor", "verifier", "reviewer",
    ]  # fmt: skip
    assert inv.status == "completed"
