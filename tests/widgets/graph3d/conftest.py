"""What the tests of the 3D view share: canvases, and what travels to their browser."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import comm
import pytest

from contextmesh.investigation.scene import Light, Scene
from contextmesh.widgets.graph3d import Canvas


@pytest.fixture
def shown() -> Iterator[Callable[..., Canvas]]:
    """Make canvases, and close them after the test."""
    made: list[Canvas] = []

    def make(scene: Scene, light: Light | None = None, **settings: Any) -> Canvas:
        made.append(Canvas(scene, light or Light(), **({"on_pick": lambda _: None} | settings)))
        return made[-1]

    yield make
    for canvas in made:
        canvas.close()


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any, int]]:
    """What travels to the browser: (kind of message, content, bytes)."""
    sent: list[tuple[str, Any, int]] = []

    def record(_self: Any, kind: str, data: Any = None, _metadata: Any = None, buffers: Any = None, **_: Any) -> None:
        size = len(json.dumps(data)) + sum(memoryview(part).nbytes for part in buffers or ())
        sent.append((kind, data, size))

    monkeypatch.setattr(comm.DummyComm, "publish_msg", record)
    return sent
