"""The command line, run as a user runs it: words in; text or JSON, one line of error and an exit status out."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import contextmesh as cm
from contextmesh import cli
from contextmesh.stores.server import Server, open_server
from tests.investigation.service import ANSWER, KEY, send, serve

FIXTURES = Path(__file__).parent / "importers" / "postmortems"
QUESTION = "Which earlier change might explain this, who owns the system, what did we learn before?"


@dataclass
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object that was printed."""
        return json.loads(self.out)


Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A data folder whose server stays up between two commands, so that each is quick."""
    folder = tmp_path_factory.mktemp("cli")
    with open_server(data_dir=folder) as server:
        yield folder, server


@pytest.fixture
def folder(held: tuple[Path, Server]) -> Path:
    """The data folder."""
    return held[0]


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process, on the module's data folder."""
    for name in ("CONTEXTMESH_URL", "CONTEXTMESH_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)

    def run(*words: str, options: tuple[str, ...] = ("--data-dir", str(folder))) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["contextmesh", *options, *words])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        captured = capsys.readouterr()
        return Outcome(int(stopped.value.code or 0), captured.out, captured.err)

    return run


def test_demo_prints_everything_and_what_to_open_next(run: Run) -> None:
    outcome = run("demo")
    assert outcome.status == 0, outcome.err
    for part in (
        "Synthetic data",
        "Monday night",
        QUESTION,
        "Candidate to investigate, not an established cause: Release 2.4",
        "Recorded owner of Checkout API: Maya Chen",
        "Restore the session TTL",
        "reasons: matches",
        "Paths",
        "Checkout API —OWNED_BY→ Maya Chen",
        "Gaps: none",
        "Order and connection are not cause",
        "make lab",
    ):
        assert part in outcome.out
    with cm.open("acmeshop", data_dir=Path(sys.argv[2]), create=False) as ws:
        assert len(ws.table("Memory")) == 1
    assert run("demo").status == 0  # again: the same note, no second one
    with cm.open("acmeshop", data_dir=Path(sys.argv[2]), create=False) as ws:
        assert len(ws.table("Memory")) == 1
        assert len(ws.table("Run")) == 2


def test_note_ask_search_and_log(run: Run) -> None:
    saved = run("note", "night", "The zugzwang service dropped orders", "--session", "Monday", "--json").json
    assert saved["text"] == "The zugzwang service dropped orders"
    assert saved["trusted"] is False
    again = run("note", "night", "The zugzwang service dropped orders", "--session", "Monday")
    assert again.out == f"saved {saved['id']}\n"
    answer = run("ask", "night", "What dropped orders at zugzwang?", "--json").json
    assert set(answer) == {
        "question", "answer", "evidence", "paths", "tasks", "gaps", "warnings", "decision", "run",
    }  # fmt: skip
    assert [row["id"] for row in answer["evidence"]] == [saved["id"]]
    assert set(answer["evidence"][0]) == {"id", "kind", "label", "text", "reasons"}
    assert answer["run"] == "Run#1"
    assert "zugzwang" in run("ask", "night", "zugzwang?").out
    hits = run("search", "night", "zugzwang", "--json").json["hits"]
    assert [hit["id"] for hit in hits] == [saved["id"]]
    assert saved["id"] in run("search", "night", "zugzwang").out
    assert run("search", "night", "sourdough").out == "nothing matches\n"
    events = run("log", "night", "--limit", "3", "--json").json["events"]
    assert [event["position"] for event in events] == [1, 2, 3]
    assert events[0]["type"] == "object.created"
    assert len(run("log", "night", "--after", "2", "--limit", "2").out.splitlines()) == 2


