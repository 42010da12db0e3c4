"""DetailPanel: one object with all that the graph knows of it, and buttons to walk along its relations."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

import ipywidgets as widgets

from contextmesh.core.display import counted
from contextmesh.core.events import to_json
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object, Relation
from contextmesh.errors import EventNotFoundError
from contextmesh.investigation.history import concerns, happened
from contextmesh.investigation.retrieval import shown
from contextmesh.investigation.words import cut, one_line, visible
from contextmesh.investigation.workspace import Workspace
from contextmesh.widgets.buttons import pool
from contextmesh.widgets.panel import Panel, bar, button
from contextmesh.widgets.sight import Facts, graph_of
from contextmesh.widgets.state import State

RELATIONS = 8  # buttons at a time
READ_AT_ONCE = 2000  # events that are searched for an object's history without being asked
LOOKED_UP = 50_000  # events of a log in which one is found by its id without being asked: its first look reads all
HISTORY_ROWS = 20
MAX_VALUE, BUTTON_PX = 4000, 260
NOTHING = "Nothing is selected. Click a node, or press the number of a row in the list."
NOT_THERE = "It is not there: not yet, or no longer. Its history may tell more."

STYLE = """<style>
.cm-facts {font-size: 13px; line-height: 1.45; color: var(--jp-content-font-color1, inherit);}
.cm-facts h4 {font-size: 13px; font-weight: 600; margin: 4px 0 2px;}
.cm-facts p {margin: 0 0 6px; overflow-wrap: anywhere; unicode-bidi: plaintext;
  color: var(--jp-content-font-color2, inherit);}
.cm-facts .cm-scroll {max-height: 300px; overflow: auto;}
.cm-facts table {border-collapse: collapse; width: 100%; margin: 0; background: transparent; font-size: 13px;}
.cm-facts th, .cm-facts td {text-align: left !important; vertical-align: top; padding: 3px 12px 3px 0; max-width: none;
  white-space: pre-wrap; overflow-wrap: anywhere;
  border-bottom: 1px solid var(--jp-border-color2, rgba(128, 128, 128, 0.4));}
