"""Connections to PostgreSQL, and transactions that say whose rows they may see. The one module that opens them.

Promise: no statement runs outside a transaction that names its tenant (`SET LOCAL`), so a pooled connection carries
nothing over. A role that could pass over the row policies is refused before anything is read. Statements are sent
together; a lost connection is told from an error. Not here: what a transaction is to a home (transaction).
"""

from __future__ import annotations

import atexit
import os
import select
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from anima.errors import Damaged, HomeBusy, MissingExtra, NewerFormat, NoSuchHome, Refused
from anima.store.rows.transaction import WAIT, Engine, LostConnection, Row, T, Transaction, schema_texts, statements

if TYPE_CHECKING:
    from psycopg import Connection, Cursor
    from psycopg_pool import ConnectionPool

OWNER, APPLICATION = "anima_owner", "anima_app"  # roles, also in SQL: who makes the tables, and who serves homes


def shown(address: str) -> str:
    """An address as people may see it, without user or password."""
    parts = urlsplit(address)
    return f"postgresql://{parts.hostname or 'local'}{f':{parts.port}' if parts.port else ''}{parts.path}"


class PostgresDatabase(Engine):
    """One server as this process knows it. Homes share its pool."""

    needs_tenant, alone_writes = True, False

    def __init__(self, address: str) -> None:
        try:
            from psycopg_pool import ConnectionPool
        except ImportError:
            raise MissingExtra("postgres", "a home in PostgreSQL") from None
        self.address, self.name = address, shown(address)
        how = {"autocommit": True, "prepare_threshold": None, "application_name": f"anima {os.getpid()}"}
        self.pool: ConnectionPool[Connection[Any]] = ConnectionPool(
            address, min_size=0, max_size=16, timeout=WAIT, kwargs=how, open=False, reconnect_timeout=WAIT
        )
        self.pool.open()
        atexit.register(self.pool.close)
        self._check_role()

    def _check_role(self) -> None:
        """Refuses to serve where another tenant's rows could be reached, or where tables are not the ones we know."""
        import psycopg

        try:
            with psycopg.connect(self.address, connect_timeout=10) as db:
                may_pass, is_bound, done = db.execute(statements()["role"]).fetchone() or (True, False, 0)
        except psycopg.OperationalError as error:
            raise Damaged(f"{self.name} cannot be reached: {_first_line(error)}") from None
        except psycopg.Error:
            hint = "whoever owns the database says anima tenant create first"
            raise Refused(f"{self.name}: there are no tables of anima's that this role may use", hint=hint) from None
        if may_pass or not is_bound:
            said = f"{self.name}: this role could see the rows of every tenant, so no home is served with it"
            hint = f"connect as {APPLICATION}, or as a role that has nothing but its rights"
            raise Refused(said, rule="bypasses-row-security", hint=hint)
        if done > len(schema_texts()):
            raise NewerFormat("the database", found=done, known=len(schema_texts()))
        if done < len(schema_texts()):
            hint = "anima tenant create brings them up to date"
            raise Refused(f"{self.name}: the tables are of an earlier version", hint=hint)

    @contextmanager
    def connection(self) -> Iterator[Connection[Any]]:
        """A connection of the pool; one that is lost is not given back."""
        from psycopg_pool import PoolTimeout

        try:
            while _is_gone(db := self.pool.getconn()):
                db.close()
                self.pool.putconn(db)
        except PoolTimeout:
            why = f"every connection to {self.name} is in use, or it is away; nobody we know of"
            raise HomeBusy(why, seconds=WAIT) from None
        try:
            yield db
        finally:
            self.pool.putconn(db)

    def tenant(self, name: str) -> int:
        """The number of a tenant. Raises NoSuchHome, or Refused for one that is suspended."""
        with self.connection() as db, self.translated(Transaction(db)):
            found = db.execute("select tenant, is_suspended from anima.tenant_called(%s)", (name,)).fetchone()
        if found is None:
            raise NoSuchHome(f"{self.name}: there is no tenant {name!r}", hint="anima tenant create makes one")
        if found[1]:
            raise Refused(f"{self.name}: the tenant {name!r} is suspended", rule="suspended")
        return int(found[0])

    def run(self, db: Connection[Any], statement: str, given: Mapping[str, Any]) -> Cursor[Any]:
        return db.execute(_with_content(statement), given)

    def run_all(self, db: Connection[Any], statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        db.cursor().executemany(statement, rows)

    def rows(self, found: Cursor[Any]) -> list[Row]:
        return [*found.fetchall()]

    def asked(self, db: Connection[Any], tenant: int, statement: str, given: Mapping[str, Any]) -> list[Row]:
        """One message and one wait: statements sent as one text are a transaction of their own."""
        from psycopg import ClientCursor

        found: Cursor[Any] = ClientCursor(db)
        found.execute(f"set local app.tenant to '{tenant}'; {_with_content(statement)}", given)
        found.nextset()
        return self.rows(found)

    def streamed(
        self, db: Connection[Any], tenant: int, statement: str, given: Mapping[str, Any], made: Callable[[Row], T]
    ) -> list[T]:
        """What is large comes as the bytes it is, not as text, and the server reads on while what it sent is worked on."""
        import psycopg

        with db.pipeline():
            self.begin(db, tenant, None)
        try:
            size = 16 if psycopg.capabilities.has_stream_chunked() else 1
            rows: Any = db.cursor().stream(statement, given, binary=True, size=size)
            with closing(rows):
                return [made(row) for row in rows]
        finally:
            with suppress(psycopg.Error):
                db.rollback()

    def begin(self, db: Connection[Any], tenant: int, patience: float | None) -> None:
        db.execute("begin")
        db.execute(f"set local app.tenant to '{tenant}'")

    def locked(self, held: Transaction, row: Callable[[], Row | None], patience: float) -> Row | None:
        import psycopg

        try:
            with self.translated(held):
                held.db.execute(f"set local lock_timeout to {max(1, int(patience * 1000))}")
                return row()
        except psycopg.errors.LockNotAvailable:
            raise HomeBusy("another connection", seconds=patience) from None

    @contextmanager
    def sending(self, db: Connection[Any]) -> Iterator[None]:
        import psycopg

        try:
            with db.pipeline():
                yield
        finally:
            with suppress(psycopg.Error):
                db.rollback()

    @contextmanager
    def translated(self, held: Transaction) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.Error as error:
            held.is_broken = True
            if isinstance(error, psycopg.errors.LockNotAvailable):
                raise
            if isinstance(error, psycopg.errors.ForeignKeyViolation):  # its tenant was erased
                raise NoSuchHome(f"{self.name}: this home is gone") from None
            if held.db.closed or error.diag.severity_nonlocalized in ("FATAL", "PANIC"):
                held.db.close()  # the server ends it, though its end may not have been read yet
                raise LostConnection(f"{self.name} went away ({_first_line(error)}); nothing was written") from None
            raise Damaged(f"{self.name}: {_first_line(error)}; nothing was written") from error


def _with_content(statement: str) -> str:
    return statement.replace("[content]", statements()["content_in_postgres"])


def _is_gone(db: Connection[Any]) -> bool:
    """Whether its server closed an idle connection: else there is nothing to read. Asking would cost a wait."""
    ready = select.poll()
    ready.register(db.fileno(), select.POLLIN)
    return bool(ready.poll(0))


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
