"""Serving: the protocol's requests, answered through a visit's session; and a change that waits, put to the person at the client.

Promise: one answer for what is not there and what is not yours; what goes wrong inside is a neutral sentence for the caller, with no
path of this machine, and a traceback on standard error. Over HTTP a foreign Host, Origin or site is turned away before anything is
looked up; who a credential is, is asked anew for every request. Whoever asks never answers: a person is asked only where the owner
started the server with a flag that says so, alone with the owner, for what the gate takes a yes to from there, with nothing
dangerous in it and the whole diff shown, inert; the yes is bound to that, and the ledger says that it came this way.
Not here: which session a request goes through (visits), keeping credentials (whoever mounts this), judging and writing.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import os
import signal
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Literal, TypeVar, cast
from urllib.parse import quote, unquote

import mcp_types as types
from anyio import BrokenResourceError
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecurityMiddleware, TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Send
from starlette.types import Scope as AsgiScope

from anima import BadArguments, Home, HomeError, NotFound, Proposal, Scope, Severity, __version__
from anima.errors import BadPath, for_a_model
from anima.mcp.visits import Answer, Visit, Visitor, Visits, Wish
from anima.model import Seen
from anima.text import read_table

log = logging.getLogger("anima.mcp")

Context = ServerRequestContext[Any, Any]
Called = types.CallToolResult | types.InputRequiredResult
Paged = types.PaginatedRequestParams | None
T = TypeVar("T")
KEY = "anima/idempotency-key"
SOURCE = "anima/source"
WORDS = read_table("mcp", "words")
INSIDE = (
    "something went wrong inside the server; nothing else is known here, and the owner finds it in the server's log"
)


def server(visits: Visits, who: Callable[[Context], Visitor], *, approve_here: bool = False) -> Server[Any]:
    """A server whose every request is `who`'s visitor's. `approve_here` is the owner's word that a person answers the forms of
    this client; nothing a caller sends says it."""
    desk = _Desk(visits, who, approve_here=approve_here)
    made: Server[Any] = Server(
        "anima",
        version=__version__,
        title="anima, a home for an agent",
        instructions=WORDS["instructions"],
        on_list_tools=desk.list_tools,
        on_call_tool=desk.call_tool,
        on_list_resources=desk.list_resources,
        on_list_resource_templates=desk.list_templates,
        on_read_resource=desk.read_resource,
        on_list_prompts=desk.list_prompts,
        on_get_prompt=desk.get_prompt,
        on_completion=desk.complete,
    )
    sealed = RequestStateSecurity.ephemeral(audience="anima")
    sealed.bind_principal = lambda ctx: repr(who(ctx).place)
    made.middleware.append(RequestStateBoundary(sealed, default_audience="anima"))
    return made


class _Desk:
    def __init__(self, visits: Visits, who: Callable[[Context], Visitor], *, approve_here: bool) -> None:
        self._visits, self._who, self._approve_here = visits, who, approve_here

    async def _with_visit(self, ctx: Context, work: Callable[[Visit], T]) -> T:
        visitor, conversation = self._who(ctx), ""
        # The handshake era has a name of its own for a conversation; the stateless era has none, whatever a header says.
        if ctx.request is not None and ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
            conversation = str(ctx.request.headers.get("mcp-session-id", ""))
        meta = dict(ctx.meta or {})

        def visited() -> T:
            with self._visits.visit(visitor, conversation, meta) as visit:
                return work(visit)

        return await self._visits.run(visited)

    async def list_tools(self, ctx: Context, params: Paged) -> types.ListToolsResult:
        rows = self._who(ctx).home.sessions.tools(self._who(ctx).scope)
        return types.ListToolsResult(tools=[types.Tool.model_validate(row.described("mcp")) for row in rows])

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Called:
        visitor = self._who(ctx)
        try:
            visitor.home.sessions.tool(params.name, visitor.scope)
        except BadArguments as error:
            raise MCPError(types.INVALID_PARAMS, str(error)) from None
        try:
            if params.request_state is not None:
                return await self._resumed(ctx, params)
            return await self._called(ctx, params)
        except HomeError as error:
            return failed(for_a_model(error, root=visitor.home.name))
        except MCPError:
            raise
        except Exception:
            log.exception("the tool %s failed", params.name)
            return failed(INSIDE)

    async def _called(self, ctx: Context, params: types.CallToolRequestParams) -> Called:
        wish = wish_of(ctx, params)
        # Whoever asks never answers: what a client says of itself comes second to what the owner said at the start.
        asks = self._approve_here and can_ask(ctx)

        def call(visit: Visit) -> tuple[Answer, Proposal | None]:
            answer = visit.call(wish)
            return answer, to_ask(visit, answer) if asks else None

        answer, waiting = await self._with_visit(ctx, call)
        if waiting is None:
            return answered(answer)
        form = question(waiting)
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            asked: dict[str, Any] = {QUESTION: types.ElicitRequest(params=form)}
            return types.InputRequiredResult(input_requests=asked, request_state=f"{waiting.id} {waiting.content}")
        result = None
        with suppress(MCPError, ValueError):  # an answer that cannot be had leaves the change where it is, waiting
            result = await ctx.session.elicit_form(form.message, form.requested_schema, ctx.request_id)
        return await self._decided(ctx, wish, answer, waiting.content, decision(result))

    async def _resumed(self, ctx: Context, params: types.CallToolRequestParams) -> Called:
        """The second round of the stateless era. The state is ours: the boundary has unsealed it."""
        proposal, _, content = (params.request_state or "").partition(" ")
        answer: Answer = {"status": "pending", "path": "", "proposal": proposal, "findings": []}
        answer |= {"rule": None, "revision": None}
        waiting = await self._with_visit(ctx, lambda visit: to_ask(visit, answer))
        if waiting is not None:
            answer |= {"path": waiting.path.text, "rule": waiting.rule, "reason": waiting.why}
            answer["review"] = f"the owner decides: anima review {proposal}"
        said = (params.input_responses or {}).get(QUESTION)
        decided = decision(said) if self._approve_here else "later"
        return await self._decided(ctx, wish_of(ctx, params), answer, content, decided)

    async def _decided(self, ctx: Context, wish: Wish, answer: Answer, content: str, decided: Decision) -> Called:
        if decided == "later":
            return answered(answer)
        proposal, deed = str(answer["proposal"]), partial(decide, self._who(ctx).home, answer, content, decided)
        return answered(await self._with_visit(ctx, lambda visit: visit.decided(wish, proposal, deed)))

    async def list_resources(self, ctx: Context, params: Paged) -> types.ListResourcesResult:
        entries = await self._guarded(ctx, lambda visit: visit.session.documents())
        try:
            shown, following = page_of(entries, params.cursor if params else None)
        except ValueError:
            raise MCPError(types.INVALID_PARAMS, "this cursor is none of ours; list from the beginning") from None
        return types.ListResourcesResult(resources=shown, next_cursor=following)

    async def list_templates(self, ctx: Context, params: Paged) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[TEMPLATE])

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        path = path_of(params.uri)
        absent = MCPError(types.INVALID_PARAMS, "there is no such document", {"uri": params.uri})
        if path is None:
            raise absent
        text = await self._guarded(ctx, lambda visit: visit.session.read(path), absent=absent)
        kind = MARKDOWN if path.casefold().endswith(".md") else "text/plain"
        found = types.TextResourceContents(uri=params.uri, mime_type=kind, text=text)
        return types.ReadResourceResult(contents=[found])

    async def complete(self, ctx: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """Paths that begin like what was typed, for the one template there is."""
        found: list[str] = []
        if isinstance(params.ref, types.ResourceTemplateReference) and params.argument.name == "path":
            entries = await self._guarded(ctx, lambda visit: visit.session.documents())
            typed = params.argument.value.casefold()
            found = [entry.path for entry in entries if entry.path.casefold().startswith(typed)]
        completion = types.Completion(values=found[:100], total=len(found), has_more=len(found) > 100)
        return types.CompleteResult(completion=completion)

    async def list_prompts(self, ctx: Context, params: Paged) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=prompts_of(self._who(ctx).scope))

    async def get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        there = [prompt.name for prompt in prompts_of(self._who(ctx).scope)]
        if params.name not in there:
            raise MCPError(types.INVALID_PARAMS, f"there is no such prompt here; there are {', '.join(there)}")
        frozen, found = await self._guarded(ctx, lambda visit: visit.session.prompt.text), PROMPTS[params.name]
        asked = (params.arguments or {}).get("about", "").strip()
        frozen = frozen.replace(self._who(ctx).home.name, "home://")  # no path of the machine
        text = types.TextContent(text=found["text"].format(prompt=frozen, about=f" about: {asked}" if asked else ""))
        said = types.PromptMessage(role="user", content=text)
        return types.GetPromptResult(description=found["about"], messages=[said])

    async def _guarded(self, ctx: Context, work: Callable[[Visit], T], *, absent: MCPError | None = None) -> T:
        """Work whose errors become errors of the protocol, with nothing of the machine in them."""
        try:
            return await self._with_visit(ctx, work)
        except HomeError as error:
            if absent is not None and isinstance(error, (NotFound, BadArguments, BadPath)):
                raise absent from None
            raise MCPError(types.INTERNAL_ERROR, for_a_model(error, root=self._who(ctx).home.name)) from None
        except Exception:
            log.exception("%s failed", ctx.method)
            raise MCPError(types.INTERNAL_ERROR, INSIDE) from None


def wish_of(ctx: Context, params: types.CallToolRequestParams) -> Wish:
    key = (ctx.meta or {}).get(KEY)
    if key is not None and not isinstance(key, str):
        raise BadArguments(f"_meta {KEY} must be text")
    source = (ctx.meta or {}).get(SOURCE, [])
    sources = [source] if isinstance(source, str) else source
    if not isinstance(sources, list) or not all(isinstance(each, str) for each in sources):
        raise BadArguments(f"_meta {SOURCE} must be text, or a list of texts")
    return Wish(name=params.name, arguments=params.arguments or {}, key=key, sources=tuple(sources))


# -- standard input and output -------------------------------------------------------------------------------------------


async def serve_stdio(visitor: Visitor, *, approve_here: bool = False) -> None:
    """Serves until the input ends or a signal asks to stop; then what runs is finished and the session closed."""
    visits, stop = Visits(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(name, stop.set)
    serving = asyncio.ensure_future(_pump(server(visits, lambda ctx: visitor, approve_here=approve_here)))
    stopped = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        await visits.close()
    finally:
        stopped.cancel()
    if serving.done():
        serving.result()
        return
    await asyncio.to_thread(visitor.home.close)
    # The thread that reads standard input cannot be woken, and everything of ours is closed.
    os._exit(0)


async def _pump(made: Server[Any]) -> None:
    try:
        async with stdio_server() as (incoming, outgoing):
            await made.run(incoming, outgoing, made.create_initialization_options())
    except* (BrokenPipeError, BrokenResourceError):
        log.info("the client has gone")


# -- streamable HTTP: an ASGI application, to run alone or to mount in another one ------------------------------------------

MOST_SESSIONS = 256
MOST_OF_ONE = 16  # sessions of one credential; the one that was opened first makes room for the next
_VISITOR = "anima.visitor"
Whose = Callable[[Request], Visitor | None]  # whose a request is, or None


class McpEndpoint:
    """MCP for an app of yours: serve it at one path with `Route("/mcp", endpoint=…)`, inside `async with endpoint.running()`."""

    def __init__(
        self, who: Whose, *, hosts: Sequence[str] = (), origins: Sequence[str] = (), stateless: bool = False
    ) -> None:
        """`who` looks at a request's headers, in a thread. `hosts` and `origins` are allowed beside this machine's own, such
        as `home.example.org` and `https://home.example.org`. `stateless`: any of several servers may answer, so a
        conversation is a credential's."""
        self._who = who
        local = [form for name in ("127.0.0.1", "localhost", "[::1]") for form in (name, f"{name}:*")]
        self._visits = Visits()
        self._named: defaultdict[tuple[object, ...], deque[str]] = defaultdict(deque)  # open sessions, by their visitor
        self.left = self._visits.left
        settings = TransportSecuritySettings(
            allowed_hosts=[*local, *hosts], allowed_origins=[*(f"http://{form}" for form in local), *origins]
        )
        self._security = TransportSecurityMiddleware(settings)
        self._sessions = StreamableHTTPSessionManager(
            server(self._visits, lambda ctx: cast(Any, ctx.request).scope[_VISITOR]),
            security_settings=settings,
            max_sessions=None if stateless else MOST_SESSIONS,
            stateless=stateless,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Once per endpoint. Leaving it ends every session; the homes stay open, they are the app's."""
        from sse_starlette.sse import AppStatus

        AppStatus.should_exit = False  # set by a server that stopped in this process earlier, it would end every stream
        try:
            async with self._sessions.run():
                yield
        finally:
            await self._visits.close()

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.headers.get("sec-fetch-site", "").strip().lower() in ("cross-site", "same-site"):
            return await Response("a request from another site", 403)(scope, receive, send)
        refused = await self._security.validate_request(request, is_post=request.method == "POST")
        if refused is not None:
            return await refused(scope, receive, send)
        visitor = await self._visits.run(lambda: self._who(request))
        if visitor is None:
            refused = Response("a credential is needed", 401, {"WWW-Authenticate": "Bearer"})
            return await refused(scope, receive, send)
        # The name by which the protocol's own sessions are kept apart is the credential's.
        user = AuthenticatedUser(AccessToken(token="", client_id=repr(visitor.place), scopes=[]))
        scope = {**scope, _VISITOR: visitor, "user": user}
        name, named = request.headers.get("mcp-session-id", ""), self._named[visitor.place]

        async def noted(message: Message) -> None:
            if not name and message["type"] == "http.response.start":
                named.extend(value.decode() for key, value in message["headers"] if key.lower() == b"mcp-session-id")
            await send(message)

        await self._sessions.handle_request(scope, receive, noted)
        if request.method == "DELETE" and name:
            await self._ended(visitor, name)
        while len(named) > MOST_OF_ONE:
            head = [(b"host", request.headers["host"].encode()), (b"mcp-session-id", named[0].encode())]
            ending = {**scope, "method": "DELETE", "headers": head}
            await self._sessions.handle_request(ending, receive, _unheard)
            await self._ended(visitor, named[0])
        return None

    async def _ended(self, visitor: Visitor, name: str) -> None:
        with suppress(ValueError):
            self._named[visitor.place].remove(name)
        await self._visits.run(lambda: self._visits.end(visitor, name))


async def _unheard(message: Message) -> None:
    """An answer that nobody waits for."""


asgi_app = McpEndpoint


# -- asking the person, by a form of the host's -------------------------------------------------------------------------


PLACE = "elicitation"
QUESTION = "approve"
MOST_SHOWN = 4_000
Decision = Literal["yes", "no", "later"]


def can_ask(ctx: Context) -> bool:
    """Whether a form can reach a person. A bare `elicitation` means forms; one that only has addresses does not."""
    told = ctx.session.client_capabilities
    asked = told.elicitation if told is not None else None
    if asked is None or (asked.form is None and asked.url is not None):
        return False
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS or ctx.session.can_send_request


def to_ask(visit: Visit, answer: Answer) -> Proposal | None:
    """The proposal behind a `pending` answer, if it may be decided at the client."""
    if answer.get("status") != "pending" or not visit.session.listener.sees_all:
        return None
    try:
        waiting = visit.visitor.home.inbox.approvable(str(answer.get("proposal")), approver=PLACE)
    except NotFound:
        return None
    if waiting is None or len(waiting.diff) > MOST_SHOWN:
        return None
    return None if any(found.severity >= Severity.DANGER for found in waiting.findings) else waiting


def question(waiting: Proposal) -> types.ElicitRequestFormParams:
    first = waiting.changes[0]
    lines = [f"The agent wants to change {_inert(first.path.text)}; it waits because {waiting.why}."]
    if first.taint:
        lines.append(f"It was written after reading text from: {', '.join(sorted(first.taint))}.")
    if first.reason:
        lines.append(f"The agent's reason: {_inert(first.reason)}")
    lines += [f"The scan saw, in line {found.line}: {_inert(found.message)}" for found in waiting.findings[:10]]
    lines += [f"Proposal {waiting.id}, exactly:", *(f"| {_inert(line)}" for line in waiting.diff.splitlines())]
    return types.ElicitRequestFormParams(message="\n".join(lines), requested_schema=WORDS["question"])


def _inert(text: str) -> str:
    """Text on one line that cannot turn a direction, move a cursor or hide."""
    return "".join(c if c.isprintable() or c == "\t" else f"⟨U+{ord(c):04X}⟩" for c in text)


def decision(result: object) -> Decision:
    """Only a form that was sent off with a plain true is a yes."""
    if not isinstance(result, types.ElicitResult) or result.action != "accept":
        return "later"
    said = (result.content or {}).get("approve")
    return "yes" if said is True else "no" if said is False else "later"


def decide(home: Home, answer: Answer, content: str, decided: Decision) -> Answer:
    """What became of a proposal after the person said yes or no."""
    proposal = str(answer["proposal"])
    kept = {name: value for name, value in answer.items() if name not in ("reason", "review", "repeated")}
    if decided == "no":
        home.inbox.deny(proposal)
        return kept | {"status": "refused", "rule": "owner", "reason": "the owner said no to it"}
    receipt = home.inbox.approve(proposal, approver=PLACE, content=content)[0]
    if receipt.status != "written":
        return answer
    return kept | {"status": "written", "rule": receipt.rule, "revision": receipt.revision and receipt.revision[:12]}


# -- tools, documents and answers as the protocol wants to have them ---------------------------------------------------------

MARKDOWN = "text/markdown"
PAGE = 200
TEMPLATE = types.ResourceTemplate(**WORDS["template"])
PROMPTS: dict[str, dict[str, Any]] = WORDS["prompts"]


def answered(answer: dict[str, Any]) -> types.CallToolResult:
    answer = {name: value for name, value in answer.items() if name != "workspace_dir"}  # a path of the machine
    text = json.dumps(answer, ensure_ascii=False)
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=answer)


