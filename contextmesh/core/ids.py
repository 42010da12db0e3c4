"""Ids: what they are minted from, and which of them nothing can carry yet."""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from contextmesh.core.events import Event


class Counters(Protocol):
    """Where ids take their numbers from: a log."""

    def reserve(self, counter: str, n: int) -> int:
        """Reserve `n` numbers of a counter for this caller alone; return the first."""
        ...

    def raise_counter(self, counter: str, at_least: int) -> None:
        """Set a counter past a number that is in use, if it is not there yet."""
        ...


class IDGen:
    """Mint ids: `evt_001`, `rel_001`, `patch_001`, `<type>#<n>`; in a branch `evt_alt-001`, `<type>#alt-1`.

    Numbers are taken in growing blocks, so that a long import asks its store seldom and a short process wastes
    little. Gaps are legal. The blocks of objects grow slower, since people read these ids.
    """

    MAX_BLOCK = 256

    def __init__(self, counters: Counters, branch: str = "") -> None:
        self._counters = counters
        self._name = branch
        self._branch = f"{branch}-" if branch else ""
        self._blocks: dict[str, tuple[int, int, int]] = {}
        self._used: dict[str, int] = {}
        self._stale: dict[str, int] = {}
        self._fresh: set[str] = set()
        self._proven: set[str] = set()  # counters of which one number was looked up; a log may be filled without them
        self._lock = threading.RLock()

    def _next(self, counter: str, *, slowly: bool = False) -> int:
        value, end, size = self._blocks.get(counter, (0, 0, 0))
        if value >= end:
            used = self._used[counter] = self._used.get(counter, 0) + size
            size = min(used // 8 or 1 if slowly else size * 2 or 1, self.MAX_BLOCK)
            value = self._counters.reserve(counter, size)
            end = value + size
        self._blocks[counter] = (value + 1, end, size)
        return value

    def _mint(self, counter: str, form: str, *, slowly: bool = False) -> str:
        with self._lock:
            value = self._next(counter, slowly=slowly)
            identifier = form.format(branch=self._branch, n=value)
            # A branch's name may stand in ids that were brought along from elsewhere, so there every id is checked.
            if value >= self._stale.get(counter, 0) and not self._branch:
                self._fresh.add(identifier)
            return identifier

    def is_unused(self, identifier: str) -> bool:
        """Whether nothing can carry this id: it was minted, and no other writer was seen since. True only once."""
        with self._lock:
            fresh = identifier in self._fresh
            self._fresh.discard(identifier)
            found = minted(identifier) if fresh else None
            return found is not None and found.counter in self._proven

    def passed(self, identifier: str) -> None:
        """Note that a minted id was looked up and is free, so that its counter goes beyond what the log holds."""
        found = minted(identifier)
        if found and found.branch == self._name:
            self._proven.add(found.counter)

    def doubt(self) -> None:
        """Note that another writer was seen, who may have brought an id of a number that is reserved here."""
        with self._lock:
            self._fresh.clear()
            self._stale = {counter: end for counter, (_, end, _) in self._blocks.items()}

    def event(self) -> str:
        """Mint an event id."""
        with self._lock:
            return f"evt_{self._branch}{self._next('evt'):03d}"

    def relation(self) -> str:
        """Mint a relation id."""
        return self._mint("rel", "rel_{branch}{n:03d}")

    def patch(self) -> str:
        """Mint a patch id."""
        return self._mint("patch", "patch_{branch}{n:03d}")

    def brought(self, identifier: str) -> str:
        """Return an id that a caller brings; one of a minted form raises its counter, so that none is minted twice."""
        found = minted(identifier)
        if found and found.branch == self._name and identifier not in self._fresh:  # else it was minted right here
            with self._lock:
                self._counters.raise_counter(found.counter, found.number)
                self._blocks.pop(found.counter, None)
                self._fresh.discard(identifier)
        return identifier

    def object(self, type: str) -> str:
        """Mint an object id."""
        return self._mint(type, f"{type}#{{branch}}{{n}}", slowly=True)


@dataclass(frozen=True, slots=True)
class Minted:
    """What an id of a minted form was minted from: its branch ("" for the log itself), its counter and number."""

    branch: str
    counter: str
    number: int


_MINTED = re.compile(r"(?:(evt|rel|patch)_|([A-Za-z_][A-Za-z0-9_]*)#)(?:([a-z0-9_-]+)-)?(\d{1,15})")


def minted(identifier: str) -> Minted | None:
    """Return what an id was minted from, None for one of another form."""
    found = _MINTED.fullmatch(identifier)
    return Minted(found[3] or "", found[1] or found[2], int(found[4])) if found else None


def created_ids(event: Event) -> list[str]:
    """Return the ids that an event takes into use, whoever made it; it need not be well-formed."""
    if not isinstance(event.payload, Mapping):
        return []
    if event.type in {"object.created", "relation.created"}:
        ids = [event.payload.get("id")]
    elif event.type == "patch.proposed" and isinstance(patch := event.payload.get("patch"), Mapping):
        ids = [patch.get("id"), patch.get("target") if patch.get("op") == "create" else None]
    else:
        ids = []
    return [key for key in ids if isinstance(key, str)]
