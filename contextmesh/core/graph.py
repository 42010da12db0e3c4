"""Graph: a reader that can also `emit`, the only way to change anything."""

import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from contextmesh.core import projection
from contextmesh.core.delivery import Listener, Listeners, SinkHandle, Sinks
from contextmesh.core.draft import (
    Draft,
    Kept,
    no_object,
    no_relation,
    objection,
    proposed,
)
from contextmesh.core.events import Clock, Event, canonical, detached
from contextmesh.core.ids import IDGen, created_ids, minted
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.core.model import Object, Patch, Relation
from contextmesh.core.names import check_id, check_kind, check_relation_type
from contextmesh.core.payloads import PATCH_OPERATIONS, applied, check_data, id_list, provenance
from contextmesh.core.projection import Changes, Progress
from contextmesh.core.reader import Reader
from contextmesh.core.sinks import EventSink, OverflowPolicy, SinkConfig, SinkMetrics, SinkStatus
from contextmesh.core.stores import EventStore, GraphStore
from contextmesh.errors import (
    AlreadyExistsError,
    ConcurrentWriterError,
    ContextMeshError,
    IncompatibleRuntimeState,
    InvalidEventError,
    InvalidPatchLifecycleState,
    InvalidPatchOperation,
    NotFoundError,
    ProjectionError,
    ReadOnlyError,
    UsageError,
)

MAX_COMMITS = 100


