"""What 100,000 objects take in the in-memory graph of each side: the growth of a fresh process's resident memory."""

import gc
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.measuring import Row, Setting
from tests.benchmarks.workload import KINDS, fields

OBJECTS = 100_000
PAGE = 1000
ROOT = Path(__file__).parents[2]
Page = list[tuple[str, str, dict[str, Any]]]
Write = Callable[[int, Page], None]
Count = Callable[[], int]


def rows(setting: Setting, _peer: object) -> Iterator[Row]:
    """Return the rows of this theme, as they are measured."""
    n = setting.size(OBJECTS)
    ours, peers = measured("ours", n), measured("peer", n)
    yield Row(
        work=f"memory of {n:,} objects in InMemoryGraphStore",
        ours=f"{ours / 1e6:.0f} MB",
        beside=f"{peers / 1e6:.0f} MB",
        gain=peers / ours,
        wanted="2 x",
        note="growth of a fresh process's resident memory (RSS); data as read from JSON, each side's own provenance",
    )


def measured(side: str, n: int) -> int:
    """Return how many bytes a fresh process grew by."""
    command = [sys.executable, "-m", "tests.benchmarks.memory", side, str(n)]
    return int(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout)


def pages(n: int) -> Iterator[tuple[int, Page]]:
    """Yield objects (id, kind, data) by the thousand, with the position before each page."""
    for first in range(0, n, PAGE):
        numbers = range(first, first + PAGE)
        yield first, [(f"note#{at}", KINDS[at % 4], json.loads(json.dumps(fields(at)))) for at in numbers]


def our_store() -> tuple[Write, Count]:
    """Return what writes a page into our store, and what counts its objects."""
    from contextmesh import InMemoryEventStore, InMemoryGraphStore, Object, Reader  # noqa: PLC0415 - a process loads one side only
    from contextmesh.core.projection import Changes  # noqa: PLC0415

    store = InMemoryGraphStore()

    def write(first: int, page: Page) -> None:
        changes = Changes()
        for number, (key, kind, data) in enumerate(page, first):
            event = f"evt_{number:03d}"
            provenance = {"created_by": event, "updated_by": event, "actor": "system", "evidence": []}
            row = Object(id=key, type=kind, data=data, version=1, provenance=provenance)
            changes.write_object(row, f"2026-01-01T00:00:00.{number:06d}Z")
        assert store.apply(changes, expected=first, new=first + len(page))

    return write, lambda: len(Reader(InMemoryEventStore(), store).objects())


def peers_store() -> tuple[Write, Count]:
    """Return what writes a page into the peer's store, and what counts its objects."""
    from tests.benchmarks import peer  # noqa: PLC0415 - as above

    store = peer.InMemoryGraphStore()
    return lambda first, page: peer.put_objects(store, first, page), lambda: len(store.all_objects())


def main(side: str, n: int) -> None:
    """Fill one side's store and print the growth in bytes."""
    write, count = our_store() if side == "ours" else peers_store()
    process = psutil.Process()
    gc.collect()
    before = process.memory_info().rss
    for first, page in pages(n):
        write(first, page)
    gc.collect()
    grown = process.memory_info().rss - before
    assert count() == n
    print(grown)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
