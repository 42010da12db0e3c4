"""Handoffs: the record that one stage leaves for the next, taken away and put back. The log tells of both."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.errors import AlreadyExistsError, NotFoundError

WHY = "put back as it was before it was removed"
Row = Mapping[str, Any]


def take_away(graph: Graph, run: str, record: str) -> None:
    """Remove a stage's record, and with it the relations that touch it, as one event of the run."""
    graph.remove_object(record, actor="user", frame_id=run)


def put_back(graph: Graph, run: str, record: str) -> None:
    """Put a stage's record back as it stood when it was removed, which the log tells: id, contents and relations.

    It comes back by a patch. Were it created anew, that would be a second trigger, and the next stage would have to
    run twice. Its version begins at 1 again, its provenance names the patch, and both events stay in the log.

    Raises:
        AlreadyExistsError: it is there.
        NotFoundError: the log does not tell of its removal.
    """
    if graph.get_object(record) is not None:
        msg = f"{record!r} is there already; nothing was put back"
        raise AlreadyExistsError(msg)
    home = graph.get_object(run)
    lost = _lost(graph.events.after(int(home.data["position"]) if home else 0), record)
    if lost is None:
        msg = f"the log tells of no {record!r} that was removed since its run began; nothing was put back"
        raise NotFoundError(msg)
    cause: dict[str, Any] = {"actor": "user", "caused_by": lost.removal, "frame_id": run}
    with graph.batch():
        graph.patch_object(record, lost.row["data"], op="create", type=lost.row["type"], rationale=WHY, **cause)
        for row in _to_relate(graph, lost):
            graph.add_relation(row["source"], row["target"], row["type"], row["data"], id=row["id"], **cause)


def _to_relate(graph: Graph, lost: "_Lost") -> list[Row]:
    """Return what related the object to those that are still there, without what has been stated anew."""
    present = graph.get_relations_by_id(lost.relations)
    rows = [row for key, row in sorted(lost.relations.items()) if key not in present]
    ends = graph.get_objects({end for row in rows for end in (row["source"], row["target"])})
    return [row for row in rows if row["source"] in ends and row["target"] in ends]


@dataclass(slots=True, kw_only=True)
class _Lost:
    """An object as it stood, its relations by id, and the id of the event that removed it."""

    row: Row = field(default_factory=dict)
    relations: dict[str, Row] = field(default_factory=dict)
    removal: str = ""


def _lost(events: Iterable[Event], record: str) -> _Lost | None:
    """Return what the last removal of an object took away; None where it was never there, or is there still."""
    lost: _Lost | None = None
    now = _Lost()
    for event in events:
        payload = event.payload
        if _removes(event) and _target(payload) == record:
            now.removal = event.id
            lost, now = now, _Lost()
        elif event.type in ("object.created", "patch.applied") and _target(payload) == record:
            now.row = payload["object"]
        elif event.type == "relation.created" and record in (payload["source"], payload["target"]):
            now.relations[payload["id"]] = payload["relation"]
        elif event.type == "relation.removed":
            now.relations.pop(payload["id"], None)
        elif _removes(event):  # what it was connected to has gone, and the relation with it
            gone = _target(payload)
            kept = now.relations.items()
            now.relations = {key: row for key, row in kept if gone not in (row["source"], row["target"])}
    return None if now.row else lost


def _removes(event: Event) -> bool:
    is_patch = event.type == "patch.applied" and event.payload["patch"]["op"] == "remove"
    return is_patch or event.type == "object.removed"


def _target(payload: Mapping[str, Any]) -> object:
    return payload.get("target") or payload.get("id")
