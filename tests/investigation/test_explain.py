"""ws.explain: the whole ranking as a table and a figure."""

import xml.etree.ElementTree as ET

import pytest

from contextmesh.errors import UsageError
from contextmesh.investigation.explain import GROUPS, PARTS
from contextmesh.investigation.workspace import Workspace

SVG = "{http://www.w3.org/2000/svg}"
QUESTION = "What did Release 2.4 change about the session TTL?"


def test_the_table_is_the_whole_ranking_with_what_each_score_is_made_of(acme: Workspace) -> None:
    position = acme.graph.position
    table = acme.explain(QUESTION).table
    inv = acme.session("Tuesday").investigate(QUESTION)
    assert list(table.columns) == ["rank", "id", "kind", "label", "score", "taken", "reasons", *PARTS]
    assert list(table["rank"]) == list(range(1, len(table) + 1))
    assert table["score"].is_monotonic_decreasing
    assert (table[list(PARTS)].sum(axis=1) - table["score"]).abs().max() < 1e-4
    assert set(table.loc[table["taken"] != "", "id"]) == set(inv.evidence["id"])
    reasons = dict(zip(inv.evidence["id"], inv.evidence["reasons"], strict=True))
    assert {row.id: row.reasons for row in table.itertuples() if row.taken} == reasons
    assert table["id"][0] in {"redis-change", "session-ttl"}
    assert "named in the question" in table["reasons"][0]
    assert acme.graph.position > position  # by the investigation; explaining writes nothing


def test_explaining_writes_nothing(acme: Workspace) -> None:
    position = acme.graph.position
    acme.explain(QUESTION).to_html()
    assert acme.graph.position == position


def test_the_figure_has_a_bar_for_each_of_the_first_facts(acme: Workspace) -> None:
    found = acme.explain(QUESTION)
    root = ET.fromstring(found.figure)  # noqa: S314 - our own picture
    assert root.tag == f"{SVG}svg"
    texts = [row.text for row in root.iter(f"{SVG}text")]
    assert f"{found.ranked[0].score:.2f}" in texts
    assert set(GROUPS) <= set(texts)
    bars = [row for row in root.iter(f"{SVG}rect") if row.find(f"{SVG}title") is not None]
    assert len(bars) >= min(20, len(found.ranked))
    assert "<script" not in found.figure


def test_facts_and_questions_are_escaped(ws: Workspace) -> None:
    ws.session("s").note('the <script>alert(1)</script> pump & "co"')
    found = ws.explain("<b>pump</b> & co?")
    ET.fromstring(found.figure)  # noqa: S314
    assert "<script" not in found.to_html()
    assert "<b>pump" not in found.to_html()


def test_nothing_found_is_shown_as_nothing(acme: Workspace) -> None:
    found = acme.explain("Quel est le poids d'une baleine?")
    assert found.table.empty
    assert "Nothing matches." in found.figure
    assert "0 ranked, 0 facts taken" in repr(found)


@pytest.mark.parametrize("mode", ["full", "words", "terms"])
def test_every_mode_can_be_shown(acme: Workspace, mode: str) -> None:
    found = acme.explain(QUESTION, mode=mode)  # type: ignore[arg-type]
    bundle = found._repr_mimebundle_()
    assert "<svg" in bundle["text/html"]
    assert "redis-change" in bundle["text/plain"]
    assert "ws.embed() adds meaning" in bundle["text/plain"] or mode != "full"


def test_what_cannot_be_asked_is_refused(acme: Workspace) -> None:
    with pytest.raises(UsageError, match="the question is empty"):
        acme.explain(" ")
    with pytest.raises(UsageError, match="the mode is 'x'; expected one of 'full', 'words', 'terms'"):
        acme.explain("x", mode="x")  # type: ignore[arg-type]
