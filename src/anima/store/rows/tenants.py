"""The tenants of a database of many homes: for whoever owns it, made, listed, suspended and erased, with their tokens and
quotas; for a server, whose credential this is, and what else concerns no single home.

Promise: `Tenants` needs the owner's role, which serves no home; `Fleet` is the application's, which never reads the table of
credentials: functions of its owner's answer for it. Erasing deletes every row of a tenant in one transaction and then looks
into every table for one; what the server still holds is said. Of a token only the digest is kept. Two that bring the tables up
to date at once do it once; each of their texts is a transaction, and one that is not the text that was carried out is said,
and nothing is done. Not here: homes (rows).
"""

from __future__ import annotations

import hashlib
import select
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from anima.errors import BadArguments, Damaged, MissingExtra, NewerFormat, NoSuchHome, NotFound, printable
from anima.store.rows import KEY, Seal, engine_at
from anima.store.rows.postgres import OWNER, shown
from anima.store.rows.transaction import HomeRows, schema_texts, statements

if TYPE_CHECKING:
    from psycopg import Connection, Cursor

KINDS = ("bytes", "documents", "requests", "tokens")  # of quotas; the last two are a day's
_CHANNEL, _MARKS = "anima", 200  # of one message, which has fewer than 8,000 bytes
_FOUND = "tenant tenant_name is_suspended id agent kind name scope sender access made expires".split()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    """A tenant, and what it has."""

    name: str
    made: datetime
    suspended: datetime | None
    agents: tuple[str, ...]
    rows: int
    bytes: int
    usage: Mapping[str, tuple[int, int | None]]  # of each kind, how much, and how much it may be


