"""Investigations that are lit up, branches with what differs there, looks into the past."""

from collections.abc import Callable

from contextmesh.core.graph import Graph
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import GraphView, State
from tests.widgets.graphview.handling import drawn
from tests.widgets.reading import QUESTION, Tags, shown


def test_an_investigation_is_lit_up(acme: Workspace, make: Callable[..., GraphView]) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION)
    view = make(acme, investigation=inv)
    evidence = set(inv.evidence["id"])
    assert view.state.investigation == inv.run_id
    assert evidence <= view.light.lit & drawn(view)
    assert {row["id"] for row in view.table.rows[: len(evidence)]} <= view.light.lit
    view.state.investigation = None
    assert view.light.lit == frozenset()
    small = make(acme, state=State(investigation=inv.run_id), most=40)
    assert evidence <= small.light.lit & drawn(small)


def test_a_branch_and_what_differs_there(acme: Workspace, make: Callable[..., GraphView]) -> None:
    branch = acme.fork("what if")
    branch.fact("redis-cluster", "Redis cluster")
    branch.fact("badge-gateway", "Badge gateway")
    branch.graph.remove_object("inc-104")
    branch.graph.patch_object("maya-chen", {"tier": 1})
    view = make(acme)
    view.state.branch = "what-if"
    changes = {key: view.light.changes.get(key) for key in ("redis-cluster", "inc-104", "maya-chen", "checkout-api")}
    assert changes == {"redis-cluster": "added", "inc-104": "removed", "maya-chen": "changed", "checkout-api": None}
    assert {"redis-cluster", "inc-104"} <= drawn(view)
    assert Tags(view.legend._changes.value).text == "Changes+ added~ changed− removed"
    assert view.time.slider.max == len(branch.graph.events)
    view.state.branch = "main"
    assert (view.light.changes, "redis-cluster" in drawn(view)) == ({}, False)
    direct = make(branch, diff=acme.diff(branch))
    assert direct.light.changes["inc-104"] == "removed"


def test_a_branch_that_the_state_names_from_the_beginning(acme: Workspace, make: Callable[..., GraphView]) -> None:
    alt = acme.fork("alt")
    note = alt.session("What if").note("The pool was exhausted instead")
    view = make(acme, state=State(branch="alt"))
    assert note.id in drawn(view)
    assert view.light.changes[note.id] == "added"
    assert view.time.slider.max == len(alt.graph.events)


def test_a_look_into_the_past_is_not_called_now(acme: Workspace, make: Callable[..., GraphView]) -> None:
    view = make(acme.at(position=10))
    assert "Read-only, at position 10, " in shown(view)
    assert "Now" not in shown(view)


def test_an_investigation_that_is_not_there_lights_nothing_up(acme: Workspace, make: Callable[..., GraphView]) -> None:
    inv = acme.session("Tuesday").investigate("Which change might explain the checkout errors?")
    view = make(acme, investigation=inv)
    view.state.investigation = "Run#99"
    assert "no run 'Run#99'" in view.status.text
    assert not view.light.lit


def test_a_graph_has_neither(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    view.state.investigation = "Run#1"
    assert view.status.text.startswith("following the investigation failed: a graph has no investigation 'Run#1'")
    view.state.branch = "what-if"
    assert view.status.text.startswith("following the branch failed: a graph has no branch 'what-if'")
