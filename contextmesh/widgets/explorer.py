"""Explorer: a workspace as one view, in which graph, questions, evidence, notes and history follow each other."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from contextmesh.investigation.result import Investigation
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets.asking import AskPanel
from contextmesh.widgets.evidence import EvidenceTable
from contextmesh.widgets.graphview import GraphView
from contextmesh.widgets.history import HistoryPanel
from contextmesh.widgets.memory import MemoryPanel
from contextmesh.widgets.panel import Panel, bar, button
from contextmesh.widgets.runs import RunPanel
from contextmesh.widgets.state import MAIN, State

if TYPE_CHECKING:
    import pandas as pd

TABS = ("Graph", "Ask", "Evidence", "Notes", "History", "Runs")
OF_A_RUN = ("Evidence", "Runs")
EVIDENCE = ("id", "kind", "label", "text", "source", "reasons")
STYLE = """<style>
.cm-explorer.cm-explorer .jupyter-widget-tab.jupyter-widget-tab > .lm-TabBar .lm-TabBar-tab {
  color: var(--jp-ui-font-color1, inherit);}
</style>"""
NOTHING_ASKED = "Nothing is asked yet. Ask in the tab beside, or open an earlier question there."


class Explorer(Panel):
    """Explore a workspace: the graph in 3D and as a list, questions, evidence, notes, history and completed runs.

    All of it shows one state: what is selected, when, on which branch, in which investigation. Assign to
    `explorer.state`, or read it; what was found comes back as plain data and tables.

    Args:
        ws: the workspace, or one of its branches.
        investigation: the run, or its id, whose evidence and paths are lit up at first.
        session: label of the session in which questions are asked and notes are saved.
        state: what it shares with other views.
        most: objects to draw at most, 1 to 2,000.

    Example:
        >>> explorer = Explorer(ws)  # doctest: +SKIP
        >>> explorer.selection = "checkout-api"  # doctest: +SKIP
        >>> explorer.evidence  # doctest: +SKIP
    """

    def __init__(
        self,
        ws: Workspace,
        *,
        investigation: Investigation | str | None = None,
        session: str = "Notebook",
        state: State | None = None,
        most: int = 300,
    ) -> None:
        super().__init__(state)
        self._root = ws
        self._workspace = self._on(self.state.branch)
        self._session = session
        if investigation is not None:
            known = investigation if isinstance(investigation, str) else investigation.run_id
            self.state.investigation = self._workspace.investigation(known).run_id
        self.graph = GraphView(ws, state=self.state, most=most)
        self._places = [widgets.VBox() for _ in TABS]
        self._places[0].children = [self.graph]
        self._panels: dict[str, Panel] = {}
        self._makers: dict[str, Callable[[], Panel]] = {
            "Ask": lambda: AskPanel(self._workspace, session=self._session, state=self.state),
            "Evidence": lambda: EvidenceTable(self._investigation(), state=self.state),
            "Notes": lambda: MemoryPanel(self._workspace, state=self.state),
            "History": lambda: HistoryPanel(self._workspace, state=self.state),
            "Runs": lambda: RunPanel(self._investigation(), state=self.state),
        }
        self._branches = bar()
        self.tabs = widgets.Tab(self._places, titles=TABS, selected_index=0)
        self.tabs.observe(self._on_tab, "selected_index")
        self.children = [widgets.HTML(STYLE), self._heading, self._branches, self.tabs, self.status]
        self.add_class("cm-explorer")
        self.state.observe(self._on_branch, "branch")
        self.state.observe(self._on_run, "investigation")
        self.state.observe(self._on_position, "position")
        self._title()
        self._list_branches()

    def __repr__(self) -> str:
        return f"<Explorer {self._root.name!r}: {', '.join(self._where())}>"

    def _where(self) -> list[str]:
        state, graph = self.state, self._workspace.graph
        newest = f"position {graph.position:,}, read-only" if graph.read_only else "newest"
        when = newest if state.position is None else f"position {state.position:,}"
        found = [f"branch {graph.log.branch_name or MAIN!r}", when, state.investigation, state.selection]
        return [str(part) for part in found if part]

    def _on(self, branch: str) -> Workspace:
        """Return what a branch's name in the state stands for: `main` is the workspace that is explored."""
        return self._root if branch == MAIN else self._root.branch(branch)

    # what comes back

    @property
    def selection(self) -> str | None:
        """Id of the selected object, or None; assign to select another one."""
        return self.state.selection

    @selection.setter
    def selection(self, object_id: str | None) -> None:
        self.state.selection = object_id

    @property
    def evidence(self) -> "pd.DataFrame":
        """The facts of the open investigation: id, kind, label, text, source, reasons; no rows where none is open."""
        if self.state.investigation is None:
            import pandas as pd  # noqa: PLC0415 - a table is seldom what a picture is opened for

            return pd.DataFrame(columns=list(EVIDENCE))
        return self._investigation().evidence

    def _investigation(self) -> Investigation:
        return self._workspace.investigation(str(self.state.investigation))

    # showing

    def refresh(self) -> None:
        """Read the workspace again and show it."""
        self._title()
        self._list_branches()
        self.graph.refresh()
        for panel in self._panels.values():
            panel.refresh()

    def _title(self) -> None:
        self._head(self._root.name, " · ".join(self._where()))

    def _list_branches(self) -> None:
        home = self._root.graph.log.branch_name or MAIN
        names = {MAIN: home} | {name: name for name in self._root.branches()["branch"] if name != home}
        for old in self._branches.children:
            old.close()
        shown = [self._branch_button(*item) for item in names.items()] if len(names) > 1 else []
        self._branches.children = [widgets.HTML("Branch"), *shown] if shown else []

    def _branch_button(self, name: str, label: str) -> widgets.Button:
        def press(_button: Any) -> None:
            with self.status.catching("open the branch"):
                self.state.branch = name

        chosen = name == self.state.branch
        return button(label, f"Show the branch {label}", press, "primary" if chosen else "")

    def _on_tab(self, _change: Any) -> None:
        with self.status.catching("open the tab"):
            self._fill(TABS[self.tabs.selected_index or 0])

    def _fill(self, tab: str) -> None:
        """Make the panel of a tab when it is first looked at."""
        if tab in self._panels or tab not in self._makers:
            return
        place = self._places[TABS.index(tab)]
        if tab in OF_A_RUN and self.state.investigation is None:
            place.children = [widgets.HTML(f"<p>{NOTHING_ASKED}</p>")]
            return
        self._panels[tab] = self._makers[tab]()
        place.children = [self._panels[tab]]

    def _empty(self, tabs: tuple[str, ...]) -> None:
        """Close the panels of these tabs, and make the one that shows anew."""
        for tab in tabs:
            place = self._places[TABS.index(tab)]
            place.children = ()
            if panel := self._panels.pop(tab, None):
                panel.close()
        self._fill(TABS[self.tabs.selected_index or 0])

    def _select(self, _object_id: str | None) -> None:
        self._title()

    def _on_position(self, _change: Any) -> None:
        with self.status.catching("go through time"):
            self._title()

    def _on_run(self, _change: Any) -> None:
        with self.status.catching("open the investigation"):
            self._title()
            self._empty(OF_A_RUN)

    def _on_branch(self, _change: Any) -> None:
        with self.status.catching("open the branch"):
            self._workspace = self._on(self.state.branch)
            self._forget_a_missing_run()
            self._title()
            self._list_branches()
            self._empty(tuple(self._makers))

    def _forget_a_missing_run(self) -> None:
        """Close an investigation that the branch does not hold: it was forked before that was asked."""
        run = self.state.investigation
        if run is not None and not self._has(run):
            self.state.investigation = None
            self.status.say(f"{run} is not on this branch, so it was closed")

    def _has(self, run: str | None) -> bool:
        row = None if run is None else self._workspace.graph.get_object(run)
        return row is not None and row.type == "Run"

    # without a kernel

    def to_html(self) -> str:  # noqa: D102
        answer = self._investigation().to_html() if self._has(self.state.investigation) else ""  # it may be removed
        return f"{self._heading.value}{self.graph.to_html()}{answer}"

    def save(self, path: Any) -> Any:
        """Write the picture to a file; see `GraphView.save`."""
        return self.graph.save(path)

    def close(self) -> None:
        """Take everything off the screen and free what it holds in the browser; closing twice is fine."""
        if hasattr(self, "tabs"):
            with suppress(ValueError):  # it was closed before
                self.state.unobserve(self._on_branch, "branch")
                self.state.unobserve(self._on_run, "investigation")
                self.state.unobserve(self._on_position, "position")
            for panel in (self.graph, *self._panels.values()):
                panel.close()
        super().close()
