"""A JupyterLab for the tests: on a free port, with a token, and in folders of its own."""

import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

START_S = 60.0
STOP_S = 20.0
OPTIONS = (
    "--no-browser",
    "--allow-root",  # CI runs as root
    "--expose-app-in-browser",  # so that a test can ask JupyterLab itself whether a cell has run
    "--LabApp.news_url=None",  # nothing is fetched from anywhere: the console stays clean, and offline is no error
    "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
    "--LabApp.extension_manager=readonly",
    "--ServerApp.terminals_enabled=False",
    "--ServerApp.log_level=WARN",
)
SETTINGS = {"apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False}}  # or it would ask


@dataclass(frozen=True, slots=True, kw_only=True)
class LabServer:
    """A running JupyterLab; notebooks put into `root` can be opened, workspaces of kernels are in `data`."""

    url: str
    token: str
    root: Path
    data: Path

    def request(self, method: str, path: str) -> Any:
        """Call the server's REST API and return what it answers."""
        headers = {"Authorization": f"token {self.token}"}
        request = urllib.request.Request(f"{self.url}/{path}", method=method, headers=headers)  # noqa: S310  # our own
        with urllib.request.urlopen(request, timeout=START_S) as answer:  # noqa: S310  # the same
            return json.loads(answer.read() or b"null")

    def stop_kernels(self) -> None:
        """Shut all kernels down."""
        for kernel in self.request("GET", "api/kernels"):
            self.request("DELETE", f"api/kernels/{kernel['id']}")


@contextmanager
def lab_server(folder: Path) -> Iterator[LabServer]:
    """Start JupyterLab in a folder, and stop it with its kernels and their database."""
    root, data = folder / "notebooks", folder / "data"
    root.mkdir()
    for name, settings in SETTINGS.items():
        file = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(settings), encoding="utf-8")
    token, port = secrets.token_hex(16), free_port()
    words = [sys.executable, "-m", "jupyterlab", *OPTIONS, f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
    words += [f"--ServerApp.root_dir={root}", f"--IdentityProvider.token={token}"]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            words, cwd=root, env=environment(folder), stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    server = LabServer(url=f"http://127.0.0.1:{port}", token=token, root=root, data=data)
    try:
        wait_until_it_answers(server, process, folder / "server.log")
        yield server
        server.stop_kernels()
    finally:
        stop(process, folder)


def environment(folder: Path) -> dict[str, str]:
    """Return the server's environment: no settings of whoever runs the tests, and nobody's workspaces."""
    foreign = ("JUPYTER", "JPY_", "IPYTHON", "CONTEXTMESH_")
    own = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    for name in ("CONFIG", "DATA", "RUNTIME"):
        own[f"JUPYTER_{name}_DIR"] = str(folder / name.lower() / "jupyter")
    own["JUPYTERLAB_SETTINGS_DIR"] = str(folder / "settings")
    own["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / "workspaces")
    own["IPYTHONDIR"] = str(folder / "ipython")
    own["CONTEXTMESH_DATA_DIR"] = str(folder / "data")
    return own


def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until_it_answers(server: LabServer, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the server answers, and fail with its log where it stops or stays silent."""
    end = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < end:
        try:
            server.request("GET", "api/status")
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError(f"JupyterLab did not start:\n{log.read_text('utf-8', errors='replace')}")


def stop(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Stop a server, and the databases that its kernels have left running in a folder."""
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for database in psutil.process_iter(["name", "cwd"]):
        if database.info["name"] == "redis-server" and (database.info["cwd"] or "").startswith(str(folder)):
            database.kill()
