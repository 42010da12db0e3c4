"""Promote: what comes over, what stands against it, and what a failure leaves behind. Over every kind of store.

Run as a script, this file is a process that is killed while it promotes: `python test_promote.py STEP DATA_DIR NAME`.
"""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextmesh.core import promote as promoting
from contextmesh.core.branches import fork
from contextmesh.core.branches import snapshot as look_back
from contextmesh.core.diff import diff
from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.plan import PromotePlan
from contextmesh.core.promote import PromoteResult, promote
from contextmesh.core.runtime import Behavior, Context, Runtime, behavior
from contextmesh.errors import (
    ConcurrentWriterError,
    ContextMeshError,
    ProjectionError,
    PromoteConflictError,
    PromoteLineageError,
    ReadOnlyError,
    UsageError,
)
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server, open_server
from tests.conftest import Workspace
from tests.core.branching import (
    Family,
    Snapshot,
    agrees_with_replay,
    filled,
    ids,
    runtime,
    snapshot,
    types,
)

ROOT = Path(__file__).parents[2]
CHANGES = ("objects_created", "objects_patched", "objects_removed", "relations_created", "relations_removed")


@pytest.fixture
def graph(family: Family) -> Graph:
    """The parent: a graph of five events; see `filled`."""
    return filled(family.root())


@pytest.fixture
def alt(graph: Graph) -> Graph:
    """A fork of `graph` at its tip."""
    return fork(graph, label="alt")


def planned(parent: Graph, branch: Graph) -> PromotePlan:
    plan = promote(parent, branch, dry_run=True)
    assert isinstance(plan, PromotePlan)
    return plan


def promoted(parent: Graph, branch: Graph) -> PromoteResult:
    result = promote(parent, branch)
    assert isinstance(result, PromoteResult)
    return result


def changes(plan: PromotePlan) -> dict[str, list[str]]:
    """Return the ids of each change that a plan brings; those of no kind left out."""
    rows = {name: [row if isinstance(row, str) else row["id"] for row in getattr(plan, name)] for name in CHANGES}
    return {name: row for name, row in rows.items() if row}


def conflicts(plan: PromotePlan) -> list[tuple[str, str, str]]:
    return [(row.kind, row.entity, row.id) for row in plan.conflicts]


def change_everything(graph: Graph) -> None:
    """Make every kind of change: a patched, b removed with what touches it, d and a relation created."""
    graph.patch_object("a", {"n": 10})
    graph.remove_object("b")
    graph.add_object("Task", {"n": 4}, id="d")
    graph.add_relation("d", "a", "SUPPORTS", {"why": "seen"}, id="da")


# What comes over


def test_a_dry_run_changes_nothing(family: Family, graph: Graph, alt: Graph) -> None:
    change_everything(alt)
    before = snapshot(graph), len(graph.events), len(alt.events), family.stored_keys()
    plan = planned(graph, alt)
    assert (snapshot(graph), len(graph.events), len(alt.events), family.stored_keys()) == before
    assert changes(plan) == {
        "objects_created": ["d"],
        "objects_patched": ["a"],
        "objects_removed": ["b"],
        "relations_created": ["da"],
        "relations_removed": ["ab", "bc"],
    }
    assert (plan.is_promotable, plan.is_empty, plan.conflicts, plan.warnings) == (True, False, (), ())
    assert (plan.from_run, plan.into_run, plan.from_branch) == (alt.run_id, graph.run_id, "alt")
    assert (plan.forked_at_event, plan.computed_against) == (graph.events[4].id, graph.events[4].id)
    assert plan.promoted_to == alt.position == 10
    assert plan.objects_created == ({"id": "d", "type": "Task", "data": {"n": 4}, "version": 1},)
    [patched] = plan.objects_patched
    assert patched["data"] == {"n": 10, "text": "redis timeouts"}
    assert plan.relations_created == (
        {"id": "da", "source": "d", "target": "a", "type": "SUPPORTS", "data": {"why": "seen"}},
    )
    assert planned(graph, alt) == plan


def test_a_promote_brings_the_net_change_over(graph: Graph, alt: Graph) -> None:
    change_everything(alt)
    graph.add_object("Task", id="mine")
    plan = planned(graph, alt)
    result = promoted(graph, alt)
    assert result.plan == plan
    assert snapshot(graph)[0].keys() == {"a", "c", "d", "mine"}
    assert diff(graph, alt).summary().splitlines()[1:] == ["Task mine: only in the parent"]
    graph.remove_object("mine")
    assert diff(graph, alt).is_identical
    assert graph.get_object("a").version == 2
    agrees_with_replay(graph)
    agrees_with_replay(alt)


