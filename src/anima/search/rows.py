"""The tables of the index in a home's database: one row a part, packed as it is packed for SQLite.

Promise: the same rows give the same answers, bit for bit; ids are given by the home's own row, so none is used twice and no
sequence is shared by tenants. A reading is one statement and sees one generation. Transactions are the index's own, never
those of a change. Not here: arrays and ranking (`field`, `rank`), connections (anima.store.rows).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from anima.errors import HomeError
from anima.search.tables import Changes, DocumentRow, IndexDown, Mark, PartRow, ShownPart, Writing
from anima.store.rows.transaction import HomeRows
from anima.text import read_statements

_SQL = read_statements("search", "rows")


class RowTables:
    """`Tables` in a database. What the server cannot do now is `IndexDown`."""

    def __init__(self, rows: HomeRows) -> None:
        self._rows = rows if rows.engine.alone_writes else HomeRows(rows.engine, rows.tenant, rows.home)
        self._notes: list[str] = []

    @property
    def exists(self) -> bool:
        with _down():
            return bool(self._rows.ask(_SQL["made"]))

    def begin(self, made_for: str, *, anew: bool = False) -> None:
        with _down():
            held = self._rows.one(_SQL["made"])
            if held is not None and held[1] == made_for and not anew:
                return
            with self._rows.transaction():
                self._rows.tell(_SQL["begin"])
                found = self._rows.ask(_SQL["made"] + " for update")[0][1]
                if found == made_for and not anew:
                    return
                if found and found != made_for:
                    self._notes.append("the index is being rebuilt for another model or cutting")
                self._rows.tell("delete from anima.part where [own]")
                self._rows.tell("delete from anima.document where [own]")
                self._rows.tell(_SQL["begin_again"], of=made_for)

    def known(self) -> dict[str, str]:
        with _down():
            return dict(self._rows.ask(_SQL["known"]))

    def since(self, mark: Mark, made: Callable[..., Any] = PartRow) -> Changes:
        with _down():
            now = self._rows.one(_SQL["made"]) if mark.epoch else None
            if now is not None and (now[0], now[2]) == (mark.epoch, mark.generation):
                return Changes(mark=mark)
            seen = {"epoch": mark.epoch, "part": mark.part, "document": mark.document}
            rows = self._rows.each(_SQL["since"], lambda row: (*row, row[0] == 2 and made(*row[1:3], *row[7:])), **seen)
        if not rows:
            raise IndexDown("the tables were not begun")
        rows.sort(key=lambda row: row[:2])  # the server would sort all of them before it sent the first
        _, part, document, generation, epoch, made_for, *_ = rows[0]
        return Changes(
            mark=Mark(epoch, made_for, generation, part, document),
            alive={row[1]: row[2] for row in rows if row[0] > 1},
            documents=[DocumentRow(row[1], row[4], row[5], row[6], row[2]) for row in rows if row[0] == 1],
            parts=[row[-1] for row in rows if row[0] == 2],
        )

    def put(self, epoch: str, documents: Sequence[Writing]) -> list[str]:
        with _down(), self._rows.transaction():
            made = self._rows.one(_SQL["made"] + " for update")
            if made is None or made[0] != epoch:
                return [one.row.path for one in documents]
            held: dict[str, list[int]] = {}
            for path, part in self._rows.ask(_SQL["parts"], paths=[one.row.path for one in documents]):
                held.setdefault(path, []).append(part)
            refused = [one.row.path for one in documents if held.get(one.row.path, []) != list(one.before)]
            self._put([one for one in documents if one.row.path not in refused], *made[3:])
            return refused

    def _put(self, documents: Sequence[Writing], part: int, document: int) -> None:
        rows, gone = self._rows, [key for one in documents for key in one.before[one.kept :]]
        kept, new = [one for one in documents if one.kept], [one for one in documents if not one.kept]
        paths = [one.row.path for one in kept]
        ids = dict(rows.ask(_SQL["ids"], paths=paths)) if paths else {}
        rows.tell(_SQL["drop_parts"], gone=gone)
        rows.tell(_SQL["drop_documents"], paths=[one.row.path for one in new])
        ids |= {one.row.path: number for number, one in enumerate(new, document + 1)}
        rows.tell_all(_SQL["digest"], [{"digest": one.digest, "path": one.row.path} for one in kept])
        put = [one.row._asdict() | {"id": ids[one.row.path], "digest": one.digest} for one in new]
        rows.tell_all(_SQL["put_document"], put)
        parts = [(ids[one.row.path], each) for one in documents for each in one.parts]
        said = [each._asdict() | {"document": key, "said": each.said.encode()} for key, each in parts]
        rows.tell_all(_SQL["put_part"], [row | {"id": number} for number, row in enumerate(said, part + 1)])
        rows.tell(_SQL["next"], step=int(bool(parts or gone)), parts=len(parts), documents=len(new))

    def drop(self, paths: Collection[str]) -> int:
        if not paths:
            return 0
        with _down(), self._rows.transaction():
            self._rows.ask(_SQL["made"] + " for update")
            gone = [row[0] for row in self._rows.ask(_SQL["drop"], paths=list(paths))]
            self._rows.tell(_SQL["drop_parts_of"], gone=gone)
            self._rows.tell(_SQL["next"], step=int(bool(gone)), parts=0, documents=0)
            return len(gone)

    def shown(self, parts: Collection[int]) -> dict[int, ShownPart]:
        with _down():
            rows = self._rows.ask(_SQL["shown"], parts=list(parts)) if parts else []
        return {row[0]: ShownPart(row[1], row[2].decode()) for row in rows}

    def notes(self) -> tuple[str, ...]:
        said, self._notes = tuple(self._notes), []
        return said

    def close(self) -> None:
        """Nothing is held; connections are the process's."""


@contextmanager
def _down() -> Iterator[None]:
    try:
        yield
    except HomeError as error:
        raise IndexDown(str(error)) from error
