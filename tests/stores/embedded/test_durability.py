"""What is known to lose data of an embedded FalkorDB, each shown not to happen here."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from contextmesh.errors import ServerError
from contextmesh.stores import flusher
from contextmesh.stores.server import open_server
from tests.stores.bundled import BUNDLED
from tests.stores.embedded.processes import finish, kill, served, until

# Data survives


def test_a_slow_disk_loses_nothing_when_the_server_is_killed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under `appendfsync everysec` the server answers before it writes while a flush is under way; ours must not."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if not compiler or sys.platform != "linux":
        pytest.skip("needs a C compiler on Linux, to make flushes slow")
    source, library = tmp_path / "slow.c", tmp_path / "slow.so"
    flush = "int {}(int file) {{ usleep(1500000); return 0; }}\n"
    source.write_text("#include <unistd.h>\n" + flush.format("fsync") + flush.format("fdatasync"), encoding="utf-8")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    with monkeypatch.context() as patched:
        patched.setenv("LD_PRELOAD", str(library))
        server = open_server(data_dir=folder)
    with server:
        written, deadline = 0, time.monotonic() + 2.5
        while time.monotonic() < deadline:
            server.redis.incr("acknowledged")
            written += 1
        os.kill(int(server.redis.info()["process_id"]), signal.SIGKILL)
        server.reconnect()
        assert int(server.redis.get("acknowledged")) == written


def test_the_append_only_file_is_flushed_every_second(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[tuple[str, int]] = []
    rounds: list[int] = []  # how many files were flushed by the end of each
    fsync, flush = os.fsync, flusher.Flusher.flush

    def watched_fsync(file: int) -> None:
        path = Path(f"/proc/self/fd/{file}").readlink()
        if path.is_relative_to(folder):  # another test's server may be open, and is flushed too
            flushed.append((path.name, os.fstat(file).st_size))
        fsync(file)

    def watched_flush(self: flusher.Flusher) -> None:
        flush(self)
        if self._folder.is_relative_to(folder):
            rounds.append(len(flushed))

    if sys.platform != "linux":
        pytest.skip("needs /proc, to see which file is flushed")
    assert flusher.FLUSH_EVERY_S == 1.0
    monkeypatch.setattr(flusher, "FLUSH_EVERY_S", 0.05)
    monkeypatch.setattr(flusher.Flusher, "flush", watched_flush)
    monkeypatch.setattr(os, "fsync", watched_fsync)
    with open_server(data_dir=folder) as server:
        server.redis.set("key", "x" * 5000)
        until(lambda: any(name.endswith(".incr.aof") and size > 5000 for name, size in flushed))
        until(lambda: len(rounds) > 3 and rounds[-3] == rounds[-1])  # nothing was written, so nothing needs flushing
        quiet = len(rounds)
        until(lambda: len(rounds) >= quiet + 3)
        assert set(rounds[quiet:]) == {rounds[quiet - 1]}


@pytest.mark.parametrize("durability", ["everysec", "always"])
def test_acknowledged_writes_survive_a_killed_server(durability: str, folder: Path) -> None:
    with open_server(data_dir=folder, durability=durability) as server:
        graph = server.db.select_graph("g")
        for number in range(200):
            graph.query("CREATE (:A {n: $n})", {"n": number})
        kill(folder)
        server.reconnect()
        assert graph.ro_query("MATCH (a:A) RETURN count(a), sum(a.n)").result_set == [[200, 19900]]


def test_a_folder_with_only_a_snapshot_keeps_its_data(folder: Path) -> None:
    folder.mkdir()
    command = [BUNDLED / "redis-server", "--port", "0", "--unixsocket", "s", "--loadmodule", BUNDLED / "falkordb.so"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL) as plain:
        until((folder / "s").exists)
        client = redis.Redis(unix_socket_path=os.path.relpath(folder / "s"), retry=Retry(NoBackoff(), 0))
        client.execute_command("GRAPH.QUERY", "g", "UNWIND range(1, 50) AS n CREATE (:A {n: n})")
        client.shutdown(save=True)
        plain.wait()
    assert sorted(entry.name for entry in folder.iterdir()) == ["dump.rdb"]
    with open_server(data_dir=folder) as server:
        assert server.redis.config_get("appendonly") == {"appendonly": "yes"}
        server.db.select_graph("g").query("CREATE (:A {n: 51})")
        kill(folder)
        server.reconnect()
        assert server.db.select_graph("g").ro_query("MATCH (a:A) RETURN count(a)").result_set == [[51]]


def test_closing_and_opening_keeps_data(folder: Path) -> None:
    for number in range(1, 4):
        with open_server(data_dir=folder) as server:
            assert server.redis.incr("count") == number
        assert not served(folder)


def test_two_folders_are_two_databases(tmp_path: Path) -> None:
    with open_server(data_dir=tmp_path / "a") as one, open_server(data_dir=tmp_path / "b") as two:
        one.redis.set("k", "one")
        assert two.redis.get("k") is None
        two.redis.set("k", "two")
        kill(tmp_path / "a")
        one.reconnect()
        assert (one.redis.get("k"), two.redis.get("k")) == ("one", "two")


def aof_of(folder: Path) -> Path:
    [log] = (folder / "appendonlydir").glob("*.incr.aof")
    return log


def test_nul_bytes_at_the_end_of_the_log(folder: Path) -> None:
    with open_server(data_dir=folder) as server:
        server.redis.set("k", "v")
    with aof_of(folder).open("ab") as log:
        log.write(b"\0" * 4000)
    with open_server(data_dir=folder) as server:
        assert server.redis.get("k") == "v"


def test_a_corrupt_log_is_named_with_its_remedy(folder: Path, tmp_path: Path) -> None:
    with open_server(data_dir=folder) as server:
        server.redis.set("k", "v")
        server.redis.set("filler", "x" * 20_000)
    with aof_of(folder).open("ab") as log:
        log.write(b"garbage" * 5000)
    with pytest.raises(ServerError, match=r"did not start: .*append only file.*redis-check-aof --fix") as caught:
        open_server(data_dir=folder)
    assert str(folder) in str(caught.value)
    assert not served(folder)
    # What the message tells the user to do.
    (tmp_path / "redis-check-aof").symlink_to(BUNDLED / "redis-server")
    fix = [tmp_path / "redis-check-aof", "--fix", "appendonlydir/appendonly.aof.manifest"]
    subprocess.run(fix, cwd=folder, input=b"y\n", check=True, capture_output=True)
    with open_server(data_dir=folder) as server:
        assert server.redis.get("k") == "v"


def test_loading_is_waited_for_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    open_server(data_dir=folder).close()
    with aof_of(folder).open("ab") as log:
        for _ in range(300):
            log.write(b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n" * 20_000)
    with open_server(data_dir=folder) as server:
        assert server.redis.get("n") == "6000000"
    assert f"FalkorDB is loading {folder}" in capsys.readouterr().err  # shown after a second; fewer would not take one


def test_interrupting_the_wait_leaves_no_server(folder: Path, script: Callable[..., "subprocess.Popen[str]"]) -> None:
    open_server(data_dir=folder).close()
    with aof_of(folder).open("ab") as log:
        for _ in range(300):
            log.write(b"*2\r\n$4\r\nINCR\r\n$1\r\nn\r\n" * 20_000)
    opener = script("open_server(data_dir=sys.argv[1])", folder)
    until(lambda: bool(served(folder)))
    opener.send_signal(signal.SIGINT)
    assert "KeyboardInterrupt" in finish(opener)
    assert not served(folder)
    with open_server(data_dir=folder) as server:
        assert server.redis.get("n") == "6000000"


def test_a_signal_is_enough_to_stop_it_without_loss(folder: Path) -> None:
    with open_server(data_dir=folder) as server:
        server.redis.set("k", "v")
        [process] = served(folder)
        process.send_signal(signal.SIGTERM)
        until(lambda: not served(folder))
        server.reconnect()
        assert server.redis.get("k") == "v"


# Settings


def test_a_second_opener_raises_durability_and_never_lowers_it(folder: Path) -> None:
    with open_server(data_dir=folder) as first:
        assert first.redis.config_get("appendfsync") == {"appendfsync": "no"}
        with open_server(data_dir=folder, durability="always") as second:
            assert (first.durability, second.durability) == ("everysec", "always")
            assert first.redis.config_get("appendfsync") == {"appendfsync": "always"}
            with open_server(data_dir=folder) as third:
                assert third.durability == "always"
            kill(folder)
            first.reconnect()
            assert second.redis.config_get("appendfsync") == {"appendfsync": "always"}
    with open_server(data_dir=folder) as later:
        assert later.durability == "everysec"
        assert later.redis.config_get("appendfsync") == {"appendfsync": "no"}


def test_a_second_opener_switches_the_log_on_again(folder: Path) -> None:
    with open_server(data_dir=folder) as first:
        first.redis.set("k", "v")
        first.redis.config_set("appendonly", "no")
        with open_server(data_dir=folder):
            assert first.redis.config_get("appendonly") == {"appendonly": "yes"}
            kill(folder)
            first.reconnect()
            assert first.redis.get("k") == "v"


def test_nothing_is_evicted_and_nothing_saved_behind_a_copys_back(folder: Path) -> None:
    with open_server(data_dir=folder) as server:
        assert server.redis.config_get("maxmemory-policy") == {"maxmemory-policy": "noeviction"}
        assert server.redis.config_get("save") == {"save": ""}
        assert server.redis.config_get("port") == {"port": "0"}
