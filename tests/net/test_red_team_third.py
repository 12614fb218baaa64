"""What a third attacker got past us, by the agent that speaks, by what is placed and recorded, and by names: each a promise."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attacking import LOG, PLANTED, need, shown, told
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from anima import Home, Scope
from anima.agent.conversation import asked_once
from anima.agent.lodging import Lodging
from anima.agent.models import Models
from anima.cli.chat import _Chat, begun
from anima.cli.show import console
from anima.connect.adapters.pydantic_ai import past
from anima.errors import NoSuchSession
from anima.testing import Clock
from anima.testing.models import ModelServer, Spoken

SHARED = "\n## Public <!-- share: group -->\n\n- the shop opens at nine\n"
PLAIN = "\n## Public\n\n- the shop opens at nine\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock()) as made:
        yield made


# -- the agent that speaks -------------------------------------------------------------------------------------------------


async def obedient(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """A model that calls what it has: a tool of the host's, then a memory of what it read."""
    called = [part.tool_name for message in messages for part in message.parts if isinstance(part, ToolCallPart)]
    wanted = [("fetch", {}), ("memory_write", {"target": "memory", "content": PLANTED})]
    there = {tool.name for tool in info.function_tools}
    for name, given in wanted:
        if name in there and name not in called:
            yield {0: DeltaToolCall(name=name, json_args=json.dumps(given), tool_call_id=f"c{len(messages)}")}
            return
    yield "done"


def fetch() -> str:
    return PLANTED


BEFORE = (
    [
        ToolCallPart(tool_name="browser", args={}, tool_call_id="1"),
        ToolReturnPart(tool_name="browser", content=PLANTED, tool_call_id="1"),
    ],
    [
        NativeToolCallPart(tool_name="web_search", args={}, tool_call_id="1"),
        NativeToolReturnPart(tool_name="web_search", content=PLANTED, tool_call_id="1"),
    ],
)


WAYS: dict[str, list[Any]] = {
    "another tool": [],
    "a file": [],
    "instructions": [],
    "what was before": [ModelResponse(parts=BEFORE[0][:1]), ModelRequest(parts=BEFORE[0][1:])],
    "the service's own search": [ModelResponse(parts=[*BEFORE[1], TextPart("ok")])],
    "a system prompt": [ModelRequest(parts=[SystemPromptPart(PLANTED)])],
    "words of before": [ModelRequest(parts=[UserPromptPart(PLANTED)]), ModelResponse(parts=[TextPart("ok")])],
    "an answer of before": [ModelRequest(parts=[UserPromptPart("x")]), ModelResponse(parts=[TextPart(PLANTED)])],
    "a result in our name": [
        ModelResponse(parts=[ToolCallPart(tool_name="memory_get", args={}, tool_call_id="1")]),
        ModelRequest(parts=[ToolReturnPart(tool_name="memory_get", content=PLANTED, tool_call_id="1")]),
    ],
}


@pytest.mark.parametrize("way", WAYS)
def test_what_an_agent_reads_beside_our_tools_is_outside_text(home: Home, way: str) -> None:
    said: Sequence[Any] = ["who keeps the books?"]
    if way == "a file":
        said = [*said, BinaryContent(data=b"%PDF " + PLANTED.encode(), media_type="application/pdf")]
    with home.session(scope=Scope.MAIN) as session:
        tools = [fetch] if way == "another tool" else []
        agent = Agent(FunctionModel(stream_function=obedient), tools=tools, capabilities=[Lodging(session)])
        if way == "instructions":
            agent.instructions(lambda: PLANTED)
        asyncio.run(agent.run(said, message_history=WAYS[way]))
        assert session.tainted
    assert PLANTED not in shown(home) and [each.entry.text for each in home.inbox.noted()] == [f"- {PLANTED}\n"]


def test_a_conversation_that_the_session_saw_goes_on_clean_however_it_was_kept(home: Home) -> None:
    with home.session(scope=Scope.MAIN) as session:
        lodging = Lodging(session)
        agent = Agent(FunctionModel(stream_function=obedient), instructions="Be brief.", capabilities=[lodging])
        done = asyncio.run(
            agent.run("Remember who keeps the books, and my token ghp_0123456789abcdefghijABCDEFGHIJ456789")
        )
        need("memory_write" in str(done.all_messages()), "it calls a tool of ours")
        kept = ModelMessagesTypeAdapter.validate_json(done.all_messages_json())
        asyncio.run(agent.run("And now?", message_history=kept))
        other = Agent(FunctionModel(stream_function=obedient), capabilities=[Lodging(session)])
        asyncio.run(other.run("And here?", message_history=past(session)))
        assert not session.tainted


