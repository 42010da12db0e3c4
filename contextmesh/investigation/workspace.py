"""Workspace and Session: what a user types. A workspace is one named graph memory in FalkorDB."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tqdm.auto import tqdm

from contextmesh.core.events import Clock, Event
from contextmesh.core.graph import Graph
from contextmesh.core.model import Object
from contextmesh.core.projection import Progress, rebuild
from contextmesh.core.runtime import Runtime
from contextmesh.errors import (
    AlreadyExistsError,
    IncompatibleRuntimeState,
    ReadOnlyError,
    UsageError,
)
from contextmesh.investigation import portable
from contextmesh.investigation.facts import MAX_ID, Fact, Link, Reading, Report, digest, relation_id
from contextmesh.investigation.inputs import SLOW_S, WORKSPACE, check_hops, check_limit, check_text, label_of, own_id
from contextmesh.investigation.intake import FACT_KINDS, ingest, mention, persist
from contextmesh.investigation.records import agent_id
from contextmesh.investigation.result import Investigation, fact_source, frame
from contextmesh.investigation.retrieval import describe, needed, paths_between, shown, weigh
from contextmesh.investigation.session import Session
from contextmesh.investigation.stages.executor import executor
from contextmesh.investigation.stages.planner import planner
from contextmesh.investigation.stages.researcher import researcher
from contextmesh.investigation.stages.verifier import verifier
from contextmesh.investigation.vocabulary import DEFAULT, EVIDENCE_KINDS, HISTORY, STAGES, Vocabulary

if TYPE_CHECKING:
    import pandas as pd

    from contextmesh.stores.server import Server

BY_HAND = "stated by hand"


def open(  # noqa: A001 - read as contextmesh.open
    name: str,
    *,
    url: str | None = None,
    data_dir: str | Path | None = None,
    durability: str = "everysec",
    create: bool = True,
    clock: Clock | None = None,
    vocabulary: Vocabulary = DEFAULT,
) -> "Workspace":
    """Open a workspace, and create it if it is new.

    Args:
        name: up to 63 of a-z, 0-9, `-` and `_`.
        url: a FalkorDB server; without one an embedded server starts by itself.
        data_dir: the embedded server's folder; the platform's user data folder by default.
        durability: `everysec` (a power cut may lose the last second) or `always`.
        create: whether an unknown name is created or refused.
        clock: tells the time; pass a frozen one to make a notebook repeatable.
        vocabulary: the kinds, relations and bounds to use.

    Raises:
        InvalidNameError: a name outside its pattern.
        WorkspaceNotFoundError: `create` is False and the server holds no such workspace.
        MissingServerError: the embedded server is not installed.
        ServerError: FalkorDB cannot be reached or started.
    """
    from contextmesh.stores.keyspace import check_name, unknown_workspace, workspace_names  # noqa: PLC0415
    from contextmesh.stores.server import open_server  # noqa: PLC0415

    check_name(name)
    with ExitStack() as opened:
        server = opened.enter_context(open_server(url, data_dir, durability=durability))
        if not create and name not in workspace_names(server):
            raise unknown_workspace(server, name)
        workspace = Workspace(server, name, clock=clock, vocabulary=vocabulary)
        opened.pop_all()
        return workspace


def drop(name: str, *, url: str | None = None, data_dir: str | Path | None = None, missing_ok: bool = False) -> None:
    """Erase one workspace, by its exact name.

    Args:
        name: the workspace's exact name.
        url: a FalkorDB server, as in `open`.
        data_dir: the embedded server's folder, as in `open`.
        missing_ok: whether an unknown name is fine.

    Raises:
        WorkspaceNotFoundError: there is none, unless `missing_ok`.
    """
    from contextmesh.stores.keyspace import check_name, drop_workspace, workspace_names  # noqa: PLC0415
    from contextmesh.stores.server import open_server  # noqa: PLC0415

    check_name(name)
    with open_server(url, data_dir) as server:
        if not (missing_ok and name not in workspace_names(server)):
            drop_workspace(server, name)


def restore(
    path: str | Path,
    name: str,
    *,
    url: str | None = None,
    data_dir: str | Path | None = None,
    clock: Clock | None = None,
    vocabulary: Vocabulary = DEFAULT,
) -> "Workspace":
    """Make a new workspace from an export and return it, open.

    Args:
        path: a file that `Workspace.export` wrote.
        name: the new workspace; it must not exist yet.
        url: a FalkorDB server, as in `open`.
        data_dir: the embedded server's folder, as in `open`.
        clock: as in `open`.
        vocabulary: as in `open`.

    Raises:
        AlreadyExistsError: the server holds a workspace of this name.
        ImportFileError: the file is no export; nothing was written.
    """
    from contextmesh.stores.falkordb import FalkorDBEventStore  # noqa: PLC0415
    from contextmesh.stores.keyspace import check_name, drop_workspace  # noqa: PLC0415
    from contextmesh.stores.server import open_server  # noqa: PLC0415

    check_name(name)
    batches = portable.read_export(Path(path))
    with ExitStack() as opened:
        server = opened.enter_context(open_server(url, data_dir))
        log = FalkorDBEventStore(server, name)
        if log.exists():
            msg = f"{server.describe()} holds a workspace {name!r} already; choose another name, or drop it first"
            raise AlreadyExistsError(msg)
        with ExitStack() as begun:
            begun.callback(drop_workspace, server, name)
            portable.write_log(log, batches)
            workspace = Workspace(server, name, clock=clock, vocabulary=vocabulary)
            begun.pop_all()
        opened.pop_all()
        return workspace


class Workspace:
    """One named graph memory: notes, facts and investigations that outlast any conversation.

    Get one from `contextmesh.open`. It is a context manager; leaving it closes it.
    """

    def __init__(
        self,
        server: "Server",
        name: str,
        *,
        clock: Clock | None = None,
        vocabulary: Vocabulary = DEFAULT,
    ) -> None:
        from contextmesh.stores.falkordb import FalkorDBEventStore, FalkorDBGraphStore  # noqa: PLC0415

        self.name = name
        self.vocabulary = vocabulary
        self._server = server
        self._log = FalkorDBEventStore(server, name)
        self._store = FalkorDBGraphStore(server, name)
        self._lag = ""
        try:
            self._log.begin()
        except ReadOnlyError:
            self._store.read_only = True
            self.graph = Graph(self._log, self._store, clock=clock, read_only=True)
            self._lag = self._measured_lag()
            return
        with _progress("catching up") as progress:
            try:
                self.graph = Graph(self._log, self._store, clock=clock, progress=progress)
            except IncompatibleRuntimeState:
                if self._log.tip() == 0:
                    msg = f"the log of {name!r} is gone, its graph is not; restore an export, or drop the workspace"
                    raise IncompatibleRuntimeState(msg) from None
                rebuild(self._log, self._store, progress)  # the log is the truth, also where the graph is ahead of it
                self.graph = Graph(self._log, self._store, clock=clock)
        self._begin()

    def __repr__(self) -> str:
        # What is known here, without asking a server that may be gone.
        return f"<Workspace {self.name!r}: {self.graph!r}{self._lag}, {self._server.describe()}>"

    def _measured_lag(self) -> str:
        """Say how far the graph of a read-only connection is behind its log."""
        try:
            return f", read-only, {self._log.tip() - self.graph.position} events behind its log"
        except ReadOnlyError:
            return ", read-only, its log is not readable here"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the workspace; the last one to use an embedded server stops it. Closing twice is fine."""
        self._server.close()

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
        weighed = weigh(text, self.graph, replace(self.vocabulary, bounds=bounds))
        hits = self.graph.search(weighed.weights, EVIDENCE_KINDS, HISTORY, limit) if weighed.weights else []
        rows = self.graph.get_objects([hit.id for hit in hits])
        found = [
            (*_listed(rows[hit.id]), hit.score, [word for term, word in weighed.words.items() if term in hit.terms])
            for hit in hits
            if hit.id in rows
        ]
        return frame(found, ("id", "kind", "label", "text", "source", "score", "terms"))

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
            _happened(position, event, object_id)
            for position, event in enumerate(events, 1)
            if not event.type.startswith("relation.")
            and object_id in (event.payload.get("id"), event.payload.get("target"), _patched(event))
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
        stages = [researcher(self.vocabulary), planner, executor, verifier(self.vocabulary)]
        return Runtime(self.graph, stages, after=after)

    # keeping

    def export(self, path: str | Path) -> int:
        """Write the whole log as JSON lines and return the number of events; the file appears complete or not at all.

        Args:
            path: the file to write; an ordinary file there is replaced.

        Raises:
            UsageError: the folder does not exist.
        """
        return portable.write_export(self._log, self.name, Path(path))

    def rebuild(self) -> int:
        """Replay the log into a fresh graph, swap it in, and return the position that it stands at."""
        with _progress("rebuilding") as progress:
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
        log_position, graph_position = self._log.tip(), self._store.head()
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


