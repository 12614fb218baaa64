"""Ranking: the named modes to the digit, the default by what it must find, and what must never show."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_index import document

from anima.errors import BadArguments, BadConfig
from anima.search.embed import StaticEmbedder, open_embedder
from anima.search.embed.client import EmbedderDown
from anima.search.field import FACE, Filter
from anima.search.index import Index
from anima.search.rank import Hit, Query, SearchAnswer, run
from anima.testing.embedder import MockEmbedder
from anima.testing.tables import MemoryTables

MOCK = MockEmbedder()


@pytest.fixture
def index() -> Iterator[Index]:
    it = Index(MemoryTables(), MOCK)
    yield it
    it.close()


@pytest.fixture(scope="module")
def static() -> StaticEmbedder:
    return StaticEmbedder()


@pytest.fixture
def meaning(static: StaticEmbedder) -> Iterator[Index]:
    it = Index(MemoryTables(), static)
    yield it
    it.close()


def ask(
    index: Index, text: str, *, embedder: object = MOCK, filter: Filter | None = None, **more: object
) -> SearchAnswer:
    return run(index, embedder, Query(text=text, **more), filter or Filter())  # type: ignore[arg-type]


def lines(answer: SearchAnswer) -> list[tuple[str, int]]:
    return [(hit.path.text, hit.start_line) for hit in answer.hits]


LINES = "- the red boat\n- the red car\n- a boat in the harbour\n- oolong tea\n"


def test_rrf_is_the_seeds_formula_to_the_digit(index: Index) -> None:
    index.put([document("a.md", LINES)])
    answer = ask(index, "red boat", fusion="rrf", explain=True)

    for hit in answer.hits:
        raw = sum(1 / (60 + rank) for rank in (hit.fts_rank, hit.vector_rank) if rank is not None)
        assert hit.why is not None
        assert hit.why["rrf"] == pytest.approx(raw, abs=1e-15)
        assert hit.score == pytest.approx(raw / (2 / 61), abs=1e-12)
    best = answer.hits[0]
    assert (best.start_line, best.fts_rank, best.vector_rank) == (1, 1, 1)
    assert best.why is not None and best.why["rrf"] == 1 / 61 + 1 / 61
    assert best.score == pytest.approx(1.0)
    second = answer.hits[1]
    assert second.why is not None
    assert second.why["rrf"] == pytest.approx(1 / (60 + (second.fts_rank or 0)) + 1 / (60 + (second.vector_rank or 0)))


def test_weighted_is_seven_parts_meaning_and_three_parts_words(index: Index) -> None:
    index.put([document("a.md", LINES)])
    both = ask(index, "red boat", fusion="weighted", explain=True)
    only = ask(index, "red boat", fusion="weighted", legs="meaning", explain=True)
    words = ask(index, "red boat", fusion="weighted", legs="words", explain=True)

    best = both.hits[0]
    assert best.why is not None and words.hits[0].why is not None and only.hits[0].why is not None
    assert best.why["meaning"] == pytest.approx(0.7 * only.hits[0].why["meaning"])
    assert best.why["words"] == pytest.approx(0.3 * words.hits[0].why["words"])
    assert best.score == pytest.approx(best.why["meaning"] + best.why["words"])


@pytest.mark.parametrize("fusion", ["context", "rrf", "weighted"])
@pytest.mark.parametrize("legs", ["both", "words", "meaning"])
def test_scores_lie_between_0_and_1_and_fall(index: Index, fusion: str, legs: str) -> None:
    index.put([document("a.md", LINES), document("b.md", "I keep my red boat in the harbour, Ana said.\n")])
    answer = ask(index, "my red boat on 3 May 2023", fusion=fusion, legs=legs, limit=10)

    scores = [hit.score for hit in answer.hits]
    assert scores and all(0 <= score <= 1 for score in scores)
    assert scores == sorted(scores, reverse=True)


def test_ties_are_broken_by_path_and_line(index: Index) -> None:
    index.put([document("b.md", "tea\n\ntea\n"), document("a.md", "tea\n\ntea\n")])

    assert lines(ask(index, "tea")) == [("a.md", 1), ("a.md", 3), ("b.md", 1), ("b.md", 3)]


def test_words_only_needs_no_embedder_and_says_where_hits_came_from(index: Index) -> None:
    index.put([document("a.md", LINES)])
    answer = ask(index, "harbour", embedder=None, legs="words")

    hit = answer.hits[0]
    assert (hit.from_fts, hit.from_vector, hit.is_hybrid, hit.provider) == (True, False, False, "words")
    both = ask(index, "harbour").hits[0]
    assert both.is_hybrid and both.provider == MOCK.name


def test_meaning_only_without_an_embedder_says_so(index: Index) -> None:
    index.put([document("a.md", LINES)])
    answer = ask(index, "harbour", embedder=None, legs="meaning")

    assert answer.hits == ()
    assert "no embedder" in answer.notes[0]


class Away:
    name = MOCK.name
    dimension = 64

    def embed(self, texts: Sequence[str], *, kind: str) -> object:
        raise EmbedderDown("away", "no answer")

    def close(self) -> None:
        pass


def test_an_embedder_that_fails_degrades_to_words_and_says_so(index: Index) -> None:
    index.put([document("a.md", LINES)])
    answer = ask(index, "harbour", embedder=Away())

    assert answer.hits[0].start_line == 3
    assert "found by words alone" in answer.notes[0]


def test_an_empty_answer_says_why(index: Index) -> None:
    assert ask(index, "tea").notes == ("nothing is written down here yet",)
    index.put([document("a.md", LINES)])
    assert ask(index, "zzzz", legs="words").notes == ("nothing here answers this: no line says zzzz",)
    assert "no line holds" in ask(index, "zzzz", legs="words", fusion="rrf").notes[-1]
    assert "reached the score" in ask(index, "oolong", min_score=0.9999, fusion="weighted").notes[-1]


@pytest.mark.parametrize("more", [{"half_life": 0}, {"mmr": 2.0}, {"fusion": "x"}, {"legs": "x"}])
def test_a_question_that_makes_no_sense_is_refused(index: Index, more: dict[str, object]) -> None:
    with pytest.raises(BadArguments):
        ask(index, "tea", **more)
    with pytest.raises(BadArguments):
        ask(index, "  ")


def test_a_hit_cites_its_lines(index: Index) -> None:
    index.put([document("a.md", "# T\n\nfirst line\nsecond oolong line\n")])
    hit = ask(index, "oolong").hits[0]

    assert hit.citation == "a.md#L3-L4"
    assert hit.text == "first line\nsecond oolong line"
    assert hit.chunk_id and hit.document_id
    assert hit.why is None


def test_a_long_line_is_one_hit(index: Index) -> None:
    index.put([document("a.md", "The boat is red. " * 60)])

    assert lines(ask(index, "red boat", limit=10)) == [("a.md", 1)]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我住在上海", "上海"),
        ("我住在上海", "海"),
        ("東京タワー", "東京"),
        ("서울에서 만나요", "서울"),
        ("ข้าวผัดอร่อย", "ข้าว"),
        ("see http_2_server", "http_2_server"),
        ("fixed #42", "#42"),
        ("café", "CAFE"),
    ],
)
def test_all_languages_are_found(meaning: Index, static: StaticEmbedder, text: str, query: str) -> None:
    meaning.put([document("a.md", f"- {text}\n- something else\n- and more\n")])

    assert lines(ask(meaning, query, embedder=static))[0] == ("a.md", 1)
    assert lines(ask(meaning, query, legs="words"))[0] == ("a.md", 1)


def test_meaning_finds_what_words_do_not(meaning: Index, static: StaticEmbedder) -> None:
    meaning.put(
        [document("a.md", "- the feline slept all day\n- stock markets fell sharply\n- he repaired the engine\n")]
    )

    assert lines(ask(meaning, "cat", embedder=static))[0] == ("a.md", 1)


def test_who_is_named_as_speaker_is_preferred(index: Index) -> None:
    talk = "- Ana: I bought a boat\n- Luis: nice boat Ana\n- Ana: thanks\n- Luis: where is it\n- Ana: harbour\n- Luis: fine\n"
    index.put([document("a.md", talk)])

    assert lines(ask(index, "what boat did Ana buy"))[0] == ("a.md", 1)


def test_a_question_about_oneself_prefers_the_first_person(index: Index) -> None:
    index.put(
        [
            document(
                "a.md",
                "**assistant:** Old sneakers can be kept in a rack.\n\n**user:** I keep my old sneakers in a bag.\n",
            )
        ]
    )

    assert ask(index, "where do I keep my old sneakers").hits[0].start_line == 3


def test_a_date_in_the_question_finds_the_dated_file(index: Index) -> None:
    for day in (1, 8, 20):
        index.put(
            [document(f"memory/2026-05-{day:02d}.md", "- dinner with mother\n", kind="daily", date=date(2026, 5, day))]
        )

    at = date(2026, 5, 21)
    assert lines(ask(index, "who came to dinner on May 8, 2026", at=at))[0][0] == "memory/2026-05-08.md"
    assert lines(ask(index, "who came to dinner yesterday", at=at))[0][0] == "memory/2026-05-20.md"
    assert lines(ask(index, "what happened on May 1, 2026", at=at))[0][0] == "memory/2026-05-01.md"


def test_a_neighbour_that_holds_the_other_word_helps(index: Index) -> None:
    index.put([document("a.md", "- which phone\n- the samsung\n\n" + "- filler\n" * 8 + "- the samsung\n")])

    found = [hit.start_line for hit in ask(index, "phone samsung", limit=3).hits]
    assert found.index(2) < found.index(12)


def test_age_fades_dated_lines_and_spares_evergreen_ones(index: Index) -> None:
    index.put(
        [
            document("memory/2026-01-01.md", "tea\n", kind="daily", date=date(2026, 1, 1)),
            document("memory/2026-05-01.md", "tea\n", kind="daily", date=date(2026, 5, 1)),
            document("MEMORY.md", "tea\n", kind="curated"),
        ]
    )
    plain = {hit.path.text: hit.score for hit in ask(index, "tea", at=date(2026, 5, 1)).hits}
    aged = {hit.path.text: hit.score for hit in ask(index, "tea", at=date(2026, 5, 1), half_life=30).hits}

    assert aged["MEMORY.md"] == plain["MEMORY.md"]
    assert aged["memory/2026-05-01.md"] == plain["memory/2026-05-01.md"]
    assert aged["memory/2026-01-01.md"] == pytest.approx(plain["memory/2026-01-01.md"] * 0.5**4)


def test_a_cap_for_each_source_and_diversity_are_on_request(index: Index) -> None:
    index.put([document("a.md", "- red boat\n- red boat\n- red boat\n"), document("b.md", "- red boat and tea\n")])

    assert len({path for path, _ in lines(ask(index, "red boat", limit=2))}) == 1
    assert len({path for path, _ in lines(ask(index, "red boat", limit=2, per_source=1))}) == 2
    assert len({path for path, _ in lines(ask(index, "red boat", limit=2, mmr=0.3))}) == 2


def test_a_rerank_function_has_the_last_word(index: Index) -> None:
    def shortest_first(text: str, hits: Sequence[Hit]) -> list[float]:
        return [1 / len(hit.text) for hit in hits]

    index.put([document("a.md", LINES)])
    assert ask(index, "red boat", rerank=shortest_first, limit=1).hits[0].text == min(LINES.split("\n")[:4], key=len)


@pytest.mark.parametrize("scores", [[], [1.0], None])
def test_a_rerank_function_that_gives_no_score_for_each_hit_is_told(index: Index, scores: Any) -> None:
    index.put([document("a.md", LINES)])
    with pytest.raises(BadArguments, match="rerank gives a score for each of"):
        ask(index, "red boat", rerank=lambda query, hits: scores)


CANARY = "xyzzycanary"


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_canary_of_a_hidden_face_or_layer_ever_shows(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    hidden = data.draw(st.sets(st.integers(1, count)))
    text = "".join(f"- boat {CANARY} {n}\n" if n in hidden else f"- boat {n}\n" for n in range(1, count + 1))
    shown = "".join("\n" if n in hidden else f"- boat {n}\n" for n in range(1, count + 1))
    it = Index(MemoryTables(), MOCK)
    it.put([document("a.md", text, scopes=1), document(f"a.md{FACE}2", shown, scopes=2)])
    it.put([document("u.md", f"boat {CANARY}\n", layer="ana")])
    it.put([document(f"{CANARY}.md", "boat\n", scopes=1)])
    for fusion in ("context", "rrf", "weighted"):
        answer = ask(it, f"boat {CANARY}", filter=Filter(scope=2), fusion=fusion, explain=True, limit=50)
        assert CANARY not in repr(answer)
    it.close()


def test_the_static_embedder_needs_no_network_and_does_not_import_its_package() -> None:
    script = (
        "import sys; from anima.search.embed import StaticEmbedder as S; v = S().embed(['tea', ''], kind='query');"
        "assert v.shape == (2, 256) and abs(float(v[0] @ v[0]) - 1) < 1e-5 and not v[1].any();"
        "assert 'wordllama' not in sys.modules and 'tokenizers' not in sys.modules"
    )
    environment = {"HF_HUB_OFFLINE": "1", "HOME": "/nonexistent", "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", script], check=True, env=environment)


def test_static_sub_words_are_those_of_the_models_own_tokenizer(static: StaticEmbedder) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    own = tokenizers.Tokenizer.from_file(static._vocabulary_path)
    for text in ("which phone does Ana use", "naïve café 東京 😀 #42", "http_2_server isn't (broken)…", "Zürich Grüße"):
        wanted = own.encode(text, add_special_tokens=False).ids
        assert [n for word in text.split() for n in static.sub_words(word)] == wanted


def test_a_text_has_the_same_vector_whatever_it_is_embedded_with(static: StaticEmbedder) -> None:
    alone = static.embed(["the red boat"], kind="document")[0]
    among = static.embed(["tea", "the red boat", "x " * 500], kind="document")[1]

    assert (alone == among).all()


def test_embedders_are_found_by_name() -> None:
    assert open_embedder("none") is None
    assert open_embedder("mock").name == "mock:64"  # type: ignore[union-attr]
    with pytest.raises(BadConfig):
        open_embedder("nonsense")
