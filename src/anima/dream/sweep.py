"""Sweeps: dreaming done, from the ledger and the logs to one revision.

Promise: all is written by the one road, in one batch, and the mark last: a crash before the mark repeats the sweep and
changes nothing twice. One sweep at a time across processes, by a lease; the mark it began with, and the memory it was
planned on, are compared again under the home lock. While a model is asked nothing but the lease is held. Every line that
a sweep writes is named with every line it was made of, by digest alone. Not here: what is promoted (plan, consult).
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any

from anima.dream import Due, consult, due, following, pages
from anima.dream.material import BUDGET, Figures, Held, LogNote, Material, Preset, Retirement, SweepPlan, Tallies
from anima.dream.pages import Item, Place, Retained, reflect, retained
from anima.dream.plan import PlannedNight, key_of
from anima.errors import Damaged, HomeBusy, HomeError, StaleWrite
from anima.gate import is_danger, is_secret
from anima.gate.scan import scan_text
from anima.layout import Policy
from anima.ledger import Record
from anima.memory.past import undone_of
from anima.memory.write import Writer, becoming
from anima.model import UNTRUSTED, Actor, Change, Complete, DocPath, Document, Kind, Nights, Origin, Receipt, Scope
from anima.site import Site
from anima.text.diff import diff_of
from anima.text.markdown import lines_of
from anima.text.pages import BANK

WHY_ASKED = "a newer note says otherwise, but the line is your own; dreaming does not touch it"
BY_DREAMS: dict[str, Any] = {"actor": Actor.DREAMER, "origin": Origin.DERIVED}  # whose the changes are


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What became of one sweep. `status`: dreamed, nothing, busy, pending, refused, dry-run."""

    status: str
    plan: SweepPlan | None = None
    diff: str = ""
    change: str | None = None  # the ledger's id, which `undo` takes
    revision: str | None = None
    proposals: tuple[str, ...] = ()
    said: str = ""


Fields = dict[str, object]  # of a record of the ledger
Cut = list[tuple[Item, tuple[str, ...]]]  # the notes of a daily log, with the digests of their lines


@dataclass(slots=True)
class _Marks:
    """What earlier sweeps left in the ledger."""

    last: int = 0  # the number of the newest mark
    through: int = 0  # the last record that sweep had seen
    time: datetime | None = None
    promoted: dict[str, date] = field(default_factory=dict)  # keyed digest of a fact: when
    asked: set[str] = field(default_factory=set)
    made_of: dict[str, list[Place]] = field(default_factory=dict)  # of lines in a model's words
    figures: dict[str, Figures] = field(default_factory=dict)  # by the digest of a line

    def fold(self, record: Record) -> None:
        fields = record.fields
        self.last, self.through, self.time = record.n, int(fields.get("through", 0)), record.time
        for gone in fields.get("let_go", ()):  # what dreaming itself took out may come back
            self.promoted.pop(gone, None)
        self.promoted |= dict.fromkeys(fields.get("promoted", ()), record.time.date())
        self.asked |= set(fields.get("asked", ()))
        self.figures |= fields.get("figures", {})
        anew = set(fields.get("reworded", ()))
        for path, source, dreamed in fields.get("from", ()) if anew else ():
            if dreamed in anew:
                self.made_of.setdefault(dreamed, []).append((path, source))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Draft:
    """One sweep as it is planned, and what it was planned on."""

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
        kept = [(p.fact, p.candidate) for p in self.plan.promotions]
        notes = [(fact, chosen.since, chosen.note.path, chosen.note.raws) for fact, chosen in kept]
        return self.before, notes, [r.held.raw for r in self.plan.retirements], [held.raw for held in self.plan.moves]


