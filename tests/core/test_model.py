"""Objects, relations, patches, views, and what `where` means."""

from dataclasses import FrozenInstanceError
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextmesh.core.events import Event
from contextmesh.core.model import (
    ChainMatch,
    Object,
    ObjectQuery,
    ObjectQueryResult,
    Patch,
    Relation,
    View,
    lookup,
    matches,
    same,
)
from contextmesh.errors import InvalidNameError, UsageError

DATA = {
    "n": 2,
    "one": 1,
    "float": 1.5,
    "yes": True,
    "word": "beta",
    "empty": "",
    "none": None,
    "list": [1, "a"],
    "deep": {"er": {"est": 7}, "a.b": 1},
}


@pytest.mark.parametrize(
    ("where", "holds"),
    [
        (None, True),
        ({}, True),
        ({"n": 2}, True),
        ({"n": 2.0}, True),
        ({"n": 3}, False),
        ({"n": "2"}, False),
        ({"n": 2, "word": "beta"}, True),
        ({"n": 2, "word": "alpha"}, False),
        ({"one": True}, False),
        ({"yes": 1}, False),
        ({"yes": True}, True),
        ({"deep.er.est": 7}, True),
        ({"deep.er": {"==": {"est": 7}}}, True),
        ({"deep.er.est.more": None}, True),
        ({"word.x": None}, True),
        ({"list": [1, "a"]}, True),
        ({"list": (1, "a")}, True),
        ({"list": [True, "a"]}, False),
        ({"missing": None}, True),
        ({"none": None}, True),
        ({"empty": None}, False),
        ({"missing": ""}, False),
        ({"n": {">": 1}}, True),
        ({"n": {">": 2}}, False),
        ({"n": {">=": 2, "<": 3}}, True),
        ({"n": {">=": 2, "<": 2}}, False),
        ({"n": {"<=": 1.9}}, False),
        ({"word": {"<": "gamma", ">": "alpha"}}, True),
        ({"word": {">": 1}}, False),
        ({"n": {">": "1"}}, False),
        ({"yes": {">": False}}, False),
        ({"yes": {"<=": 1}}, False),
        ({"missing": {">": 0}}, False),
        ({"missing": {"<=": None}}, False),
        ({"list": {">": [0]}}, False),
        ({"n": {"!=": 3}}, True),
        ({"missing": {"!=": 3}}, True),
        ({"missing": {"!=": None}}, False),
        ({"one": {"!=": True}}, True),
        ({"n": {"in": [1, 2]}}, True),
        ({"n": {"in": []}}, False),
        ({"n": {"in": {2, 3}}}, True),
        ({"one": {"in": [True]}}, False),
        ({"missing": {"in": [None]}}, True),
        ({"n": {"not in": [1, 2]}}, False),
        ({"missing": {"not in": [1]}}, True),
        ({"n": {}}, True),
    ],
)
def test_where(where: Any, holds: bool) -> None:
    assert matches(DATA, where) is holds


@pytest.mark.parametrize("where", [{"n": {"=": 2}}, {"n": {"$gt": 2}}, {"n": {"like": "x"}}, {"missing": {"~": 1}}])
def test_unknown_operator(where: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"where has the operator '.*'; expected one of > < >= <= == != in 'not in'"):
        matches(DATA, where)


@pytest.mark.parametrize("operator", ["in", "not in"])
@pytest.mark.parametrize("operand", ["beta", 7, None])
def test_in_wants_a_list(operator: str, operand: Any) -> None:
    with pytest.raises(UsageError, match=f"'{operator}' got .*; expected a list of values"):
        matches(DATA, {"word": {operator: operand}})


def test_lookup() -> None:
    assert lookup(DATA, "deep.er.est") == 7
    assert lookup(DATA, "deep.er") == {"est": 7}
    assert lookup(DATA, "deep.a.b") is None  # a dot always steps down
    assert lookup([1], "0") is None


scalars = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, -1.0, "", "0", "1"])
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner)
)


