"""What is committed: no trace of a machine, notebooks as they ran, documents in step with the code."""

import re
import subprocess
import tomllib
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]

MACHINE_PATH = re.compile(r"(?<![\w.~/-])/(?:work|root|home)/")
REGISTRY = re.compile(r"//[\w.-]*(?:pypi|pythonhosted|npmjs|anaconda|debian|crates)\.(?:org|com|io)", re.IGNORECASE)


def committed() -> list[Path]:
    """The files that git holds, as they are in the work tree."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


def notebooks() -> list[Path]:
    return [path for path in committed() if path.suffix == ".ipynb"]


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["machine path", "registry"])
def test_no_file_names_a_machine_or_a_registry(pattern):
    files = committed()
    assert files
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for path in files
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_notebooks_are_committed_as_they_ran():
    found = notebooks()
    assert found
    for path in found:
        notebook = nbformat.read(path, as_version=4)
        code = [cell for cell in notebook.cells if cell.cell_type == "code"]
        assert code, f"{path.name} holds no code"
        assert [cell.source for cell in code if not cell.execution_count] == [], f"{path.name}: cells that never ran"
        assert "widgets" not in notebook.metadata, f"{path.name}: saved widget state"
        errors = [out.ename for cell in code for out in cell.outputs if out.output_type == "error"]
        assert errors == [], f"{path.name}: saved errors"
        assert [cell.id for cell in notebook.cells if "execution" in cell.metadata] == [], f"{path.name}: timings"


def test_the_changelog_has_the_version():
    version = tomllib.loads(read("pyproject.toml"))["project"]["version"]
    assert re.search(rf"^## \[{re.escape(version)}\]", read("CHANGELOG.md"), re.MULTILINE)


def test_the_readme_has_a_row_for_every_command():
    from contextmesh.cli import cli  # noqa: PLC0415  # the other tests here need no package

    assert cli.commands
    rows = set(re.findall(r"^\| `([a-z-]+)", read("README.md"), re.MULTILINE))
    assert set(cli.commands) - rows == set()


@pytest.mark.parametrize("section", ["Schema and queries", "Limits", "What has been verified"])
def test_the_readme_has_the_section(section):
    assert re.search(rf"^## {section}", read("README.md"), re.MULTILINE)


def test_the_readme_links_to_files_that_exist():
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", read("README.md"))
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
