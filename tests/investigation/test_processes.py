"""What processes share is the database alone: recall, stages, handoffs, interruptions, resuming."""

import itertools
import json
import signal
import subprocess
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

import contextmesh as cm
from contextmesh.core.events import FrozenClock
from contextmesh.errors import HandoffError
from contextmesh.investigation.records import FIELDS
from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION, command, contents, environment, python, told

STAGES = ("researcher", "planner", "executor", "verifier")
NOON = FrozenClock(datetime(2026, 3, 2, 12, tzinfo=UTC))

IMPORT = """
import json, os, signal, sys
import contextmesh as cm
folder, name, *rest = sys.argv[1:]
"""
OPEN = (
    IMPORT
    + """
with cm.open(name, data_dir=folder) as ws:
    run_id = ws._server.redis.info("server")["run_id"]
"""
)
NOTE = OPEN + "    ws.session('first').note(rest[0])\n    print(json.dumps(run_id))"
ASK = (
    OPEN
    + """
    inv = ws.session('second').investigate(rest[0])
    print(json.dumps({"server": run_id, "decision": inv.decision, **inv.to_dict()}))
"""
)
STEP = OPEN + "    step = ws.investigation(rest[0]).step()\n    print(json.dumps(step and step.behavior))"

# Runs the handler of one stage to its end, then dies before the batch is committed.
KILLED = """
import dataclasses
import contextmesh.investigation.workspace as module
def lethal(behavior):
    def handler(event, graph, ctx):
        behavior.handler(event, graph, ctx)
        os.kill(os.getpid(), signal.SIGKILL)
    return dataclasses.replace(behavior, handler=handler)
with cm.open(name, data_dir=folder) as ws:
    run, stage = rest
    made = getattr(module, stage)
    if stage in ("planner", "executor"):
        setattr(module, stage, lethal(made))
    else:
        setattr(module, stage, lambda vocabulary: lethal(made(vocabulary)))
    ws.investigation(run).run()
"""
RESUMER = """
with cm.open(name, data_dir=folder) as ws:
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps([ws.resume(line.strip()).status]), flush=True)
"""


def test_a_second_process_recalls_the_first_ones_note(folder: Path, name: str) -> None:
    marker = f"marker{uuid.uuid4().hex}"
    server = told(NOTE, folder, name, f"The {marker} valve was loose")
    found = told(ASK, folder, name, f"What do we know about {marker}?")
    assert found["server"] == server
    assert [row["text"] for row in found["evidence"]] == [f"The {marker} valve was loose"]
    assert marker in found["answer"]
    assert found["decision"]["used_other_sessions"] is True


def test_a_note_outlives_the_server(tmp_path: Path) -> None:
    marker = f"marker{uuid.uuid4().hex}"
    first = told(NOTE, tmp_path, "outlives", f"The {marker} valve was loose")
    found = told(ASK, tmp_path, "outlives", f"What do we know about {marker}?")
    assert found["server"] != first, "the first server was still running"
    assert [row["text"] for row in found["evidence"]] == [f"The {marker} valve was loose"]


def test_each_stage_runs_in_a_process_of_its_own(acme: Workspace, folder: Path) -> None:
    run = acme.session("Tuesday").investigate(QUESTION, run=False).run_id
    assert [told(STEP, folder, acme.name, run) for _ in range(5)] == [*STAGES, None]
    inv = acme.investigation(run)
    assert list(inv.stages["stage"]) == list(STAGES)
    assert inv.status == "completed"
    handed = [(row.source, row.target) for row in acme.graph.relations(type="HANDOFF_TO")]
    records = [f"{run}.{stage}" for stage in STAGES]
    assert sorted(handed) == sorted(itertools.pairwise(records))


