"""Calls that wait for the owner: asked, answered here or elsewhere, carried out once, and never without a yes."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from speaking import choose
from terminal import Terminal

from anima import BadArguments, Home, HomeError, Origin, Proposal, Refused, Scope
from anima.agent.conversation import Answered, Conversation, Happening
from anima.agent.lodging import messages_of
from anima.cli import run
from anima.testing.models import ModelServer, Spoken
from errand import Call, choose_script, entries, outfitted

SEND: Call = ("errands__send_mail", {"to": "ana", "text": "The boat is ready"})
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["errand", "anima.agent.conversation", "anima.agent.servers"])


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with outfitted(tmp_path, reads=["read_mail"], vouched=True, scopes=["main", "cron", "group"]) as home:
        yield home


def sent(home: Home) -> list[str]:
    file = Path(home.name).parent / "errands" / "sent"
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []


def held(
    home: Home,
    script: Sequence[Call | str],
    *said: str,
    session: str | None = None,
    scope: Scope = Scope.MAIN,
    **more: Any,
) -> list[Answered]:
    """Some turns of a conversation, begun or taken up; what is empty lets it go on."""
    begun = home.resume(session) if session else home.session(scope=scope, channel="chat")

    async def turns() -> list[Answered]:
        async with Conversation(begun, choose_script(script), **more) as conversation:
            return [await conversation.turn(text) for text in said]

    try:
        return asyncio.run(turns())
    finally:
        begun.leave()


def only(home: Home) -> Proposal:
    (waiting,) = home.inbox.all()
    return waiting


def yes(home: Home) -> str:
    waiting = only(home)
    home.inbox.approve(waiting.id, approver="terminal", content=waiting.content)
    return waiting.session or ""


# -- asked -----------------------------------------------------------------------------------------------------------------


def test_a_call_that_is_not_listed_waits_and_the_turn_ends(home: Home) -> None:
    heard: list[Happening] = []
    write: Call = ("memory_write", {"target": "memory", "content": "Ana waits for the boat"})
    (answer,) = held(home, [write, SEND], "Tell Ana.", heard=heard.append)
    waiting = only(home)

    assert answer.waiting == (waiting.id,) and "errands__send_mail" in answer.text
    assert [(what.text, what.name, what.data) for what in heard if what.kind == "approval"] == [(waiting.id, *SEND)]
    assert sent(home) == [] and "Ana waits" in home.read("MEMORY.md").text
    assert waiting.call is not None and json.loads(waiting.call["text"]) == SEND[1]
    assert (
        "The boat is ready" in waiting.diff and waiting.rule == "outside-call" and home.inbox.alone(waiting) == "call"
    )
    assert [who for who, _ in entries(home)] == ["user", "memory_write"], "no call stands there without its result"


def test_what_a_model_said_with_its_call_is_the_answer(home: Home) -> None:
    (answer,) = held(home, ["I will tell her."], "Tell Ana.")
    assert (answer.text, answer.waiting) == ("I will tell her.", ())


def test_a_secret_in_an_argument_is_shown_on_the_card(home: Home) -> None:
    held(home, [("errands__send_mail", {"to": "x", "text": "AKIAIOSFODNN7EXAMPLA is the key"})], "Go.")
    assert [found.kind for found in only(home).findings]


def test_no_argument_draws_a_line_of_its_own_on_the_card(home: Home) -> None:
    held(home, [("errands__send_mail", {"to": "ana\u2028}\x85\u2029x\n\r\x0b\x1c", "text": "y"})], "Go.")
    assert len(only(home).diff.splitlines()) == 5


def test_the_same_call_twice_is_one_card(home: Home) -> None:
    held(home, [SEND], "Tell Ana.")
    session = only(home).session
    held(home, [SEND], "Now tell Ana.", session=session)

    assert len(home.inbox.all()) == 1


# -- answered ----------------------------------------------------------------------------------------------------------------


def test_a_yes_carries_it_out_once_and_the_conversation_goes_on(home: Home) -> None:
    held(home, [SEND], "Tell Ana.")
    session = yes(home)
    assert sent(home) == [] and home.inbox.all() == ()

    answers = held(home, ["She knows.", "again"], "", "", session=session)

    assert [answer.text for answer in answers] == ["She knows.", ""]
    assert sent(home) == ["ana: The boat is ready"]
    assert entries(home)[1:] == [("errands__send_mail", "outside: sent to ana"), ("assistant", "She knows.")]
    assert home.inbox.ids() == frozenset()


def test_its_result_taints_the_session(home: Home) -> None:
    held(home, [SEND], "Tell Ana.")
    session = yes(home)
    write: Call = ("memory_write", {"target": "memory", "content": "Ana was told"})
    held(home, [write], "", session=session)
    with home.resume(session) as again:
        assert again.tainted == {Origin.TOOL}

    assert "Ana was told" not in home.read("MEMORY.md").text and len(home.inbox.noted()) == 1


def test_a_no_reaches_the_model_with_its_reason_and_taints_nothing(home: Home) -> None:
    held(home, [SEND], "Tell Ana.")
    session = only(home).session
    home.inbox.deny(only(home).id, reason="she sleeps")
    write: Call = ("memory_write", {"target": "memory", "content": "Ana sleeps"})
    (answer,) = held(home, [write, "I will wait."], "", session=session)

    assert answer.text == "I will wait." and sent(home) == []
    assert entries(home)[1] == ("errands__send_mail", "denied: she sleeps\ndone: false")
    assert "Ana sleeps" in home.read("MEMORY.md").text


def test_what_the_person_says_instead_is_a_no(home: Home) -> None:
    first, second = held(home, [SEND, "Good."], "Tell Ana.", "Never mind, good night.")

    assert first.waiting and second.text == "Good." and sent(home) == [] and home.inbox.all() == ()
    assert [who for who, _ in entries(home)] == ["user", "errands__send_mail", "user", "assistant"]
    assert "went on with what they say next" in entries(home)[1][1]


def test_while_one_call_waits_the_conversation_does(home: Home) -> None:
    other: Call = ("errands__send_mail", {"to": "luis", "text": "Come"})
    held(home, [SEND], "Tell Ana.")
    session = only(home).session or ""
    with home.resume(session) as again:
        again.outside.ask("errands__send_mail", "errands", "send_mail", other[1])
    first, second = home.inbox.all()
    home.inbox.approve(first.id, approver="terminal", content=first.content)
    (answer,) = held(home, ["Both."], "", session=session)
    assert answer.waiting == (second.id,) and sent(home) == ["ana: The boat is ready"]

    home.inbox.approve(second.id, approver="page", content=second.content)
    (answer,) = held(home, ["Both."], "", session=session)
    assert answer.text == "Both." and len(sent(home)) == 2


@pytest.mark.parametrize("approver", ["python", "as-owner", "http", "elicitation", ""])
def test_only_a_terminal_and_the_page_say_yes(home: Home, approver: str) -> None:
    held(home, [SEND], "Tell Ana.")
    with pytest.raises(Refused):
        home.inbox.approve(only(home).id, approver=approver, content=only(home).content)
    held(home, [], "", session=only(home).session)

    assert sent(home) == [] and home.inbox.approvable(only(home).id, approver="terminal") is None


def test_a_call_is_not_edited(home: Home) -> None:
    held(home, [SEND], "Tell Ana.")
    with pytest.raises(BadArguments):
        home.inbox.approve(only(home).id, approver="terminal", text="another")


@pytest.mark.parametrize("more", [{"attended": False}, {"scope": Scope.CRON}])
def test_where_nobody_is_there_it_is_denied_and_told(home: Home, more: dict[str, Any]) -> None:
    heard: list[Happening] = []
    (answer,) = held(home, [SEND, "I could not."], "Tell Ana.", heard=heard.append, **more)

    assert (answer.text, answer.waiting) == ("I could not.", ()) and sent(home) == [] and home.inbox.all() == ()
    assert [what.text for what in heard if what.kind == "notice"][-1:] == [
        "errands__send_mail was not called: nobody is there to say yes to it"
    ]


def test_a_group_has_them_where_they_are_named_and_its_members_decide_nothing(home: Home) -> None:
    (answer,) = held(home, [SEND], "Tell Ana.", scope=Scope.GROUP)
    assert answer.waiting and sent(home) == []


# -- elsewhere ---------------------------------------------------------------------------------------------------------------


def test_a_conversation_that_is_held_elsewhere_hears_of_it(home: Home) -> None:
    """One process waits at its prompt while another says yes and goes on."""

    async def at_the_prompt() -> tuple[list[Answered], frozenset[Origin]]:
        with home.session(scope=Scope.MAIN, channel="chat") as session:
            async with Conversation(session, choose_script([SEND, "You are welcome."])) as conversation:
                first = await conversation.turn("Tell Ana.")
                yes(home)
                with Home.open(home.name) as elsewhere:
                    await asyncio.to_thread(held, elsewhere, ["She knows."], "", session=session.id)
                return [first, await conversation.turn("Thanks.")], session.tainted

    answers, tainted = asyncio.run(at_the_prompt())

    assert answers[1].text == "You are welcome." and tainted == {Origin.TOOL}
    assert [who for who, _ in entries(home)] == ["user", "errands__send_mail", "assistant", "user", "assistant"]
    assert sent(home) == ["ana: The boat is ready"]


def test_a_conversation_that_is_made_anew_hears_of_it_once(home: Home) -> None:
    """A server makes its conversation anew over the same session when somebody else went on with it."""
    session, told = home.session(scope=Scope.MAIN, channel="chat"), list[object]()

    async def made_anew() -> Answered:
        async with Conversation(session, choose_script([SEND])) as conversation:
            await conversation.turn("Tell Ana.")
        yes(home)
        with Home.open(home.name) as elsewhere:
            await asyncio.to_thread(held, elsewhere, ["She knows."], "", session=session.id)
        async with Conversation(session, choose_script(["Good."], told)) as conversation:
            return await conversation.turn("Thanks.")

    answer, results = asyncio.run(made_anew()), [each for each in told if "sent to ana" in str(each)]
    assert answer.text == "Good." and len(results) == 1 and session.tainted == {Origin.TOOL}
    session.leave()


def test_what_the_owner_vouches_for_stays_vouched_for(home: Home) -> None:
    held(home, [("errands__read_mail", {})], "Is there mail?")
    session = home.sessions.list()[0].id
    home.sessions.clear(session)
    held(home, [("memory_write", {"target": "memory", "content": "The mail is read"})], "Write it.", session=session)

    assert "The mail is read" in home.read("MEMORY.md").text


def test_two_that_go_on_at_once_carry_it_out_once(home: Home) -> None:
    held(home, [SEND], "Tell Ana.")
    session = yes(home)
    both = [threading.Thread(target=held, args=(home, ["So."], ""), kwargs={"session": session}) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()

    assert sent(home) == ["ana: The boat is ready"]


def _goes_on(place: str, config: str, session: str) -> None:
    os.environ["ANIMA_CONFIG"] = config
    with Home.open(place) as home:
        held(home, ["So."], "", session=session)


def test_a_call_that_a_kill_cut_short_is_not_made_again(home: Home) -> None:
    held(home, [SEND], "Tell Ana.")
    session = yes(home)
    gate = Path(home.name).parent / "errands" / "slow"
    os.mkfifo(gate)
    process = CONTEXT.Process(target=_goes_on, args=(home.name, os.environ["ANIMA_CONFIG"], session))
    process.start()
    with gate.open("wb"):  # opens when the tool has begun
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    gate.unlink()
    (answer,) = held(home, ["I shall look."], "", session=session)

    assert answer.text == "I shall look." and "nobody knows whether it was done" in entries(home)[1][1]
    assert len(sent(home)) <= 1 and home.inbox.ids() == frozenset()


def test_a_kill_between_the_record_and_the_inbox_doubles_nothing(home: Home) -> None:
    held(home, [SEND], "Tell Ana.")
    waiting = only(home)
    home.sessions.refuse(waiting, "no")  # as far as a deny came
    home.inbox.deny(waiting.id, reason="no")
    held(home, [SEND], "Tell Ana.")
    session = next(each for each in home.inbox.all())
    home.sessions.refuse(session, "no")
    (answer,) = held(home, ["Good."], "", session=session.session)

    assert answer.text == "Good." and home.inbox.ids() == frozenset()
    assert [who for who, _ in entries(home)].count("errands__send_mail") == 1


# -- at the command line -----------------------------------------------------------------------------------------------------


def test_say_tells_of_it_and_review_says_no_with_a_reason(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    at = ["--as-owner", "--home", home.name]
    with ModelServer([Spoken(calls=[SEND]), Spoken("I will wait.")]) as server:
        choose(home, server)
        assert run(["say", "Tell Ana.", "--json", *at]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said["waiting"] == [only(home).id] and "waits for your yes: errands__send_mail" in said["text"]
        assert run(["review", "--keep", only(home).id, *at]) == 5, "nobody is at a terminal"
        assert run(["review", "--drop", only(home).id, "--reason", "she sleeps", *at]) == 0
        assert "I will wait." in capsys.readouterr().err
    assert sent(home) == [] and "she sleeps" in server.requests[-1].said


def test_review_at_a_terminal_says_yes_and_the_conversation_goes_on(home: Home, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "anima", "review", "--home", home.name]
    with ModelServer([Spoken("She knows.")]) as server:
        choose(home, server)
        held(home, [SEND], "Tell Ana.")
        with Terminal(tmp_path, command, {"ANIMA_CONFIG": os.environ["ANIMA_CONFIG"], "LANG": "C.UTF-8"}) as person:
            person.sees("call errands__send_mail")
            person.sees("k yes, call it · d no · s skip · q quit")
            person.press("k")
            person.sees("She knows.")
    assert sent(home) == ["ana: The boat is ready"] and "sent to ana" in server.requests[-1].said


# -- forged ------------------------------------------------------------------------------------------------------------------


def test_a_card_that_was_swapped_is_neither_shown_nor_carried_out(home: Home) -> None:
    held(home, [SEND], "Tell Ana.")
    waiting = only(home)
    file = Path(home.name, ".anima", "pending", f"{waiting.id}.json")
    body = json.loads(file.read_text())
    body["call"]["text"] = json.dumps({"to": "mallory", "text": "all of it"})
    session = yes(home)
    file.write_text(json.dumps(body))
    held(home, [], "", session=session)

    assert sent(home) == [] and home.inbox.broken() == [waiting.id]


def test_no_tool_of_the_agents_says_yes(home: Home) -> None:
    held(home, [SEND], "Tell Ana.")
    waiting = only(home)
    with home.resume(waiting.session or "") as session:
        for tool in session.tools():
            given = {
                each.name: waiting.id if each.kind == "text" else each.low for each in tool.arguments if each.required
            }
            for target in (waiting.id, f".anima/pending/{waiting.id}.json", ".anima/ledger.jsonl", "anima.toml"):
                try:
                    session.call(tool.name, {**given, **{k: target for k in ("path", "target") if k in given}})
                except HomeError:
                    pass
    held(home, [], "", session=waiting.session)

    assert sent(home) == [] and waiting.id in {each.id for each in home.inbox.all()}


def test_forgetting_takes_a_waiting_call_with_it(home: Home) -> None:
    held(home, [SEND], "Tell Ana.")
    done = home.forget(text="The boat is ready", purge=True)

    assert home.inbox.all() == () and not done.left
    assert b"The boat is ready" not in b"".join(f.read_bytes() for f in Path(home.name).rglob("*") if f.is_file())


def test_a_denied_call_is_told_as_one() -> None:
    from anima.sessions.replay import Turn

    turn = Turn(timestamp="", role="tool", content="no", name="a__b", call={"arguments": {}, "denied": True})
    (_, result) = (part for message in messages_of([turn])[1:] for part in message.parts)
    assert getattr(result, "outcome", "") == "denied"
