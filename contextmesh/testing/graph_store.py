"""What every graph store does, one law a test."""

from collections.abc import Iterator
from typing import Any

import pytest

from contextmesh.core.events import Event
from contextmesh.core.model import Object, ObjectQuery, Patch, Relation, Where
from contextmesh.core.projection import fold
from contextmesh.core.stores import EventStore, GraphStore
from contextmesh.errors import (
    IncompatibleRuntimeState,
)
from contextmesh.testing.making import (
    DIFFICULT,
    branch_of,
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
