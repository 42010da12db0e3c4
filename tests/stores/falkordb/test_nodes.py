"""The graph as anyone's Cypher sees it: nodes, placeholders, labels and fields."""

import json
from typing import Any

import pytest

from contextmesh.core.graph import Graph
from contextmesh.errors import InvalidEventError
from contextmesh.stores import falkordb
from contextmesh.stores.falkordb import FalkorDBGraphStore


def nodes(store: FalkorDBGraphStore) -> list[dict[str, Any]]:
    """Every node but the head, by id, as the database shows it to anyone."""
    rows = store.cypher("MATCH (n) WHERE NOT n:Head RETURN n ORDER BY n.id")[1]
    return [row[0] for row in rows]


def test_an_object_as_a_node(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_object(
        "Entity",
        {"label": "Checkout API", "text": "it's", "tier": 1, "up": True, "load": 0.5, "no": None, "l": [1]},
        id="a",
    )
    [node] = nodes(store)
    provenance = {"created_by": "evt_001", "updated_by": "evt_001", "actor": "system", "evidence": []}
    assert json.loads(node.pop("provenance")) == provenance
    assert json.loads(node.pop("data"))["l"] == [1]
    assert set(node.pop("search").split()) == {"checkout", "api", "it", "s", "a"}
    assert node == {
        "labels": ["Entity", "Node"],
        "id": "a",
        "kind": "Entity",
        "label": "Checkout API",
        "text": "it's",
        "updated_at": 1_767_225_600_000_000,
        "version": 1,
        "tier": 1,
        "up": True,
        "load": 0.5,
    }


def test_fields_do_not_overwrite_the_nodes_own(graph: Graph, store: FalkorDBGraphStore) -> None:
    data = {
        "id": "x",
        "kind": "y",
        "version": 9,
        "updated_at": 0,
        "data": "z",
        "search": "zebra",
        "labels": "q",
        "a b": 1,
        "é": 2,
    }
    row = graph.add_object("Entity", data, id="a")
    [node] = nodes(store)
    assert [node[key] for key in ("id", "kind", "version", "label", "text")] == ["a", "Entity", 1, "a", ""]
    assert node["updated_at"] == 1_767_225_600_000_000
    assert json.loads(node["data"]) == row.data == data
    assert "zebra" not in node["search"]
    assert not {"a b", "é"} & node.keys()
    assert graph.objects() == [row]
    assert graph.search({"zebra": 1.0}, ["Entity"], (), 9) == []


def test_a_patch_leaves_no_field_behind(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_object("Entity", {"old": 1, "label": "Old"}, id="a")
    graph.patch_object("a", {"new": 2}, op="replace")
    [_, node] = sorted(nodes(store), key=lambda node: "Node" in node["labels"])
    assert ("old" in node, node["new"], node["label"], node["version"]) == (False, 2, "a", 2)


def test_placeholders_vanish_with_their_last_edge(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_object("Entity", id="a")
    graph.add_object("Entity", id="b")
    graph.add_relation("a", "p", "MENTIONS", id="r1")
    graph.add_relation("b", "p", "AFFECTS", id="r2")
    graph.add_relation("q", "q", "MENTIONS", id="r3")
    assert [(node["id"], node["labels"]) for node in nodes(store)] == [
        ("a", ["Entity", "Node"]),
        ("b", ["Entity", "Node"]),
        ("p", ["Node"]),
        ("q", ["Node"]),
    ]
    graph.remove_relation("r1")
    assert [node["id"] for node in nodes(store)] == ["a", "b", "p", "q"]
    graph.remove_object("b")
    assert [node["id"] for node in nodes(store)] == ["a", "q"]
    graph.remove_relation("r3")
    assert [node["id"] for node in nodes(store)] == ["a"]
    with graph.batch():
        graph.add_relation("a", "z", "MENTIONS", id="r4")
        graph.remove_object("a")
    assert nodes(store) == []


def test_a_placeholder_becomes_an_object_and_one_again(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_relation("a", "b", "MENTIONS", id="r")
    graph.add_object("Entity", {"n": 1}, id="b")
    assert [(node["id"], node["labels"]) for node in nodes(store)] == [("a", ["Node"]), ("b", ["Entity", "Node"])]
    graph.remove_object("b")
    assert nodes(store) == []
    with graph.batch():
        graph.add_object("Entity", {"n": 1}, id="b")
        graph.remove_object("b")
        graph.add_relation("a", "b", "MENTIONS", id="r2")
    assert [(node["id"], node["labels"]) for node in nodes(store)] == [("a", ["Node"]), ("b", ["Node"])]


def test_many_ends_in_one_batch_are_one_node_each(graph: Graph, store: FalkorDBGraphStore) -> None:
    with graph.batch():
        for n in range(50):
            graph.add_relation(f"n{n % 5}", f"n{n % 3}", "MENTIONS" if n % 2 else "AFFECTS")
    assert [node["id"] for node in nodes(store)] == ["n0", "n1", "n2", "n3", "n4"]
    assert len(graph.relations()) == 50


def test_another_kind_of_the_same_id_has_its_label_alone(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_object("Memory", id="a")
    with graph.batch():
        graph.remove_object("a")
        graph.add_object("Entity", id="a")
    assert [node["labels"] for node in nodes(store)] == [["Entity", "Node"]]


def test_an_object_may_be_called_like_a_patch(graph: Graph, store: FalkorDBGraphStore) -> None:
    """What is new is told for each by itself: settling a patch beside an object of its id doubles neither."""
    graph.add_object("Memory", {"n": 1}, id="a")
    graph.propose_patch("a", {"n": 2}, id="same")
    with graph.batch():
        graph.add_object("Memory", {"n": 0}, id="same")
        graph.apply_patch("same")
    assert store.cypher("MATCH (p:Patch {id: 'same'}) RETURN count(p), collect(p.status)")[1] == [[1, ["applied"]]]
    assert store.cypher("MATCH (n:Node {id: 'same'}) RETURN count(n)")[1] == [[1]]


def test_too_many_field_names_are_refused_before_the_append(
    graph: Graph, store: FalkorDBGraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.add_object("Memory", {"known": 1}, id="a")
    held = len(store.cypher("CALL db.propertyKeys()")[1])
    monkeypatch.setattr(falkordb, "MAX_FIELD_NAMES", held + 2)
    graph.add_object("Memory", {"known": 2, "one": 1, "two": 1}, id="b")
    says = f"the graph would hold {held + 3} field names, at most {held + 2} fit; nest rare ones"
    for write in (
        lambda: graph.add_object("Memory", {"three": 1}, id="c"),
        lambda: graph.patch_object("a", {"three": 1}),
    ):
        with pytest.raises(InvalidEventError, match=says):
            write()
    assert (len(graph.events), graph.position) == (2, 2)
    nested = {"known": 3, "rare": {"three": 1}, "th ree": 1, "list": [], "none": None}
    assert graph.add_object("Memory", nested, id="d").data == nested
    assert graph.rebuild() == 3
