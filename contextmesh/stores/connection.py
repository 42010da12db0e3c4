"""What a FalkorDB by URL and the embedded one have in common: the client, the checks, and waiting for an answer."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import falkordb
import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.connection import ConnectionPool
from redis.retry import Retry

from contextmesh.errors import ServerError

OUTAGES = (redis.ConnectionError, redis.TimeoutError, OSError)  # what a client raises where no server answers


def make_client(**options: Any) -> falkordb.FalkorDB:
    """Make a graph client that never times out and never sends a command twice on its own.

    After a timeout, or with a retry, a slow write would be sent again although it landed.

    Args:
        options: Where and as whom to connect, as ``redis.Redis`` takes it; holds the password.
    """
    return falkordb.FalkorDB(**options, socket_timeout=None, retry=Retry(NoBackoff(), 0))


def nodes(client: redis.Redis | RedisCluster) -> list[redis.Redis]:
    """List one client without routing for each node: in a cluster, every node has settings of its own."""
    if isinstance(client, RedisCluster):
        primaries: list[Any] = client.get_primaries()  # type: ignore[no-untyped-call]
        return [client.get_redis_connection(node) for node in primaries]
    return [client]


def module_number(node: redis.Redis) -> int:
    """Read FalkorDB's version as its module reports it: 42201 for 4.22.1, 0 without the module."""
    modules: Any = node.info("modules").get("modules", [])
    return next((int(module["ver"]) for module in modules if module["name"] == "graph"), 0)


def _graph_config(node: redis.Redis, *words: str | int) -> Any:
    return node.execute_command("GRAPH.CONFIG", *words)  # type: ignore[no-untyped-call]


def checked(db: falkordb.FalkorDB, where: str) -> falkordb.FalkorDB:
    """Insist on the FalkorDB module, and lift the limit that cuts results short in silence.

    Args:
        db: The client to check.
        where: The server's place for the error's message, without user name or password.

    Returns:
        The same client.

    Raises:
        ServerError: A node is a Redis without the FalkorDB module.
    """
    for node in nodes(db.connection):
        if not module_number(node):
            raise ServerError(
                f"reached a Redis without the FalkorDB module at {where.removeprefix('FalkorDB at ')}; expected a "
                "FalkorDB server; load the module or give the URL of one that has it"
            )
        # A restricted user may not do this; health() tells what it then finds.
        with contextlib.suppress(redis.ResponseError):
            if _graph_config(node, "GET", "RESULTSET_SIZE")[1] != -1:
                _graph_config(node, "SET", "RESULTSET_SIZE", -1)
    return db


def problems(node: redis.Redis) -> Iterator[str]:
    """Name the settings of a node under which data gets lost or answers get cut short, each with its remedy."""
    info = node.info("memory") | node.info("persistence")
    if not info["aof_enabled"]:
        yield "appendonly is off, a crash loses what came after the last snapshot; set appendonly yes"
    elif info["aof_last_write_status"] != "ok":
        yield "the append-only file cannot be written, writes are refused; free space on the server's disk"
    if info["maxmemory"] and info["maxmemory_policy"] != "noeviction":
        yield (
            f"maxmemory is set with the eviction policy {info['maxmemory_policy']}, keys vanish when memory is full; "
            "set maxmemory-policy noeviction"
        )
    if not module_number(node):
        yield "the FalkorDB module is not loaded; load it"
        return
    try:
        limit = _graph_config(node, "GET", "RESULTSET_SIZE")[1]
    except redis.ResponseError:
        yield "RESULTSET_SIZE cannot be read by this user; make sure that it is -1, else results are cut short"
    else:
        if limit != -1:
            yield f"RESULTSET_SIZE is {limit}, longer results are cut short in silence; set it to -1"


def await_answer(client: redis.Redis | RedisCluster, where: str, silence_s: float) -> None:
    """Wait while the server loads, however long; give up after a stretch of silence.

    Args:
        client: The client whose server is waited for.
        where: The server's place for people, without user name or password.
        silence_s: Seconds without any answer to put up with.

    Raises:
        ServerError: The server stayed silent for that long.
    """
    heard = time.monotonic()

    def answers() -> bool:
        nonlocal heard
        try:
            loading = any(_loading(node, silence_s) for node in nodes(client))
        except OUTAGES:
            if time.monotonic() - heard < silence_s:
                return False
            raise ServerError(
                f"{where} did not answer for {silence_s:g} s; expected a running server; check that it runs"
            ) from None
        heard = time.monotonic()
        return not loading

    wait(answers, f"waiting for {where}")


def _loading(node: redis.Redis, timeout_s: float) -> bool:
    """Ask over a connection that gives up. INFO, since a server answers it while loading and to restricted users."""
    pool = node.connection_pool
    options = pool.connection_kwargs | {"socket_timeout": timeout_s}
    with redis.Redis.from_pool(ConnectionPool(connection_class=pool.connection_class, **options)) as probe:
        return bool(probe.info("persistence")["loading"])


def wait(done: Callable[[], bool], doing: str, deadline_s: float = float("inf")) -> bool:
    """Poll until done or the deadline; after a second, show that something is going on.

    Args:
        done: What to ask, every 5 ms at first and every 200 ms in the end.
        doing: The text beside the elapsed time; empty to show nothing.
        deadline_s: Seconds to go on asking.

    Returns:
        Whether it got done before the deadline.
    """
    started, pause_s, bar = time.monotonic(), 0.005, None
    try:
        while not done():
            waited = time.monotonic() - started
            if waited > deadline_s:
                return False
            if bar is None and waited > 1 and doing:
                from tqdm.auto import tqdm  # noqa: PLC0415  in a notebook it loads ipywidgets

                bar = tqdm(desc=doing, bar_format="{desc} ({elapsed})", leave=False)
                bar.start_t -= waited
            if bar is not None:
                bar.refresh()
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 0.2)
        return True
    finally:
        if bar is not None:
            bar.close()
