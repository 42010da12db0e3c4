"""Question -> every fact that may answer it, best first, each with what its score is the sum of.

A fact's own score is BM25 over the question's terms, as a share of the best one. What surrounds it adds to that: the
notes before and after it, its session as a whole, who wrote it, when it happened. Summing scaled scores found more than
joining ranks did. All reads go through a Reader and are bounded, so that every store gives the same ranking.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType

from contextmesh.core.model import Object
from contextmesh.core.reader import Reader
from contextmesh.core.stores import searched
from contextmesh.core.terms import sequence, terms
from contextmesh.investigation.asking import Asked, is_named, moment_of, names_of, read_question
from contextmesh.investigation.vocabulary import EVIDENCE_KINDS, HISTORY, STOP_WORDS, Vocabulary

SATURATION, LENGTH = 1.2, 0.75  # BM25's k1 and b, at their customary values
# Of a fact that shares all that one part can give; the best own score counts 1. Round values, chosen while looking at
# the conversations that `make eval` asks: its figures are of the set they were chosen on.
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "name": 1.0,  # an entity that the question names, by its whole label or alias
        "likely": 0.3,  # one of which the question has every word
        "phrase": 0.5,  # words in quotes stand in it as quoted
        "identifier": 0.5,  # an identifier stands in it as a whole
        "beside": 0.3,  # the scores of the notes before and after in its session
        "near": 0.15,  # of those one further
        "session": 0.3,  # how much of the question its session holds
        "similarity": 0.8,  # close in meaning, where there is an embedder
    },
)
# What a fact's score grows by, as a share of what it has from the above: they say nothing where nothing else matches.
GROWTH: Mapping[str, float] = MappingProxyType(
    {
        "participant": 0.3,  # the question names who wrote it, and nobody else
        "date": 0.5,  # the question names its month or year
        "side": 0.5,  # it lies before or after what the question names, as asked
    },
)
WEAK = 0.2  # of the best own score: what reaches less matched by a common word
CANDIDATES_BY = 2000  # matches that the terms may have which choose candidates; commoner ones only weigh
MAX_ENTITIES = 50  # looked at for one that is named
MAX_SESSIONS = 40  # sessions whose notes are looked at, those of the best candidates
MAX_SESSION = 1000  # the newest notes of a session, among which neighbours are looked for
MAX_BROUGHT = 60  # notes that come in by their session alone
MAX_TERMS_ASKED = 200
NEAREST = 500  # facts whose closeness in meaning is compared; if there are more, the last counts as not close at all
LEAST_SIMILARITY = (
    0.3  # cosine that a fact must reach where the question's words find nothing; unrelated texts reach 0.2
)
SOME_SIMILARITY = 0.2  # that a fact without a word of the question must reach where words find others

Similar = Callable[[str, int], Mapping[str, float]]  # (text, at most so many) -> id -> cosine, nearest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A question's terms against what the facts hold.

    Args:
        weights: term -> weight, of those that select.
        words: term -> the question's word that it came from, in the question's order.
        counts: term -> how many facts hold it, of those that select.
        scoring: term -> weight, of all that facts hold, more where the question repeats it; a long question has more
            of them than select.
        notes: what the reader should know about words that select nothing.
        unknown: words that no fact holds; of an identifier, its parts count and not the whole.
    """

    weights: Mapping[str, float]
    words: Mapping[str, str]
    counts: Mapping[str, int] = field(default_factory=dict)
    scoring: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A fact in a ranking.

    Args:
        score: the sum of `parts`.
        terms: the question's words that it holds -> the share of its own score that each brings.
        parts: what the score is made of: `words`, and of `WEIGHTS` what applies.
        beside: the note of its session whose score it shares most of.
    """

    id: str
    score: float
    terms: Mapping[str, float]
    parts: Mapping[str, float]
    beside: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Every fact that may answer a question, best first, and the things that the question names."""

    rows: tuple[Ranked, ...]
    weighed: Weighed
    named: tuple[str, ...] = ()


