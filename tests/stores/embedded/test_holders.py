"""One server a folder, whoever opens it, and none once the last holder has gone."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from contextmesh.stores.server import open_server
from tests.stores.embedded.processes import HOLD, ends_well, has_ended, kill, line, served, socket_folder, until


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


def test_no_second_server_when_the_sockets_folder_is_removed(folder: Path) -> None:
    with open_server(data_dir=folder) as first:
        first.redis.set("k", "v")
        [process] = served(folder)
        shutil.rmtree(socket_folder(folder))
        with open_server(data_dir=folder) as second:
            assert has_ended(process)
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
        assert has_ended(process)
    assert not served(folder)


def test_deleting_the_folder_of_an_open_server_leaves_no_server_behind(folder: Path) -> None:
    with open_server(data_dir=folder) as server:
        [process] = served(folder)
        server.redis.set("k", "v")
        shutil.rmtree(folder)
    until(lambda: has_ended(process))
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
