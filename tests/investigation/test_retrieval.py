"""Question -> evidence: what is found, in which order, within which bounds, and that every path is real."""

import itertools
import json
import math
import random
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextmesh.core.events import FrozenClock, TickingClock
from contextmesh.core.graph import Graph
from contextmesh.core.reader import Reader
from contextmesh.errors import UsageError
from contextmesh.investigation.paths import paths_between
from contextmesh.investigation.ranking import rank
from contextmesh.investigation.retrieval import Retrieval, check_question, retrieve
from contextmesh.investigation.search import Search
from contextmesh.investigation.vocabulary import DEFAULT, RELATIONS, Bounds, Vocabulary
from contextmesh.investigation.weighing import weigh
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from tests.investigation.making import QUESTION, entity, evidence, link, reading

START = datetime(2026, 1, 1, tzinfo=UTC)
NOON = FrozenClock(START)
SEMANTIC = {"MENTIONS", "RELATES_TO", "SUPPORTS", "DEPENDS_ON", "OWNED_BY", "AFFECTS", "RESOLVED_BY"}
FACTS = {"Memory", "Evidence", "Entity"}
WORDS = ["pump", "valve", "motor", "seal", "rotor", "shaft", "gasket", "bearing"]
WORDS += ["flange", "nozzle", "piston", "crank", "gear", "belt", "clutch", "brake"]


def memory(facts: Sequence[tuple[str, str, dict[str, Any]]], links: Sequence[tuple[str, str, str]] = ()) -> Graph:
    """Return an in-memory graph of (kind, id, data) and (source, type, target)."""
    graph = Graph(clock=NOON)
    fill(graph, facts, links)
    return graph


def fill(graph: Graph, facts: Sequence[tuple[str, str, dict[str, Any]]], links: Sequence[tuple[str, str, str]]) -> None:
    for kind, key, data in facts:
        graph.add_object(kind, data, id=key)
    for source, type_, target in links:
        graph.add_relation(source, target, type_, id=f"{source}>{type_}>{target}")


def texts(**found: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [("Evidence", key, {"label": key, "text": text}) for key, text in found.items()]


def ranked(question: str, graph: Reader, vocabulary: Vocabulary = DEFAULT) -> list[str]:
    return [seed.id for seed in retrieve(Search(question, graph, vocabulary)).seeds]


def check_paths(found: Retrieval, reader: Reader, bounds: Bounds = DEFAULT.bounds) -> None:
    """Every path is made of edges of the graph and of nodes of the context; the context itself is of current facts."""
    edges = {row.id: row for row in reader.relations()}
    objects = {row.id: row for row in reader.objects()}
    assert len(found.seeds) <= bounds.seeds
    assert len(found.context) == len(set(found.context)) <= bounds.context
    assert list(found.context[: len(found.seeds)]) == [seed.id for seed in found.seeds]
    assert {objects[key].type for key in found.context} <= FACTS
    assert not [key for key in found.context if {"superseded", "withdrawn"} & objects[key].data.keys()]
    for key in found.relations:
        assert edges[key].type in SEMANTIC
        assert {edges[key].source, edges[key].target} <= set(found.context)
    assert len(found.paths) <= bounds.paths
    for path in found.paths:
        assert 1 <= len(path.relations) <= bounds.hops
        assert len(path.nodes) == len(path.relations) + 1
        assert len(set(path.nodes)) == len(path.nodes)
        assert set(path.nodes) <= set(found.context)
        assert set(path.relations) <= set(found.relations)
        for near, key, far in zip(path.nodes, path.relations, path.nodes[1:], strict=False):
            assert {edges[key].source, edges[key].target} == {near, far}
    taken = [frozenset(path.relations) for path in found.paths]
    assert len(taken) == len(set(taken))
    lengths = [len(path.relations) for path in found.paths]
    between = [{path.nodes[0], path.nodes[-1]} <= set(found.named) for path in found.paths]
    first = between.index(False) if False in between else len(between)
    assert lengths[:first] == sorted(lengths[:first])
    assert lengths[first:] == sorted(lengths[first:])
    assert len(found.named) != 1
    assert found.named or not any(between)


# ranking


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


@pytest.mark.parametrize(
    ("question", "message"), [(" ", "the question is empty"), ("x" * 2001, "has 2,001 characters; at")]
)
def test_a_question_is_bounded(question: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_question(question, DEFAULT)
    assert check_question("x" * 2000, DEFAULT) == "x" * 2000


# bounds


def dense(count: int = 60, step: int = 12) -> Graph:
    """Return a graph in which each of many facts is related to its next twelve."""
    facts = [("Evidence", f"f{n:02}", {"label": f"{WORDS[n % 16]} word{n}", "text": "x"}) for n in range(count)]
    links = [
        (f"f{n:02}", sorted(SEMANTIC)[far % 7], f"f{(n + far) % count:02}")
        for n in range(count)
        for far in range(1, step)
    ]
    return memory(facts, links)


@pytest.mark.parametrize("question", [" ".join(WORDS), " ".join(f"word{n}" for n in range(60)), "pump", "word1 word30"])
def test_a_dense_graph_stays_within_the_bounds(question: str) -> None:
    graph = dense()
    found = retrieve(Search(question, graph, DEFAULT))
    check_paths(found, graph)
    assert len({term for seed in found.seeds for term in seed.terms}) <= 12
    assert len(weigh(Search(question, graph, DEFAULT)).weights) <= 12
    assert len(found.context) == 20
    assert len(found.paths) == 80
    assert max(len(path.relations) for path in found.paths) <= 3


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(terms=2, seeds=1, hops=1, context=5, paths=4),
        Bounds(hops=0),
        Bounds(paths=0),
        Bounds(neighbours=1),
        pytest.param(Bounds(context=3)),
    ],
    ids=str,
)
def test_the_vocabularys_bounds_hold(bounds: Bounds) -> None:
    graph = dense()
    found = retrieve(Search(" ".join(WORDS), graph, Vocabulary(bounds=bounds)))
    check_paths(found, graph, bounds)
    assert len({term for seed in found.seeds for term in seed.terms}) <= bounds.terms


