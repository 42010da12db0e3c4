"""What a question states besides its words."""

from datetime import UTC, datetime

import pytest

from contextmesh.core.model import Object
from contextmesh.investigation.asking import Asked, is_named, moment_of, names_of, read_question


@pytest.mark.parametrize(
    ("question", "phrases"),
    [
        ('Who said "session store"?', (("session", "store"),)),
        ("Who said “session store” and ‘cache’?", (("session", "store"), ("cach",))),
        ("What is 'invoice relay'?", (("invoic", "relay"),)),
        ("Ana's and Bo's notes", ()),
        ("the shoppers' baskets and the sellers' shelves", ()),
        ('an unfinished "quote', ()),
        ('""', ()),
    ],
)
def test_quoted_words_are_phrases_and_genitives_are_not(question: str, phrases: tuple[tuple[str, ...], ...]) -> None:
    assert read_question(question).phrases == phrases


@pytest.mark.parametrize(
    ("question", "months", "years"),
    [
        ("What happened in March 2026?", (3,), (2026,)),
        ("What happened in march?", (), ()),
        ("May we restart it?", (), ()),
        ("What failed in May and june?", (5, 6), ()),
        ("since 2026-05", (5,), (2026,)),
        ("on 2026-05-19", (5,), (2026,)),
        ("port 20260, version 1.2026, v2026 or 2,026 errors", (), ()),
    ],
)
def test_months_and_years(question: str, months: tuple[int, ...], years: tuple[int, ...]) -> None:
    asked = read_question(question)
    assert (asked.months, asked.years) == (months, years)


@pytest.mark.parametrize(
    ("question", "side"),
    [("after Release 2.4", 1), ("since it", 1), ("before the outage", -1), ("before or after", 0), ("at noon", 0)],
)
def test_sides_in_time(question: str, side: int) -> None:
    assert read_question(question).side == side


def test_a_moment_fits_the_months_and_years() -> None:
    moment = datetime(2026, 5, 19, tzinfo=UTC)
    assert Asked(months=(5,)).fits_date(moment) == Asked(years=(2026,)).fits_date(moment) == 1
    assert Asked(months=(5,), years=(2026,)).fits_date(moment) == 1
    assert Asked(months=(6,), years=(2026,)).fits_date(moment) == 0.5
    assert Asked(months=(5,), years=(2025,)).fits_date(moment) == Asked().fits_date(moment) == 0


def test_the_first_time_with_a_zone_is_when_something_happened() -> None:
    assert moment_of({"occurred_at": "soon", "time": "2026-05-19T09:00:00", "started_at": "2026-05-19T10:00Z"}) == (
        datetime(2026, 5, 19, 10, tzinfo=UTC)
    )
    assert moment_of({"updated_at": "2026-05-19T10:00Z"}) is None


def test_names() -> None:
    row = Object(id="x", type="Entity", data={"label": "Checkout API", "aliases": ["the till", 7, " "]})
    assert names_of(row) == ["Checkout API", "the till"]
    assert is_named("Checkout API", "is the checkout  API down?")
    assert not is_named("Checkout API", "is the checkout-api down?")
    assert not is_named("till", "until")
