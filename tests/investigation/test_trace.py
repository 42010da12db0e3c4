"""What a trace tells of a run is what its log and its records say."""

from itertools import pairwise

import pytest

from contextmesh.errors import HandoffError
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.trace import Trace
from contextmesh.investigation.vocabulary import STAGES
from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION


@pytest.fixture
def inv(acme: Workspace) -> Investigation:
    return acme.session("Class").investigate(QUESTION, run=False)


def states(trace: Trace) -> list[str]:
    return [told.state for told in trace.read().values()]


def test_each_look_reads_on(acme: Workspace, inv: Investigation) -> None:
    trace = Trace(acme.graph, inv.run_id)
    expected = ["next", "waiting", "waiting", "waiting"]
    for at in range(len(STAGES)):
        assert states(trace) == expected
        inv.step()
        expected[at : at + 2] = ["done", "next"][: len(expected) - at]
    assert states(trace) == ["done"] * 4
    assert states(Trace(acme.graph, inv.run_id)) == ["done"] * 4
    assert repr(trace) == "<Trace of Run#1: 4 of 4 stages>"


def test_the_events_of_a_stage_are_its_batch(acme: Workspace, inv: Investigation) -> None:
    steps = [inv.step() for _ in STAGES]
    told = Trace(acme.graph, inv.run_id).read()
    for step in steps:
        assert step is not None
        placed = told[step.behavior].events
        assert [row.event for row in placed] == list(step.events)
        assert [row.position for row in placed] == list(range(placed[0].position, placed[-1].position + 1))
        assert [acme.graph.events[row.position - 1].id for row in placed] == [event.id for event in step.events]
        assert told[step.behavior].trigger.event == step.trigger
    for before, after in pairwise(STAGES):
        assert told[after].trigger.event.payload["id"] == told[before].record.id


def test_other_runs_and_notes_are_kept_apart(acme: Workspace, inv: Investigation) -> None:
    other = acme.session("Class").investigate(QUESTION, run=False)
    inv.step()
    acme.session("Class").note("in between")
    other.run()
    assert states(Trace(acme.graph, inv.run_id)) == ["done", "next", "waiting", "waiting"]
    assert states(Trace(acme.graph, other.run_id)) == ["done"] * 4
    events = Trace(acme.graph, inv.run_id).read()["researcher"].events
    assert {row.event.frame_id for row in events} == {inv.run_id}


def test_a_stage_that_stopped_and_then_ran(acme: Workspace, inv: Investigation) -> None:
    inv.step()
    record = acme.graph.get_object("Run#1.researcher")
    acme.graph.remove_object("Run#1.researcher")
    trace = Trace(acme.graph, inv.run_id)
    assert trace.read()["researcher"].is_lost
    with pytest.raises(HandoffError, match="missing from the graph"):
        inv.step()
    stopped = trace.read()["planner"]
    assert (stopped.state, stopped.events) == ("stopped", ())
    assert "HandoffError: the record 'Run#1.researcher' is missing" in stopped.error
    acme.graph.add_object("AgentRun", record.data, id="Run#1.researcher")  # by hand, and not as an event of the run
    assert inv.step(retry=True).behavior == "planner"
    ran = trace.read()["planner"]
    assert (ran.state, ran.error, len(ran.events)) == ("done", "", 17)
    assert not trace.read()["researcher"].is_lost


def test_after_a_run_is_over_its_log_is_not_read_on(acme: Workspace, inv: Investigation) -> None:
    inv.run()
    position = acme.graph.position
    for n in range(3):
        acme.session("Later").note(f"note {n}")
    trace = Trace(acme.graph, inv.run_id)
    trace.read()
    trace.read()
    assert trace._position == position


def test_a_run_that_a_branch_brought_is_told_by_its_records(acme: Workspace) -> None:
    alt = acme.fork("alt")
    run = alt.session("What if").investigate(QUESTION).run_id
    acme.promote(alt)
    told = Trace(acme.graph, run).read()
    assert [row.state for row in told.values()] == ["done"] * 4
    assert all(row.record is not None for row in told.values())


def test_a_run_in_a_branch(acme: Workspace, inv: Investigation) -> None:
    inv.step()
    alt = acme.fork("alt")
    alt.resume(inv.run_id)
    assert states(Trace(alt.graph, inv.run_id)) == ["done"] * 4
    assert states(Trace(acme.graph, inv.run_id)) == ["done", "next", "waiting", "waiting"]
