"""Executor: reads the plan back, reloads its evidence and writes a decision. It touches nothing outside the graph."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object, Relation
from contextmesh.core.reader import Reader
from contextmesh.core.runtime import Context, behavior
from contextmesh.errors import HandoffError
from contextmesh.investigation.records import (
    by_type,
    current,
    follows,
    load_record,
    read_record,
    record_id,
    relate,
    save_record,
)
from contextmesh.investigation.retrieval import shown

LISTED = 3
LESSONS = 5
QUOTED = 280  # characters of a fact in an answer; the evidence table holds all of it
CANDIDATE = (
    "Candidate to investigate, not an established cause: {label} ({key}), recorded as affecting {systems}. "
    "Its record says: {quote}"
)
OWNERS = ("Recorded owner of {system}: {owners}.", "Recorded owners of {system} disagree: {owners}.")
FAR = 10**6  # the rank of what no word of the question found
KNOWN = "Only some of the question's words stand in any fact here, so this rests on {words} alone."
LOST = "The task '{label}' stays blocked: the {requires} evidence it was planned on has gone."
VERIFY = "Verify operationally before you act: what came earlier, or is connected, need not be the cause."
NOTHING = "Nothing in this workspace matches the question, so there is no evidence and no answer."


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The plan that was read back, and the evidence behind it, reloaded."""

    record: Object
    research: Object
    tasks: Sequence[Object]
    evidence: Mapping[str, Object]
    relations: Mapping[str, Relation]
    session: str
    sessions: Mapping[str, Object]

    @property
    def others(self) -> list[str]:
        """The other sessions whose memories are among the evidence."""
        return [key for key in self.sessions if key != self.session]


def _load(event: Event, reader: Reader) -> Work:
    record = read_record(event, reader)
    run = record.data["run"]
    research = load_record(record_id(run, "researcher"), reader)
    home = reader.get_object(run)
    tasks = [row for row in reader.get_objects([f"{run}.task-{n}" for n in (1, 2, 3)]).values() if row.type == "Task"]
    if home is None or len(tasks) != 3:  # noqa: PLR2004 - a plan is three tasks
        msg = f"the plan of {run!r} is incomplete: {len(tasks)} of 3 tasks and {'its' if home else 'no'} run; ask again"
        raise HandoffError(msg)
    evidence = current(reader.get_objects(record.data["context"]))
    relations = reader.get_relations_by_id(record.data["relations"])
    inside = {key: row for key, row in relations.items() if row.source in evidence and row.target in evidence}
    memories = [key for key, row in evidence.items() if row.type == "Memory"]
    holders = reader.relations(target=memories, type="HAS_MEMORY") if memories else []
    return Work(
        record=record,
        research=research,
        tasks=tasks,
        evidence={key: evidence[key] for key in record.data["context"] if key in evidence},
        relations=inside,
        session=home.data["session"],
        sessions=reader.get_objects({row.source for row in holders}),
    )


@behavior(name="executor", on=["object.created"], where=follows("executor"), view={"search": _load})
def executor(_event: Event, graph: Graph, ctx: Context) -> None:
    """Write the decision with what supports it, and settle each task as done or blocked."""
    work: Work = ctx.view.hits
    run, question = work.record.data["run"], work.record.data["question"]
    blocked = [task for task in work.tasks if not set(task.data["supported_by"]) & work.relations.keys()]
    for task in work.tasks:
        status = "blocked" if task in blocked else "ready"
        graph.patch_object(task.id, {"status": status}, rationale=_why(task, status), **ctx.cause)
    gone = [key for key in work.record.data["context"] if key not in work.evidence]
    data = {
        "run": run,
        "label": f"Decision of {run}",
        "text": _answer(work),
        "question": question,
        "evidence": list(work.evidence),
        "sessions": work.others,
        "used_other_sessions": bool(work.others),
        "status": "unchecked",
    }
    decision = graph.add_object("Decision", data, id=f"{run}.decision", evidence=list(work.evidence), **ctx.cause)
    for key in work.evidence:
        relate(graph, ctx, key, "SUPPORTS", decision.id)
    save_record(
        graph,
        ctx,
        run,
        "executor",
        question=question,
        previous=work.record,
        outputs=[decision.id],
        context=list(work.evidence),
        relations=sorted(work.relations),
        gaps=[LOST.format(**task.data) for task in blocked if task.data["supported_by"]],
        warnings=[f"The evidence {key!r} has gone since it was found." for key in gone],
    )