class Dreams:
    """The dreaming of one home. Lives as long as the home; keeps tallies and logs between sweeps."""

    budget, opening = BUDGET, pages.OPENING  # characters of MEMORY.md; how a diary begins

    def __init__(self, site: Site, writer: Callable[[], Writer]) -> None:
        self._site, self._store, self._layout, self._writer = site, site.store, site.layout, writer
        self._memory = DocPath.parse(site.layout.curated)
        self._tallies, self._marks, self._logs = Tallies(self._memory.text), _Marks(), dict[str, tuple[str, Cut]]()
        self._recalls: list[int] = []  # the numbers of their records
        self._scanned: dict[str, str | None] = {}
        self._bank = Reflection(site)
        self._mutex = threading.RLock()
        self._tried: datetime | None = None
        self.patience = consult.TIMEOUT  # seconds for one answer of a model

    def sweep(self, *, preset: str | None = None, since: date | None = None, complete: Complete | None = None) -> Sweep:
        """One sweep now. `complete` is a model, which is asked once more when its answer cannot stand."""
        rules = self.rules(preset)
        try:
            with self._store.lease("dreaming", patience=0):
                self._tried = self._site.clock()
                return self._swept(rules, since, complete)
        except HomeBusy as busy:
            return Sweep(status="busy", said=f"another sweep is under way ({busy.holder}); nothing was written")

    def tonight(
        self, *, preset: str | None = None, since: date | None = None, complete: Complete | None = None
    ) -> Sweep:
        """What a sweep would do now. Takes no lease and writes nothing."""
        draft = self._advised(self._drafted(self.rules(preset), since), since, complete)
        return Sweep(status="dry-run", plan=draft.made, diff=self._diff([*self._changes(draft), *self._bank.changes()]))

    def rules(self, preset: str | None = None) -> Preset:
        return Preset.named(preset or self._site.config.dream.preset)

    @property
    def last(self) -> datetime | None:
        """When this home last dreamed."""
        with self._mutex:
            self._catch_up()
            return self._marks.time

    def due(self) -> Due | None:
        """The sweep whose hour has come (`dream.at`, in the user's timezone), or None. Missed ones count as one; a home missed
        none before its first record, nor while `dream.enabled` is off."""
        if not self._at or (first := next(self._store.ledger.records(), None) if self._store.begun else None) is None:
            return None
        tried = max(filter(None, (self.last, self._tried)), default=first.time)
        return due(self._at, str(self._site.zone() or "UTC"), tried, self._site.clock())

    def coming(self) -> datetime | None:
        """When the next sweep will be due, in UTC; None where none is (`dream.at` is empty, or `dream.enabled` off)."""
        return following(self._at, str(self._site.zone() or "UTC"), self._site.clock()) if self._at else None

    @property
    def _at(self) -> str:
        return self._site.config.dream.at if self._site.config.dream.enabled else ""

    def diary(self) -> str:
        """What is told of all sweeps, newest last; "" before the first."""
        return self._site.text_of(self.diary_path) or ""

    @property
    def diary_path(self) -> DocPath:
        return DocPath.parse(self._layout.row("diary").path if self._layout.has("diary") else "DREAMS.md")

    def kept(self) -> list[Held]:
        """The lines of MEMORY.md that dreams wrote, in their order."""
        text = self._site.text_of(self._memory) if self._store.begun else None
        return [held for held in self._held(text, Tallies()) if held.machine] if text else []

    def nights(self) -> Nights:
        """All sweeps that were not taken back, counted from their marks."""
        found: dict[str, tuple[int, datetime]] = {}
        for record in self._store.ledger.records(kinds=("sweep",)) if self._store.begun else ():
            kept = record.fields.get("kept", len(record.fields.get("promoted", ())))
            found[str(record.fields.get("change", f"mark {record.n}"))] = int(kept), record.time
        for id in undone_of([intent for intent, _ in self._store.ledger.batches()]) if found else ():
            found.pop(str(id), None)
        last = max((time for _, time in found.values()), default=None)
        return Nights(nights=len(found), kept=sum(kept for kept, _ in found.values()), last=last)

    def dreamed_from(self) -> Mapping[Place, frozenset[str]]:
        """For each line that a dream was made of, as (path, digest), the digests of all lines that came of it, also
        those that were dreamed from dreamed lines. No page of the bank is named: it is made anew from the logs."""
        places: dict[Place, set[str]] = defaultdict(set)
        further: dict[str, set[str]] = defaultdict(set)
        # about to be written, and its mark
        for record in self._store.ledger.records(kinds=("dreaming", "sweep")) if self._store.begun else ():
            for path, source, dreamed in record.fields.get("from", ()):
                places[path, source].add(dreamed)
                further[source].add(dreamed)
        for found in places.values():
            waiting = [*found]
            while waiting:
                more = further.get(waiting.pop(), set()) - found
                found |= more
                waiting += more
        return {place: frozenset(found) for place, found in places.items()}

    def _catch_up(self) -> int:
        """Takes in what the ledger has since the last look; gives the number of its last record."""
        ledger = self._store.ledger
        if self._tallies.through > ledger.tip.n:
            self._tallies, self._marks, self._recalls = Tallies(self._memory.text), _Marks(), []
        tip = ledger.tip.n
        for record in ledger.records(self._tallies.through, kinds=("recall", "sweep")):
            if record.kind == "recall":
                self._recalls.append(record.n)
            else:
                self._marks.fold(record)
            self._tallies.fold(record)
        self._tallies.through = max(self._tallies.through, tip)
        return tip

    def _drafted(self, rules: Preset, since: date | None, moment: tuple[datetime, date] | None = None) -> _Draft:
        with self._mutex:
            tip = self._catch_up()
            began = self._marks.last
            tallies = self._tallies
            if since is not None:
                tallies = Tallies(self._memory.text)
                for record in self._store.ledger.records(0, kinds=("recall",)):
                    if str(record.fields.get("day", "")) >= since.isoformat():
                        tallies.fold(record)
            before, clock = self._site.text_of(self._memory), self._site.clock()
            now, today = moment or (clock.astimezone(UTC), clock.astimezone(self._site.zone()).date())
            notes, known = tuple(self._notes(tallies)), self._marks.promoted
            keys = {key_of(note.text) for note in notes if note.tally} if known else ()
            held = tuple(self._held(before or "", tallies))
            material = Material(
                now=now, today=today, rules=rules, notes=notes, memory=before or "", held=held, doubt=self._doubt
            )
            material = replace(
                material,
                promoted={key: known[digest] for key in keys if (digest := self._store.key.of(key)) in known},
                recalls=len(self._recalls) - bisect_right(self._recalls, self._marks.through),
                seed_form=self._layout.dialect == "nexo",
            )
            made = PlannedNight(material).plan()
        draft = _Draft(material=material, plan=made, made=made, before=before, began=began, through=tip)
        return self._with_diary(draft, made)

    def _with_diary(self, draft: _Draft, made: SweepPlan, *, prose: str = "", remark: str = "") -> _Draft:
        told = pages.with_diary(made, doubt=self._doubt, prose=prose, remark=remark)
        return replace(draft, made=told, prose=prose)

    def _advised(self, draft: _Draft, since: date | None, complete: Complete | None) -> _Draft:
        """The draft as a model would have it, as far as its answer may stand. Nothing is locked in here."""
        if complete is None:
            return draft
        source = self._store.provenance.source

        def shown(held: Held) -> bool:
            """Whether a model may see a line of memory: it can be built on, and the scan sees nothing in it."""
            return source(self._memory, held.raw).trusted and unsafe(held.raw) is None

        asked: dict[str, Any] = {"unsafe": unsafe, "timeout": self.patience}
        plan, said = consult.consult(draft.plan, draft.material, complete, shown=shown, **asked)
        found = self._with_diary(draft, plan, remark=said)
        if plan is not draft.plan and found.made.diary:  # it gave an answer that could stand
            prose = consult.narrated(found.made.diary, complete, **asked)
            remark = said if prose else f"{said} {consult.NO_PROSE}"
            found = self._with_diary(draft, plan, prose=prose, remark=remark)
        material = draft.material
        again = self._drafted(material.rules, since, (material.now, material.today))
        if again.lines != draft.lines:
            return self._with_diary(again, again.plan, remark=consult.CHANGED_MEANWHILE)
        return found

    def _notes(self, tallies: Tallies) -> Iterator[LogNote]:
        """Every note of every daily log, oldest first; logs that did not change are not cut again."""
        documents, daily = self._store.documents, self._layout.daily
        there = documents.list(daily) if documents.kind_of(daily) == "folder" else ()  # a new home may have no log yet
        files = (entry.path for entry in there if not entry.is_folder)
        paths = (path for path in map(DocPath.parse, files) if path.is_markdown)
        for day, path in sorted((day, path.text) for path in paths if (day := self._layout.date_of(path))):
            for item, digests in self._log(path):
                tally = tallies.of(path, digests)
                yield LogNote(path=path, line=item.line, raws=item.raws, text=item.text, day=day, tally=tally)

    def _log(self, path: str) -> Cut:
        if (document := _legible(self._site, DocPath.parse(path))) is None:
            return []
        if self._logs.get(path, ("", []))[0] != document.digest:
            line = self._store.key.line
            cut = [(item, tuple(map(line, item.raws))) for item in pages.items(document.text)]
            self._logs[path] = document.digest, cut
        return self._logs[path][1]

    def _held(self, memory: str, tallies: Tallies) -> Iterator[Held]:
        view, dreamed = self._store.provenance, pages.dreamed_on(memory)
        known = view.knows(self._memory)
        for item in pages.items(memory):
            raw = item.raws[0]
            fact, since = pages.fact_of(raw)
            source = view.source(self._memory, raw) if known else None
            machine = source is not None and source.actor is Actor.DREAMER
            wrote = source.time.date() if machine and source and source.time else None
            digest = self._store.key.line(raw)
            fact = (self._first_words(digest) if machine else "") or fact
            night, tally = dreamed.get(item.line) or wrote, tallies.of(self._memory.text, (digest,))
            yield Held(number=item.line, raw=raw, fact=fact, since=since, machine=machine, night=night, tally=tally)

    def _doubt(self, note: LogNote) -> str | None:
        """Why a note may not be built on."""
        path, view = DocPath.parse(note.path), self._store.provenance
        for raw in note.raws:
            source = view.source(path, raw)
            if not source.trusted:
                return "untrusted words went into it"
            if source.scope not in (None, Scope.MAIN) and not source.approver:
                return f"it was noted in a {source.scope} session"
        if note.text not in self._scanned:  # kept between sweeps: the scan is the dearest of all looks
            self._scanned[note.text] = unsafe(note.text)
        return self._scanned[note.text]

    def _first_words(self, digest: str, depth: int = 8) -> str:
        """What the note said that a line in a model's words was made of; "" for other lines, and where it is gone.
        Notes are compared with these words, so that rewording a line makes nothing of it new."""
        for path, source in self._marks.made_of.get(digest, ()):
            if path == self._memory.text:
                found = self._first_words(source, depth - 1) if depth else ""
            else:
                found = next((item.text for item, digests in self._log(path) if source in digests), "")
            if found:
                return " ".join(found.split())
        return ""

    def _swept(self, rules: Preset, since: date | None, complete: Complete | None) -> Sweep:
        with self._mutex:
            self._finish_mark()
        draft = self._advised(self._drafted(rules, since), since, complete)
        for _ in range(5):  # how often it is planned anew because somebody wrote in between
            # Where somebody wrote while the sweep was planned, theirs stays, and the sweep is planned on it.
            with suppress(StaleWrite), self._mutex:
                if (swept := self._written(draft)) is not None:
                    return swept
            draft = self._drafted(rules, since)
            draft = self._with_diary(draft, draft.plan, remark=consult.CHANGED_MEANWHILE if complete else "")
        return Sweep(status="busy", plan=draft.made, said="memory is being written to; nothing was written")

    def _written(self, draft: _Draft) -> Sweep | None:
        """Writes a sweep. None: memory is not what it was planned on, so that nothing was written."""
        made, changes, bank = draft.made, self._changes(draft), self._bank.changes()
        wishes = [wish for wish in made.wishes if self._wish_key(wish) not in self._marks.asked]
        if not changes and not wishes and not bank:
            return Sweep(status="nothing", plan=made, said="nothing new was asked for or noted")
        with self._store.lock():
            self._catch_up()
            if self._marks.last != draft.began:
                return Sweep(status="busy", plan=made, said="another sweep ended in the meantime; nothing was written")
            if self._site.text_of(self._memory) != draft.before:
                return None
            fields, diff = self._fields(draft), self._diff([*changes, *bank])
            receipts = self._submitted(changes, bank, fields, draft.began) if changes or bank else ()
            proposals = self._after(fields, receipts, wishes)
        swept = Sweep(status="pending", plan=made, diff=diff, proposals=proposals)
        if not receipts:
            return swept
        first, done = receipts[0], receipts[0].status == "written"
        swept = replace(swept, status="dreamed" if done else first.status, change=first.change, revision=first.revision)
        return swept if done else replace(swept, said=first.reason or "")

    def _submitted(self, changes: list[Change], bank: list[Change], fields: Fields, began: int) -> tuple[Receipt, ...]:
        """One batch. What it comes from is written down before it, so that a crash does not lose that."""
        self._store.append("dreaming", fields, sync=False)  # the batch's own record follows, and is synced
        receipts = self._writer().submit([*changes, *bank], what="sweep", of=str(began))
        if receipts[0].status == "refused" and changes and bank:  # a page of the bank must not cost a sweep
            receipts = self._writer().submit(changes, what="sweep", of=str(began))
        return receipts

    def _changes(self, draft: _Draft) -> list[Change]:
        made, topics, taint = draft.made, self._layout.topics, set[Origin]()
        # The meet of all that went in. The gates let nothing untrusted pass; the road would refuse it once more.
        for note in (c.note for p in made.promotions for c in (p.candidate, *p.also)):
            for source in (self._store.provenance.source(DocPath.parse(note.path), raw) for raw in note.raws):
                taint |= ({source.origin} | source.taint) & UNTRUSTED if not source.trusted else set()
        by = {**BY_DREAMS, "taint": frozenset(taint), "reason": pages.subject(made)}
        page = becoming(self._memory, draft.before, made.memory or "", **by)
        added = (
            (DocPath.parse(f"{topics}/past.md"), made.past, pages.PAST),
            (DocPath.parse(f"{topics}/kept.md"), made.moved, pages.MOVED),
            (self.diary_path, made.diary, pages.OPENING),
        )
        own = replace(page, kind=Kind.APPEND, base=None)
        further = [replace(own, path=path, text=text, opening=opening) for path, text, opening in added if text]
        return [*([page] if made.memory is not None else ()), *further]

    def _diff(self, changes: list[Change]) -> str:
        return diff_of(changes, [self._site.text_of(change.path) for change in changes]) if changes else ""

    def _fields(self, draft: _Draft) -> Fields:
        """What the mark says of a sweep, but for what became of it."""
        made, key = draft.made, self._store.key
        told = [text for p in made.promotions for text in (p.fact, *(c.note.text for c in (p.candidate, *p.also)))]
        anew = [p.line for p in made.promotions if p.also or p.held or p.fact != p.candidate.note.fact]
        figures = {key.line(p.line): p.candidate.figures for p in made.promotions}
        for one in made.reworded:  # what spoke for lines that are only said anew
            known = [found for held in one.held if (found := self._marks.figures.get(key.line(held.raw)))]
            figures |= {key.line(one.line): max(known)} if known else {}
        fields: Fields = {
            "through": draft.through,
            "preset": made.rules.name,
            "promoted": [*dict.fromkeys(key.of(key_of(text)) for text in told)],
            "from": pages.traces(made, key=key, memory=self._memory.text, prose=draft.prose),
            "reworded": [key.line(line) for line in (*anew, *(one.line for one in made.reworded))],
            "let_go": [key.of(key_of(held.fact)) for held in (*(r.held for r in made.retirements), *made.moves)],
            "figures": figures,
        }
        fields |= {"kept": len(made.promotions), "retired": len(made.retirements), "moved": len(made.moves)}
        fields |= {"considered": len(made.considered)}
        return {name: value for name, value in fields.items() if value not in ([], {})}

    def _after(self, fields: Fields, receipts: tuple[Receipt, ...], wishes: list[Retirement]) -> tuple[str, ...]:
        """Asks the owner, then the mark. What is written stands, even if the disk fails now: the next sweep marks it."""
        proposals: list[str | None] = []
        try:
            proposals += (self._propose(wish) for wish in wishes)
            change = receipts[0].change if receipts else None
            fields = fields | {"asked": [self._wish_key(wish) for wish in wishes], "change": change}
            # What it names as promoted is not promoted again after somebody took it out.
            self._store.append("sweep", {name: value for name, value in fields.items() if value not in (None, [])})
            self._catch_up()
            if self._layout.dialect == "agentscope":  # whose own consolidator looks there for when it last ran; derived
                state = json.dumps({"lastConsolidatedAt": self._site.clock().isoformat(), "change": change})
                self._store.logs(self._layout.daily).put(".consolidation_state", state.encode())
        except HomeError:
            if not receipts or receipts[0].status != "written":
                raise
        return tuple(filter(None, proposals))

    def _finish_mark(self) -> None:
        """After a crash between the last file and the mark: the sweep was carried out, so only its mark is missing."""
        meant: Fields = {"through": self._catch_up()}
        begun: dict[str, Fields] = {}
        for record in self._store.ledger.records(self._marks.last, kinds=("dreaming", "intent", "done")):
            name = str(record.fields.get("id"))
            if record.kind == "dreaming":
                meant = dict(record.fields)
            elif record.kind == "intent" and record.fields.get("what") == "sweep":
                begun[name] = meant
            elif record.kind == "done" and name in begun:
                self._store.append("sweep", begun[name] | {"change": name, "after": "crash"})
                self._catch_up()
                return

    def _wish_key(self, wish: Retirement) -> str:
        return self._store.key.of(f"{key_of(wish.held.fact)}\n{key_of(wish.by.text)}")

    def _propose(self, wish: Retirement) -> str | None:
        text = self._site.text_of(self._memory)
        lines = lines_of(text or "")
        place = next((n for n, line in enumerate(lines) if line.rstrip("\r\n") == wish.held.raw), None)
        if text is None or place is None or self._doubt(wish.by):
            return None
        lines[place] = f"- {wish.by.fact} (since {wish.until})" + lines[place][len(wish.held.raw) :]
        why = "a newer note says otherwise"
        change = becoming(self._memory, text, "".join(lines), **BY_DREAMS, reason=why)
        return self._writer().propose([change], rule="owners-line", reason=WHY_ASKED)[0].proposal


