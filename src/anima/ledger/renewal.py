"""A new chain from what is left of a damaged ledger.

Promise: every record keeps its number, so that ids, history and proposals still mean the same; what was lost is a gap
that says so, and the last record of the copy says when and why the chain was renewed. A record vouches for a line only
where it can be proven: it stands before the first fault, or an anchor in history follows it. Of all others only the
doubts count. Lines that nothing explains any more are nobody's: untrusted until the owner trusts them. No batch of the
copy is carried out again. Pure: bytes in, bytes out. Not here: files (mending), what is damaged (ledger.verify).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from anima.ledger.chain import FORMAT, ORIGINAL, Fault, Key, Record, sealed, sound
from anima.ledger.provenance import Provenance
from anima.model import UNTRUSTED, DocPath

MOST_PADDED = 1_000_000  # an anchor is only a line in a commit; nobody shall make us write a ledger without end
_EPOCH = datetime.fromtimestamp(0, UTC)
_GRAIN = timedelta(seconds=2)  # times of files are coarser than ours, and a text is staged before its record is written
_PUT_IN = ("unlinked", "repeated", "order", "rewritten")  # faults that tell of a hand, not of a bad disk
Texts = Callable[[], Iterable[tuple[DocPath, bytes, datetime]]]
_Body = tuple[str, str, Mapping[str, Any]]  # t, kind, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Renewed:
    """The new ledger, and what it cost."""

    data: bytes
    carried: int
    lost: int
    unvouched: int  # lines that nothing vouches for now
    documents: int  # in so many documents
    doubted: int  # records that were carried over for their doubts alone
    doubtful: bool  # whether there may have been untrusted lines

    @property
    def costs_trust(self) -> bool:
        return bool(self.unvouched or self.doubted)


def rechain(
    old: bytes,
    fault: Fault | None,
    *,
    key: Key,
    anchors: Iterable[tuple[int, str]],
    texts: Texts,
    now: datetime,
    why: str,
    doubtful: bool,
) -> Renewed:
    """A whole ledger in the place of a damaged one.

    `texts` gives every document with the time it was last written. With `doubtful`, there may have been untrusted
    lines, and whatever the lost records could have said of a line counts against it; so it does where a record that is
    left knows such a line.
    """
    raw = old[: old.rfind(b"\n") + 1].split(b"\n")[:-1]
    noted = {pair for pair in anchors if pair[0] <= len(raw) + MOST_PADDED}
    records = [record for line in raw if (record := sound(line))]
    doubtful = doubtful or _tells_of_doubt(records, key)
    good, odd = _sorted(records, fault, noted)
    if not doubtful:  # a bad disk, in a home without an untrusted line: there is nothing that anybody could gain
        good, odd = {**odd, **good}, {}
    kept = {n: record for n, record in {**odd, **good}.items() if n <= len(raw) + MOST_PADDED}
    last = max([len(raw), *kept, *(n for n, _ in noted)], default=0)
    chain = _Chain(now)
    chain.add(_beginning(good.get(1), key, now))
    lost = 0
    for n in range(2, last + 1):
        body = _body(kept[n], n in good) if n in kept else None
        lost += n not in kept
        chain.add(body or (chain.t, "gap", {}))
    chain.add(
        (
            _stamp(now),
            "renewed",
            {
                "was": hashlib.sha256(old).hexdigest(),
                "from": fault.line if fault else 1,
                "why": why,
                "carried": len(kept),
                "lost": lost,
                "doubtful": doubtful,
            },
        )
    )
    cut = bool(noted) and max(n for n, _ in noted) > len(raw)
    _give_up_unsettled(chain, lost_any=bool(lost) or cut or not good)
    same_key = 1 in good and good[1].fields.get("key") == key.id
    since = _window(good, last) if same_key else None
    unvouched = list(_doubt_lines(chain, key, texts, since, now)) if doubtful else []
    return Renewed(
        data=b"".join(chain.lines),
        carried=len(kept),
        lost=lost,
        unvouched=sum(unvouched),
        documents=len(unvouched),
        doubted=len(odd),
        doubtful=doubtful,
    )


def _tells_of_doubt(records: Iterable[Record], key: Key) -> bool:
    """Whether what is left of a ledger knows an untrusted line, whatever became of the mark that says so."""
    known = Provenance(key)
    known.fold(records)
    return known.is_doubtful


class _Chain:
    """A ledger as it grows."""

    def __init__(self, now: datetime) -> None:
        self.lines: list[bytes] = []
        self.records: list[Record] = []
        self.t = _stamp(now)

    def add(self, body: _Body) -> None:
        self.t, kind, fields = body
        prev = self.records[-1].hash if self.records else ORIGINAL
        record, line = sealed(len(self.records) + 1, self.t, kind, fields, prev=prev)
        self.records.append(record)
        self.lines.append(line)


def _sorted(
    records: list[Record], fault: Fault | None, anchors: set[tuple[int, str]]
) -> tuple[dict[int, Record], dict[int, Record]]:
    """By number: the records that vouch, and those of which only the doubts count."""
    good: dict[int, Record] = {}
    odd: dict[int, Record] = {}
    for number, run in enumerate(_runs(records)):
        proven = max((i + 1 for i, record in enumerate(run) if (record.n, record.hash) in anchors), default=0)
        if number == 0 and run[0].n == 1 and run[0].prev == ORIGINAL:
            by_hand = fault is not None and fault.kind in _PUT_IN
            proven = max(proven, 0 if fault and fault.kind == "rewritten" else len(run) - 1 if by_hand else len(run))
        for i, record in enumerate(run):
            (good if i < proven else odd).setdefault(record.n, record)
    return good, {n: record for n, record in odd.items() if n not in good}


def _runs(records: Iterable[Record]) -> Iterator[list[Record]]:
    """Stretches in which each record follows the one before it."""
    run: list[Record] = []
    for record in records:
        if run and not (record.n == run[-1].n + 1 and record.prev == run[-1].hash):
            yield run
            run = []
        run.append(record)
    if run:
        yield run


def _beginning(first: Record | None, key: Key, now: datetime) -> _Body:
    fields: dict[str, Any] = {"format": FORMAT, "id": key.id[:16]}
    if first is not None and first.kind == "home":
        return first.t, "home", {**fields, **first.fields, "key": key.id}
    return _stamp(now), "home", {**fields, "key": key.id}


def _body(record: Record, vouches: bool) -> _Body | None:
    """What is carried over of a record; None where nothing can be."""
    try:
        datetime.fromisoformat(record.t)
    except ValueError:
        return None
    if vouches:
        return record.t, record.kind, record.fields
    if record.kind in ("trust", "home", "renewed"):
        return None
    if record.kind in ("found", "outside"):
        return record.t, "lost", record.fields
    if record.kind == "intent":
        fields = {name: value for name, value in record.fields.items() if name != "approver"}
        return record.t, "intent", {**fields, "taint": sorted(UNTRUSTED)}
    return record.t, record.kind, record.fields


def _give_up_unsettled(chain: _Chain, *, lost_any: bool) -> None:
    """A batch whose end was lost must not be carried out a second time."""
    if not lost_any:
        return
    ended = {record.fields.get("id") for record in chain.records if record.kind in ("done", "failed")}
    begun = [record.fields.get("id") for record in chain.records if record.kind == "intent"]
    for id in [id for id in begun if id not in ended]:
        chain.add((chain.t, "failed", {"id": id, "why": "lost"}))


def _window(good: Mapping[int, Record], last: int) -> datetime | None:
    """When the last record before the first gap was written: no document older than that has a line from a lost record."""
    before = next((n - 1 for n in range(1, last + 2) if n not in good), last)
    return good[before].time if before in good else None


def _doubt_lines(chain: _Chain, key: Key, texts: Texts, since: datetime | None, now: datetime) -> Iterator[int]:
    """Adds a record for every document with lines that nothing explains; gives how many lines those are."""
    known = Provenance(key)
    known.fold(chain.records)
    since = since - _GRAIN if since is not None and since <= now else _EPOCH  # a clock that was wrong tells nothing
    for path, data, written in texts():
        if written < since:
            continue
        text = data.decode("utf-8", "replace")
        lines = known.new_lines(path, text)
        if lines:
            chain.add(
                (_stamp(now), "lost", {"path": path.text, "digest": key.of(text), "size": len(data), "lines": lines})
            )
            yield len(lines)


def _stamp(now: datetime) -> str:
    return now.astimezone(UTC).isoformat(timespec="microseconds")
