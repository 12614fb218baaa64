"""Makes the pictures of the README: a home to show, served, and each of its pages as a browser draws it.

    make pictures            into docs/pictures/; or: python docs/pictures.py FOLDER

Needs Chromium, and a font with emoji (Debian: fonts-noto-color-emoji) for the agent's face. Every page
gets a picture, and so does the guided start of an empty home. The home is made up; see tests/demonstration.py.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "tests"), str(HERE.parent / "src")]

from playwright.sync_api import Browser, Page, ViewportSize, expect  # noqa: E402

from browsing import Server, browser_with, serving, visiting  # noqa: E402
from chromium import NoBrowser, chromium  # noqa: E402
from demonstration import demonstration  # noqa: E402

Scheme = Literal["light", "dark"]
WIDE, PHONE = ViewportSize(width=1280, height=800), ViewportSize(width=390, height=844)
# What is worth seeing of a page, when it is not its first sight: an address, and what has to be there.
PLACES = {
    "memory": ("/memory/MEMORY.md?line=8", "#lines"),
    "search": ("/search?q=how+is+Tomas+paid&explain=1", "#found .hit"),
    "sessions": ("/sessions", "main h1"),
    "graph": ("/graph", ".labels text"),
    "tidy": ("/tidy", "#detail .card"),
    "inbox": ("/inbox", "#detail .card"),
    "agent-main": ("/agent/main", "#bands"),
    "settings": ("/settings#model", "main h1"),  # above it stands where this program lies
}
OTHERS: list[tuple[str, Scheme, ViewportSize]] = [
    *((name, "dark", WIDE) for name in ("today", "inbox", "memory", "chat", "settings")),
    *((name, "light", PHONE) for name in ("today", "inbox", "memory", "chat", "settings", "graph")),
    ("search", "dark", PHONE),
]


def main() -> None:
    try:
        chromium()
    except NoBrowser as reason:
        sys.exit(f"no pictures: {reason}")
    into = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "pictures"
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ANIMA_CONFIG"] = str(Path(folder) / "config")
        with browser_with() as browser:
            with serving(demonstration(Path(folder) / "aria")) as server:
                draw_all(browser, server, into)
            os.environ["ANIMA_CONFIG"] = str(Path(folder) / "another")
            with (
                serving(Path(folder) / "new", verb=("up", "--name", "Aria")) as server,
                visiting(browser, server) as visit,
            ):
                page = visit.come_in()
                for size, name in ((WIDE, "start.png"), (PHONE, "start-phone.png")):
                    page.set_viewport_size(size)
                    draw(page, server, ("/today", "#guide"), into / name)


def draw_all(browser: Browser, server: Server, into: Path) -> None:
    with visiting(browser, server, reduced_motion="reduce") as visit:
        page = visit.come_in()
        page.get_by_role("button", name="Hide this").click()  # the guided start has pictures of its own
        expect(page.locator("#guide")).to_have_count(0)
        found = page.locator("#palette-list [data-href]").evaluate_all("all => all.map((one) => one.dataset.href)")
        names = [str(address).strip("/").replace("/", "-") for address in found]
        places = PLACES | {"chat": (talk(page, server), "#talk .assistant")}
        every: list[tuple[str, Scheme, ViewportSize]] = [(name, "light", WIDE) for name in names]
        for name, scheme, size in every + [one for one in OTHERS if one[0] in names]:
            page.set_viewport_size(size)
            page.emulate_media(color_scheme=scheme)
            file = into / f"{name}{'-dark' if scheme == 'dark' else ''}{'-phone' if size is PHONE else ''}.png"
            draw(page, server, places.get(name, (f"/{name.replace('-', '/')}", "main h1")), file)
            print(f"{file.name:<24} {file.stat().st_size // 1024:>4} KB")


def talk(page: Page, server: Server) -> str:
    """A conversation with practice; gives its address."""
    page.goto(f"{server.url}/chat")
    for number, said in enumerate(("remember that the mast comes down on Friday", "what do you know about the mast?")):
        page.fill("#words", said)
        page.keyboard.press("Enter")
        page.wait_for_url("**/chat/*-*")
        page.locator("#talk .assistant").nth(number).wait_for()
        page.locator('#talk[aria-busy="false"]').wait_for()
    return page.url.removeprefix(server.url)


def draw(page: Page, server: Server, place: tuple[str, str], file: Path) -> None:
    address, awaited = place
    page.goto(server.url + address)
    page.wait_for_selector(awaited, state="attached")
    page.wait_for_selector('#pulse[data-state="on"]')
    if file.stem == "inbox-phone":
        page.locator(".entry").first.click()
        page.wait_for_selector("body[data-sheet]")
    page.evaluate("document.activeElement.blur()")
    page.screenshot(path=str(file), animations="disabled", caret="hide")


if __name__ == "__main__":
    main()
