"""What the tests of stores share: no server outlives its test, one can be started by hand, queries can be looked at."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from contextmesh.stores.falkordb import FalkorDBGraphStore
from tests.stores.bundled import BUNDLED, free_port


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    yield
    for process in psutil.process_iter(["name", "cwd"]):
        if process.info["name"] == "redis-server" and (process.info["cwd"] or "").startswith(str(tmp_path)):
            process.kill()


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reaches a server that the environment of whoever runs it names."""
    monkeypatch.delenv("CONTEXTMESH_URL", raising=False)
    monkeypatch.delenv("CONTEXTMESH_DATA_DIR", raising=False)


@pytest.fixture
def run_redis(tmp_path: Path) -> Iterator[Callable[..., redis.Redis]]:
    """Start a bundled redis-server by hand; answers a client of our own for it."""
    running: list[subprocess.Popen[bytes]] = []

    def run(*settings: str, module: bool = True, password: str | None = None) -> redis.Redis:
        home = tmp_path / f"by-hand-{len(running)}"
        home.mkdir()
        port = free_port()
        loaded = ["--loadmodule", str(BUNDLED / "falkordb.so")] if module else []
        own = ["--port", str(port), "--bind", "127.0.0.1", "--unixsocket", str(home / "s"), "--save", ""]
        if password is not None:
            own += ["--requirepass", password]
        with (home / "log").open("wb") as log:
            command = [str(BUNDLED / "redis-server"), *own, *settings, *loaded]
            running.append(subprocess.Popen(command, cwd=home, stdout=log, stderr=log))
        client = redis.Redis(
            host="127.0.0.1", port=port, password=password, decode_responses=True, retry=Retry(NoBackoff(), 0)
        )
        for _ in range(500):
            try:
                client.ping()
            except redis.ConnectionError:
                time.sleep(0.02)
            else:
                return client
        raise AssertionError((home / "log").read_text())

    yield run
    for process in running:
        process.kill()
        process.wait()


Asked = Callable[[FalkorDBGraphStore], list[str]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Return, for a store, the list to which every query that it sends from now on is added, parameters included."""

    def watch(store: FalkorDBGraphStore) -> list[str]:
        queries: list[str] = []

        def watched(send: Callable[..., Any]) -> Callable[..., Any]:
            def noted(*words: Any) -> Any:
                if str(words[0]).startswith("GRAPH."):
                    queries.append(words[2])
                return send(*words)

            return noted

        for owner, name in ((store._graph, "execute_command"), (store._server, "command")):
            monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
        return queries

    return watch
