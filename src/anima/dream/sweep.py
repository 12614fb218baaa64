"""Sweeps: one night's dreaming, from the ledger and the logs to one revision.

Promise: gather, plan, write by the one road as the dreamer, all in one batch, and the mark last: a crash before it repeats
the night and changes nothing twice. One sweep at a time across processes, by a lease that dies with its holder; the
mark it began with, and the memory it was planned on, are compared again under the home lock, so that one who lost the
lease or was overtaken by the owner cannot write. While a model is asked nothing but the lease is held. Nothing new
since the mark: nothing is written. Not here: what is promoted (dream, consulting), when to dream (schedule).
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from anima.dream import consult, diary
from anima.dream.diary import MOVED, PAST, Item, dreamed_on, fact_of, items
from anima.dream.material import Held, LogNote, Material, Retirement, SweepPlan
from anima.dream.plan import key_of, plan
from anima.dream.reflect import Readings, bank_changes
from anima.dream.score import Preset, Tallies
from anima.dream.score import preset as preset_of
from anima.dream.trace import Place, traces
from anima.errors import Damaged, HomeBusy, HomeError, NoSuchDocument, StaleWrite
from anima.layout.table import Policy
from anima.ledger.chain import Record
from anima.memory.inbox import diff_of
from anima.model import UNTRUSTED, Actor, Change, Complete, DocPath, Kind, Origin, Receipt, Scope, digest_of
from anima.store.logs import LineFolder
from anima.text.markdown import lines_of

if TYPE_CHECKING:
    from anima.home import Home

LEASE = "dreaming"
CONSOLIDATION = ".consolidation_state"
OWNERS_LINE = "owners-line"
WHY_ASKED = "a newer note says otherwise, but the line is your own; dreaming does not touch it"
OVERTAKEN = 5  # how often a night is planned anew because somebody wrote in between
_KINDS = ("recall", "sweep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What became of one night. `status`: dreamed, nothing, busy, pending, refused, dry-run."""

    status: str
    plan: SweepPlan | None = None
    diff: str = ""
    change: str | None = None  # the ledger's id, which `undo` takes
    revision: str | None = None
    proposals: tuple[str, ...] = ()
    said: str = ""


@dataclass(slots=True)
class _Log:
    """One daily log as it was last read."""

    digest: str
    notes: list[tuple[Item, tuple[str, ...]]]  # with the digests of its lines


@dataclass(slots=True)
class _Marks:
    """What earlier sweeps left in the ledger."""

    last: int = 0  # the number of the newest mark
    through: int = 0  # the last record that sweep had seen
    time: datetime | None = None
    promoted: dict[str, date] = field(default_factory=dict)  # keyed digest of a fact: when
    asked: set[str] = field(default_factory=set)
    made_of: dict[str, list[Place]] = field(default_factory=dict)  # of lines in a model's words


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """One night as it is planned, and what it was planned on."""

    material: Material
    plan: SweepPlan  # without a diary
    made: SweepPlan  # with one
    before: str | None  # MEMORY.md
    began: int  # the mark that was the last one
    through: int
    prose: str = ""

    @property
    def lines(self) -> object:
        """What must be the same for a model's answer to still be about it."""
        notes = [
            (p.fact, p.candidate.since, p.candidate.note.path, p.candidate.note.raws) for p in self.plan.promotions
        ]
        return self.before, notes, [r.held.raw for r in self.plan.retirements], [held.raw for held in self.plan.moves]


