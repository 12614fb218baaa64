"""Flushing: what a conversation held reaches the day's log before the conversation is cut, whichever way the cut comes.

Promise: a line the user marked to be remembered is always kept; beyond those what tells most, up to a share of the
turns; what was only asked tells nothing. Each turn is looked at once, and no line is written again whose words stand in
the log, so a flush that a crash interrupted is simply done again. The model is asked once a cycle and given up after
three failures; its answer can only be appended, through the gate. Not here: when to flush (session), the wordings.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Literal

from anima.gate.scan import PLACEHOLDER, scan_text
from anima.model import Complete, DocPath, Kind, Origin, Receipt, Scope
from anima.sessions.hand import PATTERNS, WORTH, Hand, quotable, quoted, told, without_blocks
from anima.sessions.record import Transcript
from anima.sessions.replay import Resumed, Turn, time_of
from anima.text import bullet_text
from anima.text.dates import day_in_name
from anima.text.markdown import defuse_tags, lines_of
from anima.text.pages import log_heading, log_line
from anima.text.phrases import said_in, words_of

SIZE = 2 * 1024 * 1024  # bytes of transcript in one cycle that call for a flush, whatever the tokens
FAILURES = 3
Worth = Literal["remember", "preference", "decision", "promise", "correction", "fact"]
SILENCE = "NO_REPLY"
SHARE = 0.4  # of the turns, for what nobody marked
MAX_KEPT = 320
MAX_MARKED = 1_500
_MOST_MARKED = 20
STATED, CHANGED = 0.6, 0.3
SILENT = "flush-silent"
MAX_TURN = 200_000  # characters of one turn that are looked at
SHOWN, SHOWN_TURN = 60_000, 4_000  # characters of the conversation, and of one turn, that the model is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class Flushed:
    """What a flush did. `status` is written, noted, pending, refused, or nothing; the lines are those of this flush."""

    reason: str
    status: str
    lines: tuple[str, ...] = ()
    path: str | None = None
    proposals: tuple[str, ...] = ()
    silent: str = "not asked"  # what became of the model's turn
    error: str = ""  # how the model failed, where silent is failed
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
        self._failures, self._error = 0, ""
        self._left_out = 0  # lines of this flush that stay forgotten
        self.said: list[Turn] = []  # where no transcript is kept
        self._cycle_from = 0  # the first turn of this cycle
        self._rewritten = 0  # how often the transcript was replaced by one in which something is forgotten
        self._doubtful = False  # a crash may have come between a log line and its mark

    def carry_on(self, last: Resumed) -> None:
        """Takes up what a transcript says of the flushes before."""
        self.through, self._doubtful = last.through, True
        for each in last.flushes:
            silent = each.fields.get("silent")
            self._asked |= silent in ("written", "silence", "noted", "pending", "refused")
            self._failures += silent == "failed"
            self.cycle_done |= each.fields.get("reason") == "pressure"
        self.cycle_start = last.cycle_start
        if not self._asked:  # or the model's lines of this cycle were written, and only their mark was lost in a crash
            since = time_of(last.boundary.timestamp if last.boundary else last.header.timestamp)
            self._asked = any(
                record.fields.get("session") == self._hand.id and record.fields.get("what") == SILENT
                for record in self._site.store.ledger.records(kinds=("intent",))
                if since is None or record.time >= since
            )

    def begin_cycle(self, size: int) -> None:
        self.cycle_done, self.cycle_start, self._asked, self._failures = False, size, False, 0
        self._cycle_from = self.through

    def run(self, reason: str, talk: Transcript | None, complete: Complete | None) -> Flushed:
        """Everything since the last flush: first what needs no model, then one silent turn of it."""
        hand = self._hand
        turns, through = self._turns(talk)
        if hand.listener.scope is Scope.SUBAGENT or hand.access != "rw" or not (turns or through):
            return Flushed(reason=reason, status="nothing", through=through)
        now, self._left_out = hand.now(), 0
        own = self._owners(turns)
        found = extract(own.get(turn.number, turn) for turn in turns)
        if hand.listener.scope is not Scope.MAIN:
            found = tuple(kept for kept in found if kept.kind == "remember")  # the owner is asked about these alone
        receipts, lines = self._written([_line(kept) for kept in found if kept.number in own], now, turns, owned=True)
        rest, more_lines = self._written([_line(kept) for kept in found if kept.number not in own], now, turns)
        receipts, lines = [*receipts, *rest], [*lines, *more_lines]
        if talk is not None and through > self.through:
            talk.flush(reason=reason[:80], through=through, lines=len(lines), status=_status(receipts))
        self.through, self._doubtful = through, False
        self.said.clear()
        if not turns and talk is not None:  # what was said in this cycle, all of it looked at before
            turns = [turn for turn in talk.since(self._cycle_from)[0] if turn.call is None]
        silent, more, extra = self._silent(complete, now, turns)
        if talk is not None and silent != "not asked":
            talk.flush(reason=reason[:80], through=through, lines=len(extra), silent=silent)
        return Flushed(
            reason=reason,
            status=_status([*receipts, *more]),
            lines=(*lines, *extra),
            silent=silent,
            error=self._error if silent == "failed" else "",
            through=through,
            forgotten=self._left_out,
            path=hand.listener.daily_path(self._site.layout, now.date()).text,
            proposals=tuple(dict.fromkeys(r.proposal for r in (*receipts, *more) if r.proposal)),
        )

    def _owners(self, turns: Sequence[Turn]) -> dict[int, Turn]:
        """What the owner typed, without what in it is not their own; of a clean session nothing is told apart."""
        if not self._hand.tainted:
            return {}
        typed = set(self._hand.owner_typed())
        mine = [turn for turn in turns if turn.role == "user" and turn.content in typed]
        texts = {turn.number: " ".join(filter(None, quotable(turn.content))) for turn in mine}
        return {turn.number: replace(turn, content=texts[turn.number]) for turn in mine if texts[turn.number]}

    def _turns(self, talk: Transcript | None) -> tuple[list[Turn], int]:
        if talk is None:
            return list(self.said), self.through + len(self.said)
        talk.follow()
        if talk.rewritten != self._rewritten:  # something was forgotten, and the entries have other numbers now
            self._rewritten, self.through = talk.rewritten, min(self.through, talk.flushed_through())
        else:  # somebody may have flushed for us while we were silent
            self.through = max(self.through, talk.flushed_through())
        entries, total = talk.since(self.through)
        return [turn for turn in entries if turn.call is None], max(self.through, total)

    def _written(
        self, lines: Sequence[str], now: datetime, turns: Sequence[Turn], *, what: str = "flush", owned: bool = False
    ) -> tuple[list[Receipt], list[str]]:
        """Appends what the logs do not hold yet. Under the home's lock, so that of two flushes one finds the other's."""
        forgotten = self._hand.rooms.writer().forgotten
        firsts = {_bare(line): line for line in reversed(lines)}
        wanted = [line for line in lines if firsts.pop(_bare(line), "") and not PLACEHOLDER.search(line)]
        if forgotten:
            known = [line for line in wanted if forgotten.holds(line)]
            self._left_out += len(known)
            wanted = [line for line in wanted if line not in known]
        if not wanted:
            return [], []
        suspicious = {line for line in wanted if scan_text(line)}  # one such line must not take the others with it
        with self._hand.at_work(), self._site.store.lock():  # in the order of a call
            held = self._held(now, turns, owned)
            fresh = [line for line in wanted if _bare(line) not in held]
            plain = [line for line in fresh if line not in suspicious]
            groups = ([plain] if plain else []) + [[line] for line in fresh if line in suspicious]
            receipts = []
            for group in groups:
                path = self._hand.listener.daily_path(self._site.layout, now.date())
                wish = self._hand.wish(path, Kind.APPEND, "".join(log_line(line, now) for line in group))
                change = replace(wish, opening=log_heading(now), reason="flush")
                receipts.append(self._hand.submit(quoted(change) if owned else change, what=what))
        return receipts, fresh

    def _held(self, now: datetime, turns: Sequence[Turn], owned: bool) -> set[str]:
        """The lines of memory and of today's log, after a crash of every log since the first of these turns, and of what waits;
        for `owned` lines only what waits as the owner's own: what the agent left for review may be dropped."""
        listener, layout, days = self._hand.listener, self._site.layout, {now.date()}
        if self._doubtful:
            first = next((turn.time for turn in turns if turn.time), None)
            since = first.astimezone(now.tzinfo).date() if first else now.date()
            documents, folder = self._site.store.documents, listener.daily_folder(layout)
            entries = documents.list_all(folder) if documents.kind_of(folder) == "folder" else ()
            days |= {day for entry in entries if (day := day_in_name(entry.name)) and day >= since}
        paths = [listener.daily_path(layout, day) for day in days]
        if listener.scope is Scope.MAIN and layout.has("memory"):
            paths.append(DocPath.parse(listener.path_of(layout.row("memory"))))
        texts = [listener.view(layout, path, self._site.text_of(path) or "").text for path in paths]
        writer = self._hand.rooms.writer()
        waiting = [change for p in writer.proposals.all() if p.session == self._hand.id for change in p.changes]
        texts += [change.text for change in waiting if not owned or change.origin is Origin.OWNER]
        texts += [e.text for e in writer.unreviewed.all() if not owned and e.session == self._hand.id]
        return {_bare(line) for text in texts for line in lines_of(text) if line.strip()}

    def _silent(
        self, complete: Complete | None, now: datetime, turns: Sequence[Turn]
    ) -> tuple[str, list[Receipt], list[str]]:
        """One turn nobody sees: the task, and what was said, as data; of that the latest turns that fit, in their order, and what
        is left out is said. What it answers is data: bullets for the log, and nothing else."""
        if complete is None or self._asked or self._failures >= FAILURES or not turns:
            return "not asked", [], []
        path = self._hand.listener.daily_path(self._site.layout, now.date()).text
        try:
            said, room = list[str](), SHOWN
            for turn in reversed(turns):
                line = f"{turn.role}: {_cut(turn.content.strip(), SHOWN_TURN)}"
                if (room := room - len(line) - 1) < 0:
                    said.append(f"[{len(turns) - len(said)} earlier turns are left out]")
                    break
                said.append(line)
            shown, day = defuse_tags("\n".join(reversed(said)), ("conversation",)), f"{now:%A, %Y-%m-%d %H:%M}"
            asked = str(WORTH["silent"].format(day=day, path=path, silence=SILENCE, shown=shown))
            bullets = bullets_of(complete(asked))
        except Exception as error:  # a host's model fails in its own ways, and none of them may cost what was said
            self._failures, self._error = self._failures + 1, f"{type(error).__name__}: {error}"
            return "failed", [], []
        self._asked = True
        if not bullets:
            return "silence", [], []
        receipts, lines = self._written(bullets, now, (), what=SILENT)
        return _status(receipts) if receipts else "silence", receipts, lines


