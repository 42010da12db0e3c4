"""How the benchmarks measure: the shortest of alternating rounds, the garbage collector left on. And what a row is."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from contextmesh import FalkorDBEventStore, FalkorDBGraphStore, Graph, Reader
from contextmesh.stores.server import Server

Round = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table; `gain` is how many times better than what it is compared with."""

    work: str
    ours: str
    beside: str = ""
    gain: float | None = None
    wanted: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a benchmark gets: the open server, a folder to write in, and by how much to divide its sizes."""

    server: Server
    folder: Path
    smaller: int = 1

    def graph(self, name: str) -> Graph:
        """Return a new graph in FalkorDB."""
        return Graph(FalkorDBEventStore(self.server, name), FalkorDBGraphStore(self.server, name))

    def size(self, full: int) -> int:
        """Return how much of something to do."""
        return full // self.smaller


def held(graph: Reader) -> tuple[int, int]:
    """Return how many objects and relations a graph of ours holds."""
    return len(graph.objects()), len(graph.relations())


def seconds(work: Callable[[], object]) -> float:
    """Return how long some work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def timed(work: Callable[[], object]) -> Round:
    """Return a round that is the work and nothing else."""
    return lambda: seconds(work)


def best(work: Callable[[], object], rounds: int) -> float:
    """Return the shortest time of several rounds."""
    return min(seconds(work) for _ in range(rounds))


def duel(ours: Round, peers: Round, rounds: int) -> tuple[float, float]:
    """Return each side's shortest time; they take turns, so that a busy machine is busy for both."""
    times = [(ours(), peers()) for _ in range(rounds)]
    return min(mine for mine, _ in times), min(theirs for _, theirs in times)


def compared(work: str, ours_s: float, peers_s: float, *, wanted: float, note: str = "", n: int = 0) -> Row:
    """Return the row of two times; with `n`, as rates."""
    show = (lambda time_s: f"{n / time_s:,.0f}/s") if n else milliseconds
    return Row(
        work=work,
        ours=show(ours_s),
        beside=show(peers_s),
        gain=peers_s / ours_s,
        wanted=f"{wanted:g} x",
        note=note,
    )


def milliseconds(time_s: float) -> str:
    """Write a time with three digits that matter."""
    time_ms = time_s * 1000
    return f"{time_ms:,.0f} ms" if time_ms >= 100 else f"{time_ms:.3g} ms"


def to_text(row: Row) -> str:
    """Write a row for a terminal."""
    gain = f"{row.gain:.1f} x" if row.gain is not None else ""
    wanted = f"(wanted: {row.wanted})" if row.wanted else ""
    line = f"{row.work:52} {row.ours:>12} {row.beside:>12} {gain:>9}  {wanted}".rstrip()
    return f"{line}\n    {row.note}" if row.note else line


def to_markdown(rows: Sequence[Row], peer: str) -> str:
    """Write rows as a Markdown table, and their notes as a list under it."""
    lines = [f"| work | contextmesh | {peer} | gain |", "|---|---:|---:|---:|"]
    for row in rows:
        gain = f"{row.gain:.1f} x" if row.gain is not None else ""
        lines.append(f"| {row.work} | {row.ours} | {row.beside} | {gain} |")
    return "\n".join([*lines, "", *(f"- {row.work}: {row.note}." for row in rows if row.note)])
