"""Hygiene: which lines are twins and which only look like it, what contradicts what, and what is suggested."""

from __future__ import annotations

from datetime import date
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.text.reading import Read, ToldLine, read
from anima.upkeep.hygiene import find_contradictions, find_duplicates
from anima.upkeep.upkeep import Stale, suggest_consolidation


def lines(*texts: str) -> list[Read]:
    return read([ToldLine(path="MEMORY.md", number=number, text=text) for number, text in enumerate(texts, start=1)])


def how(*texts: str) -> list[str]:
    return [twin.how for group in find_duplicates(lines(*texts)) for twin in group.twins]


# -- twins ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("exact", "- Ana has a dog", "* Ana has a dog"),
        ("exact", "- Ana has a dog", "- [14:30] Ana has a dog"),
        ("exact", "- Ana has a dog (since 2026-02-03)", "- Ana has a dog _(score=0.42, hits=5, days=3)_"),
        ("punctuation", "- Ana has a dog", "- ANA HAS A DOG!"),
        ("punctuation", "- Ana's dog is called “Otter”.", "- Ana’s dog is called 'Otter'"),
        ("dates", "- Ana met Luis on 2026-05-03", "- On 3 May 2026, Ana met Luis"),
        ("dates", "- The lease ends on May 3rd, 2026", "- The lease ends on 3.5.2026"),
        ("reworded", "- Ana prefers tea in the morning", "- In the mornings Ana has a preference for tea"),
        ("reworded", "- Luis repaired the old boat", "- The old boat was repaired by Luis"),
        ("reworded", "- Ana lives in Lima", "- Lima is where Ana lives"),
        ("reworded", "- Ana bought a tent for 90 euros", "- Ana purchased a tent, for 90 euros"),
        ("contained", "- Luis repairs old wooden boats in Turin", "- Luis repairs old wooden boats in Turin slowly"),
        ("reworded", "- 2026-05-03: Ana met Luis", "- Ana met Luis on 3 May"),
        ("reworded", "- Ana is employed by Acme", "- Acme employs Ana"),
        ("reworded", "- Running shoes: size 43 1/2", "- Running shoes — size 43½"),
        ("reworded", "- Calls before 9 a.m. are fine with Ana", "- Calls before 09:00 are fine with Ana"),
        ("reworded", "- The budget for books is €60 a month", "- Monthly budget for books: 60 euros"),
        ("reworded", "- Tests run every night at 2:30", "- At 02:30 the nightly tests run"),
        ("reworded", "- Ana no longer smokes", "- Ana has quit smoking"),
        ("reworded", "- The tax return was filed 30/05/2025", "- On 30 May 2025 the tax return was filed"),
        ("dates", "- Pau's wedding is on 2026-06-20", "- Pau's wedding is on Saturday, 20 June 2026"),
        ("exact", "- [3.3.2026] Hilde needs a new hearing aid", "- [18.3.2026] Hilde needs a new hearing aid"),
        ("exact", "- User said that the plotter jams", "- (noted 2026-02-01) the plotter jams"),
        ("reworded", "- El martes Ana trabaja en Lima", "- Ana trabaja en Lima los martes"),
        ("reworded", "- Ana is married to Luis", "- Luis is married to Ana"),
        ("reworded", "- Ana's passport is valid until 3 May 2027", "- The passport of Ana expires on 2027-05-03"),
        ("reworded", "- web-01 listens on port 8080", "- Port 8080 is used by web-01"),
        ("reworded", "- Ana can't stand olives", "- Ana hates olives"),
        ("reworded", "- Eva is Ana's sister", "- Ana's sister is Eva"),
        ("contained", "- Ana is not a member of the Choir", "- Ana holds no membership in the Choir"),
        ("exact", "- Health: Ana is allergic to nuts", "- Ana is allergic to nuts (noted 3 May 2026)"),
        ("punctuation", "- On May 3, 2026, Ana met Luis", "- On May ３，２０２６，Ana met Luis。"),
    ],
)
def test_lines_that_say_the_same_are_twins(kind, one, other):
    assert how(one, other) == [kind]
    assert how(other, one) == [kind]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("- Ana likes tea", "- Ana likes coffee"),
        ("- Ana likes tea", "- Luis likes tea"),
        ("- Rent is 900 euros", "- Rent is 950 euros"),
        ("- The train leaves at 7:30", "- The train leaves at 7:45"),
        ("- Diego eats fish", "- Diego does not eat fish"),
        ("- He can swim well in the sea", "- He can't swim well in the sea"),
        ("- Ana gave Luis the old book", "- Luis gave Ana the old book"),
        ("- Ana gave Luis the old book", "- Luis gave the old book to Ana"),
        ("- Jonas Weber asked Clara Moreau for help", "- Jonas Moreau asked Clara Weber for help"),
        ("- Ana teaches chemistry at school in Lima", "- Ana's mother teaches chemistry at school in Lima"),
        ("- Ana met Luis on 2026-05-03", "- Ana met Luis on 2026-05-04"),
        ("- Ana met Luis on 3 May 2025", "- Ana met Luis on 3 May 2026"),
        ("- Paid the rent on 1 May", "- Paid the rent on 1 June"),
        ("- Ana takes the blue pills with food", "- Ana takes the blue pills only with food"),
        ("- Ana flies from Lima to Oslo", "- Ana flies from Oslo to Lima with Luis"),
        ("- Ana flies from Lima to Oslo", "- Ana flies from Oslo to Lima"),
        ("- Moved the boxes from the attic to the cellar", "- Moved the boxes from the cellar to the attic"),
        ("- Ana worked for Acme in Lima", "- Ana works for Acme in Lima"),
        ("- Ana was a nurse in Lima", "- Ana is a nurse in Lima"),
        ("- Ana will move to Lima with Luis", "- Ana moves to Lima with Luis"),
        ("- They have 2 cats and 3 dogs", "- They have 3 cats and 2 dogs"),
        ("- The hall lights are off at night", "- The hall lights are on at night"),
        ("- Ana takes the pill once a day", "- Ana takes the pill twice a day"),
        ("- [2026-03-05] Ran 10 km this morning", "- [2026-03-03] Ran 10 km this morning"),
        ("- Luis lent the tent to Ana", "- Luis borrowed the tent from Ana"),
        ("- Eva is Ana's mother", "- Ana is Eva's mother"),
        ("- Ana mentors Luis", "- Luis mentors Ana"),
        ("- Luis keeps the tent in the cellar", "- Ana keeps the tent in the cellar"),
        ("- Ana prefers tea over coffee", "- Ana prefers coffee over tea"),
        ("- Call Gus first, then Ana", "- Call Ana first, then Gus"),
        ("- 3 May 2026: web-01 was rebooted by Luis", "- 9 May 2026: web-01 was rebooted by Luis"),
        ("- web-01 has 8 GB and 16 disks", "- web-08 has 1 GB and 16 disks"),
        ("- Ana ran 13 km", "- Ana runs 13 km a week"),
        ("- Ok", "- Fine"),
        ("", "- "),
    ],
)
def test_lines_that_only_look_alike_are_not(one, other):
    assert how(one, other) == []
    assert how(other, one) == []


