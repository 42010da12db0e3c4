"""The plan of a promote: what it says before anything is done, what it warns of, how it shows itself."""

from contextmesh.core.branches import fork
from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from tests.core.branching import Family, snapshot
from tests.core.promote.plans import change_everything, changes, planned, promoted

# Before anything is done


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
