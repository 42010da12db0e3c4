"""Workspace and Session: notes, revisions, ingests, reads, isolation, hostile text."""

import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import contextmesh as cm
from contextmesh.core.events import FrozenClock
from contextmesh.core.graph import Graph
from contextmesh.errors import (
    AlreadyExistsError,
    ConcurrentWriterError,
    ContextMeshError,
    InvalidNameError,
    NotFoundError,
    QueryError,
    RunNotFoundError,
    ServerError,
    UsageError,
    WorkspaceNotFoundError,
)
from contextmesh.investigation.vocabulary import KINDS, RELATIONS, Vocabulary
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores import keyspace
from tests.investigation.making import QUESTION, contents, entity, evidence, link, reading, thing, told, whole

Opened = Callable[..., Workspace]
MEGABYTE = "zyzzyvaword " + "lorem ipsum " * 87_380

HARD_TEXTS = {
    "cypher": "foundword'}) DETACH DELETE n //",
    "cypher-comment": "foundword */ MATCH (n) DETACH DELETE n /* `Node` $ids {id: 1}",
    "quotes": "foundword \"double\" 'single' `back` \\' \\\" \\\\ \\",
    "search-operators": 'foundword @search:{x} | -y* (a|b) %fuzzy% "exact" ~[1 2]',
    "emoji": "foundword 🔥🧑‍🚒👩🏽‍💻🇩🇪 exploded",
    "right-to-left": "foundword שלום العربية \u202eevil\u202c end",
    "markup": "foundword <script>alert(1)</script> & <b onclick='x'>",
    "controls": "foundword \0 null \x1b[31m red \x07 bell \r\n\t\v\f end",
    "unicode": "foundword ǅ İ ß ﬁ ½ ² Å é ᾳ 漢字 かな 한국어 नमस्ते ไทย",
    "json": 'foundword {"a": [1, null, NaN, Infinity], "b": "\\u0000"}',
    "megabyte": "foundword " + "x" * 500_000 + " " + "y z " * 125_000,
    "format": "foundword {0} %s %(x)s ${y} {{ z }} {% raw %}",
}


def mentions(ws: Workspace, memory: str) -> list[str]:
    return [row.target for row in ws.graph.relations(source=memory, type="MENTIONS")]


# notes


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


# revisions


def test_revising_keeps_every_earlier_text(ws: Workspace) -> None:
    texts = ["alphaword one", "betaword two", "gammaword three", "deltaword four"]
    row = ws.session("s").note(texts[0], author="ada")
    for number, text in enumerate(texts[1:], 2):
        revised = ws.revise(row.id, text, author="bob")
        assert (revised.id, revised.version, revised.data["revision"]) == (row.id, number, number)
        assert (revised.data["text"], revised.data["label"]) == (text, text)
        assert (revised.data["author"], revised.data["trusted"]) == ("ada", False)
    kept = ws.graph.objects("Evidence", {"memory": row.id})
    assert [(item.data["revision"], item.data["text"]) for item in kept] == list(enumerate(texts[:3], 1))
    assert [item.version for item in kept] == [1, 1, 1]
    links = ws.graph.relations(target=row.id, type="RELATES_TO")
    assert [found.source for found in links] == [item.id for item in kept]


def test_history_shows_each_revision(ws: Workspace) -> None:
    row = ws.session("s").note("alphaword one")
    ws.revise(row.id, "betaword two", author="bob")
    ws.revise(row.id, "gammaword three")
    table = ws.history(row.id)
    assert list(table.columns) == ["position", "time", "event", "actor", "version", "text", "rationale"]
    assert list(table["event"]) == ["object.created", *["patch.proposed", "patch.applied"] * 2]
    shown = table[table["text"] != ""]
    assert list(shown["text"]) == ["alphaword one", "betaword two", "gammaword three"]
    assert list(shown["version"]) == [1, 2, 3]
    assert list(shown["actor"]) == ["user", "bob", "user"]
    assert list(shown["rationale"]) == ["", "revision 2", "revision 3"]
    assert table["position"].is_monotonic_increasing


def test_superseded_text_is_neither_seed_nor_context(ws: Workspace) -> None:
    row = ws.session("s").note("alphaword about the pump")
    ws.revise(row.id, "betaword about the pump")
    assert list(ws.search("alphaword")["id"]) == []
    assert list(ws.search("betaword")["id"]) == [row.id]
    inv = ws.session("t").investigate("alphaword or betaword?")
    assert list(inv.evidence["id"]) == [row.id]
    assert "alphaword" not in json.dumps(inv.to_dict()["evidence"])
    assert "No fact mentions 'alphaword'; the evidence rests on 'betaword'." in list(inv.gaps["gap"])


