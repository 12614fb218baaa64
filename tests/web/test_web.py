"""The guard of the web face and its pages: who gets in, what no other origin gets, and text that stays text."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from datetime import timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anima import Home, NewerFormat, Scope
from anima.connect.connections import entry_of
from anima.model import Actor, Change, DocPath, Kind, Origin
from anima.text.diff import diff_of
from anima.web.draw import diff_lines, inert
from anima.web.guard import KEY, Rate, RateLimits
from anima.web.tokens import Keyring
from owning import as_owner
from serving import BASE, PRODUCT, Desk, desk_in

JSON = {"Content-Type": "application/json"}
ROUTES = [
    "/api/v1/ping",
    "/api/v1/files",
    "/api/v1/files/SOUL.md",
    "/api/v1/nonsense",
    "/api/v1/openapi.json",
    "/api/v1/tools",
]


# -- who gets in -----------------------------------------------------------------------------------------------------------


def test_every_route_of_the_api_gives_one_answer_to_whoever_is_not_known(desk: Desk) -> None:
    stranger = desk.client()
    answers = set()
    for path, operations in desk.app.openapi()["paths"].items():
        for method in operations:
            found = stranger.request(method, path.replace("{", "").replace("}", ""), content=b"")
            answers.add((found.status_code, found.text))

    assert answers == {(401, '{"type": "about:blank", "title": "Unauthorized", "status": 401}')}


@pytest.mark.parametrize("path", ROUTES)
def test_a_wrong_a_lapsed_and_a_revoked_token_are_told_what_a_missing_one_is(desk: Desk, path: str) -> None:
    lapsed = desk.token("main", lifetime=timedelta(hours=1))
    gone, revoked = desk.keyring.make("owner", name="gone", scope=None)
    desk.keyring.revoke(gone.id)
    desk.clock.forward(hours=2)
    good = desk.keyring.owner_token()
    wrong = [
        lapsed,
        revoked,
        good[:-1] + ("0" if good[-1] != "0" else "1"),
        good.upper(),
        "x",
        "",
        good + " x",
        "é" * 80,
    ]
    missing = desk.client().get(path)

    assert missing.status_code == 401 and missing.headers["WWW-Authenticate"] == "Bearer"
    for token in wrong:
        for value in (f"Bearer {token}".encode(), f"Basic {token}".encode()):
            found = desk.client().get(path, headers={"Authorization": value})  # type: ignore[dict-item]
            assert (found.status_code, found.text) == (401, missing.text)


def test_what_another_process_revokes_is_locked_out_at_once(desk: Desk) -> None:
    agent = desk.agent("main")
    other = Keyring(desk.home.credentials, clock=desk.home.clock)
    assert agent.get("/api/v1/tools").status_code == 200

    other.revoke(next(one.id for one in other.all() if one.kind == "agent"))

    assert agent.get("/api/v1/tools").status_code == 401


def test_an_agent_is_told_the_same_of_what_is_not_there_and_what_is_not_its_own(desk: Desk) -> None:
    agent = desk.agent("main")
    nothing = agent.get("/api/v1/no/such/thing")
    paths = [
        "/",
        "/inbox",
        "/settings/health",
        "/api/v1/files",
        "/api/v1/files/SOUL.md",
        "/api/v1/tokens",
        "/api/v1/openapi.json",
        "/api/v1/toolsy",
        "/api/v1/agents",
        "/api/v1/tools/../files",
        "/mcpx",
    ]

    assert nothing.status_code == 404
    for path in paths:
        for method in ("GET", "PUT", "DELETE"):
            found = agent.request(
                method,
                path,
                content=b"" if method == "GET" else b"not json",
                headers={"Content-Type": "application/json"},
            )
            assert (found.status_code, found.text) == (404, nothing.text), path


def test_a_token_of_another_agent_is_not_known_here(desk: Desk) -> None:
    assert desk.agent("main", agent="somebody-else").get("/api/v1/tools").status_code == 401


def test_the_owner_has_no_tools(desk: Desk) -> None:
    for found in (desk.owner.get("/api/v1/tools"), desk.page.post("/api/v1/tools/memory_tree", json={})):
        assert (found.status_code, found.json()["rule"]) == (403, "agent-only")


# -- other origins ---------------------------------------------------------------------------------------------------------


REBOUND = "evil.example evil.example:4747 127.0.0.1.evil.example 127.0.0.1@evil.example [::2]:4747 0.0.0.0".split()


@pytest.mark.parametrize("host", [*REBOUND, ""])
def test_a_name_that_was_rebound_to_this_machine_is_not_answered(desk: Desk, host: str) -> None:
    for path in ("/api/v1/ping", "/login", "/static/anima.js", "/inbox"):
        found = desk.owner.get(path, headers={"Host": host})
        assert found.status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:4747", "127.0.0.1", "localhost:4747", "LOCALHOST:4747", "[::1]:4747"])
def test_our_own_names_are_answered(desk: Desk, host: str) -> None:
    assert desk.owner.get("/api/v1/ping", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "https://127.0.0.1:4747"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_no_other_page_reads_or_writes(desk: Desk, headers: dict[str, str]) -> None:
    page = desk.page
    for method, path in (
        ("GET", "/api/v1/files"),
        ("POST", "/api/v1/note"),
        ("GET", "/inbox"),
        ("POST", "/login"),
        ("GET", "/static/anima.js"),
    ):
        body = {"json": {"content": "from elsewhere"}} if method == "POST" else {}
        assert page.request(method, path, headers=headers, **body).status_code == 403, path  # type: ignore[arg-type]
    assert desk.home.today() is None


def test_a_link_from_elsewhere_leads_to_the_login_page_and_nowhere_else(desk: Desk) -> None:
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}

    assert desk.client().get("/login", headers=visit).status_code == 200
    assert desk.client().get("/inbox", headers=visit).status_code == 403


def test_no_answer_lets_another_origin_read_it(desk: Desk) -> None:
    found = desk.owner.options("/api/v1/files", headers={"Access-Control-Request-Method": "GET"})

    assert not [name for name in found.headers if name.startswith("access-control")]


def test_a_web_socket_is_turned_away(desk: Desk) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), desk.owner.websocket_connect("/api/v1/events"):
        pass


@pytest.mark.parametrize("kind", ["stranger", "owner", "page"])
def test_every_answer_keeps_the_page_to_itself(desk: Desk, kind: str) -> None:
    client = desk.client() if kind == "stranger" else getattr(desk, kind)
    for path in ("/api/v1/ping", "/inbox", "/login", "/static/anima.css", "/nowhere", "/api/v1/nowhere"):
        found = client.get(path)
        policy = found.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert found.headers["X-Content-Type-Options"] == "nosniff"
        assert found.headers["X-Frame-Options"] == "DENY"
        assert found.headers["Cache-Control"] == ("no-cache" if "static" in path else "no-store")


# -- browsers ----------------------------------------------------------------------------------------------------------------


def test_a_code_lets_one_browser_in_once(desk: Desk) -> None:
    code = desk.keyring.code()
    first, second = (desk.client(Origin=BASE).post("/login", data={"code": code}) for _ in range(2))
    cookie = first.headers["Set-Cookie"]

    assert (first.status_code, second.status_code) == (200, 403)
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Path=/" in cookie
    assert first.json()["key"] not in cookie and len(first.json()["key"]) == 64
    assert "Not this code" in second.json()["detail"] and "Set-Cookie" not in second.headers


def test_a_code_is_too_old_after_ten_minutes(desk: Desk) -> None:
    code = desk.keyring.code()
    desk.clock.forward(minutes=10)

    assert desk.client(Origin=BASE).post("/login", data={"code": code}).status_code == 403


def test_guessing_codes_is_slowed_down(tmp_path: Path) -> None:
    desk = desk_in(tmp_path, limits=RateLimits(logins_a_minute=3))
    tries = [desk.client(Origin=BASE).post("/login", data={"code": "0" * 32}).status_code for _ in range(5)]

    assert tries == [403, 403, 403, 429, 429]


def test_whoever_opens_a_page_without_a_cookie_is_led_to_the_login(desk: Desk) -> None:
    for path in ("/", "/inbox", "/settings/health", "/nowhere"):
        found = desk.client().get(path)
        assert (found.status_code, found.headers["Location"]) == (303, "/login")


def test_a_cookie_without_its_key_gets_one_page_with_nothing_in_it(desk: Desk) -> None:
    page = desk.page
    del page.headers[KEY]
    shown = {page.get(path).text for path in ("/inbox", "/memory/SOUL.md", "/inbox?part=cards", "/nowhere")}

    assert len(shown) == 1 and "Aria" not in shown.pop()
    assert page.get("/inbox", headers={KEY: "0" * 64}).status_code == 401


def test_a_write_of_a_browser_needs_the_key_of_its_own_page(desk: Desk) -> None:
    page, other = desk.page, desk.page
    wish = {"content": "hello"}
    stolen = other.headers[KEY]

    assert page.post("/api/v1/note", json=wish).status_code == 200
    for key in ("", "0" * 64, stolen, "é"):
        found = page.post("/api/v1/note", json=wish, headers={KEY: key.encode()})  # type: ignore[dict-item]
        assert found.status_code == 401
    assert page.post("/logout", headers={KEY: stolen}).status_code == 401
    assert desk.home.today() is not None and desk.home.today().text.count("hello") == 1  # type: ignore[union-attr]


def test_a_write_with_a_cookie_but_no_origin_is_refused(desk: Desk) -> None:
    page = desk.page
    del page.headers["Origin"]

    assert page.post("/api/v1/note", json={"content": "hello"}).status_code == 403


def test_a_cookie_is_no_token_and_a_token_no_cookie(desk: Desk) -> None:
    page = desk.page
    as_token = desk.client(Authorization=f"Bearer {page.cookies[desk.keyring.cookie]}{page.headers[KEY]}")
    as_cookie = desk.client(Cookie=f"{desk.keyring.cookie}={desk.keyring.owner_token()}")

    assert as_token.get("/api/v1/ping").status_code == 401
    assert as_cookie.get("/api/v1/ping").status_code == 401


def test_leaving_takes_the_cookie_back_on_the_server_too(desk: Desk) -> None:
    page = desk.page
    both = {"Cookie": f"{desk.keyring.cookie}={page.cookies[desk.keyring.cookie]}", KEY: page.headers[KEY]}

    assert desk.client(**both).get("/api/v1/ping").status_code == 200
    assert page.post("/logout").status_code == 204
    assert desk.client(**both).get("/api/v1/ping").status_code == 401


# -- limits ------------------------------------------------------------------------------------------------------------------


def test_a_body_has_a_limit_whatever_it_says_of_its_length(tmp_path: Path) -> None:
    desk = desk_in(tmp_path, limits=RateLimits(body=1_000))
    small, large = json.dumps({"content": "a" * 500}).encode(), json.dumps({"content": "a" * 1_000}).encode()
    kind = {"Content-Type": "application/json"}

    assert desk.owner.post("/api/v1/note", content=small, headers=kind).status_code == 200
    assert desk.owner.post("/api/v1/note", content=large, headers=kind).status_code == 413
    assert desk.owner.post("/api/v1/note", content=iter([large[:600], large[600:]]), headers=kind).status_code == 413
    assert desk.client().post("/api/v1/note", content=large, headers=kind).status_code == 401
    assert desk.client().post("/login", content=b"code=" + b"0" * 5_000).status_code == 413


def test_the_api_takes_json_and_nothing_else(desk: Desk) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        found = desk.owner.post("/api/v1/note", content=b'{"content": "x"}', headers={"Content-Type": kind})
        assert found.status_code == 415, kind


def test_one_credential_that_asks_too_often_has_to_wait_and_others_do_not(tmp_path: Path) -> None:
    desk = desk_in(tmp_path, limits=RateLimits(agent_rate=1e-6))
    busy, calm = desk.agent("main"), desk.agent("main")
    first, second = busy.get("/api/v1/tools"), busy.get("/api/v1/tools")

    assert (first.status_code, second.status_code) == (200, 429)
    assert int(second.headers["Retry-After"]) > 0
    assert calm.get("/api/v1/tools").status_code == desk.owner.get("/api/v1/ping").status_code == 200


def test_the_measure_fills_with_time() -> None:
    now = [0.0]
    rate = Rate(2, 4, now=lambda: now[0])
    for _ in range(4):
        assert rate.wait("a") == 0
    assert rate.wait("a") == 0.5
    now[0] = 0.5
    assert rate.wait("a") == 0 and rate.wait("a") == 0.5


# -- tokens on disk ------------------------------------------------------------------------------------------------------------


def test_tokens_lie_outside_the_home_for_their_owners_eyes_alone(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        desk = desk_in(tmp_path)
        secret = desk.keyring.owner_token()
        agents = desk.token("group")
        code = desk.keyring.code()
    finally:
        os.umask(old)
    folder = desk.keyring.folder
    held = {path.name: path.read_bytes() for path in folder.iterdir()}

    assert not folder.is_relative_to(desk.home.name)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert held["owner.token"].decode().strip() == secret
    for hidden in (secret, agents, code):
        assert hidden.encode() not in held["passes.json"]
        assert not any(
            hidden.encode() in path.read_bytes() for path in Path(desk.home.name).rglob("*") if path.is_file()
        )


def test_a_secret_has_256_bits_and_the_owners_is_kept(desk: Desk) -> None:
    secret = desk.keyring.owner_token()

    assert len(bytes.fromhex(secret.rpartition("_")[2])) == 32
    assert Keyring(desk.home.credentials, clock=desk.home.clock).owner_token() == secret
    (desk.keyring.folder / "owner.token").unlink()
    assert desk.keyring.owner_token() != secret


def test_tokens_that_a_newer_anima_wrote_are_refused(desk: Desk) -> None:
    token = desk.token("main")
    file = desk.keyring.folder / "passes.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "format": 2}))
    with pytest.raises(NewerFormat, match="tokens"):
        Keyring(desk.home.credentials, clock=desk.home.clock).find(token)


def test_damaged_tokens_let_nobody_in_and_say_what_to_do(desk: Desk) -> None:
    owner = desk.owner
    (desk.keyring.folder / "passes.json").write_text('{"passes": []', encoding="utf-8")
    found = owner.get("/api/v1/ping")

    assert found.status_code == 500
    assert "damaged" in found.json()["detail"] and "ANIMA_CONFIG" in found.json()["hint"]


# -- pages ---------------------------------------------------------------------------------------------------------------------


class Outside(HTMLParser):
    """Everything in a page that would load from elsewhere, or run without a file of ours."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inline = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self._inline = tag in ("script", "style") and "src" not in given
        for name, value in given.items():
            if name.startswith("on") or name == "style":
                self.found.append(f"{tag} {name}")
            if name in ("src", "href", "action") and not (value or "").startswith(("/", "#")):
                self.found.append(f"{tag} {name}={value}")

    def handle_data(self, data: str) -> None:
        if self._inline and data.strip():
            self.found.append(f"inline {data[:40]}")


