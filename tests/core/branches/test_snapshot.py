"""Looking back: a graph as it stood at a position, and the position of a time. Over every kind of store."""

import pytest

from contextmesh.core import branches
from contextmesh.core.branches import fork, position_at
from contextmesh.core.diff import diff
from contextmesh.core.graph import Graph
from contextmesh.errors import EventNotFoundError, ReadOnlyError
from tests.core.branching import PAST, Family, filled, ids


@pytest.mark.parametrize(("position", "objects", "relations"), PAST)
def test_a_graph_as_it_stood(graph: Graph, position: int, objects: list[str], relations: list[str]) -> None:
    graph.patch_object("a", {"n": 10})
    past = branches.snapshot(graph, position)
    assert (ids(past.objects()), ids(past.relations()), past.position) == (objects, relations, position)
    assert [row.data["n"] for row in past.objects()] == list(range(1, len(objects) + 1))
    assert past.events[:] == graph.events[:position]
    with pytest.raises(ReadOnlyError, match="look into the past"):
        past.add_object("Memory", id="z")
    graph.remove_object("a")
    assert ids(past.objects()) == objects
    past.store.close()
    assert graph.log.branches() == []


def test_a_look_back_is_removed_when_it_is_closed(stored: Family) -> None:
    graph = filled(stored.root())
    before = stored.stored_keys()
    for position in (2, 5):
        past = branches.snapshot(graph, position)
        assert set(stored.stored_keys()) - set(before) == {past.store.key}
        past.store.close()
        assert stored.stored_keys() == before
    with pytest.raises(EventNotFoundError, match="no event 6 in the log, which ends at 5"):
        branches.snapshot(graph, 6)
    assert stored.stored_keys() == before


def test_a_look_back_at_a_fork_is_compared_with_its_family(graph: Graph) -> None:
    made = fork(graph, 4, "alt")
    made.add_object("Task", id="t")
    past = branches.snapshot(made, 5)
    made.remove_object("t")
    assert ids(diff(past, made).divergent_objects) == ["t"]
    assert diff(past, graph).shared_to == 4
    before = branches.snapshot(made, 2)
    assert diff(before, graph).shared_to == diff(before, made).shared_to == 2
    past.store.close()
    before.store.close()


def test_the_last_position_not_after_a_time(graph: Graph) -> None:
    for _ in range(20):
        graph.add_object("Memory")
    made = fork(graph, 12)
    made.add_object("Memory")
    for log in (graph.log, made.log):
        times = [row.timestamp for row in log.iter_events()]
        asked = ["2025-12-31T23:59:59.000000Z", "2027-01-01T00:00:00.000000Z"]
        asked += [time[:-7] + end for time in times for end in ("000000Z", "500000Z")]
        assert [position_at(log, time) for time in asked] == [sum(known <= time for known in times) for time in asked]
