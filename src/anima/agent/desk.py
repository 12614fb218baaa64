"""The desk of a conversation: whom it sets to work (sub-agents, its owner's other agents), and the tools of the owner's MCP servers.

Promise: a sub-agent sees what the scope SUBAGENT sees, a peer answers from its own home, reading only; neither is told anything of
its caller's but the words handed over, and what they say is text from outside. Their tokens are their caller's; they go three deep,
never in a circle, and end with whoever set them to work. What is not on the owner's list of reading tools is carried out after the
owner's yes and at no other time, once; where nobody can decide, the answer is no. A call never raises: what goes wrong is a sentence.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from anima.agent import WORDS, OutsideTool
from anima.errors import BadArguments, HomeBusy, HomeError, MissingExtra, Refused, for_a_model
from anima.model import Origin, OutsideServer, Scope
from anima.sessions.replay import clean
from anima.sessions.tools import Tool, allowed, tool_of
from anima.text import read_table

if TYPE_CHECKING:
    from mcp_types import CallToolResult
    from mcp_types import Tool as ServersTool
    from pydantic_ai.models import Model as ChatModel

    from anima.agent.servers import Server
    from anima.prompt.identity import Subagent
    from anima.sessions.hand import OpenCall
    from anima.sessions.session import Session

DEEP = 3  # who calls whom calls whom
MOST = 8  # sub-agents of one conversation at once
PEER_TOKENS, PEER_SECONDS = 50_000, 300.0
CALL = 120.0  # seconds
MOST_SAID = 16_000  # characters of an answer
ABOUT = 1_500  # characters of a description
SCHEMA = 10_000  # characters of what a tool says of its arguments
TOOLS = 100  # of one server
NAME = 64  # characters, which is what services take
TABLE: dict[str, Tool] = {name: tool_of(name, row) for name, row in read_table("agent", "agents").items()}
_TOLD = WORDS["calls"]
_CALLS = frozenset({Scope.MAIN, Scope.CRON, Scope.HEARTBEAT})  # whose own agents there are; in a group there are none


@dataclass(eq=False, slots=True)
class Purse:
    """How many tokens a conversation may use, with all it sets to work. What is taken is taken from its caller's too."""

    most: int = 0  # 0: as many as it needs
    caller: Purse | None = None
    spent: int = 0

    def take(self, tokens: int) -> None:
        self.spent += tokens
        if self.caller is not None:
            self.caller.take(tokens)

    def short_of(self, tokens: int) -> int:
        """The limit that so many more would break, its own or a caller's; 0 where none would."""
        if self.most and self.spent + tokens > self.most:
            return self.most
        return self.caller.short_of(tokens) if self.caller is not None else 0


@dataclass(eq=False, slots=True, kw_only=True)
class _Work:
    """A sub-agent that was started. It lives until it is cancelled, breaks off, or its caller's conversation ends."""

    page: Subagent
    session: Session
    inbox: asyncio.Queue[str] = field(default_factory=asyncio.Queue)
    rests: asyncio.Event = field(default_factory=asyncio.Event)  # set while nothing is asked of it
    task: asyncio.Task[None] | None = None
    answer: str | None = None  # what it said last, until its caller hears it
    state: str = "at work"

    @property
    def about(self) -> dict[str, Any]:
        return {"id": self.session.id[:8], "agent": self.page.id, "state": self.state}