def test_a_note_that_was_revised_often_is_still_found(ws: Workspace) -> None:
    row = ws.session("s").note("The pump leaks, first look")
    for number in range(2, 8):
        ws.revise(row.id, f"The pump leaks, look number {number}")
    assert list(ws.search("pump")["id"]) == [row.id]


def test_a_note_with_a_long_id_can_be_revised(ws: Workspace) -> None:
    row = ws.session("s").note("one", id="n" * 200)
    assert ws.revise(row.id, "two").data["revision"] == 2


def test_a_note_of_a_megabyte_can_be_revised(ws: Workspace) -> None:
    row = ws.session("s").note(MEGABYTE)
    assert ws.revise(row.id, f"{MEGABYTE} corrected").data["revision"] == 2


def test_revising_to_the_same_text_changes_nothing(ws: Workspace) -> None:
    row = ws.session("s").note("one")
    position = ws.graph.position
    assert ws.revise(row.id, "one") == row
    assert ws.graph.position == position


def test_revising_refuses_what_is_no_note(acme: Workspace) -> None:
    with pytest.raises(UsageError, match="'maya-chen' is a Entity; only a Memory can be revised"):
        acme.revise("maya-chen", "x")
    with pytest.raises(NotFoundError, match=f"no object 'nope' in workspace '{acme.name}' at position "):
        acme.revise("nope", "x")
    with pytest.raises(UsageError, match="the note's text is ' '; expected some words"):
        acme.revise("nope", " ")


REVISE = """
import json, sys
import contextmesh as cm
folder, name, memory, who = sys.argv[1:]
done = 0
with cm.open(name, data_dir=folder) as ws:
    for n in range(8):
        while True:
            try:
                ws.revise(memory, f"{who} {n}")
                break
            except cm.ContextMeshError:
                pass
        done += 1
print(json.dumps(done))
"""


def test_two_processes_that_revise_at_once_lose_nothing(ws: Workspace, folder: Path) -> None:
    row = ws.session("s").note("start 0")
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda who: told(REVISE, folder, ws.name, row.id, who), ("ada", "bob")))
    assert done == [8, 8]
    kept = sorted((item.data["revision"], item.data["text"]) for item in ws.graph.objects("Evidence"))
    assert [number for number, _ in kept] == list(range(1, 17))
    last = ws.graph.get_object(row.id)
    assert (last.data["revision"], last.version) == (17, 17)
    texts = [text for _, text in kept] + [last.data["text"]]
    assert sorted(texts) == sorted(["start 0", *(f"{who} {n}" for who in ("ada", "bob") for n in range(8))])


