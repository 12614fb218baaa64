"""Reading a transcript: pages of it, all of it as a stream, and what is damaged.

Promise: no bytes make a reader raise; one flipped byte costs the record it is in and no other, and a torn last line is
passed over and said. No file is loaded whole: entries are counted and sought by blocks of bytes, and only those asked
for are parsed. Reads go over anything with `size` and `read`. Nothing here changes a file.
Not here: which of them somebody may read (the caller, by header and list).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from anima.sessions.lines import ENTRY_MARK, MARK, Boundary, Close, Flush, Header, Parsed, Record, State, Turn, parse
from anima.sessions.lines import mended as mend
from anima.store.logs import Readable, block_before, blocks, line_at

_LINE_MARK = b"\n" + MARK
_BLANKS = b" \t\r"
_BEFORE = 64


class Count(NamedTuple):
    """A place between two lines: its byte, and how many lines and entries stand before it."""

    offset: int = 0
    lines: int = 0
    entries: int = 0


START = Count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """A record that cannot be read, in line `line` (from 1) at byte `offset`, and why."""

    line: int
    offset: int
    why: str
    entry: int  # the number of the entry it is, or follows
    torn: bool = False  # the file ends in the middle of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A record and where it stands; a reader may go on at `after`."""

    record: Record
    line: int
    offset: int
    after: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some entries in their order, of `total` (damaged ones count), and what is damaged among them or torn at the end."""

    header: Header | None
    entries: tuple[Turn, ...]
    total: int
    damaged: tuple[Damage, ...]

    @property
    def truncated(self) -> bool:
        return len(self.entries) + sum(not each.torn for each in self.damaged) < self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """What a session that goes on must know of its transcript. `flushes` are those since the last boundary."""

    header: Header
    state: State | None
    boundary: Boundary | None
    flushes: tuple[Flush, ...]
    through: int  # entries that flushes have looked at, in any cycle
    cycle_start: int  # the byte at which the last boundary stands; 0 before the first
    closed: bool
    count: Count
    damaged: tuple[Damage, ...]  # of records that are no entries; a taint may have been among them


# -- pages ----------------------------------------------------------------------------------------------------------------


def read(file: Readable, *, start: int = 0, limit: int = 50, newest: bool = False, known: Count = START) -> Page:
    """A page: `limit` entries from entry `start` on, or, with `newest`, before the `start` newest ones.

    `known` is a count of this file from earlier, such as the session list's; it spares counting again.
    """
    end = count(file, since=known)
    tail = tuple(scan(file, since=end))  # at most one line that has no end
    total = end.entries + sum(isinstance(item, Placed) and isinstance(item.record, Turn) for item in tail)
    start, limit = max(0, start), max(0, limit)
    first = max(0, total - start - limit) if newest else start
    last = max(0, total - start) if newest else start + limit
    near = _back(file, end, first) if newest else _seek(file, first, known)
    entries, damaged = _between(file, near, first, last)
    torn = (item for item in tail if isinstance(item, Damage))
    return Page(header=header_of(file), entries=entries, total=total, damaged=(*damaged, *torn))


def header_of(file: Readable) -> Header | None:
    """The header, or None when the first line is none."""
    raw = line_at(file, 0)
    ended = raw.endswith(b"\n") or mend(raw, b"") is not None
    found = parse(raw.removesuffix(b"\n")) if ended else ""
    return found.record if isinstance(found, Parsed) and isinstance(found.record, Header) else None


def entry_at(file: Readable, offset: int) -> Turn | None:
    """The entry that begins at a byte, or None when none does. Its number is not known."""
    found = parse(line_at(file, offset).removesuffix(b"\n"), offset=offset)
    return found.record if isinstance(found, Parsed) and isinstance(found.record, Turn) else None


def check(file: Readable) -> tuple[Damage, ...]:
    """Everything that is damaged in a file, by reading all of it."""
    return tuple(item for item in scan(file) if isinstance(item, Damage))


def resumed(file: Readable) -> Resumed | None:
    """What the records between the entries say, without parsing the entries; None when the header cannot be read."""
    header = header_of(file)
    if header is None:
        return None
    found = list(scan(file, entries=False))
    records = [item.record for item in found if isinstance(item, Placed)]
    cuts = [(n, record) for n, record in enumerate(records) if isinstance(record, Boundary)]
    states = [record for record in records if isinstance(record, State)]
    end = count(file)
    return Resumed(
        header=header,
        state=states[-1] if states else None,
        boundary=cuts[-1][1] if cuts else None,
        flushes=tuple(record for record in records[cuts[-1][0] if cuts else 0 :] if isinstance(record, Flush)),
        cycle_start=max(
            (i.offset for i in found if isinstance(i, Placed) and isinstance(i.record, Boundary)), default=0
        ),
        through=max((_through(record) for record in records if isinstance(record, Flush)), default=0),
        closed=isinstance(last_record(file, end), Close),
        count=end,
        damaged=tuple(item for item in found if isinstance(item, Damage)),
    )


def _through(flush: Flush) -> int:
    found = flush.fields.get("through")
    return found if isinstance(found, int) else 0


def last_record(file: Readable, end: Count) -> Record | None:
    """The last record before a place, or None when it is damaged or there is none."""
    raw = block_before(file, end.offset)[1].rstrip(b"\n")
    found = parse(raw[raw.rfind(b"\n") + 1 :])
    return found.record if isinstance(found, Parsed) else None


def _between(file: Readable, near: Count, first: int, last: int) -> tuple[tuple[Turn, ...], list[Damage]]:
    """The entries numbered first..last-1 and the damage among them, from a place at or before the first."""
    entries: list[Turn] = []
    damaged: list[Damage] = []
    for item in scan(file, since=near):
        if isinstance(item, Damage):
            if first <= item.entry < last and not item.torn:
                damaged.append(item)
        elif isinstance(item.record, Turn):
            if item.record.number >= last:
                break
            if item.record.number >= first:
                entries.append(item.record)
    return tuple(entries), damaged


# -- counting and seeking -------------------------------------------------------------------------------------------------


def count(file: Readable, *, since: Count = START) -> Count:
    """The count at the end of the last line that has an end, by looking at the bytes after `since` only."""
    at = since if _is_place(file, since) else START
    for offset, block in blocks(file, at.offset):
        if block.endswith(b"\n"):
            lines, entries = _counted(block)
            at = Count(offset + len(block), at.lines + lines, at.entries + entries)
    return at


def _is_place(file: Readable, at: Count) -> bool:
    return at.offset == 0 or file.read(at.offset - 1, at.offset) == b"\n"


def _seek(file: Readable, wanted: int, known: Count) -> Count:
    """A place at or shortly before an entry, sought from the start or from a count that lies before it."""
    at = known if known.entries <= wanted and _is_place(file, known) else START
    for offset, block in blocks(file, at.offset):
        lines, entries = _counted(block)
        if at.entries + entries > wanted or not block.endswith(b"\n"):
            break
        at = Count(offset + len(block), at.lines + lines, at.entries + entries)
    return at


def _back(file: Readable, end: Count, wanted: int) -> Count:
    """A place at or before an entry, sought from the end."""
    at = end
    while at.offset > 0 and at.entries > wanted:
        offset, block = block_before(file, at.offset)
        lines, entries = _counted(block)
        at = Count(offset, at.lines - lines, at.entries - entries)
    return at


def _counted(block: bytes) -> tuple[int, int]:
    """Lines and entries of a run of lines. A look at each line is needed only where one does not begin as ours do."""
    lines = block.count(b"\n")
    if block.count(_LINE_MARK) + block.startswith(MARK) == lines:
        return lines, block.count(ENTRY_MARK)
    return lines, sum(_entries_in(raw) for raw in block.split(b"\n"))


def _entries_in(raw: bytes) -> int:
    if raw.startswith(MARK) or b'"entry"' not in raw:
        return raw.count(ENTRY_MARK)
    found = parse(raw)
    return int(isinstance(found.record, Turn)) if isinstance(found, Parsed) else raw.count(ENTRY_MARK)


# -- every record, in order -------------------------------------------------------------------------------------------------


class _Piece(NamedTuple):
    """A line, or the part of one that two records were glued into."""

    line: int
    offset: int
    raw: bytes
    ended: bool


def scan(file: Readable, *, since: Count = START, entries: bool = True) -> Iterator[Placed | Damage]:
    """Every record from a place on, and in its place every damaged one. Without `entries`, those are passed over."""
    last: Placed | Damage | None = None
    open_seal = False  # the last record has no seal; if blanks follow alone, they were part of it
    at = since
    for piece in _pieces(file, since, entries):
        if not piece.raw.strip(_BLANKS):
            if piece.raw.strip(b"\r") and open_seal and isinstance(last, Placed):
                last = _damage(last.line, last.offset, "it is not what was written: its seal is cut off", last.after)
            continue
        item, at, sealed = _judged(file, piece, at)
        if isinstance(item, Damage) and isinstance(last, Damage) and not piece.raw.startswith(MARK):
            continue  # the rest of the same record, in which a byte became a newline
        if last is not None:
            yield last
        last, open_seal = item, not sealed
    if last is not None:
        yield last


def _pieces(file: Readable, since: Count, entries: bool) -> Iterator[_Piece]:
    line = since.lines
    for offset, block in blocks(file, since.offset):
        *whole, rest = block.split(b"\n")
        for raw in whole:
            line += 1
            if entries or not raw.startswith(ENTRY_MARK) or raw.find(MARK, 1) > 0:
                yield from _parted(_Piece(line, offset, raw, True))
            offset += len(raw) + 1
        if rest:
            yield from _parted(_Piece(line + 1, offset, rest, False))


def _parted(piece: _Piece) -> Iterator[_Piece]:
    """A line as it is, or, when it cannot be read and holds the beginnings of several records, each of them."""
    line, offset, raw, ended = piece
    if raw.find(MARK, 1) < 0 or isinstance(parse(raw), Parsed):
        yield piece
        return
    starts = [0]
    while (found := raw.find(MARK, starts[-1] + 1)) > 0:
        starts.append(found)
    for start, end in zip(starts, [*starts[1:], len(raw)], strict=True):
        yield _Piece(line, offset + start, raw[start:end], ended and end == len(raw))


def _judged(file: Readable, piece: _Piece, at: Count) -> tuple[Placed | Damage, Count, bool]:
    """A piece as a record or as damage, the count after it, and whether it was sealed."""
    line, offset, raw, ended = piece
    end = offset + len(raw)
    is_last = not ended and end >= file.size()
    if is_last and mend(raw, file.read(max(0, offset - _BEFORE), offset)) is None:
        return _damage(line, offset, "the file ends in the middle of it", at, torn=True), at, True
    found = parse(raw, number=at.entries, offset=offset)
    is_entry = isinstance(found.record, Turn) if isinstance(found, Parsed) else raw.startswith(ENTRY_MARK)
    after = Count(end + ended, line if ended else at.lines, at.entries + is_entry)
    if isinstance(found, str):
        return _damage(line, offset, found, after), after, True
    return Placed(record=found.record, line=line, offset=offset, after=after), after, found.sealed


def _damage(line: int, offset: int, why: str, after: Count, *, torn: bool = False) -> Damage:
    return Damage(line=line, offset=offset, why=why, entry=max(0, after.entries - 1), torn=torn)
