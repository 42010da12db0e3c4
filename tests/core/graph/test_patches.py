"""Patches: operations, versions, verdicts, what is refused."""

from typing import Any

import pytest

from contextmesh.core.graph import Graph
from contextmesh.core.model import Patch
from contextmesh.errors import (
    AlreadyExistsError,
    InvalidEventError,
    InvalidNameError,
    InvalidPatchLifecycleState,
    InvalidPatchOperation,
    NonSerializableEventError,
    NotFoundError,
    ReservedFieldError,
)
from tests.core.graph.emitted import VERSIONS, by_hand


def test_patch_object(graph: Graph) -> None:
    graph.add_object("Memory", {"kept": 1, "changed": 1}, id="a")
    patch = graph.patch_object(
        "a",
        {"changed": 2, "new": None},
        actor="maya",
        rationale="because",
        evidence=["e"],
        llm_request_event_id="evt_9",
        tool_request_event_ids=["evt_8"],
        frame_id="Run#1",
        caused_by="evt_001",
    )
    assert patch == Patch(
        id="patch_001",
        target="a",
        op="update",
        updates={"changed": 2, "new": None},
        status="applied",
        actor="maya",
        rationale="because",
        evidence=["e"],
        llm_request_event_id="evt_9",
        tool_request_event_ids=["evt_8"],
    )
    row = graph.get_object("a")
    assert row is not None
    assert (row.data, row.version) == ({"kept": 1, "changed": 2, "new": None}, 2)
    proposed, applied = graph.events[-2:]
    assert row.provenance == {"created_by": "evt_001", "updated_by": applied.id, "actor": "system", "evidence": []}
    assert (proposed.type, applied.type) == ("patch.proposed", "patch.applied")
    assert (proposed.actor, proposed.frame_id, proposed.caused_by) == ("maya", "Run#1", "evt_001")
    assert applied.payload["diff"] == {"changed": {"old": 1, "new": 2}, "new": {"old": None, "new": None}}
    assert applied.payload["object"] == row.to_dict()
    assert graph.get_patch("patch_001") == patch


def test_versions_increment_by_one(graph: Graph) -> None:
    graph.add_object("Memory", {}, id="a")
    for version in (2, 3, 4):
        graph.patch_object("a", {"v": version}, expected_version=version - 1)
        row = graph.get_object("a")
        assert row is not None
        assert (row.version, row.data["v"]) == (version, version)


def test_operations(graph: Graph) -> None:
    assert graph.apply_patch(graph.propose_patch("a", {"x": 1}, op="create", type="Entity").id).status == "applied"
    row = graph.get_object("a")
    assert row is not None
    assert (row.type, row.data, row.version) == ("Entity", {"x": 1}, 1)
    graph.patch_object("a", {"y": 2}, op="replace")
    row = graph.get_object("a")
    assert row is not None
    assert (row.type, row.data, row.version) == ("Entity", {"y": 2}, 2)
    graph.add_relation("a", "b", "AFFECTS")
    graph.patch_object("a", {}, op="remove")
    assert (graph.objects(), graph.relations()) == ([], [])
    again = graph.propose_patch("a", {}, op="create", type="Entity")
    assert graph.apply_patch(again.id).status == "applied"
    twice = graph.apply_patch(graph.propose_patch("a", {}, op="create", type="Entity").id)
    assert (twice.status, twice.reason) == ("rejected", "the object exists already")


def test_version_mismatch_is_rejected_with_both_versions(graph: Graph) -> None:
    graph.add_object("Memory", {"n": 1}, id="a")
    graph.patch_object("a", {"n": 2})
    patch = graph.patch_object("a", {"n": 3}, expected_version=1)
    assert (patch.status, patch.reason) == ("rejected", "expected version 1, the object has version 2")
    event = graph.events[-1]
    assert event.type == "patch.rejected"
    assert event.payload == {
        "patch_id": patch.id,
        "target": "a",
        "reason": "expected version 1, the object has version 2",
        "expected_version": 1,
        "current_version": 2,
    }
    row = graph.get_object("a")
    assert row is not None
    assert (row.data, row.version) == ({"n": 2}, 2)
    assert graph.get_patch(patch.id) == patch


