"""The page where much has piled up: 300 notes, 20 topics, 44 sessions, 200 that wait, 500 said twice; every page, wide and on a
phone, light and dark, by axe-core too; with twice the size of text; and an owner's day by keys alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from axe import axe
from browsing import Server, browser_with, lead, own_configuration, serving, visiting
from plenty import rich

pytestmark = pytest.mark.long
WIDE, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)
TWICE = ViewportSize(width=640, height=400)  # what 1280 x 800 is at 200 %
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
MORE = ("/memory/notes/n001.md", "/memory/notes/n001.md?line=3", "/memory/notes/n001.md?as=edit", "/memory/piled/a.md")
GRAVE = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations
  .filter((each) => ["serious", "critical"].includes(each.impact))
  .map((each) => `${each.id}: ${each.nodes.slice(0, 3).map((node) => node.target.join(" ")).join(", ")} (${each.nodes.length})`)"""
BEYOND = """() => document.documentElement.scrollWidth - document.documentElement.clientWidth"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_with() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("rich")
    with own_configuration(folder / "config"), serving(rich(folder / "aria")) as found:
        yield found


def every(page: Page) -> list[str]:
    """Every page there is, and some of what lies behind them."""
    found = page.locator("#palette-list [data-href]").evaluate_all("all => all.map((one) => one.dataset.href)")
    return [*map(str, found), *MORE]


def opened(page: Page, server: Server, address: str) -> None:
    page.goto(server.url + address)
    page.wait_for_selector('#pulse[data-state="on"]')
    page.wait_for_selector("#looking, #text:disabled, [aria-busy=true]", state="detached")


def test_no_page_has_a_grave_fault_nor_is_wider_than_its_window(browser: Browser, server: Server) -> None:
    script, faults = axe(), list[Any]()
    with visiting(browser, server, reduced_motion="reduce") as visit:
        page = visit.come_in()
        for address in every(page):
            for size in (WIDE, PHONE):
                page.set_viewport_size(size)
                opened(page, server, address)
                page.evaluate(script)
                for scheme in SCHEMES:
                    page.emulate_media(color_scheme=scheme)
                    faults += [(address, size["width"], scheme, each) for each in page.evaluate(GRAVE)]
                faults += [(address, size["width"], "wide", over) for over in [page.evaluate(BEYOND)] if over > 0]
            page.set_viewport_size(TWICE)
            faults += [(address, "200 %", "wide", over) for over in [page.evaluate(BEYOND)] if over > 0]
            expect(page.locator("main h1")).to_be_visible()
    assert faults == []


def test_at_least_fifteen_rows_stand_on_one_screen(browser: Browser, server: Server) -> None:
    shown = """all => all.map((one) => one.getBoundingClientRect())
        .filter((box) => box.height > 20 && box.top >= 0 && box.bottom <= innerHeight).length"""
    with visiting(browser, server, viewport=WIDE) as visit:
        page = visit.come_in(at="/inbox")
        expect(page.locator(".entry")).to_have_count(200)
        assert page.locator(".entry").evaluate_all(shown) >= 15
        opened(page, server, "/tidy")
        expect(page.locator(".entry")).to_have_count(60)
        assert page.locator(".entry").evaluate_all(shown) >= 15
        page.get_by_role("button", name="Show 440 more").click()
        expect(page.locator(".entry")).to_have_count(500)


def test_the_owners_day_by_keys_alone(browser: Browser, server: Server) -> None:
    with visiting(browser, server, viewport=WIDE) as visit:
        page = visit.come_in()
        keys = page.keyboard
        lead(page, "i", "/inbox")
        keys.press("j")
        row = page.locator(".entry:focus")
        first = str(row.get_attribute("data-id"))
        expect(page.locator(f"#{first}")).to_be_visible()
        keys.press("a")
        expect(page.locator("#said")).to_contain_text("Approved and written")
        expect(page.locator(f"#row-{first}")).to_have_count(0)
        second = str(row.get_attribute("data-id"))
        expect(page.locator(f"#{second}")).to_be_visible()
        expect(page.locator("#detail")).not_to_have_attribute("aria-busy", "true")
        keys.press("d")
        expect(page.locator("#said")).to_contain_text("Denied")

        # a danger takes the key twice, and deny stands first
        danger = page.locator(".entry.danger").first
        danger.focus()
        keys.press("Enter")
        card = page.locator(f"#{danger.get_attribute('data-id')}")
        expect(card).to_contain_text("Danger.")
        expect(card.locator("footer button").first).to_have_attribute("data-act", "deny")
        expect(card.locator("[data-act=approve]")).to_be_enabled()
        keys.press("a")
        expect(card.locator("[data-armed]")).to_be_focused()
        expect(card).to_have_count(1)
        keys.press("d")
        expect(card).to_have_count(0)

        # undo, the palette, a page of memory, a line of it
        keys.press("u")
        expect(page.get_by_role("button", name="Undo it")).to_be_focused()
        keys.press("Enter")
        expect(page.locator("#said")).to_contain_text("Taken back in skills/")
        keys.press("Control+k")
        keys.type("quay 7")
        expect(page.locator("#hit-0")).to_be_visible()
        keys.press("ArrowDown")
        keys.press("Enter")
        page.wait_for_url("**/memory/notes/*")
        expect(page.locator("#why")).to_be_visible()
        keys.press("e")
        page.wait_for_url("**as=edit")
        expect(page.locator("#text")).to_be_focused()
        keys.press("Control+End")
        keys.type("- see [[Belaa")
        expect(page.locator("#names-offered li").first).to_have_text("Belaanna")
        keys.press("Enter")
        keys.press("Control+Enter")
        page.wait_for_url("**/memory/notes/n*.md")
        expect(page.locator("#lines a.wiki", has_text="[[Belaanna]]").last).to_be_visible()
