"""Verifier: reloads the evidence, queries the paths again, flags what competes, and qualifies causality.

Its checks are narrow rules, not fact-checking, and its record says so.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object, Relation
from contextmesh.core.reader import Reader
from contextmesh.core.runtime import Behavior, Context, behavior
from contextmesh.errors import HandoffError
from contextmesh.investigation.records import (
    current,
    follows,
    load_record,
    read_record,
    record_id,
    save_record,
)
from contextmesh.investigation.retrieval import shown
from contextmesh.investigation.vocabulary import EVIDENCE_KINDS, HISTORY, HYPOTHESIS, Vocabulary

CAUSALITY = (
    "Order and connection are not cause: a change that came before an incident is a candidate. "
    "Confirm it operationally (logs, metrics, a controlled revert) before you call it the cause."
)
UNTRUSTED = "The evidence holds {notes}, which nobody has verified."
SCOPE = "These checks are narrow rules over the saved graph; they do not check facts against the world."


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One source's statement that a subject's attribute has a value."""

    subject: str
    attribute: str
    value: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """The decision that was read back, and everything that it rests on, reloaded."""

    record: Object
    decision: Object
    research: Object
    planned: Object
    evidence: Mapping[str, Object]
    broken: Sequence[str]
    competing: Sequence[str]
    paths: Sequence[Mapping[str, Any]]


def verifier(vocabulary: Vocabulary) -> Behavior:
    """Return the stage that reacts to the executor's record."""

    def load(event: Event, reader: Reader) -> Check:
        return _load(event, reader, vocabulary)

    @behavior(name="verifier", on=["object.created"], where=follows("verifier"), view={"search": load})
    def run(_event: Event, graph: Graph, ctx: Context) -> None:
        check: Check = ctx.view.hits
        record = check.record
        key = record.data["run"]
        warnings = _warnings(check)
        status = "checked with warnings" if check.broken or check.competing else "checked"
        graph.patch_object(check.decision.id, {"status": status}, rationale=SCOPE, **ctx.cause)
        save_record(
            graph,
            ctx,
            key,
            "verifier",
            question=record.data["question"],
            previous=record,
            context=list(check.evidence),
            relations=record.data["relations"],
            paths=list(check.paths),
            gaps=[*check.research.data["gaps"], *check.planned.data["gaps"], *record.data["gaps"]],
            warnings=warnings,
        )

    return run


def _load(event: Event, reader: Reader, vocabulary: Vocabulary) -> Check:
    record = read_record(event, reader)
    run = record.data["run"]
    decision = reader.get_object(f"{run}.decision")
    if decision is None:
        msg = f"the record '{run}.decision' is missing from the graph, so there is nothing to verify; ask again"
        raise HandoffError(msg)
    research = load_record(record_id(run, "researcher"), reader)
    evidence = current(reader.get_objects(record.data["context"]))
    found = reader.relations(source=evidence, target=evidence, type=vocabulary.semantic) if evidence else []
    relations = {row.id: row for row in found}
    sound = [path for path in research.data["paths"] if _is_sound(path, evidence, relations)]
    return Check(
        record=record,
        decision=decision,
        research=research,
        planned=load_record(record_id(run, "planner"), reader),
        evidence=evidence,
        broken=[
            *(f"The evidence {key!r} has gone since." for key in decision.data["evidence"] if key not in evidence),
            *(
                f"The path {' - '.join(path['nodes'])} no longer holds."
                for path in research.data["paths"]
                if path not in sound
            ),
        ],
        competing=competing(evidence, reader, vocabulary),
        paths=sound,
    )


def _is_sound(path: Mapping[str, Any], evidence: Mapping[str, Object], relations: Mapping[str, Relation]) -> bool:
    """Whether every relation of a path still connects its two facts."""
    steps = zip(path["nodes"], path["relations"], path["nodes"][1:], strict=False)
    return all(key in evidence for key in path["nodes"]) and all(
        key in relations and {relations[key].source, relations[key].target} == {near, far} for near, key, far in steps
    )


def _warnings(check: Check) -> list[str]:
    if not check.evidence:
        return [*check.record.data["warnings"], *check.broken, SCOPE]
    notes = sum(row.data.get("trusted") is False for row in check.evidence.values())
    untrusted = [UNTRUSTED.format(notes="a user note" if notes == 1 else f"{notes} user notes")] if notes else []
    return [*check.competing, *check.record.data["warnings"], *check.broken, CAUSALITY, *untrusted, SCOPE]


def competing(evidence: Mapping[str, Object], reader: Reader, vocabulary: Vocabulary) -> list[str]:
    """Describe each single-valued relation or attribute of which the evidence's subjects have several values."""
    near = reader.expand(evidence, vocabulary.semantic, EVIDENCE_KINDS, HISTORY, vocabulary.bounds.neighbours)
    around = {end for row in near for end in (row.source, row.target)} - evidence.keys()
    facts = {**evidence, **current(reader.get_objects(around))}
    slots: dict[tuple[str, str], dict[str, list[Claim]]] = {}
    for claim in (*_related(facts, reader, vocabulary), *_asserted(facts, vocabulary)):
        values = slots.setdefault((claim.subject, claim.attribute), {})
        values.setdefault(claim.value.strip().casefold(), []).append(claim)
    return [
        _describe(subject, attribute, values, facts)
        for (subject, attribute), values in sorted(slots.items())
        if len(values) > 1
    ]


def _related(facts: Mapping[str, Object], reader: Reader, vocabulary: Vocabulary) -> Iterable[Claim]:
    types = sorted(vocabulary.single_valued_relations)
    rows = reader.relations(source=sorted(facts), type=types) if facts and types else []
    targets = current(reader.get_objects({row.target for row in rows}))
    for row in rows:
        if row.target in targets and targets[row.target].type != HYPOTHESIS:
            source = row.data.get("source")
            yield Claim(
                subject=row.source,
                attribute=vocabulary.single_valued_relations[row.type],
                value=row.target,
                source=source if isinstance(source, str) else f"relation {row.id}",
            )


def _asserted(facts: Mapping[str, Object], vocabulary: Vocabulary) -> Iterable[Claim]:
    for key, row in sorted(facts.items()):
        stated = row.data.get("asserts")
        for item in stated if isinstance(stated, list) else []:
            if isinstance(item, dict) and str(item.get("attribute")) in vocabulary.single_valued_attributes:
                yield Claim(
                    subject=str(item.get("subject")),
                    attribute=str(item["attribute"]),
                    value=str(item.get("value")),
                    source=key,
                )


def _describe(subject: str, attribute: str, values: Mapping[str, Sequence[Claim]], facts: Mapping[str, Object]) -> str:
    name = shown(facts[subject]) if subject in facts else subject
    sides = [
        f"'{shown(facts[claims[0].value]) if claims[0].value in facts else claims[0].value}' "
        f"(says {', '.join(sorted({claim.source for claim in claims}))})"
        for _, claims in sorted(values.items())
    ]
    slot = attribute.replace("_", " ")
    return f"Competing values for {slot} of {name}: {' against '.join(sides)}. Find out which holds."