def test_a_revision_that_another_process_forestalled_is_refused(
    ws: Workspace, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ws.session("s").note("start")
    other = opened(ws.name)
    mention = ws._mention

    def raced(memory_id: str, text: str) -> None:
        other.revise(memory_id, "theirs")
        mention(memory_id, text)

    monkeypatch.setattr(ws, "_mention", raced)
    with pytest.raises(ConcurrentWriterError, match="another writer changed what this batch relied on"):
        ws.revise(row.id, "mine")
    assert [item.data["text"] for item in ws.graph.objects("Evidence")] == ["start"]
    assert ws.graph.get_object(row.id).data["text"] == "theirs"


# ingesting


def test_ingesting_again_changes_nothing(ws: Workspace) -> None:
    facts = [entity("a", "Alpha"), evidence("e", "Alpha was late")]
    links = [link("e", "RELATES_TO", "a", source="paper")]
    first = ws.ingest([reading(facts, links)])
    assert first.to_dict() == {"added": 2, "changed": 0, "unchanged": 0, "skipped": []}
    position = ws.graph.position
    assert ws.ingest([reading(facts, links)]).to_dict() == {"added": 0, "changed": 0, "unchanged": 2, "skipped": []}
    assert ws.graph.position == position
    assert [row.data for row in ws.graph.relations(source="e")] == [{"source": "paper"}]


def test_a_changed_fact_is_replaced_and_its_history_kept(ws: Workspace) -> None:
    ws.ingest([reading([evidence("e", "first", line=3)])])
    report = ws.ingest([reading([evidence("e", "second")])])
    assert (report.added, report.changed, report.unchanged) == (0, 1, 0)
    row = ws.graph.get_object("e")
    assert (row.data, row.version) == ({"label": "e", "text": "second"}, 2)
    assert [text for text in ws.history("e")["text"] if text] == ["first", "second"]


def test_what_vanished_is_withdrawn_and_comes_back(ws: Workspace) -> None:
    both = [evidence("src", "The source"), evidence("src.part", "Quokkaword part")]
    ws.ingest([reading(both, source="src"), reading([evidence("srcother", "Another source")], source="srcother")])
    gone = ws.ingest([reading(both[:1], source="src")])
    assert (gone.added, gone.changed, gone.unchanged, gone.withdrawn) == (0, 1, 1, 1)
    assert ws.graph.get_object("src.part").data["withdrawn"] is True
    assert ws.graph.get_object("srcother").data.get("withdrawn") is None
    assert list(ws.search("quokkaword")["id"]) == []
    assert ws.session("s").investigate("Quokkaword?").evidence.empty
    again = ws.ingest([reading(both[:1], source="src")])
    assert (again.changed, again.withdrawn) == (0, 0)
    back = ws.ingest([reading(both, source="src")])
    assert (back.added, back.changed, back.withdrawn) == (0, 1, 0)
    assert "withdrawn" not in ws.graph.get_object("src.part").data
    assert list(ws.search("quokkaword")["id"]) == ["src.part"]


def test_an_unreadable_source_withdraws_nothing(ws: Workspace) -> None:
    ws.ingest([reading([evidence("src", "The source")], source="src")])
    assert ws.ingest([reading([])]).to_dict() == {"added": 0, "changed": 0, "unchanged": 0, "skipped": []}
    assert ws.graph.get_object("src").version == 1


def test_a_source_that_is_given_twice_counts_once(ws: Workspace) -> None:
    page = reading([evidence("src", "The source"), evidence("src.part", "A part")], source="src")
    ws.ingest([page, page])
    report = ws.ingest([page, page])
    assert (report.changed, report.withdrawn) == (0, 0)


def test_a_relation_that_its_source_no_longer_states_goes(ws: Workspace) -> None:
    facts = [entity("src", "Alpha"), entity("src.ann", "Ann"), entity("src.bob", "Bob")]
    ws.ingest([reading(facts, [link("src", "OWNED_BY", "src.ann")], source="src")])
    ws.ingest([reading(facts, [link("src", "OWNED_BY", "src.bob")], source="src")])
    assert [row.target for row in ws.graph.relations(source="src", type="OWNED_BY")] == ["src.bob"]


def test_several_readings_may_share_a_fact(ws: Workspace) -> None:
    shared = entity("system.a", "Alpha")
    report = ws.ingest([reading([evidence(key, key), shared], source=key) for key in ("s1", "s2")])
    assert (report.added, report.changed) == (3, 0)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            reading([evidence("ok", "fine"), thing("x", "Gadget")]),
            "'Gadget' is no kind",
        ),
        (reading([evidence("ok", "fine")], [link("ok", "BLAMES", "ok")]), "'BLAMES' is no relation of this vocabulary"),
        (reading([evidence("ok", "fine"), evidence("no id", "x")]), "'no id' is no id"),
        (reading([evidence("ok", "fine"), evidence("x", "x", provenance=1)]), "the field 'provenance'"),
        (reading([evidence("ok", "fine"), evidence("x", "x", size=float("nan"))]), "JSON cannot carry"),
        (reading([evidence("ok", "fine")], [link("ok", "relates to", "ok")]), "'relates to' is no relation"),
    ],
)
def test_a_reading_is_taken_whole_or_not_at_all(ws: Workspace, bad: Any, message: str) -> None:
    before, position = whole(ws.graph), ws.graph.position
    with pytest.raises(ContextMeshError, match=message):
        ws.ingest([bad])
    assert whole(ws.graph) == before
    assert ws.graph.position == position


def test_a_vocabulary_brings_kinds_and_relations(opened: Opened) -> None:
    ws = opened(vocabulary=Vocabulary(kinds=(*KINDS, "Gadget"), relations={**RELATIONS, "BLAMES": "anyone -> anyone"}))
    ws.ingest([reading([thing("x", "Gadget")], [link("x", "BLAMES", "x")])])
    assert list(ws.table("Gadget")["id"]) == ["x"]


# reading


def test_search_returns_its_columns_best_first(acme: Workspace) -> None:
    found = acme.search("session ttl")
    assert list(found.columns) == ["id", "kind", "label", "text", "source", "score", "terms"]
    assert set(found["id"][:3]) <= {"session-ttl", "inc-104.lesson-1", "redis-change", "release-notes-2.4"}
    assert found["score"].is_monotonic_decreasing
    assert found["terms"][0] == ["session", "ttl"]
    assert found["source"][0] == "AcmeShop (synthetic)"
    assert len(acme.search("session ttl", limit=2)) == 2
    assert acme.search("errors rose 14:05")["source"][0] == "user note, not verified"


@pytest.mark.parametrize("text", ["", "   ", "the of and", "?!", "qwertzuiop"])
def test_search_for_nothing_finds_nothing(acme: Workspace, text: str) -> None:
    found = acme.search(text)
    assert found.empty
    assert list(found.columns) == ["id", "kind", "label", "text", "source", "score", "terms"]