@pytest.mark.parametrize("how", ["removed", "unreadable"])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_lost_handoff_stops_the_next_process(acme: Workspace, folder: Path, at: int, how: str) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    for _ in range(at + 1):
        inv.step()
    record = f"{inv.run_id}.{STAGES[at]}"
    if how == "removed":
        acme.graph.remove_object(record)
    else:
        rest = {key: value for key, value in acme.graph.get_object(record).data.items() if key != "context"}
        acme.graph.patch_object(record, rest, op="replace")
    before = contents(acme.graph)
    done = python(STEP, folder, acme.name, inv.run_id)
    assert done.returncode == 1
    assert "HandoffError" in done.stderr
    assert repr(record) in done.stderr
    assert told(STEP, folder, acme.name, inv.run_id) is None  # settled until asked again
    with pytest.raises(HandoffError, match=record):
        acme.resume(inv.run_id)
    assert contents(acme.graph) == before
    assert len(acme.graph.objects("Task")) == (0, 3, 3)[at]
    assert len(acme.graph.objects("Decision")) == (0, 0, 1)[at]


@pytest.mark.parametrize("stage", STAGES)
def test_a_run_killed_inside_a_stage_resumes_to_the_same_records(
    opened: Callable[..., Workspace], folder: Path, stage: str
) -> None:
    twins = [opened(clock=NOON) for _ in range(2)]
    runs = []
    for ws in twins:
        cm.demo.acmeshop(ws)
        ws.session("Monday night").note("Checkout errors rose at 14:05, after Release 2.4")
        runs.append(ws.session("Tuesday").investigate(QUESTION, run=False).run_id)
    died = python(IMPORT + KILLED, folder, twins[0].name, runs[0], stage)
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert list(twins[0].investigation(runs[0]).stages["stage"]) == list(STAGES[: STAGES.index(stage)])
    assert twins[0].resume(runs[0]).status == "completed"
    twins[1].investigation(runs[1]).run()
    assert same_apart_from_names(twins[0]) == same_apart_from_names(twins[1])


@pytest.mark.parametrize("stages", [0, 1, 2, 3, 4])
def test_a_run_interrupted_after_a_stage_resumes_to_the_same_records(
    opened: Callable[..., Workspace], stages: int
) -> None:
    twins = [opened(clock=NOON) for _ in range(2)]
    runs = []
    for ws in twins:
        cm.demo.acmeshop(ws)
        runs.append(ws.session("Tuesday").investigate(QUESTION, run=False))
    for _ in range(stages):
        runs[0].step()
    again = opened(twins[0].name, clock=NOON)
    assert again.resume(runs[0].run_id).status == "completed"
    runs[1].run()
    assert same_apart_from_names(again) == same_apart_from_names(twins[1])


def same_apart_from_names(ws: Workspace) -> object:
    objects, relations = contents(ws.graph)
    return [row for row in objects if row[0] != "workspace"], relations


def test_resuming_a_completed_run_changes_nothing(acme: Workspace) -> None:
    run = acme.session("Tuesday").investigate(QUESTION).run_id
    position, before = acme.graph.position, contents(acme.graph)
    acme.resume(run)
    acme.resume(run)
    assert acme.graph.position == position
    assert contents(acme.graph) == before
    assert acme.investigation(run).step() is None


def test_opening_resumes_nothing(acme: Workspace, opened: Callable[..., Workspace]) -> None:
    run = acme.session("Tuesday").investigate(QUESTION, run=False).run_id
    again = opened(acme.name)
    assert again.investigation(run).status == "the researcher has not run yet"
    assert again.graph.objects("AgentRun") == []


