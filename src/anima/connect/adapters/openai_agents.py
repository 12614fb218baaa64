"""OpenAI Agents: a home's session as the SDK's `Session`, its tools, and the hooks that watch what else comes in.

Promise: the prompt is the session's, byte for byte; what the run is given is the owner's, what its tools and the service's
own tools say is from outside before the model hears it. Without `hooks=home` nobody sees that, so a call or an answer that they
do not report, as of an agent within a tool or an item added by hand, counts as one after outside text. `clear_session` forgets
nothing: the context begins anew, the record stays.

    home = LodgedSession(opened.session(scope="main"))
    agent = Agent(name="Aria", instructions=home.prompt, tools=home.tools)
    await Runner.run(agent, "Where is the boat?", session=home, hooks=home)
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from anima import Session, Tool
from anima.connect.adapters import Lodger, arguments_of, needed
from anima.model import Origin

with needed("openai-agents", "OpenAI Agents"):
    from agents import FunctionTool, RunHooks, SessionSettings

_TEXTS = ("input_text", "output_text", "text")
_OWN_WORK = ("reasoning", "function_call", "message", "compaction")  # of a model's answer; all else brings something in


class LodgedSession(RunHooks[Any]):
    """The SDK's `Session` and `RunHooks` in one; hand it over as both."""

    def __init__(self, session: Session) -> None:
        self.session, self.session_id, self.prompt = session, session.id, session.prompt.text
        self.session_settings: SessionSettings | None = None
        self._lodger, self._told = Lodger(session), set[str]()
        self._lodger.calls.clear()  # the SDK hands over what is new alone
        self.tools = [self._tool(tool) for tool in self._lodger.tools]
        self._asked: dict[str, tuple[str, Any]] = {}
        self._popped, self._said = set[int](), set[str]()

    def _tool(self, tool: Tool) -> FunctionTool:
        async def call(context: Any, given: str) -> str:
            if context.tool_call_id not in self._told:  # of a run without our hooks, or of one within a tool
                await asyncio.to_thread(self.session.taint, Origin.HOST)
            self._told.discard(context.tool_call_id)
            return await asyncio.to_thread(self._lodger.call, tool.name, given, context.tool_call_id)

        about = {"name": tool.name, "description": tool.about, "params_json_schema": tool.schema()}
        return FunctionTool(**about, on_invoke_tool=call, strict_json_schema=False)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        self._told.clear()  # a run begins, and its hooks have not reported yet
        found = [item for items in (await asyncio.to_thread(self._shown)).values() for item in items]
        if limit is None:
            return found
        found = found[max(0, len(found) - limit) :]
        return found[1:] if found and found[0].get("type") == "function_call_output" else found

    def _shown(self) -> dict[int, list[dict[str, Any]]]:
        shown: dict[int, list[dict[str, Any]]] = {}
        for who, id, turn in self._lodger.past():
            if turn.number in self._popped:
                continue
            if who == "call":
                call = {"type": "function_call", "call_id": id, "name": turn.name, "arguments": arguments_of(turn)}
                shown[turn.number] = [call, {"type": "function_call_output", "call_id": id, "output": turn.content}]
            else:
                shown[turn.number] = [{"role": "assistant" if who == "model" else "user", "content": turn.content}]
        return shown

    async def add_items(self, items: list[Any]) -> None:
        for item in items:
            await asyncio.to_thread(self._take, item if isinstance(item, Mapping) else {})

    def _take(self, item: Mapping[str, Any]) -> None:
        kind, role, id = item.get("type", "message"), item.get("role"), str(item.get("call_id"))
        if kind == "function_call":
            self._asked[id] = (str(item.get("name")), item.get("arguments"))
        elif kind == "function_call_output":
            name, given = self._asked.pop(id, ("tool", {}))
            self._lodger.outside(name, given, _text(item.get("output")), id)
        elif kind == "message" and role == "assistant":
            text = _text(item.get("content"))
            if text not in self._said and not self._lodger.knows(text):  # no model of this run's said it
                self.session.taint(Origin.HOST)
            self._lodger.model(text)
        elif kind == "message" and role == "user":
            content = item.get("content")
            if isinstance(content, list) and any(part.get("type") not in _TEXTS for part in content):
                self._lodger.attached()
            self._lodger.owner(_text(content))
        elif kind == "message":
            self._lodger.other(str(role), _text(item.get("content")))
        elif kind not in _OWN_WORK:
            self._lodger.attached()

    async def pop_item(self) -> Any | None:
        """The last item, out of the model's sight from now on; the record keeps it."""
        shown = await asyncio.to_thread(self._shown)
        if not shown:
            return None
        last = max(shown)
        self._popped.add(last)
        return shown[last][-1]

    async def clear_session(self) -> None:
        await asyncio.to_thread(self.session.after_compaction)

    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        if any(tool is each for each in self.tools):
            self._told.add(context.tool_call_id)

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
        if not any(tool is each for each in self.tools):
            given, id = getattr(context, "tool_arguments", ""), getattr(context, "tool_call_id", None)
            await asyncio.to_thread(self._lodger.outside, tool.name, given, str(result), id, early=True)

    async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
        said = (item.model_dump() for item in response.output if getattr(item, "type", "") == "message")
        self._said |= {_text(each.get("content")) for each in said}
        if any(getattr(item, "type", "") not in _OWN_WORK for item in response.output):
            await asyncio.to_thread(self._lodger.attached)


def _text(content: object) -> str:
    if not isinstance(content, list):
        return str(content or "")
    return "\n".join(str(part["text"]) for part in content if isinstance(part, Mapping) and part.get("text"))
