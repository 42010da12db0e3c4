"""What a behaviour sees."""

from collections.abc import Callable
from typing import Any

import pytest

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.reader import Reader
from contextmesh.core.runtime import MAX_VIEWS, Context, Runtime, behavior
from contextmesh.errors import ConcurrentWriterError
from tests.core.branching import types
from tests.core.runtime.greeting import nothing


def seen(view: dict[str, Any], graph: Graph, trigger: Event | None = None) -> Any:
    """Return the view that a behaviour of this declaration gets."""
    views = []

    @behavior(name="looker", on=["looked"], view=view)
    def look(event: Event, graph: Graph, ctx: Context) -> None:
        views.append(ctx.view)

    graph.emit(trigger or Event(type="looked", payload={}))
    Runtime(graph, [look]).step()
    return views[0]


@pytest.fixture
def chain(graph: Graph) -> Graph:
    """Four objects in a row, a -> b -> c -> d, of the kinds Odd and Even."""
    for key, kind in zip("abcd", ["Odd", "Even", "Odd", "Even"], strict=True):
        graph.add_object(kind, {"size": ord(key) - 96}, id=key)
    for near, far in zip("abc", "bcd", strict=True):
        graph.add_relation(near, far, "NEXT", id=f"{near}{far}")
    return graph


def test_a_view_without_a_declaration_is_empty(chain: Graph) -> None:
    view = seen({}, chain)
    assert (view.objects(), view.relations(), view.events(), view.hits, view.paths) == ([], [], [], None, None)
    assert view.position == 8


def test_include_types_shows_these_kinds_and_the_relations_among_them(chain: Graph) -> None:
    chain.add_relation("a", "c", "SKIPS", id="ac")
    view = seen({"include_types": ["Odd"]}, chain)
    assert [row.id for row in view.objects()] == ["a", "c"]
    assert [row.id for row in view.relations()] == ["ac"]
    both = seen({"include_types": ["Odd", "Even"]}, chain)
    assert [row.id for row in both.objects()] == ["a", "b", "c", "d"]
    assert [row.id for row in both.relations()] == ["ab", "ac", "bc", "cd"]


@pytest.mark.parametrize(
    ("declared", "objects", "relations"),
    [
        ({"depth": 0}, ["b"], []),
        ({}, ["a", "b", "c"], ["ab", "bc"]),
        ({"depth": 2}, ["a", "b", "c", "d"], ["ab", "bc", "cd"]),
        ({"depth": 2, "include_types": ["Even"]}, ["b", "d"], []),
    ],
)
def test_around_shows_what_lies_near_the_payloads_object(
    chain: Graph, declared: dict[str, Any], objects: list[str], relations: list[str]
) -> None:
    trigger = Event(type="looked", payload={"at": {"id": "b"}})
    view = seen({"around": "at.id", **declared}, chain, trigger)
    assert [row.id for row in view.objects()] == objects
    assert [row.id for row in view.relations()] == relations


def test_around_takes_a_list_of_ids_and_none(chain: Graph) -> None:
    several = Event(type="looked", payload={"at": ["d", "a"]})
    assert [row.id for row in seen({"around": "at", "depth": 0}, chain, several).objects()] == ["a", "d"]
    assert seen({"around": "at"}, chain, Event(type="looked", payload={})).objects() == []


def test_recent_events_are_the_last_ones_oldest_first(chain: Graph) -> None:
    events = list(chain.events)
    view = seen({"recent_events": 3}, chain)
    assert [event.id for event in view.events()][:2] == [event.id for event in events[-2:]]
    assert types(view.events())[-1] == "looked"
    assert len(seen({"recent_events": 100}, chain).events()) == 11  # 7 of the chain, 3 of the first look, and its own


def test_search_and_paths_are_called_with_trigger_and_reader(chain: Graph) -> None:
    def search(event: Event, reader: Reader) -> list[str]:
        assert not isinstance(reader, Graph)
        return [row.id for row in reader.objects(where={"size": {">=": event.payload["least"]}})]

    def paths(event: Event, reader: Reader) -> int:
        return len(reader.relations(source="a"))

    view = seen({"search": search, "paths": paths}, chain, Event(type="looked", payload={"least": 3}))
    assert view.hits == ["c", "d"]
    assert view.paths == 1


def test_a_views_objects_can_be_filtered_as_a_graphs(chain: Graph) -> None:
    view = seen({"include_types": ["Odd", "Even"]}, chain)
    for where in ({"size": {">": 1}}, {"size": 2}, {"size": None}, {"size": {"in": [1, 4]}}):
        assert [row.id for row in view.objects(where=where)] == [row.id for row in chain.objects(where=where)]
    assert [row.id for row in view.objects("Even", {"size": {"<": 4}})] == ["b"]
    assert [row.id for row in view.relations("NEXT")] == ["ab", "bc", "cd"]
    assert view.relations("OTHER") == []


def test_a_view_shows_the_moment_before_its_step_wrote_anything(graph: Graph) -> None:
    graph.add_object("Guest", id="ada")
    counted = []

    @behavior(name="writer", on=["object.created"], where={"object.type": "Guest"}, view={"include_types": ["Note"]})
    def write(event: Event, graph: Graph, ctx: Context) -> None:
        graph.add_object("Note", id="n1", **ctx.cause)
        counted.append((len(ctx.view.objects()), len(graph.objects("Note"))))

    step = Runtime(graph, [write]).step()
    assert counted == [(0, 1)]
    graph.add_object("Note", id="n2")
    assert step is not None
    assert step.view.objects() == []


def test_editing_a_view_changes_neither_it_nor_the_graph(chain: Graph) -> None:
    view = seen({"include_types": ["Odd", "Even"], "recent_events": 1}, chain)
    view.objects()[0].data["size"] = 99
    view.relations()[0].data["edited"] = True
    view.events()[0].payload["edited"] = True
    assert view.objects()[0].data == {"size": 1}
    assert view.relations()[0].data == {}
    assert "edited" not in view.events()[0].payload
    assert chain.get_object("a").data == {"size": 1}
    assert not hasattr(view, "add_object")
    with pytest.raises(AttributeError, match="cannot assign to field 'position'"):
        view.position = 0


def test_a_view_is_built_again_when_the_graph_moves(opened: Callable[[], Graph]) -> None:
    graph, elsewhere = opened(), opened()
    graph.emit(Event(type="looked", payload={}))
    calls = []

    def search(event: Event, reader: Reader) -> int:
        if len(calls) < MAX_VIEWS - 1:
            elsewhere.add_object("Table", id=f"t{len(calls)}")
        calls.append(None)
        return len(reader.objects("Table"))

    looker = behavior(name="looker", on=["looked"], view={"search": search})(nothing)
    step = Runtime(graph, [looker]).step()
    assert step is not None
    assert len(calls) == 5
    assert step.view.hits == 4
    assert step.view.position == 5


def test_a_view_that_never_rests_is_given_up(opened: Callable[[], Graph]) -> None:
    graph, elsewhere = opened(), opened()
    graph.emit(Event(type="looked", payload={}))

    def search(event: Event, reader: Reader) -> None:
        elsewhere.add_object("Table")

    looker = behavior(name="looker", on=["looked"], view={"search": search})(nothing)
    with pytest.raises(ConcurrentWriterError, match="other writers moved the graph 5 times while a view was built"):
        Runtime(graph, [looker]).step()
    assert types(graph.events)[-1] == "behavior.failed"