@pytest.mark.parametrize(("hops", "limit"), [(1, 1), (2, 5), (3, 20), (4, 7), (10, 3)])
def test_paths_between_take_their_own_bounds(hops: int, limit: int) -> None:
    graph = dense()
    found = paths_between("f00", "f05", graph, DEFAULT, hops=hops, limit=limit)
    assert 1 <= len(found) <= limit
    edges = {row.id: {row.source, row.target} for row in graph.relations()}
    for path in found:
        assert (path.nodes[0], path.nodes[-1]) == ("f00", "f05")
        assert len(set(path.nodes)) == len(path.nodes) <= hops + 1
        assert [edges[key] for key in path.relations] == [set(pair) for pair in itertools.pairwise(path.nodes)]
    assert [len(path.relations) for path in found] == sorted(len(path.relations) for path in found)


# laws

drawn_facts = st.lists(
    st.tuples(
        st.sampled_from(["Entity", "Evidence", "Memory", "Memory", "Session", "Decision", "Run"]),
        st.lists(st.sampled_from([*WORDS[:6], "Größe", "🔥", "v1.2", "order-api"]), max_size=5).map(" ".join),
        st.sampled_from([None, None, None, "superseded", "withdrawn"]),
    ),
    min_size=1,
    max_size=30,
)
drawn_links = st.lists(
    st.tuples(st.integers(0, 29), st.sampled_from(sorted(RELATIONS)), st.integers(0, 29)), max_size=60, unique=True
)
drawn_question = st.lists(st.sampled_from([*WORDS[:7], "Größe", "🔥", "v1.2", "order-api", "the"]), max_size=6).map(
    " ".join
)


def built(graph: Graph, facts: Any, links: Any) -> None:
    rows = [
        (kind, f"n{at}", {"label": text, "text": text} | ({state: True} if state else {}))
        for at, (kind, text, state) in enumerate(facts)
    ]
    size = len(rows)
    pairs = {(f"n{a % size}", type_, f"n{b % size}"): None for a, type_, b in links}
    with graph.batch():
        fill(graph, rows[::2], [])
    with graph.batch():
        fill(graph, rows[1::2], list(pairs))


@settings(max_examples=25)
@given(facts=drawn_facts, links=drawn_links, question=drawn_question)
def test_memory_and_falkordb_find_the_same_real_paths(
    server: Server, workspace: Any, facts: Any, links: Any, question: str
) -> None:
    plain = Graph(clock=TickingClock(START))
    built(plain, facts, links)
    with workspace() as name:
        stored = Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name), clock=TickingClock(START))
        built(stored, facts, links)
        found = retrieve(Search(question, stored, DEFAULT))
        check_paths(found, stored)
        assert found == retrieve(Search(question, plain, DEFAULT))
        for far in ("n1", "n2"):
            if stored.get_object(far):
                between = [paths_between("n0", far, graph, DEFAULT, hops=3, limit=20) for graph in (stored, plain)]
                assert between[0] == between[1]


