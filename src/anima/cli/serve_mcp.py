"""The verb that serves a home to agents over MCP: mcp.

Promise: standard output belongs to the protocol, so everything said here goes to standard error; the scope must be
told; over HTTP nothing is answered without the token. The protocol's library is imported only when this verb runs.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anima.cli.show import AgentOption, HomeOption, SenderOption, SetOption, inert, open_home, whisper
from anima.errors import BadArguments, Damaged, MissingExtra
from anima.model import Scope

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.applications import Starlette

    from anima.mcp import Visitor

TOKEN = "ANIMA_MCP_TOKEN"
LEAST_TOKEN = 32  # characters
PATH = "/mcp"


def add_to(app: typer.Typer) -> None:
    app.command("mcp")(mcp)


def mcp(
    scope: Annotated[
        str,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help=f"Who is listening: {', '.join(Scope)}. It must be told, and holds for every caller.",
            autocompletion=lambda: [scope.value for scope in Scope],
        ),
    ],
    sender: SenderOption = None,
    agent: AgentOption = None,
    approve_here: Annotated[
        bool,
        typer.Option(
            "--approve-here",
            help="Let the person at this client approve changes in its forms; only if no agent answers them.",
        ),
    ] = False,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP on 127.0.0.1 instead.")] = False,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="For --http: the port; 0 takes a free one.")] = 8765,
    home: HomeOption = None,
    set_: SetOption = None,
) -> None:
    """Let an agent live in the home over MCP: on standard input and output, or over HTTP on this machine.

    \b
    anima mcp --scope main --home ~/aria
    anima mcp --scope main --approve-here --home ~/aria
    ANIMA_MCP_TOKEN=… anima mcp --scope group --http --port 8765
    """
    listening = Scope.parse(scope)
    if approve_here and (http or listening is not Scope.MAIN):
        raise BadArguments(
            "--approve-here is for --scope main on standard input and output; elsewhere whoever asks could answer",
            hint="the owner approves with anima approve, or on the page",
        )
    faces = _faces()
    with open_home(home, set_, agent) as opened:
        visitor = faces.Visitor(home=opened, scope=listening, sender=sender, key="mcp")
        if http:
            _serve_http(visitor, port)
        else:
            asyncio.run(faces.serve_stdio(visitor, approve_here=approve_here))


def _faces() -> Any:
    """The part that speaks the protocol. Raises MissingExtra where its library is not installed."""
    try:
        import uvicorn  # noqa: F401

        import anima.mcp as faces
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("anima"):
            raise
        raise MissingExtra("serve", "the MCP server") from error
    return faces


def _token() -> tuple[str, bool]:
    """The token that callers must show, and whether it was made just now."""
    given = os.environ.get(TOKEN)
    if given is None:
        return secrets.token_urlsafe(32), True
    if len(given) < LEAST_TOKEN:
        raise BadArguments(f"{TOKEN} is too short to be a secret; it has at least {LEAST_TOKEN} characters")
    return given, False


def _serve_http(visitor: Visitor, port: int) -> None:
    import socket

    import uvicorn

    token, is_new = _token()
    # Named as TCP, because asyncio sends small answers without delay only on sockets that say so.
    with socket.socket(proto=socket.IPPROTO_TCP) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind(("127.0.0.1", port))
            listening.listen(1024)  # whoever reads the address may come at once
        except OSError as error:
            raise Damaged(f"port {port} cannot be had: {error.strerror}", hint="name another with --port") from None
        whisper(f"anima: {inert(visitor.scope)} at http://127.0.0.1:{listening.getsockname()[1]}{PATH}")
        whisper(
            f"       Authorization: Bearer {token if is_new else f'…  (from {TOKEN})'}"
            + (f"   (new; set {TOKEN} to keep one)" if is_new else "")
        )
        settings = uvicorn.Config(
            _app(visitor, token), log_config=None, access_log=False, timeout_graceful_shutdown=3, server_header=False
        )
        server = uvicorn.Server(settings)

        def stop(number: int, frame: object) -> None:
            server.should_exit = True

        # The server raises a signal again when it is done with it, and that must not keep the home from being closed.
        for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(name, stop)
        server.run(sockets=[listening])


def _app(visitor: Visitor, token: str) -> Starlette:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.routing import Route

    from anima.mcp import asgi_app

    wanted = f"Bearer {token}".encode()

    def who(request: Request) -> Visitor | None:
        shown = request.headers.get("authorization", "").encode("utf-8", "surrogatepass")
        return visitor if secrets.compare_digest(shown, wanted) else None

    endpoint = asgi_app(who)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with endpoint.running():
            yield

    return Starlette(routes=[Route(PATH, endpoint=endpoint)], lifespan=lifespan)
