"""Servers reached by URL: what a URL may say, and no message holds its password. Real servers throughout."""

import socket
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from contextmesh.errors import ServerError, UsageError
from contextmesh.stores.server import open_server
from tests.stores.bundled import free_port, port_of

SECRET = "s3cr3t"


def family(error: BaseException | None) -> str:
    """Everything that a log, a debugger or an error tracker could print about an error, its hidden context included."""
    if error is None:
        return ""
    shown = [str(error), repr(error), *traceback.format_exception(error)]
    return "\n".join([*shown, family(error.__cause__), family(error.__context__)])


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
