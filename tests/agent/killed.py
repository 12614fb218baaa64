"""A conversation in a process of its own that may be killed at any moment, and what a person does then: they come back and
say "go on"."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from anima import Home, Scope
from anima.agent.conversation import Conversation, ModelDown
from anima.agent.models import Models

GO_ON = "Please go on."
PADDING = "and so it was, " * 60


def line(number: int) -> str:
    """What the person says in a turn: a marked fact, and much else."""
    return f"Task {number}: remember that item {number} is coloured c{number}. {PADDING}"


def hold(place: str, config: str, turns: int) -> None:
    """Goes on with the one conversation of a home until so many lines were said and answered. Exits with 0 then."""
    os.environ["ANIMA_CONFIG"] = config
    with Home.open(place) as home:
        rows = home.sessions.list()
        session = home.resume(rows[0].id) if rows else home.session(scope=Scope.MAIN, channel="chat")
        said = (
            [t.content for t in home.sessions.read(session.id, limit=10**6).entries if t.role == "user"] if rows else []
        )
        done = sum(text.startswith("Task ") for text in said)
        models = Models.of(home)
        with (Path(place).parent / "prompts").open("a", encoding="utf-8") as prompts:
            prompts.write(session.prompt.text + "\0")
        asyncio.run(_talked(Conversation(session, models.made(models.choice())), done, turns))
        session.close()


async def _talked(conversation: Conversation, done: int, turns: int) -> None:
    async with conversation:
        if done:
            await conversation.turn(GO_ON)
        for number in range(done, turns):
            try:
                await conversation.turn(line(number))
            except ModelDown:
                await conversation.turn(GO_ON)
