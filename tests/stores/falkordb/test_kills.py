"""Processes that write at once, and are killed with their server; nothing is lost or doubled.

Run as a script, this file is a writer: `python test_kills.py KIND DATA_DIR NAME MARK SECONDS ACKS`.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from contextmesh.core.graph import Graph
from contextmesh.errors import ConcurrentWriterError, ProjectionError, QueryError, ServerError
from contextmesh.stores.keyspace import leftovers, remove_leftover
from contextmesh.stores.server import Server, open_server
from tests.stores.opening import agrees_with_replay, opened

ROOT = Path(__file__).parents[3]
SHARED = ("shared-0", "shared-1", "shared-2")


class Writers:
    """Writer processes, each with a mark and an acknowledgement file of its own."""

    def __init__(self, kind: str, data_dir: Path, name: str, acks: Path) -> None:
        self.kind, self.data_dir, self.name, self.acks = kind, data_dir, name, acks
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, mark: str, seconds: float) -> None:
        command = [
            sys.executable,
            __file__,
            self.kind,
            str(self.data_dir),
            self.name,
            mark,
            str(seconds),
            str(self.acks / mark),
        ]
        self.running[mark] = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)})

    def kill(self, mark: str) -> None:
        process = self.running.pop(mark)
        process.kill()
        process.wait()

    def join(self) -> list[int]:
        return [process.wait(timeout=120) for process in self.running.values()]

    def acknowledged(self) -> list[dict[str, Any]]:
        """Every acknowledgement; a line cut short by a kill was never given."""
        lines = [line for path in sorted(self.acks.iterdir()) for line in path.read_text().splitlines(keepends=True)]
        return [json.loads(line) for line in lines if line.endswith("\n")]


@pytest.fixture
def writers(tmp_path: Path, own: Server) -> Iterator[Callable[[str], Writers]]:
    made: list[Writers] = []

    def writers(kind: str) -> Writers:
        (tmp_path / kind).mkdir()
        made.append(Writers(kind, tmp_path / "data", "faults", tmp_path / kind))
        return made[-1]

    yield writers
    for group in made:
        for mark in list(group.running):
            group.kill(mark)


def check_log(graph: Graph, acknowledged: list[dict[str, Any]]) -> Counter[str]:
    """Each acknowledged write is in the log exactly once and whole; the others once and whole, or not at all."""
    marks = Counter(row.frame_id for row in graph.events if row.frame_id)
    whole = {"add": 1, "relate": 2, "patch": 2, "remove": 3}
    assert acknowledged
    wrong = [(ack["mark"], marks[ack["mark"]]) for ack in acknowledged if marks[ack["mark"]] != whole[ack["kind"]]]
    assert wrong == [], "acknowledged, and in the log fewer or more times than once"
    torn = {mark: n for mark, n in marks.items() if mark and n != whole[mark.split(".")[0]]}
    assert torn == {}
    ids = [row.id for row in graph.events]
    assert len(ids) == len(set(ids)), "an event id was given out twice"
    times = [row.timestamp for row in graph.events]
    assert times == sorted(times)
    return Counter(ack["kind"] for ack in acknowledged)


@pytest.mark.slow
def test_writers_and_server_killed_at_random(
    own: Server, writers: Callable[[str], Writers], capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("CONTEXTMESH_FAULT_SEED", random.randrange(10**6)))
    seconds = float(os.environ.get("CONTEXTMESH_FAULT_SECONDS", "20"))
    chance, group = random.Random(seed), writers("mixed")
    graph = opened(own, "faults")
    for shared in SHARED:
        graph.add_object("Counter", {"n": 0}, id=shared)
    started, kills = time.monotonic(), Counter[str]()
    numbers = iter(range(10_000))
    for _ in range(4):
        group.start(f"w{next(numbers)}", seconds)
    while (left := seconds - (time.monotonic() - started)) > 0:
        time.sleep(chance.uniform(0.1, 1.0))
        if chance.random() < 0.35:
            with contextlib.suppress(redis.ConnectionError, ProcessLookupError):
                os.kill(int(own.redis.info()["process_id"]), signal.SIGKILL)
                kills["server"] += 1
            own.reconnect()
        else:
            group.kill(chance.choice(sorted(group.running)))
            group.start(f"w{next(numbers)}", left)
            kills["writer"] += 1
    codes = group.join()
    graph = opened(own, "faults")
    acknowledged = group.acknowledged()
    with capsys.disabled():
        print(f"\nseed {seed}: {kills}, {len(acknowledged)} acknowledged, {len(graph.events)} events")  # noqa: T201
    assert codes == [0] * 4, f"seed {seed}"
    assert kills["server"] > 2, f"seed {seed}"
    assert kills["writer"] > 2, f"seed {seed}"
    counts = check_log(graph, acknowledged)
    assert len(counts) == 4, f"seed {seed}: {counts}"
    agrees_with_replay(graph)
    # Read-modify-write under kills: each applied patch added exactly one, so the sum is the version.
    for row in graph.objects("Counter"):
        assert row.data["n"] == row.version - 1, f"seed {seed}"
    before = graph.objects(), graph.relations()
    graph.rebuild()
    assert (graph.objects(), graph.relations()) == before
    for key in leftovers(own, "faults"):
        remove_leftover(own, key)


@pytest.mark.slow
def test_two_processes_count_together(own: Server, writers: Callable[[str], Writers]) -> None:
    graph, group = opened(own, "faults"), writers("count")
    graph.add_object("Counter", {"n": 0}, id="shared-0")
    for mark in ("one", "two"):
        group.start(mark, 150)
    assert group.join() == [0, 0]
    [row] = opened(own, "faults").objects()
    assert row.data == {"n": 300, "one": 150, "two": 150}
    assert row.version == 301
    graph.catch_up()
    agrees_with_replay(graph)


@pytest.mark.slow
def test_rebuild_while_two_processes_write(own: Server, writers: Callable[[str], Writers]) -> None:
    graph, group = opened(own, "faults"), writers("mixed")
    for shared in SHARED:
        graph.add_object("Counter", {"n": 0}, id=shared)
    for mark in ("one", "two"):
        group.start(mark, 4)
    swapped = 0
    while any(process.poll() is None for process in group.running.values()):
        with contextlib.suppress(ConcurrentWriterError):
            graph.rebuild()
            swapped += 1
    assert group.join() == [0, 0]
    assert swapped > 2
    graph = opened(own, "faults")
    check_log(graph, group.acknowledged())
    agrees_with_replay(graph)
    assert leftovers(own, "faults") == []


@pytest.mark.slow
def test_a_server_that_is_killed_is_started_again_by_whoever_needs_it(own: Server) -> None:
    graph = opened(own, "faults")
    for n in range(5):
        graph.add_object("Memory", id=f"o{n}")
        os.kill(int(own.redis.info()["process_id"]), signal.SIGKILL)
        assert len(graph.objects()) == n + 1
        os.kill(int(own.redis.info()["process_id"]), signal.SIGKILL)
    graph.add_object("Memory", id="last")
    agrees_with_replay(graph)


# What a writer process does


def write_mixed(graph: Graph, mark: str, number: int, chance: random.Random) -> dict[str, Any]:
    """Make one commit of some kind, all of whose events carry one mark that is never used again."""
    kind = chance.choice(["add", "relate", "patch", "patch", "remove"])
    full = f"{kind}.{mark}.{number}"
    if kind == "add":
        graph.add_object("Memory", {"label": full}, id=full, frame_id=full)
    elif kind == "relate":
        with graph.batch():
            graph.add_object("Entity", {"label": full}, id=full, frame_id=full)
            graph.add_relation(full, chance.choice([*SHARED, "nobody"]), "MENTIONS", frame_id=full)
    elif kind == "patch":
        row = graph.get_object(chance.choice(SHARED))
        assert row is not None
        graph.patch_object(row.id, {"n": row.data["n"] + 1}, expected_version=row.version, frame_id=full)
    else:
        with graph.batch():
            graph.add_object("Memory", id=full, frame_id=full)
            graph.add_relation(chance.choice(SHARED), full, "AFFECTS", frame_id=full)
            graph.remove_object(full, frame_id=full)
    return {"kind": kind, "mark": full}


def count(graph: Graph, mark: str) -> None:
    """Add one, by reading and then writing what nobody may have changed in between."""
    while True:
        row = graph.get_object("shared-0")
        assert row is not None
        updates = {"n": row.data["n"] + 1, mark: row.data.get(mark, 0) + 1}
        if graph.patch_object("shared-0", updates, expected_version=row.version).status == "applied":
            return
        graph.catch_up()


def main(  # noqa: PLR0917 - its command line
    kind: str, data_dir: str, name: str, mark: str, amount: str, acks: str
) -> None:
    chance = random.Random(mark)
    server = open_server(data_dir=data_dir)
    graph = opened(server, name)
    if kind == "count":
        for _ in range(int(amount)):
            count(graph, mark)
        return
    deadline = time.monotonic() + float(amount)
    number = 0
    with Path(acks).open("a") as file:
        while time.monotonic() < deadline:
            number += 1
            try:
                ack = write_mixed(graph, mark, number, chance)
            except (ServerError, ProjectionError, ConcurrentWriterError, QueryError):
                continue  # not acknowledged, so nothing is promised; the same graph goes on
            file.write(json.dumps(ack) + "\n")
            file.flush()
            os.fsync(file.fileno())
            time.sleep(chance.uniform(0, 0.01))


if __name__ == "__main__":
    main(*sys.argv[1:])
