"""Cypher: it reads only, and a parameter is a value and nothing else."""

import json
from typing import Any

import pytest

from contextmesh.core.graph import Graph
from contextmesh.errors import QueryError
from contextmesh.stores.cypher import check_parameter
from contextmesh.stores.falkordb import FalkorDBGraphStore

# Parameters


class Hostile:
    def __str__(self) -> str:
        return "1}) MATCH (n) DETACH DELETE n //"

    __repr__ = __str__


class Liar(str):
    __slots__ = ()

    def replace(self, *_args: Any) -> str:  # type: ignore[override]
        return '"}) MATCH (n) DETACH DELETE n //'


class Sly(int):
    def __str__(self) -> str:
        return "1 MATCH (n) DETACH DELETE n"

    __repr__ = __str__


class Tricky(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        return [("a`: 1}) //", 1)]


@pytest.mark.parametrize(
    "value",
    [Hostile(), Liar("x"), Sly(1), Tricky(a=1), [Hostile()], {"a": [Sly(1)]}, (1,), {1}, b"x", 2**63, -(2**63) - 1,
     float("nan"), float("inf"), 1j, "\0", "\ud800", {"a b": 1}, {"`": 1}, {"": 1}, {1: 2}],
)  # fmt: skip
def test_refused_parameter(graph: Graph, store: FalkorDBGraphStore, value: Any) -> None:
    graph.add_object("Memory", id="a")
    with pytest.raises(QueryError, match=r"parameter \$value.* is .*; expected plain JSON types"):
        store.cypher("RETURN $value", {"value": value})
    assert [row.id for row in graph.objects()] == ["a"]


class Bomb:
    def __str__(self) -> str:
        raise RuntimeError("this object's text was asked for")

    __repr__ = __str__


@pytest.mark.parametrize("value", [Bomb(), [Bomb()], 10**5000], ids=["object", "in a list", "long integer"])
def test_refused_parameter_is_never_asked_for_its_text(value: Any) -> None:
    with pytest.raises(QueryError, match="expected plain JSON types"):
        check_parameter(value, "$value")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "it's \"\\` $x",
        "\U0001f525",
        0,
        -(2**63),
        2**63 - 1,
        0.5,
        True,
        False,
        None,
        [],
        [1, "a", None],
        {},
        {"a": [{"b": 1}]},
    ],
)
def test_accepted_parameter(store: FalkorDBGraphStore, value: Any) -> None:
    assert store.cypher("RETURN $value AS value", {"value": value}) == (["value"], [[value]])


# Cypher


def test_cypher(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_object("Memory", {"label": "A"}, id="a")
    graph.add_relation("a", "b", "MENTIONS", {"w": 1}, id="r")
    names, rows = store.cypher("MATCH p = (n:Memory)-[x]->(m) RETURN n.label, x, [n.id, {k: m.id}] AS both, p")
    assert names == ["n.label", "x", "both", "p"]
    [[label, edge, both, path]] = rows
    assert (label, both) == ("A", ["a", {"k": "b"}])
    assert (edge["type"], edge["id"], json.loads(edge["data"])) == ("MENTIONS", "r", {"w": 1})
    assert [node["id"] for node in path["nodes"]] == ["a", "b"]
    assert [edge["id"] for edge in path["edges"]] == ["r"]
    assert store.cypher("MATCH (n:Nobody) RETURN n.id") == (["n.id"], [])


@pytest.mark.parametrize(
    "query",
    ["CREATE (:Memory)", "MATCH (n) DETACH DELETE n", "MATCH (n) SET n.x = 1", "this is no Cypher", "RETURN", ""],
)
def test_cypher_reads_only(graph: Graph, store: FalkorDBGraphStore, query: str) -> None:
    graph.add_object("Memory", id="a")
    with pytest.raises(QueryError, match="FalkorDB refused the query: "):
        store.cypher(query)
    assert [row.id for row in graph.objects()] == ["a"]


def test_cypher_gives_up_in_time(store: FalkorDBGraphStore) -> None:
    slow = "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 3000) AS c RETURN count(*)"
    with pytest.raises(QueryError, match=r"FalkorDB refused the query: .*timed out"):
        store.cypher(slow, timeout_ms=50)
