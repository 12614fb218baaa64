"""One git repository as files: its objects, its branch main, its locks.

Promise: no hook, filter, attribute or configuration is read, let alone run. Of libgit2 only objects, the index and diffs are
used; every other file is opened beneath the repository's own folder without following links, and put in place under git's
own locks. A lock that a killed process of ours leaves is known as ours, and the next one takes it away. Not here: what is
committed and looked up (git), and what a commit says (edits).
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pygit2
from pygit2.enums import ObjectType

from anima.errors import Damaged, HomeError, printable
from anima.store import MOST_READ, blob_id
from anima.store.lock import Handle
from anima.store.safe_open import NO_LINKS, held, open_beneath, open_folder, regular, signature_of, stat_at, write_all

MARK = "anima"  # the file that tells our repositories from all others
BRANCH = "refs/heads/main"
HINT = "anima doctor --repair mends history; the documents are not touched"
OWN = "anima.new"
FOLLOWED = "anima.index"  # the commit that git's index was last made to follow
PATHS = "anima.paths"  # which commit changed what; derived
GIT_LOCKS = ("HEAD.lock", "index.lock", "packed-refs.lock", f"{BRANCH}.lock")
_FOLDERS = tuple("objects objects/pack objects/info refs refs/heads info logs logs/refs logs/refs/heads".split())
_FILES = ("HEAD", BRANCH, "packed-refs", f"logs/{BRANCH}", "index", "config", "info/exclude", FOLLOWED, PATHS)
_ATTRIBUTES = "* -text"
_PLAIN = re.compile(  # what git only ever reads as data
    r"HEAD|ORIG_HEAD|anima|anima\.index|index|packed-refs|info/exclude|objects/info/packs|(?:refs|logs)/.+|objects/(?:[0-9a-f]{2}|pack)/[^/]+"
)
FOLDER, FILE, ELSEWHERE = b"40000", b"100644", b"160000"  # the last is a submodule, which is in another repository
_ENTRY = re.compile(rb"([1-7][0-7]{4,5}) ([^\0/]+)\0(.{20})", re.DOTALL)
NO_FILES = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the id of the empty tree
MAX_ENTRIES, MAX_DEPTH = 500_000, 64  # a hostile tree can name itself a billion times in a few kilobytes
_KINDS = {b"commit": ObjectType.COMMIT, b"tree": ObjectType.TREE, b"blob": ObjectType.BLOB, b"tag": ObjectType.TAG}
# Bytes from which on a document is kept as it is: to compress it would take longer than all else that history does for a
# change, and few documents are so long. A person's `git gc` makes the versions of one small.
_LARGE = 2**20
_MAX_OBJECT = 64 * 2**20
_FOREIGN = (pygit2.GitError, OSError, KeyError, ValueError)  # what libgit2, the disk and bad objects raise
BROKEN = (Damaged, *_FOREIGN)

Entry = tuple[bytes, bytes]  # mode and id
Tree = dict[bytes, Entry]


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit object, decoded as far as we need it."""

    id: str
    raw: bytes
    tree: str
    parent: str | None
    person: bytes

    @property
    def message(self) -> str:
        return self.raw.partition(b"\n\n")[2].decode("utf-8", "replace")


