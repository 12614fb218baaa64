"""Diffs and merges of texts: what they say is what is written."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from anima.model import Actor, Change, DocPath, Kind, Origin
from anima.text.diff import diff_of, merge, unified

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "- one\n", "- two\n", "\n", "end"]), max_size=8).map("".join)


def a_change(path: str, kind: Kind, text: str = "") -> Change:
    return Change(path=DocPath.parse(path), kind=kind, text=text, actor=Actor.OWNER, origin=Origin.OWNER)


def patched(old: str, diff: str) -> str:
    """The text a unified diff makes of another, by its own words alone."""
    lines, made, at = old.splitlines(keepends=True), list[str](), 0
    shown = diff.splitlines(keepends=True)
    for number, line in enumerate(shown):
        said = line[1:]
        if number + 1 < len(shown) and shown[number + 1].startswith("\\"):
            said = said.removesuffix("\n")
        if line.startswith("@@"):
            start, _, count = line.split()[1][1:].partition(",")
            begin = int(start) - (count != "0")
            made += lines[at:begin]
            at = begin
        elif line.startswith("+") and not line.startswith("+++"):
            made.append(said)
        elif line.startswith((" ", "-")) and not line.startswith("---"):
            made += [lines[at]] if line.startswith(" ") else []
            at += 1
    return "".join(made + lines[at:])


@given(LINES, LINES)
def test_a_diff_says_all_that_is_written_and_nothing_else(old: str, new: str) -> None:
    diff = unified(old, new)

    assert patched(old, diff) == new
    assert (diff == "") is (old == new)


def test_the_diff_of_a_change_is_against_what_stands_there() -> None:
    added = a_change("MEMORY.md", Kind.APPEND, "- tea\n")

    assert diff_of([added], ["# Memory\n"]) == "--- a/MEMORY.md\n+++ b/MEMORY.md\n@@ -1 +1,2 @@\n # Memory\n+- tea\n"
    assert diff_of([a_change("notes/a.md", Kind.DELETE)], ["x\n"]).splitlines()[1] == "+++ /dev/null"
    assert diff_of([a_change("notes/a.md", Kind.WRITE, "x")], [None]).startswith("--- /dev/null\n")


@given(LINES, LINES)
def test_a_side_that_changed_nothing_leaves_the_other_alone(base: str, other: str) -> None:
    assert merge(base, base, other) == merge(base, other, base) == merge(base, other, other) == other


def test_changes_in_two_places_go_together_and_in_one_do_not() -> None:
    base = "a\nb\nc\nd\n"

    assert merge(base, "A\nb\nc\nd\n", "a\nb\nc\nD\n") == "A\nb\nc\nD\n"
    assert merge(base, "A\nb\nc\nd\n", "Å\nb\nc\nd\n") is None


def test_changes_in_two_places_of_a_list_whose_lines_all_come_again_go_together() -> None:
    lines = Random(1).choices([f"- habit {n}\n" for n in range(10)], k=300)
    first, last = lines[:], lines[:]
    first[7], first[70], last[-7] = "- swam\n", "- dived\n", "- sang\n"
    both = [*first[:-7], *last[-7:]]

    assert merge("".join(lines), "".join(first), "".join(last)) == "".join(both)


def test_which_of_two_like_lines_went_is_told_so_that_both_changes_stand() -> None:
    base = "# People\n\n- tea\n\n# Notes\n"

    for added, both in (
        ("# People\n\n- tea\n- nuts\n\n# Notes\n", "# People\n- nuts\n\n# Notes\n"),
        ("# People\n\n- nuts\n- tea\n\n# Notes\n", "# People\n\n- nuts\n# Notes\n"),
    ):
        assert merge(base, added, "# People\n\n# Notes\n") == both
