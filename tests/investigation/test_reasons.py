"""Why a fact is in the evidence, in words."""

from contextmesh.core.model import Relation
from contextmesh.investigation.reasons import reasons

SEED = {"id": "a", "score": 1.5, "terms": ["pump"], "parts": {"words": 1.0, "date": 0.5}}


def test_a_seed_says_what_it_matched_and_what_else_it_has() -> None:
    said = reasons(["a"], {"a": SEED}, {}, {"a": "Alpha"})
    assert said == {"a": "matches 'pump'; of the time that the question names (score 1.50)"}


def test_a_note_says_whose_score_it_shares() -> None:
    for part in ("beside", "reply", "near"):  # near: as runs of earlier versions recorded it
        seed = {"id": "b", "score": 0.4, "terms": [], "parts": {part: 0.4}, "beside": "a"}
        assert reasons(["b"], {"b": seed}, {}, {"a": "Alpha"}) == {"b": "beside 'Alpha' in its session (score 0.40)"}


def test_what_is_only_related_says_how_and_what_has_no_relation_left_says_so() -> None:
    known = {"r": Relation(id="r", source="a", target="b", type="AFFECTS")}
    said = reasons(["a", "b", "c"], {"a": SEED}, known, {"a": "Alpha", "b": "Beta"})
    assert said["b"] == "connected: Alpha —AFFECTS→ Beta"
    assert said["c"] == "selected with the others; its relations have gone since"
