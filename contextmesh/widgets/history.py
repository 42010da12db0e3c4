"""HistoryPanel: what happened in a session, in the order of the log: notes, revisions, questions, stages."""

from collections.abc import Callable, Mapping
from typing import Any

from contextmesh.core.display import counted
from contextmesh.core.events import Event
from contextmesh.errors import IncompatibleRuntimeState
from contextmesh.investigation.session import Session
from contextmesh.investigation.trace import error_name
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets.panel import button
from contextmesh.widgets.state import State
from contextmesh.widgets.tables import TablePanel

COLUMNS = {"what": 1.7, "text": 3.1, "by": 1.3, "position": 1.1, "time (UTC)": 2.3}
LOOK = 10_000  # events that are read at a time, from the newest back


class HistoryPanel(TablePanel):
    """List what happened in a session, oldest first: notes and their revisions, questions and what became of them.

    It is read from the log, the newest 10,000 events first; what was not looked at is said, and a button looks further.

    Args:
        ws: the workspace.
        session: a session's label, or the Session itself; by default all sessions.
        state: what it shares with other views; picking a row selects the note or record that it is about.

    Example:
        >>> HistoryPanel(ws, "Monday night")  # doctest: +SKIP
        <HistoryPanel 'acmeshop', Monday night: 2 rows>
    """

    def __init__(self, ws: Workspace, session: Session | str | None = None, *, state: State | None = None) -> None:
        super().__init__(COLUMNS, title="History", state=state)
        self._workspace = ws
        self._session = ws.session(session) if isinstance(session, str) else session
        self._found: list[dict[str, Any]] = []
        self._low = self._high = len(ws.graph.events)  # what was looked at: positions after low, up to high
        self._further = button("Look further back", f"Read {LOOK:,} earlier events", self._on_further)
        self._beside.children = [self._further, *self._beside.children]
        self._look_back()
        self.refresh()

    def __repr__(self) -> str:
        of = f", {self._session.label}" if self._session else ""
        return f"<HistoryPanel {self._workspace.name!r}{of}: {counted(len(self._rows), 'rows')}>"

    def refresh(self) -> None:
        """Read what the log holds since, and show it.

        Raises:
            IncompatibleRuntimeState: it holds less than before, since it was dropped or cut meanwhile.
        """
        tip = len(self._workspace.graph.events)
        if tip < self._high:
            msg = f"the log ends at {tip:,}, and ended at {self._high:,} before: it was dropped or cut; open it again"
            raise IncompatibleRuntimeState(msg)
        self._found += self._read(self._high, tip)
        self._high = tip
        self._show()

    def look_back(self) -> None:
        """Read 10,000 earlier events, and show what they tell."""
        self._look_back()
        self._show()

    def _look_back(self) -> None:
        first = max(0, self._low - LOOK)
        self._found = [*self._read(first, self._low), *self._found]
        self._low = first

    def _read(self, after: int, until: int) -> list[dict[str, Any]]:
        events = self._workspace.graph.events[after:until]
        rows = [row for at, event in enumerate(events, after + 1) if (row := told(at, event))]
        return self._of_session(rows)

    def _of_session(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Keep the rows of the panel's session; those of a run belong where its question was asked."""
        if self._session is None:
            return rows
        runs = self._workspace.graph.get_objects({row["run"] for row in rows if row["run"]})
        homes = {key: run.data.get("session") for key, run in runs.items()}
        return [row for row in rows if (row["session"] or homes.get(row["run"])) == self._session.id]

    def _show(self) -> None:
        self._list(self._found)
        ws, place = self._workspace, self._session.label if self._session else "all sessions"
        looked = f"{self._high - self._low:,} of {self._high:,} events were looked at" if self._low else ""
        self._further.layout.display = "" if self._low else "none"
        self._head(
            "History", f"{ws.name} · {place} · {counted(len(self._rows), 'rows')}, in the order of the log", looked
        )

    def _on_further(self, _button: Any) -> None:
        with self.status.catching("look further back"):
            self.look_back()


def told(position: int, event: Event) -> dict[str, Any] | None:
    """Return a row for an event that a session's history tells of, else None."""
    tell = _TOLD.get(event.type)
    try:
        found = tell(event) if tell else None
    except (KeyError, TypeError, AttributeError):  # an older log may hold other payloads under the same type
        return None
    if found is None:
        return None
    what, about, text, session = found
    return {
        "id": f"{position}",
        "object": about,
        "what": what,
        "text": text,
        "by": event.actor,
        "position": position,
        "time (UTC)": event.timestamp[:19].replace("T", " "),
        "session": session,
        "run": event.frame_id,
    }


Told = tuple[str, str, str, str | None]  # what, the object's id, its text, its session if the event names it


def _created(event: Event) -> Told | None:
    row = event.payload["object"]
    data = row["data"]
    names: Mapping[str, str] = {"Memory": "note", "Decision": "decision", "Hypothesis": "hypothesis"}
    if row["type"] == "Session":
        return "session", row["id"], _text(data, "label"), row["id"]
    if row["type"] == "AgentRun":
        return f"{data.get('stage') or 'agent'} done", row["id"], _text(data, "label"), None
    what = names.get(row["type"])
    return (what, row["id"], _text(data, "text", "label"), data.get("session")) if what else None


def _patched(event: Event) -> Told | None:
    row = event.payload.get("object") or {}
    data: Mapping[str, Any] = row.get("data") or {}
    if row.get("type") == "AgentRun" and event.payload["patch"]["op"] == "create":
        return "AgentRun put back", row["id"], _text(data, "label"), None
    if row.get("type") != "Memory":
        return None
    return f"revision {data.get('revision')}", row["id"], _text(data, "text", "label"), data.get("session")


def _asked(event: Event) -> Told | None:
    payload = event.payload
    return "question", str(payload["run"]), str(payload["question"]), payload.get("session")


def _failed(event: Event) -> Told | None:
    if event.frame_id is None:
        return None
    return f"{event.payload['behavior']} stopped", event.frame_id, error_name(str(event.payload["error"])), None


def _removed(event: Event) -> Told | None:
    if event.payload["type"] not in ("AgentRun", "Decision", "Task") or event.frame_id is None:
        return None
    return f"{event.payload['type']} removed", event.payload["id"], event.payload["id"], None


def _text(data: Mapping[str, Any], *names: str) -> str:
    return next((str(data[name]) for name in names if data.get(name)), "")


_TOLD: Mapping[str, Callable[[Event], Told | None]] = {
    "object.created": _created,
    "object.removed": _removed,
    "patch.applied": _patched,
    "question.asked": _asked,
    "behavior.failed": _failed,
}
