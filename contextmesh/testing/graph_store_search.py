"""What every graph store finds by words and by vectors, one law a test."""

from contextmesh.core.model import Object
from contextmesh.core.stores import GraphStore
from contextmesh.testing.making import object_created, object_removed, patch_applied
from contextmesh.testing.projecting import Projecting


class GraphStoreSearch(Projecting):
    """The laws of a `GraphStoreContract` that are about search."""

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
        second_us = 1_000_000
        assert [hit.updated_at - hits[0].updated_at for hit in hits] == [0, 2 * second_us, 2 * second_us, second_us]
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

    def test_vectors(self, store: GraphStore) -> None:
        """Objects are found by the angle between vectors; one that has changed or gone has no vector any more."""
        kinds = ["Entity", "Memory"]
        made = [object_created(at, key, data={"text": key}) for at, key in enumerate("abc", 1)]
        self.project(store, *made, object_created(4, "task", "Task"), object_created(5, "old", data={"gone": True}))
        assert store.near("plane", [1.0, 0.0], kinds, (), 9) == {}
        assert list(store.unplaced("plane", kinds, ["gone"], 2)) == ["a", "b"]
        vectors = {"a": (1, [1.0, 0.0]), "b": (1, [0.6, 0.8]), "c": (1, [1e-07, -1.0]), "absent": (1, [1.0, 0.0])}
        store.place("plane", vectors | {"old": (1, [1.0, 0.0]), "task": (1, [1.0, 0.0])})
        assert store.near("plane", [2.0, 0.0], kinds, ["gone"], 9) == {"a": 1.0, "b": 0.6, "c": 0.0}
        assert store.near("plane", [0.0, 1.0], ["Entity"], (), 9) == store.near("other", [1.0], kinds, (), 9) == {}
        assert store.unplaced("plane", kinds, (), 9) == {}
        assert list(store.unplaced("other", kinds, (), 9)) == ["a", "b", "c", "old"]
        self.project(store, patch_applied(6, "p", Object(id="a", type="Memory", data={"text": "x"}, version=2)))
        self.project(store, object_removed(7, "b"))
        store.place("plane", {"a": (1, [1.0, 0.0])})  # of a version that has passed
        assert store.near("plane", [1.0, 0.0], kinds, ["gone"], 9) == {"c": 0.0}
        assert {key: row.version for key, row in store.unplaced("plane", kinds, (), 9).items()} == {"a": 2}

    def test_vectors_are_remembered_by_the_digest_of_their_text(self, store: GraphStore) -> None:
        """They outlast the objects, are of one space each, and come back as 32 bits hold them."""
        store.remember_vectors("plane", {"d1": [0.5, -0.25], "d2": [1.0, 0.0]})
        store.remember_vectors("line", {"d1": [1.0]})
        assert store.known_vectors("plane", ["d1", "d3"]) == {"d1": [0.5, -0.25]}
        assert store.known_vectors("line", ["d1", "d2"]) == {"d1": [1.0]}
        assert store.known_vectors("plane", []) == {}
