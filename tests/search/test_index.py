"""The SQLite index: the contract, and what is its own: one file, a lock, damage, another model, other processes."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anima.search.embed.client import EmbedderDown
from anima.search.field import SCALE, quantised
from anima.search.index import DocumentIn, Filter, Label
from anima.search.rank import Query, run
from anima.search.sqlite import SqliteIndex
from anima.testing.embedder import MockEmbedder
from index_contract import IndexContract, document, found

Open = Callable[..., SqliteIndex]


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    made: list[SqliteIndex] = []

    def make(name: str = "index", embedder: object = None) -> SqliteIndex:
        one = SqliteIndex(str(tmp_path / f"{name}.sqlite"), lock=str(tmp_path / f"{name}.lock"), embedder=embedder)  # type: ignore[arg-type]
        made.append(one)
        return one

    yield make
    for one in made:
        one.close()


class TestSqliteIndex(IndexContract):
    @pytest.fixture
    def index(self, opened: Open) -> SqliteIndex:
        return opened()

    @pytest.fixture
    def other(self, opened: Open) -> SqliteIndex:
        return opened("other")

    @pytest.fixture
    def again(self, opened: Open) -> Open:
        return opened


class TestSqliteIndexWithVectors(IndexContract):
    @pytest.fixture
    def index(self, opened: Open) -> SqliteIndex:
        return opened(embedder=MockEmbedder())

    @pytest.fixture
    def other(self, opened: Open) -> SqliteIndex:
        return opened("other", MockEmbedder())

    @pytest.fixture
    def again(self, opened: Open) -> Callable[[], SqliteIndex]:
        return lambda: opened(embedder=MockEmbedder())


class Moody:
    """An embedder that can be away, and counts what it was asked."""

    name = "moody:64"
    dimension = 64

    def __init__(self) -> None:
        self.is_away, self.texts = False, 0

    def embed(self, texts: Sequence[str], *, kind: str) -> NDArray[np.float32]:
        if self.is_away:
            raise EmbedderDown("moody", "it is away")
        self.texts += len(texts)
        return MockEmbedder().embed(texts, kind="document")

    def close(self) -> None:
        pass


def hits(index: SqliteIndex, embedder: object, text: str) -> list[tuple[str, int, float, int | None, int | None]]:
    answer = run(index, embedder, Query(text=text, limit=50), Filter())  # type: ignore[arg-type]
    return [(hit.path.text, hit.start_line, hit.score, hit.fts_rank, hit.vector_rank) for hit in answer.hits]


def rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows but for ids, which tell of the order of writing and of nothing else."""
    db = sqlite3.connect(path)
    sql = "select part.id, path, first_unit from part join document on document.id = part.document"
    names = {part: (path, first) for part, path, first in db.execute(sql)}

    def unit(key: int) -> tuple[str, int]:
        path, first = names[key >> 24]
        return path, first + (key & 0xFFFFFF)

    columns = "line, front, above, units, vectors, chars, print, text, words"
    held: dict[str, list[tuple[object, ...]]] = {
        "document": db.execute("select path, digest, kind, layer, day, scopes, labels from document").fetchall(),
        "part": [(*names[r[0]], *r[1:]) for r in db.execute(f"select id, {columns} from part")],
        "unit": [(*unit(r[0]), *r[1:]) for r in db.execute("select * from unit")],
        "posting": [(r[0], *names[r[1]], r[2]) for r in db.execute("select * from posting")],
        "vector": [(*unit(r[0]), *r[1:]) for r in db.execute("select * from vector")],
    }
    db.close()
    return {name: sorted(values, key=repr) for name, values in held.items()}


lines = st.lists(
    st.sampled_from(
        ["", "# Boats", "- Ana: the red boat", "tea and oolong", "私は東京", "I like my boat", "| a | tea |", "```"]
    ),
    max_size=8,
).map("\n".join)
edits = st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), lines)), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=edits)
def test_after_any_edits_the_index_equals_one_built_at_once(
    tmp_path: Path, steps: list[tuple[str, str | None]]
) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    embedder = MockEmbedder()
    one = SqliteIndex(str(tmp_path / "one.sqlite"), lock=str(tmp_path / "one.lock"), embedder=embedder)
    texts: dict[str, str] = {}
    for name, text in steps:
        if text is None:
            one.drop([f"{name}.md"])
            texts.pop(name, None)
        else:
            one.put([document(f"{name}.md", text)])
            texts[name] = text
        one.look(Filter(), ["boat"])
    whole = SqliteIndex(str(tmp_path / "two.sqlite"), lock=str(tmp_path / "two.lock"), embedder=embedder)
    whole.put([document(f"{name}.md", text) for name, text in sorted(texts.items())])

    for question in ("red boat", "my tea", "東京", "Ana"):
        assert hits(one, embedder, question) == hits(whole, embedder, question)
    one.close()
    whole.close()
    assert rows(tmp_path / "one.sqlite") == rows(tmp_path / "two.sqlite")


