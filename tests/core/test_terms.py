"""Text -> search terms."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextmesh.core.terms import MAX_TERM_LENGTH, MAX_TERMS_STORED, search_text, sequence, stem, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("-- _ ... !?", []),
        ("Redis", ["redi"]),
        ("nodes node NODE", ["node"]),
        ("checkout-service", ["checkout_service", "checkout", "servic"]),
        ("v1.2.3", ["v1_2_3", "v1", "2", "3"]),
        ("ORA-00942", ["ora_00942", "ora", "00942"]),
        ("INC-104:", ["inc_104", "inc", "104"]),
        ("10:05", ["10_05", "10", "05"]),
        ("maya@example.com", ["maya_example_com", "maya", "exampl", "com"]),
        ("a/b/c.py", ["a_b_c_py", "a", "b", "c", "py"]),
        ("session_ttl", ["session_ttl", "session", "ttl"]),
        ("OrderService", ["orderservic", "order", "servic"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("95%", ["95"]),
        ("'quoted' \"twice\" (so)", ["quot", "twice", "so"]),
        ("a|b & (c) -d *e", ["a", "b", "c", "d", "e"]),
        ("Straße ΟΔΟΣ", ["strass", "οδοσ"]),
        ("сервис Сервис", ["сервис"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("ﬁle ① Ｆｕｌｌ", ["file", "1", "full"]),
        ("disk🔥", ["disk", "u1f525"]),
        ("🔥🔥", ["u1f525"]),
        ("nul\0byte", ["nul", "byte"]),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert list(terms(text)) == expected


def test_each_term_knows_its_word() -> None:
    assert terms("Checkouts failing in Checkout-API") == {
        "checkout": "Checkouts",
        "fail": "failing",
        "in": "in",
        "checkout_api": "Checkout-API",
        "api": "API",
    }


def test_what_is_asked_meets_what_is_stored() -> None:
    stored = set(
        search_text("The Checkout-API's sessions were failing; see OrderService, v1.2.3 and session_ttl").split()
    )
    for asked in ("checkout api", "checkout-api", "session", "SESSIONS", "failed", "order service", "v1.2.3"):
        assert terms(asked).keys() & stored, asked


def test_a_camel_case_word_is_found_by_its_lower_case() -> None:
    assert terms("orderservice").keys() & terms("OrderService").keys()


def test_long_words_are_cut() -> None:
    assert list(terms("x" * 1000)) == ["x" * MAX_TERM_LENGTH]
    assert all(len(term) <= MAX_TERM_LENGTH for term in terms("ab-" * 500 + "c"))
    assert stem("X" * 1000) == "x" * 64


def test_search_text() -> None:
    assert search_text("Redis redis", "API", "redis-api") == "redi api redis_api"
    assert search_text() == ""


def test_search_text_is_bounded() -> None:
    found = search_text(" ".join(f"w{n}x" for n in range(MAX_TERMS_STORED + 5000)), "never reached").split()
    assert len(found) == MAX_TERMS_STORED
    assert len(set(found)) == MAX_TERMS_STORED


@given(st.text())
def test_terms_are_words_that_a_query_may_hold(text: str) -> None:
    """No operator, no space, no punctuation, nothing empty; and the same terms however the text is composed."""
    for term in terms(text):
        assert 0 < len(term) <= MAX_TERM_LENGTH
        assert all(char == "_" or char.isalnum() or unicodedata.category(char)[0] in "MLN" for char in term)
        assert term.strip("_") != ""
    assert terms(text).keys() == terms(unicodedata.normalize("NFD", text)).keys()
    assert search_text(text).split() == list(terms(text))


@given(st.text(), st.text())
def test_a_text_is_found_by_its_parts(left: str, right: str) -> None:
    assert terms(left).keys() <= set(search_text(f"{left}\n{right}").split())


@given(st.text())
def test_the_sequence_of_a_text_has_its_terms_and_only_those(text: str) -> None:
    assert list(dict.fromkeys(sequence(text))) == list(terms(text))


def test_a_sequence_keeps_what_is_repeated() -> None:
    assert sequence("node NODE, order-service") == ["node", "node", "order_service", "order", "servic"]
    assert len(sequence("w " * (MAX_TERMS_STORED + 5))) == MAX_TERMS_STORED