def test_what_a_promote_writes(graph: Graph, alt: Graph) -> None:
    """One batch: a marker first, of exactly its fields, and what it caused, each event caused by it."""
    change_everything(alt)
    alt.add_relation("d", "nobody", "MENTIONS", id="dx")
    computed_against = graph.add_object("Task", id="mine").provenance["created_by"]
    before = graph.position
    result = promoted(graph, alt)
    marker, *delta = graph.events[before:]
    assert marker.type == "promote.applied"
    assert (marker.id, marker.actor) == (result.marker_event_id, "promote")
    assert (marker.caused_by, marker.frame_id) == (None, None)
    assert marker.payload == {
        "from_run": alt.run_id,
        "forked_at_event": "evt_005",
        "computed_against": computed_against,
        "promoted_to": alt.position,
        "objects_created": ["d"],
        "objects_patched": ["a"],
        "objects_removed": ["b"],
        "relations_created": ["da", "dx"],
        "relations_removed": ["ab", "bc"],
        "warnings": ["relation 'dx' dangles in the fork already: there is no object 'nobody'"],
    }
    assert types(delta) == [
        "relation.removed",
        "relation.removed",
        "object.removed",
        "object.created",
        "patch.proposed",
        "patch.applied",
        "relation.created",
        "relation.created",
    ]
    assert {event.caused_by for event in delta} == {marker.id}
    assert tuple(ids(delta)) == result.applied_event_ids
    assert result.computed_against == result.plan.computed_against == computed_against
    entries = graph.log.read(before, 1)
    assert [(row.position, row.last) for row in entries] == [(n, before + 9) for n in range(before + 1, before + 10)]
    assert all(event.id.startswith("evt_") and "alt" not in event.id for event in delta)
    assert graph.get_patch(delta[4].payload["patch"]["id"]).rationale == "promoted from the branch alt"


def test_the_fork_stays_as_it_is(graph: Graph, alt: Graph) -> None:
    change_everything(alt)
    before = snapshot(alt), alt.events[:]
    promoted(graph, alt)
    assert (snapshot(alt), alt.events[:]) == before


def test_a_promote_of_nothing(graph: Graph, alt: Graph) -> None:
    graph.patch_object("a", {"n": 2})
    plan = planned(graph, alt)
    assert (plan.is_empty, plan.is_promotable, changes(plan)) == (True, True, {})
    result = promoted(graph, alt)
    assert (result.marker_event_id, result.applied_event_ids) == (None, ())
    assert result.computed_against == graph.events[-1].id
    assert len(graph.events) == 7
    assert "nothing to do" in result.plan.summary()


def test_a_promote_of_what_was_taken_back(graph: Graph, alt: Graph) -> None:
    """It is the net change that comes over, so there is none, also where the parent changed the same."""
    alt.patch_object("a", {"n": 7})
    alt.patch_object("a", {"n": 1})
    alt.add_object("Task", id="t")
    alt.remove_object("t")
    alt.remove_relation("ab")
    alt.add_relation("a", "b", "MENTIONS", id="ab")
    alt.emit(Event(type="behavior.started", payload={}))
    assert planned(graph, alt).is_empty
    graph.patch_object("a", {"n": 8})
    graph.remove_relation("ab")
    assert promoted(graph, alt).plan.is_empty
    assert (graph.get_object("a").data["n"], ids(graph.relations())) == (8, ["bc"])


def test_what_the_parent_took_back_is_no_change(graph: Graph, alt: Graph) -> None:
    graph.patch_object("a", {"n": 8})
    graph.patch_object("a", {"n": 1})
    graph.remove_relation("bc")
    graph.add_relation("b", "c", "MENTIONS", id="bc")
    alt.patch_object("a", {"n": 9})
    alt.remove_relation("bc")
    assert promoted(graph, alt).plan.is_promotable
    assert (graph.get_object("a").data["n"], ids(graph.relations())) == (9, ["ab"])


def test_a_promote_into_and_from_an_empty_graph(family: Family) -> None:
    graph = family.root()
    alt = fork(graph)
    alt.add_object("Task", id="t")
    plan = planned(graph, alt)
    assert (plan.forked_at_event, plan.computed_against) == (None, None)
    result = promoted(graph, alt)
    assert (result.computed_against, ids(graph.objects())) == (None, ["t"])
    assert diff(graph, alt).is_identical


