"""The panel of a run: its agents' completed steps as they were saved, and what they used."""

from collections.abc import Callable
from typing import Any

import pytest

from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import RunPanel, State
from contextmesh.widgets import runs as module
from contextmesh.widgets.runs import PERSISTED, usage_of
from tests.widgets.reading import HOSTILE, QUESTION, Tags, is_literal, shown

USAGE = {"model": "m", "calls": 1, "prompt_tokens": 1_310, "completion_tokens": 90}


def test_the_records_of_a_run_stand_in_the_order_of_the_stages(acme: Workspace) -> None:
    panel = RunPanel(acme.session("Tuesday").investigate(QUESTION))
    assert [(row["agent"], row["status"], row["record"]) for row in panel.rows] == [
        ("Researcher", "completed", "Run#1.researcher"),
        ("Planner", "completed", "Run#1.planner"),
        ("Executor", "completed", "Run#1.executor"),
        ("Verifier", "completed", "Run#1.verifier"),
    ]
    record = acme.graph.get_object("Run#1.researcher")
    assert record is not None
    assert panel.rows[0]["saved"].endswith(f", {len(record.data['paths'])} paths")
    assert [row["outputs"] for row in panel.rows] == [
        "",
        "Run#1.task-1, Run#1.task-2, Run#1.task-3",
        "Run#1.decision",
        "",
    ]
    assert {row["usage"] for row in panel.rows} == {"no model call recorded"}
    assert PERSISTED in Tags(shown(panel)).text
    assert repr(panel) == "<RunPanel Run#1: 4 steps>"
    panel.close()


def test_two_runs_are_kept_apart(acme: Workspace) -> None:
    first, second = (acme.session("Tuesday").investigate(QUESTION) for _ in range(2))
    panel = RunPanel(second)
    assert {row["record"].split(".")[0] for row in panel.rows} == {second.run_id} != {first.run_id}
    assert "Run#1" not in " ".join(row["outputs"] for row in panel.rows)
    panel.close()


def test_it_follows_the_stages(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    panel = RunPanel(inv)
    assert panel.rows == []
    inv.step()
    assert [row["agent"] for row in panel.rows] == ["Researcher"]
    panel.close()


def test_a_model_s_guess_is_listed_as_one_with_what_it_used(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION)
    data = {"run": "Run#1", "status": "answered", "text": "It was DNS.", "usage": {**USAGE, "cost": "unknown"}}
    acme.graph.add_object("Hypothesis", {**data, "position": acme.graph.position}, id="Run#1.hypothesis")
    acme.graph.add_relation("Run#1", "Run#1.hypothesis", "GENERATED")
    panel = RunPanel(inv)
    last = panel.rows[-1]
    assert (last["agent"], last["saved"]) == ("Hypothesis", "untrusted guess: It was DNS.")
    assert last["usage"] == "m: 1,400 tokens (1,310 in, 90 out), cost unknown"
    panel.close()


def test_a_hypothesis_that_a_cell_asks_for_is_there_at_once(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION)
    panel = RunPanel(acme.investigation(inv.run_id))
    assert len(panel.rows) == 4
    inv.hypothesize(key="")  # no call is made, and why is saved
    assert len(panel.rows) == 5
    assert (panel.rows[-1]["agent"], panel.rows[-1]["status"]) == ("Hypothesis", "failed")
    assert panel.rows[-1]["saved"].startswith("no guess: ")
    assert repr(panel) == "<RunPanel Run#1: 5 steps>"
    panel.close()
    acme.graph.remove_object("Run#1.hypothesis")
    assert len(panel.rows) == 5


def test_what_goes_wrong_while_it_follows_is_said(acme: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    panel = RunPanel(inv)

    def fail(*_: object) -> None:
        raise ValueError("no rows today")

    monkeypatch.setattr(module, "completed", fail)
    assert inv.step().status == "completed"
    assert panel.status.text == "refresh failed: ValueError: no rows today"
    panel.close()


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (None, "no model call recorded"),
        ({}, "no model call recorded"),
        ("much", "no model call recorded"),
        ({"model": "m"}, "m: tokens unknown, cost unknown"),
        ({"total_tokens": 7}, "7 tokens, cost unknown"),
        ({**USAGE, "cost": 0.000844, "currency": "USD"}, "m: 1,400 tokens (1,310 in, 90 out), cost about 0.000844 USD"),
        ({"total_tokens": 9, "cost": 0.0000985, "currency": "USD"}, "9 tokens, cost about 0.0000985 USD"),
        ({"total_tokens": 9, "cost": 0, "currency": "USD"}, "9 tokens, cost about 0 USD"),
        ({**USAGE, "prompt_tokens": "many", "cost": True}, "m: tokens unknown, cost unknown"),
    ],
)
def test_usage_in_words(usage: Any, said: str) -> None:
    assert usage_of({"usage": usage}) == said


def test_picking_selects_the_record(acme: Workspace) -> None:
    state = State()
    panel = RunPanel(acme.session("Tuesday").investigate(QUESTION), state=state)
    panel.table._buttons[1].click()
    assert state.selection == "Run#1.planner"
    assert "Run#1.task-3" in Tags(panel._whole.value).text
    panel.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(acme: Workspace, text: str) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    data = {"run": "Run#1", "stage": text, "status": text, "usage": {"model": text}, "label": text, "gaps": [text]}
    acme.graph.add_object("AgentRun", data, id="Run#1.fifth")
    acme.graph.add_relation("Run#1", "Run#1.fifth", "GENERATED")
    panel = RunPanel(inv)
    panel.state.selection = "Run#1.fifth"
    assert is_literal(panel._whole.value, text)
    for html in (shown(panel), panel.to_html()):
        assert is_literal(html, "Run#1.fifth")
    panel.close()


def test_showing_it_leaves_a_still_picture(acme: Workspace, displayed: list[dict[str, Any]]) -> None:
    panel = RunPanel(acme.session("Tuesday").investigate(QUESTION))
    panel._ipython_display_()
    assert "Run#1.verifier" in Tags(displayed[1]["text/html"]).text
    panel.close()


def test_closing_frees_all_of_it(acme: Workspace, left_open: Callable[[], set[str]]) -> None:
    panel = RunPanel(acme.session("Tuesday").investigate(QUESTION))
    panel.close()
    panel.close()
    assert left_open() == set()
