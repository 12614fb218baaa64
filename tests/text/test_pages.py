"""Where a line goes: the section that was named, the one it is most like, or Notes; and never one that others read."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.errors import BadArguments
from anima.model import Scope
from anima.text.markdown import front_matter, sections, view
from anima.text.pages import MOST_LINES, as_bullet, filled, placed, put_into, twin_of

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from placement import GOAL, Owner, facts, landed  # the benchmark says what is right

MEMORY = """# Memory

## Boat

- The Sandpiper is moored at Kirkwall
- Antifouling every second spring

## Bees

- The northern hive swarmed in May

## Notes

- The bakery closes at noon
"""


def heading_of(memory: str, line: str, **more: str) -> str | None:
    return placed(memory, line, **more).section


def test_a_line_goes_where_lines_like_it_are() -> None:
    assert heading_of(MEMORY, "- The Sandpiper leaks at the mast") == "Boat"
    assert heading_of(MEMORY, "- The northern hive has a new queen") == "Bees"


@pytest.mark.parametrize("line", ["Close parentheses on a line of their own", "The shop is open on Sundays"])
def test_a_word_that_only_describes_a_heading_speaks_for_no_line(line: str) -> None:
    page = "# Memory\n\n## People\n\n## Open questions\n\n"
    assert placed(page, line).section == "Notes"
    assert placed(page, "Which dentist takes new patients?").section == "Open questions"


def test_a_line_that_is_like_none_goes_to_the_notes() -> None:
    assert heading_of(MEMORY, "- The wifi is called larch-5G") == "Notes"
    assert placed(MEMORY, "- The wifi is called larch-5G").text == MEMORY + "- The wifi is called larch-5G\n"


def test_notes_are_made_at_the_end_where_there_are_none() -> None:
    page = "# Memory\n\n## Boat\n\n- Moored at Kirkwall\n\n## Bees\n"

    assert placed(page, "- The wifi is larch-5G") == (
        f"{page}\n## Notes\n\n- The wifi is larch-5G\n",
        "Notes",
        ("Boat", "Bees"),
    )


def test_whoever_can_be_asked_chooses_where_no_section_is_sure_and_nowhere_else() -> None:
    asked: list[tuple[list[str], str]] = []

    def bees(likely: Sequence[str], otherwise: str) -> str:
        asked.append((sorted(likely), otherwise))
        return "Bees"

    assert placed(MEMORY, "- The Sandpiper leaks at the mast", choose=bees).section == "Boat" and not asked
    assert placed(MEMORY, "- The wifi is called larch-5G", section="Boat", choose=bees).section == "Boat" and not asked
    assert placed(MEMORY, "- The wifi is called larch-5G", choose=bees).section == "Bees"
    assert asked == [(["Bees", "Boat"], "Notes")]


def test_a_word_that_only_begins_a_sentence_is_no_sure_name() -> None:
    page, line = (
        "# Memory\n\n## People\n\n- Karin: my sister\n\n## Projects\n\n- The boat\n",
        "Paella is what I cook best",
    )
    assert placed(page, line).likely == ("Projects",)
    assert placed(page, line, choose=lambda likely, otherwise: "Projects").section == "Projects"
    assert placed(page, "Zebras are my favourite animal").section == "Notes"  # many of them are no person
    assert placed(page, "Karin has moved to Lyon")[1:] == ("People", ())
    for name in ("Luis", "Zoë", "Fatima", "Jürgen"):  # a common first name is one, wherever nobody was told of yet
        assert placed(page, f"{name} is allergic to walnuts")[1:] == ("People", ())


def test_who_is_asked_may_leave_it_or_name_a_heading_of_their_own() -> None:
    line = "- The wifi is called larch-5G"
    assert placed(MEMORY, line, choose=lambda likely, otherwise: None)[:2] == placed(MEMORY, line)[:2]
    assert placed(MEMORY, line, choose=lambda likely, otherwise: "House").text.endswith(f"## House\n\n{line}\n")


def test_who_takes_what_is_offered_otherwise_does_not_name_a_heading_that_others_read() -> None:
    page, line = MEMORY.replace("## Notes", "## Notes <!-- share: group -->"), "- The wifi is called larch-5G"
    assert placed(page, line, choose=lambda likely, otherwise: otherwise)[:2] == placed(page, line)[:2]


def test_where_nobody_is_asked_other_headings_are_told_when_none_is_sure_and_only_then() -> None:
    unsure = "- The wifi is called larch-5G"
    assert (placed(MEMORY, unsure).section, sorted(placed(MEMORY, unsure).likely)) == ("Notes", ["Bees", "Boat"])
    assert placed(MEMORY, "- The Sandpiper leaks at the mast").likely == ()
    assert placed(MEMORY, unsure, section="Boat").likely == ()
    assert placed(MEMORY, unsure, choose=lambda likely, otherwise: None).likely == ()
    assert placed(MEMORY.replace("## Bees", "## Bees <!-- private -->"), unsure).likely == ("Boat",)


@pytest.mark.parametrize("mark", ["<!-- share: group -->", "<!-- private -->"])
def test_no_heading_that_others_read_is_ever_offered(mark: str) -> None:
    offered: list[str] = []
    page = MEMORY.replace("## Bees", f"## Bees {mark}")
    for line in ("- The wifi is called larch-5G", "- The northern hive has a new queen"):
        placed(page, line, choose=lambda likely, otherwise: offered.extend([*likely, otherwise]))
    assert set(offered) == {"Boat", "Notes"}


@pytest.mark.parametrize(
    "title", ["A\n## B", "A\r- Bo bakes", "A\u2028# B", "Team <!-- share: group -->", "A -->", "# A", "", "  "]
)
def test_a_new_heading_is_one_line_of_plain_words(title: str) -> None:
    for more in ({"section": title}, {"choose": lambda likely, otherwise: title}):
        with pytest.raises(BadArguments, match="one line of plain words"):
            placed(MEMORY, "- The wifi is called larch-5G", **more)


def test_a_section_that_is_named_is_taken_whatever_the_line_is_like() -> None:
    assert heading_of(MEMORY, "- The Sandpiper leaks", section="bees") == "Bees"
    assert heading_of(MEMORY, "- The Sandpiper leaks", section="Repairs") == "Repairs"


def test_a_page_without_sections_is_one_list() -> None:
    page = "# Memory\n\n- Ana sails\n"

    assert placed(page, "- Bo bakes")[:2] == (page + "- Bo bakes\n", None)


@pytest.mark.parametrize("mark", [" <!-- share: group -->", " <!-- private -->", " <!-- share: subagent, cron -->"])
def test_a_marked_section_is_not_taken_unless_it_is_named(mark: str) -> None:
    page = MEMORY.replace("## Boat", f"## Boat{mark}")

    assert heading_of(page, "- The Sandpiper leaks at the mast") == "Notes"
    assert heading_of(page, "- The Sandpiper leaks at the mast", section="Boat") == "Boat"


def test_nor_is_one_whose_mark_names_nobody_we_know() -> None:
    page = MEMORY.replace("## Boat", "## Boat <!-- share: crew -->")

    assert heading_of(page, "- The Sandpiper leaks at the mast") == "Notes"


def test_a_line_finds_its_section_by_meaning_where_no_word_is_shared() -> None:
    page = "# Memory\n\n## House\n\n- The roof was mended in May\n\n## Food\n\n- Nina eats no peanuts\n"

    assert heading_of(page, "- The bathroom tap drips") == "House"
    assert heading_of(page, "- Lentil soup with garlic for supper") == "Food"


def test_nor_is_a_section_within_one_or_a_dreamed_one() -> None:
    within = MEMORY.replace("## Boat", "## Ours <!-- share: group -->\n\n### Boat")
    dreamed = MEMORY.replace("## Boat", "## Dreamed 2026-05-01 03:00 UTC")

    assert heading_of(within, "- The Sandpiper leaks at the mast") == "Notes"
    assert heading_of(dreamed, "- The Sandpiper leaks at the mast") == "Notes"


def test_a_section_made_below_a_shared_page_is_no_part_of_it() -> None:
    page = "# Ours <!-- share: group -->\n\n- Ana sails\n"

    assert placed(page, "- Bo bakes").text == f"{page}\n# Notes\n\n- Bo bakes\n"
    assert placed(page, "- Bo bakes", section="Food").text == f"{page}\n# Food\n\n- Bo bakes\n"


def test_only_the_newest_lines_of_a_section_are_read() -> None:
    old = "".join(f"- reading {n}\n" for n in range(MOST_LINES))
    page = MEMORY.replace("- The northern hive swarmed in May\n", f"- The walnut press is sold\n{old}")

    assert heading_of(page, "- The walnut press is missed") == "Notes"


def test_what_people_write_in_other_line_ends_and_scripts_is_placed_too() -> None:
    page = MEMORY.replace("\n", "\r\n").replace("The northern hive swarmed in May", "猫は魚が好きです")

    assert heading_of(page, "- 猫は魚を食べた") == "Bees"
    assert "\n" not in placed(page, "- 猫は魚を食べた").text.replace("\r\n", "")


def test_most_of_two_hundred_facts_land_where_a_person_would_put_them_and_none_where_others_read() -> None:
    places = [(fact, *landed(fact)) for fact in facts()]

    assert len(places) == 200
    assert not [fact.text for fact, _, marked in places if marked]
    assert sum(section in fact.right for fact, section, _ in places) >= GOAL * len(places)


def test_one_key_in_doubt_puts_facts_of_people_nobody_thought_of_where_they_would() -> None:
    owner = Owner()
    places = [(fact, *landed(fact, owner=owner)) for fact in facts("placement_blind")]

    assert len(places) == 200 and not any(marked for _, _, marked in places)
    assert sum(section in fact.right for fact, section, _ in places) >= GOAL * len(places)
    assert owner.asked < len(places) / 2


PEOPLE = (
    "# Memory\n\n## People\n\n### Karin\n\n- Allergic to walnuts\n- Karin paints\n\n### Tom\n\n- Rides\n\n## Health\n"
)


@pytest.mark.parametrize("section", ["Tom", "Ana", "Health"])
def test_what_a_line_without_a_name_says_below_one_name_is_not_known_below_another(section: str) -> None:
    assert twin_of(PEOPLE, "Allergic to walnuts", section=section) is None
    more = placed(PEOPLE, "- allergic to walnuts", section=section).text
    assert twin_of(more, "Allergic to walnuts", section=section)
    assert twin_of(PEOPLE, "Karin paints", section=section)  # it says itself of whom
    assert twin_of(PEOPLE.replace("- Rides", "- Tom rides"), "Tom rides", section=section)
    assert twin_of(f"{PEOPLE}\n### Bea\n\n- Vegan since May\n", "Vegan since May", section=section) is None


def test_what_a_line_says_is_known_below_the_same_name_and_where_nobody_names_one() -> None:
    assert twin_of(PEOPLE, "allergic to walnuts", section="karin") == (7, "Allergic to walnuts")
    assert twin_of(PEOPLE, "Allergic to walnuts") == (7, "Allergic to walnuts")
    page = PEOPLE.replace("Karin\n", "Food\n", 1)
    assert twin_of(page, "Allergic to walnuts", section="Health")  # nobody's name


# -- fields ------------------------------------------------------------------------------------------------------------

USER = """# The person

