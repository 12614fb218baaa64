"""Putting other files in the place of a home's, all or none, whatever happens in between.

Promise: what is to come stands on the disk, in the home's own folder, before a journal says so; from the journal on
the new home is the one that counts, and whoever opens the home or takes its lock goes on where it stopped. Homes that
were open meanwhile are told: their next write is refused. Whoever calls holds the home lock, and hands over paths that
`census.refusal` passed. Not here: which files those are (backup).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from typing import NamedTuple, Protocol

from anima.errors import BadInput, Damaged, HomeBusy
from anima.model import File
from anima.store.census import folders_above, refusal, survey
from anima.store.folder import MACHINE, Folder, Unconfirmed, is_restoring, write_all
from anima.store.lock import flock, patiently
from anima.store.safe_open import open_beneath, open_regular

JOURNAL, LOG, AREA = "restoring", "restored", "restore"
_TREE = "home"  # beneath the area
_DERIVED = tuple(
    f"{name}{end}" for name in ("index.sqlite", "talks.sqlite") for end in ("", "-wal", "-shm", "-journal")
)
_MOST_LOG = 1000  # lines of the record of restores
_PATIENCE = 5.0


class _Machine(Protocol):
    """What of the machine's folder is needed here."""

    @property
    def store(self) -> Folder: ...
    def get(self, name: str) -> bytes | None: ...
    def put(self, name: str, data: bytes) -> None: ...
    def remove(self, name: str) -> bool: ...
    def move(self, staged: str, target: str) -> None: ...
    def unlink(self, path: str, *, sync: bool) -> None: ...
    def own(self, path: str, flags: int) -> int: ...
    def sync_folder(self, folder: str) -> None: ...


class _Put(NamedTuple):
    """A staged file, beneath the area, and where it goes."""

    staged: str
    path: str


class _Touch(NamedTuple):
    """A file whose bytes are right already, and the mode and second it is given."""

    path: str
    mode: int
    mtime: int


class _Journal(NamedTuple):
    """All that a swap does. `said` is its line in the record of restores."""

    puts: tuple[_Put, ...]
    gone: tuple[str, ...]
    touches: tuple[_Touch, ...]
    said: str


# -- staging ----------------------------------------------------------------------------------------------------------------


def clear(store: Folder) -> None:
    """An area without what an interrupted swap left there. Raises Damaged."""
    try:
        shutil.rmtree(f"{MACHINE}/{AREA}", dir_fd=store.fd)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise _failed("what an earlier restore left cannot be removed", error) from None


def staged_in(store: Folder) -> str:
    """Where what is staged lies, each file beneath its own path."""
    return f"{store.root}/{MACHINE}/{AREA}/{_TREE}"


