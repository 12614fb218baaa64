"""Every version of every document of a home, in the database.

Promise: the same answers as a git repository gives, without one; a version is what differs from the one before it, and
every twentieth is whole. A revision's id is the hash of the one before, of what it says and of what it holds, or the id it
had in git. Rewriting it is one transaction. Not here: what a revision says of itself (edits).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import NamedTuple

from anima.errors import NoSuchRevision
from anima.store import Brought, History, Note, Revision, blob_id
from anima.store.edits import anchor_of, common, message_of, patch_of, person_of, revision_of
from anima.store.rows.transaction import HomeRows

WHOLE = 20  # every so many versions of a document one is whole


class _Version(NamedTuple):
    """A row: whole where `start` is None; of a document that is gone, `blob` is None."""

    path: str
    n: int
    blob: str | None
    start: int | None
    rest: int | None
    body: bytes


class RowHistory(History):
    """The history of one home. What writes is called under the home's lock."""

    def __init__(self, rows: HomeRows) -> None:
        self._rows = rows

    def head(self) -> str | None:
        return self._last()[1] or None

    def _last(self) -> tuple[int, str]:
        found = self._rows.one("select n, id from anima.revision where [own] order by n desc limit 1")
        return (found[0], found[1]) if found else (0, "")

    def log(self, path: str | None = None, *, limit: int = 50) -> list[Revision]:
        found: dict[str, tuple[bytes, bytes, list[str]]] = {}
        for id, person, message, changed in self._rows.ask("revisions_of", path=path, limit=limit):
            found.setdefault(id, (person, message, []))[2].extend([changed] if changed else [])
        told = ((id, who, said.decode("utf-8", "replace"), paths) for id, (who, said, paths) in found.items())
        return [revision_of(*each) for each in told]

    def show(self, revision: str, path: str) -> bytes | None:
        return self._texts(self._number(revision), [path]).get(path)

    def tree(self, revision: str) -> Mapping[str, str]:
        return dict(self._rows.ask("tree", n=self._number(revision)))

    def diff(self, old: str | None, new: str, path: str | None = None) -> str:
        before, after = self.tree(old) if old else {}, self.tree(new)
        changed = sorted(p for p in {*before, *after} if path in (None, p) and before.get(p) != after.get(p))
        olds = self._texts(self._number(old), changed) if old else {}
        news = self._texts(self._number(new), changed)
        return "".join(patch_of(p, olds.get(p), news.get(p)) for p in changed)

    def anchors(self) -> list[tuple[int, str]]:
        rows = self._rows.ask("select message from anima.revision where [own] order by n")
        found = (anchor_of(row[0].decode("utf-8", "replace")) for row in rows)
        return [anchor for anchor in found if anchor]

    def others(self) -> Sequence[str]:
        return ()

    def _number(self, revision: str) -> int:
        found = self._rows.ask("revision_named", id=revision) if revision else []
        if len(found) != 1:
            raise NoSuchRevision(f"history has no revision {revision}")
        return int(found[0][0])

    def _texts(self, n: int, paths: Iterable[str]) -> dict[str, bytes]:
        return {path: text for path, (text, _) in self._standing(n, list(paths)).items() if text is not None}

    def _standing(self, n: int, paths: Sequence[str]) -> dict[str, tuple[bytes | None, int]]:
        """Each document at a revision, None where it is gone, and how many versions before it one is whole."""
        chains: dict[str, list[_Version]] = {}
        for row in self._rows.ask("versions_back", paths=paths, n=n, most=WHOLE) if paths else ():
            found = _Version(*row)
            chain = chains.setdefault(found.path, [])
            if not chain or chain[-1].start is not None:
                chain.append(found)
        return {path: (reduce(_after, chain[::-1], None), len(chain) - 1) for path, chain in chains.items()}

    def commit(self, files: Mapping[str, bytes | None], note: Note) -> str | None:
        n, before = self._last()
        standing = self._standing(n, list(files)) if n else {}
        changed = {path: data for path, data in files.items() if standing.get(path, (None, 0))[0] != data}
        if files and not changed:
            return None
        message, versions = message_of(note, sorted(changed)), list[_Version]()
        for path, data in sorted(changed.items()):
            old, since = standing.get(path, (None, 0))
            versions.append(_version(path, n + 1, old if since + 1 < WHOLE else None, data))
        return self._add(n + 1, before, person_of(note), message.encode(), versions)

    def _add(
        self, n: int, before: str, person: bytes, message: bytes, versions: Sequence[_Version], id: str | None = None
    ) -> str:
        held = "\n".join(f"{found.blob} {found.path}" for found in versions)
        id = id or hashlib.sha1(b"\0".join([before.encode(), person, message, held.encode()])).hexdigest()
        self._rows.tell("revision_new", n=n, id=id, person=person, message=message)
        self._rows.tell_all("version_new", [version._asdict() for version in versions])
        return id

    def take_in(self, revisions: Iterable[Brought]) -> None:
        self._rows.tell("delete from anima.version where [own]")
        self._rows.tell("delete from anima.revision where [own]")
        held: dict[str, tuple[bytes | None, int]] = {}
        before = ""
        for n, (id, person, message, files) in enumerate(revisions, 1):
            versions = []
            for path, data in sorted(files.items()):
                old, since = held.get(path, (None, 0))
                versions.append(_version(path, n, old if since + 1 < WHOLE else None, data))
                held[path] = (data, 0 if versions[-1].start is None else since + 1)
            before = self._add(n, before, person, message, versions, id)

    def revisions(self) -> Iterator[Brought]:
        held: dict[str, bytes | None] = {}
        for n, id, person, message in self._rows.ask("revisions"):
            files: dict[str, bytes | None] = {}
            for row in self._rows.ask("versions_of", n=n):
                found = _Version(*row)
                files[found.path] = held[found.path] = _after(held.get(found.path), found)
            yield id, person, message, files

    def objects(self) -> Iterator[tuple[str, bytes]]:
        for id, path, data in self.versions():
            yield (id if path is None else blob_id(data)), data

    def rewrite(self, clean: Callable[[str, bytes], bytes | None], message: Callable[[str], str], note: Note) -> None:
        """In the caller's transaction; a last revision says so."""
        with self._rows.transaction():
            kept: list[Brought] = []
            held: dict[str, bytes | None] = {}
            for _, person, said, files in self.revisions():
                new = {path: None if data is None else clean(path, data) for path, data in files.items()}
                changed = {path: data for path, data in new.items() if held.get(path) != data}
                held |= changed
                kept.append(("", person, message(said.decode("utf-8", "replace")).encode(), changed))
            self.take_in(kept)
            self.commit({}, note)

    def check(self) -> list[str]:
        held: dict[str, bytes | None] = {}
        wrong = [f"revision {row[0]} is gone" for row in self._rows.ask("revisions_gone")]
        for row in self._rows.ask("versions"):
            found = _Version(*row)
            held[found.path] = data = _after(held.get(found.path), found)
            if (None if data is None else blob_id(data)) != found.blob:
                wrong.append(f"{found.path} in revision {found.n} is not what was written")
        return wrong


def _version(path: str, n: int, old: bytes | None, new: bytes | None) -> _Version:
    """A version as it is kept: what differs from the one before, where that is less than half of it."""
    if new is None:
        return _Version(path, n, None, None, None, b"")
    if old is not None:
        start = common(old, new)
        rest = common(old[start:][::-1], new[start:][::-1])
        if 2 * (start + rest) > len(new):
            return _Version(path, n, blob_id(new), start, rest, new[start : len(new) - rest])
    return _Version(path, n, blob_id(new), None, None, new)


def _after(old: bytes | None, found: _Version) -> bytes | None:
    if found.blob is None or found.start is None or found.rest is None:
        return None if found.blob is None else found.body
    old = old or b""
    return old[: found.start] + found.body + old[len(old) - found.rest :]
