"""Notes: what is kept of them, their time, and the entities that they mention."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from contextmesh.core.events import FrozenClock
from contextmesh.errors import AlreadyExistsError, InvalidNameError, UsageError
from contextmesh.investigation.workspace import Workspace
from tests.investigation.conftest import Opened
from tests.investigation.making import contents, entity, evidence, reading


def mentions(ws: Workspace, memory: str) -> list[str]:
    return [row.target for row in ws.graph.relations(source=memory, type="MENTIONS")]


def test_a_note_is_a_memory_of_its_session(ws: Workspace) -> None:
    row = ws.session("Monday night").note("The disk filled up", at="2026-03-02T14:05+01:00", author="ada")
    assert row.type == "Memory"
    assert row.data == {
        "label": "The disk filled up",
        "text": "The disk filled up",
        "source": "user_note",
        "trusted": False,
        "revision": 1,
        "session": ws.session("Monday night").id,
        "author": "ada",
        "occurred_at": "2026-03-02T14:05:00+01:00",
    }
    assert row.provenance["actor"] == "ada"
    holders = [(found.source, found.type) for found in ws.graph.relations(target=row.id)]
    assert holders == [(ws.session("Monday night").id, "HAS_MEMORY")]
    assert ws.graph.get_object(ws.session("Monday night").id).data == {"label": "Monday night"}


def test_the_same_note_in_the_same_session_is_the_same_memory(ws: Workspace, opened: Opened) -> None:
    first = ws.session("Monday night").note("The disk filled up")
    position = ws.graph.position
    assert ws.session("Monday night").note("The disk filled up") == first
    assert opened(ws.name).session("  Monday \n night ").note("The disk filled up").id == first.id
    assert ws.graph.position == position
    assert ws.session("Tuesday").note("The disk filled up").id != first.id
    assert ws.session("Monday night").note("The disk filled up.").id != first.id
    assert len(ws.graph.objects("Memory")) == 3
    assert len(ws.graph.objects("Session")) == 2


def test_a_session_is_saved_with_its_first_note_or_question(ws: Workspace) -> None:
    session = ws.session("Monday night")
    assert ws.graph.objects("Session") == []
    session.note("One")
    session.note("Two")
    session.investigate("Three?", run=False)
    assert [row.data["label"] for row in ws.graph.objects("Session")] == ["Monday night"]


@pytest.mark.parametrize("label", ["", "  \n", "x" * 201])
def test_a_sessions_label_is_refused(ws: Workspace, label: str) -> None:
    with pytest.raises(UsageError, match=r"a session's label has (0|201) characters; expected 1 to 200"):
        ws.session(label)


def test_a_note_may_bring_its_id(ws: Workspace) -> None:
    session = ws.session("s")
    assert session.note("First", id="note-1").id == "note-1"
    assert session.note("First", id="note-1").version == 1
    with pytest.raises(AlreadyExistsError, match=r"'note-1' reads differently; change it with ws\.revise\('note-1'"):
        session.note("Second", id="note-1")
    with pytest.raises(AlreadyExistsError, match="the id 'note-1' belongs to a Memory of another session"):
        ws.session("t").note("First", id="note-1")
    for own in ("workspace", "Run#4.researcher", "agent.planner", "session.0"):
        with pytest.raises(UsageError, match=f"ids such as '{own}' are contextmesh's own"):
            session.note("First", id=own)
    with pytest.raises(InvalidNameError, match="'a b' is no id"):
        session.note("First", id="a b")
    assert len(ws.graph.objects("Memory")) == 1


@pytest.mark.parametrize("text", ["", "   ", "\n\t", None, 7])
def test_a_note_needs_words(ws: Workspace, text: Any) -> None:
    with pytest.raises(UsageError, match=r"the note's text is .*; expected some words"):
        ws.session("s").note(text)
    assert ws.graph.objects("Session") == []


@pytest.mark.parametrize(
    ("at", "stored"),
    [
        ("2026-03-02T14:05Z", "2026-03-02T14:05:00+00:00"),
        ("2026-03-02T14:05:06.5-08:00", "2026-03-02T14:05:06.500000-08:00"),
        (datetime(2026, 3, 2, 14, 5, tzinfo=timezone(timedelta(hours=5, minutes=30))), "2026-03-02T14:05:00+05:30"),
        (None, None),
    ],
)
def test_a_notes_time_keeps_its_zone(ws: Workspace, at: Any, stored: str | None) -> None:
    assert ws.session("s").note("x", at=at).data["occurred_at"] == stored


@pytest.mark.parametrize(
    ("at", "message"),
    [
        ("2026-03-02T14:05", r"the time 2026-03-02T14:05 names no zone; expected one, such as"),
        (datetime(2026, 3, 2, 14, 5), r"the time 2026-03-02 14:05:00 names no zone"),  # noqa: DTZ001 - the point
        ("2026-03-02", "names no zone"),
        ("yesterday", r"the time 'yesterday' cannot be read; expected ISO 8601 with a zone"),
        ("", "the time '' cannot be read"),
    ],
)
def test_a_notes_time_needs_a_zone(ws: Workspace, at: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ws.session("s").note("x", at=at)
    assert ws.graph.objects("Memory") == []


@pytest.mark.parametrize("at", [date(2026, 3, 2), 1_772_456_700])
def test_a_notes_time_of_another_type_is_refused_in_our_words(ws: Workspace, at: Any) -> None:
    with pytest.raises(UsageError, match="expected ISO 8601 with a zone"):
        ws.session("s").note("x", at=at)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("The Checkout API was slow", ["checkout-api"]),
        ("the CHECKOUT   api, again", ["checkout-api"]),
        ("(checkout\napi)", ["checkout-api"]),
        ("Checkout APIs are many", []),
        ("xCheckout API", []),
        ("checkoutapi", []),
        ("Checkout of the API", []),
        ("restarted the shop front", ["checkout-api"]),
        ("restarted the shop frontier", []),
        ("Ärger mit ŞEHİR-Dienst", []),
        ("Straßenbahn war weg", []),
        ("STRASSE war weg", ["road"]),
        ("Maya Chen said: Checkout API", ["checkout-api", "maya-chen"]),
        ("v2.4, then", ["release"]),
        ("C++ crashed", ["cpp"]),
        ("the 🔥 again", []),
        ("nothing of note", []),
    ],
)
def test_a_note_mentions_entities_by_label_and_alias_as_whole_words(ws: Workspace, text: str, named: list[str]) -> None:
    facts = [
        entity("checkout-api", "Checkout API", aliases=["shop front"]),
        entity("maya-chen", "Maya Chen", "person"),
        entity("release", "Release 2.4", "change", aliases=["v2.4", 7, ""]),
        entity("road", "Straße"),
        entity("cpp", "C++"),
        evidence("paper", "nothing of note"),
    ]
    ws.ingest([reading(facts)])
    row = ws.session("s").note(text)
    assert mentions(ws, row.id) == named


def test_a_longer_version_is_another_name(ws: Workspace) -> None:
    ws.ingest([reading([entity("release", "Release 2.4", "change")])])
    assert mentions(ws, ws.session("s").note("Rolled back Release 2.4.1").id) == []


def test_an_entity_that_comes_later_is_linked_to_earlier_notes(ws: Workspace) -> None:
    hit = ws.session("s").note("The Ledger was late; see also billing.")
    miss = ws.session("s").note("The Ledgers were late")
    alias = ws.session("s").note("the BOOK OF ACCOUNTS was late")
    ws.ingest([reading([entity("ledger", "Ledger", aliases=["book of accounts"])])])
    assert [mentions(ws, row.id) for row in (hit, miss, alias)] == [["ledger"], [], ["ledger"]]
    before = contents(ws.graph)
    ws.ingest([reading([entity("ledger", "Ledger", aliases=["book of accounts"])])])
    assert contents(ws.graph) == before


def test_an_alias_that_comes_later_is_linked_to_earlier_notes(ws: Workspace) -> None:
    row = ws.session("s").note("the book of accounts was late")
    ws.ingest([reading([entity("ledger", "Ledger")])])
    ws.ingest([reading([entity("ledger", "Ledger", aliases=["book of accounts"])])])
    assert mentions(ws, row.id) == ["ledger"]


def test_mentions_follow_a_revision(ws: Workspace) -> None:
    ws.ingest([reading([entity("ledger", "Ledger"), entity("vault", "Vault")])])
    row = ws.session("s").note("The Ledger was late")
    assert mentions(ws, row.id) == ["ledger"]
    ws.revise(row.id, "The Vault was late")
    assert mentions(ws, row.id) == ["vault"]


@pytest.mark.parametrize("text", ["mine", "theirs"])
def test_two_first_notes_of_a_session_at_once_are_both_kept(
    ws: Workspace, opened: Opened, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    other = opened(ws.name)
    mention = ws._mention

    def raced(memory_id: str, text: str) -> None:
        monkeypatch.undo()
        other.session("new").note("theirs")
        mention(memory_id, text)

    monkeypatch.setattr(ws, "_mention", raced)
    ws.session("new").note(text)
    assert {row.data["text"] for row in ws.graph.objects("Memory")} == {"theirs", text}


def test_the_clock_dates_what_is_written(opened: Opened) -> None:
    ws = opened(clock=FrozenClock(datetime(2026, 3, 2, 12, tzinfo=UTC)))
    ws.session("s").note("x")
    assert set(ws.log()["time"]) == {"2026-03-02T12:00:00.000000Z"}
