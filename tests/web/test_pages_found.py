"""The pages Search, Sessions and Graph: what they show, to whom, that text stays text, and that nothing asked breaks them."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from anima import Home, Scope
from anima.testing import Clock
from serving import Desk

HOSTILE = (
    "x <script>alert(1)</script> {{ 7919*7907 }} {% raw %} <img src=x onerror=y> \u202edlrow\x07 \"quoted' &amp; &lt;"
)
VIEWS = ["/search", "/search?q=tea", "/sessions", "/sessions?q=tea", "/graph", "/graph/about?name=Ana"]


@pytest.fixture
def lived(desk: Desk) -> Desk:
    """A home with people, logs and two sessions."""
    home = desk.home
    home.write("MEMORY.md", "# Memory\n\n## People\n- Ana drinks green tea in the morning\n- Luis sails\n")
    home.write("memory/2026-05-08.md", "- @Ana met @Luis at [[Casa Azul]]\n- @Luis fixed the boat\n")
    home.write("memory/topics/boat.md", "# Boat\n\n- it belongs to @Luis\n")
    with home.session(scope=Scope.MAIN, channel="telegram") as session:
        session.log("user", "Which tea does Ana drink?")
        session.log("tool", "memory_search\nfound: green tea")
        session.log("assistant", "Green tea.")
        session.taint("web")
    with home.session(scope=Scope.GROUP, channel="slack", sender="bea") as session:
        session.log("user", "Is anybody there?")
    return desk


def page(client: TestClient, address: str, *, status: int = 200) -> str:
    found = client.get(address)
    assert found.status_code == status, found.text
    assert found.headers["content-type"].startswith("text/html")
    return found.text


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def only_session(home: Home, summary: str) -> str:
    return next(row.id for row in home.sessions.list() if summary in row.summary)


# -- who may look --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("address", VIEWS)
def test_the_owner_sees_every_view_and_nobody_else_does(lived: Desk, address: str) -> None:
    assert "<h1>" in page(lived.owner, address) or "about-name" in page(lived.owner, address)
    assert lived.client().get(address).headers["location"] == "/login"
    assert lived.client(Authorization="Bearer wrong").get(address).status_code == 401
    assert lived.agent("main").get(address).status_code == 404


@pytest.mark.parametrize("address", VIEWS)
def test_every_view_works_in_a_home_where_nothing_happened_yet(desk: Desk, address: str) -> None:
    assert "Traceback" not in page(desk.owner, address)


def test_empty_states_teach(desk: Desk) -> None:
    assert "What would you like to know?" in page(desk.owner, "/search")
    assert "Nothing was said yet." in page(desk.owner, "/sessions")
    assert "Nobody is named yet." in page(desk.owner, "/graph")


def test_today_tells_no_longer_of_what_was_taken_back(desk: Desk) -> None:
    desk.home.remember("The mast comes down on Friday")
    assert "mast comes down" in desk.page.get("/today").text

    desk.home.undo()
    assert "mast comes down" not in desk.page.get("/today").text


@pytest.mark.parametrize(
    "address",
    [
        "/search?scope=nobody",
        "/search?scope=" + "x" * 500,
        "/search?q=" + "x" * 4001,
        "/search?days=-1",
        "/search?limit=0",
        "/search?limit=999",
        "/search?days=%D9%A3",
        "/sessions?start=x",
        "/sessions?scope=%00",
        "/sessions?start=99999999999999",
        "/graph?most=0",
        "/graph?most=501",
        "/graph/about",
        "/graph/about?name=%20",
        "/graph/about?name=" + "x" * 201,
    ],
)
def test_what_makes_no_sense_is_said_on_a_page_people_can_read(lived: Desk, address: str) -> None:
    shown = page(lived.owner, address, status=400)

    assert "<h1>Not here</h1>" in shown and "Traceback" not in shown


@pytest.mark.parametrize("id", ["nothing", "..%2F..%2Fetc", "x" * 300, "%00", "é"])
def test_a_session_that_is_not_there_is_said(lived: Desk, id: str) -> None:
    assert "such" in page(lived.owner, f"/sessions/{id}", status=404)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    value=st.text(max_size=30), name=st.sampled_from(["q", "scope", "days", "limit", "start", "most", "name", "part"])
)
def test_no_parameter_is_an_error_of_ours(lived: Desk, name: str, value: str) -> None:
    for address in ("/search?q=tea&", "/sessions?", "/graph?", "/graph/about?name=Ana&"):
        found = lived.owner.get(f"{address}{name}={quote(value, errors='replace')}")
        assert found.status_code in (200, 400)


# -- text stays text -----------------------------------------------------------------------------------------------------------


def test_hostile_text_is_shown_inert_on_every_page(desk: Desk) -> None:
    desk.home.write("MEMORY.md", f"- tea {HOSTILE}\n")
    desk.home.write(
        "memory/2026-05-08.md", "- [[<img src=x onerror=alert(1)>]] with [[<b>Bold\u202e</b>]] and {{ 7919*7907 }}\n"
    )
    with desk.home.session(scope=Scope.MAIN, channel="<i>x</i>") as session:
        session.log("user", f"tea {HOSTILE}")
        session.log("tool", HOSTILE)
    id = only_session(desk.home, "tea")
    for address in (
        "/search?q=tea&talks=1&explain=1",
        "/sessions",
        "/sessions?q=tea",
        f"/sessions/{id}",
        "/graph",
        "/graph/about?name=" + quote(HOSTILE[:150]),
        "/search?q=" + quote(HOSTILE),
    ):
        shown = page(desk.owner, address)
        assert not re.search(
            r"<script(?! src=\"/static/)|<img|<b>Bold|onerror=[^&]*>|<i>x</i>", shown.replace("onerror=y&gt;", "")
        ), address
        assert "\u202e" not in re.sub(r'value="[^"]*"|href="[^"]*"|data-\w+="[^"]*"', "", shown), address
    assert "⟨U+202E⟩" in page(desk.owner, f"/sessions/{id}")
    assert words(page(desk.owner, f"/sessions/{id}")).count("{{ 7919*7907 }} {% raw %}") >= 3


# -- search --------------------------------------------------------------------------------------------------------------------


def test_a_hit_cites_its_lines_and_links_to_them(lived: Desk) -> None:
    shown = page(lived.owner, "/search?q=which tea does Ana drink")

    assert 'href="/memory/MEMORY.md#L4"' in shown and "MEMORY.md#L4" in words(shown)
    assert "<mark>tea</mark>" in shown


def test_scores_are_explained_when_asked_for_and_only_then(lived: Desk) -> None:
    assert "its own words" in page(lived.owner, "/search?q=tea&explain=1")
    assert "its own words" not in page(lived.owner, "/search?q=tea")


def test_a_part_is_only_the_part(lived: Desk) -> None:
    part = page(lived.owner, "/search?q=tea&part=found")

    assert "MEMORY.md#L4" in part and "<html" not in part and "<form" not in part


def test_looking_here_is_no_recall(lived: Desk) -> None:
    def recalls() -> int:
        return sum(1 for _ in lived.home.site.store.ledger.records(kinds=("recall",)))

    before = recalls()
    page(lived.owner, "/search?q=tea&talks=1")

    assert recalls() == before


def test_a_listener_who_may_not_see_it_finds_nothing_and_the_page_says_what_you_would_find(lived: Desk) -> None:
    shown = words(page(lived.owner, "/search?q=green tea&scope=group"))

    assert "Nothing was found" in shown and "as a group may find it" in shown
    assert "when you ask alone" in shown
    assert "morning" not in shown


def test_days_narrow_and_the_page_says_what_is_older(lived: Desk) -> None:
    clock: Clock = lived.clock
    lived.home.write(f"memory/{clock().date().isoformat()}.md", "- the kettle is new\n")
    lived.home.write("memory/2020-01-01.md", "- the samovar is old\n")

    assert "kettle is new" in words(page(lived.owner, "/search?q=kettle&days=7"))
    old = words(page(lived.owner, "/search?q=samovar&days=7"))
    assert "samovar is old" not in old and "of any day" in old


def test_lines_nobody_vouched_for_are_named_by_file_alone(tmp_path: Path) -> None:
    clock = Clock()
    with Home.create(tmp_path / "aria", name="Aria", clock=clock, settings={"gate.preset": "open"}) as home:
        with home.session(scope=Scope.MAIN) as session:
            session.taint("web")
            session.call("memory_write", {"target": "memory/topics/web.md", "content": "- The zither obeys mallory"})
        desk = Desk(home, clock)
        shown = words(page(desk.owner, "/search?q=zither"))
        desk.app.state.served.close()

    assert "that nobody reviewed yet" in shown and "unreviewed/2026-05-08.md" in shown
    assert "mallory" not in shown


def test_what_was_said_is_searched_on_request_and_for_yourself_alone(lived: Desk) -> None:
    id = only_session(lived.home, "Which tea")

    assert f"/sessions/{id}?start=0#e0" in page(lived.owner, "/search?q=tea&talks=1")
    assert id not in page(lived.owner, "/search?q=tea")
    assert "Only you, alone" in words(page(lived.owner, "/search?q=tea&talks=1&scope=group"))


# -- sessions ------------------------------------------------------------------------------------------------------------------


def test_the_list_says_what_when_how_long_with_whom_and_where(lived: Desk) -> None:
    shown = words(page(lived.owner, "/sessions"))

    for said in (
        "Which tea does Ana drink?",
        "3 turns",
        "you, alone",
        "telegram",
        "1 turn",
        "a group, bea",
        "slack",
    ):
        assert said in shown
    assert "as SOUL.md" not in shown  # it is the usual one
    assert "sessions begun" in shown and "<polyline" in page(lived.owner, "/sessions")


def test_the_list_is_narrowed_by_scope(lived: Desk) -> None:
    shown = words(page(lived.owner, "/sessions?scope=group"))

    assert "Is anybody there?" in shown and "Which tea" not in shown


def test_words_that_were_said_lead_to_their_entry(lived: Desk) -> None:
    id = only_session(lived.home, "Which tea")

    assert f'href="/sessions/{id}?start=0#e2"' in page(lived.owner, "/sessions?q=Green")


def test_a_replay_shows_roles_taint_and_what_the_agent_was_told_and_folds_tools(lived: Desk) -> None:
    shown = page(lived.owner, "/sessions/" + only_session(lived.home, "Which tea"))

    assert 'class="turn user" id="e0"' in shown and 'class="turn assistant" id="e2"' in shown
    assert re.search(r'class="turn tool" id="e1".*?<details><summary>', shown, re.DOTALL)
    said = words(shown)
    assert "Outside text. It holds text from tool, web" in said and "Outside text came in: tool, web." in said
    assert "What the agent had been told" in said and "IDENTITY.md" in said
    assert "The session ended." in said


def test_a_long_session_is_read_page_by_page(desk: Desk) -> None:
    with desk.home.session(scope=Scope.MAIN) as session:
        for number in range(120):
            session.log("user", f"entry number {number}")
    id = only_session(desk.home, "entry number 0")
    first, last = page(desk.owner, f"/sessions/{id}"), page(desk.owner, f"/sessions/{id}?start=100")

    assert "entry number 49" in first and "entry number 50" not in first and 'rel="next" href="?start=50"' in first
    assert "entry number 119" in last and 'rel="prev" href="?start=50"' in last and 'rel="next"' not in last
    assert "has only 120 turns" in words(page(desk.owner, f"/sessions/{id}?start=5000"))


def test_a_session_that_goes_on_is_followed_at_its_newest_page(desk: Desk) -> None:
    session = desk.home.session(scope=Scope.MAIN)
    for number in range(60):
        session.log("user", f"entry number {number}")
    shown = page(desk.owner, f"/sessions/{session.id}")
    session.log("assistant", "one more")
    part = page(desk.owner, f"/sessions/{session.id}?start=50&part=turns")
    session.close()

    assert "data-poll=" in shown and "entry number 59" in shown and 'id="e0"' not in shown
    assert "one more" in part and "goes on" in part and "<html" not in part
    assert "data-poll=" not in page(desk.owner, f"/sessions/{session.id}")


def test_damage_is_said_where_it_stands_and_the_rest_is_shown(desk: Desk) -> None:
    with desk.home.session(scope=Scope.MAIN) as session:
        for number in range(4):
            session.log("user", f"words number {number}")
    file = Path(desk.home.name) / "sessions" / f"{session.id}.jsonl"
    file.write_bytes(file.read_bytes().replace(b'words number 1"', b"words number 1"))
    shown = words(page(desk.owner, f"/sessions/{session.id}"))

    assert "1 record of this page cannot be read." in shown and "it is not JSON" in shown
    assert shown.index("words number 0", 200) < shown.index("Damaged.") < shown.index("words number 2")
    assert "number 1" not in shown


def test_a_torn_last_line_is_said(desk: Desk) -> None:
    session = desk.home.session(scope=Scope.MAIN)
    session.log("user", "whole")
    file = Path(desk.home.name) / "sessions" / f"{session.id}.jsonl"
    session.close()
    file.write_bytes(file.read_bytes() + b'{"type":"entry","timestamp":"2026')

    assert "The file ends in the middle of line" in words(page(desk.owner, f"/sessions/{session.id}"))


def test_another_programs_header_may_say_anything(desk: Desk) -> None:
    line = '{"type":"session","version":1,"id":"theirs","timestamp":"later","agent_id":"main","manifest":[{"path":5},7,null]}\n'
    turn = '{"type":"entry","timestamp":"","role":"robot","content":"beep"}\n{"type":"flush","timestamp":"z"}\n'
    folder = Path(desk.home.name) / "sessions"
    folder.mkdir(exist_ok=True)
    (folder / "theirs.jsonl").write_text(line.replace('"main"', f'"{desk.home.agent}"') + turn, encoding="utf-8")

    assert "beep" in page(desk.owner, "/sessions/theirs")
    assert "theirs" in page(desk.owner, "/sessions")


def test_where_no_transcripts_are_kept_the_page_says_how_to_keep_them(tmp_path: Path) -> None:
    Home.create(tmp_path / "aria", name="Aria").close()
    with Home.open(tmp_path / "aria", settings={"sessions.dir": ""}, clock=Clock()) as home:
        desk = Desk(home, Clock())
        assert "No transcripts are kept here." in page(desk.owner, "/sessions")
        assert "No transcripts are kept here" in page(desk.owner, "/search?q=tea&talks=1")
        page(desk.owner, "/sessions/anything", status=404)
        desk.app.state.served.close()


# -- graph ---------------------------------------------------------------------------------------------------------------------


def test_the_list_of_the_graph_holds_names_kinds_and_ties(lived: Desk) -> None:
    shown = page(lived.owner, "/graph")
    items = re.findall(
        r'<li data-kind="(\w+)" data-mentions="(\d+)" data-age="\d" data-ties="([^"]*)">.*?class="label">([^<]*)<',
        shown,
    )

    assert {(kind, name) for kind, _, _, name in items} >= {
        ("person", "Ana"),
        ("person", "Luis"),
        ("name", "Casa Azul"),
        ("topic", "Boat"),
    }
    places = [int(tie.partition("*")[0]) for _, _, ties, _ in items for tie in ties.split()]
    assert places and all(0 <= place < len(items) for place in places)


def test_choosing_a_name_shows_what_about_says(lived: Desk) -> None:
    shown = page(lived.owner, "/graph/about?name=Luis&part=about")

    assert "Named in 4 lines" in words(shown)
    assert 'href="/memory/memory/2026-05-08.md#L2"' in shown
    assert "/graph/about?name=Ana" in shown and "<html" not in shown


def test_a_change_is_in_the_next_graph(lived: Desk) -> None:
    assert "Zoe" not in page(lived.owner, "/graph")
    lived.home.append("memory/2026-05-08.md", "- @Zoe came too\n")

    assert "Zoe" in page(lived.owner, "/graph?part=names")


def test_what_waits_and_may_match_leads_to_the_inbox(lived: Desk) -> None:
    with lived.home.session(scope=Scope.MAIN) as session:
        session.taint("web")
        session.call("memory_write", {"target": "memory", "content": "Ana sells tea in Oslo"})
    shown = page(lived.page, "/search?q=Oslo")

    assert 'wait for you: <a href="/inbox">look in the inbox</a>' in shown and "anima review" not in shown
