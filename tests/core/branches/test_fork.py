"""Forking: where a branch begins, what it shares and what it keeps for itself. Over every kind of store."""

from typing import Any

import pytest

from contextmesh.core import branches
from contextmesh.core.branches import fork
from contextmesh.core.forked import ForkedEventStore
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.errors import EventNotFoundError, ReadOnlyError
from tests.core.branching import PAST, Family, agrees_with_replay, filled, ids, snapshot

# Where a fork begins


def test_a_fork_at_the_tip_holds_what_its_parent_holds(graph: Graph) -> None:
    graph.patch_object("a", {"n": 10})
    graph.remove_relation("bc")
    made = fork(graph)
    assert made.events[:] == graph.events[:]
    assert (made.objects(), made.relations()) == (graph.objects(), graph.relations())
    assert made.position == graph.position == 8
    assert made.run_id not in {"", graph.run_id}
    agrees_with_replay(made)


@pytest.mark.parametrize(("position", "objects", "relations"), PAST)
def test_a_fork_at_a_position(graph: Graph, position: int, objects: list[str], relations: list[str]) -> None:
    made = fork(graph, position)
    assert (ids(made.objects()), ids(made.relations()), made.position) == (objects, relations, position)
    assert made.events[:] == graph.events[:position]
    made.add_object("Memory", id="z")
    assert (made.position, ids(made.objects())) == (position + 1, [*objects, "z"])
    agrees_with_replay(made)


@pytest.mark.parametrize("position", range(1, 6))
def test_a_fork_at_an_event(graph: Graph, position: int) -> None:
    event = graph.events[position - 1]
    made = fork(graph, event.id)
    assert made.events[:] == graph.events[:position]
    agrees_with_replay(made)


def test_a_fork_in_the_past_is_not_moved_by_what_came_later(graph: Graph) -> None:
    graph.patch_object("a", {"n": 10})
    graph.remove_object("b")
    made = fork(graph, 5)
    assert [(row.id, row.data["n"], row.version) for row in made.objects()] == [("a", 1, 1), ("b", 2, 1), ("c", 3, 1)]
    assert ids(made.relations()) == ["ab", "bc"]


def test_a_fork_of_an_empty_graph(family: Family) -> None:
    graph = family.root()
    made = fork(graph)
    assert (made.position, made.objects(), len(made.events)) == (0, [], 0)
    made.add_object("Memory", id="z")
    assert (ids(made.objects()), graph.objects(), len(graph.events)) == (["z"], [], 0)


@pytest.mark.parametrize("at_event", ["evt_999", "", -1, 6, True, 1.0, b"evt_001"])
def test_a_fork_at_no_event_of_the_log(graph: Graph, at_event: Any) -> None:
    with pytest.raises(EventNotFoundError, match=r"no event .* in the log, which ends at 5; name the id or position"):
        fork(graph, at_event)
    assert graph.log.branches() == []


def test_an_event_of_another_branch_is_none_of_this_log(graph: Graph) -> None:
    made = fork(graph, 3)
    event = made.add_object("Memory", id="z").provenance["created_by"]
    with pytest.raises(EventNotFoundError, match=f"no event '{event}' in the log"):
        fork(graph, event)
    with pytest.raises(EventNotFoundError, match=r"no event 'evt_004' in the log, which ends at 4"):
        fork(made, graph.events[3].id)
    assert ids(fork(made, event).objects()) == ["a", "b", "c", "z"]


def test_a_fork_of_a_fork(graph: Graph) -> None:
    one = fork(graph, 4, "one")
    one.add_object("Memory", id="of-one")
    one.add_object("Memory", id="later")
    two = fork(one, 5, "two")
    two.add_object("Memory", id="of-two")
    assert ids(two.objects()) == ["a", "b", "c", "of-one", "of-two"]
    assert ids(one.objects()) == ["a", "b", "c", "later", "of-one"]
    assert [(row.name, row.parent, row.position) for row in graph.log.branches()] == [("one", "", 4), ("two", "one", 5)]
    agrees_with_replay(two)


@pytest.mark.parametrize("position", [0, 2, 4])
def test_a_fork_of_a_fork_before_its_own_base(graph: Graph, position: int) -> None:
    one = fork(graph, 4, "one")
    one.add_object("Memory", id="of-one")
    two = fork(one, position, "two")
    two.add_object("Memory", id="of-two")
    assert ids(two.objects()) == [*["a", "b", "c"][:position], "of-two"]
    assert graph.log.branches()[1].position == position
    agrees_with_replay(two)


def test_a_fork_of_a_graph_that_has_fallen_behind_its_log(family: Family) -> None:
    graph, elsewhere = family.root(), family.root()
    filled(elsewhere)
    assert ids(fork(graph).objects()) == ["a", "b", "c"]
    assert ids(fork(graph, 2).objects()) == ["a", "b"]


def test_a_read_only_graph_is_not_forked(graph: Graph) -> None:
    past = branches.snapshot(graph, 3)
    with pytest.raises(ReadOnlyError, match="look into the past"):
        fork(past)
    assert graph.log.branches() == []
    past.store.close()


# What each keeps for itself