def weigh(question: str, reader: Reader, vocabulary: Vocabulary) -> Weighed:
    """Weigh the terms of a question.

    A term's weight is its inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)) for n of N facts
    (Robertson and Spärck Jones). Of more than 12 known terms those are kept that the question repeats and few facts
    hold; what one fact alone holds comes last, since a long text would find little but itself by such words.
    """
    bounds = vocabulary.bounds
    words = {term: word for term, word in terms(question).items() if word.casefold() not in STOP_WORDS}
    words = dict(list(words.items())[:MAX_TERMS_ASKED])
    if not words:
        return Weighed(weights={}, words=words)
    total, counts = reader.count_terms(words.keys(), EVIDENCE_KINDS, HISTORY)
    common = {term for term, n in counts.items() if total >= bounds.common_from and n > bounds.common * total}
    known = {term: n for term in words if (n := counts.get(term, 0)) and term not in common}
    idf = {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in known.items()}
    said = Counter(sequence(question))
    kept = _telling(said, known, idf, bounds.terms)
    parts = [term for term, word in words.items() if "_" not in term or word == term]
    return Weighed(
        weights={term: round(idf[term], 6) for term in kept},
        words=words,
        counts={term: known[term] for term in kept},
        scoring={term: round(weight * (1 + math.log(said[term])), 6) for term, weight in idf.items()},
        notes=tuple(
            f"'{words[key]}' is in nearly every fact, so it selects nothing." for key in words if key in common
        ),
        unknown=tuple(dict.fromkeys(words[term] for term in parts if term not in counts)),
    )


def _telling(said: Counter[str], known: Mapping[str, int], idf: Mapping[str, float], limit: int) -> list[str]:
    """Return the terms that tell most, the rarest first."""
    order = {term: at for at, term in enumerate(known)}
    best = list(known)
    if len(best) > limit:
        best.sort(key=lambda term: (known[term] == 1, -round(idf[term] * (1 + math.log(said[term])), 9), order[term]))
    return sorted(best[:limit], key=lambda term: (known[term], order[term]))


def rank(
    question: str,
    reader: Reader,
    vocabulary: Vocabulary,
    *,
    structure: bool = True,
    similar: Similar | None = None,
    limit: int = 0,
) -> Ranking:
    """Rank the facts that may answer a question, best first, then newest, then by id.

    Args:
        question: what was asked.
        reader: the graph to look in.
        vocabulary: whose kinds, relations and bounds count.
        structure: whether names, sessions, participants and times count, beside the words.
        similar: what finds facts that are close in meaning.
        limit: candidates to look at, if more than the vocabulary's bound.
    """
    weighed = weigh(question, reader, vocabulary)
    limit = max(limit, vocabulary.bounds.candidates)
    pool = _Pool(question, reader, weighed, limit, named=structure)
    if similar:
        pool.add_similar(similar)
    if structure and pool.own:
        pool.add_names()
        pool.add_sessions()
        pool.add_people_and_times()
    return Ranking(rows=tuple(pool.ranked()), weighed=weighed, named=tuple(pool.named))


