"""The panel of notes: adding, revising, and that neither is done twice."""

from collections.abc import Callable
from typing import Any

import pytest

from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import MemoryPanel, State
from contextmesh.widgets import memory as module
from tests.widgets.reading import HOSTILE, Tags, is_literal, shown

MONDAY = "Checkout errors rose at 14:05, after Release 2.4"


def notes(panel: MemoryPanel) -> list[tuple[str, str, int]]:
    return [(row["note"], row["session"], row["revision"]) for row in panel.rows]


def type_in(panel: MemoryPanel, text: str, session: str) -> None:
    panel.text.value, panel.label.value = text, session


def events(ws: Workspace, kind: str) -> int:
    return sum(event.type == "object.created" and event.payload["object"]["type"] == kind for event in ws.graph.events)


def test_what_is_saved_is_listed_the_latest_first(acme: Workspace) -> None:
    acme.session("Tuesday").note("The TTL is back at 3,600 s")
    panel = MemoryPanel(acme)
    assert notes(panel) == [("The TTL is back at 3,600 s", "Tuesday", 1), (MONDAY, "Monday night", 1)]
    assert panel.rows[0]["source"] == "user note, not verified"
    assert repr(panel) == f"<MemoryPanel {acme.name!r}: 2 notes>"
    panel.close()


def test_a_panel_of_one_session(acme: Workspace) -> None:
    acme.session("Tuesday").note("The TTL is back at 3,600 s")
    panel = MemoryPanel(acme, session="Monday night")
    assert notes(panel) == [(MONDAY, "Monday night", 1)]
    assert repr(panel) == f"<MemoryPanel {acme.name!r}, Monday night: 1 note>"
    panel.text.value = "And at 14:20 again"
    panel.save.click()
    assert notes(panel)[0] == ("And at 14:20 again", "Monday night", 1)
    empty = MemoryPanel(acme, session=acme.session("Never used"))
    assert notes(empty) == []
    panel.close()
    empty.close()


def test_a_note_is_saved_once_however_often_the_button_is_pressed(acme: Workspace) -> None:
    panel = MemoryPanel(acme)
    type_in(panel, "Maya Chen restarted it", "Wednesday")
    panel.save.click()
    panel.save.click()
    saved = panel.rows[0]["id"]
    assert panel.status.text == f"Nothing new to save; {saved} is saved."
    type_in(panel, "Maya Chen restarted it", "Wednesday")
    panel.save.click()
    assert panel.status.text.startswith(f"Saved as {saved}")
    assert events(acme, "Memory") == 2  # Monday's and this one
    assert panel.selection == saved
    assert [row.target for row in acme.graph.relations(source=saved, type="MENTIONS")] == ["maya-chen"]
    panel.close()


@pytest.mark.parametrize(
    ("text", "session", "said"),
    [
        ("", "Wednesday", "save failed: the note's text is ''; expected some words"),
        ("a note", " ", "save failed: the session has no label; say in which sitting this was seen"),
        ("a note", "x" * 300, "save failed: a session's label has 300 characters; expected 1 to 200"),
    ],
)
def test_what_cannot_be_saved_is_said_and_stays_in_the_form(
    acme: Workspace, text: str, session: str, said: str
) -> None:
    panel = MemoryPanel(acme)
    type_in(panel, text, session)
    panel.save.click()
    assert panel.status.text.startswith(said)
    assert panel.text.value == text
    assert len(panel.rows) == 1
    panel.close()


