"""Investigation: what a run left in the graph, read back by the run's id."""

from collections.abc import Callable
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from contextmesh.core.graph import Graph
from contextmesh.core.reader import Reader
from contextmesh.core.runtime import Runtime
from contextmesh.errors import RunNotFoundError, UsageError
from contextmesh.investigation.guess import hypothesize, told
from contextmesh.investigation.hypothesis import TIMEOUT_S, read_settings
from contextmesh.investigation.inputs import SLOW_S
from contextmesh.investigation.page import Page, sections_of
from contextmesh.investigation.saved import Saved
from contextmesh.investigation.steps import Cards, StageStep
from contextmesh.investigation.tables import table_of
from contextmesh.investigation.trace import missing
from contextmesh.investigation.vocabulary import STAGES

if TYPE_CHECKING:
    import pandas as pd


class Investigation:
    """One run of the four stages, as it stands in the graph.

    Nothing is handed over from the process that ran it: every property is read from the saved records, so
    any process that knows the run's id sees the same. The tables are pandas DataFrames.
    """

    def __init__(self, reader: Reader, run: str, runtime: Callable[[int], Runtime], place: str) -> None:
        row = reader.get_object(run)
        if row is None or row.type != "Run":
            msg = f"no run {run!r} in {place}; ws.table('Run') lists what is there"
            raise RunNotFoundError(msg)
        self._reader = reader
        self._row = row
        self._make_runtime = runtime
        self.run_id = run

    def __repr__(self) -> str:
        return f"<Investigation {self.run_id}: {self.status}>"

    # running

    @cached_property
    def _runtime(self) -> Runtime:
        return self._make_runtime(self._row.data["position"])

    @property
    def graph(self) -> Graph:
        """The graph that the run stands in."""
        return self._runtime.graph

    def step(self, *, retry: bool = False) -> StageStep | None:
        """Run the next stage, reading its predecessor's record from the graph; return None if none is pending.

        End a cell with it to see what the stage reacted to, what it saw, saved and changed, and the Cypher that ran.

        Args:
            retry: whether a stage that failed is run again.

        Raises:
            HandoffError: the record it should read is gone or unreadable; no task or decision is made.
        """
        self._forget()
        step = self.cards.step(lambda: self._runtime.step(self.run_id, retry=retry))
        self.graph.catch_up()  # another process may have committed a stage and not projected it yet
        return step

    def run(self, *, retry: bool = False) -> "Investigation":
        """Run all stages that are pending, and with `retry` also one that failed; return self."""
        self._forget()
        with tqdm(total=len(STAGES), desc="investigating", unit="stage", delay=SLOW_S, leave=False) as bar:
            while self._runtime.step(self.run_id, retry=retry):
                bar.update()
        self._runtime.graph.catch_up()  # another process may have committed a stage and not projected it yet
        return self

    def hypothesize(
        self,
        *,
        key: str | None = None,
        model: str | None = None,
        base_url: str | None = None,
        rates: tuple[float, float] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> "Investigation":
        """Ask a language model at Groq for a hypothesis, save it as untrusted beside the answer, and return self.

        At most 12 facts leave this machine, each cut to 500 characters, with the question; one call, no retry. Whatever
        goes wrong, a missing key too, is saved as the reason why there is none, and the evidence answer stays as it is.
        A run has one hypothesis: with one saved nothing is sent, after a failure you may ask again.

        Args:
            key: by default the environment's GROQ_API_KEY. It is neither stored nor shown.
            model: by default CONTEXTMESH_GROQ_MODEL, else `llama-3.3-70b-versatile`.
            base_url: by default GROQ_BASE_URL, else Groq's own address.
            rates: US dollars for a million tokens, sent and received, to estimate the cost; by default
                CONTEXTMESH_GROQ_RATES, such as `0.59,0.79`, else the cost is unknown.
            timeout_s: give up after so many seconds.

        Raises:
            UsageError: the stages have not all run, or a setting cannot be one.
            ReadOnlyError: this connection may read and not write.
        """
        settings = read_settings(key=key, model=model, base_url=base_url, rates=rates, timeout_s=timeout_s)
        self.refresh()
        if self.status != "completed":
            remedy = "inv.run() runs what is left; where a record is gone, ask again"
            msg = f"{self.run_id} is not verified: {self.status}; {remedy}"
            raise UsageError(msg)
        if self.hypothesis is None or self.hypothesis["status"] != "answered":
            hypothesize(self.graph, self.run_id, self.question, settings)
            self._forget()
        return self

    @cached_property
    def cards(self) -> Cards:
        """What there is to tell of each stage; `contextmesh.widgets.Pipeline` shows it."""
        return Cards(self.graph, self.run_id)

    def refresh(self) -> "Investigation":
        """Read the saved records again, since another process may have added to them; return self."""
        self._forget()
        return self

    def _forget(self) -> None:
        self.__dict__.pop("_saved", None)

    # what was saved

    @cached_property
    def _saved(self) -> Saved:
        return Saved(self._reader, self.run_id)

    @property
    def question(self) -> str:
        """The question as asked."""
        return str(self._row.data["question"])

    @property
    def status(self) -> str:
        """`completed`, or what is missing: a stage that has not run or stopped, a record that is unreadable or gone."""
        for stage in STAGES:
            if stage in self._saved.damaged:
                return f"the {stage}'s record is unreadable: {self._saved.damaged[stage]}"
            if stage not in self._saved.records:
                return missing(self.cards.traces(), stage)
        return "completed"

    @property
    def answer(self) -> str:
        """The decision's text; it never states a cause."""
        decision = self._saved.decision
        return str(decision.data["text"]) if decision else f"No answer yet: {self.status}."

    @property
    def decision(self) -> dict[str, Any] | None:
        """The saved decision as plain data, or None."""
        decision = self._saved.decision
        return {"id": decision.id, **deepcopy(decision.data)} if decision else None

    @property
    def hypothesis(self) -> dict[str, Any] | None:
        """What came of `hypothesize` as plain data, or None if it was not called. It is a model's guess, no evidence.

        `text`, `cites` (ids of facts), `checks`, `dropped` (how many ids it cited that were not sent), `sent`, `usage`,
        `model`, and `reason`, which says why there is no text.
        """
        saved = self._saved.hypothesis
        return {"id": saved.id, **deepcopy(saved.data)} if saved else None

    @property
    def evidence(self) -> "pd.DataFrame":
        """The facts that were selected, best first: id, kind, label, text, source, reasons."""
        return table_of(self._saved.evidence, ("id", "kind", "label", "text", "source", "reasons"))

    @property
    def paths(self) -> "pd.DataFrame":
        """The paths inside the evidence, short ones first: path (as text), hops, nodes, relations."""
        return table_of(self._saved.paths, ("path", "hops", "nodes", "relations"))

    @property
    def tasks(self) -> "pd.DataFrame":
        """The plan: order, task, status, requires (a relation type), supported_by (relation ids), id."""
        return table_of(self._saved.tasks, ("order", "task", "status", "requires", "supported_by", "id"))

    @property
    def gaps(self) -> "pd.DataFrame":
        """What is missing: gap, stage."""
        return table_of(self._saved.noted("gaps", "gap"), ("gap", "stage"))

    @property
    def warnings(self) -> "pd.DataFrame":
        """What to be careful about: warning, stage."""
        return table_of(self._saved.noted("warnings", "warning"), ("warning", "stage"))

    @property
    def stages(self) -> "pd.DataFrame":
        """The saved records, in order: stage, status, record, position, facts, gaps, warnings."""
        return table_of(self._saved.stages, ("stage", "status", "record", "position", "facts", "gaps", "warnings"))

    # showing

    def to_dict(self) -> dict[str, Any]:
        """Return the investigation as plain data, as `contextmesh ask --json` prints it."""
        saved = self._saved
        names = ("id", "kind", "label", "text", "reasons")
        shown = {
            "question": self.question,
            "answer": self.answer,
            "evidence": [{name: row[name] for name in names} for row in saved.evidence],
            "paths": [{"nodes": row["nodes"], "relations": row["relations"]} for row in saved.paths],
            "tasks": saved.tasks,
            "gaps": [row["gap"] for row in saved.noted("gaps", "gap")],
            "warnings": [row["warning"] for row in saved.noted("warnings", "warning")],
            "decision": self.decision,
            "run": self.run_id,
            **({"hypothesis": self.hypothesis} if self.hypothesis else {}),
        }
        return deepcopy(shown)

    def to_text(self) -> str:
        """Return the investigation as plain text, wrapped at 100 characters."""
        return self._page().to_text()

    def view(self, **settings: Any) -> Any:
        """Return the graph with this investigation's evidence and paths lit up, and the rest greyed.

        Args:
            settings: what `contextmesh.widgets.GraphView` takes, such as `center`, `hops`, `most`.
        """
        from contextmesh.widgets.graphview import GraphView  # noqa: PLC0415 - the one import upward; see workspace.explore

        return GraphView(self.graph, investigation=self, **settings)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": self.to_text(), "text/html": self.to_html()}

    def to_html(self) -> str:
        """Return the investigation as an HTML fragment, every fact escaped; it needs no network and no kernel."""
        return self._page().to_html()

    def _page(self) -> Page:
        saved = self._saved
        return Page(
            question=self.question,
            answer=self.answer,
            is_synthetic=saved.synthetic,
            sections=sections_of(saved),
            hypothesis=told(saved.hypothesis.data) if saved.hypothesis else (),
            run=self.run_id,
            status=self.status,
        )