LINES = [
    "",
    "# Boats",
    "## Red <!-- x -->",
    "- Ana: the red boat",
    "tea and oolong",
    "Ben: my boat",
    "  more",
    "| a | tea |",
    "```",
    "---",
    "- tea. " * 60,
    "I like 東京",
]
blocks = st.tuples(st.lists(st.sampled_from(LINES), min_size=1, max_size=6), st.integers(1, 25)).map(
    lambda b: b[0] * b[1]
)
changes = st.lists(
    st.tuples(st.sampled_from(["append", "append", "insert", "cut", "label"]), st.integers(0, 200), blocks),
    min_size=1,
    max_size=8,
)


def changed(held: list[str], labels: list[Label], change: tuple[str, int, list[str]]) -> None:
    """One edit of a long log: most are appends, some stand in the middle, some change only who may see a line."""
    how, place, added = change
    place = min(place, len(held))
    if how == "append":
        held.extend(added)
    elif how == "insert":
        held[place:place] = added
    elif how == "cut":
        del held[place : place + len(added)]
    else:
        labels.append(Label(start=place + 1, end=place + len(added), scopes=1 + place % 3, trusted=place % 2 == 0))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=changes, ending=st.sampled_from(["", "\n"]), mark=st.sampled_from(["", "\ufeff"]))
def test_a_long_log_that_was_appended_to_and_edited_equals_one_indexed_at_once(
    tmp_path: Path, steps: list[tuple[str, int, list[str]]], ending: str, mark: str
) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    embedder = MockEmbedder()
    one = SqliteIndex(str(tmp_path / "one.sqlite"), lock=str(tmp_path / "one.lock"), embedder=embedder)
    held, labels = list[str](), list[Label]()
    for step in steps:
        changed(held, labels, step)
        log = document("log.md", mark + "\n".join(held) + ending, labels=tuple(labels))
        one.put([log])
        one.look(Filter(), ["boat"])
    whole = SqliteIndex(str(tmp_path / "two.sqlite"), lock=str(tmp_path / "two.lock"), embedder=embedder)
    whole.put([log])

    for scope in (1, 2):
        for question in ("red boat", "Ana tea"):
            seen = [run(index, embedder, Query(text=question, limit=30), Filter(scope=scope)) for index in (one, whole)]
            assert seen[0] == seen[1]
    assert one.missing() == whole.missing() == 0
    one.close()
    whole.close()
    assert rows(tmp_path / "one.sqlite") == rows(tmp_path / "two.sqlite")


def part_ids(path: Path) -> list[int]:
    db = sqlite3.connect(path)
    found = [row[0] for row in db.execute("select id from part order by id")]
    db.close()
    return found


def test_an_append_to_a_long_log_leaves_all_but_its_last_part_as_it_stood(opened: Open, tmp_path: Path) -> None:
    moody = Moody()
    index = opened(embedder=moody)
    text = "# Today\n\n" + "".join(f"- tea number {n}\n" for n in range(1000))
    index.put([document("log.md", text)])
    before, asked = part_ids(tmp_path / "index.sqlite"), moody.texts
    report = index.put([document("log.md", text + "- one needle\n")])

    after = part_ids(tmp_path / "index.sqlite")
    assert len(before) > 20
    assert after[:-1] == before[:-1]
    assert after[-1] > before[-1]
    assert moody.texts == asked + 1
    assert (report.units, report.embedded, report.reused, report.missing) == (1002, 1, 1001, 0)
    assert found(index, "needle")[0][1] == 1003


def test_a_document_put_again_unchanged_is_no_new_generation(opened: Open, tmp_path: Path) -> None:
    index = opened()
    index.put([document("a.md", "tea\n")])
    view = index.look(Filter())
    index.put([DocumentIn(path="a.md", digest="another", text="tea\n")])

    assert index.known() == {"a.md": "another"}
    assert index.look(Filter()).sight is view.sight


