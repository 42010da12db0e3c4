"""Question -> ranked evidence, each item with its reasons; and the paths that connect it.

Everything here reads; nothing writes. The same graph and question give the same answer on every store.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextmesh.core.model import Object, Relation
from contextmesh.core.reader import Reader
from contextmesh.core.terms import terms
from contextmesh.errors import NotFoundError, UsageError
from contextmesh.investigation.vocabulary import EVIDENCE_KINDS, HISTORY, STOP_WORDS, Vocabulary

WEAK_SEED = 0.2  # of the best score; what matches less than that matched by a common word
MAX_CANDIDATE_TERMS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A fact that the question's words found.

    Args:
        score: sum of the matched terms' weights; a term weighs more the rarer it is.
        terms: the question's words that matched.
    """

    id: str
    score: float
    terms: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the seed as plain data."""
        return {"id": self.id, "score": self.score, "terms": list(self.terms)}


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """What a question found.

    Args:
        seeds: at most 12 facts that its words found, best first.
        context: ids of at most 20 facts: the seeds, then what they are related to, nearest first.
        relations: ids of the semantic relations among the context, sorted.
        paths: at most 80 paths inside the context, of up to 3 relations.
        notes: what the reader should know about words that select nothing.
        unknown: words of the question that no fact holds.
    """

    seeds: tuple[Seed, ...]
    context: tuple[str, ...]
    relations: tuple[str, ...]
    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def retrieve(question: str, reader: Reader, vocabulary: Vocabulary) -> Retrieval:
    """Find the evidence for a question, within the vocabulary's bounds."""
    bounds = vocabulary.bounds
    weighed = weigh(question, reader, vocabulary)
    seeds = _seeds(weighed, reader, min(bounds.seeds, bounds.context))
    context = _context({seed.id: seed.score for seed in seeds}, reader, vocabulary)
    relations = reader.relations(source=context, target=context, type=vocabulary.semantic) if context else []
    paths = inner_paths([seed.id for seed in seeds], relations, bounds.hops, bounds.paths)
    return Retrieval(
        seeds=tuple(seeds),
        context=tuple(context),
        relations=tuple(row.id for row in relations),
        paths=tuple(paths),
        notes=weighed.notes,
        unknown=weighed.unknown,
    )