HOSTILE = '</textarea><script>alert(1)</script><img src="http://evil.example/x.png" onerror="x"> \u202egnp.exe\u202c \x1b[31m {{7919*7907}}'


def proposed(desk: Desk, text: str = HOSTILE, path: str = "notes/x.md") -> str:
    session = desk.home.session(scope=Scope.GROUP)
    return str(
        session.call("memory_write", {"target": path, "content": text, "append": False, "reason": text[:900]})[
            "proposal"
        ]
    )


@pytest.mark.parametrize("path", ["/inbox", "/inbox?part=cards", "/settings/health", "/login", "/nowhere"])
def test_nothing_in_a_page_comes_from_elsewhere_or_runs_inline(desk: Desk, path: str) -> None:
    proposed(desk)
    proposed(desk, "plain\n", f"notes/{'a' * 20}.md")
    found = desk.page.get(path)

    assert Outside(found.text).found == []
    assert "<script>alert" not in found.text and PRODUCT not in found.text


def test_a_proposal_is_shown_exactly_and_inert(desk: Desk) -> None:
    id = proposed(desk)
    text = desk.page.get("/inbox").text

    assert f'id="{id}"' in text
    assert "⟨U+202E⟩" in text and "⟨U+001B⟩" in text and "\x1b" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "text that is displayed in another order" in text  # what the scan saw