@pytest.mark.parametrize("position", [0, 2, 4])
def test_a_promote_of_a_fork_from_the_past(graph: Graph, position: int) -> None:
    """What the parent did after the fork began stays; position 2 is the middle of a batch."""
    alt = fork(graph, position, "alt")
    alt.add_object("Task", id="t")
    promoted(graph, alt)
    assert ids(graph.objects()) == ["a", "b", "c", "t"]
    assert ids(graph.relations()) == ["ab", "bc"]
    assert graph.events[-2].payload["forked_at_event"] == (graph.events[position - 1].id if position else None)


def test_an_object_of_another_type_under_the_same_id(graph: Graph, alt: Graph) -> None:
    """Its relations on both sides stay, also those that only the parent has."""
    graph.add_relation("c", "a", "SUPPORTS", {"of": "parent"}, id="ca")
    graph.add_relation("nobody", "a", "SUPPORTS", id="xa")
    alt.remove_object("a")
    alt.add_object("Entity", {"n": 1}, id="a")
    alt.add_relation("a", "b", "MENTIONS", id="ab")
    plan = planned(graph, alt)
    assert (plan.conflicts, plan.warnings) == ((), ())
    assert (changes(plan)["objects_created"], changes(plan)["objects_removed"]) == (["a"], ["a"])
    promoted(graph, alt)
    assert graph.get_object("a").type == "Entity"
    assert ids(graph.relations()) == ["ab", "bc", "ca", "xa"]
    assert graph.get_relation("ca").data == {"of": "parent"}
    assert ids(diff(graph, alt).divergent_relations) == ["ca", "xa"]
    assert diff(graph, alt).divergent_objects == ()
    agrees_with_replay(graph)


def test_an_object_made_anew_of_the_same_type(graph: Graph, alt: Graph) -> None:
    """It is brought to its new state; the relations that went with it go, those of the parent stay."""
    graph.add_relation("c", "b", "SUPPORTS", id="cb")
    alt.remove_object("b")
    alt.add_object("Memory", {"n": 20}, id="b")
    alt.add_relation("b", "a", "SUPPORTS", id="ba")
    promoted(graph, alt)
    assert graph.get_object("b").data == {"n": 20}
    assert ids(graph.relations()) == ["ba", "cb"]
    agrees_with_replay(graph)


def test_a_relation_under_the_same_id_with_other_ends(graph: Graph, alt: Graph) -> None:
    alt.remove_relation("ab")
    alt.add_relation("c", "a", "SUPPORTS", {"x": 1}, id="ab")
    plan = planned(graph, alt)
    assert changes(plan) == {"relations_created": ["ab"], "relations_removed": ["ab"]}
    promoted(graph, alt)
    assert diff(graph, alt).is_identical
    assert graph.get_relation("ab").source == "c"


def test_a_relation_that_dangles_in_the_fork_comes_over_dangling(graph: Graph, alt: Graph) -> None:
    """Also one that the parent has, whose end the fork removed and which it made again."""
    alt.add_relation("a", "nobody", "MENTIONS", id="ax")
    alt.remove_object("c")
    alt.add_relation("b", "c", "MENTIONS", id="bc")
    plan = planned(graph, alt)
    assert plan.conflicts == ()
    assert plan.warnings == ("relation 'ax' dangles in the fork already: there is no object 'nobody'",)
    promoted(graph, alt)
    assert diff(graph, alt).is_identical
    assert ids(graph.relations()) == ["ab", "ax", "bc"]
    agrees_with_replay(graph)


@pytest.mark.parametrize(("old", "new"), [(1, True), (0, False), (2, 2.0), ([1], [True]), (0, None)])
def test_values_that_python_takes_for_equal_come_over(family: Family, old: Any, new: Any) -> None:
    graph = family.root()
    graph.add_object("Memory", {"v": old}, id="a")
    alt = fork(graph)
    alt.patch_object("a", {"v": new})
    promoted(graph, alt)
    assert repr(graph.get_object("a").data["v"]) == repr(new)
    assert diff(graph, alt).is_identical


def test_a_field_that_the_fork_dropped_is_dropped(graph: Graph, alt: Graph) -> None:
    alt.patch_object("a", {"only": 1}, op="replace")
    promoted(graph, alt)
    assert graph.get_object("a").data == {"only": 1}


