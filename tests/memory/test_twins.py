"""What is known already: the same fact in the same, or nearly the same, words is told with its line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from anima.text.notes import Relation, relation, same_words, sentence
from anima.text.pages import twin_of
from anima.text.reading import ToldLine, read, signs
from anima.upkeep.hygiene import find_duplicates

WORDINGS = tomllib.loads((Path(__file__).parents[1] / "corpora" / "wordings.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("- Ana likes tea", "ANA LIKES TEA!"),
        ("- Ana likes tea _(score=0.71, hits=4, days=3)_", "Ana likes tea."),
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
    page = "".join(f"- Guest {n} of the hotel pays {n} euros for room {n}\n" for n in range(20_000))

    assert twin_of(f"{page}- Ana likes green tea\n", "Ana likes green tea.") == (20_001, "Ana likes green tea")


@pytest.mark.parametrize("line", ["," * 250_000 + "x", "।" * 250_000 + "x"], ids=["commas", "dandas"])
def test_no_line_takes_longer_than_its_length_asks_for(line: str) -> None:
    # Quadratic work would need minutes for this and the next, and the suite would not end.
    assert twin_of(f"- {line}", "x") is None
    assert signs(line)


def test_no_memory_of_many_items_that_are_nearly_it_takes_longer_than_its_length_asks_for() -> None:
    assert twin_of("- a\n  b\n" * 150_000, "a") is None


def pairs(kind: str) -> list[tuple[str, str]]:
    return [(one, other) for rows in WORDINGS[kind].values() for one, other in rows]


def twins_in(one: str, other: str) -> list[str]:
    """As what tidying takes two lines for the same."""
    lines = [ToldLine(path="MEMORY.md", number=number, text=text) for number, text in enumerate((one, other), start=1)]
    return [twin.how for group in find_duplicates(read(lines)) for twin in group.twins]


@pytest.mark.parametrize(("one", "other"), pairs("apart"))
def test_what_differs_in_a_sign_or_a_form_is_another_fact_for_remembering_dreaming_and_tidying(
    one: str, other: str
) -> None:
    for line, fact in ((one, other), (other, one)):
        assert twin_of(f"- {line}\n", fact) is None
        assert not same_words(sentence(line), sentence(fact))
        assert relation(sentence(line), sentence(fact)) is not Relation.SAME
        assert twins_in(line, fact) == []


@pytest.mark.parametrize(("one", "other"), pairs("loose"))
def test_the_same_in_other_words_is_not_known_and_never_told_as_other_punctuation(one: str, other: str) -> None:
    for line, fact in ((one, other), (other, one)):
        assert twin_of(f"- {line}\n", fact) is None
        assert not {"exact", "punctuation"} & {*twins_in(line, fact)}


@pytest.mark.parametrize(("one", "other"), pairs("same"))
def test_the_same_words_in_the_same_forms_are_known_however_they_are_set(one: str, other: str) -> None:
    for line, fact in ((one, other), (other, one)):
        found = twin_of(f"# Memory\n\n- {line}\n", fact)
        assert found is not None and found.line == 3
