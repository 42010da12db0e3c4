"""The notebooks: run twice in one data folder they show the same both times, and the same as is committed."""

import difflib
import os
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import psutil
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
MOST_CELLS = 16
CELL_TIMEOUT_S = 60
SHOWN = ("text/plain", "text/html")
# What takes over a second shows a bar with the time that it took, `(00:01)` or `[00:01<00:02`, on a slow machine only.
PROGRESS = re.compile(r"[(\[]\d\d:\d\d[)<]")
WIDGET = "application/vnd.jupyter.widget-view+json"

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=[path.stem for path in NOTEBOOKS])


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def progress(output: NotebookNode) -> bool:
    """Whether an output is a progress bar, in a widget or on stderr."""
    if output.output_type == "stream":
        return output.name == "stderr" and PROGRESS.search(output.text) is not None
    return WIDGET in output.get("data", {}) and PROGRESS.search(output.data.get("text/plain", "")) is not None


def shown(cell: NotebookNode) -> list[tuple[str, str]]:
    """What a reader sees below a cell; how a stream was cut into pieces is not seen."""
    found: list[tuple[str, str]] = []
    for output in cell.outputs:
        if progress(output):
            continue
        if output.output_type == "stream":
            if found and found[-1][0] == output.name:
                found[-1] = (output.name, found[-1][1] + output.text)
            else:
                found.append((output.name, output.text))
            continue
        data = output.get("data", {})
        found += [(kind, data[kind]) for kind in SHOWN if kind in data]
    return found


def lines(notebook: NotebookNode) -> list[str]:
    """What a reader sees, line by line, each with the number of its code cell."""
    return [
        f"[{number}] {kind}: {line}"
        for number, cell in enumerate(code_cells(notebook), 1)
        for kind, text in shown(cell)
        for line in text.split("\n")
    ]


def difference(before: list[str], after: list[str]) -> str:
    return "\n".join(difflib.unified_diff(before, after, "before", "after", lineterm="", n=0))


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment of a kernel: a data folder of its own, and no settings of whoever runs the tests."""
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.delenv("JUPYTER_PATH", raising=False)
    own = {**os.environ, "CONTEXTMESH_DATA_DIR": str(tmp_path / "data")}
    own.pop("CONTEXTMESH_URL", None)
    yield own
    for process in psutil.process_iter(["name", "cwd"]):
        if process.info["name"] == "redis-server" and (process.info["cwd"] or "").startswith(str(tmp_path)):
            process.kill()


def run(path: Path, environment: dict[str, str]) -> NotebookNode:
    """Run a notebook in a fresh kernel, as Jupyter does: in the notebook's folder."""
    notebook = read(path)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    client = NotebookClient(
        notebook, timeout=CELL_TIMEOUT_S, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    return client.execute(env=environment)


def test_there_is_a_notebook() -> None:
    assert "01_quickstart" in [path.stem for path in NOTEBOOKS]


@each_notebook
def test_two_runs_and_the_committed_one_show_the_same(path: Path, environment: dict[str, str]) -> None:
    committed, first, second = (lines(each) for each in (read(path), run(path, environment), run(path, environment)))
    assert first
    assert second == first, f"a second run differs:\n{difference(first, second)}"
    assert first == committed, f"run {path.name} again and commit it:\n{difference(committed, first)}"
    assert Path(environment["CONTEXTMESH_DATA_DIR"]).is_dir()  # it was this folder that they used


@each_notebook
def test_every_code_cell_was_run_in_order(path: Path) -> None:
    counts = [cell.execution_count for cell in code_cells(read(path))]
    assert counts == list(range(1, len(counts) + 1))


@each_notebook
def test_no_widget_state_is_saved(path: Path) -> None:
    notebook = read(path)
    assert "widgets" not in notebook.metadata
    assert "application/vnd.jupyter.widget-state+json" not in path.read_text("utf-8")


@each_notebook
def test_it_is_short_enough_to_be_read(path: Path) -> None:
    assert 1 < len(read(path).cells) <= MOST_CELLS


@each_notebook
def test_no_error_is_saved(path: Path) -> None:
    outputs = [output for cell in code_cells(read(path)) for output in cell.outputs]
    assert outputs
    assert [output.ename for output in outputs if output.output_type == "error"] == []
