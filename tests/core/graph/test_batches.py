"""Batches: many events as one commit."""

import threading

import pytest

from contextmesh.core.graph import Graph
from contextmesh.errors import AlreadyExistsError, InvalidNameError
from tests.core.graph.emitted import replayed, state


def test_batch_is_one_commit_that_sees_its_own_writes(graph: Graph) -> None:
    graph.add_object("Memory", {"n": 1}, id="a")
    graph.add_object("Memory", {"n": 1}, id="b")
    graph.add_relation("a", "b", "MENTIONS", id="r1")
    with graph.batch() as same:
        assert same is graph
        graph.add_object("Entity", {"n": 5}, id="c")
        graph.add_relation("a", "c", "AFFECTS", id="r2")
        graph.patch_object("a", {"n": 2})
        proposed = graph.propose_patch("b", {"n": 9})
        graph.remove_object("b")
        assert [(row.id, row.data["n"], row.version) for row in graph.objects()] == [("a", 2, 2), ("c", 5, 1)]
        assert [row.id for row in graph.objects("Entity", {"n": {">": 4}})] == ["c"]
        assert [row.id for row in graph.objects(where={"n": 1})] == []
        assert [row.id for row in graph.relations()] == ["r2"]
        assert graph.get_relation("r1") is None
        assert [row.id for row in graph.get_relations("c", direction="in")] == ["r2"]
        assert [row.id for row in graph.neighborhood("a", 1)[0]] == ["a", "c"]
        assert graph.get_object("b") is None
        verdict = graph.apply_patch(proposed.id)
        assert (verdict.status, verdict.reason) == ("rejected", "the object does not exist")
        assert graph.get_patch(proposed.id) == verdict
        inside = state(graph)
        assert len(graph.events) == 3
    assert state(graph)[:2] == inside[:2]
    assert graph.get_patch(proposed.id) == verdict
    rows = graph._log.read(3, 1)
    assert {entry.last for entry in rows} == {len(graph.events)} == {10}
    assert state(graph) == replayed(graph)


def test_an_exception_appends_nothing(graph: Graph) -> None:
    graph.add_object("Memory", {"n": 1}, id="a")
    before = state(graph)

    def write() -> None:
        with graph.batch():
            graph.patch_object("a", {"n": 2})
            graph.add_object("Memory", id="b")
            raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        write()
    assert (len(graph.events), state(graph)) == (1, before)
    graph.add_object("Memory", id="b")  # nothing of it lingers
    assert len(graph.events) == 2


def test_an_empty_batch_is_no_commit(graph: Graph) -> None:
    with graph.batch():
        pass
    assert (len(graph.events), graph.position) == (0, 0)


def test_batches_nest(graph: Graph) -> None:
    with graph.batch():
        graph.add_object("Memory", id="a")
        with graph.batch():
            graph.add_object("Memory", id="b")
        assert len(graph.events) == 0
    assert [row.id for row in graph.objects()] == ["a", "b"]
    assert {entry.last for entry in graph._log.read(0, 1)} == {2}


def test_a_refused_write_leaves_the_batch_usable(graph: Graph) -> None:
    with graph.batch():
        graph.add_object("Memory", id="a")
        with pytest.raises(AlreadyExistsError, match="'a' already"):
            graph.add_object("Memory", id="a")
        with pytest.raises(InvalidNameError, match="is no id"):
            graph.add_relation("a", "", "T")
        graph.add_object("Memory", id="b")
    assert [row.id for row in graph.objects()] == ["a", "b"]
    assert len(graph.events) == 2


def test_other_threads_do_not_see_a_batch(graph: Graph) -> None:
    seen: list[int] = []
    with graph.batch():
        graph.add_object("Memory", id="a")
        thread = threading.Thread(target=lambda: seen.append(len(graph.objects())))
        thread.start()
        thread.join()
    assert (seen, len(graph.objects())) == ([0], 1)


def test_threads_write_one_after_another(graph: Graph) -> None:
    graph.add_object("Counter", {"n": 0}, id="c")

    def count() -> None:
        for _ in range(20):
            with graph.batch():
                row = graph.get_object("c")
                assert row is not None
                graph.patch_object("c", {"n": row.data["n"] + 1}, expected_version=row.version)

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert graph.objects()[0].data == {"n": 80}
    assert graph.objects()[0].version == 81