def test_two_processes_that_resume_at_once_double_nothing(acme: Workspace, folder: Path) -> None:
    runs = []
    for stages in (0, 0, 0, 1, 2, 3):
        inv = acme.session("Tuesday").investigate(QUESTION, run=False)
        for _ in range(stages):
            inv.step()
        runs.append(inv.run_id)
    both = [
        subprocess.Popen(
            command(IMPORT + RESUMER, str(folder), acme.name),
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        assert [process.stdout.readline() for process in both] == ["ready\n"] * 2
        for run in runs:
            for process in both:
                process.stdin.write(f"{run}\n")
                process.stdin.flush()
            answers = [process.stdout.readline() for process in both]
            assert all(answers), both[answers.index("")].stderr.read()
            assert [json.loads(line) for line in answers] == [["completed"]] * 2
    finally:
        for process in both:
            process.stdin.close()
            process.wait(30)
            process.stdout.close()
            process.stderr.close()
    graph = acme.graph
    for run in runs:
        of_run = {
            row.id: row.type for kind in ("Task", "Decision", "AgentRun") for row in graph.objects(kind, {"run": run})
        }
        assert Counter(of_run.values()) == {"Task": 3, "Decision": 1, "AgentRun": 4}
    ends = Counter((row.source, row.type, row.target) for row in graph.relations())
    assert max(ends.values()) == 1
    completed = Counter(
        (event.payload["behavior"], event.payload["trigger"])
        for event in graph.events
        if event.type == "behavior.completed"
    )
    assert len(completed) == 4 * len(runs)
    assert max(completed.values()) == 1
    assert not [event for event in graph.events if event.type == "behavior.failed"]


def test_four_threads_that_resume_at_once_double_nothing(acme: Workspace) -> None:
    run = acme.session("Tuesday").investigate(QUESTION, run=False).run_id
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda _: acme.resume(run).status, range(4))) == ["completed"] * 4
    kinds = Counter(row.type for row in acme.graph.objects() if row.data.get("run") == run)
    assert kinds == {"Task": 3, "Decision": 1, "AgentRun": 4}


@pytest.mark.parametrize("value", [None, 3.5, {"not": "it"}], ids=["none", "number", "mapping"])
def test_a_field_of_another_type_makes_a_record_unreadable(acme: Workspace, value: object) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    inv.step()
    record = f"{inv.run_id}.researcher"
    sound = acme.graph.get_object(record).data
    for field in sorted(FIELDS.keys() - ({"usage"} if isinstance(value, dict) else set())):
        acme.graph.patch_object(record, {**sound, field: value}, op="replace")
        with pytest.raises(HandoffError, match=rf"{record}' is unreadable: its fields {field} are missing"):
            acme.resume(inv.run_id)
    assert acme.graph.objects("Task") == []
    acme.graph.patch_object(record, sound, op="replace")
    assert acme.resume(inv.run_id).status == "completed"


@pytest.mark.parametrize(
    ("steps", "gone"),
    [(2, "task-2"), (2, "researcher"), (3, "decision"), (3, "researcher"), (3, "planner")],
)
def test_whatever_else_a_stage_reads_is_missed_by_name(acme: Workspace, steps: int, gone: str) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    for _ in range(steps):
        inv.step()
    acme.graph.remove_object(f"{inv.run_id}.{gone}")
    named = "the plan of 'Run#1' is incomplete: 2 of 3 tasks" if gone == "task-2" else rf"'Run#1\.{gone}' is missing"
    with pytest.raises(HandoffError, match=named):
        inv.step()
    assert f"{inv.run_id}.{STAGES[steps]}" not in {row.id for row in acme.graph.objects("AgentRun")}


@pytest.mark.parametrize(
    ("steps", "stage", "damage"),
    [
        (1, "researcher", {"context": [7]}),
        (1, "researcher", {"relations": [{}]}),
        (2, "researcher", {"seeds": [{}]}),
        (3, "researcher", {"paths": [{}]}),
    ],
)
def test_a_record_that_is_damaged_inside_is_named(
    acme: Workspace, steps: int, stage: str, damage: dict[str, object]
) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    for _ in range(steps):
        inv.step()
    acme.graph.patch_object(f"{inv.run_id}.{stage}", damage)
    with pytest.raises(HandoffError, match=rf"Run#1\.{stage}"):
        inv.step()


def test_a_run_that_was_removed_stops_its_stages(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION, run=False)
    inv.step()
    inv.step()
    acme.graph.remove_object(inv.run_id)
    with pytest.raises(HandoffError, match="the plan of 'Run#1' is incomplete: 3 of 3 tasks and no run; ask again"):
        inv.step()
    assert acme.graph.objects("Decision") == []


def test_a_damaged_record_can_still_be_shown(acme: Workspace) -> None:
    inv = acme.session("Tuesday").investigate(QUESTION)
    record = f"{inv.run_id}.planner"
    rest = {key: value for key, value in acme.graph.get_object(record).data.items() if key not in ("gaps", "warnings")}
    acme.graph.patch_object(record, rest, op="replace")
    assert "Release 2.4" in acme.investigation(inv.run_id).to_text()
