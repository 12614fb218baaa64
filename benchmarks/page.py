"""The page with much on it beside the same page with little: the server's answer, and the first paint in a browser.

    .venv/bin/python benchmarks/page.py            Inbox with 200 rows and Tidy with 500, each beside 10

Each at most 3 times as long: MOST. Medians of several tries; the two homes are asked in turn. Needs Chromium for the paint.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parents[1] / "src")]

from playwright.sync_api import Page  # noqa: E402

from browsing import browser_with, serving, visiting  # noqa: E402
from chromium import NoBrowser, chromium  # noqa: E402
from plenty import rich  # noqa: E402

TRIES, MOST = 9, 3.0
PAGES = ("/inbox", "/tidy")
PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"
ANSWER = """async (address) => {
  const began = performance.now();
  await (await anima.ask(address)).text();
  return performance.now() - began;
}"""


def main() -> None:
    try:
        chromium()
    except NoBrowser as reason:
        sys.exit(f"nothing was measured: {reason}")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.environ["ANIMA_CONFIG"] = str(folder / "config")
        browser, pages = stack.enter_context(browser_with()), dict[str, Page]()
        for name, waiting, twice in (("few", 10, 10), ("many", 200, 500)):
            home = rich(folder / name, waiting=waiting, twice=twice)
            os.environ["ANIMA_CONFIG"] = str(folder / f"config-{name}")
            server = stack.enter_context(serving(home))
            pages[name] = stack.enter_context(visiting(browser, server)).come_in()
        print(f"{'':<8} {'':<14} {'few ms':>8} {'many ms':>8} {'times':>6}   at most {MOST:.0f}")
        for address in PAGES:
            _measure(address, pages)


def _measure(address: str, pages: dict[str, Page]) -> None:
    told: dict[str, dict[str, list[float]]] = {kind: {name: [] for name in pages} for kind in ("answer", "first paint")}
    for page in pages.values():  # what is looked up once is looked up before
        page.goto(_at(page, address))
        page.wait_for_selector("#looking", state="detached")
    for _ in range(TRIES):
        for name, page in pages.items():
            told["answer"][name].append(page.evaluate(ANSWER, address))
            page.goto(_at(page, address))
            page.wait_for_selector(".entry")
            told["first paint"][name].append(page.evaluate(PAINT))
    for kind, by in told.items():
        few, many = statistics.median(by["few"]), statistics.median(by["many"])
        sign = "" if many <= MOST * few else "  TOO LONG"
        print(f"{address:<8} {kind:<14} {few:>8.1f} {many:>8.1f} {many / few:>6.2f}{sign}")


def _at(page: Page, address: str) -> str:
    return "/".join(page.url.split("/")[:3]) + address


if __name__ == "__main__":
    main()
