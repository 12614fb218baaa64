"""One archive of a home: a tar of every file that is the home's own, with a manifest before them.

Promise: the same files give the same bytes, on any day and machine; anybody can open it with tar. Reading trusts
nothing: members stand in the manifest's order, each once, with its size and digest, under a name that stays inside a
home; whatever else is there is refused, and no more is held in memory than a few megabytes. Packing follows no link.
Not here: where archives are kept and when they are taken (snapshots), and putting one in a home's place (swap).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from anima.errors import BadPath, Damaged, Refused, printable, refuse_newer
from anima.model import MAX_PATH, DocPath, fold
from anima.store.folder import Folder, write_all
from anima.store.private import FOLDER, STAGE
from anima.store.safe_open import open_regular

FORMAT = 1
MANIFEST, INSIDE = "manifest.json", "home/"
OWN_MARK = "anima"  # a repository with a file of that name in it is ours
MOST_MANIFEST = 256 * 2**20
_PIECE, _BLOCK = 1 << 20, 512
_LEVEL = 6
_LATEST = 0o77777777777  # the last second that a plain header of tar can name
_GIT, _BARE = ".git", f"{FOLDER}/history.git"
# What is derived, or is this machine's own: locks, staged texts, the archives themselves, what a restore is doing.
_PASSING = frozenset(
    f"{FOLDER}/{name}"
    for name in ("lock", "index.lock", "dreaming", "mending", "snapshots", "restore", "restoring", "restored", "looked")
) | {STAGE}
_DERIVED = (f"{FOLDER}/index.sqlite", f"{FOLDER}/talks.sqlite")
_GIT_LOCKS = (
    "anima.lock",
    "anima.new",
    "HEAD.lock",
    "index.lock",
    "packed-refs.lock",
    "config.lock",
    "refs/heads/main.lock",
)

Progress = Callable[[int, int], None]


class Reads(Protocol):
    """Something bytes can be read from, a few at a time."""

    def read(self, size: int, /) -> bytes: ...


class File(NamedTuple):
    """One file of a home, as a manifest names it."""

    path: str
    size: int
    sha256: str
    mode: int


class Found(NamedTuple):
    """A file that would be packed, before anybody read it."""

    path: str
    size: int
    mode: int
    mtime: int


class Member(NamedTuple):
    """A file of an archive that is being read. `pieces` are its bytes; whoever does not read them need not."""

    file: File
    mtime: int
    pieces: Iterator[bytes]


@dataclass(frozen=True)
class Manifest:
    """What an archive says of itself. `digest` stands for all that is in it but the times of its files."""

    home: str
    dialect: str
    agent: str
    ledger: tuple[int, str]  # number and hash of its last record
    files: tuple[File, ...]
    left_out: tuple[tuple[str, str], ...] = ()  # (path, why)

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(self.dump()).hexdigest()

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def dump(self) -> bytes:
        """As JSON, one file to a line, the same bytes for the same manifest."""
        head = {
            "anima": "snapshot",
            "format": FORMAT,
            "home": self.home,
            "dialect": self.dialect,
            "agent": self.agent,
            "ledger": {"n": self.ledger[0], "hash": self.ledger[1]},
        }
        out = [line(head)[1:-1]]
        out.append(f'"left_out":{_listed({"path": path, "why": why} for path, why in self.left_out)}')
        out.append(f'"files":{_listed({**file._asdict(), "mode": f"{file.mode:04o}"} for file in self.files)}')
        return ("{" + ",\n".join(out) + "}\n").encode("ascii")

    @classmethod
    def load(cls, raw: bytes) -> Manifest:
        """Raises Damaged for what is none, Refused for one of a newer format or with a name that leads elsewhere."""
        try:
            found = json.loads(raw)
            if found["anima"] != "snapshot":
                raise ValueError("it says it is something else")
            if type(found["format"]) is not int or found["format"] < 1:
                raise ValueError("it has no format")
        except (ValueError, KeyError, TypeError, RecursionError):
            raise Damaged("this is no snapshot of anima's: its first file is no manifest") from None
        refuse_newer("this snapshot", found["format"], FORMAT)
        try:
            made = cls._read(found)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Damaged("the snapshot's manifest cannot be read") from None
        _check_names(made.files)
        return made

    @classmethod
    def _read(cls, found: Mapping[str, Any]) -> Manifest:
        files = tuple(
            File(_text(f["path"]), _count(f["size"]), _digest(f["sha256"]), int(_text(f["mode"]), 8))
            for f in found["files"]
        )
        left = tuple((_text(each["path"]), _text(each["why"])) for each in found["left_out"])
        ledger = (_count(found["ledger"]["n"]), _text(found["ledger"]["hash"]))
        home, dialect, agent = (_text(found[name]) for name in ("home", "dialect", "agent"))
        return cls(home=home, dialect=dialect, agent=agent, ledger=ledger, files=files, left_out=left)


def line(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=True)


def _listed(rows: Iterable[object]) -> str:
    found = [line(row) for row in rows]
    return "[\n" + ",\n".join(found) + "\n]" if found else "[]"


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("this is no text")
    return value


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("this is no number")
    return value


def _digest(value: object) -> str:
    if len(bytes.fromhex(_text(value))) != 32:
        raise ValueError("this is no digest")
    return str(value)


# -- names ------------------------------------------------------------------------------------------------------------------


def _check_names(files: Iterable[File]) -> None:
    """Names that stay inside a home and apart from each other, in order. Raises Refused."""
    before, seen = "", set[str]()
    for file in files:
        if why := refusal(file.path):
            raise Refused(
                f"the snapshot holds {printable(file.path)}, which is refused: {why}; nothing was written",
                rule="archive",
            )
        if file.path <= before:
            raise Refused(
                f"the snapshot names {printable(file.path)} twice, or out of order; nothing was written", rule="archive"
            )
        if file.mode != _mode(file.path, file.mode):
            raise Refused(
                f"the snapshot gives {printable(file.path)} a mode no home has; nothing was written", rule="archive"
            )
        before = file.path
        twin = file.path if file.path.startswith((".git/", ".anima/")) else fold(file.path)
        if twin in seen or any(above in seen for above in _above(twin)):
            raise Refused(
                f"two names in the snapshot are one to a home: {printable(file.path)}; nothing was written",
                rule="archive",
            )
        seen.add(twin)


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def refusal(path: str) -> str:
    """Why a path can be none of a home's files; "" for one that can. Hidden names are allowed, unlike in a DocPath."""
    parts = path.split("/")
    if not path or len(path) > MAX_PATH or any(part in ("", ".", "..") for part in parts):
        return "it does not lie inside a home"
    if parts[0] in (".git", ".anima") and len(parts) > 1:
        if not path.isprintable() or "\\" in path or any(fold(part) in (".git", ".anima") for part in parts[1:]):
            return "it is no name anima gives"
        return "it is a file of this machine's own" if is_passing(path) else ""
    if any(fold(part) in (".git", ".anima") for part in parts):
        return "it belongs to a repository"
    try:
        DocPath.parse("/".join("_" + part.lstrip(".") if part.startswith(".") else part for part in parts))
    except BadPath as error:
        return error.why
    return ""


