"""What is known already: the same fact in the same, or nearly the same, words is told with its line."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.text.notes import same_course, same_words, sentence
from anima.text.pages import twin_of


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("- Ana likes tea", "ANA LIKES TEA!"),
        ("- Ana likes tea _(score=0.71, hits=4, days=3)_", "Ana likes tea."),
        ("- Ana has a dog called Rex", "Ana's dog is named Rex"),
        ("- The spare key hangs behind the green cupboard door", "The spare keys hang behind the green cupboard door"),
        ("- 安娜喜欢喝绿茶", "安娜喜欢喝绿茶"),
    ],
)
def test_a_fact_that_memory_says_already_is_found_with_its_line(line: str, fact: str) -> None:
    found = twin_of(f"# Memory\n\n{line}\n", fact)

    assert found is not None and found.line == 3


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("- Ana likes tea", "Ana does not like tea"),
        ("- Ana likes tea", "Ana hates tea"),
        ("- The rent is 640 euros a month", "The rent is 690 euros a month"),
        ("- The password of the network is tulip (guests)", "The password of the network is tulip (office)"),
        ("- Ana has a dog", "Ana has a dog and a cat"),
        ("- Take the pill before meals", "Take the pill after meals"),
        ("- Ana moved from Lima to Bogota", "Ana moved from Bogota to Lima"),
        ("- Luis likes tea more than coffee", "Luis likes coffee more than tea"),
        ("- Ana works with Luis", "Ana works for Luis"),
        ("- Ana lives in Lima", "Ana works in Lima"),
        ("- My sister lives in Lima", "His sister lives in Lima"),
        ("- He owes me money", "I owe him money"),
        (f"- {'long ' * 200}one", f"{'long ' * 200}other"),
        ("# Ana likes tea", "Ana likes tea"),
        ("- Ana likes tea", "…"),
        ("- Luis eats fish", "Luis eats no fish"),
        ("- Ana is vegan", "Ana isn't vegan"),
        ("- Ana come carne", "Ana no come carne"),
        ("- Ana lives in Rome", "Ana works in Rome"),
        ("- Deploy to prod before lunch", "Deploy to prod after lunch"),
        ("- The key is under the box", "The key is in the box"),
    ],
)
def test_another_fact_is_not_taken_for_a_known_one(line: str, fact: str) -> None:
    assert twin_of(f"# Memory\n\n{line}\n", fact) is None


def test_a_long_memory_is_not_read_line_by_line() -> None:
    sentence.cache_clear()
    page = "".join(f"- Guest {n} of the hotel pays {n} euros for room {n}\n" for n in range(20_000))

    assert twin_of(f"{page}- Ana likes green tea\n", "Ana likes green tea.") == (20_001, "Ana likes green tea")
    assert sentence.cache_info().misses < 20


WORDS = st.sampled_from(
    "Ana ana's Ana’s tea teas Tea:green likes liked liking parties party organise organised told me she his that FYI: Note: not "
    "café CAFÉ cafe\u0301 Straße strasse آنا تُحِبُّ الشَّايَ 안나는 차 ガ カ\u3099 か\u0301\u3099 क\u093cलम 安娜喜欢喝绿茶 ﬁle ½ ﷺ İ ᾳ "
    "α\u0345 \u0301 10:30 3rd [x] (y) … - ,".split()
)


@given(st.lists(WORDS | st.text(max_size=6), min_size=1, max_size=9), st.lists(WORDS, max_size=1), st.randoms())
def test_the_quick_look_at_a_line_says_no_only_where_its_words_would(
    words: list[str], more: list[str], dice: Random
) -> None:
    line = " ".join(["|", *words]).replace("\n", " ")  # a sign before it, so that it is no bullet and no comment
    if more:
        dice.shuffle(words)
    fact = " ".join([*words, *more])
    there, here = (sentence(each.translate(dict.fromkeys(map(ord, "()[]"), " "))) for each in (line, fact))

    assert bool(twin_of(line, fact)) == (same_words(there, here) and same_course(there, here))
