"""The conversations of one home: begun, taken up again, listed, read, found, and written down when they were left.

Promise: a key or a chat type that is not understood is GROUP; a channel narrows a scope and never widens it; the first
binding that fits names the agent, and no agent speaks in the place of another. Lives as long as its Home.
Not here: one conversation (session), and what was said in all of them (transcripts, of which Sessions is one).

Keys are words parted by colons, as OpenClaw writes them: `main`, `agent:<id>:main`, `agent:<id>:subagent:<name>`,
`agent:<id>:<channel>:direct:<peer>`, `agent:<id>:<channel>:group:<chat>`, `agent:<id>:<channel>:channel:<chat>`,
`…:thread:<n>` behind any of them, `cron:<job>`, `heartbeat`, `hook:<name>`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from anima.config import Binding
from anima.errors import BadArguments, HomeError, NoSuchSession
from anima.layout.listener import Listener, layer_of
from anima.model import Access, Change, Complete, Nights, Scope
from anima.sessions.flush import Flushed
from anima.sessions.hand import Rooms
from anima.sessions.record import stamp
from anima.sessions.session import Session
from anima.sessions.tools import Tool, chosen, tools_for
from anima.sessions.transcripts import Transcripts
from anima.site import Site, first_agent

if TYPE_CHECKING:
    from anima.memory.proposals import Proposal
    from anima.memory.write import Writer
    from anima.prompt.gather import Prompts
    from anima.search.current import Search


class Sessions(Transcripts):
    """The sessions of one home: what was said in them, and the way to begin one or take one up."""

    def __init__(
        self,
        site: Site,
        *,
        prompts: Prompts,
        writer: Callable[[], Writer],
        search: Callable[[], Search],
        propose: Callable[[Change, Mapping[str, str], str], Proposal | None],
        nights: Callable[[], Nights],
    ) -> None:
        super().__init__(site)
        self._rooms = Rooms(
            site=site,
            transcripts=self,
            prompts=prompts,
            writer=writer,
            search=search,
            propose=propose,
            nights=nights,
        )
        self._looked_at: dict[str, int] = {}  # how long idle sessions were when they were flushed

    def listener(self, *, scope: Scope | str, sender: str | None) -> Listener:
        return Listener(scope=Scope.parse(scope), layer=layer_of(sender, self.site.config.owner))

    def begin(
        self,
        *,
        scope: Scope | str,
        channel: str | None = None,
        sender: str | None = None,
        access: Access = "rw",
        model: str | None = None,
        complete: Complete | None = None,
        account: str | None = None,
        chat: str | None = None,
        chat_type: str | None = None,
    ) -> Session:
        """A conversation: the agent's hand in this home. Its prompt is frozen now.

        A group chat (`chat_type`) narrows the scope to GROUP. `complete` is the host's model, asked once before a cut.
        Raises BadArguments when a binding gives this channel, account and chat to another agent.
        """
        self._check_bound(channel, account, chat)
        return Session(
            self._rooms,
            self.listener(scope=narrowed(Scope.parse(scope), chat_type), sender=sender),
            id=self.site.new_id(),
            channel=channel,
            sender=sender,
            access=access,
            model=model,
            complete=complete,
        )

    def by_key(
        self,
        key: str,
        *,
        sender: str | None = None,
        access: Access = "rw",
        model: str | None = None,
        complete: Complete | None = None,
        account: str | None = None,
    ) -> Session:
        """A conversation whose scope its session key says, such as `agent:main:telegram:group:42`; unclear is GROUP."""
        route = route_of(key)
        if route.agent and route.agent != self.site.agent:
            raise BadArguments(
                f"this key is agent {route.agent!r}'s, and this home is open as {self.site.agent!r}",
                hint=f"Home.open(path, agent={route.agent!r})",
            )
        return self.begin(
            scope=route.scope,
            channel=route.channel or None,
            sender=sender,
            access=access,
            model=model,
            complete=complete,
            account=account,
            chat=route.chat or None,
        )

    def resume(
        self, id: str, *, model: str | None = None, access: Access = "rw", complete: Complete | None = None
    ) -> Session:
        """A session taken up again: its listener, what it had read, and how far it was written down. The prompt is new.

        Raises NoSuchSession, for another agent's too.
        """
        if not self.kept:
            raise NoSuchSession(f"{id}: no transcripts are kept here", hint="sessions.dir in anima.toml is empty")
        talk = self.carry_on(id)
        try:
            header = talk.header
            listener = self.listener(scope=header.scope or Scope.GROUP, sender=header.sender_id)
            if listener.layer != (header.layer or ""):
                raise NoSuchSession(
                    f"{id}: this session was held when other senders were the owner",
                    hint="begin a new one; anima session reads this one",
                )
            return Session(
                self._rooms,
                listener,
                id=id,
                channel=header.source_plugin or None,
                sender=header.sender_id,
                access=access,
                model=model,
                complete=complete,
                talk=talk,
            )
        except BaseException:
            talk.abandon()
            raise

    def flush_idle(self, idle: timedelta = timedelta(hours=1)) -> tuple[Flushed, ...]:
        """Writes down what is worth keeping of sessions in which nothing was said for so long and that nobody closed,
        such as those of a host that was killed. They can be resumed all the same. For a server's rounds."""
        return tuple(self._flushed(stamp(self.site.clock() - idle)))

    def _flushed(self, before: str) -> Iterator[Flushed]:
        for row in self.list():
            if row.closed or row.updated_at > before or self._looked_at.get(row.id) == row.bytes:
                continue
            self._looked_at[row.id] = row.bytes  # one that does not grow is not looked at twice
            try:
                session = self.resume(row.id)
            except HomeError:
                continue  # nobody knows who listened; what was said stays in the transcript
            try:
                yield session.flush("idle")
            finally:
                session.leave()

    def tools(self, scope: Scope | str) -> tuple[Tool, ...]:
        """The tools an agent has in a scope: those of the table that the configuration allows it."""
        return tools_for(self.site, Scope.parse(scope))

    def tool(self, name: str, scope: Scope | str) -> Tool:
        """The tool of that name. Raises BadArguments; one that exists elsewhere only is not there."""
        return chosen(name, self.tools(scope))

    def agent_for(self, *, channel: str | None = None, account: str | None = None, chat: str | None = None) -> str:
        """Which agent answers there: the first binding that fits, else the first agent of the configuration."""
        config = self.site.config
        return agent_for(config.binding, channel=channel, account=account, chat=chat, default=first_agent(config))

    def _check_bound(self, channel: str | None, account: str | None, chat: str | None) -> None:
        """One agent never speaks in the place of another."""
        if self.site.config.binding and (channel or account or chat):
            agent = self.agent_for(channel=channel, account=account, chat=chat)
            if agent != self.site.agent:
                raise BadArguments(
                    f"a binding gives this to agent {agent!r}, and this home is open as {self.site.agent!r}",
                    hint=f"Home.open(path, agent={agent!r})",
                )


