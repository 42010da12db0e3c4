"""From the log to the graph: a rebuild into FalkorDB, and a load into memory."""

from collections.abc import Iterator

from contextmesh import FalkorDBEventStore, Graph, InMemoryGraphStore, Reader
from contextmesh.core import projection
from tests.benchmarks.measuring import Row, Setting, best, duel, held, seconds
from tests.benchmarks.peer import Peer, SQLiteEventStore, counts
from tests.benchmarks.peer import load as peers_load
from tests.benchmarks.workload import Workload

OPERATIONS = 100_000
BATCH = 1000
PEERS_REBUILD = 2000
ROUNDS = 2


def rows(setting: Setting, peer: Peer) -> Iterator[Row]:
    """Return the rows of this theme, as they are measured."""
    n = setting.size(OPERATIONS)
    graph, work = setting.graph("bench-load"), Workload()
    for _ in range(n // BATCH):
        with graph.batch():
            work.write(graph, BATCH)
    yield rebuild(setting, peer, graph, work)
    yield load(setting, peer, graph, work)


def rebuild(setting: Setting, peer: Peer, graph: Graph, work: Workload) -> Row:
    """Measure a rebuild of the whole graph in FalkorDB."""
    events = graph.position
    reached: list[int] = []
    rate = events / best(lambda: graph.rebuild(lambda done, _all: reached.append(done)), ROUNDS)
    assert reached.count(events) == ROUNDS
    assert held(graph) == work.expected()
    small, n = Workload(), setting.size(PEERS_REBUILD)
    log, store = peers_log(peer, small, n), peer.store()
    peers_rate = n / seconds(lambda: peers_load(log, store))
    assert (len(store.all_objects()), len(store.all_relations())) == small.expected()
    return Row(
        work=f"rebuild in FalkorDB, {events:,} events",
        ours=f"{rate:,.0f}/s",
        beside=f"{peers_rate:,.0f}/s",
        gain=rate / peers_rate,
        wanted="20,000/s",
        note=f"the peer measured with {n:,} events, since it sends a query or more for each",
    )


def load(setting: Setting, peer: Peer, graph: Graph, work: Workload) -> Row:
    """Measure a load of the same operations into memory."""
    n, events = setting.size(OPERATIONS), graph.position
    their_log = peers_log(peer, Workload(), n)

    def ours() -> float:
        log, store = FalkorDBEventStore(setting.server, "bench-load"), InMemoryGraphStore()
        took = seconds(lambda: projection.catch_up(log, store))
        assert held(Reader(log, store)) == work.expected()
        return took

    def theirs() -> float:
        loaded = []
        took = seconds(lambda: loaded.append(peers_load(their_log)))
        assert counts(loaded[0]) == work.expected()
        return took

    ours_s, peers_s = duel(ours, theirs, rounds=ROUNDS)
    return Row(
        work=f"load into memory, {n:,} operations",
        ours=f"{ours_s:.2f} s",
        beside=f"{peers_s:.2f} s",
        gain=peers_s / ours_s,
        wanted="5 x",
        note=f"ours from FalkorDB's stream, {events:,} events; the peer's from its SQLite file, {n:,}",
    )


def peers_log(peer: Peer, work: Workload, operations: int) -> SQLiteEventStore:
    """Return a log of the peer's that the operations were written to."""
    graph = peer.graph_in_memory()
    work.write(graph, operations)
    return graph.store
