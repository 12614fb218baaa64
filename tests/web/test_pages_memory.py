"""The page Memory: documents read line by line with their marks, edited, compared, and taken back."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_web import HOSTILE, Outside

from anima import Home, Scope
from anima.model import Actor, Change, DocPath, Kind, Origin
from anima.testing import Clock
from anima.text.markdown import lines_of
from anima.web.draw import prose, source
from anima.web.pages.memory import line_steps
from serving import PRODUCT, Desk, desk_in

WAYS = [
    "",
    "?as=source",
    "?as=edit",
    "?as=history",
    "?line=1",
    "?part=lines",
    "?part=about&line=1",
    "?as=history&part=past",
]


def row(text: str, number: int) -> str:
    """One line of a document as the page draws it, with its mark."""
    found = re.search(rf'<div class="row[^"]*" id="L{number}">.*?\n</div>', text, re.DOTALL)
    assert found, f"there is no line {number}"
    return found[0]


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", text)))


def written_by(desk: Desk, actor: Actor, origin: Origin, path: str, text: str) -> None:
    desk.home._writer.submit([Change(path=DocPath.parse(path), kind=Kind.WRITE, text=text, actor=actor, origin=origin)])


# -- who sees it, and what cannot happen ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/memory",
        "/memory?folder=memory",
        "/memory?part=tree",
        "/memory?part=lately",
        *(f"/memory/SOUL.md{way}" for way in WAYS),
    ],
)
def test_each_view_answers_the_owner_and_nobody_else(desk: Desk, path: str) -> None:
    desk.home.note("something")
    found = desk.page.get(path)

    assert found.status_code == 200 and Outside(found.text).found == []
    assert desk.client(Authorization="Bearer wrong").get(path).status_code == 401
    assert desk.client().get(path).headers["Location"] == "/login"
    assert desk.agent("main").get(path).status_code == 404


@pytest.mark.parametrize("way", [*WAYS, "?as=source&line=3"])
def test_hostile_text_of_a_document_is_shown_inert(desk: Desk, way: str) -> None:
    lines = ["# {}", "- {}", "> {}", "**{}**", "`{}`", "[{}](javascript:alert)", "<!-- {} -->", "```{}", "[[{}]]"]
    desk.home.write("notes/x.md", "\n".join(line.format(HOSTILE) for line in lines) + "\n", reason=HOSTILE[:400])
    found = desk.page.get(f"/memory/notes/x.md{way}").text

    assert Outside(found).found == []
    assert "<script>alert" not in found and "\u202e" not in found and "\x1b" not in found
    assert PRODUCT not in found


def test_hostile_text_in_the_list_of_documents_and_in_an_undo_is_inert(desk: Desk) -> None:
    desk.home.write("notes/{{ 62615500+33 }}'&.md", f"{HOSTILE}\n")
    desk.home.write("MEMORY.md", f"# Memory\n\n## {HOSTILE}\n")
    page = desk.page
    change = desk.home.past.changes(limit=2)[1].id
    for path in ("/memory", f"/memory?undo={change}"):
        found = page.get(path).text
        assert Outside(found).found == [] and "<script>alert" not in found
        assert PRODUCT not in found
    assert page.get("/memory/notes/%7B%7B%2062615500+33%20%7D%7D'%26.md").status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/memory/no/such.md", 404),
        ("/memory/../../etc/passwd", 404),
        ("/memory/..%2f..%2fetc%2fpasswd", 400),
        ("/memory/.anima/key", 400),
        ("/memory/%00", 400),
        ("/memory/SOUL.md?as=nonsense", 400),
        ("/memory/SOUL.md?line=0", 400),
        ("/memory/SOUL.md?line=999999", 400),
        ("/memory/SOUL.md?line=²", 400),
        ("/memory/SOUL.md?line=-1", 400),
        ("/memory/SOUL.md?from=99999999999999999999", 400),
        ("/memory/SOUL.md?as=history&revision=zz", 404),
        ("/memory/SOUL.md?as=history&revision=ffffffffff", 404),
        ("/memory/no/such.md?as=history", 404),
        ("/memory/anima.toml?as=edit", 400),
        ("/memory/picture.png", 400),
        ("/memory?undo=no-such", 404),
        ("/memory?folder=nowhere", 404),
        ("/memory?folder=..", 400),
        ("/memory?open=../x", 400),
    ],
)
def test_what_makes_no_sense_is_answered_in_words(desk: Desk, path: str, status: int) -> None:
    (Path(desk.home.name) / "picture.png").write_bytes(b"\x89PNG\xff")
    found = desk.page.get(path)

    assert found.status_code == status and "<h1>Not here</h1>" in found.text


def test_what_is_a_command_is_said_to_be_for_a_terminal(desk: Desk) -> None:
    found = desk.page.get("/memory/NOPE.md")

    assert "At a terminal: anima files lists what is there" in plain(found.text)


@settings(max_examples=30)
@given(
    way=st.sampled_from(["as", "line", "from", "revision", "undo", "folder", "open", "part"]),
    value=st.text(max_size=30),
)
def test_no_question_breaks_the_page(way: str, value: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    page = _kept_page(tmp_path_factory)
    for path in ("/memory", "/memory/SOUL.md", "/memory/SOUL.md?as=history"):
        assert page.get(path, params={way: value}).status_code in (200, 303, 400, 404), (path, way, value)


_kept: list[object] = []


def _kept_page(factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    if not _kept:
        _kept.append(desk_in(factory.mktemp("kept")).page)
    return _kept[0]


# -- browsing ---------------------------------------------------------------------------------------------------------------


def test_documents_stand_in_a_tree_with_their_kinds(desk: Desk) -> None:
    desk.home.write("memory/topics/boat.md", "# Boat\n")
    for month in ("03", "04", "05"):
        desk.home.write(f"memory/2026-{month}-02.md", "# Day\n")
    with desk.home.session(scope=Scope.MAIN) as session:
        session.log("user", "hello")
    text = desk.page.get("/memory").text
    told = plain(text)

    assert "boat.md topic" in told and "2026-05-02.md daily log" in told and "SOUL.md soul" in told
    assert told.index("2026-05 ") < told.index("2026-04 ") < told.index("2026-03 ")  # the newest month first
    assert ".jsonl" not in text and "of transcripts are kept beside these" in told


def test_an_empty_home_teaches_how_to_begin(tmp_path: Path) -> None:
    (tmp_path / "bare" / "memory").mkdir(parents=True)
    with Home.open(tmp_path / "bare", clock=Clock()) as home:
        page = Desk(home, Clock()).page
        text = page.get("/memory").text
        new = page.get("/memory", params={"open": "notes/a b.md"})

    assert "This home has no documents yet" in text and "Nothing was written yet" in text
    assert new.status_code == 303 and new.headers["Location"] == "/memory/notes/a%20b.md?as=edit"


def test_a_document_that_is_there_is_opened_to_be_read(desk: Desk) -> None:
    assert desk.page.get("/memory", params={"open": "SOUL.md"}).headers["Location"] == "/memory/SOUL.md"


def test_an_empty_document_and_one_without_history_say_so(desk: Desk) -> None:
    (Path(desk.home.name) / "empty.md").write_text("", encoding="utf-8")
    page = desk.page

    assert "There is nothing in it yet" in page.get("/memory/empty.md").text
    assert "No history yet" in page.get("/memory/empty.md?as=history").text


def test_a_home_nobody_wrote_to_is_read_and_left_as_it_is(tmp_path: Path) -> None:
    root = tmp_path / "shown"
    root.mkdir()
    (root / "MEMORY.md").write_text("# Memory\n\n- a fact\n", encoding="utf-8")
    with Home.open(root, clock=Clock()) as home:
        page = Desk(home, Clock()).page
        text = page.get("/memory/MEMORY.md?line=3").text
        others = [
            page.get(path).status_code for path in ("/memory", "/memory/MEMORY.md?as=history", "/agent", "/agent/main")
        ]

    assert "here before the ledger began" in text.lower() and others == [200] * 4
    assert sorted(each.name for each in root.iterdir()) == ["MEMORY.md"]


# -- lines and their marks --------------------------------------------------------------------------------------------------


def test_each_line_says_who_wrote_it(desk: Desk) -> None:
    home = desk.home
    written_by(desk, Actor.DREAMER, Origin.DERIVED, "bank/world.md", "- dreamed\n")
    home.append("bank/world.md", "- mine\n")
    with open(Path(home.name) / "bank/world.md", "a", encoding="utf-8") as file:
        file.write("- from an editor\n")
    text = desk.page.get("/memory/bank/world.md").text

    assert "by-dreamer" in row(text, 1) and ">dream<" in row(text, 1) and "written by a dream" in row(text, 1)
    assert "by-owner" in row(text, 2) and ">you<" in row(text, 2)
    assert "by-outside" in row(text, 3) and "edited outside anima" in row(text, 3)


def test_a_line_from_the_web_waits_in_the_inbox_and_stands_in_its_own_place(desk: Desk) -> None:
    with desk.home.session(scope=Scope.MAIN) as session:
        session.taint("web")
        answer = session.call("memory_write", {"target": "notes/web.md", "content": "the ferry leaves at seven"})
    [name] = answer["noted"]
    page = desk.page
    inbox, place = page.get("/inbox").text, desk.home.inbox.noted()[0].entry.place

    assert f'data-noted="{name}"' in inbox and "the ferry leaves at seven" in inbox and "it had read: web" in inbox
    lines = lines_of(desk.home.read(place).text)
    number = next(n for n, line in enumerate(lines, 1) if "the ferry leaves at seven" in line)
    panel = page.get(f"/memory/{place}?line={number}").text  # from where it can be trusted, too
    assert "no prompt holds it" in panel and f'data-act="trust-line" data-id="{name}" data-to="notes/web.md"' in panel
    page.post("/api/v1/noted/keep", json={"names": [name]})
    assert name not in page.get("/inbox").text and "the ferry" in page.get("/memory/notes/web.md").text


def test_a_chosen_line_tells_why_it_is_there_and_its_past(desk: Desk) -> None:
    home = desk.home
    home.remember("Ana uses an iPhone", section="People")
    home.edit("MEMORY.md", "Ana uses an iPhone", "Ana uses a Samsung, not an iPhone", reason="she told us")
    number = next(n for n, line in enumerate(lines_of(home.read("MEMORY.md").text), 1) if "Samsung" in line)
    text = desk.page.get(f"/memory/MEMORY.md?line={number}").text
    panel = plain(text[text.index('id="why"') :])

    assert "Written by you on 2026-05-08" in panel
    assert "Changed" in panel and "- Ana uses an iPhone" in panel and "Written" in panel[panel.index("Changed") :]
    assert f'href="/memory?undo={home.past.changes(limit=1)[0].id}"' in text
    assert "chosen" in row(text, number)


def test_a_long_document_comes_in_parts(desk: Desk) -> None:
    desk.home.write("notes/long.md", "".join(f"- line {n}\n" for n in range(1, 4_501)))
    page = desk.page
    first, last = page.get("/memory/notes/long.md").text, page.get("/memory/notes/long.md?line=4400").text

    assert 'id="L2000"' in first and 'id="L2001"' not in first and "?as=read&amp;from=2001" in first
    assert 'id="L4001"' in last and 'id="L4500"' in last and 'id="L4000"' not in last


@given(st.text())
def test_no_line_is_lost_and_nothing_of_it_becomes_a_tag(text: str) -> None:
    for drawn in (list(prose(text)), list(source(text))):
        assert [line.n for line in drawn] == list(range(1, len(lines_of(text)) + 1))
        for line in drawn:
            bare = re.sub(
                r'</?(?:b|i|code|span)(?: class="(?:odd|to|aside)"(?: title="[a-z ]*")?)?>', "", str(line.body)
            )
            assert "<" not in bare and all(char in "\t" or char.isprintable() for char in bare)


MARKDOWN = """---
title: x
---
# One
- a *b* **c** `d`
  1. two
