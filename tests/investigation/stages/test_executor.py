"""Executor: what the decision rests on, whose memories it used, and what it does when evidence has gone."""

import pytest

from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION, entity, link, reading


def test_every_fact_of_the_decision_supports_it(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION)
    decision = inv.decision
    assert decision["evidence"] == list(inv.evidence["id"])
    supports = [row.source for row in acme.graph.relations(target=decision["id"], type="SUPPORTS")]
    assert sorted(supports) == sorted(decision["evidence"])
    assert decision["id"] == f"{inv.run_id}.decision"
    assert decision["text"] == inv.answer
    assert decision["question"] == QUESTION
    assert decision["status"] == "checked"
    assert list(inv.tasks["status"]) == ["ready", "ready", "ready"]


def test_notes_of_another_session_are_told_apart(acme: Workspace) -> None:
    theirs = acme.session("Tuesday").investigate("Errors at 14:05?")
    assert theirs.decision["used_other_sessions"] is True
    assert theirs.decision["sessions"] == [acme.session("Monday night").id]
    assert "This rests in part on notes of another session: Monday night." in theirs.answer
    own = acme.session("Monday night").investigate("Errors at 14:05?")
    assert own.decision["used_other_sessions"] is False
    assert own.decision["sessions"] == []
    assert "another session" not in own.answer


def test_without_notes_no_session_was_used(ws: Workspace) -> None:
    ws.ingest([reading([entity("a", "Quokka Gateway")])])
    inv = ws.session("s").investigate("quokka?")
    assert (inv.decision["used_other_sessions"], inv.decision["sessions"]) == (False, [])


@pytest.mark.parametrize("how", ["removed", "withdrawn"])
def test_a_task_whose_evidence_went_stays_blocked(acme: Workspace, how: str) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    inv.step()
    inv.step()
    if how == "removed":
        acme.graph.remove_object("maya-chen")
    else:
        acme.graph.patch_object("maya-chen", {"withdrawn": True})
    inv.run()
    assert list(inv.tasks["status"]) == ["ready", "blocked", "ready"]
    assert any("stays blocked: the OWNED_BY evidence it was planned on has gone" in gap for gap in inv.gaps["gap"])
    assert "The evidence 'maya-chen' has gone since it was found." in list(inv.warnings["warning"])
    assert "maya-chen" not in inv.decision["evidence"]
    assert "Maya Chen" not in inv.answer


def test_a_relation_that_went_blocks_its_task(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    inv.step()
    inv.step()
    acme.graph.remove_relation("checkout-api>OWNED_BY>maya-chen")
    inv.run()
    assert list(inv.tasks["status"]) == ["ready", "blocked", "ready"]
    assert "Recorded owner" not in inv.answer


def test_every_status_has_its_rationale_in_the_log(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION)
    history = acme.history(f"{inv.run_id}.task-2")
    assert list(history["event"]) == ["object.created", "patch.proposed", "patch.applied"]
    assert list(history["actor"]) == ["planner", "executor", "executor"]
    assert history["rationale"].iloc[-1] == "its OWNED_BY evidence was reloaded"


def test_the_answer_quotes_at_most_so_much_of_a_fact(ws: Workspace) -> None:
    ws.session("s").note("quokka " * 1000)
    answer = ws.session("t").investigate("quokka?").answer
    assert len(answer) < 1000
    assert "quokka …" in answer


def test_only_a_change_is_a_candidate(ws: Workspace) -> None:
    facts = [entity("system", "Quokka Gateway"), entity("other", "Quokka Storm", "incident")]
    ws.ingest([reading(facts, [link("other", "AFFECTS", "system")])])
    assert "Candidate" not in ws.session("s").investigate("quokka?").answer


def test_an_answer_says_on_which_words_it_rests(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate("Who owns the payment gateway?")
    assert inv.answer.startswith(
        "Only some of the question's words stand in any fact here, so this rests on 'owns' alone."
    )
    assert "No fact mentions 'payment', 'gateway'; the evidence rests on 'owns'." in list(inv.gaps["gap"])
    assert "Only some" not in acme.session("Tuesday").investigate(QUESTION).answer
