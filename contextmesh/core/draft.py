"""Draft: the events of one commit, and what must hold of the graph for each of them."""

from collections.abc import Callable, Collection
from datetime import datetime

import msgspec

from contextmesh.core.events import TIMESTAMP_PATTERN, Event, to_microseconds, to_timestamp
from contextmesh.core.ids import IDGen
from contextmesh.core.model import Object, Patch, Relation
from contextmesh.core.payloads import check_envelope, check_size, prepare
from contextmesh.core.projection import Changes
from contextmesh.core.reader import Reader
from contextmesh.core.schemas import check_against
from contextmesh.core.stores import EventStore
from contextmesh.errors import (
    AlreadyExistsError,
    DuplicateEventError,
    InvalidEventError,
    InvalidPatchLifecycleState,
    NotFoundError,
)

MAX_KEPT = 10_000
MAX_KEPT_BYTES = 2_000


class Kept[T: (Object, Relation)]:
    """Rows as the graph holds them at one head, and which ids it does not hold; none is ever handed out itself.

    Whoever moves the head says what that changed with `put`, or calls `clear`.
    """

    def __init__(self, row: type[T]) -> None:
        self._rows: dict[str, bytes | None] = {}
        self._decode: Callable[[bytes], T] = msgspec.json.Decoder(row).decode

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()

    def put(self, key: str, row: T | None) -> None:
        """Keep a row, or that there is none; large rows are not kept, and old ones make room."""
        text = None if row is None else _encode(row)
        self._rows.pop(key, None)
        if text is None or len(text) <= MAX_KEPT_BYTES:
            self._rows[key] = text
        if len(self._rows) > MAX_KEPT:
            del self._rows[next(iter(self._rows))]

    def recall(self, ids: Collection[str], ask: Callable[[Collection[str]], dict[str, T]]) -> dict[str, T]:
        """Return those that exist, asking only for what is not kept; each is a copy of its own."""
        known = {key: self._rows[key] for key in ids if key in self._rows}
        unknown = [key for key in ids if key not in known]
        found = ask(unknown) if unknown else {}
        for key in unknown:
            self.put(key, found.get(key))
        return found | {key: self._decode(text) for key, text in known.items() if text is not None}


_encode = msgspec.json.Encoder().encode


class Draft:
    """The events of one commit, checked one by one against the graph as it stood at `head` and against each other."""

    def __init__(
        self, graph: Reader, log: EventStore, ids: IDGen, *, head: int, newest: str, now: datetime, kept: Kept[Object]
    ) -> None:
        self.graph = graph
        self._log = log
        self._ids = ids
        self.head = head
        self._newest = newest
        # One timestamp a commit, never below its predecessor's, whatever the clock does.
        self._timestamp = max(to_timestamp(now), newest)
        self.events: list[Event] = []
        self.changes = Changes()
        self.brought: set[str] = set()
        self.replayed: set[str] = set()  # history, which no sink is offered
        # What the stores have answered: a draft stands at one head, so an answer, or its absence, stays true.
        self.known_objects = kept
        self.known_relations = Kept(Relation)

    def add(self, event: Event, *, checked: bool = False, brought: bool = False, recorded: bool = False) -> Event:
        """Complete, validate and check an event, and fold it in.

        Args:
            event: what to add.
            checked: the caller has just made the checks that the graph would make.
            brought: the id comes from outside, so that the log may hold it already.
            recorded: the timestamp is kept too.
        """
        if brought:
            self._check_new(event.id)
        event = self._completed(prepare(event))
        if recorded:
            self._check_time(event)
            self.replayed.add(event.id)
        check = None if checked else _PRECONDITIONS.get(event.type)
        if check:
            check(self, event)
        return self._take(event, event.timestamp if recorded else self._timestamp)

    def check_free(self, what: str, identifier: str) -> None:
        """Refuse an id that an object, relation or patch has already; ask nobody where that cannot be."""
        if self._ids.is_unused(identifier):
            return
        get, remedy = {
            "object": (self.graph.get_object, "patch it, or choose another id"),
            "relation": (self.graph.get_relation, "remove it first, or choose another id"),
            "patch": (self.graph.get_patch, "choose another id"),
        }[what]
        if get(identifier):
            article = "an" if what == "object" else "a"
            msg = f"the graph holds {article} {what} {identifier!r} already; {remedy}"
            raise AlreadyExistsError(msg)
        self._ids.passed(identifier)

    def state(self, event: Event) -> Event:
        """Fold in an event that the graph made itself: of canonical parts, with an id and all checks behind it."""
        check_envelope(event)
        return self._take(event, self._timestamp)

    def _take(self, event: Event, timestamp: str) -> Event:
        event = event.recorded(event.id or self._ids.event(), event.payload, timestamp)
        check_size(event)
        if event.id not in self.replayed:
            self._check_schema(event)
        try:
            self.changes.add(event)
        except (TypeError, KeyError, ValueError) as error:
            msg = f"{event.type}: the payload cannot be projected: {error}; the README lists what each payload holds"
            raise InvalidEventError(msg) from error
        self.events.append(event)
        return event

    def _check_schema(self, event: Event) -> None:
        """Refuse data that the schema of its type does not allow; history is taken as it was."""
        removes = event.type == "patch.applied" and event.payload["patch"]["op"] == "remove"
        if removes or event.type not in {"object.created", "patch.applied"}:
            return
        row = event.payload["object"]
        schema = self.graph.schemas().get(row["type"])
        if schema is not None:
            check_against(row["type"], row["id"], row["data"], schema)

    def _completed(self, event: Event) -> Event:
        """Return `patch.applied` with its object's provenance, so that the projection never reads."""
        if event.type != "patch.applied" or "provenance" in event.payload["object"]:
            return event
        old = self.graph.get_object(event.payload["target"])
        event_id = event.id or self._ids.event()
        provenance = {**(old.provenance if old else {"created_by": event_id}), "updated_by": event_id}
        payload = {**event.payload, "object": {**event.payload["object"], "provenance": provenance}}
        return event.recorded(event_id, payload, event.timestamp)

    def _check_time(self, event: Event) -> None:
        newest = self.events[-1].timestamp if self.events else self._newest
        if not TIMESTAMP_PATTERN.fullmatch(str(event.timestamp)) or event.timestamp < newest:
            msg = (
                f"the timestamp {event.timestamp!r} is none, or before its predecessor's; expected UTC in microseconds"
            )
            raise InvalidEventError(msg)
        to_microseconds(event.timestamp)

    def _check_new(self, event_id: str) -> None:
        if any(row.id == event_id for row in self.events) or self._log.position_of(event_id):
            msg = f"the log holds an event {event_id!r} already; leave the id out to have one minted"
            raise DuplicateEventError(msg)
        self.brought.add(event_id)


