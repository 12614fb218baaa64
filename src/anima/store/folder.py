"""A home in a folder: the one module that opens its files.

Promise: everything is opened relative to a descriptor of the home's own folder and beneath it; only regular files are
read, text is exact, and a document is found under any case or Unicode form of its name. A store lives as long as its
Home. Not here: who may see or write what (layout, gate), and in which order (reading, writing).
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Literal

from anima.errors import BadPath, BadText, Damaged, NoSuchDocument, NoSuchHome, Refused, printable
from anima.model import LONG, MAX_BYTES, DocPath, Document, Entry, digest_of, fold
from anima.store import MACHINE, Documents, OpenFile, closed, text_of
from anima.store.safe_open import (
    BLOCK,
    ONLY_NAMED,
    held,
    open_beneath,
    open_folder,
    open_regular,
    read_range,
    regular,
    write_all,
)

Kind = Literal["file", "folder", "link", "other"]
_KINDS: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}

STAGE = f"{MACHINE}/stage"
RESTORED = f"{MACHINE}/restored"  # the record of restores
FRESH_NS = 100_000_000  # a file this young may change again within one tick of the file system's clock

_LINK = "it is a link, or lies behind one; links are not followed inside a home"
_NO_DOCUMENT = {
    errno.ELOOP: _LINK,
    errno.EXDEV: _LINK,
    errno.EISDIR: "this is a folder, not a document",
    errno.ENOTSUP: "this is not a regular file",
    errno.ENXIO: "this is not a regular file",  # a socket
    errno.ENAMETOOLONG: "it is too long for this file system",
}
_NOT_THERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EXDEV, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)

Signature = tuple[int, int, int, int, int]


class Unconfirmed(Damaged):
    """Everything is in its place, but the disk did not confirm that it will stay there."""


def signature_of(found: os.stat_result) -> Signature:
    """What tells that a file is the one we read: device, inode, size and both times."""
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class Folder(Documents):
    """The documents of one folder. Reading needs no lock and never changes anything on disk."""

    def __init__(self, root: str | Path) -> None:
        """Pins the folder. A link to a home is followed once, here; beneath the home no link is."""
        given = Path(root)
        try:
            given = given.expanduser()
            self.root = self.name = str(given.resolve(strict=True))
            self._fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise NoSuchHome(
                f"{given}: there is no such folder",
                hint=f"anima init {given} makes a home there; in Python, Home.create",
            ) from None
        except NotADirectoryError:
            raise NoSuchHome(f"{given}: a home is a folder, and this is a file") from None
        except (OSError, RuntimeError, ValueError) as error:
            raise NoSuchHome(f"{printable(str(given))}: cannot be opened ({why(error)})") from None
        owner = os.fstat(self.fd).st_uid
        if owner != os.geteuid():
            self.close()
            raise Refused(
                f"{given}: the folder belongs to another user (uid {owner}); a home belongs to whoever runs it",
                rule="foreign-owner",
            )
        self._named: dict[str, tuple[Signature, dict[str, str]]] = {}  # by folder: name, exact or folded → name
        self._held_whole: dict[Signature, bool] = {}  # of files with several names: whether all of them lie here
        self.epoch = self.signature(RESTORED)  # a restore puts another file there

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def fd(self) -> int:
        """The folder itself, held open. Raises BadArguments once it was let go."""
        if self._fd < 0:
            raise closed()
        return self._fd

    @property
    def identity(self) -> str:
        """What trust in this home is bound to: a folder that took this one's place has another."""
        return str(os.fstat(self.fd).st_ino)

    def check_there(self) -> None:
        """Raises Damaged where the folder itself was taken away while it was open: nothing in it is no answer then."""
        if os.fstat(self.fd).st_nlink == 0:
            raise Damaged(f"{self.root}: the folder was taken away while it was open", hint="is its disk mounted?")

    # -- reading ------------------------------------------------------------------------------------------------------

    def read(self, path: DocPath) -> Document:
        try:
            return self._read_exact(path, path.text)
        except NoSuchDocument:
            actual = self.actual(path)
            if actual is None or actual == path.text:
                raise
            return self._read_exact(path, actual)

    def _read_exact(self, path: DocPath, actual: str) -> Document:
        try:
            with regular(self.fd, actual) as (fd, found):
                self._check_names(path, fd, found)
                if found.st_size > MAX_BYTES:
                    why = f"it has {found.st_size:,} bytes, and anima reads documents of up to {MAX_BYTES:,}"
                    raise BadText(path.text, why, hint="move what need not be remembered out of it, or split it")
                raw = read_range(fd, 0, MAX_BYTES + 1)  # it may have grown since its stat
        except OSError as error:
            raise self._explained(error, path) from None
        text, moment = _decoded(path, raw), datetime.fromtimestamp(found.st_mtime, UTC)
        return Document(path=DocPath.parse(actual), text=text, digest=digest_of(text), time=moment)

    def raw(self, path: DocPath, *, most: int) -> bytes:
        try:
            with regular(self.fd, self.actual(path) or path.text) as (fd, found):
                self._check_names(path, fd, found)
                if found.st_size > most:
                    raise BadText(path.text, f"it has {found.st_size:,} bytes, and at most {most:,} are read")
                return read_range(fd, 0, most)
        except OSError as error:
            raise self._explained(error, path) from None

    def _check_names(self, path: DocPath, fd: int, found: os.stat_result) -> None:
        """Raises BadPath for a file that has a name outside the home too: it may be somebody else's."""
        if found.st_nlink > 1 and not self.holds_every_name(found) and not self.holds_every_name(os.fstat(fd)):
            why = "it has another name outside the home (a hard link), so it is not read; copy it over itself if it is yours"
            raise BadPath(path.text, why)

    def holds_every_name(self, found: os.stat_result) -> bool:
        """Whether every name of a file lies in the home. Looks through all of it, once while the file is unchanged."""
        if found.st_nlink < 2:
            return True
        mark = signature_of(found)
        if mark not in self._held_whole:
            here = sum((each.st_dev, each.st_ino) == mark[:2] for _, each in self.walk())
            self._held_whole[mark] = here == found.st_nlink
        return self._held_whole[mark]

    def stat(self, actual: str) -> os.stat_result | None:
        """The stat of a path as it is spelt on disk, or None. A quick look that reads nothing."""
        try:
            return os.stat(actual, dir_fd=self.fd, follow_symlinks=False)
        except (OSError, ValueError):
            return None

    def signature(self, actual: str) -> Signature | None:
        found = self.stat(actual)
        return signature_of(found) if found else None

    def version(self, path: str) -> str | None:
        found = self.signature(path)
        return ".".join(map(str, found)) if found else None

    def versions(self) -> None:
        """A folder is asked for each."""

    def kind_of(self, path: str) -> Kind | None:
        found = self.stat(path)
        return _KINDS.get(stat.S_IFMT(found.st_mode), "other") if found else None

    @contextmanager
    def opened(self, path: str) -> Iterator[OpenFile]:
        try:
            fd, found = open_regular(self.fd, path)
        except OSError as error:
            raise BadText(path, f"it cannot be read ({why(error)})") from None

        def pieces() -> Iterator[bytes]:
            left = found.st_size
            try:
                while left > 0 and (piece := os.read(fd, min(BLOCK, left))):
                    left -= len(piece)
                    yield piece
            except OSError as error:
                raise BadText(path, f"it cannot be read ({why(error)})") from None

        with held(fd):
            yield OpenFile(found.st_size, stat.S_IMODE(found.st_mode), pieces())

    def actual(self, path: DocPath) -> str | None:
        """Where two names fold alike, the one that is spelt as the path is meant, else the first in order."""
        if self._keeps_case:
            with suppress(OSError, ValueError):
                os.close(open_beneath(self.fd, path.text, ONLY_NAMED))
                return path.text  # something of this very name is there, and not behind a link
        spelt = ""
        for part in path.parts:
            names = self._names(spelt)
            name = names.get("/" + part) or names.get(fold(part))
            if name is None:
                return None
            spelt = f"{spelt}/{name}" if spelt else name
        return spelt

    @cached_property
    def _keeps_case(self) -> bool:
        """Whether a name is found only as it is spelt, so that finding it tells how it is spelt."""
        names = self.raw_names("") if sys.platform == "linux" else ()
        twins = ((name, name.swapcase()) for name in names if name.swapcase() != name)
        return next((twin in names or self.stat(twin) is None for _, twin in twins), False)

    def names(self, folder: str) -> tuple[str, ...]:
        """The names in a folder as they are spelt on disk, in order; none when there is no such folder.

        Of names that fold alike only the first is given.
        """
        return tuple(sorted(name for key, name in self._names(folder).items() if not key.startswith("/")))

    def _names(self, folder: str) -> dict[str, str]:
        """Folded name → name on disk (the first in order), and "/name" → name; kept while the folder is unchanged."""
        signature = self.signature(folder or ".")
        held = self._named.get(folder)
        if held and signature is not None and held[0] == signature:
            return held[1]
        names: dict[str, str] = {}
        for name in sorted(self.raw_names(folder)):
            names.setdefault(fold(name), name)
            names["/" + name] = name
        if signature is not None and time.time_ns() - signature[3] > FRESH_NS:
            self._named[folder] = (signature, names)
        return names

    def raw_names(self, folder: str) -> tuple[str, ...]:
        """Every name in a folder, hidden ones too; none when there is no such folder, or it is not ours to read.

        Raises Damaged when the disk does not tell, because "nothing there" would be a lie.
        """
        try:
            with held(open_folder(self.fd, folder)) as fd:
                return tuple(os.listdir(fd))
        except ValueError:
            return ()
        except OSError as error:
            if error.errno in _NOT_THERE:
                return ()
            raise Damaged(f"{folder or 'the home'}: the folder cannot be read ({why(error)})") from None

    def last_line(self, actual: str) -> bytes:
        """The last line of a file of ours with its line end, if it has one; nothing where there is no file."""
        with suppress(OSError), regular(self.fd, actual) as (fd, found):
            size, span = found.st_size, 4096
            while True:
                tail = os.pread(fd, span, max(0, size - span))
                if b"\n" in tail[:-1] or span >= size:
                    return tail[tail.rfind(b"\n", 0, max(len(tail) - 1, 0)) + 1 :]
                span *= 8
        return b""

    def first_line(self, actual: str) -> bytes:
        """The first line of a file of ours, at most a page of it; nothing where there is no file."""
        with suppress(OSError), regular(self.fd, actual) as (fd, _):
            return os.pread(fd, 4096, 0).partition(b"\n")[0]
        return b""

    def forget(self, actual: str) -> None:
        """Drops what is remembered of the folder of a file that was just written."""
        self._named.pop(actual.rpartition("/")[0], None)

    # -- listing ------------------------------------------------------------------------------------------------------

    def list(self, folder: str = "") -> tuple[Entry, ...]:
        """What stands in a folder, folders first. Links, devices, hidden names and unusable names are left out."""
        path = DocPath.parse(folder.rstrip("/")) if folder else None
        actual = self.actual(path) or path.text if path else ""
        with held(self._open_listing(folder, actual)) as fd:
            found = [entry for entry in _entries(fd, actual) if isinstance(entry, Entry)]
        return tuple(sorted(found, key=lambda entry: (not entry.is_folder, entry.path)))

    def strange(self, folder: str = "") -> tuple[tuple[str, str], ...]:
        """(name, why) of what `list` leaves out in a folder, hidden names apart."""
        with held(self._open_listing(folder, folder)) as fd:
            return tuple(entry for entry in _entries(fd, folder) if not isinstance(entry, Entry))

    def walk(self, folder: str = ".") -> Iterator[tuple[str, os.stat_result]]:
        """(path, stat) of all that lies beneath a folder, hidden and folders too; links are not followed."""
        if self.kind_of(folder) != "folder":
            return
        for where, folders, names, fd in os.fwalk(folder, dir_fd=self.fd, follow_symlinks=False):
            folders.sort()
            for name in sorted([*folders, *names]):
                try:
                    yield os.path.normpath(f"{where}/{name}"), os.stat(name, dir_fd=fd, follow_symlinks=False)
                except OSError:
                    continue  # it vanished while we looked

    def free_bytes(self) -> int:
        """How much the disk still takes from us."""
        found = os.fstatvfs(self.fd)
        return found.f_bavail * found.f_frsize

    def _open_listing(self, folder: str, actual: str) -> int:
        try:
            return open_folder(self.fd, actual)
        except NotADirectoryError:
            raise BadPath(folder, "this is a file, not a folder") from None
        except OSError as error:
            raise self._explained(error, DocPath.parse(folder.rstrip("/"))) from None

    # -- making -------------------------------------------------------------------------------------------------------

    def create(self, path: DocPath, text: str) -> bool:
        """Makes a document that is not there yet, durably and for its owner alone; False when one is, in any spelling."""
        if self.actual(path) is not None:
            return False
        with as_damage(f"{path}: cannot be written"), suppress(FileExistsError):
            self.fill(path.text, [text.encode("utf-8")], mode=0o600)
            return True
        return False

    def fill(
        self, path: str, pieces: Iterable[bytes], *, mode: int, mtime: int | None = None, sync: bool = True
    ) -> None:
        """Makes a file where none is, and the folders above it; with `sync`, on the disk. Raises OSError."""
        self.make_folder(path.rpartition("/")[0])
        with held(open_beneath(self.fd, path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)) as fd:
            try:
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
            finally:
                self.forget(path)

    def make_folder(self, folder: str) -> None:
        """Makes a folder and those above it as far as they are missing, durably and for their owner alone."""
        made = ""
        for part in folder.split("/") if folder else ():
            above, made = made, f"{made}/{part}" if made else part
            if self.stat(made) is None:
                try:
                    with held(open_folder(self.fd, above)) as fd:
                        os.mkdir(part, 0o700, dir_fd=fd)
                        with held(open_beneath(fd, part, os.O_RDONLY | os.O_DIRECTORY)) as fresh:
                            give_mode(fresh, 0o700)  # whatever the umask
                        os.fsync(fd)
                    self.forget(made)
                except FileExistsError:
                    pass
                except OSError as error:
                    if error.errno in (errno.ELOOP, errno.EXDEV, errno.ENOTDIR):
                        raise BadPath(made, "a link or a file stands where a folder must be") from None
                    raise Damaged(f"{made}: the folder cannot be made ({why(error)})") from None

    def _explained(self, error: OSError, path: DocPath) -> Exception:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return NoSuchDocument(path.text)
        if error.errno in _NO_DOCUMENT:
            return BadPath(path.text, _NO_DOCUMENT[error.errno])
        if error.errno in (errno.EACCES, errno.EPERM):
            return Damaged(f"{path}: the system does not let us read it", hint="anima doctor shows its mode and owner")
        return Damaged(f"{path}: cannot be read ({why(error)})")


