"""The ledger: one append-only, hash-chained line for everything that happened in a home, and no text in any of them.

Promise: a record that was added stays where it is, and `n` is its line number. Its hash is made with the home's key: what is
not so proven is passed over. Documents, queries and reasons are keyed digests, so that nobody can guess a forgotten phrase.
A torn last line is a crash, not damage: readers pass over it, and the next `add` cuts it off. Several processes may hold a
Ledger over one log; whoever calls `add` or `begin` holds the home lock.
Not here: files and locks (store gives a `Log`), what records mean and whether they are whole (views, dream.material).
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Protocol

from anima.errors import BadArguments, Damaged, refuse_newer
from anima.model import MAX_PATH, Actor, Kind, Origin, Scope, kept
from anima.text import SIGN, bullet_text, pieces, rare

FORMAT = 4  # of the home as a whole; a ledger begins with it, and a greater number is refused
_WIDE = 16  # characters of a line's digest
_HALF = 2**24  # of a record's number, which is hidden half by half
ORIGINAL = "0" * 64  # what the first record names as the one before it

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode


class Readable(Protocol):
    """Bytes that can be read anywhere."""

    def size(self) -> int: ...

    def read(self, start: int, end: int) -> bytes:
        """The bytes of a range, fewer where there are no more."""


class Log(Readable, Protocol):
    """An append-only run of bytes, as the store gives it. Its errors are those of `anima.errors`."""

    def read(self, start: int, end: int | None = None) -> bytes: ...

    def append(self, data: bytes, *, sync: bool) -> None:
        """Add in one write; with `sync`, return only when it is on the disk."""

    def truncate(self, size: int) -> None:
        """Cut the log. The ledger asks for it only to remove an unterminated last line."""


@dataclass(frozen=True, slots=True)
class Still:
    """A ledger as it was read: a Log that nobody can add to."""

    data: bytes

    def size(self) -> int:
        return len(self.data)

    def read(self, start: int, end: int | None = None) -> bytes:
        return self.data[start:end]

    def append(self, data: bytes, *, sync: bool) -> None:
        raise Damaged("a ledger that is only looked at cannot be written")

    def truncate(self, size: int) -> None:
        raise Damaged("a ledger that is only looked at cannot be cut")


class Key:
    """Makes the keyed digests of one home. Whoever has not the key can neither guess nor test a text."""

    __slots__ = ("_each", "_line", "_secret", "of")

    def __init__(self, secret: bytes) -> None:
        if not 16 <= len(secret) <= 64:
            raise Damaged("the home's key has not the right length", hint="put the key of this home back from a backup")
        self._secret = secret
        # Copied for each line. The key stands before the line, and not in a block of its own: that halves the work.
        self._line = hashlib.blake2b(secret, digest_size=_WIDE // 2, person=b"anima line")
        self._each, self.of = kept(4)(self._lines), kept(2)(self._text)

    def __repr__(self) -> str:
        return f"Key({self.id[:8]}…)"

    def seal(self, data: bytes) -> str:
        """The hash of a record, which only the key can make."""
        return hashlib.blake2b(data, digest_size=32, key=self._secret, person=b"anima record").hexdigest()

    @property
    def id(self) -> str:
        """A public name for the key; it stands in the ledger's first record, so that a wrong key is noticed."""
        return self._digest(b"", b"anima key")

    def _text(self, text: str | bytes) -> str:
        """The digest of a whole text, exact to the byte."""
        return self._digest(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text, b"anima text")

    def line(self, text: str) -> str:
        """The digest of one line, the same wherever it stands; "" for one that says nothing. Equal for lines that differ only in
        line ending, blanks at either end, the width of blanks in between, list marker (bullet or number) or Unicode form."""
        return b"".join(self._digests([_said_in(text)])).hex()

    def phrase(self, words: str) -> str:
        """The digest of a phrase that stays forgotten, of its words as `forgotten` cuts them."""
        return self._digest(words.encode("utf-8", "surrogatepass"), b"anima forgot")

    def distinct(self, text: str, held: Collection[str] = ()) -> str:
        """The digests of the lines of a text, each once, of those that say something and are not held. Lines end at LF."""
        found = self._each(text)
        return "".join(each for each in self.each(found) if each not in held) if held else found

    def _lines(self, text: str) -> str:
        every = chain.from_iterable(self._digests(_said(piece)) for piece in pieces(text))
        return b"".join(dict.fromkeys(every)).hex()

    @staticmethod
    def each(lines: str) -> list[str]:
        """One by one, the digests that stand there one behind the other; none where an older ledger has a list of others."""
        lines = lines if isinstance(lines, str) else ""
        return [lines[at : at + _WIDE] for at in range(0, len(lines), _WIDE)]

    def _digests(self, lines: Iterable[bytes]) -> list[bytes]:
        made, copy = list[bytes](), self._line.copy
        for line in filter(None, lines):
            (digest := copy()).update(line)
            made.append(digest.digest())
        return made

    def name_of(self, number: int) -> str:
        """The public name of a record's number, which tells whoever has not the key nothing of how many there are."""
        left, right = divmod(number, _HALF)
        for turn in range(4):
            left, right = right, left ^ self._mixed(turn, right)
        return f"{left:06x}{right:06x}"

    def number_of(self, name: str) -> int:
        """The number behind a name."""
        left, right = divmod(int(name, 16), _HALF)
        for turn in reversed(range(4)):
            left, right = right ^ self._mixed(turn, left), left
        return left * _HALF + right

    def _mixed(self, turn: int, half: int) -> int:
        return int(self._digest(f"{turn} {half}".encode(), b"anima number")[:6], 16)

    def _digest(self, data: bytes, purpose: bytes) -> str:
        return hashlib.blake2b(data, digest_size=16, key=self._secret, person=purpose).hexdigest()


