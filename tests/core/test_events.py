"""Canonical JSON, what an event must hold, ids and clocks."""

import enum
import json
import math
from collections import OrderedDict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextmesh.core.events import (
    MAX_DEPTH,
    Clock,
    Event,
    FrozenClock,
    TickingClock,
    canonical,
    decode,
    encode,
    to_json,
    to_microseconds,
    to_timestamp,
)
from contextmesh.core.payloads import prepare
from contextmesh.errors import (
    CorruptedEventPayloadError,
    InvalidEventError,
    NonSerializableEventError,
)

text = st.text()  # Hypothesis leaves lone surrogates out
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4)
)


class Colour(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


class Label(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "'}) DETACH DELETE n //"

    __repr__ = __str__


class Ratio(float):
    def __repr__(self) -> str:
        return "half"


class Count(int):
    def __repr__(self) -> str:
        return "many"

    __str__ = __repr__


# Canonical JSON


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ((1, (2, 3)), [1, [2, 3]]),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({(2, 1), (1, 2)}, [[1, 2], [2, 1]]),
        ({10, 9, "a", None}, ["a", 10, 9, None]),  # mixed types sort by their JSON text
        (Decimal("1.10"), "1.10"),
        (Decimal("NaN"), "NaN"),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5, 6, UTC), "2026-01-02T03:04:05.000006+00:00"),
        (time(3, 4), "03:04:00"),
        ({1: "a", None: "b"}, {"null": "b", "1": "a"}),
        ({True: "a", 2.5: "b", (1, "x"): "c"}, {"true": "a", "2.5": "b", '[1,"x"]': "c"}),
        ({date(2026, 1, 2): 1}, {"2026-01-02": 1}),
        (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
        (MappingProxyType({"a": 1}), {"a": 1}),
        (Word.RED, "red"),
        (Number.ONE, 1),
        ({Word.RED: Number.ONE}, {"red": 1}),
        (Label("x"), "x"),
        ({Label("k"): Label("v")}, {"k": "v"}),
        (Ratio(0.5), 0.5),
        (Count(7), 7),
        (10**4000, 10**4000),
        (0.1 + 0.2, 0.30000000000000004),
        ("\0\u202e\U0001f525", "\0\u202e\U0001f525"),
        (True, True),
        (None, None),
    ],
)
def test_canonical(given: Any, expected: Any) -> None:
    result = canonical(given)
    assert result == expected
    assert to_json(result) == json.dumps(expected, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("given", [Word.RED, Number.ONE, Label("x"), Ratio(0.5), Count(7)])
def test_subclasses_become_plain(given: Any) -> None:
    assert type(canonical(given)) in (str, int, float)
    [key] = canonical({Label("k"): 1})
    assert type(key) is str


def test_keys_are_sorted_at_every_depth() -> None:
    assert list(canonical({"b": 1, "a": {"d": 1, "c": 1}})) == ["a", "b"]
    assert to_json(canonical({"b": 1, "a": [{"d": 1, "c": 1}]})) == '{"a":[{"c":1,"d":1}],"b":1}'


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"a": math.nan}, r"payload\.a is nan"),
        ({"a": [0, {"b": math.inf}]}, r"payload\.a\[1\]\.b is inf"),
        ({"a": (-math.inf,)}, r"payload\.a\[0\] is -inf"),
        ({"a": b"x"}, r"payload\.a is a bytes, which JSON cannot carry"),
        ({"a": bytearray(b"x")}, r"payload\.a is a bytearray"),
        ({"a": {"b": object()}}, r"payload\.a\.b is a object"),
        ({"a": SimpleNamespace()}, r"payload\.a is a SimpleNamespace"),
        ({"a": Colour.RED}, r"payload\.a is a Colour"),
        ({"a": 1j}, r"payload\.a is a complex"),
        ({"a": range(3)}, r"payload\.a is a range"),
        ({"a": iter([])}, r"payload\.a is a list_iterator"),
        ({"a": timedelta(1)}, r"payload\.a is a timedelta"),
        ({"a": ["\ud800"]}, r"payload\.a\[0\] holds half of a surrogate pair"),
        ({"\udfff": 1}, "payload key holds half of a surrogate pair"),
        ({"a": {b"k": 1}}, r"payload\.a key is a bytes"),
        ({"a": {math.nan: 1}}, r"payload\.a key is nan"),
        ({"a": {Colour.RED: 1}}, r"payload\.a key is a Colour"),
        ({"a": {1: "x", "1": "y"}}, r"payload\.a has two keys that both read '1' as text"),
        ({"a": {object()}}, r"payload\.a\{\} is a object"),
    ],
)
def test_not_json(given: Any, path: str) -> None:
    with pytest.raises(NonSerializableEventError, match=path):
        canonical(given)
    for builtin in (TypeError, ValueError, InvalidEventError):
        with pytest.raises(builtin, match=path):
            prepare(note(given))


