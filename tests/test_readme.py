"""The README's own examples, run as they are written."""

import re
from pathlib import Path

import pytest

import contextmesh as cm

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PYTHON = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "://" not in block]
[CYPHER] = re.findall(r"```cypher\n(.*?)```", README, re.DOTALL)


def test_the_python_tour_runs_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CONTEXTMESH_URL", raising=False)
    monkeypatch.setenv("CONTEXTMESH_DATA_DIR", str(tmp_path / "data"))
    names: dict[str, object] = {}
    assert len(PYTHON) >= 8
    for block in PYTHON:
        exec(compile(block, "README.md", "exec"), names)  # noqa: S102 - our own README
    ws = names["ws"]
    assert isinstance(ws, cm.Workspace)
    assert "Recorded owner of Checkout API: Maya Chen." in names["inv"].answer
    assert (tmp_path / "acmeshop.jsonl").is_file()
    for query in (line for line in CYPHER.splitlines() if line.startswith("MATCH")):
        assert len(ws.cypher(query)), query
    ws.close()
