"""Credentials of a served home: who may ask, as what, until when.

Promise: they lie in the user's own configuration, never in a home, so that no tool of an agent reaches them and no copy
of a home carries them. Files are 0600 in a 0700 folder. Secrets are 256 bits, a browser's twice as many, for its two
halves; only digests are kept, but for the owner's own token, whose file is the way programs of the owner get in. A code
works once. What another process makes or revokes counts at the next question. Not here: how a credential travels (guard).
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple

from anima.connect import locked, write_private
from anima.errors import BadArguments, Damaged, NotFound, refuse_newer
from anima.model import Access, Scope

Kind = Literal["owner", "agent", "page"]
FORMAT = 1
CODE_LIFETIME = timedelta(minutes=10)
PAGE_LIFETIME = timedelta(days=30)
TICKET_SECONDS = 60
MOST_PASSES = 1_000
MOST_SHOWN = 10_000
_SHAPE = re.compile(r"anima_([0-9a-f]{12})_(?:[0-9a-f]{64}){1,2}")
_HALF = 64  # characters of a page's secret that are not in its cookie
_CODE = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """What a credential allows. `owner` and `page` are the owner; an `agent` has the scope and sender it was made for."""

    id: str
    kind: Kind
    name: str
    made: datetime
    expires: datetime | None = None
    agent: str | None = None
    scope: Scope | None = None
    sender: str | None = None
    access: Access = "rw"

    @property
    def is_owner(self) -> bool:
        return self.kind != "agent"

    @property
    def credential(self) -> str:
        """What stands for it at every door."""
        return f"token:{self.id}"


class _Held(NamedTuple):
    """The file as it was read: passes with the digests of their secrets, and codes with the end of their time."""

    passes: dict[str, tuple[Pass, str]]
    codes: dict[str, datetime]


class Keyring:
    """The credentials of one home. Cheap to make; safe to share by threads and processes."""

    def __init__(self, folder: Path, *, clock: Callable[[], datetime]) -> None:
        self.folder, self._clock = folder, clock
        self._file, self._owner_file = folder / "passes.json", folder / "owner.token"
        self._mutex = threading.Lock()
        self.seen: dict[str, datetime] = {}  # when each pass was last used here
        self._shown: dict[tuple[str, str], None] = {}
        self._seen: tuple[tuple[int, int, int], _Held] | None = None

    @property
    def cookie(self) -> str:
        """The name of the page's cookie: browsers share cookies between ports, so each home has its own."""
        return f"anima-{self.folder.name[:8]}"

    @contextmanager
    def serving(self, url: str) -> Iterator[None]:
        """Whoever asks `served_at` inside is told this address. It ends with the process, however that ends."""
        file = os.open(self.folder / "served", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            with suppress(BlockingIOError):  # another serves it too, and is told
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.truncate(file, 0)
                os.write(file, url.encode())
            yield
        finally:
            os.close(file)

    def served_at(self) -> str:
        """Where a process on this machine serves the home; empty where none does."""
        try:
            with locked(self.folder / "served", os.O_RDONLY, fcntl.LOCK_SH | fcntl.LOCK_NB):
                return ""
        except BlockingIOError:
            with suppress(OSError):
                return (self.folder / "served").read_text(encoding="utf-8")
        except OSError:
            pass
        return ""

    def find(self, secret: str) -> Pass | None:
        """Whose secret this is; None when it is nobody's, lapsed or revoked."""
        shape = _SHAPE.fullmatch(secret)
        found = self._held().passes.get(shape[1]) if shape else None
        known = found[1] if found else "0" * 64
        if not hmac.compare_digest(digest_of(secret), known) or found is None or not self._is_current(found[0]):
            return None
        self.seen[found[0].id] = self._clock()
        return found[0]

    def named(self, id: str) -> Pass | None:
        """The pass of this id; None when there is none, or it is revoked or lapsed."""
        found = self._held().passes.get(id)
        return found[0] if found is not None and self._is_current(found[0]) else None

    def all(self) -> tuple[Pass, ...]:
        held = (found for found, _ in self._held().passes.values())
        return tuple(sorted(filter(self._is_current, held), key=lambda one: (one.made, one.id)))

    def _is_current(self, one: Pass) -> bool:
        return one.expires is None or one.expires > self._clock()

    def note_shown(self, id: str, face: str) -> None:
        """What has this face was drawn, all of it, for whoever has this pass."""
        self._shown[id, face] = None
        while len(self._shown) > MOST_SHOWN:
            self._shown.pop(next(iter(self._shown)), None)

    def was_shown(self, id: str, face: str) -> bool:
        return (id, face) in self._shown

    def owner_token(self) -> str:
        """The owner's own token, from its file; made, with the file, when there is none that works."""
        try:
            held = self._owner_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            held = ""
        found = self.find(held)
        if found is not None and found.kind == "owner":
            return held
        _, secret = self.make("owner", name="owner.token", scope=None)
        with self._locked():
            write_private(os.fspath(self._owner_file), (secret + "\n").encode("ascii"))
        return secret

    def make(self, kind: Kind, *, by: str | None = None, **about: Any) -> tuple[Pass, str]:
        """A new pass and its secret, which is told only now; `about` is what `new_pass` takes. `by` is the pass it is made with."""
        made = new_pass(kind, now=self._clock(), **about)
        secret = new_secret(made)
        self._add(made, digest_of(secret), by)
        return made, secret

    def make_for(
        self, agent: str, *, scope: Scope | None, sender: str | None, days: int, **about: Any
    ) -> tuple[Pass, str]:
        """The same for an agent where there is a scope, else for the owner."""
        own = {"agent": agent, "sender": sender} if scope else {}
        return self.make("agent" if scope else "owner", scope=scope, lifetime=timedelta(days=days), **own, **about)

    def _add(self, made: Pass, digest: str, by: str | None) -> None:
        with self._changing() as held:
            if len(held.passes) >= MOST_PASSES:
                raise BadArguments(f"there are {MOST_PASSES:,} tokens already", hint="revoke some: anima token list")
            held.passes[made.id] = (made, digest)

    def revoke(self, id: str) -> Pass:
        """Takes a pass back, at once and everywhere. Raises NotFound."""
        with self._changing() as held:
            if id not in held.passes:
                raise NotFound(f"there is no token {id!r}", hint="anima token list shows them")
            return held.passes.pop(id)[0]

    def code(self) -> str:
        """A code that lets one browser in, once, within ten minutes."""
        code = secrets.token_hex(16)
        with self._changing() as held:
            held.codes[digest_of(code)] = self._clock() + CODE_LIFETIME
        return code

    def link(self, url: str) -> str:
        """An address with such a code, for who opens it in a browser; it stands behind the #, which is sent to nobody."""
        return f"{url}/login#{self.code()}"

    def redeem(self, code: str) -> tuple[str, str] | None:
        """Both halves of a page's secret, for its cookie and its key; None when the code is none, was used or is too old."""
        digest = digest_of(code)
        if not _CODE.fullmatch(code) or digest not in self._held().codes:
            return None
        with self._changing() as held:
            if held.codes.pop(digest, None) is None:  # somebody else was quicker, or its time is over
                return None
        _, secret = self.make("page", name="a browser", scope=None, lifetime=PAGE_LIFETIME)
        return halved(secret)

    def _held(self) -> _Held:
        """What the file says, read again only when it changed."""
        try:
            found = self._file.stat()
        except OSError:
            return _Held({}, {})
        mark = (found.st_mtime_ns, found.st_size, found.st_ino)
        with self._mutex:
            if self._seen is None or self._seen[0] != mark:
                self._seen = (mark, self._read())
            return self._seen[1]

    @contextmanager
    def _changing(self) -> Iterator[_Held]:
        """The file to be changed, by one at a time; what has lapsed is left out. Kept where nothing went wrong."""
        with self._locked():
            held, now = self._read(), self._clock()
            passes = {name: row for name, row in held.passes.items() if self._is_current(row[0])}
            fresh = _Held(passes, {name: end for name, end in held.codes.items() if end > now})
            yield fresh
            rows = {name: {**asdict(one), "digest": digest} for name, (one, digest) in fresh.passes.items()}
            kept = {"format": FORMAT, "passes": rows, "codes": fresh.codes}
            write_private(os.fspath(self._file), json.dumps(kept, indent=1, default=datetime.isoformat).encode())

    def _read(self) -> _Held:
        try:
            raw = json.loads(self._file.read_text(encoding="utf-8"))
            refuse_newer("your tokens (passes.json)", raw.get("format", 1), FORMAT)
            passes = {name: (_parsed(name, row), str(row["digest"])) for name, row in raw["passes"].items()}
            return _Held(passes, {str(name): datetime.fromisoformat(end) for name, end in raw["codes"].items()})
        except FileNotFoundError:
            return _Held({}, {})
        except OSError as error:
            raise Damaged(f"your tokens cannot be read ({os.strerror(error.errno or 0)})", hint=_HINT) from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise Damaged("your tokens cannot be read: the file is damaged", hint=_HINT) from None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with locked(self.folder / ".lock"):
                yield
        except OSError as error:
            raise Damaged(f"your tokens cannot be kept ({os.strerror(error.errno or 0)})", hint=_HINT) from None


def new_pass(
    kind: Kind, *, name: str, scope: Scope | None, now: datetime, lifetime: timedelta | None = None, **about: Any
) -> Pass:
    """A pass that nobody has yet; `about` is what else there is to say of it. Raises BadArguments."""
    if (kind == "agent") != (scope is not None):
        raise BadArguments("an agent's token has a scope, and no other token has one")
    if not name.strip() or len(name) > 80 or not name.isprintable():
        raise BadArguments("a token's name has 1 to 80 printable characters")
    id, expires = secrets.token_hex(6), now + lifetime if lifetime else None
    return Pass(id=id, kind=kind, name=name.strip(), made=now, scope=scope, expires=expires, **about)


def new_secret(of: Pass) -> str:
    """A secret for a pass; one it had before stops working once this one's digest is kept."""
    return f"anima_{of.id}_{secrets.token_hex(64 if of.kind == 'page' else 32)}"


def is_secret(text: str) -> bool:
    """Whether a text has the form of a secret, so that it is worth looking for."""
    return _SHAPE.fullmatch(text) is not None


def halved(secret: str) -> tuple[str, str]:
    """The halves of a page's secret, for its cookie and its key."""
    return secret[:-_HALF], secret[-_HALF:]


class Tickets:
    """What lets a browser fetch one address of a page where it sends no header of ours: a picture. For a minute. Servers
    that take each other's are given the same `seal`."""

    def __init__(self, *, now: Callable[[], float], seal: bytes | None = None) -> None:
        self._now, self._seal = now, seal or secrets.token_bytes(32)

    def make(self, id: str, path: str) -> str:
        """An address with the ticket of a pass in it."""
        until = int(self._now()) + TICKET_SECONDS
        return f"{path}?ticket={id}-{until}-{self._sign(id, path, until)}"

    def holder(self, path: str, ticket: str) -> str:
        """The id of the pass for which this ticket was made; empty when it is none, for another address or too old."""
        id, until, sign = [*ticket.split("-"), "", "", ""][:3]
        if not (until.isascii() and until.isdigit() and len(until) < 12 and int(until) > self._now()):
            return ""
        own = self._sign(id, path, int(until))
        return id if hmac.compare_digest(sign.encode("utf-8", "replace"), own.encode()) else ""

    def _sign(self, id: str, path: str, until: int) -> str:
        return hmac.new(self._seal, f"{id} {until} {path}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()


_HINT = "set ANIMA_CONFIG to a folder you can write, or remove its folder serve and make new tokens"


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def _parsed(name: str, row: Mapping[str, Any]) -> Pass:
    times: dict[str, Any] = {key: row[key] and datetime.fromisoformat(row[key]) for key in ("made", "expires")}
    scope = Scope(row["scope"]) if row["scope"] else None
    more = {key: row[key] for key in ("kind", "name", "agent", "sender")}
    return Pass(id=name, scope=scope, access=row.get("access", "rw"), **times, **more)
