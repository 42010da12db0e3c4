"""Graphs in which what a question finds is known, in few words."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from contextmesh.core.events import FrozenClock
from contextmesh.core.graph import Graph

START = datetime(2026, 1, 1, tzinfo=UTC)
NOON = FrozenClock(START)
SEMANTIC = {"MENTIONS", "RELATES_TO", "SUPPORTS", "DEPENDS_ON", "OWNED_BY", "AFFECTS", "RESOLVED_BY"}
FACTS = {"Memory", "Evidence", "Entity"}
WORDS = ["pump", "valve", "motor", "seal", "rotor", "shaft", "gasket", "bearing"]
WORDS += ["flange", "nozzle", "piston", "crank", "gear", "belt", "clutch", "brake"]


def memory(facts: Sequence[tuple[str, str, dict[str, Any]]], links: Sequence[tuple[str, str, str]] = ()) -> Graph:
    """Return an in-memory graph of (kind, id, data) and (source, type, target)."""
    graph = Graph(clock=NOON)
    fill(graph, facts, links)
    return graph


def fill(graph: Graph, facts: Sequence[tuple[str, str, dict[str, Any]]], links: Sequence[tuple[str, str, str]]) -> None:
    for kind, key, data in facts:
        graph.add_object(kind, data, id=key)
    for source, type_, target in links:
        graph.add_relation(source, target, type_, id=f"{source}>{type_}>{target}")


def texts(**found: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [("Evidence", key, {"label": key, "text": text}) for key, text in found.items()]
