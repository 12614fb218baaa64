"""The doors by which an agent comes to a home, for attacks: each is asked the same, and tells everything that it says.

Real things: a session in this process, `anima mcp` on standard streams, and the served application on a socket with an
agent's token, by MCP in both eras and by the routes of the API. An agent called `CLEAN` counts as clean where the owner's
own configuration says so (`call_clean`); a session in this process is clean by itself.
"""

from __future__ import annotations

import http.client
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.shared.exceptions import MCPError

from anima import Home, HomeError, Scope
from anima.cli.serve import _guest
from anima.testing import Clock
from anima.web.serve import create_app
from mcp import Client, StdioServerParameters
from mcp_doors import ERAS, command, environment, http_client
from serving import Desk, running

DOORS = ("python", "stdio", "mcp", "mcp-stateless", "token")
CLEAN = "phone"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who listens at a door, and what the owner calls the agent that comes in by it."""

    scope: Scope
    sender: str | None = None
    name: str = "agent"


class Door(Protocol):
    """An agent inside. What is asked is answered with everything that its answer tells, an error's sentence included."""

    def told(self, tool: str, /, **given: Any) -> str: ...
    def prompt(self) -> str: ...
    def listed(self) -> str: ...
    def read(self, path: str) -> str: ...


def call_clean(*names: str) -> None:
    """The owner says in their own configuration that they call these agents clean."""
    folder = Path(os.environ["ANIMA_CONFIG"])
    folder.mkdir(exist_ok=True)
    (folder / "owner.toml").write_text(f"clean_agents = {json.dumps(names)}\n", encoding="utf-8")


@contextmanager
def opened(door: str, folder: Path, caller: Caller) -> Iterator[Any]:
    """An agent that came in by a door to the home in a folder."""
    with entered(door, folder, caller) as enter, enter() as inside:
        yield inside


@contextmanager
def entered(door: str, folder: Path, caller: Caller) -> Iterator[Callable[[], AbstractContextManager[Any]]]:
    """A door that an agent comes in by as often as it likes, each time to begin a conversation of its own."""
    if door == "python":
        with Home.open(folder, clock=Clock()) as home:
            yield lambda: _here(home, caller)
    elif door == "stdio":
        with Home.open(folder) as home:
            home.trust()
        more = ["--as", caller.name, *(["--sender", caller.sender] if caller.sender else [])]
        program, *arguments = command(folder, str(caller.scope), *more)
        started = StdioServerParameters(command=program, args=arguments, env=environment())
        yield lambda: _client(Client(started, mode=ERAS["handshake"]))
    else:
        with Home.open(folder, clock=Clock()) as home:
            desk = Desk(home, home.clock)
            token = desk.token(str(caller.scope), name=caller.name, sender=caller.sender)
            with running(create_app(home, keyring=desk.keyring, mcp=_guest())) as port:
                era, address = "stateless" if "stateless" in door else "handshake", f"http://127.0.0.1:{port}/mcp"
                yield lambda: _token(port, token) if door == "token" else _client(http_client(address, token, era=era))


@contextmanager
def _here(home: Home, caller: Caller) -> Iterator[_Python]:
    with home.session(scope=caller.scope, sender=caller.sender) as session:
        yield _Python(session)


@contextmanager
def _token(port: int, token: str) -> Iterator[_Token]:
    inside = _Token(port, token)
    inside.asked("POST", "agent/session")
    yield inside


@contextmanager
def _client(way: AbstractAsyncContextManager[Client]) -> Iterator[_Mcp]:
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(way) as client:
        yield _Mcp(portal, client)


def said(answer: object) -> str:
    return json.dumps(without_times(answer), ensure_ascii=False, sort_keys=True, default=str)


def without_times(found: Any) -> Any:
    """When a document was written, the disk says; no two homes were written in the same moment."""
    if isinstance(found, dict):
        return {key: without_times(value) for key, value in found.items() if key != "last_modified"}
    return [without_times(each) for each in found] if isinstance(found, list) else found


class _Python:
    def __init__(self, session: Any) -> None:
        self._session = session

    def _tried(self, work: Callable[[], object]) -> str:
        try:
            return said(work())
        except HomeError as error:
            return f"{type(error).__name__}: {error} {error.hint}"

    def told(self, tool: str, /, **given: Any) -> str:
        return self._tried(lambda: self._session.call(tool, given))

    def prompt(self) -> str:
        shown = self._session.prompt
        return f"{shown.text}\n{[str(line) for line in shown.manifest]}"

    def listed(self) -> str:
        return self._tried(lambda: [each[:2] for each in self._session.documents()])

    def read(self, path: str) -> str:
        return self._tried(lambda: self._session.read(path))


class _Mcp:
    def __init__(self, portal: BlockingPortal, client: Client) -> None:
        self._portal, self._client = portal, client

    def _tried(self, work: Callable[..., Any], *given: Any) -> str:
        try:
            return said(self._portal.call(work, *given).model_dump(mode="json"))
        except (MCPError, ValueError) as error:
            return f"{type(error).__name__}: {error}"

    def told(self, tool: str, /, **given: Any) -> str:
        return self._tried(self._client.call_tool, tool, given)

    def prompt(self) -> str:
        return self._tried(self._client.get_prompt, "wake")

    def listed(self) -> str:
        return self._tried(self._client.list_resources)

    def read(self, path: str) -> str:
        return self._tried(self._client.read_resource, f"home:///{quote(path)}")


class _Token:
    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token

    def asked(self, method: str, path: str, given: object = None) -> str:
        head = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        with closing(http.client.HTTPConnection("127.0.0.1", self._port, timeout=180)) as line:
            line.request(method, f"/api/v1/{path}", None if given is None else json.dumps(given), head)
            answer = line.getresponse()
            return f"{answer.status} {said(json.loads(answer.read()))}"

    def told(self, tool: str, /, **given: Any) -> str:
        return self.asked("POST", f"tools/{quote(tool)}", given)

    def prompt(self) -> str:
        return self.asked("GET", "agent/prompt")

    def listed(self) -> str:
        return self.asked("GET", "files")  # the owner's route: there is none of an agent's

    def read(self, path: str) -> str:
        return self.asked("GET", f"files/{quote(path)}")
