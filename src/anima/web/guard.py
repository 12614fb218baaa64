"""The guard before everything: whoever does not get past it reaches no route; errors over HTTP, as problem details (RFC 9457); and what
a server of many homes tells of its requests: lines of JSON, and traces and metrics by OpenTelemetry where the environment names it.

Promise: only our own names are answered (another Host is 421: rebinding), no other origin's page gets in (403), who is not known
learns nothing (401, or the login), an agent's token reaches its own routes alone, bodies and rates have limits, every answer has
the headers that keep a page to itself, and whose home is reached says the credential alone. A browser's has two halves: the cookie,
which goes to every port of this machine and gets an empty shell, and the key, which only pages of our origin can read and send.
A problem is told in the error's own words, without a trace or what was sent. No text of a memory, no path of a document, no query and
no message of an error of others is told of a request: only the pattern of its route, its status and its tenant's number; of an error
its kind and where it arose; of a message, the words that stand in our source. OpenTelemetry is not imported without
OTEL_EXPORTER_OTLP_ENDPOINT. Not here: what a credential is (tokens), routes.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
import traceback
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from typing import Any, Protocol
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from anima.errors import HomeError, MissingExtra, Refused, StaleWrite, TooMany, printable
from anima.model import Receipt, digest_of
from anima.text import read_table
from anima.web.tokens import Pass, Tickets

log = logging.getLogger("anima.web")

HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
OPEN = ("/static/", "/login")
PROBES = ("/healthz", "/readyz")
FOR_AGENTS = ("/api/v1/tools", "/api/v1/agent", "/mcp", "/v1")
KEY = "x-anima-key"  # the header of the half that no cookie holds
_SMALL = 4_096  # bytes of a form before anybody is known
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_HEADERS: dict[str, str] = read_table("web", "headers")  # of every answer


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimits:
    """How much is too much. Rates are requests, or bytes, a second of one credential; twice as many may come in a burst."""

    body: int = 16 * 2**20
    agent_body: int = 2**19
    owner_rate: float = 2_000
    agent_rate: float = 200
    agent_bytes: float = 2**22
    agent_at_once: int = 16
    logins_a_minute: int = 20
    streams: int = 64


class Rate:
    """A measure of tokens that fills with time. Each name has its own."""

    def __init__(self, a_second: float, most: float, *, now: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._most, self._now = a_second, most, now
        self._held: dict[str, tuple[float, float]] = {}
        self._mutex = threading.Lock()

    def wait(self, name: str, much: int = 1) -> float:
        """Takes some; 0 when it may go on, else the seconds until it might."""
        with self._mutex:
            now = self._now()
            left, then = self._held.get(name, (self._most, now))
            left = min(self._most, left + (now - then) * self._rate)
            if left < much:
                return (much - left) / self._rate
            if len(self._held) > 10_000:
                self._held.clear()
            self._held[name] = (left - much, now)
            return 0.0


class Turned(Exception):
    def __init__(self, answer: Response) -> None:
        self.answer = answer


class Homes(Protocol):
    """The homes behind a guard, and who may come to them."""

    limits: RateLimits
    url: str  # where people reach them, if that is not this machine
    cookie: str  # the name of the page's: browsers share cookies between ports, so each server has its own
    tickets: Tickets

    async def find(self, secret: str) -> Pass | None: ...  # raises Turned
    async def named(self, id: str) -> Pass | None: ...
    async def ready(self) -> bool: ...
    def held(self, who: Pass) -> AbstractAsyncContextManager[Any]: ...  # its home, kept open meanwhile


class Guard:
    """Stands before an application. `mcp`, where there is one, answers everything under /mcp; `shell` is the page with
    nothing in it that a cookie gets."""

    def __init__(self, app: ASGIApp, *, homes: Homes, shell: Response, mcp: ASGIApp | None) -> None:
        limits = homes.limits
        self._app, self._homes, self._limits, self._mcp, self._shell = app, homes, limits, mcp, shell
        self._origin, self._name = homes.url.lower(), urlsplit(homes.url).netloc.lower()
        self._owners = Rate(limits.owner_rate, max(1, 2 * limits.owner_rate))
        self._agents = Rate(limits.agent_rate, max(1, 2 * limits.agent_rate))
        self._bytes = Rate(limits.agent_bytes, max(limits.agent_body, 2 * limits.agent_bytes))
        self._logins = Rate(limits.logins_a_minute / 60, limits.logins_a_minute)
        self._busy: Counter[str] = Counter()  # requests of each agent's that are under way

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)
        else:  # a WebSocket: there is none here
            await send({"type": "websocket.close", "code": 1008})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun, began = 0, time.monotonic()
        kept = "no-cache" if scope["path"].startswith("/static/") else "no-store"

        async def noted(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun, headers = message["status"], MutableHeaders(scope=message)
                for name, value in {**_HEADERS, "Cache-Control": kept}.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            if scope["path"] in PROBES:  # up, and open to more: told to anybody, and nothing else with it
                is_well = scope["path"] == PROBES[0] or await self._homes.ready()
                raise Turned(PlainTextResponse("well\n" if is_well else "not now\n", 200 if is_well else 503))
            replay = await self._let_in(scope, receive)
            if (who := scope.get("state", {}).get("who")) is None:  # the way in, and what stands there
                await self._app(scope, replay, noted)
                return
            async with self._room(who, scope), self._homes.held(who) as served:
                scope["state"]["served"] = served
                is_mcp = self._mcp is not None and under(scope["path"], "/mcp")
                await (self._mcp if is_mcp and self._mcp else self._app)(scope, replay, noted)
        except Turned as turned:
            await turned.answer(scope, receive, noted)
        except Exception as error:
            if not isinstance(error, HomeError):
                log.exception("an error of ours while answering %s", scope["method"])
            if begun:
                raise
            await (of_error(error) if isinstance(error, HomeError) else Problem(500))(scope, receive, noted)
        finally:
            if scope["path"] not in PROBES:
                _tell(scope, begun, time.monotonic() - began)

    @asynccontextmanager
    async def _room(self, who: Pass, scope: Scope) -> AsyncIterator[None]:
        """Room for one more request of an agent's, behind which other agents wait. A stream that only listens takes none."""
        name = "" if who.is_owner or (scope["method"] == "GET" and under(scope["path"], "/mcp")) else who.id
        if name and self._busy[name] >= self._limits.agent_at_once:
            raise Turned(_too_many("too many requests at once", 0))
        self._busy.update([name])  # on the loop alone
        try:
            yield
        finally:
            self._busy -= Counter([name])  # which keeps no zero of whoever has gone

    async def _let_in(self, scope: Scope, receive: Receive) -> Receive:
        """Checks a request from the outside in; its body is read only of who is known. Raises Turned."""
        headers, is_write = Headers(scope=scope), scope["method"] not in _SAFE
        is_own = len(headers.getlist("host")) == 1 and headers["host"].lower() == self._name != ""
        if not is_own:
            _check_host(headers)
        _check_origin(scope, headers, own=self._origin if is_own else "")
        is_open = scope["path"].startswith(OPEN)
        if is_open and is_write and self._logins.wait(""):
            raise Turned(Problem(429, "too many tries; wait a minute", headers={"Retry-After": "60"}))
        if not is_open:
            await self._check_pass(scope, headers)
        if not is_write:
            return receive
        is_agent = not is_open and not who_of(scope).is_owner
        most = _SMALL if is_open else self._limits.agent_body if is_agent else self._limits.body
        body = await _body(scope, headers, receive, most=most, whose=" of an agent's token" if is_agent else "")
        if is_agent and (wait := self._bytes.wait(who_of(scope).id, len(body))):
            raise Turned(_too_many("too many bytes in a short time", wait))
        is_told = False

        async def again() -> Message:
            nonlocal is_told
            if is_told:
                return await receive()
            is_told = True
            return {"type": "http.request", "body": body, "more_body": False}

        return again  # the body once more, then whatever comes: a client that goes away, mostly

    async def _check_pass(self, scope: Scope, headers: Headers) -> None:
        """Who is asking, and whether it is theirs to ask; noted in the scope as `who`."""
        who = await self._find(scope, headers)
        if who is None:
            is_page = scope["method"] == "GET" and not any(
                under(scope["path"], place) for place in ("/api", "/mcp", "/v1")
            )
            if not is_page or "authorization" in headers or KEY in headers:
                raise Turned(unknown())
            # a person who opens a page is given the shell, or led to the login
            raise Turned(self._shell if self._cookie(headers) else RedirectResponse("/login", status_code=303))
        if not who.is_owner and not any(under(scope["path"], place) for place in FOR_AGENTS):
            raise Turned(nothing_there())
        if wait := (self._owners if who.is_owner else self._agents).wait(who.id):
            raise Turned(_too_many("too many requests", wait))
        scope.setdefault("state", {})
        scope["state"] |= {"who": who, "ticket": partial(self._homes.tickets.make, who.id)}

    async def _find(self, scope: Scope, headers: Headers) -> Pass | None:
        """Whose credential came along: a token, a cookie with its key, or a ticket. None is taken for another."""
        bearer = headers.get("authorization")
        if bearer is not None:
            kind, _, secret = bearer.partition(" ")
            found = await self._homes.find(secret.strip() if kind.lower() == "bearer" else "")
            return found if found and found.kind != "page" else None
        ticket = parse_qs(scope.get("query_string", b"")[:400].decode("latin-1")).get("ticket", [""])[0]
        if ticket and scope["method"] == "GET":
            return await self._homes.named(self._homes.tickets.holder(scope["path"], ticket))
        found = await self._homes.find(self._cookie(headers) + headers.get(KEY, ""))
        return found if found and found.kind == "page" else None

    def _cookie(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", ""))
        except CookieError:
            return ""
        return found[self._homes.cookie].value if self._homes.cookie in found else ""


def who_of(scope: Scope) -> Pass:
    found: Pass = scope["state"]["who"]
    return found


def under(path: str, place: str) -> bool:
    return path == place or path.startswith(place + "/")


def _check_host(headers: Headers) -> None:
    hosts = headers.getlist("host")
    name = hosts[0].rpartition(":")[0] if len(hosts) == 1 and hosts[0].rpartition(":")[2].isdigit() else "".join(hosts)
    if len(hosts) != 1 or name.lower() not in HOSTS:
        raise Turned(Problem(421, "this server answers only to its own names on this machine"))


def _check_origin(scope: Scope, headers: Headers, *, own: str) -> None:
    """No other page may ask. A person may follow a link to the login page, where nothing happens by itself."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    own = own or f"{scope.get('scheme', 'http')}://{headers['host']}".lower()
    is_visit = scope["method"] == "GET" and scope["path"] == "/login" and headers.get("sec-fetch-mode") == "navigate"
    if origin is not None and origin.lower() != own:
        raise Turned(Problem(403, "requests from other origins are not answered"))
    if site not in ("none", "same-origin") and not is_visit:
        raise Turned(Problem(403, "requests from other sites are not answered"))
    if scope["method"] not in _SAFE and headers.get("cookie") and "authorization" not in headers and origin is None:
        raise Turned(Problem(403, "a browser says where a write comes from, and this one did not"))


def _too_many(what: str, wait: float) -> Response:
    return Problem(429, what, headers={"Retry-After": str(1 + int(wait))})


async def _body(scope: Scope, headers: Headers, receive: Receive, *, most: int, whose: str = "") -> bytes:
    """All of a request's body, which has a limit whatever it says of its length."""
    too_long = Turned(Problem(413, f"a request{whose} has at most {most:,} bytes", limit=most))
    told = headers.get("content-length", "0")
    if not told.isascii() or not told.isdigit() or int(told[:20]) > most:
        raise too_long
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            raise Turned(Problem(400, "the request ended too early"))
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > most:
            raise too_long
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if body and scope["path"].startswith(("/api/", "/v1/")) and kind != "application/json":
        raise Turned(Problem(415, "the API takes application/json"))
    return bytes(body)


# -- errors, as problem details ----------------------------------------------------------------------------------------

MEDIA = "application/problem+json"
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Problem(Response):
    """What went wrong with a request, in the form that its address is answered in."""

    def __init__(
        self,
        status: int,
        detail: str = "",
        *,
        kind: str = "about:blank",
        title: str = "",
        headers: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        body = {"type": kind, "title": title or HTTPStatus(status).phrase, "status": status}
        body |= {name: value for name, value in {"detail": detail or None, **more}.items() if value is not None}
        self._said = "; ".join(filter(None, (detail or str(body["title"]), more.get("hint"))))
        super().__init__(json.dumps(body, ensure_ascii=True), status, headers, MEDIA)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if under(scope["path"], "/v1"):
            kept = {name: value for name, value in self.headers.items() if name in ("retry-after", "www-authenticate")}
            await of_openai(self.status_code, self._said, headers=kept)(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def openai_error(status: int, said: str) -> dict[str, Any]:
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    code = "invalid_api_key" if status == 401 else None
    return {"error": {"message": said, "type": kind, "param": None, "code": code}}


def of_openai(status: int, said: str, *, headers: Mapping[str, str] | None = None) -> Response:
    """An error as clients of OpenAI's chat format read it. Only what was turned away is worth trying again: else the same
    words would be said twice."""
    again = {"x-should-retry": "true" if status == 429 else "false"}
    text = json.dumps(openai_error(status, said), ensure_ascii=True)
    return Response(text, status_code=status, media_type="application/json", headers={**(headers or {}), **again})


def of_error(error: HomeError, **more: Any) -> Response:
    """An error of ours: it says which status it is."""
    headers = {"Retry-After": "5"} if isinstance(error, TooMany) else {}
    if isinstance(error, StaleWrite):
        more |= {"path": error.path, "theirs": error.theirs, "ours": error.ours}
        if error.theirs is not None:
            headers["ETag"] = etag(digest_of(error.theirs))
    if isinstance(error, Refused):
        more["rule"] = error.rule
    title = _WORD.sub(" ", type(error).__name__).capitalize()
    kind = f"urn:anima:{title.lower().replace(' ', '-')}"
    return Problem(error.http_status, str(error), kind=kind, title=title, headers=headers, hint=error.hint, **more)


def of_refusal(receipt: Receipt) -> Response:
    """A write that the gate, or a rule such as `duplicate`, refused."""
    findings = [{"kind": f.kind, "line": f.line, "message": f.message} for f in receipt.findings]
    refused = Refused(receipt.reason or "not allowed", rule=receipt.rule)
    return of_error(refused, path=receipt.path.text, findings=findings)


def of_request(errors: Iterable[Mapping[str, Any]]) -> Response:
    """A request that does not fit what the route takes: where, and what is wrong, without what was sent."""
    broken = {"loc": ("body",), "msg": "it cannot be read as JSON"}
    read = (broken if error.get("type") == "json_invalid" else error for error in errors)
    told = ((".".join(map(str, error.get("loc", ()))), str(error.get("msg", ""))) for error in read)
    found = [{"where": printable(where, 200), "wrong": printable(wrong, 300)} for where, wrong in told]
    said = "; ".join(f"{each['where']}: {each['wrong']}" for each in found[:3]) or "the request makes no sense"
    return Problem(400, said, kind="urn:anima:bad-input", title="Bad input", errors=found[:20])


def unknown() -> Response:
    """The answer to whoever shows no credential that works. It says no more than that."""
    return Problem(401, headers={"WWW-Authenticate": "Bearer"})


def nothing_there() -> Response:
    """The one answer for what is not there and for what is not yours."""
    return Problem(404, "there is no such thing here", kind="urn:anima:not-found", title="Not found")


def etag(digest: str) -> str:
    return f'"{digest}"'


# -- what is told of requests -------------------------------------------------------------------------------------------------

requests = logging.getLogger("anima.requests")


class JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        about: dict[str, Any] = {"time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")}
        is_ours = record.name.startswith("anima")  # others write what they were given into their messages
        event = str(record.msg) if is_ours else f"{record.module}:{record.lineno}"
        about |= {"level": record.levelname.lower(), "log": record.name, "event": event}
        about |= getattr(record, "about", {})
        given = record.args if isinstance(record.args, tuple) else ()
        error = record.exc_info[1] if record.exc_info else next((e for e in given if isinstance(e, Exception)), None)
        if error is not None:
            at = [
                f"{frame.filename.rpartition('/')[2]}:{frame.lineno}"
                for frame in traceback.extract_tb(error.__traceback__)
            ]
            about |= {"error": type(error).__name__, "at": at[-5:]}
        return json.dumps(about, ensure_ascii=True)


def log_as_json() -> None:
    """From now on everything is logged so, on standard error."""
    shown = logging.StreamHandler()
    shown.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [shown]
    root.setLevel(logging.WARNING)
    requests.setLevel(logging.INFO)


ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_tracers: list[Any] = []  # one, once it is known where traces go


def export(env: Mapping[str, str], *, held: Callable[[], tuple[int, int]]) -> Callable[[], None]:
    """Begins to send traces and metrics where the environment says; what it gives back ends that. Raises MissingExtra."""
    if not env.get(ENDPOINT):
        return lambda: None
    try:
        from opentelemetry import metrics
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise MissingExtra("otel", "sending traces and metrics") from None
    meters, traces = MeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())]), TracerProvider()
    traces.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    metrics.set_meter_provider(meters)  # by which the framework tells how long requests take

    def counted(options: object) -> Iterable[Any]:
        return [metrics.Observation(held()[0])]

    meters.get_meter("anima").create_observable_gauge("anima.homes", [counted], description="homes that are held open")
    follow(traces)

    def end() -> None:
        _tracers.clear()
        traces.shutdown()
        meters.shutdown()

    return end


