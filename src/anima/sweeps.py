"""Sweeps: one night's dreaming, from the ledger and the logs to one revision.

Promise: gather, plan, write by the one road as the dreamer, all in one batch, and the mark last: a crash before it repeats
the night and changes nothing twice. One sweep at a time across processes, by a lease that dies with its holder; the
mark it began with is compared again under the home lock, so that one who lost the lease cannot write. Nothing new since
the mark: nothing is written. Not here: what is promoted (dream), when to dream (schedule).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from anima.dream import diary
from anima.dream.material import Held, Material, Note, Plan, Retirement
from anima.dream.pages import MOVED, PAST, Item, dreamed_on, fact_of, items
from anima.dream.planning import key_of, plan
from anima.dream.score import Preset
from anima.dream.score import preset as preset_of
from anima.dream.tally import Tallies, Tally
from anima.errors import HomeBusy, HomeError, NoSuchDocument
from anima.ledger import Intent, Record
from anima.markdown import lines_of
from anima.model import UNTRUSTED, Actor, Change, DocPath, Kind, Origin, Receipt, Scope, digest_of
from anima.pending import diff_of

if TYPE_CHECKING:
    from anima.home import Home

LEASE = "dreaming"
OWNERS_LINE = "owners-line"
WHY_ASKED = "a newer note says otherwise, but the line is your own; dreaming does not touch it"
_KINDS = ("recall", "sweep")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """What became of one night. `status`: dreamed, nothing, busy, pending, refused, dry-run."""

    status: str
    plan: Plan | None = None
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


class Sweeps:
    """The dreaming of one home. Lives as long as it; keeps tallies and logs between nights."""

    def __init__(self, home: Home) -> None:
        self._home, self.books, self.layout = home, home.books, home.layout
        self._tallies, self._marks, self._logs = Tallies(), _Marks(), dict[str, _Log]()
        self._scanned: dict[str, str | None] = {}
        self._mutex = threading.RLock()
        self._tried: datetime | None = None
        self._lease = home.books.machine.lease(LEASE)

    def run(self, *, dry_run: bool, preset: str | None, since: date | None) -> Sweep:
        """One sweep now. A dry run takes no lease and writes nothing."""
        rules = self.rules(preset)
        if dry_run:
            with self._mutex:
                found = self._planned(rules, since)
                return Sweep(status="dry-run", plan=found, diff=self._diff(found))
        try:
            with self._lease.hold(patience=0), self._mutex:
                self._tried = self._home.clock()
                return self._swept(rules, since)
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
            self._tallies, self._marks = Tallies(), _Marks()
        tip = ledger.tip.n
        self._tallies.fold(self._marked(ledger.records(self._tallies.through, kinds=_KINDS)))
        self._tallies.through = max(self._tallies.through, tip)
        return tip

    def _marked(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if record.kind == "sweep":
                marks, fields = self._marks, record.fields
                marks.last, marks.through, marks.time = record.n, int(fields.get("through", 0)), record.time
                for gone in fields.get("let_go", ()):  # what we took out ourselves may come back
                    marks.promoted.pop(gone, None)
                marks.promoted |= dict.fromkeys(fields.get("promoted", ()), record.time.date())
                marks.asked |= set(fields.get("asked", ()))
            yield record

    @property
    def last(self) -> datetime | None:
        """When this home last dreamed."""
        with self._mutex:
            self.catch_up()
            return self._marks.time

    def _planned(self, rules: Preset, since: date | None) -> Plan:
        tip = self.catch_up()
        tallies = self._tallies if since is None else self._since(since)
        fresh = sum(1 for r in self.books.ledger.records(self._marks.through, kinds=("recall",)) if r.n <= tip)
        made = plan(self._material(rules, tallies, fresh))
        return diary.told(made, today=self._home.reading.today(), doubt=self._doubt)

    def _since(self, since: date) -> Tallies:
        tallies = Tallies()
        wanted = since.isoformat()
        records = self.books.ledger.records(0, kinds=("recall",))
        tallies.fold(record for record in records if str(record.fields.get("day", "")) >= wanted)
        return tallies

    def _material(self, rules: Preset, tallies: Tallies, fresh: int) -> Material:
        memory = self._text(DocPath.parse(self.layout.curated)) or ""
        promoted = {}
        notes = tuple(self._notes(tallies))
        known = self._marks.promoted
        if known:
            keys = {key_of(note.text) for note in notes if note.tally}
            promoted = {key: known[d] for key in keys if (d := self.books.key.of(key)) in known}
        return Material(
            now=self._home.clock().astimezone(UTC), today=self._home.reading.today(), rules=rules, notes=notes, memory=memory,
            held=tuple(self._held(memory, tallies)), doubt=self._doubt, promoted=promoted, recalls=fresh,
        )  # fmt: skip

    def _notes(self, tallies: Tallies) -> Iterator[Note]:
        """Every note of every daily log, oldest first; logs that did not change are not cut again."""
        dated = [(day, entry.path) for entry in self._home.store.list(self.layout.daily)
                 if not entry.is_folder and entry.path.casefold().endswith(".md") and (day := self._day(entry.path))]  # fmt: skip
        for day, path in sorted(dated):
            for item, digests in self._log(path):
                yield Note(
                    path=path,
                    line=item.line,
                    raws=item.raws,
                    text=item.text,
                    day=day,
                    tally=_tally(tallies, path, digests),
                )

    def _day(self, path: str) -> date | None:
        return self.layout.date_of(DocPath.parse(path))

    def _log(self, path: str) -> list[tuple[Item, tuple[str, ...]]]:
        try:
            document = self._home.store.read(DocPath.parse(path))
        except HomeError:
            return []  # an unreadable log has no notes tonight; doctor says more
        held = self._logs.get(path)
        if held is None or held.digest != document.digest:
            line = self.books.key.line
            cut = [(item, tuple(line(raw) for raw in item.raws)) for item in items(document.text)]
            self._logs[path] = held = _Log(digest=document.digest, notes=cut)
        return held.notes

    def _held(self, memory: str, tallies: Tallies) -> Iterator[Held]:
        path, view = DocPath.parse(self.layout.curated), self.books.view
        nights = dreamed_on(memory)
        for item in items(memory):
            raw = item.raws[0]
            fact, since = fact_of(raw)
            machine = view.knows(path) and view.source(path, raw).actor is Actor.DREAMER
            tally = _tally(tallies, path.text, (self.books.key.line(raw),))
            yield Held(
                number=item.line,
                raw=raw,
                fact=fact,
                since=since,
                machine=machine,
                night=nights.get(item.line),
                tally=tally,
            )

    def _doubt(self, note: Note) -> str | None:
        """Why a note may not be built on."""
        path, view = DocPath.parse(note.path), self.books.view
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
            from anima.scan import scan_text

            found = scan_text(text)
            self._scanned[text] = f"the scan found {found[0].kind.partition(':')[0]} in it" if found else None
        return self._scanned[text]

    # -- writing ----------------------------------------------------------------------------------------------------------

    def _swept(self, rules: Preset, since: date | None) -> Sweep:
        self._finish_mark()
        began = self._marks.last
        through = self.catch_up()
        made = self._planned(rules, since)
        changes = self._changes(made)
        wishes = [w for w in made.wishes if self._wish_key(w) not in self._marks.asked]
        if not changes and not wishes:
            return Sweep(status="nothing", plan=made, said="nothing new was asked for or noted")
        with self.books.machine.lock.hold():
            self.catch_up()
            if self._marks.last != began:
                return Sweep(status="busy", plan=made, said="another sweep ended in the meantime; nothing was written")
            diff = self._diff(made)
            receipts = self._home.writing.submit(changes, what="sweep", of=str(began)) if changes else ()
            proposals = tuple(filter(None, (self._propose(wish) for wish in wishes)))
            self._mark(made, through, receipts, wishes)
        status = receipts[0].status if receipts else "pending"
        return Sweep(
            status={"written": "dreamed"}.get(status, status), plan=made, diff=diff, proposals=proposals,
            change=receipts[0].change if receipts else None, revision=receipts[0].revision if receipts else None,
            said=(receipts[0].reason or "") if status not in ("written",) and receipts else "",
        )  # fmt: skip

    def _changes(self, made: Plan) -> list[Change]:
        topics = self.layout.topics
        added = (
            (f"{topics}/past.md", made.past, PAST),
            (f"{topics}/kept.md", made.moved, MOVED),
            (self._diary_path(), made.diary, diary.OPENING),
        )
        changes = [self._wish(made, path, Kind.APPEND, text, opening=opening) for path, text, opening in added if text]
        if made.memory is not None:
            before = self._text(DocPath.parse(self.layout.curated))
            base = "" if before is None else digest_of(before)
            changes.insert(0, self._wish(made, self.layout.curated, Kind.WRITE, made.memory, base=base))
        return changes

    def _wish(
        self, made: Plan, path: str, kind: Kind, text: str, *, base: str | None = None, opening: str = ""
    ) -> Change:
        return Change(path=DocPath.parse(path), kind=kind, text=text, base=base, opening=opening, actor=Actor.DREAMER,
                      origin=Origin.DERIVED, taint=self._taint(made), reason=diary.subject(made))  # fmt: skip

    def _taint(self, made: Plan) -> frozenset[Origin]:
        """The meet of all that went in. The gates let nothing untrusted pass; the road would refuse it once more."""
        found: set[Origin] = set()
        for promotion in made.promotions:
            note = promotion.candidate.note
            for raw in note.raws:
                source = self.books.view.source(DocPath.parse(note.path), raw)
                if not source.promotable:
                    found |= ({source.origin} | source.taint) & (UNTRUSTED | {Origin.OUTSIDE})
        return frozenset(found)

    def _diary_path(self) -> str:
        return self.layout.row("diary").path if self.layout.has("diary") else "DREAMS.md"

    def _diff(self, made: Plan) -> str:
        changes = self._changes(made)
        return diff_of(changes, [self._text(change.path) for change in changes]) if changes else ""

    def _mark(self, made: Plan, through: int, receipts: tuple[Receipt, ...], wishes: list[Retirement]) -> None:
        """The last step. What it names as promoted is not promoted again after somebody took it out."""
        key = self.books.key
        fields: dict[str, object] = {
            "through": through, "preset": made.rules.name, "change": receipts[0].change if receipts else None,
            "promoted": [key.of(key_of(p.fact)) for p in made.promotions],
            "from": [[p.candidate.note.path, key.line(p.candidate.note.raws[0]), key.line(p.line)] for p in made.promotions],
            "let_go": [key.of(key_of(held.fact)) for held in (*(r.held for r in made.retirements), *made.moves)],
            "retired": len(made.retirements), "moved": len(made.moves), "considered": len(made.considered),
            "asked": [self._wish_key(wish) for wish in wishes],
        }  # fmt: skip
        self.books.note("sweep", {name: value for name, value in fields.items() if value not in (None, [])})
        self.catch_up()

    def _finish_mark(self) -> None:
        """After a crash between the last file and the mark: the night was carried out, so only its mark is missing."""
        tip = self.catch_up()
        begun: dict[str, Intent] = {}
        for record in self.books.ledger.records(self._marks.last, kinds=("intent", "done")):
            if record.kind == "intent" and record.fields.get("what") == "sweep":
                begun[str(record.fields.get("id"))] = Intent.from_record(record)
            elif record.kind == "done" and (done := begun.get(str(record.fields.get("id")))):
                self.books.note("sweep", {"through": tip, "change": done.id, "after": "crash"})
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
        new = f"- {' '.join(wish.by.text.split())} (since {wish.until})"
        lines[place] = new + lines[place][len(wish.held.raw) :]
        change = Change(path=path, kind=Kind.WRITE, text="".join(lines), base=digest_of(text), actor=Actor.DREAMER,
                        origin=Origin.DERIVED, reason="a newer note says otherwise")  # fmt: skip
        return self._home.writing.propose([change], rule=OWNERS_LINE, reason=WHY_ASKED)[0].proposal

    def _text(self, path: DocPath) -> str | None:
        try:
            return self._home.store.read(path).text
        except NoSuchDocument:
            return None


def _tally(tallies: Tallies, path: str, digests: tuple[str, ...]) -> Tally | None:
    return next((found for digest in digests if digest and (found := tallies.of(path, digest))), None)
