"""TimeBar: a slider through the log, and a button that plays it."""

import asyncio
from collections.abc import Callable
from html import escape
from typing import Any

import ipywidgets as widgets

from contextmesh.core.graph import Graph
from contextmesh.investigation.words import one_line
from contextmesh.widgets.events import about
from contextmesh.widgets.panel import button
from contextmesh.widgets.status import StatusLine

STEPS, STEP_S = 60, 0.25  # of a whole log that is played


class TimeBar(widgets.VBox):
    """Go to any position of a log.

    Args:
        graph: whose log it is.
        on_move: called with the position that is to be shown, None for the newest.
        status: where to say what goes wrong.
    """

    def __init__(self, graph: Graph, *, on_move: Callable[[int | None], None], status: StatusLine) -> None:
        self._graph, self.on_move, self.status = graph, on_move, status
        self._playing: int | None = None  # events of a step
        self._runs = 0
        self.slider = widgets.IntSlider(
            value=0,
            min=0,
            max=0,
            description="Time",
            readout=False,
            style={"description_width": "initial"},
            layout=widgets.Layout(width="auto", flex="1 1 220px", min_width="160px"),
        )
        self.slider.observe(self._on_slide, "value")
        self.play = button("Play", "Show how the graph came about, from the first event or from here", self._on_play)
        self.newest = button("Newest", "Show the graph as it is now", self._on_newest)
        self._said = widgets.HTML()
        controls = widgets.Layout(flex_flow="row wrap", align_items="center")
        super().__init__([widgets.HBox([self.play, self.newest, self.slider], layout=controls), self._said])
        self.add_class("cm-timebar")
        self.show(None)

    def __repr__(self) -> str:
        return f"<TimeBar: position {self.slider.value:,} of {self.slider.max:,}>"

    def of(self, graph: Graph) -> None:
        """Go through the log of another graph."""
        self._graph = graph
        self.stop()
        self.show(None)

    def show(self, position: int | None) -> None:
        """Put the slider to a position, and say what happened there; this moves nothing else."""
        tip = len(self._graph.events)
        at = tip if position is None else min(position, tip)
        self.slider.unobserve(self._on_slide, "value")
        self.slider.max = tip  # before the value, and not with it: a browser would cut the value to the old range
        self.slider.value = at
        self.slider.observe(self._on_slide, "value")
        self._said.value = f'<span class="cm-list-page" role="status"><bdi>{escape(self._told(at, tip))}</bdi></span>'

    def _told(self, at: int, tip: int) -> str:
        if not at:
            return f"Position 0 of {tip:,}: nothing has happened yet" if tip else "Nothing has happened yet"
        event = self._graph.events[at - 1]
        when = event.timestamp[:16].replace("T", " ")
        where = f"As it was at position {at:,} of {tip:,}"
        if at == tip:  # a look into the past ends before now
            where = f"{'Read-only' if self._graph.read_only else 'Now'}, at position {at:,}"
        return one_line(f"{where}, {when} UTC: {event.type} {about(event)}", 160)

    def _on_slide(self, change: Any) -> None:
        with self.status.catching("going through time"):
            self.stop()
            self._go(change.new)

    def _on_newest(self, _button: Any) -> None:
        with self.status.catching("going to the newest"):
            self.stop()
            self.on_move(None)

    def _go(self, position: int) -> None:
        self.on_move(position if position < len(self._graph.events) else None)

    # playing

    @property
    def is_playing(self) -> bool:
        """Whether it moves by itself."""
        return self._playing is not None

    def _on_play(self, _button: Any) -> None:
        with self.status.catching("playing"):
            if self.is_playing:
                self.stop()
                return
            self._playing = max(1, self.slider.max // STEPS)
            self._runs += 1
            self.play.description = "Pause"
            if self.slider.value >= self.slider.max:
                self._go(0)
            asyncio.get_running_loop().call_later(STEP_S, self._tick, self._runs)

    def stop(self) -> None:
        """Stop playing."""
        self._playing, self.play.description = None, "Play"

    def _tick(self, run: int) -> None:
        """Take a step, and come back for the next one; a step of an earlier run takes none."""
        if self.is_playing and run == self._runs and self.comm is not None:
            moved = False
            with self.status.catching("playing"):
                self.step()
                moved = True
            if not moved:
                self.stop()
            elif self.is_playing:
                asyncio.get_running_loop().call_later(STEP_S, self._tick, run)

    def step(self) -> None:
        """Move on by one step of playing; at the newest event it ends."""
        later = self.slider.value + (self._playing or 1)
        if later >= self.slider.max:
            self.stop()
        self._go(min(later, self.slider.max))
