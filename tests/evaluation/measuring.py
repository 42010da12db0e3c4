"""Ask every question of a corpus in every mode, and time it."""

import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from contextmesh import Embedder, Workspace
from contextmesh.investigation.retrieval import ranking, retrieve
from contextmesh.investigation.search import MODES, Mode, Search
from tests.evaluation.dataset import Corpus, Question, units

FULL, SEMANTIC = "full", "full+dense"
OLDEST_FIRST = ("terms", "words", FULL, SEMANTIC)
Make = Callable[[], Embedder]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What one mode found for the questions of a corpus, how many facts there were, and how long all took."""

    name: str
    mode: str
    results: tuple[tuple[Question, tuple[str, ...]], ...]
    facts: int
    indexing_s: float
    asking_s: float

    @property
    def order(self) -> int:
        """Where the mode's line stands."""
        return OLDEST_FIRST.index(self.mode)


def read_embedder(place: str) -> Make:
    """Return the function at `module:name`, which makes an embedder."""
    module, _, name = place.partition(":")
    make: Make = getattr(importlib.import_module(module), name)
    return make


def modes(make: Make | None) -> list[str]:
    """Return the modes to measure."""
    return [*sorted(MODES, key=OLDEST_FIRST.index), *([SEMANTIC] if make else [])]


def ask_all(corpus: Corpus, ws: Workspace, names: Sequence[str], make: Make | None = None) -> Iterator[Asked]:
    """Fill a workspace and ask in every mode; indexing is filling it, and for a dense mode embedding it, too."""
    start = time.perf_counter()
    corpus.fill(ws)
    indexing_s = time.perf_counter() - start
    facts = sum(len(ws.graph.objects(kind)) for kind in ("Entity", "Evidence", "Memory"))
    for name in names:
        if name == SEMANTIC and make:
            start = time.perf_counter()
            ws.embed(make())
            indexing_s += time.perf_counter() - start
        mode: Mode = next((mode for mode in MODES if mode == name), "full")
        start = time.perf_counter()
        results = tuple((question, tuple(found(corpus, ws, question, mode))) for question in corpus.questions)
        asking_s = time.perf_counter() - start
        yield Asked(name=corpus.name, mode=name, results=results, facts=facts, indexing_s=indexing_s, asking_s=asking_s)


def found(corpus: Corpus, ws: Workspace, question: Question, mode: Mode) -> list[str]:
    """Return what a question finds, best first: its evidence, or, where units are sought, its whole ranking."""
    search = Search(question.text, ws.graph, ws.vocabulary, mode=mode, similar=ws.similar)
    if corpus.unit:
        rows = [row.id for row in ranking(search)]
        return units(rows, question, corpus.unit)
    return list(retrieve(search).context)
