"""What a server of many homes asks its database: whose credential this is, and what else concerns no single home.

Promise: nothing here reads the table of credentials; functions of its owner's answer for one digest or id, and list, add
and take away for one tenant. A role that could pass over row policies is refused when a fleet is made. Not here: homes
(homes), what the owner of the database does (tenants).
"""

from __future__ import annotations

import hashlib
import select
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from anima.errors import BadArguments, Damaged
from anima.store.rows.homes import KEY, Seal, engine_at
from anima.store.rows.transaction import HomeRows

_CHANNEL, _MARKS = "anima", 200  # of one message, which has fewer than 8,000 bytes
_FOUND = "tenant tenant_name is_suspended id agent kind name scope sender access made expires".split()
_ADD = """
    select anima.credential_add(%(id)s, %(agent)s, %(kind)s, %(name)s, %(scope)s, %(sender)s, %(access)s, %(expires)s,
        %(by)s, %(digest)s)
"""
_COUNT = """
    insert into anima.usage(tenant, kind, amount) values(%(tenant)s, %(kind)s, %(amount)s)
    on conflict(tenant, day, kind) do update set amount = usage.amount + excluded.amount
"""
_COUNTED = """
    select k.kind, anima.used(k.kind), q.most from unnest(array['requests', 'tokens']) k(kind)
    left join anima.quota q on q.tenant = %(tenant)s and q.kind = k.kind
"""


class Fleet:
    """A database of homes, as the application's role. Safe to share by threads."""

    def __init__(self, address: str) -> None:
        self.address = address.partition("#")[0]
        if not self.address.startswith(("postgresql:", "postgres:")):
            raise BadArguments("many homes are served from PostgreSQL", hint="one home: anima up")
        self._engine: Any = engine_at(self.address)
        self.name: str = self._engine.name
        self._nobodys = HomeRows(self._engine, 0, 0)  # before it is known whose rows may be seen

    def hide(self) -> None:
        """From now on nothing this process says of the database tells where it stands; what it serves are others' homes."""
        self._engine.name = "postgresql://homes"

    def seal(self, env: Mapping[str, str]) -> bytes:
        """What servers with one ANIMA_KEY have in common, and nobody else. Raises BadConfig where there is none."""
        Seal(env.get(KEY), "")
        return hashlib.blake2b(env[KEY].encode(), person=b"anima-servers").digest()

    def is_there(self) -> bool:
        """Whether the database answers."""
        return bool(self._nobodys.ask("select 1"))

    def credential(self, *, digest: bytes | None = None, id: str | None = None) -> dict[str, Any] | None:
        """The credential of a digest or an id, with its tenant; None where there is none that works."""
        found = self._nobodys.one("select * from anima.credential_found(%(digest)s, %(id)s)", digest=digest, id=id)
        return dict(zip(_FOUND, found, strict=True)) if found else None

    def credentials(self, tenant: int, agent: str) -> list[dict[str, Any]]:
        """Every credential of a tenant's agent that works."""
        rows = HomeRows(self._engine, tenant, 0).ask("select * from anima.credentials_of(%(agent)s)", agent=agent)
        return [dict(zip(_FOUND[3:], row, strict=True)) for row in rows]

    def add_credential(self, tenant: int, about: Mapping[str, Any], *, by: str | None, digest: bytes) -> None:
        with self._telling(tenant) as rows:
            rows.tell(_ADD, **{**about, "by": by, "digest": digest})

    def drop_credential(self, tenant: int, id: str, agent: str) -> bool:
        """Takes a credential of a tenant's agent back, with all that was made with it; whether there was one."""
        with self._telling(tenant) as rows:
            return bool(rows.ask("select anima.credential_drop(%(id)s, %(agent)s)", id=id, agent=agent))

    # -- what tenants do ------------------------------------------------------------------------------------------------

    def count(self, tenant: int, counted: Mapping[str, int]) -> dict[str, tuple[int, int | None]]:
        """Adds to what a tenant did today, on whatever server; requests and tokens so far, each with its quota."""
        with self._telling(tenant) as rows:
            rows.tell_all(_COUNT, [{"kind": kind, "amount": amount} for kind, amount in counted.items() if amount])
            found = rows.ask(_COUNTED)
        return {kind: (int(used), most) for kind, used, most in found}

    def note_shown(self, tenant: int, pass_id: str, face: str) -> None:
        """A page showed a proposal whole to whoever has this pass."""
        with self._telling(tenant) as rows:
            rows.tell("delete from anima.shown where tenant = %(tenant)s and time < now() - interval '1 day'")
            sql = "insert into anima.shown values(%(tenant)s, %(id)s, %(face)s) on conflict do nothing"
            rows.tell(sql, id=pass_id, face=face)

    def was_shown(self, tenant: int, pass_id: str, face: str) -> bool:
        sql = "select 1 from anima.shown where tenant = %(tenant)s and pass = %(id)s and face = %(face)s"
        return bool(HomeRows(self._engine, tenant, 0).ask(sql, id=pass_id, face=face))

    # -- between servers ------------------------------------------------------------------------------------------------

    def wake(self, tenant: int, agent: str, seconds: float, *, anew: bool = False) -> None:
        """A home is looked at so many seconds from now at the latest; with `anew`, then and no earlier."""
        with self._telling(tenant) as rows:
            rows.tell("select anima.wake(%(agent)s, %(seconds)s, %(anew)s)", agent=agent, seconds=seconds, anew=anew)

    def woken(self, most: int, seconds: float) -> list[tuple[int, str, str]]:
        """Homes whose time has come, as tenant, its name, and agent; no other server is given them for so many seconds."""
        return self._nobodys.ask("select * from anima.woken(%(most)s, %(seconds)s)", most=most, seconds=seconds)

    def tell(self, marks: Iterable[str]) -> None:
        """Tells every server that something happened in homes, by marks that say nothing to anybody else."""
        told = sorted(marks)
        for at in range(0, len(told), _MARKS):
            marked = " ".join(told[at : at + _MARKS])
            self._nobodys.ask("select pg_notify(%(channel)s, %(marked)s)", channel=_CHANNEL, marked=marked)

    def heard(self, is_over: Callable[[], bool]) -> Iterator[list[str]]:
        """What servers tell, as it comes, over a connection of its own. Through a pooler that shares connections between
        transactions nothing is heard; whoever listens looks by themselves, too. Raises Damaged."""
        import psycopg

        try:
            with psycopg.connect(self.address, autocommit=True, connect_timeout=10) as db:
                db.execute(f"listen {_CHANNEL}")
                while not is_over():
                    select.select((db,), (), (), 1.0)  # the driver would look ten times meanwhile
                    for said in db.notifies(timeout=0):
                        yield said.payload.split()
        except psycopg.Error as error:
            raise Damaged(f"{self.name} cannot be listened to: {type(error).__name__}") from None

    @contextmanager
    def _telling(self, tenant: int) -> Iterator[HomeRows]:
        rows = HomeRows(self._engine, tenant, 0)
        with rows.transaction():
            yield rows
