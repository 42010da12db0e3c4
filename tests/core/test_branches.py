"""Branches: what they share and what each keeps for itself. Over every kind of store.

Run as a script, this file is another process that forks or works on a branch: `python test_branches.py STEP DATA_DIR
NAME`.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contextmesh.core import branches
from contextmesh.core.branches import fork, position_at, slug
from contextmesh.core.diff import diff
from contextmesh.core.events import Event
from contextmesh.core.forked import ForkedEventStore
from contextmesh.core.graph import Graph
from contextmesh.core.memory import InMemoryEventStore, InMemoryGraphStore
from contextmesh.core.stores import Branch
from contextmesh.errors import (
    ContextMeshError,
    EventNotFoundError,
    NonSerializableEventError,
    NotFoundError,
    ReadOnlyError,
    UsageError,
)
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.keyspace import drop_workspace, leftovers, workspace_names
from contextmesh.stores.server import Server, open_server
from tests.core.branching import Family, agrees_with_replay, filled, ids, snapshot, types

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60.0


@pytest.fixture
def stored(tmp_path: Path, server: Server, name: str) -> Family:
    """A family in FalkorDB, for what is about its keys and other processes."""
    return Family("falkordb", tmp_path, server, name)


@pytest.fixture
def graph(family: Family) -> Graph:
    """A graph of five events; see `filled`."""
    return filled(family.root())


# Where a fork begins


def test_a_fork_at_the_tip_holds_what_its_parent_holds(graph: Graph) -> None:
    graph.patch_object("a", {"n": 10})
    graph.remove_relation("bc")
    made = fork(graph)
    assert made.events[:] == graph.events[:]
    assert (made.objects(), made.relations()) == (graph.objects(), graph.relations())
    assert made.position == graph.position == 8
    assert made.run_id not in {"", graph.run_id}
    agrees_with_replay(made)


PAST = [
    (0, [], []),
    (1, ["a"], []),
    (2, ["a", "b"], []),  # the middle of a batch
    (3, ["a", "b", "c"], []),
    (4, ["a", "b", "c"], ["ab"]),
    (5, ["a", "b", "c"], ["ab", "bc"]),
]


@pytest.mark.parametrize(("position", "objects", "relations"), PAST)
def test_a_fork_at_a_position(graph: Graph, position: int, objects: list[str], relations: list[str]) -> None:
    made = fork(graph, position)
    assert (ids(made.objects()), ids(made.relations()), made.position) == (objects, relations, position)
    assert made.events[:] == graph.events[:position]
    made.add_object("Memory", id="z")
    assert (made.position, ids(made.objects())) == (position + 1, [*objects, "z"])
    agrees_with_replay(made)


@pytest.mark.parametrize("position", range(1, 6))
def test_a_fork_at_an_event(graph: Graph, position: int) -> None:
    event = graph.events[position - 1]
    made = fork(graph, event.id)
    assert made.events[:] == graph.events[:position]
    agrees_with_replay(made)


def test_a_fork_in_the_past_is_not_moved_by_what_came_later(graph: Graph) -> None:
    graph.patch_object("a", {"n": 10})
    graph.remove_object("b")
    made = fork(graph, 5)
    assert [(row.id, row.data["n"], row.version) for row in made.objects()] == [("a", 1, 1), ("b", 2, 1), ("c", 3, 1)]
    assert ids(made.relations()) == ["ab", "bc"]


def test_a_fork_of_an_empty_graph(family: Family) -> None:
    graph = family.root()
    made = fork(graph)
    assert (made.position, made.objects(), len(made.events)) == (0, [], 0)
    made.add_object("Memory", id="z")
    assert (ids(made.objects()), graph.objects(), len(graph.events)) == (["z"], [], 0)


@pytest.mark.parametrize("at_event", ["evt_999", "", -1, 6, True, 1.0, b"evt_001"])
def test_a_fork_at_no_event_of_the_log(graph: Graph, at_event: Any) -> None:
    with pytest.raises(EventNotFoundError, match=r"no event .* in the log, which ends at 5; name the id or position"):
        fork(graph, at_event)
    assert graph.log.branches() == []


def test_an_event_of_another_branch_is_none_of_this_log(graph: Graph) -> None:
    made = fork(graph, 3)
    event = made.add_object("Memory", id="z").provenance["created_by"]
    with pytest.raises(EventNotFoundError, match=f"no event '{event}' in the log"):
        fork(graph, event)
    with pytest.raises(EventNotFoundError, match=r"no event 'evt_004' in the log, which ends at 4"):
        fork(made, graph.events[3].id)
    assert ids(fork(made, event).objects()) == ["a", "b", "c", "z"]


def test_a_fork_of_a_fork(graph: Graph) -> None:
    one = fork(graph, 4, "one")
    one.add_object("Memory", id="of-one")
    one.add_object("Memory", id="later")
    two = fork(one, 5, "two")
    two.add_object("Memory", id="of-two")
    assert ids(two.objects()) == ["a", "b", "c", "of-one", "of-two"]
    assert ids(one.objects()) == ["a", "b", "c", "later", "of-one"]
    assert [(row.name, row.parent, row.position) for row in graph.log.branches()] == [("one", "", 4), ("two", "one", 5)]
    agrees_with_replay(two)


@pytest.mark.parametrize("position", [0, 2, 4])
def test_a_fork_of_a_fork_before_its_own_base(graph: Graph, position: int) -> None:
    one = fork(graph, 4, "one")
    one.add_object("Memory", id="of-one")
    two = fork(one, position, "two")
    two.add_object("Memory", id="of-two")
    assert ids(two.objects()) == [*["a", "b", "c"][:position], "of-two"]
    assert graph.log.branches()[1].position == position
    agrees_with_replay(two)


def test_a_fork_of_a_graph_that_has_fallen_behind_its_log(family: Family) -> None:
    graph, elsewhere = family.root(), family.root()
    filled(elsewhere)
    assert ids(fork(graph).objects()) == ["a", "b", "c"]
    assert ids(fork(graph, 2).objects()) == ["a", "b"]


def test_a_read_only_graph_is_not_forked(graph: Graph) -> None:
    past = branches.snapshot(graph, 3)
    with pytest.raises(ReadOnlyError, match="look into the past"):
        fork(past)
    assert graph.log.branches() == []
    past.store.close()


# What a branch is called


LABELS = [
    ("Not the TTL!", "not-the-ttl"),
    ("", "fork"),
    ("…", "fork"),
    ("   ", "fork"),
    ("Zürich – café", "zurich-cafe"),
    ("отмена", "fork"),
    ("ﬁx ①", "fix-1"),
    ("../x", "x"),
    ("a:b{c}*", "a-b-c"),
    ("log", "log"),
    ("graph", "graph"),
    ("ids", "ids"),
    ("branches", "branches"),
    ("cut", "cut"),
    ("rebuild-0123456789ab", "rebuild-0123456789ab"),
    ("restore-0123456789ab", "restore-0123456789ab"),
    ("at-3-0123456789ab", "at-3-0123456789ab"),
    ("x'; DROP TABLE logs; --", "x-drop-table-logs"),
    ("nul\0l\nine", "nul-l-ine"),
    ("x" * 10_000, "x" * 40),
    ("y" * 39 + " z", "y" * 39),
]


@pytest.mark.parametrize(("label", "called"), LABELS)
def test_a_label_becomes_a_name(graph: Graph, label: str, called: str) -> None:
    made = fork(graph, label=label)
    assert made.log.branch_name == called
    [row] = graph.log.branches()
    assert (row.name, row.label, row.parent, row.position, row.run_id) == (called, label, "", 5, made.run_id)
    assert row.created_at.startswith("2026-01-01T00:00:")
    made.add_object("Memory", id="z")
    assert (ids(made.objects()), ids(graph.objects())) == (["a", "b", "c", "z"], ["a", "b", "c"])
    agrees_with_replay(made)
    agrees_with_replay(graph)


def test_no_label(graph: Graph) -> None:
    assert [fork(graph).log.branch_name for _ in range(3)] == ["fork", "fork-2", "fork-3"]
    assert [row.label for row in graph.log.branches()] == ["fork", "fork", "fork"]


def test_one_label_twice_are_two_branches(graph: Graph) -> None:
    names = [fork(graph, label=label).log.branch_name for label in ("Alt", "alt", "alt-2", "ALT!")]
    assert names == ["alt", "alt-2", "alt-2-2", "alt-3"]
    assert len({row.run_id for row in graph.log.branches()}) == 4


def test_a_name_is_unique_in_the_whole_family(graph: Graph) -> None:
    one = fork(graph, label="alt")
    assert fork(one, label="alt").log.branch_name == "alt-2"
    assert fork(graph, label="alt").log.branch_name == "alt-3"


def test_a_dropped_branch_leaves_its_name(graph: Graph) -> None:
    fork(graph, label="alt")
    graph.log.drop_branch("alt")
    graph.store.drop_branch("alt")
    made = fork(graph, label="alt")
    assert made.log.branch_name == "alt-2"
    assert [row.name for row in graph.log.branches()] == ["alt-2"]


@pytest.mark.parametrize("label", [7, b"alt", ["alt"]])
def test_a_label_is_text(graph: Graph, label: Any) -> None:
    with pytest.raises(UsageError, match=r"label is of type \w+; expected text, such as 'not the TTL'"):
        fork(graph, label=label)


def test_a_label_that_is_no_text_is_refused_before_anything_is_made(graph: Graph) -> None:
    with pytest.raises(NonSerializableEventError, match="label holds half of a surrogate pair"):
        fork(graph, label="half \ud800")
    assert graph.log.branches() == []


def test_slug_is_what_may_stand_in_a_key() -> None:
    assert slug("-".join("ab" * 40)) == "-".join("ab" * 10)


def test_a_hostile_name_is_no_leftover_and_no_workspace(stored: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an interrupted rebuild leaves behind is told by its name; a branch may be called the same."""
    monkeypatch.setattr("contextmesh.stores.keyspace._idle_s", lambda *_: 10**9)
    graph = filled(stored.root())
    labels = ["rebuild-0123456789ab", "restore-0123456789ab", "at-3-0123456789ab", "log", "graph", "branches"]
    made = [fork(graph, label=label) for label in labels]
    for one in made:
        one.add_object("Memory", id="z")
    assert leftovers(stored.server, stored.name) == []
    assert stored.name in workspace_names(stored.server)
    assert [len(stored.branch(one.log.branch_name).events) for one in made] == [6] * 6
    agrees_with_replay(stored.root())