def bm25(documents: Mapping[str, Sequence[str]], weights: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Return what each term brings each document by BM25 (Robertson and Zaragoza, 2009), as id -> term -> score.

    Lengths are compared with the mean of these documents.

    Example:
        >>> found = bm25({"a": ["pump", "seal"], "b": ["pump", "pump"]}, {"pump": 1.0})
        >>> found["a"], round(found["b"]["pump"], 3)
        ({'pump': 1.0}, 1.375)
    """
    mean = sum(map(len, documents.values())) / max(len(documents), 1) or 1.0
    scores: dict[str, dict[str, float]] = {}
    for key, words in documents.items():
        counts = Counter(word for word in words if word in weights)
        pace = SATURATION * (1 - LENGTH + LENGTH * len(words) / mean)
        scores[key] = {
            term: weights[term] * counts[term] * (SATURATION + 1) / (counts[term] + pace)
            for term in weights
            if term in counts
        }
    return scores


class _Pool:
    """The candidates for one question, and what their scores are made of so far."""

    def __init__(
        self,
        question: str,
        reader: Reader,
        weighed: Weighed,
        limit: int,
        *,
        named: bool,
    ) -> None:
        self._question = question
        self._asked: Asked = read_question(question)
        self._reader = reader
        self._weighed = weighed
        self.named: list[str] = []
        self._changed: dict[str, int] = {}
        self._rows = reader.get_objects(self._found(limit, entities=named))
        self._people = _people(self._rows, question) if named else {}
        self._score_words()

    def _score_words(self) -> None:
        self._documents = {key: _document(row) for key, row in self._rows.items()}
        self._terms = self._scored()
        best = max((sum(parts.values()) for parts in self._terms.values()), default=0.0)
        own = {key: sum(parts.values()) / best for key, parts in self._terms.items() if parts} if best else {}
        self.parts: dict[str, dict[str, float]] = {key: {"words": score} for key, score in own.items()}
        self.own = {key: sum(parts.values()) for key, parts in self.parts.items()}
        self._beside: dict[str, str] = {}

    def add_similar(self, similar: Similar) -> None:
        """Let closeness in meaning count; a participant's name says whose notes are meant, so it is left out."""
        near = similar(self._without_people() or self._question, NEAREST)
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

    def _without_people(self) -> str:
        said = {term for people in self._people.values() for term in people}
        kept = (word for word in self._question.split() if not _named_only(word, said))
        return " ".join(kept)

    def _found(self, limit: int, *, entities: bool) -> list[str]:
        """Return the ids that the question's rarer terms find, entities among them in any case."""
        weights, matches = dict[str, float](), 0
        for term, n in self._weighed.counts.items():
            if weights and matches + n > CANDIDATES_BY:
                break
            weights[term] = self._weighed.weights[term]
            matches += n
        if not weights:
            return []
        hits = self._reader.search(weights, EVIDENCE_KINDS, HISTORY, limit)
        if entities and len(hits) == limit:
            hits += self._reader.search(weights, ["Entity"], HISTORY, MAX_ENTITIES)
        self._changed = {hit.id: hit.updated_at for hit in hits}
        return list(self._changed)

    def _scored(self) -> dict[str, dict[str, float]]:
        """Return the BM25 parts; a participant's name tells whose notes are meant, not what they say."""
        said = {term for people in self._people.values() for term in people}
        weights = self._weighed.scoring
        scores = bm25(self._documents, weights)
        if said >= weights.keys():
            return scores
        notes = [key for key, row in self._rows.items() if row.type == "Memory"]
        return scores | {key: {term: part for term, part in scores[key].items() if term not in said} for key in notes}

    def _add(self, key: str, part: str, share: float) -> None:
        if share > 0:
            parts = self.parts.setdefault(key, {})
            parts[part] = parts.get(part, 0.0) + WEIGHTS[part] * share

    def add_names(self) -> None:
        """Lift what the question names, quotes or identifies: exact matches before likely ones."""
        asked, words = self._asked, set(self._weighed.words)
        for key in self.own:
            row, document = self._rows[key], self._documents[key]
            if row.type == "Entity":
                names = names_of(row)
                if any(is_named(name, self._question) for name in names):
                    self.named.append(key)
                    self._add(key, "name", 1.0)
                elif any(set(terms(name)) <= words for name in names if terms(name)):
                    self._add(key, "likely", 1.0)
            whole = sum(_holds(document, phrase) for phrase in asked.phrases)
            self._add(key, "phrase", whole / max(len(asked.phrases), 1))
            known = [term for term in asked.identifiers if term in self._weighed.weights]
            self._add(key, "identifier", sum(term in document for term in known) / max(len(known), 1))
        self.named.sort(key=lambda key: (-self._sum(key), key))

    def add_sessions(self) -> None:
        """Let notes share in the scores of their neighbours, and of their session as a whole."""
        notes = [key for key in self.own if self._rows[key].type == "Memory"]
        if not notes:
            return
        homes = {row.target: row.source for row in self._reader.relations(target=notes, type="HAS_MEMORY")}
        best = sorted((key for key in homes), key=lambda key: (-self.own[key], key))
        kept = set(list(dict.fromkeys(homes[key] for key in best))[:MAX_SESSIONS])
        homes = {key: session for key, session in homes.items() if session in kept}
        covered = self._covered(homes)
        members = _members(self._reader, covered)
        scores = dict(self.own)
        for session in sorted(members):
            self._share(members[session], scores)
        self._bring({key for keys in members.values() for key in keys} - self._rows.keys())
        for session, keys in members.items():
            for key in keys:
                if key in self._rows:
                    self._add(key, "session", covered[session])

    def _covered(self, homes: Mapping[str, str]) -> dict[str, float]:
        """Return how much of the question each session holds, scaled to 0 for the least and 1 for the most."""
        weights, held = self._weighed.scoring, dict[str, set[str]]()
        for key, session in homes.items():
            held.setdefault(session, set()).update(self._terms.get(key, ()))
        near = dict[str, float]()
        for key, session in homes.items():
            near[session] = max(near.get(session, 0.0), self.parts[key].get("similarity", 0.0))
        sums = {key: sum(weights[term] for term in sorted(found)) for key, found in held.items()}
        most = max(sums.values(), default=0.0) or 1.0
        return _scaled({key: value / most + near[key] for key, value in sums.items()})

    def _share(self, keys: Sequence[str], scores: Mapping[str, float]) -> None:
        for at, key in enumerate(keys):
            best = 0.0
            for far, part in ((-1, "beside"), (1, "beside"), (-2, "near"), (2, "near")):
                if 0 <= at + far < len(keys) and (score := scores.get(keys[at + far], 0.0)):
                    self._add(key, part, score)
                    if WEIGHTS[part] * score > best:
                        best, self._beside[key] = WEIGHTS[part] * score, keys[at + far]

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
        author = next(iter(self._people)) if len(self._people) == 1 else None
        for key, parts in self.parts.items():
            data, so_far = self._rows[key].data, self._sum(key)
            moment = moment_of(data)
            fits = {
                "participant": float(author is not None and data.get("author") == author),
                "date": asked.fits_date(moment) if moment else 0.0,
                "side": float(bool(moment and pivot and (moment > pivot if asked.side > 0 else moment < pivot))),
            }
            parts |= {name: GROWTH[name] * fit * so_far for name, fit in fits.items() if fit}

    def _pivot(self) -> datetime | None:
        """Return the time of what the question names after `before`, `after` or the like."""
        times = [moment_of(self._rows[key].data) for key in self.named] if self._asked.side else []
        return next((moment for moment in times if moment), None)

    def _sum(self, key: str) -> float:
        return sum(self.parts[key].values())

    def ranked(self) -> list[Ranked]:
        found = []
        for key, parts in self.parts.items():
            row = Ranked(
                id=key,
                score=round(sum(parts.values()), 6),
                terms=self._words(key),
                parts={name: round(value, 6) for name, value in parts.items()},
                beside=self._beside.get(key),
            )
            found.append(row)
        found.sort(key=lambda row: row.id)
        found.sort(key=lambda row: (row.score, self._changed.get(row.id, 0)), reverse=True)
        return found

    def _words(self, key: str) -> dict[str, float]:
        parts = self._terms.get(key, {})
        total = sum(parts.values())
        words: dict[str, float] = {}
        for term, word in self._weighed.words.items():
            if term in parts and term in self._weighed.weights:
                words[word] = round(words.get(word, 0.0) + parts[term] / total * self.parts[key]["words"], 6)
        return words


def _named_only(word: str, said: Collection[str]) -> bool:
    """Whether a word is a participant's name, with or without a genitive."""
    found = terms(word.removesuffix("?").removesuffix("'s").removesuffix("\u2019s"))
    return bool(found) and found.keys() <= set(said)


def _document(row: Object) -> list[str]:
    """Return a fact's terms; a label with which the text begins counts once."""
    label, text = row.data.get("label"), row.data.get("text")
    repeated = isinstance(label, str) and isinstance(text, str) and _begins(text, label)
    return [term for part in searched(row)[repeated:] for term in sequence(part)]


def _begins(text: str, label: str) -> bool:
    words = label.removesuffix("…").split()
    return text.split()[: len(words)] == words


def _people(rows: Mapping[str, Object], question: str) -> dict[str, list[str]]:
    """Return the authors of notes whom the question names, each with the terms of the name that it has."""
    asked = terms(question)
    authors = {row.data.get("author") for row in rows.values() if row.type == "Memory"}
    named = {name: [term for term in terms(name) if term in asked] for name in authors if isinstance(name, str)}
    return {name: found for name, found in sorted(named.items()) if found}


def _members(reader: Reader, sessions: Collection[str]) -> dict[str, list[str]]:
    """Return the notes of each session in the order in which they were taken."""
    links = reader.expand(sessions, ["HAS_MEMORY"], ["Memory"], HISTORY, MAX_SESSION)
    links.sort(key=lambda row: (len(str(row.provenance.get("created_by"))), str(row.provenance.get("created_by"))))
    members: dict[str, list[str]] = {}
    for row in links:
        members.setdefault(row.source, []).append(row.target)
    return members


def _holds(document: Sequence[str], phrase: tuple[str, ...]) -> bool:
    size = len(phrase)
    return any(tuple(document[at : at + size]) == phrase for at in range(len(document) - size + 1))


def _scaled(scores: Mapping[str, float]) -> dict[str, float]:
    """Scale scores to 0 for the least and 1 for the greatest."""
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {key: (score - low) / (high - low) if high > low else 0.0 for key, score in scores.items()}