def _why(task: Object, status: str) -> str:
    if status == "ready":
        return f"its {task.data['requires']} evidence was reloaded"
    return f"no {task.data['requires']} evidence could be reloaded"


def _answer(work: Work) -> str:
    """Return the answer in sentences, each resting on evidence that was reloaded; what a fact says is quoted."""
    if not work.evidence:
        return NOTHING
    rows = list(work.relations.values())
    seeds = [work.evidence[seed["id"]] for seed in work.research.data["seeds"] if seed["id"] in work.evidence]
    parts = [
        *_candidates(by_type(rows, "AFFECTS"), work.evidence),
        *_owners(by_type(rows, "OWNED_BY"), work.evidence),
        *_lessons(by_type(rows, "RESOLVED_BY"), work.evidence, [row.id for row in seeds]),
    ]
    cited = {key for _, keys in parts for key in keys}
    facts = [row for row in seeds if row.id not in cited]
    if facts:
        best = facts[0] is seeds[0]
        title = "Best match" if best else "Also matching"
        parts.insert(0 if best else len(parts), (f"{title}: {'; '.join(map(_said, facts[:LISTED]))}.", []))
    if work.others:
        labels = ", ".join(shown(work.sessions[key]) for key in work.others)
        parts.append((f"This rests in part on notes of another session: {labels}.", []))
    return "\n".join([*_known(work), *(text for text, _ in parts), VERIFY])


def _known(work: Work) -> list[str]:
    """Say on which of the question's words the answer rests, where no fact holds the others."""
    words = dict.fromkeys(word for seed in work.research.data["seeds"] for word in seed["terms"])
    return [KNOWN.format(words=", ".join(f"'{word}'" for word in words))] if work.research.data["gaps"] else []


def _candidates(rows: Sequence[Relation], facts: Mapping[str, Object]) -> list[tuple[str, list[str]]]:
    changes = [row for row in rows if facts[row.source].data.get("entity_type") == "change"]
    return [
        (
            CANDIDATE.format(label=shown(facts[key]), key=key, systems=_listed(ends, facts), quote=_quote(facts[key])),
            [key, *ends],
        )
        for key, ends in _grouped(changes)[:LISTED]
    ]


def _owners(rows: Sequence[Relation], facts: Mapping[str, Object]) -> list[tuple[str, list[str]]]:
    return [
        (OWNERS[len(owners) > 1].format(system=shown(facts[key]), owners=_listed(owners, facts)), [key, *owners])
        for key, owners in _grouped(rows)[:LISTED]
    ]


def _lessons(rows: Sequence[Relation], facts: Mapping[str, Object], best: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return what was learned from incidents that match, best first; if none does, from those that are connected."""
    rank = {key: at for at, key in enumerate(best)}
    groups = [
        (min(rank.get(key, FAR) for key in (incident, *ends)), incident, ends) for incident, ends in _grouped(rows)
    ]
    matching = [group for group in groups if group[0] < FAR] or groups
    return [
        (
            f"Learned from {shown(facts[incident])}: {'; '.join(_said(facts[end]) for end in ends[:LESSONS])}.",
            [incident, *ends],
        )
        for _, incident, ends in sorted(matching)[:LISTED]
    ]


def _grouped(rows: Sequence[Relation]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: (row.source, row.target)):
        if row.target not in groups.setdefault(row.source, []):
            groups[row.source].append(row.target)
    return list(groups.items())


def _listed(ids: Sequence[str], facts: Mapping[str, Object]) -> str:
    return ", ".join(shown(facts[key]) for key in ids)


def _said(row: Object) -> str:
    """Quote what a fact says, with its id, and say where it is a note that nobody has verified."""
    label = shown(row)
    words = _quote(row) if label.endswith("…") or row.data.get("trusted") is False else f"“{label}”"
    speaker = "an unverified note says " if row.data.get("trusted") is False else ""
    return f"{speaker}{words} ({row.id})"


def _quote(row: Object) -> str:
    text: Any = row.data.get("text")
    whole = " ".join(text.split()) if isinstance(text, str) and text.strip() else shown(row)
    return f"“{whole}”" if len(whole) <= QUOTED else f"“{whole[:QUOTED].rsplit(' ', 1)[0]} …”"
