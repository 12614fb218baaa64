"""The guided start, in a real browser: from an empty home to the first line that is remembered and taken back.

A real MCP client connects on the way; the talk is with `practice`, is reloaded in the middle of a turn, and stands in a
second tab.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from browsing import Server, apart, browser_with, serving, visiting
from mcp_doors import visiting as mcp_visiting


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_with() as found:
        yield found


async def _called(server: Server) -> Any:
    async with mcp_visiting(server.folder, ("stdio", "handshake")) as client:
        return await client.call_tool("memory_search", {"query": "boat"})


def test_the_guided_start(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path / "aria", verb=("up", "--name", "Aria")) as server, visiting(browser, server) as visit:
        page = visit.come_in(server.link)
        step = {name: page.locator(f"#step-{name}") for name in ("you", "agent", "connect", "remember", "talk")}

        # who they are
        page.get_by_label("Your name").fill("Ana Ruiz")
        page.get_by_label("Timezone").fill("Europe/Madrid")
        page.get_by_label("Who you are on other channels").fill("telegram:42")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(step["you"]).to_have_class(re.compile("done"))
        assert "- **Name:** Ana Ruiz\n" in server.text("USER.md")
        assert "- **Timezone:** Europe/Madrid\n" in server.text("USER.md")
        assert 'owner = ["telegram:42"]' in server.text("anima.toml")
        page.get_by_label("What it is").fill("a harbour heron")
        page.keyboard.press("Enter")
        expect(step["agent"]).to_have_class(re.compile("done"))
        assert "- **Creature:** a harbour heron\n" in server.text("IDENTITY.md")
        expect(page.locator(".light")).to_be_visible()
        page.wait_for_function(
            "() => anima.send('GET', '/tree').then(({ value }) => !value.entries.includes('BOOTSTRAP.md'))"
        )

        # an agent calls, and the light turns on by itself
        block = page.locator("#mcp-block")
        expect(block).to_contain_text('"mcpServers"')
        expect(page.locator(".light")).to_contain_text("Nobody has called yet")
        apart(_called(server))
        expect(step["connect"]).to_have_class(re.compile("done"))

        # the first line, and back
        page.get_by_label("Something that stays true").fill("The boat is called Aurora")
        page.keyboard.press("Enter")
        expect(page.locator("#said")).to_contain_text("The boat is called Aurora")
        assert "The boat is called Aurora" in server.text("MEMORY.md")
        page.locator("#said").get_by_role("button", name="Undo").click()
        expect(page.locator("#said")).to_contain_text("Taken back in MEMORY.md")
        assert "Aurora" not in server.text("MEMORY.md")
        expect(step["remember"]).to_have_class(re.compile("done"))

        # the talk
        page.get_by_role("link", name="Begin a conversation").click()
        page.wait_for_url(server.url + "/chat")
        page.fill("#words", "remember that the mast comes down on Friday")
        page.keyboard.press("Enter")
        page.wait_for_url("**/chat/*-*")
        page.reload()
        second = visit.context.new_page()
        second.goto(page.url)
        for tab in (page, second):
            expect(tab.locator("#talk .assistant")).to_contain_text("I wrote it down in MEMORY.md.")
        second.fill("#words", "what do you know about the mast?")
        second.keyboard.press("Enter")
        expect(second.locator("#talk .user")).to_have_count(2)  # it was taken, and may be answered already
        second.reload()
        for tab in (page, second):
            expect(tab.locator("#talk .assistant")).to_have_count(2)
            expect(tab.locator('#talk[aria-busy="false"]')).to_be_visible()
        page.goto(server.url + "/today")
        expect(page.locator("#learned")).to_contain_text("The mast comes down on Friday")
        expect(page.locator("#guide")).to_have_count(0)


def test_the_guided_start_goes_when_it_is_hidden_and_stays_away(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path / "aria", verb=("up", "--name", "Aria")) as server, visiting(browser, server) as visit:
        page = visit.come_in(server.link)
        page.get_by_role("button", name="Hide this").click()
        expect(page.locator("#waits")).to_contain_text("Nothing waits for you.")
        page.reload()
        expect(page.locator("#waits")).to_be_visible()
        expect(page.locator("#guide")).to_have_count(0)
