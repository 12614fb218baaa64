"""Claude Agent SDK: a home's session behind a `ClaudeSDKClient`: prompt, tools, hooks, and the SDK's `SessionStore`.

Promise: what is sent with `query` is the owner's, by the hook that reports it before the model does; what other tools say
is from outside, in the main conversation and in sub-agents. Claude Code's own transcript is kept beside the home's, secrets
struck out, so that a conversation can be taken up on another machine; what is read of it is on record as a session of the
home's, under the same id. A conversation whose hooks do not report counts as having read outside text.

    home = LodgedClaude(opened.session(scope="main"))
    async with ClaudeSDKClient(home.options()) as client: …
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from anima import Session, Tool
from anima.connect import records, report_of
from anima.connect.adapters import Lodger, needed, parsed
from anima.connect.settle import is_own, said_in
from anima.errors import NotFound
from anima.model import Origin

with needed("claude-agent-sdk", "the Claude Agent SDK"):
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher, SdkMcpTool, SessionStore, create_sdk_mcp_server

NAME = "claude-code"
EVENTS = ("UserPromptSubmit", "PostToolUse", "PostToolUseFailure", "PreCompact", "SubagentStart")


class LodgedClaude(SessionStore):
    """One conversation, and the store of all of them."""

    def __init__(self, session: Session) -> None:
        self.session, self.prompt, self._lodger = session, session.prompt.text, Lodger(session)
        self._watched, self._typed = False, set[str]()
        self._asked: dict[str, str] = {}
        self._told = Counter[str]()  # answers of tools that hooks reported, and that the transcript still brings
        who, talks = session.listener, session.rooms
        self._who = "" if who.sees_all else f"{who.scope} {who.layer}"  # whose logs these are
        folder = f"{session.site.config.sessions.dir}/{NAME}"
        self._logs = session.site.store.logs(folder, suffix=".jsonl") if talks.kept else None
        self._redact = talks.redact

    def options(self, **given: Any) -> ClaudeAgentOptions:
        """The options of a client: what is `given`, with the home's prompt, tools, hooks and store."""
        is_there = any(key["session_id"] == self.session.id for key in self._keys())
        tools = [self._tool(tool) for tool in self._lodger.tools]
        servers = {**given.pop("mcp_servers", {}), "anima": create_sdk_mcp_server(name="anima", tools=tools)}
        allowed = [*given.pop("allowed_tools", ()), *(f"mcp__anima__{tool.name}" for tool in tools)]
        hooks = dict(given.pop("hooks", None) or {})
        for event, hook in self.hooks().items():
            hooks[event] = [*hook, *hooks.get(event, ())]
        made = {"resume" if is_there else "session_id": self.session.id, "system_prompt": self.prompt}
        made |= {"session_store": self, **given}
        return ClaudeAgentOptions(**made, mcp_servers=servers, allowed_tools=allowed, hooks=hooks)

    def _tool(self, tool: Tool) -> SdkMcpTool[Any]:
        async def call(given: dict[str, Any]) -> dict[str, Any]:
            if not self._watched:
                await asyncio.to_thread(self.session.taint, Origin.HOST)
            text = await asyncio.to_thread(self._lodger.call, tool.name, given)
            return {"content": [{"type": "text", "text": text}]}

        return SdkMcpTool(name=tool.name, description=tool.about, input_schema=tool.schema(), handler=call)

    def hooks(self) -> dict[str, list[HookMatcher]]:
        """The home's hooks, for options that somebody else makes."""

        def hook(event: str) -> Any:
            async def called(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
                self._watched = True
                return await asyncio.to_thread(self._reported, event, given) or {}

            return called

        return {event: [HookMatcher(hooks=[hook(event)])] for event in EVENTS}

    def _reported(self, event: str, given: Mapping[str, Any]) -> dict[str, Any] | None:
        match event:
            case "UserPromptSubmit":
                report = report_of(NAME, event, given)
                if report is not None and not report.machine:
                    self._typed.add(_words(report.text))
                    self._lodger.owner(report.text)
            case "PreCompact":
                self.session.flush("compaction")
            case "SubagentStart":
                told = self.session.sub().prompt.text
                return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": told}}
            case _ if not is_own(name := str(given["tool_name"])):  # a tool was used, or failed
                said = given.get("tool_response", given.get("error", ""))
                text = said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str)
                self._lodger.outside(name, given.get("tool_input"), text, given.get("tool_use_id"), early=True)
                self._told[name] += 1
        return None

    async def append(self, key: Any, entries: list[Any]) -> None:
        if entries and self._logs is not None:
            await asyncio.to_thread(self._append, dict(key), entries)

    def _append(self, key: dict[str, Any], entries: list[Any]) -> None:
        assert self._logs is not None
        held = {line.get("uuid") for line in self._read(key) or ()} - {None}
        new = [entry for entry in entries if entry.get("uuid") not in held]
        lines = [json.dumps(self._without_secrets(each), ensure_ascii=False).encode() + b"\n" for each in new]
        with self._logs.create(_id(key, self._who)) as log:
            if not log.size():
                log.begin(json.dumps({**key, "who": self._who}).encode() + b"\n")
            for line in lines:
                log.append(line, sync=False)
            log.sync()
        if key["session_id"] == self.session.id and not key.get("subpath"):
            raw = b"".join(lines)  # what hooks told of is on record already
            if any(line.get("type") == "attachment" for line in records(raw)):
                self._lodger.attached()
            for said in said_in(NAME, raw, self._asked):
                if said.role == "assistant":
                    self._lodger.model(said.text, said.id)
                elif said.role == "user" and _words(said.text) not in self._typed:
                    self._lodger.other(NAME, said.text, said.id)
                elif said.role == "tool" and self._told[said.tool] > 0:
                    self._told[said.tool] -= 1
                elif said.role == "tool":
                    self._lodger.outside(said.tool, {}, said.text, said.id)

    def _without_secrets(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._redact(value)[0]
        if isinstance(value, list):
            return [self._without_secrets(each) for each in value]
        return {k: self._without_secrets(v) for k, v in value.items()} if isinstance(value, dict) else value

    async def load(self, key: Any) -> list[Any] | None:
        return await asyncio.to_thread(self._read, dict(key))

    def _read(self, key: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        raw = self._raw(_id(key, self._who))
        return None if raw is None else [found for line in raw[1:] if isinstance(found := parsed(line), dict)]

    def _raw(self, id: str) -> list[str] | None:
        if self._logs is None:
            return None
        try:
            with self._logs.open(id) as log:
                return log.read(0, log.size()).decode("utf-8", "replace").split("\n")
        except NotFound:
            return None

    def _keys(self) -> list[dict[str, Any]]:
        ids = self._logs.versions() if self._logs is not None else ()
        firsts = [parsed((self._raw(id) or [""])[0]) for id in ids]
        keys = [key for key in firsts if isinstance(key, dict) and "session_id" in key]
        return [key for key in keys if key.get("who", "") == self._who]

    async def list_subkeys(self, key: Any) -> list[str]:
        names = ("project_key", "session_id")
        found = await asyncio.to_thread(lambda: [k for k in self._keys() if all(k.get(n) == key[n] for n in names)])
        return [each["subpath"] for each in found if each.get("subpath")]


def _id(key: Mapping[str, Any], who: str) -> str:
    parts = [str(key.get(name) or "") for name in ("project_key", "session_id", "subpath")] + [who] * bool(who)
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]


def _words(text: str) -> str:
    return " ".join(text.split())
