"""A hypothesis and its run: when one is asked for, what it must not settle, what it used."""

import json
from collections.abc import Callable
from typing import Any

import pytest

import contextmesh as cm
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.workspace import Workspace
from tests.investigation.hypothesis.kept import TEXT, records, without
from tests.investigation.making import QUESTION, entity, link, reading
from tests.investigation.service import ANSWER, USAGE, Service, completion, send

# asking


def test_investigate_asks_when_told_to(acme: Workspace, service: Service) -> None:
    session = acme.session("Tuesday")
    assert session.investigate(QUESTION).hypothesis is None
    assert service.requests == []
    assert session.investigate(QUESTION, hypothesis=True).hypothesis["text"] == TEXT
    assert len(service.requests) == 1


def test_the_answer_is_the_same_with_and_without(opened: Callable[..., Workspace], service: Service) -> None:
    """Two workspaces alike, a hypothesis in one of them: this question and the next read the same in both."""
    answers = []
    note = {"hypothesis": "Checkout errors rose: the TTL is owned by nobody", "cites": ["redis-change"]}
    service.answer = lambda handler: send(handler, completion(note))
    for hypothesis in (False, True):
        ws = opened()
        cm.demo.acmeshop(ws)
        ws.session("Monday night").note("Checkout errors rose at 14:05, after Release 2.4")
        first = ws.session("Tuesday").investigate(QUESTION, hypothesis=hypothesis)
        again = ws.session("Wednesday").investigate("Why did checkout errors rose TTL owned nobody?")
        assert (first.hypothesis is not None) is hypothesis
        found = ws.search("checkout errors TTL nobody").to_json()
        answers.append((without(first), without(again), found, len(records(ws))))
    assert answers[0] == answers[1]


def test_it_is_never_evidence_nor_a_side_of_a_contradiction(acme: Workspace, service: Service) -> None:
    session = acme.session("Tuesday")
    inv = session.investigate(QUESTION, hypothesis=True)
    before = session.investigate(QUESTION)
    key = inv.hypothesis["id"]
    acme.relate("checkout-api", "OWNED_BY", key)  # even where somebody relates it by hand
    acme.relate(key, "AFFECTS", "checkout-api")
    acme.relate("redis-change", "RELATES_TO", key)
    after = session.investigate(QUESTION)
    assert list(after.warnings["warning"]) == list(before.warnings["warning"])
    assert after.answer == before.answer
    assert list(after.evidence["id"]) == list(before.evidence["id"])
    for row in acme.graph.objects("AgentRun"):
        assert key not in json.dumps(row.data)
    assert key not in json.dumps(after.to_dict())
    assert acme.search(TEXT)["id"].tolist().count(key) == 0


def test_a_run_has_one_hypothesis_and_a_failure_may_be_asked_again(
    acme: Workspace, inv: Investigation, service: Service
) -> None:
    good, service.answer = service.answer, lambda handler: send(handler, b"{}", 429)
    inv.hypothesize()
    assert "429" in inv.hypothesis["reason"]
    service.answer = good
    inv.hypothesize()
    assert (inv.hypothesis["text"], inv.hypothesis["reason"]) == (TEXT, None)
    inv.hypothesize()
    assert len(service.requests) == 2
    assert list(acme.table("Hypothesis")["id"]) == ["Run#1.hypothesis"]
    assert list(acme.history("Run#1.hypothesis")["version"].dropna().unique()) == [1, 2]
    assert acme.table("Run")["usage"][0] == {
        "model": "llama-3.3-70b-versatile", "calls": 2, **USAGE, "cost": "unknown",
    }  # fmt: skip


def test_a_run_that_is_not_verified_is_asked_nothing_about(acme: Workspace, service: Service) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    with pytest.raises(cm.UsageError, match=r"Run#1 is not verified: the researcher has not run yet; inv\.run\(\)"):
        inv.hypothesize()
    with pytest.raises(cm.UsageError, match="a hypothesis needs a verified answer"):
        acme.session("Tuesday").investigate(QUESTION, run=False, hypothesis=True)
    assert len(acme.table("Run")) == 1
    assert service.requests == []


def test_a_look_into_the_past_sends_nothing(acme: Workspace, inv: Investigation, service: Service) -> None:
    with acme.at(position=acme.graph.position) as then, pytest.raises(cm.ReadOnlyError, match="may read and not write"):
        then.investigation(inv.run_id).hypothesize()
    assert service.requests == []


def test_a_hypothesis_as_the_only_owner_is_none(ws: Workspace, service: Service) -> None:
    service.answer = lambda handler: send(handler, completion({"hypothesis": "Ines owns it", "cites": []}))
    ws.ingest([reading([entity("gate", "Quokka gate"), entity("ines", "Ines", "person")])])
    key = ws.session("s").investigate("quokka?", hypothesis=True).hypothesis["id"]
    ws.ingest([reading([], [link("gate", "OWNED_BY", "ines")])])
    ws.relate("gate", "OWNED_BY", key)
    inv = ws.session("s").investigate("quokka?")
    assert "Recorded owner of Quokka gate: Ines." in inv.answer
    assert not [text for text in inv.warnings["warning"] if "Competing" in text]


# usage


def test_usage_is_recorded_in_the_run(acme: Workspace, inv: Investigation, service: Service) -> None:
    inv.hypothesize(rates=(0.59, 0.79))
    used = {"model": "llama-3.3-70b-versatile", "calls": 1, **USAGE, "cost": 0.000254, "currency": "USD"}
    assert inv.hypothesis["usage"] == used
    assert acme.table("Run")["usage"][0] == used


def test_the_panel_of_a_run_shows_what_it_used(inv: Investigation, service: Service) -> None:
    from contextmesh.widgets.runs import completed  # noqa: PLC0415 - widgets are wanted here alone

    inv.hypothesize()
    [row] = [row for row in completed(inv) if row["id"] == "Run#1.hypothesis"]
    assert row["status"] == "answered"
    assert "400 tokens (310 in, 90 out), cost unknown" in row["usage"]


@pytest.mark.parametrize(
    "usage", [None, [], "400", {"prompt_tokens": "310", "completion_tokens": True, "total_tokens": -1}, {"x": 10**30}]
)
def test_what_is_no_count_is_unknown(inv: Investigation, service: Service, usage: Any) -> None:
    body = json.dumps({**json.loads(completion(ANSWER)), "usage": usage}).encode()
    service.answer = lambda handler: send(handler, body)
    inv.hypothesize(rates=(1, 1))
    assert inv.hypothesis["text"] == TEXT
    assert inv.hypothesis["usage"] == {"model": "llama-3.3-70b-versatile", "calls": 1, "cost": "unknown"}


def test_an_answer_of_no_use_has_its_price_too(inv: Investigation, service: Service) -> None:
    service.answer = lambda handler: send(handler, completion("no JSON"))
    inv.hypothesize()
    assert inv.hypothesis["usage"]["total_tokens"] == 400
