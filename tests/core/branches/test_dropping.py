"""Branches that are dropped, and logs that are cut where branches begin. Over every kind of store."""

import pytest

from contextmesh.core.branches import fork
from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.errors import ContextMeshError, NotFoundError, UsageError
from contextmesh.stores.keyspace import drop_workspace
from tests.core.branching import Family, agrees_with_replay, filled, ids


def drop(graph: Graph, name: str) -> None:
    graph.log.drop_branch(name)
    graph.store.drop_branch(name)


def test_a_dropped_branch_is_gone_and_takes_nothing(family: Family) -> None:
    graph = filled(family.root())
    made = fork(graph, label="alt")
    made.add_object("Memory", id="z")
    drop(graph, "alt")
    assert graph.log.branches() == []
    with pytest.raises(NotFoundError, match="no branch 'alt'; there are: none yet"):
        family.branch("alt")
    with pytest.raises(NotFoundError, match="branch 'alt'"):
        made.log.append(Event(id="evt_late", type="note.made", payload={}, timestamp="2026-01-01T00:00:00.000000Z"))
    with pytest.raises(ContextMeshError, match=r"was dropped, perhaps by another process|branch was dropped meanwhile"):
        made.add_object("Memory", id="y")
    assert (graph.log.branches(), ids(graph.objects())) == ([], ["a", "b", "c"])
    agrees_with_replay(graph)


def test_a_branch_with_children_is_not_dropped(graph: Graph) -> None:
    one = fork(graph, label="one")
    one.add_object("Memory", id="z")
    two = fork(one, label="two")
    with pytest.raises(UsageError, match="cannot drop the branch 'one': two were forked from it; drop them first"):
        graph.log.drop_branch("one")
    assert (ids(one.objects()), ids(two.objects())) == (["a", "b", "c", "z"], ["a", "b", "c", "z"])
    drop(graph, "two")
    drop(graph, "one")
    assert graph.log.branches() == []


def test_dropping_leaves_no_key_but_the_names(stored: Family) -> None:
    graph = filled(stored.root())
    before = stored.stored_keys()
    made = fork(graph, 2, "alt")
    made.add_object("Run")
    fork(made, label="twig").add_object("Run")
    drop(graph, "twig")
    drop(graph, "alt")
    assert set(stored.stored_keys()) - set(before) == {f"cm:{{{stored.name}}}:branches"}
    fork(graph, label="alt").add_object("Run")
    drop_workspace(stored.server, stored.name)
    assert stored.stored_keys() == []


@pytest.mark.parametrize("position", [0, 3, 4])
def test_no_cut_where_a_fork_begins_or_before(graph: Graph, position: int) -> None:
    made = fork(graph, 4, "alt")
    made.add_object("Memory", id="z")
    with pytest.raises(UsageError, match=f"cannot cut the log after {position}: alt begin there or later"):
        graph.log.truncate_after(position)
    assert (len(graph.events), ids(made.objects())) == (5, ["a", "b", "c", "z"])


def test_a_cut_after_the_last_fork_and_one_of_the_fork(graph: Graph) -> None:
    made = fork(graph, 3, "alt")
    made.add_object("Memory", id="z")
    made.add_object("Memory", id="y")
    graph.log.truncate_after(4)
    graph.rebuild()
    assert (ids(graph.relations()), len(graph.events)) == (["ab"], 4)
    with pytest.raises(UsageError, match="cannot cut the branch 'alt' after 2; it shares its events up to 3"):
        made.log.truncate_after(2)
    made.log.truncate_after(4)
    made.rebuild()
    assert ids(made.objects()) == ["a", "b", "c", "z"]
    made.log.truncate_after(3)
    made.rebuild()
    assert ids(made.objects()) == ["a", "b", "c"]
    agrees_with_replay(made)
