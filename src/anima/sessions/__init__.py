"""Conversations: the agent's hand in a home, its tools, its transcripts, and what is written down before a cut. Here:
which scope, channel and chat a session key says, and which agent a binding gives a chat to. Pure.

Promise: a key or a chat type that is not understood is GROUP; a chat narrows a scope and never widens it. Keys are
words parted by colons, as OpenClaw writes them: `main`, `agent:<id>:main`, `agent:<id>:subagent:<name>`,
`agent:<id>:<channel>:<kind>:<chat>` with a kind of `CHATS`, `…:thread:<n>` behind any of them, `cron:<job>`,
`heartbeat`, `hook:<name>`. Not here: beginning one (session).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anima.config import Binding
from anima.errors import BadArguments
from anima.model import Scope

CHATS = dict.fromkeys(("direct", "dm", "private"), Scope.MAIN)
CHATS |= dict.fromkeys(("group", "channel", "room", "supergroup", "forum"), Scope.GROUP)
_ALONE = {"main": Scope.MAIN, "subagent": Scope.SUBAGENT, "cron": Scope.CRON, "heartbeat": Scope.HEARTBEAT}


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
    if not parts[0] or len(key) > 1_000:
        raise BadArguments("a session key is words parted by colons, such as agent:main:telegram:group:42")
    agent = ""
    if parts[0].casefold() == "agent":
        agent, parts = (parts[1] if len(parts) > 1 else ""), parts[2:]
        if not agent or not parts:
            return Route(scope=Scope.GROUP, agent=agent)
    first = parts[0].casefold()
    if first in _ALONE and (len(parts) == 1 or first != "main"):
        return Route(scope=_ALONE[first], agent=agent)
    if first == "main" and len(parts) == 3 and parts[1].casefold() == "thread":
        return Route(scope=Scope.MAIN, agent=agent)
    if len(parts) < 3 or parts[1].casefold() not in CHATS or not parts[2]:
        return Route(scope=Scope.GROUP, agent=agent, channel=parts[0] if len(parts) > 1 else "")
    kind, rest = parts[1].casefold(), parts[2:]
    if len(rest) > 2 and rest[-2].casefold() in ("thread", "topic"):
        rest = rest[:-2]
    # An id may hold colons itself (@ana:example.org): cut short, it would be somebody else's too.
    return Route(scope=CHATS[kind], agent=agent, channel=parts[0], chat=":".join(rest), chat_type=kind)


def narrowed(scope: Scope, chat_type: str | None) -> Scope:
    """A scope in a kind of chat: a direct chat, or none, leaves it as it is; any other makes the owner's own a GROUP."""
    if not chat_type or CHATS.get(chat_type.casefold()) is Scope.MAIN:
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
