"""Question -> every fact that may answer it, best first, each with what its score is the sum of.

A fact's own score is BM25 over the question's terms, as a share of the best one, and closeness in meaning where there
is an embedder. What surrounds it adds to that: the notes before and after it, its session as a whole, who wrote it,
when it happened. Summing scaled scores found more than joining ranks did. All reads go through a Reader and are
bounded, so that every store gives the same ranking.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from contextmesh.core.terms import terms
from contextmesh.investigation.asking import Asked, is_named, moment_of, names_of, read_question
from contextmesh.investigation.search import Search, Similar
from contextmesh.investigation.surroundings import (
    asks,
    named_people,
    passed_on,
    read_members,
    scaled,
    without_names,
)
from contextmesh.investigation.vocabulary import EVIDENCE_KINDS, HISTORY
from contextmesh.investigation.weighing import Weighed, bm25, document, holds, weigh

# What one part adds to a fact of which all of it is true; the best score by words counts 1. Round values from the
# middle of a flat optimum: `make eval` also chooses them without the conversation that it then measures.
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "name": 1.0,  # an entity that the question names, by its whole label or alias
        "likely": 0.3,  # one of which the question has every word
        "phrase": 0.5,  # words in quotes stand in it as quoted
        "identifier": 0.5,  # an identifier stands in it as a whole
        "beside": 0.4,  # own scores of the notes around it, the best being 1, by half less for each one further
        "reply": 0.4,  # that of the note before, where that asks
        "session": 0.3,  # how much of the question its session holds
        "similarity": 0.8,  # close in meaning, where there is an embedder
    },
)
# What a fact's score grows by, as a share of what it has from the above: they say nothing where nothing else matches.
GROWTH: Mapping[str, float] = MappingProxyType(
    {
        "participant": 0.4,  # the question names who wrote it, and nobody else
        "date": 0.5,  # the question names its month or year
        "side": 0.5,  # it lies before or after what the question names, as asked
    },
)
WEAK = 0.2  # of the best own score: what reaches less matched by a common word
CANDIDATES_BY = 2000  # matches that the terms may have which choose candidates; commoner ones only weigh
MAX_ENTITIES = 50  # looked at for one that is named
MAX_SESSIONS = 40  # sessions whose notes are looked at, those of the best candidates
MAX_BROUGHT = 60  # notes that come in by their session alone
NEAREST = 500  # facts whose closeness in meaning is compared; if there are more, the last counts as not close at all
LEAST_SIMILARITY = (
    0.3  # cosine that a fact must reach where the question's words find nothing; unrelated texts reach 0.2
)
SOME_SIMILARITY = 0.2  # that a fact without a word of the question must reach where words find others


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A fact in a ranking.

    Args:
        score: the sum of `parts`.
        terms: the question's words that it holds -> the share of its own score that each brings.
        parts: what the score is made of: `words`, and of `WEIGHTS` and `GROWTH` what applies.
        beside: the note of its session whose score it shares most of.
        session: the session that it is a note of, where sessions count.
    """

    id: str
    score: float
    terms: Mapping[str, float]
    parts: Mapping[str, float]
    beside: str | None = None
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Every fact that may answer a question, best first, and the things that the question names."""

    rows: tuple[Ranked, ...]
    weighed: Weighed
    named: tuple[str, ...] = ()


def rank(search: Search) -> Ranking:
    """Rank the facts that may answer a question by what its mode counts: best first, then newest, then by id."""
    pool = _Pool(search, weigh(search))
    if search.similar:
        pool.add_similar(search.similar)
    if search.mode == "full" and pool.own:
        pool.add_names()
        pool.add_sessions()
        pool.add_people_and_times()
    return Ranking(rows=tuple(pool.ranked()), weighed=pool.weighed, named=tuple(pool.named))


class _Pool:
    """The candidates for one question, and what their scores are made of so far."""

    def __init__(self, search: Search, weighed: Weighed) -> None:
        self._question = search.question
        self._asked: Asked = read_question(search.question)
        self._reader = search.reader
        self.weighed = weighed
        self.named: list[str] = []
        self._changed: dict[str, int] = {}
        self._beside: dict[str, str] = {}
        self._homes: dict[str, str] = {}
        structure = search.mode == "full"
        self._rows = self._reader.get_objects(self._found(search.candidates, entities=structure))
        people = named_people(self._rows, search.question) if structure else {}
        self._author = next(iter(people)) if len(people) == 1 else None
        self._names = {term for found in people.values() for term in found}
        self._score_words()

    def _found(self, limit: int, *, entities: bool) -> list[str]:
        """Return the ids that the question's rarer terms find, entities among them in any case."""
        weights, matches = dict[str, float](), 0
        for term, n in self.weighed.counts.items():
            if weights and matches + n > CANDIDATES_BY:
                break
            weights[term] = self.weighed.weights[term]
            matches += n
        if not weights:
            return []
        hits = self._reader.search(weights, EVIDENCE_KINDS, HISTORY, limit)
        if entities and len(hits) == limit:
            hits += self._reader.search(weights, ["Entity"], HISTORY, MAX_ENTITIES)
        self._changed = {hit.id: hit.updated_at for hit in hits}
        return list(self._changed)

    def _score_words(self) -> None:
        self._documents = {key: document(row) for key, row in self._rows.items()}
        self._terms = self._scored()
        best = max((sum(parts.values()) for parts in self._terms.values()), default=0.0)
        own = {key: sum(parts.values()) / best for key, parts in self._terms.items() if parts} if best else {}
        self.parts: dict[str, dict[str, float]] = {key: {"words": score} for key, score in own.items()}
        self.own = dict(own)

    def _scored(self) -> dict[str, dict[str, float]]:
        """Return the BM25 parts; a participant's name tells whose notes are meant, not what they say."""
        weights, names = self.weighed.scoring, self._names
        scores = bm25(self._documents, weights)
        if names >= weights.keys():
            return scores
        notes = [key for key, row in self._rows.items() if row.type == "Memory"]
        return scores | {key: {term: part for term, part in scores[key].items() if term not in names} for key in notes}

    def add_similar(self, similar: Similar) -> None:
        """Let closeness in meaning count; a participant's name says whose notes are meant, so it is left out."""
        near = similar(without_names(self._question, self._names) or self._question, NEAREST)
        full, last = len(near) >= NEAREST, min(near.values(), default=0.0)
        least = SOME_SIMILARITY if self.own else LEAST_SIMILARITY
        near = {key: cosine for key, cosine in near.items() if cosine >= least or key in self.own}
        self._rows |= self._reader.get_objects(near.keys() - self._rows.keys())
        self._score_words()
        floor = last if full else 0.0
        height = max(near.values(), default=0.0) - floor
        for key, cosine in near.items():
            if key in self._rows and height > 0:
                self._add(key, "similarity", (cosine - floor) / height)
        self.own = {key: self._sum(key) for key in self.parts}

    def _add(self, key: str, part: str, share: float) -> float:
        if share <= 0:
            return 0.0
        parts = self.parts.setdefault(key, {})
        parts[part] = parts.get(part, 0.0) + WEIGHTS[part] * share
        return WEIGHTS[part] * share

    def _sum(self, key: str) -> float:
        return sum(self.parts[key].values())

    def add_names(self) -> None:
        """Lift what the question names, quotes or identifies: exact matches before likely ones."""
        asked, words = self._asked, set(self.weighed.words)
        known = [term for term in asked.identifiers if term in self.weighed.weights]
        for key in self.own:
            row, held = self._rows[key], self._documents[key]
            if row.type == "Entity":
                names = names_of(row)
                if any(is_named(name, self._question) for name in names):
                    self.named.append(key)
                    self._add(key, "name", 1.0)
                elif any(set(terms(name)) <= words for name in names if terms(name)):
                    self._add(key, "likely", 1.0)
            self._add(key, "phrase", sum(holds(held, phrase) for phrase in asked.phrases) / max(len(asked.phrases), 1))
            self._add(key, "identifier", sum(term in held for term in known) / max(len(known), 1))
        self.named.sort(key=lambda key: (-self._sum(key), key))

    def add_sessions(self) -> None:
        """Let notes share in the own scores of those around them, and in how much their session holds."""
        notes = [key for key in self.own if self._rows[key].type == "Memory"]
        if not notes:
            return
        homes = {row.target: row.source for row in self._reader.relations(target=notes, type="HAS_MEMORY")}
        best = sorted(homes, key=lambda key: (-self.own[key], key))
        kept = set(list(dict.fromkeys(homes[key] for key in best))[:MAX_SESSIONS])
        covered = self._covered({key: session for key, session in homes.items() if session in kept})
        members = read_members(self._reader, covered)
        asking = {key for key in notes if asks(self._rows[key])}
        most = max(self.own.values())
        given = {key: self.own[key] / most for key in notes}
        shared: dict[str, float] = {}
        for session, keys in sorted(members.items()):
            self._homes |= dict.fromkeys(keys, session)
            for key, part, share, giver in passed_on(keys, given, asking):
                if (value := self._add(key, part, share)) > shared.get(key, 0.0):
                    shared[key], self._beside[key] = value, giver
        self._bring(self._homes.keys() - self._rows.keys())
        for key, session in self._homes.items():
            if key in self._rows:
                self._add(key, "session", covered[session])

    def _covered(self, homes: Mapping[str, str]) -> dict[str, float]:
        """Return how much of the question each session holds, scaled to 0 for the least and 1 for the most."""
        weights, held = self.weighed.scoring, dict[str, set[str]]()
        near = dict[str, float]()
        for key, session in homes.items():
            held.setdefault(session, set()).update(self._terms.get(key, ()))
            near[session] = max(near.get(session, 0.0), self.parts[key].get("similarity", 0.0))
        sums = {key: sum(weights[term] for term in sorted(found)) for key, found in held.items()}
        most = max(sums.values(), default=0.0) or 1.0
        return scaled({key: value / most + near[key] for key, value in sums.items()})

    def _bring(self, keys: Collection[str]) -> None:
        """Read the best of the notes that no word found; the others leave again."""
        best = sorted((key for key in keys if key in self.parts), key=lambda key: (-self._sum(key), key))
        self._rows |= self._reader.get_objects(best[:MAX_BROUGHT])
        for key in best:
            if key not in self._rows:
                del self.parts[key]

    def add_people_and_times(self) -> None:
        """Lift what somebody wrote whom the question names, and what happened when it says."""
        asked, pivot = self._asked, self._pivot()
        for key, parts in self.parts.items():
            data, so_far = self._rows[key].data, self._sum(key)
            moment = moment_of(data)
            fits = {
                "participant": float(self._author is not None and data.get("author") == self._author),
                "date": asked.fits_date(moment) if moment else 0.0,
                "side": float(bool(moment and pivot and (moment > pivot if asked.side > 0 else moment < pivot))),
            }
            parts |= {name: GROWTH[name] * fit * so_far for name, fit in fits.items() if fit}

    def _pivot(self) -> datetime | None:
        """Return the time of what the question names after `before`, `after` or the like."""
        times = [moment_of(self._rows[key].data) for key in self.named] if self._asked.side else []
        return next((moment for moment in times if moment), None)

    def ranked(self) -> list[Ranked]:
        found = []
        for key, parts in self.parts.items():
            row = Ranked(
                id=key,
                score=round(sum(parts.values()), 6),
                terms=self._words(key),
                parts={name: round(value, 6) for name, value in parts.items()},
                beside=self._beside.get(key),
                session=self._homes.get(key),
            )
            found.append(row)
        found.sort(key=lambda row: row.id)
        found.sort(key=lambda row: (row.score, self._changed.get(row.id, 0)), reverse=True)
        return found

    def _words(self, key: str) -> dict[str, float]:
        parts = self._terms.get(key, {})
        total = sum(parts.values())
        words: dict[str, float] = {}
        for term, word in self.weighed.words.items():
            if term in parts and term in self.weighed.weights:
                words[word] = round(words.get(word, 0.0) + parts[term] / total * self.parts[key]["words"], 6)
        return words
