"""What stands against a promote. Over every kind of store."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from contextmesh.core.graph import Graph
from contextmesh.core.plan import PromotePlan
from contextmesh.core.promote import promote
from contextmesh.errors import PromoteConflictError
from tests.core.branching import ids, snapshot
from tests.core.promote.plans import conflicts, planned, promoted

Act = Callable[[Graph], object]


def patched(key: str, **fields: Any) -> Act:
    return lambda graph: graph.patch_object(key, fields)


def gone(key: str) -> Act:
    return lambda graph: graph.remove_object(key)


def cut(key: str) -> Act:
    return lambda graph: graph.remove_relation(key)


def made(key: str, n: int) -> Act:
    return lambda graph: graph.add_object("Task", {"n": n}, id=key)


def related(key: str, source: str, target: str, type: str = "MENTIONS") -> Act:
    return lambda graph: graph.add_relation(source, target, type, id=key)


def both(*acts: Act) -> Act:
    return lambda graph: [each(graph) for each in acts]


# What the parent does, what the fork does, and what they then have both changed.
BOTH = {
    "changed, changed": (patched("a", n=2), patched("a", n=3), "a"),
    "changed, another field": (patched("a", x=2), patched("a", y=3), "a"),
    "identical edits": (patched("a", n=2), patched("a", n=2), "a"),
    "created, created": (made("t", 1), made("t", 2), "t"),
    "created alike": (made("t", 1), made("t", 1), "t"),
    "removed, changed": (gone("c"), patched("c", n=9), "c"),
    "changed, removed": (patched("c", n=9), gone("c"), "c"),
    "relation created, created": (related("ac", "a", "c"), related("ac", "c", "a"), "ac"),
    "relation created alike": (related("ac", "a", "c"), related("ac", "a", "c"), "ac"),
    "relation removed, removed": (cut("ab"), cut("ab"), "ab"),
    "relation removed, remade": (cut("ab"), both(cut("ab"), related("ab", "a", "b", "SUPPORTS")), "ab"),
    "relation remade, removed": (both(cut("ab"), related("ab", "b", "a")), cut("ab"), "ab"),
    "relation gone with an end, removed": (gone("a"), cut("ab"), "ab"),
    "relation removed, gone with an end": (cut("ab"), gone("a"), "ab"),
    "relation gone with one end, with the other": (gone("a"), gone("b"), "ab"),
    "relation gone with an end, remade elsewhere": (gone("a"), both(gone("b"), related("ab", "c", "c")), "ab"),
    "relation remade elsewhere, gone with an end": (both(cut("ab"), related("ab", "c", "c")), gone("a"), "ab"),
}


@pytest.mark.parametrize("case", BOTH)
def test_what_both_changed_is_a_conflict(graph: Graph, alt: Graph, case: str) -> None:
    here, there, key = BOTH[case]
    entity = "relation" if case.startswith("relation") else "object"
    base = state(graph, entity, key)
    here(graph)
    there(alt)
    plan = planned(graph, alt)
    assert ("both_changed", entity, key) in conflicts(plan)
    [row] = [row for row in plan.conflicts if row.id == key]
    assert (row.in_base, row.in_parent, row.in_fork) == (base, state(graph, entity, key), state(alt, entity, key))
    assert row.detail == f"{entity} '{key}' was changed on both sides"
    assert not plan.is_promotable
    refused(graph, alt, r"the branch 'alt' cannot be promoted: .*; nothing was changed\. Settle it in the fork or its")


def state(graph: Graph, entity: str, key: str) -> dict[str, Any] | None:
    row = graph.get_object(key) if entity == "object" else graph.get_relation(key)
    return {name: value for name, value in row.to_dict().items() if name != "provenance"} if row else None


def refused(graph: Graph, branch: Graph, match: str) -> PromotePlan:
    """A promote is refused with its plan, and changes nothing."""
    before = snapshot(graph), graph.events[:], snapshot(branch), branch.events[:]
    with pytest.raises(PromoteConflictError, match=match) as refusal:
        promote(graph, branch)
    assert (snapshot(graph), graph.events[:], snapshot(branch), branch.events[:]) == before
    plan = refusal.value.plan
    assert isinstance(plan, PromotePlan)
    assert plan == planned(graph, branch)
    assert pickle.loads(pickle.dumps(refusal.value)).plan == plan  # noqa: S301 - made right here
    return plan


def test_both_removed_an_object_is_a_conflict_of_it_and_of_what_went_along(graph: Graph, alt: Graph) -> None:
    for each in (graph, alt):
        each.remove_object("b")
    assert conflicts(planned(graph, alt)) == [
        ("both_changed", "object", "b"),
        ("both_changed", "relation", "ab"),
        ("both_changed", "relation", "bc"),
    ]
    [first, *_] = planned(graph, alt).conflicts
    assert (first.in_base, first.in_parent, first.in_fork) == (
        {"id": "b", "type": "Memory", "data": {"n": 2}, "version": 1},
        None,
        None,
    )


def test_a_relation_whose_end_the_parent_removed_would_dangle(graph: Graph, alt: Graph) -> None:
    graph.remove_object("c")
    alt.add_relation("a", "c", "MENTIONS", {"x": 1}, id="ac")
    alt.add_relation("c", "nobody", "MENTIONS", id="cx")
    plan = refused(graph, alt, "'ac' would dangle: 'c' is in the fork and would not be in the parent, and 1 more")
    assert conflicts(plan) == [("dangling_relation", "relation", "ac"), ("dangling_relation", "relation", "cx")]
    row = plan.conflicts[0]
    assert (row.in_base, row.in_parent) == (None, None)
    assert row.in_fork == {"id": "ac", "source": "a", "target": "c", "type": "MENTIONS", "data": {"x": 1}}
    graph.add_object("Entity", {"n": 3}, id="c")
    graph.add_relation("b", "c", "MENTIONS", id="bc")
    assert planned(graph, alt).is_promotable


def test_a_relation_turned_to_what_the_parent_removed_would_dangle(graph: Graph, alt: Graph) -> None:
    """All three states are told, also of a relation that there was before."""
    graph.remove_object("c")
    alt.remove_relation("ab")
    alt.add_relation("a", "c", "MENTIONS", id="ab")
    [row] = [row for row in planned(graph, alt).conflicts if row.kind == "dangling_relation"]
    assert (row.in_base, row.in_parent, row.in_fork) == (
        {"id": "ab", "source": "a", "target": "b", "type": "MENTIONS", "data": {}},
        {"id": "ab", "source": "a", "target": "b", "type": "MENTIONS", "data": {}},
        {"id": "ab", "source": "a", "target": "c", "type": "MENTIONS", "data": {}},
    )


def test_a_removal_that_would_take_a_relation_of_the_parent_along(graph: Graph, alt: Graph) -> None:
    """The fork's own view of what touches the object is no permission to remove what it never saw."""
    graph.add_relation("c", "a", "SUPPORTS", {"of": "parent"}, id="ca")
    graph.add_relation("a", "nobody", "MENTIONS", id="ax")
    alt.remove_object("a")
    plan = refused(graph, alt, "would take along the relation 'ax', which the fork does not have, and 1 more")
    assert conflicts(plan) == [("orphaning_removal", "relation", "ax"), ("orphaning_removal", "relation", "ca")]
    row = plan.conflicts[1]
    assert (row.in_base, row.in_fork) == (None, None)
    assert row.in_parent == {"id": "ca", "source": "c", "target": "a", "type": "SUPPORTS", "data": {"of": "parent"}}
    graph.remove_relation("ca")
    graph.remove_relation("ax")
    promoted(graph, alt)
    assert ids(graph.objects()) == ["b", "c"]


