"""Reader: what a graph can be asked. Graph: the same, plus `emit`, the only way to change it."""

import threading
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, overload

from contextmesh.core import projection
from contextmesh.core.events import (
    TIMESTAMP_PATTERN,
    Clock,
    Event,
    IDGen,
    canonical,
    check_data,
    check_id,
    check_kind,
    minted_number,
    prepare,
    to_microseconds,
    to_timestamp,
)
from contextmesh.core.model import Object, Patch, Relation, Where, matches
from contextmesh.core.projection import Changes, Progress
from contextmesh.core.stores import EventStore, GraphStore, Hit, InMemoryEventStore, InMemoryGraphStore
from contextmesh.errors import (
    AlreadyExistsError,
    ConcurrentWriterError,
    ContextMeshError,
    DuplicateEventError,
    InvalidEventError,
    InvalidPatchLifecycleState,
    InvalidPatchOperation,
    NotFoundError,
    ProjectionError,
)

MAX_COMMITS = 100
MAX_HOPS = 10


class EventLog(Sequence[Event]):
    """The log as a sequence that reads its pages when asked; index 0 is position 1."""

    def __init__(self, log: EventStore) -> None:
        self._log = log

    def __len__(self) -> int:
        return self._log.count()

    def __iter__(self) -> Iterator[Event]:
        return self._log.iter_events()

    def __repr__(self) -> str:
        return f"<EventLog: {len(self)} events>"

    def after(self, position: int) -> Iterator[Event]:
        """Iterate the events after a log position."""
        return self._log.iter_events(position)

    @overload
    def __getitem__(self, index: int) -> Event: ...
    @overload
    def __getitem__(self, index: slice) -> list[Event]: ...
    def __getitem__(self, index: int | slice) -> Event | list[Event]:
        size = len(self)
        if isinstance(index, slice):
            wanted = range(*index.indices(size))
            if not wanted:
                return []
            low, high = min(wanted), max(wanted)
            page = list(self._log.iter_events(low, high + 1))
            return [page[at - low] for at in wanted]
        at = index + size if index < 0 else index
        if not 0 <= at < size:
            msg = f"no event at index {index}; the log holds {size}"
            raise IndexError(msg)
        return next(self._log.iter_events(at, at + 1))


