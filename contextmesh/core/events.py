"""Events, their payloads, canonical JSON, ids and clocks."""

import math
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import NoneType
from typing import Any, Protocol

import msgspec

from contextmesh.core.schemas import check_schema
from contextmesh.errors import (
    CorruptedEventPayloadError,
    InvalidEventError,
    InvalidNameError,
    NonSerializableEventError,
    ReservedFieldError,
)

SCHEMA_VERSION = 1
MAX_EVENT_BYTES = 4 * 1024 * 1024 + 16 * 1024  # 4 MB: a text of 1 MB four times, as its patch holds it, and the rest
MAX_DEPTH = 64
MAX_VERSION = 2**63
MAX_INTEGER_BITS = 14_000  # Python itself refuses to write integers of over 4,300 digits

ID_PATTERN = re.compile(r"[!-~]{1,200}")
SURROGATE = re.compile("[\ud800-\udfff]")
TIMESTAMP_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
TYPE_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
RESERVED_TYPES = frozenset({"Node", "Head", "Patch", "Schema"})
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
LIFECYCLE_PREFIXES = ("behavior.", "runtime.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One entry of the log.

    An event that is about to be emitted may leave `id` and `timestamp` empty; the graph fills them in.

    Args:
        id: unique in the log, printable ASCII without spaces.
        type: such as `object.created`; unknown types are kept and project to nothing.
        payload: canonical JSON once emitted.
        actor: who caused it.
        frame_id: the frame of work that it belongs to; in the incident application a run's id.
        caused_by: id of the causal parent event.
        timestamp: commit time, ISO 8601 in UTC with microseconds; never below the predecessor's.
    """

    id: str = ""
    type: str
    payload: Mapping[str, Any]
    actor: str = "system"
    frame_id: str | None = None
    caused_by: str | None = None
    timestamp: str = ""

    @property
    def is_lifecycle(self) -> bool:
        """Whether the event tells about the runtime and projects to nothing."""
        return self.type.startswith(LIFECYCLE_PREFIXES)

    def recorded(self, id: str, payload: Mapping[str, Any], timestamp: str) -> "Event":
        """Return the event as the log keeps it."""
        return Event(
            id=id,
            type=self.type,
            payload=payload,
            actor=self.actor,
            frame_id=self.frame_id,
            caused_by=self.caused_by,
            timestamp=timestamp,
        )

    def copied(self) -> "Event":
        """Return an equal event whose payload shares nothing with this one's."""
        return self.recorded(self.id, detached(self.payload), self.timestamp)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as plain data, in the order in which it is written."""
        return {
            "id": self.id,
            "type": self.type,
            "payload": self.payload,
            "actor": self.actor,
            "frame_id": self.frame_id,
            "caused_by": self.caused_by,
            "timestamp": self.timestamp,
        }


def canonical(value: Any, path: str = "payload", depth: int = 0) -> Any:
    """Return a detached copy of `value` made of plain JSON types only.

    Tuples become lists, sets sorted lists, Decimal and dates strings, non-string keys strings.

    Raises:
        NonSerializableEventError: for NaN, infinity, bytes, lone surrogates and other objects; it names the path.
    """
    kind = type(value)
    if value is None or kind is bool or (kind is str and value.isascii()):  # most of all there is, so asked first
        return value
    if depth > MAX_DEPTH:
        msg = f"{path.partition('.')[0]} nests deeper than {MAX_DEPTH} levels at {path[:80]}; flatten it"
        raise NonSerializableEventError(msg)
    if isinstance(value, (str, int, float, Decimal, date, datetime, time)):
        return _scalar(value, path)
    if isinstance(value, Mapping):
        return _mapping(value, path, depth)
    if isinstance(value, (list, tuple)):
        return [canonical(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if isinstance(value, (set, frozenset)):
        items = [canonical(item, f"{path}{{}}", depth + 1) for item in value]
        return sorted(items, key=to_json)
    msg = f"{path} is a {kind.__name__}, which JSON cannot carry; expected text, numbers, lists or mappings"
    raise NonSerializableEventError(msg)


def _scalar(value: Any, path: str) -> str | int | float:
    if isinstance(value, str):
        text = str.__str__(value)
        if not text.isascii() and SURROGATE.search(text):
            msg = f"{path} holds half of a surrogate pair, which is not text; decode it properly first"
            raise NonSerializableEventError(msg)
        return text
    if isinstance(value, int):
        if value.bit_length() > MAX_INTEGER_BITS:
            msg = f"{path} is an integer of over {MAX_INTEGER_BITS:,} bits, which cannot be written; keep it as text"
            raise NonSerializableEventError(msg)
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            msg = f"{path} is {float(value)}, which JSON cannot carry; use None for a missing number"
            raise NonSerializableEventError(msg)
        return float(value)
    return str(value) if isinstance(value, Decimal) else value.isoformat()


def _mapping(value: Mapping[Any, Any], path: str, depth: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str and key.isascii() else _name(key, path)
        if name in result:
            msg = f"{path} has two keys that both read {name!r} as text; rename one"
            raise NonSerializableEventError(msg)
        plain = item is None or (type(item) is str and item.isascii())
        result[name] = item if plain else canonical(item, f"{path}.{name}", depth + 1)
    return dict(sorted(result.items()))


def _name(key: object, path: str) -> str:
    return str(_scalar(key if isinstance(key, str) else _key(key, path), f"{path} key"))


def _key(key: object, path: str) -> str:
    plain = canonical(key, f"{path} key")
    return plain if isinstance(plain, str) else to_json(plain)


def to_json(value: Any) -> str:
    """Write canonical data as canonical JSON: sorted keys, no spaces."""
    return msgspec.json.encode(value, order="sorted").decode()


def detached(value: Any) -> Any:
    """Return a copy of canonical data that shares nothing with it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def encode(event: Event) -> str:
    """Write a canonical event as one line of JSON: its fields in their order, the payload's keys sorted."""
    return msgspec.json.encode({**event.to_dict(), "payload": msgspec.Raw(_sorted(event.payload))}).decode()


_sorted = msgspec.json.Encoder(order="sorted").encode

# From each schema version to the next: a function that takes an event's fields as they were stored and returns them
# as the next version has them. Stored events are never rewritten; they are brought up to date whenever they are read.
UPCASTS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}


