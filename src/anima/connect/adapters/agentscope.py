"""AgentScope 2: a home as a middleware of an agent, with its tools.

Promise: the session's prompt is merged into the first system message, behind the agent's own. What an agent is asked to
reply to is the owner's, where the role says user; what it observes, what other agents and tools say, hints, pictures and files
are from outside before the model hears of them. What is worth keeping is written down before the context is compressed.

    home = LodgedMiddleware(opened.session(scope="main"))
    agent = Agent(name="Aria", system_prompt="", model=…, toolkit=Toolkit(tools=home.tools), middlewares=[home])
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from anima import Session, Tool
from anima.connect.adapters import Lodger, arguments_of, needed

with needed("agentscope", "AgentScope"):
    from agentscope.message import AssistantMsg, Msg, TextBlock, ToolCallBlock, ToolResultBlock, UserMsg
    from agentscope.middleware import MiddlewareBase
    from agentscope.permission import PermissionBehavior, PermissionDecision
    from agentscope.tool import ToolBase, ToolChunk

Given = dict[str, Any]
Items = AsyncGenerator[Any, None]
Next = Callable[..., Awaitable[Any]]
# Hints that the agent's loop itself gives; all others are somebody's: of a search, a memory, a team, a tool.
_LOOPS_OWN = tuple(
    f'{{"label": "System", "sublabel": "{what}"}}'
    for what in ("Structured Output Requirement", "Max Iterations Reached")
)


class LodgedMiddleware(MiddlewareBase):
    """The middleware, and the conversation of one agent."""

    def __init__(self, session: Session) -> None:
        self.session, self.prompt, self._lodger = session, session.prompt.text, Lodger(session)
        self.tools = [_HomeTool(tool, self._lodger) for tool in self._lodger.tools]

    async def list_tools(self) -> list[ToolBase]:
        return list(self.tools)

    async def on_system_prompt(self, agent: Any, current_prompt: str) -> str:
        return f"{current_prompt}\n\n{self.prompt}" if current_prompt.strip() else self.prompt

    async def on_reply(self, agent: Any, input_kwargs: Given, next_handler: Callable[..., Items]) -> Items:
        given = input_kwargs.get("inputs")
        for message in given if isinstance(given, list) else [given]:
            if isinstance(message, Msg):
                await asyncio.to_thread(self._take, agent, message, asked=True)
        async for item in next_handler(**input_kwargs):
            if isinstance(item, Msg):
                await asyncio.to_thread(self._take, agent, item)
            yield item

    async def on_model_call(self, agent: Any, input_kwargs: Given, next_handler: Next) -> Any:
        summary = _text(agent.state.summary)
        for message in input_kwargs["messages"]:
            text = _text(message.content)
            is_summary = summary and message.role == "user" and text == summary
            if not (message.role == "system" and self.prompt in text) and not is_summary:  # the agent's own, and ours
                await asyncio.to_thread(self._take, agent, message)
        return await next_handler(**input_kwargs)

    async def on_acting(self, agent: Any, input_kwargs: Given, next_handler: Callable[..., Items]) -> Items:
        call, last = input_kwargs["tool_call"], None
        tool = await agent.toolkit.get_tool(call.name)
        async for item in next_handler(**input_kwargs):
            last = item
            yield item
        if last is not None and not any(tool is each for each in self.tools):
            text = _text(last.content)
            await asyncio.to_thread(self._lodger.outside, call.name, call.input, text, call.id, early=True)

    async def on_compress_context(self, agent: Any, input_kwargs: Given, next_handler: Next) -> None:
        await asyncio.to_thread(self.session.flush, "compaction")
        before = len(agent.state.context)
        await next_handler(**input_kwargs)
        if len(agent.state.context) < before:
            kept = sum(block.type in ("text", "tool_result") for each in agent.state.context for block in each.content)
            await asyncio.to_thread(self.session.after_compaction, summary=_text(agent.state.summary), kept=kept)

    def past(self) -> list[Msg]:
        """The conversation so far, for the context of an agent that takes it up."""
        found: list[Msg] = []
        for who, id, turn in self._lodger.past():
            if who == "call":
                asked = ToolCallBlock(id=id, name=str(turn.name), input=arguments_of(turn), state="finished")
                result = ToolResultBlock(id=id, name=str(turn.name), output=turn.content, state="success")
                message = AssistantMsg(name="assistant", content=[asked, result])
            elif who == "model":
                message = AssistantMsg(name="assistant", content=turn.content)
            else:
                message = UserMsg(name="user", content=turn.content)
            for block in message.content:
                self._lodger.is_new(_id(block))
            found.append(message)
        return found

    def _take(self, agent: Any, message: Msg, *, asked: bool = False) -> None:
        """Takes in what is new of a message; the model's grows while it works. `asked`: the agent is to reply to it."""
        for block in message.content:
            id = _id(block)
            match block.type:
                case "text" if message.role == "assistant" and message.name == agent.name and not asked:
                    self._lodger.model(block.text, id)
                case "text" if message.role == "user" and asked:
                    self._lodger.owner(block.text, id)
                case "text":
                    self._lodger.other(message.name, block.text, id)
                case "tool_result" if self._lodger.is_new(id):
                    self._lodger.outside(block.name, {}, _text(block.output), block.id)
                case "data" if self._lodger.is_new(id):
                    self._lodger.attached()
                case "hint" if block.source not in (agent.injection_config.injection_source, *_LOOPS_OWN):
                    if self._lodger.is_new(f"{block.id} {block.hint}"):  # an event makes it anew, with another time
                        self._lodger.attached()
                        self._lodger.other("hint", _text(block.hint))


class _HomeTool(ToolBase):
    is_concurrency_safe = False

    def __init__(self, tool: Tool, lodger: Lodger) -> None:
        super().__init__()
        self.name, self.description, self.input_schema = tool.name, tool.about, tool.schema()
        self.is_read_only, self._lodger = tool.read_only, lodger

    async def call(self, *args: Any, **given: Any) -> ToolChunk:
        text = await asyncio.to_thread(self._lodger.call, self.name, given)
        return ToolChunk(content=[TextBlock(text=text)], state="success")

    async def check_permissions(self, tool_input: dict[str, Any], context: Any) -> PermissionDecision:
        return PermissionDecision(behavior=PermissionBehavior.ALLOW, message="the home's own gate decides")


def _id(block: Any) -> str:
    """What a block is known by, in whichever message it comes; ids of calls come again."""
    return f"{block.id} {block.created_at}"


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.text for block in content if block.type == "text")
