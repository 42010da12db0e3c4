"""The log and the graph on FalkorDB: what is written, that it is only what was meant, names and leftovers."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextmesh.core import projection
from contextmesh.core.events import TickingClock, encode
from contextmesh.core.graph import Graph
from contextmesh.core.memory import InMemoryEventStore, InMemoryGraphStore
from contextmesh.core.projection import fold
from contextmesh.core.terms import terms
from contextmesh.errors import (
    CorruptedEventPayloadError,
    InvalidEventError,
    InvalidNameError,
    QueryError,
    WorkspaceNotFoundError,
)
from contextmesh.stores import falkordb, keyspace
from contextmesh.stores.cypher import check_parameter
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.keyspace import (
    check_name,
    drop_workspace,
    leftovers,
    remove_leftover,
    workspace_keys,
    workspace_names,
)
from contextmesh.stores.server import Server, open_server
from contextmesh.testing import DIFFICULT, event, object_created, objects, relation_created
from tests.conftest import START, Workspace
from tests.stores.conftest import Asked


def nodes(store: FalkorDBGraphStore) -> list[dict[str, Any]]:
    """Every node but the head, by id, as the database shows it to anyone."""
    rows = store.cypher("MATCH (n) WHERE NOT n:Head RETURN n ORDER BY n.id")[1]
    return [row[0] for row in rows]


def reopened(server: Server, name: str) -> Graph:
    """Open a workspace as another process would."""
    return Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name), clock=TickingClock(START))


def drawing(store: FalkorDBGraphStore) -> dict[str, list[str]]:
    """Every node and edge with all that it carries, and every index."""

    def rows(query: str) -> list[str]:
        return sorted(json.dumps(row, sort_keys=True) for row in store.cypher(query)[1])

    return {
        "nodes": rows("MATCH (n) RETURN n"),
        "edges": rows("MATCH (a)-[x]->(b) RETURN a.id, x, b.id"),
        "indexes": rows("CALL db.indexes() YIELD label, properties, types, entitytype, language, stopwords "
                        "RETURN label, properties, types, entitytype, language, stopwords"),
    }  # fmt: skip


def explained(store: FalkorDBGraphStore, text: str) -> str:
    """The plan of a query as it was sent."""
    return "\n".join(store._graph.execute_command("GRAPH.EXPLAIN", store.key, text))


# Names


@pytest.mark.parametrize("good", ["a", "0", "acmeshop", "a-b_c", "x" * 63])
def test_good_names(good: str) -> None:
    assert check_name(good) == good


@pytest.mark.parametrize(
    "bad", ["", "A", "-a", "_a", "a b", "a:b", "a}", "{a", "a*", "a?", "é", "x" * 64, "a\n", 7, None]
)
def test_bad_names(bad: Any, server: Server) -> None:
    for use in (
        check_name,
        lambda name: FalkorDBEventStore(server, name),
        lambda name: FalkorDBGraphStore(server, name),
    ):
        with pytest.raises(InvalidNameError, match="is no workspace name; expected up to 63 of a-z, 0-9"):
            use(bad)
    with pytest.raises(InvalidNameError, match="is no workspace name"):
        drop_workspace(server, bad)


def test_keys(server: Server, graph: Graph, name: str) -> None:
    assert workspace_keys(server, name) == [f"cm:{{{name}}}:log", f"cm:{{{name}}}:graph"]
    graph.add_object("Memory")
    assert workspace_keys(server, name) == [f"cm:{{{name}}}:log", f"cm:{{{name}}}:graph", f"cm:{{{name}}}:ids"]
    assert name in workspace_names(server)


def test_drop_erases_that_exact_name_only(server: Server) -> None:
    names = ["ab", "ab-c", "ab_c", "a", "abc"]
    for name in names:
        reopened(server, name).add_object("Memory")
    drop_workspace(server, "ab")
    assert workspace_keys(server, "ab") == []
    assert [name for name in workspace_names(server) if name in names] == ["a", "ab-c", "ab_c", "abc"]
    assert all(len(workspace_keys(server, name)) == 3 for name in names if name != "ab")
    for name in names[1:]:
        assert len(reopened(server, name).objects()) == 1
        drop_workspace(server, name)
    with pytest.raises(WorkspaceNotFoundError, match=r"no workspace 'ab' in embedded FalkorDB in .*; it holds: "):
        drop_workspace(server, "ab")


def test_two_graphs_see_nothing_of_each_other(server: Server, workspace: Workspace) -> None:
    with workspace() as one, workspace() as two:
        left, right = reopened(server, one), reopened(server, two)
        left.add_object("Memory", {"text": "redis"}, id="a")
        left.add_relation("a", "b", "MENTIONS", id="r")
        left.propose_patch("a", {"x": 1}, id="p")
        assert (right.objects(), right.relations(), right.get_patch("p"), len(right.events)) == ([], [], None, 0)
        assert right.search({"redi": 1.0}, ["Memory"], (), 9) == []
        assert right.add_object("Memory").id == "Memory#1"
        assert left.add_object("Memory").id == "Memory#1"
        assert right.events[0].id == "evt_001"
        right.remove_object("Memory#1")
        drop_workspace(server, two)
        assert [row.id for row in reopened(server, one).objects()] == ["Memory#1", "a"]


# The log


def test_entries(server: Server, graph: Graph, name: str) -> None:
    """The stream as DESIGN fixes it: a header, then one entry a position, `v: 1`, with its commit and its end."""
    graph.add_object("Memory", id="a")
    graph.patch_object("a", {"x": 1})
    rows: Any = server.redis.xrange(f"cm:{{{name}}}:log")
    assert [row[0] for row in rows] == ["0-1", "1-0", "2-0", "3-0"]
    header = json.loads(rows[0][1]["header"])
    assert (header["parent"], header["position"], len(header["run"])) == (None, 0, 32)
    assert all(row[1]["v"] == "1" for row in rows)
    assert [row[1]["last"] for row in rows[1:]] == ["1", "3", "3"]
    assert rows[2][1]["commit"] == rows[3][1]["commit"] != rows[1][1]["commit"]
    assert [row[1]["event"] for row in rows[1:]] == [encode(event) for event in graph.events]


def test_begin_writes_a_header_once(server: Server, log: FalkorDBEventStore, name: str) -> None:
    assert not log.exists()
    log.begin()
    first: Any = server.redis.xrange(f"cm:{{{name}}}:log")
    log.begin()
    assert server.redis.xrange(f"cm:{{{name}}}:log") == first
    assert (log.exists(), log.tip(), log.read(0, 10)) == (True, 0, [])
    assert log.append(event(1)) == 1


def test_an_entry_that_is_no_event(server: Server, log: FalkorDBEventStore, name: str) -> None:
    log.append(event(1))
    server.redis.xadd(f"cm:{{{name}}}:log", {"note": "by hand"}, id="2-0")
    server.redis.xadd(f"cm:{{{name}}}:log", {"event": "{"}, id="3-0")
    with pytest.raises(CorruptedEventPayloadError, match="the log entry at position 2 holds no event"):
        log.read(0, 10)
    with pytest.raises(CorruptedEventPayloadError, match="the event at position 3 cannot be read"):
        log.read(2, 10)


def test_counters_can_be_raised_never_lowered(log: FalkorDBEventStore) -> None:
    log.raise_counter("Memory", 7)
    assert log.reserve("Memory", 1) == 8
    log.raise_counter("Memory", 3)
    assert log.reserve("Memory", 1) == 9


def test_an_outcome_is_known_whoever_came_after(log: FalkorDBEventStore) -> None:
    log.append_many([event(1), event(2)], expected=0, commit_id="mine")
    log.append(event(3))
    assert log.append_many([event(1), event(2)], expected=0, commit_id="mine") == 2
    assert log.tip() == 3


# The graph as anyone's Cypher sees it


def test_an_object_as_a_node(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_object(
        "Entity",
        {"label": "Checkout API", "text": "it's", "tier": 1, "up": True, "load": 0.5, "no": None, "l": [1]},
        id="a",
    )
    [node] = nodes(store)
    provenance = {"created_by": "evt_001", "updated_by": "evt_001", "actor": "system", "evidence": []}
    assert json.loads(node.pop("provenance")) == provenance
    assert json.loads(node.pop("data"))["l"] == [1]
    assert set(node.pop("search").split()) == {"checkout", "api", "it", "s", "a"}
    assert node == {
        "labels": ["Entity", "Node"],
        "id": "a",
        "kind": "Entity",
        "label": "Checkout API",
        "text": "it's",
        "updated_at": 1_767_225_600_000_000,
        "version": 1,
        "tier": 1,
        "up": True,
        "load": 0.5,
    }


def test_fields_do_not_overwrite_the_nodes_own(graph: Graph, store: FalkorDBGraphStore) -> None:
    data = {
        "id": "x",
        "kind": "y",
        "version": 9,
        "updated_at": 0,
        "data": "z",
        "search": "zebra",
        "labels": "q",
        "a b": 1,
        "é": 2,
    }
    row = graph.add_object("Entity", data, id="a")
    [node] = nodes(store)
    assert [node[key] for key in ("id", "kind", "version", "label", "text")] == ["a", "Entity", 1, "a", ""]
    assert node["updated_at"] == 1_767_225_600_000_000
    assert json.loads(node["data"]) == row.data == data
    assert "zebra" not in node["search"]
    assert not {"a b", "é"} & node.keys()
    assert graph.objects() == [row]
    assert graph.search({"zebra": 1.0}, ["Entity"], (), 9) == []


def test_a_patch_leaves_no_field_behind(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_object("Entity", {"old": 1, "label": "Old"}, id="a")
    graph.patch_object("a", {"new": 2}, op="replace")
    [_, node] = sorted(nodes(store), key=lambda node: "Node" in node["labels"])
    assert ("old" in node, node["new"], node["label"], node["version"]) == (False, 2, "a", 2)


def test_placeholders_vanish_with_their_last_edge(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_object("Entity", id="a")
    graph.add_object("Entity", id="b")
    graph.add_relation("a", "p", "MENTIONS", id="r1")
    graph.add_relation("b", "p", "AFFECTS", id="r2")
    graph.add_relation("q", "q", "MENTIONS", id="r3")
    assert [(node["id"], node["labels"]) for node in nodes(store)] == [
        ("a", ["Entity", "Node"]),
        ("b", ["Entity", "Node"]),
        ("p", ["Node"]),
        ("q", ["Node"]),
    ]
    graph.remove_relation("r1")
    assert [node["id"] for node in nodes(store)] == ["a", "b", "p", "q"]
    graph.remove_object("b")
    assert [node["id"] for node in nodes(store)] == ["a", "q"]
    graph.remove_relation("r3")
    assert [node["id"] for node in nodes(store)] == ["a"]
    with graph.batch():
        graph.add_relation("a", "z", "MENTIONS", id="r4")
        graph.remove_object("a")
    assert nodes(store) == []


def test_a_placeholder_becomes_an_object_and_one_again(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_relation("a", "b", "MENTIONS", id="r")
    graph.add_object("Entity", {"n": 1}, id="b")
    assert [(node["id"], node["labels"]) for node in nodes(store)] == [("a", ["Node"]), ("b", ["Entity", "Node"])]
    graph.remove_object("b")
    assert nodes(store) == []
    with graph.batch():
        graph.add_object("Entity", {"n": 1}, id="b")
        graph.remove_object("b")
        graph.add_relation("a", "b", "MENTIONS", id="r2")
    assert [(node["id"], node["labels"]) for node in nodes(store)] == [("a", ["Node"]), ("b", ["Node"])]


def test_many_ends_in_one_batch_are_one_node_each(graph: Graph, store: FalkorDBGraphStore) -> None:
    with graph.batch():
        for n in range(50):
            graph.add_relation(f"n{n % 5}", f"n{n % 3}", "MENTIONS" if n % 2 else "AFFECTS")
    assert [node["id"] for node in nodes(store)] == ["n0", "n1", "n2", "n3", "n4"]
    assert len(graph.relations()) == 50


def test_another_kind_of_the_same_id_has_its_label_alone(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_object("Memory", id="a")
    with graph.batch():
        graph.remove_object("a")
        graph.add_object("Entity", id="a")
    assert [node["labels"] for node in nodes(store)] == [["Entity", "Node"]]


# Exact values and hostile text

HOSTILE = [
    "'}) DETACH DELETE n //",
    '"}) DETACH DELETE n //',
    "`) MATCH (n) DETACH DELETE n //",
    "\\",
    "\\\\'",
    "\\u0027",
    "$ids",
    "CYPHER a=1 RETURN a",
    "// comment /* and */",
    "\n\r\t\v\f\x01\x1f\x7f\x85\u2028",
    "\0",
    "a\0b",
    "\U0001f525\U0001f469\u200d\U0001f692",
    "\u202eabc\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "{curly} [square] %s %(x)s {{x}}",
    " leading and trailing ",
    "",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_kept_literally(graph: Graph, text: str) -> None:
    data = {"label": text, "text": text, "free": text, text: text, "list": [text, {"deep": text}], "aliases": [text]}
    graph.add_object("Memory", {"label": "bystander"}, id="z")
    graph.add_object("Memory", data, id="a", actor="x" + text, evidence=[text])
    graph.add_relation("a", "z", "MENTIONS", data, id="r")
    patch = graph.patch_object("a", {"more": text}, rationale=text, actor="x" + text)
    rejected = graph.reject_patch(graph.propose_patch("a", {}).id, text)
    row = graph.get_object("a")
    assert row is not None
    assert row.data == data | {"more": text}
    assert row.provenance["evidence"] == [text]
    assert graph.relations()[0].data == data
    assert graph.objects("Memory", {"free": text}) == [row]
    assert (patch.status, patch.rationale, patch.updates) == ("applied", text, {"more": text})
    assert (rejected.reason, graph.events[-1].payload["reason"]) == (text, text)
    assert [row.id for row in graph.objects()] == ["a", "z"]
    found = graph.search(dict.fromkeys(terms(text), 1.0), ["Memory"], {}, 9)
    assert bool(found) == bool(terms(text).keys() - {"z"})


@pytest.mark.parametrize("hostile", [*"'\"`\\$(){}[]|%/;:", "'})DETACH_DELETE(n)//", '"})//', "\\'", "`)-[]-()//"])
def test_hostile_ids_are_ids(graph: Graph, hostile: str) -> None:
    graph.add_object("Memory", id="bystander")
    graph.add_object("Memory", {"n": 1}, id=hostile)
    graph.add_relation(hostile, "bystander", "MENTIONS", id=hostile)
    graph.propose_patch(hostile, {"n": 2}, id=hostile)
    assert graph.apply_patch(hostile).status == "applied"
    row = graph.get_object(hostile)
    assert row is not None
    assert (row.id, row.data) == (hostile, {"n": 2})
    assert [row.id for row in graph.relations(hostile)] == [hostile]
    assert [row.id for row in graph.neighborhood("bystander")[0]] == sorted(["bystander", hostile])
    assert graph.get_object("nobody" + hostile) is None
    graph.remove_relation(hostile)
    graph.remove_object(hostile)
    assert [row.id for row in graph.objects()] == ["bystander"]


@pytest.mark.parametrize(
    "hostile", ["Memory`) DETACH DELETE n //", "Memory:Head", "Node", "a b", "", "Mem\u200bory", "'"]
)
def test_hostile_types_are_refused(graph: Graph, hostile: str) -> None:
    graph.add_object("Memory", {"text": "redis"}, id="a")
    says = "is no type|belongs to the storage"
    with pytest.raises(InvalidNameError, match=says):
        graph.objects(hostile)
    with pytest.raises(InvalidNameError, match=says):
        graph.count_terms(["redi"], [hostile])
    if hostile != "Node":  # relations have a name space of their own
        with pytest.raises(InvalidNameError, match=says):
            graph.relations(type=hostile)
        with pytest.raises(InvalidNameError, match=says):
            graph.search({"redi": 1.0}, ["Memory"], [hostile], 9)
    assert graph.search({"redi": 1.0}, [hostile], (), 9) == []  # a value, not a part of the query
    assert [row.id for row in graph.objects()] == ["a"]


def test_a_megabyte_is_kept_and_found(graph: Graph) -> None:
    text = "checkout \U0001f525 " + "ab'\"\\ " * 160_000 + "end"
    graph.add_object("Memory", {"text": text}, id="a")
    assert graph.objects()[0].data == {"text": text}
    assert [hit.id for hit in graph.search({"end": 1.0, "u1f525": 1.0}, ["Memory"], (), 9)] == ["a"]


def test_difficult_values_come_back_exactly(graph: Graph) -> None:
    row = graph.add_object("Memory", DIFFICULT, id="a")
    back = graph.get_object("a")
    assert back == row
    assert back is not None
    assert back.data == DIFFICULT
    assert [type(back.data[key]) for key in DIFFICULT] == [type(DIFFICULT[key]) for key in DIFFICULT]


@given(
    st.dictionaries(
        st.text(max_size=6), st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(), max_size=5
    )
)
@settings(max_examples=80)
def test_whatever_is_written_is_read(server: Server, data: dict[str, Any]) -> None:
    data.pop("provenance", None)
    graph = reopened(server, "written")
    row = graph.add_object("Memory", data)
    assert graph.get_object(row.id) == row
    assert row.data == data
    assert json.dumps(reopened(server, "written").get_objects([row.id])[row.id].data, sort_keys=True) == json.dumps(
        data, sort_keys=True
    )


@given(st.text(), st.text())
@settings(max_examples=80)
def test_what_is_stored_is_found_by_its_terms(server: Server, label: str, text: str) -> None:
    store, memory = FalkorDBGraphStore(server, "found"), InMemoryGraphStore()
    head = store.head()
    weights = dict.fromkeys([*terms(label), *terms(text), "absent"], 1.0)
    changes = fold([object_created(1, "same", data={"label": label, "text": text})])
    assert store.apply(changes, expected=head, new=head + 1)
    assert memory.apply(changes, expected=0, new=1)
    assert store.count_terms(weights, ["Memory"]) == memory.count_terms(weights, ["Memory"])
    assert store.search(weights, ["Memory"], (), 9) == memory.search(weights, ["Memory"], (), 9)
    assert bool(store.search(weights, ["Memory"], (), 9)) == (len(weights) > 1)


@pytest.mark.parametrize("field", ["label", "text", "version", "id", "big", "l", "n", "aliases", "absent"])
def test_search_without_means_the_data(graph: Graph, field: str) -> None:
    graph.add_object("Memory", {"n": 1, "big": 2**63, "l": [1], "aliases": ["redis"]}, id="a")
    memory = InMemoryGraphStore()
    projection.catch_up(graph._log, memory)
    found = graph.search({"redi": 1.0}, ["Memory"], [field], 9)
    assert [hit.id for hit in found] == ([] if field == "n" else ["a"])
    assert found == memory.search({"redi": 1.0}, ["Memory"], [field], 9)


# Parameters


class Hostile:
    def __str__(self) -> str:
        return "1}) MATCH (n) DETACH DELETE n //"

    __repr__ = __str__


class Liar(str):
    __slots__ = ()

    def replace(self, *_args: Any) -> str:  # type: ignore[override]
        return '"}) MATCH (n) DETACH DELETE n //'


class Sly(int):
    def __str__(self) -> str:
        return "1 MATCH (n) DETACH DELETE n"

    __repr__ = __str__


class Tricky(dict):  # type: ignore[type-arg]
    def items(self) -> Any:
        return [("a`: 1}) //", 1)]


@pytest.mark.parametrize(
    "value",
    [Hostile(), Liar("x"), Sly(1), Tricky(a=1), [Hostile()], {"a": [Sly(1)]}, (1,), {1}, b"x", 2**63, -(2**63) - 1,
     float("nan"), float("inf"), 1j, "\0", "\ud800", {"a b": 1}, {"`": 1}, {"": 1}, {1: 2}],
)  # fmt: skip
def test_refused_parameter(graph: Graph, store: FalkorDBGraphStore, value: Any) -> None:
    graph.add_object("Memory", id="a")
    with pytest.raises(QueryError, match=r"parameter \$value.* is .*; expected plain JSON types"):
        store.cypher("RETURN $value", {"value": value})
    assert [row.id for row in graph.objects()] == ["a"]


class Bomb:
    def __str__(self) -> str:
        raise RuntimeError("this object's text was asked for")

    __repr__ = __str__


@pytest.mark.parametrize("value", [Bomb(), [Bomb()], 10**5000], ids=["object", "in a list", "long integer"])
def test_refused_parameter_is_never_asked_for_its_text(value: Any) -> None:
    with pytest.raises(QueryError, match="expected plain JSON types"):
        check_parameter(value, "$value")


@pytest.mark.parametrize(
    "value",
    [
        "",
        "it's \"\\` $x",
        "\U0001f525",
        0,
        -(2**63),
        2**63 - 1,
        0.5,
        True,
        False,
        None,
        [],
        [1, "a", None],
        {},
        {"a": [{"b": 1}]},
    ],
)
def test_accepted_parameter(store: FalkorDBGraphStore, value: Any) -> None:
    assert store.cypher("RETURN $value AS value", {"value": value}) == (["value"], [[value]])


# Cypher


def test_cypher(graph: Graph, store: FalkorDBGraphStore) -> None:
    graph.add_object("Memory", {"label": "A"}, id="a")
    graph.add_relation("a", "b", "MENTIONS", {"w": 1}, id="r")
    names, rows = store.cypher("MATCH p = (n:Memory)-[x]->(m) RETURN n.label, x, [n.id, {k: m.id}] AS both, p")
    assert names == ["n.label", "x", "both", "p"]
    [[label, edge, both, path]] = rows
    assert (label, both) == ("A", ["a", {"k": "b"}])
    assert (edge["type"], edge["id"], json.loads(edge["data"])) == ("MENTIONS", "r", {"w": 1})
    assert [node["id"] for node in path["nodes"]] == ["a", "b"]
    assert [edge["id"] for edge in path["edges"]] == ["r"]
    assert store.cypher("MATCH (n:Nobody) RETURN n.id") == (["n.id"], [])


@pytest.mark.parametrize(
    "query",
    ["CREATE (:Memory)", "MATCH (n) DETACH DELETE n", "MATCH (n) SET n.x = 1", "this is no Cypher", "RETURN", ""],
)
def test_cypher_reads_only(graph: Graph, store: FalkorDBGraphStore, query: str) -> None:
    graph.add_object("Memory", id="a")
    with pytest.raises(QueryError, match="FalkorDB refused the query: "):
        store.cypher(query)
    assert [row.id for row in graph.objects()] == ["a"]


def test_cypher_gives_up_in_time(store: FalkorDBGraphStore) -> None:
    slow = "UNWIND range(1, 3000) AS a UNWIND range(1, 3000) AS b UNWIND range(1, 3000) AS c RETURN count(*)"
    with pytest.raises(QueryError, match=r"FalkorDB refused the query: .*timed out"):
        store.cypher(slow, timeout_ms=50)


def test_more_rows_than_a_default_limit(graph: Graph, log: FalkorDBEventStore) -> None:
    log.append_many([object_created(n, f"n{n}") for n in range(12_000)], expected=0, commit_id="c")
    graph.catch_up()
    assert len(graph.objects()) == 12_000
    assert len(graph.get_objects([f"n{n}" for n in range(0, 12_000, 3)])) == 4_000


# The limit of attribute names


def test_too_many_field_names_are_refused_before_the_append(
    graph: Graph, store: FalkorDBGraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.add_object("Memory", {"known": 1}, id="a")
    held = len(store.cypher("CALL db.propertyKeys()")[1])
    monkeypatch.setattr(falkordb, "MAX_FIELD_NAMES", held + 2)
    graph.add_object("Memory", {"known": 2, "one": 1, "two": 1}, id="b")
    says = f"the graph would hold {held + 3} field names, at most {held + 2} fit; nest rare ones"
    for write in (
        lambda: graph.add_object("Memory", {"three": 1}, id="c"),
        lambda: graph.patch_object("a", {"three": 1}),
    ):
        with pytest.raises(InvalidEventError, match=says):
            write()
    assert (len(graph.events), graph.position) == (2, 2)
    nested = {"known": 3, "rare": {"three": 1}, "th ree": 1, "list": [], "none": None}
    assert graph.add_object("Memory", nested, id="d").data == nested
    assert graph.rebuild() == 3


# Rebuilding


def filled(graph: Graph) -> None:
    for n in range(8):
        graph.add_object("Memory" if n % 2 else "Entity", {"label": f"Object {n}", "n": n, "text": "redis"}, id=f"o{n}")
    for n in range(8):
        graph.add_relation(f"o{n}", f"o{(n * 3) % 11}", "MENTIONS" if n % 2 else "AFFECTS", {"n": n})
    graph.patch_object("o1", {"n": 100})
    graph.patch_object("o2", {}, expected_version=9)
    graph.propose_patch("o3", {"later": True})
    graph.remove_object("o0")
    graph.remove_relation("rel_003")


def test_a_wiped_projection_comes_back_as_it_was(
    server: Server, graph: Graph, store: FalkorDBGraphStore, name: str
) -> None:
    filled(graph)
    before, hits = drawing(store), graph.search({"redi": 1.0}, ["Memory", "Entity"], (), 20)
    server.redis.delete(f"cm:{{{name}}}:graph")
    again = reopened(server, name)
    assert drawing(again._store) == before
    assert again.search({"redi": 1.0}, ["Memory", "Entity"], (), 20) == hits != []
    assert again.add_object("Memory").id == "Memory#1"


def test_a_rebuilt_projection_is_as_it_was(server: Server, graph: Graph, store: FalkorDBGraphStore, name: str) -> None:
    filled(graph)
    other = reopened(server, name)
    before = drawing(store)
    seen: list[tuple[int, int]] = []
    assert graph.rebuild(lambda done, total: seen.append((done, total))) == len(graph.events)
    assert seen == [(len(graph.events), len(graph.events))]
    assert drawing(store) == before
    assert leftovers(server, name) == []
    # Whoever had it open goes on, with fields and types that the new graph numbers otherwise.
    other.add_object("Task", {"fresh_field": 1}, id="t")
    other.add_relation("t", "o1", "BRAND_NEW", id="new")
    assert graph.get_relation("new") == other.get_relation("new") != None  # noqa: E711 - both, and not None
    assert graph.objects("Task", {"fresh_field": 1}) == other.objects("Task")


def test_a_projection_ruined_by_hand_is_rebuilt(
    server: Server, graph: Graph, store: FalkorDBGraphStore, name: str
) -> None:
    filled(graph)
    before = drawing(store)
    raw = server.db.select_graph(store.key)
    raw.query("MATCH (n:Memory) DETACH DELETE n")
    raw.query("MATCH (n:Entity) SET n.data = '{}', n.version = 77")
    raw.query("CREATE (:Node:Stray {id: 'stray'})")
    assert drawing(store) != before
    graph.rebuild()
    assert drawing(store) == before


def test_a_shadow_in_use_is_no_leftover(server: Server, store: FalkorDBGraphStore, name: str) -> None:
    assert store.shadow().head() == 0
    assert leftovers(server, name) == []


def test_leftovers(  # noqa: PLR0917 - fixtures
    server: Server,
    graph: Graph,
    store: FalkorDBGraphStore,
    name: str,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyspace, "LEFTOVER_AFTER_S", 0)
    monkeypatch.setattr(keyspace, "LOOK_AFTER_S", 0)
    graph.add_object("Memory", id="a")
    abandoned = store.shadow()
    assert abandoned.head() == 0
    server.db.select_graph(f"cm:{{{name}}}:at-12-abc:graph").query("CREATE (:Head {seq: 12})")
    server.db.select_graph(f"cm:{{{name}}}:alt:graph").query("CREATE (:Head {seq: 12})")
    with workspace() as other:
        reopened(server, other)._store.shadow().head()
        found = leftovers(server, name)
    assert sorted(found) == sorted([abandoned.key, f"cm:{{{name}}}:at-12-abc:graph"])
    for key in found:
        remove_leftover(server, key)
    assert leftovers(server, name) == []
    assert [row.id for row in reopened(server, name).objects()] == ["a"]


def test_swap_needs_the_tip(log: FalkorDBEventStore, store: FalkorDBGraphStore) -> None:
    """Another writer appended after the shadow had caught up: no swap, and the next attempt includes it."""
    log.append(object_created(1, "a"))
    projection.catch_up(log, store)
    shadow = store.shadow()
    assert projection.catch_up(log, shadow) == 1
    log.append(relation_created(2, "r", "a", "b"))
    assert store.swap(shadow, tip=1) is False
    assert projection.catch_up(log, shadow) == 2
    assert store.swap(shadow, tip=2) is True
    assert [row.id for row in store.relations()] == ["r"]


def test_in_memory_replay_of_a_falkordb_log(graph: Graph, log: FalkorDBEventStore) -> None:
    filled(graph)
    memory, copy = InMemoryGraphStore(), InMemoryEventStore()
    for row in log.iter_events():
        copy.append(row)
    projection.catch_up(copy, memory)
    assert objects(memory) == graph.objects()
    assert memory.relations() == graph.relations()
    assert memory.get_patches(["patch_001", "patch_002", "patch_003"]) == graph.get_patches(
        ["patch_001", "patch_002", "patch_003"]
    )


def test_an_unbegun_log_can_be_cut_to_nothing(log: FalkorDBEventStore) -> None:
    log.truncate_after(0)
    assert (log.tip(), log.append(event(1))) == (0, 1)


def test_opening_waits_for_the_search_index(store: FalkorDBGraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """An index under construction finds nothing and says nothing, so opening must outwait it."""
    answers = [[["[Indexing] 0/0: UNDER CONSTRUCTION"]], [["OPERATIONAL"], ["[Indexing] 3/9: UNDER CONSTRUCTION"]]]
    real = store._ask

    def ask(query: str, parameters: dict[str, Any]) -> list[list[Any]]:
        return answers.pop(0) if "RETURN status" in query and answers else real(query, parameters)

    monkeypatch.setattr(store, "_ask", ask)
    assert store.head() == 0
    assert answers == []


@pytest.mark.parametrize(
    "read",
    [
        lambda store: store.get_objects(["n3", "n5"]),
        lambda store: store.get_relations(["r3", "r5"]),
        lambda store: store.relations(["hub"]),
        lambda store: store.relations(None, ["n3"]),
        lambda store: store.relations(["hub"], ["n3", "n5"], ["MENTIONS"]),
        lambda store: store.relations(["hub"], [f"n{n}" for n in range(1100)], ["MENTIONS"]),
        lambda store: store.touching(["n3", "n5"]),
        lambda store: store.adjacent(["n3", "n5"], ["MENTIONS"]),
        lambda store: store.expand(["n3"], ["MENTIONS", "AFFECTS"], ["Memory", "Entity"], ["superseded"], 9),
        lambda store: store.search({"redi": 1.0}, ["Memory"], ["superseded"], 9),
    ],
    ids=["objects", "relations", "from", "to", "between", "among", "touching", "adjacent", "expand", "search"],
)
def test_a_bounded_read_scans_no_label(store: FalkorDBGraphStore, asked: Asked, read: Any) -> None:
    """What is asked about a few objects must not cost a look at all of them, however many there are."""
    events = [object_created(0, "hub", "Entity")]
    events += [object_created(n, f"n{n}", data={"text": "redis" if n < 5 else "other"}) for n in range(1, 1500)]
    events += [relation_created(n, f"r{n}", "hub", f"n{n}", "MENTIONS") for n in range(1, 1500)]
    assert store.apply(fold(events), expected=0, new=len(events))
    queries = asked(store)
    assert read(store)
    plans = [explained(store, text) for text in [*queries]]
    assert plans
    assert all("Node By Label Scan" not in plan and "All Node Scan" not in plan for plan in plans), plans


def test_a_chain_is_one_query_that_begins_at_its_first_node(store: FalkorDBGraphStore, asked: Asked) -> None:
    """The far end has fewer objects, which would tempt a planner to begin there; rows are fetched by id after."""
    events = [object_created(n, f"n{n}") for n in range(50)] + [object_created(50, "hub", "Entity")]
    events += [relation_created(n, f"r{n}", f"n{n}", "hub") for n in range(50)]
    assert store.apply(fold(events), expected=0, new=len(events))
    queries = asked(store)
    found = store.match_chain(["Memory", "Entity", None], [("MENTIONS", "right"), (None, "left")], 4)
    assert [[row.id for row in match.objects] for match in found] == [["n0", "hub", f"n{n}"] for n in (0, 1, 10, 11)]
    [chain] = [text for text in queries if "LIMIT" in text]
    plan = explained(store, chain)
    assert re.findall(r"(Scan|Traverse) \| \((\w+)", plan) == [("Traverse", "n1"), ("Traverse", "n0"), ("Scan", "n0")]
    assert not any("Label Scan" in explained(store, text) for text in queries[:] if text != chain)


def test_relations_among_more_ends_than_a_query_compares(store: FalkorDBGraphStore) -> None:
    events = [relation_created(n, f"r{n}", "hub", f"n{n}") for n in range(1500)]
    assert store.apply(fold(events), expected=0, new=len(events))
    for n in (0, 1, 999, 1000, 1001, 1400):
        assert len(store.relations(["hub", "absent"], [f"n{at}" for at in range(n)])) == n


def test_a_chain_without_what_was_removed_while_it_was_read(
    graph: Graph, server: Server, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key in "abc":
        graph.add_object("Memory", id=key)
    for n, (source, target) in enumerate(["ab", "bc", "ca", "aa"]):
        graph.add_relation(source, target, "T", id=f"r{n}")
    store, other = graph._store, reopened(server, name)
    real = store.get_objects

    def get_objects(ids: Any) -> Any:
        other.remove_object("c")
        return real(ids)

    monkeypatch.setattr(store, "get_objects", get_objects)
    found = store.match_chain([None, None], [("T", "right")], 9)
    assert [[row.id for row in match.objects] for match in found] == [["a", "a"], ["a", "b"]]


def test_a_neighborhood_reads_each_relation_once(graph: Graph, asked: Asked) -> None:
    """A query a hop for the ids alone, then each relation from its source alone, then the objects."""
    with graph.batch():
        for n in range(40):
            graph.add_object("Memory", id=f"n{n}")
            graph.add_relation(f"n{n}", f"n{n // 3}", "T", id=f"r{n}")
    store = graph._store
    assert isinstance(store, FalkorDBGraphStore)
    queries = asked(store)
    objects, relations = graph.neighborhood("n0", 2)
    assert (len(objects), len(relations)) == (9, 9)
    assert [len(re.findall(r"x\.data|n\.data", text)) for text in queries] == [0, 0, 1, 1, 1]
    queries.clear()
    assert len(graph.neighborhood("n39", 10)[0]) == 40
    assert sum("DISTINCT" in text for text in queries) == 8  # seven hops to n26, and one that finds nothing more
    queries.clear()
    assert [row.id for row in graph.get_relations("n1")] == ["r1", "r3", "r4", "r5"]
    assert len(queries) == 1


def test_labels_and_fields_are_right_after_another_client_rebuilt(graph: Graph, server: Server, name: str) -> None:
    """A client's graph caches labels and field names by number, and a rebuild by somebody else renumbers them."""
    for number, kind in enumerate(("Alpha", "Beta", "Gamma")):
        graph.add_object(kind, {f"field_{kind.lower()}": number}, id=kind.lower())
    store = graph._store
    assert isinstance(store, FalkorDBGraphStore)
    query = "MATCH (n:Node) RETURN n ORDER BY n.id"
    assert [row["labels"] for [row] in store.cypher(query)[1]] == [
        ["Alpha", "Node"],
        ["Beta", "Node"],
        ["Gamma", "Node"],
    ]
    assert server._folder is not None
    with open_server(data_dir=server._folder.path) as other:
        theirs = reopened(other, name)
        theirs.remove_object("alpha")
        theirs._log.truncate_after(0)  # so that what is written next takes the first numbers
        other.redis.delete(f"cm:{{{name}}}:graph")
        fresh = reopened(other, name)
        fresh.add_object("Gamma", {"field_new": 7}, id="gamma")
        fresh.add_object("Beta", {"field_beta": 8}, id="beta")
    [beta], [gamma] = store.cypher(query)[1]
    assert (beta["labels"], beta["field_beta"]) == (["Beta", "Node"], 8)
    assert (gamma["labels"], gamma["field_new"]) == (["Gamma", "Node"], 7)
    assert {row.type for row in objects(store)} == {"Beta", "Gamma"}


def test_an_object_may_be_called_like_a_patch(graph: Graph, store: FalkorDBGraphStore) -> None:
    """What is new is told for each by itself: settling a patch beside an object of its id doubles neither."""
    graph.add_object("Memory", {"n": 1}, id="a")
    graph.propose_patch("a", {"n": 2}, id="same")
    with graph.batch():
        graph.add_object("Memory", {"n": 0}, id="same")
        graph.apply_patch("same")
    assert store.cypher("MATCH (p:Patch {id: 'same'}) RETURN count(p), collect(p.status)")[1] == [[1, ["applied"]]]
    assert store.cypher("MATCH (n:Node {id: 'same'}) RETURN count(n)")[1] == [[1]]