@dataclass(eq=False, kw_only=True)
class Delegates:
    """Whom one conversation set to work. `line`: who called whom; `only`: the tools there are, and no sub-agent has others; `begun`
    begins a conversation, `made` gives a model, `opened` the home of the owner's other agent; `notice` tells a person. Close it."""

    session: Session
    line: tuple[str, ...]
    only: Collection[str] | None
    purse: Purse
    model: ChatModel
    made: Callable[[str], ChatModel] | None
    begun: Callable[..., AbstractAsyncContextManager[Any]]
    opened: Callable[[str], Any] | None
    notice: Callable[[str], None]

    def __post_init__(self) -> None:
        session, self._works, self._starting = self.session, dict[str, _Work](), asyncio.Lock()
        scope, is_owners = session.listener.scope, not session.listener.layer and session.access != "none"
        is_room = len(self.line) <= DEEP
        self._spawns = is_room and is_owners and (scope in _CALLS or session.agent is not None)
        is_asked = session.agent is None and len(self.line) > 1  # by another agent, as a peer
        may_ask = is_room and ((is_owners and scope in _CALLS) or is_asked)
        self._peers = tuple(each for each in session.site.own.allowed_delegates if may_ask and each not in self.line)

    def tools(self) -> tuple[OutsideTool, ...]:
        """What a model is offered here, by what there is."""
        pages = sorted(self.session.rooms.prompts.subagents()[0]) if self._spawns else []
        names: dict[str, Sequence[str]] = {"agent_spawn": pages, "agent_ask": self._peers}
        without = {"agent_ask"} if not self._peers else set[str]()
        if not pages and not self._works:
            without |= set(TABLE) - {"agent_ask"}
        found = list[OutsideTool]()
        for tool in (each for each in allowed(self.session.site, TABLE.values()) if each.name not in without):
            name, schema = tool.name, tool.schema()
            if there := names.get(name):  # a model is told which agents there are
                schema["properties"]["agent"] = replace(tool.arguments[0], one_of=tuple(there)).schema()
            found.append(OutsideTool(name=name, server="", tool=name, about=tool.about, schema=schema, asks=False))
        return tuple(found)

    async def call(self, name: str, given: Mapping[str, Any], id: str | None) -> dict[str, Any]:
        """A call's answer, on record; whatever is wrong is a sentence."""
        heard = self.session.outside
        try:
            asked = TABLE[name].checked(given)
            work: Callable[..., Any] = getattr(self, f"_{name.removeprefix('agent_')}")
            about, text = await work(**asked)
        except HomeError as error:
            about, text = {"error": for_a_model(error, root=self.session.site.store.name)}, None
        if text is None:
            return await asyncio.to_thread(heard.told, name, given, about, id)
        return await asyncio.to_thread(heard.heard, name, given, cut(clean(text)), id, agent=about)

    async def close(self) -> None:
        for work in self._works.values():
            if not work.rests.is_set():
                self.notice(f"{work.page.id} was still at work, and ended with this conversation")
            await self._stopped(work)

    def broke_off(self) -> str:
        """What a model must know that takes this conversation up: sub-agents that a kill ended. Told once. Blocks."""
        talks = self.session.rooms
        if not talks.kept or not self._spawns or not self.session.rooms.prompts.subagents()[0]:
            return ""
        gone = list[str]()
        for row in talks.list():
            if row.parent == self.session.id and not row.closed and row.id not in self._works:
                gone.append(f"{row.source_plugin} ({row.id[:8]})")
                with suppress(HomeError):
                    talks.carry_on(row.id).close("its caller's program ended")
        if told := _TOLD["ended"].format(names=", ".join(gone)) if gone else "":
            self.notice(told)
        return told

    async def _spawn(self, *, agent: str, task: str, wait: int) -> tuple[dict[str, Any], str | None]:
        pages = self.session.rooms.prompts.subagents()[0] if self._spawns else {}
        if agent not in pages:
            raise BadArguments(f"there is no sub-agent {agent[:60]!r} here; there are {', '.join(pages) or 'none'}")
        async with self._starting:
            living = [work for work in self._works.values() if work.task is not None and not work.task.done()]
            resting = [work for work in living if work.rests.is_set() and work.answer is None]
            for work in resting[: max(0, len(living) - MOST + 1)]:  # those that rest longest go, where too many live
                living.remove(work)
                await self._stopped(work)
            if len(living) >= MOST:
                raise BadArguments(f"{MOST} sub-agents are at work already; wait for one of them, or cancel it")
            page = pages[agent]
            if self.only is not None:  # it has no tools that its caller does not have
                tools = self.only if page.tools is None else (name for name in page.tools if name in self.only)
                page = replace(page, tools=tuple(tools))
            session = await asyncio.to_thread(self.session.sub, agent=page)
            work = self._works[session.id[:8]] = _Work(page=page, session=session)
            work.task = asyncio.create_task(self._lives(work))
        return await self._said(work, task, wait)

    async def _send(self, *, id: str, text: str, wait: int) -> tuple[dict[str, Any], str | None]:
        return await self._said(self._named(id), text, wait)

    async def _list(self) -> tuple[dict[str, Any], None]:
        pages = await asyncio.to_thread(self.session.rooms.prompts.subagents) if self._spawns else ({}, [])
        there = [{"agent": page.id, "about": page.about} for page in pages[0].values()]
        return {"agents": there, "started": [work.about for work in self._works.values()]}, None

    async def _cancel(self, *, id: str) -> tuple[dict[str, Any], None]:
        work = self._named(id)
        await self._stopped(work)
        return work.about, None

    def _named(self, id: str) -> _Work:
        if (work := self._works.get(id[:8])) is None:
            raise BadArguments(f"you started no sub-agent {id[:60]!r} here", hint="agent_list names those you started")
        return work

    async def _said(self, work: _Work, text: str, wait: int) -> tuple[dict[str, Any], str | None]:
        """Says something to a sub-agent and waits for what it says to that. Whoever stops waiting stops it too."""
        if text.strip():
            if work.task is None or work.task.done():
                raise BadArguments(f"this sub-agent is no more: {work.state}", hint="start another with agent_spawn")
            if work.rests.is_set():
                work.answer = None
            work.rests.clear()
            work.state = "at work"
            work.inbox.put_nowait(text)
        try:
            await asyncio.wait_for(work.rests.wait(), wait or 0.01)
        except TimeoutError:
            return work.about, None
        except asyncio.CancelledError:
            await self._stopped(work)
            raise
        answer, work.answer = work.answer, None
        return work.about, answer

    async def _lives(self, work: _Work) -> None:
        """One sub-agent, from its first word to its end, in one task."""
        page = work.page

        def heard(what: Happening) -> None:
            if what.kind == "notice":
                self.notice(f"{page.id}: {what.text}")

        about: dict[str, Any] = {"only": page.tools, "requests": page.requests, "heard": heard}
        try:
            async with self._begun(work.session, page.id, page.tokens, model=self._model(page), **about) as talk:
                while True:
                    text = await work.inbox.get()
                    async with asyncio.timeout(page.seconds):
                        work.answer = (await talk.turn(text)).text
                    if work.inbox.empty():
                        work.state = "done"
                        work.rests.set()
        except asyncio.CancelledError:
            work.state = "cancelled"
            raise
        except TimeoutError:
            work.state = f"broke off: it took longer than {page.seconds} seconds"
        except HomeError as error:
            work.state = f"broke off: {error}"
        except Exception as error:  # whatever goes wrong in it is told to whoever called it
            work.state = f"broke off: {type(error).__name__}"
        finally:
            work.rests.set()
            work.session.close()

    def _begun(self, session: Session, name: str, tokens: int, **about: Any) -> AbstractAsyncContextManager[Any]:
        about |= {"made": self.made, "purse": Purse(tokens, self.purse), "line": (*self.line, name)}
        return self.begun(session, **about)

    def _model(self, page: Subagent) -> ChatModel:
        """The model that a page names; that of its caller where there is none of this name here."""
        try:
            return self.made(page.model) if page.model and self.made is not None else self.model
        except HomeError as error:
            self.notice(f"{page.id}: {error}; it has the model of whoever called it")
            return self.model

    async def _stopped(self, work: _Work) -> None:
        if work.task is not None and not work.task.done():
            was = work.state
            work.task.cancel()
            await asyncio.wait({work.task})
            work.state = "done, and gone" if was == "done" else "cancelled"  # also where it had not begun
            work.session.close()

    async def _ask(self, *, agent: str, text: str) -> tuple[dict[str, Any], str | None]:
        """Asks another agent once. It has a session of its own in its own home, in which it can write nothing."""
        site = self.session.site
        if agent in self.line:
            raise BadArguments(f"{agent[:60]!r} is waiting for this very answer: {' asked '.join(self.line)}")
        if agent not in self._peers or self.opened is None:
            raise BadArguments(f"you may not ask {agent[:60]!r}; allowed_delegates names whom you may ask")
        home = await asyncio.to_thread(self.opened, agent)
        try:
            if not home.is_vouched_for:
                raise BadArguments(f"the home of {agent} is not trusted by its owner yet")
            session = await asyncio.to_thread(
                home.session, scope=Scope.GROUP, sender=f"agent:{site.agent}", access="ro", model=self.session.model
            )
            session.taint(Origin.PEER)
            try:
                talk = self._begun(session, agent, PEER_TOKENS, model=self.model, attended=False)
                async with asyncio.timeout(PEER_SECONDS), talk as peer:
                    return {"agent": agent}, str((await peer.turn(text)).text)
            except TimeoutError:
                raise BadArguments(f"{agent} did not answer in {PEER_SECONDS:.0f} seconds") from None
            except HomeError:
                raise
            except Exception as error:  # whatever goes wrong in it is told to whoever asked
                raise BadArguments(f"{agent} broke off: {type(error).__name__}") from error
            finally:
                session.close()
        finally:
            await asyncio.to_thread(home.close)


