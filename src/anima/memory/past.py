"""The past of a home: log, diff, why, undo, restore, audit.

Promise: undo is a change like any other and passes the same road; it takes back one change, a batch or all of a
session, also when other lines changed since, and gives StaleWrite with both versions where it cannot tell what to do.
Not here: writing itself (write), what the ledger's records look like (ledger).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from itertools import chain

from anima.errors import BadArguments, NoSuchRevision, StaleWrite
from anima.ledger import Edit, Intent, Record
from anima.ledger.views import OWNERS, Fault, Verification, verify
from anima.memory import content_of, legible
from anima.memory.write import Writer, becoming
from anima.model import MAX_PATH, Actor, Change, DocPath, Document, Kind, Origin, Receipt, Source, digest_of
from anima.site import Site
from anima.store import History, Revision
from anima.store.edits import new_lines
from anima.text.diff import diff_of, merge
from anima.text.markdown import lines_of

Texts = dict[str, tuple[DocPath, str | None, str | None]]  # by the key of a path: text now, text wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Where one line came from."""

    path: DocPath
    line: int
    text: str
    source: Source
    sentence: str
    revision: str | None  # the commit that brought it, when history has it


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One carried-out change as the ledger tells it."""

    id: str
    time: datetime
    what: str
    actor: Actor
    origin: Origin
    session: str | None
    rule: str | None
    approver: str | None
    paths: tuple[str, ...]
    of: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TakingBack:
    """What an undo would do. `content` binds one to just this."""

    ids: tuple[str, ...]
    files: int
    diff: str
    content: str


class Past:
    """The past of one home."""

    def __init__(self, site: Site, writer: Writer) -> None:
        self._site, self.store, self.writer, self.clock = site, site.store, writer, site.clock
        self._looked_up: tuple[str | None, str, tuple[str, ...]] = (None, "", ())  # tip, change, its revisions

    # -- looking --------------------------------------------------------------------------------------------------------

    def log(self, path: str | DocPath | None = None, *, limit: int = 20) -> tuple[Revision, ...]:
        """The newest revisions, of the home or of one document."""
        self.store.commit()
        found, spelt = self._history(), self._spelt(DocPath.parse(path)) if path else None
        return tuple(found.log(spelt, limit=limit)) if found else ()

    def diff(self, revision: str, other: str | None = None, *, path: str | DocPath | None = None) -> str:
        """What one revision changed, or what changed between two."""
        history, spelt = self._need_history(), self._spelt(DocPath.parse(path)) if path else None
        if other is not None:
            return history.diff(revision, other, spelt)
        line = history.log(limit=1_000_000)
        place = next((n for n, found in enumerate(line) if found.id.startswith(revision)), None)
        if place is None:
            raise NoSuchRevision(f"history has no revision {revision}", hint="anima history lists them")
        return history.diff(line[place + 1].id if place + 1 < len(line) else None, revision, spelt)

    def changes(self, *, session: str | None = None, limit: int | None = None) -> list[Done]:
        """Carried-out changes, newest first."""
        found = []
        for intent, record in self._done():
            if session in (None, intent.session):
                paths = dict.fromkeys(path for edit in intent.edits for path in (edit.path, edit.to) if path)
                told = {name: getattr(intent, name) for name in "id what actor origin session rule approver of".split()}
                found.append(Done(time=record.time, paths=tuple(paths), **told))
        return found[::-1][:limit]

    def standing(self, what: str) -> list[Done]:
        """The changes of a kind (`sweep`, `tidy`) that were not taken back, newest first."""
        found = self.changes()
        undone = undone_of(found[::-1])
        return [each for each in found if each.what == what and each.id not in undone]

    def why(self, path: str | DocPath, line: int) -> Why:
        """Where a line came from."""
        document = self.store.documents.read(DocPath.parse(path))
        lines = lines_of(document.text)
        if not 1 <= line <= len(lines):
            raise BadArguments(f"{path} has {len(lines)} lines, and no line {line}")
        text = lines[line - 1].rstrip("\r\n")
        source = self.store.provenance.source(document.path, text) if self.store.begun else OWNERS
        said = source.sentence if text.strip() else "nothing stands on it, so nobody is noted for it"
        if source.actor is Actor.DREAMER and text.strip():  # what spoke for it
            digest, nights = self.store.key.line(text), self.store.ledger.records(kinds=("dreaming",))
            told = [record.fields["figures"][digest] for record in nights if digest in record.fields.get("figures", {})]
            for score, recalls, days in told[-1:]:
                said += f"; recalled {recalls} times on {days} days, score {score}"
        revision, history = None, self._history()
        if source.change is not None and history is not None:
            brought = (r.id for r in history.log(limit=2_000) if source.change in (r.batch or "").split())
            revision = next(brought, None)
        return Why(path=document.path, line=line, text=text, source=source, sentence=said, revision=revision)

    def sources(self, document: Document) -> Iterator[Source | None]:
        """Where each line of a document came from; None for one with nothing on it."""
        view = self.store.provenance if self.store.begun else None
        for line in lines_of(document.text):
            raw = line.rstrip("\r\n")
            yield None if not raw.strip() else view.source(document.path, raw) if view else OWNERS

    @property
    def tip(self) -> int:
        """The number of the ledger's newest record."""
        return self.store.ledger.tip.n if self.store.begun else 0

    def since(self, number: int, *kinds: str) -> Iterator[Record]:
        """What the ledger says happened after the record of that number, of these kinds or of all."""
        return self.store.ledger.records(number, kinds=kinds) if self.store.begun else iter(())

    def size(self) -> int:
        """Differs when the ledger grew. Nothing is read for it."""
        return self.store.log.size() if self.store.begun else 0

    def commit(self) -> None:
        """Gives what was appended its revision. Begins nothing where nothing was ever written."""
        if self.store.begun:
            self.store.commit()

    def tell(self, watcher: Callable[[tuple[DocPath, ...]], None]) -> Callable[[], None]:
        """Tells a watcher of every write of this process, until what is returned is called."""
        self.writer.watchers.append(watcher)
        return lambda: self.writer.watchers.remove(watcher)

    def audit(self) -> Verification:
        """Whether the ledger is whole: every record in its place, none altered, none cut off at the end."""
        if not self.store.begun:
            gone = Fault(line=1, offset=0, kind="truncated", what="the ledger is gone, and this home had one")
            return Verification(records=0, fault=gone if self.store.had_ledger() else None)
        return verify(self.store.log, key=self.store.key, anchors=self.store.anchors())

    @property
    def problem(self) -> str | None:
        """Why there is no history; None where there is, or it is switched off."""
        return self.store.history_problem if self.store.begun else None

    def history_problems(self) -> list[str]:
        """What is wrong with history; nothing when it is switched off."""
        history = self._history()
        return history.check() if history is not None else [self.problem] if self.problem else []

    # -- taking back ----------------------------------------------------------------------------------------------------

    def undo(
        self, *, change: str | None = None, session: str | None = None, content: str | None = None
    ) -> tuple[Receipt, ...]:
        """Takes back one change (the newest of all when none is named), or everything a session wrote. `content`, the
        digest `show_undo` gave, binds it to what was seen."""
        chosen, wanted = self.plan_undo(change=change, session=session)
        if content is not None and content != content_of(wanted):
            raise StaleWrite(wanted[0].path.text if wanted else chosen[0].edits[0].path, theirs=None, ours=None)
        if not wanted:
            return ()
        names = " ".join(intent.id for intent in chosen)
        return self.writer.submit(wanted, what="undo", of=names if len(names) <= MAX_PATH else session)

    def last_sweep(self) -> str:
        """The id of the newest night of dreaming that was not taken back."""
        if found := self.standing("sweep"):
            return found[0].id
        raise NoSuchRevision("there is no night of dreaming to take back", hint="anima history lists what there is")

    def show_undo(self, *, change: str | None = None, session: str | None = None) -> TakingBack:
        """What would be taken back, for eyes: noted lines without what we wrote beside them. Nothing is written."""
        chosen, wanted = self.plan_undo(change=change, session=session)
        bases = [legible(each.path, self.writer.site.text_of(each.path)) for each in wanted]
        diff = diff_of([replace(each, text=legible(each.path, each.text) or "") for each in wanted], bases)
        return TakingBack(ids=tuple(i.id for i in chosen), files=len(wanted), diff=diff, content=content_of(wanted))

    def plan_undo(self, *, change: str | None = None, session: str | None = None) -> tuple[list[Intent], list[Change]]:
        """What would be taken back, and the changes that do it: none for what was taken back before. Nothing is written."""
        self.store.commit()
        done = [intent for intent, _ in self._done()]
        undone = undone_of(done)
        if session is not None:
            chosen = [i for i in done if i.session == session and i.id not in undone]
        elif change is not None:
            chosen = [i for i in done if i.id == change]
        else:
            named = ("undo", "seed")  # the pages of a new home go only when they are named
            chosen = [i for i in done if i.what not in named and i.id not in undone][-1:]
        if not chosen:
            which = f" of session {session}" if session is not None else f" {change}" if change is not None else ""
            raise NoSuchRevision(f"there is no change{which} to take back", hint="anima history lists them")
        chosen.reverse()  # the newest first
        texts: Texts = {}
        taken = () if change is not None and change in undone else chosen
        for intent in taken:
            for edit in reversed(intent.edits):
                self._reverse(edit, intent, texts)
        if taken and not texts:
            raise _purged(chosen[0])
        return chosen, [becoming(*found) for found in texts.values() if found[1] != found[2]]

    def _reverse(self, edit: Edit, intent: Intent, texts: Texts) -> None:
        path = DocPath.parse(edit.path)
        if edit.kind is Kind.MOVE:
            there = DocPath.parse(edit.to or edit.path)
            now, held = self._held(there, texts)
            here_now, here = self._held(path, texts)
            if held is None or here is not None:
                raise StaleWrite(path.text, theirs=here, ours=held)
            texts[there.key], texts[path.key] = (there, now, None), (path, here_now, held)
            return
        now, held = self._held(path, texts)
        is_new = held is not None and self.store.key.of(held) == edit.digest
        is_log = edit.kind is Kind.APPEND
        if is_log or (edit.base is None and held is not None and not is_new):
            rest = self._without(held or "", edit, intent)  # others wrote into the document this change made
            if rest != held:
                texts[path.key] = (path, now, rest if is_log or rest.strip() else None)
            return
        is_made = is_new and edit.base is None  # which needs no history
        old, new = (None, held) if is_made else self._step(intent, edit, path, held)
        if old == new:
            return  # all that it wrote was purged
        wanted = old
        if held != new:  # the step old → new is taken out of what stands there now
            wanted = merge(new, held, old) if held is not None and new is not None and old is not None else None
            if wanted is None:
                raise StaleWrite(path.text, theirs=held, ours=old)
        texts[path.key] = (path, now, wanted if wanted or edit.base else None)

    def _held(self, path: DocPath, texts: Texts) -> tuple[str | None, str | None]:
        """(text on disk, text as wanted so far)."""
        return texts[path.key][1:] if path.key in texts else (self.writer.site.text_of(path),) * 2

    def _without(self, text: str, edit: Edit, intent: Intent) -> str:
        """A text without what one change added: those very bytes, or where they moved, the last run of its lines."""
        data, before, after = text.encode("utf-8"), edit.before or 0, edit.after or 0
        piece = data[before:after].decode("utf-8", "replace")
        if self.store.key.of(piece) == edit.digest and piece.encode("utf-8") == data[before:after]:
            first, rest = data[:before].decode("utf-8"), data[after:].decode("utf-8")
            return first + ("\n" if first and rest and not first.endswith("\n") else "") + rest
        lines = lines_of(text)
        keyed = [self.store.key.line(line) for line in lines]
        solid = [n for n, digest in enumerate(keyed) if digest]
        wanted = self.store.key.each(edit.lines)
        # The last run of these lines, from the end on: `str.find` takes linear time whatever the lines, `str.rfind` does not.
        back, run = ("\n".join(["", *reversed(each), ""]) for each in ([keyed[n] for n in solid], wanted))
        at = back.find(run) if wanted else -1
        if at < 0:
            around = self._was_purged() and self._around(intent, DocPath.parse(edit.path))
            held = set(self.store.key.each(self.store.key.distinct(around[0] or ""))) if around else wanted
            left = "".join(each for each in wanted if each in held)  # what no purge took out of what brought it
            if left == edit.lines:
                raise StaleWrite(edit.path, theirs=text, ours=None)
            return self._without(text, replace(edit, lines=left), intent) if left else text
        found = len(solid) - back.count("\n", 0, at) - len(wanted)
        return "".join(lines[: solid[found]] + lines[solid[found + len(wanted) - 1] + 1 :])

    def _step(self, intent: Intent, edit: Edit, path: DocPath, held: str | None) -> tuple[str | None, str | None]:
        """A document before and after a change, from history; after a purge, both as if the words had never been there."""
        key, wanted, around = self.store.key, {edit.base, edit.digest}, self._around(intent, path)
        history = self._need_history()
        others = (self._shown(history, r.id, path) for r in history.log(self._spelt(path), limit=100_000))
        found: dict[str | None, str | None] = {None: None}
        for text in chain([held], around, others):
            found |= {digest: text} if text is not None and (digest := key.of(text)) in wanted else {}
            if wanted <= found.keys():
                return found[edit.base], found[edit.digest]
        if not (around and self._was_purged()):
            said = f"history does not hold {path} as it was around change {intent.id}"
            raise NoSuchRevision(said, hint="it was made while history was off; anima history has the others")
        new, old = (text or "" for text in (*around, None)[:2])
        fresh = new_lines(old, new, key=key)
        grown = len(new.encode("utf-8")) - len(old.encode("utf-8")) == (edit.after or 0) - (edit.before or 0)
        only_added = edit.base in (None, key.of(old)) and set(key.each(fresh)) <= set(key.each(edit.lines))
        if only_added or (grown and fresh == edit.lines):
            return old, new
        raise _purged(intent)

    def _around(self, intent: Intent, path: DocPath) -> list[str | None]:
        """A document in the revision that brought a change, and in the one before it: nearly always one has it."""
        history = self._need_history()
        head = history.head()
        if self._looked_up[:2] != (head, intent.id):  # once for all documents of one change
            line = history.log(limit=100_000)
            place = next((n for n, found in enumerate(line) if intent.id in (found.batch or "").split()), len(line))
            self._looked_up = (head, intent.id, tuple(found.id for found in line[place : place + 2]))
        return [self._shown(history, revision, path) for revision in self._looked_up[2]]

    def _was_purged(self) -> bool:
        return any(record.fields.get("purge") for record in self.since(0, "forget"))

    def restore(self, path: str | DocPath, *, at: str, base: str | None = None) -> Receipt:
        """Writes a document as it stood in a revision, or at the end of a day or moment. `base` is the digest of what it
        is to replace ("" for nothing)."""
        history, path = self._need_history(), DocPath.parse(path)
        self.store.commit()
        revision = at
        if not re.fullmatch(r"[0-9a-f]{4,40}", at):
            moment = _moment(at, self.writer.site.now())
            if (found := next((r.id for r in history.log(limit=1_000_000) if r.time <= moment), None)) is None:
                raise NoSuchRevision(f"history begins after {at}")
            revision = found
        text = self._shown(history, revision, path)
        if text is None:
            raise NoSuchRevision(f"{path} was not there at {at}")
        now = self.writer.site.text_of(path)
        if base is not None and base != digest_of(now):
            raise StaleWrite(path.text, theirs=now, ours=text)
        return self.writer.submit([becoming(path, now, text)], what="restore", of=revision[:12])[0]

    def text_at(self, path: DocPath, revision: str) -> str | None:
        """A document as a revision holds it; None when it was not there, or there is no history."""
        history = self._history()
        return self._shown(history, revision, path) if history else None

    # -- small ----------------------------------------------------------------------------------------------------------

    def _done(self) -> Iterator[tuple[Intent, Record]]:
        return self.store.ledger.batches() if self.store.begun else iter(())

    def _spelt(self, path: DocPath) -> str:
        return self.store.documents.actual(path) or path.text

    def _history(self) -> History | None:
        return self.store.history if self.store.begun else None

    def _need_history(self) -> History:
        history = self._history()
        if history is None:
            why = self.problem if self.store.begun else "nothing was written here yet"
            raise NoSuchRevision(f"there is no history: {why or 'it is switched off'}", hint="anima doctor says more")
        return history

    def _shown(self, history: History, revision: str, path: DocPath) -> str | None:
        data = history.show(revision, self._spelt(path))
        return None if data is None else data.decode("utf-8", "replace")


