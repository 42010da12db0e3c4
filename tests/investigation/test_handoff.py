"""A handoff that is put back is the one that was there, and triggers nothing a second time."""

import pytest

import contextmesh as cm
from contextmesh.errors import AlreadyExistsError, HandoffError, NotFoundError
from contextmesh.investigation.handoff import put_back, take_away
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.vocabulary import STAGES
from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION, contents

RESEARCHER, PLANNER = "Run#1.researcher", "Run#1.planner"


@pytest.fixture
def inv(acme: Workspace) -> Investigation:
    return acme.session("Class").investigate(QUESTION, run=False)


@pytest.mark.parametrize("stage", STAGES)
def test_what_is_put_back_is_what_was_there(acme: Workspace, inv: Investigation, stage: str) -> None:
    inv.run()
    before, record = contents(acme.graph), f"Run#1.{stage}"
    take_away(acme.graph, inv.run_id, record)
    assert contents(acme.graph) != before
    put_back(acme.graph, inv.run_id, record)
    assert contents(acme.graph) == before
    acme.graph.rebuild()
    assert contents(acme.graph) == before


def test_the_log_tells_of_both_and_why(acme: Workspace, inv: Investigation) -> None:
    inv.step()
    position = acme.graph.position
    take_away(acme.graph, inv.run_id, RESEARCHER)
    put_back(acme.graph, inv.run_id, RESEARCHER)
    events = list(acme.graph.events.after(position))
    assert [event.type for event in events] == [
        "object.removed", "patch.proposed", "patch.applied", "relation.created", "relation.created",
    ]  # fmt: skip
    assert {(event.actor, event.frame_id) for event in events} == {("user", "Run#1")}
    assert {event.caused_by for event in events[1:]} == {events[0].id}
    patch = events[2].payload["patch"]
    assert (patch["op"], patch["rationale"]) == ("create", "put back as it was before it was removed")
    row = acme.graph.get_object(RESEARCHER)
    assert row is not None
    assert (row.version, row.provenance["created_by"]) == (1, events[2].id)


@pytest.mark.parametrize("tried", [False, True])
def test_the_run_goes_on_as_if_nothing_had_been_removed(acme: Workspace, inv: Investigation, tried: bool) -> None:
    inv.step()
    take_away(acme.graph, inv.run_id, RESEARCHER)
    if tried:
        with pytest.raises(HandoffError, match="missing from the graph"):
            inv.step()
    put_back(acme.graph, inv.run_id, RESEARCHER)
    again = "the planner stopped for want of a record that is there again; run it once more"
    assert inv.refresh().status == (again if tried else "the planner has not run yet")
    assert [trigger.behavior.name for trigger in inv._runtime.pending(retry=True)] == ["planner"]
    assert inv.run(retry=True).status == "completed"
    assert inv._runtime.pending(retry=True) == []
    other = acme.session("Class").investigate(QUESTION)
    assert list(inv.evidence["id"]) == list(other.evidence["id"])
    assert inv.answer == other.answer


def test_what_was_taken_away_twice_comes_back_as_it_last_stood(acme: Workspace, inv: Investigation) -> None:
    inv.step()
    for note in ("first", "second"):
        acme.graph.patch_object(RESEARCHER, {"note": note})
        take_away(acme.graph, inv.run_id, RESEARCHER)
        put_back(acme.graph, inv.run_id, RESEARCHER)
    row = acme.graph.get_object(RESEARCHER)
    assert row is not None
    assert row.data["note"] == "second"


def test_only_what_is_still_there_is_related_again(acme: Workspace, inv: Investigation) -> None:
    inv.step()
    inv.step()
    take_away(acme.graph, inv.run_id, RESEARCHER)
    acme.graph.remove_object("agent.researcher")
    acme.graph.add_relation("Run#1", RESEARCHER, "GENERATED", id=f"Run#1>GENERATED>{RESEARCHER}")
    put_back(acme.graph, inv.run_id, RESEARCHER)
    assert {row.id for row in acme.graph.get_relations(RESEARCHER)} == {
        f"Run#1>GENERATED>{RESEARCHER}",
        f"{RESEARCHER}>HANDOFF_TO>{PLANNER}",
    }


def test_another_process_may_put_it_back(acme: Workspace, inv: Investigation, opened: object) -> None:
    inv.step()
    take_away(acme.graph, inv.run_id, RESEARCHER)
    other = opened(acme.name)  # type: ignore[operator]
    put_back(other.graph, inv.run_id, RESEARCHER)
    with pytest.raises(AlreadyExistsError, match=r"'Run#1\.researcher' is there already; nothing was put back"):
        put_back(acme.graph, inv.run_id, RESEARCHER)
    assert inv.run().status == "completed"


def test_what_was_never_removed_cannot_be_put_back(acme: Workspace, inv: Investigation) -> None:
    position = acme.graph.position
    with pytest.raises(NotFoundError, match=r"the log tells of no 'Run#1\.planner' that was removed"):
        put_back(acme.graph, inv.run_id, PLANNER)
    assert acme.graph.position == position


def test_a_patch_that_removed_it_counts_as_well() -> None:
    graph = cm.Graph()
    graph.add_object("Run", {"position": 0}, id="Run#1")
    graph.add_object("AgentRun", {"stage": "planner"}, id=PLANNER)
    graph.patch_object(PLANNER, {}, op="remove")
    put_back(graph, "Run#1", PLANNER)
    assert graph.get_object(PLANNER).data == {"stage": "planner"}
