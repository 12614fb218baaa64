"""A home in PostgreSQL as a heap of files: kept in an archive, put back from one, and searched when something must go.

Promise: the archive is the one a folder would give, history as a git repository included, so it moves both ways. Other
files take the place of a home's in one transaction, all or none, and homes that were open meanwhile are told. What is
deleted stays in dead rows until the server vacuums, and in its log and backups; nothing here claims otherwise.
Not here: the archive itself (backup).
"""

from __future__ import annotations

import io
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, BinaryIO

from anima.model import FoundFile
from anima.store import ASIDE, MACHINE, Whole
from anima.store.folder import Folder
from anima.store.git import History
from anima.store.private import BARE, GIT, LATEST, own_mode, refusal
from anima.store.rows.history import RowHistory
from anima.store.whole import OWN_MARK, census

if TYPE_CHECKING:
    from anima.store.rows.store import RowStore

KEY, LEDGER = f"{MACHINE}/key", f"{MACHINE}/ledger.jsonl"
_HISTORIES = (f"{GIT}/", f"{BARE}/")


class RowWhole(Whole):
    """All files of one home in the database, the ledger, the key and history among them."""

    def __init__(self, store: RowStore) -> None:
        self._store, self._files = store, store.files
        self.name, self.identity, self.state, self.snapshots = store.name, store.identity, store.state, store.shelf
        self._repository: tuple[str, str] | None = None  # the head of history, and where it stands as a repository

    def key(self) -> bytes:
        _ = self._store.key
        return self._store.state.get("key") or b""

    def lock(self) -> AbstractContextManager[None]:
        return self._store.lock()

    def last_record(self) -> bytes:
        data = self._store.log.read(max(0, self._store.log.size() - (1 << 20)))
        return data[data.rfind(b"\n", 0, max(0, len(data) - 1)) + 1 :]

    def outside(self, folder: str) -> str:
        return os.path.abspath(os.path.expanduser(folder))

    def census(self) -> tuple[list[FoundFile], list[tuple[str, str]]]:
        found = [
            FoundFile(row.path, row.size, own_mode(row.path, row.mode), min(int(row.time.timestamp()), LATEST))
            for row in self._files.beneath("")
            if not refusal(row.path)
        ]
        found += [FoundFile(path, len(self.read(path) or b""), 0o600, 0) for path in (KEY, LEDGER) if self.read(path)]
        if (place := self._as_repository()) is not None:
            with closing(Folder(place)) as folder:
                found += [each._replace(mtime=0) for each in census(folder)[0]]
        return sorted(found), []

    def files(self) -> Iterator[tuple[str, int]]:
        yield from ((found.path, found.size) for found in self._files.beneath(""))
        yield from ((path, len(data)) for path in (KEY, LEDGER) if (data := self.read(path)))

    def traces(self) -> Iterator[str]:
        yield from (path for path, _ in self.files() if path not in (KEY, f"{MACHINE}/forgotten"))

    def read(self, path: str) -> bytes | None:
        if path == KEY:
            return self._store.state.get("key")
        if path == LEDGER:
            return self._store.log.read(0) or None
        if path.startswith(_HISTORIES) and self._repository is not None:
            with open(f"{self._repository[1]}/{path}", "rb") as file:
                return file.read()
        return self._files.content(path)

    @contextmanager
    def open(self, path: str) -> Iterator[tuple[BinaryIO, int]]:
        data = self.read(path)
        if data is None:
            raise FileNotFoundError(path)
        yield io.BytesIO(data), len(data)

    @contextmanager
    def scratch(self) -> Iterator[BinaryIO]:
        with tempfile.TemporaryFile() as file:
            yield file

    def replace(self, path: str, data: bytes) -> None:
        with self._store.lock():
            found = self._files.look(path)
            self._files.put(path, data, version=self._store.next_version(), mode=found.mode if found else 0o600)

    def is_machinery(self, path: str) -> bool:
        return path.startswith(f"{MACHINE}/")

    has_foreign_git = False

    def drop_old_histories(self) -> None:
        """Deletes the repositories that a repair set aside in the folder that this home was moved from."""
        every = {found.path for found in self._files.beneath(f"{MACHINE}/{ASIDE}")}
        for path in every.difference(self.set_aside()):
            self.drop_set_aside(path)

    def _as_repository(self) -> str | None:
        """A folder in which history stands as a folder's home has it; None where there is none."""
        history = RowHistory(self._store.rows)
        if (head := history.head()) is None:
            return None
        if self._repository is None or self._repository[0] != head:
            top = GIT if self._store.state.get("made") is not None else BARE
            place = tempfile.mkdtemp(dir=self._store.scratch(""))
            os.makedirs(os.path.dirname(f"{place}/{top}"), exist_ok=True)
            exclude = (f"{MACHINE}/", "/sessions/", ".*") if top == GIT else ()
            with closing(History.create(f"{place}/{top}", bare=top != GIT, exclude=exclude)) as repository:
                repository.take_in(history.revisions())
            if self._repository is not None:
                shutil.rmtree(self._repository[1], ignore_errors=True)  # as it was before the last change
            self._repository = (head, place)
        return self._repository[1]

    @contextmanager
    def swapping(self) -> Iterator[RowSwap]:
        with tempfile.TemporaryDirectory(prefix="anima-") as place, closing(Folder(place)) as folder:
            yield RowSwap(self._store, folder, self._as_repository())