def strict(value: Any) -> Any:
    """The value with its JSON family spelled out, so that Python's own equality is the right one."""
    if isinstance(value, dict):
        return {key: strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [strict(item) for item in value]
    return ("bool" if isinstance(value, bool) else "number" if isinstance(value, (int, float)) else "other", value)


@given(values, values)
def test_same_keeps_booleans_and_numbers_apart(left: Any, right: Any) -> None:
    assert same(left, right) is (strict(left) == strict(right))
    assert same(left, left)


def test_handles_are_frozen() -> None:
    for row in (
        Object(id="a", type="Memory", data={}),
        Relation(id="r", source="a", target="b", type="MENTIONS"),
        Patch(id="p", target="a", op="update"),
        View(position=0),
        Event(type="t", payload={}),
    ):
        with pytest.raises(
            (FrozenInstanceError, AttributeError), match=r"cannot assign to field 'position'|immutable type"
        ):
            setattr(row, "position" if isinstance(row, View) else "id", "z")


def test_to_dict() -> None:
    assert Object(id="a", type="Memory", data={"x": 1}).to_dict() == {
        "id": "a",
        "type": "Memory",
        "data": {"x": 1},
        "version": 1,
        "provenance": {},
    }
    assert Relation(id="r", source="a", target="b", type="T").to_dict() == {
        "id": "r",
        "source": "a",
        "target": "b",
        "type": "T",
        "data": {},
        "provenance": {},
    }
    assert Patch(id="p", target="a", op="update").to_dict() == {
        "id": "p",
        "target": "a",
        "op": "update",
        "updates": {},
        "status": "proposed",
        "type": None,
        "actor": "system",
        "rationale": None,
        "evidence": [],
        "expected_version": None,
        "llm_request_event_id": None,
        "tool_request_event_ids": [],
        "reason": None,
    }


def test_settled() -> None:
    patch = Patch(id="p", target="a", op="update", updates={"x": 1})
    settled = patch.settled("rejected", "because")
    assert (settled.status, settled.reason, settled.updates) == ("rejected", "because", {"x": 1})
    assert (patch.status, patch.reason) == ("proposed", None)


def test_view() -> None:
    view = View(
        position=3,
        object_rows=(
            Object(id="a", type="Entity", data={"n": [1]}),
            Object(id="b", type="Memory", data={"n": 2}),
            Object(id="c", type="Memory", data={}),
        ),
        relation_rows=(
            Relation(id="r", source="a", target="b", type="MENTIONS"),
            Relation(id="s", source="a", target="b", type="AFFECTS"),
        ),
        event_rows=(Event(id="evt_001", type="note.made", payload={"n": [1]}),),
    )
    assert [row.id for row in view.objects()] == ["a", "b", "c"]
    assert [row.id for row in view.objects("Memory")] == ["b", "c"]
    assert [row.id for row in view.objects("Memory", {"n": {">": 1}})] == ["b"]
    assert [row.id for row in view.objects(where={"n": None})] == ["c"]
    assert [row.id for row in view.relations()] == ["r", "s"]
    assert [row.id for row in view.relations("AFFECTS")] == ["s"]
    view.objects()[0].data["n"].append(2)
    view.events()[0].payload["n"].append(2)
    view.relations()[0].data["x"] = 1
    assert view.objects()[0].data == view.events()[0].payload == {"n": [1]}
    assert view.relations()[0].data == {}


# Queries


def test_a_query_keeps_a_plain_copy_of_its_conditions() -> None:
    condition = {"in": {3, 1}}
    plan = ObjectQuery(type="Task", where={"n": condition, "at": date(2026, 1, 2), "l": (1, (2,))})
    condition["in"] = set()
    assert plan.where == {"n": {"in": [1, 3]}, "at": "2026-01-02", "l": [1, [2]]}
    assert (ObjectQuery().where, ObjectQuery().type, ObjectQuery().limit, ObjectQuery().mode) == (
        {},
        None,
        None,
        "objects",
    )
    with pytest.raises(FrozenInstanceError, match="cannot assign"):
        plan.limit = 3  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        ObjectQuery("Task")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"limit": -1}, "limit is -1; expected a whole number from 0, or None for all"),
        ({"limit": True}, "limit is True"),
        ({"limit": 1.5}, "limit is 1.5"),
        ({"mode": "count"}, "mode is 'count'; expected one of objects, exists"),
        ({"where": [("n", 1)]}, "expected a mapping of dotted paths to values"),
        ({"where": {7: 1}}, "expected a mapping of dotted paths to values"),
        ({"where": {"n": {"~": 1}}}, "where has the operator '~'; expected one of > < >= <= == != in 'not in'"),
        ({"where": {"n": {"in": "abc"}}}, "'in' got 'abc'; expected a list of values"),
        ({"where": {"n": b"abc"}}, "where.n is a bytes, which JSON cannot carry"),
        ({"where": {"n": {">": float("inf")}}}, "where.n is inf, which JSON cannot carry"),
        ({"where": {"n": {"in": ["\ud800"]}}}, "where.n.0. holds half of a surrogate pair"),
    ],
)
def test_refused_query(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ObjectQuery(**fields)


@pytest.mark.parametrize("type_", ["a b", "", "Node", "n`"])
def test_a_query_for_a_type_that_nothing_has(type_: str) -> None:
    with pytest.raises(InvalidNameError, match=r"no type|belongs to the storage"):
        ObjectQuery(type=type_)


def test_candidates_are_held_against_the_residual() -> None:
    rows = tuple(Object(id=f"o{n}", type="Task", data={"n": n}) for n in range(4))
    assert ObjectQueryResult(objects=rows, residual={"n": {">": 1}}).matching() == [*rows[2:]]
    assert ObjectQueryResult(objects=rows).matching() == [*rows]
    assert (ObjectQueryResult().exists, ObjectQueryResult(exists=True).matching()) == (None, [])


def test_a_match_of_a_chain_is_frozen() -> None:
    match = ChainMatch(objects=(Object(id="a", type="Task", data={}),))
    assert match.relations == ()
    with pytest.raises(FrozenInstanceError, match="cannot assign"):
        match.objects = ()  # type: ignore[misc]
