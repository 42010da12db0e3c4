"""What a user sees of retrieval: the same evidence whatever came first, reasons, and nothing generated."""

import json
import random
import re
from collections.abc import Callable

import pytest

from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION, entity, link, reading
from tests.investigation.retrieval.graphs import FACTS, NOON, SEMANTIC, WORDS


@pytest.mark.parametrize("seed", [1, 2])
def test_shuffled_insertion_gives_the_same_investigation(opened: Callable[..., Workspace], seed: int) -> None:
    facts = [entity(f"f{n}", f"{WORDS[n % 16]} {WORDS[n * 7 % 16]}") for n in range(40)]
    links = [link(f"f{n}", sorted(SEMANTIC)[n % 7], f"f{(n * 11 + 3) % 40}") for n in range(40)]
    results = []
    for shuffled in (False, True):
        if shuffled:
            random.Random(seed).shuffle(facts)
            random.Random(seed).shuffle(links)
        ws = opened(clock=NOON)
        for at in range(0, 40, 8):
            ws.ingest([reading(facts[at : at + 8])])
        ws.ingest([reading([], links)])
        inv = ws.session("ask").investigate("Which pump, valve or motor affects the seal of the rotor?")
        results.append(inv.to_dict())
    assert results[0] == results[1]
    assert len(results[0]["evidence"]) == 20


def test_reasons_name_terms_and_connection(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate("Who is Maya?")
    reasons = dict(zip(inv.evidence["id"], inv.evidence["reasons"], strict=True))
    assert re.fullmatch(r"matches 'Maya' \(score \d\.\d\d\)", reasons["maya-chen"])
    assert reasons["checkout-api"] == "connected: Maya Chen ←OWNED_BY— Checkout API"
    assert reasons["redis-change"] == "connected: Maya Chen ←OWNED_BY— Checkout API ←AFFECTS— Release 2.4"


def test_an_unrelated_question_says_that_nothing_matches(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate("Quel est le poids d'une baleine?")
    assert inv.evidence.empty
    assert inv.paths.empty
    assert list(inv.evidence.columns) == ["id", "kind", "label", "text", "source", "reasons"]
    assert inv.answer == "Nothing in this workspace matches the question, so there is no evidence and no answer."
    assert "Nothing in this workspace matches the question." in list(inv.gaps["gap"])
    assert list(inv.tasks["status"]) == ["blocked"] * 3
    assert inv.decision["evidence"] == []
    assert acme.graph.relations(target=inv.decision["id"], type="SUPPORTS") == []
    assert inv.status == "completed"


def test_generated_records_never_come_back_as_evidence(acme: Workspace) -> None:
    marker = "xyzzymarker"
    first = acme.session("Tuesday").investigate(f"{marker}: {QUESTION}")
    before = json.dumps(first.to_dict()["evidence"])
    for number in range(10):
        inv = acme.session(f"Session {number}").investigate(f"{marker}: {QUESTION}")
        assert set(inv.evidence["kind"]) <= FACTS
        assert json.dumps(inv.to_dict()["evidence"]) == before
        assert not [key for path in inv.to_dict()["paths"] for key in path["nodes"] if key.startswith("Run#")]
        assert marker not in inv.answer
    assert acme.search(marker).empty
    assert acme.session("last").investigate(f"{marker}?").evidence.empty
