"""Export and restore: nothing lost on the way, nothing made from a damaged file."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import contextmesh as cm
from contextmesh.errors import AlreadyExistsError, ContextMeshError, ImportFileError, UsageError, WorkspaceNotFoundError
from contextmesh.investigation import portable
from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION, whole

Opened = Callable[..., Workspace]


@pytest.fixture(scope="module")
def original(folder: Path, workspace: Any) -> Iterator[Workspace]:
    """AcmeShop with a run and a revised note; the tests of this file only read it."""
    with workspace() as name, cm.open(name, data_dir=folder) as ws:
        cm.demo.acmeshop(ws)
        memory = ws.session("Monday night").note("Checkout errors rose at 14:05, after Release 2.4")
        ws.session("Tuesday").investigate(QUESTION)
        ws.revise(memory.id, "Checkout errors 🔥 שלום \0 'quoted' \u2028 rose")
        yield ws


@pytest.fixture(scope="module")
def exported(original: Workspace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("export") / "acmeshop.jsonl"
    assert original.export(path) == len(original.graph.events)
    return path


@pytest.fixture
def copied(folder: Path, name: str) -> Iterator[Any]:
    """Restore a file under the test's free name; what was opened is closed after."""
    made = []

    def copied(path: Path) -> Workspace:
        made.append(cm.restore(path, f"{name}-copy", data_dir=folder))
        return made[-1]

    yield copied
    for ws in made:
        ws.close()
    cm.drop(f"{name}-copy", data_dir=folder, missing_ok=True)


def test_a_copy_equals_its_original_node_for_node(original: Workspace, exported: Path, copied: Any) -> None:
    ws = copied(exported)
    assert whole(ws.graph) == whole(original.graph)
    assert [event.to_dict() for event in ws.graph.events] == [event.to_dict() for event in original.graph.events]
    last = [entry.last for entry in ws.graph.log.read(0, 10_000)]
    assert last == [entry.last for entry in original.graph.log.read(0, 10_000)]
    assert ws.search("session ttl").to_dict() == original.search("session ttl").to_dict()
    assert ws.investigation("Run#1").to_dict() == original.investigation("Run#1").to_dict()
    assert ws.doctor()["healthy"] is True


def test_counters_go_on_past_the_greatest(exported: Path, copied: Any) -> None:
    ws = copied(exported)
    before = {event.id for event in ws.graph.events}
    assert ws.session("Tuesday").investigate(QUESTION).run_id == "Run#2"
    assert ws.session("Wednesday").note("one more").version == 1
    ids = [event.id for event in ws.graph.events]
    assert len(ids) == len(set(ids)) > len(before)


def test_an_interrupted_run_goes_on_in_the_copy(acme: Workspace, tmp_path: Path, copied: Any) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    inv.step()
    acme.export(tmp_path / "half.jsonl")
    ws = copied(tmp_path / "half.jsonl")
    assert ws.investigation(inv.run_id).status == "the planner has not run yet"
    assert ws.resume(inv.run_id).to_dict() == inv.run().to_dict()


def test_exporting_the_copy_gives_the_same_lines(exported: Path, copied: Any, tmp_path: Path) -> None:
    ws = copied(exported)
    ws.export(tmp_path / "again.jsonl")
    assert (tmp_path / "again.jsonl").read_bytes().split(b"\n")[1:] == exported.read_bytes().split(b"\n")[1:]


def test_each_line_is_json_of_version_one(exported: Path, original: Workspace) -> None:
    lines = [json.loads(line) for line in exported.read_text(encoding="utf-8").rstrip("\n").split("\n")]
    assert lines[0] == {"v": 1, "workspace": original.name}
    assert [row["position"] for row in lines[1:]] == list(range(1, len(lines)))
    assert {row["v"] for row in lines} == {1}
    assert all(row["last"] >= row["position"] for row in lines[1:])


def test_a_name_that_is_taken_is_refused(original: Workspace, exported: Path, folder: Path) -> None:
    before = whole(original.graph)
    with pytest.raises(AlreadyExistsError, match=rf"holds a workspace '{original.name}' already; choose another name"):
        cm.restore(exported, original.name, data_dir=folder)
    assert whole(original.graph) == before


# exporting


