"""The desk of a conversation: its calls of tools from outside, those that are made at once and those that wait for the
owner; and of other agents (delegates), which are there too.

Promise: what is not on the owner's list of reading tools is carried out after the owner's yes and at no other time, once,
in whichever process the conversation goes on; a no reaches the model with its reason, and what the person says instead is
one. Where nobody is there to decide, the answer is no, and somebody is told.
Not here: reaching servers (outside), the yes itself (memory), the conversation (conversation).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from anima.agent.lodging import called
from anima.agent.outside import CALL, OutsideTool, OutsideTools
from anima.errors import HomeBusy, Refused
from anima.model import Origin, Scope
from anima.sessions.replay import Turn

if TYPE_CHECKING:
    from anima.agent.delegates import Delegates
    from anima.sessions.hand import OpenCall
    from anima.sessions.session import Session

ALONE = frozenset({Scope.CRON, Scope.HEARTBEAT, Scope.SUBAGENT})  # where nobody looks on
INSTEAD = "the person did not answer this and went on with what they say next"
BROKE_OFF = "this was begun before and broke off: nobody knows whether it was done; look before you call it again"
NOBODY = "nobody is there to say yes to it, so it was not done; say so, and go on without it"
Kind = Literal["delta", "thinking", "tool", "tool_result", "approval", "said", "compaction", "notice"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that happens while a turn goes on, for a face to show: `tool` has the call's name and arguments,
    `tool_result` its answer; `approval` is a call that waits for the owner, `text` the name of its card in the inbox;
    `said` is what the person said meanwhile, now that the model hears it."""

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
        self._attended = attended and scope not in ALONE and session.rooms.transcripts.kept
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
            return await asyncio.to_thread(calls.refused, tool.name, given, NOBODY, id)
        waiting = await asyncio.to_thread(calls.ask, tool.name, tool.server, tool.tool, given)
        if isinstance(waiting, str):
            return await asyncio.to_thread(calls.refused, tool.name, given, waiting, id)
        self._heard(Happening(kind="approval", text=waiting.id, name=tool.name, data=given))
        return None

    async def settled(self, *, instead: bool) -> AsyncIterator[Turn]:
        """The calls that waited and have their answer now: with a yes, or because the person says something `instead`."""
        calls = self._session.outside
        for each in await asyncio.to_thread(calls.open):
            if calls.is_decided(each):
                try:
                    answer = await self._carried_out(each)
                except Refused:
                    continue  # the yes was taken back meanwhile, and the no is its answer
            elif instead:
                answer = await asyncio.to_thread(calls.refused, each.name, each.given, INSTEAD, each.id)
            else:
                continue
            await asyncio.to_thread(calls.put_away, each)
            self._heard(Happening(kind="tool", name=each.name, data=each.given))
            self._heard(Happening(kind="tool_result", name=each.name, data=answer))
            yield called(each.name, each.given, answer)

    async def _carried_out(self, call: OpenCall) -> dict[str, Any]:
        """Carries out what the owner said yes to; what somebody began and did not end is not begun again."""
        for _ in range(int(CALL * 10)):
            try:
                with self._session.outside.claimed(call) as is_ours:
                    text = BROKE_OFF
                    if is_ours:
                        text = await self._tools.call(call.server, call.tool, call.given)
                    return self._session.outside.heard(call.name, call.given, text, call.id)
            except HomeBusy:
                await asyncio.sleep(0.1)  # somebody else carries a call out
        raise HomeBusy("another conversation", seconds=CALL)
