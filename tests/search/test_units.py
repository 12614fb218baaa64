"""Units: exact lines, nothing lost that tells something, linear time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima.search import Place
from anima.search.units import SHORT, Unit, cut_parts, front_of
from anima.text.markdown import heading_of


def cut_units(text: str) -> list[Unit]:
    return [unit for part in cut_parts(text, Place(front=front_of(text))) for unit in part.units]


TEXT = """---
name: Ana
---
# People

Ana is a friend.
She lives in Bergen.

- drinks tea
  and coffee
- **Luis:** likes boats
1. first

| name | phone |
|---|---|
| Ana | Samsung |

## Code <!-- private -->
```python
x = 1

y = 2
```
after
"""


def test_units_follow_the_markdown() -> None:
    cut = [(unit.start_line, unit.end_line, unit.block) for unit in cut_units(TEXT)]

    assert cut == [
        (1, 3, "front"),
        (6, 7, "text"),
        (9, 10, "item"),
        (11, 11, "item"),
        (12, 12, "item"),
        (16, 16, "row"),
        (19, 23, "code"),
        (24, 24, "text"),
    ]


def test_units_know_their_headings_and_who_speaks() -> None:
    by_line = {unit.start_line: unit for unit in cut_units(TEXT)}

    assert by_line[6].trail == "People"
    assert by_line[24].trail == "People > Code"
    assert by_line[16].trail == "People > name phone"
    assert by_line[11].speaker == "luis"
    assert by_line[12].speaker == ""


def test_a_speaker_in_running_text_speaks_until_the_next_one_or_a_heading() -> None:
    units = cut_units("**user:** hello\n\nmore\n\n- a point\n\n**assistant:** hi\n\n# New\n\nnobody\n")

    assert [unit.speaker for unit in units] == ["user", "user", "user", "assistant", ""]


def test_a_long_line_is_cut_at_sentences_and_keeps_its_line() -> None:
    units = cut_units("short\n\n" + "This is a sentence about boats. " * 30)

    assert len(units) > 3
    assert {(unit.start_line, unit.end_line) for unit in units[1:]} == {(3, 3)}
    assert all(len(unit.text) <= SHORT for unit in units)
    assert all(unit.text.endswith(".") for unit in units[1:])


def test_line_ends_of_windows_and_a_byte_order_mark_do_not_matter() -> None:
    plain = cut_units("# A\n\n- tea\n")

    assert cut_units("\ufeff# A\r\n\r\n- tea\r\n") == plain


def test_a_fence_that_is_never_closed_loses_nothing() -> None:
    units = cut_units("```\n# no heading\n- no item\n")

    assert [(unit.start_line, unit.end_line, unit.block) for unit in units] == [(1, 3, "code")]


def test_litter_is_no_unit_and_what_stands_beside_it_is() -> None:
    text = """# Memory

<!-- What stays true, one fact a line, for the owner's own sessions only. What happened today goes to the daily log. -->

## People

- **Call them:** _(how they like to be addressed)_
- **Pronouns:** she

---

<!-- a remark

- over several
## paragraphs -->
after it
| a | b |
|:--|--:|

Notes about this particular place: what things are called here and what they need. How a tool works in general belongs
in its skill, and this line was touched.
"""
    assert [(unit.start_line, unit.end_line) for unit in cut_units(text)] == [(8, 8), (16, 16), (20, 21)]


def test_a_comment_that_is_never_closed_loses_nothing() -> None:
    units = cut_units("<!-- begun\n\n- tea\n\n" + "- more tea\n" * 300)

    assert sum(unit.text.count("tea") for unit in units) == 301


words = st.sampled_from(
    ["tea", "# Title", "- item", "  more", "| a |", "```", "---", "", "x" * 400, "A: b. C? d!", "私は。", "<!-- b"]
)
littered = words | st.sampled_from(["|---|", "-->", "<!-- c -->"])
documents = st.lists(words, max_size=30).map("\n".join)


@given(documents)
def test_every_line_that_tells_something_is_in_a_unit(text: str) -> None:
    units = cut_units(text)
    covered = {line for unit in units for line in range(unit.start_line, unit.end_line + 1)}

    for number, line in enumerate(text.split("\n"), 1):
        assert heading_of(line) or not any(char.isalnum() for char in line) or number in covered
    assert all(unit.text.strip() for unit in units)


@given(st.lists(littered, max_size=300).map("\n".join))
def test_cutting_begins_again_at_any_part_as_if_it_had_never_stopped(text: str) -> None:
    parts = list(cut_parts(text, Place(front=front_of(text))))

    assert "".join(part.text for part in parts) == text
    assert [part.ahead is None for part in parts] == [False] * (len(parts) - 1) + [True]
    for number, part in enumerate(parts):
        rest = "".join(one.text for one in parts[number:])
        assert list(cut_parts(rest, part.place)) == parts[number:]


@given(documents)
def test_the_pieces_of_a_unit_hold_all_its_characters(text: str) -> None:
    by_lines: dict[tuple[int, int], str] = {}
    for unit in cut_units(text):
        key = (unit.start_line, unit.end_line)
        by_lines[key] = by_lines.get(key, "") + unit.text
    for (start, end), joined in by_lines.items():
        whole = "\n".join(text.split("\n")[start - 1 : end])
        assert "".join(joined.split()) == "".join(whole.split())


@pytest.mark.parametrize(
    "text",
    [
        "a" * 300_000,
        "a. " * 100_000,
        "# " + "<!--" * 50_000,
        "```\n" * 50_000,
        "a:" * 100_000,
        "*" * 200_000,
        "\n" * 200_000,
    ],
)
def test_any_text_is_cut_in_linear_time(text: str) -> None:
    assert len(cut_units(text)) <= len(text) + 1
