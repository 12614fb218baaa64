"""Tool calls in the shapes in which models' services send them: OpenAI's two, Anthropic's, or a name and arguments.

Promise: pure. A call is answered in the shape it came in, so that the host hands the answers back as they are; what is no
call (a text beside it) is passed over, and what has no shape at all is refused with a sentence. Arguments that are no
JSON are handed on as they are, for the tool to refuse. Not here: carrying out a call (session), what tools there are (tools).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anima.errors import BadArguments


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call as a model wishes for it. `shape` is openai, responses, anthropic or pair."""

    name: str
    arguments: Any
    id: str | None
    shape: str

    def answered(self, answer: Mapping[str, Any], wrong: bool) -> Any:
        """The answer in the shape of the call."""
        text = json.dumps(answer, ensure_ascii=False)
        match self.shape:
            case "openai":
                return {"role": "tool", "tool_call_id": self.id, "content": text}
            case "responses":
                return {"type": "function_call_output", "call_id": self.id, "output": text}
            case "anthropic":
                found = {"type": "tool_result", "tool_use_id": self.id, "content": text}
                return found | ({"is_error": True} if wrong else {})
        return dict(answer)


def tool_calls(given: Iterable[Any] | None) -> Iterator[ToolCall]:
    """The calls among what a model answered: `message.tool_calls`, `response.output`, `message.content`, or pairs."""
    for one in given or ():
        if isinstance(one, tuple) and len(one) == 2:
            yield ToolCall(name=str(one[0]), arguments=one[1], id=None, shape="pair")
            continue
        found = one.model_dump() if hasattr(one, "model_dump") else one
        if not isinstance(found, Mapping):
            raise _shapeless(one)
        kind, function = found.get("type"), found.get("function")
        if isinstance(function, Mapping):
            yield _called("openai", function, found.get("id"), function.get("arguments"))
        elif kind == "function_call":
            yield _called("responses", found, found.get("call_id"), found.get("arguments"))
        elif kind == "tool_use":
            yield _called("anthropic", found, found.get("id"), found.get("input"))
        elif not isinstance(kind, str):
            raise _shapeless(one)


def _called(shape: str, named: Mapping[str, Any], id: object, arguments: Any) -> ToolCall:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            pass  # the tool says what it takes
    return ToolCall(name=str(named.get("name")), arguments=arguments, id=None if id is None else str(id), shape=shape)


def _shapeless(one: object) -> BadArguments:
    return BadArguments(
        f"this is no tool call: {type(one).__name__}",
        hint="hand in message.tool_calls (OpenAI), response.output, message.content (Anthropic), or pairs (name, arguments)",
    )