def decode(text: str | bytes, position: int, version: int | None = None) -> Event:
    """Read an event back, brought up to date if it was stored under an earlier schema version.

    Raises:
        CorruptedEventPayloadError: if the text is not an event, or of a later version; it names the position.
    """
    stored = SCHEMA_VERSION if version is None else version
    try:
        if stored == SCHEMA_VERSION:
            return _read(text).to_event()
        if stored < SCHEMA_VERSION:
            fields = msgspec.json.decode(text)
            for step in range(stored, SCHEMA_VERSION):
                fields = UPCASTS[step](fields)
            return msgspec.convert(fields, _Stored).to_event()
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        msg = f"the event at position {position} cannot be read: {error}; restore the log from an export"
        raise CorruptedEventPayloadError(msg) from error
    msg = f"the event at position {position} has schema version {stored}, this reads up to {SCHEMA_VERSION}; upgrade"
    raise CorruptedEventPayloadError(msg)


class _Stored(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An event as it is written, for a reader that takes nothing else."""

    type: str
    payload: dict[str, Any]
    id: str = ""
    actor: str = "system"
    frame_id: str | None = None
    caused_by: str | None = None
    timestamp: str = ""

    def to_event(self) -> Event:
        return Event(
            id=self.id,
            type=self.type,
            payload=self.payload,
            actor=self.actor,
            frame_id=self.frame_id,
            caused_by=self.caused_by,
            timestamp=self.timestamp,
        )


_read = msgspec.json.Decoder(_Stored).decode


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
    if not isinstance(value.get("provenance", {}), dict):
        msg = f"object {value['id']!r} has a provenance that is no mapping"
        raise InvalidEventError(msg)


def _check_relation(value: Mapping[str, Any]) -> None:
    for name in ("id", "source", "target"):
        check_id(value[name])
    check_relation_type(value["type"])
    check_data(value.get("data", {}))


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


def check_id(value: object) -> str:
    """Return an id, or refuse it: 1 to 200 printable ASCII characters without spaces.

    Indexed equality in FalkorDB misses ids with spaces, control characters or nothing in them.
    """
    if not isinstance(value, str) or not ID_PATTERN.fullmatch(value):
        shown = repr(value)[:80]
        msg = f"{shown} is no id; expected 1 to 200 printable ASCII characters without spaces, such as 'checkout-api'"
        raise InvalidNameError(msg)
    return value


def possible_ids(values: Iterable[object]) -> list[str]:
    """Return those values that can be an id at all, sorted, each once; no store holds any other."""
    return sorted({value for value in values if isinstance(value, str) and ID_PATTERN.fullmatch(value)})


def check_kind(value: object) -> str:
    """Return an object type, or refuse it; `Node`, `Head`, `Patch` and `Schema` belong to the storage."""
    if check_relation_type(value) in RESERVED_TYPES:
        msg = f"the type {value!r} belongs to the storage; choose another name"
        raise InvalidNameError(msg)
    return str(value)


def check_relation_type(value: object) -> str:
    """Return a relation type, or refuse it: a letter or underscore, then up to 63 letters, digits, underscores."""
    if not isinstance(value, str) or not TYPE_PATTERN.fullmatch(value):
        shown = repr(value)[:80]
        msg = f"{shown} is no type; expected a letter, then up to 63 letters, digits or underscores, such as 'Memory'"
        raise InvalidNameError(msg)
    return value


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


class Clock:
    """Tell the time. Subclass it, or pass any object with `now()`, to make a run repeatable."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        return datetime.now(UTC)


class FrozenClock(Clock):
    """A clock that stands still."""

    def __init__(self, at: datetime) -> None:
        self._at = at

    def now(self) -> datetime:
        """Return the moment that was given."""
        return self._at


class TickingClock(Clock):
    """A clock that moves on by a fixed step each time it is read."""

    def __init__(self, start: datetime, step: timedelta = timedelta(seconds=1)) -> None:
        self._next = start
        self._step = step

    def now(self) -> datetime:
        """Return the next moment."""
        moment, self._next = self._next, self._next + self._step
        return moment


def to_timestamp(moment: datetime) -> str:
    """Write a moment as ISO 8601 in UTC, always with microseconds, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def to_microseconds(timestamp: str) -> int:
    """Return a timestamp as integer microseconds since 1970, the form that graph databases keep exactly."""
    moment = datetime.fromisoformat(timestamp)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


class Counters(Protocol):
    """Where ids take their numbers from: a log."""

    def reserve(self, counter: str, n: int) -> int:
        """Reserve `n` numbers of a counter for this caller alone; return the first."""
        ...

    def raise_counter(self, counter: str, at_least: int) -> None:
        """Set a counter past a number that is in use, if it is not there yet."""
        ...


class IDGen:
    """Mint ids: `evt_001`, `rel_001`, `patch_001`, `<type>#<n>`; in a branch `evt_alt-001`, `<type>#alt-1`.

    Numbers are taken in growing blocks, so that a long import asks its store seldom and a short process wastes
    little. Gaps are legal. The blocks of objects grow slower, since people read these ids.
    """

    MAX_BLOCK = 256

    def __init__(self, counters: Counters, branch: str = "") -> None:
        self._counters = counters
        self._name = branch
        self._branch = f"{branch}-" if branch else ""
        self._blocks: dict[str, tuple[int, int, int]] = {}
        self._used: dict[str, int] = {}
        self._stale: dict[str, int] = {}
        self._fresh: set[str] = set()
        self._proven: set[str] = set()  # counters of which one number was looked up; a log may be filled without them
        self._lock = threading.RLock()

    def _next(self, counter: str, *, slowly: bool = False) -> int:
        value, end, size = self._blocks.get(counter, (0, 0, 0))
        if value >= end:
            used = self._used[counter] = self._used.get(counter, 0) + size
            size = min(used // 8 or 1 if slowly else size * 2 or 1, self.MAX_BLOCK)
            value = self._counters.reserve(counter, size)
            end = value + size
        self._blocks[counter] = (value + 1, end, size)
        return value

    def _mint(self, counter: str, form: str, *, slowly: bool = False) -> str:
        with self._lock:
            value = self._next(counter, slowly=slowly)
            identifier = form.format(branch=self._branch, n=value)
            # A branch's name may stand in ids that were brought along from elsewhere, so there every id is checked.
            if value >= self._stale.get(counter, 0) and not self._branch:
                self._fresh.add(identifier)
            return identifier

    def is_unused(self, identifier: str) -> bool:
        """Whether nothing can carry this id: it was minted, and no other writer was seen since. True only once."""
        with self._lock:
            fresh = identifier in self._fresh
            self._fresh.discard(identifier)
            found = minted(identifier) if fresh else None
            return found is not None and found.counter in self._proven

    def passed(self, identifier: str) -> None:
        """Note that a minted id was looked up and is free, so that its counter goes beyond what the log holds."""
        found = minted(identifier)
        if found and found.branch == self._name:
            self._proven.add(found.counter)

    def doubt(self) -> None:
        """Note that another writer was seen, who may have brought an id of a number that is reserved here."""
        with self._lock:
            self._fresh.clear()
            self._stale = {counter: end for counter, (_, end, _) in self._blocks.items()}

    def event(self) -> str:
        """Mint an event id."""
        with self._lock:
            return f"evt_{self._branch}{self._next('evt'):03d}"

    def relation(self) -> str:
        """Mint a relation id."""
        return self._mint("rel", "rel_{branch}{n:03d}")

    def patch(self) -> str:
        """Mint a patch id."""
        return self._mint("patch", "patch_{branch}{n:03d}")

    def brought(self, identifier: str) -> str:
        """Return an id that a caller brings; one of a minted form raises its counter, so that none is minted twice."""
        found = minted(identifier)
        if found and found.branch == self._name and identifier not in self._fresh:  # else it was minted right here
            with self._lock:
                self._counters.raise_counter(found.counter, found.number)
                self._blocks.pop(found.counter, None)
                self._fresh.discard(identifier)
        return identifier

    def object(self, type: str) -> str:
        """Mint an object id."""
        return self._mint(type, f"{type}#{{branch}}{{n}}", slowly=True)


@dataclass(frozen=True, slots=True)
class Minted:
    """What an id of a minted form was minted from: its branch ("" for the log itself), its counter and number."""

    branch: str
    counter: str
    number: int


_MINTED = re.compile(r"(?:(evt|rel|patch)_|([A-Za-z_][A-Za-z0-9_]*)#)(?:([a-z0-9_-]+)-)?(\d{1,15})")


def minted(identifier: str) -> Minted | None:
    """Return what an id was minted from, None for one of another form."""
    found = _MINTED.fullmatch(identifier)
    return Minted(found[3] or "", found[1] or found[2], int(found[4])) if found else None
