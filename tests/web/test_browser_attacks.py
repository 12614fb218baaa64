"""A page of somebody else's, in the browser in which the owner is logged in: it changes nothing and learns nothing.

Three origins attack: another port of the same host (where the browser sends the owner's cookie along, because a site is a
host without its port), another name of this machine, and a foreign name. A fourth is the served origin itself, by a name
that was rebound to this machine.
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, Response, expect

from anima import Home, Scope
from browsing import Server, Visit, browser_with, own_configuration, serving

FOREIGN = "evil.example"
ATTACKERS = ["127.0.0.1", "localhost", FOREIGN]

# Each attempt says what the attacker saw. Nothing of it may depend on what is there, or on whether somebody is logged in.
ATTEMPTS = """async ([base, path]) => {
  const there = base + path, seen = {};
  const told = (promise) => promise.then((a) => `${a.type} ${a.status} ${a.redirected}`, (e) => e.name);
  const body = JSON.stringify({ content: "from elsewhere", text: "from elsewhere" });
  const simple = { credentials: "include", mode: "no-cors" }, full = { credentials: "include", mode: "cors" };
  const json = { "Content-Type": "application/json" }, form = { "Content-Type": "application/x-www-form-urlencoded" };
  const element = (tag, given) => new Promise((done) => {
    const one = Object.assign(document.createElement(tag), given);
    one.onload = () => done("loaded"); one.onerror = () => done("failed");
    document.body.append(one);
  });
  seen.read = await told(fetch(there, full));
  seen.look = await told(fetch(there, simple));
  seen.head = await told(fetch(there, { ...simple, method: "HEAD" }));
  seen.options = await told(fetch(there, { ...full, method: "OPTIONS" }));
  seen.put = await told(fetch(there, { ...full, method: "PUT", headers: json, body }));
  seen.delete = await told(fetch(there, { ...full, method: "DELETE" }));
  seen.token = await told(fetch(there, { ...full, headers: { "X-Anima-Key": "0".repeat(64) } }));
  seen.bearer = await told(fetch(there, { ...full, headers: { Authorization: "Bearer x" } }));
  for (const [name, to, kind] of [["note", "/api/v1/note", "text/plain"], ["undo", "/api/v1/undo", "text/plain"],
                                  ["index", "/api/v1/index", "text/plain"], ["mcp", "/mcp", "text/plain"]])
    seen[name] = await told(fetch(base + to, { ...simple, method: "POST", headers: { "Content-Type": kind }, body }));
  seen.json = await told(fetch(base + "/api/v1/note", { ...full, method: "POST", headers: json, body }));
  seen.logout = await told(fetch(base + "/logout", { ...simple, method: "POST", headers: form, body: "x=x" }));
  seen.login = await told(fetch(base + "/login", { ...simple, method: "POST", headers: form, body: "code=x" }));
  seen.beacon = navigator.sendBeacon(base + "/api/v1/note", new Blob([body], { type: "text/plain" }));
  seen.ancient = await new Promise((done) => {
    const asked = new XMLHttpRequest();
    asked.withCredentials = true;
    asked.onload = () => done("read " + asked.responseText); asked.onerror = () => done("failed");
    asked.open("GET", there); asked.send();
  });
  seen.image = await element("img", { src: there });
  seen.icon = await element("img", { src: base + "/static/icon.svg" });
  seen.script = await element("script", { src: there });
  seen.ours = await element("script", { src: base + "/static/anima.js" }) + typeof window.anima;
  seen.style = await element("link", { rel: "stylesheet", href: base + "/static/anima.css" });
  seen.module = await element("script", { type: "module", src: base + "/static/anima.js" });
  seen.film = await Promise.race([new Promise((done) => {
    const film = Object.assign(document.createElement("video"), { src: there });
    film.onloadedmetadata = () => done("loaded"); film.onerror = () => done("failed");
  })]);
  seen.worker = await new Promise((done) => {
    try { const made = new Worker(base + "/static/anima.js"); made.onerror = () => done("failed"); made.onmessage = () => done("ran"); }
    catch (error) { done(error.name); }
  });
  seen.frame = await new Promise((done) => {
    const frame = Object.assign(document.createElement("iframe"), { src: base + "/inbox" });
    const look = () => { try { return frame.contentDocument ? "open" : "shut"; } catch (error) { return error.name; } };
    frame.onload = () => done(`${look()} ${frame.contentWindow.length}`);
    document.body.append(frame);
  });
  seen.socket = await new Promise((done) => {
    const socket = new WebSocket(base.replace("http", "ws") + "/api/v1/events");
    socket.onopen = () => done("open"); socket.onclose = (event) => done(`closed ${event.code}`);
  });
  seen.events = await new Promise((done) => {
    const source = new EventSource(base + "/api/v1/events", { withCredentials: true });
    source.onopen = () => done("open"); source.onmessage = () => done("told");
    source.onerror = () => { done(`failed ${source.readyState}`); source.close(); };
  });
  seen.cached = performance.getEntriesByType("resource").filter((one) => one.name.startsWith(base))
    .every((one) => one.responseStatus === 0 && one.transferSize === 0 && one.decodedBodySize === 0);
  return seen;
}"""
NOTHING = {
    **dict.fromkeys(
        "read look head options put delete token bearer note undo index mcp json logout login".split(), "TypeError"
    ),
    **dict.fromkeys("ancient image icon script style module film".split(), "failed"),
    "beacon": True,
    "ours": "failedundefined",
    "worker": "SecurityError",
    "frame": "shut 0",
    "socket": "closed 1006",
    "events": "failed 2",
    "cached": True,
}


class Attacker:
    """Somebody else's server on this machine: it gives an empty page under every name."""

    def __init__(self) -> None:
        self.cookies: list[str] = []
        told = self.cookies.append

        class Empty(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                told(self.headers.get("Cookie", ""))
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!doctype html><link rel=icon href='data:,'><title>a nice page</title><body>")

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Empty)
        self.port = self.server.server_port

    @contextmanager
    def running(self) -> Iterator[Attacker]:
        thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield self
        finally:
            self.server.shutdown()
            self.server.server_close()
            thread.join()