def test_own_tools_and_a_tool_that_was_made_up_leave_a_conversation_clean(home: Home) -> None:
    async def confused(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        name = {1: "no_such_tool", 3: "fetch"}.get(len(messages))
        if name:
            yield {0: DeltaToolCall(name=name, json_args="{}", tool_call_id=name)}
        else:
            yield "done"

    site = home.site
    with Home.open(site.store.name, clock=Clock(), settings={"own_tools": ["fetch"]}) as again:
        with again.session(scope=Scope.MAIN) as session:
            agent = Agent(
                FunctionModel(stream_function=confused), tools=[fetch], capabilities=[Lodging(session)], retries=3
            )
            asyncio.run(agent.run("hello"))
            assert not session.tainted


@pytest.mark.parametrize("service", ["openai-chat", "openai", "anthropic"])
def test_a_server_on_this_machine_is_asked_past_every_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    with ModelServer([Spoken("Hello.")]) as server, ModelServer() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        models, url = Models(tmp_path, {}), server.url.removesuffix("/v1") if service == "anthropic" else server.url
        chosen = models.use(f"{service}:loopback", url=url, key=server.key)
        assert asyncio.run(asked_once(models.made(chosen), "hello")) == "Hello."
        assert len(server.requests) == 1 and not proxy.requests


def test_nobody_speaks_in_a_conversation_of_somebody_else(home: Home) -> None:
    with home.session(scope=Scope.MAIN, channel="telegram", sender="666") as session:
        session.log("user", "hello")
    for id in ("last", session.id):
        with pytest.raises(NoSuchSession), begun(home, id, "practice", is_clean=True):
            pass
    with begun(home, None, "practice", is_clean=True) as mine:
        mine.log("user", "hello")
    with begun(home, "last", "practice", is_clean=True) as again:
        assert again.id == mine.id and again.listener.is_owner


def test_no_to_an_agent_that_calls_itself_no_is_a_no(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def keep() -> tuple[()]:
        done.append("kept")
        return ()

    monkeypatch.setattr("click.prompt", lambda *given, **more: "drop")
    chat = _Chat.__new__(_Chat)
    chat._out = console()
    chat._decided("identity", keep, lambda: done.append("dropped"), "Drop")
    assert done == ["dropped"]


def test_a_helper_that_is_taken_up_counts_for_what_its_caller_read(tmp_path: Path) -> None:
    with Home.create(tmp_path / "aria", name="Aria", clock=Clock(), settings={"gate.preset": "open"}) as home:
        with home.session(scope=Scope.MAIN) as session:
            session.log("user", "hello")
            helpers = [session.sub(), session.sub()]
            for helper in helpers:
                helper.call("who_am_i")
                helper.leave()
            with home.resume(helpers[0].id) as clean:
                assert not clean.tainted
            session.log("tool", PLANTED)
            with home.resume(helpers[1].id) as helper:
                told(helper, "memory_write", target="memory", content=PLANTED)
                assert helper.tainted
        assert PLANTED not in shown(home)


# -- where a line is put ---------------------------------------------------------------------------------------------------


def test_a_flush_puts_no_line_under_a_shared_heading(home: Home) -> None:
    home.note("fed the cat")
    home.append(LOG, SHARED)
    with home.session(scope=Scope.MAIN) as session:
        session.log("user", "Remember that the spare key is in the blue drawer")
        need(session.flush("cut").lines, "something is worth a line")
    assert "blue drawer" in home.read(LOG).text
    with home.session(scope=Scope.GROUP) as group:
        assert "nine" in told(group, "memory_get", path=LOG) and "drawer" not in told(group, "memory_get", path=LOG)


@pytest.mark.parametrize("scope", [Scope.GROUP, Scope.CRON])
@pytest.mark.parametrize("target", ["daily_log", LOG, "memory", "notes/x.md"])
def test_the_name_of_a_noted_line_tells_nothing_of_what_stands_there(tmp_path: Path, scope: Scope, target: str) -> None:
    answers = []
    for name, hidden in (("a", SHARED.replace("share: group", "private")), ("b", PLAIN)):
        with Home.create(tmp_path / name, name="Aria", clock=Clock()) as home:
            home.note("fed the cat")
            for path in (LOG, "MEMORY.md", "notes/x.md"):
                home.append(path, hidden)
            with home.session(scope=scope) as session:
                answers.append(told(session, "memory_write", target=target, content="- a ladder\n- a rope"))
    need('"noted"' in answers[0], "it is noted")
    assert answers[0] == answers[1]


# -- names -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["$(touch pwned)", "`touch pwned`", ";touch pwned;", "a b", "a'b", "~"])
def test_a_shell_is_proposed_no_name_that_is_a_command(home: Home, name: str) -> None:
    with home.session(scope=Scope.MAIN, channel="telegram", sender="666") as session:
        for each in (name, "café-plan"):
            answer = told(session, "memory_write", target=f"users/telegram.666/{each}.md", content="x")
            need('"written"' in answer, f"others choose names: {answer}")
    asked = {"_ANIMA_COMPLETE": "bash_complete", "COMP_WORDS": "anima read users/", "COMP_CWORD": "2"}
    found = subprocess.run(
        [sys.executable, "-m", "anima"],
        cwd=home.name,
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split("\n")[:-1] == ["plain,users/telegram.666/café-plan.md"]


# -- what is kept of the past ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["history", "a recorded search", "a recorded page", "a recorded write"])
def test_a_purge_leaves_no_half_of_a_line_where_something_was_cut(home: Home, way: str) -> None:
    secret = "Zanzibar is where the boat lies in winter, and the key of the green barn is under the third stone from the left"
    home.remember(secret)
    for n in range(12):
        home.remember(f"The boat number{n} lies " + " ".join(f"w{n}x{k}" for k in range(40)))
    with home.session(scope=Scope.MAIN) as session:
        session.log("user", "where is it?")
        if way == "a recorded search":
            session.call("memory_search", {"query": "boat", "limit": 20})
        elif way == "a recorded page":
            session.call("memory_get", {"path": "MEMORY.md"})
        elif way == "a recorded write":
            long = "word " * 110 + secret + " word" * 400  # so that the record is cut within it
            told(session, "memory_write", target="notes/long.md", content=long, append=False)
        words = "".join(turn.text for turn in home.sessions.read(session.id).entries)
        need(way == "history" or "Zanzibar" in words, "it is on record")
    home.forget(text=secret, purge=True)
    left = home.sessions.read(session.id).entries
    assert "Zanzibar" not in "".join(turn.text for turn in left) and "where is it?" in [turn.content for turn in left]
    assert not [each.subject for each in home.past.log() if "Zanzibar" in each.subject]
