"""What every graph store does, one law a test; queries, search and the graphs beside it stand next door."""

from collections.abc import Iterator

import pytest

from contextmesh.core.model import Object, Patch, Relation
from contextmesh.core.projection import fold
from contextmesh.core.stores import EventStore, GraphStore
from contextmesh.testing.graph_store_copies import GraphStoreCopies
from contextmesh.testing.graph_store_reads import GraphStoreReads
from contextmesh.testing.graph_store_search import GraphStoreSearch
from contextmesh.testing.making import (
    DIFFICULT,
    event,
    object_created,
    object_removed,
    objects,
    patch_applied,
    patch_proposed,
    patch_rejected,
    relation_created,
    relation_removed,
)


class GraphStoreContract(GraphStoreReads, GraphStoreSearch, GraphStoreCopies):
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

    def test_an_endpoint_becomes_an_object(self, store: GraphStore) -> None:
        """A dangling relation is an ordinary one once its endpoint exists."""
        self.project(store, relation_created(1, "r", "a", "b"))
        self.project(store, object_created(2, "b", "Entity", {"label": "B"}))
        assert [row.id for row in objects(store)] == ["b"]
        assert [row.id for row in store.relations(None, ["b"])] == ["r"]

    def test_close_twice(self, store: GraphStore) -> None:
        """Closing again is harmless."""
        store.close()
        store.close()
