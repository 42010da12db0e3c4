"""A file appears whole or not at all, and is open to whom the process or the file before it says."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from contextmesh.errors import UsageError
from contextmesh.investigation.saving import whole_file


@pytest.fixture
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    """The process's umask for the length of a test."""
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def write(path: Path, text: str = "new") -> None:
    with whole_file(path) as file:
        file.write(text)


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002, 0o027], indirect=True, ids=oct)
def test_a_new_file_has_the_mode_that_open_gives_it(umask: int, tmp_path: Path) -> None:
    (tmp_path / "by-open").open("w").close()
    write(tmp_path / "whole")
    assert mode(tmp_path / "whole") == mode(tmp_path / "by-open") == 0o666 & ~umask


@pytest.mark.parametrize("umask", [0o022], indirect=True)
@pytest.mark.parametrize("before", [0o600, 0o640, 0o664, 0o666])
def test_a_file_that_is_replaced_keeps_its_mode(umask: int, before: int, tmp_path: Path) -> None:
    path = tmp_path / "graph.svg"
    path.write_text("old")
    path.chmod(before)
    write(path)
    assert (path.read_text(), mode(path)) == ("new", before)


def stop_half_way(path: Path) -> None:
    with whole_file(path) as file:
        file.write("half")
        raise RuntimeError("half way")


def test_what_fails_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "graph.svg"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="half way"):
        stop_half_way(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_of_the_greatest_length_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / f"{'x' * 251}.svg"
    write(path)
    assert path.read_text() == "new"


def test_a_folder_that_is_gone_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"graph\.svg cannot be written: No such file or directory; save it elsewhere"):
        write(tmp_path / "gone" / "graph.svg")
