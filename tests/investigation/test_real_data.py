"""From files to answers: importing postmortems again changes nothing, and answers rest on them by file and line.

The real files are those of the folder `dfds_postmortems` in $CONTEXTMESH_REAL_DATA; where it is not set, synthetic
files of the same shape stand in for them.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from contextmesh.investigation.result import Investigation
from contextmesh.investigation.workspace import Workspace

SYNTHETIC = Path(__file__).parents[1] / "importers" / "postmortems"
OUTAGE = SYNTHETIC / "INC-101 - Synthetic cache outage.md"
LEARNED = "what have we learned from nodes running out of resources?"
PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?:, at .+)?")
REAL_PLACE = r"PM\d{4}-\d{3} .+\.md:\d+(?!\d)"
KETTLE = "Why did the kettle boil over, and what have we learned from it?"


@pytest.fixture(scope="module")
def real() -> Path:
    """The folder of real postmortems."""
    root = os.environ.get("CONTEXTMESH_REAL_DATA")
    if not root:
        pytest.skip("CONTEXTMESH_REAL_DATA does not name the folder of real data")
    return Path(root) / "dfds_postmortems"


def import_twice(ws: Workspace, files: Path) -> int:
    """Import a folder twice, the second time without any effect; return how many facts it holds."""
    first = ws.load.postmortems(files)
    assert (first.changed, first.unchanged) == (0, 0)
    position = ws.graph.position
    second = ws.load.postmortems(files)
    assert (second.added, second.changed, second.unchanged) == (0, 0, first.added)
    assert second.skipped == first.skipped
    assert ws.graph.position == position
    return first.added


def count(ws: Workspace, kind: str, **fields: str) -> int:
    """How many nodes of a kind FalkorDB holds that have these properties."""
    wanted = ", ".join(f"{name}: ${name}" for name in fields)
    return int(ws.cypher(f"MATCH (n:{kind} {{{wanted}}}) RETURN count(n) AS n", fields)["n"][0])


def ask(ws: Workspace, folder: Path, question: str, *options: str) -> str:
    """Ask through the command line, in a process of its own."""
    command = [sys.executable, "-m", "contextmesh", "--data-dir", str(folder), "ask", ws.name, question, *options]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout


def plain(markdown: str) -> str:
    """A text without links, marks and runs of spaces."""
    return " ".join(re.sub(r"[*_`>]|\]\([^)]*\)|\[", "", markdown).split())


def check_places(evidence: Sequence[Mapping[Any, Any]], files: Path) -> int:
    """Insist that each source that is a file and a line holds the fact there; return how many do."""
    found = 0
    for row in evidence:
        place = PLACE.fullmatch(row["source"])
        if place is None:
            continue
        lines = (files / place["file"]).read_text("utf-8-sig").splitlines()
        line = plain(lines[int(place["line"]) - 1])
        if "." in row["id"]:  # a row, a factor, a lesson, an action item; an incident stands for its whole file
            first = re.findall(r"\w+", row["text"])[:2]
            assert " ".join(first) in " ".join(re.findall(r"\w+", line)), row["source"]
        found += 1
    return found


def lessons_in(files: Path) -> set[str]:
    """How each item and paragraph under "Lessons Learned" begins, read without the importer."""
    begun: set[str] = set()
    for file in files.iterdir():
        text = file.read_text("utf-8-sig")
        for section in re.findall(r"(?ms)^#+ *Lessons? Learn(?:ed|t)\W*?$(.*?)(?=^#{1,2} |\Z)", text):
            begun |= {plain(re.sub(r"^\s*(?:[-*+]|\d+\.)\s", "", line))[:40] for line in section.splitlines()}
    return {lesson for lesson in begun if len(lesson) > 10}


def same_as_printed(printed: dict[str, Any], inv: Investigation) -> None:
    """Insist that the command line's JSON tells what the investigation of the same question told."""
    told = inv.to_dict()
    assert printed["answer"] == told["answer"]
    assert printed["evidence"] == told["evidence"]
    assert printed["run"] != told["run"]


@pytest.mark.real_data
def test_real_postmortems_are_imported_once_and_answer(ws: Workspace, folder: Path, real: Path) -> None:
    import_twice(ws, real)
    assert count(ws, "Entity", entity_type="incident") >= 39
    assert count(ws, "Evidence", evidence_type="timeline") >= 369
    assert count(ws, "Entity", entity_type="action_item") >= 127

    inv = ws.session("Tuesday").investigate(LEARNED)
    assert inv.status == "completed"
    evidence = inv.evidence.to_dict("records")
    assert any(re.match(REAL_PLACE, row["source"]) for row in evidence)
    assert check_places(evidence, real) > 5
    assert "Learned from PM" in inv.answer
    answer = plain(inv.answer)
    assert any(lesson in answer for lesson in lessons_in(real)), answer
    assert "caused by" not in answer

    printed = json.loads(ask(ws, folder, LEARNED, "--json"))
    same_as_printed(printed, inv)
    ids = [row["id"] for row in printed["evidence"]]
    places = ws.cypher("MATCH (n) WHERE n.id IN $ids AND n.line > 0 RETURN n.file AS file", {"ids": ids})
    assert set(places["file"]) <= {file.name for file in real.iterdir()}
    assert len(places) > 5
    assert re.search(f"source: {REAL_PLACE}", plain(ask(ws, folder, LEARNED)))


def test_synthetic_postmortems_are_imported_once_and_answer(ws: Workspace, folder: Path) -> None:
    import_twice(ws, SYNTHETIC)
    # Counted by hand: in INC-101 17 of 20 rows can be read, in INC-102 both; three lessons; two action items and one.
    assert count(ws, "Entity", entity_type="incident") == 2
    assert count(ws, "Evidence", evidence_type="timeline") == 17 + 2
    assert count(ws, "Entity", entity_type="lesson") == 3
    assert count(ws, "Entity", entity_type="action_item") == 2 + 1

    inv = ws.session("Tuesday").investigate(KETTLE)
    assert inv.status == "completed"
    evidence = inv.evidence.to_dict("records")
    [line] = [at for at, text in enumerate(OUTAGE.read_text("utf-8").splitlines(), 1) if "Kettle boiled over" in text]
    [boiled] = [row for row in evidence if row["text"] == "Kettle boiled over, twice"]
    assert re.match(rf"{re.escape(OUTAGE.name)}:{line}(?!\d)", boiled["source"])
    assert "matches 'kettle'" in boiled["reasons"]
    assert check_places(evidence, SYNTHETIC) > 5
    assert "Learned from INC-101 Synthetic cache outage" in inv.answer
    assert "Check the lid before boiling" in inv.answer

    same_as_printed(json.loads(ask(ws, folder, KETTLE, "--json")), inv)
    assert f"source: {OUTAGE.name}:{line}" in plain(ask(ws, folder, KETTLE))


def test_a_question_about_nothing_in_the_files_finds_nothing(ws: Workspace) -> None:
    ws.load.postmortems(SYNTHETIC)
    inv = ws.session("Tuesday").investigate("How do I bake sourdough bread?")
    assert inv.evidence.empty
    assert "Nothing in this workspace matches the question" in inv.answer
