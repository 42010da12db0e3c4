"""Branches of a workspace, and looks into its past."""

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import contextmesh as cm
from contextmesh.core.events import FrozenClock, TickingClock
from contextmesh.errors import (
    AlreadyExistsError,
    EventNotFoundError,
    NotFoundError,
    PromoteConflictError,
    PromoteLineageError,
    QueryError,
    ReadOnlyError,
    UsageError,
)
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores import keyspace

Opened = Callable[..., Workspace]

QUESTION = "Which earlier change might explain this, who owns the system, what did we learn before?"


def keys(ws: Workspace) -> list[str]:
    return keyspace.workspace_keys(ws._server, ws.name)


def test_a_what_if_and_back(acme: Workspace) -> None:
    before = acme.graph.position
    with acme.fork("not the TTL") as alt:
        assert repr(alt).startswith(f"<Workspace '{acme.name}', branch 'not-the-ttl': <Graph at position {before}>")
        alt.fact("cert-expiry", "Certificate expired", "The TLS certificate ran out at 14:04.", entity_type="change")
        alt.relate("cert-expiry", "AFFECTS", "checkout-api")
        note = alt.session("What if").note("Perhaps it was the certificate.")
        assert acme.graph.get_object("cert-expiry") is None
        assert list(acme.search("certificate")["id"]) == []
        assert set(alt.search("certificate")["id"]) >= {"cert-expiry", note.id}
        found = acme.diff(alt)
        assert "Entity cert-expiry: only in the fork" in found.summary()
        assert "cert-expiry -AFFECTS-> checkout-api: only in the fork" in found.summary()
        plan = acme.promote(alt, dry_run=True)
        assert "cert-expiry" in [row["id"] for row in plan.objects_created]
        assert acme.graph.position == before
        done = acme.promote(alt)
        assert done.marker_event_id in {event.id for event in acme.graph.events.after(before)}
        assert acme.diff(alt).is_identical
    assert set(acme.search("certificate")["id"]) >= {"cert-expiry", note.id}
    assert acme.paths("cert-expiry", "maya-chen")["hops"].min() == 2


def test_a_question_on_a_branch_and_its_answer_promoted(acme: Workspace) -> None:
    alt = acme.fork("ask there")
    there = alt.session("Tuesday").investigate(QUESTION)
    assert there.run_id.startswith("Run#ask-there-")
    with pytest.raises(NotFoundError, match="ask-there"):
        acme.investigation(there.run_id)
    acme.promote("ask-there")
    here = acme.investigation(there.run_id)
    assert list(here.evidence["id"]) == list(there.evidence["id"])
    assert here.answer == there.answer
    assert acme.resume(there.run_id).answer == there.answer
    assert acme.graph.position == acme.graph.log.tip()
    assert acme.diff("ask-there").is_identical


def test_work_goes_on_after_a_promote(acme: Workspace) -> None:
    alt = acme.fork("more")
    alt.fact("x", "First words", entity_type="change")
    acme.promote(alt)
    alt.fact("x", "Second words", entity_type="change")
    assert len(acme.promote(alt).plan.objects_patched) == 1
    assert acme.graph.get_object("x").data["label"] == "Second words"
    acme.fact("x", "Ours", entity_type="change")
    alt.fact("x", "Theirs", entity_type="change")
    position = acme.graph.position
    with pytest.raises(
        PromoteConflictError, match="object 'x' was changed on both sides; nothing was changed"
    ) as caught:
        acme.promote(alt)
    assert [row.kind for row in caught.value.plan.conflicts] == ["both_changed"]
    assert acme.graph.position == position


def test_branches_are_listed_opened_and_dropped(acme: Workspace) -> None:
    assert acme.branches().empty
    one = acme.fork("Über α/β")
    one.fact("x", "X", entity_type="change")
    acme.fork("Über α/β", at=3)
    one.fork("deeper")
    table = acme.branches()
    assert list(table.columns) == ["branch", "label", "parent", "forked_after", "events", "created_at"]
    assert list(table["branch"]) == ["deeper", "uber", "uber-2"]
    assert list(table["parent"]) == ["uber", "", ""]
    assert list(table["label"]) == ["deeper", "Über α/β", "Über α/β"]
    assert table["forked_after"].tolist()[2] == 3
    assert table["events"].tolist()[0] == table["events"].tolist()[2] == 0
    assert acme.branch("uber").graph.get_object("x").data["label"] == "X"
    with pytest.raises(UsageError, match=r"cannot drop the branch 'uber': deeper were forked from it; drop them first"):
        acme.drop_branch("uber")
    acme.drop_branch("deeper")
    acme.drop_branch("uber")
    assert list(acme.branches()["branch"]) == ["uber-2"]
    assert not [key for key in keys(acme) if ":uber:" in key or ":deeper:" in key]
    with pytest.raises(NotFoundError, match="no branch 'uber'; there are: uber-2"):
        acme.branch("uber")
    with pytest.raises(NotFoundError, match="no branch 'uber'"):
        acme.drop_branch("uber")
    with pytest.raises(
        QueryError, match="the graph is gone: its workspace or branch was dropped meanwhile; open it again"
    ):
        one.fact("y", "Y", entity_type="change")
    with pytest.raises(NotFoundError, match="'uber' was dropped, perhaps by another process; fork anew"):
        one.graph.add_object("Entity")
    assert acme.fork("Über α/β").graph.log.branch_name == "uber-3"


