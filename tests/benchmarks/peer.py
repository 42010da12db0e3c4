"""The peer, activegraph, as it ships: the only module here that touches it.

Its log is a SQLite file (WAL, `synchronous=NORMAL`), its graph is in FalkorDB or, as its branches and loads are by
default, in memory. Its FalkorDB is an embedded server of its own, with the settings that it starts one with.
"""

import uuid
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

from activegraph import Graph, Object, Runtime
from activegraph.core.graph_store import InMemoryGraphStore
from activegraph.store.falkordb import FalkorDBGraphStore
from activegraph.store.sqlite import SQLiteEventStore
from redislite.falkordb_client import FalkorDB

NAME = f"activegraph {version('activegraph')}"


class Peer:
    """An embedded FalkorDB and a folder of SQLite files. A context manager; leaving it stops the server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db = FalkorDB(str(folder / "peer.rdb"))
        self.redis = self._db.client

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._db.close()

    def store(self) -> FalkorDBGraphStore:
        """Return a new graph store in FalkorDB."""
        return FalkorDBGraphStore(graph=self._db.select_graph(uuid.uuid4().hex))

    def graph(self) -> Graph:
        """Return a new graph in FalkorDB."""
        return self._logged(Graph(graph_store=self.store()))

    def graph_in_memory(self) -> Graph:
        """Return a new graph in memory."""
        return self._logged(Graph())

    def _logged(self, graph: Graph) -> Graph:
        graph.attach_store(SQLiteEventStore(str(self._folder / f"{graph.run_id}.sqlite"), graph.run_id))
        return graph


def load(log: SQLiteEventStore, store: FalkorDBGraphStore | None = None) -> Graph:
    """Return the graph that a log makes, in memory or in a store."""
    return Runtime.load(log.path, run_id=log.run_id, behaviors=[], graph_store=store).graph


def runtime(graph: Graph) -> Runtime:
    """Return a runtime without behaviours, to branch from."""
    graph.store.upsert_run(created_at=graph.clock.now())
    return Runtime(graph, behaviors=[])


def fork(parent: Runtime, label: str, store: FalkorDBGraphStore | None = None) -> Runtime:
    """Return a branch at the tip, in memory or in a store."""
    return parent.fork(at_event=parent.graph._events[-1].id, label=label, behaviors=[], graph_store=store)


def counts(graph: Graph) -> tuple[int, int]:
    """Return how many objects and relations a graph holds."""
    return len(graph.all_objects()), len(graph.all_relations())


def put_objects(store: InMemoryGraphStore, first: int, rows: list[tuple[str, str, dict[str, Any]]]) -> None:
    """Put objects (id, kind, data) into a store, with the provenance that it gives to what is created."""
    for number, (object_id, kind, data) in enumerate(rows, first):
        provenance = {
            "created_by": "system",
            "caused_by_event": None,
            "frame_id": None,
            "timestamp": f"2026-01-01T00:00:00.{number:06d}Z",
            "evidence": [],
            "run_id": "01KD0000000000000000000000",
        }
        store.put_object(Object(id=object_id, type=kind, data=data, version=1, provenance=provenance))
