"""A folder and what lies beneath it, and nothing else: opened, looked at and made; bytes in and out of what is open.

Promise: no path opened here follows a link or leaves the folder, even while somebody swaps folders for links: each
folder on the way is opened in the one before it, without following links, and held by descriptor.
Errors of the system are said as ours. Not here: which names are allowed (model.DocPath), what a document is (folder).
"""

from __future__ import annotations

import errno
import os
import shlex
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Literal

from anima.errors import BadArguments, BadPath, Damaged, NoSuchHome, Refused, printable
from anima.store.lock import Handle, flock

_NOFOLLOW = os.O_CLOEXEC | os.O_NOFOLLOW
ONLY_NAMED = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)  # a file that nobody wants to read or write
_FOLDER = ONLY_NAMED | os.O_DIRECTORY | _NOFOLLOW
BLOCK = 1 << 20
NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)  # of file systems without second names
RESTORED = ".anima/restored"  # the record of restores
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)

Kind = Literal["file", "folder", "link", "other"]
_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
Signature = tuple[int, int, int, int, int]


def closed() -> BadArguments:
    """The error of whoever goes on with a home that was let go: nothing is wrong with the home itself."""
    return BadArguments("this home was closed", hint="open it again with Home.open")


class Unconfirmed(Damaged):
    """Everything is in its place, but the disk did not confirm that it will stay there."""


def signature_of(found: os.stat_result) -> Signature:
    """What tells that a file is the one we read: device, inode, size and both times."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


def open_beneath(root: int, path: str, flags: int) -> int:
    """A descriptor for a relative path under the folder `root`. Raises OSError (ELOOP for a link on the way)."""
    *folders, name = path.split("/")
    if ".." in (*folders, name):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
    here = root
    try:
        for folder in folders:
            there = _opened(folder, here, _FOLDER)
            if here != root:
                os.close(here)
            here = there
        return _opened(name, here, flags | _NOFOLLOW)
    finally:
        if here != root:
            os.close(here)


def _opened(name: str, here: int, flags: int) -> int:
    try:
        return os.open(name, flags, 0o600, dir_fd=here)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def open_folder(root: int, path: str) -> int:
    """A descriptor of a folder beneath root ("" is root itself), no copy, which would share its place in a listing. To be closed."""
    return open_beneath(root, path or ".", os.O_RDONLY | os.O_DIRECTORY)


def open_regular(root: int, path: str) -> tuple[int, os.stat_result]:
    """A regular file opened for reading, with its stat. Pipes, devices and folders raise OSError, without blocking."""
    fd = open_beneath(root, path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        found = os.fstat(fd)
        if stat.S_ISDIR(found.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.ENOTSUP, "not a regular file")
    except BaseException:
        os.close(fd)
        raise
    return fd, found


def stat_at(path: str, folder: int | None = None) -> os.stat_result | None:
    """The stat of what stands there, a link itself; None where nothing does."""
    try:
        return os.stat(path, dir_fd=folder, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None


@contextmanager
def held(fd: int) -> Iterator[int]:
    try:
        yield fd
    finally:
        os.close(fd)


@contextmanager
def regular(root: int, path: str) -> Iterator[tuple[int, os.stat_result]]:
    """A regular file opened for reading, with its stat, and closed at the end. Raises OSError."""
    fd, found = open_regular(root, path)
    with held(fd):
        yield fd, found


def write_all(fd: int, data: bytes) -> None:
    """Writes everything: a short write is continued, an error raises."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def append_all(fd: int, data: bytes, at: int) -> None:
    """Writes everything at the end of a file, which is cut back to `at` where an error raises."""
    try:
        write_all(fd, data)
    except OSError:
        os.ftruncate(fd, at)
        raise


