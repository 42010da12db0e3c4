"""What a workspace can be asked: search, paths, neighbourhood, tables, log."""

import pytest

from contextmesh.errors import InvalidNameError, NotFoundError, RunNotFoundError, UsageError
from contextmesh.investigation.workspace import Workspace


def test_search_returns_its_columns_best_first(acme: Workspace) -> None:
    found = acme.search("session ttl")
    assert list(found.columns) == ["id", "kind", "label", "text", "source", "score", "terms"]
    assert set(found["id"][:3]) <= {"session-ttl", "inc-104.lesson-1", "redis-change", "release-notes-2.4"}
    assert found["score"].is_monotonic_decreasing
    assert found["terms"][0] == ["session", "ttl"]
    assert found["source"][0] == "AcmeShop (synthetic)"
    assert len(acme.search("session ttl", limit=2)) == 2
    assert acme.search("errors rose 14:05")["source"][0] == "user note, not verified"


@pytest.mark.parametrize("text", ["", "   ", "the of and", "?!", "qwertzuiop"])
def test_search_for_nothing_finds_nothing(acme: Workspace, text: str) -> None:
    found = acme.search(text)
    assert found.empty
    assert list(found.columns) == ["id", "kind", "label", "text", "source", "score", "terms"]


def test_search_never_returns_sessions_runs_or_decisions(acme: Workspace) -> None:
    acme.session("Monday night").investigate("Which checkout errors of AcmeShop concern Monday night?")
    assert set(acme.search("checkout errors monday night decision researcher", limit=100)["kind"]) <= {
        "Entity",
        "Evidence",
        "Memory",
    }


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_is_at_least_one(acme: Workspace, limit: int) -> None:
    for call in (
        lambda: acme.search("x", limit=limit),
        lambda: acme.paths("redis-change", "maya-chen", limit=limit),
        lambda: acme.neighborhood("maya-chen", limit=limit),
        lambda: acme.log(limit=limit),
    ):
        with pytest.raises(UsageError, match=f"limit is {limit}; expected 1 or more"):
            call()


@pytest.mark.parametrize("limit", [1000, 2**63 - 1, 2**70])
def test_a_limit_may_be_as_large_as_one_likes(acme: Workspace, limit: int) -> None:
    assert len(acme.search("ttl", limit=limit)) == 4
    assert len(acme.neighborhood("maya-chen", limit=limit)) == 2


def test_paths_are_described_shortest_first(acme: Workspace) -> None:
    found = acme.paths("redis-change", "maya-chen")
    assert list(found.columns) == ["path", "hops", "nodes", "relations"]
    first = found.iloc[0]
    assert first["path"] == "Release 2.4 —AFFECTS→ Checkout API —OWNED_BY→ Maya Chen"
    assert first["hops"] == 2
    assert first["nodes"] == ["redis-change", "checkout-api", "maya-chen"]
    assert first["relations"] == ["redis-change>AFFECTS>checkout-api", "checkout-api>OWNED_BY>maya-chen"]
    assert found["hops"].is_monotonic_increasing
    assert found["hops"].max() <= 3
    back = acme.paths("maya-chen", "redis-change")
    assert back["path"][0] == "Maya Chen ←OWNED_BY— Checkout API ←AFFECTS— Release 2.4"
    assert len(acme.paths("redis-change", "maya-chen", hops=1)) == 0
    assert len(acme.paths("redis-change", "inc-104", hops=5, limit=1)) == 1


def test_paths_never_lead_through_sessions_or_runs(acme: Workspace) -> None:
    acme.session("Monday night").note("Unrelated kettle")
    kettle = next(row.id for row in acme.graph.objects("Memory") if "kettle" in row.data["text"])
    acme.session("Tuesday").investigate("kettle and Release 2.4?")
    assert acme.paths(kettle, "redis-change", hops=10).empty


@pytest.mark.parametrize("hops", [0, 11, -1])
def test_hops_of_paths_are_bounded(acme: Workspace, hops: int) -> None:
    with pytest.raises(UsageError, match=f"hops is {hops}; expected 1 to 10"):
        acme.paths("redis-change", "maya-chen", hops=hops)


