"""The log and the graph of a workspace, side by side on one FalkorDB server.

The log is a stream, `cm:{name}:log`; the graph a FalkorDB graph, `cm:{name}:graph`; the counters a hash,
`cm:{name}:ids`. A commit appends by a server-side script and projects by one query. Graph commands never
run inside a transaction: a failing query would leave the other commands standing.
"""

import json
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import falkordb
import redis

from contextmesh.core.events import (
    Event,
    check_kind,
    check_relation_type,
    decode,
    encode,
    possible_ids,
    to_json,
)
from contextmesh.core.model import Object, Patch, Relation, Where, matches
from contextmesh.core.projection import Changes
from contextmesh.core.stores import MAX_FIELD_NAMES, Entry, Hit, check_cut, iter_pages, missing_event
from contextmesh.errors import ConcurrentWriterError, CorruptedEventPayloadError, InvalidEventError, QueryError
from contextmesh.stores.cypher import (
    OBJECT,
    RELATION,
    absences,
    check_parameters,
    check_query,
    chunks,
    plain,
    projection_query,
    properties,
    read_object,
    read_relation,
)
from contextmesh.stores.keyspace import OUTAGES, check_name, lost, refused, retried
from contextmesh.stores.server import Server

READ_TIMEOUT_MS = 60_000
MAX_RESENDS = 10
MAX_LIMIT = 2**31 - 1  # a larger one overflows in FalkorDB, and nothing comes back

# An entry's id is its position. The header `<base>-1` sorts before the first entry and after a parent's last.
APPEND = """
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local tip = tonumber(ARGV[3])
if #top > 0 then
  tip = tonumber(string.match(top[1][1], '^(%d+)'))
else
  redis.call('XADD', KEYS[1], ARGV[3] .. '-1', 'v', '1', 'header', ARGV[4])
end
if tip ~= tonumber(ARGV[1]) then return {'conflict', tip} end
local last = tip + #ARGV - 4
for i = 5, #ARGV do
  redis.call('XADD', KEYS[1], (tip + i - 4) .. '-0', 'v', '1', 'event', ARGV[i], 'commit', ARGV[2], 'last', last)
end
return {'ok', last}
"""
# A stream never takes an id below one that was deleted, so what stays is written to a new stream.
TRUNCATE = """
local rows = redis.call('XRANGE', KEYS[1], '-', ARGV[1] .. '-1')
redis.call('DEL', KEYS[2])
for _, row in ipairs(rows) do redis.call('XADD', KEYS[2], row[1], unpack(row[2])) end
if #rows > 0 then redis.call('RENAME', KEYS[2], KEYS[1]) else redis.call('DEL', KEYS[1]) end
return #rows
"""
SWAP = """
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local tip = 0
if #top > 0 then tip = tonumber(string.match(top[1][1], '^(%d+)')) end
if tip ~= tonumber(ARGV[1]) or redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call('RENAME', KEYS[2], KEYS[3])
return 1
"""


