"""A step keeps what its stage saw and asked, and whoever watches a run is told of every change to it, once."""

import pytest

from contextmesh.core.graph import Graph
from contextmesh.core.runtime import Runtime, behavior
from contextmesh.errors import HandoffError
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.steps import Cards, StageStep
from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION


@pytest.fixture
def inv(acme: Workspace) -> Investigation:
    return acme.session("Class").investigate(QUESTION, run=False)


def test_a_step_keeps_what_its_stage_saw_and_asked(acme: Workspace) -> None:
    inv = acme.session("Class").investigate(QUESTION, run=False)
    step = inv.step()
    assert isinstance(step, StageStep)
    [first, *_] = inv.cards.read()
    assert first == step.card
    assert first.view == step.view
    assert first.queries
    inv.run()  # without cards: nobody listens
    assert [card.queries is None for card in inv.cards.read()] == [False, True, True, True]


def test_whoever_watches_is_told_of_steps_and_of_stops(acme: Workspace) -> None:
    inv = acme.session("Class").investigate(QUESTION, run=False)
    told: list[str] = []

    def look() -> None:
        told.append(" ".join(card.state for card in inv.cards.read()))

    inv.cards.watch(look)
    inv.step()
    acme.graph.remove_object("Run#1.researcher")
    with pytest.raises(HandoffError, match="missing from the graph"):
        inv.step()
    assert told == ["done next waiting waiting", "lost next waiting waiting", "lost stopped waiting waiting"]
    assert inv.cards.read()[1].queries
    inv.cards.unwatch(look)
    inv.cards.unwatch(look)
    assert inv.step() is None
    assert len(told) == 3


def test_a_fifth_stage_has_a_card_too() -> None:
    @behavior(name="greeter", on=["object.created"], where={"object.type": "Guest"})
    def greet(event, graph, ctx):
        graph.add_object("Greeting", {"to": event.payload["id"]}, **ctx.cause)

    graph = Graph()
    graph.add_object("Guest", id="ada")
    step = Cards(graph, "Run#1").step(lambda: Runtime(graph, [greet]).step())
    assert step is not None
    assert "Greeter" in step._repr_html_()
    assert (step.card.state, step.card.rows()["Record"][0]) == ("done", "none of its own")
    assert step.card.rows()["Changes"][0] == "+1 Greeting; positions 2 to 4, one commit"


def test_whoever_watches_is_told_once_a_commit_whatever_it_holds(acme: Workspace, inv: Investigation) -> None:
    told: list[str] = []
    inv.cards.watch(lambda: told.append(acme.investigation(inv.run_id).status))
    acme.investigation(inv.run_id).run()  # as a cell does that knows the run's id
    assert told == [f"the {stage} has not run yet" for stage in ("planner", "executor", "verifier")] + ["completed"]
    acme.session("Class").investigate(QUESTION)
    acme.session("Class").note("of no run")
    assert len(told) == 4


def test_what_watchers_ask_is_not_the_stage_s_cypher(acme: Workspace, inv: Investigation) -> None:
    with acme._store.listening() as asked:
        acme.graph.objects("Session")
    told: list[int] = []
    for each in (inv, acme.investigation(inv.run_id)):
        each.cards.watch(lambda: told.append(len(acme.graph.objects("Session"))))
    step = inv.step()
    assert step is not None
    assert told == [2, 2]
    assert {query.text for query in step.card.queries or ()}.isdisjoint(query.text for query in asked)


def test_nobody_listens_to_the_graph_once_nobody_watches(acme: Workspace, inv: Investigation) -> None:
    first, second = (lambda: None), (lambda: None)
    inv.cards.watch(first)
    inv.cards.watch(second)
    assert len(acme.graph._listeners._callbacks) == 1
    inv.cards.unwatch(first)
    inv.cards.unwatch(second)
    assert acme.graph._listeners._callbacks == ()