class Tenants:
    """The tenants of the database at an address of its owner's."""

    def __init__(self, address: str) -> None:
        self._address, self.name = address.partition("#")[0], shown(address)

    def create(self, name: str) -> bool:
        """Makes a tenant, and brings the tables up to date first; False where there is one of that name."""
        if not name.strip() or "/" in name or "#" in name or len(name) > 200:
            raise BadArguments("a tenant's name has 1 to 200 characters, without / and #")
        with self._owning() as db:
            bring_up(db)
            sql = "insert into anima.tenant(name) values(%s) on conflict do nothing"
            return bool(db.execute(sql, (name,)).rowcount)

    def all(self) -> list[Tenant]:
        with self._owning() as db:
            names = [row[0] for row in db.execute("select name from anima.tenant order by name").fetchall()]
            return [self._shown(db, name) for name in names]

    def show(self, name: str) -> Tenant:
        with self._owning() as db:
            return self._shown(db, name)

    def suspend(self, name: str, *, again: bool = False) -> None:
        """Lets nobody open a home of this tenant's; with `again`, lets them once more."""
        with self._owning() as db:
            self._number(db, name)
            _run(db, "tenant_suspended", again=again, name=name)

    def erase(self, name: str) -> tuple[int, str]:
        """Deletes all that a tenant has; how many rows went, and what is out of reach. Raises Damaged if one is left."""
        with self._owning() as db:
            number = self._number(db, name)
            with as_owner(db, number):
                db.execute("select from anima.tenant where tenant = %s for update", (number,))
                for table in ("home", "made"):  # whoever writes has one of these; who comes later finds neither
                    db.execute(f"select from anima.{table} where tenant = %s for update", (number,))
                own, tables = f"from anima.{{}} where tenant = {number}", _tables(db)
                gone = sum(db.execute(f"delete {own.format(table)}").rowcount for table in tables)
                left = [table for table in tables if db.execute(f"select 1 {own.format(table)} limit 1").fetchone()]
                if left:
                    raise Damaged(f"{name} still has rows in {', '.join(left)}; nothing was erased")
                db.execute("delete from anima.tenant where tenant = %s", (number,))
            at = next(iter(db.execute("select pg_current_wal_lsn()").fetchone() or ("now",)))
        until = f"dead rows until the server vacuums, its log up to {at} until that is recycled or archived no more"
        return gone, f"{until}, and backups until they expire still hold it"

    def set_quota(self, name: str, quotas: Mapping[str, int]) -> None:
        """How much a tenant may have or do of each kind; 0 is as much as it likes."""
        with self._owning() as db:
            number = self._number(db, name)
            with as_owner(db, number):
                for kind, most in quotas.items():
                    db.execute("delete from anima.quota where tenant = %s and kind = %s", (number, kind))
                    if most:
                        db.execute("insert into anima.quota values(%s, %s, %s)", (number, kind, most))

    def tokens(self, name: str) -> list[dict[str, Any]]:
        with self._owning() as db:
            rows = _run(db, "credentials", tenant=self._number(db, name)).fetchall()
        return [dict(zip(_FOUND[3:], row, strict=True)) for row in rows]

    def add_token(self, name: str, about: Mapping[str, Any], digest: bytes) -> None:
        with self._owning() as db, as_owner(db, self._number(db, name)):
            _run(db, "credential_new", **{**about, "by": None, "digest": digest})

    def rotate_token(self, name: str, id: str, digest: bytes, *, grace: timedelta) -> None:
        """Another secret. The one before works for `grace`; browsers that came in with it do not. Raises NotFound."""
        with self._owning() as db, db.transaction():
            number = self._number(db, name)
            if not _run(db, "credential_rotated", digest=digest, grace=grace, tenant=number, id=id).rowcount:
                raise _no_token(id)
            _run(db, "credential_pages_gone", tenant=number, id=id)

    def revoke_token(self, name: str, id: str) -> None:
        """Takes a credential back, at once and everywhere, with all that was made with it. Raises NotFound."""
        with self._owning() as db:
            number = self._number(db, name)
            with as_owner(db, number):
                if not _run(db, "credential_gone", tenant=number, id=id).fetchall():
                    raise _no_token(id)

    def _shown(self, db: Connection[Any], name: str) -> Tenant:
        number = self._number(db, name)
        sql = "select made, suspended from anima.tenant where tenant = %s"
        made, suspended = next(iter(db.execute(sql, (number,)).fetchall()))
        with as_owner(db, number):
            agents = tuple(row[0] for row in db.execute("select agent from anima.home order by agent").fetchall())
            rows = bytes = 0
            for table in _tables(db):
                sql = f"select count(*), coalesce(sum(pg_column_size(each)), 0) from anima.{table} as each where tenant = %s"
                found = db.execute(sql, (number,)).fetchone() or (0, 0)
                rows, bytes = rows + int(found[0]), bytes + int(found[1])
            found = _run(db, "usage", kinds=list(KINDS), tenant=number).fetchall()
            usage = {kind: (used, most) for kind, used, most in found}
        return Tenant(name=name, made=made, suspended=suspended, agents=agents, rows=rows, bytes=bytes, usage=usage)

    def _number(self, db: Connection[Any], name: str) -> int:
        found = db.execute("select tenant from anima.tenant where name = %s", (name,)).fetchone()
        if found is None:
            raise NoSuchHome(f"{self.name}: there is no tenant {name!r}", hint="anima tenant create makes one")
        return int(found[0])

    @contextmanager
    def _owning(self) -> Iterator[Connection[Any]]:
        try:
            import psycopg
        except ImportError:
            raise MissingExtra("postgres", "a home in PostgreSQL") from None
        try:
            with psycopg.connect(self._address, autocommit=True, connect_timeout=10) as db:
                yield db
        except psycopg.Error as error:
            said = (str(error).strip().splitlines() or [""])[0]
            hint = "tenants are made by whoever owns the database, who may make roles or has anima_owner"
            raise Damaged(f"{self.name}: {said}", hint=hint) from None


def _run(db: Connection[Any], name: str, /, **given: Any) -> Cursor[Any]:
    return db.execute(statements()[name], given or None)


