"""What a sink is: its settings, and the three that are ready to use."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from contextmesh.core.events import Event
from contextmesh.core.sinks import (
    CallbackSink,
    DeliveryContext,
    JSONLEventSink,
    OverflowPolicy,
    RecordingSink,
    SinkConfig,
)
from contextmesh.errors import UsageError
from tests.core.faulty import PATIENCE_S

ROOT = Path(__file__).parents[2]
EVENT = Event(
    id="evt_001",
    type="note.taken",
    payload={"text": "naïve\nline", "at": [1, 2.5, None]},
    actor="maya",
    timestamp="2026-01-01T00:00:00.000000Z",
)
# Written by hand from the documented form: sorted keys, no spaces, text as it is.
LINE = (
    '{"event":{"actor":"maya","caused_by":null,"frame_id":null,"id":"evt_001",'
    '"payload":{"at":[1,2.5,null],"text":"naïve\\nline"},"timestamp":"2026-01-01T00:00:00.000000Z",'
    '"type":"note.taken"},"position":7,"run_id":"run-a","v":1}\n'
)


def context(position: int) -> DeliveryContext:
    return DeliveryContext(run_id="run-a", sequence=position)


# Settings


def test_a_sink_is_named_after_its_class():
    config = SinkConfig(sink=RecordingSink())
    assert (config.name, config.queue_capacity, config.overflow_policy) == ("RecordingSink", 1024, "drop_newest")


def test_a_policy_may_be_given_as_text():
    config = SinkConfig(sink=RecordingSink(), overflow_policy="fail_sink")
    assert config.overflow_policy is OverflowPolicy.FAIL_SINK


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sink": object()}, "a object is no sink; expected an object with the methods open, on_event, flush, close"),
        ({"sink": RecordingSink}, "a type is no sink"),
        ({"name": " "}, "' ' is no name of a sink; expected 1 to 200 printable characters"),
        ({"name": "two\nlines"}, r"'two\\nlines' is no name of a sink"),
        ({"name": "x" * 201}, "is no name of a sink"),
        ({"name": 5}, "'5' is no name of a sink"),
        ({"queue_capacity": 0}, "sink 'RecordingSink': queue_capacity is 0; expected a whole number from 1"),
        ({"queue_capacity": True}, "queue_capacity is True"),
        ({"queue_capacity": 1.5}, "queue_capacity is 1.5"),
        ({"overflow_policy": "block"}, "overflow_policy is 'block'; expected drop_newest, drop_oldest, fail_sink"),
        ({"overflow_policy": None}, "overflow_policy is None"),
    ],
)
def test_a_wrong_setting_is_refused(settings, message):
    with pytest.raises(UsageError, match=message):
        SinkConfig(**{"sink": RecordingSink(), **settings})


def test_a_delivery_is_always_live():
    assert context(1).mode == "live"


# RecordingSink


def test_recording():
    sink = RecordingSink()
    sink.on_event(EVENT, context(7))
    assert sink.deliveries == [(EVENT, context(7))]
    assert sink.events == [EVENT]
    assert repr(sink) == "<RecordingSink: 1 events>"
    sink.clear()
    assert sink.deliveries == []


def test_recording_waits_for_a_count():
    sink = RecordingSink()
    assert not sink.wait_for(1, timeout=0)
    thread = threading.Thread(target=lambda: [sink.on_event(EVENT, context(at)) for at in (1, 2)])
    thread.start()
    assert sink.wait_for(2, PATIENCE_S)
    thread.join()
    assert sink.wait_for(1, timeout=0)


# CallbackSink


def test_callback():
    seen = []
    CallbackSink(lambda *args: seen.append(args)).on_event(EVENT, context(7))
    assert seen == [(EVENT, context(7))]


def test_what_cannot_be_called_is_refused():
    with pytest.raises(UsageError, match=r"a str cannot be called; expected a function of \(event, context\)"):
        CallbackSink("print")  # type: ignore[arg-type]


# JSONLEventSink


def test_each_event_is_a_line_of_canonical_json(tmp_path):
    path = tmp_path / "events.jsonl"
    sink = JSONLEventSink(path)
    sink.open()
    sink.on_event(EVENT, context(7))
    assert path.read_text("utf-8") == LINE  # there at once, without a flush
    sink.flush()
    sink.close()
    sink.close()
    assert path.read_text("utf-8") == LINE
    assert path.stat().st_mode & 0o777 == 0o600
    assert repr(sink) == "<JSONLEventSink: events.jsonl>"


def test_the_path_stays_the_same_when_the_folder_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sink = JSONLEventSink("events.jsonl")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    sink.open()
    sink.close()
    assert (tmp_path / "events.jsonl").exists()


def test_lines_are_appended(tmp_path):
    path = tmp_path / "events.jsonl"
    for _ in range(2):
        sink = JSONLEventSink(path)
        sink.open()
        sink.on_event(EVENT, context(7))
        sink.close()
    assert path.read_text("utf-8") == LINE * 2


def test_a_sink_can_be_opened_again(tmp_path):
    sink = JSONLEventSink(tmp_path / "events.jsonl")
    for _ in range(2):
        sink.open()
        sink.on_event(EVENT, context(7))
        sink.close()
    assert sink.path.read_text("utf-8") == LINE * 2


def test_after_a_torn_line_a_new_one_begins(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text(LINE + LINE[:20], "utf-8")
    sink = JSONLEventSink(path)
    sink.open()
    sink.on_event(EVENT, context(7))
    sink.close()
    assert path.read_text("utf-8") == LINE + LINE[:20] + "\n" + LINE


def test_what_was_taken_outlives_a_killed_process(tmp_path):
    path = tmp_path / "events.jsonl"
    code = (
        "import os, signal, sys, threading\n"
        "from contextmesh.core.graph import Graph\n"
        "from contextmesh.core.sinks import JSONLEventSink\n"
        "taken = threading.Event()\n"
        "class Sink(JSONLEventSink):\n"
        "    def on_event(self, event, context):\n"
        "        super().on_event(event, context)\n"
        "        if context.sequence == 50: taken.set()\n"
        "graph = Graph()\n"
        "graph.add_sink(Sink(sys.argv[1]))\n"
        "for n in range(50): graph.add_object('Entity', id=f'e{n}')\n"
        "taken.wait()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    command = [sys.executable, "-c", code, path]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=PATIENCE_S)
    assert done.stderr == b""
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert [(row["position"], row["event"]["payload"]["id"]) for row in rows] == [(n + 1, f"e{n}") for n in range(50)]


def test_a_missing_folder_is_named(tmp_path):
    sink = JSONLEventSink(tmp_path / "nowhere" / "events.jsonl")
    with pytest.raises(UsageError, match=r"there is no folder .*nowhere; create it, or write elsewhere"):
        sink.open()
    assert not sink.path.parent.exists()


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_refused(tmp_path, kind):
    path = tmp_path / "events.jsonl"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.raises(UsageError, match=r"events\.jsonl is no ordinary file; expected the name of one"):
        JSONLEventSink(path).open()


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    path = tmp_path / f"{'x' * 300}.jsonl"
    with pytest.raises(UsageError, match=r"cannot be written: File name too long; write elsewhere"):
        JSONLEventSink(path).open()


def test_a_file_that_is_open_is_not_opened_again(tmp_path):
    sink = JSONLEventSink(tmp_path / "events.jsonl")
    sink.open()
    with pytest.raises(UsageError, match=r"is open already; give each graph a JSONLEventSink of its own"):
        sink.open()
    sink.close()


def test_a_file_that_is_not_open_takes_nothing(tmp_path):
    sink = JSONLEventSink(tmp_path / "events.jsonl")
    with pytest.raises(UsageError, match=r"is not open; attach the sink with graph\.add_sink"):
        sink.on_event(EVENT, context(7))
    with pytest.raises(UsageError, match=r"is not open"):
        sink.flush()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_line_that_does_not_fit_is_an_error(tmp_path):
    sink = JSONLEventSink(tmp_path / "events.jsonl")
    sink.open()
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, sink._opened())
    os.close(full)
    with pytest.raises(OSError, match="No space left on device"):
        sink.on_event(EVENT, context(7))
    os.close(sink._opened())
