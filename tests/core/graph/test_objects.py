"""Objects: adding and removing them, minted and brought ids, what is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object
from contextmesh.errors import (
    AlreadyExistsError,
    InvalidEventError,
    InvalidNameError,
    NonSerializableEventError,
    NotFoundError,
    ReservedFieldError,
)
from tests.core.graph.emitted import types


def test_add_object(graph: Graph) -> None:
    row = graph.add_object(
        "Memory", {"tags": ("x",)}, id="a", actor="maya", caused_by="evt_000", frame_id="Run#1", evidence=["e1"]
    )
    provenance = {"created_by": "evt_001", "updated_by": "evt_001", "actor": "maya", "evidence": ["e1"]}
    assert row == Object(id="a", type="Memory", data={"tags": ["x"]}, version=1, provenance=provenance)
    assert graph.get_object("a") == row
    [event] = graph.events
    assert event == Event(
        id="evt_001",
        type="object.created",
        payload={"object": row.to_dict(), "id": "a"},
        actor="maya",
        caused_by="evt_000",
        frame_id="Run#1",
        timestamp="2026-01-01T00:00:00.000000Z",
    )


def test_ids_are_minted(graph: Graph) -> None:
    assert [graph.add_object("Memory").id, graph.add_object("Run").id, graph.add_object("Memory").id] == [
        "Memory#1",
        "Run#1",
        "Memory#2",
    ]
    assert [graph.add_relation("a", "b", "T").id, graph.add_relation("a", "b", "T").id] == ["rel_001", "rel_002"]
    assert [graph.propose_patch("a", {}).id, graph.patch_object("Memory#1", {}).id] == ["patch_001", "patch_002"]
    numbers = [int(event.id.removeprefix("evt_")) for event in graph.events]
    assert numbers[0] == 1
    assert len(set(numbers)) == len(numbers)


def test_ids_of_two_processes_never_meet(opened: Callable[..., Graph]) -> None:
    one, two = opened(), opened()
    for _ in range(5):
        one.add_object("Memory")
        two.add_object("Memory")
    ids = [event.id for event in one.events]
    assert len(set(ids)) == len(ids) == 10
    assert [row.id for row in one.objects()] == [row.id for row in two.objects()]
    assert len(one.objects()) == 10


def test_a_minted_id_steers_clear_of_brought_ones(graph: Graph) -> None:
    graph.add_object("Memory", id="Memory#1")
    assert graph.add_object("Memory").id != "Memory#1"


def test_a_minted_event_id_steers_clear_of_brought_ones(graph: Graph) -> None:
    with pytest.raises(InvalidEventError, match="ids such as 'evt_001' are the graph's to mint"):
        graph.emit(Event(id="evt_001", type="note.made", payload={}))
    assert graph.emit(Event(id="mine", type="note.made", payload={})).id == "mine"
    graph.add_object("Memory")
    assert [event.id for event in graph.events] == ["mine", "evt_001"]


def test_duplicate_object(graph: Graph) -> None:
    graph.add_object("Memory", {"n": 1}, id="a")
    with pytest.raises(AlreadyExistsError, match="the graph holds an object 'a' already; patch it, or choose another"):
        graph.add_object("Memory", {"n": 2}, id="a")
    assert (len(graph.events), graph.objects()[0].data) == (1, {"n": 1})


@pytest.mark.parametrize(
    ("type_", "data", "object_id", "error", "says"),
    [
        ("Node", {}, "a", InvalidNameError, "belongs to the storage"),
        ("a-b", {}, "a", InvalidNameError, "is no type"),
        ("`) DETACH DELETE n //", {}, "a", InvalidNameError, "is no type"),
        ("Memory", {}, "", InvalidNameError, "is no id"),
        ("Memory", {}, "a b", InvalidNameError, "is no id"),
        ("Memory", {}, 7, InvalidNameError, "is no id"),
        ("Memory", [], "a", InvalidEventError, "data is a list"),
        ("Memory", {"provenance": {}}, "a", ReservedFieldError, "holds the field 'provenance'"),
        ("Memory", {"x": object()}, "a", NonSerializableEventError, r"payload\.object\.data\.x is a object"),
        ("Memory", {"x": "y" * 4_210_688}, "a", InvalidEventError, "at most 4,210,688 fit"),
    ],
)
def test_refused_object(  # noqa: PLR0917 - its parameters
    graph: Graph, type_: Any, data: Any, object_id: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        graph.add_object(type_, data, id=object_id)
    assert (len(graph.events), graph.position, graph.objects()) == (0, 0, [])


def test_remove_object_takes_its_relations_along(graph: Graph) -> None:
    for key in "abc":
        graph.add_object("Memory", id=key)
    ends = [("a", "b"), ("b", "a"), ("a", "gone"), ("a", "a"), ("b", "c")]
    for source, target in ends:
        graph.add_relation(source, target, "MENTIONS")
    graph.remove_object("a", actor="maya")
    assert [row.id for row in graph.objects()] == ["b", "c"]
    assert [(row.source, row.target) for row in graph.relations()] == [("b", "c")]
    assert graph.events[-1].payload == {"id": "a", "type": "Memory"}
    assert types(graph)[-1] == "object.removed"  # one event
    with pytest.raises(NotFoundError, match=r"no object 'a' in the graph; `graph.objects..` lists what is there"):
        graph.remove_object("a")


def test_an_id_may_be_used_again(graph: Graph) -> None:
    graph.add_object("Memory", {"n": 1}, id="a")
    graph.patch_object("a", {"n": 2})
    graph.remove_object("a")
    row = graph.add_object("Entity", {"m": 1}, id="a")
    assert (row.version, graph.get_object("a"), graph.objects("Memory")) == (1, row, [])