def test_a_fork_keeps_only_its_own_tail(family: Family) -> None:
    graph = filled(family.root())
    made = fork(graph, 4, "alt")
    assert family.kept("alt") == 0
    made.add_object("Memory", id="z")
    made.patch_object("z", {"n": 1})
    assert family.kept("alt") == 3
    assert (len(made.events), len(graph.events)) == (7, 5)
    fork(made, label="twig").add_object("Memory", id="y")
    assert (family.kept("alt"), family.kept("twig")) == (3, 1)


def test_parent_and_forks_do_not_see_each_other(graph: Graph) -> None:
    one, two = fork(graph, label="one"), fork(graph, label="two")
    before = snapshot(graph)
    one.patch_object("a", {"n": "one"})
    one.remove_object("b")
    two.patch_object("a", {"n": "two"})
    two.add_relation("a", "c", "MENTIONS", id="ac")
    assert snapshot(graph) == before
    graph.patch_object("a", {"n": "root"})
    graph.remove_relation("bc")
    assert [row.data["n"] for row in one.objects("Memory")] == ["one"]
    assert [row.data["n"] for row in two.objects("Memory")] == ["two", 2]
    assert [row.data["n"] for row in graph.objects("Memory")] == ["root", 2]
    assert [ids(one.relations()), ids(two.relations()), ids(graph.relations())] == [[], ["ab", "ac", "bc"], ["ab"]]
    for each in (graph, one, two):
        agrees_with_replay(each)


def test_patches_of_the_past_may_be_settled_on_either_side(graph: Graph) -> None:
    patch = graph.propose_patch("a", {"n": 10}).id
    made = fork(graph)
    assert made.apply_patch(patch).status == "applied"
    assert graph.reject_patch(patch, "no").status == "rejected"
    assert [made.get_patch(patch).status, graph.get_patch(patch).status] == ["applied", "rejected"]


def test_ids_minted_in_a_fork_carry_its_name(graph: Graph) -> None:
    made = fork(graph, label="alt")
    row = made.add_object("Run")
    relation = made.add_relation(row.id, "a", "MENTIONS")
    patch = made.patch_object("a", {"n": 1})
    assert (row.id, relation.id, patch.id) == ("Run#alt-1", "rel_alt-001", "patch_alt-001")
    assert ids(made.events)[5:] == ["evt_alt-001", "evt_alt-002", "evt_alt-003", "evt_alt-004"]


def mint(graph: Graph, n: int) -> set[str]:
    with graph.batch():
        made = [graph.add_object("Run").id for _ in range(n)]
        made += [graph.add_relation(key, "a", "MENTIONS").id for key in made]
    return set(made)


def test_ids_never_collide_across_branches(family: Family) -> None:
    """Also of branches whose names look like a name and a number, and of a branch that is opened again."""
    graph = filled(family.root())
    mint(graph, 3)
    before = len(graph.events)
    made = [fork(graph, label=label) for label in ("alt", "alt", "alt-2", "alt-2-1", "1", "2")]
    grandchild = fork(made[0], label="alt-1")
    graphs = [graph, *made, grandchild]
    minted = [mint(each, 30) for each in graphs]
    minted += [mint(family.branch(each.log.branch_name), 5) for each in graphs[1:]] + [mint(family.root(), 5)]
    assert sum(map(len, minted)) == len(set().union(*minted))
    events = [set(ids(each.log.iter_events(before))) for each in (*graphs[:-1], family.branch("alt-1"))]
    assert sum(map(len, events)) == len(set().union(*events))


def test_a_fork_is_searchable(graph: Graph) -> None:
    past, tip = fork(graph, 1, "past"), fork(graph, label="tip")
    for made in (past, tip):
        made.add_object("Memory", {"text": "redis was restarted"}, id="z")
        made.patch_object("a", {"text": "kafka lag"})
        assert ids(made.search({"redi": 1.0}, ["Memory"], (), 9)) == ["z"]
        assert ids(made.search({"kafka": 1.0}, ["Memory"], (), 9)) == ["a"]
    assert ids(graph.search({"redi": 1.0}, ["Memory"], (), 9)) == ["a"]
    assert tip.expand(["a"], ["MENTIONS"], ["Memory"], (), 9) == tip.relations("a")


# The log of a branch


def test_a_forked_log_is_a_log_of_any_parent_and_any_tail() -> None:
    parent = InMemoryEventStore()
    graph = filled(Graph(parent))
    log = ForkedEventStore(parent, InMemoryEventStore(base=2, run_id="tail"), 2)
    assert [(row.position, row.last) for row in log.read(0, 10)] == [(1, 1), (2, 2)]
    assert (log.tip(), log.count(), log.run_id, log.branch_name) == (2, 2, "tail", "")
    assert repr(log) == "<ForkedEventStore: '', after 2 of <InMemoryEventStore: 5 events>>"
    made = Graph(log, InMemoryGraphStore())
    made.add_object("Memory", id="z")
    assert (ids(made.objects()), ids(graph.objects())) == (["a", "b", "z"], ["a", "b", "c"])
    with pytest.raises(EventNotFoundError, match="no event 'evt_003'"):
        log.get_event("evt_003")
    assert log.get_event("evt_002").payload["id"] == "b"
    log.close()
    log.close()
