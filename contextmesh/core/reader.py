"""Reader: what a graph can be asked. Everything that it returns is detached, and every list has a total order."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import overload

from contextmesh.core.events import Event, canonical
from contextmesh.core.model import Object, Patch, Relation, Where, matches
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
            return self._base().get_objects(ids)
        unknown = [key for key in ids if key not in pending.objects and key not in pending.removed_objects]
        return _overlay_objects(self._base().get_objects(unknown) if unknown else {}, pending, ids)

    def get_relation(self, relation_id: str) -> Relation | None:
        """Return a relation, or None if there is none of this id."""
        return self.get_relations_by_id([relation_id]).get(relation_id)

    def get_relations_by_id(self, ids: Collection[str]) -> dict[str, Relation]:
        """Return those of the relations that exist, by id."""
        pending = self._pending()
        found = self._base().get_relations(ids)
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

    def objects(self, type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the objects of a type that fulfil `where`, ordered by id.

        Args:
            type: a kind, or None for all.
            where: dotted path -> literal or {operator: value}, all of which must hold; a missing path is None.
                Operators: `> < >= <= == != in "not in"`.
        """
        pending = self._pending()
        found = self._base().objects(type, where)
        if not pending:
            return found
        rows = _overlay_objects({row.id: row for row in found}, pending, None)
        kept = [row for row in rows.values() if type in (None, row.type) and matches(row.data, where)]
        return sorted(kept, key=lambda row: row.id)

    def query(self, object_type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the same as `objects`."""
        return self.objects(object_type, where)

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
        found: dict[str, Relation] = {}
        if direction != "in":
            found |= {row.id: row for row in self.relations(source=object_id, type=type)}
        if direction != "out":
            found |= {row.id: row for row in self.relations(target=object_id, type=type)}
        return [found[key] for key in sorted(found)]

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
        edges: dict[str, Relation] = {}
        frontier = {object_id}
        for _ in range(depth):
            rows = self.get_relations(frontier, type) if frontier else []
            edges |= {row.id: row for row in rows}
            frontier = {end for row in rows for end in (row.source, row.target)} - seen
            seen |= frontier
        if depth:
            edges |= {row.id: row for row in self.relations(source=frontier, target=frontier, type=type)}
        objects = self.get_objects(seen)
        return [objects[key] for key in sorted(objects)], [edges[key] for key in sorted(edges)]

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
