"""Connections to PostgreSQL, and transactions that say whose rows they may see. The one module that opens connections.

Promise: no statement runs outside a transaction that names its tenant (`SET LOCAL`), so a pooled connection carries
nothing over. A role that could pass over the row policies is refused before anything is read. What a thread does while it
holds a home's lock is one transaction, the lock the home's row; a lost connection is told from a lost answer: whether
COMMIT took effect is looked up by what it wrote. Not here: what the rows mean.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from anima.errors import Damaged, HomeBusy, HomeError, MissingExtra, NewerFormat, NoSuchHome, Refused
from anima.store.postgres.schema import APPLICATION, OWNER, texts

if TYPE_CHECKING:
    from psycopg import Connection, Cursor
    from psycopg_pool import ConnectionPool

OWN = "{0}tenant = %(tenant)s and {0}home = %(home)s"  # what `[own]` stands for, and `[own a]` for a table called a
_CONNECTIONS = 16
_WAIT = 30.0  # seconds for a connection of the pool
_REACH = 10  # and for the first of all
_ROLE = f"""
    select rolsuper or rolbypassrls or pg_has_role(current_user, '{OWNER}', 'member'),
        coalesce((select bool_and(row_security_active(c.oid)) from pg_class c
            where c.relnamespace = 'anima'::regnamespace and c.relkind in ('r', 'p')
            and c.relname not in ('tenant', 'migration')), false),
        (select count(*) from anima.migration)
    from pg_roles where rolname = current_user
"""
_LOCK = """
    select version, records, bytes, anchored, epoch from anima.home
    where [own] for update
"""


def shown(address: str) -> str:
    """An address as people may see it, without user or password."""
    parts = urlsplit(address)
    return f"postgresql://{parts.hostname or 'local'}{f':{parts.port}' if parts.port else ''}{parts.path}"


class LostConnection(Damaged):
    """The server went away before COMMIT was sent, or had not carried it out: nothing was written."""


class Transaction:
    """A transaction of one thread. `row` is the home's row where it has the home's lock."""

    def __init__(self, db: Connection[Any]) -> None:
        self.db, self.depth = db, 1
        self.row: tuple[int, ...] | None = None
        self.is_broken = False
        self.kept: dict[str, Any] = {}  # what whoever writes remembers for as long
        self.before: list[Callable[[], object]] = []  # called to send what goes with COMMIT
        self.after: list[Callable[[bool], object]] = []  # told at the end whether it was committed
        self.proof: tuple[str, Mapping[str, Any]] | None = None  # what finds a row only where it was committed


class Database:
    """One server as this process knows it. Homes share its pool."""

    def __init__(self, address: str) -> None:
        try:
            from psycopg_pool import ConnectionPool
        except ImportError:
            raise MissingExtra("postgres", "a home in PostgreSQL") from None
        self.address, self.name = address, shown(address)
        how = {"autocommit": True, "prepare_threshold": None, "application_name": f"anima {os.getpid()}"}
        self.pool: ConnectionPool[Connection[Any]] = ConnectionPool(
            address, min_size=0, max_size=_CONNECTIONS, timeout=_WAIT, kwargs=how, open=False, reconnect_timeout=_WAIT
        )
        self.pool.open()
        atexit.register(self.pool.close)
        self._check_role()

    def _check_role(self) -> None:
        """Refuses to serve where another tenant's rows could be reached, or where tables are not the ones we know."""
        import psycopg

        try:
            with psycopg.connect(self.address, connect_timeout=_REACH) as db:
                may_pass, is_bound, done = db.execute(_ROLE).fetchone() or (True, False, 0)
        except psycopg.OperationalError as error:
            raise Damaged(f"{self.name} cannot be reached: {_first_line(error)}") from None
        except psycopg.Error:
            hint = "whoever owns the database says anima tenant create first"
            raise Refused(f"{self.name}: there are no tables of anima's that this role may use", hint=hint) from None
        if may_pass or not is_bound:
            raise Refused(
                f"{self.name}: this role could see the rows of every tenant, so no home is served with it",
                rule="bypasses-row-security",
                hint=f"connect as {APPLICATION}, or as a role that has nothing but its rights",
            )
        if done > len(texts()):
            raise NewerFormat("the database", found=done, known=len(texts()))
        if done < len(texts()):
            hint = "anima tenant create brings them up to date"
            raise Refused(f"{self.name}: the tables are of an earlier version", hint=hint)

    @contextmanager
    def connection(self) -> Iterator[Connection[Any]]:
        """A connection of the pool; one that is lost is not given back."""
        from psycopg_pool import PoolTimeout

        try:
            db = self.pool.getconn()
        except PoolTimeout:
            why = f"every connection to {self.name} is in use, or it is away; nobody we know of"
            raise HomeBusy(why, seconds=_WAIT) from None
        try:
            yield db
        finally:
            self.pool.putconn(db)

    def tenant(self, name: str) -> int:
        """The number of a tenant. Raises NoSuchHome, or Refused for one that is suspended."""
        with self.connection() as db, _translated(self.name, Transaction(db)):
            found = db.execute("select tenant, is_suspended from anima.tenant_called(%s)", (name,)).fetchone()
        if found is None:
            raise NoSuchHome(f"{self.name}: there is no tenant {name!r}", hint=f"anima tenant create {name}")
        if found[1]:
            raise Refused(f"{self.name}: the tenant {name!r} is suspended", rule="suspended")
        return int(found[0])