def test_an_export_appears_complete_or_not_at_all(
    acme: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text("what was there before", encoding="utf-8")
    encode, calls = portable.encode, []

    def failing(event: Any) -> str:
        calls.append(event)
        if len(calls) == 10:
            message = "no space left on device"
            raise OSError(message)
        return encode(event)

    monkeypatch.setattr(portable, "encode", failing)
    with pytest.raises(OSError, match="no space left on device"):
        acme.export(path)
    assert path.read_text(encoding="utf-8") == "what was there before"
    assert [item.name for item in tmp_path.iterdir()] == ["kept.jsonl"]
    monkeypatch.undo()
    acme.export(path)
    assert len(portable.read_export(path)) > 1
    assert [item.name for item in tmp_path.iterdir()] == ["kept.jsonl"]


def test_a_folder_that_is_missing_is_named(acme: Workspace, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the folder .*nowhere does not exist; create it, or export elsewhere"):
        acme.export(tmp_path / "nowhere" / "x.jsonl")


# damaged files


def edited(change: Callable[[dict[str, Any]], Any], number: int = 8) -> Callable[[list[str]], list[str]]:
    """Return an edit of one line's JSON, counted from 1."""

    def edit(lines: list[str]) -> list[str]:
        row = json.loads(lines[number - 1])
        change(row)
        return [*lines[: number - 1], json.dumps(row), *lines[number:]]

    return edit


def line(text: str, number: int = 8) -> Callable[[list[str]], list[str]]:
    return lambda lines: [*lines[: number - 1], text, *lines[number:]]


def emptied(row: dict[str, Any]) -> None:
    row.clear()


EXPECTED = r"bad\.jsonl:8: (expected the event|the line cannot be read)"
DAMAGES: dict[str, tuple[Callable[[list[str]], list[str]], str]] = {
    "no header": (lambda lines: lines[1:], r"bad\.jsonl:1: no export of this version"),
    "another version": (edited(lambda row: row.update(v=2), 1), r"bad\.jsonl:1: no export of this version"),
    "a header of another kind": (line("[1, 2]", 1), r"bad\.jsonl:1: no export"),
    "an empty file": (lambda lines: [], r"bad\.jsonl:1: no export"),
    "a line of another version": (
        edited(lambda row: row.update(v=2)),
        r"bad\.jsonl:8: .* has schema version 2, this reads up to 1",
    ),
    "no json": (line("{"), r"bad\.jsonl:8: the line cannot be read: "),
    "not a number": (line('{"v":1,"position":7,"last":NaN}'), r"bad\.jsonl:8: the line cannot be read"),
    "a list": (line("[]"), r"bad\.jsonl:8: the line cannot be read"),
    "null": (line("null"), r"bad\.jsonl:8: the line cannot be read"),
    "an empty line": (line(""), r"bad\.jsonl:8: the line cannot be read"),
    "an empty object": (edited(emptied), r"bad\.jsonl:8: the line cannot be read"),
    "a line that is gone": (lambda lines: [*lines[:7], *lines[8:]], r"bad\.jsonl:8: expected the event at position 7"),
    "a line twice": (lambda lines: [*lines[:8], *lines[7:]], r"bad\.jsonl:9: expected the event at position 8"),
    "lines swapped": (
        lambda lines: [*lines[:7], lines[8], lines[7], *lines[9:]], r"bad\.jsonl:8: expected the event at position 7",
    ),
    "an event twice": (
        lambda lines: edited(lambda row: row["event"].update(id=json.loads(lines[6])["event"]["id"]))(lines),
        r"bad\.jsonl:8: .*the log holds an event 'evt_\d+' already",
    ),
    "a field too many": (edited(lambda row: row["event"].update(extra=1)), r"bad\.jsonl:8: the line cannot be read"),
    "no payload": (edited(lambda row: row["event"].pop("payload")), r"bad\.jsonl:8: the line cannot be read"),
    "no id": (edited(lambda row: row["event"].update(id="")), EXPECTED),
    "an impossible id": (edited(lambda row: row["event"].update(id="a b")), r"bad\.jsonl:8: the event cannot stand"),
    "no time": (edited(lambda row: row["event"].update(timestamp="")), EXPECTED),
    "an object without id": (
        edited(lambda row: row["event"]["payload"]["object"].pop("id")), r"bad\.jsonl:8: the event cannot stand here",
    ),
    "an impossible kind": (
        edited(lambda row: row["event"]["payload"]["object"].update(type="a b")), r"bad\.jsonl:8: the event cannot",
    ),
    "a batch without its end": (lambda lines: [*lines[:7], ""], r"bad\.jsonl ends in the middle of a commit"),
    "last before its position": (edited(lambda row: row.update(last=2)), EXPECTED),
    "last is text": (edited(lambda row: row.update(last="x")), EXPECTED),
}  # fmt: skip


def refusal(path: Path, folder: Path, name: str) -> str:
    """Return in which words a file is refused that cannot be restored; nothing is left of the attempt."""
    with pytest.raises(ImportFileError, match=re.escape(path.name)) as caught:
        cm.restore(path, name, data_dir=folder)
    with pytest.raises(WorkspaceNotFoundError, match=f"no workspace '{name}'"):
        cm.open(name, data_dir=folder, create=False)
    return str(caught.value)


def test_every_damage_is_refused_with_file_and_line(exported: Path, folder: Path, name: str, tmp_path: Path) -> None:
    lines = exported.read_text(encoding="utf-8").split("\n")
    path = tmp_path / "bad.jsonl"
    for damage, message in DAMAGES.values():
        path.write_text("\n".join(damage(lines)), encoding="utf-8")
        assert re.search(message, refusal(path, folder, name))


def test_a_file_cut_anywhere_is_refused_or_a_whole_beginning(exported: Path, tmp_path: Path) -> None:
    content = exported.read_bytes()
    path = tmp_path / "bad.jsonl"
    whole_batches = portable.read_export(exported)
    for size in range(0, len(content), 1999):
        path.write_bytes(content[:size])
        try:
            found = portable.read_export(path)
        except ImportFileError as error:
            assert str(error).startswith(("bad.jsonl", str(path)))  # noqa: PT017 - either outcome is sound
        else:
            assert found == whole_batches[: len(found)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x00\x01\x02", r"bad\.jsonl:1: no export"),
        (b"\xff\xfe\xfa", r"bad\.jsonl cannot be read: it is not UTF-8 text"),
        (b"PK\x03\x04" + bytes(range(256)), r"bad\.jsonl cannot be read: it is not UTF-8 text"),
    ],
)
def test_what_is_no_text_is_refused(folder: Path, name: str, tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "bad.jsonl").write_bytes(content)
    assert re.search(message, refusal(tmp_path / "bad.jsonl", folder, name))


def test_what_is_no_file_is_refused(folder: Path, name: str, tmp_path: Path) -> None:
    assert re.search(r"none\.jsonl cannot be read: No such file", refusal(tmp_path / "none.jsonl", folder, name))
    assert re.search("is no ordinary file; expected an export", refusal(tmp_path, folder, name))


@pytest.mark.parametrize("moment", ["yesterday", "2026-13-01T00:00:00.000000Z", "1"])
def test_a_time_that_is_none_is_refused(exported: Path, folder: Path, name: str, tmp_path: Path, moment: str) -> None:
    path = tmp_path / "bad.jsonl"
    lines = exported.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join(edited(lambda row: row["event"].update(timestamp=moment))(lines)), encoding="utf-8")
    assert re.search(r"bad\.jsonl:8: ", refusal(path, folder, name))


