"""`practice`: a small program in the place of a model. It follows plain sentences, so that the whole loop can be seen and
tested without a key: remembering, finding, forgetting, the first conversation.

Promise: the same words get the same answer; it says what it is, calls the same tools as any model, and leaves the machine
for nothing. Not here: anything that a sentence could mean beside the ones in `SENTENCES`.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pydantic_ai as ai
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from anima.agent import PRACTICE

WHAT_I_AM = (
    "No model is connected, so practice answers: a small program that looks things up in memory and follows a few plain "
    "sentences. Try “remember that the boat is called Aurora”, “what do you know about the boat?”, “forget the boat”, "
    "“my name is Ana”, “who are you?”. To connect a model: anima model openai:gpt-5 (or anthropic:NAME, ollama:NAME)."
)
# What is said, and which line of which page it fills in.
FIELDS = (
    (r"my name is (.+)", "user", "Name"),
    (r"(?:please )?call me (.+)", "user", "Call them"),
    (r"my time ?zone is (.+)", "user", "Timezone"),
    (r"i speak (.+)", "user", "Languages"),
    (r"your name is (.+)", "identity", "Name"),
    (r"you are an? (.+)", "identity", "Creature"),
    (r"your emoji is (.+)", "identity", "Emoji"),
    (r"your (?:vibe|manner) is (.+)", "identity", "Vibe"),
)
SENTENCES = (
    (r"(?:please )?remember(?: that|:)? (.+)", "memory_write"),
    (r"(?:please )?forget(?: about| that)?(?: the| my| our)? (.+)", "memory_forget"),
    (
        r"(?:what|who|when|where|do you|tell me|have i|did i).*?(?:know|remember|told you|tell|wrote|said)(?: you)?(?: about)? (.+)",
        "memory_search",
    ),
    (r"(?:who are you|what are you|what is your name)", "who_am_i"),
    (r"what do you know", "what_do_i_know"),
    (r"((?:what|which|who|whose|when|where|does|did|has|can) (?!.*\byour?\b).+)", "memory_search"),
)
QUESTIONS = (
    ("user", "What is your name? Say “my name is …”."),
    ("identity", "And what shall I be called? Say “your name is …”."),
    ("", "That is all I need to begin. Keep the card, and we are done."),
)
RECEIPTS = {  # what became of a write
    "written": "I wrote it down in {path}.",
    "unchanged": "{path} says so already.",
    "noted": "I noted it. It counts once you have looked at it: anima review.",
    "pending": "I proposed it for {path} as {proposal}. It waits for your yes: anima review.",
}
UNSURE = "No model is connected, and memory has nothing about that. To connect one: anima model openai:gpt-5."
NAMED = "I am called {}. And what kind of being am I? Say “you are an owl”, or “that is all”."
_DONE = re.compile(
    r"(?:no,? )?(?:that is|that's|thats) (?:all|it|everything)|(?:we are|i am|i'm) done|done|nothing else", re.I
)
_FIRST = "# The first conversation"  # of BOOTSTRAP.md
_NAME = re.compile(r"^# IDENTITY\nname=([^,\n]+)", re.MULTILINE)
_OWNER = re.compile(r"^# USER\n[\s\S]*?^- \*\*Name:\*\* (?!_\()\S", re.MULTILINE)  # filled in
_ASKED = re.compile(r"[?？؟]$|^(?:please )?(?:what|who|when|where|which|do|does|did|has|have|can|tell|forget)\b", re.I)
_YOU = re.compile(r"\byou(?:rs?|rself)?\b", re.IGNORECASE)
_MOST = 5  # lines of an answer
_EMPTY = {"what", "when", "where", "which", "know", "about", "have", "does", "tell", "said", "remember", "that", "with"}
NOTHING = "I know nothing about that."
_SAID = re.compile(r"^user: (.+)$", re.MULTILINE)


def practice_model() -> FunctionModel:
    """The model, plain and streamed."""
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


Calls = Sequence[tuple[str, Mapping[str, Any]]]


def decided(messages: Sequence[ai.ModelMessage], info: AgentInfo) -> str | Calls:
    """What is said, or which tools are called."""
    asked, results = _now(messages)
    told = info.instructions or ""
    is_first = _FIRST in told
    if asked.startswith("A conversation between"):
        return _summary(asked)
    if "<conversation>" in asked or "Nobody is here" in asked:  # a silent turn, or a ritual
        return "NO_REPLY"
    if not results:
        found = _answer(asked, {tool.name for tool in info.function_tools}, is_first, bool(_spoken(messages)))
        if found:
            return found
        said = UNSURE if _spoken(messages) else f"Hello. {WHAT_I_AM}" if is_first else WHAT_I_AM
        return "\n\n".join(filter(None, (said, _question(messages, told, is_opening=True) if is_first else "")))
    said = "\n\n".join(_told(part.tool_name, part.content, asked) for part in results)
    more = _question(messages, told) if is_first else ""
    if more == QUESTIONS[-1][1] and not any("first-conversation" in str(part.content) for part in results):
        more = ""  # what is asked for now is on no card any more: it was kept
    return "\n\n".join(filter(None, (said, more)))


def _now(messages: Sequence[ai.ModelMessage]) -> tuple[str, list[ai.ToolReturnPart]]:
    """What the person said last, and the results since."""
    asked, results = "", list[ai.ToolReturnPart]()
    for message in messages:
        for part in message.parts if isinstance(message, ai.ModelRequest) else ():
            if isinstance(part, ai.UserPromptPart):
                asked, results = str(part.content).strip(), []
            elif isinstance(part, ai.ToolReturnPart):
                results.append(part)
    return asked, results


def _spoken(messages: Sequence[ai.ModelMessage]) -> str:
    """What we said so far."""
    parts = (part for message in messages if isinstance(message, ai.ModelResponse) for part in message.parts)
    return "\n".join(part.content for part in parts if isinstance(part, ai.TextPart))


def _answer(asked: str, tools: set[str], is_first: bool, is_later: bool) -> str | Calls:
    if is_first and _DONE.fullmatch(_bare(asked)) and "memory_write" in tools:
        return [("memory_write", {"target": "bootstrap", "content": "", "reason": "the first conversation is done"})]
    if (field := _field(asked)) is not None and "memory_write" in tools:
        page, name, value = field
        return [("memory_write", {"target": page, "content": f"- **{name}:** {value}", "reason": "you told me"})]
    for pattern, tool in SENTENCES:
        found = re.fullmatch(pattern, _bare(asked), re.I | re.S)
        if found and tool in tools:
            return [(tool, _arguments(tool, found[1].strip() if found.groups() else ""))]
    is_worth_it = (asked.endswith(("?", "？", "؟")) or (is_later and " " in asked)) and not _YOU.search(asked)
    return [("memory_search", {"query": _bare(asked)})] if is_worth_it and "memory_search" in tools else ""


def _arguments(tool: str, words: str) -> dict[str, Any]:
    return {
        "memory_write": {"target": "memory", "content": words[:1].upper() + words[1:], "reason": "you asked me to"},
        "memory_forget": {"text": words, "reason": "you asked me to"},
        "memory_search": {"query": words},
    }.get(tool, {})


def _bare(text: str) -> str:
    return " ".join(text.split()).rstrip(" .!?")


def _field(asked: str) -> tuple[str, str, str] | None:
    """(page, field, value) that a sentence fills in."""
    for pattern, page, name in FIELDS:
        if found := re.fullmatch(pattern, _bare(asked), re.I):
            return page, name, found[1]
    return None


def _question(messages: Sequence[ai.ModelMessage], told: str, *, is_opening: bool = False) -> str:
    """The next question of the first conversation: the first whose page nobody filled in yet. It is asked once."""
    calls = [part for message in messages if isinstance(message, ai.ModelResponse) for part in message.parts]
    pages = {str(part.args_as_dict().get("target")) for part in calls if isinstance(part, ai.ToolCallPart)}
    if "bootstrap" in pages or not (is_opening or pages & {"user", "identity"}):
        return ""
    pages |= {"user"} if _OWNER.search(told) else set()
    page, question = next((page, question) for page, question in QUESTIONS if page not in pages)
    name = _NAME.search(told) if page == "identity" else None
    question = NAMED.format(name[1]) if name else question
    return "" if (page or is_opening) and question in _spoken(messages) else question


def _told(tool: str, content: object, asked: str = "") -> str:
    """A result in a sentence."""
    given = content if isinstance(content, dict) else {}
    if "error" in given:
        return f"That did not work: {given['error']}"
    if tool == "memory_search":
        near = _near(given.get("hits") or [], asked)
        return _listed(list(map(_line, near))) if near or _ASKED.search(asked) else UNSURE
    if tool == "what_do_i_know":
        return _listed([str(line) for each in given.get("sections") or [] for line in each.get("bullets") or []])
    if tool == "who_am_i" and isinstance(who := given.get("identity"), dict):
        return f"I am {who.get('name')}, and just now I speak through practice, a small program without a model."
    if given.get("status") == "written" and given.get("path") == "BOOTSTRAP.md":
        return "Then we are done with the beginning. I am glad to know you."
    if "status" in given:
        why = given.get("reason") or given.get("rule")
        said = RECEIPTS.get(given["status"], "It was refused: {why}")
        return said.format(path=given.get("path"), proposal=given.get("proposal"), why=why)
    return json.dumps(content, ensure_ascii=False, indent=1)


def _near(hits: Sequence[Mapping[str, Any]], asked: str) -> Sequence[Mapping[str, Any]]:
    """The hits that hold a word of what was said; where none does, for a question the best of them."""
    words = {word for word in re.findall(r"\w+", asked.casefold()) if len(word) > 3} - _EMPTY
    near = [hit for hit in hits if any(word in str(hit.get("text", "")).casefold() for word in words)]
    return near or (hits[:1] if _ASKED.search(asked) else ())


def _listed(lines: Sequence[str]) -> str:
    more = [f"… and {len(lines) - _MOST} more; anima search lists them"] if len(lines) > _MOST else []
    return "\n".join(["I found this:", *(f"- {line}" for line in lines[:_MOST]), *more]) if lines else NOTHING


def _line(hit: Mapping[str, Any]) -> str:
    text = re.sub(r"</?unreviewed>|^> ?", "", str(hit.get("text", "")).strip(), flags=re.MULTILINE)
    return f"{' '.join(text.split()).lstrip('> -')} ({hit.get('citation')}{', not reviewed yet' * bool(hit.get('unreviewed'))})"


def _summary(asked: str) -> str:
    said = _SAID.findall(asked.partition("<conversation>")[2])
    if not said:
        return "Facts\n- nothing was said"
    return "\n".join([f"Open\n- {said[-1][:300]}", "Facts", *(f"- {line[:300]}" for line in said[-20:])])
