"""A store that keeps a home in memory: the second one behind the seam, for tests and for whoever builds a third.

Promise: everything the contract of a `Store` asks (`anima.testing.store_contract`), with nothing on a disk; several
MemoryStores over one `Shelf` are one home opened several times. Not here: whatever outlives its process.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime

from anima.errors import (
    BadArguments,
    BadText,
    HomeBusy,
    NoSuchDocument,
    NoSuchRevision,
    NoSuchSession,
)
from anima.ledger import Key, Ledger, Record
from anima.ledger.views import Provenance
from anima.model import MAX_BYTES, Change, DocPath, Document, Entry, Kind, Verdict, digest_of, fold
from anima.store import (
    Batch,
    Documents,
    Logs,
    LogState,
    Mend,
    Note,
    OpenFile,
    OpenLog,
    Revision,
    Rules,
    Written,
    never_whole,
    text_of,
)
from anima.store.edits import (
    Present,
    edit_of,
    intent_of,
    late_note,
    message_of,
    must_allow,
    patch_of,
    seen_record,
)


@dataclass(slots=True)
class _File:
    path: str
    data: bytes
    version: int
    time: datetime


@dataclass(slots=True, weakref_slot=True)
class Shelf:
    """What one home in memory holds, whoever has it open."""

    files: dict[str, _File] = field(default_factory=dict)  # by folded path
    small: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    ledger: bytearray = field(default_factory=bytearray)
    revisions: list[tuple[Revision, dict[str, bytes]]] = field(default_factory=list)  # each with its whole tree
    locks: dict[str, threading.RLock] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)  # of leases
    gone: list[tuple[int, str]] = field(default_factory=list)  # when a document went, and its path
    scratch: str | None = None  # a folder for derived files
    logs: dict[str, dict[str, _LogBytes]] = field(default_factory=dict)
    beside: dict[str, bytes] = field(default_factory=dict)
    counter: int = 0

    def next_version(self) -> int:
        self.counter += 1
        return self.counter


class MemoryDocuments(Documents):
    """The texts of a home in memory."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def _file(self, path: DocPath) -> _File:
        found = self._shelf.files.get(path.key)
        if found is None:
            raise NoSuchDocument(path.text)
        return found

    def read(self, path: DocPath) -> Document:
        found = self._file(path)
        text = text_of(path, found.data)
        digest = hashlib.sha256(found.data).hexdigest()
        return Document(path=DocPath.parse(found.path), text=text, digest=digest, time=found.time)

    def raw(self, path: DocPath, *, most: int) -> bytes:
        found = self._file(path)
        if len(found.data) > most:
            raise BadText(path.text, f"it has {len(found.data):,} bytes, and at most {most:,} are read")
        return found.data

    @contextmanager
    def opened(self, path: str) -> Iterator[OpenFile]:
        if (found := self._shelf.files.get(DocPath.parse(path).key)) is None:
            raise BadText(path, "it is not there")
        yield OpenFile(len(found.data), 0o600, iter([found.data]))

    def kind_of(self, path: str) -> str | None:
        is_file = DocPath.parse(path).key in self._shelf.files
        return "file" if is_file else "folder" if path in self._folders() else None

    def actual(self, path: DocPath) -> str | None:
        found = self._shelf.files.get(path.key)
        return found.path if found else next((f for f in self._folders() if fold(f) == path.key), None)

    def version(self, path: str) -> str | None:
        found = self._shelf.files.get(DocPath.parse(path).key)
        return str(found.version) if found else None

    def versions(self) -> dict[str, str]:
        return {file.path: str(file.version) for file in self._shelf.files.values()}

    def raw_names(self, folder: str) -> list[str]:
        return [entry.path.rpartition("/")[2] for entry in self.list(folder)]

    def list(self, folder: str = "") -> tuple[Entry, ...]:
        prefix = f"{fold(folder.rstrip('/'))}/" if folder else ""
        found: dict[str, Entry] = {}
        for file in self._shelf.files.values():
            if fold(file.path).startswith(prefix):
                depth = prefix.count("/") + 1
                path = "/".join(file.path.split("/")[:depth])
                is_folder = path != file.path
                found[path] = Entry(
                    path=path, is_folder=is_folder, size=0 if is_folder else len(file.data), time=file.time
                )
        return tuple(sorted(found.values(), key=lambda entry: (not entry.is_folder, entry.path)))

    def _folders(self) -> set[str]:
        parts = [file.path.split("/")[:-1] for file in self._shelf.files.values()]
        return {"/".join(each[: n + 1]) for each in parts for n in range(len(each))}


