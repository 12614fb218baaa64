"""The files of a folder that are a home's own: what a snapshot holds and a restore puts back.

Promise: a name that leads out of a home, or that only this machine gives, is refused; links are named and not followed;
of two names that are one to a home only the first counts. Nothing is changed.
Not here: the archive they are packed into (backup), and putting others in their place (private).
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress

from anima.errors import BadPath, Refused, printable
from anima.model import MAX_PATH, DocPath, File, FoundFile, fold
from anima.store.folder import MACHINE, STAGE, Folder, as_damage
from anima.store.safe_open import open_regular, stat_at

LATEST = 0o77777777777  # the last second that a plain header of tar can name
GIT, BARE = ".git", f"{MACHINE}/history.git"
REPOSITORIES = {f"{GIT}/": False, f"{BARE}/": True}  # and whether it is bare
MACHINERY = (f"{MACHINE}/", f"{GIT}/")
OWN_MARK = "anima"  # a repository with a file of that name in it is ours
# What is derived, or is this machine's own: locks, staged texts, the archives themselves, what a restore is doing.
_OWN = "lock index.lock dreaming mending snapshots restore restoring restored looked .gitignore"
_PASSING = frozenset([STAGE, *(f"{MACHINE}/{name}" for name in _OWN.split())])
_DERIVED = (f"{MACHINE}/index.sqlite", f"{MACHINE}/talks.sqlite")
_GIT_OWN = "anima.lock anima.new anima.paths HEAD.lock index.lock packed-refs.lock config.lock refs/heads/main.lock"
_GIT_LOCKS = frozenset(f"{place}/{name}" for place in (GIT, BARE) for name in _GIT_OWN.split())
_LINK = "it is a link, and links are not followed inside a home"
_UNREADABLE = "the system does not let us read it"
Reasons = list[tuple[str, str]]  # (path, why)


# -- names ------------------------------------------------------------------------------------------------------------------


def path_of_state(name: str) -> str:
    """Where a small thing of the machine's own stands in an archive."""
    return f"{MACHINE}/{name}"


def check_names(files: Iterable[File]) -> None:
    """Names that stay inside a home and apart from each other, in order. Raises Refused."""
    before, apart = "", Apart()
    for file in files:
        name = printable(file.path)
        why = ""
        if refused := refusal(file.path):
            why = f"the snapshot holds {name}, which is refused: {refused}"
        elif file.path <= before:
            why = f"the snapshot names {name} twice, or out of order"
        elif file.mode != own_mode(file.path, file.mode):
            why = f"the snapshot gives {name} a mode no home has"
        elif not apart.take(file.path):
            why = f"two names in the snapshot are one to a home: {name}"
        if why:
            raise Refused(f"{why}; nothing was written", rule="archive")
        before = file.path


class Apart:
    """Names that no file system takes for one another, nor for a folder on the way to one of them."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def take(self, path: str) -> bool:
        """Whether a name is free; it is taken then."""
        key = path if path.startswith(MACHINERY) else fold(path)
        above = list(folders_above(key))
        if key in self._files or key in self._folders or not self._files.isdisjoint(above):
            return False
        self._files.add(key)
        self._folders.update(above)
        return True


def folders_above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def refusal(path: str) -> str:
    """Why a path can be none of a home's files; "" for one that can. Hidden names are allowed, unlike in a DocPath."""
    parts = path.split("/")
    if not path or len(path) > MAX_PATH or any(part in ("", ".", "..") for part in parts):
        return "it does not lie inside a home"
    if parts[0] in (GIT, MACHINE) and len(parts) > 1:
        if not path.isprintable() or "\\" in path or any(fold(part) in (GIT, MACHINE) for part in parts[1:]):
            return "it is no name anima gives"
        return "it is a file of this machine's own" if _is_passing(path) else ""
    if any(fold(part) in (GIT, MACHINE) for part in parts):
        return "it belongs to a repository"
    try:
        DocPath.parse("/".join("_" + part.lstrip(".") if part.startswith(".") else part for part in parts))
    except BadPath as error:
        return error.why
    return ""


def _is_passing(path: str) -> bool:
    """Whether a file of `.anima` or `.git` is derived, a lock, or this machine's own."""
    return path in _GIT_LOCKS or path.startswith(_DERIVED) or not _PASSING.isdisjoint([path, *folders_above(path)])


def own_mode(path: str, mode: int) -> int:
    """The mode a file is restored with: its owner may read and write it, and nobody else write."""
    return 0o600 if path.startswith(f"{MACHINE}/") else 0o600 | (mode & 0o755)


# -- what there is ----------------------------------------------------------------------------------------------------------


def census(store: Folder) -> tuple[list[FoundFile], Reasons]:
    """Every file that is the home's own, in order, and what is left out with the reason.

    Raises Damaged where the disk does not tell: what is not seen would be missing, and a restore would remove it.
    """
    with as_damage("the home cannot be read", "; nothing was changed"):
        return _counted(store)


def _counted(store: Folder) -> tuple[list[FoundFile], Reasons]:
    found: list[FoundFile] = []
    left: Reasons = []
    own = stat_at(f"{GIT}/{OWN_MARK}", store.fd) is not None

    def closed(error: OSError) -> None:
        if isinstance(error, PermissionError):
            left.append((printable(str(error.filename), 1000), _UNREADABLE))
        elif not isinstance(error, FileNotFoundError):
            raise error

    for folder, folders, names, fd in os.fwalk(".", dir_fd=store.fd, follow_symlinks=False, onerror=closed):
        inside = "" if folder == "." else f"{os.path.normpath(folder)}/"
        entered = []
        for name in sorted([*folders, *names]):
            path = inside + name
            if (why := _left_out(path, own)) == "" or (seen := stat_at(name, fd)) is None:
                continue  # nobody misses it, or it vanished while we looked
            if why is None and stat.S_ISDIR(seen.st_mode):
                entered.append(name)
                continue
            why = why or (_LINK if stat.S_ISLNK(seen.st_mode) else "")
            why = why or ("" if stat.S_ISREG(seen.st_mode) else "it is not a regular file") or refusal(path)
            if why:
                left.append((printable(path, 1000), why))
            else:
                mtime = min(max(int(seen.st_mtime), 0), LATEST)
                found.append(FoundFile(path, seen.st_size, own_mode(path, stat.S_IMODE(seen.st_mode)), mtime))
        folders[:] = entered
    apart, kept = Apart(), []
    for each in sorted(found):
        if apart.take(each.path):
            kept.append(each)
        else:
            left.append((each.path, "another file has the same name to us"))
    return kept, sorted(left)


def _left_out(path: str, own: bool) -> str | None:
    """None for what is looked at, "" for what nobody misses, else why it is left out."""
    if _is_passing(path):
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


def survey(store: Folder) -> dict[str, tuple[File, int]]:
    """Every file that is the home's own, read and hashed, with its time."""
    seen: dict[str, tuple[File, int]] = {}
    for found in census(store)[0]:
        with as_damage(f"{printable(found.path)} cannot be read", "; nothing was changed"):
            with suppress(FileNotFoundError, PermissionError):
                fd, now = open_regular(store.fd, found.path)
                with open(fd, "rb") as source:
                    digest = hashlib.file_digest(source, "sha256").hexdigest()
                seen[found.path] = (File(found.path, now.st_size, digest, found.mode), found.mtime)
    return seen
