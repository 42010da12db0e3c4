"""Trace: what each stage of a run did, as the log tells it. What is shown of a run is what was saved."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object
from contextmesh.investigation.records import record_id
from contextmesh.investigation.vocabulary import STAGES


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """An event with its position in the log."""

    position: int
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTrace:
    """What one stage of a run did.

    Args:
        state: `done`, `next` (its trigger is in the log), `stopped` (it failed) or `waiting`.
        trigger: what it reacted to, or will react to; None while there is nothing.
        events: what it committed, oldest first.
        error: why it stopped last, "" if it did not.
        record: what it saved, as it stands in the graph now; None if there is nothing, or nothing any more.
    """

    stage: str
    state: str
    trigger: Placed | None = None
    events: tuple[Placed, ...] = ()
    error: str = ""
    record: Object | None = None

    @property
    def is_lost(self) -> bool:
        """Whether the record was saved and has been removed from the graph since."""
        return self.state == "done" and self.record is None and bool(self.saved)

    @property
    def saved(self) -> list[str]:
        """Ids of the records that the stage saved, whether they are still there or not."""
        return [placed.event.payload["id"] for placed in self.events if _is_record(placed.event)]


@dataclass(slots=True)
class _Seen:
    trigger: Placed | None = None
    events: list[Placed] = field(default_factory=list)
    is_done: bool = False
    error: str = ""


class Trace:
    """Read what the stages of a run did from its log; each look reads on from where the last one ended.

    Args:
        graph: the graph that the run stands in.
        run: the run's id.
    """

    def __init__(self, graph: Graph, run: str) -> None:
        self._graph = graph
        self._run = run
        home = graph.get_object(run)
        self._position = int(home.data["position"]) if home else 0
        self._seen = {stage: _Seen() for stage in STAGES}

    def __repr__(self) -> str:
        done = sum(seen.is_done for seen in self._seen.values())
        return f"<Trace of {self._run}: {done} of {len(STAGES)} stages>"

    def read(self) -> dict[str, StageTrace]:
        """Return what each stage did up to now, in their order."""
        for event in () if self._is_over else self._graph.events.after(self._position):
            self._position += 1
            if event.frame_id == self._run:
                self._add(Placed(position=self._position, event=event))
            if self._is_over:
                break  # what comes after is of other runs, and may be long
        keys = {stage: record_id(self._run, stage) for stage in STAGES}
        records = self._graph.get_objects(list(keys.values()))
        return {stage: self._told(stage, records.get(key)) for stage, key in keys.items()}

    @property
    def _is_over(self) -> bool:
        return all(seen.is_done for seen in self._seen.values())

    def _add(self, placed: Placed) -> None:
        event = placed.event
        triggered = _triggers(event)
        if triggered and self._seen[triggered].trigger is None:
            self._seen[triggered].trigger = placed
        seen = self._seen.get(str(event.payload.get("behavior") if event.is_lifecycle else event.actor))
        if seen is None or seen.is_done or seen.trigger is None or event.caused_by != seen.trigger.event.id:
            return
        if event.type == "behavior.failed":
            seen.error = str(event.payload.get("error", ""))
            return
        seen.events.append(placed)
        if event.type == "behavior.completed":
            seen.is_done, seen.error = True, ""

    def _told(self, stage: str, record: Object | None) -> StageTrace:
        seen = self._seen[stage]
        started = "stopped" if seen.error else "next" if seen.trigger else "waiting"
        return StageTrace(
            stage=stage,
            state="done" if seen.is_done or record else started,  # of a promoted run, only the record came along
            trigger=seen.trigger,
            events=tuple(seen.events),
            error=seen.error,
            record=record,
        )


def _is_record(event: Event) -> bool:
    row: Any = event.payload.get("object") if event.type == "object.created" else None
    return isinstance(row, Mapping) and row.get("type") == "AgentRun"


def _triggers(event: Event) -> str | None:
    """Return the stage that an event sets off, as their declarations say."""
    if event.type == "question.asked":
        return STAGES[0]
    data: Any = event.payload["object"].get("data") if _is_record(event) else None
    stage = data.get("stage") if isinstance(data, Mapping) else None
    return STAGES[STAGES.index(stage) + 1] if stage in STAGES[:-1] else None


def missing(stages: Mapping[str, StageTrace], stage: str) -> str:
    """Say why a stage's record is not there: it has not run yet, it stopped, or its record was removed since."""
    trace = stages[stage]
    if trace.is_lost:
        return _lost(stages, stage)
    error = error_name(trace.error)
    if error.startswith("HandoffError"):  # one that still holds is told of by the record that is gone or unreadable
        return f"the {stage} stopped for want of a record that is there again; run it once more"
    if trace.state == "stopped":
        return f"the {stage} stopped: {error}"
    return f"the {stage} has not run yet"


def _lost(stages: Mapping[str, StageTrace], stage: str) -> str:
    gone = f"the {stage}'s record {stages[stage].saved[-1]} was removed from the graph"
    later = STAGES[STAGES.index(stage) + 1 :]
    if not later or stages[later[0]].state == "done":
        return f"{gone} after it was read" if later else gone
    return f"{gone}, so that the {later[0]} has nothing to read"


def error_name(error: str) -> str:
    """Return an error as `behavior.failed` tells it, without the module that defines it.

    Example:
        >>> error_name("contextmesh.errors.HandoffError: the record is missing")
        'HandoffError: the record is missing'
    """
    name, colon, why = error.partition(": ")
    return f"{name.rpartition('.')[2]}{colon}{why}" if name.replace(".", "").isidentifier() else error