class OutsideTools:
    """The servers of one conversation. `told` hears of what does not work. Close it."""

    def __init__(
        self, servers: Sequence[OutsideServer], env: Mapping[str, str], told: Callable[[str], None] = lambda text: None
    ) -> None:
        self._configs, self._env, self._told = {each.name: each for each in servers}, env, told
        self._servers: dict[str, Server] = {}
        self._offers: dict[str, tuple[OutsideTool, ...]] = {}
        self.unseen: dict[str, str] = {}  # the digest of descriptions that nobody vouched for, by server

    async def offered(self) -> tuple[OutsideTool, ...]:
        """What there is; a server that did not answer is asked again the next time."""
        missing = [name for name in self._configs if name not in self._offers]
        for name, found in zip(missing, await asyncio.gather(*map(self._asked, missing)), strict=True):
            if found is not None:
                self._offers[name] = found
        return tuple(tool for tools in self._offers.values() for tool in tools)

    async def _asked(self, name: str) -> tuple[OutsideTool, ...] | None:
        config = self._configs[name]
        try:
            listed = await self._server(name).tools(TOOLS)
        except HomeError as error:
            self._told(f"no tools of {name}: {error}")
            return None
        found, left_out = offers(config, listed)
        if left_out:
            self._told(f"{name}: these are not offered, their names or arguments cannot be used: {', '.join(left_out)}")
        if found and (digest := digest_of(found)) != config.seen:
            self.unseen[name] = digest
        return found

    async def call(self, server: str, tool: str, given: Mapping[str, Any]) -> str:
        """What a tool says, cut; or what went wrong."""
        if server not in self._configs:
            return f"there is no server {server} any more; nothing was done"
        try:
            return cut(said(await self._server(server).call(tool, given, CALL)))
        except HomeError as error:
            return "; ".join(filter(None, (str(error), error.hint)))

    def _server(self, name: str) -> Server:
        try:
            from anima.agent.servers import Server
        except ModuleNotFoundError:
            raise MissingExtra("serve", "a tool from outside") from None
        if name not in self._servers:
            self._servers[name] = Server(self._configs[name], self._env)
        return self._servers[name]

    async def close(self) -> None:
        await asyncio.gather(*(server.close() for server in self._servers.values()))


