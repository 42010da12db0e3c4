"""What a promote plans and does, in few words, and a fork that changes everything."""

from contextmesh.core.graph import Graph
from contextmesh.core.plan import PromotePlan
from contextmesh.core.promote import PromoteResult, promote

CHANGES = ("objects_created", "objects_patched", "objects_removed", "relations_created", "relations_removed")


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