def _purged(intent: Intent) -> NoSuchRevision:
    said = f"what change {intent.id} wrote or took out was purged, and what was purged cannot come back"
    return NoSuchRevision(said, hint="anima undo NUMBER takes back another one; anima history lists them")


def undone_of(done: Sequence[Intent | Done]) -> set[str | None]:
    """Which of the changes that were carried out, the oldest first, an undo took back that was not taken back itself."""
    undone = set[str | None]()
    ids = {change.id for change in done}  # no conversation that is called like a change goes with it
    for change in reversed(done):
        if change.what == "undo" and change.id not in undone:
            undone.update((change.of or "").split())  # changes; of very many, their session with all it wrote before
        elif change.session in undone and change.session not in ids:
            undone.add(change.id)
    return undone


def _moment(at: str, now: datetime) -> datetime:
    """A day (its end) or a moment, in UTC unless it says otherwise; `yesterday` is the owner's own."""
    if at.casefold() == "yesterday":
        return datetime.combine(now.date() - timedelta(days=1), time.max, now.tzinfo)
    try:
        if re.fullmatch(r"\d{4}-\d{2}-\d{2}", at):
            return datetime.combine(date.fromisoformat(at), time.max, UTC)
        found = datetime.fromisoformat(at)
    except ValueError:
        said = f"{at!r} is neither a revision nor a time; write a3f9c2, yesterday, 2026-05-08 or 2026-05-08T14:30"
        raise BadArguments(said) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
