"""The log as a stream: its entries, its header, its counters."""

import json
from typing import Any

import pytest

from contextmesh.core.events import encode
from contextmesh.core.graph import Graph
from contextmesh.errors import CorruptedEventPayloadError
from contextmesh.stores.falkordb import FalkorDBEventStore
from contextmesh.stores.server import Server
from contextmesh.testing import event


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


def test_an_unbegun_log_can_be_cut_to_nothing(log: FalkorDBEventStore) -> None:
    log.truncate_after(0)
    assert (log.tip(), log.append(event(1))) == (0, 1)