def test_neighborhood_is_nearest_first(acme: Workspace) -> None:
    found = acme.neighborhood("maya-chen", hops=2)
    assert list(found.columns) == ["id", "kind", "label", "text", "source", "hops"]
    assert list(zip(found["id"], found["hops"], strict=True))[:2] == [("maya-chen", 0), ("checkout-api", 1)]
    assert found["hops"].is_monotonic_increasing
    assert set(found["id"]) == {
        "maya-chen", "checkout-api", "redis-sessions", "redis-change", "checkout-errors", "inc-104",
        *mention_sources(acme, "checkout-api"),
    }  # fmt: skip
    assert list(acme.neighborhood("maya-chen", hops=0)["id"]) == ["maya-chen"]
    assert len(acme.neighborhood("checkout-api", hops=3, limit=4)) == 4
    with pytest.raises(UsageError, match="hops is 11; expected 0 to 10"):
        acme.neighborhood("maya-chen", hops=11)


def mention_sources(ws: Workspace, target: str) -> list[str]:
    return [row.source for row in ws.graph.relations(target=target, type="MENTIONS")]


def test_table_lists_a_kind_by_id(acme: Workspace) -> None:
    table = acme.table("Entity")
    assert list(table.columns) == [
        "id",
        "label",
        "version",
        "aliases",
        "asserts",
        "entity_type",
        "source",
        "synthetic",
        "text",
    ]
    assert list(table["id"]) == sorted(table["id"])
    assert len(table) == 11
    assert list(acme.table("Decision").columns) == ["id", "label", "version"]
    with pytest.raises(InvalidNameError, match="'Node' is no kind of this vocabulary; expected one of Agent, AgentRun"):
        acme.table("Node")


def test_log_pages_through_the_events(acme: Workspace) -> None:
    table = acme.log()
    assert list(table.columns) == ["position", "time", "type", "actor", "about", "frame", "id"]
    assert list(table["position"]) == list(range(1, len(acme.graph.events) + 1))
    assert table["about"][0] == "workspace"
    assert "redis-change -AFFECTS-> checkout-api" in set(table["about"])
    page = acme.log(after=3, limit=2)
    assert list(page["position"]) == [4, 5]
    assert acme.log(after=10_000).empty
    with pytest.raises(UsageError, match="after is -1; expected a log position from 0"):
        acme.log(after=-1)


def test_unknown_ids_are_named_with_their_workspace(acme: Workspace) -> None:
    place = f"in workspace '{acme.name}' at position {acme.graph.position}"
    for call in (
        lambda: acme.paths("nope", "maya-chen"),
        lambda: acme.paths("maya-chen", "nope"),
        lambda: acme.neighborhood("nope"),
        lambda: acme.history("nope"),
        lambda: acme.revise("nope", "x"),
    ):
        with pytest.raises(NotFoundError, match=rf"no object 'nope' {place}; ws\.table\('Entity'\) lists"):
            call()
    for call in (lambda: acme.investigation("Run#99"), lambda: acme.resume("maya-chen")):
        with pytest.raises(RunNotFoundError, match=rf"no run '(Run#99|maya-chen)' in workspace '{acme.name}'"):
            call()


@pytest.mark.parametrize(
    ("question", "message"), [("", "is empty"), (" \n", "is empty"), ("x" * 2001, "2,001 characters")]
)
def test_a_question_is_refused_before_anything_is_saved(acme: Workspace, question: str, message: str) -> None:
    position = acme.graph.position
    with pytest.raises(UsageError, match=message):
        acme.session("new").investigate(question)
    assert acme.graph.position == position


def test_runs_are_numbered_one_by_one(acme: Workspace) -> None:
    runs = [acme.session("s").investigate("Who owns the system?", run=False).run_id for _ in range(3)]
    assert runs == ["Run#1", "Run#2", "Run#3"]