def read_range(fd: int, start: int, end: int) -> bytes:
    """The bytes of a range, fewer where the file ends before it."""
    pieces = []
    while start < end and (piece := os.pread(fd, min(end - start, BLOCK), start)):
        pieces.append(piece)
        start += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class HeldFolder(Handle):
    """A folder that is held by descriptor, and what lies beneath it: looked at, walked through, and made."""

    def __init__(self, root: str | Path) -> None:
        """Pins the folder. A link to a home is followed once, here; beneath the home no link is."""
        given = Path(root)
        try:
            given = given.expanduser()
            self.root = self.name = str(given.resolve(strict=True))
            self._fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            hint = f"anima init {shlex.quote(str(given))} makes a home there"
            raise NoSuchHome(f"{given}: there is no such folder", hint=hint) from None
        except NotADirectoryError:
            raise NoSuchHome(f"{given}: a home is a folder, and this is a file") from None
        except (OSError, RuntimeError, ValueError) as error:
            raise NoSuchHome(f"{printable(str(given))}: cannot be opened ({why(error)})") from None
        owner = os.fstat(self.fd).st_uid
        if owner != os.geteuid():
            self.close()
            said = f"{given}: the folder belongs to another user (uid {owner}); a home belongs to whoever runs it"
            raise Refused(said, rule="foreign-owner")
        self._held_whole: dict[Signature, bool] = {}  # of files with several names: whether all of them lie here
        self._named: dict[str, tuple[Signature, dict[str, str]]] = {}  # by folder: name, exact or folded → name
        self.epoch = self.signature(RESTORED)  # a restore puts another file there

    @property
    def fd(self) -> int:
        """The folder itself, held open. Raises BadArguments once it was let go."""
        if (fd := self._fd) < 0:  # looked at once: another thread may close it
            raise closed()
        return fd

    @property
    def identity(self) -> str:
        """What trust in this home is bound to: a folder that took this one's place has another."""
        return str(os.fstat(self.fd).st_ino)

    def check_there(self) -> None:
        """Raises Damaged where the folder itself was taken away while it was open: nothing in it is no answer then."""
        if os.fstat(self.fd).st_nlink == 0:
            raise Damaged(f"{self.root}: the folder was taken away while it was open", hint="is its disk mounted?")

    def holds_every_name(self, found: os.stat_result) -> bool:
        """Whether every name of a file lies in the home. Looks through all of it, once while the file is unchanged."""
        if found.st_nlink < 2:
            return True
        mark = signature_of(found)
        if mark not in self._held_whole:
            here = sum((each.st_dev, each.st_ino) == mark[:2] for _, each in self.walk())
            self._held_whole[mark] = here == found.st_nlink
        return self._held_whole[mark]

    def beneath(self, path: str, flags: int) -> int:
        return open_beneath(self.fd, path, flags)

    def regular(self, path: str) -> AbstractContextManager[tuple[int, os.stat_result]]:
        return regular(self.fd, path)

    def inside(self, folder: str) -> AbstractContextManager[int]:
        """A descriptor of a folder ("" is this one), closed at the end."""
        return held(open_folder(self.fd, folder))

    def stat(self, actual: str) -> os.stat_result | None:
        """The stat of a path as it is spelt on disk, or None. A quick look that reads nothing."""
        try:
            return os.stat(actual, dir_fd=self.fd, follow_symlinks=False)
        except (OSError, ValueError):
            return None

    def signature(self, actual: str) -> Signature | None:
        return signature_of(found) if (found := self.stat(actual)) else None

    def version(self, path: str) -> str | None:
        return ".".join(map(str, found)) if (found := self.signature(path)) else None

    def kind_of(self, path: str) -> Kind | None:
        return _KINDS.get(stat.S_IFMT(found.st_mode), "other") if (found := self.stat(path)) else None

    def raw_names(self, folder: str) -> tuple[str, ...]:
        """Every name in a folder, hidden ones too; none when there is no such folder, or it is not ours to read. Raises
        Damaged when the disk does not tell, because "nothing there" would be a lie."""
        try:
            with self.inside(folder) as fd:
                return tuple(os.listdir(fd))
        except ValueError:
            return ()
        except OSError as error:
            if error.errno in _NOT_THERE:
                return ()
            raise Damaged(f"{folder or 'the home'}: the folder cannot be read ({why(error)})") from None

    def last_line(self, actual: str) -> bytes:
        """The last line of a file of ours with its line end, if it has one; nothing where there is no file."""
        with suppress(OSError), self.regular(actual) as (fd, found):
            size, span = found.st_size, 4096
            while True:
                tail = os.pread(fd, span, max(0, size - span))
                if b"\n" in tail[:-1] or span >= size:
                    return tail[tail.rfind(b"\n", 0, max(len(tail) - 1, 0)) + 1 :]
                span *= 8
        return b""

    def walk(
        self,
        folder: str = "",
        shut: Callable[[str, OSError], object] = lambda path, error: None,
        enter: Callable[[str], bool] = lambda path: True,
    ) -> Iterator[tuple[str, os.stat_result]]:
        """(path, stat) of all that lies beneath a folder, hidden and folders too; links are not followed. `shut` is told of
        each folder that cannot be looked through, and `enter` says which are."""
        waits = [folder] if not folder or self.kind_of(folder) == "folder" else []
        while waits:
            seen, inside = list[tuple[str, os.stat_result]](), (at := waits.pop()) and f"{at}/"
            try:
                with self.inside(at) as fd:
                    for name in sorted(os.listdir(fd)):
                        with suppress(FileNotFoundError):  # it vanished while we looked
                            seen.append((inside + name, os.stat(name, dir_fd=fd, follow_symlinks=False)))
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                shut(at or ".", error)
            yield from seen
            waits += [path for path, found in reversed(seen) if stat.S_ISDIR(found.st_mode) and enter(path)]

    def free_bytes(self) -> int:
        """How much the disk still takes from us."""
        found = os.fstatvfs(self.fd)
        return found.f_bavail * found.f_frsize

    def fill(
        self, path: str, pieces: Iterable[bytes], *, mode: int, mtime: int | None = None, sync: bool = True
    ) -> None:
        """Makes a file where none is, and the folders above it; with `sync`, on the disk. Raises OSError."""
        self.make_folder(path.rpartition("/")[0])
        with held(self.beneath(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)) as fd:
            try:
                with suppress(OSError):  # a disk without locks
                    flock(fd)  # nobody sweeps it up while it is written
                for piece in pieces:
                    write_all(fd, piece)
                give_mode(fd, mode)
                if mtime is not None:
                    os.utime(fd, (mtime, mtime))
                if sync:
                    os.fsync(fd)
            except BaseException:
                with suppress(OSError):
                    os.unlink(path, dir_fd=self.fd)  # half a file is worse than none
                raise

    def make_folder(self, folder: str) -> None:
        """Makes a folder and those above it as far as they are missing, durably and for their owner alone."""
        made = ""
        for part in folder.split("/") if folder else ():
            above, made = made, f"{made}/{part}" if made else part
            if self.stat(made) is None:
                try:
                    with self.inside(above) as fd:
                        os.mkdir(part, 0o700, dir_fd=fd)
                        with held(open_beneath(fd, part, os.O_RDONLY | os.O_DIRECTORY)) as fresh:
                            give_mode(fresh, 0o700)  # whatever the umask
                        os.fsync(fd)
                except FileExistsError:
                    pass
                except OSError as error:
                    if error.errno in (errno.ELOOP, errno.EXDEV, errno.ENOTDIR):
                        raise BadPath(made, "a link or a file stands where a folder must be") from None
                    raise Damaged(f"{made}: the folder cannot be made ({why(error)})") from None