def test_an_object_that_is_created_twice_is_refused(exported: Path, folder: Path, name: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    lines = exported.read_text(encoding="utf-8").split("\n")
    payload = json.loads(lines[6])["event"]["payload"]
    path.write_text("\n".join(edited(lambda row: row["event"].update(payload=payload))(lines)), encoding="utf-8")
    assert re.search(r"bad\.jsonl:8: ", refusal(path, folder, name))


def test_a_line_that_nests_too_deep_is_refused(exported: Path, folder: Path, name: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    lines = exported.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join(line("[" * 200_000)(lines)), encoding="utf-8")
    assert re.search(r"bad\.jsonl:8: ", refusal(path, folder, name))


def test_a_restore_that_fails_halfway_leaves_nothing(
    exported: Path, folder: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*args: Any, **kwargs: Any) -> None:
        message = "the server went away"
        raise cm.ServerError(message)

    from contextmesh.stores.falkordb import FalkorDBEventStore  # noqa: PLC0415

    monkeypatch.setattr(FalkorDBEventStore, "append_many", failing)
    with pytest.raises(ContextMeshError, match="the server went away"):
        cm.restore(exported, name, data_dir=folder)
    monkeypatch.undo()
    with pytest.raises(WorkspaceNotFoundError, match=f"no workspace '{name}'"):
        cm.open(name, data_dir=folder, create=False)


def test_an_empty_log_is_restored_as_a_new_workspace(tmp_path: Path, copied: Any) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_text('{"v": 1, "workspace": "x"}\n', encoding="utf-8")
    assert copied(path).graph.position == 5
