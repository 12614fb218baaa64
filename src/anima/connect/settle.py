"""Settling: what hooks reported and hosts wrote down becomes a session of ours, the same for the host's MCP server; and waking: what a
model is told when a conversation begins in a host, or goes on after a cut.

Promise: a host's conversation is one session, by the host's own id, and always carries `host`. Words count as the owner's only where
two say so: the hook, before the model saw them, and the host's transcript; what one says alone is kept as a tool's. What is worth
keeping is written down before a cut and at the end; doing it again, also after a crash, writes nothing twice. A home that nobody
vouched for is told to nobody. What hooks, hosts and our own tools told the model does not come back from a transcript.
Not here: reading reports (connect), which event asks (hook), the protocol (mcp).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from anima import Home, HomeError, Origin, Runtime, Scope, Session
from anima.connect import EVENTS, Report, Spool, ancestors, fitting, parsed, records
from anima.text import read_table

KEPT = 400  # prompts of a conversation that are known by their digests
OLD = 30 * 24 * 3600  # seconds after which the records of a conversation go
IDLE = 3600  # seconds of silence after which a conversation is written down, whether or not it ended
_WEB = ("webfetch", "websearch", "web_fetch", "web_search", "google_web_search")


def main(arguments: Sequence[str]) -> int:
    """The process that works through everything that waits for one home."""
    _, _, home, config = parsed(["generic", "settle", *arguments])
    env = {**os.environ, "ANIMA_CONFIG": config}
    with Home.open(home, env=env) as opened:
        settle_all(opened)
        if opened.is_vouched_for:
            opened.index.bring_up()  # for what is recalled next
    return 0


def spool_of(home: Home, host: str) -> Spool:
    return Spool(str(home.site.register.file.parent), home.name, host)


def settle_all(home: Home) -> None:
    """Works through every conversation of every host that something waits of."""
    for host in EVENTS:
        spool = spool_of(home, host)
        if spool.connection is None:
            continue
        for id, heard in spool.ids().items():
            silent = time.time() - heard
            if spool.waiting(id):
                with suppress(HomeError, OSError), conversation(home, spool, id) as session:
                    if session is not None and silent > IDLE:
                        session.flush("idle")
            if silent > OLD:
                spool.drop(id)


@contextmanager
def conversation(home: Home, spool: Spool, id: str) -> Iterator[Session | None]:
    """The session of a host's conversation with everything in it that is known by now, for one at a time; None where the
    conversation is not the host's own. Afterwards it is let go, or closed where the host ended it."""
    with spool.alone(id):
        if (session := _opened(home, spool.host, id)) is None:
            yield None
            return
        try:
            ended = _settled(home, spool, id, session)
            spool.done(id)
            yield session
            if ended:
                session.close()
        finally:
            session.leave()


def _opened(home: Home, host: str, id: str) -> Session | None:
    """The session: resumed, or begun with the host's id. One that another door began is not a host's to go on with."""
    if not home.is_vouched_for:
        return None
    if home.sessions.has(id):
        session = home.resume(id)
        if session.channel != host or session.listener.scope is not Scope.MAIN:
            session.leave()
            return None
    else:
        session = home.sessions.begin(scope=Scope.MAIN, channel=host, id=id)
    session.taint(Origin.HOST)
    return session


def digest(text: str) -> str:
    """What a prompt is known by; blanks apart, since hosts trim them."""
    return hashlib.sha256(" ".join(text.split()).encode("utf-8", "replace")).hexdigest()[:32]