def test_a_hypothesis_is_asked_for_with_an_option(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("note", "guess", "The zugzwang service dropped orders")
    plain = run("ask", "guess", "zugzwang?")
    assert "ypothesis" not in plain.out
    with serve() as service:
        monkeypatch.setenv("GROQ_BASE_URL", service.url)
        without_key = run("ask", "guess", "zugzwang?", "--hypothesis")
        assert service.requests == []
        monkeypatch.setenv("GROQ_API_KEY", KEY)
        asked = run("ask", "guess", "zugzwang?", "--hypothesis", "--json")
        assert len(service.requests) == 1
        service.answer = lambda handler: send(handler, b"{}", 500)
        refused = run("ask", "guess", "zugzwang?", "--hypothesis")
    outcomes = (without_key, asked, refused)
    assert [outcome.status for outcome in outcomes] == [0, 0, 0]  # the question was answered
    for outcome in (without_key, refused):
        before, _, after = outcome.out.partition("\nModel hypothesis (untrusted)\n")
        assert f"{before}\n".splitlines() == plain.out.splitlines()[:-1]
        assert after.startswith("  None: ")
    assert "None: no key in GROQ_API_KEY; with one, 1 fact would go to llama-3.3-70b-versatile" in without_key.out
    assert "the model service failed (500)" in refused.out
    assert list(asked.json)[-1] == "hypothesis"
    assert asked.json["hypothesis"]["text"] == ANSWER["hypothesis"]
    assert asked.json["hypothesis"]["trusted"] is False
    assert KEY not in "".join(outcome.out + outcome.err for outcome in outcomes)


def test_wrong_settings_of_a_model_are_wrong_usage(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("note", "guess", "The zugzwang service dropped orders")
    monkeypatch.setenv("GROQ_BASE_URL", "https://me:hush@models.example.org")
    outcome = run("ask", "guess", "zugzwang?", "--hypothesis")
    assert (outcome.status, outcome.out) == (2, "")
    assert "hush" not in outcome.err
    assert len(outcome.err.splitlines()) == 1


def test_a_note_from_standard_input(folder: Path) -> None:
    command = [sys.executable, "-m", "contextmesh", "--data-dir", str(folder), "note", "stdin", "-"]
    done = subprocess.run(command, input="piped words", capture_output=True, text=True, check=True)
    assert done.stdout.startswith("saved memory.")


def test_import_counts_and_names_what_it_skips(run: Run) -> None:
    first = run("import", "postmortems", "pm", str(FIXTURES), "--json").json
    assert set(first) == {"added", "changed", "unchanged", "skipped"}
    assert first["added"] > 0
    assert first["changed"] == first["unchanged"] == 0
    assert all(set(row) == {"file", "line", "reason"} for row in first["skipped"])
    second = run("import", "postmortems", "pm", str(FIXTURES), "--json").json
    assert (second["added"], second["changed"], second["unchanged"]) == (0, 0, first["added"])
    assert (
        f"0 facts added, 0 changed, {first['added']} unchanged" in run("import", "postmortems", "pm", str(FIXTURES)).out
    )


def test_export_restore_rebuild_doctor(run: Run, tmp_path: Path) -> None:
    run("note", "keep", "The quixotic cache")
    file = str(tmp_path / "keep.jsonl")
    assert "exported" in run("export", "keep", file).out
    assert run("restore", "copy", file, "--json").json["workspace"] == "copy"
    assert run("search", "copy", "quixotic", "--json").json["hits"][0]["label"] == "The quixotic cache"
    assert (
        run("rebuild", "copy", "--json").json["position"]
        == len(Path(file).read_text(encoding="utf-8").splitlines()) - 1
    )
    report = run("doctor", "copy", "--json").json
    assert report["healthy"] is True
    assert report["log_position"] == report["graph_position"]
    assert {"server", "versions", "durability"} <= set(report)
    assert "healthy: True" in run("doctor", "copy").out


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("ask", "unknown-name", "why?"), 1, "no workspace 'unknown-name' in embedded FalkorDB"),
        (("search", "Not A Name", "x"), 2, "'Not A Name' is no workspace name"),
        (("note", "night", "  "), 2, "the note's text is '  '; expected some words"),
        (("note", "night", "x", "--at", "14:05"), 2, "the time '14:05' cannot be read"),
        (("note", "night", "x", "--at", "2026-03-02T14:05"), 2, "names no zone"),
        (("import", "postmortems", "night", "/no/such/file.md"), 1, "/no/such/file.md"),
        (("import", "spreadsheets", "night", "x"), 2, "'spreadsheets' is not 'postmortems'"),
        (("restore", "copy-2", "/no/such/file.jsonl"), 1, "/no/such/file.jsonl cannot be read"),
        (("bake",), 2, "No such command 'bake'"),
        (("ask",), 2, "Missing argument 'WORKSPACE'"),
        (("log", "night", "--limit", "0"), 2, "--limit"),
    ],
)
def test_an_error_is_one_line_and_a_status(run: Run, words: tuple[str, ...], status: int, message: str) -> None:
    run("note", "night", "something is here")
    outcome = run(*words)
    assert outcome.status == status
    assert outcome.out == ""
    assert outcome.err.startswith("contextmesh: ")
    assert len(outcome.err.splitlines()) == 1
    assert message in outcome.err


def test_the_known_workspaces_are_listed(run: Run) -> None:
    run("note", "known-one", "x")
    assert "known-one" in run("ask", "unknown-one", "why?").err


def test_a_url_and_a_folder_together_are_wrong_usage(run: Run, folder: Path) -> None:
    outcome = run("doctor", "x", options=("--url", "falkor://me:hush@localhost:1", "--data-dir", str(folder)))
    assert outcome.status == 2
    assert "hush" not in outcome.err


def test_a_password_is_never_printed(run: Run) -> None:
    outcome = run("doctor", "x", options=("--url", "falkor://me:hu#sh@127.0.0.1:1"))
    assert outcome.status in {1, 2}
    assert "hu#sh" not in outcome.err + outcome.out
    assert "sh@" not in outcome.err


def test_the_environment_stands_in_for_the_options(folder: Path) -> None:
    environment = {**os.environ, "CONTEXTMESH_DATA_DIR": str(folder)}
    environment.pop("CONTEXTMESH_URL", None)
    command = [sys.executable, "-m", "contextmesh", "note", "environment", "words"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.startswith("saved memory.")


def test_a_fact_cannot_steer_the_terminal(run: Run) -> None:
    run("note", "hostile", "wipe \x1b[2J the \x9b screen zebra")
    for words in (("search", "hostile", "zebra"), ("ask", "hostile", "zebra?"), ("log", "hostile")):
        out = run(*words).out
        assert "\x1b" not in out
        assert "\x9b" not in out
    assert "\\x1b[2J" in run("search", "hostile", "zebra").out


def test_a_reader_that_has_enough_is_no_error(folder: Path) -> None:
    program = f"{sys.executable} -m contextmesh --data-dir '{folder}' log night --limit 5 | head -1"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_every_command_has_help(run: Run) -> None:
    for name in ("ask", "demo", "doctor", "export", "import", "lab", "log", "note", "rebuild", "restore", "search"):
        outcome = run(name, "--help")
        assert outcome.status == 0
        assert "Usage: contextmesh" in outcome.out
    assert sorted(cli.cli.commands) == [
        "ask", "demo", "doctor", "export", "import", "lab", "log", "note", "rebuild", "restore", "search",
    ]  # fmt: skip
