"""The first picture in a browser, what it sends and how fast a click arrives; beside a graph widget in use today."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.benchmarks.measuring import Row, Setting
from tests.browser import chromium
from tests.browser.lab import Lab, launched
from tests.browser.server import lab_server

SIZES = (1_000, 10_000)
WITHIN_S = {1_000: 3, 10_000: 5}
WIRE_KB = 1000
LARGE = 100_000
ROUNDS = 3
PEER = "ipysigma 0.24.6"

# The same graph for both: ten hubs, and three relations a node to earlier ones, from a fixed seed.
MADE = """
import random
chance = random.Random(5)
earlier = lambda n: chance.randrange(10 if chance.random() < .3 else n)
ends = [(n, earlier(n)) for n in range(10, {n}) for _ in (1, 2, 3)]
kinds = ("Memory", "Evidence", "Entity", "Decision")
"""
OURS = """
import contextmesh as cm
from contextmesh.core.model import Object, Relation
from contextmesh.investigation.scene import scene_of
from contextmesh.widgets.graph3d import Canvas
rows = [Object(id=f"n{{n}}", type=kinds[n % 4], data={{"label": f"node {{n}}"}}) for n in range({n})]
made = lambda at, a, b: Relation(id=f"r{{at}}", source=f"n{{a}}", target=f"n{{b}}", type="RELATES_TO")
lines = [made(at, *pair) for at, pair in enumerate(ends)]
"""
DRAW = "picked = []\ncanvas = Canvas(scene_of(rows, lines), on_pick=picked.append)\ncanvas"
THEIRS = """
import networkx as nx
from ipysigma import Sigma
graph = nx.Graph()
graph.add_nodes_from((n, {{"label": f"node {{n}}", "kind": kinds[n % 4]}}) for n in range({n}))
graph.add_edges_from(ends)
"""
THEIR_DRAW = "Sigma(graph, node_color='kind', node_size=graph.degree, start_layout=5)"
FILLED = """
ws = cm.open("large")
for at in range(0, len(rows), 5000):
    with ws.graph.batch():
        for row in rows[at : at + 5000]:
            ws.graph.add_object("Evidence", row.data, id=row.id)
for at in range(0, len(lines), 5000):
    with ws.graph.batch():
        for line in lines[at : at + 5000]:
            ws.graph.add_relation(line.source, line.target, "RELATES_TO", id=line.id)
"""
EXPLORE = "explorer = ws.explore()\nexplorer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """How long a cell took until something stood on its canvas, and what the kernel sent for it."""

    first_s: float
    kilobytes: float


def rows(setting: Setting, _peer: object) -> Iterator[Row]:
    """Return the rows of this theme, as they are measured."""
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder)) as lab:
        for full in SIZES:
            n = setting.size(full)
            ours = best(lab, MADE + OURS, DRAW, n)
            theirs = best(lab, MADE + THEIRS, THEIR_DRAW, n)
            click_ms = clicked(lab, n)
            yield Row(
                work=f"first picture of {n:,} nodes",
                ours=f"{ours.first_s:.1f} s",
                beside=f"{theirs.first_s:.1f} s",
                gain=theirs.first_s / ours.first_s,
                wanted=f"within {WITHIN_S[full]} s",
                note=(
                    f"beside {PEER}; on the wire {ours.kilobytes:,.0f} kB and {theirs.kilobytes:,.0f} kB; "
                    f"a click is in Python after {click_ms:.0f} ms; to see the canvas takes 0.2 s of each time"
                ),
            )
        yield explorer(lab, setting.size(LARGE))


@contextmanager
def opened(folder: Path) -> Iterator[Lab]:
    """Open JupyterLab in a browser."""
    path = chromium.find()
    if path is None:
        raise SystemExit(chromium.HOW)
    size = {"width": 1280, "height": 900}
    with (
        lab_server(folder) as server,
        sync_playwright() as playwright,
        launched(playwright, path) as browser,
        browser.new_context(viewport=size) as context,
    ):
        yield Lab(server, context)


def best(lab: Lab, made: str, draw: str, n: int) -> Shown:
    """Return the fastest of several fresh notebooks, each with a kernel that has made the graph already."""
    return min((drawn(lab, made.format(n=n), draw) for _ in range(ROUNDS)), key=lambda shown: shown.first_s)


def drawn(lab: Lab, made: str, draw: str) -> Shown:
    """Run a cell that shows a graph, in a kernel that holds it already."""
    lab.close()
    lab.new([made, draw])
    lab.run_cell(0)
    lab.received.clear()
    start = time.perf_counter()
    lab.start_cell(1)
    lab.wait_for_canvas()
    first_s = time.perf_counter() - start
    lab.wait_for_idle()
    return Shown(first_s=first_s, kilobytes=sum(lab.received) / 1000)


def clicked(lab: Lab, n: int) -> float:
    """Return the milliseconds from a click on a node to the callback in Python, the shortest of several."""
    drawn(lab, (MADE + OURS).format(n=n), DRAW)
    box = lab.canvas().bounding_box()
    assert box is not None
    lab.python("import time\ncanvas.picker.observe(lambda _: stamps.append(time.time()), 'point')\nstamps = []")
    times = []
    for at in range(8):
        sent = time.time()
        lab.click_canvas(box["width"] / 2 + 3 * at, box["height"] / 2)
        stamps = lab.value("stamps")
        if len(stamps) > len(times):
            times.append(1000 * (stamps[-1] - sent))
    return min(times)


def explorer(lab: Lab, n: int) -> Row:
    """Measure how long the Explorer takes to open on a large workspace."""
    lab.close()
    lab.new([(MADE + OURS).format(n=n) + FILLED, EXPLORE])
    lab.run_cell(0, seconds=600)
    lab.received.clear()
    start = time.perf_counter()
    lab.start_cell(1)
    lab.wait_for_canvas()
    took_s = time.perf_counter() - start
    lab.wait_for_idle()
    left_out = lab.value("explorer.graph.scene.left_out")
    return Row(
        work=f"Explorer on a workspace of {n:,} facts",
        ours=f"{took_s:.1f} s",
        wanted="within 5 s",
        note=f"{sum(lab.received) / 1000:,.0f} kB on the wire; {left_out}",
    )
