"""The lines of the table."""

from collections.abc import Sequence

from tests.evaluation.dataset import score
from tests.evaluation.measuring import Asked

COLUMNS = ("set", "mode", "n", "any@10", "all@20", "hit@3", "MRR", "index ms/fact", "ask ms")
WIDTHS = (22, 10, 5, 7, 7, 7, 7, 14, 8)


def row(cells: Sequence[str]) -> str:
    """Return a line of the table, numbers to the right."""
    first = [cell.ljust(width) for cell, width in zip(cells[:2], WIDTHS[:2], strict=True)]
    return " ".join([*first, *(cell.rjust(width) for cell, width in zip(cells[2:], WIDTHS[2:], strict=True))])


HEAD = row(COLUMNS)


def line(name: str, asked: Sequence[Asked], group: str = "") -> str:
    """Return one mode's line: the scores of all its questions, or of a group of them, and the means of the times."""
    results = [result for part in asked for result in part.results]
    kept = [result for result in results if not group or result[0].group == group]
    scores = score(kept)
    indexing = sum(part.indexing_s for part in asked) / max(1, sum(part.facts for part in asked)) * 1000
    asking = sum(part.asking_s for part in asked) / max(1, len(results)) * 1000
    numbers = [f"{value:.3f}" for value in (scores.any_10, scores.all_20, scores.hit_3, scores.mrr)]
    return row((name, asked[0].mode, str(scores.n), *numbers, f"{indexing:.2f}", f"{asking:.1f}"))