class RowSwap:
    """Files that stand ready in a folder of this machine, to take the place of a home's in one transaction."""

    def __init__(self, store: RowStore, folder: Folder, repository: str | None) -> None:
        self._store, self._folder, self.place, self._repository = store, folder, folder.root, repository

    def stage(self, path: str, pieces: Iterable[bytes], *, mode: int, mtime: int) -> None:
        self._folder.fill(path, pieces, mode=mode, mtime=mtime, sync=False)

    def begin(self, puts: Iterable[str], gone: Iterable[str], said: str) -> None:
        store, files, puts, gone = self._store, self._store.files, tuple(puts), tuple(gone)
        with store.lock():
            store.rows.tell("update anima.home set epoch = epoch + 1 where [own]")
            for path in gone:
                files.remove(path)
            for path in puts:
                if not path.startswith((*_HISTORIES, KEY, LEDGER)):
                    found = os.stat(f"{self.place}/{path}")
                    version = None if path.startswith(f"{MACHINE}/") else store.next_version()
                    moment, mode = datetime.fromtimestamp(found.st_mtime, UTC), found.st_mode & 0o777
                    files.put(path, self._bytes(path), version=version, mode=mode, time=moment)
            if KEY in puts:
                store.put_key(self._bytes(KEY))
            if LEDGER in (*puts, *gone):
                store.put_ledger(self._bytes(LEDGER) if LEDGER in puts else b"")
            if any(path.startswith(_HISTORIES) for path in (*puts, *gone)):
                self._put_history(gone)
            store.state.put("restored", (store.state.get("restored") or b"") + said.encode() + b"\n")

    def _bytes(self, path: str) -> bytes:
        with open(f"{self.place}/{path}", "rb") as file:
            return file.read()

    def _put_history(self, gone: Sequence[str]) -> None:
        """History as the repository has it that stands there now, without what is gone and with what is staged."""
        for top in (GIT, BARE):
            held = f"{self._repository}/{top}" if self._repository else ""
            for folder, _, names in os.walk(held) if os.path.isdir(held) else ():
                for name in names:
                    path = os.path.relpath(f"{folder}/{name}", self._repository)
                    if path not in gone and not os.path.exists(f"{self.place}/{path}"):
                        os.makedirs(os.path.dirname(f"{self.place}/{path}"), exist_ok=True)
                        shutil.copyfile(f"{folder}/{name}", f"{self.place}/{path}")
            if os.path.isfile(f"{self.place}/{top}/{OWN_MARK}"):
                with closing(History.open(f"{self.place}/{top}")) as repository:
                    self._store.put_history(repository.revisions())
                return
        self._store.put_history(())
