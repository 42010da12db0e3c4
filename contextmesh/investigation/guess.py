"""A model's guess as an untrusted record of its run: how it is asked for, saved and told. Nothing else reads it."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from contextmesh.core.display import counted
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object
from contextmesh.core.reader import Reader
from contextmesh.errors import ConcurrentWriterError
from contextmesh.investigation.facts import relation_id
from contextmesh.investigation.hypothesis import ModelSettings, ask, to_message
from contextmesh.investigation.intake import persist
from contextmesh.investigation.records import current, load_record, record_id
from contextmesh.investigation.vocabulary import HYPOTHESIS

HEADING = "Model hypothesis (untrusted)"
NOTICE = "A guess of a language model, which nobody has verified. It is no evidence, and nothing above rests on it."


def hypothesize(graph: Graph, run: str, question: str, settings: ModelSettings) -> None:
    """Ask once for a hypothesis about a run that was verified, and save what came of it, a failure too."""
    graph.check_writable()  # before a call is spent on what could not be saved
    message, sent = to_message(question, verified(graph, run))
    guess = ask(message, sent, settings)
    _save(graph, run, {**asdict(guess), "model": settings.model, "sent": sent})


def verified(reader: Reader, run: str) -> list[Object]:
    """Return the facts that the run's verifier found sound, best first."""
    best = load_record(record_id(run, "executor"), reader).data["context"]
    sound = set(load_record(record_id(run, "verifier"), reader).data["context"])
    facts = current(reader.get_objects(best))
    return [facts[key] for key in best if key in facts and key in sound]


def _save(graph: Graph, run: str, found: Mapping[str, Any]) -> None:
    """Save what came of a call in place of an earlier failure, and add what it used to what the run used."""
    key = record_id(run, "hypothesis")
    cause: dict[str, Any] = {"actor": "hypothesis", "frame_id": run}
    data = {
        "label": f"Model hypothesis of {run}",
        "run": run,
        "status": "failed" if found["text"] is None else "answered",
        "trusted": False,
        "source": "model",
        **found,
    }

    def write() -> None:
        rows = graph.get_objects([key, run])

        def check_unchanged() -> None:
            if {row.id: row.version for row in graph.get_objects([key, run]).values()} != versions:
                msg = f"another process has saved a hypothesis of {run!r} meanwhile; read it with inv.refresh()"
                raise ConcurrentWriterError(msg)

        versions = {row.id: row.version for row in rows.values()}
        with graph.batch(guard=check_unchanged):
            placed = {**data, "position": graph.position}
            if key in rows:
                graph.patch_object(key, placed, op="replace", rationale="asked again", **cause)
            else:
                graph.add_object(HYPOTHESIS, placed, id=key, **cause)
                graph.add_relation(run, key, "GENERATED", id=relation_id(run, "GENERATED", key), **cause)
            if found["usage"]:
                graph.patch_object(run, {"usage": _added(rows[run].data.get("usage"), found["usage"])}, **cause)

    persist(graph, write)


def _added(before: Any, usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run has used in all; a cost is known only if that of each call is."""
    if not isinstance(before, dict) or not before:
        return dict(usage)
    both = [before, usage]
    counts = ("calls", "prompt_tokens", "completion_tokens", "total_tokens")
    sums = {name: sum(row.get(name, 0) for row in both) for name in counts if any(name in row for row in both)}
    costs = [cost for row in both if isinstance(cost := row.get("cost"), int | float)]
    cost = {"cost": round(sum(costs), 9), "currency": "USD"} if len(costs) == len(both) else {"cost": "unknown"}
    return {"model": usage["model"], **sums, **cost}


def told(data: Mapping[str, Any]) -> list[str]:
    """Return what a reader should see of a saved hypothesis, line by line, below its heading."""
    if data["status"] != "answered":
        return [f"None: {data['reason']}"]
    dropped = f" ({counted(data['dropped'], 'ids')} dropped: not among what was sent)" if data["dropped"] else ""
    return [
        data["text"],
        *(f"Could be refuted by: {check}" for check in data["checks"]),
        f"Cites {', '.join(data['cites']) or 'no fact'}{dropped}. Model: {data['model']}.",
        NOTICE,
    ]
