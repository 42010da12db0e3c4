"""The Makefile where every Python is too old: one line that says so and what to do. Real make throughout."""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKE = shutil.which("make")
TARGETS = ("demo", "lab", "test", "lint", "eval", "bench", "clean")
TOOLS = (
    *("sh", "cat", "cp", "cut", "dirname", "echo", "env", "false", "find", "ls", "mkdir", "mktemp", "mv", "printf"),
    *("pwd", "rm", "sort", "test", "touch", "tr", "true", "uname"),
)

# Runs what it is asked in the Python of the tests, which takes itself for an older one. Of modules it has none.
FAKE = """#!/bin/sh
if [ "$1" = --version ]; then echo 'Python {version}'; exit 0; fi
if [ "$1" != -c ]; then echo "$0: asked for $*" >&2; exit 99; fi
shift
exec '{python}' -c '
import collections, sys
code, parts = sys.argv.pop(1), [int(part) for part in "{version}".split(".")]
sys.version_info = collections.namedtuple("version_info", "major minor micro releaselevel serial")(*parts, "final", 0)
sys.version, sys.executable = "{version} (main, Apr  2 2024, 00:00:00) [GCC]", "{place}"
sys.hexversion = parts[0] << 24 | parts[1] << 16 | parts[2] << 8 | 0xF0
exec(code)
' "$@"
"""
BROKEN = "#!/bin/sh\necho 'this shim stands for nothing' >&2\nexit 127\n"

pytestmark = pytest.mark.skipif(MAKE is None, reason="make is not installed")


@dataclass
class Machine:
    """A folder with the Makefile, and a PATH that holds nothing but make, a shell, a few tools and what is added."""

    folder: Path
    path: Path

    def add(self, name: str, script: str) -> None:
        (self.path / name).write_text(script, encoding="utf-8")
        (self.path / name).chmod(0o755)

    def add_python(self, name: str, version: str) -> None:
        self.add(name, FAKE.format(version=version, python=sys.executable, place=f"/opt/{name}"))

    def make(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", *words],
            executable=self.path / "make",
            cwd=self.folder,
            env={"PATH": str(self.path)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without any Python."""
    made = Machine(folder=tmp_path / "a checkout", path=tmp_path / "bin")
    made.folder.mkdir()
    made.path.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, made.folder)
    for tool in ("make", *TOOLS):
        if found := shutil.which(tool):
            (made.path / tool).symlink_to(found)
    return made


def fails_with_one_line(machine: Machine, *words: str) -> str:
    """Run make, which must fail, do nothing and say one line on stderr; return the line."""
    before = sorted(machine.folder.iterdir())
    done = machine.make(*words)
    assert done.returncode != 0
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert sorted(machine.folder.iterdir()) == before  # no half of a .venv
    return line


def test_the_fake_answers_like_an_older_python(machine: Machine) -> None:
    machine.add_python("python3", "3.11.9")
    ask = "import sys, platform; print(sys.version_info[:3], sys.version_info.minor, platform.python_version())"
    answer = subprocess.run([machine.path / "python3", "-c", ask], capture_output=True, text=True, check=True)
    assert answer.stdout == "(3, 11, 9) 11 3.11.9\n"


def test_demo_with_an_old_python_says_what_is_missing(machine: Machine) -> None:
    machine.add_python("python3", "3.11.9")
    line = fails_with_one_line(machine, "demo")
    assert "needs Python 3.12 or newer" in line
    assert "found 3.11.9" in line
    assert "Install one or run: make PYTHON=/path/to/python3.12 demo" in line


@pytest.mark.parametrize("target", [target for target in TARGETS if target != "clean"])
def test_every_target_that_needs_python_says_so(machine: Machine, target: str) -> None:
    machine.add_python("python3", "3.11.9")
    line = fails_with_one_line(machine, target)
    assert re.search(r"3\.12 or newer.*3\.11\.9", line)


def test_several_old_pythons_and_a_broken_one_are_still_one_line(machine: Machine) -> None:
    machine.add("python3.13", BROKEN)
    machine.add_python("python3", "3.11.9")
    machine.add_python("python", "2.7.18")
    assert "found 3.11.9" in fails_with_one_line(machine, "demo")


@pytest.mark.parametrize("broken", [False, True], ids=["none", "a broken shim"])
def test_no_python_at_all(machine: Machine, broken: bool) -> None:
    if broken:
        machine.add("python3", BROKEN)
    line = fails_with_one_line(machine, "demo")
    assert "needs Python 3.12 or newer; found none" in line
    assert "make PYTHON=/path/to/python3.12 demo" in line


def test_the_chosen_python_is_held_to_the_same(machine: Machine) -> None:
    machine.add_python("python3.10-of-mine", "3.10.4")
    line = fails_with_one_line(machine, f"PYTHON={machine.path / 'python3.10-of-mine'}", "demo")
    assert re.search(r"3\.12 or newer.*3\.10\.4", line)


def test_a_new_enough_python_goes_on_to_make_the_venv(machine: Machine) -> None:
    machine.add_python("python3", "3.12.0")
    done = machine.make("demo")
    assert "python3: asked for -m venv .venv" in done.stderr
    assert "needs Python" not in done.stderr


@pytest.mark.parametrize("words", [("help",), ()], ids=["help", "no target"])
def test_help_lists_the_targets(machine: Machine, words: tuple[str, ...]) -> None:
    machine.add_python("python3", "3.11.9")
    done = machine.make(*words)
    assert (done.returncode, done.stderr) == (0, "")
    assert tuple(re.findall(r"^make ([a-z]+)  +\S", done.stdout, re.MULTILINE)) == TARGETS


def test_help_leaves_no_target_out() -> None:
    [phony] = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert set(phony.split()) - {"help", "FORCE"} == set(TARGETS)
