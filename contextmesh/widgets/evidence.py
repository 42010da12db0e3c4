"""EvidenceTable: the facts that an investigation rests on, and why each was retrieved."""

from typing import TYPE_CHECKING

from contextmesh.core.display import counted
from contextmesh.investigation.result import Investigation
from contextmesh.widgets.panel import rows_of
from contextmesh.widgets.state import State
from contextmesh.widgets.tables import TablePanel

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {"label": 2.2, "why retrieved": 2.8, "kind": 1.1, "text": 2.5, "source": 1.4}
ORDER = "Best first: what the question's words found, then what is connected to it. Retrieved is not proven."


class EvidenceTable(TablePanel):
    """List the supporting facts of an investigation, best first, each with why it was retrieved.

    Args:
        inv: the investigation; the table follows it as its stages run in this notebook.
        state: what it shares with other views; picking a row selects its fact.

    Example:
        >>> EvidenceTable(ws.investigation("Run#1"))  # doctest: +SKIP
        <EvidenceTable Run#1: 13 facts>
    """

    def __init__(self, inv: Investigation, *, state: State | None = None) -> None:
        super().__init__(COLUMNS, title="Evidence", state=state)
        self._investigation = inv
        inv.cards.watch(self.follow)
        self.refresh()

    def __repr__(self) -> str:
        return f"<EvidenceTable {self._investigation.run_id}: {counted(len(self._rows), 'facts')}>"

    @property
    def evidence(self) -> "pd.DataFrame":
        """The facts as a table: id, kind, label, text, source, reasons."""
        return self._investigation.evidence

    def refresh(self) -> None:  # noqa: D102
        inv = self._investigation.refresh()
        self._list({**row, "why retrieved": row["reasons"]} for row in rows_of(inv.evidence))
        found = f"{counted(len(self._rows), 'facts')} found" if self._rows else f"No evidence: {inv.status}"
        self._head(inv.question, f"{inv.run_id} · {found}", ORDER if self._rows else "")

    def close(self) -> None:  # noqa: D102
        if hasattr(self, "_investigation"):
            self._investigation.cards.unwatch(self.follow)
        super().close()
