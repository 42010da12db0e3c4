"""A graph that is wiped, rebuilt or behind, and what the doctor finds."""

import json

import pytest

from contextmesh.investigation.workspace import Workspace
from contextmesh.stores import keyspace
from tests.investigation.conftest import Opened
from tests.investigation.making import QUESTION, whole


def test_a_wiped_graph_is_replayed_at_the_next_opening(acme: Workspace, opened: Opened) -> None:
    acme.session("Tuesday").investigate(QUESTION)
    before = whole(acme.graph)
    evidence_before = acme.search("session ttl").to_dict()
    acme._server.redis.delete(f"cm:{{{acme.name}}}:graph")
    again = opened(acme.name)
    assert whole(again.graph) == before
    assert again.search("session ttl").to_dict() == evidence_before


def test_rebuild_changes_nothing(acme: Workspace) -> None:
    acme.session("Tuesday").investigate(QUESTION)
    before = whole(acme.graph)
    assert acme.rebuild() == acme.graph.position == len(acme.graph.events)
    assert whole(acme.graph) == before
    assert not acme.search("session ttl").empty


def test_doctor_finds_a_healthy_workspace(acme: Workspace) -> None:
    found = acme.doctor()
    position = len(acme.graph.events)
    assert found.keys() == {
        "server", "versions", "durability", "log_position", "graph_position", "healthy", "problems", "removed",
    }  # fmt: skip
    assert (found["log_position"], found["graph_position"]) == (position, position)
    assert (found["healthy"], found["problems"], found["removed"]) == (True, [], [])
    assert found["durability"] == "everysec"
    assert found["versions"]["falkordb"].startswith("4.")
    assert json.loads(json.dumps(found)) == found


def test_doctor_removes_what_an_interrupted_rebuild_left(
    acme: Workspace, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keyspace, "LEFTOVER_AFTER_S", 0)
    monkeypatch.setattr(keyspace, "LOOK_AFTER_S", 0)
    other = opened()
    keys = [f"cm:{{{acme.name}}}:rebuild-0123456789ab:graph", f"cm:{{{acme.name}}}:at-7-abc:graph"]
    theirs = f"cm:{{{other.name}}}:rebuild-0123456789ab:graph"
    for key in [*keys, theirs]:
        acme._server.db.select_graph(key).query("CREATE (:Head {seq: 1})")
    before = whole(acme.graph)
    found = acme.doctor()
    assert sorted(found["removed"]) == sorted(keys)
    assert found["healthy"] is True
    assert whole(acme.graph) == before
    assert acme._server.redis.exists(theirs) == 1
    assert acme.doctor()["removed"] == []


def test_doctor_tells_of_a_graph_that_lags(acme: Workspace) -> None:
    acme._store._write("MATCH (h:Head) SET h.seq = 3")
    found = acme.doctor()
    assert found["healthy"] is False
    assert found["graph_position"] == 3
    assert found["problems"] == [f"the graph stands at 3, the log at {found['log_position']}; run rebuild"]
    acme.rebuild()
    assert acme.doctor()["healthy"] is True
