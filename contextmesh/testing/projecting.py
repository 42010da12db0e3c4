"""What the contracts of a graph store share."""

from contextmesh.core.events import Event
from contextmesh.core.projection import fold
from contextmesh.core.stores import GraphStore


class Projecting:
    """A way to project events into a store."""

    def project(self, store: GraphStore, *events: Event) -> None:
        """Apply one batch at the store's head."""
        head = store.head()
        changes = fold(events)
        store.admit(changes)
        assert store.apply(changes, expected=head, new=head + len(events))
