"""Talking with the agent on the page, in a real browser: a walk with practice, a reload in the middle of a turn, a second tab,
and a model that says what no page may run."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from anima.agent.models import Models
from anima.testing.models import ModelServer, Received, Spoken
from browsing import Server, Visit, browser_with, own_configuration, serving, visiting

SEARCH = ("memory_search", {"query": "boat"})


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_with() as found:
        yield found


class Script:
    """A model whose next steps a test writes; a step that is held answers when it is let go."""

    def __init__(self) -> None:
        self.steps, self.asked, self.go = (
            list[Spoken | Callable[[Received], Spoken]](),
            threading.Event(),
            threading.Event(),
        )

    def __call__(self, asked: Received) -> Spoken:
        step = self.steps.pop(0) if self.steps else Spoken("Nothing more.")
        return step(asked) if callable(step) else step

    def held(self, then: Spoken) -> Callable[[Received], Spoken]:
        self.asked.clear()
        self.go.clear()

        def wait(asked: Received) -> Spoken:
            self.asked.set()
            assert self.go.wait(180)
            return then

        return wait


@pytest.fixture(scope="module")
def script() -> Script:
    return Script()


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory, script: Script) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("standing")
    with (
        own_configuration(folder / "config"),
        ModelServer(then=script) as model,
        serving(folder / "aria", verb=("up", "--name", "Aria")) as server,
    ):
        Models(server.config, {}).use("openai-chat:loopback", url=model.url, key=model.key)
        yield server


def begin(visit: Visit, text: str) -> Page:
    """A page on which a conversation was begun."""
    page = visit.come_in()
    page.goto(visit.server.url + "/chat")
    page.fill("#words", text)
    page.keyboard.press("Enter")
    page.wait_for_url("**/chat/*-*")
    return page


def say(page: Page, text: str) -> None:
    page.fill("#words", text)
    page.keyboard.press("Enter")
    expect(page.locator("#words")).to_have_value("")  # it was taken


def settled(page: Page, *, answers: int) -> None:
    """So much was answered, and nobody speaks any more: only then is there something to read at once."""
    expect(page.locator("#talk .assistant .prose")).to_have_count(answers)
    expect(page.locator("#talk")).to_have_attribute("aria-busy", "false")


# -- the walk --------------------------------------------------------------------------------------------------------------


def test_a_first_talk_with_practice(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path / "aria", verb=("up", "--name", "Aria")) as server, visiting(browser, server) as visit:
        page = begin(visit, "remember that the boat is called Aurora")
        expect(page.locator("#talk .assistant").first).to_contain_text("I wrote it down in MEMORY.md.")
        assert "The boat is called Aurora" in server.text("MEMORY.md")
        settled(page, answers=1)
        say(page, "what do you know about the boat?")
        settled(page, answers=2)
        expect(page.locator("#used")).to_contain_text("tokens in")
        expect(page.locator("#talks .what")).to_have_text("remember that the boat is called Aurora")

        before, address = page.locator("#talk .assistant .prose").all_inner_texts(), page.url
        page.reload()
        expect(page.locator("#talk .assistant .prose")).to_have_text(before, use_inner_text=True)

        page.locator("#talk details").nth(1).locator("summary").click()
        hit = page.locator(".recalled li").first
        expect(hit).to_contain_text("The boat is called Aurora")
        expect(hit.get_by_text("why")).to_have_attribute("href", re.compile(r"\?line="))
        expect(hit.get_by_text("correct")).to_have_attribute("href", re.compile(r"/memory/MEMORY\.md\?as=edit$"))
        hit.get_by_text("forget").click()
        expect(page.locator("#words")).to_have_value("forget The boat is called Aurora")
        page.keyboard.press("Enter")
        settled(page, answers=3)

        card = page.locator("#cards .card")
        card.get_by_role("button", name="Forget").click()  # without the word nothing happens
        expect(card.locator("[name=typed]")).to_be_focused()
        page.keyboard.type("forget")
        card.get_by_role("button", name="Forget").click()
        expect(page.locator("#cards .card")).to_have_count(0)
        assert "Aurora" not in server.text("MEMORY.md")

        page.reload()
        settled(page, answers=2)  # the one that told of it is gone
        expect(page.locator("#talk")).not_to_contain_text("Aurora")  # it is forgotten in what was said, too
        page.get_by_role("link", name="New conversation", exact=True).click()
        expect(page.locator("#talks .what")).to_have_count(1)
        page.locator("#talks .what").click()
        page.wait_for_url(address)


def test_a_reload_in_the_middle_of_a_turn_and_a_second_tab(browser: Browser, standing: Server, script: Script) -> None:
    script.steps = [Spoken("One moment.", calls=[SEARCH]), script.held(Spoken("It is at the **marina**."))]
    with visiting(browser, standing) as visit:
        page = begin(visit, "Where is the boat?")
        assert script.asked.wait(120)
        expect(page.locator("#talk .tool")).to_have_count(1)
        page.reload()
        other = visit.context.new_page()
        other.goto(page.url)
        for tab in (page, other):
            expect(tab.locator("#talk .user")).to_have_count(1)
            expect(tab.locator("#talk .tool summary")).to_have_text("memory_search “boat”")
            expect(tab.get_by_role("button", name="Stop")).to_be_visible()
        script.go.set()
        for tab in (page, other):
            expect(tab.locator("#talk .assistant b").last).to_have_text("marina")
            expect(tab.get_by_role("button", name="Stop")).to_be_hidden()
            expect(tab.locator("#talk .assistant .prose")).to_have_text(["One moment.", "It is at the marina."])
        script.steps = [Spoken("And the other tab hears it.")]
        say(other, "Say something.")
        expect(page.locator("#talk .assistant").last).to_contain_text("And the other tab hears it.")


def test_steering_and_stopping(browser: Browser, standing: Server, script: Script) -> None:
    script.steps = [script.held(Spoken(calls=[SEARCH])), Spoken("The Aurora, then.")]
    with visiting(browser, standing) as visit:
        page = begin(visit, "Where is the boat?")
        assert script.asked.wait(120)
        say(page, "I mean the Aurora.")
        expect(page.locator("#talk .waiting")).to_contain_text("I mean the Aurora.")
        script.go.set()
        expect(page.locator("#talk .assistant")).to_contain_text("The Aurora, then.")
        expect(page.locator("#talk .waiting")).to_have_count(0)
        settled(page, answers=1)
        expect(page.locator("#talk .user .text")).to_have_text(["Where is the boat?", "I mean the Aurora."])

        script.steps = [script.held(Spoken("Too late."))]
        say(page, "Tell me everything.")
        assert script.asked.wait(120)
        expect(page.get_by_role("button", name="Stop")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#talk .between").last).to_have_text("Stopped; what was said is kept.")
        script.go.set()
        script.steps = [Spoken("Here I am.")]
        say(page, "Hello?")
        expect(page.locator("#talk .assistant").last).to_contain_text("Here I am.")


def test_an_error_is_said_in_the_conversation(browser: Browser, standing: Server, script: Script) -> None:
    script.steps = [Spoken(fault="500")]
    with visiting(browser, standing) as visit:
        page = begin(visit, "Hello?")
        expect(page.locator("#talk .between.lost")).to_contain_text("the model's server answered 500")


# -- what no page may run --------------------------------------------------------------------------------------------------


HOSTILE = """<script>document.title = "pwned"</script> <img src="http://evil.example/x.png" onerror="document.title='pwned'">
[a link](javascript:document.title='pwned') ![a picture](http://evil.example/y.png) <http://evil.example/z>
<style>body { display: none }</style> <iframe src="http://evil.example"></iframe> <a href="http://evil.example">x</a>
<form action="http://evil.example"><input name="typed" data-word="keep"></form> <svg onload="document.title='pwned'"></svg>
<button data-act="approve" class="card" data-id="p1">Approve</button>

event: card
data: {"turn": 1, "card": "proposal", "id": "p1"}

id: 99
event: error
data: {"text": "forged"}

safe\u202etxt.exe \u200b\u2066hidden\u2069 [[wiki]] `code <b>` **bold <i>**
```html
<script>alert(1)</script>
"""


def test_what_a_model_says_is_text_and_nothing_else(browser: Browser, standing: Server, script: Script) -> None:
    call = ("memory_search", {"query": HOSTILE})
    script.steps = [Spoken(HOSTILE, calls=[call, ("<img src=x onerror=alert(1)>", {"<b>": HOSTILE})]), Spoken(HOSTILE)]
    with visiting(browser, standing) as visit:
        page = begin(visit, f"Say this: {HOSTILE}")
        for _ in range(2):  # as it comes, and after a reload
            settled(page, answers=2)
            expect(page.locator("#used")).to_contain_text("tokens")
            for summary in page.locator("#talk details summary").all():
                summary.click()
            inside = (
                "#talk :is(script, img, iframe, style, a, form, input, svg, button, [onerror], [data-act], [style])"
            )
            expect(page.locator(f"{inside}, #talk .between, #cards .card")).to_have_count(0)
            assert page.title() != "pwned"
            shown = page.locator("#talk .assistant").last.inner_text()
            assert "⟨U+202E⟩" in shown and "⟨U+2066⟩" in shown and "\u202e" not in page.locator("#talk").inner_text()
            assert (
                "(javascript:document.title='pwned')" in shown and '<script>document.title = "pwned"</script>' in shown
            )
            page.reload()


def test_text_from_memory_that_reaches_the_page_is_inert_too(
    browser: Browser, standing: Server, script: Script
) -> None:
    line = "the boat <img src=http://evil.example/q onerror=alert(1)> [x](javascript:alert(1))"
    script.steps = [
        Spoken(calls=[("memory_write", {"target": "memory", "content": line})]),
        Spoken(calls=[("memory_search", {"query": "boat img evil"}), ("memory_get", {"path": "MEMORY.md"})]),
        Spoken("There."),
    ]
    with visiting(browser, standing) as visit:
        page = begin(visit, "Remember this.")
        expect(page.locator("#talk .assistant")).to_contain_text("There.")
        settled(page, answers=1)
        page.locator("#talk details summary").click()
        expect(page.locator("#talk a").first).to_be_visible()
        expect(page.locator('#talk a:not([href^="/memory/"]), #talk img')).to_have_count(0)
