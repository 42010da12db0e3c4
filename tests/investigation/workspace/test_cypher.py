"""Cypher: it reads, with plain parameters, and writes nothing."""

from datetime import UTC, date, datetime
from typing import Any

import pytest

from contextmesh.errors import QueryError
from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import whole


def test_cypher_reads_with_parameters(acme: Workspace) -> None:
    found = acme.cypher("MATCH (n:Entity {id: $key})-[r]->(m) RETURN n.label AS name, type(r), m.id ORDER BY m.id",
                        {"key": "redis-change"})  # fmt: skip
    assert list(found.columns) == ["name", "type(r)", "m.id"]
    assert found.to_numpy().tolist() == [
        ["Release 2.4", "AFFECTS", "checkout-api"],
        ["Release 2.4", "RELATES_TO", "session-ttl"],
    ]
    value = "'}) DETACH DELETE n // \" \\ ` 🔥"
    assert acme.cypher("RETURN $a AS a, $b AS b", {"a": value, "b": [1, None, {"x": 1.5}]}).to_numpy().tolist() == [
        [value, [1, None, {"x": 1.5}]]
    ]


@pytest.mark.parametrize(
    "query",
    [
        "CREATE (:Entity {id: 'evil'})",
        "MATCH (n) DETACH DELETE n",
        "MATCH (n) SET n.text = 'evil' RETURN n",
        "MERGE (:Evil)",
        "MATCH (n:Entity) REMOVE n.text",
        "CALL { CREATE (e:Evil) RETURN e } RETURN e",
        "UNWIND [1] AS x CALL { WITH x CREATE (:Evil {x: x}) RETURN count(*) AS n } RETURN n",
        "CALL db.idx.fulltext.drop('Node')",
        "CALL db.idx.fulltext.createNodeIndex('Evil', 'x')",
        "CREATE INDEX FOR (n:Evil) ON (n.id)",
        "DROP INDEX ON :Node(id)",
        "MATCH (n:Entity) FOREACH (x IN [n] | SET x.text = 'evil')",
    ],
)
def test_cypher_refuses_every_write(acme: Workspace, query: str) -> None:
    indexes = "CALL db.indexes() YIELD label, properties RETURN label, properties"
    before = whole(acme.graph), acme.cypher(indexes).to_dict()
    with pytest.raises(QueryError, match="FalkorDB refused the query: "):
        acme.cypher(query)
    assert (whole(acme.graph), acme.cypher(indexes).to_dict()) == before
    assert not acme.search("ttl").empty


class Sly(str):
    """A text that reads as Cypher of its own where a client pastes it."""

    __slots__ = ()

    def __str__(self) -> str:
        return "1 CREATE (:Evil)"


@pytest.mark.parametrize(
    "value",
    [object(), b"x", float("nan"), float("inf"), 2**63, {1: 2}, {"a b": 1}, (1, 2), {1}, Sly("x"), "\0", "\ud800",
     [[object()]], {"x": {"y": b""}}, date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)],
)  # fmt: skip
def test_cypher_refuses_a_parameter_that_is_not_plain(acme: Workspace, value: Any) -> None:
    with pytest.raises(QueryError, match=r"parameter \$value.* is .*; expected plain JSON types"):
        acme.cypher("RETURN $value", {"value": value})


@pytest.mark.parametrize(
    "name", ["x=1 CREATE (:Evil) RETURN 1 //", "a b", "x\ny", "é", "'", "🔥", "", "`", "\ud800", "1", 7]
)
def test_cypher_refuses_a_parameters_strange_name(acme: Workspace, name: Any) -> None:
    with pytest.raises(
        QueryError, match="is no parameter name; expected a letter, then letters, digits or underscores"
    ):
        acme.cypher("RETURN 1", {name: 1})


@pytest.mark.parametrize(
    "query", ["", "RETURN", "MATCH (n RETURN n", "RETURN $missing", "\0", "RETURN 1; RETURN 2", "🔥"]
)
def test_cyphers_errors_are_clear(acme: Workspace, query: str) -> None:
    with pytest.raises(QueryError, match=r"FalkorDB refused the query: .+"):
        acme.cypher(query)


def test_cypher_gives_up_in_time(acme: Workspace) -> None:
    with pytest.raises(QueryError, match="timed out"):
        acme.cypher("UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN count(a + b)", timeout_ms=20)
