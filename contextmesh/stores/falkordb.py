"""The graph of a workspace, `cm:{name}:graph`, beside its log on one FalkorDB server.

A commit projects by one query. Graph commands never run inside a transaction: a failing query would leave the
other commands standing.
"""

import json
import time
import uuid
from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import falkordb
import redis

from contextmesh.core.chains import NodeTypes, Rels
from contextmesh.core.model import ChainMatch, Object, ObjectQuery, ObjectQueryResult, Patch, Relation
from contextmesh.core.names import check_kind, check_relation_type, possible_ids
from contextmesh.core.projection import Changes
from contextmesh.core.stores import MAX_FIELD_NAMES, Hit
from contextmesh.errors import IncompatibleRuntimeState, InvalidEventError, QueryError
from contextmesh.stores.cypher import (
    CHUNK,
    EITHER_WAY,
    OBJECT,
    RELATION,
    absences,
    chain_query,
    check_parameters,
    check_query,
    chunks,
    edge,
    node,
    plain,
    projection_query,
    properties,
    read_object,
    read_relation,
    read_relations,
    vector_property,
    written,
)
from contextmesh.stores.keyspace import OUTAGES, check_name, refused, retried
from contextmesh.stores.listening import Listeners, Query
from contextmesh.stores.server import Server
from contextmesh.stores.stream import FalkorDBEventStore
from contextmesh.stores.where import pushdown

__all__ = ["FalkorDBEventStore", "FalkorDBGraphStore"]

READ_TIMEOUT_MS = 60_000
COPY_PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8)
MAX_LIMIT = 2**31 - 1  # a larger one overflows in FalkorDB, and nothing comes back

SWAP = """
local top = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)
local tip = 0
if #top > 0 then tip = tonumber(string.match(top[1][1], '^(%d+)')) end
if tip ~= tonumber(ARGV[1]) or redis.call('EXISTS', KEYS[2]) == 0 then return 0 end
redis.call('RENAME', KEYS[2], KEYS[3])
return 1
"""


