"""Print how well each mode of retrieval finds the evidence, and what it costs.

The synthetic set that ships is always asked; public ones where CONTEXTMESH_REAL_DATA names the folder that holds them.
"""

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import contextmesh as cm
from tests.evaluation.dataset import Corpus
from tests.evaluation.heldout import CHOICES, Parts, held_out, read_parts
from tests.evaluation.incidents import read_incidents
from tests.evaluation.locomo import LOCOMO, SEVERAL_TURNS, read_locomo
from tests.evaluation.measuring import FULL, SEMANTIC, Asked, ask_all, modes, read_embedder
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
    """Return the sets by name, each of one or several corpora; LoCoMo by conversation, to see how far they differ."""
    yield "shop (synthetic)", [read_shop()]
    if root := os.environ.get(REAL):
        for conversation in read_locomo(Path(root, "locomo_dev", "locomo_first5.json")):
            yield conversation.name, [conversation]
        yield (
            "similar incidents",
            [read_incidents(Path(root, "similar_incidents_dev.json"), Path(root, "dfds_postmortems"))],
        )


def main() -> None:
    """Ask every set in every mode."""
    given = arguments()
    make = read_embedder(given.embedder) if given.embedder else None
    print(HEAD, flush=True)
    pooled: list[tuple[Asked, list[Parts]]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, several in corpora():
            if not given.only or given.only in name:
                asked = list(_asked(several, Path(folder), make))
                _print(name, [row for row, _ in asked])
                pooled += asked if name.startswith(LOCOMO) else []
    if pooled:
        _print(f"{LOCOMO}, all", [row for row, _ in pooled])
        for mode in [FULL, *([SEMANTIC] if make else [])]:
            _print_held_out([row for row in pooled if row[0].mode == mode])
    if REAL not in os.environ:
        print(f"Set {REAL} to the folder of the public sets to ask those, too.")


def _asked(
    several: Sequence[Corpus], folder: Path, make: Callable[[], cm.Embedder] | None
) -> Iterator[tuple[Asked, list[Parts]]]:
    """Ask in every mode; of the conversations, read what the scores of the full ones are made of, too."""
    for corpus in several:
        name = "".join(char if char.isalnum() else "-" for char in corpus.name.casefold())
        with cm.open(name.strip("-"), data_dir=folder) as ws:
            for asked in ask_all(corpus, ws, modes(make), make):
                weighed = corpus.name.startswith(LOCOMO) and asked.mode in (FULL, SEMANTIC)
                yield asked, read_parts(corpus, ws) if weighed else []


def _print(name: str, asked: Sequence[Asked]) -> None:
    ordered = sorted(asked, key=lambda row: row.order)
    for _, rows in groupby(ordered, key=lambda row: row.order):
        same = list(rows)
        print(line(name, same), flush=True)
        if any(question.group for row in same for question, _ in row.results):
            print(line(f"  {SEVERAL_TURNS}", same, group=SEVERAL_TURNS), flush=True)


def _print_held_out(pooled: Sequence[tuple[Asked, list[Parts]]]) -> None:
    """Print what weights find that were chosen without the conversation that is asked, and which those are."""
    made = held_out([parts for _, parts in pooled]) if len(pooled) > 1 else []
    chosen = [replace(asked, results=tuple(results)) for (asked, _), (_, results) in zip(pooled, made, strict=False)]
    for (asked, _), part, (weights, _) in zip(pooled, chosen, made, strict=False):
        given = ", ".join(f"{name} {value:g}" for name, value in zip(CHOICES, weights, strict=True))
        print(f"{line(f'held out {asked.name}', [part])}  {given}")
    if chosen:
        _print(f"{LOCOMO}, held out", chosen)


if __name__ == "__main__":
    main()