class MemoryState:
    """Small things of a home in memory."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def get(self, name: str) -> bytes | None:
        found = self._shelf.small.get(name)
        return found[1] if found else None

    def put(self, name: str, data: bytes, *, only_new: bool = False) -> None:
        if not (only_new and name in self._shelf.small):
            self._shelf.small[name] = (self._shelf.next_version(), data)

    def remove(self, name: str) -> bool:
        return self._shelf.small.pop(name, None) is not None

    def names(self, folder: str) -> Sequence[str]:
        inside = (name.removeprefix(f"{folder}/") for name in self._shelf.small if name.startswith(f"{folder}/"))
        return [name for name in inside if "/" not in name]

    def version(self, name: str) -> str | None:
        found = self._shelf.small.get(name)
        return str(found[0]) if found else None


class MemoryLog:
    """The ledger's bytes in memory."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def size(self) -> int:
        return len(self._shelf.ledger)

    def read(self, start: int, end: int | None = None) -> bytes:
        return bytes(self._shelf.ledger[start:end])

    def append(self, data: bytes, *, sync: bool) -> None:
        self._shelf.ledger += data

    def truncate(self, size: int) -> None:
        del self._shelf.ledger[size:]


@dataclass(slots=True)
class _LogBytes:
    data: bytearray
    of: int
    version: int
    time: datetime


class MemoryLogFile(OpenLog):
    """One log of a home in memory."""

    def __init__(self, logs: MemoryLogs, id: str, *, writes: bool) -> None:
        self.logs: MemoryLogs
        self.logs, self.id, self.replaced = logs, id, 0
        self._writes, self._of = writes, logs.held(id).of

    def close(self) -> None:
        self._writes = False

    def size(self) -> int:
        return len(self._held().data)

    def read(self, start: int, end: int) -> bytes:
        return bytes(self._held().data[start:end])

    def state(self) -> LogState:
        self._held()
        return self.logs.state_of(self.id)

    @contextmanager
    def alone(self) -> Iterator[int]:
        with self.logs.lock:
            yield len(self._writable().data)

    def add(self, data: bytes, at: int) -> None:
        held = self._writable()
        held.data += data
        self.logs.next_version_of(held)

    def cut(self, size: int) -> None:
        del self._writable().data[size:]

    def sync(self) -> None:
        self._writable()

    def follow(self) -> None:
        self._held()

    def rewrite(self, make: Callable[[], Iterable[bytes]]) -> None:
        with self.logs.lock:
            held = self._writable()
            held.data, held.of = bytearray(b"".join(make())), self.logs.next_version_of(held)
            self._held()

    def _held(self) -> _LogBytes:
        held = self.logs.held(self.id)
        if held.of != self._of:
            self._of, self.replaced = held.of, self.replaced + 1
        return held

    def _writable(self) -> _LogBytes:
        if not self._writes:
            raise BadArguments(f"the log of session {self.id} is closed, or was opened to be read")
        return self._held()


class MemoryLogs(Logs):
    """The logs of one folder of a home in memory."""

    def __init__(self, shelf: Shelf, folder: str, suffix: str, mend: Mend, clock: Callable[[], datetime]) -> None:
        self.folder, self.suffix, self.mend, self.state = folder, suffix, mend, MemoryState(shelf)
        self._shelf, self._clock = shelf, clock
        self._all: dict[str, _LogBytes] = shelf.logs.setdefault(self.name, {})
        self.lock = shelf.locks.setdefault(f"logs {self.name}", threading.RLock())

    def held(self, id: str) -> _LogBytes:
        if id not in self._all:
            raise NoSuchSession(f"{id}: there is no such session")
        return self._all[id]

    def next_version_of(self, held: _LogBytes) -> int:
        held.version, held.time = self._shelf.next_version(), self._clock()
        return held.version

    def state_of(self, id: str) -> LogState:
        held = self.held(id)
        return LogState(id, str(held.of), len(held.data), str(held.version), held.time)

    def versions(self) -> dict[str, str]:
        return {id: str(held.version) for id, held in self._all.items()}

    def look(self, id: str) -> LogState | None:
        return self.state_of(id) if id in self._all else None

    def open(self, id: str) -> MemoryLogFile:
        self.path_of(id)
        return MemoryLogFile(self, id, writes=False)

    def append_to(self, id: str) -> MemoryLogFile:
        self.path_of(id)
        return MemoryLogFile(self, id, writes=True)

    def made(self, id: str) -> MemoryLogFile:
        with self.lock:
            version = self._shelf.next_version()
            self._all.setdefault(id, _LogBytes(bytearray(), version, version, self._clock()))
        return MemoryLogFile(self, id, writes=True)

    def drop(self, id: str) -> bool:
        return self._all.pop(id, None) is not None

    def get(self, name: str) -> bytes | None:
        return self._shelf.beside.get(f"{self.folder}/{name}")

    def put(self, name: str, data: bytes) -> bool:
        self._shelf.beside[f"{self.folder}/{name}"] = data
        return True


