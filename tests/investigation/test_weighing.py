"""What a question's words weigh, and what each brings a fact."""

import math
from datetime import UTC, datetime

import pytest

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object
from contextmesh.investigation.search import Search
from contextmesh.investigation.vocabulary import DEFAULT
from contextmesh.investigation.weighing import bm25, document, holds, weigh

START = datetime(2026, 1, 1, tzinfo=UTC)


def filled(*texts: str) -> Graph:
    """Return a graph of pieces of evidence with these texts."""
    graph = Graph(clock=TickingClock(START))
    for at, text in enumerate(texts):
        graph.add_object("Evidence", {"label": f"e{at}", "text": text}, id=f"e{at}")
    return graph


def test_bm25_by_hand() -> None:
    found = bm25({"a": ["x", "y", "y"], "b": ["y"]}, {"y": 2.0, "z": 1.0})
    # k1 = 1.2, b = 0.75, mean length 2; a: f = 2, length 3; b: f = 1, length 1
    assert found["a"] == {"y": pytest.approx(2 * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2)))}
    assert found["b"] == {"y": pytest.approx(2 * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 / 2)))}
    assert bm25({}, {"y": 1.0}) == {}


def test_a_terms_weight_is_its_inverse_document_frequency() -> None:
    weighed = weigh(Search("pump or valve?", filled("pump valve", "pump", "motor", "seal"), DEFAULT))
    # ln(1 + (N - n + 0.5) / (n + 0.5)), N = 4: n = 2 for pump, n = 1 for valve
    assert weighed.weights == {
        "pump": pytest.approx(math.log(2), abs=1e-6),
        "valv": pytest.approx(math.log(10 / 3), abs=1e-6),
    }
    assert weighed.words == {"pump": "pump", "valv": "valve"}
    assert weighed.notes == ()


def test_a_long_question_searches_by_what_it_repeats_and_scores_by_all() -> None:
    graph = filled(*(f"common{at % 4} word{at} word{at + 1}" for at in range(40)))
    question = " ".join(f"word{at}" for at in range(1, 20)) + " common1 common1 common1"
    weighed = weigh(Search(question, graph, DEFAULT))
    assert len(weighed.weights) == 12
    assert "common1" in weighed.weights
    assert len(weighed.scoring) == 20
    # n = 10 of N = 40, three times in the question
    assert weighed.scoring["common1"] == pytest.approx(math.log(1 + 30.5 / 10.5) * (1 + math.log(3)), abs=1e-5)


def test_a_label_with_which_the_text_begins_counts_once() -> None:
    assert document(Object(id="x", type="Memory", data={"label": "the pump…", "text": "the pump broke"})) == [
        *("the", "pump", "broke", "x"),
    ]
    assert document(Object(id="x", type="Entity", data={"label": "pump", "text": "it broke"})).count("pump") == 1
    assert document(Object(id="x", type="Entity", data={"label": "pump", "text": "a pump"})).count("pump") == 2


def test_a_phrase_stands_as_it_is_or_not_at_all() -> None:
    assert holds(["the", "session", "store"], ("session", "store"))
    assert not holds(["store", "session"], ("session", "store"))
    assert not holds(["session"], ("session", "store"))
