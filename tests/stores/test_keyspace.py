"""Names, keys and leftovers of workspaces on one server."""

from typing import Any

import pytest

from contextmesh.core.graph import Graph
from contextmesh.errors import InvalidNameError, WorkspaceNotFoundError
from contextmesh.stores import keyspace
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.keyspace import (
    check_name,
    drop_workspace,
    leftovers,
    remove_leftover,
    workspace_keys,
    workspace_names,
)
from contextmesh.stores.server import Server
from tests.conftest import Workspace
from tests.stores.opening import opened


@pytest.mark.parametrize("good", ["a", "0", "acmeshop", "a-b_c", "x" * 63])
def test_good_names(good: str) -> None:
    assert check_name(good) == good


@pytest.mark.parametrize(
    "bad", ["", "A", "-a", "_a", "a b", "a:b", "a}", "{a", "a*", "a?", "é", "x" * 64, "a\n", 7, None]
)
def test_bad_names(bad: Any, server: Server) -> None:
    for use in (
        check_name,
        lambda name: FalkorDBEventStore(server, name),
        lambda name: FalkorDBGraphStore(server, name),
    ):
        with pytest.raises(InvalidNameError, match="is no workspace name; expected up to 63 of a-z, 0-9"):
            use(bad)
    with pytest.raises(InvalidNameError, match="is no workspace name"):
        drop_workspace(server, bad)


def test_keys(server: Server, graph: Graph, name: str) -> None:
    assert workspace_keys(server, name) == [f"cm:{{{name}}}:log", f"cm:{{{name}}}:graph"]
    graph.add_object("Memory")
    assert workspace_keys(server, name) == [f"cm:{{{name}}}:log", f"cm:{{{name}}}:graph", f"cm:{{{name}}}:ids"]
    assert name in workspace_names(server)


def test_drop_erases_that_exact_name_only(server: Server) -> None:
    names = ["ab", "ab-c", "ab_c", "a", "abc"]
    for name in names:
        opened(server, name).add_object("Memory")
    drop_workspace(server, "ab")
    assert workspace_keys(server, "ab") == []
    assert [name for name in workspace_names(server) if name in names] == ["a", "ab-c", "ab_c", "abc"]
    assert all(len(workspace_keys(server, name)) == 3 for name in names if name != "ab")
    for name in names[1:]:
        assert len(opened(server, name).objects()) == 1
        drop_workspace(server, name)
    with pytest.raises(WorkspaceNotFoundError, match=r"no workspace 'ab' in embedded FalkorDB in .*; it holds: "):
        drop_workspace(server, "ab")


def test_two_graphs_see_nothing_of_each_other(server: Server, workspace: Workspace) -> None:
    with workspace() as one, workspace() as two:
        left, right = opened(server, one), opened(server, two)
        left.add_object("Memory", {"text": "redis"}, id="a")
        left.add_relation("a", "b", "MENTIONS", id="r")
        left.propose_patch("a", {"x": 1}, id="p")
        assert (right.objects(), right.relations(), right.get_patch("p"), len(right.events)) == ([], [], None, 0)
        assert right.search({"redi": 1.0}, ["Memory"], (), 9) == []
        assert right.add_object("Memory").id == "Memory#1"
        assert left.add_object("Memory").id == "Memory#1"
        assert right.events[0].id == "evt_001"
        right.remove_object("Memory#1")
        drop_workspace(server, two)
        assert [row.id for row in opened(server, one).objects()] == ["Memory#1", "a"]


def test_a_shadow_in_use_is_no_leftover(server: Server, store: FalkorDBGraphStore, name: str) -> None:
    assert store.shadow().head() == 0
    assert leftovers(server, name) == []


def test_leftovers(  # noqa: PLR0917 - fixtures
    server: Server,
    graph: Graph,
    store: FalkorDBGraphStore,
    name: str,
    workspace: Workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keyspace, "LEFTOVER_AFTER_S", 0)
    monkeypatch.setattr(keyspace, "LOOK_AFTER_S", 0)
    graph.add_object("Memory", id="a")
    abandoned = store.shadow()
    assert abandoned.head() == 0
    server.db.select_graph(f"cm:{{{name}}}:at-12-abc:graph").query("CREATE (:Head {seq: 12})")
    server.db.select_graph(f"cm:{{{name}}}:alt:graph").query("CREATE (:Head {seq: 12})")
    with workspace() as other:
        opened(server, other)._store.shadow().head()
        found = leftovers(server, name)
    assert sorted(found) == sorted([abandoned.key, f"cm:{{{name}}}:at-12-abc:graph"])
    for key in found:
        remove_leftover(server, key)
    assert leftovers(server, name) == []
    assert [row.id for row in opened(server, name).objects()] == ["a"]