def test_a_group_keeps_the_fullest_line_and_shows_why_the_others_go():
    [group] = find_duplicates(
        lines("- luis repairs old wooden boats", "- Ana has a dog", "- Luis repairs old wooden boats!")
    )

    assert (group.keep.number, [twin.line.number for twin in group.twins]) == (1, [3])
    assert group.twins[0].evidence.startswith("the same words that carry meaning: ")


def test_no_line_is_in_two_groups_and_none_is_its_own_twin():
    texts = [
        "- Ana has a red dog at home now",
        "- Ana has a red dog at home",
        "- Ana has a dog",
        "- ana has a dog.",
    ] * 3

    places = [
        place
        for group in find_duplicates(lines(*texts))
        for place in (group.keep.number, *(t.line.number for t in group.twins))
    ]

    assert len(places) == len(set(places))


def test_lines_in_other_words_are_twins_by_meaning_and_one_word_for_another_is_another_value():
    texts = ["- Luis gives children in Leeds lessons in chess", "- In Leeds Luis teaches chess to children"]
    values = [f"- Ana ordered {what} pizza for the party" for what in ("ham", "tuna", "onion")]

    def alike(texts, length=1.0):
        return np.full((len(texts), 1), length, dtype=np.float32)

    [found] = find_duplicates(lines(*texts, *values), vectors=alike)

    assert [(twin.line.number, twin.how) for twin in found.twins] == [(2, "meaning")]
    assert find_duplicates(lines(*texts, *values), vectors=lambda texts: alike(texts, 0.5)) == ()


@given(st.lists(st.text(max_size=30), max_size=8))
def test_any_lines_can_be_looked_at_and_copies_are_always_found(texts):
    copied = [*texts, *texts]
    found = find_duplicates(lines(*copied))
    grouped = {place for group in found for place in (group.keep.number, *(twin.line.number for twin in group.twins))}

    assert all(place + 1 in grouped for place, text in enumerate(copied) if any(char.isalpha() for char in text))


def test_a_line_made_to_be_slow_is_looked_at_in_a_moment():
    nasty = [
        "- " + "(" * 50_000,
        "- " + "1." * 30_000,
        "- " + " " * 80_000 + "x",
        "- " + "May 3, " * 10_000,
        "- " + "a'" * 30_000,
    ]

    assert find_duplicates(lines(*nasty)) == ()


