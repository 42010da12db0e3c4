"""The graphs that every graph store has beside its own: shadows, copies, branches. One law a test."""

from typing import Any

import pytest

from contextmesh.core.model import Object
from contextmesh.core.stores import EventStore, GraphStore
from contextmesh.errors import IncompatibleRuntimeState
from contextmesh.testing.making import (
    branch_of,
    object_created,
    object_removed,
    objects,
    patch_applied,
    patch_proposed,
    patch_rejected,
    relation_created,
    relation_removed,
)
from contextmesh.testing.projecting import Projecting


class GraphStoreCopies(Projecting):
    """The laws of a `GraphStoreContract` that are about shadows, copies and branches."""

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
