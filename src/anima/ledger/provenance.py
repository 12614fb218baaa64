"""Where every line came from: a view of the ledger, folded record by record.

Promise: keyed by the line's own digest, so it survives moves inside a file; a line is untrusted when it came from a
tool, the web, a skill or a peer, or from a session that had read such text, until the owner approves or trusts it. A
line no record names is the owner's if the file was here before the ledger, else an edit from outside; one whose record
was lost with a damaged ledger is nobody's, and untrusted. Pure: records in,
answers out. Not here: reading the ledger (writing), what an untrusted line means to a prompt (reading).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from anima.ledger.chain import Edit, Intent, Key, NewLine, Record
from anima.model import UNTRUSTED, Actor, DocPath, Kind, Origin, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Who wrote a line, when, in which session, after reading what, by which rule, and who approved it."""

    actor: Actor
    origin: Origin
    time: datetime | None = None
    session: str | None = None
    scope: Scope | None = None
    taint: frozenset[Origin] = frozenset()
    rule: str | None = None
    approver: str | None = None
    change: str | None = None
    trusted_at: datetime | None = None
    lost: bool = False  # the record that knew it was lost with a damaged ledger

    @property
    def trusted(self) -> bool:
        if self.approver is not None or self.trusted_at is not None:
            return True
        return not self.lost and not (({self.origin} | self.taint) & UNTRUSTED)

    @property
    def doubts(self) -> frozenset[Origin]:
        """The untrusted origins it may have, and so gives to whoever reads it; of a lost record it could be any."""
        if self.trusted:
            return frozenset()
        return UNTRUSTED if self.lost else (self.taint | {self.origin}) & UNTRUSTED

    @property
    def promotable(self) -> bool:
        """Whether dreaming may build on it: trusted, and not an edit from outside that nobody reviewed."""
        return self.trusted and (self.actor is not Actor.OUTSIDE or self.trusted_at is not None)

    @property
    def sentence(self) -> str:
        """One sentence a person understands: "written by the agent on 3 May in session ab12, after it read a web page"."""
        when = f"{self.time:%Y-%m-%d %H:%M} UTC" if self.time else ""
        if self.lost:
            text = "nobody can tell any more who wrote it: its record was lost with a damaged ledger"
            text += f", {when}" if when else ""
        elif self.actor is Actor.OUTSIDE:
            text = "edited outside anima" + (f", first seen {when}" if when else "")
        elif self.time is None:
            text = "here before the ledger began, so it counts as the owner's"
        else:
            who = {Actor.OWNER: "you", Actor.AGENT: "the agent", Actor.DREAMER: "a dream", Actor.IMPORTER: "an import"}
            text = f"written by {who.get(self.actor, self.actor)} on {when}"
        text += f", in session {self.session}" if self.session else ""
        text += f", which had read {_read(self.taint)}" if self.taint else ""
        text += f"; approved by you at the {self.approver}" if self.approver else ""
        text += "; trusted by you" if self.trusted_at else ""
        return text + ("" if self.trusted else "; nobody reviewed it yet")


OWNERS = Source(actor=Actor.OWNER, origin=Origin.OWNER)
OUTSIDE = Source(actor=Actor.OUTSIDE, origin=Origin.OUTSIDE)
LOST = Source(actor=Actor.OUTSIDE, origin=Origin.OUTSIDE, lost=True)
_STANDING = {"found": OWNERS, "outside": OUTSIDE, "lost": LOST}
_BACK = ("undo", "restore")  # what only brings back texts that were here before


@dataclass(slots=True)
class _Known:
    """What we know of one document: its size and digest when we last wrote it, the pieces added since, its lines."""

    digest: str | None = None  # of the whole text up to `size`; None: deleted
    size: int = 0
    pieces: list[tuple[int, int, str]] = field(default_factory=list)
    lines: dict[str, Source] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.pieces[-1][1] if self.pieces else self.size


