"""One transcript as it is written: its lines, what is struck out of them, and what the owner has forgotten of it.

Promise: text is redacted before it is encoded, so that no secret the scan knows reaches the disk; what user and
assistant said is on the disk when `log` returns, and what tools said no later than the next such line. Lines stand in
the order in which they came. A Transcript lives as long as its session and is safe to share by threads; a file that was
removed beneath it is begun again. Not here: what is worth a record (session), reading (replay), files (store.logs).
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Literal

from anima.errors import BadArguments, Damaged, NoSuchSession, refuse_newer
from anima.ledger import MAX_LINE, Readable
from anima.model import UNTRUSTED
from anima.sessions import replay
from anima.sessions.replay import START, Boundary, Count, Header, Record, TrustState, Turn
from anima.store import Logs, OpenLog, Store
from anima.text.phrases import loose

Role = Literal["user", "assistant", "tool", "system"]
ROLES: tuple[Role, ...] = ("user", "assistant", "tool", "system")
Clock = Callable[[], datetime]
_RACE = 100_000  # entries that others may have added to a session that two processes carry on
_SYNCED: frozenset[str] = frozenset({"user", "assistant"})


def transcripts_in(store: Store, folder: str, *, suffix: str = ".jsonl") -> Logs:
    """The transcripts of a folder beneath a home. A pair is two of these: full logs end in `.log.jsonl`."""
    # An unfinished last line that can be read lacks a newline; another is torn.
    return store.logs(folder, suffix=suffix, mend=lambda end, _: None if isinstance(replay.parse(end), str) else b"\n")


def unchanged(text: str) -> tuple[str, tuple[()]]:
    """The `Redact` of a home that keeps everything as it was said."""
    return text, ()


def encode(record: Record) -> bytes:
    """The line of a record: the keys of the format in their order, what is not known left out, and a newline. Raises
    BadArguments for what cannot be written as JSON."""
    if type(record) not in _KEYS:
        raise BadArguments("a record of an unknown kind is not ours to write")
    kind, names = _KEYS[type(record)]
    line: dict[str, Any] = {"type": kind}
    for name in names:
        value = getattr(record, name)
        if name == "fields":
            line |= {key: own for key, own in value.items() if key not in line}
        elif value is not None and (value or name != "manifest"):
            line[name] = value
    line = {key: replay.clean(value) if isinstance(value, str) else value for key, value in line.items()}
    try:
        return _write(line).encode("utf-8") + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise BadArguments(f"a transcript cannot hold this: {error}") from None


_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode
_KEYS = {
    made: (kind, [f.name for f in fields(made) if f.name not in replay.UNWRITTEN])
    for kind, made in replay.KINDS.items()
}


class Transcript:
    """The record of one session that is open. Make one with `create` or `resume`. `context`, in a dialect that keeps
    one, is the second file of the pair: what the model still sees. It takes every entry too and is written anew at each
    boundary."""

    def __init__(
        self,
        folder: Logs,
        file: OpenLog,
        header: Header,
        *,
        clock: Clock,
        redact: replay.Redact,
        contexts: Logs | None,
        last: replay.Resumed | None = None,
    ) -> None:
        self.header, self.resumed = header, last
        self._folder, self._contexts = folder, contexts
        self._context = _opened(contexts, header.id, header) if contexts else None
        self._file, self._clock, self._redact = file, clock, redact
        self._count = last.count if last else START
        self._replaced = file.replaced
        self._known, self._own = self._count.entries, set[int]()  # entries that were seen, and ours among later ones
        self._passed: list[replay.Placed | replay.BadLine] = []  # what others put between our records, entries apart
        self._mutex, self._closed = threading.RLock(), False

    @classmethod
    def create(
        cls,
        folder: Logs,
        header: Header,
        *,
        clock: Clock,
        redact: replay.Redact = unchanged,
        context: Logs | None = None,
    ) -> Transcript:
        """A new transcript, its header on the disk. Raises BadArguments when there is one of that id."""
        file = folder.create(header.id)
        try:
            file.begin(encode(header))
            return cls(folder, file, header, clock=clock, redact=redact, contexts=context)
        except BaseException:
            file.close()
            raise

    @classmethod
    def resume(
        cls, folder: Logs, id: str, *, clock: Clock, redact: replay.Redact = unchanged, context: Logs | None = None
    ) -> Transcript:
        """A transcript that goes on; `resumed` says how it stood. Raises NoSuchSession, or Damaged when its header
        cannot be read: without it nobody knows who was listening."""
        file = folder.append_to(id)
        try:
            found = replay.resumed(file)
            if found is None and not file.size():
                raise NoSuchSession(f"{id}: there is no such session")
            if found is None:
                hint = "it can be read, but not resumed; begin a new session"
                raise Damaged(f"the transcript of session {id} has no readable first line", hint=hint)
            refuse_newer(f"the transcript of session {id}", found.header.version, replay.VERSION)
            return cls(folder, file, found.header, clock=clock, redact=redact, contexts=context, last=found)
        except BaseException:
            file.close()
            raise

    @property
    def id(self) -> str:
        return self._file.id

    @property
    def seen(self) -> Count:
        """How many bytes, lines and entries there are, as far as we have seen."""
        return self._count

    @property
    def rewritten(self) -> int:
        """How often another file took the place of this one's: something in it was forgotten."""
        return self._file.replaced

    def follow(self) -> None:
        """Reads the file that stands there now, should another have taken the place of the one we know."""
        with self._mutex, suppress(NoSuchSession):
            self._file.follow()
            if self._replaced != self._file.replaced:
                self._count, self._replaced = replay.count(self._file), self._file.replaced

    def flushed_through(self) -> int:
        """How many entries flushes have looked at, as the file says."""
        found = replay.resumed(self._file)
        return found.through if found else 0

    def since(self, entry: int) -> tuple[tuple[Turn, ...], int]:
        """The entries from one on, in their order, and how many there are in all."""
        with self._mutex:
            self.follow()
            page = replay.read(self._file, start=entry, limit=max(0, self._count.entries - entry) + _RACE, known=START)
        return page.entries, page.total

    def news(self) -> tuple[Turn, ...]:
        """The entries that others added since the last time, or since this was opened. Costs nothing while nobody did."""
        with self._mutex:
            if not self._own and self._file.size() == self._count.offset and self._known == self._count.entries:
                return ()
            found, total = self.since(self._known)
            theirs = tuple(turn for turn in found if turn.number not in self._own)
            self._known, self._own = total, set()
            return theirs

    def read_by_others(self) -> tuple[set[str], set[str]]:
        """What others who go on with this session say they have read, and which flow rules are awake, of all that they wrote
        since our last record; costs nothing while nobody did. What the owner cleared counts no more."""
        taint, flows = set[str](), set[str]()
        with self._mutex:
            passed, self._passed = self._passed, []
            is_same = self._replaced == self._file.replaced
            if not self._closed and not (is_same and self._file.size() == self._count.offset):
                passed += replay.scan(self._file, since=self._count if is_same else START, entries=False)
        for item in passed:
            match item if isinstance(item, replay.BadLine) else item.record:
                case TrustState(taint=(), flows=()):
                    taint, flows = set(), set()
                case TrustState() as state:
                    taint, flows = taint.union(state.taint), flows.union(state.flows)
                case replay.BadLine(torn=False) | replay.Other():
                    taint |= UNTRUSTED  # whatever it says
        return taint, flows

    def in_context(self) -> tuple[Boundary | None, tuple[Turn, ...]]:
        """The last boundary, and the entries that it left in the context, with those since."""
        found = replay.resumed(self._file)
        boundary = found.boundary if found else None
        return boundary, self.since(boundary.turn_index if boundary else 0)[0]

    def log(
        self,
        role: Role,
        content: str,
        *,
        message_id: str | None = None,
        sender_id: str | None = None,
        name: str | None = None,
    ) -> Turn:
        """Records what was said, and gives it back as it was recorded. What a user says comes from the session's channel."""
        if role not in ROLES:
            raise BadArguments(f"there is no role {role!r}; there are {', '.join(ROLES)}")
        if len(content) >= MAX_LINE:
            raise BadArguments(f"what was said has at most {MAX_LINE:,} bytes, and this {len(content):,} characters")
        (text, kinds), source = self._redacted(content), self.header.source_plugin if role == "user" else ""
        told: dict[str, Any] = {"timestamp": self._now(), "role": role, "content": text, "source_plugin": source}
        told |= {"sender_id": sender_id, "message_id": message_id, "name": name, "redacted": kinds}
        return self._added(Turn(**told))

    def call(
        self,
        name: str,
        arguments: object,
        answer: Mapping[str, Any],
        *,
        read: Iterable[str],
        id: str | None = None,
        denied: bool = False,
    ) -> Turn:
        """Records a call of a tool, secrets struck out and cut; one that was `denied` was never made."""
        turn = replay.call_kept(name, arguments, answer, read=read, redact=self._redacted)
        call = {**(turn.call or {}), "denied": True} if denied else turn.call
        return self._added(replace(turn, timestamp=self._now(), message_id=id, call=call))

    def _added(self, turn: Turn) -> Turn:
        with self._mutex:
            offset = self._add(turn, sync=turn.role in _SYNCED)
            if self._context is not None:
                self._beside(lambda file: file.append(encode(turn), sync=False))
            number = self._count.entries - 1
            if number == self._known:
                self._known += 1
            else:
                self._own.add(number)  # others put something between
            return replace(turn, number=number, offset=offset)

    def boundary(
        self, *, uuid: str, token_count: int, turn_index: int | None = None, summary: str | None = None
    ) -> Boundary:
        """Records that the context was compacted: entries before `turn_index` (or all) are out of it. In a pair, the
        context file then holds the header, this boundary and the entries from there on."""
        text = None if summary is None else self._redacted(summary)[0]
        with self._mutex:
            index = self._count.entries if turn_index is None else turn_index
            found = Boundary(uuid=uuid, timestamp=self._now(), token_count=token_count, turn_index=index, summary=text)
            self._add(found, sync=True)
            if self._context is not None:
                kept = max(0, self._count.entries - index)
                recent = replay.read(self._file, limit=kept, newest=True, known=self._count).entries if kept else ()
                seen: list[Record] = [self.header, found, *recent]
                self._beside(lambda file: file.rewrite(lambda: map(encode, seen)))
        return found

    def state(self, *, taint: Iterable[str], flows: Iterable[str]) -> None:
        """Records what a resume must know. Durable at once: a taint that a crash takes away is a hole."""
        self._add(TrustState(timestamp=self._now(), taint=tuple(sorted(taint)), flows=tuple(sorted(flows))), sync=True)

    def flush(self, **fields: Any) -> None:
        """Records a flush of memory; `fields` hold no text of the conversation."""
        self._add(replay.Flush(timestamp=self._now(), fields=fields), sync=True)

    def close(self, reason: str = "") -> None:
        """Records the end and lets the files go. Closing twice does no harm."""
        with self._mutex:
            if self._closed:
                return
            try:
                self._add(replay.Close(timestamp=self._now(), reason=self._redacted(reason)[0]), sync=True)
            finally:
                self.abandon()

    def abandon(self) -> None:
        """Lets the files go without a word, as a crash would; for a session that somebody else carries on."""
        with self._mutex:
            self._closed = True
            self._file.close()
            if self._context is not None:
                self._context.close()

    def _now(self) -> str:
        return replay.stamp(self._clock())

    def _redacted(self, text: str) -> tuple[str, tuple[str, ...]]:
        shown, findings = self._redact(replay.clean(text))
        return shown, tuple(dict.fromkeys(finding.kind for finding in findings))

    def _add(self, record: Record, *, sync: bool) -> int:
        line = encode(record)
        with self._mutex:
            if self._closed:
                raise BadArguments(f"session {self.id} is closed")
            try:
                offset = self._file.append(line, sync=sync)
            except NoSuchSession:  # somebody removed it; what is said from here on still wants a place
                self._file.close()
                self._file, self._count, self._replaced = _opened(self._folder, self.id, self.header), START, 0
                offset = self._file.append(line, sync=sync)
            if self._replaced != self._file.replaced or offset < self._count.offset:
                self._count, self._replaced = START, self._file.replaced
            before = self._count  # what another process put before our record is counted, too
            if offset != before.offset:
                self._passed += replay.scan(self._file, since=before, end=offset, entries=False)
                before = replay.count(self._file, since=before, end=offset)
            self._count = Count(offset + len(line), before.lines + 1, before.entries + isinstance(record, Turn))
            return offset

    def _beside(self, work: Callable[[OpenLog], object]) -> None:
        """Does something to the context file; one that was removed is begun again."""
        assert self._contexts is not None and self._context is not None
        try:
            work(self._context)
        except NoSuchSession:
            self._context.close()
            self._context = _opened(self._contexts, self.header.id, self.header)
            work(self._context)


