"""Git's formats, as pure functions: trees, commits and their trailers, the index, diffs.

Promise: what is encoded here passes `git fsck --strict`; what is decoded may come from anybody, so it is bounded, takes
linear time and raises only ValueError. Text that came from an agent is one line, printable and cut before it gets into
a commit. Not here: any file; `git.History` reads and writes.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pygit2

from anima.errors import printable
from anima.model import DocPath

FOLDER, FILE = b"40000", b"100644"
MAX_DIFF_LINES = 40_000  # above this a diff only tells what was taken out and put in; below, it is quick

Entry = tuple[bytes, bytes]  # mode and id
Tree = dict[bytes, Entry]
Nest = dict[bytes, "Nest | bytes | None"]
Index = dict[bytes, bytes]  # name and entry

_ENTRY = re.compile(rb"([1-7][0-7]{4,5}) ([^\0/]++)\0(.{20})", re.DOTALL)
_TREE = re.compile(rb"(?:[1-7][0-7]{4,5} [^\0/]++\0.{20})*+", re.DOTALL)
_FEW = 4
_ID = re.compile(rb"[0-9a-f]{40}")
_PERSON = re.compile(rb"(.*) <[^<>]*> (-?\d{1,18}) [+-]\d{4}", re.DOTALL)
_START = datetime(1970, 1, 1, tzinfo=UTC)
_FIXED = struct.Struct(">10I20sH")  # stat data, id, flags: the part of an index entry before its name


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """A commit object, decoded as far as we need it."""

    id: str
    tree: str
    parents: tuple[str, ...]
    person: bytes
    message: str
    raw: bytes


# -- objects ----------------------------------------------------------------------------------------------------------


def blob_id(data: bytes) -> str:
    """The id git gives to a file's bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def decode_tree(raw: bytes) -> Tree:
    return {name: (mode, identity) for mode, name, identity in _entries(raw)}


def find_entry(raw: bytes, name: bytes) -> Entry | None:
    """One entry of a tree, without decoding the rest: ten times quicker."""
    found = _match_entry(raw, name)
    return (found[1], found[2]) if found else None


def find_entries(raw: bytes, names: Collection[bytes]) -> dict[bytes, Entry | None]:
    """Some entries of a tree; None for those that are not there."""
    entries = decode_tree(raw) if len(names) > _FEW else None
    return {name: entries.get(name) if entries is not None else find_entry(raw, name) for name in names}


def change_tree(raw: bytes, changes: Mapping[bytes, Entry | None]) -> bytes:
    """A tree with entries put in, replaced or taken out. To replace one, the common case, it is not decoded."""
    left = dict(changes)
    for name, entry in changes.items() if len(changes) <= _FEW else ():
        found = _match_entry(raw, name)
        if found and entry and entry[0] == found[1]:
            raw = raw[: found.start(2)] + entry[1] + raw[found.end(2) :]
            del left[name]
    if not left:
        return raw
    entries = {name: entry for name, entry in decode_tree(raw).items() if name not in left}
    return encode_tree(entries | {name: entry for name, entry in left.items() if entry is not None})


def _match_entry(raw: bytes, name: bytes) -> re.Match[bytes] | None:
    return re.match(rb"(?:[^\0]++\0.{20})*?([1-7][0-7]{4,5}) %s\0(.{20})" % re.escape(name), raw, re.DOTALL)


def encode_tree(entries: Tree) -> bytes:
    """Git sorts a folder as if its name ended with a slash."""
    ordered = sorted(entries.items(), key=lambda item: item[0] + b"/" if item[1][0] == FOLDER else item[0])
    return b"".join(b"%s %s\0%s" % (mode, name, identity) for name, (mode, identity) in ordered)


def tree_changes(old: bytes, new: bytes) -> list[tuple[bytes, Entry | None, Entry | None]]:
    """The entries in which two trees differ, by name."""
    before, after = (_entries(raw) for raw in _between(old, new))
    gone, come = (
        {name: (mode, identity) for mode, name, identity in side} for side in (before - after, after - before)
    )
    return [(name, gone.get(name), come.get(name)) for name in sorted(gone.keys() | come.keys())]


