"""The timeline: at every position what a fold from the first event gives, and no more work than the way is long."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.memory_graph import InMemoryGraphStore
from contextmesh.core.model import Object
from contextmesh.core.projection import fold
from contextmesh.errors import UsageError
from contextmesh.investigation.timeline import Moved, Timeline
from contextmesh.testing import (
    event,
    object_created,
    object_removed,
    objects,
    patch_applied,
    relation_created,
    relation_removed,
)

IDS = ("a", "b", "c")


class Log(Sequence[Event]):
    """A log that notes what is read of it."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self.read: list[tuple[int, int]] = []

    def __len__(self) -> int:
        return len(self._events)

    def __getitem__(self, index: Any) -> Any:
        self.read.append((index.start, index.stop))
        return self._events[index]


@st.composite
def logs(draw: st.DrawFn) -> list[Event]:
    """Logs as a graph writes them: what is created is absent before, what is removed or patched is there."""
    there: dict[str, int] = {}
    lines: dict[str, tuple[str, str]] = {}
    events: list[Event] = []
    for number in range(1, draw(st.integers(0, 40)) + 1):
        key, other = draw(st.sampled_from(IDS)), draw(st.sampled_from(IDS))
        line = f"{key}>{other}"
        action = draw(st.sampled_from(["object", "relation", "patch", "cut", "remove", "note"]))
        if action == "object" and key not in there:
            there[key] = 1
            events.append(object_created(number, key, data={"n": number}))
        elif action == "relation" and line not in lines:
            lines[line] = (key, other)
            events.append(relation_created(number, line, key, other))
        elif action == "patch" and key in there:
            there[key] += 1
            row = Object(id=key, type="Memory", data={"n": number}, version=there[key])
            events.append(patch_applied(number, f"p{number}", row))
        elif action == "cut" and line in lines:
            events.append(relation_removed(number, line, *lines.pop(line)))
        elif action == "remove" and key in there:
            del there[key]
            lines = {name: ends for name, ends in lines.items() if key not in ends}
            by_patch = draw(st.booleans())
            row = Object(id=key, type="Memory", data={})
            removed = patch_applied(number, f"p{number}", row, "remove") if by_patch else object_removed(number, key)
            events.append(removed)
        else:
            events.append(event(number))
    return events


def folded(events: Sequence[Event], position: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a store holds that takes all events up to a position, one at a time."""
    store = InMemoryGraphStore()
    for at in range(position):
        assert store.apply(fold(events[at : at + 1]), expected=at, new=at + 1)
    rows, lines = objects(store), store.relations()
    return {row.id: row for row in rows}, {row.id: row for row in lines}


@given(logs(), st.lists(st.integers(0, 40), max_size=8))
def test_every_position_shows_what_the_log_folds_to(events, way):
    timeline = Timeline(events)
    before: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    for wish in way:
        position = min(wish, len(events))
        moved = timeline.move(position)
        now = folded(events, position)
        assert (timeline.objects, timeline.relations) == now
        assert timeline.position == position
        tables = list(zip(before, now, strict=True))
        assert set(moved.added) == {key for old, new in tables for key in new.keys() - old.keys()}
        assert set(moved.removed) == {key for old, new in tables for key in old.keys() - new.keys()}
        assert set(moved.changed) == {
            key for old, new in tables for key in old.keys() & new.keys() if old[key] != new[key]
        }
        before = now


def test_the_log_is_read_in_pages_and_only_as_far_as_needed(monkeypatch):
    monkeypatch.setattr("contextmesh.investigation.timeline.PAGE", 1000)
    log = Log([object_created(number, f"o{number}") for number in range(1, 2501)])
    timeline = Timeline(log)
    assert log.read == []
    timeline.move(10)
    assert log.read == [(0, 10)]
    timeline.move(2100)
    assert log.read == [(0, 10), (10, 1010), (1010, 2010), (2010, 2100)]


def test_going_back_and_forth_reads_nothing_and_costs_what_the_way_is_long(monkeypatch):
    log = Log([object_created(number, f"o{number}") for number in range(1, 1001)])
    timeline = Timeline(log)
    timeline.move(1000)
    read, puts = list(log.read), []
    monkeypatch.setattr(
        Timeline, "_put", lambda self, step, row, put=Timeline._put: (puts.append(step.key), put(self, step, row))
    )
    assert timeline.move(997).removed == ("o1000", "o998", "o999")
    assert timeline.move(999).added == ("o998", "o999")
    assert puts == ["o1000", "o999", "o998", "o998", "o999"]
    assert log.read == read


def test_a_removed_object_takes_its_relations_along_and_brings_them_back():
    graph = Graph()
    for key in ("api", "maya"):
        graph.add_object("Entity", {"label": key}, id=key)
    graph.add_relation("api", "maya", "OWNED_BY", id="owns")
    graph.remove_object("maya")
    timeline = Timeline(graph.events)
    timeline.move(3)
    assert timeline.move(4) == Moved(removed=("maya", "owns"))
    assert timeline.move(3).to_changes() == {"maya": "added", "owns": "added"}
    assert timeline.relations["owns"].source == "api"


def test_what_was_changed_and_removed_and_made_again_is_changed():
    events = [object_created(1, "a", data={"n": 1}), object_removed(2, "a"), object_created(3, "a", data={"n": 2})]
    timeline = Timeline(events)
    timeline.move(1)
    assert timeline.move(3) == Moved(changed=("a",))


def test_the_tip_moves_on_with_the_log():
    graph = Graph()
    timeline = Timeline(graph.events)
    assert timeline.tip == 0
    graph.add_object("Entity", {"label": "x"}, id="x")
    assert timeline.tip == 1
    assert timeline.move(1).added == ("x",)
    assert repr(timeline) == "<Timeline: position 1 of 1, 1 objects>"


@pytest.mark.parametrize("position", [-1, 3, 1.0, True, None])
def test_a_position_that_the_log_does_not_reach_is_refused(position):
    timeline = Timeline([event(1), event(2)])
    with pytest.raises(UsageError, match="from 0 to 2, where the log ends"):
        timeline.move(position)
    assert timeline.position == 0
