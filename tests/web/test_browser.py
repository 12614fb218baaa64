"""The owner's day, in a real browser: a home served by a real process, agents that come by MCP, nothing but our own page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from anima.text.pages import placed
from browsing import (
    Server,
    Visit,
    apart,
    browser_with,
    lead,
    navigation,
    own_configuration,
    serving,
    visiting,
)
from mcp_doors import http_client
from mcp_doors import visiting as mcp_visiting

SOUL = "# Soul\n\nI am calm and curious. I say what I do not know.\n"
WISH = "- Ana writes to you in English."
EDITED = "- Ana writes to you in Spanish, and signs with an anchor."


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_with() as found:
        yield found


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Server]:
    """A home that `anima up` made a moment ago, and serves."""
    with serving(tmp_path / "aria", verb=("up", "--name", "Aria")) as server:
        yield server


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A home that is served, for tests to which it does not matter what others did there."""
    folder = tmp_path_factory.mktemp("standing")
    with own_configuration(folder / "config"), serving(folder / "aria", verb=("up", "--name", "Aria")) as server:
        yield server


@pytest.fixture(scope="module")
def token(standing: Server) -> str:
    return an_agent(standing)


@pytest.fixture
def visit(browser: Browser, standing: Server) -> Iterator[Visit]:
    with visiting(browser, standing) as found:
        yield found


# -- an agent --------------------------------------------------------------------------------------------------------------


async def _by_http(server: Server, token: str, name: str, **arguments: Any) -> Any:
    async with http_client(server.url + "/mcp", token) as client:
        return (await client.call_tool(name, arguments)).structured_content


async def _by_stdio(server: Server, scope: str, name: str, **arguments: Any) -> Any:
    async with mcp_visiting(server.folder, ("stdio", "handshake"), scope=scope) as client:
        return (await client.call_tool(name, arguments)).structured_content


def an_agent(server: Server) -> str:
    return str(server.anima("token", "make", "--name", "laptop", "--scope", "main")["token"])


def wished(server: Server, token: str, **more: Any) -> dict[str, Any]:
    """What an agent with a token of its own is told when it wishes to write about the owner, over HTTP."""
    wish = {"target": "USER.md", "content": f"{WISH}\n", "reason": "Ana was asked and said so", **more}
    found: dict[str, Any] = apart(_by_http(server, token, "memory_write", **wish))
    return found


def ask(page: Page, method: str, path: str, body: Any = None) -> Any:
    """What the API answers the page's own script."""
    found = page.evaluate("([m, p, b]) => anima.send(m, p, b ?? undefined)", [method, path, body])
    return found["value"]


def mark(page: Page) -> None:
    """What is gone after a reload."""
    page.evaluate("window.unchanged = true")


def is_the_same(page: Page) -> bool:
    return page.evaluate("window.unchanged === true") is True


# -- the day ---------------------------------------------------------------------------------------------------------------


def test_the_owners_day(browser: Browser, up: Server) -> None:
    with visiting(browser, up) as visit:
        live_a_day(visit, up)
    assert up.anima("audit")["fault"] is None


def live_a_day(visit: Visit, up: Server) -> None:
    """First start to night."""
    page = visit.come_in(up.link)
    pages = ["today", "chat", "inbox", "memory", "sessions", "agent", "settings"]
    assert navigation(page) == [f"/{name}" for name in pages]

    # the soul is written
    write_on_the_memory_page(page, "SOUL.md", SOUL)
    assert up.text("SOUL.md") == SOUL

    # an agent wishes to write about the owner, who edits that and says yes; search finds it
    before = up.text("USER.md")
    page.goto(up.url + "/inbox")
    edit_and_approve(page, see_a_wish(page, up), up)
    find_on_the_search_page(page, "who signs with an anchor", EDITED)
    hits = ask(page, "GET", "/search?q=who+signs+with+an+anchor&scope=main")["hits"]
    assert any(EDITED in hit["text"] for hit in hits)

    # undo names what it would take back, and takes it back at the second press
    page.goto(up.url + "/inbox")
    page.keyboard.press("u")
    expect(page.locator("#said")).to_contain_text("Undo “")
    expect(page.get_by_role("button", name="Undo it")).to_be_focused()
    page.keyboard.press("u")
    expect(page.locator("#said")).to_contain_text("Taken back in USER.md")
    assert up.text("USER.md") == before and up.text("SOUL.md") == SOUL

    # night, and what the home is about
    dream(page)
    find_in_the_graph(page, "Casa Azul")
    told = {
        "self": "I am calm and curious",
        "sessions": "",
        "health": "The ledger is whole",
    }  # two by their old addresses
    for name, text in told.items():
        page.goto(f"{up.url}/{name}")
        expect(page.locator("main h1")).to_be_visible()
        expect(page.locator("main")).to_contain_text(text)
    expect(page).to_have_url(up.url + "/settings/health")


