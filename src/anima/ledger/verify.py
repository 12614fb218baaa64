"""Whether a ledger is whole, and the new chain that is put in the place of one that is not. Pure: bytes in, bytes out.

Promise: `verify` names the first record that was flipped, dropped, swapped, put in or cut off. In a new chain every
record keeps its number, so that ids, history and proposals still mean the same; what was lost is a gap, and the last
record of the copy says when and why. No batch is carried out again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from anima.ledger import FORMAT, ORIGINAL, Key, Log, Record, blocks, first_of, sealed, sound

MOST_PADDED = 1_000_000  # an anchor is only a line in a commit; nobody shall make us write a ledger without end
_Body = tuple[str, str, Mapping[str, Any]]  # t, kind, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Where the ledger is not what it was. `line` counts from 1 and is also the record's number."""

    line: int
    offset: int
    kind: str  # altered, missing, order, repeated, unlinked, truncated, rewritten, key
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What `verify` found. `torn` counts the bytes of an unterminated last line, which is a crash, not tampering.

    `renewed` is the record that says that a repair put this chain in the place of a damaged one: what stands before it
    was carried over, and is proven no longer.
    """

    records: int
    fault: Fault | None = None
    torn: int = 0
    renewed: Record | None = None

    @property
    def ok(self) -> bool:
        return self.fault is None


def verify(log: Log, *, key: Key | None = None, anchors: Iterable[tuple[int, str]] = ()) -> Verification:
    """Hash the whole chain and name the first thing that is wrong.

    `anchors` are `(n, hash)` pairs kept elsewhere (history, the user's configuration): without them a chain that was
    cut at a record's end still hangs together. Without `key` it is only told whether it hangs together.
    """
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
    return None


# -- a new chain ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """The new ledger, and what it cost."""

    data: bytes
    carried: int
    lost: int


def renew(
    old: bytes,
    fault: Fault | None,
    *,
    old_key: Key | None,
    key: Key,
    anchors: Iterable[tuple[int, str]],
    now: datetime,
    why: str,
) -> Renewed:
    """A whole ledger in the place of a damaged one.

    `old_key` says which of its records are what was written, `key` seals the new one.
    """
    lines = old[: old.rfind(b"\n") + 1].split(b"\n")[:-1]
    most = len(lines) + MOST_PADDED
    found: dict[int, Record] = {}
    for record in (record for line in lines if (record := sound(line, old_key)) and 0 < record.n <= most):
        found.setdefault(record.n, record)
    noted = [n for n, _ in anchors if n <= most]
    last = max([len(lines), *found, *noted], default=0)
    first = found.get(1)
    bodies = [_beginning(first, key, now)]
    for n in range(2, last + 1):
        bodies.append((_body(found[n]) if n in found else None) or (bodies[-1][0], "gap", {}))
    lost = last - len({*found, 1}) if last else 0
    was, start = hashlib.sha256(old).hexdigest(), fault.line if fault else 1
    told = {"was": was, "from": start, "why": why, "carried": len(found), "lost": lost}
    bodies.append((_stamp(now), "renewed", told))
    if lost or max(noted, default=0) > len(lines) or first is None:
        # A batch whose end was lost must not be carried out a second time.
        ended = {fields.get("id") for _, kind, fields in bodies if kind in ("done", "failed")}
        begun = [fields.get("id") for _, kind, fields in bodies if kind == "intent"]
        bodies += [(_stamp(now), "failed", {"id": id, "why": "lost"}) for id in begun if id not in ended]
    made, prev = list[bytes](), ORIGINAL
    for n, (t, kind, fields) in enumerate(bodies, start=1):
        record, line = sealed(n, t, kind, fields, prev=prev, key=key)
        made.append(line)
        prev = record.hash
    return Renewed(data=b"".join(made), carried=len(found), lost=lost)


def _beginning(first: Record | None, key: Key, now: datetime) -> _Body:
    fields: dict[str, Any] = {"format": FORMAT, "id": key.id[:16]}
    if first is not None and first.kind == "home":
        return first.t, "home", {**fields, **first.fields, "format": FORMAT, "key": key.id}
    return _stamp(now), "home", {**fields, "key": key.id}


def _body(record: Record) -> _Body | None:
    """What is carried over of a record; None where nothing can be."""
    try:
        datetime.fromisoformat(record.t)
    except ValueError:
        return None
    return record.t, record.kind, record.fields


def _stamp(now: datetime) -> str:
    return now.astimezone(UTC).isoformat(timespec="microseconds")
