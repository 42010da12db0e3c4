"""Which keys a workspace has on a server, and how the server is asked."""

import json
import re
from collections.abc import Callable
from functools import partial

import redis

from contextmesh.errors import InvalidNameError, QueryError, ReadOnlyError, ServerError, WorkspaceNotFoundError
from contextmesh.stores.server import Server

OUTAGES = (redis.ConnectionError, redis.TimeoutError)
LEFTOVER_AFTER_S = 60
LOOK_AFTER_S = 86_400
NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


def check_name(name: object) -> str:
    """Return a workspace's name, or refuse it."""
    if not isinstance(name, str) or not NAME_PATTERN.fullmatch(name):
        shown = repr(name)[:80]
        msg = f"{shown} is no workspace name; expected up to 63 of a-z, 0-9, '-' and '_', such as 'acmeshop'"
        raise InvalidNameError(msg)
    return name


def workspace_names(server: Server) -> list[str]:
    """Return the names of the workspaces that a server holds, sorted."""
    pattern = re.compile(rf"cm:\{{({NAME_PATTERN.pattern})\}}:log")
    keys = retried(server, lambda: [str(key) for key in server.redis.scan_iter(match="cm:{*}:log", count=1000)])
    return sorted({found[1] for key in keys if (found := pattern.fullmatch(key))})


def workspace_keys(server: Server, name: str) -> list[str]:
    """Return every key of a workspace, the log first."""
    keys = retried(server, lambda: [str(key) for key in server.redis.scan_iter(match=f"cm:{{{name}}}:*", count=1000)])
    return sorted(set(keys), key=lambda key: (not key.endswith(":log"), key))


def drop_workspace(server: Server, name: str) -> None:
    """Erase a workspace. WorkspaceNotFoundError if there is none of this exact name."""
    check_name(name)
    keys = workspace_keys(server, name)
    if not keys:
        raise unknown_workspace(server, name)
    for key in keys:
        retried(server, lambda key=key: server.redis.delete(key))  # type: ignore[misc]


def leftovers(server: Server, name: str) -> list[str]:
    """Return the keys that an interrupted rebuild or look into the past left behind.

    One that was used a moment ago may belong to a rebuild that is under way, or to somebody who is looking; a look
    may last a day. A branch may have such a name, too, and is none; the graph of a dropped branch is one.
    """
    pattern = re.compile(r"cm:\{[^}]+\}:((?:rebuild|at-\d+|restore)-[0-9a-f]+):(?:graph|log)")
    branches = retried(server, lambda: server.redis.hgetall(f"cm:{{{name}}}:branches"))
    dropped = {f"cm:{{{name}}}:{key!s}:graph" for key, text in branches.items() if json.loads(text).get("dropped")}
    keys = workspace_keys(server, name)
    found = ((key, pattern.fullmatch(key)) for key in keys)
    kept = [(key, match[1]) for key, match in found if match and match[1] not in branches]
    kept += [(key, "") for key in keys if key in dropped]
    return [key for key, part in kept if retried(server, partial(_idle_s, server, key)) >= _patience_s(part)]


def _patience_s(part: str) -> int:
    return LOOK_AFTER_S if part.startswith("at-") else LEFTOVER_AFTER_S


def _idle_s(server: Server, key: str) -> int:
    return int(server.redis.object("idletime", key) or 0)


def remove_leftover(server: Server, key: str) -> None:
    """Remove one of `leftovers`."""
    retried(server, lambda: server.redis.delete(key))


def unknown_workspace(server: Server, name: str) -> WorkspaceNotFoundError:
    """Return the error for a name that the server does not hold."""
    known = ", ".join(workspace_names(server)) or "none yet"
    return WorkspaceNotFoundError(f"no workspace {name!r} in {server.describe()}; it holds: {known}")


def retried[T](server: Server, ask: Callable[[], T]) -> T:
    """Ask what is safe to ask twice; after an outage reconnect and ask again, once."""
    server.check_open()
    try:
        return ask()
    except OUTAGES:
        server.reconnect()
    except redis.ResponseError as error:
        raise refused(error) from None
    try:
        return ask()
    except redis.ResponseError as error:
        raise refused(error) from None
    except OUTAGES:
        raise lost(server) from None


def refused(error: Exception) -> QueryError | ReadOnlyError:
    """Return the error for what the database refused."""
    if isinstance(error, (redis.exceptions.NoPermissionError, redis.exceptions.ReadOnlyError)):
        return ReadOnlyError(f"FalkorDB does not let this user do that: {str(error)[:500]}")
    if "operation on empty key" in str(error):  # all that the server says of it
        return QueryError("the graph is gone: its workspace or branch was dropped meanwhile; open it again")
    return QueryError(f"FalkorDB refused the query: {str(error)[:500]}")


def lost(server: Server) -> ServerError:
    """Return the error for a server that went away in the middle of something."""
    return ServerError(f"the connection to {server.describe()} was lost, again after reconnecting; check the server")
