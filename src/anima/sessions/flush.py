"""Flushing: what a conversation held reaches the day's log before the conversation is cut, whichever way the cut comes.

Promise: each turn is looked at once; a line that stands in the log already is not written again, so a flush that a
crash interrupted is simply done again; the model, where there is one, is asked once a cycle and given up after three
failures; whatever it answers can only be appended, through the gate like any write. The date is the user's.
Lives as long as its Session. Not here: what is worth keeping (flush), when (sessions).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING

from anima.errors import NoSuchDocument
from anima.memory.verbs import log_heading, log_line
from anima.model import Change, Complete, DocPath, Kind, Receipt, Scope
from anima.sessions.replay import time_of
from anima.sessions.worth import Kept, Said, bullets_of, extract, silent_turn
from anima.text.dates import day_in_name
from anima.text.markdown import bullet_text, lines_of

if TYPE_CHECKING:
    from anima.sessions.hand import Hand
    from anima.sessions.record import Transcript
    from anima.sessions.replay import Resumed

SIZE = 2 * 1024 * 1024  # bytes of transcript in one cycle that call for a flush, whatever the tokens
FAILURES = 3
SILENT = "flush-silent"
MAX_TURN = 200_000  # characters of one turn that are looked at
_STAMP = re.compile(r"\[\d{1,2}:\d{2}\]\s+")
_SPEAKER = {"user": "User", "assistant": "Agent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """What a flush did. `status` is written, pending, refused, or nothing; the lines are those of this flush."""

    reason: str
    status: str
    lines: tuple[str, ...] = ()
    path: str | None = None
    proposals: tuple[str, ...] = ()
    silent: str = "not asked"  # what became of the model's turn
    through: int = 0  # turns looked at so far
    forgotten: int = 0  # lines left out because the owner had them forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class Pressure:
    """How near the cut is: `tokens` of `limit`. `flushed` is what a flush did just now, if there was one."""

    tokens: int
    limit: int
    near: bool
    flushed: Flushed | None = None


class Flushing:
    """The flushes of one session: how far it has been written down, and what the model was asked in this cycle."""

    def __init__(self, hand: Hand) -> None:
        self._hand, self._site = hand, hand.site
        self.through = 0
        self.cycle_done = False  # whether a flush for the near cut was made since the last one
        self.cycle_start = 0  # the transcript's size when this cycle began
        self._asked = False
        self._failures = 0
        self._left_out = 0  # lines of this flush that stay forgotten
        self._said: list[Said] = []  # where no transcript is kept
        self._rewritten = 0  # how often the transcript was replaced by one in which something is forgotten
        self._doubtful = False  # a crash may have come between a log line and its mark

    def carry_on(self, last: Resumed) -> None:
        """Takes up what a transcript says of the flushes before."""
        self.through, self._doubtful = last.through, True
        for each in last.flushes:
            silent = each.fields.get("silent")
            self._asked |= silent in ("written", "silence", "pending", "refused")
            self._failures += silent == "failed"
            self.cycle_done |= each.fields.get("reason") == "pressure"
        self.cycle_start = last.cycle_start
        self._asked = self._asked or self._silent_before(last)

    def _silent_before(self, last: Resumed) -> bool:
        """Whether the model's lines of this cycle were written, and only the mark for it was lost in a crash."""
        began = last.boundary.timestamp if last.boundary else last.header.timestamp
        since = time_of(began)
        mine = (
            record
            for record in self._site.store.ledger.records(kinds=("intent",))
            if record.fields.get("session") == self._hand.id and record.fields.get("what") == SILENT
        )
        return any(since is None or record.time >= since for record in mine)

    def heard(self, said: Said) -> None:
        """A turn of a session that keeps no transcript."""
        self._said.append(said)

    def begin_cycle(self, size: int) -> None:
        self.cycle_done, self.cycle_start, self._asked, self._failures = False, size, False, 0

    # -- one flush ------------------------------------------------------------------------------------------------------

    def run(self, reason: str, talk: Transcript | None, complete: Complete | None) -> Flushed:
        """Everything since the last flush: first what needs no model, then one silent turn of it."""
        hand = self._hand
        turns, through = self._turns(talk)
        if hand.listener.scope is Scope.SUBAGENT or hand.access != "rw" or not (turns or through):
            return Flushed(reason=reason, status="nothing", through=through)
        now, self._left_out = hand.now(), 0
        found = extract(turns)
        if hand.listener.scope is not Scope.MAIN or hand.tainted:
            found = tuple(kept for kept in found if kept.kind == "remember")  # the owner is asked about these alone
        receipts, lines = self._written([_line(kept) for kept in found], now, turns)
        if talk is not None and through > self.through:
            talk.flush(reason=reason[:80], through=through, lines=len(lines), status=_status(receipts))
        self.through, self._doubtful = through, False
        self._said.clear()
        silent, more, extra = self._silent(complete, now)
        if talk is not None and silent != "not asked":
            talk.flush(reason=reason[:80], through=through, lines=len(extra), silent=silent)
        return Flushed(
            reason=reason,
            status=_status([*receipts, *more]),
            lines=(*lines, *extra),
            silent=silent,
            through=through,
            forgotten=self._left_out,
            path=hand.listener.daily_path(self._site.layout, now.date()).text,
            proposals=tuple(dict.fromkeys(r.proposal for r in (*receipts, *more) if r.proposal)),
        )

    def _turns(self, talk: Transcript | None) -> tuple[list[Said], int]:
        if talk is None:
            return list(self._said), self.through + len(self._said)
        talk.follow()
        if talk.rewritten != self._rewritten:  # something was forgotten, and the entries have other numbers now
            self._rewritten, self.through = talk.rewritten, min(self.through, talk.flushed_through())
        else:  # somebody may have flushed for us while we were silent
            self.through = max(self.through, talk.flushed_through())
        entries, total = talk.since(self.through)
        said = [Said(role=t.role, text=t.content[:MAX_TURN], number=t.number, time=t.time) for t in entries]
        return said, max(self.through, total)

    def _written(
        self, lines: Sequence[str], now: datetime, turns: Sequence[Said], *, what: str = "flush"
    ) -> tuple[list[Receipt], list[str]]:
        """Appends what the logs do not hold yet. Under the home's lock, so that of two flushes one finds the other's."""
        from anima.gate.scan import PLACEHOLDER, scan_text

        forgotten = self._hand.rooms.writer().forgotten
        wanted = [line for line in dict.fromkeys(lines) if not PLACEHOLDER.search(line)]
        if forgotten:
            known = [line for line in wanted if forgotten.holds(line)]
            self._left_out += len(known)
            wanted = [line for line in wanted if line not in known]
        if not wanted:
            return [], []
        suspicious = {line for line in wanted if scan_text(line)}  # one such line must not take the others with it
        with self._site.store.lock():
            held = self._held(now, turns)
            fresh = [line for line in wanted if _bare(line) not in held]
            plain = [line for line in fresh if line not in suspicious]
            groups = ([plain] if plain else []) + [[line] for line in fresh if line in suspicious]
            receipts = [self._hand.submit(self._change(group, now), what=what) for group in groups]
        return receipts, fresh

    def _change(self, lines: Sequence[str], now: datetime) -> Change:
        path = self._hand.listener.daily_path(self._site.layout, now.date())
        text = "".join(log_line(line, now) for line in lines)
        return replace(self._hand.wish(path, Kind.APPEND, text), opening=log_heading(now), reason="flush")

    def _held(self, now: datetime, turns: Sequence[Said]) -> set[str]:
        """The lines of today's log, and after a crash of every log since the first of these turns, and of what waits."""
        listener, layout, days = self._hand.listener, self._site.layout, {now.date()}
        if self._doubtful:
            first = next((turn.time for turn in turns if turn.time), None)
            days |= set(self._days(first.astimezone(now.tzinfo).date() if first else now.date()))
        texts = [self._text(listener.daily_path(layout, day)) for day in days]
        proposals = self._hand.rooms.writer().proposals
        waiting = [p for p in proposals.all(self._site.clock()) if p.session == self._hand.id]
        texts += [change.text for proposal in waiting for change in proposal.changes]
        return {_bare(bullet_text(line)) for text in texts for line in lines_of(text) if line.strip()}

    def _text(self, path: DocPath) -> str:
        try:
            return self._site.store.documents.read(path).text
        except NoSuchDocument:
            return ""

    def _days(self, first: date) -> Iterator[date]:
        """The days since then that have a log."""
        for entry in self._site.store.documents.list_all(self._hand.listener.daily_folder(self._site.layout)):
            if (day := day_in_name(entry.name)) and day >= first:
                yield day

    # -- the model's turn -----------------------------------------------------------------------------------------------

    def _silent(self, complete: Complete | None, now: datetime) -> tuple[str, list[Receipt], list[str]]:
        """One turn nobody sees. What it answers is data: bullets for the log, and nothing else."""
        if complete is None or self._asked or self._failures >= FAILURES:
            return "not asked", [], []
        path = self._hand.listener.daily_path(self._site.layout, now.date()).text
        try:
            answer = complete(silent_turn(f"{now:%A, %Y-%m-%d %H:%M}", path))
            bullets = bullets_of(answer)
        except Exception:  # a host's model fails in its own ways, and none of them may cost what was said
            self._failures += 1
            return "failed", [], []
        self._asked = True
        if not bullets:
            return "silence", [], []
        receipts, lines = self._written(bullets, now, (), what=SILENT)
        return _status(receipts) if receipts else "silence", receipts, lines


def _line(kept: Kept) -> str:
    return f"{_SPEAKER.get(kept.role, kept.role)}: {kept.text}"


def _status(receipts: Iterable[Receipt]) -> str:
    """The best that became of the lines; what waits or was refused is in the proposals and the ledger."""
    found = {receipt.status for receipt in receipts}
    return next((status for status in ("written", "pending", "refused") if status in found), "nothing")


def _bare(line: str) -> str:
    return " ".join(_STAMP.sub("", line, count=1).split())
