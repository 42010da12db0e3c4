"""What the tests of branches share: one family of graphs over each store, and full snapshots to compare them by."""

import json
import sqlite3
from pathlib import Path
from typing import Any

from contextmesh.core import projection
from contextmesh.core.events import TickingClock
from contextmesh.core.forked import ForkedEventStore
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.core.runtime import Runtime
from contextmesh.core.stores import EventStore, GraphStore
from contextmesh.errors import ContextMeshError
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from contextmesh.stores.sqlite import SQLiteEventStore
from contextmesh.testing import objects
from tests.conftest import START

KINDS = ("memory", "sqlite", "falkordb")
Snapshot = tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]

# What `filled` had written by each position: objects and relations.
PAST = [
    (0, [], []),
    (1, ["a"], []),
    (2, ["a", "b"], []),  # the middle of a batch
    (3, ["a", "b", "c"], []),
    (4, ["a", "b", "c"], ["ab"]),
    (5, ["a", "b", "c"], ["ab", "bc"]),
]


class BrokenError(ContextMeshError):
    """What a step raises that a test has broken."""


class Family:
    """A log and its branches over one kind of store; each graph that it opens is another process's view of them."""

    def __init__(self, kind: str, folder: Path, server: Server, name: str) -> None:
        self.kind, self.folder, self.server, self.name = kind, folder, server, name
        self.clock = TickingClock(START)
        self._memory = InMemoryEventStore(), InMemoryGraphStore()
        self._files: list[SQLiteEventStore] = []

    def stores(self) -> tuple[EventStore, GraphStore]:
        if self.kind == "memory":
            return self._memory
        if self.kind == "sqlite":
            self._files.append(SQLiteEventStore(self.folder / "log.db"))
            return self._files[-1], InMemoryGraphStore()
        return FalkorDBEventStore(self.server, self.name), FalkorDBGraphStore(self.server, self.name)

    def root(self) -> Graph:
        log, store = self.stores()
        return Graph(log, store, clock=self.clock)

    def branch(self, name: str) -> Graph:
        log, store = self.stores()
        return Graph(log.branch(name), store.branch(name), clock=self.clock)

    def kept(self, name: str) -> int:
        """Return how many events are stored under a branch's own name, asked of the storage itself."""
        if self.kind == "memory":
            log = self._memory[0].branch(name)
            assert isinstance(log, ForkedEventStore)
            assert isinstance(log.tail, InMemoryEventStore)
            return len(log.tail._lines)
        if self.kind == "sqlite":
            connection = sqlite3.connect(self.folder / "log.db")
            query = "SELECT count(*) FROM events JOIN logs ON events.log = logs.id WHERE logs.name = ?"
            [[count]] = connection.execute(query, [name]).fetchall()
            connection.close()
            return int(count)
        rows: Any = self.server.redis.xrange(f"cm:{{{self.name}}}:{name}:log")
        return sum("event" in fields for _, fields in rows)

    def stored_keys(self) -> list[str]:
        """Return what there is in FalkorDB; the keys that the server makes for itself, later on, left out."""
        return sorted(str(key) for key in self.server.redis.scan_iter(match=f"cm:{{{self.name}}}:*", count=1000))

    def close(self) -> None:
        for file in self._files:
            file.close()


def filled(graph: Graph) -> Graph:
    """Write five events: the objects a, b and c, the last two as one batch, then the relations a -> b and b -> c."""
    graph.add_object("Memory", {"n": 1, "text": "redis timeouts"}, id="a")
    with graph.batch():
        graph.add_object("Memory", {"n": 2}, id="b")
        graph.add_object("Entity", {"n": 3}, id="c")
    graph.add_relation("a", "b", "MENTIONS", id="ab")
    graph.add_relation("b", "c", "MENTIONS", id="bc")
    return graph


def runtime(graph: Graph) -> Runtime:
    """Return a runtime without behaviours."""
    return Runtime(graph, [])


def snapshot(graph: Graph) -> Snapshot:
    """Return all objects and relations by id, as texts; versions and provenance left out."""
    return (
        {row.id: (row.type, json.dumps(row.data, sort_keys=True)) for row in graph.objects()},
        {row.id: (row.source, row.target, row.type, json.dumps(row.data, sort_keys=True)) for row in graph.relations()},
    )


def agrees_with_replay(graph: Graph) -> None:
    """The graph equals the replay of its log into a store in memory, provenance and versions included."""
    memory = InMemoryGraphStore()
    assert projection.catch_up(graph.log, memory) == graph.position == graph.log.tip()
    assert graph.objects() == objects(memory)
    assert graph.relations() == memory.relations()
    patches = {row.payload["patch"]["id"] for row in graph.events if "patch" in row.payload}
    assert graph.get_patches(patches) == memory.get_patches(patches)
    ids = [row.id for row in graph.events]
    assert len(ids) == len(set(ids)), "an event id was given out twice"
    times = [row.timestamp for row in graph.events]
    assert times == sorted(times)


def types(events: Any) -> list[str]:
    return [row.type for row in events]


def ids(rows: Any) -> list[str]:
    return [row.id for row in rows]
