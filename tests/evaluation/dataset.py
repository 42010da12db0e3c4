"""A set of questions whose evidence is known, whatever it was read from; and what a mode's answers are worth."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from contextmesh import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, the ids of its evidence, and the group it is counted in besides.

    `apart` are ids that the answer must not be, such as what the question was taken from.
    """

    text: str
    gold: frozenset[str]
    group: str = ""
    apart: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """What one workspace is filled with, and what is asked in it.

    `unit` tells what a fact belongs to, where the evidence is named by something larger than facts; "" for nothing.
    """

    name: str
    fill: Callable[[Workspace], None]
    questions: tuple[Question, ...]
    unit: Callable[[str], str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """Means over questions; `n` is how many.

    any_10: some evidence is among the first 10; all_20: all of it is among the first 20; hit_3: some is among the
    first 3; mrr: one divided by the place of the first evidence.
    """

    n: int
    any_10: float
    all_20: float
    hit_3: float
    mrr: float


def score(results: Iterable[tuple[Question, Sequence[str]]]) -> Scores:
    """Score the ids that were found for each question, best first."""
    rows = []
    for question, found in results:
        gold = question.gold
        first = next((place for place, key in enumerate(found, 1) if key in gold), 0)
        measured = (0 < first <= 10, gold <= set(found[:20]), 0 < first <= 3, 1 / first if first else 0)
        rows.append(tuple(map(float, measured)))
    n = len(rows)
    means = [sum(column) / n for column in zip(*rows, strict=True)] if rows else [0.0] * 4
    return Scores(n=n, any_10=means[0], all_20=means[1], hit_3=means[2], mrr=means[3])


def units(found: Iterable[str], question: Question, unit: Callable[[str], str] | None) -> list[str]:
    """Return what the facts that were found belong to, each once, without what the answer must not be."""
    named = (unit(key) if unit else key for key in found)
    return [key for key in dict.fromkeys(named) if key and key not in question.apart]
