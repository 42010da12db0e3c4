"""Question -> ranked evidence, each item with its reasons; and the paths that connect it.

Everything here reads; nothing writes. The same graph and question give the same answer on every store.
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from contextmesh.core.model import Object
from contextmesh.errors import NotFoundError, UsageError
from contextmesh.investigation.paths import Path, inner_paths, oriented, paths_between
from contextmesh.investigation.ranking import WEAK, Ranked, rank
from contextmesh.investigation.search import Search
from contextmesh.investigation.surroundings import spread
from contextmesh.investigation.vocabulary import EVIDENCE_KINDS, HISTORY, Bounds, Vocabulary
from contextmesh.investigation.weighing import Weighed, weigh

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
class Retrieval:
    """What a question found.

    Args:
        seeds: at most 12 facts that its words found, best first.
        also: the next best, spread over the sessions, which fill the places that no related fact took.
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


def retrieve(search: Search) -> Retrieval:
    """Find the evidence for a question, within the vocabulary's bounds."""
    bounds = search.vocabulary.bounds
    weighed, ranked, named = _ranked(search)
    seeds = ranked[: min(bounds.seeds, bounds.context)]
    between = _between(named, search)
    context = _context(seeds, between, search)
    also = [row for row in ranked[len(seeds) :] if row.id not in context][: bounds.context - len(context)]
    context += [row.id for row in also]
    semantic = search.vocabulary.semantic
    relations = search.reader.relations(source=context, target=context, type=semantic) if context else []
    first = [oriented(path, relations) for path in between if set(path.nodes) <= set(context)]
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


def ranking(search: Search) -> list[Seed]:
    """Return all that a question finds, best first, weak matches too, without what is only related."""
    if search.mode == "terms":
        return _by_terms(weigh(search), search, search.candidates, weak=0)
    return [_seed(row) for row in rank(search).rows]


def _ranked(search: Search) -> tuple[Weighed, list[Seed], tuple[str, ...]]:
    """Return the question's weighed terms, the best facts, and the things that it names if they are several."""
    bounds = search.vocabulary.bounds
    if search.mode == "terms":
        weighed = weigh(search)
        return weighed, _by_terms(weighed, search, min(bounds.seeds, bounds.context)), ()
    found = rank(search)
    named = found.named[:MAX_NAMED] if len(found.named) > 1 else ()
    return found.weighed, [_seed(row) for row in best(found.rows, bounds)], named


def best(rows: Sequence[Ranked], bounds: Bounds) -> list[Ranked]:
    """Return the facts of a ranking that are worth showing: its first, then the next best, spread over the sessions."""
    strong = [row for row in rows if row.score >= WEAK]
    places = spread([row.score for row in strong], [row.session for row in strong], bounds.seeds, bounds.context)
    return [strong[at] for at in places]


def _seed(row: Ranked) -> Seed:
    return Seed(id=row.id, score=row.score, terms=tuple(row.terms), parts=row.parts, beside=row.beside)


def _between(named: Sequence[str], search: Search) -> list[Path]:
    """Return the paths between the things that a question names, short ones first."""
    bounds = search.vocabulary.bounds
    pairs = combinations(named, 2) if bounds.hops else ()
    found = [
        path
        for source, target in pairs
        for path in paths_between(
            source, target, search.reader, search.vocabulary, hops=bounds.hops, limit=bounds.paths
        )
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


def _by_terms(weighed: Weighed, search: Search, limit: int, weak: float = WEAK) -> list[Seed]:
    hits = search.reader.search(weighed.weights, EVIDENCE_KINDS, HISTORY, limit) if weighed.weights else []
    return [
        Seed(id=hit.id, score=hit.score, terms=tuple(word for term, word in weighed.words.items() if term in hit.terms))
        for hit in hits
        if hit.score >= weak * hits[0].score
    ]


def _context(seeds: Sequence[Seed], between: Sequence[Path], search: Search) -> list[str]:
    """Return the seeds, what lies between the things named, and what they are related to, hop by hop.

    Each hop may fill half of the room that is left, so that a busy first hop leaves some for the second;
    what is still free in the end goes to the best of those left out.
    """
    bounds = search.vocabulary.bounds
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
        ranked = _neighbours(frontier, chosen, search, hop)
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
    search: Search,
    hop: int,
) -> list[tuple[int, int, float, str]]:
    """Return the facts one relation away as (hop, rank of the relation, -score, id), best first.

    A fact gets half the score of the one it was reached from, and less where that one is a hub: divided by the
    logarithm of how many it leads to.
    """
    order = {name: at for at, name in enumerate(search.vocabulary.semantic)}
    best: dict[str, tuple[int, int, float, str]] = {}
    limit = search.vocabulary.bounds.neighbours
    rows = search.reader.expand(frontier, search.vocabulary.semantic, EVIDENCE_KINDS, HISTORY, limit)
    degree = Counter(end for row in rows for end in {row.source, row.target})
    for row in rows:
        for near, far in ((row.source, row.target), (row.target, row.source)):
            if near in frontier and far not in chosen:
                score = chosen[near] / 2 / max(1.0, math.log2(degree[near]))
                entry = (hop, order[row.type], -round(score, 6), far)
                best[far] = min(entry, best.get(far, entry))
    return sorted(best.values())


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
