"""What the tests in a browser share: Chromium, a home served by a process of its own, and pages that are watched.

Everything a page does wrong is kept: errors it says to the console, scripts that fail, what the content policy refuses,
and requests to any other host. `Visit.calm()` is the test that there was nothing.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, TimeoutError, expect, sync_playwright

from anima import Home
from anima.web.tokens import Keyring
from chromium import ARGUMENTS, NoBrowser, chromium
from owning import as_owner

SOURCE = str(Path(__file__).parent.parent / "src")
PATIENCE = 180_000  # milliseconds until something that was to appear counts as missing; only a fault waits so long
expect.set_options(timeout=PATIENCE)
_TELL = """addEventListener("securitypolicyviolation", (event) =>
    console.error("content policy: " + event.violatedDirective + " " + event.blockedURI), true);"""
# What a page says for some seconds stands ten times as long: a machine that does much else may look only then.
_SLOWLY = """{ const soon = window.setTimeout;
  window.setTimeout = (work, after, ...more) => soon(work, after >= 4000 ? 10 * after : after, ...more); }"""


@contextmanager
def browser_with(*more: str) -> Iterator[Browser]:
    """Chromium, until the end of the block; skips loudly where there is none.

    Only one may be open in a thread, and no other event loop beside it: give it to one module at a time.
    """
    try:
        program = chromium()
    except NoBrowser as reason:
        pytest.skip(f"NO BROWSER: {reason}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*ARGUMENTS, *more])
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A home that a process of its own serves."""

    folder: Path
    url: str
    link: str
    environment: dict[str, str]

    def anima(self, *arguments: str) -> Any:
        """What the command line says about this home."""
        line = [sys.executable, "-m", "anima", *as_owner(*arguments), "--home", str(self.folder), "--json"]
        done = subprocess.run(line, env=self.environment, capture_output=True, text=True, check=False, timeout=120)
        return json.loads(done.stdout)

    @property
    def config(self) -> Path:
        return Path(self.environment["ANIMA_CONFIG"])

    def new_link(self) -> str:
        """Another link that works once: what `anima token link` gives, without waiting for a process."""
        [folder] = (self.config / "serve").iterdir()
        return f"{self.url}/login#{Keyring(folder, clock=lambda: datetime.now(UTC)).code()}"

    def text(self, path: str) -> str:
        return (self.folder / path).read_text(encoding="utf-8")


@contextmanager
def serving(folder: Path, *, verb: tuple[str, ...] = ("up", "--home"), port: int = 0) -> Iterator[Server]:
    """`anima up` on a free port until the end of the block; it must stop cleanly."""
    environment = {**os.environ, "PYTHONPATH": SOURCE}
    if folder.is_dir() and any(folder.iterdir()):
        with Home.open(folder) as home:
            home.trust()
    line = [sys.executable, "-m", "anima", *as_owner(*verb), str(folder), "--port", str(port)]
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            link = _link_of(process)
            yield Server(folder=folder, url=link.partition("/login#")[0], link=link, environment=environment)
        finally:
            process.send_signal(signal.SIGTERM)
            _, error = process.communicate(timeout=120)
    assert process.returncode == 0 and error == "stopped; nothing is half done\n", error


def _link_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None and process.stderr is not None
    for line in process.stdout:
        if line.startswith("Open:"):
            return line.split()[1]
    raise AssertionError(f"no link was said: {process.stderr.read()}")


@dataclass
class Visit:
    """A browser of the owner's, with nothing in it yet, that is watched."""

    context: BrowserContext
    server: Server
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.context.set_default_timeout(PATIENCE)
        self.context.add_init_script(_TELL + _SLOWLY)
        self.context.on("console", lambda said: self._note(said.type == "error", f"console: {said.text}"))
        self.context.on("weberror", lambda error: self._note(True, f"script: {error.error}"))
        self.context.on("request", lambda request: self._note(self._is_foreign(request.url), f"request: {request.url}"))

    def _note(self, is_wrong: bool, what: str) -> None:
        if is_wrong:
            self.wrong.append(what)

    def _is_foreign(self, url: str) -> bool:
        return not url.startswith((self.server.url + "/", "data:", "blob:", "about:"))

    def come_in(self, link: str = "", at: str = "/today") -> Page:
        """A page of the owner's, let in by a link that works once."""
        page = self.context.new_page()
        page.goto(link or self.server.new_link())
        page.wait_for_url(self.server.url + "/today")
        if at != "/today":
            page.goto(self.server.url + at)
        page.wait_for_selector('#pulse[data-state="on"]')
        return page

    def calm(self) -> None:
        assert self.wrong == []


@contextmanager
def own_configuration(folder: Path) -> Iterator[None]:
    """For what a module shares: fixtures of a whole module come before the one that each test has for this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANIMA_CONFIG", str(folder))
        yield


@contextmanager
def visiting(browser: Browser, server: Server, **how: Any) -> Iterator[Visit]:
    """A new browser profile; what went wrong in it fails the test at the end."""
    context = browser.new_context(**how)
    try:
        visit = Visit(context, server)
        yield visit
        visit.calm()
    finally:
        context.close()


def navigation(page: Page) -> list[str]:
    """The addresses in the rail, in its order."""
    return [str(link.get_attribute("href")) for link in page.locator(".rail li a").all()]


def lead(page: Page, key: str, address: str) -> None:
    """`g` and a key that names a page. They count as one within a moment, which a busy machine may let pass: then again."""
    for _ in range(20):
        page.keyboard.press("g")
        page.keyboard.press(key)
        try:
            page.wait_for_url(f"**{address}", timeout=3_000)
        except TimeoutError:
            continue
        return
    page.wait_for_url(f"**{address}")


def apart(work: Coroutine[Any, Any, Any]) -> Any:
    """Runs asynchronous work in a thread: the browser's own loop stands in this one."""
    import asyncio

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result(timeout=180)
