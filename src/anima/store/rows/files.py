"""The files of a home as rows: documents for people, and small things of the machine's own beneath `.anima/`.

Promise: bytes as they were given; a name is found in any case or Unicode form, but for names beneath `.anima/`. A file is
its body and the lines after it, so adding to one writes nothing anew. A folder is there while a file is in it.
What would grow beyond a tenant's quota is refused before anything of it is written; what makes less never is.
Not here: the ledger and history, which have tables of their own, whether a document may change, quotas being set (tenants).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from anima.errors import BadPath, BadText, Damaged, NoSuchDocument, OverQuota
from anima.model import MAX_BYTES, DocPath, Document, Entry, fold
from anima.store import Documents, OpenFile, text_of
from anima.store.folder import MACHINE
from anima.store.rows.transaction import HomeRows

_INSERT = """
    insert into anima.file values(%(tenant)s, %(home)s, %(key)s, %(path)s, anima.moment(), %(version)s,
        %(is_document)s, %(size)s, %(ended)s, %(mode)s, coalesce(%(time)s, clock_timestamp()), %(body)s)
    on conflict(tenant, home, key)
"""
_NEW = f"{_INSERT} do nothing"
_PUT = f"""
    {_INSERT} do update set path = excluded.path, was = excluded.was,
        version = case when excluded.is_document then excluded.version else file.version + 1 end,
        is_document = excluded.is_document, size = excluded.size, ended = excluded.ended, mode = excluded.mode,
        time = excluded.time, body = excluded.body
"""
_BLOCK, _ALL = 1 << 20, 1 << 31
_AGAIN = 5.0  # seconds for which no quota stays no quota
_QUOTAS = """
    select kind, most, anima.used(kind) from anima.quota where tenant = %(tenant)s and kind in ('bytes', 'documents')
"""


def key_of(path: str) -> str:
    """What a file is found by."""
    return path if path.startswith(f"{MACHINE}/") else fold(path)


class Found(NamedTuple):
    """A file's row without its bytes."""

    path: str
    size: int
    mode: int
    time: datetime
    version: str


class FileRows:
    """Every file of one home. What writes is called within a transaction."""

    def __init__(self, rows: HomeRows) -> None:
        self._rows, self.revision = rows, rows.revision

    def look(self, path: str) -> Found | None:
        sql = "select path, size, mode, time, was || '.' || version from anima.file where [own] and key = %(key)s"
        found = self._rows.one(sql, key=key_of(path))
        return Found(*found) if found else None

    def content(self, path: str) -> bytes | None:
        found = self._rows.one("select [content] from anima.file where [own] and key = %(key)s", key=key_of(path))
        return found[0] if found else None

    def whole(self, path: str, most: int) -> tuple[Found, bytes] | None:
        """A file's row and its bytes, or none of them where there are more than `most`."""
        sql = """
            select path, size, mode, time, was || '.' || version, case when size <= %(most)s then [content] else '' end
            from anima.file where [own] and key = %(key)s
        """
        found = self._rows.one(sql, key=key_of(path), most=most)
        return (Found(*found[:5]), found[5]) if found else None

    def contents(self, paths: Iterable[str]) -> dict[str, tuple[str, bytes]]:
        """(path as it is spelt, bytes) of those of some files that are there, by key."""
        sql = "select key, path, [content] from anima.file where [own] and key = any(%(keys)s)"
        return {row[0]: (row[1], row[2]) for row in self._rows.ask(sql, keys=[key_of(path) for path in paths])}

    def beneath(self, folder: str, *, limit: int | None = None) -> list[Found]:
        """Every file beneath a folder, in order of path."""
        low = key_of(f"{folder}/") if folder else ""
        sql = """
            select path, size, mode, time, was || '.' || version from anima.file
            where [own] and key >= %(low)s and (%(high)s::text is null or key < %(high)s) order by path limit %(limit)s
        """
        high = f"{low[:-1]}0" if folder else None  # what comes after a slash
        return [Found(*row) for row in self._rows.ask(sql, low=low, high=high, limit=limit or _ALL)]

    def put(
        self,
        path: str,
        data: bytes,
        *,
        version: int | None = None,
        mode: int = 0o600,
        time: datetime | None = None,
        only_new: bool = False,
    ) -> None:
        """Puts a whole file in its place, a document with the home's new version; with `only_new`, where none is."""
        key, ended = key_of(path), not data or data.endswith(b"\n")
        row = {"path": path, "version": version or 0, "is_document": version is not None, "size": len(data)}
        if not only_new:
            self._rows.tell("delete from anima.line where [own] and key = %(key)s", key=key)
        self._rows.tell(_NEW if only_new else _PUT, key=key, ended=ended, mode=mode, time=time, body=data, **row)

    def add(self, path: str, at: int, data: bytes, *, version: int | None = None) -> None:
        """Adds bytes at the end, which stands at `at`."""
        key = key_of(path)
        self._rows.tell(
            "insert into anima.line values(%(tenant)s, %(home)s, %(key)s, %(at)s, %(data)s)", key=key, at=at, data=data
        )
        self._rows.tell(
            """update anima.file set size = %(size)s, version = coalesce(%(version)s, version + 1), ended = %(ended)s,
            time = clock_timestamp() where [own] and key = %(key)s""",
            key=key,
            size=at + len(data),
            version=version,
            ended=data.endswith(b"\n"),
        )

    def remove(self, path: str) -> None:
        self._rows.tell("delete from anima.line where [own] and key = %(key)s", key=key_of(path))
        self._rows.tell("delete from anima.file where [own] and key = %(key)s", key=key_of(path))

    def read(self, path: str, start: int, end: int) -> bytes:
        """The bytes of a range, fewer where there are no more."""
        sql = """
            select 0, 0, substr(body, %(start)s::int + 1, %(span)s::int) from anima.file
                where [own] and key = %(key)s
            union all select 1, at, data from anima.line where [own] and key = %(key)s and at < %(end)s
                and at >= coalesce((select max(at) from anima.line where [own] and key = %(key)s and at <= %(start)s), 0)
            order by 1, 2
        """
        found = self._rows.ask(sql, key=key_of(path), start=start, end=end, span=max(0, end - start))
        return b"".join(data[max(0, start - at) : end - at] if is_line else data or b"" for is_line, at, data in found)


