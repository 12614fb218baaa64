"""Files outside a home: an export as it is written, a file that is read back, and archives, sealed with age or not.

Promise: an export or an archive appears under its name whole or not at all; nothing that stands there is overwritten; both
are for their owner alone (0700 and 0600) where the disk knows of modes. A file is read only if it is a regular one, without
waiting. What is sealed, any age program opens; no clear copy touches the disk. Not here: what is in them (backup).
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, BinaryIO, Protocol

from anima.errors import BadArguments, BadText, Damaged, MissingExtra, NoSuchHome, NotFound, Refused, printable
from anima.store import MACHINE
from anima.store.folder import Folder
from anima.store.lock import flock
from anima.store.safe_open import NO_LINKS, as_damage, give_mode, held, why

PART = re.compile(r"\.anima-[0-9a-f]{16}\.part\Z")  # a file that is being written
MAP = ".anima-export.json"  # beside an export: what stands elsewhere than in the home


@contextmanager
def exported_folder(target: Path) -> Iterator[Folder]:
    """A folder to `fill` that gets its name once all of it is durable. Raises Refused when something stands there."""
    place = _checked(target, folder=True)
    temp = place.with_name(f".{place.name[:200]}.{secrets.token_hex(4)}.part")
    with _explained(place):
        os.mkdir(temp, 0o700)
        try:
            give_mode(temp, 0o700)
            with closing(Folder(temp)) as folder:
                yield folder
            os.sync()  # once for all files, rather than once a file
            os.rename(temp, place)
            sync_folder(place.parent)
        except BaseException:
            shutil.rmtree(temp, ignore_errors=True)
            raise


@contextmanager
def exported_file(target: Path) -> Iterator[BinaryIO]:
    """A file that gets its name once it is written and durable. Raises Refused when something stands there."""
    place = _checked(target, folder=False)
    with _explained(place), written_file(place, only_new=True) as out:
        yield out


@contextmanager
def written_file(target: str | Path, *, only_new: bool) -> Iterator[BinaryIO]:
    """A file for its owner alone that gets its name once it is whole and on the disk; until then it is locked under
    another, which `PART` knows. Raises OSError: with `only_new`, FileExistsError where something stands there."""
    folder = os.path.dirname(target)
    part = os.path.join(folder, f".anima-{secrets.token_hex(8)}.part")
    try:
        with held(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)) as fd:
            flock(fd)
            give_mode(fd, 0o600)
            with open(fd, "r+b", closefd=False) as out:
                yield out
            os.fsync(fd)
            name_anew(part, target) if only_new else os.rename(part, target)
            sync_folder(folder)
    finally:
        with suppress(OSError):
            os.unlink(part)


def expanded(path: str | Path) -> Path:
    """A path as the owner means it, with their home for `~`. Raises BadArguments where it names a user there is not."""
    try:
        return Path(path).expanduser()
    except (RuntimeError, ValueError):
        said = f"{printable(str(path))}: there is no user of that name"
        raise BadArguments(said, hint="write the path out") from None


def _checked(target: Path, *, folder: bool) -> Path:
    """Where an export goes, if nothing stands there. Raises BadArguments or Refused."""
    try:
        place = target.expanduser()
        place = place.parent.resolve() / place.name
        found = os.lstat(place)
    except FileNotFoundError:
        if place.parent.is_dir() and place.name not in ("", ".", ".."):
            return place
        raise BadArguments(f"{target}: there is no folder to put it in", hint=f"make {target.parent} first") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise BadArguments(f"{printable(str(target))}: it cannot be written ({why(error)})") from None
    if folder and stat.S_ISDIR(found.st_mode) and not any(place.iterdir()):
        return place
    what = "the folder is not empty" if stat.S_ISDIR(found.st_mode) else "there is something of that name already"
    hint = "name a place that does not exist yet"
    raise Refused(f"{target}: {what}; an export overwrites nothing", rule="export-target", hint=hint)


def name_anew(temp: str | Path, target: str | Path) -> None:
    """Gives a file its name, and never replaces another. Raises FileExistsError. A stick has often no second names for a
    file: there the name is taken by an empty one first, which a kill may leave."""
    try:
        os.link(temp, target)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        os.rename(temp, target)


def private(mode: int) -> int:
    return 0o700 if mode & 0o100 else 0o600


def lines_in(file: IO[bytes], *, most: int) -> Iterator[bytes]:
    """The lines of a file from its beginning, each with its newline; of one that is longer than `most`, its beginning."""
    file.seek(0)
    while line := file.readline(most):
        yield line
        if not line.endswith(b"\n"):
            return


def open_file(path: Path) -> IO[bytes]:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise NoSuchHome(f"{printable(str(path))}: cannot be opened ({why(error)})") from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        hint = "an import reads its source twice: write it to a file first"
        raise BadText(str(path), "it is neither a folder nor a regular file", hint=hint)
    return open(fd, "rb")


def _explained(target: Path) -> AbstractContextManager[None]:
    def taken(error: OSError) -> Refused | None:
        said = f"{target}: somebody put something there meanwhile; nothing was overwritten"
        is_taken = error.errno in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR, errno.EISDIR)
        return Refused(said, rule="export-target") if is_taken else None

    return as_damage(f"{target}: the export cannot be written", instead=taken)


def sync_folder(folder: str | Path) -> None:
    with held(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as fd:
        os.fsync(fd)


# -- archives, and sealing them -----------------------------------------------------------------------------------------


ENDING = ".age"
_NAME = re.compile(
    r"(?P<time>\d{8}T\d{6}Z)-(?:(?P<label>[a-z0-9][a-z0-9-]{0,39})-)?(?P<digest>[0-9a-f]{12})\.tar\.gz(?P<sealed>\.age)?\Z"
)
_STAMP = "%Y%m%dT%H%M%SZ"


class Reads(Protocol):
    """Something bytes can be read from, a few at a time."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """An archive of a home, as its name tells of it. `fresh` is False when nothing had changed since it was taken."""

    path: str
    time: datetime
    label: str
    digest: str  # the first twelve characters of its manifest's
    size: int
    sealed: bool
    fresh: bool = True
    files: int | None = None  # None where nobody looked inside
    left_out: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        return os.path.basename(self.path)


def name_of(time: datetime, label: str, digest: str, *, sealed: bool) -> str:
    stamp = time.astimezone(UTC).strftime(_STAMP)
    return "-".join(filter(None, (stamp, label, digest[:12]))) + ".tar.gz" + (".age" if sealed else "")


def snapshot_at(path: str) -> Snapshot | None:
    """What stands at a path, if its name is one that archives are given."""
    found = _NAME.match(os.path.basename(path))
    try:
        seen = os.lstat(path)
        time = datetime.strptime(found["time"], _STAMP).replace(tzinfo=UTC) if found else None
    except (OSError, ValueError):
        return None
    if found is None or time is None or not stat.S_ISREG(seen.st_mode):
        return None
    label, digest, sealed = found["label"] or "", found["digest"], bool(found["sealed"])
    return Snapshot(path=path, time=time, label=label, digest=digest, size=seen.st_size, sealed=sealed)


class Shelf:
    """One folder of archives. It is made with the first of them."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def all(self) -> list[Snapshot]:
        """Every archive that is here, the newest first. Behind a link there are none: they are somebody else's."""
        try:
            names = os.listdir(self.folder) if self._is_folder() else []
        except OSError:
            return []
        found = (snapshot_at(os.path.join(self.folder, name)) for name in names)
        return sorted((kept for kept in found if kept), key=lambda kept: (kept.time, kept.name), reverse=True)

    def put(self, name: str, write: Callable[[BinaryIO], None], *, only_new: bool = False) -> str:
        """Has an archive written, and gives it its name; gives its path. Raises Damaged, or Refused with `only_new`."""
        target = os.path.join(self.folder, name)
        with as_damage("the snapshot cannot be written", "; nothing was changed"):
            try:
                os.makedirs(self.folder, mode=0o700, exist_ok=True)
                if not self._is_folder():
                    name = os.path.basename(self.folder)
                    raise Damaged(f"{name} is a link where a folder of snapshots must be; nothing was changed")
                flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
                for part in filter(PART.match, os.listdir(self.folder)):  # what a process that was killed left
                    path = os.path.join(self.folder, part)
                    with suppress(OSError), held(os.open(path, flags)) as fd:
                        if flock(fd):  # else it is being written
                            os.unlink(path)
                if only_new and os.path.lexists(target):
                    raise FileExistsError
                with written_file(target, only_new=only_new) as out:
                    write(out)
            except FileExistsError:
                said = f"{target}: there is a file of that name, and it is not overwritten"
                raise Refused(said, rule="overwrite") from None
        return target

    def remove(self, kept: Snapshot) -> None:
        with as_damage(f"{kept.name} cannot be removed"), suppress(FileNotFoundError):
            os.unlink(kept.path)
            sync_folder(self.folder)

    def _is_folder(self) -> bool:
        """No link is followed, neither here nor at a home's `.anima`; above a folder of their choice the owner may have some."""
        above = os.path.dirname(self.folder)
        own = [self.folder, above] if os.path.basename(above) == MACHINE else [self.folder]
        return all(stat.S_ISDIR(os.lstat(folder).st_mode) for folder in own)


