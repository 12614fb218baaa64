"""What every store does alike: what a batch comes to in the ledger, edits with their digests, the intent, and what was only seen;
and the end of its chain, noted out of the home's reach.

Promise: every store writes the same records for the same batch, so a chain moves from one kind of store to another
unchanged. Not here: where texts are kept, and in which order things happen (batch, or a database's transaction).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anima.errors import BadText, HomeError
from anima.ledger import Edit, Intent, Key, Ledger, Record, Tip, parse
from anima.ledger.provenance import Provenance
from anima.model import MAX_BYTES, Actor, Change, DocPath, Kind
from anima.store import Batch, Head
from anima.text.markdown import lines_of

if TYPE_CHECKING:
    from anima.store.revision import Note


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """A document as it stands: how its path is spelt, its text (None where nothing stands) and its size in bytes."""

    actual: str
    text: str | None
    size: int = 0


def edit_of(change: Change, present: Present, *, key: Key, there: Present | None = None) -> Edit | None:
    """What a change does to a document; None where nothing would change. `there` is where a move goes.

    Raises BadText for a text that is too large.
    """
    new = change.after(present.text)
    base = None if present.text is None else key.of(present.text)
    if change.kind is Kind.MOVE and there is not None:
        return Edit(
            path=present.actual,
            kind=Kind.MOVE,
            to=there.actual,
            base=base,
            digest=base,
            before=present.size,
            after=present.size,
        )
    if new == present.text:
        return None
    if new is None:
        return Edit(path=present.actual, kind=Kind.DELETE, base=base, before=present.size)
    size = len(new.encode("utf-8"))
    if size > MAX_BYTES:
        raise BadText(change.path.text, f"it would have {size:,} bytes; a document has at most {MAX_BYTES:,}")
    return Edit(
        path=present.actual,
        kind=Kind.WRITE,
        base=base,
        digest=key.of(new),
        before=present.size,
        after=size,
        lines=new_lines(present.text or "", new, key=key),
    )


def edit_of_append(change: Change, *, actual: str, size: int, piece: str, key: Key) -> Edit:
    """What an append does to a log that stands: `piece` is what is added, a missing line end before it included.

    Raises BadText for a log that would become too large.
    """
    after = size + len(piece.encode("utf-8"))
    if after > MAX_BYTES:
        raise BadText(
            change.path.text, f"it would grow past {MAX_BYTES:,} bytes", hint="move older lines to another document"
        )
    return Edit(
        path=actual,
        kind=Kind.APPEND,
        digest=key.of(piece),
        before=size,
        after=after,
        lines=new_lines("", change.text, key=key),
    )


def new_lines(old: str, new: str, *, key: Key) -> tuple[str, ...]:
    """The digests of lines that are new; those that stay keep the source they have."""
    held = {line.strip() for line in lines_of(old)}
    added = dict.fromkeys(key.line(line) for line in lines_of(new) if line.strip() not in held)
    return tuple(digest for digest in added if digest)


def intent_of(batch: Batch, edits: Sequence[Edit], *, ledger: Ledger) -> Intent:
    """The record that says what a batch is about to do."""
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


def held_a_text(record: Record) -> bool:
    """Whether a record tells of a text that an append would bury, should history not hold it yet."""
    edits = record.fields.get("edits", ())
    return record.kind in ("outside", "found") or any(e["kind"] != Kind.APPEND and e.get("base") for e in edits)


def what_of(own: Sequence[Intent], newest: Record) -> str:
    """What a revision with these batches says that happened; `newest` is the last record, where nobody of ours wrote."""
    if not own:
        return newest.kind
    kinds = {edit.kind for intent in own for edit in intent.edits}
    whats = {"note in" if intent.what == "note" else intent.what for intent in own}
    if whats == {"write"} and len(kinds) == 1 and kinds <= {Kind.DELETE, Kind.MOVE}:
        return str(kinds.pop())
    return whats.pop() if len(whats) == 1 else "changes in"


def late_note(
    late: Sequence[Record], *, author: str, reason: str, words: dict[str, str]
) -> tuple[Note, tuple[str, ...]]:
    """What a revision with these records says of itself, and the documents it holds. Words that are told are taken."""
    from anima.store.revision import Note

    own, newest = [Intent.from_record(record) for record in late if record.kind == "intent"], late[-1]
    last = own[-1] if own else None
    paths = {path for intent in own for edit in intent.edits for path in (edit.path, edit.to) if path}
    paths |= {str(record.fields["path"]) for record in late if record.kind != "intent"}
    note = Note(
        what=what_of(own, newest),
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


def seen_record(view: Provenance, path: DocPath, present: Present, *, key: Key) -> tuple[str, dict[str, object]] | None:
    """Kind and fields of the record for a document that we did not leave like this, so that its lines are known for
    what they are; None for one that is as we left it."""
    known, text = view.knows(path), present.text
    if view.is_ours(path, text) if known else text is None:
        return None
    fields: dict[str, object] = {"path": present.actual, "size": present.size}
    fields["digest"] = None if text is None else key.of(text)
    fields["lines"] = view.new_lines(path, text or "")
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