def test_a_removal_and_a_relation_that_the_parent_turned_to_it(graph: Graph, alt: Graph) -> None:
    graph.remove_relation("bc")
    graph.add_relation("b", "a", "MENTIONS", id="bc")
    alt.remove_object("a")
    [row] = planned(graph, alt).conflicts
    assert (row.kind, row.entity, row.id) == ("orphaning_removal", "relation", "bc")
    assert (row.in_base, row.in_fork) == (
        {"id": "bc", "source": "b", "target": "c", "type": "MENTIONS", "data": {}},
        {"id": "bc", "source": "b", "target": "c", "type": "MENTIONS", "data": {}},
    )
    assert row.in_parent == {"id": "bc", "source": "b", "target": "a", "type": "MENTIONS", "data": {}}


def test_a_relation_that_dangles_on_both_sides_is_no_conflict(graph: Graph, alt: Graph) -> None:
    """What the parent's own relations miss is the parent's affair."""
    graph.remove_object("c")
    graph.add_relation("a", "c", "MENTIONS", id="ac")
    alt.remove_object("a")
    alt.add_object("Entity", id="a")
    plan = planned(graph, alt)
    assert (plan.conflicts, plan.warnings) == ((), ())
    promoted(graph, alt)
    assert ids(graph.relations()) == ["ac"]


def test_every_conflict_is_told(graph: Graph, alt: Graph) -> None:
    graph.add_relation("b", "a", "SUPPORTS", id="ba")
    graph.patch_object("b", {"n": 20})
    graph.remove_object("c")
    alt.patch_object("b", {"n": 21})
    alt.add_relation("b", "c", "SUPPORTS", id="new")
    alt.remove_object("a")
    plan = refused(graph, alt, "object 'b' was changed on both sides, and 2 more")
    assert conflicts(plan) == [
        ("both_changed", "object", "b"),
        ("orphaning_removal", "relation", "ba"),
        ("dangling_relation", "relation", "new"),
    ]
