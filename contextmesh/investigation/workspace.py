"""Workspace: what a user types. It is one named graph memory in FalkorDB, or one of its branches."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast, overload

from tqdm.auto import tqdm

from contextmesh.core.branches import fork, position_at, snapshot
from contextmesh.core.diff import Diff, diff
from contextmesh.core.events import to_timestamp
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object
from contextmesh.core.plan import PromotePlan
from contextmesh.core.promote import PromoteResult, promote
from contextmesh.core.runtime import Runtime
from contextmesh.errors import NotFoundError, ReadOnlyError, UsageError
from contextmesh.investigation import portable
from contextmesh.investigation.embedding import Embedder, Semantics, local_embedder
from contextmesh.investigation.explain import Explanation, explain
from contextmesh.investigation.facts import MAX_ID, Fact, Link, Reading, Report, digest, relation_id
from contextmesh.investigation.graphs import open_branch, shown_progress
from contextmesh.investigation.history import about, concerns, happened
from contextmesh.investigation.inputs import (
    SLOW_S,
    WORKSPACE,
    check_hops,
    check_limit,
    check_text,
    label_of,
    moment,
    own_id,
)
from contextmesh.investigation.intake import FACT_KINDS, ingest, mention, persist
from contextmesh.investigation.paths import describe, paths_between
from contextmesh.investigation.records import agent_id
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.retrieval import check_question, needed, ranking, shown
from contextmesh.investigation.search import Mode, Search
from contextmesh.investigation.session import Session
from contextmesh.investigation.sources import fact_source
from contextmesh.investigation.stages.executor import executor
from contextmesh.investigation.stages.planner import planner
from contextmesh.investigation.stages.researcher import researcher
from contextmesh.investigation.stages.verifier import verifier
from contextmesh.investigation.tables import frame
from contextmesh.investigation.vocabulary import DEFAULT, STAGES, Vocabulary

if TYPE_CHECKING:
    import pandas as pd

    from contextmesh.stores.falkordb import FalkorDBGraphStore
    from contextmesh.stores.server import Server

BY_HAND = "stated by hand"


class Workspace:
    """One named graph memory: notes, facts and investigations that outlast any conversation.

    Get one from `contextmesh.open`. It is a context manager; leaving it closes it.

    Args:
        server: the open FalkorDB that holds it.
        graph: its graph, or the graph of one of its branches.
        name: its name.
        vocabulary: the kinds, relations and bounds to use.
        title: what its repr says besides: a branch, or a moment.
        embedder: makes vectors of texts, so that a question also finds what shares no word with it; see `embed`.
    """

    def __init__(
        self,
        server: "Server",
        graph: Graph,
        name: str,
        *,
        vocabulary: Vocabulary = DEFAULT,
        title: str = "",
        embedder: Embedder | None = None,
    ) -> None:
        self.name = name
        self.vocabulary = vocabulary
        self.graph = graph
        self._server = server
        self._title = title
        self.similar = Semantics(graph, embedder) if embedder else None
        self._embedder = embedder
        self._opened = ExitStack()  # what closing it closes: looks into the past, and its server
        if not graph.read_only:
            self._begin()

    def __repr__(self) -> str:
        # What is known here, without asking a server that may be gone.
        return f"<Workspace {self.name!r}{self._title}: {self.graph!r}{self._lag}, {self._server.describe()}>"

    @cached_property
    def _lag(self) -> str:
        """How far the graph of a read-only connection is behind its log."""
        if not self.graph.read_only:
            return ""
        try:
            behind = self.graph.log.tip() - self.graph.position
        except ReadOnlyError:
            return ", read-only, its log is not readable here"
        return f", read-only, {behind} events behind its log" if behind else ", read-only"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def own(self, opened: ExitStack) -> None:
        """Close this, too, when the workspace is closed, after whatever is opened from it."""
        self._opened.push(opened)

    def close(self) -> None:
        """Close the workspace; the last one to use an embedded server stops it. Closing twice is fine.

        Its sinks get what they have not got yet, and what was opened from it, its branches and looks into the past,
        is closed with it.
        """
        self.graph.close_sinks()
        self._opened.close()

    def _begin(self) -> None:
        """Create the workspace's own record and its four agents, if it is new."""
        if self.graph.get_object(WORKSPACE):
            return
        persist(self.graph, self._create)

    def _create(self) -> None:
        if self.graph.get_object(WORKSPACE) is None:  # else another process has just done the same
            with self.graph.batch() as graph:
                graph.add_object("Workspace", {"label": self.name}, id=WORKSPACE)
                for stage in STAGES:
                    graph.add_object("Agent", {"label": stage.capitalize()}, id=agent_id(stage))

    # writing

    def session(self, label: str) -> Session:
        """Return the session of this label; it is saved with its first note or question.

        Args:
            label: 1 to 200 characters, such as `Monday night`; spaces around it do not count.
        """
        return Session(self, label)

    def revise(self, memory_id: str, text: str, *, author: str | None = None) -> Object:
        """Change a note's text; the previous text is kept as Evidence with its revision number.

        Args:
            memory_id: the note, as `note` returned it or `search` lists it.
            text: what it should say now.
            author: who says so.

        Returns:
            The note as it is now; `data['revision']` counts its texts from 1.

        Raises:
            NotFoundError: no memory of this id.
            UsageError: an empty text.
        """
        check_text(text, "note's text")
        old = needed(self.graph.get_object(memory_id), memory_id, self._place())
        if old.type != "Memory":
            msg = f"{memory_id!r} is a {old.type}; only a Memory can be revised"
            raise UsageError(msg)
        if old.data.get("text") == text:
            return old
        number = int(old.data.get("revision") or 1)
        earlier = {
            "label": f"Revision {number} of: {shown(old)}",
            "text": old.data.get("text"),
            "evidence_type": "revision",
            "revision": number,
            "memory": old.id,
            "superseded": True,
            "source": old.data.get("source"),
        }
        updates = {"text": text, "label": label_of(text), "revision": number + 1}
        with self.graph.batch() as graph:
            key = graph.add_object("Evidence", earlier, id=_revision_id(old.id, number), actor=author or "user").id
            graph.add_relation(key, old.id, "RELATES_TO", id=relation_id(key, "RELATES_TO", old.id))
            graph.patch_object(
                old.id,
                updates,
                actor=author or "user",
                rationale=f"revision {number + 1}",
                evidence=[key],
                expected_version=old.version,
            )
            self._mention(old.id, text)
        return needed(self.graph.get_object(memory_id), memory_id, self._place())

    def _mention(self, memory_id: str, text: str) -> None:
        mention(self.graph, memory_id, text)

    def fact(
        self,
        id: str,
        label: str,
        text: str = "",
        *,
        entity_type: str | None = None,
        kind: str = "Entity",
        **data: Any,
    ) -> Object:
        """State a fact of your own and return it; stating it again with other words changes it.

        Notes that name its label or one of its aliases are linked to it, also those taken earlier.

        Args:
            id: its id, such as `badge-gateway`.
            label: what people call it.
            text: what there is to say about it.
            entity_type: for an Entity: `system`, `person`, `team`, `change`, `incident`, `lesson`, `action_item`, ...
            kind: `Entity` or `Evidence`.
            data: further fields, such as `aliases=["gateway"]` or
                `asserts=[{"subject": ..., "attribute": "owner", "value": ...}]`.

        Raises:
            InvalidNameError: an id or kind outside its pattern.
            UsageError: a kind that is no fact, or an id that belongs to another kind.
        """
        if kind not in FACT_KINDS:
            msg = f"a fact of kind {kind!r}; expected one of {', '.join(FACT_KINDS)}"
            raise UsageError(msg)
        present = self.graph.get_object(own_id(id))
        if present and (present.type != kind or present.data.get("source") != BY_HAND):
            owner = fact_source(present) or "contextmesh itself"
            msg = f"{id!r} is a {present.type} already, of {owner}; choose another id"
            raise UsageError(msg)
        fields = {"label": label, "text": text, "source": BY_HAND, "entity_type": entity_type, **data}
        stated = {name: value for name, value in fields.items() if value is not None}
        self.ingest([Reading(facts=(Fact(id=id, kind=kind, data=stated),), links=(), skipped=(), source="")])
        return needed(self.graph.get_object(id), id, self._place())

    def relate(self, source: str, type: str, target: str) -> None:
        """State a relation between two objects, such as `ws.relate("chg-77", "AFFECTS", "badge-gateway")`.

        Stating it again changes nothing.

        Raises:
            InvalidNameError: a relation type that the vocabulary does not know.
            NotFoundError: one of the two does not exist.
        """
        for key in (source, target):
            needed(self.graph.get_object(key), key, self._place())
        link = Link(source=source, type=self.vocabulary.check_relation(type), target=target)
        self.ingest([Reading(facts=(), links=(link,), skipped=(), source="")])

    def ingest(self, readings: Iterable[Reading]) -> Report:
        """Bring the workspace in step with what importers read; each reading is one batch.

        A fact that its source no longer holds becomes `withdrawn`. Ingesting the same again changes nothing.

        Args:
            readings: what was read, one for each source.

        Returns:
            How many facts were added, changed and unchanged, and what was skipped, by file and line.
        """
        return ingest(self.graph, self.vocabulary, readings)

    @property
    def load(self) -> "Loader":
        """Read real files: `ws.load.postmortems(paths)`."""
        return Loader(self)

    # reading

    @property
    def _store(self) -> "FalkorDBGraphStore":
        return cast("FalkorDBGraphStore", self.graph.store)  # a workspace's graph is always there

    def _place(self) -> str:
        return f"workspace {self.name!r} at position {self.graph.position}"

    def search(self, text: str, *, limit: int = 20) -> "pd.DataFrame":
        """Return the notes and facts whose words match, best first: id, kind, label, text, source, score, terms.

        Args:
            text: some words; those that stand in few facts weigh most.
            limit: rows at most, from 1.
        """
        check_limit(limit)
        if not isinstance(text, str):
            msg = f"search got a {type(text).__name__}; expected text"
            raise UsageError(msg)
        bounds = replace(self.vocabulary.bounds, common=1.0)  # whoever searches for a common word wants to see it
        all_words = replace(self.vocabulary, bounds=bounds)
        sought = Search(text, self.graph, all_words, mode="words", similar=self.similar, limit=limit)
        hits = ranking(sought)[:limit]
        rows = self.graph.get_objects([hit.id for hit in hits])
        found = [(*_listed(rows[hit.id]), hit.score, list(hit.terms)) for hit in hits if hit.id in rows]
        return frame(found, ("id", "kind", "label", "text", "source", "score", "terms"))

    def explain(self, question: str, *, mode: Mode = "full") -> Explanation:
        """Show how a question ranks the facts: every one that it found, and what each score is the sum of.

        Nothing is saved. The result shows itself as a figure and a table; `.table` is the whole ranking.

        Args:
            question: at most 2,000 characters.
            mode: `full` as investigations rank; `words` by BM25 alone; `terms` by how many and how rare the terms are.

        Raises:
            UsageError: an empty or overlong question, or another mode.
        """
        asked = check_question(question, self.vocabulary)
        return explain(Search(asked, self.graph, self.vocabulary, mode=mode, similar=self.similar))

    def embed(self, embedder: Embedder | None = None) -> int:
        """Let questions also find what shares no word with them, and return how many facts got a vector for that.

        From then on this workspace's questions use the embedder; pass it to `open` to have it from the start. Later
        facts get their vectors in batches when a question needs them.

        Args:
            embedder: any callable, texts -> float32 array of shape (n, d); by default the model of the extra
                `contextmesh[semantic]`. Without the extra nothing changes, which is said once.

        Raises:
            UsageError: the extra's model is not on this disk, or the embedder returned something else.
        """
        chosen = embedder or local_embedder()
        if chosen is None:
            return 0
        self._embedder, self.similar = chosen, Semantics(self.graph, chosen)
        with shown_progress("embedding", "fact") as progress:
            return self.similar.catch_up(progress)

    def paths(self, source: str, target: str, *, hops: int = 3, limit: int = 20) -> "pd.DataFrame":
        """Return how two facts are connected, shortest first: path (as text), hops, nodes, relations.

        Only semantic relations are walked, in either direction, and only through notes, evidence and entities.
        A path shows that two things are connected, not that one caused the other.

        Args:
            source: id of one object.
            target: id of the other.
            hops: relations in one path at most, 1 to 10.
            limit: paths at most, from 1.

        Raises:
            NotFoundError: there is no such object.
            UsageError: hops outside 1 to 10, or a limit below 1.
        """
        check_hops(hops, 1)
        check_limit(limit)
        for key in (source, target):
            needed(self.graph.get_object(key), key, self._place())
        found = paths_between(source, target, self.graph, self.vocabulary, hops=hops, limit=limit)
        objects = self.graph.get_objects({key for path in found for key in path.nodes})
        labels = {key: shown(row) for key, row in objects.items()}
        relations = self.graph.get_relations_by_id({key for path in found for key in path.relations})
        rows = [
            (describe(path, labels, relations), len(path.relations), list(path.nodes), list(path.relations))
            for path in found
        ]
        return frame(rows, ("path", "hops", "nodes", "relations"))

    def neighborhood(self, object_id: str, *, hops: int = 1, limit: int = 100) -> "pd.DataFrame":
        """Return what lies within some hops of an object, nearest first: id, kind, label, text, source, hops.

        Every relation is walked, sessions and runs included.

        Args:
            object_id: where to start.
            hops: relations to walk at most, 0 to 10.
            limit: rows at most, and relations looked at from one object, from 1.

        Raises:
            NotFoundError: there is no such object.
            UsageError: hops outside 0 to 10, or a limit below 1.
        """
        check_hops(hops, 0)
        check_limit(limit)
        needed(self.graph.get_object(object_id), object_id, self._place())
        distance = {object_id: 0}
        frontier = {object_id}
        kinds = self.vocabulary.kinds
        for hop in range(1, hops + 1):
            rows = self.graph.expand(frontier, tuple(self.vocabulary.relations), kinds, (), limit)
            frontier = {end for row in rows for end in (row.source, row.target)} - distance.keys()
            distance |= dict.fromkeys(sorted(frontier)[: max(0, limit - len(distance))], hop)
            if not frontier or len(distance) >= limit:
                break
        objects = self.graph.get_objects(distance.keys())
        found = [(*_listed(objects[key]), hop) for key, hop in distance.items() if key in objects]
        return frame(found, ("id", "kind", "label", "text", "source", "hops"))

    def table(self, kind: str) -> "pd.DataFrame":
        """Return every object of a kind, ordered by id: id, label, version, then its data's fields by name.

        Args:
            kind: such as `Entity`, `Memory` or `Run`.
        """
        rows = self.graph.objects(self.vocabulary.check_kind(kind))
        fields = sorted({name for row in rows for name in row.data} - {"id", "label", "version"})
        found = [(row.id, shown(row), row.version, *(row.data.get(name) for name in fields)) for row in rows]
        return frame(found, ("id", "label", "version", *fields))

    def cypher(
        self, query: str, parameters: Mapping[str, Any] | None = None, *, timeout_ms: int = 60_000
    ) -> "pd.DataFrame":
        """Run a read-only Cypher query and return its rows, one column for each returned name.

        Args:
            query: Cypher; a write is refused by the server.
            parameters: plain values for `$name`; pass facts here, never inside the query's text.
            timeout_ms: give up after this long.

        Raises:
            QueryError: FalkorDB refused the query, or gave up on it.
        """
        columns, rows = self._store.cypher(query, parameters, timeout_ms)
        return frame(rows, columns)

    def history(self, object_id: str) -> "pd.DataFrame":
        """Return what happened to an object, oldest first: position, time, event, actor, version, text, rationale.

        Args:
            object_id: any object's id; also one that has been removed.

        Raises:
            NotFoundError: the log never mentions this object.
        """
        events = tqdm(self.graph.events, desc="reading the log", unit="event", delay=SLOW_S, leave=False)
        rows = [
            happened(position, event, object_id)
            for position, event in enumerate(events, 1)
            if concerns(event, object_id)
        ]
        if not rows:
            needed(None, object_id, self._place())
        table = frame(rows, ("position", "time", "event", "actor", "version", "text", "rationale"))
        return table.astype({"version": "Int64"})

    def log(self, *, after: int = 0, limit: int = 100) -> "pd.DataFrame":
        """Return events after a position, oldest first: position, time, type, actor, about, frame, id.

        Args:
            after: log position to start after, from 0.
            limit: rows at most, from 1.
        """
        check_limit(limit)
        if after < 0:
            msg = f"after is {after}; expected a log position from 0"
            raise UsageError(msg)
        events = self.graph.events[after : after + limit]
        rows = [
            (position, event.timestamp, event.type, event.actor, about(event), event.frame_id, event.id)
            for position, event in enumerate(events, after + 1)
        ]
        return frame(rows, ("position", "time", "type", "actor", "about", "frame", "id"))

    # runs

    def investigation(self, run_id: str) -> Investigation:
        """Return a run as it stands in the graph, complete or not.

        Args:
            run_id: such as `Run#7`.

        Raises:
            RunNotFoundError: there is no run of this id.
        """
        return Investigation(self.graph, run_id, self._runtime, f"workspace {self.name!r}")

    def resume(self, run_id: str) -> Investigation:
        """Run what an interrupted run has left to do, a failed stage included, and return it.

        Args:
            run_id: such as `Run#7`.

        Raises:
            RunNotFoundError: there is no run of this id.
            HandoffError: a record that a stage should read is gone or unreadable.
        """
        return self.investigation(run_id).run(retry=True)

    def _runtime(self, after: int) -> Runtime:
        first = researcher(self.vocabulary, self.similar) if self.similar else researcher(self.vocabulary)
        return Runtime(self.graph, [first, planner, executor, verifier(self.vocabulary)], after=after)

    # branches and earlier moments

    def fork(self, label: str | None = None, *, at: str | int | None = None) -> "Workspace":
        """Return a branch: a workspace that shares this one's events up to now, or to one of them, and then its own.

        Args:
            label: what to call it, such as `not the TTL`; its name is the label's unique slug.
            at: id or position of the last event to share; by default the newest.

        Raises:
            EventNotFoundError: the log holds no such event.
        """
        return self._branched(fork(self.graph, at, label))

    def branch(self, name: str) -> "Workspace":
        """Return one of the `branches`, open; NotFoundError if there is none of this name."""
        return self._branched(open_branch(self.graph, self._store, name))

    def _branched(self, graph: Graph) -> "Workspace":
        title = f", branch {graph.log.branch_name!r}"
        made = Workspace(
            self._server, graph, self.name, vocabulary=self.vocabulary, title=title, embedder=self._embedder
        )
        self._opened.push(made)
        return made

    def branches(self) -> "pd.DataFrame":
        """Return the branches by name: branch, label, parent, forked_after, events, created_at.

        `parent` is empty for a branch of the workspace itself; `events` counts its own.
        """
        rows = []
        for row in self.graph.log.branches():
            with suppress(NotFoundError):  # another process has just dropped it
                events = self.graph.log.branch(row.name).tip() - row.position
                rows.append((row.name, row.label, row.parent, row.position, events, row.created_at))
        return frame(rows, ("branch", "label", "parent", "forked_after", "events", "created_at"))

    def drop_branch(self, name: str) -> None:
        """Erase a branch with all that only it holds. Its name is not used again.

        Raises:
            NotFoundError: there is no branch of this name.
            UsageError: other branches were forked from it.
        """
        self.graph.check_writable()
        self.graph.log.drop_branch(name)
        self.graph.store.drop_branch(name)

    def diff(self, other: "Workspace | str") -> Diff:
        """Return how a branch differs from this workspace, taken as the parent.

        Args:
            other: the branch, or its name.

        Raises:
            IncompatibleRuntimeState: it is no branch of this workspace.
        """
        return diff(self.graph, self._graph_of(other))

    @overload
    def promote(self, fork: "Workspace | str", *, dry_run: Literal[False] = False) -> PromoteResult: ...
    @overload
    def promote(self, fork: "Workspace | str", *, dry_run: Literal[True]) -> PromotePlan: ...
    def promote(self, fork: "Workspace | str", *, dry_run: bool = False) -> PromotePlan | PromoteResult:
        """Bring what changed in a branch into this workspace: all of it, as one commit, or nothing.

        Args:
            fork: the branch, or its name; it stays, and can be worked on and promoted again.
            dry_run: return the plan and change nothing.

        Raises:
            PromoteLineageError: it was not forked from this workspace.
            PromoteConflictError: something stands against it; nothing was changed.
        """
        return promote(self.graph, self._graph_of(fork), dry_run=dry_run)

    def _graph_of(self, other: "Workspace | str") -> Graph:
        if not isinstance(other, (str, Workspace)):
            msg = f"expected a branch or its name, got a {other.__class__.__name__}"
            raise UsageError(msg)
        return open_branch(self.graph, self._store, other) if isinstance(other, str) else other.graph

    def at(self, *, position: int | None = None, time: datetime | str | None = None) -> "Workspace":
        """Return the workspace as it was, read-only; leaving or closing it removes it again.

        Args:
            position: a log position, from 0.
            time: a moment with its zone, such as `2026-11-30T14:05Z`; what was committed up to then is shown. It is
                when a fact was recorded that counts, not when it happened.

        Raises:
            UsageError: neither or both are given, or the time lacks a zone.
            EventNotFoundError: the log does not reach to that position.
        """
        if (position is None) == (time is None):
            msg = "expected either a position or a time"
            raise UsageError(msg)
        if position is None:
            position = position_at(self.graph.log, _timestamp(time))
        graph = snapshot(self.graph, position)
        title = f" at position {position}"
        made = Workspace(
            self._server, graph, self.name, vocabulary=self.vocabulary, title=title, embedder=self._embedder
        )
        made._opened.callback(graph.store.close)
        self._opened.push(made)
        return made

    # keeping

    def explore(self, **settings: Any) -> Any:
        """Return a view of the workspace: graph in 3D, list, questions, evidence, notes, history.

        Args:
            settings: what `contextmesh.widgets.Explorer` takes, such as `investigation`, `session`, `most`.
        """
        from contextmesh.widgets.explorer import Explorer  # noqa: PLC0415 - the one import upward; widgets are seldom asked for

        return Explorer(self, **settings)

    def export(self, path: str | Path) -> int:
        """Write the whole log as JSON lines and return the number of events; the file appears complete or not at all.

        Args:
            path: the file to write; an ordinary file there is replaced.

        Raises:
            UsageError: the folder does not exist.
        """
        return portable.write_export(self.graph.log, self.name, Path(path))

    def rebuild(self) -> int:
        """Replay the log into a fresh graph, swap it in, and return the position that it stands at."""
        with shown_progress("rebuilding") as progress:
            return self.graph.rebuild(progress)

    def doctor(self) -> dict[str, Any]:
        """Check server, log and graph, remove what an interrupted rebuild left behind, and report.

        Returns:
            server, versions, durability, log_position, graph_position, healthy, problems, removed.
        """
        from contextmesh.stores.keyspace import leftovers, remove_leftover  # noqa: PLC0415

        removed = leftovers(self._server, self.name)
        for key in removed:
            remove_leftover(self._server, key)
        log_position, graph_position = self.graph.log.tip(), self.graph.position
        problems = self._server.health()
        if log_position != graph_position:
            problems.append(f"the graph stands at {graph_position}, the log at {log_position}; run rebuild")
        return {
            "server": self._server.describe(),
            "versions": self._server.versions(),
            "durability": self._server.durability,
            "log_position": log_position,
            "graph_position": graph_position,
            "healthy": not problems,
            "problems": problems,
            "removed": removed,
        }


