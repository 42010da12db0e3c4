"""Explorer and its form: one state, whatever is shown; plain data back; nothing left behind."""

from collections.abc import Iterator

import ipywidgets as widgets
import pytest
from ipywidgets.widgets.widget import _instances  # every widget that holds a line to the browser
from traitlets import TraitError

import contextmesh as cm
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores.server import Server
from contextmesh.widgets import AskPanel, Explorer, State
from contextmesh.widgets.explorer import TABS
from tests.widgets.reading import Tags

QUESTION = "Which earlier change might explain the checkout errors, who owns the system, what did we learn before?"


@pytest.fixture
def ws(server: Server, name: str) -> Iterator[Workspace]:
    assert server._folder is not None
    with cm.open(name, data_dir=server._folder.path) as ws:
        cm.demo.acmeshop(ws)
        yield ws


def open_tab(explorer: Explorer, name: str) -> None:
    explorer.tabs.selected_index = TABS.index(name)


def test_what_was_selected_anywhere_is_selected_everywhere(ws: Workspace) -> None:
    inv = ws.session("Tuesday").investigate(QUESTION)
    explorer = Explorer(ws, investigation=inv)
    open_tab(explorer, "Evidence")
    explorer.selection = "checkout-api"
    evidence = explorer._panels["Evidence"]
    assert evidence.table.selected == explorer.graph.table.selected == "checkout-api"
    evidence.table.on_pick("maya-chen")
    assert explorer.selection == explorer.graph.selection == explorer.state.selection == "maya-chen"
    assert list(explorer.evidence["id"]) == list(inv.evidence["id"])
    explorer.close()


def test_a_question_can_be_asked_and_answered_without_the_picture(ws: Workspace) -> None:
    explorer = Explorer(ws, session="Tuesday")
    assert explorer.evidence.empty
    open_tab(explorer, "Ask")
    asking = explorer._panels["Ask"]
    assert isinstance(asking, AskPanel)
    asking.question.value = QUESTION
    asking.ask.click()
    run = explorer.state.investigation
    assert asking.status.text == f"{run} is completed."
    assert ws.investigation(run).status == "completed"
    assert {"redis-change", "maya-chen"} <= set(explorer.evidence["id"])
    assert "Maya Chen" in asking._answer.value
    open_tab(explorer, "Runs")
    assert len(explorer._panels["Runs"].rows) == 4
    explorer.close()


def test_stages_run_one_at_a_time(ws: Workspace) -> None:
    asking = AskPanel(ws, session="Class")
    asking.question.value = QUESTION
    asking.begin.click()
    assert asking.pipeline is not None
    assert [card.trace.state for card in asking.pipeline.cards].count("done") == 0
    for _ in range(4):
        asking.pipeline._step.click()
    assert ws.investigation(asking.state.investigation).status == "completed"
    assert "Maya Chen" in asking._answer.value
    asking.close()


@pytest.mark.parametrize(("question", "session", "said"), [("", "Tuesday", "question"), (QUESTION, " ", "no label")])
def test_what_cannot_be_asked_is_said_and_nothing_is_saved(
    ws: Workspace, question: str, session: str, said: str
) -> None:
    asking = AskPanel(ws, session=session)
    before = len(ws.graph.events)
    asking.question.value = question
    asking.ask.click()
    assert said in asking.status.text
    assert asking.status.text.startswith("ask failed: ")
    assert len(ws.graph.events) == before
    asking.close()


def test_a_question_asked_before_is_opened_again(ws: Workspace) -> None:
    first = ws.session("Monday").investigate(QUESTION)
    second = ws.session("Tuesday").investigate("Who owns the checkout?")
    asking = AskPanel(ws)
    assert [row["id"] for row in asking.earlier.rows] == [second.run_id, first.run_id]
    assert asking.earlier.rows[0]["session"] == "Tuesday"
    asking.earlier.on_pick(first.run_id)
    assert asking.state.investigation == first.run_id
    assert asking.pipeline is not None
    assert first.run_id in repr(asking.pipeline)
    asking.close()


def test_a_branch_shows_in_every_panel(ws: Workspace) -> None:
    alt = ws.fork("not the TTL")
    alt.session("What if").note("The pool was exhausted instead")
    explorer = Explorer(ws)
    open_tab(explorer, "Notes")
    assert explorer._panels["Notes"].rows == []
    buttons = {each.description: each for each in explorer._branches.children if isinstance(each, widgets.Button)}
    buttons["not-the-ttl"].click()
    assert explorer.state.branch == "not-the-ttl"
    assert [row["note"] for row in explorer._panels["Notes"].rows] == ["The pool was exhausted instead"]
    note = explorer._panels["Notes"].rows[0]["id"]
    assert explorer.graph.light.changes[note] == "added"
    explorer.close()
    alt.close()


def test_two_explorers_do_not_fight_and_closing_one_frees_its_comms(ws: Workspace) -> None:
    before = set(_instances)
    first, second = Explorer(ws), Explorer(ws)
    first.selection = "checkout-api"
    assert second.selection is None
    second.selection = "maya-chen"
    assert first.selection == "checkout-api"
    for tab in TABS:
        open_tab(second, tab)
    second.close()
    second.close()
    assert first.graph.canvas.comm is not None
    first.close()
    assert {type(_instances[key]).__name__ for key in set(_instances) - before} == set()


