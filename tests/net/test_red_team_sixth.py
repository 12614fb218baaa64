"""What a sixth attack got past us, by real clients of MCP and with an agent's token: each a promise, on a real home."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from attacking import PLANTED, need, told

from anima import Home, Scope, Session
from anima.agent.models import Models
from anima.cli.serve import _guest
from anima.mcp.server import MOST_OF_ONE, MOST_SESSIONS
from anima.memory import MOST_NOTED_OF_GUEST, MOST_NOTED_OF_SESSION, MOST_PER_GUEST, MOST_PER_SESSION
from anima.testing import Clock
from anima.testing.models import ModelServer
from anima.web.serve import create_app
from parroting import parrot
from serving import Desk, desk_in, running


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock()) as made:
        yield made


# -- what comes back to a conversation of its own notes --------------------------------------------------------------------


@pytest.mark.parametrize("scope", [Scope.GROUP, Scope.CRON])
@pytest.mark.parametrize("known", ["noted by another", "forgotten by the owner"])
def test_what_a_conversation_noted_comes_back_whatever_others_noted_or_forgot(
    home: Home, scope: Scope, known: str
) -> None:
    if known == "noted by another":
        with home.session(scope=Scope.MAIN) as session:
            session.taint("web")
            session.call("memory_write", {"target": "memory", "content": PLANTED})
    else:
        home.remember(PLANTED)
        home.forget(text=PLANTED)
    found = []
    for line in (PLANTED, PLANTED.replace("new", "old")):
        with home.session(scope=scope) as session:
            answer = session.call("memory_write", {"target": "memory", "content": line})
            assert answer["status"] == "noted"
            found.append((session.noted() + session.after_compaction()).replace(line, ""))
    assert found[0] == found[1]


def test_a_persons_own_layer_does_not_tell_what_the_owner_had_forgotten(home: Home) -> None:
    home.remember("Karin is pregnant since March")
    home.forget(text="Karin is pregnant since March")
    found = []
    with home.session(scope=Scope.MAIN, channel="telegram", sender="666") as session:
        session.taint("web")
        for month in ("March", "April"):
            line = f"Karin is pregnant since {month}"
            session.call("memory_write", {"target": "memory", "content": line})
            found.append(line in session.noted())
            found.append(
                line in told(session, "memory_get", path="users/telegram.666/unreviewed/2026-05-08.md", lines=99)
            )
    assert found == [True] * 4


# -- what one token takes from the others ----------------------------------------------------------------------------------

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
}


def begun(port: int, token: str, **more: str) -> tuple[int, str]:
    """What a new session over MCP is answered, and its name."""
    head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", **more}
    head["Accept"] = "application/json, text/event-stream"
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=180)) as line:
        line.request("POST", "/mcp", json.dumps(INITIALIZE), head)
        answer = line.getresponse()
        answer.read()
        return answer.status, answer.getheader("mcp-session-id") or ""


def test_one_token_leaves_others_room_for_sessions_over_mcp(tmp_path: Path) -> None:
    desk = desk_in(tmp_path)
    greedy, other = desk.token("group", name="greedy"), desk.token("main", name="other")
    with running(create_app(desk.home, keyring=desk.keyring, mcp=_guest())) as port:
        mine = [begun(port, other) for _ in range(2)]
        opened_ = [begun(port, greedy) for _ in range(MOST_SESSIONS + 4)]
        again = begun(port, other)
        alive = [begun(port, other, **{"Mcp-Session-Id": name})[0] for _, name in mine]
        names = [opened_[n][1] for n in (0, -MOST_OF_ONE - 1, -MOST_OF_ONE, -1)]
        theirs = [begun(port, greedy, **{"Mcp-Session-Id": name})[0] for name in names]
    assert {status for status, _ in [*opened_, *mine, again]} == {200}
    assert 404 not in alive and [status == 404 for status in theirs] == [True, True, False, False]


def test_one_token_that_asks_much_at_once_is_told_to_wait_and_others_are_not(desk: Desk) -> None:
    here, most = desk.app.state.served, desk.limits.agent_at_once
    greedy, other = desk.token("main", name="greedy"), desk.token("main", name="other")
    with running(desk.app) as port, ThreadPoolExecutor(2 * most + 1) as pool:

        def asked(token: str) -> int:
            with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=180)) as line:
                line.request("GET", "/api/v1/agent/prompt", headers={"Authorization": f"Bearer {token}"})
                return line.getresponse().status

        with here._mutex:  # a conversation that is being begun takes its time
            waiting = [pool.submit(asked, greedy) for _ in range(2 * most)]
            while sum(each.done() for each in waiting) < most:
                need(len(waiting) == 2 * most, "it is asked")
            theirs = pool.submit(asked, other)
        answers = Counter(each.result() for each in waiting)
    assert answers == {200: most, 429: most} and theirs.result() == 200


def guest(home: Home, credential: str) -> Session:
    return home.sessions.begin(scope=Scope.MAIN, channel="mcp", guest=(credential, ""))


def test_one_agent_elsewhere_does_not_fill_what_is_noted(home: Home) -> None:
    answers = []
    for talk in range(MOST_NOTED_OF_GUEST // MOST_NOTED_OF_SESSION + 1):
        with guest(home, "token:greedy") as session:
            lines = "".join(f"- fact {talk}.{n}\n" for n in range(MOST_NOTED_OF_SESSION))
            answers.append(session.call("memory_write", {"target": "notes/x.md", "content": lines})["status"])
    with guest(home, "token:other") as other:
        theirs = other.call("memory_write", {"target": "notes/x.md", "content": "- tea\n"})
    assert (answers, theirs["status"]) == (["noted"] * (len(answers) - 1) + ["refused"], "noted")


def test_one_agent_elsewhere_does_not_fill_the_inbox(home: Home) -> None:
    answers = []
    for talk in range(MOST_PER_GUEST // MOST_PER_SESSION + 1):
        with guest(home, "token:greedy") as session:
            for n in range(MOST_PER_SESSION if talk < 2 else 1):
                wish = {"target": "TOOLS.md", "content": f"- wish {talk}.{n}\n"}
                answers.append(session.call("memory_write", wish)["status"])
            last = [answers[-1], session.call("memory_forget", {"text": f"wish {talk}"})["status"]]
    with guest(home, "token:other") as other:
        assert other.call("memory_forget", {"text": "wish 0"})["status"] == "pending"
    assert answers.count("pending") == MOST_PER_GUEST and last == ["refused", "refused"]


# -- what a token that may only read writes ----------------------------------------------------------------------------------


def test_a_token_that_may_only_read_writes_by_no_route(tmp_path: Path) -> None:
    desk = desk_in(tmp_path)
    wish = {"target": "memory", "content": PLANTED}
    with ModelServer(then=parrot) as model:
        Models.of(desk.home).use("openai-chat:parrot", url=model.url, key=model.key)
        client = desk.agent("main", name="reader", access="ro")
        said = {"messages": [{"role": "user", "content": json.dumps(["call", "memory_write", wish])}]}
        answers = [
            client.post("/api/v1/tools/memory_write", json=wish).text,
            client.post("/v1/chat/completions", json=said).text,
        ]
        desk.app.state.served.close()
    assert all("read-only" in answer for answer in answers)
    assert not desk.home.inbox.noted() and not desk.home.inbox.all()
    desk.home.close()
