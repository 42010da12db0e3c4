"""Paths: every one is real, all stay within the bounds, and memory and FalkorDB find the same."""

import itertools
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.core.reader import Reader
from contextmesh.investigation.paths import paths_between
from contextmesh.investigation.retrieval import Retrieval, retrieve
from contextmesh.investigation.search import Search
from contextmesh.investigation.vocabulary import DEFAULT, RELATIONS, Bounds, Vocabulary
from contextmesh.investigation.weighing import weigh
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from tests.investigation.making import entity, evidence, link, reading
from tests.investigation.retrieval.graphs import FACTS, SEMANTIC, START, WORDS, fill, memory


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
