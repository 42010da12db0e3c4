"""Stored events of every schema version stay readable: each version keeps a file of events as its stores wrote them.

A version's file is never edited. To make a new version, raise SCHEMA_VERSION, add the step to it to UPCASTS, and add
`versions/v<n>.jsonl` with a line of every kind in its form; what an older file then reads as is told by its tests.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contextmesh.core import events
from contextmesh.core.events import SCHEMA_VERSION, UPCASTS, Event, decode, encode
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.memory_log import InMemoryEventStore
from contextmesh.core.model import Object, Patch, Relation
from contextmesh.core.payloads import PATCH_OPERATIONS, REQUIRED, prepare
from contextmesh.core.projection import catch_up, fold
from contextmesh.core.stores import EventStore
from contextmesh.errors import CorruptedEventPayloadError
from contextmesh.stores.falkordb import FalkorDBEventStore
from contextmesh.stores.server import Server
from contextmesh.stores.sqlite import SQLiteEventStore
from contextmesh.testing import branch_of, event, objects

SCHEMAS = Path(__file__).parent / "versions"
VERSIONS = range(1, SCHEMA_VERSION + 1)


def stored(version: int) -> list[str]:
    """The events of a version's file, each exactly as a store keeps it."""
    lines = (SCHEMAS / f"v{version}.jsonl").read_bytes().decode().split("\n")
    assert lines.pop() == ""
    opening = f'{{"v":{version},"event":'
    assert all(line.startswith(opening) and line.endswith("}}") for line in lines)
    return [line.removeprefix(opening).removesuffix("}") for line in lines]


V1 = stored(1)
DATA = json.loads(V1[1])["payload"]["object"]["data"]  # difficult values, read by the standard library


def read(version: int) -> list[Event]:
    return [decode(text, position, version) for position, text in enumerate(stored(version), 1)]


# The files


def test_every_version_has_its_file() -> None:
    assert sorted(file.name for file in SCHEMAS.iterdir()) == sorted(f"v{version}.jsonl" for version in VERSIONS)
    assert sorted(UPCASTS) == list(range(1, SCHEMA_VERSION))


