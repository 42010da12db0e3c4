"""A branch and other processes: opening it again, forking at once, a kill in the middle.

Run as a script, this file is another process that forks or works on a branch: `python test_processes.py STEP DATA_DIR
NAME`.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from contextmesh.core.branches import fork
from contextmesh.core.graph import Graph
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server, open_server
from tests.core.branching import Family, agrees_with_replay, filled, ids, snapshot, types

ROOT = Path(__file__).parents[3]
PATIENCE_S = 60.0


def test_a_branch_is_opened_again_by_its_name(family: Family) -> None:
    made = fork(filled(family.root()), 3, "alt")
    made.add_object("Run")
    again = family.branch("alt")
    assert (again.run_id, again.position, ids(again.objects())) == (made.run_id, 4, ["Run#alt-1", "a", "b", "c"])
    assert again.add_object("Run").id != "Run#alt-1"
    made.catch_up()
    assert snapshot(made) == snapshot(again)
    assert made.add_object("Run").id not in ids(again.objects()[:2])
    assert types(family.branch("alt").events) == ["object.created"] * 6
    agrees_with_replay(family.branch("alt"))


def test_a_branch_whose_graph_is_gone_is_replayed_when_it_is_opened(stored: Family) -> None:
    graph = filled(stored.root())
    made = fork(graph, 4, "alt")
    made.add_object("Memory", {"text": "redis again"}, id="z")
    before = snapshot(made)
    assert stored.server.redis.delete(f"cm:{{{stored.name}}}:alt:graph") == 1
    again = stored.branch("alt")
    assert snapshot(again) == before
    assert ids(again.search({"redi": 1.0}, ["Memory"], (), 9)) == ["z", "a"]
    agrees_with_replay(again)
    assert again.rebuild() == 5
    agrees_with_replay(again)


def test_a_fork_while_another_writer_commits(family: Family) -> None:
    """Wherever it begins, it holds what its log says, and no more of the parent than up to there."""
    graph, elsewhere = filled(family.root()), family.root()
    done = threading.Event()

    def write() -> None:
        for n in range(40):
            with elsewhere.batch():
                elsewhere.add_object("Memory", {"n": n}, id=f"w{n}")
                elsewhere.add_relation("a", f"w{n}", "MENTIONS", id=f"r{n}")
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    made = []
    try:
        while not done.is_set() or not made:
            made.append(fork(graph, label="alt"))
    finally:
        writer.join(PATIENCE_S)
    for one in made:
        base = one.position
        assert base % 2 == 1, "the fork begins in the middle of a batch"
        assert one.events[:] == elsewhere.events[:base]
        assert len(one.objects()) == 3 + (base - 5) // 2
        agrees_with_replay(one)


def test_two_processes_fork_under_one_label_at_once(stored: Family) -> None:
    filled(stored.root())
    start, names = threading.Barrier(4), []

    def begin() -> None:
        graph = stored.root()
        start.wait(PATIENCE_S)
        names.extend(fork(graph, label="alt").log.branch_name for _ in range(3))

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(names) == sorted(["alt", *(f"alt-{n}" for n in range(2, 13))])
    assert sorted(row.name for row in stored.root().log.branches()) == sorted(names)


def another_process(step: str, data_dir: Path, name: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, __file__, step, str(data_dir), name]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_another_process_works_on_the_branch(own: tuple[Server, Path], tmp_path: Path) -> None:
    server, data_dir = own
    family = Family("falkordb", tmp_path, server, "forks")
    made = fork(filled(family.root()), 4, "alt")
    first = made.add_object("Run").id
    finished = another_process("work", data_dir, "forks")
    assert (finished.returncode, finished.stderr) == (0, "")
    seen = json.loads(finished.stdout)
    assert (seen["objects"], seen["run_id"]) == ([first, "a", "b", "c"], made.run_id)
    made.catch_up()
    assert ids(made.objects()) == sorted([first, seen["minted"], "a", "b", "c"])
    assert made.add_object("Run").id not in {first, seen["minted"]}
    agrees_with_replay(made)


@pytest.mark.parametrize(("step", "left"), [("killed-before", []), ("killed-between", ["alt"])])
def test_a_process_that_is_killed_while_it_forks(
    own: tuple[Server, Path], tmp_path: Path, step: str, left: list[str]
) -> None:
    """There is a whole branch, whose graph is made when it is opened, or there is none."""
    server, data_dir = own
    family = Family("falkordb", tmp_path, server, "forks")
    graph = filled(family.root())
    finished = another_process(step, data_dir, "forks")
    assert finished.returncode == -signal.SIGKILL, finished.stderr
    assert [row.name for row in graph.log.branches()] == left
    for name in left:
        made = family.branch(name)
        assert ids(made.objects()) == ["a", "b", "c"]
        made.add_object("Memory", id="z")
        agrees_with_replay(made)
    assert fork(graph, label="alt").log.branch_name == ("alt-2" if left else "alt")
    agrees_with_replay(graph)


# What another process does


def main(step: str, data_dir: str, name: str) -> None:
    with open_server(data_dir=data_dir) as server:
        log, store = FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name)
        if step == "work":
            graph = Graph(log.branch("alt"), store.branch("alt"))
            seen = ids(graph.objects())
            minted = graph.add_object("Run").id
            print(json.dumps({"objects": seen, "minted": minted, "run_id": graph.run_id}))  # noqa: T201
            return

        def die(*args: Any, **kwargs: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        dies_in = (FalkorDBEventStore, "fork") if step == "killed-before" else (FalkorDBGraphStore, "swap")
        setattr(*dies_in, die)
        fork(Graph(log, store), label="alt")


if __name__ == "__main__":
    main(*sys.argv[1:])
