"""The road in: every write, whoever makes it, passes here in this order and no other.

Change → scan → gate → (note: an entry in unreviewed/; ask: a Proposal waits) → home lock → compare with `base` → intent in the
ledger → files → done → unlock → history → Receipt. Promise: no step is left out for anybody; several changes in one batch are
all or nothing; a stale `base` raises StaleWrite with both versions; appends to a log never conflict.
Not here: what a verb wants to write (text.pages, sessions), the owner's yes (inbox), looking back (past).
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from anima.config import FILE, load
from anima.errors import BadArguments, BadText, HomeError, NoSuchDocument, Refused, StaleWrite
from anima.gate import GatePolicy, Situation, file_policy, judge, said, untrusted
from anima.gate.scan import redact, scan_text
from anima.layout import BOOTSTRAP, RUNBOOK, UNREVIEWED, Policy, layer_at, starter_texts
from anima.memory import FIRST, Proposal, Proposals, Unreviewed, WaitingCalls, content_of, drawn, layer_folder, noted
from anima.memory.forgotten import ForgottenList
from anima.model import (
    MAX_PATH,
    OWN_FILE,
    Actor,
    Answer,
    Change,
    Choose,
    DocPath,
    Finding,
    Kind,
    Origin,
    Receipt,
    Scope,
    Severity,
    Status,
    Verdict,
    digest_of,
)
from anima.site import Site
from anima.store import Batch
from anima.text import bullet_text
from anima.text.diff import diff_of
from anima.text.markdown import heading_of, lines_of
from anima.text.pages import as_bullet, log_heading, log_line, opening_for, placed, replaced, twin_of
from anima.text.toml import edited

log = logging.getLogger("anima.memory")
_Try = Callable[[], Receipt]
_FORGOTTEN = "the owner had this forgotten"
_LONG, _SAID = 100_000, 80  # characters of a text that words are looked for in, and of the words

OWNER_AT_HAND = Situation()
WHO = ("identity", "soul", "user")  # what a first conversation is about
TAIL, TAIL_LINES = 600, 4  # of what stands before an append is read with it


class Judged(NamedTuple):
    """What the gate says of a batch, and everything the scan saw in it."""

    verdict: Verdict
    findings: tuple[Finding, ...]


class Writer:
    """Carries changes into one home."""

    def __init__(self, site: Site, proposals: Proposals, forgotten: ForgottenList) -> None:
        self.site, self.store, self.layout, self.clock = site, site.store, site.layout, site.clock
        self.policy = GatePolicy.of(site.config.gate, site.layout.dialect)
        self.proposals, self.forgotten, self.unreviewed = proposals, forgotten, Unreviewed(site.store.documents)
        self.calls = WaitingCalls(site.store, proposals)
        self.watchers: list[Callable[[tuple[DocPath, ...]], None]] = []  # told which documents changed

    def submit(
        self,
        changes: Sequence[Change],
        *,
        situation: Situation = OWNER_AT_HAND,
        what: str = "write",
        of: str | None = None,
    ) -> tuple[Receipt, ...]:
        """What becomes of a batch: written, noted, pending or refused, a Receipt for each change."""
        changes = tuple(_checked(change) for change in changes)
        named = Counter(path.key for change in changes for path in (change.path, change.to) if path)
        if twice := next((key for key, times in named.items() if times > 1), None):
            raise BadArguments(f"{twice}: a batch says of each document once what becomes of it")
        bases = tuple(None if change.is_free else self._standing(change, situation) for change in changes)
        for change, base in zip(changes, bases, strict=True) if situation.submitted is None else ():
            change.check_base(base)
        judged = self.judge(changes, bases, situation)
        if judged.verdict.answer is Answer.DENY:
            return self._refused(changes, judged)
        if judged.verdict.answer is Answer.ASK:
            return self._proposed(changes, judged, situation)
        if judged.verdict.answer is Answer.NOTE:
            return self._noted(changes, judged, situation.layer)
        if situation.unseen:
            try:  # written, or put before the owner where what stands there does not let it: neither is told
                self.carry_out(changes, judged, what=what)
            except HomeError:
                self._proposed(changes, judged, situation)
            told = judged._replace(verdict=said(Answer.ASK, "unseen"))
            return tuple(_receipt(change, "pending", told) for change in changes)
        receipts = self.carry_out(changes, judged, what=what, of=of, approver=situation.approver)
        for change, base in zip(changes, bases, strict=True) if self.forgotten else ():
            is_owners = change.actor is Actor.OWNER and change.session is None
            if (is_owners or situation.approver) and (added := "".join(line for _, line in _added(base, change))):
                with self.store.lock():  # what the owner writes themselves, or says yes to, is forgotten no longer
                    self.forgotten.take_off(added)
        return receipts

    def _standing(self, change: Change, situation: Situation) -> str | None:
        """What stands there. To whoever does not see it whole no error tells of it."""
        try:
            return self.site.text_of(change.path)
        except HomeError:
            if situation.submitted is None:
                raise
            return None

    def configure(self, key: str, value: str | float | bool | Sequence[str] | None) -> Receipt:
        """Changes one thing in anima.toml, for the owner alone: no tool reaches this. The new text is read as an opening would
        read it before it is written, and then holds. Raises BadConfig."""
        path, site, text = DocPath.parse(FILE), self.site, self.site.text_of(DocPath.parse(FILE))
        if not site.config.trusted:
            raise Refused("nobody trusts this folder's anima.toml yet", rule="trust", hint="anima trust-home")
        new, held = edited(text or "", key, value), site.config
        flags = {key: held.value(key) for key, source in held.sources.items() if source == "flag"}
        config = load(new, env=site.env, flags=flags, trusted=True, own=site.register.owners_file(OWN_FILE))
        wish = owners(path, Kind.WRITE, new, base=digest_of(text))
        [receipt] = self.carry_out((wish,), Judged(said(Answer.ALLOW, "owner"), ()), what="settings")
        site.adopt(config)
        self.policy = GatePolicy.of(config.gate, site.layout.dialect)
        return receipt

    # -- the owner's verbs ----------------------------------------------------------------------------------------------

    def remember(self, fact: str, *, section: str | None, reason: str, choose: Choose | None = None) -> Receipt:
        """One line more in the curated memory, unless it says so already; what waits and says just that waits no longer."""
        answers: list[str | None] = []

        def once(likely: Sequence[str], otherwise: str) -> str | None:
            answers.extend([] if answers or choose is None else [choose(likely, otherwise)])  # nobody is asked twice
            return answers[0]

        tried = partial(self._remember, fact, section, reason)  # with the lock nobody is asked who was not asked before
        return self.repeated(lambda: tried(choose and once), last=lambda: tried(once if answers else None))

    def _remember(self, fact: str, section: str | None, reason: str, choose: Choose | None) -> Receipt:
        path = DocPath.parse(self.layout.curated)
        text, alike = self.site.text_of(path), self.unreviewed.saying(fact, path)
        settled, names = [becoming(*each) for each in self.unreviewed.left(alike)], tuple(each.id for each in alike)
        if twin := twin_of(text or "", fact, section=section):
            told = f"{path} line {twin.line} says so already: {twin.text}"
            if settled:
                self.submit(settled, what="drop")
            return Receipt(status="known", path=path, rule="duplicate", reason=told, noted=names)
        page = placed(text or "", as_bullet(fact), section=section, choose=choose)
        change = owners(path, Kind.WRITE, page.text, base=digest_of(text), reason=reason)
        receipt = self.submit([replace(change, under=page.section), *settled])[0]
        return replace(receipt, noted=names, likely=page.likely) if receipt.status == "written" else receipt

    def note(self, content: str, *, reason: str) -> Receipt:
        now = self.site.now()
        path = self.layout.daily_path(now.date())
        before = opening_for(self.site.text_of(path) or "")
        change = owners(path, Kind.APPEND, before + log_line(content, now), reason=reason)
        return self.submit([replace(change, opening=log_heading(now))], what="note")[0]

    def edit(self, path: DocPath, old: str, new: str, *, every: bool, reason: str) -> Receipt:
        def once() -> Receipt:
            document = self.store.documents.read(path)
            text = replaced(document.text, old, new, every=every, path=document.path.text)
            return self.submit([owners(document.path, Kind.WRITE, text, base=document.digest, reason=reason)])[0]

        return self.repeated(once)

    def repeated(self, once: _Try, *, waits: bool = False, last: _Try | None = None) -> Receipt:
        """What an addition or an edit comes to, made again where somebody else wrote meanwhile: the last time with the home's
        lock, so that nobody is faster, and as `last` says. One that `waits`, for a caller who may wait for the home, has none."""
        for _ in range(32):
            with suppress(StaleWrite, NoSuchDocument):
                return once()
        with suppress(StaleWrite):  # that nothing is there is said without waiting for a lock
            return once()
        with nullcontext() if waits or not self.store.begun else self.store.lock():
            return (last or once)()

    def seed(self, *, name: str, emoji: str | None, bootstrap: bool) -> tuple[str, ...]:
        wanted = []
        for file, text in starter_texts(name, emoji).items():
            role = "runbook" if file == RUNBOOK else file.partition(".")[0].casefold()
            if (file == BOOTSTRAP and not bootstrap) or not self.layout.has(role):
                continue
            path = DocPath.parse(self.layout.row(role).path)
            if self.store.documents.actual(path) is None:
                wanted.append(owners(path, Kind.WRITE, text, base="", reason="templates of a new home"))
        if wanted:
            self.submit(wanted, what="seed")
        self.store.documents.make_folder(self.layout.daily)
        return tuple(change.path.text for change in wanted)

    def propose(self, changes: Sequence[Change], *, rule: str, reason: str) -> tuple[Receipt, ...]:
        """Puts a batch before the owner, whatever the gate would allow; what it denies is refused all the same."""
        changes = tuple(_checked(change) for change in changes)
        judged = self.judge(changes, tuple(self.site.text_of(change.path) for change in changes), OWNER_AT_HAND)
        if judged.verdict.answer is Answer.DENY:
            return self._refused(changes, judged)
        asks = judged._replace(verdict=Verdict(answer=Answer.ASK, rule=rule, reason=reason))
        return self._proposed(changes, asks, OWNER_AT_HAND)

    # -- scan and gate --------------------------------------------------------------------------------------------------

    def judge(self, changes: Sequence[Change], bases: Sequence[str | None], situation: Situation) -> Judged:
        """The strictest verdict of the batch, and everything the scan saw in what would be new."""
        strictest: Verdict | None = None
        found: list[Finding] = []
        for change, base in zip(changes, bases, strict=True):
            if situation.submitted is not None:  # on what was handed in alone, whatever stands there
                change, base = replace(change, text=situation.submitted, base=None), None
            before = ""
            if situation.submitted is None and change.kind is Kind.APPEND:  # an order may be told in two parts
                before = "".join(lines_of((self.site.text_of(change.path) or "")[-TAIL:])[-TAIL_LINES:])
            own = (
                *scan_added(base, change, before=before),
                *self._named(change, situation),
                *self._known(base, change, situation),
                *self._carried(base, change),
            )
            found += own
            exists = base is not None or (change.is_free and self.store.documents.exists(change.path))
            fits = replace(situation, size=len(change.text.encode("utf-8", "replace")), exists=exists)
            to_row = self.layout.row_of(change.to) if change.to else None
            row = self.layout.row_of(change.path)
            verdict = judge(change, row=row, to_row=to_row, policy=self.policy, findings=own, situation=fits)
            if strictest is None or verdict.answer.strictness > strictest.answer.strictness:
                strictest = verdict
        if strictest is None:
            raise BadArguments("there is nothing to write")
        return Judged(strictest, tuple(found))

    def _named(self, change: Change, situation: Situation) -> tuple[Finding, ...]:
        """What the scan sees in a name that is new to the home: prompts and lists will show it."""
        path = change.to if change.kind is Kind.MOVE else change.path
        is_known = situation.submitted is None and path is not None and self.store.documents.exists(path)
        if path is None or change.kind is Kind.DELETE or is_known:
            return ()
        # A name that gives an order has no other use, so that is a danger.
        severity, found = {"instruction": Severity.DANGER}, scan_text(path.text.rpartition(".")[0])
        if self._is_told(change, situation) and self.forgotten.holds(path.text):
            found = (*found, seen_at("forgotten", Severity.DANGER, 1, _FORGOTTEN))
        return tuple(
            replace(f, severity=severity.get(f.kind, f.severity), line=1, last=1, message=f"{f.message} (in the name)")
            for f in found
        )

    def _carried(self, base: str | None, change: Change) -> tuple[Finding, ...]:
        """What the scan sees in a document that becomes more than memory by where it is moved to, as if it were written there."""
        is_more = change.to and file_policy(change.to, self.layout.row_of(change.to)) is not Policy.MEMORY
        return scan_added(None, replace(change, kind=Kind.WRITE, text=base)) if base and is_more else ()

    def _known(self, base: str | None, change: Change, situation: Situation) -> Iterator[Finding]:
        """What of a change was forgotten before, which the owner's own hand is not asked; and what of a clean session's is a
        copy of something in its own layer that nobody reviewed yet."""
        is_told = self._is_told(change, situation)
        if change.kind in (Kind.DELETE, Kind.MOVE):
            return
        is_agents = change.actor is Actor.AGENT and change.scope is Scope.MAIN
        is_clean = is_agents and not untrusted(change) and change.origin is not Origin.OWNER
        added = _added(base, change) if is_told or is_clean else []
        text = "".join(line for _, line in added)
        for n in sorted(self.forgotten.hits(text)) if is_told else ():
            yield seen_at("forgotten", Severity.DANGER, added[n][0], _FORGOTTEN)
        if is_clean and not situation.approver:
            for n in sorted(self.unreviewed.recognised(text, layer_folder(situation.layer))):
                yield seen_at("unreviewed", Severity.NOTE, added[n][0], "nobody reviewed this yet")

    def _is_told(self, change: Change, situation: Situation) -> bool:
        """Whether who writes is told of what was forgotten: not the owner's own hand, nor whoever does not see all, for whom
        `_noted` leaves it out. A list that cannot be read stops them all, before anything is written."""
        is_owners = change.actor in (Actor.OWNER, Actor.IMPORTER) and change.session is None
        sees_all = change.actor is not Actor.AGENT or (change.scope is Scope.MAIN and not situation.layer)
        return bool(self.forgotten) and sees_all and not is_owners

    def _noted(self, changes: Sequence[Change], judged: Judged, layer: str) -> tuple[Receipt, ...]:
        """Writes additions down where the owner reviews them; what waits there already is noted once."""
        now, waiting = self.site.now(), self.unreviewed.all(layer_folder(layer))
        place = DocPath.parse(f"{layer_folder(layer)}{UNREVIEWED}/{now.date().isoformat()}.md")
        entries = [noted(change, place, now, untrusted(change)) for change in changes]
        known = {entry.id for entry in waiting}
        found = {e.id: (e, change) for change, each in zip(changes, entries, strict=True) for e in each}
        new = {id: entry for id, entry in found.items() if id not in known}
        if changes[0].scope is not Scope.MAIN and not layer:  # what the owner had forgotten comes back by nobody else
            words = {id: "\n".join((entry.to.text, entry.section or "", entry.text)) for id, (entry, _) in new.items()}
            new = {id: each for id, each in new.items() if not self.forgotten.holds(words[id])}
        if self.unreviewed.is_full(waiting, found.keys(), changes[0]):
            return self._refused(changes, judged, full="too much waits for the owner already")
        if new:
            bare = replace(next(iter(new.values()))[1], base=None, to=None, added="", section=None, under=None)
            text = "".join(drawn(entry) for entry, _ in new.values())
            opening = f"# Unreviewed {now.date().isoformat()}\n\n"
            whole = replace(bare, path=place, kind=Kind.APPEND, text=text, opening=opening)
            away = [
                replace(bare, path=old, kind=Kind.MOVE, text="", opening="", to=to)
                for old, to in self.unreviewed.unseen(layer_folder(layer), now.date())
            ]
            # What the gate lets happen is that it is noted.
            allowed = judged._replace(verdict=replace(judged.verdict, answer=Answer.ALLOW))
            try:
                self.carry_out((whole, *away), allowed, what="note")
            except HomeError:  # what stands there does not let it; who notes does not see that, and the owner is asked
                self._proposed(tuple(changes), judged, Situation(submitted=whole.text))
        return tuple(
            _receipt(change, "noted", judged, noted=tuple(entry.id for entry in each))
            for change, each in zip(changes, entries, strict=True)
        )

    def _refused(self, changes: Sequence[Change], judged: Judged, *, full: str = "") -> tuple[Receipt, ...]:
        """What the gate denies, or for which there is no room any more."""
        if full:
            judged = judged._replace(verdict=Verdict(answer=Answer.DENY, rule="too-many-pending", reason=full))
        first, rule = changes[0], judged.verdict.rule
        path = redact(first.path.text)[0][:MAX_PATH]
        fields = {"path": path, "rule": rule, "actor": str(first.actor), "session": first.session}
        self.store.append("deny", {k: v for k, v in fields.items() if v is not None}, sync=False)
        return tuple(_receipt(change, "refused", judged) for change in changes)

    def _proposed(self, wanted: tuple[Change, ...], judged: Judged, situation: Situation) -> tuple[Receipt, ...]:
        changes, bases = wanted, tuple(self._standing(change, situation) for change in wanted)
        # Only to who sees the documents it is said that they hold it already.
        is_seen = situation.submitted is None and not situation.layer and wanted[0].scope is Scope.MAIN
        if is_seen and all(c.kind is Kind.WRITE and c.text == base for c, base in zip(changes, bases, strict=True)):
            return tuple(_receipt(change, "unchanged", judged) for change in wanted)
        with self.store.lock():
            before = self.proposals.before(changes[0], situation.layer)
            card = next((p for p in before[0] if p.is_first and p.session == wanted[0].session), None)
            if is_first := self._carded(changes, bases, situation, card):
                changes, bases = is_first
                found = (*card.findings, *judged.findings) if card else judged.findings
                judged = Judged(said(Answer.ASK, FIRST), tuple(dict.fromkeys(found)))
            # Whoever does not see the document is told by the words of their wish, not by what would become of it.
            said_so = (changes[0].path.key, situation.submitted, situation.wish)
            proposal = self.proposals.ask(
                changes,
                before=before,
                content=content_of(changes),
                asked="" if situation.submitted is None else self.store.key.of(repr(said_so)),
                rule=judged.verdict.rule,
                why=judged.verdict.reason,
                findings=judged.findings,
                diff=diff_of(changes, bases, whole=True),
                bases=bases,
                layer=situation.layer,
            )
            if proposal is None:
                full = "enough changes of whoever asks wait for the owner already"
                return self._refused(changes, judged, full=full)
            if is_first and card and card.id != proposal.id:
                self.proposals.remove(card.id)  # the new one holds all of it
        return tuple(_receipt(change, "pending", judged, proposal=proposal.id) for change in wanted)

    # -- the first conversation -----------------------------------------------------------------------------------------

    def carded(self, path: DocPath, session: str) -> str | None:
        """What a document would hold if the owner said yes to the card of a first conversation; None where none waits."""
        waits = self.proposals.of(session) if self.store.begun else ()
        texts = (c.text for p in waits if p.is_first for c in p.changes if c.path.key == path.key)
        return next(texts, None)

    def _carded(
        self, changes: Sequence[Change], bases: Sequence[str | None], situation: Situation, card: Proposal | None
    ) -> tuple[tuple[Change, ...], tuple[str | None, ...]] | None:
        """The changes of the card with one more, and what they were wished against, where a wish is part of what a blank home's
        agent and owner agree on. With who the agent is agreed on, the conversation is over, and its page goes with the
        same yes."""
        change = changes[0]
        is_whole = len(changes) == 1 and change.kind is Kind.WRITE and situation.submitted is None
        if not is_whole or change.scope is not Scope.MAIN or self.layout.row_of(change.path).role not in WHO:
            return None
        page = DocPath.parse(self.layout.row("bootstrap").path) if self.layout.has("bootstrap") else None
        is_there = page is not None and self.store.documents.exists(page)
        if card is None and not is_there:
            return None
        held = {c.path.key: (c, b) for c, b in zip(card.changes, card.bases, strict=True)} if card else {}
        held[change.path.key] = (change, bases[0])
        if page and is_there and any(self.layout.row_of(each.path).role == "identity" for each, _ in held.values()):
            text = self.site.text_of(page)
            gone = replace(change, path=page, kind=Kind.DELETE, text="", base=digest_of(text or ""), reason="")
            held[page.key] = (gone, text)
        order = sorted(held.values(), key=lambda each: (*WHO, "bootstrap").index(self.layout.row_of(each[0].path).role))
        return tuple(each for each, _ in order), tuple(text for _, text in order)

    # -- carrying out ---------------------------------------------------------------------------------------------------

    def carry_out(
        self,
        changes: tuple[Change, ...],
        judged: Judged,
        *,
        what: str,
        of: str | None = None,
        approver: str | None = None,
    ) -> tuple[Receipt, ...]:
        """Writes an allowed batch, all or nothing. Raises StaleWrite or Damaged with nothing changed."""
        # Only the owner's own clean session writes words of its own into history, unless the owner saw them.
        changes = tuple(c if approver or _may_give_reasons(c) else replace(c, reason="") for c in changes)
        words = "" if judged.findings else next(filter(None, (self._words(c, approver) for c in changes)), "")
        batch = Batch(changes=changes, verdict=judged.verdict, what=what, of=of, approver=approver, words=words)
        written = self.store.write(batch)
        paths = tuple({path.key: path for c in changes for path in (c.path, c.to) if path}.values())
        for watcher in tuple(self.watchers):
            try:
                watcher(paths)
            except Exception:  # whatever becomes of who is told, it is written
                log.exception("whoever is told of writes raised an error")
        digests = written.digests or (digest_of(self.site.text_of(change.to or change.path)) for change in changes)
        same = {"revision": written.revision, "change": written.change, "proposal": of if written.repeated else None}
        told = zip(changes, digests, strict=True)
        return tuple(_receipt(change, "written", judged, digest=digest, **same) for change, digest in told)

    def _words(self, change: Change, approver: str | None) -> str:
        """What a change adds, in a few words, for history: where nobody but the owner, a clean session of theirs, or who has
        their yes can have written it."""
        is_told = approver or (_may_give_reasons(change) and not untrusted(change) and layer_at(change.path) is None)
        if not is_told or self.layout.row_of(change.path).kind in ("skill", "unreviewed") or not change.text:
            return ""
        base = None
        if change.kind is Kind.WRITE and not change.added:
            with suppress(HomeError):
                base = self.site.text_of(change.path)
        if len(change.text) > _LONG and base is not None:
            return ""
        new = _added(base, replace(change, text=(change.added or change.text)[:_LONG]))
        lines = (re.sub(r"\[\d{1,2}:\d{2}\]\s+", "", bullet_text(line)) for _, line in new if heading_of(line) is None)
        return next((line for line in lines if line.strip()), "")[:_SAID]


def _checked(change: Change) -> Change:
    """A change whose text can be written at all."""
    try:
        change.text.encode("utf-8")
    except UnicodeEncodeError:
        raise BadText(change.path.text, "the text holds half a character (a lone surrogate)") from None
    if "\x00" in change.text:
        raise BadText(change.path.text, "the text holds a NUL character")
    if change.kind is Kind.MOVE and (change.to is None or change.to.key == change.path.key):
        raise BadArguments(f"{change.path}: a move needs another place to go to")
    if change.kind is Kind.APPEND:
        if not change.text.strip():
            raise BadArguments(f"{change.path}: there is nothing to append")
        return change if change.text.endswith("\n") else replace(change, text=change.text + "\n")
    return change


def scan_added(base: str | None, change: Change, *, before: str = "") -> tuple[Finding, ...]:
    """What the scan sees in the lines a change would add, with those around them; their numbers are those of the new text.
    `before` is what stands at the end of a document that something is appended to, for whoever sees all of it."""
    if change.kind in (Kind.DELETE, Kind.MOVE):
        return ()
    if change.kind is Kind.APPEND or base is None:
        before = before if before.endswith("\n") or not before else before + "\n"
        return _placed(scan_text(before + change.text), range(-before.count("\n") + 1, change.text.count("\n") + 2))
    lines, fresh = lines_of(change.text), {number for number, _ in _added(base, change)}
    near = sorted({at for number in fresh for at in range(max(1, number - 2), min(len(lines), number + 2) + 1)})
    found, first = list[Finding](), 0
    for end in (n for n in range(1, len(near) + 1) if n == len(near) or near[n] > near[n - 1] + 1):
        numbers = near[first:end]
        found += _placed(scan_text("".join(lines[number - 1] for number in numbers)), numbers)
        first = end
    return tuple(f for f in found if not fresh.isdisjoint(f.lines))


def _placed(found: Sequence[Finding], numbers: Sequence[int]) -> tuple[Finding, ...]:
    """Findings with the numbers that their lines have in the new text, those alone that reach into it."""
    placed = [
        replace(f, line=numbers[f.line - 1], last=numbers[min(f.lines[-1], len(numbers)) - 1])
        for f in found
        if f.line <= len(numbers)
    ]
    return tuple(replace(f, line=max(1, f.line)) for f in placed if f.last >= 1)


def _added(base: str | None, change: Change) -> list[tuple[int, str]]:
    """The lines a change would add, with their numbers in the new text."""
    held = Counter(lines_of(base or "") if change.kind is Kind.WRITE else ())
    added: list[tuple[int, str]] = []
    for number, line in enumerate(lines_of(change.text), start=1):
        if held[line] > 0:
            held[line] -= 1
        else:
            added.append((number, line))
    return added


def seen_at(kind: str, severity: Severity, line: int, message: str) -> Finding:
    return Finding(kind=kind, severity=severity, start=0, end=0, line=line, shown="", message=message)


def _may_give_reasons(change: Change) -> bool:
    is_owners = change.scope is Scope.MAIN and layer_at(change.path) is None
    return change.actor is not Actor.AGENT or (is_owners and not untrusted(change))


def _receipt(wish: Change, status: Status, judged: Judged, **more: Any) -> Receipt:
    return Receipt(
        status=status,
        path=wish.to or wish.path,
        rule=judged.verdict.rule,
        reason=judged.verdict.reason,
        findings=judged.findings,
        section=wish.under if status in ("written", "pending") else None,
        **more,
    )


def owners(path: DocPath, kind: Kind, text: str = "", **more: Any) -> Change:
    """A change by the owner's own hand."""
    return Change(path=path, kind=kind, text=text, actor=Actor.OWNER, origin=Origin.OWNER, **more)


def becoming(path: DocPath, now: str | None, wanted: str | None, **by: Any) -> Change:
    """The change that makes of what stands there now what is wanted, None for nothing: the owner's, unless `by` says whose."""
    kind = Kind.DELETE if wanted is None else Kind.WRITE
    return replace(owners(path, kind, wanted or "", base=digest_of(now)), **by)
