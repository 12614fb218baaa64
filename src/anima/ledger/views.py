"""What a ledger says: whether it is whole, and where every line came from, folded record by record.

Promise: `verify` names the first record that was flipped, dropped, swapped, put in or cut off; in a new chain in the place
of a broken one every record keeps its number, what was lost is a gap, and no batch is carried out again. Provenance is keyed
by the line's digest, so it survives moves inside a file; a line is untrusted when it came from outside, or from a session
that had read such text, unless the owner approved it; one that no record names is the owner's in a file that the ledger
meets for the first time, else an edit from outside. Pure. Not here: reading the ledger (store), where untrusted lines wait
for the owner (memory).
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from anima.errors import refuse_newer
from anima.ledger import FORMAT, ORIGINAL, Edit, Intent, Key, Ledger, Log, Record, blocks, first_of, sealed, sound
from anima.model import Actor, DocPath, Kind, Origin, Source

OWNERS = Source(actor=Actor.OWNER, origin=Origin.OWNER)
OUTSIDE = Source(actor=Actor.OUTSIDE, origin=Origin.OUTSIDE)
_STANDING = {"found": OWNERS, "outside": OUTSIDE}  # what we only saw: a document that was here before us, an edit
CHANGED, _BACK = ("intent", *_STANDING), ("undo", "restore")
_TOLD = ("actor", "origin", "session", "scope", "taint", "rule", "approver")  # of an intent


@dataclass(slots=True)
class _Known:
    """What we know of one document: its size and digest when we last wrote it, the pieces added since, its lines."""

    digest: str | None = None  # of the whole text up to `size`; None: deleted
    size: int = 0
    pieces: list[tuple[int, int, str]] = field(default_factory=list)
    told: dict[str, Source] = field(default_factory=dict)
    late: list[tuple[str, Source, Mapping[str, Source] | None]] = field(default_factory=list)  # not asked for yet
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def lines(self) -> dict[str, Source]:
        """Where each line came from. A long document has many, so they are told apart when somebody asks."""
        with self.lock:
            for lines, source, back in (late := self.late[:]):
                new = dict.fromkeys(Key.each(lines), source)
                self.told |= new if back is None else {x: self.told.get(x) or back.get(x, OUTSIDE) for x in new}
            del self.late[: len(late)]  # not what was added meanwhile
        return self.told

    @property
    def end(self) -> int:
        return self.pieces[-1][1] if self.pieces else self.size


class Provenance:
    """The folded view. `through` is the number of the last record in it, `newest` that of the last one of a change, and
    `newest_text` of one that tells of a text which an append would bury, should history not hold it yet."""

    def __init__(self, key: Key) -> None:
        self._key = key
        self._known: dict[str, _Known] = {}
        self._begun: dict[str, tuple[Intent, Record]] = {}
        self.through = self.newest = self.newest_text = 0

    def follow(self, ledger: Ledger) -> None:
        """Folds what is new in a ledger."""
        self.fold(ledger.records(self.through, kinds=(*CHANGED, "done", "failed", "format")))

    def fold(self, records: Iterable[Record]) -> None:
        for record in records:
            self.through = record.n
            if record.kind in CHANGED:
                self.newest, edits = record.n, record.fields.get("edits", ())
                if record.kind in _STANDING or any(e["kind"] != Kind.APPEND and e.get("base") for e in edits):
                    self.newest_text = record.n
            if record.kind == "format":
                refuse_newer("ledger.jsonl", record.fields.get("format"), FORMAT)
            elif record.kind == "intent":
                intent = Intent.from_record(record)
                self._begun[intent.id] = (intent, record)
            elif record.kind == "done" and (begun := self._begun.pop(str(record.fields.get("id")), None)):
                intent, intended = begun
                source = Source(time=intended.time, change=intent.id, **{each: getattr(intent, each) for each in _TOLD})
                # What an undo or a restore brings back keeps the source that it had, in whichever of its documents.
                were = (self._known[key].lines for each in intent.edits if (key := _key(each.path)) in self._known)
                back = dict(each for one in were for each in one.items()) if intent.what in _BACK else None
                for edit in intent.edits:
                    self._edited(edit, source, back)
            elif record.kind == "failed":
                self._begun.pop(str(record.fields.get("id")), None)
            elif record.kind in _STANDING:
                # A document as it stood when we looked: found there before we ever wrote it, or edited from outside.
                told, path = record.fields, str(record.fields["path"])
                known = self._known.setdefault(_key(path), _Known())
                known.digest, known.size, known.pieces = told.get("digest"), int(told.get("size", 0)), []
                source = replace(_STANDING[record.kind], time=None if record.kind == "found" else record.time)
                known.late.append((told.get("lines", ""), replace(source, place=path), None))

    def _edited(self, edit: Edit, source: Source, back: Mapping[str, Source] | None) -> None:
        """Notes an edit. Lines that an undo brings `back` keep the source they had: that is no way to be trusted."""
        known = self._known.setdefault(_key(edit.to or edit.path), _Known())
        if edit.kind is Kind.DELETE:
            known.digest, known.size, known.pieces = None, 0, []
            return
        if edit.kind is Kind.MOVE:
            old = self._known.setdefault(_key(edit.path), _Known())
            known.told = {**known.lines, **old.lines}  # it is the moved text that stands there now
            old.digest, old.size, old.pieces = None, 0, []
        if edit.kind is Kind.APPEND:
            known.pieces.append((edit.before or 0, edit.after or 0, edit.digest or ""))
        else:
            known.digest, known.size, known.pieces = edit.digest, edit.after or 0, []
        known.late.append((edit.lines, source, back))

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
        if not known.pieces and known.digest is not None:
            return self._key.of(text) == known.digest
        parts = [(0, known.size, known.digest)] if known.digest is not None else []
        return all(self._key.of(data[start:end]) == digest for start, end, digest in [*parts, *known.pieces])

    def source(self, path: DocPath, line: str) -> Source:
        """Where a line of a document came from."""
        known, digest = self._known.get(path.key), self._key.line(line)
        return known.lines.get(digest, OUTSIDE if digest else OWNERS) if known else OWNERS

    def new_lines(self, path: DocPath, text: str) -> str:
        """The digests of lines that no record of ours explains, one behind the other."""
        known = self._known.get(path.key)
        return self._key.distinct(text, known.lines if known else ())

    def intents(self) -> dict[str, tuple[Intent, Record]]:
        """Batches begun and not finished, as far as this view has read."""
        return dict(self._begun)


def _key(path: str) -> str:
    return DocPath.parse(path).key


# -- whether it is whole ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Where the ledger is not what it was. `line` counts from 1 and is also the record's number."""

    line: int
    offset: int
    kind: str  # altered, missing, order, repeated, unlinked, truncated, rewritten, key, format
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What `verify` found. `torn` counts the bytes of an unterminated last line, which is a crash, not tampering. `renewed` is
    the record that says that a repair put this chain in the place of a damaged one: what stands before it was carried over,
    and is proven no longer."""

    records: int
    fault: Fault | None = None
    torn: int = 0
    renewed: Record | None = None

    @property
    def ok(self) -> bool:
        return self.fault is None


def verify(log: Log, *, key: Key | None = None, anchors: Iterable[tuple[int, str]] = ()) -> Verification:
    """Hash the whole chain and name the first thing that is wrong. `anchors` are `(n, hash)` pairs kept elsewhere (history, the
    user's configuration): without them a chain that was cut at a record's end still hangs together. Without `key` it is
    only told whether it hangs together."""
    if is_other := key is not None and _is_of_another(log, key):
        key = None
    noted: dict[int, set[str]] = {}
    for n, digest in anchors:
        if n > 0:
            noted.setdefault(n, set()).add(digest)
    fault: Fault | None = None
    rewritten: Fault | None = None
    renewed: Record | None = None
    line = records = agreed = end = 0
    before = ORIGINAL
    for raw in (raw for _, block in blocks(log) for raw in block.split(b"\n")[:-1]):
        line, start, end = line + 1, end, end + len(raw) + 1
        record = sound(raw, key)
        if fault is not None:
            if record is not None and fault.kind == "missing" and record.n == fault.line:
                what = f"line {fault.line}: record {record.n} belongs here but stands in line {line}"
                fault = replace(fault, kind="order", what=what)
        elif wrong := _wrong(record, line, before, is_other=is_other):
            kind, what = wrong
            fault = Fault(line=line, offset=start, kind=kind, what=f"line {line}: {what}")
        elif record is not None:
            records, before = records + 1, record.hash
            expected = noted.pop(line, None)
            if expected == {record.hash} and rewritten is None:
                agreed = line
            elif expected is not None and rewritten is None:
                since = f"after record {agreed} " if agreed else ""
                what = f"another record {line} is noted elsewhere; the ledger was rewritten somewhere {since}up to here"
                rewritten = Fault(line=line, offset=start, kind="rewritten", what=f"line {line}: {what}")
            if record.kind == "renewed":  # what was noted of the chain before this one says nothing about the copies
                renewed, rewritten, agreed = record, None, line
                noted = {n: digests for n, digests in noted.items() if n > line}
    if fault is None and rewritten is None and noted:
        what = f"the ledger ends at record {line}, but record {max(noted)} is noted elsewhere; its end was cut off"
        fault = Fault(line=line + 1, offset=end, kind="truncated", what=what)
    first = min((each for each in (fault, rewritten) if each), key=lambda each: each.line, default=None)
    return Verification(records=records, fault=first, torn=log.size() - end, renewed=renewed)


def _is_of_another(log: Log, key: Key) -> bool:
    """Whether a ledger names another key than ours, and ours proves nothing of it."""
    first, _ = first_of(log)
    if first is None or first.fields.get("key") in (None, key.id):
        return False
    return not any(sound(line, key) for _, block in blocks(log) for line in block.split(b"\n"))


def _wrong(record: Record | None, n: int, before: str, *, is_other: bool) -> tuple[str, str] | None:
    """What is wrong with the record in line `n`."""
    if record is None:
        return "altered", "the record is not what was written: it does not match its hash"
    if record.n > n:
        missing = f"record {n} is" if record.n == n + 1 else f"records {n} to {record.n - 1} are"
        return "missing", f"record {record.n} stands here; {missing} missing"
    if record.n < n:
        return "repeated", f"record {record.n} stands here a second time, or was put in"
    if record.prev != before:
        return "unlinked", f"record {n} does not follow the one before it; one of the two was put in or rewritten"
    if n == 1 and is_other:
        return "key", "the ledger was begun with another key"
    if n == 1 and (begun := record.fields.get("format", FORMAT)) != FORMAT:
        return "format", f"it was begun in the format {begun}, and this version goes on with {FORMAT} alone"
    return None


# -- a new chain ----------------------------------------------------------------------------------------------------------


def renew(
    old: bytes,
    fault: Fault | None,
    *,
    old_key: Key | None,
    key: Key,
    anchors: Iterable[tuple[int, str]],
    now: datetime,
    why: str,
) -> tuple[bytes, int, int]:
    """A whole ledger in the place of a damaged one; how many records were carried over, and how many are lost. `old_key` says
    which of its records are what was written, `key` seals the new one."""
    lines = old[: old.rfind(b"\n") + 1].split(b"\n")[:-1]
    most = len(lines) + 1_000_000  # an anchor is only a line in a commit: nobody makes us write without end
    found: dict[int, Record] = {}
    for line in lines:
        with suppress(ValueError):  # a time that is none: nothing of it can be carried over
            if (record := sound(line, old_key)) and 0 < record.n <= most and record.time:
                found.setdefault(record.n, record)
    noted = [n for n, _ in anchors if n <= most]
    last = max([len(lines), *found, *noted], default=0)
    first, opening = found.get(1), {"format": FORMAT, "id": key.id[:16], "key": key.id}
    bodies: list[tuple[datetime | str, str, Mapping[str, Any]]] = [(now, "home", opening)]
    if first is not None and first.kind == "home":
        bodies = [(first.t, "home", {**opening, **first.fields, "format": FORMAT, "key": key.id})]
    for n in range(2, last + 1):
        known = found.get(n)
        bodies.append((known.t, known.kind, known.fields) if known else (bodies[-1][0], "gap", {}))
    lost = last - len({*found, 1}) if last else 0
    was, start = hashlib.sha256(old).hexdigest(), fault.line if fault else 1
    told = {"was": was, "from": start, "why": why, "carried": len(found), "lost": lost}
    bodies.append((now, "renewed", told))
    if lost or max(noted, default=0) > len(lines) or first is None:
        # A batch whose end was lost must not be carried out a second time.
        ended = {fields.get("id") for _, kind, fields in bodies if kind in ("done", "failed")}
        begun = [fields.get("id") for _, kind, fields in bodies if kind == "intent"]
        bodies += [(now, "failed", {"id": id, "why": "lost"}) for id in begun if id not in ended]
    made, prev = list[bytes](), ORIGINAL
    for n, (t, kind, fields) in enumerate(bodies, start=1):
        record, line = sealed(n, t, kind, fields, prev=prev, key=key)
        made.append(line)
        prev = record.hash
    return b"".join(made), len(found), lost
