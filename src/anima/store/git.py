"""History: every version of every document, in a git repository that a person can read with plain git.

Promise: nothing of the repository is executed, and no configuration read, the user's and the system's neither. Only a
repository that `create` made is opened. What cannot be read raises Damaged; documents and ledger are the truth.
Not here: when to commit, and which documents (place), and how a repository's files are opened (repository).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import count, islice

from pygit2.enums import ObjectType

from anima import store
from anima.errors import Damaged, NoSuchRevision, Refused, printable
from anima.model import DocPath
from anima.store import Brought, Note, Revision
from anima.store import repository as repo
from anima.store.edits import anchor_of, message_of, patch_of, person_of, revision_of
from anima.store.private import BARE, GIT
from anima.store.repository import Commit, Entry, Repository, is_file, lay_out, mapped
from anima.store.safe_open import held, open_beneath, write_all

_Files = Mapping[tuple[bytes, ...], bytes | Entry | None]  # by the parts of their paths
Clean = Callable[[str, bytes], bytes | None]


class History(Repository, store.History):
    """The history of one home: `open` it or `create` it, and close it when done. Each call stands for itself; what writes
    is called under the home's lock."""

    @classmethod
    def open(cls, git_dir: str) -> History:
        """A history that `create` made. Raises Refused for any other repository, Damaged where there is none."""
        if not os.path.isdir(git_dir):
            raise Damaged("there is no history here", hint=repo.HINT)
        if not os.path.isfile(os.path.join(git_dir, repo.MARK)):
            raise Refused("this git repository is not one of ours, and is not touched", rule="foreign-repository")
        return cls(git_dir)

    @classmethod
    def create(cls, git_dir: str, *, bare: bool, exclude: Iterable[str] = (), vouched: bool = True) -> History:
        """A new, empty history, or the one that is there already. Unless `bare`, it stands in the folder whose history it is,
        keeps an index for a person's `git status`, and tells git to overlook what `exclude` names. Where nobody vouches for
        the folder, what lies beside is not taken for what an interrupted rewriting left: with it would come hooks."""
        with mapped():
            if vouched:
                _finish_swap(git_dir)
            if not os.path.lexists(git_dir):
                fresh = tempfile.mkdtemp(prefix=f"{os.path.basename(git_dir)}.made-", dir=os.path.dirname(git_dir))
                try:
                    lay_out(fresh, bare=bare, exclude=exclude)
                    os.rename(fresh, git_dir)
                except OSError:  # another process made it at the same moment; both write the same
                    shutil.rmtree(fresh, ignore_errors=True)
                    if not os.path.isdir(git_dir):
                        raise
        return cls.open(git_dir)

    def commit(self, files: Mapping[str, bytes | None], note: Note) -> str | None:
        parted, person = _parted({DocPath.parse(path).text: data for path, data in files.items()}), person_of(note)
        with self._writing():
            self._must_be_safe()
            for _ in range(5):
                head = self._main()
                if head is None and self._tips():  # a new beginning would hide all that was before
                    raise Damaged("the branch main is gone", hint=repo.HINT)
                tree = self._commit(head).tree if head else repo.NO_FILES
                grown = self._grow(tree, parted) or repo.NO_FILES
                if files and grown == tree:
                    return None
                if grown == repo.NO_FILES:
                    self._put(ObjectType.TREE, b"")
                message = message_of(note, [path for path, _, _ in self._changes(tree, grown)])
                made = self._put_commit(grown, head, person, message.encode())
                if self._point(made, old=head, person=person):
                    flags = os.O_RDWR | os.O_APPEND | (0 if head else os.O_CREAT | os.O_TRUNC)
                    with suppress(OSError), held(open_beneath(self._fd, repo.PATHS, flags)) as fd:
                        tail = os.pread(fd, 1 << 16, max(0, os.fstat(fd).st_size - (1 << 16)))
                        if _last_of(tail) == (head or ""):  # the list was up to date before
                            write_all(fd, self._paths_line(made, tree, grown))
                    self._refresh_index(made)
                    return made
        raise Damaged("another git command keeps changing the branch main", hint="try again when it has ended")

    def prepare(self, data: bytes) -> None:
        """Keeps bytes that a commit will name: it then finds them there."""
        with self._writing():
            self._put(ObjectType.BLOB, data)

    def refresh(self) -> None:
        """Let git's index follow main where it could not before, because a git command held its lock."""
        with self._writing():
            if (head := self._main()) is not None:
                self._refresh_index(head)

    def take_in(self, revisions: Iterable[Brought]) -> None:
        """Fills an empty history; the same revisions give the same bytes."""
        with self._writing():
            tree = head = None
            for _, person, message, files in revisions:
                tree = self._grow(tree, _parted(files))
                head = self._put_commit(tree or self._put(ObjectType.TREE, b""), head, person, message)
            if head is not None:
                self._write(repo.BRANCH, f"{head}\n".encode())

    def _put_commit(self, tree: str, parent: str | None, person: bytes, message: bytes) -> str:
        above = f"tree {tree}\n" + (f"parent {parent}\n" if parent else "")
        about = b"%sauthor %s\ncommitter %s" % (above.encode(), person, person)
        return self._put(ObjectType.COMMIT, b"%s\n\n%s" % (about, message))

    def _grow(self, tree: str | None, files: _Files) -> str | None:
        """The tree with these changes made, or None if nothing is left in it."""
        entries, beneath = dict(self._tree(tree)), dict[bytes, dict[tuple[bytes, ...], bytes | Entry | None]]()
        for (name, *inner), data in files.items():
            beneath.setdefault(name, {})[tuple(inner)] = data
        for name, inside in beneath.items():
            old, is_named, own = entries.get(name), () in inside, inside.pop((), None)
            folder = old[1].hex() if old and old[0] == repo.FOLDER else None
            if inside and (grown := self._grow(folder, inside)):
                entries[name] = (repo.FOLDER, bytes.fromhex(grown))
            elif own is not None:
                if isinstance(own, bytes):
                    own = (repo.FILE, bytes.fromhex(self._put(ObjectType.BLOB, own)))
                entries[name] = own
            elif inside if folder else is_named:  # a document is gone; a folder of that name is another matter
                entries.pop(name, None)
        if not entries:
            return None
        # Git sorts a folder as if its name ended with a slash.
        ordered = sorted(entries.items(), key=lambda item: item[0] + b"/" if item[1][0] == repo.FOLDER else item[0])
        made = self._put(ObjectType.TREE, b"".join(b"%s %s\0%s" % (mode, each, id) for each, (mode, id) in ordered))
        if len(self._trees) >= 256:
            self._trees.clear()
        self._trees[made] = entries  # the next commit begins with it
        return made

    # -- looking back -------------------------------------------------------------------------------------------------

    def head(self) -> str | None:
        with self._reading():
            return self._main()

    def log(self, path: str | None = None, *, limit: int = 50) -> list[Revision]:
        """Follows first parents, and ends where an older revision cannot be read."""
        with self._reading():
            if (head := self._main()) is None:
                return []
            found = [self._commit(head)][:0]  # a newest one that cannot be read raises
            named = (path or "").encode("utf-8", "surrogateescape").replace(b"\n", b"?")
            wanted = [b"\0%s%s" % (named, end) for end in (b"\0", b"/")]
            lines = [line for line in self._paths(head) if path is None or any(each in line for each in wanted)]
            told = []
            for line in reversed(lines[-limit:] if limit else []):
                try:
                    found.append(self._commit(line[:40].decode()))
                except repo.BROKEN:
                    break
                told.append([each.decode("utf-8", "surrogateescape") for each in line[41:].split(b"\0")[:-1]])
            return [revision_of(c.id, c.person, c.message, paths) for c, paths in zip(found, told, strict=True)]

    def show(self, revision: str, path: str) -> bytes | None:
        with self._reading():
            here: Entry | None = (repo.FOLDER, bytes.fromhex(self._resolve(revision).tree))
            for part in path.split("/"):
                inside = self._tree(here[1].hex()) if here and here[0] == repo.FOLDER else {}
                here = inside.get(part.encode("utf-8", "surrogateescape"))
            return self._blob(here)

    def tree(self, revision: str) -> dict[str, str]:
        """Every document of a revision with the id of its bytes; `blob_id` gives the id of any bytes."""
        with self._reading():
            files = self._changes(None, self._resolve(revision).tree)
            return {path: entry[1].hex() for path, _, entry in files if entry and is_file(entry)}

    def diff(self, old: str | None, new: str, path: str | None = None) -> str:
        """What changed between two revisions (None: from nothing), as a unified diff that is safe to print."""
        with self._reading():
            changes = self._changes(self._resolve(old).tree if old else None, self._resolve(new).tree)
            wanted = [change for change in changes if path is None or change[0] == path]
            return "".join(patch_of(name, self._blob(a), self._blob(b)) for name, a, b in wanted)

    def anchors(self) -> list[tuple[int, str]]:
        """The ledger's records that commits name, by number; of a broken history, those that can still be read."""
        with self._reading():
            told = (anchor_of(commit.message) for commit in self._readable_line())
            return sorted({anchor for anchor in told if anchor is not None})

    def revisions(self) -> Iterator[Brought]:
        with self._reading():
            before: str | None = None
            for commit in list(self._line(self._main()))[::-1]:
                changes = self._changes(before, commit.tree)
                files = {path: self._blob(entry) for path, _, entry in changes if entry is None or is_file(entry)}
                yield commit.id, commit.person, commit.raw.partition(b"\n\n")[2], files
                before = commit.tree

    def objects(self) -> Iterator[tuple[str, bytes]]:
        with self._reading():
            for name in list(self._odb):
                kind, data = self._any(str(name))
                if kind != ObjectType.TREE:
                    yield str(name), data

    def others(self) -> list[str]:
        with self._reading():
            packed = re.findall(rb"^[0-9a-f]{40} (\S+)$", self._read("packed-refs") or b"", re.MULTILINE)
            names = {name.decode("utf-8", "replace") for name in packed}
            for folder, _, files in os.walk(f"{self._path}/refs"):
                names |= {f"{folder[len(self._path) + 1 :]}/{file}" for file in files}
            return sorted(names - {repo.BRANCH})

    def _resolve(self, revision: str) -> Commit:
        if re.fullmatch(r"[0-9a-f]{40}", revision):
            with suppress(*repo.BROKEN):
                return self._commit(revision)
        elif re.fullmatch(r"[0-9a-f]{4,39}", revision):
            found = [commit for commit in self._line(self._main()) if commit.id.startswith(revision)]
            if len(found) == 1:
                return found[0]
        raise NoSuchRevision(f"history has no one revision {printable(revision)}", hint="anima history lists them")

    # -- which commit changed what: a file of one line a commit, the oldest first, made again whenever it does not fit ----

    def _paths(self, head: str) -> list[bytes]:
        raw = self._read(repo.PATHS) or b""
        last = _last_of(raw)
        if last == head:
            return raw.splitlines()
        line, fresh, joins = self._line(head), list[bytes](), False
        commit = next(line, None)
        while commit is not None and not (joins := commit.id == last):
            parent = next(line, None)
            fresh.append(self._paths_line(commit.id, parent.tree if parent else None, commit.tree))
            commit = parent
        raw = (raw if joins else b"") + b"".join(reversed(fresh))
        with suppress(OSError):
            own = f"{repo.PATHS}.{os.getpid()}"
            self._write(own, raw)
            os.rename(own, repo.PATHS, src_dir_fd=self._fd, dst_dir_fd=self._fd)
        return raw.splitlines()

    def _paths_line(self, name: str, before: str | None, after: str) -> bytes:
        try:
            paths = "".join(f"{path}\0" for path, _, _ in self._changes(before, after)).replace("\n", "?")
        except repo.BROKEN:
            paths = ""
        return b"%s\0%s\n" % (name.encode(), paths.encode("utf-8", "surrogateescape"))

    def rewrite(self, clean: Clean, message: Callable[[str], str], note: Note) -> None:
        """One line of revisions; those before the first that changes keep their ids. What else the repository held (branches,
        tags, stashes, the reflog) is gone. Killed at any point, the old or the new history stands."""
        with self._writing():
            self._must_be_safe()
            line = list(self._line(self._main()))[::-1]
            if line and line[0].parent:
                raise Damaged("a part of history is missing or cannot be read", hint=repo.HINT)
            with self._beside(note, clean) as add:
                for commit in line:
                    add(commit, message(commit.message))
            # Also where nothing changed: what no revision leads to any more may hold it too.
            _swap(self._path, past := f"{self._path}.past")
            shutil.rmtree(past, ignore_errors=True)  # what stays is found by whoever looks next
        self.refresh()

    @contextmanager
    def _beside(self, note: Note, clean: Clean | None = None) -> Iterator[Callable[[Commit, str], None]]:
        """Gives what puts one more revision, the oldest first, into an empty repository beside this one, with a person's
        remotes. One that cannot be read in full raises, and nothing leads to what was read of it."""
        place = f"{self._path}.new"
        shutil.rmtree(place, ignore_errors=True)
        lay_out(place, bare=self._bare, exclude=())
        was: str | None = None  # the tree of the last one here
        tree: str | None = None  # and there
        head: str | None = None

        def taken(path: str, entry: Entry | None) -> Entry | None:
            if entry is None or entry[0] == repo.ELSEWHERE:
                return entry
            data: bytes | None = self._get(entry[1].hex(), ObjectType.BLOB)
            if clean and is_file(entry) and data is not None:
                data = clean(path, data)
            return None if data is None else (entry[0], bytes.fromhex(fresh._put(ObjectType.BLOB, data)))

        def add(commit: Commit, message: str) -> None:
            nonlocal was, tree, head
            changed = _parted({path: taken(path, entry) for path, _, entry in self._changes(was, commit.tree)})
            was, tree = commit.tree, fresh._grow(tree, changed)
            about, _, said = commit.raw.partition(b"\n\n")
            root = tree or fresh._put(ObjectType.TREE, b"")
            if root != commit.tree or message != commit.message:  # a signature would be none any more
                about = re.sub(rb"\ngpgsig.*(?:\n .*)*", b"", about)
            rest = re.sub(rb"\Atree .*(?:\nparent .*)*", b"", about)
            parent = b"\nparent %s" % head.encode() if head else b""
            said = message.encode() if message != commit.message else said
            head = fresh._put(ObjectType.COMMIT, b"tree %s%s%s\n\n%s" % (root.encode(), parent, rest, said))

        with closing(History(place)) as fresh:
            for name in ("config", "info/exclude"):
                with suppress(OSError):
                    if (data := self._read(name)) is not None:
                        fresh._write(name, data)
            yield add
            if head is not None:
                fresh._point(head, old=None, person=person_of(note))

    # -- damage -------------------------------------------------------------------------------------------------------

    def check(self) -> list[str]:
        return [why for _, why in self.problems()]

    def problems(self) -> list[tuple[str, str]]:
        """What is wrong: whether git is `busy`, HEAD is on another branch (`head`) or something is `damaged`, and a sentence."""
        with self._mutex, mapped():  # no lock is taken: looking changes nothing
            self._bind()
            self._forget()
            found = []
            for name, lock in ((name, self._stat(name)) for name in repo.GIT_LOCKS):
                if lock and time.time() - lock.st_mtime > 60.0:  # a git command of a person holds it for less
                    found.append(("damaged", f"{name} was left by a git command that died"))
                elif lock:
                    found.append(("busy", f"{name} is there: a git command is at work, or died just now"))
            if self._strange:
                return [*found, ("damaged", f"{printable(self._strange)} is not what must stand there")]
            return found + self._head_problem() + [("damaged", why) for why in islice(self._unreadable(), 20)]

    def _head_problem(self) -> list[tuple[str, str]]:
        raw = (self._read("HEAD") or b"").decode("utf-8", "replace").strip()
        if raw == f"ref: {repo.BRANCH}":
            return []
        if re.fullmatch(r"[0-9a-f]{40}", raw):
            return [("head", "HEAD is detached; history goes on on main")]
        if re.fullmatch(r"ref: refs/heads/[!-~]+", raw):
            return [("head", f"HEAD is on {raw.removeprefix('ref: refs/heads/')}; history goes on on main")]
        return [("damaged", "HEAD names no branch" if raw else "HEAD is missing")]

    def _unreadable(self) -> Iterator[str]:
        """A sentence for each revision, from the newest back, that cannot be read in full."""
        try:
            name = self._main()
        except Damaged as error:
            yield str(error)
            return
        if name is None and self._tips():
            yield "the branch main is missing"
        while name:
            try:
                commit = self._commit(name)
            except repo.BROKEN:
                yield f"revision {name[:10]} cannot be read in full"
                return
            if not self._is_whole(commit):
                yield f"revision {name[:10]} cannot be read in full"
            name = commit.parent

    def _is_whole(self, commit: Commit) -> bool:
        """Whether all that a revision brought can be read; the rest its parent brought, if that can be read."""
        for alone in (False, True):
            with suppress(*repo.BROKEN):
                near = None if alone or not commit.parent else self._commit(commit.parent).tree
                for _, _, entry in self._changes(near, commit.tree):
                    if entry and entry[0] != repo.ELSEWHERE:
                        self._get(entry[1].hex(), ObjectType.BLOB)
                return True
        return False

    def repair(self, files: Mapping[str, bytes], note: Note) -> list[str]:
        """Makes `check` clean, commits `files`, which are all the documents there are now, and says what was done. If objects
        are missing or corrupt, the revisions that are whole are put together in a new repository (up to the first hole under
        their old ids); the broken one is kept beside it under a new name."""
        with self._writing():
            done = []
            while self._strange:
                os.rename(self._strange, broken := self._free_name(), src_dir_fd=self._fd)
                done.append(f"{printable(self._strange)} is kept as {os.path.basename(broken)}")
                self._strange = self._prepare()
            self._forget()
            for name in filter(self._stat, repo.GIT_LOCKS):
                self._remove(name)
                done.append(f"removed {name}")
            if next(self._unreadable(), None):
                broken, line, kept = self._free_name(), self._readable_line(), 0
                with self._beside(note) as add:
                    for commit in reversed(line):
                        with suppress(*repo.BROKEN):
                            add(commit, commit.message)
                            kept += 1
                _swap(self._path, broken)
                where, lost = os.path.basename(broken), len(line) - kept
                done.append(f"kept {kept} revisions, lost {lost}; the broken repository is kept as {where}")
            elif self._head_problem():
                self._replace("HEAD", f"ref: {repo.BRANCH}\n".encode())
                self._remove(repo.FOLLOWED)
                done.append("HEAD is on main again")
        head = self.head()
        gone = dict.fromkeys(self.tree(head).keys() - files.keys()) if head else {}
        if self.commit({**gone, **files}, note) is None:
            self.refresh()
        return done

    def _free_name(self) -> str:
        return next(name for i in count(1) if not os.path.lexists(name := f"{self._path}.broken-{i}"))

    def _readable_line(self) -> list[Commit]:
        """The commits that can be read, newest first; beyond a hole the reflog may know how it went on."""
        line: dict[str, Commit] = {}
        for tip in self._tips():
            if tip not in line and not (line and not next(reversed(line.values())).parent):
                with suppress(*repo.BROKEN):
                    line.update((commit.id, commit) for commit in self._line(tip))
        return list(line.values())


