"""A real embedding server on loopback, for tests: it answers well unless it was told to answer badly.

Promise: every request is kept, replies are given in the order they were queued, and the same text always gets the
same vector. Not here: any wisdom about meaning.
"""

from __future__ import annotations

import hashlib
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[["Exchange"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


def vector_of(text: str, dimension: int) -> list[float]:
    """A vector that depends on the text alone. Its length is not 1."""
    seed = b"".join(
        hashlib.sha256(f"{n}:{text}".encode("utf-8", "replace")).digest() for n in range(dimension // 32 + 1)
    )
    return [(byte - 127) / 16 for byte in seed[:dimension]]


class Exchange(BaseHTTPRequestHandler):
    """One connection. Replies call `send`."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # headers and body are two writes, which would wait 40 ms for one another
    server: EmbeddingServer

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        self.asked = Asked(path=self.path, headers=dict(self.headers.items()), body=json.loads(raw))
        reply = self.server.take(self.asked)
        reply(self)

    def send(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, *, length: int | None = None
    ) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        if length is not None and length != len(body):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: requests are kept in `asked`."""


class EmbeddingServer(ThreadingHTTPServer):
    """Give `replies` to make it misbehave; it answers well once they are used up."""

    daemon_threads = True

    def __init__(self, *, dimension: int) -> None:
        super().__init__(("127.0.0.1", 0), Exchange)
        self.dimension = dimension
        self.asked: list[Asked] = []
        self.replies: deque[Reply] = deque()
        self.always: Reply | None = None
        self.release = threading.Event()
        self._lock = threading.Condition()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def take(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            self._lock.notify_all()
            if self.replies:
                return self.replies.popleft()
        return self.always or well(self.dimension)

    def heard(self, times: int) -> int:
        """How often it was asked, once that is so many times: whoever gave up early may be heard after that."""
        with self._lock:
            self._lock.wait_for(lambda: len(self.asked) >= times, 120)
            return len(self.asked)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away in the middle is what some tests are about."""


@contextmanager
def serving(*, dimension: int = 8) -> Iterator[EmbeddingServer]:
    server = EmbeddingServer(dimension=dimension)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.release.set()
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(slots=True)
class Sleeps:
    """A sleep that only writes down how long it was to be."""

    taken: list[float] = field(default_factory=list)

    def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)


@contextmanager
def unused_port() -> Iterator[int]:
    """A port of this machine where nobody listens, and nobody can begin to: it is taken."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield int(taken.getsockname()[1])


def answer_of(vectors: list[Any]) -> bytes:
    items = [{"object": "embedding", "index": at, "embedding": vector} for at, vector in enumerate(vectors)]
    return json.dumps({"object": "list", "data": items, "model": "fake"}).encode()


def well(dimension: int) -> Reply:
    def reply(exchange: Exchange) -> None:
        vectors: list[Any] = [vector_of(text, dimension) for text in exchange.asked.texts]
        exchange.send(200, answer_of(vectors))

    return reply


def status(code: int, body: bytes = b"{}", **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(code, body, named)


def saying(body: bytes) -> Reply:
    return status(200, body)


def with_vectors(make: Callable[[list[str]], list[Any]]) -> Reply:
    return lambda exchange: exchange.send(200, answer_of(make(exchange.asked.texts)))


def truncated(exchange: Exchange) -> None:
    body = answer_of([vector_of(text, 8) for text in exchange.asked.texts])
    exchange.send(200, body[: len(body) // 2], length=len(body))


def silent(exchange: Exchange) -> None:
    """Say nothing until the test is over."""
    exchange.close_connection = True
    exchange.server.release.wait()


def hanging_up(exchange: Exchange) -> None:
    exchange.close_connection = True


def unless_longer_than(limit: int, dimension: int) -> Reply:
    """Refuse what a small model refuses: too many characters in one request."""

    def reply(exchange: Exchange) -> None:
        if sum(map(len, exchange.asked.texts)) > limit:
            exchange.send(400, b'{"error": {"code": "context_length_exceeded", "message": "too long"}}')
        else:
            well(dimension)(exchange)

    return reply