class Repository(Handle):
    """One repository's folder. Threads may share it, and processes; whoever writes holds the home's lock."""

    def __init__(self, git_dir: str) -> None:
        self._path = os.path.abspath(git_dir)
        self._mutex = threading.RLock()
        self._trees: dict[str, Tree] = {}
        self._index: tuple[object, pygit2.Index, str] | None = None  # as we left git's, and the commit it follows
        with mapped():
            self._bind()

    def close(self) -> None:
        with self._mutex:
            super().close()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._mutex, mapped():
            self._bind()
            self._must_be_safe()
            yield

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One thread at a time, and by the home's lock one process."""
        with self._mutex, mapped():
            self._bind()
            self._sweep()
            yield

    def _must_be_safe(self) -> None:
        if self._strange:
            raise Damaged(f"{printable(self._strange)} of history is not what must stand there", hint=HINT)

    def _bind(self) -> None:
        """Holds the folder that stands at our path now: a repair or a rewriting puts another there."""
        if self._fd >= 0 and _is_same(stat_at(self._path), os.fstat(self._fd)):
            return
        if self._fd >= 0:
            os.close(self._fd)
        self._fd = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        self._bare = b"bare" in (self._read(MARK) or b"")
        self._strange = self._prepare()
        self._forget()

    def _prepare(self) -> str:
        """Make folders that git would miss. The first thing that libgit2 would follow, or wait for; "" for none."""
        for folder in _FOLDERS:
            if (found := self._stat(folder)) is None:
                os.mkdir(folder, 0o700, dir_fd=self._fd)
            elif not stat.S_ISDIR(found.st_mode):
                return folder
        for folder in ("objects", "objects/pack"):
            for entry in sorted(os.scandir(f"{self._path}/{folder}"), key=lambda entry: entry.name):
                is_folder = folder == "objects" and entry.is_dir(follow_symlinks=False)
                if not is_folder and not entry.is_file(follow_symlinks=False):
                    return f"{folder}/{entry.name}"
        kinds = {name: found.st_mode for name in _FILES if (found := self._stat(name))}
        return next((name for name, mode in kinds.items() if not stat.S_ISREG(mode)), "")

    def _sweep(self) -> None:
        """Take away the lock of a process of ours that was killed while it held it."""
        self._remove(f"{OWN}.lock")
        if (own := self._stat(OWN)) is not None:
            for name in GIT_LOCKS:
                if _is_same(self._stat(name), own):
                    self._remove(name)
            self._remove(OWN)

    # -- objects ------------------------------------------------------------------------------------------------------

    def _forget(self) -> None:
        """From now on read objects from the disk again, even those that were read or written before."""
        self._odb, place, self._index = pygit2.Odb(), f"{self._path}/objects", None
        self._trees.clear()
        if not self._strange:
            self._odb.add_backend(pygit2.OdbBackendLoose(place, 1, False, 0o700, 0o600), 2)
            self._odb.add_backend(pygit2.OdbBackendPack(place), 1)

    def _put(self, kind: ObjectType, data: bytes) -> str:
        if kind != ObjectType.BLOB or len(data) < _LARGE:
            return str(self._odb.write(kind, data))
        self._must_be_safe()
        name = blob_id(data)
        if name not in self._odb:
            whole = b"blob %d\0%s" % (len(data), data)
            self._write(OWN, zlib.compress(whole, 0))  # libgit2 would leave out what git knows a stream by
            with suppress(FileExistsError):
                os.mkdir(f"objects/{name[:2]}", 0o700, dir_fd=self._fd)
            with held(open_folder(self._fd, f"objects/{name[:2]}")) as folder:
                os.rename(OWN, name[2:], src_dir_fd=self._fd, dst_dir_fd=folder)
        return name

    def _get(self, name: str, kind: ObjectType) -> bytes:
        """An object's bytes. libgit2 compares them with the id, so what is returned is what was written."""
        found, data = self._any(name)
        if found != kind:
            raise Damaged(f"object {name[:10]} of history is not what it should be", hint=HINT)
        return data

    def _any(self, name: str) -> tuple[int, bytes]:
        place = f"objects/{name[:2]}/{name[2:]}"
        loose = self._stat(place)
        if loose is not None and not stat.S_ISREG(loose.st_mode):  # libgit2 would wait for a pipe, or follow a link
            raise Damaged(f"object {name[:10]} of history is not a file", hint=HINT)
        if loose is not None and (raw := self._read(place)) is not None:
            stream = zlib.decompressobj()  # libgit2 never comes to an end with an object that was cut
            try:
                found = stream.decompress(raw, _MAX_OBJECT + 64)
            except zlib.error:
                found = b""
            if stream.unconsumed_tail:
                raise Damaged(f"object {name[:10]} of history is too large", hint=HINT)
            head, _, data = found.partition(b"\0")
            kind = _KINDS.get(head.partition(b" ")[0])
            if kind is None or not stream.eof or hashlib.sha1(found, usedforsecurity=False).hexdigest() != name:
                raise Damaged(f"object {name[:10]} of history is damaged", hint=HINT)
            return kind, data
        if self._odb.read_header(name)[1] > _MAX_OBJECT:
            raise Damaged(f"object {name[:10]} of history is too large", hint=HINT)
        packed = self._odb.read(name)
        return packed[0], bytes(packed[1])

    def _commit(self, name: str) -> Commit:
        raw = self._get(name, ObjectType.COMMIT)
        found = re.match(rb"tree ([0-9a-f]{40})\n(?:parent ([0-9a-f]{40})\n)?(?:parent .*\n)*author (.*)\n", raw)
        if found is None:
            raise ValueError("a commit object is malformed")
        return Commit(name, raw, found[1].decode(), found[2].decode() if found[2] else None, found[3])

    def _tree(self, name: str | None) -> Tree:
        """The entries of a tree; none for no tree."""
        if name is None or name == NO_FILES:
            return {}
        if name not in self._trees:
            raw = self._get(name, ObjectType.TREE)
            found = {each: (mode, identity) for mode, each, identity in _ENTRY.findall(raw)}
            if len(raw) != sum(len(mode) + len(each) + 22 for each, (mode, _) in found.items()):
                raise ValueError("a tree object is malformed")
            if len(self._trees) >= 256:
                self._trees.clear()
            self._trees[name] = found
        return self._trees[name]

    def _blob(self, entry: Entry | None) -> bytes | None:
        return self._get(entry[1].hex(), ObjectType.BLOB) if entry and is_file(entry) else None

    def _line(self, newest: str | None) -> Iterator[Commit]:
        """A commit and its first parents, as far as they can be read. A newest one that cannot be raises."""
        commit = self._commit(newest) if newest else None
        while commit is not None:
            yield commit
            try:
                commit = self._commit(commit.parent) if commit.parent else None
            except BROKEN:
                commit = None

    def _changes(
        self, old: str | None, new: str | None, prefix: bytes = b"", left: Iterator[int] | None = None
    ) -> Iterator[tuple[str, Entry | None, Entry | None]]:
        """What differs between two trees except folders, in order. Equal folders are not even opened."""
        left = left or iter(range(MAX_ENTRIES))
        before, after = self._tree(old), self._tree(new)
        for name in sorted({name for name, _ in before.items() ^ after.items()}):
            if next(left, None) is None or prefix.count(b"/") > MAX_DEPTH:
                raise Damaged("a revision of history names too many files", hint=HINT)
            a, b = before.get(name), after.get(name)
            inner, beside = (entry[1].hex() if entry and entry[0] == FOLDER else None for entry in (a, b))
            if inner or beside:
                yield from self._changes(inner, beside, prefix + name + b"/", left)
            a, b = None if inner else a, None if beside else b
            if a or b:
                yield (prefix + name).decode("utf-8", "surrogateescape"), a, b

    # -- the branch ---------------------------------------------------------------------------------------------------

    def _main(self) -> str | None:
        """The commit main is at; None if there is no main."""
        if (raw := self._read(BRANCH)) is None:
            packed = self._read("packed-refs") or b""
            found = re.search(rb"^([0-9a-f]{40}) %s$" % BRANCH.encode(), packed, re.MULTILINE)
            return found[1].decode() if found else None
        if re.fullmatch(rb"[0-9a-f]{40}\n?", raw) is None:
            raise Damaged("the branch main of history is unreadable", hint=HINT)
        return raw[:40].decode()

    def _point(self, new: str, *, old: str | None, person: bytes) -> bool:
        """Move main from one commit to another; False if it is no longer where it was."""
        if not self._replace(BRANCH, f"{new}\n".encode(), unless=lambda: self._main() != old):
            return False
        with suppress(OSError):  # the reflog is a convenience
            line = b"%s %s %s\tcommit\n" % ((old or "0" * 40).encode(), new.encode(), person)
            self._put_bytes(f"logs/{BRANCH}", line, os.O_APPEND)
        return True

    def _tips(self) -> list[str]:
        """Where main is and was, newest first, as far as is known."""
        tips: list[str] = []
        with suppress(OSError):
            raw = self._read(f"logs/{BRANCH}") or b""
            tips = [name.decode() for name in re.findall(rb"^[0-9a-f]{40} ([0-9a-f]{40}) ", raw, re.MULTILINE)[::-1]]
        with suppress(Damaged, OSError):
            if head := self._main():
                tips.insert(0, head)
        return tips

    # -- a person's index ------------------------------------------------------------------------------------------

    def _refresh_index(self, head: str) -> None:
        """Change git's index by what changed since we last did; what cannot be done now, the next commit does. A person's
        index is read and written by libgit2, as a file of our own beside it."""
        if self._bare or (self._read("HEAD") or b"").strip() != f"ref: {BRANCH}".encode():
            return
        with suppress(*BROKEN):
            mark = self._mark()
            index, before = self._last_index(mark)
            if index.conflicts is not None:  # a merge is under way
                return
            self._index = None
            for path, _, entry in self._changes(before, self._commit(head).tree):
                with suppress(OSError):
                    index.remove(path)
                if entry:
                    mode = pygit2.enums.FileMode(int(entry[0], 8))
                    index.add(pygit2.IndexEntry(path, pygit2.Oid(raw=entry[1]), mode))
            index.write()
            os.chmod(OWN, 0o600, dir_fd=self._fd)
            made = self._stat(OWN)
            if self._replace("index", patience=0.0, unless=lambda: self._mark() != mark):  # somebody staged meanwhile
                self._write(FOLLOWED, head.encode())
                if _is_same(self._stat("index"), made):
                    self._index = self._mark(), index, head

    def _mark(self) -> object:
        return signature_of(found) if (found := self._stat("index")) else None

    def _last_index(self, mark: object) -> tuple[pygit2.Index, str | None]:
        """Git's index as it is, and the tree it was last made to follow; from nothing where either is lost."""
        self._remove(OWN)
        try:
            if self._index and mark == self._index[0]:
                return self._index[1], self._commit(self._index[2]).tree
            if (raw := self._read("index")) and (was := self._read(FOLLOWED)):
                before = self._commit(was.decode()).tree
                self._write(OWN, raw)
                index = pygit2.Index(f"{self._path}/{OWN}")
                index.read(True)
                return index, before
        except BROKEN:
            self._remove(OWN)
        return pygit2.Index(f"{self._path}/{OWN}"), None

    # -- files --------------------------------------------------------------------------------------------------------

    def _read(self, name: str) -> bytes | None:
        with suppress(FileNotFoundError), regular(self._fd, name) as (fd, found):
            if found.st_size > MOST_READ:
                raise Damaged(f"{name} of history is too large", hint=HINT)
            return b"".join(iter(lambda: os.read(fd, found.st_size + 1), b""))
        return None

    def _write(self, name: str, data: bytes) -> None:
        """Make a file anew, without git's lock: for files that only we know."""
        self._remove(name)
        self._put_bytes(name, data, os.O_EXCL)

    def _put_bytes(self, name: str, data: bytes, flag: int) -> None:
        with held(open_beneath(self._fd, name, os.O_WRONLY | os.O_CREAT | flag)) as fd:
            write_all(fd, data)

    def _replace(
        self, name: str, data: bytes | None = None, *, patience: float = 1.0, unless: Callable[[], bool] = lambda: False
    ) -> bool:
        """Put a file in place as git does, under its lock `name.lock`. False if `unless` says so once it is held. The lock is
        a second name of a file of ours, by which `_sweep` knows it should we be killed. Without `data` it stands ready."""
        lock, deadline, is_held = f"{name}.lock", time.monotonic() + patience, False
        if data is not None:
            self._write(OWN, data)
        try:
            while not (is_held := self._link(lock)):
                if time.monotonic() >= deadline:
                    raise Damaged(f"{lock} of history is held: a git command is at work, or died", hint=HINT)
                time.sleep(0.005)
            if not unless():
                os.rename(lock, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)
                is_held = False
            return not is_held
        finally:
            if is_held:  # also when the disk failed: once OWN is gone nobody could tell whose lock it is
                self._remove(lock)
            self._remove(OWN)

    def _link(self, lock: str) -> bool:
        try:
            os.link(OWN, lock, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in NO_LINKS or self._stat(lock) is not None:
                raise
            os.rename(OWN, lock, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        return True

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._fd)

    def _stat(self, name: str) -> os.stat_result | None:
        return stat_at(name, self._fd)


def lay_out(path: str, *, bare: bool, exclude: Iterable[str]) -> None:
    """The files of an empty repository. A person's git must not change line endings, so we tell it."""
    for folder in ("", *_FOLDERS):
        os.makedirs(os.path.join(path, folder), mode=0o700, exist_ok=True)
    texts = {
        "config": _config(bare),
        "info/exclude": "\n".join(["/.git.*", *exclude]),
        "info/attributes": _ATTRIBUTES,
        "HEAD": f"ref: {BRANCH}",
        MARK: f"anima history 1 {'bare' if bare else 'work'}",
    }
    for name, text in texts.items():
        fd = os.open(os.path.join(path, name), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text + "\n")


def _config(bare: bool) -> str:
    settings = ("filemode = false", f"bare = {str(bare).lower()}", "logallrefupdates = true")
    ours = ("autocrlf = false", "safecrlf = false", "quotepath = false")
    return "\n\t".join(["[core]", "repositoryformatversion = 0", *settings, *ours])


def harmless(name: str, data: bytes | None, *, bare: bool) -> bytes | None:
    """What may stand under a name in a repository that somebody else made: `data`, our own text for it, or None for
    nothing. With anything else a person's git could run a program there, or read other folders, at a mere `git log`."""
    if (own := {"config": _config(bare), "info/attributes": _ATTRIBUTES}.get(name)) is not None:
        return f"{own}\n".encode()
    return data if _PLAIN.fullmatch(name) else None


def is_file(entry: Entry) -> bool:
    return entry[0].startswith(b"100")


def _is_same(one: os.stat_result | None, two: os.stat_result | None) -> bool:
    return one is not None and two is not None and os.path.samestat(one, two)


@contextmanager
def mapped() -> Iterator[None]:
    """Whatever libgit2 and the disk say, as Damaged. Their messages hold absolute paths, so they are not repeated."""
    try:
        yield
    except HomeError:
        raise
    except OSError as error:
        raise Damaged(f"history cannot be used ({error.strerror or type(error).__name__})", hint=HINT) from error
    except _FOREIGN as error:
        raise Damaged("a part of history is missing or cannot be read", hint=HINT) from error
