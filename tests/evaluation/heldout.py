"""Held out: weights chosen on all conversations but one and measured on that one, for each of them in turn.

What the parts of every score are true of is read once; each choice of weights then only sums them anew. The weights of
names, phrases and closeness in meaning stay as they are.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from contextmesh import Workspace
from contextmesh.investigation.ranking import GROWTH, WEAK, WEIGHTS, Ranked, rank
from contextmesh.investigation.search import Search
from contextmesh.investigation.surroundings import spread
from contextmesh.investigation.vocabulary import DEFAULT
from tests.evaluation.dataset import Corpus, Question

Weights = tuple[float, ...]  # in the order of `CHOICES`
Result = tuple[Question, tuple[str, ...]]
Numbers = np.ndarray[Any, np.dtype[np.float64]]

CHOICES: Mapping[str, tuple[float, ...]] = {
    "beside": (0.2, 0.3, 0.4, 0.5),
    "reply": (0.0, 0.2, 0.4, 0.6),
    "session": (0.2, 0.3, 0.4, 0.5),
    "participant": (0.2, 0.3, 0.4, 0.5),
    "date": (0.25, 0.5, 0.75, 1.0),
}
ADDED = [name for name in CHOICES if name in WEIGHTS]
GROWN = [name for name in CHOICES if name in GROWTH]
DEFAULTS: Weights = tuple({**WEIGHTS, **GROWTH}[name] for name in CHOICES)
ROUNDS = 2  # through all weights
FOUND = 20
# A choice is judged by the means over these places, so that no single rank decides.
ANY_AMONG, ALL_AMONG = range(5, 16), range(14, 27)
SEVERAL = 0.5  # what the questions that need several turns count besides


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What one question's scores are made of, a row a fact in the order of the default ranking.

    Args:
        fixed: what the chosen weights do not touch; factor: likewise of what scores grow by.
        added: shares of the parts in `ADDED`; grown: of those in `GROWN`.
    """

    question: Question
    ids: tuple[str, ...]
    sessions: tuple[str | None, ...]
    fixed: Numbers
    factor: Numbers
    added: Numbers
    grown: Numbers


def read_parts(corpus: Corpus, ws: Workspace) -> list[Parts]:
    """Rank the facts for every question of a corpus, with the workspace's embedder if it has one."""
    searches = ((row, Search(row.text, ws.graph, ws.vocabulary, similar=ws.similar)) for row in corpus.questions)
    return [_parts(question, rank(search).rows) for question, search in searches]


def _parts(question: Question, rows: Sequence[Ranked]) -> Parts:
    sums = np.array([sum(value for name, value in row.parts.items() if name not in GROWTH) for row in rows])
    added = _table(rows, ADDED) / [WEIGHTS[name] for name in ADDED]
    return Parts(
        question=question,
        ids=tuple(row.id for row in rows),
        sessions=tuple(row.session for row in rows),
        fixed=sums - added @ [WEIGHTS[name] for name in ADDED],
        factor=1 + _table(rows, ["side"])[:, 0] / sums,
        added=added,
        grown=_table(rows, GROWN) / [GROWTH[name] for name in GROWN] / sums[:, None],
    )


def _table(rows: Sequence[Ranked], names: Sequence[str]) -> Numbers:
    return np.array([[row.parts.get(name, 0.0) for name in names] for row in rows]).reshape(len(rows), len(names))


def find(parts: Parts, weights: Weights, most: int = FOUND) -> tuple[str, ...]:
    """Return what the question finds by these weights, best first, as `retrieve` does where nothing is related."""
    added, grown = weights[: len(ADDED)], weights[len(ADDED) :]
    scores = np.round((parts.fixed + parts.added @ added) * (parts.factor + parts.grown @ grown), 6)
    strong = [int(at) for at in np.argsort(-scores, kind="stable") if scores[at] >= WEAK]
    sessions = [parts.sessions[at] for at in strong]
    places = spread([float(scores[at]) for at in strong], sessions, DEFAULT.bounds.seeds, most)
    return tuple(parts.ids[strong[place]] for place in places)


def held_out(conversations: Sequence[Sequence[Parts]]) -> list[tuple[Weights, list[Result]]]:
    """Return for each conversation the weights chosen on the others, and what its questions find by them."""
    sums = cache(lambda at, weights: _sums(conversations[at], weights))
    made = []
    for at, parts in enumerate(conversations):
        others = [other for other in range(len(conversations)) if other != at]
        weights = choose(lambda tried, others=others: _worth(sum(sums(other, tried) for other in others)))  # type: ignore[misc]
        made.append((weights, [(row.question, find(row, weights)) for row in parts]))
    return made


def choose(worth: Callable[[Weights], float]) -> Weights:
    """Return the weights that are worth most, changed one after the other from the defaults on; ties change nothing."""
    best = DEFAULTS
    for _ in range(ROUNDS):
        for place, values in enumerate(CHOICES.values()):
            tried = [best, *((*best[:place], value, *best[place + 1 :]) for value in values)]
            best = max(tried, key=worth)
    return best


def _sums(conversation: Sequence[Parts], weights: Weights) -> Numbers:
    """Return how many questions there are, how well they do with any and all of their evidence; and of the group."""
    total = np.zeros((2, 3))
    for parts in conversation:
        places = {key: place for place, key in enumerate(find(parts, weights, ALL_AMONG[-1]), 1)}
        first, *_, last = sorted(places.get(key, ALL_AMONG[-1] + 1) for key in (*parts.question.gold,) * 2)
        row = (
            1.0,
            sum(first <= k for k in ANY_AMONG) / len(ANY_AMONG),
            sum(last <= k for k in ALL_AMONG) / len(ALL_AMONG),
        )
        total[0] += row
        total[1] += row if parts.question.group else np.zeros(3)
    return total


def _worth(sums: Any) -> float:
    counts = np.maximum(sums[:, 0], 1)
    return float((sums[:, 1:].sum(axis=1) / counts) @ (1, SEVERAL))
