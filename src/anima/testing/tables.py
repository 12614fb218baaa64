"""What every engine of the index promises, as tests; and one in memory that keeps the promise in the fewest lines.

Promise: a subclass that names a factory runs the whole contract under pytest, over rows whose contents mean nothing.
Not here: what an index makes of the rows (`tests/search`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

from anima.search.tables import Changes, DocumentRow, IndexDown, Mark, NewPart, PartRow, ShownPart, Tables, Writing


class MemoryTables:
    """`Tables` in this process. Tables that are given the same `room` are one engine, opened several times."""

    def __init__(self, room: MemoryRoom | None = None) -> None:
        self._room = room or MemoryRoom()
        self.is_down = False  # for tests: whether nothing can be had

    @property
    def exists(self) -> bool:
        return self._room.epoch > 0

    def begin(self, made_for: str, *, anew: bool = False) -> None:
        with self._open() as room:
            if anew or room.made_for != made_for or not room.epoch:
                room.clear(made_for)

    def known(self) -> dict[str, str]:
        with self._open() as room:
            return {row.path: room.digests[key] for key, row in room.documents.items()}

    def since(self, mark: Mark, made: Callable[..., Any] = PartRow) -> Changes:
        with self._open() as room:
            epoch = str(room.epoch)
            if (epoch, room.generation) == (mark.epoch, mark.generation):
                return Changes(mark=mark)
            part, document = (mark.part, mark.document) if epoch == mark.epoch else (0, 0)
            return Changes(
                mark=Mark(epoch, room.made_for, room.generation, room.last_part, room.last_document),
                alive={key: row.document for key, (row, _) in room.parts.items()},
                documents=[row for key, row in room.documents.items() if key > document],
                parts=[made(*row) for key, (row, _) in room.parts.items() if key > part],
            )

    def put(self, epoch: str, documents: Sequence[Writing]) -> list[str]:
        with self._open() as room:
            if epoch != str(room.epoch):
                return [one.row.path for one in documents]
            refused = [one.row.path for one in documents if room.parts_of(one.row.path) != list(one.before)]
            changed = [room.replace(one) for one in documents if one.row.path not in refused]
            room.generation += any(changed)
            return refused

    def drop(self, paths: Collection[str]) -> int:
        with self._open() as room:
            gone = sum(room.erase(path) for path in paths)
            room.generation += bool(gone)
            return gone

    def shown(self, parts: Collection[int]) -> dict[int, ShownPart]:
        with self._open() as room:
            rows = {key: room.parts[key] for key in parts if key in room.parts}
            return {key: ShownPart(room.digests[row.document], said) for key, (row, said) in rows.items()}

    def notes(self) -> tuple[str, ...]:
        return ()

    def close(self) -> None:
        """Nothing is held."""

    @contextmanager
    def _open(self) -> Iterator[MemoryRoom]:
        if self.is_down:
            raise IndexDown("the tables are away")
        with self._room.lock:
            yield self._room


class MemoryRoom:
    """What tables in memory hold."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.epoch = self.last_part = self.last_document = 0
        self.clear("")
        self.epoch = 0

    def clear(self, made_for: str) -> None:
        self.epoch, self.made_for = self.epoch + 1, made_for
        self.generation = 0  # numbers go on: whoever looked before takes no part of the new rows for theirs
        self.documents: dict[int, DocumentRow] = {}
        self.digests: dict[int, str] = {}
        self.parts: dict[int, tuple[PartRow[bytes], str]] = {}

    def parts_of(self, path: str) -> list[int]:
        return [key for key, (row, _) in self.parts.items() if self.documents[row.document].path == path]

    def replace(self, one: Writing) -> bool:
        gone = one.before[one.kept :]
        if not one.kept:
            self.erase(one.row.path)
            self.last_document += 1
            self.documents[self.last_document] = one.row._replace(id=self.last_document)
        for key in gone:
            self.parts.pop(key, None)
        document = next(key for key, row in self.documents.items() if row.path == one.row.path)
        self.digests[document] = one.digest
        for part in one.parts:
            self.last_part += 1
            self.parts[self.last_part] = (PartRow(self.last_part, document, part.packed, part.vectors), part.said)
        return bool(gone or one.parts)

    def erase(self, path: str) -> int:
        for key in self.parts_of(path):
            del self.parts[key]
        gone = [key for key, row in self.documents.items() if row.path == path]
        for key in gone:
            del self.documents[key], self.digests[key]
        return len(gone)


