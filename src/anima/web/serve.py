"""Serving: the application of one home, or of all of a database; a socket, the server on it, and a clean end; and what homes do
while nobody asks, the one of this machine in rounds (CHORES), those of a database when they are woken.

Promise: what begins with an application ends with it, in the opposite order, but the home, which whoever opened it closes. Only
127.0.0.1 is bound, unless another address is named. A signal ends streams and lets answers finish; a server of many tells its
balancer first, and answers on for a while. A chore or a home that fails is tried later and stops no other; of a database each is
done once, under a lease whose number only rises. No address is logged. Not here: what a route answers (api, talk, pages).
"""

from __future__ import annotations

import logging
import queue
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

import uvicorn
from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from anima import __version__
from anima.agent.chats import Chats
from anima.agent.schedule import state_of
from anima.errors import BadArguments, HomeError
from anima.home import Home
from anima.web import api, guard, pages, talk
from anima.web.bodies import given
from anima.web.draw import Drawing
from anima.web.guard import MEDIA, Guard, Problem, RateLimits, Turned, nothing_there, of_error, of_request, under
from anima.web.homes import HOST, SOON, Fleetwise, ManyHomes, OneHome, Whose, await_threads
from anima.web.served import Bulletin, LiveChats, Served
from anima.web.tokens import Keyring

if TYPE_CHECKING:
    from anima.home.folders import Fleet


log = logging.getLogger("anima.web")
HERE = Path(__file__).parent
_AGAIN, _RITUALS = 30.0, 20.0  # seconds: after a failure, between two rounds
LATER, DAY = 600.0, 86_400.0  # seconds until a home of a database is woken: a session may be left, nothing waits
ASK, SPAN = 5.0, 120.0  # seconds between two questions whose time has come; for which nobody else is given a home
WOKEN = 4  # threads in which homes of a database do what they do by themselves
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
    chats: LiveChats | None = None,
    chores: Sequence[Chore] = (),
) -> FastAPI:
    """The web face of a home. `mcp` answers under /mcp, and knows from `guard.who_of(scope)` who asks; `chores` run
    while it is up; `chats`, which may be brought along, end with it."""
    keyring, limits = keyring or Keyring(home.credentials, clock=home.clock), limits or RateLimits()
    chats, bulletin = chats or Chats(home), Bulletin(home)
    served = Served(home, keyring=keyring, limits=limits, bulletin=bulletin, chats=chats, hosted=False)
    rounds = Rounds(home, bulletin, chores)
    beside = [(lambda: None, served.close), (bulletin.start, bulletin.stop), (rounds.start, rounds.stop)]
    app = app_of(OneHome(served), beside, mcp)
    app.state.served = served
    return app


def app_of(homes: OneHome | ManyHomes, beside: Sequence[Beside], mcp: Mounted | None) -> FastAPI:
    """The web face of homes. `beside` begins with it, in this order, and ends with it."""

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

    app = FastAPI(
        title="anima",
        version=__version__,
        summary="A home for an AI agent",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        telemetry=_TOLD,
        lifespan=life,
    )
    drawing = Drawing(homes.clock, pages.all_pages(), cookie=homes.cookie, hosted=isinstance(homes, ManyHomes))
    app.state.homes, app.state.drawing = homes, drawing
    for router in (api.router, talk.owners, talk.agents, talk.openai, pages.router()):
        app.include_router(router)
    app.mount("/static", StaticFiles(directory=HERE / "static"), name="static")
    for kind in (HomeError, RequestValidationError, HTTPException, Turned):
        app.add_exception_handler(kind, _failed)
    plain = app.openapi
    app.openapi = lambda: app.openapi_schema or _described(plain())  # type: ignore[method-assign]
    app.add_middleware(Guard, homes=homes, shell=drawing.shell(), mcp=mcp)
    return app


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
        answer, said = Problem(error.status_code, headers=error.headers), str(error.detail)
        if error.status_code == 404:
            answer, said = nothing_there(), "There is no such page."
        elif error.status_code == 400:
            answer = of_request([{"loc": ("body",), "msg": "it cannot be read as JSON"}])
    if request.url.path.startswith("/api/") or under(request.url.path, "/v1"):
        return answer
    drawing: Drawing = request.app.state.drawing
    context = {"title": "Not here", "said": said, "hint": hint}
    return drawing.page(request, "error.html", context, status=answer.status_code)


