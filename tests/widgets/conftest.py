"""What the tests of the panels share: an AcmeShop of their own, what is displayed, and what is left open."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from ipywidgets.widgets.widget import _instances  # every widget that holds a line to the browser

import contextmesh as cm
from contextmesh.investigation.workspace import Workspace
from contextmesh.stores.server import Server
from tests.conftest import START


@pytest.fixture
def acme(server: Server, name: str) -> Iterator[Workspace]:
    """AcmeShop with Monday's note, its clock ticking from 2026 on."""
    assert server._folder is not None
    with cm.open(name, data_dir=server._folder.path, clock=cm.TickingClock(START)) as ws:
        cm.demo.acmeshop(ws)
        ws.session("Monday night").note("Checkout errors rose at 14:05, after Release 2.4")
        yield ws


@pytest.fixture
def left_open() -> Callable[[], set[str]]:
    """Return a function that tells which widgets are open that were not before the test."""
    before = set(_instances)
    return lambda: set(_instances) - before


@pytest.fixture
def displayed(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a panel displays, in order."""
    outputs: list[dict[str, Any]] = []

    def display(data: dict[str, Any], *, raw: bool) -> None:
        assert raw
        outputs.append(data)

    monkeypatch.setattr("contextmesh.widgets.panel.display", display)
    return outputs
