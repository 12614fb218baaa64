"""Connecting: a home's place in the agents people already use. Here: what hosts report by their hooks, in our words; and the
envelope in which each of them takes an answer.

Promise: pure, and light, since a host waits for every hook: nothing but the standard library. Any JSON gives a report or
None, and no answer is longer than MOST bytes. Not here: what becomes of a report (hook, settle), whether what it says is
believed (settle), and which hooks a host is given (hosts).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MOST = 9_000  # bytes of an answer; Claude Code cuts at 10,000 characters and Codex at 10,000 bytes
TEXT = 20_000  # characters of a text that are reported on; who types more has pasted it
NARROW = ("group", "cron", "subagent")  # scopes that a host may say; the owner's own is what it has else
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{7,99}\Z")

# An event of a host, and our word for it: start, prompt, tool, cut (before a compaction), summary (after it), turn (its
# end), helper (a sub-agent begins), end.
_LIKE_CLAUDE = {
    "SessionStart": "start",
    "UserPromptSubmit": "prompt",
    "PostToolUse": "tool",
    "PreCompact": "cut",
    "PostCompact": "summary",
    "Stop": "turn",
    "SubagentStart": "helper",
    "SessionEnd": "end",
}
_OURS = {word: word for word in _LIKE_CLAUDE.values()}
EVENTS: Mapping[str, Mapping[str, str]] = {
    "claude-code": _LIKE_CLAUDE,
    "codex": _LIKE_CLAUDE,
    "cursor": {
        "sessionStart": "start",
        "beforeSubmitPrompt": "prompt",
        "postToolUse": "tool",
        "preCompact": "cut",
        "stop": "turn",
        "subagentStart": "helper",
        "sessionEnd": "end",
    },
    "gemini": {
        "SessionStart": "start",
        "BeforeAgent": "prompt",
        "AfterTool": "tool",
        "PreCompress": "cut",
        "AfterAgent": "turn",
        "SessionEnd": "end",
    },
    "hermes": _OURS,
    "generic": _OURS,
}
# Which of them can be answered with text for the model.
_TOLD = {
    "claude-code": {"start", "prompt", "helper"},
    "codex": {"start", "prompt", "helper"},
    "cursor": {"start", "helper"},
    "gemini": {"start", "prompt"},
    "hermes": {"start", "prompt", "helper"},
    "generic": {"start", "prompt", "helper"},
}
# Codex tells a sub-agent's start by the same words; what begins so is no sentence of a person's.
_MACHINE = re.compile(r"\s*(?:<[a-z][\w-]*[ >]|/[a-z]|\[(?:Request interrupted|SYSTEM))")
_PEOPLE = ("user", "sdk")  # sources of a prompt that a person wrote


class Report(NamedTuple):
    """One event of a host's conversation, with what we keep of it. `id` is the host's own for the conversation."""

    host: str
    event: str
    id: str
    text: str = ""  # of a prompt or a summary
    tool: str = ""
    path: str = ""  # of the host's transcript
    source: str = ""  # why a session starts or ends
    machine: bool = False  # a prompt that no person wrote
    reply: str = ""  # of a host whose transcript we do not read: what the agent said in a turn
    scope: str = ""  # who listens, where a host says that it is not the owner alone


def report_of(host: str, name: str, given: object) -> Report | None:
    """What a host reports; None where it is nothing we know, or says no conversation."""
    event = EVENTS.get(host, {}).get(name)
    if event is None or not isinstance(given, dict):
        return None
    id = _text(given, "session_id") or _text(given, "conversation_id")
    if not ID.match(id):
        return None
    text = _clean(given, {"prompt": "prompt", "summary": "compact_summary", "turn": "user"}.get(event, ""))
    source = _text(given, "source") or _text(given, "reason")
    is_machine = event == "prompt" and (
        (bool(source) and source not in _PEOPLE) or bool(_MACHINE.match(text)) or bool(given.get("agent_id"))
    )
    return Report(
        host=host,
        event=event,
        id=id,
        text=text,
        tool=_text(given, "tool_name")[:200],
        path=_text(given, "transcript_path")[:4_000],
        source=source[:40],
        machine=is_machine,
        reply=_clean(given, "assistant") if event == "turn" else "",
        scope=_text(given, "scope") if _text(given, "scope") in NARROW else "",
    )


def _clean(given: Mapping[str, Any], name: str) -> str:
    """A text without half characters, and no longer than anybody types."""
    return _text(given, name)[: TEXT + 1].encode("utf-8", "replace").decode()


def _text(given: Mapping[str, Any], name: str) -> str:
    found = given.get(name)
    return found if isinstance(found, str) else ""


def parsed(arguments: Sequence[str]) -> tuple[str, str, str, str]:
    """Host, event, home and configuration of a command line. Raises ValueError where one is missing or unknown."""
    words, named = list(arguments), dict[str, str]()
    for option in ("--home", "--config"):
        if option in words:
            at = words.index(option)
            named[option] = words[at + 1] if at + 1 < len(words) else ""
            del words[at : at + 2]
    host, event = words
    if host not in EVENTS or not named.get("--home") or not named.get("--config"):
        raise ValueError("a hook says its host, event, home and configuration")
    return host, event, os.path.abspath(named["--home"]), os.path.abspath(named["--config"])


def takes(host: str, event: str) -> bool:
    """Whether a host hands an answer to this event on to its model."""
    return event in _TOLD.get(host, ())


def envelope(host: str, name: str, text: str) -> str:
    """An answer as the host wants it; "" for no text, or for one that does not fit."""
    if not text:
        return ""
    if host in ("hermes", "generic"):
        said = text
    elif host == "cursor":
        said = json.dumps({"additional_context": text}, ensure_ascii=False)
    else:
        told = {"hookEventName": name, "additionalContext": text}
        said = json.dumps({"hookSpecificOutput": told}, ensure_ascii=False)
    return said if len(said.encode("utf-8", "replace")) <= MOST else ""


def fitting(text: str, room: int) -> str:
    """A text of at most so many bytes as JSON writes it, cut at the end of a line; what is left out is said."""
    if _size(text) <= room:
        return text
    mark = "\n[the rest did not fit here; memory_get reads it]"
    lines, used = [], _size(mark)
    for line in text.split("\n"):
        used += _size(line) + 2
        if used > room:
            break
        lines.append(line)
    return "\n".join(lines) + mark


def _size(text: str) -> int:
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) - 2
