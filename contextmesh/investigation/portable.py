"""A log as a portable file: JSON lines, one event a line, batches kept whole."""

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tqdm.auto import tqdm

from contextmesh.core.events import SCHEMA_VERSION, Event, encode, minted_number, prepare
from contextmesh.core.projection import Changes
from contextmesh.core.stores import Entry, EventStore
from contextmesh.errors import ContextMeshError, ImportFileError, UsageError

if TYPE_CHECKING:
    from contextmesh.stores.falkordb import FalkorDBEventStore

PAGE = 1000
SLOW_S = 1.0


Batch = tuple[Event, ...]


def write_export(log: EventStore, name: str, path: Path) -> int:
    """Write a log to a file that appears complete or not at all; return the number of events."""
    if not path.parent.is_dir():
        msg = f"the folder {path.parent} does not exist; create it, or export elsewhere"
        raise UsageError(msg)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps({"v": SCHEMA_VERSION, "workspace": name}) + "\n")
            count = 0
            for entry in tqdm(_entries(log), desc="exporting", unit="event", delay=SLOW_S, leave=False):
                file.write(
                    f'{{"v":{SCHEMA_VERSION},"position":{entry.position},"last":{entry.last},'
                    f'"event":{encode(entry.event)}}}\n',
                )
                count += 1
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
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
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        msg = f"{path} cannot be read: {reason}"
        raise ImportFileError(msg) from None
    batches: list[Batch] = []
    pending: list[Event] = []
    seen: set[str] = set()
    for number, line in enumerate(lines, 1):
        if number == 1:
            _check_header(line, path)
            continue
        if not line and number == len(lines):
            continue
        event, last = _read_line(line, number, path)
        if event.id in seen:
            msg = f"{path.name}:{number}: the event id {event.id!r} occurs twice; the file is damaged"
            raise ImportFileError(msg)
        seen.add(event.id)
        pending.append(event)
        if last == number - 1:
            batches.append(tuple(pending))
            pending = []
    if pending:
        msg = f"{path.name} ends in the middle of a commit; the file is cut off, so export again"
        raise ImportFileError(msg)
    return batches


def _check_header(line: str, path: Path) -> None:
    try:
        header = json.loads(line)
        sound = header["v"] == SCHEMA_VERSION and isinstance(header["workspace"], str)
    except (ValueError, TypeError, KeyError):
        sound = False
    if not sound:
        msg = (
            f'{path.name}:1: no export of this version; expected a first line {{"v": {SCHEMA_VERSION}, "workspace": …}}'
        )
        raise ImportFileError(msg)


def _read_line(line: str, number: int, path: Path) -> tuple[Event, int]:
    position = number - 1
    try:
        row = json.loads(line)
        event = prepare(Event(**row["event"]))
        Changes().add(event)
        sound = row["v"] == SCHEMA_VERSION and row["position"] == position and event.id and event.timestamp
        last = int(row["last"])
    except (ValueError, TypeError, KeyError, ContextMeshError) as error:
        msg = f"{path.name}:{number}: the line cannot be read: {error}"
        raise ImportFileError(msg) from None
    if not sound or last < position:
        msg = f"{path.name}:{number}: expected the event at position {position}; the file is damaged or was edited"
        raise ImportFileError(msg)
    return event, last


def write_log(log: "FalkorDBEventStore", batches: Sequence[Batch]) -> None:
    """Append all batches to a fresh log, each as one commit, and set its counters past every id in use."""
    greatest: dict[str, int] = {}
    for event in (event for batch in batches for event in batch):
        payload = event.payload
        patch = payload.get("patch")
        ids = [event.id, payload.get("id"), patch.get("id") if isinstance(patch, dict) else None]
        for found in (minted_number(key) for key in ids if isinstance(key, str)):
            if found:
                greatest[found[0]] = max(greatest.get(found[0], 0), found[1])
    for counter, number in sorted(greatest.items()):
        log.raise_counter(counter, number)
    log.begin()
    position = 0
    for batch in tqdm(batches, desc="restoring", unit="commit", delay=SLOW_S, leave=False):
        position = log.append_many(batch, expected=position, commit_id=batch[0].id)
