"""The contracts that every store fulfils, over each store that the package brings, and over a branch of each."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.core.stores import EventStore
from contextmesh.errors import ContextMeshError
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from contextmesh.stores.sqlite import SQLiteEventStore
from contextmesh.testing import EventStoreContract, GraphStoreContract, branch_of, ends_of, event, ids_of
from tests.conftest import Workspace


class TestInMemoryEventStore(EventStoreContract):
    def make(self) -> InMemoryEventStore:
        return InMemoryEventStore()


class TestSQLiteEventStore(EventStoreContract):
    @pytest.fixture
    def log(self, tmp_path: Path) -> Iterator[SQLiteEventStore]:
        log = SQLiteEventStore(tmp_path / "log.db")
        yield log
        log.close()

    @pytest.fixture
    def other(self, tmp_path: Path) -> Iterator[SQLiteEventStore]:
        log = SQLiteEventStore(tmp_path / "other.db")
        yield log
        log.close()


class TestFalkorDBEventStore(EventStoreContract):
    @pytest.fixture
    def log(self, server: Server, name: str) -> FalkorDBEventStore:
        return FalkorDBEventStore(server, name)

    @pytest.fixture
    def other(self, server: Server, workspace: Workspace) -> Iterator[FalkorDBEventStore]:
        with workspace() as name:
            yield FalkorDBEventStore(server, name)


class OfABranch(EventStoreContract):
    """A branch that begins with nothing is a log like any other."""

    branch_name = "branch"

    @pytest.fixture
    def log(self, root: EventStore) -> EventStore:
        return root.fork(branch_of(root, 0, "branch"))

    @pytest.fixture
    def other(self, root: EventStore) -> EventStore:
        return root.fork(branch_of(root, 0, "another"))


class TestBranchInMemory(OfABranch):
    @pytest.fixture
    def root(self) -> InMemoryEventStore:
        return InMemoryEventStore()


class TestBranchInSQLite(OfABranch):
    @pytest.fixture
    def root(self, tmp_path: Path) -> Iterator[SQLiteEventStore]:
        root = SQLiteEventStore(tmp_path / "log.db")
        yield root
        root.close()


class TestBranchInFalkorDB(OfABranch):
    @pytest.fixture
    def root(self, server: Server, name: str) -> FalkorDBEventStore:
        return FalkorDBEventStore(server, name)


class TestInMemoryGraphStore(GraphStoreContract):
    def make(self) -> tuple[InMemoryEventStore, InMemoryGraphStore]:
        return InMemoryEventStore(), InMemoryGraphStore()


class TestFalkorDBGraphStore(GraphStoreContract):
    @pytest.fixture
    def pair(self, server: Server, name: str) -> tuple[FalkorDBEventStore, FalkorDBGraphStore]:
        return FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name)


def test_a_contract_without_a_store_says_what_to_do() -> None:
    with pytest.raises(NotImplementedError, match=r"override make.. to return an empty log, or the fixture `log`"):
        EventStoreContract().make()
    with pytest.raises(NotImplementedError, match=r"override make.. to return an empty log with its graph store"):
        GraphStoreContract().make()


# Whatever is done to them, in whatever order: the logs of every kind tell the same.

NAMES = ("", "a", "b", "c")
names, numbers = st.sampled_from(NAMES), st.integers(-1, 9)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), names, st.integers(1, 4)),
        st.tuples(st.just("expect"), names, numbers),
        st.tuples(st.just("fork"), names, numbers, st.sampled_from(NAMES[1:])),
        st.tuples(st.just("truncate"), names, numbers),
        st.tuples(st.just("drop"), names),
        st.tuples(st.just("reserve"), names, st.integers(1, 3)),
        st.tuples(st.just("raise"), names, numbers),
    ),
    min_size=1,
    max_size=14,
)


def outcome(use: Callable[[], Any]) -> Any:
    try:
        return use()
    except ContextMeshError:  # which one, the contract tells; where two would fit, a store may name either
        return "refused"


def done(root: EventStore, step: tuple[Any, ...], fresh: Iterator[int]) -> Any:
    """Take one step, in a log that is opened for it."""
    kind, name, *arguments = step
    number = arguments[0] if arguments else 0
    log = root.branch(name) if name else root
    rows = [event(next(fresh)) for _ in range(number if kind == "append" else 1)]
    steps: dict[str, Callable[[], Any]] = {
        "append": lambda: log.append_many(rows, expected=log.tip(), commit_id=rows[0].id),
        "expect": lambda: log.append_many(rows, expected=number, commit_id=rows[0].id),
        "fork": lambda: ids_of(log.fork(branch_of(log, number, arguments[1], f"run {rows[0].id}"))),
        "truncate": lambda: log.truncate_after(number),
        "drop": lambda: log.drop_branch(name),
        "reserve": lambda: log.reserve("evt", number),
        "raise": lambda: log.raise_counter("evt", number),
    }
    return steps[kind]()


def told(root: EventStore) -> Any:
    """All that a family of logs says."""
    branches = root.branches()
    logs = {row.name: root.branch(row.name) for row in branches} | {"": root}
    ids = sorted({key for log in logs.values() for key in ids_of(log)})
    return branches, {
        name: (
            (log.tip(), log.count(), ids_of(log)),
            [ends_of(log, after, limit) for after in range(log.tip() + 2) for limit in (1, 2, 50)],
            [log.position_of(key) for key in ids],
        )
        for name, log in logs.items()
    }


@given(steps=steps)
def test_every_log_tells_the_same(
    server: Server, workspace: Workspace, tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[Any, ...]]
) -> None:
    with workspace() as name:
        file = SQLiteEventStore(tmp_path_factory.mktemp("logs") / "log.db")
        assert file._file._connection is not None
        file._file._connection.execute("PRAGMA synchronous = OFF")  # no power cut is simulated
        roots = [InMemoryEventStore(), FalkorDBEventStore(server, name), file]
        counts = [itertools.count(1) for _ in roots]
        for step in steps:
            first, *others = [
                outcome(lambda root=root, fresh=fresh: done(root, step, fresh))  # noqa: B023 - called at once
                for root, fresh in zip(roots, counts, strict=True)
            ]
            assert others == [first, first], step
        first, *others = [told(root) for root in roots]
        assert others == [first, first]
        file.close()
