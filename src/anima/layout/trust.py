"""The user's own list of homes: which were made or trusted by this user, and which once existed.

Promise: it lives in the user's configuration folder, never in a home, so that no home can vouch for itself. A list
that cannot be read or written never stops a home from opening: it is then simply not trusted. One that is damaged is
put aside before a new one is begun, and two processes that write at once lose nothing of each other's.
Not here: what trust allows (config).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from anima.errors import Damaged, NewerFormat, refuse_newer
from anima.model import UNTRUSTED, Origin, Remark

FORMAT = 1
_HOMES, _AGENTS_READ = "your list of homes", "what your agents have read (read.json)"
_ELSEWHERE = "set ANIMA_CONFIG to a folder you can write"


def folder(env: Mapping[str, str]) -> Path:
    """Where this user's configuration of anima is kept: ANIMA_CONFIG, else the platform's folder for it."""
    if given := env.get("ANIMA_CONFIG"):
        return Path(os.path.expanduser(given))
    if base := env.get("XDG_CONFIG_HOME"):
        return Path(base) / "anima"
    from platformdirs import user_config_path

    return user_config_path("anima", appauthor=False)


def default_home(env: Mapping[str, str]) -> Path:
    """Where a home is looked for when nothing names one: the user's data folder."""
    if base := env.get("XDG_DATA_HOME"):
        return Path(base) / "anima" / "home"
    from platformdirs import user_data_path

    return user_data_path("anima", appauthor=False) / "home"


def in_use(env: Mapping[str, str]) -> Path | None:
    """The home that the user said they use; before they said so, the one in the data folder; None where neither is."""
    try:
        return Path((folder(env) / "in-use").read_text(encoding="utf-8").rstrip("\n"))
    except (OSError, ValueError):
        default = default_home(env)
        return default if default.is_dir() else None


def use(env: Mapping[str, str], home: Path) -> None:
    """Keeps which home the user uses. Raises Damaged."""
    file = folder(env) / "in-use"
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        temp = file.with_name(f".in-use.{os.getpid()}")
        temp.write_text(f"{home}\n", encoding="utf-8")
        temp.replace(file)
    except (OSError, ValueError) as error:
        raise Damaged(f"the home you use cannot be written down ({error})", hint=_ELSEWHERE) from None


def served(env: Mapping[str, str], root: str) -> Path:
    """Where the credentials of a served home are kept, by where it stands."""
    return folder(env) / "serve" / _mark(root)


def _mark(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16]


def _read(file: Path, what: str) -> dict[str, Any] | None:
    """The JSON object in a file; empty when there is none, None when it is damaged. Raises OSError when it may not be read."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    refuse_newer(what, found.pop("format", 1), FORMAT)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the list says of one path."""

    made: str | None = None  # when this user made a home there
    trusted: bool = False
    identity: str | None = None  # the very folder that is meant


class Register:
    """The list itself. Cheap to make; reads the file at each question, so that processes agree. `trusts` and `note` stand
    in for its own where something else says what is trusted."""

    def __init__(
        self,
        where: Path,
        trusts: Callable[[str, str], bool] | None = None,
        note: Callable[[str, str, bool], None] | None = None,
    ) -> None:
        self.file, self._trusts, self._note = where / "homes.json", trusts, note

    def known(self, root: str) -> Known | None:
        try:
            entry = (_read(self.file, _HOMES) or {}).get(root)
        except (OSError, NewerFormat):
            return None
        if not isinstance(entry, dict):
            return None
        made, identity = entry.get("made"), entry.get("identity")
        return Known(
            made=made if isinstance(made, str) else None,
            trusted=entry.get("trusted") is True,
            identity=identity if isinstance(identity, str) else None,
        )

    def owners_file(self, name: str) -> str | None:
        """The text of a file of the owner's own that stands beside the list."""
        try:
            return self.file.with_name(name).read_text(encoding="utf-8")
        except (OSError, ValueError):
            return None

    def head(self, root: str, identity: str) -> ChainHead:
        """Where the end of a home's chain is noted, so that whoever has the home's files cannot roll it back unseen."""
        return ChainHead(self.file.parent, root, identity)

    def trusts(self, root: str, identity: str) -> bool:
        """Whether this very folder is trusted: another folder moved to the same path is not."""
        if self._trusts is not None:
            return self._trusts(root, identity)
        known = self.known(root)
        return known is not None and known.trusted and known.identity == identity

    def note(self, root: str, *, identity: str, made: datetime | None = None, trusted: bool) -> None:
        """Writes down a home. Raises Damaged when the list cannot be written, NewerFormat when a newer anima wrote it."""
        if self._note is not None:
            self._note(root, identity, trusted)
            return
        with _locked(self.file.with_name(".lock"), "your list of homes cannot be read and written"):
            homes = _read(self.file, _HOMES)
            if homes is None:
                self.file.replace(self.file.with_name("homes.json.damaged"))
                homes = {}
            entry = homes.get(root)
            homes[root] = {**(entry if isinstance(entry, dict) else {}), "trusted": trusted, "identity": identity}
            if made is not None:
                homes[root]["made"] = made.isoformat()
            _save(self.file, homes)


