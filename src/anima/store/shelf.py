"""A folder of archives: their names, and how one comes there.

Promise: an archive gets its name only when it is whole, on the disk and was read back; nothing is overwritten that has
another name; folder and files are for their owner alone. Not here: what is in them (archive), which ones go (snapshots).
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from anima.errors import BadArguments, Damaged, Refused
from anima.store.folder import give_mode
from anima.store.outside import name_anew
from anima.store.private import FOLDER

_NAME = re.compile(
    r"(?P<time>\d{8}T\d{6}Z)-(?:(?P<label>[a-z0-9][a-z0-9-]{0,39})-)?(?P<digest>[0-9a-f]{12})\.tar\.gz(?P<sealed>\.age)?\Z"
)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?\Z")
_PART = re.compile(r"\.anima-[0-9a-f]{16}\.part\Z")
_STAMP = "%Y%m%dT%H%M%SZ"


class Kept(NamedTuple):
    """An archive in a folder, as its name tells of it. `digest` is the beginning of its manifest's."""

    path: str
    time: datetime
    label: str
    digest: str
    size: int
    sealed: bool

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


def name_of(time: datetime, label: str, digest: str, *, sealed: bool) -> str:
    stamp = time.astimezone(UTC).strftime(_STAMP)
    return "-".join(filter(None, (stamp, label, digest[:12]))) + ".tar.gz" + (".age" if sealed else "")


def checked_label(label: str) -> str:
    if label and not _LABEL.match(label):
        raise BadArguments(f"{label!r} cannot be a label: small letters, digits and dashes, 40 at most")
    return label


def kept_at(path: str) -> Kept | None:
    """What stands at a path, if its name is one that archives are given."""
    found = _NAME.match(os.path.basename(path))
    try:
        seen = os.lstat(path)
        time = datetime.strptime(found["time"], _STAMP).replace(tzinfo=UTC) if found else None
    except (OSError, ValueError):
        return None
    if found is None or time is None or not stat.S_ISREG(seen.st_mode):
        return None
    return Kept(path, time, found["label"] or "", found["digest"], seen.st_size, bool(found["sealed"]))


class Shelf:
    """One folder of archives. It is made with the first of them."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def all(self) -> list[Kept]:
        """Every archive that is here, the newest first. Behind a link there are none: they are somebody else's."""
        try:
            names = os.listdir(self.folder) if self._is_folder() else []
        except OSError:
            return []
        found = (kept_at(os.path.join(self.folder, name)) for name in names)
        return sorted((kept for kept in found if kept), key=lambda kept: (kept.time, kept.name), reverse=True)

    def put(self, name: str, write: Callable[[int], None], *, only_new: bool = False) -> str:
        """Has an archive written, and gives it its name; gives its path. Raises Damaged, or Refused with `only_new`."""
        target, part = os.path.join(self.folder, name), os.path.join(self.folder, f".anima-{secrets.token_hex(8)}.part")
        try:
            self._make()
            self._sweep()
            if only_new and os.path.lexists(target):
                raise Refused(f"{target}: there is a file of that name, and it is not overwritten", rule="overwrite")
            fd = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                give_mode(fd, 0o600)
                write(fd)
                os.fsync(fd)
                name_anew(part, target) if only_new else os.rename(part, target)
                self._sync()
            finally:
                os.close(fd)
                _unlink(part)
        except FileExistsError:
            raise Refused(
                f"{target}: there is a file of that name, and it is not overwritten", rule="overwrite"
            ) from None
        except OSError as error:
            raise Damaged(
                f"the snapshot cannot be written ({os.strerror(error.errno or 0)}); nothing was changed"
            ) from None
        return target

    def remove(self, kept: Kept) -> None:
        try:
            os.unlink(kept.path)
            self._sync()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise Damaged(f"{kept.name} cannot be removed ({os.strerror(error.errno or 0)})") from None

    def _make(self) -> None:
        os.makedirs(self.folder, mode=0o700, exist_ok=True)
        if not self._is_folder():
            raise Damaged(
                f"{os.path.basename(self.folder)} is a link where a folder of snapshots must be; nothing was changed"
            )

    def _is_folder(self) -> bool:
        """No link is followed, neither here nor at a home's `.anima`; above a folder of their choice the owner may have some."""
        above = os.path.dirname(self.folder)
        own = [self.folder, above] if os.path.basename(above) == FOLDER else [self.folder]
        return all(stat.S_ISDIR(os.lstat(folder).st_mode) for folder in own)

    def _sweep(self) -> None:
        """Removes what a process that was killed left of an archive."""
        for name in filter(_PART.match, os.listdir(self.folder)):
            path = os.path.join(self.folder, name)
            try:
                fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            except OSError:
                continue
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _unlink(path)
            except OSError:
                pass  # it is being written
            finally:
                os.close(fd)

    def _sync(self) -> None:
        fd = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
