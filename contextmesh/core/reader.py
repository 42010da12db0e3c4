"""Reader: what a graph can be asked. Everything that it returns is detached, and every list has a total order."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, overload

from contextmesh.core.chains import MAX_CHAIN_MATCHES, NodeTypes, Rels, check_chain, walk_chain
from contextmesh.core.events import Event, canonical
from contextmesh.core.model import ChainMatch, Object, ObjectQuery, Patch, Relation, Where, matches
from contextmesh.core.projection import Changes
from contextmesh.core.stores import EventStore, GraphStore, Hit
from contextmesh.errors import UsageError

MAX_HOPS = 10


class EventLog(Sequence[Event]):
    """The log as a sequence that reads its pages when asked; index 0 is position 1."""

    def __init__(self, log: EventStore) -> None:
        self._log = log

    def __len__(self) -> int:
        return self._log.count()

    def __iter__(self) -> Iterator[Event]:
        return self._log.iter_events()

    def __repr__(self) -> str:
        return f"<EventLog: {len(self)} events>"

    def after(self, position: int) -> Iterator[Event]:
        """Iterate the events after a log position."""
        return self._log.iter_events(position)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        size = len(self)
        if isinstance(index, slice):
            wanted = range(*index.indices(size))
            if not wanted:
                return []
            low, high = min(wanted), max(wanted)
            page = list(self._log.iter_events(low, high + 1))
            return [page[at - low] for at in wanted]
        at = index + size if index < 0 else index
        if not 0 <= at < size:
            msg = f"no event at index {index}; the log holds {size}"
            raise IndexError(msg)
        return next(self._log.iter_events(at, at + 1))


class Reader:
    """Read a graph. Everything that it returns is detached, and every list has a total order."""

    def __init__(self, log: EventStore, store: GraphStore) -> None:
        self._log = log
        self._store = store

    def _base(self) -> GraphStore:
        """Return the store to read from; Graph repairs a projection that lags here."""
        return self._store

    def _pending(self) -> Changes | None:
        """Return what this thread has written but not yet committed."""
        return None

    def _stored_objects(self, ids: Collection[str]) -> dict[str, Object]:
        return self._base().get_objects(ids)

    def _stored_relations(self, ids: Collection[str]) -> dict[str, Relation]:
        return self._base().get_relations(ids)

    @property
    def position(self) -> int:
        """The log position that the graph shows."""
        return self._base().head()

    @property
    def events(self) -> EventLog:
        """The log, oldest first: len, index, slice, iterate."""
        return EventLog(self._log)

    def get_object(self, object_id: str) -> Object | None:
        """Return an object, or None if there is none of this id."""
        return self.get_objects([object_id]).get(object_id)

    def get_objects(self, ids: Collection[str]) -> dict[str, Object]:
        """Return those of the objects that exist, by id."""
        pending = self._pending()
        if not pending:
            return self._stored_objects(ids)
        unknown = [key for key in ids if key not in pending.objects and key not in pending.removed_objects]
        return _overlay_objects(self._stored_objects(unknown) if unknown else {}, pending, ids)

    def get_relation(self, relation_id: str) -> Relation | None:
        """Return a relation, or None if there is none of this id."""
        return self.get_relations_by_id([relation_id]).get(relation_id)

    def get_relations_by_id(self, ids: Collection[str]) -> dict[str, Relation]:
        """Return those of the relations that exist, by id."""
        pending = self._pending()
        found = self._stored_relations(ids)
        if not pending:
            return found
        mine = [pending.relations[key] for key in ids if key in pending.relations]
        return {row.id: row for row in _overlay_relations(list(found.values()), pending, mine)}

    def get_patch(self, patch_id: str) -> Patch | None:
        """Return a patch, or None if there is none of this id."""
        return self.get_patches([patch_id]).get(patch_id)

    def get_patches(self, ids: Collection[str]) -> dict[str, Patch]:
        """Return those of the patches that exist, by id."""
        pending = self._pending()
        if not pending:
            return self._base().get_patches(ids)
        known = {key: pending.patches[key] for key in ids if key in pending.patches}
        unknown = [key for key in ids if key not in known]
        found = self._base().get_patches(unknown) if unknown else {}
        for key in found.keys() & pending.verdicts.keys():
            found[key] = found[key].settled(*pending.verdicts[key])
        return found | known

    def schemas(self) -> dict[str, Any]:
        """Return the JSON Schema of each object type that has one."""
        pending = self._pending()
        return self._base().schemas() | (pending.schemas if pending else {})

    def objects(self, type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the objects of a type that fulfil `where`, ordered by id.

        Args:
            type: a kind, or None for all.
            where: dotted path -> literal or {operator: value}, all of which must hold; a missing path is None.
                Operators: `> < >= <= == != in "not in"`.
        """
        plan = ObjectQuery(type=type, where=where or {})
        found = self._base().query(plan).matching()
        pending = self._pending()
        if not pending:
            return found
        rows = _overlay_objects({row.id: row for row in found}, pending, None)
        kept = [row for row in rows.values() if type in (None, row.type) and matches(row.data, plan.where)]
        return sorted(kept, key=lambda row: row.id)

    def query(self, object_type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the same as `objects`."""
        return self.objects(object_type, where)

    def exists(self, type: str | None = None, where: Where | None = None) -> bool:
        """Whether `objects` of the same arguments would return any."""
        if self._pending():
            return bool(self.objects(type, where))
        result = self._base().query(ObjectQuery(type=type, where=where or {}, mode="exists"))
        return bool(result.matching()) if result.exists is None else result.exists

    def relations(
        self,
        source: str | Collection[str] | None = None,
        target: str | Collection[str] | None = None,
        type: str | Collection[str] | None = None,
    ) -> list[Relation]:
        """Return the relations that fit, ordered by id; each argument takes one value, several, or None for any."""
        sources, targets, types = _several(source), _several(target), _several(type)
        found = self._base().relations(sources, targets, types)
        pending = self._pending()
        if not pending:
            return found
        mine = (
            row
            for row in pending.relations.values()
            if (sources is None or row.source in sources)
            and (targets is None or row.target in targets)
            and (types is None or row.type in types)
        )
        return _overlay_relations(found, pending, mine)

    def get_relations(
        self,
        object_id: str | Collection[str],
        type: str | Collection[str] | None = None,
        direction: str = "both",
    ) -> list[Relation]:
        """Return the relations that touch an object, ordered by id.

        Args:
            object_id: one id, or several.
            type: a relation type, several, or None for any.
            direction: `out`, `in` or `both`.
        """
        if direction not in ("out", "in", "both"):
            msg = f"direction is {direction!r}; expected 'out', 'in' or 'both'"
            raise UsageError(msg)
        if direction == "out":
            return self.relations(source=object_id, type=type)
        if direction == "in":
            return self.relations(target=object_id, type=type)
        ids, types = set(_several(object_id) or ()), _several(type)
        found = self._base().touching(ids, types)
        pending = self._pending()
        if not pending:
            return found
        mine = (
            row
            for row in pending.relations.values()
            if (row.source in ids or row.target in ids) and (types is None or row.type in types)
        )
        return _overlay_relations(found, pending, mine)

    def neighborhood(
        self,
        object_id: str,
        depth: int = 1,
        type: str | Collection[str] | None = None,
    ) -> tuple[list[Object], list[Relation]]:
        """Return the objects within `depth` hops (0 to 10), the start included, and the relations among them.

        It visits each node once, hop by hop, and never enumerates paths.
        """
        if not 0 <= depth <= MAX_HOPS:
            msg = f"depth is {depth}; expected 0 to {MAX_HOPS}"
            raise UsageError(msg)
        seen = {object_id}
        frontier = {object_id}
        for _ in range(depth):
            frontier = self._adjacent(frontier, type) - seen
            seen |= frontier
            if not frontier:
                break
        relations = self.relations(source=seen - frontier, type=type) if depth else []  # none of these leads outside
        if depth and frontier:
            relations += self.relations(source=frontier, target=seen, type=type)
        objects = self.get_objects(seen)
        return [objects[key] for key in sorted(objects)], sorted(relations, key=lambda row: row.id)

    def _adjacent(self, ids: set[str], type: str | Collection[str] | None) -> set[str]:
        if not self._pending():
            return self._base().adjacent(ids, _several(type))
        return {end for row in self.get_relations(ids, type) for end in (row.source, row.target)}

    def match_chain(self, node_types: NodeTypes, rels: Rels, limit: int = MAX_CHAIN_MATCHES) -> list[ChainMatch]:
        """Return every way through the graph that fits a linear chain of types.

        A node or a relation may fill several positions of one match. Every position is an object: a relation's end
        without one fits nowhere.

        Args:
            node_types: a kind for each position, None for any.
            rels: (relation type, direction) for each hop, so one fewer; None for any type. `right` is a relation
                from this position to the next, `left` one from the next position to this. At most 10 hops.
            limit: at most so many matches, the first in order; the number of matches may grow with every hop.

        Returns:
            The matches by the ids of their objects, then by the ids of their relations.

        Raises:
            UsageError: the parts do not fit together.

        Example:
            Who owns what a change affects:

                graph.match_chain(["Change", "System", "Person"], [("AFFECTS", "right"), ("OWNED_BY", "right")])
        """
        check_chain(node_types, rels, limit)
        base = self._base()
        if not self._pending():
            return base.match_chain(node_types, rels, limit)
        starts, reads = self.objects(node_types[0]), (self.get_objects, self.relations)
        return walk_chain(node_types, rels, limit, starts=starts, get_objects=reads[0], relations=reads[1])

    def count_terms(
        self, terms: Collection[str], kinds: Collection[str], without: Collection[str] = ()
    ) -> tuple[int, dict[str, int]]:
        """Return how many objects of these kinds there are, and how many each term would find in a `search`."""
        return self._base().count_terms(terms, kinds, without)

    def search(
        self, weights: Mapping[str, float], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Hit]:
        """Return the best committed objects by the sum of their terms' weights, then newest, then by id."""
        return self._base().search(weights, kinds, without, limit)

    def near(
        self, space: str, vector: Sequence[float], kinds: Collection[str], without: Collection[str], limit: int
    ) -> dict[str, float]:
        """Return about the `limit` committed objects whose vectors are nearest: id -> cosine, nearest first."""
        return self._base().near(space, vector, kinds, without, limit)

    def expand(
        self, ids: Collection[str], types: Collection[str], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Relation]:
        """Return, for each id, up to `limit` committed relations to the newest neighbours of these kinds."""
        return self._base().expand(ids, types, kinds, without, limit)


def _overlay_objects(found: dict[str, Object], pending: Changes, ids: Collection[str] | None) -> dict[str, Object]:
    for key in found.keys() & pending.removed_objects.keys():
        del found[key]
    for key in pending.objects if ids is None else ids:
        if key in pending.objects:
            found[key] = Object(**canonical(pending.objects[key][0].to_dict()))
    return found


def _overlay_relations(found: list[Relation], pending: Changes, mine: Iterable[Relation]) -> list[Relation]:
    gone = {row.id for row in pending.removed_relations.values()}
    ends = pending.removed_objects.keys()
    rows = {row.id: row for row in found if row.id not in gone and row.source not in ends and row.target not in ends}
    rows |= {row.id: Relation(**canonical(row.to_dict())) for row in mine}
    return [rows[key] for key in sorted(rows)]


def _several(value: str | Collection[str] | None) -> Collection[str] | None:
    return [value] if isinstance(value, str) else value
