"""The two protocols that every store fulfils, and what their implementations share."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from contextmesh.core.chains import NodeTypes, Rels
from contextmesh.core.events import Event
from contextmesh.core.model import ChainMatch, Object, ObjectQuery, ObjectQueryResult, Patch, Relation
from contextmesh.core.names import TYPE_PATTERN

if TYPE_CHECKING:
    from contextmesh.core.projection import Changes


MAX_FIELD_NAMES = 60_000  # FalkorDB holds 65,534 property names; the rest is room for writers that race
RESERVED_PROPERTIES = frozenset(
    {"id", "kind", "label", "text", "updated_at", "version", "data", "provenance", "search"},
)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One event as the log holds it: its position, the last position of its batch, its size in characters."""

    position: int
    event: Event
    last: int
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """An object that matched a search: how well, through which terms, and when it was last changed (in µs)."""

    id: str
    score: float
    terms: tuple[str, ...]
    updated_at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A fork of a log, as the log's registry knows it.

    Args:
        name: unique among all branches that a log ever had, and never used again.
        label: what its maker called it.
        parent: the branch that it was forked from; "" for the log itself.
        position: the last position that it shares with its parent.
        run_id: tells its history from every other.
        created_at: when it was made, ISO 8601 in UTC.
    """

    name: str
    label: str
    parent: str
    position: int
    run_id: str
    created_at: str


class EventStore(Protocol):
    """An append-only log of events at the positions 1, 2, 3 and so on. Usable from any thread."""

    @property
    def run_id(self) -> str:
        """What tells this history from every other; a fork has one of its own."""
        ...

    @property
    def branch_name(self) -> str:
        """The branch that this log is; "" for a log that was not forked."""
        ...

    def tip(self) -> int:
        """Return the position of the newest event, 0 for an empty log."""
        ...

    def append_many(self, events: Sequence[Event], *, expected: int, commit_id: str) -> int:
        """Append all events or none, and return the new tip.

        Raises:
            ConcurrentWriterError: the tip is not `expected`, and it was another commit that moved it.
        """
        ...

    def append(self, event: Event) -> int:
        """Append one event at the tip, wherever that is, and return its position."""
        ...

    def read(self, after: int, limit: int) -> list[Entry]:
        """Return about `limit` entries after a position; a page always ends where a batch ends."""
        ...

    def iter_events(self, after: int = 0, until: int | None = None) -> Iterator[Event]:
        """Iterate the events after a position, up to and including `until`."""
        ...

    def get_event(self, event_id: str) -> Event:
        """Return one event; EventNotFoundError if the log does not hold it."""
        ...

    def position_of(self, event_id: str) -> int | None:
        """Return the position of an event, None if the log does not hold it."""
        ...

    def count(self) -> int:
        """Return the number of events."""
        ...

    def reserve(self, counter: str, n: int) -> int:
        """Reserve `n` numbers of a counter for this caller alone; return the first."""
        ...

    def raise_counter(self, counter: str, at_least: int) -> None:
        """Set a counter past a number that is in use, if it is not there yet."""
        ...

    def truncate_after(self, position: int) -> None:
        """Drop every event after a position; the graph must then be rebuilt.

        Raises:
            UsageError: no such position, the middle of a batch, or a branch begins at the position or after it.
        """
        ...

    def fork(self, branch: Branch) -> "EventStore":
        """Return a new log that shares this one's events up to `branch.position` and goes on by itself.

        Raises:
            AlreadyExistsError: a branch had this name, be it dropped since.
            UsageError: the log does not reach to that position.
        """
        ...

    def branches(self) -> list[Branch]:
        """Return every branch of the whole family of logs, by name."""
        ...

    def branch(self, name: str) -> "EventStore":
        """Return the log of a branch; NotFoundError if there is none of this name."""
        ...

    def drop_branch(self, name: str) -> None:
        """Erase a branch's own events. NotFoundError if there is none, UsageError while others were forked from it."""
        ...

    def close(self) -> None:
        """Release what the store holds; closing twice is fine."""
        ...


