"""History: every version of every document, in a git repository that a person can read with plain git.

Promise: nothing of the repository is ever executed (gitdir), and no document is read or written: trees and commits are
put together from the bytes a caller gives. Only a repository that `create` made is opened. What cannot be read raises
Damaged; callers treat that as history being late, since the documents and the ledger are the truth.
Not here: when to commit, which documents belong in (transcripts do not), and bringing a version back.
"""

from __future__ import annotations

import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count, islice

from pygit2.enums import ObjectType

from anima.errors import Damaged, NoSuchRevision, Refused, printable
from anima.store.gitdir import BRANCH, FOREIGN, HINT, MARK, GitDir, lay_out, mapped
from anima.store.gitformat import (
    FILE,
    FOLDER,
    Commit,
    Entry,
    Index,
    Nest,
    Note,
    Revision,
    anchor_of,
    blob_id,
    change_index,
    change_tree,
    decode_commit,
    decode_index,
    decode_tree,
    encode_commit,
    encode_index,
    encode_tree,
    find_entries,
    find_entry,
    is_file,
    message_of,
    nested,
    patch_of,
    person_of,
    revision_of,
    tree_changes,
    with_parents,
    with_tree,
)

__all__ = ["MAX_BYTES", "History", "Note", "Revision", "Rewritten", "blob_id"]

MAX_BYTES = 2**20

_INDEXED = "anima.index"  # the commit that git's index was last made to follow
_MAX_ENTRIES = 500_000  # a hostile tree can name itself a billion times in a few kilobytes
_MAX_DEPTH = 64
_BROKEN = (Damaged, *FOREIGN)

