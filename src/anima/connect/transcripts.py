"""Hosts' own transcripts, read: what was said in them, by whom, with the hosts' ids for it.

Promise: pure over lines; a line that cannot be read, or is of a kind we do not know, is passed over. What hooks told the
model, what the host told it, and the answers of our own tools are no part of what was said: they do not come back.
A path is only read where the host keeps its transcripts, by a name that holds the conversation's id, no link followed.
Not here: whose words they count as (settle).
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

MOST = 64 << 20  # bytes that are read at a time
TOOL_TEXT = 2_000  # characters of a tool's answer that are kept
_HOSTS_OWN = re.compile(r"\s*<(?:command-|local-command|task-notification|system-reminder|bash-)")  # no person says it
# mcp__anima__x, mcp__plugin_anima_anima__x, anima__x; none of another server, as anima__web is
_OWN = re.compile(r"(?:mcp__)?(?:plugin_anima_)?anima(?:__(?!.*__)|\Z)", re.S)


class Utterance(NamedTuple):
    """One thing that was said: `user`, `assistant` or `tool`; `tool` names whose answer it is."""

    role: Literal["user", "assistant", "tool"]
    text: str
    id: str
    tool: str = ""


_CODEX: Mapping[str, Literal["user", "assistant"]] = {"UserMessage": "user", "AgentMessage": "assistant"}
_GEMINI: Mapping[str, Literal["user", "assistant"]] = {"user": "user", "gemini": "assistant"}
Reader = Callable[[Mapping[str, Any], dict[str, str]], Iterator[Utterance]]


def is_own(tool: str) -> bool:
    """Whether a tool is one of the home's, as hosts name them."""
    return bool(_OWN.match(tool))


def _blocks(content: object) -> Iterator[Mapping[str, Any]]:
    if isinstance(content, str):
        yield {"type": "text", "text": content}
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict):
            yield block


def _texts(content: object) -> str:
    found = (block.get("text") for block in _blocks(content) if str(block.get("type", "text")).endswith("text"))
    return "\n".join(text for text in found if isinstance(text, str)).strip()


def _dict(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _claude_code(line: Mapping[str, Any], tools: dict[str, str]) -> Iterator[Utterance]:
    kind, id = line.get("type"), str(line.get("uuid", ""))
    if kind not in ("user", "assistant") or any(
        line.get(mark) for mark in ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
    ):
        return
    content = _dict(line.get("message")).get("content")
    if kind == "assistant":
        for block in _blocks(content):
            if block.get("type") == "tool_use":
                tools[str(block.get("id"))] = str(block.get("name", ""))
        if text := _texts(content):
            yield Utterance("assistant", text, id)
        return
    for block in _blocks(content):
        if block.get("type") == "tool_result":
            name = tools.pop(str(block.get("tool_use_id")), "tool")
            yield Utterance("tool", _texts(block.get("content"))[:TOOL_TEXT], f"{id}-result", name)
    text = _texts([block for block in _blocks(content) if block.get("type") == "text"])
    if text and not _HOSTS_OWN.match(text):
        yield Utterance("user", text, id)


def _codex(line: Mapping[str, Any], tools: dict[str, str]) -> Iterator[Utterance]:
    """Person and agent are told by events; tools by the items that models are shown."""
    payload = _dict(line.get("payload"))
    kind, id = payload.get("type"), str(payload.get("id") or payload.get("call_id") or line.get("timestamp", ""))
    if line.get("type") == "event_msg":
        item = _dict(payload.get("item"))
        spoken = _CODEX.get(str(item.get("type")))
        if kind == "item_completed" and spoken:
            content = [{"type": "text", "text": block.get("text")} for block in _blocks(item.get("content"))]
            if text := _texts(content):
                yield Utterance(spoken, text, str(item.get("id", id)))
        elif kind in ("user_message", "agent_message") and isinstance(payload.get("message"), str):  # before 0.160
            yield Utterance("user" if kind == "user_message" else "assistant", payload["message"].strip(), id)
    elif line.get("type") == "response_item" and kind in ("function_call", "custom_tool_call"):
        name = "__".join(filter(None, (str(payload.get("namespace") or ""), str(payload.get("name") or ""))))
        tools[str(payload.get("call_id"))] = name
    elif line.get("type") == "response_item" and kind in ("function_call_output", "custom_tool_call_output"):
        name = tools.pop(str(payload.get("call_id")), "tool")
        yield Utterance("tool", _texts(payload.get("output"))[:TOOL_TEXT], f"{id}-result", name)


def _cursor(line: Mapping[str, Any], tools: dict[str, str]) -> Iterator[Utterance]:
    role, text = line.get("role"), _texts(_dict(line.get("message")).get("content"))
    if role == "user" and (asked := re.search(r"<user_query>\s*([\s\S]*?)\s*</user_query>", text)):
        text = asked[1]
    if (role == "user" or role == "assistant") and text:
        tools["line"] = str(int(tools.get("line", "0")) + 1)  # the format has no ids
        yield Utterance(role, text, f"line-{tools['line']}")


def _gemini(line: Mapping[str, Any], tools: dict[str, str]) -> Iterator[Utterance]:
    text, role = _texts(line.get("content")) or _texts(line.get("displayContent")), _GEMINI.get(str(line.get("type")))
    if role and text:
        yield Utterance(role, text, str(line.get("id", "")))
    calls = line.get("toolCalls")
    for call in _blocks(calls):
        yield Utterance(
            "tool",
            str(call.get("resultDisplay", ""))[:TOOL_TEXT],
            f"{line.get('id', '')}-{call.get('id', '')}",
            str(call.get("name", "tool")),
        )


READERS: Mapping[str, Reader] = {
    "claude-code": _claude_code,
    "codex": _codex,
    "cursor": _cursor,
    "gemini": _gemini,
}


def said_in(host: str, raw: bytes, tools: dict[str, str]) -> Iterator[Utterance]:
    """What was said in some lines of a host's transcript. `tools` are calls whose answers are still to come; they are
    brought up to date."""
    reader = READERS[host]
    for line in raw.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield from (said for said in reader(found, tools) if not (said.role == "tool" and is_own(said.tool)))


def lines_from(path: str, offset: int, *, within: str, id: str) -> tuple[bytes, int]:
    """The whole lines of a transcript from an offset on, and where the next begin; nothing where it is no transcript of
    this conversation's, or not where the host keeps them."""
    if not _is_beneath(path, within) or id not in os.path.basename(path):
        return b"", offset
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b"", offset
    with open(fd, "rb") as file:
        if not _is_ours(path, fd):
            return b"", offset
        if os.path.getsize(fd) < offset:  # it was written anew
            offset = 0
        file.seek(offset)
        raw = file.read(MOST)
    whole = raw[: raw.rfind(b"\n") + 1]
    if not whole and len(raw) == MOST:  # a line that nobody reads: what comes after it is read
        return b"", offset + MOST
    return whole, offset + len(whole)


def _is_ours(path: str, fd: int) -> bool:
    """Whether an open file is a regular one of this user's, and stands there under its own name."""
    try:
        found = Path(path).lstat()
        return stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid() and os.path.samefile(path, fd)
    except OSError:
        return False  # it went meanwhile


def _is_beneath(path: str, folder: str) -> bool:
    """Whether a path, once every link in it is followed, stands in a folder."""
    if not folder or not os.path.isabs(path) or "\0" in path:
        return False
    real, top = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath([real, top]) == top and real != top