def test_patches_that_remove_and_create(graph: Graph, alt: Graph) -> None:
    alt.apply_patch(alt.propose_patch("b", {}, op="remove").id)
    alt.apply_patch(alt.propose_patch("t", {"n": 1}, op="create", type="Task").id)
    promoted(graph, alt)
    assert ids(graph.objects()) == ["a", "c", "t"]
    assert diff(graph, alt).is_identical


def test_what_is_promoted_is_searchable(graph: Graph, alt: Graph) -> None:
    alt.add_object("Memory", {"text": "kafka lag"}, id="k")
    alt.patch_object("a", {"text": "kafka was slow"})
    promoted(graph, alt)
    assert sorted(ids(graph.search({"kafka": 1.0}, ["Memory"], (), 9))) == ["a", "k"]
    assert graph.search({"redi": 1.0}, ["Memory"], (), 9) == []


def test_ids_of_two_branches_promoted_do_not_collide(graph: Graph) -> None:
    made = [fork(graph, label=label) for label in ("alt", "alt", "other")]
    for each in (graph, *made):
        key = each.add_object("Run").id
        each.add_relation(key, "a", "MENTIONS")
        each.patch_object(key, {"n": 1})
    for each in made:
        promoted(graph, each)
    assert ids(graph.objects("Run")) == ["Run#1", "Run#alt-1", "Run#alt-2-1", "Run#other-1"]
    assert graph.add_object("Run").id not in {"Run#1", "Run#alt-1", "Run#alt-2-1", "Run#other-1"}
    agrees_with_replay(graph)


def test_a_thousand_divergent_events(graph: Graph, alt: Graph) -> None:
    with alt.batch():
        for n in range(250):
            alt.add_object("Task", {"n": n}, id=f"t{n}")
            alt.add_relation(f"t{n}", "a", "MENTIONS", id=f"r{n}")
    with alt.batch():
        for n in range(250):
            alt.patch_object(f"t{n}", {"done": True})
    with graph.batch():
        for n in range(500):
            graph.add_object("Task", id=f"mine{n}")
    result = promoted(graph, alt)
    assert len(result.applied_event_ids) == 500
    assert len(graph.objects()) == 753
    assert len(diff(graph, alt).divergent_objects) == 500
    agrees_with_replay(graph)


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


# What stands against it


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


# What is only warned of


def test_patches_that_are_still_open_stay_in_the_fork(graph: Graph, alt: Graph) -> None:
    for branch in (alt, graph):
        branch.propose_patch("a", {"n": 9}, id="open.b")
    alt.propose_patch("a", {"n": 8}, id="open.a")
    alt.reject_patch(alt.propose_patch("a", {"n": 7}, id="rejected").id, "no")
    alt.apply_patch(alt.propose_patch("b", {"n": 20}, id="applied").id)
    expected = ("proposed patches stay in the fork: open.a, open.b",)
    assert planned(graph, alt).warnings == expected
    result = promoted(graph, alt)
    assert result.plan.warnings == expected
    assert graph.get_patch("open.a") is None
    assert planned(graph, alt).warnings == expected, "they are still there"
    alt.apply_patch("open.a")
    alt.reject_patch("open.b", "no")
    assert planned(graph, alt).warnings == ()


def test_schemas_that_only_the_fork_has_stay_there(graph: Graph, alt: Graph) -> None:
    for kind in ("Task", "Memory", "Entity"):
        alt.emit(Event(type="schema.loaded", payload={"type": kind, "schema": {"n": "integer"}}))
    graph.emit(Event(type="schema.loaded", payload={"type": "Memory", "schema": {"n": "integer"}}))
    graph.emit(Event(type="schema.loaded", payload={"type": "Entity", "schema": {"n": "text"}}))
    plan = planned(graph, alt)
    assert plan.warnings == ("schemas that only the fork has stay there: Entity, Task; load them in the parent",)
    assert (plan.is_empty, plan.is_promotable) == (True, True)


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


# While others write, and when something fails


def test_a_promote_within_a_batch_is_refused(graph: Graph, alt: Graph) -> None:
    alt.add_object("Task", id="t")
    before = len(graph.events)
    with graph.batch(), pytest.raises(UsageError, match="a batch is open, and its events are not in the log yet"):
        promote(graph, alt)
    with graph.batch():
        graph.add_object("Task", id="u")
        with pytest.raises(UsageError, match="a batch is open, and its events are not in the log yet"):
            promote(graph, alt)
    assert types(graph.events[before:]) == ["object.created"]
    promoted(graph, alt)
    assert diff(graph, alt).fork_only_events


