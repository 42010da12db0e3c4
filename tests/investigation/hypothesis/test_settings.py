"""Key, model, address and rates: what is missing, what wins, what is refused, and that no key gets out."""

import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

import contextmesh as cm
from contextmesh.investigation.hypothesis import read_settings
from contextmesh.investigation.result import Investigation
from contextmesh.investigation.workspace import Workspace
from tests.investigation.hypothesis.kept import TEXT, everything, records, without
from tests.investigation.making import QUESTION, ROOT
from tests.investigation.service import KEY, Service

# what is missing


@pytest.mark.parametrize("key", [None, "", "  \n"])
def test_without_a_key_it_says_what_it_would_do(
    acme: Workspace, inv: Investigation, service: Service, monkeypatch: pytest.MonkeyPatch, key: str | None
) -> None:
    monkeypatch.delenv("GROQ_API_KEY")
    before = without(inv), records(acme)
    inv.hypothesize(key=key)
    assert (without(inv), records(acme)) == before
    assert service.requests == []
    one_line = "no key in GROQ_API_KEY; with one, 12 facts would go to llama-3.3-70b-versatile in one call"
    assert inv.hypothesis["reason"] == one_line
    assert f"  None: {one_line}" in inv.to_text().split("\n")
    assert inv.hypothesis["usage"] == {}
    assert "usage" not in acme.table("Run").columns


@pytest.mark.parametrize("key", [f"{KEY}\r\nx-evil: 1", f"{KEY} x", f"{KEY}ö", f"{KEY}\x00"])
def test_a_key_that_no_header_can_carry_is_not_sent(
    failing: tuple[Workspace, Investigation],
    service: Service,
    logged: pytest.LogCaptureFixture,
    tmp_path: Path,
    key: str,
) -> None:
    ws, inv = failing
    inv.hypothesize(key=key)
    assert service.requests == []
    assert inv.hypothesis["reason"].startswith("the key holds a space or another character")
    assert KEY not in everything(ws, inv, tmp_path, logged)


def test_a_key_from_a_file_may_end_with_a_line_break(inv: Investigation, service: Service) -> None:
    inv.hypothesize(key=f" {KEY}\n")
    assert service.requests[0][1]["Authorization"] == f"Bearer {KEY}"


def test_without_the_extra_one_line_says_how_to_get_it(
    acme: Workspace, inv: Investigation, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "groq", None)  # what an import then raises is what it raises without the package
    before = without(inv), records(acme)
    inv.hypothesize()
    assert (without(inv), records(acme)) == before
    one_line = "the groq client is not installed, so nothing was sent; pip install 'contextmesh[groq]'"
    assert f"  None: {one_line}" in inv.to_text().split("\n")
    assert service.requests == []


def test_without_evidence_nothing_is_sent(acme: Workspace, service: Service) -> None:
    inv = acme.session("Tuesday").investigate("How do I bake sourdough bread?", hypothesis=True)
    assert inv.hypothesis["reason"] == "there is no evidence to build one on, so nothing was sent"
    assert service.requests == []


def test_importing_loads_no_groq() -> None:
    code = "import sys, contextmesh as cm; cm.Investigation, cm.Session, cm.open; print('groq' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "False\n"


# settings


def test_an_argument_wins_over_the_environment(
    inv: Investigation, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTMESH_GROQ_MODEL", "from-the-environment")
    monkeypatch.setenv("GROQ_BASE_URL", "http://127.0.0.1:1")
    inv.hypothesize(key="gsk_other", model="from-the-argument", base_url=service.url)
    assert service.sent["model"] == "from-the-argument"
    assert service.requests[0][1]["Authorization"] == "Bearer gsk_other"
    assert inv.hypothesis["model"] == "from-the-argument"


def test_the_environment_names_model_and_rates(
    inv: Investigation, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTMESH_GROQ_MODEL", "from-the-environment")
    monkeypatch.setenv("CONTEXTMESH_GROQ_RATES", "0.59, 0.79")
    inv.hypothesize()
    assert service.sent["model"] == "from-the-environment"
    assert inv.hypothesis["usage"]["cost"] == 0.000254  # (310 * 0.59 + 90 * 0.79) / 1,000,000


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"base_url": "ftp://me:hush@host"}, "the model service's base URL cannot be used"),
        ({"base_url": "https://me:hush@host"}, "without a user name or password"),
        ({"base_url": "https://host:hush"}, "base URL cannot be used"),
        ({"base_url": "https://ho st\n/hush"}, "base URL cannot be used"),
        ({"rates": (1.0,)}, r"rates are \(1\.0,\)"),
        ({"rates": (-1, 1)}, "expected US dollars for a million tokens"),
        ({"rates": ("nan", 1)}, "expected US dollars for a million tokens"),
        ({"rates": 7}, "rates are 7"),
        ({"timeout_s": 0}, "timeout_s is 0; expected a number of seconds above 0"),
        ({"timeout_s": float("inf")}, "timeout_s is inf"),
    ],
)
def test_a_setting_that_cannot_be_one_is_refused_before_anything_is_sent(
    failing: tuple[Workspace, Investigation], service: Service, settings: dict[str, Any], message: str
) -> None:
    ws, inv = failing
    position = ws.graph.position
    with pytest.raises(cm.UsageError, match=message) as raised:
        inv.hypothesize(key=KEY, **settings)
    told = "".join(traceback.format_exception(raised.value))
    assert KEY not in told
    assert "hush" not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None
    assert ws.graph.position == position
    assert service.requests == []


def test_wrong_settings_are_told_before_a_question_is_saved(
    acme: Workspace, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTMESH_GROQ_RATES", "cheap")
    with pytest.raises(cm.UsageError, match="rates are 'cheap'"):
        acme.session("Tuesday").investigate(QUESTION, hypothesis=True)
    assert len(acme.table("Run")) == 0


def test_settings_show_neither_key_nor_address() -> None:
    shown = repr(read_settings(key=KEY, base_url="https://models.example.org"))
    assert KEY not in shown
    assert "example" not in shown
    assert "llama-3.3-70b-versatile" in shown


# a notebook


def test_a_notebook_holds_no_key(
    acme: Workspace, service: Service, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("CONTEXTMESH_DATA_DIR", str(folder))
    monkeypatch.delenv("CONTEXTMESH_URL", raising=False)
    cells = [
        f"import contextmesh as cm, logging\nlogging.basicConfig(level=logging.DEBUG)\nws = cm.open({acme.name!r})",
        f"inv = ws.session('nb').investigate({QUESTION!r}, hypothesis=True)\ninv",
        "inv.hypothesis, vars(inv), ws.table('Run'), ws.table('Hypothesis')",
        "inv.hypothesize(base_url='nowhere')",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True).execute()
    held = nbformat.writes(notebook)
    assert len(service.requests) == 1
    assert TEXT in held
    assert "base URL cannot be used" in held
    assert KEY not in held
