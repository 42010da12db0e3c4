"""Payloads: what an event must hold, and what is refused before anything is appended."""

from decimal import Decimal
from typing import Any

import pytest

from contextmesh.core.events import (
    Event,
    encode,
)
from contextmesh.core.graph import Graph
from contextmesh.core.names import check_id, check_kind, check_relation_type
from contextmesh.core.payloads import MAX_EVENT_BYTES, check_data, check_size, prepare
from contextmesh.errors import (
    InvalidEventError,
    InvalidNameError,
    ReservedFieldError,
)


def note(payload: dict[Any, Any]) -> Event:
    return Event(type="note.made", payload=payload)


def created(**changes: Any) -> Event:
    row = {"id": "a", "type": "Memory", "data": {}, "version": 1, "provenance": {}} | changes
    return Event(type="object.created", payload={"object": row, "id": row["id"]})


def related(**changes: Any) -> Event:
    row = {"id": "r", "source": "a", "target": "b", "type": "MENTIONS", "data": {}, "provenance": {}} | changes
    return Event(
        type="relation.created",
        payload={"relation": row, "id": row["id"], "source": row["source"], "target": row["target"]},
    )


def test_prepare_returns_the_event_with_its_payload_detached() -> None:
    data = {"tags": ("x",)}
    event = created(data=data)
    prepared = prepare(event)
    assert prepared.payload["object"]["data"] == {"tags": ["x"]}
    assert event.payload["object"]["data"] is data
    assert prepare(related()).type == "relation.created"


@pytest.mark.parametrize("bad", ["", " ", "a b", "a\n", "\0", "é", "🔥", "x" * 201, 7, None, ["a"], "a\u200b"])
def test_bad_ids(bad: Any) -> None:
    for event in (created(id=bad), related(id=bad), related(source=bad), related(target=bad)):
        with pytest.raises(InvalidNameError, match="is no id; expected 1 to 200 printable ASCII"):
            prepare(event)
    with pytest.raises(InvalidNameError, match="is no id"):
        check_id(bad)


@pytest.mark.parametrize("bad", ["", "1a", "a-b", "a b", "a`b", "A:B", "é", "x" * 65, 7, None, "A\n"])
def test_bad_types(bad: Any) -> None:
    for event in (created(type=bad), related(type=bad)):
        with pytest.raises(InvalidNameError, match="is no type; expected a letter"):
            prepare(event)


@pytest.mark.parametrize("kind", ["Node", "Head", "Patch"])
def test_kinds_of_the_storage(kind: str) -> None:
    with pytest.raises(InvalidNameError, match=f"the type '{kind}' belongs to the storage"):
        prepare(created(type=kind))
    with pytest.raises(InvalidNameError, match="belongs to the storage"):
        check_kind(kind)


@pytest.mark.parametrize("good", ["a", "A_1", "_", "x" * 64])
def test_good_types(good: str) -> None:
    assert check_kind(good) == check_relation_type(good) == good


@pytest.mark.parametrize("good", ["a", "!~", "x" * 200, "Run#7.task-1", "'\"`\\$"])
def test_good_ids(good: str) -> None:
    assert check_id(good) == good