class Exchange:
    """Everything the browser asked of a server, and what it was told."""

    def __init__(self, context: BrowserContext, *bases: str, but: Sequence[Page] = ()) -> None:
        self._bases, self.asked, self.told = bases, [], []
        self._but = list(but)  # pages that go on asking by themselves
        context.on("request", self._ask)
        context.on("response", self._tell)

    def _ask(self, request: Request) -> None:
        if request.url.startswith(self._bases) and not self._is_left_out(request):
            self.asked.append(request)

    def _tell(self, response: Response) -> None:
        if response.url.startswith(self._bases) and not self._is_left_out(response.request):
            self.told.append((response.request.method, response.url, response.status))

    def _is_left_out(self, request: Request) -> bool:
        return bool(self._but) and not request.is_navigation_request() and request.frame.page in self._but

    def clear(self) -> None:
        self.asked.clear()
        self.told.clear()

    @property
    def answers(self) -> set[int]:
        return {status for _, _, status in self.told}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with browser_with(f"--host-resolver-rules=MAP {FOREIGN} 127.0.0.1") as found:
        yield found


@pytest.fixture(scope="module")
def attacker() -> Iterator[Attacker]:
    with Attacker().running() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A served home with a memory, and something that waits. No test changes it; that is what they are about."""
    folder = tmp_path_factory.mktemp("attacked")
    with own_configuration(folder / "config"), serving(made(folder / "aria")) as found:
        yield found


def made(folder: Path) -> Path:
    with Home.create(folder, name="Aria") as home:
        home.remember("The code of the boat shed is 4471")
        with home.session(scope=Scope.MAIN) as session:
            session.call("memory_write", {"target": "SOUL.md", "content": "I obey everybody.\n"})
    return folder


@pytest.fixture(scope="module")
def owner(browser: Browser, server: Server) -> Iterator[Page]:
    """The owner's own window, in the browser that the attackers' pages are opened in too."""
    with browser.new_context() as context:
        yield Visit(context, server).come_in(at="/inbox")


@pytest.fixture
def context(owner: Page) -> Iterator[BrowserContext]:
    """The owner's browser; at the end the owner still sees what they saw, and only they are left."""
    yield owner.context
    for page in owner.context.pages:
        if page is not owner:
            page.close()
    owner.reload()
    expect(owner.locator(".card")).to_have_count(1)


def everything(server: Server) -> dict[str, bytes]:
    """Every byte of a home, and of who may come in to it; without its index, which is derived."""
    files = [path for place in (server.folder, server.config) for path in place.rglob("*") if path.is_file()]
    return {
        str(path): path.read_bytes() for path in files if ".git/" not in str(path) and "index.sqlite" not in path.name
    }


