"""Where there is no browser: one line that says how to get one, and a failure where one is required."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browser.chromium import HOW
from tests.browser.lab import ROOT

PROBE = "from tests.browser.chromium import find; print(find())"


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """An environment with an empty PATH, into which Playwright has downloaded nothing."""
    own = {**os.environ, "PATH": str(tmp_path), "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "downloads")}
    own.pop("CONTEXTMESH_BROWSER", None)
    return own


def run(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def test_without_a_browser_the_tests_are_skipped_and_one_line_says_how_to_get_one(nowhere: dict[str, str]) -> None:
    done = run(nowhere, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/browser/test_harness.py", "-k", "found")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(HOW) == 1
    [line] = [line for line in done.stdout.splitlines() if HOW in line]
    assert "browser tests skipped" in line
    assert "apt install chromium" in line
    assert "playwright install chromium" in line


def test_where_a_browser_is_required_they_fail(nowhere: dict[str, str]) -> None:
    required = {**nowhere, "CONTEXTMESH_BROWSER": "required"}
    done = run(required, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/browser/test_harness.py", "-k", "found")
    assert done.returncode == 1
    assert HOW in done.stdout


def test_a_browser_that_does_not_start_is_none(nowhere: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "chromium-browser").write_text("#!/bin/sh\nexit 10\n", encoding="utf-8")
    (tmp_path / "chromium-browser").chmod(0o755)
    assert run(nowhere, "-c", PROBE).stdout == "None\n"
    (tmp_path / "google-chrome").write_text("#!/bin/sh\necho 'Google Chrome 150'\n", encoding="utf-8")
    (tmp_path / "google-chrome").chmod(0o755)
    assert run(nowhere, "-c", PROBE).stdout == f"{tmp_path / 'google-chrome'}\n"
