"""Two writers of one log, and the order of their timestamps."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from contextmesh.core.events import Clock, FrozenClock
from contextmesh.core.graph import Graph
from contextmesh.errors import AlreadyExistsError, ConcurrentWriterError
from tests.conftest import START
from tests.core.graph.emitted import replayed, state, types


def test_another_writer_is_caught_up_with(opened: Callable[..., Graph]) -> None:
    one, two = opened(), opened()
    one.add_object("Memory", id="a")
    two.add_object("Memory", id="b")
    one.add_object("Memory", id="c")
    assert [row.id for row in one.objects()] == [row.id for row in two.objects()] == ["a", "b", "c"]
    with pytest.raises(AlreadyExistsError, match="an object 'c' already"):
        two.add_object("Memory", id="c")


def test_a_batch_moves_behind_another_writers_events(opened: Callable[..., Graph]) -> None:
    one, two = opened(), opened()
    with one.batch():
        one.add_object("Memory", id="a")
        one.add_relation("a", "b", "MENTIONS", id="r")
        two.add_object("Memory", id="b")
    assert types(one) == ["object.created", "object.created", "relation.created"]
    assert [entry.last for entry in one._log.read(0, 9)] == [1, 3, 3]
    assert state(one) == replayed(one)


@pytest.mark.parametrize("what", ["object", "relation", "version", "patch"])
def test_a_batch_whose_ground_moved_is_refused_whole(opened: Callable[..., Graph], what: str) -> None:
    one, two = opened(), opened()
    one.add_object("Memory", {"n": 1}, id="a")
    one.propose_patch("a", {"n": 5}, id="p")
    actions: dict[str, Callable[[Graph], Any]] = {
        "object": lambda graph: graph.add_object("Memory", id="same"),
        "relation": lambda graph: graph.add_relation("a", "b", "MENTIONS", id="same"),
        "version": lambda graph: graph.patch_object("a", {"n": 2}),
        "patch": lambda graph: graph.reject_patch("p", "no"),
    }

    def write() -> None:
        with one.batch():
            one.add_object("Memory", id="lost")
            actions[what](one)
            actions[what](two)

    with pytest.raises(ConcurrentWriterError, match="another writer changed what this batch relied on"):
        write()
    assert one.get_object("lost") is None
    assert state(one) == replayed(one) == state(two)


def test_a_batch_is_not_applied_to_another_object_of_the_same_id(opened: Callable[..., Graph]) -> None:
    one, two = opened(), opened()
    one.add_object("Memory", {"who": "first"}, id="a")

    def write() -> None:
        with one.batch():
            one.patch_object("a", {"n": 2})
            two.remove_object("a")
            two.add_object("Memory", {"who": "second"}, id="a")

    with pytest.raises(
        ConcurrentWriterError, match="object 'a' was removed and created anew since this patch was built"
    ):
        write()
    assert one.objects()[0].data == {"who": "second"}


def test_version_checks_are_exact_among_writers(opened: Callable[..., Graph]) -> None:
    one, two = opened(), opened()
    one.add_object("Memory", {"n": 1}, id="a")
    assert two.patch_object("a", {"n": 2}, expected_version=1).status == "applied"
    assert one.patch_object("a", {"n": 3}, expected_version=1).status == "rejected"
    assert one.objects()[0].data == {"n": 2}


class Backwards(Clock):
    def __init__(self) -> None:
        self._at = START

    def now(self) -> datetime:
        self._at -= timedelta(hours=1)
        return self._at


def test_timestamps_never_go_back(opened: Callable[..., Graph]) -> None:
    graph = opened(Backwards())
    graph.add_object("Memory", id="a")
    with graph.batch():
        graph.patch_object("a", {"n": 1})
        graph.add_object("Memory", id="b")
    late = opened(FrozenClock(START - timedelta(days=365)))
    late.add_object("Memory", id="c")
    graph.add_object("Memory", id="d")
    assert {event.timestamp for event in graph.events} == {"2025-12-31T23:00:00.000000Z"}
    later = opened(FrozenClock(START))
    later.add_object("Memory", id="e")
    assert graph.events[-1].timestamp == "2026-01-01T00:00:00.000000Z"
    graph.add_object("Memory", id="f")
    assert graph.events[-1].timestamp == "2026-01-01T00:00:00.000000Z"
