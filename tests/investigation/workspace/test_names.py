"""Isolation and names: opening, dropping, closing, and what one workspace sees of another."""

from pathlib import Path
from typing import Any

import pytest

import contextmesh as cm
from contextmesh.core.graph import Graph
from contextmesh.errors import InvalidNameError, NotFoundError, ServerError, WorkspaceNotFoundError
from contextmesh.investigation.workspace import Workspace
from tests.investigation.conftest import Opened
from tests.investigation.making import whole


def test_two_workspaces_see_nothing_of_each_other(opened: Opened, folder: Path) -> None:
    one, two = opened(), opened()
    cm.demo.acmeshop(one)
    one.session("s").note("xylophoneword")
    run = one.session("s").investigate("xylophoneword?").run_id
    assert two.search("xylophoneword").empty
    assert two.session("s").investigate("xylophoneword?", run=False).run_id == "Run#1"
    assert {row.type for row in two.graph.objects()} == {"Workspace", "Agent", "Session", "Run"}
    assert two.cypher("MATCH (n:Memory) RETURN n").empty
    assert two.cypher("MATCH (n:Entity) RETURN n").empty
    with pytest.raises(NotFoundError, match=rf"no object 'maya-chen' in workspace '{two.name}'"):
        two.history("maya-chen")
    assert len(two.log()) == 5 + 3
    before = whole(one.graph)
    cm.drop(two.name, data_dir=folder)
    assert whole(one.graph) == before
    assert one.investigation(run).status == "completed"


BAD_NAMES = [
    "", "A", "Acme", "a b", " a", "a ", "a\n", "../x", "a/b", "a.b", "a:b", "a*", "a?", "[a]", "{a}", "a}", "-a", "_a",
    "a" * 64, "é", "١", "ａ", "a\0", "🔥", "'", '"', "`", "$x", "cm:{a}:log", "a;b", "%s", "a,b", "a|b", "\ud800",
    None, 7, b"a", ["a"],
]  # fmt: skip


@pytest.mark.parametrize("name", BAD_NAMES, ids=repr)
def test_invalid_names_are_refused(folder: Path, tmp_path: Path, name: Any) -> None:
    message = r"is no workspace name; expected up to 63 of a-z, 0-9, '-' and '_', such as 'acmeshop'"
    with pytest.raises(InvalidNameError, match=message):
        cm.open(name, data_dir=folder)
    with pytest.raises(InvalidNameError, match=message):
        cm.drop(name, data_dir=folder)
    with pytest.raises(InvalidNameError, match=message):
        cm.restore(tmp_path / "none.jsonl", name, data_dir=folder)


@pytest.mark.parametrize("name", ["a", "0", "a-b_c", "a" * 63, "a-", "0_", "log", "graph"])
def test_valid_names_are_taken(folder: Path, name: str) -> None:
    with cm.open(name, data_dir=folder) as ws:
        assert ws.graph.get_object("workspace").data == {"label": name}
        assert repr(ws) == f"<Workspace {name!r}: <Graph at position 5>, embedded FalkorDB in {folder}>"
    cm.drop(name, data_dir=folder)


def test_dropping_takes_only_the_exact_name(opened: Opened, folder: Path, name: str) -> None:
    for suffix in ("", "-2", "_2", "2"):
        opened(f"{name}{suffix}")
    cm.drop(name, data_dir=folder)
    with pytest.raises(
        WorkspaceNotFoundError, match=f"no workspace '{name}' in .*; it holds: .*{name}-2, {name}2, {name}_2"
    ):
        cm.open(name, data_dir=folder, create=False)
    with pytest.raises(WorkspaceNotFoundError, match=f"no workspace '{name}'"):
        cm.drop(name, data_dir=folder)
    cm.drop(name, data_dir=folder, missing_ok=True)
    for suffix in ("-2", "_2", "2"):
        with cm.open(f"{name}{suffix}", data_dir=folder, create=False) as ws:
            assert ws.graph.position == 5
        cm.drop(f"{name}{suffix}", data_dir=folder)


def test_opening_an_unknown_name_without_creating_lists_the_known(ws: Workspace, folder: Path) -> None:
    with pytest.raises(
        WorkspaceNotFoundError, match=rf"no workspace 'unheard-of' in embedded FalkorDB in .*: .*{ws.name}"
    ):
        cm.open("unheard-of", data_dir=folder, create=False)
    with pytest.raises(WorkspaceNotFoundError, match="no workspace 'unheard-of'"):  # and it was not created
        cm.open("unheard-of", data_dir=folder, create=False)


def test_two_may_open_a_new_workspace_at_once(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    add_object = Graph.add_object

    def raced(self: Graph, kind: str, *args: Any, **kwargs: Any) -> Any:
        monkeypatch.undo()
        row = add_object(self, kind, *args, **kwargs)
        cm.open(name, data_dir=folder).close()
        return row

    monkeypatch.setattr(Graph, "add_object", raced)
    with cm.open(name, data_dir=folder) as ws:
        found = [row.id for row in ws.graph.objects()]
        assert found == ["agent.executor", "agent.planner", "agent.researcher", "agent.verifier", "workspace"]


def test_closing_twice_is_fine(folder: Path, name: str) -> None:
    ws = cm.open(name, data_dir=folder)
    ws.close()
    ws.close()
    with pytest.raises(ServerError, match="is closed here; open it again"):
        ws.search("words")
