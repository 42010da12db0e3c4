"""Branches: fork a graph, and look at it as it was.

A fork shares its parent's events up to one position and keeps only its own tail.
"""

import re
import unicodedata
from contextlib import ExitStack

from contextmesh.core import projection
from contextmesh.core.events import canonical, to_timestamp
from contextmesh.core.forked import ForkedEventStore
from contextmesh.core.graph import Graph
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.core.stores import Branch, EventStore, GraphStore
from contextmesh.errors import (
    AlreadyExistsError,
    EventNotFoundError,
    UsageError,
)

MAX_SLUG = 40
MAX_NAMES = 10_000


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
    graph.check_committed()
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
    graph.check_committed()
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
