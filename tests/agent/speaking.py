"""What the tests of the agent share: a home, a model server, and a conversation between them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from anima import Home, Scope, Session
from anima.agent.conversation import Answered, Conversation, Happening
from anima.agent.models import Models
from anima.testing.models import ModelServer

SERVICES = ("openai-chat", "openai", "anthropic")


def made(tmp_path: Path, **more: Any) -> Home:
    return Home.create(tmp_path / "home", name="Aria", **more)


def choose(home: Home, server: ModelServer, service: str = "openai-chat") -> Models:
    """The server as the model that this user chose."""
    models = Models.of(home)
    url = server.url.removesuffix("/v1") if service == "anthropic" else server.url
    models.use(f"{service}:loopback", url=url, key=server.key)
    return models


def talk(
    home: Home,
    models: Models,
    lines: Sequence[str],
    *,
    session: Session | None = None,
    heard: Callable[[Happening], None] = lambda what: None,
) -> list[Answered]:
    """Says some lines in one session, which is left open where it was given."""

    async def said(session: Session) -> list[Answered]:
        async with Conversation(session, models.made(models.choice()), heard=heard) as conversation:
            return [await conversation.turn(line) for line in lines]

    if session is not None:
        return asyncio.run(said(session))
    with home.session(scope=Scope.MAIN, channel="chat") as own:
        return asyncio.run(said(own))
