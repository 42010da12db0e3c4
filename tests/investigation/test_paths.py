"""Paths among facts and between two of them."""

from contextmesh.core.graph import Graph
from contextmesh.core.model import Relation
from contextmesh.investigation.paths import Path, describe, inner_paths, oriented, paths_between
from contextmesh.investigation.vocabulary import DEFAULT

DIAMOND = [
    ("a", "AFFECTS", "b"),
    ("a", "AFFECTS", "c"),
    ("b", "OWNED_BY", "d"),
    ("c", "OWNED_BY", "d"),
    ("b", "RELATES_TO", "c"),
]


def relations() -> list[Relation]:
    return [
        Relation(id=f"{source}-{target}", source=source, target=target, type=kind) for source, kind, target in DIAMOND
    ]


def test_paths_between_finds_all_of_a_small_graph() -> None:
    graph = Graph()
    for key in ("a", "b", "c", "d", "lone"):
        graph.add_object("Evidence", {"label": key, "text": ""}, id=key)
    for source, kind, target in DIAMOND:
        graph.add_relation(source, target, kind)
    found = {path.nodes for path in paths_between("a", "d", graph, DEFAULT, hops=3, limit=50)}
    assert found == {("a", "b", "d"), ("a", "c", "d"), ("a", "b", "c", "d"), ("a", "c", "b", "d")}
    assert paths_between("a", "lone", graph, DEFAULT, hops=10, limit=50) == []


def test_paths_from_a_start_are_simple_and_short_ones_first() -> None:
    found = inner_paths(["a"], relations(), 2, 80)
    assert [len(path.relations) for path in found] == [1, 1, 2, 2, 2, 2]
    assert {frozenset(path.nodes) for path in found} == {
        frozenset(nodes) for nodes in ("ab", "ac", "abc", "abd", "acd")
    }
    assert len({frozenset(path.relations) for path in found}) == len(found)


def test_a_path_is_turned_so_that_most_of_its_relations_read_forwards() -> None:
    backwards = Path(nodes=("d", "b", "a"), relations=("b-d", "a-b"))
    assert oriented(backwards, relations()) == Path(nodes=("a", "b", "d"), relations=("a-b", "b-d"))


def test_a_path_as_text_shows_each_relation_as_it_is_stored() -> None:
    path = Path(nodes=("d", "b", "c", "gone"), relations=("b-d", "b-c", "lost"))
    known = {row.id: row for row in relations()}
    assert describe(path, {"d": "Dora"}, known) == "Dora ←OWNED_BY— b —RELATES_TO→ c —lost→ gone"
