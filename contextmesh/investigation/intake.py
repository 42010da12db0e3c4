"""Bring a graph in step with what importers read and with what notes name."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from tqdm.auto import tqdm

from contextmesh.core.events import canonical
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object
from contextmesh.core.terms import terms
from contextmesh.errors import AlreadyExistsError, ConcurrentWriterError
from contextmesh.investigation.asking import is_named, names_of
from contextmesh.investigation.facts import Fact, Reading, Report, Skipped, inside, relation_id
from contextmesh.investigation.inputs import LABEL_LENGTH, SLOW_S
from contextmesh.investigation.retrieval import shown
from contextmesh.investigation.sources import fact_source
from contextmesh.investigation.vocabulary import HISTORY, Vocabulary

FACT_KINDS = ("Entity", "Evidence")
MAX_TEXT_TERMS = 2000
MAX_CANDIDATES = 10_000  # entities that share a word with a note and may be named in it
MAX_WRITES = 20  # how often a write is done again because another writer was faster


def persist[T](graph: Graph, write: Callable[[], T]) -> T:
    """Write what reads the graph first; while another writer is faster, do it again from the start."""
    for _ in range(MAX_WRITES):
        position = graph.position
        try:
            return write()
        except (AlreadyExistsError, ConcurrentWriterError):
            if graph.catch_up() == position:
                raise  # nobody else wrote, so it would fail again
    return write()


def ingest(graph: Graph, vocabulary: Vocabulary, readings: Iterable[Reading]) -> Report:
    """Bring the workspace in step with what importers read; each reading is one batch.

    A fact that its source no longer holds becomes `withdrawn`. Ingesting the same again changes nothing.
    """
    report = Report()
    seen: set[str] = set()
    readings = list(readings)
    sourced = any(reading.source for reading in readings)
    held = [row.id for kind in FACT_KINDS for row in graph.objects(kind)] if sourced else []
    for reading in tqdm(readings, desc="importing", unit="file", delay=SLOW_S, leave=False):
        facts = {fact.id: fact for fact in reading.facts if fact.id not in seen}  # several files may share a system
        before = inside(reading.source, held)
        report.add(persist(graph, partial(_ingest, graph, vocabulary, reading, facts, before)))
        seen.update(facts)
    return report


def _ingest(
    graph: Graph, vocabulary: Vocabulary, reading: Reading, facts: Mapping[str, Fact], before: Sequence[str]
) -> Report:
    report = Report(skipped=list(reading.skipped))
    head = facts.get(reading.source)
    present = graph.get_object(reading.source) if head else None
    if head and present and not _same_incident(present, head):
        report.skipped.append(_taken(head, present))
        return report
    with graph.batch():
        stated = _state(graph, vocabulary, facts, report)
        _withdraw(graph, set(before) - {fact.id for fact in reading.facts}, report)
        _link(graph, vocabulary, reading)
        _mention_in_memories(graph, stated)
    return report


def _state(graph: Graph, vocabulary: Vocabulary, facts: Mapping[str, Fact], report: Report) -> list[Fact]:
    """Write what is new or reads differently, and return it."""
    present = graph.get_objects(facts)
    stated = []
    for key, fact in facts.items():
        if key in present and not _same_source(present[key], fact):
            report.skipped.append(_taken(fact, present[key]))
        elif key not in present:
            graph.add_object(vocabulary.check_kind(fact.kind), fact.data, id=key, actor="importer")
            report.added += 1
            stated.append(fact)
        elif present[key].data == canonical(fact.data):
            report.unchanged += 1
        else:
            graph.patch_object(key, fact.data, op="replace", actor="importer", rationale="its source changed")
            report.changed += 1
            stated.append(fact)
    return stated


def _withdraw(graph: Graph, gone: Collection[str], report: Report) -> None:
    for key, row in graph.get_objects(gone).items():
        if not row.data.get("withdrawn"):
            why = "it vanished from its source"
            graph.patch_object(key, {"withdrawn": True}, actor="importer", rationale=why)
            report.changed += 1
            report.withdrawn += 1


def _link(graph: Graph, vocabulary: Vocabulary, reading: Reading) -> None:
    """Bring the relations that lead from a source's own facts in step with it, and add the others."""
    wanted = {relation_id(link.source, link.type, link.target): link for link in reading.links}
    own = inside(reading.source, [fact.id for fact in reading.facts])
    for row in graph.relations(source=own) if own else ():
        if row.id not in wanted and row.provenance.get("actor") == "importer":
            graph.remove_relation(row.id, actor="importer")
    present = graph.get_relations_by_id(wanted.keys())
    for key, link in wanted.items():
        if key not in present:
            type_ = vocabulary.check_relation(link.type)
            graph.add_relation(link.source, link.target, type_, link.data, id=key, actor="importer")


