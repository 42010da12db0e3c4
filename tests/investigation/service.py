"""A model service on the loopback, for the real groq client: it answers as a test tells it, and keeps what it got."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "gsk_Q7vZ-quokka-secret-0123456789"
USAGE = {"prompt_tokens": 310, "completion_tokens": 90, "total_tokens": 400}
ANSWER = {
    "hypothesis": "Release 2.4 may have shortened the session TTL.",
    "cites": ["redis-change", "made-up-id", "checkout-api", "redis-change"],
    "checks": ["Restore the TTL on one node and compare."],
}


@dataclass
class Service:
    """What a test says how to answer, and what came in.

    Args:
        answer: writes a whole response; it may hang until `released` is set.
        requests: path, headers and body of each request.
    """

    url: str = ""
    answer: Callable[[BaseHTTPRequestHandler], None] = lambda handler: send(handler, completion(ANSWER))
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)

    @property
    def sent(self) -> Any:
        """The body of the only request."""
        [(_, _, body)] = self.requests
        return body

    @property
    def message(self) -> Any:
        """What the user's message of the only request holds: question and facts."""
        return json.loads(self.sent["messages"][1]["content"])


def completion(content: object, **choice: Any) -> bytes:
    """A reply as the service words it; content that is no text is sent in JSON."""
    text = content if content is None or isinstance(content, str) else json.dumps(content)
    choices = [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}, **choice}]
    body = {"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": choices, "usage": USAGE}
    return json.dumps(body).encode()


def send(handler: BaseHTTPRequestHandler, body: bytes, status: int = 200, **headers: str) -> None:
    handler.send_response(status)
    for name, value in {"content-type": "application/json", "content-length": str(len(body)), **headers}.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)


@contextmanager
def serve() -> Iterator[Service]:
    """Serve on a free port of the loopback until the end."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            service.requests.append((self.path, dict(self.headers.items()), json.loads(body)))
            self.close_connection = True
            with suppress(OSError):  # the client has hung up, which is the point of some tests
                service.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = False  # all are waited for, so that none outlives its test

    with Server(("127.0.0.1", 0), Handler) as server:
        service.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield service
        finally:
            service.released.set()
            server.shutdown()
            thread.join()
