"""Print what importing, committing, rebuilding and asking cost, each beside what it is compared with."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import contextmesh as cm
from contextmesh.core.graph import Graph
from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore
from contextmesh.stores.server import Server, open_server

ROUNDS = 7
SINGLES = 500
BATCHES, BATCH = 20, 100


def best(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """Return the shortest time of several rounds, in seconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def starting(code: str) -> float:
    """Return how long a fresh Python takes for some code, in seconds."""
    return best(lambda: subprocess.run([sys.executable, "-c", code], check=True))


def row(what: str, value: str, beside: str = "") -> None:
    """Print one line of the table."""
    sys.stdout.write(f"{what:44} {value:>16}  {beside}\n")


def imports() -> None:
    """Importing contextmesh, beside pandas."""
    bare = starting("pass")
    ours = starting("import contextmesh") - bare
    pandas = starting("import pandas") - bare
    row("import contextmesh", f"{ours * 1000:.0f} ms", f"at most 150 ms; pandas alone {pandas * 1000:.0f} ms")


def commits(server: Server) -> None:
    """Durable commits one by one and in batches, beside the two bare round trips that a commit cannot avoid."""
    graph = Graph(FalkorDBEventStore(server, "bench"), FalkorDBGraphStore(server, "bench"))
    floor = 2 * best(lambda: [server.redis.ping() for _ in range(SINGLES)]) / SINGLES
    start = time.perf_counter()
    for number in range(SINGLES):
        graph.add_object("Memory", {"text": f"note {number}"})
    single = SINGLES / (time.perf_counter() - start)
    row("durable events, one by one", f"{single:,.0f}/s", f"two bare round trips: {1 / floor:,.0f}/s")
    start = time.perf_counter()
    for page in range(BATCHES):
        with graph.batch():
            for number in range(BATCH):
                graph.add_object("Memory", {"text": f"note {page} {number}"})
    batched = BATCHES * BATCH / (time.perf_counter() - start)
    row("durable events, batches of 100", f"{batched:,.0f}/s", f"{batched / single:.1f} x one by one")
    start = time.perf_counter()
    position = graph.rebuild()
    row("rebuild", f"{position / (time.perf_counter() - start):,.0f}/s", f"{position:,} events, one kind")


def questions(folder: Path) -> None:
    """One question on AcmeShop: four stages, each saved and read back."""
    with cm.open("bench-ask", data_dir=folder) as ws:
        cm.demo.acmeshop(ws)
        question = cm.demo.tuesday()[1]
        took = best(lambda: ws.session("bench").investigate(question))
        facts = len(json.dumps(ws.session("bench").investigate(question).to_dict()))
    row("one investigation, four stages", f"{took * 1000:.0f} ms", f"{facts:,} characters of result")


def main() -> None:
    """Run all of it on an embedded server of its own."""
    os.environ.pop("CONTEXTMESH_URL", None)
    imports()
    with tempfile.TemporaryDirectory() as folder, open_server(data_dir=folder) as server:
        row("server", server.versions()["falkordb"], f"redis {server.versions()['redis']}")
        commits(server)
        questions(Path(folder))


if __name__ == "__main__":
    main()
