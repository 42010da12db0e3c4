"""What a branch is called. Over every kind of store."""

from typing import Any

import pytest

from contextmesh.core import branches
from contextmesh.core.branches import fork, slug
from contextmesh.core.graph import Graph
from contextmesh.core.stores import Branch
from contextmesh.errors import ContextMeshError, NonSerializableEventError, UsageError
from contextmesh.stores.keyspace import leftovers, workspace_names
from tests.core.branching import Family, agrees_with_replay, filled, ids

LABELS = [
    ("Not the TTL!", "not-the-ttl"),
    ("", "fork"),
    ("…", "fork"),
    ("   ", "fork"),
    ("Zürich – café", "zurich-cafe"),
    ("отмена", "fork"),
    ("ﬁx ①", "fix-1"),
    ("../x", "x"),
    ("a:b{c}*", "a-b-c"),
    ("log", "log"),
    ("graph", "graph"),
    ("ids", "ids"),
    ("branches", "branches"),
    ("cut", "cut"),
    ("rebuild-0123456789ab", "rebuild-0123456789ab"),
    ("restore-0123456789ab", "restore-0123456789ab"),
    ("at-3-0123456789ab", "at-3-0123456789ab"),
    ("x'; DROP TABLE logs; --", "x-drop-table-logs"),
    ("nul\0l\nine", "nul-l-ine"),
    ("x" * 10_000, "x" * 40),
    ("y" * 39 + " z", "y" * 39),
]


@pytest.mark.parametrize(("label", "called"), LABELS)
def test_a_label_becomes_a_name(graph: Graph, label: str, called: str) -> None:
    made = fork(graph, label=label)
    assert made.log.branch_name == called
    [row] = graph.log.branches()
    assert (row.name, row.label, row.parent, row.position, row.run_id) == (called, label, "", 5, made.run_id)
    assert row.created_at.startswith("2026-01-01T00:00:")
    made.add_object("Memory", id="z")
    assert (ids(made.objects()), ids(graph.objects())) == (["a", "b", "c", "z"], ["a", "b", "c"])
    agrees_with_replay(made)
    agrees_with_replay(graph)


def test_no_label(graph: Graph) -> None:
    assert [fork(graph).log.branch_name for _ in range(3)] == ["fork", "fork-2", "fork-3"]
    assert [row.label for row in graph.log.branches()] == ["fork", "fork", "fork"]


def test_one_label_twice_are_two_branches(graph: Graph) -> None:
    names = [fork(graph, label=label).log.branch_name for label in ("Alt", "alt", "alt-2", "ALT!")]
    assert names == ["alt", "alt-2", "alt-2-2", "alt-3"]
    assert len({row.run_id for row in graph.log.branches()}) == 4


def test_a_name_is_unique_in_the_whole_family(graph: Graph) -> None:
    one = fork(graph, label="alt")
    assert fork(one, label="alt").log.branch_name == "alt-2"
    assert fork(graph, label="alt").log.branch_name == "alt-3"


def test_a_dropped_branch_leaves_its_name(graph: Graph) -> None:
    fork(graph, label="alt")
    graph.log.drop_branch("alt")
    graph.store.drop_branch("alt")
    made = fork(graph, label="alt")
    assert made.log.branch_name == "alt-2"
    assert [row.name for row in graph.log.branches()] == ["alt-2"]


@pytest.mark.parametrize("label", [7, b"alt", ["alt"]])
def test_a_label_is_text(graph: Graph, label: Any) -> None:
    with pytest.raises(UsageError, match=r"label is of type \w+; expected text, such as 'not the TTL'"):
        fork(graph, label=label)


def test_a_label_that_is_no_text_is_refused_before_anything_is_made(graph: Graph) -> None:
    with pytest.raises(NonSerializableEventError, match="label holds half of a surrogate pair"):
        fork(graph, label="half \ud800")
    assert graph.log.branches() == []


def test_slug_is_what_may_stand_in_a_key() -> None:
    assert slug("-".join("ab" * 40)) == "-".join("ab" * 10)


def test_a_hostile_name_is_no_leftover_and_no_workspace(stored: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an interrupted rebuild leaves behind is told by its name; a branch may be called the same."""
    monkeypatch.setattr("contextmesh.stores.keyspace._idle_s", lambda *_: 10**9)
    graph = filled(stored.root())
    labels = ["rebuild-0123456789ab", "restore-0123456789ab", "at-3-0123456789ab", "log", "graph", "branches"]
    made = [fork(graph, label=label) for label in labels]
    for one in made:
        one.add_object("Memory", id="z")
    assert leftovers(stored.server, stored.name) == []
    assert stored.name in workspace_names(stored.server)
    assert [len(stored.branch(one.log.branch_name).events) for one in made] == [6] * 6
    agrees_with_replay(stored.root())


def test_too_many_branches_of_one_label(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = filled(family.root())
    monkeypatch.setattr(branches, "MAX_NAMES", 3)
    for _ in range(3):
        fork(graph, label="alt")
    with pytest.raises(ContextMeshError, match="3 branches were called 'alt'; choose another label"):
        fork(graph, label="alt")
    assert isinstance(graph.log.branches()[0], Branch)