def offers(config: OutsideServer, listed: Sequence[ServersTool]) -> tuple[tuple[OutsideTool, ...], list[str]]:
    """What a server's list comes to, and the names that were left out."""
    found, left_out = dict[str, OutsideTool](), list[str]()
    for each in listed:
        name = f"{config.name}__{re.sub(r'[^A-Za-z0-9_-]', '_', each.name)}"
        if config.only and each.name not in config.only:
            continue
        schema = each.input_schema
        is_sound = each.name.isprintable() and schema.get("type") == "object" and len(json.dumps(schema)) <= SCHEMA
        if not each.name or len(name) > NAME or name in found or not is_sound:
            left_out.append(clean(each.name)[:NAME])
            continue
        about, asks = cut(clean(each.description or ""), ABOUT), each.name not in config.reads
        found[name] = OutsideTool(name=name, server=config.name, tool=each.name, about=about, schema=schema, asks=asks)
    return tuple(found.values()), left_out


def digest_of(tools: Sequence[OutsideTool]) -> str:
    """Differs when what a model is told of these tools does."""
    told = sorted([tool.name, tool.about, json.dumps(tool.schema, sort_keys=True)] for tool in tools)
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def said(result: CallToolResult) -> str:
    """An answer as text; pictures and files are named only."""
    texts = [each.text if each.type == "text" else f"[{each.type}, not shown]" for each in result.content]
    if not texts and result.structured_content is not None:
        texts = [json.dumps(result.structured_content, ensure_ascii=False)]
    return clean(("It went wrong. " if result.is_error else "") + ("\n".join(texts) or "(it says nothing)"))


def cut(text: str, most: int = MOST_SAID) -> str:
    return text if len(text) <= most else f"{text[:most]} … ({len(text):,} characters)"


