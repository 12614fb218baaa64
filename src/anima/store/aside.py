"""Taking things out of their place without losing them, and looking at what a thing is without opening it.

Promise: whatever is taken away lies in `.anima/aside/<time>/…` under its own name, bytes and all; a rename, so nothing is
copied and a full disk loses nothing. Nothing here follows a link or waits for a pipe. Not here: what is set aside, and
why (check).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from itertools import count

from anima.errors import Damaged
from anima.store.folder import Folder
from anima.store.private import ASIDE, FOLDER, Machine
from anima.store.safe_open import held, open_beneath, open_folder


class Aside:
    """Where one repair puts what it takes out of its place. The folder is made when the first thing comes."""

    def __init__(self, store: Folder, machine: Machine, when: datetime) -> None:
        self._store, self._machine = store, machine
        self.folder = f"{ASIDE}/{when:%Y%m%dT%H%M%S}"

    def keep(self, name: str, data: bytes) -> str:
        """Bytes that are to be kept; gives where, beneath the home."""
        place = self._free(name)
        self._machine.put(place.removeprefix(f"{FOLDER}/"), data)
        return place

    def move(self, path: str, *, name: str | None = None) -> str:
        """Moves whatever stands at a path beneath the home: a file, a folder, a link itself, a pipe. Raises Damaged."""
        place = self._free(name or path.removeprefix(f"{FOLDER}/"))
        try:
            self._store.make_folder(place.rpartition("/")[0])
            self._renamed(path, place)
        except OSError as error:
            raise Damaged(f"{path} cannot be set aside ({os.strerror(error.errno or 0)})") from None
        self._store.forget(path)
        return place

    def _renamed(self, path: str, place: str) -> None:
        here, _, name = path.rpartition("/")
        there, _, new = place.rpartition("/")
        source, target = open_folder(self._store.fd, here), -1
        try:
            target = open_folder(self._store.fd, there)
            os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
            os.fsync(target)
            os.fsync(source)
        finally:
            os.close(source)
            if target >= 0:
                os.close(target)

    def _free(self, name: str) -> str:
        wanted = f"{FOLDER}/{self.folder}/{name.lstrip('.').replace('/.', '/')}"
        tries = (wanted if n == 1 else f"{wanted}-{n}" for n in count(1))
        return next(place for place in tries if self._store.stat(place) is None)


def swap_in_folder(store: Folder, when: datetime) -> str:
    """Where `.anima` is a file or a link: makes the folder, with the thing itself inside; gives where it lies now."""
    spare = f"{FOLDER}.{when:%Y%m%dT%H%M%S}"
    os.rename(FOLDER, spare, src_dir_fd=store.fd, dst_dir_fd=store.fd)
    return spare


def leads_somewhere(store: Folder, path: str) -> bool:
    """Whether a link has a target."""
    try:
        os.stat(path, dir_fd=store.fd)
    except OSError:
        return False
    return True


def set_mode(store: Folder, path: str, mode: int) -> None:
    """Gives a file or folder another mode, also one that we may not read. Raises Damaged."""
    try:
        if hasattr(os, "O_PATH") and os.path.isdir("/proc/self/fd"):
            with held(open_beneath(store.fd, path, os.O_PATH) if path else os.dup(store.fd)) as fd:
                os.chmod(f"/proc/self/fd/{fd}", mode)
        else:  # a file that we may not read cannot be held, but its folder can
            folder, _, name = path.rpartition("/")
            with held(open_folder(store.fd, folder)) as fd:
                os.chmod(name or ".", mode, dir_fd=fd, follow_symlinks=os.chmod not in os.supports_follow_symlinks)
    except OSError as error:
        raise Damaged(f"{path or 'the folder'}: its mode cannot be changed ({os.strerror(error.errno or 0)})") from None
    store.forget(path)


def free_bytes(store: Folder) -> int:
    """How much the disk of a home still takes from us."""
    found = os.fstatvfs(store.fd)
    return found.f_bavail * found.f_frsize


def everything_in(store: Folder, folder: str) -> Iterator[tuple[str, os.stat_result]]:
    """(path, stat) of all that lies beneath a folder of the home, folders too; links are not followed."""
    if store.kind_of(folder) != "folder":
        return
    for where, folders, names, fd in os.fwalk(folder, dir_fd=store.fd, follow_symlinks=False):
        for name in sorted([*folders, *names]):
            try:
                yield f"{where}/{name}", os.stat(name, dir_fd=fd, follow_symlinks=False)
            except OSError:
                continue  # it vanished while we looked