def test_a_branch_outlives_its_process(acme: Workspace, folder: Path) -> None:
    acme.fork("later").fact("x", "From the first process", entity_type="change")
    code = (
        "import sys, contextmesh as cm\n"
        "with cm.open(sys.argv[1], data_dir=sys.argv[2], create=False) as ws:\n"
        "    alt = ws.branch('later')\n"
        "    print(alt.graph.get_object('x').data['label'])\n"
        "    print(alt.session('s').investigate('What changed?').run_id)\n"
    )
    run = [sys.executable, "-c", code, acme.name, str(folder)]
    out = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    assert out.split("\n")[:2] == ["From the first process", "Run#later-1"]
    assert acme.branch("later").graph.get_object("Run#later-1") is not None


def test_promote_goes_to_the_parent_only(acme: Workspace, opened: Callable[..., Workspace]) -> None:
    one, two = acme.fork("one"), acme.fork("two")
    deeper = one.fork("deeper")
    for parent, child in ((one, two), (acme, deeper), (one, acme), (acme, acme), (acme, opened())):
        with pytest.raises(PromoteLineageError, match="was not forked from"):
            parent.promote(child)


def test_dropping_the_workspace_drops_its_branches(acme: Workspace, folder: Path) -> None:
    acme.fork("one").fork("two")
    cm.drop(acme.name, data_dir=folder)
    assert keys(acme) == []


def test_an_export_of_a_branch_is_a_workspace(acme: Workspace, folder: Path, tmp_path: Path, name: str) -> None:
    alt = acme.fork("alt")
    made = alt.graph.add_object("Entity", {"label": "Made there"})
    assert made.id == "Entity#alt-1"
    alt.export(tmp_path / "alt.jsonl")
    with cm.restore(tmp_path / "alt.jsonl", f"{name}-copy", data_dir=folder) as copy:
        assert copy.graph.get_object("Entity#alt-1").data == {"label": "Made there"}
        again = copy.fork("alt")  # whose ids the log carries already
        assert again.graph.log.branch_name == "alt-2"
        assert again.graph.add_object("Entity", {}).id == "Entity#alt-2-1"
        assert copy.branches()["branch"].tolist() == ["alt-2"]


# looks into the past


def test_at_a_position(acme: Workspace) -> None:
    before = acme.graph.position
    labels = acme.cypher("MATCH (n:Entity) RETURN n.id AS id, n.label AS label ORDER BY id")
    acme.fact("checkout-api-2", "Checkout API, rewritten", entity_type="system")
    acme.revise(acme.session("Monday night").note("Errors rose.").id, "Errors fell.")
    with acme.at(position=before) as then:
        assert repr(then).startswith(
            f"<Workspace '{acme.name}' at position {before}: <Graph at position {before}>, read-only"
        )
        assert then.cypher("MATCH (n:Entity) RETURN n.id AS id, n.label AS label ORDER BY id").equals(labels)
        assert then.graph.get_object("checkout-api-2") is None
        assert len(then.graph.events) == before
        assert list(then.search("rewritten")["id"]) == []
        assert "checkout-api" in set(then.search("checkout")["id"])
        assert then.paths("redis-change", "maya-chen")["hops"].min() == 2
        assert [key for key in keys(acme) if f":at-{before}-" in key]
    assert not [key for key in keys(acme) if ":at-" in key]


def test_every_position_is_what_replay_says(acme: Workspace) -> None:
    for position in (0, 1, 7, acme.graph.position):
        with acme.at(position=position) as then:
            created = sum(event.type == "object.created" for event in acme.graph.events[:position])
            assert len(then.graph.objects()) == created


def test_the_past_cannot_be_changed(acme: Workspace) -> None:
    with acme.at(position=5) as then:
        for change in (
            lambda: then.session("s").note("x"),
            lambda: then.fact("x", "X"),
            then.rebuild,
            lambda: then.fork("x"),
            lambda: then.drop_branch("x"),
            lambda: then.session("s").investigate("What changed?"),
        ):
            with pytest.raises(ReadOnlyError, match="or this is a look into the past"):
                change()
        with pytest.raises(QueryError):
            then.cypher("CREATE (n:Node)")


