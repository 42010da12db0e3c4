"""Promote while others write, and when something fails: all of it or nothing. Over every kind of store.

Run as a script, this file is a process that is killed while it promotes: `python test_faults.py STEP DATA_DIR NAME`.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from contextmesh.core import promote as promoting
from contextmesh.core.branches import fork
from contextmesh.core.diff import diff
from contextmesh.core.graph import Graph
from contextmesh.core.promote import promote
from contextmesh.errors import ConcurrentWriterError, ProjectionError, PromoteConflictError, UsageError
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server, open_server
from tests.core.branching import BrokenError, Family, agrees_with_replay, filled, snapshot, types
from tests.core.promote.plans import change_everything, conflicts, promoted

ROOT = Path(__file__).parents[3]


def test_a_promote_within_a_batch_is_refused(graph: Graph, alt: Graph) -> None:
    alt.add_object("Task", id="t")
    before = len(graph.events)
    with graph.batch(), pytest.raises(UsageError, match="a batch is open, and its events are not in the log yet"):
        promote(graph, alt)
    with graph.batch():
        graph.add_object("Task", id="u")
        with pytest.raises(UsageError, match="a batch is open, and its events are not in the log yet"):
            promote(graph, alt)
    assert types(graph.events[before:]) == ["object.created"]
    promoted(graph, alt)
    assert diff(graph, alt).fork_only_events


def interrupted(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], object], times: int) -> list[int]:
    """Let another writer act between the plan and its application, a number of times."""
    real, seen = promoting.planned, []

    def planned(*args: Any) -> Any:
        result = real(*args)
        if len(seen) < times:
            act(len(seen))
        seen.append(len(seen))
        return result

    monkeypatch.setattr(promoting, "planned", planned)
    return seen


def test_another_writer_between_plan_and_application(
    family: Family, graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan is made anew: against what the parent then is."""
    alt.patch_object("a", {"n": 10})
    elsewhere = family.root()
    seen = interrupted(monkeypatch, lambda n: elsewhere.add_object("Task", id=f"t{n}"), 2)
    result = promoted(graph, alt)
    assert len(seen) == 3
    assert result.computed_against == graph.events[6].id
    assert types(graph.events[5:]) == ["object.created"] * 2 + ["promote.applied", "patch.proposed", "patch.applied"]
    agrees_with_replay(graph)


