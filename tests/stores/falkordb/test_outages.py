"""One fault at a time, between two steps or between a client and its server; nothing is lost or doubled."""

from collections.abc import Callable
from typing import Any

import pytest
import redis

from contextmesh.core.graph import Graph
from contextmesh.errors import AlreadyExistsError, IncompatibleRuntimeState, ProjectionError, ServerError
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.keyspace import leftovers
from contextmesh.stores.server import Server
from contextmesh.testing import event, object_created, objects, relation_created
from tests.stores.opening import agrees_with_replay, opened


class Faulty:
    """Stands before a method: fails once, before or after the real one has run, then steps aside."""

    def __init__(
        self, real: Callable[..., Any], error: Exception, *, after: bool, between: Callable[[], Any] | None = None
    ):
        self.real, self.error, self.after, self.between, self.calls = real, error, after, between, 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls > 1:
            return self.real(*args, **kwargs)
        if self.after:
            self.real(*args, **kwargs)
        if self.between:
            self.between()
        raise self.error


OUTAGES = [redis.ConnectionError("closed"), redis.TimeoutError("late")]


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("error", OUTAGES)
def test_an_append_of_unknown_outcome_lands_once(
    server: Server, graph: Graph, monkeypatch: pytest.MonkeyPatch, error: Exception, *, after: bool
) -> None:
    graph.add_object("Memory", id="before")
    fault = Faulty(server.eval, error, after=after)
    monkeypatch.setattr(server, "eval", fault)
    with graph.batch():
        graph.add_object("Memory", id="a")
        graph.add_relation("a", "before", "MENTIONS", id="r")
    assert fault.calls == 2
    assert [row.type for row in graph.events] == ["object.created", "object.created", "relation.created"]
    agrees_with_replay(graph)