@contextmanager
def _locked(lock: Path, otherwise: str) -> Iterator[None]:
    """The files beside a lock are ours alone inside; their folder is made. Raises Damaged with what is so `otherwise`."""
    try:
        lock.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with open(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            yield
    except OSError as error:
        said = f"{otherwise} ({os.strerror(error.errno or 0)})"
        raise Damaged(said, hint=_ELSEWHERE) from None


def _save(file: Path, held: Mapping[str, Any]) -> None:
    temp = file.with_name(f".{file.stem}.tmp")
    with open(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        json.dump({**held, "format": FORMAT}, out, indent=1, sort_keys=True)
        out.flush()
        os.fsync(out.fileno())
    temp.replace(file)


class ChainHead:
    """The last record of one home's chain that is known to be on the disk, beside the list of homes. It is bound to the
    very folder. Written in place and not synced: a note that a crash spoilt is none."""

    def __init__(self, where: Path, root: str, identity: str) -> None:
        self._file, self._identity = where / "heads" / _mark(root), identity

    def get(self) -> tuple[int, str] | None:
        try:
            n, digest, identity, sum_ = self._file.read_text(encoding="ascii").split()
            sound = sum_ == _mark(f"{n} {digest} {identity}") and identity == self._identity
            return (int(n), digest) if sound else None
        except (OSError, ValueError):
            return None

    def put(self, n: int, digest: str) -> None:
        said = f"{n} {digest} {self._identity}"
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(fd, f"{said} {_mark(said)}".ljust(159).encode() + b"\n", 0)  # always as long
        finally:
            os.close(fd)

    def drop(self) -> None:
        self._file.unlink(missing_ok=True)


class ReadOutside:
    """Which outside text came to agents elsewhere, by the marks of their credentials: beside the tokens, so that neither a
    new conversation nor another process begins without it. It stays until the owner clears it."""

    def __init__(self, where: Path) -> None:
        self._file = where / "read.json"

    def of(self, mark: str) -> frozenset[Origin]:
        """What came in with a credential; where that cannot be read, the worst is assumed."""
        try:
            held = _read(self._file, _AGENTS_READ)
            return UNTRUSTED if held is None else frozenset(map(Origin, held.get(mark, ())))
        except (OSError, ValueError, TypeError):
            return UNTRUSTED

    def add(self, mark: str, origins: frozenset[Origin]) -> None:
        """Raises Damaged when it cannot be kept."""
        if not origins <= self.of(mark):
            self._change(lambda held: held | {mark: sorted(origins | self.of(mark))})

    def clear(self, marks: Iterable[str]) -> None:
        """The owner vouches for what was read so far."""
        gone = set(marks)
        self._change(lambda held: {mark: read for mark, read in held.items() if mark not in gone})

    def _change(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        with _locked(self._file.with_name(".read.lock"), "what was read cannot be kept"):
            if (held := _read(self._file, _AGENTS_READ)) is None:
                raise Damaged("what was read cannot be told: read.json is damaged", hint="move it out of the way")
            _save(self._file, change(held))


class UserFiles:
    """The user's own files that speak of one home: the list of homes, and the tokens of a served one."""

    def __init__(self, env: Mapping[str, str], root: str, identity: str) -> None:
        self._register, self._root, self._identity = Register(folder(env)), root, identity
        self._tokens = served(env, root) / "passes.json"

    def check(self) -> Iterator[Remark]:
        for file, said in (
            (self._register.file, "Your list of homes cannot be read; no home counts as trusted."),
            (self._tokens, "The tokens of this home cannot be read; nobody can come in."),
        ):
            held: object = {}
            with suppress(OSError, NewerFormat):
                held = _read(file, file.name)
            if held is None:  # it is there and holds no JSON object
                yield Remark(name="user-file-broken", about=file.name, message=said)

    def mend(self, found: Remark) -> str:
        file = self._tokens if found.about == self._tokens.name else self._register.file
        names = (file.with_name(f"{file.name}.damaged{'' if n == 1 else f'-{n}'}") for n in count(1))
        place = next(name for name in names if not os.path.lexists(name))
        try:
            file.replace(place)
        except OSError as error:
            raise Damaged(f"{file.name} cannot be moved ({os.strerror(error.errno or 0)})") from None
        if file == self._tokens:
            return f"it is called {place.name} now; make new tokens"
        self._register.note(self._root, identity=self._identity, trusted=False)
        return f"it is called {place.name} now; this home is noted again, not trusted"


def place_of(path: str | Path) -> str:
    """Where a path leads, as the user's list names it, whether or not anything is there."""
    try:
        return str(Path(path).expanduser().resolve())
    except (OSError, RuntimeError, ValueError):
        return str(path)