_Change = tuple[bytes, Entry | None, Entry | None]
_Found = dict[str, tuple[ObjectType, bytes]]
Clean = Callable[[str, bytes], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """What rewriting did: revisions there are, and how many of them had something taken out."""

    revisions: int
    changed: int
    head: str | None


class History:
    """One repository. Threads and processes may share it; each call stands for itself. Close it when done."""

    def __init__(self, git_dir: str, *, fsync: bool) -> None:
        """Use `open` or `create`. With `fsync`, a commit is on the disk when it returns, at some cost."""
        self._dir, self._fsync = GitDir(git_dir, fsync=fsync), fsync
        self._trees: dict[str, bytes] = {}
        self._index: tuple[bytes, Index] = (b"", {})

    @classmethod
    def open(cls, git_dir: str, *, fsync: bool = False) -> History:
        """A history that `create` made. Raises Refused for any other repository, Damaged where there is none."""
        if not os.path.isdir(git_dir):
            raise Damaged("there is no history here", hint=HINT)
        if not os.path.isfile(os.path.join(git_dir, MARK)):
            raise Refused("this git repository is not one of ours, and is not touched", rule="foreign-repository")
        return cls(git_dir, fsync=fsync)

    @classmethod
    def create(cls, git_dir: str, *, bare: bool, exclude: Iterable[str] = (), fsync: bool = False) -> History:
        """A new, empty history, or the one that is there already.

        Unless `bare`, it stands in the folder whose history it is, keeps an index for a person's `git status`, and
        tells git to overlook what `exclude` names.
        """
        with mapped():
            _finish_swap(git_dir)
        if not os.path.lexists(git_dir):
            with mapped(), _unless_made(git_dir):
                lay_out(f"{git_dir}.new", bare=bare, exclude=exclude)
                os.rename(f"{git_dir}.new", git_dir)
        return cls.open(git_dir, fsync=fsync)

    def close(self) -> None:
        self._dir.close()

    # -- writing ------------------------------------------------------------------------------------------------------

    def commit(self, files: Mapping[str, bytes | None], note: Note) -> str | None:
        """A commit in which these files have these bytes (None: they are gone) and all others are as before.

        Returns its id, or None where nothing differs. An empty mapping makes a commit that only says its note. Files
        over 1 MiB stay as they were, and the commit says so.
        """
        taken = {path: data for path, data in files.items() if data is None or len(data) <= MAX_BYTES}
        nest, person = nested(taken), person_of(note)
        message = message_of(note, sorted(taken), sorted(files.keys() - taken.keys()))
        with self._dir.guard():
            self._dir.must_be_safe()
            for _ in range(5):
                head = self._dir.main()
                if head is None and self._dir.tips():  # a new beginning would hide all that was before
                    raise Damaged("the branch main is gone", hint=HINT)
                tree = self._commit(head).tree if head else None
                grown = self._grow(tree, nest)
                if files and (grown or _NO_FILES) == (tree or _NO_FILES):
                    return None
                grown = grown or self._dir.put(ObjectType.TREE, b"")
                raw = encode_commit(grown, [head] if head else [], person=person, message=message)
                made = self._dir.put(ObjectType.COMMIT, raw)
                if self._dir.point(made, old=head, person=person):
                    self._refresh_index(made)
                    return made
        raise Damaged("another git command keeps changing the branch main", hint="try again when it has ended")

    def refresh(self) -> None:
        """Let git's index follow main where it could not before, because a git command held its lock."""
        with self._dir.guard():
            if (head := self._dir.main()) is not None:
                self._refresh_index(head)

    def pack(self, *, limit: int = 1000) -> int:
        """Put the oldest loose objects into one pack, as `git gc` does, and say how many.

        Each commit leaves three to six of them. Committing waits meanwhile, hence the limit.
        """
        with self._dir.guard():
            self._dir.must_be_safe()
            return self._dir.pack(limit)

    def _grow(self, tree: str | None, nest: Nest) -> str | None:
        """The tree with these changes made, or None if nothing is left in it."""
        old = self._tree(tree) if tree else b""
        were = find_entries(old, nest.keys())
        new = change_tree(old, {name: self._grown_entry(were[name], nest[name]) for name in nest})
        if not new or new == old:
            return tree if new else None
        made = self._dir.put(ObjectType.TREE, new)
        self._remember(made, new)
        return made

    def _grown_entry(self, old: Entry | None, change: Nest | bytes | None) -> Entry | None:
        if isinstance(change, bytes):
            return FILE, bytes.fromhex(self._dir.put(ObjectType.BLOB, change))
        folder = old if _is_folder(old) else None
        if change is None:  # a document is gone; a folder of that name is another matter
            return folder
        grown = self._grow(folder[1].hex() if folder else None, change)
        return _folder(grown) if grown or folder else old

    def _refresh_index(self, head: str) -> None:
        """Change git's index by what changed since we last did. What cannot be done now, the next commit does."""
        if self._dir.bare or not self._dir.on_main():
            return
        with suppress(*_BROKEN):
            index, before = self._last_index()
            changes = self._changes(before, self._commit(head).tree)
            index = change_index(index, {path: new for path, _, new in changes})
            data = encode_index(index)
            if self._dir.replace("index", data, patience=0.0):
                self._dir.write(_INDEXED, head.encode())
                self._index = (data, index)

    def _last_index(self) -> tuple[Index, str | None]:
        """Git's index as it is, and the tree it was last made to follow; from nothing where either is lost."""
        raw, was = self._dir.read("index"), self._dir.read(_INDEXED)
        if raw is None or was is None:
            return {}, None
        index = self._index[1] if raw == self._index[0] else decode_index(raw)
        try:
            return (index, self._commit(was.decode()).tree) if index is not None else ({}, None)
        except _BROKEN:
            return {}, None

    # -- looking back -------------------------------------------------------------------------------------------------

    def head(self) -> str | None:
        """The newest revision's id, or None before the first."""
        with self._dir.reading():
            return self._dir.main()

    def log(self, path: str | None = None, *, limit: int = 50) -> list[Revision]:
        """Revisions, newest first; with `path`, those that changed this document or folder.

        Follows first parents, and ends where an older revision cannot be read.
        """
        with self._dir.reading():
            found = islice(self._touching(_parts(path) if path else []), limit)
            return [revision_of(commit, self._changed_paths(before, commit.tree)) for commit, before in found]

    def show(self, revision: str, path: str) -> bytes | None:
        """The bytes of a document in a revision; None where it was not there."""
        with self._dir.reading():
            return self._blob(self._entry(self._resolve(revision).tree, _parts(path)))

    def tree(self, revision: str) -> dict[str, str]:
        """Every document of a revision with the id of its bytes; `blob_id` gives the id of any bytes."""
        with self._dir.reading():
            files = self._changes(None, self._resolve(revision).tree)
            return {path: entry[1].hex() for path, _, entry in files if entry and is_file(entry)}

    def diff(self, old: str | None, new: str, path: str | None = None) -> str:
        """What changed between two revisions (None: from nothing), as a unified diff that is safe to print."""
        with self._dir.reading():
            before = self._resolve(old).tree if old else None
            changes = self._changes(before, self._resolve(new).tree)
            wanted = [change for change in changes if path is None or change[0] == path]
            return "".join(patch_of(name, self._blob(a), self._blob(b)) for name, a, b in wanted)

    def anchors(self) -> list[tuple[int, str]]:
        """The ledger's records that commits name, by number."""
        with self._dir.reading():
            told = (anchor_of(commit.message) for commit in self._line(self._dir.main()))
            return sorted({anchor for anchor in told if anchor is not None})

    def versions(self) -> Iterator[tuple[str, str | None, bytes]]:
        """(revision, path, bytes) of every version a revision brought, the newest first; its message has no path."""
        with self._dir.reading():
            line = list(self._line(self._dir.main()))
            for commit, before in zip(line, [*line[1:], None], strict=True):
                yield commit.id, None, commit.message.encode("utf-8", "replace")
                for path, _, entry in self._changes(before.tree if before else None, commit.tree):
                    if (data := self._blob(entry)) is not None:
                        yield commit.id, path, data

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """Every object of the repository that is a text or a message, reachable or not, with its id."""
        with self._dir.reading():
            yield from self._dir.every((ObjectType.BLOB, ObjectType.COMMIT, ObjectType.TAG))

    def others(self) -> list[str]:
        """The branches and tags that are a person's own: `rewrite` does not carry them over."""
        with self._dir.reading():
            return sorted(name for name in self._dir.refs() if name != BRANCH)

    # -- forgetting ---------------------------------------------------------------------------------------------------

    def rewrite(self, clean: Clean, message: Callable[[str], str], note: Note) -> Rewritten:
        """Puts a history in the place of this one that never held what `clean` takes out of files and `message` out of
        messages. `clean` gives a file's bytes, or None for a file that was never there.

        One line of revisions, oldest to newest; those before the first that changes keep their ids. What else the
        repository held (branches, tags, stashes, the reflog) is gone. Killed at any point, the old or the new history
        stands, and the next opening clears up.
        """
        with self._dir.guard():
            self._dir.must_be_safe()
            line = list(self._line(self._dir.main()))[::-1]
            if line and line[0].parents:
                raise Damaged("a part of history is missing or cannot be read", hint=HINT)
            here = self._dir.path
            with self._beside() as fresh:
                done = _Rewriting(self, fresh, clean, message).run(line, person_of(note))
            _swap(here)  # also where nothing changed: what no revision leads to any more may hold it too
            self._trees.clear()
            self._index = (b"", {})
        self.refresh()
        return done

    @contextmanager
    def _beside(self) -> Iterator[GitDir]:
        """An empty repository beside this one, with a person's remotes."""
        here = self._dir.path
        shutil.rmtree(f"{here}.new", ignore_errors=True)
        lay_out(f"{here}.new", bare=self._dir.bare, exclude=())
        fresh = GitDir(f"{here}.new", fsync=self._fsync)
        try:
            for name in ("config", "info/exclude"):
                if (data := self._dir.read(name)) is not None:
                    fresh.write(name, data)
            yield fresh
        finally:
            fresh.close()

    def _touching(self, parts: Sequence[bytes]) -> Iterator[tuple[Commit, str | None]]:
        """Commits that changed a path, each with the tree before it."""
        line = self._line(self._dir.main())
        commit = next(line, None)
        entry = self._entry(commit.tree, parts) if commit and parts else None
        while commit is not None:
            parent = next(line, None)
            before = self._entry(parent.tree, parts) if parent and parts else None
            if not parts or before != entry:
                yield commit, parent.tree if parent else None
            commit, entry = parent, before

    def _line(self, newest: str | None) -> Iterator[Commit]:
        """A commit and its first parents, as far as they can be read. A newest one that cannot be raises."""
        commit = self._commit(newest) if newest else None
        while commit is not None:
            yield commit
            try:
                commit = self._commit(commit.parents[0]) if commit.parents else None
            except _BROKEN:
                commit = None

    def _resolve(self, revision: str) -> Commit:
        if re.fullmatch(r"[0-9a-f]{40}", revision):
            with suppress(*_BROKEN):
                return self._commit(revision)
        elif re.fullmatch(r"[0-9a-f]{4,39}", revision):
            found = [commit for commit in self._line(self._dir.main()) if commit.id.startswith(revision)]
            if len(found) == 1:
                return found[0]
        raise NoSuchRevision(f"history has no one revision {printable(revision)}", hint="anima history lists them")

    def _commit(self, name: str) -> Commit:
        return decode_commit(name, self._dir.get(name, ObjectType.COMMIT))

    def _tree(self, name: str) -> bytes:
        if name not in self._trees:
            self._remember(name, self._dir.get(name, ObjectType.TREE))
        return self._trees[name]

    def _remember(self, name: str, raw: bytes) -> None:
        if len(self._trees) >= 256:
            self._trees.clear()
        self._trees[name] = raw

    def _entry(self, tree: str, parts: Sequence[bytes]) -> Entry | None:
        here = _folder(tree)
        for part in parts:
            here = find_entry(self._tree(here[1].hex()), part) if here and _is_folder(here) else None
        return here

    def _blob(self, entry: Entry | None) -> bytes | None:
        return self._dir.get(entry[1].hex(), ObjectType.BLOB) if entry and is_file(entry) else None

    def _changed_paths(self, old: str | None, new: str) -> list[str]:
        try:
            return [path for path, _, _ in self._changes(old, new)]
        except _BROKEN:
            return []

    def _changes(self, old: str | None, new: str) -> Iterator[tuple[str, Entry | None, Entry | None]]:
        """What differs between two trees except folders, in order. Equal folders are not even opened."""
        waiting: list[_Change] = [(b"", _folder(old), _folder(new))]
        for _ in range(_MAX_ENTRIES):
            if not waiting:
                return
            path, a, b = waiting.pop()
            if _is_folder(a) or _is_folder(b):
                waiting += self._unfolded(path, a, b)
            a, b = (None if _is_folder(entry) else entry for entry in (a, b))
            if a or b:
                yield path.decode("utf-8", "surrogateescape"), a, b
        raise Damaged("a revision of history names too many files", hint=HINT)

    def _unfolded(self, path: bytes, a: Entry | None, b: Entry | None) -> list[_Change]:
        if path.count(b"/") > _MAX_DEPTH:
            raise Damaged("a revision of history nests its folders too deeply", hint=HINT)
        old, new = (self._tree(entry[1].hex()) if entry and _is_folder(entry) else b"" for entry in (a, b))
        prefix = path + b"/" if path else b""
        return [(prefix + name, before, after) for name, before, after in tree_changes(old, new)][::-1]

    # -- damage -------------------------------------------------------------------------------------------------------

    def check(self, *, bound: int = 100_000) -> list[str]:
        """What is wrong, one sentence each; empty when all is well. Reads about `bound` objects, newest first."""
        with self._dir.guard():
            self._dir.forget()
            if self._dir.unsafe:
                return [self._dir.unsafe]
            return self._check_files() + list(islice(self._check_objects(bound), 20))

    def broken(self) -> tuple[str, str] | None:
        """The first revision, from the newest back, that cannot be read in full, and the object that is to blame.

        Where main is gone and the reflog knows of it, that revision is the newest it knows.
        """
        with self._dir.guard():
            self._dir.forget()
            head = self._dir.main()
            if head is None:
                return next(((tip, tip) for tip in self._dir.tips()), None)
            have, waiting = set[str](), deque([(head, "")])
            while waiting:
                name, near = waiting.popleft()
                if name in have:
                    continue
                have.add(name)
                blame = name
                try:
                    commit = self._commit(name)
                    waiting.extend((parent, commit.tree) for parent in commit.parents)
                    for reached in self._beneath(commit.tree, near, have):
                        blame = reached
                except _BROKEN:
                    return name, blame
        return None

    def _beneath(self, tree: str, near: str, have: set[str]) -> Iterator[str]:
        """Every object under a tree that is not among `have`, which it fills; each is named before it is read.

        `near` is a tree that was read whole: only what differs from it is looked at, as revisions differ in little.
        """
        waiting = [(tree, near, ObjectType.TREE)]
        while waiting:
            name, near, kind = waiting.pop()
            if name in have:
                continue
            yield name
            data = self._dir.get(name, kind)
            have.add(name)
            if kind == ObjectType.TREE:
                self._remember(name, data)
                for _, old, new in tree_changes(self._tree(near) if near else b"", data):
                    if new is not None and new[0] != b"160000":  # a submodule's commit is in another repository
                        beside = old[1].hex() if old and _is_folder(old) and _is_folder(new) else ""
                        waiting.append((new[1].hex(), beside, ObjectType.TREE if _is_folder(new) else ObjectType.BLOB))

    def repair(self, files: Mapping[str, bytes], note: Note) -> list[str]:
        """Make `check` clean, commit `files`, which are all the documents there are now, and say what was done.

        Locks are removed and HEAD goes back to main. If objects are missing or corrupt, the revisions that are whole
        are put together in a new repository (up to the first hole under their old ids); the broken one is kept beside
        it under a new name.
        """
        with self._dir.guard():
            self._dir.forget()
            done = self._remove_locks() + self._restore_head()
            if self._dir.unsafe or next(self._check_objects(1 << 40), None) is not None:
                done.append(self._rebuild(note))
        head = self.head()
        gone = dict.fromkeys(self.tree(head).keys() - files.keys()) if head else {}
        if self.commit({**gone, **files}, note) is None:
            self.refresh()
        return done

    def _check_files(self) -> list[str]:
        found = [f"{name} is there: a git command is at work, or died" for name in self._dir.locks()]
        branch = (self._dir.read("HEAD") or b"").decode("utf-8", "replace").strip()
        if not branch:
            found.append("HEAD is missing or empty")
        elif not branch.startswith("ref: "):
            found.append("HEAD is detached; history goes on on main")
        elif branch != f"ref: {BRANCH}":
            found.append(f"HEAD is on {printable(branch[5:])}; history goes on on main")
        return found

    def _check_objects(self, bound: int) -> Iterator[str]:
        try:
            head = self._dir.main()
        except Damaged as error:
            yield str(error)
            return
        if head is None and self._dir.tips():
            yield "the branch main is missing"
        have, waiting = set[str](), deque([head] if head else [])
        while waiting and len(have) < bound:
            if (name := waiting.popleft()) in have:
                continue
            have.add(name)
            try:
                commit = self._commit(name)
                waiting.extend(commit.parents)
                have.update(self._gather(commit.tree, have))
            except _BROKEN:
                yield f"revision {name[:10]} cannot be read in full"

    def _gather(self, tree: str, have: set[str]) -> _Found:
        """Every object under a tree that is not among `have`. Raises for one that is missing or corrupt."""
        found: _Found = {}
        waiting = [(tree, ObjectType.TREE)]
        while waiting:
            name, kind = waiting.pop()
            if name in have or name in found:
                continue
            found[name] = (kind, self._dir.get(name, kind))
            for entry in decode_tree(found[name][1]).values() if kind == ObjectType.TREE else ():
                if entry[0] != b"160000":  # a submodule's commit is in another repository
                    waiting.append((entry[1].hex(), ObjectType.TREE if _is_folder(entry) else ObjectType.BLOB))
        return found

    def _remove_locks(self) -> list[str]:
        locks = self._dir.locks()
        for name in locks:
            self._dir.remove(name)
        return [f"removed {name}" for name in locks]

    def _restore_head(self) -> list[str]:
        if self._dir.on_main():
            return []
        self._dir.replace("HEAD", f"ref: {BRANCH}\n".encode())
        self._dir.remove(_INDEXED)
        return ["HEAD is on main again"]

    def _rebuild(self, note: Note) -> str:
        """Copy every whole revision into a new repository and put that in the place of this one."""
        here = self._dir.path
        broken = next(name for i in count(1) if not os.path.lexists(name := f"{here}.broken-{i}"))
        with self._beside() as fresh:
            kept, lost = self._copy_into(fresh, note)
        os.rename(here, broken)
        os.rename(f"{here}.new", here)
        return f"kept {kept} revisions, lost {lost}; the broken repository is kept as {os.path.basename(broken)}"

    def _copy_into(self, fresh: GitDir, note: Note) -> tuple[int, int]:
        line = self._readable_line()
        kept, have, head = 0, set[str](), None
        for commit in reversed(line):
            try:
                found = self._gather(commit.tree, have)
            except _BROKEN:
                continue
            for kind, data in found.values():
                fresh.put(kind, data)
            have.update(found)
            head = fresh.put(ObjectType.COMMIT, with_parents(commit.raw, [head] if head else []))
            kept += 1
        if head is not None:
            fresh.point(head, old=None, person=person_of(note))
        return kept, len(line) - kept

    def _readable_line(self) -> list[Commit]:
        """The commits that can be read, newest first; beyond a hole the reflog may know how it went on."""
        line: dict[str, Commit] = {}
        for tip in self._dir.tips() if not self._dir.unsafe else ():
            if tip in line or (line and not next(reversed(line.values())).parents):
                continue
            with suppress(*_BROKEN):
                line.update((commit.id, commit) for commit in self._line(tip))
        return list(line.values())


class _Rewriting:
    """One rewriting. Every tree and file is looked at once, however many revisions hold it."""

    def __init__(self, old: History, fresh: GitDir, clean: Clean, message: Callable[[str], str]) -> None:
        self._old, self._fresh, self._clean, self._message = old, fresh, clean, message
        self._done: dict[tuple[bytes, bytes], Entry | None] = {}  # path and entry → entry

    def run(self, line: Sequence[Commit], person: bytes) -> Rewritten:
        head: str | None = None
        changed = 0
        for commit in line:
            tree = self._folder(b"", bytes.fromhex(commit.tree)) or self._fresh.put(ObjectType.TREE, b"")
            said = self._message(commit.message)
            raw = with_parents(commit.raw, [head] if head else [])
            if tree != commit.tree or said != commit.message:
                raw, changed = with_tree(raw, tree, said if said != commit.message else None), changed + 1
            head = self._fresh.put(ObjectType.COMMIT, raw)
        if head is not None:
            self._fresh.point(head, old=None, person=person)
        return Rewritten(revisions=len(line), changed=changed, head=head)

    def _folder(self, path: bytes, identity: bytes) -> str | None:
        if path.count(b"/") > _MAX_DEPTH:
            raise Damaged("a revision of history nests its folders too deeply", hint=HINT)
        raw = self._old._tree(identity.hex())
        entries = decode_tree(raw)
        new = {name: self._entry(path + b"/" + name if path else name, entry) for name, entry in entries.items()}
        kept = {name: entry for name, entry in new.items() if entry is not None}
        if not kept:
            return None
        return self._fresh.put(ObjectType.TREE, raw if kept == entries else encode_tree(kept))

    def _entry(self, path: bytes, entry: Entry) -> Entry | None:
        key = (path, entry[1])
        if key not in self._done:
            if len(self._done) >= _MAX_ENTRIES:
                raise Damaged("history names too many files to be rewritten", hint=HINT)
            self._done[key] = self._made(path, entry)
        return self._done[key]

    def _made(self, path: bytes, entry: Entry) -> Entry | None:
        if _is_folder(entry):
            return _folder(self._folder(path, entry[1]))
        if not is_file(entry):
            return entry if entry[0] == b"160000" else self._link(entry)
        data = self._clean(path.decode("utf-8", "surrogateescape"), self._old._dir.get(entry[1].hex(), ObjectType.BLOB))
        return None if data is None else (entry[0], bytes.fromhex(self._fresh.put(ObjectType.BLOB, data)))

    def _link(self, entry: Entry) -> Entry:
        self._fresh.put(ObjectType.BLOB, self._old._dir.get(entry[1].hex(), ObjectType.BLOB))
        return entry


def _swap(here: str) -> None:
    """Puts the repository beside this one in its place. Between the two renames there is none: `_finish_swap` goes on."""
    os.rename(here, f"{here}.past")
    try:
        os.rename(f"{here}.new", here)
    except OSError:
        if not os.path.isdir(here):  # else whoever opened it just now went on for us
            raise
    shutil.rmtree(f"{here}.past", ignore_errors=True)  # what stays is found by whoever looks next


def _finish_swap(here: str) -> None:
    """Ends a swap that was interrupted: the new repository is whole by the time the old one steps aside."""
    past = f"{here}.past"
    if not os.path.isdir(past):
        return
    if not os.path.lexists(here):
        os.rename(f"{here}.new" if os.path.isdir(f"{here}.new") else past, here)
    shutil.rmtree(past, ignore_errors=True)


_NO_FILES = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"  # the id of the empty tree


@contextmanager
def _unless_made(git_dir: str) -> Iterator[None]:
    """Two processes may create one history at once. Both write the same; what the second one has left is removed."""
    try:
        yield
    except OSError:
        if not os.path.isdir(git_dir):
            raise
        shutil.rmtree(f"{git_dir}.new", ignore_errors=True)


def _parts(path: str) -> list[bytes]:
    return [part.encode("utf-8", "surrogateescape") for part in path.split("/")]


def _folder(tree: str | None) -> Entry | None:
    return (FOLDER, bytes.fromhex(tree)) if tree else None


def _is_folder(entry: Entry | None) -> bool:
    return entry is not None and entry[0] == FOLDER