@pytest.mark.parametrize("after", [True, False])
def test_another_writer_comes_in_while_the_outcome_is_unknown(
    server: Server, graph: Graph, name: str, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    """The batch is in the log once, before or behind the other one."""
    other = opened(server, name)
    real = server.eval

    def between() -> None:
        with monkeypatch.context() as patch:
            patch.setattr(server, "eval", real)
            other.add_object("Memory", id="theirs")

    monkeypatch.setattr(server, "eval", Faulty(real, redis.ConnectionError("closed"), after=after, between=between))
    with graph.batch():
        graph.add_object("Memory", id="mine-1")
        graph.add_object("Memory", id="mine-2")
    order = [row.payload["id"] for row in graph.events]
    assert order == (["mine-1", "mine-2", "theirs"] if after else ["theirs", "mine-1", "mine-2"])
    agrees_with_replay(graph)


def test_an_outage_that_lasts_is_an_error_and_nothing_is_doubled_after(
    server: Server, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.add_object("Memory", id="a")

    def down(*_args: Any, **_kwargs: Any) -> Any:
        raise redis.ConnectionError("closed")

    with monkeypatch.context() as patch:
        patch.setattr(server, "eval", down)
        with pytest.raises(
            ServerError, match=r"the connection to .* was lost, again after reconnecting; check the server"
        ):
            graph.add_object("Memory", id="b")
    assert [row.id for row in graph.objects()] == ["a"]
    graph.add_object("Memory", id="b")
    agrees_with_replay(graph)


@pytest.mark.parametrize("after", [True, False])
@pytest.mark.parametrize("error", OUTAGES)
def test_a_projection_of_unknown_outcome_is_made_good_at_once(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, error: Exception, *, after: bool
) -> None:
    graph.add_object("Memory", {"n": 0}, id="a")
    monkeypatch.setattr(graph._store, "_write", Faulty(graph._store._write, error, after=after))
    with graph.batch():
        graph.patch_object("a", {"n": 1})
        graph.add_relation("a", "b", "MENTIONS", id="r")
    assert [row.data for row in graph.objects()] == [{"n": 1}]
    assert graph.objects()[0].version == 2
    assert len(graph.events) == 4
    agrees_with_replay(graph)


def test_a_projection_that_failed_is_repaired_at_the_next_read(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    graph.add_object("Memory", {"n": 0}, id="a")
    fault = Faulty(graph._store._write, redis.ResponseError("out of memory"), after=False)
    monkeypatch.setattr(graph._store, "_write", fault)
    with pytest.raises(
        ProjectionError, match="the events up to position 3 are saved, the graph could not take them yet"
    ):
        graph.patch_object("a", {"n": 1})
    assert len(graph.events) == 3
    assert graph._store.head() == 1
    row = graph.get_object("a")
    assert row is not None
    assert (row.data, row.version, graph.position) == ({"n": 1}, 2, 3)
    agrees_with_replay(graph)


def test_a_projection_that_failed_is_repaired_at_the_next_write(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph._store, "_write", Faulty(graph._store._write, redis.ResponseError("no"), after=False))
    with pytest.raises(ProjectionError, match="position 1 are saved"):
        graph.add_object("Memory", id="a")
    with pytest.raises(AlreadyExistsError, match="an object 'a' already"):
        graph.add_object("Memory", id="a")
    assert graph.patch_object("a", {"n": 1}).status == "applied"
    agrees_with_replay(graph)


def test_a_crash_between_the_two_steps_is_made_good_by_whoever_comes_next(
    server: Server, graph: Graph, name: str
) -> None:
    graph.add_object("Memory", id="a")
    batch = [object_created(102, "b"), relation_created(103, "r", "a", "b"), event(104)]
    FalkorDBEventStore(server, name).append_many(batch, expected=1, commit_id="crashed")
    assert graph._store.head() == 1
    other = opened(server, name)
    assert (other.position, [row.id for row in other.objects()]) == (4, ["a", "b"])
    FalkorDBEventStore(server, name).append_many([object_created(105, "c")], expected=4, commit_id="crashed too")
    graph.add_object("Memory", id="d")
    assert [row.id for row in graph.objects()] == ["a", "b", "c", "d"]
    agrees_with_replay(graph)


def test_a_read_that_meets_an_outage_is_asked_again(
    server: Server, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph.add_object("Memory", id="a")
    fault = Faulty(server.command, redis.ConnectionError("closed"), after=False)
    monkeypatch.setattr(server, "command", fault)
    assert [row.id for row in graph.objects()] == ["a"]
    assert fault.calls == 2
    stream = Faulty(fault.real, redis.ConnectionError("closed"), after=True)
    monkeypatch.setattr(server, "command", stream)
    assert len(list(graph.events)) == 1
    assert stream.calls > 1


def test_reserved_numbers_may_be_lost_never_shared(
    server: Server, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        server.redis, "hincrby", Faulty(server.redis.hincrby, redis.ConnectionError("closed"), after=True)
    )
    assert graph.add_object("Memory").id == "Memory#2"
    assert graph.add_object("Memory").id == "Memory#3"


@pytest.mark.parametrize("after", [True, False])
def test_a_swap_of_unknown_outcome(
    server: Server, graph: Graph, name: str, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    graph.add_object("Memory", id="a")
    monkeypatch.setattr(server, "eval", Faulty(server.eval, redis.ConnectionError("closed"), after=after))
    assert graph.rebuild() == 1
    assert leftovers(server, name) == []
    graph.add_object("Memory", id="b")
    agrees_with_replay(graph)


def test_a_head_beyond_the_tip(server: Server, graph: Graph, name: str) -> None:
    """The log was restored from something older, the graph was not."""
    graph.add_object("Memory", id="a")
    graph.add_object("Memory", id="b")
    server.redis.xdel(f"cm:{{{name}}}:log", "2-0")
    other = FalkorDBGraphStore(server, name)
    with pytest.raises(IncompatibleRuntimeState, match="the graph stands at 2, its log ends at 1; rebuild the graph"):
        graph.catch_up()
    with pytest.raises(IncompatibleRuntimeState, match="rebuild the graph from the log"):
        opened(server, name)
    assert graph.rebuild() == 1
    assert [row.id for row in graph.objects()] == [row.id for row in objects(other)] == ["a"]
    assert opened(server, name).position == 1


class Endless(Exception):  # noqa: N818 - it ends what would not end
    pass


def test_a_page_that_is_too_large_for_one_query(own: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each event fits, a page of them does not: 1,000 events of 600 kB are past the server's 512 MB, here 1 MB."""
    own.redis.config_set("proto-max-bulk-len", "1mb")
    monkeypatch.setattr("contextmesh.core.projection.MAX_PAGE_CHARACTERS", 500_000)
    graph = opened(own, "faults")
    for n in range(3):
        graph.add_object("Memory", {"rare": ["x" * 700_000]}, id=f"o{n}")
    tries = []
    real = FalkorDBGraphStore.apply

    def apply(store: FalkorDBGraphStore, *args: Any, **kwargs: Any) -> bool:
        tries.append(kwargs)
        if len(tries) > 20:
            raise Endless
        return real(store, *args, **kwargs)

    monkeypatch.setattr(FalkorDBGraphStore, "apply", apply)
    assert graph.rebuild() == 3
    assert [row.id for row in graph.objects()] == ["o0", "o1", "o2"]