def test_the_inbox_says_who_asks_why_and_which_rule(desk: Desk) -> None:
    desk.home.delete("BOOTSTRAP.md")  # the first conversation is over
    with desk.home.session(scope=Scope.MAIN) as session:
        session.taint("web")
        session.call(
            "memory_write", {"target": "SOUL.md", "content": "# Soul\n", "append": False, "reason": "a kinder soul"}
        )
    text = desk.page.get("/inbox").text

    assert "Identity." in text and "a kinder soul" in text
    assert "The agent in a session with you, after it read text from web" in text
    assert "identity-file" in text
    assert "Always allow" not in text  # no rule opens an identity file to a whole kind


@pytest.mark.parametrize(
    ("wish", "named"),
    [({"text": "cat"}, "“cat”"), ({"path": "SOUL.md", "line": 1}, "“# Soul”")],
    ids=["words", "a line of an identity file"],
)
def test_a_wish_to_forget_is_called_one_and_cannot_be_edited(desk: Desk, wish: dict[str, Any], named: str) -> None:
    desk.home.remember("The cat is called Pixel")
    desk.home.write("SOUL.md", "# Soul\n\nCalm.\n")
    with desk.home.session(scope=Scope.MAIN) as session:
        id = session.call("memory_forget", {**wish, "reason": "you asked"})["proposal"]
    text = desk.page.get("/inbox").text

    assert f"forget {named}</b>" in text and f'<span class="verb">forget</span> <code>{named}</code>' in text
    assert ">Forget <kbd>a</kbd>" in text and ">Approve <kbd>" not in text and "add to" not in text
    assert "Always allow" not in text and 'data-act="edit"' not in text
    assert desk.home.inbox.rule_for(desk.home.inbox.get(id)) is None