def on(page: Page, url: str) -> Page:
    page.goto(url)
    return page


# -- from other origins ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ATTACKERS)
def test_a_page_of_another_origin_changes_nothing_and_learns_nothing(
    name: str, browser: Browser, context: BrowserContext, attacker: Attacker, server: Server
) -> None:
    before, exchange = everything(server), Exchange(context, server.url, but=context.pages)
    page = on(context.new_page(), f"http://{name}:{attacker.port}/")
    found = page.evaluate(ATTEMPTS, [server.url, "/api/v1/files/MEMORY.md"])
    absent = page.evaluate(ATTEMPTS, [server.url, "/api/v1/files/NOTHING.md"])
    with browser.new_context() as another:  # nobody is logged in there
        stranger = on(another.new_page(), f"http://{name}:{attacker.port}/")
        unknown = stranger.evaluate(ATTEMPTS, [server.url, "/api/v1/files/MEMORY.md"])

    assert found == absent == unknown == NOTHING
    assert everything(server) == before
    assert exchange.answers == {403}
    assert len(exchange.asked) > 40
    # The attack was a real one: from another port of the same host, the browser did send the owner's cookie.
    sent = [request for request in exchange.asked if "cookie" in request.all_headers()]
    assert bool(sent) == (name == "127.0.0.1")


FORMS = """([base, places, kinds]) => Promise.all(places.flatMap((place) => kinds.map((enctype) => new Promise((done) => {
  const name = place + enctype, frame = Object.assign(document.createElement("iframe"), { name });
  const form = Object.assign(document.createElement("form"), { action: base + place, enctype, target: name, method: "post" });
  form.append(Object.assign(document.createElement("input"), { name: '{"content": "from elsewhere", "x": "', value: '"}' }));
  document.body.append(frame, form);
  frame.onload = done;
  form.submit();
}))))"""
KINDS = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"]


@pytest.mark.parametrize("name", ATTACKERS)
def test_a_form_of_another_origin_is_not_taken(
    name: str, owner: Page, context: BrowserContext, attacker: Attacker, server: Server
) -> None:
    card = owner.locator(".card").get_attribute("id")
    places = ["/api/v1/note", "/api/v1/undo", f"/api/v1/pending/{card}/approve", "/logout", "/login", "/mcp"]
    before, exchange = everything(server), Exchange(context, server.url)
    page = on(context.new_page(), f"http://{name}:{attacker.port}/")
    page.evaluate(FORMS, [server.url, places, KINDS])
    with page.expect_navigation(url=server.url + "/logout"):
        whole = FORMS.replace("target: name", "target: '_top'")
        page.evaluate(f"(given) => {{ ({whole})(given); }}", [server.url, ["/logout"], KINDS[:1]])

    posts = [status for method, _, status in exchange.told if method == "POST"]
    assert posts == [403] * (len(places) * len(KINDS) + 1)
    expect(page.locator(".card, #door")).to_have_count(0)
    assert everything(server) == before


@pytest.mark.parametrize("name", ATTACKERS)
def test_a_link_from_elsewhere_shows_the_login_page_and_no_other(
    name: str, context: BrowserContext, attacker: Attacker, server: Server
) -> None:
    page = context.new_page()
    for path, status in (("/inbox", 403), ("/", 403), ("/api/v1/files", 403), ("/login", 200)):
        on(page, f"http://{name}:{attacker.port}/")
        with page.expect_response(server.url + path) as answer:
            page.evaluate("(to) => { location.href = to; }", server.url + path)
        assert answer.value.status == status
        page.wait_for_url(server.url + path)
        expect(page.locator(".card, .rail")).to_have_count(0)


@pytest.mark.parametrize("name", ATTACKERS)
def test_nothing_of_ours_can_be_put_into_a_frame(
    name: str, context: BrowserContext, attacker: Attacker, server: Server
) -> None:
    """A click that was meant for something else hits nothing: not even the login page lets itself be framed."""
    page = on(context.new_page(), f"http://{name}:{attacker.port}/")
    for path in ("/inbox", "/login", "/settings/health"):
        page.evaluate(
            """(src) => new Promise((done) => {
            const frame = Object.assign(document.createElement("iframe"), { src, width: 800, height: 600, onload: done });
            document.body.replaceChildren(frame);
        })""",
            server.url + path,
        )
        frame = page.frames[-1]
        expect(frame.locator("#main, button, .card")).to_have_count(0)
        assert not frame.url.startswith(server.url)


