"""Contract tests for stores: inherit them in a test module, say how to make a store, and run pytest.

Example:
    A third party's log, tested in three lines:

        class TestMyEventStore(EventStoreContract):
            def make(self):
                return MyEventStore()

    A store that needs fixtures overrides the fixture instead of `make`:

        class TestMyEventStore(EventStoreContract):
            @pytest.fixture
            def log(self, tmp_path):
                return MyEventStore(tmp_path / "log")
"""

import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contextmesh.core.events import Event, to_timestamp
from contextmesh.core.model import Object, Patch, Relation
from contextmesh.core.projection import fold
from contextmesh.core.stores import EventStore, GraphStore
from contextmesh.errors import ConcurrentWriterError, EventNotFoundError, UsageError

# Values that a careless store changes: quotes, operators, NUL, emoji, right-to-left, long integers and floats.
DIFFICULT: dict[str, Any] = {
    "id": "not the object's own",
    "kind": ["neither", "this"],
    "version": -1,
    "label": 'it\'s "quoted" \\ `back` $dollar {brace} /* no comment */ // nor this',
    "text": "'}) DETACH DELETE n //\n\r\t\0 nul \u2028 line \x7f",
    "a b": "field with a space",
    "": "field without a name",
    "\u05e9\u05dc\u05d5\u05dd": "\u202eright to left\u202c",
    "null": None,
    "True": True,
    "emoji": "\U0001f525\U0001f469\u200d\U0001f692",
    "big": 2**63,
    "bigger": -(10**30),
    "exact": 0.1 + 0.2,
    "tiny": 5e-324,
    "huge": 1.7976931348623157e308,
    "one": 1.0,
    "nested": {"list": [1, [2, {"three": None}]], "empty": {}, "none": []},
    "aliases": ["AKA", 7],
}


def event(number: int, type: str = "note.made", payload: Mapping[str, Any] | None = None) -> Event:
    """Return an event as a log receives it, complete; its time follows from its number."""
    timestamp = to_timestamp(datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number))
    return Event(id=f"evt_{number:03d}", type=type, payload=payload or {"n": number}, timestamp=timestamp)


def object_created(
    number: int,
    id: str,
    type: str = "Memory",
    data: Mapping[str, Any] | None = None,
) -> Event:
    """Return the event that creates an object."""
    provenance = {"created_by": f"evt_{number:03d}", "updated_by": f"evt_{number:03d}"}
    row = Object(id=id, type=type, data=dict(data or {}), provenance=provenance)
    return event(number, "object.created", {"object": row.to_dict(), "id": id})


def object_removed(number: int, id: str, type: str = "Memory") -> Event:
    """Return the event that removes an object."""
    return event(number, "object.removed", {"id": id, "type": type})


def relation_created(  # noqa: PLR0917 - as a relation reads
    number: int,
    id: str,
    source: str,
    target: str,
    type: str = "MENTIONS",
    data: Mapping[str, Any] | None = None,
) -> Event:
    """Return the event that creates a relation."""
    provenance = {"created_by": f"evt_{number:03d}"}
    row = Relation(id=id, source=source, target=target, type=type, data=dict(data or {}), provenance=provenance)
    return event(number, "relation.created", {"relation": row.to_dict(), "id": id, "source": source, "target": target})


def relation_removed(number: int, id: str, source: str, target: str, type: str = "MENTIONS") -> Event:
    """Return the event that removes a relation."""
    return event(number, "relation.removed", {"id": id, "source": source, "target": target, "type": type})


def patch_proposed(number: int, id: str, target: str, updates: Mapping[str, Any]) -> Event:
    """Return the event that proposes a patch."""
    patch = Patch(id=id, target=target, op="update", updates=dict(updates))
    return event(number, "patch.proposed", {"patch": patch.to_dict()})


def patch_applied(number: int, id: str, row: Object, op: str = "update") -> Event:
    """Return the event that applies a patch, resulting in `row`."""
    patch = Patch(id=id, target=row.id, op=op, updates=row.data, status="applied")
    payload = {"patch": patch.to_dict(), "target": row.id, "diff": {}, "object": row.to_dict()}
    return event(number, "patch.applied", payload)


def patch_rejected(number: int, id: str, target: str, reason: str) -> Event:
    """Return the event that rejects a patch."""
    return event(number, "patch.rejected", {"patch_id": id, "target": target, "reason": reason})