def test_always_allow_shows_the_rule_it_would_need_as_the_configuration_reads_it(desk: Desk, tmp_path: Path) -> None:
    with desk.home.session(scope=Scope.MAIN) as session:
        session.call("memory_write", {"target": "TOOLS.md", "content": "The printer is in the attic"})
    shown = re.findall(r'<pre tabindex="0">(.*?)</pre>', desk.page.get("/inbox").text, re.DOTALL)
    from html import unescape

    config = Path(desk.home.name) / "anima.toml"
    config.write_text(config.read_text(encoding="utf-8") + "\n" + unescape(shown[0]), encoding="utf-8")
    with Home.open(desk.home.name, clock=desk.clock) as home, home.session(scope=Scope.MAIN) as session:
        found = session.call("memory_write", {"target": "TOOLS.md", "content": "The scanner is beside it"})

    assert found["status"] == "written"


def test_an_empty_inbox_teaches_and_tells_what_was_allowed(desk: Desk) -> None:
    before = desk.page.get("/inbox").text
    with desk.home.session(scope=Scope.MAIN) as session:
        session.call("memory_write", {"target": "daily_log", "content": "Talked about the boat"})
    after = desk.page.get("/inbox").text

    assert "Nothing waits for you" in before and "Nothing was written by an agent" in before
    assert "Allowed without asking since yesterday" in after and "clean-session" in after


