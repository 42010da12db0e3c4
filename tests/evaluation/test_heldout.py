"""Weights chosen without what they are measured on."""

from datetime import UTC, datetime

import numpy as np
import pytest

from contextmesh.investigation.retrieval import retrieve
from contextmesh.investigation.search import Search
from contextmesh.investigation.workspace import Workspace
from tests.evaluation.dataset import Corpus, Question
from tests.evaluation.heldout import CHOICES, DEFAULTS, Parts, choose, find, held_out, read_parts

QUESTIONS = ("What did Ana say of the pump?", "Which seal broke in March?", "Who saw the motor?", "whales?")


def fill(ws: Workspace) -> None:
    for session, month in enumerate((1, 2, 3)):
        for at in range(12):
            text = ("the pump is loud", "did the seal break?", "on Monday", "a motor", "nothing")[
                (at * 7 + session) % 5
            ]
            moment = datetime(2026, month, 2, tzinfo=UTC)
            ws.session(f"s{session}").note(f"{text} {at}", at=moment, author=("Ana", "Bo")[at % 2])


def test_by_the_default_weights_a_question_finds_what_retrieval_finds(ws: Workspace) -> None:
    fill(ws)
    questions = tuple(Question(text=text, gold=frozenset()) for text in QUESTIONS)
    parts = read_parts(Corpus(name="made up", fill=fill, questions=questions), ws)
    for row in parts:
        context = retrieve(Search(row.question.text, ws.graph, ws.vocabulary)).context
        assert find(row, DEFAULTS) == context
    assert [bool(find(row, DEFAULTS)) for row in parts] == [True, True, True, False]


def test_another_weight_finds_something_else(ws: Workspace) -> None:
    fill(ws)
    (row,) = read_parts(
        Corpus(name="made up", fill=fill, questions=(Question(text=QUESTIONS[0], gold=frozenset()),)), ws
    )
    assert find(row, (0.0, *DEFAULTS[1:])) != find(row, DEFAULTS)


def test_the_weights_that_are_worth_most_are_chosen_and_ties_change_nothing() -> None:
    wanted = (0.2, 0.6, 0.5, 0.2, 1.0)
    near = choose(lambda weights: -sum(abs(one - other) for one, other in zip(weights, wanted, strict=True)))
    assert near == wanted
    assert choose(lambda weights: 0.0) == DEFAULTS


def conversation(*, gold_beside: float, others_beside: float) -> list[Parts]:
    """Return a question with 25 facts, of which the last is its evidence."""
    beside = np.array([others_beside] * 24 + [gold_beside])
    fixed = np.where(beside > 0, 0.3, 0.55)
    added = np.zeros((25, 3))
    added[:, 0] = beside
    question = Question(text="?", gold=frozenset({"gold"}))
    ids = (*(f"other{at}" for at in range(24)), "gold")
    return [
        Parts(
            question=question,
            ids=ids,
            sessions=(None,) * 25,
            fixed=fixed,
            factor=np.ones(25),
            added=added,
            grown=np.zeros((25, 2)),
        )
    ]


def test_no_conversation_has_a_say_in_the_weights_that_it_is_measured_by() -> None:
    # One finds its evidence where neighbours count more than 0.25, the other where they count less.
    more, less = conversation(gold_beside=1.0, others_beside=0.0), conversation(gold_beside=0.0, others_beside=1.0)
    (by_less, found_more), (by_more, found_less) = held_out([more, less])
    assert by_less[0] == 0.2
    assert by_more[0] == DEFAULTS[0]
    assert [row[1].count("gold") for row in (*found_more, *found_less)] == [0, 0]


def test_the_default_weights_are_among_the_choices() -> None:
    for value, choices in zip(DEFAULTS, CHOICES.values(), strict=True):
        assert value in choices
        assert min(choices) < value < max(choices)


@pytest.mark.parametrize("most", [0, 5, 20])
def test_no_more_are_found_than_are_asked_for(most: int) -> None:
    (row,) = conversation(gold_beside=1.0, others_beside=0.0)
    assert len(find(row, DEFAULTS, most)) == most
