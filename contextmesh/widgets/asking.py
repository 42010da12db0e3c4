"""Asking: a form for a question, the stages that answer it as cards, and the answer. No picture is needed for it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import ipywidgets as widgets

from contextmesh.errors import UsageError
from contextmesh.investigation.inputs import spaced
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets.listing import FactTable
from contextmesh.widgets.panel import Panel, bar, button, rows_of
from contextmesh.widgets.pipeline import Pipeline
from contextmesh.widgets.state import State

COLUMNS = {"question": 5.0, "session": 1.6, "run": 1.0}
EARLIER = (
    "MATCH (r:Run) OPTIONAL MATCH (s:Session {id: r.session}) "
    "RETURN r.id AS id, r.question AS question, coalesce(s.label, r.session) AS session "
    "ORDER BY r.updated_at DESC, r.id DESC LIMIT 200"
)
PAGE_ROWS = 5
DOUBLE_CLICK_S = 0.7  # after an answer; the same question again within it was not meant


class AskPanel(Panel):
    """Ask a question, run its four stages at once or one at a time, and read the answer.

    Args:
        ws: the workspace.
        session: label of the session in which questions are asked.
        state: what it shares with other views; it says which investigation is open.

    Example:
        >>> AskPanel(ws, session="Tuesday")  # doctest: +SKIP
        <AskPanel 'acmeshop': Run#1>
    """

    def __init__(self, ws: Workspace, *, session: str = "Notebook", state: State | None = None) -> None:
        super().__init__(state)
        self._workspace = ws
        self._opened: Investigation | None = None
        self._asked: tuple[str, str] | None = None
        self._answered_s = 0.0
        self.question = widgets.Textarea(
            continuous_update=False,  # else a click on Ask overtakes the last letters
            placeholder="Which earlier change might explain this, who owns the system, what did we learn before?",
            layout=widgets.Layout(width="100%", max_width="720px", height="64px", margin="2px 0"),
        )
        self.session = widgets.Text(
            value=session,
            continuous_update=False,
            description="Session",
            style={"description_width": "initial"},
            layout=widgets.Layout(width="100%", max_width="360px"),
        )
        self.ask = button("Ask", "Run all four stages, and show the answer", self._on_ask, "primary")
        self.begin = button("Ask step by step", "Run no stage yet: each one by its button", self._on_begin)
        self.earlier = FactTable(
            COLUMNS, on_pick=self._open, title="Questions asked before", page_rows=PAGE_ROWS, status=self.status
        )
        self.pipeline: Pipeline | None = None
        self._stages = widgets.VBox()
        self._answer = widgets.HTML()
        form = [self.question, self.session, bar(self.ask, self.begin)]
        self.children = [self._heading, *form, self.status, self._stages, self._answer, self.earlier]
        self.state.observe(self._on_investigation, "investigation")
        self.refresh()

    def __repr__(self) -> str:
        return f"<AskPanel {self._workspace.name!r}: {self.state.investigation or 'nothing asked yet'}>"

    def refresh(self) -> None:  # noqa: D102
        told = "The answer rests on what the graph holds, and never states a cause."
        self._head("Ask", self._workspace.name, told)
        rows = self._workspace.cypher(EARLIER)
        self.earlier.show({**row, "run": row["id"]} for row in rows_of(rows))
        self.earlier.selected = self.state.investigation
        self._show(self.state.investigation)

    def _show(self, run: str | None) -> None:
        if run is None:
            self._let_go()
        elif self._opened is None or self._opened.run_id != run:
            self._let_go()
            self._show_answer()  # none, if the next one cannot be found
            self._opened = self._workspace.investigation(run)
            self.pipeline = Pipeline(self._opened, state=self.state)
            self._stages.children = [self.pipeline]
            self._opened.cards.watch(self._follow_answer)
        self._show_answer()

    def _let_go(self) -> None:
        """Close the cards of the investigation that was open."""
        if self._opened is not None and self.pipeline is not None:
            self._opened.cards.unwatch(self._follow_answer)
            self._stages.children = ()
            self.pipeline.close()
        self._opened = self.pipeline = None

    def _show_answer(self) -> None:
        self._answer.value = self._opened.refresh().to_html() if self._opened else ""

    def _follow_answer(self) -> None:
        with self.status.catching("show the answer"):
            self._show_answer()

    # asking

    def investigate(self, question: str, session: str, *, run: bool = True) -> Investigation:
        """Ask a question in a session, and open its investigation here and in every view that shares the state.

        Raises:
            UsageError: an empty or overlong question, or a session without a label.
        """
        if not spaced(session):
            msg = "the session has no label; say in which sitting this is asked, such as Tuesday"
            raise UsageError(msg)
        inv = self._workspace.session(session).investigate(question, run=run)
        self.state.investigation = inv.run_id
        return inv

    def _on_ask(self, _button: Any) -> None:
        with self.status.catching("ask"), self._once() as is_first:
            if is_first:
                inv = self.investigate(self.question.value, self.session.value)
                is_done = inv.status == "completed"
                told = f"is {inv.status}" if is_done else f"is not completed: {inv.status}"
                self.status.say(f"{inv.run_id} {told}.", failed=not is_done)

    def _on_begin(self, _button: Any) -> None:
        with self.status.catching("ask"), self._once() as is_first:
            if is_first:
                inv = self.investigate(self.question.value, self.session.value, run=False)
                self.status.say(f"{inv.run_id} is saved; run its stages with Step.")

    @contextmanager
    def _once(self) -> Iterator[bool]:
        """Tell a press from the second half of a double click, which waited here while the first was worked on."""
        asked = self.question.value, self.session.value
        is_first = asked != self._asked or time.monotonic() > self._answered_s + DOUBLE_CLICK_S
        if not is_first:
            self.status.say(self.status.text)  # what the first half came to
        yield is_first
        self._asked, self._answered_s = asked, time.monotonic()

    def _open(self, run: str) -> None:
        self.state.investigation = run

    def _on_investigation(self, _change: Any) -> None:
        with self.status.catching("open the investigation"):
            self.refresh()

    def to_html(self) -> str:  # noqa: D102
        return self._opened.to_html() if self._opened else f"{self._heading.value}{self.earlier.to_html()}"

    def close(self) -> None:  # noqa: D102
        if hasattr(self, "earlier"):
            with suppress(ValueError):  # it was closed before
                self.state.unobserve(self._on_investigation, "investigation")
            self._let_go()
            self.earlier.close()
        super().close()
