"""The tables of the SQLite index: their SQL, and small functions that read and write rows.

Promise: parameters are always bound; a document's rows go and come together; ids are never used twice, so a new
document is known by an id above all before. Not here: transactions, locks and files (`sqlite`).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anima.index import DocumentIn, Label, UnitRow
from anima.index.field import UNIT, Field, Vectors
from anima.index.prepared import Prepared, prepare
from anima.index.units import CUTTING
from anima.index.words import cut, first_person, tags

FORMAT: Final = 1
SHIFT: Final = 24  # a unit's id is its document's, shifted, plus its number

TABLES = """
create table if not exists meta(key text primary key, value text not null) without rowid;
create table if not exists document{0}(
    id integer primary key autoincrement, path text not null unique, digest text not null, kind text not null,
    layer text not null, day integer not null, scopes integer not null, labels text not null, text text not null,
    words text not null, units integer not null);
create table if not exists unit{0}(
    id integer primary key, start_line integer not null, end_line integer not null, length integer not null,
    first integer not null, scopes integer not null, trusted integer not null, heading integer not null,
    speaker text not null, trail text not null, tags text not null);
create table if not exists posting{0}(
    word text not null, document integer not null, places blob not null, primary key(word, document)) without rowid;
create table if not exists vector{0}(id integer primary key, hash blob not null, data blob not null);
create index if not exists vector_hash{0} on vector{0}(hash);
"""
KNOWN = "select path, digest from document order by path"
GENERATION = "select value from meta where key = 'generation'"
NEW_DOCUMENTS = "select id, path, kind, layer, day from document where id > ? order by id"
NEW_UNITS = """
    select id, start_line, end_line, length, first, speaker, scopes, trusted, heading
    from unit where id >= ? order by id
