"""A home and a host that is connected to it, for tests: reports go the way of a hook, transcripts are files of the host's."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anima import Home, Session
from anima.connect.connections import Connection, host_of
from anima.connect.hook import answer
from anima.connect.hosts import Wiring
from anima.connect.settle import settle_all

ID = "0f9f6f3e-5d7c-4a57-9d0e-6a2b1c3d4e5f"
FOLDERS = {
    "CLAUDE_CONFIG_DIR": "claude",
    "CODEX_HOME": "codex",
    "CURSOR_CONFIG_DIR": "cursor",
    "GEMINI_CLI_HOME": "gemini",
    "VSCODE_USER_DATA": "vscode",
    "OPENCLAW_STATE_DIR": "openclaw",
    "HERMES_HOME": "hermes",
    "NANOBOT_HOME": "nanobot",
}


def wiring(home: Home, folder: Path, **env: str) -> Wiring:
    """How a home is reached from hosts whose folders all stand in one."""
    places = {name: str(folder / place) for name, place in FOLDERS.items()}
    return Wiring(
        program=("/opt/anima/bin/anima",),
        home=home.name,
        config=os.environ["ANIMA_CONFIG"],
        agent=home.identity.name,
        env={"HOME": str(folder), **places, **env},
    )


def connecting(home: Home, host: str, folder: Path, **env: str) -> Connection:
    return Connection(
        wiring(home, folder, **env),
        host_of(host),
        identity=home.site.store.identity,
        index=home.site.store.scratch("index.sqlite"),
        now=home.clock(),
    )


@dataclass
class Connected:
    """One host of one home, in a folder of its own."""

    home: Home
    host: str
    folder: Path

    @classmethod
    def to(cls, home: Home, host: str, folder: Path) -> Connected:
        made = connecting(home, host, folder)
        made.connect(made.plan(remove=False))
        return cls(home, host, folder)

    def words(self, event: str) -> list[str]:
        return [self.host, event, "--home", self.home.name, "--config", os.environ["ANIMA_CONFIG"]]

    def hook(self, event: str, **given: Any) -> str:
        """What the host is told. Nothing is worked through beside it: `settle` does so."""
        said = {
            "session_id": ID,
            "hook_event_name": event,
            "cwd": "/",
            "transcript_path": str(self.transcript),
            **given,
        }
        return answer(self.words(event), json.dumps(said).encode(), apart=lambda home, config: None)

    def context(self, event: str, **given: Any) -> str:
        """The text for the model in it; "" where there is none."""
        said = self.hook(event, **given)
        return str(json.loads(said)["hookSpecificOutput"]["additionalContext"]) if said else ""

    @property
    def transcript(self) -> Path:
        places = {
            "claude-code": "claude/projects/p",
            "codex": "codex/sessions/2026/11/17",
            "cursor": "cursor/projects/p",
        }
        return self.folder / places.get(self.host, "gemini/.gemini/tmp/p/chats") / f"rollout-{ID}.jsonl"

    def writes(self, *lines: Mapping[str, Any]) -> None:
        """The host adds lines to its transcript."""
        self.transcript.parent.mkdir(parents=True, exist_ok=True)
        with self.transcript.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

    def types(self, text: str, **given: Any) -> str:
        """The person types a prompt: the hook reports it, the host writes it down."""
        said = self.context("UserPromptSubmit", prompt=text, **given)
        self.writes(user(text))
        return said

    def settle(self) -> None:
        settle_all(self.home)

    @property
    def said(self) -> list[tuple[str, str, str | None]]:
        """What our session holds: role, text and name."""
        entries = self.home.sessions.read(ID).entries if self.home.sessions.has(ID) else ()
        return [(turn.role, turn.content, turn.name) for turn in entries]

    def session(self) -> Session:
        return self.home.resume(ID)


def user(text: str, **more: Any) -> dict[str, Any]:
    """A person's line as Claude Code writes it."""
    number = abs(hash(text)) % 10**8
    return {"type": "user", "uuid": f"u-{number}", "message": {"role": "user", "content": text}, **more}


def assistant(*blocks: Mapping[str, Any] | str, id: str = "a-1") -> dict[str, Any]:
    content = [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
    return {"type": "assistant", "uuid": id, "message": {"role": "assistant", "content": content}}


def called(name: str, id: str = "t1") -> dict[str, Any]:
    return {"type": "tool_use", "id": id, "name": name, "input": {}}


def result(text: str, id: str = "t1") -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]}
    return {"type": "user", "uuid": f"r-{id}", "message": {"role": "user", "content": [block]}}