def _settled(home: Home, spool: Spool, id: str, session: Session) -> bool:
    """Takes everything in that waits; whether the host ended the conversation."""
    reports, state, known = spool.take(id), spool.state(id), set[str]()
    typed = [
        digest(report["text"])
        for report in reports
        if report.get("event") == "prompt" and not report.get("machine") and isinstance(report.get("text"), str)
    ]
    state["typed"] = [*state.get("typed", []), *typed][-KEPT:]
    for report in reports:
        if isinstance(path := report.get("path"), str) and path:
            state["path"] = path
        state |= {"heard": report.get("at"), "above": report.get("above", [])}
    if state.get("dirty") and home.sessions.has(id):  # after a crash, what the session holds already
        known = {turn.message_id for turn in home.sessions.read(id, limit=1_000_000).entries if turn.message_id}
    spool.put_state(id, state | {"dirty": True})
    if spool.host in READERS and state.get("path"):
        # a prompt is the owner's where a hook reported that somebody typed it
        within = str((spool.connection or {}).get("transcripts", ""))
        raw, after = lines_from(state["path"], int(state.get("offset", 0)), within=within, id=id)
        tools = dict(state.get("tools", {}))
        for said in said_in(spool.host, raw, tools):
            if said.id not in known:
                is_anybodys = said.role == "user" and digest(said.text) not in state["typed"]
                name = said.tool or (spool.host if is_anybodys else None)
                session.log(said.role, said.text, message_id=said.id[:120] or None, name=name)
        state |= {"offset": after, "tools": tools}
    for report in reports:
        _do(report, spool.host, session)
    spool.put_state(id, state | {"dirty": False})
    return bool(reports) and reports[-1].get("event") == "end"


def _do(report: Mapping[str, Any], host: str, session: Session) -> None:
    match report.get("event"):
        case "tool" if not is_own(tool := str(report.get("tool", ""))):
            session.taint(Origin.WEB if tool.casefold() in _WEB else Origin.TOOL)
        case "turn" if host not in READERS and (text := str(report.get("text", ""))):
            session.log("user", text, name=host)
            if reply := str(report.get("reply", "")):
                session.log("assistant", reply)
        case "cut":
            session.flush("compaction")
        case "summary":
            session.after_compaction(summary=str(report.get("text", "")) or None)


MOST_READ = 64 << 20  # bytes that are read at a time
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
# Of lines of Claude Code's that nobody said.
_ASIDE = ("isSidechain", "isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")
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
    if kind not in ("user", "assistant") or any(map(line.get, _ASIDE)):
        return
    content = _dict(line.get("message")).get("content")
    for block in _blocks(content):
        if kind == "assistant" and block.get("type") == "tool_use":
            tools[str(block.get("id"))] = str(block.get("name", ""))
        elif kind == "user" and block.get("type") == "tool_result":
            name = tools.pop(str(block.get("tool_use_id")), "tool")
            yield Utterance("tool", _texts(block.get("content"))[:TOOL_TEXT], f"{id}-result", name)
    if kind == "user":
        content = [block for block in _blocks(content) if block.get("type") == "text"]
    if (text := _texts(content)) and (kind == "assistant" or not _HOSTS_OWN.match(text)):
        yield Utterance(kind, text, id)


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
    for call in _blocks(line.get("toolCalls")):
        said, id = str(call.get("resultDisplay", ""))[:TOOL_TEXT], f"{line.get('id', '')}-{call.get('id', '')}"
        yield Utterance("tool", said, id, str(call.get("name", "tool")))


READERS: Mapping[str, Reader] = {"claude-code": _claude_code, "codex": _codex, "cursor": _cursor, "gemini": _gemini}


def said_in(host: str, raw: bytes, tools: dict[str, str]) -> Iterator[Utterance]:
    """What was said in lines of a host's transcript. `tools`, calls whose answers are to come, are brought up to date."""
    for line in records(raw):
        yield from (said for said in READERS[host](line, tools) if not (said.role == "tool" and is_own(said.tool)))


