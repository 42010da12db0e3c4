"""The in-memory graph, searched and walked without a database: for snapshots, teaching and tests."""

import threading
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from contextmesh.core.chains import NodeTypes, Rels, walk_chain
from contextmesh.core.events import canonical, to_microseconds
from contextmesh.core.model import ChainMatch, Object, ObjectQuery, ObjectQueryResult, Patch, Relation, matches
from contextmesh.core.projection import Changes
from contextmesh.core.stores import Hit, cosine, mirrored, searched
from contextmesh.core.terms import search_text
from contextmesh.errors import IncompatibleRuntimeState


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