def test_search_never_returns_sessions_runs_or_decisions(acme: Workspace) -> None:
    acme.session("Monday night").investigate("Which checkout errors of AcmeShop concern Monday night?")
    assert set(acme.search("checkout errors monday night decision researcher", limit=100)["kind"]) <= {
        "Entity",
        "Evidence",
        "Memory",
    }


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_at_least_one(acme: Workspace, limit: int) -> None:
    for call in (
        lambda: acme.search("x", limit=limit),
        lambda: acme.paths("redis-change", "maya-chen", limit=limit),
        lambda: acme.neighborhood("maya-chen", limit=limit),
        lambda: acme.log(limit=limit),
    ):
        with pytest.raises(UsageError, match=f"limit is {limit}; expected 1 or more"):
            call()


@pytest.mark.parametrize("limit", [1000, 2**63 - 1, 2**70])
def test_a_limit_may_be_as_large_as_one_likes(acme: Workspace, limit: int) -> None:
    assert len(acme.search("ttl", limit=limit)) == 4
    assert len(acme.neighborhood("maya-chen", limit=limit)) == 2


def test_paths_are_described_shortest_first(acme: Workspace) -> None:
    found = acme.paths("redis-change", "maya-chen")
    assert list(found.columns) == ["path", "hops", "nodes", "relations"]
    first = found.iloc[0]
    assert first["path"] == "Release 2.4 —AFFECTS→ Checkout API —OWNED_BY→ Maya Chen"
    assert first["hops"] == 2
    assert first["nodes"] == ["redis-change", "checkout-api", "maya-chen"]
    assert first["relations"] == ["redis-change>AFFECTS>checkout-api", "checkout-api>OWNED_BY>maya-chen"]
    assert found["hops"].is_monotonic_increasing
    assert found["hops"].max() <= 3
    back = acme.paths("maya-chen", "redis-change")
    assert back["path"][0] == "Maya Chen ←OWNED_BY— Checkout API ←AFFECTS— Release 2.4"
    assert len(acme.paths("redis-change", "maya-chen", hops=1)) == 0
    assert len(acme.paths("redis-change", "inc-104", hops=5, limit=1)) == 1


def test_paths_never_lead_through_sessions_or_runs(acme: Workspace) -> None:
    acme.session("Monday night").note("Unrelated kettle")
    kettle = next(row.id for row in acme.graph.objects("Memory") if "kettle" in row.data["text"])
    acme.session("Tuesday").investigate("kettle and Release 2.4?")
    assert acme.paths(kettle, "redis-change", hops=10).empty


@pytest.mark.parametrize("hops", [0, 11, -1])
def test_hops_of_paths_are_bounded(acme: Workspace, hops: int) -> None:
    with pytest.raises(UsageError, match=f"hops is {hops}; expected 1 to 10"):
        acme.paths("redis-change", "maya-chen", hops=hops)


def test_neighborhood_is_nearest_first(acme: Workspace) -> None:
    found = acme.neighborhood("maya-chen", hops=2)
    assert list(found.columns) == ["id", "kind", "label", "text", "source", "hops"]
    assert list(zip(found["id"], found["hops"], strict=True))[:2] == [("maya-chen", 0), ("checkout-api", 1)]
    assert found["hops"].is_monotonic_increasing
    assert set(found["id"]) == {
        "maya-chen", "checkout-api", "redis-sessions", "redis-change", "checkout-errors", "inc-104",
        *mention_sources(acme, "checkout-api"),
    }  # fmt: skip
    assert list(acme.neighborhood("maya-chen", hops=0)["id"]) == ["maya-chen"]
    assert len(acme.neighborhood("checkout-api", hops=3, limit=4)) == 4
    with pytest.raises(UsageError, match="hops is 11; expected 0 to 10"):
        acme.neighborhood("maya-chen", hops=11)


def mention_sources(ws: Workspace, target: str) -> list[str]:
    return [row.source for row in ws.graph.relations(target=target, type="MENTIONS")]


def test_table_lists_a_kind_by_id(acme: Workspace) -> None:
    table = acme.table("Entity")
    assert list(table.columns) == [
        "id",
        "label",
        "version",
        "aliases",
        "asserts",
        "entity_type",
        "source",
        "synthetic",
        "text",
    ]
    assert list(table["id"]) == sorted(table["id"])
    assert len(table) == 11
    assert list(acme.table("Decision").columns) == ["id", "label", "version"]
    with pytest.raises(InvalidNameError, match="'Node' is no kind of this vocabulary; expected one of Agent, AgentRun"):
        acme.table("Node")


def test_log_pages_through_the_events(acme: Workspace) -> None:
    table = acme.log()
    assert list(table.columns) == ["position", "time", "type", "actor", "about", "frame", "id"]
    assert list(table["position"]) == list(range(1, len(acme.graph.events) + 1))
    assert table["about"][0] == "workspace"
    assert "redis-change -AFFECTS-> checkout-api" in set(table["about"])
    page = acme.log(after=3, limit=2)
    assert list(page["position"]) == [4, 5]
    assert acme.log(after=10_000).empty
    with pytest.raises(UsageError, match="after is -1; expected a log position from 0"):
        acme.log(after=-1)


