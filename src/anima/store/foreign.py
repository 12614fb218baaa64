"""Every file beneath a home, whosever it is: found, read, and put back with something taken out of it.

Promise: links are not followed, and nothing outside the home is reached; a file is replaced atomically and keeps its
mode. For forgetting alone: documents have their own road. Not here: what is taken out (forgetting).
"""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator

from anima.errors import Damaged
from anima.store.folder import Folder
from anima.store.private import Machine, read_all
from anima.store.safe_open import open_regular

MAX_BYTES = 256 * 2**20


def files_in(store: Folder) -> Iterator[tuple[str, int]]:
    """(path, size) of every regular file beneath the home, hidden ones too, in order."""
    for folder, folders, names, fd in os.fwalk(".", dir_fd=store.fd, follow_symlinks=False):
        folders.sort()
        for name in sorted(names):
            try:
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue  # it vanished while we looked
            if stat.S_ISREG(found.st_mode):
                yield os.path.normpath(f"{folder}/{name}"), found.st_size


def bytes_of(store: Folder, path: str) -> bytes | None:
    """A file's bytes; None when it is gone. Raises Damaged for one that cannot be read, or is too large to."""
    try:
        fd, found = open_regular(store.fd, path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Damaged(f"cannot be read ({os.strerror(error.errno or 0)})") from None
    try:
        if found.st_size > MAX_BYTES:
            raise Damaged(f"it has {found.st_size:,} bytes, which is more than anima looks through")
        return read_all(fd)
    except OSError as error:
        raise Damaged(f"cannot be read ({os.strerror(error.errno or 0)})") from None
    finally:
        os.close(fd)


def put_back(store: Folder, machine: Machine, path: str, data: bytes) -> None:
    """Puts other bytes in a file's place, with the mode it has. Raises Damaged."""
    try:
        found = os.stat(path, dir_fd=store.fd, follow_symlinks=False)
        staged = machine.stage(data, mode=stat.S_IMODE(found.st_mode))
        try:
            machine.move(staged, path)
            machine.sync_folder(path.rpartition("/")[0])
        finally:
            machine.unstage(staged)
    except OSError as error:
        raise Damaged(f"cannot be written ({os.strerror(error.errno or 0)})") from None
    finally:
        store.forget(path)


def drop_folder(store: Folder, path: str) -> None:
    """Deletes a folder of ours with all that is in it. Raises Damaged."""
    try:
        shutil.rmtree(path, dir_fd=store.fd)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Damaged(f"cannot be deleted ({os.strerror(error.errno or 0)})") from None
