"""The command `say`: one turn of a conversation, for scripts."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from anima.agent import PRACTICE
from anima.cli.command import AGENT, HOME, JSON, Reply, argument, command, is_owner, need_trust, option
from anima.cli.sessions import listed_as
from anima.cli.show import flat, inert, patient, whisper
from anima.errors import BadArguments, Refused
from anima.model import Scope

if TYPE_CHECKING:
    from anima import Home, Session
    from anima.agent.conversation import Answered, Happening
    from anima.agent.models import Models

CHANNEL = "chat"
MODEL = option("--model", metavar="NAME", help="A model of anima model, for this once.")
SESSION = option(
    "--session", metavar="ID", help="Go on with this conversation, or the beginning of its id; `last` for the latest."
)


@command(
    argument("text", help="What to say; - reads it from standard input."),
    SESSION,
    MODEL,
    AGENT,
    HOME,
    JSON,
)
def say(home: Home, text: str, session: str | None, model: str | None, as_owner: bool) -> Reply:
    """Say something to the agent and print its answer. A new conversation, unless --session names one.

    On a pipe or in a script it counts as said by an agent whose conversation nobody saw, unless you say --as-owner.

    \b
    anima say "what do you know about the boat?"
    anima say "and where is it?" --session last
    cat report.txt | anima say - --model openai:gpt-5 --json
    """
    said = sys.stdin.read() if text == "-" else text
    if not said.strip():
        raise BadArguments("there is nothing to say", hint='anima say "hello"')
    if not said.isascii() and said.encode("utf-8", "replace").decode() != said:
        raise BadArguments("what is said holds half a character (a lone surrogate)", hint="write it as UTF-8")
    models, name = chosen(home, model)
    with begun(home, session, name, is_clean=is_owner(as_owner)) as talk:
        with nullcontext() if name == PRACTICE else patient(f"{name} is thinking"):
            answer = asyncio.run(_turn(talk, models, name, said))
        waiting = [each.id for each in home.inbox.all() if each.session == talk.id]
        value = {"session": talk.id, "model": name, "text": answer.text, "calls": answer.calls, "early": answer.early}
        value |= {"tokens": {"input": answer.input_tokens, "output": answer.output_tokens}, "waiting": waiting}

    def show() -> None:
        sys.stdout.write(inert(answer.text).rstrip("\n") + "\n")
        if waiting:
            whisper(f"anima: waits for you: {', '.join(waiting)}; anima review shows it")

    return Reply(value, show)


def chosen(home: Home, name: str | None) -> tuple[Models, str]:
    """The user's models, and the name of the one that is meant. Raises MissingExtra and BadArguments."""
    from anima.agent import need_chat
    from anima.agent.models import Models

    need_chat()
    need_trust(home, may_ask=True)
    models = Models.of(home)
    return models, models.choice(name).name


def meant(home: Home, id: str) -> str:
    """The id of a conversation of the owner's own: in one with somebody else they would speak as that person."""
    own = home.sessions.asker(home.site.listener(Scope.MAIN))
    rows = home.sessions.list(replace(own, scopes=frozenset({str(Scope.MAIN)})))
    return listed_as([row for row in rows if id != "last" or row.source_plugin == CHANNEL], id).id


@contextmanager
def begun(home: Home, id: str | None, model: str, *, is_clean: bool) -> Iterator[Session]:
    """A conversation, begun or taken up; left open for whoever goes on with it."""
    if id is not None:
        session = home.resume(meant(home, id), model=model)
        if not is_clean and session.guest is None:
            session.leave()
            raise Refused(
                "this conversation is the owner's, and nobody is at a terminal; nothing was said",
                rule="terminal",
                hint="leave --session out, or say --as-owner if you are the owner",
            )
    else:
        guest = None if is_clean else ("anima say", "")
        session = home.sessions.begin(scope=Scope.MAIN, channel=CHANNEL, model=model, guest=guest)
    try:
        yield session
        session.flush("said")
    finally:
        session.leave()


def gone_on(home: Home, id: str) -> None:
    """Lets a conversation go on whose calls the owner decided; what is said then goes beside, on standard error."""
    if home.sessions.get(id).scope != Scope.MAIN or home.sessions.get(id).layer:
        whisper("anima: it is made when that conversation goes on")
        return
    models, name = chosen(home, None)
    with begun(home, id, name, is_clean=True) as talk:
        answer = asyncio.run(_turn(talk, models, name, ""))
    whisper(inert(answer.text).rstrip("\n"))


async def _turn(session: Session, models: Models, name: str, text: str) -> Answered:
    from anima.agent.conversation import Conversation

    async with Conversation(session, models.named(name), heard=_told, made=models.named) as conversation:
        return await conversation.turn(text)


def _told(what: Happening) -> None:
    """Calls as quiet lines, beside the answer."""
    if what.kind == "tool":
        whisper(quiet(what))
    elif what.kind == "compaction":
        whisper(f"· the conversation was shortened: {what.text}")
    elif what.kind == "notice":
        whisper(f"· {flat(what.text)}")


def quiet(what: Happening) -> str:
    """A call on one line."""
    given = ", ".join(f"{key}: {value}" for key, value in what.data.items() if value not in ("", None))
    return f"· {flat(what.name)}  {flat(' '.join(given.split()))[:100]}"