def test_a_document_of_another_kind_is_taken_in_anew(opened: Open) -> None:
    index = opened()
    index.put([document("a.md", "tea\n", kind="note")])
    assert index.look(Filter(kinds=frozenset({"note"}))).count == 1
    index.put([document("a.md", "tea\n", kind="topic")])

    assert index.look(Filter(kinds=frozenset({"note"}))).count == 0
    assert index.look(Filter(kinds=frozenset({"topic"}))).count == 1


def test_a_view_never_shows_what_took_the_place_of_its_lines(opened: Open) -> None:
    index = opened()
    text = "".join(f"- tea number {n}\n" for n in range(100))
    index.put([document("log.md", text, scopes=2)])
    view = index.look(Filter(scope=2))
    private = Label(start=100, end=100, scopes=1)
    index.put([document("log.md", text.replace("number 99", "secret 99"), scopes=2, labels=(private,))])

    shown = view.rows(range(100))
    assert shown[0] is not None and shown[0].text == "- tea number 0"
    assert shown[99] is None


def test_an_index_that_another_process_changed_in_between_is_still_right(opened: Open, tmp_path: Path) -> None:
    text = "".join(f"- tea number {n}\n" for n in range(100))

    class Slow(Moody):
        """Lets another one write while vectors are made."""

        def embed(self, texts: Sequence[str], *, kind: str) -> NDArray[np.float32]:
            if any("late" in text for text in texts) and not self.is_away:
                self.is_away = True
                other.put([document("log.md", "- boat\n" + text)])
                self.is_away = False
            return MockEmbedder().embed(texts, kind="document")

    slow = Slow()
    index, other = opened(embedder=slow), opened(embedder=slow)
    index.put([document("log.md", text)])
    index.put([document("log.md", text + "- late\n")])
    whole = opened("whole", slow)
    slow.is_away = True
    whole.put([document("log.md", text + "- late\n")])

    assert rows(tmp_path / "index.sqlite") == rows(tmp_path / "whole.sqlite")