def test_the_newest_file_holds_every_type_of_event() -> None:
    rows = [json.loads(text) for text in stored(SCHEMA_VERSION)]
    types = {row["type"] for row in rows}
    lifecycle = {"behavior.started", "behavior.completed", "behavior.failed", "runtime.resumed"}
    assert types >= {*REQUIRED, *lifecycle, "promote.applied", "schema.loaded", "question.asked", "note.\U0001f525"}
    for type_ in ("patch.proposed", "patch.applied"):
        ops = {row["payload"]["patch"]["op"] for row in rows if row["type"] == type_}
        assert ops == set(PATCH_OPERATIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_event_stands_in_a_graph_of_today(version: int) -> None:
    """An old event passes every check that a new one must pass, so that a log can be restored from an export."""
    graph = Graph()
    for row in read(version):
        assert prepare(row) == row
        graph.replay(row)
    assert list(graph.events) == read(version)


# Version 1


@pytest.mark.parametrize("position", range(1, len(V1) + 1))
def test_version_1_is_read(position: int) -> None:
    """What comes back is what the standard library reads, and is written as it was."""
    text = V1[position - 1]
    back = decode(text, position, 1)
    assert back == Event(**json.loads(text))
    assert repr(back.to_dict()) == repr(json.loads(text))  # 1 is not 1.0, and the order stays
    assert encode(back) == text
    assert decode(text.encode(), position, 1) == back


@pytest.mark.parametrize("step", [1, 5, 100])
def test_version_1_is_projected(step: int) -> None:
    """The graph that the file has always meant, in batches of any size."""
    store = InMemoryGraphStore()
    rows = read(1)
    for first in range(0, len(rows), step):
        batch = rows[first : first + step]
        assert store.apply(fold(batch), expected=first, new=first + len(batch))
    shown(store)


def test_version_1_is_projected_from_a_file(tmp_path: Path) -> None:
    log, store = SQLiteEventStore(tmp_path / "log.db"), InMemoryGraphStore()
    log.append_many(read(1), expected=0, commit_id="a")
    assert catch_up(log, store) == 31
    log.close()
    shown(store)


def shown(store: InMemoryGraphStore) -> None:
    provenance = {"actor": "system", "created_by": "evt_002", "evidence": [], "updated_by": "evt_002"}
    assert objects(store) == [
        Object(id="Memory#1", type="Memory", data=DATA, version=1, provenance=provenance),
        Object(
            id="checkout-api",
            type="Entity",
            data={"aliases": ["checkout", "payments"], "label": "Checkout API", "note": None, "tier": 2},
            version=2,
            provenance={
                "actor": "importer",
                "created_by": "evt_001",
                "evidence": ["pm-2026-001"],
                "updated_by": "evt_008",
            },
        ),
    ]
    assert store.relations() == [
        Relation(
            id="rel_001",
            source="checkout-api",
            target="maya-chen",
            type="OWNED_BY",
            data={"since": "2024"},
            provenance={"actor": "system", "created_by": "evt_004", "evidence": []},
        )
    ]
    patches = store.get_patches([f"patch_00{n}" for n in range(1, 9)])
    assert {key: (row.op, row.target, row.status) for key, row in patches.items()} == {
        "patch_001": ("update", "checkout-api", "applied"),
        "patch_002": ("replace", "redis", "applied"),
        "patch_003": ("create", "INC-104", "applied"),
        "patch_004": ("remove", "redis", "applied"),
        "patch_005": ("update", "checkout-api", "rejected"),
        "patch_006": ("update", "nothing", "rejected"),
        "patch_007": ("update", "checkout-api", "proposed"),
    }
    assert patches["patch_001"] == Patch(
        id="patch_001",
        target="checkout-api",
        op="update",
        updates={"note": None, "tier": 2},
        status="applied",
        actor="researcher",
        rationale='it\'s "tier" 2',
        evidence=["Memory#1"],
        expected_version=1,
        llm_request_event_id="evt_llm",
        tool_request_event_ids=["evt_tool-1", "evt_tool-2"],
    )
    assert patches["patch_005"].reason == "expected version 1, the object has version 2"
    assert patches["patch_006"].updates == DATA


# From one version to the next


@pytest.fixture(params=["sqlite", "falkordb"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[EventStore]:
    """A log that outlives its process, and so holds events of earlier versions."""
    if request.param == "sqlite":
        log = SQLiteEventStore(tmp_path / "log.db")
        yield log
        log.close()
    else:
        server: Server = request.getfixturevalue("server")
        yield FalkorDBEventStore(server, request.getfixturevalue("name"))


def kept(log: EventStore, monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """Version and text of each event, as they are stored."""
    found: list[tuple[int, str]] = []
    with monkeypatch.context() as patch:
        for module in ("contextmesh.stores.sqlite", "contextmesh.stores.stream"):
            patch.setattr(f"{module}.decode", lambda text, position, version: found.append((version, str(text))))
        log.read(0, 100)
    return found


def upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a later release, in which a note's `n` is called `number`, and an actor is a person."""

    def renamed(fields: dict[str, Any]) -> dict[str, Any]:
        payload = {"number" if key == "n" else key: value for key, value in fields["payload"].items()}
        return {**fields, "payload": payload, "actor": f"person:{fields['actor']}"}

    monkeypatch.setitem(UPCASTS, 1, renamed)
    for module in ("contextmesh.core.events", "contextmesh.stores.sqlite", "contextmesh.stores.stream"):
        monkeypatch.setattr(f"{module}.SCHEMA_VERSION", 2)


def new(number: int) -> Event:
    return event(number, payload={"number": number})


def test_stored_events_are_brought_up_to_date_when_read(log: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each way of reading gives the new form; what is stored stays as it was written, beside what is new."""
    log.append_many([event(1), event(2)], expected=0, commit_id="a")
    before = kept(log, monkeypatch)
    assert [version for version, _ in before] == [1, 1]
    with monkeypatch.context() as patch:
        upgrade(patch)
        log.append(new(3))
        fork = log.fork(branch_of(log, 2))
        fork.append(new(4))
        for holder, last in ((log, new(3)), (fork, new(4))):
            rows = [entry.event for start in range(3) for entry in holder.read(start, 1) if entry.position == start + 1]
            for found in (rows, list(holder.iter_events()), [holder.get_event(row.id) for row in rows]):
                assert [row.payload for row in found] == [{"number": 1}, {"number": 2}, last.payload]
                assert [row.actor for row in found] == ["person:system", "person:system", "system"]
    assert kept(log, monkeypatch)[:2] == before
    assert [version for version, _ in kept(log, monkeypatch)] == [1, 1, 2]


def test_an_event_of_a_later_version(log: EventStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says to upgrade; the earlier ones are read, and nothing is guessed."""
    log.append(event(1))
    with monkeypatch.context() as patch:
        upgrade(patch)
        log.append(new(2))
    message = "the event at position 2 has schema version 2, this reads up to 1; upgrade"
    for use in (lambda: log.read(1, 1), lambda: list(log.iter_events(1))):
        with pytest.raises(CorruptedEventPayloadError, match=message):
            use()
    assert log.read(0, 1)[0].event == event(1)
    assert log.tip() == 2


def test_what_lives_in_memory_is_never_older_than_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The in-memory log keeps no versions: all that it holds was written by the release that reads it."""
    log = InMemoryEventStore()
    upgrade(monkeypatch)
    log.append(new(1))
    assert [row.event for row in log.read(0, 1)] == list(log.iter_events()) == [log.get_event("evt_001")] == [new(1)]


@pytest.mark.parametrize("version", [2, 3, 10**6])
def test_a_version_from_the_future_says_to_upgrade(version: int) -> None:
    """Whatever its text is."""
    message = f"the event at position 41 has schema version {version}, this reads up to 1; upgrade"
    for text in (V1[0], "{}", "<no JSON any more>"):
        with pytest.raises(CorruptedEventPayloadError, match=message):
            decode(text, 41, version)


@pytest.mark.parametrize("version", [0, -1, "one"])
def test_a_version_that_never_was(version: Any) -> None:
    with pytest.raises(
        CorruptedEventPayloadError, match=r"the event at position 41 cannot be read: .*; restore the log"
    ):
        decode(V1[0], 41, version)


def test_steps_are_taken_one_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """An event of version 1 goes through every later one; one of version 2 begins there."""
    monkeypatch.setattr(events, "SCHEMA_VERSION", 3)
    for step in (1, 2):
        monkeypatch.setitem(UPCASTS, step, lambda fields, to=step + 1: {**fields, "actor": f"{fields['actor']}>{to}"})
    text = encode(event(1))
    assert [decode(text, 1, version).actor for version in (1, 2, 3)] == ["system>2>3", "system>3", "system"]
    assert decode(text, 1).actor == "system"  # without a version it is of this one


def test_a_step_that_meets_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a damaged event like any other."""
    upgrade(monkeypatch)
    for text in ('{"id":"a"}', "[]", '{"id":"a","type":"t","payload":7,"actor":"system"}', "null"):
        with pytest.raises(CorruptedEventPayloadError, match="the event at position 41 cannot be read"):
            decode(text, 41, 1)
