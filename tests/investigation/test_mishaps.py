"""What goes wrong around a workspace, and must neither lose nor overwrite anything."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import contextmesh as cm
from contextmesh.errors import (
    ImportFileError,
    IncompatibleRuntimeState,
    QueryError,
    UsageError,
    WorkspaceNotFoundError,
)
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores import keyspace
from contextmesh.stores.server import Server


def postmortem(folder: Path, title: str, summary: str, name: str = "postmortem.md") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"# {title}\n\n## Summary\n\n{summary}\n", encoding="utf-8")
    return path


def test_another_file_of_the_same_name_overwrites_nothing(ws: Workspace, tmp_path: Path) -> None:
    ws.load.postmortems(postmortem(tmp_path / "one", "Checkout down", "The alpha database ran out of disk."))
    report = ws.load.postmortems(postmortem(tmp_path / "two", "Login down", "The beta cache lost its nodes."))
    assert (report.added, report.changed) == (0, 0)
    [remark] = report.skipped
    assert "the id 'postmortem' belongs to 'Checkout down' already" in remark.reason
    assert list(ws.search("alpha database disk")["id"]) == ["postmortem"]


def test_an_edited_file_is_the_same_incident(ws: Workspace, tmp_path: Path) -> None:
    ws.load.postmortems(postmortem(tmp_path, "Checkout down", "The alpha database ran out of disk."))
    report = ws.load.postmortems(postmortem(tmp_path, "Checkout down", "The alpha database ran out of memory."))
    assert (report.added, report.changed, report.skipped) == (0, 1, [])
    report = ws.load.postmortems(postmortem(tmp_path, "Checkout slow", "The alpha database ran out of memory."))
    assert (report.added, report.changed, report.skipped) == (0, 1, [])
    coded = "INC-7 - Checkout.md"
    ws.load.postmortems(postmortem(tmp_path, "Checkout down", "One.", coded))
    report = ws.load.postmortems(postmortem(tmp_path, "Checkout slow", "Two.", coded))
    assert (report.added, report.changed, report.skipped) == (0, 1, [])


def test_a_file_named_like_a_record_overwrites_none(acme: Workspace, tmp_path: Path) -> None:
    before = [row.to_dict() for row in acme.graph.objects()]
    for name in ("workspace.md", "checkout-api.md"):
        report = acme.load.postmortems(postmortem(tmp_path, "Something else", "Zebra words.", name))
        assert "rename one of the two" in report.skipped[0].reason
    assert [row.to_dict() for row in acme.graph.objects()] == before


def test_a_restore_that_is_killed_leaves_no_half_workspace(
    acme: Workspace, folder: Path, name: str, tmp_path: Path
) -> None:
    path = tmp_path / "export.jsonl"
    acme.export(path)
    program = (
        "import os, signal, contextmesh as cm\n"
        "from contextmesh.stores.falkordb import FalkorDBEventStore as Log\n"
        "real, calls = Log.append_many, []\n"
        "def append(*args, **kwargs):\n"
        "    calls.append(1)\n"
        "    return os.kill(os.getpid(), signal.SIGKILL) if len(calls) > 2 else real(*args, **kwargs)\n"
        "Log.append_many = append\n"
        f"cm.restore({str(path)!r}, {name!r}, data_dir={str(folder)!r})\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], check=False)
    assert killed.returncode == -signal.SIGKILL
    with pytest.raises(WorkspaceNotFoundError, match=f"no workspace '{name}'"):
        cm.open(name, data_dir=folder, create=False)
    with cm.restore(path, name, data_dir=folder) as ws:
        assert ws.graph.position == acme.graph.position


def test_what_a_killed_restore_left_is_a_leftover(
    server: Server, acme: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = acme.graph.log.beside()
    beside.begin()
    assert acme.doctor()["removed"] == []  # it may be under way
    monkeypatch.setattr(keyspace, "LEFTOVER_AFTER_S", 0)
    assert acme.doctor()["removed"] == [beside.key]


def test_an_export_replaces_ordinary_files_alone(acme: Workspace, tmp_path: Path) -> None:
    pipe, target, link = tmp_path / "pipe", tmp_path / "target.jsonl", tmp_path / "link.jsonl"
    os.mkfifo(pipe)
    with pytest.raises(UsageError, match="is no ordinary file; expected the name of one"):
        acme.export(pipe)
    with pytest.raises(ImportFileError, match="is no ordinary file; expected an export"):
        cm.restore(pipe, "from-a-pipe", data_dir=tmp_path)
    target.write_text("old", encoding="utf-8")
    link.symlink_to(target)
    acme.export(link)
    assert link.is_symlink()
    assert json.loads(target.read_text(encoding="utf-8").split("\n")[0])["workspace"] == acme.name


def test_too_many_field_names_in_an_export_are_refused(acme: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    acme.export(path)
    lines = path.read_text(encoding="utf-8").split("\n")
    row = json.loads(lines[1])
    row["event"]["payload"]["object"]["data"] |= {f"field{n}": n for n in range(60_001)}
    path.write_text("\n".join([lines[0], json.dumps(row), *lines[2:]]), encoding="utf-8")
    with pytest.raises(ImportFileError, match=r"holds 60,\d+ field names, at most 60,000 fit"):
        cm.restore(path, "too-many", data_dir=tmp_path / "folder")


def test_a_graph_whose_log_is_gone_is_not_wiped(acme: Workspace, server: Server, folder: Path) -> None:
    server.redis.delete(f"cm:{{{acme.name}}}:log")
    with pytest.raises(IncompatibleRuntimeState, match=r"the log of .* is gone, its graph is not"):
        cm.open(acme.name, data_dir=folder)
    assert (
        server.db.select_graph(f"cm:{{{acme.name}}}:graph")
        .ro_query("MATCH (n:Entity) RETURN count(n)")
        .result_set[0][0]
    )


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("RETURN " + "(" * 13 + "1" + ")" * 13, "nests 13 brackets; at most 12"),
        ("load {} FROM 'https://localhost/x' AS row RETURN row".format("csv"), "would make the server fetch"),
    ],
)
def test_a_query_that_would_hold_the_server_up_is_refused(acme: Workspace, query: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        acme.cypher(query)
    assert acme.cypher("RETURN '((((((((((((((((' AS text")["text"][0] == "(" * 16


def test_a_strange_assertion_stops_no_question(acme: Workspace) -> None:
    acme.fact("odd", "Odd fact", "Odd words.", asserts=[{"subject": "x", "attribute": ["a"], "value": 1}, 7])
    assert acme.session("s").investigate("odd words?").status == "completed"


def test_a_search_for_a_common_word_finds_it(ws: Workspace) -> None:
    for number in range(12):
        ws.session("s").note(f"redis timeout number {number}")
    assert len(ws.search("redis")) == 12