def lines_from(path: str, offset: int, *, within: str, id: str) -> tuple[bytes, int]:
    """The whole lines of a transcript from an offset on, and where the next begin; nothing where it is no transcript of
    this conversation's, or not where the host keeps them. No link is followed."""
    if not within or not os.path.isabs(path) or "\0" in path or id not in os.path.basename(path):
        return b"", offset
    real, top = os.path.realpath(path), os.path.realpath(within)
    if os.path.commonpath([real, top]) != top or real == top:
        return b"", offset
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = Path(path).lstat()
            is_ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.getuid()
            if not is_ours or not os.path.samefile(path, file.fileno()):
                return b"", offset
            if os.path.getsize(file.fileno()) < offset:  # it was written anew
                offset = 0
            file.seek(offset)
            raw = file.read(MOST_READ)
    except OSError:
        return b"", offset  # it cannot be read, or went meanwhile
    whole = raw[: raw.rfind(b"\n") + 1]
    if not whole and len(raw) == MOST_READ:  # a line that nobody reads: what comes after it is read
        return b"", offset + MOST_READ
    return whole, offset + len(whole)


_SAYS = ("sessionId", "threadId", "conversationId")  # Codex says it with each call
_LATEST = 40  # conversations that are looked at
_TOLD = "CLAUDE_CODE_SESSION_ID"  # at the start


@contextmanager
def joined(home: Home, host: str, meta: Mapping[str, Any], *, env: Mapping[str, str]) -> Iterator[Session | None]:
    """The session in which a call from a host belongs, with all that is known of it; None where no hook reported of it."""
    spool = spool_of(home, host)
    if id := _joined_id(spool, meta, env):
        with conversation(home, spool, id) as session:
            yield session
        return
    if (found := spool.connection) is not None:  # without a single report: its host runs no hooks of ours
        spool.put_connection(found | {"silent": time.time()})
    yield None


def _joined_id(spool: Spool, meta: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """By what the host says; else the one last heard of from the process that started us; else as told at the start."""
    if said := next((value for name in _SAYS if isinstance(value := meta.get(name), str)), ""):
        return said if spool.known(said) else ""
    above, ids = ancestors()[:1], spool.ids()
    for id in sorted(ids, key=lambda id: -ids[id])[:_LATEST] if above else ():
        waiting = spool.waiting(id)
        if above[0] in (waiting[-1] if waiting else spool.state(id)).get("above", []):
            return id
    return told if spool.known(told := env.get(_TOLD, "")) else ""


FILES = (6_000, 3_000, 2_000, 1_400, 900, 500)  # characters of one file, tried in turn
_STABLE = 0.6  # of the room, at most, for what stays the same
_WORDS = read_table("connect", "waking")


def waking(home: str, config: str, report: Report, *, again: bool, room: int) -> str:
    """The text, in at most `room` bytes as JSON; "" where no home may be told. `again`: what was said before the cut is in it."""
    env, host, helper = {**os.environ, "ANIMA_CONFIG": config}, report.host, report.event == "helper"
    with Home.open(home, env=env, finish=again) as opened:
        if not opened.is_vouched_for:
            return ""
        if again:
            with suppress(HomeError), conversation(opened, spool_of(opened, host), report.id):
                pass  # what was said before the cut is among what is told
        name = opened.identity.name or "this home's agent"
        whom = "" if report.scope else _WORDS["owner"]
        head = _WORDS["helper" if helper else "first"].format(name=name, host=host, whom=whom)
        parts = [head] if helper else [*([_WORDS["again"]] if again else []), head, *([_WORDS["how"]] if whom else [])]
        front = "\n\n".join(parts)
        scope = Scope.SUBAGENT if helper else Scope(report.scope or Scope.MAIN)
        space = room - len(front) - 40  # for the prompt, with the largest files for which nothing falls out of it
        text, total, limits = "", space, opened.prompts.limits
        for file in FILES:
            opened.prompts.limits = replace(limits, file=min(file, limits.file), total=min(total, limits.total))
            made = opened.prompt(scope=scope, runtime=Runtime(host=host))
            text, size = made.text, len(made.text.encode("utf-8", "replace"))
            if size > space:  # letters of several bytes, and line ends
                total = max(1_000, total * space // (size + size // 20))
                continue
            whole = not any(line.status == "dropped" for line in made.manifest)
            if whole and len(made.stable) <= _STABLE * space:
                break
        return fitting(f"{front}\n\n{text}", room)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
