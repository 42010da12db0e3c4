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

from contextmesh.testing.event_store import EventStoreContract
from contextmesh.testing.graph_store import GraphStoreContract
from contextmesh.testing.making import (
    DIFFICULT,
    branch_of,
    ends_of,
    event,
    ids_of,
    object_created,
    object_removed,
    objects,
    patch_applied,
    patch_proposed,
    patch_rejected,
    relation_created,
    relation_removed,
)

__all__ = [
    "DIFFICULT",
    "EventStoreContract",
    "GraphStoreContract",
    "branch_of",
    "ends_of",
    "event",
    "ids_of",
    "object_created",
    "object_removed",
    "objects",
    "patch_applied",
    "patch_proposed",
    "patch_rejected",
    "relation_created",
    "relation_removed",
]
