"""Events, canonical JSON, and clocks."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from contextmesh.errors import (
    CorruptedEventPayloadError,
    NonSerializableEventError,
)

SCHEMA_VERSION = 1
MAX_DEPTH = 64
MAX_INTEGER_BITS = 14_000  # Python itself refuses to write integers of over 4,300 digits
SURROGATE = re.compile("[\ud800-\udfff]")
TIMESTAMP_PATTERN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
LIFECYCLE_PREFIXES = ("behavior.", "runtime.")


class Event(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
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
            return _read(text)
        if stored < SCHEMA_VERSION:
            fields = msgspec.json.decode(text)
            for step in range(stored, SCHEMA_VERSION):
                fields = UPCASTS[step](fields)
            return msgspec.convert(fields, Event)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        msg = f"the event at position {position} cannot be read: {error}; restore the log from an export"
        raise CorruptedEventPayloadError(msg) from error
    msg = f"the event at position {position} has schema version {stored}, this reads up to {SCHEMA_VERSION}; upgrade"
    raise CorruptedEventPayloadError(msg)


_read = msgspec.json.Decoder(Event).decode


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


@lru_cache(maxsize=1000)  # the events of a batch share one
def to_microseconds(timestamp: str) -> int:
    """Return a timestamp as integer microseconds since 1970, the form that graph databases keep exactly."""
    moment = datetime.fromisoformat(timestamp)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