def is_passing(path: str) -> bool:
    """Whether a file of `.anima` or `.git` is derived, a lock, or this machine's own."""
    if path in _PASSING or path.startswith(_DERIVED) or any(above in _PASSING for above in _above(path)):
        return True
    return any(path == f"{place}/{name}" for place in (_GIT, _BARE) for name in _GIT_LOCKS)


def _mode(path: str, mode: int) -> int:
    """The mode a file is restored with: its owner may read and write it, and nobody else write."""
    return 0o600 if path.startswith(f"{FOLDER}/") else 0o600 | (mode & 0o755)


# -- what there is ----------------------------------------------------------------------------------------------------------


def census(store: Folder) -> tuple[list[Found], list[tuple[str, str]]]:
    """Every file that belongs into an archive, in order, and what is left out with the reason.

    Raises Damaged where the disk does not tell: what is not seen would be missing, and a restore would remove it.
    """
    try:
        return _counted(store)
    except OSError as error:
        raise Damaged(f"the home cannot be read ({os.strerror(error.errno or 0)}); nothing was changed") from None


def _counted(store: Folder) -> tuple[list[Found], list[tuple[str, str]]]:
    found: list[Found] = []
    left: list[tuple[str, str]] = []
    own = _has(store, f"{_GIT}/{OWN_MARK}")

    def closed(error: OSError) -> None:
        if isinstance(error, PermissionError):
            left.append((printable(str(error.filename), 1000), "the system does not let us read it"))
        elif not isinstance(error, FileNotFoundError):
            raise error

    for folder, folders, names, fd in os.fwalk(".", dir_fd=store.fd, follow_symlinks=False, onerror=closed):
        inside = "" if folder == "." else f"{os.path.normpath(folder)}/"
        kept = []
        for name in sorted(folders):
            if (why := _left_out(inside + name, own)) is None:
                kept.append(name)
            elif why:
                left.append((printable(inside + name, 1000), why))
        links = [name for name in kept if _is_link(name, fd)]
        left += [(printable(inside + name, 1000), _LINK) for name in links]
        folders[:] = [name for name in kept if name not in links]
        for name in names:
            _look(inside + name, name, fd, own, found, left)
    found.sort()
    return _without_twins(found, left), sorted(left)


