"""The machine's own folder in a home, `.anima/`; the journal of files there that take the place of a home's own; and which
names a home's own files have.

Promise: made on the first write, 0700 with 0600 files whatever the umask; every replace is atomic and durable; nothing
here follows a link. No document path can reach it. In a swap all files are put in place or none: from the journal on the new
home is the one that counts, whoever opens it or takes its lock goes on where it stopped, and the next write of homes that were
open meanwhile is refused. Not here: what the files mean; which ones there are (whole), and which are swapped (backup).
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path

from anima.errors import BadInput, BadPath, Damaged, HomeBusy, Refused, printable
from anima.model import MAX_PATH, DocPath, File, fold
from anima.store import MACHINE, MOST_READ
from anima.store.lock import Handle, HomeLock, flock, patiently, restored_meanwhile
from anima.store.safe_open import RESTORED, HeldFolder, append_all, as_damage, held, is_restoring, read_range, why

STAGE, IGNORE = f"{MACHINE}/stage", f"{MACHINE}/.gitignore"
JOURNAL, LOG = "restoring", "restored"
AREA = f"{MACHINE}/restore"  # where files stand ready, each beneath its own path
GIT, BARE = ".git", f"{MACHINE}/history.git"
REPOSITORIES = {f"{GIT}/": False, f"{BARE}/": True}  # and whether it is bare
MACHINERY = (f"{MACHINE}/", f"{GIT}/")
LATEST = 0o77777777777  # the last second that a plain header of tar can name
_DERIVED = (f"{MACHINE}/index.sqlite", f"{MACHINE}/talks.sqlite")
# What is derived, or is this machine's own: locks, staged texts, the archives themselves, what a restore is doing.
_OWN = "stage lock index.lock dreaming mending snapshots restore restoring restored looked .gitignore"
_PASSING = frozenset(f"{MACHINE}/{name}" for name in _OWN.split())
_GIT_OWN = "anima.new anima.paths HEAD.lock index.lock packed-refs.lock config.lock refs/heads/main.lock"
_GIT_LOCKS = frozenset(f"{place}/{name}" for place in (GIT, BARE) for name in _GIT_OWN.split())
_PATIENCE = 5.0
_STAGED = re.compile(rf"{re.escape(STAGE)}/[0-9a-f]{{16}}")


class Machine:
    """The `.anima` folder of one store: its `State`, and what batches and logs stage there."""

    def __init__(self, store: HeldFolder) -> None:
        self._store = self.store = store
        lock = f"{MACHINE}/lock"
        self.lock = HomeLock(lambda: self.own(lock), lambda: store.stat(lock), entered=self._look_round)

    def _look_round(self) -> None:
        """Under the home lock, first thing: a restore that was cut short is finished, and one that came since is told."""
        if is_restoring(self._store):
            carry_on(self)
        self.check_epoch()

    def check_epoch(self) -> None:
        """Raises Refused when the home was restored since this store was opened: what we know of it is of another one."""
        if self._store.signature(RESTORED) != self._store.epoch:
            raise restored_meanwhile()

    def lease(self, name: str) -> HomeLock:
        """A lock of its own for work that must not hold the home's; like that one it dies with its holder."""
        path = f"{MACHINE}/{name}"
        return HomeLock(lambda: self.own(path), lambda: self._store.stat(path), counts=True)

    def make(self) -> None:
        """Makes the folder if it is not there yet, and has git leave it alone in whosever repository the home stands."""
        self._store.make_folder(STAGE)
        if self._store.stat(IGNORE) is None:
            with suppress(OSError):
                self.place(IGNORE, b"*\n", only_new=True)

    def key(self) -> bytes:
        """The home's secret, made once. Two processes that make it at the same moment agree on one."""
        if (found := self.get("key")) is not None:
            return found
        with self.lock.hold():
            self.put("key", secrets.token_bytes(48), only_new=True)
            found = self.get("key")
        if found is None:
            raise Damaged("the home's key cannot be read back")
        return found

    def log(self, name: str) -> FileLog:
        return FileLog(self, f"{MACHINE}/{name}")

    def get(self, name: str) -> bytes | None:
        with _usable(name), suppress(FileNotFoundError), self._store.regular(f"{MACHINE}/{name}") as (fd, found):
            if found.st_size > MOST_READ:
                raise Damaged(f"{name} is too large to be ours ({found.st_size:,} bytes)")
            return read_range(fd, 0, MOST_READ)
        return None

    def version(self, name: str) -> str | None:
        return self._store.version(f"{MACHINE}/{name}")

    def put(self, name: str, data: bytes, *, only_new: bool = False) -> None:
        folder = f"{MACHINE}/{name}".rpartition("/")[0]
        with _usable(name, to_write=True), suppress(FileExistsError):
            self._store.make_folder(folder)
            try:
                self.place(f"{MACHINE}/{name}", data, only_new=only_new)
            except FileNotFoundError:  # somebody swept what we had staged; whoever holds the home lock is spared that
                self.place(f"{MACHINE}/{name}", data, only_new=only_new)

    def remove(self, name: str) -> bool:
        with _usable(name, to_write=True), suppress(FileNotFoundError):
            self.unlink(f"{MACHINE}/{name}")
            return True
        return False

    def names(self, folder: str) -> list[str]:
        return [name for name in self._store.raw_names(f"{MACHINE}/{folder}") if not name.startswith(".")]

    # -- staging: a whole text on disk before anybody says that it will be used ------------------------------------------

    def stage(self, data: bytes | Iterable[bytes], *, mode: int = 0o600) -> str:
        """Puts bytes, whole or in pieces, into a nameless place of ours, on the disk; gives its path. Raises OSError."""
        name = f"{STAGE}/{secrets.token_hex(8)}"
        if self._store.stat(STAGE) is None:
            self.make()
        self._store.fill(name, (data,) if isinstance(data, bytes) else data, mode=mode)
        return name

    def scratch(self) -> int:
        """A descriptor of a file without a name, on the home's own disk: it is gone when it is closed. Raises OSError."""
        name = f"{STAGE}/{secrets.token_hex(8)}"
        fd = self._made(name, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        self.unstage(name)
        return fd

    def unstage(self, name: str) -> None:
        """Forgets a staged text that is not used. One that stays behind is swept up at the next recovery."""
        with suppress(OSError):
            os.unlink(name, dir_fd=self._store.fd)

    def sweep(self) -> None:
        """Forgets staged texts, but for those that somebody holds a lock on, and what a restore that was killed before it
        counted had unpacked. Whoever calls holds the home lock."""
        with suppress(Damaged):  # the next restore clears it, or says why it cannot
            if not is_restoring(self._store):
                clear_area(self._store)
        for name in [f"{STAGE}/{each}" for each in self._store.raw_names(STAGE)]:
            with suppress(OSError), self._store.regular(name) as (fd, _):
                if flock(fd):  # else it is being written
                    self.unstage(name)

    def staged_bytes(self, name: str) -> bytes | None:
        """A staged text; None when there is none, or when the name is none that we give."""
        return self.get(name.removeprefix(f"{MACHINE}/")) if _STAGED.fullmatch(name) else None

    def move(self, staged: str, target: str, *, only_new: bool = False) -> None:
        """Puts a staged text in its place. The folder is held by descriptor, so that no link on the way leads outside."""
        folder, _, name = target.rpartition("/")
        with self._store.inside(folder) as fd:
            if only_new:
                os.link(staged, name, src_dir_fd=self._store.fd, dst_dir_fd=fd, follow_symlinks=False)
            else:
                os.rename(staged, name, src_dir_fd=self._store.fd, dst_dir_fd=fd)

    def place(
        self, path: str, data: bytes | Iterable[bytes], *, mode: int = 0o600, only_new: bool = False, sync: bool = True
    ) -> None:
        """Puts bytes where a file stands, or nothing: whole or not at all, and with `sync` for good. Raises OSError."""
        staged = self.stage(data, mode=mode)
        try:
            self.move(staged, path, only_new=only_new)
            if sync:
                self.sync_folder(path.rpartition("/")[0])
        finally:
            self.unstage(staged)

    def _made(self, path: str, flags: int) -> int:
        try:
            return self._store.beneath(path, flags)
        except FileNotFoundError:
            self.make()
            return self._store.beneath(path, flags)

    def own(self, path: str, flags: int = 0) -> int:
        """A file that is ours for good, made when it is missing; only read where no more is allowed. Raises Damaged for an odd one."""
        with _usable(path, to_write=True):
            try:
                fd = self._made(path, flags | os.O_RDWR | os.O_CREAT | os.O_NONBLOCK)
            except OSError as error:
                if only_read_by(error) is None or self._store.stat(path) is None:
                    raise
                fd = self._made(path, os.O_RDONLY | os.O_NONBLOCK)
            try:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                    raise Damaged(f"{_short(path)} is not a regular file with one name; nothing was changed")
                if not _only_reads(fd) and stat.S_IMODE(found.st_mode) != 0o600:
                    os.fchmod(fd, 0o600)
            except BaseException:
                os.close(fd)
                raise
            return fd

    def unlink(self, path: str, *, sync: bool = True) -> None:
        """Deletes a file beneath the home, with `sync` durably. Raises OSError."""
        folder, _, name = path.rpartition("/")
        with self._store.inside(folder) as fd:
            os.unlink(name, dir_fd=fd)
            if sync:
                os.fsync(fd)

    def sync_folder(self, folder: str) -> None:
        with self._store.inside(folder) as fd:
            os.fsync(fd)


class FileLog(Handle):
    """An append-only file of the machine's; the ledger's `Log`. Opened on first use, kept open."""

    def __init__(self, machine: Machine, path: str) -> None:
        self._machine, self._path, self._fd = machine, path, -1

    def _handle(self) -> int:
        if self._fd < 0:
            self._fd = self._machine.own(self._path, os.O_APPEND)
            if os.fstat(self._fd).st_size == 0:
                with _usable(self._path):
                    self._machine.sync_folder(self._path.rpartition("/")[0])
        return self._fd

    def size(self) -> int:
        found = os.fstat(self._handle())
        if found.st_nlink == 0:  # what we would write now, nobody could read again
            self._machine.check_epoch()
            hint = "restore .anima from a backup, or open the home again to begin anew"
            raise Damaged(f"{_short(self._path)} was deleted while the home was open; nothing was changed", hint=hint)
        return found.st_size

    def read(self, start: int, end: int | None = None) -> bytes:
        with _usable(self._path):
            return read_range(self._handle(), start, self.size() if end is None else end)

    def append(self, data: bytes, *, sync: bool) -> None:
        """One write, continued when it is short. After an error the record stands whole, or not at all, or torn."""
        if _only_reads(self._handle()):
            self.close()  # it may be written to by now
        before = self.size()
        with as_damage(f"{_short(self._path)} cannot be used", instead=only_read_by):
            if _only_reads(self._handle()):
                raise OSError(errno.EROFS, "")
            append_all(self._handle(), data, before)  # a torn line readers pass over, and whoever adds next cuts it
            if sync:
                os.fsync(self._handle())

    def truncate(self, size: int) -> None:
        with _usable(self._path):
            os.ftruncate(self._handle(), size)
            os.fsync(self._handle())


# -- other files in the place of a home's -----------------------------------------------------------------------------------


def clear_area(store: HeldFolder) -> None:
    """An area without what an interrupted swap left there. Raises Damaged."""
    with as_damage("what an earlier restore left cannot be removed"), suppress(FileNotFoundError):
        shutil.rmtree(AREA, dir_fd=store.fd)


def carry_on(machine: Machine) -> None:
    """Does what the journal says, from wherever it stopped. Raises Damaged, and the next one to come tries again."""
    if (raw := machine.get(JOURNAL)) is None:
        return
    store, (puts, gone, said) = machine.store, _loaded(raw)
    with as_damage("a restore was interrupted and cannot be finished yet"):
        for path in gone:
            with suppress(FileNotFoundError, NotADirectoryError):
                machine.unlink(path, sync=False)
        own = (path for path in gone if not path.startswith((".anima/", ".git/")))  # folders of these may be empty
        for folder in sorted({above for path in own for above in folders_above(path)}, reverse=True):
            with suppress(OSError):  # something else is in it
                os.rmdir(folder, dir_fd=store.fd)
        folders = {_place(machine, path) for path in puts}
        for folder in sorted(folders | {path.rpartition("/")[0] for path in gone}):
            while folder and store.kind_of(folder) != "folder":  # it went with its last file
                folder = folder.rpartition("/")[0]
            machine.sync_folder(folder)
        _drop_derived(machine)
        lines = (machine.get(LOG) or b"").decode("utf-8", "replace").splitlines()[-1000:]
        if lines[-1:] != [said]:  # else by the one who was interrupted
            # That the file is another one tells every home that is open.
            machine.put(LOG, "".join(f"{each}\n" for each in (*lines, said)).encode())
        machine.remove(JOURNAL)
    with suppress(Damaged):  # all is done; else the next restore clears it
        clear_area(store)


def _loaded(raw: bytes) -> tuple[list[str], list[str], str]:
    """What a swap does: what is put in place, what is gone, and its line in the record of restores."""
    try:
        head, _, body = raw.partition(b"\n")
        if json.loads(head)["sha256"] != hashlib.sha256(body).hexdigest():
            raise ValueError("it is not what was written")
        found = json.loads(body)
        puts, gone = list(found["puts"]), list(found["gone"])
        if any(refusal(path) for path in (*gone, *puts)):
            raise ValueError("it names what no home holds")
        return puts, gone, str(found["said"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        hint = "restore the snapshot again after removing .anima/restoring"
        raise Damaged("a restore was interrupted, and its journal cannot be read", hint=hint) from error


def _place(machine: Machine, path: str) -> str:
    """Puts one file in its place; gives its folder. A staged file that is gone has been put there before."""
    store, staged, folder = machine.store, f"{AREA}/{path}", path.rpartition("/")[0]
    if store.stat(staged) is not None:
        try:
            if store.kind_of(path) == "folder":  # it goes if nothing but empty folders is in it
                for inner, _, _, _ in os.fwalk(path, topdown=False, dir_fd=store.fd):
                    os.rmdir(inner, dir_fd=store.fd)
            store.make_folder(folder)
            machine.move(staged, path)
        except BadInput as error:
            raise Damaged(f"{error}; the restore goes on when it is out of the way") from None
    return folder


def _drop_derived(machine: Machine) -> None:
    """Indexes are made again. Whoever is writing to one is waited for, but not for ever: it is only derived."""
    with held(machine.own(f"{MACHINE}/index.lock")) as fd:
        with suppress(HomeBusy):
            patiently(partial(flock, fd), _PATIENCE, str)
        for path in (f"{name}{end}" for name in _DERIVED for end in ("", "-wal", "-shm", "-journal")):
            with suppress(FileNotFoundError):
                machine.unlink(path, sync=False)


def _short(path: str) -> str:
    return path.removeprefix(f"{MACHINE}/")


def _usable(name: str, *, to_write: bool = False) -> AbstractContextManager[None]:
    said = f"{_short(name)} cannot be used"
    return as_damage(said, "; nothing was changed", instead=only_read_by if to_write else lambda error: None)


def _only_reads(fd: int) -> bool:
    return fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY


def only_read_by(error: OSError) -> Damaged | None:
    """What a home that may only be read says to whoever would write it; None for another error."""
    hint = "its disk is mounted for reading alone, or a mode keeps you from it, which anima doctor tells"
    said = Damaged("this home may only be read; nothing was changed", hint=hint)
    return said if error.errno in (errno.EACCES, errno.EROFS) else None


# -- names ------------------------------------------------------------------------------------------------------------------


def path_of_state(name: str) -> str:
    """Where a small thing of the machine's own stands in a folder, or in an archive: its name for people."""
    return f"{MACHINE}/{name}"


def check_names(files: Iterable[File]) -> None:
    """Names that stay inside a home and apart from each other, in order. Raises Refused."""
    before, apart = "", Apart()
    for file in files:
        name, why = printable(file.path), ""
        if refused := refusal(file.path):
            why = f"the snapshot holds {name}, which is refused: {refused}"
        elif file.path <= before:
            why = f"the snapshot names {name} twice, or out of order"
        elif file.mode != own_mode(file.path, file.mode):
            why = f"the snapshot gives {name} a mode no home has"
        elif not apart.take(file.path):
            why = f"two names in the snapshot are one to a home: {name}"
        if why:
            raise Refused(f"{why}; nothing was written", rule="archive")
        before = file.path


class Apart:
    """Names that no file system takes for one another, nor for a folder on the way to one of them."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def take(self, path: str) -> bool:
        """Whether a name is free; it is taken then."""
        key = path if path.startswith(MACHINERY) else fold(path)
        above = list(folders_above(key))
        if key in self._files or key in self._folders or not self._files.isdisjoint(above):
            return False
        self._files.add(key)
        self._folders.update(above)
        return True


def folders_above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def refusal(path: str) -> str:
    """Why a path can be none of a home's files; "" for one that can. Hidden names are allowed, unlike in a DocPath."""
    parts = path.split("/")
    if not path or len(path) > MAX_PATH or any(part in ("", ".", "..") for part in parts):
        return "it does not lie inside a home"
    if parts[0] in (GIT, MACHINE) and len(parts) > 1:
        if not path.isprintable() or "\\" in path or any(fold(part) in (GIT, MACHINE) for part in parts[1:]):
            return "it is no name anima gives"
        return "it is a file of this machine's own" if is_passing(path) else ""
    if any(fold(part) in (GIT, MACHINE) for part in parts):
        return "it belongs to a repository"
    try:
        DocPath.parse("/".join("_" + part.lstrip(".") if part.startswith(".") else part for part in parts))
    except BadPath as error:
        return error.why
    return ""


def is_passing(path: str) -> bool:
    """Whether a file of `.anima` or `.git` is derived, a lock, or this machine's own."""
    return path in _GIT_LOCKS or path.startswith(_DERIVED) or not _PASSING.isdisjoint([path, *folders_above(path)])


def own_mode(path: str, mode: int) -> int:
    """The mode a file is restored with: its owner may read and write it, and nobody else write."""
    return 0o600 if path.startswith(f"{MACHINE}/") else 0o600 | (mode & 0o755)


def make_home_folder(path: Path, *, for_owner: bool) -> None:
    """Makes the folder if it is missing; with `for_owner`, for its owner alone. Raises Refused."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        if for_owner:
            path.chmod(0o700)
    except FileExistsError:
        raise Refused(f"{path}: there is a file of that name; a home is a folder") from None
    except (OSError, ValueError) as error:
        raise Refused(f"{printable(str(path))}: the folder cannot be made ({why(error)})") from None


def mark_made(folder: HeldFolder, dialect: str) -> None:
    """Says that we made this home, and in which dialect: its history may then stand in `.git`, where people look for it."""
    Machine(folder).put("made", f"{dialect}\n".encode())


def made_as(folder: HeldFolder) -> str:
    """The dialect we made this home in; "" where we did not, or cannot tell."""
    with suppress(Damaged):
        return (Machine(folder).get("made") or b"").decode("utf-8", "replace").strip()
    return ""
