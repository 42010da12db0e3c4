"""A log as a portable file: JSON lines, one event a line, batches kept whole."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from tqdm.auto import tqdm

from contextmesh.core.events import SCHEMA_VERSION, Event, decode, encode
from contextmesh.core.graph import Graph
from contextmesh.core.ids import created_ids, minted
from contextmesh.core.stores import MAX_FIELD_NAMES, Entry, EventStore, mirrored
from contextmesh.errors import AlreadyExistsError, ContextMeshError, ImportFileError, UsageError
from contextmesh.investigation.inputs import SLOW_S
from contextmesh.investigation.saving import whole_file

if TYPE_CHECKING:
    from contextmesh.stores.falkordb import FalkorDBEventStore

PAGE = 1000


Batch = tuple[Event, ...]


def write_export(log: EventStore, name: str, path: Path) -> int:
    """Write a log to a file that appears complete or not at all; return the number of events."""
    path = path.resolve()  # a link stays one, and what it leads to is replaced
    if path.exists() and not path.is_file() and not path.is_dir():
        msg = f"{path} is no ordinary file; expected the name of one, such as 'workspace.jsonl'"
        raise UsageError(msg)
    if path.is_dir():
        msg = f"{path} is a folder; expected the name of a file, such as {path / 'workspace.jsonl'}"
        raise UsageError(msg)
    if not path.parent.is_dir():
        msg = f"the folder {path.parent} does not exist; create it, or export elsewhere"
        raise UsageError(msg)
    with whole_file(path) as file:
        file.write(json.dumps({"v": SCHEMA_VERSION, "workspace": name}) + "\n")
        count = 0
        for entry in tqdm(_entries(log), desc="exporting", unit="event", delay=SLOW_S, leave=False):
            file.write(
                f'{{"v":{SCHEMA_VERSION},"position":{entry.position},"last":{entry.last},'
                f'"event":{encode(entry.event)}}}\n',
            )
            count += 1
    return count


def _entries(log: EventStore) -> Iterator[Entry]:
    after = 0
    while entries := log.read(after, PAGE):
        yield from entries
        after = entries[-1].position


def read_export(path: Path) -> list[Batch]:
    """Read an export and check all of it before anything is written.

    Raises:
        ImportFileError: it is no export, or a line cannot be read; the message names file and line.
    """
    if path.exists() and not path.is_file():
        msg = f"{path} is no ordinary file; expected an export"
        raise ImportFileError(msg)
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        msg = f"{path} cannot be read: {reason}"
        raise ImportFileError(msg) from None
    _check_header(lines[0], path)
    if lines[-1] == "":
        del lines[-1]
    rows = [_read_line(line, number, path) for number, line in enumerate(lines[1:], 2)]
    if rows and rows[-1][1] != len(rows):
        msg = f"{path.name} ends in the middle of a commit; the file is cut off, so export again"
        raise ImportFileError(msg)
    batches: list[Batch] = []
    graph = Graph()  # in memory: every event must stand where it stands before any of them is written
    names = {name for event, _ in rows for name in _field_names(event)}
    if len(names) > MAX_FIELD_NAMES:
        msg = f"{path.name} holds {len(names):,} field names, at most {MAX_FIELD_NAMES:,} fit in one graph"
        raise ImportFileError(msg)
    first = 0
    while first < len(rows):
        batch = rows[first : rows[first][1]]
        _replay(batch, graph, path, first + 2)
        batches.append(tuple(event for event, _ in batch))
        first += len(batch)
    return batches


def _field_names(event: Event) -> Iterable[str]:
    payload: object = event.payload  # as the file has it, not checked yet
    row = payload.get("object") if isinstance(payload, Mapping) else None
    data = row.get("data") if isinstance(row, Mapping) else None
    return mirrored(data) if isinstance(data, Mapping) else ()


def _replay(batch: Sequence[tuple[Event, int]], graph: Graph, path: Path, line: int) -> None:
    with graph.batch():
        for number, (event, last) in enumerate(batch, line):
            try:
                if last != batch[0][1]:
                    msg = f"its commit ends at position {last}, the one it stands in at {batch[0][1]}"
                    raise ImportFileError(msg)
                graph.replay(event)
            except (ContextMeshError, ValueError) as error:
                msg = f"{path.name}:{number}: the event cannot stand here: {error}; the file is damaged or was edited"
                raise ImportFileError(msg) from None


def _check_header(line: str, path: Path) -> None:
    try:
        header = json.loads(line)
        sound = header["v"] in range(1, SCHEMA_VERSION + 1) and isinstance(header["workspace"], str)
    except (ValueError, TypeError, KeyError):
        sound = False
    if not sound:
        msg = (
            f'{path.name}:1: no export of this version; expected a first line {{"v": {SCHEMA_VERSION}, "workspace": …}}'
        )
        raise ImportFileError(msg)


class _Line(msgspec.Struct, frozen=True):
    v: int
    position: int
    last: int
    event: msgspec.Raw


def _read_line(line: str, number: int, path: Path) -> tuple[Event, int]:
    position = number - 1
    try:
        row = msgspec.json.decode(line, type=_Line)
        event = decode(bytes(row.event), position, row.v)
    except (ValueError, RecursionError) as error:
        msg = f"{path.name}:{number}: the line cannot be read: {error}"
        raise ImportFileError(msg) from None
    if row.position != position or row.last < position or not (event.id and event.timestamp):
        msg = f"{path.name}:{number}: expected the event at position {position}; the file is damaged or was edited"
        raise ImportFileError(msg)
    return event, row.last


def write_log(log: "FalkorDBEventStore", batches: Sequence[Batch]) -> None:
    """Append all batches to a fresh log, each as one commit, and set its counters past every id in use."""
    greatest: dict[str, int] = {}
    branches: set[str] = set()
    for event in (event for batch in batches for event in batch):
        for found in map(minted, [event.id, *created_ids(event)]):
            if found and found.branch:
                branches.add(found.branch)
            elif found:
                greatest[found.counter] = max(greatest.get(found.counter, 0), found.number)
    for counter, number in sorted(greatest.items()):
        log.raise_counter(counter, number)
    log.retire(branches)
    beside = log.beside()  # killed halfway, it leaves a leftover and no half workspace
    beside.begin()
    position = 0
    for batch in tqdm(batches, desc="restoring", unit="commit", delay=SLOW_S, leave=False):
        position = beside.append_many(batch, expected=position, commit_id=batch[0].id)
    if not log.take(beside):
        msg = f"another process has just made the workspace {log.name!r}; choose another name"
        raise AlreadyExistsError(msg)
