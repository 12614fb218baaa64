"""Homes in a database, on a server of many tenants or in one file: found by tenant and agent, their keys sealed by a key
from the environment.

Promise: a tenant nobody made is an error and never a default; an address may say whose home is meant, so that one variable
is enough. What vouches for a home stands in its row, where no archive reaches.
Not here: tenants being made (tenants), what is kept in a home (store).
"""

from __future__ import annotations

import hashlib
import os
import secrets
import uuid
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from anima.errors import BadArguments, BadConfig, Damaged, NoSuchHome
from anima.store import MACHINE
from anima.store.rows.files import FileRows, RowDocuments
from anima.store.rows.transaction import Engine, HomeRows

KEY, TENANT = "ANIMA_KEY", "ANIMA_TENANT"
_LEAST_KEY = 32


class Seal:
    """Closes and opens the keys of homes by a key from the environment, so that a dump of the database tells no digest."""

    def __init__(self, given: str | None, bound: str) -> None:
        if not given or len(given) < _LEAST_KEY:
            what = "is too short" if given else "is not set"
            said = f"{KEY} {what}: it seals the keys of homes in a database, and has {_LEAST_KEY} characters or more"
            hint = "make one with: openssl rand -hex 32, and keep it where backups of the database are not"
            raise BadConfig(said, where=KEY, hint=hint)
        self._bound, self._key = bound.encode(), hashlib.blake2b(given.encode(), digest_size=32).digest()

    def closed(self, secret: bytes) -> bytes:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = secrets.token_bytes(12)
        return nonce + AESGCM(self._key).encrypt(nonce, secret, self._bound)

    def opened(self, sealed: bytes) -> bytes:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self._key).decrypt(sealed[:12], sealed[12:], self._bound)
        except InvalidTag:
            raise Damaged(f"{KEY} is not the key that this home's key was sealed with; nothing was read") from None


class Unsealed:
    """A file keeps its homes' keys as a folder does: whoever can read it could read the documents."""

    def closed(self, secret: bytes) -> bytes:
        return secret

    opened = closed


class RowPlace(NamedTuple):
    """A home's place in a database."""

    rows: HomeRows
    name: str
    identity: str
    seal: Seal | Unsealed

    @property
    def documents(self) -> RowDocuments:
        return RowDocuments(FileRows(self.rows), name=self.name, identity=self.identity)

    @property
    def made_as(self) -> str:
        return (FileRows(self.rows).content(f"{MACHINE}/made") or b"").decode("utf-8", "replace").strip()

    @property
    def is_trusted(self) -> bool:
        found = self.rows.one("select trusted from anima.home where [own]")
        return bool(found and found[0])

    def trust(self, is_trusted: bool) -> None:
        with self.rows.transaction():
            self.rows.tell("update anima.home set trusted = %(trusted)s where [own]", trusted=is_trusted)


def find_home(
    address: str, *, tenant: str | None, agent: str | None, env: Mapping[str, str], create: bool = False
) -> RowPlace:
    """The home of a tenant's agent; with `create` an empty one is made where there is none. Raises NoSuchHome. An address
    may say both itself, as `postgresql://host/db#tenant/agent`; ANIMA_TENANT is asked before a default is. A file has no
    tenants, and may name the agent: `file:/srv/homes.db#agent`."""
    address, _, whose = address.partition("#")
    engine = engine_at(address, create=create)
    if engine.needs_tenant:
        tenant, agent = tenant or whose.partition("/")[0] or env.get(TENANT), agent or whose.partition("/")[2]
        if not tenant:
            hint = f"say tenant=…, set {TENANT}, or write it into the address: postgresql://host/db#tenant"
            raise BadArguments("a home in a database belongs to a tenant, and none is named", hint=hint)
    elif tenant:
        raise BadArguments(f"{engine.name}: a file has no tenants; several agents share one by file:…#agent")
    else:
        agent = agent or whose
    agent, rows = agent or "main", HomeRows(engine, engine.tenant(tenant or ""), 0)
    sql = "select home, identity from anima.home where tenant = %(tenant)s and agent = %(agent)s"
    found = rows.one(sql, agent=agent)
    for _ in range(20 if create else 0):  # two that are made at once want the same number
        if found is not None:
            break
        with rows.transaction():
            rows.tell("home_made", agent=agent, identity=str(uuid.uuid4()))
        found = rows.one(sql, agent=agent)
    whose = f"{tenant}/{agent}" if tenant else agent
    if found is None:
        raise NoSuchHome(f"{engine.name}: there is no agent {whose!r}", hint="anima init makes one")
    name = f"{engine.name} {whose}" if tenant or agent != "main" else engine.name
    rows, identity = HomeRows(engine, rows.tenant, found[0]), found[1]
    if engine.needs_tenant:
        return RowPlace(rows, name, identity, Seal(env.get(KEY), identity))
    return RowPlace(rows, name, f"{identity}.{engine.mark}", Unsealed())  # trust is bound to this very file


def engine_at(address: str, *, create: bool = False) -> Engine:
    """The database at an address, opened once in this process; with `create` a file is made where none is."""
    if address.startswith(("postgresql:", "postgres:")):
        return _server(address, os.getpid())
    from anima.store.rows.sqlite import one_file

    return one_file(address, create=create)


@cache
def _server(address: str, process: int) -> Engine:
    from anima.store.rows.postgres import PostgresDatabase

    return PostgresDatabase(address)