def rewrite_staged(place: str, clean: Clean, message: Callable[[str], str], note: Note) -> None:
    """Rewrites the history among files that are staged, if there is one, and makes all of them durable."""
    for repository in (f"{place}/{name}" for name in (GIT, BARE)):
        if os.path.isfile(f"{repository}/{repo.MARK}"):
            with closing(History.open(repository)) as history:
                history.rewrite(clean, message, note)
    os.sync()


def _swap(here: str, past: str) -> None:
    """Puts the repository beside this one in its place. Between the two renames there is none: `_finish_swap` goes on."""
    os.rename(here, past)
    try:
        os.rename(f"{here}.new", here)
    except OSError:
        if not os.path.isdir(here):  # else whoever opened it just now went on for us
            raise


def _finish_swap(here: str) -> None:
    """Ends a swap, or a repair, that was interrupted: the new repository is whole by the time the old one steps aside, and
    what is not whole yet has no branch."""
    past, new = f"{here}.past", f"{here}.new"
    there = [place for place in (new, past) if os.path.isdir(place) and not os.path.islink(place)]
    is_made = new in there and os.path.isfile(f"{new}/{repo.BRANCH}")
    if not os.path.lexists(here) and (is_made or past in there):
        os.rename(there[0], here)
    if past in there:
        shutil.rmtree(past, ignore_errors=True)


def _parted(files: Mapping[str, bytes | Entry | None]) -> _Files:
    return {tuple(path.encode("utf-8", "surrogateescape").split(b"/")): data for path, data in files.items()}


def _last_of(paths: bytes) -> str:
    """The commit that the list of paths ends with; "" where it is empty or was cut."""
    last = paths[paths.rfind(b"\n", 0, -1) + 1 :] if paths.endswith(b"\n") else b""
    return last[:40].decode("ascii", "replace")
