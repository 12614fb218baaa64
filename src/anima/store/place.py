"""The store of a home in a folder: documents, ledger, small state and history, each opened when first needed.

Promise: nothing is written without an allowing Verdict; a batch that a crash interrupted is finished, or taken back, before
anything else is written; history may be late or broken without hurting a document. Lives as long as its Home. Not here: what is
written, and whether (memory).
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from anima.config import FILE
from anima.errors import BadInput, Damaged, HomeError, NoSuchDocument, Refused, refuse_newer
from anima.ledger import FORMAT, Key, Ledger, Record
from anima.ledger.views import CHANGED, Provenance
from anima.model import DocPath
from anima.store import TORN, Batch, Mend, Note, Rules, Written, never_whole
from anima.store.batch import Batches
from anima.store.edits import Heads, late_note, must_allow
from anima.store.folder import Folder
from anima.store.lock import PATIENCE
from anima.store.logs import LineFolder
from anima.store.private import BARE, GIT, Machine
from anima.store.safe_open import is_restoring
from anima.store.whole import FolderWhole

if TYPE_CHECKING:
    from anima.store.git import History


def open_home_folder(path: str | Path) -> Folder:
    """The folder at a path, once a restore that a crash cut short is finished: before anybody reads, the home is old or
    new. Raises NoSuchHome, or NewerFormat for a home that a newer anima wrote."""
    folder = Folder(path)
    try:
        if is_restoring(folder):
            machine = Machine(folder)
            try:
                with suppress(Refused), machine.lock.hold():
                    pass  # taking the lock finishes it, and tells us so
            finally:
                machine.lock.close()
                folder.close()
            folder = Folder(folder.root)
        # A ledger begins with the number of its format, and a newer version that brings a home up to date puts its own
        # into `.anima/format`. A ledger without a number is damage, and whoever reads the ledger says so.
        for file in (".anima/format", ".anima/ledger.jsonl"):
            with suppress(OSError, ValueError, KeyError, TypeError, RecursionError), folder.regular(file) as (fd, _):
                refuse_newer(file, json.loads(os.pread(fd, 4096, 0).partition(b"\n")[0])["format"], FORMAT)
    except BaseException:
        folder.close()
        raise
    return folder


class FolderStore(Batches):
    """The `Store` of a home in a folder."""

    def __init__(self, folder: Folder, rules: Rules) -> None:
        self.documents, self.rules, self.clock, self.author = folder, rules, rules.clock, rules.author
        self.name, self.identity = folder.root, folder.identity
        self.machine = self.state = Machine(folder)
        self.lock, self.noted = self.machine.lock.hold, Heads(rules.head)
        self.sweep = self.machine.sweep
        self.whole = FolderWhole(folder, self.machine)
        self._ledger: Ledger | None = None
        self._view: Provenance | None = None
        self._key: Key | None = None
        self._history: History | None = None
        self._history_problem: str | None = None
        self._words: dict[str, str] = {}  # of changes that no commit holds yet
        self._anchored: tuple[str | None, int] = (None, 0)  # the head of history, and the last record it knows of
        self._viewed = -1  # how long the ledger was when the view was last brought up to date
        self._held_settings: bytes | None = None  # the configuration as history is known to hold it
        self._aside: tempfile.TemporaryDirectory[str] | None = None
        self._mutex = threading.RLock()  # taken after the home lock, never before it
        self.log = self.machine.log("ledger.jsonl")

    def was_interrupted(self) -> bool:
        """Whether the ledger's last record is an intent: a batch that a crash cut short (or that is being written now)."""
        last = self.documents.last_line(".anima/ledger.jsonl")
        return b'"kind":"intent"' in last or (bool(last) and not last.endswith(b"\n"))

    @contextmanager
    def lease(self, name: str, *, patience: float = PATIENCE) -> Iterator[int]:
        with closing(self.machine.lease(name)) as held, held.hold(patience):
            yield held.token

    def changed(self, since: str | None) -> tuple[str, tuple[str, ...] | None]:
        return "", None  # a folder is written to by anybody: whoever wants to know compares versions

    def scratch(self, name: str, *, make: bool = False) -> str:
        place, ours = f"{self.documents.root}/.anima", os.access in os.supports_effective_ids
        held = [each for each in (place, f"{place}/{name}") if os.path.exists(each)] or [self.documents.root]
        if self._aside is None and not all(os.access(each, os.W_OK, effective_ids=ours) for each in held):
            self._aside = tempfile.TemporaryDirectory(prefix="anima-")  # a home that may only be read is searched, too
        if make and self._aside is None:
            self.machine.make()
        return f"{self._aside.name if self._aside else place}/{name}"

    def logs(self, folder: str, *, suffix: str = ".jsonl", mend: Mend = never_whole) -> LineFolder:
        return LineFolder(self.documents, self.machine, folder, suffix=suffix, mend=mend)

    def changes(self, stop: threading.Event | None = None) -> Iterator[object]:
        """Gathered for half a second; when events are lost, or every two minutes anyway, all may have changed."""
        from watchfiles import watch

        root, every = self.documents.root, 120_000
        return watch(
            root, watch_filter=_matters, debounce=500, stop_event=stop, rust_timeout=every, yield_on_timeout=True
        )

    # -- ledger ---------------------------------------------------------------------------------------------------------

    @property
    def begun(self) -> bool:
        return self.documents.stat(".anima/ledger.jsonl") is not None

    @property
    def key(self) -> Key:
        if self._key is None:
            if self._ledger_size() and self.machine.get("key") is None:
                hint = "restore .anima/key from a backup, or say anima doctor --repair"
                raise Damaged("the key of the ledger is gone; nothing was written", hint=hint)
            self._key = Key(self.machine.key())
        return self._key

    @property
    def ledger(self) -> Ledger:
        """The ledger, begun if it was not. Asking for it makes `.anima/`, and finishes what a crash left half done."""
        if self._ledger is None:
            self.need_ledger()  # before anything is made
            with self.machine.lock.hold(), self._mutex:
                if self._ledger is None:
                    key, noted = self.key, self.noted.note
                    ledger = Ledger(self.log, key=key, clock=self.clock, keep=self.keep_torn, noted=noted)
                    ledger.begin(key.id[:16])
                    self._ledger = ledger
                    with suppress(HomeError):  # the disk does not let us; a write tries again and says so
                        if self.recover():
                            self.commit()
        assert self._ledger is not None
        return self._ledger

    def _ledger_size(self) -> int:
        return found.st_size if (found := self.documents.stat(".anima/ledger.jsonl")) else 0

    def had_ledger(self) -> bool:
        return bool(self.anchors())

    def anchors(self) -> list[tuple[int, str]]:
        """Also where no ledger is: those in the user's own configuration, and in history as far as it can be read."""
        noted = self.noted.all()
        for place in self._kept_histories():
            from anima.store.git import History

            with suppress(HomeError, OSError), closing(History.open(place)) as history:
                return [*noted, *history.anchors()]
        return noted

    def _kept_histories(self) -> list[str]:
        """Where a history of ours stands, also while it is switched off."""
        places = [f"{self.name}/{place}" for place in (GIT, BARE)]
        return [place for place in places if os.path.isfile(f"{place}/anima")]

    def need_ledger(self) -> None:
        if not self._ledger_size() and self.had_ledger() and not self._ledger_size():  # nobody began it meanwhile
            hint = "restore .anima/ledger.jsonl from a backup, or say anima doctor --repair"
            raise Damaged("the ledger of this home is gone; nothing was written", hint=hint)

    def keep_torn(self, torn: bytes) -> None:
        self.machine.put(f"{TORN}/{self.clock():%Y%m%dT%H%M%S%f}", torn)

    @property
    def provenance(self) -> Provenance:
        """Empty, and cheap, where nothing was ever written."""
        ledger, size = self.ledger, self.log.size()
        with self._mutex:
            if self._view is None or self._view.through > ledger.tip.n:
                self._view, self._viewed = Provenance(self.key), -1
            if size != self._viewed:
                self._view.follow(ledger)
                self._viewed = size
            return self._view

    def finish(self) -> None:
        """Raises Damaged while a batch cannot be finished. Under the lock."""
        if self.provenance.intents():
            self.recover()

    # -- writing --------------------------------------------------------------------------------------------------------

    def write(self, batch: Batch) -> Written:
        """Only Unconfirmed means that all is written, and the disk did not give its word for it."""
        must_allow(batch.verdict)
        with self.lock():
            self.finish()
            if batch.what == "approve" and batch.of and self.ledger.carried_out(batch.of):
                return Written(repeated=True)  # by somebody else, a moment ago
            intent, digests = self.carry_out(batch)
        if intent is not None and batch.words:
            self._words = {**dict(list(self._words.items())[-50:]), intent.id: batch.words}
        revision = None if intent is None or batch.is_log else self.commit(reason=batch.changes[0].reason)
        return Written(change=intent.id if intent else None, revision=revision, digests=digests)

    def keep_before(self, batch: Batch) -> None:
        """What stood there before is in history by then, so that this batch can be taken back alone. An append waits only
        for a text that history may not hold yet, which it would bury; and for none while history is broken."""
        if batch.is_log:
            newest = self._view.newest_text if self._view else 0
            if newest <= self._anchored[1] or self._history_problem is not None or self.history is None:
                return
            with suppress(HomeError, OSError):
                self._find_anchor(self.history)
            if newest <= self._anchored[1]:
                return
        self.commit()

    def keep_ahead(self, text: str) -> None:
        if (history := self.history) is not None:
            with suppress(HomeError):  # the commit says what is wrong
                history.prepare(text.encode("utf-8"))

    def _find_anchor(self, history: History) -> None:
        """The last record of the ledger that a commit names. Commits of a person's own git name none."""
        if (head := history.head()) != self._anchored[0]:
            few = (revision.anchor for limit in (1, 50) for revision in history.log(limit=limit) if revision.anchor)
            newest = next(few, None) or max(history.anchors(), default=(0, ""))
            self._anchored = (head, newest[0])

    def check_writable(self, path: DocPath) -> None:
        self.look(path, whole=False)

    # -- history --------------------------------------------------------------------------------------------------------

    @property
    def history(self) -> History | None:
        if not self.rules.history:
            return None
        with self._mutex:
            if self._history is None and self._history_problem is None:
                from anima.store.git import History

                own, place = self.history_place == GIT, f"{self.documents.root}/{self.history_place}"
                self.machine.make()
                exclude = (".anima/", *(f"/{folder}/" for folder in self.rules.unkept), ".*") if own else ()
                try:
                    self._history = History.create(place, bare=not own, exclude=exclude, vouched=self.rules.vouched)
                except (HomeError, OSError) as error:
                    self._history_problem = str(error)
        return self._history

    @property
    def history_problem(self) -> str | None:
        _ = self.history
        return self._history_problem

    @property
    def history_place(self) -> str:
        """Where history is, or would be made: in `.git`, where a person looks for it, unless that is not ours."""
        if os.path.isfile(f"{self.documents.root}/{GIT}/anima"):
            return GIT
        return GIT if self.machine.get("made") is not None and self.documents.stat(GIT) is None else BARE

    def repair_history(self) -> list[str]:
        """Mends history without touching a document; a sentence for each thing done. Raises Damaged where it cannot."""
        with self.lock():
            with self._mutex:  # whatever kept it from being used, it is tried again
                if self._history is not None:
                    self._history.close()
                self._history, self._history_problem, self._anchored = None, None, (None, 0)
            history, note = self._mendable_history()
            paths = [entry.path for entry in self.documents.list_all() if entry.path.casefold().endswith(".md")]
            found = {**dict(held for path in paths for held in self._held(path)), FILE: self._settings()}
            return history.repair({path: data for path, data in found.items() if data is not None}, note)

    def anchor(self) -> None:
        """Says in history where the ledger is now, so that its end cannot be cut off unnoticed. Raises Damaged."""
        with self.machine.lock.hold():
            history, note = self._mendable_history()
            history.commit({}, note)

    def _mendable_history(self) -> tuple[History, Note]:
        if (history := self.history) is None:
            raise Damaged(f"history cannot be mended: {self.history_problem or 'it is switched off'}")
        anchor = (tip := self.ledger.tip).n, tip.hash
        return history, Note(what="repair", actor="owner", author=self.author, time=self.clock(), anchor=anchor)

    @contextmanager
    def kept_history(self) -> Iterator[History | None]:
        places = self._kept_histories()
        if self.begun and (found := self.history) is not None:
            yield found
        elif not places:
            yield None
        else:
            from anima.store.git import History

            with closing(History.open(places[0])) as own:
                yield own

    def commit(self, *, reason: str = "") -> str | None:
        if not self.begun or (history := self.history) is None:
            return None
        try:
            with self.machine.lock.hold():
                self.finish()
                late: list[Record] = []  # the changes that no commit holds yet
                if self._view is not None and self._view.newest > self._anchored[1]:
                    self._find_anchor(history)
                    late = list(self.ledger.records(self._anchored[1], kinds=CHANGED))
                made = None
                if late:
                    note, paths = late_note(late, author=self.author, reason=reason, words=self._words)
                    files = dict(held for path in paths for held in self._held(path))
                    settings = self._settings()
                    if settings and settings != self._held_settings:
                        files[FILE] = settings  # no verb writes it, but a backup by `git push` should hold it
                    made = history.commit(files, note) if files else None
                    self._held_settings, self._anchored = settings, (made or self._anchored[0], late[-1].n)
        except (HomeError, OSError) as error:
            self._history_problem = str(error)
            return None
        self._history_problem = None
        return made

    def _settings(self) -> bytes | None:
        try:
            return self.documents.read(DocPath.parse(FILE)).text.encode("utf-8")
        except HomeError:
            return None

    def _held(self, path: str) -> list[tuple[str, bytes | None]]:
        """How history should hold a document: its name on disk with its bytes, or with None when it is gone. Of what is no
        text any more it keeps the last version it had."""
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

    def append(self, kind: str, fields: Mapping[str, object], *, sync: bool = True) -> Record:
        with self.machine.lock.hold():
            return self.ledger.add(kind, fields, sync=sync)

    def close(self) -> None:
        with self.machine.lock.mutex:  # what another thread writes is written to its end
            if self._history is not None:
                self._history.close()
            self.log.close()
            self.documents.close()
            if self._aside is not None:
                self._aside.cleanup()
            self.machine.lock.close()


def _matters(_change: object, path: str) -> bool:
    """Whether a file that changed is a document: temporary names and what lies in folders of ours are passed over."""
    folder, _, name = path.rpartition("/")
    is_document = name.casefold().endswith(".md") and not name.startswith((".", "~", "#"))
    return is_document and {".anima", ".git"}.isdisjoint(folder.split("/"))
