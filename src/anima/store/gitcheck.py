"""What is wrong with a history, by the names of the table of damages.

Promise: never raises for what a repository holds, never waits for a pipe; reads every object that a revision needs, so it
costs what history is large. Nothing of the repository is executed (gitdir). Not here: mending (git.History.repair).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator
from typing import NamedTuple

from anima.errors import Damaged, HomeError, printable
from anima.store.aside import kind_of
from anima.store.folder import Folder
from anima.store.git import History
from anima.store.gitdir import BRANCH, MARK
from anima.store.safe_open import open_regular

_LOCKS = ("HEAD.lock", "index.lock", "packed-refs.lock", f"{BRANCH}.lock")
_FOLDERS = (
    "objects",
    "objects/pack",
    "objects/info",
    "refs",
    "refs/heads",
    "logs",
    "logs/refs",
    "logs/refs/heads",
    "info",
)
_FILES = (
    "HEAD",
    BRANCH,
    "packed-refs",
    f"logs/{BRANCH}",
    "index",
    "config",
    "info/exclude",
    "anima.lock",
    "anima.index",
)
_MINUTE = 60.0  # seconds; a git command of a person holds its locks for less
_ID = re.compile(rb"[0-9a-f]{40}\n?")


class Unsound(NamedTuple):
    """What is wrong: the end of a row's name (`lock` for `history-lock`), and a sentence."""

    name: str
    why: str


def check(store: Folder, place: str) -> list[Unsound]:
    """What is wrong with the repository at a place beneath the home; nothing where none is."""
    kind = kind_of(store, place)
    if kind is None:
        return []
    if kind != "folder" or kind_of(store, f"{place}/{MARK}") != "file":
        return [Unsound("unmarked", "it is not a repository of ours")]
    found = [*_locks(store, place), *_head(store, place)]
    if strange := strange_in(store, place):
        return [*found, Unsound("unsafe", f"{printable(strange)} is not what must stand there")]
    found += _packs(store, place)
    return found + _objects(store, place, {each.name for each in found})


def lock_names(store: Folder, place: str) -> list[str]:
    """The locks of git that nobody can still be at work under: older than a minute."""
    return [name for name, age in _lock_ages(store, place) if age > _MINUTE]


def _lock_ages(store: Folder, place: str) -> Iterator[tuple[str, float]]:
    for name in _LOCKS:
        if (found := store.stat(f"{place}/{name}")) is not None:
            yield name, time.time() - found.st_mtime


def _locks(store: Folder, place: str) -> Iterator[Unsound]:
    for name, age in _lock_ages(store, place):
        if age > _MINUTE:
            yield Unsound("lock", f"{name} was left by a git command that died")
        else:
            yield Unsound("busy", f"{name} is there: a git command is at work, or died just now")


def _head(store: Folder, place: str) -> Iterator[Unsound]:
    raw = (_read(store, f"{place}/HEAD") or b"").strip()
    if raw == f"ref: {BRANCH}".encode():
        return
    shown = printable(raw.decode("utf-8", "replace"), 60)
    if _ID.fullmatch(raw):
        yield Unsound("head-detached", "HEAD is detached; history goes on on main")
    elif re.fullmatch(rb"ref: refs/heads/[!-~]+", raw):
        yield Unsound("other-branch", f"HEAD is on {shown.removeprefix('ref: refs/heads/')}; history goes on on main")
    else:
        yield Unsound("head-broken", "HEAD is missing" if not raw else "HEAD names no branch")


def strange_in(store: Folder, place: str) -> str:
    """The first thing in a repository that libgit2 would follow, or wait for, by its name there; "" for none."""
    wanted = dict.fromkeys(_FOLDERS, "folder") | dict.fromkeys(_FILES, "file")
    odd = (name for name, kind in wanted.items() if kind_of(store, f"{place}/{name}") not in (kind, None))
    if (found := next(odd, None)) is not None:
        return found
    for folder in ("objects", "objects/pack"):
        for name in sorted(store.raw_names(f"{place}/{folder}")):
            if kind_of(store, f"{place}/{folder}/{name}") not in ("file", "folder" if folder == "objects" else "file"):
                return f"{folder}/{name}"
    return ""


def _packs(store: Folder, place: str) -> Iterator[Unsound]:
    """Packs and their indexes end in a sum of all that stands before."""
    names = store.raw_names(f"{place}/objects/pack")
    for name in sorted(names):
        if name.endswith((".pack", ".idx")) and not _adds_up(store, f"{place}/objects/pack/{name}"):
            yield Unsound("pack-damaged", f"{printable(name)} is not what was written")
        elif name.endswith(".pack") and name.removesuffix(".pack") + ".idx" not in names:
            yield Unsound("pack-damaged", f"{printable(name)} has lost its index")
        elif name.endswith(".idx") and name.removesuffix(".idx") + ".pack" not in names:
            yield Unsound("pack-damaged", f"{printable(name)} has lost its pack")


def _adds_up(store: Folder, path: str) -> bool:
    try:
        fd, found = open_regular(store.fd, path)
    except OSError:
        return False
    try:
        left, made = found.st_size - 20, hashlib.sha1(usedforsecurity=False)
        while left > 0 and (piece := os.read(fd, min(left, 1 << 20))):
            made.update(piece)
            left -= len(piece)
        return left == 0 and os.read(fd, 20) == made.digest()
    except OSError:
        return False
    finally:
        os.close(fd)


def _objects(store: Folder, place: str, known: set[str]) -> list[Unsound]:
    try:
        main = _main(store, place)
    except Damaged:
        return [Unsound("ref-broken", "main holds no id")]
    try:
        history = History.open(f"{store.root}/{place}")
    except (HomeError, OSError) as error:
        return [Unsound("unsafe", str(error))]
    try:
        said = history.broken()
    except (HomeError, OSError) as error:
        return [] if "lock" in known or "busy" in known else [Unsound("unsafe", str(error))]
    finally:
        history.close()
    if main is None:
        return [Unsound("branch-gone", "the branch main is gone")] if said else []
    return [] if not said or "pack-damaged" in known else [_named(store, place, main, *said)]


def _named(store: Folder, place: str, main: str, revision: str, name: str) -> Unsound:
    loose = store.stat(f"{place}/objects/{name[:2]}/{name[2:]}")
    if loose is not None and stat.S_ISREG(loose.st_mode):
        return Unsound(
            "object-damaged", f"revision {revision[:10]} cannot be read in full: object {name[:10]} is damaged"
        )
    if name == main:
        return Unsound("ref-broken", "main leads to a revision that is not there")
    return Unsound("object-missing", f"revision {revision[:10]} cannot be read in full: object {name[:10]} is gone")


def _main(store: Folder, place: str) -> str | None:
    """The id main holds; None where there is no main. Raises Damaged for one that is no id."""
    raw = _read(store, f"{place}/{BRANCH}")
    if raw is not None:
        if not _ID.fullmatch(raw):
            raise Damaged("main holds no id")
        return raw[:40].decode()
    packed = re.search(
        rb"^([0-9a-f]{40}) %s$" % BRANCH.encode(), _read(store, f"{place}/packed-refs") or b"", re.MULTILINE
    )
    return packed[1].decode() if packed else None


def _read(store: Folder, path: str) -> bytes | None:
    try:
        fd, found = open_regular(store.fd, path)
    except OSError:
        return None
    try:
        return os.read(fd, min(found.st_size, 1 << 26) + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
