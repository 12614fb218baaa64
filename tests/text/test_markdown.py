"""Markdown looked at and edited by span: sections, marks, what a listener sees, and lines that are added."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anima.errors import BadText
from anima.model import Scope
from anima.text import bullet_text
from anima.text.markdown import (
    BOM,
    Bullet,
    bullet_of,
    comment_after,
    defuse_tags,
    evidence_of,
    fence_after,
    front_matter,
    front_matter_end,
    heading_of,
    lines_of,
    lines_with_place,
    marks,
    newline_of,
    sections,
    unmarked,
    view,
    without_code,
    without_tail,
)
from anima.text.pages import placed, twin_of

SECRET = "CANARY-7f3a"

# Lines that mean something to a reader of Markdown, to be put together in any order.
LINES = [
    "# One",
    "## Two",
    "### Three",
    "###### Six",
    "####### seven is none",
    "#none",
    "## Closed ##",
    "   ## Indented",
    "    ## code",
    "\t## code",
    "Over",
    "====",
    "----",
    "---",
    "- item",
    "- item",
    "  more of it",
    "1. first",
    "> said",
    "| a |",
    "```",
    "```python",
    "~~~",
    "~~~~",
    "- ```bash",
    "  # comment",
    "  ```",
    "1. ~~~",
    "   ~~~",
    "`inline ``` code`",
    "<!--",
    "-->",
    "<!-- one line -->",
    "--> <!--",
    "text <!-- begins",
    "<div>",
    "",
    "",
    " ",
    "[[wiki link]]",
    "## Boat <!-- share: subagent -->",
    "## Both <!-- share: group, cron --> <!-- private -->",
    "# Mine <!-- private -->",
    "Under <!-- private -->",
    "a line <!-- private --> in between",
    "## Never closed <!-- private",
    "...",
    "key: value",
]
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n"])
DOCUMENTS = st.builds(
    lambda bom, lines, last: bom + "".join(line + end for line, end in lines) + last,
    st.sampled_from(["", "", BOM]),
    st.lists(st.tuples(st.sampled_from(LINES), ENDS), max_size=14),
    st.sampled_from(["", "", "no newline here", "## At the end", "- last"]),
)
TEXTS = DOCUMENTS | st.text(st.sampled_from("#-=~`<!> \t\r\nab*|:.") | st.characters(codec="utf-8"), max_size=40)


# -- sections ----------------------------------------------------------------------------------------------------------


def test_a_section_reaches_to_the_next_heading_of_its_level_or_above() -> None:
    text = "before\n# One\na\n## Two\nb\n### Three\nc\n## Four\nd\n# Five\n"
    found = {s.title: text[s.start : s.end] for s in sections(text)}

    assert found[""] == "before\n"
    assert found["One"] == "# One\na\n## Two\nb\n### Three\nc\n## Four\nd\n"
    assert found["Two"] == "## Two\nb\n### Three\nc\n"
    assert found["Three"] == "### Three\nc\n"
    assert found["Five"] == "# Five\n"


@pytest.mark.parametrize(
    ("line", "level", "title"),
    [
        ("# A", 1, "A"),
        ("###### A", 6, "A"),
        ("   ## A", 2, "A"),
        ("##\tA", 2, "A"),
        ("## A ##", 2, "A"),
        ("## A ## \t", 2, "A"),
        ("## A#", 2, "A#"),
        ("##", 2, ""),
        ("## #", 2, ""),
        ("## C# and F#", 2, "C# and F#"),
        ("## A\r", 2, "A"),
        ("## A <!-- private -->", 2, "A"),
        ("## A <!-- share: group --> B", 2, "A  B"),
        ("## A <!-- a note -->", 2, "A <!-- a note -->"),
    ],
)
def test_a_heading_line_is_read_as_markdown_reads_it(line: str, level: int, title: str) -> None:
    found = sections(line + "\n")

    assert [(s.level, s.title) for s in found] == [(level, title)]


@pytest.mark.parametrize(
    "text",
    [
        "####### seven\n",
        "#none\n",
        "    # code\n",
        "\t# code\n",
        "```\n# code\n```\n",
        "~~~\n# code\n```\n# code\n~~~\n",
        "<!--\n# comment\n-->\n",
        "- ```bash\n  # comment\n  ```\n",
        "---\n# key\n---\n",
        "- item\n---\n",
        "> said\n===\n",
        "    code\n---\n",
        "\n---\n",
        "````\n```\n# code\n````\n",
        "| a |\n---\n",
        "- item\nlazy\n---\n",
    ],
)
def test_what_only_looks_like_a_heading_is_none(text: str) -> None:
    assert [s.title for s in sections(text) if s.level] == []


def test_an_underlined_paragraph_is_a_heading() -> None:
    text = "Title\n=====\nbody\n\nOf two\nlines\n---\nmore\n"
    found = [(s.level, s.title, text[s.body : s.end]) for s in sections(text)]

    assert found == [(1, "Title", "body\n\nOf two\nlines\n---\nmore\n"), (2, "Of two\nlines", "more\n")]


def test_code_in_a_list_item_ends_with_the_item() -> None:
    text = "- ```\n  # code\n# Heading\n"

    assert [s.title for s in sections(text) if s.level] == ["Heading"]


@pytest.mark.parametrize(
    "start", ["- a\n  ```\n  code\n", "1. a\n\n   ~~~\n   code\n", "- a\n  - b\n    ```\n", "- a\n  ```\n- b\n"]
)
def test_code_that_is_never_closed_ends_with_its_item_and_nothing_hidden_is_shown_by_it(start: str) -> None:
    found = sections(f"# A\n\n{start}\n## B\n\n- b\n")
    assert [(s.title, s.claimed) for s in found if s.level] == [("A", False), ("B", False)]

    assert SECRET not in _seen(f"# A <!-- private -->\n\n{start}\n# B\n\n{SECRET}\n")
    assert SECRET not in _seen(f"# A\n\n{start}\n# B <!-- share: group -->\n\n{SECRET}\n", visible=False)
    assert SECRET not in _seen(f"# A\n\n{start}\n# B <!-- private -->\n\n{SECRET}\n")


@pytest.mark.parametrize("start", ["```\ncode\n", "- a\n\ntext\n\n  ```\n  code\n", "- a\n  ```\n  # code\n  ```\n"])
def test_other_code_does_not_end_with_an_item(start: str) -> None:
    last = "" if start.endswith("  ```\n") else "## B\n"
    assert [s.title for s in sections(f"# A\n\n{start}{last}") if s.level] == ["A"]


@given(TEXTS)
def test_lines_put_together_are_the_text(text: str) -> None:
    assert "".join(lines_of(text)) == text


@given(TEXTS)
def test_sections_lie_inside_the_text_and_either_nest_or_stand_apart(text: str) -> None:
    found = sections(text)

    for section in found:
        assert 0 <= section.start <= section.body <= section.end <= len(text)
    true = [s for s in found if not s.claimed]
    for one, other in pairwise(true):
        assert one.start < other.start
        assert other.start >= one.end or other.end <= one.end


# -- marks and views ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "private", "shared"),
    [
        ("A <!-- private -->", True, set()),
        ("A <!--PRIVATE-->", True, set()),
        ("A <!-- private: health -->", True, set()),
        ("A <!-- private", True, set()),
        ("A <!-- share: group -->", False, {Scope.GROUP}),
        ("A <!-- Share group,subagent -->", False, {Scope.GROUP, Scope.SUBAGENT}),
        ("A <!--share:cron heartbeat-->", False, {Scope.CRON, Scope.HEARTBEAT}),
        ("A <!-- share: everyone -->", False, set()),
        ("A <!-- share: grou -->", False, set()),
        ("A <!-- shared: group -->", False, set()),
        ("A <!-- privately -->", False, set()),
        ("A private", False, set()),
        ("A <!-- share: group", False, set()),
        ("A <!-- share: group --> <!-- private -->", True, {Scope.GROUP}),
    ],
)
def test_a_mark_says_what_it_says(heading: str, private: bool, shared: set[Scope]) -> None:
    assert marks(heading)[1:] == (private, frozenset(shared))


def _seen(text: str, scope: Scope = Scope.GROUP, *, visible: bool = True, owner: bool = False) -> str:
    return view(text, scope=scope, visible=visible, owner=owner).text


def test_a_private_section_is_for_the_owner_alone_and_goes_with_all_beneath_it() -> None:
    text = "# A\nopen\n## B <!-- private -->\nkept\n### C\nkept too\n## D\nopen again\n"

    assert _seen(text) == "# A\nopen\n## D\nopen again\n"
    assert _seen(text, Scope.MAIN, owner=True) == text
    assert _seen(text, Scope.MAIN, owner=False) == "# A\nopen\n## D\nopen again\n"
    assert _seen(text, Scope.HEARTBEAT, owner=True) == "# A\nopen\n## D\nopen again\n"


def test_a_shared_section_is_seen_where_its_file_is_not() -> None:
    text = "# A\nkept\n## Boat <!-- share: subagent -->\nvarnish\n## C\nkept\n"

    assert _seen(text, Scope.SUBAGENT, visible=False) == "## Boat <!-- share: subagent -->\nvarnish\n"
    assert _seen(text, Scope.GROUP, visible=False) == ""
    assert _seen(text, Scope.GROUP, visible=True) == text


def test_private_wins_over_shared_whichever_is_outside() -> None:
    inside = "## A <!-- share: group -->\nopen\n### B <!-- private -->\nkept\n"
    outside = "## A <!-- private -->\nkept\n### B <!-- share: group -->\nkept\n"

    assert _seen(inside, visible=False) == "## A <!-- share: group -->\nopen\n"
    assert _seen(outside) == ""


def test_a_view_says_what_it_kept_back_and_whether_it_is_whole() -> None:
    text = "# A\n## B <!-- private -->\nkept\n## C\nopen <!-- private -->\n## D <!-- private -->\n"
    seen = view(text, scope=Scope.GROUP, visible=True, owner=False)

    assert (seen.text, seen.hidden, seen.whole) == ("# A\n## C\n", 3, False)
    assert view("# A\n", scope=Scope.GROUP, visible=True, owner=False).whole


PRIVATE_HEADINGS = [
    "# S <!-- private -->",
    "###### S <!--private-->",
    "  ## S <!-- PRIVATE: why -->",
    "## S <!-- private",
    "## S <!-- share: group --> <!-- private -->",
    "## <!-- private --> S ##",
]


@given(
    before=DOCUMENTS,
    heading=st.sampled_from(PRIVATE_HEADINGS),
    end=ENDS,
    after=DOCUMENTS,
    scope=st.sampled_from(Scope),
    visible=st.booleans(),
)
@example(before="```\n", heading="## S <!-- private -->", end="\n", after="", scope=Scope.GROUP, visible=True)
@example(
    before="---\na: 1\n", heading="## S <!-- private -->", end="\n", after="---\n", scope=Scope.GROUP, visible=True
)
@example(before="<!--\n", heading="## S <!-- private -->", end="\n", after="", scope=Scope.GROUP, visible=True)
def test_what_stands_right_under_a_private_heading_is_never_shown_wherever_that_heading_stands(
    before: str, heading: str, end: str, after: str, scope: Scope, visible: bool
) -> None:
    start = before if not before or before.endswith("\n") else before + "\n"
    text = f"{start}{heading}{end}- {SECRET}{end}{after}"  # an item, which no underline can make a heading

    assert SECRET not in view(text, scope=scope, visible=visible, owner=False).text
    assert SECRET in view(text, scope=Scope.MAIN, visible=True, owner=True).text


@pytest.mark.parametrize(
    "body",
    [
        "- a fact\n---\n",
        "> said\n---\n",
        "- a\nlazy\n---\n",
        "\n    code\n---\n",
        "* * *\n",
        "| a |\n---\n",
        "1. one\n===\n",
        "<!--\n```\n-->\n```\n## no heading\n",
        "<!-- a\n--> <!--\n## no heading\n-->\n",
        "- ```bash\n  # comment\n",
        "```\n# comment\n",
        "~~~\n```\n# comment\n",
        "<!--\n# comment\n-->\n",
        "### deeper\n",
        "    # code\n",
        "text\n# \n"[:5],
        "1. ~~~\n   # comment\n   ~~~\n",
        "- ```\n\n  # comment\n",
        "`<!--`\n# after a comment that never ends\n",
        "<!-- --> <!-- open\n# comment\n-->\n",
        "#no heading\n",
        "\\# no heading\n",
    ],
)
def test_nothing_but_a_true_heading_ends_a_private_section(body: str) -> None:
    text = f"# A\n## S <!-- private -->\n{body}{SECRET}\n"

    assert SECRET not in _seen(text)


@pytest.mark.parametrize(
    "text",
    [
        f"Secret <!-- private -->\n======\n{SECRET}\n",
        f"Secret <!-- private -->\nplans\n---\n{SECRET}\n",
        f"- Secret <!-- private -->\n---\n{SECRET}\n",
        f"one line <!-- private --> {SECRET}\n",
        f"{SECRET} <!--\nprivate -->\n",
        f"## Closed late <!-- private\n-->\n{SECRET}\n",
        f"{BOM}# S <!-- private -->\r\n{SECRET}\r\n",
        f"{BOM}S <!-- private -->\n---\n{SECRET}\n",
        f"{BOM}- S <!-- private -->\n---\n{SECRET}\n",
    ],
)
def test_a_private_mark_counts_on_underlined_headings_and_on_single_lines(text: str) -> None:
    assert SECRET not in _seen(text)


@given(TEXTS, st.sampled_from(Scope), st.booleans(), st.booleans())
def test_a_view_is_lines_of_the_text_in_order_and_never_more(
    text: str, scope: Scope, visible: bool, owner: bool
) -> None:
    seen = view(text, scope=scope, visible=visible, owner=owner)
    rest = iter(lines_of(text))

    assert all(line in rest for line in lines_of(seen.text))
    assert seen.whole == (seen.text == text) or not seen.text


# -- adding ------------------------------------------------------------------------------------------------------------


def test_a_line_goes_to_the_end_of_its_section_and_touches_nothing_else() -> None:
    text = "# Memory\n\n## People\n\n- Ana sails.\n\n## Boat <!-- share: subagent -->\n\nAn oak hull.\n"

    assert placed(text, "- Luis bakes.", section="people")[:2] == (
        text.replace("- Ana sails.\n", "- Ana sails.\n- Luis bakes.\n"),
        "People",
    )
    assert placed(text, "- x", section="Boat").text.endswith("An oak hull.\n\n- x\n")


@pytest.mark.parametrize(
    ("text", "heading", "result"),
    [
        ("", None, "# Memory\n\n- x\n"),
        ("", "A", "# Memory\n\n## A\n\n- x\n"),
        ("a", None, "a\n\n- x"),
        ("a\r\n", None, "a\r\n\r\n- x\r\n"),
        ("- y\n", None, "- y\n- x\n"),
        (BOM, "A", f"{BOM}# Memory\n\n## A\n\n- x\n"),
        ("text\n", "A", "text\n\n## A\n\n- x\n"),
        ("text", "A", "text\n\n## A\n\n- x"),
        ("## A", "A", "## A\n\n- x"),
        ("## A\n", "A", "## A\n\n- x\n"),
        ("## A\n\n", "A", "## A\n\n- x\n"),
        ("## A\n## B\n", "A", "## A\n\n- x\n\n## B\n"),
        ("## A\n\n## B\n", "A", "## A\n\n- x\n\n## B\n"),
        ("## A\n\n\n## B\n", "A", "## A\n\n- x\n\n## B\n"),
        ("## A\r\n\r\n- y\r\n\r\n## B\r\n", "A", "## A\r\n\r\n- y\r\n- x\r\n\r\n## B\r\n"),
        ("## A\n- y  \n\n## B\n", "A", "## A\n- y  \n- x\n\n## B\n"),
        ("## A\n- y\n  more\n", "A", "## A\n- y\n  more\n- x\n"),
        ("## A\ntext\n### C\n- z\n", "A", "## A\ntext\n\n- x\n### C\n- z\n"),
        ("## A\n- y", "A", "## A\n- y\n- x"),
        ("```\n## A <!-- private -->\n```\n", "A", "```\n## A <!-- private -->\n```\n\n## A\n\n- x\n"),
        ("---\nk: v\n---\n## A\n- y\n", "A", "---\nk: v\n---\n## A\n- y\n- x\n"),
        ("A\n===\n- y\n", "a", "A\n===\n- y\n- x\n"),
    ],
)
def test_a_line_is_added_as_a_careful_person_would(text: str, heading: str | None, result: str) -> None:
    assert placed(text, "- x", section=heading).text == result


HEADINGS = st.sampled_from([None, "One", "two", "Boat", "Mine", "Under", "At the end", "New one"])


@given(TEXTS, HEADINGS)
@example("## Mine <!-- private\r\n\r\n", "Mine")
@example("## One\n  ", "One")
def test_taking_the_added_line_out_gives_the_old_text_back(text: str, heading: str | None) -> None:
    new = placed(text, "- added here", section=heading).text

    at = new.index("- added here")
    start = next(i for i in range(at + 1) if new[: at - i] == text[: at - i])
    end = len(new) - (len(text) - (at - start))
    assert new[: at - start] + new[end:] == text
    put_in = new[at - start : end]
    assert re.sub(r"# Memory|##? (?:Notes|\w[\w ]+)", "", put_in.replace("- added here", "")).strip("\r\n") == ""
    assert put_in.count("\n") <= 6
    if text.count("\r\n") == text.count("\n") == text.count("\r"):  # one kind of line end, and no other
        assert put_in.count("\r\n") == (put_in.count("\n") if text.count("\n") else 0)
    if text.strip(BOM).strip():
        assert new.endswith("\n") == text.endswith("\n")


@given(TEXTS, HEADINGS)
def test_an_added_line_is_found_under_its_heading(text: str, heading: str | None) -> None:
    new, told, _ = placed(text, "- added here", section=heading)
    at = new.index("- added here")
    around = [s.title.casefold() for s in sections(new) if s.start <= at < s.end and not s.claimed]

    swallowed = "<!--" in text or "```" in text or "~~~" in text or text.removeprefix(BOM).startswith("---")
    assert swallowed or told is None or told.casefold() in around
    assert heading is None or str(told).casefold() == heading.casefold()


@given(TEXTS)
@example("## Team <!-- share: group -->\n\n### Notes\n")
@example("# All <!-- share: group -->\n\n## Team\n")
@example("## A\n\n```\n## B <!-- private -->\n")
def test_what_is_given_no_place_never_comes_under_a_marked_heading(text: str) -> None:
    new = placed(text, "- added here").text
    at = new.index("- added here")
    for scope in Scope:
        seen = view(new, scope=scope, visible=False, owner=False).text
        assert "- added here" not in seen
    unmarked_part = view(new, scope=Scope.GROUP, visible=True, owner=False)
    assert any(start <= at < end for start, end in unmarked_part.spans) or "<!--" in text


# -- front matter, line ends, frames -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("---\na: 1\n---\nbody", "body"),
        ("---\r\na: 1\r\n---\r\nbody", "body"),
        (f"{BOM}---\na: 1\n...\nbody", "body"),
        ("---\n---\n", ""),
        ("---\na: 1\n---", ""),
        ("---\na: 1\n", "---\na: 1\n"),
        ("----\n", "----\n"),
        (" ---\n---\n", " ---\n---\n"),
        ("\n---\n---\n", "\n---\n---\n"),
        ("", ""),
        ("---", "---"),
    ],
)
def test_front_matter_ends_at_its_own_line(text: str, rest: str) -> None:
    assert text[front_matter_end(text) :] == rest


def test_front_matter_is_plain_yaml() -> None:
    text = "---\nname: tide-table\ndescription: Use *this* for R&D & tides, 2 * 3\ntags: [a, b]\n---\nbody\n"

    assert front_matter(text, "SKILL.md") == {
        "name": "tide-table",
        "description": "Use *this* for R&D & tides, 2 * 3",
        "tags": ["a", "b"],
    }
    assert front_matter("no front matter", "x.md") == {}
    assert front_matter("---\n---\n", "x.md") == {}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("a: [", "not YAML near line"),
        ("a: b: c", "not YAML near line 2"),
        ("- a\n- b", "not a list of keys"),
        ("just text", "not a list of keys"),
        ("a: &x [1]\nb: *x", "anchors or aliases"),
        ("a: &x 1", "anchors or aliases"),
        ("a: " + "[" * 4000, "not YAML"),
        ("a: " + "x" * 17_000, "longer than 16,384"),
        ("a: !!python/object:os.x {}", "not YAML"),
        ("a: \x01", "not YAML"),
        ("a: 2026-99-99", "not YAML"),
    ],
)
def test_front_matter_that_is_anything_else_is_a_named_error(body: str, why: str) -> None:
    with pytest.raises(BadText, match=why) as caught:
        front_matter(f"---\n{body}\n---\n", "skills/x/SKILL.md")

    assert str(caught.value).startswith("skills/x/SKILL.md: ")


@given(TEXTS)
def test_any_front_matter_is_a_mapping_or_a_named_error(text: str) -> None:
    try:
        assert isinstance(front_matter(f"---\n{text}\n---\n", "x.md"), dict)
    except BadText:
        pass


@pytest.mark.parametrize(("text", "newline"), [("a\r\nb\n", "\r\n"), ("a\nb\r\n", "\n"), ("a", "\n"), ("\n\r\n", "\n")])
def test_the_first_line_decides_which_line_end_is_used(text: str, newline: str) -> None:
    assert newline_of(text) == newline


@pytest.mark.parametrize(
    "tag", ["<memory>", "</memory>", "< / Memory >", "<MEMORY path='x'>", "<\n/\nmemory>", "<memory", "<memory/>"]
)
def test_no_data_can_open_or_close_a_frame(tag: str) -> None:
    assert defuse_tags(f"a {tag} b", ("memory",)) == f"a {tag} b".replace("<", "‹")


def test_tags_that_are_not_ours_stay_as_they_are() -> None:
    text = "<memoryfoam> <b> a < b </memory-stick> <mem>"

    assert defuse_tags(text, ("memory",)) == text


@pytest.mark.parametrize(
    "text",
    [
        "# a" + " " * 100_000 + "b",
        "# <!-- share" + " " * 100_000,
        "# " + "<!-- share " * 20_000,
        "# " + "#" * 100_000 + "x",
        "<!--" * 40_000,
        "<!--\n" * 40_000,
        "- ```\n" * 20_000,
        "a\n" * 40_000 + "===",
        "---\n" * 30_000,
        ("#" * 6 + "\n") * 20_000,
        "# a <!-- private -->\n" * 15_000,
        "<" + " " * 100_000,
        "< " * 40_000,
        "`" * 100_000,
        "\r" * 100_000,
    ],
    ids=lambda text: ascii(text[:12]),
)
def test_no_text_takes_longer_than_its_length_asks_for(text: str) -> None:
    # A quadratic rule would need minutes for each of these, and the suite would not end.
    view(text + "\n<!-- private -->", scope=Scope.GROUP, visible=True, owner=False)
    placed(text, "- x", section="A")
    placed(text, "- x")
    defuse_tags(text, ("memory",))
    front_matter_end("---\n" + text)


# -- one line taken apart ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "bullet"),
    [
        ("- tea", Bullet("", "-", None, "tea")),
        ("  * tea \r\n", Bullet("  ", "*", None, "tea")),
        ("\t+\ttea", Bullet("\t", "+", None, "tea")),
        ("12) tea", Bullet("", "12)", None, "tea")),
        ("- [x] tea", Bullet("", "-", "x", "tea")),
        ("- [ ] tea", Bullet("", "-", " ", "tea")),
        ("1. [-] tea", Bullet("", "1.", "-", "tea")),
        ("- [link](x)", Bullet("", "-", None, "[link](x)")),
        ("-", Bullet("", "-", None, "")),
        ("- \n", Bullet("", "-", None, "")),
    ],
)
def test_a_bullet_is_taken_apart(line: str, bullet: Bullet) -> None:
    assert bullet_of(line) == bullet


@pytest.mark.parametrize(
    "line", ["", "tea", "-tea", "*tea*", "1.5 litres", "1234567890. tea", "> - tea", "# - tea", "• tea"]
)
def test_what_is_no_item_is_no_bullet(line: str) -> None:
    assert bullet_of(line) is None
    assert bullet_text(line) == line


def test_a_dot_is_the_sign_of_a_list_only_for_who_says_so() -> None:
    assert bullet_of("• tea", dots=True) == Bullet("", "•", None, "tea")
    assert bullet_text("• tea", dots=True) == "tea"


def test_what_sets_a_line_in_can_be_left_out() -> None:
    assert unmarked("  > > - [x] tea\n") == "tea\n"
    assert unmarked("tea") == "tea"


@pytest.mark.parametrize(
    ("line", "title"),
    [
        ("# Tea", "Tea"),
        ("   ###### Tea ##\n", "Tea"),
        ("## C#", "C#"),
        ("##", ""),
        ("# Tea <!-- private -->", "Tea <!-- private -->"),
    ],
)
def test_a_heading_is_taken_apart(line: str, title: str) -> None:
    found = heading_of(line)

    assert found is not None
    assert found.level == line.split()[0].count("#")
    assert found.title == title


@pytest.mark.parametrize("line", ["#tea", "####### Tea", "    # Tea", "\t# Tea", "- # Tea", "Tea #"])
def test_what_is_no_heading_is_none(line: str) -> None:
    assert heading_of(line) is None


def test_code_is_closed_by_its_own_fence_alone() -> None:
    text = "a\n```py\nb\n~~~\n`` `\n```x\n``\n`````\nc\n~~~\nd\n```\n~~~~~\ne\n```one line```\nf\n"

    assert [line.strip() for _, line in without_code(text)] == ["a", "c", "e", "```one line```", "f"]


@pytest.mark.parametrize("nested", [False, True])
def test_code_that_is_never_closed_in_an_item_leaves_the_lines_below_the_next_heading(nested: bool) -> None:
    text = "# A\n\n- a\n  ```\n  code\n\n## B\n\n- b\n"

    assert [line.strip() for _, line in without_code(text, nested=nested)][-3:] == ["## B", "", "- b"]
    assert twin_of(text, "b") and not twin_of(text, "code")


def test_a_fence_in_a_list_counts_where_asked_for() -> None:
    text = "- ```\n  x\n  ```\n> ~~~\n> y\n> ~~~\nz"

    assert [line for _, line in without_code(text, nested=True)] == ["z"]
    assert fence_after("- ```", "") == fence_after("    ```", "") == ""
    assert fence_after("- ```", "```", nested=True) == "```"


@given(st.lists(st.sampled_from(LINES), max_size=12), st.booleans())
def test_lines_outside_code_keep_their_numbers(lines: list[str], nested: bool) -> None:
    text = "\n".join(lines)

    assert all(lines_of(text)[number - 1] == line for number, line in without_code(text, nested=nested))


def test_every_line_says_what_it_stands_in() -> None:
    text = "---\na: ```\n---\nb\n<!-- c\n```\n-->\nd\n~~~\n<!--\n~~~\ne"
    places = [(line.strip(), place) for line, place in lines_with_place(text)]

    assert [line for line, _ in places] == [line.strip() for line in lines_of(text)]
    assert [line for line, place in places if not place] == ["b", "<!-- c", "d", "e"]
    assert [line for line, place in places if place == "code"] == ["~~~", "<!--", "~~~"]
    assert [line for line, place in places if place == "comment"] == ["```", "-->"]


def test_a_comment_that_nothing_ends_begins_with_its_line_or_is_none() -> None:
    def seen(text: str) -> list[str]:
        return [line.strip() for line, place in lines_with_place(text) if not place]

    assert seen("- it begins with <!-- there\n- b\n```\nc\n```\n- d\n") == ["- it begins with <!-- there", "- b", "- d"]
    assert seen("- a\n <!-- aside\n- b\n- c\n") == ["- a", "<!-- aside"]
    assert seen("- a <!-- aside\n- b -->\n- c <!-- d\n- e\n") == ["- a <!-- aside", "- c <!-- d", "- e"]


def test_a_comment_is_followed_over_lines() -> None:
    assert comment_after("a <!-- b", False)
    assert comment_after("b", True)
    assert not comment_after("--> c", True)
    assert comment_after("--> c <!--", True)
    assert not comment_after("<!-- a --> b", False)


def test_what_dreaming_put_behind_a_line_can_be_left_out() -> None:
    dreamed = "- Ana lives in Lisbon (since 2026-05-08) _(score=0.71, hits=4, days=3)_"

    assert evidence_of(dreamed) == (0.71, 4, 3)
    assert without_tail(dreamed) == "- Ana lives in Lisbon (since 2026-05-08)"
    assert without_tail(dreamed, loose=True) == "- Ana lives in Lisbon"
    assert without_tail("The shop is open (until 8 pm)") == "The shop is open (until 8 pm)"
    assert evidence_of("- Ana lives in Lisbon") is None


@pytest.mark.parametrize("heading", ["  # in <!-- private -->", "   ## in <!-- private -->"])
def test_a_private_mark_counts_inside_an_item_too(heading: str) -> None:
    text = f"# Open\n\n- an item\n{heading}\n  hidden\n"

    assert "hidden" not in view(text, scope=Scope.GROUP, visible=True, owner=False).text
