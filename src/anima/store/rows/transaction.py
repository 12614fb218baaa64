"""What a thread does to the rows of one home while it holds that home's lock: one transaction.

Promise: the same over every engine. The lock is the home's row; a lost connection is told from a lost answer: whether
COMMIT took effect is looked up by what it wrote. A statement is PostgreSQL's, or the name of one in `statements.sql`; an
engine that speaks otherwise puts them into its own words. Not here: connections (postgres, sqlite), what the rows mean.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache
from importlib.resources import files
from typing import Any, Protocol, TypeVar

from anima.errors import Damaged, HomeError, NoSuchHome
from anima.text import read_statements

T = TypeVar("T")
U = TypeVar("U")
Row = tuple[Any, ...]
OWN = "{0}tenant = %(tenant)s and {0}home = %(home)s"  # what `[own]` stands for, and `[own a]` for a table called a
WAIT = 30.0  # seconds for a connection, or for a COMMIT of somebody else's


class LostConnection(Damaged):
    """The server went away before COMMIT was sent, or had not carried it out: nothing was written."""


class Transaction:
    """A transaction of one thread. `row` is the home's row where it has the home's lock."""

    def __init__(self, db: Any) -> None:
        self.db, self.depth = db, 1
        self.row: tuple[int, ...] | None = None
        self.is_broken = False
        self.kept: dict[str, Any] = {}  # what whoever writes remembers for as long
        self.before: list[Callable[[], object]] = []  # called to send what goes with COMMIT
        self.after: list[Callable[[bool], object]] = []  # told at the end whether it was committed
        self.proof: Sequence[tuple[str, Mapping[str, Any]]] = ()  # the last finds a row only where it was committed


class Engine(Protocol):
    """Where rows are kept, and how it is spoken to."""

    name: str
    mark: str = ""  # what tells it from another in its place, where anybody can put one
    needs_tenant: bool = False  # whether homes of several tenants stand here
    alone_writes: bool = True  # whether a transaction keeps every other from writing, whosever rows they are

    def tenant(self, name: str) -> int:
        return 1

    def connection(self) -> AbstractContextManager[Any]: ...
    def run(self, db: Any, statement: str, given: Mapping[str, Any]) -> Any: ...
    def run_all(self, db: Any, statement: str, rows: Sequence[Mapping[str, Any]]) -> None: ...
    def rows(self, found: Any) -> list[Row]: ...

    def asked(self, db: Any, tenant: int, statement: str, given: Mapping[str, Any]) -> list[Row]:
        """The rows of a statement in a transaction of its own."""
        return self.rows(self.run(db, statement, given))

    def streamed(
        self, db: Any, tenant: int, statement: str, given: Mapping[str, Any], made: Callable[[Row], T]
    ) -> list[T]:
        """What is made of each row, as soon as it is there."""
        return [made(row) for row in self.asked(db, tenant, statement, given)]

    def pulse(self) -> object:
        """What is another whenever anything was committed, by whomever; None where only a statement tells."""
        return None

    def begin(self, db: Any, tenant: int, patience: float | None) -> None: ...

    def locked(self, held: Transaction, row: Callable[[], Row | None], patience: float) -> Row | None:
        """The home's row, once nobody else has it. Raises HomeBusy."""
        with self.translated(held):
            return row()

    def sending(self, db: Any) -> AbstractContextManager[None]:
        """Statements are sent without waiting for answers. A transaction that did not get to its end is taken back."""

    def translated(self, held: Transaction) -> AbstractContextManager[None]: ...  # errors of the engine's as ours