def unsafe(text: str) -> str | None:
    """What the scan has against a line, or None. Anything it sees is enough: memory goes into every prompt."""
    found = scan_text(text)
    return f"the scan found {found[0].kind.partition(':')[0]} in it" if found else None


class Reflection:
    """The bank of one home. Of the logs only those are cut and scanned again that changed since the last look."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._logs: dict[str, tuple[str, list[Retained]]] = {}  # by path: a log's digest, and what it retains

    def changes(self) -> list[Change]:
        """The changes that bring the bank pages in step with the logs, archived ones among them; none when they are."""
        documents, layout = self._site.store.documents, self._site.layout
        statements: list[Retained] = []
        for log in self._beneath(layout.daily):
            known = self._logs.get(log.path.text)
            if known is None or known[0] != log.digest:
                known = self._logs[log.path.text] = log.digest, self._retained(log)
            statements += known[1]
        standing = {page.path.text: page.text for page in self._beneath(BANK)}
        if not statements and not standing:
            return []
        return [
            becoming(path, standing.get(name), text, **BY_DREAMS, reason="reflection")
            for name, text in reflect(statements, standing, trusted=self._may_be_built_on).items()
            # One that cannot be read stays as it is, and some dialects have no such pages.
            if layout.row_of(path := DocPath.parse(name)).policy is Policy.MEMORY
            and (name in standing or documents.actual(path) is None)
        ]

    def _beneath(self, folder: str) -> Iterator[Document]:
        documents = self._site.store.documents
        for entry in documents.list_all(folder) if documents.actual(DocPath.parse(folder)) else ():
            path = DocPath.parse(entry.path)
            if path.is_markdown and (found := _legible(self._site, path)):
                yield found

    def _retained(self, log: Document) -> list[Retained]:
        """What one log retains. Statements with a secret or a danger in them are left out."""
        if "retain" not in log.text.casefold() or (day := self._site.layout.date_of(log.path)) is None:
            return []
        said = retained(log.text, path=log.path.text, day=day)
        return [one for one in said if not any(is_danger(f) or is_secret(f) for f in scan_text("".join(one.raws)))]

    def _may_be_built_on(self, one: Retained) -> bool:
        sources = (self._site.store.provenance.source(DocPath.parse(one.path), line) for line in one.raws)
        return all(one.trusted and (one.scope in (None, Scope.MAIN) or one.approver) for one in sources)


def _legible(site: Site, path: DocPath) -> Document | None:
    """A document; None where it is no text, of which doctor says more. A disk that fails for a moment raises Damaged: a
    sweep without this document would be another sweep."""
    try:
        return site.store.documents.read(path)
    except Damaged:
        raise
    except HomeError:
        return None