class Provenance:
    """The folded view. `through` is the number of the last record in it."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self._known: dict[str, _Known] = {}
        self._begun: dict[str, tuple[Intent, Record]] = {}
        self._doubtful: set[str] = set()  # documents that ever had an untrusted line
        self._renewed: datetime | None = None  # since when a line no record names may be one whose record was lost
        self.through = 0

    def fold(self, records: Iterable[Record]) -> None:
        for record in records:
            self.through = record.n
            if record.kind == "intent":
                intent = Intent.from_record(record)
                self._begun[intent.id] = (intent, record)
                self._announced(intent, record)
            elif record.kind == "done" and (begun := self._begun.pop(str(record.fields.get("id")), None)):
                self._carried_out(*begun)
            elif record.kind == "failed":
                self._begun.pop(str(record.fields.get("id")), None)
            elif record.kind in _STANDING:
                self._standing(record)
            elif record.kind == "trust":
                self._trust(record)
            elif record.kind == "renewed" and record.fields.get("doubtful", True):
                self._renewed = record.time

    def _announced(self, intent: Intent, record: Record) -> None:
        """Untrusted lines are known for what they are before they can be read, and also if their batch never ends."""
        source = _source(intent, record)
        for edit in intent.edits:
            for line in edit.lines:
                self._note_line(_key(edit.to or edit.path), line, source, only_doubtful=True)
        if intent.what in _BACK:
            self._brought_back(intent)

    def _brought_back(self, intent: Intent) -> None:
        """What an undo or a restore brings to a document is no more trusted there than where it comes from: a document that
        goes with the same change, as when a move is taken back, or a time whose records a damaged ledger lost."""
        gone = [self._known.get(_key(edit.path)) for edit in intent.edits if edit.kind is Kind.DELETE]
        doubted = {d: source for known in gone if known for d, source in known.lines.items() if not source.trusted}
        lost = replace(LOST, time=self._renewed) if self._renewed else None
        for edit in intent.edits:
            path = _key(edit.to or edit.path)
            known = self._known.setdefault(path, _Known())
            for digest in (line.digest for line in edit.lines):
                source = doubted.get(digest) or (lost if digest not in known.lines else None)
                if source is not None:
                    known.lines[digest] = source
                    self._doubtful.add(path)

    def _carried_out(self, intent: Intent, record: Record) -> None:
        source = _source(intent, record)
        for edit in intent.edits:
            self._edited(edit, source, back=intent.what in _BACK)

    def _edited(self, edit: Edit, source: Source, *, back: bool) -> None:
        """Notes an edit. Lines that an undo brings `back` keep the source they had: that is no way to be trusted."""
        path = _key(edit.to or edit.path)
        known = self._known.setdefault(path, _Known())
        if edit.kind is Kind.DELETE:
            known.digest, known.size, known.pieces = None, 0, []
            return
        if edit.kind is Kind.MOVE:
            old = self._known.setdefault(_key(edit.path), _Known())
            known.lines = {**known.lines, **old.lines}  # it is the moved text that stands there now
            old.digest, old.size, old.pieces = None, 0, []
            if _key(edit.path) in self._doubtful:
                self._doubtful.add(path)
        if edit.kind is Kind.APPEND:
            known.pieces.append((edit.before or 0, edit.after or 0, edit.digest or ""))
        else:
            known.digest, known.size, known.pieces = edit.digest, edit.after or 0, []
        for line in edit.lines:
            if not (back and line.digest in known.lines):
                self._note_line(path, line, source)

    def _note_line(self, path: str, line: NewLine, source: Source, *, only_doubtful: bool = False) -> None:
        own = line.origin or line.taint
        found = replace(source, origin=line.origin or source.origin, taint=source.taint | line.taint) if own else source
        if only_doubtful and found.trusted:
            return
        known = self._known.setdefault(path, _Known())
        known.lines[line.digest] = found
        if not found.trusted:
            self._doubtful.add(path)

    def _standing(self, record: Record) -> None:
        """A document as it stood when we looked: found there before we ever wrote it, edited from outside, or with lines
        whose records were lost."""
        path = _key(str(record.fields["path"]))
        known = self._known.setdefault(path, _Known())
        known.digest, known.size, known.pieces = record.fields.get("digest"), int(record.fields.get("size", 0)), []
        source = replace(_STANDING[record.kind], time=None if record.kind == "found" else record.time)
        if source.lost:
            self._doubtful.add(path)
        for digest in record.fields.get("lines", ()):
            known.lines[digest] = source

    def _trust(self, record: Record) -> None:
        path, lines = record.fields.get("path"), record.fields.get("lines")
        session = record.fields.get("session")
        for key in [_key(str(path))] if path else list(self._known):
            known = self._known.get(key)
            for digest, source in list(known.lines.items()) if known else ():
                if (lines is None or digest in lines) and (session is None or source.session == session):
                    known.lines[digest] = replace(source, trusted_at=record.time)  # type: ignore[union-attr]

    # -- answers --------------------------------------------------------------------------------------------------------

    def knows(self, path: DocPath) -> bool:
        return path.key in self._known

    def size_of(self, path: DocPath) -> int | None:
        """How large we left a document; None when we never wrote it, or deleted it."""
        known = self._known.get(path.key)
        return known.end if known and (known.digest is not None or known.pieces) else None

    def is_ours(self, path: DocPath, text: str | None) -> bool:
        """Whether a document stands as we left it. One we never wrote counts as ours: there is nothing to compare."""
        known = self._known.get(path.key)
        if known is None:
            return True
        if text is None:
            return known.digest is None and not known.pieces
        data = text.encode("utf-8", "surrogatepass")
        if len(data) != known.end:
            return False
        parts = [(0, known.size, known.digest)] if known.digest is not None else []
        return all(
            self._key.of(data[start:end].decode("utf-8", "replace")) == digest
            for start, end, digest in [*parts, *known.pieces]
        )

    def source(self, path: DocPath, line: str) -> Source:
        """Where a line of a document came from."""
        known = self._known.get(path.key)
        if known is None:
            return OWNERS
        digest = self._key.line(line)
        return known.lines.get(digest, OUTSIDE if digest else OWNERS)

    def has_doubt(self, path: DocPath) -> bool:
        """Whether a document may hold untrusted lines, so that it is worth a look at each."""
        return path.key in self._doubtful

    @property
    def is_doubtful(self) -> bool:
        """Whether any document ever had an untrusted line."""
        return bool(self._doubtful)

    def new_lines(self, path: DocPath, text: str) -> list[str]:
        """The digests of lines that no record of ours explains."""
        known = self._known.get(path.key)
        found = dict.fromkeys(self._key.lines(text))
        return [digest for digest in found if digest and (known is None or digest not in known.lines)]

    def distrusted(self) -> int:
        """How many lines are untrusted now."""
        return sum(not source.trusted for known in self._known.values() for source in known.lines.values())

    def distrusted_in(self, path: DocPath) -> int:
        """How many lines of one document are untrusted now."""
        known = self._known.get(path.key)
        return sum(not source.trusted for source in known.lines.values()) if known else 0

    def intents(self) -> dict[str, tuple[Intent, Record]]:
        """Batches begun and not finished, as far as this view has read."""
        return dict(self._begun)


def _source(intent: Intent, record: Record) -> Source:
    return Source(
        actor=intent.actor,
        origin=intent.origin,
        time=record.time,
        session=intent.session,
        scope=intent.scope,
        taint=intent.taint,
        rule=intent.rule,
        approver=intent.approver,
        change=intent.id,
    )


def _key(path: str) -> str:
    return DocPath.parse(path).key


def _read(taint: frozenset[Origin]) -> str:
    words: dict[Any, str] = {
        Origin.WEB: "a web page",
        Origin.TOOL: "a tool's result",
        Origin.SKILL: "a skill",
        Origin.PEER: "another person's message",
    }
    return " and ".join(words.get(origin, str(origin)) for origin in sorted(taint))