def _opened(folder: Logs, id: str, header: Header) -> OpenLog:
    """A file to write to, begun where there is nothing in it."""
    file = folder.create(id)
    if not file.size():
        file.begin(encode(header))
    return file


Touches = Callable[[str], bool]
Picks = Callable[[Turn], bool]


def touched(folder: Logs, id: str, touches: Touches, picks: Picks | None = None) -> int:
    """How many lines `forget` would take out or change."""
    with folder.open(id) as file:
        found = sum(_weigh(raw, touches, picks) != raw for raw in _lines(file))
    return found + sum(touches(loose(aside)) for aside in folder.torn(id).values())


def forget(folder: Logs, id: str, touches: Touches, picks: Picks | None = None, *, clock: Clock) -> int:
    """Takes every entry that `touches` or `picks` speaks for out of a transcript, and out of what was put aside of it;
    gives how many lines that cost. A tombstone stands where they stood; a damaged line that may hold the text goes with
    them. What later records say of the number of entries before them is set right."""
    gone: list[int] = []
    with folder.append_to(id) as file:
        if any(_weigh(raw, touches, picks) != raw for raw in _lines(file)):
            file.rewrite(lambda: kept(_lines(file), touches, picks, now=replay.stamp(clock()), gone=gone))
    for name, aside in folder.torn(id).items():
        if touches(loose(aside)):
            folder.drop_torn(name)
            gone.append(len(aside))
    return len(gone)


