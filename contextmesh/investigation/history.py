"""What events say of the log and of one object, as the tables show it."""

from collections.abc import Mapping
from typing import Any

from contextmesh.core.display import counted
from contextmesh.core.events import Event


def about(event: Event) -> str:
    """Return in a few words what an event is about."""
    payload = event.payload
    row = payload.get("relation")
    if event.type == "relation.created" and isinstance(row, Mapping):
        return f"{row['source']} -{row['type']}-> {row['target']}"
    if event.type == "promote.applied":
        counts = {name.replace("_", " "): len(ids) for name, ids in payload.items() if isinstance(ids, list)}
        return ", ".join(counted(n, name) for name, n in sorted(counts.items()) if n)
    names = ("id", "target", "trigger", "run", "type")
    return str(_patched(event) or next((payload[name] for name in names if payload.get(name)), ""))


def _part(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = payload.get(name)
    return value if isinstance(value, Mapping) else {}


def _patched(event: Event) -> str | None:
    patch = event.payload.get("patch")
    return patch.get("target") if isinstance(patch, Mapping) else None


def concerns(event: Event, object_id: str) -> bool:
    """Whether an event tells about an object itself, not about a relation of it."""
    named = (event.payload.get("id"), event.payload.get("target"), _patched(event))
    return object_id in named and not event.type.startswith("relation.")


def happened(position: int, event: Event, object_id: str) -> tuple[Any, ...]:
    """Return what an event did to an object: position, time, event, actor, version, text, rationale."""
    payload = event.payload
    row, patch = _part(payload, "object"), _part(payload, "patch")
    data = row.get("data")
    text = data.get("text") if isinstance(data, Mapping) and row.get("id") == object_id else None
    why = patch.get("rationale") or payload.get("reason")
    return position, event.timestamp, event.type, event.actor, row.get("version"), text or "", why or ""