def _tables(db: Connection[Any]) -> list[str]:
    return [row[0] for row in _run(db, "tables").fetchall()]


def _no_token(id: str) -> NotFound:
    return NotFound(f"there is no token {printable(id)!r}", hint="anima tenant token list NAME shows them")


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
        return bool(self._nobodys.ask("select 1"))

    def credential(self, *, digest: bytes | None = None, id: str | None = None) -> dict[str, Any] | None:
        """The credential of a digest or an id, with its tenant; None where there is none that works."""
        found = self._nobodys.one("select * from anima.credential_found(%(digest)s, %(id)s)", digest=digest, id=id)
        return dict(zip(_FOUND, found, strict=True)) if found else None

    def credentials(self, tenant: int, agent: str) -> list[dict[str, Any]]:
        rows = HomeRows(self._engine, tenant, 0).ask("select * from anima.credentials_of(%(agent)s)", agent=agent)
        return [dict(zip(_FOUND[3:], row, strict=True)) for row in rows]

    def add_credential(self, tenant: int, about: Mapping[str, Any], *, by: str | None, digest: bytes) -> None:
        with self._telling(tenant) as rows:
            rows.tell("credential_new", **{**about, "by": by, "digest": digest})

    def drop_credential(self, tenant: int, id: str, agent: str) -> bool:
        """Takes a credential of a tenant's agent back, with all that was made with it; whether there was one."""
        with self._telling(tenant) as rows:
            return bool(rows.ask("select anima.credential_drop(%(id)s, %(agent)s)", id=id, agent=agent))

    def count(self, tenant: int, counted: Mapping[str, int]) -> dict[str, tuple[int, int | None]]:
        """Adds to what a tenant did today, on whatever server; requests and tokens so far, each with its quota."""
        with self._telling(tenant) as rows:
            rows.tell_all("usage_new", [{"kind": kind, "amount": amount} for kind, amount in counted.items() if amount])
            found = rows.ask("usage", kinds=["requests", "tokens"])
        return {kind: (int(used), most) for kind, used, most in found}

    def note_shown(self, tenant: int, pass_id: str, face: str) -> None:
        """A page showed a proposal whole to whoever has this pass."""
        with self._telling(tenant) as rows:
            rows.tell("delete from anima.shown where tenant = %(tenant)s and time < now() - interval '1 day'")
            rows.tell("shown_new", id=pass_id, face=face)

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


_LOCK = 0x616E696D61  # one number for all who bring tables up to date


def bring_up(db: Connection[Any]) -> int:
    """Makes roles and tables, or brings them up to date, as the owner; how many texts were carried out. Raises Damaged
    where an earlier text is another one, NewerFormat where a newer anima was here."""
    db.execute("select pg_advisory_lock(%s)", (_LOCK,))
    try:
        _run(db, "roles")
        with as_owner(db):
            _run(db, "migration")
            done = dict(db.execute("select n, digest from anima.migration").fetchall())
        if len(done) > len(schema_texts()):
            raise NewerFormat("the database", found=len(done), known=len(schema_texts()))
        for n, text in enumerate(schema_texts(), 1):
            digest = hashlib.sha256(text.encode()).hexdigest()
            if done.get(n, digest) != digest:
                raise Damaged(f"the tables were made by another text {n} than this anima has; nothing was changed")
            if n not in done:
                with as_owner(db):
                    db.execute(text)
                    db.execute("insert into anima.migration(n, digest) values(%s, %s)", (n, digest))
        return len(schema_texts()) - len(done)
    finally:
        db.execute("select pg_advisory_unlock(%s)", (_LOCK,))


@contextmanager
def as_owner(db: Connection[Any], tenant: int | None = None) -> Iterator[None]:
    """A transaction as the owner of the tables, who sees the rows of one tenant at most."""
    with db.transaction():
        db.execute(f"set local role {OWNER}")
        if tenant is not None:
            db.execute(f"set local app.tenant to '{int(tenant)}'")
        yield
