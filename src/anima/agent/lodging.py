"""Lodging: a `Session` as one capability of pydantic-ai. Whichever agent has it lives in the home that the session opens.

Promise: the session's frozen prompt is the agent's instructions, byte for byte and nothing beside it; its tools are those
of the table, through the session's own checked calls, and a wrong argument is an answer; what is said, and every call,
stands in the transcript when the model hears of it, and an answer that breaks off stands there as far as it came. What
other tools of the same agent say, and what is handed over beside words, is text from outside to the session.
Not here: whole conversations, cuts and retries (talk), which model (models).

    agent = Agent("openai:gpt-5", capabilities=[Lodging(home.session(scope=Scope.MAIN))])
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    CachePoint,
    CompactionPart,
    ModelResponse,
    NativeToolReturnPart,
    PartDeltaEvent,
    PartStartEvent,
    SpeechPart,
    TextPart,
    TextPartDelta,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import RunContext
from pydantic_ai.tools import Tool as AgentTool
from pydantic_ai.toolsets import FunctionToolset

from anima.errors import HomeError
from anima.model import Origin
from anima.sessions.replay import Turn

if TYPE_CHECKING:
    from pydantic_ai.capabilities import WrapRunHandler
    from pydantic_ai.messages import AgentStreamEvent
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult

    from anima.sessions.session import Session
    from anima.sessions.tools import Tool

STOPPED = " […]"  # behind what an agent had said when it was stopped, or when its server broke off
SILENCE = 120.0  # seconds without a word after which a server is given up
REQUEST = 600.0  # seconds that one request may take in all


@dataclass
class Lodging(AbstractCapability[Any]):
    """A session that an agent lives in. `told` is given every turn, also where no transcript is kept; `before` is asked
    before each request to the model, and may raise to stop the run there; `used` is told after it how many tokens it had."""

    session: Session
    told: Callable[[Turn], None] = lambda turn: None
    before: Callable[[], None] = lambda: None
    used: Callable[[int], None] = lambda tokens: None
    _partial: list[str] = field(default_factory=list, init=False, repr=False)

    id = "anima"

    async def for_run(self, ctx: RunContext[Any]) -> Lodging:
        """What the person says is on the disk before anything else happens; where the prompt follows each turn, it does."""
        if text := _text_of(ctx.prompt):
            await asyncio.to_thread(self.log, "user", text)
        return replace(self)

    def get_instructions(self) -> str:
        return self.session.prompt.text

    def get_toolset(self) -> FunctionToolset[Any]:
        tools = self.session.tools() if self.session.access != "none" else ()
        return FunctionToolset([self._tool(tool) for tool in tools], id=self.id)

    def get_model_settings(self) -> ModelSettings:
        return ModelSettings(timeout=SILENCE, request_timeout=REQUEST, first_event_timeout=SILENCE)

    # -- what is said ---------------------------------------------------------------------------------------------------

    def log(self, role: Any, text: str) -> None:
        turn = self.session.log(role, text)
        self.told(replace(turn or Turn(timestamp="", role=role, content=text), content=text))

    async def on_event(self, ctx: RunContext[Any], *, event: AgentStreamEvent) -> None:
        match event:
            case PartStartEvent(part=TextPart(content=text)) | PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._partial.append(text)

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        self._partial.clear()
        tools = {tool.name for tool in self.session.tools()} | set(self.session.site.config.own_tools)
        tools |= {tool.name for tool in request_context.model_request_parameters.output_tools}
        if any(is_outside(part, tools) for message in request_context.messages for part in message.parts):
            await asyncio.to_thread(self.session.taint, Origin.TOOL)
        await asyncio.to_thread(self.before)
        return request_context

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        self._partial.clear()
        if text := "".join(part.content for part in response.parts if isinstance(part, TextPart)).strip():
            await asyncio.to_thread(self.log, "assistant", text + STOPPED * is_early(response))
        self.used(response.usage.input_tokens + response.usage.output_tokens)
        return response

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        try:
            return await handler()
        finally:
            if said := "".join(self._partial).strip():  # at once: whoever stops a turn may stop the loop too
                self.log("assistant", said + STOPPED)
            self._partial.clear()

    # -- what is done ---------------------------------------------------------------------------------------------------

    def _tool(self, tool: Tool) -> AgentTool[Any]:
        def call(ctx: RunContext[Any], **given: Any) -> dict[str, Any]:
            answer = answered(self.session, tool.name, given, ctx.tool_call_id)
            self.told(called(tool.name, given, answer))
            return answer

        return AgentTool.from_schema(
            call, tool.name, tool.about, tool.schema(), takes_ctx=True, sequential=not tool.read_only
        )


def is_early(response: ModelResponse) -> bool:
    """Whether an answer ends before its end: cut at a limit, or by a service that broke off without a word. A stream that
    does so counts as whole with pydantic-ai; but a service that came to an end has said why."""
    said_why = "finish_reason" in (response.provider_details or {})
    return response.finish_reason == "length" or (response.provider_name in ("openai", "anthropic") and not said_why)


def is_outside(part: object, tools: Collection[str]) -> bool:
    """Whether a part of a message is text from outside: what a tool says that is none of these, also one of the model's own
    service; a file or an address that was handed over; what somebody said aloud."""
    match part:
        case ToolReturnPart(tool_name=name, outcome=outcome, content=content):
            is_none = outcome != "success" and str(content).startswith("Unknown tool name")  # a model made it up
            return name not in tools and not is_none
        case UserPromptPart(content=content):
            return not isinstance(content, str) and not all(isinstance(each, str | CachePoint) for each in content)
    return isinstance(part, NativeToolReturnPart | SpeechPart | CompactionPart)


def answered(session: Session, name: str, given: dict[str, Any], id: str | None) -> dict[str, Any]:
    """A call's answer; an error is one too, in words that a model can act on."""
    try:
        return session.call(name, given, id=id)
    except HomeError as error:
        return {"error": str(error)} | ({"hint": error.hint} if error.hint else {})


def called(name: str, given: dict[str, Any], answer: dict[str, Any]) -> Turn:
    """A call as an entry, whole, for a conversation that goes on."""
    text = json.dumps(answer, ensure_ascii=False)
    return Turn(timestamp="", role="tool", content=text, name=name, call={"arguments": given})


def _text_of(prompt: object) -> str:
    """What a person said, of a prompt that may hold pictures too."""
    parts = prompt if isinstance(prompt, list | tuple) else [prompt]
    return "\n".join(part for part in parts if isinstance(part, str) and part.strip())
