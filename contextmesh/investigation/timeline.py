"""Timeline: a graph as it was at any position of its log. Moving by k events costs k changes, in either direction."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contextmesh.core.events import Event
from contextmesh.core.model import Object, Relation
from contextmesh.core.projection import Changes, fold
from contextmesh.errors import UsageError

PAGE = 10_000  # events that are read at a time; a commit is read whole, so small pages read a large one often


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What a move made of a timeline's graph: ids of objects and relations, sorted.

    Args:
        added: what is there now and was not before.
        changed: what was there before, too, but differently.
        removed: what was there before and is not now.
    """

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def to_changes(self) -> dict[str, str]:
        """Return the same as a `Light` takes it: id -> `added`, `changed` or `removed`."""
        groups = {"removed": self.removed, "changed": self.changed, "added": self.added}
        return {key: change for change, ids in groups.items() for key in ids}


@dataclass(frozen=True, slots=True)
class _Step:
    """One row that one event changed: what it was, and what it became; None where there is none."""

    table: dict[str, Any]
    key: str
    old: Object | Relation | None
    new: Object | Relation | None


class Timeline:
    """A graph as it was at one position of its log, and the way to any other.

    It begins before the first event. The log is read in pages, no further than it was moved to; what was read is kept
    as the rows that each event changed, so that going back and forth again reads nothing.

    Args:
        events: a log, such as `graph.events`, oldest first.

    Example:
        >>> from contextmesh.core.graph import Graph
        >>> graph = Graph()
        >>> api = graph.add_object("Entity", {"label": "Checkout API"}, id="checkout-api")
        >>> timeline = Timeline(graph.events)
        >>> timeline.move(1).added, sorted(timeline.objects)
        (('checkout-api',), ['checkout-api'])
        >>> timeline.move(0).removed, sorted(timeline.objects)
        (('checkout-api',), [])
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._steps: list[tuple[_Step, ...]] = []  # of each event that was read, in log order
        self._touching: dict[str, set[str]] = {}  # object id -> ids of the relations that are there now
        self.objects: dict[str, Object] = {}
        self.relations: dict[str, Relation] = {}
        self.position = 0

    def __repr__(self) -> str:
        return f"<Timeline: position {self.position:,} of {self.tip:,}, {len(self.objects):,} objects>"

    @property
    def tip(self) -> int:
        """The log's last position; it grows when others write."""
        return len(self._events)

    def move(self, position: int) -> Moved:
        """Show the graph as it was after the event at a position, and return what differs from where it stood.

        Args:
            position: 0 for the empty graph, up to the `tip`.

        Raises:
            UsageError: the log does not reach to that position.
        """
        known = len(self._steps)
        if type(position) is not int or position < 0 or (position > known and position > self.tip):
            msg = f"position is {position!r}; expected a whole number from 0 to {self.tip}, where the log ends"
            raise UsageError(msg)
        before: dict[tuple[bool, str], Object | Relation | None] = {}
        for step, old in self._walk(position):
            before.setdefault((step.table is self.objects, step.key), old)
        return self._moved(before)

    def _walk(self, position: int) -> Iterator[tuple[_Step, Object | Relation | None]]:
        """Go to a position, and yield each row that changes on the way with what it was before."""
        while self.position > position:
            for step in reversed(self._steps[self.position - 1]):
                self._put(step, step.old)
                yield step, step.new
            self.position -= 1
        while self.position < position:
            if self.position == len(self._steps):
                yield from self._read(position)
            else:
                for step in self._steps[self.position]:
                    self._put(step, step.new)
                    yield step, step.old
                self.position += 1

    def _read(self, position: int) -> Iterator[tuple[_Step, Object | Relation | None]]:
        """Read on in the log, up to a position."""
        for event in self._events[self.position : min(position, self.position + PAGE)]:
            steps = []
            for step in self._caused(fold([event])):
                self._put(step, step.new)
                steps.append(step)
                yield step, step.old
            self._steps.append(tuple(steps))
            self.position += 1

    def _caused(self, changes: Changes) -> Iterator[_Step]:
        """Yield what an event changes, in the order of every store: relations go, then objects, then all is written."""
        gone = {row.id for row in changes.removed_relations.values()}
        gone |= {key for end in changes.removed_objects for key in self._touching.get(end, ())}
        yield from self._steps_of(self.relations, dict.fromkeys(sorted(gone)))
        yield from self._steps_of(self.objects, dict.fromkeys(changes.removed_objects))
        yield from self._steps_of(self.objects, {key: row for key, (row, _) in changes.objects.items()})
        yield from self._steps_of(self.relations, changes.relations)

    @staticmethod
    def _steps_of(table: dict[str, Any], rows: "dict[str, Any]") -> Iterator[_Step]:
        for key, row in rows.items():
            if row is not None or key in table:
                yield _Step(table, key, table.get(key), row)

    def _put(self, step: _Step, row: Object | Relation | None) -> None:
        if step.table is self.relations:
            self._connect(step.table.get(step.key), row)
        if row is None:
            del step.table[step.key]
        else:
            step.table[step.key] = row

    def _connect(self, old: Any, new: Any) -> None:
        for end in (old.source, old.target) if old else ():
            self._touching[end].discard(old.id)
        for end in (new.source, new.target) if new else ():
            self._touching.setdefault(end, set()).add(new.id)

    def _moved(self, before: dict[tuple[bool, str], Object | Relation | None]) -> Moved:
        found: dict[str, set[str]] = {"added": set(), "changed": set(), "removed": set()}
        for (is_object, key), old in before.items():
            new = (self.objects if is_object else self.relations).get(key)
            if old is None and new is not None:
                found["added"].add(key)
            elif old is not None and new is None:
                found["removed"].add(key)
            elif old != new:
                found["changed"].add(key)
        return Moved(**{name: tuple(sorted(ids)) for name, ids in found.items()})
