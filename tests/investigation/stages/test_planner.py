"""Planner: which of three kinds of evidence was found decides how the plan reads, what is missing, what is blocked."""

import itertools
from collections.abc import Callable

import pytest

from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import entity, link, reading

NEEDS = {
    "AFFECTS": link("change", "AFFECTS", "system"),
    "OWNED_BY": link("system", "OWNED_BY", "owner"),
    "RESOLVED_BY": link("incident", "RESOLVED_BY", "lesson"),
}
GAPS = {"AFFECTS": "No affected system:", "OWNED_BY": "No owner:", "RESOLVED_BY": "No earlier resolution:"}
FACTS = [
    entity("system", "Quokka Gateway"),
    entity("change", "Quokka Release 7", "change"),
    entity("owner", "Quokka Team", "team"),
    entity("incident", "Quokka Outage", "incident"),
    entity("lesson", "Quokka Rollback", "lesson"),
    *(
        entity(f"other-{n}", f"Bystander {n}") for n in range(3)
    ),  # so that the question's word is not in nearly every fact
]
COMBINATIONS = [found for n in range(4) for found in itertools.combinations(NEEDS, n)]


def test_all_eight_combinations_read_differently(opened: Callable[..., Workspace]) -> None:
    plans = {}
    assert len(COMBINATIONS) == 8
    for found in COMBINATIONS:
        ws = opened()
        ws.ingest([reading(FACTS, [NEEDS[need] for need in found])])
        inv = ws.session("s").investigate("What about quokka?")
        assert set(inv.evidence["id"]) == {"system", "change", "owner", "incident", "lesson"}
        missing = [need for need in NEEDS if need not in found]
        assert [gap.split(":")[0] + ":" for gap in inv.gaps["gap"]] == [GAPS[need] for need in missing]
        status = dict(zip(inv.tasks["requires"], inv.tasks["status"], strict=True))
        assert status == {need: "ready" if need in found else "blocked" for need in NEEDS}
        support = dict(zip(inv.tasks["requires"], inv.tasks["supported_by"], strict=True))
        ends = {need: f"{row.source}>{need}>{row.target}" for need, row in NEEDS.items()}
        assert support == {need: [ends[need]] if need in found else [] for need in NEEDS}
        plans[found] = tuple(inv.tasks["task"])
        named = {"AFFECTS": ("Quokka Release 7", "Quokka Gateway"), "OWNED_BY": ("Quokka Team", "Quokka Gateway"),
                 "RESOLVED_BY": ("Quokka Outage", "Quokka Rollback")}  # fmt: skip
        for need, text in zip(NEEDS, plans[found], strict=True):
            assert all((label in text) == (need in found) for label in named[need])
    assert len(set(plans.values())) == 8


@pytest.mark.parametrize("found", COMBINATIONS, ids="+".join)
def test_the_answer_states_only_what_was_found(ws: Workspace, found: tuple[str, ...]) -> None:
    ws.ingest([reading(FACTS, [NEEDS[need] for need in found])])
    answer = ws.session("s").investigate("What about quokka?").answer
    assert ("Candidate to investigate, not an established cause" in answer) == ("AFFECTS" in found)
    assert ("Recorded owner of Quokka Gateway: Quokka Team" in answer) == ("OWNED_BY" in found)
    assert ("Learned from Quokka Outage" in answer) == ("RESOLVED_BY" in found)


def test_the_three_tasks_depend_on_one_another_in_order(acme: Workspace) -> None:
    inv = acme.session("s").investigate("Who owns the Checkout API?")
    ids = list(inv.tasks["id"])
    assert ids == [f"{inv.run_id}.task-{n}" for n in (1, 2, 3)]
    assert list(inv.tasks["order"]) == [1, 2, 3]
    links = [(row.source, row.target) for row in acme.graph.relations(source=ids, type="DEPENDS_ON")]
    assert sorted(links) == [(ids[1], ids[0]), (ids[2], ids[1])]
    for source in (inv.run_id, "agent.planner"):
        made = {row.target for row in acme.graph.relations(source=source, type="GENERATED")}
        assert made >= {*ids, f"{inv.run_id}.planner"}


def test_an_incident_alone_asks_what_changed_before_it(ws: Workspace) -> None:
    ws.ingest([reading(FACTS, [link("incident", "AFFECTS", "system")])])
    inv = ws.session("s").investigate("What about quokka?")
    assert inv.tasks["task"][0] == "Find out what changed in Quokka Gateway before Quokka Outage"
    assert "Candidate" not in inv.answer


def test_many_labels_are_counted_not_listed(ws: Workspace) -> None:
    owners = [entity(f"owner-{n}", f"Owner {n}", "person") for n in range(5)]
    ws.ingest([reading([*FACTS, *owners], [link("system", "OWNED_BY", owner.id) for owner in owners])])
    inv = ws.session("s").investigate("What about quokka?")
    assert "Owner 0, Owner 1, Owner 2 and 2 more" in inv.tasks["task"][1]


def test_evidence_that_went_before_planning_does_not_count(ws: Workspace) -> None:
    ws.ingest([reading(FACTS, list(NEEDS.values()))])
    inv = ws.session("s").investigate("What about quokka?", run=False)
    inv.step()
    ws.graph.remove_object("owner")
    inv.run()
    assert [gap.split(":")[0] for gap in inv.gaps["gap"]] == ["No owner"]
    assert list(inv.tasks["status"]) == ["ready", "blocked", "ready"]
