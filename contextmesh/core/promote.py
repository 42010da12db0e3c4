"""Promote: bring what happened on a fork into the graph that it was forked from.

What comes over is the fork's net change, as one batch that begins with a `promote.applied` marker. The marker says
how far the fork was promoted, and the next promote of the same fork compares from there.
"""

from dataclasses import dataclass
from typing import Any

from contextmesh.core.display import counted, table
from contextmesh.core.events import Event
from contextmesh.core.forked import lineage
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object, Relation
from contextmesh.core.plan import PromotePlan, planned
from contextmesh.core.stores import EventStore
from contextmesh.errors import ConcurrentWriterError, PromoteConflictError, PromoteLineageError

MAX_PROMOTES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class PromoteResult:
    """A promote that was applied.

    Args:
        plan: what was applied.
        marker_event_id: id of the `promote.applied` event; None if there was nothing to do.
        applied_event_ids: ids of the events that it caused, in the order of their emission.
        computed_against: id of the parent's newest event before it.
    """

    plan: PromotePlan
    computed_against: str | None
    marker_event_id: str | None = None
    applied_event_ids: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<PromoteResult: {self.plan.summary()}, {counted(len(self.applied_event_ids), 'events')}>"

    def _repr_html_(self) -> str:
        rows = [(name.replace("_", " "), n) for name, n in self.plan.counts().items() if n]
        return table(f"Promoted: {self.plan.summary()}", ("what", "how many"), rows)


def promote(parent: Graph, fork: Graph, *, dry_run: bool = False) -> "PromotePlan | PromoteResult":
    """Bring a fork's net change into its parent: all of it, as one batch, or nothing.

    Args:
        parent: the graph that `fork` was forked from.
        fork: what to promote; it stays as it is, and may be worked on and promoted again.
        dry_run: return the plan and change nothing.

    Raises:
        PromoteLineageError: `fork` was not forked from `parent`.
        PromoteConflictError: something stands against it; the error's `plan` lists all conflicts.
        ConcurrentWriterError: other writers kept moving the two.
    """
    _check_lineage(parent.log, fork.log)
    for _ in range(MAX_PROMOTES):
        plan, position = planned(parent, fork)
        if dry_run:
            return plan
        if plan.conflicts:
            raise PromoteConflictError(_refusal(plan), plan)
        if plan.is_empty:
            return PromoteResult(plan=plan, computed_against=plan.computed_against)
        try:
            return _apply(parent, fork, plan, position)
        except _MovedError:
            continue
    msg = f"other writers were faster {MAX_PROMOTES} times in a row; nothing was promoted, so try again"
    raise ConcurrentWriterError(msg)


class _MovedError(Exception):
    """The parent is no longer where the plan was computed against."""


def _check_lineage(parent: EventStore, fork: EventStore) -> None:
    if lineage(fork)[:-1] != lineage(parent):
        names = (fork.branch_name or "main", parent.branch_name or "main")
        msg = f"{names[0]!r} was not forked from {names[1]!r}; promote a branch into the one that it was forked from"
        raise PromoteLineageError(msg)


def _refusal(plan: PromotePlan) -> str:
    first = plan.conflicts[0]
    more = f", and {len(plan.conflicts) - 1} more" if len(plan.conflicts) > 1 else ""
    return (
        f"the branch {plan.from_branch!r} cannot be promoted: {first.detail}{more}; nothing was changed. "
        "Settle it in the fork or its parent, and promote again; a dry run lists every conflict"
    )


def _apply(parent: Graph, fork: Graph, plan: PromotePlan, position: int) -> PromoteResult:
    def guard() -> None:
        if parent.position != position:
            raise _MovedError

    with parent.batch(guard=guard) as graph:
        marker = graph.emit(Event(type="promote.applied", payload=_marker(plan), actor="promote"))
        _write(graph, fork, plan, marker.id)
        applied = tuple(event.id for event in graph.uncommitted[1:])
    return PromoteResult(
        plan=plan,
        marker_event_id=marker.id,
        applied_event_ids=applied,
        computed_against=plan.computed_against,
    )


def _marker(plan: PromotePlan) -> dict[str, Any]:
    return {
        "from_run": plan.from_run,
        "forked_at_event": plan.forked_at_event,
        "computed_against": plan.computed_against,
        "promoted_to": plan.promoted_to,
        "objects_created": [row["id"] for row in plan.objects_created],
        "objects_patched": [row["id"] for row in plan.objects_patched],
        "objects_removed": list(plan.objects_removed),
        "relations_created": [row["id"] for row in plan.relations_created],
        "relations_removed": list(plan.relations_removed),
        "warnings": list(plan.warnings),
    }


def _write(graph: Graph, fork: Graph, plan: PromotePlan, marker: str) -> None:
    cause: dict[str, Any] = {"actor": "promote", "caused_by": marker}
    graph.get_objects([row["id"] for row in (*plan.objects_created, *plan.objects_patched)])  # read at once, not singly
    graph.get_objects(plan.objects_removed)
    graph.get_relations_by_id([*plan.relations_removed, *(row["id"] for row in plan.relations_created)])
    for key in plan.relations_removed:
        graph.remove_relation(key, **cause)
    for key in plan.objects_removed:
        graph.remove_object(key, **cause)
    made = fork.get_objects([row["id"] for row in plan.objects_created])
    for row in plan.objects_created:
        graph.add_object(row["type"], row["data"], id=row["id"], caused_by=marker, **_author(made.get(row["id"])))
    for row in plan.objects_patched:
        why = f"promoted from the branch {plan.from_branch}"
        patch = graph.propose_patch(row["id"], row["data"], op="replace", rationale=why, **cause)
        graph.apply_patch(patch.id, **cause)
    related = fork.get_relations_by_id([row["id"] for row in plan.relations_created])
    for row in plan.relations_created:
        ends = (row["source"], row["target"], row["type"], row["data"])
        graph.add_relation(*ends, id=row["id"], caused_by=marker, **_author(related.get(row["id"])))


def _author(row: Object | Relation | None) -> dict[str, Any]:
    """Return who made something in the fork, and on what evidence: a promote brings it over, it did not think of it."""
    known = row.provenance if row else {}
    return {"actor": str(known.get("actor") or "promote"), "evidence": list(known.get("evidence") or ())}
