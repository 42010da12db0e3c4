"""Promoting again, through several branches, and which branches may be promoted. Over every kind of store."""

import pytest

from contextmesh.core.branches import fork
from contextmesh.core.branches import snapshot as look_back
from contextmesh.core.diff import diff
from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.promote import promote
from contextmesh.errors import PromoteLineageError, ReadOnlyError
from tests.core.branching import Family, agrees_with_replay, filled, ids
from tests.core.promote.plans import change_everything, changes, conflicts, planned, promoted

# Again, and through several branches


def test_a_second_promote_brings_only_what_came_after_the_first(graph: Graph, alt: Graph) -> None:
    """And nothing that the first one brought stands against it."""
    change_everything(alt)
    promoted(graph, alt)
    assert planned(graph, alt).is_empty
    assert promoted(graph, alt).marker_event_id is None
    alt.patch_object("a", {"n": 11})
    alt.patch_object("d", {"n": 5})
    alt.remove_relation("da")
    alt.remove_object("c")
    graph.add_object("Task", id="mine")
    result = promoted(graph, alt)
    assert changes(result.plan) == {
        "objects_patched": ["a", "d"],
        "objects_removed": ["c"],
        "relations_removed": ["da"],
    }
    assert result.plan.conflicts == ()
    assert result.plan.forked_at_event == "evt_005"
    assert ids(diff(graph, alt).divergent_objects) == ["mine"]
    for n in range(3):
        alt.patch_object("a", {"n": 20 + n})
        assert changes(promoted(graph, alt).plan) == {"objects_patched": ["a"]}
    assert graph.get_object("a").data["n"] == 22
    agrees_with_replay(graph)


def test_a_second_promote_and_what_the_parent_changed_since(graph: Graph, alt: Graph) -> None:
    alt.patch_object("a", {"n": 10})
    promoted(graph, alt)
    graph.patch_object("a", {"n": 11})
    alt.patch_object("b", {"n": 20})
    assert changes(promoted(graph, alt).plan) == {"objects_patched": ["b"]}
    assert graph.get_object("a").data["n"] == 11
    alt.patch_object("a", {"n": 12})
    plan = planned(graph, alt)
    assert conflicts(plan) == [("both_changed", "object", "a")]
    [row] = plan.conflicts
    assert [state["data"]["n"] for state in (row.in_base, row.in_parent, row.in_fork)] == [10, 11, 12]
    graph.patch_object("a", {"n": 10})
    assert planned(graph, alt).is_promotable
    promoted(graph, alt)
    assert graph.get_object("a").data["n"] == 12


def test_what_the_parent_changed_before_the_first_promote_stands_against_the_second(graph: Graph, alt: Graph) -> None:
    graph.patch_object("b", {"n": 20})
    alt.patch_object("a", {"n": 10})
    promoted(graph, alt)
    alt.patch_object("b", {"n": 21})
    [row] = planned(graph, alt).conflicts
    assert [state["data"]["n"] for state in (row.in_base, row.in_parent, row.in_fork)] == [2, 20, 21]


def test_what_follows_a_promote_by_its_cause_is_the_parents_own(graph: Graph, alt: Graph) -> None:
    """Only the events of the promote's own batch are the fork's, whatever names the marker as its cause."""
    alt.patch_object("a", {"n": 10})
    marker = promoted(graph, alt).marker_event_id
    graph.patch_object("a", {"n": 11}, actor="promote", caused_by=marker)
    alt.patch_object("a", {"n": 12})
    assert conflicts(planned(graph, alt)) == [("both_changed", "object", "a")]


def test_an_event_that_only_looks_like_a_marker_is_none(graph: Graph, alt: Graph) -> None:
    for payload in ({}, {"from_run": "another"}):
        graph.emit(Event(type="promote.applied", payload=payload))
    alt.patch_object("a", {"n": 10})
    assert changes(promoted(graph, alt).plan) == {"objects_patched": ["a"]}


def test_an_object_that_a_promote_brought_may_be_removed_by_the_next(graph: Graph, alt: Graph) -> None:
    alt.add_object("Task", id="t")
    alt.add_relation("t", "a", "MENTIONS", id="ta")
    promoted(graph, alt)
    alt.remove_object("t")
    assert changes(promoted(graph, alt).plan) == {"objects_removed": ["t"], "relations_removed": ["ta"]}
    assert diff(graph, alt).is_identical


