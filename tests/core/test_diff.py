"""Diff: how two branches differ, by what they hold. Over every kind of store."""

from collections.abc import Callable
from typing import Any

import pytest

from contextmesh.core.branches import fork
from contextmesh.core.diff import diff, shared_position
from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.errors import (
    ConcurrentWriterError,
    IncompatibleRuntimeState,
    UsageError,
)
from tests.core.branching import Family, filled, ids, runtime, types


@pytest.fixture
def graph(family: Family) -> Graph:
    """A graph of five events; see `filled`."""
    return filled(family.root())


def test_a_diff_says_what_either_side_has_done(graph: Graph) -> None:
    made = fork(graph, 5, "alt")
    made.patch_object("a", {"n": 10})
    made.add_object("Task", {"n": 1}, id="t")
    made.add_relation("t", "a", "MENTIONS", {"why": "found"}, id="ta")
    graph.remove_relation("bc")
    graph.patch_object("b", {"tier": 1})
    found = diff(graph, made)
    assert (found.parent_run_id, found.fork_run_id, found.shared_to) == (graph.run_id, made.run_id, 5)
    assert found.shared_events == tuple(graph.events[:5]) == tuple(made.events[:5])
    assert found.parent_only_events == tuple(graph.events[5:])
    assert types(found.parent_only_events) == ["relation.removed", "patch.proposed", "patch.applied"]
    assert found.fork_only_events == tuple(made.events[5:])
    assert types(found.fork_only_events) == ["patch.proposed", "patch.applied", "object.created", "relation.created"]
    text = "redis timeouts"
    assert [(row.id, row.in_parent, row.in_fork) for row in found.divergent_objects] == [
        (
            "a",
            {"id": "a", "type": "Memory", "data": {"n": 1, "text": text}, "version": 1},
            {"id": "a", "type": "Memory", "data": {"n": 10, "text": text}, "version": 2},
        ),
        (
            "b",
            {"id": "b", "type": "Memory", "data": {"n": 2, "tier": 1}, "version": 2},
            {"id": "b", "type": "Memory", "data": {"n": 2}, "version": 1},
        ),
        ("t", None, {"id": "t", "type": "Task", "data": {"n": 1}, "version": 1}),
    ]
    assert [(row.id, row.in_parent, row.in_fork) for row in found.divergent_relations] == [
        ("bc", None, {"id": "bc", "source": "b", "target": "c", "type": "MENTIONS", "data": {}}),
        ("ta", None, {"id": "ta", "source": "t", "target": "a", "type": "MENTIONS", "data": {"why": "found"}}),
    ]
    assert not found.is_identical
    assert found.summary().splitlines() == [
        "3 objects and 2 relations differ; forked after 5; 3 events only in the parent, 4 in the fork",
        "Memory a: differs in n",
        "Memory b: differs in tier",
        "Task t: only in the fork",
        "b -MENTIONS-> c: only in the fork",
        "t -MENTIONS-> a: only in the fork",
    ]
    assert [row.summary() for row in found.divergent_relations] == found.summary().splitlines()[4:]
    assert repr(found) == f"<Diff: {found.summary().splitlines()[0]}>"


def test_the_same_diff_from_the_other_side(graph: Graph) -> None:
    made = fork(graph)
    made.remove_object("a")
    graph.add_object("Task", id="t")
    one, other = diff(graph, made), diff(made, graph)
    assert [(row.id, row.in_fork, row.in_parent) for row in other.divergent_objects] == [
        (row.id, row.in_parent, row.in_fork) for row in one.divergent_objects
    ]
    assert (other.parent_only_events, other.fork_only_events) == (one.fork_only_events, one.parent_only_events)
    assert one.shared_events == other.shared_events
    assert one.summary().splitlines()[1:] == [
        "Memory a: only in the parent",
        "Task t: only in the parent",
        "a -MENTIONS-> b: only in the parent",
    ]


def test_a_fork_that_nobody_touched_is_identical(graph: Graph) -> None:
    made = fork(graph, 3)
    assert not diff(graph, made).is_identical
    for same in (fork(graph), graph):
        found = diff(graph, same)
        assert found.is_identical
        assert (found.divergent_objects, found.divergent_relations, found.fork_only_events) == ((), (), ())
        assert found.summary().startswith("identical; forked after 5")


