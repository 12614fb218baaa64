"""Words of every language, cut the same for documents and queries."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.text import LONGEST, ask, cut, first_person, fold, highlight, stem, tags
from anima.text.dates import Span, spans_in


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("我住在上海浦东", "上海"),
        ("我住在上海浦东", "海"),
        ("東京タワーに行った", "東京"),
        ("カメラを買いました", "カメラ"),
        ("서울에서 만나요", "서울"),
        ("ผมชอบกินข้าวผัด", "ข้าว"),
        ("Köln und Zürich", "zurich"),
        ("El niño tomó café", "CAFE"),
        ("see http_2_server for more", "http_2_server"),
        ("see http_2_server for more", "server"),
        ("getUserName fails", "user name"),
        ("fixed in #42", "#42"),
        ("fixed in #42", "42"),
        ("GPT4 and v2beta", "gpt4"),
        ("Use 上海 airport code PVG", "pvg 上海"),
        ("she was painting sunrises", "paint sunrise"),
        ("they danced and studied", "dance study"),
        ("l'homme est là", "homme"),
        ("Ana’s phone", "ana"),
        ("Straße", "STRASSE"),
        ("ｆｕｌｌ ｗｉｄｔｈ", "full width"),
        ("Привет мир", "МИР"),
        ("שלום עולם", "עולם"),
    ],
)
def test_a_query_shares_its_words_with_the_text(text: str, query: str) -> None:
    assert set(ask(query)) <= set(cut(text))


def test_a_query_of_two_characters_asks_for_the_pair() -> None:
    assert ask("上海") == ["上海"]
    assert ask("海") == ["海"]


def test_small_words_are_dropped_unless_there_is_nothing_else() -> None:
    assert ask("which phone does Ana use") == [stem("phone"), "ana", "use"]
    assert ask("what is it") == ["what", "is", "it"]
    assert ask("donde está el gato de la casa") == ["gato", "casa"]


def test_a_word_of_another_language_does_not_vanish_from_an_english_query() -> None:
    assert "war" in ask("war history")
    assert "not" in ask("who is not coming")


@pytest.mark.parametrize(
    "group",
    [
        "paint paints painted painting",
        "dance dances danced dancing",
        "study studies studied",
        "hope hoped hoping",
        "battery batteries",
    ],
)
def test_forms_of_a_word_meet(group: str) -> None:
    assert len({stem(word) for word in group.split()}) == 1


@pytest.mark.parametrize("pair", ["hope hop", "made mad", "bus bu", "rating rat"])
def test_different_words_stay_apart(pair: str) -> None:
    one, other = pair.split()
    assert stem(one) != stem(other)


@given(st.text(max_size=200))
def test_cutting_is_the_same_whatever_the_case_and_never_fails(text: str) -> None:
    assert all(word and len(word) <= LONGEST * 4 for word in cut(text))
    assert set(ask(text)) <= set(cut(text))
    assert len(tags(text)) <= 8
    assert cut(text) == cut(text)


@given(st.text(max_size=30))
def test_folding_twice_is_folding_once(word: str) -> None:
    assert fold(fold(word)) == fold(word) or not word.isalpha()


@pytest.mark.parametrize(
    "text", ["a" * 200_000, "a.b" * 60_000, "机" * 200_000, "a'" * 90_000, "_" * 200_000, "#1" * 90_000]
)
def test_any_text_is_cut_in_linear_time(text: str) -> None:
    assert cut(text)
    tags(text)


def test_tags_are_what_a_text_is_about() -> None:
    assert tags("Deploy app.config to k8s-prod on 2026-05-08 with the the the") == ("app.config", "k8s-prod", "deploy")
    assert tags("und der die das les des") == ()
    assert tags("上海 and 海") == ("上海",)


def test_the_first_person_is_counted() -> None:
    assert first_person("I'm sure my dog likes me") == 3
    assert first_person("我喜欢茶") == 1
    assert first_person("She likes tea") == 0


AT = date(2026, 5, 13)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("what happened on 3 May 2023?", date(2023, 5, 3), date(2023, 5, 3)),
        ("dinner on May 3rd, 2023", date(2023, 5, 3), date(2023, 5, 3)),
        ("on 2023-05-03", date(2023, 5, 3), date(2023, 5, 3)),
        ("on December 1,2023", date(2023, 12, 1), date(2023, 12, 1)),
        ("in June 2024", date(2024, 6, 1), date(2024, 6, 30)),
        ("what did I do in June", date(2025, 6, 1), date(2025, 6, 30)),
        ("last March", date(2026, 3, 1), date(2026, 3, 31)),
        ("in 2024", date(2024, 1, 1), date(2024, 12, 31)),
        ("yesterday", date(2026, 5, 12), date(2026, 5, 12)),
        ("two weeks ago", date(2026, 4, 26), date(2026, 5, 2)),
        ("three days ago", date(2026, 5, 10), date(2026, 5, 10)),
        ("last Friday", date(2026, 5, 8), date(2026, 5, 8)),
        ("last month", date(2026, 4, 1), date(2026, 4, 30)),
        ("the past 10 days", date(2026, 5, 3), AT),
        ("last weekend", date(2026, 5, 9), date(2026, 5, 10)),
    ],
)
def test_dates_in_a_question_become_spans(text: str, first: date, last: date) -> None:
    assert [(span.first, span.last) for span in spans_in(text, at=AT)] == [(first, last)]


@pytest.mark.parametrize(
    "text", ["may I ask", "31 February 2023", "99 years ago last", "in 9999 things", "second week"]
)
def test_what_is_no_date_gives_no_exact_day(text: str) -> None:
    assert not any(span.exact and span.first == span.last for span in spans_in(text, at=AT))


def test_a_named_date_silences_a_distance_and_no_clock_means_no_distance() -> None:
    assert len(spans_in("last weekend before April 10, 2023", at=AT)) == 1
    assert spans_in("two weeks ago", at=None) == []
    assert spans_in("999 years ago", at=date(1, 1, 1)) == []


def test_nearness_falls_slowly_after_and_fast_before() -> None:
    span = Span(first=AT, last=AT, exact=True)

    assert span.nearness(AT) == 1
    assert 0 < span.nearness(date(2026, 5, 18)) < 1
    assert span.nearness(date(2026, 5, 8)) == 0
    assert span.nearness(date(2026, 6, 13)) == 0


@given(st.text(max_size=200), st.text(max_size=40))
def test_marking_the_words_that_were_asked_for_changes_no_text(text: str, query: str) -> None:
    assert "".join(piece for piece, _ in highlight(text, query)) == text


def test_a_word_that_was_asked_for_is_marked_in_another_form() -> None:
    assert [piece for piece, asked in highlight("He built two boats, and a shed", "boat") if asked] == ["boats"]
