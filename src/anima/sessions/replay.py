"""The lines of a transcript, and how a transcript is read back: in pages, as a stream, with what is damaged in it.

Promise: one line is one record; no bytes make a reader raise, and a line that cannot be read costs that line alone. No
file is loaded whole: entries are counted and sought by blocks of bytes, and only those asked for are parsed. Reads go
over anything with `size` and `read`, and change nothing. Transcripts of other programs are read too. Not here: writing
(record), who may read (transcripts).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from anima.ledger import Readable, block_before, blocks, line_at
from anima.model import Finding

VERSION = 1
T = TypeVar("T")
Redact = Callable[[str], tuple[str, tuple[Finding, ...]]]

# No string can hold these bytes, because its quotes are escaped: where they stand, a record begins.
MARK = b'{"type":"'
ENTRY_MARK = b'{"type":"entry"'
_SURROGATE = re.compile("[\ud800-\udfff]")


# -- records ------------------------------------------------------------------------------------------------------------
# Fields are the keys of a line, in the order of the format; one without a default must be there.


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The first line: whose session it is, who listens, and what the prompt showed. Times are text, as written."""

    version: int = VERSION
    id: str
    timestamp: str
    agent_id: str
    source_plugin: str = ""
    scope: str | None = None
    sender_id: str | None = None
    layer: str | None = None
    persona: str | None = None
    manifest: tuple[Mapping[str, Any], ...] = ()
    parent: str | None = None  # the session of which this is a sub-session
    guest: str | None = None  # the mark of the credential with which an agent elsewhere held it
    access: str | None = None  # the most that whoever takes it up may do


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Whose transcripts may be seen: one agent's (or any, None), of these layers and scopes, or of any (None)."""

    agent: str | None
    layers: frozenset[str] | None = frozenset({""})
    scopes: frozenset[str] | None = None

    def sees(self, header: Header | None) -> bool:
        if header is None or self.agent not in (None, header.agent_id):
            return False
        in_layer = self.layers is None or (header.layer or "") in self.layers
        return in_layer and (self.scopes is None or (header.scope or "") in self.scopes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One entry. `number` counts entries from 0 and `offset` is its byte in the file; both -1 before it is written.
    `redacted` names the kinds of secrets that were taken out; only the writer knows them."""

    timestamp: str
    role: str
    content: str
    message_id: str | None = None
    source_plugin: str = ""
    sender_id: str | None = None
    name: str | None = None  # of the tool that says it
    call: Mapping[str, Any] | None = None  # of a tool of our own: its arguments, receipt, and what was read by then
    number: int = -1
    offset: int = -1
    redacted: tuple[str, ...] = ()

    @property
    def time(self) -> datetime | None:
        return time_of(self.timestamp)

    @property
    def receipt(self) -> Mapping[str, Any]:
        """What became of a write that this call asked for: status, path, revision, proposal, rule."""
        found = self.call.get("receipt") if self.call else None
        return found if isinstance(found, dict) else {}

    @property
    def asked(self) -> str:
        """The arguments of a call, as lines."""
        return told(self.call.get("arguments")) if self.call else ""

    @property
    def words(self) -> str:
        """What search knows it by: what was said, and of a call what it wanted written. A question that was asked of memory
        is no answer to the same question."""
        return self.content if self.call is None else self.asked if self.receipt else ""

    @property
    def text(self) -> str:
        """All that the entry holds."""
        return self.content if self.call is None else "\n".join(filter(None, (self.name, self.asked, self.content)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """The context was compacted here: everything before `turn_index` is now only in the log, or in the summary."""

    uuid: str
    timestamp: str
    token_count: int
    turn_index: int
    summary: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustState:
    """What must outlive the process: untrusted origins that were read, and the flow rules that are awake."""

    timestamp: str
    taint: tuple[str, ...]
    flows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Flush:
    """Memory was flushed here. `fields` is the flusher's own, without text; it is not redacted."""

    timestamp: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """Here stood entries that the owner had forgotten."""

    timestamp: str
    entries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    timestamp: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A record of a kind we do not know: passed over when read, kept on disk."""

    kind: str


Record = Header | Turn | Boundary | TrustState | Flush | Tombstone | Close | Other
KINDS: dict[str, type[Record]] = {
    "session": Header,
    "entry": Turn,
    "compact_boundary": Boundary,
    "state": TrustState,
    "flush": Flush,
    "forgotten": Tombstone,
    "close": Close,
}
UNWRITTEN = frozenset({"number", "offset", "redacted"})  # fields that are in no line


def parse(raw: bytes, *, number: int = -1, offset: int = -1) -> Record | str:
    """The record of a line (without its newline), or why there is none. `number` and `offset` are an entry's place."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return "it is not JSON"
    if not isinstance(found, dict):
        return "it is not a record"
    kind = found.get("type")
    made = KINDS.get(kind) if isinstance(kind, str) else None
    if "type" not in found and "role" in found and "content" in found:  # AgentScope's entries have no type
        made = Turn
    if made is None:
        return Other(kind=clean(kind) if isinstance(kind, str) else "")
    try:
        found = _without_half_characters(found) if b"\\u" in raw else found
        given: dict[str, Any] = {name: check(found[name]) for name, check in _KEYS[made] if found.get(name) is not None}
        if made is Turn:
            given |= {"number": number, "offset": offset}
        elif made is Flush:
            given["fields"] = {key: value for key, value in found.items() if key not in ("type", "timestamp")}
        return made(**given)
    except (TypeError, ValueError, RecursionError):
        return "it lacks what a record of its kind has"


def _a(kind: type[T]) -> Callable[[Any], T]:
    def checked(value: Any) -> T:
        if not isinstance(value, kind):
            raise TypeError
        return value

    return checked


_CHECKS: dict[str, Callable[[Any], object]] = {
    "str": _a(str),
    "str | None": _a(str),
    "int": _a(int),
    "tuple[str, ...]": lambda value: tuple(map(str, _a(list)(value))),
    "Mapping[str, Any] | None": _a(dict),
    "tuple[Mapping[str, Any], ...]": lambda value: tuple(row for row in _a(list)(value) if isinstance(row, dict)),
}
_KEYS = {  # of each kind; what a flush holds beside its time is its own
    made: [(key.name, _CHECKS[str(key.type)]) for key in fields(made) if key.name not in UNWRITTEN | {"fields"}]
    for made in KINDS.values()
}


def time_of(text: str) -> datetime | None:
    """A written time as a moment, or None. One without a zone is taken as UTC."""
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def stamp(moment: datetime) -> str:
    """A time as it is written: UTC, milliseconds, always 24 characters."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def clean(text: str) -> str:
    """The text with half characters (lone surrogates) replaced, which no file can hold; pairs become what they mean."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _without_half_characters(value: Any) -> Any:
    """A value of JSON, which can spell half characters as escapes; nothing we hand out may hold one."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_without_half_characters(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): _without_half_characters(item) for key, item in value.items()}
    return value


class Count(NamedTuple):
    """A place between two lines: its byte, and how many lines and entries stand before it."""

    offset: int = 0
    lines: int = 0
    entries: int = 0


START = Count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A record and where it stands; a reader may go on at `after`."""

    record: Record
    line: int
    offset: int
    after: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class BadLine:
    """A line that cannot be read, `line` (from 1) at byte `offset`, and why."""

    line: int
    offset: int
    why: str
    entry: int  # the number of the entry it is, or follows
    torn: bool = False  # the file ends in the middle of it


def scan(
    file: Readable, *, since: Count = START, end: int | None = None, entries: bool = True
) -> Iterator[Placed | BadLine]:
    """Every record from a place on, up to the byte `end`, and in its place every line that cannot be read. Without
    `entries`, those are passed over."""
    at = since
    for offset, raw, ended in lines(file, since.offset, end):
        after = offset + len(raw) + ended
        if not raw.strip():
            at = Count(after, at.lines + ended, at.entries)
            continue
        if ended and not entries and raw.startswith(ENTRY_MARK) and raw.find(MARK, 1) < 0:
            at = Count(after, at.lines + 1, at.entries + 1)
            continue
        record, line = parse(raw, number=at.entries, offset=offset), at.lines + 1
        if isinstance(record, str) and not ended and after >= file.size():
            why = "the file ends in the middle of it"
            yield BadLine(line=line, offset=offset, why=why, entry=max(0, at.entries - 1), torn=True)
            continue
        is_entry = raw.startswith(ENTRY_MARK) if isinstance(record, str) else isinstance(record, Turn)
        at = Count(after, at.lines + ended, at.entries + is_entry)
        if isinstance(record, str):
            yield BadLine(line=line, offset=offset, why=record, entry=max(0, at.entries - 1))
        else:
            yield Placed(record=record, line=line, offset=offset, after=at)


def lines(file: Readable, start: int = 0, end: int | None = None) -> Iterator[tuple[int, bytes, bool]]:
    """(offset, bytes, whether it has an end) of each line from a line's start on, without its newline."""
    for offset, block in blocks(file, start, end):
        *whole, rest = block.split(b"\n")
        for raw in whole:
            yield offset, raw, True
            offset += len(raw) + 1
        if rest:
            yield offset, rest, False


def header_of(file: Readable, agent: str = "") -> Header | None:
    """The header, or None when the first line is none. A log of AgentScope's begins with an entry; where the folder says
    whose it is (`agent`), it is that agent's. One of ours that lost its header stays nobody's."""
    raw = line_at(file, 0)
    found = parse(raw)
    if agent and isinstance(found, Turn) and b'"type"' not in raw:
        return Header(id="", timestamp=found.timestamp, agent_id=agent)
    return found if isinstance(found, Header) else None


def agent_of(folder: str) -> str:
    """Whose folder of transcripts this is, where each agent has one; else ""."""
    named = re.match(r"agents/([^/]+)/sessions/", folder)
    return named[1] if named else ""


@dataclass(slots=True, kw_only=True)
class Resumed:
    """What a session that goes on must know of its transcript. `flushes` are those since the last boundary."""

    header: Header
    count: Count
    state: TrustState | None = None
    boundary: Boundary | None = None
    flushes: list[Flush] = field(default_factory=list)
    through: int = 0  # entries that flushes have looked at, in any cycle
    cycle_start: int = 0  # the byte at which the last boundary stands; 0 before the first
    damaged: list[BadLine] = field(default_factory=list)  # no entries, and not understood: one may have held a taint


def resumed(file: Readable) -> Resumed | None:
    """What the records between the entries say, without parsing the entries; None when the header cannot be read."""
    header, end = header_of(file), count(file)
    if header is None:
        return None
    found = Resumed(header=header, count=end)
    for item in scan(file, entries=False):
        if isinstance(item, BadLine):
            found.damaged.append(item)
            continue
        match item.record:
            case Other():
                why = "it is of a kind nobody knows"
                found.damaged.append(BadLine(line=item.line, offset=item.offset, why=why, entry=item.after.entries))
            case TrustState() as state:
                found.state = state
            case Boundary() as boundary:
                found.boundary, found.cycle_start, found.flushes = boundary, item.offset, []
            case Flush() as flush:
                found.flushes.append(flush)
                through = flush.fields.get("through")
                found.through = max(found.through, through if isinstance(through, int) else 0)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnPage:
    """Some entries in their order, of `total` (damaged ones count), and what is damaged among them or torn at the end."""

    header: Header | None
    entries: tuple[Turn, ...]
    total: int
    damaged: tuple[BadLine, ...]

    @property
    def truncated(self) -> bool:
        return len(self.entries) + sum(not each.torn for each in self.damaged) < self.total


def read(file: Readable, *, start: int = 0, limit: int = 50, newest: bool = False, known: Count = START) -> TurnPage:
    """A page: `limit` entries from entry `start` on, or, with `newest`, before the `start` newest ones. `known` is a
    count of this file from earlier, such as the session list's; it spares counting again."""
    end = count(file, since=known)
    tail = tuple(scan(file, since=end))  # at most one line that has no end
    total = end.entries + sum(isinstance(item, Placed) and isinstance(item.record, Turn) for item in tail)
    start, limit = max(0, start), max(0, limit)
    first = max(0, total - start - limit) if newest else start
    last = max(0, total - start) if newest else start + limit
    before = known if known.entries <= first else START
    near = _back(file, end, first) if newest else count(file, since=before, entry=first)
    entries, damaged = list[Turn](), list[BadLine]()
    for item in scan(file, since=near):
        if isinstance(item, BadLine):
            if first <= item.entry < last and not item.torn:
                damaged.append(item)
        elif isinstance(item.record, Turn):
            if item.record.number >= last:
                break
            if item.record.number >= first:
                entries.append(item.record)
    torn = (item for item in tail if isinstance(item, BadLine))
    return TurnPage(header=header_of(file), entries=tuple(entries), total=total, damaged=(*damaged, *torn))


def count(file: Readable, *, since: Count = START, end: int | None = None, entry: int | None = None) -> Count:
    """The count at the end of the last line that has an end, or at or shortly before an `entry`, by looking at the bytes
    after `since` only, if that is a place."""
    at = since if since.offset == 0 or file.read(since.offset - 1, since.offset) == b"\n" else START
    for offset, block in blocks(file, at.offset, end):
        lines, entries = _counted(block)
        if entry is not None and (at.entries + entries > entry or not block.endswith(b"\n")):
            break
        if block.endswith(b"\n"):
            at = Count(offset + len(block), at.lines + lines, at.entries + entries)
    return at


def _back(file: Readable, end: Count, wanted: int) -> Count:
    at = end
    while at.offset > 0 and at.entries > wanted:
        offset, block = block_before(file, at.offset)
        lines, entries = _counted(block)
        at = Count(offset, at.lines - lines, at.entries - entries)
    return at


def _counted(block: bytes) -> tuple[int, int]:
    """Lines and entries of a run of lines. A look at each line is needed only where one does not begin as ours do."""
    lines = block.count(b"\n")
    if block.count(b"\n" + MARK) + block.startswith(MARK) == lines:
        return lines, block.count(b"\n" + ENTRY_MARK) + block.startswith(ENTRY_MARK)
    return lines, sum(_is_entry(raw) for raw in block.split(b"\n"))


def _is_entry(raw: bytes) -> bool:
    if raw.startswith(MARK) or (b'"entry"' not in raw and b'"role"' not in raw):
        return raw.startswith(ENTRY_MARK)
    return isinstance(parse(raw), Turn)


# -- calls of the home's own tools ----------------------------------------------------------------------------------------
# Secrets are struck out before anything is cut, so that no half of one stays; what is too long is cut between two lines
# where there are any, and says so. What the session had read by then stands in the record, so that a call's answer is
# never trusted further than the session that asked for it.

MOST = 2_000  # characters of the arguments, and of the answer
_NAME = 60
_LOOKED_AT = (4_000, 40)  # characters of a text and items of a list that are looked at
_ROOM = ((2_000, 40), (600, 20), (200, 10), (80, 5), (30, 3))  # the same, until all of it fits
_DEEP = 8
_RECEIPT = ("status", "path", "revision", "proposal", "rule")


def call_kept(
    name: str,
    arguments: object,
    answer: Mapping[str, Any],
    *,
    read: Iterable[str],
    redact: Callable[[str], tuple[str, tuple[str, ...]]],
) -> Turn:
    """A call as it is recorded, but for its time; `redact` says which kinds of secrets it took out."""
    whole = _small({"arguments": arguments, "answer": answer}, *_LOOKED_AT)
    text, kinds = redact(json.dumps(whole, ensure_ascii=False))
    try:
        whole = json.loads(text)
    except ValueError:  # a pattern of the owner's took a part of the frame with it
        whole = {"arguments": {}, "answer": text}
    call: dict[str, Any] = {"arguments": _fitted(whole["arguments"])[0]}
    if read := sorted(read):
        call["read"] = read
    shown, text = whole["answer"], _fitted(whole["answer"])[1]
    if isinstance(shown, dict) and "status" in shown and "path" in shown:
        call["receipt"] = {key: shown[key] for key in _RECEIPT if shown.get(key) is not None}
    return Turn(timestamp="", role="tool", content=text, name=redact(str(name))[0][:_NAME], call=call, redacted=kinds)


def told(value: object) -> str:
    """A value of JSON as lines that a person, a model and a search can read; what says nothing is left out."""
    return "\n".join(_told_lines(value, ""))


def _told_lines(value: object, name: str) -> Iterator[str]:  # one frame a level: what could be parsed can be told
    if isinstance(value, Mapping | list):
        for key, each in value.items() if isinstance(value, Mapping) else ((name, one) for one in value):
            yield from _told_lines(each, key)
    elif value is not None and value != "":
        said = str(value).lower() if isinstance(value, bool) else str(value)
        yield f"{name}: {said}" if name else said


def _fitted(value: Any) -> tuple[Any, str]:
    """A value of which not too much is left, and its lines."""
    small, text = value, told(value)
    for room in _ROOM:
        if len(text) <= MOST:
            break
        small = _small(value, *room)
        text = told(small)
    return small, _cut(text, MOST)


def _small(value: object, chars: int, items: int, deep: int = _DEEP) -> Any:
    """A value as JSON, whatever it was, with long texts and lists cut."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, Mapping) and deep:
        return {str(key)[:_NAME]: _small(each, chars, items, deep - 1) for key, each in list(value.items())[:40]}
    if isinstance(value, (list, tuple)) and deep:
        left = [f"… and {len(value) - items:,} more"] if len(value) > items else []
        return [*(_small(each, chars, items, deep - 1) for each in value[:items]), *left]
    return _cut(str(value) if isinstance(value, (str, float)) else f"({type(value).__name__})", chars)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = text[:most]
    return f"{head.rpartition(chr(10))[0] or head.rpartition(' ')[0] or head} … ({len(text):,} characters)"