def test_versions_alone_are_no_difference(graph: Graph) -> None:
    made = fork(graph)
    made.patch_object("a", {"n": 2})
    made.patch_object("a", {"n": 1})
    assert (made.get_object("a").version, graph.get_object("a").version) == (3, 1)
    found = diff(graph, made)
    assert found.is_identical
    assert len(found.fork_only_events) == 4
    graph.remove_object("a")
    graph.add_object("Memory", {"n": 1, "text": "redis timeouts"}, id="a")
    graph.add_relation("a", "b", "MENTIONS", id="ab")
    assert diff(graph, made).is_identical


@pytest.mark.parametrize(("old", "new"), [(1, True), (0, False), (1, 1.0), ({"x": [1]}, {"x": [True]}), (0, None)])
def test_values_that_python_takes_for_equal_differ(family: Family, old: Any, new: Any) -> None:
    graph = family.root()
    graph.add_object("Memory", {"v": old}, id="a")
    made = fork(graph)
    made.patch_object("a", {"v": new})
    [row] = diff(graph, made).divergent_objects
    assert row.summary() == "Memory a: differs in v"


def test_a_field_that_is_null_differs_from_one_that_is_not_there(graph: Graph) -> None:
    made = fork(graph)
    made.patch_object("a", {"tier": None})
    [row] = diff(graph, made).divergent_objects
    assert row.summary() == "Memory a: differs in tier"


def test_a_type_or_an_end_that_changed(graph: Graph) -> None:
    made = fork(graph)
    made.remove_relation("bc")
    made.add_relation("c", "b", "SUPPORTS", {"x": 1}, id="bc")
    made.remove_object("a")
    made.add_object("Entity", {"n": 1, "text": "redis timeouts"}, id="a")
    assert diff(graph, made).summary().splitlines()[1:] == [
        "Entity a: differs in type",
        "a -MENTIONS-> b: only in the parent",
        "c -SUPPORTS-> b: differs in type, source, target, x",
    ]


def test_a_removed_object_takes_its_relations_along(graph: Graph) -> None:
    graph.add_relation("b", "nobody", "MENTIONS", id="bx")
    made = fork(graph)
    made.remove_object("b")
    graph.add_relation("b", "a", "MENTIONS", id="ba")
    assert ids(diff(graph, made).divergent_objects) == ["b"]
    assert ids(diff(graph, made).divergent_relations) == ["ab", "ba", "bc", "bx"]
    back = fork(graph, 6, "back")
    back.apply_patch(back.propose_patch("b", {}, op="remove").id)
    assert ids(diff(graph, back).divergent_relations) == ["ab", "ba", "bc", "bx"]
    assert ids(diff(back, made).divergent_relations) == []
    assert diff(back, made).is_identical


def test_siblings_cousins_and_grandchildren_are_compared(graph: Graph) -> None:
    one, two = fork(graph, 4, "one"), fork(graph, 2, "two")
    one.add_object("Task", id="of-one")
    two.add_object("Task", id="of-two")
    child = fork(one, label="child")
    child.add_object("Task", id="of-child")
    found = diff(one, two)
    assert (found.shared_to, ids(found.divergent_objects)) == (2, ["c", "of-one", "of-two"])
    assert ids(found.shared_events) == ids(graph.events[:2])
    found = diff(graph, child)
    assert (found.shared_to, ids(found.divergent_objects)) == (4, ["of-child", "of-one"])
    assert types(found.fork_only_events) == ["object.created"] * 2
    assert ids(diff(two, child).divergent_objects) == ["c", "of-child", "of-one", "of-two"]


def test_a_fork_before_its_parents_own_base_shares_only_up_to_there(graph: Graph) -> None:
    one = fork(graph, 4, "one")
    two = fork(one, 1, "two")
    two.add_object("Task", id="of-two")
    for parent in (graph, one):
        found = diff(parent, two)
        assert (found.shared_to, len(found.parent_only_events), len(found.fork_only_events)) == (
            1,
            len(parent.events) - 1,
            1,
        )
        assert ids(found.divergent_objects) == ["b", "c", "of-two"]
    three = fork(two, 0, "three")
    assert [shared_position(each.log, three.log) for each in (graph, one, two)] == [0, 0, 0]