class EventStoreContract:
    """What every `EventStore` does. Override `make`, or the fixture `log`."""

    def make(self) -> EventStore:
        """Return an empty log."""
        msg = "override make() to return an empty log, or the fixture `log`"
        raise NotImplementedError(msg)

    @pytest.fixture
    def log(self) -> Iterator[EventStore]:
        """An empty log, closed after the test."""
        log = self.make()
        yield log
        log.close()

    def test_empty(self, log: EventStore) -> None:
        """An empty log ends at 0 and gives nothing."""
        assert (log.tip(), log.count(), log.read(0, 10), list(log.iter_events())) == (0, 0, [], [])
        assert not log.has_event("evt_001")

    def test_append_many_takes_the_next_positions(self, log: EventStore) -> None:
        """A batch takes the positions after the tip; its entries know where it ends."""
        assert log.append_many([event(1), event(2)], expected=0, commit_id="a") == 2
        assert log.append_many([event(3)], expected=2, commit_id="b") == 3
        assert (log.tip(), log.count()) == (3, 3)
        assert [(row.position, row.last) for row in log.read(0, 10)] == [(1, 2), (2, 2), (3, 3)]
        assert [row.event for row in log.read(0, 10)] == [event(1), event(2), event(3)]

    def test_append_takes_the_tip_wherever_it_is(self, log: EventStore) -> None:
        """A single append needs no expectation."""
        assert [log.append(event(n)) for n in (1, 2, 3)] == [1, 2, 3]
        assert [(row.position, row.last) for row in log.read(0, 10)] == [(1, 1), (2, 2), (3, 3)]

    @pytest.mark.parametrize("expected", [0, 1, 3])
    def test_another_tip_than_expected_appends_nothing(self, log: EventStore, expected: int) -> None:
        """An expectation that does not hold is a conflict, whichever side of the tip it is on."""
        log.append_many([event(1), event(2)], expected=0, commit_id="a")
        with pytest.raises(ConcurrentWriterError, match=f"ends at 2, this write expected {expected}; read again"):
            log.append_many([event(3)], expected=expected, commit_id="b")
        assert (log.tip(), list(log.iter_events())) == (2, [event(1), event(2)])

    def test_the_same_commit_again_is_not_doubled(self, log: EventStore) -> None:
        """After an unknown outcome the very same batch is sent again, and lands once."""
        assert log.append_many([event(1), event(2)], expected=0, commit_id="a") == 2
        assert log.append_many([event(1), event(2)], expected=0, commit_id="a") == 2
        assert list(log.iter_events()) == [event(1), event(2)]

    def test_nothing_appended_moves_nothing(self, log: EventStore) -> None:
        """An empty batch is no batch."""
        log.append(event(1))
        assert log.append_many([], expected=1, commit_id="a") == 1
        assert log.count() == 1

    def test_events_come_back_exactly(self, log: EventStore) -> None:
        """Whatever canonical JSON holds comes back as it was, types included."""
        full = Event(
            id="evt_!~",
            type="note.\U0001f525",
            payload=DIFFICULT,
            actor="a 'b' \"c\" \\",
            frame_id="Run#1",
            caused_by="evt_000",
            timestamp="2026-01-01T00:00:00.000001Z",
        )
        log.append(full)
        for back in (log.get_event("evt_!~"), log.read(0, 1)[0].event, *log.iter_events()):
            assert back == full
            assert {key: type(back.payload[key]) for key in DIFFICULT} == {
                key: type(DIFFICULT[key]) for key in DIFFICULT
            }

    def test_a_page_ends_where_a_batch_ends(self, log: EventStore) -> None:
        """A page may exceed its limit, so that nobody projects half a batch."""
        log.append(event(1))
        log.append_many([event(n) for n in (2, 3, 4, 5)], expected=1, commit_id="a")
        log.append(event(6))
        positions = {limit: [row.position for row in log.read(0, limit)] for limit in (0, 1, 2, 5, 6, 100)}
        assert positions == {
            0: [],
            1: [1],
            2: [1, 2, 3, 4, 5],
            5: [1, 2, 3, 4, 5],
            6: [1, 2, 3, 4, 5, 6],
            100: [1, 2, 3, 4, 5, 6],
        }
        assert [row.position for row in log.read(2, 1)] == [3, 4, 5]  # from the middle of the batch
        assert log.read(6, 10) == log.read(99, 10) == []

    def test_iter_events(self, log: EventStore) -> None:
        """Iteration starts after a position and ends with `until`, also within a batch."""
        log.append_many([event(n) for n in (1, 2, 3, 4)], expected=0, commit_id="a")
        assert [row.id for row in log.iter_events(1, 3)] == ["evt_002", "evt_003"]
        assert [row.id for row in log.iter_events(until=2)] == ["evt_001", "evt_002"]
        assert [row.id for row in log.iter_events(2, 99)] == ["evt_003", "evt_004"]
        assert list(log.iter_events(3, 3)) == []

    def test_more_events_than_a_page(self, log: EventStore) -> None:
        """Iteration pages on by itself."""
        log.append_many([event(n) for n in range(1, 1501)], expected=0, commit_id="a")
        log.append_many([event(n) for n in range(1501, 2502)], expected=1500, commit_id="b")
        assert [row.payload["n"] for row in log.iter_events()] == list(range(1, 2502))

    def test_one_event(self, log: EventStore) -> None:
        """An event is found by its id; a missing one is an error that names it."""
        log.append(event(1))
        assert log.has_event("evt_001")
        assert log.get_event("evt_001") == event(1)
        log.append(event(2))
        assert log.get_event("evt_002") == event(2)
        assert not log.has_event("evt_003")
        with pytest.raises(EventNotFoundError, match="no event 'evt_003' in the log"):
            log.get_event("evt_003")

    def test_reads_are_detached(self, log: EventStore) -> None:
        """Editing what a log returned changes nothing in it."""
        log.append(event(1, payload={"list": [1]}))
        log.read(0, 1)[0].event.payload["list"].append(2)
        assert log.get_event("evt_001").payload == {"list": [1]}

    def test_reserve(self, log: EventStore) -> None:
        """Each counter counts for itself from 1, by blocks."""
        assert [log.reserve("evt", 1), log.reserve("evt", 10), log.reserve("evt", 1)] == [1, 2, 12]
        assert log.reserve("rel", 5) == 1

    def test_truncate_after(self, log: EventStore) -> None:
        """A cut drops what follows, and the next append takes its place."""
        log.append(event(1))
        log.append_many([event(2), event(3)], expected=1, commit_id="a")
        log.append(event(4))
        log.truncate_after(3)
        assert (log.tip(), log.count(), log.has_event("evt_004")) == (3, 3, False)
        with pytest.raises(UsageError, match="cannot cut the log after 2: its batch ends at 3"):
            log.truncate_after(2)
        with pytest.raises(UsageError, match="cannot cut the log after -1"):
            log.truncate_after(-1)
        log.truncate_after(1)
        assert log.append(event(5)) == 2
        assert [row.id for row in log.iter_events()] == ["evt_001", "evt_005"]
        assert log.get_event("evt_005") == event(5)

    def test_truncate_everything(self, log: EventStore) -> None:
        """A cut after 0 empties the log."""
        log.append_many([event(1), event(2)], expected=0, commit_id="a")
        log.truncate_after(0)
        assert (log.tip(), list(log.iter_events())) == (0, [])
        assert log.append(event(3)) == 1

    def test_truncate_beyond_the_tip(self, log: EventStore) -> None:
        """A cut after the tip is refused, and hinders nothing."""
        log.append(event(1))
        with pytest.raises(UsageError, match="cannot cut the log after 7; it holds the positions 0 to 1"):
            log.truncate_after(7)
        assert log.append(event(2)) == 2

    def test_threads(self, log: EventStore) -> None:
        """Appends and reservations from many threads: each lands once, no number goes out twice."""
        taken: list[int] = []

        def write(worker: int) -> None:
            for n in range(20):
                log.append(event(100 * worker + n))
                taken.append(log.reserve("evt", 2))

        threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(row.payload["n"] for row in log.iter_events()) == [
            100 * w + n for w in range(4) for n in range(20)
        ]
        assert [row.position for row in log.read(0, 100)] == list(range(1, 81))
        assert sorted(taken) == list(range(1, 161, 2))

    def test_close_twice(self, log: EventStore) -> None:
        """Closing again is harmless."""
        log.close()
        log.close()


