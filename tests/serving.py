"""What the tests of the web face share: a home, its application, clients of each kind, and a server on a real socket."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.testclient import TestClient

from anima import Home, Scope
from anima.testing import Clock
from anima.web.guard import KEY, RateLimits
from anima.web.serve import bound, create_app, server_for
from anima.web.tokens import Keyring

BASE = "http://127.0.0.1:4747"
PRODUCT = str(7919 * 7907)  # what hostile text in braces comes to, should a template ever work it out


@dataclass
class Desk:
    """A served home, and everybody who may come to it."""

    home: Home
    clock: Clock
    limits: RateLimits = field(default_factory=RateLimits)

    def __post_init__(self) -> None:
        self.keyring = Keyring(self.home.credentials, clock=self.home.clock)
        self.app: FastAPI = create_app(self.home, keyring=self.keyring, limits=self.limits)

    def client(self, **headers: str) -> TestClient:
        return TestClient(self.app, base_url=BASE, headers=headers, follow_redirects=False)

    @property
    def owner(self) -> TestClient:
        return self.client(Authorization=f"Bearer {self.keyring.owner_token()}")

    def token(self, scope: str, **more: Any) -> str:
        more = {"name": scope, "agent": self.home.agent, "lifetime": timedelta(days=1), **more}
        return self.keyring.make("agent", scope=Scope.parse(scope), **more)[1]

    def agent(self, scope: str, **more: Any) -> TestClient:
        return self.client(Authorization=f"Bearer {self.token(scope, **more)}")

    @property
    def page(self) -> TestClient:
        """A browser that came in by a code, and writes as our script does."""
        client = self.client(Origin=BASE)
        client.headers[KEY] = client.post("/login", data={"code": self.keyring.code()}).json()["key"]
        return client


def desk_in(folder: Path, *, limits: RateLimits | None = None) -> Desk:
    clock = Clock()
    home = Home.create(folder / "aria", name="Aria", emoji="🌿", clock=clock)
    return Desk(home, clock, limits or RateLimits())


@contextmanager
def running(app: FastAPI) -> Iterator[int]:
    """The application on a socket of this machine; gives its port."""
    listening, server = bound(0), server_for(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    try:
        yield int(listening.getsockname()[1])
    finally:
        server.handle_exit(15, None)
        thread.join(timeout=120)
        listening.close()
        assert not thread.is_alive()


class Stream:
    """Server-sent events as they come."""

    def __init__(self, port: int, token: str, *, after: int | None = None, path: str = "/api/v1/events") -> None:
        self._line = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        headers = {"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": str(after)} if after is not None else {})
        self._line.request("GET", path, headers=headers)
        self.answer = self._line.getresponse()
        if self.answer.status == 200:
            assert self._block() == {"retry": "2000"}

    def next(self) -> tuple[str, dict[str, Any], int]:
        """The next event: its kind, what it says, and its number."""
        while True:
            block = self._block()
            if "event" in block:
                return block["event"], json.loads(block["data"]), int(block["id"])

    def until(self, kind: str) -> dict[str, Any]:
        while True:
            found, data, _ = self.next()
            if found == kind:
                return data

    def _block(self) -> dict[str, str]:
        found: dict[str, str] = {}
        while line := self.answer.readline().decode().rstrip("\n"):
            name, _, value = line.partition(": ")
            if name:
                found[name] = value
        return found

    def close(self) -> None:
        self.answer.close()
        self._line.close()
