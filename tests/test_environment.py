"""environment.yml, for people who use conda, asks for what pyproject.toml asks for."""

import tomllib
from pathlib import Path

import yaml
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
ENVIRONMENT = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))


def comparable(requirement: str) -> tuple[str, frozenset[str], str]:
    parsed = Requirement(requirement)
    name = parsed.name.lower().replace("_", "-")
    return name, frozenset(str(part) for part in parsed.specifier), str(parsed.marker or "")


def pip_section() -> list[str]:
    [section] = [entry["pip"] for entry in ENVIRONMENT["dependencies"] if isinstance(entry, dict)]
    return section


def test_pip_section_holds_the_runtime_and_the_extras_that_users_need():
    extras = PROJECT["optional-dependencies"]
    expected = [*PROJECT["dependencies"], *extras["lab"], *extras["groq"], *extras["test"]]
    listed = [line for line in pip_section() if not line.startswith("-")]
    assert sorted(map(comparable, listed)) == sorted(map(comparable, expected))


def test_contextmesh_itself_is_installed_from_this_folder():
    assert [line for line in pip_section() if line.startswith("-")] == ["--editable ."]


def test_conda_brings_the_same_python_and_pip():
    assert ENVIRONMENT["name"] == PROJECT["name"] == "contextmesh"
    assert ENVIRONMENT["channels"] == ["conda-forge"]
    conda = [entry for entry in ENVIRONMENT["dependencies"] if isinstance(entry, str)]
    assert conda == [f"python{PROJECT['requires-python']}", "pip"]
