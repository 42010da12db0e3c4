"""Branches: fork a graph, and tell two branches apart.

A fork shares its parent's events up to one position and keeps only its own tail.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from contextmesh.core import projection
from contextmesh.core.display import counted, table
from contextmesh.core.events import Event, canonical, to_json, to_timestamp
from contextmesh.core.graph import Graph
from contextmesh.core.memory import InMemoryEventStore
from contextmesh.core.model import Object, Relation
from contextmesh.core.stores import Branch, EventStore, ForkedEventStore, GraphStore
from contextmesh.errors import (
    AlreadyExistsError,
    ConcurrentWriterError,
    EventNotFoundError,
    IncompatibleRuntimeState,
    UsageError,
)

MAX_LOOKS = 5
MAX_SLUG = 40
MAX_NAMES = 10_000

State = dict[str, Any]


# What is compared


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergentObject:
    """An object that two branches hold differently.

    Args:
        in_parent: id, type, data and version there; None if it does not exist there.
        in_fork: the same of the fork.
    """

    id: str
    in_parent: State | None
    in_fork: State | None

    def summary(self) -> str:
        """Return one line that says how it differs."""
        row = self.in_fork or self.in_parent or {}
        return f"{row.get('type')} {self.id}: {_difference(self.in_parent, self.in_fork)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DivergentRelation:
    """A relation that two branches hold differently; `in_parent` and `in_fork` hold id, source, target, type, data."""

    id: str
    in_parent: State | None
    in_fork: State | None

    def summary(self) -> str:
        """Return one line that names endpoints and type, and says how it differs."""
        row = self.in_fork or self.in_parent or {}
        ends = f"{row.get('source')} -{row.get('type')}-> {row.get('target')}"
        return f"{ends}: {_difference(self.in_parent, self.in_fork)}"


def _difference(in_parent: State | None, in_fork: State | None) -> str:
    if in_parent is None:
        return "only in the fork"
    if in_fork is None:
        return "only in the parent"
    old, new = ({key: to_json(value) for key, value in row["data"].items()} for row in (in_parent, in_fork))
    names = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    other = [key for key in ("type", "source", "target") if in_parent.get(key) != in_fork.get(key)]
    return f"differs in {', '.join(key if key.isprintable() else repr(key) for key in other + names)}"


@dataclass(frozen=True)
class Diff:
    """How two branches differ, structurally: what they hold now, not how they came to it.

    Args:
        parent_run_id: the run of the one that was asked.
        fork_run_id: the run of the other.
        shared_to: the last position that both share.
        parent_only_events: what only the parent's log holds, oldest first, lifecycle left out.
        fork_only_events: what only the fork's log holds, likewise.
        divergent_objects: by id.
        divergent_relations: by id.
    """

    parent_run_id: str
    fork_run_id: str
    shared_to: int
    parent_only_events: tuple[Event, ...]
    fork_only_events: tuple[Event, ...]
    divergent_objects: tuple[DivergentObject, ...]
    divergent_relations: tuple[DivergentRelation, ...]
    log: EventStore = field(repr=False, compare=False)

    @cached_property
    def shared_events(self) -> tuple[Event, ...]:
        """What both logs hold, oldest first, lifecycle left out; read from the log when first asked for."""
        return without_lifecycle(self.log.iter_events(until=self.shared_to))

    @property
    def is_identical(self) -> bool:
        """Whether both hold the same objects and relations."""
        return not (self.divergent_objects or self.divergent_relations)

    def summary(self) -> str:
        """Return the difference as text: a headline, then a line for each divergent object and relation."""
        lines = [row.summary() for row in self.divergent_objects] + [row.summary() for row in self.divergent_relations]
        return "\n".join([self._headline(), *lines])

    def _headline(self) -> str:
        both = (counted(len(self.divergent_objects), "objects"), counted(len(self.divergent_relations), "relations"))
        apart = f"{' and '.join(both)} differ"
        here, there = counted(len(self.parent_only_events), "events"), len(self.fork_only_events)
        events = f"{here} only in the parent, {there:,} in the fork"
        return f"{'identical' if self.is_identical else apart}; forked after {self.shared_to}; {events}"

    def __repr__(self) -> str:
        return f"<Diff: {self._headline()}>"

    def _repr_html_(self) -> str:
        rows = [("object", row.id, row.summary()) for row in self.divergent_objects]
        rows += [("relation", row.id, row.summary()) for row in self.divergent_relations]
        return table(f"Diff: {self._headline()}", ("what", "id", "how"), rows)


def check_committed(*graphs: Graph) -> None:
    """Refuse to look at graphs as their logs have them while a batch is open, which no log has yet."""
    if any(graph.in_batch for graph in graphs):
        msg = "a batch is open, and its events are not in the log yet; do this before it or after it"
        raise UsageError(msg)


# Forking


def fork(graph: Graph, at_event: str | int | None = None, label: str | None = None) -> Graph:
    """Return a new graph that shares this one's events up to one of them and goes its own way from there.

    Args:
        graph: the graph to fork.
        at_event: id or position of the last event to share; by default the newest.
        label: what to call it; the branch's name is its unique slug.

    Raises:
        EventNotFoundError: the log holds no such event.
        ReadOnlyError: the graph is read-only.
    """
    graph.check_writable()
    check_committed(graph)
    label = _checked_label(label)
    log, store, run_id = graph.log, graph.store, graph.new_run_id()
    newest = graph.catch_up()
    base = None if at_event is None else _position(log, at_event)
    with ExitStack() as undone:  # a fork that fails leaves no half of one
        shadow = _drawn(store, base, run_id)
        undone.callback(shadow.close)
        base = base if base is not None else shadow.head() or newest
        branch = _begun(log, base, label, run_id, to_timestamp(graph.clock.now()))
        undone.callback(store.drop_branch, branch.branch_name)
        undone.callback(log.drop_branch, branch.branch_name)
        made = graph.on(branch, _projected(branch, store.branch(branch.branch_name), shadow))
        undone.pop_all()
    return made


def snapshot(graph: Graph, position: int) -> Graph:
    """Return a read-only graph as it stood at a log position. Close its `store` when it is no longer needed.

    Raises:
        EventNotFoundError: the log does not reach to that position.
    """
    check_committed(graph)
    position = _position(graph.log, position)
    past = InMemoryEventStore(base=position, run_id=graph.run_id, name=graph.log.branch_name)
    log = ForkedEventStore(graph.log, past, position)
    with ExitStack() as undone:
        store = _drawn(graph.store, position, graph.run_id, f"at-{position}")
        undone.callback(store.close)
        projection.catch_up(log, store)
        store.index()
        found = graph.on(log, store, read_only=True)
        undone.pop_all()
    return found


def _drawn(store: GraphStore, position: int | None, run_id: str, purpose: str = "rebuild") -> GraphStore:
    """Return a shadow to catch up to a position: a copy where it is not beyond that, else an empty one."""
    if position is None or store.head() <= position:
        copy = store.copy(run_id, purpose)
        if position is None or copy.head() <= position:
            return copy
        copy.close()  # another writer was faster, and a copy cannot go back
    with ExitStack() as undone:
        shadow = store.shadow(purpose)
        undone.callback(shadow.close)
        shadow.claim(run_id)
        undone.pop_all()
    return shadow


def position_at(log: EventStore, timestamp: str) -> int:
    """Return the last position whose event was committed not after a timestamp; 0 if there is none."""
    low, high = 0, log.tip()
    while low < high:  # timestamps never fall along a log
        middle = (low + high + 1) // 2
        event = next(log.iter_events(middle - 1, middle))
        low, high = (middle, high) if event.timestamp <= timestamp else (low, middle - 1)
    return low


def _projected(log: EventStore, store: GraphStore, shadow: GraphStore) -> GraphStore:
    """Put the shadow in the place of a new branch's graph; the graph is disposable, so a failure costs time only."""
    head = projection.catch_up(log, shadow)
    if not store.swap(shadow, tip=head):
        shadow.close()
    return store


