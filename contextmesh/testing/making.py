"""Events as a log receives them, short to write, and short ways to look at what a store holds."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from contextmesh.core.events import Event, to_timestamp
from contextmesh.core.model import Object, ObjectQuery, Patch, Relation, Where
from contextmesh.core.stores import Branch, EventStore, GraphStore

# Values that a careless store changes: quotes, operators, NUL, emoji, right-to-left, long integers and floats.
DIFFICULT: dict[str, Any] = {
    "id": "not the object's own",
    "kind": ["neither", "this"],
    "version": -1,
    "label": 'it\'s "quoted" \\ `back` $dollar {brace} /* no comment */ // nor this',
    "text": "'}) DETACH DELETE n //\n\r\t\0 nul \u2028 line \x7f",
    "a b": "field with a space",
    "": "field without a name",
    "\u05e9\u05dc\u05d5\u05dd": "\u202eright to left\u202c",
    "null": None,
    "True": True,
    "emoji": "\U0001f525\U0001f469\u200d\U0001f692",
    "big": 2**63,
    "bigger": -(10**30),
    "exact": 0.1 + 0.2,
    "tiny": 5e-324,
    "huge": 1.7976931348623157e308,
    "one": 1.0,
    "nested": {"list": [1, [2, {"three": None}]], "empty": {}, "none": []},
    "aliases": ["AKA", 7],
}


def event(number: int, type: str = "note.made", payload: Mapping[str, Any] | None = None) -> Event:
    """Return an event as a log receives it, complete; its time follows from its number."""
    timestamp = to_timestamp(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number))
    return Event(id=f"evt_{number:03d}", type=type, payload=payload or {"n": number}, timestamp=timestamp)


def object_created(
    number: int,
    id: str,
    type: str = "Memory",
    data: Mapping[str, Any] | None = None,
) -> Event:
    """Return the event that creates an object."""
    provenance = {"created_by": f"evt_{number:03d}", "updated_by": f"evt_{number:03d}"}
    row = Object(id=id, type=type, data=dict(data or {}), provenance=provenance)
    return event(number, "object.created", {"object": row.to_dict(), "id": id})


def object_removed(number: int, id: str, type: str = "Memory") -> Event:
    """Return the event that removes an object."""
    return event(number, "object.removed", {"id": id, "type": type})


def relation_created(  # noqa: PLR0917 - as a relation reads
    number: int,
    id: str,
    source: str,
    target: str,
    type: str = "MENTIONS",
    data: Mapping[str, Any] | None = None,
) -> Event:
    """Return the event that creates a relation."""
    provenance = {"created_by": f"evt_{number:03d}"}
    row = Relation(id=id, source=source, target=target, type=type, data=dict(data or {}), provenance=provenance)
    return event(number, "relation.created", {"relation": row.to_dict(), "id": id, "source": source, "target": target})


def relation_removed(number: int, id: str, source: str, target: str, type: str = "MENTIONS") -> Event:
    """Return the event that removes a relation."""
    return event(number, "relation.removed", {"id": id, "source": source, "target": target, "type": type})


def patch_proposed(number: int, id: str, target: str, updates: Mapping[str, Any]) -> Event:
    """Return the event that proposes a patch."""
    patch = Patch(id=id, target=target, op="update", updates=dict(updates))
    return event(number, "patch.proposed", {"patch": patch.to_dict()})


def patch_applied(number: int, id: str, row: Object, op: str = "update") -> Event:
    """Return the event that applies a patch, resulting in `row`."""
    patch = Patch(id=id, target=row.id, op=op, updates=row.data, status="applied")
    payload = {"patch": patch.to_dict(), "target": row.id, "diff": {}, "object": row.to_dict()}
    return event(number, "patch.applied", payload)


def patch_rejected(number: int, id: str, target: str, reason: str) -> Event:
    """Return the event that rejects a patch."""
    return event(number, "patch.rejected", {"patch_id": id, "target": target, "reason": reason})


def branch_of(log: EventStore, position: int, name: str = "twig", run_id: str = "") -> Branch:
    """Return what a log is told to fork a branch."""
    return Branch(
        name=name,
        label=name.upper(),
        parent=log.branch_name,
        position=position,
        run_id=run_id or f"run of {name}",
        created_at="2026-01-01T00:00:00.000000Z",
    )


def ids_of(log: EventStore, after: int = 0, until: int | None = None) -> list[str]:
    """Return the ids of a log's events, by position."""
    return [row.id for row in log.iter_events(after, until)]


def ends_of(log: EventStore, after: int = 0, limit: int = 100) -> list[tuple[int, int]]:
    """Return what a page holds: the position of each entry, and the last one of its batch."""
    return [(row.position, row.last) for row in log.read(after, limit)]


def objects(store: GraphStore, type: str | None = None, where: Where | None = None) -> list[Object]:
    """Return the objects of a store that match, as a reader of it would."""
    return store.query(ObjectQuery(type=type, where=where or {})).matching()