def _line(kept: Kept) -> str:
    return told(kept.text) if kept.role == "user" else f"Agent: {kept.text}"


def _status(receipts: Iterable[Receipt]) -> str:
    """The best that became of the lines; what waits or was refused is in the proposals and the ledger."""
    found = {receipt.status for receipt in receipts}
    return next((status for status in ("written", "noted", "pending", "refused") if status in found), "nothing")


def _bare(line: str) -> str:
    """What two lines share that say the same: their words, whoever spoke."""
    return " ".join(words_of(said_in(line))) or line.strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A line worth writing down, the turn it came from, and why."""

    kind: Worth
    text: str
    number: int
    score: float
    role: str = "user"


def _any(wordings: str) -> re.Pattern[str]:
    """One pattern for the many that stand in the table."""
    found = [" ".join(one.split()) for one in re.split(r"\s;\s", f" {wordings} ")]
    apart = "|".join(one for one in found if one[0] < "\u2e80")
    joined = "".join(f"|{one}" for one in found if one[0] >= "\u2e80")
    return re.compile(rf"(?<!\w)(?:{apart})(?!\w){joined}", re.IGNORECASE)


_SAYS = {name: _any(wordings) for name, wordings in WORTH["wordings"].items()}
# What marks a turn, the first that does.
_MARKS: tuple[tuple[Worth, re.Pattern[str]], ...] = (
    ("remember", _SAYS["remember"]),
    ("correction", PATTERNS["correction"]),
    ("decision", _SAYS["decision"]),
    ("promise", _SAYS["promise"]),
    *(("preference", pattern) for pattern in (_SAYS["preference"], _SAYS["standing"], PATTERNS["order"])),
)


def extract(turns: Iterable[Turn], *, share: float = SHARE) -> tuple[Kept, ...]:
    """The lines worth keeping, in the order they were said."""
    turns = [turn for turn in turns if turn.content.strip() and turn.role in ("user", "assistant")]
    judged = [found for turn in turns if (found := _judged(turn)) is not None]
    marked = [k for k in judged if k.kind != "fact"]
    plain = sorted((k for k in judged if k.kind == "fact"), key=lambda k: (-k.score, k.number))
    room = max(0, max(1, round(len(turns) * share)) - len(marked))
    return tuple(sorted([*marked, *plain[:room]], key=lambda k: k.number))


def _judged(turn: Turn) -> Kept | None:
    text = " ".join(without_blocks(turn.content[:MAX_TURN]).split())
    if not text:
        return None
    if turn.role == "assistant":
        said: tuple[Worth, ...] = ("decision", "promise")
        for kind in said:
            if found := _SAYS[kind].search(text):
                line = _telling(text, found.start())
                return Kept(kind=kind, text=line, number=turn.number, score=1.0, role="assistant")
        return None
    kind, at = _kind(text)
    score = telling(text)
    if kind == "fact" and (score < 0 or all(map(_is_asked, _sentences(text)))):
        return None
    line = _marked(text) if kind == "remember" else _telling(text, at)
    return Kept(kind=kind, text=line, number=turn.number, score=score)


def _kind(text: str) -> tuple[Worth, int]:
    """Why a turn is worth keeping, and where the mark stands. A question that only mentions the word is no mark."""
    asked = [said.span() for said in PATTERNS["sentence"].finditer(text) if said[0].rstrip().endswith("?")]
    for kind, pattern in _MARKS:
        for found in pattern.finditer(text):
            before = bisect_left(asked, (found.start() + 1,)) - 1  # the last question that begins there or earlier
            if before < 0 or asked[before][1] <= found.start():
                return kind, found.start()
    return "fact", 0


def telling(text: str) -> float:
    """How much a turn tells about somebody's life; above zero it is worth a line."""
    words = len(text.split())
    sentences = _sentences(text)
    asked = sum(s.rstrip().endswith("?") for s in sentences) / max(len(sentences), 1)
    share = {name: _share(_SAYS[name], text) for name in ("time", "number", "first", "past", "people")}
    score = (
        -2.0
        + 2.0 * share["time"]
        + 1.2 * _share(PATTERNS["name"], text)
        + 1.0 * share["number"]
        + 1.0 * min(words, 40) / 40
    )
    score += 0.8 * share["first"] + 0.7 * share["past"] + 0.5 * share["people"]
    stated = bool(_SAYS["stated"].search(text))
    score += STATED * stated + CHANGED * bool(_SAYS["changed"].search(text))
    score -= 1.6 * asked + 0.6 * bool(PATTERNS["greeting"].match(text)) + 0.6 * (words < 6 and not stated)
    return score + 1.2