def _pyrage() -> Any:
    try:
        import pyrage  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise MissingExtra("age", "a sealed snapshot") from None
    return pyrage


def is_sealed(path: str | Path) -> bool:
    with _opened(path) as raw:
        return raw.read(64).startswith((b"age-encryption.org/", b"-----BEGIN AGE ENCRYPTED FILE-----"))


@contextmanager
def _opened(path: str | Path) -> Iterator[BinaryIO]:
    with as_damage(f"{path}: cannot be read"):
        try:
            raw = open(path, "rb", buffering=0)
        except (FileNotFoundError, ValueError):
            hint = "anima snapshot list names those of a home"
            raise NotFound(f"{printable(str(path))}: there is no such snapshot", hint=hint) from None
        with raw:
            yield raw


@contextmanager
def open_archive(path: str | Path, *, identities: Sequence[str | Path] = ()) -> Iterator[Reads]:
    """An archive's own bytes. Raises Refused when it is sealed and no key given opens it."""
    if not is_sealed(path):
        with _opened(path) as raw:
            yield raw
        return
    if not identities:
        hint = "give --identity FILE; one that is sealed by a passphrase is opened with age"
        raise Refused(f"{path}: this snapshot is sealed", rule="sealed", hint=hint)
    keys = [_identity(each) for each in identities]
    with _opened(path) as raw, closing(_Unsealing(raw, keys)) as found:
        yield found


