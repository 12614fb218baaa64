"""The tables of the SQLite index: their SQL, and small functions that read and write rows.

Promise: parameters are always bound; the rows of a part of a document go and come together; ids of documents and of
parts are never used twice, so that a new one is known by an id above all before, and a row once gone is never taken
for another. A document's path, kind, layer and day never change under one id.
Not here: transactions, locks and files (`sqlite`).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anima.search.field import SHIFT, UNIT, Field, Vectors
from anima.search.index import DocumentIn, Label, UnitRow
from anima.search.prepared import HeldPart, Prepared, PreparedPart, prepare
from anima.search.units import CUTTING, Place
from anima.text.words import cut, first_person, tags

FORMAT: Final = 3

NAMES: Final = ("document", "part", "unit", "posting", "vector")

TABLES = """
create table if not exists meta(key text primary key, value text not null) without rowid;
create table if not exists document{0}(
    id integer primary key autoincrement, path text not null unique, digest text not null, kind text not null,
    layer text not null, day integer not null, scopes integer not null, labels text not null);
create table if not exists part{0}(
    id integer primary key autoincrement, document integer not null, line integer not null, front integer not null,
    above text not null, first_unit integer not null, units integer not null, vectors integer not null,
    chars integer not null, print blob not null, text text not null, words text not null);
create index if not exists part_document{0} on part{0}(document, units, vectors);
create table if not exists unit{0}(
    id integer primary key, start_line integer not null, end_line integer not null, length integer not null,
    first integer not null, scopes integer not null, trusted integer not null, heading integer not null,
    speaker text not null, trail text not null, tags text not null);
create table if not exists posting{0}(
    word text not null, part integer not null, places blob not null, primary key(word, part)) without rowid;
create table if not exists vector{0}(id integer primary key, hash blob not null, data blob not null);
create index if not exists vector_hash{0} on vector{0}(hash);
"""
KNOWN = "select path, digest from document order by path"
GENERATION = "select value from meta where key = 'generation'"
NEXT_GENERATION = "update meta set value = value + 1 where key = 'generation'"
NEW_DOCUMENTS = "select id, path, kind, layer, day from document where id > ? order by id"
NEW_PARTS = "select id, document, first_unit from part where id > ? order by id"
NEW_UNITS = """
    select id, start_line, end_line, length, first, speaker, scopes, trusted, heading
    from unit where id >= ? order by id
"""
NEW_VECTORS = "select id, data from vector where id >= ? order by id"
ALIVE = "select id, document from part"
POSTING = "select part, places from posting where word = ? order by part"
SHOWN_PART = """
    select document.path, document.kind, document.layer, document.day, document.digest, part.line, part.first_unit, part.text
    from part join document on document.id = part.document where part.id = ?
"""
SHOWN_UNIT = "select start_line, end_line, trail, tags, trusted from unit where id = ?"
HELD_DOCUMENT = "select id, kind, layer, day from document where path = ?"
HELD_IDS = "select id from part where document = (select id from document where path = ?) order by id"
HELD_PARTS = """
    select id, line, front, above, first_unit, units, vectors, chars, print from part where document = ? order by id
"""
COUNT_VECTORS = """
    update part set vectors = (select count(*) from vector where id >= ?1 << 24 and id < (?1 << 24) + units) where id = ?1
"""
PUT_DOCUMENT = """
    insert into document{0}(path, digest, kind, layer, day, scopes, labels) values(?, ?, ?, ?, ?, ?, ?)
    on conflict(path) do update set digest = excluded.digest, scopes = excluded.scopes, labels = excluded.labels
    returning id
"""
PUT_PART = """
    insert into part{0}(document, line, front, above, first_unit, units, vectors, chars, print, text, words)
    values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""


def create_tables(db: sqlite3.Connection, identity: str) -> None:
    db.execute("begin immediate")
    for statement in TABLES.format("").split(";"):
        db.execute(statement)
    values = {"generation": "0", "epoch": "0", "cutting": CUTTING, "model": identity}
    db.executemany("insert or ignore into meta values(?, ?)", values.items())
    db.execute(f"pragma user_version = {FORMAT}")
    db.execute("commit")


def drops(suffix: str) -> list[str]:
    return [f"drop table if exists {name}{suffix}" for name in NAMES]


def take_place(db: sqlite3.Connection, identity: str) -> None:
    for part in drops(""):
        db.execute(part)
    for name in NAMES:
        db.execute(f"alter table {name}_new rename to {name}")
    db.execute("drop index part_document_new")
    db.execute("create index part_document on part(document, units, vectors)")
    db.execute("drop index vector_hash_new")
    db.execute("create index vector_hash on vector(hash)")
    db.executemany("update meta set value = ? where key = ?", [(CUTTING, "cutting"), (identity, "model")])
    db.execute("update meta set value = value + 1 where key in ('generation', 'epoch')")


