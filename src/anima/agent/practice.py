"""`practice`: a small program in the place of a model. It follows plain sentences, so that the whole loop can be seen and
tested without a key: remembering, finding, forgetting, the first conversation.

Promise: the same words get the same answer; it says what it is, calls the same tools as any model, and leaves the machine
for nothing. Not here: anything that a sentence could mean beside the ones in tables/practice.toml.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pydantic_ai as ai
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from anima.agent import PRACTICE
from anima.text import read_table, word_set

_TABLE = read_table("agent", "practice")
UNSURE: str = _TABLE["unsure"]
_PATTERN = {name: re.compile(pattern) for name, pattern in _TABLE["patterns"].items()}
_EMPTY = word_set(_TABLE["empty"])
_FIRST = "# The first conversation"  # of BOOTSTRAP.md
_MOST = 5  # lines of an answer
Calls = Sequence[tuple[str, Mapping[str, Any]]]


def practice_model() -> FunctionModel:
    return FunctionModel(_whole, stream_function=_streamed, model_name=PRACTICE)


def _whole(messages: list[ai.ModelMessage], info: AgentInfo) -> ai.ModelResponse:
    found = decided(messages, info)
    if isinstance(found, str):
        return ai.ModelResponse(parts=[ai.TextPart(content=found)])
    return ai.ModelResponse(parts=[ai.ToolCallPart(tool_name=name, args=dict(given)) for name, given in found])


async def _streamed(messages: list[ai.ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    found = decided(messages, info)
    if isinstance(found, str):
        for word in re.findall(r"\S+\s*", found):
            yield word
        return
    for number, (name, given) in enumerate(found):
        id = f"practice_{len(messages)}_{number}"
        yield {number: DeltaToolCall(name=name, json_args=json.dumps(given), tool_call_id=id)}


def decided(messages: Sequence[ai.ModelMessage], info: AgentInfo) -> str | Calls:
    asked, results = "", list[ai.ToolReturnPart]()
    for message in messages:
        for part in message.parts if isinstance(message, ai.ModelRequest) else ():
            if isinstance(part, ai.UserPromptPart):
                asked, results = str(part.content).strip(), []
            elif isinstance(part, ai.ToolReturnPart):
                results.append(part)
    told = info.instructions or ""
    is_first = _FIRST in told
    if asked.startswith("A conversation between"):
        said = _PATTERN["said"].findall(asked.partition("<conversation>")[2])
        facts = ["Facts", *(f"- {line[:300]}" for line in said[-20:])]
        return "\n".join([f"Open\n- {said[-1][:300]}", *facts]) if said else "Facts\n- nothing was said"
    if "<conversation>" in asked or "Nobody is here" in asked:  # a silent turn, or a ritual
        return "NO_REPLY"
    if not results:
        found = _answer(asked, {tool.name for tool in info.function_tools}, is_first, bool(_spoken(messages)))
        if found:
            return found
        begins = UNSURE if _spoken(messages) else f"{'Hello. ' if is_first else ''}{_TABLE['about']}"
        return "\n\n".join(filter(None, (begins, _question(messages, told, is_opening=True) if is_first else "")))
    answer = "\n\n".join(_told(part.tool_name, part.content, asked) for part in results)
    more = _question(messages, told) if is_first else ""
    if more == _TABLE["questions"][-1][1] and not any("first-conversation" in str(part.content) for part in results):
        more = ""  # what is asked for now is on no card any more: it was kept
    return "\n\n".join(filter(None, (answer, more)))


def _spoken(messages: Sequence[ai.ModelMessage]) -> str:
    parts = (part for message in messages if isinstance(message, ai.ModelResponse) for part in message.parts)
    return "\n".join(part.content for part in parts if isinstance(part, ai.TextPart))


def _answer(asked: str, tools: set[str], is_first: bool, is_later: bool) -> str | Calls:
    if is_first and _PATTERN["done"].fullmatch(_bare(asked)) and "memory_write" in tools:
        return [("memory_write", {"target": "bootstrap", "content": "", "reason": "the first conversation is done"})]
    for pattern, page, name in _TABLE["fields"] if "memory_write" in tools else ():
        if found := re.fullmatch(pattern, _bare(asked), re.I):
            return [("memory_write", {"target": page, "content": f"- **{name}:** {found[1]}", "reason": "you told me"})]
    for pattern, tool in _TABLE["sentences"]:
        found = re.fullmatch(pattern, _bare(asked), re.I | re.S)
        if found and tool in tools:
            words = found[1].strip() if found.groups() else ""
            written = {"target": "memory", "content": words[:1].upper() + words[1:], "reason": "you asked me to"}
            forgotten = {"text": words, "reason": "you asked me to"}
            given = {"memory_write": written, "memory_forget": forgotten, "memory_search": {"query": words}}
            return [(tool, given.get(tool, {}))]
    is_asked = asked.endswith(("?", "？", "؟")) or (is_later and " " in asked)
    is_worth_it = is_asked and not _PATTERN["you"].search(asked)
    return [("memory_search", {"query": _bare(asked)})] if is_worth_it and "memory_search" in tools else ""


def _bare(text: str) -> str:
    return " ".join(text.split()).rstrip(" .!?")


def _question(messages: Sequence[ai.ModelMessage], told: str, *, is_opening: bool = False) -> str:
    """The next question of the first conversation: the first whose page nobody filled in yet. It is asked once."""
    calls = [part for message in messages if isinstance(message, ai.ModelResponse) for part in message.parts]
    pages = {str(part.args_as_dict().get("target")) for part in calls if isinstance(part, ai.ToolCallPart)}
    if "bootstrap" in pages or not (is_opening or pages & {"user", "identity"}):
        return ""
    pages |= {"user"} if _PATTERN["owner"].search(told) else set()
    page, question = next((page, question) for page, question in _TABLE["questions"] if page not in pages)
    name = _PATTERN["name"].search(told) if page == "identity" else None
    question = _TABLE["named"].format(name[1]) if name else question
    return "" if (page or is_opening) and question in _spoken(messages) else question


def _told(tool: str, content: object, asked: str = "") -> str:
    given = content if isinstance(content, dict) else {}
    if "error" in given:
        return f"That did not work: {given['error']}"
    if tool == "memory_search":
        # the hits that hold a word of what was said; where none does, for a question the best of them. Will is a name in it
        hits, said = given.get("hits") or [], re.findall(r"\w\w+", asked)
        names = {word.casefold() for word in said[1:] if not word.islower()}
        words = names | {word.casefold() for word in said if len(word) > 3 or not word.islower()} - _EMPTY
        alone = [word if len(word) > 3 else rf"(?<![a-z]){word}(?![a-z])" for word in sorted(words)]
        sought = re.compile("|".join(alone) or r"\Z.")
        near = [hit for hit in hits if sought.search(str(hit.get("text", "")).casefold())]
        near = near or (hits[:1] if _PATTERN["asked"].search(asked) else [])
        return _listed(list(map(_line, near))) if near or _PATTERN["asked"].search(asked) else UNSURE
    if tool == "what_do_i_know":
        return _listed([str(line) for each in given.get("sections") or [] for line in each.get("bullets") or []])
    if tool == "who_am_i" and isinstance(who := given.get("identity"), dict):
        return str(_TABLE["who"].format(who.get("name")))
    if given.get("status") == "written" and given.get("path") == "BOOTSTRAP.md":
        return str(_TABLE["begun"])
    if "status" in given:
        why = given.get("reason") or given.get("rule")
        said = _TABLE["receipts"].get(given["status"], _TABLE["receipts"]["refused"])
        return str(said.format(path=given.get("path"), proposal=given.get("proposal"), why=why))
    return json.dumps(content, ensure_ascii=False, indent=1)


def _listed(lines: Sequence[str]) -> str:
    more = [f"… and {len(lines) - _MOST} more; anima search lists them"] if len(lines) > _MOST else []
    found = ["I found this:", *(f"- {line}" for line in lines[:_MOST]), *more]
    return "\n".join(found) if lines else str(_TABLE["nothing"])


def _line(hit: Mapping[str, Any]) -> str:
    text = re.sub(r"</?unreviewed>|^> ?", "", str(hit.get("text", "")).strip(), flags=re.MULTILINE)
    return f"{' '.join(text.split()).lstrip('> -')} ({hit.get('citation')}{', not reviewed yet' * bool(hit.get('unreviewed'))})"
