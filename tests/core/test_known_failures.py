"""Failures that an event-sourced graph of this kind was seen to have, each held off by a test on a real FalkorDB."""

import math
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from contextmesh.core.branches import fork
from contextmesh.core.diff import diff
from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.core.projection import catch_up
from contextmesh.core.promote import promote
from contextmesh.core.sinks import SinkState
from contextmesh.errors import (
    IncompatibleRuntimeState,
    InvalidEventError,
    NonSerializableEventError,
    NotFoundError,
    ProjectionError,
    QueryError,
    RunNotFoundError,
)
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.keyspace import workspace_names
from contextmesh.stores.server import Server
from contextmesh.stores.sqlite import SQLiteEventStore
from contextmesh.testing import event, object_created


def test_loading_an_unknown_run_creates_none(server: Server, graph: Graph, tmp_path: Path) -> None:
    before = workspace_names(server)
    with pytest.raises(NotFoundError, match="no branch 'never-made'"):
        graph.log.branch("never-made")
    with pytest.raises(RunNotFoundError):
        SQLiteEventStore(tmp_path / "none.sqlite", create=False)
    assert (workspace_names(server), list(tmp_path.iterdir())) == (before, [])


def test_replay_into_a_dirty_projection_is_refused(server: Server, name: str, graph: Graph) -> None:
    graph.add_object("Entity", id="ghost")
    other = InMemoryEventStore()
    other.append_many([event(1), event(2)], expected=0, commit_id="a")
    with pytest.raises(IncompatibleRuntimeState, match="shows another log's events"):
        Graph(other, FalkorDBGraphStore(server, name))
    dirty = InMemoryGraphStore()
    Graph(InMemoryEventStore(), dirty).add_object("Entity", id="ghost")
    with pytest.raises(IncompatibleRuntimeState, match="shows another log's events"):
        Graph(other, dirty)


