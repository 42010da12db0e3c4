"""Events -> changes, purely; and the road from a log to its graph: catch up and rebuild."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Self

from contextmesh.core.events import Event
from contextmesh.core.model import Object, Patch, Relation
from contextmesh.core.stores import Entry, EventStore, GraphStore
from contextmesh.errors import ConcurrentWriterError, IncompatibleRuntimeState, ProjectionError

PAGE = 1000
MAX_PAGE_CHARACTERS = 2_000_000  # a query carries each text some three times over, and a server takes 512 MB at most
MAX_STUCK = 3
MAX_SWAPS = 20
Progress = Callable[[int, int], None]


@dataclass(slots=True)
class Changes:
    """What a batch of events does to a graph, folded to one complete row an entity.

    Removals happen first, then writes; an object removed and created again in one batch is in both.

    Args:
        removed_objects: ids; the relations that touch them go with them.
        removed_relations: (id, source, target, type) of each, so that a store need not scan for it.
        objects: id -> the complete object and the timestamp of its last event.
        relations: id -> the complete relation.
        patches: id -> the complete patch.
        verdicts: id of a patch proposed in an earlier batch -> (status, reason).
        schemas: object type -> its JSON Schema.
        created: ids of the objects that these events bring; the others are there already.
        proposed: the same of patches.
    """

    removed_objects: dict[str, None] = field(default_factory=dict)
    removed_relations: dict[tuple[str, str, str, str], Relation] = field(default_factory=dict)
    objects: dict[str, tuple[Object, str]] = field(default_factory=dict)
    relations: dict[str, Relation] = field(default_factory=dict)
    patches: dict[str, Patch] = field(default_factory=dict)
    verdicts: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    schemas: dict[str, Any] = field(default_factory=dict)
    created: set[str] = field(default_factory=set)
    proposed: set[str] = field(default_factory=set)
    prepared: Any = field(default=None, compare=False, repr=False)  # what a store has made of it ahead of `apply`

    def add(self, event: Event) -> None:
        """Fold one more event in; lifecycle events and unknown types do nothing."""
        handler = _HANDLERS.get(event.type)
        if handler:
            handler(self, event)

    def write_object(self, row: Object, timestamp: str) -> None:
        """Fold an object's complete new state in."""
        self.objects[row.id] = (row, timestamp)

    def remove_object(self, object_id: str) -> None:
        """Fold an object's removal in, with every relation of this batch that touches it."""
        self.objects.pop(object_id, None)
        self.removed_objects[object_id] = None
        for relation in [row for row in self.relations.values() if object_id in (row.source, row.target)]:
            self.remove_relation(relation)

    def remove_relation(self, relation: Relation) -> None:
        """Fold a relation's removal in."""
        self.relations.pop(relation.id, None)
        self.removed_relations[relation.id, relation.source, relation.target, relation.type] = relation


def fold(events: Iterable[Event]) -> Changes:
    """Fold events to the changes that they make together."""
    changes = Changes()
    for event in events:
        changes.add(event)
    return changes


def _object_created(changes: Changes, event: Event) -> None:
    changes.created.add(event.payload["id"])
    changes.write_object(Object(**event.payload["object"]), event.timestamp)


def _object_removed(changes: Changes, event: Event) -> None:
    changes.remove_object(event.payload["id"])


def _relation_created(changes: Changes, event: Event) -> None:
    relation = Relation(**event.payload["relation"])
    changes.relations[relation.id] = relation


def _relation_removed(changes: Changes, event: Event) -> None:
    names = ("id", "source", "target", "type")
    changes.remove_relation(Relation(**{name: event.payload[name] for name in names}))


def _patch_proposed(changes: Changes, event: Event) -> None:
    patch = Patch(**event.payload["patch"])
    changes.patches[patch.id] = patch
    changes.proposed.add(patch.id)


def _patch_applied(changes: Changes, event: Event) -> None:
    patch = Patch(**event.payload["patch"])
    changes.patches[patch.id] = patch
    if patch.op == "remove":
        changes.remove_object(patch.target)
    else:
        if patch.op == "create":
            changes.created.add(patch.target)
        changes.write_object(Object(**event.payload["object"]), event.timestamp)


