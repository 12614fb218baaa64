"""The page Tidy and its routes: what memory could do without, done as it was shown, and snapshots on the page Health."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_api import problem
from test_web import HOSTILE, Outside

from anima import Home
from anima.web.guard import KEY
from anima.web.served import Tidiness
from serving import PRODUCT, Desk, desk_in

API = "/api/v1/tidy"
SNAPSHOTS = "/api/v1/snapshots"


@pytest.fixture
def messy(desk: Desk) -> Desk:
    """A home with two old logs, two things said twice and one contradiction."""
    home = desk.home
    home.write(
        "MEMORY.md", "# Memory\n\n- Ana uses a Samsung phone\n- The lease ends on 3 May 2027\n- Ana lives in Lima\n"
    )
    home.write(
        log(home, 2),
        "- Ana uses a Samsung phone!\n- Ana lives in Bogota\n- The lease ends on 2027-05-03\n- Luis sails\n",
    )
    for age in (200, 300):
        home.write(log(home, age), f"# An old day\n\n- [09:10] The ferry cost {age} crowns\n")
    return desk


def log(home: Home, age: int) -> str:
    return f"memory/{home.site.today() - timedelta(days=age)}.md"


def found(desk: Desk, kind: str = "") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = desk.page.get(API).json()["items"]
    return [item for item in items if kind in ("", item["kind"])]


def the_phone(desk: Desk) -> dict[str, Any]:
    return next(item for item in found(desk, "merge") if "Samsung" in item["remove"][0]["text"])


def act(desk: Desk, do: str, *items: dict[str, Any], **more: Any) -> Any:
    return desk.page.post(API, json={"ids": [item["id"] for item in items], "do": do, **more})


def shown(desk: Desk, part: str = "found") -> str:
    """The list, and the detail of every row of it."""
    page = desk.page
    rows = page.get(f"/tidy?part={part}").text
    details = [page.get(f"{address}?part=detail").text for address in re.findall(r'href="(/tidy/[^"]+)"', rows)]
    return "".join([rows, *details])


def plain(text: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", text)))


def texts(home: Home) -> dict[str, str]:
    return {entry.path: home.read(entry.path).text for entry in home.list_all() if entry.path.endswith(".md")}


def slow(desk: Desk) -> Tidiness:
    """Served as a home that takes long to look at."""
    desk.app.state.served.tidiness = made = Tidiness(desk.home, quick=-1)
    return made


# -- who sees it, and what cannot happen ------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/tidy", "/tidy?part=found", "/tidy?afresh=1", API, SNAPSHOTS])
def test_each_view_answers_the_owner_and_nobody_else(messy: Desk, path: str) -> None:
    given = messy.page.get(path)

    assert given.status_code == 200
    assert path.startswith("/api") or Outside(given.text).found == []
    assert messy.client(Authorization="Bearer wrong").get(path).status_code == 401
    assert messy.client().get(path).status_code in (303, 401)
    assert messy.agent("main").get(path).status_code == 404


@pytest.mark.parametrize("path", [API, SNAPSHOTS])
def test_nobody_but_the_owner_acts_and_no_browser_without_the_key_of_its_page(messy: Desk, path: str) -> None:
    before, wish = texts(messy.home), {"ids": [found(messy, "merge")[0]["id"]], "do": "tidy"}
    forged = messy.page
    del forged.headers[KEY]

    assert forged.post(path, json=wish).status_code == 401
    assert messy.agent("main").post(path, json=wish).status_code == 404
    assert messy.client().post(path, json=wish).status_code == 401
    assert texts(messy.home) == before and messy.home.snapshots.all() == ()
    assert messy.owner.post(path, json=wish if path == API else None).status_code == 200


def test_no_two_pages_have_one_key(desk: Desk) -> None:
    keys = re.findall(r'data-key="(.)"', desk.page.get("/tidy").text)

    assert len(keys) == len(set(keys)) > 8


def test_hostile_text_and_names_are_shown_inert(desk: Desk) -> None:
    line = f"Ana keeps {HOSTILE} in the shed"
    name = "notes/{{ 62615500+33 }}'&onload.md"
    desk.home.write("MEMORY.md", f"# Memory\n\n## {HOSTILE}\n\n- {line}\n- Ana lives in Lima {HOSTILE}\n")
    desk.home.write(name, f"# Ana\n\n- {line}\n- Ana lives in Bogota {HOSTILE}\n")
    text = shown(desk)

    assert "alert(1)" in text and "onload.md" in text  # it is there
    assert Outside(text).found == []
    assert "<script>alert" not in text and "\u202e" not in text and "\x1b" not in text and PRODUCT not in text
    for address in re.findall(r'href="(/memory/[^"]*)"', text):
        assert desk.page.get(unescape(address)).status_code == 200


@pytest.mark.parametrize(
    "wish",
    [
        {},
        {"ids": [], "do": "tidy"},
        {"ids": ["x"], "do": "delete"},
        {"ids": ["x"] * 1_001, "do": "tidy"},
        {"ids": ["x"], "do": "tidy", "line": 3},
        {"ids": ["x"], "do": "tidy", "path": "SOUL.md"},
        {"ids": ["x"], "do": "keep", "line": 1},
    ],
)
def test_a_wish_that_makes_no_sense_is_bad_input(messy: Desk, wish: dict[str, Any]) -> None:
    assert problem(messy.page.post(API, json=wish))[0] == 400


@settings(max_examples=20)
@given(way=st.sampled_from(["part", "afresh", "undo"]), value=st.text(max_size=30))
def test_no_question_breaks_the_page(way: str, value: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    if not _kept:
        _kept.append(desk_in(tmp_path_factory.mktemp("kept")).page)
    assert _kept[0].get("/tidy", params={way: value}).status_code == 200


_kept: list[Any] = []


# -- looking ----------------------------------------------------------------------------------------------------------------


def test_the_page_is_there_before_the_look_and_also_while_one_goes_on(messy: Desk) -> None:
    page = messy.page
    assert "Looking through memory…" in page.get("/tidy").text
    with messy.app.state.served.tidiness._looking:
        assert "Looking through memory…" in page.get("/tidy").text
    page.get("/tidy?part=found")
    assert "Ana uses a Samsung phone" in page.get("/tidy").text
    messy.home.note("something else")
    assert "Looking through memory…" in page.get("/tidy").text


def test_each_part_shows_its_lines_with_their_places_evidence_and_diff(messy: Desk) -> None:
    text, said = shown(messy), plain(shown(messy))

    assert "Old logs 2" in said and "Said twice 2" in said and "Contradictions 1" in said
    assert f"300 days old → memory/archive/2025/{log(messy.home, 300)[7:]}" in said
    assert (
        f"The same words ✓ stays Ana uses a Samsung phone MEMORY.md:3 under Memory − goes Ana uses a Samsung phone! {log(messy.home, 2)}:1"
        in said
    )
    assert "the same words that carry meaning: ana, uses, samsung, phone" in said
    assert "The same date in another notation" in said
    assert "≠ One says lima, the other bogota" in said and "newer" in said
    assert '<a href="/memory/MEMORY.md?line=3#L3">MEMORY.md:3</a>' in text
    assert text.count('<details class="exactly">') == 4 and "<details open" not in text
    assert '−</span></td><td class="t">- Ana uses a Samsung phone!</td>' in text


def test_looking_changes_nothing_and_begins_nothing(tmp_path: Path) -> None:
    (tmp_path / "aria").mkdir()
    (tmp_path / "aria/SOUL.md").write_text("# Soul\n")
    (tmp_path / "aria/MEMORY.md").write_text("# Memory\n\n- Ana uses a Samsung phone\n- Ana uses a Samsung phone\n")
    with Home.open(tmp_path / "aria") as home:
        home.index()
        desk = Desk(home, None)  # type: ignore[arg-type]
        page = desk.page
        before = sorted(str(path) for path in (tmp_path / "aria").rglob("*"))
        assert "Ana uses a Samsung phone" in page.get("/tidy?part=found").text
        assert sorted(str(path) for path in (tmp_path / "aria").rglob("*")) == before


def test_a_tidy_memory_is_said_to_be_tidy(desk: Desk) -> None:
    assert "Memory is tidy." in shown(desk)


def test_all_of_a_part_are_rows_and_none_is_drawn_in_detail(desk: Desk) -> None:
    names = [
        f"{one}{two}"
        for one in ("Bel", "Kor", "Mar", "Nov", "Ost", "Pal", "Rud", "Sev")
        for two in ("an", "el", "in", "os", "ud", "ya", "or")
    ]
    for path in ("notes/a.md", "notes/b.md"):
        desk.home.write(
            path, "# List\n\n" + "".join(f"- The harbour of {name} has a red lighthouse\n" for name in names[:54])
        )
    text = desk.page.get("/tidy?part=found").text
    ids = re.findall(r'class="entry tidy-row" href="/tidy/([^"]*)"', text)

    assert "Do all 54" in text and 'class="card tidy"' not in text
    assert len(ids) == len(found(desk, "merge")) == 54
    assert act(desk, "tidy", *({"id": one} for one in ids)).status_code == 200
    assert len(found(desk, "merge")) == 0


def test_suggestions_come_in_pages(messy: Desk) -> None:
    pages = [messy.owner.get(API, params={"start": start, "limit": 2}).json() for start in (0, 2, 4)]

    assert [len(page["items"]) for page in pages] == [2, 2, 1]
    assert [page["next"] for page in pages] == [2, 4, None] and pages[0]["total"] == 5
    assert len({item["id"] for page in pages for item in page["items"]}) == 5


# -- acts -------------------------------------------------------------------------------------------------------------------


def test_one_is_done_and_can_be_undone(messy: Desk) -> None:
    before = texts(messy.home)
    phone = the_phone(messy)
    done = act(messy, "tidy", phone).json()

    assert done["done"] == 1 and [receipt["path"] for receipt in done["receipts"]] == [log(messy.home, 2)]
    assert "Samsung" not in messy.home.read(log(messy.home, 2)).text
    address = f"/memory?undo={done['change']}"
    assert f'href="{address}"' in shown(messy)
    [content] = re.findall(r'data-content="([^"]*)"', messy.page.get(address).text)
    assert messy.page.post("/api/v1/undo", json={"change": done["change"], "content": content}).status_code == 200
    assert texts(messy.home) == before
    assert f'href="{address}"' not in shown(messy) and len(found(messy, "merge")) == 2


def test_what_was_tidied_stands_again_once_its_undo_is_taken_back(messy: Desk) -> None:
    change = act(messy, "tidy", the_phone(messy)).json()["change"]
    [undo] = {receipt.change for receipt in messy.home.undo(change)}
    assert f'href="/memory?undo={change}"' not in shown(messy)

    messy.home.undo(undo)
    assert f'href="/memory?undo={change}"' in shown(messy)


@pytest.mark.parametrize("kind", ["archive", "merge"])
def test_all_of_a_part_is_one_change(messy: Desk, kind: str) -> None:
    before, items = texts(messy.home), found(messy, kind)
    done = act(messy, "tidy", *items).json()

    assert done["done"] == len(items) == 2 and messy.home.past.changes(limit=1)[0].id == done["change"]
    assert found(messy, kind) == []
    messy.home.undo(done["change"])
    assert texts(messy.home) == before


def test_an_old_log_is_moved_to_the_archive(messy: Desk) -> None:
    old = messy.home.read(log(messy.home, 300)).text
    act(messy, "tidy", *(item for item in found(messy, "archive") if item["path"] == log(messy.home, 300)))

    assert messy.home.read(f"memory/archive/2025/{log(messy.home, 300)[7:]}").text == old
    assert not messy.home.exists(log(messy.home, 300))


@pytest.mark.parametrize(("line", "goes"), [(1, "lives in Bogota"), (2, "lives in Lima")])
def test_of_a_contradiction_the_line_that_holds_stays(messy: Desk, line: int, goes: str) -> None:
    [choice] = found(messy, "choose")
    assert problem(act(messy, "tidy", choice)) == (400, "bad-arguments")
    assert act(messy, "tidy", choice, line=line).status_code == 200

    all_ = "".join(texts(messy.home).values())
    assert goes not in all_ and all_.count("Ana lives in") == 1
    assert found(messy, "choose") == []


def test_a_line_is_chosen_only_in_one_contradiction(messy: Desk) -> None:
    before = texts(messy.home)
    [choice], merge = found(messy, "choose"), found(messy, "merge")[0]

    assert problem(act(messy, "tidy", choice, merge, line=1)) == (400, "bad-arguments")
    assert problem(act(messy, "tidy", merge, line=1)) == (400, "bad-arguments")
    assert texts(messy.home) == before


@pytest.mark.parametrize("kind", ["merge", "choose"])
def test_what_is_kept_stays_and_is_not_brought_up_again(messy: Desk, kind: str) -> None:
    before, items = texts(messy.home), found(messy, kind)
    done = act(messy, "keep", items[0]).json()

    assert done == {"done": 1, "change": None, "receipts": []} and texts(messy.home) == before
    assert found(messy, kind) == items[1:]


def test_a_log_cannot_be_kept_and_nothing_beside_it_is(messy: Desk) -> None:
    items = found(messy)
    assert problem(act(messy, "keep", found(messy, "merge")[0], found(messy, "archive")[0])) == (400, "bad-arguments")

    assert found(messy) == items


def test_an_act_that_was_done_is_not_done_twice(messy: Desk) -> None:
    item = found(messy, "merge")[0]
    assert act(messy, "tidy", item).status_code == 200
    after = texts(messy.home)

    assert problem(act(messy, "tidy", item)) == (412, "stale-write")
    assert problem(act(messy, "tidy", {"id": "0" * 24})) == (412, "stale-write")
    assert texts(messy.home) == after


# -- when somebody wrote in between -----------------------------------------------------------------------------------------

TOUCHED: dict[str, tuple[str, Callable[[Home], object]]] = {
    "the line that stays is gone": ("merge", lambda home: home.write("MEMORY.md", "# Memory\n")),
    "the line that goes is gone": ("merge", lambda home: home.write(log(home, 2), "- Luis sails\n")),
    "the line that goes says something else": (
        "merge",
        lambda home: home.edit(log(home, 2), "phone!", "phone and a tablet"),
    ),
    "the document is gone": ("merge", lambda home: home.delete(log(home, 2))),
    "a line of the choice is gone": ("choose", lambda home: home.edit("MEMORY.md", "- Ana lives in Lima\n", "")),
    "the old log has a new line": ("archive", lambda home: home.append(log(home, 300), "- one more")),
    "the old log is gone": ("archive", lambda home: home.delete(log(home, 300))),
}


@pytest.mark.parametrize("long", [False, True])
@pytest.mark.parametrize("what", TOUCHED)
def test_what_no_longer_stands_is_412_and_nothing_is_done(messy: Desk, what: str, long: bool) -> None:
    if long:
        slow(messy)
    kind, touch = TOUCHED[what]
    item = the_phone(messy) if kind == "merge" else found(messy, kind)[0]
    touch(messy.home)
    before = texts(messy.home)

    assert problem(act(messy, "tidy", item, **({"line": 1} if kind == "choose" else {}))) == (412, "stale-write")
    assert problem(act(messy, "tidy", *found(messy, "archive")[-1:], item))[0] in (400, 412)
    assert texts(messy.home) == before


def test_a_line_elsewhere_in_the_document_does_no_harm(messy: Desk) -> None:
    phone = the_phone(messy)
    path = log(messy.home, 2)
    messy.home.write(path, "- A line above\n" + messy.home.read(path).text)

    assert act(messy, "tidy", phone).status_code == 200
    assert (
        messy.home.read(path).text
        == "- A line above\n- Ana lives in Bogota\n- The lease ends on 2027-05-03\n- Luis sails\n"
    )


# -- a home that takes long to look at --------------------------------------------------------------------------------------


def test_a_long_look_is_made_again_only_when_asked_for_and_shows_what_still_stands(messy: Desk) -> None:
    slow(messy)
    assert "Look again" not in shown(messy) and len(found(messy)) == 5
    messy.home.write("notes/new.md", "# New\n\n- Ana uses a Samsung phone\n")
    messy.home.edit("MEMORY.md", "- Ana lives in Lima\n", "")
    text = shown(messy)

    assert "this is what still stands of it" in text and "Look again" in text
    assert "Lima" not in text and "notes/new.md" not in text and messy.owner.get(API).json()["outdated"] is True
    fresh = messy.page.get("/tidy?part=found&afresh=1").text
    assert "notes/new.md" in fresh + shown(messy) and "Look again" not in fresh


def test_after_a_long_look_acts_follow_one_another_without_a_new_one(messy: Desk) -> None:
    slow(messy)
    items = found(messy)
    for item in items:
        assert act(messy, "tidy", item, **({"line": 2} if item["kind"] == "choose" else {})).status_code == 200
        assert item["id"] not in {left["id"] for left in found(messy)}

    assert messy.home.upkeep.look().suggestions == ()


def test_what_was_forgotten_since_a_long_look_is_not_shown_again_nor_held(messy: Desk) -> None:
    tidiness = slow(messy)
    assert "Bogota" in shown(messy)
    messy.home.forget(text=["Ana lives in Bogota"], dry_run=False)

    assert "Bogota" not in shown(messy) and "Bogota" not in messy.owner.get(API).text
    looked = tidiness.look()
    assert "Bogota" not in f"{looked.told} {looked.found}"


# -- snapshots --------------------------------------------------------------------------------------------------------------


def test_a_snapshot_is_taken_listed_and_named_on_the_page(desk: Desk) -> None:
    assert "There is none yet." in desk.page.get("/settings/health").text
    taken = desk.page.post(SNAPSHOTS).json()
    again = desk.page.post(SNAPSHOTS).json()
    text = desk.page.get("/settings/health").text

    assert taken["fresh"] and taken["name"] == desk.home.snapshots.all()[0].name
    assert again == taken | {"fresh": False}
    assert [each["name"] for each in desk.owner.get(SNAPSHOTS).json()["items"]] == [taken["name"]]
    assert f"anima snapshot restore {taken['name']}" in text
    assert desk.home.snapshots.verify(taken["name"])


def test_no_request_says_where_a_snapshot_goes_or_fetches_one(desk: Desk, tmp_path: Path) -> None:
    name = desk.owner.post(SNAPSHOTS, json={"to": str(tmp_path / "out"), "label": "x"}).json()["name"]

    assert not (tmp_path / "out").exists() and [each.name for each in desk.home.snapshots.all()] == [name]
    assert str(desk.home.name) not in desk.owner.get(SNAPSHOTS).text
    assert not re.search(r'href="[^"]*snapshots', desk.page.get("/settings/health").text)
    for path in (
        f"{SNAPSHOTS}/{name}",
        f"/static/{name}",
        f"/api/v1/files/.anima/snapshots/{name}",
        f"/memory/.anima/snapshots/{name}",
    ):
        given = desk.page.get(path)
        assert given.status_code in (400, 404) and b"\x1f\x8b" not in given.content


def test_a_second_snapshot_is_refused_while_one_is_under_way(desk: Desk) -> None:
    with desk.app.state.served.snapping:
        assert problem(desk.page.post(SNAPSHOTS)) == (423, "home-busy")
    assert desk.home.snapshots.all() == () and desk.page.post(SNAPSHOTS).status_code == 200


def test_snapshots_go_to_the_place_of_the_configuration(tmp_path: Path) -> None:
    desk = desk_in(tmp_path)
    with open(Path(desk.home.name) / "anima.toml", "a", encoding="utf-8") as file:
        file.write(f'\n[snapshot]\ndir = "{tmp_path}/kept"\n')
    desk.home.close()
    with Home.open(tmp_path / "aria", clock=desk.clock) as home:
        other = Desk(home, desk.clock)
        name = other.page.post(SNAPSHOTS).json()["name"]
        assert [path.name for path in (tmp_path / "kept").rglob("*.tar.gz")] == [name]
        assert f"{tmp_path}/kept" in other.page.get("/settings/health").text
