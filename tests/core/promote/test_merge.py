"""The law: a promote is a three-way merge of full snapshots, or it is refused."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextmesh.core.branches import fork
from contextmesh.core.diff import diff
from contextmesh.core.graph import Graph
from contextmesh.core.promote import promote
from contextmesh.errors import PromoteConflictError
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from tests.conftest import Workspace
from tests.core.branching import Snapshot, agrees_with_replay, snapshot
from tests.core.promote.plans import changes, conflicts, planned, promoted

OBJECTS, RELATIONS = "abc", "rs"
ENDS = st.sampled_from([*OBJECTS, "x"])
VALUES = st.sampled_from([0, 1, True])
TYPES = st.sampled_from(["Task", "Memory"])
ACTS = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(OBJECTS), TYPES, VALUES),
    st.tuples(st.just("patch"), st.sampled_from(OBJECTS), VALUES),
    st.tuples(st.just("remove"), st.sampled_from(OBJECTS)),
    st.tuples(st.just("relate"), st.sampled_from(RELATIONS), ENDS, ENDS, TYPES),
    st.tuples(st.just("cut"), st.sampled_from(RELATIONS)),
)
BEFORE = [
    *[("put", key, "Task", 0) for key in OBJECTS],
    *[("relate", key, *ends, "Task") for key, ends in (("r", "ab"), ("s", "bx"))],
]
SIDES = st.sampled_from(["parent", "parent", "fork", "fork", "promote"])
SCENES = st.tuples(
    st.lists(ACTS, max_size=2),
    st.integers(0, 3),
    st.lists(st.tuples(SIDES, ACTS), min_size=4, max_size=12),
)


def act(graph: Graph, step: tuple[Any, ...]) -> None:
    """Do one thing, if it can be done; what is there already is made anew."""
    match step:
        case ("put", key, kind, value):
            act(graph, ("remove", key))
            graph.add_object(kind, {"v": value}, id=key)
        case ("patch", key, value) if graph.get_object(key):
            graph.patch_object(key, {"v": value})
        case ("remove", key) if graph.get_object(key):
            graph.remove_object(key)
        case ("relate", key, source, target, kind):
            act(graph, ("cut", key))
            graph.add_relation(source, target, kind, id=key)
        case ("cut", key) if graph.get_relation(key):
            graph.remove_relation(key)


class Merge:
    """The three-way merge of full snapshots, by brute force."""

    def __init__(self, base: Snapshot, parent: Snapshot, branch: Snapshot) -> None:
        self.conflicts: set[tuple[str, str, str]] = set()
        self.objects = self._merged("object", base[0], parent[0], branch[0])
        self.relations = self._merged("relation", base[1], parent[1], branch[1])
        old, new = parent[0], self.objects
        gone = {key for key in old if key not in new}
        retyped = {key for key in old if key in new and new[key][0] != old[key][0]}
        created, cut = set(), set()
        for key in sorted(parent[1].keys() | self.relations.keys()):
            was, will = parent[1].get(key), self.relations.get(key)
            if was != will:
                created |= {key} if will else set()
                cut |= {key} if was else set()
                for end in will[:2] if will else ():
                    if end in branch[0] and end not in new:
                        self.conflicts.add(("dangling_relation", "relation", key))
            elif set(was[:2]) & gone and was != branch[1].get(key):
                if ("both_changed", "relation", key) not in self.conflicts:
                    self.conflicts.add(("orphaning_removal", "relation", key))
            elif set(was[:2]) & (gone | retyped):
                created.add(key)
                cut.add(key)
        names = {
            "objects_created": {key for key in new if key not in old} | retyped,
            "objects_patched": {key for key in new if key in old and new[key] != old[key]} - retyped,
            "objects_removed": gone | retyped,
            "relations_created": created,
            "relations_removed": cut,
        }
        self.changes = {name: sorted(keys) for name, keys in names.items() if keys}

    def _merged(self, entity: str, base: Any, parent: Any, branch: Any) -> dict[str, Any]:
        merged = {}
        for key in base.keys() | parent.keys() | branch.keys():
            was, ours, theirs = base.get(key), parent.get(key), branch.get(key)
            if was not in (ours, theirs):
                self.conflicts.add(("both_changed", entity, key))
            kept = ours if was == theirs or was != ours else theirs
            if kept is not None:
                merged[key] = kept
        return merged


def check_scene(graph: Graph, scene: Any) -> list[Any]:
    """Play a scene on a graph and a fork of it; return its plans, without what differs from run to run."""
    before, back, steps = scene
    for step in [*BEFORE, *before]:
        act(graph, step)
    alt = fork(graph, max(0, graph.position - back), "alt")
    base, seen = snapshot(alt), []
    for side, step in [*steps, ("promote", None)]:
        if side != "promote":
            act(graph if side == "parent" else alt, step)
            continue
        ours, theirs = snapshot(graph), snapshot(alt)
        expected, plan = Merge(base, ours, theirs), planned(graph, alt)
        seen.append(replace(plan, from_run="", into_run=""))
        assert set(conflicts(plan)) == expected.conflicts
        if plan.conflicts:
            with pytest.raises(PromoteConflictError, match="cannot be promoted"):
                promote(graph, alt)
            assert (snapshot(graph), snapshot(alt)) == (ours, theirs)
            continue
        assert changes(plan) == expected.changes
        promoted(graph, alt)
        assert snapshot(graph) == (expected.objects, expected.relations)
        assert snapshot(alt) == theirs
        assert planned(graph, alt).is_empty
        check_diff(graph, alt, base, ours, theirs)
        base = theirs
    agrees_with_replay(graph)
    agrees_with_replay(alt)
    return seen


def check_diff(graph: Graph, alt: Graph, base: Snapshot, ours: Snapshot, theirs: Snapshot) -> None:
    """After a promote, what differs is what only the parent changed, and nothing that the fork changed."""
    found = diff(graph, alt)
    rows = ([row.id for row in found.divergent_objects], [row.id for row in found.divergent_relations])
    for part in (0, 1):
        keys = base[part].keys() | ours[part].keys() | theirs[part].keys()
        changed = [{key for key in keys if base[part].get(key) != side[part].get(key)} for side in (ours, theirs)]
        assert set(rows[part]) <= changed[0] - changed[1]
        assert rows[part] == sorted(key for key in keys if snapshot(graph)[part].get(key) != theirs[part].get(key))


@settings(max_examples=150)
@given(SCENES)
def test_a_promote_is_a_three_way_merge(scene: Any) -> None:
    plans = check_scene(Graph(), scene)
    assert len(plans) == 1 + sum(side == "promote" for side, _ in scene[2])  # every promote was held to the merge


@settings(max_examples=15)
@given(SCENES)
def test_falkordb_plans_what_memory_plans(server: Server, workspace: Workspace, scene: Any) -> None:
    with workspace() as name:
        stored = Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name))
        assert check_scene(stored, scene) == check_scene(Graph(), scene)
