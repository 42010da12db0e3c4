"""Cards: one stage of a run as a reader sees it. Trigger, view, record, changes, and the Cypher that ran."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from html import escape
from typing import Any

from contextmesh.core.display import counted
from contextmesh.core.events import Event
from contextmesh.core.model import Object, View
from contextmesh.investigation.trace import Placed, StageTrace, error_name
from contextmesh.investigation.vocabulary import STAGES
from contextmesh.stores.listening import Query

PURPOSE: Mapping[str, str] = {
    "researcher": "Finds facts that match the question and what connects them; saves their ids.",
    "planner": "Reads the researcher's record back and plans three tasks; names what is missing.",
    "executor": "Reads the plan back, reloads its evidence and writes the decision.",
    "verifier": "Reads the decision back, checks its evidence and paths again; flags what competes.",
}
STATES: Mapping[str, str] = {
    "done": "done",
    "next": "next",
    "stopped": "stopped",
    "waiting": "waiting",
    "lost": "done, record removed",
}
# What is in a view under these names, in words.
NAMED: Mapping[str, str] = {"context": "facts", "objects": "facts", "evidence": "facts", "unknown": "words unknown"}
LISTED = 40  # changes named one by one
NO_CYPHER = "not recorded: it is while a stage runs here, and this one ran earlier or elsewhere"
NO_QUERIES = "none: what it needed was known here already, or is not in FalkorDB"
CLAUSES = re.compile(r" (?=(?:MATCH|UNWIND|CALL|WITH|MERGE|CREATE|RETURN|ORDER BY)\b)")

# How a card looks stands in its tags: a notebook that is not trusted loses its style sheets, and a trusted one has some
# of its own. What is left for a sheet are the notebook's colours; elsewhere a card has those around it.
STYLE = """<style>
.cm-card {color: var(--jp-content-font-color1, inherit);}
.cm-card .cm-soft {color: var(--jp-content-font-color2, inherit);}
</style>"""
# Okabe and Ito's hues (https://jfly.uni-koeln.de/color/), each beside a word that says the same.
HUES: Mapping[str, str] = {
    "done": "#009e73",
    "next": "#0072b2",
    "stopped": "#d55e00",
    "waiting": "#85888c",
    "lost": "#d55e00",
}
CARD = (
    "box-sizing: border-box; height: 100%; padding: 10px 14px 8px; font-size: 13px; line-height: 1.45; "
    "text-align: left; overflow-wrap: anywhere; border: 1px solid rgba(128, 128, 128, 0.4); border-radius: 3px; "
    "border-left: 5px solid "
)
HEAD = "display: flex; align-items: baseline; margin: 0; padding: 0; font-size: 15px; font-weight: 600"
STATE = (
    "margin-left: auto; font-size: 12px; font-weight: 600; line-height: 1.5; padding: 0 8px; white-space: nowrap; "
    "border: 1px solid; border-radius: 9px"
)
GRID = "display: grid; grid-template-columns: 5.4em minmax(0, 1fr); gap: 4px 10px; margin: 0; padding: 0"
NAME = "float: none; width: auto; margin: 0; padding: 0; font-weight: 600"
LINE = "float: none; width: auto; margin: 0; padding: 0; unicode-bidi: plaintext"
LIST = "margin: 2px 0 4px; padding: 0 0 0 1.3em"
QUERY = (
    "box-sizing: border-box; margin: 4px 0 6px; padding: 6px 8px; max-height: 220px; overflow: auto; "
    "white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere; text-align: left; font-size: 12px; "
    "line-height: 1.4; background: rgba(128, 128, 128, 0.14); border-radius: 2px; unicode-bidi: plaintext"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One stage of a run, told.

    Args:
        trace: what the log and the graph say of it.
        view: what it saw, if it ran here; the log does not keep views.
        queries: the Cypher that ran, if it ran here.
    """

    trace: StageTrace
    view: View | None = None
    queries: Sequence[Query] | None = None

    @property
    def state(self) -> str:
        """`done`, `next`, `stopped`, `waiting`, or `lost` where the saved record has been removed."""
        return "lost" if self.trace.is_lost else self.trace.state

    def __repr__(self) -> str:
        return f"<Card {self.trace.stage}: {STATES[self.state]}>"

    def _repr_html_(self) -> str:
        return f"{STYLE}{self.to_html()}"

    def rows(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Return what the card says: name -> a line, and what stands behind it."""
        trace = self.trace
        told: dict[str, tuple[str, Sequence[str]]] = {"Trigger": (trigger_of(trace), ())}
        if trace.error:
            told["Stopped"] = (f"{error_name(trace.error)}. Nothing was saved but this failure, in the log.", ())
        if trace.state == "done":
            told["View"] = (self.view_line(), ())
            told["Record"] = (record_of(trace), ())
            told["Changes"] = (changes_of(trace.events), change_lines(trace.events))
        if trace.state == "done" or trace.error:
            told["Cypher"] = (cypher_of(self.queries), query_lines(self.queries or ()))
        return told

    def view_line(self) -> str:
        """Return in words what the stage saw."""
        if self.view is not None:
            return view_of(self.view)
        record = self.trace.record
        if record is None:
            return "not kept: the log keeps what a stage wrote, not what it saw"
        return f"as of position {record.data['position']}: {_contents(record.data)} (by its record)"

    def to_html(self) -> str:
        """Return the card as an HTML fragment, every text escaped; it needs no kernel and no network."""
        stage, state = self.trace.stage, self.state
        number = f"{STAGES.index(stage) + 1}. " if stage in STAGES else ""
        rows = "".join(_row(name, line, behind) for name, (line, behind) in self.rows().items())
        head = f'<h4 style="{HEAD}">{number}{escape(stage.capitalize())} {_state(state)}</h4>'
        purpose = f'<p class="cm-soft" style="margin: 2px 0 8px">{escape(PURPOSE.get(stage, ""))}</p>'
        return f'<div class="cm-card" style="{CARD}{HUES[state]}">{head}{purpose}<dl style="{GRID}">{rows}</dl></div>'


def _state(state: str) -> str:
    return f'<span class="cm-soft" style="{STATE}">{STATES[state]}</span>'


def _row(name: str, line: str, behind: Sequence[str]) -> str:
    weight = "; font-weight: 600" if name == "Stopped" else "; font-weight: normal"
    said = _opening(line, "".join(_behind(name, text) for text in behind), name) if behind else escape(line)
    return f'<dt class="cm-soft" style="{NAME}">{name}</dt><dd style="{LINE}{weight}">{said}</dd>'


def _opening(line: str, inside: str, name: str) -> str:
    more = inside if name == "Cypher" else f'<ul style="{LIST}">{inside}</ul>'
    return f'<details><summary style="cursor: pointer">{escape(line)}</summary>{more}</details>'


def _behind(name: str, text: str) -> str:
    if name == "Cypher":
        return f'<pre style="{QUERY}">{escape(text)}</pre>'
    return f'<li style="margin: 0; unicode-bidi: plaintext">{escape(text)}</li>'


def trigger_of(trace: StageTrace) -> str:
    """Return in words what a stage reacted to, or waits for."""
    if trace.trigger is None:
        return _awaited(trace.stage)
    event = trace.trigger.event
    row = event.payload.get("object")
    what = f"{row['type']} {row['id']}, " if isinstance(row, Mapping) else ""
    return f"{event.type}: {what}position {trace.trigger.position:,}, by {event.actor}"


def _awaited(stage: str) -> str:
    at = STAGES.index(stage) if stage in STAGES else 0
    return f"waits for the {STAGES[at - 1]}'s record" if at else "waits for a question"


def view_of(view: View) -> str:
    """Return in words what a behaviour's view held."""
    parts = [
        *_sized("objects", view.object_rows),
        *_sized("relations", view.relation_rows),
        *_sized("events", view.event_rows),
        *_found(view.hits),
        *_found(view.paths),
    ]
    return f"as of position {view.position:,}: {', '.join(parts) or 'nothing'}"


def _found(value: Any) -> list[str]:
    """Name what a declaration's callable returned: single records by id, the rest by how many."""
    if isinstance(value, Object):
        return [f"{value.type} {value.id}"]
    if is_dataclass(value) and not isinstance(value, type):
        return [text for part in fields(value) for text in _part(part.name, getattr(value, part.name))]
    return _sized("results", value)


def _part(name: str, value: Any) -> list[str]:
    return [f"{name} {value.id}"] if isinstance(value, Object) else _sized(name, value)


def _sized(name: str, value: Any) -> list[str]:
    known = isinstance(value, (Sequence, Mapping)) and not isinstance(value, str) and len(value) > 0
    return [counted(len(value), NAMED.get(name, name))] if known else []


def record_of(trace: StageTrace) -> str:
    """Return in words what record a stage saved."""
    record = trace.record
    if record is None:
        lost = f"{', '.join(trace.saved)} was saved and has been removed since"
        return lost if trace.saved else "none of its own"
    return f"{record.id} ({record.type}): {_contents(record.data)}"


def _contents(data: Mapping[str, Any]) -> str:
    names = {"context": "facts", "relations": "relations", "paths": "paths", "gaps": "gaps", "warnings": "warnings"}
    parts = [counted(len(data[key]), name) for key, name in names.items() if data.get(key)]
    return ", ".join(parts) or "no facts"


def changes_of(events: Sequence[Placed]) -> str:
    """Return in words what a stage changed in the graph."""
    told = Counter(what for placed in events if (what := _kind_of_change(placed.event)))
    if not events:
        return "not in this log: the run was brought here from a branch"
    parts = [f"{sign}{n:,} {name}" for (sign, name), n in sorted(told.items(), key=lambda item: _rank(item[0]))]
    return f"{', '.join(parts)}; positions {events[0].position:,} to {events[-1].position:,}, one commit"


def _rank(change: tuple[str, str]) -> tuple[int, str]:
    sign, name = change
    return ("+-~".index(sign) * 2 + name.isupper(), name)


def _kind_of_change(event: Event) -> tuple[str, str] | None:
    payload = event.payload
    made: dict[str, Callable[[], tuple[str, str]]] = {
        "object.created": lambda: ("+", payload["object"]["type"]),
        "relation.created": lambda: ("+", payload["relation"]["type"]),
        "object.removed": lambda: ("-", payload["type"]),
        "relation.removed": lambda: ("-", payload["type"]),
        "patch.applied": lambda: ("~", f"{payload['object']['type']} changed"),
    }
    return made[event.type]() if event.type in made else None


def change_lines(events: Sequence[Placed]) -> list[str]:
    """Return what a stage changed, one line a change."""
    lines = [f"{placed.position:,}: {line}" for placed in events if (line := _change_line(placed.event))]
    return lines if len(lines) <= LISTED else [*lines[:LISTED], f"and {len(lines) - LISTED:,} more"]


def _change_line(event: Event) -> str:
    payload = event.payload
    if event.type == "relation.created":
        row = payload["relation"]
        return f"{row['source']} -{row['type']}-> {row['target']}"
    if event.type == "patch.applied":
        changed = ", ".join(f"{name} {was['old']!s} → {was['new']!s}" for name, was in sorted(payload["diff"].items()))
        return f"{payload['target']}: {changed}"
    if event.type == "object.created":
        return f"{payload['object']['type']} {payload['id']}"
    return f"{event.type} {payload['id']}" if event.type.endswith(".removed") else ""


def cypher_of(queries: Sequence[Query] | None) -> str:
    """Return in words how much Cypher ran."""
    if queries is None:
        return NO_CYPHER
    if not queries:
        return NO_QUERIES
    wrote = sum(query.writes for query in queries)
    total = "1 query" if len(queries) == 1 else f"{len(queries):,} queries"
    return f"{total}, {wrote or 'none'} of them to write"


def query_lines(queries: Sequence[Query]) -> list[str]:
    """Return the queries in the order in which they were first sent; each with how often, and its parameters."""
    asked: dict[tuple[str, bool], list[Query]] = {}
    for query in queries:
        asked.setdefault((query.text, query.writes), []).append(query)
    return [_query_line(same) for same in asked.values()]


def _query_line(same: Sequence[Query]) -> str:
    first = same[0]
    times = f", {len(same):,} times; the parameters are those of the first" if len(same) > 1 else ""
    head = f"// {'write' if first.writes else 'read'}{times}"
    parameters = [f"// ${name} = {' '.join(value.split())}" for name, value in first.parameters.items()]
    return "\n".join([head, *parameters, CLAUSES.sub("\n", first.text)])
