"""Exact values and hostile text: whatever is written is read, and found."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextmesh.core import projection
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.projection import fold
from contextmesh.core.terms import terms
from contextmesh.errors import InvalidNameError
from contextmesh.stores.falkordb import FalkorDBGraphStore
from contextmesh.stores.server import Server
from contextmesh.testing import DIFFICULT, object_created
from tests.stores.opening import opened

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
    graph = opened(server, "written")
    row = graph.add_object("Memory", data)
    assert graph.get_object(row.id) == row
    assert row.data == data
    assert json.dumps(opened(server, "written").get_objects([row.id])[row.id].data, sort_keys=True) == json.dumps(
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
