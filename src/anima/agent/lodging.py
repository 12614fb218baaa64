"""Lodging: a `Session` as one capability of pydantic-ai. Whichever agent has it lives in the home that the session opens.

Promise: the session's frozen prompt is the agent's instructions, byte for byte and nothing beside it; its tools are called
through the session, and a wrong argument is an answer. What is said, and every call, stands in the transcript when the model
hears of it, an answer that breaks off as far as it came. What other tools of the same agent say is text from outside. The same
entries give the same messages, in whichever process. Not here: whole conversations, cuts and retries (conversation).

    agent = Agent("openai:gpt-5", capabilities=[Lodging(home.session(scope=Scope.MAIN))])
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pydantic_ai as ai
from pydantic_ai.capabilities.abstract import AbstractCapability, WrapRunHandler
from pydantic_ai.messages import AgentStreamEvent
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult

from anima.agent import STOPPED, OutsideTool
from anima.errors import HomeError
from anima.model import Origin, Scope
from anima.sessions.replay import Turn
from anima.sessions.session import Session
from anima.sessions.tools import Tool

BEGUN = "(The conversation begins.)"  # before an agent that spoke first
TAKEN_IN = type("Mark", (str,), {})("on record")  # by identity, so that no result brings it: the session took it in
_A_TOKEN = 4  # characters, about


def messages_of(turns: Iterable[Turn], told: str = "") -> list[ai.ModelMessage]:
    """The messages of some entries in their order; `told` comes first, for what is no longer there. They take turns, as every
    service wants them: what is heard, then what is said or called; calls that follow one another are one batch."""
    made: list[ai.ModelMessage] = []
    if told:
        _add(made, ai.ModelRequest, ai.UserPromptPart(content=told))
    for number, turn in enumerate(turns):
        if turn.call is not None:
            id, name, given = f"call_{number}", turn.name or "tool", turn.call.get("arguments")
            call = ai.ToolCallPart(tool_name=name, args=given if isinstance(given, dict) else {}, tool_call_id=id)
            result = ai.ToolReturnPart(tool_name=name, content=turn.content, tool_call_id=id, metadata=TAKEN_IN)
            result.outcome = "denied" if turn.call.get("denied") else "success"
            last = made[-1] if made else None
            if isinstance(last, ai.ModelRequest) and all(isinstance(part, ai.ToolReturnPart) for part in last.parts):
                batch = made[-2]
                assert isinstance(batch, ai.ModelResponse)
                batch.parts, last.parts = [*batch.parts, call], [*last.parts, result]
            else:
                _add(made, ai.ModelResponse, call)
                _add(made, ai.ModelRequest, result)
        elif turn.role == "assistant":
            _add(made, ai.ModelResponse, ai.TextPart(content=turn.content))
        else:  # the person's words as they are, anybody else's with their name
            name = turn.name or ("" if turn.role == "user" else turn.role)
            said = f"[{name}]\n{turn.content}" if name else turn.content
            _add(made, ai.ModelRequest, ai.UserPromptPart(content=said))
    return made


def _add(made: list[ai.ModelMessage], kind: type[ai.ModelRequest] | type[ai.ModelResponse], part: Any) -> None:
    if not made and kind is ai.ModelResponse:
        made.append(ai.ModelRequest(parts=[ai.UserPromptPart(content=BEGUN)]))
    if made and isinstance(last := made[-1], kind):
        last.parts = [*last.parts, part]
    else:
        made.append(kind(parts=[part]))


def tokens_of(*texts: str) -> int:
    return sum(map(len, texts)) // _A_TOKEN


def weight(turn: Turn) -> int:
    given = str(turn.call.get("arguments")) if turn.call is not None else ""
    return tokens_of(turn.content, given) + 8


def kept_from(turns: Sequence[Turn], room: int) -> int:
    """Where the part of a conversation begins that is kept: at something the person said, as early as fits into `room`
    tokens; the latest such place where even that does not fit. 0 where there is nothing to cut."""
    starts = [n for n, turn in enumerate(turns) if turn.role == "user" and turn.call is None]
    fitting, total = len(turns), 0
    for number in range(len(turns) - 1, -1, -1):
        total += weight(turns[number])
        if total > room:
            break
        fitting = number
    return next((n for n in starts if n >= fitting), starts[-1] if starts else 0)


def thinned(turns: Sequence[Turn], room: int) -> tuple[Turn, ...]:
    """One long turn so that it fits: what the person said, and the latest calls with their results."""
    head = [turn for turn in turns[:1] if turn.call is None]
    rest, left = list[Turn](), room - sum(map(weight, head))
    for turn in reversed(turns[len(head) :]):
        if (left := left - weight(turn)) < 0:
            break
        rest.insert(0, turn)
    return (*head, *rest)


SILENCE = 120.0  # seconds without a word after which a server is given up
REQUEST = 600.0  # seconds that one request may take in all


@dataclass
class Lodging(AbstractCapability[Any]):
    """A session that an agent lives in. `told` is given every turn, also where no transcript is kept; `before` is asked
    before each request to the model, and may raise to stop the run there; `used` is told after it how many tokens it had;
    `only` names the tools that there are, of the session's and of those `outside`, whose calls go through `reach`;
    `meanwhile` gives what the person said since the last request, which is heard with this one."""

    session: Session
    told: Callable[[Turn], None] = lambda turn: None
    before: Callable[[], None] = lambda: None
    meanwhile: Callable[[], Sequence[str]] = tuple
    used: Callable[[int], None] = lambda tokens: None
    only: Collection[str] | None = None
    outside: Sequence[OutsideTool] = ()
    reach: Callable[[OutsideTool, dict[str, Any], str | None], Awaitable[dict[str, Any] | None]] | None = None
    # Of what is said: `message_id` and `sender_id`, where a channel has them.
    about: Mapping[str, str] = field(default_factory=dict)
    heard: set[int] = field(default_factory=set, repr=False)  # what the session saw of the conversation, by `marks`
    _partial: list[str] = field(default_factory=list, init=False, repr=False)
    _offered: set[str] = field(default_factory=set, init=False, repr=False)  # names of all tools, in this run

    id = "anima"

    async def for_run(self, ctx: ai.RunContext[Any]) -> Lodging:
        """What the person says is on the disk before anything else happens; where the prompt follows each turn, it does."""
        parts = ctx.prompt if isinstance(ctx.prompt, list | tuple) else [ctx.prompt]  # there may be pictures among them
        if text := "\n".join(part for part in parts if isinstance(part, str) and part.strip()):
            is_ours = self.session.listener.scope in (Scope.CRON, Scope.HEARTBEAT)  # nobody is there who says it
            await asyncio.to_thread(self.log, "system" if is_ours else "user", text, **self.about)
        self.heard.add(hash(str(ctx.prompt)))
        if unknown := marks(ctx.messages) - self.heard:  # neither said in this process, nor, maybe, on record
            summary, turns = await asyncio.to_thread(self.session.context)
            if unknown - marks(messages_of(turns, summary)):
                await asyncio.to_thread(self.session.taint, Origin.TOOL)
        self.heard |= marks(ctx.messages)
        return replace(self)

    def get_instructions(self) -> str:
        return self.session.prompt.text

    def get_toolset(self) -> ai.FunctionToolset[Any]:
        outside = (tool for tool in self.outside if self.only is None or tool.name in self.only)
        return ai.FunctionToolset([*map(self._tool, self._own()), *map(self._outside, outside)], id=self.id)

    def _own(self) -> list[Tool]:
        tools = self.session.tools() if self.session.access != "none" else ()
        return [tool for tool in tools if self.only is None or tool.name in self.only]

    def get_model_settings(self) -> ai.ModelSettings:
        return ai.ModelSettings(timeout=SILENCE, request_timeout=REQUEST, first_event_timeout=SILENCE)

    def log(self, role: Any, text: str, *, name: str | None = None, **about: str | None) -> None:
        turn = self.session.log(role, text, name=name, **about)
        self.told(replace(turn or Turn(timestamp="", role=role, content=text, name=name), content=text))

    async def on_event(self, ctx: ai.RunContext[Any], *, event: AgentStreamEvent) -> None:
        match event:
            case (
                ai.PartStartEvent(part=ai.TextPart(content=text))
                | ai.PartDeltaEvent(delta=ai.TextPartDelta(content_delta=text))
            ):
                self._partial.append(text)

    async def before_model_request(
        self, ctx: ai.RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        self._partial.clear()
        asked = request_context.model_request_parameters
        self._offered |= {tool.name for tool in asked.function_tools}
        own = {tool.name for tool in self._own()} | set(self.session.site.config.own_tools)
        own |= {tool.name for tool in asked.output_tools}
        own |= {tool.name for tool in self.outside if not tool.server}  # of other agents, taken in where they are heard
        parts = [part for message in request_context.messages for part in message.parts]
        told = [part for part in parts if isinstance(part, ai.UserPromptPart | ai.SystemPromptPart)]
        is_new = any(mark(part) not in self.heard for part in told)
        is_made = any(part.dynamic for part in asked.instruction_parts or ())
        if is_new or is_made or any(is_outside(part, own, self._offered) for part in parts):
            await asyncio.to_thread(self.session.taint, Origin.TOOL)
        self.heard.update(map(mark, parts))
        for text in self.meanwhile():
            self.heard.add(hash(text))
            await asyncio.to_thread(self.log, "user", text)
            ctx.enqueue(text)
        await asyncio.to_thread(self.before)
        return request_context

    async def after_model_request(
        self, ctx: ai.RunContext[Any], *, request_context: ModelRequestContext, response: ai.ModelResponse
    ) -> ai.ModelResponse:
        self._partial.clear()
        if text := "".join(part.content for part in response.parts if isinstance(part, ai.TextPart)).strip():
            await asyncio.to_thread(self.log, "assistant", text + STOPPED * is_early(response))
        self.heard.update(map(mark, response.parts))
        self.used(response.usage.input_tokens + response.usage.output_tokens)
        return response

    async def wrap_run(self, ctx: ai.RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        try:
            result = await handler()
            self.heard |= marks(result.new_messages())
            return result
        finally:
            if said := "".join(self._partial).strip():  # at once: whoever stops a turn may stop the loop too
                self.log("assistant", said + STOPPED)
            self._partial.clear()

    def _tool(self, tool: Tool) -> ai.Tool[Any]:
        def call(ctx: ai.RunContext[Any], **given: Any) -> dict[str, Any]:
            try:
                answer = self.session.call(tool.name, given, id=ctx.tool_call_id)
            except HomeError as error:  # is an answer too, in words that a model can act on
                answer = {"error": str(error)} | ({"hint": error.hint} if error.hint else {})
            self.told(called(tool.name, given, answer))
            return answer

        return ai.Tool.from_schema(
            call, tool.name, tool.about, tool.schema(), takes_ctx=True, sequential=not tool.read_only
        )

    def _outside(self, tool: OutsideTool) -> ai.Tool[Any]:
        async def call(ctx: ai.RunContext[Any], /, **given: Any) -> dict[str, Any]:
            assert self.reach is not None
            if (answer := await self.reach(tool, given, ctx.tool_call_id)) is None:
                raise ai.CallDeferred  # it waits for the owner, which ends the run
            self.told(called(tool.name, given, answer))
            return answer

        return ai.Tool.from_schema(call, tool.name, tool.about, tool.schema, takes_ctx=True, sequential=tool.asks)


def is_early(response: ai.ModelResponse) -> bool:
    """Whether an answer ends before its end: cut at a limit, or by a service that broke off without a word. A stream that
    does so counts as whole with pydantic-ai; but a service that came to an end has said why."""
    said_why = "finish_reason" in (response.provider_details or {})
    return response.finish_reason == "length" or (response.provider_name in ("openai", "anthropic") and not said_why)


def is_outside(part: object, own: Collection[str], offered: Collection[str]) -> bool:
    """Whether a part of a message is text from outside: what a tool says that is not our `own`, also one of the model's own
    service; a file or an address that was handed over; what somebody said aloud."""
    match part:
        case ai.ToolReturnPart(metadata=mark) if mark is TAKEN_IN:
            return False  # the owner's words, or ours; or the session knows what it was, and whether the owner vouched for it
        case ai.ToolReturnPart(tool_name=name, outcome=outcome, content=content):
            is_made_up = name not in offered and outcome != "success" and str(content).startswith("Unknown tool name")
            return name not in own and not is_made_up  # by the model: then this is what the loop says
        case ai.UserPromptPart(content=content):
            return not isinstance(content, str) and not all(isinstance(each, str | ai.CachePoint) for each in content)
    return isinstance(part, ai.NativeToolReturnPart | ai.SpeechPart | ai.CompactionPart)


def mark(part: object) -> int:
    """What a part says, as a number by which it is known again in this process; whoever says it."""
    return hash(str(getattr(part, "content", None) or getattr(part, "args", None) or part))


def marks(history: Sequence[ai.ModelMessage]) -> set[int]:
    return {mark(part) for message in history for part in message.parts}


def called(name: str, given: dict[str, Any], answer: dict[str, Any]) -> Turn:
    """A call as an entry, whole, for a conversation that goes on."""
    text, call = json.dumps(answer, ensure_ascii=False), {"arguments": given, "denied": "denied" in answer}
    return Turn(timestamp="", role="tool", content=text, name=name, call=call)