@cache
def database_at(address: str, process: int) -> Database:
    return Database(address)


def database(address: str) -> Database:
    """The database at an address, opened once in this process."""
    return database_at(address, os.getpid())


class HomeRows:
    """The rows of one home, or of one tenant where the home is 0. Every statement goes through here."""

    def __init__(self, database: Database, tenant: int, home: int) -> None:
        self.database, self.tenant, self.home = database, int(tenant), int(home)
        self._local = threading.local()

    @property
    def held(self) -> Transaction | None:
        """This thread's transaction."""
        return getattr(self._local, "held", None)

    @property
    def _needed(self) -> Transaction:
        held = self.held
        assert held is not None, "what writes is called within a transaction"
        return held

    def ask(self, statement: str, **given: Any) -> list[tuple[Any, ...]]:
        """The rows a statement gives: in this thread's transaction, else in one of its own, which changes nothing."""
        if (held := self.held) is not None:
            with _translated(self.database.name, held):
                return [*self._run(held.db, statement, given).fetchall()]
        for is_last in (False, True):  # a connection that was kept may turn out to be lost
            try:
                with self.database.connection() as db, _translated(self.database.name, Transaction(db)):
                    with db.pipeline():
                        self._begin(db)
                        found = self._run(db, statement, given)
                        db.execute("commit")
                    return [*found.fetchall()]
            except LostConnection:
                if is_last:
                    raise
        raise AssertionError

    def one(self, statement: str, **given: Any) -> tuple[Any, ...] | None:
        found = self.ask(statement, **given)
        return found[0] if found else None

    def tell(self, statement: str, **given: Any) -> None:
        """Sends a statement in this thread's transaction; what becomes of it is known at its end."""
        held = self._needed
        with _translated(self.database.name, held):
            self._run(held.db, statement, given)

    def tell_all(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """The same for many rows."""
        held = self._needed
        own = {"tenant": self.tenant, "home": self.home}
        if rows:
            with _translated(self.database.name, held):
                held.db.cursor().executemany(_told(statement), [{**own, **row} for row in rows])

    def _run(self, db: Connection[Any], statement: str, given: Mapping[str, Any]) -> Cursor[Any]:
        return db.execute(_told(statement), {"tenant": self.tenant, "home": self.home, **given})

    def _begin(self, db: Connection[Any]) -> None:
        db.execute("begin")
        db.execute(f"set local app.tenant to '{self.tenant}'")

    # -- transactions ---------------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self, *, patience: float | None = None) -> Iterator[Transaction]:
        """This thread's transaction, begun if there is none; with `patience` it has the home's lock. What was done stays
        done when an error of ours comes out of it, as in a folder; an error of the server's takes all of it back."""
        if (held := self.held) is not None:
            held.depth += 1
            try:
                if patience is not None and held.row is None:
                    self._take_lock(held, patience)
                yield held
            finally:
                held.depth -= 1
            return
        with ExitStack() as stack:
            held = self._begun(stack, patience)
            self._local.held = held
            try:
                yield held
            except BaseException:
                with suppress(HomeError):
                    self._end(held, stack)
                raise
            else:
                self._end(held, stack)
            finally:
                self._local.held = None

    def _begun(self, stack: ExitStack, patience: float | None) -> Transaction:
        import psycopg

        for is_last in (False, True):
            try:
                held = Transaction(stack.enter_context(self.database.connection()))
                with _translated(self.database.name, held):
                    stack.enter_context(_pipelined(held.db))
                    self._begin(held.db)
                    if patience is not None:
                        self._take_lock(held, patience)
                return held
            except LostConnection:
                with suppress(psycopg.Error):
                    stack.close()
                if is_last:
                    raise
        raise AssertionError

    def _take_lock(self, held: Transaction, patience: float) -> None:
        import psycopg

        wait = f"set local lock_timeout to {max(1, int(patience * 1000))}"
        try:
            with _translated(self.database.name, held):
                held.db.execute(wait)
                held.row = self._run(held.db, _LOCK, {}).fetchone()
        except psycopg.errors.LockNotAvailable:
            raise HomeBusy("another connection", seconds=patience) from None
        if held.row is None:
            raise NoSuchHome(f"{self.database.name}: this home is gone")

    def _end(self, held: Transaction, stack: ExitStack) -> None:
        """Commits, and tells whoever asked. Raises LostConnection where nothing was written, Damaged where nobody knows."""
        is_done = False
        try:
            if not held.is_broken:
                with _translated(self.database.name, held):
                    for each in held.before:
                        each()
                    held.db.execute("commit")
                    stack.close()  # the pipeline's end: every answer is here
                    is_done = True
        except LostConnection:
            if not (is_done := held.proof is not None and self._stands(*held.proof)):
                raise
        finally:
            for told in held.after:
                told(is_done)

    def _stands(self, statement: str, given: Mapping[str, Any]) -> bool:
        """Whether a COMMIT took effect whose answer was lost. The home's lock is free once that is decided."""
        try:
            self._local.held = None
            with self.transaction(patience=_WAIT):
                return bool(self.ask(statement, **given))
        except HomeError:
            why = f"{self.database.name} went away while it wrote; whether the change stands is not known"
            raise Damaged(why, hint="look when it is back: the ledger tells") from None


@contextmanager
def _pipelined(db: Connection[Any]) -> Iterator[None]:
    """Statements are sent without waiting for answers. A transaction that did not get to its end is taken back."""
    import psycopg

    try:
        with db.pipeline():
            yield
    except psycopg.Error:
        with suppress(psycopg.Error):
            db.rollback()
        raise
    finally:
        with suppress(psycopg.Error):
            db.rollback()


def _told(statement: str) -> str:
    return _filled(statement, OWN)


@cache
def _filled(statement: str, own: str) -> str:
    return re.sub(r"\[own(?: (\w+))?\]", lambda found: own.format(f"{found[1]}." if found[1] else ""), statement)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def _translated(name: str, held: Transaction) -> Iterator[None]:
    """Errors of the server's as ours; after one, nothing of the transaction stands."""
    import psycopg

    try:
        yield
    except psycopg.errors.LockNotAvailable:
        held.is_broken = True
        raise
    except psycopg.Error as error:
        held.is_broken = True
        if held.db.closed:
            raise LostConnection(f"{name} went away ({_first_line(error)}); nothing was written") from None
        raise Damaged(f"{name}: {_first_line(error)}; nothing was written") from error
