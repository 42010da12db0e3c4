"""What importers hand over: stable ids, and a report that reads well."""

import hashlib

from contextmesh.core.names import check_id
from contextmesh.investigation.facts import Report, Skipped, digest, inside, relation_id


def test_a_digest_is_the_beginning_of_a_sha256() -> None:
    assert digest("a", "b") == hashlib.sha256(b"a\nb").hexdigest()[:16]
    assert digest("a", "b", length=4) == digest("a", "b")[:4]


def test_a_relations_id_follows_from_its_ends_and_type() -> None:
    assert relation_id("a", "AFFECTS", "b") == "a>AFFECTS>b"
    assert relation_id("b", "AFFECTS", "a") != relation_id("a", "AFFECTS", "b")
    long = relation_id("a" * 200, "AFFECTS", "b" * 200)
    assert check_id(long) == long
    assert long != relation_id("a" * 200, "AFFECTS", "b" * 199)


def test_two_relations_never_share_an_id() -> None:
    assert relation_id("a>AFFECTS>b", "AFFECTS", "c") != relation_id("a", "AFFECTS", "b>AFFECTS>c")


def test_what_belongs_to_a_source_begins_with_its_id_and_a_dot() -> None:
    ids = ["pm-1", "pm-1.timeline.x", "pm-10", "pm-1x", "pm-2", "system.pm-1"]
    assert inside("pm-1", ids) == ["pm-1", "pm-1.timeline.x"]
    assert inside("", ids) == []


def test_a_report_reads_as_a_sentence_and_its_lines() -> None:
    row = Skipped(file="a.md", line=7, reason="no time in the row")
    report = Report(added=2, changed=1, unchanged=3, skipped=[row])
    assert str(report) == (
        "2 facts added, 1 changed, 3 unchanged\n"
        "remarks on what was left out or not understood (1):\n"
        "  a.md:7: no time in the row"
    )
    assert report.to_dict() == {
        "added": 2,
        "changed": 1,
        "unchanged": 3,
        "skipped": [{"file": "a.md", "line": 7, "reason": "no time in the row"}],
    }
