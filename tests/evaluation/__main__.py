"""Print how well each mode of retrieval finds the evidence, and what it costs.

The synthetic set that ships is always asked; public ones where CONTEXTMESH_REAL_DATA names the folder that holds them.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path

import contextmesh as cm
from tests.evaluation.dataset import Corpus
from tests.evaluation.incidents import read_incidents
from tests.evaluation.locomo import SEVERAL_TURNS, read_locomo
from tests.evaluation.measuring import Asked, ask_all, modes, read_embedder
from tests.evaluation.shop import read_shop
from tests.evaluation.tables import HEAD, line

REAL = "CONTEXTMESH_REAL_DATA"


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.evaluation", description=__doc__)
    parser.add_argument("--only", metavar="WORD", help="only the sets whose name holds this word")
    parser.add_argument(
        "--embedder", metavar="MODULE:NAME", help="a function that makes an embedder, to measure it, too"
    )
    return parser.parse_args(words)


def corpora() -> Iterator[tuple[str, list[Corpus]]]:
    """Return the sets by name, each of several corpora; LoCoMo in two parts, to see how far they differ."""
    yield "shop (synthetic)", [read_shop()]
    if root := os.environ.get(REAL):
        conversations = read_locomo(Path(root, "locomo_dev", "locomo_first5.json"))
        yield "locomo, 1st 3rd 5th", conversations[::2]
        yield "locomo, 2nd 4th", conversations[1::2]
        yield (
            "similar incidents",
            [read_incidents(Path(root, "similar_incidents_dev.json"), Path(root, "dfds_postmortems"))],
        )


def main() -> None:
    """Ask every set in every mode."""
    given = arguments()
    make = read_embedder(given.embedder) if given.embedder else None
    print(HEAD, flush=True)
    pooled: list[Asked] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, several in corpora():
            if not given.only or given.only in name:
                asked = list(_asked(several, Path(folder), make))
                _print(name, asked)
                pooled += asked if name.startswith("locomo") else []
    if pooled:
        _print("locomo, all", pooled)
    if REAL not in os.environ:
        print(f"Set {REAL} to the folder of the public sets to ask those, too.")


def _asked(several: Sequence[Corpus], folder: Path, make: Callable[[], cm.Embedder] | None) -> Iterator[Asked]:
    for corpus in several:
        name = "".join(char if char.isalnum() else "-" for char in corpus.name.casefold())
        with cm.open(name.strip("-"), data_dir=folder) as ws:
            yield from ask_all(corpus, ws, modes(make), make)


def _print(name: str, asked: Sequence[Asked]) -> None:
    ordered = sorted(asked, key=lambda row: row.order)
    for _, rows in groupby(ordered, key=lambda row: row.order):
        same = list(rows)
        print(line(name, same), flush=True)
        if any(question.group for row in same for question, _ in row.results):
            print(line(f"  {SEVERAL_TURNS}", same, group=SEVERAL_TURNS), flush=True)


if __name__ == "__main__":
    main()
