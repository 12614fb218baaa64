"""The index in one SQLite file: units, words and vectors in tables of our own, with no loadable extension.

Promise: readers never wait and see one generation at a time; writers and checkpoints of all processes stand in one
line behind a lock file (SQLite before 3.51.3 can lose a WAL that is reset under a reader). A file that is missing or
damaged is begun again and said in the notes; putting documents never raises because of the file. A change of model or
of cutting is built beside the old tables and takes their place in one transaction.
Not here: which documents there are (the caller), arrays (`field`), scores (`search`).
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import numpy as np

from anima.model import Embedder
from anima.search.embed.client import EmbedderDown
from anima.search.field import SHIFT, DocRow, Field, Ints, Posting, Vectors, View, quantised
from anima.search.index import DocumentIn, Filter, PutReport, UnitRow
from anima.search.prepared import HeldPart, Prepared, added, batches, prepare, text_hash
from anima.search.tables import (
    ALIVE,
    FORMAT,
    GENERATION,
    KNOWN,
    NEW_DOCUMENTS,
    NEW_PARTS,
    NEW_UNITS,
    NEW_VECTORS,
    NEXT_GENERATION,
    POSTING,
    SHOWN_PART,
    SHOWN_UNIT,
    TABLES,
    cached_vectors,
    count_missing,
    create_tables,
    drops,
    erase,
    held_documents,
    held_ids,
    held_parts,
    insert,
    insert_vectors,
    replace,
    shown_row,
    take_place,
    unit_array,
    vector_array,
    without_vector,
)
from anima.search.units import CUTTING

T = TypeVar("T")
WORDS_KEPT: Final = 512
CHECKPOINT_PAGES: Final = 1000

_PRAGMAS = (
    "pragma busy_timeout = 10000",
    "pragma journal_mode = wal",
    "pragma synchronous = normal",
    "pragma trusted_schema = off",
    "pragma cell_size_check = on",
    "pragma wal_autocheckpoint = 0",
    "pragma temp_store = memory",
    "pragma cache_size = -65536",
)


class SqliteIndex:
    """An index bound to one file and one embedder (None for words only). Safe to use from several threads."""

    def __init__(self, path: str, *, lock: str, embedder: Embedder | None) -> None:
        self._path, self._lock_path, self._embedder = path, lock, embedder
        self._mutex = threading.RLock()
        self._notes: list[str] = []
        self._db: sqlite3.Connection | None = None
        self._inode = 0
        self._reset_memory()

    def known(self) -> dict[str, str]:
        def read(db: sqlite3.Connection) -> dict[str, str]:
            return dict(db.execute(KNOWN).fetchall())

        return self._read(read, {})

    def put(self, documents: Iterable[DocumentIn]) -> PutReport:
        report = PutReport()
        for batch in batches(documents):
            report = added(report, self._put_batch(batch))
        return report

    def drop(self, paths: Iterable[str]) -> int:
        wanted = sorted(set(paths))
        if not wanted:
            return 0
        with self._writing("dropping documents") as db:
            if db is None:
                return 0
            db.execute(NEXT_GENERATION)
            return sum(erase(db, path) for path in wanted)
        return 0

    def look(self, filter: Filter, words: Sequence[str] = ()) -> View:
        empty = View(
            sight=Field().sight(filter),
            total=0,
            model=None,
            missing=0,
            speakers=(),
            fetch=self._rows,
            matrix=None,
            postings={},
        )
        return self._read(lambda db: self._looked(db, filter, words), empty)

    def backfill(self, *, batch: int = 256) -> PutReport:
        """Embeds what has no vector, a batch at a time, so that a caller can show progress and stop anywhere."""
        if self._embedder is None:
            return PutReport()
        nothing: list[tuple[int, str]] = []
        waiting = self._read(lambda db: without_vector(db, batch), nothing)
        texts = [text for _, text in waiting]
        vectors, note = self._embed(texts)
        if vectors is None or not waiting:
            return PutReport(missing=self.missing(), notes=(note,) if note else ())
        with self._writing("adding vectors") as db:
            if db is not None:
                insert_vectors(db, [unit for unit, _ in waiting], [text_hash(text) for text in texts], vectors)
                db.execute(NEXT_GENERATION)
        self._reset_memory()
        return PutReport(embedded=len(texts), missing=self.missing())

    def missing(self) -> int:
        """How many units have no vector, though there is an embedder."""
        if self._embedder is None:
            return 0
        return self._read(count_missing, 0)

    def notes(self) -> tuple[str, ...]:
        with self._mutex:
            said, self._notes = tuple(self._notes), []
        return said

    def close(self) -> None:
        """Folds the WAL back and lets go. Closing checkpoints, so it happens behind the lock."""
        with self._mutex:
            db, self._db = self._db, None
            self._reset_memory()
            if db is None:
                return
            with _flocked(self._lock_path):
                try:
                    db.execute("pragma wal_checkpoint(passive)")
                except sqlite3.Error:
                    pass
                db.close()

    # Reading

    def _looked(self, db: sqlite3.Connection, filter: Filter, words: Sequence[str]) -> View:
        self._refresh(db)
        postings = {word: self._posting(db, word) for word in dict.fromkeys(words)}
        field = self._field
        return View(
            sight=field.sight(filter),
            total=len(field.units),
            model=self._model if field.has_vectors else None,
            missing=self._missing,
            speakers=field.words,
            fetch=self._rows,
            matrix=field.matrix if field.has_vectors else None,
            postings=postings,
        )

    def _reset_memory(self) -> None:
        with self._mutex:
            self._field = Field()
            self._generation, self._epoch = -1, ""
            self._last = 0
            self._missing = 0
            self._model: str | None = None
            self._words: dict[str, Posting] = {}

    def _refresh(self, db: sqlite3.Connection) -> None:
        """Brings the arrays to the generation of the file: forgets documents that are gone, adds new ones."""
        generation = int(db.execute(GENERATION).fetchone()[0])
        if generation == self._generation:
            return
        epoch = db.execute("select value from meta where key = 'epoch'").fetchone()[0]
        if self._epoch and epoch != self._epoch:
            self._reset_memory()
        self._epoch, self._model = epoch, db.execute("select value from meta where key = 'model'").fetchone()[0]
        alive = dict(db.execute(ALIVE))
        self._field.keep(alive)
        self._load(db)
        self._parts, self._starts = self._field.starts()
        self._words = {}
        self._missing = count_missing(db) if self._embedder is not None else 0
        self._generation = generation

    def _load(self, db: sqlite3.Connection) -> None:
        field, since = self._field, self._last
        parts = db.execute(NEW_PARTS, (since,)).fetchall()
        if not parts:
            return
        rows = db.execute(NEW_DOCUMENTS, (max(field.docs, default=0),))
        docs = [DocRow(id=r[0], path=r[1], kind=r[2], layer=r[3], day=r[4]) for r in rows]
        first = (since + 1) << SHIFT
        units = unit_array(db.execute(NEW_UNITS, (first,)), parts, field)
        vectors = vector_array(db.execute(NEW_VECTORS, (first,)), units)
        field.add(docs, units, vectors)
        self._last = parts[-1][0]

    def _posting(self, db: sqlite3.Connection, word: str) -> Posting:
        held = self._words.get(word)
        if held is None:
            if len(self._words) >= WORDS_KEPT:
                self._words = {}
            held = self._words[word] = self._fetched(db.execute(POSTING, (word,)).fetchall())
        return held

    def _fetched(self, rows: list[tuple[int, bytes]]) -> Posting:
        if not rows:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        parts, places = zip(*rows, strict=True)
        packed = np.frombuffer(b"".join(places), dtype="<u4")
        sizes, ids = np.array([len(one) // 4 for one in places]), np.array(parts)
        starts = self._starts[np.searchsorted(self._parts, ids)]
        slots: Ints = np.repeat(starts, sizes) + (packed >> 8)
        return slots, (packed & 0xFF) / 2.0

    def _rows(self, wanted: Sequence[int]) -> list[UnitRow | None]:
        def read(db: sqlite3.Connection) -> list[UnitRow | None]:
            held = {part: db.execute(SHOWN_PART, (part,)).fetchone() for part in {key >> SHIFT for key in wanted}}
            lines = {part: row[-1].split("\n") for part, row in held.items() if row is not None}
            return [
                shown_row(held[part], lines[part], db.execute(SHOWN_UNIT, (key,)).fetchone(), key - (part << SHIFT))
                if (part := key >> SHIFT) in lines
                else None
                for key in wanted
            ]

        return self._read(read, [None] * len(wanted))

    def _read(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Runs `work` in one read transaction; begins the file again when it is damaged."""
        with self._mutex:
            try:
                return self._transacted(work)
            except sqlite3.DatabaseError as error:
                self._recover(error)
            try:
                return self._transacted(work)
            except sqlite3.DatabaseError as error:
                self._note(f"the index cannot be read ({error}); search has nothing to look at")
                return otherwise

    def _transacted(self, work: Callable[[sqlite3.Connection], T]) -> T:
        db = self._opened()
        db.execute("begin")
        try:
            return work(db)
        finally:
            if db.in_transaction:
                db.execute("rollback")

    # Writing

    def _put_batch(self, batch: list[DocumentIn]) -> PutReport:
        nothing: list[list[HeldPart]] = [[] for _ in batch]
        held = self._read(lambda db: [held_parts(db, document) for document in batch], nothing)
        prepared = [prepare(document, parts) for document, parts in zip(batch, held, strict=True)]
        vectors, embedded, note = self._vectors(prepared)
        with self._writing("putting documents") as db:
            if db is None:
                return PutReport(notes=self.notes())
            changed = [replace(db, self._still(db, one, vectors), vectors) for one in prepared]
            if any(changed):
                db.execute(NEXT_GENERATION)
        return self._told(prepared, vectors, embedded, note)

    def _still(self, db: sqlite3.Connection, one: Prepared, vectors: dict[bytes, bytes]) -> Prepared:
        """The same, or prepared anew when another process has changed the parts that should stay."""
        if held_ids(db, one.document.path)[: len(one.kept)] == [part.id for part in one.kept]:
            return one
        again = prepare(one.document, held_parts(db, one.document))
        vectors |= self._vectors([again], vectors | cached_vectors(db, again.hashes))[0]
        return again

    def _told(self, prepared: list[Prepared], vectors: dict[bytes, bytes], embedded: int, note: str) -> PutReport:
        units = sum(one.units for one in prepared)
        have = sum(part.vectors for one in prepared for part in one.kept)
        have += sum(1 for one in prepared for key in one.hashes if key in vectors)
        return PutReport(
            documents=len(prepared),
            units=units,
            embedded=embedded,
            reused=have - embedded if have >= embedded else 0,
            missing=units - have if self._embedder is not None else 0,
            notes=(note,) if note else (),
        )

    def _vectors(
        self, prepared: list[Prepared], cached: dict[bytes, bytes] | None = None
    ) -> tuple[dict[bytes, bytes], int, str]:
        """A vector for each text, from the file where it has one, else from the embedder. Takes no lock."""
        if self._embedder is None:
            return {}, 0, ""
        texts = {key: text for one in prepared for key, text in zip(one.hashes, one.texts, strict=True)}
        nothing: dict[bytes, bytes] = {}
        found = self._read(lambda db: cached_vectors(db, list(texts)), nothing) if cached is None else dict(cached)
        fresh = [key for key in texts if key not in found]
        vectors, note = self._embed([texts[key] for key in fresh])
        if vectors is not None:
            found.update((key, row.tobytes()) for key, row in zip(fresh, vectors, strict=True))
        return found, len(fresh) if vectors is not None else 0, note

    def _embed(self, texts: list[str]) -> tuple[Vectors | None, str]:
        if self._embedder is None or not texts:
            return None, ""
        try:
            return quantised(np.asarray(self._embedder.embed(texts, kind="document"), dtype=np.float32)), ""
        except EmbedderDown as down:
            return None, f"{down}; found by words until vectors are made (anima index)"

    @contextmanager
    def _writing(self, what: str) -> Iterator[sqlite3.Connection | None]:
        """A write transaction behind the lock. None when the file will not do."""
        with self._mutex, _flocked(self._lock_path):
            db = self._begun(what)
            try:
                yield db
                if db is not None:
                    db.execute("commit")
                    self._checkpoint(db)
            except sqlite3.DatabaseError as error:
                self._abandon(db)
                self._note(f"{what} failed ({error}); the index catches up later")
            except BaseException:
                self._abandon(db)
                raise

    def _begun(self, what: str) -> sqlite3.Connection | None:
        for attempt in (1, 2):
            try:
                db = self._opened()
                db.execute("begin immediate")
                db.execute(GENERATION).fetchone()
                return db
            except sqlite3.DatabaseError as error:
                if attempt == 2 or not self._recover(error, locked=True):
                    self._note(f"{what} failed ({error}); the index catches up later")
                    return None
        return None

    def _abandon(self, db: sqlite3.Connection | None) -> None:
        try:
            if db is not None and db.in_transaction:
                db.execute("rollback")
        except sqlite3.Error:
            pass

    def _checkpoint(self, db: sqlite3.Connection) -> None:
        """Behind the lock, and only when the log has grown: SQLite's own moments are switched off."""
        try:
            if os.path.getsize(self._path + "-wal") > CHECKPOINT_PAGES * 4096:
                db.execute("pragma wal_checkpoint(truncate)")
        except (OSError, sqlite3.Error):
            pass

    # The file

    def _opened(self) -> sqlite3.Connection:
        """The connection, anew when the file at our path is another one than we opened."""
        if self._db is not None and self._inode == _inode(self._path):
            return self._db
        if self._db is not None:
            self._db.close()
            self._db = None
            self._reset_memory()
        with _flocked(self._lock_path):
            db = self._connected()
            try:
                self._prepare_file(db)
            except sqlite3.DatabaseError:
                db.close()
                raise
            self._inode, self._db = _inode(self._path), db
        return db

    def _connected(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
        db = sqlite3.connect(self._path, timeout=10.0, isolation_level=None, check_same_thread=False)
        for pragma in _PRAGMAS:
            db.execute(pragma)
        return db

    def _prepare_file(self, db: sqlite3.Connection) -> None:
        version = db.execute("pragma user_version").fetchone()[0]
        identity = self._identity()
        if version == 0:
            create_tables(db, identity)
        elif version != FORMAT:
            raise sqlite3.DatabaseError("it was made by another version")
        held = dict(db.execute("select key, value from meta"))
        if held.get("cutting") != CUTTING or held.get("model") != identity:
            self._rebuild(db, held, identity)

    def _identity(self) -> str:
        return self._embedder.name if self._embedder is not None else "none"

    def _rebuild(self, db: sqlite3.Connection, held: dict[str, str], identity: str) -> None:
        """New tables beside the old ones, filled from the texts the old ones hold, then put in their place."""
        self._note("the index is being rebuilt for another model or cutting")
        db.execute("begin immediate")
        try:
            for part in drops("_new"):
                db.execute(part)
            for statement in TABLES.format("_new").split(";"):
                db.execute(statement)
            same = held.get("model") == identity
            for batch in batches(held_documents(db)):
                prepared = [prepare(document) for document in batch]
                vectors = cached_vectors(db, [key for one in prepared for key in one.hashes]) if same else {}
                self._fill(db, prepared, vectors)
            take_place(db, identity)
            db.execute("commit")
        except BaseException:
            self._abandon(db)
            raise

    def _fill(self, db: sqlite3.Connection, prepared: list[Prepared], vectors: dict[bytes, bytes]) -> None:
        texts = {k: t for one in prepared for k, t in zip(one.hashes, one.texts, strict=True) if k not in vectors}
        made, note = self._embed(list(texts.values()))
        if note:
            self._note(note)
        if made is not None:
            vectors |= {key: row.tobytes() for key, row in zip(texts, made, strict=True)}
        for one in prepared:
            insert(db, one, vectors, suffix="_new")

    def _recover(self, error: sqlite3.DatabaseError, *, locked: bool = False) -> bool:
        """Begins a damaged file again. A file that is only busy or a disk that is full is left alone."""
        text = str(error)
        if isinstance(error, sqlite3.OperationalError) and not text.startswith(("no such", "malformed")):
            return False
        if self._db is not None:
            self._db.close()
            self._db = None
        with _flocked(self._lock_path) if not locked else _nothing():
            for ending in ("", "-wal", "-shm"):
                try:
                    os.unlink(self._path + ending)
                except OSError:
                    pass
        self._reset_memory()
        self._note(f"the index was damaged ({text}) and is begun again from the documents")
        return True

    def _note(self, text: str) -> None:
        if text not in self._notes:
            self._notes.append(text)


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


_HOLDING = threading.local()


@contextmanager
def _flocked(path: str) -> Iterator[None]:
    """The writers' lock, re-entrant within a thread."""
    depth: dict[str, int] = _HOLDING.__dict__.setdefault("depth", {})
    if depth.get(path):
        yield
        return
    held = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        depth[path] = 1
        yield
    finally:
        depth[path] = 0
        os.close(held)


@contextmanager
def _nothing() -> Iterator[None]:
    yield
