"""Print what contextmesh costs beside peers: commits, loads, branches, reads, memory; then what a user waits for."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from contextmesh.stores.connection import module_number
from contextmesh.stores.server import open_server
from tests.benchmarks import asking, branches, commits, loading, memory, pictures, reading, using
from tests.benchmarks.measuring import Row, Setting, to_markdown, to_text
from tests.benchmarks.peer import NAME, Peer
from tests.benchmarks.workload import MIX

THEMES = {
    "commits": commits,
    "loading": loading,
    "branches": branches,
    "reading": reading,
    "memory": memory,
    "asking": asking,
    "using": using,
    "pictures": pictures,
}


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--only", choices=THEMES, action="append", help="a theme to run; may be given again")
    parser.add_argument("--quick", action="store_true", help="a tenth of the size: to see that it runs, not to quote")
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table at the end")
    return parser.parse_args(words)


def main() -> None:
    """Run the themes on embedded servers of their own, of one and the same version."""
    given = arguments()
    for name in ("CONTEXTMESH_URL", "FALKORDB_URL", "FALKORDB_HOST"):
        os.environ.pop(name, None)
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory() as name,
        open_server(data_dir=Path(name, "ours")) as server,
        Peer(Path(name)) as peer,
    ):
        setting = Setting(server=server, folder=Path(name), smaller=10 if given.quick else 1)
        head = header(setting, peer)
        print(head, flush=True)
        for theme in given.only or THEMES:
            for row in THEMES[theme].rows(setting, peer):
                print(to_text(row), flush=True)
                rows.append(row)
    if given.markdown:
        print(f"\n{head}\n\n{to_markdown(rows, NAME)}")


def header(setting: Setting, peer: Peer) -> str:
    """Say what is compared, on which servers, and with which operations."""
    versions = setting.server.versions()
    assert module_number(peer.redis) == module_number(setting.server.redis)
    return (
        f"contextmesh and {NAME}, each on an embedded FalkorDB {versions['falkordb']} (Redis {versions['redis']}), "
        f"Python {sys.version.split()[0]}, {os.cpu_count()} processors. Ours: append-only file, flushed every second; "
        f"the peer as it ships: SQLite log in WAL mode. Shortest of alternating rounds.\nOperations: {MIX}."
    )


if __name__ == "__main__":
    main()
