"""The two protocols that every store fulfils, and the in-memory stores for snapshots, teaching and tests."""

import json
import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from contextmesh.core.events import TYPE_PATTERN, Event, canonical, decode, encode, to_json
from contextmesh.core.model import Object, Patch, Relation, Where, matches
from contextmesh.core.terms import search_text
from contextmesh.errors import ConcurrentWriterError, EventNotFoundError, UsageError

if TYPE_CHECKING:
    from contextmesh.core.projection import Changes

MAX_FIELD_NAMES = 60_000  # FalkorDB holds 65,534 property names; the rest is room for writers that race
RESERVED_PROPERTIES = frozenset(
    {"id", "kind", "label", "text", "updated_at", "version", "data", "provenance", "search"},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One event as the log holds it: its position, and the last position of the batch it was committed in."""

    position: int
    event: Event
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An object that matched a search: how well, through which terms."""

    id: str
    score: float
    terms: tuple[str, ...]


class EventStore(Protocol):
    """An append-only log of events at the positions 1, 2, 3 and so on. Usable from any thread."""

    def tip(self) -> int:
        """Return the position of the newest event, 0 for an empty log."""
        ...

    def append_many(self, events: Sequence[Event], *, expected: int, commit_id: str) -> int:
        """Append all events or none, and return the new tip.

        Raises:
            ConcurrentWriterError: the tip is not `expected`, and it was another commit that moved it.
        """
        ...

    def append(self, event: Event) -> int:
        """Append one event at the tip, wherever that is, and return its position."""
        ...

    def read(self, after: int, limit: int) -> list[Entry]:
        """Return about `limit` entries after a position; a page always ends where a batch ends."""
        ...

    def iter_events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """Iterate the events after a position, up to and including `until`."""
        ...

    def get_event(self, event_id: str) -> Event:
        """Return one event; EventNotFoundError if the log does not hold it."""
        ...

    def has_event(self, event_id: str) -> bool:
        """Whether the log holds an event of this id."""
        ...

    def count(self) -> int:
        """Return the number of events."""
        ...

    def reserve(self, counter: str, n: int) -> int:
        """Reserve `n` numbers of a counter for this caller alone; return the first."""
        ...

    def raise_counter(self, counter: str, at_least: int) -> None:
        """Set a counter past a number that is in use, if it is not there yet."""
        ...

    def truncate_after(self, position: int) -> None:
        """Drop every event after a position; the graph must then be rebuilt."""
        ...

    def close(self) -> None:
        """Release what the store holds; closing twice is fine."""
        ...


class GraphStore(Protocol):
    """A projection of a log: objects, relations and patches as of its head. Usable from any thread."""

    def head(self) -> int:
        """Return the log position that the graph has reached."""
        ...

    def admit(self, changes: "Changes") -> None:
        """Refuse, with InvalidEventError, changes that this store could never take. Nothing is written."""
        ...

    def apply(self, changes: "Changes", *, expected: int, new: int) -> bool:
        """Take the changes and move the head from `expected` to `new` in one step; False if it was elsewhere."""
        ...

    def get_objects(self, ids: Collection[str]) -> dict[str, Object]:
        """Return those of the objects that exist, by id."""
        ...

    def objects(self, type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the matching objects, ordered by id."""
        ...

    def get_relations(self, ids: Collection[str]) -> dict[str, Relation]:
        """Return those of the relations that exist, by id."""
        ...

    def relations(
        self,
        sources: Collection[str] | None = None,
        targets: Collection[str] | None = None,
        types: Collection[str] | None = None,
    ) -> list[Relation]:
        """Return the relations from any of the sources, to any of the targets, of any of the types, ordered by id."""
        ...

    def get_patches(self, ids: Collection[str]) -> dict[str, Patch]:
        """Return those of the patches that exist, by id."""
        ...

    def count_terms(
        self, terms: Collection[str], kinds: Collection[str], without: Collection[str] = ()
    ) -> tuple[int, dict[str, int]]:
        """Return how many objects of these kinds there are, and how many each term would find in a `search`."""
        ...

    def search(
        self, weights: Mapping[str, float], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Hit]:
        """Return the best objects by the sum of their terms' weights, then newest, then by id.

        Objects whose data holds one of the fields `without` as a mirrored scalar (see `mirrored`) are left out.
        """
        ...

    def expand(
        self, ids: Collection[str], types: Collection[str], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Relation]:
        """Return, for each id, up to `limit` relations of these types, in either direction, to neighbours that fit.

        The newest neighbours come first, then by relation id; `kinds` and `without` (as in `search`) tell who fits.
        The result is ordered by relation id, each relation once.
        """
        ...

    def shadow(self) -> "GraphStore":
        """Return a new empty store of the same kind, to rebuild into beside the live one."""
        ...

    def swap(self, shadow: Any, *, tip: int) -> bool:
        """Put the shadow in this store's place, only if the log still ends at `tip` and the shadow stands there."""
        ...

    def close(self) -> None:
        """Release what the store holds; closing twice is fine."""
        ...


class InMemoryEventStore:
    """A log that lives as long as its process."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._lines: list[tuple[str, int]] = []
        self._positions: dict[str, int] = {}
        self._counters: defaultdict[str, int] = defaultdict(int)
        self._last_commit = ""

    def __repr__(self) -> str:
        return f"<InMemoryEventStore: {len(self._lines)} events>"

    def tip(self) -> int:  # noqa: D102 - the protocol says it, here and below
        return len(self._lines)

    def append_many(self, events: Sequence[Event], *, expected: int, commit_id: str) -> int:  # noqa: D102
        with self._lock:
            if self.tip() != expected:
                if self._last_commit == commit_id and self.tip() == expected + len(events):
                    return self.tip()
                msg = f"the log ends at {self.tip()}, this write expected {expected}; read again and repeat it"
                raise ConcurrentWriterError(msg)
            last = expected + len(events)
            for position, event in enumerate(events, expected + 1):
                self._lines.append((encode(event), last))
                self._positions[event.id] = position
            self._last_commit = commit_id
            return last

    def append(self, event: Event) -> int:  # noqa: D102
        with self._lock:
            return self.append_many([event], expected=self.tip(), commit_id=event.id)

    def read(self, after: int, limit: int) -> list[Entry]:  # noqa: D102
        with self._lock:
            if after >= self.tip() or limit < 1:
                return []
            end = self._lines[min(after + limit, self.tip()) - 1][1]
            page = self._lines[after:end]
        return [
            Entry(position=position, event=decode(text, position), last=last)
            for position, (text, last) in enumerate(page, after + 1)
        ]

    def iter_events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:  # noqa: D102
        return iter_pages(self, after, until)

    def get_event(self, event_id: str) -> Event:  # noqa: D102
        with self._lock:
            if event_id not in self._positions:
                raise missing_event(event_id)
            position = self._positions[event_id]
            return decode(self._lines[position - 1][0], position)

    def has_event(self, event_id: str) -> bool:  # noqa: D102
        return event_id in self._positions

    def count(self) -> int:  # noqa: D102
        return self.tip()

    def reserve(self, counter: str, n: int) -> int:  # noqa: D102
        with self._lock:
            first = self._counters[counter] + 1
            self._counters[counter] += n
            return first

    def raise_counter(self, counter: str, at_least: int) -> None:  # noqa: D102
        with self._lock:
            self._counters[counter] = max(self._counters[counter], at_least)

    def truncate_after(self, position: int) -> None:  # noqa: D102
        with self._lock:
            check_cut(position, self.tip(), self._lines[position - 1][1] if 0 < position <= self.tip() else position)
            del self._lines[position:]
            self._positions = {key: value for key, value in self._positions.items() if value <= position}

    def close(self) -> None:  # noqa: D102
        return


@dataclass(slots=True)
class _Row:
    """An object as the in-memory graph keeps it: data as JSON, so that every read is detached."""

    type: str
    data: str
    version: int
    provenance: str
    updated_at: str
    search: frozenset[str]

    def to_object(self, object_id: str) -> Object:
        return Object(
            id=object_id,
            type=self.type,
            data=json.loads(self.data),
            version=self.version,
            provenance=json.loads(self.provenance),
        )


def _has(row: _Row, without: Collection[str]) -> bool:
    return bool(without) and not mirrored(json.loads(row.data)).keys().isdisjoint(without)


@dataclass(slots=True)
class _Tables:
    head: int = 0
    objects: dict[str, _Row] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    touching: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    patches: dict[str, Patch] = field(default_factory=dict)


class InMemoryGraphStore:
    """A graph that lives as long as its process; for snapshots, teaching and tests, never for a workspace."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._tables = _Tables()

    def __repr__(self) -> str:
        return f"<InMemoryGraphStore: {len(self._tables.objects)} objects at position {self.head()}>"

    def head(self) -> int:  # noqa: D102
        return self._tables.head

    def admit(self, changes: "Changes") -> None:  # noqa: ARG002, D102 - it takes whatever fits in memory
        return

    def apply(self, changes: "Changes", *, expected: int, new: int) -> bool:  # noqa: D102
        with self._lock:
            if self._tables.head != expected:
                return False
            self._remove(changes)
            self._write(changes)
            self._tables.head = new
            return True

    def _remove(self, changes: "Changes") -> None:
        tables = self._tables
        gone = {row.id for row in changes.removed_relations.values()}
        for object_id in changes.removed_objects:
            tables.objects.pop(object_id, None)
            gone |= tables.touching.get(object_id, set())
        for relation_id in gone & tables.relations.keys():
            relation = tables.relations.pop(relation_id)
            for end in (relation.source, relation.target):
                tables.touching[end].discard(relation_id)
                if not tables.touching[end]:
                    del tables.touching[end]

    def _write(self, changes: "Changes") -> None:
        tables = self._tables
        for object_id, (row, updated_at) in changes.objects.items():
            tables.objects[object_id] = _Row(
                type=row.type,
                data=to_json(row.data),
                version=row.version,
                provenance=to_json(row.provenance),
                updated_at=updated_at,
                search=frozenset(search_text(*searched(row)).split()),
            )
        for relation in changes.relations.values():
            tables.relations[relation.id] = _detached(relation)
            for end in (relation.source, relation.target):
                tables.touching[end].add(relation.id)
        tables.patches |= changes.patches
        for patch_id, (status, reason) in changes.verdicts.items():
            if patch_id in tables.patches:
                tables.patches[patch_id] = tables.patches[patch_id].settled(status, reason)

    def get_objects(self, ids: Collection[str]) -> dict[str, Object]:  # noqa: D102
        rows = self._tables.objects
        return {key: rows[key].to_object(key) for key in sorted(set(ids)) if key in rows}

    def objects(self, type: str | None = None, where: Where | None = None) -> list[Object]:  # noqa: D102
        with self._lock:
            rows = [(key, row) for key, row in sorted(self._tables.objects.items()) if type in (None, row.type)]
        found = (row.to_object(key) for key, row in rows)
        return [item for item in found if matches(item.data, where)]

    def get_relations(self, ids: Collection[str]) -> dict[str, Relation]:  # noqa: D102
        rows = self._tables.relations
        return {key: _detached(rows[key]) for key in sorted(set(ids)) if key in rows}

    def relations(  # noqa: D102
        self,
        sources: Collection[str] | None = None,
        targets: Collection[str] | None = None,
        types: Collection[str] | None = None,
    ) -> list[Relation]:
        with self._lock:
            ends = sources if sources is not None else targets
            rows = self._tables.relations
            candidates = (
                rows.keys() if ends is None else set().union(*(self._tables.touching.get(end, ()) for end in ends))
            )
            return [
                _detached(rows[key])
                for key in sorted(candidates)
                if (sources is None or rows[key].source in sources)
                and (targets is None or rows[key].target in targets)
                and (types is None or rows[key].type in types)
            ]

    def get_patches(self, ids: Collection[str]) -> dict[str, Patch]:  # noqa: D102
        rows = self._tables.patches
        return {key: Patch(**canonical(rows[key].to_dict())) for key in sorted(set(ids)) if key in rows}

    def count_terms(  # noqa: D102
        self, terms: Collection[str], kinds: Collection[str], without: Collection[str] = ()
    ) -> tuple[int, dict[str, int]]:
        rows = [row for row in self._tables.objects.values() if row.type in kinds]
        found = [row for row in rows if not _has(row, without)]
        return len(rows), {term: n for term in sorted(set(terms)) if (n := sum(term in row.search for row in found))}

    def search(  # noqa: D102
        self, weights: Mapping[str, float], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Hit]:
        found = []
        for key, row in self._tables.objects.items():
            terms = tuple(sorted(weights.keys() & row.search))
            if terms and row.type in kinds and not _has(row, without):
                score = round(sum(weights[term] for term in terms), 6)
                found.append((score, row.updated_at, Hit(id=key, score=score, terms=terms)))
        found.sort(key=lambda item: item[2].id)
        found.sort(key=lambda item: item[:2], reverse=True)
        return [hit for _, _, hit in found[:limit]]

    def expand(  # noqa: D102
        self, ids: Collection[str], types: Collection[str], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Relation]:
        tables = self._tables
        found: set[str] = set()
        for start in set(ids):
            ranked = []
            for key in tables.touching.get(start, ()):
                relation = tables.relations[key]
                row = tables.objects.get(relation.target if relation.source == start else relation.source)
                if row and relation.type in types and row.type in kinds and not _has(row, without):
                    ranked.append((row.updated_at, key))
            ranked.sort(key=lambda item: item[1])
            ranked.sort(key=lambda item: item[0], reverse=True)
            found |= {key for _, key in ranked[:limit]}
        return [_detached(tables.relations[key]) for key in sorted(found)]

    def shadow(self) -> "InMemoryGraphStore":  # noqa: D102
        return InMemoryGraphStore()

    def swap(self, shadow: "InMemoryGraphStore", *, tip: int) -> bool:  # noqa: D102
        with self._lock:
            if shadow.head() != tip:
                return False
            self._tables = shadow._tables  # noqa: SLF001 - a store of its own kind
            return True

    def close(self) -> None:  # noqa: D102
        return


def mirrored(data: Mapping[str, Any]) -> dict[str, str | int | float | bool]:
    """Return the fields that a graph database can also keep as properties: scalars whose names are identifiers.

    Integers fit in 64 bits; names that belong to the node itself are left out.
    """
    return {
        name: value
        for name, value in data.items()
        if TYPE_PATTERN.fullmatch(name) and name not in RESERVED_PROPERTIES and _fits(value)
    }


def _fits(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**63
    return isinstance(value, (str, bool, float))


def searched(row: Object) -> tuple[str, ...]:
    """Return the texts by which an object is found: label, text, aliases and id."""
    aliases = row.data.get("aliases")
    names = [item for item in aliases if isinstance(item, str)] if isinstance(aliases, list) else []
    shown = [value for name in ("label", "text") if isinstance(value := row.data.get(name), str)]
    return (*shown, *names, row.id)


def iter_pages(log: EventStore, after: int, until: int | None, page: int = 1000) -> Iterator[Event]:
    """Iterate a log's events page by page, so that no more than one page is held."""
    while until is None or after < until:
        entries = log.read(after, page)
        if not entries:
            return
        for entry in entries:
            if until is not None and entry.position > until:
                return
            yield entry.event
        after = entries[-1].position


def missing_event(event_id: str) -> EventNotFoundError:
    """Return the error for an event id that the log does not hold."""
    return EventNotFoundError(f"no event {event_id!r} in the log; iterate `graph.events` to see what is there")


def check_cut(position: int, tip: int, batch_end: int) -> None:
    """Refuse a cut through the middle of a batch, or at no position of the log."""
    if not 0 <= position <= tip:
        msg = f"cannot cut the log after {position}; it holds the positions 0 to {tip}"
        raise UsageError(msg)
    if batch_end != position:
        msg = f"cannot cut the log after {position}: its batch ends at {batch_end}, and a batch stays whole"
        raise UsageError(msg)


def _detached(relation: Relation) -> Relation:
    return Relation(**canonical(relation.to_dict()))