class TablesContract:
    """The promises of `Tables`. A subclass says how an engine is opened:

        class TestMyTables(TablesContract):
            def factory(self, folder):
                return lambda: MyTables(folder)

    `folder` is an empty one for each test; every call of the factory opens the same engine once more.
    """

    def factory(self, folder: str) -> Callable[[], Tables]:
        raise NotImplementedError

    @contextmanager
    def _opened(self, folder: object) -> Iterator[Callable[[], Tables]]:
        """Opens the engine, begun for `m`; whatever was opened is closed in the end."""
        make = self.factory(str(folder))
        with ExitStack() as stack:

            def opened() -> Tables:
                tables = stack.enter_context(closing(make()))
                tables.begin("m")
                return tables

            yield opened

    def test_an_engine_that_nobody_began_keeps_nothing_and_asking_makes_nothing(self, tmp_path: object) -> None:
        make = self.factory(str(tmp_path))
        with closing(make()) as tables:
            assert not tables.exists and not tables.exists
            tables.begin("m")
            assert tables.exists

    def test_what_was_put_is_known_listed_and_shown(self, tmp_path: object) -> None:
        with self._opened(tmp_path) as opened:
            tables = opened()
            put(tables, writing("a.md", "one", "two", digest="d1"), writing("b.md", "three", layer="ana", day=7))
            changes = tables.since(Mark())

            assert tables.known() == {"a.md": "d1", "b.md": "d"}
            assert [row[1:] for row in changes.documents] == [("a.md", "note", "", 0), ("b.md", "note", "ana", 7)]
            assert [(row.packed, row.vectors) for row in changes.parts] == [
                (b"one", b"v-one"),
                (b"two", b"v-two"),
                (b"three", b"v-three"),
            ]
            ids = [row.id for row in changes.parts]
            documents = [row.id for row in changes.documents]
            assert ids == sorted(ids) and documents == sorted(documents)
            assert changes.alive == {row.id: row.document for row in changes.parts}
            assert [row.document for row in changes.parts] == [documents[0], documents[0], documents[1]]
            assert tables.shown(ids) == dict(
                zip(ids, [ShownPart("d1", "s-one"), ShownPart("d1", "s-two"), ShownPart("d", "s-three")], strict=True)
            )

    def test_rows_hold_any_bytes_and_any_text(self, tmp_path: object) -> None:
        with self._opened(tmp_path) as opened:
            tables = opened()
            every, said = bytes(range(256)) * 400, "\x00 \n\u2028 東京 \U0001f600 " * 3000
            row = DocumentRow(0, "a b/ü'\";--.md", "daily", "*", 738_000)
            part = NewPart(every, every[::-1], said)
            put(tables, Writing(row=row, digest="", before=(), kept=0, parts=(part, NewPart(b"", b"", ""))))
            changes = tables.since(Mark())

            assert changes.documents[0][1:] == row[1:]
            assert [tuple(found[2:]) for found in changes.parts] == [(every, every[::-1]), (b"", b"")]
            assert tables.shown([changes.parts[0].id]) == {changes.parts[0].id: ShownPart("", said)}

    def test_since_a_mark_only_what_is_new_comes_and_what_is_gone_is_missed(self, tmp_path: object) -> None:
        with self._opened(tmp_path) as opened:
            tables = opened()
            put(tables, writing("a.md", "one"), writing("b.md", "two"))
            first = tables.since(Mark())
            put(tables, writing("c.md", "three"))
            assert tables.drop(["a.md", "never.md"]) == 1
            second = tables.since(first.mark)

            assert [row.path for row in second.documents] == ["c.md"]
            assert [row.packed for row in second.parts] == [b"three"]
            assert second.alive is not None and first.alive is not None
            assert set(second.alive) == {first.parts[1].id, second.parts[0].id}
            assert second.parts[0].id > max(first.alive)
            assert tables.since(second.mark) == Changes(mark=second.mark)

    def test_a_number_is_never_used_twice(self, tmp_path: object) -> None:
        with self._opened(tmp_path) as opened:
            tables = opened()
            put(tables, writing("a.md", "one"))
            first = tables.since(Mark())
            tables.drop(["a.md"])
            put(tables, writing("a.md", "one"))
            second = tables.since(first.mark)

            assert second.parts[0].id > first.parts[0].id
            assert second.documents[0].id > first.documents[0].id
            assert tables.shown([first.parts[0].id]) == {}

    def test_the_parts_that_are_kept_stay_and_the_rest_is_replaced(self, tmp_path: object) -> None:
        with self._opened(tmp_path) as opened:
            tables = opened()
            put(tables, writing("a.md", "one", "two", "three"))
            first = tables.since(Mark())
            before = tuple(row.id for row in first.parts)
            put(tables, writing("a.md", "new", before=before, kept=2, digest="d2"))
            second = tables.since(first.mark)

            assert second.alive == dict.fromkeys((*before[:2], second.parts[0].id), first.documents[0].id)
            assert not second.documents
            assert tables.shown(before[:1]) == {before[0]: ShownPart("d2", "s-one")}
            assert tables.known() == {"a.md": "d2"}

    def test_a_document_that_keeps_no_part_gets_a_new_number(self, tmp_path: object) -> None:
        with self._opened(tmp_path) as opened:
            tables = opened()
            put(tables, writing("a.md", "one"))
            first = tables.since(Mark())
            put(tables, writing("a.md", "one", before=(first.parts[0].id,), kind="topic"))
            second = tables.since(first.mark)

            assert second.documents[0].kind == "topic" and second.documents[0].id > first.documents[0].id
            assert second.alive == {second.parts[0].id: second.documents[0].id}

    def test_a_digest_alone_is_no_new_generation(self, tmp_path: object) -> None:
        with self._opened(tmp_path) as opened:
            tables = opened()
            put(tables, writing("a.md", "one"))
            mark = tables.since(Mark()).mark
            put(tables, writing("a.md", before=(mark.part,), kept=1, digest="d2"))
            tables.drop(["never.md"])

            assert tables.known() == {"a.md": "d2"}
            assert tables.since(mark) == Changes(mark=mark)

    def test_a_document_that_somebody_else_changed_is_refused_and_the_others_stand(self, tmp_path: object) -> None:
        with self._opened(tmp_path) as opened:
            one, other = opened(), opened()
            put(one, writing("a.md", "one"))
            mark = one.since(Mark()).mark
            put(other, writing("a.md", "theirs", before=(mark.part,)))
            late = writing("a.md", "mine", before=(mark.part,))

            assert one.put(mark.epoch, [late, writing("b.md", "two")]) == ["a.md"]
            assert [row.packed for row in one.since(Mark()).parts] == [b"theirs", b"two"]
            assert one.put(mark.epoch, [writing("b.md", "as if new")]) == ["b.md"]

    def test_rows_made_for_something_else_are_dropped(self, tmp_path: object) -> None:
        with self._opened(tmp_path) as opened:
            one, other = opened(), opened()
            put(one, writing("a.md", "one"))
            mark = one.since(Mark()).mark
            assert mark.made_for == "m"
            other.begin("another")
            changes = one.since(mark)

            assert one.known() == {} and changes.alive == {}
            assert changes.mark.made_for == "another" and changes.mark.epoch != mark.epoch
            assert one.put(mark.epoch, [writing("a.md", "old")]) == ["a.md"]
            assert one.put(changes.mark.epoch, [writing("a.md", "new")]) == []

    def test_beginning_again_for_the_same_keeps_everything_unless_it_is_asked_to_be_anew(
        self, tmp_path: object
    ) -> None:
        with self._opened(tmp_path) as opened:
            tables = opened()
            put(tables, writing("a.md", "one"))
            mark = tables.since(Mark()).mark
            tables.begin("m")
            assert tables.since(mark) == Changes(mark=mark)
            tables.begin("m", anew=True)

            assert tables.known() == {}
            assert tables.since(mark).mark.epoch != mark.epoch
            put(tables, writing("b.md", "two"))
            assert tables.shown([mark.part]) == {}  # whoever looked before takes no part of the new rows for theirs

    def test_what_one_writes_another_sees_at_once_and_after_closing(self, tmp_path: object) -> None:
        with self._opened(tmp_path) as opened:
            one, other = opened(), opened()
            mark = other.since(Mark()).mark
            put(one, writing("a.md", "one"))
            assert [row.packed for row in other.since(mark).parts] == [b"one"]
            one.close()
            one.close()

            assert one.known() == other.known() == opened().known() == {"a.md": "d"}

    def test_threads_and_openings_that_write_at_once_lose_nothing(self, tmp_path: object) -> None:
        with self._opened(tmp_path) as opened:
            engines, failed = [opened(), opened()], list[BaseException]()

            def work(number: int) -> None:
                try:
                    tables = engines[number % 2]
                    for step in range(8):
                        put(tables, writing(f"{number}-{step}.md", f"text {number} {step}"))
                        add_to(tables, "shared.md", f"{number}-{step}")
                except BaseException as error:
                    failed.append(error)

            threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()

            assert failed == []
            changes = engines[0].since(Mark())
            names = {f"{number}-{step}" for number in range(4) for step in range(8)}
            assert set(engines[1].known()) == {"shared.md", *(f"{name}.md" for name in names)}
            shared = next(row.id for row in changes.documents if row.path == "shared.md")
            held = [row.packed.decode() for row in changes.parts if row.document == shared]
            assert len(held) == 32 and set(held) == names


def writing(
    path: str,
    *parts: str,
    before: tuple[int, ...] = (),
    kept: int = 0,
    digest: str = "d",
    kind: str = "note",
    layer: str = "",
    day: int = 0,
) -> Writing:
    """A document of parts whose contents follow from a word each."""
    rows = tuple(NewPart(part.encode(), f"v-{part}".encode(), f"s-{part}") for part in parts)
    return Writing(row=DocumentRow(0, path, kind, layer, day), digest=digest, before=before, kept=kept, parts=rows)


def put(tables: Tables, *documents: Writing) -> None:
    """Puts documents, none of which is refused."""
    refused = tables.put(tables.since(Mark()).mark.epoch, documents)
    assert refused == []


def add_to(tables: Tables, path: str, part: str) -> None:
    """Adds one part to a document that others add to at the same time, as often as it takes."""
    while True:
        changes = tables.since(Mark())
        numbers = {row.id for row in changes.documents if row.path == path}
        before = tuple(row.id for row in changes.parts if row.document in numbers)
        if not tables.put(changes.mark.epoch, [writing(path, part, before=before, kept=len(before))]):
            return
