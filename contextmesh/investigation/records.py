"""The records through which the stages coordinate: how one is read back, and how one is saved."""

from collections.abc import Mapping, Sequence
from typing import Any

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object, Relation
from contextmesh.core.reader import Reader
from contextmesh.core.runtime import Context
from contextmesh.errors import CorruptedEventPayloadError, HandoffError
from contextmesh.investigation.facts import relation_id
from contextmesh.investigation.vocabulary import HISTORY, STAGES

FIELDS: Mapping[str, type] = {
    "run": str,
    "stage": str,
    "status": str,
    "question": str,
    "position": int,
    "seeds": list,
    "context": list,
    "relations": list,
    "paths": list,
    "gaps": list,
    "warnings": list,
    "usage": dict,
}
ITEMS: Mapping[str, Mapping[str, type | tuple[type, ...]]] = {
    "seeds": {"id": str, "score": (int, float), "terms": list},
    "paths": {"nodes": list, "relations": list},
}
TEXTS = ("context", "relations", "gaps", "warnings")


def record_id(run: str, stage: str) -> str:
    """Return the id of a stage's record, such as `Run#7.planner`."""
    return f"{run}.{stage}"


def read_record(event: Event, reader: Reader) -> Object:
    """Read the record back that the trigger announced.

    Raises:
        HandoffError: it has been removed, or it lacks what the next stage needs; the message names it.
    """
    return load_record(event.payload["id"], reader)


def load_record(key: str, reader: Reader) -> Object:
    """Read a stage's record by its id; HandoffError if it is gone or unreadable."""
    try:
        row = reader.get_object(key)
    except CorruptedEventPayloadError as error:
        msg = f"the record {key!r} is unreadable: {error}"
        raise HandoffError(msg) from error
    if row is None:
        msg = f"the record {key!r} is missing from the graph, so the next stage has nothing to read; ask again"
        raise HandoffError(msg)
    what = damage(row)
    if what:
        msg = f"the record {key!r} is unreadable: {what}; expected an AgentRun as its stage saved it, so ask again"
        raise HandoffError(msg)
    return row


def damage(row: Object) -> str | None:
    """Return what makes a stage's record unreadable, or None."""
    if row.type != "AgentRun":
        return f"it is a {row.type}"
    wrong = [name for name, kind in FIELDS.items() if type(row.data.get(name)) is not kind]
    wrong += [name for name in TEXTS if name not in wrong and not _are_texts(row.data[name])]
    wrong += [name for name, parts in ITEMS.items() if name not in wrong and not _are_items(row.data[name], parts)]
    return f"its fields {', '.join(wrong)} are missing or of another type" if wrong else None


def _are_texts(values: Sequence[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _are_items(values: Sequence[Any], parts: Mapping[str, type | tuple[type, ...]]) -> bool:
    return all(
        isinstance(value, dict)
        and all(isinstance(value.get(name), kind) for name, kind in parts.items())
        and all(_are_texts(value[name]) for name, kind in parts.items() if kind is list)
        for value in values
    )


def save_record(
    graph: Graph,
    ctx: Context,
    run: str,
    stage: str,
    *,
    question: str,
    previous: Object | None = None,
    outputs: Sequence[str] = (),
    **fields: Any,
) -> None:
    """Save a stage's record, what generated it, what it generated, and the handoff from its predecessor."""
    key = record_id(run, stage)
    empty: dict[str, Any] = {name: kind() for name, kind in FIELDS.items() if kind in (list, dict)}
    data = {
        **empty,
        **fields,
        "run": run,
        "stage": stage,
        "status": "completed",
        "question": question,
        "position": ctx.view.position,
        "label": f"{stage.capitalize()} of {run}",
    }
    graph.add_object("AgentRun", data, id=key, **ctx.cause)
    for source in (run, agent_id(stage)):
        for output in (key, *outputs):
            relate(graph, ctx, source, "GENERATED", output)
    if previous is not None:
        relate(graph, ctx, previous.id, "HANDOFF_TO", key)


def relate(graph: Graph, ctx: Context, source: str, type_: str, target: str) -> None:
    """Relate two records under an id that follows from them, so that a second attempt is refused, not doubled."""
    graph.add_relation(source, target, type_, id=relation_id(source, type_, target), **ctx.cause)


def agent_id(stage: str) -> str:
    """Return the id of the agent that runs a stage."""
    return f"agent.{stage}"


def follows(stage: str) -> dict[str, str]:
    """Return the condition on `object.created` under which a stage is triggered: its predecessor's record."""
    before = STAGES[STAGES.index(stage) - 1]
    return {"object.type": "AgentRun", "object.data.stage": before}


def current(rows: Mapping[str, Object]) -> dict[str, Object]:
    """Return the objects that are neither superseded nor withdrawn."""
    return {key: row for key, row in rows.items() if all(row.data.get(name) is None for name in HISTORY)}


def by_type(relations: Sequence[Relation], type_: str) -> list[Relation]:
    """Return the relations of one type, in order."""
    return [row for row in relations if row.type == type_]
