"""Investigation: what a run left in the graph, read back by the run's id."""

import re
import textwrap
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tqdm.auto import tqdm

from contextmesh.core.graph import Graph
from contextmesh.core.model import Object
from contextmesh.core.reader import Reader
from contextmesh.core.runtime import Runtime
from contextmesh.errors import RunNotFoundError, UsageError
from contextmesh.investigation.cards import Cards, StageStep
from contextmesh.investigation.guess import HEADING, hypothesize, told
from contextmesh.investigation.hypothesis import TIMEOUT_S, read_settings
from contextmesh.investigation.inputs import SLOW_S
from contextmesh.investigation.records import damage, record_id
from contextmesh.investigation.retrieval import Path, describe, reasons, shown
from contextmesh.investigation.vocabulary import STAGES

if TYPE_CHECKING:
    import pandas as pd


SYNTHETIC = "Synthetic data: invented for teaching, no real people, systems or incidents."
WIDTH = 100
TURNING = re.compile("[\\u202a-\\u202e\\u2066-\\u2069]")
PATHS_SHOWN = 12  # in a page or text, which name how many there are; the table holds all
TEXT_SHOWN = 600  # characters of a fact in a page; the tables hold all of it

PAGE = """
<style>
.cm-inv { font-size: 13px; line-height: 1.45; max-width: 1100px; overflow-wrap: anywhere;
  color: var(--jp-content-font-color1, currentColor); }
.cm-inv .cm-q { font-size: 15px; font-weight: 600; margin: .2em 0 .6em; }
.cm-inv .cm-a { border-left: 4px solid #0072b2; padding: .3em .9em; margin: 0 0 .6em;
  background: var(--jp-layout-color2, rgba(127, 127, 127, .1)); }
.cm-inv .cm-a p { margin: .35em 0; }
.cm-inv .cm-n { border-left: 4px solid #e69f00; padding: .3em .9em; margin: .3em 0; }
.cm-inv .cm-m { color: var(--jp-content-font-color2, gray); }
.cm-inv table { border-collapse: collapse; width: 100%; margin: 0 0 .4em; table-layout: auto; }
.cm-inv table th, .cm-inv table td { text-align: left !important; vertical-align: top; white-space: normal;
  padding: .35em 1em .35em 0; min-width: 7.5em; max-width: none; unicode-bidi: plaintext;
  border-bottom: 1px solid var(--jp-border-color2, rgba(127, 127, 127, .35)); }
.cm-inv table th { font-weight: 600; }
.cm-inv summary { cursor: pointer; font-weight: 600; margin: 1em 0 .3em; }
</style>
<div class="cm-inv">
<div class="cm-q">{{ question }}</div>
<div class="cm-a">{% for line in answer %}<p>{{ line }}</p>{% endfor %}</div>
{% if synthetic %}<div class="cm-n">{{ synthetic }}</div>{% endif %}
{% for table in tables %}
<details open><summary>{{ table.title }}{{ table.count }}</summary>
{% if table.rows %}
<table><thead><tr>{% for name in table.columns %}<th scope="col">{{ name }}</th>{% endfor %}</tr></thead><tbody>
{% for row in table.rows %}
<tr>{% for cell in row %}<td dir="auto">{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody></table>
{% else %}<p class="cm-m">{{ table.empty }}</p>{% endif %}
</details>
{% endfor %}
{% if hypothesis %}
<details open><summary>{{ heading }}</summary>
<div class="cm-n">{% for line in hypothesis %}<p dir="auto">{{ line }}</p>{% endfor %}</div>
</details>
{% endif %}
<p class="cm-m">{{ run }} · {{ status }}</p>
</div>
"""


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
            msg = f"{self.run_id} is not verified: {self.status}; inv.run() runs the rest, then ask for a hypothesis"
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
    def _saved(self) -> "_Saved":
        return _Saved(self._reader, self.run_id)

    @property
    def question(self) -> str:
        """The question as asked."""
        return str(self._row.data["question"])

    @property
    def status(self) -> str:
        """`completed`, or which stage has not run yet or left an unreadable record."""
        for stage in STAGES:
            if stage in self._saved.damaged:
                return f"the {stage}'s record is unreadable: {self._saved.damaged[stage]}"
            if stage not in self._saved.records:
                return f"the {stage} has not run yet"
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
        return _table_of(self._saved.evidence, ("id", "kind", "label", "text", "source", "reasons"))

    @property
    def paths(self) -> "pd.DataFrame":
        """The paths inside the evidence, short ones first: path (as text), hops, nodes, relations."""
        return _table_of(self._saved.paths, ("path", "hops", "nodes", "relations"))

    @property
    def tasks(self) -> "pd.DataFrame":
        """The plan: order, task, status, requires (a relation type), supported_by (relation ids), id."""
        return _table_of(self._saved.tasks, ("order", "task", "status", "requires", "supported_by", "id"))

    @property
    def gaps(self) -> "pd.DataFrame":
        """What is missing: gap, stage."""
        return _table_of(self._saved.noted("gaps", "gap"), ("gap", "stage"))

    @property
    def warnings(self) -> "pd.DataFrame":
        """What to be careful about: warning, stage."""
        return _table_of(self._saved.noted("warnings", "warning"), ("warning", "stage"))

    @property
    def stages(self) -> "pd.DataFrame":
        """The saved records, in order: stage, status, record, position, facts, gaps, warnings."""
        return _table_of(self._saved.stages, ("stage", "status", "record", "position", "facts", "gaps", "warnings"))

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
        lines = [*_wrapped(self.question, ""), "", *_wrapped(self.answer, "  ")]
        if self._saved.synthetic:
            lines += ["", f"  [{SYNTHETIC}]"]
        for table in self._tables():
            lines += ["", f"{table.title}{table.count or f': {table.empty}'}"]
            for row in table.rows:
                lines += _listed(row, table.columns)
        for number, line in enumerate(self._told()):
            lines += ["", HEADING] if number == 0 else []
            lines += _wrapped(line, "  ")
        return visible("\n".join([*lines, "", f"{self.run_id}, {self.status}"]))

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
        import jinja2  # noqa: PLC0415 - a page is seldom what an import is for

        page = jinja2.Environment(autoescape=True, trim_blocks=True).from_string(PAGE)
        return page.render(
            question=self.question,
            answer=self.answer.splitlines(),
            synthetic=SYNTHETIC if self._saved.synthetic else "",
            tables=self._tables(),
            heading=HEADING,
            hypothesis=self._told(),
            run=self.run_id,
            status=self.status,
        ).strip()

    def _told(self) -> list[str]:
        return told(self._saved.hypothesis.data) if self._saved.hypothesis else []

    def _tables(self) -> list["_Table"]:
        saved = self._saved
        return [
            _table("Evidence", saved.evidence, ("label", "text", "reasons", "source", "id"), "nothing matches"),
            _table("Paths", saved.paths, ("path",), "no two facts are connected", most=PATHS_SHOWN),
            _table("Tasks", saved.tasks, ("task", "status", "requires"), "not planned yet"),
            _table("Gaps", saved.noted("gaps", "gap"), ("gap", "stage"), "none"),
            _table("Warnings", saved.noted("warnings", "warning"), ("warning", "stage"), "none"),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """One section of a page or text: what it shows, and how many rows there are in all."""

    title: str
    count: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    empty: str


def _table(title: str, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], empty: str, most: int = 0) -> _Table:
    total = len(rows)
    kept = rows[: most or total]
    count = f" (the first {most} of {total}; inv.{title.lower()} has all)" if len(kept) < total else f" ({total})"
    cells = [[_short(row[name]) for name in columns] for row in kept]
    return _Table(title=title, count=count if total else "", columns=columns, rows=cells, empty=empty)