def see_a_wish(page: Page, up: Server) -> Locator:
    """An agent wishes to write about the owner; the inbox shows that by itself, and exactly what would change."""
    expect(page.locator("#empty")).to_contain_text("Nothing waits for you")
    mark(page)
    before, told = up.text("USER.md"), wished(up, an_agent(up))
    assert told["status"] == "pending" and up.text("USER.md") == before
    card = page.locator(f"#{told['proposal']}")
    expect(card).to_be_visible()
    expect(page.locator("#waiting")).to_have_text("1")
    assert is_the_same(page)
    expect(card.locator(".diff .add .t").last).to_have_text(WISH)
    expect(card.locator(".diff .cut")).to_have_count(0)
    expect(card).to_contain_text("Ana was asked and said so")
    expect(card).to_contain_text("Only you approve it")
    return card


def edit_and_approve(page: Page, card: Locator, up: Server) -> None:
    """With keys alone, and without a reload."""
    page.keyboard.press("j")
    expect(page.locator(".entry")).to_be_focused()
    page.keyboard.press("e")
    box = card.locator("textarea")
    expect(box).to_be_focused()
    expect(box).to_have_value(f"\n{WISH}\n")  # the new line, and not the whole of the document
    page.keyboard.press("Control+a")
    page.keyboard.type(f"{EDITED}\n")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(card).to_have_count(0)
    expect(page.locator("#waiting")).to_be_hidden()
    assert EDITED in up.text("USER.md") and WISH not in up.text("USER.md")
    assert is_the_same(page)


def go(page: Page, name: str) -> None:
    """By the words of the command palette."""
    page.keyboard.press("Control+k")
    page.locator("#palette-words").fill(name)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{name}")


def write_on_the_memory_page(page: Page, path: str, text: str) -> None:
    """Opens a document by its name, edits it, saves it with keys, and sees it as it stands then."""
    go(page, "memory")
    page.get_by_label("Open a document").fill(path)
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/memory/{path}")
    page.keyboard.press("e")
    page.wait_for_url(f"**/memory/{path}?as=edit")
    box = page.locator("#text")
    expect(box).to_be_enabled()
    box.fill(text)
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**/memory/{path}")
    expect(page.locator("#lines")).to_contain_text(text.splitlines()[-1])


def find_on_the_search_page(page: Page, query: str, text: str) -> None:
    """Hits come while one types."""
    go(page, "search")
    mark(page)
    page.locator("#q").press_sequentially(query)
    expect(page.locator("#found .hit").first).to_contain_text(text.removeprefix("- "))
    assert is_the_same(page)


def dream(page: Page) -> None:
    """A night now. There is little to dream of after one day; the page tells of it all the same."""
    go(page, "dreams")
    page.get_by_role("button", name="Dream now").click()
    expect(page.locator("#said")).to_contain_text(re.compile("A night went by|Nothing was written"))
    expect(page.locator("main h1")).to_be_visible()


def find_in_the_graph(page: Page, name: str) -> None:
    """Names that stand together in a note are drawn and listed, and tell where they stand."""
    ask(page, "POST", "/note", {"content": f"@Ana showed me [[{name}]]"})
    go(page, "graph")
    expect(page.locator("#names")).to_contain_text("Ana")
    page.locator("#names a", has_text=name).click()
    expect(page.locator("#about")).to_contain_text(name)