class HomeRows:
    """The rows of one home, or of one tenant where the home is 0. Every statement goes through here."""

    def __init__(self, engine: Engine, tenant: int, home: int) -> None:
        self.engine, self.tenant, self.home = engine, int(tenant), int(home)
        self._local = threading.local()

    @property
    def held(self) -> Transaction | None:
        return getattr(self._local, "held", None)

    def ask(self, statement: str, **given: Any) -> list[tuple[Any, ...]]:
        """The rows a statement gives: in this thread's transaction, else in one of its own, which changes nothing."""
        if (held := self.held) is not None:
            with self.engine.translated(held):
                return self.engine.rows(self._run(held.db, statement, given))
        told, bound = _told(statement), self._given(given)
        return self.tried(self._looking, lambda db: self.engine.asked(db, self.tenant, told, bound))

    def each(self, statement: str, made: Callable[[Row], T], **given: Any) -> list[T]:
        """What is made of each row of a large answer, while the next are still on their way; once more, should the
        connection be lost. Not within a transaction."""
        told, bound = _told(statement), self._given(given)
        return self.tried(self._looking, lambda db: self.engine.streamed(db, self.tenant, told, bound, made))

    @contextmanager
    def _looking(self) -> Iterator[Any]:
        with self.engine.connection() as db, self.engine.translated(Transaction(db)):
            yield db

    def one(self, statement: str, **given: Any) -> tuple[Any, ...] | None:
        return found[0] if (found := self.ask(statement, **given)) else None

    def revision(self) -> object:
        """What is another whenever a document or the ledger changed, whoever changed it; within a transaction, always."""
        if self.held is not None:
            return object()
        if (pulse := self.engine.pulse()) is not None:
            return pulse
        if (found := self.one("select version, records, bytes, epoch from anima.home where [own]")) is None:
            raise NoSuchHome(f"{self.engine.name}: this home is gone")
        return found

    def tell(self, statement: str, **given: Any) -> None:
        """Sends a statement in this thread's transaction; what becomes of it is known at its end."""
        held = self.held
        assert held is not None, "what writes is called within a transaction"
        with self.engine.translated(held):
            self._run(held.db, statement, given)

    def tell_all(self, statement: str, rows: Sequence[Mapping[str, Any]]) -> None:
        held = self.held
        assert held is not None, "what writes is called within a transaction"
        if rows:
            with self.engine.translated(held):
                self.engine.run_all(held.db, _told(statement), [self._given(row) for row in rows])

    def _run(self, db: Any, statement: str, given: Mapping[str, Any]) -> Any:
        return self.engine.run(db, _told(statement), self._given(given))

    def _given(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"tenant": self.tenant, "home": self.home, **given}

    def tried(self, within: Callable[[], AbstractContextManager[U]], do: Callable[[U], T]) -> T:
        """What is done within a transaction, done again where the connection was lost before COMMIT was sent."""
        for left in reversed(range(3 if self.held is None else 1)):
            try:
                with within() as held:
                    return do(held)
            except LostConnection:
                if not left:
                    raise
        raise AssertionError

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

    def _begun(self, stack: ExitStack, patience: float | None) -> Transaction:
        for is_last in (False, True):
            try:
                held = Transaction(stack.enter_context(self.engine.connection()))
                with self.engine.translated(held):
                    stack.enter_context(self.engine.sending(held.db))
                    self.engine.begin(held.db, self.tenant, patience)
                    if patience is not None:
                        self._take_lock(held, patience)
                return held
            except LostConnection:
                with suppress(Exception):
                    stack.close()
                if is_last:
                    raise
        raise AssertionError

    def _take_lock(self, held: Transaction, patience: float) -> None:
        def row() -> Row | None:
            return next(iter(self.engine.rows(self._run(held.db, "home_locked", {}))), None)

        held.row = self.engine.locked(held, row, patience)
        if held.row is None:
            raise NoSuchHome(f"{self.engine.name}: this home is gone")

    def _end(self, held: Transaction, stack: ExitStack) -> None:
        """Commits, and tells whoever asked. Raises LostConnection where nothing was written, Damaged where nobody knows."""
        is_done = is_sent = False
        try:
            if not held.is_broken:
                with self.engine.translated(held):
                    for each in held.before:
                        each()
                    is_sent = True
                    self.engine.run(held.db, "commit", {})
                    stack.close()  # the pipeline's end: every answer is here
                    is_done = True
        except LostConnection:
            with suppress(Exception):
                stack.close()  # the pool may have no other connection to look with
            if not (is_done := is_sent and self._stands(held.proof)):
                raise
        finally:
            self._local.held = None  # whoever is told may ask again
            for told in held.after:
                told(is_done)

    def _stands(self, proof: Sequence[tuple[str, Mapping[str, Any]]]) -> bool:
        """Whether a COMMIT whose answer was lost took effect. Raises Damaged where nothing tells."""
        with suppress(HomeError):
            self._local.held = None
            with self.transaction(patience=WAIT):
                if proof:
                    return bool([self.ask(sql, **given) for sql, given in proof][-1])
        why = f"{self.engine.name} went away while it wrote; whether that stands is not known"
        raise Damaged(why, hint="look when it is back") from None


def _told(statement: str) -> str:
    return _filled(statements().get(statement, statement), OWN)


@cache
def _filled(statement: str, own: str) -> str:
    return re.sub(r"\[own(?: (\w+))?\]", lambda found: own.format(f"{found[1]}." if found[1] else ""), statement)


@cache
def schema_texts() -> tuple[str, ...]:
    """The texts that make the tables, in order: each is carried out once, and none is ever edited."""
    found = [each for each in files(__package__).joinpath("schema").iterdir() if each.name.endswith(".sql")]
    return tuple(each.read_text(encoding="utf-8") for each in sorted(found, key=lambda each: each.name))


@cache
def statements() -> dict[str, str]:
    """The statements of `statements.sql` by name."""
    return read_statements("store/rows", "statements")
