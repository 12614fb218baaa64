"""A home in a folder as a heap of files: counted, read, replaced, swapped for others; whosever they are.

Promise: links are named and not followed, and nothing outside the home is reached; a file is replaced atomically and keeps
its mode. Needs no ledger and no configuration, so a broken home can be kept and restored too. Documents have their own
road. Not here: the archive a home is packed into (backup), and what is taken out of a file (forget).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from anima.errors import Damaged, Refused, printable
from anima.model import FoundFile, fold
from anima.store import ASIDE, MACHINE, Whole, private
from anima.store.folder import Folder
from anima.store.private import AREA, BARE, GIT, JOURNAL, LATEST, Machine, clear_area
from anima.store.safe_open import HeldFolder, Unconfirmed, as_damage, is_restoring, open_regular, stat_at

OWN_MARK = "anima"  # a repository with a file of that name in it is ours
Reasons = list[tuple[str, str]]  # (path, why)
_NO_TEXT = tuple(f"{MACHINE}/{name}" for name in ("key", "index.lock", "forgotten"))


class FolderWhole(Whole):
    """All files of one home. `at` opens a folder that may be no home, or a broken one."""

    def __init__(self, folder: Folder, machine: Machine) -> None:
        self._folder, self._machine = folder, machine
        self.name, self.identity, self.state = folder.root, folder.identity, machine
        self.snapshots = f"{self.name}/{MACHINE}/snapshots"

    @classmethod
    @contextmanager
    def at(cls, path: str | Path) -> Iterator[FolderWhole]:
        folder = Folder(path)
        machine = Machine(folder)
        try:
            yield cls(folder, machine)
        finally:
            machine.lock.close()
            folder.close()

    def key(self) -> bytes:
        return self._machine.key()

    def lock(self) -> AbstractContextManager[None]:
        return self._machine.lock.hold()

    def last_record(self) -> bytes:
        return self._folder.last_line(f"{MACHINE}/ledger.jsonl")

    def outside(self, folder: str) -> str:
        """A folder as the configuration means it. Raises Refused for one inside the home, but for its snapshots'."""
        folder = os.path.abspath(os.path.join(self.name, os.path.expanduser(folder)))
        real = os.path.realpath(folder)
        if real != os.path.realpath(self.snapshots) and os.path.commonpath([real, self.name]) == self.name:
            said = f"{folder} lies inside the home, so that each snapshot would hold those before it"
            raise Refused(said, rule="inside", hint="leave it out: .anima/snapshots is the place for them in a home")
        return folder

    def census(self) -> tuple[list[FoundFile], Reasons]:
        return census(self._folder)

    @contextmanager
    def open(self, path: str) -> Iterator[tuple[BinaryIO, int]]:
        fd, found = open_regular(self._folder.fd, path)
        with open(fd, "rb", buffering=0) as source:
            yield source, found.st_size

    @contextmanager
    def scratch(self) -> Iterator[BinaryIO]:
        """A file without a name, on the home's own disk. Raises Damaged."""
        with as_damage("the snapshot cannot be written", "; nothing was changed"):  # also at the end, when it is closed
            with open(self._machine.scratch(), "r+b") as file:
                yield file

    @contextmanager
    def swapping(self) -> Iterator[Swap]:
        """Where files are staged that are to take the place of the home's, all or none. Under the lock."""
        swap = Swap(self._machine)
        try:
            yield swap
        except BaseException:
            if not is_restoring(self._folder):  # else it counts already
                clear_area(self._folder)
            raise

    def is_swapping(self) -> bool:
        return is_restoring(self._folder)

    def check_space(self, sizes: Iterable[int]) -> None:
        need = sum(size + 4096 for size in sizes)
        if (free := self._folder.free_bytes()) < need:
            raise Damaged(f"the snapshot needs {need:,} bytes, and {free:,} are free on this disk; nothing was written")

    def check_ways(self, new: Iterable[str], gone: Iterable[str], left: Sequence[tuple[str, str]]) -> None:
        going, kept, new = set(gone), tuple(path for path, _ in left), tuple(new)
        if any(path.startswith(f"{GIT}/") for path in new) and GIT in kept:
            said = "the .git here is not anima's, and the snapshot has one of its own; nothing was written"
            raise Refused(said, rule="in-the-way", hint="move it away first, or restore into an empty folder")
        for path in new:
            for above in private.folders_above(path):
                at = self._folder.stat(above)
                if at is not None and not stat.S_ISDIR(at.st_mode) and above not in going:
                    raise _in_the_way(above)
            at = self._folder.stat(path)
            if at is not None and (not stat.S_ISDIR(at.st_mode) or any(k.startswith(f"{path}/") for k in kept)):
                raise _in_the_way(path)

    def files(self) -> Iterator[tuple[str, int]]:
        """Files, and folders that cannot be looked through, as what cannot be read."""
        shut = dict[str, OSError]()
        yield from ((path, f.st_size) for path, f in self._folder.walk("", shut.__setitem__) if stat.S_ISREG(f.st_mode))
        yield from ((path, 0) for path in shut)

    def is_machinery(self, path: str) -> bool:
        """Whether a file is state of the machine's own, or of history."""
        top = path.partition("/")[0]
        return top in (MACHINE, GIT) or (top.startswith(".git.") and self.has_own_git)

    def traces(self) -> Iterator[str]:
        """Every file that could hold a text that was taken out: no objects of history, archives, or what has no text."""
        for path, _ in self.files():
            is_object = path.startswith((f"{GIT}/objects/", f"{BARE}/objects/")) and "/.git/" not in path[1:]
            is_foreign = path.startswith(f"{GIT}/") and not self.has_own_git
            if not (is_object or is_foreign or path in _NO_TEXT or path.startswith(f"{MACHINE}/snapshots/")):
                yield path

    @property
    def has_own_git(self) -> bool:
        return self._folder.stat(f"{GIT}/{OWN_MARK}") is not None

    @property
    def has_foreign_git(self) -> bool:
        return self._folder.stat(GIT) is not None and not self.has_own_git

    def read(self, path: str) -> bytes | None:
        return self._folder.bytes_of(path)

    def replace(self, path: str, data: bytes) -> None:
        """Puts other bytes in a file's place, with the mode it has. Raises Damaged."""
        with as_damage("cannot be written"):
            found = os.stat(path, dir_fd=self._folder.fd, follow_symlinks=False)
            self._machine.place(path, data, mode=stat.S_IMODE(found.st_mode))

    def drop_old_histories(self) -> None:
        """Deletes the repositories that a repair, or an interrupted rewriting, left beside our own. Raises Damaged."""
        names, top = self._folder.raw_names, f"{MACHINE}/{ASIDE}"
        found = [name for name in names("") if name.startswith(".git.")] if self.has_own_git else []
        for when in names(top):
            found += [f"{top}/{when}/{name}" for name in names(f"{top}/{when}") if name.startswith("repository")]
        found += [f"{MACHINE}/{name}" for name in names(MACHINE) if name.startswith("history.git.")]
        for path in found:
            with as_damage("cannot be deleted"), suppress(FileNotFoundError):
                shutil.rmtree(path, dir_fd=self._folder.fd)


