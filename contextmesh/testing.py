"""Contract tests for stores: inherit them in a test module, say how to make a store, and run pytest.

Example:
    A third party's log, tested in three lines:

        class TestMyEventStore(EventStoreContract):
            def make(self):
                return MyEventStore()

    A store that needs fixtures overrides these instead of `make`; `other` is a second log:

        class TestMyEventStore(EventStoreContract):
            @pytest.fixture
            def log(self, tmp_path):
                return MyEventStore(tmp_path / "log")

            @pytest.fixture
            def other(self, tmp_path):
                return MyEventStore(tmp_path / "other")
"""

import threading
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from contextmesh.core.events import Event, to_timestamp
from contextmesh.core.model import Object, ObjectQuery, Patch, Relation, Where
from contextmesh.core.projection import fold
from contextmesh.core.stores import Branch, EventStore, GraphStore
from contextmesh.errors import (
    AlreadyExistsError,
    ConcurrentWriterError,
    EventNotFoundError,
    IncompatibleRuntimeState,
    NotFoundError,
    UsageError,
)

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


def branch_of(log: EventStore, position: int, name: str = "twig", run_id: str = "") -> Branch:
    """Return what a log is told to fork a branch."""
    return Branch(
        name=name,
        label=name.upper(),
        parent=log.branch_name,
        position=position,
        run_id=run_id or f"run of {name}",
        created_at="2026-01-01T00:00:00.000000Z",
    )


def ids_of(log: EventStore, after: int = 0, until: int | None = None) -> list[str]:
    """Return the ids of a log's events, by position."""
    return [row.id for row in log.iter_events(after, until)]


def ends_of(log: EventStore, after: int = 0, limit: int = 100) -> list[tuple[int, int]]:
    """Return what a page holds: the position of each entry, and the last one of its batch."""
    return [(row.position, row.last) for row in log.read(after, limit)]


def objects(store: GraphStore, type: str | None = None, where: Where | None = None) -> list[Object]:
    """Return the objects of a store that match, as a reader of it would."""
    return store.query(ObjectQuery(type=type, where=where or {})).matching()