def heading(explorer: Explorer) -> str:
    return Tags(explorer._heading.value).text


def test_the_heading_follows_selection_and_time(ws: Workspace) -> None:
    explorer = Explorer(ws)
    assert heading(explorer).endswith("branch 'main' · newest")
    explorer.selection, explorer.state.position = "checkout-api", 7
    assert heading(explorer).endswith("branch 'main' · position 7 · checkout-api")
    explorer.close()
    explorer.state.position = None
    assert heading(explorer).endswith("position 7 · checkout-api")


def test_a_second_explorer_of_a_state_begins_where_the_first_one_is(ws: Workspace) -> None:
    alt = ws.fork("alt")
    note = alt.session("What if").note("The pool was exhausted instead")
    first = Explorer(ws)
    first.state.branch = "alt"
    second = Explorer(ws, state=first.state)
    assert note.id in second.graph.scene.ids
    open_tab(second, "Notes")
    assert [row["id"] for row in second._panels["Notes"].rows] == [note.id]
    first.close()
    second.close()


def test_an_explorer_of_a_branch_names_it(ws: Workspace) -> None:
    alt = ws.fork("alt")
    ws.fork("other")
    explorer = Explorer(alt)
    assert heading(explorer).endswith("branch 'alt' · newest")
    buttons = [each for each in explorer._branches.children if isinstance(each, widgets.Button)]
    assert [(each.description, each.button_style) for each in buttons] == [("alt", "primary"), ("other", "")]
    explorer.close()


def test_a_look_into_the_past_says_so_and_saves_nothing(ws: Workspace) -> None:
    explorer = Explorer(ws.at(position=10))
    assert heading(explorer).endswith("branch 'main' · position 10, read-only")
    for tab in TABS:
        open_tab(explorer, tab)
    asking = explorer._panels["Ask"]
    assert isinstance(asking, AskPanel)
    asking.question.value = QUESTION
    asking.ask.click()
    assert "may read and not write" in asking.status.text
    assert list(ws.table("Run")["id"]) == []
    explorer.close()


def test_a_branch_without_the_investigation_closes_it(ws: Workspace) -> None:
    ws.fork("before")
    inv = ws.session("Tuesday").investigate(QUESTION)
    explorer = Explorer(ws, investigation=inv)
    open_tab(explorer, "Evidence")
    explorer.state.branch = "before"
    assert explorer.state.investigation is None
    assert explorer.status.text == f"{inv.run_id} is not on this branch, so it was closed"
    open_tab(explorer, "Ask")
    assert explorer._panels["Ask"].status.text == ""
    assert not explorer.graph.light.lit
    explorer.close()


def test_an_investigation_that_was_removed_meanwhile_leaves_the_picture(ws: Workspace) -> None:
    inv = ws.session("Tuesday").investigate(QUESTION)
    explorer = Explorer(ws, investigation=inv)
    ws.graph.remove_object(inv.run_id)
    assert "<svg" in explorer.to_html()
    explorer.close()


def test_a_double_click_asks_once(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    panel = AskPanel(ws)
    panel.question.value = QUESTION
    panel.ask.click()
    said = panel.status.text
    panel.ask.click()
    assert list(ws.table("Run")["id"]) == ["Run#1"]
    assert panel.status.text == said == "Run#1 is completed."
    monkeypatch.setattr("contextmesh.widgets.asking.DOUBLE_CLICK_S", 0.0)
    panel.ask.click()  # the same question later is another one
    assert sorted(ws.table("Run")["id"]) == ["Run#1", "Run#2"]
    panel.close()


def test_the_answer_goes_where_the_next_investigation_is_not_found(ws: Workspace) -> None:
    panel = AskPanel(ws)
    panel.investigate(QUESTION, "Tuesday")
    assert "Maya Chen" in panel._answer.value
    panel.state.investigation = "Run#99"
    assert "no run 'Run#99'" in panel.status.text
    assert panel._answer.value == ""
    panel.close()


@pytest.mark.parametrize("position", [-1, True, 2.5])
def test_a_position_that_can_be_none_is_refused(position: float) -> None:
    with pytest.raises(TraitError, match="position"):
        State(position=position)


def test_what_goes_wrong_is_said(ws: Workspace) -> None:
    explorer = Explorer(ws)
    explorer.state.investigation = "Run#99"
    assert "Run#99" in explorer.graph.status.text
    explorer.state.branch = "nowhere"
    assert "nowhere" in explorer.status.text
    explorer.close()


def test_it_follows_a_state_that_it_was_given(ws: Workspace) -> None:
    state = State(selection="maya-chen")
    explorer = ws.explore(state=state)
    assert repr(explorer) == f"<Explorer {ws.name!r}: branch 'main', newest, maya-chen>"
    state.position = 3
    assert "position 3" in repr(explorer)
    assert explorer.graph.time is not None
    explorer.close()


def test_the_answer_shows_itself_with_its_evidence_lit_up(ws: Workspace) -> None:
    inv = ws.session("Tuesday").investigate(QUESTION)
    view = inv.view()
    assert {"redis-change", "maya-chen"} <= view.light.lit
    assert "<svg" in view.to_html()
    view.close()