def _mention_in_memories(graph: Graph, facts: Iterable[Fact]) -> None:
    """Link earlier notes to entities that came later."""
    total, _ = graph.count_terms([], ["Memory"], HISTORY)
    for fact in facts if total else ():
        row = Object(id=fact.id, type=fact.kind, data=fact.data)
        names = [name for name in names_of(row) if len(name) <= LABEL_LENGTH] if fact.kind == "Entity" else []
        words = {term: 1.0 for name in names for term in terms(name)}
        hits = graph.search(words, ["Memory"], HISTORY, MAX_CANDIDATES) if words else []
        for key, memory in graph.get_objects([hit.id for hit in hits]).items():
            link = relation_id(key, "MENTIONS", fact.id)
            if any(is_named(name, memory.data["text"]) for name in names) and not graph.get_relation(link):
                graph.add_relation(key, fact.id, "MENTIONS", id=link, actor="importer")


def mention(graph: Graph, memory_id: str, text: str) -> None:
    """Bring a memory's MENTIONS in step with the entities that its text names."""
    named = {relation_id(memory_id, "MENTIONS", key): key for key in _named_in(graph, text)}
    present = {row.id for row in graph.relations(source=memory_id, type="MENTIONS")}
    for key in sorted(present - named.keys()):
        graph.remove_relation(key)
    for key in sorted(named.keys() - present):
        graph.add_relation(memory_id, named[key], "MENTIONS", id=key)


def _named_in(graph: Graph, text: str) -> list[str]:
    words = list(terms(text))[:MAX_TEXT_TERMS]
    _, counts = graph.count_terms(words, ["Entity"], HISTORY) if words else (0, {})
    hits = graph.search(dict.fromkeys(counts, 1.0), ["Entity"], HISTORY, MAX_CANDIDATES) if counts else []
    rows = graph.get_objects([hit.id for hit in hits])
    return [key for key, row in rows.items() if any(is_named(name, text) for name in names_of(row))]


def _same_source(present: Object, fact: Fact) -> bool:
    return present.type == fact.kind and present.data.get("source") == fact.data.get("source")


def _same_incident(present: Object, fact: Fact) -> bool:
    """Whether a file was edited, rather than another of the same name read: its code, title or summary has stayed."""
    old, new = present.data, fact.data
    coded = bool(old.get("aliases")) and old.get("aliases") == new.get("aliases")
    titled = old.get("label") == new.get("label")
    summary = [str(data.get("text")).removeprefix(str(data.get("label"))) for data in (old, new)]
    return _same_source(present, fact) and (coded or titled or summary[0] == summary[1])


def _taken(fact: Fact, present: Object) -> Skipped:
    owner = fact_source(present) or "another source"
    reason = f"the id {fact.id!r} belongs to {shown(present)!r} already, of {owner}; rename one of the two"
    file, line = str(fact.data.get("file", "")), fact.data.get("line")
    return Skipped(file=file, line=line if isinstance(line, int) else 1, reason=reason)
