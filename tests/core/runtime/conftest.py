"""What the tests of the runtime share. Each runs in memory and in FalkorDB."""

from collections.abc import Callable

import pytest

from contextmesh.core.graph import Graph


@pytest.fixture
def graph(opened: Callable[[], Graph]) -> Graph:
    return opened()
