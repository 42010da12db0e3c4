"""RunPanel: what the agents of a run have completed. It lists the records that they saved, and what they used."""

from collections.abc import Mapping
from typing import Any

from contextmesh.core.display import counted
from contextmesh.core.model import Object
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.retrieval import shown
from contextmesh.investigation.vocabulary import HYPOTHESIS, STAGES
from contextmesh.widgets.state import State
from contextmesh.widgets.tables import TablePanel

COLUMNS = {"agent": 1.5, "status": 1.5, "saved": 2.3, "outputs": 2.0, "usage": 1.8, "record": 1.7}
STEPS = ("AgentRun", HYPOTHESIS)
PERSISTED = "Execution traces are persisted results: the records that the agents saved in the graph, read back."
CONTENTS = {"seeds": "seeds", "context": "facts", "relations": "relations", "paths": "paths"}
CONTENTS |= {"gaps": "gaps", "warnings": "warnings"}


class RunPanel(TablePanel):
    """List the completed steps of a run's agents: what each saved, what came of it, and what it used.

    Args:
        inv: the investigation; the panel follows what this notebook saves in its run, such as a stage or a hypothesis.
        state: what it shares with other views; picking a row selects its record.

    Example:
        >>> RunPanel(ws.investigation("Run#1"))  # doctest: +SKIP
        <RunPanel Run#1: 4 steps>
    """

    def __init__(self, inv: Investigation, *, state: State | None = None) -> None:
        super().__init__(COLUMNS, title="Completed steps", state=state)
        self._investigation = inv
        inv.cards.watch(self.follow)
        self.refresh()

    def __repr__(self) -> str:
        return f"<RunPanel {self._investigation.run_id}: {counted(len(self._rows), 'steps')}>"

    def refresh(self) -> None:  # noqa: D102
        inv = self._investigation.refresh()
        self._list(completed(inv))
        home = inv.graph.get_object(inv.run_id)
        used = usage_of(home.data if home else {})
        self._head(inv.question, f"{inv.run_id} · {inv.status} · {used}", PERSISTED)

    def close(self) -> None:  # noqa: D102
        if hasattr(self, "_investigation"):
            self._investigation.cards.unwatch(self.follow)
        super().close()


def completed(inv: Investigation) -> list[dict[str, Any]]:
    """Return a row for each record that an agent of the run saved, in the order in which they ran."""
    graph = inv.graph
    made = graph.relations(source=inv.run_id, type="GENERATED")
    rows = graph.get_objects([row.target for row in made])
    makers = graph.relations(target=list(rows), type="GENERATED") if rows else []
    agents = graph.get_objects({row.source for row in makers} - {inv.run_id})
    by_output = {row.target: row.source for row in makers if row.source in agents}
    records = [row for row in rows.values() if row.type in STEPS]
    return [
        _row(record, agents.get(by_output.get(record.id, "")), _outputs(record, by_output))
        for record in sorted(records, key=_order)
    ]


def _order(record: Object) -> tuple[int, int, str]:
    stage, position = record.data.get("stage"), record.data.get("position")
    return (
        position if isinstance(position, int) else 0,
        STAGES.index(stage) if stage in STAGES else len(STAGES),
        record.id,
    )


def _outputs(record: Object, by_output: Mapping[str, str]) -> list[str]:
    """Return what else the record's agent generated in this run."""
    mine = by_output.get(record.id)
    return sorted(key for key, agent in by_output.items() if agent == mine and key != record.id) if mine else []


def _row(record: Object, agent: Object | None, outputs: list[str]) -> dict[str, Any]:
    data = record.data
    parts = [counted(len(data[key]), name) for key, name in CONTENTS.items() if _is_filled(data.get(key))]
    return {
        "id": record.id,
        "agent": shown(agent) if agent else str(data.get("stage") or record.type),
        "status": str(data.get("status") or "unknown"),
        "saved": _guessed(data) if record.type == HYPOTHESIS else ", ".join(parts) or shown(record),
        "outputs": ", ".join(outputs),
        "usage": usage_of(data),
        "record": record.id,
        "position": data.get("position"),
    }


def _guessed(data: Mapping[str, Any]) -> str:
    """Return what a model said, or why it said nothing; marked, since it is no evidence."""
    return f"untrusted guess: {data['text']}" if data.get("text") else f"no guess: {data.get('reason') or 'unknown'}"


def _is_filled(value: object) -> bool:
    return isinstance(value, list) and len(value) > 0


def usage_of(data: Mapping[str, Any]) -> str:
    """Return in words what a step used: tokens and cost as recorded, `unknown` where nothing is.

    Example:
        >>> usage_of({"usage": {}})
        'no model call recorded'
        >>> usage_of({"usage": {"model": "m", "prompt_tokens": 310, "completion_tokens": 90}})
        'm: 400 tokens (310 in, 90 out), cost unknown'
        >>> usage_of({"usage": {"total_tokens": 400, "cost": 0.0012, "currency": "USD"}})
        '400 tokens, cost about 0.0012 USD'
    """
    usage = data.get("usage")
    if not isinstance(usage, Mapping) or not usage:
        return "no model call recorded"
    model = f"{usage['model']}: " if usage.get("model") else ""
    return f"{model}{_tokens(usage)}, {_cost(usage)}"


def _tokens(usage: Mapping[str, Any]) -> str:
    sent, got = usage.get("prompt_tokens"), usage.get("completion_tokens")
    if isinstance(sent, int) and isinstance(got, int):
        return f"{sent + got:,} tokens ({sent:,} in, {got:,} out)"
    total = usage.get("total_tokens")
    return f"{total:,} tokens" if isinstance(total, int) else "tokens unknown"


def _cost(usage: Mapping[str, Any]) -> str:
    cost = usage.get("cost")
    if not isinstance(cost, int | float) or isinstance(cost, bool):
        return "cost unknown"
    told = f"{cost:.9f}".rstrip("0").rstrip(".")  # never as 9.85e-05
    return f"cost about {told} {usage.get('currency') or ''}".rstrip()
