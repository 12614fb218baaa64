"""MCP over streamable HTTP, as an ASGI application to run alone or to mount in another one.

Promise: a request with a foreign Host, a foreign Origin or the marks of another site is turned away before anything is
looked up, and one without a credential after that; who a credential is, is asked anew for every request, so one that
was taken back is gone at once. Not here: keeping credentials (whoever mounts this).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from anima.mcp.server import Context, server
from anima.mcp.visits import Visitor, Visits

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
OTHER_SITES = frozenset({"cross-site", "same-site"})
MOST_SESSIONS = 256
_VISITOR = "anima.visitor"


def _streams_may_flow() -> None:
    """A server that was told to stop in this process earlier left a mark that would end every stream of this one."""
    from sse_starlette.sse import AppStatus

    AppStatus.should_exit = False


class McpEndpoint:
    """The ASGI application. Serve it at one path with `Route("/mcp", endpoint=…)`, inside `async with endpoint.running()`."""

    def __init__(
        self, who: Callable[[Request], Visitor | None], *, hosts: Sequence[str], origins: Sequence[str]
    ) -> None:
        self._who = who
        self._visits = Visits()
        settings = TransportSecuritySettings(allowed_hosts=list(hosts), allowed_origins=list(origins))
        self._security = TransportSecurityMiddleware(settings)
        self._sessions = StreamableHTTPSessionManager(
            server(self._visits, _visitor), security_settings=settings, max_sessions=MOST_SESSIONS
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Once per endpoint. Leaving it ends every session; the homes stay open, they are the app's."""
        _streams_may_flow()
        try:
            async with self._sessions.run():
                yield
        finally:
            await self._visits.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        refused = await self._turned_away(request)
        visitor = None if refused else await self._visits.run(lambda: self._who(request))
        if refused is None and visitor is None:
            refused = Response("a credential is needed", 401, {"WWW-Authenticate": "Bearer"})
        if refused is not None or visitor is None:
            assert refused is not None
            await refused(scope, receive, send)
            return
        # The name by which the protocol's own sessions are kept apart is the credential's.
        user = AuthenticatedUser(AccessToken(token="", client_id=repr(visitor.place), scopes=[]))
        await self._sessions.handle_request({**scope, _VISITOR: visitor, "user": user}, receive, send)
        if request.method == "DELETE" and (name := request.headers.get("mcp-session-id")):
            await self._visits.run(lambda: self._visits.end(visitor, name))

    async def _turned_away(self, request: Request) -> Response | None:
        if request.headers.get("sec-fetch-site", "").strip().lower() in OTHER_SITES:
            return Response("a request from another site", 403)
        return await self._security.validate_request(request, is_post=request.method == "POST")


def asgi_app(
    who: Callable[[Request], Visitor | None], *, hosts: Sequence[str] = (), origins: Sequence[str] = ()
) -> McpEndpoint:
    """MCP for an app of yours. `who` looks at a request's headers and says whose it is, or None; it runs in a thread.

    `hosts` and `origins` are allowed beside this machine's own, such as `home.example.org` and
    `https://home.example.org`.
    """
    local = [form for name in LOOPBACK for form in (name, f"{name}:*")]
    return McpEndpoint(who, hosts=[*local, *hosts], origins=[*(f"http://{form}" for form in local), *origins])


def _visitor(ctx: Context) -> Visitor:
    assert ctx.request is not None
    found = ctx.request.scope[_VISITOR]
    assert isinstance(found, Visitor)
    return found
