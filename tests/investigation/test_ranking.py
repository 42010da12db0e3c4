"""How facts rank: by words first, then by what surrounds them; and that every store ranks alike."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from contextmesh.core.events import TickingClock
from contextmesh.core.graph import Graph
from contextmesh.investigation.ranking import GROWTH, WEIGHTS, Ranked, rank
from contextmesh.investigation.retrieval import ranking, retrieve
from contextmesh.investigation.search import MODES, Search
from contextmesh.investigation.surroundings import MAX_SESSION
from contextmesh.investigation.vocabulary import DEFAULT
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server
from tests.investigation.making import entity, evidence, link, reading

START = datetime(2026, 1, 1, tzinfo=UTC)


def notes(graph: Graph, session: str, texts: Sequence[str], **data: Any) -> list[str]:
    """Take notes in a session; return their ids."""
    if graph.get_object(session) is None:
        graph.add_object("Session", {"label": session}, id=session)
    keys = []
    for at, text in enumerate(texts):
        key = f"{session}-{at}"
        graph.add_object("Memory", {"label": text, "text": text} | data, id=key)
        graph.add_relation(session, key, "HAS_MEMORY")
        keys.append(key)
    return keys


def by_id(question: str, graph: Graph) -> dict[str, Ranked]:
    return {row.id: row for row in rank(Search(question, graph, DEFAULT)).rows}


def fillers(graph: Graph) -> None:
    """Facts that match nothing, so that what matches is rare."""
    for at in range(12):
        graph.add_object("Evidence", {"label": f"filler{at}", "text": "nothing of it"}, id=f"filler{at}")


def test_the_best_own_score_counts_one_and_every_score_is_the_sum_of_its_parts() -> None:
    graph = Graph(clock=TickingClock(START))
    notes(graph, "s", ["pump broke", "the valve", "pump and valve"])
    fillers(graph)
    rows = by_id("pump valve", graph)
    assert max(row.parts["words"] for row in rows.values()) == 1
    for row in rows.values():
        assert row.score == pytest.approx(sum(row.parts.values()), abs=1e-5)
        assert sum(row.terms.values()) == pytest.approx(row.parts.get("words", 0), abs=1e-5)


def test_notes_share_in_the_scores_of_those_around_them_by_half_less_for_each_one_further() -> None:
    graph = Graph(clock=TickingClock(START))
    keys = notes(graph, "s", ["the pump", *(f"note {at}" for at in range(6))])
    notes(graph, "other", ["eight", "nine"])
    fillers(graph)
    rows = by_id("pump", graph)
    assert list(rows) == keys[:5]
    for key, share in zip(keys[1:5], (1, 1 / 2, 1 / 4, 1 / 8), strict=True):
        assert rows[key].parts == {"beside": pytest.approx(WEIGHTS["beside"] * share)}
        assert (rows[key].beside, rows[key].session, rows[key].terms) == (keys[0], "s", {})


def test_the_note_after_one_that_asks_is_taken_for_its_reply() -> None:
    graph = Graph(clock=TickingClock(START))
    keys = notes(graph, "s", ["Yesterday.", "When did the pump break?", "On Monday."])
    fillers(graph)
    rows = by_id("pump", graph)
    assert list(rows) == [keys[1], keys[2], keys[0]]
    assert rows[keys[2]].parts == {"beside": WEIGHTS["beside"], "reply": WEIGHTS["reply"]}
    assert rows[keys[2]].beside == keys[1]


def test_with_meanings_too_the_best_own_score_passes_on_one() -> None:
    graph = Graph(clock=TickingClock(START))
    keys = notes(graph, "s", ["the pump", "a", "b", "c", "d", "e", "the compressor"])
    fillers(graph)
    found = rank(Search("pump", graph, DEFAULT, similar=lambda text, limit: {keys[0]: 0.9, keys[6]: 0.45}))
    rows = {row.id: row.parts for row in found.rows}
    assert (rows[keys[0]]["words"], rows[keys[0]]["similarity"]) == (1, 0.8)
    assert rows[keys[6]]["similarity"] == pytest.approx(0.4)
    assert rows[keys[1]]["beside"] == pytest.approx(0.4)
    assert rows[keys[5]]["beside"] == pytest.approx(0.4 * 0.4 / 1.8, abs=1e-5)  # of own scores 0.4 and 1.8


def test_a_session_that_holds_more_of_the_question_lifts_its_notes() -> None:
    graph = Graph(clock=TickingClock(START))
    notes(graph, "s", ["the pump", "a", "b", "the valve"])
    notes(graph, "t", ["the pump", "c", "d", "e"])
    fillers(graph)
    rows = by_id("pump valve", graph)
    assert rows["s-0"].score > rows["t-0"].score
    assert rows["s-0"].parts["session"] == WEIGHTS["session"]
    assert "session" not in rows["t-0"].parts


def test_notes_of_the_one_participant_whom_a_question_names() -> None:
    graph = Graph(clock=TickingClock(START))
    notes(graph, "s", ["the pump"], author="Ana Ruiz")
    notes(graph, "t", ["the pump"], author="Bo Lind")
    fillers(graph)
    rows = by_id("What did Ana say of the pump?", graph)
    assert list(rows) == ["s-0", "t-0"]
    assert rows["s-0"].parts["participant"] == GROWTH["participant"]
    both = by_id("What did Ana and Bo say of the pump?", graph)
    assert not [row for row in both.values() if "participant" in row.parts]


def test_a_participants_name_is_no_word_of_what_notes_say() -> None:
    graph = Graph(clock=TickingClock(START))
    notes(graph, "s", ["Ana, hello Ana", "x", "y", "z", "v", "the pump"], author="Ana")
    fillers(graph)
    rows = by_id("Ana and the pump", graph)
    assert set(rows["s-5"].terms) == {"pump"}
    assert "s-0" not in rows
    assert "s-0" in by_id("Ana?", graph)  # where the question has no other word, it is one


def test_the_month_and_the_year_of_a_question() -> None:
    graph = Graph(clock=TickingClock(START))
    notes(graph, "s", ["the pump"], occurred_at="2026-03-02T10:00:00+01:00")
    notes(graph, "t", ["the pump"], occurred_at="2026-04-02T10:00:00+01:00")
    fillers(graph)
    assert next(iter(by_id("the pump in March", graph))) == "s-0"
    assert next(iter(by_id("the pump in April 2026", graph))) == "t-0"


@pytest.mark.parametrize(("word", "first"), [("before", "s-0"), ("after", "t-0")])
def test_before_and_after_what_the_question_names(word: str, first: str) -> None:
    graph = Graph(clock=TickingClock(START))
    release = {"label": "Release 2.4", "text": "x", "entity_type": "change", "occurred_at": "2026-03-10T00:00:00Z"}
    graph.add_object("Entity", release, id="release")
    notes(graph, "s", ["the pump"], occurred_at="2026-03-02T10:00:00Z")
    notes(graph, "t", ["the pump"], occurred_at="2026-04-02T10:00:00Z")
    fillers(graph)
    found = rank(Search(f"the pump {word} Release 2.4", graph, DEFAULT))
    assert found.named == ("release",)
    assert next(row.id for row in found.rows if row.id != "release") == first


def test_exact_names_rank_before_likely_ones_and_quoted_words_as_quoted() -> None:
    graph = Graph(clock=TickingClock(START))
    graph.add_object("Entity", {"label": "API of the checkout", "text": "x"}, id="likely")
    graph.add_object("Entity", {"label": "Checkout API", "text": "x"}, id="exact")
    fillers(graph)
    rows = by_id("the Checkout API of today", graph)
    assert list(rows)[:2] == ["exact", "likely"]
    assert rows["exact"].parts["name"] == WEIGHTS["name"]
    graph.add_object("Evidence", {"label": "e1", "text": "relay the invoice"}, id="loose")
    graph.add_object(
        "Evidence", {"label": "e2", "text": "the invoice relay and much more that makes it long"}, id="quoted"
    )
    assert next(iter(by_id('who named it "invoice relay"?', graph))) == "quoted"


def test_a_whole_identifier_ranks_before_its_parts() -> None:
    graph = Graph(clock=TickingClock(START))
    graph.add_object("Evidence", {"label": "e1", "text": "INC 104, INC 104"}, id="parts")
    graph.add_object("Evidence", {"label": "e2", "text": "as in INC-104 and very many other words besides"}, id="whole")
    fillers(graph)
    rows = by_id("INC-104", graph)
    assert next(iter(rows)) == "whole"
    assert rows["whole"].parts["identifier"] == WEIGHTS["identifier"]


def test_a_question_that_names_two_things_gets_the_paths_between_them_first() -> None:
    graph = Graph(clock=TickingClock(START))
    for key in ("pump", "motor", "seal", "shaft"):
        graph.add_object("Entity", {"label": key, "text": "of the plant"}, id=key)
    for source, target in (("pump", "seal"), ("seal", "motor"), ("pump", "shaft")):
        graph.add_relation(source, target, "RELATES_TO", id=f"{source}-{target}")
    found = retrieve(Search("how are pump and motor connected?", graph, DEFAULT))
    assert set(found.named) == {"pump", "motor"}
    assert set(found.paths[0].nodes) == {"pump", "seal", "motor"}
    assert found.context[2] == "seal"


def test_a_hub_passes_less_on_than_a_fact_with_few_relations() -> None:
    graph = Graph(clock=TickingClock(START))
    for key in ("hub", "lean"):
        graph.add_object("Entity", {"label": f"{key} pump", "text": "x"}, id=key)
    for at in range(30):
        graph.add_object("Evidence", {"label": f"e{at}", "text": "y"}, id=f"a{at:02}")
        graph.add_relation("hub", f"a{at:02}", "RELATES_TO")
    graph.add_object("Evidence", {"label": "e", "text": "y"}, id="z")
    graph.add_relation("lean", "z", "RELATES_TO")
    assert retrieve(Search("pump", graph, DEFAULT)).context[2] == "z"


def test_a_large_session_is_looked_at_in_its_newest_notes() -> None:
    graph = Graph(clock=TickingClock(START))
    with graph.batch():
        notes(graph, "s", ["the pump", *(f"note {at}" for at in range(MAX_SESSION + 5))])
    assert len(by_id("pump", graph)) >= 1


def test_both_stores_rank_alike(server: Server, workspace: Any) -> None:
    def filled(graph: Graph) -> Graph:
        chance = random.Random(4)
        words = ["pump", "valve", "motor", "seal", "INC-104", "rotor", "Ana"]
        for number in range(6):
            texts = [" ".join(chance.choices(words, k=4)) if chance.random() < 0.6 else "idle" for _ in range(9)]
            at = f"2026-0{number + 1}-01T00:00:00Z"
            notes(graph, f"s{number}", texts, author=chance.choice(["Ana", "Bo"]), occurred_at=at)
        return graph

    plain = filled(Graph(clock=TickingClock(START)))
    with workspace() as name:
        stored = filled(
            Graph(FalkorDBEventStore(server, name), FalkorDBGraphStore(server, name), clock=TickingClock(START))
        )
        for question in ("What did Ana do to the pump in March?", "valve 'motor seal'", "INC-104 rotor", "nobody"):
            for mode in MODES:
                assert ranking(Search(question, stored, DEFAULT, mode=mode)) == ranking(
                    Search(question, plain, DEFAULT, mode=mode)
                )
                assert retrieve(Search(question, stored, DEFAULT, mode=mode)) == retrieve(
                    Search(question, plain, DEFAULT, mode=mode)
                )


@pytest.mark.parametrize("question", ["\0", "'; MATCH (n) DETACH DELETE n //", "\ud800 pump", '"' * 500, "(" * 500])
def test_hostile_questions_find_what_they_say_or_nothing(ws: Workspace, question: str) -> None:
    ws.ingest([reading([entity("a", "pump"), evidence("b", "valve")], [link("a", "RELATES_TO", "b")])])
    ws.session("s").note("the pump broke")
    before = ws.graph.position
    assert {seed.id for seed in ranking(Search(question, ws.graph, DEFAULT))} >= (
        {"a"} if "pump" in question else set()
    )
    assert ws.graph.position == before
    assert len(ws.graph.objects()) >= 3