class EventStoreContract:
    """What every `EventStore` does. Override `make`, or the fixtures `log` and `other`."""

    branch_name = ""  # of the logs under test, which may be branches themselves

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

    @pytest.fixture
    def other(self) -> Iterator[EventStore]:
        """Another empty log, of another history."""
        log = self.make()
        yield log
        log.close()

    def test_empty(self, log: EventStore) -> None:
        """An empty log ends at 0 and gives nothing."""
        assert (log.tip(), log.count(), log.read(0, 10), list(log.iter_events())) == (0, 0, [], [])
        assert log.position_of("evt_001") is None

    def test_identity(self, log: EventStore, other: EventStore) -> None:
        """Each history has a run id of its own, which stays; a log that was not forked has no name."""
        run_id, others = log.run_id, other.run_id
        assert run_id
        assert others
        assert run_id != others
        log.append(event(1))
        log.truncate_after(0)
        assert (log.run_id, other.run_id) == (run_id, others)
        assert log.branch_name == self.branch_name

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

    def test_the_same_commit_again_after_others_have_followed(self, log: EventStore) -> None:
        """Also then it is known by its place and its id; any other commit from there is a conflict."""
        log.append_many([event(1), event(2)], expected=0, commit_id="a")
        log.append_many([event(3)], expected=2, commit_id="b")
        log.append(event(4))
        assert log.append_many([event(1), event(2)], expected=0, commit_id="a") == 2
        assert log.append_many([event(3)], expected=2, commit_id="b") == 3
        for expected, commit_id in [(0, "b"), (2, "a"), (0, "c"), (3, "c")]:
            with pytest.raises(ConcurrentWriterError, match=f"ends at 4, this write expected {expected}; read again"):
                log.append_many([event(5)], expected=expected, commit_id=commit_id)
        assert ids_of(log) == ["evt_001", "evt_002", "evt_003", "evt_004"]

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
        assert log.position_of("evt_001") == 1
        assert log.get_event("evt_001") == event(1)
        log.append_many([event(3), event(2)], expected=1, commit_id="a")
        assert log.get_event("evt_002") == event(2)
        assert [log.position_of(f"evt_00{n}") for n in (1, 2, 3)] == [1, 3, 2]
        for missing in ("evt_004", "", "evt", "EVT_001", " evt_001", "evt_001\0"):
            assert log.position_of(missing) is None
        with pytest.raises(EventNotFoundError, match="no event 'evt_004' in the log"):
            log.get_event("evt_004")

    def test_reads_are_detached(self, log: EventStore) -> None:
        """Editing what a log returned changes nothing in it."""
        log.append(event(1, payload={"list": [1]}))
        log.read(0, 1)[0].event.payload["list"].append(2)
        assert log.get_event("evt_001").payload == {"list": [1]}

    def test_reserve(self, log: EventStore) -> None:
        """Each counter counts for itself from 1, by blocks."""
        assert [log.reserve("evt", 1), log.reserve("evt", 10), log.reserve("evt", 1)] == [1, 2, 12]
        assert log.reserve("rel", 5) == 1

    def test_raise_counter(self, log: EventStore) -> None:
        """A counter goes on behind a number that is in use, and never back."""
        log.raise_counter("evt", 41)
        assert log.reserve("evt", 2) == 42
        log.raise_counter("evt", 10)
        assert (log.reserve("evt", 1), log.reserve("rel", 1)) == (44, 1)
        log.raise_counter("patch", -7)
        assert log.reserve("patch", 1) == 1

    def test_truncate_after(self, log: EventStore) -> None:
        """A cut drops what follows, and the next append takes its place."""
        log.append(event(1))
        log.append_many([event(2), event(3)], expected=1, commit_id="a")
        log.append(event(4))
        log.truncate_after(3)
        assert (log.tip(), log.count(), log.position_of("evt_004")) == (3, 3, None)
        with pytest.raises(UsageError, match="cannot cut the log after 2: its batch ends at 3"):
            log.truncate_after(2)
        with pytest.raises(UsageError, match=r"cannot cut the .* after -1"):
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

    def test_everything_from_another_thread(self, log: EventStore) -> None:
        """A log belongs to no thread: whatever its maker may do, any other may."""
        log.append_many([event(1), event(2)], expected=0, commit_id="a")
        seen: list[Any] = []

        def use() -> None:
            fork = log.fork(branch_of(log, 1))
            fork.append(event(3))
            seen.extend([ids_of(log), ids_of(log.branch("twig")), log.position_of("evt_002"), log.get_event("evt_001")])
            log.drop_branch("twig")
            log.truncate_after(0)

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert seen == [["evt_001", "evt_002"], ["evt_001", "evt_003"], 2, event(1)]
        assert log.tip() == 0

    def test_close_twice(self, log: EventStore) -> None:
        """Closing again is harmless."""
        log.close()
        log.close()

    # branches

    def filled(self, log: EventStore) -> None:
        """Append five events: one, a batch of three, one."""
        log.append(event(1))
        log.append_many([event(2), event(3), event(4)], expected=1, commit_id="a")
        log.append(event(5))

    @pytest.mark.parametrize("position", [0, 1, 3, 4, 5])
    def test_a_fork_shares_what_came_before(self, log: EventStore, position: int) -> None:
        """It holds its parent's events up to the position, the middle of a batch included, and goes on from there."""
        self.filled(log)
        fork = log.fork(branch_of(log, position))
        shared = [f"evt_00{n}" for n in range(1, position + 1)]
        assert (fork.tip(), fork.count(), ids_of(fork)) == (position, position, shared)
        assert fork.append_many([event(7), event(8)], expected=position, commit_id="b") == position + 2
        assert fork.append(event(9)) == position + 3
        assert ids_of(fork) == [*shared, "evt_007", "evt_008", "evt_009"]
        assert ids_of(fork, position + 1) == ["evt_008", "evt_009"]
        assert ids_of(fork, 0, position + 1) == [*shared, "evt_007"]
        assert (fork.tip(), fork.count()) == (position + 3, position + 3)
        assert [row.event for row in fork.read(position, 9)] == [event(7), event(8), event(9)]

    def test_a_fork_and_its_parent_go_their_own_ways(self, log: EventStore) -> None:
        """Neither sees what the other appends after the fork, under the same ids and commits too."""
        self.filled(log)
        fork = log.fork(branch_of(log, 3))
        log.append_many([event(6, payload={"of": "parent"})], expected=5, commit_id="c")
        fork.append_many([event(6, payload={"of": "fork"})], expected=3, commit_id="c")
        assert ids_of(log) == ["evt_001", "evt_002", "evt_003", "evt_004", "evt_005", "evt_006"]
        assert ids_of(fork) == ["evt_001", "evt_002", "evt_003", "evt_006"]
        assert [log.get_event("evt_006").payload, fork.get_event("evt_006").payload] == [
            {"of": "parent"},
            {"of": "fork"},
        ]
        assert (log.position_of("evt_006"), fork.position_of("evt_006")) == (6, 4)

    def test_events_across_the_base(self, log: EventStore) -> None:
        """Shared events are found in the fork, later ones of its parent are not."""
        self.filled(log)
        fork = log.fork(branch_of(log, 3))
        fork.append(event(9))
        assert [fork.position_of(f"evt_00{n}") for n in range(1, 10)] == [1, 2, 3, None, None, None, None, None, 4]
        assert (fork.get_event("evt_003"), fork.get_event("evt_009")) == (event(3), event(9))
        assert log.position_of("evt_009") is None
        for holder, missing in ((fork, "evt_004"), (fork, "evt_005"), (log, "evt_009")):
            with pytest.raises(EventNotFoundError, match=f"no event '{missing}' in the log"):
                holder.get_event(missing)

    def test_a_page_ends_at_the_base(self, log: EventStore) -> None:
        """A batch that the fork shares in part ends at the base; the pages before and after end with their batches."""
        self.filled(log)
        fork = log.fork(branch_of(log, 3))
        fork.append_many([event(6), event(7)], expected=3, commit_id="b")
        fork.append(event(8))
        walked, after = [], 0
        while page := ends_of(fork, after, 1):
            walked.append(page)
            after = page[-1][0]
        assert walked == [[(1, 1)], [(2, 3), (3, 3)], [(4, 5), (5, 5)], [(6, 6)]]
        assert ends_of(fork, 2, 1) == [(3, 3)]
        assert ends_of(fork, 3, 2) == [(4, 5), (5, 5)]
        assert ends_of(fork, 6, 1) == ends_of(fork, 99, 9) == ends_of(fork, 0, 0) == []

    def test_many_events_across_the_base(self, log: EventStore) -> None:
        """Iteration pages on from the shared events to the fork's own."""
        log.append_many([event(n) for n in range(1, 1203)], expected=0, commit_id="a")
        fork = log.fork(branch_of(log, 1101))
        fork.append_many([event(n) for n in range(2001, 3102)], expected=1101, commit_id="b")
        numbers = [row.payload["n"] for row in fork.iter_events()]
        assert numbers == [*range(1, 1102), *range(2001, 3102)]

    def test_append_to_a_fork_with_an_expectation(self, log: EventStore) -> None:
        """What a fork expects is its own tip; the same commit again lands once there, too."""
        self.filled(log)
        fork = log.fork(branch_of(log, 1))
        assert fork.append_many([event(6), event(7)], expected=1, commit_id="b") == 3
        assert fork.append_many([event(6), event(7)], expected=1, commit_id="b") == 3
        fork.append(event(8))
        assert fork.append_many([event(6), event(7)], expected=1, commit_id="b") == 3
        for expected, commit_id in [(0, "a"), (1, "a"), (3, "b"), (5, "c")]:
            with pytest.raises(ConcurrentWriterError, match=f"ends at 4, this write expected {expected}; read again"):
                fork.append_many([event(9)], expected=expected, commit_id=commit_id)
        assert ids_of(fork) == ["evt_001", "evt_006", "evt_007", "evt_008"]

    def test_a_commit_of_the_parent_is_none_of_the_fork(self, log: EventStore) -> None:
        """Forked where a commit was about to land, the fork takes that commit for itself."""
        log.append(event(1))
        fork = log.fork(branch_of(log, 1))
        log.append_many([event(2)], expected=1, commit_id="b")
        assert fork.append_many([event(2)], expected=1, commit_id="b") == 2
        assert (ids_of(log), ids_of(fork)) == (["evt_001", "evt_002"], ["evt_001", "evt_002"])

    def test_counters_of_a_fork_are_its_own(self, log: EventStore) -> None:
        """A fork counts from 1; its ids carry its name."""
        log.append(event(1))
        assert log.reserve("evt", 5) == 1
        fork = log.fork(branch_of(log, 1))
        assert (fork.reserve("evt", 2), fork.reserve("rel", 1)) == (1, 1)
        fork.raise_counter("evt", 100)
        assert (log.reserve("evt", 1), fork.reserve("evt", 1)) == (6, 101)

    def test_what_a_fork_is_called(self, log: EventStore) -> None:
        """A fork has its own name and run; the registry keeps what its maker said, and whose child it is."""
        log.append(event(1))
        fork = log.fork(branch_of(log, 1, "twig", "a run"))
        assert (fork.branch_name, fork.run_id) == ("twig", "a run")
        assert (log.branch_name, log.run_id != "a run") == (self.branch_name, True)
        assert [row for row in log.branches() if row.name == "twig"] == [
            Branch(
                name="twig",
                label="TWIG",
                parent=self.branch_name,
                position=1,
                run_id="a run",
                created_at="2026-01-01T00:00:00.000000Z",
            )
        ]

    def test_a_fork_of_a_fork(self, log: EventStore) -> None:
        """Each holds what its ancestors held up to where it left them."""
        self.filled(log)
        one = log.fork(branch_of(log, 4, "one"))
        one.append_many([event(11), event(12)], expected=4, commit_id="b")
        two = one.fork(branch_of(one, 5, "two"))
        two.append(event(21))
        one.append(event(13))
        log.append(event(6))
        assert ids_of(two) == ["evt_001", "evt_002", "evt_003", "evt_004", "evt_011", "evt_021"]
        assert ids_of(one) == ["evt_001", "evt_002", "evt_003", "evt_004", "evt_011", "evt_012", "evt_013"]
        pages = [[(1, 1), (2, 4), (3, 4), (4, 4)], [(5, 5)], [(6, 6)]]
        assert [ends_of(two, after) for after in (0, 4, 5)] == pages  # each ends where a log does
        assert [two.position_of(key) for key in ("evt_002", "evt_005", "evt_011", "evt_012", "evt_021")] == [
            2,
            None,
            5,
            None,
            6,
        ]
        assert {row.name: row.parent for row in two.branches() if row.name in {"one", "two"}} == {
            "one": self.branch_name,
            "two": "one",
        }

    def test_a_fork_of_a_fork_before_its_base(self, log: EventStore) -> None:
        """It holds the events that its parent shares itself, up to its own base."""
        self.filled(log)
        one = log.fork(branch_of(log, 4, "one"))
        one.append(event(11))
        for position, name in [(0, "two"), (3, "three"), (4, "four")]:
            made = one.fork(branch_of(one, position, name))
            assert made.append(event(21)) == position + 1
            assert ids_of(made) == [f"evt_00{n}" for n in range(1, position + 1)] + ["evt_021"]
            assert ids_of(log.branch(name)) == ids_of(made)
            assert made.position_of("evt_011") is None
        assert ends_of(log.branch("three")) == [(1, 1), (2, 3), (3, 3)]  # a page ends at the base
        assert ends_of(log.branch("three"), 3) == [(4, 4)]

    def test_branches_are_listed_by_name(self, log: EventStore) -> None:
        """Every log of the family lists all of the family, in one order."""
        self.filled(log)
        fork = log.fork(branch_of(log, 5, "b"))
        fork.fork(branch_of(fork, 2, "c-1"))
        log.fork(branch_of(log, 0, "a_1"))
        names = sorted({"b", "c-1", "a_1", self.branch_name} - {""})
        assert [row.name for row in log.branches()] == names
        assert log.branches() == fork.branches() == log.branch("c-1").branches()

    def test_a_branch_is_opened_again_by_its_name(self, log: EventStore) -> None:
        """Any log of the family opens any branch; both handles are the same log."""
        self.filled(log)
        fork = log.fork(branch_of(log, 3))
        fork.append(event(9))
        again = fork.branch("twig").branch("twig")
        assert (again.branch_name, again.run_id, again.tip()) == ("twig", "run of twig", 4)
        assert again.append(event(10)) == 5
        assert ids_of(fork) == ids_of(log.branch("twig")) == ["evt_001", "evt_002", "evt_003", "evt_009", "evt_010"]
        assert [again.reserve("evt", 1), fork.reserve("evt", 1)] == [1, 2]
        for unknown in ("twi", "TWIG", ""):
            with pytest.raises(NotFoundError, match=f"no branch '{unknown}'; there are: .*twig"):
                log.branch(unknown)

    def test_a_name_is_used_once(self, log: EventStore) -> None:
        """Not even a dropped branch's name is given again, wherever in the family; what is refused makes nothing."""
        self.filled(log)
        fork = log.fork(branch_of(log, 3))
        fork.append(event(9))
        for parent in (log, fork):
            with pytest.raises(AlreadyExistsError, match="a branch was called 'twig' already"):
                parent.fork(branch_of(parent, 1, "twig", "another run"))
        assert ids_of(log.branch("twig")) == ["evt_001", "evt_002", "evt_003", "evt_009"]
        log.drop_branch("twig")
        for run_id in ("run of twig", "another run"):
            with pytest.raises(AlreadyExistsError, match="a branch was called 'twig' already"):
                log.fork(branch_of(log, 1, "twig", run_id))
        assert "twig" not in {row.name for row in log.branches()}

    @pytest.mark.parametrize("position", [-1, 6])
    def test_a_fork_at_no_position_of_the_log(self, log: EventStore, position: int) -> None:
        """A fork begins at 0, at the tip, or between; what is refused uses no name."""
        self.filled(log)
        with pytest.raises(UsageError, match=f"cannot fork at {position}; the log holds the positions 0 to 5"):
            log.fork(branch_of(log, position))
        assert log.fork(branch_of(log, 5)).tip() == 5

    def test_drop_a_branch(self, log: EventStore) -> None:
        """Its own events go; its parent, and its siblings, keep theirs."""
        self.filled(log)
        fork, sibling = log.fork(branch_of(log, 3)), log.fork(branch_of(log, 2, "sibling"))
        fork.append(event(9))
        sibling.append(event(10))
        log.drop_branch("twig")
        assert ids_of(log) == ["evt_001", "evt_002", "evt_003", "evt_004", "evt_005"]
        assert ids_of(sibling) == ids_of(log.branch("sibling")) == ["evt_001", "evt_002", "evt_010"]
        assert "twig" not in {row.name for row in sibling.branches()}
        with pytest.raises(NotFoundError, match=r"no branch 'twig'; there are: .*sibling"):
            log.branch("twig")
        for unknown in ("twig", "never"):
            with pytest.raises(NotFoundError, match=f"no branch '{unknown}'"):
                log.drop_branch(unknown)

    def test_a_dropped_branch_takes_nothing(self, log: EventStore) -> None:
        """Whoever still has it open is told."""
        log.append(event(1))
        fork = log.fork(branch_of(log, 1))
        log.drop_branch("twig")
        with pytest.raises(NotFoundError, match="the branch 'twig' was dropped"):
            fork.append(event(2))
        with pytest.raises(NotFoundError, match="the branch 'twig' was dropped"):
            fork.append_many([event(2)], expected=1, commit_id="b")
        assert (ids_of(log), [row.name for row in log.branches()]) == (
            ["evt_001"],
            [self.branch_name] if self.branch_name else [],
        )

    def test_a_branch_with_children_stays(self, log: EventStore) -> None:
        """Children hold their parent's events, so they go first."""
        self.filled(log)
        one = log.fork(branch_of(log, 3, "one"))
        two = one.fork(branch_of(one, 1, "two"))
        two.append(event(9))
        with pytest.raises(UsageError, match="cannot drop the branch 'one': two were forked from it; drop them first"):
            log.drop_branch("one")
        assert (ids_of(one), ids_of(two)) == (["evt_001", "evt_002", "evt_003"], ["evt_001", "evt_009"])
        one.drop_branch("two")
        log.drop_branch("one")
        assert {"one", "two"}.isdisjoint(row.name for row in log.branches())

    def test_no_cut_where_a_branch_begins(self, log: EventStore) -> None:
        """What a branch shares stays: no cut at its base or before, until it is dropped."""
        self.filled(log)
        log.fork(branch_of(log, 4, "at-4"))
        log.fork(branch_of(log, 1, "at-1"))
        for position, names in [(4, "at-4"), (1, "at-1, at-4"), (0, "at-1, at-4")]:
            with pytest.raises(UsageError, match=f"cannot cut the log after {position}: {names} begin there or later"):
                log.truncate_after(position)
        assert (log.tip(), ids_of(log.branch("at-4"))) == (5, ["evt_001", "evt_002", "evt_003", "evt_004"])
        log.truncate_after(5)
        log.drop_branch("at-4")
        log.truncate_after(4)
        assert (log.tip(), ids_of(log.branch("at-1"))) == (4, ["evt_001"])

    def test_no_cut_under_a_fork_of_a_fork(self, log: EventStore) -> None:
        """A branch that shares its ancestors' events keeps them, although it begins before its parent does."""
        self.filled(log)
        one = log.fork(branch_of(log, 4, "one"))
        one.append(event(11))
        one.fork(branch_of(one, 1, "two"))
        with pytest.raises(UsageError, match="cannot cut the log after 1: one begin there or later"):
            log.truncate_after(1)
        one.truncate_after(4)  # two begins before
        assert (ids_of(log.branch("two")), one.tip()) == (["evt_001"], 4)

    def test_cut_a_fork(self, log: EventStore) -> None:
        """A fork is cut like any log, down to its base, and leaves its parent as it is."""
        self.filled(log)
        fork = log.fork(branch_of(log, 3))
        fork.append_many([event(6), event(7)], expected=3, commit_id="b")
        fork.append(event(8))
        fork.truncate_after(5)
        with pytest.raises(UsageError, match="cannot cut the log after 4: its batch ends at 5"):
            fork.truncate_after(4)
        with pytest.raises(UsageError, match="cannot cut the branch 'twig' after 2; it shares its events up to 3"):
            fork.truncate_after(2)
        with pytest.raises(UsageError, match="cannot cut the log after 9; it holds the positions 0 to 5"):
            fork.truncate_after(9)
        assert ids_of(fork) == ["evt_001", "evt_002", "evt_003", "evt_006", "evt_007"]
        fork.truncate_after(3)
        assert (fork.tip(), fork.position_of("evt_006"), fork.run_id) == (3, None, "run of twig")
        assert fork.append(event(9)) == 4
        assert ids_of(log.branch("twig")) == ["evt_001", "evt_002", "evt_003", "evt_009"]
        assert log.tip() == 5


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
        assert (objects(store), objects(store, "Memory"), objects(store, where={"a": 1})) == ([], [], [])
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
        assert (store.head(), [row.id for row in objects(store)], store.relations()) == (2, ["a"], [])

    def test_nothing_to_project_still_moves_the_head(self, store: GraphStore) -> None:
        """Lifecycle events and unknown types project to nothing."""
        self.project(store, event(1, "behavior.started"), event(2, "never.heard.of"))
        assert (store.head(), objects(store)) == (2, [])

    def test_object_comes_back_exactly(self, store: GraphStore) -> None:
        """Data, types of data, version and provenance are as they were; fields do not touch the object's own."""
        self.project(store, object_created(1, "a", "Entity", DIFFICULT))
        [row] = objects(store)
        provenance = {"created_by": "evt_001", "updated_by": "evt_001"}
        assert row == Object(id="a", type="Entity", data=DIFFICULT, version=1, provenance=provenance)
        assert {key: type(row.data[key]) for key in DIFFICULT} == {key: type(DIFFICULT[key]) for key in DIFFICULT}
        assert store.get_objects(["a", "b"]) == {"a": row}
        assert objects(store, "Entity", {"exact": 0.1 + 0.2}) == [row]

    def test_relation_comes_back_exactly(self, store: GraphStore) -> None:
        """A relation's data and provenance are as they were; its endpoints need not exist."""
        self.project(store, relation_created(1, "r", "'}", '`$\\"', "AFFECTS", DIFFICULT))
        [row] = store.relations()
        assert row == Relation(
            id="r", source="'}", target='`$\\"', type="AFFECTS", data=DIFFICULT, provenance={"created_by": "evt_001"}
        )
        assert store.get_relations(["r", "s"]) == {"r": row}
        assert objects(store) == []
        assert store.get_objects(["'}"]) == {}

    def test_a_megabyte_of_text(self, store: GraphStore) -> None:
        """Long text is kept whole and found by its words."""
        text = "checkout " + "x'\"\\ " * 200_000 + "z"
        self.project(store, object_created(1, "a", data={"text": text}))
        assert objects(store)[0].data["text"] == text
        assert [hit.id for hit in store.search({"checkout": 1.0}, ["Memory"], (), 10)] == ["a"]

    def test_lists_are_ordered_by_id(self, store: GraphStore) -> None:
        """Every list has a total order, whatever the order of writing."""
        ids = ["b", "A", "a", "B", "10", "9", "~", "!"]
        self.project(store, *(object_created(n, key) for n, key in enumerate(ids)))
        self.project(store, *(relation_created(n, key, "a", "b") for n, key in enumerate(ids)))
        ordered = ["!", "10", "9", "A", "B", "a", "b", "~"]
        assert [row.id for row in objects(store)] == ordered
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
            return [row.id for row in objects(store, *args)]

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

    def test_a_query_leaves_no_match_out(self, store: GraphStore) -> None:
        """Whatever a store leaves to its caller, the candidates hold every match, and few enough under a limit."""
        values: list[Any] = [1, True, 2**70, "x\0", [1]]
        rows = [*({"n": value} for value in values), {}, {"deep": {"n": 2.5}}, {"n": 1.0}]
        self.project(store, *(object_created(n, f"o{n}", "Memory", row) for n, row in enumerate(rows)))
        self.project(store, relation_created(9, "r", "o1", "dangling"))
        expected: list[tuple[Where, list[int]]] = [
            ({"n": 1}, [0, 7]),
            ({"n": {"in": [True, "x\0", 2**70]}}, [1, 2, 3]),
            ({"n": {">": 1}}, [2]),
            ({"n": {"<": "y"}}, [3]),
            ({"n": {"!=": None}, "deep": None}, [0, 1, 2, 3, 4, 7]),
            ({"deep.n": {">=": 2.5, "<": 3}}, [6]),
            ({"n": {"not in": [1, None]}}, [1, 2, 3, 4]),
            ({"n": {"in": []}}, []),
        ]
        for where, found in expected:
            result = store.query(ObjectQuery(where=where))
            assert [row.id for row in result.matching()] == [f"o{n}" for n in found]
            assert result.residual.keys() <= where.keys()
            limited = store.query(ObjectQuery(type="Memory", where=where, limit=1))
            assert [row.id for row in limited.matching()[:1]] == [f"o{n}" for n in found[:1]]
            assert limited.residual or len(limited.objects) <= 1
        assert [row.id for row in store.query(ObjectQuery(limit=2)).objects] == ["o0", "o1"]

    def test_whether_there_is_one(self, store: GraphStore) -> None:
        """The mode `exists` is answered at once, or by candidates and the conditions that must decide."""
        self.project(store, object_created(1, "a", data={"n": 1}), relation_created(2, "r", "a", "dangling"))

        def exists(type: str | None, where: Where) -> bool:
            result = store.query(ObjectQuery(type=type, where=where, mode="exists"))
            assert (result.exists is None) is bool(result.residual)
            return bool(result.matching()) if result.exists is None else result.exists

        assert (exists(None, {}), exists("Memory", {}), exists("Entity", {})) == (True, True, False)
        assert (exists(None, {"n": 1}), exists(None, {"n": 2})) == (True, False)
        assert (exists("Memory", {"n": {">": 0}}), exists("Memory", {"n": {">": 1}})) == (True, False)

    def test_touching_and_adjacent(self, store: GraphStore) -> None:
        """Relations in either direction, each once; the ends beyond them, objects or not."""
        self.project(
            store,
            *(object_created(n, key) for n, key in enumerate("abcd")),
            relation_created(4, "r4", "a", "b", "MENTIONS", {"n": 1}),
            relation_created(5, "r3", "c", "a", "AFFECTS"),
            relation_created(6, "r2", "a", "a", "MENTIONS"),
            relation_created(7, "r1", "a", "dangling", "MENTIONS"),
            relation_created(8, "r0", "b", "a", "MENTIONS"),
        )

        def ids(*args: Any) -> list[str]:
            return [row.id for row in store.touching(*args)]

        assert ids(["a"]) == ["r0", "r1", "r2", "r3", "r4"]
        assert ids(["b", "c", "b"]) == ["r0", "r3", "r4"]
        assert ids(["b", "a"], ["AFFECTS", "UNHEARD_OF"]) == ["r3"]
        assert ids(["dangling"]) == ["r1"]
        assert ids(["d"]) == ids(["x"]) == ids([]) == ids(["a"], []) == []
        assert store.touching(["b"]) == [row for row in store.relations() if row.id in {"r0", "r4"}]
        assert store.adjacent(["a"]) == {"a", "b", "c", "dangling"}
        assert store.adjacent(["b", "c"]) == store.adjacent(["dangling"]) == {"a"}
        assert store.adjacent(["a", "b"], ["AFFECTS"]) == {"c"}
        assert (
            store.adjacent(["d"]) == store.adjacent(["x"]) == store.adjacent([]) == store.adjacent(["a"], []) == set()
        )

    def test_match_chain(self, store: GraphStore) -> None:
        """Types and directions decide; a node and a relation may fill several positions; an end is an object."""
        self.project(
            store,
            object_created(1, "a", "Memory", {"n": [1]}),
            object_created(2, "b", "Entity"),
            object_created(3, "c", "Entity"),
            relation_created(4, "r1", "a", "b", "MENTIONS", {"w": 1}),
            relation_created(5, "r0", "a", "b", "MENTIONS"),
            relation_created(6, "r2", "a", "c", "AFFECTS"),
            relation_created(7, "r3", "b", "b", "AFFECTS"),
            relation_created(8, "r4", "a", "Z", "MENTIONS"),  # an end without an object, and the first by its id
            relation_created(9, "r5", "Z", "b", "MENTIONS"),
        )

        def found(node_types: list[str | None], rels: list[tuple[str | None, str]], limit: int = 99) -> list[str]:
            matches = store.match_chain(node_types, rels, limit)
            parts = ([row.id for row in match.objects] + [row.id for row in match.relations] for match in matches)
            return [" ".join(ids) for ids in parts]

        assert found(["Memory", "Entity"], [("MENTIONS", "right")]) == ["a b r0", "a b r1"]
        assert found(["Entity", None], [(None, "left")]) == ["b a r0", "b a r1", "b b r3", "c a r2"]
        assert found([None, None], [("AFFECTS", "right")]) == ["a c r2", "b b r3"]
        assert found(["Entity", "Memory", "Entity"], [("AFFECTS", "left"), (None, "right")]) == [
            "c a b r2 r0",
            "c a b r2 r1",
            "c a c r2 r2",
        ]
        assert found(["Memory", None, None, None], [("MENTIONS", "right"), (None, "left"), ("AFFECTS", "right")]) == [
            "a b a c r0 r0 r2",
            "a b a c r0 r1 r2",
            "a b a c r1 r0 r2",
            "a b a c r1 r1 r2",
            "a b b b r0 r3 r3",
            "a b b b r1 r3 r3",
        ]
        assert found(["Entity", *[None] * 10], [("AFFECTS", "right")] * 10) == [" ".join(["b"] * 11 + ["r3"] * 10)]
        assert (found(["Entity"], []), found([None], [], 2), found(["Task"], [])) == (["b", "c"], ["a", "b"], [])
        assert found(["Entity", None], [(None, "left")], 3) == ["b a r0", "b a r1", "b b r3"]
        assert found([None, "Entity"], [("MENTIONS", "right")], 1) == ["a b r0"]
        assert found(["Memory", None], [("MENTIONS", "right")], 1) == ["a b r0"]
        assert found(["Memory", "Entity"], [("MENTIONS", "right")], 0) == []
        assert found(["Task", None], [(None, "right")]) == found([None, None], [("UNHEARD_OF", "left")]) == []
        [match] = store.match_chain(["Memory", "Entity"], [("AFFECTS", "right")], 9)
        assert (match.objects[0], match.relations) == (
            store.get_objects(["a"])["a"],
            (store.get_relations(["r2"])["r2"],),
        )

    def test_object_removed_takes_its_relations_along(self, store: GraphStore) -> None:
        """Outgoing, incoming, dangling and circular relations go; relations of others stay."""
        self.project(store, *(object_created(n, key) for n, key in enumerate("abc")))
        ends = [("a", "b"), ("b", "a"), ("a", "x"), ("y", "a"), ("a", "a"), ("b", "c"), ("b", "x")]
        self.project(store, *(relation_created(n, f"r{n}", *pair) for n, pair in enumerate(ends)))
        self.project(store, object_removed(1, "a"))
        assert [row.id for row in objects(store)] == ["b", "c"]
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
        assert (objects(store), [row.id for row in store.relations()]) == ([], ["r2"])

    def test_removed_and_created_again_in_one_batch(self, store: GraphStore) -> None:
        """The new object has the new type and data alone, and none of the old relations."""
        self.project(store, object_created(1, "a", "Memory", {"old": 1}), relation_created(2, "r", "a", "b"))
        self.project(store, object_removed(3, "a"), object_created(4, "a", "Entity", {"new": 2}))
        [row] = objects(store)
        assert (row.type, row.data) == ("Entity", {"new": 2})
        assert (objects(store, "Memory"), objects(store, "Entity"), store.relations()) == ([], [row], [])

    def test_created_and_removed_in_one_batch(self, store: GraphStore) -> None:
        """What came and went leaves nothing behind."""
        self.project(
            store,
            object_created(1, "a"),
            relation_created(2, "r", "a", "b"),
            relation_removed(3, "r", "a", "b"),
            object_removed(4, "a"),
        )
        assert (objects(store), store.relations()) == ([], [])

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
        assert objects(store) == [Object(id="a", type="Memory", data={"kept": 2}, version=2)]
        assert store.get_patches(["p", "q"])["p"].status == "applied"

    def test_patch_that_removes(self, store: GraphStore) -> None:
        """An applied patch with the op remove takes the relations along like any removal."""
        self.project(store, object_created(1, "a"), relation_created(2, "r", "b", "a"))
        self.project(store, patch_applied(3, "p", Object(id="a", type="Memory", data={}), "remove"))
        assert (objects(store), store.relations()) == ([], [])

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
        assert objects(store) == []

    def test_reads_are_detached(self, store: GraphStore) -> None:
        """Editing what a store returned changes nothing in it."""
        self.project(store, object_created(1, "a", data={"list": [1]}))
        self.project(store, relation_created(2, "r", "a", "b", data={"list": [1]}))
        objects(store)[0].data["list"].append(2)
        store.get_objects(["a"])["a"].provenance.clear()
        store.relations()[0].data["list"].append(2)
        store.get_relations(["r"])["r"].provenance.clear()
        assert objects(store)[0].data == store.relations()[0].data == {"list": [1]}
        assert objects(store)[0].provenance["created_by"] == "evt_001"
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
        assert [row.id for row in objects(store)] == ["b"]
        assert [row.id for row in store.relations(None, ["b"])] == ["r"]

    def test_swap(self, pair: tuple[EventStore, GraphStore]) -> None:
        """A shadow takes the store's place only if it stands at the tip."""
        log, store = pair
        log.append_many([object_created(1, "a"), object_created(2, "b")], expected=0, commit_id="c")
        self.project(store, object_created(9, "stale"))
        shadow = store.shadow()
        assert (shadow.head(), objects(shadow)) == (0, [])
        self.project(shadow, object_created(1, "a"), object_created(2, "b"))
        assert [row.id for row in objects(store)] == ["stale"]
        assert store.swap(shadow, tip=1) is False
        assert store.head() == 1
        assert store.swap(shadow, tip=2) is True
        assert (store.head(), [row.id for row in objects(store)]) == (2, ["a", "b"])
        self.project(store, relation_created(3, "r", "a", "b"))
        assert [row.id for row in store.relations(["a"])] == ["r"]
        assert store.count_terms(["a"], ["Memory"]) == (2, {"a": 1})

    def test_a_shadow_that_is_not_wanted(self, store: GraphStore) -> None:
        """Closing a shadow removes it and leaves the store as it is."""
        self.project(store, object_created(1, "a"))
        shadow = store.shadow()
        self.project(shadow, object_created(1, "b"))
        shadow.close()
        assert [row.id for row in objects(store)] == ["a"]

    def test_a_graph_belongs_to_one_run(self, store: GraphStore) -> None:
        """The first run that claims a graph has it; another one's events are not mixed with it."""
        store.claim("one")
        self.project(store, object_created(1, "a"))
        store.claim("one")
        with pytest.raises(IncompatibleRuntimeState, match="shows another log's events"):
            store.claim("two")
        assert (store.head(), [row.id for row in objects(store)]) == (1, ["a"])

    def test_a_shadow_is_not_claimed_yet(self, store: GraphStore) -> None:
        """Whose it will be is its maker's to say; swapped in, it brings its run along."""
        store.claim("one")
        shadow = store.shadow()
        shadow.claim("one")
        assert store.swap(shadow, tip=0) is True
        store.claim("one")
        with pytest.raises(IncompatibleRuntimeState, match="shows another log's events"):
            store.claim("two")

    def full(self, store: GraphStore) -> None:
        """Project one of everything: 6 events."""
        self.project(
            store,
            object_created(1, "a", "Entity", {"label": "Checkout API", "list": [1], "n": 1.5}),
            object_created(2, "b", "Memory", {"text": "redis"}),
            relation_created(3, "r", "a", "b", "MENTIONS", {"why": "said so"}),
            relation_created(4, "s", "b", "dangling", "AFFECTS"),
            patch_proposed(5, "p", "b", {"text": "kafka"}),
        )
        self.project(store, patch_rejected(6, "p", "b", "no"))

    def drawn(self, store: GraphStore) -> dict[str, Any]:
        """Return all that a graph shows of what `full` projects."""
        kinds = ["Entity", "Memory"]
        return {
            "head": store.head(),
            "objects": objects(store),
            "by kind": [objects(store, kind) for kind in kinds],
            "relations": store.relations(),
            "by end": store.relations(["a", "b"], ["b", "dangling"], ["MENTIONS", "AFFECTS"]),
            "patches": store.get_patches(["p"]),
            "terms": store.count_terms(["checkout", "redi", "kafka"], kinds),
            "hits": store.search({"checkout": 2.0, "redi": 1.0, "kafka": 1.0}, kinds, (), 9),
            "around": store.expand(["b"], ["MENTIONS"], kinds, (), 9),
        }

    def test_a_copy_holds_everything(self, store: GraphStore) -> None:
        """Objects, relations, patches, what is searched, and the head."""
        self.full(store)
        origin = self.drawn(store)
        assert (origin["head"], len(origin["objects"]), len(origin["relations"])) == (6, 2, 2)
        assert [hit.id for hit in origin["hits"]] == ["a", "b"]
        copy = store.copy("another run")
        assert self.drawn(copy) == origin
        copy.close()
        assert self.drawn(store) == origin

    def test_a_copy_and_its_origin_go_their_own_ways(self, store: GraphStore) -> None:
        """What is projected into one is not in the other."""
        self.full(store)
        origin = self.drawn(store)
        copy = store.copy("another run")
        self.project(
            copy,
            object_removed(7, "a", "Entity"),
            patch_applied(8, "q", Object(id="b", type="Memory", data={"text": "kafka"}, version=2)),
            relation_created(9, "t", "b", "c", "RESOLVED_BY"),
        )
        assert self.drawn(store) == origin
        changed = self.drawn(copy)
        assert (changed["head"], [row.id for row in changed["objects"]]) == (9, ["b"])
        assert [row.id for row in changed["relations"]] == ["s", "t"]
        assert changed["terms"] == (1, {"kafka": 1})
        self.project(store, object_created(7, "c", "Memory", {"text": "kafka"}), relation_removed(8, "r", "a", "b"))
        assert self.drawn(copy) == changed
        assert ([row.id for row in objects(store)], [row.id for row in store.relations()]) == (["a", "b", "c"], ["s"])
        copy.close()

    def test_a_copy_belongs_to_the_other_run(self, store: GraphStore) -> None:
        """Whether or not its origin was claimed; the origin stays its own run's."""
        store.claim("one")
        copy = store.copy("two")
        copy.claim("two")
        with pytest.raises(IncompatibleRuntimeState, match="shows another log's events"):
            copy.claim("one")
        store.claim("one")
        with pytest.raises(IncompatibleRuntimeState, match="shows another log's events"):
            store.claim("two")
        copy.close()

    def test_a_copy_of_nothing(self, store: GraphStore) -> None:
        """An empty graph has an empty copy, which takes events."""
        copy = store.copy("two")
        assert (copy.head(), objects(copy), copy.relations()) == (0, [], [])
        self.project(copy, object_created(1, "a"))
        assert ([row.id for row in objects(copy)], objects(store)) == (["a"], [])
        copy.close()

    def test_a_branch_has_a_graph_of_its_own(self, store: GraphStore) -> None:
        """It begins empty, is the same one for whoever asks, and shares nothing with its parent's or a sibling's."""
        self.full(store)
        origin = self.drawn(store)
        branch, sibling = store.branch("twig"), store.branch("twig-2")
        assert (branch.head(), objects(branch), branch.relations()) == (0, [], [])
        branch.claim("run of twig")
        self.project(branch, object_created(1, "c", data={"text": "redis"}), relation_created(2, "r", "c", "a"))
        assert self.drawn(store) == origin
        again = store.branch("twig")
        assert (again.head(), [row.id for row in objects(again)]) == (2, ["c"])
        assert [row.id for row in again.relations()] == ["r"]
        assert [hit.id for hit in again.search({"redi": 1.0}, ["Memory"], (), 9)] == ["c"]
        assert [row.id for row in objects(branch.branch("twig"))] == ["c"]  # any of the family opens any
        assert (sibling.head(), objects(sibling)) == (0, [])
        with pytest.raises(IncompatibleRuntimeState, match="shows another log's events"):
            again.claim("run of twig-2")
        sibling.claim("run of twig-2")

    def test_a_copy_becomes_the_graph_of_a_branch(self, pair: tuple[EventStore, GraphStore]) -> None:
        """So a fork at the tip need not replay: the copy is swapped in where the branch's log begins."""
        log, store = pair
        log.append_many([object_created(1, "a"), relation_created(2, "r", "a", "b")], expected=0, commit_id="c")
        self.project(store, object_created(1, "a"), relation_created(2, "r", "a", "b"))
        fork = log.fork(branch_of(log, 2))
        branch = store.branch("twig")
        assert branch.swap(store.copy(fork.run_id), tip=fork.tip()) is True
        branch.claim(fork.run_id)
        fork.append(object_created(3, "c"))
        self.project(branch, object_created(3, "c"))
        assert (branch.head(), [row.id for row in objects(branch)], len(branch.relations())) == (3, ["a", "c"], 1)
        assert (store.head(), [row.id for row in objects(store)]) == (2, ["a"])
        assert [row.id for row in objects(store.branch("twig"))] == ["a", "c"]

    def test_drop_the_graph_of_a_branch(self, store: GraphStore) -> None:
        """It is gone, and nothing else is; one that is not there is no error."""
        self.full(store)
        origin = self.drawn(store)
        for name in ("twig", "twig-2"):
            self.project(store.branch(name), object_created(1, name))
        store.drop_branch("twig")
        store.drop_branch("never")
        assert (store.branch("twig").head(), objects(store.branch("twig"))) == (0, [])
        assert [row.id for row in objects(store.branch("twig-2"))] == ["twig-2"]
        assert self.drawn(store) == origin

    def test_close_twice(self, store: GraphStore) -> None:
        """Closing again is harmless."""
        store.close()
        store.close()
