"""A revision of history: what it says of itself, and how it differs from another. Pure.

Promise: text that came from an agent is one line, printable and cut before it gets into a message; what is read back may
come from anybody. Not here: how git keeps revisions (git).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pygit2

from anima.errors import printable

_MAX_DIFF_LINES = 40_000  # above this a diff only tells what was taken out and put in; below, it is quick
_PERSON = re.compile(rb"(.*) <[^<>]*> (-?\d{1,18}) [+-]\d{4}", re.DOTALL)
_START = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a commit says of itself. `author` is the agent's or owner's name; `anchor` the ledger's last record."""

    what: str  # write, undo, sweep, outside …
    actor: str
    author: str
    time: datetime
    session: str | None = None
    rule: str | None = None
    batch: str | None = None
    reason: str = ""
    words: str = ""  # what is new, where it may be told
    anchor: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One commit, as far as it says. A commit made by a person's own git has the actor `outside`."""

    id: str
    time: datetime
    author: str
    actor: str
    subject: str
    reason: str | None = None
    session: str | None = None
    rule: str | None = None
    batch: str | None = None
    anchor: tuple[int, str] | None = None
    paths: tuple[str, ...] = ()


def person_of(note: Note) -> bytes:
    """Name, address and time as git writes them."""
    name = _line(note.author, 60).translate({ord(char): None for char in "<>"}).strip(" .,:;\"'\\")
    mail = re.sub(r"[^a-z0-9-]+", "-", note.actor.lower())[:40].strip("-") or "anima"
    minutes = int((note.time.utcoffset() or timedelta()).total_seconds() // 60)
    zone = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"
    return f"{name or 'anima'} <{mail}@localhost> {max(0, int(note.time.timestamp()))} {zone}".encode()


def message_of(note: Note, paths: Sequence[str]) -> str:
    """A subject that names what changed, in words, and trailers that `revision_of` reads back."""
    paths = sorted(paths, key=lambda path: (not path.casefold().endswith(".md"), path))  # documents before settings
    shown = f" {paths[0]}" if paths else ""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    reason, told = _line(note.reason, 400), _line(note.reason or note.words, 60)
    subject = f"{_line(note.what, 20)}{printable(shown, 80)}{more}"
    anchor = f"{note.anchor[0]} {note.anchor[1]}" if note.anchor else None
    ties = {"Actor": note.actor, "Session": note.session, "Rule": note.rule, "Batch": note.batch, "Ledger": anchor}
    trailers = [f"{name}: {_line(value, 200)}" for name, value in ties.items() if value]
    trailers += [f"Reason: {reason}"] if reason else []
    return "\n".join([subject + (f": {told}" if told else ""), "", *trailers, ""])


_TIES = ("Ledger: ", "Batch: ", "Actor: ")


def without_text(message: str, holds: Callable[[str], bool]) -> str:
    """What a commit says, without the lines that hold something. What ties it to the ledger stays."""
    if not holds(message) and not any(map(holds, message.split("\n"))):
        return message
    subject, *rest = message.split("\n")
    subject = subject.partition(": ")[0]
    kept = [line for line in rest if line.startswith(_TIES) or not holds(line)]
    new = "\n".join(["a change" if holds(subject) else subject, *kept])
    return (
        new if not holds(new) else "\n".join(["a change", "", *(line for line in rest if line.startswith(_TIES)), ""])
    )


def trailers_of(message: str) -> dict[str, str]:
    """The `Name: value` lines of the last paragraph; of several with one name, the first."""
    paragraphs = message.rstrip("\n").split("\n\n")
    lines = paragraphs[-1].split("\n") if len(paragraphs) > 1 else []
    pairs = (line.partition(": ") for line in reversed(lines))
    return {name: value for name, _, value in pairs if value}


def anchor_of(message: str) -> tuple[int, str] | None:
    found = re.fullmatch(r"([1-9]\d{0,17}) ([0-9a-f]{64})", trailers_of(message).get("Ledger", ""))
    return (int(found[1]), found[2]) if found else None


def revision_of(identity: str, person: bytes, message: str, paths: Iterable[str]) -> Revision:
    """What a commit says of itself; of one that a person's own git made, as far as it says."""
    told = {name: printable(value, 500) for name, value in trailers_of(message).items()}
    found = _PERSON.fullmatch(person)
    try:
        moment = datetime.fromtimestamp(int(found[2]), UTC) if found else _START
    except (OverflowError, OSError, ValueError):
        moment = _START
    return Revision(
        id=identity,
        time=moment,
        author=printable(found[1].decode("utf-8", "replace")) if found else "unknown",
        actor=told.get("Actor", "outside"),
        subject=printable(message.partition("\n")[0], 200),
        reason=told.get("Reason"),
        session=told.get("Session"),
        rule=told.get("Rule"),
        batch=told.get("Batch"),
        anchor=anchor_of(message),
        paths=tuple(paths),
    )


def _line(text: str, limit: int) -> str:
    return printable(" ".join(text[: 2 * limit].split()), limit)


# -- diffs ------------------------------------------------------------------------------------------------------------


def patch_of(path: str, old: bytes | None, new: bytes | None) -> str:
    """A unified diff of one file, with everything that is not printable made visible."""
    if _differing_lines(old or b"", new or b"") > _MAX_DIFF_LINES:
        return _inert(_plain_patch(path, old, new))
    data = pygit2.Patch.create_from(old, new, path, path).data
    return _inert(data.decode("utf-8", "replace"))


def _differing_lines(old: bytes, new: bytes) -> int:
    """How many lines lie between the common beginning and the common end: finding a good diff costs more than that."""
    start = common(old, new)
    old, new = old[start:], new[start:]
    end = common(old[::-1], new[::-1])
    return old.count(b"\n", 0, len(old) - end) + new.count(b"\n", 0, len(new) - end)


def common(one: bytes, two: bytes) -> int:
    """The length of the common beginning, by halving."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == two[low:middle] else (low, middle - 1)
    return low


def _plain_patch(path: str, old: bytes | None, new: bytes | None) -> str:
    """All that was there taken out, all that is there put in: large, but in linear time."""
    before, after = ((text or b"").decode("utf-8", "replace").splitlines() for text in (old, new))
    head = [f"--- a/{path}", f"+++ b/{path}", f"@@ -1,{len(before)} +1,{len(after)} @@"]
    return "\n".join([*head, *("-" + line for line in before), *("+" + line for line in after), ""])


def _inert(text: str) -> str:
    return "\n".join(line if line.isprintable() else _visible(line) for line in text.split("\n"))


def _visible(line: str) -> str:
    return "".join(char if char.isprintable() or char == "\t" else f"\\u{ord(char):04x}" for char in line)
