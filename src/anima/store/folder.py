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
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property

from anima.errors import BadPath, BadText, Damaged, NoSuchDocument
from anima.model import MAX_BYTES, DocPath, Document, Entry, digest_of, fold
from anima.store import Documents, OpenFile, text_of
from anima.store.safe_open import (
    BLOCK,
    ONLY_NAMED,
    HeldFolder,
    as_damage,
    held,
    open_folder,
    open_regular,
    read_range,
    why,
)

FRESH_NS = 2_100_000_000  # a folder this young may change again within a tick of its file system's clock, as FAT's

_LINK = "it is a link, or lies behind one; links are not followed inside a home"
_NO_DOCUMENT = {
    errno.ELOOP: _LINK,
    errno.EXDEV: _LINK,
    errno.EISDIR: "this is a folder, not a document",
    errno.ENOTSUP: "this is not a regular file",
    errno.ENXIO: "this is not a regular file",  # a socket
    errno.ENAMETOOLONG: "it is too long for this file system",
}


class Folder(HeldFolder, Documents):
    """The documents of one folder. Reading needs no lock and never changes anything on disk."""

    def read(self, path: DocPath) -> Document:
        try:
            return self._read_exact(path, path.text)
        except NoSuchDocument:
            actual = self.actual(path)
            if actual is None or actual == path.text:
                raise
            return self._read_exact(path, actual)

    def _read_exact(self, path: DocPath, actual: str) -> Document:
        raw, found = self._whole(path, actual, MAX_BYTES)
        text, moment = text_of(path, raw), datetime.fromtimestamp(found.st_mtime, UTC)
        return Document(path=DocPath.parse(actual), text=text, digest=digest_of(text), time=moment)

    def raw(self, path: DocPath, *, most: int) -> bytes:
        return self._whole(path, self.actual(path) or path.text, most)[0]

    def _whole(self, path: DocPath, actual: str, most: int) -> tuple[bytes, os.stat_result]:
        """A file's bytes and stat. Raises BadPath for one that has a name outside the home too: it may be somebody else's."""
        try:
            with self.regular(actual) as (fd, found):
                if found.st_nlink > 1 and not self.holds_every_name(found) and not self.holds_every_name(os.fstat(fd)):
                    why = "it has another name outside the home (a hard link), so it is not read"
                    raise BadPath(path.text, f"{why}; copy it over itself if it is yours")
                if found.st_size > most:
                    why = f"it has {found.st_size:,} bytes, and at most {most:,} are read"
                    raise BadText(path.text, why, hint="move what need not be remembered out of it, or split it")
                return read_range(fd, 0, most), found  # it may have grown since its stat
        except OSError as error:
            raise self._explained(error, path.text) from None

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
                os.close(self.beneath(path.text, ONLY_NAMED))
                return path.text  # something of this very name is there, and not behind a link
        return self.listed(path)

    def listed(self, path: DocPath) -> str | None:
        """The same by the names in its folders alone, which are kept while these are unchanged."""
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
        """In order; none when there is no such folder. Of names that fold alike only the first is given."""
        return tuple(sorted(name for key, name in self._names(folder).items() if not key.startswith("/")))

    def _names(self, folder: str) -> dict[str, str]:
        """Folded name → name on disk (the first in order), and "/name" → name; kept while the folder is unchanged."""
        signature, held = self.signature(folder or "."), self._named.get(folder)
        if held and signature is not None and held[0] == signature:
            return held[1]
        names: dict[str, str] = {}
        for name in sorted(self.raw_names(folder)):
            names.setdefault(fold(name), name)
            names["/" + name] = name
        if signature is not None and time.time_ns() - signature[4] > FRESH_NS:
            self._named[folder] = (signature, names)
        return names

    # -- listing ------------------------------------------------------------------------------------------------------

    def list(self, folder: str = "") -> tuple[Entry, ...]:
        """What stands in a folder, folders first. Links, devices, hidden names and unusable names are left out."""
        path = DocPath.parse(folder.rstrip("/")) if folder else None
        actual = self.actual(path) or path.text if path else ""
        with as_damage(f"{folder or 'the home'}: cannot be read"), held(self._open_listing(folder, actual)) as fd:
            found = [entry for entry in _entries(fd, actual) if isinstance(entry, Entry)]
        return tuple(sorted(found, key=lambda entry: (not entry.is_folder, entry.path)))

    def strange(self, folder: str = "") -> tuple[tuple[str, str], ...]:
        """(name, why) of what `list` leaves out in a folder, hidden names apart."""
        with as_damage(f"{folder or 'the home'}: cannot be read"), held(self._open_listing(folder, folder)) as fd:
            return tuple(entry for entry in _entries(fd, folder) if not isinstance(entry, Entry))

    def _open_listing(self, folder: str, actual: str) -> int:
        try:
            return open_folder(self.fd, actual)
        except NotADirectoryError:
            raise BadPath(folder, "this is a file, not a folder") from None
        except OSError as error:
            raise self._explained(error, folder.rstrip("/") or "the home") from None

    def create(self, path: DocPath, text: str) -> bool:
        """Makes a document that is not there yet, durably and for its owner alone; False when one is, in any spelling."""
        if self.actual(path) is not None:
            return False
        with as_damage(f"{path}: cannot be written"), suppress(FileExistsError):
            self.fill(path.text, [text.encode("utf-8")], mode=0o600)
            return True
        return False

    def _explained(self, error: OSError, path: str) -> Exception:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return NoSuchDocument(path)
        if error.errno in _NO_DOCUMENT:
            return BadPath(path, _NO_DOCUMENT[error.errno])
        if error.errno in (errno.EACCES, errno.EPERM):
            return Damaged(f"{path}: the system does not let us read it", hint="anima doctor shows its mode and owner")
        return Damaged(f"{path}: cannot be read ({why(error)})")


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
