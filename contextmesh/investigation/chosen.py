"""Which part of a graph is drawn: what lies around an object, or the hubs and what lies beside them."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from contextmesh.core.model import Object, Relation, View
from contextmesh.core.names import check_relation_type
from contextmesh.core.reader import Reader
from contextmesh.errors import UsageError
from contextmesh.investigation.retrieval import needed

MAX_DRAWN = 2000  # objects in one picture; more is a grey ball
MAX_HOPS = 3
MAX_RELATIONS_EACH = 10  # relations for each object that may be drawn, on average
SHARE_OF_HUBS = 6  # one in so many is chosen as a hub, the others since they lie beside one


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a graph, ordered by id, and how many objects and relations there are in all."""

    objects: Sequence[Object]
    relations: Sequence[Relation]
    total: tuple[int, int]


def choose(
    reader: Reader | View,
    *,
    center: str | None,
    hops: int,
    include: Iterable[str],
    kinds: Collection[str] | None,
    relation_types: Collection[str] | None,
    most: int,
) -> Part:
    """Return the part of a graph that is drawn, as `build_scene` describes it."""
    if type(hops) is not int or not 0 <= hops <= MAX_HOPS:
        msg = f"hops is {hops!r}; expected a whole number from 0 to {MAX_HOPS}"
        raise UsageError(msg)
    graph = _asked(reader, kinds, relation_types)
    first = graph.objects(dict.fromkeys([*([] if center is None else [center]), *include]))
    if center is not None:
        needed(first.get(center), center, "the graph")
    ids = dict.fromkeys(sorted(first, key=lambda key: (key != center, key))[:most])
    if center is not None:
        _add_around(graph, center, hops, ids, most)
    else:
        _add_hubs(graph, ids, most)
    objects = graph.objects(ids)
    relations = graph.relations(objects)[: MAX_RELATIONS_EACH * most]
    return Part(objects=[objects[key] for key in sorted(objects)], relations=relations, total=graph.total())


def _add_around(graph: "_Graph", center: str, hops: int, ids: dict[str, None], most: int) -> None:
    """Add what lies within some hops of the center: the near first, hubs before others, as long as there is room."""
    frontier: Sequence[str] = [center]
    seen = {center}
    for _ in range(hops):
        frontier = graph.beside(frontier, seen, most)
        seen |= set(frontier)
        _add(ids, frontier, most)
        if not frontier or len(ids) >= most:
            return


