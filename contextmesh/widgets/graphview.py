"""GraphView: the persisted graph in 3D, the list of the same facts beside it, and all that steers the two."""

from contextlib import suppress
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from contextmesh.core.diff import Diff
from contextmesh.core.graph import Graph
from contextmesh.errors import UsageError
from contextmesh.investigation.chosen import MAX_HOPS
from contextmesh.investigation.drawing import notes
from contextmesh.investigation.light import Light
from contextmesh.investigation.picture import Camera, headline, to_page, to_svg, to_table
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.scene import Scene
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets.buttons import buttons
from contextmesh.widgets.details import DetailPanel
from contextmesh.widgets.finder import Finder
from contextmesh.widgets.graph3d import Canvas
from contextmesh.widgets.legend import Legend
from contextmesh.widgets.listing import FactTable
from contextmesh.widgets.panel import Panel, bar
from contextmesh.widgets.saving import write_whole
from contextmesh.widgets.sight import Sight, rows_of
from contextmesh.widgets.state import MAIN, State
from contextmesh.widgets.timebar import TimeBar

WIDTH, HEIGHT = 620, 470  # of the 3D picture, in pixels
COLUMNS = {"label": 3.2, "kind": 1.9, "text": 2.7, "relations": 2.0}
PAGE_ROWS = 12
FOLLOWED = ["position", "branch", "investigation"]
NEARER = 1.5

# Pictures are drawn for light paper. In a dark theme the browser turns their lightness round and keeps the hues, in the
# picture and in its legend alike, at once and without asking Python.
DARK = ('body[data-jp-theme-light="false"]', "body.vscode-dark", "html[theme=dark]")
TURNED = "filter: invert(0.93) hue-rotate(180deg);"
STYLE = f"""<style>
{", ".join(f"{dark} .cm-graph .cm-canvas canvas" for dark in DARK)} {{{TURNED}}}
{", ".join(f"{dark} .cm-graph .cm-legend span::before" for dark in DARK)} {{{TURNED}}}
.cm-graph .cm-canvas canvas {{outline: 1px solid rgba(128, 128, 128, 0.5); outline-offset: -1px;}}
.cm-note {{margin: 0; line-height: 1.4; font-size: 13px; color: var(--jp-content-font-color2, inherit);}}
</style>"""


