"""Saved: what a run left in the graph, read once. Nothing of it is handed over by the process that ran it."""

from collections.abc import Mapping
from typing import Any

from contextmesh.core.model import Object
from contextmesh.core.reader import Reader
from contextmesh.investigation.paths import Path, describe
from contextmesh.investigation.reasons import reasons
from contextmesh.investigation.records import damage, record_id
from contextmesh.investigation.retrieval import shown
from contextmesh.investigation.sources import fact_source
from contextmesh.investigation.vocabulary import STAGES


class Saved:
    """The records of one run, read once."""

    def __init__(self, reader: Reader, run: str) -> None:
        keys = {stage: record_id(run, stage) for stage in STAGES}
        made = [f"{run}.decision", record_id(run, "hypothesis"), *(f"{run}.task-{n}" for n in (1, 2, 3))]
        rows = reader.get_objects([*keys.values(), *made])
        self.damaged = {stage: what for stage, key in keys.items() if key in rows and (what := damage(rows[key]))}
        self.records = {stage: rows[key] for stage, key in keys.items() if key in rows and stage not in self.damaged}
        self.decision = rows.get(f"{run}.decision")
        self.hypothesis = rows.get(record_id(run, "hypothesis"))
        research = self.records.get("researcher")
        data: Mapping[str, Any] = research.data if research else {}
        self._seeds = {seed["id"]: seed for seed in data.get("seeds", ())}
        self._context: list[str] = data.get("context", [])
        self._relations = reader.get_relations_by_id(data.get("relations", ()))
        self._facts = reader.get_objects(self._context)
        self._labels = {key: shown(row) for key, row in self._facts.items()}
        self.synthetic = any(row.data.get("synthetic") is True for row in self._facts.values())
        self.tasks = [_task(row) for row in rows.values() if row.type == "Task"]
        self.paths = [self._path(path) for path in self._path_rows(data)]
        self.evidence = self._evidence()

    def _path_rows(self, data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the paths as last verified, or as found if they were not verified yet."""
        verified = self.records.get("verifier")
        return list(verified.data["paths"] if verified else data.get("paths", ()))

    def _path(self, row: Mapping[str, Any]) -> dict[str, Any]:
        path = Path(nodes=tuple(row["nodes"]), relations=tuple(row["relations"]))
        text = describe(path, self._labels, self._relations)
        return {"path": text, "hops": len(path.relations), "nodes": list(path.nodes), "relations": list(path.relations)}

    def _evidence(self) -> list[dict[str, Any]]:
        why = reasons(self._context, self._seeds, self._relations, self._labels)
        return [_fact(self._facts[key], why[key]) for key in self._context if key in self._facts]

    def noted(self, name: str, column: str) -> list[dict[str, Any]]:
        """Return the stages' gaps or warnings, each once, with the stage that first noted it."""
        found: dict[str, str] = {}
        first = ("verifier",) if name == "warnings" else ()  # its warnings of what competes matter most
        for stage in (*first, *STAGES):
            record = self.records.get(stage)
            for text in record.data[name] if record else ():
                found.setdefault(text, stage)
        return [{column: text, "stage": stage} for text, stage in found.items()]

    @property
    def stages(self) -> list[dict[str, Any]]:
        """Return one row a saved record."""
        return [
            {
                "stage": stage,
                "status": row.data["status"],
                "record": row.id,
                "position": row.data["position"],
                "facts": len(row.data["context"]),
                "gaps": len(row.data["gaps"]),
                "warnings": len(row.data["warnings"]),
            }
            for stage, row in self.records.items()
        ]


def _fact(row: Object, why: str) -> dict[str, Any]:
    text = row.data.get("text")
    return {
        "id": row.id,
        "kind": row.type,
        "label": shown(row),
        "text": text if isinstance(text, str) else "",
        "source": fact_source(row),
        "reasons": why,
    }


def _task(row: Object) -> dict[str, Any]:
    data = row.data
    names = ("order", "status", "requires", "supported_by")
    return {"id": row.id, "task": data["text"], **{name: data[name] for name in names}}
