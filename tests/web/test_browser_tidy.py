"""Tidying up in a real browser: by mouse and keys, when somebody wrote in between, and a snapshot taken by a button."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from anima import Home
from browsing import Server, Visit, browser_with, lead, own_configuration, serving, visiting

NOTES = """# Notes

- The tiller was repaired by Tomas in March
- The yard closes on 2026-11-15
- Priya lives in Uddevalla
"""
YARD = """# The yard

- The yard closes on 15 November 2026
- Tomas repaired the tiller in March
- Priya lives in Gothenburg
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_with() as found:
        yield found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    day = datetime.now(UTC).date() - timedelta(days=200)
    with Home.create(tmp_path / "aria", name="Aria") as home:
        home.write("memory/topics/yard.md", YARD)
        home.write("notes/spring.md", NOTES)
        home.write(f"memory/{day}.md", "# A day\n\n- [09:10] The ferry cost 14 crowns\n")
    with open(tmp_path / "aria/anima.toml", "a", encoding="utf-8") as file:
        file.write('\n[snapshot]\nat = ""\n')  # none by itself
    with own_configuration(tmp_path / "config"), serving(tmp_path / "aria") as found:
        yield found


def open_page(page: Page, server: Server) -> None:
    page.goto(server.url + "/tidy")
    expect(page.locator(".entry")).to_have_count(4)


def by_key(page: Page, key: str = "a") -> None:
    row = page.locator(".entry:focus")
    if not row.count():
        page.locator(".entry").first.click()
        page.locator(".entry").first.focus()
    expect(page.locator(f"#tidy-{page.locator('.entry:focus').get_attribute('data-id')}")).to_be_visible()
    expect(page.locator("#detail")).not_to_have_attribute("aria-busy", "true")
    page.keyboard.press(key)


def act(visit: Visit, page: Page, work: Callable[[], object], left: int) -> None:
    """Acts until so many cards are left: where a look takes long the page may show one that no longer stands, says so,
    and looks again."""
    for _ in range(5):
        work()
        page.wait_for_function(
            "left => document.querySelectorAll('.entry').length === left || !document.querySelector('#tidy-wrong').hidden",
            arg=left,
        )
        if page.locator(".entry").count() == left:
            break
    visit.wrong[:] = [said for said in visit.wrong if "412" not in said]
    expect(page.locator(".entry")).to_have_count(left)


def test_everything_is_tidied_by_keys_and_one_is_taken_back(browser: Browser, server: Server) -> None:
    with visiting(browser, server) as visit:
        page = visit.come_in()
        lead(page, "y", "/tidy")
        expect(page.locator(".entry")).to_have_count(4)
        page.keyboard.press("j")
        for left in (3, 2):
            expect(page.locator(".entry:focus")).to_have_count(1)
            act(visit, page, lambda: by_key(page), left)
        expect(page.locator(".entry:focus")).to_have_count(1)
        page.keyboard.press("j")
        expect(page.locator(".sides")).to_be_visible()
        page.keyboard.press("a")
        expect(page.locator("#said")).to_have_text("Say which of the two lines holds.")
        act(visit, page, page.get_by_role("button", name="This one holds").nth(1).click, left=1)
        expect(page.locator(".entry:focus")).to_have_count(1)
        act(visit, page, lambda: by_key(page, "d"), left=0)
        expect(page.locator("#nothing")).to_be_visible()
        assert "Gothenburg" not in server.text("memory/topics/yard.md") and "Uddevalla" in server.text(
            "notes/spring.md"
        )
        page.locator("#tidied a").first.click()
        page.get_by_role("button", name="Undo it").click()
        page.wait_for_url("**/memory/**")
        assert "Gothenburg" in server.text("memory/topics/yard.md")


def test_what_changed_in_between_is_said_and_looked_at_again(browser: Browser, server: Server) -> None:
    with visiting(browser, server) as visit:
        page = visit.come_in()
        open_page(page, server)
        page.locator(".entry", has_text="closes on").click()
        expect(page.locator(".card.tidy", has_text="another notation")).to_be_visible()
        page.evaluate("document.querySelector('#found').dataset.on = ''")  # as though no news had come yet
        (server.folder / "notes/spring.md").write_text(NOTES.replace("closes", "opens"), encoding="utf-8")
        page.locator(".card.tidy", has_text="another notation").get_by_role("button", name="Do it").click()
        expect(page.locator("#tidy-wrong")).to_contain_text("nothing was done")
        expect(page.locator(".card.tidy", has_text="another notation")).to_have_count(0)
        assert "opens on 2026-11-15" in server.text("notes/spring.md")
        assert [said for said in visit.wrong if "412" not in said] == []
        visit.wrong.clear()


def test_a_whole_part_is_done_at_once_and_another_window_sees_it(browser: Browser, server: Server) -> None:
    with visiting(browser, server) as visit:
        page, other = visit.come_in(), visit.come_in()
        for one in (page, other):
            open_page(one, server)
        expect(other.locator("#pulse")).to_have_attribute("data-state", "on")
        page.get_by_role("button", name="Do all 2").click()
        for one in (page, other):
            expect(one.locator(".entry")).to_have_count(2)
        assert server.text("notes/spring.md") == "# Notes\n\n- Priya lives in Uddevalla\n"


def test_a_snapshot_is_taken_by_a_button(browser: Browser, server: Server) -> None:
    with visiting(browser, server) as visit:
        page = visit.come_in()
        page.goto(server.url + "/settings/health")
        expect(page.locator("#snapshots-none")).to_be_visible()
        button = page.get_by_role("button", name="Take one now")
        button.click()
        expect(page.locator("#snapshots-list tbody tr")).to_have_count(1)
        expect(button).to_be_focused()
        [archive] = (server.folder / ".anima/snapshots").glob("*.tar.gz")
        expect(page.locator("#snapshots-list")).to_contain_text(archive.name)