class FalkorDBEventStore:
    """A workspace's log: a stream whose entry ids are the positions. It is never trimmed.

    Args:
        server: an open FalkorDB.
        name: the workspace.
        key: the stream's key; by default the workspace's own.
    """

    def __init__(self, server: Server, name: str, *, key: str | None = None) -> None:
        self._server = server
        self.name = check_name(name)
        self.key = key or f"cm:{{{name}}}:log"
        self._ids = f"cm:{{{name}}}:ids"
        self._lock = threading.Lock()
        self._positions: dict[str, int] = {}
        self._indexed = 0

    def __repr__(self) -> str:
        return f"<FalkorDBEventStore: {self.name!r}>"

    def exists(self) -> bool:
        """Whether the log has been begun."""
        return bool(retried(self._server, lambda: self._server.redis.exists(self.key)))

    def beside(self) -> "FalkorDBEventStore":
        """Return a new log under a key of its own, to be filled and then put in this one's place."""
        key = f"cm:{{{self.name}}}:restore-{uuid.uuid4().hex[:12]}:log"
        return FalkorDBEventStore(self._server, self.name, key=key)

    def take(self, other: "FalkorDBEventStore") -> bool:
        """Put a complete log in this one's place, unless this one has begun meanwhile."""
        return bool(retried(self._server, lambda: self._server.redis.renamenx(other.key, self.key)))

    def tip(self) -> int:  # noqa: D102 - the protocol says it, here and below
        top: Any = retried(self._server, lambda: self._server.redis.xrevrange(self.key, count=1))
        return _position(top[0][0]) if top else 0

    def begin(self) -> None:
        """Write the header entry, if the log has none yet."""
        self._script(APPEND, [self.key], [-1, "", 0, self._header()])

    def append_many(self, events: Sequence[Event], *, expected: int, commit_id: str) -> int:  # noqa: D102
        # After an outage the outcome is unknown: the very same batch again, same id, same expectation.
        lines = [expected, commit_id, 0, self._header(), *map(encode, events)]
        outcome, tip = self._script(APPEND, [self.key], lines)
        if outcome == "ok" or self._landed(expected, commit_id):
            return expected + len(events)
        msg = f"the log ends at {tip}, this write expected {expected}; read again and repeat it"
        raise ConcurrentWriterError(msg)

    def _header(self) -> str:
        return to_json({"parent": None, "position": 0, "run": uuid.uuid4().hex})

    def _landed(self, expected: int, commit_id: str) -> bool:
        """Whether the log holds this commit right after the expected position."""
        at = f"{expected + 1}-0"
        rows = self._range(at, at, None)
        return bool(rows) and rows[0][1].get("commit") == commit_id

    def _script(self, script: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
        """Run a script whose repetition is harmless, until its outcome is known."""
        self._server.check_open()
        for _ in range(MAX_RESENDS):
            try:
                return self._server.redis.eval(script, len(keys), *keys, *args)
            except OUTAGES:
                self._server.reconnect()
            except redis.ResponseError as error:
                raise refused(error) from None
        raise lost(self._server)

    def append(self, event: Event) -> int:  # noqa: D102
        while True:
            try:
                return self.append_many([event], expected=self.tip(), commit_id=uuid.uuid4().hex)
            except ConcurrentWriterError:
                continue

    def read(self, after: int, limit: int) -> list[Entry]:  # noqa: D102
        if limit < 1:
            return []
        rows = self._range(f"{after + 1}-0", "+", limit)
        if rows and _last(rows[-1]) > _position(rows[-1][0]):
            rows += self._range(f"{_position(rows[-1][0]) + 1}-0", f"{_last(rows[-1])}-0", None)
        return [_entry(row) for row in rows]

    def _range(self, low: str, high: str, count: int | None) -> list[tuple[str, dict[str, str]]]:
        found: Any = retried(self._server, lambda: self._server.redis.xrange(self.key, low, high, count=count))
        return list(found)

    def iter_events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:  # noqa: D102
        return iter_pages(self, after, until)

    def get_event(self, event_id: str) -> Event:  # noqa: D102
        position = self._index().get(event_id)
        if position is None:
            raise missing_event(event_id)
        return next(self.iter_events(position - 1, position))

    def has_event(self, event_id: str) -> bool:  # noqa: D102
        return event_id in self._index()

    def _index(self) -> dict[str, int]:
        """Return event id -> position, read on from where it ended last time."""
        with self._lock:
            for event in self.iter_events(self._indexed):
                self._indexed += 1
                self._positions[event.id] = self._indexed
            return self._positions

    def count(self) -> int:  # noqa: D102
        return self.tip()

    def reserve(self, counter: str, n: int) -> int:  # noqa: D102
        last = retried(self._server, lambda: self._server.redis.hincrby(self._ids, counter, n))
        return int(last) - n + 1

    def raise_counter(self, counter: str, at_least: int) -> None:
        """Set a counter past a number that is in use, as after a restore."""
        script = (
            "local now = tonumber(redis.call('HGET', KEYS[1], ARGV[1]) or '0') "
            "if now < tonumber(ARGV[2]) then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) end return 1"
        )
        self._script(script, [self._ids], [counter, at_least])

    def truncate_after(self, position: int) -> None:  # noqa: D102
        row = self._range(f"{position}-0", f"{position}-0", None) if position > 0 else []
        check_cut(position, self.tip(), _last(row[0]) if row else position)
        self._script(TRUNCATE, [self.key, f"cm:{{{self.name}}}:cut"], [position])
        with self._lock:
            self._positions, self._indexed = {}, 0

    def close(self) -> None:  # noqa: D102 - the server is its opener's to close
        return


class FalkorDBGraphStore:
    """A workspace's graph: objects as `(:Node:<Kind>)`, relations as edges of their own type, `(:Head {seq})`.

    Every list is ordered by id, every value is a parameter, and what comes back is read from the exact
    JSON in `data`, never from the mirrored properties.

    Args:
        server: an open FalkorDB.
        name: the workspace.
        key: the graph's key; by default the workspace's own.
    """

    def __init__(self, server: Server, name: str, *, key: str | None = None) -> None:
        self._server = server
        self.name = check_name(name)
        self.key = key or f"cm:{{{name}}}:graph"
        self._graph: falkordb.Graph = server.db.select_graph(self.key)
        self._relation_types: set[str] = set()
        self._property_names: set[str] = set()
        self._searchable = key is None  # a shadow is loaded first and indexed for search after
        self._prepared = False
        self.read_only = False

    def __repr__(self) -> str:
        return f"<FalkorDBGraphStore: {self.name!r}>"

    # one query

    def _read(self, query: str, **parameters: Any) -> list[list[Any]]:
        self._prepare()
        return self._ask(query, parameters)

    def _ask(self, query: str, parameters: dict[str, Any]) -> list[list[Any]]:
        def ask() -> list[list[Any]]:
            rows: list[list[Any]] = self._graph.ro_query(query, parameters, timeout=READ_TIMEOUT_MS).result_set
            return rows

        return retried(self._server, ask)

    def _write(self, query: str, **parameters: Any) -> list[list[Any]]:
        rows: list[list[Any]] = self._graph.query(query, parameters).result_set
        return rows

    # head and indexes

    def head(self) -> int:  # noqa: D102 - the protocol says it, here and below
        rows = self._read("MATCH (h:Head) RETURN h.seq")
        return int(rows[0][0]) if rows else 0

    def _prepare(self) -> None:
        """Make the head and the indexes where they are missing; once for each open store."""
        if self._prepared:
            return
        if self.read_only:
            self._prepared = True
            return
        try:
            has_head = bool(self._ask("MATCH (h:Head) RETURN h.seq", {}))
        except QueryError:  # a graph that does not exist cannot be read
            has_head = False
        if not has_head:
            retried(self._server, lambda: self._write("MERGE (h:Head) ON CREATE SET h.seq = $base", base=0))
        present = self._indexes()
        if ("NODE", "Node", "id") not in present:
            self._define("CREATE INDEX FOR (n:Node) ON (n.id)")
        if ("NODE", "Patch", "id") not in present:
            self._define("CREATE INDEX FOR (n:Patch) ON (n.id)")
        if self._searchable and ("NODE", "Node", "search") not in present:
            self._index_search()
        self._relation_types = {label for entity, label, _ in present if entity == "RELATIONSHIP"}
        self._await_indexes()
        self._prepared = True

    def _indexes(self) -> set[tuple[str, str, str]]:
        query = "CALL db.indexes() YIELD label, properties, entitytype RETURN entitytype, label, properties"
        return {(entity, label, name) for entity, label, names in self._ask(query, {}) for name in names}

    def _define(self, query: str) -> None:
        """Create an index; that another process was faster is fine."""
        try:
            retried(self._server, lambda: self._write(query))
        except QueryError as error:
            if "already indexed" not in str(error):
                raise

    def _index_search(self) -> None:
        self._define(
            "CALL db.idx.fulltext.createNodeIndex({label: 'Node', stopwords: []}, {field: 'search', nostem: true})",
        )
        self._await_indexes()

    def _await_indexes(self) -> None:
        """Wait until every index answers; one that is still being built finds nothing, without an error."""
        pause_s = 0.0005
        while any(row[0] != "OPERATIONAL" for row in self._ask("CALL db.indexes() YIELD status RETURN status", {})):
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 0.1)

    # writing

    def admit(self, changes: Changes) -> None:  # noqa: D102
        names = {name for row, _ in changes.objects.values() for name in properties(row.data)} - self._property_names
        if not names:
            return
        self._property_names = {row[0] for row in self._read("CALL db.propertyKeys()")}
        total = len(self._property_names | names)
        if total > MAX_FIELD_NAMES:
            msg = f"the graph would hold {total:,} field names, at most {MAX_FIELD_NAMES:,} fit; nest rare ones"
            raise InvalidEventError(msg)
        self._property_names |= names

    def apply(self, changes: Changes, *, expected: int, new: int) -> bool:  # noqa: D102
        self._prepare()
        for type_ in sorted({row.type for row in changes.relations.values()} - self._relation_types):
            self._define(f"CREATE INDEX FOR ()-[r:`{check_relation_type(type_)}`]-() ON (r.id)")
            self._relation_types.add(type_)
        query, parameters = projection_query(changes)
        self._server.check_open()
        try:
            rows = self._write(query, expected=expected, new=new, **parameters)
        except OUTAGES:
            self._server.reconnect()
            return self.head() == new
        except redis.ResponseError as error:
            raise refused(error) from None
        return bool(rows)

    # reading

    def get_objects(self, ids: Collection[str]) -> dict[str, Object]:  # noqa: D102
        wanted = possible_ids(ids)
        found: dict[str, Object] = {}
        for chunk in chunks(wanted):
            query = f"UNWIND $ids AS i MATCH (n:Node {{id: i}}) WHERE n.kind IS NOT NULL RETURN {OBJECT} ORDER BY n.id"
            found |= {row[0]: read_object(row) for row in self._read(query, ids=chunk)}
        return {key: found[key] for key in wanted if key in found}

    def objects(self, type: str | None = None, where: Where | None = None) -> list[Object]:  # noqa: D102
        label = f"`{check_kind(type)}`" if type is not None else "Node"
        query = f"MATCH (n:{label}) WHERE n.kind IS NOT NULL RETURN {OBJECT} ORDER BY n.id"
        rows = (read_object(row) for row in self._read(query))
        return [row for row in rows if matches(row.data, where)]

    def get_relations(self, ids: Collection[str]) -> dict[str, Relation]:  # noqa: D102
        wanted = possible_ids(ids)
        # Another process may have brought a type since; each type has an index of its own on the id.
        types = [row[0] for row in self._read("CALL db.relationshipTypes()")] if wanted else []
        found: dict[str, Relation] = {}
        for chunk in chunks(wanted) if types else []:
            match = "UNWIND $ids AS i MATCH (a)-[x:`{}` {{id: i}}]->(b) RETURN " + RELATION
            query = " UNION ALL ".join(match.format(name) for name in sorted(types))
            found |= {row[0]: read_relation(row) for row in self._read(query, ids=chunk)}
        return {key: found[key] for key in wanted if key in found}

    def relations(  # noqa: D102
        self,
        sources: Collection[str] | None = None,
        targets: Collection[str] | None = None,
        types: Collection[str] | None = None,
    ) -> list[Relation]:
        named = ":" + "|".join(f"`{check_relation_type(name)}`" for name in sorted(set(types))) if types else ""
        if types is not None and not named:
            return []
        edge = f"[x{named}]"
        if sources is not None:
            ends = "" if targets is None else " WHERE b.id IN $targets"
            query = f"UNWIND $sources AS s MATCH (a:Node {{id: s}}) WITH a MATCH (a)-{edge}->(b:Node){ends}"
        elif targets is not None:
            query = f"UNWIND $targets AS t MATCH (b:Node {{id: t}}) WITH b MATCH (a:Node)-{edge}->(b)"
        else:
            query = f"MATCH (a:Node)-{edge}->(b:Node)"
        given = {"sources": sources, "targets": targets}
        parameters = {key: possible_ids(value) for key, value in given.items() if value is not None}
        rows = self._read(f"{query} RETURN {RELATION} ORDER BY x.id", **parameters)
        return [read_relation(row) for row in rows]

    def get_patches(self, ids: Collection[str]) -> dict[str, Patch]:  # noqa: D102
        query = "UNWIND $ids AS i MATCH (p:Patch {id: i}) RETURN p.id, p.data, p.status, p.reason ORDER BY p.id"
        rows = self._read(query, ids=possible_ids(ids))
        return {key: Patch(**json.loads(data)).settled(status, reason) for key, data, status, reason in rows}

    def count_terms(  # noqa: D102
        self, terms: Collection[str], kinds: Collection[str], without: Collection[str] = ()
    ) -> tuple[int, dict[str, int]]:
        labels = sorted({check_kind(kind) for kind in kinds})
        total = sum(int(self._read(f"MATCH (n:`{label}`) RETURN count(n)")[0][0]) for label in labels)
        query = (
            "UNWIND $terms AS t CALL db.idx.fulltext.queryNodes('Node', t) YIELD node "
            f"WHERE node.kind IN $kinds{absences(without)} RETURN t, count(node) ORDER BY t"
        )
        rows = self._read(query, terms=sorted(set(terms)), kinds=labels)
        return total, {term: int(n) for term, n in rows}

    def search(  # noqa: D102
        self, weights: Mapping[str, float], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Hit]:
        tests = absences(without)
        query = (
            "UNWIND $weights AS w CALL db.idx.fulltext.queryNodes('Node', w.term) YIELD node "
            f"WHERE node.kind IN $kinds{tests} WITH node, collect(w.term) AS terms, sum(w.weight) AS score "
            "WITH node, terms, round(score * 1000000) / 1000000 AS score "
            "RETURN node.id, score, terms ORDER BY score DESC, node.updated_at DESC, node.id LIMIT $limit"
        )
        rows = self._read(
            query,
            weights=[{"term": term, "weight": weight} for term, weight in sorted(weights.items())],
            kinds=sorted(set(kinds)),
            limit=min(limit, MAX_LIMIT),
        )
        return [Hit(id=key, score=round(float(score), 6), terms=tuple(sorted(terms))) for key, score, terms in rows]

    def expand(  # noqa: D102
        self, ids: Collection[str], types: Collection[str], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Relation]:
        tests = absences(without)
        named = "|".join(f"`{check_relation_type(name)}`" for name in sorted(set(types)))
        if not named:
            return []
        query = (
            # Bound first: left to itself the planner begins at the far end and scans every node.
            f"MATCH (n:Node {{id: $start}}) WITH n MATCH (n)-[x:{named}]-(node:Node) WHERE node.kind IN $kinds{tests} "
            "WITH DISTINCT x, node ORDER BY node.updated_at DESC, x.id LIMIT $limit "
            "RETURN x.id, startNode(x).id, endNode(x).id, type(x), x.data, x.provenance"
        )
        found: dict[str, Relation] = {}
        for start in possible_ids(ids):  # one query an id, so that no hub takes the others' share
            rows = self._read(query, start=start, kinds=sorted(set(kinds)), limit=min(limit, MAX_LIMIT))
            found |= {row[0]: read_relation(row) for row in rows}
        return [found[key] for key in sorted(found)]

    def cypher(self, query: str, parameters: Mapping[str, Any] | None = None, timeout_ms: int = READ_TIMEOUT_MS) -> Any:
        """Run a read-only query; return its column names and its rows, nodes and edges as plain mappings.

        Raises:
            QueryError: FalkorDB refused it (a write included), or it ran longer than `timeout_ms`.
        """
        self._prepare()
        check_query(query)
        values = check_parameters(parameters or {})

        def ask() -> Any:
            # A client graph caches labels and keys that a rebuild may have renumbered, hence a new one.
            return self._server.db.select_graph(self.key).ro_query(query, values, timeout=timeout_ms)

        result = retried(self._server, ask)
        names = [column[1] for column in result.header]
        return names, [[plain(value) for value in row] for row in result.result_set]

    # rebuilding

    def shadow(self) -> "FalkorDBGraphStore":  # noqa: D102
        key = f"cm:{{{self.name}}}:rebuild-{uuid.uuid4().hex[:12]}:graph"
        return FalkorDBGraphStore(self._server, self.name, key=key)

    def swap(self, shadow: "FalkorDBGraphStore", *, tip: int) -> bool:  # noqa: D102
        shadow._index_search()  # noqa: SLF001 - a store of its own kind
        if shadow.head() != tip:
            return False
        log = f"cm:{{{self.name}}}:log"
        arguments = (SWAP, 3, log, shadow.key, self.key, tip)
        try:
            swapped = bool(self._server.redis.eval(*arguments))
        except OUTAGES:
            self._server.reconnect()
            swapped = not self._server.redis.exists(shadow.key)
        if swapped:
            self._prepared = False
            self._property_names = set()
            self._graph = self._server.db.select_graph(self.key)
        return swapped

    def close(self) -> None:
        """Remove the graph if it is a shadow that was never swapped in; the server is its opener's to close."""
        if self.key != f"cm:{{{self.name}}}:graph":
            retried(self._server, lambda: self._server.redis.delete(self.key))


def _position(entry_id: str) -> int:
    return int(entry_id.partition("-")[0])


def _last(row: tuple[str, dict[str, str]]) -> int:
    return int(row[1].get("last", _position(row[0])))


def _entry(row: tuple[str, dict[str, str]]) -> Entry:
    position = _position(row[0])
    if "event" not in row[1]:
        msg = f"the log entry at position {position} holds no event; restore the log from an export"
        raise CorruptedEventPayloadError(msg)
    return Entry(position=position, event=decode(row[1]["event"], position), last=_last(row))