def _has(store: Folder, path: str) -> bool:
    try:
        os.stat(path, dir_fd=store.fd, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _is_link(name: str, fd: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


_LINK = "it is a link, and links are not followed inside a home"


def _look(path: str, name: str, fd: int, own: bool, found: list[Found], left: list[tuple[str, str]]) -> None:
    try:
        seen = os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return  # it vanished while we looked
    if (why := _left_out(path, own)) is None:
        why = _LINK if stat.S_ISLNK(seen.st_mode) else "" if stat.S_ISREG(seen.st_mode) else "it is not a regular file"
        why = why or refusal(path)
        if not why:
            mtime = min(max(int(seen.st_mtime), 0), _LATEST)
            found.append(Found(path, seen.st_size, _mode(path, stat.S_IMODE(seen.st_mode)), mtime))
    if why:
        left.append((printable(path, 1000), why))


def _left_out(path: str, own: bool) -> str | None:
    """None for what is looked at, "" for what nobody misses, else why it is left out."""
    if is_passing(path):
        return ""
    parts = path.split("/")
    if path == _GIT:
        return None if own else "a git repository that is not anima's"
    if (own and parts[0].startswith(".git.")) or (
        parts[0] == FOLDER and len(parts) > 1 and parts[1].startswith("history.git.")
    ):
        return "a history that a repair set aside"
    if any(fold(part) in (".git", ".anima") for part in parts[1:]) or (
        fold(parts[0]) in (".git", ".anima") and parts[0] not in (_GIT, FOLDER)
    ):
        return "a repository of its own"
    return None


def _without_twins(found: list[Found], left: list[tuple[str, str]]) -> list[Found]:
    """Where two names are one to us, only the first is kept."""
    seen, kept = set[str](), []
    for each in found:
        twin = each.path if each.path.startswith((".git/", ".anima/")) else fold(each.path)
        if twin in seen or any(above in seen for above in _above(twin)):
            left.append((each.path, "another file has the same name to us"))
            continue
        seen.add(twin)
        kept.append(each)
    return kept


def survey(store: Folder) -> dict[str, tuple[File, int]]:
    """Every file that would be packed, read and hashed, with its time. Nothing is written."""
    seen: dict[str, tuple[File, int]] = {}
    for found in census(store)[0]:
        try:
            fd, now = open_regular(store.fd, found.path)
            with open(fd, "rb") as source:
                digest = hashlib.file_digest(source, "sha256").hexdigest()
        except (FileNotFoundError, PermissionError):
            continue
        except OSError as error:
            raise Damaged(
                f"{printable(found.path)} cannot be read ({os.strerror(error.errno or 0)}); nothing was changed"
            ) from None
        seen[found.path] = (File(found.path, now.st_size, digest, found.mode), found.mtime)
    return seen


# -- packing ----------------------------------------------------------------------------------------------------------------


class _Zipped:
    """Compresses into a descriptor. No clock and no name go in."""

    def __init__(self, fd: int) -> None:
        self._fd, self._zip = fd, zlib.compressobj(_LEVEL, zlib.DEFLATED, 31)

    def write(self, data: bytes) -> None:
        if made := self._zip.compress(data):
            write_all(self._fd, made)

    def finish(self) -> None:
        write_all(self._fd, self._zip.flush())


def pack(
    store: Folder, fd: int, *, progress: Progress | None = None
) -> tuple[tuple[File, ...], tuple[tuple[str, str], ...]]:
    """Writes every file of a home, compressed, to a descriptor; gives what a manifest names.

    Raises Damaged when a file grew shorter while it was read; doing it again may help. Raises OSError.
    """
    os.ftruncate(fd, 0)  # of an attempt before this one
    os.lseek(fd, 0, os.SEEK_SET)
    found, left = census(store)
    out, files = _Zipped(fd), list[File]()
    done, total = 0, sum(each.size for each in found)
    for each in found:
        try:
            source, seen = open_regular(store.fd, each.path)
        except FileNotFoundError:
            continue
        except PermissionError:
            left.append((each.path, "the system does not let us read it"))
            continue
        try:
            files.append(_packed(source, each._replace(size=seen.st_size), out))
        finally:
            os.close(source)
        done += seen.st_size
        if progress is not None:
            progress(done, max(done, total))
    out.write(b"\0" * (2 * _BLOCK))
    out.finish()
    return tuple(files), tuple(sorted(left))


def _packed(source: int, found: Found, out: _Zipped) -> File:
    """One file, as long as it was when it was opened: a transcript may grow meanwhile."""
    out.write(_header(INSIDE + found.path, found.size, found.mode, found.mtime))
    digest, rest = hashlib.sha256(), found.size
    while rest:
        piece = os.read(source, min(rest, _PIECE))
        if not piece:
            raise Damaged(f"{printable(found.path)} changed while it was read")
        digest.update(piece)
        out.write(piece)
        rest -= len(piece)
    out.write(b"\0" * (-found.size % _BLOCK))
    return File(found.path, found.size, digest.hexdigest(), found.mode)


def _header(name: str, size: int, mode: int, mtime: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, mode, mtime
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def assemble(manifest: Manifest, body: int, out: int) -> None:
    """An archive of a manifest and what `pack` wrote: two runs of gzip, one after the other, are one to everybody."""
    raw = manifest.dump()
    head = _Zipped(out)
    head.write(_header(MANIFEST, len(raw), 0o600, 0) + raw + b"\0" * (-len(raw) % _BLOCK))
    head.finish()
    os.lseek(body, 0, os.SEEK_SET)
    while piece := os.read(body, _PIECE):
        write_all(out, piece)


# -- reading ----------------------------------------------------------------------------------------------------------------


class _Plain:
    """The bytes inside gzip, by exact count. Raises Damaged for what is none, or ends too soon."""

    def __init__(self, raw: Reads) -> None:
        self._raw, self._zip, self._held, self._fed = raw, zlib.decompressobj(31), b"", b""
        self._ended = False

    def read(self, size: int) -> bytes:
        pieces, rest = list[bytes](), size
        while rest and (piece := self._some(rest)):
            pieces.append(piece)
            rest -= len(piece)
        return b"".join(pieces)

    def exactly(self, size: int) -> bytes:
        if len(found := self.read(size)) < size:
            raise Damaged("the snapshot ends too soon; the file is cut off")
        return found

    def _some(self, most: int) -> bytes:
        while not self._ended:
            if not self._fed:
                self._fed = self._raw.read(1 << 16)
            if self._zip.eof:
                if not self._fed:
                    self._ended = True
                    break
                self._zip = zlib.decompressobj(31)
            try:
                made = self._zip.decompress(self._fed, most)
            except zlib.error:
                raise Damaged("the snapshot is damaged: its bytes are not what was written") from None
            was_fed, self._fed = bool(self._fed), self._zip.unused_data or self._zip.unconsumed_tail
            if made:
                return made
            if not was_fed and not self._zip.eof:
                raise Damaged("the snapshot ends too soon; the file is cut off")
        return b""


def read(raw: Reads) -> tuple[Manifest, Iterator[Member]]:
    """An archive's manifest, and its files one by one. Raises Damaged or Refused as soon as something is not as it says."""
    plain = _Plain(raw)
    name, size, _ = _next(plain) or ("", 0, 0)
    if name != MANIFEST:
        raise Damaged("this is no snapshot of anima's: its first file is no manifest")
    if size > MOST_MANIFEST:
        raise Refused(f"the snapshot's manifest has {size:,} bytes, which is more than any home needs", rule="archive")
    data = plain.exactly(size)
    plain.exactly(-size % _BLOCK)
    manifest = Manifest.load(data)
    if manifest.dump() != data:
        raise Damaged("the snapshot's manifest is not as anima writes it")
    return manifest, _members(plain, manifest)


def _members(plain: _Plain, manifest: Manifest) -> Iterator[Member]:
    for file in manifest.files:
        name, size, mtime = _next(plain) or ("", 0, 0)
        if name != INSIDE + file.path or size != file.size:
            raise Damaged(f"the snapshot does not hold {printable(file.path)} where its manifest says; it was changed")
        pieces = _pieces(plain, file)
        yield Member(file, mtime, pieces)
        for _ in pieces:
            pass
    if _next(plain) is not None:
        raise Damaged("the snapshot holds files that its manifest does not name; it was changed")
    while rest := plain.read(_PIECE):
        if rest.strip(b"\0"):
            raise Damaged("something follows the snapshot's end; it was changed")


def _pieces(plain: _Plain, file: File) -> Iterator[bytes]:
    digest, rest = hashlib.sha256(), file.size
    while rest:
        piece = plain.exactly(min(rest, _PIECE))
        digest.update(piece)
        rest -= len(piece)
        yield piece
    plain.exactly(-file.size % _BLOCK)
    if digest.hexdigest() != file.sha256:
        raise Damaged(
            f"{printable(file.path)} in the snapshot is not what its manifest says; it was changed or is damaged"
        )


def _next(plain: _Plain) -> tuple[str, int, int] | None:
    """(name, size, time) of the next member; None at the end. Only files, and long names for them, can come."""
    more: dict[str, str] = {}
    while True:
        block = plain.exactly(_BLOCK)
        if not block.strip(b"\0"):
            return None
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError, ValueError):
            raise Damaged("the snapshot is damaged: it is no tar inside") from None
        if info.type == tarfile.XHDTYPE and not more and 0 < info.size <= 16 * MAX_PATH:
            more = _long(plain.exactly(info.size + -info.size % _BLOCK)[: info.size])
            continue
        if info.type != tarfile.REGTYPE or info.size < 0:
            raise Refused(
                f"the snapshot holds {printable(info.name)}, which is no file; nothing was written", rule="archive"
            )
        size = more.get("size", "")
        return (
            more.get("path", info.name),
            int(size) if _is_number(size) else info.size,
            min(max(int(info.mtime), 0), _LATEST),
        )


def _long(raw: bytes) -> dict[str, str]:
    """What a plain header has no room for: a long name, a size beyond 8 GiB."""
    found = {}
    while raw:
        count, _, _ = raw.partition(b" ")
        if not _is_number(count.decode("latin-1")) or not len(count) + 3 <= int(count) <= len(raw):
            raise Damaged("the snapshot is damaged: it is no tar inside")
        key, _, value = raw[len(count) + 1 : int(count) - 1].partition(b"=")
        if key not in (b"path", b"size"):
            raise Refused(
                "the snapshot says something of a file that anima never says; nothing was written", rule="archive"
            )
        found[key.decode()] = value.decode("utf-8", "replace")
        raw = raw[int(count) :]
    return found


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 20  # longer ones Python refuses to read


def verify(
    raw: Reads, *, keep: Mapping[str, int] | None = None, progress: Progress | None = None
) -> tuple[Manifest, dict[str, bytes]]:
    """Reads a whole archive; gives its manifest and the bytes of the files in `keep` that are no larger than it says."""
    manifest, members = read(raw)
    kept: dict[str, bytes] = {}
    done, total = 0, manifest.size
    for file, _, pieces in members:
        if file.size <= (keep or {}).get(file.path, -1):
            kept[file.path] = b"".join(pieces)
        done += file.size
        if progress is not None:
            for _ in pieces:
                pass
            progress(done, total)
    return manifest, kept


def read_back(fd: int, manifest: Manifest) -> None:
    """Reads what was just written. Raises Damaged when it is anything else."""
    os.lseek(fd, 0, os.SEEK_SET)
    with open(fd, "rb", buffering=0, closefd=False) as raw:
        found, _ = verify(raw)
    if found.digest != manifest.digest:
        raise Damaged("the snapshot is not what was written when it is read back; the disk may be failing")
