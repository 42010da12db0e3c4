"""Branches of a graph of 10,000 operations: fork at the tip, diff, promote.

Ours are in FalkorDB. The peer's are in memory, as they are by default, where diff and promote cost it least.
"""

import copy
import itertools
from collections.abc import Callable, Iterator
from typing import Any

from contextmesh import Graph, Runtime
from tests.benchmarks import peer as peers
from tests.benchmarks.measuring import Row, Setting, best, compared, duel, held, milliseconds, seconds, timed
from tests.benchmarks.workload import Workload

OPERATIONS = 10_000
DIVERGENT = 1000
PAGE = 500
ROUNDS = 3
Fork = Callable[[Any, str], Any]
Write = Callable[[Any, Workload, int], None]
Count = Callable[[Any], tuple[int, int]]


class Side:
    """One side's run, and the newest branch of it."""

    def __init__(self, parent: Any, *, fork: Fork, write: Write, count: Count) -> None:
        self.parent = self.branch = parent
        self.work = self.branch_work = Workload()
        self._fork, self._write, self._count = fork, write, count
        self._numbers = itertools.count(1)

    def begin(self, operations: int) -> "Side":
        """Write the parent's operations."""
        self._write(self.parent.graph, self.work, operations)
        return self

    def fork(self) -> float:
        """Fork at the tip; return how long it took."""
        label, made = f"branch-{next(self._numbers)}", []
        took = seconds(lambda: made.append(self._fork(self.parent, label)))
        [self.branch], self.branch_work = made, copy.deepcopy(self.work)
        return took

    def diverge(self, operations: int) -> None:
        """Write operations to the newest branch."""
        self._write(self.branch.graph, self.branch_work, operations)

    def promote(self, operations: int) -> float:
        """Promote a new branch that has diverged; return how long the promotion alone took."""
        self.fork()
        self.diverge(operations)
        took = seconds(lambda: self.parent.promote(self.branch))
        self.work = self.branch_work
        return took

    def differing(self) -> tuple[int, int]:
        """Return how many objects and relations differ between parent and branch."""
        found = self.parent.diff(self.branch)
        return len(found.divergent_objects), len(found.divergent_relations)

    def check(self) -> None:
        """Insist that parent and branch hold what was written."""
        assert self._count(self.parent.graph) == self.work.expected()
        assert self._count(self.branch.graph) == self.branch_work.expected()


def rows(setting: Setting, peer: peers.Peer) -> Iterator[Row]:
    """Return the rows of this theme, as they are measured."""
    n, divergent = setting.size(OPERATIONS), setting.size(DIVERGENT)
    ours, theirs = our_side(setting).begin(n), peers_side(peer).begin(n)
    yield forks(peer, ours, theirs, n)
    ours.diverge(divergent)
    theirs.diverge(divergent)
    ours.check()
    theirs.check()
    times = duel(
        timed(lambda: ours.parent.diff(ours.branch)), timed(lambda: theirs.parent.diff(theirs.branch)), rounds=ROUNDS
    )
    objects, relations = ours.differing()
    assert (objects, relations) == theirs.differing()
    whole_s = best(lambda: ours.parent.diff(ours.branch).shared_events, ROUNDS)
    note = (
        f"{objects:,} objects and {relations:,} relations differ; ours reads the shared events when asked for them, "
        f"which makes it {milliseconds(whole_s)}, {times[1] / whole_s:.1f} x"
    )
    yield compared(f"diff of {divergent:,} divergent operations", *times, wanted=5, note=note)
    times = duel(lambda: ours.promote(divergent), lambda: theirs.promote(divergent), ROUNDS)
    ours.check()
    theirs.check()
    yield compared(f"promote of {divergent:,} divergent operations", *times, wanted=10)


def forks(peer: peers.Peer, ours: Side, theirs: Side, operations: int) -> Row:
    """Measure forks at the tip, the peer's both in FalkorDB, as ours are, and in memory."""

    def in_falkordb() -> float:
        store = peer.store()
        took = seconds(lambda: peers.fork(theirs.parent, "in FalkorDB", store))
        assert (len(store.all_objects()), len(store.all_relations())) == theirs.work.expected()
        return took

    times = duel(ours.fork, in_falkordb, ROUNDS)
    in_memory_s = min(theirs.fork() for _ in range(ROUNDS))
    note = (
        "both in FalkorDB; a branch in memory, its default, takes the peer "
        f"{milliseconds(in_memory_s)}, against which ours gains {in_memory_s / times[0]:.1f} x"
    )
    return compared(f"fork at the tip of {operations:,} operations", *times, wanted=30, note=note)


def our_side(setting: Setting) -> Side:
    """Return our run in FalkorDB."""

    def write(graph: Graph, work: Workload, operations: int) -> None:
        for at in range(0, operations, PAGE):
            with graph.batch():
                work.write(graph, min(PAGE, operations - at))

    def fork(parent: Any, label: str) -> Any:
        return parent.fork(label=label)

    return Side(Runtime(setting.graph("bench-branches"), []), fork=fork, write=write, count=held)


def peers_side(peer: peers.Peer) -> Side:
    """Return the peer's run in memory."""

    def write(graph: peers.Graph, work: Workload, operations: int) -> None:
        work.write(graph, operations)

    return Side(peers.runtime(peer.graph_in_memory()), fork=peers.fork, write=write, count=peers.counts)
