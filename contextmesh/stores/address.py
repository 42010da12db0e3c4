"""A FalkorDB somewhere else: what its URL says, and the connection to it. No message holds a user name or password."""

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import falkordb
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from contextmesh.errors import ServerError, UsageError
from contextmesh.stores.connection import await_answer, checked, make_client

_SCHEMES = ("falkor", "falkors", "redis", "rediss", "unix")
_URL_FORMS = "falkor://[user[:password]@]host[:port], falkors://, redis://, rediss:// or unix:///path/to/socket"
_HOST = re.compile(r"(?:\[(?P<ip6>[0-9A-Fa-f:.]+(?:%\w+)?)\]|(?P<name>[\w.-]+))(?::(?P<port>\d{1,5}))?", re.ASCII)
_LAST_PORT = 65535
_CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """A server's place for people, and the client options that lead there.

    Attributes:
        where: The server's address, without user name or password.
        options: What the client takes to connect.
    """

    where: str
    options: dict[str, Any] = field(repr=False)  # holds the password


def parse_url(url: str) -> Address:
    """Take a URL apart, by hand: the standard parsers quote the password when they fail on it.

    Args:
        url: ``falkor://[user[:password]@]host[:port]``, ``falkors://`` (TLS), ``redis://``, ``rediss://`` or
            ``unix:///path/to/socket``.

    Raises:
        UsageError: The URL is malformed, or asks for what FalkorDB does not have.
    """
    if not isinstance(url, str):
        raise UsageError(f"url is of type {type(url).__name__}; expected a string like {_URL_FORMS}")
    scheme, separator, rest = url.strip().partition("://")
    scheme = scheme.lower()
    if not separator or not re.fullmatch(r"[a-z][a-z0-9+.-]*", scheme):
        raise UsageError(f"the URL has no scheme; expected {_URL_FORMS}")
    if scheme not in _SCHEMES:
        raise UsageError(f"cannot open a {scheme}:// URL; expected {_URL_FORMS}")
    # The last @ ends the credentials, so that those in a password need no escape; of a socket's path, the last @/.
    mark = "@/" if scheme == "unix" else "@"
    if scheme == "unix" and not rest.startswith("/") and mark not in rest:
        raise UsageError(f"the unix:// URL names no socket; expected {_URL_FORMS}")
    credentials, _, target = rest.rpartition(mark) if not rest.startswith("/") else ("", "", rest)
    user, _, password = credentials.partition(":")
    target, _, query = target.partition("?")
    if query not in ("", "db=0"):
        raise UsageError(f"the {scheme}:// URL carries options; none but db=0 is known: expected {_URL_FORMS}")
    place, options = _socket_target(target) if scheme == "unix" else _host_target(scheme, target)
    options |= {"username": unquote(user) or None, "password": unquote(password) or None}
    return Address(where=f"FalkorDB at {scheme}://{place}", options=options)


def _socket_target(target: str) -> tuple[str, dict[str, Any]]:
    path = "/" + unquote(target).lstrip("/")
    if path == "/" or "\0" in path:
        raise UsageError(f"the unix:// URL names no socket; expected {_URL_FORMS}")
    return path, {"unix_socket_path": path}


def _host_target(scheme: str, target: str) -> tuple[str, dict[str, Any]]:
    target, _, database = target.partition("/")
    if database not in ("", "0"):
        raise UsageError(f"the {scheme}:// URL names a database other than 0; FalkorDB is used with database 0 only")
    found = _HOST.fullmatch(target)
    port = int((found and found["port"]) or 6379)
    if found is None or not 0 < port <= _LAST_PORT:
        raise UsageError(f"the host or port of the {scheme}:// URL is malformed; expected {_URL_FORMS}")
    host = found["ip6"] or found["name"]
    options = {"host": host, "port": port, "ssl": scheme in ("falkors", "rediss"), "socket_keepalive": True}
    return f"[{host}]:{port}" if found["ip6"] else f"{host}:{port}", options


def connect(address: Address) -> falkordb.FalkorDB:
    """Connect to the FalkorDB at an address, wait until it has loaded and check that it can be trusted.

    Raises:
        ServerError: The server cannot be reached, or is not a FalkorDB.
    """
    # The lasting client never times out; the first one does, also where a TLS handshake meets a server without TLS.
    options = address.options | {"socket_connect_timeout": _CONNECT_TIMEOUT_S}
    try:
        with redis.Redis(**options, socket_timeout=_CONNECT_TIMEOUT_S, retry=Retry(NoBackoff(), 0)) as first:
            first.info("server")
        db = make_client(**options)
        await_answer(db.connection, address.where, _CONNECT_TIMEOUT_S)
        return checked(db, address.where)
    except ServerError:
        raise
    except (redis.RedisError, OSError, UnicodeError) as error:
        problem = _explain(error)
    # Raised out here so that the driver's error, which may quote what it was given, is not even its context.
    raise ServerError(f"cannot open {address.where}: {problem}")


def _explain(error: Exception) -> str:
    match error:
        case redis.AuthenticationError() | redis.exceptions.NoPermissionError():
            return "it refused this user or password; expected a user who may connect and run INFO; check both"
        case redis.TimeoutError():
            return f"no answer within {_CONNECT_TIMEOUT_S:g} s; expected a running server; check host, port and TLS"
        case redis.ConnectionError() | OSError() | UnicodeError():
            return "nothing usable answers there; expected a running server; check host, port, TLS and that it runs"
        case _:
            return "it answered with an error to the first command; expected a FalkorDB server that lets this user in"
