"""The panel of a session's history: what it tells, in which order, and how far back it has looked."""

from collections.abc import Callable
from typing import Any

import pytest

from contextmesh.core.events import Event
from contextmesh.investigation.handoff import put_back
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import HistoryPanel, State
from contextmesh.widgets import history as module
from tests.widgets.reading import HOSTILE, QUESTION, Tags, is_literal, shown

MONDAY = "Checkout errors rose at 14:05, after Release 2.4"


def told(panel: HistoryPanel) -> list[str]:
    return [row["what"] for row in panel.rows]


def test_a_session_s_notes_and_runs_stand_in_the_order_of_the_log(acme: Workspace) -> None:
    tuesday = acme.session("Tuesday")
    note = tuesday.note("The TTL is back at 3,600 s")
    tuesday.investigate(QUESTION)
    acme.revise(note.id, "The TTL is back at 3,600 s since 09:00", author="maya")
    panel = HistoryPanel(acme, "Tuesday")
    assert told(panel) == [
        "session",
        "note",
        "question",
        "researcher done",
        "planner done",
        "decision",
        "executor done",
        "verifier done",
        "revision 2",
    ]
    positions = [row["position"] for row in panel.rows]
    assert positions == sorted(positions)
    log = acme.graph.events
    assert [log[position - 1].actor for position in positions] == [row["by"] for row in panel.rows]
    assert (panel.rows[2]["text"], panel.rows[-1]["by"]) == (QUESTION, "maya")
    assert panel.rows[0]["time (UTC)"].startswith("2026-01-01 00:00:")
    assert repr(panel) == f"<HistoryPanel {acme.name!r}, Tuesday: 9 rows>"
    panel.close()


def test_all_sessions(acme: Workspace) -> None:
    acme.session("Tuesday").note("The TTL is back at 3,600 s")
    panel = HistoryPanel(acme)
    assert [(row["what"], row["text"]) for row in panel.rows] == [
        ("session", "Monday night"),
        ("note", MONDAY),
        ("session", "Tuesday"),
        ("note", "The TTL is back at 3,600 s"),
    ]
    panel.close()


def test_a_stage_that_stopped_and_a_record_that_was_removed(acme: Workspace) -> None:
    inv = acme.session("Class").investigate(QUESTION, run=False)
    inv.step()
    acme.graph.remove_object("Run#1.researcher", actor="user", frame_id="Run#1")
    with pytest.raises(Exception, match="missing from the graph"):
        inv.step()
    panel = HistoryPanel(acme, "Class")
    assert told(panel) == ["session", "question", "researcher done", "AgentRun removed", "planner stopped"]
    assert panel.rows[-1]["text"].startswith("HandoffError: the record 'Run#1.researcher' is missing")
    put_back(acme.graph, "Run#1", "Run#1.researcher")
    panel.refresh()
    assert told(panel)[5:] == ["AgentRun put back"]
    assert panel.rows[-1]["by"] == "user"
    panel.close()


def test_refresh_adds_what_came_since(acme: Workspace) -> None:
    panel = HistoryPanel(acme, "Monday night")
    assert told(panel) == ["session", "note"]
    acme.session("Monday night").note("And at 14:20 again")
    acme.session("Tuesday").note("elsewhere")
    panel._again.click()
    panel._again.click()
    assert [row["text"] for row in panel.rows] == ["Monday night", MONDAY, "And at 14:20 again"]
    panel.close()


def test_it_says_how_far_it_looked_and_looks_further(acme: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK", 20)
    for n in range(30):
        acme.graph.emit(Event(type="note.taken", payload={"n": n}))
    total = len(acme.graph.events)
    panel = HistoryPanel(acme)
    assert told(panel) == []
    assert f"20 of {total} events were looked at" in Tags(shown(panel)).text
    panel._further.click()
    assert told(panel) == ["session", "note"]
    while panel._low:
        assert panel._further.layout.display == ""
        panel.look_back()
    assert told(panel) == ["session", "note"]
    assert panel._further.layout.display == "none"
    assert "were looked at" not in Tags(shown(panel)).text
    panel.close()


def test_rows_of_one_note_are_told_apart(acme: Workspace) -> None:
    note = acme.search("checkout errors rose")["id"][0]
    acme.revise(note, "At 14:06")
    state = State()
    panel = HistoryPanel(acme, "Monday night", state=state)
    state.selection = note
    assert panel.table.selected == panel.rows[1]["id"]
    panel.table._buttons[2].click()
    assert (state.selection, panel.table.selected) == (note, panel.rows[2]["id"])
    assert f"textAt 14:06by{'user'}" in Tags(panel._whole.value).text
    assert Tags(panel._whole.value).text.endswith(f"id{note}")
    panel.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(acme: Workspace, text: str) -> None:
    acme.session(f"Class {text[:100]}").note(text, author=text)
    panel = HistoryPanel(acme)
    panel.table._buttons[3].click()
    assert is_literal(panel._whole.value, text)
    for html in (shown(panel), panel.to_html()):
        assert is_literal(html, "Class")
    panel.close()


@pytest.mark.parametrize(
    "event",
    [
        Event(type="object.created", payload={"id": "a", "object": ["b"]}),
        Event(type="question.asked", payload={}),
        Event(type="behavior.failed", payload={"behavior": "planner"}),
        Event(type="object.removed", payload={}),
    ],
)
def test_a_payload_of_another_form_is_left_out(event: Event) -> None:
    assert module.told(1, event) is None


def test_showing_it_leaves_a_still_picture(acme: Workspace, displayed: list[dict[str, Any]]) -> None:
    panel = HistoryPanel(acme)
    panel._ipython_display_()
    assert MONDAY in Tags(displayed[1]["text/html"]).text
    panel.close()


def test_closing_frees_all_of_it(acme: Workspace, left_open: Callable[[], set[str]]) -> None:
    panel = HistoryPanel(acme)
    panel.close()
    panel.close()
    assert left_open() == set()
