"""What the tests of stores share: no server outlives its test, and every query can be looked at."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from contextmesh.stores.falkordb import FalkorDBGraphStore


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    yield
    for process in psutil.process_iter(["name", "cwd"]):
        if process.info["name"] == "redis-server" and (process.info["cwd"] or "").startswith(str(tmp_path)):
            process.kill()


Asked = Callable[[FalkorDBGraphStore], list[str]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Return, for a store, the list to which every query that it sends from now on is added, parameters included."""

    def watch(store: FalkorDBGraphStore) -> list[str]:
        queries: list[str] = []
        real = store._graph.execute_command

        def execute_command(*command: Any) -> Any:
            queries.append(command[2])
            return real(*command)

        monkeypatch.setattr(store._graph, "execute_command", execute_command)
        return queries

    return watch
