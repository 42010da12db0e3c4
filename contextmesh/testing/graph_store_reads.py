"""What every graph store can be asked, one law a test."""

from typing import Any

from contextmesh.core.model import ObjectQuery, Where
from contextmesh.core.stores import GraphStore
from contextmesh.testing.making import (
    object_created,
    objects,
    relation_created,
)
from contextmesh.testing.projecting import Projecting


class GraphStoreReads(Projecting):
    """The laws of a `GraphStoreContract` that are about queries."""

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
