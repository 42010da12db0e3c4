"""What the logs of every store share: a branch's log, reading by pages, and what they refuse."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from contextmesh.core.events import Event
from contextmesh.core.stores import Branch, Entry, EventStore
from contextmesh.errors import AlreadyExistsError, EventNotFoundError, NotFoundError, UsageError


class ForkedEventStore:
    """The log of a branch: its parent's events up to the position where it was forked, then a tail of its own.

    Args:
        parent: the log that it was forked from.
        tail: the events after `base`, at the positions `base` + 1 and so on.
        base: the last position that is shared; it may lie within one of the parent's batches.
    """

    def __init__(self, parent: EventStore, tail: EventStore, base: int) -> None:
        self.parent = parent
        self.tail = tail
        self.base = base

    def __repr__(self) -> str:
        return f"<ForkedEventStore: {self.branch_name!r}, after {self.base} of {self.parent!r}>"

    @property
    def run_id(self) -> str:  # noqa: D102 - the protocol says it, here and below
        return self.tail.run_id

    @property
    def branch_name(self) -> str:  # noqa: D102
        return self.tail.branch_name

    def tip(self) -> int:  # noqa: D102
        return self.tail.tip()

    def append_many(self, events: Sequence[Event], *, expected: int, commit_id: str) -> int:  # noqa: D102
        return self.tail.append_many(events, expected=expected, commit_id=commit_id)

    def append(self, event: Event) -> int:  # noqa: D102
        return self.tail.append(event)

    def read(self, after: int, limit: int) -> list[Entry]:  # noqa: D102
        if after >= self.base:
            return self.tail.read(after, limit)
        page = self.parent.read(after, min(limit, self.base - after))
        return [replace(row, last=min(row.last, self.base)) for row in page if row.position <= self.base]

    def iter_events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:  # noqa: D102
        return iter_pages(self, after, until)

    def get_event(self, event_id: str) -> Event:  # noqa: D102
        if self.tail.position_of(event_id) is not None:
            return self.tail.get_event(event_id)
        if self.position_of(event_id) is None:
            raise missing_event(event_id)
        return self.parent.get_event(event_id)

    def position_of(self, event_id: str) -> int | None:  # noqa: D102
        own = self.tail.position_of(event_id)
        if own is not None:
            return own
        shared = self.parent.position_of(event_id)
        return shared if shared is not None and shared <= self.base else None

    def count(self) -> int:  # noqa: D102
        return self.tip()

    def reserve(self, counter: str, n: int) -> int:  # noqa: D102
        return self.tail.reserve(counter, n)

    def raise_counter(self, counter: str, at_least: int) -> None:  # noqa: D102
        self.tail.raise_counter(counter, at_least)

    def truncate_after(self, position: int) -> None:  # noqa: D102
        if position < self.base:
            msg = f"cannot cut the branch {self.branch_name!r} after {position}; it shares its events up to {self.base}"
            raise UsageError(msg)
        self.tail.truncate_after(position)

    def fork(self, branch: Branch) -> "ForkedEventStore":  # noqa: D102
        made = self.tail.fork(branch)
        return ForkedEventStore(self, made.tail if isinstance(made, ForkedEventStore) else made, branch.position)

    def branches(self) -> list[Branch]:  # noqa: D102
        return self.tail.branches()

    def branch(self, name: str) -> EventStore:  # noqa: D102
        return self.tail.branch(name)

    def drop_branch(self, name: str) -> None:  # noqa: D102
        self.tail.drop_branch(name)

    def close(self) -> None:  # noqa: D102
        self.tail.close()


def lineage(log: EventStore) -> list[tuple[str, int]]:
    """Return the runs that a log consists of, oldest first, each with the position that it begins after."""
    if isinstance(log, ForkedEventStore):
        return [*lineage(log.parent), (log.run_id, log.base)]
    return [(log.run_id, 0)]


def assembled(name: str, branches: Iterable[Branch], tail: Callable[[Branch | None], EventStore]) -> ForkedEventStore:
    """Return the log of a branch, put together from tails, its own and its parents'; None asks for the first log.

    Raises:
        NotFoundError: there is no branch of this name.
    """
    present = {row.name: row for row in branches}
    if name not in present:
        raise missing_branch(name, present.values())
    row = present[name]
    parent = assembled(row.parent, present.values(), tail) if row.parent else tail(None)
    return ForkedEventStore(parent, tail(row), row.position)


def iter_pages(log: EventStore, after: int, until: int | None, page: int = 1000) -> Iterator[Event]:
    """Iterate a log's events page by page, so that no more than one page is held."""
    while until is None or after < until:
        entries = log.read(after, page if until is None else min(page, until - after))
        if not entries:
            return
        for entry in entries:
            if until is not None and entry.position > until:
                return
            yield entry.event
        after = entries[-1].position


def missing_event(event_id: str) -> EventNotFoundError:
    """Return the error for an event id that the log does not hold."""
    return EventNotFoundError(f"no event {event_id!r} in the log; iterate `graph.events` to see what is there")


def missing_branch(name: str, present: Iterable[Branch]) -> NotFoundError:
    """Return the error for a branch that there is not."""
    known = ", ".join(row.name for row in present) or "none yet"
    return NotFoundError(f"no branch {name!r}; there are: {known}")


def dropped_branch(name: str) -> NotFoundError:
    """Return the error for a branch that was dropped while it was open."""
    return NotFoundError(f"the branch {name!r} was dropped, perhaps by another process; fork anew")


def check_fork(branch: Branch, tip: int, *, used: bool) -> None:
    """Refuse a branch whose name was used before, or that would begin at no position of the log."""
    if used:
        msg = f"a branch was called {branch.name!r} already, and no name is used twice; choose another label"
        raise AlreadyExistsError(msg)
    if not 0 <= branch.position <= tip:
        msg = f"cannot fork at {branch.position}; the log holds the positions 0 to {tip}"
        raise UsageError(msg)


def check_forks(position: int, name: str, branches: Iterable[Branch]) -> None:
    """Refuse to cut what a branch was forked from."""
    later = [row.name for row in branches if row.parent == name and row.position >= position]
    if later:
        msg = f"cannot cut the log after {position}: {', '.join(later)} begin there or later; drop them first"
        raise UsageError(msg)


def check_drop(name: str, branches: Sequence[Branch]) -> None:
    """Refuse to drop a branch that does not exist, or that others were forked from."""
    if not any(row.name == name for row in branches):
        raise missing_branch(name, branches)
    children = [row.name for row in branches if row.parent == name]
    if children:
        msg = f"cannot drop the branch {name!r}: {', '.join(children)} were forked from it; drop them first"
        raise UsageError(msg)


def check_cut(position: int, tip: int, batch_end: int) -> None:
    """Refuse a cut through the middle of a batch, or at no position of the log."""
    if not 0 <= position <= tip:
        msg = f"cannot cut the log after {position}; it holds the positions 0 to {tip}"
        raise UsageError(msg)
    if batch_end != position:
        msg = f"cannot cut the log after {position}: its batch ends at {batch_end}, and a batch stays whole"
        raise UsageError(msg)