# -- where a message belongs ----------------------------------------------------------------------------------------------

_CHATS = {
    "direct": Scope.MAIN,
    "dm": Scope.MAIN,
    "private": Scope.MAIN,
    "group": Scope.GROUP,
    "channel": Scope.GROUP,
    "room": Scope.GROUP,
    "supergroup": Scope.GROUP,
    "forum": Scope.GROUP,
}
_ALONE = {"main": Scope.MAIN, "subagent": Scope.SUBAGENT, "cron": Scope.CRON, "heartbeat": Scope.HEARTBEAT}
_MAX_KEY = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """What a session key says. `agent`, `channel` and `chat` are empty where it does not say."""

    scope: Scope
    agent: str = ""
    channel: str = ""
    chat: str = ""
    chat_type: str = ""


def route_of(key: str) -> Route:
    """What a session's key says; what it does not say clearly enough is GROUP. Raises BadArguments for no key at all."""
    parts = key.strip().split(":")
    if not parts[0] or len(key) > _MAX_KEY:
        raise BadArguments("a session key is words parted by colons, such as agent:main:telegram:group:42")
    agent = ""
    if parts[0].casefold() == "agent":
        agent, parts = (parts[1] if len(parts) > 1 else ""), parts[2:]
        if not agent or not parts:
            return Route(scope=Scope.GROUP, agent=agent)
    return _placed(agent, [*parts])


def _placed(agent: str, parts: list[str]) -> Route:
    first = parts[0].casefold()
    if first in _ALONE and (len(parts) == 1 or first != "main"):
        return Route(scope=_ALONE[first], agent=agent)
    if first == "main" and len(parts) == 3 and parts[1].casefold() == "thread":
        return Route(scope=Scope.MAIN, agent=agent)
    if len(parts) < 3 or parts[1].casefold() not in _CHATS or not parts[2]:
        return Route(scope=Scope.GROUP, agent=agent, channel=parts[0] if len(parts) > 1 else "")
    kind = parts[1].casefold()
    return Route(scope=_CHATS[kind], agent=agent, channel=parts[0], chat=parts[2], chat_type=kind)


def narrowed(scope: Scope, chat_type: str | None) -> Scope:
    """A scope in a kind of chat: a direct chat, or none, leaves it as it is; any other makes the owner's own a GROUP."""
    if not chat_type or _CHATS.get(chat_type.casefold()) is Scope.MAIN:
        return scope
    return Scope.GROUP if scope in (Scope.MAIN, Scope.HEARTBEAT, Scope.CRON) else scope


def agent_for(
    bindings: Sequence[Binding], *, channel: str | None, account: str | None, chat: str | None, default: str
) -> str:
    """The agent of the first binding whose given fields all fit, or the default one."""
    said = {"channel": channel or "", "account": account or "", "chat": chat or ""}
    for binding in bindings:
        if all(not (wanted := getattr(binding, name)) or wanted == value for name, value in said.items()):
            return binding.agent
    return default
