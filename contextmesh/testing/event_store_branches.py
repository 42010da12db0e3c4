"""What every log does with its branches, one law a test."""

import pytest

from contextmesh.core.stores import Branch, EventStore
from contextmesh.errors import AlreadyExistsError, ConcurrentWriterError, EventNotFoundError, NotFoundError, UsageError
from contextmesh.testing.making import branch_of, ends_of, event, ids_of


class EventStoreBranches:
    """The laws of an `EventStoreContract` that are about branches."""

    branch_name: str  # of the logs under test, which may be branches themselves

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