# What each keeps for itself


def test_a_fork_keeps_only_its_own_tail(family: Family) -> None:
    graph = filled(family.root())
    made = fork(graph, 4, "alt")
    assert family.kept("alt") == 0
    made.add_object("Memory", id="z")
    made.patch_object("z", {"n": 1})
    assert family.kept("alt") == 3
    assert (len(made.events), len(graph.events)) == (7, 5)
    fork(made, label="twig").add_object("Memory", id="y")
    assert (family.kept("alt"), family.kept("twig")) == (3, 1)


def test_parent_and_forks_do_not_see_each_other(graph: Graph) -> None:
    one, two = fork(graph, label="one"), fork(graph, label="two")
    before = snapshot(graph)
    one.patch_object("a", {"n": "one"})
    one.remove_object("b")
    two.patch_object("a", {"n": "two"})
    two.add_relation("a", "c", "MENTIONS", id="ac")
    assert snapshot(graph) == before
    graph.patch_object("a", {"n": "root"})
    graph.remove_relation("bc")
    assert [row.data["n"] for row in one.objects("Memory")] == ["one"]
    assert [row.data["n"] for row in two.objects("Memory")] == ["two", 2]
    assert [row.data["n"] for row in graph.objects("Memory")] == ["root", 2]
    assert [ids(one.relations()), ids(two.relations()), ids(graph.relations())] == [[], ["ab", "ac", "bc"], ["ab"]]
    for each in (graph, one, two):
        agrees_with_replay(each)


