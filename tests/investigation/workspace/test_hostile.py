"""Hostile text, as a note, a query, an id and a question."""

import random

import pytest

from contextmesh.errors import ContextMeshError
from contextmesh.investigation.workspace import Workspace
from tests.investigation.conftest import Opened
from tests.investigation.making import MEGABYTE, evidence, reading, whole

HARD_TEXTS = {
    "cypher": "foundword'}) DETACH DELETE n //",
    "cypher-comment": "foundword */ MATCH (n) DETACH DELETE n /* `Node` $ids {id: 1}",
    "quotes": "foundword \"double\" 'single' `back` \\' \\\" \\\\ \\",
    "search-operators": 'foundword @search:{x} | -y* (a|b) %fuzzy% "exact" ~[1 2]',
    "emoji": "foundword 🔥🧑‍🚒👩🏽‍💻🇩🇪 exploded",
    "right-to-left": "foundword שלום العربية \u202eevil\u202c end",
    "markup": "foundword <script>alert(1)</script> & <b onclick='x'>",
    "controls": "foundword \0 null \x1b[31m red \x07 bell \r\n\t\v\f end",
    "unicode": "foundword ǅ İ ß ﬁ ½ ² Å é ᾳ 漢字 かな 한국어 नमस्ते ไทย",
    "json": 'foundword {"a": [1, null, NaN, Infinity], "b": "\\u0000"}',
    "megabyte": "foundword " + "x" * 500_000 + " " + "y z " * 125_000,
    "format": "foundword {0} %s %(x)s ${y} {{ z }} {% raw %}",
}


@pytest.mark.parametrize("text", HARD_TEXTS.values(), ids=HARD_TEXTS.keys())
def test_hard_text_is_stored_and_found_literally(ws: Workspace, opened: Opened, text: str) -> None:
    row = ws.session("hard").note(text)
    ws.ingest([reading([evidence("other", "Something else entirely")])])
    assert opened(ws.name).graph.get_object(row.id).data["text"] == text
    found = ws.search("foundword")
    assert list(found["id"]) == [row.id]
    assert found["text"][0] == text
    inv = ws.session("ask").investigate("foundword?")
    assert list(inv.evidence["text"]) == [text]
    assert ws.cypher("MATCH (n:Memory) WHERE n.text = $text RETURN n.id", {"text": text.replace("\0", "\ufffd")})[
        "n.id"
    ].tolist() == [row.id]
    assert len(ws.graph.objects()) == 5 + 2 + 1 + 1 + 3 + 4 + 2  # beginning, sessions, note, run, tasks, records, rest


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("The שרת is down", "שרת"),
        ("الخادم توقف", "الخادم"),
        ("It was 🔥 again", "🔥"),
        ("Straße gesperrt", "STRASSE"),
        ("ΟΔΟΣ closed", "οδος"),
        ("漢字 broke", "漢字"),
        ("İstanbul down", "İSTANBUL"),
        ("ＦＵＬＬＷＩＤＴＨ text", "fullwidth"),
        ("order-service v1.2.3 crashed", "order-service"),
        ("OrderServiceImpl crashed", "orderserviceimpl"),
        ("failing nodes", "node failed"),
        ("naïve café", "naïve"),
        ("user@example.com wrote", "user@example.com"),
        ("path/to/file.py:42", "file.py"),
        ("__init__ failed", "__init__"),
        ("0x7fff and 10.0.0.1", "10.0.0.1"),
    ],
)
def test_words_of_every_kind_are_found(ws: Workspace, text: str, query: str) -> None:
    row = ws.session("s").note(text)
    ws.session("s").note("Something else entirely")
    assert list(ws.search(query)["id"]) == [row.id]


def test_a_megabyte_of_text_is_stored_and_found(ws: Workspace) -> None:
    row = ws.session("s").note(MEGABYTE)
    assert len(row.data["text"]) > 1_000_000
    found = ws.search("zyzzyvaword")
    assert found["text"].tolist() == [MEGABYTE]


PIECES = [
    "'", '"', "`", "\\", "\0", "\n", "//", "/*", "*/", "--", ";", "|", "@", "@search:", "-", "~", "%", "*", "?", "$",
    "${", "{", "}", "[", "]", "(", ")", "<", ">", "=>", "MATCH (n) DETACH DELETE n", "OR", "AND", "NOT", "checkout",
    "ttl", "' OR 1=1", "\u202e", "\u200b", "\ufeff", "🔥", "שלום", "\x1b[31m", "%00", "\\u0000", "\\x00", "&amp;",
    "NULL", "nan", "__proto__", "{{7*7}}", "$(id)", "a" * 300, "#", "!", "é", "\u0308", "ﷺ", "𝔘", "\uffff", "1e999",
    "-0", "\t", "~[1 2]", "w:",
]  # fmt: skip


def hostile(count: int) -> list[str]:
    generator = random.Random(20260302)
    made = [piece for piece in PIECES if piece.strip()]
    while len(made) < count:
        made.append("".join(generator.choice(PIECES) for _ in range(generator.randint(2, 9))))
    return [text for text in made if text.strip()][:count]


def test_200_hostile_queries_raise_nothing(acme: Workspace) -> None:
    before = whole(acme.graph)
    texts = hostile(210)[:205]
    assert len(set(texts)) >= 200
    for text in texts:
        acme.search(text)
    assert whole(acme.graph) == before


def test_200_hostile_ids_raise_only_our_errors(acme: Workspace) -> None:
    before = whole(acme.graph)
    for text in hostile(205):
        for call in (
            lambda text=text: acme.paths(text, "maya-chen"),
            lambda text=text: acme.paths("maya-chen", text),
            lambda text=text: acme.neighborhood(text),
            lambda text=text: acme.investigation(text),
            lambda text=text: acme.revise(text, text),
        ):
            with pytest.raises(ContextMeshError, match=r"^no (object|run) "):
                call()
    assert whole(acme.graph) == before


def test_200_hostile_questions_raise_nothing(acme: Workspace) -> None:
    facts = [row.to_dict() for kind in ("Entity", "Memory", "Evidence") for row in acme.graph.objects(kind)]
    session = acme.session("hostile")
    for text in hostile(205):
        inv = session.investigate(text, run=False)
        inv.step()
        assert inv.question == text
        assert list(inv.stages["stage"]) == ["researcher"]
    for text in hostile(205)[::20]:
        assert session.investigate(text).status == "completed"
    assert facts == [row.to_dict() for kind in ("Entity", "Memory", "Evidence") for row in acme.graph.objects(kind)]


def test_half_a_surrogate_pair_as_an_id_raises_our_error(acme: Workspace) -> None:
    with pytest.raises(ContextMeshError, match="no object"):
        acme.paths("\ud800", "maya-chen")


def test_half_a_surrogate_pair_is_refused_as_a_note(acme: Workspace) -> None:
    with pytest.raises(ContextMeshError, match="half of a surrogate pair"):
        acme.session("s").note("\ud800")


def test_half_a_surrogate_pair_in_a_question_is_replaced(acme: Workspace) -> None:
    assert not acme.search("\ud800 ttl").empty
    inv = acme.session("s").investigate("what \ud800 of the ttl?")
    assert inv.question == "what \ufffd of the ttl?"
    assert inv.status == "completed"
