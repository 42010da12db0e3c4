"""What comes over with a promote, and what it writes. Over every kind of store."""

from typing import Any

import pytest

from contextmesh.core.branches import fork
from contextmesh.core.diff import diff
from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.promote import promote
from tests.core.branching import Family, agrees_with_replay, ids, snapshot, types
from tests.core.promote.plans import change_everything, changes, planned, promoted


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


def test_who_made_it_stays_who_made_it(graph: Graph) -> None:
    alt = fork(graph, label="alt")
    alt.add_object("Entity", {"n": 1}, id="mine", actor="ines", evidence=["evt_seen"])
    alt.add_relation("mine", "mine", "RELATES_TO", id="theirs", actor="maya")
    marker = promote(graph, alt).marker_event_id
    made = graph.get_object("mine").provenance
    assert (made["actor"], made["evidence"]) == ("ines", ["evt_seen"])
    assert graph.get_relation("theirs").provenance["actor"] == "maya"
    assert [(row.actor, row.caused_by) for row in list(graph.events)[-2:]] == [("ines", marker), ("maya", marker)]
