"""The records of hosts' conversations: what their hooks reported and nobody worked through yet, and how far it is.

Promise: they lie in the user's own configuration, beside a home's tokens, never in the home or in a project: no folder
that an agent is shown can put a word among them. Adding a report is one write under a lock; whoever works through them
takes the whole file at once, and a report that comes meanwhile is in the next. Light: standard library alone.
Not here: what reports mean (connect), and what becomes of them (settle).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from anima.connect import ID, Report

# What agents' shells have in their environment, and whose it is. A hook of these hosts is started by a shell of the host's.
_MARKS = {"CLAUDECODE": "claude-code", "CODEX_THREAD_ID": "codex", "GEMINI_CLI": "gemini", "CURSOR_AGENT": "cursor"}
_SHELLED = ("gemini", "cursor")
MOST = 4 << 20  # bytes of reports that wait; beyond them only the events are kept, without their texts


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
            with _gone_is_fine():
                os.unlink(f"{self.folder}.json")
        else:
            write_json(f"{self.folder}.json", found)

    def add(self, report: Report) -> None:
        """Keeps a report. Raises OSError."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        while True:
            fd = os.open(self._file(report.id, "jsonl"), os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if _is_still(fd, self._file(report.id, "jsonl")):
                    os.write(fd, _line(report, full=os.path.getsize(fd) < MOST))
                    return
            finally:
                os.close(fd)

    @contextmanager
    def alone(self, id: str) -> Iterator[None]:
        """A conversation, for one process and thread at a time."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        lock = os.open(self._file(id, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    def take(self, id: str) -> list[dict[str, Any]]:
        """The reports of a conversation that wait; they stay until they are `done`, for whoever comes after a crash."""
        held = self._file(id, "taken")
        if not os.path.exists(held):
            self._take(id, held)
        return _lines(held)

    def waiting(self, id: str) -> list[dict[str, Any]]:
        """The reports that wait, only to look at."""
        return _lines(self._file(id, "jsonl")) or _lines(self._file(id, "taken"))

    def done(self, id: str) -> None:
        with _gone_is_fine():
            os.unlink(self._file(id, "taken"))

    def _take(self, id: str, held: str) -> None:
        try:
            fd = os.open(self._file(id, "jsonl"), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)  # whoever writes into it is done
            os.rename(self._file(id, "jsonl"), held)
        finally:
            os.close(fd)

    def state(self, id: str) -> dict[str, Any]:
        """How far a conversation is worked through; {} for one that is new."""
        return read_json(self._file(id, "json")) or {}

    def put_state(self, id: str, state: Mapping[str, Any]) -> None:
        write_json(self._file(id, "json"), state)

    def drop(self, id: str) -> None:
        """Forgets a conversation that is over."""
        for kind in ("json", "jsonl", "taken", "lock", "cut"):
            with _gone_is_fine():
                os.unlink(self._file(id, kind))

    def known(self, id: str) -> bool:
        """Whether hooks ever reported of a conversation."""
        return bool(ID.match(id)) and any(os.path.exists(self._file(id, kind)) for kind in ("jsonl", "taken", "json"))

    def ids(self) -> dict[str, float]:
        """The conversations there are records of, each with when it was last heard of."""
        found: dict[str, float] = {}
        with _gone_is_fine():
            for item in os.scandir(self.folder):
                id, _, kind = item.name.rpartition(".")
                if kind in ("jsonl", "json", "taken") and ID.match(id):
                    with _gone_is_fine():
                        found[id] = max(found.get(id, 0.0), item.stat().st_mtime)
        return found

    def mark_cut(self, id: str) -> None:
        """Remembers that a conversation was cut, until `was_cut` is asked."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        os.close(os.open(self._file(id, "cut"), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def was_cut(self, id: str) -> bool:
        try:
            os.unlink(self._file(id, "cut"))
        except OSError:
            return False
        return True

    def _file(self, id: str, kind: str) -> str:
        if not ID.match(id):
            raise ValueError("no such conversation")
        return os.path.join(self.folder, f"{id}.{kind}")


def _line(report: Report, *, full: bool) -> bytes:
    said = {key: value for key, value in report._asdict().items() if value and key not in ("host", "id")}
    if not full:
        said.pop("text", None)
    said |= {"at": round(time.time(), 3), "above": ancestors()}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n"


def _lines(path: str) -> list[dict[str, Any]]:
    try:
        with open(path, "rb") as file:
            raw = file.read(2 * MOST)
    except FileNotFoundError:
        return []
    found = []
    for line in raw.splitlines():
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            continue  # torn by a crash
        if isinstance(record, dict):
            found.append(record)
    return found


def ancestors() -> list[str]:
    """The processes that started this one, nearest first, each with when it began where the system tells."""
    found, pid = list[str](), os.getppid()
    while pid > 1 and len(found) < 3:
        above, began = _process(pid)
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


def _process(pid: int) -> tuple[int, str]:
    """The parent of a process, and when it began; 0 and "" where the system does not tell."""
    if not sys.platform.startswith("linux"):
        return 0, ""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b") ")[2].split()
        return int(fields[1]), fields[19].decode()
    except (OSError, ValueError, IndexError):
        return 0, ""


def read_json(path: str) -> dict[str, Any] | None:
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read(MOST))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def write_json(path: str, value: Mapping[str, Any]) -> None:
    """Puts a small file in another's place. Raises OSError."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    temp = f"{path}.{os.getpid()}.tmp"
    fd = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(fd, "w", encoding="utf-8") as out:
        json.dump(value, out, ensure_ascii=False)
    os.replace(temp, path)


def _is_still(fd: int, path: str) -> bool:
    try:
        return os.path.samefile(path, fd)
    except OSError:
        return False


@contextmanager
def _gone_is_fine() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        pass
