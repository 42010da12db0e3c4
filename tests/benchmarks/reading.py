"""Reading around an object, and removing one with all that touches it; both sides' graphs are in FalkorDB."""

import random
from collections.abc import Iterator
from typing import Any

from tests.benchmarks.measuring import Row, Setting, best, compared, duel, held, milliseconds, timed
from tests.benchmarks.peer import Peer, counts
from tests.benchmarks.workload import TYPES, Writable, fields

NODES, DEGREE = 300, 20
LEAVES = 11
ROUNDS = 10


def rows(setting: Setting, peer: Peer) -> Iterator[Row]:
    """Return the rows of this theme, as they are measured."""
    graph, theirs = setting.graph("bench-read"), peer.graph()
    with graph.batch():
        ids, hubs = connect(graph)
    their_ids, their_hubs = connect(theirs)
    sizes = NODES + ROUNDS, NODES * DEGREE // 2 + ROUNDS * LEAVES
    assert held(graph) == sizes == counts(theirs)
    yield from neighborhoods(graph, ids[0], theirs, their_ids[0])
    ours_s, peers_s = duel(
        timed(lambda: graph.get_relations(ids[1])), timed(lambda: theirs.get_relations(their_ids[1])), ROUNDS
    )
    found = len(graph.get_relations(ids[1]))
    assert found == len(theirs.get_relations(their_ids[1])) >= DEGREE // 2
    note = f"{found} relations among {sizes[1]:,}"
    yield compared("get_relations, both directions", ours_s, peers_s, wanted=20, note=note)
    yield removal(graph, hubs, theirs, their_hubs)


def connect(graph: Writable) -> tuple[list[str], list[str]]:
    """Make 300 nodes, each with ten relations to others, and hubs to remove; return the ids of both."""
    chance = random.Random(3)
    ids = [graph.add_object("Entity", fields(number)).id for number in range(NODES)]
    for at, source in enumerate(ids):
        for other in chance.sample([each for each in range(NODES) if each != at], DEGREE // 2):
            graph.add_relation(source, ids[other], TYPES[other % 3], {"weight": 1})
    hubs = [graph.add_object("Entity", fields(number)).id for number in range(ROUNDS)]
    for hub in hubs:
        for leaf in range(LEAVES):
            graph.add_relation(hub, ids[leaf + 2], TYPES[leaf % 3], {"weight": 1})
    return ids, hubs


def neighborhoods(graph: Any, start: str, theirs: Any, their_start: str) -> Iterator[Row]:
    """Measure three hops on both sides, and five on ours."""
    ours_s, peers_s = duel(
        timed(lambda: graph.neighborhood(start, 3)), timed(lambda: theirs.neighborhood(their_start, 3)), ROUNDS
    )
    objects, relations = graph.neighborhood(start, 3)
    their_objects, their_relations = theirs.neighborhood(their_start, 3)
    assert len(objects) == len(their_objects) > NODES
    assert len(relations) >= len(their_relations) > NODES * DEGREE // 3
    note = f"{NODES} nodes of degree {DEGREE}: {len(relations):,} relations, the peer returns {len(their_relations):,}"
    yield compared("neighborhood, depth 3", ours_s, peers_s, wanted=10, note=note)
    deep_s = best(lambda: graph.neighborhood(start, 5), ROUNDS)
    assert len(graph.neighborhood(start, 5)[0]) == NODES + ROUNDS
    note = "the peer lists every path there is, which outlasts its client's timeout"
    yield Row(work="neighborhood, depth 5", ours=milliseconds(deep_s), wanted="below 50 ms", note=note)


def removal(graph: Any, hubs: list[str], theirs: Any, their_hubs: list[str]) -> Row:
    """Measure the removal of an object that eleven relations touch."""
    before, next_hub, their_next = len(graph.relations()), iter(hubs), iter(their_hubs)
    ours_s, peers_s = duel(
        timed(lambda: graph.remove_object(next(next_hub))),
        timed(lambda: theirs.remove_object(next(their_next))),
        rounds=ROUNDS,
    )
    after = NODES, before - ROUNDS * LEAVES
    assert held(graph) == after == counts(theirs)
    note = f"in a graph of {before:,} relations"
    return compared(f"remove_object with {LEAVES} relations", ours_s, peers_s, wanted=5, note=note)
