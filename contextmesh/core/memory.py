"""The in-memory stores: for snapshots, teaching and tests, never for a workspace."""

import threading
import uuid
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import msgspec

from contextmesh.core.chains import NodeTypes, Rels, walk_chain
from contextmesh.core.events import Event, canonical, decode, encode, to_microseconds
from contextmesh.core.forked import (
    ForkedEventStore,
    check_cut,
    check_drop,
    check_fork,
    check_forks,
    dropped_branch,
    iter_pages,
    missing_branch,
    missing_event,
)
from contextmesh.core.model import ChainMatch, Object, ObjectQuery, ObjectQueryResult, Patch, Relation, matches
from contextmesh.core.projection import Changes
from contextmesh.core.stores import Branch, Entry, EventStore, Hit, cosine, mirrored, searched
from contextmesh.core.terms import search_text
from contextmesh.errors import ConcurrentWriterError, IncompatibleRuntimeState


@dataclass(slots=True)
class _Family:
    """What the in-memory logs of one family share: their registry of branches, and one lock."""

    lock: Any = field(default_factory=threading.RLock)
    branches: dict[str, Branch] = field(default_factory=dict)
    logs: dict[str, EventStore] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


class InMemoryEventStore:
    """A log that lives as long as its process.

    Args:
        base: the position that it begins after; only a branch's tail begins later than 0.
        run_id: tells this history from every other.
        name: the branch that it is the tail of.
    """

    def __init__(self, *, base: int = 0, run_id: str | None = None, name: str = "") -> None:
        self.run_id = run_id or uuid.uuid4().hex
        self.branch_name = name
        self.base = base
        self._lines: list[tuple[str, int, str]] = []  # the event, its batch's last position, its commit
        self._positions: dict[str, int] = {}
        self._counters: defaultdict[str, int] = defaultdict(int)
        self._family = _Family(logs={name: self})

    def __repr__(self) -> str:
        return f"<InMemoryEventStore: {len(self._lines)} events>"

    @property
    def _lock(self) -> Any:
        return self._family.lock

    def tip(self) -> int:  # noqa: D102 - the protocol says it, here and below
        return self.base + len(self._lines)

    def append_many(self, events: Sequence[Event], *, expected: int, commit_id: str) -> int:  # noqa: D102
        with self._lock:
            self._check_kept()
            if self.tip() != expected:
                landed = self._lines[expected - self.base : expected - self.base + 1] if expected >= self.base else []
                if landed and landed[0][2] == commit_id:
                    return expected + len(events)
                msg = f"the log ends at {self.tip()}, this write expected {expected}; read again and repeat it"
                raise ConcurrentWriterError(msg)
            last = expected + len(events)
            for position, event in enumerate(events, expected + 1):
                self._lines.append((encode(event), last, commit_id))
                self._positions[event.id] = position
            return last

    def _check_kept(self) -> None:
        if self.branch_name and self.branch_name not in self._family.branches:
            raise dropped_branch(self.branch_name)

    def append(self, event: Event) -> int:  # noqa: D102
        with self._lock:
            return self.append_many([event], expected=self.tip(), commit_id=event.id)

    def read(self, after: int, limit: int) -> list[Entry]:  # noqa: D102
        with self._lock:
            if after >= self.tip() or limit < 1:
                return []
            first = max(after, self.base)
            end = self._lines[min(first + limit, self.tip()) - self.base - 1][1]
            page = self._lines[first - self.base : end - self.base]
        return [
            Entry(position=position, event=decode(text, position), last=last, size=len(text))
            for position, (text, last, _) in enumerate(page, first + 1)
        ]

    def iter_events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:  # noqa: D102
        return iter_pages(self, after, until)

    def get_event(self, event_id: str) -> Event:  # noqa: D102
        with self._lock:
            if event_id not in self._positions:
                raise missing_event(event_id)
            position = self._positions[event_id]
            return decode(self._lines[position - self.base - 1][0], position)

    def position_of(self, event_id: str) -> int | None:  # noqa: D102
        return self._positions.get(event_id)

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
            own = position - self.base
            check_cut(position, self.tip(), self._lines[own - 1][1] if 0 < own <= len(self._lines) else position)
            check_forks(position, self.branch_name, self.branches())
            del self._lines[own:]
            self._positions = {key: value for key, value in self._positions.items() if value <= position}

    def fork(self, branch: Branch) -> ForkedEventStore:  # noqa: D102
        family = self._family
        with self._lock:
            check_fork(branch, self.tip(), used=branch.name in family.used)
            tail = InMemoryEventStore(base=branch.position, run_id=branch.run_id, name=branch.name)
            tail._family = family
            family.used.add(branch.name)
            family.branches[branch.name] = replace(branch, parent=self.branch_name)
            made = ForkedEventStore(family.logs[self.branch_name], tail, branch.position)
            family.logs[branch.name] = made
            return made

    def branches(self) -> list[Branch]:  # noqa: D102
        with self._lock:
            return [row for _, row in sorted(self._family.branches.items())]

    def branch(self, name: str) -> EventStore:  # noqa: D102
        with self._lock:
            if name not in self._family.branches:
                raise missing_branch(name, self.branches())
            return self._family.logs[name]

    def drop_branch(self, name: str) -> None:  # noqa: D102
        with self._lock:
            check_drop(name, self.branches())
            del self._family.branches[name], self._family.logs[name]

    def close(self) -> None:  # noqa: D102
        return


