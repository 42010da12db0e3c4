"""MemoryPanel: the notes that a workspace keeps, with forms to add one and to revise one."""

from typing import Any

import ipywidgets as widgets

from contextmesh.core.display import counted
from contextmesh.core.model import Object
from contextmesh.errors import UsageError
from contextmesh.investigation.inputs import spaced
from contextmesh.investigation.retrieval import shown
from contextmesh.investigation.session import Session
from contextmesh.investigation.sources import fact_source
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets.panel import button
from contextmesh.widgets.state import State
from contextmesh.widgets.tables import TablePanel, in_full

COLUMNS = {"note": 3.4, "session": 1.4, "revision": 0.9, "source": 1.8}
MOST = 500  # notes that are listed; the rest is counted
DATA = "A note is data: nothing in it is executed, and nobody has verified it."
NEWEST = (
    "MATCH (n:Memory) WHERE $session = '' OR n.session = $session "
    "RETURN n.id AS id ORDER BY n.updated_at DESC, n.id LIMIT $most"
)
COUNT = "MATCH (n:Memory) WHERE $session = '' OR n.session = $session RETURN count(n) AS n"


class MemoryPanel(TablePanel):
    """List the saved notes, those that changed last first; save another one, or revise the selected one.

    Saving is safe to repeat: the same text in the same session is the same note. A revision keeps the earlier text.

    Args:
        ws: the workspace.
        session: list and save the notes of this session alone; its label, or the Session itself.
        state: what it shares with other views; picking a row selects its note.

    Example:
        >>> MemoryPanel(ws, session="Monday night")  # doctest: +SKIP
        <MemoryPanel 'acmeshop', Monday night: 1 note>
    """

    def __init__(self, ws: Workspace, *, session: Session | str | None = None, state: State | None = None) -> None:
        super().__init__(COLUMNS, title="Notes", state=state)
        self._workspace = ws
        self._session = ws.session(session) if isinstance(session, str) else session
        self._saved = ""
        self._revising: Object | None = None
        self._make_forms()
        self.children = [*self.children[:-1], self._adding, self._changing, self.status]
        self.refresh()

    def _make_forms(self) -> None:
        self.text = _area("What did you see, and when?")
        self.label = widgets.Text(
            value=self._session.label if self._session else "",
            placeholder="such as Monday night",
            description="Session",
            disabled=self._session is not None,
            continuous_update=False,
            style={"description_width": "initial"},
            layout=widgets.Layout(width="100%", max_width="360px"),
        )
        self.save = button("Save the note", "Save it in this session", self._on_save, "primary")
        self._adding = _form("Add a note", self.text, self.label, self.save)
        self.revision = _area("What should it say now?")
        self.revise = button(
            "Save the revision", "Keep the earlier text, and save this one", self._on_revise, "primary"
        )
        self._earlier = widgets.HTML()
        self._changing = _form("Revise the selected note", self.revision, self.revise, self._earlier)

    def __repr__(self) -> str:
        of = f", {self._session.label}" if self._session else ""
        return f"<MemoryPanel {self._workspace.name!r}{of}: {counted(len(self._rows), 'notes')}>"

    # reading

    def refresh(self) -> None:  # noqa: D102
        ws = self._workspace
        asked = {"session": self._session.id if self._session else ""}
        ids = list(ws.cypher(NEWEST, {**asked, "most": MOST})["id"])
        total = int(ws.cypher(COUNT, asked)["n"][0])
        notes = ws.graph.get_objects(ids)
        sessions = ws.graph.get_objects({str(row.data.get("session")) for row in notes.values()})
        self._list(_row(notes[key], sessions) for key in ids if key in notes)
        left = total - len(self._rows)
        more = f"; {left:,} more are not listed, which changed longer ago" if left > 0 else ""
        self._head(
            "Saved memories",
            f"{ws.name}{f' · {self._session.label}' if self._session else ''} · {counted(total, 'notes')}{more}",
            DATA,
        )

    def _select(self, object_id: str | None) -> None:
        super()._select(object_id)
        chosen = self._workspace.graph.get_object(object_id) if object_id in self._rows else None
        self._changing.layout.display = "" if chosen else "none"
        known = self._revising
        self._revising = chosen
        if chosen and (known is None or (known.id, known.version) != (chosen.id, chosen.version)):
            self.revision.value = str(chosen.data.get("text") or "")
            self._earlier.value = self._earlier_texts(chosen)

    def _earlier_texts(self, note: Object) -> str:
        """Return the texts that the note had before, newest first."""
        graph = self._workspace.graph
        near = graph.get_objects([row.source for row in graph.relations(target=note.id, type="RELATES_TO")])
        kept = [row for row in near.values() if row.data.get("memory") == note.id]
        kept.sort(key=lambda row: (-int(row.data.get("revision") or 0), row.id))
        return in_full({f"revision {row.data.get('revision')}": row.data.get("text") for row in kept}) if kept else ""

    # writing

    def add(self, text: str, session: str) -> Object:
        """Save a note and select it; the same text in the same session is the same note.

        Args:
            text: what to remember.
            session: the session's label.
        """
        note = self._workspace.session(session).note(text)
        self.refresh()
        self.state.selection = note.id
        return note

    def _on_save(self, _button: Any) -> None:
        with self.status.catching("save"):
            if not self.text.value.strip() and self._saved:
                self.status.say(f"Nothing new to save; {self._saved} is saved.")  # the second half of a double click
                return
            if not spaced(self.label.value):
                msg = "the session has no label; say in which sitting this was seen, such as Monday night"
                raise UsageError(msg)
            note = self.add(self.text.value, self.label.value)
            self._saved, self.text.value = note.id, ""
            self.status.say(f"Saved as {note.id}, and linked to the entities that it names.")

    def _on_revise(self, _button: Any) -> None:
        with self.status.catching("revise"):
            before = self._revising
            if before is None:
                msg = "no note is selected; select the one to revise by its button"
                raise UsageError(msg)
            now = self._workspace.graph.get_object(before.id)
            text = self.revision.value
            if now is not None and now.version != before.version and now.data.get("text") != text:
                msg = f"{before.id} has been changed elsewhere since; copy your text, press Refresh, and revise that"
                raise UsageError(msg)
            if now is not None and now.data.get("text") == text:
                self.status.say(f"{before.id} reads like this already: revision {now.data.get('revision')}.")
                return
            note = self._workspace.revise(before.id, text)
            self.refresh()
            self.status.say(
                f"Saved revision {note.data['revision']} of {note.id}; the earlier text is kept as Evidence."
            )


def _row(note: Object, sessions: dict[str, Object]) -> dict[str, Any]:
    text, home = note.data.get("text"), sessions.get(str(note.data.get("session")))
    return {
        "id": note.id,
        "note": text if isinstance(text, str) and text else shown(note),
        "session": shown(home) if home else "",
        "revision": note.data.get("revision"),
        "source": fact_source(note),
    }


def _area(placeholder: str) -> widgets.Textarea:
    """Return a field for several lines.

    It sends its text when it is left: what is sent key by key waits for the kernel, and a click would overtake it.
    """
    layout = widgets.Layout(width="100%", max_width="720px", height="64px", margin="2px 0")
    return widgets.Textarea(placeholder=placeholder, continuous_update=False, layout=layout)


def _form(title: str, *fields: widgets.Widget) -> widgets.VBox:
    head = widgets.HTML(f'<div class="cm-head"><h3>{title}</h3></div>')
    return widgets.VBox([head, *fields], layout=widgets.Layout(margin="6px 0", width="100%", align_items="flex-start"))