@contextmanager
def _progress(doing: str) -> Iterator[Progress]:
    """Show a bar for what takes over a second."""
    with tqdm(desc=doing, unit="event", delay=SLOW_S, leave=False) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        yield progress


def about(event: Event) -> str:
    """Return in a few words what an event is about."""
    payload = event.payload
    row = payload.get("relation")
    if event.type == "relation.created" and isinstance(row, Mapping):
        return f"{row['source']} -{row['type']}-> {row['target']}"
    named = (
        payload.get("id") or payload.get("target") or _patched(event) or payload.get("trigger") or payload.get("run")
    )
    return str(named or "")


def _part(payload: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = payload.get(name)
    return value if isinstance(value, Mapping) else {}


def _patched(event: Event) -> str | None:
    patch = event.payload.get("patch")
    return patch.get("target") if isinstance(patch, Mapping) else None


def _happened(position: int, event: Event, object_id: str) -> tuple[Any, ...]:
    payload = event.payload
    row, patch = _part(payload, "object"), _part(payload, "patch")
    data = row.get("data")
    text = data.get("text") if isinstance(data, Mapping) and row.get("id") == object_id else None
    why = patch.get("rationale") or payload.get("reason")
    return position, event.timestamp, event.type, event.actor, row.get("version"), text or "", why or ""


def _revision_id(memory_id: str, number: int) -> str:
    plain = f"{memory_id}.revision-{number}"
    return plain if len(plain) <= MAX_ID else f"revision.{digest(plain)}"


def _listed(row: Object) -> tuple[str, str, str, str, str]:
    text = row.data.get("text")
    return row.id, row.type, shown(row), text if isinstance(text, str) else "", fact_source(row)