class Loader:
    """Read real files into a workspace: one method a format. Loading the same files again changes nothing."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def postmortems(self, paths: str | Path | Iterable[str | Path]) -> Report:
        """Read Markdown postmortems: files, or folders of them.

        Args:
            paths: one path or several; of a folder, its Markdown files and those without an ending.

        Returns:
            How many facts were added, changed and unchanged, and what was skipped, by file and line.

        Raises:
            ImportFileError: a file cannot be read at all; nothing was written.
        """
        from contextmesh.importers.postmortems import read_postmortems  # noqa: PLC0415 - an upward convenience

        several = [paths] if isinstance(paths, (str, Path)) else list(paths)
        return self._workspace.ingest(read_postmortems(several))


def _timestamp(time: datetime | str | None) -> str:
    try:
        return to_timestamp(datetime.fromisoformat(str(moment(time))))
    except OverflowError:
        msg = f"the time {time!s} is outside the years 1 to 9999 in UTC; expected one within"
        raise UsageError(msg) from None


def _revision_id(memory_id: str, number: int) -> str:
    plain = f"{memory_id}.revision-{number}"
    return plain if len(plain) <= MAX_ID else f"revision.{digest(plain)}"


def _listed(row: Object) -> tuple[str, str, str, str, str]:
    text = row.data.get("text")
    return row.id, row.type, shown(row), text if isinstance(text, str) else "", fact_source(row)