class GraphView(Panel):
    """Show a graph in 3D and as a list, and find, select, filter and go back in time in both.

    Of a large graph it draws the hubs and what lies beside them, or what lies around a center, and says how much is not
    drawn. The arrangement is visual: no distance and no size is a relevance score.

    Args:
        source: a workspace, or a graph.
        state: what it shares with other views.
        investigation: light up the evidence and the paths of this one, and grey the rest.
        diff: show what a branch added, changed and removed: `ws.diff(branch)`, with the branch as the source.
        center: id of the object around which to draw.
        hops: relations to walk from the center, 0 to 3.
        most: objects to draw at most, 1 to 2,000.

    Example:
        >>> graph = Graph()
        >>> api = graph.add_object("Entity", {"label": "Checkout API"}, id="checkout-api")
        >>> view = GraphView(graph)
        >>> view
        <GraphView: 1 object, 0 relations>
        >>> view.close()
    """

    def __init__(
        self,
        source: Workspace | Graph,
        *,
        state: State | None = None,
        investigation: Investigation | None = None,
        diff: Diff | None = None,
        center: str | None = None,
        hops: int = 1,
        most: int = 300,
    ) -> None:
        super().__init__(state)
        self._root = source
        self._clicked = False
        self._sight = Sight(source, center=center, hops=hops, most=most)
        if self.state.branch != MAIN:
            self._sight.of(*self._branch())
        if diff is not None:
            self._sight.compare(diff)
        self._begin(investigation)
        self._sight.draw()
        self._make()
        if center is not None and self.state.selection is None:
            self.state.selection = center
        self._show()
        self.state.observe(self._on_state, FOLLOWED)

    def _begin(self, investigation: Investigation | None) -> None:
        """Take over what the state says already, and tell it what is new."""
        if investigation is not None:
            self._sight.light_up(investigation)
            self.state.investigation = investigation.run_id
        elif self.state.investigation is not None:
            self._sight.light_up(self._investigation(self.state.investigation))
        self._sight.go(self.state.position)

    def _make(self) -> None:
        self.legend = Legend(on_change=self._relight, status=self.status)
        self.finder = Finder(self._sight.search, on_pick=self._pick, on_hits=self._relight, status=self.status)
        self.canvas = Canvas(
            self.scene,
            self.light,
            width=WIDTH,
            height=HEIGHT,
            on_pick=self._on_click,
            on_open=self._expand,
            status=self.status,
        )
        self.table = FactTable(COLUMNS, on_pick=self._pick, title="Facts", page_rows=PAGE_ROWS, status=self.status)
        self.time = TimeBar(self._sight.graph, on_move=self._move, status=self.status)
        self.details = DetailPanel(self._sight.source, state=self.state)
        self._note = widgets.HTML()
        drawn = [self.canvas, self._camera_bar(), self._part_bar()]
        left = widgets.VBox(drawn, layout=widgets.Layout(flex=f"0 1 {WIDTH}px", min_width="0"))
        right = widgets.VBox([self.table], layout=widgets.Layout(flex="1 1 400px", min_width="0"))
        wrapped = widgets.Layout(flex_flow="row wrap", grid_gap="8px 16px", align_items="flex-start")
        both = widgets.HBox([left, right], layout=wrapped)
        above = [widgets.HTML(STYLE), self.finder, both]
        self.children = [*above, self.legend, self.time, self._note, self.status, self.details]
        self.add_class("cm-graph")

    def _camera_bar(self) -> widgets.HBox:
        named = buttons(
            ("Fit", "Have all that is drawn in view", self._on_fit),
            ("Nearer", "Zoom in", lambda _: self._on_zoom(NEARER)),
            ("Further", "Zoom out", lambda _: self._on_zoom(1 / NEARER)),
            ("Clear", "Select nothing, and empty the search box", self._on_clear),
            ("Add neighbours", "Draw the selected fact's neighbours, too", self._on_expand),
            ("Refresh", "Read the graph again", self._on_refresh),
        )
        self.fit, self.nearer, self.further, self.clear, self.expand, self.again = named
        return bar(*named)

    def _part_bar(self) -> widgets.HBox:
        self.hops = widgets.IntSlider(
            value=self._sight.hops,
            max=MAX_HOPS,
            description="Hops",
            style={"description_width": "initial"},
            layout=widgets.Layout(width="190px"),
        )
        self.hops.observe(self._on_hops, "value")
        self.around, self.whole = buttons(
            ("Around the selection", "Draw what lies so many hops around it", self._on_around),
            ("Whole graph", "Draw the hubs and what lies beside them", self._on_whole),
        )
        return bar(self.around, self.hops, self.whole)

    def __repr__(self) -> str:
        return f"<GraphView: {str(self.scene).removeprefix('<Scene: ')}"

    @property
    def scene(self) -> Scene:
        """What is drawn."""
        return self._sight.scene

    @property
    def light(self) -> Light:
        """What of it is lit up, and what is hidden."""
        return replace(
            self._sight.light,
            selection=self.state.selection,
            hits=frozenset(self.finder.hits),
            hidden_kinds=self.legend.hidden_kinds,
            hidden_relations=self.legend.hidden_relations,
        )

    # showing

    def refresh(self) -> None:
        """Read the graph again and show it; what was drawn stays where it was."""
        self._sight.forget_moves()
        self._redraw()

    def _redraw(self) -> None:
        self._sight.draw()
        self._show()

    def _show(self) -> None:
        self.canvas.show(self.scene, self.light)
        self.legend.show(self.scene, self.light)
        self.time.show(self._sight.position)
        self.details.read(self._sight.facts)
        self._list()

    def _relight(self) -> None:
        self.canvas.light(self.light)
        self._list()

    def _list(self) -> None:
        self.table.show(rows_of(self.scene, self.light))
        self.table.selected = self.state.selection
        self._note.value = "".join(f'<p class="cm-note">{escape(line)}</p>' for line in notes(self.scene))

    # selecting

    def _select(self, object_id: str | None) -> None:
        clicked, self._clicked = self._clicked, False
        if object_id is not None and self.scene.index(object_id) is None and self._sight.facts.get_objects([object_id]):
            self._sight.include([object_id])
            self._redraw()
        else:
            self._relight()
        if object_id is not None and not clicked:
            self.canvas.fly_to(object_id)
        self._say_where(object_id)

    def _say_where(self, object_id: str | None) -> None:
        at = self.scene.index(object_id)
        if at is not None and self.scene.kinds[at] in self.legend.hidden_kinds:
            self.status.say(f"{self.scene.labels[at]} is not drawn: the legend hides the kind {self.scene.kinds[at]}")
        elif object_id is not None and at is None:
            self.status.say(f"{object_id} is not drawn: it is not there at this position")

    def _on_click(self, object_id: str) -> None:
        """Select what was clicked; it stays where it is, under the pointer."""
        self._clicked = object_id != self.state.selection
        self.state.selection = object_id

    def _on_clear(self, _button: Any) -> None:
        with self.status.catching("clearing"):
            self.finder.clear()
            self.state.selection = None

    # which part of the graph

    def _on_around(self, _button: Any) -> None:
        with self.status.catching("drawing around the selection"):
            self._draw_around()

    def _on_hops(self, _change: Any) -> None:
        with self.status.catching("hopping"):
            self._draw_around()

    def _draw_around(self) -> None:
        center = self.state.selection or self._sight.center
        if center is None:
            self.status.say("Select a fact first: hops are counted from it")
            return
        self._sight.around(center, self.hops.value)
        self._redraw()
        self.canvas.fit()

    def _on_whole(self, _button: Any) -> None:
        with self.status.catching("drawing the whole graph"):
            self._sight.whole()
            self._redraw()
            self.canvas.fit()

    def _on_expand(self, _button: Any) -> None:
        with self.status.catching("adding neighbours"):
            if self.state.selection is None:
                self.status.say("Select a fact first: its neighbours are added")
            else:
                self._expand(self.state.selection)

    def _expand(self, object_id: str) -> None:
        added, left = self._sight.expand(object_id)
        self._redraw()
        more = f"; {left:,} more are not drawn" if left else ""
        self.status.say(f"{added:,} added{more}" if added or left else "All its neighbours are drawn")

    def _on_zoom(self, factor: float) -> None:
        with self.status.catching("zooming"):
            self.canvas.zoom(factor)

    def _on_fit(self, _button: Any) -> None:
        with self.status.catching("fitting"):
            self.canvas.fit()

    def _on_refresh(self, _button: Any) -> None:
        with self.status.catching("refreshing"):
            self.refresh()

    # what it follows

    def _move(self, position: int | None) -> None:
        if position == self.state.position:
            self.refresh()
        else:
            self.state.position = position

    def _on_state(self, change: Any) -> None:
        with self.status.catching(f"following the {change.name}"):
            if change.name == "position":
                self._sight.go(self.state.position)
            elif change.name == "branch":
                self._follow_branch()
            else:
                self._sight.light_up(None)  # also where the next one cannot be found
                if self.state.investigation is not None:
                    self._sight.light_up(self._investigation(self.state.investigation))
            self._redraw()

    def _branch(self) -> tuple[Workspace, Diff | None]:
        """Return the branch that the state names, and how it differs from what the view was made of."""
        root, name = self._root, self.state.branch
        if not isinstance(root, Workspace):
            msg = f"a graph has no branch {name!r} to follow; make the view of a workspace"
            raise UsageError(msg)
        if name == MAIN:
            return root, None
        branch = root.branch(name)
        return branch, root.diff(branch)

    def _follow_branch(self) -> None:
        self._sight.of(*self._branch())
        self.state.position = None
        self.time.of(self._sight.graph)
        self.details.of(self._sight.source)

    def _investigation(self, run: str) -> Investigation:
        source = self._sight.source
        if not isinstance(source, Workspace):
            msg = f"a graph has no investigation {run!r} to follow; make the view of a workspace"
            raise UsageError(msg)
        return source.investigation(run)

    # without a kernel

    @property
    def _title(self) -> str:
        name = f"{self._root.name}: " if isinstance(self._root, Workspace) else ""
        when = "" if self._sight.position is None else f", as of position {self._sight.position:,}"
        return f"{name}{headline(self.scene)}{when}"

    @property
    def _camera(self) -> Camera:
        eye = self.canvas.eye
        return Camera(position=eye.position, target=eye.target)

    def to_svg(self) -> str:
        """Return the picture as SVG: from where it is seen now, with its labels and its legend."""
        return to_svg(self.scene, self.light, camera=self._camera, title=self._title)

    def to_html(self) -> str:
        """Return picture and list as an HTML fragment, every text escaped; it needs no kernel and no network."""
        told = escape(" ".join(notes(self.scene)))
        return f"<figure>{self.to_svg()}<figcaption>{told}</figcaption></figure>{to_table(self.scene)}"

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file, which appears complete or not at all, and return its path.

        Args:
            path: ending in `.svg` for the picture alone, or in `.html` for a page with picture and list.

        Raises:
            UsageError: another ending, a folder that does not exist, or a file that cannot be written.
        """
        path = Path(path)
        if path.suffix.lower() == ".svg":
            text = self.to_svg()
        elif path.suffix.lower() == ".html":
            text = to_page(self.scene, self.light, camera=self._camera, title=self._title)
        else:
            msg = f"{path.name!r} ends in {path.suffix or 'nothing'!r}; expected .svg or .html, such as 'graph.svg'"
            raise UsageError(msg)
        write_whole(path, text)
        return path

    def close(self) -> None:
        """Take the view off the screen and free all that it holds in the browser; closing twice is fine."""
        if hasattr(self, "details"):  # not if making it failed
            self.time.stop()
            with suppress(ValueError):  # it was closed before
                self.state.unobserve(self._on_state, FOLLOWED)
            for part in (self.finder, self.legend, self.table, self.details, self.canvas):
                part.close()
        super().close()
