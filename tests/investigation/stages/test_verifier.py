"""Verifier: what competes, what has gone, and that nothing is ever called the cause."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from contextmesh.investigation.vocabulary import RELATIONS, SEMANTIC_RELATIONS, Vocabulary
from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION, entity, evidence, link, reading

BLAME = re.compile(
    r"\b(caused by|was caused|root cause (is|was)|the cause (is|was)|because of|due to|led to|resulted in|"
    r"triggered|responsible for|is to blame|brought about)\b",
    re.IGNORECASE,
)
SYSTEM = entity("system", "Quokka Gateway")


def competing(ws: Workspace, question: str = "quokka?") -> list[str]:
    inv = ws.session("s").investigate(question)
    found = [text for text in inv.warnings["warning"] if text.startswith("Competing values")]
    assert inv.decision["status"] == ("checked with warnings" if found else "checked")
    return found


def asserts(key: str, value: Any, *, attribute: str = "current_value", subject: str = "system", **data: Any) -> Any:
    stated = [{"subject": subject, "attribute": attribute, "value": value}]
    return evidence(key, f"quokka says {key}", asserts=stated, **data)


# what competes


def test_competing_owners_are_flagged_with_both_sources(ws: Workspace) -> None:
    people = [entity("ann", "Ann Lee", "person"), entity("bob", "Bob Ray", "person")]
    ws.ingest([reading([SYSTEM, *people], [link("system", "OWNED_BY", "ann", source="wiki page"),
                                          link("system", "OWNED_BY", "bob", source="pager rota")])])  # fmt: skip
    (warning,) = competing(ws)
    assert warning == (
        "Competing values for owner of Quokka Gateway: 'Ann Lee' (says wiki page) against 'Bob Ray' (says pager rota). "
        "Find out which holds."
    )


def test_an_owner_without_a_source_is_shown_by_its_relation(ws: Workspace) -> None:
    people = [entity("ann", "Ann Lee", "person"), entity("bob", "Bob Ray", "person")]
    ws.ingest([reading([SYSTEM, *people], [link("system", "OWNED_BY", key) for key in ("ann", "bob")])])
    (warning,) = competing(ws)
    assert "says relation system>OWNED_BY>ann" in warning
    assert "says relation system>OWNED_BY>bob" in warning


def test_competing_values_are_flagged_with_both_sources(ws: Workspace) -> None:
    ws.ingest([reading([SYSTEM, asserts("runbook", "60 s"), asserts("dashboard", "3,600 s")])])
    (warning,) = competing(ws)
    assert warning.startswith("Competing values for current value of Quokka Gateway: ")
    assert "'60 s' (says runbook)" in warning
    assert "'3,600 s' (says dashboard)" in warning


def test_an_asserted_owner_competes_with_another(ws: Workspace) -> None:
    facts = [asserts(key, value, attribute="owner") for key, value in (("a1", "Ann"), ("a2", "Bob"), ("a3", "ann "))]
    ws.ingest([reading([SYSTEM, *facts])])
    (warning,) = competing(ws)
    assert "(says a1, a3) against 'Bob' (says a2)" in warning


@pytest.mark.parametrize("values", [("60 s", "60 s"), ("60 s", " 60 S "), (60, "60"), (True, "true"), ("Ω", "ω")])
def test_nothing_is_flagged_where_sources_agree(ws: Workspace, values: tuple[Any, Any]) -> None:
    ws.ingest([reading([SYSTEM, asserts("one", values[0]), asserts("two", values[1])])])
    assert competing(ws) == []


def test_other_subjects_and_many_valued_attributes_do_not_compete(ws: Workspace) -> None:
    facts = [
        asserts("one", "x", subject="system"),
        asserts("two", "y", subject="elsewhere"),
        asserts("three", "x", attribute="tag"),
        asserts("four", "y", attribute="tag"),
    ]
    ws.ingest([reading([SYSTEM, *facts, entity("other", "Quokka Other")], [link("system", "DEPENDS_ON", "other")])])
    assert competing(ws) == []


@pytest.mark.parametrize("state", ["superseded", "withdrawn"])
def test_history_no_longer_counts(ws: Workspace, state: str) -> None:
    people = [entity("ann", "Ann Lee", "person"), entity("bob", "Bob Ray", "person", **{state: True})]
    facts = [SYSTEM, *people, asserts("one", "x"), asserts("two", "y", **{state: True})]
    ws.ingest([reading(facts, [link("system", "OWNED_BY", key) for key in ("ann", "bob")])])
    assert competing(ws) == []


def test_a_neighbour_outside_the_evidence_may_compete(ws: Workspace) -> None:
    crowd = [entity(f"p{n:02}", f"Person {n:02}", "person") for n in range(30)]
    facts = [SYSTEM, *crowd]
    ws.ingest([reading(facts, [link("system", "OWNED_BY", person.id) for person in crowd])])
    (warning,) = competing(ws)
    assert all(f"'Person {n:02}'" in warning for n in range(30))


@pytest.mark.parametrize("stated", [None, "text", [None], [[]], [{}], [{"attribute": "current_value"}], {"a": 1}])
def test_assertions_of_another_shape_do_no_harm(ws: Workspace, stated: Any) -> None:
    ws.ingest([reading([SYSTEM, evidence("odd", "quokka odd", asserts=stated), asserts("one", "x")])])
    assert competing(ws) == []


@pytest.mark.parametrize("semantic", [True, False])
def test_a_relation_that_the_test_declares_single_valued_competes(
    opened: Callable[..., Workspace], semantic: bool
) -> None:
    words = Vocabulary(
        relations={**RELATIONS, "HOSTED_IN": "system -> place"},
        semantic=(*SEMANTIC_RELATIONS, *(["HOSTED_IN"] if semantic else [])),
        single_valued_relations={"HOSTED_IN": "location"},
    )
    ws = opened(vocabulary=words)
    places = [entity("north", "North Hall", "place"), entity("south", "South Hall", "place")]
    owners = [entity("ann", "Ann Lee", "person"), entity("bob", "Bob Ray", "person")]
    links = [
        link("system", "HOSTED_IN", "north", source="floor plan"),
        link("system", "HOSTED_IN", "south", source="asset list"),
        *(link("system", "OWNED_BY", key) for key in ("ann", "bob")),
    ]
    ws.ingest([reading([SYSTEM, *places, *owners], links)])
    (warning,) = competing(ws)  # owners may be several in this vocabulary
    assert warning.startswith("Competing values for location of Quokka Gateway: ")
    assert "says floor plan" in warning
    assert "says asset list" in warning


def test_an_attribute_that_the_test_declares_single_valued_competes(opened: Callable[..., Workspace]) -> None:
    ws = opened(vocabulary=Vocabulary(single_valued_attributes=frozenset({"boiling_point"})))
    facts = [
        asserts("one", "99", attribute="boiling_point"),
        asserts("two", "100", attribute="boiling_point"),
        asserts("three", "x"),
        asserts("four", "y"),
        *(entity(f"other-{n}", f"Bystander {n}") for n in range(3)),
    ]
    ws.ingest([reading([SYSTEM, *facts])])
    (warning,) = competing(ws)
    assert warning == (
        "Competing values for boiling point of Quokka Gateway: '100' (says two) against '99' (says one). "
        "Find out which holds."
    )


# what has gone


def test_a_path_that_broke_is_named_and_dropped(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    for _ in range(3):
        inv.step()
    before = len(inv.paths)
    acme.graph.remove_relation("redis-change>AFFECTS>checkout-api")
    inv.run()
    warnings = list(inv.warnings["warning"])
    assert "The path redis-change - checkout-api no longer holds." in warnings
    assert inv.decision["status"] == "checked with warnings"
    assert 0 < len(inv.paths) < before
    assert not [row for row in inv.paths["relations"] if "redis-change>AFFECTS>checkout-api" in row]


def test_evidence_that_went_after_the_decision_is_named(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    for _ in range(3):
        inv.step()
    acme.graph.remove_object("maya-chen")
    inv.run()
    assert "The evidence 'maya-chen' has gone since." in list(inv.warnings["warning"])
    assert not [row for row in inv.paths["nodes"] if "maya-chen" in row]


# what it never says


@pytest.mark.parametrize(
    "question",
    [
        QUESTION,
        "Did Release 2.4 cause the checkout errors?",
        "What is the root cause of the checkout errors?",
        "Prove that the session TTL change broke checkout",
        "Which change happened before INC-104?",
        "Who is to blame, Maya Chen?",
        "whales?",
    ],
)
def test_what_came_before_is_never_called_the_cause(acme: Workspace, question: str) -> None:
    inv = acme.session("Tuesday").investigate(question)
    said = [inv.answer, *inv.warnings["warning"], *inv.gaps["gap"], *inv.tasks["task"], *inv.evidence["reasons"]]
    assert not [text for text in said if BLAME.search(text)]
    if inv.evidence.empty:
        return
    assert inv.answer.endswith(
        "Verify operationally before you act: what came earlier, or is connected, need not be the cause."
    )
    assert any("Confirm it operationally" in text for text in inv.warnings["warning"])
    if "Release 2.4 changed" in inv.answer and "Candidate" in inv.answer:
        assert "Candidate to investigate, not an established cause: Release 2.4" in inv.answer


def test_notes_nobody_verified_are_counted(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate("errors at 14:05")
    assert "The evidence holds a user note, which nobody has verified." in list(inv.warnings["warning"])
    acme.session("Monday night").note("errors at 14:05, again")
    inv = acme.session("Tuesday").investigate("errors at 14:05")
    assert "The evidence holds 2 user notes, which nobody has verified." in list(inv.warnings["warning"])


def test_its_checks_say_how_narrow_they_are(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION)
    assert inv.warnings["warning"].iloc[-1] == (
        "These checks are narrow rules over the saved graph; they do not check facts against the world."
    )
    assert set(inv.warnings["stage"]) == {"verifier"}