def held_parts(db: sqlite3.Connection, document: DocumentIn) -> list[HeldPart]:
    """The parts of a document in order; none when what stands in its row would not be the same any more."""
    row = db.execute(HELD_DOCUMENT, (document.path,)).fetchone()
    if row is None or row[1:] != (document.kind, document.layer, _day(document)):
        return []
    return [
        HeldPart(
            id=r[0],
            place=Place(line=r[1], front=r[2], above=r[3]),
            first_unit=r[4],
            units=r[5],
            vectors=r[6],
            chars=r[7],
            print=r[8],
        )
        for r in db.execute(HELD_PARTS, (row[0],))
    ]


def held_ids(db: sqlite3.Connection, path: str) -> list[int]:
    return [row[0] for row in db.execute(HELD_IDS, (path,))]


def erase(db: sqlite3.Connection, path: str) -> int:
    row = db.execute(HELD_DOCUMENT, (path,)).fetchone()
    if row is None:
        return 0
    for (part,) in db.execute("select id from part where document = ?", (row[0],)).fetchall():
        _erase_part(db, part)
    db.execute("delete from document where id = ?", (row[0],))
    return 1


def _erase_part(db: sqlite3.Connection, key: int) -> None:
    words, units = db.execute("select words, units from part where id = ?", (key,)).fetchone()
    db.executemany("delete from posting where word = ? and part = ?", ((w, key) for w in words.split("\n") if w))
    ends = (key << SHIFT, (key << SHIFT) + units)
    db.execute("delete from unit where id >= ? and id < ?", ends)
    db.execute("delete from vector where id >= ? and id < ?", ends)
    db.execute("delete from part where id = ?", (key,))


def replace(db: sqlite3.Connection, one: Prepared, vectors: dict[bytes, bytes]) -> bool:
    """Writes a document in the place of what is held of it, but for the parts that stay. Whether a row changed that a
    search would see."""
    if not one.kept:
        erase(db, one.document.path)
    gone = held_ids(db, one.document.path)[len(one.kept) :]
    for part in gone:
        _erase_part(db, part)
    insert(db, one, vectors)
    return bool(gone or one.parts)


def insert(db: sqlite3.Connection, one: Prepared, vectors: dict[bytes, bytes], *, suffix: str = "") -> None:
    document = one.document
    labels = json.dumps([[label.start, label.end, label.scopes, label.trusted] for label in document.labels])
    row = (document.path, document.digest, document.kind, document.layer, _day(document), document.scopes, labels)
    key = db.execute(PUT_DOCUMENT.format(suffix), row).fetchone()[0]
    for part in one.parts:
        _insert_part(db, key, part, vectors, suffix)


def _day(document: DocumentIn) -> int:
    return document.date.toordinal() if document.date else 0


