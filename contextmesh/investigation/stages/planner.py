"""Planner: reads the researcher's record back and plans three dependent tasks from what was found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object, Relation
from contextmesh.core.reader import Reader
from contextmesh.core.runtime import Context, behavior
from contextmesh.investigation.records import by_type, current, follows, read_record, relate, save_record
from contextmesh.investigation.retrieval import shown

NAMED = 3  # labels a task names; the rest is counted


Facts = Mapping[str, Object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What one task needs: a relation type, and how the task reads with it and without it."""

    relation: str
    found: Callable[[Sequence[Relation], Facts], str]
    missing: str
    gap: str


def _names(ids: Sequence[str], facts: Facts) -> str:
    names = list(dict.fromkeys(shown(facts[key]) for key in ids))
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _check(rows: Sequence[Relation], facts: Facts) -> str:
    changes = [row for row in rows if facts[row.source].data.get("entity_type") == "change"]
    systems = _names([row.target for row in changes or rows], facts)
    if changes:
        candidates = _names([row.source for row in changes], facts)
        return f"Check {candidates} as a candidate: what changed in {systems}, and when"
    return f"Find out what changed in {systems} before {_names([row.source for row in rows], facts)}"


def _ask(rows: Sequence[Relation], facts: Facts) -> str:
    owners, systems = _names([row.target for row in rows], facts), _names([row.source for row in rows], facts)
    return f"Ask {owners}, recorded as owner of {systems}, to confirm what happened"


def _compare(rows: Sequence[Relation], facts: Facts) -> str:
    incidents, lessons = _names([row.source for row in rows], facts), _names([row.target for row in rows], facts)
    return f"Compare with {incidents} and verify whether what was learned applies here: {lessons}"


NEEDS = (
    Need(
        relation="AFFECTS",
        found=_check,
        missing="Find out which system is affected: no evidence names one",
        gap="No affected system: no AFFECTS relation leads from the evidence to a system.",
    ),
    Need(
        relation="OWNED_BY",
        found=_ask,
        missing="Find out who owns what is affected: no evidence names an owner",
        gap="No owner: no OWNED_BY relation leads from the evidence to a person or team.",
    ),
    Need(
        relation="RESOLVED_BY",
        found=_compare,
        missing="Verify step by step: no earlier resolution is recorded",
        gap="No earlier resolution: no RESOLVED_BY relation leads from an incident in the evidence to a lesson.",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The record that was read back, and the evidence that it names, reloaded."""

    record: Object
    objects: Mapping[str, Object]
    relations: Sequence[Relation]


def _load(event: Event, reader: Reader) -> Plan:
    record = read_record(event, reader)
    objects = current(reader.get_objects(record.data["context"]))
    found = reader.get_relations_by_id(record.data["relations"])
    inside = [row for row in found.values() if row.source in objects and row.target in objects]
    return Plan(record=record, objects=objects, relations=inside)


@behavior(name="planner", on=["object.created"], where=follows("planner"), view={"search": _load})
def planner(_event: Event, graph: Graph, ctx: Context) -> None:
    """Create three tasks, each resting on the relations it needs, and name what is missing as a gap."""
    plan: Plan = ctx.view.hits
    record = plan.record
    run = record.data["run"]
    tasks = []
    for number, need in enumerate(NEEDS, 1):
        support = by_type(plan.relations, need.relation)
        text = need.found(support, plan.objects) if support else need.missing
        data = {
            "run": run,
            "label": text,
            "text": text,
            "order": number,
            "requires": need.relation,
            "supported_by": [row.id for row in support],
            "status": "planned",
        }
        tasks.append(graph.add_object("Task", data, id=f"{run}.task-{number}", **ctx.cause).id)
    for task, earlier in zip(tasks[1:], tasks, strict=False):
        relate(graph, ctx, task, "DEPENDS_ON", earlier)
    gaps = [need.gap for need in NEEDS if not by_type(plan.relations, need.relation)]
    save_record(
        graph,
        ctx,
        run,
        "planner",
        question=record.data["question"],
        previous=record,
        outputs=tasks,
        context=record.data["context"],
        relations=record.data["relations"],
        gaps=gaps,
    )