def test_lifecycle_is_left_out(graph: Graph) -> None:
    graph.emit(Event(type="runtime.opened", payload={}))
    graph.emit(Event(type="question.asked", payload={"question": "why?"}))
    made = fork(graph)
    for each in (graph, made):
        each.emit(Event(type="behavior.started", payload={}))
        each.emit(Event(type="note.made", payload={}))
    found = diff(graph, made)
    assert types(found.shared_events)[-2:] == ["relation.created", "question.asked"]
    assert (types(found.parent_only_events), types(found.fork_only_events)) == (["note.made"], ["note.made"])
    assert found.is_identical


def test_two_families_are_not_compared(graph: Graph) -> None:
    for one, other in [(graph, filled(Graph())), (fork(graph), fork(filled(Graph()))), (Graph(), graph)]:
        with pytest.raises(IncompatibleRuntimeState, match="share no history, so they cannot be compared"):
            diff(one, other)


def test_a_diff_knows_branches_that_were_opened_anew(family: Family) -> None:
    graph = filled(family.root())
    made = fork(graph, 4, "alt")
    made.add_object("Task", id="t")
    again = runtime(family.root()).diff(runtime(family.branch("alt")))
    assert again == runtime(graph).diff(runtime(made))
    assert again.shared_to == 4


def test_a_batch_that_is_open_is_not_compared(graph: Graph) -> None:
    made = fork(graph)
    for opened in (graph, made):
        with opened.batch():
            opened.add_object("Task", id="t")
            with pytest.raises(UsageError, match="a batch is open, and its events are not in the log yet"):
                diff(graph, made)
    assert diff(graph, made).is_identical


def test_graphs_that_move_while_they_are_compared(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, elsewhere = filled(family.root()), family.root()
    made = fork(graph)
    made.patch_object("a", {"n": 2})
    real, moves = Graph.get_objects, iter(range(100))

    def moved(n: int) -> Callable[..., Any]:
        def get_objects(self: Graph, wanted: Any) -> Any:
            at = next(moves)
            if self is graph and at < n:
                elsewhere.patch_object("a", {"n": 100 + at})
            return real(self, wanted)

        return get_objects

    monkeypatch.setattr(Graph, "get_objects", moved(1))
    [row] = diff(graph, made).divergent_objects
    if family.kind == "sqlite":  # each process has a graph of its own, which only moves when that process catches up
        assert (row.in_parent["data"]["n"], row.in_fork["data"]["n"]) == (1, 2)
        return
    assert (row.in_parent["data"]["n"], row.in_fork["data"]["n"]) == (100, 2)
    monkeypatch.setattr(Graph, "get_objects", moved(100))
    with pytest.raises(ConcurrentWriterError, match="other writers moved the graphs 5 times while they were compared"):
        diff(graph, made)


def test_a_diff_shows_itself(family: Family) -> None:
    graph = family.root()
    made = fork(graph)
    assert "identical" in diff(graph, made)._repr_html_()
    hostile = "<script>alert('x')</script>&"
    made.add_object("Memory", {hostile: 1, "text": hostile}, id="<b>a</b>")
    made.add_relation("<b>a</b>", "<i>", "MENTIONS", id="<img/src=x>")
    graph.add_object("Memory", {"text": "x"}, id="<b>a</b>")
    html = diff(graph, made)._repr_html_()
    assert "&lt;b&gt;a&lt;/b&gt;" in html
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;&amp;" in html
    assert not any(mark in html for mark in ("<script", "<b>", "<i>", "<img"))


def test_a_long_diff_shows_its_beginning(family: Family) -> None:
    graph = family.root()
    made = fork(graph)
    with made.batch():
        for n in range(60):
            made.add_object("Memory", id=f"o{n:02d}")
    found = diff(graph, made)
    assert found._repr_html_().count("<tr>") == 51
    assert "and 10 more" in found._repr_html_()
    assert len(found.summary().splitlines()) == 61


def test_a_summary_is_one_line_whatever_a_field_is_called(graph: Graph) -> None:
    made = fork(graph)
    made.patch_object("a", {"two\nlines": 1, "": 2, "tab\t": 3})
    [row] = diff(graph, made).divergent_objects
    assert row.summary() == r"Memory a: differs in , 'tab\t', 'two\nlines'"