def follow(provider: Any) -> None:
    _tracers[:] = [provider.get_tracer("anima")]


def _tell(scope: Scope, status: int, seconds: float) -> None:
    """A request that is over: a line, and a span of the trace that its headers name, if they do. It is told by the pattern of
    its route: an address can hold words of a memory."""
    who, route = scope.get("state", {}).get("who"), getattr(scope.get("route"), "path", None)
    about = {
        "method": scope["method"],
        "route": route or ("/mcp" if under(scope["path"], "/mcp") else None),
        "status": status,
        "tenant": getattr(who, "tenant", None),
    }
    told_of = {**about, "ms": round(seconds * 1000, 1), "credential": who.id if who else None}
    requests.info("request", extra={"about": told_of})
    if not _tracers:
        return
    from opentelemetry.trace import SpanKind
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    ended = time.time_ns()
    names = {"method": "http.request.method", "route": "http.route", "status": "http.response.status_code"}
    told = {names.get(name, f"anima.{name}"): value for name, value in about.items() if value is not None}
    traced = Headers(scope=scope).get("traceparent", "")
    within = TraceContextTextMapPropagator().extract({"traceparent": traced})
    name = f"{about['method']} {about['route'] or ''}".strip()
    began = _tracers[0].start_span(
        name, within, SpanKind.SERVER, attributes=told, start_time=ended - int(seconds * 1_000_000_000)
    )
    began.end(ended)
