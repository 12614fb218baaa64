"""The store of a home in a database: in PostgreSQL, or in one SQLite file.

Promise: a change is one transaction under the home's row lock: bases compared, texts, ledger records, revision and the
chain's head, all or nothing; nothing is embedded, asked or waited for inside. A lost connection before COMMIT is tried again;
after a lost answer the intent's record tells whether it stands. On a server the home's key is sealed by a key from the
environment. What is damaged is said, and put back from a snapshot. Not here: rows (files, history), connections.
"""

from __future__ import annotations

import copy
import glob
import os
import re
import secrets
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache

from anima.config import FILE
from anima.errors import Damaged, HomeBusy, HomeError, NoSuchHome
from anima.ledger import Edit, Key, Ledger, Record, parse
from anima.ledger.views import CHANGED, Provenance, verify
from anima.model import Change, DocPath, Kind, Remark, Verdict, digest_of
from anima.store import Batch, Brought, Mend, Rules, Whole, Written, never_whole, text_of
from anima.store.edits import Heads, Present, edit_of, intent_of, late_note, must_allow, seen_record
from anima.store.lock import PATIENCE, flock, restored_meanwhile
from anima.store.rows import RowPlace
from anima.store.rows.files import FileRows, RecordLog, Room, RowDocuments, RowLogs, RowState
from anima.store.rows.history import RowHistory
from anima.store.safe_open import held

_LEASE = 60.0  # seconds that a lease outlives its holder