def test_missing_target_is_rejected(graph: Graph) -> None:
    for op in ("update", "replace", "remove"):
        patch = graph.patch_object("nobody", {"n": 1}, op=op)
        assert (patch.status, patch.reason) == ("rejected", "the object does not exist")
        assert graph.events[-1].payload["current_version"] is None
    assert graph.objects() == []


def test_a_patch_is_settled_once(graph: Graph) -> None:
    graph.add_object("Memory", {}, id="a")
    applied, rejected = graph.propose_patch("a", {"x": 1}), graph.propose_patch("a", {"x": 2})
    assert (applied.status, graph.get_patch(applied.id)) == ("proposed", applied)
    graph.apply_patch(applied.id, approved_by="maya")
    assert graph.events[-1].payload["approved_by"] == "maya"
    verdict = graph.reject_patch(rejected.id, "no need", actor="maya")
    assert (verdict.status, verdict.reason) == ("rejected", "no need")
    before = len(graph.events)
    for patch, status in ((applied, "applied"), (rejected, "rejected")):
        says = f"patch '{patch.id}' is {status}; only a proposed patch"
        with pytest.raises(InvalidPatchLifecycleState, match=says):
            graph.apply_patch(patch.id)
        with pytest.raises(InvalidPatchLifecycleState, match=says):
            graph.reject_patch(patch.id, "again")
        with pytest.raises(InvalidPatchLifecycleState, match=says):
            graph.emit(by_hand("patch.rejected", patch_id=patch.id, target="a", reason="x", **VERSIONS))
    assert len(graph.events) == before


def test_unknown_patch(graph: Graph) -> None:
    with pytest.raises(NotFoundError, match="no patch 'p' in the graph at position 0"):
        graph.apply_patch("p")
    with pytest.raises(NotFoundError, match="no patch 'p'"):
        graph.reject_patch("p", "x")
    assert graph.get_patch("p") is None


def test_duplicate_patch(graph: Graph) -> None:
    graph.propose_patch("a", {}, id="p")
    with pytest.raises(AlreadyExistsError, match="the graph holds a patch 'p' already"):
        graph.propose_patch("a", {}, id="p")


@pytest.mark.parametrize(("op", "type_"), [("upsert", None), ("", None), ("create", None), ("update", "Memory")])
def test_refused_operation(graph: Graph, op: str, type_: str | None) -> None:
    with pytest.raises((InvalidPatchOperation, InvalidEventError), match="op"):
        graph.propose_patch("a", {}, op=op, type=type_)
    assert len(graph.events) == 0


@pytest.mark.parametrize(
    ("target", "updates", "error", "says"),
    [
        ("a", {"provenance": 1}, ReservedFieldError, "provenance"),
        ("a", {"x": float("nan")}, NonSerializableEventError, r"updates\.x is nan"),
        ("a b", {}, InvalidNameError, "is no id"),
        ("a", [], InvalidEventError, "data is a list"),
    ],
)
def test_refused_patch(graph: Graph, target: str, updates: Any, error: type[Exception], says: str) -> None:
    graph.add_object("Memory", {}, id="a")
    with pytest.raises(error, match=says):
        graph.patch_object(target, updates)
    assert len(graph.events) == 1


def test_a_result_that_is_too_large_is_refused_whole(graph: Graph) -> None:
    graph.add_object("Memory", {"x": "y" * 2_500_000}, id="a")
    with pytest.raises(InvalidEventError, match=r"the event 'patch.applied' takes .* at most 4,210,688 fit"):
        graph.patch_object("a", {"z": "y" * 1_000_000})
    assert (len(graph.events), graph.get_patch("patch_001")) == (1, None)


def test_a_patch_tells_a_boolean_from_a_number_and_names_its_cause() -> None:
    graph = Graph()
    graph.add_object("Entity", {"n": 1}, id="a")
    graph.patch_object("a", {"n": True}, caused_by="evt_why")
    proposed, applied = list(graph.events)[-2:]
    assert applied.payload["diff"] == {"n": {"old": 1, "new": True}}
    assert (proposed.caused_by, applied.caused_by) == ("evt_why", "evt_why")
