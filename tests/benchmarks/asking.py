"""What a question costs over a thousand notes and over a hundred thousand. The peer has nothing like it."""

import random
from collections.abc import Iterator
from typing import Any

from contextmesh import Graph
from contextmesh.investigation.retrieval import retrieve
from contextmesh.investigation.search import Search
from contextmesh.investigation.vocabulary import DEFAULT
from tests.benchmarks.measuring import Row, Setting, best, milliseconds

SIZES = 1_000, 100_000
SESSION = 25  # notes
WORDS = 20_000
LENGTH = 20
ROUNDS = 7
AT_MOST = 5


def rows(setting: Setting, peer: Any) -> Iterator[Row]:
    """Return the row of this theme."""
    times = [_asked(setting, setting.size(size)) for size in SIZES]
    small, large = (f"{setting.size(size):,}" for size in SIZES)
    yield Row(
        work=f"a question over {large} notes",
        ours=milliseconds(times[1]),
        beside=milliseconds(times[0]),
        gain=times[0] / times[1],
        wanted=f"{1 / AT_MOST:g} x",
        note=f"beside: ours over {small} notes, in sessions of {SESSION}",
    )


def _asked(setting: Setting, size: int) -> float:
    graph = setting.graph(f"bench-ask-{size}")
    fill(graph, size)
    question = " ".join(f"word{rank}" for rank in (3, 40, 100, 300, 1500, 4000))
    assert len(retrieve(Search(question, graph, DEFAULT)).context) == DEFAULT.bounds.context
    return best(lambda: retrieve(Search(question, graph, DEFAULT)), ROUNDS)


def fill(graph: Graph, size: int) -> None:
    """Write notes whose words are as uneven as those of a language, in sessions, a thousand notes a commit."""
    chance = random.Random(5)
    ranks = range(1, WORDS)
    weights = [1 / rank for rank in ranks]
    for first in range(0, size, 1000):
        with graph.batch():
            for at in range(first, min(first + 1000, size)):
                session = f"session.{at // SESSION}"
                if at % SESSION == 0:
                    graph.add_object("Session", {"label": session}, id=session)
                text = " ".join(f"word{rank}" for rank in chance.choices(ranks, weights, k=LENGTH))
                note = {"label": text[:40], "text": text, "author": f"Person {at % 7}", "session": session}
                graph.add_object("Memory", note, id=f"note-{at}")
                graph.add_relation(session, f"note-{at}", "HAS_MEMORY")
