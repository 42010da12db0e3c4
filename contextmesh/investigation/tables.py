"""Tables: rows as the DataFrames that a notebook works with."""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def frame(rows: Iterable[Sequence[Any]], columns: Sequence[str]) -> "pd.DataFrame":
    """Return rows as a table of these columns."""
    import pandas as pd  # noqa: PLC0415 - importing contextmesh must stay light

    return pd.DataFrame([list(row) for row in rows], columns=list(columns))


def table_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> "pd.DataFrame":
    """Return rows as a table of these columns, whose lists may be changed without harm to the rows."""
    return frame([[copy(row[name]) for name in columns] for row in rows], columns)