def test_a_failed_projection_is_repaired_by_the_same_process(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> bool:
        msg = "the disk is full"
        raise QueryError(msg)

    with monkeypatch.context() as broken:
        broken.setattr(graph.store, "apply", fail)
        with pytest.raises(ProjectionError, match="are saved"):
            graph.add_object("Entity", id="a")
    assert graph.get_object("a") is not None
    graph.add_object("Entity", id="b")
    assert [row.id for row in graph.objects()] == ["a", "b"]


def test_handles_do_not_edit_the_projection(graph: Graph) -> None:
    given = {"list": [1], "deep": {"a": 1}}
    made = graph.add_object("Entity", given, id="a")
    given["list"].append(2)
    made.data["deep"]["a"] = 2
    graph.get_object("a").data["list"].append(3)
    next(iter(graph.events)).payload["object"]["data"]["list"].append(4)
    assert graph.get_object("a").data == {"list": [1], "deep": {"a": 1}}
    with graph.batch():
        graph.add_object("Entity", {"list": [1]}, id="b").data["list"].append(2)
        graph.get_object("b").data["list"].append(3)
    assert graph.get_object("b").data == {"list": [1]}
    with pytest.raises(AttributeError):
        made.version = 7  # type: ignore[misc]


@pytest.mark.parametrize(
    ("type_", "payload"),
    [
        ("object.created", {"id": "a", "object": {"id": "a", "type": "Entity", "data": None, "version": 1}}),
        ("object.created", {"id": "a", "object": None}),
        ("object.created", {}),
        ("relation.created", {"id": "r", "relation": {"id": "r"}, "source": "a", "target": "b"}),
        ("patch.applied", {"patch": {}, "target": "a", "diff": {}, "object": {}}),
    ],
)
def test_a_malformed_event_is_refused_before_it_poisons_loads(graph: Graph, type_: str, payload: dict) -> None:
    with pytest.raises(InvalidEventError):
        graph.emit(Event(type=type_, payload=payload))
    assert len(graph.events) == 0
    graph.add_object("Entity", id="a")
    assert catch_up(graph.log, InMemoryGraphStore()) == 1


def test_an_object_without_data_breaks_no_query(graph: Graph) -> None:
    graph.add_object("Entity", None, id="a")
    graph.add_object("Entity", {"v": None}, id="b")
    assert [row.id for row in graph.objects(where={"v": None})] == ["a", "b"]
    assert [row.id for row in graph.objects(where={"v": {"!=": 1}})] == ["a", "b"]
    assert graph.objects(where={"v": {">": 1}}) == []


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_no_store_ever_holds_nan(graph: Graph, number: float) -> None:
    with pytest.raises(NonSerializableEventError, match=r"payload.object.data.deep\[0\].v is"):
        graph.add_object("Entity", {"deep": [{"v": number}]})
    with pytest.raises(NonSerializableEventError):
        graph.emit(Event(type="note.made", payload={"v": number}))
    assert len(graph.events) == 0


def test_an_empty_text_is_found(graph: Graph) -> None:
    graph.add_object("Entity", {"v": ""}, id="a")
    graph.add_object("Entity", {"v": " "}, id="b")
    assert [row.id for row in graph.objects("Entity", {"v": ""})] == ["a"]
    assert [row.id for row in graph.objects("Entity", {"v": {"in": ["", "x"]}})] == ["a"]


def test_a_dense_neighbourhood_is_visited_not_enumerated(graph: Graph) -> None:
    """300 nodes of degree 20 hold some 3 million paths of five hops; visiting them is 300 nodes."""
    ids = [f"n{n}" for n in range(300)]
    with graph.batch():
        for key in ids:
            graph.add_object("Entity", id=key)
        for at, key in enumerate(ids):
            for step in range(1, 11):
                graph.add_relation(key, ids[(at + step * step) % 300], "RELATES_TO")
    objects, relations = graph.neighborhood("n0", depth=5)
    assert (len(objects), len(relations)) == (300, 3000)
    nearest, _ = graph.neighborhood("n0", depth=1)
    assert [row.id for row in nearest] == sorted(
        {"n0"}
        | {f"n{step * step % 300}" for step in range(1, 11)}
        | {f"n{-step * step % 300}" for step in range(1, 11)}
    )


def test_ids_do_not_collide_across_branches(graph: Graph) -> None:
    graph.add_object("Entity")
    one, two = fork(graph, label="one"), fork(graph, label="two")
    made = [branch.add_object("Entity").id for branch in (graph, one, two, graph, one, two)]
    assert len(set(made)) == len(made)
    promote(graph, one)
    promote(graph, two)
    assert {row.id for row in graph.objects()} == {"Entity#1", *made}


def test_a_fork_promotes_twice(graph: Graph) -> None:
    graph.add_object("Entity", {"n": 0}, id="a")
    alt = fork(graph, label="alt")
    for n in (1, 2, 3):
        alt.patch_object("a", {"n": n})
        assert len(promote(graph, alt).plan.objects_patched) == 1
        assert graph.get_object("a").data == {"n": n}
        assert diff(graph, alt).is_identical


@pytest.mark.parametrize("raised", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_sink_that_exits_is_not_left_running(graph: Graph, raised: type[BaseException]) -> None:
    class Leaving:
        def open(self) -> None: ...
        def on_event(self, *_: object) -> None:
            raise raised

        def flush(self) -> None: ...
        def close(self) -> None: ...

    graph.add_sink(Leaving())
    graph.add_object("Entity", id="a")
    graph.flush_sinks()
    [status] = graph.sink_statuses()
    assert (status.state, status.errors) == (SinkState.FAILED, 1)
    graph.add_object("Entity", id="b")
    assert len(graph.objects()) == 2


@pytest.mark.parametrize("kind", ["memory", "sqlite", "falkordb"])
def test_a_store_works_in_any_thread(server: Server, name: str, tmp_path: Path, kind: str) -> None:
    made: dict[str, Callable[[], object]] = {
        "memory": InMemoryEventStore,
        "sqlite": lambda: SQLiteEventStore(tmp_path / "log.sqlite"),
        "falkordb": lambda: FalkorDBEventStore(server, name),
    }
    log = made[kind]()
    thread = threading.Thread(target=lambda: [log.append(event(1)), log.append(object_created(2, "a"))])
    thread.start()
    thread.join()
    assert [row.id for row in log.iter_events()] == ["evt_001", "evt_002"]
    log.close()