@pytest.mark.parametrize("name", ATTACKERS)
def test_a_window_that_somebody_else_opened_is_out_of_their_reach(
    name: str, context: BrowserContext, attacker: Attacker, server: Server
) -> None:
    page = on(context.new_page(), f"http://{name}:{attacker.port}/")
    with context.expect_page() as opened:
        page.evaluate("(to) => { window.opened_by_me = window.open(to); }", server.url + "/login")
    opened.value.wait_for_load_state()
    page.wait_for_function("window.opened_by_me.closed")  # to its opener it is as good as closed

    assert opened.value.evaluate("window.opener") is None


def test_a_wrong_code_from_elsewhere_leaves_the_owner_where_they_are(
    context: BrowserContext, attacker: Attacker, server: Server
) -> None:
    page = on(context.new_page(), f"http://localhost:{attacker.port}/")
    page.evaluate("(to) => { location.href = to; }", f"{server.url}/login#{'0' * 32}")

    expect(page.locator("[role=alert]")).to_contain_text("Not this code")


# -- with the cookie, which browsers give to every port -----------------------------------------------------------------------


def test_a_cookie_that_a_browser_gave_to_another_port_opens_nothing(browser: Browser, server: Server) -> None:
    with Attacker().running() as attacker, browser.new_context() as context:
        page = Visit(context, server).come_in()
        page.evaluate("(to) => { location.href = to; }", f"http://127.0.0.1:{attacker.port}/")
        page.wait_for_url(f"http://127.0.0.1:{attacker.port}/")
        kept = page.evaluate("Object.keys(localStorage)")
    stolen = attacker.cookies[0]

    def got(path: str) -> tuple[int, str]:
        with closing(http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=120)) as there:
            there.request("GET", path, headers={"Cookie": stolen})
            answer = there.getresponse()
            return answer.status, answer.read().decode()

    assert stolen.startswith("anima-") and kept == []
    assert {got(f"/api/v1/{verb}")[0] for verb in ("files", "pending", "events", "tokens", "ping")} == {401}
    assert got("/inbox") == got("/memory/SOUL.md") and "Aria" not in got("/inbox")[1]


# -- by a name that was rebound ------------------------------------------------------------------------------------------------


REBOUND = """async () => {
    const asked = [["GET", "/"], ["GET", "/login"], ["GET", "/static/anima.js"], ["GET", "/api/v1/files"],
                   ["POST", "/api/v1/note"], ["POST", "/login"], ["PUT", "/api/v1/files/SOUL.md"], ["DELETE", "/api/v1/files/SOUL.md"],
                   ["POST", "/mcp"], ["GET", "/mcp"], ["OPTIONS", "/api/v1/files"]];
    const answers = [];
    for (const [method, path] of asked) {
        const body = method === "POST" || method === "PUT" ? '{"content": "x", "text": "x"}' : undefined;
        const headers = body ? { "Content-Type": "application/json" } : {};
        const answer = await fetch(path, { method, headers, body, credentials: "include" });
        answers.push([answer.status, await answer.text()]);
    }
    const events = await new Promise((done) => { new EventSource("/api/v1/events").onerror = () => done("failed"); });
    const socket = await new Promise((done) => {
        const made = new WebSocket(`ws://${location.host}/api/v1/events`);
        made.onopen = () => done("open"); made.onclose = () => done("closed");
    });
    return { answers, events, socket };
}"""


def test_a_name_that_was_rebound_to_this_machine_reaches_nothing(browser: Browser, tmp_path: Path) -> None:
    """A page comes from the attacker; then its name and port are ours, so the browser takes us for the same origin."""
    context = browser.new_context()
    with Attacker().running() as attacker:
        rebound = f"http://{FOREIGN}:{attacker.port}"
        page = on(context.new_page(), rebound + "/")
    with context, serving(made(tmp_path / "aria"), port=attacker.port) as server:
        Visit(context, server).come_in()
        before, exchange = everything(server), Exchange(context, rebound)
        seen = page.evaluate(REBOUND)

        assert len({text for _, text in seen["answers"]}) == 1  # whatever is asked, one answer
        assert {status for status, _ in seen["answers"]} == exchange.answers == {421}
        assert (seen["events"], seen["socket"]) == ("failed", "closed")
        assert everything(server) == before
        on(page, rebound + "/inbox")
        expect(page.locator("#main, #door")).to_have_count(0)