# -- coming and going --------------------------------------------------------------------------------------------------------


def test_the_link_works_once_and_leaves_nothing_in_the_address(
    visit: Visit, standing: Server, browser: Browser
) -> None:
    link = standing.new_link()
    page = visit.come_in(link)
    [cookie] = visit.context.cookies()

    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Strict", "/")
    assert page.evaluate("document.cookie") == ""
    page.go_back()
    expect(page).not_to_have_url(re.compile("#"))
    with browser.new_context() as other:
        again = other.new_page()
        again.goto(link)
        expect(again.locator("[role=alert]")).to_contain_text("Not this code")
        again.goto(standing.url + "/inbox")
        expect(again).to_have_url(standing.url + "/login")


def test_a_page_is_one_that_loads_wherever_it_is_opened(visit: Visit, standing: Server) -> None:
    """Each page is fetched with the key by a shell; reloading, going back, another tab and a deep link know nothing of it."""
    first = visit.come_in()
    first.click('.rail a[href="/memory"]')
    first.wait_for_url(standing.url + "/memory")
    first.go_back()
    expect(first.locator("h1")).to_have_text("Today")
    first.reload()
    expect(first.locator("h1")).to_have_text("Today")
    second = visit.context.new_page()
    second.goto(standing.url + "/memory/AGENTS.md?line=12#L12")

    expect(second).to_have_url(re.compile(re.escape("/memory/AGENTS.md?line=12#L12") + "$"))
    expect(second.locator(":target")).to_have_id("L12")
    assert second.evaluate("[document.compatMode, document.documentElement.lang]") == ["CSS1Compat", "en"]


def test_a_browser_that_lost_its_key_comes_in_anew(visit: Visit, standing: Server) -> None:
    page = visit.come_in()
    page.evaluate("localStorage.clear()")
    page.goto(standing.url + "/settings/health")
    page.wait_for_url(standing.url + "/login")
    page.goto(standing.new_link())

    expect(page.locator("h1")).to_have_text("Today")


def test_leaving_locks_the_browser_out(visit: Visit, standing: Server) -> None:
    page = visit.come_in()
    page.get_by_role("button", name="Leave").click()
    page.wait_for_url(standing.url + "/login")
    page.goto(standing.url + "/settings/health")

    expect(page).to_have_url(standing.url + "/login")


def test_two_windows_see_one_inbox(visit: Visit, standing: Server, token: str) -> None:
    """What one window decides leaves the other, and what is edited there stays as it is."""
    first = visit.come_in(at="/inbox")
    second = visit.context.new_page()
    second.goto(standing.url + "/inbox")
    second.wait_for_selector('#pulse[data-state="on"]')
    mark(second)
    one = wished(standing, token)["proposal"]
    two = apart(_by_stdio(standing, "group", "memory_write", target="TOOLS.md", content="The boat is blue.\n"))[
        "proposal"
    ]
    for page in (first, second):
        expect(page.locator(f"#row-{one}, #row-{two}")).to_have_count(2)
    second.locator(f"#row-{two}").click()
    second.locator(f"#{two} [data-act=edit]").click()
    expect(second.locator(f"#{two} textarea")).to_have_value("The boat is blue.\n")
    second.locator(f"#{two} textarea").fill("The boat is green.\n")
    first.locator(f"#row-{one}").click()
    first.locator(f"#{one} [data-act=deny]").click()

    expect(second.locator(f"#row-{one}")).to_have_count(0)
    expect(second.locator(f"#{two} textarea")).to_have_value("The boat is green.\n")
    second.locator(f"#{two} [data-act=approve-edited]").click()
    expect(first.locator(f"#row-{one}, #row-{two}, #{two}")).to_have_count(0)
    assert standing.text("TOOLS.md").endswith("The boat is green.\n")
    assert is_the_same(second)


