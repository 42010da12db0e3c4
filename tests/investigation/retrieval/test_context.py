"""Seeds -> context: which relations are walked, how far, and what is never reached."""

import pytest

from contextmesh.investigation.paths import paths_between
from contextmesh.investigation.retrieval import retrieve
from contextmesh.investigation.search import Search
from contextmesh.investigation.vocabulary import DEFAULT, RELATIONS
from tests.investigation.retrieval.graphs import memory, texts


@pytest.mark.parametrize("type_", ["HAS_MEMORY", "GENERATED", "HANDOFF_TO"])
def test_only_relations_of_the_semantic_types_are_walked(type_: str) -> None:
    graph = memory(texts(a="pump", b="motor", c="seal"), [("a", type_, "b"), ("c", type_, "a")])
    found = retrieve(Search("pump", graph, DEFAULT))
    assert (found.context, found.relations, found.paths) == (("a",), (), ())
    assert paths_between("a", "b", graph, DEFAULT, hops=3, limit=9) == []


@pytest.mark.parametrize("state", ["superseded", "withdrawn"])
def test_history_is_neither_seed_nor_context(state: str) -> None:
    facts = [*texts(a="pump", b="motor"), ("Evidence", "old", {"label": "pump pump", "text": "pump", state: True})]
    graph = memory(facts, [("a", "RELATES_TO", "old"), ("old", "RELATES_TO", "b")])
    assert retrieve(Search("pump", graph, DEFAULT)).context == ("a",)


def test_relations_lead_both_ways_for_three_hops_and_no_further() -> None:
    graph = memory(
        texts(a="pump", b="1", c="2", d="3", e="4"),
        [("a", "AFFECTS", "b"), ("c", "OWNED_BY", "b"), ("c", "RELATES_TO", "d"), ("d", "RELATES_TO", "e")],
    )
    found = retrieve(Search("pump", graph, DEFAULT))
    assert found.context == ("a", "b", "c", "d")
    assert {frozenset(path.nodes) for path in found.paths} == {frozenset("ab"), frozenset("abc"), frozenset("abcd")}


def test_no_hub_of_sessions_or_runs_is_crossed() -> None:
    facts = [
        ("Memory", "m1", {"text": "pump"}),
        ("Memory", "m2", {"text": "motor"}),
        ("Session", "s", {"label": "pump"}),
        ("Run", "r", {"label": "pump"}),
        ("Decision", "d", {"text": "pump"}),
        ("Task", "t", {"text": "pump"}),
        ("AgentRun", "ar", {"label": "pump"}),
    ]
    hubs = [
        (hub, type_, memory) for hub in ("s", "r", "d", "t", "ar") for memory in ("m1", "m2") for type_ in RELATIONS
    ]
    graph = memory(facts, hubs)
    for mode in ("terms", "words"):
        assert retrieve(Search("pump", graph, DEFAULT, mode=mode)).context == ("m1",)
    found = retrieve(Search("pump", graph, DEFAULT))
    assert found.context == ("m1", "m2")  # the note beside it in its session, by that alone
    assert set(found.seeds[1].parts) == {"beside"}
    assert found.relations == ()
    assert found.paths == ()
    assert paths_between("m1", "m2", graph, DEFAULT, hops=10, limit=100) == []