def _between(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """Two trees without the entries that both begin and, as far as is quickly seen, end with."""
    same = _TREE.match(old, 0, _common(old, new))
    start = same.end() if same else 0
    old, new = old[start:], new[start:]
    first = _ENTRY.match(old)
    tail = old[first.end() :] if first else b""
    if tail and new.endswith(tail) and _TREE.fullmatch(new, 0, len(new) - len(tail)):
        return old[: -len(tail)], new[: -len(tail)]
    return old, new


def _entries(raw: bytes) -> set[tuple[bytes, bytes, bytes]]:
    if _TREE.fullmatch(raw) is None:
        raise ValueError("a tree object is malformed")
    return set(_ENTRY.findall(raw))


def is_file(entry: Entry) -> bool:
    """A regular file: no folder, link or submodule."""
    return entry[0].startswith(b"100")


def nested(files: Mapping[str, bytes | None]) -> Nest:
    """Paths as folders within folders. Raises BadPath for what is no document's path."""
    top: Nest = {}
    for path, data in files.items():
        *folders, name = (part.encode() for part in DocPath.parse(path).parts)
        here = top
        for folder in folders:
            inner = here.get(folder)
            if not isinstance(inner, dict):
                inner = here[folder] = {}
            here = inner
        here[name] = data
    return top


def encode_commit(tree: str, parents: Sequence[str], *, person: bytes, message: str) -> bytes:
    head = [b"tree %s" % tree.encode(), *(b"parent %s" % parent.encode() for parent in parents)]
    return b"\n".join([*head, b"author " + person, b"committer " + person, b"", message.encode()])


def decode_commit(identity: str, raw: bytes) -> Commit:
    head, _, message = raw.partition(b"\n\n")
    lines = [line.partition(b" ")[::2] for line in head.split(b"\n")]
    trees, parents = ([value for name, value in lines if name == wanted] for wanted in (b"tree", b"parent"))
    if not trees or not all(_ID.fullmatch(value) for value in trees + parents):
        raise ValueError("a commit object is malformed")
    person = next((value for name, value in lines if name == b"author"), b"")
    return Commit(
        id=identity,
        tree=trees[0].decode(),
        parents=tuple(parent.decode() for parent in parents),
        person=person,
        message=message.decode("utf-8", "replace"),
        raw=raw,
    )


def with_parents(raw: bytes, parents: Sequence[str]) -> bytes:
    """The same commit on other parents."""
    head, blank, message = raw.partition(b"\n\n")
    tree, *rest = [line for line in head.split(b"\n") if not line.startswith(b"parent ")]
    return b"\n".join([tree, *(b"parent %s" % parent.encode() for parent in parents), *rest]) + blank + message


def with_tree(raw: bytes, tree: str, message: str | None) -> bytes:
    """The same commit of another tree, with another message if one is given. A signature would be none any more."""
    head, blank, said = raw.partition(b"\n\n")
    lines = [b"tree " + tree.encode()]
    signature = False
    for line in head.split(b"\n")[1:]:
        signature = line.startswith(b"gpgsig") or (signature and line.startswith(b" "))
        lines += [] if signature else [line]
    return b"\n".join(lines) + blank + (said if message is None else message.encode())


# -- what a commit says -----------------------------------------------------------------------------------------------


def person_of(note: Note) -> bytes:
    """Name, address and time as git writes them."""
    name = _line(note.author, 60).translate({ord(char): None for char in "<>"}).strip(" .,:;\"'\\")
    mail = re.sub(r"[^a-z0-9-]+", "-", note.actor.lower())[:40].strip("-") or "anima"
    minutes = int((note.time.utcoffset() or timedelta()).total_seconds() // 60)
    zone = f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}{abs(minutes) % 60:02}"
    return f"{name or 'anima'} <{mail}@localhost> {max(0, int(note.time.timestamp()))} {zone}".encode()


def message_of(note: Note, paths: Sequence[str], left_out: Sequence[str]) -> str:
    """A subject composed from the fields, and trailers that `revision_of` reads back."""
    shown = f" {paths[0]}" if paths else ""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    reason = _line(note.reason, 400)
    subject = f"{_line(note.what, 20)}{printable(shown, 80)}{more}"
    anchor = f"{note.anchor[0]} {note.anchor[1]}" if note.anchor else None
    told = {"Actor": note.actor, "Session": note.session, "Rule": note.rule, "Batch": note.batch, "Ledger": anchor}
    trailers = [f"{name}: {_line(value, 200)}" for name, value in told.items() if value]
    trailers += [f"Reason: {reason}"] if reason else []
    trailers += [f"Left-Out: {printable(path, 200)}" for path in left_out]
    return "\n".join([subject + (f": {_line(reason, 60)}" if reason else ""), "", *trailers, ""])


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


def revision_of(commit: Commit, paths: Iterable[str]) -> Revision:
    told = trailers_of(commit.message)
    author, moment = _person(commit.person)
    return Revision(
        id=commit.id,
        time=moment,
        author=author,
        actor=printable(told.get("Actor", "outside")),
        subject=printable(commit.message.partition("\n")[0], 200),
        reason=_told(told, "Reason"),
        session=_told(told, "Session"),
        rule=_told(told, "Rule"),
        batch=_told(told, "Batch"),
        anchor=anchor_of(commit.message),
        paths=tuple(paths),
    )


def _told(trailers: Mapping[str, str], name: str) -> str | None:
    return printable(trailers[name], 500) if name in trailers else None


def _person(raw: bytes) -> tuple[str, datetime]:
    found = _PERSON.fullmatch(raw)
    if found is None:
        return "unknown", _START
    try:
        moment = datetime.fromtimestamp(int(found[2]), UTC)
    except (OverflowError, OSError, ValueError):
        moment = _START
    return printable(found[1].decode("utf-8", "replace")), moment


def _line(text: str, limit: int) -> str:
    return printable(" ".join(text[: 2 * limit].split()), limit)


# -- diffs ------------------------------------------------------------------------------------------------------------


def patch_of(path: str, old: bytes | None, new: bytes | None) -> str:
    """A unified diff of one file, with everything that is not printable made visible."""
    if _differing_lines(old or b"", new or b"") > MAX_DIFF_LINES:
        return _inert(_plain_patch(path, old, new))
    data = pygit2.Patch.create_from(old, new, path, path).data
    return _inert(data.decode("utf-8", "replace"))


def _differing_lines(old: bytes, new: bytes) -> int:
    """How many lines lie between the common beginning and the common end: finding a good diff costs more than that."""
    start = _common(old, new)
    old, new = old[start:], new[start:]
    end = _common(old[::-1], new[::-1])
    return old.count(b"\n", 0, len(old) - end) + new.count(b"\n", 0, len(new) - end)


def _common(one: bytes, two: bytes) -> int:
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


# -- the index --------------------------------------------------------------------------------------------------------


def decode_index(raw: bytes) -> Index | None:
    """The entries of an index by name, in order; None where it is of another version, split, sparse or damaged.

    Raises ValueError while a person is in the middle of a merge: that index is to be left alone.
    """
    if len(raw) < 32 or raw[:8] != b"DIRC\0\0\0\2":
        return None
    number, end, at = int.from_bytes(raw[8:12]), len(raw) - 20, 12
    entries: Index = {}
    while len(entries) < number:
        flags = int.from_bytes(raw[at + 60 : at + 62])
        if flags & 0x3000:
            raise ValueError("a merge is under way")
        size = flags & 0xFFF
        stop = at + 62 + size if size < 0xFFF else raw.find(b"\0", at + 62 + size)
        after = at + (stop - at + 8) // 8 * 8
        if stop < 0 or after > end:
            return None
        entries[raw[at + 62 : stop]] = raw[at:after]
        at = after
    return entries if _may_be_dropped(raw[at:end]) else None


def change_index(index: Index, changes: Mapping[str, Entry | None]) -> Index:
    """An index with entries put in, replaced or taken out."""
    changed = {path.encode("utf-8", "surrogateescape"): entry for path, entry in changes.items()}
    added = {name: _index_entry(name, entry) for name, entry in changed.items() if entry is not None}
    kept = {name: data for name, data in index.items() if name not in changed or name in added} | added
    return kept if added.keys() <= index.keys() else dict(sorted(kept.items()))


def encode_index(index: Index) -> bytes:
    """What git keeps beside the entries is left out: all of it may be missing."""
    body = b"DIRC" + struct.pack(">2I", 2, len(index)) + b"".join(index.values())
    return body + hashlib.sha1(body, usedforsecurity=False).digest()


def _index_entry(name: bytes, entry: Entry) -> bytes:
    """Without stat data: git compares the file once and then fills it in."""
    fixed = _FIXED.pack(0, 0, 0, 0, 0, 0, int(entry[0], 8), 0, 0, 0, entry[1], min(len(name), 0xFFF))
    return fixed + name + bytes(8 - (62 + len(name)) % 8)


def _may_be_dropped(extensions: bytes) -> bool:
    """Extensions in capitals are hints; one in small letters changes what the entries mean."""
    at = 0
    while at < len(extensions):
        if not extensions[at : at + 4].isupper():
            return False
        at += 8 + int.from_bytes(extensions[at + 4 : at + 8])
    return True
