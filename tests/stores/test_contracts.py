"""The contracts that every store fulfils, over each store that the package brings."""

import pytest

from contextmesh.core.stores import EventStore, GraphStore, InMemoryEventStore, InMemoryGraphStore
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from contextmesh.testing import EventStoreContract, GraphStoreContract


class TestInMemoryEventStore(EventStoreContract):
    def make(self) -> InMemoryEventStore:
        return InMemoryEventStore()


class TestFalkorDBEventStore(EventStoreContract):
    @pytest.fixture
    def log(self, server: Server, name: str) -> FalkorDBEventStore:
        return FalkorDBEventStore(server, name)

    def test_truncate_after(self, log: EventStore) -> None:
        super().test_truncate_after(log)

    def test_truncate_everything(self, log: EventStore) -> None:
        super().test_truncate_everything(log)

    def test_truncate_beyond_the_tip(self, log: EventStore) -> None:
        super().test_truncate_beyond_the_tip(log)


class TestInMemoryGraphStore(GraphStoreContract):
    def make(self) -> tuple[InMemoryEventStore, InMemoryGraphStore]:
        return InMemoryEventStore(), InMemoryGraphStore()

    def test_patches_are_detached(self, store: GraphStore) -> None:
        super().test_patches_are_detached(store)


class TestFalkorDBGraphStore(GraphStoreContract):
    @pytest.fixture
    def pair(self, server: Server, name: str) -> tuple[FalkorDBEventStore, FalkorDBGraphStore]:
        return FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name)

    def test_relation_id_used_again_and_removed_in_one_batch(self, store: GraphStore) -> None:
        super().test_relation_id_used_again_and_removed_in_one_batch(store)


def test_a_contract_without_a_store_says_what_to_do() -> None:
    with pytest.raises(NotImplementedError, match=r"override make.. to return an empty log, or the fixture `log`"):
        EventStoreContract().make()
    with pytest.raises(NotImplementedError, match=r"override make.. to return an empty log with its graph store"):
        GraphStoreContract().make()
