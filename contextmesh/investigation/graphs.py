"""How a workspace's graph is opened: its log and its graph on one server, brought in step."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tqdm.auto import tqdm

from contextmesh.core.events import Clock
from contextmesh.core.graph import Graph
from contextmesh.core.projection import Progress, rebuild
from contextmesh.errors import IncompatibleRuntimeState, ReadOnlyError
from contextmesh.investigation.inputs import SLOW_S

if TYPE_CHECKING:
    from contextmesh.core.stores import EventStore, GraphStore
    from contextmesh.stores.server import Server


def open_graph(server: "Server", name: str, clock: Clock | None) -> Graph:
    """Return a workspace's graph; read-only where this connection may not write."""
    from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore  # noqa: PLC0415

    log, store = FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name)
    try:
        log.begin()
    except ReadOnlyError:
        store.read_only = True
        return Graph(log, store, clock=clock, read_only=True)
    return _in_step(log, store, clock, name)


def open_branch(graph: Graph, store: "GraphStore", name: str) -> Graph:
    """Return the graph of a branch; it is disposable, so that one that is gone is replayed from the log."""
    log, store = graph.log.branch(name), store.branch(name)
    log.tip()  # another process may just have dropped it, and opening its graph would make that anew
    return graph.on(log, store, read_only=True) if graph.read_only else _in_step(log, store, graph.clock, name)


def _in_step(log: "EventStore", store: "GraphStore", clock: Clock | None, name: str) -> Graph:
    with shown_progress("catching up") as progress:
        try:
            return Graph(log, store, clock=clock, progress=progress)
        except IncompatibleRuntimeState:
            if log.tip() == 0:
                msg = f"the log of {name!r} is gone, its graph is not; restore an export, or drop the workspace"
                raise IncompatibleRuntimeState(msg) from None
            rebuild(log, store, progress)  # the log is the truth, also where the graph is ahead of it
            return Graph(log, store, clock=clock)


@contextmanager
def shown_progress(doing: str, unit: str = "event") -> Iterator[Progress]:
    """Show a bar for what takes over a second."""
    with tqdm(desc=doing, unit=unit, delay=SLOW_S, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress
