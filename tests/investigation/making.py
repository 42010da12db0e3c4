"""Facts, links and processes for the investigation's tests, in few words."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from contextmesh.core.reader import Reader
from contextmesh.investigation.facts import Fact, Link, Reading

ROOT = Path(__file__).parents[2]
QUESTION = "Which earlier change might explain this, who owns the system, what did we learn before?"
MEGABYTE = "zyzzyvaword " + "lorem ipsum " * 87_380


def entity(key: str, label: str, kind: str = "system", **data: Any) -> Fact:
    return Fact(id=key, kind="Entity", data={"entity_type": kind, "label": label, **data})


def evidence(key: str, text: str, **data: Any) -> Fact:
    return Fact(id=key, kind="Evidence", data={"label": key, "text": text, **data})


def link(start: str, type_: str, end: str, **data: Any) -> Link:
    return Link(source=start, type=type_, target=end, data=data)


def thing(key: str, kind: str) -> Fact:
    return Fact(id=key, kind=kind, data={"label": key})


def reading(facts: Iterable[Fact], links: Iterable[Link] = (), source: str = "") -> Reading:
    return Reading(facts=tuple(facts), links=tuple(links), skipped=(), source=source)


def command(code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", code, *arguments]


def environment() -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("CONTEXTMESH_")}
    return {**kept, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"}


def python(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own and return how it ended."""
    return subprocess.run(
        command(code, *map(str, arguments)),
        env=environment(),
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )


def told(code: str, *arguments: object) -> Any:
    """Run code in a process of its own and return the JSON that it printed."""
    done = python(code, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def contents(reader: Reader, kinds: Sequence[str | None] = (None,)) -> tuple[list[Any], list[Any]]:
    """Return objects and relations as plain data: ids and data, without positions and without event ids."""
    objects = [
        (row.id, row.type, row.version, {key: value for key, value in row.data.items() if key != "position"})
        for kind in kinds
        for row in reader.objects(kind)
    ]
    relations = [(row.id, row.source, row.type, row.target, row.data) for row in reader.relations()]
    return objects, relations


def whole(reader: Reader) -> tuple[list[Any], list[Any]]:
    """Return all that a graph holds, provenance included."""
    return [row.to_dict() for row in reader.objects()], [row.to_dict() for row in reader.relations()]
