"""What every store says alike: what a batch comes to in the ledger; what its revision says of itself, and how two versions
differ; the end of the chain, noted out of the home's reach.

Promise: the same records for the same batch, so a chain moves from one kind of store to another unchanged. Text that came
from an agent is one line, printable and cut before it gets into a message; what is read back may come from anybody.
Not here: where texts are kept, and in which order things happen (batch, or a database's transaction).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from anima.errors import BadArguments, BadText, HomeError, Refused, printable
from anima.ledger import Edit, Intent, Key, Ledger, Record, Tip, parse
from anima.ledger.views import Provenance
from anima.model import MAX_BYTES, Actor, Answer, Change, DocPath, Kind, Verdict
from anima.store import Batch, Head, Note, Revision
from anima.store.safe_open import Signature

Begin = Callable[[str], object]
_START = datetime(1970, 1, 1, tzinfo=UTC)
_TIES = ("Ledger: ", "Batch: ", "Actor: ")


def must_allow(verdict: Verdict) -> None:
    """Raises Refused for what the gate did not allow."""
    if verdict.answer is not Answer.ALLOW:
        raise Refused(f"the gate said {verdict.answer}: {verdict.reason}", rule=verdict.rule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """A document as it stands: its path as spelt, its text (None for nothing), its size, and the line end it lacks."""

    actual: str
    text: str | None
    size: int = 0
    signature: Signature | None = None  # of a file: what tells that it changed
    mode: int = 0o600

    @property
    def gap(self) -> str:
        return "" if not self.text or self.text.endswith("\n") else "\n"


def edit_of(
    change: Change, present: Present, *, key: Key, there: Present | None, is_log: bool, begin: Begin = len
) -> Edit | None:
    """What a change does to a document; None where nothing would change. `there` is where a move goes, and `is_log` says
    that lines are only added. `begin` is given a text that will be written, before its lines are told apart, which takes long.
    Raises BadText for a text that is too large, BadArguments for a move to where something stands."""
    actual, before = present.actual, present.size
    # No figure, nor another sentence for a page that is put together anew: a part of it may be hidden from who writes.
    why, hint = f"it would grow past {MAX_BYTES:,} bytes", "move older lines to another document"
    if is_log and present.text is not None:
        piece = present.gap + change.text
        after = before + len(piece.encode("utf-8"))
        if after > MAX_BYTES:
            raise BadText(change.path.text, why, hint=hint)
        lines, digest = new_lines("", change.text, key=key), key.of(piece)
        return Edit(path=actual, kind=Kind.APPEND, digest=digest, before=before, after=after, lines=lines)
    new = change.after(present.text)
    base = None if present.text is None else key.of(present.text)
    if change.kind is Kind.MOVE and change.to is not None and there is not None:
        if there.text is not None:
            raise BadArguments(
                f"{change.to} is there already; nothing was moved", hint="give another place, or move that"
            )
        return Edit(path=actual, kind=Kind.MOVE, to=there.actual, base=base, digest=base, before=before, after=before)
    if new == present.text:
        return None
    if new is None:
        return Edit(path=actual, kind=Kind.DELETE, base=base, before=before)
    size = len(new) if new.isascii() else len(new.encode("utf-8"))
    if size > MAX_BYTES:
        raise BadText(change.path.text, why, hint=hint)
    begin(new)
    lines, digest = new_lines(present.text or "", new, key=key), key.of(new)
    return Edit(path=actual, kind=Kind.WRITE, base=base, digest=digest, before=before, after=size, lines=lines)


def new_lines(old: str, new: str, *, key: Key) -> str:
    """The digests of lines that are new; those that stay keep the source they have."""
    held = set(map(str.strip, old.split("\n"))) if old else ()
    return key.distinct("\n".join(line for line in new.split("\n") if line.strip() not in held) if held else new)


def intent_of(batch: Batch, edits: Sequence[Edit], *, ledger: Ledger) -> Intent:
    first = batch.changes[0]
    return Intent(
        id=str(ledger.tip.n + 1),
        what=batch.what,
        edits=tuple(edits),
        actor=first.actor,
        origin=first.origin,
        session=first.session,
        scope=first.scope,
        taint=first.taint,
        rule=batch.verdict.rule,
        approver=batch.approver,
        reason=ledger.key.of(first.reason) if first.reason else None,
        of=batch.of,
    )


def seen_record(
    view: Provenance, path: DocPath, present: Present, *, key: Key, is_log: bool
) -> tuple[str, dict[str, object]] | None:
    """Kind and fields of the record for a document that we did not leave like this, so that its lines are known for
    what they are; None for one that is as we left it. Where lines are only added its size tells: any other write looks whole."""
    known, text = view.knows(path), present.text
    as_left = view.size_of(path) == present.size if is_log and text is not None else view.is_ours(path, text)
    if as_left if known else text is None:
        return None
    fields: dict[str, object] = {"path": present.actual, "size": present.size}
    fields["digest"] = None if text is None else key.of(text)
    fields["lines"] = view.new_lines(path, text or "") or None
    return "outside" if known else "found", {name: value for name, value in fields.items() if value is not None}


class Heads:
    """The end of a home's chain, noted where nobody who only has the home's files can reach it; nothing, where nobody keeps
    it. What is noted is a record that no crash can take back, so a crash is never taken for a hand; it is renewed as the
    chain grows and only while the chain still holds what was noted before: else it is the proof."""

    def __init__(self, head: Head | None) -> None:
        self._head = head

    def all(self) -> list[tuple[int, str]]:
        noted = self._head.get() if self._head is not None else None
        return [noted] if noted else []

    def note(self, ledger: Ledger, record: Record | Tip) -> None:
        """Notes a record of this ledger that is on the disk. Whoever calls holds the home lock."""
        if self._head is not None:
            with suppress(HomeError, OSError):
                if all(ledger.holds(*noted) for noted in self.all()):
                    self._head.put(record.n, record.hash)

    @contextmanager
    def renewing(self, last_record: Callable[[], bytes]) -> Iterator[None]:
        """Another chain takes the place of the one that was noted: from here on nothing is, should we be killed, and
        when it stands, its end. Whoever calls holds the home lock."""
        if self._head is None:
            yield
            return
        with suppress(OSError):
            self._head.drop()
        yield
        with suppress(OSError):
            if (last := parse(last_record().decode("latin-1"))) is not None:
                self._head.put(last.n, last.hash)


def late_note(
    late: Sequence[Record], *, author: str, reason: str, words: dict[str, str]
) -> tuple[Note, tuple[str, ...]]:
    """What a revision with these records says of itself, and the documents it holds. Words that are told are taken."""
    own, newest = [Intent.from_record(record) for record in late if record.kind == "intent"], late[-1]
    last = own[-1] if own else None
    kinds = {edit.kind for intent in own for edit in intent.edits}
    whats = {"note in" if intent.what == "note" else intent.what for intent in own} or {newest.kind}
    if whats == {"write"} and len(kinds) == 1 and kinds <= {Kind.DELETE, Kind.MOVE}:
        whats = {str(kinds.pop())}
    paths = {path for intent in own for edit in intent.edits for path in (edit.path, edit.to) if path}
    paths |= {str(record.fields["path"]) for record in late if record.kind != "intent"}
    note = Note(
        what=whats.pop() if len(whats) == 1 else "changes in",
        words="; ".join(filter(None, (words.pop(intent.id, "") for intent in own))),
        actor=str(last.actor if last else Actor.OUTSIDE),
        author=author,
        time=newest.time,
        session=last.session if last else None,
        rule=last.rule if last else None,
        batch=" ".join(intent.id for intent in own[-50:]) or None,
        reason=reason,
        anchor=(newest.n, newest.hash),  # never a record that may not be on the disk yet
    )
    return note, tuple(sorted(paths))


def person_of(note: Note) -> bytes:
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
    return "\n".join([subject + (f": {told}" if told not in ("", note.what) else ""), "", *trailers, ""])


def without_text(message: str, holds: Callable[[str], bool]) -> str:
    """What a commit says, without the lines that hold something. What ties it to the ledger stays."""
    if not holds(message) and not any(map(holds, message.split("\n"))):
        return message
    subject, *rest = message.split("\n")
    subject = subject.partition(": ")[0]
    kept = [line for line in rest if line.startswith(_TIES) or not holds(line)]
    new = "\n".join(["a change" if holds(subject) else subject, *kept])
    ties = [line for line in rest if line.startswith(_TIES)]
    return "\n".join(["a change", "", *ties, ""]) if holds(new) else new


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
    found = re.fullmatch(rb"(.*) <[^<>]*> (-?\d{1,18}) [+-]\d{4}", person, re.DOTALL)
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


def patch_of(path: str, old: bytes | None, new: bytes | None) -> str:
    """A unified diff of one file that is safe to print."""
    was, now = old or b"", new or b""
    start = common(was, now)
    end = common(was[start:][::-1], now[start:][::-1])
    # How many lines lie between the common beginning and the common end: finding a good diff costs more than that.
    if sum(text.count(b"\n", start, len(text) - end) for text in (was, now)) > 40_000:  # linear, though large
        before, after = (text.decode("utf-8", "replace").splitlines() for text in (was, now))
        head = [f"--- a/{path}", f"+++ b/{path}", f"@@ -1,{len(before)} +1,{len(after)} @@"]
        patch = "\n".join([*head, *("-" + line for line in before), *("+" + line for line in after), ""])
    else:
        import pygit2

        patch = pygit2.Patch.create_from(old, new, path, path).data.decode("utf-8", "replace")
    # Everything that is not printable, but for line ends and tabs, made visible.
    if all(line.isprintable() for line in patch.split("\n")):
        return patch
    return "".join(char if char.isprintable() or char in "\n\t" else f"\\u{ord(char):04x}" for char in patch)


def common(one: bytes, two: bytes) -> int:
    """The length of the common beginning, by halving."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[low:middle] == two[low:middle] else (low, middle - 1)
    return low
