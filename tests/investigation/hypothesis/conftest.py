"""What the tests of the hypothesis share: a model service on the loopback, and runs to ask it about."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import contextmesh as cm
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.workspace import Workspace
from tests.investigation.making import QUESTION
from tests.investigation.service import KEY, Service, serve


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A model service, which the environment names together with a key."""
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serve() as service:
        monkeypatch.setenv("GROQ_API_KEY", KEY)
        monkeypatch.setenv("GROQ_BASE_URL", service.url)
        yield service


@pytest.fixture
def inv(acme: Workspace) -> Investigation:
    return acme.session("Tuesday").investigate(QUESTION)


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """All log lines, the client's own at their most talkative included."""
    for name in (None, "groq", "httpx", "httpcore"):
        caplog.set_level(logging.DEBUG, logger=name)
    return caplog


@pytest.fixture(scope="module")
def failing(folder: Path, workspace: Any) -> Iterator[tuple[Workspace, Investigation]]:
    """A run that is asked about again after each failure, so that it is made but once."""
    with workspace() as name, cm.open(name, data_dir=folder) as ws:
        cm.demo.acmeshop(ws)
        yield ws, ws.session("Tuesday").investigate(QUESTION)
