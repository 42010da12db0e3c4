"""The one table of kinds, relations and bounds, as the design states them."""

import pytest

from contextmesh.errors import InvalidNameError
from contextmesh.investigation.vocabulary import DEFAULT, EVIDENCE_KINDS, STOP_WORDS, Bounds, Vocabulary


def test_the_kinds_are_the_designs() -> None:
    kinds = "Workspace Session Memory Evidence Entity Task Decision Agent AgentRun Run Hypothesis"
    assert set(DEFAULT.kinds) == set(kinds.split())
    assert set(EVIDENCE_KINDS) == {"Memory", "Evidence", "Entity"}


def test_the_relations_are_the_designs() -> None:
    relations = "OWNED_BY AFFECTS RESOLVED_BY DEPENDS_ON MENTIONS RELATES_TO SUPPORTS HAS_MEMORY GENERATED HANDOFF_TO"
    assert set(DEFAULT.relations) == set(relations.split())
    walked = "MENTIONS RELATES_TO SUPPORTS DEPENDS_ON OWNED_BY AFFECTS RESOLVED_BY"
    assert set(DEFAULT.semantic) == set(walked.split())


def test_the_bounds_are_the_designs() -> None:
    bounds = DEFAULT.bounds
    found = (bounds.terms, bounds.seeds, bounds.hops, bounds.context, bounds.paths, bounds.question)
    assert found == (12, 12, 3, 20, 80, 2000)
    assert Bounds(seeds=1).seeds == 1


def test_an_owner_and_a_settings_value_are_single_valued() -> None:
    assert DEFAULT.single_valued_relations == {"OWNED_BY": "owner"}
    assert {"owner", "current_value"} <= DEFAULT.single_valued_attributes


@pytest.mark.parametrize("kind", ["Node", "Head", "Patch", "entity", "", "Entity ", "Ent`ity", "Gadget"])
def test_a_kind_outside_the_vocabulary_is_refused(kind: str) -> None:
    with pytest.raises(InvalidNameError, match="is no kind of this vocabulary; expected one of Agent, AgentRun"):
        DEFAULT.check_kind(kind)


@pytest.mark.parametrize("relation", ["affects", "", "AFFECTS ", "KNOWS", "AFF`ECTS"])
def test_a_relation_outside_the_vocabulary_is_refused(relation: str) -> None:
    with pytest.raises(InvalidNameError, match="is no relation of this vocabulary; expected one of AFFECTS, DEP"):
        DEFAULT.check_relation(relation)


def test_a_vocabulary_can_be_another() -> None:
    wider = Vocabulary(kinds=("Gadget",), relations={"KNOWS": "anyone -> anyone"})
    assert (wider.check_kind("Gadget"), wider.check_relation("KNOWS")) == ("Gadget", "KNOWS")


def test_stop_words_are_words() -> None:
    assert {"the", "what", "which", "who", "and", "about"} <= STOP_WORDS
    assert not {"change", "owner", "system", "errors", "ttl"} & STOP_WORDS
