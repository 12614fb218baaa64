"""A model that plays several agents, each by a script of its own; and a home in which there are some."""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from anima import Home, Scope, Session
from anima.agent.conversation import Conversation, Happening

Step = str | tuple[str, dict[str, Any]] | Callable[[str], "str | tuple[str, dict[str, Any]]"] | BaseException
RESEARCHER = "---\ndescription: Reads up on a question.\n---\n\nYou are the researcher.\n"


class Cast:
    """One model for all. Whose prompt holds a phrase follows that script, and says "Done." when it is used up; `main` is
    everybody else. A step that is a function is given all that the agent has seen. `seen` and `tools` are what each got."""

    def __init__(self, main: Sequence[Step] = (), **scripts: Sequence[Step]) -> None:
        self._left = {"main": list(main)} | {name: list(script) for name, script in scripts.items()}
        self.seen, self.tools = defaultdict[str, str](str), dict[str, list[str]]()
        self.holds = asyncio.Event()  # nobody who waits for it goes on before it is set

    def __call__(self, name: str = "cast") -> FunctionModel:
        return FunctionModel(stream_function=self._stream, model_name=name)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        asked = info.instructions or ""
        who = "".join(re.findall(r"You are the (\w+)\.", asked)[:1]) or "main"
        self.seen[who] += asked + json.dumps(
            [str(getattr(part, "content", part)) for message in messages for part in message.parts], ensure_ascii=False
        )
        self.tools[who] = [tool.name for tool in info.function_tools]
        step = self._left[who].pop(0) if self._left.get(who) else "Done."
        if isinstance(step, BaseException):
            raise step
        if callable(step):
            step = step(self.seen[who])
        if step == "(waits)":
            await self.holds.wait()
            step = "I waited."
        if isinstance(step, str):
            yield step
        else:
            yield {
                0: DeltaToolCall(name=step[0], json_args=json.dumps(step[1]), tool_call_id=f"c{len(self.seen[who])}")
            }


def spawn(task: str = "Find out.", agent: str = "researcher", **more: Any) -> tuple[str, dict[str, Any]]:
    return "agent_spawn", {"agent": agent, "task": task, **more}


def send(text: str = "", **more: Any) -> Callable[[str], tuple[str, dict[str, Any]]]:
    """Says something to the sub-agent that was started last, by the id in what was answered."""

    def step(seen: str) -> tuple[str, dict[str, Any]]:
        return "agent_send", {"id": started(seen), "text": text, **more}

    return step


def started(seen: str) -> str:
    return re.findall(r"'id': '([0-9a-f]{8})'|\"id\": \"([0-9a-f]{8})\"", seen.replace("\\", ""))[-1][0] or "none"


def talk(
    session: Session,
    cast: Cast,
    *lines: str,
    heard: Callable[[Happening], None] = lambda what: None,
    **more: Any,
) -> list[str]:
    """Says some lines in a session, which stays open."""

    async def said() -> list[str]:
        async with Conversation(session, cast(), heard=heard, made=cast, **more) as conversation:
            return [(await conversation.turn(line)).text for line in lines]

    return asyncio.run(said())


def main_talk(home: Home, cast: Cast, *lines: str, **more: Any) -> Session:
    """A conversation of the owner's, which is left."""
    session = home.session(scope=Scope.MAIN, channel="chat")
    talk(session, cast, *(lines or ("Go on.",)), **more)
    session.leave()
    return session


def put(home: Home | Path, path: str, text: str) -> None:
    """A page, by the owner's editor."""
    place = (home if isinstance(home, Path) else Path(home.name)) / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")
