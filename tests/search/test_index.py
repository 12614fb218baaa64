"""The index over any tables: what was put is found, what is hidden leaves no trace, and nothing depends on the way there."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anima.model import Embedder
from anima.search.embed.client import EmbedderDown
from anima.search.field import FACE, SCALE, Filter, Packed, quantised
from anima.search.index import DocumentIn, Index
from anima.search.rank import Query, SearchAnswer, run
from anima.search.rows import RowTables
from anima.search.tables import Mark, SqliteTables, Tables
from anima.store.rows import find_home
from anima.testing.embedder import MockEmbedder
from anima.testing.tables import MemoryRoom, MemoryTables, TablesContract
from anima.text import ask
from conftest import Cluster

OWNER, GROUP = 1, 2
MAIN_ONLY, BOTH = OWNER, OWNER | GROUP
ENGINES = ("sqlite", "memory")


def engine(kind: str, folder: Path, name: str = "index") -> Callable[[], Tables]:
    """Opens an engine; each call once more."""
    room = MemoryRoom()
    if kind == "memory":
        return lambda: MemoryTables(room)
    return lambda: SqliteTables(str(folder / f"{name}.sqlite"), lock=str(folder / f"{name}.lock"))


class TestSqliteTables(TablesContract):
    def factory(self, folder: str) -> Callable[[], Tables]:
        return engine("sqlite", Path(folder))


class TestPostgresTables(TablesContract):
    """As the application's role."""

    @pytest.fixture(autouse=True)
    def in_a_tenant_of_its_own(self, cluster: Cluster, sealed: str) -> None:
        place = find_home(
            cluster.application, tenant=cluster.new_tenant(), agent="main", env={"ANIMA_KEY": sealed}, create=True
        )
        self.rows = place.rows

    def factory(self, folder: str) -> Callable[[], Tables]:
        return lambda: RowTables(self.rows)


class TestTablesInOneFile(TablesContract):
    def factory(self, folder: str) -> Callable[[], Tables]:
        place = find_home(f"file:{folder}/home.db", tenant=None, agent=None, env={}, create=True)
        return lambda: RowTables(place.rows)


class TestMemoryTables(TablesContract):
    def factory(self, folder: str) -> Callable[[], Tables]:
        return engine("memory", Path(folder))


Open = Callable[..., Index]


