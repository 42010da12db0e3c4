"""Listening to a store: what is heard is what the server got, no more and no less."""

import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextmesh.core.graph import Graph
from contextmesh.errors import QueryError
from contextmesh.stores.cypher import written
from contextmesh.stores.falkordb import FalkorDBGraphStore
from contextmesh.stores.listening import VALUE_SHOWN, as_sent
from tests.stores.conftest import Asked


def work(graph: Graph, store: FalkorDBGraphStore) -> None:
    """Write, read, search and ask, each in its own way to the server."""
    graph.add_object("Entity", {"label": 'Checkout "API" = x', "tier": 1}, id="api")
    graph.add_object("Memory", {"text": "a=1 {b} [c\\"}, id="m")
    graph.add_relation("m", "api", "MENTIONS", id="r")
    graph.get_objects(["api", "m"])
    graph.relations(source="m")
    graph.search({"checkout": 1.0}, ("Entity",), (), 5)
    store.cypher("MATCH (n:Node) WHERE n.id = $id RETURN n.id AS id", {"id": "api"})


def test_what_is_heard_is_what_was_sent(graph: Graph, store: FalkorDBGraphStore, asked: Asked) -> None:
    sent = asked(store)
    with store.listening() as heard:
        work(graph, store)
    own = [query for query in heard if not query.text.endswith("AS id")]  # that one goes through a client of its own
    assert len(heard) == len(own) + 1
    assert len(own) == len(sent) > 6
    for query, text in zip(own, sent, strict=True):
        assert text.endswith(query.text)
        assert query.text.startswith(("MATCH", "UNWIND", "CREATE", "CALL"))
        assert all(re.search(rf"\b{name}`?=", text) for name in query.parameters)
    commits = [query for query in heard if query.text.startswith("MATCH (h:Head) WHERE h.seq = $expected")]
    assert [query.parameters["expected"] for query in commits] == ["0", "1", "2"]
    assert all(query.writes for query in commits)
    assert {query.writes for query in heard if query.text.endswith("AS id")} == {False}


def test_after_listening_nothing_is_heard(graph: Graph, store: FalkorDBGraphStore) -> None:
    with store.listening() as heard:
        graph.get_object("api")
    before = list(heard)
    graph.get_object("api")
    assert heard == before != []


def test_two_listeners_hear_the_same_and_another_thread_is_not_heard(graph: Graph, store: FalkorDBGraphStore) -> None:
    other = threading.Thread(target=graph.get_object, args=["theirs"])
    with store.listening() as outer, store.listening() as inner:
        graph.get_object("mine")
        other.start()
        other.join()
    assert outer == inner
    assert [query.parameters["ids"] for query in outer] == ['["mine"]']


def test_what_fails_is_heard_too_and_ends_the_listening(store: FalkorDBGraphStore) -> None:
    store.head()
    with store.listening() as outer:
        with pytest.raises(QueryError, match="refused the query"), store.listening():
            store.cypher("RETURN nonsense(")
        assert len(store._listeners._open) == 1
    assert [query.text for query in outer] == ["RETURN nonsense("]
    assert store._listeners._open == ()


def test_a_long_value_is_cut() -> None:
    query = as_sent("RETURN $text", {"text": "x" * 1_000}, writes=False)
    assert query.parameters["text"] == f'"{"x" * (VALUE_SHOWN - 1)} … (1,002 characters)'


values = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.from_regex(r"[a-z_]{1,5}", fullmatch=True), inner),
    max_leaves=8,
)
names = st.from_regex(r"[a-z][a-z_]{0,8}", fullmatch=True)


@given(st.dictionaries(names, values, max_size=4), st.sampled_from(["MATCH (n {a: $a}) RETURN n", "RETURN 1"]))
def test_parameters_are_told_from_the_query_whatever_they_hold(parameters: dict[str, object], text: str) -> None:
    found = as_sent(f"{written(parameters)}{text}", {}, writes=True)
    assert found.text == text
    assert list(found.parameters) == list(parameters)