def _in_the_way(path: str) -> Refused:
    said = f"{printable(path)} stands in the way: a link, or something no snapshot holds; nothing was written"
    return Refused(said, rule="in-the-way", hint="move it away and restore again")


class Swap:
    """Files that stand ready, beside the home, to take the place of its own. Whoever calls holds the home lock."""

    def __init__(self, machine: Machine) -> None:
        self._machine, self._store = machine, machine.store
        self.place = f"{self._store.root}/{AREA}"
        clear_area(self._store)

    def stage(self, path: str, pieces: Iterable[bytes], *, mode: int, mtime: int) -> None:
        """Puts a file there, whole and on the disk, with the mode and second it will have. Raises Damaged."""
        with as_damage("the snapshot cannot be unpacked"):
            self._store.fill(f"{AREA}/{path}", pieces, mode=mode, mtime=mtime)

    def begin(self, puts: Iterable[str], gone: Iterable[str], said: str) -> None:
        """From here on these files count in place of the home's own, and those that are `gone` no more."""
        machine, puts = self._machine, tuple(puts)
        with as_damage("the snapshot cannot be unpacked"):
            for folder in {f"{AREA}/{path}".rpartition("/")[0] for path in puts}:
                machine.sync_folder(folder)
        body = json.dumps({"puts": puts, "gone": tuple(gone), "said": said}).encode()
        try:
            machine.put(JOURNAL, json.dumps({"sha256": hashlib.sha256(body).hexdigest()}).encode() + b"\n" + body)
        except Damaged:
            machine.remove(JOURNAL)  # it may stand, but not for sure on the disk
            raise
        except KeyboardInterrupt:
            if machine.get(JOURNAL) is None:
                raise
        try:
            private.carry_on(machine)
        except (Damaged, KeyboardInterrupt):  # whoever stops it now would be told that nothing was done
            try:
                private.carry_on(machine)
            except Damaged as error:
                said = f"{error}; it is finished when the home is next opened"
                raise Unconfirmed(said, hint=error.hint) from None


@as_damage("the home cannot be read", "; nothing was changed")
def census(store: HeldFolder) -> tuple[list[FoundFile], Reasons]:
    """Every file of a folder that is the home's own, in order, and what is left out with the reason. Raises Damaged where the
    disk does not tell: what is not seen would be missing, and a restore would remove it."""
    found: list[FoundFile] = []
    left: Reasons = []
    own = stat_at(f"{GIT}/{OWN_MARK}", store.fd) is not None

    def shut(path: str, error: OSError) -> None:
        if not isinstance(error, PermissionError):
            raise error
        left.append((printable(path, 1000), "the system does not let us read it"))

    for path, seen in store.walk("", shut, lambda path: _left_out(path, own) is None):
        why, kind = _left_out(path, own), stat.S_IFMT(seen.st_mode)
        if why == "" or (why is None and kind == stat.S_IFDIR):
            continue  # nobody misses it, or what is in it comes
        why = why or ("it is a link, and links are not followed inside a home" if kind == stat.S_IFLNK else "")
        why = why or ("" if kind == stat.S_IFREG else "it is not a regular file") or private.refusal(path)
        if why:
            left.append((printable(path, 1000), why))
        else:
            mtime = min(max(int(seen.st_mtime), 0), LATEST)
            found.append(FoundFile(path, seen.st_size, private.own_mode(path, stat.S_IMODE(seen.st_mode)), mtime))
    apart, kept = private.Apart(), []
    for each in sorted(found):
        if apart.take(each.path):
            kept.append(each)
        else:
            left.append((each.path, "another file has the same name to us"))
    return kept, sorted(left)


def _left_out(path: str, own: bool) -> str | None:
    """None for what is looked at, "" for what nobody misses, else why it is left out."""
    if private.is_passing(path):
        return ""
    parts = path.split("/")
    if path == GIT:
        return None if own else "a git repository that is not anima's"
    if (own and parts[0].startswith(".git.")) or path.startswith(f"{BARE}."):
        return "a history that a repair set aside"
    if any(fold(part) in (GIT, MACHINE) for part in parts[1:]) or (
        fold(parts[0]) in (GIT, MACHINE) and parts[0] not in (GIT, MACHINE)
    ):
        return "a repository of its own"
    return None