ALONE = frozenset({Scope.CRON, Scope.HEARTBEAT, Scope.SUBAGENT})  # where nobody looks on
Kind = Literal["delta", "thinking", "tool", "tool_result", "approval", "said", "compaction", "notice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that happens while a turn goes on, for a face to show: `tool` has a call's name and arguments, `tool_result` its
    answer; `approval` waits for the owner, by its card's name (`text`); `said` is what the person said meanwhile, heard now."""

    kind: Kind
    text: str = ""
    name: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


class Desk:
    """The calls of one conversation that go to tools from outside. Close it."""

    def __init__(
        self, session: Session, *, heard: Callable[[Happening], None], attended: bool, delegates: Delegates
    ) -> None:
        self._session, self._heard, self._delegates = session, heard, delegates
        scope, site = session.listener.scope, session.site
        self._attended = attended and scope not in ALONE and session.rooms.kept
        is_for_them = session.access != "none" and (not session.listener.layer or scope is Scope.GROUP)
        servers = [each for each in site.own.tools if scope in each.scopes and is_for_them]  # none for a stranger's own
        self._tools, self._vouched = OutsideTools(servers, site.env, self._notice), set[str]()

    def _notice(self, text: str) -> None:
        self._heard(Happening(kind="notice", text=text))

    async def tools(self) -> tuple[OutsideTool, ...]:
        """What a model is offered. Descriptions that nobody vouched for are text from outside, which it reads now."""
        found = await self._tools.offered()
        for name, digest in self._tools.unseen.items():
            if name not in self._vouched:
                self._vouched.add(name)
                await asyncio.to_thread(self._session.taint, Origin.TOOL)
                self._notice(
                    f'what {name} says of its tools counts as text from outside; once you have read it: seen = "{digest}"'
                )
        return (*found, *await asyncio.to_thread(self._delegates.tools))

    async def close(self) -> None:
        await self._delegates.close()
        await self._tools.close()

    async def reached(self, tool: OutsideTool, given: dict[str, Any], id: str | None) -> dict[str, Any] | None:
        """The answer of a call; None where it waits for the owner."""
        calls = self._session.outside
        if not tool.server:
            return await self._delegates.call(tool.name, given, id)
        if not tool.asks:
            text = await self._tools.call(tool.server, tool.tool, given)
            return await asyncio.to_thread(calls.heard, tool.name, given, text, id)
        if not self._attended:
            self._notice(f"{tool.name} was not called: nobody is there to say yes to it")
            return await asyncio.to_thread(calls.refused, tool.name, given, _TOLD["nobody"], id)
        waiting = await asyncio.to_thread(calls.ask, tool.name, tool.server, tool.tool, given)
        if isinstance(waiting, str):
            return await asyncio.to_thread(calls.refused, tool.name, given, waiting, id)
        self._heard(Happening(kind="approval", text=waiting.id, name=tool.name, data=given))
        return None

    async def settled(self, *, instead: bool) -> AsyncIterator[tuple[str, dict[str, Any], dict[str, Any]]]:
        """Calls (name, arguments, answer) that have their answer now: by a yes, or since the person says something `instead`."""
        calls = self._session.outside
        for each in await asyncio.to_thread(calls.open):
            if calls.waiting.step(each.card) != "waits":
                try:
                    answer = await self._carried_out(each)
                except Refused:
                    continue  # the yes was taken back meanwhile, and the no is its answer
            elif instead:
                answer = await asyncio.to_thread(calls.refused, each.name, each.given, _TOLD["instead"], each.id)
            else:
                continue
            await asyncio.to_thread(calls.waiting.answered, each.card)
            self._heard(Happening(kind="tool", name=each.name, data=each.given))
            self._heard(Happening(kind="tool_result", name=each.name, data=answer))
            yield each.name, each.given, answer

    async def _carried_out(self, call: OpenCall) -> dict[str, Any]:
        """Carries out what the owner said yes to; what somebody began and did not end is not begun again."""
        for _ in range(int(CALL * 10)):
            try:
                with self._session.outside.waiting.claimed(call.card) as is_ours:
                    text = _TOLD["broke_off"]
                    if is_ours:
                        text = await self._tools.call(call.server, call.tool, call.given)
                    return self._session.outside.heard(call.name, call.given, text, call.id)
            except HomeBusy:
                await asyncio.sleep(0.1)  # somebody else carries a call out
        raise HomeBusy("another conversation", seconds=CALL)
