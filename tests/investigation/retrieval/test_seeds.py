"""Question -> seeds: which facts match, and in which order."""

import math
from typing import Any

import pytest

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.core.reader import Reader
from contextmesh.errors import UsageError
from contextmesh.investigation.ranking import rank
from contextmesh.investigation.retrieval import check_question, retrieve
from contextmesh.investigation.search import Search
from contextmesh.investigation.vocabulary import DEFAULT, Bounds, Vocabulary
from tests.investigation.retrieval.graphs import START, fill, memory, texts


def ranked(question: str, graph: Reader, vocabulary: Vocabulary = DEFAULT) -> list[str]:
    return [seed.id for seed in retrieve(Search(question, graph, vocabulary)).seeds]


def test_in_terms_mode_a_facts_score_is_the_sum_of_its_terms_weights() -> None:
    graph = memory(texts(a="pump valve", b="pump", c="motor", d="seal"))
    seeds = retrieve(Search("pump or valve?", graph, DEFAULT, mode="terms")).seeds
    assert [(seed.id, seed.terms) for seed in seeds] == [("a", ("pump", "valve")), ("b", ("pump",))]
    # ln(1 + (N - n + 0.5) / (n + 0.5)), N = 4: n = 2 for pump, n = 1 for valve
    assert seeds[0].score == pytest.approx(math.log(2) + math.log(10 / 3), abs=1e-5)


def test_the_next_best_are_spread_over_the_sessions() -> None:
    graph = memory(texts(**{f"x{at:02}": "motor" for at in range(60)}))
    for session, count in (("s", 15), ("t", 2)):
        graph.add_object("Session", {"label": session}, id=session)
        for at in range(count):
            key = f"{session}{at:02}"
            graph.add_object("Memory", {"label": "pump", "text": "pump" + " seal" * (session == "t")}, id=key)
            graph.add_relation(session, key, "HAS_MEMORY")
    search = Search("pump", graph, Vocabulary(bounds=Bounds(seeds=12, context=16)))
    assert {row.id[0] for row in rank(search).rows[:15]} == {"s"}
    found = retrieve(search)
    assert {seed.id[0] for seed in found.seeds} == {"s"}
    assert "t" in {seed.id[0] for seed in found.also}


def test_rarer_terms_rank_first() -> None:
    graph = memory(texts(a="pump", b="pump", c="pump", z="valve", x="motor", y="seal"))
    assert ranked("pump valve", graph)[0] == "z"


def test_more_terms_rank_before_fewer() -> None:
    graph = memory(texts(a="pump", b="valve", z="pump valve", x="motor", y="seal"))
    assert ranked("pump valve", graph) == ["z", "a", "b"]


def test_newer_facts_rank_first_among_equals_then_ids() -> None:
    graph = Graph(clock=TickingClock(START))
    with graph.batch():
        fill(graph, texts(b="pump", a="pump"), [])
    fill(graph, texts(y="pump", x="motor", w="seal", v="gear"), [])
    assert ranked("pump", graph) == ["y", "a", "b"]


@pytest.mark.parametrize(("share", "found"), [(10, []), (9, []), (8, 8)])
def test_a_term_in_nearly_every_fact_selects_nothing(share: int, found: Any) -> None:
    graph = memory(texts(**{f"f{n}": "pump" if n < share else "motor" for n in range(10)}))
    result = retrieve(Search("the pump?", graph, DEFAULT))
    assert len(result.seeds) == (found or 0)
    assert result.notes == (() if found else ("'pump' is in nearly every fact, so it selects nothing.",))


def test_in_a_tiny_workspace_every_term_counts() -> None:
    assert ranked("pump", memory(texts(a="pump", b="pump"))) == ["a", "b"]


@pytest.mark.parametrize("question", ["why did the and of", "qwertzuiop", "?!", "🦑", "' OR 1=1 --"])
def test_nothing_relevant_is_nothing_returned(question: str) -> None:
    graph = memory(texts(a="pump", b="valve"), [("a", "RELATES_TO", "b")])
    found = retrieve(Search(question, graph, DEFAULT))
    assert (found.seeds, found.context, found.relations, found.paths) == ((), (), (), ())


def test_identifiers_match_whole_and_in_parts() -> None:
    graph = memory(texts(a="order-service down", b="the order of service", c="OrderService down", d="x", e="y"))
    assert ranked("order-service", graph)[0] == "a"
    assert set(ranked("order service", graph)) == {"a", "b", "c"}
    assert ranked("OrderService", graph)[0] == "c"


def test_what_matches_by_a_common_word_alone_is_no_seed_beside_a_rare_one() -> None:
    graph = memory(texts(**{f"f{n:02}": "pump" if n < 20 else "motor" for n in range(29)}, rare="valve"))
    # N = 30: pump weighs ln(1 + 10.5 / 20.5) = 0.41, valve ln(1 + 29.5 / 1.5) = 3.03
    assert ranked("pump valve", graph) == ["rare"]
    assert len(ranked("pump", graph)) == 12


@pytest.mark.parametrize(
    ("question", "message"), [(" ", "the question is empty"), ("x" * 2001, "has 2,001 characters; at")]
)
def test_a_question_is_bounded(question: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_question(question, DEFAULT)
    assert check_question("x" * 2000, DEFAULT) == "x" * 2000
