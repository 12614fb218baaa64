"""The application: guard, API, pages and the threads beside them, for one home or for all of a database.

Promise: `create_app` only puts together; what begins with the server ends with it, in the opposite order. The home is
not closed here: whoever opened it closes it. Not here: sockets and signals (serve).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from anima import __version__
from anima.errors import HomeError
from anima.home import Home
from anima.web import api, bodies, completions, pages, settings, talking
from anima.web.chores import Chore, Rounds, on_channels
from anima.web.draw import Drawing
from anima.web.events import Bulletin
from anima.web.guard import Guard, RateLimits, Turned
from anima.web.homes import ManyHomes, OneHome
from anima.web.problems import MEDIA, is_openai, nothing_there, of_error, of_request, problem
from anima.web.served import Served
from anima.web.tokens import Keyring

HERE = Path(__file__).parent
THREADS = 12  # more only wait for each other, and each keeps memory of its own
# Of requests the framework may tell how many there are and how long they take; its traces and logs would hold paths,
# queries and messages of errors, whoever listens in the environment.
_TOLD: Any = {"tracing": False, "operation_spans": False, "logs": False, "auto_configure": False}
PROBLEMS = (400, 401, 403, 404, 405, 412, 413, 415, 421, 423, 429, 500, 501)


class Mounted(Protocol):
    """An application that is served beside ours, behind the same guard, while it runs."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def running(self) -> AbstractAsyncContextManager[None]: ...
    def left(self, home: Home) -> None: ...


Beside = tuple[Callable[[], object], Callable[[], object]]  # what begins with an application, and what ends with it


def create_app(
    home: Home,
    *,
    keyring: Keyring | None = None,
    limits: RateLimits | None = None,
    mcp: Mounted | None = None,
    chores: Sequence[Chore] = (),
) -> FastAPI:
    """The web face of a home. `mcp` answers under /mcp, and knows from `guarding.who_of(scope)` who asks; `chores` run
    while it is up."""
    keyring, limits, bulletin = keyring or Keyring.of(home), limits or RateLimits(), Bulletin(home)
    served = Served(home, keyring=keyring, limits=limits, bulletin=bulletin)
    rounds = Rounds(home, bulletin, [*chores, *on_channels(served.chats)] if chores else ())
    beside = [(lambda: None, served.close), (bulletin.start, bulletin.stop), (rounds.start, rounds.stop)]
    app = app_of(OneHome(served), limits=limits, clock=home.clock, beside=beside, mcp=mcp)
    app.state.served = served
    return app


def app_of(
    homes: OneHome | ManyHomes,
    *,
    limits: RateLimits,
    clock: Callable[[], datetime],
    beside: Sequence[Beside],
    mcp: Mounted | None,
    url: str = "",
) -> FastAPI:
    """The web face of homes. `beside` begins with it, in this order, and ends with it."""
    app = FastAPI(
        title="anima",
        version=__version__,
        summary="A home for an AI agent",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        telemetry=_TOLD,
        lifespan=_living(beside, mcp),
    )
    drawing = Drawing(clock, pages.all_pages(), cookie=homes.cookie, hosted=isinstance(homes, ManyHomes))
    app.state.homes, app.state.drawing = homes, drawing
    app.include_router(api.router)
    app.include_router(talking.router)
    app.include_router(settings.router)
    app.include_router(api.agents)
    app.include_router(completions.router)
    app.include_router(pages.router())
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    for kind in (HomeError, RequestValidationError, HTTPException, Turned):
        app.add_exception_handler(kind, _failed)
    plain = app.openapi
    app.openapi = lambda: app.openapi_schema or _described(plain())  # type: ignore[method-assign]
    app.add_middleware(Guard, homes=homes, limits=limits, shell=drawing.shell(), mcp=mcp, url=url)
    return app


def _living(beside: Sequence[Beside], mcp: Mounted | None) -> Callable[[FastAPI], Any]:
    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = THREADS
        async with AsyncExitStack() as stack:
            for start, stop in beside:
                await run_in_threadpool(start)
                stack.push_async_callback(run_in_threadpool, stop)
            if mcp is not None:
                await stack.enter_async_context(mcp.running())
            yield

    return life


# -- errors -----------------------------------------------------------------------------------------------------------------


async def _failed(request: Request, error: Exception) -> Response:
    """An error as a problem of the API, or on a page."""
    hint, homes = None, request.app.state.homes
    if isinstance(error, HomeError) and isinstance(homes, ManyHomes):
        error = homes.told(error, request.scope.get("state", {}).get("served"))
    if isinstance(error, Turned):
        return error.answer
    if isinstance(error, HomeError):
        answer, said, hint = of_error(error), str(error), error.hint
    elif isinstance(error, RequestValidationError):
        answer, said = of_request(error.errors()), "the request makes no sense"
    else:
        assert isinstance(error, HTTPException)
        answer, said = problem(error.status_code, headers=error.headers), str(error.detail)
        if error.status_code == 404:
            answer, said = nothing_there(), "There is no such page."
        elif error.status_code == 400:
            answer = of_request([{"loc": ("body",), "msg": "it cannot be read as JSON"}])
    if request.url.path.startswith("/api/") or is_openai(request.url.path):
        return answer
    drawing: Drawing = request.app.state.drawing
    context = {"title": "Not here", "said": said, "hint": hint}
    return drawing.page(request, "error.html", context, status=answer.status_code)


# -- OpenAPI ----------------------------------------------------------------------------------------------------------------


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    """Says of every route that it needs a credential, and that its errors are problem details."""
    components = schema.setdefault("components", {})
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    components.setdefault("schemas", {})["Problem"] = bodies.Problem.model_json_schema(
        ref_template="#/components/schemas/{model}"
    )
    content = {MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    components["responses"] = {"Problem": {"description": "What went wrong, and what to do", "content": content}}
    schema["security"] = [{"token": []}]
    for path in schema["paths"].values():
        for operation in path.values():
            responses = operation["responses"]
            responses.pop("422", None)
            if operation.get("requestBody") and "200" in responses:
                responses["202"] = {**responses["200"], "description": "It waits for the owner"}
            responses |= {str(status): {"$ref": "#/components/responses/Problem"} for status in PROBLEMS}
    for gone in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(gone, None)
    return schema