def test_a_revision_keeps_the_earlier_text_and_is_made_once(acme: Workspace) -> None:
    panel = MemoryPanel(acme)
    assert panel._changing.layout.display == "none"
    panel.table._buttons[0].click()
    assert (panel._changing.layout.display, panel.revision.value) == ("", MONDAY)
    panel.revision.value = "Checkout errors rose at 14:05 UTC"
    panel.revise.click()
    assert panel.status.text.startswith("Saved revision 2 of memory.")
    panel.revise.click()
    assert panel.status.text.endswith("reads like this already: revision 2.")
    assert notes(panel) == [("Checkout errors rose at 14:05 UTC", "Monday night", 2)]
    assert Tags(panel._earlier.value).text == f"revision 1{MONDAY}"
    history = acme.history(panel.rows[0]["id"])
    assert list(history["text"])[-1] == "Checkout errors rose at 14:05 UTC"
    assert events(acme, "Evidence") == 1 + sum(
        row.data.get("source") == "AcmeShop" for row in acme.graph.objects("Evidence")
    )
    panel.close()


def test_a_note_that_changed_elsewhere_is_not_overwritten(acme: Workspace) -> None:
    panel = MemoryPanel(acme)
    panel.state.selection = note = panel.rows[0]["id"]
    acme.revise(note, "theirs")
    panel.revision.value = "mine"
    panel.revise.click()
    assert panel.status.text.startswith(f"revise failed: {note} has been changed elsewhere since")
    assert (panel.revision.value, acme.graph.get_object(note).data["text"]) == ("mine", "theirs")
    panel._again.click()
    assert panel.revision.value == "theirs"
    panel.revision.value = "mine"
    panel.revise.click()
    assert notes(panel) == [("mine", "Monday night", 3)]
    assert Tags(panel._earlier.value).text == f"revision 2theirsrevision 1{MONDAY}"
    panel.close()


def test_without_a_selection_nothing_is_revised(acme: Workspace) -> None:
    panel = MemoryPanel(acme)
    panel.revise.click()
    assert panel.status.text == "revise failed: no note is selected; select the one to revise by its button"
    panel.state.selection = "checkout-api"  # an entity
    assert panel._changing.layout.display == "none"
    panel.close()


def test_a_selection_elsewhere_opens_the_form(acme: Workspace) -> None:
    state = State()
    panel = MemoryPanel(acme, state=state)
    state.selection = panel.rows[0]["id"]
    assert panel.revision.value == MONDAY
    panel.close()


def test_fields_send_what_is_typed_when_they_are_left(acme: Workspace) -> None:
    panel = MemoryPanel(acme)  # key by key, a click could overtake the last letters while the kernel is busy
    assert not any(field.continuous_update for field in (panel.text, panel.label, panel.revision))
    panel.close()


def test_what_is_not_listed_is_counted(acme: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST", 2)
    for n in range(3):
        acme.session("Tuesday").note(f"note {n}")
    panel = MemoryPanel(acme)
    assert [row["note"] for row in panel.rows] == ["note 2", "note 1"]
    assert "4 notes; 2 more are not listed" in Tags(shown(panel)).text
    panel.close()


def test_the_past_is_listed_and_not_written(acme: Workspace) -> None:
    with acme.at(position=acme.graph.position) as then:
        panel = MemoryPanel(then)
        assert len(panel.rows) == 1
        type_in(panel, "later", "Wednesday")
        panel.save.click()
        assert panel.status.text.startswith("save failed: ")
        panel.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(acme: Workspace, text: str) -> None:
    panel = MemoryPanel(acme)
    type_in(panel, text, f"<u>{text[:100]}")
    panel.save.click()
    assert panel.revision.value == text
    assert is_literal(panel._whole.value, text)
    panel.revision.value = f"{text} <u>"
    panel.revise.click()
    assert is_literal(panel._earlier.value, text)
    for html in (shown(panel), panel.to_html()):
        assert is_literal(html, "<u>")
    panel.close()


def test_showing_it_leaves_a_still_picture(acme: Workspace, displayed: list[dict[str, Any]]) -> None:
    panel = MemoryPanel(acme)
    panel._ipython_display_()
    assert MONDAY in Tags(displayed[1]["text/html"]).text
    panel.close()


def test_closing_frees_all_of_it(acme: Workspace, left_open: Callable[[], set[str]]) -> None:
    panel = MemoryPanel(acme)
    panel.close()
    panel.close()
    assert left_open() == set()