- [x] done
> quoted
```
# code
```
***
see [it](http://example.org) and [[boat]] <!-- private -->
"""


def test_markdown_is_drawn_as_a_likeness_of_itself() -> None:
    drawn = list(prose(MARKDOWN))

    assert [line.kind for line in drawn] == ["front"] * 3 + ["h1", "item", "item", "item", "quote"] + ["code"] * 3 + [
        "rule",
        "text",
    ]
    assert str(drawn[4].body) == "a <i>b</i> <b>c</b> <code>d</code>"
    assert (drawn[5].sign, drawn[5].depth, drawn[6].sign) == ("1.", 1, "☑")
    assert "http://example.org" in str(drawn[12].body)
    assert re.findall('href="(.*?)"', str(drawn[12].body)) == ["/graph/about?name=boat"]


def test_a_table_is_drawn_by_its_cells_and_names_are_links() -> None:
    drawn = list(
        prose("| who | says |\n|---|:-:|\n| @Ana | [[Casa Azul]] |\nmail a@b.c, [boat](notes/boat.md) | no\n\na | b\n")
    )

    assert [line.kind for line in drawn] == ["tr th", "td-rule", "tr", "tr", "blank", "text"]
    assert str(drawn[0].body) == '<span class="cell">who</span><span class="cell">says</span>'
    links = re.findall('href="(.*?)"', "".join(str(line.body) for line in drawn))
    assert links == ["/graph/about?name=Ana", "/graph/about?name=Casa%20Azul", "/memory/notes/boat.md"]


@pytest.mark.parametrize("piece", ["[", "[[", "**", "*a", "`", "<!--", "](", "> ", "- ", "__"])
def test_no_line_takes_longer_than_its_length_deserves(piece: str) -> None:
    text = (piece * 2_000)[:4_000] + "\n"

    assert len(list(prose(text * 50))) == 50


# -- a line's past ----------------------------------------------------------------------------------------------------------

LINES = st.lists(st.sampled_from(["a cat sat", "a dog sat", "the sea", "", "- x"]), max_size=6)


@given(st.lists(LINES, min_size=1, max_size=6), st.integers(1, 6))
def test_a_past_ends_where_the_line_began_and_each_step_leads_to_the_next(versions: list[list[str]], line: int) -> None:
    given = [(str(n), "".join(f"{each}\n" for each in lines)) for n, lines in enumerate(versions)]
    steps = list(line_steps(given, line))
    if line > len(versions[0]):
        assert steps == []
        return

    assert steps[0].after == versions[0][line - 1]
    assert [step.what for step in steps[:-1]] == ["changed"] * (len(steps) - 1) and steps[-1].what in (
        "written",
        "lost",
    )
    assert [step.before for step in steps[:-1]] == [step.after for step in steps[1:]]
    assert all(step.after in versions[int(step.revision)] for step in steps)


def test_a_line_that_moved_down_is_followed() -> None:
    versions = [
        ("3", "new\nmore\nAna uses a Samsung\n"),
        ("2", "new\nAna uses an iPhone\n"),
        ("1", "Ana uses an iPhone\n"),
        ("0", None),
    ]

    assert [(step.revision, step.what) for step in line_steps(versions, 3)] == [("3", "changed"), ("1", "written")]


# -- editing ----------------------------------------------------------------------------------------------------------------


def test_what_an_edit_changes_is_shown_before_it_is_written(desk: Desk) -> None:
    found = desk.page.post("/api/v1/compare", json={"before": "a\nb\n", "after": "a\nc\n"}).json()

    assert [(line["kind"], line["text"]) for line in found["lines"]] == [
        ("place", "@@ -1,2 +1,2 @@"),
        ("same", "a"),
        ("cut", "b"),
        ("add", "c"),
    ]
    assert found["merged"] is None


def test_two_versions_are_put_together_where_they_touch_other_lines(desk: Desk) -> None:
    base, ours, theirs = "a\nb\nc\n", "a!\nb\nc\n", "a\nb\nc!\n"
    both = desk.page.post("/api/v1/compare", json={"before": theirs, "after": ours, "base": base}).json()
    clash = desk.page.post("/api/v1/compare", json={"before": "a?\nb\nc\n", "after": ours, "base": base}).json()

    assert both["merged"] == "a!\nb\nc!\n"
    assert clash["merged"] is None and clash["lines"]


def test_equal_texts_have_nothing_to_show(desk: Desk) -> None:
    assert desk.page.post("/api/v1/compare", json={"before": "a\n", "after": "a\n"}).json()["lines"] == []


def test_a_new_document_says_that_saving_makes_it(desk: Desk) -> None:
    text = desk.page.get("/memory/notes/new.md?as=edit").text

    assert "data-new" in text and "saving makes it" in text


def test_mixed_line_ends_are_told_before_they_are_lost(desk: Desk) -> None:
    root, page = Path(desk.home.name), desk.page
    (root / "mixed.md").write_bytes(b"a\r\nb\nc\n")
    (root / "windows.md").write_bytes(b"a\r\nb\r\n")

    assert "mixes kinds of line ends" in page.get("/memory/mixed.md?as=edit").text
    assert "mixes kinds of line ends" not in page.get("/memory/windows.md?as=edit").text


def test_the_text_of_a_document_is_not_in_the_page_that_edits_it(desk: Desk) -> None:
    desk.home.write("notes/x.md", "- what history names it by\n- a sentence of its own\n")

    assert "a sentence of its own" not in desk.page.get("/memory/notes/x.md?as=edit").text


# -- taking back ------------------------------------------------------------------------------------------------------------


def test_an_undo_is_shown_before_it_is_done(desk: Desk) -> None:
    home, page = desk.home, desk.page
    home.write("notes/x.md", "- one\n")
    home.write("notes/x.md", "- two\n")
    change = home.past.changes(limit=1)[0].id
    drawn = page.get(f"/memory?undo={change}").text
    told, content = plain(drawn), re.search(r'data-content="(\w+)"', drawn)[1]
    stood = home.read("notes/x.md").text
    page.post("/api/v1/undo", json={"change": change, "content": content})

    assert "This is what would be written" in told and "− - two" in told and "+ - one" in told
    assert (stood, home.read("notes/x.md").text) == ("- two\n", "- one\n")


def test_an_undo_or_a_restore_of_something_else_than_was_shown_is_not_done(desk: Desk) -> None:
    home, page = desk.home, desk.page
    home.write("notes/x.md", "- one\n\n- far below\n")
    home.write("notes/x.md", "- two\n\n- far below\n")
    change, first = home.past.changes(limit=1)[0].id, home.past.log("notes/x.md")[-1].id
    undo = re.search(r'data-content="(\w+)"', page.get(f"/memory?undo={change}").text)[1]
    base = re.search(r'data-base="(\w+)"', page.get(f"/memory/notes/x.md?as=history&revision={first}").text)[1]
    home.append("notes/x.md", "- in between\n")
    answers = [
        page.post("/api/v1/undo", json={"change": change, "content": undo}),
        page.post("/api/v1/restore", json={"path": "notes/x.md", "at": first, "base": base}),
    ]

    assert [answer.status_code for answer in answers] == [412, 412]
    assert home.read("notes/x.md").text == "- two\n\n- far below\n- in between\n"


def test_an_undo_that_cannot_be_done_says_so_and_points_to_history(desk: Desk) -> None:
    home = desk.home
    for text in ("- one\n", "- two\n", "- three\n"):
        home.write("notes/x.md", text)
    change = home.past.changes(limit=2)[1].id
    told = desk.page.get(f"/memory?undo={change}").text

    assert "It cannot be taken back by itself" in told and 'href="/memory/notes/x.md?as=history"' in told
    assert "Undo it" not in told and "Later changes touched the same lines. Nothing is lost" in told


def test_after_a_purge_no_row_offers_what_cannot_be_and_the_question_says_why(desk: Desk) -> None:
    home, page = desk.home, desk.page
    tea, number, chess = (home.remember(f"{text} is so").change for text in ("Tea", "555-0199", "Chess"))
    purge = home.forget(text="555-0199", purge=True).change
    rows = page.get("/history").text
    told = page.get(f"/memory?undo={purge}").text

    assert [f'"/memory?undo={change}"' in rows for change in (tea, number, chess, purge)] == [True, False, True, False]
    assert "was purged, and what was purged cannot come back" in told and "Nothing is lost" not in told
    assert "Undo it" in page.get(f"/memory?undo={chess}").text


def test_a_version_shows_what_it_changed_and_what_bringing_it_back_would(desk: Desk) -> None:
    home, page = desk.home, desk.page
    for text in ("- one\n", "- two\n", "- three\n"):
        home.write("notes/x.md", text)
    second = home.past.log("notes/x.md")[1].id
    told = plain(page.get(f"/memory/notes/x.md?as=history&revision={second}").text)
    page.post("/api/v1/restore", json={"path": "notes/x.md", "at": second})

    changed, back = told[told.index("What it changed") :].split("What bringing it back would change")
    assert "− - one" in changed and "+ - two" in changed
    assert "− - three" in back and "+ - two" in back
    assert home.read("notes/x.md").text == "- two\n"


def test_a_deleted_document_keeps_its_history_and_can_be_brought_back(desk: Desk) -> None:
    home = desk.home
    home.write("notes/x.md", "- one\n")
    home.delete("notes/x.md")
    text = desk.page.get("/memory/notes/x.md?as=history").text
    made = home.past.log("notes/x.md")[1].id

    assert "This document was deleted or moved" in text and made[:10] in text
    assert "Bring this version back" in desk.page.get(f"/memory/notes/x.md?as=history&revision={made}").text


def test_lately_tells_who_did_what(desk: Desk) -> None:
    with desk.home.session(scope=Scope.MAIN) as session:
        session.call("memory_write", {"target": "daily_log", "content": "Talked about the boat"})
    told = plain(desk.page.get("/memory?part=lately").text)

    assert re.search(r"Talked about the boat the agent, just now in memory/2026-05-08\.md", told)


def test_history_says_that_you_kept_what_the_agent_proposed(desk: Desk) -> None:
    with desk.home.session(scope="main") as session:
        session.taint("web")
        name = session.call("memory_write", {"target": "memory", "content": "Ben likes rooibos"})["noted"][0]
    desk.home.inbox.keep(name, approver="page")

    first = desk.page.get("/history").text.partition("data-step>")[2].partition("</li>")[0]
    assert "Ben likes rooibos" in first and "<b>you kept what the agent proposed</b>" in first
