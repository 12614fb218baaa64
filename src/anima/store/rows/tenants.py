"""The tenants of a database, for whoever owns it: made, listed, suspended and erased; their tokens and quotas.

Promise: what is done here needs the owner's role, which serves no home. Erasing deletes every row of a tenant in one
transaction and then looks into every table that the database has for one; what dead rows, the write-ahead log and backups still hold is the
server's, and said. Of a token only the digest is kept; one that is rotated keeps its id, since what came in with it stays
known by that, and with one that is revoked goes all that was made with it. Not here: homes (homes), tables (schema), what
a server asks (fleet).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from anima.errors import BadArguments, Damaged, MissingExtra, NoSuchHome, NotFound, printable
from anima.store.rows.postgres import shown
from anima.store.rows.schema import as_owner, bring_up

if TYPE_CHECKING:
    from psycopg import Connection

_TABLES = """
    select c.relname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attname = 'tenant'
    where c.relnamespace = 'anima'::regnamespace and c.relkind in ('r', 'p') and c.relname != 'tenant' order by 1
"""
_LEFT = (
    "dead rows until the server vacuums, its log up to {} until that is recycled or archived no more, and backups until they "
    "expire still hold it"
)
KINDS = ("bytes", "documents", "requests", "tokens")  # of quotas; the last two are a day's
_SHOWN = "id, agent, kind, name, scope, sender, access, made, expires"  # of a credential


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
            sql = "update anima.tenant set suspended = case when %s then null else now() end where name = %s"
            db.execute(sql, (again, name))

    def erase(self, name: str) -> tuple[int, str]:
        """Deletes everything a tenant has, and the tenant; how many rows went, and what is out of reach. Raises Damaged
        where a table still has one."""
        with self._owning() as db:
            number = self._number(db, name)
            with as_owner(db, number):
                db.execute("select from anima.tenant where tenant = %s for update", (number,))
                db.execute("select from anima.home where tenant = %s for update", (number,))
                own, tables = f"from anima.{{}} where tenant = {number}", _tables(db)
                gone = sum(db.execute(f"delete {own.format(table)}").rowcount for table in tables)
                left = [table for table in tables if db.execute(f"select 1 {own.format(table)} limit 1").fetchone()]
                if left:
                    raise Damaged(f"{name} still has rows in {', '.join(left)}; nothing was erased")
                db.execute("delete from anima.tenant where tenant = %s", (number,))
            at = next(iter(db.execute("select pg_current_wal_lsn()").fetchone() or ("now",)))
        return gone, _LEFT.format(at)

    def set_quota(self, name: str, quotas: Mapping[str, int]) -> None:
        """How much a tenant may have or do of each kind; 0 is as much as it likes."""
        with self._owning() as db:
            number = self._number(db, name)
            with as_owner(db, number):
                for kind, most in quotas.items():
                    db.execute("delete from anima.quota where tenant = %s and kind = %s", (number, kind))
                    if most:
                        db.execute("insert into anima.quota values(%s, %s, %s)", (number, kind, most))

    # -- tokens ---------------------------------------------------------------------------------------------------------

    def tokens(self, name: str) -> list[dict[str, Any]]:
        """Every credential of a tenant's that works, the oldest first, without its digest."""
        sql = f"""
            select {_SHOWN} from anima.credential where tenant = %s and (expires is null or expires > now())
            order by made, id
        """
        with self._owning() as db:
            rows = db.execute(sql, (self._number(db, name),)).fetchall()
        return [dict(zip(_SHOWN.split(", "), row, strict=True)) for row in rows]

    def add_token(self, name: str, about: Mapping[str, Any], digest: bytes) -> None:
        """Keeps a new credential: what it is, and the digest of its secret."""
        given = {key: about[key] for key in _SHOWN.split(", ") if key != "made"}
        sql = f"""
            insert into anima.credential(tenant, digest, {", ".join(given)})
            values(%(tenant)s, %(digest)s, {", ".join(f"%({key})s" for key in given)})
        """
        with self._owning() as db:
            db.execute(sql, {**given, "tenant": self._number(db, name), "digest": digest})

    def rotate_token(self, name: str, id: str, digest: bytes, *, grace: timedelta) -> None:
        """Gives a credential another secret. The one before works as long as `grace` says; browsers that came in with it
        do not. Raises NotFound."""
        sql = """
            update anima.credential set digest = %s, before = digest, until = now() + %s
            where tenant = %s and id = %s and kind != 'page' and (expires is null or expires > now())
        """
        with self._owning() as db, db.transaction():
            number = self._number(db, name)
            if not db.execute(sql, (digest, grace, number, id)).rowcount:
                raise _no_token(id)
            sql = "delete from anima.credential where tenant = %s and made_by = %s and kind = 'page'"
            db.execute(sql, (number, id))

    def revoke_token(self, name: str, id: str) -> None:
        """Takes a credential back, at once and everywhere, with all that was made with it. Raises NotFound."""
        with self._owning() as db:
            number = self._number(db, name)
            with as_owner(db, number):
                sql = "select anima.credential_drop(id, agent) from anima.credential where tenant = %s and id = %s"
                if not db.execute(sql, (number, id)).fetchall():
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
            sql = """
                select k.kind, anima.used(k.kind), q.most from unnest(%s::text[]) with ordinality k(kind, n)
                left join anima.quota q on q.tenant = %s and q.kind = k.kind order by n
            """
            usage = {kind: (used, most) for kind, used, most in db.execute(sql, (list(KINDS), number)).fetchall()}
        return Tenant(name=name, made=made, suspended=suspended, agents=agents, rows=rows, bytes=bytes, usage=usage)

    def _number(self, db: Connection[Any], name: str) -> int:
        found = db.execute("select tenant from anima.tenant where name = %s", (name,)).fetchone()
        if found is None:
            raise NoSuchHome(f"{self.name}: there is no tenant {name!r}", hint=f"anima tenant create {name}")
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


def _tables(db: Connection[Any]) -> list[str]:
    """Every table that has rows of tenants: none that comes later is forgotten."""
    return [row[0] for row in db.execute(_TABLES).fetchall()]


def _no_token(id: str) -> NotFound:
    return NotFound(f"there is no token {printable(id)!r}", hint="anima tenant token list NAME shows them")
