"""Which paths are places inside a home, and when two names are the same document."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from anima.errors import BadArguments, BadPath
from anima.layout import Policy
from anima.layout.dialects import DIALECTS, layout_for
from anima.model import MAX_DEPTH, MAX_PATH, DocPath, Scope, fold
from hostile_paths import HOSTILE


@pytest.mark.parametrize("raw", HOSTILE, ids=ascii)
def test_a_hostile_path_is_refused_with_the_rule_it_breaks(raw: str) -> None:
    with pytest.raises(BadPath) as caught:
        DocPath.parse(raw)

    assert caught.value.raw == raw
    assert caught.value.why
    assert str(caught.value).isprintable()


def test_the_list_of_hostile_paths_is_long_and_holds_no_path_twice() -> None:
    assert len(HOSTILE) == len(set(HOSTILE))
    assert len(HOSTILE) >= 150


@pytest.mark.parametrize("raw", [None, 7, b"MEMORY.md", ["MEMORY.md"], object()])
def test_what_is_no_text_is_no_path(raw: object) -> None:
    with pytest.raises(BadPath, match="a path is text"):
        DocPath.parse(raw)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "raw",
    [
        "MEMORY.md",
        "memory/2026-05-08.md",
        "memory/2026-05-08-boat.md",
        "bank/entities/ana.md",
        "a b/c d.md",
        "Ünïcödé/naïve.md",
        "日記/五月.md",
        "何？.md",
        "一：二.md",
        "☀️ summer.md",
        "👩🏽.md",
        "a~b.md",
        "x~1.md",
        "console.md",
        "nullable.md",
        "common.md",
        "a.b.c.md",
        "note",
        "VISION",
        "it's.md",
        "a+b=c&d.md",
        "C.md",
        "100%.md",
        "[x].md",
        "e\u0301te\u0301.md",
        "x" * 252 + ".md",
        "/".join("abcdefgh") + ".md",
        "#1.md",
        "-x.md",
        "--home.md",
    ],
)
def test_what_people_call_their_files_is_a_path(raw: str) -> None:
    path = DocPath.parse(raw)

    assert path.text == unicodedata.normalize("NFC", raw)
    assert DocPath.parse(path) is path
    assert DocPath.parse(path.text) == path


def test_the_limits_are_exact() -> None:
    deep = "/".join(["x"] * MAX_DEPTH)

    assert DocPath.parse(deep).parts == ("x",) * MAX_DEPTH
    assert DocPath.parse("a" * 255).text == "a" * 255
    assert len(DocPath.parse("/".join(["abc"] * 4 + ["d" * 255] * 3)).text) <= MAX_PATH
    for raw in (deep + "/x", "a" * 256, "é" * 128):
        with pytest.raises(BadPath):
            DocPath.parse(raw)


def test_a_path_knows_its_name_its_folder_and_whether_it_is_markdown() -> None:
    path = DocPath.parse("memory/topics/Boat.MD")

    assert (path.name, path.parent, path.parts) == ("Boat.MD", "memory/topics", ("memory", "topics", "Boat.MD"))
    assert path.is_markdown
    assert DocPath.parse("MEMORY.md").parent == ""
    assert not DocPath.parse("notes.txt").is_markdown


@pytest.mark.parametrize(
    "names",
    [
        ("MEMORY.md", "memory.md", "Memory.MD", "ＭＥＭＯＲＹ.md", "ᴹEMORY.md", "MEMORY\ufe0f.md"),
        ("Straße.md", "STRASSE.md", "strasse.md", "STRAẞE.md"),
        ("é.md", "e\u0301.md", "É.md", "E\u0301.md"),
        ("ﬁle.md", "file.md", "FILE.md"),
        ("①.md", "1.md"),
        ("K.md", "k.md", "\u212a.md"),
        ("ΣΊΣΥΦΟΣ.md", "σίσυφος.md", "ΣίσυφοΣ.md"),
        ("☀.md", "☀️.md", "☀︎.md"),
    ],
)
def test_names_that_fold_alike_are_the_same_document(names: tuple[str, ...]) -> None:
    assert len({DocPath.parse(name).key for name in names}) == 1


ANY_TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
# Letters whose folding is a matter of its own: sharp s, dotted i, long s, ligatures, iota below, Kelvin, fractions.
TRICKY = st.text(st.sampled_from("aAſßẞİıǅǆﬁﬃͅΐᾳᾼΣςσÅÅKK½⅓①㍿ﷺｶﾞ가가e\u0301\u0345\u0308️"), max_size=8)


@given(ANY_TEXT | TRICKY)
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(ANY_TEXT | TRICKY)
@example("ẞ")
@example("ΐ")
def test_case_and_unicode_form_do_not_change_what_a_name_folds_to(text: str) -> None:
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")]

    assert {fold(form) for form in forms} == {fold(text)}
    assert fold(forms[2].casefold()) == fold(text)


@given(ANY_TEXT | TRICKY | st.sampled_from(HOSTILE))
def test_any_text_is_a_path_that_parses_to_itself_or_an_error(raw: str) -> None:
    try:
        path = DocPath.parse(raw)
    except BadPath as error:
        assert error.why
        return
    assert DocPath.parse(path.text) == path
    assert DocPath.parse(path.text).key == path.key == fold(path.text)
    assert not any(part in ("", ".", "..") or part.startswith(".") for part in (*path.parts, *path.key.split("/")))
    assert len(path.parts) == len(path.key.split("/"))


def _full_width(text: str) -> str:
    return "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in text)


SPELLINGS = (str, str.lower, str.upper, str.swapcase, str.title, _full_width, lambda t: unicodedata.normalize("NFD", t))
KNOWN = sorted(
    {
        (layout.dialect, row.path.rstrip("/"))
        for layout in map(layout_for, DIALECTS)
        for row in (*layout.rows, *layout.others)
        if row.path
    }
)


@given(
    st.sampled_from(KNOWN),
    st.lists(st.sampled_from(SPELLINGS), max_size=3),
    st.sampled_from(["", "/x.md", "/été.md", "/a/b.md"]),
)
def test_the_policy_of_a_file_is_the_same_in_every_spelling_of_its_name(
    known: tuple[str, str], spellings: list[object], below: str
) -> None:
    dialect, path = known
    spelt = path + below
    for spelling in spellings:
        spelt = spelling(spelt)  # type: ignore[operator]
    layout = layout_for(dialect)

    assert layout.row_of(DocPath.parse(spelt)) == layout.row_of(DocPath.parse(path + below))


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["anima.toml", "ANIMA.TOML", "ａｎｉｍａ.toml", "Sessions/x.jsonl", "SESSIONS/a/b.md"])
def test_no_spelling_opens_what_is_closed_to_tools(dialect: str, name: str) -> None:
    assert layout_for(dialect).row_of(DocPath.parse(name)).policy is Policy.CLOSED


@given(ANY_TEXT)
def test_a_scope_is_one_of_five_or_an_error_that_names_them(raw: str) -> None:
    assume(raw.casefold() not in set(Scope))
    with pytest.raises(BadArguments, match="main, group, subagent, cron, heartbeat"):
        Scope.parse(raw)


@pytest.mark.parametrize("raw", [None, 3, ""])
def test_a_scope_that_cannot_be_is_refused_and_not_guessed(raw: object) -> None:
    with pytest.raises(BadArguments):
        Scope.parse(raw)  # type: ignore[arg-type]


def test_a_scope_may_be_written_in_any_case() -> None:
    assert Scope.parse("Group") is Scope.GROUP
    assert Scope.parse(Scope.CRON) is Scope.CRON