class Swap:
    """Files that stand ready, beside the home, to take the place of its own. Whoever calls holds the home lock."""

    def __init__(self, machine: _Machine) -> None:
        self._machine, self._store = machine, machine.store
        self._touches: list[_Touch] = []
        clear(self._store)

    def stage(self, path: str, pieces: Iterable[bytes], *, mode: int, mtime: int) -> None:
        """Puts a file there, whole and on the disk, with the mode and second it will have. Raises Damaged."""
        staged = f"{MACHINE}/{AREA}/{_TREE}/{path}"
        self._store.make_folder(staged.rpartition("/")[0])
        try:
            fd = open_beneath(self._store.fd, staged, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                for piece in pieces:
                    write_all(fd, piece)
                _dress(fd, mode, mtime)
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise _failed("the snapshot cannot be unpacked", error) from None

    def restamp(self, path: str, *, mode: int, mtime: int) -> None:
        """Gives a file of the home, whose bytes are right already, its mode and second."""
        self._touches.append(_Touch(path, mode, mtime))

    def begin(self, puts: Iterable[str], gone: Iterable[str], said: str) -> None:
        """From here on these files count in place of the home's own, and those that are `gone` no more."""
        machine, staged = self._machine, tuple(_Put(f"{_TREE}/{path}", path) for path in puts)
        try:
            for folder in {put.staged.rpartition("/")[0] for put in staged}:
                machine.sync_folder(f"{MACHINE}/{AREA}/{folder}")
        except OSError as error:
            raise _failed("the snapshot cannot be unpacked", error) from None
        journal = _Journal(staged, tuple(gone), tuple(self._touches), said)
        body = json.dumps(journal._asdict(), ensure_ascii=True).encode()
        try:
            machine.put(JOURNAL, json.dumps({"sha256": hashlib.sha256(body).hexdigest()}).encode() + b"\n" + body)
        except Damaged:
            machine.remove(JOURNAL)  # it may stand, but not for sure on the disk
            raise
        except KeyboardInterrupt:
            if machine.get(JOURNAL) is None:
                raise
        try:
            carry_on(self._store, machine)
        except (Damaged, KeyboardInterrupt):  # whoever stops it now would be told that nothing was done
            _go_on(self._store, machine)

    def survey(self) -> dict[str, tuple[File, int]]:
        """What is staged, read and hashed, with its time."""
        folder = Folder(staged_in(self._store))
        try:
            return survey(folder)
        finally:
            folder.close()

    def drop(self) -> None:
        """Forgets what is staged, unless it counts already."""
        if not is_restoring(self._store):
            clear(self._store)


def _dress(fd: int, mode: int, mtime: int) -> None:
    os.fchmod(fd, mode)
    os.utime(fd, (mtime, mtime))


# -- the journal ------------------------------------------------------------------------------------------------------------


def _go_on(store: Folder, machine: _Machine) -> None:
    """Once more; what fails again is finished by whoever opens the home next."""
    try:
        carry_on(store, machine)
    except Damaged as error:
        raise Unconfirmed(f"{error}; it is finished when the home is next opened", hint=error.hint) from None


def carry_on(store: Folder, machine: _Machine) -> None:
    """Does what the journal says, from wherever it stopped. Raises Damaged, and the next one to come tries again."""
    if (raw := machine.get(JOURNAL)) is None:
        return
    swap = _loaded(raw)
    try:
        _remove(store, machine, swap.gone)
        folders = {_place(machine, put) for put in swap.puts}
        for touch in swap.touches:
            _touch(store, touch)
        for folder in sorted(folders | {path.rpartition("/")[0] for path in swap.gone}):
            _sync(machine, folder)
        _drop_derived(store, machine)
        _log(machine, swap.said)
        machine.remove(JOURNAL)
    except OSError as error:
        raise _failed("a restore was interrupted and cannot be finished yet", error) from None
    try:
        clear(store)
    except Damaged:
        pass  # all is done; the next restore clears it


def _loaded(raw: bytes) -> _Journal:
    try:
        head, _, body = raw.partition(b"\n")
        if json.loads(head)["sha256"] != hashlib.sha256(body).hexdigest():
            raise ValueError("it is not what was written")
        found = json.loads(body)
        swap = _Journal(
            tuple(_Put(*put) for put in found["puts"]),
            tuple(found["gone"]),
            tuple(_Touch(*touch) for touch in found["touches"]),
            str(found["said"]),
        )
        if any(refusal(path) for path in (*swap.gone, *(p.path for p in swap.puts), *(t.path for t in swap.touches))):
            raise ValueError("it names what no home holds")
        if any(".." in put.staged.split("/") for put in swap.puts):
            raise ValueError("it stages from elsewhere")
        return swap
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(
            "a restore was interrupted, and its journal cannot be read",
            hint="restore the snapshot again after removing .anima/restoring",
        ) from error


def _place(machine: _Machine, put: _Put) -> str:
    """Puts one file in its place; gives its folder. A staged file that is gone has been put there before."""
    staged, folder = f"{MACHINE}/{AREA}/{put.staged}", put.path.rpartition("/")[0]
    if machine.store.stat(staged) is not None:
        try:
            _clear_way(machine.store, put.path)
            machine.store.make_folder(folder)
            machine.move(staged, put.path)
        except BadInput as error:
            raise Damaged(f"{error}; the restore goes on when it is out of the way") from None
        machine.store.forget(put.path)
    return folder


def _clear_way(store: Folder, path: str) -> None:
    """Removes a folder of that name, if nothing but empty folders is in it."""
    found = store.stat(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        for folder, _, _, _ in os.fwalk(path, topdown=False, dir_fd=store.fd):
            os.rmdir(folder, dir_fd=store.fd)


def _touch(store: Folder, touch: _Touch) -> None:
    try:
        fd, found = open_regular(store.fd, touch.path)
    except FileNotFoundError:
        return
    try:
        if int(found.st_mtime) != touch.mtime or found.st_mode & 0o777 != touch.mode:
            _dress(fd, touch.mode, touch.mtime)
    finally:
        os.close(fd)


def _remove(store: Folder, machine: _Machine, paths: Iterable[str]) -> None:
    """Deletes files, and the folders that are empty then; those of `.anima` and `.git` may be empty."""
    for path in paths:
        try:
            machine.unlink(path, sync=False)
        except (FileNotFoundError, NotADirectoryError):
            pass
        store.forget(path)
    own = (path for path in paths if not path.startswith((".anima/", ".git/")))
    for folder in sorted({above for path in own for above in folders_above(path)}, reverse=True):
        try:
            os.rmdir(folder, dir_fd=store.fd)
        except OSError:
            pass  # something else is in it


def _sync(machine: _Machine, folder: str) -> None:
    """A folder that went with its last file is synced in the one above it."""
    while True:
        try:
            machine.sync_folder(folder)
            return
        except (FileNotFoundError, NotADirectoryError):
            if not folder:
                raise
            folder = folder.rpartition("/")[0]


def _drop_derived(store: Folder, machine: _Machine) -> None:
    """Indexes are made again. Whoever is writing to one is waited for, but not for ever: it is only derived."""
    fd = machine.own(f"{MACHINE}/index.lock", os.O_RDWR | os.O_CREAT)
    try:
        with suppress(HomeBusy):
            patiently(partial(flock, fd), _PATIENCE, str)
        for name in _DERIVED:
            if store.stat(f"{MACHINE}/{name}") is not None:
                machine.unlink(f"{MACHINE}/{name}", sync=False)
    except FileNotFoundError:
        pass
    finally:
        os.close(fd)


def _log(machine: _Machine, said: str) -> None:
    """One line more in the record of restores. That the file is another one tells every home that is open."""
    lines = (machine.get(LOG) or b"").decode("utf-8", "replace").splitlines()[-_MOST_LOG:]
    if lines[-1:] == [said]:
        return  # by the one who was interrupted
    machine.put(LOG, "".join(f"{each}\n" for each in (*lines, said)).encode())


def _failed(what: str, error: OSError) -> Damaged:
    return Damaged(f"{what} ({os.strerror(error.errno or 0)})")
