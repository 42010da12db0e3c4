"""Postmortems: every oddity of the real ones in synthetic files, laws over any text, counts on the real folder."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextmesh.errors import ImportFileError
from contextmesh.importers.postmortems import read_postmortem, read_postmortems
from contextmesh.importers.times import read_minutes, read_time
from contextmesh.investigation.facts import Reading

FOLDER = Path(__file__).parent / "postmortems"
OUTAGE = "INC-101 - Synthetic cache outage.md"
SECTIONS = "not a postmortem; expected a title and at least one section of"


@pytest.fixture(scope="module")
def outage() -> Reading:
    return read_postmortem((FOLDER / OUTAGE).read_text(encoding="utf-8"), f"some/folder/{OUTAGE}")


def data(reading: Reading, what: str) -> list[dict[str, Any]]:
    found = [fact.data for fact in reading.facts]
    return [each for each in found if what in (each.get("evidence_type"), each.get("entity_type"))]


def timeline(rows: str, *, head: str = "Time", words: str = "All times in UTC.") -> Reading:
    return read_postmortem(f"# T\n## Timeline\n\n{words}\n\n| {head} | Event |\n|---|---|\n{rows}\n", "INC-1.md")


def test_incident(outage: Reading) -> None:
    (incident,) = data(outage, "incident")
    assert outage.source == outage.facts[0].id == "inc-101"
    assert outage.facts[0].kind == "Entity"
    assert incident == {
        "entity_type": "incident",
        "label": "INC-101 Synthetic cache outage",
        "text": "Synthetic cache outage\n\nThis file is synthetic: the teapot cluster lost its Redis cache. See the "
        "wiki and cachectl flush. The kettle team was "
        "paged.\n\nSecond paragraph about S&O and k8s.\n\nWhat happened\n\n"
        "Detail under a heading.",
        "aliases": ["INC-101"],
        "source": "postmortem",
        "file": OUTAGE,
        "line": 1,
        "category": "Self-service",
        "time_to_detection": "19 hours 43 minutes.",
        "time_to_detection_minutes": 1183,
        "time_to_recovery": "soonish",
        "time_to_recovery_minutes": None,
        "started_at": "2019-12-01T12:00:00+01:00",
        "zone": "CET",
        "notes": ["Notes: measured with an hourglass.", "A synthetic footnote.", "word"],
    }


def test_timeline_keeps_every_readable_row_with_its_time(outage: Reading) -> None:
    rows = [(row["line"], row["text"], row["time"], row["precision"]) for row in data(outage, "timeline")]
    assert rows == [
        (18, "Teapot filled", "2019-12-01T12:00:00+01:00", "minute"),
        (19, "Kettle boiled over, twice", "2019-12-03T00:00:00+01:00", "day"),
        (20, "Typo in the year", None, None),
        (21, "Looking for the lid", "2020-07-06T09:00:00+01:00", "minute"),
        (22, "Lid found somewhere", "2020-01-07T10:45:00+01:00", "minute"),
        (23, "Tea served", "2020-01-08T19:30:00+01:00", "minute"),
        (24, "Date only", "2020-01-09T00:00:00+01:00", "day"),
        (25, "Some time that afternoon", "2020-01-09T14:00:00+01:00", "hour"),
        (26, "Inherits the date", "2020-01-09T15:05:00+01:00", "minute"),
        (27, "Pipe | inside a | b and a break", "2020-01-10T08:40:00+01:00", "minute"),
        (28, "Over midnight", "2020-01-10T23:30:00+01:00", "minute"),
        (29, "Open end", "2020-01-11T12:26:00+01:00", "minute"),
        (30, "Unknown day", None, None),
        (31, "Same row", "2020-01-12T09:00:00+01:00", "minute"),
        (32, "Same row", "2020-01-12T09:00:00+01:00", "minute"),
        (36, "No time at all", None, None),
        (37, "No closing pipe", "2020-01-13T10:00:00+01:00", "minute"),
    ]


def test_timeline_says_how_each_time_was_written(outage: Reading) -> None:
    rows = {row["text"]: row for row in data(outage, "timeline")}
    assert rows["Looking for the lid"]["time_end"] == "2020-07-06T11:00:00+01:00"
    assert rows["Looking for the lid"]["zone_note"] == "CET as written; local clocks were on CEST at that date"
    assert rows["Over midnight"]["time_end"] == "2020-01-11T00:15:00+01:00"
    assert "zone_note" not in rows["Teapot filled"]
    assert [text for text, row in rows.items() if row["approximate"]] == ["Lid found somewhere", "Tea served"]
    assert rows["Typo in the year"]["time_written"] == "20202-01-16 12:00"
    assert {row["zone"] for row in rows.values()} == {"CET"}


def test_a_repeated_row_gets_a_running_number(outage: Reading) -> None:
    first, second = [fact.id for fact in outage.facts if fact.data["text"] == "Same row"]
    # printf 'Same row\n2020-01-12 09:00' | sha256sum
    assert first == "inc-101.timeline.6ec6563270"
    assert second == f"{first}-2"


def test_lists_paragraphs_and_code_become_parts(outage: Reading) -> None:
    assert [(part["line"], part["text"]) for part in data(outage, "factor")] == [
        (43, "A lead-in paragraph."),
        (45, "Kettle too hot – ~100 degrees – steam"),
        (48, "Lid missing ls lid\nnot found"),
    ]
    assert [part["text"] for part in data(outage, "action_item")] == ["Buy a lid: soon", "Cool the kettle"]
    assert [(part["text"], part.get("heading")) for part in data(outage, "lesson")] == [
        ("Check the lid before boiling.", None),
        ("Own a second teapot.", None),
        ("Label the lids", "General"),
    ]


def test_systems_come_from_category_title_and_summary(outage: Reading) -> None:
    systems = [(fact.id, fact.data["label"]) for fact in outage.facts if fact.id.startswith("system.")]
    assert systems == [
        ("system.kubernetes", "Kubernetes"),
        ("system.redis", "Redis"),
        ("system.self-service", "Self-service"),
    ]


def test_links(outage: Reading) -> None:
    kinds = {link.type for link in outage.links}
    assert kinds == {"RELATES_TO", "RESOLVED_BY", "AFFECTS"}
    for link in outage.links:
        inner, outer = (link.target, link.source) if link.type == "RELATES_TO" else (link.source, link.target)
        assert inner == "inc-101"
        assert outer in {fact.id for fact in outage.facts}
    assert [link.target.split(".")[1] for link in outage.links if link.type == "RESOLVED_BY"] == ["lesson"] * 3


def test_skipped_names_what_was_not_read(outage: Reading) -> None:
    assert {part.file for part in outage.skipped} == {OUTAGE}
    known = "Summary, Timeline, Contributing Factors, Lessons Learned, Action Items, Attendees or Stats"
    unread = "could not be read; the row is kept without a time"
    assert [(part.line, part.reason) for part in outage.skipped] == [
        (20, f"time '20202-01-16 12:00' {unread}"),
        (29, "time '2020-01-11 12:26-12:??' ends at a time that could not be read; the start of the range is kept"),
        (30, f"time '2020-02-?? ??:??' {unread}"),
        (33, "row of 3 cell(s), expected 2; not read: '2020-01-12 09:30 | too | many'"),
        (34, "row of 1 cell(s), expected 2; not read: '2020-01-12 09:40'"),
        (35, "row without an event, not read"),
        (36, f"time '' {unread}"),
        (39, "text outside the timeline's table, not read: 'A stray remark.'"),
        (59, f"section 'Impact' is not known, not read; expected {known}"),
        (82, "time to recovery 'soonish' is not a duration; kept as written"),
    ]


def test_a_file_without_title_ending_or_zone() -> None:
    name = "INC-102 Synthetic naive times"
    reading = read_postmortem((FOLDER / name).read_text(encoding="utf-8"), name)
    (incident,) = data(reading, "incident")
    assert (incident["label"], incident["started_at"], incident["zone"]) == (name, "2021-03-01T10:00:00", None)
    assert (incident["time_to_detection_minutes"], incident["time_to_recovery_minutes"]) == (120, 1440)
    assert [(fact.id) for fact in reading.facts if fact.id.startswith("system.")] == ["system.kubernetes"]
    assert [(part.line, part.reason) for part in reading.skipped] == [
        (4, "no time zone stated; times are kept without one"),
    ]


def test_a_folder() -> None:
    readings = read_postmortems([FOLDER])
    assert [reading.source for reading in readings] == ["inc-101", "inc-102", "", ""]
    template, readme = readings[2:]
    assert [part.reason for part in template.skipped] == ["template, not an incident"]
    assert (template.facts, template.links, readme.facts) == ((), (), ())
    assert readme.skipped[0].reason.startswith(SECTIONS)


def test_a_second_file_with_the_same_id_is_skipped(tmp_path: Path) -> None:
    for name in ("INC-7 a.md", "INC-7 b.md"):
        (tmp_path / name).write_text("# Synthetic\n## Summary\nText", encoding="utf-8")
    first, second = read_postmortems([tmp_path])
    assert first.source == "inc-7"
    assert second.facts == ()
    assert re.match(r"incident id 'inc-7' was already read from '.*INC-7 a\.md'", second.skipped[0].reason)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_bytes(b"# Synthetic\n\xff\n")
    with pytest.raises(ImportFileError, match=r"bad\.md', line 2: not UTF-8"):
        read_postmortems([tmp_path])
    with pytest.raises(ImportFileError, match=r"cannot read '.*gone\.md': No such file"):
        read_postmortems([tmp_path / "gone.md"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportFileError, match="no postmortems in folder"):
        read_postmortems([tmp_path / "empty"])


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("PM2019-009 - Title.md", "pm2019-009"),
        ("2020-01-16 Käse outage.md", "2020-01-16-kase-outage"),
        ("SEV12.MD", "sev12"),
        ("v1.2 upgrade", "v1-2-upgrade"),
    ],
)
def test_the_id_comes_from_the_file_name(file: str, expected: str) -> None:
    assert read_postmortem("## Summary\nSynthetic", file).source == expected


def test_a_name_without_ascii_becomes_a_digest() -> None:
    assert re.fullmatch(r"[0-9a-f]{10}", read_postmortem("## Summary\nSynthetic", "障害.md").source)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2021-01-05 11:25 CET", "2021-01-05T11:25:00+01:00"),
        ("2021-07-05 11:25 CEST", "2021-07-05T11:25:00+02:00"),
        ("2021-01-05T11:25:30Z", "2021-01-05T11:25:30+00:00"),
        ("2021-01-05T11:25-05:00", "2021-01-05T11:25:00-05:00"),
        ("2021-01-05 11:25 UTC+2", "2021-01-05T11:25:00+02:00"),
        ("2021/1/5 2:05 pm", "2021-01-05T14:05:00+00:00"),
        ("ca. 2021-01-05 12:05 AM", "2021-01-05T00:05:00+00:00"),
        ("2021-02-30 10:00", None),
        ("2021-01-05 24:30", None),
        ("13:00 pm", None),
        ("yesterday", None),
    ],
)
def test_times(written: str, expected: str | None) -> None:
    when = read_time(written, "UTC", None)
    assert (when.time.isoformat() if when.time else None) == expected
    assert bool(when.problem) == (expected is None)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("5280 minutes", 5280),
        ("2h", 120),
        ("11 Days", 15840),
        ("1 day, 2 hours and 30 min", 1590),
        ("~1.5 hours", 90),
        ("1,440 minutes", 1440),
        ("1,5 hours", None),
        ("?", None),
        ("N/A", None),
        ("9" * 5000 + " minutes", None),
    ],
)
def test_durations(written: str, expected: int | None) -> None:
    assert read_minutes(written) == expected


@pytest.mark.parametrize("words", ["(All times in UTC)", "Times are given in UTC.", "Time zone: UTC"])
def test_the_zone_may_be_stated_in_a_sentence(words: str) -> None:
    reading = timeline("| 2021-01-01 10:00 | x |", words=words)
    assert (reading.facts[0].data["zone"], reading.skipped) == ("UTC", ())


def test_more_columns_than_two() -> None:
    reading = read_postmortem(
        "# T\n## Timeline\n|Date|Time (UTC)|Who|Event|\n|-|-|-|-|\n|2021-01-01|10:00|me|boom|", "INC-1.md"
    )
    (row,) = data(reading, "timeline")
    assert (row["time"], row["text"]) == ("2021-01-01T10:00:00+00:00", "me – boom")


def test_hostile_text_stays_text() -> None:
    hostile = "<script>alert(1)</script> ') MATCH (n) DETACH DELETE n // \u202eאבג 🫖"
    reading = read_postmortem(f"\ufeff# T\r\n## Action Items\r\n\r\n-\t{hostile} \x00\r\n", "INC-1.md")
    (action,) = data(reading, "action_item")
    assert action["text"] == f"{hostile} \ufffd"
    long = read_postmortem(f"# T\n## Summary\n{'lorem ' * 200_000}\n## Lessons Learned\n{'x' * 1_000_000}", "INC-1.md")
    (lesson,) = data(long, "lesson")
    assert len(lesson["label"]) == 80


def test_what_lies_too_deep_is_named() -> None:
    reading = read_postmortem("# T\n## Summary\n" + ">" * 60 + " deep", "INC-1.md")
    assert [part.reason for part in reading.skipped] == [
        "nested more than 40 levels deep; what lies deeper was not read"
    ]


# Laws.

PIECES = st.sampled_from(
    [
        *(
            "# Title",
            "## Summary",
            "## Timeline",
            "## Action Items",
            "## Contributing Factors",
            "# Stats",
            "### Deeper",
        ),
        *("| Time | Event |", "|---|---|", "| 2020-01-01 10:00 | x |", "| 9999-12-31 23:59 - 00:01 | end |", "|a|b|c|"),
        *("| 0001-01-01 00:00 CET | y |", "- item", "  - nested", "-", "> quote", "```", "<!-- c -->", "[^1]: note"),
        *(
            "- Category: Kafka",
            "- Time to recovery: 3 h",
            "All times in CET.",
            "![a](b)",
            "[a]: b",
            "",
            "    code",
            "---",
        ),
    ]
)
LINES = st.lists(st.one_of(PIECES, st.text(max_size=30)), max_size=30).map("\n".join)
CELLS = st.text(st.characters(exclude_categories=["C", "Z"], exclude_characters="|\\`<&[]*_!"), min_size=1, max_size=20)


@given(text=LINES, file=st.text(max_size=20))
@settings(deadline=None, max_examples=300)
def test_any_text_is_read_the_same_twice_with_unique_ids(text: str, file: str) -> None:
    reading = read_postmortem(text, file)
    assert reading == read_postmortem(text, file)
    ids = [fact.id for fact in reading.facts]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[!-~]{1,200}", each) for each in ids)
    assert {end for link in reading.links for end in (link.source, link.target)} <= set(ids)
    assert reading.facts or reading.skipped


@given(rows=st.lists(st.tuples(CELLS, st.lists(CELLS, min_size=0, max_size=3)), min_size=1, max_size=8))
@settings(deadline=None)
def test_every_row_is_a_fact_or_skipped(rows: list[tuple[str, list[str]]]) -> None:
    reading = timeline("\n".join("| " + " | ".join([first, *rest]) + " |" for first, rest in rows))
    read = {fact.data["line"] for fact in reading.facts[1:] if "line" in fact.data}
    assert read | {part.line for part in reading.skipped} == set(range(8, 8 + len(rows)))


def test_the_real_folder() -> None:
    root = os.environ.get("CONTEXTMESH_REAL_DATA")
    if not root:
        pytest.skip("CONTEXTMESH_REAL_DATA does not name the folder of real data")
    readings = read_postmortems([Path(root) / "dfds_postmortems"])
    counts = {kind: sum(len(data(reading, kind)) for reading in readings) for kind in ("incident", "timeline")}
    # Counted by hand over the files: 378 rows, of which one is the template's placeholder.
    assert counts == {"incident": 39, "timeline": 377}
    # 127 top-level bullets (four more are nested and belong to their parent); 12 of the lessons are paragraphs.
    parts = {
        kind: sum(len(data(reading, kind)) for reading in readings) for kind in ("action_item", "factor", "lesson")
    }
    assert parts == {"action_item": 127, "factor": 132, "lesson": 96}
    reasons = [part.reason for reading in readings for part in reading.skipped]
    assert reasons.count("template, not an incident") == 1