def interrupted(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], object], times: int) -> list[int]:
    """Let another writer act between the plan and its application, a number of times."""
    real, seen = promoting.planned, []

    def planned(*args: Any) -> Any:
        result = real(*args)
        if len(seen) < times:
            act(len(seen))
        seen.append(len(seen))
        return result

    monkeypatch.setattr(promoting, "planned", planned)
    return seen


def test_another_writer_between_plan_and_application(
    family: Family, graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is made anew: against what the parent then is."""
    alt.patch_object("a", {"n": 10})
    elsewhere = family.root()
    seen = interrupted(monkeypatch, lambda n: elsewhere.add_object("Task", id=f"t{n}"), 2)
    result = promoted(graph, alt)
    assert len(seen) == 3
    assert result.computed_against == graph.events[6].id
    assert types(graph.events[5:]) == ["object.created"] * 2 + ["promote.applied", "patch.proposed", "patch.applied"]
    agrees_with_replay(graph)


def test_another_writer_who_changes_the_same_between_plan_and_application(
    family: Family, graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    alt.patch_object("a", {"n": 10})
    elsewhere = family.root()
    interrupted(monkeypatch, lambda n: elsewhere.patch_object("a", {"n": 11}), 1)
    with pytest.raises(PromoteConflictError, match="object 'a' was changed on both sides") as refusal:
        promote(graph, alt)
    assert conflicts(refusal.value.plan) == [("both_changed", "object", "a")]
    assert types(graph.events[5:]) == ["patch.proposed", "patch.applied"]
    assert graph.get_object("a").data["n"] == 11


def test_other_writers_who_are_always_faster(
    family: Family, graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    alt.patch_object("a", {"n": 10})
    elsewhere = family.root()
    seen = interrupted(monkeypatch, lambda n: elsewhere.add_object("Task", id=f"t{n}"), 10**6)
    with pytest.raises(
        ConcurrentWriterError, match="other writers were faster 20 times in a row; nothing was promoted"
    ):
        promote(graph, alt)
    assert len(seen) == 20
    assert "promote.applied" not in types(graph.events)
    assert graph.get_object("a").data["n"] == 1


def test_two_processes_promote_the_same_fork_at_once(
    family: Family, graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is promoted once; who comes second finds nothing to do."""
    change_everything(alt)
    other, real = family.root(), promoting.planned
    seen = interrupted(monkeypatch, lambda n: promoting._apply(other, alt, *real(other, alt)), 1)
    result = promoted(graph, alt)
    assert len(seen) == 2
    assert (result.marker_event_id, result.plan.is_empty) == (None, True)
    assert types(graph.events).count("promote.applied") == 1
    assert diff(graph, alt).is_identical


def test_another_writer_between_reading_and_append(
    family: Family, graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log refuses what was computed against another tip, and the plan is made anew."""
    alt.patch_object("a", {"n": 10})
    elsewhere, real, calls = family.root(), type(graph.log).append_many, []

    def append_many(self: Any, *args: Any, **kwargs: Any) -> int:
        calls.append(self)
        if len(calls) == 1:
            elsewhere.patch_object("a", {"n": 11})
        return real(self, *args, **kwargs)

    monkeypatch.setattr(type(graph.log), "append_many", append_many)
    with pytest.raises(PromoteConflictError, match="object 'a' was changed on both sides"):
        promote(graph, alt)
    assert types(graph.events[5:]) == ["patch.proposed", "patch.applied"]
    agrees_with_replay(graph)


class BrokenError(ContextMeshError):
    pass


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["append_many", "apply"])
def test_a_promote_that_fails_halfway(
    graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool
) -> None:
    """The parent is untouched or complete, and repeating it makes good what is missing."""
    change_everything(alt)
    before = snapshot(graph)
    owner = type(graph.log) if step == "append_many" else type(graph.store)
    real, calls = getattr(owner, step), []

    def broken(self: Any, *args: Any, **kwargs: Any) -> Any:
        if calls:
            return real(self, *args, **kwargs)
        calls.append(self)
        if after:
            real(self, *args, **kwargs)
        raise BrokenError(step)

    monkeypatch.setattr(owner, step, broken)
    with pytest.raises(ProjectionError if step == "apply" else BrokenError, match=step):
        promote(graph, alt)
    landed = after or step == "apply"
    assert (snapshot(graph) == before) is not landed
    assert ("promote.applied" in types(graph.events)) is landed
    assert diff(graph, alt).is_identical is landed
    assert promoted(graph, alt).plan.is_empty is landed
    assert types(graph.events).count("promote.applied") == 1
    assert diff(graph, alt).is_identical
    agrees_with_replay(graph)


def test_a_plan_that_the_parent_cannot_take_changes_nothing(
    graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_everything(alt)
    before = snapshot(graph), len(graph.events)

    def refuse(*_: Any) -> None:
        raise BrokenError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(type(graph.store), "admit", refuse)
        with pytest.raises(BrokenError, match="no room"):
            promote(graph, alt)
    assert (snapshot(graph), len(graph.events)) == before
    promoted(graph, alt)
    assert diff(graph, alt).is_identical


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Server, Path]]:
    """A server of the test's own, to which other processes can come, and its folder."""
    with open_server(data_dir=tmp_path / "data") as server:
        yield server, tmp_path / "data"


@pytest.mark.parametrize(("step", "landed"), [("before-append", False), ("before-project", True)])
def test_a_process_that_is_killed_while_it_promotes(
    own: tuple[Server, Path], tmp_path: Path, step: str, *, landed: bool
) -> None:
    server, data_dir = own
    family = Family("falkordb", tmp_path, server, "killed")
    graph = filled(family.root())
    alt = fork(graph, label="alt")
    change_everything(alt)
    before = snapshot(graph)
    command = [sys.executable, __file__, step, str(data_dir), "killed"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    finished = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.returncode == -signal.SIGKILL, finished.stderr
    for each in (family.root(), graph):
        each.catch_up()
        assert (snapshot(each) == (snapshot(alt) if landed else before)) is True
    result = promoted(graph, family.branch("alt"))
    assert result.plan.is_empty is landed
    assert types(graph.events).count("promote.applied") == 1
    assert diff(graph, alt).is_identical
    agrees_with_replay(graph)


# Behaviours


def watcher(name: str, *on: str) -> Behavior:
    @behavior(name=name, on=on)
    def react(event: Event, graph: Graph, ctx: Context) -> None:
        graph.emit(Event(type="note.made", payload={"of": event.id}, **ctx.cause))

    return react


def test_what_a_promote_brings_never_triggers(family: Family) -> None:
    """Neither the runtime that promoted, nor one that is opened later; the fork's own triggers stay pending there."""
    on = ("object.created", "object.removed", "relation.created", "relation.removed", "patch.proposed", "patch.applied")
    parent = Runtime(filled(family.root()), [watcher("watcher", *on)])
    parent.run()
    alt = parent.fork(label="alt")
    assert alt.pending() == []
    change_everything(alt.graph)
    assert len(alt.pending()) == 5
    alt.run()
    result = parent.promote(alt)
    assert len(result.applied_event_ids) == 7
    assert parent.pending() == []
    assert Runtime(family.root(), [watcher("watcher", *on)]).pending() == []
    own = parent.graph.add_object("Task", id="own")
    assert [row.event.payload["id"] for row in parent.pending()] == [own.id]
    assert not {"behavior.started", "behavior.completed", "note.made"} & set(types(parent.graph.events[-9:-1]))


def test_a_runtime_forks_compares_and_promotes(family: Family) -> None:
    parent = runtime(filled(family.root()))
    alt = parent.fork(at_event="evt_004", label="Not the TTL")
    assert (alt.graph.log.branch_name, alt.graph.position) == ("not-the-ttl", 4)
    alt.graph.patch_object("a", {"n": 10})
    assert parent.diff(alt) == diff(parent.graph, alt.graph)
    assert parent.promote(alt, dry_run=True) == planned(parent.graph, alt.graph)
    assert changes(parent.promote(alt, False).plan) == {"objects_patched": ["a"]}
    assert parent.promote(alt, True).is_empty


# Showing itself


def test_plan_and_result_show_themselves(graph: Graph, alt: Graph) -> None:
    change_everything(alt)
    hostile = "<script>alert(1)</script>"
    alt.add_object("Task", {"x": hostile}, id="<b>t</b>")
    alt.propose_patch("a", {"n": 1}, id="<i>open</i>")
    plan = planned(graph, alt)
    assert repr(plan) == (
        "<PromotePlan: promote 'alt': 2 objects created, 1 object patched, 1 object removed, "
        "1 relation created, 2 relations removed>"
    )
    result = promoted(graph, alt)
    assert repr(result) == f"<PromoteResult: {plan.summary()}, 8 events>"
    for html in (plan._repr_html_(), result._repr_html_()):
        assert "promote &#x27;alt&#x27;" in html
        assert not any(mark in html for mark in ("<script", "<b>", "<i>"))
    assert "&lt;b&gt;t&lt;/b&gt;" in plan._repr_html_()
    assert "proposed patches stay in the fork: &lt;i&gt;open" in plan._repr_html_()
    graph.patch_object("a", {"n": 5})
    alt.patch_object("a", {"n": 6})
    shown = planned(graph, alt)
    assert "1 conflict" in repr(shown)
    assert "conflict: both_changed" in shown._repr_html_()
    assert "nothing to do" in planned(graph, fork(graph))._repr_html_()


# The law: a promote is a three-way merge of full snapshots, or it is refused


OBJECTS, RELATIONS = "abc", "rs"
ENDS = st.sampled_from([*OBJECTS, "x"])
VALUES = st.sampled_from([0, 1, True])
TYPES = st.sampled_from(["Task", "Memory"])
ACTS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(OBJECTS), TYPES, VALUES),
    st.tuples(st.just("patch"), st.sampled_from(OBJECTS), VALUES),
    st.tuples(st.just("remove"), st.sampled_from(OBJECTS)),
    st.tuples(st.just("relate"), st.sampled_from(RELATIONS), ENDS, ENDS, TYPES),
    st.tuples(st.just("cut"), st.sampled_from(RELATIONS)),
)
BEFORE = [
    *[("put", key, "Task", 0) for key in OBJECTS],
    *[("relate", key, *ends, "Task") for key, ends in (("r", "ab"), ("s", "bx"))],
]
SIDES = st.sampled_from(["parent", "parent", "fork", "fork", "promote"])
SCENES = st.tuples(
    st.lists(ACTS, max_size=2),
    st.integers(0, 3),
    st.lists(st.tuples(SIDES, ACTS), min_size=4, max_size=12),
)


def act(graph: Graph, step: tuple[Any, ...]) -> None:
    """Do one thing, if it can be done; what is there already is made anew."""
    match step:
        case ("put", key, kind, value):
            act(graph, ("remove", key))
            graph.add_object(kind, {"v": value}, id=key)
        case ("patch", key, value) if graph.get_object(key):
            graph.patch_object(key, {"v": value})
        case ("remove", key) if graph.get_object(key):
            graph.remove_object(key)
        case ("relate", key, source, target, kind):
            act(graph, ("cut", key))
            graph.add_relation(source, target, kind, id=key)
        case ("cut", key) if graph.get_relation(key):
            graph.remove_relation(key)


class Merge:
    """The three-way merge of full snapshots, by brute force."""

    def __init__(self, base: Snapshot, parent: Snapshot, branch: Snapshot) -> None:
        self.conflicts: set[tuple[str, str, str]] = set()
        self.objects = self._merged("object", base[0], parent[0], branch[0])
        self.relations = self._merged("relation", base[1], parent[1], branch[1])
        old, new = parent[0], self.objects
        gone = {key for key in old if key not in new}
        retyped = {key for key in old if key in new and new[key][0] != old[key][0]}
        created, cut = set(), set()
        for key in sorted(parent[1].keys() | self.relations.keys()):
            was, will = parent[1].get(key), self.relations.get(key)
            if was != will:
                created |= {key} if will else set()
                cut |= {key} if was else set()
                for end in will[:2] if will else ():
                    if end in branch[0] and end not in new:
                        self.conflicts.add(("dangling_relation", "relation", key))
            elif set(was[:2]) & gone and was != branch[1].get(key):
                if ("both_changed", "relation", key) not in self.conflicts:
                    self.conflicts.add(("orphaning_removal", "relation", key))
            elif set(was[:2]) & (gone | retyped):
                created.add(key)
                cut.add(key)
        names = {
            "objects_created": {key for key in new if key not in old} | retyped,
            "objects_patched": {key for key in new if key in old and new[key] != old[key]} - retyped,
            "objects_removed": gone | retyped,
            "relations_created": created,
            "relations_removed": cut,
        }
        self.changes = {name: sorted(keys) for name, keys in names.items() if keys}

    def _merged(self, entity: str, base: Any, parent: Any, branch: Any) -> dict[str, Any]:
        merged = {}
        for key in base.keys() | parent.keys() | branch.keys():
            was, ours, theirs = base.get(key), parent.get(key), branch.get(key)
            if was not in (ours, theirs):
                self.conflicts.add(("both_changed", entity, key))
            kept = ours if was == theirs or was != ours else theirs
            if kept is not None:
                merged[key] = kept
        return merged


def check_scene(graph: Graph, scene: Any) -> list[Any]:
    """Play a scene on a graph and a fork of it; return its plans, without what differs from run to run."""
    before, back, steps = scene
    for step in [*BEFORE, *before]:
        act(graph, step)
    alt = fork(graph, max(0, graph.position - back), "alt")
    base, seen = snapshot(alt), []
    for side, step in [*steps, ("promote", None)]:
        if side != "promote":
            act(graph if side == "parent" else alt, step)
            continue
        ours, theirs = snapshot(graph), snapshot(alt)
        expected, plan = Merge(base, ours, theirs), planned(graph, alt)
        seen.append(replace(plan, from_run="", into_run=""))
        assert set(conflicts(plan)) == expected.conflicts
        if plan.conflicts:
            with pytest.raises(PromoteConflictError, match="cannot be promoted"):
                promote(graph, alt)
            assert (snapshot(graph), snapshot(alt)) == (ours, theirs)
            continue
        assert changes(plan) == expected.changes
        promoted(graph, alt)
        assert snapshot(graph) == (expected.objects, expected.relations)
        assert snapshot(alt) == theirs
        assert planned(graph, alt).is_empty
        check_diff(graph, alt, base, ours, theirs)
        base = theirs
    agrees_with_replay(graph)
    agrees_with_replay(alt)
    return seen


def check_diff(graph: Graph, alt: Graph, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> None:
    """After a promote, what differs is what only the parent changed, and nothing that the fork changed."""
    found = diff(graph, alt)
    rows = ([row.id for row in found.divergent_objects], [row.id for row in found.divergent_relations])
    for part in (0, 1):
        keys = base[part].keys() | ours[part].keys() | theirs[part].keys()
        changed = [{key for key in keys if base[part].get(key) != side[part].get(key)} for side in (ours, theirs)]
        assert set(rows[part]) <= changed[0] - changed[1]
        assert rows[part] == sorted(key for key in keys if snapshot(graph)[part].get(key) != theirs[part].get(key))


@settings(max_examples=150)
@given(SCENES)
def test_a_promote_is_a_three_way_merge(scene: Any) -> None:
    plans = check_scene(Graph(), scene)
    assert len(plans) == 1 + sum(side == "promote" for side, _ in scene[2])  # every promote was held to the merge


@settings(max_examples=15)
@given(SCENES)
def test_falkordb_plans_what_memory_plans(server: Server, workspace: Workspace, scene: Any) -> None:
    with workspace() as name:
        stored = Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name))
        assert check_scene(stored, scene) == check_scene(Graph(), scene)


# What a process that is killed does


def main(step: str, data_dir: str, name: str) -> None:
    def die(*args: Any, **kwargs: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with open_server(data_dir=data_dir) as server:
        log, store = FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name)
        graph, alt = Graph(log, store), Graph(log.branch("alt"), store.branch("alt"))
        dies_in = (FalkorDBEventStore, "append_many") if step == "before-append" else (FalkorDBGraphStore, "apply")
        setattr(*dies_in, die)
        promote(graph, alt)


if __name__ == "__main__":
    main(*sys.argv[1:])


def test_who_made_it_stays_who_made_it(graph: Graph) -> None:
    alt = fork(graph, label="alt")
    alt.add_object("Entity", {"n": 1}, id="mine", actor="ines", evidence=["evt_seen"])
    alt.add_relation("mine", "mine", "RELATES_TO", id="theirs", actor="maya")
    marker = promote(graph, alt).marker_event_id
    made = graph.get_object("mine").provenance
    assert (made["actor"], made["evidence"]) == ("ines", ["evt_seen"])
    assert graph.get_relation("theirs").provenance["actor"] == "maya"
    assert [(row.actor, row.caused_by) for row in list(graph.events)[-2:]] == [("ines", marker), ("maya", marker)]