def test_a_no_and_a_token_taken_back_are_said_to_be_done(visit: Visit, standing: Server, token: str) -> None:
    """Their answers are empty, and no fault."""
    page = visit.come_in(at="/inbox")
    one = wished(standing, token)["proposal"]
    expect(page.locator(f"#{one} [data-act=approve]")).to_be_enabled()
    page.keyboard.press("a")  # who somebody is gets its yes once it is chosen: this chooses
    expect(page.locator(f"#row-{one}")).to_be_focused()
    page.locator("#main").focus()
    page.keyboard.press("d")  # about what stands beside the list; a no need not be chosen first
    expect(page.locator("#said")).to_have_text("Denied; nothing was written.")
    made = standing.anima("token", "make", "--name", "spare")["id"]
    page.goto(standing.url + "/settings")
    page.on("dialog", lambda dialog: dialog.accept())
    page.locator(f"#token-{made} [data-act=revoke]").click()

    expect(page.locator("#said")).to_have_text("Taken back.")
    expect(page.locator(f"#token-{made}")).to_have_count(0)


def test_the_card_of_a_noted_line_takes_the_heading_it_goes_under(visit: Visit, standing: Server, token: str) -> None:
    name = wished(standing, token, target="memory", content="The boat leaks at the stern")["noted"][0]
    page = visit.come_in(at=f"/inbox/{name}")
    page.locator("#detail [name=section]").fill("Boats")
    page.locator("#detail [data-act=keep-noted]").click()

    expect(page.locator("#said")).to_contain_text("Kept under Boats.")
    assert "## Boats\n\n- The boat leaks at the stern\n" in standing.text("MEMORY.md")

    name = wished(standing, token, target="memory", content="Bo owes ten", section="Money")["noted"][0]
    page.goto(f"{standing.url}/inbox/{name}")
    page.locator("#detail [name=section]").fill("")
    page.locator("#detail [data-act=keep-noted]").click()

    expect(page.locator("#said")).to_contain_text("Kept")
    assert "Bo owes ten" in standing.text("MEMORY.md") and "## Money" not in standing.text("MEMORY.md")


def test_a_line_of_which_no_heading_is_sure_is_put_elsewhere_with_one_tap(visit: Visit, standing: Server) -> None:
    page = visit.come_in(at="/memory")
    page.locator("#fact").fill("The wifi is called larch-5G")
    page.locator("[data-write=remember] button.main").click()
    expect(page.locator("#said")).to_contain_text("Better under:")
    other = page.locator("#said button").first
    heading = str(other.text_content())
    other.click()

    expect(page.locator("#said")).to_contain_text(
        f"Remembered in MEMORY.md under {heading}: The wifi is called larch-5G"
    )
    found = placed(standing.text("MEMORY.md"), "- something else", section=heading).text
    assert found.count("larch-5G") == 1 and "- The wifi is called larch-5G\n- something else\n" in found


def test_the_owner_is_told_that_a_line_holds_a_secret(visit: Visit, standing: Server) -> None:
    page = visit.come_in(at="/memory")
    page.locator("#fact").fill("The password of the shed is sunflower-42")
    page.locator("[data-write=remember] button.main").click()
    expect(page.locator("#said")).to_contain_text(
        "The scan saw: a secret (password). Undo takes it out; history keeps it"
    )
    page.locator("#said button", has_text="Undo").click()

    expect(page.locator("#said")).to_have_text(re.compile(r"^Taken back in MEMORY\.md: .*sunflower-42$"))
    page.goto(f"{standing.url}/memory")
    page.locator("#fact").fill("The shed is green")
    page.locator("[data-write=remember] button.main").click()
    expect(page.locator("#said")).to_contain_text("The shed is green")
    expect(page.locator("#said")).not_to_contain_text("The scan saw")


def test_a_line_that_could_not_be_put_elsewhere_is_shown_again(visit: Visit, standing: Server) -> None:
    page = visit.come_in(at="/memory")
    page.locator("#fact").fill("A kiln wants cobalt")
    page.locator("[data-write=remember] button.main").click()
    expect(page.locator("#said")).to_contain_text("Better under:")
    page.route("**/api/v1/**remember", lambda route: route.abort())
    page.locator("#said button").first.click()

    expect(page.locator("#said")).to_contain_text("Not kept: A kiln wants cobalt")
    visit.wrong.clear()  # the request that was let fail


