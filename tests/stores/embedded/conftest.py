"""What the tests of the embedded server share: a folder to open, and scripts that open it too."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.stores.embedded.processes import ROOT


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def script() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Run code in another process; it speaks by printing, and ends when its input does."""
    running: list[subprocess.Popen[str]] = []

    def run(code: str, *arguments: object) -> "subprocess.Popen[str]":
        head = "import os, sys\nfrom contextmesh.stores.server import open_server\n"
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", head + code, *map(str, arguments)],
            env=os.environ | {"PYTHONPATH": str(ROOT)},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        running.append(process)
        return process

    yield run
    for process in running:
        process.kill()
        process.communicate()