class Reader:
    """Read a graph. Everything that it returns is detached, and every list has a total order."""

    def __init__(self, log: EventStore, store: GraphStore) -> None:
        self._log = log
        self._store = store

    def _base(self) -> GraphStore:
        """Return the store to read from; Graph repairs a projection that lags here."""
        return self._store

    def _pending(self) -> Changes | None:
        """Return what this thread has written but not yet committed."""
        return None

    @property
    def position(self) -> int:
        """The log position that the graph shows."""
        return self._base().head()

    @property
    def events(self) -> EventLog:
        """The log, oldest first: len, index, slice, iterate."""
        return EventLog(self._log)

    def get_object(self, object_id: str) -> Object | None:
        """Return an object, or None if there is none of this id."""
        return self.get_objects([object_id]).get(object_id)

    def get_objects(self, ids: Collection[str]) -> dict[str, Object]:
        """Return those of the objects that exist, by id."""
        pending = self._pending()
        if not pending:
            return self._base().get_objects(ids)
        unknown = [key for key in ids if key not in pending.objects and key not in pending.removed_objects]
        return _overlay_objects(self._base().get_objects(unknown) if unknown else {}, pending, ids)

    def get_relation(self, relation_id: str) -> Relation | None:
        """Return a relation, or None if there is none of this id."""
        return self.get_relations_by_id([relation_id]).get(relation_id)

    def get_relations_by_id(self, ids: Collection[str]) -> dict[str, Relation]:
        """Return those of the relations that exist, by id."""
        pending = self._pending()
        found = self._base().get_relations(ids)
        if not pending:
            return found
        mine = [pending.relations[key] for key in ids if key in pending.relations]
        return {row.id: row for row in _overlay_relations(list(found.values()), pending, mine)}

    def get_patch(self, patch_id: str) -> Patch | None:
        """Return a patch, or None if there is none of this id."""
        return self.get_patches([patch_id]).get(patch_id)

    def get_patches(self, ids: Collection[str]) -> dict[str, Patch]:
        """Return those of the patches that exist, by id."""
        pending = self._pending()
        if not pending:
            return self._base().get_patches(ids)
        known = {key: pending.patches[key] for key in ids if key in pending.patches}
        unknown = [key for key in ids if key not in known]
        found = self._base().get_patches(unknown) if unknown else {}
        for key in found.keys() & pending.verdicts.keys():
            found[key] = found[key].settled(*pending.verdicts[key])
        return found | known

    def objects(self, type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the objects of a type that fulfil `where`, ordered by id.

        Args:
            type: a kind, or None for all.
            where: dotted path -> literal or {operator: value}, all of which must hold; a missing path is None.
                Operators: `> < >= <= == != in "not in"`.
        """
        pending = self._pending()
        found = self._base().objects(type, where)
        if not pending:
            return found
        rows = _overlay_objects({row.id: row for row in found}, pending, None)
        kept = [row for row in rows.values() if type in (None, row.type) and matches(row.data, where)]
        return sorted(kept, key=lambda row: row.id)

    def query(self, object_type: str | None = None, where: Where | None = None) -> list[Object]:
        """Return the same as `objects`."""
        return self.objects(object_type, where)

    def relations(
        self,
        source: str | Collection[str] | None = None,
        target: str | Collection[str] | None = None,
        type: str | Collection[str] | None = None,
    ) -> list[Relation]:
        """Return the relations that fit, ordered by id; each argument takes one value, several, or None for any."""
        sources, targets, types = _several(source), _several(target), _several(type)
        found = self._base().relations(sources, targets, types)
        pending = self._pending()
        if not pending:
            return found
        mine = (
            row
            for row in pending.relations.values()
            if (sources is None or row.source in sources)
            and (targets is None or row.target in targets)
            and (types is None or row.type in types)
        )
        return _overlay_relations(found, pending, mine)

    def get_relations(
        self,
        object_id: str | Collection[str],
        type: str | Collection[str] | None = None,
        direction: str = "both",
    ) -> list[Relation]:
        """Return the relations that touch an object, ordered by id.

        Args:
            object_id: one id, or several.
            type: a relation type, several, or None for any.
            direction: `out`, `in` or `both`.
        """
        if direction not in ("out", "in", "both"):
            msg = f"direction is {direction!r}; expected 'out', 'in' or 'both'"
            raise InvalidEventError(msg)
        found: dict[str, Relation] = {}
        if direction != "in":
            found |= {row.id: row for row in self.relations(source=object_id, type=type)}
        if direction != "out":
            found |= {row.id: row for row in self.relations(target=object_id, type=type)}
        return [found[key] for key in sorted(found)]

    def neighborhood(
        self,
        object_id: str,
        depth: int = 1,
        type: str | Collection[str] | None = None,
    ) -> tuple[list[Object], list[Relation]]:
        """Return the objects within `depth` hops (0 to 10), the start included, and the relations among them.

        It visits each node once, hop by hop, and never enumerates paths.
        """
        if not 0 <= depth <= MAX_HOPS:
            msg = f"depth is {depth}; expected 0 to {MAX_HOPS}"
            raise InvalidEventError(msg)
        seen = {object_id}
        edges: dict[str, Relation] = {}
        frontier = {object_id}
        for _ in range(depth):
            rows = self.get_relations(frontier, type) if frontier else []
            edges |= {row.id: row for row in rows}
            frontier = {end for row in rows for end in (row.source, row.target)} - seen
            seen |= frontier
        if depth:
            edges |= {row.id: row for row in self.relations(source=frontier, target=frontier, type=type)}
        objects = self.get_objects(seen)
        return [objects[key] for key in sorted(objects)], [edges[key] for key in sorted(edges)]

    def count_terms(
        self, terms: Collection[str], kinds: Collection[str], without: Collection[str] = ()
    ) -> tuple[int, dict[str, int]]:
        """Return how many objects of these kinds there are, and how many each term would find in a `search`."""
        return self._base().count_terms(terms, kinds, without)

    def search(
        self, weights: Mapping[str, float], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Hit]:
        """Return the best committed objects by the sum of their terms' weights, then newest, then by id."""
        return self._base().search(weights, kinds, without, limit)

    def expand(
        self, ids: Collection[str], types: Collection[str], kinds: Collection[str], without: Collection[str], limit: int
    ) -> list[Relation]:
        """Return, for each id, up to `limit` committed relations to the newest neighbours of these kinds."""
        return self._base().expand(ids, types, kinds, without, limit)


class Graph(Reader):
    """The event-sourced graph: the log is the truth, objects and relations are a projection of it.

    Without arguments it lives in memory, for snapshots, teaching and tests.

    Args:
        log: where events are appended.
        store: where they are projected.
        clock: tells the time; pass a frozen or ticking one to make a run repeatable.
        ids: mints ids; by default from the log's counters.
        commit_ids: returns an id no other commit carries; it tells whether a commit of unknown outcome landed.

    Example:
        >>> graph = Graph()
        >>> api = graph.add_object("Entity", {"label": "Checkout API"}, id="checkout-api")
        >>> graph.patch_object("checkout-api", {"tier": 1}).status
        'applied'
        >>> graph.get_object("checkout-api").version
        2
    """

    def __init__(
        self,
        log: EventStore | None = None,
        store: GraphStore | None = None,
        *,
        clock: Clock | None = None,
        ids: IDGen | None = None,
        commit_ids: Callable[[], str] = lambda: uuid.uuid4().hex,
    ) -> None:
        super().__init__(log or InMemoryEventStore(), store or InMemoryGraphStore())
        self.ids = ids or IDGen(self._log)
        self.clock = clock or Clock()
        self._commit_ids = commit_ids
        self._lock = threading.RLock()
        self._draft: _Draft | None = None
        self._owner: int | None = None
        self._head: int | None = None  # the head this process knows; None: catch up before the next use
        self._newest = ""
        self.catch_up()

    def __repr__(self) -> str:
        return f"<Graph at position {self.position}>"

    # reading

    def _base(self) -> GraphStore:
        if self._head is None:
            self.catch_up()
        return self._store

    def _pending(self) -> Changes | None:
        return self._draft.changes if self._draft and self._owner == threading.get_ident() else None

    def reader(self) -> Reader:
        """Return the graph's reading half, for whoever must not write."""
        return Reader(self._log, self._base())

    # keeping log and graph together

    def catch_up(self, progress: Progress | None = None) -> int:
        """Project what the log holds beyond the graph; return the position that was reached."""
        with self._lock:
            self._head = projection.catch_up(self._log, self._store, progress=progress)
            if self._head:
                newest = self._log.read(self._head - 1, 1)
                self._newest = newest[0].event.timestamp if newest else self._newest
            return self._head

    def rebuild(self, progress: Progress | None = None) -> int:
        """Replay the whole log into a fresh graph and swap it in; return the position that was reached."""
        with self._lock:
            self._head = None
            projection.rebuild(self._log, self._store, progress)
            return self.catch_up()

    # committing

    def emit(self, event: Event) -> Event:
        """Commit one event and return it as recorded, with its id and timestamp.

        Raises:
            InvalidEventError: it is malformed or contradicts the graph; nothing was appended.
            AlreadyExistsError, NotFoundError: what it creates exists, or what it changes does not.
            ConcurrentWriterError: other writers were faster, again and again.
        """
        if minted_number(event.id):
            msg = f"ids such as {event.id!r} are the graph's to mint; leave it out, or choose another form"
            raise InvalidEventError(msg)
        patch = event.payload.get("patch")
        for key in (event.payload.get("id"), patch.get("id") if isinstance(patch, Mapping) else None):
            if event.type in {"object.created", "relation.created", "patch.proposed"} and isinstance(key, str):
                self.ids.brought(key)
        recorded: Event = self._commit(lambda draft: draft.add(event, brought=bool(event.id)))
        return replace(recorded, payload=canonical(recorded.payload))

    def replay(self, event: Event) -> None:
        """Commit an event exactly as another log recorded it, id and timestamp included, with every check of `emit`.

        Raises:
            InvalidEventError: it is malformed, contradicts the graph, or is older than the event before it.
            AlreadyExistsError, NotFoundError: what it creates exists, or what it changes does not.
        """
        self._commit(lambda draft: draft.add(event, brought=True, recorded=True))

    @contextmanager
    def batch(self, *, guard: Callable[[], None] | None = None) -> Iterator["Graph"]:
        """Commit many events as one: reads inside see its own writes, an exception appends nothing.

        Args:
            guard: what must hold for the batch to land; called once its head is fixed, and again each time that
                another writer was faster. It raises to give up.

        Raises:
            ConcurrentWriterError: at the end, if another writer changed what the batch relied on.
        """
        with self._lock:
            if self._pending() is not None:
                yield self
                return
            draft = _Draft(self, self._known_head())
            if guard:
                guard()
            self._draft, self._owner = draft, threading.get_ident()
            try:
                yield self
            finally:
                self._draft = self._owner = None
            self._land(draft, None, guard=guard)

    def _known_head(self) -> int:
        return self.catch_up() if self._head is None else self._head

    def _commit[T](self, build: Callable[["_Draft"], T]) -> T:
        with self._lock:
            if self._draft:
                return build(self._draft)
            draft = _Draft(self, self._known_head())
            result = self._build(draft, build)
            return self._land(draft, build, result)  # type: ignore[no-any-return]

    def _build[T](self, draft: "_Draft", build: Callable[["_Draft"], T]) -> T:
        """Run `build` so that its reads see what it has already drafted."""
        self._draft, self._owner = draft, threading.get_ident()
        try:
            return build(draft)
        finally:
            self._draft = self._owner = None

    def _land[T](
        self,
        draft: "_Draft",
        build: Callable[["_Draft"], T] | None,
        result: Any = None,
        guard: Callable[[], None] | None = None,
    ) -> Any:
        """Append the draft, expecting the head that its reads were made at; after a conflict, build it anew."""
        commit_id = self._commit_ids()
        for _ in range(MAX_COMMITS):
            if not draft.events:
                return result
            self._store.admit(draft.changes)
            try:
                tip = self._log.append_many(draft.events, expected=draft.head, commit_id=commit_id)
            except ConcurrentWriterError:
                self._head = None
                draft, result = self._again(draft, build, guard)
                continue
            except BaseException:
                self._head = None  # the outcome is unknown: the next use reads the head anew
                raise
            self._project(draft, tip)
            return result
        msg = f"other writers were faster {MAX_COMMITS} times in a row; nothing was written, so try again"
        raise ConcurrentWriterError(msg)

    def _again[T](
        self, old: "_Draft", build: Callable[["_Draft"], T] | None, guard: Callable[[], None] | None
    ) -> tuple["_Draft", Any]:
        draft = _Draft(self, self.catch_up())
        if guard:
            guard()
        if build:
            return draft, self._build(draft, build)
        try:
            self._build(
                draft, lambda fresh: [fresh.add(event, brought=event.id in old.brought) for event in old.events]
            )
        except (InvalidEventError, AlreadyExistsError, NotFoundError, InvalidPatchLifecycleState) as error:
            msg = f"another writer changed what this batch relied on: {error}; nothing was written, so read and repeat"
            raise ConcurrentWriterError(msg) from error
        return draft, None

    def _project(self, draft: "_Draft", tip: int) -> None:
        self._head = None
        self._newest = draft.events[-1].timestamp
        try:
            if self._store.apply(draft.changes, expected=draft.head, new=tip):
                self._head = tip
            else:
                self.catch_up()
        except ContextMeshError as error:
            msg = f"the events up to position {tip} are saved, the graph could not take them yet: {error}"
            raise ProjectionError(msg) from error

    # sugar

    def add_object(
        self,
        type: str,
        data: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        actor: str = "system",
        caused_by: str | None = None,
        frame_id: str | None = None,
        evidence: Sequence[str] = (),
    ) -> Object:
        """Create an object and return it.

        Args:
            type: its kind.
            data: plain data; the field `provenance` is refused.
            id: its id; minted as `<type>#<n>` if left out.
            actor: who does this.
            caused_by: id of the causal parent event.
            frame_id: the frame of work.
            evidence: ids of what supports it.

        Raises:
            AlreadyExistsError: the id is taken.
            InvalidNameError, InvalidEventError: an id, kind or datum that the graph cannot hold.
        """
        check_kind(type)
        object_id = self.ids.object(type) if id is None else self.ids.brought(check_id(id))
        fields = dict(check_data({} if data is None else data))

        def build(draft: "_Draft") -> Object:
            event_id = self.ids.event()
            row = Object(id=object_id, type=type, data=fields, provenance=_created(event_id, actor, evidence))
            event = draft.add(
                Event(
                    id=event_id,
                    type="object.created",
                    payload={"object": row.to_dict(), "id": row.id},
                    actor=actor,
                    caused_by=caused_by,
                    frame_id=frame_id,
                ),
            )
            return Object(**canonical(event.payload["object"]))

        return self._commit(build)

    def add_relation(
        self,
        source: str,
        target: str,
        type: str,
        data: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        actor: str = "system",
        caused_by: str | None = None,
        frame_id: str | None = None,
        evidence: Sequence[str] = (),
    ) -> Relation:
        """Create a relation and return it; its endpoints need not exist.

        Raises:
            AlreadyExistsError: the id is taken.
            InvalidNameError, InvalidEventError: an id, type or datum that the graph cannot hold.
        """
        relation_id = self.ids.relation() if id is None else self.ids.brought(check_id(id))
        fields = dict(check_data({} if data is None else data))

        def build(draft: "_Draft") -> Relation:
            event_id = self.ids.event()
            row = Relation(
                id=relation_id,
                source=source,
                target=target,
                type=type,
                data=fields,
                provenance=_created(event_id, actor, evidence),
            )
            payload = {"relation": row.to_dict(), "id": row.id, "source": source, "target": target}
            event = draft.add(
                Event(
                    id=event_id,
                    type="relation.created",
                    payload=payload,
                    actor=actor,
                    caused_by=caused_by,
                    frame_id=frame_id,
                ),
            )
            return Relation(**canonical(event.payload["relation"]))

        return self._commit(build)

    def remove_object(
        self,
        object_id: str,
        *,
        actor: str = "system",
        caused_by: str | None = None,
        frame_id: str | None = None,
    ) -> None:
        """Remove an object, and with it the relations that touch it. NotFoundError if there is none."""

        def build(draft: "_Draft") -> None:
            row = self.get_object(object_id)
            if row is None:
                raise _no_object(object_id)
            payload = {"id": row.id, "type": row.type}
            draft.add(
                Event(type="object.removed", payload=payload, actor=actor, caused_by=caused_by, frame_id=frame_id),
                checked=True,
            )

        self._commit(build)

    def remove_relation(
        self,
        relation_id: str,
        *,
        actor: str = "system",
        caused_by: str | None = None,
        frame_id: str | None = None,
    ) -> None:
        """Remove a relation. NotFoundError if there is none."""

        def build(draft: "_Draft") -> None:
            row = self.get_relation(relation_id)
            if row is None:
                raise _no_relation(relation_id)
            payload = {"id": row.id, "source": row.source, "target": row.target, "type": row.type}
            draft.add(
                Event(type="relation.removed", payload=payload, actor=actor, caused_by=caused_by, frame_id=frame_id),
                checked=True,
            )

        self._commit(build)

    def patch_object(
        self,
        target: str,
        updates: Mapping[str, Any],
        *,
        op: str = "update",
        actor: str = "system",
        caused_by: str | None = None,
        frame_id: str | None = None,
        rationale: str | None = None,
        evidence: Sequence[str] = (),
        llm_request_event_id: str | None = None,
        tool_request_event_ids: Sequence[str] = (),
        expected_version: int | None = None,
    ) -> Patch:
        """Propose a patch and settle it at once, in one batch; return it, `applied` or `rejected`.

        Takes the arguments of `propose_patch`. A version other than `expected_version`, or a missing target,
        ends as `patch.rejected`.
        """
        patch_id = self.ids.patch()

        def build(_draft: "_Draft") -> Patch:
            self.propose_patch(
                target,
                updates,
                op=op,
                id=patch_id,
                actor=actor,
                caused_by=caused_by,
                frame_id=frame_id,
                rationale=rationale,
                evidence=evidence,
                llm_request_event_id=llm_request_event_id,
                tool_request_event_ids=tool_request_event_ids,
                expected_version=expected_version,
            )
            return self.apply_patch(patch_id, actor=actor, frame_id=frame_id)

        return self._commit(build)

    def propose_patch(
        self,
        target: str,
        updates: Mapping[str, Any],
        *,
        op: str = "update",
        type: str | None = None,
        id: str | None = None,
        actor: str = "system",
        caused_by: str | None = None,
        frame_id: str | None = None,
        rationale: str | None = None,
        evidence: Sequence[str] = (),
        llm_request_event_id: str | None = None,
        tool_request_event_ids: Sequence[str] = (),
        expected_version: int | None = None,
    ) -> Patch:
        """Propose one change to one object and return the patch.

        Args:
            target: id of the object.
            updates: top-level fields; with op `update` they are set, with `replace` and `create` they are all.
            op: `create`, `update`, `replace` or `remove`.
            type: the kind to create; only with op `create`.
            id: the patch's id; minted if left out.
            actor: who proposes it.
            caused_by: id of the causal parent event.
            frame_id: the frame of work.
            rationale: why, for the audit trail.
            evidence: ids of what supports it.
            llm_request_event_id: the model request that it came from.
            tool_request_event_ids: the tool requests that it came from.
            expected_version: the version that the target must have when it is applied.

        Raises:
            InvalidPatchOperation: an unknown op, or `create` without a type.
        """
        if (op == "create") != (type is not None):
            msg = f"op {op!r} with type {type!r}; a type goes with 'create', and only with it"
            raise InvalidPatchOperation(msg)
        check_data(updates)
        patch = Patch(
            id=self.ids.patch() if id is None else self.ids.brought(check_id(id)),
            target=check_id(target),
            op=op,
            updates=dict(updates),
            type=check_kind(type) if type else None,
            actor=actor,
            rationale=rationale,
            evidence=list(evidence),
            expected_version=expected_version,
            llm_request_event_id=llm_request_event_id,
            tool_request_event_ids=list(tool_request_event_ids),
        )
        payload = {"patch": patch.to_dict()}
        event = Event(type="patch.proposed", payload=payload, actor=actor, caused_by=caused_by, frame_id=frame_id)
        return self._commit(lambda draft: Patch(**canonical(draft.add(event).payload["patch"])))

    def apply_patch(
        self,
        patch_id: str,
        *,
        actor: str = "system",
        approved_by: str | None = None,
        caused_by: str | None = None,
        frame_id: str | None = None,
    ) -> Patch:
        """Apply a proposed patch; a version mismatch or a missing target rejects it. Return the settled patch.

        Raises:
            NotFoundError: no patch of this id.
            InvalidPatchLifecycleState: it is settled already.
        """

        def build(draft: "_Draft") -> Patch:
            patch = self._proposed(patch_id)
            old = self.get_object(patch.target)
            common: dict[str, Any] = {"actor": actor, "caused_by": caused_by, "frame_id": frame_id}
            reason = _objection(patch, old)
            if reason:
                return self._reject(draft, patch, reason, old, common)
            event_id = self.ids.event()
            payload = _applied(patch, old, event_id)
            if approved_by is not None:
                payload["approved_by"] = approved_by
            event = draft.add(Event(id=event_id, type="patch.applied", payload=payload, **common), checked=True)
            return Patch(**canonical(event.payload["patch"]))

        return self._commit(build)

    def reject_patch(
        self,
        patch_id: str,
        reason: str,
        *,
        actor: str = "system",
        caused_by: str | None = None,
        frame_id: str | None = None,
    ) -> Patch:
        """Reject a proposed patch and return it.

        Raises:
            NotFoundError: no patch of this id.
            InvalidPatchLifecycleState: it is settled already.
        """

        def build(draft: "_Draft") -> Patch:
            patch = self._proposed(patch_id)
            common: dict[str, Any] = {"actor": actor, "caused_by": caused_by, "frame_id": frame_id}
            return self._reject(draft, patch, reason, self.get_object(patch.target), common)

        return self._commit(build)

    def _proposed(self, patch_id: str) -> Patch:
        patch = self.get_patch(patch_id)
        if patch is None:
            msg = f"no patch {patch_id!r} in the graph at position {self.position}"
            raise NotFoundError(msg)
        if patch.status != "proposed":
            msg = f"patch {patch_id!r} is {patch.status}; only a proposed patch can be applied or rejected"
            raise InvalidPatchLifecycleState(msg)
        return patch

    def _reject(
        self, draft: "_Draft", patch: Patch, reason: str, old: Object | None, common: Mapping[str, Any]
    ) -> Patch:
        payload = {
            "patch_id": patch.id,
            "target": patch.target,
            "reason": reason,
            "expected_version": patch.expected_version,
            "current_version": old.version if old else None,
        }
        draft.add(Event(type="patch.rejected", payload=payload, **common), checked=True)
        return patch.settled("rejected", reason)


class _Draft:
    """The events of one commit, checked one by one against the graph as it stood at `head` and against each other."""

    def __init__(self, graph: Graph, head: int) -> None:
        self._graph = graph
        self.head = head
        # One timestamp a commit, never below its predecessor's, whatever the clock does.
        self._timestamp = max(to_timestamp(graph.clock.now()), graph._newest)  # noqa: SLF001 - its own graph
        self.events: list[Event] = []
        self.changes = Changes()
        self.brought: set[str] = set()

    def add(self, event: Event, *, checked: bool = False, brought: bool = False, recorded: bool = False) -> Event:
        """Complete, validate and check an event, and fold it in.

        Args:
            event: what to add.
            checked: the caller has just made the checks that the graph would make.
            brought: the id comes from outside, so that the log may hold it already.
            recorded: the timestamp is kept too.
        """
        graph = self._graph
        if brought:
            self._check_new(event.id)
        event = prepare(event)
        if recorded:
            self._check_time(event)
        else:
            event = replace(event, id=event.id or graph.ids.event(), timestamp=self._timestamp)
        check = _PRECONDITIONS.get(event.type)
        if check and not checked:
            check(graph, event)
        try:
            self.changes.add(event)
        except (TypeError, KeyError, ValueError) as error:
            msg = f"{event.type}: the payload cannot be projected: {error}; the README lists what each payload holds"
            raise InvalidEventError(msg) from error
        self.events.append(event)
        return event

    def _check_time(self, event: Event) -> None:
        newest = self.events[-1].timestamp if self.events else self._graph._newest  # noqa: SLF001 - its own graph
        if not TIMESTAMP_PATTERN.fullmatch(event.timestamp) or event.timestamp < newest:
            msg = (
                f"the timestamp {event.timestamp!r} is none, or before its predecessor's; expected UTC in microseconds"
            )
            raise InvalidEventError(msg)
        to_microseconds(event.timestamp)

    def _check_new(self, event_id: str) -> None:
        if any(row.id == event_id for row in self.events) or self._graph._log.has_event(event_id):  # noqa: SLF001
            msg = f"the log holds an event {event_id!r} already; leave the id out to have one minted"
            raise DuplicateEventError(msg)
        self.brought.add(event_id)


def _check_creates_object(graph: Graph, event: Event) -> None:
    if graph.get_object(event.payload["id"]):
        msg = f"the graph holds an object {event.payload['id']!r} already; patch it, or choose another id"
        raise AlreadyExistsError(msg)


def _check_removes_object(graph: Graph, event: Event) -> None:
    row = graph.get_object(event.payload["id"])
    if row is None:
        raise _no_object(event.payload["id"])
    _check_type(row.type, event.payload["type"], row.id)


def _check_creates_relation(graph: Graph, event: Event) -> None:
    if graph.get_relation(event.payload["id"]):
        msg = f"the graph holds a relation {event.payload['id']!r} already; remove it first, or choose another id"
        raise AlreadyExistsError(msg)


def _check_removes_relation(graph: Graph, event: Event) -> None:
    row = graph.get_relation(event.payload["id"])
    if row is None:
        raise _no_relation(event.payload["id"])
    if (row.source, row.target, row.type) != tuple(event.payload[name] for name in ("source", "target", "type")):
        msg = f"relation {row.id!r} is {row.source!r} -{row.type}-> {row.target!r}; the event names other ends"
        raise InvalidEventError(msg)


def _check_proposes(graph: Graph, event: Event) -> None:
    patch = event.payload["patch"]
    if patch["status"] != "proposed":
        msg = f"patch.proposed carries the status {patch['status']!r}; expected 'proposed'"
        raise InvalidEventError(msg)
    if graph.get_patch(patch["id"]):
        msg = f"the graph holds a patch {patch['id']!r} already; choose another id"
        raise AlreadyExistsError(msg)


def _check_applies(graph: Graph, event: Event) -> None:
    patch = graph._proposed(event.payload["patch"]["id"])  # noqa: SLF001 - the same module's
    new = event.payload["object"]
    old = graph.get_object(patch.target)
    reason = _objection(patch, old)
    expected = 1 if old is None else old.version if patch.op == "remove" else old.version + 1
    if reason or event.payload["patch"]["status"] != "applied" or new["version"] != expected:
        msg = f"patch {patch.id!r} cannot be applied: {reason or f'the object would have version {expected}'}"
        raise InvalidEventError(msg)
    if old:
        _check_type(old.type, new["type"], old.id)
    proposed = patch.to_dict()
    if {**proposed, **event.payload["patch"], "status": "proposed", "reason": None} != proposed:
        msg = f"patch {patch.id!r} was proposed differently from what this event applies; apply it as it was proposed"
        raise InvalidEventError(msg)
    if old and new.get("provenance", {}).get("created_by") != old.provenance.get("created_by"):
        msg = f"object {old.id!r} was removed and created anew since this patch was built; read it again"
        raise InvalidEventError(msg)


def _check_rejects(graph: Graph, event: Event) -> None:
    graph._proposed(event.payload["patch_id"])  # noqa: SLF001 - the same module's


_PRECONDITIONS: dict[str, Callable[[Graph, Event], None]] = {
    "object.created": _check_creates_object,
    "object.removed": _check_removes_object,
    "relation.created": _check_creates_relation,
    "relation.removed": _check_removes_relation,
    "patch.proposed": _check_proposes,
    "patch.applied": _check_applies,
    "patch.rejected": _check_rejects,
}


def _check_type(old: str, new: str, object_id: str) -> None:
    if old != new:
        msg = f"object {object_id!r} is a {old}; the event calls it a {new}, and an object's type never changes"
        raise InvalidEventError(msg)


def _objection(patch: Patch, old: Object | None) -> str | None:
    """Return why a patch cannot be applied to its target as it is, or None."""
    if patch.op == "create":
        return "the object exists already" if old else None
    if old is None:
        return "the object does not exist"
    if patch.expected_version not in (None, old.version):
        return f"expected version {patch.expected_version}, the object has version {old.version}"
    return None


def _applied(patch: Patch, old: Object | None, event_id: str) -> dict[str, Any]:
    """Return the payload of `patch.applied`; it holds the resulting object, so that the projection never reads."""
    before = old.data if old else {}
    after = {**before, **patch.updates} if patch.op == "update" else {} if patch.op == "remove" else patch.updates
    changed = sorted(
        key
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key) or (key in before) != (key in after)
    )
    row = Object(
        id=patch.target,
        type=old.type if old else str(patch.type),
        data=before if patch.op == "remove" else after,
        version=1 if old is None else old.version + (patch.op != "remove"),
        provenance={**old.provenance, "updated_by": event_id}
        if old
        else _created(event_id, patch.actor, patch.evidence),
    )
    return {
        "patch": patch.settled("applied").to_dict(),
        "target": patch.target,
        "diff": {key: {"old": before.get(key), "new": after.get(key)} for key in changed},
        "object": row.to_dict(),
    }


