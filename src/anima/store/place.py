"""The store of a home in a folder: documents, ledger, small state and history, each opened when first needed.

Promise: a batch that a crash interrupted is finished, or taken back, before anything else is written; history may be
late or broken without hurting a document. Lives as long as its Home. Not here: what is written, and whether (memory).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING

from anima.config import FILE
from anima.errors import BadInput, Damaged, HomeError, NoSuchDocument, refuse_newer
from anima.ledger.chain import FORMAT, Edit, Intent, Key, Ledger, Record
from anima.ledger.provenance import Provenance
from anima.model import Actor, DocPath, Kind
from anima.store.batch import Hand
from anima.store.folder import Folder
from anima.store.lock import PATIENCE
from anima.store.private import TORN, Machine

if TYPE_CHECKING:
    from anima.store.git import History

_FOLDED = (
    "intent",
    "done",
    "failed",
    "outside",
    "found",
    "lost",
    "renewed",
    "trust",
    "format",
)  # what provenance is made of
_HISTORIES = (".git", ".anima/history.git")
_SEEN = ("outside", "found")  # what we only saw: an edit from outside, a document that was here before us


class _State(Enum):
    """What a crash left of one edit."""

    STANDS = 1
    HALF = 2  # begun, and can be finished
    READY = 3  # not begun, and can be
    TORN = 4  # a piece of an append is there
    LOST = 5  # its text is gone, or somebody else wrote there since: theirs stays


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for one store, as whoever opens it has read from the home's configuration and layout."""

    clock: Callable[[], datetime]
    author: str  # who commits
    is_closed: Callable[[DocPath], bool]  # whether a document is closed to every writer
    history: bool = True
    unkept: tuple[str, ...] = ("sessions",)  # folders that history leaves out