def _position(log: EventStore, at_event: str | int) -> int:
    position = log.position_of(at_event) if isinstance(at_event, str) else at_event
    if type(position) is not int or not 0 <= position <= log.tip():
        msg = f"no event {at_event!r} in the log, which ends at {log.tip()}; name the id or position of one of its own"
        raise EventNotFoundError(msg)
    return position


def _checked_label(label: str | None) -> str:
    if label is not None and not isinstance(label, str):
        msg = f"label is of type {type(label).__name__}; expected text, such as 'not the TTL'"
        raise UsageError(msg)
    return str(canonical("fork" if label is None else label, "label"))


def _begun(log: EventStore, base: int, label: str, run_id: str, created_at: str) -> EventStore:
    """Fork the log under the first free name that the label gives."""
    for number in range(1, MAX_NAMES + 1):
        name = slug(label) if number == 1 else f"{slug(label)}-{number}"
        branch = Branch(
            name=name,
            label=label,
            parent=log.branch_name,
            position=base,
            run_id=run_id,
            created_at=created_at,
        )
        try:
            return log.fork(branch)
        except AlreadyExistsError:
            continue
    msg = f"{MAX_NAMES:,} branches were called {label!r}; choose another label"
    raise AlreadyExistsError(msg)


def slug(label: str) -> str:
    """Return a label as a branch name: a-z, 0-9 and dashes, at most 40 of them.

    Example:
        >>> slug("Not the TTL!"), slug("…")
        ('not-the-ttl', 'fork')
    """
    plain = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:MAX_SLUG].strip("-") or "fork"