@pytest.mark.parametrize(
    ("event", "says"),
    [
        (Event(type="", payload={}), "an event's type is ''; expected text"),
        (Event(type=7, payload={}), "an event's type is 7"),  # type: ignore[arg-type]
        (Event(type="t", payload={}, actor=""), "an event's actor is ''"),
        (Event(type="t", payload=[1]), "the payload of 't' is a list; expected a mapping"),  # type: ignore[arg-type]
        (Event(type="t", payload=None), "the payload of 't' is a NoneType"),  # type: ignore[arg-type]
        (Event(type="t", payload={}, id="a b"), "'a b' is no id"),
        (Event(type="\ud800", payload={}), "type holds half of a surrogate pair"),
        (Event(type="t", payload={}, actor="\ud800"), "actor holds half"),
        (Event(type="t", payload={}, frame_id="\ud800"), "frame_id holds half"),
        (Event(type="t", payload={}, caused_by="\ud800"), "caused_by holds half"),
        (Event(type="object.created", payload={}), r"payload lacks object, id; expected object, id"),
        (Event(type="object.created", payload={"object": 1, "id": "a"}), r"payload\.object is a int"),
        (Event(type="object.created", payload={"object": {"id": "a"}, "id": "a"}), "lacks type, data, version"),
        (Event(type="object.removed", payload={"id": "a"}), "payload lacks type"),
        (Event(type="relation.created", payload={"relation": {}}), "payload lacks id, source, target"),
        (Event(type="relation.removed", payload={"id": "r"}), "payload lacks source, target, type"),
        (Event(type="patch.proposed", payload={"patch": {"id": "p"}}), "lacks target, op, status"),
        (Event(type="patch.applied", payload={"patch": {}}), "payload lacks target, diff, object"),
        (Event(type="patch.rejected", payload={"patch_id": "p"}), "payload lacks target, reason"),
        (created(data=[]), "data is a list; expected a mapping"),
        (created(version=0), "version 0; expected an integer from 1"),
        (created(version=True), "version True"),
        (created(version="1"), "version '1'"),
        (created(provenance=[]), "provenance that is no mapping"),
        (related(data="x"), "data is a str"),
    ],
)
def test_malformed(event: Event, says: str) -> None:
    with pytest.raises((InvalidEventError, InvalidNameError), match=says):
        prepare(event)


@pytest.mark.parametrize("bad", [7, True, ["Run#1"], {"a": 1}, Decimal(1)])
@pytest.mark.parametrize("field", ["frame_id", "caused_by"])
def test_frame_and_cause_are_text(field: str, bad: Any) -> None:
    with pytest.raises(InvalidEventError, match=f"{field} is"):
        prepare(Event(type="t", payload={}, **{field: bad}))


def test_an_integer_of_too_many_digits() -> None:
    try:
        prepare(note({"n": 10**5000}))
    except InvalidEventError as error:
        assert "payload.n" in str(error)  # noqa: PT017 - json's own error is a ValueError as well


@pytest.mark.parametrize("kind", ["object.created", "relation.created"])
def test_inside_and_outside_name_the_same(kind: str) -> None:
    event = created() if kind == "object.created" else related()
    other = Event(type=kind, payload={**event.payload, "id": "other"})
    with pytest.raises(InvalidEventError, match=r"names 'other' outside and '.' inside; expected the same"):
        prepare(other)


def test_reserved_field() -> None:
    with pytest.raises(ReservedFieldError, match="data holds the field 'provenance', which the graph keeps"):
        prepare(created(data={"provenance": 1}))
    assert check_data({"nested": {"provenance": 1}}) == {"nested": {"provenance": 1}}


def test_four_megabytes() -> None:
    overhead = len(encode(note({"t": ""})))
    check_size(note({"t": "x" * (MAX_EVENT_BYTES - overhead)}))
    with pytest.raises(InvalidEventError, match=r"the event 'note.made' takes 4,210,689 bytes; at most 4,210,688 fit"):
        check_size(note({"t": "x" * (MAX_EVENT_BYTES - overhead + 1)}))
    with pytest.raises(InvalidEventError, match="at most 4,210,688 fit"):
        check_size(note({"t": "\U0001f525" * 1_060_000}))  # bytes count, not characters


def test_lifecycle() -> None:
    lifecycle = [
        Event(type=name, payload={}).is_lifecycle for name in ("behavior.started", "runtime.x", "note.behavior.")
    ]
    assert lifecycle == [True, True, False]


@pytest.mark.parametrize("provenance", [None, [], "evt_1"])
def test_a_relation_whose_provenance_is_no_mapping_is_refused(provenance: object) -> None:
    graph = Graph()
    row = {"id": "r", "source": "a", "target": "b", "type": "MENTIONS", "data": {}, "provenance": provenance}
    payload = {"relation": row, "id": "r", "source": "a", "target": "b"}
    with pytest.raises(InvalidEventError, match="provenance that is no mapping"):
        graph.emit(Event(type="relation.created", payload=payload))
    assert len(graph.events) == 0
