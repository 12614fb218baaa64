"""Every page for everybody: labels, headings, contrast, keyboard and width, at two sizes and in both schemes.

Each page in the navigation, and one of each kind that lies behind them, is looked at once in each setting by a script of
our own (looking.js), and walked with the Tab key; the tests are questions to what was found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize

from browsing import Server, browser_with, navigation, own_configuration, serving, visiting
from demonstration import demonstration

SIZES = {"wide": ViewportSize(width=1280, height=800), "phone": ViewportSize(width=390, height=844)}
SCHEMES: list[Literal["light", "dark"]] = ["dark", "light"]
LOOK = (Path(__file__).parents[1] / "looking.js").read_text(encoding="utf-8").partition("\n")[2]
ORDERS = [["nav", "main", "aside"], ["nav", "main"], ["nav", "aside"], ["nav"], ["main"], []]  # columns, from the left
COMING = "#looking, #text:disabled"  # what a page draws or opens only after it came: a look, a text to edit
TRIES = 6  # of a walk under which the page was drawn anew, because something happened in the home
MOST = 400  # tab stops of a page before we call it endless

# What a keyboard must reach; and, from the top of the page on, where the focus goes and how it is drawn there.
STOPS = """() => {
  const top = Object.assign(document.createElement("span"), { tabIndex: -1 });
  document.body.prepend(top);
  top.focus();
  top.remove();
  const can = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex]:not([tabindex='-1'])";
  const all = [...document.querySelectorAll(can)].filter((one) => one.tabIndex >= 0 && !one.disabled
    && one.checkVisibility({ checkVisibilityCSS: true }) && one.getClientRects().length && !one.closest("dialog:not([open])"));
  window.walk = [];
  window.redrawn = false;  // what is drawn anew under the walk is another element, so the walk begins again
  if (window.watcher) window.watcher.disconnect();
  window.watcher = new MutationObserver(() => { window.redrawn = true; });
  window.watcher.observe(document.body, { childList: true, subtree: true });
  document.removeEventListener("focusin", window.step);
  document.addEventListener("focusin", window.step = ({ target: one }) => {
    const style = getComputedStyle(one), box = one.getBoundingClientRect(), area = one.closest("nav.rail, main, aside, dialog");
    const lined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
    window.walk.push({ at: all.indexOf(one), lined, left: box.left + scrollX, top: box.top + scrollY, right: box.right + scrollX,
                       bottom: box.bottom + scrollY, area: area ? area.localName : "", inView: box.bottom > 0 && box.top < innerHeight });
  });
  return all.map((one) => (one.id || one.className || one.localName) + " " + one.textContent.trim().slice(0, 30));
}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was found on one page in one setting."""

    page: str
    setting: str
    found: dict[str, Any]
    stops: list[str]  # what the keyboard must reach, in the order of the document
    walk: list[dict[str, Any]]  # where Tab led


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_with() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("shown")
    with own_configuration(folder / "config"), serving(demonstration(folder / "aria", days=12)) as found:
        yield found


@pytest.fixture(scope="module")
def looks(browser: Browser, server: Server) -> list[Look]:
    found: list[Look] = []
    with visiting(browser, server, reduced_motion="reduce") as visit:
        page = visit.come_in()
        addresses = [*_addresses(page, server.url), "/login", "/nowhere"]
        for size, address in [(size, address) for size in SIZES for address in addresses]:
            page.set_viewport_size(SIZES[size])
            page.goto(server.url + address)
            page.wait_for_selector(COMING, state="detached")
            found += [_look(page, address, size, scheme) for scheme in SCHEMES]
            if address == "/nowhere":  # the one answer in these tests that is an error, and the console says so
                visit.wrong[:] = [said for said in visit.wrong if "404" not in said]
    return found


def _addresses(page: Page, base: str) -> list[str]:
    """Every page of the navigation, and from each the first of what lies behind it."""
    found = []
    more = page.locator("#palette-list [data-href]").evaluate_all("all => all.map((one) => one.dataset.href)")
    for address in dict.fromkeys([*navigation(page), *more]):
        found.append(address)
        page.goto(base + address)
        page.wait_for_selector(COMING, state="detached")
        behind = page.locator(f'main a[href^="{address}/"], aside a[href^="{address}/"]')
        if behind.count():
            found.append(str(behind.first.get_attribute("href")).partition("#")[0])
    if "/memory" in found:
        found += ["/memory/MEMORY.md", "/memory/SOUL.md?as=edit", "/memory/MEMORY.md?as=history"]
    if "/search" in found:
        found.append("/search?q=how+is+Tomas+paid&explain=1&talks=1")
    return list(dict.fromkeys(found))


def _look(page: Page, address: str, size: str, scheme: Literal["light", "dark"]) -> Look:
    page.emulate_media(color_scheme=scheme)
    found = page.evaluate(LOOK)
    stops, walk = [], []
    if scheme == "light":  # the keys are the same in the dark
        for _ in range(TRIES):
            stops = page.evaluate(STOPS)
            for _ in stops[:MOST]:
                page.keyboard.press("Tab")
            walk = page.evaluate("window.walk")
            if not page.evaluate("window.redrawn"):
                break
    return Look(page=address, setting=f"{size} {scheme}", found=found, stops=stops, walk=walk)


def faults(looks: list[Look], name: str) -> str:
    """Sentences, because a report cuts other things short."""
    return "\n".join(f"{look.page} ({look.setting}): {one}" for look in looks for one in look.found[name])


# -- what was found ------------------------------------------------------------------------------------------------------------


def test_every_page_was_looked_at_in_every_setting(looks: list[Look]) -> None:
    pages = {look.page for look in looks}

    assert {"/today", "/inbox", "/tidy", "/history", "/settings/health", "/dreams", "/graph", "/login"} <= pages
    assert len(looks) == len(pages) * len(SIZES) * len(SCHEMES)
    assert all(look.found["texts"] > 3 for look in looks)


def test_every_control_and_picture_has_a_name(looks: list[Look]) -> None:
    for name in ("unlabelled", "images", "lists", "broken"):
        assert faults(looks, name) == ""


def test_every_page_has_a_title_a_language_and_one_first_heading(looks: list[Look]) -> None:
    for look in looks:
        found = (look.found["ones"], look.found["titled"], look.found["lang"])
        assert found == (1, True, "en"), f"{look.page} ({look.setting})"


def test_no_id_stands_twice_and_no_control_in_another(looks: list[Look]) -> None:
    assert faults(looks, "twice") == ""
    assert faults(looks, "nested") == ""


def test_all_text_has_a_contrast_of_four_and_a_half_to_one(looks: list[Look]) -> None:
    assert faults(looks, "pale") == ""


def test_no_page_is_wider_than_its_window(looks: list[Look]) -> None:
    assert faults(looks, "wide") == ""


def test_what_scrolls_sideways_can_be_scrolled_with_keys(looks: list[Look]) -> None:
    assert faults(looks, "unreachable") == ""


def test_tab_reaches_everything_in_the_order_of_reading(looks: list[Look]) -> None:
    for look in looks:
        where = f"{look.page} ({look.setting})"
        assert sorted(step["at"] for step in look.walk) == list(range(len(look.stops))), where
        assert [area for area, _ in groupby(step["area"] for step in look.walk) if area] in ORDERS, where
        backward = [
            (look.stops[one["at"]], look.stops[two["at"]])
            for one, two in pairwise(look.walk)
            if one["area"] == two["area"] and two["bottom"] <= one["top"] and two["left"] <= one["right"]
        ]
        assert backward == [], where
    assert sum(len(look.walk) for look in looks) > 50


def test_the_focus_is_always_seen(looks: list[Look]) -> None:
    unseen = [
        f"{look.page} ({look.setting}): {look.stops[step['at']]}"
        for look in looks
        for step in look.walk
        if not (step["lined"] and step["inView"])
    ]
    assert unseen == []


# -- the looking itself --------------------------------------------------------------------------------------------------------

BAD = """<!doctype html><html lang="en"><title>bad</title><body style="margin:0; background:#fff">
<h1>one</h1><h1>two</h1><p id="a" style="color:#999">pale</p><p id="a" style="color:#000">black</p>
<p style="background:#333"><span style="color:#fff; opacity:.4">faded</span></p>
<input><button aria-hidden="false"></button><a href="/x"><span aria-hidden="true">+</span></a><label for="none">x</label>
<img src="data:,"><a href="/y">y <button>z</button></a><div style="width:3000px">wide</div>"""


def test_the_script_finds_what_is_wrong(browser: Browser) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        page.set_content(BAD)
        found = page.evaluate(LOOK)

    assert found["ones"] == 2 and found["twice"] == ["a"] and len(found["unlabelled"]) == 3
    assert [text.split()[0] for text in found["pale"]] == ["2.85", "3.41"]
    assert found["images"] and found["broken"] and found["nested"] and found["wide"]


@pytest.mark.parametrize("size", SIZES)
def test_tables_of_tokens_and_snapshots_are_whole_at_any_width(browser: Browser, server: Server, size: str) -> None:
    server.anima("token", "make", "--name", f"the tablet beside the stove, {size}", "--scope", "main")
    server.anima("snapshot", "take", "--label", f"before-the-spring-cleaning-{size}")
    with visiting(browser, server, viewport=SIZES[size]) as visit:
        page = visit.come_in(at="/settings")
        for address, table in (("/settings", "#tokens"), ("/settings/health", "#snapshots-list table")):
            page.goto(server.url + address)
            beyond = page.locator(table).evaluate("table => table.offsetWidth - table.parentElement.clientWidth")
            assert beyond <= 0, address
        visit.calm()


def test_on_the_smallest_phone_no_label_of_the_bar_runs_into_the_next(browser: Browser, server: Server) -> None:
    over = """all => all.map((one) => one.scrollWidth - one.clientWidth)"""
    with visiting(browser, server, reduced_motion="reduce") as visit:
        page = visit.come_in()
        page.set_viewport_size(ViewportSize(width=320, height=720))
        for address in navigation(page)[:7]:
            page.goto(server.url + address)
            assert max(page.locator("nav.rail li a").evaluate_all(over)) <= 0, address