class Graph(Reader):
    """The event-sourced graph: the log is the truth, objects and relations are a projection of it.

    Without arguments it lives in memory, for snapshots, teaching and tests.

    Args:
        log: where events are appended.
        store: where they are projected.
        clock: tells the time; pass a frozen or ticking one to make a run repeatable.
        ids: mints ids; by default from the log's counters.
        commit_ids: returns an id no other commit carries; it tells whether a commit of unknown outcome landed.
        progress: called with (done, total) while the graph catches up with a log that is ahead.
        read_only: show the graph as it is, and refuse to change it.

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
        progress: Progress | None = None,
        read_only: bool = False,
    ) -> None:
        super().__init__(log or InMemoryEventStore(), store or InMemoryGraphStore())
        self.ids = ids or IDGen(self._log, self._log.branch_name)
        self.clock = clock or Clock()
        self._commit_ids = commit_ids
        self._lock = threading.RLock()
        self._draft: Draft | None = None
        self._owner: int | None = None
        self._head: int | None = None  # the head this process knows; None: catch up before the next use
        self._seen = 0  # the head as of this process's last commit or look; a later one is another writer's
        self._newest = ""
        self._kept = Kept(Object)  # at the head that was last seen
        self._sinks = Sinks()
        self._listeners = Listeners()
        self.read_only = read_only
        if not read_only:
            self._store.claim(self._log.run_id)
        self.catch_up(progress)

    def __repr__(self) -> str:
        return "<Graph, to catch up>" if self._head is None else f"<Graph at position {self._head}>"

    # reading

    def _base(self) -> GraphStore:
        if self._head is None and not self.read_only:
            self.catch_up()
        return self._store

    def _mine(self) -> Draft | None:
        """Return the draft that is open in this thread."""
        return self._draft if self._draft and self._owner == threading.get_ident() else None

    def _pending(self) -> Changes | None:
        draft = self._mine()
        return draft.changes if draft else None

    def _stored_objects(self, ids: Collection[str]) -> dict[str, Object]:
        draft = self._mine()
        if draft is None:
            return super()._stored_objects(ids)
        return draft.known_objects.recall(ids, super()._stored_objects)

    def _stored_relations(self, ids: Collection[str]) -> dict[str, Relation]:
        draft = self._mine()
        if draft is None:
            return super()._stored_relations(ids)
        return draft.known_relations.recall(ids, super()._stored_relations)

    def reader(self) -> Reader:
        """Return the graph's reading half, for whoever must not write."""
        return Reader(self._log, self._base())

    @property
    def log(self) -> EventStore:
        """The log, where every event is."""
        return self._log

    @property
    def store(self) -> GraphStore:
        """The projection, where objects and relations are."""
        return self._store

    @property
    def run_id(self) -> str:
        """What tells this graph's history from every other; a fork has one of its own."""
        return self._log.run_id

    @property
    def uncommitted(self) -> tuple[Event, ...]:
        """The events of the batch that is open in this thread, oldest first."""
        draft = self._mine()
        return tuple(draft.events) if draft else ()

    def new_run_id(self) -> str:
        """Return an id that no other run carries."""
        return self._commit_ids()

    def on(self, log: EventStore, store: GraphStore, *, read_only: bool = False) -> "Graph":
        """Return a graph on another log and store, with this one's clock and commit ids."""
        return Graph(log, store, clock=self.clock, commit_ids=self._commit_ids, read_only=read_only)

    def attach_store(self, store: EventStore) -> None:
        """Keep the graph's events in this log from now on. Attaching the same log again changes nothing.

        Args:
            store: a log to load, while the graph holds no events; or the graph's own log, opened anew.

        Raises:
            IncompatibleRuntimeState: the graph holds events of another run, or stands elsewhere than this log ends;
                its history would be split.
        """
        with self._lock:
            if store is self._log:
                return
            ours = (self._log.run_id, self._log.tip())
            if ours[1] and ours != (store.run_id, store.tip()):
                msg = (
                    f"the graph holds {ours[1]} events of another log than the one to attach, which ends at "
                    f"{store.tip()}; attach a log before the first event, or replay the events into a new graph"
                )
                raise IncompatibleRuntimeState(msg)
            if ours[1] == 0:
                self._adopt(store)
            self._log, self._head = store, None
            self._sinks.follow(store.run_id)
            self.ids = IDGen(store, store.branch_name)
            self.catch_up()

    # keeping log and graph together

    def catch_up(self, progress: Progress | None = None) -> int:
        """Project what the log holds beyond the graph; return the position that was reached."""
        if self.read_only:
            self._head = self._store.head()
            return self._head
        with self._lock:
            self._head = projection.catch_up(self._log, self._store, progress=progress)
            if self._head != self._seen:
                self.ids.doubt()
                self._kept.clear()
                self._seen = self._head
            if self._head:
                newest = self._log.read(self._head - 1, 1)
                self._newest = newest[0].event.timestamp if newest else self._newest
            return self._head

    def rebuild(self, progress: Progress | None = None) -> int:
        """Replay the whole log into a fresh graph and swap it in; return the position that was reached."""
        self.check_writable()
        with self._lock:
            self._head = None
            projection.rebuild(self._log, self._store, progress)
            return self.catch_up()

    def check_writable(self) -> None:
        """Refuse, with ReadOnlyError, to change a graph that is read-only."""
        if self.read_only:
            msg = "this connection may read and not write, or this is a look into the past; open the workspace"
            raise ReadOnlyError(msg)

    def check_committed(self) -> None:
        """Refuse, with UsageError, to take the log for all there is while this thread has a batch open."""
        if self._mine() is not None:
            msg = "a batch is open, and its events are not in the log yet; do this before it or after it"
            raise UsageError(msg)

    # committing

    def emit(self, event: Event) -> Event:
        """Commit one event and return it as recorded, with its id and timestamp.

        Raises:
            InvalidEventError: it is malformed or contradicts the graph; nothing was appended.
            AlreadyExistsError, NotFoundError: what it creates exists, or what it changes does not.
            ConcurrentWriterError: other writers were faster, again and again.
        """
        if minted(event.id):
            msg = f"ids such as {event.id!r} are the graph's to mint; leave it out, or choose another form"
            raise InvalidEventError(msg)
        for key in created_ids(event):
            self.ids.brought(key)
        recorded: Event = self._commit(lambda draft: draft.add(event, brought=bool(event.id)))
        return recorded.copied()

    def replay(self, event: Event) -> None:
        """Commit an event exactly as another log recorded it, id and timestamp included, with every check of `emit`.

        Raises:
            InvalidEventError: it is malformed, contradicts the graph, or is older than the event before it.
            AlreadyExistsError, NotFoundError: what it creates exists, or what it changes does not.
        """
        for key in [event.id, *created_ids(event)]:
            self.ids.brought(key)
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
        self.check_writable()
        with self._listeners, self._lock:
            if self._pending() is not None:
                yield self
                return
            draft = self._new_draft(self._known_head())
            if guard:
                guard()
            with self._drafting(draft):
                yield self
            self._land(draft, None, guard=guard)

    def _new_draft(self, head: int) -> Draft:
        newest, now = self._newest, self.clock.now()
        return Draft(self, self._log, self.ids, head=head, newest=newest, now=now, kept=self._kept)

    def _known_head(self) -> int:
        return self.catch_up() if self._head is None else self._head

    def _commit[T](self, build: Callable[[Draft], T]) -> T:
        self.check_writable()
        with self._listeners, self._lock:
            if self._draft:
                return build(self._draft)
            draft = self._new_draft(self._known_head())
            with self._drafting(draft):
                result = build(draft)
            return self._land(draft, build, result)  # type: ignore[no-any-return]

    @contextmanager
    def _drafting(self, draft: Draft) -> Iterator[None]:
        """Let this thread's reads see what is already drafted."""
        self._draft, self._owner = draft, threading.get_ident()
        try:
            yield
        finally:
            self._draft = self._owner = None

    def _land[T](
        self,
        draft: Draft,
        build: Callable[[Draft], T] | None,
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
        self, old: Draft, build: Callable[[Draft], T] | None, guard: Callable[[], None] | None
    ) -> tuple[Draft, Any]:
        draft = self._new_draft(self.catch_up())
        if guard:
            guard()
        if build:
            with self._drafting(draft):
                return draft, build(draft)
        try:
            with self._drafting(draft):
                for event in old.events:
                    draft.add(event, brought=event.id in old.brought, recorded=event.id in old.replayed)
        except (InvalidEventError, AlreadyExistsError, NotFoundError, InvalidPatchLifecycleState) as error:
            msg = f"another writer changed what this batch relied on: {error}; nothing was written, so read and repeat"
            raise ConcurrentWriterError(msg) from error
        return draft, None

    def _project(self, draft: Draft, tip: int) -> None:
        self._head = None
        self._newest = draft.events[-1].timestamp
        try:
            if self._store.apply(draft.changes, expected=draft.head, new=tip):
                self._head = self._seen = tip
                self._keep(draft.changes)
            else:
                self.catch_up()
        except ContextMeshError as error:
            msg = f"the events up to position {tip} are saved, the graph could not take them yet: {error}"
            raise ProjectionError(msg) from error
        finally:  # whatever became of the projection, the log has them, and nobody would offer them later
            self._sinks.offer(draft.events, draft.head + 1, draft.replayed)
            self._listeners.hold(draft.events, draft.replayed)

    def _keep(self, changes: Changes) -> None:
        """Note what a commit of ours has made of the objects, so that the next one need not read them."""
        for key in changes.removed_objects:
            self._kept.put(key, None)
        for key, (row, _) in changes.objects.items():
            self._kept.put(key, row)

    # telling others

    def add_sink(
        self,
        sink: EventSink,
        *,
        name: str | None = None,
        queue_capacity: int = 1024,
        overflow_policy: OverflowPolicy | str = OverflowPolicy.DROP_NEWEST,
        metrics: SinkMetrics | None = None,
    ) -> SinkHandle:
        """Attach a sink: from now on it takes every event that this graph commits, in log order, in its own thread.

        It never takes history, what is replayed, or what other processes commit. Nothing that a sink does can harm or
        delay a commit: what it raises ends that sink, and `sink_statuses` tells. What still waits when the process
        ends is lost, so end with `close_sinks`.

        Args:
            sink: has the methods open, on_event, flush and close; its own thread calls all four.
            name: unique in this graph; by default the name of the sink's class.
            queue_capacity: how many events may wait for the sink, from 1.
            overflow_policy: what happens to one more: `drop_newest` drops it, `drop_oldest` drops the one that has
                waited longest, `fail_sink` ends the sink.
            metrics: its method `count(name, sink, n)` is told how many events were enqueued, delivered and dropped,
                and how many errors there were.

        Raises:
            AlreadyExistsError: a sink of this name is running or closing; the name of a failed one may be used again.
            UsageError: no sink, or a setting that is not as described.

        Example:
            >>> from contextmesh.core.sinks import RecordingSink
            >>> graph, sink = Graph(), RecordingSink()
            >>> graph.add_sink(sink)
            <SinkHandle 'RecordingSink': running>
            >>> _ = graph.add_object("Entity", id="checkout-api")
            >>> graph.close_sinks()
            True
            >>> [event.type for event in sink.events]
            ['object.created']
        """
        config = SinkConfig(sink=sink, name=name or "", queue_capacity=queue_capacity, overflow_policy=overflow_policy)
        return self._sinks.add(config, self._log.run_id, metrics)

    def remove_sink(self, sink: EventSink | SinkHandle | str, *, timeout: float | None = 5.0) -> bool:
        """Detach a sink, deliver what waits for it, and close it. What remains of a failed one is forgotten.

        Args:
            sink: the sink itself, its handle or its name.
            timeout: seconds to wait at most; None for as long as it takes.

        Returns:
            True once it is gone. False if it needs longer: it is detached, stays visible as `closing`, and may be
            removed again. False too if it failed over this, which stays visible as `failed`; and if the sink itself
            asks, since its own call must end first.

        Raises:
            NotFoundError: the graph has no such sink.
        """
        return self._sinks.remove(sink, timeout)

    def sink_statuses(self) -> list[SinkStatus]:
        """Return what is known of each sink that is running, closing or failed, by name.

        A failed one stays until it is removed or its name is used again.
        """
        return self._sinks.statuses()

    def flush_sinks(self, timeout: float | None = 5.0) -> bool:
        """Wait until every sink has taken and flushed what was committed before.

        Args:
            timeout: seconds to wait at most, for each sink; None for as long as it takes.

        Returns:
            True if all of them have; a failed one never has, until it is removed.
        """
        return self._sinks.flush(timeout)

    def close_sinks(self, timeout: float | None = 5.0) -> bool:
        """Remove every sink that has not failed, as `remove_sink` does.

        Args:
            timeout: seconds to wait at most, for each sink; None for as long as it takes.

        Returns:
            True if none is left. Else `sink_statuses` tells which needs longer, for another call, and which failed.
        """
        return self._sinks.close(timeout)

    def add_listener(self, callback: Listener) -> None:
        """Call a function with each event that this graph commits, in the committing thread, before the commit returns.

        It is called once the commit is done and the graph's lock is free, so it may read and write the graph; each
        thread tells of its own commits in log order. What is replayed is not told. An exception that it raises is
        logged, and harms neither the commit nor other listeners. For whatever is slow, use a sink.

        Args:
            callback: called with one event, a copy of its own; adding it again changes nothing.
        """
        self._listeners.add(callback)

    def remove_listener(self, callback: Listener) -> None:
        """Stop calling a function. NotFoundError if it was not added."""
        self._listeners.remove(callback)

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
        fields = canonical(check_data({} if data is None else data), "payload.object.data", 2)

        def build(draft: Draft) -> Object:
            draft.check_free("object", object_id)
            event_id = self.ids.event()
            row = Object(id=object_id, type=type, data=fields, provenance=provenance(event_id, actor, evidence))
            event = draft.state(
                Event(
                    id=event_id,
                    type="object.created",
                    payload={"id": row.id, "object": row.to_dict()},
                    actor=actor,
                    caused_by=caused_by,
                    frame_id=frame_id,
                ),
            )
            return Object(**detached(event.payload["object"]))

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
        fields = canonical(check_data({} if data is None else data), "payload.relation.data", 2)
        check_id(source), check_id(target), check_relation_type(type)

        def build(draft: Draft) -> Relation:
            draft.check_free("relation", relation_id)
            event_id = self.ids.event()
            row = Relation(
                id=relation_id,
                source=source,
                target=target,
                type=type,
                data=fields,
                provenance=provenance(event_id, actor, evidence),
            )
            payload = {"id": row.id, "relation": row.to_dict(), "source": source, "target": target}
            event = draft.state(
                Event(
                    id=event_id,
                    type="relation.created",
                    payload=payload,
                    actor=actor,
                    caused_by=caused_by,
                    frame_id=frame_id,
                ),
            )
            return Relation(**detached(event.payload["relation"]))

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

        def build(draft: Draft) -> None:
            row = self.get_object(object_id)
            if row is None:
                raise no_object(object_id)
            payload = {"id": row.id, "type": row.type}
            draft.state(
                Event(type="object.removed", payload=payload, actor=actor, caused_by=caused_by, frame_id=frame_id)
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

        def build(draft: Draft) -> None:
            row = self.get_relation(relation_id)
            if row is None:
                raise no_relation(relation_id)
            payload = {"id": row.id, "source": row.source, "target": row.target, "type": row.type}
            draft.state(
                Event(type="relation.removed", payload=payload, actor=actor, caused_by=caused_by, frame_id=frame_id)
            )

        self._commit(build)

    def _adopt(self, log: EventStore) -> None:
        """Draw the graph anew, from a log that it did not belong to."""
        try:
            projection.rebuild(log, self._store)
        except ConcurrentWriterError:
            msg = f"{self._store!r} goes with the log on its own server, not with {log!r}; use an in-memory graph store"
            raise IncompatibleRuntimeState(msg) from None

    def load_schema(
        self,
        type: str,
        schema: Mapping[str, Any],
        *,
        actor: str = "system",
        caused_by: str | None = None,
        frame_id: str | None = None,
    ) -> None:
        """Say what the data of an object type must look like; from now on creation and patches are held to it.

        What exists already is not looked at until it is patched. A later schema replaces an earlier one; `{}` allows
        everything.

        Args:
            type: a kind.
            schema: a JSON Schema (draft 2020-12) for `data`.
            actor: who does this.
            caused_by: id of the causal parent event.
            frame_id: the frame of work.

        Raises:
            InvalidSchemaError: it is no JSON Schema.

        Example:
            >>> graph = Graph()
            >>> graph.load_schema("Service", {"properties": {"tier": {"type": "integer"}}})
            >>> graph.add_object("Service", {"tier": "one"}, id="api")
            Traceback (most recent call last):
            contextmesh.errors.SchemaViolationError: Service 'api' breaks its schema: tier: 'one' is not of type ...
        """
        payload = {"type": check_kind(type), "schema": schema}
        event = Event(type="schema.loaded", payload=payload, actor=actor, caused_by=caused_by, frame_id=frame_id)
        self._commit(lambda draft: draft.add(event))

    def patch_object(
        self,
        target: str,
        updates: Mapping[str, Any],
        *,
        op: str = "update",
        type: str | None = None,
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

        def build(_draft: Draft) -> Patch:
            self.propose_patch(
                target,
                updates,
                op=op,
                type=type,
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
            return self.apply_patch(patch_id, actor=actor, caused_by=caused_by, frame_id=frame_id)

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
        if op not in PATCH_OPERATIONS:
            msg = f"a patch with op {op!r}; expected one of {', '.join(PATCH_OPERATIONS)}"
            raise InvalidPatchOperation(msg)
        if (op == "create") != (type is not None):
            msg = f"op {op!r} with type {type!r}; a type goes with 'create', and only with it"
            raise InvalidPatchOperation(msg)
        check_data(updates)
        if op == "create":
            self.ids.brought(check_id(target))
        patch = Patch(
            id=self.ids.patch() if id is None else self.ids.brought(check_id(id)),
            target=check_id(target),
            op=op,
            updates=dict(updates),
            type=check_kind(type) if type else None,
            actor=actor,
            rationale=rationale,
            evidence=id_list(evidence, "evidence"),
            expected_version=expected_version,
            llm_request_event_id=llm_request_event_id,
            tool_request_event_ids=id_list(tool_request_event_ids, "tool_request_event_ids"),
        )
        payload = {"patch": patch.to_dict()}
        event = Event(type="patch.proposed", payload=payload, actor=actor, caused_by=caused_by, frame_id=frame_id)
        return self._commit(lambda draft: Patch(**detached(draft.add(event).payload["patch"])))

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

        def build(draft: Draft) -> Patch:
            patch = proposed(self, patch_id)
            old = self.get_object(patch.target)
            common: dict[str, Any] = {"actor": actor, "caused_by": caused_by, "frame_id": frame_id}
            reason = objection(patch, old)
            if reason:
                return self._reject(draft, patch, reason, old, common)
            event_id = self.ids.event()
            payload = applied(patch, old, event_id)
            if approved_by is not None:
                payload["approved_by"] = canonical(approved_by, "payload.approved_by")
            event = draft.state(Event(id=event_id, type="patch.applied", payload=payload, **common))
            return Patch(**detached(event.payload["patch"]))

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

        def build(draft: Draft) -> Patch:
            patch = proposed(self, patch_id)
            common: dict[str, Any] = {"actor": actor, "caused_by": caused_by, "frame_id": frame_id}
            return self._reject(draft, patch, reason, self.get_object(patch.target), common)

        return self._commit(build)

    def _reject(self, draft: Draft, patch: Patch, reason: str, old: Object | None, common: Mapping[str, Any]) -> Patch:
        payload = {
            "patch_id": patch.id,
            "target": patch.target,
            "reason": reason,
            "expected_version": patch.expected_version,
            "current_version": old.version if old else None,
        }
        draft.add(Event(type="patch.rejected", payload=payload, **common), checked=True)
        return patch.settled("rejected", reason)