# Comparing


def lineage(log: EventStore) -> list[tuple[str, int]]:
    """Return the runs that a log consists of, oldest first, each with the position that it begins after."""
    if isinstance(log, ForkedEventStore):
        return [*lineage(log.parent), (log.run_id, log.base)]
    return [(log.run_id, 0)]


def shared_position(one: EventStore, other: EventStore) -> int:
    """Return the last position that two logs share; IncompatibleRuntimeState if they are of two families."""
    mine, others = lineage(one), lineage(other)
    same = 0
    while same < min(len(mine), len(others)) and mine[same] == others[same]:
        same += 1
    if not same:
        msg = "the two graphs share no history, so they cannot be compared; fork one from the other"
        raise IncompatibleRuntimeState(msg)
    # A fork of a fork may begin before its parent does, so every later beginning counts, not only the first.
    later = [base for line in (mine, others) for _, base in line[same:]]
    return min([*later, one.tip(), other.tip()])


@dataclass(slots=True)
class Touched:
    """Which objects and relations some events were about.

    Args:
        objects: ids of those that were created, changed or removed.
        removed: ids of the objects among them that were removed, be they there again.
        relations: ids of those that were created or removed, other than along with an object.
        cut: ids of the relations among them that were removed, be they there again.
    """

    objects: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    relations: set[str] = field(default_factory=set)
    cut: set[str] = field(default_factory=set)

    def add(self, event: Event) -> None:
        """Note what one more event was about."""
        payload = event.payload
        if event.type in {"relation.created", "relation.removed"}:
            self.relations.add(payload["id"])
            if event.type == "relation.removed":
                self.cut.add(payload["id"])
        elif event.type in {"object.created", "object.removed"}:
            self.objects.add(payload["id"])
            if event.type == "object.removed":
                self.removed.add(payload["id"])
        elif event.type == "patch.applied":
            self.objects.add(payload["target"])
            if payload["patch"]["op"] == "remove":
                self.removed.add(payload["target"])


def touched(events: Iterable[Event]) -> Touched:
    """Return which objects and relations the events were about."""
    found = Touched()
    for event in events:
        found.add(event)
    return found


