"""Paths: chains of facts, each related to the next; among chosen facts, and between two of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextmesh.core.model import Relation
from contextmesh.core.reader import Reader
from contextmesh.investigation.vocabulary import EVIDENCE_KINDS, Vocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A chain of facts, each connected to the next by a relation of either direction.

    It shows that they are connected, not that one caused the other.
    """

    nodes: tuple[str, ...]
    relations: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the path as plain data."""
        return {"nodes": list(self.nodes), "relations": list(self.relations)}


def inner_paths(starts: Sequence[str], relations: Sequence[Relation], hops: int, limit: int) -> list[Path]:
    """Return simple paths from the starts over these relations, short ones first.

    A path and its reverse count once. No length takes more than its share of the limit while others want it.
    """
    edges: dict[str, list[tuple[str, str]]] = {}
    for row in relations:
        edges.setdefault(row.source, []).append((row.id, row.target))
        edges.setdefault(row.target, []).append((row.id, row.source))
    seen: set[frozenset[str]] = set()
    levels: list[list[Path]] = []
    frontier = [Path(nodes=(start,), relations=()) for start in starts]
    for _ in range(hops):
        grown = [step for path in frontier for step in _grow(path, edges)][: limit * 4]
        fresh = []
        for path in grown:
            key = frozenset(path.relations)
            if key not in seen:
                seen.add(key)
                fresh.append(path)
        levels.append(fresh)
        frontier = grown
    return [oriented(path, relations) for path in _share(levels, limit)]


def oriented(path: Path, relations: Sequence[Relation]) -> Path:
    """Turn a path so that most of its relations read forwards."""
    sources = {row.id: row.source for row in relations}
    steps = list(zip(path.nodes, path.relations, strict=False))
    if 2 * sum(sources[key] == near for near, key in steps) >= len(steps):
        return path
    return Path(nodes=path.nodes[::-1], relations=path.relations[::-1])


def _grow(path: Path, edges: Mapping[str, Sequence[tuple[str, str]]]) -> list[Path]:
    return [
        Path(nodes=(*path.nodes, far), relations=(*path.relations, relation))
        for relation, far in sorted(edges.get(path.nodes[-1], ()))
        if far not in path.nodes
    ]


def _share(levels: Sequence[Sequence[Path]], limit: int) -> list[Path]:
    quota = -(-limit // max(len(levels), 1))
    kept = [list(level[:quota]) for level in levels]
    free = limit - sum(map(len, kept))
    for level, rows in zip(levels, kept, strict=True):
        extra = level[len(rows) : len(rows) + max(free, 0)]
        rows.extend(extra)
        free -= len(extra)
    return [path for rows in kept for path in rows][:limit]


def paths_between(
    source: str,
    target: str,
    reader: Reader,
    vocabulary: Vocabulary,
    *,
    hops: int,
    limit: int,
) -> list[Path]:
    """Return paths of up to `hops` semantic relations between two facts, shortest first, then by relation ids.

    The graph is visited hop by hop with an order and a limit, so a very busy fact may hide some of its paths.
    """
    near: dict[str, Relation] = {}
    frontier, seen = {source}, {source}
    for _ in range(hops):
        rows = reader.expand(frontier, vocabulary.semantic, EVIDENCE_KINDS, (), vocabulary.bounds.neighbours)
        near |= {row.id: row for row in rows}
        frontier = {end for row in rows for end in (row.source, row.target)} - seen
        seen |= frontier
        if not frontier:
            break
    direct = reader.relations(source=seen, target=target, type=vocabulary.semantic)
    direct += reader.relations(source=target, target=seen, type=vocabulary.semantic)
    near |= {row.id: row for row in direct if {row.source, row.target} <= seen | {target}}
    edges: dict[str, list[tuple[str, str]]] = {}
    for row in near.values():
        edges.setdefault(row.source, []).append((row.id, row.target))
        edges.setdefault(row.target, []).append((row.id, row.source))
    return _connecting(source, target, edges, hops, limit)


def _connecting(
    source: str,
    target: str,
    edges: Mapping[str, Sequence[tuple[str, str]]],
    hops: int,
    limit: int,
) -> list[Path]:
    """Enumerate simple paths, only through facts that are near enough to the target to reach it."""
    distance = {target: 0}
    frontier = [target]
    while frontier:
        reached = sorted({far for key in frontier for _, far in edges.get(key, ())} - distance.keys())
        distance |= dict.fromkeys(reached, distance[frontier[0]] + 1)
        frontier = reached
    found: list[Path] = []
    grown = [Path(nodes=(source,), relations=())]
    for left in range(hops - 1, -1, -1):
        grown = [step for path in grown for step in _grow(path, edges) if distance.get(step.nodes[-1], hops) <= left]
        found += sorted((path for path in grown if path.nodes[-1] == target), key=lambda path: path.relations)
        grown = [path for path in grown if path.nodes[-1] != target][: limit * 20]
        if len(found) >= limit:
            break
    return found[:limit]


def describe(path: Path, labels: Mapping[str, str], relations: Mapping[str, Relation]) -> str:
    """Write a path as text, arrows in the direction in which each relation is stored."""
    text = labels.get(path.nodes[0], path.nodes[0])
    for near, key, far in zip(path.nodes, path.relations, path.nodes[1:], strict=False):
        row = relations.get(key)
        name = row.type if row else key
        arrow = f" —{name}→ " if row is None or row.source == near else f" ←{name}— "
        text += arrow + labels.get(far, far)
    return text