class FalkorDBGraphStore:
    """A workspace's graph: objects as `(:Node:<Kind>)`, relations as edges of their own type, `(:Head {seq})`.

    Every list is ordered by id, every value is a parameter, and what comes back is read from the exact
    JSON in `data`, never from the mirrored properties.

    Args:
        server: an open FalkorDB.
        name: the workspace.
        branch: the branch that it shows; "" for the workspace's own log.
        key: the graph's key; by default the workspace's or the branch's own.
    """

    def __init__(self, server: Server, name: str, *, branch: str = "", key: str | None = None) -> None:
        self._server = server
        self.name = check_name(name)
        self.branch_name = branch
        self._live = f"cm:{{{name}}}:{branch}{':' if branch else ''}"
        self.key = key or f"{self._live}graph"
        self._graph: falkordb.Graph = server.db.select_graph(self.key)
        self._relation_types: set[str] = set()
        self._property_names: set[str] = set()
        self._searchable = key is None  # a shadow is loaded first and indexed for search after
        self._prepared = False
        self._schemas_now = 0  # the position of the newest schema, as of the head that was read last
        self._schemas: tuple[int, dict[str, Any]] | None = None
        self.read_only = False
        self._listeners = Listeners()

    def __repr__(self) -> str:
        return f"<FalkorDBGraphStore: {self.name!r}>"

    # one query

    def listening(self) -> AbstractContextManager[list[Query]]:
        """Collect the Cypher that this thread sends through this store meanwhile, in order, as it was sent."""
        return self._listeners.listening()

    def _read(self, query: str, **parameters: Any) -> list[list[Any]]:
        """Read rows of any kind, as the client's parser makes them."""
        self._prepare()
        return self._ask(query, parameters)

    def _ask(self, query: str, parameters: dict[str, Any]) -> list[list[Any]]:
        def ask() -> list[list[Any]]:
            self._listeners.tell(query, parameters, writes=False)
            rows: list[list[Any]] = self._graph.ro_query(query, parameters, timeout=READ_TIMEOUT_MS).result_set
            return rows

        return retried(self._server, ask)

    def _rows(self, query: str, **parameters: Any) -> list[list[Any]]:
        """Read rows of text, whole numbers and nulls only; these come as they are, in half the client's time."""
        self._prepare()
        timeout = ("timeout", READ_TIMEOUT_MS)
        return retried(self._server, lambda: self._sent("GRAPH.RO_QUERY", query, parameters, *timeout))

    def _write(self, query: str, **parameters: Any) -> list[list[Any]]:
        return self._sent("GRAPH.QUERY", query, parameters)

    def _sent(self, command: str, query: str, parameters: Mapping[str, Any], *options: Any) -> list[list[Any]]:
        self._listeners.tell(query, parameters, writes=command == "GRAPH.QUERY")
        text = f"CYPHER {written(parameters)}{query}" if parameters else query
        answer = self._server.command(command, self.key, text, *options)
        if isinstance(answer[-1], redis.ResponseError):
            raise answer[-1]
        return list(answer[1]) if len(answer) > 1 else []  # a query that returns nothing has no rows

    # head and indexes

    def head(self) -> int:  # noqa: D102 - the protocol says it, here and below
        rows = self._read("MATCH (h:Head) RETURN h.seq, h.schemas")
        self._schemas_now = (rows[0][1] or 0) if rows else 0
        return int(rows[0][0]) if rows else 0

    def schemas(self) -> dict[str, Any]:  # noqa: D102
        at = self._schemas_now
        if self._schemas is None or self._schemas[0] != at:
            rows = self._read("MATCH (s:Schema) RETURN s.id, s.data ORDER BY s.id") if at else []
            self._schemas = (at, {key: json.loads(text) for key, text in rows})
        return self._schemas[1]

    def claim(self, run_id: str) -> None:  # noqa: D102
        query = "MATCH (h:Head) SET h.run = coalesce(h.run, $run) RETURN h.run"
        self._prepare()
        found = retried(self._server, lambda: self._write(query, run=run_id))[0][0]
        if found != run_id:
            msg = f"the graph of {self.name!r} shows another log's events; rebuild it from its own log"
            raise IncompatibleRuntimeState(msg)

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
            self.index()
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

    def index(self) -> None:  # noqa: D102
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
        rows = (row.data for row, _ in changes.objects.values() if not self._property_names.issuperset(row.data))
        names = {name for data in rows for name in properties(data)} - self._property_names
        if not names:
            return
        self._property_names = {row[0] for row in self._read("CALL db.propertyKeys()")}
        total = len(self._property_names | names)
        if total > MAX_FIELD_NAMES:
            msg = f"the graph would hold {total:,} field names, at most {MAX_FIELD_NAMES:,} fit; nest rare ones"
            raise InvalidEventError(msg)
        self._property_names |= names

    def prepare(self, changes: Changes) -> None:  # noqa: D102
        if changes.prepared is None:
            query, values = projection_query(changes)
            changes.prepared = f"{written(values)}{query}"

    def apply(self, changes: Changes, *, expected: int, new: int) -> bool:  # noqa: D102
        self._prepare()
        for type_ in sorted({row.type for row in changes.relations.values()} - self._relation_types):
            self._define(f"CREATE INDEX FOR ()-[r:`{check_relation_type(type_)}`]-() ON (r.id)")
            self._relation_types.add(type_)
        self.prepare(changes)
        try:
            rows = self._write(changes.prepared, expected=expected, new=new)
        except OUTAGES:
            self._server.reconnect()
            return self.head() == new
        except redis.ResponseError as error:
            raise refused(error) from None
        if rows and changes.schemas:
            self._schemas_now = new
        return bool(rows)

    # reading

    def get_objects(self, ids: Collection[str]) -> dict[str, Object]:  # noqa: D102
        wanted = possible_ids(ids)
        found: dict[str, Object] = {}
        for chunk in chunks(wanted):
            query = f"UNWIND $ids AS i MATCH (n:Node {{id: i}}) WHERE n.kind IS NOT NULL RETURN {OBJECT}"
            found |= {row[0]: read_object(row) for row in self._rows(query, ids=chunk)}
        return {key: found[key] for key in wanted if key in found}

    def query(self, plan: ObjectQuery) -> ObjectQueryResult:  # noqa: D102
        conditions, parameters, residual = pushdown(plan.where)
        match = f"MATCH {node('n', plan.type)} WHERE {' AND '.join(['n.kind IS NOT NULL', *conditions])}"
        if plan.mode == "exists" and not residual:
            return ObjectQueryResult(exists=bool(self._rows(f"{match} RETURN n.id LIMIT 1", **parameters)))
        limit = "" if plan.limit is None or residual else f" LIMIT {min(plan.limit, MAX_LIMIT)}"
        rows = self._rows(f"{match} RETURN {OBJECT} ORDER BY n.id{limit}", **parameters)
        return ObjectQueryResult(objects=tuple(map(read_object, rows)), residual=residual)

    def get_relations(self, ids: Collection[str]) -> dict[str, Relation]:  # noqa: D102
        wanted = possible_ids(ids)
        # Another process may have brought a type since; each type has an index of its own on the id.
        types = [row[0] for row in self._read("CALL db.relationshipTypes()")] if wanted else []
        found: dict[str, Relation] = {}
        for chunk in chunks(wanted) if types else []:
            match = "UNWIND $ids AS i MATCH (a)-[x:`{}` {{id: i}}]->(b) RETURN " + RELATION
            query = " UNION ALL ".join(match.format(name) for name in sorted(types))
            found |= {row[0]: read_relation(row) for row in self._rows(query, ids=chunk)}
        return {key: found[key] for key in wanted if key in found}

    def relations(  # noqa: D102
        self,
        sources: Collection[str] | None = None,
        targets: Collection[str] | None = None,
        types: Collection[str] | None = None,
    ) -> list[Relation]:
        if types is not None and not types:
            return []
        given = {"sources": sources, "targets": targets}
        ids = {key: possible_ids(value) for key, value in given.items() if value is not None}
        step = edge("x", types)
        if sources is not None and targets is not None:
            return self._between(ids["sources"], set(ids["targets"]), step)
        if sources is not None:
            query = f"UNWIND $sources AS s MATCH (a:Node {{id: s}}) WITH a MATCH (a)-{step}->(b)"
        elif targets is not None:
            query = f"UNWIND $targets AS t MATCH (b:Node {{id: t}}) WITH b MATCH (a)-{step}->(b)"
        else:
            query = f"MATCH (a:Node)-{step}->(b)"
        return read_relations(self._rows(f"{query} RETURN {RELATION}", **ids))

    def _between(self, sources: list[str], targets: set[str], step: str) -> list[Relation]:
        query = f"UNWIND $sources AS s MATCH (a:Node {{id: s}}) WITH a MATCH (a)-{step}->(b)"
        ends: dict[str, Any] = {}
        if len(targets) <= CHUNK:  # the server looks through the whole list for each row; a longer one costs more
            query, ends = f"{query} WHERE b.id IN $targets", {"targets": sorted(targets)}
        rows = self._rows(f"{query} RETURN {RELATION}", sources=sources, **ends)
        return read_relations([row for row in rows if row[2] in targets])

    def touching(self, ids: Collection[str], types: Collection[str] | None = None) -> list[Relation]:  # noqa: D102
        if types is not None and not types:
            return []
        match = f"UNWIND $ids AS i MATCH (n:Node {{id: i}}) WITH n MATCH (n)-{edge('x', types)}-()"
        return read_relations(self._rows(f"{match} RETURN {EITHER_WAY}", ids=possible_ids(ids)))

    def adjacent(self, ids: Collection[str], types: Collection[str] | None = None) -> set[str]:  # noqa: D102
        if types is not None and not types:
            return set()
        match = f"UNWIND $ids AS i MATCH (n:Node {{id: i}}) WITH n MATCH (n)-{edge('x', types)}-(m)"
        return {row[0] for row in self._rows(f"{match} WITH DISTINCT m RETURN m.id", ids=possible_ids(ids))}

    def match_chain(self, node_types: NodeTypes, rels: Rels, limit: int) -> list[ChainMatch]:  # noqa: D102
        rows = self._rows(chain_query(node_types, rels), limit=min(limit, MAX_LIMIT))
        size = len(node_types)
        objects = self.get_objects({key for row in rows for key in row[:size]})
        relations = self.get_relations({key for row in rows for key in row[size:]})
        return [  # what another process removed meanwhile is left out
            ChainMatch(objects=tuple(objects[key] for key in ends), relations=tuple(relations[key] for key in edges))
            for ends, edges in ((row[:size], row[size:]) for row in rows)
            if objects.keys() >= set(ends) and relations.keys() >= set(edges)
        ]

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
            "RETURN node.id, score, terms, node.updated_at "
            "ORDER BY score DESC, node.updated_at DESC, node.id LIMIT $limit"
        )
        rows = self._read(
            query,
            weights=[{"term": term, "weight": weight} for term, weight in sorted(weights.items())],
            kinds=sorted(set(kinds)),
            limit=min(limit, MAX_LIMIT),
        )
        return [
            Hit(id=key, score=round(float(score), 6), terms=tuple(sorted(terms)), updated_at=at)
            for key, score, terms, at in rows
        ]

    def expand(  # noqa: D102
        self, ids: Collection[str], types: Collection[str], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Relation]:
        tests = absences(without)
        named = "|".join(f"`{check_relation_type(name)}`" for name in sorted(set(types)))
        if not named:
            return []
        query = (
            # Bound first: left to itself the planner begins at the far end and scans every node. A subquery for each
            # id, so that no hub takes the others' share.
            "UNWIND $starts AS start CALL {WITH start MATCH (n:Node {id: start}) WITH n "
            f"MATCH (n)-[x:{named}]-(node:Node) WHERE node.kind IN $kinds{tests} "
            "WITH DISTINCT x, node ORDER BY node.updated_at DESC, x.id LIMIT $limit RETURN x} "
            f"RETURN {EITHER_WAY}"
        )
        fits = {"kinds": sorted(set(kinds)), "limit": min(limit, MAX_LIMIT)}
        return read_relations(self._rows(query, starts=possible_ids(ids), **fits))

    # vectors

    def unplaced(  # noqa: D102
        self, space: str, kinds: Collection[str], without: Collection[str], limit: int
    ) -> dict[str, Object]:
        name, tests = vector_property(space), absences(without)
        found: dict[str, Object] = {}
        for kind in sorted({check_kind(kind) for kind in kinds}):
            match = f"MATCH (node:`{kind}`) WHERE node.kind IS NOT NULL AND node.`{name}` IS NULL{tests} WITH node AS n"
            rows = self._rows(f"{match} RETURN {OBJECT} ORDER BY n.id LIMIT $limit", limit=limit)
            found |= {row[0]: read_object(row) for row in rows}
        return {key: found[key] for key in sorted(found)[:limit]}

    def place(self, space: str, vectors: Mapping[str, tuple[int, Sequence[float]]]) -> None:  # noqa: D102
        name = vector_property(space)
        rows = [{"id": key, "version": at, "vector": _floats(row)} for key, (at, row) in sorted(vectors.items())]
        if not rows:
            return
        if ("NODE", "Node", name) not in self._indexes():
            size = len(next(iter(vectors.values()))[1])
            options = f"{{dimension: {size}, similarityFunction: 'cosine'}}"
            self._define(f"CREATE VECTOR INDEX FOR (n:Node) ON (n.`{name}`) OPTIONS {options}")
        match = "UNWIND $rows AS r MATCH (n:Node {id: r.id}) WHERE n.version = r.version"
        query = f"{match} SET n.`{name}` = vecf32(r.vector) RETURN count(n)"
        retried(self._server, lambda: self._write(query, rows=rows))
        self._await_indexes()

    def near(  # noqa: D102
        self, space: str, vector: Sequence[float], kinds: Collection[str], without: Collection[str], limit: int
    ) -> dict[str, float]:
        name, tests = vector_property(space), absences(without)
        self._prepare()
        if ("NODE", "Node", name) not in self._indexes():
            return {}
        query = (
            f"CALL db.idx.vector.queryNodes('Node', '{name}', $limit, vecf32($vector)) YIELD node, score "
            f"WHERE node.kind IN $kinds{tests} RETURN node.id, score"
        )
        rows = self._read(query, vector=_floats(vector), kinds=sorted(set(kinds)), limit=min(limit, MAX_LIMIT))
        found = sorted((round(float(distance), 4) - 1, key) for key, distance in rows)
        return {key: -score for score, key in found}

    def known_vectors(self, space: str, digests: Collection[str]) -> dict[str, list[float]]:  # noqa: D102
        wanted = sorted(set(digests))
        if not wanted:
            return {}
        names = [f"{space}:{digest}" for digest in wanted]
        kept = retried(self._server, lambda: self._server.redis.hmget(self._vectors, names))
        return {digest: json.loads(text) for digest, text in zip(wanted, kept, strict=True) if text}

    def remember_vectors(self, space: str, vectors: Mapping[str, Sequence[float]]) -> None:  # noqa: D102
        rows: dict[Any, Any] = {f"{space}:{digest}": json.dumps(_floats(vector)) for digest, vector in vectors.items()}
        if rows:
            retried(self._server, lambda: self._server.redis.hset(self._vectors, mapping=rows))

    @property
    def _vectors(self) -> str:
        return f"cm:{{{self.name}}}:vectors"

    def cypher(self, query: str, parameters: Mapping[str, Any] | None = None, timeout_ms: int = READ_TIMEOUT_MS) -> Any:
        """Run a read-only query; return its column names and its rows, nodes and edges as plain mappings.

        Raises:
            QueryError: FalkorDB refused it (a write included), or it ran longer than `timeout_ms`.
        """
        self._prepare()
        check_query(query)
        values = check_parameters(parameters or {})

        def ask() -> Any:
            self._listeners.tell(query, values, writes=False)
            # A client graph caches labels and keys that a rebuild may have renumbered, hence a new one.
            return self._server.db.select_graph(self.key).ro_query(query, values, timeout=timeout_ms)

        result = retried(self._server, ask)
        names = [column[1] for column in result.header]
        return names, [[plain(value) for value in row] for row in result.result_set]

    # rebuilding

    def shadow(self, purpose: str = "rebuild") -> "FalkorDBGraphStore":  # noqa: D102
        key = f"cm:{{{self.name}}}:{purpose}-{uuid.uuid4().hex[:12]}:graph"
        return FalkorDBGraphStore(self._server, self.name, branch=self.branch_name, key=key)

    def copy(self, run_id: str, purpose: str = "rebuild") -> "FalkorDBGraphStore":  # noqa: D102
        self._prepare()
        made = self.shadow(purpose)
        for pause_s in COPY_PAUSES_S:
            try:
                retried(self._server, lambda: self._graph.copy(made.key))
                break
            except QueryError:  # the server cannot fork while it saves
                made.close()
                time.sleep(pause_s)
        belong = "MERGE (h:Head) ON CREATE SET h.seq = 0 SET h.run = $run"
        retried(self._server, lambda: made._write(belong, run=run_id))  # noqa: SLF001 - a store of its own kind
        return made

    def branch(self, name: str) -> "FalkorDBGraphStore":  # noqa: D102
        made = FalkorDBGraphStore(self._server, self.name, branch=name)
        made.read_only = self.read_only
        return made

    def drop_branch(self, name: str) -> None:  # noqa: D102
        retried(self._server, lambda: self._server.redis.delete(self.branch(name).key))

    def swap(self, shadow: "FalkorDBGraphStore", *, tip: int) -> bool:  # noqa: D102
        shadow.index()
        if shadow.head() != tip:
            return False
        arguments = (SWAP, 3, f"{self._live}log", shadow.key, self.key, tip)
        try:
            swapped = bool(self._server.eval(*arguments))
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
        if self.key != f"{self._live}graph":
            retried(self._server, lambda: self._server.redis.delete(self.key))


def _floats(vector: Sequence[float]) -> list[float]:
    """Return a vector as the query carries it: seven digits are what 32 bits hold."""
    return [float(f"{value:.7g}") for value in vector]