class RowDocuments(Documents):
    """The documents of one home in the database. `name` and `identity` are the home's."""

    def __init__(self, files: FileRows, *, name: str, identity: str) -> None:
        self._files, self.name, self.identity, self.revision = files, name, identity, files.revision

    def read(self, path: DocPath) -> Document:
        found, data = self._found(path, MAX_BYTES)
        text, digest = text_of(path, data), hashlib.sha256(data).hexdigest()
        return Document(path=DocPath.parse(found.path), text=text, digest=digest, time=found.time)

    def raw(self, path: DocPath, *, most: int) -> bytes:
        return self._found(path, most)[1]

    def _found(self, path: DocPath, most: int) -> tuple[Found, bytes]:
        found = self._files.whole(path.key, most)
        if found is None:
            if self._files.beneath(path.key, limit=1):
                raise BadPath(path.text, "this is a folder, not a document")
            raise NoSuchDocument(path.text)
        if found[0].size > most:
            why = f"it has {found[0].size:,} bytes, and at most {most:,} are read"
            raise BadText(path.text, why, hint="move what need not be remembered out of it, or split it")
        return found

    def exists(self, path: DocPath) -> bool:
        return self._files.look(path.key) is not None

    def actual(self, path: DocPath) -> str | None:
        if (found := self._files.look(path.key)) is not None:
            return found.path
        inside = self._files.beneath(path.key, limit=1)
        return "/".join(inside[0].path.split("/")[: len(path.parts)]) if inside else None

    def version(self, path: str) -> str | None:
        found = self._files.look(path)
        return found.version if found and found.path == path else None

    def versions(self) -> dict[str, str]:
        return {found.path: found.version for found in self._files.beneath("")}

    def kind_of(self, path: str) -> str | None:
        found = self._files.look(path)
        if found is not None:
            return "file" if found.path == path else None
        return "folder" if self._files.beneath(path, limit=1) else None

    def make_folder(self, folder: str) -> None:
        """Nothing: a folder is there with its first file."""

    def strange(self, folder: str) -> tuple[tuple[str, str], ...]:
        return ()

    def raw_names(self, folder: str) -> Sequence[str]:
        depth = folder.count("/") + 1 if folder else 0
        return list(dict.fromkeys(found.path.split("/")[depth] for found in self._files.beneath(folder)))

    def list(self, folder: str = "") -> tuple[Entry, ...]:
        path = DocPath.parse(folder.rstrip("/")) if folder else None
        found = self._files.beneath(path.key if path else "")
        if path is not None and not found:
            if self.exists(path):
                raise BadPath(folder, "this is a file, not a folder")
            raise NoSuchDocument(path.text)
        depth, entries = len(path.parts) + 1 if path else 1, dict[str, Entry]()
        for file in found:
            parts = file.path.split("/")
            if any(part.startswith(".") for part in parts[:depth]):
                continue
            at, is_folder = "/".join(parts[:depth]), len(parts) > depth
            time = max(entries[at].time, file.time) if at in entries else file.time
            entries[at] = Entry(path=at, is_folder=is_folder, size=0 if is_folder else file.size, time=time)
        return tuple(sorted(entries.values(), key=lambda entry: (not entry.is_folder, entry.path)))

    def list_all(self, folder: str = "") -> Iterator[Entry]:
        if folder:
            self.list(folder)  # says what is wrong with it
        for file in self._files.beneath(DocPath.parse(folder.rstrip("/")).key if folder else ""):
            if not any(part.startswith(".") for part in file.path.split("/")):
                yield Entry(path=file.path, is_folder=False, size=file.size, time=file.time)

    def bytes_of(self, path: str) -> bytes | None:
        found = self._files.whole(path, MAX_BYTES)
        if found is not None and found[0].size > MAX_BYTES:
            raise Damaged(f"it has {found[0].size:,} bytes, which is more than anima looks through")
        return found[1] if found and found[0].path == path else None

    def opened(self, path: str) -> OpenRow:
        return OpenRow(self._files, path)


