"""Steps: a stage that ran here, with what it saw and asked, and who is told that a run has changed."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.model import View
from contextmesh.core.runtime import Step
from contextmesh.investigation.cards import Card
from contextmesh.investigation.records import record_id
from contextmesh.investigation.trace import Placed, StageTrace, Trace
from contextmesh.investigation.vocabulary import STAGES
from contextmesh.stores.listening import Query


@dataclass(frozen=True, slots=True, kw_only=True)
class StageStep(Step):
    """A stage that ran, with what a reader wants to see of it; end a cell with it."""

    card: Card

    def __repr__(self) -> str:
        return f"<Step {self.behavior}: {self.status}, {len(self.events)} events>"

    def _repr_html_(self) -> str:
        return self.card._repr_html_()


class _Postponed(threading.local):
    """Whose watchers this thread tells once its step is over: what they ask the graph is not the stage's Cypher."""

    cards: "list[Cards] | None" = None


_postponed = _Postponed()


class Cards:
    """What there is to tell of a run's stages: what the log tells, and of those that ran here what they saw and asked.

    Args:
        graph: the graph that the run stands in.
        run: the run's id.
    """

    def __init__(self, graph: Graph, run: str) -> None:
        self._graph = graph
        self._run = run
        self._trace = Trace(graph, run)
        self._views: dict[str, View] = {}
        self._queries: dict[str, Sequence[Query]] = {}
        self._watching: list[Callable[[], None]] = []
        self._told_at = 0

    def traces(self) -> dict[str, StageTrace]:
        """Return what the log and the graph tell of each stage, as of now, in their order."""
        return self._trace.read()

    def read(self) -> list[Card]:
        """Return a card a stage, as of now, in their order."""
        return [
            Card(trace=trace, view=self._views.get(stage), queries=self._queries.get(stage))
            for stage, trace in self.traces().items()
        ]

    # running

    def step(self, run_next: Callable[[], Step | None]) -> StageStep | None:
        """Run a stage, keep what it saw and asked, and return it with its card; whatever it raises is raised on."""
        with self._telling_after():
            with self._heard() as queries:
                try:
                    step = run_next()
                except Exception:
                    self._stopped(queries)
                    raise
            return self._ran(step, queries) if step else None

    def _ran(self, step: Step, queries: Sequence[Query]) -> StageStep:
        if step.status == "completed":
            self._views[step.behavior], self._queries[step.behavior] = step.view, tuple(queries)
        card = next((card for card in self.read() if card.trace.stage == step.behavior), None)
        given = {part.name: getattr(step, part.name) for part in fields(step)}
        return StageStep(**given, card=card or self._of_another(step))

    def _of_another(self, step: Step) -> Card:
        """Return the card of a behaviour that is none of the four stages."""
        trigger, *events = (
            Placed(position=self._graph.log.position_of(event.id) or 0, event=event)
            for event in (step.trigger, *step.events)
        )
        name = step.behavior
        trace = StageTrace(stage=name, state="done", trigger=trigger, events=tuple(events))
        return Card(trace=trace, view=self._views.get(name), queries=self._queries.get(name))

    def _stopped(self, queries: Sequence[Query]) -> None:
        kept = tuple(queries)
        self._queries |= {stage: kept for stage, trace in self.traces().items() if trace.error}

    @contextmanager
    def _heard(self) -> Iterator[list[Query]]:
        """Collect the Cypher that runs meanwhile; of a graph that is not in FalkorDB there is none."""
        with ExitStack() as stack:
            listen = getattr(self._graph.store, "listening", None)
            yield stack.enter_context(listen()) if listen else []

    # telling

    def watch(self, callback: Callable[[], None]) -> None:
        """Call a function after each step through here, and after whatever else this process commits to the run."""
        if not self._watching:
            self._graph.add_listener(self._on_event)
        self._watching.append(callback)

    def unwatch(self, callback: Callable[[], None]) -> None:
        """Stop calling a function; one that is not called is fine."""
        if callback in self._watching:
            self._watching.remove(callback)
            if not self._watching:
                self._graph.remove_listener(self._on_event)

    def _on_event(self, event: Event) -> None:
        """Tell of a commit to the run: once, however many events it holds, and after the step that made it."""
        if event.frame_id != self._run and not self._records & {event.payload.get("id"), event.payload.get("target")}:
            return
        if _postponed.cards is None:
            if (position := self._graph.position) != self._told_at:
                self._told_at = position
                self.tell()
        elif self not in _postponed.cards:
            _postponed.cards.append(self)

    @property
    def _records(self) -> set[str]:
        return {self._run, *(record_id(self._run, stage) for stage in STAGES)}

    @contextmanager
    def _telling_after(self) -> Iterator[None]:
        """Keep all that is to be told of a step until it is over, whether it stopped or not."""
        _postponed.cards = [self]
        try:
            yield
        finally:
            waiting, _postponed.cards = _postponed.cards, None
            for cards in waiting:
                cards.tell()

    def tell(self) -> None:
        """Call whoever watches."""
        for callback in tuple(self._watching):
            callback()
