"""Reasons: why a fact is in the evidence, in words."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from contextmesh.core.model import Relation
from contextmesh.investigation.paths import Path, describe

TOLD: Mapping[str, str] = MappingProxyType(
    {
        "name": "named in the question",
        "phrase": "holds what the question quotes",
        "similarity": "close in meaning",
        "session": "in a session that matches",
        "participant": "by whom the question names",
        "date": "of the time that the question names",
        "side": "on the side in time that the question asks for",
    },
)
SHARED = frozenset({"beside", "reply", "near"})  # `near` in runs of earlier versions


def reasons(
    context: Sequence[str],
    seeds: Mapping[str, Mapping[str, Any]],
    relations: Mapping[str, Relation],
    labels: Mapping[str, str],
) -> dict[str, str]:
    """Say for each fact of a context why it is there: the words it matched, or how it is connected to one that did."""
    why = {key: _why(seed, labels) for key, seed in seeds.items()}
    trails = {key: Path(nodes=(key,), relations=()) for key in context if key in seeds}
    frontier = list(trails)
    while frontier:
        reached = []
        for row in relations.values():
            for near, far in ((row.source, row.target), (row.target, row.source)):
                if near in frontier and far in context and far not in trails:
                    trail = trails[near]
                    trails[far] = Path(nodes=(*trail.nodes, far), relations=(*trail.relations, row.id))
                    reached.append(far)
        frontier = reached
    for key, trail in trails.items():
        why.setdefault(key, f"connected: {describe(trail, labels, relations)}")
    return {key: why.get(key, "selected with the others; its relations have gone since") for key in context}


def _why(seed: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    """Say how a question found a fact: by which words, and by what else."""
    parts = seed.get("parts") or {}
    beside = seed.get("beside")
    said = {name: text for name, text in TOLD.items() if parts.get(name)}
    if beside and not SHARED.isdisjoint(parts):
        said["beside"] = f"beside '{labels.get(beside, beside)}' in its session"
    words = [f"matches {', '.join(repr(word) for word in seed['terms'])}"] if seed["terms"] else []
    return f"{'; '.join([*words, *said.values()])} (score {seed['score']:.2f})"