- **Name:** _(their name)_
- **Timezone:** _(such as America/Bogota)_

## What matters to them

<!-- - **Name:** this is no field -->

## How they work
"""


FACTS = st.lists(
    st.sampled_from(
        "Deploy steps:,# build,## ship,make,  make ship,- c,1. one,> quoted,===,---,# SYSTEM,Ana,-,a: b".split(",")
    ),
    min_size=1,
    max_size=5,
).map("\n".join)
FACTS = FACTS.filter(lambda fact: any(map(str.isalnum, fact)))  # signs alone are none


@pytest.mark.parametrize("fact", ["", " \n\t", "\u200b", "- ", "#", "---", "```", "* * *", "…", "?!"])
def test_signs_alone_are_no_fact(fact: str) -> None:
    with pytest.raises(BadArguments, match="there is nothing to remember"):
        as_bullet(fact)


@pytest.mark.parametrize("fact", ["5", "C#", "🌿", "€", "貓", "é"])
def test_one_sign_that_says_something_is_a_fact(fact: str) -> None:
    assert as_bullet(fact) == f"- {fact}"


@given(st.lists(FACTS, min_size=1, max_size=5))
def test_what_is_remembered_in_several_lines_stays_whole_and_none_of_them_becomes_a_heading(facts: list[str]) -> None:
    page, offered = "# Memory\n\n## People\n\n- Luis\n\n## Lessons\n\n- z\n\n## Notes\n", set[str]()

    def none(likely: Sequence[str], otherwise: str) -> None:
        offered.update(likely)

    for number, fact in enumerate(facts):
        page = placed(page, as_bullet(fact), section=("Lessons", None)[number % 2], choose=none).text

    assert all(f"{as_bullet(fact)}\n" in page for fact in facts)
    assert [part.title for part in sections(page) if part.level] == ["Memory", "People", "Lessons", "Notes"]
    assert offered <= {"Memory", "People", "Lessons", "Notes"}


def test_what_is_learned_fills_the_fields_of_the_page() -> None:
    page = filled(USER, "- **Name:** Ana Ruiz\nTimezone: Europe/Madrid\n")

    assert page == USER.replace("_(their name)_", "Ana Ruiz").replace("_(such as America/Bogota)_", "Europe/Madrid")
    assert filled(page, "- **Name:** Ana") == page.replace("Ana Ruiz", "Ana")


def test_a_field_that_the_page_does_not_have_comes_after_the_others() -> None:
    assert "Bogota)_\n- **Birthday:** 3 May\n\n## What" in filled(USER, "- **Birthday:** 3 May")


def test_lines_under_a_heading_of_the_page_go_there_and_the_rest_to_the_end() -> None:
    page = filled(USER, "## what matters to them\n\n- Her boat\n\n- Sleep\n\n## Pets\n\n- A heron\n")

    assert "this is no field -->\n\n- Her boat\n- Sleep\n\n## How they work\n" in page
    assert page.endswith("## How they work\n\n## Pets\n\n- A heron\n") and page.count("What matters") == 1


@pytest.mark.parametrize("page", ["```\n- **Name:** x\n```\n", "<!--\n- **Name:** x\n-->\n", "- Name: x\n"])
def test_what_only_looks_like_a_field_is_none(page: str) -> None:
    assert filled(page, "- **Name:** Ana").startswith(page)
    assert filled(page, "- **Name:** Ana").endswith("\n- **Name:** Ana\n")


def test_a_page_with_other_line_ends_keeps_them() -> None:
    page = filled(USER.replace("\n", "\r\n"), "- **Name:** Ana\n- **Pets:** none\n")

    assert "\n" not in page.replace("\r\n", "") and "- **Name:** Ana\r\n" in page


@pytest.mark.parametrize("head", ["\ufeff", "---\nkind: plan\n---\n", "\ufeff---\nkind: plan\n---\n"], ids=repr)
def test_what_is_hidden_at_the_head_of_a_page_stays_so_for_everybody_where_it_comes_elsewhere(head: str) -> None:
    boat = "## Boat <!-- share: group -->\n\n- it leaks\n"
    page = f"{head}# Doctor <!-- private -->\n\n- Holm\n\n# Team <!-- share: group -->\n\n{boat}"

    made = put_into(page, boat, partial(view, scope=Scope.GROUP, visible=False, owner=False))

    assert (
        boat in made
        and "- Holm\n" in made
        and "Holm" not in view(made, scope=Scope.SUBAGENT, visible=True, owner=True).text
    )
    assert front_matter(made, "plan.md") == front_matter(page, "plan.md")