def _check_removes_object(draft: Draft, event: Event) -> None:
    row = draft.graph.get_object(event.payload["id"])
    if row is None:
        raise no_object(event.payload["id"])
    _check_type(row.type, event.payload["type"], row.id)


def _check_removes_relation(draft: Draft, event: Event) -> None:
    row = draft.graph.get_relation(event.payload["id"])
    if row is None:
        raise no_relation(event.payload["id"])
    if (row.source, row.target, row.type) != tuple(event.payload[name] for name in ("source", "target", "type")):
        msg = f"relation {row.id!r} is {row.source!r} -{row.type}-> {row.target!r}; the event names other ends"
        raise InvalidEventError(msg)


def _check_proposes(draft: Draft, event: Event) -> None:
    patch = event.payload["patch"]
    if patch["status"] != "proposed":
        msg = f"patch.proposed carries the status {patch['status']!r}; expected 'proposed'"
        raise InvalidEventError(msg)
    draft.check_free("patch", patch["id"])


def _check_applies(draft: Draft, event: Event) -> None:
    patch = proposed(draft.graph, event.payload["patch"]["id"])
    new = event.payload["object"]
    old = draft.graph.get_object(patch.target)
    reason = objection(patch, old)
    expected = 1 if old is None else old.version if patch.op == "remove" else old.version + 1
    if reason or event.payload["patch"]["status"] != "applied" or new["version"] != expected:
        msg = f"patch {patch.id!r} cannot be applied: {reason or f'the object would have version {expected}'}"
        raise InvalidEventError(msg)
    if old:
        _check_type(old.type, new["type"], old.id)
    before = patch.to_dict()
    if {**before, **event.payload["patch"], "status": "proposed", "reason": None} != before:
        msg = f"patch {patch.id!r} was proposed differently from what this event applies; apply it as it was proposed"
        raise InvalidEventError(msg)
    if old and new.get("provenance", {}).get("created_by") != old.provenance.get("created_by"):
        msg = f"object {old.id!r} was removed and created anew since this patch was built; read it again"
        raise InvalidEventError(msg)


def _check_rejects(draft: Draft, event: Event) -> None:
    proposed(draft.graph, event.payload["patch_id"])


_PRECONDITIONS: dict[str, Callable[[Draft, Event], None]] = {
    "object.created": lambda draft, event: draft.check_free("object", event.payload["id"]),
    "object.removed": _check_removes_object,
    "relation.created": lambda draft, event: draft.check_free("relation", event.payload["id"]),
    "relation.removed": _check_removes_relation,
    "patch.proposed": _check_proposes,
    "patch.applied": _check_applies,
    "patch.rejected": _check_rejects,
}


def _check_type(old: str, new: str, object_id: str) -> None:
    if old != new:
        msg = f"object {object_id!r} is a {old}; the event calls it a {new}, and an object's type never changes"
        raise InvalidEventError(msg)


def objection(patch: Patch, old: Object | None) -> str | None:
    """Return why a patch cannot be applied to its target as it is, or None."""
    if patch.op == "create":
        return "the object exists already" if old else None
    if old is None:
        return "the object does not exist"
    if patch.expected_version not in (None, old.version):
        return f"expected version {patch.expected_version}, the object has version {old.version}"
    return None


def proposed(reader: Reader, patch_id: str) -> Patch:
    """Return a patch that can still be applied or rejected.

    Raises:
        NotFoundError: no patch of this id.
        InvalidPatchLifecycleState: it is settled already.
    """
    patch = reader.get_patch(patch_id)
    if patch is None:
        msg = f"no patch {patch_id!r} in the graph at position {reader.position}"
        raise NotFoundError(msg)
    if patch.status != "proposed":
        msg = f"patch {patch_id!r} is {patch.status}; only a proposed patch can be applied or rejected"
        raise InvalidPatchLifecycleState(msg)
    return patch


def no_object(object_id: str) -> NotFoundError:
    """Return the error for an object that is not there."""
    return NotFoundError(f"no object {object_id!r} in the graph; `graph.objects()` lists what is there")


def no_relation(relation_id: str) -> NotFoundError:
    """Return the error for a relation that is not there."""
    return NotFoundError(f"no relation {relation_id!r} in the graph; `graph.relations()` lists what is there")