def test_the_files_are_for_their_owner_only(opened: Open, tmp_path: Path) -> None:
    opened().put([document("a.md", "tea\n")])

    for name in ("index.sqlite", "index.lock"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


@pytest.mark.parametrize("damage", [b"this is no database", b"SQLite format 3\x00" + b"\xff" * 5000, b""])
def test_a_damaged_file_is_begun_again_and_said(opened: Open, tmp_path: Path, damage: bytes) -> None:
    index = opened()
    index.put([document("a.md", "tea\n")])
    index.close()
    (tmp_path / "index.sqlite").write_bytes(damage)

    index = opened()
    assert index.known() == {}
    if damage:
        assert any("damaged" in note for note in index.notes())
    assert index.put([document("a.md", "tea\n")]).documents == 1
    assert len(found(index, "tea")) == 1


def test_damage_inside_an_open_file_is_never_an_error_for_a_write(opened: Open, tmp_path: Path) -> None:
    index = opened()
    index.put([document(f"{n}.md", f"tea number {n}\n" * 50) for n in range(50)])
    index.close()
    path = tmp_path / "index.sqlite"
    raw = bytearray(path.read_bytes())
    raw[4096:] = os.urandom(len(raw) - 4096)
    path.write_bytes(raw)

    index = opened()
    index.put([document("a.md", "tea\n")])
    index.put([document("a.md", "tea\n")])
    assert index.known().keys() >= {"a.md"}
    assert found(index, "tea")


def test_an_index_deleted_under_an_open_one_is_made_again(opened: Open, tmp_path: Path) -> None:
    index = opened()
    index.put([document("a.md", "tea\n")])
    for ending in ("", "-wal", "-shm"):
        (tmp_path / f"index.sqlite{ending}").unlink(missing_ok=True)

    assert index.known() == {}
    assert index.put([document("b.md", "tea\n")]).documents == 1
    assert [hit[0] for hit in found(index, "tea")] == ["b.md"]


def test_another_model_makes_new_vectors_and_never_mixes_them(opened: Open) -> None:
    small, large = MockEmbedder(32), MockEmbedder(48)
    index = opened(embedder=small)
    index.put([document("a.md", "- red boat\n- oolong tea\n")])
    index.close()

    index = opened(embedder=large)
    assert index.look(Filter()).matrix.shape == (2, 48)  # type: ignore[union-attr]
    assert index.look(Filter()).model == large.name
    assert "rebuilt" in " ".join(index.notes())
    assert hits(index, large, "oolong tea")[0][1] == 2


def test_an_open_index_follows_when_another_process_changes_the_model(opened: Open) -> None:
    first = opened(embedder=MockEmbedder(32))
    first.put([document("a.md", "red boat\n")])
    assert first.look(Filter()).count == 1
    second = opened(embedder=MockEmbedder(48))
    second.put([document("b.md", "blue boat\n")])

    answer = run(first, MockEmbedder(32), Query(text="boat"), Filter())
    assert len(answer.hits) == 2
    assert any("another model" in note for note in answer.notes)


def test_texts_that_have_a_vector_are_not_embedded_again(opened: Open) -> None:
    moody = Moody()
    index = opened(embedder=moody)
    index.put([document("a.md", "- one\n- two\n- three\n")])
    asked = moody.texts

    report = index.put([document("a.md", "- one\n- two\n- three\n- four\n"), document("b.md", "- two\n")])
    assert moody.texts == asked + 1
    assert (report.embedded, report.reused) == (1, 4)


def test_an_embedder_that_is_away_costs_the_vectors_not_the_write(opened: Open) -> None:
    moody = Moody()
    moody.is_away = True
    index = opened(embedder=moody)
    report = index.put([document("a.md", "- red boat\n- oolong tea\n")])
    assert report.missing == 2
    assert "it is away" in report.notes[0]
    answer = run(index, moody, Query(text="boat"), Filter())  # type: ignore[arg-type]
    assert answer.hits and answer.hits[0].provider == "words"
    assert any("words alone" in note for note in answer.notes)

    moody.is_away = False
    assert index.backfill(batch=1).embedded == 1
    assert index.backfill().missing == 0
    assert hits(index, moody, "oolong")[0][4] == 1


def test_vectors_of_different_order_give_exactly_the_same_cosines() -> None:
    dice = np.random.default_rng(7)
    matrix = dice.normal(size=(500, 256)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    small = quantised(matrix).astype(np.float32)
    order = dice.permutation(500)
    exact = small.astype(np.int64) @ small[0].astype(np.int64)

    assert np.array_equal(small @ small[0], exact)
    assert np.array_equal((small[order] @ small[0]), exact[order])
    assert abs(exact[1] / SCALE**2 - float(matrix[1] @ matrix[0])) < 1e-3


def test_threads_share_one_index(opened: Open) -> None:
    index = opened(embedder=MockEmbedder())
    failed: list[BaseException] = []

    def work(n: int) -> None:
        try:
            for step in range(5):
                index.put([document(f"{n}-{step}.md", f"tea of thread {n}\n")])
                assert found(index, "tea")
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert len(index.known()) == 20


WORKER = """
    import sys
    from anima.testing.embedder import MockEmbedder
    from anima.search.index import DocumentIn, Filter, Label
    from anima.search.sqlite import SqliteIndex
    from anima.search.rank import Query, run

    path, role, number = sys.argv[1:]
    embedder = MockEmbedder()
    index = SqliteIndex(path, lock=path + ".lock", embedder=embedder)
    for step in range(12):
        if role == "write":
            index.put([DocumentIn(path=f"{number}-{step}.md", digest="d", text=f"tea {number} {step}", scopes=1)])
            index.put([DocumentIn(path=f"{number}-x.md", digest=str(step), text=f"private boat {step}", scopes=2)])
        else:
            answer = run(index, embedder, Query(text="tea private boat", limit=50), Filter(scope=1))
            assert not any("private" in hit.text for hit in answer.hits)
            assert not any("cannot" in note or "damaged" in note for note in answer.notes), answer.notes
    assert not index.notes()
    index.close()
"""


def test_processes_that_write_and_search_at_once_lose_nothing(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    script = textwrap.dedent(WORKER)
    roles = [("write", n) for n in range(3)] + [("search", n) for n in range(2)]
    running = [
        subprocess.Popen([sys.executable, "-c", script, str(path), role, str(n)], stderr=subprocess.PIPE, text=True)
        for role, n in roles
    ]
    errors = [process.communicate()[1] for process in running]

    assert [process.returncode for process in running] == [0] * len(running), errors
    index = SqliteIndex(str(path), lock=f"{path}.lock", embedder=MockEmbedder())
    known = set(index.known())
    index.close()
    assert known == {f"{n}-{step}.md" for n in range(3) for step in [*range(12), "x"]}


def test_a_document_of_many_lines_is_put_in_one_piece(opened: Open) -> None:
    index = opened()
    index.put([DocumentIn(path="long.md", digest="d", text="- tea\n" * 5000 + "- needle\n")])

    assert found(index, "needle")[0][1] == 5001
    assert index.look(Filter()).count == 5001
