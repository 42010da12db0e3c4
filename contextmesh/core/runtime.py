"""Behaviours that react to events: what is pending, and how one is run."""

import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

from contextmesh.core import branches
from contextmesh.core.diff import Diff, diff
from contextmesh.core.events import Event
from contextmesh.core.forked import lineage
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object, Relation, View, Where, lookup, matches
from contextmesh.core.plan import PromotePlan
from contextmesh.core.promote import PromoteResult, promote
from contextmesh.core.reader import Reader
from contextmesh.errors import AlreadyExistsError, ConcurrentWriterError, UsageError

MAX_VIEWS = 5
VIEW_KEYS = frozenset({"include_types", "around", "depth", "recent_events", "search", "paths"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What a handler gets beside its trigger and the graph.

    Args:
        view: the slice of the graph that the behaviour declared.
        behavior: the behaviour's name.
        cause: `actor`, `caused_by` and `frame_id` to pass on to whatever the handler writes.
    """

    view: View
    behavior: str
    cause: Mapping[str, Any]


Handler = Callable[[Event, Graph, Context], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Behavior:
    """A named reaction to events; make one with `@behavior`."""

    name: str
    on: tuple[str, ...]
    where: Where
    view: Mapping[str, Any]
    handler: Handler

    def reacts_to(self, event: Event) -> bool:
        """Whether the event triggers this behaviour."""
        return event.type in self.on and matches(event.payload, self.where)


def behavior(
    *,
    name: str,
    on: Sequence[str],
    where: Where | None = None,
    view: Mapping[str, Any] | None = None,
) -> Callable[[Handler], Behavior]:
    """Declare a behaviour.

    Args:
        name: unique in a runtime; the actor of what it writes.
        on: the event types that trigger it.
        where: conditions on the trigger's payload, as in `Graph.objects`.
        view: what its `View` shows: `include_types` (kinds), `around` (dotted path into the payload, to an id or a
            list of ids) with `depth` (hops, default 1), `recent_events` (how many), and the callables `search` and
            `paths`, called with `(event, reader)`; their results become `View.hits` and `View.paths`.

    Example:
        >>> @behavior(name="greeter", on=["object.created"], where={"object.type": "Guest"})
        ... def greet(event, graph, ctx):
        ...     graph.add_object("Greeting", {"to": event.payload["id"]}, **ctx.cause)
        >>> graph = Graph()
        >>> _ = graph.add_object("Guest", id="ada")
        >>> [step.status for step in Runtime(graph, [greet]).run()]
        ['completed']
    """
    if isinstance(on, str):
        msg = f"behavior {name!r}: on is {on!r}; expected a list of event types, such as [{on!r}]"
        raise UsageError(msg)
    unknown = set(view or {}) - VIEW_KEYS
    if unknown:
        msg = f"behavior {name!r}: its view names {', '.join(sorted(unknown))}; expected {', '.join(sorted(VIEW_KEYS))}"
        raise UsageError(msg)

    def declare(handler: Handler) -> Behavior:
        return Behavior(name=name, on=tuple(on), where=where or {}, view=view or {}, handler=handler)

    return declare


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """An event that a behaviour has yet to react to."""

    behavior: Behavior
    event: Event
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One behaviour that ran.

    Args:
        status: `completed`, or `elsewhere` if another process completed it first.
        events: what it committed, oldest first.
    """

    behavior: str
    trigger: Event
    status: str
    view: View
    events: tuple[Event, ...] = ()

    def __repr__(self) -> str:
        return f"<Step {self.behavior}: {self.status}, {len(self.events)} events>"


@dataclass(slots=True)
class _Scan:
    """What the log says about triggers, up to a position."""

    position: int
    open: dict[tuple[str, str], Trigger] = field(default_factory=dict)
    failed: dict[tuple[str, str], Trigger] = field(default_factory=dict)
    promotes: set[str] = field(default_factory=set)


class Runtime:
    """Run behaviours over a graph, and over its forks. Opening one never resumes anything by itself.

    Args:
        graph: the graph that they read and write.
        behaviors: in the order in which they react to one and the same event.
        after: log position to look for triggers after; what lies before is taken as settled.
    """

    def __init__(self, graph: Graph, behaviors: Collection[Behavior], *, after: int = 0) -> None:
        names = [item.name for item in behaviors]
        if len(set(names)) != len(names):
            msg = f"behaviors share a name among {sorted(names)}; name each differently"
            raise UsageError(msg)
        self.graph = graph
        self._behaviors = tuple(behaviors)
        self._after = after
        self._scan = _Scan(position=after)

    def __repr__(self) -> str:
        return f"<Runtime: {', '.join(item.name for item in self._behaviors)}>"

    def fork(self, at_event: str | int | None = None, label: str | None = None) -> "Runtime":
        """Return a runtime of the same behaviours over a fork of the graph. Nothing in it is run by itself.

        Args:
            at_event: id or position of the last event to share; by default the newest.
            label: what to call the branch; its name is the label's unique slug.

        Raises:
            EventNotFoundError: the log holds no such event.

        Example:
            >>> runtime = Runtime(Graph(), [])
            >>> _ = runtime.graph.add_object("Entity", {"label": "Checkout API"}, id="checkout-api")
            >>> alt = runtime.fork(label="Not the TTL")
            >>> alt.graph.patch_object("checkout-api", {"tier": 1}).status
            'applied'
            >>> runtime.diff(alt).divergent_objects[0].summary()
            'Entity checkout-api: differs in tier'
            >>> len(runtime.promote(alt).applied_event_ids), runtime.diff(alt).is_identical
            (2, True)
        """
        made = branches.fork(self.graph, at_event, label)
        return Runtime(made, self._behaviors, after=min(self._after, lineage(made.log)[-1][1]))

    def diff(self, other: "Runtime") -> Diff:
        """Return how this graph and another of its family differ, this one taken as the parent.

        Raises:
            IncompatibleRuntimeState: the two share no history.
        """
        return diff(self.graph, other.graph)

    @overload
    def promote(self, fork: "Runtime", dry_run: Literal[False] = False) -> PromoteResult: ...  # noqa: FBT002
    @overload
    def promote(self, fork: "Runtime", dry_run: Literal[True]) -> PromotePlan: ...
    def promote(self, fork: "Runtime", dry_run: bool = False) -> PromotePlan | PromoteResult:  # noqa: FBT001, FBT002 - the name is fixed, its place too
        """Bring a fork's net change into this graph, all of it or nothing; with `dry_run` only plan it.

        Raises:
            PromoteLineageError: it was not forked from this graph.
            PromoteConflictError: something stands against it; nothing was changed.
        """
        return promote(self.graph, fork.graph, dry_run=dry_run)

    def pending(self, frame: str | None = None, *, retry: bool = False) -> list[Trigger]:
        """Return the triggers in the log that no `behavior.completed` has settled, oldest first.

        Args:
            frame: only triggers of this frame of work.
            retry: also those that failed; otherwise a failure settles a trigger.
        """
        self._read_log()
        found = {**self._scan.failed, **self._scan.open} if retry else self._scan.open
        rows = [trigger for trigger in found.values() if frame in (None, trigger.event.frame_id)]
        return sorted(rows, key=lambda trigger: (trigger.position, self._behaviors.index(trigger.behavior)))

    def _read_log(self) -> None:
        scan = self._scan
        for event in self.graph.events.after(scan.position):
            scan.position += 1
            key = (str(event.payload.get("behavior")), str(event.payload.get("trigger")))
            if event.type == "behavior.completed":
                scan.open.pop(key, None)
                scan.failed.pop(key, None)
            elif event.type == "behavior.failed" and key in scan.open:
                scan.failed[key] = scan.open.pop(key)
            elif event.type == "promote.applied":
                scan.promotes.add(event.id)
            if event.caused_by not in scan.promotes:
                scan.open |= {
                    (item.name, event.id): Trigger(behavior=item, event=event, position=scan.position)
                    for item in self._behaviors
                    if item.reacts_to(event)
                }

    def step(self, frame: str | None = None, *, retry: bool = False) -> Step | None:
        """Run the oldest pending behaviour; return None if nothing is pending.

        What it writes and its `behavior.completed` are one batch.

        Raises:
            Exception: whatever the handler raised, after `behavior.failed` was recorded.
        """
        triggers = self.pending(frame, retry=retry)
        return self._run(triggers[0]) if triggers else None

    def run(self, frame: str | None = None, *, retry: bool = False) -> list[Step]:
        """Run all that is pending, and what that triggers in turn; return the steps in order."""
        steps = []
        while step := self.step(frame, retry=retry):
            steps.append(step)
        return steps

    def _run(self, trigger: Trigger) -> Step:
        item, event, graph = trigger.behavior, trigger.event, self.graph
        cause: dict[str, Any] = {"actor": item.name, "caused_by": event.id, "frame_id": event.frame_id}
        note = {"behavior": item.name, "trigger": event.id}
        view = View(position=graph.position)
        try:
            view = build_view(item.view, event, graph)
            with graph.batch(guard=lambda: self._check_unsettled(trigger)):
                started = graph.emit(Event(type="behavior.started", payload=note, **cause))
                item.handler(event, graph, Context(view=view, behavior=item.name, cause=cause))
                graph.emit(Event(type="behavior.completed", payload=note, **cause))
        except (AlreadyExistsError, ConcurrentWriterError) as error:
            if trigger in self.pending(retry=True):
                self._fail(note, cause, error)
                raise
            return Step(behavior=item.name, trigger=event, status="elsewhere", view=view)
        except Exception as error:
            self._fail(note, cause, error)
            raise
        return Step(behavior=item.name, trigger=event, status="completed", view=view, events=self._written(started))

    def _check_unsettled(self, trigger: Trigger) -> None:
        if trigger not in self.pending(retry=True):
            msg = f"{trigger.behavior.name!r} has reacted to {trigger.event.id!r} in another process"
            raise ConcurrentWriterError(msg)

    def _fail(self, note: Mapping[str, Any], cause: Mapping[str, Any], error: Exception) -> None:
        reason = traceback.format_exception_only(error)[-1].strip()
        self.graph.emit(Event(type="behavior.failed", payload={**note, "error": reason[:2000]}, **cause))

    def _written(self, started: Event) -> tuple[Event, ...]:
        """Return the committed batch that begins with `started`."""
        before = self._scan.position
        events = list(self.graph.events.after(before))
        first = next(at for at, event in enumerate(events) if event.id == started.id)
        last = next(at for at, event in enumerate(events[first:], first) if event.type == "behavior.completed")
        return tuple(events[first : last + 1])


def build_view(spec: Mapping[str, Any], event: Event, graph: Graph) -> View:
    """Build a behaviour's view as of one position; if the head moved meanwhile, build it again.

    Raises:
        ConcurrentWriterError: the head moved five times.
    """
    for _ in range(MAX_VIEWS):
        # The trigger may have been read from the log before its own process has projected it.
        position = graph.catch_up()
        view = _view_at(position, spec, event, graph.reader())
        if graph.position == position:
            return view
    msg = f"other writers moved the graph {MAX_VIEWS} times while a view was built; run the step again"
    raise ConcurrentWriterError(msg)


def _view_at(position: int, spec: Mapping[str, Any], event: Event, reader: Reader) -> View:
    objects, relations = _slice(spec, event, reader)
    recent = int(spec.get("recent_events", 0))
    return View(
        position=position,
        object_rows=tuple(objects),
        relation_rows=tuple(relations),
        event_rows=tuple(reader.events[max(0, position - recent) : position]) if recent else (),
        hits=spec["search"](event, reader) if "search" in spec else None,
        paths=spec["paths"](event, reader) if "paths" in spec else None,
    )


def _slice(spec: Mapping[str, Any], event: Event, reader: Reader) -> tuple[list[Object], list[Relation]]:
    kinds = spec.get("include_types")
    found: dict[str, Object] = {}
    if "around" in spec:
        centre = lookup(event.payload, spec["around"])
        for start in [centre] if isinstance(centre, str) else sorted(centre or ()):
            objects, _ = reader.neighborhood(start, int(spec.get("depth", 1)))
            found |= {row.id: row for row in objects if kinds is None or row.type in kinds}
    else:
        found = {row.id: row for kind in sorted(kinds or ()) for row in reader.objects(kind)}
    relations = reader.relations(source=found.keys(), target=found.keys()) if found else []
    return [found[key] for key in sorted(found)], relations
