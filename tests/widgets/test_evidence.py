"""The table of evidence: what it lists and why, that it follows run and selection, and what is left of it."""

from collections.abc import Callable
from typing import Any

import pytest

from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import EvidenceTable, State
from tests.widgets.reading import HOSTILE, QUESTION, Tags, elsewhere, is_literal, shown


def test_the_facts_stand_best_first_each_with_why(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION)
    table = EvidenceTable(inv)
    assert [row["id"] for row in table.rows] == list(inv.evidence["id"])
    first = table.rows[0]
    assert (first["label"], first["kind"], first["source"]) == ("Maya Chen", "Entity", "AcmeShop (synthetic)")
    assert first["why retrieved"].startswith("matches 'owns', 'system'")
    assert {"redis-change", "inc-104"} <= set(table.evidence["id"])
    assert repr(table) == f"<EvidenceTable Run#1: {len(inv.evidence)} facts>"
    table.close()


def test_it_fills_when_the_researcher_has_run(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    table = EvidenceTable(inv)
    assert (table.rows, repr(table)) == ([], "<EvidenceTable Run#1: 0 facts>")
    assert "No evidence: the researcher has not run yet" in Tags(shown(table)).text
    inv.step()
    assert {row["id"] for row in table.rows} >= {"redis-change", "maya-chen"}
    table.close()


def test_another_process_s_stages_come_with_refresh(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    table = EvidenceTable(inv)
    elsewhere(acme, lambda ws: ws.resume(inv.run_id))
    assert table.rows == []
    table._again.click()
    assert len(table.rows) == len(inv.evidence) > 0
    table.close()


def test_picking_selects_and_what_is_selected_elsewhere_is_marked(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION)
    state = State()
    one, other = EvidenceTable(inv, state=state), EvidenceTable(inv, state=state)
    at = [row["id"] for row in one.rows].index("maya-chen")
    one.table._buttons[at].click()
    assert state.selection == one.selection == other.selection == other.table.selected == "maya-chen"
    assert "Maya Chen owns the Checkout API system." in Tags(other._whole.value).text
    state.selection = "workspace"  # no fact
    assert (one.table.selected, one._whole.value) == (None, "")
    one.close()
    state.selection = "maya-chen"
    assert other.table.selected == "maya-chen"
    other.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(acme: Workspace, text: str) -> None:
    acme.graph.add_object("Entity", {"label": f"zebra {text}", "text": text, "source": text}, id="hostile")
    table = EvidenceTable(acme.session("Tuesday").investigate(f"zebra {text}"))
    table.state.selection = "hostile"
    assert is_literal(table._whole.value, text)
    for html in (shown(table), table.to_html()):
        assert is_literal(html, "zebra")
    table.close()


def test_showing_it_leaves_a_still_picture(acme: Workspace, displayed: list[dict[str, Any]]) -> None:
    table = EvidenceTable(acme.session("Tuesday").investigate(QUESTION))
    table._ipython_display_()
    live, still = displayed
    assert "application/vnd.jupyter.widget-view+json" in live
    page = Tags(still["text/html"])
    assert {"table", "caption", "th"} <= page.tags
    assert "Maya Chen owns the Checkout API system." in page.text
    table.close()
    table._ipython_display_()
    assert displayed[2:] == [still]


def test_closing_frees_all_of_it(acme: Workspace, left_open: Callable[[], set[str]]) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    table = EvidenceTable(inv)
    table.close()
    table.close()
    assert left_open() == set()
    inv.step()
    table.state.selection = "maya-chen"
    assert table.rows == []