def check_question(question: object, vocabulary: Vocabulary) -> str:
    """Return a question, half surrogate pairs replaced; or refuse an empty or overlong one."""
    limit = vocabulary.bounds.question
    if not isinstance(question, str):
        msg = f"the question is a {type(question).__name__}; expected text"
        raise UsageError(msg)
    question = question.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if not question.strip():
        msg = "the question is empty; ask something, such as 'which change came before the errors?'"
        raise UsageError(msg)
    if len(question) > limit:
        msg = f"the question has {len(question):,} characters; at most {limit:,} are taken, so save the rest as a note"
        raise UsageError(msg)
    return question


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A question's terms against what the facts hold.

    Args:
        weights: term -> weight, of those that select.
        words: term -> the question's word that it came from, in the question's order.
        notes: what the reader should know about words that select nothing.
        unknown: words that no fact holds; of an identifier, its parts count and not the whole.
    """

    weights: Mapping[str, float]
    words: Mapping[str, str]
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def weigh(question: str, reader: Reader, vocabulary: Vocabulary) -> Weighed:
    """Weigh the terms of a question.

    A term's weight is its inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)) for n of N facts
    (Robertson and Spärck Jones). Of more than 12 known terms the rarest are kept.
    """
    bounds = vocabulary.bounds
    words = {term: word for term, word in terms(question).items() if word.casefold() not in STOP_WORDS}
    words = dict(list(words.items())[:MAX_CANDIDATE_TERMS])
    if not words:
        return Weighed(weights={}, words=words)
    total, counts = reader.count_terms(words.keys(), EVIDENCE_KINDS, HISTORY)
    common = {term for term, n in counts.items() if total >= bounds.common_from and n > bounds.common * total}
    rare = sorted((n, at, term) for at, term in enumerate(words) if (n := counts.get(term, 0)) and term not in common)
    weights = {term: round(math.log(1 + (total - n + 0.5) / (n + 0.5)), 6) for n, _, term in rare[: bounds.terms]}
    parts = [term for term, word in words.items() if "_" not in term or word == term]
    return Weighed(
        weights=weights,
        words=words,
        notes=tuple(
            f"'{words[key]}' is in nearly every fact, so it selects nothing." for key in words if key in common
        ),
        unknown=tuple(dict.fromkeys(words[term] for term in parts if term not in counts)),
    )


def _seeds(weighed: Weighed, reader: Reader, limit: int) -> list[Seed]:
    hits = reader.search(weighed.weights, EVIDENCE_KINDS, HISTORY, limit) if weighed.weights else []
    return [
        Seed(id=hit.id, score=hit.score, terms=tuple(word for term, word in weighed.words.items() if term in hit.terms))
        for hit in hits
        if hit.score >= WEAK_SEED * hits[0].score
    ]


def _context(seeds: Mapping[str, float], reader: Reader, vocabulary: Vocabulary) -> list[str]:
    """Return the seeds and what they are related to, hop by hop.

    Each hop may fill half of the room that is left, so that a busy first hop leaves some for the second;
    what is still free in the end goes to the best of those left out.
    """
    bounds = vocabulary.bounds
    chosen = dict(seeds)
    passed: list[tuple[Any, ...]] = []
    frontier: Collection[str] = seeds
    for hop in range(1, bounds.hops + 1):
        room = bounds.context - len(chosen)
        if room <= 0 or not frontier:
            break
        ranked = _neighbours(frontier, chosen, reader, vocabulary, hop)
        taken = ranked[: (room + 1) // 2 if hop < bounds.hops else room]
        passed += ranked[len(taken) :]
        chosen |= {key: -score for _, _, score, key in taken}
        frontier = [row[-1] for row in taken]
    for *_, score, key in sorted(passed):
        if len(chosen) < bounds.context:
            chosen.setdefault(key, -score)
    return list(chosen)


def _neighbours(
    frontier: Collection[str],
    chosen: Mapping[str, float],
    reader: Reader,
    vocabulary: Vocabulary,
    hop: int,
) -> list[tuple[int, int, float, str]]:
    """Return the facts one relation away as (hop, rank of the relation, -score, id), best first."""
    rank = {name: at for at, name in enumerate(vocabulary.semantic)}
    best: dict[str, tuple[int, int, float, str]] = {}
    limit = vocabulary.bounds.neighbours
    for row in reader.expand(frontier, vocabulary.semantic, EVIDENCE_KINDS, HISTORY, limit):
        for near, far in ((row.source, row.target), (row.target, row.source)):
            if near in frontier and far not in chosen:
                entry = (hop, rank[row.type], -round(chosen[near] / 2, 6), far)
                best[far] = min(entry, best.get(far, entry))
    return sorted(best.values())


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
    return [_oriented(path, relations) for path in _share(levels, limit)]


def _oriented(path: Path, relations: Sequence[Relation]) -> Path:
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


def reasons(
    context: Sequence[str],
    seeds: Mapping[str, Mapping[str, Any]],
    relations: Mapping[str, Relation],
    labels: Mapping[str, str],
) -> dict[str, str]:
    """Say for each fact of a context why it is there: the words it matched, or how it is connected to one that did."""
    why = {
        key: f"matches {', '.join(repr(word) for word in seed['terms'])} (score {seed['score']:.2f})"
        for key, seed in seeds.items()
    }
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


def shown(row: Object) -> str:
    """Return the name to show for an object."""
    label = row.data.get("label")
    return label if isinstance(label, str) and label else row.id


def needed(row: Object | None, object_id: str, place: str) -> Object:
    """Return the object, or say that there is none."""
    if row is None:
        msg = f"no object {object_id!r} in {place}; ws.table('Entity') lists what is there"
        raise NotFoundError(msg)
    return row