_read: tuple[bytes, str] = (b"", "")  # the last long document


def _decoded(path: DocPath, raw: bytes) -> str:
    """The text of these bytes. That of the last long document is known by them: a change reads it several times."""
    global _read
    if len(raw) < LONG:
        return text_of(path, raw)
    if (known := _read)[0] != raw:
        known = _read = (raw, text_of(path, raw))
    return known[1]


def _entries(fd: int, folder: str) -> Iterator[Entry | tuple[str, str]]:
    """Each visible name of a folder as an Entry, or as (name, why) when it cannot be used."""
    prefix = f"{folder}/" if folder else ""
    with os.scandir(fd) as names:
        for item in names:
            if not item.name.startswith("."):
                yield _entry(item, prefix)


def _entry(item: os.DirEntry[str], prefix: str) -> Entry | tuple[str, str]:
    try:
        DocPath.parse(prefix + item.name)
        found = item.stat(follow_symlinks=False)
    except BadPath as error:
        return item.name, error.why
    except OSError as error:
        return item.name, why(error)
    if stat.S_ISLNK(found.st_mode):
        return item.name, "it is a link, and links are not followed inside a home"
    is_folder = stat.S_ISDIR(found.st_mode)
    if not is_folder and not stat.S_ISREG(found.st_mode):
        return item.name, "it is not a regular file"
    moment = datetime.fromtimestamp(found.st_mtime, UTC)
    return Entry(path=prefix + item.name, is_folder=is_folder, size=0 if is_folder else found.st_size, time=moment)


def is_restoring(store: Folder) -> bool:
    """Whether a restore was begun and not ended. Raises Damaged where the disk does not tell: then nobody may read."""
    with as_damage("the home cannot be read", "; nothing was changed"):
        with suppress(FileNotFoundError, NotADirectoryError):
            os.stat(".anima/restoring", dir_fd=store.fd, follow_symlinks=False)
            return True
    return False


def give_mode(made: int | Path, mode: int) -> None:
    """Gives what we just made its mode. A disk that knows of none, as many a stick, says we may not: there everything has
    the mode it was mounted with."""
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
