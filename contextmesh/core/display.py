"""Small HTML tables, for results that show themselves in a notebook. Every cell is escaped."""

from collections.abc import Sequence
from html import escape

SHOWN = 50
STYLE = "text-align:left;vertical-align:top;padding:2px 12px 2px 0;overflow-wrap:anywhere"


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a titled table of the first 50 rows; what is left out is said below it."""
    head = "".join(f'<th style="{STYLE}">{escape(name)}</th>' for name in columns)
    body = "".join(f"<tr>{_cells(row)}</tr>" for row in rows[:SHOWN])
    grid = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    more = f"<p>and {len(rows) - SHOWN:,} more</p>" if len(rows) > SHOWN else ""
    return f"<div><p><strong>{escape(title)}</strong></p>{grid}{more}</div>"


def _cells(row: Sequence[object]) -> str:
    # The first cell says what the row is about, and stays in one piece.
    styles = [f"{STYLE};white-space:nowrap", *[STYLE] * (len(row) - 1)]
    return "".join(f'<td style="{style}">{escape(str(value))}</td>' for style, value in zip(styles, row, strict=True))


def counted(n: int, what: str) -> str:
    """Return a number with what it counts.

    Example:
        >>> counted(1, "objects created"), counted(2, "conflicts"), counted(0, "relations differ")
        ('1 object created', '2 conflicts', '0 relations differ')
    """
    noun, _, rest = what.partition(" ")
    return f"{n:,} {noun.removesuffix('s') if n == 1 else noun}{f' {rest}' if rest else ''}"
