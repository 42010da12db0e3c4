"""What the tests of servers share: no server outlives its test."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    yield
    for process in psutil.process_iter(["name", "cwd"]):
        if process.info["name"] == "redis-server" and (process.info["cwd"] or "").startswith(str(tmp_path)):
            process.kill()
