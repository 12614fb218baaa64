"""One archive of a home: a tar of every file that is the home's own, with a manifest before them.

Promise: the same files give the same bytes, on any day and machine; anybody can open it with tar. Reading trusts
nothing: members stand in the manifest's order, each once, with its size and digest, under a name that stays inside a
home; whatever else is there is refused, and so is what would unpack to far more than it can be worth. A few MB are held. tarfile
extracts nothing: it reads a header of any size whole, and takes a broken one for the end. Not here: where it lies (snapshot).
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import BinaryIO, cast

from anima.errors import Damaged, Refused, printable, refuse_newer
from anima.model import File
from anima.store import Whole
from anima.store.outside import Reads
from anima.store.private import LATEST, check_names

FORMAT = 1
MANIFEST, INSIDE = "manifest.json", "home/"
MOST_MANIFEST = 256 * 2**20
MOST_FILES = 200_000  # in one archive
RATIO, ANY_RATIO = 100, 32 * 2**20  # an archive unpacks to no more than so many times its bytes, but for small ones
_PIECE, _BLOCK = 1 << 20, 512

Progress = Callable[[int, int], None]
Member = tuple[File, int, Iterator[bytes]]  # a file being read, its second, and its bytes, which need not be read
_encode = json.JSONEncoder(separators=(",", ":")).encode


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
        names = {"home": self.home, "dialect": self.dialect, "agent": self.agent}
        last = {"n": self.ledger[0], "hash": self.ledger[1]}
        head = {"anima": "snapshot", "format": FORMAT, **names, "ledger": last}
        left = [{"path": path, "why": why} for path, why in self.left_out]
        files = [{**file._asdict(), "mode": f"{file.mode:04o}"} for file in self.files]
        out = [_encode(head)[1:-1]]
        for name, rows in (("left_out", left), ("files", files)):
            body = ",\n".join(map(_encode, rows))
            out.append(f'"{name}":[\n{body}\n]' if rows else f'"{name}":[]')
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
        try:  # what it says, as far as `dump` would not show that it is something else
            files = tuple(File(f["path"], f["size"], f["sha256"], int(f["mode"], 8)) for f in found["files"])
            left = tuple((each["path"], each["why"]) for each in found["left_out"])
            names, last = (found["home"], found["dialect"], found["agent"]), found["ledger"]
            texts = [*names, last["hash"], *(f.path for f in files), *(text for row in left for text in row)]
            numbers = [last["n"], *(file.size for file in files)]
            if any(type(text) is not str for text in texts) or any(type(n) is not int or n < 0 for n in numbers):
                raise ValueError("a text or number is none")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Damaged("the snapshot's manifest cannot be read") from None
        made = cls(*names, ledger=(last["n"], last["hash"]), files=files, left_out=left)
        if made.dump() != raw:
            raise Damaged("the snapshot's manifest is not as anima writes it")
        check_names(made.files)
        return made


def pack(
    whole: Whole, out: BinaryIO, *, progress: Progress | None = None
) -> tuple[tuple[File, ...], tuple[tuple[str, str], ...]]:
    """Writes every file of a home, compressed; gives what a manifest names. Raises Damaged when a file grew shorter
    while it was read; doing it again may help. Raises OSError."""
    out.seek(0)
    out.truncate()  # of an attempt before this one
    found, left = whole.census()
    files, done, total = list[File](), 0, sum(each.size for each in found)
    with _zipped(out) as zipped:
        for each in found:
            try:
                with whole.open(each.path) as (source, size):  # as long as it is now: a transcript may grow meanwhile
                    zipped.write(_header(INSIDE + each.path, size, each.mode, each.mtime))
                    digest, rest = hashlib.sha256(), size
                    while rest:
                        if not (piece := source.read(min(rest, _PIECE))):
                            raise Damaged(f"{printable(each.path)} changed while it was read")
                        digest.update(piece)
                        zipped.write(piece)
                        rest -= len(piece)
                    zipped.write(b"\0" * (-size % _BLOCK))
            except FileNotFoundError:
                continue
            except PermissionError:
                left.append((each.path, "the system does not let us read it"))
                continue
            files.append(File(each.path, size, digest.hexdigest(), each.mode))
            done += size
            if progress is not None:
                progress(done, max(done, total))
        zipped.write(b"\0" * (2 * _BLOCK))
    return tuple(files), tuple(sorted(left))


def _zipped(out: BinaryIO) -> gzip.GzipFile:
    """Compresses into a file. No clock and no name go in."""
    return gzip.GzipFile("", "wb", compresslevel=6, fileobj=out, mtime=0)


def _header(name: str, size: int, mode: int, mtime: int) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = size, mode, mtime
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def assemble(manifest: Manifest, body: BinaryIO, out: BinaryIO) -> None:
    """An archive of a manifest and what `pack` wrote: two runs of gzip, one after the other, are one to everybody.
    It is read back. Raises Damaged when it is anything else by then."""
    raw = manifest.dump()
    with _zipped(out) as zipped:
        zipped.write(_header(MANIFEST, len(raw), 0o600, 0) + raw + b"\0" * (-len(raw) % _BLOCK))
    body.seek(0)
    while piece := body.read(_PIECE):
        out.write(piece)
    out.seek(0)
    if verify(out, room=None)[0].digest != manifest.digest:
        raise Damaged("the snapshot is not what was written when it is read back; the disk may be failing")


def room_of(path: str, *, large: bool) -> int | None:
    """How many bytes an archive may unpack to; None for as many as it says, where the owner says that it is theirs."""
    return None if large else max(ANY_RATIO, RATIO * os.path.getsize(path))


class _Plain:
    """The bytes inside gzip, by exact count. Raises Damaged for what is none, or ends too soon, and Refused for more than
    there is room for."""

    def __init__(self, raw: Reads, room: int | None) -> None:
        self._zip = gzip.GzipFile(fileobj=cast(BinaryIO, raw), mode="rb")
        self._room, self._given = room, 0

    def check(self, more: int) -> None:
        """Raises Refused where so many bytes more are too many."""
        if self._room is not None and self._given + more > self._room:
            raise _too_large(f"unpacks to more than {RATIO} times its own size (over {self._room:,} bytes)")

    def read(self, size: int) -> bytes:
        try:
            found = bytes(self._zip.read(size))
        except EOFError:
            raise Damaged("the snapshot ends too soon; the file is cut off") from None
        except (gzip.BadGzipFile, zlib.error):
            raise Damaged("the snapshot is damaged: its bytes are not what was written") from None
        self.check(len(found))
        self._given += len(found)
        return found

    def exactly(self, size: int) -> bytes:
        if len(found := self.read(size)) < size:
            raise Damaged("the snapshot ends too soon; the file is cut off")
        return found


def _too_large(what: str) -> Refused:
    why = f"the snapshot {what}, which is more than a home is worth; nothing was written"
    hint = "if it is your own and you expect that, say --large (in Python large=True)"
    return Refused(why, rule="archive-too-large", hint=hint)


def read(raw: Reads, *, room: int | None) -> tuple[Manifest, Iterator[Member]]:
    """An archive's manifest, and its files one by one. Raises Damaged or Refused as soon as something is not as it says,
    and before anything else is read where it says that it unpacks to more than there is `room` for."""
    plain = _Plain(raw, room)
    first = _header_in(plain)
    if first is None or (first.name, first.type) != (MANIFEST, tarfile.REGTYPE) or first.size < 0:
        raise Damaged("this is no snapshot of anima's: its first file is no manifest")
    size = first.size
    if size > MOST_MANIFEST:
        raise Refused(f"the snapshot's manifest has {size:,} bytes, which is more than any home needs", rule="archive")
    plain.check(size)
    data = plain.exactly(size)
    plain.exactly(-size % _BLOCK)
    if room is not None and (count := data.count(b'"sha256":')) > MOST_FILES:  # before they are read one by one
        raise _too_large(f"holds {count:,} files (over {MOST_FILES:,})")
    manifest = Manifest.load(data)
    plain.check(manifest.size + _BLOCK * len(manifest.files))
    return manifest, _members(plain, manifest)


def _members(plain: _Plain, manifest: Manifest) -> Iterator[Member]:
    for file in manifest.files:
        mtime, pieces = _second_of(plain, file), _pieces(plain, file)
        yield file, mtime, pieces
        for _ in pieces:
            pass
    if _header_in(plain) is not None:
        raise Damaged("the snapshot holds files that its manifest does not name; it was changed")
    if plain.read(_PIECE).strip(b"\0") or plain.read(1):  # tar fills its last record up with zeros, and has small ones
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
        why = "is not what its manifest says; it was changed or is damaged"
        raise Damaged(f"{printable(file.path)} in the snapshot {why}")


def _second_of(plain: _Plain, file: File) -> int:
    """The time of the next member, which must be this file."""
    name, found = INSIDE + file.path, _header_in(plain)
    if found is not None and found.type == tarfile.XHDTYPE:
        # A long name, or a size beyond 8 GiB, for which a plain header has no room: said as we say it, or not at all.
        words = _header(name, file.size, 0, 0)[_BLOCK:-_BLOCK]
        if plain.exactly(len(words)) != words or not words:
            why = "the snapshot says something of a file that anima never says; nothing was written"
            raise Refused(why, rule="archive")
        if (found := _header_in(plain)) is not None:
            found.name, found.size = name, file.size
    if found is not None and found.type != tarfile.REGTYPE:
        why = f"the snapshot holds {printable(found.name)}, which is no file; nothing was written"
        raise Refused(why, rule="archive")
    if found is None or (found.name, found.size) != (name, file.size):
        raise Damaged(f"the snapshot does not hold {printable(file.path)} where its manifest says; it was changed")
    return min(max(int(found.mtime), 0), LATEST)


def _header_in(plain: _Plain) -> tarfile.TarInfo | None:
    """The next header; None at the end."""
    block = plain.exactly(_BLOCK)
    try:
        return tarfile.TarInfo.frombuf(block, "utf-8", "strict") if block.strip(b"\0") else None
    except (tarfile.HeaderError, UnicodeDecodeError, ValueError):
        raise Damaged("the snapshot is damaged: it is no tar inside") from None


def verify(
    raw: Reads, *, room: int | None, keep: Mapping[str, int] | None = None, progress: Progress | None = None
) -> tuple[Manifest, dict[str, bytes]]:
    """Reads a whole archive; gives its manifest and the bytes of the files in `keep` that are no larger than it says."""
    manifest, members = read(raw, room=room)
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
