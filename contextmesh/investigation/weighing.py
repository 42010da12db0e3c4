"""What a question's words weigh against the facts, and what each brings a fact: inverse document frequency and BM25."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from contextmesh.core.model import Object
from contextmesh.core.stores import searched
from contextmesh.core.terms import sequence, terms
from contextmesh.investigation.search import Search
from contextmesh.investigation.vocabulary import EVIDENCE_KINDS, HISTORY, STOP_WORDS

SATURATION, LENGTH = 1.2, 0.75  # BM25's k1 and b, at their customary values
MAX_TERMS_ASKED = 200


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


def weigh(search: Search) -> Weighed:
    """Weigh the terms of a question.

    A term's weight is its inverse document frequency, ln(1 + (N - n + 0.5) / (n + 0.5)) for n of N facts
    (Robertson and Spärck Jones). Of more than 12 known terms those are kept that the question repeats and few facts
    hold; what one fact alone holds comes last, since a long text would find little but itself by such words.
    """
    bounds = search.vocabulary.bounds
    words = {term: word for term, word in terms(search.question).items() if word.casefold() not in STOP_WORDS}
    words = dict(list(words.items())[:MAX_TERMS_ASKED])
    if not words:
        return Weighed(weights={}, words=words)
    total, counts = search.reader.count_terms(words.keys(), EVIDENCE_KINDS, HISTORY)
    common = {term for term, n in counts.items() if total >= bounds.common_from and n > bounds.common * total}
    known = {term: n for term in words if (n := counts.get(term, 0)) and term not in common}
    idf = {term: math.log(1 + (total - n + 0.5) / (n + 0.5)) for term, n in known.items()}
    said = Counter(sequence(search.question))
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


def document(row: Object) -> list[str]:
    """Return a fact's terms; a label with which the text begins counts once."""
    label, text = row.data.get("label"), row.data.get("text")
    repeated = isinstance(label, str) and isinstance(text, str) and _begins(text, label)
    return [term for part in searched(row)[repeated:] for term in sequence(part)]


def _begins(text: str, label: str) -> bool:
    words = label.removesuffix("…").split()
    return text.split()[: len(words)] == words


def holds(terms_of: Sequence[str], phrase: tuple[str, ...]) -> bool:
    """Whether a fact's terms hold those of a phrase one after the other."""
    size = len(phrase)
    return any(tuple(terms_of[at : at + size]) == phrase for at in range(len(terms_of) - size + 1))