_SAID = re.compile(rf"\n ?+(?:{SIGN}(?: |(?=\n)|\Z))?+(.*+)".encode())
_WIDE_BLANK = re.compile(b"  ")  # which finds one in half the time that `in` takes


def _said(text: str) -> Iterable[bytes]:
    """What each line of a text says, as `Key.line` tells lines apart; all lines at once, because a document has many."""
    if odd := rare(text):
        if any(map(str.isdecimal, odd)):  # a sign may be of them, too
            return [_said_in(line) for line in text.split("\n")]
        for blank in filter(str.isspace, odd):
            text = text.replace(blank, " ")
        text = unicodedata.normalize("NFC", text)
    data = text.encode("utf-8", "surrogatepass")
    while _WIDE_BLANK.search(data):
        data = data.replace(b"  ", b" ")
    return map(bytes.rstrip, _SAID.findall(b"\n" + data))


def _said_in(line: str) -> bytes:
    words = bullet_text(" ".join(line.split()))
    return (words if words.isascii() else unicodedata.normalize("NFC", words)).encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of the ledger. `t` is ISO time in UTC; `fields` is what its kind says."""

    n: int
    t: str
    kind: str
    fields: Mapping[str, Any]
    prev: str
    hash: str

    @property
    def time(self) -> datetime:
        return datetime.fromisoformat(self.t)


def sound(line: bytes, key: Key | None) -> Record | None:
    """The record a line holds if it is what was written; without the key, if it holds one."""
    record = parse(line.decode("latin-1"))
    return record if record is not None and holds(record, line, key) else None


def holds(record: Record, line: bytes, key: Key | None) -> bool:
    """Whether a record is what was written: without its hash, the line's bytes are what was hashed."""
    if key is None:
        return True
    return key.seal(line.replace(f'"hash":"{record.hash}",'.encode("latin-1", "replace"), b"", 1)) == record.hash


def first_of(log: Log) -> tuple[Record | None, bytes]:
    """The first record as it stands there, unproven, and its line."""
    line = log.read(0, 4096).partition(b"\n")[0]
    return parse(line.decode("latin-1")), line