def failed(sentence: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=sentence)], is_error=True)


def path_of(uri: str) -> str | None:
    """The path in an address of ours, also in one written with two slashes; None for any other address."""
    scheme, colon, rest = uri.partition(":")
    if scheme.casefold() != "home" or not colon or not rest.startswith("//"):
        return None
    try:
        return unquote(rest.lstrip("/"), errors="strict") or None
    except UnicodeDecodeError:
        return None


def page_of(entries: Sequence[Seen], cursor: str | None) -> tuple[list[types.Resource], str | None]:
    """One page of a list that is sorted by path, and the cursor of the next. Raises ValueError for a cursor that is none."""
    after = base64.b64decode(cursor, altchars=b"-_", validate=True).decode() if cursor else ""
    rest = [entry for entry in entries if entry.path > after]
    shown = [
        types.Resource(
            uri="home:///" + quote(entry.path),
            name=entry.path,
            mime_type=MARKDOWN,
            size=entry.size,
            annotations=types.Annotations(last_modified=entry.time.isoformat()) if entry.time else None,
        )
        for entry in rest[:PAGE]
    ]
    return shown, base64.urlsafe_b64encode(shown[-1].name.encode()).decode() if len(rest) > PAGE else None


def prompts_of(scope: Scope) -> list[types.Prompt]:
    return [
        types.Prompt(name=name, title=name.capitalize(), description=row["about"], arguments=row.get("arguments", []))
        for name, row in PROMPTS.items()
        if scope is not Scope.SUBAGENT or "writes" not in row
    ]