"""
NEW_VECTORS = "select id, data from vector where id >= ? order by id"
POSTING = "select document, places from posting where word = ? order by document"
SHOWN_DOCUMENT = "select path, kind, layer, day, text, digest from document where id = ?"
SHOWN_UNIT = "select start_line, end_line, trail, tags, trusted from unit where id = ?"


def create_tables(db: sqlite3.Connection, identity: str) -> None:
    db.execute("begin immediate")
    for statement in TABLES.format("").split(";"):
        db.execute(statement)
    values = {"generation": "0", "epoch": "0", "cutting": CUTTING, "model": identity}
    db.executemany("insert or ignore into meta values(?, ?)", values.items())
    db.execute(f"pragma user_version = {FORMAT}")
    db.execute("commit")


def drops(suffix: str) -> list[str]:
    return [f"drop table if exists {name}{suffix}" for name in ("document", "unit", "posting", "vector")]


def take_place(db: sqlite3.Connection, identity: str) -> None:
    for part in drops(""):
        db.execute(part)
    for name in ("document", "unit", "posting", "vector"):
        db.execute(f"alter table {name}_new rename to {name}")
    db.execute("drop index vector_hash_new")
    db.execute("create index vector_hash on vector(hash)")
    db.executemany("update meta set value = ? where key = ?", [(CUTTING, "cutting"), (identity, "model")])
    db.execute("update meta set value = value + 1 where key in ('generation', 'epoch')")


def erase(db: sqlite3.Connection, path: str) -> int:
    row = db.execute("select id, words, units from document where path = ?", (path,)).fetchone()
    if row is None:
        return 0
    key, words, units = row
    db.executemany("delete from posting where word = ? and document = ?", ((w, key) for w in words.split("\n") if w))
    ends = (key << SHIFT, (key << SHIFT) + units)
    db.execute("delete from unit where id >= ? and id < ?", ends)
    db.execute("delete from vector where id >= ? and id < ?", ends)
    db.execute("delete from document where id = ?", (key,))
    return 1


def insert(db: sqlite3.Connection, one: Prepared, vectors: dict[bytes, bytes], *, suffix: str = "") -> None:
    document = one.document
    cursor = db.execute(
        f"insert into document{suffix}(path, digest, kind, layer, day, scopes, labels, text, words, units)"
        " values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            document.path,
            document.digest,
            document.kind,
            document.layer,
            document.date.toordinal() if document.date else 0,
            document.scopes,
            json.dumps([[label.start, label.end, label.scopes, label.trusted] for label in document.labels]),
            document.text,
            "\n".join(sorted(one.postings)),
            len(one.units),
        ),
    )
    base = int(cursor.lastrowid or 0) << SHIFT
    rows = zip(one.units, one.labels, one.lengths, strict=True)
    db.executemany(
        f"insert into unit{suffix} values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                base + n,
                unit.start_line,
                unit.end_line,
                length,
                min(first_person(unit.text), 32767),
                scopes,
                trusted,
                unit.block == "heading",
                next(iter(cut(unit.speaker)), ""),
                unit.trail,
                " ".join(tags(unit.text)),
            )
            for n, (unit, (scopes, trusted), length) in enumerate(rows)
        ),
    )
    key = base >> SHIFT
    db.executemany(
        f"insert into posting{suffix} values(?, ?, ?)",
        [(word, key, one.postings[word]) for word in sorted(one.postings)],
    )
    db.executemany(
        f"insert into vector{suffix} values(?, ?, ?)",
        [(base + n, digest, vectors[digest]) for n, digest in enumerate(one.hashes) if digest in vectors],
    )


def insert_vectors(db: sqlite3.Connection, units: list[int], hashes: list[bytes], vectors: Vectors) -> None:
    rows = zip(units, hashes, (row.tobytes() for row in vectors), strict=True)
    db.executemany(
        "insert or replace into vector select ?1, ?2, ?3 where exists(select 1 from unit where id = ?1)", rows
    )


def cached_vectors(db: sqlite3.Connection, hashes: list[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for start in range(0, len(hashes), 500):
        part = hashes[start : start + 500]
        marks = ",".join("?" * len(part))
        found.update(db.execute(f"select hash, data from vector where hash in ({marks})", part).fetchall())
    return found


def count_missing(db: sqlite3.Connection) -> int:
    return int(db.execute("select (select count(*) from unit) - (select count(*) from vector)").fetchone()[0])


def without_vector(db: sqlite3.Connection, limit: int) -> list[tuple[int, str]]:
    """Units without a vector, with the text to embed: cut again from the document, which gives the same units."""
    sql = "select id from unit where id not in (select id from vector) order by id limit ?"
    ids = [row[0] for row in db.execute(sql, (limit,))]
    texts: dict[int, list[str]] = {}
    found = []
    for key in ids:
        doc = key >> SHIFT
        if doc not in texts:
            texts[doc] = prepare(_held(db.execute(f"{_HELD} where id = ?", (doc,)).fetchone())).texts
        found.append((key, texts[doc][key - (doc << SHIFT)]))
    return found


_HELD = "select path, digest, text, kind, layer, day, scopes, labels from document"


def held_documents(db: sqlite3.Connection) -> Iterator[DocumentIn]:
    for (key,) in db.execute("select id from document order by path").fetchall():
        yield _held(db.execute(f"{_HELD} where id = ?", (key,)).fetchone())


def _held(row: tuple[Any, ...]) -> DocumentIn:
    path, digest, text, kind, layer, day, scopes, labels = row
    return DocumentIn(
        path=path,
        digest=digest,
        text=text,
        kind=kind,
        layer=layer,
        date=date.fromordinal(day) if day else None,
        scopes=scopes,
        labels=tuple(Label(start=a, end=b, scopes=s, trusted=t) for a, b, s, t in json.loads(labels)),
    )


def unit_array(rows: Iterable[tuple[Any, ...]], field: Field) -> NDArray[Any]:
    mask = (1 << SHIFT) - 1
    return np.array(
        [(r[0] >> SHIFT, r[0] & mask, r[1], r[2], r[3], r[4], field.number_of(r[5]), r[6], r[7], r[8]) for r in rows],
        dtype=UNIT,
    )


def vector_array(rows: Iterable[tuple[int, bytes]], units: NDArray[Any]) -> Vectors | None:
    held = list(rows)
    if not held:
        return None
    data = np.frombuffer(b"".join(row[1] for row in held), dtype="<i2").reshape(len(held), -1)
    if len(held) == len(units):
        return data
    ids = (units["doc"] << SHIFT) + units["n"]
    full = np.zeros((len(units), data.shape[1]), dtype=np.int16)
    full[np.searchsorted(ids, np.fromiter((row[0] for row in held), dtype=np.int64, count=len(held)))] = data
    return full


def shown_row(document: tuple[Any, ...], lines: list[str], unit: tuple[Any, ...] | None, n: int) -> UnitRow | None:
    if unit is None:
        return None
    path, kind, layer, day, _, digest = document
    start, end, trail, tagged, trusted = unit
    return UnitRow(
        path=path,
        start_line=start,
        end_line=end,
        text="\n".join(line.rstrip("\r") for line in lines[start - 1 : end]),
        trail=trail,
        kind=kind,
        layer=layer,
        date=date.fromordinal(day) if day else None,
        trusted=bool(trusted),
        document_id=hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
        chunk_id=f"{digest[:12]}:{n}",
        tags=tuple(tagged.split()),
    )