class GraphStore(Protocol):
    """A projection of a log: objects, relations and patches as of its head. Usable from any thread."""

    def head(self) -> int:
        """Return the log position that the graph has reached."""
        ...

    def claim(self, run_id: str) -> None:
        """Belong to the log of this run; IncompatibleRuntimeState if the graph shows another log's events."""
        ...

    def admit(self, changes: "Changes") -> None:
        """Refuse, with InvalidEventError, changes that this store could never take. Nothing is written."""
        ...

    def prepare(self, changes: "Changes") -> None:
        """Do ahead what `apply` does first, without asking anyone; another thread may call it. It may do nothing."""
        ...

    def apply(self, changes: "Changes", *, expected: int, new: int) -> bool:
        """Take the changes and move the head from `expected` to `new` in one step; False if it was elsewhere."""
        ...

    def get_objects(self, ids: Collection[str]) -> dict[str, Object]:
        """Return those of the objects that exist, by id."""
        ...

    def query(self, plan: ObjectQuery) -> ObjectQueryResult:
        """Return the objects that the plan asks for, and the conditions that the caller must still evaluate.

        A store decides what it surely can: it never leaves out an object that matches. The limit is the caller's to
        keep where conditions remain.
        """
        ...

    def get_relations(self, ids: Collection[str]) -> dict[str, Relation]:
        """Return those of the relations that exist, by id."""
        ...

    def relations(
        self,
        sources: Collection[str] | None = None,
        targets: Collection[str] | None = None,
        types: Collection[str] | None = None,
    ) -> list[Relation]:
        """Return the relations from any of the sources, to any of the targets, of any of the types, ordered by id."""
        ...

    def touching(self, ids: Collection[str], types: Collection[str] | None = None) -> list[Relation]:
        """Return the relations of any of the types that begin or end at any of the ids, ordered by id."""
        ...

    def adjacent(self, ids: Collection[str], types: Collection[str] | None = None) -> set[str]:
        """Return the ids at the other ends of the relations that touch any of the ids, be they objects or not."""
        ...

    def match_chain(self, node_types: NodeTypes, rels: Rels, limit: int) -> list[ChainMatch]:
        """Return up to `limit` matches of a chain that `check_chain` lets pass, in the order of `walk_chain`."""
        ...

    def get_patches(self, ids: Collection[str]) -> dict[str, Patch]:
        """Return those of the patches that exist, by id."""
        ...

    def schemas(self) -> dict[str, Any]:
        """Return the schema of each object type that has one, as of the head that was read last."""
        ...

    def count_terms(
        self, terms: Collection[str], kinds: Collection[str], without: Collection[str] = ()
    ) -> tuple[int, dict[str, int]]:
        """Return how many objects of these kinds there are, and how many each term would find in a `search`."""
        ...

    def search(
        self, weights: Mapping[str, float], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Hit]:
        """Return the best objects by the sum of their terms' weights, then newest, then by id.

        Objects whose data holds one of the fields `without` as a mirrored scalar (see `mirrored`) are left out.
        """
        ...

    def expand(
        self, ids: Collection[str], types: Collection[str], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Relation]:
        """Return, for each id, up to `limit` relations of these types, in either direction, to neighbours that fit.

        The newest neighbours come first, then by relation id; `kinds` and `without` (as in `search`) tell who fits.
        The result is ordered by relation id, each relation once.
        """
        ...

    def unplaced(self, space: str, kinds: Collection[str], without: Collection[str], limit: int) -> dict[str, Object]:
        """Return up to `limit` objects of these kinds, by id, that have no vector in a space, or an outdated one."""
        ...

    def place(self, space: str, vectors: Mapping[str, tuple[int, Sequence[float]]]) -> None:
        """Keep a vector for each object: id -> (the version that it is of, the vector).

        It is no part of the graph's state: changing an object, or replaying the log, drops it. An object that has
        another version by now is passed over. A space holds vectors of one length; its name is an identifier.
        """
        ...

    def near(
        self, space: str, vector: Sequence[float], kinds: Collection[str], without: Collection[str], limit: int
    ) -> dict[str, float]:
        """Return about the `limit` objects whose vectors are nearest to this one: id -> cosine, nearest first."""
        ...

    def known_vectors(self, space: str, digests: Collection[str]) -> dict[str, list[float]]:
        """Return what `remember_vectors` kept, as far as it is still there; digests of texts -> vectors."""
        ...

    def remember_vectors(self, space: str, vectors: Mapping[str, Sequence[float]]) -> None:
        """Keep vectors by the digests of their texts, so that a replay need not make them again."""
        ...

    def shadow(self, purpose: str = "rebuild") -> "GraphStore":
        """Return a new empty store of the same kind, to rebuild into beside the live one; `purpose` may show in it."""
        ...

    def copy(self, run_id: str, purpose: str = "rebuild") -> "GraphStore":
        """Return a shadow that holds what this graph holds, for that run; its head tells as of when.

        It is empty if the graph could not be copied just now.
        """
        ...

    def index(self) -> None:
        """Make a shadow searchable; `swap` does so by itself."""
        ...

    def branch(self, name: str) -> "GraphStore":
        """Return the graph that belongs to the log of a branch."""
        ...

    def drop_branch(self, name: str) -> None:
        """Erase the graph of a branch, if there is one."""
        ...

    def swap(self, shadow: Any, *, tip: int) -> bool:
        """Put the shadow in this store's place, only if the log still ends at `tip` and the shadow stands there."""
        ...

    def close(self) -> None:
        """Release what the store holds; closing twice is fine."""
        ...


@lru_cache(maxsize=100_000)
def _is_property(name: str) -> bool:
    return bool(TYPE_PATTERN.fullmatch(name)) and name not in RESERVED_PROPERTIES


def mirrored(data: Mapping[str, Any]) -> dict[str, str | int | float | bool]:
    """Return the fields that a graph database can also keep as properties: scalars whose names are identifiers.

    Integers fit in 64 bits; names that belong to the node itself are left out.
    """
    return {name: value for name, value in data.items() if _is_property(name) and _fits(value)}


def _fits(value: object) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**63
    return isinstance(value, (str, bool, float))


def searched(row: Object) -> tuple[str, ...]:
    """Return the texts by which an object is found: label, text, aliases and id."""
    aliases = row.data.get("aliases")
    names = [item for item in aliases if isinstance(item, str)] if isinstance(aliases, list) else []
    shown = [value for name in ("label", "text") if isinstance(value := row.data.get(name), str)]
    return (*shown, *names, row.id)


def cosine(one: Sequence[float], other: Sequence[float]) -> float:
    """Return the cosine of the angle between two vectors, rounded to 4 digits; 0 where one has no length.

    Example:
        >>> cosine([1.0, 0.0], [1.0, 1.0])
        0.7071
    """
    lengths = math.hypot(*one) * math.hypot(*other)
    return round(sum(a * b for a, b in zip(one, other, strict=True)) / lengths, 4) if lengths else 0.0