.cm-facts th {font-weight: 600;}
.cm-facts .cm-log th:first-child {width: 5em;}
.cm-facts .cm-log thead th, .cm-facts .cm-log td:nth-child(-n+4) {white-space: nowrap;}
.cm-facts tbody th {width: 30%; min-width: 6em; font-weight: 500; color: var(--jp-content-font-color2, inherit);}
</style>"""


class DetailPanel(Panel):
    """Show the selected object: its properties, what it is connected to, where it comes from and its history.

    Each connected relation is a button, which selects the object at its other end.

    Args:
        source: a workspace, or its graph.
        state: what it shares with other views; it shows what is selected there.

    Example:
        >>> graph = Graph()
        >>> api = graph.add_object("Entity", {"label": "Checkout API"}, id="checkout-api")
        >>> details = DetailPanel(graph)
        >>> details.state.selection = "checkout-api"
        >>> details
        <DetailPanel: checkout-api>
        >>> details.close()
    """

    def __init__(self, source: Workspace | Graph, *, state: State | None = None) -> None:
        super().__init__(state)
        self._graph = graph_of(source)
        self._facts: Facts = self._graph
        self._row: Object | None = None
        self._relations: list[Relation] = []
        self._first = 0
        self._walked: list[str] = []
        self._wants_history = False
        self._searched: tuple[str | None, int, bool] = (None, 0, False)
        self._make()
        self.state.bound(self._tip)
        self._select(self.state.selection)

    def _make(self) -> None:
        self._buttons = pool(RELATIONS, self._on_walk, margin="2px 0")
        self.back, self.more, self.read_history = (
            button("Back", "Select what was selected before", self._on_back),
            button("More relations", "Show the next relations", self._on_more),
            button("Read the history", "Search the log for this object", self._on_history),
        )
        self._properties, self._count, self._provenance, self._history = (widgets.HTML() for _ in range(4))
        self._connected = widgets.VBox()
        columns = (
            [self._properties],
            [self._count, self._connected, bar(self.more, self.back)],
            [self._provenance],
        )
        beside = [widgets.VBox(column, layout=widgets.Layout(flex="1 1 280px", min_width="0")) for column in columns]
        above = widgets.HBox(beside, layout=widgets.Layout(flex_flow="row wrap", grid_gap="4px 24px"))
        self._body = widgets.VBox([above, self.read_history, self._history])
        self.children = [self._heading, self._body, self.status]

    def __repr__(self) -> str:
        return f"<DetailPanel: {self.state.selection or 'nothing selected'}>"

    @property
    def relations(self) -> list[Relation]:
        """The relations of the selected object, in the order of their buttons."""
        return list(self._relations)

    def read(self, facts: Facts) -> None:
        """Show the selected object as it is elsewhere, such as in the graph as it was."""
        self._facts = facts
        self.refresh()

    def of(self, source: Workspace | Graph) -> None:
        """Show the objects of another graph, such as a branch."""
        self._graph = self._facts = graph_of(source)
        self._searched = (None, 0, False)
        self.refresh()

    def refresh(self) -> None:
        """Read the selected object again and show it."""
        self._show(self.state.selection)

    def _select(self, object_id: str | None) -> None:
        if object_id is not None and self._walked[-1:] != [object_id]:
            self._walked.append(object_id)
        self._first, self._wants_history = 0, False
        self._show(object_id)

    def _show(self, object_id: str | None) -> None:
        self._row = None if object_id is None else self._facts.get_objects([object_id]).get(object_id)
        self._relations = [] if self._row is None else sorted(self._facts.get_relations(self._row.id), key=self._order)
        self._body.layout.display = "none" if object_id is None else ""
        self._properties.value = STYLE + self._told_properties()
        self._show_relations()
        self._provenance.value = self._told_provenance()
        self._show_history(object_id)
        self._title(object_id)

    def _title(self, object_id: str | None) -> None:
        if object_id is None:
            self._head("Details", NOTHING)
        elif self._row is None:
            self._head(one_line(object_id, 200), NOT_THERE)
        else:
            said = f"{self._row.type} · {visible(self._row.id)} · version {self._row.version}"
            self._head(one_line(shown(self._row), 200), said)

    def _tip(self) -> int:
        """Return where the log ends that the object's history is in."""
        return len(self._graph.events)

    # properties

    def _told_properties(self) -> str:
        if self._row is None:
            return ""
        rows = [(visible(name), _value(value)) for name, value in _flat(self._row.data)]
        return _section("Properties", f'<div class="cm-scroll">{_table(rows)}</div>' if rows else "<p>none</p>")

    # relations

    def _order(self, relation: Relation) -> tuple[bool, str, str, str]:
        out = self._row is not None and relation.source == self._row.id
        return not out, relation.type, relation.target if out else relation.source, relation.id

    def _other(self, relation: Relation) -> tuple[str, str]:
        """Return the relation as it is seen from the selected object, and the id at its other end."""
        out = self._row is not None and relation.source == self._row.id
        return f"{relation.type} {'→' if out else '←'}", relation.target if out else relation.source

    def _page(self) -> list[Relation]:
        return self._relations[self._first : self._first + RELATIONS]

    def _show_relations(self) -> None:
        page = self._page()
        ends = self._facts.get_objects([self._other(row)[1] for row in page]) if page else {}
        for row, walk in zip(page, self._buttons, strict=False):
            way, key = self._other(row)
            name = shown(ends[key]) if key in ends else f"{key} (not there)"
            with walk.hold_sync():
                walk.description = cut(f"{way} {one_line(name, 200)}", BUTTON_PX, 13)
                walk.tooltip = f"Select {one_line(name, 200)}, {ends[key].type if key in ends else 'no object'}"
        self._connected.children = self._buttons[: len(page)]
        total = len(self._relations)
        which = f", {self._first + 1:,} to {self._first + len(page):,}" if total > RELATIONS else ""
        count = counted(total, "connected relations") + which if self._row else ""
        self._count.value = _section(count, "") if count else ""
        self.more.layout.display = "" if total > RELATIONS else "none"
        self.back.layout.display = "" if len(self._walked) > 1 else "none"

    def _on_walk(self, at: int) -> None:
        with self.status.catching("walking along"):
            page = self._page()
            if at < len(page):
                self.state.selection = self._other(page[at])[1]

    def _on_more(self, _button: Any) -> None:
        with self.status.catching("more relations"):
            later = self._first + RELATIONS
            self._first = later if later < len(self._relations) else 0
            self._show_relations()

    def _on_back(self, _button: Any) -> None:
        with self.status.catching("going back"):
            if len(self._walked) > 1:
                self._walked.pop()
                self.state.selection = self._walked[-1]

    # where it comes from

    def _told_provenance(self) -> str:
        if self._row is None:
            return ""
        provenance = self._row.provenance
        rows = [(name, value) for name, value in self._stated(provenance) if value]
        return _section("Provenance", _table(rows) if rows else "<p>not recorded</p>")

    def _stated(self, provenance: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        created, updated = provenance.get("created_by"), provenance.get("updated_by")
        yield "created by", self._event(created)
        yield "last changed by", self._event(updated) if updated != created else ""
        yield "actor", visible(str(provenance.get("actor") or ""))
        yield "evidence", visible(", ".join(map(str, provenance.get("evidence") or ())))

    def _event(self, event_id: object) -> str:
        """Return what an event was, and where it stands in the log."""
        if not isinstance(event_id, str) or not event_id:
            return ""
        if not self._wants_history and len(self._graph.events) > LOOKED_UP:
            return f"{visible(event_id)}; reading the history tells more"
        log = self._graph.log
        try:
            event, position = log.get_event(event_id), log.position_of(event_id)
        except EventNotFoundError:
            return visible(event_id)
        return f"{visible(event.type)} by {visible(event.actor)}, position {position:,}, {_moment(event.timestamp)}"

    # history

    def _show_history(self, object_id: str | None) -> None:
        size = len(self._graph.events) if object_id is not None else 0
        wanted = object_id is not None and (self._wants_history or size <= READ_AT_ONCE)
        if (object_id, size, wanted) != self._searched:  # else it is there already: only the time that is shown changed
            self._searched = object_id, size, wanted
            self._history.value = self._told_history(object_id) if wanted and object_id is not None else ""
        self.read_history.description = f"Read the history ({size:,} events)"
        self.read_history.layout.display = "none" if wanted or object_id is None else ""

    def _on_history(self, _button: Any) -> None:
        with self.status.catching("reading the history"):
            self._wants_history = True
            self._provenance.value = self._told_provenance()
            self._show_history(self.state.selection)

    def _told_history(self, object_id: str) -> str:
        found = [
            happened(position, event, object_id)
            for position, event in enumerate(self._graph.events, 1)
            if concerns(event, object_id)
        ]
        names = ("position", "time (UTC)", "event", "actor", "text")
        rows = [
            (f"{position:,}", _moment(time), event, actor, _value(why or text))
            for position, time, event, actor, _version, text, why in found[-HISTORY_ROWS:][::-1]
        ]
        count = f"the newest {HISTORY_ROWS} of {len(found):,} events" if len(found) > HISTORY_ROWS else "newest first"
        return _section(f"History, {count}", f'<div class="cm-scroll cm-log">{_table(rows, names)}</div>')

    def close(self) -> None:
        """Take the panel off the screen and free what it holds in the browser; closing twice is fine."""
        if hasattr(self, "_body") and self.comm is not None:
            self.state.unbound(self._tip)
            self._connected.children = self._buttons  # those that no relation needs now are parts of it, too
        super().close()

    # without a kernel

    def to_html(self) -> str:
        """Return the selected object as an HTML fragment, every text escaped; it needs no kernel and no network."""
        parts = [self._heading.value, self._properties.value, self._still_relations()]
        parts += [self._provenance.value, self._history.value]
        return "".join(parts if self.state.selection is not None else parts[:1])

    def _still_relations(self) -> str:
        kept = self._relations[:READ_AT_ONCE]
        ends = self._facts.get_objects([self._other(row)[1] for row in kept]) if kept else {}
        rows = []
        for row in kept:
            way, key = self._other(row)
            rows.append((way, one_line(shown(ends[key]) if key in ends else key, 200)))
        return _section(counted(len(self._relations), "connected relations"), _table(rows)) if rows else ""


def _flat(data: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object's data, those of mappings inside it by their dotted paths."""
    for name, value in data.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _value(value: object) -> str:
    """Return a value of JSON as a reader sees it, in full up to 4,000 characters."""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        told = ", ".join(value)
    else:
        told = value if isinstance(value, str) else to_json(value)
    told = visible(told[:MAX_VALUE])
    return told if len(told) < MAX_VALUE else f"{told} …"


def _moment(timestamp: str) -> str:
    return timestamp[:19].replace("T", " ")


def _section(title: str, body: str) -> str:
    return f'<div class="cm-facts"><h4>{escape(title)}</h4>{body}</div>'


def _table(rows: Sequence[Sequence[str]], names: Sequence[str] = ()) -> str:
    """Return rows as a table, the first cell of each as its header; every text escaped."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    lines = []
    for first, *rest in rows:
        cells = "".join(f'<td dir="auto">{escape(text)}</td>' for text in rest)
        lines.append(f'<tr><th scope="row" dir="auto">{escape(first)}</th>{cells}</tr>')
    return f"<table>{f'<thead><tr>{head}</tr></thead>' if names else ''}<tbody>{''.join(lines)}</tbody></table>"