def test_patches_of_the_past_may_be_settled_on_either_side(graph: Graph) -> None:
    patch = graph.propose_patch("a", {"n": 10}).id
    made = fork(graph)
    assert made.apply_patch(patch).status == "applied"
    assert graph.reject_patch(patch, "no").status == "rejected"
    assert [made.get_patch(patch).status, graph.get_patch(patch).status] == ["applied", "rejected"]


def test_ids_minted_in_a_fork_carry_its_name(graph: Graph) -> None:
    made = fork(graph, label="alt")
    row = made.add_object("Run")
    relation = made.add_relation(row.id, "a", "MENTIONS")
    patch = made.patch_object("a", {"n": 1})
    assert (row.id, relation.id, patch.id) == ("Run#alt-1", "rel_alt-001", "patch_alt-001")
    assert ids(made.events)[5:] == ["evt_alt-001", "evt_alt-002", "evt_alt-003", "evt_alt-004"]


def mint(graph: Graph, n: int) -> set[str]:
    with graph.batch():
        made = [graph.add_object("Run").id for _ in range(n)]
        made += [graph.add_relation(key, "a", "MENTIONS").id for key in made]
    return set(made)


def test_ids_never_collide_across_branches(family: Family) -> None:
    """Also of branches whose names look like a name and a number, and of a branch that is opened again."""
    graph = filled(family.root())
    mint(graph, 3)
    before = len(graph.events)
    made = [fork(graph, label=label) for label in ("alt", "alt", "alt-2", "alt-2-1", "1", "2")]
    grandchild = fork(made[0], label="alt-1")
    graphs = [graph, *made, grandchild]
    minted = [mint(each, 30) for each in graphs]
    minted += [mint(family.branch(each.log.branch_name), 5) for each in graphs[1:]] + [mint(family.root(), 5)]
    assert sum(map(len, minted)) == len(set().union(*minted))
    events = [set(ids(each.log.iter_events(before))) for each in (*graphs[:-1], family.branch("alt-1"))]
    assert sum(map(len, events)) == len(set().union(*events))


