"""Talking with the agent on the page, in a real browser: a walk with practice, a reload in the middle of a turn, a second tab,
and a model that says what no page may run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from anima.agent.models import Models
from anima.testing.models import ModelServer, Received, Spoken
from browsing import PATIENCE, Server, Visit, browser_with, own_configuration, serving, visiting

SEARCH = ("memory_search", {"query": "boat"})
expect.set_options(timeout=PATIENCE)


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
            assert self.go.wait(60)
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


def quiet(page: Page) -> None:
    """Wait until the turn that is on the page has ended: until then its last words may still be on their way."""
    expect(page.get_by_role("button", name="Stop")).to_be_hidden()


def answers(page: Page) -> list[str]:
    quiet(page)
    return [" ".join(each.inner_text().split()) for each in page.locator("#talk .assistant .prose").all()]


# -- the walk --------------------------------------------------------------------------------------------------------------


def test_a_first_talk_with_practice(browser: Browser, tmp_path: Path) -> None:
    with serving(tmp_path / "aria", verb=("up", "--name", "Aria")) as server, visiting(browser, server) as visit:
        page = begin(visit, "remember that the boat is called Aurora")
        expect(page.locator("#talk .assistant").first).to_contain_text("I wrote it down in MEMORY.md.")
        assert "The boat is called Aurora" in server.text("MEMORY.md")
        quiet(page)
        say(page, "what do you know about the boat?")
        expect(page.locator("#talk .assistant")).to_have_count(2)
        expect(page.locator("#used")).to_contain_text("tokens in")
        expect(page.locator("#talks .what")).to_have_text("remember that the boat is called Aurora")

        before, address = answers(page), page.url
        page.reload()
        expect(page.locator("#talk .assistant")).to_have_count(2)
        assert answers(page) == before

        page.locator("#talk details").nth(1).locator("summary").click()
        hit = page.locator(".recalled li").first
        expect(hit).to_contain_text("The boat is called Aurora")
        assert "?line=" in (hit.get_by_text("why").get_attribute("href") or "")
        assert (hit.get_by_text("correct").get_attribute("href") or "").endswith("/memory/MEMORY.md?as=edit")
        hit.get_by_text("forget").click()
        expect(page.locator("#words")).to_have_value("forget The boat is called Aurora")
        page.keyboard.press("Enter")

        card = page.locator("#cards .card")
        card.get_by_role("button", name="Forget").click()  # without the word nothing happens
        expect(card.locator("[name=typed]")).to_be_focused()
        page.keyboard.type("forget")
        card.get_by_role("button", name="Forget").click()
        expect(page.locator("#cards .card")).to_have_count(0)
        assert "Aurora" not in server.text("MEMORY.md")

        page.reload()
        expect(page.locator("#talk .between, #talk .assistant").first).to_be_visible()
        expect(page.locator("#talk")).not_to_contain_text("Aurora")  # it is forgotten in what was said, too
        page.get_by_role("link", name="New conversation", exact=True).click()
        expect(page.locator("#talks .what")).to_have_count(1)
        page.locator("#talks .what").click()
        page.wait_for_url(address)


def test_a_reload_in_the_middle_of_a_turn_and_a_second_tab(browser: Browser, standing: Server, script: Script) -> None:
    script.steps = [Spoken("One moment.", calls=[SEARCH]), script.held(Spoken("It is at the **marina**."))]
    with visiting(browser, standing) as visit:
        page = begin(visit, "Where is the boat?")
        assert script.asked.wait(30)
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
        assert answers(page) == answers(other) == ["One moment.", "It is at the marina."]
        script.steps = [Spoken("And the other tab hears it.")]
        say(other, "Say something.")
        expect(page.locator("#talk .assistant").last).to_contain_text("And the other tab hears it.")


def test_steering_and_stopping(browser: Browser, standing: Server, script: Script) -> None:
    script.steps = [script.held(Spoken(calls=[SEARCH])), Spoken("The Aurora, then.")]
    with visiting(browser, standing) as visit:
        page = begin(visit, "Where is the boat?")
        assert script.asked.wait(30)
        say(page, "I mean the Aurora.")
        expect(page.locator("#talk .waiting")).to_contain_text("I mean the Aurora.")
        script.go.set()
        expect(page.locator("#talk .assistant")).to_contain_text("The Aurora, then.")
        expect(page.locator("#talk .waiting")).to_have_count(0)
        quiet(page)
        assert [each.inner_text().split("\n")[-1] for each in page.locator("#talk .user").all()] == [
            "Where is the boat?",
            "I mean the Aurora.",
        ]

        script.steps = [script.held(Spoken("Too late."))]
        say(page, "Tell me everything.")
        assert script.asked.wait(30)
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
            expect(page.locator("#talk .assistant")).to_have_count(2)
            expect(page.locator("#used")).to_contain_text("tokens")
            quiet(page)
            for summary in page.locator("#talk details summary").all():
                summary.click()
            inside = (
                "#talk :is(script, img, iframe, style, a, form, input, svg, button, [onerror], [data-act], [style])"
            )
            assert page.locator(inside).count() == 0
            assert page.title() != "pwned" and page.locator("#talk .between").count() == 0
            shown = page.locator("#talk .assistant").last.inner_text()
            assert "⟨U+202E⟩" in shown and "⟨U+2066⟩" in shown and "\u202e" not in page.locator("#talk").inner_text()
            assert (
                "(javascript:document.title='pwned')" in shown and '<script>document.title = "pwned"</script>' in shown
            )
            assert page.locator("#cards .card").count() == 0
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
        quiet(page)
        page.locator("#talk details summary").click()
        links = [str(each.get_attribute("href")) for each in page.locator("#talk a").all()]
        assert links and all(link.startswith("/memory/") for link in links)
        assert page.locator("#talk img").count() == 0
