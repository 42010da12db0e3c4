"""The in-memory log and its branches: for snapshots, teaching and tests, never for a workspace."""

import threading
import uuid
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from contextmesh.core.events import Event, decode, encode
from contextmesh.core.forked import (
    ForkedEventStore,
    check_cut,
    check_drop,
    check_fork,
    check_forks,
    dropped_branch,
    iter_pages,
    missing_branch,
    missing_event,
)
from contextmesh.core.stores import Branch, Entry, EventStore
from contextmesh.errors import ConcurrentWriterError


@dataclass(slots=True)
class _Family:
    """What the in-memory logs of one family share: their registry of branches, and one lock."""

    lock: Any = field(default_factory=threading.RLock)
    branches: dict[str, Branch] = field(default_factory=dict)
    logs: dict[str, EventStore] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)


class InMemoryEventStore:
    """A log that lives as long as its process.

    Args:
        base: the position that it begins after; only a branch's tail begins later than 0.
        run_id: tells this history from every other.
        name: the branch that it is the tail of.
    """

    def __init__(self, *, base: int = 0, run_id: str | None = None, name: str = "") -> None:
        self.run_id = run_id or uuid.uuid4().hex
        self.branch_name = name
        self.base = base
        self._lines: list[tuple[str, int, str]] = []  # the event, its batch's last position, its commit
        self._positions: dict[str, int] = {}
        self._counters: defaultdict[str, int] = defaultdict(int)
        self._family = _Family(logs={name: self})

    def __repr__(self) -> str:
        return f"<InMemoryEventStore: {len(self._lines)} events>"

    @property
    def _lock(self) -> Any:
        return self._family.lock

    def tip(self) -> int:  # noqa: D102 - the protocol says it, here and below
        return self.base + len(self._lines)

    def append_many(self, events: Sequence[Event], *, expected: int, commit_id: str) -> int:  # noqa: D102
        with self._lock:
            self._check_kept()
            if self.tip() != expected:
                landed = self._lines[expected - self.base : expected - self.base + 1] if expected >= self.base else []
                if landed and landed[0][2] == commit_id:
                    return expected + len(events)
                msg = f"the log ends at {self.tip()}, this write expected {expected}; read again and repeat it"
                raise ConcurrentWriterError(msg)
            last = expected + len(events)
            for position, event in enumerate(events, expected + 1):
                self._lines.append((encode(event), last, commit_id))
                self._positions[event.id] = position
            return last

    def _check_kept(self) -> None:
        if self.branch_name and self.branch_name not in self._family.branches:
            raise dropped_branch(self.branch_name)

    def append(self, event: Event) -> int:  # noqa: D102
        with self._lock:
            return self.append_many([event], expected=self.tip(), commit_id=event.id)

    def read(self, after: int, limit: int) -> list[Entry]:  # noqa: D102
        with self._lock:
            if after >= self.tip() or limit < 1:
                return []
            first = max(after, self.base)
            end = self._lines[min(first + limit, self.tip()) - self.base - 1][1]
            page = self._lines[first - self.base : end - self.base]
        return [
            Entry(position=position, event=decode(text, position), last=last, size=len(text))
            for position, (text, last, _) in enumerate(page, first + 1)
        ]

    def iter_events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:  # noqa: D102
        return iter_pages(self, after, until)

    def get_event(self, event_id: str) -> Event:  # noqa: D102
        with self._lock:
            if event_id not in self._positions:
                raise missing_event(event_id)
            position = self._positions[event_id]
            return decode(self._lines[position - self.base - 1][0], position)

    def position_of(self, event_id: str) -> int | None:  # noqa: D102
        return self._positions.get(event_id)

    def count(self) -> int:  # noqa: D102
        return self.tip()

    def reserve(self, counter: str, n: int) -> int:  # noqa: D102
        with self._lock:
            first = self._counters[counter] + 1
            self._counters[counter] += n
            return first

    def raise_counter(self, counter: str, at_least: int) -> None:  # noqa: D102
        with self._lock:
            self._counters[counter] = max(self._counters[counter], at_least)

    def truncate_after(self, position: int) -> None:  # noqa: D102
        with self._lock:
            own = position - self.base
            check_cut(position, self.tip(), self._lines[own - 1][1] if 0 < own <= len(self._lines) else position)
            check_forks(position, self.branch_name, self.branches())
            del self._lines[own:]
            self._positions = {key: value for key, value in self._positions.items() if value <= position}

    def fork(self, branch: Branch) -> ForkedEventStore:  # noqa: D102
        family = self._family
        with self._lock:
            check_fork(branch, self.tip(), used=branch.name in family.used)
            tail = InMemoryEventStore(base=branch.position, run_id=branch.run_id, name=branch.name)
            tail._family = family
            family.used.add(branch.name)
            family.branches[branch.name] = replace(branch, parent=self.branch_name)
            made = ForkedEventStore(family.logs[self.branch_name], tail, branch.position)
            family.logs[branch.name] = made
            return made

    def branches(self) -> list[Branch]:  # noqa: D102
        with self._lock:
            return [row for _, row in sorted(self._family.branches.items())]

    def branch(self, name: str) -> EventStore:  # noqa: D102
        with self._lock:
            if name not in self._family.branches:
                raise missing_branch(name, self.branches())
            return self._family.logs[name]

    def drop_branch(self, name: str) -> None:  # noqa: D102
        with self._lock:
            check_drop(name, self.branches())
            del self._family.branches[name], self._family.logs[name]

    def close(self) -> None:  # noqa: D102
        return
