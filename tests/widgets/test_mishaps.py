"""What goes wrong under an open Explorer is said in a status line, and leaves nothing half written."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import ipywidgets as widgets
import pytest

import contextmesh as cm
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores.server import Server
from contextmesh.widgets import AskPanel, Explorer, HistoryPanel, MemoryPanel, Pipeline
from contextmesh.widgets.explorer import TABS
from tests.widgets.reading import QUESTION, elsewhere, shown

GONE = "the graph is gone: its workspace or branch was dropped meanwhile; open it again"
REFUSED = "the note's text is {!r}; expected some words"


def opened(ws: Workspace) -> Explorer:
    """An Explorer with every tab looked at, on an investigation after its first stage."""
    inv = ws.session("Class").investigate(QUESTION, run=False)
    inv.step()
    explorer = Explorer(ws, investigation=inv)
    for at in range(len(TABS)):
        explorer.tabs.selected_index = at
    return explorer


@pytest.fixture
def explorer(acme: Workspace) -> Iterator[Explorer]:
    made = opened(acme)
    yield made
    made.close()


def pipeline_of(explorer: Explorer) -> Pipeline:
    asking = explorer._panels["Ask"]
    assert isinstance(asking, AskPanel)
    assert asking.pipeline is not None
    return asking.pipeline


def notes_of(explorer: Explorer) -> MemoryPanel:
    notes = explorer._panels["Notes"]
    assert isinstance(notes, MemoryPanel)
    return notes


def press_all(explorer: Explorer) -> dict[str, str]:
    """Press what reads and what writes, and return what the status lines say: by button."""
    stages, notes, asking = pipeline_of(explorer), notes_of(explorer), explorer._panels["Ask"]
    assert isinstance(asking, AskPanel)
    notes.text.value, notes.label.value, asking.question.value = "one more", "Class", "Who owns it?"
    buttons: dict[str, tuple[widgets.Button, Callable[[], str]]] = {
        name: (explorer._panels[name]._again, lambda name=name: explorer._panels[name].status.text)
        for name in ("Evidence", "Notes", "History", "Runs")
    }
    for name in ("_step", "_run_all", "_handoff", "_refresh"):
        buttons[name] = (getattr(stages, name), lambda: stages.status.text)
    buttons |= {"ask": (asking.ask, lambda: asking.status.text), "save": (notes.save, lambda: notes.status.text)}
    return {name: (button.click(), said())[1] for name, (button, said) in buttons.items()}


def test_a_workspace_that_was_dropped_is_said_everywhere_and_stays_dropped(acme: Workspace, explorer: Explorer) -> None:
    folder = acme._server._folder.path
    cm.drop(acme.name, data_dir=folder)
    said = press_all(explorer)
    assert said.pop("History").startswith("refresh failed: the log ends at 0, and ended at ")
    assert {name for name, text in said.items() if not text.endswith(f" failed: {GONE}")} == set()
    assert acme._server.redis.keys(f"cm:{{{acme.name}}}:*") == []
    with pytest.raises(cm.WorkspaceNotFoundError, match="no workspace"):
        cm.open(acme.name, data_dir=folder, create=False)


def test_records_that_were_removed_stop_the_stages_and_nothing_else(acme: Workspace, explorer: Explorer) -> None:
    for kind in ("AgentRun", "Memory", "Session", "Agent", "Run"):
        for row in acme.graph.objects(kind):
            acme.graph.remove_object(row.id)
    said = press_all(explorer)
    assert said["_step"].startswith("The workflow stopped at the planner: the record 'Run#1.researcher' is missing")
    assert said["_handoff"].startswith("Run#1.researcher: back in the graph")
    assert said["ask"] == "Run#2 is completed."
    assert said["save"].startswith("Saved as memory.")
    assert {said[name] for name in ("Evidence", "Notes", "History", "Runs")} == {""}


def test_a_server_that_was_killed_is_started_again_and_the_stage_runs_once(tmp_path: Path) -> None:
    with cm.open("killed", data_dir=tmp_path) as ws:
        cm.demo.acmeshop(ws)
        explorer = opened(ws)
        os.kill(int(ws._server.redis.info()["process_id"]), signal.SIGKILL)
        pipeline_of(explorer)._step.click()
        assert pipeline_of(explorer).status.text == "The planner has run and saved its record. Next: the executor."
        assert [row.id for row in ws.graph.objects("Task")] == ["Run#1.task-1", "Run#1.task-2", "Run#1.task-3"]
        explorer.close()


def test_a_server_that_stays_away_is_said_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Server.reconnect, "__defaults__", (0.1,))  # it would put up with 30 s of silence each time
    with cm.open("away", data_dir=tmp_path) as own:
        cm.demo.acmeshop(own)
        socket = own._server.redis.get_connection_kwargs()["path"]
        with cm.open("away", url=f"unix://{socket}") as ws:
            explorer = opened(ws)
            position = ws.graph.position
            os.kill(int(own._server.redis.info()["process_id"]), signal.SIGKILL)
            said = press_all(explorer)
            assert {name for name, text in said.items() if " failed: " not in text} == set()
            explorer.close()
            explorer.close()
        monkeypatch.undo()
        assert own.graph.position == position


@pytest.mark.parametrize("text", ["", "   "])
def test_a_revision_without_words_is_refused(acme: Workspace, explorer: Explorer, text: str) -> None:
    notes = notes_of(explorer)
    explorer.selection = notes.rows[0]["id"]
    position = acme.graph.position
    notes.revision.value = text
    notes.revise.click()
    assert notes.status.text == f"revise failed: {REFUSED.format(text)}"
    assert acme.graph.position == position


def test_a_revision_of_a_megabyte_is_kept_whole_and_shown_in_part(acme: Workspace, explorer: Explorer) -> None:
    notes = notes_of(explorer)
    explorer.selection = note = notes.rows[0]["id"]
    notes.revision.value = "long " * 200_000
    notes.revise.click()
    assert notes.status.text.startswith("Saved revision 2")
    assert acme.graph.get_object(note).data["text"] == "long " * 200_000
    assert "(1,000,000 characters; the graph has all)" in notes._whole.value
    assert len(shown(explorer)) < 500_000
    position = acme.graph.position
    notes.revision.value = "y" * 5_000_000
    notes.revise.click()
    assert "at most 4,210,688 fit" in notes.status.text
    assert acme.graph.position == position


def test_a_run_that_another_process_finished_is_not_run_again(acme: Workspace, explorer: Explorer) -> None:
    elsewhere(acme, lambda ws: ws.resume("Run#1"))
    pipeline = pipeline_of(explorer)
    pipeline._step.click()
    assert pipeline.status.text == "All four stages have run."
    assert [card.state for card in pipeline.cards] == ["done"] * 4


def test_a_stage_that_another_process_runs_at_the_same_moment_is_run_once(
    acme: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    inv = acme.session("Class").investigate(QUESTION, run=False)
    pipeline, batch, first = Pipeline(inv), acme.graph.batch, []

    def late(**how: Callable[[], None]) -> object:
        if not first:
            first.append(1)
            elsewhere(acme, lambda ws: ws.resume(inv.run_id))
        return batch(**how)

    monkeypatch.setattr(acme.graph, "batch", late)
    pipeline._step.click()
    assert pipeline.status.text == "The researcher has run in another process meanwhile. All four stages have run."
    done = [event for event in acme.graph.events if event.type == "behavior.completed" and event.frame_id == inv.run_id]
    assert [event.actor for event in done] == ["researcher", "planner", "executor", "verifier"]
    pipeline.close()


def test_two_explorers_follow_one_run_and_closing_one_twice_leaves_the_other(
    acme: Workspace, explorer: Explorer
) -> None:
    other = Explorer(acme, investigation="Run#1")
    for at in range(len(TABS)):
        other.tabs.selected_index = at
    pipeline_of(explorer)._step.click()
    assert [card.state for card in pipeline_of(other).cards] == ["done", "done", "next", "waiting"]
    assert len(other._panels["Runs"].rows) == 2
    other.close()
    other.close()
    pipeline_of(explorer)._step.click()
    assert pipeline_of(explorer).status.text == "The executor has run and saved its record. Next: the verifier."
    explorer.close()
    assert acme.graph._listeners._callbacks == ()


def test_a_log_that_is_shorter_than_before_is_said(acme: Workspace) -> None:
    panel = HistoryPanel(acme)
    panel._high += 1  # as it was before somebody cut it
    panel._again.click()
    assert panel.status.text.startswith(f"refresh failed: the log ends at {len(acme.graph.events)}, and ended at ")
    panel.close()
