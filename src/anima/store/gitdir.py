"""A git repository as files: its objects, its branch main, its locks.

Promise: no hook, filter, attribute or configuration is read, let alone run, whether it stands in the repository, in the
user's home or in the system. Of libgit2 only the object database is used; every other file is opened beneath the
repository's own folder without following links, and put in place under git's own locks. A lock that a killed process
of ours leaves behind is known as ours, and the next one takes it away.
Not here: what the objects mean (gitformat) and what is done with them (git).
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress

import pygit2
from pygit2.enums import ConfigLevel, ObjectType

from anima.errors import Damaged, HomeBusy, HomeError, printable
from anima.store.safe_open import open_beneath, open_regular

BRANCH = "refs/heads/main"
MARK = "anima"  # the file that tells our repositories from all others
HINT = "anima doctor --repair mends history; the documents are not touched"
FOREIGN = (pygit2.GitError, OSError, KeyError, ValueError)  # what libgit2, the disk and bad objects raise

_OWN, _LOCK = "anima.new", "anima.lock"
_GIT_LOCKS = ("HEAD.lock", "index.lock", "packed-refs.lock", f"{BRANCH}.lock")
_LOGS = ("logs", "logs/refs", "logs/refs/heads")
_FOLDERS = ("objects", "objects/pack", "objects/info", "refs", "refs/heads", "info", *_LOGS)
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)  # file systems without second names
_ATTRIBUTES = "* -text"
_PLAIN = re.compile(  # what git only ever reads as data
    r"HEAD|ORIG_HEAD|anima|anima\.index|index|packed-refs|info/exclude|objects/info/packs|(?:refs|logs)/.+|objects/(?:[0-9a-f]{2}|pack)/[^/]+"
)
_MAX_OBJECT = 64 * 2**20
_MAX_FILE = 256 * 2**20
_PATIENCE = 10.0  # seconds; a commit takes a millisecond


class GitDir:
    """One repository's folder. Threads and processes may share it."""

    def __init__(self, path: str, *, fsync: bool) -> None:
        """With `fsync`, what is written is on the disk when the call returns."""
        self.path, self._fsync = os.path.abspath(path), fsync
        self._mutex = threading.RLock()
        self._fd = -1
        with mapped():
            self._bind()

    def close(self) -> None:
        with self._mutex:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    # -- who may do something now -------------------------------------------------------------------------------------

    @contextmanager
    def reading(self) -> Iterator[None]:
        with self._mutex, mapped():
            self._bind()
            self.must_be_safe()
            yield

    @contextmanager
    def guard(self) -> Iterator[None]:
        """One thread of one process at a time. The lock ends with its holder, however that ends."""
        with self._mutex, mapped():
            held = self._hold()
            try:
                self._sweep()
                yield
            finally:
                os.close(held)

    def must_be_safe(self) -> None:
        if self.unsafe:
            raise Damaged(self.unsafe, hint=HINT)

    def _hold(self) -> int:
        deadline = time.monotonic() + _PATIENCE
        while True:
            self._bind()
            fd = open_beneath(self._fd, _LOCK, os.O_RDWR | os.O_CREAT)
            if _locked(fd) and self._is_in_place():
                return fd
            os.close(fd)
            if time.monotonic() >= deadline:
                raise HomeBusy("another process at work on history", seconds=_PATIENCE)
            time.sleep(0.002)

    def _is_in_place(self) -> bool:
        """Whether the folder we hold is still the one at our path: a repair puts another there."""
        try:
            return self._fd >= 0 and os.path.samestat(os.stat(self.path), os.fstat(self._fd))
        except FileNotFoundError:
            return False

    def _bind(self) -> None:
        if self._is_in_place():
            return
        self.close()
        self._fd = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self.bare = b"bare" in (self.read(MARK) or b"")
        self.unsafe = self._prepare()
        self.forget()

    def _prepare(self) -> str:
        """Make folders that git would miss. Says what is wrong if libgit2 would read or write outside of this one."""
        for folder in _FOLDERS:
            found = self._stat(folder)
            if found is None:
                os.mkdir(folder, 0o700, dir_fd=self._fd)
            elif not stat.S_ISDIR(found.st_mode):
                return f"{folder} of history is not a folder"
        linked = [entry.name for entry in _listed(self._objects) if entry.is_symlink()]
        return f"objects/{printable(linked[0])} of history is a link" if linked else ""

    def _sweep(self) -> None:
        """Take away the lock of a process of ours that was killed while it held it."""
        if (own := self._stat(_OWN)) is None:
            return
        for name in self.locks():
            lock = self._stat(name)
            if lock is not None and os.path.samestat(lock, own):
                self.remove(name)
        self.remove(_OWN)

    def locks(self) -> list[str]:
        """The lock files of git that are there."""
        return [name for name in _GIT_LOCKS if self._stat(name) is not None]

    # -- objects ------------------------------------------------------------------------------------------------------

    @property
    def _objects(self) -> str:
        return f"{self.path}/objects"

    def forget(self) -> None:
        """From now on read objects from the disk again, even those that were read or written before."""
        self._odb = pygit2.Odb()
        self._odb.add_backend(pygit2.OdbBackendLoose(self._objects, 1, self._fsync, 0o700, 0o600), 2)
        self._odb.add_backend(pygit2.OdbBackendPack(self._objects), 1)

    def put(self, kind: ObjectType, data: bytes) -> str:
        return str(self._odb.write(kind, data))

    def get(self, name: str, kind: ObjectType) -> bytes:
        """An object's bytes. libgit2 compares them with the id, so what is returned is what was written."""
        loose = self._stat(f"objects/{name[:2]}/{name[2:]}")
        if loose is not None and not stat.S_ISREG(loose.st_mode):  # libgit2 would wait for a pipe, or follow a link
            raise Damaged(f"object {name[:10]} of history is not a file", hint=HINT)
        if self._odb.read_header(name)[1] > _MAX_OBJECT:
            raise Damaged(f"object {name[:10]} of history is too large", hint=HINT)
        found, data = self._odb.read(name)
        if found != kind:
            raise Damaged(f"object {name[:10]} of history is not what it should be", hint=HINT)
        return bytes(data)

    def every(self, kinds: Iterable[ObjectType]) -> Iterator[tuple[str, bytes]]:
        """Every object of these kinds, whether anything leads to it or not."""
        wanted = set(kinds)
        for name in list(self._odb):
            kind, data = self._odb.read(name)
            if kind in wanted:
                yield str(name), bytes(data)

    def refs(self) -> list[str]:
        """The names of all branches, tags and the like."""
        packed = re.findall(rb"^[0-9a-f]{40} (\S+)$", self.read("packed-refs") or b"", re.MULTILINE)
        return sorted({name.decode("utf-8", "replace") for name in packed} | set(self._loose_refs("refs", 0)))

    def _loose_refs(self, folder: str, depth: int) -> Iterator[str]:
        for entry in _listed(f"{self.path}/{folder}") if depth < 16 else ():
            name = f"{folder}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from self._loose_refs(name, depth + 1)
            else:
                yield name

    def pack(self, limit: int) -> int:
        """Put the oldest loose objects into one pack and take them away. Returns how many they were."""
        loose = sorted(self._loose())[:limit]
        if loose:
            self._write_pack(name for _, name, _ in loose)
        for _, _, path in loose:
            os.unlink(path)
        return len(loose)

    def _loose(self) -> Iterator[tuple[int, str, str]]:
        for folder in _listed(self._objects):
            for entry in _listed(folder.path) if re.fullmatch("[0-9a-f]{2}", folder.name) else ():
                if re.fullmatch("[0-9a-f]{38}", entry.name):
                    yield entry.stat(follow_symlinks=False).st_mtime_ns, folder.name + entry.name, entry.path

    def _write_pack(self, names: Iterable[str]) -> None:
        place = f"{self._objects}/pack"
        with _no_configuration():
            shell = pygit2.Repository()
            shell.set_odb(self._odb)
            packing = pygit2.PackBuilder(shell)
            packing.set_threads(1)
            for name in names:
                packing.add(pygit2.Oid(hex=name))
            packing.write(place)
        for path in (*(entry.path for entry in _listed(place)), place):  # on the disk before the loose ones go
            _sync(path)

    # -- the branch ---------------------------------------------------------------------------------------------------

    def main(self) -> str | None:
        """The commit main is at; None if there is no main."""
        raw = self.read(BRANCH)
        if raw is None:
            packed = self.read("packed-refs") or b""
            found = re.search(rb"^([0-9a-f]{40}) %s$" % BRANCH.encode(), packed, re.MULTILINE)
            return found[1].decode() if found else None
        if re.fullmatch(rb"[0-9a-f]{40}\n?", raw) is None:
            raise Damaged("the branch main of history is unreadable", hint=HINT)
        return raw[:40].decode()

    def point(self, new: str, *, old: str | None, person: bytes) -> bool:
        """Move main from one commit to another; False if it is no longer where it was."""
        if not self.replace(BRANCH, f"{new}\n".encode(), unless=lambda: self.main() != old):
            return False
        with suppress(OSError):  # the reflog is a convenience
            line = b"%s %s %s\tcommit\n" % ((old or "0" * 40).encode(), new.encode(), person)
            self._put_bytes(f"logs/{BRANCH}", line, os.O_APPEND)
        return True

    def on_main(self) -> bool:
        """Whether HEAD, and so a person's git, is on our branch."""
        return (self.read("HEAD") or b"").strip() == f"ref: {BRANCH}".encode()

    def tips(self) -> list[str]:
        """Where main is and was, newest first, as far as is known."""
        raw = self.read(f"logs/{BRANCH}") or b""
        tips = [name.decode() for name in re.findall(rb"^[0-9a-f]{40} ([0-9a-f]{40}) ", raw, re.MULTILINE)[::-1]]
        with suppress(Damaged):
            if head := self.main():
                tips.insert(0, head)
        return tips

    # -- files --------------------------------------------------------------------------------------------------------

    def read(self, name: str) -> bytes | None:
        try:
            fd, found = open_regular(self._fd, name)
        except FileNotFoundError:
            return None
        try:
            if found.st_size > _MAX_FILE:
                raise Damaged(f"{name} of history is too large", hint=HINT)
            return b"".join(iter(lambda: os.read(fd, found.st_size + 1), b""))
        finally:
            os.close(fd)

    def write(self, name: str, data: bytes) -> None:
        """Make a file anew, without git's lock: for files that only we know."""
        self.remove(name)
        self._put_bytes(name, data, os.O_EXCL)

    def _put_bytes(self, name: str, data: bytes, flag: int) -> None:
        fd = open_beneath(self._fd, name, os.O_WRONLY | os.O_CREAT | flag)
        try:
            left = memoryview(data)
            while left:
                left = left[os.write(fd, left) :]
            if self._fsync:
                os.fsync(fd)
        finally:
            os.close(fd)

    def replace(
        self, name: str, data: bytes, *, patience: float = 1.0, unless: Callable[[], bool] = lambda: False
    ) -> bool:
        """Put a file in place as git does, under its lock `name.lock`. False if `unless` says so once it is held.

        The lock is a second name of a file of ours: should we be killed now, `_sweep` knows by that whose lock it is.
        """
        lock, deadline = f"{name}.lock", time.monotonic() + patience
        self.write(_OWN, data)
        while not self._link(lock):
            if time.monotonic() >= deadline:
                self.remove(_OWN)
                raise Damaged(f"{lock} of history is held: a git command is at work, or died", hint=HINT)
            time.sleep(0.005)
        refused = unless()
        if refused:
            self.remove(lock)
        else:
            os.rename(lock, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        self.remove(_OWN)
        return not refused

    def _link(self, lock: str) -> bool:
        try:
            os.link(_OWN, lock, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in _NO_LINKS or self._stat(lock) is not None:
                raise
            os.rename(_OWN, lock, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        return True

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._fd)

    def _stat(self, name: str) -> os.stat_result | None:
        try:
            return os.stat(name, dir_fd=self._fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None


def lay_out(path: str, *, bare: bool, exclude: Iterable[str]) -> None:
    """The files of an empty repository. A person's git must not change line endings, so we tell it."""
    for folder in ("", *_FOLDERS):
        os.makedirs(os.path.join(path, folder), mode=0o700, exist_ok=True)
    texts = {
        "config": _config(bare),
        "info/exclude": "\n".join(["/.git.*", *exclude]),
        "info/attributes": _ATTRIBUTES,
        "HEAD": f"ref: {BRANCH}",
        MARK: f"anima history 1 {'bare' if bare else 'work'}",
    }
    for name, text in texts.items():
        fd = os.open(os.path.join(path, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text + "\n")


def _config(bare: bool) -> str:
    config = [
        "[core]",
        "repositoryformatversion = 0",
        "filemode = false",
        f"bare = {str(bare).lower()}",
        "logallrefupdates = true",
        "autocrlf = false",
        "safecrlf = false",
        "quotepath = false",
    ]
    return "\n\t".join(config)


def harmless(name: str, data: bytes | None, *, bare: bool) -> bytes | None:
    """What may stand under a name in a repository that somebody else made: `data`, our own text for it, or None for
    nothing. With anything else a person's git could run a program there, or read other folders, at a mere `git log`."""
    own = {"config": _config(bare), "info/attributes": _ATTRIBUTES}.get(name)
    if own is not None:
        return f"{own}\n".encode()
    return data if _PLAIN.fullmatch(name) else None


@contextmanager
def mapped() -> Iterator[None]:
    """Whatever libgit2 and the disk say, as Damaged. Their messages hold absolute paths, so they are not repeated."""
    try:
        yield
    except HomeError:
        raise
    except OSError as error:
        raise Damaged(f"history cannot be used ({error.strerror or type(error).__name__})", hint=HINT) from error
    except FOREIGN as error:
        raise Damaged("a part of history is missing or cannot be read", hint=HINT) from error


def _locked(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
            raise
        return False
    return True


def _listed(folder: str) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return list(entries)


def _sync(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def _no_configuration() -> Iterator[None]:
    """For the one part of libgit2 that asks for configuration. The setting is process-wide, so it is put back."""
    levels = (ConfigLevel.PROGRAMDATA, ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL)
    before = [pygit2.settings.search_path[level] for level in levels]
    try:
        for level in levels:
            pygit2.settings.search_path[level] = ""
        yield
    finally:
        for level, path in zip(levels, before, strict=True):
            pygit2.settings.search_path[level] = path