def test_cypher_reads_with_parameters(acme: Workspace) -> None:
    found = acme.cypher("MATCH (n:Entity {id: $key})-[r]->(m) RETURN n.label AS name, type(r), m.id ORDER BY m.id",
                        {"key": "redis-change"})  # fmt: skip
    assert list(found.columns) == ["name", "type(r)", "m.id"]
    assert found.to_numpy().tolist() == [
        ["Release 2.4", "AFFECTS", "checkout-api"],
        ["Release 2.4", "RELATES_TO", "session-ttl"],
    ]
    value = "'}) DETACH DELETE n // \" \\ ` 🔥"
    assert acme.cypher("RETURN $a AS a, $b AS b", {"a": value, "b": [1, None, {"x": 1.5}]}).to_numpy().tolist() == [
        [value, [1, None, {"x": 1.5}]]
    ]


@pytest.mark.parametrize(
    "query",
    [
        "CREATE (:Entity {id: 'evil'})",
        "MATCH (n) DETACH DELETE n",
        "MATCH (n) SET n.text = 'evil' RETURN n",
        "MERGE (:Evil)",
        "MATCH (n:Entity) REMOVE n.text",
        "CALL { CREATE (e:Evil) RETURN e } RETURN e",
        "UNWIND [1] AS x CALL { WITH x CREATE (:Evil {x: x}) RETURN count(*) AS n } RETURN n",
        "CALL db.idx.fulltext.drop('Node')",
        "CALL db.idx.fulltext.createNodeIndex('Evil', 'x')",
        "CREATE INDEX FOR (n:Evil) ON (n.id)",
        "DROP INDEX ON :Node(id)",
        "MATCH (n:Entity) FOREACH (x IN [n] | SET x.text = 'evil')",
    ],
)
def test_cypher_refuses_every_write(acme: Workspace, query: str) -> None:
    before = (
        whole(acme.graph),
        acme.cypher("CALL db.indexes() YIELD label, properties RETURN label, properties").to_dict(),
    )
    with pytest.raises(QueryError, match="FalkorDB refused the query: "):
        acme.cypher(query)
    after = (
        whole(acme.graph),
        acme.cypher("CALL db.indexes() YIELD label, properties RETURN label, properties").to_dict(),
    )
    assert after == before
    assert not acme.search("ttl").empty


class Sly(str):
    """A text that reads as Cypher of its own where a client pastes it."""

    __slots__ = ()

    def __str__(self) -> str:
        return "1 CREATE (:Evil)"


@pytest.mark.parametrize(
    "value",
    [object(), b"x", float("nan"), float("inf"), 2**63, {1: 2}, {"a b": 1}, (1, 2), {1}, Sly("x"), "\0", "\ud800",
     [[object()]], {"x": {"y": b""}}, date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)],
)  # fmt: skip
def test_cypher_refuses_a_parameter_that_is_not_plain(acme: Workspace, value: Any) -> None:
    with pytest.raises(QueryError, match=r"parameter \$value.* is .*; expected plain JSON types"):
        acme.cypher("RETURN $value", {"value": value})


@pytest.mark.parametrize(
    "name", ["x=1 CREATE (:Evil) RETURN 1 //", "a b", "x\ny", "é", "'", "🔥", "", "`", "\ud800", "1", 7]
)
def test_cypher_refuses_a_parameters_strange_name(acme: Workspace, name: Any) -> None:
    with pytest.raises(
        QueryError, match="is no parameter name; expected a letter, then letters, digits or underscores"
    ):
        acme.cypher("RETURN 1", {name: 1})


@pytest.mark.parametrize(
    "query", ["", "RETURN", "MATCH (n RETURN n", "RETURN $missing", "\0", "RETURN 1; RETURN 2", "🔥"]
)
def test_cyphers_errors_are_clear(acme: Workspace, query: str) -> None:
    with pytest.raises(QueryError, match=r"FalkorDB refused the query: .+"):
        acme.cypher(query)


def test_cypher_gives_up_in_time(acme: Workspace) -> None:
    with pytest.raises(QueryError, match="timed out"):
        acme.cypher("UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN count(a + b)", timeout_ms=20)


def test_unknown_ids_are_named_with_their_workspace(acme: Workspace) -> None:
    place = f"in workspace '{acme.name}' at position {acme.graph.position}"
    for call in (
        lambda: acme.paths("nope", "maya-chen"),
        lambda: acme.paths("maya-chen", "nope"),
        lambda: acme.neighborhood("nope"),
        lambda: acme.history("nope"),
        lambda: acme.revise("nope", "x"),
    ):
        with pytest.raises(NotFoundError, match=rf"no object 'nope' {place}; ws\.table\('Entity'\) lists"):
            call()
    for call in (lambda: acme.investigation("Run#99"), lambda: acme.resume("maya-chen")):
        with pytest.raises(RunNotFoundError, match=rf"no run '(Run#99|maya-chen)' in workspace '{acme.name}'"):
            call()