@dataclass(slots=True, kw_only=True)
class Side:
    """One of two graphs as it stands: what happened on it, and the states of what is compared."""

    graph: Graph
    position: int
    events: tuple[Event, ...]
    touched: Touched
    objects: dict[str, Object] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)

    def object(self, key: str) -> State | None:
        """Return an object's state on this side."""
        return object_state(self.objects.get(key))

    def relation(self, key: str) -> State | None:
        """Return a relation's state on this side."""
        return relation_state(self.relations.get(key))


def object_state(row: Object | None) -> State | None:
    """Return an object without its provenance, None for none."""
    return {"id": row.id, "type": row.type, "data": row.data, "version": row.version} if row else None


def relation_state(row: Relation | None) -> State | None:
    """Return a relation without its provenance, None for none."""
    return (
        {"id": row.id, "source": row.source, "target": row.target, "type": row.type, "data": row.data} if row else None
    )


def alike(one: State | None, other: State | None) -> bool:
    """Whether two states are the same structure; how many patches led there does not count."""
    if one is None or other is None:
        return one is other
    # As text, since to Python 1, 1.0 and True are equal.
    return to_json({**one, "version": None}) == to_json({**other, "version": None})


def without_lifecycle(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return the events that tell about the graph, not about the runtime."""
    return tuple(event for event in events if not event.is_lifecycle)


def compare[T](parent: Graph, other: Graph, shared: int, look: Callable[[Side, Side], T]) -> T:
    """Look at two graphs at one position each; if one moves meanwhile, look again."""
    check_committed(parent, other)
    for _ in range(MAX_LOOKS):
        sides = [_side(graph, shared) for graph in (parent, other)]
        _read(*sides)
        result = look(*sides)
        if all(side.graph.position == side.position for side in sides):
            return result
    msg = f"other writers moved the graphs {MAX_LOOKS} times while they were compared; repeat it"
    raise ConcurrentWriterError(msg)


def _side(graph: Graph, shared: int) -> Side:
    position = graph.catch_up()
    events = without_lifecycle(graph.log.iter_events(shared, position))
    return Side(graph=graph, position=position, events=events, touched=touched(events))


def _read(parent: Side, other: Side) -> None:
    """Read what either side touched on both sides, also relations that went with a removed object."""
    objects = parent.touched.objects | other.touched.objects
    relations = set(parent.touched.relations) | set(other.touched.relations)
    removed = sorted(parent.touched.removed | other.touched.removed)
    for side in (parent, other) if removed else ():
        relations |= {row.id for row in side.graph.get_relations(removed)}
    for side in (parent, other):
        side.objects = side.graph.get_objects(objects) if objects else {}
        side.relations = side.graph.get_relations_by_id(relations) if relations else {}


def diff(parent: Graph, other: Graph) -> Diff:
    """Return how two graphs of one family differ.

    Raises:
        IncompatibleRuntimeState: they share no history.
        ConcurrentWriterError: other writers kept moving them.
    """
    shared = shared_position(parent.log, other.log)
    return compare(parent, other, shared, lambda one, two: _diff(one, two, shared))


def _diff(parent: Side, other: Side, shared: int) -> Diff:
    objects = sorted(parent.objects.keys() | other.objects.keys())
    relations = sorted(parent.relations.keys() | other.relations.keys())
    return Diff(
        parent_run_id=parent.graph.run_id,
        fork_run_id=other.graph.run_id,
        shared_to=shared,
        parent_only_events=parent.events,
        fork_only_events=other.events,
        divergent_objects=tuple(
            DivergentObject(id=key, in_parent=parent.object(key), in_fork=other.object(key))
            for key in objects
            if not alike(parent.object(key), other.object(key))
        ),
        divergent_relations=tuple(
            DivergentRelation(id=key, in_parent=parent.relation(key), in_fork=other.relation(key))
            for key in relations
            if not alike(parent.relation(key), other.relation(key))
        ),
        log=parent.graph.log,
    )
