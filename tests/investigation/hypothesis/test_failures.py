"""Whatever the model service does wrong, its reason is recorded and the answer stays."""

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from contextmesh.investigation.result import Investigation
from contextmesh.investigation.workspace import Workspace
from tests.investigation.hypothesis.kept import HEADING, everything, records, without
from tests.investigation.service import ANSWER, KEY, Service, completion, send, serve
from tests.investigation.test_page import Page

Answering = Callable[[Service, BaseHTTPRequestHandler], None]


def hang(service: Service, _: BaseHTTPRequestHandler) -> None:
    service.released.wait(30)


def trickle(service: Service, handler: BaseHTTPRequestHandler) -> None:
    """Send a byte now and then, so that no single wait is long."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while not service.released.wait(0.02):
        handler.wfile.write(b" ")


def trickle_headers(service: Service, handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nx-slow: ")
    while not service.released.wait(0.02):
        handler.wfile.write(b"z")


def break_off(_: Service, handler: BaseHTTPRequestHandler) -> None:
    body = completion(ANSWER)
    handler.send_response(200)
    handler.send_header("content-length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2])


def hang_up(_: Service, handler: BaseHTTPRequestHandler) -> None:
    handler.connection.close()


def without_end(status: int) -> Answering:
    def answer(service: Service, handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 %d X\r\ntransfer-encoding: chunked\r\n\r\n" % status)
        while not service.released.is_set():
            handler.wfile.write(b"1000\r\n" + b" " * 4096 + b"\r\n")

    return answer


def replying(body: bytes, status: int = 200, **headers: str) -> Answering:
    return lambda _, handler: send(handler, body, status, **headers)


def refusing(status: int, **headers: str) -> Answering:
    """A refusal that quotes the key, as some services do."""
    body = json.dumps({"error": {"message": f"Invalid API Key: {KEY}", "code": KEY, "type": "invalid_request_error"}})
    return replying(body.encode(), status, **headers)


FAILURES: dict[str, tuple[Answering, str]] = {
    "text in place of JSON": (replying(completion("Surely it was the TTL.")), "the model's answer is not JSON"),
    "JSON in words": (replying(completion('Here: {"hypothesis": "x", "cites": []}')), "the model's answer is not JSON"),
    "a list": (replying(completion(["x"])), "not what was asked for"),
    "a number": (replying(completion("7")), "not what was asked for"),
    "other keys": (replying(completion({"cause": "x"})), "not what was asked for"),
    "no citations": (replying(completion({"hypothesis": "x"})), "not what was asked for"),
    "citations of another type": (replying(completion({"hypothesis": "x", "cites": [7]})), "not what was asked for"),
    "a blank hypothesis": (replying(completion({"hypothesis": " \n", "cites": []})), "not what was asked for"),
    "a very long hypothesis": (
        replying(completion({"hypothesis": "x" * 5000, "cites": []})),
        "not what was asked for",
    ),
    "deep nesting": (replying(completion("[" * 20_000)), "the model's answer is not JSON"),
    "an answer cut off": (
        replying(completion('{"hypothesis": "It may', finish_reason="length")),
        "cut off at 400 tokens",
    ),
    "an empty answer": (replying(completion("")), "the model answered nothing"),
    "spaces": (replying(completion("  \n ")), "the model answered nothing"),
    "null": (replying(completion(None)), "the model answered nothing"),
    "no choices": (replying(b'{"choices": []}'), "the model answered nothing"),
    "an empty body": (replying(b""), "the model service's answer is not JSON"),
    "a page": (replying(b"<html>Please log in</html>"), "the model service's answer is not JSON"),
    "not UTF-8": (replying(b"\xff\xfe\x00{"), "the model service's answer is not JSON"),
    "deep nesting outside": (replying(b"[" * 60_000), "the model service's answer is not JSON"),
    "401": (refusing(401), "refused the key (401); check GROQ_API_KEY"),
    "403": (refusing(403), "refused the key for this (403)"),
    "404": (refusing(404), "no such model or address (404)"),
    "400": (refusing(400), "refused the request (400)"),
    "408": (refusing(408), "the status 408, expected 200"),
    "409": (refusing(409), "the status 409, expected 200"),
    "429": (refusing(429, retry_after="0", x_should_retry="true"), "too many requests (429); wait, then ask again"),
    "500": (refusing(500, x_should_retry="true"), "the model service failed (500)"),
    "503": (refusing(503, retry_after="0"), "the model service failed (503)"),
    "a redirect": (refusing(307, location="/elsewhere"), "the status 307, expected 200"),
    "204": (lambda _, handler: send(handler, b"", 204), "the status 204, expected 200"),
    "a silent service": (hang, "no whole answer within 0.5 s"),
    "a trickle": (trickle, "no whole answer within 0.5 s"),
    "a trickle of headers": (trickle_headers, "no whole answer within 0.5 s"),
    "a connection dropped in the middle": (break_off, "broke off in the middle"),
    "a connection dropped at once": (hang_up, "hung up before it answered"),
    "an oversized answer": (replying(completion({**ANSWER, "more": "x" * 100_000})), "over 65,536 bytes"),
    "an endless answer": (without_end(200), "over 65,536 bytes"),
    "an endless refusal": (without_end(500), "the model service failed (500)"),
}
SLOW = {"a silent service", "a trickle", "a trickle of headers"}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_a_recorded_reason_and_nothing_else_changes(
    failing: tuple[Workspace, Investigation],
    service: Service,
    logged: pytest.LogCaptureFixture,
    tmp_path: Path,
    name: str,
) -> None:
    ws, inv = failing
    answering, reason = FAILURES[name]
    service.answer = lambda handler: answering(service, handler)
    before = without(inv), records(ws)
    inv.hypothesize(timeout_s=0.5 if name in SLOW else 20)
    assert len(service.requests) == 1
    assert (without(inv), records(ws)) == before
    found = inv.hypothesis
    assert found is not None
    assert (found["status"], found["text"], found["cites"], found["trusted"]) == ("failed", None, [], False)
    assert reason in found["reason"]
    assert "\n" not in found["reason"]
    assert f"{HEADING}\n  None: " in inv.to_text()
    assert f"None: {found['reason']}" in " ".join(inv.to_text().split())
    assert f"None: {found['reason']}" in Page(inv.to_html()).text
    assert inv.to_dict()["hypothesis"]["reason"] == found["reason"]
    assert found["usage"]["cost"] == "unknown"
    assert KEY not in everything(ws, inv, tmp_path, logged)
    assert service.url not in found["reason"] + json.dumps(found)


def test_nobody_listens(inv: Investigation, service: Service) -> None:
    with serve() as gone:
        pass
    before = without(inv)
    inv.hypothesize(base_url=gone.url)
    assert without(inv) == before
    assert "cannot be reached" in inv.hypothesis["reason"]


def test_a_service_that_says_the_key_back_does_not_get_it_stored(
    acme: Workspace, inv: Investigation, service: Service, logged: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    escaped = KEY.replace("q", "\\u0071")
    content = f'{{"hypothesis": "It was {KEY} or {escaped}.", "cites": ["{KEY}"], "checks": ["{escaped}"]}}'
    service.answer = lambda handler: send(handler, completion(content), x_echo=f"Bearer {KEY}")
    inv.hypothesize()
    assert inv.hypothesis["text"] == "It was [key removed] or [key removed]."
    assert KEY not in everything(acme, inv, tmp_path, logged)
    assert "Bearer [key]" in logged.text  # the client's log repeats a reply's headers


def test_half_a_character_is_replaced(inv: Investigation, service: Service) -> None:
    service.answer = lambda handler: send(handler, completion('{"hypothesis": "TTL \\ud83d", "cites": []}'))
    assert inv.hypothesize().hypothesis["text"] == "TTL \ufffd"
