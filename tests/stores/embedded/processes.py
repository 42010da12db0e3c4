"""The server processes of a folder, found without the code under test, and the scripts that open it too."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[3]

HOLD = """
server = open_server(data_dir=sys.argv[1])
print(server.redis.info("server")["run_id"], flush=True)
sys.stdin.read()
"""


def served(folder: Path) -> list[psutil.Process]:
    """The live redis-server processes that work in a folder, found without the code under test."""
    found = psutil.process_iter(["name", "cwd", "status"])
    return [p for p in found if p.info["name"] == "redis-server" and p.info["cwd"] == str(folder)]


def has_ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


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


def socket_folder(folder: Path) -> Path:
    [process] = served(folder)
    [path] = {Path(c.laddr) for c in process.net_connections("unix") if c.laddr}
    return path.parent


def line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def finish(process: "subprocess.Popen[str]") -> str:
    """Let a script end by itself; answers what it wrote to stderr."""
    _, complaints = process.communicate(timeout=60)
    return complaints


def ends_well(process: "subprocess.Popen[str]") -> bool:
    return "Error" not in finish(process) and process.returncode == 0