class GraphStoreContract:
    """What every `GraphStore` does. Override `make`, or the fixture `pair`."""

    def make(self) -> tuple[EventStore, GraphStore]:
        """Return an empty log and the empty graph that belongs to it."""
        msg = "override make() to return an empty log with its graph store, or the fixture `pair`"
        raise NotImplementedError(msg)

    @pytest.fixture
    def pair(self) -> Iterator[tuple[EventStore, GraphStore]]:
        """An empty log with its empty graph, closed after the test."""
        log, store = self.make()
        yield log, store
        store.close()
        log.close()

    @pytest.fixture
    def store(self, pair: tuple[EventStore, GraphStore]) -> GraphStore:
        """The graph store alone."""
        return pair[1]

    def project(self, store: GraphStore, *events: Event) -> None:
        """Apply one batch at the store's head."""
        head = store.head()
        changes = fold(events)
        store.admit(changes)
        assert store.apply(changes, expected=head, new=head + len(events))

    def test_empty(self, store: GraphStore) -> None:
        """An empty graph stands at 0 and gives nothing."""
        assert store.head() == 0
        assert (store.objects(), store.objects("Memory"), store.objects(where={"a": 1})) == ([], [], [])
        assert (store.get_objects(["a"]), store.get_relations(["r"]), store.get_patches(["p"])) == ({}, {}, {})
        assert (store.get_objects([]), store.get_relations([]), store.get_patches([])) == ({}, {}, {})
        assert (
            store.relations()
            == store.relations(["a"])
            == store.relations(None, ["a"])
            == store.relations(None, None, ["MENTIONS"])
            == []
        )
        assert store.count_terms(["checkout"], ["Memory"]) == (0, {})
        assert store.search({"checkout": 1.0}, ["Memory"], (), 10) == []
        assert store.expand(["a"], ["MENTIONS"], ["Memory"], (), 10) == []

    def test_head_moves_with_the_changes(self, store: GraphStore) -> None:
        """Changes and head move in one step; what expects another head changes nothing."""
        self.project(store, object_created(1, "a"), event(2))
        assert store.head() == 2
        late = fold([object_created(3, "b"), object_removed(4, "a"), relation_created(5, "r", "a", "b")])
        for expected in (0, 1, 3):
            assert store.apply(late, expected=expected, new=expected + 3) is False
        assert (store.head(), [row.id for row in store.objects()], store.relations()) == (2, ["a"], [])

    def test_nothing_to_project_still_moves_the_head(self, store: GraphStore) -> None:
        """Lifecycle events and unknown types project to nothing."""
        self.project(store, event(1, "behavior.started"), event(2, "never.heard.of"))
        assert (store.head(), store.objects()) == (2, [])

    def test_object_comes_back_exactly(self, store: GraphStore) -> None:
        """Data, types of data, version and provenance are as they were; fields do not touch the object's own."""
        self.project(store, object_created(1, "a", "Entity", DIFFICULT))
        [row] = store.objects()
        provenance = {"created_by": "evt_001", "updated_by": "evt_001"}
        assert row == Object(id="a", type="Entity", data=DIFFICULT, version=1, provenance=provenance)
        assert {key: type(row.data[key]) for key in DIFFICULT} == {key: type(DIFFICULT[key]) for key in DIFFICULT}
        assert store.get_objects(["a", "b"]) == {"a": row}
        assert store.objects("Entity", {"exact": 0.1 + 0.2}) == [row]

    def test_relation_comes_back_exactly(self, store: GraphStore) -> None:
        """A relation's data and provenance are as they were; its endpoints need not exist."""
        self.project(store, relation_created(1, "r", "'}", '`$\\"', "AFFECTS", DIFFICULT))
        [row] = store.relations()
        assert row == Relation(
            id="r", source="'}", target='`$\\"', type="AFFECTS", data=DIFFICULT, provenance={"created_by": "evt_001"}
        )
        assert store.get_relations(["r", "s"]) == {"r": row}
        assert store.objects() == []
        assert store.get_objects(["'}"]) == {}

    def test_a_megabyte_of_text(self, store: GraphStore) -> None:
        """Long text is kept whole and found by its words."""
        text = "checkout " + "x'\"\\ " * 200_000 + "z"
        self.project(store, object_created(1, "a", data={"text": text}))
        assert store.objects()[0].data["text"] == text
        assert [hit.id for hit in store.search({"checkout": 1.0}, ["Memory"], (), 10)] == ["a"]

    def test_lists_are_ordered_by_id(self, store: GraphStore) -> None:
        """Every list has a total order, whatever the order of writing."""
        ids = ["b", "A", "a", "B", "10", "9", "~", "!"]
        self.project(store, *(object_created(n, key) for n, key in enumerate(ids)))
        self.project(store, *(relation_created(n, key, "a", "b") for n, key in enumerate(ids)))
        ordered = ["!", "10", "9", "A", "B", "a", "b", "~"]
        assert [row.id for row in store.objects()] == ordered
        assert list(store.get_objects(ids)) == ordered
        assert [row.id for row in store.relations()] == ordered
        assert list(store.get_relations(ids)) == ordered

    def test_objects_by_type_and_where(self, store: GraphStore) -> None:
        """`where` compares as JSON does, and a missing path is None."""
        self.project(
            store,
            object_created(1, "a", "Entity", {"n": 1, "deep": {"er": "x"}}),
            object_created(2, "b", "Entity", {"n": True}),
            object_created(3, "c", "Memory", {"n": 1.0}),
        )

        def ids(*args: Any) -> list[str]:
            return [row.id for row in store.objects(*args)]

        assert ids("Entity") == ["a", "b"]
        assert ids("Task") == []
        assert ids(None, {"n": 1}) == ["a", "c"]
        assert ids("Entity", {"n": {">=": 1}}) == ["a"]
        assert ids(None, {"deep.er": "x"}) == ["a"]
        assert ids(None, {"deep.er": None}) == ["b", "c"]

    def test_relations_by_ends_and_type(self, store: GraphStore) -> None:
        """Each argument takes several values; None is any, an empty collection is none."""
        self.project(
            store,
            relation_created(1, "r1", "a", "b", "MENTIONS"),
            relation_created(2, "r2", "a", "c", "AFFECTS"),
            relation_created(3, "r3", "b", "a", "AFFECTS"),
            relation_created(4, "r4", "c", "c", "MENTIONS"),
        )

        def ids(*args: Any) -> list[str]:
            return [row.id for row in store.relations(*args)]

        assert ids() == ["r1", "r2", "r3", "r4"]
        assert ids(["a", "b", "a"]) == ["r1", "r2", "r3"]
        assert ids(None, ["a", "c"]) == ["r2", "r3", "r4"]
        assert ids(["a"], ["c"]) == ["r2"]
        assert ids(None, None, ["MENTIONS"]) == ["r1", "r4"]
        assert ids(["a", "c"], None, ["MENTIONS", "UNHEARD_OF"]) == ["r1", "r4"]
        assert ids(["c"], ["c"], ["MENTIONS"]) == ["r4"]
        assert ids([]) == ids(None, []) == ids(None, None, []) == ids(["x"]) == []

    def test_object_removed_takes_its_relations_along(self, store: GraphStore) -> None:
        """Outgoing, incoming, dangling and circular relations go; relations of others stay."""
        self.project(store, *(object_created(n, key) for n, key in enumerate("abc")))
        ends = [("a", "b"), ("b", "a"), ("a", "x"), ("y", "a"), ("a", "a"), ("b", "c"), ("b", "x")]
        self.project(store, *(relation_created(n, f"r{n}", *pair) for n, pair in enumerate(ends)))
        self.project(store, object_removed(1, "a"))
        assert [row.id for row in store.objects()] == ["b", "c"]
        assert [(row.source, row.target) for row in store.relations()] == [("b", "c"), ("b", "x")]

    def test_object_removed_in_the_batch_that_relates_it(self, store: GraphStore) -> None:
        """The cascade reaches relations of the same batch, and none that come after."""
        self.project(
            store,
            object_created(1, "a"),
            relation_created(2, "r1", "a", "b"),
            object_removed(3, "a"),
            relation_created(4, "r2", "b", "a"),
        )
        assert (store.objects(), [row.id for row in store.relations()]) == ([], ["r2"])

    def test_removed_and_created_again_in_one_batch(self, store: GraphStore) -> None:
        """The new object has the new type and data alone, and none of the old relations."""
        self.project(store, object_created(1, "a", "Memory", {"old": 1}), relation_created(2, "r", "a", "b"))
        self.project(store, object_removed(3, "a"), object_created(4, "a", "Entity", {"new": 2}))
        [row] = store.objects()
        assert (row.type, row.data) == ("Entity", {"new": 2})
        assert (store.objects("Memory"), store.objects("Entity"), store.relations()) == ([], [row], [])

    def test_created_and_removed_in_one_batch(self, store: GraphStore) -> None:
        """What came and went leaves nothing behind."""
        self.project(
            store,
            object_created(1, "a"),
            relation_created(2, "r", "a", "b"),
            relation_removed(3, "r", "a", "b"),
            object_removed(4, "a"),
        )
        assert (store.objects(), store.relations()) == ([], [])

    def test_relation_removed(self, store: GraphStore) -> None:
        """A relation goes alone; its parallels stay."""
        self.project(store, relation_created(1, "r1", "a", "b"), relation_created(2, "r2", "a", "b"))
        self.project(store, relation_removed(3, "r1", "a", "b"))
        assert [row.id for row in store.relations()] == ["r2"]

    def test_relation_id_used_again_in_one_batch(self, store: GraphStore) -> None:
        """A relation removed, and its id used again between other ends, are told apart."""
        self.project(store, relation_created(1, "r", "a", "b"))
        self.project(store, relation_removed(2, "r", "a", "b"), relation_created(3, "r", "c", "d", "AFFECTS"))
        assert [(row.source, row.target, row.type) for row in store.relations()] == [("c", "d", "AFFECTS")]

    def test_relation_id_used_again_and_removed_in_one_batch(self, store: GraphStore) -> None:
        """The first relation of the id goes, although the batch removed another one of it since."""
        self.project(store, relation_created(1, "r", "a", "b"))
        self.project(
            store,
            relation_removed(2, "r", "a", "b"),
            relation_created(3, "r", "c", "d"),
            relation_removed(4, "r", "c", "d"),
        )
        assert store.relations() == []

    def test_patch_applied(self, store: GraphStore) -> None:
        """The resulting object replaces the old one whole."""
        self.project(store, object_created(1, "a", data={"gone": 1, "kept": 1}))
        self.project(store, patch_proposed(2, "p", "a", {"kept": 2}))
        assert store.get_patches(["p"])["p"] == Patch(id="p", target="a", op="update", updates={"kept": 2})
        self.project(store, patch_applied(3, "p", Object(id="a", type="Memory", data={"kept": 2}, version=2)))
        assert store.objects() == [Object(id="a", type="Memory", data={"kept": 2}, version=2)]
        assert store.get_patches(["p", "q"])["p"].status == "applied"

    def test_patch_that_removes(self, store: GraphStore) -> None:
        """An applied patch with the op remove takes the relations along like any removal."""
        self.project(store, object_created(1, "a"), relation_created(2, "r", "b", "a"))
        self.project(store, patch_applied(3, "p", Object(id="a", type="Memory", data={}), "remove"))
        assert (store.objects(), store.relations()) == ([], [])

    @pytest.mark.parametrize("at_once", [True, False])
    def test_patch_rejected(self, store: GraphStore, *, at_once: bool) -> None:
        """A verdict reaches its patch in the same batch and in a later one."""
        proposed, rejected = patch_proposed(1, "p", "a", {"x": 1}), patch_rejected(2, "p", "a", "it's \0 'no'")
        for batch in [(proposed, rejected)] if at_once else [(proposed,), (rejected,)]:
            self.project(store, *batch)
        [patch] = store.get_patches(["p"]).values()
        assert (patch.status, patch.updates) == ("rejected", {"x": 1})
        assert patch.reason is not None
        assert patch.reason.startswith("it's ")
        assert store.objects() == []

    def test_reads_are_detached(self, store: GraphStore) -> None:
        """Editing what a store returned changes nothing in it."""
        self.project(store, object_created(1, "a", data={"list": [1]}))
        self.project(store, relation_created(2, "r", "a", "b", data={"list": [1]}))
        store.objects()[0].data["list"].append(2)
        store.get_objects(["a"])["a"].provenance.clear()
        store.relations()[0].data["list"].append(2)
        store.get_relations(["r"])["r"].provenance.clear()
        assert store.objects()[0].data == store.relations()[0].data == {"list": [1]}
        assert store.objects()[0].provenance["created_by"] == "evt_001"
        assert store.relations()[0].provenance["created_by"] == "evt_002"

    def test_patches_are_detached(self, store: GraphStore) -> None:
        """Editing a patch that a store returned changes nothing in it."""
        self.project(store, patch_proposed(1, "p", "a", {"list": [1]}))
        store.get_patches(["p"])["p"].updates["list"].append(2)
        assert store.get_patches(["p"])["p"].updates == {"list": [1]}

    def test_count_terms(self, store: GraphStore) -> None:
        """How many objects of the kinds there are, and how many of them hold each term; unheld terms are left out."""
        self.project(
            store,
            object_created(1, "a", "Memory", {"label": "Checkout API", "text": "checkout, checkout!"}),
            object_created(2, "b", "Memory", {"label": "Checkouts"}),
            object_created(3, "c", "Entity", {"aliases": ["checkout"]}),
            object_created(4, "d", "Task", {"text": "checkout"}),
        )
        assert store.count_terms(["checkout", "api", "redis"], ["Memory"]) == (2, {"checkout": 2, "api": 1})
        assert store.count_terms(["checkout"], ["Memory", "Entity"]) == (3, {"checkout": 3})
        assert store.count_terms([], ["Memory"]) == (2, {})
        assert store.count_terms(["checkout"], []) == (0, {})

    def test_search_orders_by_score_then_newest_then_id(self, store: GraphStore) -> None:
        """The sum of the weights decides, then the time of the last event, then the id."""
        both, one = {"text": "redis session"}, {"text": "session"}
        self.project(store, object_created(1, "old-both", data=both), object_created(2, "older", data=one))
        self.project(store, object_created(3, "new-b", data=one), object_created(3, "new-a", data=one))
        self.project(store, object_created(4, "entity", "Entity", one), object_created(5, "none", data={"text": "x"}))
        hits = store.search({"redi": 2.5, "session": 0.5}, ["Memory"], (), 10)
        assert [(hit.id, hit.score, hit.terms) for hit in hits] == [
            ("old-both", 3.0, ("redi", "session")),
            ("new-a", 0.5, ("session",)),
            ("new-b", 0.5, ("session",)),
            ("older", 0.5, ("session",)),
        ]
        assert store.search({"redi": 2.5, "session": 0.5}, ["Memory"], (), 2) == hits[:2]
        assert [hit.id for hit in store.search({"session": 1.0}, ["Entity", "Task"], (), 9)] == ["entity"]
        assert store.search({"session": 1.0}, [], (), 9) == store.search({}, ["Memory"], (), 9) == []

    def test_search_without(self, store: GraphStore) -> None:
        """Top-level scalar fields are compared with one literal each; a missing field is None."""
        self.project(
            store,
            object_created(1, "a", data={"text": "redis", "trusted": True, "source": "it's"}),
            object_created(2, "b", data={"text": "redis", "trusted": False, "n": 1.5}),
            object_created(3, "c", data={"text": "redis", "list": [1]}),
        )

        def ids(*without: str) -> list[str]:
            return sorted(hit.id for hit in store.search({"redi": 1.0}, ["Memory"], without, 9))

        assert ids() == ids("absent") == ids("list") == ids("text") == ["a", "b", "c"]
        assert ids("trusted") == ["c"]
        assert ids("source") == ["b", "c"]
        assert ids("n", "source") == ["c"]

    def test_search_follows_changes(self, store: GraphStore) -> None:
        """An object is found by what it says now, and not at all once it is gone."""
        self.project(store, object_created(1, "a", data={"text": "redis"}))
        self.project(store, patch_applied(2, "p", Object(id="a", type="Memory", data={"text": "kafka"}, version=2)))
        assert store.count_terms(["redi", "kafka"], ["Memory"]) == (1, {"kafka": 1})
        self.project(store, object_removed(3, "a"))
        assert store.search({"kafka": 1.0}, ["Memory"], (), 9) == []

    def test_expand(self, store: GraphStore) -> None:
        """For each id, its relations to the newest neighbours that fit, in either direction, each relation once."""
        self.project(
            store,
            object_created(1, "hub", "Entity"),
            object_created(2, "old", "Memory", {"trusted": True}),
            object_created(3, "new", "Memory", {"trusted": False}),
            object_created(4, "task", "Task"),
            object_created(5, "far", "Memory"),
        )
        self.project(
            store,
            relation_created(1, "r1", "hub", "old", "MENTIONS", {"n": 1}),
            relation_created(2, "r2", "new", "hub", "MENTIONS"),
            relation_created(3, "r3", "hub", "new", "AFFECTS"),
            relation_created(4, "r4", "hub", "task", "MENTIONS"),
            relation_created(5, "r5", "hub", "dangling", "MENTIONS"),
            relation_created(6, "r6", "old", "far", "MENTIONS"),
            relation_created(7, "r7", "hub", "hub", "MENTIONS"),
        )

        def ids(starts: list[str], types: list[str], kinds: list[str], limit: int = 9, *without: str) -> list[str]:
            return [row.id for row in store.expand(starts, types, kinds, without, limit)]

        assert ids(["hub"], ["MENTIONS"], ["Memory"]) == ["r1", "r2"]
        assert ids(["hub"], ["MENTIONS", "AFFECTS"], ["Memory"]) == ["r1", "r2", "r3"]
        assert ids(["hub"], ["MENTIONS", "AFFECTS"], ["Memory"], 2) == ["r2", "r3"]
        assert ids(["hub"], ["MENTIONS", "AFFECTS"], ["Memory"], 1) == ["r2"]
        assert ids(["hub", "far", "hub"], ["MENTIONS"], ["Memory"], 1) == ["r2", "r6"]
        assert ids(["old"], ["MENTIONS"], ["Memory", "Entity"]) == ["r1", "r6"]
        assert ids(["hub"], ["MENTIONS"], ["Entity"]) == ["r7"]
        assert ids(["dangling"], ["MENTIONS"], ["Entity"]) == ["r5"]
        assert ids(["hub"], ["MENTIONS"], ["Memory"], 9, "trusted") == []
        assert ids(["old"], ["MENTIONS"], ["Memory", "Entity"], 9, "trusted") == ["r1", "r6"]
        assert ids([], ["MENTIONS"], ["Memory"]) == ids(["hub"], [], ["Memory"]) == ids(["hub"], ["MENTIONS"], []) == []
        [row] = store.expand(["old"], ["MENTIONS"], ["Entity"], (), 9)
        assert (row.source, row.target, row.data) == ("hub", "old", {"n": 1})

    def test_an_endpoint_becomes_an_object(self, store: GraphStore) -> None:
        """A dangling relation is an ordinary one once its endpoint exists."""
        self.project(store, relation_created(1, "r", "a", "b"))
        self.project(store, object_created(2, "b", "Entity", {"label": "B"}))
        assert [row.id for row in store.objects()] == ["b"]
        assert [row.id for row in store.relations(None, ["b"])] == ["r"]

    def test_swap(self, pair: tuple[EventStore, GraphStore]) -> None:
        """A shadow takes the store's place only if it stands at the tip."""
        log, store = pair
        log.append_many([object_created(1, "a"), object_created(2, "b")], expected=0, commit_id="c")
        self.project(store, object_created(9, "stale"))
        shadow = store.shadow()
        assert (shadow.head(), shadow.objects()) == (0, [])
        self.project(shadow, object_created(1, "a"), object_created(2, "b"))
        assert [row.id for row in store.objects()] == ["stale"]
        assert store.swap(shadow, tip=1) is False
        assert store.head() == 1
        assert store.swap(shadow, tip=2) is True
        assert (store.head(), [row.id for row in store.objects()]) == (2, ["a", "b"])
        self.project(store, relation_created(3, "r", "a", "b"))
        assert [row.id for row in store.relations(["a"])] == ["r"]
        assert store.count_terms(["a"], ["Memory"]) == (2, {"a": 1})

    def test_a_shadow_that_is_not_wanted(self, store: GraphStore) -> None:
        """Closing a shadow removes it and leaves the store as it is."""
        self.project(store, object_created(1, "a"))
        shadow = store.shadow()
        self.project(shadow, object_created(1, "b"))
        shadow.close()
        assert [row.id for row in store.objects()] == ["a"]

    def test_close_twice(self, store: GraphStore) -> None:
        """Closing again is harmless."""
        store.close()
        store.close()
