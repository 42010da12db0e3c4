"""Session: a sitting in which notes are taken and questions asked."""

import time
from datetime import datetime
from typing import TYPE_CHECKING

from contextmesh.core.events import Event
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object
from contextmesh.errors import AlreadyExistsError, ConcurrentWriterError, UsageError
from contextmesh.investigation.facts import digest, relation_id
from contextmesh.investigation.hypothesis import read_settings
from contextmesh.investigation.inputs import check_text, label_of, moment, own_id, spaced
from contextmesh.investigation.intake import MAX_WRITES, persist
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.retrieval import check_question

if TYPE_CHECKING:
    from contextmesh.investigation.workspace import Workspace

MAX_LABEL = 200
PAUSE_S = 0.2


class Session:
    """A sitting in which notes are taken and questions asked. The same label is the same session."""

    def __init__(self, workspace: "Workspace", label: str) -> None:
        self._workspace = workspace
        self.label = spaced(label)
        if not self.label or len(self.label) > MAX_LABEL:
            msg = (
                f"a session's label has {len(self.label)} characters; expected 1 to {MAX_LABEL}, such as 'Monday night'"
            )
            raise UsageError(msg)
        self.id = f"session.{digest(self.label)}"

    def __repr__(self) -> str:
        return f"<Session {self.label!r} in {self._workspace.name!r}>"

    def _ensure(self, graph: Graph) -> None:
        if graph.get_object(self.id) is None:
            graph.add_object("Session", {"label": self.label}, id=self.id, actor="user")

    def note(
        self,
        text: str,
        *,
        id: str | None = None,
        at: str | datetime | None = None,
        author: str | None = None,
    ) -> Object:
        """Save a note as a Memory and return it; the same text in the same session is the same Memory.

        Args:
            text: what to remember. It is data: nothing in it is executed or trusted.
            id: your own id; by default it follows from session and text.
            at: when it was observed, with its time zone: a datetime, or ISO 8601 such as `2026-03-02T14:05+01:00`.
            author: who says so.

        Raises:
            UsageError: an empty text, or a time without a zone.
            AlreadyExistsError: the id belongs to something else.
        """
        check_text(text, "note's text")
        key = own_id(id) if id is not None else f"memory.{digest(self.id, text)}"
        workspace = self._workspace
        data = {
            "label": label_of(text),
            "text": text,
            "source": "user_note",
            "trusted": False,
            "revision": 1,
            "session": self.id,
            "author": author,
            "occurred_at": moment(at),
        }

        def write() -> Object:
            present = workspace.graph.get_object(key)
            if present:
                return self._same(present, text)
            with workspace.graph.batch() as graph:
                self._ensure(graph)
                saved = graph.add_object("Memory", data, id=key, actor=author or "user")
                graph.add_relation(self.id, key, "HAS_MEMORY", id=relation_id(self.id, "HAS_MEMORY", key))
                workspace._mention(key, text)  # noqa: SLF001 - a session is a part of its workspace
            return saved

        return persist(workspace.graph, write)

    def _same(self, present: Object, text: str) -> Object:
        """Return the note that is there already, or say that its id means something else."""
        if present.type != "Memory" or present.data.get("session") != self.id:
            msg = f"the id {present.id!r} belongs to a {present.type} of another session; choose another id"
            raise AlreadyExistsError(msg)
        by_digest = present.id == f"memory.{digest(self.id, text)}"
        if not by_digest and present.data["text"] != text:
            msg = f"the note {present.id!r} reads differently; change it with ws.revise({present.id!r}, ...)"
            raise AlreadyExistsError(msg)
        return present

    def investigate(self, question: str, *, run: bool = True, hypothesis: bool = False) -> Investigation:
        """Ask a question and let the four stages answer it from the graph.

        Args:
            question: at most 2,000 characters.
            run: whether to run the stages now; with False, `step()` runs them one at a time.
            hypothesis: whether to ask a language model, too, once the answer is verified: `Investigation.hypothesize`
                with the environment's settings.

        Raises:
            UsageError: an empty or overlong question, a hypothesis without a run, or a setting that cannot be one.
        """
        if hypothesis:
            read_settings()  # what is wrong with them is said before anything is written
        if hypothesis and not run:
            msg = "a hypothesis needs a verified answer; leave run=True, or call inv.hypothesize() after the last step"
            raise UsageError(msg)
        workspace = self._workspace
        question = check_question(question, workspace.vocabulary)
        graph = workspace.graph

        def write() -> str:
            key = graph.ids.object("Run")
            with graph.batch():
                self._ensure(graph)
                data = {"label": label_of(question), "question": question, "session": self.id}
                graph.add_object("Run", {**data, "position": graph.position}, id=key, actor="user", frame_id=key)
                asked = {"run": key, "session": self.id, "question": question}
                graph.emit(Event(type="question.asked", payload=asked, actor="user", frame_id=key))
            return key

        key = persist(workspace.graph, write)
        found = workspace.investigation(key)
        if run:
            self._run(found)
        return found.hypothesize() if hypothesis else found

    @staticmethod
    def _run(found: Investigation) -> None:
        for attempt in range(MAX_WRITES):
            try:
                found.run(retry=attempt > 0)
            except ConcurrentWriterError:
                time.sleep(PAUSE_S)  # somebody writes so much that no stage could see the graph stand still
            else:
                return
        found.run(retry=True)
