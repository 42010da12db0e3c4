"""Behaviours and promote: a runtime forks, compares and promotes, and what it brings never triggers."""

from contextmesh.core.diff import diff
from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.runtime import Behavior, Context, Runtime, behavior
from tests.core.branching import Family, filled, runtime, types
from tests.core.promote.plans import change_everything, changes, planned


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
