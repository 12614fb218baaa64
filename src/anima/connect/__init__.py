"""Connecting: a home's place in the agents people already use. Here: what hosts report by their hooks, in our words; the envelope in
which each of them takes an answer; and the records of their conversations: what nobody worked through yet, and how far it is.

Promise: light, since a host waits for every hook: nothing but the standard library. Any JSON gives a report or None, and no answer
is longer than MOST bytes. Records lie in the user's own configuration, beside a home's tokens, never in the home or in a project.
Adding a report is one write under a lock; whoever works through them takes the whole file, and what comes meanwhile is in the next.
Not here: what becomes of a report (hook), whether what it says is believed (settle), and which hooks a host is given (hosts).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

MOST = 9_000  # bytes of an answer; Claude Code cuts at 10,000 characters and Codex at 10,000 bytes
TEXT = 20_000  # characters of a text that are reported on; who types more has pasted it
NARROW = ("group", "cron", "subagent")  # scopes that a host may say; the owner's own is what it has else
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{7,99}\Z")

# Our word for an event, and what it is called by Claude Code and Codex, by Cursor and by Gemini; hermes and generic say ours.
_NAMED = (
    ("start", "SessionStart", "sessionStart", "SessionStart"),
    ("prompt", "UserPromptSubmit", "beforeSubmitPrompt", "BeforeAgent"),
    ("tool", "PostToolUse", "postToolUse", "AfterTool"),
    ("cut", "PreCompact", "preCompact", "PreCompress"),  # before a compaction
    ("summary", "PostCompact", "", ""),  # after it
    ("turn", "Stop", "stop", "AfterAgent"),  # its end
    ("helper", "SubagentStart", "subagentStart", ""),  # a sub-agent begins
    ("end", "SessionEnd", "sessionEnd", "SessionEnd"),
)
_HOSTS = {"claude-code": 1, "codex": 1, "cursor": 2, "gemini": 3, "hermes": 0, "generic": 0}
EVENTS = {host: {row[at]: row[0] for row in _NAMED if row[at]} for host, at in _HOSTS.items()}
_ANSWERED = ("start", "prompt", "helper")  # with text for the model
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
    source, scope = _text(given, "source") or _text(given, "reason"), _text(given, "scope")
    is_others = source not in ("", *_PEOPLE) or _MACHINE.match(text) is not None or bool(given.get("agent_id"))
    return Report(
        host=host,
        event=event,
        id=id,
        text=text,
        tool=_text(given, "tool_name")[:200],
        path=_text(given, "transcript_path")[:4_000],
        machine=event == "prompt" and is_others,
        reply=_clean(given, "assistant") if event == "turn" else "",
        scope=scope if scope in NARROW else "",
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
    """Whether a host hands an answer to this event on to its model. Cursor does not hand on what comes with a prompt."""
    return event in _ANSWERED and event in EVENTS.get(host, {}).values() and (host, event) != ("cursor", "prompt")


def envelope(host: str, name: str, text: str) -> str:
    """An answer as the host wants it; "" for no text, or for one that does not fit."""
    if not text:
        return ""
    told: dict[str, Any] = {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
    if host == "cursor":
        told = {"additional_context": text}
    said = text if host in ("hermes", "generic") else json.dumps(told, ensure_ascii=False)
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


# What agents' shells have in their environment, and whose it is. A hook of these hosts is started by a shell of the host's.
_MARKS = {"CLAUDECODE": "claude-code", "CODEX_THREAD_ID": "codex", "GEMINI_CLI": "gemini", "CURSOR_AGENT": "cursor"}
_SHELLED = ("gemini", "cursor")
MOST_WAITING = 4 << 20  # bytes of reports that wait; beyond them only the events are kept, without their texts


def place_of(config: str, home: str) -> str:
    """Where what hosts report of one home is kept; the folder may not be there."""
    mark = hashlib.sha256(home.encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return os.path.join(config, "serve", mark, "hosts")


class Spool:
    """The records of one host, of one home."""

    def __init__(self, config: str, home: str, host: str) -> None:
        self.host, self.folder = host, os.path.join(place_of(config, home), host)

    @property
    def connection(self) -> dict[str, Any] | None:
        """What the owner agreed to when they connected this host; None where it is not connected."""
        return read_json(f"{self.folder}.json")

    def put_connection(self, found: Mapping[str, Any] | None) -> None:
        """Keeps that; None: it is connected no more."""
        if found is None:
            Path(f"{self.folder}.json").unlink(missing_ok=True)
        else:
            write_json(f"{self.folder}.json", found)

    def add(self, report: Report) -> None:
        """Keeps a report. Raises OSError."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        said = {key: value for key, value in report._asdict().items() if value and key not in ("host", "id")}
        said |= {"at": round(time.time(), 3), "above": ancestors()}
        path, is_kept = self._file(report.id, "jsonl"), False
        while not is_kept:
            with locked(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as fd:
                with suppress(OSError):  # it was taken meanwhile
                    is_kept = os.path.samefile(path, fd)
                if is_kept:
                    full = os.path.getsize(fd) >= MOST_WAITING
                    told = {key: value for key, value in said.items() if not full or key != "text"}
                    line = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
                    os.write(fd, line.encode("utf-8", "replace") + b"\n")

    def alone(self, id: str) -> AbstractContextManager[int]:
        """A conversation, for one process and thread at a time."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        return locked(self._file(id, "lock"))

    def take(self, id: str) -> list[dict[str, Any]]:
        """The reports of a conversation that wait; they stay until they are `done`, for whoever comes after a crash."""
        held = self._file(id, "taken")
        if not os.path.exists(held):
            path = self._file(id, "jsonl")
            with suppress(FileNotFoundError), locked(path, os.O_RDONLY):  # whoever writes into it is done
                os.rename(path, held)
        return _lines(held)

    def waiting(self, id: str) -> list[dict[str, Any]]:
        return _lines(self._file(id, "jsonl")) or _lines(self._file(id, "taken"))

    def done(self, id: str) -> None:
        Path(self._file(id, "taken")).unlink(missing_ok=True)

    def state(self, id: str) -> dict[str, Any]:
        """How far a conversation is worked through; {} for one that is new."""
        return read_json(self._file(id, "json")) or {}

    def put_state(self, id: str, state: Mapping[str, Any]) -> None:
        write_json(self._file(id, "json"), state)

    def drop(self, id: str) -> None:
        for kind in ("json", "jsonl", "taken", "lock", "cut"):
            Path(self._file(id, kind)).unlink(missing_ok=True)

    def known(self, id: str) -> bool:
        """Whether hooks ever reported of a conversation: in this order, in which a report goes from file to file."""
        return bool(ID.match(id)) and any(os.path.exists(self._file(id, kind)) for kind in ("jsonl", "taken", "json"))

    def ids(self) -> dict[str, float]:
        """The conversations there are records of, each with when it was last heard of."""
        found: dict[str, float] = {}
        with suppress(FileNotFoundError):
            for item in os.scandir(self.folder):
                id, _, kind = item.name.rpartition(".")
                if kind in ("jsonl", "json", "taken") and ID.match(id):
                    with suppress(FileNotFoundError):
                        found[id] = max(found.get(id, 0.0), item.stat().st_mtime)
        return found

    def mark_cut(self, id: str) -> None:
        """Remembers that a conversation of which something was reported was cut, until `was_cut` is asked."""
        os.close(os.open(self._file(id, "cut"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def was_cut(self, id: str) -> bool:
        with suppress(OSError):
            os.unlink(self._file(id, "cut"))
            return True
        return False

    def _file(self, id: str, kind: str) -> str:
        if not ID.match(id):
            raise ValueError("no such conversation")
        return os.path.join(self.folder, f"{id}.{kind}")


def _lines(path: str) -> list[dict[str, Any]]:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return list(records(file.read(2 * MOST_WAITING)))
    return []


def records(raw: bytes) -> Iterator[dict[str, Any]]:
    """The objects that stand in lines of JSON; what is none, or was torn by a crash, is passed over."""
    for line in raw.splitlines():
        with suppress(ValueError, RecursionError):
            if isinstance(found := json.loads(line), dict):
                yield found


def ancestors() -> list[str]:
    """The processes that started this one, nearest first, each with when it began where the system tells."""
    found, pid = list[str](), os.getppid()
    while pid > 1 and len(found) < 3:
        above, began = 0, ""
        with suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as file:  # on Linux alone
            fields = file.read().rpartition(b") ")[2].split()
            above, began = int(fields[1]), fields[19].decode()
        found.append(f"{pid}@{began}")
        pid = above
    return found


def is_agents_shell(host: str) -> bool:
    """Whether what started this process was itself started by an agent, or is gone: then no person typed what it reports.
    Where the system does not tell, nobody knows."""
    if sys.platform.startswith("linux") and os.getppid() <= 1:
        return True
    marks = tuple(f"{name}=".encode() for name, whose in _MARKS.items() if whose != host or host not in _SHELLED)
    try:
        with open(f"/proc/{os.getppid()}/environ", "rb") as file:
            return any(each.startswith(marks) for each in file.read(1 << 20).split(b"\0"))
    except OSError:
        return False


def read_json(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(MOST_WAITING))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def write_json(path: str, value: Mapping[str, Any]) -> None:
    write_private(path, json.dumps(value, ensure_ascii=False).encode())


@contextmanager
def locked(path: str | Path, flags: int = os.O_RDWR | os.O_CREAT, how: int = fcntl.LOCK_EX) -> Iterator[int]:
    """A file of the user's own, locked for one process and thread at a time until it is closed. Raises OSError."""
    fd = os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, how)
        yield fd
    finally:
        os.close(fd)


def write_private(path: str, data: bytes, *, mode: int = 0o600) -> None:
    """Puts a small file in another's place as a whole, by itself for the user's eyes alone. Raises OSError."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temp = f"{path}.{os.getpid()}.tmp"
    Path(temp).unlink(missing_ok=True)  # of a process that was killed
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    try:
        with open(fd, "wb") as out:
            os.fchmod(fd, mode)
            out.write(data)
            out.flush()
            os.fsync(fd)
        os.replace(temp, path)
    except BaseException:
        os.unlink(temp)
        raise
