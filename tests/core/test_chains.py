"""Chains: what fits, in which order, and what is refused; FalkorDB, memory and an enumeration of everything agree."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextmesh.core.chains import check_chain
from contextmesh.core.events import Event
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.projection import fold
from contextmesh.errors import InvalidNameError, UsageError
from contextmesh.stores.falkordb import FalkorDBGraphStore
from contextmesh.stores.server import Server
from contextmesh.testing import object_created, relation_created
from tests.conftest import Workspace

ENDS = ["a", "b", "c", "d"]
KINDS = st.sampled_from([None, "Memory", "Entity"])
REL = st.tuples(st.sampled_from([None, "T", "U"]), st.sampled_from(["right", "left"]))


def enumerated(kinds: dict[str, str], links: Any, node_types: Any, rels: Any) -> list[tuple[tuple[str, ...], ...]]:
    """Every combination of objects and relations that fits, in order."""
    found = [((key,), ()) for key, kind in kinds.items() if node_types[0] in (None, kind)]
    for (type_, direction), wanted in zip(rels, node_types[1:], strict=True):
        found = [
            ((*path, end), (*edges, name))
            for path, edges in found
            for name, (source, target, kind) in links.items()
            for start, end in [(source, target) if direction == "right" else (target, source)]
            if start == path[-1] and type_ in (None, kind) and end in kinds and wanted in (None, kinds[end])
        ]
    return sorted(found)


@given(
    kinds=st.dictionaries(st.sampled_from(ENDS), st.sampled_from(["Memory", "Entity"]), min_size=2),
    links=st.lists(
        st.tuples(st.sampled_from(ENDS), st.sampled_from(ENDS), st.sampled_from("TU")), min_size=3, max_size=9
    ),
    chains=st.lists(
        st.lists(REL, max_size=3).flatmap(
            lambda rels: st.tuples(st.lists(KINDS, min_size=len(rels) + 1, max_size=len(rels) + 1), st.just(rels))
        ),
        min_size=2,
        max_size=6,
    ),
    limit=st.just(10_000) | st.integers(0, 9),
)
@settings(max_examples=150)
def test_every_store_finds_what_an_enumeration_finds(  # noqa: PLR0917 - what is drawn
    server: Server, workspace: Workspace, kinds: Any, links: Any, chains: Any, limit: int
) -> None:
    events: list[Event] = [object_created(n, *item) for n, item in enumerate(kinds.items())]
    named = {f"r{n}": link for n, link in enumerate(links)}
    events += [relation_created(n, name, *link) for n, (name, link) in enumerate(named.items())]
    with workspace() as name:
        for store in (InMemoryGraphStore(), FalkorDBGraphStore(server, name)):
            assert store.apply(fold(events), expected=0, new=len(events))
            for node_types, rels in chains:
                expected = enumerated(kinds, named, node_types, rels)[:limit]
                matches = store.match_chain(node_types, rels, limit)
                found = [tuple(tuple(row.id for row in part) for part in (m.objects, m.relations)) for m in matches]
                assert found == expected


def test_a_walk_takes_no_time_over_what_leads_nowhere() -> None:
    """Sixty nodes of degree twenty, ten hops, and a last type that nothing has: 20^10 ways that lead nowhere."""
    store = InMemoryGraphStore()
    events = [object_created(n, f"n{n}") for n in range(60)]
    events += [relation_created(n, f"r{n}", f"n{n % 60}", f"n{(n + n // 60) % 60}") for n in range(1200)]
    assert store.apply(fold(events), expected=0, new=len(events))
    assert store.match_chain([*["Memory"] * 10, "Entity"], [(None, "right")] * 10, 5) == []
    assert len(store.match_chain(["Memory"] * 11, [(None, "right")] * 10, 5)) == 5


@pytest.mark.parametrize(
    ("node_types", "rels", "limit", "message"),
    [
        ([], [], 9, "one node type more than relations; got node types .. and relations .."),
        (["A", "B"], [], 9, "one node type more than relations"),
        (["A"], [("T", "right")], 9, "one node type more than relations"),
        ("AB", [("T", "right")], 9, "one node type more than relations; got node types 'AB'"),
        (["A"] * 12, [("T", "right")] * 11, 9, "the chain has 11 hops; at most 10 are taken"),
        (["A", "B"], ["T"], 9, r"a chain has the relation 'T'; expected \(type or None, 'right' or 'left'\)"),
        (["A", "B"], [("T", "out")], 9, r"a chain has the relation \('T', 'out'\)"),
        (["A", "B"], [("T",)], 9, "a chain has the relation"),
        (["A"], [], -1, "limit is -1; expected a whole number from 0"),
        (["A"], [], True, "limit is True"),
        (["A"], [], None, "limit is None"),
    ],
)
def test_refused_chain(node_types: Any, rels: Any, limit: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_chain(node_types, rels, limit)


@pytest.mark.parametrize(("node_types", "rels"), [(["A b", None], [(None, "left")]), (["A", None], [("T`", "left")])])
def test_a_hostile_type_is_refused(node_types: Any, rels: Any) -> None:
    with pytest.raises(InvalidNameError, match="is no type; expected a letter"):
        check_chain(node_types, rels, 9)
