"""What the tests of tools from outside share: a home with the server `errands`, and a model that follows a script."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from anima import Home
from anima.agent.desk import OutsideTools, digest_of
from anima.model import OutsideServer

PROGRAM = Path(__file__).with_name("errands.py")
Call = tuple[str, dict[str, Any]]


def errands(folder: Path, **more: Any) -> OutsideServer:
    given = {"command": sys.executable, "args": (str(PROGRAM), str(folder)), **more}
    return OutsideServer(name="errands", **given)


def outfitted(tmp_path: Path, *, vouched: bool = False, **more: Any) -> Home:
    """A home whose agent has the server; `vouched`: its owner has read what it says of its tools."""
    folder = tmp_path / "errands"
    folder.mkdir(exist_ok=True)
    with Home.create(tmp_path / "home", name="Aria") as home:
        place = Path(home.name)
        home.delete("BOOTSTRAP.md")
    with (place / "anima.toml").open("a", encoding="utf-8") as file:
        file.write(server_rows(folder, **more, **({"seen": asyncio.run(digest(folder))} if vouched else {})))
    return Home.open(place)


def server_rows(folder: Path, **more: Any) -> str:
    """The server as a configuration names it."""
    rows: dict[str, Any] = {"name": "errands", "command": sys.executable, "args": [str(PROGRAM), str(folder)], **more}
    return "\n[[agent.tools]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in rows.items())


async def digest(folder: Path) -> str:
    """What stands for the descriptions of its tools."""
    tools = OutsideTools([errands(folder)], {})
    try:
        return digest_of(await tools.offered())
    finally:
        await tools.close()


def choose_script(calls: Sequence[Call | str], told: list[object] | None = None) -> FunctionModel:
    """A model that makes these calls one after the other, says what is text, and then "Done."; `told` is given all that it
    gets to see."""
    left = list(calls)

    def next_part(messages: list[ModelMessage], info: AgentInfo) -> Call | str:
        if told is not None:
            told.append([info.instructions, [tool.name for tool in info.function_tools]])
            told.extend([type(part).__name__, getattr(part, "content", None)] for m in messages for part in m.parts)
        return left.pop(0) if left else "Done."

    def whole(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        part = next_part(messages, info)
        made = TextPart(content=part) if isinstance(part, str) else ToolCallPart(tool_name=part[0], args=part[1])
        return ModelResponse(parts=[made])

    async def streamed(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        part = next_part(messages, info)
        if isinstance(part, str):
            yield part
        else:
            yield {0: DeltaToolCall(name=part[0], json_args=json.dumps(part[1]), tool_call_id=f"id{len(left)}")}

    return FunctionModel(whole, stream_function=streamed)


def entries(home: Home) -> list[tuple[str, str]]:
    return [(turn.name or turn.role, turn.content) for turn in home.sessions.read(home.sessions.list()[0].id).entries]
