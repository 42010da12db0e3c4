"""Researcher: retrieves, and saves what it found by id."""

from collections.abc import Sequence

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.reader import Reader
from contextmesh.core.runtime import Behavior, Context, behavior
from contextmesh.investigation.records import save_record
from contextmesh.investigation.retrieval import Retrieval, retrieve
from contextmesh.investigation.search import Search, Similar
from contextmesh.investigation.vocabulary import Vocabulary


def _gaps(found: Retrieval) -> list[str]:
    if not found.context:
        return ["Nothing in this workspace matches the question."]
    known = list(dict.fromkeys(word for seed in found.seeds for word in seed.terms))
    if not found.unknown:
        return []
    return [f"No fact mentions {_listed(found.unknown)}; the evidence rests on {_listed(known)}."]


def _listed(words: Sequence[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)


def researcher(vocabulary: Vocabulary, similar: Similar | None = None) -> Behavior:
    """Return the stage that reacts to a question; `similar` finds facts that are close in meaning."""

    def search(event: Event, reader: Reader) -> Retrieval:
        return retrieve(Search(event.payload["question"], reader, vocabulary, similar=similar))

    @behavior(name="researcher", on=["question.asked"], view={"search": search})
    def run(event: Event, graph: Graph, ctx: Context) -> None:
        found: Retrieval = ctx.view.hits
        save_record(
            graph,
            ctx,
            event.payload["run"],
            "researcher",
            question=event.payload["question"],
            seeds=[seed.to_dict() for seed in (*found.seeds, *found.also)],
            context=list(found.context),
            relations=list(found.relations),
            paths=[path.to_dict() for path in found.paths],
            gaps=_gaps(found),
            warnings=list(found.notes),
        )

    return run
