"""Payloads: what each type of event holds, and what is refused before anything is appended."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any

from contextmesh.core.events import Event, canonical, encode
from contextmesh.core.model import Object, Patch, same
from contextmesh.core.names import check_id, check_kind, check_relation_type
from contextmesh.core.schemas import check_schema
from contextmesh.errors import InvalidEventError, ReservedFieldError

MAX_EVENT_BYTES = 4 * 1024 * 1024 + 16 * 1024  # 4 MB: a text of 1 MB four times, as its patch holds it, and the rest
MAX_VERSION = 2**63
RESERVED_FIELDS = frozenset({"provenance"})
PATCH_OPERATIONS = ("create", "update", "replace", "remove")
OBJECT = ("id", "type", "data", "version")
RELATION = ("id", "source", "target", "type", "data")
REQUIRED: dict[str, dict[str, tuple[str, ...]]] = {
    "object.created": {"": ("object", "id"), "object": OBJECT},
    "object.removed": {"": ("id", "type")},
    "relation.created": {"": ("relation", "id", "source", "target"), "relation": RELATION},
    "relation.removed": {"": ("id", "source", "target", "type")},
    "patch.proposed": {"": ("patch",), "patch": ("id", "target", "op", "status")},
    "patch.applied": {
        "": ("patch", "target", "diff", "object"),
        "patch": ("id", "target", "op", "status"),
        "object": OBJECT,
    },
    "patch.rejected": {"": ("patch_id", "target", "reason", "expected_version", "current_version")},
    "schema.loaded": {"": ("type", "schema")},
}
PATCH_FIELDS: dict[str, type | tuple[type, ...]] = {
    "updates": dict,
    "evidence": list,
    "tool_request_event_ids": list,
    "actor": str,
    "rationale": (str, NoneType),
    "reason": (str, NoneType),
    "llm_request_event_id": (str, NoneType),
    "type": (str, NoneType),
    "expected_version": (int, NoneType),
}


def prepare(event: Event) -> Event:
    """Return the event with a canonical payload, or refuse it before anything is appended.

    Raises:
        InvalidEventError: malformed, over 4 MB, or holding what no projection could take.
    """
    payload = canonical(event.payload)
    if not isinstance(payload, dict):
        msg = f"the payload of {event.type!r} is a {type(event.payload).__name__}; expected a mapping"
        raise InvalidEventError(msg)
    check_envelope(event)
    prepared = event.recorded(event.id, payload, event.timestamp)
    _check_payload(prepared)
    return prepared


def check_envelope(event: Event) -> None:
    """Refuse an event whose id, type, actor, frame or cause is malformed."""
    for name in ("type", "actor", "frame_id", "caused_by"):
        value: object = getattr(event, name)
        if (type(value) is str and value and value.isascii()) or (value in (None, "") and name in _OPTIONAL):
            continue
        canonical(value, name)
        if not (isinstance(value, str) and value):
            msg = f"an event's {name} is {value!r}; expected text"
            raise InvalidEventError(msg)
    if event.id:
        check_id(event.id)


_OPTIONAL = frozenset({"frame_id", "caused_by"})


def check_size(event: Event) -> None:
    """Refuse an event that is too large for any store."""
    size = len(encode(event).encode())
    if size > MAX_EVENT_BYTES:
        msg = f"the event {event.type!r} takes {size:,} bytes; at most {MAX_EVENT_BYTES:,} fit, so split it"
        raise InvalidEventError(msg)


def _check_payload(event: Event) -> None:
    for part, names in REQUIRED.get(event.type, {}).items():
        holder = event.payload[part] if part else event.payload
        if not isinstance(holder, dict):
            msg = f"{event.type}: payload.{part} is a {type(holder).__name__}; expected a mapping"
            raise InvalidEventError(msg)
        missing = [name for name in names if name not in holder]
        if missing:
            where = f"payload.{part}" if part else "payload"
            msg = f"{event.type}: {where} lacks {', '.join(missing)}; expected {', '.join(names)}"
            raise InvalidEventError(msg)
    check = _CHECKS.get(event.type)
    if check:
        check(event.payload)


def _check_object(value: Mapping[str, Any]) -> None:
    check_id(value["id"])
    check_kind(value["type"])
    check_data(value["data"])
    if type(value["version"]) is not int or not 1 <= value["version"] < MAX_VERSION:
        msg = f"object {value['id']!r} has version {value['version']!r}; expected an integer from 1, below 2^63"
        raise InvalidEventError(msg)
    _check_provenance(value)


def _check_provenance(value: Mapping[str, Any]) -> None:
    if not isinstance(value.get("provenance", {}), dict):
        msg = f"{value['id']!r} has a provenance that is no mapping; leave it out, or give created_by and updated_by"
        raise InvalidEventError(msg)


def _check_relation(value: Mapping[str, Any]) -> None:
    for name in ("id", "source", "target"):
        check_id(value[name])
    check_relation_type(value["type"])
    check_data(value.get("data", {}))
    _check_provenance(value)


def _check_patch(payload: Mapping[str, Any]) -> None:
    patch = payload["patch"]
    check_id(patch["id"])
    check_id(patch["target"])
    if patch["op"] not in PATCH_OPERATIONS:
        msg = f"patch {patch['id']!r} has op {patch['op']!r}; expected one of {', '.join(PATCH_OPERATIONS)}"
        raise InvalidEventError(msg)
    for name, kind in PATCH_FIELDS.items():
        if name in patch and (not isinstance(patch[name], kind) or isinstance(patch[name], bool)):
            msg = (
                f"patch {patch['id']!r} has a {name} of type {type(patch[name]).__name__}; expected {_kind_name(kind)}"
            )
            raise InvalidEventError(msg)
    check_data(patch.get("updates") or {})
    if patch["op"] == "create":
        check_kind(patch.get("type"))
    if "object" in payload:
        _check_object(payload["object"])
        _same("patch.applied", payload["object"]["id"], patch["target"])
        _same("patch.applied", patch["target"], payload["target"])


def _check_created(payload: Mapping[str, Any]) -> None:
    _check_object(payload["object"])
    _same("object.created", payload["object"]["id"], payload["id"])


def _check_related(payload: Mapping[str, Any]) -> None:
    _check_relation(payload["relation"])
    for name in ("id", "source", "target"):
        _same("relation.created", payload["relation"][name], payload[name])


def _check_removed(payload: Mapping[str, Any]) -> None:
    check_id(payload["id"])
    check_kind(payload["type"])


def _check_rejected(payload: Mapping[str, Any]) -> None:
    if not isinstance(payload["reason"], str):
        msg = f"patch.rejected has the reason {payload['reason']!r}; expected text"
        raise InvalidEventError(msg)
    check_id(payload["patch_id"])
    check_id(payload["target"])


def _check_loaded(payload: Mapping[str, Any]) -> None:
    check_schema(check_kind(payload["type"]), payload["schema"])


def _kind_name(kind: type | tuple[type, ...]) -> str:
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join("nothing" if item is NoneType else item.__name__ for item in kinds)


def _same(event_type: str, inner: object, outer: object) -> None:
    if inner != outer:
        msg = f"{event_type}: the payload names {outer!r} outside and {inner!r} inside; expected the same"
        raise InvalidEventError(msg)


_CHECKS: dict[str, Callable[[Mapping[str, Any]], None]] = {
    "object.created": _check_created,
    "object.removed": _check_removed,
    "relation.created": _check_related,
    "relation.removed": _check_relation,
    "patch.proposed": _check_patch,
    "patch.applied": _check_patch,
    "patch.rejected": _check_rejected,
    "schema.loaded": _check_loaded,
}


def check_data(value: object) -> Mapping[str, Any]:
    """Return an object's or relation's data, or refuse it."""
    if not isinstance(value, Mapping):
        msg = f"data is a {type(value).__name__}; expected a mapping of field names to values"
        raise InvalidEventError(msg)
    taken = RESERVED_FIELDS.intersection(value)
    if taken:
        msg = f"data holds the field {min(taken)!r}, which the graph keeps for itself; rename it"
        raise ReservedFieldError(msg)
    return value


def applied(patch: Patch, old: Object | None, event_id: str) -> dict[str, Any]:
    """Return the payload of `patch.applied`; it holds the resulting object, so that the projection never reads."""
    before = old.data if old else {}
    after = {**before, **patch.updates} if patch.op == "update" else {} if patch.op == "remove" else patch.updates
    changed = sorted(
        key
        for key in before.keys() | after.keys()
        if not same(before.get(key), after.get(key)) or (key in before) != (key in after)
    )
    row = Object(
        id=patch.target,
        type=old.type if old else str(patch.type),
        data=before if patch.op == "remove" else after,
        version=1 if old is None else old.version + (patch.op != "remove"),
        provenance={**old.provenance, "updated_by": event_id}
        if old
        else provenance(event_id, patch.actor, patch.evidence),
    )
    return {
        "patch": patch.settled("applied").to_dict(),
        "target": patch.target,
        "diff": {key: {"old": before.get(key), "new": after.get(key)} for key in changed},
        "object": row.to_dict(),
    }


def provenance(event_id: str, actor: str, evidence: Sequence[str]) -> dict[str, Any]:
    """Return what is kept of how something came to be: by which event, by whom, on what evidence."""
    return {"actor": actor, "created_by": event_id, "evidence": id_list(evidence, "evidence"), "updated_by": event_id}


def id_list(values: object, name: str) -> list[str]:
    """Return a list of ids that a caller gives, or refuse what is none, such as one text."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        msg = f"{name} is {values!r}; expected a list of ids"
        raise InvalidEventError(msg)
    return list(canonical(list(values), f"payload.{name}"))
