"""The pipeline: one stage a step, what each card tells, and how a workflow without its handoff stops."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import ipywidgets as widgets
import pytest

import contextmesh as cm
from contextmesh.core.runtime import Runtime
from contextmesh.errors import HandoffError, UsageError
from contextmesh.investigation.handoff import put_back
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import Pipeline, State, buttons
from contextmesh.widgets.buttons import BUSY
from tests.widgets.reading import HOSTILE, QUESTION, Tags, elsewhere, is_literal, shown

WRITES_HEAD = "MATCH (h:Head) WHERE h.seq = $expected SET h.seq = $new"


@pytest.fixture
def inv(acme: Workspace) -> Investigation:
    """A question that no stage has looked at yet."""
    return acme.session("Class").investigate(QUESTION, run=False)


@pytest.fixture
def pipeline(inv: Investigation) -> Iterator[Pipeline]:
    made = Pipeline(inv)
    yield made
    made.close()


def states(pipeline: Pipeline) -> list[str]:
    return [card.state for card in pipeline.cards]


def line(pipeline: Pipeline, stage: int, name: str) -> str:
    return pipeline.cards[stage].rows()[name][0]


def behind(pipeline: Pipeline, stage: int, name: str) -> str:
    return "\n".join(pipeline.cards[stage].rows()[name][1])


# Running


def test_before_the_first_step(pipeline: Pipeline) -> None:
    assert states(pipeline) == ["next", "waiting", "waiting", "waiting"]
    assert line(pipeline, 0, "Trigger") == "question.asked: position 38, by user"
    assert line(pipeline, 1, "Trigger") == "waits for the researcher's record"
    assert all(set(card.rows()) == {"Trigger"} for card in pipeline.cards)
    assert repr(pipeline) == "<Pipeline Run#1: 0 of 4 stages done>"


def test_a_step_runs_one_stage_and_its_card_tells_of_it(
    acme: Workspace, inv: Investigation, pipeline: Pipeline
) -> None:
    pipeline._step.click()
    assert states(pipeline) == ["done", "next", "waiting", "waiting"]
    assert pipeline.status.text == "The researcher has run and saved its record. Next: the planner."
    record = acme.graph.get_object("Run#1.researcher")
    assert record is not None
    facts, paths = len(record.data["context"]), len(record.data["paths"])
    assert line(pipeline, 0, "Record").startswith(f"Run#1.researcher (AgentRun): {facts} facts, ")
    assert f"{facts} facts" in line(pipeline, 0, "View")
    assert f"{paths} paths" in line(pipeline, 0, "View")
    assert line(pipeline, 1, "Trigger") == "object.created: AgentRun Run#1.researcher, position 40, by researcher"
    assert list(inv.stages["stage"]) == ["researcher"]


def test_what_a_stage_changed_is_what_the_log_holds(acme: Workspace, pipeline: Pipeline) -> None:
    pipeline.step()
    before = acme.graph.position
    pipeline.step()
    made = [event for event in acme.graph.events.after(before) if event.type == "object.created"]
    assert [event.payload["object"]["type"] for event in made] == ["Task", "Task", "Task", "AgentRun"]
    told = line(pipeline, 1, "Changes")
    assert told.startswith("+1 AgentRun, +3 Task, +2 DEPENDS_ON, ")
    assert told.endswith(f"positions {before + 1} to {acme.graph.position}, one commit")
    assert "Run#1.researcher -HANDOFF_TO-> Run#1.planner" in behind(pipeline, 1, "Changes")


def test_a_changed_task_is_told_with_both_values(pipeline: Pipeline) -> None:
    pipeline.run()
    assert "Run#1.task-1: status planned → ready" in behind(pipeline, 2, "Changes")


def test_the_cypher_is_what_was_sent(acme: Workspace, pipeline: Pipeline) -> None:
    with acme._store.listening() as heard:
        pipeline._step.click()
    queries = pipeline.cards[0].queries
    assert queries
    sent = [query.text for query in heard]
    assert [query.text for query in queries] == sent[sent.index(queries[0].text) :][: len(queries)]
    assert sum(query.text.startswith(WRITES_HEAD) for query in queries) == 1  # a stage is one commit
    text = behind(pipeline, 0, "Cypher")
    assert "db.idx.fulltext.queryNodes('Node', t)" in text
    assert '"Run#1.researcher"' in text


def test_run_all(inv: Investigation, pipeline: Pipeline) -> None:
    pipeline._run_all.click()
    assert states(pipeline) == ["done"] * 4
    assert pipeline.status.text == "The verifier has run and saved its record. All four stages have run."
    assert inv.status == "completed"
    pipeline._step.click()
    pipeline._run_all.click()
    assert pipeline.status.text == "All four stages have run."


def test_a_step_in_a_cell_shows_in_the_pipeline_and_has_the_same_card(inv: Investigation, pipeline: Pipeline) -> None:
    step = inv.step()
    assert step is not None
    assert step.card == pipeline.cards[0]
    assert pipeline.cards[0].to_html() in step._repr_html_()
    assert pipeline.cards[0].to_html() in shown(pipeline)
    assert repr(step) == "<Step researcher: completed, 5 events>"


def test_a_run_of_another_process_is_told_from_log_and_graph(acme: Workspace, inv: Investigation) -> None:
    Runtime.run(acme.investigation(inv.run_id)._runtime, inv.run_id)
    pipeline = Pipeline(inv)
    assert states(pipeline) == ["done"] * 4
    assert line(pipeline, 1, "Cypher").startswith("not recorded")
    assert line(pipeline, 1, "View").endswith("(by its record)")
    assert line(pipeline, 3, "Changes").startswith("+1 AgentRun")
    pipeline.close()


def test_it_follows_what_this_process_does(acme: Workspace, inv: Investigation, pipeline: Pipeline) -> None:
    acme.resume(inv.run_id)
    assert states(pipeline) == ["done"] * 4


def test_refresh_shows_what_others_did(acme: Workspace, inv: Investigation, pipeline: Pipeline) -> None:
    elsewhere(acme, lambda ws: ws.resume(inv.run_id))
    assert states(pipeline)[0] == "next"
    pipeline._refresh.click()
    assert states(pipeline) == ["done"] * 4
    pipeline._step.click()
    assert pipeline.status.text == "All four stages have run."


# Without the handoff


def test_without_the_handoff_the_workflow_stops_and_says_why(acme: Workspace, pipeline: Pipeline) -> None:
    pipeline.step()
    pipeline._handoff.click()
    assert acme.graph.get_object("Run#1.researcher") is None
    assert pipeline.status.text.startswith("Run#1.researcher is gone from the graph; the log still tells of it. Step,")
    assert states(pipeline) == ["lost", "next", "waiting", "waiting"]
    assert line(pipeline, 0, "Record") == "Run#1.researcher was saved and has been removed since"
    assert "next: the planner · removed: Run#1.researcher" in Tags(shown(pipeline)).text
    pipeline._step.click()
    assert states(pipeline) == ["lost", "stopped", "waiting", "waiting"]
    assert pipeline.status.text == (
        "The workflow stopped at the planner: the record 'Run#1.researcher' is missing from the graph, so the next "
        "stage has nothing to read; ask again, or press Put it back and step once more"
    )
    assert line(pipeline, 1, "Stopped").startswith("HandoffError: the record 'Run#1.researcher' is missing")
    assert "Run#1.researcher" in behind(pipeline, 1, "Cypher")  # the query that found nothing
    assert acme.graph.objects("Task") == acme.graph.objects("Decision") == []
    pipeline._run_all.click()  # it is tried again, and stops again
    assert pipeline.status.text.startswith("The workflow stopped at the planner")


@pytest.mark.parametrize("tried", [False, True])
def test_one_button_undoes_it(acme: Workspace, inv: Investigation, pipeline: Pipeline, tried: bool) -> None:
    pipeline.step()
    record = acme.graph.get_object("Run#1.researcher")
    assert pipeline._handoff.description == "Remove the handoff"
    pipeline._handoff.click()
    assert pipeline._handoff.description == "Put it back"
    if tried:
        pipeline._step.click()
    pipeline._handoff.click()
    assert pipeline._handoff.description == "Remove the handoff"
    assert pipeline.status.text == (
        "Run#1.researcher: back in the graph with the same contents and relations. Step, and it goes on."
    )
    assert acme.graph.get_object("Run#1.researcher").data == record.data
    assert states(pipeline) == ["done", "stopped" if tried else "next", "waiting", "waiting"]
    pipeline._step.click()
    assert pipeline.status.text == "The planner has run and saved its record. Next: the executor."
    pipeline._run_all.click()
    assert (states(pipeline), inv.status) == (["done"] * 4, "completed")


def test_what_was_put_back_elsewhere_is_said(acme: Workspace, pipeline: Pipeline) -> None:
    pipeline.step()
    pipeline._handoff.click()
    elsewhere(acme, lambda ws: put_back(ws.graph, "Run#1", "Run#1.researcher"))
    position = len(acme.graph.events)
    pipeline._handoff.click()
    assert pipeline.status.text == (
        "change the handoff failed: there is nothing to put back: every record that Run#1 saved is in the graph"
    )
    assert len(acme.graph.events) == position
    with pytest.raises(UsageError, match="nothing to put back"):
        pipeline.put_back()


@pytest.mark.parametrize(
    ("steps", "why"),
    [(0, "no stage has saved a record yet"), (4, "every stage has read its record")],
)
def test_where_there_is_no_handoff_to_remove(pipeline: Pipeline, steps: int, why: str) -> None:
    for _ in range(steps):
        pipeline.step()
    pipeline._handoff.click()
    assert pipeline.status.text == f"change the handoff failed: there is no handoff to remove: {why}" + (
        "" if steps else "; step first"
    )
    with pytest.raises(UsageError, match="there is no handoff to remove"):
        pipeline.remove_handoff()


def test_it_is_removed_once(pipeline: Pipeline) -> None:
    pipeline.step()
    assert pipeline.remove_handoff() == "Run#1.researcher"
    with pytest.raises(UsageError, match="has been removed already"):
        pipeline.remove_handoff()
    with pytest.raises(HandoffError, match="missing from the graph"):
        pipeline.step()
    assert pipeline.put_back() == ["Run#1.researcher"]
    assert [step.behavior for step in pipeline.run()] == ["planner", "executor", "verifier"]


# One press, one stage


@pytest.fixture
def moments(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[], None]]:
    """What a press leaves to be done a moment later, once the presses that waited have come in."""
    left: list[Callable[[], None]] = []
    monkeypatch.setattr(buttons, "later", lambda _delay_s, callback: left.append(callback))
    return left


def press(button: widgets.Button) -> None:
    """Hand a button the message that a browser sends for a click."""
    button._handle_custom_msg({"event": "click"}, [])


@pytest.mark.parametrize(
    ("first", "second", "run"), [("_step", "_step", 1), ("_step", "_run_all", 1), ("_run_all", "_step", 4)]
)
def test_a_press_that_waited_for_another_one_does_nothing(
    pipeline: Pipeline, moments: list[Callable[[], None]], first: str, second: str, run: int
) -> None:
    press(getattr(pipeline, first))
    said = pipeline.status.text
    press(getattr(pipeline, second))
    assert (pipeline._done, pipeline.status.text) == (run, said)
    assert BUSY in pipeline._controls._dom_classes
    end_of_turn, rested = moments
    end_of_turn()
    assert BUSY not in pipeline._controls._dom_classes
    press(getattr(pipeline, first))  # its double click may not be over
    assert pipeline._done == run
    assert BUSY in getattr(pipeline, first)._dom_classes
    rested()
    assert BUSY not in getattr(pipeline, first)._dom_classes
    press(pipeline._step)
    assert pipeline._done == min(run + 1, 4)


def test_a_press_while_another_thread_steps_does_nothing(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = []

    def step() -> None:
        ran.append(1)
        thread = threading.Thread(target=press, args=(pipeline._step,))
        thread.start()
        thread.join()

    monkeypatch.setattr(pipeline, "step", step)
    press(pipeline._step)
    assert ran == [1]


def test_a_press_that_fails_lets_the_next_one_through(pipeline: Pipeline, moments: list[Callable[[], None]]) -> None:
    press(pipeline._handoff)  # there is none yet
    assert pipeline.status.text.startswith("change the handoff failed")
    moments[0]()
    press(pipeline._step)
    assert pipeline._done == 1


def test_a_double_press_on_the_handoff_removes_it_once(
    acme: Workspace, pipeline: Pipeline, moments: list[Callable[[], None]]
) -> None:
    pipeline.step()
    press(pipeline._handoff)
    press(pipeline._handoff)
    assert len(moments) == 2
    assert acme.graph.get_object("Run#1.researcher") is None


# Looks, and the rest


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(acme: Workspace, text: str) -> None:
    acme.graph.add_object("Entity", {"label": text, "text": f"owns {text}"}, id="hostile", actor=text)
    inv = acme.session("Class").investigate(f"Who owns it? {text}", run=False)
    pipeline = Pipeline(inv)
    pipeline.run()
    for html in (shown(pipeline), pipeline.to_html()):
        assert is_literal(html, f"Who owns it? {text}".split("\n")[0])
    pipeline.close()


def test_a_long_list_of_changes_is_cut(acme: Workspace) -> None:
    for n in range(60):
        acme.session(f"Shift {n}").note(f"the zebra crossing number {n} was repainted")
    pipeline = Pipeline(acme.session("Class").investigate("zebra", run=False))
    pipeline.run()
    texts = pipeline.cards[2].rows()["Changes"][1]
    assert len(texts) <= 41
    pipeline.close()


def test_a_graph_without_cypher_says_so() -> None:
    from contextmesh.investigation.cards import NO_QUERIES, Card, StageTrace  # noqa: PLC0415 - used here alone

    card = Card(trace=StageTrace(stage="researcher", state="done"), queries=())
    assert card.rows()["Cypher"] == (NO_QUERIES, [])


def test_showing_it_leaves_a_still_picture(pipeline: Pipeline, displayed: list[dict[str, Any]]) -> None:
    pipeline.step()
    pipeline._ipython_display_()
    live, still = displayed
    assert live["text/plain"] == still["text/plain"] == "<Pipeline Run#1: 1 of 4 stages done>"
    assert "application/vnd.jupyter.widget-view+json" in live
    page = Tags(still["text/html"])
    assert "script" not in page.tags
    for card in pipeline.cards:
        assert card.to_html() in still["text/html"]


def test_selecting_elsewhere_leaves_the_status_alone(inv: Investigation) -> None:
    state = State()
    pipeline = Pipeline(inv, state=state)
    pipeline._step.click()
    said = pipeline.status.text
    state.selection = "checkout-api"
    assert pipeline.status.text == said != ""
    pipeline.close()


def test_closing_frees_all_of_it(inv: Investigation, left_open: Callable[[], set[str]]) -> None:
    pipeline = Pipeline(inv)
    assert len(left_open()) > 10
    pipeline.close()
    pipeline.close()
    assert left_open() == set()
    inv.step()  # nobody is told any more
    assert repr(pipeline) == "<Pipeline Run#1: 0 of 4 stages done>"


def test_a_run_in_memory_of_the_past_cannot_be_stepped(acme: Workspace, inv: Investigation) -> None:
    with acme.at(position=acme.graph.position) as then:
        pipeline = Pipeline(then.investigation(inv.run_id))
        pipeline._step.click()
        assert pipeline.status.text.startswith("step failed: ")
        assert isinstance(then, cm.Workspace)
        pipeline.close()