def test_what_came_before_the_page_listened_is_shown_too(visit: Visit, standing: Server, token: str) -> None:
    page = visit.come_in()
    held: list[Route] = []
    page.route("**/api/v1/events", lambda route: held.append(route))
    page.goto(standing.url + "/inbox")
    page.wait_for_function("document.querySelector('#pulse').dataset.state === 'off'")
    told = wished(standing, token, content="- Ana owns a kayak.\n")
    assert page.locator(f"#{told['proposal']}").count() == 0
    [route] = held
    route.continue_()

    expect(page.locator(f"#{told['proposal']}")).to_be_visible()


def test_hostile_text_is_shown_and_does_nothing(visit: Visit, standing: Server, token: str) -> None:
    page = visit.come_in(at="/inbox")
    hostile = '<script>document.title="x"</script><img src="http://evil.example/a.png"><a href="javascript:alert(1)">\u202egnp'
    told = wished(standing, token, target="AGENTS.md", content=hostile, append=False, reason=hostile)
    shown = page.locator(f"#{told['proposal']}")
    page.locator(f"#row-{told['proposal']}").click()

    expect(shown.locator(".diff")).to_contain_text('<script>document.title="x"</script>')
    expect(shown.locator(".diff")).to_contain_text("⟨U+202E⟩")
    expect(page.locator(f"#row-{told['proposal']}")).to_contain_text('<script>document.title="x"</script>')
    expect(shown.locator("script, img, .diff a")).to_have_count(0)
    expect(page).to_have_title(re.compile("^Inbox"))


def test_a_box_says_what_of_a_paste_it_left_out(visit: Visit, standing: Server) -> None:
    page = visit.come_in(at="/memory")
    page.locator("#fact").focus()
    page.evaluate("""() => {
        const clipboardData = new DataTransfer();
        clipboardData.setData("text", "x".repeat(90_000));
        document.querySelector("#fact").dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true }));
    }""")

    expect(page.locator("#said")).to_contain_text("Only 20,000 characters fit here: 70,000 at the end were left out.")


def test_keys_are_shown_and_the_theme_is_kept(visit: Visit, standing: Server) -> None:
    page = visit.come_in()
    page.goto(standing.url + "/agent")
    page.keyboard.press("?")
    expect(page.locator("#keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#keys")).to_be_hidden()
    before = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    page.get_by_role("button", name="Theme").click()
    after = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    lead(page, "h", "/today")

    assert before != after == page.evaluate("getComputedStyle(document.documentElement).backgroundColor")


def test_the_watch_sees_what_it_watches_for(browser: Browser, standing: Server) -> None:
    """Markup that got into a page could still load nothing and run nothing, and these tests would know."""
    context = browser.new_context()
    visit = Visit(context, standing)
    page = visit.come_in()
    page.evaluate("""() => new Promise((done) => {
        const left = new Set(["img-src", "script-src", "thrown"]);
        const seen = (what) => { left.delete(what); if (!left.size) setTimeout(done, 50); };
        addEventListener("securitypolicyviolation", (event) => seen(event.effectiveDirective.replace("-elem", "")));
        addEventListener("error", () => seen("thrown"));
        document.querySelector("main").innerHTML = '<img src="http://evil.example/x.png" onerror="window.ran = 1">';
        const script = document.createElement("script");
        script.textContent = "window.ran = 1";
        document.body.append(script);
        console.error("loud");
        setTimeout(() => { throw new Error("thrown"); });
    })""")
    ran = page.evaluate("window.ran")
    context.close()
    said = json.dumps(visit.wrong)

    assert ran is None
    for part in ("content policy: img-src http://evil.example/x.png", "content policy: script-src", "loud", "thrown"):
        assert part in said
    with pytest.raises(AssertionError):
        visit.calm()
