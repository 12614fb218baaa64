"""What is known already: the same fact in the same, or nearly the same, words is told with its line."""

from __future__ import annotations

import pytest

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