class MemoryHistory:
    """Every version of every document, in memory."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def head(self) -> str | None:
        return self._shelf.revisions[-1][0].id if self._shelf.revisions else None

    def log(self, path: str | None = None, *, limit: int = 50) -> list[Revision]:
        newest_first = (revision for revision, _ in reversed(self._shelf.revisions))
        return [revision for revision in newest_first if path is None or path in revision.paths][:limit]

    def show(self, revision: str, path: str) -> bytes | None:
        return self._tree(revision).get(path)

    def tree(self, revision: str) -> Mapping[str, str]:
        return {path: hashlib.sha1(data).hexdigest() for path, data in self._tree(revision).items()}

    def diff(self, old: str | None, new: str, path: str | None = None) -> str:
        before, after = self._tree(old) if old else {}, self._tree(new)
        paths = sorted({*before, *after} if path is None else {path})
        changed = (p for p in paths if before.get(p) != after.get(p))
        return "".join(patch_of(p, before.get(p), after.get(p)) for p in changed)

    def anchors(self) -> list[tuple[int, str]]:
        return [revision.anchor for revision, _ in self._shelf.revisions if revision.anchor]

    def commit(self, files: Mapping[str, bytes | None], note: Note) -> str | None:
        before = self._shelf.revisions[-1][1] if self._shelf.revisions else {}
        after = {path: data for path, data in {**before, **files}.items() if data is not None}
        paths = tuple(sorted(path for path in files if before.get(path) != after.get(path)))
        if not paths:
            return None
        message = message_of(note, paths)
        identity = hashlib.sha1(f"{self.head()} {message} {sorted(after)}".encode()).hexdigest()
        revision = Revision(
            id=identity,
            time=note.time,
            author=note.author,
            actor=note.actor,
            subject=message.partition("\n")[0],
            reason=note.reason or None,
            session=note.session,
            rule=note.rule,
            batch=note.batch,
            anchor=note.anchor,
            paths=paths,
        )
        self._shelf.revisions.append((revision, after))
        return identity

    def _tree(self, revision: str) -> dict[str, bytes]:
        found = next((tree for known, tree in self._shelf.revisions if known.id.startswith(revision)), None)
        if found is None:
            raise NoSuchRevision(f"history has no revision {revision}")
        return found


class MemoryStore:
    """One home in memory. Two of them over one Shelf are one home opened twice."""

    def __init__(self, shelf: Shelf, rules: Rules) -> None:
        self._shelf, self.rules, self.author, self.identity = shelf, rules, rules.author, str(id(shelf))
        self.name = f"memory:{self.identity}"
        self.documents, self.state = MemoryDocuments(shelf), MemoryState(shelf)
        self._ledger: Ledger | None = None
        self._provenance: Provenance | None = None

    def logs(self, folder: str, *, suffix: str = ".jsonl", mend: Mend = never_whole) -> MemoryLogs:
        return MemoryLogs(self._shelf, folder, suffix, mend, self.rules.clock)

    @property
    def begun(self) -> bool:
        return bool(self._shelf.ledger)

    @property
    def key(self) -> Key:
        self.state.put("key", hashlib.blake2b(self.identity.encode(), digest_size=32).digest(), only_new=True)
        return Key(self.state.get("key") or b"")

    @property
    def ledger(self) -> Ledger:
        with self.lock():
            if self._ledger is None:
                ledger = Ledger(MemoryLog(self._shelf), clock=self.rules.clock, key=self.key)
                ledger.begin(self.key.id[:16])
                self._ledger = ledger
        return self._ledger

    @property
    def provenance(self) -> Provenance:
        with self.lock():
            if self._provenance is None:
                self._provenance = Provenance(self.key)
            self._provenance.fold(self.ledger.records(self._provenance.through))
            return self._provenance

    @property
    def history(self) -> MemoryHistory | None:
        return MemoryHistory(self._shelf) if self.rules.history else None

    @property
    def history_problem(self) -> str | None:
        return None

    def anchors(self) -> list[tuple[int, str]]:
        return self.history.anchors() if self.history else []

    # -- writing --------------------------------------------------------------------------------------------------------

    def write(self, batch: Batch) -> Written:
        must_allow(batch.verdict)
        with self.lock():
            if batch.what == "approve" and batch.of and self.ledger.carried_out(batch.of):
                return Written(repeated=True)
            present = [self._look(change, is_log=batch.is_log) for change in batch.changes]
            if not batch.is_log:
                self.commit()
            edits = []
            for change, found in zip(batch.changes, present, strict=True):
                there = self._present(change.to) if change.to else None
                edits.append(edit_of(change, found, key=self.key, there=there, is_log=batch.is_log))
            digests = tuple(digest_of(c.after(found.text)) for c, found in zip(batch.changes, present, strict=True))
            if not any(edits):
                return Written(digests=digests)
            intent = intent_of(batch, [edit for edit in edits if edit], ledger=self.ledger)
            self.ledger.intend(intent)
            for change, found, edit in zip(batch.changes, present, edits, strict=True):
                if edit:
                    self._apply(change, found)
            self.ledger.done(intent.id, sync=False)
            revision = None if batch.is_log else self.commit(reason=batch.changes[0].reason)
        return Written(change=intent.id, revision=revision, digests=digests)

    def _present(self, path: DocPath) -> Present:
        try:
            text: str | None = self.documents.read(path).text
        except NoSuchDocument:
            text = None
        actual = self.documents.actual(path) or path.text
        return Present(actual=actual, text=text, size=len((text or "").encode("utf-8")))

    def _look(self, change: Change, *, is_log: bool) -> Present:
        found = self._present(change.path)
        if seen := seen_record(self.provenance, change.path, found, key=self.key, is_log=is_log):
            self.ledger.add(*seen)
        change.check_base(found.text)
        return found

    def _apply(self, change: Change, found: Present) -> None:
        new = change.after(found.text)
        if change.kind is Kind.MOVE and change.to is not None:
            self._put(change.to, change.to.text, (new or "").encode("utf-8"))
        if new is None or change.kind is Kind.MOVE:
            self._shelf.gone.append((self._shelf.next_version(), self._shelf.files.pop(change.path.key).path))
            return
        self._put(change.path, found.actual, new.encode("utf-8"))

    def _put(self, path: DocPath, actual: str, data: bytes) -> None:
        self._shelf.files[path.key] = _File(actual, data, self._shelf.next_version(), self.rules.clock())

    def bring(self, path: DocPath, pieces: Iterable[bytes], verdict: Verdict, *, mode: int) -> bool:
        must_allow(verdict)
        with self.lock():
            if self.documents.exists(path):
                return False
            data = b"".join(pieces)
            if len(data) > 32 * MAX_BYTES:
                raise BadText(path.text, "it is too large to be kept in memory")
            self._put(path, path.text, data)
            return True

    def append(self, kind: str, fields: Mapping[str, object], *, sync: bool = True) -> Record:
        with self.lock():
            return self.ledger.add(kind, fields, sync=sync)

    def commit(self, *, reason: str = "") -> str | None:
        with self.lock():
            history = self.history
            if history is None or not self.begun:
                return None
            anchored = max((anchor[0] for anchor in history.anchors()), default=0)
            late = list(self.ledger.records(anchored, kinds=("intent", "outside", "found")))
            return self._commit_late(history, late, reason) if late else None

    def _commit_late(self, history: MemoryHistory, late: list[Record], reason: str) -> str | None:
        note, paths = late_note(late, author=self.rules.author, reason=reason, words={})
        files = {path: self._shelf.files.get(DocPath.parse(path).key) for path in paths}
        return history.commit({path: file.data if file else None for path, file in files.items()}, note)

    @contextmanager
    def lease(self, name: str, *, patience: float = 30.0) -> Iterator[int]:
        with self.lock(name, patience=patience):
            self._shelf.tokens[name] = self._shelf.tokens.get(name, 0) + 1
            yield self._shelf.tokens[name]

    def changed(self, since: str | None) -> tuple[str, tuple[str, ...] | None]:
        files = [(file.version, file.path) for file in self._shelf.files.values()]
        later = (path for version, path in (*files, *self._shelf.gone) if version > int(since or 0))
        return str(self._shelf.counter), tuple(sorted(set(later))) if since is not None else None

    @contextmanager
    def lock(self, name: str = "", *, patience: float = 30.0) -> Iterator[None]:
        held = self._shelf.locks.setdefault(name, threading.RLock())
        if not held.acquire(timeout=patience):
            raise HomeBusy("another thread of this process", seconds=patience)
        try:
            yield
        finally:
            held.release()

    def scratch(self, name: str, *, make: bool = False) -> str:
        if self._shelf.scratch is None:
            self._shelf.scratch = tempfile.mkdtemp(prefix="anima-")
            weakref.finalize(self._shelf, shutil.rmtree, self._shelf.scratch, ignore_errors=True)
        return f"{self._shelf.scratch}/{name}"

    def close(self) -> None:
        self._ledger = self._provenance = None