def _lines(file: Readable) -> Iterator[bytes]:
    return (raw + b"\n" * ended for _, raw, ended in replay.lines(file))


def _weigh(raw: bytes, touches: Touches, picks: Picks | None) -> bytes | None:
    """What is left of a line: itself, a part of it, or None. What a session was and what it had read always stays."""
    record = replay.parse(raw)
    match record:
        case Header() | TrustState() | replay.Flush() | replay.Tombstone():
            return raw
        case Turn():
            return None if (picks and picks(record)) or touches(record.text) else raw
        case Boundary():
            return encode(replace(record, summary=None)) if touches(record.summary or "") else raw
        case replay.Close():
            return encode(replace(record, reason="")) if touches(record.reason) else raw
    return None if touches(loose(raw)) else raw


def kept(
    lines: Iterable[bytes], holds: Touches, picks: Picks | None = None, *, now: str, gone: list[int]
) -> Iterator[bytes]:
    """The lines that stay, with a tombstone for each run that does not; the sizes of the others go into `gone`."""
    run = lost = 0
    for raw in lines:
        left = _weigh(raw, holds, picks)
        if left != raw:
            gone.append(len(raw))
        if left is None:
            run, lost = run + 1, lost + raw.startswith(replay.ENTRY_MARK)
            continue
        if run:
            yield encode(replay.Tombstone(timestamp=now, entries=run))
        run = 0
        yield _renumbered(left, lost) if lost else left
    if run:
        yield encode(replay.Tombstone(timestamp=now, entries=run))


def without(data: bytes, touches: Touches) -> bytes | None:
    """A whole transcript without what `touches` speaks for; None where the bytes are no transcript."""
    lines = re.findall(rb"[^\n]*\n|[^\n]+\Z", data)
    header = replay.parse(lines[0].rstrip(b"\n")) if lines else ""
    return b"".join(kept(lines, touches, now=header.timestamp, gone=[])) if isinstance(header, Header) else None


def _renumbered(raw: bytes, lost: int) -> bytes:
    """A record that counts the entries before it, when so many of them are gone."""
    record = replay.parse(raw)
    if isinstance(record, replay.Flush) and isinstance(through := record.fields.get("through"), int):
        return encode(replace(record, fields={**record.fields, "through": max(0, through - lost)}))
    return encode(replace(record, turn_index=max(0, record.turn_index - lost))) if isinstance(record, Boundary) else raw
