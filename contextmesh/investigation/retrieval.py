"""Question -> ranked evidence, each item with its reasons; and the paths that connect it.

Everything here reads; nothing writes. The same graph and question give the same answer on every store.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from types import MappingProxyType
from typing import Any, Literal

from contextmesh.core.model import Object, Relation
from contextmesh.core.reader import Reader
from contextmesh.errors import NotFoundError, UsageError
from contextmesh.investigation.ranking import WEAK, Ranked, Similar, Weighed, rank, weigh
from contextmesh.investigation.vocabulary import EVIDENCE_KINDS, HISTORY, Vocabulary

Mode = Literal["full", "words", "terms"]
MODES: tuple[Mode, ...] = ("full", "words", "terms")
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
MAX_NAMED = 3  # things that a question names, between which paths are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """A fact that the question found.

    Args:
        score: what it is ranked by; a term weighs more the rarer it is.
        terms: the question's words that matched.
        parts: what the score is the sum of; see `ranking.WEIGHTS`. Empty where only the terms count.
        beside: the note of its session whose score it shares most of.
    """

    id: str
    score: float
    terms: tuple[str, ...]
    parts: Mapping[str, float] = field(default_factory=dict)
    beside: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the seed as plain data."""
        plain = {"id": self.id, "score": self.score, "terms": list(self.terms), "parts": dict(self.parts)}
        return plain | ({"beside": self.beside} if self.beside else {})


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
        also: the next best, which fill the places that no related fact took.
        context: ids of at most 20 facts: the seeds, what lies between the things that the question names, what is
            related, nearest first, then the next best.
        relations: ids of the semantic relations among the context, sorted.
        paths: at most 80 paths inside the context, of up to 3 relations; first those between `named`.
        notes: what the reader should know about words that select nothing.
        unknown: words of the question that no fact holds.
        named: ids of the entities that the question names, if they are several; at most 3.
    """

    seeds: tuple[Seed, ...]
    context: tuple[str, ...]
    relations: tuple[str, ...]
    paths: tuple[Path, ...]
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    also: tuple[Seed, ...] = ()
    named: tuple[str, ...] = ()


def retrieve(
    question: str,
    reader: Reader,
    vocabulary: Vocabulary,
    *,
    mode: Mode = "full",
    similar: Similar | None = None,
) -> Retrieval:
    """Find the evidence for a question, within the vocabulary's bounds.

    Args:
        question: what was asked.
        reader: the graph to look in.
        vocabulary: whose kinds, relations and bounds count.
        mode: `full` ranks by words, names, sessions, participants and times; `words` by BM25 alone; `terms` by how
            many and how rare the matched terms are, as the first retriever did.
        similar: what finds facts that are close in meaning; not for the mode `terms`.
    """
    bounds = vocabulary.bounds
    weighed, ranked, named = _ranked(question, reader, vocabulary, check_mode(mode), similar)
    seeds = ranked[: min(bounds.seeds, bounds.context)]
    between = _between(named, reader, vocabulary)
    context = _context(seeds, between, reader, vocabulary)
    also = [row for row in ranked[len(seeds) :] if row.id not in context][: bounds.context - len(context)]
    context += [row.id for row in also]
    relations = reader.relations(source=context, target=context, type=vocabulary.semantic) if context else []
    inside = [path for path in between if set(path.nodes) <= set(context)]
    first = [_oriented(path, relations) for path in inside]
    taken = {frozenset(path.relations) for path in first}
    others = inner_paths([row.id for row in seeds + also], relations, bounds.hops, bounds.paths)
    paths = [*first, *(path for path in others if frozenset(path.relations) not in taken)]
    return Retrieval(
        seeds=tuple(seeds),
        also=tuple(also),
        context=tuple(context),
        relations=tuple(row.id for row in relations),
        paths=tuple(paths[: bounds.paths]),
        notes=weighed.notes,
        unknown=weighed.unknown,
        named=named,
    )


def ranking(
    question: str,
    reader: Reader,
    vocabulary: Vocabulary,
    *,
    mode: Mode = "full",
    similar: Similar | None = None,
    limit: int = 0,
) -> list[Seed]:
    """Return all that a question finds, best first, weak matches too, without what is only related.

    Args:
        question: as of `retrieve`.
        reader: as of `retrieve`.
        vocabulary: as of `retrieve`.
        mode: as of `retrieve`.
        similar: as of `retrieve`.
        limit: facts to look at, if more than the vocabulary's `candidates`.
    """
    if check_mode(mode) == "terms":
        most = max(limit, vocabulary.bounds.candidates)
        return _by_terms(weigh(question, reader, vocabulary), reader, most, weak=0)
    structure = mode == "full"
    found = rank(question, reader, vocabulary, structure=structure, similar=similar, limit=limit)
    return [_seed(row) for row in found.rows]


def check_mode(mode: object) -> Mode:
    """Return a mode of retrieval, or refuse it."""
    for known in MODES:
        if mode == known:
            return known
    msg = f"the mode is {mode!r}; expected one of {', '.join(map(repr, MODES))}"
    raise UsageError(msg)


def _ranked(
    question: str, reader: Reader, vocabulary: Vocabulary, mode: Mode, similar: Similar | None
) -> tuple[Weighed, list[Seed], tuple[str, ...]]:
    """Return the question's weighed terms, the best facts, and the things that it names if they are several."""
    bounds = vocabulary.bounds
    if mode == "terms":
        weighed = weigh(question, reader, vocabulary)
        return weighed, _by_terms(weighed, reader, min(bounds.seeds, bounds.context)), ()
    structure = mode == "full"
    found = rank(question, reader, vocabulary, structure=structure, similar=similar)
    named = found.named[:MAX_NAMED] if len(found.named) > 1 else ()
    strong = [row for row in found.rows[: bounds.context] if row.score >= WEAK]
    return found.weighed, [_seed(row) for row in strong], named


