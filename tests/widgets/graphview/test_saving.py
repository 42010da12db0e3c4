"""The view without a kernel: its still picture, and the files that it may be saved to."""

import os
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from contextmesh.core.graph import Graph
from contextmesh.errors import UsageError
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import GraphView
from tests.widgets.reading import Tags


def test_a_still_picture_of_what_is_shown(
    acme: Workspace, make: Callable[..., GraphView], displayed: list[dict[str, str]]
) -> None:
    view = make(acme)
    view.state.position = 20
    view._ipython_display_()
    live, still = displayed
    assert "application/vnd.jupyter.widget-view+json" in live
    page = Tags(still["text/html"])
    assert {"svg", "table", "figcaption"} <= page.tags
    assert "as of position 20" in page.text
    assert all(label in page.text for label in view.scene.labels)


def test_saving(acme: Workspace, make: Callable[..., GraphView], tmp_path: Path) -> None:
    view = make(acme)
    path = view.save(tmp_path / "graph.svg")
    root = ET.fromstring(path.read_text("utf-8"))  # noqa: S314 - our own
    assert (root.tag, root.get("role")) == ("{http://www.w3.org/2000/svg}svg", "img")
    page = view.save(f"{tmp_path}/Graph.HTML").read_text("utf-8")
    assert page.startswith("<!DOCTYPE html>")
    assert {"svg", "table"} <= Tags(page).tags
    view.save(path)  # an existing file is replaced
    assert sorted(found.name for found in tmp_path.iterdir()) == ["Graph.HTML", "graph.svg"]


@pytest.mark.parametrize("name", ["graph.png", "graph", "svg"])
def test_other_endings_are_refused(chain: Graph, make: Callable[..., GraphView], tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"expected \.svg or \.html, such as 'graph\.svg'"):
        make(chain).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_is_none_is_refused(chain: Graph, make: Callable[..., GraphView], tmp_path: Path) -> None:
    (tmp_path / "folder.svg").mkdir()
    for path in (tmp_path / "nowhere" / "graph.svg", tmp_path / "folder.svg"):
        with pytest.raises(UsageError, match="expected a file's name in a folder that does"):
            make(chain).save(path)


@pytest.mark.parametrize("name", ["\0.svg", f"{'x' * 300}.svg"])
def test_a_name_that_no_file_can_have_is_refused(
    chain: Graph, make: Callable[..., GraphView], tmp_path: Path, name: str
) -> None:
    with pytest.raises(UsageError, match="cannot be a file's name"):
        make(chain).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_pipe_is_not_replaced_by_a_file(chain: Graph, make: Callable[..., GraphView], tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "graph.svg"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    with pytest.raises(UsageError, match="a device or a pipe"):
        make(chain).save(link)
    assert pipe.is_fifo()