def note(payload: dict[Any, Any]) -> Event:
    return Event(type="note.made", payload=payload)


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_depth() -> None:
    assert canonical(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    with pytest.raises(NonSerializableEventError, match="nests deeper than 64 levels"):
        canonical(nested(MAX_DEPTH + 1))
    with pytest.raises(NonSerializableEventError, match="nests deeper than 64 levels"):
        canonical(nested(100_000))


def test_a_structure_that_holds_itself() -> None:
    loop: dict[str, Any] = {}
    loop["again"] = [loop]
    with pytest.raises(NonSerializableEventError, match="nests deeper"):
        canonical(loop)


def test_canonical_is_detached() -> None:
    given = {"list": [{"a": 1}]}
    result = canonical(given)
    given["list"][0]["a"] = 2
    assert result == {"list": [{"a": 1}]}


@given(json_values)
def test_plain_json_is_canonical_already(value: Any) -> None:
    assert canonical(value) == value
    written = to_json(canonical(value))
    plain = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert json.dumps(json.loads(written), separators=(",", ":"), ensure_ascii=False) == plain  # 1e16 is 1e+16
    assert to_json(json.loads(written)) == written
    assert canonical(canonical(value)) == canonical(value)


# Encoding

ids = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=200)
events = st.builds(
    Event,
    id=ids,
    type=st.text(min_size=1),
    payload=st.dictionaries(text, json_values, max_size=4),
    actor=st.text(min_size=1),
    frame_id=st.none() | text,
    caused_by=st.none() | ids,
    timestamp=st.datetimes(timezones=st.just(UTC)).map(to_timestamp),
)


@given(events)
def test_decode_undoes_encode(event: Event) -> None:
    line = encode(event)
    assert decode(line, 1) == event
    assert encode(decode(line, 1)) == line
    assert "\n" not in line
    assert json.loads(line) == event.to_dict()


@given(events)
def test_prepare_accepts_all_plain_json(event: Event) -> None:
    assert decode(encode(prepare(event)), 1).payload == event.payload


@pytest.mark.parametrize(
    "line", ["", "{", "null", "[]", "7", '{"id": "a"}', '{"id": "a", "type": "t", "payload": {}, "x": 1}']
)
def test_what_is_no_event_names_its_position(line: str) -> None:
    with pytest.raises(CorruptedEventPayloadError, match=r"the event at position 41 cannot be read: .*; restore"):
        decode(line, 41)


# Clocks


def test_clocks() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    frozen, ticking = FrozenClock(moment), TickingClock(moment, timedelta(minutes=1))
    assert [frozen.now(), frozen.now()] == [moment, moment]
    assert [ticking.now(), ticking.now()] == [moment, moment + timedelta(minutes=1)]
    assert Clock().now().tzinfo is UTC


def test_timestamps() -> None:
    assert to_timestamp(datetime(2026, 1, 2, tzinfo=UTC)) == "2026-01-02T00:00:00.000000Z"
    offset = timezone(timedelta(hours=2))
    assert to_timestamp(datetime(2026, 1, 2, 3, 4, 5, 6, offset)) == "2026-01-02T01:04:05.000006Z"
    assert to_microseconds("1970-01-01T00:00:00.000000Z") == 0
    assert to_microseconds("2001-09-09T01:46:40.000001Z") == 1_000_000_000_000_001
    assert to_microseconds("1969-12-31T23:59:59.999999Z") == -1


moments = st.datetimes(min_value=datetime(1000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - Hypothesis wants it so


@given(moments, moments)
def test_text_order_is_time_order(one: datetime, two: datetime) -> None:
    assert (to_timestamp(one) < to_timestamp(two)) == (one < two)
    assert (to_microseconds(to_timestamp(one)) < to_microseconds(to_timestamp(two))) == (one < two)
