"""Open, drop and restore workspaces."""

from contextlib import ExitStack
from pathlib import Path

from contextmesh.core.events import Clock
from contextmesh.errors import AlreadyExistsError
from contextmesh.investigation import portable
from contextmesh.investigation.embedding import Embedder
from contextmesh.investigation.graphs import open_graph
from contextmesh.investigation.vocabulary import DEFAULT, Vocabulary
from contextmesh.investigation.workspace import Workspace


def open(  # noqa: A001 - read as contextmesh.open
    name: str,
    *,
    url: str | None = None,
    data_dir: str | Path | None = None,
    durability: str = "everysec",
    create: bool = True,
    clock: Clock | None = None,
    vocabulary: Vocabulary = DEFAULT,
    embedder: Embedder | None = None,
) -> Workspace:
    """Open a workspace, and create it if it is new.

    Args:
        name: up to 63 of a-z, 0-9, `-` and `_`.
        url: a FalkorDB server; without one an embedded server starts by itself.
        data_dir: the embedded server's folder; the platform's user data folder by default.
        durability: `everysec` (a power cut may lose the last second) or `always`.
        create: whether an unknown name is created or refused.
        clock: tells the time; pass a frozen one to make a notebook repeatable.
        vocabulary: the kinds, relations and bounds to use.
        embedder: texts -> float32 array of shape (n, d), so that questions also find what shares no word with them;
            `Workspace.embed` brings the model of the extra `contextmesh[semantic]`.

    Raises:
        InvalidNameError: a name outside its pattern.
        WorkspaceNotFoundError: `create` is False and the server holds no such workspace.
        MissingServerError: the embedded server is not installed.
        ServerError: FalkorDB cannot be reached or started.
    """
    from contextmesh.stores.keyspace import check_name, unknown_workspace, workspace_names  # noqa: PLC0415
    from contextmesh.stores.server import open_server  # noqa: PLC0415

    check_name(name)
    with ExitStack() as opened:
        server = opened.enter_context(open_server(url, data_dir, durability=durability))
        if not create and name not in workspace_names(server):
            raise unknown_workspace(server, name)
        graph = open_graph(server, name, clock)
        workspace = Workspace(server, graph, name, vocabulary=vocabulary, embedder=embedder)
        workspace.own(opened.pop_all())
        return workspace


def drop(name: str, *, url: str | None = None, data_dir: str | Path | None = None, missing_ok: bool = False) -> None:
    """Erase one workspace, by its exact name.

    Args:
        name: the workspace's exact name.
        url: a FalkorDB server, as in `open`.
        data_dir: the embedded server's folder, as in `open`.
        missing_ok: whether an unknown name is fine.

    Raises:
        WorkspaceNotFoundError: there is none, unless `missing_ok`.
    """
    from contextmesh.stores.keyspace import check_name, drop_workspace, workspace_names  # noqa: PLC0415
    from contextmesh.stores.server import open_server  # noqa: PLC0415

    check_name(name)
    with open_server(url, data_dir) as server:
        if not (missing_ok and name not in workspace_names(server)):
            drop_workspace(server, name)


def restore(
    path: str | Path,
    name: str,
    *,
    url: str | None = None,
    data_dir: str | Path | None = None,
    clock: Clock | None = None,
    vocabulary: Vocabulary = DEFAULT,
) -> Workspace:
    """Make a new workspace from an export and return it, open.

    Args:
        path: a file that `Workspace.export` wrote.
        name: the new workspace; it must not exist yet.
        url: a FalkorDB server, as in `open`.
        data_dir: the embedded server's folder, as in `open`.
        clock: as in `open`.
        vocabulary: as in `open`.

    Raises:
        AlreadyExistsError: the server holds a workspace of this name.
        ImportFileError: the file is no export; nothing was written.
    """
    from contextmesh.stores.falkordb import FalkorDBEventStore  # noqa: PLC0415
    from contextmesh.stores.keyspace import check_name, drop_workspace  # noqa: PLC0415
    from contextmesh.stores.server import open_server  # noqa: PLC0415

    check_name(name)
    batches = portable.read_export(Path(path))
    with ExitStack() as opened:
        server = opened.enter_context(open_server(url, data_dir))
        log = FalkorDBEventStore(server, name)
        if log.exists():
            msg = f"{server.describe()} holds a workspace {name!r} already; choose another name, or drop it first"
            raise AlreadyExistsError(msg)
        with ExitStack() as begun:
            begun.callback(drop_workspace, server, name)
            portable.write_log(log, batches)
            workspace = Workspace(server, open_graph(server, name, clock), name, vocabulary=vocabulary)
            begun.pop_all()
        workspace.own(opened.pop_all())
        return workspace
