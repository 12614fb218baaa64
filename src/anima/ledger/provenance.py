"""Where every line came from: a view of the ledger, folded record by record.

Promise: keyed by the line's own digest, so it survives moves inside a file; a line is untrusted when it came from a
tool, the web, a skill or a peer, or from a session that had read such text, unless the owner approved it. A line no
record names is the owner's if the file was here before the ledger, else an edit from outside. Pure: records in, answers
out. Not here: reading the ledger (store), where such lines wait for the owner (memory.unreviewed).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from anima.ledger import Edit, Intent, Key, Record
from anima.model import UNTRUSTED, Actor, DocPath, Kind, Origin, Scope

_READ = {
    Origin.WEB: "a web page",
    Origin.TOOL: "a tool's result",
    Origin.SKILL: "a skill",
    Origin.PEER: "another person's message",
}


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

    @property
    def trusted(self) -> bool:
        """Whether dreaming may build on it: nothing foreign went into it, or the owner said yes to it."""
        return self.approver is not None or not (({self.origin} | self.taint) & UNTRUSTED)

    @property
    def sentence(self) -> str:
        """One sentence a person understands: "written by the agent on 3 May in session ab12, after it read a web page"."""
        when = f"{self.time:%Y-%m-%d %H:%M} UTC" if self.time else ""
        if self.actor is Actor.OUTSIDE:
            text = "edited outside anima" + (f", first seen {when}" if when else "")
        elif self.time is None:
            text = "here before the ledger began, so it counts as the owner's"
        else:
            who = {Actor.OWNER: "you", Actor.AGENT: "the agent", Actor.DREAMER: "a dream", Actor.IMPORTER: "an import"}
            text = f"written by {who.get(self.actor, self.actor)} on {when}"
        text += f", in session {self.session}" if self.session else ""
        read = " and ".join(_READ.get(origin, str(origin)) for origin in sorted(self.taint))
        text += f", which had read {read}" if read else ""
        text += f"; approved by you at the {self.approver}" if self.approver else ""
        return text + ("" if self.trusted else "; nobody reviewed it yet")


OWNERS = Source(actor=Actor.OWNER, origin=Origin.OWNER)
OUTSIDE = Source(actor=Actor.OUTSIDE, origin=Origin.OUTSIDE)
_STANDING = {"found": OWNERS, "outside": OUTSIDE}
_TOLD = ("actor", "origin", "session", "scope", "taint", "rule", "approver")  # of an intent
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
        self.through = 0

    def fold(self, records: Iterable[Record]) -> None:
        for record in records:
            self.through = record.n
            if record.kind == "intent":
                intent = Intent.from_record(record)
                self._begun[intent.id] = (intent, record)
            elif record.kind == "done" and (begun := self._begun.pop(str(record.fields.get("id")), None)):
                intent, intended = begun
                told = {name: getattr(intent, name) for name in _TOLD}
                source = Source(time=intended.time, change=intent.id, **told)
                for edit in intent.edits:
                    self._edited(edit, source, back=intent.what in _BACK)
            elif record.kind == "failed":
                self._begun.pop(str(record.fields.get("id")), None)
            elif record.kind in _STANDING:
                self._standing(record)

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
        if edit.kind is Kind.APPEND:
            known.pieces.append((edit.before or 0, edit.after or 0, edit.digest or ""))
        else:
            known.digest, known.size, known.pieces = edit.digest, edit.after or 0, []
        for digest in edit.lines:
            if not (back and digest in known.lines):
                known.lines[digest] = source

    def _standing(self, record: Record) -> None:
        """A document as it stood when we looked: found there before we ever wrote it, or edited from outside."""
        path = _key(str(record.fields["path"]))
        known = self._known.setdefault(path, _Known())
        known.digest, known.size, known.pieces = record.fields.get("digest"), int(record.fields.get("size", 0)), []
        source = replace(_STANDING[record.kind], time=None if record.kind == "found" else record.time)
        for digest in record.fields.get("lines", ()):
            known.lines[digest] = source

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

    def new_lines(self, path: DocPath, text: str) -> list[str]:
        """The digests of lines that no record of ours explains."""
        known = self._known.get(path.key)
        found = dict.fromkeys(self._key.lines(text))
        return [digest for digest in found if digest and (known is None or digest not in known.lines)]

    def intents(self) -> dict[str, tuple[Intent, Record]]:
        """Batches begun and not finished, as far as this view has read."""
        return dict(self._begun)


def _key(path: str) -> str:
    return DocPath.parse(path).key
