"""Pipeline: the four stages of a run as cards that run one at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import ipywidgets as widgets

from contextmesh.errors import ContextMeshError, UsageError
from contextmesh.investigation.cards import STYLE, Card, StageStep
from contextmesh.investigation.records import record_id
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.vocabulary import STAGES
from contextmesh.widgets.panel import Panel, bar, button
from contextmesh.widgets.state import State

COLUMNS = "repeat(auto-fit, minmax(min(100%, 380px), 1fr))"
GRID = f"display: grid; grid-template-columns: {COLUMNS}; gap: 10px; align-items: stretch; margin: 6px 0;"


class Pipeline(Panel):
    """Show the four stages of an investigation, and run them one at a time.

    Each card shows the event that the stage reacts to, what it saw, the record that it saved, what it changed in the
    graph, and the Cypher that ran. A stage hands nothing to the next but its record: `Remove the handoff` removes that
    record from the graph, and the next `Step` shows that the workflow stops there, and why.

    Args:
        inv: the investigation; make it with `investigate(question, run=False)` to run its stages here.
        state: what it shares with other views.

    Example:
        >>> Pipeline(ws.session("Class").investigate("Who owns it?", run=False))  # doctest: +SKIP
        <Pipeline Run#1: 0 of 4 stages done>
    """

    def __init__(self, inv: Investigation, *, state: State | None = None) -> None:
        super().__init__(state)
        self._investigation = inv
        self._cards: list[Card] = []
        self._shown = [widgets.HTML() for _ in STAGES]
        self._step = button("Step", "Run the next stage", self._on_step, "primary")
        self._run_all = button("Run all", "Run all stages that are left, one after the other", self._on_run)
        self._remove = button("Remove the handoff", "Remove the record that the next stage reads", self._on_remove)
        self._confirm = button("Yes, remove it", "Remove the record from the graph", self._on_confirm, "danger")
        self._keep = button("Keep it", "Change nothing", self._on_keep)
        self._asking = bar(self._confirm, self._keep)
        self._asking.layout.display = "none"
        self._refresh = button("Refresh", "Show what other processes did", self._on_refresh)
        grid = widgets.Layout(grid_template_columns=COLUMNS, grid_gap="10px", align_items="stretch", margin="6px 0")
        cards = widgets.GridBox(self._shown, layout=grid)
        self.children = [
            self._heading,
            bar(self._step, self._run_all, self._remove, self._asking, self._refresh),
            self.status,
            cards,
        ]
        inv.cards.watch(self.refresh)
        self.refresh()

    def __repr__(self) -> str:
        return f"<Pipeline {self._investigation.run_id}: {self._done} of {len(STAGES)} stages done>"

    @property
    def _done(self) -> int:
        return sum(card.trace.state == "done" for card in self._cards)

    @property
    def cards(self) -> list[Card]:
        """The cards as they are shown, in the order of the stages."""
        return list(self._cards)

    # running

    def step(self) -> StageStep | None:
        """Run the next stage, also one that stopped; return None if there is none.

        Raises:
            HandoffError: the record that it should read is gone or unreadable; nothing was written.
        """
        return self._investigation.step(retry=True)

    def run(self) -> list[StageStep]:
        """Run all stages that are left, one after the other; return their steps."""
        steps = []
        while step := self.step():
            steps.append(step)
        return steps

    def remove_handoff(self) -> str:
        """Remove the record that the next stage reads, and return its id.

        Raises:
            UsageError: there is none, since no stage has run yet, all have, or it has been removed already.
        """
        record = self._handoff()
        run = self._investigation.run_id
        self._investigation.graph.remove_object(record, actor="user", frame_id=run)
        self.refresh()
        return record

    def _handoff(self) -> str:
        """Return the id of the record that the next stage reads, as the graph stands now."""
        self.refresh()
        at = self._done
        if not 0 < at < len(STAGES):
            why = "every stage has read its record" if at else "no stage has saved a record yet; step first"
            msg = f"there is no handoff to remove: {why}"
            raise UsageError(msg)
        last = self._cards[at - 1]
        record = record_id(self._investigation.run_id, last.trace.stage)
        if last.trace.record is None:
            msg = f"the handoff {record} has been removed already; step, and see the workflow stop"
            raise UsageError(msg)
        return record

    # showing

    def refresh(self) -> None:
        """Read the run again from the log and the graph, and show it."""
        self._cards = self._investigation.cards.read()
        for shown, card in zip(self._shown, self._cards, strict=True):
            shown.value = f"{STYLE}{card.to_html()}"
        self._head(*self._titles())

    def _titles(self) -> tuple[str, ...]:
        inv = self._investigation
        where = next((card for card in self._cards if card.trace.state != "done"), None)
        told = "all four stages have run"
        if where is not None:
            told = f"{'stopped at' if where.trace.state == 'stopped' else 'next'}: the {where.trace.stage}"
        how = "A stage hands nothing to the next but the record that it saves in the graph."
        return inv.question, f"{inv.run_id} · {self._done} of {len(STAGES)} stages done · {told}", how

    def to_html(self) -> str:  # noqa: D102
        cards = "".join(f"<div>{card.to_html()}</div>" for card in self._cards)
        return f'{STYLE}{self._heading.value}<div style="{escape(GRID)}">{cards}</div>'

    def _on_selection(self, change: Any) -> None:
        """Show nothing of what is selected elsewhere: the status line goes on to say what the stages did."""

    def close(self) -> None:  # noqa: D102
        if hasattr(self, "_investigation"):
            self._investigation.cards.unwatch(self.refresh)
        super().close()

    # the buttons

    def _on_step(self, _button: Any) -> None:
        with self._running("step"):
            self._told(self.step())

    def _on_run(self, _button: Any) -> None:
        with self._running("run"):
            steps = self.run()
            self._told(steps[-1] if steps else None)

    @contextmanager
    def _running(self, what: str) -> Iterator[None]:
        """Show what goes wrong; where a stage stopped, say which, and why."""
        with self.status.catching(what):
            self._ask(None)
            try:
                yield
            except ContextMeshError as error:
                stopped = next((card.trace.stage for card in self._cards if card.trace.error), None)
                if stopped is None:
                    raise
                self.status.say(f"The workflow stopped at the {stopped}: {error}", failed=True)

    def _told(self, step: StageStep | None) -> None:
        left = [card.trace.stage for card in self._cards if card.trace.state != "done"]
        then = f"Next: the {left[0]}." if left else "All four stages have run."
        if step is None:
            self.status.say(then if not left else f"Nothing is pending here. {then}")
        elif step.status == "completed":
            self.status.say(f"The {step.behavior} has run and saved its record. {then}")
        else:
            self.status.say(f"The {step.behavior} has run in another process meanwhile. {then}")

    def _on_remove(self, _button: Any) -> None:
        with self.status.catching("remove"):
            self._ask(self._handoff())

    def _on_confirm(self, _button: Any) -> None:
        with self.status.catching("remove"):
            self._ask(None)
            record = self.remove_handoff()
            self._step.focus()  # the button that was pressed has gone, and the keyboard would be nowhere
            self.status.say(f"{record} is gone from the graph; the log still tells of it. Step, and see what happens.")

    def _on_keep(self, _button: Any) -> None:
        with self.status.catching("keep"):
            self._ask(None)
            self._remove.focus()
            self.status.say("Nothing was removed.")

    def _on_refresh(self, _button: Any) -> None:
        with self.status.catching("refresh"):
            self.refresh()

    def _ask(self, record: str | None) -> None:
        """Ask whether to remove a record, or stop asking."""
        self._asking.layout.display = "none" if record is None else ""
        if record is not None:
            self._confirm.description = f"Yes, remove {record}"
            self.status.say(f"Remove {record}, the record that the next stage reads? Press the red button to do it.")