def test_a_fork_is_searchable(graph: Graph) -> None:
    past, tip = fork(graph, 1, "past"), fork(graph, label="tip")
    for made in (past, tip):
        made.add_object("Memory", {"text": "redis was restarted"}, id="z")
        made.patch_object("a", {"text": "kafka lag"})
        assert ids(made.search({"redi": 1.0}, ["Memory"], (), 9)) == ["z"]
        assert ids(made.search({"kafka": 1.0}, ["Memory"], (), 9)) == ["a"]
    assert ids(graph.search({"redi": 1.0}, ["Memory"], (), 9)) == ["a"]
    assert tip.expand(["a"], ["MENTIONS"], ["Memory"], (), 9) == tip.relations("a")


# A branch and other processes


def test_a_branch_is_opened_again_by_its_name(family: Family) -> None:
    made = fork(filled(family.root()), 3, "alt")
    made.add_object("Run")
    again = family.branch("alt")
    assert (again.run_id, again.position, ids(again.objects())) == (made.run_id, 4, ["Run#alt-1", "a", "b", "c"])
    assert again.add_object("Run").id != "Run#alt-1"
    made.catch_up()
    assert snapshot(made) == snapshot(again)
    assert made.add_object("Run").id not in ids(again.objects()[:2])
    assert types(family.branch("alt").events) == ["object.created"] * 6
    agrees_with_replay(family.branch("alt"))


def test_a_branch_whose_graph_is_gone_is_replayed_when_it_is_opened(stored: Family) -> None:
    graph = filled(stored.root())
    made = fork(graph, 4, "alt")
    made.add_object("Memory", {"text": "redis again"}, id="z")
    before = snapshot(made)
    assert stored.server.redis.delete(f"cm:{{{stored.name}}}:alt:graph") == 1
    again = stored.branch("alt")
    assert snapshot(again) == before
    assert ids(again.search({"redi": 1.0}, ["Memory"], (), 9)) == ["z", "a"]
    agrees_with_replay(again)
    assert again.rebuild() == 5
    agrees_with_replay(again)


def test_a_fork_while_another_writer_commits(family: Family) -> None:
    """Wherever it begins, it holds what its log says, and no more of the parent than up to there."""
    graph, elsewhere = filled(family.root()), family.root()
    done = threading.Event()

    def write() -> None:
        for n in range(40):
            with elsewhere.batch():
                elsewhere.add_object("Memory", {"n": n}, id=f"w{n}")
                elsewhere.add_relation("a", f"w{n}", "MENTIONS", id=f"r{n}")
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    made = []
    try:
        while not done.is_set() or not made:
            made.append(fork(graph, label="alt"))
    finally:
        writer.join(PATIENCE_S)
    for one in made:
        base = one.position
        assert base % 2 == 1, "the fork begins in the middle of a batch"
        assert one.events[:] == elsewhere.events[:base]
        assert len(one.objects()) == 3 + (base - 5) // 2
        agrees_with_replay(one)


