"""A fork that fails leaves nothing. Over every kind of store."""

from typing import Any

import pytest

from contextmesh.core.branches import fork
from contextmesh.core.graph import Graph
from tests.core.branching import BrokenError, Family, agrees_with_replay, ids, snapshot


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
