"""How the graph is asked: bounded reads scan nothing, a chain is one query, a relation is read once."""

import re
from typing import Any

import pytest

from contextmesh.core.graph import Graph
from contextmesh.core.projection import fold
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from contextmesh.testing import object_created, relation_created
from tests.stores.conftest import Asked
from tests.stores.opening import opened


def explained(store: FalkorDBGraphStore, text: str) -> str:
    """The plan of a query as it was sent."""
    return "\n".join(store._graph.execute_command("GRAPH.EXPLAIN", store.key, text))


@pytest.mark.parametrize(
    "read",
    [
        lambda store: store.get_objects(["n3", "n5"]),
        lambda store: store.get_relations(["r3", "r5"]),
        lambda store: store.relations(["hub"]),
        lambda store: store.relations(None, ["n3"]),
        lambda store: store.relations(["hub"], ["n3", "n5"], ["MENTIONS"]),
        lambda store: store.relations(["hub"], [f"n{n}" for n in range(1100)], ["MENTIONS"]),
        lambda store: store.touching(["n3", "n5"]),
        lambda store: store.adjacent(["n3", "n5"], ["MENTIONS"]),
        lambda store: store.expand(["n3"], ["MENTIONS", "AFFECTS"], ["Memory", "Entity"], ["superseded"], 9),
        lambda store: store.search({"redi": 1.0}, ["Memory"], ["superseded"], 9),
    ],
    ids=["objects", "relations", "from", "to", "between", "among", "touching", "adjacent", "expand", "search"],
)
def test_a_bounded_read_scans_no_label(store: FalkorDBGraphStore, asked: Asked, read: Any) -> None:
    """What is asked about a few objects must not cost a look at all of them, however many there are."""
    events = [object_created(0, "hub", "Entity")]
    events += [object_created(n, f"n{n}", data={"text": "redis" if n < 5 else "other"}) for n in range(1, 1500)]
    events += [relation_created(n, f"r{n}", "hub", f"n{n}", "MENTIONS") for n in range(1, 1500)]
    assert store.apply(fold(events), expected=0, new=len(events))
    queries = asked(store)
    assert read(store)
    plans = [explained(store, text) for text in [*queries]]
    assert plans
    assert all("Node By Label Scan" not in plan and "All Node Scan" not in plan for plan in plans), plans


def test_a_chain_is_one_query_that_begins_at_its_first_node(store: FalkorDBGraphStore, asked: Asked) -> None:
    """The far end has fewer objects, which would tempt a planner to begin there; rows are fetched by id after."""
    events = [object_created(n, f"n{n}") for n in range(50)] + [object_created(50, "hub", "Entity")]
    events += [relation_created(n, f"r{n}", f"n{n}", "hub") for n in range(50)]
    assert store.apply(fold(events), expected=0, new=len(events))
    queries = asked(store)
    found = store.match_chain(["Memory", "Entity", None], [("MENTIONS", "right"), (None, "left")], 4)
    assert [[row.id for row in match.objects] for match in found] == [["n0", "hub", f"n{n}"] for n in (0, 1, 10, 11)]
    [chain] = [text for text in queries if "LIMIT" in text]
    plan = explained(store, chain)
    assert re.findall(r"(Scan|Traverse) \| \((\w+)", plan) == [("Traverse", "n1"), ("Traverse", "n0"), ("Scan", "n0")]
    assert not any("Label Scan" in explained(store, text) for text in queries[:] if text != chain)


def test_relations_among_more_ends_than_a_query_compares(store: FalkorDBGraphStore) -> None:
    events = [relation_created(n, f"r{n}", "hub", f"n{n}") for n in range(1500)]
    assert store.apply(fold(events), expected=0, new=len(events))
    for n in (0, 1, 999, 1000, 1001, 1400):
        assert len(store.relations(["hub", "absent"], [f"n{at}" for at in range(n)])) == n


def test_a_chain_without_what_was_removed_while_it_was_read(
    graph: Graph, server: Server, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in "abc":
        graph.add_object("Memory", id=key)
    for n, (source, target) in enumerate(["ab", "bc", "ca", "aa"]):
        graph.add_relation(source, target, "T", id=f"r{n}")
    store, other = graph._store, opened(server, name)
    real = store.get_objects

    def get_objects(ids: Any) -> Any:
        other.remove_object("c")
        return real(ids)

    monkeypatch.setattr(store, "get_objects", get_objects)
    found = store.match_chain([None, None], [("T", "right")], 9)
    assert [[row.id for row in match.objects] for match in found] == [["a", "a"], ["a", "b"]]


def test_a_neighborhood_reads_each_relation_once(graph: Graph, asked: Asked) -> None:
    """A query a hop for the ids alone, then each relation from its source alone, then the objects."""
    with graph.batch():
        for n in range(40):
            graph.add_object("Memory", id=f"n{n}")
            graph.add_relation(f"n{n}", f"n{n // 3}", "T", id=f"r{n}")
    store = graph._store
    assert isinstance(store, FalkorDBGraphStore)
    queries = asked(store)
    objects, relations = graph.neighborhood("n0", 2)
    assert (len(objects), len(relations)) == (9, 9)
    assert [len(re.findall(r"x\.data|n\.data", text)) for text in queries] == [0, 0, 1, 1, 1]
    queries.clear()
    assert len(graph.neighborhood("n39", 10)[0]) == 40
    assert sum("DISTINCT" in text for text in queries) == 8  # seven hops to n26, and one that finds nothing more
    queries.clear()
    assert [row.id for row in graph.get_relations("n1")] == ["r1", "r3", "r4", "r5"]
    assert len(queries) == 1


def test_more_rows_than_a_default_limit(graph: Graph, log: FalkorDBEventStore) -> None:
    log.append_many([object_created(n, f"n{n}") for n in range(12_000)], expected=0, commit_id="c")
    graph.catch_up()
    assert len(graph.objects()) == 12_000
    assert len(graph.get_objects([f"n{n}" for n in range(0, 12_000, 3)])) == 4_000
