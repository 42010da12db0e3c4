"""Revisions of notes: every earlier text is kept, and none of them is found."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contextmesh.errors import ConcurrentWriterError, NotFoundError, UsageError
from contextmesh.investigation.workspace import Workspace
from tests.investigation.conftest import Opened
from tests.investigation.making import MEGABYTE, told


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