class RowStore:
    """The canonical state of one home in a database. Bound to its tenant and home when it is opened."""

    def __init__(self, place: RowPlace, rules: Rules, *, shelf: str, whole: Callable[[RowStore], Whole]) -> None:
        """`shelf` is where the home's snapshots stand on this machine; `whole` treats the home as a heap of files."""
        self.rows, self.name, self.identity, self._seal = rows, *_ = place
        self.rules, self.author, self.clock, self.shelf = rules, rules.author, rules.clock, shelf
        self.files, self.room = FileRows(rows), Room(rows)
        self.documents = RowDocuments(self.files, name=self.name, identity=self.identity)
        self.state = RowState(rows, self.files, self._special)
        self.log, self.noted = RecordLog(rows), Heads(rules.head)
        found = rows.one("select epoch from anima.home where [own]")
        self._epoch = int(found[0]) if found else 0
        self._mutex = threading.RLock()
        self._key: Key | None = None
        self._ledger: Ledger | None = None
        self._view: Provenance | None = None
        self._words: dict[str, str] = {}  # of changes that no revision holds yet
        self._leases: dict[str, int] = {}
        self._scratch: Scratch | None = None
        self.whole = whole(self)

    def _special(self, name: str) -> tuple[bytes, str] | None:
        """What stands in tables of its own, though a folder keeps it as a file."""
        if name == "key":
            found = self.rows.one("select key from anima.home where [own]")
            return (self._seal.opened(found[0]), "key") if found and found[0] else None
        if name == "ledger.jsonl" and (size := self.log.size()):
            return b"", f"{self._epoch}.{size}"
        return None

    @contextmanager
    def lock(self, *, patience: float = PATIENCE) -> Iterator[None]:
        """The home's lock: a transaction that has the home's row. What is done inside stands when it is left."""
        with self.rows.transaction(patience=patience) as held:
            assert held.row is not None
            if held.row[4] != self._epoch:
                raise restored_meanwhile()
            if held.depth == 1 and self._leases:
                there = dict(self.rows.ask("select name, token from anima.lease where [own] and until > now()"))
                if lost := [name for name, token in self._leases.items() if there.get(name) != token]:
                    raise HomeBusy(f"somebody else has the lease {lost[0]} by now and", seconds=0)
            yield

    @contextmanager
    def lease(self, name: str, *, patience: float = PATIENCE) -> Iterator[int]:
        """Renewed while its holder lives, it ends a minute after; whoever lost it writes nothing more."""
        holder, until = secrets.token_hex(8), time.monotonic() + patience
        while (token := self._take(name, holder)) is None:
            if time.monotonic() >= until:
                raise HomeBusy("another process", seconds=patience)
            time.sleep(0.05)
        ended = threading.Event()

        def renew() -> None:
            while not ended.wait(_LEASE / 3):
                with suppress(HomeError):
                    self._take(name, holder)

        renewing = threading.Thread(target=renew, daemon=True)
        renewing.start()
        self._leases[name] = token
        try:
            yield token
        finally:
            del self._leases[name]
            ended.set()
            renewing.join()
            with suppress(HomeError), self.rows.transaction():
                self.rows.tell("lease_ended", name=name, holder=holder)

    def _take(self, name: str, holder: str) -> int | None:
        with self.rows.transaction():
            found = self.rows.one("lease_taken", name=name, holder=holder, span=_LEASE)
        return int(found[0]) if found else None

    @property
    def begun(self) -> bool:
        return self.log.size() > 0

    @property
    def key(self) -> Key:
        with self._mutex:
            if self._key is None:
                found = self.state.get("key")
                if found is None and self.begun and self.state.get("key") is None:  # nobody began between two looks
                    raise Damaged("the key of the ledger is gone; nothing was written", hint="restore a snapshot")
                if found is None:
                    with self.lock():  # made once: whoever comes second finds it
                        if (found := self.state.get("key")) is None:
                            self.put_key(found := secrets.token_bytes(48))
                self._key = Key(found)
            return self._key

    @property
    def ledger(self) -> Ledger:
        """The ledger, begun if it was not. A transaction has one of its own, which the others get when it stands."""
        key, held = self.key, self.rows.held
        if held is None or held.row is None:
            if self._ledger is None:
                self.need_ledger()
                with self.lock():
                    return self.ledger
            return self._ledger
        own: Ledger | None = held.kept.get("ledger")
        if own is None:
            shared = self._ledger
            own = copy.copy(shared) if shared else Ledger(self.log, key=key, clock=self.clock)
            held.kept["ledger"] = own
            held.after.append(lambda done: self._settled(own, done and "replaced" not in held.kept))
            held.before.append(self._note_last)
            if shared is None:
                own.begin(key.id[:16])
        return own

    def _note_last(self) -> None:
        if (last := self.log.last()) is not None:
            self.rows.tell("head_new", n=last["n"], hash=self.ledger.tip.hash)

    def _settled(self, own: Ledger, done: bool) -> None:
        with self._mutex:
            if done:
                self._ledger = own
                self.noted.note(own, own.tip)
            else:
                self._view = None

    def had_ledger(self) -> bool:
        found = self.rows.one("head_gone")
        return bool(found and found[0]) or (bool(self.noted.all()) and not self.begun)

    def anchors(self) -> list[tuple[int, str]]:
        noted = [(row[0], row[1]) for row in self.rows.ask("heads")]
        return [*noted, *self.noted.all(), *RowHistory(self.rows).anchors()]

    def need_ledger(self) -> None:
        if self.had_ledger():
            raise Damaged("the ledger of this home is gone; nothing was written", hint="restore a snapshot")

    def finish(self) -> None:
        """Nothing: a change stands or does not."""

    sweep = finish

    @property
    def provenance(self) -> Provenance:
        ledger = self.ledger
        with self._mutex:
            if self._view is None:
                self._view = Provenance(self.key)
            self._view.follow(ledger)
            return self._view

    def write(self, batch: Batch) -> Written:
        must_allow(batch.verdict)
        return self.rows.tried(self.lock, lambda _: self._write(batch))

    def _write(self, batch: Batch) -> Written:
        if batch.what == "approve" and batch.of and self.ledger.carried_out(batch.of):
            return Written(repeated=True)
        view, present = self.provenance, self._standing(batch)
        for change in batch.changes:
            if seen := seen_record(view, change.path, present[change.path.key], key=self.key, is_log=batch.is_log):
                self.ledger.add(*seen)
            change.check_base(present[change.path.key].text)
        if not batch.is_log or view.newest_text > self._anchored:
            self.commit()  # what stood there before is in history by then, so that this batch can be taken back alone
        edits = []
        for change in batch.changes:
            found, there = present[change.path.key], present[change.to.key] if change.to else None
            edits.append(edit_of(change, found, key=self.key, there=there, is_log=batch.is_log))
        digests = tuple(digest_of(each.after(present[each.path.key].text)) for each in batch.changes)
        if not any(edits):
            return Written(digests=digests)
        more = new = 0  # of what the tenant may have no more of
        for change in batch.changes:
            found = present[change.path.key]
            if change.kind in (Kind.WRITE, Kind.APPEND):
                more += len(change.text.encode("utf-8")) - (found.size if change.kind is Kind.WRITE else 0)
                new += found.text is None
        self.room.need(bytes=more, documents=new)
        intent = intent_of(batch, [edit for edit in edits if edit], ledger=self.ledger)
        self.ledger.intend(intent)
        for change, edit in zip(batch.changes, edits, strict=True):
            if edit:
                self._apply(change, present[change.path.key], edit)
        self.ledger.done(intent.id, sync=False)
        if batch.words:
            self._words = {**dict(list(self._words.items())[-50:]), intent.id: batch.words}
        revision = None if batch.is_log else self.commit(reason=batch.changes[0].reason)
        return Written(change=intent.id, revision=revision, digests=digests)

    def _standing(self, batch: Batch) -> dict[str, Present]:
        paths = {path.key: path for change in batch.changes for path in (change.path, change.to) if path}
        found = self.files.contents(path.text for path in paths.values())
        standing = {}
        for key, path in paths.items():
            if key in found:
                actual, data = found[key]
                text = text_of(path, data)
                standing[key] = Present(actual=actual, text=text, size=len(data))
            else:
                standing[key] = Present(actual=self.documents.spelt(path), text=None)
        return standing

    def _apply(self, change: Change, found: Present, edit: Edit) -> None:
        version = self.next_version()
        if edit.kind is Kind.APPEND:
            data = (found.gap + change.text).encode("utf-8")
            self.files.add(found.actual, found.size, data, version=version)
            return
        new = found.text if edit.kind is Kind.MOVE else change.after(found.text)
        if new is not None:
            self.files.put(edit.to or found.actual, new.encode("utf-8"), version=version)
        if edit.kind is not Kind.WRITE:
            self.files.remove(found.actual)
            sql = "insert into anima.gone values(%(tenant)s, %(home)s, %(version)s, %(path)s)"
            self.rows.tell(sql, version=version, path=found.actual)

    def next_version(self) -> int:
        """The number of a document that changes now. Under the lock."""
        held = self.rows.held
        assert held is not None and held.row is not None
        if "version" not in held.kept:
            sql, held.kept["version"] = "update anima.home set version = %(version)s where [own]", held.row[0]
            held.before.append(lambda: self.rows.tell(sql, version=held.kept["version"]))
        held.kept["version"] += 1
        return int(held.kept["version"])

    def bring(self, path: DocPath, pieces: Iterable[bytes], verdict: Verdict, *, mode: int) -> bool:
        must_allow(verdict)
        with self.lock():
            if self.documents.actual(path) is not None:
                return False
            data = b"".join(pieces)
            self.room.need(bytes=len(data))
            self.files.put(self.documents.spelt(path), data, version=self.next_version(), mode=mode)
            return True

    def make(self, path: str, text: str, dialect: str) -> None:
        """A first document where there is none, such as the configuration, and in which dialect the home is made."""
        with self.lock():
            if self.files.look(path) is None:
                self.files.put(path, text.encode("utf-8"), version=self.next_version())
            self.state.put("made", f"{dialect}\n".encode())

    def check_writable(self, path: DocPath) -> None:
        """Every document here is ours to write."""

    def append(self, kind: str, fields: Mapping[str, object], *, sync: bool = True) -> Record:
        return self.rows.tried(self.lock, lambda _: self.ledger.add(kind, fields, sync=sync))

    # -- history --------------------------------------------------------------------------------------------------------

    @property
    def history(self) -> RowHistory | None:
        return RowHistory(self.rows) if self.rules.history else None

    @property
    def history_problem(self) -> str | None:
        return None

    @contextmanager
    def kept_history(self) -> Iterator[RowHistory | None]:
        history = RowHistory(self.rows)
        yield history if history.head() else None

    def commit(self, *, reason: str = "") -> str | None:
        if (history := self.history) is None or not self.begun:
            return None
        try:
            with self.lock():
                held, view, anchored = self.rows.held, self.provenance, self._anchored
                assert held is not None
                late = list(self.ledger.records(anchored, kinds=CHANGED)) if view.newest > anchored else []
                if not late:
                    return None
                note, paths = late_note(late, author=self.author, reason=reason, words=self._words)
                found = self.files.contents((*paths, FILE))
                files: dict[str, bytes | None] = {}
                for path, checked in zip(paths, map(DocPath.parse, paths), strict=True):
                    is_kept = checked.key in found and not self.rules.is_closed(checked)
                    files[path] = found[checked.key][1] if is_kept else None
                if FILE in found:
                    files[FILE] = found[FILE][1]  # no verb writes it, but whoever looks back should see it
                held.kept["anchored"] = late[-1].n
                self.rows.tell("update anima.home set anchored = %(n)s where [own]", n=late[-1].n)
                return history.commit(files, note)
        except HomeError:
            if self.rows.held is not None:
                raise
            return None  # it may be late: it was restored meanwhile, or the server is away

    @property
    def _anchored(self) -> int:
        """The last record that a revision knows of. Under the lock."""
        held = self.rows.held
        assert held is not None and held.row is not None
        return int(held.kept.get("anchored", held.row[3]))

    # -- other contents in the place of these, when a home is restored -------------------------------------------------------

    def put_key(self, secret: bytes) -> None:
        self.rows.tell("update anima.home set key = %(key)s where [own]", key=self._seal.closed(secret))

    def put_ledger(self, data: bytes) -> None:
        """Another chain. Its end is noted after a mark that says that the one before is over."""
        if (held := self.rows.held) is not None:
            held.kept["replaced"] = True
        self.rows.tell("delete from anima.record where [own]")
        at, rows = 0, list[dict[str, object]]()
        for n, line in enumerate(re.findall(rb"[^\n]*\n|[^\n]+", data), 1):
            rows.append({"at": at, "n": n, "line": line})
            at += len(line)
        self.rows.tell_all("record_new", rows)
        self.rows.tell("records_put", n=len(rows), size=len(data))
        last = parse(data.rstrip(b"\n").rpartition(b"\n")[2].decode("latin-1"))
        for n, digest in [(0, ""), *([(last.n, last.hash)] if last else [])]:
            self.rows.tell("head_new", n=n, hash=digest)
        self.log.forget()

    def put_history(self, revisions: Iterable[Brought]) -> None:
        history = RowHistory(self.rows)
        history.take_in(revisions)
        anchored = max((n for n, _ in history.anchors()), default=0)
        self.rows.tell("update anima.home set anchored = %(n)s where [own]", n=anchored)

    def logs(self, folder: str, *, suffix: str = ".jsonl", mend: Mend = never_whole) -> RowLogs:
        return RowLogs(self.rows, self.files, self.state, self.room, folder, suffix, mend)

    def changed(self, since: str | None) -> tuple[str, tuple[str, ...] | None]:
        if not (rows := self.rows.ask("changed", since=since)):
            raise NoSuchHome(f"{self.name}: this home is gone")
        mark = str(max(version for version, _ in rows))
        return mark, tuple(sorted({path for _, path in rows if path})) if since is not None else None

    def changes(self, stop: threading.Event | None = None) -> Iterator[object]:
        """Something after each change, looked for once a second."""
        mark, stop = self.changed(None)[0], stop or threading.Event()
        while not stop.wait(1.0):
            now, paths = self.changed(mark)
            if paths:
                yield paths
            mark = now

    def scratch(self, name: str, *, make: bool = False) -> str:
        if self._scratch is None:
            with _MAKING:
                key = (self.identity, os.getpid())
                self._scratch = _SCRATCHES[key] = _SCRATCHES.get(key) or Scratch()
        return f"{self._scratch.folder}/{name}"

    def close(self) -> None:
        self._ledger = self._view = self._scratch = None


