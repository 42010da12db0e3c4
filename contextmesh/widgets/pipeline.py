"""Pipeline: the four stages of a run as cards that run one at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

import ipywidgets as widgets

from contextmesh.errors import ContextMeshError, UsageError
from contextmesh.investigation.cards import STYLE, Card
from contextmesh.investigation.handoff import put_back, take_away
from contextmesh.investigation.records import record_id
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.steps import StageStep
from contextmesh.investigation.vocabulary import STAGES
from contextmesh.widgets.buttons import Turns
from contextmesh.widgets.panel import Panel, bar, button
from contextmesh.widgets.state import State

REMOVE, PUT_BACK = "Remove the handoff", "Put it back"
TOOLTIPS = {
    REMOVE: "Remove the record that the next stage reads; the same button puts it back",
    PUT_BACK: "Put back what was removed, as the log tells it: the same id, contents and relations",
}
COLUMNS = "repeat(auto-fit, minmax(min(100%, 380px), 1fr))"
GRID = f"display: grid; grid-template-columns: {COLUMNS}; gap: 10px; align-items: stretch; margin: 6px 0;"


class Pipeline(Panel):
    """Show the four stages of an investigation, and run them one at a time.

    Each card shows the event that the stage reacts to, what it saw, the record that it saved, what it changed in the
    graph, and the Cypher that ran. A stage hands nothing to the next but its record: `Remove the handoff` removes that
    record from the graph, the next `Step` shows that the workflow stops there, and why, and `Put it back` mends it.
    One press runs one stage: what is pressed while a stage runs does nothing.

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
        self._step = button("Step", "Run the next stage", self._pressing("step", self._on_step), "primary")
        all_left = "Run all stages that are left, one after the other"
        self._run_all = button("Run all", all_left, self._pressing("run", self._on_run))
        self._handoff = button(REMOVE, TOOLTIPS[REMOVE], self._pressing("change the handoff", self._on_handoff))
        self._refresh = button("Refresh", "Show what other processes did", self._pressing("refresh", self.refresh))
        self._controls = bar(self._step, self._run_all, self._handoff, self._refresh)
        self._turns = Turns(self._controls)
        grid = widgets.Layout(grid_template_columns=COLUMNS, grid_gap="10px", align_items="stretch", margin="6px 0")
        self.children = [self._heading, self._controls, self.status, widgets.GridBox(self._shown, layout=grid)]
        inv.cards.watch(self.follow)
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

    @property
    def _removed(self) -> list[str]:
        """Ids of the records that were saved and removed since, in the order of the stages."""
        return [card.trace.saved[-1] for card in self._cards if card.trace.is_lost]

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
        """Remove the record that the next stage reads, and return its id; `put_back` undoes it.

        Raises:
            UsageError: there is none, since no stage has run yet, all have, or it has been removed already.
        """
        record = self._next_handoff()
        take_away(self._investigation.graph, self._investigation.run_id, record)
        self.refresh()
        return record

    def put_back(self) -> list[str]:
        """Put back the run's records that were removed, as the log tells them, and return their ids.

        Each has its id, contents and relations again, and triggers nothing a second time. The log keeps both events,
        and the record's provenance names the one that put it back.

        Raises:
            UsageError: none has been removed.
        """
        self.refresh()
        records = self._removed
        if not records:
            msg = f"there is nothing to put back: every record that {self._investigation.run_id} saved is in the graph"
            raise UsageError(msg)
        for record in records:
            put_back(self._investigation.graph, self._investigation.run_id, record)
        self.refresh()
        return records

    def _next_handoff(self) -> str:
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
        self._handoff.description = PUT_BACK if self._removed else REMOVE
        self._handoff.tooltip = TOOLTIPS[self._handoff.description]
        self._head(*self._titles())

    def _titles(self) -> tuple[str, ...]:
        inv = self._investigation
        where = next((card for card in self._cards if card.trace.state != "done"), None)
        told = "all four stages have run"
        if where is not None:
            told = f"{'stopped at' if where.trace.state == 'stopped' else 'next'}: the {where.trace.stage}"
        if self._removed:
            told = f"{told} · removed: {', '.join(self._removed)}"
        how = "A stage hands nothing to the next but the record that it saves in the graph."
        return inv.question, f"{inv.run_id} · {self._done} of {len(STAGES)} stages done · {told}", how

    def to_html(self) -> str:  # noqa: D102
        cards = "".join(f"<div>{card.to_html()}</div>" for card in self._cards)
        return f'{STYLE}{self._heading.value}<div style="{escape(GRID)}">{cards}</div>'

    def _on_selection(self, change: Any) -> None:
        """Show nothing of what is selected elsewhere: the status line goes on to say what the stages did."""

    def close(self) -> None:  # noqa: D102
        if hasattr(self, "_investigation"):
            self._investigation.cards.unwatch(self.follow)
        super().close()

    # the buttons

    def _pressing(self, what: str, act: Callable[[], None]) -> Callable[[Any], None]:
        """Return what a button calls: it acts unless another one is still at work, and shows what goes wrong."""

        def press(pressed: Any) -> None:
            with self._turns.turn(pressed) as is_mine:
                if is_mine:
                    with self.status.catching(what):
                        act()

        return press

    def _on_step(self) -> None:
        with self._naming_what_stops():
            self._told(self.step())

    def _on_run(self) -> None:
        with self._naming_what_stops():
            steps = self.run()
            self._told(steps[-1] if steps else None)

    @contextmanager
    def _naming_what_stops(self) -> Iterator[None]:
        """Say which stage runs; where one stops, say which, and why."""
        stage = next((card.trace.stage for card in self._cards if card.trace.state != "done"), None)
        self.status.say(f"The {stage} is running …" if stage else "")
        try:
            yield
        except ContextMeshError as error:
            stopped = next((card.trace.stage for card in self._cards if card.trace.error), None)
            if stopped is None:
                raise
            mend = f", or press {PUT_BACK} and step once more" if self._removed else ""
            self.status.say(f"The workflow stopped at the {stopped}: {error}{mend}", failed=True)

    def _told(self, step: StageStep | None) -> None:
        left = [card.trace.stage for card in self._cards if card.trace.state != "done"]
        then = f"Next: the {left[0]}." if left else "All four stages have run."
        if step is None:
            self.status.say(then if not left else f"Nothing is pending here. {then}")
        elif step.status == "completed":
            self.status.say(f"The {step.behavior} has run and saved its record. {then}")
        else:
            self.status.say(f"The {step.behavior} has run in another process meanwhile. {then}")

    def _on_handoff(self) -> None:
        if self._handoff.description == REMOVE:
            record = self.remove_handoff()
            self.status.say(f"{record} is gone from the graph; the log still tells of it. Step, and see what happens.")
        else:
            records = ", ".join(self.put_back())
            self.status.say(f"{records}: back in the graph with the same contents and relations. Step, and it goes on.")
