"""Settings over HTTP: what a page may set, what nobody sets from there, rules that are written as they were shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from anima import Home
from anima.agent.chats import CHANNEL
from serving import Desk

API = "/api/v1"


def text(desk: Desk) -> str:
    return (Path(desk.home.name) / "anima.toml").read_text(encoding="utf-8")


def test_what_is_set_on_the_page_stands_in_the_file_and_holds_at_once(desk: Desk) -> None:
    file = Path(desk.home.name) / "anima.toml"
    file.write_text(file.read_text(encoding="utf-8") + '\n[dream]  # at night\nat = "0 5 * * *"\n', encoding="utf-8")
    page = desk.page
    for key, value in (
        ("owner", ["telegram:42"]),
        ("gate.preset", "strict"),
        ("dream.at", "0 4 * * *"),
        ("timezone", "Asia/Tokyo"),
    ):
        assert page.put(f"{API}/settings/{key}", json={"value": value}).status_code == 204

    config = desk.home.config
    assert (config.owner, config.gate.preset, config.dream.at) == (("telegram:42",), "strict", "0 4 * * *")
    assert str(desk.home.site.zone()) == "Asia/Tokyo" and "[dream]  # at night\n" in text(desk)
    with Home.open(desk.home.name) as again:
        assert again.config.rows() == config.rows()
    page.put(f"{API}/settings/timezone", json={"value": None})
    assert "timezone" not in text(desk) and desk.home.config.timezone == ""


@pytest.mark.parametrize(
    ("key", "value", "status"),
    [
        ("timezone", "Moon/Base", 400),
        ("rituals.day_tokens", -1, 400),
        ("gate.preset", "loose", 400),
        ("own_tools", ["bash"], 403),
        ("sessions.redact", False, 403),
        ("index.url", "http://evil.example", 403),
        ("nothing", "x", 403),
    ],
)
def test_what_cannot_be_set_changes_nothing(desk: Desk, key: str, value: object, status: int) -> None:
    before = text(desk)

    assert desk.page.put(f"{API}/settings/{key}", json={"value": value}).status_code == status
    assert text(desk) == before


def test_only_a_page_changes_how_a_home_is_run(desk: Desk) -> None:
    before, wish = text(desk), {"value": "open"}

    assert desk.owner.put(f"{API}/settings/gate.preset", json=wish).status_code == 403
    assert desk.agent("main").put(f"{API}/settings/gate.preset", json=wish).status_code == 404
    assert desk.client().put(f"{API}/settings/gate.preset", json=wish).status_code == 401
    assert desk.owner.post(f"{API}/connect/codex", json={}).status_code == 403
    assert desk.owner.put(f"{API}/model/practice").status_code == 403
    assert text(desk) == before


def test_a_rule_is_written_as_it_was_shown_and_allows_the_next_one(desk: Desk) -> None:
    with desk.home.session(scope="main", channel="chat") as session:
        wish = {"target": "TOOLS.md", "content": "- the printer"}
        waiting = desk.home.inbox.get(str(session.call("memory_write", wish)["proposal"]))
        page, card = desk.page, {"id": waiting.id, "content": waiting.content}
        unseen = page.post(f"{API}/settings/rules", json=card)
        shown = page.get(f"/inbox/{waiting.id}").text
        rule = desk.home.inbox.rule_for(waiting)

        assert unseen.status_code == 403 and rule and rule.id in shown
        assert page.post(f"{API}/settings/rules", json=card).status_code == 204
        assert rule.text in text(desk)
        assert session.call("memory_write", {**wish, "content": "- the scanner"})["status"] == "written"
        assert f'id="rule-{rule.id}"' in page.get("/settings").text
        assert page.delete(f"{API}/settings/rules/{rule.id}").status_code == 204
        assert session.call("memory_write", {**wish, "content": "- the stove"})["status"] == "pending"


def test_a_programs_files_are_changed_as_they_were_shown_or_not_at_all(
    tmp_path: Path, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "codex" / "config.toml"
    monkeypatch.setenv("CODEX_HOME", str(file.parent))
    file.parent.mkdir()
    file.write_text('model = "x"\n')
    page = desk.page
    plan = page.post(f"{API}/connect/codex", json={}).json()

    assert file.read_text() == 'model = "x"\n' and any("anima" in line["text"] for line in plan["lines"])
    assert page.post(f"{API}/connect/codex", json={"content": "0" * 64}).status_code == 412
    assert page.post(f"{API}/connect/codex", json={"content": plan["content"]}).status_code == 200
    assert "[mcp_servers.anima]" in file.read_text()
    back = page.post(f"{API}/connect/codex", json={"remove": True}).json()
    assert page.post(f"{API}/connect/codex", json={"remove": True, "content": back["content"]}).status_code == 200
    assert file.read_text() == 'model = "x"\n'
    assert page.post(f"{API}/connect/nobody", json={}).status_code == 400


def test_the_new_lines_of_a_proposal_are_edited_without_what_stands_around_them(desk: Desk) -> None:
    desk.home.write("MEMORY.md", "# Memory\n\n- Ana likes milk\n- The boat is blue\n")
    with desk.home.session(scope="main", channel="chat") as session:
        session.taint("web")
        wish = {"target": "MEMORY.md", "old_string": "likes milk", "new_string": "likes oat milk"}
        id = str(session.call("memory_write", wish)["proposal"])
    page = desk.page
    page.get(f"/inbox/{id}")
    new = page.get(f"{API}/pending/{id}/new").json()
    done = page.post(f"{API}/pending/{id}/approve", json={"content": new["content"], "part": "- Ana likes rice milk"})

    assert new["text"] == "- Ana likes oat milk\n" and done.status_code == 200
    assert desk.home.read("MEMORY.md").text == "# Memory\n\n- Ana likes rice milk\n- The boat is blue\n"


def test_a_row_counts_as_shown_only_where_it_shows_all(desk: Desk) -> None:
    with desk.home.session(scope="main", channel="chat") as session:
        one, two = (
            desk.home.inbox.get(
                str(session.call("memory_write", {"target": f"skills/{n}/SKILL.md", "content": said})["proposal"])
            )
            for n, said in (("a", "one line"), ("b", "two\nlines"))
        )
    page = desk.page
    page.get("/inbox?part=rows")
    cards = [{"id": each.id, "content": each.content} for each in (one, two)]

    assert page.post(f"{API}/pending/approve", json={"cards": cards}).status_code == 403
    assert desk.home.inbox.all() == (one, two)
    assert page.post(f"{API}/pending/approve", json={"cards": cards[:1]}).json()["approved"] == [one.id]


def test_old_addresses_lead_to_where_the_pages_are_now(desk: Desk) -> None:
    page = desk.page

    found = {old: page.get(old).headers["location"] for old in ("/self", "/self/group?text=yes", "/health", "/")}
    assert found == {
        "/self": "/agent",
        "/self/group?text=yes": "/agent/group?text=yes",
        "/health": "/settings/health",
        "/": "/today",
    }
    assert (
        page.get("/selfish").status_code in (303, 404)
        and page.get("/self//evil.example").headers["location"][:7] == "/agent/"
    )


def test_the_badge_counts_noted_lines_too(desk: Desk) -> None:
    with desk.home.session(scope="main", channel="chat") as session:
        session.taint("web")
        session.call("memory_write", {"target": "memory", "content": "Bo sells rope"})
        session.call("memory_write", {"target": "TOOLS.md", "content": "- the printer"})
    page = desk.page

    assert page.get(f"{API}/waiting").json() == {"proposals": 1, "noted": 1}
    assert 'aria-label="2 waiting"' in page.get("/today").text


def test_only_a_program_of_somebodys_counts_as_connected(desk: Desk) -> None:
    for channel in ("cli", "chat", "telegram", "heartbeat"):
        with desk.home.session(scope="main", channel=channel) as session:
            session.log("user", "Hello")
    assert 'class="guide-step" id="step-connect"' in desk.page.get("/today").text
    with desk.home.session(scope="main", channel="mcp") as session:
        session.call("memory_search", {"query": "boat"})
    assert 'class="guide-step done" id="step-connect"' in desk.page.get("/today").text


def test_the_guided_start_stays_until_its_steps_are_done_however_much_is_written(desk: Desk) -> None:
    for number in range(30):
        desk.home.note(f"the tide of day {number}")
    for channel in ("cli", "telegram", "heartbeat") * 4:
        with desk.home.session(scope="main", channel=channel) as session:
            session.log("user", "Hello")
    told = desk.page.get("/today").text
    assert "0 of 5 done" in told and 'id="step-remember"' in told

    desk.home.remember("The boat is called Aurora")
    for channel in ("mcp", CHANNEL):
        with desk.home.session(scope="main", channel=channel) as session:
            session.log("user", "Hello")
    for path, field in (("USER.md", "Name"), ("IDENTITY.md", "Creature")):
        text = desk.home.read(path).text
        desk.home.write(path, re.sub(rf"(\*\*{field}:\*\*) .*", r"\1 somebody", text))
    assert 'id="guide"' not in desk.page.get("/today").text
    desk.home.note("and it does not come back")
    assert 'id="guide"' not in desk.page.get("/today").text


def test_the_guided_start_is_hidden_where_a_browser_hides_it(desk: Desk) -> None:
    page, other = desk.page, desk.page
    page.cookies.set(f"guide-{desk.keyring.cookie}", "hidden")

    assert 'id="guide"' not in page.get("/today").text and "Nothing waits for you" in page.get("/today").text
    assert 'id="guide"' in other.get("/today").text


def test_today_says_who_waits_for_a_schedule_that_nobody_runs(desk: Desk) -> None:
    assert "Nobody runs your schedule" not in desk.page.get("/today").text
    desk.home.write("HEARTBEAT.md", "- Look at the calendar each morning\n")
    assert "HEARTBEAT.md waits for it" in desk.page.get("/today").text