# -- contradictions -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "why"),
    [
        ("- Ana lives in Lima", "- Ana lives in Bogota", "one says lima, the other bogota"),
        ("- Rent is 900 euros", "- Rent is 950 euros", "one says 900, the other 950"),
        ("- Diego eats fish", "- Diego does not eat fish", "one denies what the other says"),
        (
            "- The lease of the flat is up on 3 May",
            "- The lease of the flat is up on 4 May",
            "one says 05-03, the other 05-04",
        ),
        ("- Ana works for Acme", "- Ana is working at Globex", "one says acme, the other globex"),
        ("- Heron is written in Perl", "- Heron is written in Rust", "one says perl, the other rust"),
        ("- Ana's dentist is Weber", "- The dentist of Ana is Okafor", "one says weber, the other okafor"),
        ("- web-01 listens on port 80", "- The port of web-01 is 8080", "one says 80, the other 8080"),
        ("- Ana was born on 3 May 1990", "- Ana's birthday is 4 May 1990", "one says 1990-05-03, the other 1990-05-04"),
        ("- The garage door is open", "- The garage door is closed", "one says open, the other shut"),
        ("- Ana is a member of the Choir", "- Ana holds no membership in the Choir", "one denies what the other says"),
    ],
)
def test_lines_that_cannot_both_hold_are_found(one, other, why):
    assert [found.why for found in find_contradictions(lines(one, other))] == [why]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("- Ana is allergic to nuts", "- Ana is allergic to shellfish"),
        ("- Ana has a dog called Otter", "- Ana has a dog called Finn"),
        ("- Ana likes tea", "- Ana likes coffee"),
        ("- Ana lives in Lima", "- Luis lives in Bogota"),
        ("- Ana lives in Lima", "- Ana lives in Lima."),
        ("- Ana bought 3 lamps", "- Ana bought 4 lamps"),
        ("- Ana used to live in Lima", "- Ana lives in Bogota"),
        ("- Ana owns a red camera", "- Luis owns a red camera"),
        ("- Ana belongs to the Choir", "- Ana belongs to the Chess Club"),
        ("- Ana's sister is Eva", "- Ana's sister is Lena"),
        ("- Ana lives in Lima with Luis", "- Ana lives in Lima near the sea"),
        ("- web-01 runs nginx", "- web-01 runs redis"),
        ("- Ana lives alone", "- Ana lives nearby"),
        ("- Keep going and never give up", "- Let's keep each other going"),
        ("- Keep up the great work", "- Keep up the amazing work"),
        ("- Small changes can make big differences", "- Small changes can make big differences."),
        ("- Ana works on the harvester", "- Ana works on the boat"),
        ("- Lima is where Ana lives", "- Lima is where Luis lives"),
        ("- Ana lives in Lima", "- Ana's mother lives in Oslo"),
        ("- Ana works for Acme", "- Luis works for Acme"),
        ("- Ana plans to move to Lima", "- Ana plans to move to Oslo"),
    ],
)
def test_lines_that_can_both_hold_are_not(one, other):
    assert find_contradictions(lines(one, other)) == ()


def test_the_newer_of_two_that_contradict_is_told():
    old = ToldLine(path="memory/2026-01-03.md", number=1, text="- Ana lives in Lima", day=date(2026, 1, 3))
    new = ToldLine(path="memory/2026-02-03.md", number=1, text="- Ana lives in Bogota", day=date(2026, 2, 3))

    [found] = find_contradictions(read([new, old]))

    assert found.newer == new


# -- logs and suggestions ---------------------------------------------------------------------------------------------------------


def test_suggestions_keep_one_line_archive_and_never_delete():
    texts = lines("- Ana has a dog", "- ana has a dog.", "- Ana lives in Lima", "- Ana lives in Bogota")
    stale = [Stale(path="memory/2026-01-01.md", day=date(2026, 1, 1), age=127)]

    found = suggest_consolidation(
        duplicates=find_duplicates(texts),
        contradictions=find_contradictions(texts),
        stale=stale,
        archive=lambda log: "memory/archive/2026/2026-01-01.md",
    )

    assert [one.kind for one in found] == ["choose", "merge", "archive"]
    assert (found[0].keep, found[0].remove, len(found[0].between)) == (None, (), 2)
    assert found[1].sentence == "MEMORY.md#L2 says what MEMORY.md#L1 says; keep that one."
    assert (found[2].path, found[2].to) == ("memory/2026-01-01.md", "memory/archive/2026/2026-01-01.md")


def test_what_a_merge_takes_out_is_said_by_what_it_keeps():
    texts = lines(
        "- Ana has a dog",
        "- ana has a dog.",
        "- Luis repairs old wooden boats",
        "- Old wooden boats are repaired by Luis",
    )

    for one in suggest_consolidation(duplicates=find_duplicates(texts), archive=lambda log: ""):
        assert one.keep not in one.remove and len(one.remove) == 1


def test_cost_grows_with_the_lines_and_not_with_their_square():
    """Counted, not timed: how many pairs are looked at in a home where every line shares its words with many."""
    from anima.upkeep.hygiene import _neighbours

    def looked_at(number: int) -> int:
        texts = [
            f"- Person{n % 97} planted tree{n % 89} near the house of neighbour{n % 83} in street{n % 79}"
            for n in range(number)
        ]
        seen = lines(*texts)
        return sum(1 for _ in _neighbours(seen, range(len(seen))))

    counts = [looked_at(number) for number in (500, 1_000, 2_000, 4_000)]

    assert all(later <= 5 * max(earlier, 500 * 40) for earlier, later in pairwise(counts))
    assert counts[-1] <= 4_000 * 10 * 40