class _Row(msgspec.Struct, gc=False):
    """An object as the in-memory graph keeps it: data and provenance as JSON, so that every read is detached."""

    type: str
    version: int
    updated_at: str
    json: bytes

    def to_object(self, object_id: str) -> Object:
        data, provenance = msgspec.json.decode(self.json)
        return Object(id=object_id, type=self.type, data=data, version=self.version, provenance=provenance)


class _Edge(msgspec.Struct, gc=False):
    """A relation as the in-memory graph keeps it; see `_Row`."""

    source: str
    target: str
    type: str
    json: bytes

    def to_relation(self, relation_id: str) -> Relation:
        data, provenance = msgspec.json.decode(self.json)
        return Relation(
            id=relation_id,
            source=self.source,
            target=self.target,
            type=self.type,
            data=data,
            provenance=provenance,
        )


def _has(row: Object, without: Collection[str]) -> bool:
    return bool(without) and not mirrored(row.data).keys().isdisjoint(without)


@dataclass(slots=True)
class _Tables:
    head: int = 0
    run_id: str | None = None
    objects: dict[str, _Row] = field(default_factory=dict)
    relations: dict[str, _Edge] = field(default_factory=dict)
    touching: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    patches: dict[str, Patch] = field(default_factory=dict)
    schemas: dict[str, bytes] = field(default_factory=dict)
    terms: dict[str, frozenset[str]] = field(default_factory=dict)  # made when something is searched for
    vectors: dict[tuple[str, str], tuple[int, list[float]]] = field(default_factory=dict)  # (space, id) -> of a version

    def copied(self, run_id: str) -> "_Tables":
        return _Tables(
            head=self.head,
            run_id=run_id,
            objects=dict(self.objects),
            relations=dict(self.relations),
            touching=defaultdict(set, {key: set(ids) for key, ids in self.touching.items()}),
            patches=dict(self.patches),
            schemas=dict(self.schemas),
            terms=dict(self.terms),
            vectors=dict(self.vectors),
        )