def test_two_processes_fork_under_one_label_at_once(stored: Family) -> None:
    filled(stored.root())
    start, names = threading.Barrier(4), []

    def begin() -> None:
        graph = stored.root()
        start.wait(PATIENCE_S)
        names.extend(fork(graph, label="alt").log.branch_name for _ in range(3))

    threads = [threading.Thread(target=begin) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert sorted(names) == sorted(["alt", *(f"alt-{n}" for n in range(2, 13))])
    assert sorted(row.name for row in stored.root().log.branches()) == sorted(names)


def another_process(step: str, data_dir: Path, name: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, __file__, step, str(data_dir), name]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[tuple[Server, Path]]:
    """A server of the test's own, to which other processes can come, and its folder."""
    with open_server(data_dir=tmp_path / "data") as server:
        yield server, tmp_path / "data"


def test_another_process_works_on_the_branch(own: tuple[Server, Path], tmp_path: Path) -> None:
    server, data_dir = own
    family = Family("falkordb", tmp_path, server, "forks")
    made = fork(filled(family.root()), 4, "alt")
    first = made.add_object("Run").id
    finished = another_process("work", data_dir, "forks")
    assert (finished.returncode, finished.stderr) == (0, "")
    seen = json.loads(finished.stdout)
    assert (seen["objects"], seen["run_id"]) == ([first, "a", "b", "c"], made.run_id)
    made.catch_up()
    assert ids(made.objects()) == sorted([first, seen["minted"], "a", "b", "c"])
    assert made.add_object("Run").id not in {first, seen["minted"]}
    agrees_with_replay(made)


@pytest.mark.parametrize(("step", "left"), [("killed-before", []), ("killed-between", ["alt"])])
def test_a_process_that_is_killed_while_it_forks(
    own: tuple[Server, Path], tmp_path: Path, step: str, left: list[str]
) -> None:
    """There is a whole branch, whose graph is made when it is opened, or there is none."""
    server, data_dir = own
    family = Family("falkordb", tmp_path, server, "forks")
    graph = filled(family.root())
    finished = another_process(step, data_dir, "forks")
    assert finished.returncode == -signal.SIGKILL, finished.stderr
    assert [row.name for row in graph.log.branches()] == left
    for name in left:
        made = family.branch(name)
        assert ids(made.objects()) == ["a", "b", "c"]
        made.add_object("Memory", id="z")
        agrees_with_replay(made)
    assert fork(graph, label="alt").log.branch_name == ("alt-2" if left else "alt")
    agrees_with_replay(graph)


# A fork that fails


class BrokenError(ContextMeshError):
    pass


def breaking(monkeypatch: pytest.MonkeyPatch, owner: Any, method: str, *, after: bool = False) -> None:
    """Let a method fail, before or after it has done its work."""
    real = getattr(owner, method)

    def broken(*args: Any, **kwargs: Any) -> Any:
        if after:
            real(*args, **kwargs)
        raise BrokenError(method)

    monkeypatch.setattr(owner, method, broken)


STEPS = ("shadow", "claim", "apply", "swap", "branch")
FAILURES = [("copy", False), *((step, after) for step in STEPS for after in (False, True))]


@pytest.mark.parametrize(("method", "after"), FAILURES)
def test_a_fork_that_fails_leaves_nothing(
    family: Family, graph: Graph, monkeypatch: pytest.MonkeyPatch, method: str, *, after: bool
) -> None:
    before = family.stored_keys(), snapshot(graph)
    with monkeypatch.context() as patch:
        breaking(patch, type(graph.store), method, after=after)
        with pytest.raises(BrokenError, match=method):
            fork(graph, None if method == "copy" else 2, "alt")  # the past is replayed, only the present copied
    assert graph.log.branches() == []
    assert {key for key in family.stored_keys() if not key.endswith(":branches")} == set(before[0])
    assert snapshot(graph) == before[1]
    made = fork(graph, 2, "alt")
    assert ids(made.objects()) == ["a", "b"]
    agrees_with_replay(made)


def test_a_fork_whose_log_fails_leaves_nothing(family: Family, graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    before = family.stored_keys()
    with monkeypatch.context() as patch:
        breaking(patch, type(graph.log), "fork")
        with pytest.raises(BrokenError, match="fork"):
            fork(graph, label="alt")
    assert (graph.log.branches(), family.stored_keys()) == ([], before)
    assert fork(graph, label="alt").log.branch_name == "alt"


# Dropping and cutting


def drop(graph: Graph, name: str) -> None:
    graph.log.drop_branch(name)
    graph.store.drop_branch(name)


def test_a_dropped_branch_is_gone_and_takes_nothing(family: Family) -> None:
    graph = filled(family.root())
    made = fork(graph, label="alt")
    made.add_object("Memory", id="z")
    drop(graph, "alt")
    assert graph.log.branches() == []
    with pytest.raises(NotFoundError, match="no branch 'alt'; there are: none yet"):
        family.branch("alt")
    with pytest.raises(NotFoundError, match="branch 'alt'"):
        made.log.append(Event(id="evt_late", type="note.made", payload={}, timestamp="2026-01-01T00:00:00.000000Z"))
    with pytest.raises(ContextMeshError):
        made.add_object("Memory", id="y")
    assert (graph.log.branches(), ids(graph.objects())) == ([], ["a", "b", "c"])
    agrees_with_replay(graph)


def test_a_branch_with_children_is_not_dropped(graph: Graph) -> None:
    one = fork(graph, label="one")
    one.add_object("Memory", id="z")
    two = fork(one, label="two")
    with pytest.raises(UsageError, match="cannot drop the branch 'one': two were forked from it; drop them first"):
        graph.log.drop_branch("one")
    assert (ids(one.objects()), ids(two.objects())) == (["a", "b", "c", "z"], ["a", "b", "c", "z"])
    drop(graph, "two")
    drop(graph, "one")
    assert graph.log.branches() == []


def test_dropping_leaves_no_key_but_the_names(stored: Family) -> None:
    graph = filled(stored.root())
    before = stored.stored_keys()
    made = fork(graph, 2, "alt")
    made.add_object("Run")
    fork(made, label="twig").add_object("Run")
    drop(graph, "twig")
    drop(graph, "alt")
    assert set(stored.stored_keys()) - set(before) == {f"cm:{{{stored.name}}}:branches"}
    fork(graph, label="alt").add_object("Run")
    drop_workspace(stored.server, stored.name)
    assert stored.stored_keys() == []


@pytest.mark.parametrize("position", [0, 3, 4])
def test_no_cut_where_a_fork_begins_or_before(graph: Graph, position: int) -> None:
    made = fork(graph, 4, "alt")
    made.add_object("Memory", id="z")
    with pytest.raises(UsageError, match=f"cannot cut the log after {position}: alt begin there or later"):
        graph.log.truncate_after(position)
    assert (len(graph.events), ids(made.objects())) == (5, ["a", "b", "c", "z"])


def test_a_cut_after_the_last_fork_and_one_of_the_fork(graph: Graph) -> None:
    made = fork(graph, 3, "alt")
    made.add_object("Memory", id="z")
    made.add_object("Memory", id="y")
    graph.log.truncate_after(4)
    graph.rebuild()
    assert (ids(graph.relations()), len(graph.events)) == (["ab"], 4)
    with pytest.raises(UsageError, match="cannot cut the branch 'alt' after 2; it shares its events up to 3"):
        made.log.truncate_after(2)
    made.log.truncate_after(4)
    made.rebuild()
    assert ids(made.objects()) == ["a", "b", "c", "z"]
    made.log.truncate_after(3)
    made.rebuild()
    assert ids(made.objects()) == ["a", "b", "c"]
    agrees_with_replay(made)


# Looking back


@pytest.mark.parametrize(("position", "objects", "relations"), PAST)
def test_a_graph_as_it_stood(graph: Graph, position: int, objects: list[str], relations: list[str]) -> None:
    graph.patch_object("a", {"n": 10})
    past = branches.snapshot(graph, position)
    assert (ids(past.objects()), ids(past.relations()), past.position) == (objects, relations, position)
    assert [row.data["n"] for row in past.objects()] == list(range(1, len(objects) + 1))
    assert past.events[:] == graph.events[:position]
    with pytest.raises(ReadOnlyError, match="look into the past"):
        past.add_object("Memory", id="z")
    graph.remove_object("a")
    assert ids(past.objects()) == objects
    past.store.close()
    assert graph.log.branches() == []


def test_a_look_back_is_removed_when_it_is_closed(stored: Family) -> None:
    graph = filled(stored.root())
    before = stored.stored_keys()
    for position in (2, 5):
        past = branches.snapshot(graph, position)
        assert set(stored.stored_keys()) - set(before) == {past.store.key}
        past.store.close()
        assert stored.stored_keys() == before
    with pytest.raises(EventNotFoundError, match="no event 6 in the log, which ends at 5"):
        branches.snapshot(graph, 6)
    assert stored.stored_keys() == before


def test_a_look_back_at_a_fork_is_compared_with_its_family(graph: Graph) -> None:
    made = fork(graph, 4, "alt")
    made.add_object("Task", id="t")
    past = branches.snapshot(made, 5)
    made.remove_object("t")
    assert ids(diff(past, made).divergent_objects) == ["t"]
    assert diff(past, graph).shared_to == 4
    before = branches.snapshot(made, 2)
    assert diff(before, graph).shared_to == diff(before, made).shared_to == 2
    past.store.close()
    before.store.close()


def test_the_last_position_not_after_a_time(graph: Graph) -> None:
    for _ in range(20):
        graph.add_object("Memory")
    made = fork(graph, 12)
    made.add_object("Memory")
    for log in (graph.log, made.log):
        times = [row.timestamp for row in log.iter_events()]
        asked = ["2025-12-31T23:59:59.000000Z", "2027-01-01T00:00:00.000000Z"]
        asked += [time[:-7] + end for time in times for end in ("000000Z", "500000Z")]
        assert [position_at(log, time) for time in asked] == [sum(known <= time for known in times) for time in asked]


# The log of a branch


def test_a_forked_log_is_a_log_of_any_parent_and_any_tail() -> None:
    parent = InMemoryEventStore()
    graph = filled(Graph(parent))
    log = ForkedEventStore(parent, InMemoryEventStore(base=2, run_id="tail"), 2)
    assert [(row.position, row.last) for row in log.read(0, 10)] == [(1, 1), (2, 2)]
    assert (log.tip(), log.count(), log.run_id, log.branch_name) == (2, 2, "tail", "")
    assert repr(log) == "<ForkedEventStore: '', after 2 of <InMemoryEventStore: 5 events>>"
    made = Graph(log, InMemoryGraphStore())
    made.add_object("Memory", id="z")
    assert (ids(made.objects()), ids(graph.objects())) == (["a", "b", "z"], ["a", "b", "c"])
    with pytest.raises(EventNotFoundError, match="no event 'evt_003'"):
        log.get_event("evt_003")
    assert log.get_event("evt_002").payload["id"] == "b"
    log.close()
    log.close()


def test_too_many_branches_of_one_label(family: Family, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = filled(family.root())
    monkeypatch.setattr(branches, "MAX_NAMES", 3)
    for _ in range(3):
        fork(graph, label="alt")
    with pytest.raises(ContextMeshError, match="3 branches were called 'alt'; choose another label"):
        fork(graph, label="alt")
    assert isinstance(graph.log.branches()[0], Branch)


# What another process does


def main(step: str, data_dir: str, name: str) -> None:
    with open_server(data_dir=data_dir) as server:
        log, store = FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name)
        if step == "work":
            graph = Graph(log.branch("alt"), store.branch("alt"))
            seen = ids(graph.objects())
            minted = graph.add_object("Run").id
            print(json.dumps({"objects": seen, "minted": minted, "run_id": graph.run_id}))  # noqa: T201
            return

        def die(*args: Any, **kwargs: Any) -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        dies_in = (FalkorDBEventStore, "fork") if step == "killed-before" else (FalkorDBGraphStore, "swap")
        setattr(*dies_in, die)
        fork(Graph(log, store), label="alt")


if __name__ == "__main__":
    main(*sys.argv[1:])
