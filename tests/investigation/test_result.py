"""Investigation: what a run left, as tables, plain data, text and HTML, with every fact escaped."""

import json
from collections.abc import Callable
from html.parser import HTMLParser

import pandas as pd
import pytest

from contextmesh.investigation.result import SYNTHETIC, Investigation, visible
from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION, entity, link, reading

TAGS = {"style", "div", "details", "summary", "table", "thead", "tbody", "tr", "th", "td", "p"}
HOSTILE = [
    "<script>alert('quokka')</script>",
    "quokka </td></table></div><img src=x onerror=alert(1)>",
    'quokka " onmouseover="alert(1)" x="',
    "quokka ' & &amp; &lt;b&gt; <!-- --> ]]>",
    "quokka {{ 7*7 }} {% for x in y %} ${z}",
    "quokka 🔥 \u202eevil\u202c שלום",
    "<style>* {display: none}</style> quokka",
    "quokka \x1b[31mred\x07\0 end",
]


class Page(HTMLParser):
    """Collects what a browser would make of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def inv(acme: Workspace) -> Investigation:
    return acme.session("Tuesday").investigate(QUESTION)


# plain data


def test_to_dict_has_the_shape_that_the_command_line_prints(inv: Investigation) -> None:
    found = inv.to_dict()
    assert list(found) == [
        "question", "answer", "evidence", "paths", "tasks", "gaps", "warnings", "decision", "run",
    ]  # fmt: skip
    assert (found["question"], found["answer"], found["run"]) == (QUESTION, inv.answer, "Run#1")
    assert {tuple(row) for row in found["evidence"]} == {("id", "kind", "label", "text", "reasons")}
    assert {tuple(row) for row in found["paths"]} == {("nodes", "relations")}
    assert [row["task"] for row in found["tasks"]] == list(inv.tasks["task"])
    assert all(isinstance(text, str) for text in (*found["gaps"], *found["warnings"]))
    assert found["decision"]["id"] == "Run#1.decision"
    assert json.loads(json.dumps(found)) == found


def test_the_tables_have_these_columns(inv: Investigation) -> None:
    tables = {
        "evidence": ["id", "kind", "label", "text", "source", "reasons"],
        "paths": ["path", "hops", "nodes", "relations"],
        "tasks": ["order", "task", "status", "requires", "supported_by", "id"],
        "gaps": ["gap", "stage"],
        "warnings": ["warning", "stage"],
        "stages": ["stage", "status", "record", "position", "facts", "gaps", "warnings"],
    }
    for name, columns in tables.items():
        table = getattr(inv, name)
        assert isinstance(table, pd.DataFrame)
        assert list(table.columns) == columns
    assert list(inv.stages["record"]) == [f"Run#1.{stage}" for stage in inv.stages["stage"]]
    assert inv.stages["position"].is_monotonic_increasing
    assert list(inv.stages["facts"]) == [len(inv.evidence)] * 4


def test_editing_what_was_returned_changes_nothing(inv: Investigation) -> None:
    before = json.dumps(inv.to_dict())
    table = inv.evidence
    table.loc[:, "text"] = "edited"
    inv.paths["nodes"][0].append("edited")
    inv.tasks["supported_by"][0].append("edited")
    inv.to_dict()["decision"]["evidence"].append("edited")
    inv.to_dict()["tasks"][0]["supported_by"].append("edited")
    inv.to_dict()["paths"][0]["relations"].append("edited")
    assert json.dumps(inv.to_dict()) == before


def test_any_process_sees_the_same(inv: Investigation, acme: Workspace, opened: Callable[..., Workspace]) -> None:
    again = opened(acme.name).investigation(inv.run_id)
    assert again.to_dict() == inv.to_dict()
    assert again._repr_mimebundle_() == inv._repr_mimebundle_()


def test_an_unfinished_run_says_how_far_it_got(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    states = [(inv.status, inv.decision, len(inv.evidence), len(inv.tasks))]
    for _ in range(4):
        inv.step()
        states.append((inv.status, inv.decision and inv.decision["id"], len(inv.evidence), len(inv.tasks)))
    assert states == [
        ("the researcher has not run yet", None, 0, 0),
        ("the planner has not run yet", None, 13, 0),
        ("the executor has not run yet", None, 13, 3),
        ("the verifier has not run yet", "Run#1.decision", 13, 3),
        ("completed", "Run#1.decision", 13, 3),
    ]
    assert inv.step() is None


def test_no_answer_is_made_up_before_there_is_one(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    assert inv.answer == "No answer yet: the researcher has not run yet."
    assert inv.to_dict()["decision"] is None
    page = Page(inv.to_html())
    assert "not planned yet" in page.text
    assert "nothing matches" in page.text
    assert repr(inv) == "<Investigation Run#1: the researcher has not run yet>"


# showing


def test_a_notebook_gets_html_and_plain_text(inv: Investigation) -> None:
    bundle = inv._repr_mimebundle_(include=None, exclude=None)
    assert bundle.keys() == {"text/html", "text/plain"}
    page = Page(bundle["text/html"])
    for text in (QUESTION, "Release 2.4", "Maya Chen", "INC-104", "redis-change", "Run#1", "completed"):
        assert text in page.text
        assert text in bundle["text/plain"]
    assert set(page.tags) == TAGS
    assert "http" not in bundle["text/html"]


def test_all_that_is_in_the_tables_is_shown(inv: Investigation) -> None:
    page, plain = Page(inv.to_html()).text, " ".join(inv.to_text().split())
    for text in (*inv.evidence["text"], *inv.evidence["reasons"], *inv.tasks["task"], *inv.warnings["warning"]):
        assert text in page
        assert " ".join(text.split()) in plain or text in inv.evidence["label"].to_numpy()
    assert f"Paths (the first 12 of {len(inv.paths)}; inv.paths has all)" in page
    assert f"Evidence ({len(inv.evidence)})" in page
    assert max(map(len, inv.to_text().splitlines())) <= 100


@pytest.mark.parametrize("text", HOSTILE)
def test_facts_are_escaped_everywhere(ws: Workspace, text: str) -> None:
    facts = [
        entity("system", text[:100], aliases=[text], text=text, source=text, file=text, line=3),
        entity("change", f"{text} change", "change", text=text),
        entity("owner", f"{text} owner", "person"),
    ]
    links = [link("change", "AFFECTS", "system", source=text), link("system", "OWNED_BY", "owner", source=text)]
    ws.ingest([reading(facts, links)])
    ws.session(text.replace("\0", " ")).note(f"{text} noted", author=text.replace("\0", " "))
    inv = ws.session("ask").investigate(f"{text} quokka?")
    assert not inv.evidence.empty
    html = inv.to_html()
    page = Page(html)
    assert set(page.tags) <= TAGS
    assert page.tags.count("style") == 1
    assert page.attributes <= {"class", "open", "scope", "dir"}
    assert text in page.text.replace("\ufffd", "\0")
    for raw in ("<script>alert", "<img", "<style>*", "<!--", "49"):
        assert raw not in html
    assert inv.to_dict()["evidence"][0]["text"] is not None


def test_facts_stand_on_their_own_when_they_read_from_the_right(ws: Workspace) -> None:
    ws.session("s").note("שלום quokka العربية")
    html = ws.session("t").investigate("quokka?").to_html()
    assert '<td dir="auto">שלום quokka العربية</td>' in html
    assert "unicode-bidi: plaintext" in html


def test_control_characters_cannot_steer_a_terminal(ws: Workspace) -> None:
    ws.session("s").note("quokka \x1b[31mred\x07 \x9b1m \r end")
    text = ws.session("t").investigate("quokka?").to_text()
    assert not [char for char in text if ord(char) < 32 and char != "\n"]
    assert "\x9b" not in text
    assert r"\x1b[31mred\x07" in text
    assert visible("a\tb\x00\nc") == r"a\x09b\x00" + "\nc"


def test_a_long_fact_is_cut_in_a_page_and_whole_in_the_table(ws: Workspace) -> None:
    text = "quokka " + "word " * 2000
    ws.session("s").note(text)
    inv = ws.session("t").investigate("quokka?")
    assert len(inv.to_html()) < 10_000
    assert "… (10,007 characters)" in inv.to_text()
    assert list(inv.evidence["text"]) == [text]


def test_synthetic_evidence_says_so(inv: Investigation, ws: Workspace) -> None:
    assert SYNTHETIC in Page(inv.to_html()).text
    assert SYNTHETIC in inv.to_text()
    assert all(
        source.endswith("(synthetic)") for source in inv.evidence["source"] if source != "user note, not verified"
    )
    ws.session("s").note("quokka")
    real = ws.session("s").investigate("quokka?")
    assert SYNTHETIC not in real.to_html() + real.to_text()


def test_a_facts_source_is_its_place(ws: Workspace) -> None:
    facts = [
        entity("a", "quokka", file="postmortem.md", line=12),
        entity("b", "quokka", source="wiki"),
        entity("c", "quokka"),
    ]
    ws.ingest([reading(facts)])
    ws.session("s").note("quokka")
    found = ws.session("t").investigate("quokka?").evidence
    assert dict(zip(found["id"], found["source"], strict=True)) == {
        "a": "postmortem.md:12",
        "b": "wiki",
        "c": "",
        found["id"][found["kind"] == "Memory"].iloc[0]: "user note, not verified",
    }
