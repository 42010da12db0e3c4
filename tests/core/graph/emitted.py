"""Events made by hand, and what a graph holds after them."""

from typing import Any

from contextmesh.core import projection
from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.model import Patch

VERSIONS = {"expected_version": None, "current_version": 1}


def types(graph: Graph) -> list[str]:
    return [event.type for event in graph.events]


def state(graph: Graph) -> Any:
    """Everything that the graph holds, patches included."""
    patches = {
        event.payload["patch"]["id"]
        for event in graph.events
        if event.type.startswith("patch.") and "patch" in event.payload
    }
    return graph.objects(), graph.relations(), graph.get_patches(patches)


def replayed(graph: Graph) -> Any:
    """The same, from a replay of the log into a fresh store."""
    store = InMemoryGraphStore()
    projection.catch_up(graph._log, store)
    return state(Graph(graph._log, store))


def prepare(graph: Graph) -> Graph:
    """Write the objects a and b, the relation r between them, and the proposed patch p on a: four events."""
    graph.add_object("Memory", {"n": 1}, id="a")
    graph.add_object("Entity", {}, id="b")
    graph.add_relation("a", "b", "MENTIONS", id="r")
    graph.propose_patch("a", {"n": 2}, id="p")
    return graph


def by_hand(kind: str, **payload: Any) -> Event:
    return Event(type=kind, payload=payload)


def row(**changes: Any) -> dict[str, Any]:
    return {"id": "a", "type": "Memory", "data": {}, "version": 1, "provenance": {}} | changes


def edge(**changes: Any) -> dict[str, Any]:
    return {"id": "r", "source": "a", "target": "b", "type": "MENTIONS", "data": {}, "provenance": {}} | changes


def proposal(**changes: Any) -> dict[str, Any]:
    return Patch(id="p", target="a", op="update").to_dict() | changes


def applied(**changes: Any) -> Event:
    payload = {"patch": proposal(status="applied"), "target": "a", "diff": {}, "object": row(version=2)} | changes
    return by_hand("patch.applied", **payload)