def test_two_forks_are_promoted_one_after_the_other(graph: Graph) -> None:
    one, two = fork(graph, label="one"), fork(graph, label="two")
    one.patch_object("a", {"n": 10})
    two.patch_object("b", {"n": 20})
    two.add_object("Task", id="t")
    promoted(graph, one)
    promoted(graph, two)
    assert [row.data["n"] for row in graph.objects("Memory")] == [10, 20]
    two.patch_object("a", {"n": 30})
    assert conflicts(planned(graph, two)) == [("both_changed", "object", "a")]
    one.patch_object("b", {"n": 40})
    assert conflicts(planned(graph, one)) == [("both_changed", "object", "b")]


def test_a_grandchild_reaches_the_root_by_way_of_its_parent(graph: Graph, alt: Graph) -> None:
    alt.patch_object("a", {"n": 10})
    twig = fork(alt, label="twig")
    twig.patch_object("a", {"n": 100})
    twig.add_object("Task", id="t")
    promoted(alt, twig)
    assert diff(alt, twig).is_identical
    promoted(graph, alt)
    assert diff(graph, twig).is_identical
    twig.patch_object("t", {"n": 1})
    promoted(alt, twig)
    assert changes(promoted(graph, alt).plan) == {"objects_patched": ["t"]}
    assert diff(graph, twig).is_identical
    agrees_with_replay(graph)


def test_a_grandchild_that_begins_before_its_parent_does(graph: Graph) -> None:
    """What the parent shares beyond that point is the parent's own change."""
    alt = fork(graph, 5, "alt")
    twig = fork(alt, 3, "twig")
    twig.patch_object("a", {"n": 10})
    twig.add_relation("a", "c", "MENTIONS", id="ab")
    assert conflicts(planned(alt, twig)) == [("both_changed", "relation", "ab")]
    twig.remove_relation("ab")
    promoted(alt, twig)
    assert (alt.get_object("a").data["n"], ids(alt.relations())) == (10, ["ab", "bc"])
    assert alt.events[-3].payload["forked_at_event"] == "evt_003"


def test_a_fork_made_after_a_promote_shares_it(graph: Graph, alt: Graph) -> None:
    alt.patch_object("a", {"n": 10})
    promoted(graph, alt)
    late = fork(graph, label="late")
    late.patch_object("a", {"n": 11})
    promoted(graph, late)
    alt.patch_object("a", {"n": 12})
    assert conflicts(planned(graph, alt)) == [("both_changed", "object", "a")]


def test_a_promote_of_branches_that_were_opened_anew(family: Family) -> None:
    alt = fork(filled(family.root()), label="alt")
    change_everything(alt)
    promoted(family.root(), family.branch("alt"))
    again = family.branch("alt")
    again.patch_object("a", {"n": 11})
    assert changes(promoted(family.root(), family.branch("alt")).plan) == {"objects_patched": ["a"]}
    graph = family.root()
    assert diff(graph, family.branch("alt")).is_identical
    agrees_with_replay(graph)


# Which branches


def test_only_a_fork_is_promoted_into_its_own_parent(graph: Graph, alt: Graph) -> None:
    twig, sibling = fork(alt, label="twig"), fork(graph, label="sibling")
    stranger = filled(Graph())
    cases = [
        (sibling, alt, "'alt' was not forked from 'sibling'"),
        (alt, graph, "'main' was not forked from 'alt'"),
        (graph, twig, "'twig' was not forked from 'main'"),
        (twig, graph, "'main' was not forked from 'twig'"),
        (alt, sibling, "'sibling' was not forked from 'alt'"),
        (graph, graph, "'main' was not forked from 'main'"),
        (alt, alt, "'alt' was not forked from 'alt'"),
        (graph, stranger, "'main' was not forked from 'main'"),
        (graph, fork(stranger, label="alt"), "'alt' was not forked from 'main'"),
    ]
    for parent, branch, match in cases:
        before = len(parent.events)
        for dry_run in (True, False):
            with pytest.raises(PromoteLineageError, match=f"{match}; promote a branch into the one that it was"):
                promote(parent, branch, dry_run=dry_run)
        assert len(parent.events) == before


def test_a_promote_into_a_look_at_the_past_is_refused(graph: Graph, alt: Graph) -> None:
    alt.add_object("Task", id="t")
    graph.read_only = True
    assert changes(planned(graph, alt)) == {"objects_created": ["t"]}
    with pytest.raises(ReadOnlyError, match="look into the past"):
        promote(graph, alt)
    past = look_back(alt, 6)
    graph.read_only = False
    alt.remove_object("t")
    with pytest.raises(PromoteLineageError, match="was not forked from"):
        promote(graph, past)
    past.store.close()
