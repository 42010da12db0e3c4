"""What views share: a value that none of them could show is not taken over, and one of them says why."""

import pytest

from contextmesh.core.graph import Graph
from contextmesh.errors import ServerError
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import Explorer, GraphView, State


@pytest.fixture
def graph() -> Graph:
    graph = Graph()
    for n in range(3):
        graph.add_object("Entity", {"label": f"service {n}"}, id=f"a{n}")
    return graph


def test_a_position_beyond_the_log_is_refused_and_nobody_is_told_of_it(graph: Graph) -> None:
    view, seen = GraphView(graph), []
    view.state.observe(lambda change: seen.append(change.new), "position")
    view.state.position = 2
    view.state.position = 4
    assert (view.state.position, seen) == (2, [2])
    assert view.status.text == (
        "following the position failed: position is 4; expected a whole number from 0 to 3, where the log ends"
    )
    graph.add_object("Entity", id="a3")
    view.state.position = 4
    assert (view.state.position, view.status.text) == (4, "")
    view.close()


def test_an_explorer_says_so_once_and_its_heading_stays(acme: Workspace) -> None:
    explorer = Explorer(acme)
    explorer.state.position = 5
    explorer.state.position = 999_999
    assert explorer.state.position == 5
    assert "position is 999999; expected a whole number from 0 to " in explorer.status.text
    assert explorer.graph.status.text == explorer.graph.details.status.text == ""
    assert "position 5" in repr(explorer)
    assert "position 5<" in explorer._heading.value
    explorer.close()


def test_a_closed_view_bounds_and_says_nothing(graph: Graph) -> None:
    view = GraphView(graph)
    view.close()
    view.close()
    view.state.position = 99
    assert (view.state.position, view.status.text) == (99, "")
    assert (view.state._tips, view.state._sayers) == ([], [])


def test_where_the_log_cannot_be_read_the_view_says_so_itself() -> None:
    def gone() -> int:
        raise ServerError("the server is gone")

    state, said = State(), []
    state.bound(gone)
    state.join(said.append)
    state.position = 7
    assert (state.position, said) == (7, [])


@pytest.mark.parametrize("position", [0, 3, None])
def test_every_position_of_the_log_is_taken_over(graph: Graph, position: int | None) -> None:
    view = GraphView(graph)
    view.state.position = position
    assert view.state.position == position
    view.close()