def _described(schema: dict[str, Any]) -> dict[str, Any]:
    """Says of every route that it needs a credential, and that its errors are problem details."""
    components = schema.setdefault("components", {})
    components["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    components.setdefault("schemas", {})["Problem"] = given("Problem").model_json_schema(
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


# -- the server --------------------------------------------------------------------------------------------------------

PORT, _NEARBY = 4747, 20  # and how many after it are tried
_GRACE = 5


def bound(port: int | None = None, host: str = HOST) -> socket.socket:
    """A listening socket on this machine: on `port`, on any free one (0), or on ours or one nearby when none is named."""
    wanted = range(PORT, PORT + _NEARBY) if port is None else (port,)
    for number in wanted:
        # Named as TCP, because asyncio asks only such sockets not to wait (40 ms) for more to send.
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, number))
            made.listen(1024)
            made.set_inheritable(False)
            return made
        except (OSError, OverflowError):
            made.close()
    raise BadArguments(
        f"port {wanted[0]} is taken" + (" and so are those after it" if port is None else ""),
        hint="end the other program, or say --port 0 for any free port; where it serves this home, anima token link opens it",
    )


class _Server(uvicorn.Server):
    """uvicorn, which ends streams when it is told to end, and gives the signal to nobody else. With `drain`, it answers for
    so many seconds more, unless a second signal comes."""

    def __init__(self, config: uvicorn.Config, homes: OneHome | ManyHomes, drain: float) -> None:
        super().__init__(config)
        self._homes, self._drain = homes, drain

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if isinstance(self._homes, ManyHomes) and self._drain and not self._homes.is_draining:
            self._homes.is_draining = True
            later = threading.Timer(self._drain, self._leave, (sig, None))
            later.daemon = True
            later.start()
        else:
            self._leave(sig, frame)

    def _leave(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        threading.Thread(target=self._homes.hush, daemon=True).start()  # not in a signal's frame

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def server_for(app: FastAPI, *, drain: float = 0.0) -> uvicorn.Server:
    """A server of an application, for whoever brings a socket: `server.run(sockets=[bound()])`."""
    # A client's mistakes are no warnings of ours: any page of any origin could fill the log with them.
    config = uvicorn.Config(
        app,
        log_config=None if logging.getLogger().handlers else uvicorn.config.LOGGING_CONFIG,
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=30,
        proxy_headers=False,
        h11_max_incomplete_event_size=65_536,
    )
    return _Server(config, app.state.homes, drain)


def serve(home: Home, *, keyring: Keyring, ready: Callable[[str], None], port: int | None = None, **how: Any) -> None:
    """Serves a home until a signal comes. `ready` is told where; `how` is what `create_app` takes."""
    with bound(port) as listening:
        keyring.owner_token()
        url = f"http://{HOST}:{listening.getsockname()[1]}"
        app = create_app(home, keyring=keyring, **how)
        with keyring.serving(url):
            ready(url)
            server_for(app).run(sockets=[listening])


def fleet_app(fleet: Fleet, env: Mapping[str, str], how: Fleetwise, *, mcp: Mounted | None = None) -> FastAPI:
    homes = ManyHomes(fleet, env, how, left=mcp.left if mcp else lambda home: None, chats=Chats)
    waking = Waking(homes, fleet)
    beside = [
        (homes.start, homes.stop),
        (waking.start, waking.stop),
        (lambda: None, guard.export(env, held=homes.count)),
    ]
    return app_of(homes, beside, mcp)


def serve_fleet(
    fleet: Fleet, env: Mapping[str, str], how: Fleetwise, *, mcp: Mounted | None, ready: Callable[[str], None]
) -> None:
    """Serves the homes of a database until a signal comes. `ready` is told where. The process is for nothing else."""
    with bound(how.port, how.host) as listening:
        fleet.hide()
        app = fleet_app(fleet, env, how, mcp=mcp)
        ready(f"http://{how.host}:{listening.getsockname()[1]}")
        server_for(app, drain=how.drain).run(sockets=[listening])


# -- rounds ------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """Work that goes on beside the server. `work` returns when `stop` is set, or earlier to be called again."""

    name: str
    every: float  # seconds between two calls
    work: Callable[[Home, Bulletin, threading.Event], None]


class Rounds:
    def __init__(self, home: Home, bulletin: Bulletin, chores: Sequence[Chore]) -> None:
        self._home, self._bulletin, self._chores = home, bulletin, chores
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for chore in self._chores:
            thread = threading.Thread(target=self._go, args=(chore,), name=f"anima-{chore.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=10)

    def _go(self, chore: Chore) -> None:
        while not self._stop.is_set():
            pause = max(chore.every, _AGAIN)
            try:
                chore.work(self._home, self._bulletin, self._stop)
                pause = chore.every
            except (HomeError, OSError) as error:
                log.warning("%s: %s; trying again later", chore.name, error)
            except Exception:
                log.exception("%s failed; trying again later", chore.name)
            self._stop.wait(pause)


def _watch(home: Home, bulletin: Bulletin, stop: threading.Event) -> None:
    """Keeps the index in step with edits from outside, and tells of them."""
    for report in home.index.watch(stop):
        bulletin.tell("files", {"put": report.put, "dropped": report.dropped})


def _flush(home: Home, bulletin: Bulletin, stop: threading.Event) -> None:
    """What was said in a session that a crash ended, or that its host forgot, reaches the log all the same."""
    if any(flushed.lines for flushed in home.sessions.flush_idle()):
        bulletin.tell("files", {"put": 1, "dropped": 0})


def _dream(home: Home, bulletin: Bulletin, stop: threading.Event) -> None:
    swept = home.dream_if_due()
    if swept is not None and swept.status == "dreamed":
        bulletin.tell("dream", {"change": swept.change, "kept": len(swept.plan.promotions) if swept.plan else 0})


def _snapshot(home: Home, bulletin: Bulletin, stop: threading.Event) -> None:
    """A snapshot whose hour has come, and those that are too old go."""
    made = home.snapshots.if_due()
    if made is not None and made.fresh:
        bulletin.tell("snapshot", {"name": made.name, "size": made.size})


def _rituals(home: Home, bulletin: Bulletin, stop: threading.Event) -> None:
    """What the agent does by itself, once its owner switched that on; nothing heavy is imported before."""
    starting = True
    while not stop.is_set():
        if state_of(home.site.store).on:
            from anima.agent.rituals import Rituals

            for done in Rituals(home).round(starting=starting):
                bulletin.tell("ritual", {"name": done.ritual, "status": done.status})
        starting = False
        stop.wait(_RITUALS)


CHORES: tuple[Chore, ...] = (
    Chore(name="watch", every=1, work=_watch),
    Chore(name="commit", every=60, work=lambda home, bulletin, stop: home.past.commit()),  # of lines that were appended
    Chore(name="flush", every=600, work=_flush),
    Chore(name="dream", every=60, work=_dream),
    Chore(name="snapshot", every=60, work=_snapshot),
    Chore(name="rituals", every=_RITUALS, work=_rituals),
)


class Waking:
    """The threads in which homes of a database do what they do by themselves. Lives from `start` to `stop`."""

    def __init__(self, homes: ManyHomes, fleet: Fleet) -> None:
        self._homes, self._fleet = homes, fleet
        self._stop, self._due = threading.Event(), queue.Queue[Whose | None](2 * WOKEN)  # None: it is over
        self._threads = [threading.Thread(target=self._ask, name="anima-waking", daemon=True)]
        self._threads += [threading.Thread(target=self._work, name="anima-woken", daemon=True) for _ in range(WOKEN)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        with suppress(queue.Full):  # what waits there ends a thread as well
            for _ in range(WOKEN):
                self._due.put_nowait(None)
        await_threads(self._threads)

    def _ask(self) -> None:
        while not self._stop.wait(ASK):
            try:
                for row in self._fleet.woken(WOKEN - self._due.qsize(), SPAN):
                    self._due.put(Whose(*row))
            except HomeError as error:
                log.warning("nobody knows whose time has come: %s; trying again", error)

    def _work(self) -> None:
        while (woken := self._due.get()) is not None and not self._stop.is_set():
            try:
                self.look(woken)
            except Exception as error:
                log.error("a home could not be looked at: %s; trying again later", error, exc_info=True)

    def look(self, woken: Whose) -> None:
        """What a home has to do now; and when it is looked at next."""
        with self._homes.holding(woken) as served:
            home = served.home
            for chore in (home.past.commit, home.sessions.flush_idle, home.dream_if_due):
                try:
                    chore()
                except HomeError as error:
                    log.warning("a home could not do what it had to: %s; trying again later", error)
            is_on = self._rituals(served, woken)
            until = (night - home.clock()).total_seconds() if (night := home.dreams.coming()) else DAY
            is_used = self._homes.is_used(woken.place)
        following = SOON if is_on else LATER if is_used else max(LATER, min(until, DAY))
        self._fleet.wake(woken.tenant, woken.agent, following, anew=True)

    def _rituals(self, served: Served, woken: Whose) -> bool:
        """Runs what is due of a schedule, with no more tokens than its tenant has left; whether there is one."""
        if not state_of(served.home.site.store).on:
            return False
        from anima.agent.rituals import Rituals

        used, most = self._fleet.count(woken.tenant, {}).get("tokens", (0, None))
        for done in Rituals(served.home, left=None if most is None else max(0, most - used)).round():
            self._fleet.count(woken.tenant, {"tokens": done.tokens})
            served.bulletin.tell("ritual", {"name": done.ritual, "status": done.status})
        return True