def _share(pattern: re.Pattern[str], text: str) -> float:
    return sum(1 for _ in islice(pattern.finditer(text), 3)) / 3


def _sentences(text: str) -> list[str]:
    return [s.strip() for s in PATTERNS["sentence"].findall(text) if s.strip()]


def _sentence_at(text: str, at: int) -> str:
    return next((m[0] for m in PATTERNS["sentence"].finditer(text) if m.start() <= at < m.end()), text)


def _is_asked(sentence: str) -> bool:
    """Whether a sentence asks, for something or to do something, and so tells nothing."""
    return sentence.endswith(("?", "？", "؟")) or _SAYS["asked"].match(sentence) is not None


def _telling(text: str, at: int) -> str:
    """The turn without its greetings and questions, unless nothing would be left."""
    kept = [s for s in _sentences(text) if not (_is_asked(s) or (PATTERNS["greeting"].match(s) and len(s.split()) < 5))]
    return _cut(" ".join(kept) or _sentence_at(text, at).strip())


def _marked(text: str) -> str:
    """What the user wants kept: the whole turn, or of a very long one each marked sentence and what follows it."""
    if len(text) <= MAX_MARKED:
        return text
    sentences = _sentences(text)
    marked = {n for n, sentence in enumerate(sentences) if _SAYS["remember"].search(sentence)}
    wanted = sorted(n for n in marked | {n + 1 for n in marked} if n < len(sentences))
    return " … ".join(_cut(sentences[n], MAX_MARKED) for n in wanted[:_MOST_MARKED])


def _cut(text: str, most: int = MAX_KEPT) -> str:
    return text if len(text) <= most else text[: most - 1].rsplit(" ", 1)[0] + "…"


def bullets_of(reply: str) -> Sequence[str]:
    """The bullets of a silent turn's answer; none when it kept silent."""
    text = reply.strip()
    if not text or text.strip("`*_ .\"'") == SILENCE or text.startswith(SILENCE) or text.endswith(SILENCE):
        return ()
    lines = [bullet_text(line, dots=True) for line in text.splitlines()]
    return [_cut(line) for line in lines if line and not line.startswith(("#", "```"))]