class _Saved:
    """The records of one run, read once."""

    def __init__(self, reader: Reader, run: str) -> None:
        keys = {stage: record_id(run, stage) for stage in STAGES}
        made = [f"{run}.decision", record_id(run, "hypothesis"), *(f"{run}.task-{n}" for n in (1, 2, 3))]
        rows = reader.get_objects([*keys.values(), *made])
        self.damaged = {stage: what for stage, key in keys.items() if key in rows and (what := damage(rows[key]))}
        self.records = {stage: rows[key] for stage, key in keys.items() if key in rows and stage not in self.damaged}
        self.decision = rows.get(f"{run}.decision")
        self.hypothesis = rows.get(record_id(run, "hypothesis"))
        research = self.records.get("researcher")
        data: Mapping[str, Any] = research.data if research else {}
        self._seeds = {seed["id"]: seed for seed in data.get("seeds", ())}
        self._context: list[str] = data.get("context", [])
        self._relations = reader.get_relations_by_id(data.get("relations", ()))
        self._facts = reader.get_objects(self._context)
        self._labels = {key: shown(row) for key, row in self._facts.items()}
        self.synthetic = any(row.data.get("synthetic") is True for row in self._facts.values())
        self.tasks = [_task(row) for row in rows.values() if row.type == "Task"]
        self.paths = [self._path(path) for path in self._path_rows(data)]
        self.evidence = self._evidence()

    def _path_rows(self, data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Return the paths as last verified, or as found if they were not verified yet."""
        verified = self.records.get("verifier")
        return list(verified.data["paths"] if verified else data.get("paths", ()))

    def _path(self, row: Mapping[str, Any]) -> dict[str, Any]:
        path = Path(nodes=tuple(row["nodes"]), relations=tuple(row["relations"]))
        text = describe(path, self._labels, self._relations)
        return {"path": text, "hops": len(path.relations), "nodes": list(path.nodes), "relations": list(path.relations)}

    def _evidence(self) -> list[dict[str, Any]]:
        why = reasons(self._context, self._seeds, self._relations, self._labels)
        return [_fact(self._facts[key], why[key]) for key in self._context if key in self._facts]

    def noted(self, name: str, column: str) -> list[dict[str, Any]]:
        """Return the stages' gaps or warnings, each once, with the stage that first noted it."""
        found: dict[str, str] = {}
        first = ("verifier",) if name == "warnings" else ()  # its warnings of what competes matter most
        for stage in (*first, *STAGES):
            record = self.records.get(stage)
            for text in record.data[name] if record else ():
                found.setdefault(text, stage)
        return [{column: text, "stage": stage} for text, stage in found.items()]

    @property
    def stages(self) -> list[dict[str, Any]]:
        """Return one row a saved record."""
        return [
            {
                "stage": stage,
                "status": row.data["status"],
                "record": row.id,
                "position": row.data["position"],
                "facts": len(row.data["context"]),
                "gaps": len(row.data["gaps"]),
                "warnings": len(row.data["warnings"]),
            }
            for stage, row in self.records.items()
        ]


def fact_source(row: Object) -> str:
    """Return where a fact comes from and when it was observed, as a reader wants to know it."""
    data = row.data
    file, line, source = data.get("file"), data.get("line"), data.get("source")
    place = f"{file}:{line}" if file and line else str(file or source or "")
    if source == "user_note":
        author = data.get("author")
        place = f"note by {author}, not verified" if author else "user note, not verified"
    moment = _moment(data.get("occurred_at")) or _as_written(data)
    place = f"{place}, at {moment}" if moment and place else place
    return f"{place} (synthetic)" if data.get("synthetic") is True else place


def _as_written(data: Mapping[str, Any]) -> str:
    """Return a source's own time with the zone that the source names, as it was written."""
    written, zone = data.get("time_written"), data.get("zone")
    return f"{written} {zone or '(no zone stated)'}" if isinstance(written, str) and written else ""


def _moment(written: object) -> str:
    """Return a time as written, and in UTC where that reads differently; nothing where none is stated."""
    if not isinstance(written, str):
        return ""
    try:
        moment = datetime.fromisoformat(written)
    except ValueError:
        return written
    if moment.tzinfo is None or moment.utcoffset() == timedelta(0):
        return written
    return f"{written} ({moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC)"


def _fact(row: Object, why: str) -> dict[str, Any]:
    text = row.data.get("text")
    return {
        "id": row.id,
        "kind": row.type,
        "label": shown(row),
        "text": text if isinstance(text, str) else "",
        "source": fact_source(row),
        "reasons": why,
    }


def _task(row: Object) -> dict[str, Any]:
    data = row.data
    names = ("order", "status", "requires", "supported_by")
    return {"id": row.id, "task": data["text"], **{name: data[name] for name in names}}


def frame(rows: Iterable[Sequence[Any]], columns: Sequence[str]) -> "pd.DataFrame":
    """Return rows as a table of these columns."""
    import pandas as pd  # noqa: PLC0415 - importing contextmesh must stay light

    return pd.DataFrame([list(row) for row in rows], columns=list(columns))


def _table_of(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> "pd.DataFrame":
    return frame([[copy(row[name]) for name in columns] for row in rows], columns)


def visible(text: str) -> str:
    """Write control characters as escapes, so that a fact cannot steer the terminal that shows it.

    So are those that turn the direction of writing for all that follows; right-to-left letters stay as they are.
    """
    text = TURNING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return "".join(
        char if char == "\n" or unicodedata.category(char) != "Cc" else f"\\x{ord(char):02x}" for char in text
    )


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > TEXT_SHOWN:
        return f"{value[:TEXT_SHOWN]} … ({len(value):,} characters)"
    return value


def _wrapped(text: str, indent: str) -> list[str]:
    lines = []
    for part in text.splitlines() or [""]:
        lines += textwrap.wrap(part, WIDTH, initial_indent=indent, subsequent_indent=indent) or [""]
    return lines


def _listed(row: Sequence[Any], columns: Sequence[str]) -> list[str]:
    first, *rest = (str(cell) for cell in row)
    lines = textwrap.wrap(first, WIDTH, initial_indent="  • ", subsequent_indent="    ")
    for name, cell in zip(columns[1:], rest, strict=True):
        if cell and cell != first:
            lines += textwrap.wrap(f"{name}: {cell}", WIDTH, initial_indent="      ", subsequent_indent="        ")
    return lines
