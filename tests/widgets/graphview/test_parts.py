"""Which part is shown: what the legend hides, hops around a fact, neighbours and new facts."""

from collections.abc import Callable

from contextmesh.core.graph import Graph
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets import GraphView
from tests.widgets.graphview.handling import drawn, listed, places
from tests.widgets.reading import Tags, shown


def test_the_legend_hides_in_picture_and_list(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    view.legend.kinds["Memory"].value = False
    view.legend.relations["DEPENDS_ON"].value = False
    assert (view.light.hidden_kinds, view.light.hidden_relations) == ({"Memory"}, {"DEPENDS_ON"})
    assert listed(view) == drawn(view) - {"b0"}
    view.state.selection = "b0"
    assert view.status.text == "A note is not drawn: the legend hides the kind Memory"
    view.legend.kinds["Memory"].value = True
    assert listed(view) == drawn(view)


def test_hops_around_the_selection(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain)
    view.around.click()
    assert view.status.text == "Select a fact first: hops are counted from it"
    view.state.selection = "a5"
    view.around.click()
    assert drawn(view) == {"a4", "a5", "a6"}
    view.hops.value = 3
    assert drawn(view) == {f"a{n}" for n in range(2, 9)}
    view.hops.value = 0
    assert drawn(view) == {"a5"}
    assert "Not drawn: 10 of 11 facts" in Tags(shown(view)).text
    view.whole.click()
    assert len(drawn(view)) == 11


def test_a_center_from_the_beginning(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain, center="a0", hops=1)
    assert (view.selection, drawn(view)) == ("a0", {"a0", "a1", "b0"})


def test_neighbours_are_added(chain: Graph, make: Callable[..., GraphView]) -> None:
    view = make(chain, center="a5", hops=0)
    view.expand.click()
    assert (drawn(view), view.status.text) == ({"a4", "a5", "a6"}, "2 added")
    kept = places(view)
    view.canvas.on_open("a6")  # a double-click
    assert drawn(view) == {"a4", "a5", "a6", "a7"}
    assert {key: places(view)[key] for key in kept} == kept
    view.canvas.on_open("a6")
    assert view.status.text == "All its neighbours are drawn"
    view.clear.click()
    view.expand.click()
    assert view.status.text == "Select a fact first: its neighbours are added"


def test_a_new_note_does_not_reshuffle_the_picture(acme: Workspace, make: Callable[..., GraphView]) -> None:
    view = make(acme)
    before = places(view)
    note = acme.session("Tuesday").note("The Checkout API is slow again")
    view.again.click()
    assert note.id in drawn(view) & listed(view)
    assert {key: places(view)[key] for key in before} == before
