"""The stages in a browser: two clicks show what a missing handoff does, and one click runs one stage."""

import pytest
from playwright.sync_api import Locator

from tests.browser.lab import Lab

CELLS = (
    """import contextmesh as cm
cm.drop("stages", missing_ok=True)
ws = cm.open("stages")
cm.demo.acmeshop(ws)
inv = ws.session("Class").investigate("Which earlier change might explain the checkout errors, who owns it?", run=False)
_ = inv.step()""",
    "pipeline = cm.widgets.Pipeline(inv)\npipeline",
)
LIVE = ".jp-OutputArea-output:has(.cm-live-panel)"
DONE = "pipeline._done"


def button(lab: Lab, name: str) -> Locator:
    return lab.page.locator(LIVE).get_by_role("button", name=name, exact=True)


def said(lab: Lab) -> str:
    """What a screen reader is told."""
    lab.wait_for_idle()
    return lab.page.locator(LIVE).get_by_role("status").first.inner_text()


def ready(lab: Lab) -> None:
    """Wait until every button takes a press again."""
    lab.page.locator(f"{LIVE}:not(:has(.cm-busy))").wait_for()
    lab.wait_for_idle()


def events(lab: Lab) -> int:
    return lab.value("len(ws.graph.events)")


def test_two_clicks_show_the_workflow_stop_and_a_third_mends_it(lab: Lab) -> None:
    lab.run_cells(CELLS)
    button(lab, "Remove the handoff").click()
    assert said(lab).startswith("Run#1.researcher is gone from the graph; the log still tells of it.")
    button(lab, "Step").click()
    assert said(lab).startswith("The workflow stopped at the planner: the record 'Run#1.researcher' is missing")
    assert lab.page.locator(LIVE).get_by_text("done, record removed").is_visible()
    assert lab.value("[row.id for row in ws.graph.objects('Task')]") == []
    ready(lab)  # a button that rests is dimmed
    for look in lab.looks():
        lab.screenshot(f"pipeline-stopped-{look}", LIVE)
        assert lab.overlapping_texts(LIVE) == [], look
        assert lab.faint_texts(LIVE) == [], look
    button(lab, "Put it back").click()
    assert said(lab).startswith("Run#1.researcher: back in the graph with the same contents and relations.")
    button(lab, "Run all").click()
    assert said(lab) == "The verifier has run and saved its record. All four stages have run."


def test_the_same_from_the_keyboard(lab: Lab) -> None:
    lab.run_cells(CELLS)
    keys = lab.page.keyboard
    button(lab, "Remove the handoff").focus()
    keys.press("Enter")
    assert said(lab).startswith("Run#1.researcher is gone")
    ready(lab)
    keys.press("Shift+Tab")  # Run all
    keys.press("Shift+Tab")  # Step
    keys.press("Space")
    assert said(lab).startswith("The workflow stopped at the planner")
    keys.press("Tab")
    keys.press("Tab")
    assert lab.page.evaluate("document.activeElement.textContent") == "Put it back"
    ready(lab)
    keys.press("Enter")
    assert said(lab).startswith("Run#1.researcher: back in the graph")
    assert lab.page.evaluate("document.activeElement.textContent") == "Remove the handoff"


def test_what_has_the_focus_is_seen(lab: Lab) -> None:
    lab.run_cells(CELLS)
    ring = """() => {
      const {outlineStyle, outlineWidth, outlineColor} = getComputedStyle(document.activeElement);
      const ink = getComputedStyle(document.querySelector('.cm-live-panel .cm-head')).color;
      return [document.activeElement.tagName, outlineStyle, outlineWidth, outlineColor === ink];
    }"""
    for theme in ("light", "dark"):
        lab.use_theme(theme)
        button(lab, "Refresh").focus()
        for key, tag in (("Shift+Tab", "BUTTON"), ("Tab", "BUTTON"), ("Tab", "SUMMARY")):
            lab.page.keyboard.press(key)
            assert lab.page.evaluate(ring) == [tag, "solid", "2px", True], theme


@pytest.mark.parametrize(("name", "done"), [("Step", 2), ("Run all", 4)])
def test_a_double_click_is_one_click(lab: Lab, name: str, done: int) -> None:
    lab.run_cells(CELLS)
    button(lab, name).dblclick()
    lab.wait_for_idle()
    assert lab.value(DONE) == done
    position = events(lab)
    ready(lab)
    assert events(lab) == position  # the second half did not come late
    button(lab, "Step").click()
    lab.wait_for_idle()
    assert lab.value(DONE) == min(done + 1, 4)


def test_clicks_that_come_while_a_stage_runs_are_dropped(lab: Lab) -> None:
    slow = """import time
_quick = pipeline._investigation.step
pipeline._investigation.step = lambda **how: (time.sleep(1.5), _quick(**how))[1]"""
    lab.run_cells([*CELLS, slow])
    button(lab, "Step").click()
    lab.page.locator(f"{LIVE} .cm-busy").wait_for()
    for name in ("Run all", "Step", "Remove the handoff"):
        button(lab, name).focus()
        lab.page.keyboard.press("Enter")  # the mouse is kept away, keys are not
    assert lab.page.locator(LIVE).get_by_text("The planner is running …").is_visible()
    lab.wait_for_idle()
    assert lab.value(DONE) == 2
    assert said(lab) == "The planner has run and saved its record. Next: the executor."
    assert lab.value("ws.graph.get_object('Run#1.planner') is not None")
