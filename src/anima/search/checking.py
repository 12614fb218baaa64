"""Whether a SQLite file of ours is sound, by looking at its bytes and asking SQLite; nothing is changed by it.

Promise: says what is wrong with a name of the table of damages, never raises for what a file holds, and never waits:
where somebody writes to the file just now, that is said and nothing is looked at. Not here: beginning it again (sqlite).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from anima.search.tables import FORMAT

MAGIC = b"SQLite format 3\x00"
_WAL_MAGIC = (0x377F0682, 0x377F0683)
_BLOCK = 1 << 20
Texts = Callable[[str, str], str | None]
"""(path, mark) -> the text that the index should hold of a document, or None when it is late or need not be compared."""


class Unsound(NamedTuple):
    """What is wrong: the end of a row's name (`truncated` for `index-truncated`), and a sentence."""

    name: str
    why: str


def check(path: str, *, lock: str, texts: Texts | None = None, version: int = FORMAT) -> list[Unsound]:
    """What is wrong with an index file; nothing when it is not there."""
    try:
        found = os.lstat(path)
    except OSError:
        return _without_file(path)
    if not stat.S_ISREG(found.st_mode):
        return [Unsound("not-a-file", "a folder, link or pipe stands in its place")]
    with _quiet(lock) as free:
        if not free:
            return []
        beside = list(_beside(path))
        if any(each.name == "shm-missing" for each in beside):
            return [*_mode(found), *beside]  # SQLite would make it, only to look
        return [*_mode(found), *beside, *_file(path, found.st_size, texts, version)]


def _without_file(path: str) -> list[Unsound]:
    left = [end for end in ("-wal", "-shm") if os.path.lexists(path + end)]
    return [Unsound("wal-missing", "its log is left without it")] if left else []


def _mode(found: os.stat_result) -> Iterator[Unsound]:
    if not stat.S_IMODE(found.st_mode) & stat.S_IWUSR:
        yield Unsound("read-only", f"its mode is {stat.S_IMODE(found.st_mode):04o}")


def _beside(path: str) -> Iterator[Unsound]:
    """What the log and the shared memory tell. Both go when the last process lets the file go."""
    log, shared = _size(path + "-wal"), _size(path + "-shm")
    if log is None and shared is not None:
        yield Unsound("wal-missing", "its shared memory is left without its log")
    if log and not _is_log(path + "-wal"):
        yield Unsound("wal-damaged", "the header of its log does not add up")
    elif log and shared is None:
        yield Unsound("shm-missing", "its log is there without its shared memory")


def _file(path: str, size: int, texts: Texts | None, version: int) -> list[Unsound]:
    if size == 0:
        return []  # begun, and nothing put in yet
    head = _bytes(path, 0, 100)
    if not head.startswith(MAGIC):
        return [Unsound("not-a-database", "its first bytes are not those of a database")]
    if len(head) < 100:
        return [Unsound("truncated", f"it has {size:,} bytes, which is less than its header")]
    page, pages = struct.unpack(">H", head[16:18])[0], struct.unpack(">I", head[28:32])[0]
    page = 65_536 if page == 1 else page
    if page < 512 or page & (page - 1):
        return [Unsound("page-damaged", "its header gives no page size")]
    logged = bool(_size(path + "-wal"))
    if size % page or (size < page * pages and not logged):
        return [Unsound("truncated", f"it has {size:,} bytes of {page * pages:,}")]
    if blank := _blank_page(path, page):
        return [Unsound("page-zeroed", f"page {blank} holds nothing")]
    return _asked(path, logged, texts, version)


def _blank_page(path: str, page: int) -> int:
    """The first page, from 2 on, that is nothing but zeros, as no page in use can be; 0 for none. Free pages may be."""
    at, number, zeros = page, 2, bytes(page)
    free = _free_pages(path, page)
    while block := _bytes(path, at, at + max(page, _BLOCK // page * page)):
        for start in range(0, len(block), page):
            if block[start : start + page] == zeros and number not in free:
                return number
            number += 1
        at += len(block)
    return 0


def _free_pages(path: str, page: int) -> set[int]:
    """The numbers on the list of free pages, as far as it can be followed."""
    trunk, most = struct.unpack(">II", _bytes(path, 32, 40))
    free: set[int] = set()
    while trunk and trunk not in free and len(free) <= most:
        free.add(trunk)
        raw = _bytes(path, (trunk - 1) * page, trunk * page)
        if len(raw) < 8:
            break
        trunk, leaves = struct.unpack(">II", raw[:8])
        leaves = min(leaves, (len(raw) - 8) // 4)
        free.update(struct.unpack(f">{leaves}I", raw[8 : 8 + 4 * leaves]))
    return free


def _asked(path: str, logged: bool, texts: Texts | None, version: int) -> list[Unsound]:
    how = "mode=ro" if logged else "immutable=1"
    place = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    try:
        with closing(sqlite3.connect(f"file:{place}?{how}", uri=True, timeout=1.0, isolation_level=None)) as db:
            return _told(db, texts, version)
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_CANTOPEN", "SQLITE_READONLY")):
            return []  # somebody is at work, or the folder does not let us look at the log
        return [Unsound("page-damaged", str(error))]
    except (sqlite3.DatabaseError, UnicodeDecodeError, ValueError, OverflowError, TypeError) as error:
        return [Unsound("page-damaged", str(error))]


def _told(db: sqlite3.Connection, texts: Texts | None, version: int) -> list[Unsound]:
    db.execute("pragma cell_size_check = on")
    if (found := int(db.execute("pragma user_version").fetchone()[0])) not in (0, version):
        return [Unsound("format", f"its format has the number {found}, and this version's is {version}")]
    said = [str(row[0]) for row in db.execute("pragma integrity_check(3)")]
    if said != ["ok"]:
        return [Unsound("page-damaged", said[0].splitlines()[-1] if said else "SQLite's check says nothing")]
    return [*_compared(db, texts)] if texts is not None and found else []


def _compared(db: sqlite3.Connection, texts: Texts) -> Iterator[Unsound]:
    """Documents of which the index holds another text than it should: SQLite has no sums, and does not notice."""
    rows = db.execute("select id, path, digest from document order by path").fetchall()
    for key, path, mark in rows:
        wanted = texts(path, mark)
        if wanted is None:
            continue
        parts = [row[0] for row in db.execute("select text from part where document = ? order by id", (key,))]
        if "".join(parts) != wanted:
            yield Unsound("text-differs", f"what it holds of {path} is not what stands there")
            return


def _is_log(path: str) -> bool:
    """Whether the header of a write-ahead log is one, by its own sum."""
    raw = _bytes(path, 0, 32)
    if len(raw) < 32:
        return False
    magic = struct.unpack(">I", raw[:4])[0]
    if magic not in _WAL_MAGIC:
        return False
    words = struct.unpack((">" if magic & 1 else "<") + "6I", raw[:24])
    first = second = 0
    for one, two in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & 0xFFFFFFFF
        second = (second + two + first) & 0xFFFFFFFF
    return struct.unpack(">II", raw[24:32]) == (first, second)


def _bytes(path: str, start: int, end: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        return os.pread(fd, max(0, end - start), start)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _size(path: str) -> int | None:
    try:
        return os.lstat(path).st_size
    except OSError:
        return None


@contextmanager
def _quiet(lock: str) -> Iterator[bool]:
    """Whether nobody writes, and nobody begins to while we look. A lock file that is not there is held by nobody."""
    try:
        fd = os.open(lock, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        yield True
        return
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        yield False
    else:
        yield True
    finally:
        os.close(fd)
