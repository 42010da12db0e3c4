"""What every log does, one law a test; what it does with its branches stands next door."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from contextmesh.core.events import Event
from contextmesh.core.stores import EventStore
from contextmesh.errors import ConcurrentWriterError, EventNotFoundError, UsageError
from contextmesh.testing.event_store_branches import EventStoreBranches
from contextmesh.testing.making import DIFFICULT, branch_of, event, ids_of


class EventStoreContract(EventStoreBranches):
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