@pytest.mark.parametrize(
    ("question", "message"), [("", "is empty"), (" \n", "is empty"), ("x" * 2001, "2,001 characters")]
)
def test_a_question_is_refused_before_anything_is_saved(acme: Workspace, question: str, message: str) -> None:
    position = acme.graph.position
    with pytest.raises(UsageError, match=message):
        acme.session("new").investigate(question)
    assert acme.graph.position == position


def test_runs_are_numbered_one_by_one(acme: Workspace) -> None:
    runs = [acme.session("s").investigate("Who owns the system?", run=False).run_id for _ in range(3)]
    assert runs == ["Run#1", "Run#2", "Run#3"]


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


# isolation and names


def test_two_workspaces_see_nothing_of_each_other(opened: Opened, folder: Path) -> None:
    one, two = opened(), opened()
    cm.demo.acmeshop(one)
    one.session("s").note("xylophoneword")
    run = one.session("s").investigate("xylophoneword?").run_id
    assert two.search("xylophoneword").empty
    assert two.session("s").investigate("xylophoneword?", run=False).run_id == "Run#1"
    assert {row.type for row in two.graph.objects()} == {"Workspace", "Agent", "Session", "Run"}
    assert two.cypher("MATCH (n:Memory) RETURN n").empty
    assert two.cypher("MATCH (n:Entity) RETURN n").empty
    with pytest.raises(NotFoundError, match=rf"no object 'maya-chen' in workspace '{two.name}'"):
        two.history("maya-chen")
    assert len(two.log()) == 5 + 3
    before = whole(one.graph)
    cm.drop(two.name, data_dir=folder)
    assert whole(one.graph) == before
    assert one.investigation(run).status == "completed"