def _insert_part(
    db: sqlite3.Connection, document: int, one: PreparedPart, vectors: dict[bytes, bytes], suffix: str
) -> None:
    part, place, words = one.part, one.part.place, sorted(one.postings)
    made = [(n, digest, vectors[digest]) for n, digest in enumerate(one.hashes) if digest in vectors]
    row = (
        document,
        place.line,
        place.front,
        place.above,
        one.first_unit,
        len(part.units),
        len(made),
        len(part.text),
        one.print,
        part.text,
        "\n".join(words),
    )
    key = int(db.execute(PUT_PART.format(suffix), row).lastrowid or 0)
    base = key << SHIFT
    db.executemany(f"insert into unit{suffix} values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _unit_rows(one, base))
    postings = [(word, key, one.postings[word]) for word in words]
    db.executemany(f"insert into posting{suffix} values(?, ?, ?)", postings)
    db.executemany(f"insert into vector{suffix} values(?, ?, ?)", ((base + n, *row) for n, *row in made))


def _unit_rows(one: PreparedPart, base: int) -> Iterator[tuple[Any, ...]]:
    rows = zip(one.part.units, one.labels, one.lengths, strict=True)
    for key, (unit, (scopes, trusted), length) in enumerate(rows, base):
        first, speaker = min(first_person(unit.text), 32767), next(iter(cut(unit.speaker)), "")
        yield (
            key,
            unit.start_line,
            unit.end_line,
            length,
            first,
            scopes,
            trusted,
            unit.block == "heading",
            speaker,
            unit.trail,
            " ".join(tags(unit.text)),
        )


def insert_vectors(db: sqlite3.Connection, units: list[int], hashes: list[bytes], vectors: Vectors) -> None:
    rows = zip(units, hashes, (row.tobytes() for row in vectors), strict=True)
    db.executemany(
        "insert or replace into vector select ?1, ?2, ?3 where exists(select 1 from unit where id = ?1)", rows
    )
    db.executemany(COUNT_VECTORS, ((part,) for part in sorted({key >> SHIFT for key in units})))


def cached_vectors(db: sqlite3.Connection, hashes: list[bytes]) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for start in range(0, len(hashes), 500):
        part = hashes[start : start + 500]
        marks = ",".join("?" * len(part))
        found.update(db.execute(f"select hash, data from vector where hash in ({marks})", part).fetchall())
    return found


def count_missing(db: sqlite3.Connection) -> int:
    return int(db.execute("select coalesce(sum(units) - sum(vectors), 0) from part").fetchone()[0])


def without_vector(db: sqlite3.Connection, limit: int) -> list[tuple[int, str]]:
    """Units without a vector, with the text to embed: cut again from the document, which gives the same units."""
    sql = "select id from unit where id not in (select id from vector) order by id limit ?"
    ids = [row[0] for row in db.execute(sql, (limit,))]
    texts: dict[int, list[str]] = {}
    found = []
    for key in ids:
        part = key >> SHIFT
        document, first = db.execute("select document, first_unit from part where id = ?", (part,)).fetchone()
        if document not in texts:
            texts[document] = prepare(_held(db, document)).texts
        found.append((key, texts[document][first + key - (part << SHIFT)]))
    return found


def held_documents(db: sqlite3.Connection) -> Iterator[DocumentIn]:
    for (key,) in db.execute("select id from document order by path").fetchall():
        yield _held(db, key)


def _held(db: sqlite3.Connection, key: int) -> DocumentIn:
    row = db.execute(
        "select path, digest, kind, layer, day, scopes, labels from document where id = ?", (key,)
    ).fetchone()
    path, digest, kind, layer, day, scopes, labels = row
    texts = db.execute("select text from part where document = ? order by id", (key,))
    return DocumentIn(
        path=path,
        digest=digest,
        text="".join(text for (text,) in texts),
        kind=kind,
        layer=layer,
        date=date.fromordinal(day) if day else None,
        scopes=scopes,
        labels=tuple(Label(start=a, end=b, scopes=s, trusted=t) for a, b, s, t in json.loads(labels)),
    )


def unit_array(rows: Iterable[tuple[Any, ...]], parts: Sequence[tuple[int, int, int]], field: Field) -> NDArray[Any]:
    """Units as a field keeps them; `parts` are (id, document, number of the first unit), ascending, and hold them all."""
    units = np.array(
        [(r[0], 0, 0, r[1], r[2], r[3], r[4], field.number_of(r[5]), r[6], r[7], r[8]) for r in rows], dtype=UNIT
    )
    held = np.array(parts, dtype=np.int64).reshape(-1, 3)
    whose = held[np.searchsorted(held[:, 0], units["key"] >> SHIFT)]
    units["doc"] = whose[:, 1]
    units["n"] = whose[:, 2] + (units["key"] & ((1 << SHIFT) - 1))
    return units


def vector_array(rows: Iterable[tuple[int, bytes]], units: NDArray[Any]) -> Vectors | None:
    held = list(rows)
    if not held:
        return None
    data = np.frombuffer(b"".join(row[1] for row in held), dtype="<i2").reshape(len(held), -1)
    if len(held) == len(units):
        return data
    ids = units["key"]
    full = np.zeros((len(units), data.shape[1]), dtype=np.int16)
    full[np.searchsorted(ids, np.fromiter((row[0] for row in held), dtype=np.int64, count=len(held)))] = data
    return full


def shown_row(part: tuple[Any, ...], lines: list[str], unit: tuple[Any, ...] | None, n: int) -> UnitRow | None:
    """A unit as it is shown; `n` is its number in the part, and `lines` are the part's."""
    if unit is None:
        return None
    path, kind, layer, day, digest, line, first_unit, _ = part
    start, end, trail, tagged, trusted = unit
    return UnitRow(
        path=path,
        start_line=start,
        end_line=end,
        text="\n".join(text.rstrip("\r") for text in lines[start - line : end - line + 1]),
        trail=trail,
        kind=kind,
        layer=layer,
        date=date.fromordinal(day) if day else None,
        trusted=bool(trusted),
        document_id=hashlib.blake2b(path.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest(),
        chunk_id=f"{digest[:12]}:{first_unit + n}",
        tags=tuple(tagged.split()),
    )