def _add_hubs(graph: "_Graph", ids: dict[str, None], most: int) -> None:
    """Add some hubs, then what lies beside all that was added, then further hubs, as long as there is room."""
    hubs = graph.hubs(most)
    _add(ids, hubs[: 1 + (most - len(ids)) // SHARE_OF_HUBS], most)
    if len(ids) < most:
        _add(ids, graph.beside(list(ids), ids.keys(), most - len(ids)), most)
    _add(ids, hubs, most)


def _add(ids: dict[str, None], more: Iterable[str], most: int) -> None:
    for key in more:
        if len(ids) < most:
            ids[key] = None


class _Graph(Protocol):
    """What choosing a part asks of a graph, bounded by the kinds and relation types that are wanted."""

    def objects(self, ids: Iterable[str]) -> dict[str, Object]:
        """Return those of the objects that exist."""
        ...

    def hubs(self, most: int) -> Sequence[str]:
        """Return the ids of the objects with the most relations, then by id."""
        ...

    def beside(self, ids: Collection[str], without: Collection[str], most: int) -> Sequence[str]:
        """Return the ids of the neighbours with the most relations, then by id."""
        ...

    def relations(self, ids: Collection[str]) -> Sequence[Relation]:
        """Return the relations among some objects, ordered by id."""
        ...

    def total(self) -> tuple[int, int]:
        """Return how many objects and relations there are, of whatever kind and type."""
        ...


@runtime_checkable
class _Cypher(Protocol):
    """A store that answers read-only queries: it finds hubs without handing out all that it holds."""

    def cypher(self, query: str, parameters: dict[str, Any] | None = None) -> tuple[list[str], list[list[Any]]]: ...


def _asked(reader: Reader | View, kinds: Collection[str] | None, types: Collection[str] | None) -> _Graph:
    store = getattr(reader, "store", None)
    if isinstance(reader, Reader) and isinstance(store, _Cypher):
        return _Queried(reader, store, kinds, types)
    return _InMemory(reader, kinds, types)


class _InMemory:
    """A view, or a graph in memory: all of it is at hand."""

    def __init__(self, reader: Reader | View, kinds: Collection[str] | None, types: Collection[str] | None) -> None:
        lines = reader.relations()
        self._objects = {row.id: row for row in reader.objects()}
        self._total = len(self._objects), len(lines)
        self._wanted = {key for key, row in self._objects.items() if kinds is None or row.type in kinds}
        self._relations = [row for row in lines if types is None or row.type in types]
        self._degrees = Counter(end for row in self._relations for end in (row.source, row.target))

    def _ranked(self, ids: Iterable[str], most: int) -> list[str]:
        return sorted(ids, key=lambda key: (-self._degrees[key], key))[:most]

    def objects(self, ids: Iterable[str]) -> dict[str, Object]:
        return {key: self._objects[key] for key in ids if key in self._objects}

    def hubs(self, most: int) -> list[str]:
        return self._ranked(self._wanted, most)

    def beside(self, ids: Collection[str], without: Collection[str], most: int) -> list[str]:
        known = set(ids)
        found = {row.target for row in self._relations if row.source in known}
        found |= {row.source for row in self._relations if row.target in known}
        return self._ranked((found & self._wanted).difference(without), most)

    def relations(self, ids: Collection[str]) -> list[Relation]:
        return [row for row in self._relations if row.source in ids and row.target in ids]

    def total(self) -> tuple[int, int]:
        return self._total


class _Queried:
    """A graph in a database: only the chosen part is read."""

    def __init__(
        self, reader: Reader, store: _Cypher, kinds: Collection[str] | None, types: Collection[str] | None
    ) -> None:
        self._reader = reader
        self._store = store
        self._values: dict[str, Any] = {} if kinds is None else {"kinds": sorted(kinds)}
        self._kind = "IS NOT NULL" if kinds is None else "IN $kinds"  # a bare end of a relation has none
        self._types = None if types is None else sorted(check_relation_type(name) for name in types)
        reader.position  # noqa: B018 - a projection that lags is repaired by asking the graph, not its store

    def _ids(self, match: str, most: int, **values: Any) -> list[str]:
        """Return the ids of the nodes `m` that match, those with the most relations first."""
        names = "".join(f", '{name}'" for name in self._types or ())
        degree = f"indegree(m{names}) + outdegree(m{names})" if self._types != [] else "0"
        query = f"{match} WITH m, {degree} AS degree ORDER BY degree DESC, m.id LIMIT $most RETURN m.id"
        return [row[0] for row in self._store.cypher(query, {**self._values, **values, "most": most})[1]]

    def objects(self, ids: Iterable[str]) -> dict[str, Object]:
        return self._reader.get_objects(list(ids))

    def hubs(self, most: int) -> list[str]:
        return self._ids(f"MATCH (m:Node) WHERE m.kind {self._kind}", most)

    def beside(self, ids: Collection[str], without: Collection[str], most: int) -> list[str]:
        if self._types == []:
            return []
        step = f"x:{'|'.join(f'`{name}`' for name in self._types)}" if self._types else "x"
        match = f"UNWIND $ids AS i MATCH (n:Node {{id: i}}) WITH n MATCH (n)-[{step}]-(m:Node)"
        known = set(without)  # left out here: the server would compare each neighbour with all of them
        found = self._ids(f"{match} WHERE m.kind {self._kind} WITH DISTINCT m", most + len(known), ids=sorted(ids))
        return [key for key in found if key not in known][:most]

    def relations(self, ids: Collection[str]) -> list[Relation]:
        return self._reader.relations(source=ids, target=ids, type=self._types)

    def total(self) -> tuple[int, int]:
        queries = "MATCH (m:Node) WHERE m.kind IS NOT NULL RETURN count(m)", "MATCH ()-[x]->() RETURN count(x)"
        objects, relations = (int(self._store.cypher(query)[1][0][0]) for query in queries)
        return objects, relations