class _Unsealing:
    """Bytes that a thread unseals while they are read."""

    def __init__(self, raw: BinaryIO, keys: Sequence[Any]) -> None:
        self._wrong: BaseException | None = None
        decrypt, (out, into) = _pyrage().decrypt_io, os.pipe()

        def work() -> None:
            try:
                with open(into, "wb", buffering=0) as clear:
                    decrypt(raw, clear, keys)
            except BaseException as error:  # it is raised where the bytes are read
                self._wrong = error

        self._out, self._thread = open(out, "rb"), threading.Thread(target=work, name="anima-unsealing", daemon=True)
        self._thread.start()

    def read(self, size: int) -> bytes:
        if data := self._out.read(size):
            return data
        self._thread.join()
        if isinstance(self._wrong, OSError):
            raise Damaged(f"the sealed snapshot is damaged: {printable(str(self._wrong))}") from None
        if self._wrong is not None:
            hint = "give the one it was sealed with; if you did, the file is damaged"
            raise Refused("this key does not open the snapshot", rule="sealed", hint=hint) from None
        return b""

    def close(self) -> None:
        self._out.close()  # a thread that still writes ends with it
        self._thread.join()


def seal(clear: BinaryIO, sealed: BinaryIO, *, recipients: Sequence[str]) -> None:
    """Seals what a file holds from its start on into another."""
    clear.seek(0)
    _pyrage().encrypt_io(clear, sealed, [recipient_of(each) for each in recipients])


def recipient_of(text: str) -> Any:
    """Whom a snapshot is sealed for. Raises BadArguments for nobody, MissingExtra where age is not installed."""
    pyrage = _pyrage()
    kind = pyrage.ssh if text.startswith("ssh-") else pyrage.x25519
    try:
        return kind.Recipient.from_str(text.strip())
    except pyrage.RecipientError:
        hint = "give age1… or a public key of ssh"
        raise BadArguments(f"{printable(text)} is no recipient of age's", hint=hint) from None


def _identity(path: str | Path) -> Any:
    pyrage = _pyrage()
    with _opened(os.path.expanduser(path)) as raw:
        data = raw.read(2**20) or b""
    try:
        if b"PRIVATE KEY" in data:
            return pyrage.ssh.Identity.from_buffer(data)
        lines = [line.strip() for line in data.decode().splitlines()]
        return pyrage.x25519.Identity.from_str(next(line for line in lines if line.startswith("AGE-SECRET-KEY-")))
    except (pyrage.IdentityError, UnicodeDecodeError, StopIteration):
        raise BadArguments(f"{path}: there is no key of age or ssh in it") from None