@pytest.mark.parametrize("seed", [1, 2])
def test_paths_of_a_larger_random_graph_are_real(ws: Workspace, seed: int) -> None:
    generator = random.Random(seed)
    facts = [
        (entity if generator.random() < 0.6 else evidence)(
            f"f{n}", f"{generator.choice(WORDS)} {generator.choice(WORDS)} {n}"
        )
        for n in range(140)
    ]
    types = sorted(SEMANTIC)
    pairs = {(generator.randrange(140), generator.choice(types), generator.randrange(140)): None for _ in range(400)}
    ws.ingest([reading(facts, [link(f"f{a}", type_, f"f{b}") for a, type_, b in pairs])])
    for n in range(5):
        ws.session(f"s{n}").note(f"{WORDS[n]} {WORDS[n + 1]} noted")
    for question in ("pump and motor", "which gear, belt or clutch?", "rotor shaft 17"):
        inv = ws.session("ask").investigate(question)
        check_paths(retrieve(Search(question, ws.graph, DEFAULT)), ws.graph)
        edges = {row.id: row for row in ws.graph.relations()}
        inside = set(inv.evidence["id"])
        assert len(inv.paths) > 0
        for path in inv.to_dict()["paths"]:
            assert set(path["nodes"]) <= inside
            ends = [{edges[key].source, edges[key].target} for key in path["relations"]]
            assert ends == [set(pair) for pair in itertools.pairwise(path["nodes"])]
            assert {edges[key].type for key in path["relations"]} <= SEMANTIC
        assert {ws.graph.get_object(key).type for key in inside} <= FACTS


@pytest.mark.parametrize("seed", [1, 2])
def test_shuffled_insertion_gives_the_same_investigation(opened: Callable[..., Workspace], seed: int) -> None:
    facts = [entity(f"f{n}", f"{WORDS[n % 16]} {WORDS[n * 7 % 16]}") for n in range(40)]
    links = [link(f"f{n}", sorted(SEMANTIC)[n % 7], f"f{(n * 11 + 3) % 40}") for n in range(40)]
    results = []
    for shuffled in (False, True):
        if shuffled:
            random.Random(seed).shuffle(facts)
            random.Random(seed).shuffle(links)
        ws = opened(clock=NOON)
        for at in range(0, 40, 8):
            ws.ingest([reading(facts[at : at + 8])])
        ws.ingest([reading([], links)])
        inv = ws.session("ask").investigate("Which pump, valve or motor affects the seal of the rotor?")
        results.append(inv.to_dict())
    assert results[0] == results[1]
    assert len(results[0]["evidence"]) == 20


# what a user sees of it


def test_reasons_name_terms_and_connection(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate("Who is Maya?")
    reasons = dict(zip(inv.evidence["id"], inv.evidence["reasons"], strict=True))
    assert re.fullmatch(r"matches 'Maya' \(score \d\.\d\d\)", reasons["maya-chen"])
    assert reasons["checkout-api"] == "connected: Maya Chen ←OWNED_BY— Checkout API"
    assert reasons["redis-change"] == "connected: Maya Chen ←OWNED_BY— Checkout API ←AFFECTS— Release 2.4"


def test_an_unrelated_question_says_that_nothing_matches(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate("Quel est le poids d'une baleine?")
    assert inv.evidence.empty
    assert inv.paths.empty
    assert list(inv.evidence.columns) == ["id", "kind", "label", "text", "source", "reasons"]
    assert inv.answer == "Nothing in this workspace matches the question, so there is no evidence and no answer."
    assert "Nothing in this workspace matches the question." in list(inv.gaps["gap"])
    assert list(inv.tasks["status"]) == ["blocked"] * 3
    assert inv.decision["evidence"] == []
    assert acme.graph.relations(target=inv.decision["id"], type="SUPPORTS") == []
    assert inv.status == "completed"


def test_generated_records_never_come_back_as_evidence(acme: Workspace) -> None:
    marker = "xyzzymarker"
    first = acme.session("Tuesday").investigate(f"{marker}: {QUESTION}")
    before = json.dumps(first.to_dict()["evidence"])
    for number in range(10):
        inv = acme.session(f"Session {number}").investigate(f"{marker}: {QUESTION}")
        assert set(inv.evidence["kind"]) <= FACTS
        assert json.dumps(inv.to_dict()["evidence"]) == before
        assert not [key for path in inv.to_dict()["paths"] for key in path["nodes"] if key.startswith("Run#")]
        assert marker not in inv.answer
    assert acme.search(marker).empty
    assert acme.session("last").investigate(f"{marker}?").evidence.empty