BAD_NAMES = [
    "", "A", "Acme", "a b", " a", "a ", "a\n", "../x", "a/b", "a.b", "a:b", "a*", "a?", "[a]", "{a}", "a}", "-a", "_a",
    "a" * 64, "é", "١", "ａ", "a\0", "🔥", "'", '"', "`", "$x", "cm:{a}:log", "a;b", "%s", "a,b", "a|b", "\ud800",
    None, 7, b"a", ["a"],
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_invalid_names_are_refused(folder: Path, tmp_path: Path, name: Any) -> None:
    message = r"is no workspace name; expected up to 63 of a-z, 0-9, '-' and '_', such as 'acmeshop'"
    with pytest.raises(InvalidNameError, match=message):
        cm.open(name, data_dir=folder)
    with pytest.raises(InvalidNameError, match=message):
        cm.drop(name, data_dir=folder)
    with pytest.raises(InvalidNameError, match=message):
        cm.restore(tmp_path / "none.jsonl", name, data_dir=folder)


@pytest.mark.parametrize("name", ["a", "0", "a-b_c", "a" * 63, "a-", "0_", "log", "graph"])
def test_valid_names_are_taken(folder: Path, name: str) -> None:
    with cm.open(name, data_dir=folder) as ws:
        assert ws.graph.get_object("workspace").data == {"label": name}
        assert repr(ws) == f"<Workspace {name!r}: <Graph at position 5>, embedded FalkorDB in {folder}>"
    cm.drop(name, data_dir=folder)


def test_dropping_takes_only_the_exact_name(opened: Opened, folder: Path, name: str) -> None:
    for suffix in ("", "-2", "_2", "2"):
        opened(f"{name}{suffix}")
    cm.drop(name, data_dir=folder)
    with pytest.raises(
        WorkspaceNotFoundError, match=f"no workspace '{name}' in .*; it holds: .*{name}-2, {name}2, {name}_2"
    ):
        cm.open(name, data_dir=folder, create=False)
    with pytest.raises(WorkspaceNotFoundError, match=f"no workspace '{name}'"):
        cm.drop(name, data_dir=folder)
    cm.drop(name, data_dir=folder, missing_ok=True)
    for suffix in ("-2", "_2", "2"):
        with cm.open(f"{name}{suffix}", data_dir=folder, create=False) as ws:
            assert ws.graph.position == 5
        cm.drop(f"{name}{suffix}", data_dir=folder)


def test_opening_an_unknown_name_without_creating_lists_the_known(ws: Workspace, folder: Path) -> None:
    with pytest.raises(
        WorkspaceNotFoundError, match=rf"no workspace 'unheard-of' in embedded FalkorDB in .*: .*{ws.name}"
    ):
        cm.open("unheard-of", data_dir=folder, create=False)
    with pytest.raises(WorkspaceNotFoundError, match="no workspace 'unheard-of'"):  # and it was not created
        cm.open("unheard-of", data_dir=folder, create=False)


def test_two_may_open_a_new_workspace_at_once(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    add_object = Graph.add_object

    def raced(self: Graph, kind: str, *args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        row = add_object(self, kind, *args, **kwargs)
        cm.open(name, data_dir=folder).close()
        return row

    monkeypatch.setattr(Graph, "add_object", raced)
    with cm.open(name, data_dir=folder) as ws:
        found = [row.id for row in ws.graph.objects()]
        assert found == ["agent.executor", "agent.planner", "agent.researcher", "agent.verifier", "workspace"]


def test_closing_twice_is_fine(folder: Path, name: str) -> None:
    ws = cm.open(name, data_dir=folder)
    ws.close()
    ws.close()
    with pytest.raises(ServerError, match="is closed here; open it again"):
        ws.search("words")


def test_a_wiped_graph_is_replayed_at_the_next_opening(acme: Workspace, opened: Opened) -> None:
    acme.session("Tuesday").investigate(QUESTION)
    before = whole(acme.graph)
    evidence_before = acme.search("session ttl").to_dict()
    acme._server.redis.delete(f"cm:{{{acme.name}}}:graph")
    again = opened(acme.name)
    assert whole(again.graph) == before
    assert again.search("session ttl").to_dict() == evidence_before


def test_rebuild_changes_nothing(acme: Workspace) -> None:
    acme.session("Tuesday").investigate(QUESTION)
    before = whole(acme.graph)
    assert acme.rebuild() == acme.graph.position == len(acme.graph.events)
    assert whole(acme.graph) == before
    assert not acme.search("session ttl").empty


def test_doctor_finds_a_healthy_workspace(acme: Workspace) -> None:
    found = acme.doctor()
    position = len(acme.graph.events)
    assert found.keys() == {
        "server", "versions", "durability", "log_position", "graph_position", "healthy", "problems", "removed",
    }  # fmt: skip
    assert (found["log_position"], found["graph_position"]) == (position, position)
    assert (found["healthy"], found["problems"], found["removed"]) == (True, [], [])
    assert found["durability"] == "everysec"
    assert found["versions"]["falkordb"].startswith("4.")
    json.dumps(found)


def test_doctor_removes_what_an_interrupted_rebuild_left(
    acme: Workspace, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyspace, "LEFTOVER_AFTER_S", 0)
    monkeypatch.setattr(keyspace, "LOOK_AFTER_S", 0)
    other = opened()
    keys = [f"cm:{{{acme.name}}}:rebuild-0123456789ab:graph", f"cm:{{{acme.name}}}:at-7-abc:graph"]
    theirs = f"cm:{{{other.name}}}:rebuild-0123456789ab:graph"
    for key in [*keys, theirs]:
        acme._server.db.select_graph(key).query("CREATE (:Head {seq: 1})")
    before = whole(acme.graph)
    found = acme.doctor()
    assert sorted(found["removed"]) == sorted(keys)
    assert found["healthy"] is True
    assert whole(acme.graph) == before
    assert acme._server.redis.exists(theirs) == 1
    assert acme.doctor()["removed"] == []


def test_doctor_tells_of_a_graph_that_lags(acme: Workspace) -> None:
    acme._store._write("MATCH (h:Head) SET h.seq = 3")
    found = acme.doctor()
    assert found["healthy"] is False
    assert found["graph_position"] == 3
    assert found["problems"] == [f"the graph stands at 3, the log at {found['log_position']}; run rebuild"]
    acme.rebuild()
    assert acme.doctor()["healthy"] is True


# hostile text


@pytest.mark.parametrize("text", HARD_TEXTS.values(), ids=HARD_TEXTS.keys())
def test_hard_text_is_stored_and_found_literally(ws: Workspace, opened: Opened, text: str) -> None:
    row = ws.session("hard").note(text)
    ws.ingest([reading([evidence("other", "Something else entirely")])])
    assert opened(ws.name).graph.get_object(row.id).data["text"] == text
    found = ws.search("foundword")
    assert list(found["id"]) == [row.id]
    assert found["text"][0] == text
    inv = ws.session("ask").investigate("foundword?")
    assert list(inv.evidence["text"]) == [text]
    assert ws.cypher("MATCH (n:Memory) WHERE n.text = $text RETURN n.id", {"text": text.replace("\0", "\ufffd")})[
        "n.id"
    ].tolist() == [row.id]
    assert len(ws.graph.objects()) == 5 + 2 + 1 + 1 + 3 + 4 + 2  # beginning, sessions, note, run, tasks, records, rest


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The שרת is down", "שרת"),
        ("الخادم توقف", "الخادم"),
        ("It was 🔥 again", "🔥"),
        ("Straße gesperrt", "STRASSE"),
        ("ΟΔΟΣ closed", "οδος"),
        ("漢字 broke", "漢字"),
        ("İstanbul down", "İSTANBUL"),
        ("ＦＵＬＬＷＩＤＴＨ text", "fullwidth"),
        ("order-service v1.2.3 crashed", "order-service"),
        ("OrderServiceImpl crashed", "orderserviceimpl"),
        ("failing nodes", "node failed"),
        ("naïve café", "naïve"),
        ("user@example.com wrote", "user@example.com"),
        ("path/to/file.py:42", "file.py"),
        ("__init__ failed", "__init__"),
        ("0x7fff and 10.0.0.1", "10.0.0.1"),
    ],
)
def test_words_of_every_kind_are_found(ws: Workspace, text: str, query: str) -> None:
    row = ws.session("s").note(text)
    ws.session("s").note("Something else entirely")
    assert list(ws.search(query)["id"]) == [row.id]


def test_a_megabyte_of_text_is_stored_and_found(ws: Workspace) -> None:
    row = ws.session("s").note(MEGABYTE)
    assert len(row.data["text"]) > 1_000_000
    found = ws.search("zyzzyvaword")
    assert found["text"].tolist() == [MEGABYTE]


PIECES = [
    "'", '"', "`", "\\", "\0", "\n", "//", "/*", "*/", "--", ";", "|", "@", "@search:", "-", "~", "%", "*", "?", "$",
    "${", "{", "}", "[", "]", "(", ")", "<", ">", "=>", "MATCH (n) DETACH DELETE n", "OR", "AND", "NOT", "checkout",
    "ttl", "' OR 1=1", "\u202e", "\u200b", "\ufeff", "🔥", "שלום", "\x1b[31m", "%00", "\\u0000", "\\x00", "&amp;",
    "NULL", "nan", "__proto__", "{{7*7}}", "$(id)", "a" * 300, "#", "!", "é", "\u0308", "ﷺ", "𝔘", "\uffff", "1e999",
    "-0", "\t", "~[1 2]", "w:",
]  # fmt: skip


def hostile(count: int) -> list[str]:
    generator = random.Random(20260302)
    made = [piece for piece in PIECES if piece.strip()]
    while len(made) < count:
        made.append("".join(generator.choice(PIECES) for _ in range(generator.randint(2, 9))))
    return [text for text in made if text.strip()][:count]


def test_200_hostile_queries_raise_nothing(acme: Workspace) -> None:
    before = whole(acme.graph)
    texts = hostile(210)[:205]
    assert len(set(texts)) >= 200
    for text in texts:
        acme.search(text)
    assert whole(acme.graph) == before


def test_200_hostile_ids_raise_only_our_errors(acme: Workspace) -> None:
    before = whole(acme.graph)
    for text in hostile(205):
        for call in (
            lambda text=text: acme.paths(text, "maya-chen"),
            lambda text=text: acme.paths("maya-chen", text),
            lambda text=text: acme.neighborhood(text),
            lambda text=text: acme.investigation(text),
            lambda text=text: acme.revise(text, text),
        ):
            with pytest.raises(ContextMeshError):
                call()
    assert whole(acme.graph) == before


def test_200_hostile_questions_raise_nothing(acme: Workspace) -> None:
    facts = [row.to_dict() for kind in ("Entity", "Memory", "Evidence") for row in acme.graph.objects(kind)]
    session = acme.session("hostile")
    for text in hostile(205):
        inv = session.investigate(text, run=False)
        inv.step()
        assert inv.question == text
        assert list(inv.stages["stage"]) == ["researcher"]
    for text in hostile(205)[::20]:
        assert session.investigate(text).status == "completed"
    assert facts == [row.to_dict() for kind in ("Entity", "Memory", "Evidence") for row in acme.graph.objects(kind)]


def test_half_a_surrogate_pair_as_an_id_raises_our_error(acme: Workspace) -> None:
    with pytest.raises(ContextMeshError, match="no object"):
        acme.paths("\ud800", "maya-chen")


def test_half_a_surrogate_pair_is_refused_as_a_note(acme: Workspace) -> None:
    with pytest.raises(ContextMeshError, match="half of a surrogate pair"):
        acme.session("s").note("\ud800")


def test_half_a_surrogate_pair_in_a_question_is_replaced(acme: Workspace) -> None:
    assert not acme.search("\ud800 ttl").empty
    inv = acme.session("s").investigate("what \ud800 of the ttl?")
    assert inv.question == "what \ufffd of the ttl?"
    assert inv.status == "completed"


def test_the_clock_dates_what_is_written(opened: Opened) -> None:
    ws = opened(clock=FrozenClock(datetime(2026, 3, 2, 12, tzinfo=UTC)))
    ws.session("s").note("x")
    assert set(ws.log()["time"]) == {"2026-03-02T12:00:00.000000Z"}