class OpenRow(OpenFile):
    """A file as it stood when it was opened."""

    def __init__(self, files: FileRows, path: str) -> None:
        found = files.look(path)
        if found is None:
            raise BadText(path, "it cannot be read (there is no such file)")
        self._files, self._path, self.size, self.mode = files, path, found.size, found.mode

    def close(self) -> None:
        """Nothing is held."""

    def pieces(self) -> Iterator[bytes]:
        for start in range(0, self.size, _BLOCK):
            yield self._files.read(self._path, start, min(start + _BLOCK, self.size))


class RowState:
    """Small things of the machine's own. `special` are names that are kept elsewhere: (bytes, version) of each."""

    def __init__(self, rows: HomeRows, files: FileRows, special: Callable[[str], tuple[bytes, str] | None]) -> None:
        self._rows, self._files, self._special = rows, files, special

    def get(self, name: str) -> bytes | None:
        if (found := self._special(name)) is not None:
            return found[0]
        return self._files.content(f"{MACHINE}/{name}")

    def version(self, name: str) -> str | None:
        if (found := self._special(name)) is not None:
            return found[1]
        there = self._files.look(f"{MACHINE}/{name}")
        return there.version if there else None

    def put(self, name: str, data: bytes, *, only_new: bool = False) -> None:
        with self._rows.transaction():
            if not (only_new and self._files.look(f"{MACHINE}/{name}") is not None):
                self._files.put(f"{MACHINE}/{name}", data, only_new=only_new)

    def remove(self, name: str) -> bool:
        with self._rows.transaction():
            was_there = self._files.look(f"{MACHINE}/{name}") is not None
            self._files.remove(f"{MACHINE}/{name}")
        return was_there

    def names(self, folder: str) -> list[str]:
        inside = (
            found.path.removeprefix(f"{MACHINE}/{folder}/") for found in self._files.beneath(f"{MACHINE}/{folder}")
        )
        return [name for name in inside if "/" not in name and not name.startswith(".")]


class Room:
    """How much a tenant may still keep, as a home of theirs sees it. One without a quota is asked about once in a while
    and costs nothing else."""

    def __init__(self, rows: HomeRows) -> None:
        self._rows, self._free = rows, 0.0 if rows.engine.needs_tenant else float("inf")

    def need(self, *, bytes: int, documents: int = 0, slack: float = 1.0) -> None:
        """Raises OverQuota where so much more would be too much; with `slack`, beyond so many times the quota."""
        if (bytes <= 0 and documents <= 0) or time.monotonic() < self._free:
            return
        wanted, quotas = {"bytes": bytes, "documents": documents}, self._rows.ask(_QUOTAS)
        for kind, most, used in quotas:
            if wanted[kind] > 0 and used + wanted[kind] > most * slack:
                raise OverQuota(kind, used=int(used), most=int(most))
        if not quotas:
            self._free = time.monotonic() + _AGAIN
