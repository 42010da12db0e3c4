"""`where` in the database and in Python: the same answers, fewer rows that travel, and no name inside a query."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.core.model import ObjectQuery, matches
from contextmesh.core.projection import fold
from contextmesh.core.reader import Reader
from contextmesh.errors import InvalidNameError, UsageError
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from contextmesh.stores.where import pushdown
from contextmesh.testing import object_created, objects
from tests.conftest import Workspace
from tests.stores.conftest import Asked

NUMBERS = [
    *(0, -0.0, 1, 1.0, -1, 7, 7.5, 10**6, 1e6, 0.1 + 0.2, 0.3, 1e308, -1e308, 5e-324, 1.7976931348623157e308),
    *(2**53, 2**53 + 1, float(2**53), -(2**53) - 1, 2**62 + 1, -(2**62) - 1, 2**63 - 1, 2**63, float(2**63)),
    *(-(2**63), -(2**63) - 1, 10**30, 1e30, 10**400),
]
TEXTS = [
    *("", "a", "A", "ab", "true", "1", "it's", 'say "no"', "`back`", "\\", "\\u0000", "\0", "a\0", "a\0b", "\ufffd"),
    *("a\ufffd", "é", "e\u0301", "z", "ß", "\U0001f525", "\U0001f469\u200d\U0001f692", "\uffff", "\x7f", "\n"),
    *("\u2028", "2026-01-01T00:00:00Z", "שלום", "'}) DETACH DELETE n //"),
]
OTHERS: list[Any] = [None, True, False, [], [1], [1.0], {}, {"er": 1}, {"a b": None}]
VALUES = [*NUMBERS, *TEXTS, *OTHERS]
FEW = [None, True, 0, 7, 7.0, 2**63, "", "a", "a\0", 'say "no"', [1], {"er": 1}]
FIELDS = ["n", "label", "text", "a b", "deep.er"]
ODD = [
    *("id", "kind", "data", "version", "search", "", "n`", '"', "\0", "é"),
    *("deep.a b", "deep.", "deep.label", ".er", "n.er"),
]
PATHS = [*FIELDS, *ODD, "absent", "deep", "deep.absent", "deep.er.er", ".", "n.", "A" * 64, "A" * 65]


def placed(path: str, value: Any) -> dict[str, Any]:
    """Data in which a dotted path leads to a value."""
    name, dot, rest = path.partition(".")
    return {name: placed(rest, value) if dot else value}


DATA = [placed(path, value) for path in FIELDS for value in VALUES] + [placed(path, v) for path in ODD for v in FEW]


@pytest.fixture(scope="module")
def stores(server: Server, workspace: Workspace) -> Iterator[tuple[FalkorDBGraphStore, InMemoryGraphStore]]:
    """The same objects in FalkorDB and in memory: each value in each field, once."""
    with workspace() as name:
        stores = FalkorDBGraphStore(server, name), InMemoryGraphStore()
        changes = fold(object_created(n, f"o{n:04}", "Memory", data) for n, data in enumerate(DATA))
        for store in stores:
            assert store.apply(changes, expected=0, new=len(DATA))
        yield stores


values = (
    st.sampled_from(VALUES) | st.text(max_size=3) | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
conditions = (
    values.filter(lambda value: not isinstance(value, dict))
    | st.dictionaries(st.sampled_from([">", "<", ">=", "<=", "==", "!="]), values, min_size=1, max_size=2)
    | st.dictionaries(st.sampled_from(["in", "not in"]), st.lists(values, max_size=4), min_size=1, max_size=2)
)
wheres = st.dictionaries(st.sampled_from(PATHS) | st.text(max_size=3), conditions, min_size=1, max_size=2)


@given(wheres)
@settings(max_examples=150)
@example({"n": {"in": [*range(30), *TEXTS]}, "deep.er": {"not in": [None]}})
@example({"a b": {"in": [f"v{n}" for n in range(30)]}})
@example({"n": {"<=": -(10**400)}})
def test_pushed_down_is_what_it_is_in_python(
    stores: tuple[FalkorDBGraphStore, InMemoryGraphStore], where: dict[str, Any]
) -> None:
    expected = [f"o{n:04}" for n, data in enumerate(DATA) if matches(data, where)]
    for store in stores:
        reader = Reader(InMemoryEventStore(), store)
        assert [row.id for row in reader.objects("Memory", where)] == expected
        assert reader.exists(None, where) is bool(expected)
        result = store.query(ObjectQuery(where=where, limit=3))
        assert [row.id for row in result.matching()[:3]] == expected[:3]


@pytest.mark.parametrize("path", ["n", "label", "deep.er"])
@pytest.mark.parametrize("operator", [">", "<", ">=", "<=", "==", "in"])
def test_every_value_with_every_other(
    stores: tuple[FalkorDBGraphStore, InMemoryGraphStore], path: str, operator: str
) -> None:
    for value in VALUES:
        where = {path: {operator: [value, "a"] if operator == "in" else value}}
        expected = [f"o{n:04}" for n, data in enumerate(DATA) if matches(data, where)]
        assert [row.id for row in objects(stores[0], None, where)] == expected, where


@given(st.recursive(values, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner)))
def test_a_value_finds_itself(server: Server, value: Any) -> None:
    store = FalkorDBGraphStore(server, "found-by-value")
    head = store.head()
    for path in ("n", "a b", "label", "deep.er"):
        data = placed(path, value)
        assert store.apply(fold([object_created(1, "same", data=data)]), expected=head, new=(head := head + 1))
        for where in ({path: {"==": value}}, {path: {"in": ["absent", value]}}, {path: {"not in": ["absent"]}}):
            assert [row.data for row in objects(store, None, where)] == ([data] if matches(data, where) else [])


# What travels


@pytest.fixture(scope="module")
def hundred(server: Server, workspace: Workspace) -> Iterator[FalkorDBGraphStore]:
    """A hundred objects of two kinds."""
    with workspace() as name:
        graph = Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name))
        with graph.batch():
            for n in range(100):
                data = {
                    "n": n,
                    "s": f"s{n % 50}",
                    "even": n % 2 == 0,
                    "label": f"L{n}",
                    "deep": {"er": f"v{n}", "n": n},
                }
                extra = {"a b": n % 4 == 0} if n < 20 else {"rare": None if n < 22 else 2**63 + n}
                graph.add_object("Memory" if n < 50 else "Entity", data | extra, id=f"o{n:02}")
        store = graph._store
        assert isinstance(store, FalkorDBGraphStore)
        yield store


@pytest.mark.parametrize(
    ("where", "travel", "match", "left"),
    [
        ({}, 100, 100, {}),
        ({"n": 7}, 1, 1, {}),
        ({"n": 7.0}, 1, 1, {}),
        ({"n": 7.5}, 0, 0, {}),
        ({"n": True}, 0, 0, {}),
        ({"even": True}, 50, 50, {}),
        ({"s": "s7"}, 2, 2, {}),
        ({"s": "s7\0"}, 0, 0, {"s": {"==": "s7\0"}}),
        ({"s": {"in": ["s7", "s8", "s99"]}}, 4, 4, {}),
        ({"s": {"in": []}}, 0, 0, {}),
        ({"s": "s7", "even": False}, 2, 2, {}),
        ({"s": "s7", "n": {">": 50}}, 1, 1, {"n": {">": 50}}),
        ({"n": {">": 95}}, 5, 4, {"n": {">": 95}}),
        ({"n": {">": 95, "<=": 97}}, 3, 2, {"n": {">": 95, "<=": 97}}),
        ({"n": {"<": "a"}}, 0, 0, {"n": {"<": "a"}}),
        ({"n": {"<": None}}, 0, 0, {}),
        ({"s": {">=": "s8", "<": "s9"}}, 4, 2, {"s": {">=": "s8", "<": "s9"}}),
        ({"rare": {">": 5}}, 80, 78, {"rare": {">": 5}}),
        ({"rare": 2**63 + 50}, 80, 1, {"rare": {"==": 2**63 + 50}}),
        ({"rare": {"!=": None}}, 80, 78, {"rare": {"!=": None}}),
        ({"a b": True}, 5, 5, {"a b": {"==": True}}),
        ({"a b": {"not in": [None, True]}}, 20, 15, {"a b": {"not in": [None, True]}}),
        ({"a b": {"in": [True, *(f"v{n}" for n in range(30))]}}, 20, 5, None),  # too many to look for
        ({"label": "L7"}, 1, 1, {"label": {"==": "L7"}}),
        ({"label": {"in": ["L7", "L8"]}}, 2, 2, {"label": {"in": ["L7", "L8"]}}),
        ({"deep.er": "v7"}, 1, 1, {"deep.er": {"==": "v7"}}),
        ({"deep.er": {"in": ["v7", "v8"]}}, 2, 2, {"deep.er": {"in": ["v7", "v8"]}}),
        ({"deep.n": 5}, 11, 1, {"deep.n": {"==": 5}}),  # 5 and 50 to 59
        ({"deep.absent": {">": 1}}, 0, 0, {"deep.absent": {">": 1}}),
        ({"even": None}, 0, 0, {"even": {"==": None}}),
        ({"rare": None}, 100, 22, {"rare": {"==": None}}),
        ({"n": {"!=": 7}}, 100, 99, {"n": {"!=": 7}}),
    ],
)
def test_rows_that_travel(
    hundred: FalkorDBGraphStore, where: dict[str, Any], travel: int, match: int, left: dict[str, Any] | None
) -> None:
    result = hundred.query(ObjectQuery(where=where))
    assert (len(result.objects), len(result.matching())) == (travel, match)
    assert result.residual == (where if left is None else left)
    assert result.exists is None


def test_a_limit_travels_only_where_nothing_is_left(hundred: FalkorDBGraphStore, asked: Asked) -> None:
    queries = asked(hundred)
    result = hundred.query(ObjectQuery(type="Entity", where={"even": True}, limit=3))
    assert [row.id for row in result.objects] == ["o50", "o52", "o54"]
    assert queries.pop().endswith(" LIMIT 3")
    result = hundred.query(ObjectQuery(where={"n": {">": 95}}, limit=3))
    assert [row.id for row in result.objects] == ["o95", "o96", "o97", "o98", "o99"]
    assert "LIMIT" not in queries.pop()
    assert hundred.query(ObjectQuery(limit=0)).objects == ()
    assert len(hundred.query(ObjectQuery(limit=10**30)).objects) == 100


def test_whether_there_is_one_takes_no_rows(hundred: FalkorDBGraphStore, asked: Asked) -> None:
    queries = asked(hundred)
    reader = Reader(InMemoryEventStore(), hundred)
    assert reader.exists("Entity", {"even": True}) is True
    assert queries.pop().endswith("RETURN n.id LIMIT 1")
    assert (reader.exists("Memory", {"n": 70}), reader.exists("Task"), reader.exists()) == (False, False, True)
    assert (reader.exists(where={"n": {">": 98}}), reader.exists(where={"n": {">": 99}})) == (True, False)


# Names and values never become part of a query

PROPERTY = r"n\.(?:data|label|text|`[A-Za-z_][A-Za-z0-9_]{0,63}`)"
TEST = rf"(?:false|{PROPERTY} (?:IS NULL|(?:=|IN|>=|<=|CONTAINS) \$w[0-9]+))"
CONDITION = re.compile(rf"{TEST}|\({TEST}(?: (?:OR|AND) {TEST})+\)")
HOSTILE = [
    "n`",
    "n` IS NULL OR true //",
    "`",
    "n.`x`",
    "n\\",
    "n'}) DETACH DELETE n //",
    "$w0",
    "n\n",
    "1n",
    "é",
    "n OR 1",
]


@given(st.dictionaries(st.sampled_from([*HOSTILE, *PATHS]) | st.text(), conditions, max_size=3))
@settings(max_examples=200)
def test_a_condition_is_made_of_known_parts(where: dict[str, Any]) -> None:
    texts, parameters, residual = pushdown(ObjectQuery(where=where).where)
    assert all(CONDITION.fullmatch(text) for text in texts), texts
    assert sorted(parameters) == sorted({name[1:] for text in texts for name in re.findall(r"\$w[0-9]+", text)})
    assert residual.keys() <= where.keys()


@pytest.mark.parametrize("field", HOSTILE)
def test_a_hostile_name_is_a_name(graph: Graph, field: str) -> None:
    data = [{field: 1}, {field: "a"}, {"n": 1}]
    with graph.batch():
        for n, row in enumerate(data):
            graph.add_object("Memory", row, id=f"o{n}")
    for condition in (1, "a", None, {">": 0}, {"<": "b"}, {"in": [1, "a"]}, {"!=": None}, {"not in": [7]}):
        expected = [row for row in data if matches(row, {field: condition})]
        assert [row.data for row in graph.objects(where={field: condition})] == expected
    assert [row.data for row in graph.objects()] == data


@pytest.mark.parametrize(
    "where", [{"n": {"~": 1}}, {"n": {"in": "abc"}}, {"n": {"not in": 7}}, {7: 1}, [("n", 1)], {"n": float("nan")}]
)
def test_a_condition_that_says_nothing_is_refused_even_where_there_is_nothing(graph: Graph, where: Any) -> None:
    with pytest.raises(UsageError, match=r"where|'in'|'not in'"):
        graph.objects("Memory", where)
    with pytest.raises(UsageError, match=r"where|'in'|'not in'"):
        graph.exists("Memory", where)


def test_no_object_has_such_a_type(graph: Graph) -> None:
    for kind in ("a b", "Node", "", "`"):
        with pytest.raises(InvalidNameError, match=r"no type|belongs to the storage"):
            graph.exists(kind)
