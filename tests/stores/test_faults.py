"""What goes wrong between two steps, two processes, or a client and its server; nothing is lost or doubled.

Run as a script, this file is a writer: `python test_faults.py KIND DATA_DIR NAME MARK SECONDS ACKS`.
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

from contextmesh.core import projection
from contextmesh.core.graph import Graph
from contextmesh.core.memory import InMemoryGraphStore
from contextmesh.errors import (
    AlreadyExistsError,
    ConcurrentWriterError,
    IncompatibleRuntimeState,
    ProjectionError,
    QueryError,
    ServerError,
)
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.keyspace import leftovers, remove_leftover
from contextmesh.stores.server import Server, open_server
from contextmesh.testing import event, object_created, objects, relation_created

ROOT = Path(__file__).parents[2]
SHARED = ("shared-0", "shared-1", "shared-2")


def opened(server: Server, name: str) -> Graph:
    return Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name))


def agrees_with_replay(graph: Graph) -> None:
    """The graph equals the replay of its log into a store of another kind."""
    memory = InMemoryGraphStore()
    assert projection.catch_up(graph._log, memory) == graph.position == graph._log.tip()
    assert graph.objects() == objects(memory)
    assert graph.relations() == memory.relations()
    patches = {row.payload["patch"]["id"] for row in graph.events if "patch" in row.payload}
    assert graph.get_patches(patches) == memory.get_patches(patches)
    ids = [row[0] for row in graph._store._read("MATCH (n:Node) RETURN n.id")]
    assert len(ids) == len(set(ids)), "two nodes of one id"


# One fault at a time


class Faulty:
    """Stands before a method: fails once, before or after the real one has run, then steps aside."""

    def __init__(
        self, real: Callable[..., Any], error: Exception, *, after: bool, between: Callable[[], Any] | None = None
    ):
        self.real, self.error, self.after, self.between, self.calls = real, error, after, between, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls > 1:
            return self.real(*args, **kwargs)
        if self.after:
            self.real(*args, **kwargs)
        if self.between:
            self.between()
        raise self.error


OUTAGES = [redis.ConnectionError("closed"), redis.TimeoutError("late")]


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("error", OUTAGES)
def test_an_append_of_unknown_outcome_lands_once(
    server: Server, graph: Graph, monkeypatch: pytest.MonkeyPatch, error: Exception, *, after: bool
) -> None:
    graph.add_object("Memory", id="before")
    fault = Faulty(server.eval, error, after=after)
    monkeypatch.setattr(server, "eval", fault)
    with graph.batch():
        graph.add_object("Memory", id="a")
        graph.add_relation("a", "before", "MENTIONS", id="r")
    assert fault.calls == 2
    assert [row.type for row in graph.events] == ["object.created", "object.created", "relation.created"]
    agrees_with_replay(graph)


@pytest.mark.parametrize("after", [True, False])
def test_another_writer_comes_in_while_the_outcome_is_unknown(
    server: Server, graph: Graph, name: str, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    """The batch is in the log once, before or behind the other one."""
    other = opened(server, name)
    real = server.eval

    def between() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(server, "eval", real)
            other.add_object("Memory", id="theirs")

    monkeypatch.setattr(server, "eval", Faulty(real, redis.ConnectionError("closed"), after=after, between=between))
    with graph.batch():
        graph.add_object("Memory", id="mine-1")
        graph.add_object("Memory", id="mine-2")
    order = [row.payload["id"] for row in graph.events]
    assert order == (["mine-1", "mine-2", "theirs"] if after else ["theirs", "mine-1", "mine-2"])
    agrees_with_replay(graph)


def test_an_outage_that_lasts_is_an_error_and_nothing_is_doubled_after(
    server: Server, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.add_object("Memory", id="a")

    def down(*_args: Any, **_kwargs: Any) -> Any:
        raise redis.ConnectionError("closed")

    with monkeypatch.context() as patch:
        patch.setattr(server, "eval", down)
        with pytest.raises(
            ServerError, match=r"the connection to .* was lost, again after reconnecting; check the server"
        ):
            graph.add_object("Memory", id="b")
    assert [row.id for row in graph.objects()] == ["a"]
    graph.add_object("Memory", id="b")
    agrees_with_replay(graph)


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("error", OUTAGES)
def test_a_projection_of_unknown_outcome_is_made_good_at_once(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, error: Exception, *, after: bool
) -> None:
    graph.add_object("Memory", {"n": 0}, id="a")
    monkeypatch.setattr(graph._store, "_write", Faulty(graph._store._write, error, after=after))
    with graph.batch():
        graph.patch_object("a", {"n": 1})
        graph.add_relation("a", "b", "MENTIONS", id="r")
    assert [row.data for row in graph.objects()] == [{"n": 1}]
    assert graph.objects()[0].version == 2
    assert len(graph.events) == 4
    agrees_with_replay(graph)


def test_a_projection_that_failed_is_repaired_at_the_next_read(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.add_object("Memory", {"n": 0}, id="a")
    fault = Faulty(graph._store._write, redis.ResponseError("out of memory"), after=False)
    monkeypatch.setattr(graph._store, "_write", fault)
    with pytest.raises(
        ProjectionError, match="the events up to position 3 are saved, the graph could not take them yet"
    ):
        graph.patch_object("a", {"n": 1})
    assert len(graph.events) == 3
    assert graph._store.head() == 1
    row = graph.get_object("a")
    assert row is not None
    assert (row.data, row.version, graph.position) == ({"n": 1}, 2, 3)
    agrees_with_replay(graph)


def test_a_projection_that_failed_is_repaired_at_the_next_write(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph._store, "_write", Faulty(graph._store._write, redis.ResponseError("no"), after=False))
    with pytest.raises(ProjectionError, match="position 1 are saved"):
        graph.add_object("Memory", id="a")
    with pytest.raises(AlreadyExistsError, match="an object 'a' already"):
        graph.add_object("Memory", id="a")
    assert graph.patch_object("a", {"n": 1}).status == "applied"
    agrees_with_replay(graph)


def test_a_crash_between_the_two_steps_is_made_good_by_whoever_comes_next(
    server: Server, graph: Graph, name: str
) -> None:
    graph.add_object("Memory", id="a")
    batch = [object_created(2, "b"), relation_created(3, "r", "a", "b"), event(4)]
    FalkorDBEventStore(server, name).append_many(batch, expected=1, commit_id="crashed")
    assert graph._store.head() == 1
    other = opened(server, name)
    assert (other.position, [row.id for row in other.objects()]) == (4, ["a", "b"])
    FalkorDBEventStore(server, name).append_many([object_created(5, "c")], expected=4, commit_id="crashed too")
    graph.add_object("Memory", id="d")
    assert [row.id for row in graph.objects()] == ["a", "b", "c", "d"]
    agrees_with_replay(graph)


def test_a_read_that_meets_an_outage_is_asked_again(
    server: Server, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.add_object("Memory", id="a")
    fault = Faulty(server.command, redis.ConnectionError("closed"), after=False)
    monkeypatch.setattr(server, "command", fault)
    assert [row.id for row in graph.objects()] == ["a"]
    assert fault.calls == 2
    stream = Faulty(fault.real, redis.ConnectionError("closed"), after=True)
    monkeypatch.setattr(server, "command", stream)
    assert len(list(graph.events)) == 1
    assert stream.calls > 1


def test_reserved_numbers_may_be_lost_never_shared(
    server: Server, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        server.redis, "hincrby", Faulty(server.redis.hincrby, redis.ConnectionError("closed"), after=True)
    )
    assert graph.add_object("Memory").id == "Memory#2"
    assert graph.add_object("Memory").id == "Memory#3"


@pytest.mark.parametrize("after", [True, False])
def test_a_swap_of_unknown_outcome(
    server: Server, graph: Graph, name: str, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    graph.add_object("Memory", id="a")
    monkeypatch.setattr(server, "eval", Faulty(server.eval, redis.ConnectionError("closed"), after=after))
    assert graph.rebuild() == 1
    assert leftovers(server, name) == []
    graph.add_object("Memory", id="b")
    agrees_with_replay(graph)


def test_a_head_beyond_the_tip(server: Server, graph: Graph, name: str) -> None:
    """The log was restored from something older, the graph was not."""
    graph.add_object("Memory", id="a")
    graph.add_object("Memory", id="b")
    server.redis.xdel(f"cm:{{{name}}}:log", "2-0")
    other = FalkorDBGraphStore(server, name)
    with pytest.raises(IncompatibleRuntimeState, match="the graph stands at 2, its log ends at 1; rebuild the graph"):
        graph.catch_up()
    with pytest.raises(IncompatibleRuntimeState, match="rebuild the graph from the log"):
        opened(server, name)
    assert graph.rebuild() == 1
    assert [row.id for row in graph.objects()] == [row.id for row in objects(other)] == ["a"]
    assert opened(server, name).position == 1


class Endless(Exception):  # noqa: N818 - it ends what would not end
    pass


def test_a_page_that_is_too_large_for_one_query(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event fits, a page of them does not: 1,000 events of 600 kB are past the server's 512 MB, here 1 MB."""
    own.redis.config_set("proto-max-bulk-len", "1mb")
    monkeypatch.setattr("contextmesh.core.projection.MAX_PAGE_CHARACTERS", 500_000)
    graph = opened(own, "faults")
    for n in range(3):
        graph.add_object("Memory", {"rare": ["x" * 700_000]}, id=f"o{n}")
    tries = []
    real = FalkorDBGraphStore.apply

    def apply(store: FalkorDBGraphStore, *args: Any, **kwargs: Any) -> bool:
        tries.append(kwargs)
        if len(tries) > 20:
            raise Endless
        return real(store, *args, **kwargs)

    monkeypatch.setattr(FalkorDBGraphStore, "apply", apply)
    assert graph.rebuild() == 3
    assert [row.id for row in graph.objects()] == ["o0", "o1", "o2"]


# Processes


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
def own(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own, to be killed."""
    with open_server(data_dir=tmp_path / "data") as server:
        yield server


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