def sealed(
    n: int, at: datetime | str, kind: str, fields: Mapping[str, Any], *, prev: str, key: Key
) -> tuple[Record, bytes]:
    """A record and its line: the hash is that of the line without it, made with the key. `at` is when, or a time as written."""
    t = at if isinstance(at, str) else at.astimezone(UTC).isoformat(timespec="microseconds")
    body = _encode({**fields, "n": n, "t": t, "kind": kind, "prev": prev}).encode("ascii")
    digest = key.seal(body)
    data = b'{"hash":"%s",%s\n' % (digest.encode("ascii"), body[1:])
    return Record(n=n, t=t, kind=kind, fields=dict(fields), prev=prev, hash=digest), data


def parse(line: str) -> Record | None:
    """The record a line holds, unchecked; None if it is none."""
    try:
        raw = json.loads(line)
        n, t, kind, prev, digest = raw.pop("n"), raw.pop("t"), raw.pop("kind"), raw.pop("prev"), raw.pop("hash")
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return None
    if type(n) is not int or not type(t) is type(kind) is type(prev) is type(digest) is str:
        return None
    return Record(n=n, t=t, kind=kind, fields=raw, prev=prev, hash=digest)


BLOCK = 1 << 18
MAX_LINE = 32 * 2**20


def blocks(file: Readable, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of runs of whole lines, from a line's start on. Only the last can lack its newline, and a piece
    of a line that is longer than MAX_LINE."""
    stop = file.size() if end is None else end
    at, held, length = start, list[bytes](), 0
    while data := file.read(start, min(start + BLOCK, stop)):
        start += len(data)
        cut = data.rfind(b"\n") + 1
        if cut or length + len(data) > MAX_LINE:
            cut = cut or len(data)
            yield at, b"".join([*held, data[:cut]])
            at, held, length = start - len(data) + cut, [], 0
            data = data[cut:]
        if data:
            held.append(data)
            length += len(data)
    if held:
        yield at, b"".join(held)


def block_before(file: Readable, end: int, size: int = BLOCK) -> tuple[int, bytes]:
    """(offset, bytes) of the run of lines that ends at `end`: about `size` bytes, and at least one line."""
    at, held, length = end, list[bytes](), 0
    while at > 0 and length <= MAX_LINE:
        start = max(0, at - size)
        data = file.read(start, at)
        cut = data.find(b"\n") + 1 if start else 0
        held.append(data[cut:])
        if not start or (cut and (held[:-1] or cut < len(data))):
            return start + cut, b"".join(reversed(held))
        held[-1] = data
        at, length = start, length + len(data)
        # In growing steps, and never much more than the longest line.
        size = max(BLOCK, min(2 * size, MAX_LINE - length))
    return at, b"".join(reversed(held))


def line_at(file: Readable, offset: int) -> bytes:
    """The line that begins at a byte, with its newline if it has one; at most MAX_LINE bytes of it."""
    held, at, want = list[bytes](), offset, 4096
    while data := file.read(at, min(at + want, offset + MAX_LINE)):
        cut = data.find(b"\n") + 1
        held.append(data[:cut] if cut else data)
        if cut:
            break
        at, want = at + len(data), want * 4
    return b"".join(held)


def last_line(file: Readable, end: int) -> tuple[int, bytes]:
    """(offset, bytes) of what stands after the last newline before `end`; of a longer one about the last MAX_LINE bytes."""
    at, block = block_before(file, end, 1 << 12)
    cut = block.rfind(b"\n") + 1
    return at + cut, block[cut:]


def lines_back(file: Readable, end: int) -> Iterator[bytes]:
    """The lines before `end`, which stands after a line break, last one first."""
    step = 1 << 14
    while end > 0:
        end, block = block_before(file, end, step)
        yield from reversed(block[:-1].split(b"\n"))
        step = min(step * 2, BLOCK)


_AS_TOLD = ("id", "what", "session", "rule", "approver", "reason", "of")  # of an intent, as it stands in its record
_LONG, _HEAD = 1 << 16, 80  # bytes of a record that is not proven a second time, and of its beginning
_MANY = 16  # records that are known, at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """What a batch does to one file. Digests are keyed; an append names its piece and the sizes around it."""

    path: str
    kind: Kind
    base: str | None = None  # of the text that stood there; None where nothing did
    digest: str | None = None  # of the whole new text, or of the piece that is appended
    before: int | None = None  # sizes in bytes
    after: int | None = None
    to: str | None = None
    temp: str | None = None
    lines: str = ""  # the digests of those that are new, one behind the other

    def dump(self) -> dict[str, Any]:
        every = {name: getattr(self, name) for name in self.__slots__}
        return _present(every | {"kind": str(self.kind), "lines": self.lines or None})


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A batch about to happen, all or nothing. `reason` is a keyed digest: agents write it, so it may hold text."""

    id: str
    what: str  # write, undo, approve, sweep, import …
    edits: tuple[Edit, ...]
    actor: Actor
    origin: Origin
    session: str | None = None
    scope: Scope | None = None
    taint: frozenset[Origin] = frozenset()
    rule: str | None = None
    approver: str | None = None
    reason: str | None = None
    of: str | None = None  # the batch, proposal or sweep this one undoes or carries out

    def fields(self) -> dict[str, Any]:
        every = {name: getattr(self, name) for name in self.__slots__}
        return _present(every | {"taint": sorted(self.taint) or None, "edits": [edit.dump() for edit in self.edits]})

    @classmethod
    def from_record(cls, record: Record) -> Intent:
        """The intent of an `intent` record. Raises Damaged for one that this version cannot have written."""
        raw = dict(record.fields)
        try:
            return cls(
                **{name: raw[name] for name in _AS_TOLD if name in raw},
                edits=tuple(Edit(**{**edit, "kind": Kind(edit["kind"])}) for edit in raw["edits"]),
                actor=Actor(raw["actor"]),
                origin=Origin(raw["origin"]),
                scope=Scope(raw["scope"]) if "scope" in raw else None,
                taint=frozenset(Origin(name) for name in raw.get("taint", ()) if name),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Damaged(f"record {record.n} of the ledger is an intent that cannot be read", hint=_HINT) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """The last sound record, and what follows it: `bad` complete lines that are no records, up to `full`."""

    n: int = 0
    hash: str = ORIGINAL
    full: int = 0
    bad: int = 0


_HINT = "anima audit verify says what is wrong; anima doctor --repair goes on from there"


class Ledger:
    """A view of one log that knows its last record. It lives as long as its log; threads may read while one adds."""

    def __init__(
        self,
        log: Log,
        *,
        key: Key | None,
        clock: Callable[[], datetime],
        keep: Callable[[bytes], None] | None = None,
        noted: Callable[[Ledger, Record], None] | None = None,
    ) -> None:
        """Opening reads the first and the last record only. `keep` is given the bytes of a torn line before they are
        cut, `noted` each new record that no crash can take back. Without the key, records are read unproven and none
        can be added."""
        self._log, self._clock, self._keep, self._key, self._noted = log, clock, keep, key, noted
        self._alarm: str | None = None
        # By their beginning, which has the hash: lines that were read or written.
        self._last: dict[bytes, tuple[bytes, Record | None]] = {}
        self._tip = _last(log, key)

    @property
    def key(self) -> Key:
        """The key of the digests in this ledger."""
        if self._key is None:
            raise Damaged("the key of the ledger is gone", hint=_HINT)
        return self._key

    @property
    def tip(self) -> Tip:
        """The last record as far as this ledger has read. History anchors `(tip.n, tip.hash)`."""
        return self._tip

    def holds(self, n: int, digest: str) -> bool:
        """Whether the chain has this very record."""
        found = next(self.records(n - 1), None) if 0 < n <= self._catch_up().n else None
        return found is not None and (found.n, found.hash) == (n, digest)

    def begin(self, home: str) -> Record:
        """The first record: made now if the ledger is empty, else checked against this format and key."""
        tip, key = self._catch_up(), self.key
        if tip.n == 0 and not tip.bad:
            return self.add("home", {"format": FORMAT, "id": home, "key": key.id})
        first, line = first_of(self._log)
        if first is None or first.kind != "home":
            raise Damaged("the ledger does not begin with the record of its home", hint=_HINT)
        begun_with = first.fields.get("format")
        refuse_newer("ledger.jsonl", begun_with, FORMAT)
        if begun_with != FORMAT:
            raise Damaged(f"the ledger does not say that it has the format {FORMAT}", hint=_HINT)
        if first.fields.get("key") != key.id:
            raise Damaged(
                "the key is not the one this ledger was begun with", hint="put the key of this home back from a backup"
            )
        if not holds(first, line, key):
            raise Damaged("the first record of the ledger is not what was written", hint=_HINT)
        return first

    def add(self, kind: str, fields: Mapping[str, Any], *, sync: bool = True) -> Record:
        """Add one record. When the log's append fails, the record may or may not stand: `pending` knows. Raises Damaged when
        the end of the ledger is unreadable, and once when what was read before is gone."""
        if taken := {"n", "t", "kind", "prev", "hash"} & fields.keys():
            raise BadArguments(f"a {kind} record cannot have a field of its own named {', '.join(sorted(taken))}")
        _check_value(dict(fields), depth=-1)
        tip = self._catch_up()
        if self._alarm is not None:
            alarm, self._alarm = self._alarm, None
            raise Damaged(f"{alarm}; nothing was written", hint=_HINT)
        if torn := self._log.read(tip.full) if self._log.size() > tip.full else b"":
            if self._keep is not None:
                self._keep(torn)
            self._log.truncate(tip.full)
        if tip.bad:
            raise Damaged("the end of the ledger is damaged; nothing was written", hint=_HINT)
        made, data = sealed(tip.n + 1, self._clock(), kind, fields, prev=tip.hash, key=self.key)
        self._log.append(data, sync=sync)
        if len(data) > _LONG or kind in ("intent", "done"):
            self._sound(data[:-1], made)
        self._tip = Tip(n=made.n, hash=made.hash, full=tip.full + len(data))
        if sync and self._noted is not None:
            self._noted(self, made)
        return made

    def intend(self, intent: Intent) -> Record:
        return self.add("intent", intent.fields())

    def done(self, intent: str, *, sync: bool = True) -> Record:
        return self.add("done", {"id": intent}, sync=sync)

    def failed(self, intent: str, *, why: str | None = None) -> Record:
        """`why` is a short code, never a message."""
        return self.add("failed", _present({"id": intent, "why": why}))

    def pending(self) -> list[Intent]:
        """The batches that were begun and neither done nor failed, oldest first."""
        tip = self._catch_up()
        settled: set[str] = set()
        found: list[Intent] = []
        wanted = _of_kinds(("intent", "done", "failed"))
        for line in lines_back(self._log, tip.full):
            if not wanted(line) or (record := self._sound(line)) is None:
                continue
            if record.kind != "intent":
                settled.add(str(record.fields.get("id")))
            elif record.fields.get("id") not in settled:
                found.append(Intent.from_record(record))
            if len(settled) > 64:  # batches run one at a time, so an open one cannot lie behind so many
                break
        return found[::-1]

    def carried_out(self, proposal: str) -> bool:
        """Whether a batch that carries out a proposal (`p` and the name of its record) was begun and done."""
        return any(intent.of == proposal for intent, _ in self.batches(self.key.number_of(proposal[1:])))

    def batches(self, after: int = 0) -> Iterator[tuple[Intent, Record]]:
        """The batches that were begun after a record and are done, in the order of their ends, each with its record."""
        begun: dict[str, tuple[Intent, Record]] = {}
        for record in self.records(after, kinds=("intent", "done")):
            if record.kind == "intent":
                begun[str(record.fields.get("id"))] = (Intent.from_record(record), record)
            elif found := begun.pop(str(record.fields.get("id")), None):
                yield found

    def records(self, after: int = 0, *, kinds: Collection[str] = ()) -> Iterator[Record]:
        """The records whose number is greater than `after`, lazily; only those of `kinds`, if any are named. Lines that are no
        records, or nobody with the key wrote, are passed over; lines of other kinds are not even parsed."""
        tip, wanted = self._catch_up(), _of_kinds(kinds)
        start = tip.full if after > 0 else 0
        if after > 0:  # numbers are line numbers, so it is enough to count lines from the end
            back = zip(range(tip.n + tip.bad - after), lines_back(self._log, tip.full), strict=False)
            start -= sum(len(line) + 1 for _, line in back)
        for _, block in blocks(self._log, start, tip.full):
            for line in block.split(b"\n")[:-1]:
                record = self._sound(line) if line[:_HEAD] in self._last or wanted(line) else None
                if record is not None and record.n > after and (not kinds or record.kind in kinds):
                    after = record.n
                    yield record

    def _sound(self, line: bytes, made: Record | None = None) -> Record | None:
        """The record of a line, if it is what was written. The last long ones, and those of our own changes, are known by their
        bytes: while a change is made they are asked for several times, and to prove one takes long."""
        found = self._last.get(line[:_HEAD], (b"", None))
        if found[0] != line:
            found = (line, made or sound(line, self._key))
            if made is None and len(line) <= _LONG:
                return found[1]
            known = {**self._last, line[:_HEAD]: found}
            while len(known) > _MANY or (len(known) > 1 and sum(len(each) for each, _ in known.values()) > MAX_LINE):
                del known[next(iter(known))]
            self._last = known  # another one, because threads read it
        return found[1]

    def _catch_up(self) -> Tip:
        """Take in what others added. Readers go on with whatever stands there; the next `add` tells of an alarm. A thread that
        reads may put an older tip back in its place, so whoever adds goes on from what is returned."""
        tip, size = self._tip, self._log.size()
        if size == tip.full:
            return tip
        data = self._log.read(tip.full, size)
        lines = data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]
        if size > tip.full and not lines:
            return tip
        first, last = (parse(lines[0].decode("latin-1")), sound(lines[-1], self._key)) if lines else (None, None)
        if first is not None and last is not None and first.prev == tip.hash and not tip.bad:
            self._tip = new = Tip(n=last.n, hash=last.hash, full=tip.full + sum(map(len, lines)) + len(lines))
            return new
        self._tip = new = _last(self._log, self._key)
        if size < tip.full:
            self._alarm = "the ledger is shorter than it was"
        elif first is not None and first.prev != tip.hash and not tip.bad:
            self._alarm = "somebody wrote to the ledger and broke its chain"
        return new


def _of_kinds(kinds: Collection[str]) -> Callable[[bytes], object]:
    """A quick look whether a line can be a record of these kinds; with none named, every line can."""
    return re.compile("|".join(re.escape(f'"kind":"{kind}"') for kind in kinds).encode()).search


def _check_value(value: object, *, depth: int) -> None:
    """Text has no business in the ledger: nothing with a line break, nothing but digests that is longer than a path."""
    if isinstance(value, str):
        is_long = len(value) > MAX_PATH and value.encode("utf-8", "surrogatepass").translate(None, b"0123456789abcdef")
        if is_long or "\n" in value or "\r" in value:
            raise BadArguments("the ledger holds no text; give it a digest")
    elif isinstance(value, list | tuple | dict):
        if depth > 8:
            raise BadArguments("a record of the ledger is nested too deeply")
        for inner in (*value, *value.values()) if isinstance(value, dict) else value:
            _check_value(inner, depth=depth + 1)


def _last(log: Log, key: Key | None) -> Tip:
    """The last sound record, found from the end."""
    full, bad = last_line(log, log.size())[0], 0
    for line in lines_back(log, full):
        if (record := sound(line, key)) is not None:
            return Tip(n=record.n, hash=record.hash, full=full, bad=bad)
        bad += 1
    return Tip(full=full, bad=bad)


def _present(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
