"""Rows and queries: how objects, relations and patches are written to a FalkorDB graph and read back. Pure."""

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec
from falkordb.edge import Edge
from falkordb.node import Node
from falkordb.path import Path

from contextmesh.core.chains import NodeTypes, Rels
from contextmesh.core.events import to_json, to_microseconds
from contextmesh.core.model import Object, Patch, Relation
from contextmesh.core.names import TYPE_PATTERN, check_kind, check_relation_type
from contextmesh.core.projection import Changes
from contextmesh.core.stores import RESERVED_PROPERTIES, mirrored, searched
from contextmesh.core.terms import search_text
from contextmesh.errors import CorruptedEventPayloadError, QueryError

CHUNK = 1000
MAX_NESTING = 12
TEXTS = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|`[^`]*`", re.DOTALL)
OBJECT = "n.id, n.kind, n.data, n.version, n.provenance"
RELATION = "x.id, a.id, b.id, type(x), x.data, x.provenance"
EITHER_WAY = "x.id, startNode(x).id, endNode(x).id, type(x), x.data, x.provenance"  # a RELATION found from either end


def projection_query(changes: Changes) -> tuple[str, dict[str, Any]]:
    """Return the one query that projects a batch: a subquery for each group, only those present, in sorted order.

    Chained UNWINDs would lose rows: an empty list drops the row and skips the rest without an error.
    """
    parts: list[str] = []
    values: dict[str, Any] = {}

    def group(name: str, rows: list[Any], *bodies: str) -> None:
        if rows:
            values[name] = rows
            parts.extend(f"CALL {{UNWIND ${name} AS r {body}}}" for body in bodies)

    for type_, gone in _by_type(changes.removed_relations.values()).items():
        ends = [{"id": row.id, "source": row.source, "target": row.target} for row in gone]
        match = f"MATCH (:Node {{id: r.source}})-[x:`{type_}` {{id: r.id}}]->(:Node {{id: r.target}})"
        group(f"unrelate_{type_}", ends, f"{match} DELETE x RETURN count(*) AS unrelate_{type_}")
    group(
        "remove",
        sorted(changes.removed_objects),
        "MATCH (n:Node {id: r}) OPTIONAL MATCH (n)--(p:Node) WHERE p.kind IS NULL "
        "WITH n, collect(DISTINCT p.id) AS ends DELETE n RETURN collect(ends) AS bare",
    )
    for kind, rows in _by_type(row for row, _ in changes.objects.values()).items():
        fields = [{"id": row.id, "fields": _fields(row, changes.objects[row.id][1])} for row in rows]
        made = [row for row in fields if row["id"] in changes.created]
        # FalkorDB takes much longer to label a node that the same query has made than to make it with its label.
        placed = f"MATCH (n:Node {{id: r.id}}) SET n = r.fields SET n:`{kind}` RETURN count(*) AS place_{kind}"
        absent = "OPTIONAL MATCH (m:Node {id: r.id}) WITH r, m WHERE m IS NULL"
        create = f"{absent} CREATE (n:Node:`{kind}`) SET n = r.fields RETURN count(*) AS create_{kind}"
        group(f"create_{kind}", made, placed, create)  # the first where a relation has kept its place
        body = f"MERGE (n:Node {{id: r.id}}) SET n = r.fields SET n:`{kind}` RETURN count(*) AS object_{kind}"
        group(f"object_{kind}", [row for row in fields if row["id"] not in changes.created], body)
    for type_, edges in _by_type(changes.relations.values()).items():
        body = (
            "MERGE (a:Node {id: r.source}) MERGE (b:Node {id: r.target}) "
            f"CREATE (a)-[x:`{type_}` {{id: r.id, data: r.data, provenance: r.provenance}}]->(b) "
            f"RETURN count(*) AS relate_{type_}"
        )
        group(f"relate_{type_}", [_edge(row) for row in edges], body)
    patches = [{"id": row.id, "fields": _patch(row)} for _, row in sorted(changes.patches.items())]
    proposed = [row for row in patches if row["id"] in changes.proposed]
    group("proposed", proposed, "CREATE (p:Patch) SET p = r.fields RETURN count(*) AS proposed")
    settled = [row for row in patches if row["id"] not in changes.proposed]
    group("patches", settled, "MERGE (p:Patch {id: r.id}) SET p = r.fields RETURN count(*) AS patches")
    verdicts = [{"id": key, "status": s, "reason": clean(why)} for key, (s, why) in sorted(changes.verdicts.items())]
    body = "MATCH (p:Patch {id: r.id}) SET p.status = r.status, p.reason = r.reason RETURN count(*) AS verdicts"
    group("verdicts", verdicts, body)
    schemas = [{"id": key, "data": to_json(schema)} for key, schema in sorted(changes.schemas.items())]
    group("schemas", schemas, "MERGE (s:Schema {id: r.id}) SET s.data = r.data RETURN count(*) AS schemas")
    parts += _bare(changes, values)
    moved = "h.seq = $new, h.schemas = $new" if schemas else "h.seq = $new"
    return " ".join([f"MATCH (h:Head) WHERE h.seq = $expected SET {moved} WITH h", *parts, "RETURN h.seq"]), values


def written(values: Mapping[str, Any]) -> str:
    """Return parameters as they stand before a query; the names are ours, each an identifier."""
    return "".join([f"{name}={_literal(value)} " for name, value in values.items()])


def _literal(value: Any) -> str:
    """Write a value of plain types as Cypher reads it, as the client does in three times the time."""
    kind = type(value)
    if kind is str:
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    if kind is dict:
        return f"{{{','.join([f'`{name}`:{_literal(item)}' for name, item in value.items()])}}}"
    if kind is list:
        return f"[{','.join(map(_literal, value))}]"
    return "null" if value is None else str(value)


def _bare(changes: Changes, values: dict[str, Any]) -> list[str]:
    """Return the subqueries that remove placeholders whose last edge has gone."""
    drop = "MATCH (p:Node {id: e}) WHERE p.kind IS NULL AND NOT (p)--() DELETE p RETURN count(*) AS"
    parts = []
    if changes.removed_relations:
        values["ends"] = sorted({end for row in changes.removed_relations.values() for end in (row.source, row.target)})
        parts.append(f"CALL {{UNWIND $ends AS e {drop} bare_ends}}")
    if changes.removed_objects:
        parts.append(f"CALL {{WITH bare UNWIND bare AS es UNWIND es AS e {drop} bare_left}}")
    return parts


def _by_type[T: (Object, Relation)](rows: Any) -> dict[str, list[Any]]:
    groups: dict[str, list[Any]] = {}
    for row in sorted(rows, key=lambda row: (row.type, row.id)):
        groups.setdefault(row.type, []).append(row)
    return groups


def _fields(row: Object, timestamp: str) -> dict[str, Any]:
    label, text = row.data.get("label"), row.data.get("text")
    return {
        **properties(row.data),
        "id": row.id,
        "kind": row.type,
        "label": clean(label) if isinstance(label, str) and label else row.id,
        "text": clean(text) if isinstance(text, str) else "",
        "updated_at": to_microseconds(timestamp),
        "version": row.version,
        "data": to_json(row.data),
        "provenance": to_json(row.provenance),
        "search": search_text(*searched(row)),
    }


def properties(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scalar fields that anyone's Cypher may use; the exact values stay in `data`."""
    return {name: clean(value) for name, value in mirrored(data).items()}


def clean[T](value: T) -> T | str:
    """Return a text as a property holds it: FalkorDB refuses NUL, so that it becomes U+FFFD. The rest stays as it is.

    The exact text is in `data`, where JSON escapes it.
    """
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def _edge(row: Relation) -> dict[str, Any]:
    ends = {"id": row.id, "source": row.source, "target": row.target}
    return {**ends, "data": to_json(row.data), "provenance": to_json(row.provenance)}


def _patch(row: Patch) -> dict[str, Any]:
    proposed = to_json(row.settled("proposed").to_dict())  # what it came to stands beside it
    fields = {"id": row.id, "target": row.target, "op": row.op, "status": row.status, "data": proposed}
    return fields | ({"reason": clean(row.reason)} if row.reason is not None else {})


def read_object(row: Sequence[Any]) -> Object:
    """Return the object of a row of `OBJECT`."""
    key, kind, data, version, provenance = row
    return Object(id=key, type=kind, data=_mapping(data, key), version=version, provenance=_mapping(provenance, key))


def read_relations(rows: Sequence[Sequence[Any]]) -> list[Relation]:
    """Return the relations of rows of `RELATION` by id, each once."""
    found = {row[0]: row for row in rows}
    return [read_relation(found[key]) for key in sorted(found)]


def read_relation(row: Sequence[Any]) -> Relation:
    """Return the relation of a row of `RELATION`."""
    key, source, target, type_, data, provenance = row
    return Relation(
        id=key,
        source=source,
        target=target,
        type=type_,
        data=_mapping(data, key),
        provenance=_mapping(provenance, key),
    )


def _mapping(text: object, key: object) -> dict[str, Any]:
    """Read the exact JSON that the projection wrote."""
    try:
        return _decode(text)
    except (ValueError, TypeError):
        msg = f"the graph's record of {key!r} is damaged; rebuild the graph from its log with ws.rebuild()"
        raise CorruptedEventPayloadError(msg) from None


_decode: Callable[[Any], dict[str, Any]] = msgspec.json.Decoder(dict[str, Any]).decode


def node(name: str, kind: str | None) -> str:
    """Return the pattern of an object of a kind, or of any; a placeholder fits `Node` too."""
    return f"({name}:{'Node' if kind is None else f'`{check_kind(kind)}`'})"


def edge(name: str, types: Collection[str] | None) -> str:
    """Return the pattern of a relation of one of the types, or of any."""
    named = "|".join(f"`{check_relation_type(type_)}`" for type_ in sorted(set(types or ())))
    return f"[{name}{':' if named else ''}{named}]"


def chain_query(node_types: NodeTypes, rels: Rels) -> str:
    """Return the query for a chain's matches: the ids of their objects, then those of their relations, in order.

    A clause for each hop, so that a relation may fill several, and so that the planner begins at the first node.
    """
    parts = [f"MATCH {node('n0', node_types[0])} WHERE n0.kind IS NOT NULL"]
    nodes: list[str] = ["n0"]
    relations: list[str] = []
    for at, (type_, direction) in enumerate(rels):
        step = edge(f"x{at}", None if type_ is None else [type_])
        arrow = f"-{step}->" if direction == "right" else f"<-{step}-"
        end = node(f"n{at + 1}", node_types[at + 1])
        known = ", ".join(nodes + relations)
        parts.append(f"WITH {known} MATCH (n{at}){arrow}{end} WHERE n{at + 1}.kind IS NOT NULL")
        nodes.append(f"n{at + 1}")
        relations.append(f"x{at}")
    columns = ", ".join(f"{name}.id" for name in nodes + relations)
    return f"{' '.join(parts)} RETURN {columns} ORDER BY {columns} LIMIT $limit"


def absences(names: Collection[str]) -> str:
    """Return the conditions under which a `node` holds none of these fields."""
    kept = sorted(check_relation_type(name) for name in set(names) - RESERVED_PROPERTIES)
    return "".join(f" AND node.`{name}` IS NULL" for name in kept)


def vector_property(space: str) -> str:
    """Return the property in which a space's vectors live; no field of an object can have this name."""
    return f"vector of {check_relation_type(space)}"


def check_query(query: str) -> None:
    """Refuse a user's query that would hold the server up or make it fetch something.

    FalkorDB's parser takes twice as long for each nested parenthesis, heeding no timeout: 16 take a second.
    """
    bare = TEXTS.sub("''", query)
    depth = deepest = 0
    for char in bare:
        depth += (char in "([{") - (char in ")]}")
        deepest = max(deepest, depth)
    if deepest > MAX_NESTING:
        msg = f"the query nests {deepest} brackets; at most {MAX_NESTING} are taken, so pass the rest as a parameter"
        raise QueryError(msg)
    if re.search(r"\bload\s+csv\b", bare, re.IGNORECASE):
        msg = "the query would make the server fetch a file or an address; read it yourself and pass it as a parameter"
        raise QueryError(msg)


def check_parameters(values: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a query's parameters, or refuse a name or value that could change the query's text."""
    for name in values:
        if not isinstance(name, str) or not TYPE_PATTERN.fullmatch(name):
            msg = f"{name!r} is no parameter name; expected a letter, then letters, digits or underscores"
            raise QueryError(msg)
    return {name: check_parameter(value, f"${name}") for name, value in values.items()}


def check_parameter(value: object, path: str) -> Any:
    """Return a query parameter of an exact plain type, or refuse it.

    The client pastes a parameter's text into the query, so an object's `str()` could carry Cypher of its own.

    Raises:
        QueryError: anything but str, int below 2^63, finite float, bool, None, or lists and dicts of those.
    """
    if type(value) is list:
        return [check_parameter(item, f"{path}[{at}]") for at, item in enumerate(value)]
    if type(value) is dict and all(type(key) is str and TYPE_PATTERN.fullmatch(key) for key in value):
        return {key: check_parameter(item, f"{path}.{key}") for key, item in value.items()}
    sound = value is None or type(value) is bool or (type(value) is int and -(2**63) <= value < 2**63)
    sound = sound or (type(value) is float and math.isfinite(value))
    sound = sound or (type(value) is str and not re.search("[\0\ud800-\udfff]", value))
    if not sound:
        msg = f"parameter {path} is {type(value).__name__} that FalkorDB cannot take; expected plain JSON types"
        raise QueryError(msg)
    return value


def plain(value: object) -> Any:
    """Return what a query returned as plain data."""
    if isinstance(value, Node):
        return {"labels": sorted(value.labels or []), **value.properties}
    if isinstance(value, Edge):
        return {"type": value.relation, **value.properties}
    if isinstance(value, Path):
        return {"nodes": [plain(row) for row in value.nodes()], "edges": [plain(row) for row in value.edges()]}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def chunks(values: Sequence[str]) -> list[Sequence[str]]:
    """Return ids in groups that one query can take."""
    return [values[at : at + CHUNK] for at in range(0, len(values), CHUNK)]
