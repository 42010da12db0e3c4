"""An investigation as text and HTML: every fact escaped, all of it there, and what is long folded up."""

from html.parser import HTMLParser

import pytest

from contextmesh.investigation.page import FOLDED_SHOWN, SYNTHETIC
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.words import visible
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


def test_no_answer_is_made_up_before_there_is_one(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    assert inv.answer == "No answer yet: the researcher has not run yet."
    assert inv.to_dict()["decision"] is None
    page = Page(inv.to_html())
    assert "not planned yet" in page.text
    assert "nothing matches" in page.text
    assert repr(inv) == "<Investigation Run#1: the researcher has not run yet>"


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


def test_why_a_fact_with_long_names_is_there_is_folded_up_and_whole(ws: Workspace) -> None:
    long = "the zebra crossing " * 15
    facts = [entity("far", f"far {long}"), entity("near", f"quokka {long}")]
    ws.ingest([reading(facts, [link("near", "DEPENDS_ON", "far")])])
    inv = ws.session("ask").investigate("quokka?")
    [why] = [text for text in inv.evidence["reasons"] if text.startswith("connected: ")]
    assert len(why) > 500
    html = inv.to_html()
    begun = html.split('<summary dir="auto">connected: ')[1].split("</summary>")[0]
    assert len("connected: ") + len(begun) <= FOLDED_SHOWN
    assert begun.endswith("…")
    assert f'</summary><div dir="auto">{why}</div></details>' in html.replace("&gt;", ">")


def test_what_is_short_is_not_folded(inv: Investigation) -> None:
    assert max(map(len, inv.evidence["reasons"])) <= FOLDED_SHOWN
    assert "<td><details>" not in inv.to_html()
