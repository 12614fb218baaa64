"""The page Self: who the agent is and where that is said, which soul was worn, and what each listener is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_web import HOSTILE, Outside

from anima import Home, Scope
from anima.testing import Clock
from serving import PRODUCT, Desk

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20
ADDRESSES = [
    "/agent",
    "/agent?part=whole",
    *(f"/agent/{scope}" for scope in Scope),
    "/agent/main?text=yes",
    "/agent/main?part=told",
]


def band(text: str, name: str) -> str:
    """The part of the page that tells of one file."""
    return next(part for part in text.split('<li class="band ')[1:] if f"<code>{name}</code>" in part)


@pytest.mark.parametrize("path", ADDRESSES)
def test_each_view_answers_the_owner_and_nobody_else(desk: Desk, path: str) -> None:
    found = desk.page.get(path)

    assert found.status_code == 200 and Outside(found.text).found == []
    assert desk.client(Authorization="Bearer wrong").get(path).status_code == 401
    assert desk.client().get(path).headers["Location"] == "/login"
    assert desk.agent("main").get(path).status_code == 404


def test_an_agent_without_an_emoji_stands_with_its_name_alone(desk: Desk) -> None:
    desk.home.write("IDENTITY.md", "- Name: Aria\n- Emoji: 🦉\n")
    assert '<span class="face" aria-hidden="true">🦉</span>' in desk.page.get("/today").text

    desk.home.write("IDENTITY.md", "- Name: Aria\n")
    bare = desk.page.get("/today").text
    assert 'class="face"' not in bare and '<span class="name">Aria</span>' in bare


@pytest.mark.parametrize("path", ADDRESSES)
def test_hostile_text_of_documents_is_shown_inert(desk: Desk, path: str) -> None:
    home = desk.home
    home.write("SOUL.md", f"# {HOSTILE}\n\n- {HOSTILE}\n\n**{HOSTILE}** [{HOSTILE}](javascript:alert(1))\n")
    home.write("IDENTITY.md", "- Name: <b>Eve</b>\n- Vibe: {{ 7919*7907 }}\n- Avatar: http://evil.example/x.png\n")
    home.write("AGENTS.md", "## Peers\n\n- **scout**: <script>alert(1)</script> {{ 7919*7907 }}\n")
    found = desk.page.get(path).text

    assert Outside(found).found == []
    assert "<script>alert" not in found and "\u202e" not in found and "\x1b" not in found
    assert PRODUCT not in found


def test_each_field_of_the_card_names_its_source(desk: Desk) -> None:
    desk.home.write("IDENTITY.md", "- Name: Aria\n- Creature: a fern\n- Emoji: 🌿\n")
    text = re.sub(r"\s+", " ", desk.page.get("/agent").text)

    assert '<span class="value">a fern</span> <span class="from">IDENTITY.md</span>' in text
    assert '<dt>Theme</dt> <dd><span class="dim">not said</span>' in text


def test_a_name_from_the_configuration_says_so(tmp_path: Path) -> None:
    Home.create(tmp_path / "h", name="Aria").close()
    with Home.open(tmp_path / "h", settings={"identity.name": "Nova"}) as home:
        text = Desk(home, Clock()).page.get("/agent").text

    assert "Nova" in text and "anima.toml [identity]" in text


def test_the_picture_of_the_home_is_shown_and_can_run_nothing(desk: Desk) -> None:
    (Path(desk.home.name) / "me.svg").write_text(
        "<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", encoding="utf-8"
    )
    desk.home.write("IDENTITY.md", "- Name: Aria\n- Avatar: me.svg\n")
    page = desk.page
    found = page.get("/agent/picture")

    assert '<img src="/agent/picture?ticket=' in page.get("/agent").text
    assert found.headers["Content-Type"] == "image/svg+xml"
    assert (
        "sandbox" in found.headers["Content-Security-Policy"]
        and "script-src" not in found.headers["Content-Security-Policy"]
    )
    assert desk.client(Authorization="Bearer wrong").get("/agent/picture").status_code == 401


@pytest.mark.parametrize(
    ("avatar", "says"),
    [
        ("http://evil.example/x.png", "is not loaded here"),
        ("no/such.png", "not in the home"),
        ("../outside.png", "outside the home"),
        ("SOUL.md", "no picture"),
    ],
)
def test_a_picture_that_is_not_shown_says_why(desk: Desk, avatar: str, says: str) -> None:
    desk.home.write("IDENTITY.md", f"- Name: Aria\n- Avatar: {avatar}\n")
    page = desk.page

    assert says in page.get("/agent").text
    assert page.get("/agent/picture").status_code == 404


def test_a_picture_in_the_identity_itself_is_served_by_us(desk: Desk) -> None:
    desk.home.write("IDENTITY.md", "- Name: Aria\n- Avatar: data:image/png;base64,iVBORw0KGgo=\n")
    found = desk.page.get("/agent/picture")

    assert (found.status_code, found.content, found.headers["Content-Type"]) == (200, PNG[:8], "image/png")


def test_a_listener_is_told_what_was_shown_cut_missing_and_hidden_and_why(desk: Desk) -> None:
    home = desk.home
    home.write("SOUL.md", "# Soul\n\n" + "- be kind\n" * 3_000)
    home.delete("TOOLS.md")
    page = desk.page
    mine, group = page.get("/agent/main").text, page.get("/agent/group").text

    assert "cut" in band(mine, "SOUL.md") and "over the budget of one file" in band(mine, "SOUL.md")
    assert "characters left out" in band(mine, "SOUL.md") and 'class="gone"' in band(mine, "SOUL.md")
    assert "missing" in band(mine, "TOOLS.md")
    assert "hidden" in band(group, "MEMORY.md") and "kept from group sessions" in band(group, "MEMORY.md")
    assert "only for heartbeat" in band(mine, "HEARTBEAT.md")


def test_the_list_of_listeners_tells_first_what_each_is_shown(desk: Desk) -> None:
    text = re.sub(r"<[^>]*>", "", desk.page.get("/agent").text)

    assert re.findall(r"characters · \d+ (\w+)", text) == ["shown"] * 5
    assert "You, alone" in text and "Group anybody else in the room" in text


def test_what_health_says_to_do_is_set_as_a_command_only_where_it_is_one(desk: Desk) -> None:
    desk.home.write("TOOLS.md", "a\u200bb\n")
    text = desk.page.get("/settings/health").text

    assert '<p class="do">look at that line' in text and "<code>look" not in text


@pytest.mark.parametrize(("scope", "title"), [("main", "Told to you, alone"), ("subagent", "Told to a sub-agent")])
def test_the_title_of_a_listeners_page_is_good_english(desk: Desk, scope: str, title: str) -> None:
    assert f"<title>{title} " in desk.page.get(f"/agent/{scope}").text


def test_the_text_of_a_prompt_is_drawn_only_when_it_is_asked_for(desk: Desk) -> None:
    desk.home.write("SOUL.md", "# Soul\n\nYou love ferns.\n")
    page = desk.page

    assert "You love ferns." not in page.get("/agent/main").text
    assert "You love ferns." in page.get("/agent/main?text=yes").text


def test_another_sender_is_told_less(desk: Desk, tmp_path: Path) -> None:
    desk.home.remember("The safe opens with 4711")
    with Home.open(desk.home.name, settings={"owner": ["luis"]}, clock=desk.clock) as home:
        page = Desk(home, desk.clock).page
        mine, theirs = page.get("/agent/main?text=yes").text, page.get("/agent/main?text=yes&sender=mallory").text

    assert "4711" in mine and "4711" not in theirs


def test_the_persona_log_tells_which_soul_was_worn_when(desk: Desk) -> None:
    before = desk.page.get("/agent").text
    for _ in range(3):
        with desk.home.session(scope=Scope.MAIN) as session:
            session.log("user", "hello")
    after = desk.page.get("/agent").text

    assert "No conversation was recorded yet" in before
    assert "in 3 conversations" in after


def test_the_other_soul_is_shown_with_when_it_is_worn(tmp_path: Path) -> None:
    Home.create(tmp_path / "h", name="Aria").close()
    settings = {"persona.at": "19:00", "persona.duration": "1h", "persona.chance": 0.1}
    with Home.open(tmp_path / "h", settings=settings, clock=Clock()) as home:
        home.write("SOUL_EVIL.md", "# Other\n\nYou are stern.\n")
        text = Desk(home, Clock()).page.get("/agent").text

    assert "from 19:00 for 1h each day and by chance in 10 % of conversations" in text and "You are stern." in text
    assert "it is <code>SOUL_EVIL.md</code>" in text


def test_peers_are_listed_and_none_is_explained(desk: Desk) -> None:
    before = desk.page.get("/agent").text
    desk.home.write("AGENTS.md", "# Guide\n\n## Peers\n\n- **scout**: looks things up\n")
    after = desk.page.get("/agent").text

    assert "It knows no other agents" in before
    assert "<b>scout</b> looks things up" in after


def test_a_home_without_identity_and_soul_teaches_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "bare" / "memory").mkdir(parents=True)
    with Home.open(tmp_path / "bare", clock=Clock()) as home:
        page = Desk(home, Clock()).page
        found = page.get("/agent")
        told = [page.get(f"/agent/{scope}").status_code for scope in Scope]

    assert (
        found.status_code == 200
        and "There is no soul yet" in found.text
        and "There is no IDENTITY.md yet" in found.text
    )
    assert told == [200] * 5


@pytest.mark.parametrize(
    "path", ["/agent/everybody", "/agent/%00", "/agent/main?sender=" + "x" * 300, "/agent/main/more"]
)
def test_what_makes_no_sense_is_answered_in_words(desk: Desk, path: str) -> None:
    found = desk.page.get(path)

    assert found.status_code in (400, 404) and "<h1>Not here</h1>" in found.text
