"""Files outside a home: an export as it is written, and a file that is read back.

Promise: an export appears under its name whole or not at all; nothing that stands there is overwritten; it is for its
owner alone (0700 and 0600, and 0700 for what can be run) where the disk knows of modes. A file is read only if it is a
regular one, without waiting. Not here: what is exported (backup).
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

from anima.errors import BadArguments, BadText, Damaged, NoSuchHome, Refused, printable
from anima.store.folder import Folder, give_mode, why, write_all
from anima.store.lock import flock
from anima.store.safe_open import held, open_beneath

BLOCK = 1 << 20
PART = re.compile(r"\.anima-[0-9a-f]{16}\.part\Z")  # a file that is being written
MAP = ".anima-export.json"  # beside an export: what stands elsewhere than in the home
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)  # of file systems without second names


class Crate:
    """A folder that is being filled beside the place where it will stand."""

    def __init__(self, place: Path) -> None:
        self.store = Folder(place)

    def put(self, path: str, pieces: Iterable[bytes], *, mode: int) -> None:
        """Writes one file. Raises OSError when the disk will not take it."""
        self.store.make_folder(path.rpartition("/")[0])
        with held(open_beneath(self.store.fd, path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)) as fd:
            for piece in pieces:
                write_all(fd, piece)
            give_mode(fd, private(mode))


@contextmanager
def exported_folder(target: Path) -> Iterator[Crate]:
    """A folder that gets its name once it is filled and durable. Raises Refused when something stands there."""
    place = _checked(target, folder=True)
    temp = place.with_name(f".{place.name[:200]}.{secrets.token_hex(4)}.part")
    with _explained(place):
        os.mkdir(temp, 0o700)
        try:
            give_mode(temp, 0o700)
            with closing((crate := Crate(temp)).store):
                yield crate
            os.sync()  # once for all files, rather than once a file
            os.rename(temp, place)
            sync_folder(place.parent)
        except BaseException:
            shutil.rmtree(temp, ignore_errors=True)
            raise


@contextmanager
def exported_file(target: Path) -> Iterator[BinaryIO]:
    """A file that gets its name once it is written and durable. Raises Refused when something stands there."""
    place = _checked(target, folder=False)
    with _explained(place), written_file(place, only_new=True) as out:
        yield out


@contextmanager
def written_file(target: str | Path, *, only_new: bool) -> Iterator[BinaryIO]:
    """A file for its owner alone that gets its name once it is whole and on the disk; until then it is locked under
    another, which `PART` knows. Raises OSError: with `only_new`, FileExistsError where something stands there."""
    folder = os.path.dirname(target)
    part = os.path.join(folder, f".anima-{secrets.token_hex(8)}.part")
    try:
        with held(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)) as fd:
            flock(fd)
            give_mode(fd, 0o600)
            with open(fd, "r+b", closefd=False) as out:
                yield out
            os.fsync(fd)
            name_anew(part, target) if only_new else os.rename(part, target)
            sync_folder(folder)
    finally:
        with suppress(OSError):
            os.unlink(part)


def expanded(path: str | Path) -> Path:
    """A path as the owner means it, with their home for `~`. Raises BadArguments where it names a user there is not."""
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):
        said = f"{printable(str(path))}: there is no user of that name"
        raise BadArguments(said, hint="write the path out") from None


def _checked(target: Path, *, folder: bool) -> Path:
    """Where an export goes, if nothing stands there. Raises BadArguments or Refused."""
    try:
        place = target.expanduser()
        place = place.parent.resolve() / place.name
        found = os.lstat(place)
    except FileNotFoundError:
        if place.parent.is_dir() and place.name not in ("", ".", ".."):
            return place
        raise BadArguments(f"{target}: there is no folder to put it in", hint=f"make {target.parent} first") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise BadArguments(f"{printable(str(target))}: it cannot be written ({why(error)})") from None
    if folder and stat.S_ISDIR(found.st_mode) and not any(place.iterdir()):
        return place
    what = "the folder is not empty" if stat.S_ISDIR(found.st_mode) else "there is something of that name already"
    hint = "name a place that does not exist yet"
    raise Refused(f"{target}: {what}; an export overwrites nothing", rule="export-target", hint=hint)


def name_anew(temp: str | Path, target: str | Path) -> None:
    """Gives a file its name, and never replaces another. Raises FileExistsError. A stick has often no second names for a
    file: there the name is taken by an empty one first, which a kill may leave."""
    try:
        os.link(temp, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        os.rename(temp, target)


def private(mode: int) -> int:
    return 0o700 if mode & 0o100 else 0o600


def lines_in(file: IO[bytes], *, most: int) -> Iterator[bytes]:
    """The lines of a file from its beginning, each with its newline; of one that is longer than `most`, its beginning."""
    file.seek(0)
    while line := file.readline(most):
        yield line
        if not line.endswith(b"\n"):
            return


def open_file(path: Path) -> IO[bytes]:
    """A regular file to read. Raises NoSuchHome or BadText."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise NoSuchHome(f"{printable(str(path))}: cannot be opened ({why(error)})") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        hint = "an import reads its source twice: write it to a file first"
        raise BadText(str(path), "it is neither a folder nor a regular file", hint=hint)
    return open(fd, "rb")


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Errors of the system, said of an export."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR):
            said = f"{target}: somebody put something there meanwhile; nothing was overwritten"
            raise Refused(said, rule="export-target") from None
        hint = "free some space and try again" if error.errno in (errno.ENOSPC, errno.EDQUOT) else None
        raise Damaged(f"{target}: the export cannot be written ({why(error)})", hint=hint) from None


def sync_folder(folder: str | Path) -> None:
    with held(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as fd:
        os.fsync(fd)
