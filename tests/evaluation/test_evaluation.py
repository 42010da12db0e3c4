"""The evaluation itself: what it reads, what it counts, and that the default mode keeps what it has reached."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from contextmesh.investigation.workspace import Workspace
from tests.evaluation.__main__ import corpora
from tests.evaluation.dataset import Question, score, units
from tests.evaluation.heldout import held_out, read_parts
from tests.evaluation.incidents import incident, read_incidents
from tests.evaluation.locomo import SEVERAL_TURNS, read_locomo
from tests.evaluation.measuring import ask_all, modes
from tests.evaluation.shop import read_shop
from tests.evaluation.tables import HEAD, line

ONE_CONVERSATION = [
    {
        "sample_id": "made-up",
        "conversation": {
            "speaker_a": "Ana",
            "speaker_b": "Bo",
            "session_10_date_time": "1:05 pm on 2 March, 2026",
            "session_10": [{"speaker": "Bo", "dia_id": "D10:1", "text": "Later."}],
            "session_2_date_time": "12:30 am on 1 March, 2026",
            "session_2": [
                {"speaker": "Ana", "dia_id": "D2:1", "text": "The pump broke."},
                {"speaker": "Bo", "dia_id": "D2:2", "text": "Again?"},
            ],
        },
        "qa": [
            {"question": "What broke?", "evidence": ["D2:1; D2:2"], "category": 1},
            {"question": "When?", "evidence": ["D2:1", "D"], "category": 2},
            {"question": "No evidence?", "evidence": [], "category": 5},
        ],
    }
]


def asked(*gold: str) -> Question:
    return Question(text="?", gold=frozenset(gold))


def test_scores_by_hand() -> None:
    many = [f"x{at}" for at in range(30)]
    scores = score([(asked("x0"), many), (asked("x3", "x15"), many), (asked("x12", "x25"), many), (asked("y"), many)])
    assert scores.n == 4
    assert (scores.any_10, scores.all_20, scores.hit_3) == (2 / 4, 2 / 4, 1 / 4)
    assert scores.mrr == pytest.approx((1 + 1 / 4 + 1 / 13) / 4)
    assert score([]).n == 0


def test_units_stand_once_and_without_what_is_apart() -> None:
    question = Question(text="?", gold=frozenset({"b"}), apart=frozenset({"a"}))
    assert units(["a.1", "b.2", "c", "b.1"], question, lambda key: key.partition(".")[0]) == ["b", "c"]
    assert units(["system.x", "b"], question, lambda key: "" if key.startswith("system") else key) == ["b"]
    assert units(["b", "b"], question, None) == ["b"]


def test_turns_become_notes_of_their_session_in_order(tmp_path: Path, ws: Workspace) -> None:
    file = tmp_path / "made-up.json"
    file.write_text(json.dumps(ONE_CONVERSATION), encoding="utf-8")
    (corpus,) = read_locomo(file)
    assert [(row.gold, row.group) for row in corpus.questions] == [
        ({"turn-D2-1", "turn-D2-2"}, SEVERAL_TURNS),
        ({"turn-D2-1"}, ""),
    ]
    corpus.fill(ws)
    notes = {row.id: row.data for row in ws.graph.objects("Memory")}
    assert notes["turn-D2-1"]["author"] == "Ana"
    assert notes["turn-D2-1"]["occurred_at"] == "2026-03-01T00:30:00+00:00"
    assert notes["turn-D2-1"]["session"] == notes["turn-D2-2"]["session"] != notes["turn-D10-1"]["session"]
    created = [key for key in (event.payload.get("id", "") for event in ws.graph.events) if key.startswith("turn-")]
    assert created == ["turn-D2-1", "turn-D2-2", "turn-D10-1"]


def test_the_set_that_ships_says_what_it_is_and_has_its_evidence(ws: Workspace) -> None:
    corpus = read_shop()
    assert "synthetic" in corpus.name
    corpus.fill(ws)
    known = {row.id for row in ws.graph.objects()}
    assert [row.text for row in corpus.questions if not row.gold <= known] == []


def test_the_default_finds_more_of_it_than_words_do(ws: Workspace) -> None:
    found = {row.mode: row for row in ask_all(read_shop(), ws, modes(None))}
    scores = {mode: score(row.results) for mode, row in found.items()}
    assert scores["full"].any_10 > max(scores["words"].any_10, scores["terms"].any_10)
    assert scores["full"].any_10 >= 0.8
    assert scores["full"].all_20 >= 0.7
    shown = line("shop", [found["full"]])
    assert len(shown) == len(HEAD)
    assert f"{scores['full'].any_10:.3f}" in shown


def test_an_incidents_facts_belong_to_it() -> None:
    assert incident("pm2021-005.timeline.1a") == incident("pm2021-005") == "pm2021-005"
    assert incident("system.kubernetes") == ""


@pytest.fixture
def real() -> Path:
    root = os.environ.get("CONTEXTMESH_REAL_DATA")
    if not root:
        pytest.skip("CONTEXTMESH_REAL_DATA does not name the folder of real data")
    return Path(root)


@pytest.mark.real_data
def test_similar_incidents_are_found(real: Path, ws: Workspace) -> None:
    corpus = read_incidents(real / "similar_incidents_dev.json", real / "dfds_postmortems")
    (found,) = ask_all(corpus, ws, ["full"])
    scores = score(found.results)
    assert scores.hit_3 >= 0.88
    assert scores.mrr >= 0.80


def reached(results: Sequence[tuple[Question, Sequence[str]]]) -> tuple[bool, ...]:
    scores, several = score(results), score(row for row in results if row[0].group == SEVERAL_TURNS)
    return scores.any_10 >= 0.80, scores.all_20 >= 0.76, several.any_10 >= 0.68, several.all_20 >= 0.28


@pytest.mark.real_data
@pytest.mark.slow
def test_turns_with_the_evidence_are_found_with_weights_chosen_elsewhere_too(real: Path, opened) -> None:
    results, parts = [], []
    for corpus in read_locomo(real / "locomo_dev" / "locomo_first5.json"):
        ws = opened()
        (asked,) = ask_all(corpus, ws, ["full"])
        results += asked.results
        parts.append(read_parts(corpus, ws))
    assert reached(results) == (True,) * 4
    assert reached([row for _, rows in held_out(parts) for row in rows]) == (True,) * 4


def test_the_public_sets_are_asked_only_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CONTEXTMESH_REAL_DATA", raising=False)
    assert [name for name, _ in corpora()] == ["shop (synthetic)"]