def test_health_shows_every_remark_and_who_may_come_in(desk: Desk) -> None:
    (Path(desk.home.name) / "USER.md").write_bytes(b"# User \xff\n")
    desk.token("group", name="the <b>phone</b>")
    text = desk.page.get("/settings/health").text

    assert "not UTF-8" in text and "Damage" in text
    text = desk.page.get("/settings").text
    assert "the &lt;b&gt;phone&lt;/b&gt;" in text and "agent, group" in text


def test_a_page_that_is_not_there_says_so_in_words(desk: Desk) -> None:
    found = desk.page.get("/nowhere")

    assert found.status_code == 404 and "There is no such page." in found.text


@given(st.text())
def test_inert_text_holds_nothing_that_is_not_seen(text: str) -> None:
    shown = str(inert(text))

    assert all(char in "\n\t" or char.isprintable() for char in shown)
    assert "<" not in shown.replace('<span class="odd" title="a character that is not seen">', "").replace(
        "</span>", ""
    )


PIECES = ["--- a/SOUL.md", "+++ b/SOUL.md", "@@ -1,1 +1,1 @@", "- item", "+ plus", "", "\\ no newline at the end", "a"]
LINES = st.lists(st.sampled_from(PIECES), max_size=8)


@given(LINES, LINES)
def test_no_content_of_a_diff_passes_for_its_frame(old: list[str], new: list[str]) -> None:
    before, after = "".join(f"{line}\n" for line in old), "".join(f"{line}\n" for line in new)
    change = Change(
        path=DocPath.parse("notes/x.md"), kind=Kind.WRITE, text=after, actor=Actor.AGENT, origin=Origin.AGENT
    )
    shown = list(diff_lines(diff_of([change], [before])))

    assert [line.text for line in shown if line.kind == "file"] == ["--- a/notes/x.md", "+++ b/notes/x.md"]
    for line in shown:
        if line.kind in ("add", "same"):
            assert line.new is not None and line.text == new[line.new - 1]
        if line.kind in ("cut", "same"):
            assert line.old is not None and line.text == old[line.old - 1]