class Sweeps:
    """The dreaming of one home. Lives as long as it; keeps tallies and logs between nights."""

    def __init__(self, home: Home) -> None:
        self._home, self.books, self.layout = home, home.books, home.layout
        self._tallies, self._marks, self._logs = Tallies(), _Marks(), dict[str, _Log]()
        self._scanned: dict[str, str | None] = {}
        self._mutex = threading.RLock()
        self._tried: datetime | None = None
        self._readings: Readings = {}
        self._recalls: list[int] = []  # the numbers of their records
        self.patience = consult.TIMEOUT  # seconds for one answer of a model
        self._lease = home.books.machine.lease(LEASE)

    def run(self, *, dry_run: bool, preset: str | None, since: date | None, complete: Complete | None = None) -> Sweep:
        """One sweep now. A dry run takes no lease and writes nothing. `complete` is a model, which is asked once more."""
        rules = self.rules(preset)
        if dry_run:
            draft = self._advised(self._drafted(rules, since), since, complete)
            return Sweep(status="dry-run", plan=draft.made, diff=self._diff([*self._changes(draft), *self._bank()]))
        try:
            with self._lease.hold(patience=0):
                self._tried = self._home.clock()
                return self._swept(rules, since, complete)
        except HomeBusy as busy:
            return Sweep(status="busy", said=f"another sweep is under way ({busy.holder}); nothing was written")

    def close(self) -> None:
        self._lease.close()

    def rules(self, preset: str | None) -> Preset:
        return preset_of(preset or self._home.config.dream.preset)

    def tried(self) -> datetime | None:
        """When a night was last dreamed here, or tried by this process without anything to write."""
        return max(filter(None, (self.last, self._tried)), default=None)

    # -- gathering --------------------------------------------------------------------------------------------------------

    def catch_up(self) -> int:
        """Takes in what the ledger has since the last look; gives the number of its last record."""
        ledger = self.books.ledger
        if self._tallies.through > ledger.tip.n:
            self._tallies, self._marks, self._recalls = Tallies(), _Marks(), []
        tip = ledger.tip.n
        self._tallies.fold(self._marked(ledger.records(self._tallies.through, kinds=_KINDS)))
        self._tallies.through = max(self._tallies.through, tip)
        return tip

    def _marked(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if record.kind == "recall":
                self._recalls.append(record.n)
            else:
                marks, fields = self._marks, record.fields
                marks.last, marks.through, marks.time = record.n, int(fields.get("through", 0)), record.time
                for gone in fields.get("let_go", ()):  # what we took out ourselves may come back
                    marks.promoted.pop(gone, None)
                marks.promoted |= dict.fromkeys(fields.get("promoted", ()), record.time.date())
                marks.asked |= set(fields.get("asked", ()))
                anew = set(fields.get("reworded", ()))
                for path, source, dreamed in fields.get("from", ()) if anew else ():
                    if dreamed in anew:
                        marks.made_of.setdefault(dreamed, []).append((path, source))
            yield record

    @property
    def last(self) -> datetime | None:
        """When this home last dreamed."""
        with self._mutex:
            self.catch_up()
            return self._marks.time

    def _drafted(self, rules: Preset, since: date | None, moment: tuple[datetime, date] | None = None) -> _Draft:
        with self._mutex:
            tip = self.catch_up()
            began = self._marks.last
            tallies = self._tallies if since is None else self._since(since)
            fresh = len(self._recalls) - bisect_right(self._recalls, self._marks.through)
            before = self._text(DocPath.parse(self.layout.curated))
            now, today = moment or (self._home.clock().astimezone(UTC), self._home.reading.today())
            material = Material(
                now=now,
                today=today,
                rules=rules,
                notes=(notes := tuple(self._notes(tallies))),
                memory=before or "",
                held=tuple(self._held(before or "", tallies)),
                doubt=self._doubt,
                promoted=self._promoted(notes),
                recalls=fresh,
            )
            made = plan(material)
        draft = _Draft(material=material, plan=made, made=made, before=before, began=began, through=tip)
        return self._told(draft, made)

    def _told(self, draft: _Draft, made: SweepPlan, *, prose: str = "", remark: str = "") -> _Draft:
        told = diary.with_diary(made, today=draft.material.today, doubt=self._doubt, prose=prose, remark=remark)
        return replace(draft, made=told, prose=prose)

    def _promoted(self, notes: tuple[LogNote, ...]) -> dict[str, date]:
        known = self._marks.promoted
        keys = {key_of(note.text) for note in notes if note.tally} if known else ()
        return {key: known[digest] for key in keys if (digest := self.books.key.of(key)) in known}

    def _advised(self, draft: _Draft, since: date | None, complete: Complete | None) -> _Draft:
        """The draft as a model would have it, as far as its answer may stand. Nothing is locked in here."""
        if complete is None:
            return draft
        advice = consult.advised(
            draft.plan, draft.material, complete, unsafe=unsafe, shown=self._may_be_shown, timeout=self.patience
        )
        found = self._told(draft, advice.plan, remark=advice.said)
        if advice.heard and found.made.diary:
            prose = consult.narrated(found.made.diary, complete, unsafe=unsafe, timeout=self.patience)
            remark = advice.said if prose else f"{advice.said} {consult.NO_PROSE}"
            found = self._told(draft, advice.plan, prose=prose, remark=remark)
        material = draft.material
        again = self._drafted(material.rules, since, (material.now, material.today))
        if again.lines != draft.lines:
            return self._told(again, again.plan, remark=consult.CHANGED_MEANWHILE)
        return found

    def _may_be_shown(self, held: Held) -> bool:
        """Whether a model may see a line of memory: it can be built on, and the scan sees nothing in it."""
        source = self.books.provenance.source(DocPath.parse(self.layout.curated), held.raw)
        return source.promotable and unsafe(held.raw) is None

    def _since(self, since: date) -> Tallies:
        tallies = Tallies()
        wanted = since.isoformat()
        records = self.books.ledger.records(0, kinds=("recall",))
        tallies.fold(record for record in records if str(record.fields.get("day", "")) >= wanted)
        return tallies

    def _notes(self, tallies: Tallies) -> Iterator[LogNote]:
        """Every note of every daily log, oldest first; logs that did not change are not cut again."""
        dated = [
            (day, entry.path)
            for entry in self._home.store.list(self.layout.daily)
            if not entry.is_folder and entry.path.casefold().endswith(".md") and (day := self._day(entry.path))
        ]
        for day, path in sorted(dated):
            for item, digests in self._log(path):
                yield LogNote(
                    path=path,
                    line=item.line,
                    raws=item.raws,
                    text=item.text,
                    day=day,
                    tally=tallies.of(path, digests),
                )

    def _day(self, path: str) -> date | None:
        return self.layout.date_of(DocPath.parse(path))

    def _log(self, path: str) -> list[tuple[Item, tuple[str, ...]]]:
        try:
            document = self._home.store.read(DocPath.parse(path))
        except Damaged:
            raise  # a disk that fails for a moment: a night without this log would be another night
        except HomeError:
            return []  # a log that is no text has no notes; doctor says more
        held = self._logs.get(path)
        if held is None or held.digest != document.digest:
            line = self.books.key.line
            cut = [(item, tuple(line(raw) for raw in item.raws)) for item in items(document.text)]
            self._logs[path] = held = _Log(digest=document.digest, notes=cut)
        return held.notes

    def _held(self, memory: str, tallies: Tallies) -> Iterator[Held]:
        path, view = DocPath.parse(self.layout.curated), self.books.provenance
        nights = dreamed_on(memory)
        for item in items(memory):
            raw = item.raws[0]
            fact, since = fact_of(raw)
            machine = view.knows(path) and view.source(path, raw).actor is Actor.DREAMER
            digest = self.books.key.line(raw)
            tally = tallies.of(path.text, (digest,))
            yield Held(
                number=item.line,
                raw=raw,
                fact=(self._first_words(digest) if machine else "") or fact,
                since=since,
                machine=machine,
                night=nights.get(item.line),
                tally=tally,
            )

    def _doubt(self, note: LogNote) -> str | None:
        """Why a note may not be built on."""
        path, view = DocPath.parse(note.path), self.books.provenance
        for raw in note.raws:
            source = view.source(path, raw)
            if not source.promotable:
                return "nobody reviewed it" if source.actor is Actor.OUTSIDE else "untrusted words went into it"
            if source.scope not in (None, Scope.MAIN):
                return f"it was noted in a {source.scope} session"
        return self._seen_in(note.text)

    def _seen_in(self, text: str) -> str | None:
        """What the scan sees in a text, kept between nights: it is the dearest of all looks."""
        if text not in self._scanned:
            self._scanned[text] = unsafe(text)
        return self._scanned[text]

    def _first_words(self, digest: str, depth: int = 8) -> str:
        """What the note said that a line in a model's words was made of; "" for other lines, and where it is gone.

        Notes are compared with these words, so that rewording a line makes nothing of it new.
        """
        for path, source in self._marks.made_of.get(digest, ()):
            if path == self.layout.curated:
                found = self._first_words(source, depth - 1) if depth else ""
            else:
                found = next((item.text for item, digests in self._log(path) if source in digests), "")
            if found:
                return " ".join(found.split())
        return ""

    # -- writing ----------------------------------------------------------------------------------------------------------

    def _swept(self, rules: Preset, since: date | None, complete: Complete | None) -> Sweep:
        with self._mutex:
            self._finish_mark()
        draft = self._advised(self._drafted(rules, since), since, complete)
        for _ in range(OVERTAKEN):
            try:
                with self._mutex:
                    if (swept := self._written(draft)) is not None:
                        return swept
            except StaleWrite:
                pass  # somebody wrote while the night was planned: theirs stays, and the night is planned on it
            draft = self._drafted(rules, since)
            draft = self._told(draft, draft.plan, remark=consult.CHANGED_MEANWHILE if complete else "")
        return Sweep(status="busy", plan=draft.made, said="memory is being written to; nothing was written")

    def _written(self, draft: _Draft) -> Sweep | None:
        """Writes a night. None: memory is not what it was planned on, so that nothing was written."""
        made, changes, bank = draft.made, self._changes(draft), self._bank()
        wishes = [w for w in made.wishes if self._wish_key(w) not in self._marks.asked]
        if not changes and not wishes and not bank:
            return Sweep(status="nothing", plan=made, said="nothing new was asked for or noted")
        with self.books.lock():
            self.catch_up()
            if self._marks.last != draft.began:
                return Sweep(status="busy", plan=made, said="another sweep ended in the meantime; nothing was written")
            if self._text(DocPath.parse(self.layout.curated)) != draft.before:
                return None
            fields = self._fields(draft)
            diff = self._diff([*changes, *bank])
            receipts = self._submitted(changes, bank, fields, draft.began)
            proposals = self._after(fields, receipts, wishes)
        status = receipts[0].status if receipts else "pending"
        return Sweep(
            status={"written": "dreamed"}.get(status, status),
            plan=made,
            diff=diff,
            proposals=proposals,
            change=receipts[0].change if receipts else None,
            revision=receipts[0].revision if receipts else None,
            said=(receipts[0].reason or "") if status not in ("written",) and receipts else "",
        )

    def _submitted(
        self, changes: list[Change], bank: list[Change], fields: dict[str, object], began: int
    ) -> tuple[Receipt, ...]:
        """One batch. What it comes from is written down before it, so that a crash does not lose that."""
        if not changes and not bank:
            return ()
        self.books.append("dreaming", fields, sync=False)  # the batch's own record follows, and is synced
        receipts = self._home.writing.submit([*changes, *bank], what="sweep", of=str(began))
        if receipts[0].status == "refused" and changes and bank:  # a page of the bank must not cost a night
            receipts = self._home.writing.submit(changes, what="sweep", of=str(began))
        return receipts

    def _bank(self) -> list[Change]:
        """What reflection wants of the bank's pages, where this dialect has such."""
        found = bank_changes(self._home, self._readings)
        return [change for change in found if self.layout.row_of(change.path).policy is Policy.MEMORY]

    def _changes(self, draft: _Draft) -> list[Change]:
        made, topics = draft.made, self.layout.topics
        added = (
            (f"{topics}/past.md", made.past, PAST),
            (f"{topics}/kept.md", made.moved, MOVED),
            (self.diary_path(), made.diary, diary.OPENING),
        )
        changes = [self._wish(made, path, Kind.APPEND, text, opening=opening) for path, text, opening in added if text]
        if made.memory is not None:
            base = "" if draft.before is None else digest_of(draft.before)
            changes.insert(0, self._wish(made, self.layout.curated, Kind.WRITE, made.memory, base=base))
        return changes

    def _wish(
        self, made: SweepPlan, path: str, kind: Kind, text: str, *, base: str | None = None, opening: str = ""
    ) -> Change:
        return Change(
            path=DocPath.parse(path),
            kind=kind,
            text=text,
            base=base,
            opening=opening,
            actor=Actor.DREAMER,
            origin=Origin.DERIVED,
            taint=self._taint(made),
            reason=diary.subject(made),
        )

    def _taint(self, made: SweepPlan) -> frozenset[Origin]:
        """The meet of all that went in. The gates let nothing untrusted pass; the road would refuse it once more."""
        found: set[Origin] = set()
        for note in (c.note for p in made.promotions for c in (p.candidate, *p.also)):
            for raw in note.raws:
                source = self.books.provenance.source(DocPath.parse(note.path), raw)
                if not source.promotable:
                    found |= ({source.origin} | source.taint) & (UNTRUSTED | {Origin.OUTSIDE})
        return frozenset(found)

    def diary_path(self) -> str:
        """Where the nights are told."""
        return self.layout.row("diary").path if self.layout.has("diary") else "DREAMS.md"

    def _diff(self, changes: list[Change]) -> str:
        return diff_of(changes, [self._text(change.path) for change in changes]) if changes else ""

    def _fields(self, draft: _Draft) -> dict[str, object]:
        """What the mark says of a night, but for what became of it."""
        made, key = draft.made, self.books.key
        told = [text for p in made.promotions for text in (p.fact, *(c.note.text for c in (p.candidate, *p.also)))]
        anew = [p.line for p in made.promotions if p.also or p.held or p.fact != p.candidate.note.fact]
        fields: dict[str, object] = {
            "through": draft.through,
            "preset": made.rules.name,
            "promoted": [*dict.fromkeys(key.of(key_of(text)) for text in told)],
            "from": traces(made, key=key, memory=self.layout.curated, prose=draft.prose),
            "reworded": [key.line(line) for line in (*anew, *(one.line for one in made.reworded))],
            "let_go": [key.of(key_of(held.fact)) for held in (*(r.held for r in made.retirements), *made.moves)],
            "kept": len(made.promotions),
            "retired": len(made.retirements),
            "moved": len(made.moves),
            "considered": len(made.considered),
        }
        return {name: value for name, value in fields.items() if value != []}

    def _after(
        self, fields: dict[str, object], receipts: tuple[Receipt, ...], wishes: list[Retirement]
    ) -> tuple[str, ...]:
        """Asks the owner, then the mark. What is written stands, even if the disk fails now: the next night marks it."""
        proposals: list[str | None] = []
        try:
            proposals += (self._propose(wish) for wish in wishes)
            self._mark(fields | {"asked": [self._wish_key(wish) for wish in wishes]}, receipts)
        except HomeError:
            if not receipts or receipts[0].status != "written":
                raise
        return tuple(filter(None, proposals))

    def _mark(self, fields: dict[str, object], receipts: tuple[Receipt, ...]) -> None:
        """The last step. What it names as promoted is not promoted again after somebody took it out."""
        fields = fields | {"change": receipts[0].change if receipts else None}
        self.books.append("sweep", {name: value for name, value in fields.items() if value not in (None, [])})
        self.catch_up()
        if self.layout.dialect == "agentscope":  # whose own consolidator looks there for when it last ran; derived
            state = json.dumps({"lastConsolidatedAt": self._home.clock().isoformat(), "change": fields["change"]})
            LineFolder(self._home.store, self.books.machine, self.layout.daily).put(CONSOLIDATION, state.encode())

    def _finish_mark(self) -> None:
        """After a crash between the last file and the mark: the night was carried out, so only its mark is missing."""
        tip = self.catch_up()
        meant: dict[str, object] = {"through": tip}
        begun: dict[str, dict[str, object]] = {}
        for record in self.books.ledger.records(self._marks.last, kinds=("dreaming", "intent", "done")):
            name = str(record.fields.get("id"))
            if record.kind == "dreaming":
                meant = dict(record.fields)
            elif record.kind == "intent" and record.fields.get("what") == "sweep":
                begun[name] = meant
            elif record.kind == "done" and name in begun:
                self.books.append("sweep", begun[name] | {"change": name, "after": "crash"})
                self.catch_up()
                return

    # -- the owner's own lines ----------------------------------------------------------------------------------------------

    def _wish_key(self, wish: Retirement) -> str:
        return self.books.key.of(f"{key_of(wish.held.fact)}\n{key_of(wish.by.text)}")

    def _propose(self, wish: Retirement) -> str | None:
        path = DocPath.parse(self.layout.curated)
        text = self._text(path)
        if text is None:
            return None
        lines = lines_of(text)
        place = next((n for n, line in enumerate(lines) if line.rstrip("\r\n") == wish.held.raw), None)
        if place is None or self._doubt(wish.by):
            return None
        new = f"- {wish.by.fact} (since {wish.until})"
        lines[place] = new + lines[place][len(wish.held.raw) :]
        change = Change(
            path=path,
            kind=Kind.WRITE,
            text="".join(lines),
            base=digest_of(text),
            actor=Actor.DREAMER,
            origin=Origin.DERIVED,
            reason="a newer note says otherwise",
        )
        return self._home.writing.propose([change], rule=OWNERS_LINE, reason=WHY_ASKED)[0].proposal

    def _text(self, path: DocPath) -> str | None:
        try:
            return self._home.store.read(path).text
        except NoSuchDocument:
            return None


def unsafe(text: str) -> str | None:
    """What the scan has against a line, or None. Anything it sees is enough: memory goes into every prompt."""
    from anima.gate.scan import scan_text

    found = scan_text(text)
    return f"the scan found {found[0].kind.partition(':')[0]} in it" if found else None