def _patch_rejected(changes: Changes, event: Event) -> None:
    patch_id, reason = event.payload["patch_id"], event.payload["reason"]
    if patch_id in changes.patches:
        changes.patches[patch_id] = changes.patches[patch_id].settled("rejected", reason)
    else:
        changes.verdicts[patch_id] = ("rejected", reason)


def _schema_loaded(changes: Changes, event: Event) -> None:
    changes.schemas[event.payload["type"]] = event.payload["schema"]


_HANDLERS: dict[str, Callable[[Changes, Event], None]] = {
    "object.created": _object_created,
    "object.removed": _object_removed,
    "relation.created": _relation_created,
    "relation.removed": _relation_removed,
    "patch.proposed": _patch_proposed,
    "patch.applied": _patch_applied,
    "patch.rejected": _patch_rejected,
    "schema.loaded": _schema_loaded,
}


def catch_up(log: EventStore, store: GraphStore, *, until: int | None = None, progress: Progress | None = None) -> int:
    """Project what the log holds beyond the graph's head, in pages that end where a batch ends.

    While the store takes one page, the next is read and prepared.

    Returns:
        The head that was reached.

    Raises:
        IncompatibleRuntimeState: the head lies beyond the log's tip, so that the graph must be rebuilt.
    """
    head = store.head()
    tip = log.tip()
    if head > tip and (tip := log.tip()) < head:
        msg = f"the graph stands at {head}, its log ends at {tip}; rebuild the graph from the log"
        raise IncompatibleRuntimeState(msg)
    if head in (tip, until):
        return head
    stuck = 0
    with _Ahead(log, store, tip, until) as pages:
        while page := pages.after(head):
            if store.apply(page.changes, expected=head, new=page.new):
                head, stuck = page.new, 0
            else:
                reached = store.head()  # another process was faster: fine
                head, stuck = reached, 0 if reached > head else stuck + 1
            if stuck > MAX_STUCK:
                msg = f"the graph stands at {head} and cannot take the events up to {page.new}; see the server's log"
                raise ProjectionError(msg)
            if progress:
                progress(head, max(tip, head))
    return head


@dataclass(frozen=True, slots=True)
class _Page:
    changes: Changes
    new: int


class _Ahead:
    """A log's pages, each read and folded in a thread while the one before it is being taken."""

    def __init__(self, log: EventStore, store: GraphStore, tip: int, until: int | None) -> None:
        self._log = log
        self._store = store
        self._tip = tip
        self._until = until
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="read-ahead")
        self._next: tuple[int, Future[_Page | None]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def after(self, head: int) -> _Page | None:
        """Return the page after a position, None at the end, and begin to read the one after it."""
        page = self._next[1].result() if self._next and self._next[0] == head else self._read(head)
        if page and page.new < self._tip:
            self._next = (page.new, self._pool.submit(self._read, page.new))
        return page

    def _read(self, head: int) -> _Page | None:
        if self._until is not None and head >= self._until:
            return None
        entries = _fitting(self._log.read(head, PAGE if self._until is None else min(PAGE, self._until - head)))
        if not entries:
            return None
        changes = fold(entry.event for entry in entries)
        self._store.prepare(changes)
        return _Page(changes, entries[-1].position)


def _fitting(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return as many whole batches from the start of a page as one query should carry, at least one."""
    size = 0
    for at, entry in enumerate(entries):
        size += entry.size
        if size > MAX_PAGE_CHARACTERS and at and entries[at - 1].position == entries[at - 1].last:
            return entries[:at]
    return entries


def rebuild(log: EventStore, store: GraphStore, progress: Progress | None = None) -> int:
    """Replay the log into a shadow graph and swap it in, also while others write.

    Returns:
        The position that the new graph stands at.

    Raises:
        ConcurrentWriterError: other writers moved the tip before every one of 20 swaps.
    """
    with ExitStack() as undone:
        shadow = store.shadow()
        undone.callback(shadow.close)
        shadow.claim(log.run_id)
        for _ in range(MAX_SWAPS):
            head = catch_up(log, shadow, progress=progress)
            if store.swap(shadow, tip=head):
                undone.pop_all()
                return head
    msg = f"other writers moved the log before each of {MAX_SWAPS} swaps; rebuild again when it is quieter"
    raise ConcurrentWriterError(msg)