def test_another_writer_who_changes_the_same_between_plan_and_application(
    family: Family, graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    alt.patch_object("a", {"n": 10})
    elsewhere = family.root()
    interrupted(monkeypatch, lambda n: elsewhere.patch_object("a", {"n": 11}), 1)
    with pytest.raises(PromoteConflictError, match="object 'a' was changed on both sides") as refusal:
        promote(graph, alt)
    assert conflicts(refusal.value.plan) == [("both_changed", "object", "a")]
    assert types(graph.events[5:]) == ["patch.proposed", "patch.applied"]
    assert graph.get_object("a").data["n"] == 11


def test_other_writers_who_are_always_faster(
    family: Family, graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    alt.patch_object("a", {"n": 10})
    elsewhere = family.root()
    seen = interrupted(monkeypatch, lambda n: elsewhere.add_object("Task", id=f"t{n}"), 10**6)
    with pytest.raises(
        ConcurrentWriterError, match="other writers were faster 20 times in a row; nothing was promoted"
    ):
        promote(graph, alt)
    assert len(seen) == 20
    assert "promote.applied" not in types(graph.events)
    assert graph.get_object("a").data["n"] == 1


def test_two_processes_promote_the_same_fork_at_once(
    family: Family, graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is promoted once; who comes second finds nothing to do."""
    change_everything(alt)
    other, real = family.root(), promoting.planned
    seen = interrupted(monkeypatch, lambda n: promoting._apply(other, alt, *real(other, alt)), 1)
    result = promoted(graph, alt)
    assert len(seen) == 2
    assert (result.marker_event_id, result.plan.is_empty) == (None, True)
    assert types(graph.events).count("promote.applied") == 1
    assert diff(graph, alt).is_identical


def test_another_writer_between_reading_and_append(
    family: Family, graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log refuses what was computed against another tip, and the plan is made anew."""
    alt.patch_object("a", {"n": 10})
    elsewhere, real, calls = family.root(), type(graph.log).append_many, []

    def append_many(self: Any, *args: Any, **kwargs: Any) -> int:
        calls.append(self)
        if len(calls) == 1:
            elsewhere.patch_object("a", {"n": 11})
        return real(self, *args, **kwargs)

    monkeypatch.setattr(type(graph.log), "append_many", append_many)
    with pytest.raises(PromoteConflictError, match="object 'a' was changed on both sides"):
        promote(graph, alt)
    assert types(graph.events[5:]) == ["patch.proposed", "patch.applied"]
    agrees_with_replay(graph)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("step", ["append_many", "apply"])
def test_a_promote_that_fails_halfway(
    graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch, step: str, *, after: bool
) -> None:
    """The parent is untouched or complete, and repeating it makes good what is missing."""
    change_everything(alt)
    before = snapshot(graph)
    owner = type(graph.log) if step == "append_many" else type(graph.store)
    real, calls = getattr(owner, step), []

    def broken(self: Any, *args: Any, **kwargs: Any) -> Any:
        if calls:
            return real(self, *args, **kwargs)
        calls.append(self)
        if after:
            real(self, *args, **kwargs)
        raise BrokenError(step)

    monkeypatch.setattr(owner, step, broken)
    with pytest.raises(ProjectionError if step == "apply" else BrokenError, match=step):
        promote(graph, alt)
    landed = after or step == "apply"
    assert (snapshot(graph) == before) is not landed
    assert ("promote.applied" in types(graph.events)) is landed
    assert diff(graph, alt).is_identical is landed
    assert promoted(graph, alt).plan.is_empty is landed
    assert types(graph.events).count("promote.applied") == 1
    assert diff(graph, alt).is_identical
    agrees_with_replay(graph)


def test_a_plan_that_the_parent_cannot_take_changes_nothing(
    graph: Graph, alt: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_everything(alt)
    before = snapshot(graph), len(graph.events)

    def refuse(*_: Any) -> None:
        raise BrokenError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(type(graph.store), "admit", refuse)
        with pytest.raises(BrokenError, match="no room"):
            promote(graph, alt)
    assert (snapshot(graph), len(graph.events)) == before
    promoted(graph, alt)
    assert diff(graph, alt).is_identical


@pytest.mark.parametrize(("step", "landed"), [("before-append", False), ("before-project", True)])
def test_a_process_that_is_killed_while_it_promotes(
    own: tuple[Server, Path], tmp_path: Path, step: str, *, landed: bool
) -> None:
    server, data_dir = own
    family = Family("falkordb", tmp_path, server, "killed")
    graph = filled(family.root())
    alt = fork(graph, label="alt")
    change_everything(alt)
    before = snapshot(graph)
    command = [sys.executable, __file__, step, str(data_dir), "killed"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    finished = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.returncode == -signal.SIGKILL, finished.stderr
    for each in (family.root(), graph):
        each.catch_up()
        assert (snapshot(each) == (snapshot(alt) if landed else before)) is True
    result = promoted(graph, family.branch("alt"))
    assert result.plan.is_empty is landed
    assert types(graph.events).count("promote.applied") == 1
    assert diff(graph, alt).is_identical
    agrees_with_replay(graph)


# What a process that is killed does


def main(step: str, data_dir: str, name: str) -> None:
    def die(*args: Any, **kwargs: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with open_server(data_dir=data_dir) as server:
        log, store = FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name)
        graph, alt = Graph(log, store), Graph(log.branch("alt"), store.branch("alt"))
        dies_in = (FalkorDBEventStore, "append_many") if step == "before-append" else (FalkorDBGraphStore, "apply")
        setattr(*dies_in, die)
        promote(graph, alt)


if __name__ == "__main__":
    main(*sys.argv[1:])