def _created(event_id: str, actor: str, evidence: Sequence[str]) -> dict[str, Any]:
    return {"created_by": event_id, "updated_by": event_id, "actor": actor, "evidence": list(evidence)}


def _overlay_objects(found: dict[str, Object], pending: Changes, ids: Collection[str] | None) -> dict[str, Object]:
    for key in found.keys() & pending.removed_objects.keys():
        del found[key]
    for key in pending.objects if ids is None else ids:
        if key in pending.objects:
            found[key] = Object(**canonical(pending.objects[key][0].to_dict()))
    return found


def _overlay_relations(found: list[Relation], pending: Changes, mine: Iterable[Relation]) -> list[Relation]:
    gone = {row.id for row in pending.removed_relations.values()}
    ends = pending.removed_objects.keys()
    rows = {row.id: row for row in found if row.id not in gone and row.source not in ends and row.target not in ends}
    rows |= {row.id: Relation(**canonical(row.to_dict())) for row in mine}
    return [rows[key] for key in sorted(rows)]


def _several(value: str | Collection[str] | None) -> Collection[str] | None:
    return [value] if isinstance(value, str) else value


def _no_object(object_id: str) -> NotFoundError:
    return NotFoundError(f"no object {object_id!r} in the graph; `graph.objects()` lists what is there")


def _no_relation(relation_id: str) -> NotFoundError:
    return NotFoundError(f"no relation {relation_id!r} in the graph; `graph.relations()` lists what is there")