def _seed(row: Ranked) -> Seed:
    return Seed(id=row.id, score=row.score, terms=tuple(row.terms), parts=row.parts, beside=row.beside)


def _between(named: Sequence[str], reader: Reader, vocabulary: Vocabulary) -> list[Path]:
    """Return the paths between the things that a question names, short ones first."""
    bounds = vocabulary.bounds
    pairs = combinations(named, 2) if bounds.hops else ()
    found = [
        path
        for source, target in pairs
        for path in paths_between(source, target, reader, vocabulary, hops=bounds.hops, limit=bounds.paths)
    ]
    unique = {frozenset(path.relations): path for path in reversed(found)}
    return sorted(unique.values(), key=lambda path: (len(path.relations), path.relations))[: bounds.paths]


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


def _by_terms(weighed: Weighed, reader: Reader, limit: int, weak: float = WEAK) -> list[Seed]:
    hits = reader.search(weighed.weights, EVIDENCE_KINDS, HISTORY, limit) if weighed.weights else []
    return [
        Seed(id=hit.id, score=hit.score, terms=tuple(word for term, word in weighed.words.items() if term in hit.terms))
        for hit in hits
        if hit.score >= weak * hits[0].score
    ]


def _context(seeds: Sequence[Seed], between: Sequence[Path], reader: Reader, vocabulary: Vocabulary) -> list[str]:
    """Return the seeds, what lies between the things named, and what they are related to, hop by hop.

    Each hop may fill half of the room that is left, so that a busy first hop leaves some for the second;
    what is still free in the end goes to the best of those left out.
    """
    bounds = vocabulary.bounds
    chosen = {seed.id: seed.score for seed in seeds}
    for path in between if seeds else ():
        fresh = [key for key in path.nodes if key not in chosen]
        if len(chosen) + len(fresh) <= bounds.context:
            chosen |= dict.fromkeys(fresh, seeds[0].score / 2)
    passed: list[tuple[Any, ...]] = []
    frontier: Collection[str] = list(chosen)
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
    """Return the facts one relation away as (hop, rank of the relation, -score, id), best first.

    A fact gets half the score of the one it was reached from, and less where that one is a hub: divided by the
    logarithm of how many it leads to.
    """
    order = {name: at for at, name in enumerate(vocabulary.semantic)}
    best: dict[str, tuple[int, int, float, str]] = {}
    limit = vocabulary.bounds.neighbours
    rows = reader.expand(frontier, vocabulary.semantic, EVIDENCE_KINDS, HISTORY, limit)
    degree = Counter(end for row in rows for end in {row.source, row.target})
    for row in rows:
        for near, far in ((row.source, row.target), (row.target, row.source)):
            if near in frontier and far not in chosen:
                score = chosen[near] / 2 / max(1.0, math.log2(degree[near]))
                entry = (hop, order[row.type], -round(score, 6), far)
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
    if beside and ("beside" in parts or "near" in parts):
        said["beside"] = f"beside '{labels.get(beside, beside)}' in its session"
    words = [f"matches {', '.join(repr(word) for word in seed['terms'])}"] if seed["terms"] else []
    return f"{'; '.join([*words, *said.values()])} (score {seed['score']:.2f})"


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