class FolderStore:
    """The canonical state of one home in a folder."""

    def __init__(self, folder: Folder, rules: Rules) -> None:
        self.documents, self.rules, self.clock, self.author = folder, rules, rules.clock, rules.author
        self.machine = Machine(folder)
        self.hand = Hand(folder, self.machine)
        self._ledger: Ledger | None = None
        self._view: Provenance | None = None
        self._key: Key | None = None
        self._history: History | None = None
        self._history_problem: str | None = None
        self._anchored: tuple[str | None, int] = (None, 0)  # the head of history, and the last record it knows of
        self._newest = self._newest_text = 0  # the last record of a change, and of one that replaced a text
        self._viewed = -1  # how long the ledger was when the view was last brought up to date
        self._held_settings: bytes | None = None  # the configuration as history is known to hold it
        self._mutex = threading.RLock()  # taken after the home lock, never before it
        self.log = self.machine.log("ledger.jsonl")

    @property
    def name(self) -> str:
        """The store's name for people: its folder."""
        return self.documents.root

    @property
    def identity(self) -> str:
        """What trust in this home is bound to: a folder that took this one's place has another."""
        return str(os.fstat(self.documents.fd).st_ino)

    @property
    def state(self) -> Machine:
        """Small files of the machine's own, by name."""
        return self.machine

    def lock(self, name: str = "home", *, patience: float = PATIENCE) -> AbstractContextManager[None]:
        """The home's lock, or a lease of another name, held inside the `with`. Raises HomeBusy with its holder."""
        return (self.machine.lock if name == "home" else self.machine.lease(name)).hold(patience)

    # -- ledger ---------------------------------------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        """Whether anything was ever written through us here."""
        return self.documents.stat(".anima/ledger.jsonl") is not None

    @property
    def key(self) -> Key:
        if self._key is None:
            ledger = self.documents.stat(".anima/ledger.jsonl")
            if ledger is not None and ledger.st_size and self.machine.get("key") is None:
                raise Damaged(
                    "the key of the ledger is gone; nothing was written",
                    hint="restore .anima/key from a backup, or say anima doctor --repair",
                )
            self._key = Key(self.machine.key())
        return self._key

    @property
    def ledger(self) -> Ledger:
        """The ledger, begun if it was not. Asking for it makes `.anima/`, and finishes what a crash left half done."""
        if self._ledger is None:
            self.need_ledger()  # before anything is made
            with self.machine.lock.hold(), self._mutex:
                if self._ledger is None:
                    self._open_ledger()
        assert self._ledger is not None
        return self._ledger

    def had_ledger(self) -> bool:
        """Whether a ledger that is not there any more was: untrusted lines were marked, or history names its records."""
        if self.documents.stat(".anima/doubt") is not None:
            return True
        return any(os.path.isfile(f"{self.documents.root}/{place}/anima") for place in _HISTORIES) and bool(
            self.anchors()
        )

    def anchors(self) -> list[tuple[int, str]]:
        """The records that history names, also where no ledger is; none when history cannot be read."""
        from anima.store.git import History

        for place in _HISTORIES:
            try:
                history = History.open(f"{self.documents.root}/{place}")
            except (HomeError, OSError):
                continue
            try:
                return history.anchors()
            except HomeError:
                return []
            finally:
                history.close()
        return []

    def need_ledger(self) -> None:
        """Raises Damaged where a ledger was and is none: then nobody can tell which lines are untrusted."""
        found = self.documents.stat(".anima/ledger.jsonl")
        if (found is None or found.st_size == 0) and self.had_ledger():
            raise Damaged(
                "the ledger of this home is gone; nothing was written",
                hint="restore .anima/ledger.jsonl from a backup, or say anima doctor --repair",
            )

    def _open_ledger(self) -> None:
        ledger = Ledger(self.log, clock=self.clock, keep=self._keep_torn)
        ledger.begin(self.key.id[:16], key=self.key)
        self._ledger = ledger
        try:
            if self.settle():
                self.commit()
        except HomeError:
            pass  # the disk does not let us; documents can be read all the same, and a write tries again and says so

    def _keep_torn(self, torn: bytes) -> None:
        self.machine.put(f"{TORN}/{self.clock():%Y%m%dT%H%M%S%f}", torn)

    @property
    def view(self) -> Provenance:
        """Provenance, folded up to the ledger's end. Empty, and cheap, where nothing was ever written."""
        ledger, size = self.ledger, self.log.size()
        with self._mutex:
            if self._view is None or self._view.through > ledger.tip.n:
                self._view, self._newest, self._newest_text, self._viewed = Provenance(self.key), 0, 0, -1
            if size != self._viewed:
                self._view.fold(self._noticed(ledger.records(self._view.through, kinds=_FOLDED)))
                self._viewed = size
            return self._view

    def _noticed(self, records: Iterator[Record]) -> Iterator[Record]:
        for record in records:
            if record.kind == "format":
                refuse_newer("ledger.jsonl", record.fields.get("format"), FORMAT)
            edits = record.fields.get("edits", ())
            if edits or record.kind in _SEEN:
                self._newest = record.n
            if record.kind in _SEEN or any(e["kind"] != Kind.APPEND and e.get("base") for e in edits):
                self._newest_text = record.n
            yield record

    def mark_doubt(self) -> None:
        """Says, before the first untrusted line is written, that prompts have to look at where lines come from."""
        if self.machine.get("doubt") is None:
            self.machine.put("doubt", b"")

    # -- after a crash --------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Sees to it that no batch is half done. Raises Damaged while one cannot be finished. Under the lock."""
        if self.view.is_doubtful:
            self.mark_doubt()  # an empty file is easily lost on the way through a backup
        if self.view.intents():
            self.settle()

    def recover(self) -> list[str]:
        """Finishes what a crash left half done; gives a sentence for each. Whoever calls holds the lock."""
        return [
            f"change {name} was interrupted and is {'finished' if stands else 'taken back'}"
            for name, stands in self.settle().items()
        ]

    def settle(self, *, back: bool = False) -> dict[str, bool]:
        """Ends every begun batch, all or nothing: by id, whether it stands now. Whoever calls holds the lock.

        A batch of which nothing was done yet is finished too, or with `back` given up. Raises Damaged when the disk
        does not let us; the batch is then still begun, and is tried again before anything else is written.
        """
        ledger, ended = self.ledger, {}
        for intent in ledger.pending():
            states = [self._state(edit) for edit in intent.edits]
            begun = _State.STANDS in states or _State.HALF in states
            ended[intent.id] = begun or not (back or _State.LOST in states or _State.TORN in states)
            if ended[intent.id]:
                self._finish(intent, states)
            else:
                self._give_up(intent, states)
        if any(True for _ in self.machine.staged()):
            self.hand.sweep()
        return ended

    def _finish(self, intent: Intent, states: list[_State]) -> None:
        """An edit that is lost is passed over: somebody wrote over it, as they might have a moment later."""
        for edit, state in zip(intent.edits, states, strict=True):
            try:
                if state in (_State.HALF, _State.READY):
                    self._carry_on(edit)
                for path in {edit.path, edit.to or edit.path} if state is not _State.LOST else ():
                    self.hand.confirm(DocPath.parse(path))
            except Damaged as error:
                raise Damaged(
                    f"change {intent.id} was interrupted and cannot be finished yet: {error}", hint=error.hint
                ) from None
            except HomeError:
                continue
        self.ledger.done(intent.id)

    def _give_up(self, intent: Intent, states: list[_State]) -> None:
        for edit, state in zip(intent.edits, states, strict=True):
            if state is _State.TORN:
                path, size = DocPath.parse(edit.path), edit.before or 0
                self._keep_torn((self.hand.raw(path) or b"")[size:])
                self.hand.cut_back(path, size)
        self.hand.sweep()  # first, so that what was given up cannot be finished later
        self.ledger.failed(intent.id, why="interrupted")

    def _carry_on(self, edit: Edit) -> None:
        path, target = DocPath.parse(edit.path), DocPath.parse(edit.to or edit.path)
        if edit.kind is not Kind.DELETE and edit.temp and self._digest(target) != edit.digest:
            self.hand.finish_put(target, edit.temp)
        if edit.kind in (Kind.DELETE, Kind.MOVE) and self._digest(path) == edit.base:
            self.hand.finish_removal(path)

    def _state(self, edit: Edit) -> _State:
        """What stands of an edit. Raises Damaged where the disk does not tell."""
        try:
            path, target = DocPath.parse(edit.path), DocPath.parse(edit.to or edit.path)
            if not (self._is_open(path) and self._is_open(target)):
                return _State.LOST  # no record of ours says so
            if edit.kind is Kind.APPEND:
                return self._append_state(path, edit)
            return self._text_state(edit, here=self._digest(path), there=self._digest(target))
        except Damaged:
            raise
        except HomeError:
            return _State.LOST

    def _is_open(self, path: DocPath) -> bool:
        return path.is_markdown and not self.rules.is_closed(path)

    def _text_state(self, edit: Edit, *, here: str | None, there: str | None) -> _State:
        if edit.kind is Kind.DELETE:
            return _State.STANDS if here is None else _State.READY if here == edit.base else _State.LOST
        if there == edit.digest:
            return _State.HALF if edit.kind is Kind.MOVE and here == edit.base else _State.STANDS
        staged = self.hand.staged_bytes(edit.temp)
        usable = staged is not None and self.key.of(staged.decode("utf-8", "replace")) == edit.digest
        if not usable or there != (edit.base if edit.kind is Kind.WRITE else None):
            return _State.LOST
        return _State.HALF if edit.kind is Kind.MOVE and here is None else _State.READY

    def _append_state(self, path: DocPath, edit: Edit) -> _State:
        """Torn is only what can be nothing but ours: whole lines of the intent, and the beginning of one more."""
        data, before, after = self.hand.raw(path) or b"", edit.before or 0, edit.after or 0
        tail = data[before:]
        if self.key.of(tail[: after - before].decode("utf-8", "replace")) == edit.digest:
            return _State.STANDS
        *whole, _ = tail.split(b"\n")
        ours = {"", *(line.digest for line in edit.lines)}
        fits = tail and len(tail) <= after - before and (len(tail) < after - before or not tail.endswith(b"\n"))
        if not fits or any(self.key.line(line.decode("utf-8", "replace")) not in ours for line in whole):
            return _State.LOST
        return _State.TORN if self.view.is_ours(path, data[:before].decode("utf-8", "replace")) else _State.LOST

    def _digest(self, path: DocPath) -> str | None:
        try:
            return self.key.of(self.documents.read(path).text)
        except NoSuchDocument:
            return None

    # -- history --------------------------------------------------------------------------------------------------------

    @property
    def history(self) -> History | None:
        """The history, made when it is missing; None when it is switched off or broken (`history_problem` says)."""
        if not self.rules.history:
            return None
        with self._mutex:
            if self._history is None and self._history_problem is None:
                self._open_history()
        return self._history

    @property
    def history_problem(self) -> str | None:
        _ = self.history
        return self._history_problem

    def _open_history(self) -> None:
        from anima.store.git import History

        own = self._own_git()
        place = f"{self.documents.root}/.git" if own else f"{self.documents.root}/.anima/history.git"
        self.machine.make()
        exclude = (".anima/", *(f"/{folder}/" for folder in self.rules.unkept), ".*") if own else ()
        try:
            self._history = History.create(place, bare=not own, exclude=exclude)
        except (HomeError, OSError) as error:
            self._history_problem = str(error)

    def _own_git(self) -> bool:
        """A home we made keeps its history in `.git`, where a person looks for it; elsewhere `.git` is not ours."""
        if os.path.isfile(f"{self.documents.root}/.git/anima"):
            return True
        return self.machine.get("made") is not None and self.documents.stat(".git") is None

    def reset_history(self) -> None:
        with self._mutex:
            if self._history is not None:
                self._history.close()
            self._history, self._history_problem, self._anchored = None, None, (None, 0)

    @property
    def has_late_text(self) -> bool:
        """Whether a text was replaced that history may not hold yet; appending to it would bury it.

        No while history is broken: a log must not wait for it line by line.
        """
        return self._newest_text > self._anchored[1] and self._history_problem is None

    def commit(self, *, reason: str = "") -> str | None:
        """Commits every change since the last anchor; None when there is nothing, or history is off or broken."""
        if not self.begun or (history := self.history) is None:
            return None
        try:
            with self.machine.lock.hold():
                self.finish()
                late = self._late(history) if self._newest > self._anchored[1] else []
                made = self._commit_late(history, late, reason) if late else None
                if late:
                    self._anchored = (made or self._anchored[0], late[-1].n)
        except (HomeError, OSError) as error:
            self._history_problem = str(error)
            return None
        self._history_problem = None
        return made

    def _late(self, history: History) -> list[Record]:
        """The changes that no commit holds yet."""
        head = history.head()
        if head != self._anchored[0]:
            self._anchored = (head, _newest_anchor(history))
        return list(self.ledger.records(self._anchored[1], kinds=("intent", *_SEEN)))

    def _commit_late(self, history: History, late: list[Record], reason: str) -> str | None:
        from anima.store.git import Note

        own, newest = [Intent.from_record(record) for record in late if record.kind == "intent"], late[-1]
        last = own[-1] if own else None
        paths = {p for intent in own for e in intent.edits for p in (e.path, e.to) if p}
        paths |= {str(record.fields["path"]) for record in late if record.kind in _SEEN}
        batches = " ".join(intent.id for intent in own[-50:])
        note = Note(
            what=newest.kind if last is None else last.what if len(own) == 1 else "changes",
            actor=str(last.actor if last else Actor.OUTSIDE),
            author=self.author,
            time=newest.time,
            session=last.session if last else None,
            rule=last.rule if last else None,
            batch=batches or None,
            reason=reason,
            anchor=(newest.n, newest.hash),  # never a record that may not be on the disk yet
        )
        files = dict(held for path in sorted(paths) for held in self._held(path))
        settings = self._settings()
        if settings and settings != self._held_settings:
            files[FILE] = settings  # no verb writes it, but a backup by `git push` should hold it
        made = history.commit(files, note) if files else None
        self._held_settings = settings
        return made

    def _settings(self) -> bytes | None:
        try:
            return self.documents.read(DocPath.parse(FILE)).text.encode("utf-8")
        except HomeError:
            return None

    def _held(self, path: str) -> list[tuple[str, bytes | None]]:
        """How history should hold a document: its name on disk with its bytes, or with None when it is gone.

        Of what history cannot hold (it is no text any more), it keeps the last version it had.
        """
        checked = DocPath.parse(path)
        if self.rules.is_closed(checked):
            return [(path, None)]
        try:
            found = self.documents.read(checked)
        except NoSuchDocument:
            return [(path, None)]
        except BadInput:
            return []
        renamed: list[tuple[str, bytes | None]] = [(path, None)] if found.path.text != path else []
        return [*renamed, (found.path.text, found.text.encode("utf-8"))]

    def held_documents(self) -> dict[str, bytes]:
        """Every document history should hold, as it stands now."""
        paths = [entry.path for entry in self.documents.list_all() if entry.path.casefold().endswith(".md")]
        found = dict(held for path in paths for held in self._held(path))
        found[FILE] = self._settings()
        return {path: data for path, data in found.items() if data is not None}

    def append(self, kind: str, fields: dict[str, object], *, sync: bool = True) -> Record:
        """One record of another kind, under the lock."""
        with self.machine.lock.hold():
            return self.ledger.add(kind, fields, sync=sync)

    def close(self) -> None:
        """Lets everything go. Closing twice does no harm."""
        if self._history is not None:
            self._history.close()
        self.log.close()
        self.documents.close()
        self.machine.lock.close()


def _newest_anchor(history: History) -> int:
    """The last record of the ledger that a commit names. Commits of a person's own git name none."""
    for limit in (1, 50):
        if found := next((r.anchor for r in history.log(limit=limit) if r.anchor), None):
            return found[0]
    return max((n for n, _ in history.anchors()), default=0)
