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

        def watched(send: Callable[..., Any]) -> Callable[..., Any]:
            def noted(*words: Any) -> Any:
                if str(words[0]).startswith("GRAPH."):
                    queries.append(words[2])
                return send(*words)

            return noted

        for owner, name in ((store._graph, "execute_command"), (store._server, "command")):
            monkeypatch.setattr(owner, name, watched(getattr(owner, name)))
        return queries

    return watch
