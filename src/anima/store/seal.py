"""Archives on the disk, sealed or not: opening one to read, sealing one with age for those who may read it.

Promise: what age seals, any age program opens, and what it sealed is read as a stream: no clear copy touches the disk.
Not here: what is in an archive (archive). Sealing by a passphrase is done in memory, since pyrage streams only to keys.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from anima.errors import BadArguments, Damaged, MissingExtra, NotFound, Refused, printable
from anima.store.archive import Reads

ENDING = ".age"
MOST_BY_PASSPHRASE = 2**30
_MARKS = (b"age-encryption.org/", b"-----BEGIN AGE ENCRYPTED FILE-----")


def _pyrage() -> Any:
    try:
        import pyrage  # type: ignore[import-untyped]
    except ModuleNotFoundError:
        raise MissingExtra("age", "a sealed snapshot") from None
    return pyrage


def is_sealed(path: str | Path) -> bool:
    """Whether a file is sealed by age. Raises NotFound or Damaged."""
    with _opened(path) as raw:
        return raw.read(64).startswith(_MARKS)


def sealing_at(path: str | Path) -> bool | None:
    """The same, and None where no file can be read."""
    try:
        return is_sealed(path)
    except (NotFound, Damaged):
        return None


@contextmanager
def _opened(path: str | Path) -> Iterator[BinaryIO]:
    try:
        raw = open(path, "rb", buffering=0)
    except FileNotFoundError:
        raise NotFound(f"{path}: there is no such snapshot", hint="anima snapshot list names those of a home") from None
    except OSError as error:
        raise Damaged(f"{path}: cannot be read ({os.strerror(error.errno or 0)})") from None
    with raw:
        try:
            yield raw
        except OSError as error:
            raise Damaged(f"{path}: cannot be read ({os.strerror(error.errno or 0)})") from None


@contextmanager
def opened(
    path: str | Path, *, identities: Sequence[str | Path] = (), passphrase: str | None = None
) -> Iterator[Reads]:
    """An archive's own bytes. Raises Refused when it is sealed and no key given opens it."""
    if not is_sealed(path):
        with _opened(path) as raw:
            yield raw
        return
    if passphrase is not None and not identities:
        yield _unsealed_at_once(path, passphrase)
        return
    if not identities:
        raise Refused(
            f"{path}: this snapshot is sealed",
            rule="sealed",
            hint="give --identity FILE, or its passphrase: --passphrase, or ANIMA_SNAPSHOT_PASSPHRASE",
        )
    keys = [_identity(each) for each in identities]
    with _opened(path) as raw, _Unsealing(raw, keys) as found:
        yield found


def _unsealed_at_once(path: str | Path, passphrase: str) -> Reads:
    import io

    pyrage = _pyrage()
    with _opened(path) as raw:
        if os.fstat(raw.fileno()).st_size > MOST_BY_PASSPHRASE + 2**24:
            raise Refused(f"{path}: it is too large to be unsealed by a passphrase; open it with age", rule="sealed")
        data = raw.read()
        while piece := raw.read():
            data += piece
    try:
        return io.BytesIO(pyrage.passphrase.decrypt(data, passphrase))
    except pyrage.DecryptError as error:
        raise _locked(error) from None


class _Unsealing:
    """Bytes that a thread unseals while they are read."""

    def __init__(self, raw: BinaryIO, keys: Sequence[Any]) -> None:
        self._raw, self._keys, self._pyrage = raw, keys, _pyrage()
        self._wrong: BaseException | None = None

    def __enter__(self) -> _Unsealing:
        out, into = os.pipe()
        self._out, self._into = open(out, "rb"), open(into, "wb", buffering=0)
        self._thread = threading.Thread(target=self._work, name="anima-unsealing", daemon=True)
        self._thread.start()
        return self

    def _work(self) -> None:
        try:
            with self._into:
                self._pyrage.decrypt_io(self._raw, self._into, self._keys)
        except BaseException as error:  # it is raised where the bytes are read
            self._wrong = error

    def read(self, size: int) -> bytes:
        if data := self._out.read(size):
            return data
        self._thread.join()
        if self._wrong is not None:
            raise _locked(self._wrong) from None
        return b""

    def __exit__(self, *_: object) -> None:
        self._out.close()  # a thread that still writes ends with it
        self._thread.join()


def _locked(error: BaseException) -> Exception:
    if isinstance(error, OSError):
        return Damaged(f"the sealed snapshot is damaged: {printable(str(error))}")
    return Refused(
        "this key or passphrase does not open the snapshot",
        rule="sealed",
        hint="give the one it was sealed with; if you did, the file is damaged",
    )


# -- sealing ----------------------------------------------------------------------------------------------------------------


def check(recipients: Sequence[str], passphrase: str | None) -> None:
    """Raises BadArguments for what nobody could be sealed for, MissingExtra where age is not installed."""
    if recipients and passphrase is not None:
        raise BadArguments("seal a snapshot for recipients or by a passphrase, not both; age cannot")
    if passphrase is not None and not passphrase:
        raise BadArguments("the passphrase is empty")
    for each in recipients:
        _recipient(each)
    if passphrase is not None:
        _pyrage()


def seal(source: int, out: int, *, recipients: Sequence[str], passphrase: str | None) -> None:
    """Seals what a descriptor holds from its start on into another."""
    pyrage = _pyrage()
    os.lseek(source, 0, os.SEEK_SET)
    with open(source, "rb", closefd=False) as clear, open(out, "wb", closefd=False) as sealed:
        if passphrase is None:
            pyrage.encrypt_io(clear, sealed, [_recipient(each) for each in recipients])
            return
        if os.fstat(source).st_size > MOST_BY_PASSPHRASE:
            raise Refused(
                f"a snapshot of more than {MOST_BY_PASSPHRASE:,} bytes cannot be sealed by a passphrase",
                rule="sealed",
                hint="seal it for a key: --to-recipient age1…",
            )
        sealed.write(pyrage.passphrase.encrypt(clear.read(), passphrase))


def _recipient(text: str) -> Any:
    pyrage = _pyrage()
    kind = pyrage.ssh if text.startswith("ssh-") else pyrage.x25519
    try:
        return kind.Recipient.from_str(text.strip())
    except pyrage.RecipientError:
        raise BadArguments(
            f"{printable(text)} is no recipient of age's", hint="give age1… or a public key of ssh"
        ) from None


def _identity(path: str | Path) -> Any:
    """The key in a file: of age-keygen, or of ssh."""
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