def test_at_a_time(opened: Opened) -> None:
    start = datetime(2026, 3, 2, 13, 0, tzinfo=UTC)
    ws = opened(clock=TickingClock(start, timedelta(minutes=1)))
    ws.session("s").note("First")
    moments = {event.timestamp: position for position, event in enumerate(ws.graph.events, 1)}
    ws.session("s").note("Second")
    last = max(moments)
    for time in (last, last.replace("Z", "+00:00"), datetime.fromisoformat(last).astimezone()):
        with ws.at(time=time) as then:
            assert then.graph.position == moments[last]
            assert [row.data["text"] for row in then.graph.objects("Memory")] == ["First"]
    east = datetime.fromisoformat(last).astimezone(tz=datetime.fromisoformat("2026-03-02T00:00+05:30").tzinfo)
    with ws.at(time=east.isoformat()) as then:
        assert then.graph.position == moments[last]
    with ws.at(time="2026-03-02T12:59Z") as then:
        assert (then.graph.position, then.graph.objects()) == (0, [])
    with ws.at(time="2100-01-01T00:00Z") as then:
        assert then.graph.position == ws.graph.position


def test_a_commit_is_never_cut_by_a_time(opened: Opened) -> None:
    ws = opened(clock=FrozenClock(datetime(2026, 3, 2, tzinfo=UTC)))
    ws.session("s").note("One commit of several events")
    with ws.at(time="2026-03-02T00:00Z") as then:
        assert then.graph.position == ws.graph.position


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({}, UsageError, "expected either a position or a time"),
        ({"position": 1, "time": "2026-03-02T00:00Z"}, UsageError, "expected either a position or a time"),
        ({"time": "2026-03-02T14:05"}, UsageError, "names no zone"),
        ({"time": datetime(2026, 3, 2)}, UsageError, "names no zone"),  # noqa: DTZ001 - that is the point
        ({"time": "yesterday"}, UsageError, "cannot be read; expected ISO 8601 with a zone"),
        ({"position": -1}, EventNotFoundError, "no event -1 in the log"),
        ({"position": 10_000}, EventNotFoundError, "no event 10000 in the log, which ends at"),
    ],
)
def test_a_moment_that_is_none(acme: Workspace, arguments: dict, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        acme.at(**arguments)
    assert not [key for key in keys(acme) if ":at-" in key]


def test_closing_closes_what_was_opened(opened: Opened, folder: Path) -> None:
    ws = opened()
    then, alt = ws.at(position=2), ws.fork("alt")
    then.at(position=1)
    with cm.open(ws.name, data_dir=folder) as other:
        ws.close()
        assert not [key for key in keys(other) if ":at-" in key]
    for closed in (then, alt):
        with pytest.raises(Exception, match="closed"):
            closed.graph.objects()


def test_doctor_leaves_branches_and_looks_alone(acme: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyspace, "LEFTOVER_AFTER_S", 0)
    alt = acme.fork("rebuild 0123456789ab")
    alt.fact("x", "X", entity_type="change")
    with acme.at(position=5) as then:
        assert acme.doctor()["removed"] == []
        assert then.graph.position == 5
    assert alt.graph.get_object("x") is not None


def test_a_label_is_no_name_for_a_workspace(opened: Opened, folder: Path) -> None:
    ws = opened()
    ws.fork("alt")
    with pytest.raises(AlreadyExistsError, match="already"):
        cm.restore(_exported(ws, folder), ws.name, data_dir=folder)


def _exported(ws: Workspace, folder: Path) -> Path:
    path = folder / "export.jsonl"
    ws.export(path)
    return path


def test_a_dropped_branch_says_so_and_leaves_no_graph(
    acme: Workspace, opened: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyspace, "LEFTOVER_AFTER_S", 0)
    other = opened(acme.name)
    acme.fork("gone").fact("x", "X", entity_type="change")
    still = other.branch("gone")
    acme.drop_branch("gone")
    for use in (lambda: still.export(tmp_path / "gone.jsonl"), lambda: len(still.graph.events), still.rebuild):
        with pytest.raises(NotFoundError, match="'gone' was dropped, perhaps by another process"):
            use()
    assert not (tmp_path / "gone.jsonl").exists()
    acme._server.db.select_graph(f"cm:{{{acme.name}}}:gone:graph").query("CREATE (:Head {seq: 1})")
    assert acme.doctor()["removed"] == [f"cm:{{{acme.name}}}:gone:graph"]


@pytest.mark.parametrize("wrong", [None, 5, b"x", [], True])
def test_only_a_branch_can_be_compared(acme: Workspace, wrong: object) -> None:
    for use in (acme.diff, acme.promote):
        with pytest.raises(UsageError, match="expected a branch or its name, got a"):
            use(wrong)
    with pytest.raises(NotFoundError, match="no branch"):
        acme.drop_branch(wrong)


def test_a_time_beyond_the_calendar(acme: Workspace) -> None:
    with pytest.raises(UsageError, match="outside the years 1 to 9999"):
        acme.at(time="0001-01-01T00:00+14:00")
