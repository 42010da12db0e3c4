"""Rebuilding: the graph comes back as it was, under everybody who has it open."""

import json
from typing import Any

import pytest

from contextmesh.core import projection
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.keyspace import leftovers
from contextmesh.stores.server import Server, open_server
from contextmesh.testing import object_created, objects, relation_created
from tests.stores.opening import opened


def drawing(store: FalkorDBGraphStore) -> dict[str, list[str]]:
    """Every node and edge with all that it carries, and every index."""

    def rows(query: str) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True) for row in store.cypher(query)[1])

    return {
        "nodes": rows("MATCH (n) RETURN n"),
        "edges": rows("MATCH (a)-[x]->(b) RETURN a.id, x, b.id"),
        "indexes": rows("CALL db.indexes() YIELD label, properties, types, entitytype, language, stopwords "
                        "RETURN label, properties, types, entitytype, language, stopwords"),
    }  # fmt: skip


def filled(graph: Graph) -> None:
    for n in range(8):
        graph.add_object("Memory" if n % 2 else "Entity", {"label": f"Object {n}", "n": n, "text": "redis"}, id=f"o{n}")
    for n in range(8):
        graph.add_relation(f"o{n}", f"o{(n * 3) % 11}", "MENTIONS" if n % 2 else "AFFECTS", {"n": n})
    graph.patch_object("o1", {"n": 100})
    graph.patch_object("o2", {}, expected_version=9)
    graph.propose_patch("o3", {"later": True})
    graph.remove_object("o0")
    graph.remove_relation("rel_003")


def test_a_wiped_projection_comes_back_as_it_was(
    server: Server, graph: Graph, store: FalkorDBGraphStore, name: str
) -> None:
    filled(graph)
    before, hits = drawing(store), graph.search({"redi": 1.0}, ["Memory", "Entity"], (), 20)
    server.redis.delete(f"cm:{{{name}}}:graph")
    again = opened(server, name)
    assert drawing(again._store) == before
    assert again.search({"redi": 1.0}, ["Memory", "Entity"], (), 20) == hits != []
    assert again.add_object("Memory").id == "Memory#1"


def test_a_rebuilt_projection_is_as_it_was(server: Server, graph: Graph, store: FalkorDBGraphStore, name: str) -> None:
    filled(graph)
    other = opened(server, name)
    before = drawing(store)
    seen: list[tuple[int, int]] = []
    assert graph.rebuild(lambda done, total: seen.append((done, total))) == len(graph.events)
    assert seen == [(len(graph.events), len(graph.events))]
    assert drawing(store) == before
    assert leftovers(server, name) == []
    # Whoever had it open goes on, with fields and types that the new graph numbers otherwise.
    other.add_object("Task", {"fresh_field": 1}, id="t")
    other.add_relation("t", "o1", "BRAND_NEW", id="new")
    assert graph.get_relation("new") == other.get_relation("new") != None  # noqa: E711 - both, and not None
    assert graph.objects("Task", {"fresh_field": 1}) == other.objects("Task")


def test_a_projection_ruined_by_hand_is_rebuilt(
    server: Server, graph: Graph, store: FalkorDBGraphStore, name: str
) -> None:
    filled(graph)
    before = drawing(store)
    raw = server.db.select_graph(store.key)
    raw.query("MATCH (n:Memory) DETACH DELETE n")
    raw.query("MATCH (n:Entity) SET n.data = '{}', n.version = 77")
    raw.query("CREATE (:Node:Stray {id: 'stray'})")
    assert drawing(store) != before
    graph.rebuild()
    assert drawing(store) == before


def test_swap_needs_the_tip(log: FalkorDBEventStore, store: FalkorDBGraphStore) -> None:
    """Another writer appended after the shadow had caught up: no swap, and the next attempt includes it."""
    log.append(object_created(1, "a"))
    projection.catch_up(log, store)
    shadow = store.shadow()
    assert projection.catch_up(log, shadow) == 1
    log.append(relation_created(2, "r", "a", "b"))
    assert store.swap(shadow, tip=1) is False
    assert projection.catch_up(log, shadow) == 2
    assert store.swap(shadow, tip=2) is True
    assert [row.id for row in store.relations()] == ["r"]


def test_in_memory_replay_of_a_falkordb_log(graph: Graph, log: FalkorDBEventStore) -> None:
    filled(graph)
    memory, copy = InMemoryGraphStore(), InMemoryEventStore()
    for row in log.iter_events():
        copy.append(row)
    projection.catch_up(copy, memory)
    assert objects(memory) == graph.objects()
    assert memory.relations() == graph.relations()
    assert memory.get_patches(["patch_001", "patch_002", "patch_003"]) == graph.get_patches(
        ["patch_001", "patch_002", "patch_003"]
    )


def test_opening_waits_for_the_search_index(store: FalkorDBGraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index under construction finds nothing and says nothing, so opening must outwait it."""
    answers = [[["[Indexing] 0/0: UNDER CONSTRUCTION"]], [["OPERATIONAL"], ["[Indexing] 3/9: UNDER CONSTRUCTION"]]]
    real = store._ask

    def ask(query: str, parameters: dict[str, Any]) -> list[list[Any]]:
        return answers.pop(0) if "RETURN status" in query and answers else real(query, parameters)

    monkeypatch.setattr(store, "_ask", ask)
    assert store.head() == 0
    assert answers == []


def test_labels_and_fields_are_right_after_another_client_rebuilt(graph: Graph, server: Server, name: str) -> None:
    """A client's graph caches labels and field names by number, and a rebuild by somebody else renumbers them."""
    for number, kind in enumerate(("Alpha", "Beta", "Gamma")):
        graph.add_object(kind, {f"field_{kind.lower()}": number}, id=kind.lower())
    store = graph._store
    assert isinstance(store, FalkorDBGraphStore)
    query = "MATCH (n:Node) RETURN n ORDER BY n.id"
    assert [row["labels"] for [row] in store.cypher(query)[1]] == [
        ["Alpha", "Node"],
        ["Beta", "Node"],
        ["Gamma", "Node"],
    ]
    assert server._folder is not None
    with open_server(data_dir=server._folder.path) as other:
        theirs = opened(other, name)
        theirs.remove_object("alpha")
        theirs._log.truncate_after(0)  # so that what is written next takes the first numbers
        other.redis.delete(f"cm:{{{name}}}:graph")
        fresh = opened(other, name)
        fresh.add_object("Gamma", {"field_new": 7}, id="gamma")
        fresh.add_object("Beta", {"field_beta": 8}, id="beta")
    [beta], [gamma] = store.cypher(query)[1]
    assert (beta["labels"], beta["field_beta"]) == (["Beta", "Node"], 8)
    assert (gamma["labels"], gamma["field_new"]) == (["Gamma", "Node"], 7)
    assert {row.type for row in objects(store)} == {"Beta", "Gamma"}
