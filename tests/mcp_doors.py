"""The doors to a home over MCP, for tests: the real client, over standard streams and HTTP, in both eras."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from anima import Home, Scope
from anima.mcp import Visitor, Visits, asgi_app, server
from mcp import Client, StdioServerParameters

SOURCE = str(Path(__file__).parent.parent / "src")
ERAS = {"handshake": "legacy", "stateless": "2026-07-28"}
# Where the owner said that a person answers the forms: in this process, which is quick, and in one of its own.
ASKED = [*(("here", era) for era in ERAS), ("stdio --approve-here", "handshake")]
DOORS = [(way, era) for way in ("stdio", "http") for era in ERAS]
TOKEN = "t" * 43
Ask = Callable[[Any, Any], Coroutine[Any, Any, Any]]
Who = Callable[[Request], Visitor | None]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCE}


def command(folder: Path, scope: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "anima", "mcp", "--scope", scope, "--home", str(folder), *more]


@asynccontextmanager
async def served(who: Who) -> AsyncIterator[str]:
    """The address of an endpoint that a server of this process serves on loopback."""
    endpoint = asgi_app(who)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with endpoint.running():
            yield

    app = Starlette(routes=[Route("/mcp", endpoint=endpoint)], lifespan=lifespan)
    settings = uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1)
    program = uvicorn.Server(settings)
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.bind(("127.0.0.1", 0))
        running = asyncio.ensure_future(program.serve(sockets=[listening]))
        while not program.started:
            await asyncio.sleep(0)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        finally:
            program.should_exit = True
            await running


@asynccontextmanager
async def http_client(
    address: str, token: str = TOKEN, *, era: str = "stateless", ask: Ask | None = None, **more: Any
) -> AsyncIterator[Client]:
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as web:
        way = streamable_http_client(address, http_client=web)
        async with Client(way, mode=ERAS[era], elicitation_callback=ask, **more) as client:
            yield client


@asynccontextmanager
async def visiting(
    folder: Path, door: tuple[str, str], *, scope: str = "main", sender: str | None = None, ask: Ask | None = None
) -> AsyncIterator[Client]:
    """A client inside, by one of the doors."""
    (way, *flags), era = door[0].split(), door[1]
    if way == "stdio":
        with Home.open(folder) as home:
            home.trust()  # whoever made it had a configuration of their own
        program, *arguments = command(folder, scope, *(["--sender", sender] if sender else []), *flags)
        started = StdioServerParameters(command=program, args=arguments, env=environment())
        async with Client(started, mode=ERAS[era], elicitation_callback=ask) as client:
            yield client
        return
    with Home.open(folder) as home:
        visitor = Visitor(home=home, scope=Scope.parse(scope), sender=sender, key="test")
        if way == "here":
            visits = Visits()
            made = server(visits, lambda ctx: visitor, approve_here=True)
            async with Client(made, mode=ERAS[era], elicitation_callback=ask) as client:
                yield client
            await visits.close()
            return
        async with (
            served(lambda request: bearer(request, {TOKEN: visitor})) as address,
            http_client(address, era=era, ask=ask) as client,
        ):
            yield client


def bearer(request: Request, known: dict[str, Visitor]) -> Visitor | None:
    return known.get(request.headers.get("authorization", "").removeprefix("Bearer "))
