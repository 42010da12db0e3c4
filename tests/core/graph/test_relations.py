"""Relations: adding and removing them, dangling ends, what is refused."""

from typing import Any

import pytest

from contextmesh.core.graph import Graph
from contextmesh.core.model import Relation
from contextmesh.errors import (
    AlreadyExistsError,
    InvalidNameError,
    NonSerializableEventError,
    NotFoundError,
    ReservedFieldError,
)


def test_add_relation(graph: Graph) -> None:
    row = graph.add_relation("a", "b", "AFFECTS", {"n": (1,)}, id="r", actor="maya", evidence=["e"])
    provenance = {"created_by": "evt_001", "updated_by": "evt_001", "actor": "maya", "evidence": ["e"]}
    assert row == Relation(id="r", source="a", target="b", type="AFFECTS", data={"n": [1]}, provenance=provenance)
    assert graph.get_relation("r") == row
    assert graph.get_relation("s") is None
    assert graph.events[0].payload == {"relation": row.to_dict(), "id": "r", "source": "a", "target": "b"}


def test_relations_may_dangle(graph: Graph) -> None:
    graph.add_relation("a", "b", "AFFECTS", id="r")
    assert (graph.objects(), graph.get_object("a")) == ([], None)
    assert [row.id for row in graph.relations("a")] == ["r"]
    graph.add_object("Memory", id="b")
    assert graph.neighborhood("b", 1) == ([graph.get_object("b")], graph.relations())
    graph.remove_object("b")
    assert graph.relations() == []


def test_duplicate_relation(graph: Graph) -> None:
    graph.add_relation("a", "b", "AFFECTS", id="r")
    with pytest.raises(AlreadyExistsError, match="the graph holds a relation 'r' already; remove it first"):
        graph.add_relation("c", "d", "MENTIONS", id="r")
    assert len(graph.events) == 1


@pytest.mark.parametrize(
    ("source", "target", "type_", "data", "error", "says"),
    [
        ("", "b", "T", {}, InvalidNameError, "is no id"),
        ("a", "b c", "T", {}, InvalidNameError, "is no id"),
        ("a", "b", "T`]->() DELETE a //", {}, InvalidNameError, "is no type"),
        ("a", "b", "T", {"provenance": 1}, ReservedFieldError, "provenance"),
        ("a", "b", "T", {"x": b""}, NonSerializableEventError, r"payload\.relation\.data\.x is a bytes"),
    ],
)
def test_refused_relation(  # noqa: PLR0917 - its parameters
    graph: Graph, source: str, target: str, type_: str, data: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        graph.add_relation(source, target, type_, data)
    assert (len(graph.events), graph.relations()) == (0, [])


def test_remove_relation(graph: Graph) -> None:
    graph.add_relation("a", "b", "AFFECTS", id="r")
    graph.remove_relation("r")
    assert graph.relations() == []
    assert graph.events[-1].payload == {"id": "r", "source": "a", "target": "b", "type": "AFFECTS"}
    with pytest.raises(NotFoundError, match=r"no relation 'r' in the graph; `graph.relations..` lists what is there"):
        graph.remove_relation("r")
