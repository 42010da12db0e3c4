"""Investigation: what a run left, as tables and plain data, and what is missing where it is not complete."""

import json
from collections.abc import Callable

import pandas as pd
import pytest

from contextmesh.errors import HandoffError
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION


@pytest.fixture
def inv(acme: Workspace) -> Investigation:
    return acme.session("Tuesday").investigate(QUESTION)


def test_to_dict_has_the_shape_that_the_command_line_prints(inv: Investigation) -> None:
    found = inv.to_dict()
    assert list(found) == [
        "question", "answer", "evidence", "paths", "tasks", "gaps", "warnings", "decision", "run",
    ]  # fmt: skip
    assert (found["question"], found["answer"], found["run"]) == (QUESTION, inv.answer, "Run#1")
    assert {tuple(row) for row in found["evidence"]} == {("id", "kind", "label", "text", "reasons")}
    assert {tuple(row) for row in found["paths"]} == {("nodes", "relations")}
    assert [row["task"] for row in found["tasks"]] == list(inv.tasks["task"])
    assert all(isinstance(text, str) for text in (*found["gaps"], *found["warnings"]))
    assert found["decision"]["id"] == "Run#1.decision"
    assert json.loads(json.dumps(found)) == found


def test_the_tables_have_these_columns(inv: Investigation) -> None:
    tables = {
        "evidence": ["id", "kind", "label", "text", "source", "reasons"],
        "paths": ["path", "hops", "nodes", "relations"],
        "tasks": ["order", "task", "status", "requires", "supported_by", "id"],
        "gaps": ["gap", "stage"],
        "warnings": ["warning", "stage"],
        "stages": ["stage", "status", "record", "position", "facts", "gaps", "warnings"],
    }
    for name, columns in tables.items():
        table = getattr(inv, name)
        assert isinstance(table, pd.DataFrame)
        assert list(table.columns) == columns
    assert list(inv.stages["record"]) == [f"Run#1.{stage}" for stage in inv.stages["stage"]]
    assert inv.stages["position"].is_monotonic_increasing
    assert list(inv.stages["facts"]) == [len(inv.evidence)] * 4


def test_editing_what_was_returned_changes_nothing(inv: Investigation) -> None:
    before = json.dumps(inv.to_dict())
    table = inv.evidence
    table.loc[:, "text"] = "edited"
    inv.paths["nodes"][0].append("edited")
    inv.tasks["supported_by"][0].append("edited")
    inv.to_dict()["decision"]["evidence"].append("edited")
    inv.to_dict()["tasks"][0]["supported_by"].append("edited")
    inv.to_dict()["paths"][0]["relations"].append("edited")
    assert json.dumps(inv.to_dict()) == before


def test_any_process_sees_the_same(inv: Investigation, acme: Workspace, opened: Callable[..., Workspace]) -> None:
    again = opened(acme.name).investigation(inv.run_id)
    assert again.to_dict() == inv.to_dict()
    assert again._repr_mimebundle_() == inv._repr_mimebundle_()


def test_an_unfinished_run_says_how_far_it_got(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    states = [(inv.status, inv.decision, len(inv.evidence), len(inv.tasks))]
    for _ in range(4):
        inv.step()
        states.append((inv.status, inv.decision and inv.decision["id"], len(inv.evidence), len(inv.tasks)))
    assert states == [
        ("the researcher has not run yet", None, 0, 0),
        ("the planner has not run yet", None, 13, 0),
        ("the executor has not run yet", None, 13, 3),
        ("the verifier has not run yet", "Run#1.decision", 13, 3),
        ("completed", "Run#1.decision", 13, 3),
    ]
    assert inv.step() is None


def test_a_record_that_was_removed_is_named_and_what_that_means(acme: Workspace) -> None:
    inv = acme.session("Class").investigate(QUESTION, run=False)
    inv.step()
    acme.graph.remove_object("Run#1.researcher")
    gone = "the researcher's record Run#1.researcher was removed from the graph"
    assert inv.refresh().status == f"{gone}, so that the planner has nothing to read"
    assert inv.answer == f"No answer yet: {inv.status}."
    with pytest.raises(HandoffError, match="missing from the graph"):
        inv.step()
    assert inv.status == f"{gone}, so that the planner has nothing to read"
    assert repr(inv) == f"<Investigation Run#1: {inv.status}>"


@pytest.mark.parametrize(
    ("stage", "after"), [("researcher", " after it was read"), ("executor", " after it was read"), ("verifier", "")]
)
def test_a_record_that_was_removed_later_is_named_too(acme: Workspace, stage: str, after: str) -> None:
    inv = acme.session("Class").investigate(QUESTION)
    acme.graph.remove_object(f"Run#1.{stage}")
    assert inv.refresh().status == f"the {stage}'s record Run#1.{stage} was removed from the graph{after}"


def test_a_hypothesis_and_a_run_in_a_cell_are_told_to_who_watches(acme: Workspace) -> None:
    inv, told = acme.session("Class").investigate(QUESTION, run=False), []
    acme.investigation("Run#1").cards.watch(lambda: told.append(len(acme.graph.objects("Hypothesis"))))
    inv.run()
    assert told == [0, 0, 0, 0]
    inv.hypothesize(key="")
    assert told == [0, 0, 0, 0, 1]