class CheckedRows:
    """The health of a home in a database: its chain, its history and its documents, against what is noted of them. What rows
    say is believed as little as files are: somebody may have written SQL."""

    def __init__(self, store: RowStore) -> None:
        self._store = store

    def check(self) -> Iterator[Remark]:
        store = self._store
        if store.had_ledger():
            said = "The ledger is gone; nobody can tell who wrote which line."
            yield Remark(name="ledger-missing", about="ledger", message=said)
        if not store.begun:
            return
        found = verify(store.log, key=store.key, anchors=store.anchors())
        if found.fault is not None:
            yield Remark(name="ledger-damaged", about="ledger", message=f"The ledger is damaged: {found.fault.what}.")
            return
        for wrong in RowHistory(store.rows).check()[:3]:
            yield Remark(name="history-damaged", about="history", message=f"History is damaged: {wrong}.")
        view = store.provenance
        for entry in store.documents.list_all():
            path = DocPath.parse(entry.path)
            try:
                is_known = path.is_markdown and view.knows(path)
                if not is_known or view.is_ours(path, store.documents.read(path).text):
                    continue
            except HomeError:
                continue
            said = "is not as anima left it: somebody wrote to the database. Its new lines are not trusted."
            yield Remark(about=entry.path, message=f"{entry.path} {said}")

    def mend(self, found: Remark) -> str:
        """Nothing: rows are put back from a snapshot."""
        return ""


class Scratch:
    """A folder for what is derived of one home, for as long as this process has it open somewhere."""

    def __init__(self) -> None:
        _sweep()
        fresh = tempfile.mkdtemp(prefix=".anima-rows-")
        lock = os.open(f"{fresh}/lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        flock(lock)
        self.folder = fresh.replace("/.anima-rows-", "/anima-rows-")
        os.rename(fresh, self.folder)  # nobody finds it before it is locked
        weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        weakref.finalize(self, os.close, lock)


@cache
def _sweep() -> None:
    """Removes, once, what processes of ours that were killed left: words of conversations stand in it."""
    for lock in glob.glob(f"{glob.escape(tempfile.gettempdir())}/anima-rows-*/lock"):
        with suppress(OSError), held(os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)) as fd:
            if flock(fd):  # else somebody has it open
                shutil.rmtree(os.path.dirname(lock), ignore_errors=True)


_SCRATCHES: weakref.WeakValueDictionary[tuple[str, int], Scratch] = weakref.WeakValueDictionary()
_MAKING = threading.Lock()
