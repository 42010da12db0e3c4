"""Diff: tell two branches apart, by what they hold now."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from contextmesh.core.display import counted, table
from contextmesh.core.events import Event, to_json
from contextmesh.core.forked import lineage
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object, Relation
from contextmesh.core.stores import EventStore
from contextmesh.errors import ConcurrentWriterError, IncompatibleRuntimeState

MAX_LOOKS = 5
State = dict[str, Any]


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
    parent.check_committed()
    other.check_committed()
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
