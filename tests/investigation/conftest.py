"""What the investigation's tests share: workspaces of their own in the session's one embedded FalkorDB."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import contextmesh as cm
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores.server import Server

Opened = Callable[..., Workspace]  # what the fixture `opened` gives


@pytest.fixture(scope="session")
def folder(server: Server) -> Path:
    """The data folder of the session's server; whoever opens it shares that server."""
    assert server._folder is not None
    return Path(server._folder.path)


@pytest.fixture
def opened(folder: Path, workspace: Any) -> Iterator[Callable[..., Workspace]]:
    """Open workspaces: a new one without a name, the same one again with it; all are closed and dropped after."""
    with ExitStack() as stack:

        def opened(name: str | None = None, **options: Any) -> Workspace:
            name = name or stack.enter_context(workspace())
            return stack.enter_context(cm.open(name, data_dir=folder, **options))

        yield opened


@pytest.fixture
def ws(opened: Callable[..., Workspace]) -> Workspace:
    """An empty workspace."""
    return opened()


@pytest.fixture
def acme(ws: Workspace) -> Workspace:
    """AcmeShop with the first session's note."""
    cm.demo.acmeshop(ws)
    ws.session("Monday night").note("Checkout errors rose at 14:05, after Release 2.4")
    return ws
