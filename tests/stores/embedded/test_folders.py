"""Folders: any name, links, permissions, the socket's place."""

import os
import stat
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from contextmesh.errors import ServerError
from contextmesh.stores.server import open_server
from tests.stores.embedded.processes import finish, socket_folder


@pytest.mark.parametrize(
    "name", ["it's", 'say "hi"', "with space", "back\\slash", "grüße-日本", "line\nbreak", "a/b/c", "x" * 200, "# no"]
)
def test_a_folder_of_any_name(name: str, tmp_path: Path) -> None:
    for expected in (None, "v"):
        with open_server(data_dir=tmp_path / name) as server:
            assert server.redis.get("k") == expected
            assert server.db.select_graph("g").query("RETURN 1").result_set == [[1]]
            server.redis.set("k", "v")
    assert (tmp_path / name / "appendonlydir").is_dir()


def test_a_link_to_a_folder_is_that_folder(folder: Path, tmp_path: Path) -> None:
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    with open_server(data_dir=folder) as one, open_server(data_dir=str(tmp_path / "link")) as two:
        one.redis.set("k", "v")
        assert two.redis.get("k") == "v"


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_file_is_no_folder(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ServerError, match="expected a folder that this user may write; choose another") as caught:
        open_server(data_dir=tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_name_with_a_nul() -> None:
    with pytest.raises(ServerError, match=r"null (byte|character).*choose another"):
        open_server(data_dir="/tmp/a\0b")


def test_a_read_only_folder(script: Callable[..., "subprocess.Popen[str]"]) -> None:
    # Not in tmp_path, into which another user cannot look; root has to become one, since it may write anywhere.
    with tempfile.TemporaryDirectory(dir="/tmp") as home:
        Path(home).chmod(0o555)
        opener = script("os.geteuid() or os.setuid(65534)\nopen_server(data_dir=sys.argv[1])", home)
        complaint = finish(opener).splitlines()[-1]
        assert (
            f"cannot keep data in '{home}': Permission denied; expected a folder that this user may write" in complaint
        )
        Path(home).chmod(0o755)


def test_only_the_owner_may_read(folder: Path) -> None:
    before = os.umask(0)
    try:
        with open_server(data_dir=folder) as server:
            server.redis.set("k", "v")
            own = socket_folder(folder)
            private = [folder, folder / "appendonlydir", own, own.parent]
            assert {stat.S_IMODE(path.stat().st_mode) for path in private} == {0o700}
            assert {stat.S_IMODE(path.stat().st_mode) for path in own.iterdir()} == {0o700}
            server.redis.save()
    finally:
        os.umask(before)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"dump.rdb", "server.log", "open.lock", "lease.lock", "server.lock"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


def test_the_sockets_path_is_short(tmp_path: Path) -> None:
    deep = tmp_path / "/".join(["deeper"] * 30)
    with open_server(data_dir=deep):
        assert len(str(socket_folder(deep) / "s")) < 100


def test_a_socket_folder_open_to_others_is_refused(folder: Path) -> None:
    with open_server(data_dir=folder):
        own = socket_folder(folder)
    own.mkdir()
    own.chmod(0o755)
    with pytest.raises(ServerError, match=rf"{own} .*is not private to this user; expected a folder of mode 0700"):
        open_server(data_dir=folder)


def test_an_unknown_users_home() -> None:
    with pytest.raises(ServerError, match=r"cannot keep data in '~no-such-user/x': .*choose another one"):
        open_server(data_dir="~no-such-user/x")