@pytest.fixture(params=ENGINES)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens an index by its name; the same name is the same engine."""
    engines: dict[str, Callable[[], Tables]] = {}
    made: list[Index] = []

    def make(name: str = "index", embedder: Embedder | None = None) -> Index:
        tables = engines.setdefault(name, engine(request.param, tmp_path, name))
        made.append(Index(tables(), embedder))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture(params=["words", "vectors"])
def index(request: pytest.FixtureRequest, opened: Open) -> Index:
    return opened(embedder=MockEmbedder() if request.param == "vectors" else None)


def document(path: str, text: str, **more: object) -> DocumentIn:
    return DocumentIn(path=path, digest=f"{hash((text, repr(more)))}", text=text, **more)  # type: ignore[arg-type]


def found(index: Index, text: str, **filter: object) -> list[tuple[str, int, int, float]]:
    answer = asked(index, text, **filter)
    return [(hit.path.text, hit.start_line, hit.end_line, hit.score) for hit in answer.hits]


def asked(index: Index, text: str, **filter: object) -> SearchAnswer:
    return run(index, None, Query(text=text, limit=20), Filter(**filter))  # type: ignore[arg-type]


def test_what_was_put_is_known_and_found(index: Index) -> None:
    report = index.put([document("a.md", "# Tea\n\n- Ana drinks oolong\n"), document("b.md", "coffee\n")])

    assert report.documents == 2
    assert set(index.known()) == {"a.md", "b.md"}
    assert found(index, "oolong")[0][:3] == ("a.md", 3, 3)


def test_a_document_put_again_takes_the_place_of_the_old_one(index: Index) -> None:
    index.put([document("a.md", "the boat is red\n")])
    index.put([document("a.md", "the boat is green\n")])

    assert found(index, "red") == []
    assert [hit[0] for hit in found(index, "green")] == ["a.md"]
    assert len(index.known()) == 1


def test_of_two_with_one_path_in_one_put_the_later_counts(index: Index) -> None:
    index.put([document("a.md", "first\n"), document("a.md", "second\n")])

    assert found(index, "first") == []
    assert len(found(index, "second")) == 1


def test_a_dropped_document_is_gone_with_its_words(index: Index) -> None:
    index.put([document("a.md", "secretword\n"), document("b.md", "other\n")])

    assert index.drop(["a.md", "never.md"]) == 1
    assert found(index, "secretword") == []
    assert set(index.known()) == {"b.md"}
    assert not len(index.look(Filter(), ["secretword"]).postings["secretword"][0])


def test_a_view_does_not_change_when_others_write(index: Index) -> None:
    index.put([document("a.md", "alpha beta\n")])
    view = index.look(Filter(), ["alpha"])
    index.put([document("b.md", "alpha\n")])
    index.drop(["a.md"])

    assert view.count == 1
    assert len(view.postings["alpha"][0]) == 1
    assert view.rows([0]) == [None]


def test_scopes_and_trust_hide_documents(index: Index) -> None:
    index.put([document("a.md", "open tea line\n", scopes=BOTH), document("b.md", "tea alone\n", scopes=MAIN_ONLY)])
    index.put([document("c.md", "tea of somebody\n", scopes=BOTH, trusted=False)])

    assert sorted(hit[0] for hit in found(index, "tea", scope=GROUP)) == ["a.md", "c.md"]
    assert len(found(index, "tea", scope=OWNER)) == 3
    assert found(index, "alone", scope=GROUP) == []
    assert sorted(hit[0] for hit in found(index, "tea", scope=OWNER, trusted_only=True)) == ["a.md", "b.md"]


def test_a_hidden_face_changes_no_score(index: Index, opened: Open) -> None:
    shown, other = ["the red boat sails", "tea with Ana", "a boat and a harbour"], opened("other")
    index.put([document("a.md", "\n\n".join(shown) + "\n", scopes=BOTH)])
    hidden = "\n\n".join([shown[0], "boat boat boat secret", *shown[1:]]) + "\n"
    other.put([document("a.md", hidden, scopes=MAIN_ONLY), document("z.md", "boat\n", scopes=MAIN_ONLY)])
    other.put([document(f"a.md{FACE}2", "\n\n".join(shown) + "\n", scopes=GROUP)])

    seen = [score for *_, score in found(index, "red boat harbour", scope=GROUP)]
    assert seen == [score for *_, score in found(other, "red boat harbour", scope=GROUP)]


def test_layers_kinds_trust_and_dates_are_filtered(index: Index) -> None:
    index.put(
        [
            document("MEMORY.md", "tea\n", kind="curated"),
            document("users/ana/MEMORY.md", "tea\n", kind="curated", layer="ana"),
            document("memory/2026-05-08.md", "tea\n", kind="daily", date=date(2026, 5, 8)),
            document("memory/2026-05-09.md", "tea\n", kind="daily", date=date(2026, 5, 9)),
        ]
    )

    def paths(**filter: object) -> list[str]:
        return sorted(hit[0] for hit in found(index, "tea", **filter))

    assert paths() == ["MEMORY.md", "memory/2026-05-08.md", "memory/2026-05-09.md"]
    assert paths(layers=frozenset({"ana"})) == ["users/ana/MEMORY.md"]
    assert paths(kinds=frozenset({"curated"})) == ["MEMORY.md"]
    assert paths(since=date(2026, 5, 9)) == ["memory/2026-05-09.md"]


def test_what_one_writes_another_that_is_open_sees(index: Index, opened: Open) -> None:
    second = opened(embedder=index._embedder)
    assert found(second, "tea") == []
    index.put([document("a.md", "tea\n")])

    assert len(found(second, "tea")) == 1
    second.drop(["a.md"])
    assert found(index, "tea") == []


def test_it_outlives_being_closed(index: Index, opened: Open) -> None:
    index.put([document("a.md", "tea\n")])
    before = found(index, "tea")
    index.close()

    assert found(opened(embedder=index._embedder), "tea") == before


def test_signs_in_a_query_mean_nothing(index: Index) -> None:
    index.put([document("a.md", 'say "hello" AND (x OR y*) NEAR text:col -minus\n')])

    for text in (
        '"',
        "hello AND",
        "NEAR(",
        "x OR y*",
        "text:col",
        "-minus",
        "col:",
        "'; drop table unit; --",
        "\x00",
    ):
        asked(index, text + " hello")
    assert len(index.known()) == 1


def test_an_empty_index_says_so(index: Index) -> None:
    assert asked(index, "tea").notes == ("nothing is written down here yet",)


def test_a_filter_that_hides_everything_says_so(index: Index) -> None:
    index.put([document("a.md", "tea\n", scopes=MAIN_ONLY)])
    assert "that this search may show" in asked(index, "tea", scope=GROUP).notes[0]


def test_a_word_is_counted_in_each_unit(index: Index) -> None:
    index.put([document("a.md", "# Boats\n\n- boat boat\n- tea\n- boat\n")])
    view = index.look(Filter(), ask("boat"))

    places, counts = view.postings["boat"]
    assert list(view.sight.rows["start"][places]) == [3, 4, 5]
    assert list(counts) == [2.5, 0.5, 1.5]  # a heading counts half for what stands under it


class Moody:
    """An embedder that can be away, and counts what it was asked."""

    name = "moody:64"
    dimension = 64
    is_remote = False

    def __init__(self) -> None:
        self.is_away, self.texts = False, 0

    def embed(self, texts: Sequence[str], *, kind: str) -> NDArray[np.float32]:
        if self.is_away:
            raise EmbedderDown("moody", "it is away")
        self.texts += len(texts)
        return MockEmbedder().embed(texts, kind="document")

    def close(self) -> None:
        pass


def hits(index: Index, embedder: object, text: str) -> list[tuple[str, int, float, int | None, int | None]]:
    answer = run(index, embedder, Query(text=text, limit=50), Filter())  # type: ignore[arg-type]
    return [(hit.path.text, hit.start_line, hit.score, hit.fts_rank, hit.vector_rank) for hit in answer.hits]


def rows(tables: Tables) -> list[tuple[object, ...]]:
    """All rows but for numbers, which tell of the order of writing and of nothing else."""
    changes = tables.since(Mark())
    documents = {row.id: row for row in changes.documents}
    shown = tables.shown([row.id for row in changes.parts])
    found = [
        (
            *documents[row.document][1:],
            Packed.part(*row).packed[:5],
            sorted_places(row.packed),
            row.vectors,
            shown[row.id],
        )
        for row in changes.parts
    ]
    return sorted(found, key=repr)


def sorted_places(packed: bytes) -> tuple[bytes, list[list[int]]]:
    part = Packed.part(0, 0, packed, b"").packed
    return part.units, sorted(np.frombuffer(part.places, dtype="<u4").reshape(-1, 3).tolist())


lines = st.lists(
    st.sampled_from(
        ["", "# Boats", "- Ana: the red boat", "tea and oolong", "私は東京", "I like my boat", "| a | tea |", "```"]
    ),
    max_size=8,
).map("\n".join)
edits = st.lists(st.tuples(st.sampled_from("abcd"), st.one_of(st.none(), lines)), min_size=1, max_size=12)


@settings(max_examples=25, deadline=None)
@given(steps=edits)
def test_after_any_edits_the_index_equals_one_built_at_once(steps: list[tuple[str, str | None]]) -> None:
    embedder, tables = MockEmbedder(), MemoryTables()
    one = Index(tables, embedder)
    texts: dict[str, str] = {}
    for name, text in steps:
        if text is None:
            one.drop([f"{name}.md"])
            texts.pop(name, None)
        else:
            one.put([document(f"{name}.md", text)])
            texts[name] = text
        one.look(Filter(), ["boat"])
    whole = Index(other := MemoryTables(), embedder)
    whole.put([document(f"{name}.md", text) for name, text in sorted(texts.items())])

    for question in ("red boat", "my tea", "東京", "Ana"):
        assert hits(one, embedder, question) == hits(whole, embedder, question)
    assert rows(tables) == rows(other)


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
    st.tuples(st.sampled_from(["append", "append", "insert", "cut", "show"]), st.integers(0, 200), blocks),
    min_size=1,
    max_size=8,
)


def changed(held: list[str], seen: dict[str, object], change: tuple[str, int, list[str]]) -> None:
    """One edit of a long log: most are appends, some stand in the middle, some change only who may see it."""
    how, place, added = change
    place = min(place, len(held))
    if how == "append":
        held.extend(added)
    elif how == "insert":
        held[place:place] = added
    elif how == "cut":
        del held[place : place + len(added)]
    else:
        seen.update(scopes=1 + place % 3, trusted=place % 2 == 0)


@settings(max_examples=40, deadline=None)
@given(steps=changes, ending=st.sampled_from(["", "\n"]), mark=st.sampled_from(["", "\ufeff"]))
def test_a_long_log_that_was_appended_to_and_edited_equals_one_indexed_at_once(
    steps: list[tuple[str, int, list[str]]], ending: str, mark: str
) -> None:
    embedder, tables = MockEmbedder(), MemoryTables()
    one = Index(tables, embedder)
    held, seen_by = list[str](), dict[str, object]()
    for step in steps:
        changed(held, seen_by, step)
        log = document("log.md", mark + "\n".join(held) + ending, **seen_by)
        one.put([log])
        one.look(Filter(), ["boat"])
    whole = Index(other := MemoryTables(), embedder)
    whole.put([log])

    for scope in (1, 2):
        for question in ("red boat", "Ana tea"):
            seen = [run(index, embedder, Query(text=question, limit=30), Filter(scope=scope)) for index in (one, whole)]
            assert seen[0] == seen[1]
    assert one.incomplete() == whole.incomplete() == {}
    assert rows(tables) == rows(other)


def test_an_append_to_a_long_log_leaves_all_but_its_last_part_as_it_stood() -> None:
    moody, tables = Moody(), MemoryTables()
    index = Index(tables, moody)
    text = "# Today\n\n" + "".join(f"- tea number {n}\n" for n in range(1000))
    index.put([document("log.md", text)])
    before, asked = [row.id for row in tables.since(Mark()).parts], moody.texts
    report = index.put([document("log.md", text + "- one needle\n")])

    after = [row.id for row in tables.since(Mark()).parts]
    assert len(before) > 20
    assert after[:-1] == before[:-1]
    assert after[-1] > before[-1]
    assert moody.texts == asked + 1
    assert (report.units, report.embedded, report.missing) == (1001, 1, 0)
    assert found(index, "needle")[0][1] == 1003


def test_a_document_put_again_unchanged_is_no_new_generation(opened: Open) -> None:
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
    index.put([document("log.md", text.replace("number 99", "secret 99"), scopes=2)])

    shown = view.rows(range(100))
    assert shown[0] is not None and shown[0][0] == "- tea number 0"
    assert shown[99] is None


def test_an_index_that_another_process_changed_in_between_is_still_right(opened: Open) -> None:
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

    assert [hit[:4] for hit in found(index, "late tea boat")] == [hit[:4] for hit in found(whole, "late tea boat")]
    assert found(index, "boat") == []


def test_another_model_makes_new_vectors_and_never_mixes_them(opened: Open) -> None:
    small, large = MockEmbedder(32), MockEmbedder(48)
    index = opened(embedder=small)
    index.put([document("a.md", "- red boat\n- oolong tea\n")])
    index.close()

    index = opened(embedder=large)
    assert index.known() == {}
    index.put([document("a.md", "- red boat\n- oolong tea\n")])
    assert index.look(Filter()).matrix.shape == (2, 48)  # type: ignore[union-attr]
    assert index.look(Filter()).model == large.name
    assert hits(index, large, "oolong tea")[0][1] == 2


def test_an_open_index_follows_when_another_process_changes_the_model(opened: Open) -> None:
    first = opened(embedder=MockEmbedder(32))
    first.put([document("a.md", "red boat\n")])
    assert first.look(Filter()).count == 1
    second = opened(embedder=MockEmbedder(48))
    second.put([document("a.md", "red boat\n"), document("b.md", "blue boat\n")])

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
    assert (report.units, report.embedded, report.missing) == (5, 1, 0)


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
    assert index.incomplete() == {"a.md": 2}
    again = index.put([document("a.md", "- red boat\n- oolong tea\n")], complete=True)
    assert (again.embedded, again.missing) == (2, 0)
    assert index.incomplete() == {}
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


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=changes)
def test_every_engine_gives_the_same_answers(tmp_path: Path, steps: list[tuple[str, int, list[str]]]) -> None:
    for old in tmp_path.iterdir():
        old.unlink()
    embedder = MockEmbedder()
    indexes = [Index(engine(kind, tmp_path)(), embedder) for kind in ENGINES]
    held, seen_by = list[str](), dict[str, object]()
    for number, step in enumerate(steps):
        changed(held, seen_by, step)
        text = "\n".join(held)
        for index in indexes:
            index.put([document("log.md", text, **seen_by), document(f"{number}.md", text[:200])])
            index.drop([f"{number - 2}.md"])
    for question in ("red boat", "my tea", "東京", "what does Ana say of oolong"):
        for fusion in ("context", "rrf", "weighted"):
            query = Query(text=question, limit=30, fusion=fusion, explain=True)
            first, second = (run(index, embedder, query, Filter(scope=2)) for index in indexes)
            assert first == second
    for index in indexes:
        index.close()


def test_an_engine_that_is_away_costs_the_answer_and_never_raises() -> None:
    tables = MemoryTables()
    index = Index(tables, None)
    index.put([document("a.md", "tea\n")])
    tables.is_down = True

    assert index.known() == {} and index.drop(["a.md"]) == 0
    assert index.put([document("b.md", "boat\n")]).documents == 0
    answer = asked(index, "tea")
    assert answer.hits == () and any("cannot be read" in note for note in answer.notes)
    tables.is_down = False
    assert len(found(index, "tea")) == 1


def test_rows_that_cannot_be_are_begun_again() -> None:
    tables = MemoryTables()
    index = Index(tables, None)
    index.put([document("a.md", "tea\n")])
    room = tables._room
    part, said = room.parts[room.last_part]
    for packed in (b"", b"{}\n", b"[1]\n", part.packed[:-4], part.packed + b"\xff" * 12, b"[" * 100_000):
        room.parts[room.last_part] = (part._replace(packed=packed), said)
        fresh = Index(tables, None)
        assert asked(fresh, "tea").hits == ()
        assert any("damaged" in note for note in fresh.notes()) or fresh.known() == {}
        fresh.put([document("a.md", "tea\n")])
        assert len(found(fresh, "tea")) == 1
        part, said = room.parts[room.last_part]


def test_what_another_model_made_is_left_alone_by_a_writer_without_it(opened: Open) -> None:
    first = opened(embedder=MockEmbedder(32))
    first.put([document("a.md", "red boat\n")])
    second = opened(embedder=MockEmbedder(48))
    second.put([document("a.md", "red boat\n")])
    report = first.put([document("b.md", "blue boat\n")])

    assert (report.embedded, report.missing) == (0, 1)
    assert second.look(Filter()).matrix.shape == (2, 48)  # type: ignore[union-attr]
    assert second.incomplete() == {"b.md": 1}


def test_a_field_of_which_most_is_gone_is_packed_anew_and_gives_the_same_answers(opened: Open) -> None:
    embedder = MockEmbedder()
    index, whole = opened(embedder=embedder), opened("whole", embedder)
    for n in range(12):
        index.put([document(f"{n}.md", f"- red boat {n}\n- tea {n}\n")])
        index.look(Filter(), ["boat"])
        if n > 2:
            index.drop([f"{n - 3}.md"])
    whole.put([document(f"{n}.md", f"- red boat {n}\n- tea {n}\n") for n in range(9, 12)])

    for question in ("red boat", "tea 11"):
        assert hits(index, embedder, question) == hits(whole, embedder, question)


def test_a_document_of_many_lines_is_put_in_one_piece(opened: Open) -> None:
    index = opened()
    index.put([DocumentIn(path="long.md", digest="d", text="- tea\n" * 5000 + "- needle\n")])

    assert found(index, "needle")[0][1] == 5001
    assert index.look(Filter()).count == 5001


def test_a_word_stands_where_it_stands_however_much_came_and_went(opened: Open) -> None:
    index, kept = opened(), dict[str, str]()
    for n in range(60):  # now a document more, now one that grows, now one that goes
        name = f"{n * 7 % 40}.md"
        kept[name] = kept.get(name, "") + f"- boat number {n} boat\n- tea and word{n % 9}\n"
        index.put([document(name, kept[name])])
        if n % 5 == 4:
            kept.pop(gone := f"{n * 3 % 40}.md", None)
            index.drop([gone])
        words = ["boat", "tea", f"word{n % 9}", "nowhere"]
        view = index.look(Filter(), words)
        for word in words:
            places, counts = view.postings[word]
            stands = [(view.sight.documents[view.sight.doc[at]].path, view.sight.rows["start"][at]) for at in places]
            said = {(path, at): line for path, text in kept.items() for at, line in enumerate(text.splitlines(), 1)}
            assert list(places) == sorted(set(places))
            assert {each: counts[k] for k, each in enumerate(stands)} == {
                each: line.split().count(word) for each, line in said.items() if word in line.split()
            }
