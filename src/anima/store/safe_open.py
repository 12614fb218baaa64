"""Opening what lies beneath a folder, and nothing else; bytes in and out of what is open.

Promise: no path opened here follows a link or leaves the folder, even while somebody swaps folders for links: each
folder on the way is opened in the one before it, without following links, and held by descriptor.
Not here: which names are allowed (model.DocPath).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

_NOFOLLOW = os.O_CLOEXEC | os.O_NOFOLLOW
ONLY_NAMED = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK)  # a file that nobody wants to read or write
_FOLDER = ONLY_NAMED | os.O_DIRECTORY | _NOFOLLOW
BLOCK = 1 << 20


def open_beneath(root: int, path: str, flags: int, mode: int = 0o600) -> int:
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
        return _opened(name, here, flags | _NOFOLLOW, mode)
    finally:
        if here != root:
            os.close(here)


def _opened(name: str, here: int, flags: int, mode: int = 0o600) -> int:
    try:
        return os.open(name, flags, mode, dir_fd=here)
    except NotADirectoryError:
        if stat.S_ISLNK(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from None
        raise


def open_folder(root: int, path: str) -> int:
    """A descriptor of a folder beneath root ("" is root itself). The caller closes it."""
    return os.dup(root) if not path else open_beneath(root, path, os.O_RDONLY | os.O_DIRECTORY)


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
    """A descriptor that is closed at the end."""
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