# -- the command line ------------------------------------------------------------------------------------------------------------


def anima(*arguments: str, home: Home) -> Any:
    line = [sys.executable, "-m", "anima", *as_owner(*arguments), "--home", home.name, "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=180)
    return json.loads(done.stdout)


def test_tokens_are_made_listed_and_revoked_at_the_command_line(desk: Desk) -> None:
    made = anima("token", "make", "--name", "phone", "--scope", "group", "--days", "3", home=desk.home)
    agent = desk.client(Authorization=f"Bearer {made['token']}")
    assert agent.get("/api/v1/agent/prompt").json()["scope"] == "group"

    assert [one["name"] for one in anima("token", "list", home=desk.home)] == ["phone"]
    assert anima("token", "revoke", made["id"], home=desk.home) == {"revoked": made["id"]}
    assert agent.get("/api/v1/agent/prompt").status_code == 401
    assert anima("token", "revoke", made["id"], home=desk.home)["error"]["kind"] == "NotFound"
    assert anima("token", "forge", home=desk.home)["error"]["kind"] == "BadArguments"


def test_what_is_pasted_into_an_agents_configuration_works_from_any_shell(desk: Desk) -> None:
    entry: Any = entry_of(desk.home)["mcpServers"]["anima"]
    told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a host", "version": "1"}}
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": told})
    line, env = [entry["command"], *entry["args"]], {"PATH": "/nowhere", **entry["env"]}
    done = subprocess.run(line, env=env, input=f"{hello}\n", capture_output=True, text=True, check=False, timeout=180)

    assert json.loads(done.stdout)["result"]["serverInfo"] and (done.returncode, done.stderr) == (0, "")


def test_what_an_agent_read_that_came_by_that_entry_is_cleared_by_its_name(desk: Desk) -> None:
    def begun() -> Any:
        return desk.home.sessions.begin(scope=Scope.MAIN, guest=("mcp:mcp", "mcp"))

    with begun() as session:
        session.call("memory_read_outside", {"source": "web"})
    with begun() as again:
        assert again.tainted == {"host", "web"}
    anima("token", "clear", "mcp", home=desk.home)
    with Home.open(desk.home.name) as home:
        assert home.sessions.begin(scope=Scope.MAIN, guest=("mcp:mcp", "mcp")).tainted == {"host"}


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_serve_ends_with_a_link_that_works_once_and_stops_cleanly(desk: Desk, sign: signal.Signals) -> None:
    import http.client

    command = [sys.executable, "-m", "anima", "up", "--home", desk.home.name, "--port", "0", "--as-owner"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None and server.stderr is not None
        said: dict[str, str] = {}
        while "Talk" not in said:  # its health comes first
            line = server.stdout.readline()
            assert line, server.stderr.read()
            said[line.partition(":")[0]] = line.partition(":")[2].strip()
        link = said["Open"]
        base, _, code = link.partition("/login#")
        there = http.client.HTTPConnection(base.removeprefix("http://"), timeout=120)
        there.request(
            "POST", "/login", f"code={code}", {"Origin": base, "Content-Type": "application/x-www-form-urlencoded"}
        )
        answer = there.getresponse()
        halves = {"Cookie": answer.headers["Set-Cookie"].partition(";")[0], KEY: json.loads(answer.read())["key"]}
        there.request("GET", "/api/v1/events", headers=halves)
        events = there.getresponse()
        server.send_signal(sign)
        code_of_exit, error = server.wait(timeout=120), server.stderr.read()
        events.close()
        there.close()

    assert answer.status == 200 and events.status == 200
    assert json.loads(said["Agent"]) == entry_of(desk.home)
    assert (code_of_exit, error) == (0, "stopped; nothing is half done\n")
    assert code not in error and base.startswith("http://127.0.0.1:")