class InMemoryGraphStore:
    """A graph that lives as long as its process; for snapshots, teaching and tests, never for a workspace."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._tables = _Tables()
        self._branches: dict[str, InMemoryGraphStore] = {}
        self._known_vectors: dict[tuple[str, str], list[float]] = {}

    def __repr__(self) -> str:
        return f"<InMemoryGraphStore: {len(self._tables.objects)} objects at position {self.head()}>"

    def head(self) -> int:  # noqa: D102 - the protocol says it, here and below
        return self._tables.head

    def claim(self, run_id: str) -> None:  # noqa: D102
        with self._lock:
            if self._tables.run_id not in (None, run_id):
                msg = "this graph shows another log's events; give each log a graph store of its own"
                raise IncompatibleRuntimeState(msg)
            self._tables.run_id = run_id

    def admit(self, changes: Changes) -> None:  # noqa: ARG002, D102 - it takes whatever fits in memory
        return

    def prepare(self, changes: Changes) -> None:  # noqa: ARG002, D102
        return

    def apply(self, changes: Changes, *, expected: int, new: int) -> bool:  # noqa: D102
        with self._lock:
            if self._tables.head != expected:
                return False
            self._remove(changes)
            self._write(changes)
            self._tables.head = new
            return True

    def _remove(self, changes: Changes) -> None:
        tables = self._tables
        gone = {row.id for row in changes.removed_relations.values()}
        for object_id in changes.removed_objects:
            tables.objects.pop(object_id, None)
            tables.terms.pop(object_id, None)
            self._forget_vectors(object_id)
            gone |= tables.touching.get(object_id, set())
        for relation_id in gone & tables.relations.keys():
            relation = tables.relations.pop(relation_id)
            for end in (relation.source, relation.target):
                tables.touching[end].discard(relation_id)
                if not tables.touching[end]:
                    del tables.touching[end]

    def _write(self, changes: Changes) -> None:
        tables = self._tables
        for key, (row, updated_at) in changes.objects.items():
            json = _encode([row.data, row.provenance])
            tables.objects[key] = _Row(row.type, row.version, updated_at, json)
            tables.terms.pop(key, None)
            self._forget_vectors(key)
        for key, relation in changes.relations.items():
            json = _encode([relation.data, relation.provenance])
            tables.relations[key] = _Edge(relation.source, relation.target, relation.type, json)
            tables.touching[relation.source].add(key)
            tables.touching[relation.target].add(key)
        tables.schemas |= {key: msgspec.json.encode(schema) for key, schema in changes.schemas.items()}
        tables.patches |= changes.patches
        for patch_id, (status, reason) in changes.verdicts.items():
            if patch_id in tables.patches:
                tables.patches[patch_id] = tables.patches[patch_id].settled(status, reason)

    def _forget_vectors(self, object_id: str) -> None:
        for known in [known for known in self._tables.vectors if known[1] == object_id]:
            del self._tables.vectors[known]

    def _terms(self, object_id: str, row: _Row) -> frozenset[str]:
        known = self._tables.terms.get(object_id)
        if known is None:
            known = frozenset(search_text(*searched(row.to_object(object_id))).split())
            self._tables.terms[object_id] = known
        return known

    def get_objects(self, ids: Collection[str]) -> dict[str, Object]:  # noqa: D102
        rows = self._tables.objects
        return {key: rows[key].to_object(key) for key in sorted(set(ids)) if key in rows}

    def query(self, plan: ObjectQuery) -> ObjectQueryResult:  # noqa: D102
        with self._lock:
            kept = self._tables.objects.items()
            rows = sorted((key, row) for key, row in kept if plan.type in (None, row.type))
        found = (item for key, row in rows if matches((item := row.to_object(key)).data, plan.where))
        if plan.mode == "exists":
            return ObjectQueryResult(exists=next(found, None) is not None)
        return ObjectQueryResult(objects=tuple(islice(found, plan.limit)))

    def get_relations(self, ids: Collection[str]) -> dict[str, Relation]:  # noqa: D102
        rows = self._tables.relations
        return {key: rows[key].to_relation(key) for key in sorted(set(ids)) if key in rows}

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
                rows[key].to_relation(key)
                for key in sorted(candidates)
                if (sources is None or rows[key].source in sources)
                and (targets is None or rows[key].target in targets)
                and (types is None or rows[key].type in types)
            ]

    def touching(self, ids: Collection[str], types: Collection[str] | None = None) -> list[Relation]:  # noqa: D102
        with self._lock:
            return [row.to_relation(key) for key, row in self._touching(ids, types)]

    def _touching(self, ids: Collection[str], types: Collection[str] | None) -> Iterator[tuple[str, _Edge]]:
        found = set().union(*(self._tables.touching.get(key, ()) for key in ids))
        rows = ((key, self._tables.relations[key]) for key in sorted(found))
        return (item for item in rows if types is None or item[1].type in types)

    def adjacent(self, ids: Collection[str], types: Collection[str] | None = None) -> set[str]:  # noqa: D102
        known = set(ids)
        with self._lock:
            rows = [row for _, row in self._touching(known, types)]
        return {row.target for row in rows if row.source in known} | {row.source for row in rows if row.target in known}

    def match_chain(self, node_types: NodeTypes, rels: Rels, limit: int) -> list[ChainMatch]:  # noqa: D102
        with self._lock:
            starts = self.query(ObjectQuery(type=node_types[0])).objects
            reads = self.get_objects, self.relations
            return walk_chain(node_types, rels, limit, starts=starts, get_objects=reads[0], relations=reads[1])

    def get_patches(self, ids: Collection[str]) -> dict[str, Patch]:  # noqa: D102
        rows = self._tables.patches
        return {key: Patch(**canonical(rows[key].to_dict())) for key in sorted(set(ids)) if key in rows}

    def schemas(self) -> dict[str, Any]:  # noqa: D102
        return {key: msgspec.json.decode(text) for key, text in sorted(self._tables.schemas.items())}

    def count_terms(  # noqa: D102
        self, terms: Collection[str], kinds: Collection[str], without: Collection[str] = ()
    ) -> tuple[int, dict[str, int]]:
        with self._lock:
            rows = {key: row for key, row in self._tables.objects.items() if row.type in kinds}
            found = [self._terms(key, row) for key, row in rows.items() if self._fits(key, without)]
        counts = {term: n for term in sorted(set(terms)) if (n := sum(term in known for known in found))}
        return len(rows), counts

    def _fits(self, object_id: str, without: Collection[str]) -> bool:
        return not without or not _has(self._tables.objects[object_id].to_object(object_id), without)

    def search(  # noqa: D102
        self, weights: Mapping[str, float], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Hit]:
        found = []
        with self._lock:
            for key, row in self._tables.objects.items():
                if row.type not in kinds:
                    continue
                terms = tuple(sorted(weights.keys() & self._terms(key, row)))
                if terms and self._fits(key, without):
                    score = round(sum(weights[term] for term in terms), 6)
                    hit = Hit(id=key, score=score, terms=terms, updated_at=to_microseconds(row.updated_at))
                    found.append((score, row.updated_at, hit))
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
                end = relation.target if relation.source == start else relation.source
                row = tables.objects.get(end)
                if row and relation.type in types and row.type in kinds and self._fits(end, without):
                    ranked.append((row.updated_at, key))
            ranked.sort(key=lambda item: item[1])
            ranked.sort(key=lambda item: item[0], reverse=True)
            found |= {key for _, key in ranked[:limit]}
        return [tables.relations[key].to_relation(key) for key in sorted(found)]

    def unplaced(  # noqa: D102
        self, space: str, kinds: Collection[str], without: Collection[str], limit: int
    ) -> dict[str, Object]:
        tables = self._tables
        with self._lock:
            keys = (
                key
                for key, row in sorted(tables.objects.items())
                if row.type in kinds and self._fits(key, without) and not self._vector(space, key)
            )
            return self.get_objects(list(islice(keys, limit)))

    def _vector(self, space: str, object_id: str) -> list[float] | None:
        version, vector = self._tables.vectors.get((space, object_id), (0, None))
        return vector if version == self._tables.objects[object_id].version else None

    def place(self, space: str, vectors: Mapping[str, tuple[int, Sequence[float]]]) -> None:  # noqa: D102
        with self._lock:
            for key, (version, vector) in vectors.items():
                row = self._tables.objects.get(key)
                if row and row.version == version:
                    self._tables.vectors[space, key] = (version, list(vector))

    def near(  # noqa: D102
        self, space: str, vector: Sequence[float], kinds: Collection[str], without: Collection[str], limit: int
    ) -> dict[str, float]:
        found = []
        with self._lock:
            for key, row in self._tables.objects.items():
                if row.type in kinds and self._fits(key, without) and (kept := self._vector(space, key)):
                    found.append((-cosine(vector, kept), key))
        return {key: -score for score, key in sorted(found)[:limit]}

    def known_vectors(self, space: str, digests: Collection[str]) -> dict[str, list[float]]:  # noqa: D102
        kept = self._known_vectors
        return {digest: list(kept[space, digest]) for digest in digests if (space, digest) in kept}

    def remember_vectors(self, space: str, vectors: Mapping[str, Sequence[float]]) -> None:  # noqa: D102
        self._known_vectors |= {(space, digest): list(vector) for digest, vector in vectors.items()}

    def shadow(self, purpose: str = "rebuild") -> "InMemoryGraphStore":  # noqa: ARG002, D102
        return InMemoryGraphStore()

    def index(self) -> None:  # noqa: D102
        return

    def copy(self, run_id: str, purpose: str = "rebuild") -> "InMemoryGraphStore":  # noqa: ARG002, D102
        made = InMemoryGraphStore()
        with self._lock:
            made._tables = self._tables.copied(run_id)
        return made

    def branch(self, name: str) -> "InMemoryGraphStore":  # noqa: D102
        with self._lock:
            made = self._branches.setdefault(name, InMemoryGraphStore())
            made._branches = self._branches  # noqa: SLF001 - a store of its own kind
            return made

    def drop_branch(self, name: str) -> None:  # noqa: D102
        self._branches.pop(name, None)

    def swap(self, shadow: "InMemoryGraphStore", *, tip: int) -> bool:  # noqa: D102
        with self._lock:
            if shadow.head() != tip:
                return False
            self._tables = shadow._tables  # noqa: SLF001 - a store of its own kind
            return True

    def close(self) -> None:  # noqa: D102
        return


_encode = msgspec.json.Encoder().encode
