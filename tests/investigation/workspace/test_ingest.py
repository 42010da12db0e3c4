"""Ingesting readings: again, changed, withdrawn, refused."""

from typing import Any

import pytest

from contextmesh.errors import ContextMeshError
from contextmesh.investigation.vocabulary import KINDS, RELATIONS, Vocabulary
from contextmesh.investigation.workspace import Workspace
from tests.investigation.conftest import Opened
from tests.investigation.making import entity, evidence, link, reading, thing, whole


def test_ingesting_again_changes_nothing(ws: Workspace) -> None:
    facts = [entity("a", "Alpha"), evidence("e", "Alpha was late")]
    links = [link("e", "RELATES_TO", "a", source="paper")]
    first = ws.ingest([reading(facts, links)])
    assert first.to_dict() == {"added": 2, "changed": 0, "unchanged": 0, "skipped": []}
    position = ws.graph.position
    assert ws.ingest([reading(facts, links)]).to_dict() == {"added": 0, "changed": 0, "unchanged": 2, "skipped": []}
    assert ws.graph.position == position
    assert [row.data for row in ws.graph.relations(source="e")] == [{"source": "paper"}]


def test_a_changed_fact_is_replaced_and_its_history_kept(ws: Workspace) -> None:
    ws.ingest([reading([evidence("e", "first", line=3)])])
    report = ws.ingest([reading([evidence("e", "second")])])
    assert (report.added, report.changed, report.unchanged) == (0, 1, 0)
    row = ws.graph.get_object("e")
    assert (row.data, row.version) == ({"label": "e", "text": "second"}, 2)
    assert [text for text in ws.history("e")["text"] if text] == ["first", "second"]


def test_what_vanished_is_withdrawn_and_comes_back(ws: Workspace) -> None:
    both = [evidence("src", "The source"), evidence("src.part", "Quokkaword part")]
    ws.ingest([reading(both, source="src"), reading([evidence("srcother", "Another source")], source="srcother")])
    gone = ws.ingest([reading(both[:1], source="src")])
    assert (gone.added, gone.changed, gone.unchanged, gone.withdrawn) == (0, 1, 1, 1)
    assert ws.graph.get_object("src.part").data["withdrawn"] is True
    assert ws.graph.get_object("srcother").data.get("withdrawn") is None
    assert list(ws.search("quokkaword")["id"]) == []
    assert ws.session("s").investigate("Quokkaword?").evidence.empty
    again = ws.ingest([reading(both[:1], source="src")])
    assert (again.changed, again.withdrawn) == (0, 0)
    back = ws.ingest([reading(both, source="src")])
    assert (back.added, back.changed, back.withdrawn) == (0, 1, 0)
    assert "withdrawn" not in ws.graph.get_object("src.part").data
    assert list(ws.search("quokkaword")["id"]) == ["src.part"]


def test_an_unreadable_source_withdraws_nothing(ws: Workspace) -> None:
    ws.ingest([reading([evidence("src", "The source")], source="src")])
    assert ws.ingest([reading([])]).to_dict() == {"added": 0, "changed": 0, "unchanged": 0, "skipped": []}
    assert ws.graph.get_object("src").version == 1


def test_a_source_that_is_given_twice_counts_once(ws: Workspace) -> None:
    page = reading([evidence("src", "The source"), evidence("src.part", "A part")], source="src")
    ws.ingest([page, page])
    report = ws.ingest([page, page])
    assert (report.changed, report.withdrawn) == (0, 0)


def test_a_relation_that_its_source_no_longer_states_goes(ws: Workspace) -> None:
    facts = [entity("src", "Alpha"), entity("src.ann", "Ann"), entity("src.bob", "Bob")]
    ws.ingest([reading(facts, [link("src", "OWNED_BY", "src.ann")], source="src")])
    ws.ingest([reading(facts, [link("src", "OWNED_BY", "src.bob")], source="src")])
    assert [row.target for row in ws.graph.relations(source="src", type="OWNED_BY")] == ["src.bob"]


def test_several_readings_may_share_a_fact(ws: Workspace) -> None:
    shared = entity("system.a", "Alpha")
    report = ws.ingest([reading([evidence(key, key), shared], source=key) for key in ("s1", "s2")])
    assert (report.added, report.changed) == (3, 0)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            reading([evidence("ok", "fine"), thing("x", "Gadget")]),
            "'Gadget' is no kind",
        ),
        (reading([evidence("ok", "fine")], [link("ok", "BLAMES", "ok")]), "'BLAMES' is no relation of this vocabulary"),
        (reading([evidence("ok", "fine"), evidence("no id", "x")]), "'no id' is no id"),
        (reading([evidence("ok", "fine"), evidence("x", "x", provenance=1)]), "the field 'provenance'"),
        (reading([evidence("ok", "fine"), evidence("x", "x", size=float("nan"))]), "JSON cannot carry"),
        (reading([evidence("ok", "fine")], [link("ok", "relates to", "ok")]), "'relates to' is no relation"),
    ],
)
def test_a_reading_is_taken_whole_or_not_at_all(ws: Workspace, bad: Any, message: str) -> None:
    before, position = whole(ws.graph), ws.graph.position
    with pytest.raises(ContextMeshError, match=message):
        ws.ingest([bad])
    assert whole(ws.graph) == before
    assert ws.graph.position == position


def test_a_vocabulary_brings_kinds_and_relations(opened: Opened) -> None:
    ws = opened(vocabulary=Vocabulary(kinds=(*KINDS, "Gadget"), relations={**RELATIONS, "BLAMES": "anyone -> anyone"}))
    ws.ingest([reading([thing("x", "Gadget")], [link("x", "BLAMES", "x")])])
    assert list(ws.table("Gadget")["id"]) == ["x"]