def is_restoring(store: HeldFolder) -> bool:
    """Whether a restore was begun and not ended. Raises Damaged where the disk does not tell: then nobody may read."""
    with as_damage("the home cannot be read", "; nothing was changed"):
        with suppress(FileNotFoundError, NotADirectoryError):
            os.stat(".anima/restoring", dir_fd=store.fd, follow_symlinks=False)
            return True
    return False


def give_mode(made: int | Path, mode: int) -> None:
    """Gives what we just made its mode. A disk that knows of none, as many a stick, says we may not."""
    with suppress(PermissionError):
        os.chmod(made, mode)


def why(error: BaseException) -> str:
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else str(error)


@contextmanager
def as_damage(
    what: str, end: str = "", *, instead: Callable[[OSError], Exception | None] = lambda error: None
) -> Iterator[None]:
    """What the system refuses inside is Damaged: `what`, why, and how it ended; or what `instead` makes of it."""
    try:
        yield
    except OSError as error:
        hint = "free some space and try again" if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
        raise instead(error) or Damaged(f"{what} ({why(error)}){end}", hint=hint) from None


def assured(what: str) -> AbstractContextManager[None]:
    """What the disk does not give its word for inside is Unconfirmed."""
    said = f"{what}: it is written, but the disk did not confirm it"
    hint = "look at the disk; the next write or opening makes sure of it"
    return as_damage(what, instead=lambda error: Unconfirmed(f"{said} ({why(error)})", hint=hint))
