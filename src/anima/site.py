"""The site of a home: what every room is given, and no verbs.

Promise: a value; what holds here holds for all rooms alike. Not here: how a site is found, made and opened (home.opening),
what may be done with an open home (home).
"""

from __future__ import annotations

import random
import re
import uuid
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date, datetime, tzinfo
from threading import Event
from typing import NamedTuple, Protocol

from anima.config import AgentConfig, Config
from anima.errors import BadArguments, BadConfig, HomeError, NoSuchDocument
from anima.layout import Layout, Listener, Policy, Row, group_layer, layer_of, person_of
from anima.layout.trust import Register
from anima.model import DocPath, Document, Scope
from anima.store import Rules, Store
from anima.text.dates import timezone


class Named(Protocol):
    """The documents of a home that is being opened, and what it is called."""

    @property
    def name(self) -> str: ...
    @property
    def identity(self) -> str: ...
    def read(self, path: DocPath) -> Document: ...
    def names(self, folder: str) -> tuple[str, ...]: ...
    def is_folder(self, actual: str) -> bool: ...


class World(NamedTuple):
    """What comes in by hand: time, chance and environment."""

    clock: Callable[[], datetime]
    dice: random.Random
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Site:
    """What every room is given: where things are and what holds here. No verbs."""

    store: Store
    layout: Layout
    config: Config
    clock: Callable[[], datetime]
    dice: random.Random
    agent: str
    detected_by: str  # why it is of this dialect
    env: Mapping[str, str]
    register: Register  # the user's list of homes
    beside: Callable[..., Site] | None = None  # opens the home of another `agent` of the same configuration
    ended: Event = field(default_factory=Event)  # that its home was closed

    def new_id(self) -> str:
        return str(uuid.UUID(int=self.dice.getrandbits(128), version=4))

    @property
    def own(self) -> AgentConfig:
        """What the configuration says of this agent."""
        return next((agent for agent in self.config.agent if agent.id == self.agent), AgentConfig(id=self.agent))

    def adopt(self, config: Config) -> None:
        """Holds another configuration from now on. Dialect, folders and embedder stay as they were when it was opened."""
        object.__setattr__(self, "config", config)

    def listener(
        self, scope: Scope | str, sender: str | None = None, channel: str | None = None, group: str | None = None
    ) -> Listener:
        """Whoever listens: in which scope, and in whose layer. Without a channel, a sender is a whole `channel:id`, and so
        is a group, whose conversation has the scope GROUP."""
        if group is not None and Scope.parse(scope) is not Scope.GROUP:
            raise BadArguments(f"a group listens in the scope group, not {scope}")
        if group is not None:
            return Listener(scope=Scope.GROUP, layer=group_layer(group, channel))
        person = person_of(sender, channel)
        return Listener(scope=Scope.parse(scope), layer=layer_of(person, self.config.owner), person=person)

    def now(self, listener: Listener | None = None) -> datetime:
        """The moment in the user's timezone; with a listener, in theirs."""
        return self.clock().astimezone(self.zone(listener))

    def today(self, listener: Listener | None = None) -> date:
        return self.now(listener).date()

    def text_of(self, path: DocPath) -> str | None:
        """The text of a document; None where there is none."""
        with suppress(NoSuchDocument):
            return self.store.documents.read(path).text
        return None

    def zone(self, listener: Listener | None = None) -> tzinfo | None:
        """The timezone: the configuration's, else the listener's USER.md's, else the owner's; None is the system's."""
        if self.config.timezone:
            return timezone(self.config.timezone)
        row = self.layout.row("user") if self.layout.has("user") else None
        for path in dict.fromkeys([listener.path_of(row) if listener else row.path, row.path] if row else ()):
            with suppress(HomeError):
                if zone := stated_zone(self.store.documents.read(DocPath.parse(path)).text):
                    return zone
        return None


def stated_zone(text: str) -> tzinfo | None:
    """The timezone a USER.md states, such as `- **Timezone:** America/Bogota`; the first that there is."""
    if not ("zone" in text or "Zone" in text or "ZONE" in text):
        return None
    line = r"^[ \t]*(?:[-*+][ \t]+)?[*_]*time[ -]?zone[*_]*[ \t]*[:：][*_ \t]*([A-Za-z][\w+/-]*)"
    for stated in re.finditer(line, text, re.I | re.M):
        with suppress(BadConfig):
            return timezone(stated[1])
    return None


def first_agent(config: Config) -> str:
    return config.agent[0].id if config.agent else "main"


def laid_out(layout: Layout, config: Config) -> Layout:
    """The dialect's table with what the configuration adds: the alternate soul's name, extra files, another folder for transcripts."""
    rows = []
    if config.persona.file != "SOUL_EVIL.md":
        rows.append(Row(role="alternate-soul", path=config.persona.file, policy=Policy.IDENTITY))
    for asked in config.prompt.additional:
        if layout.row_of(DocPath.parse(asked.path)).role == "note":
            rows.append(Row(role="note", path=asked.path, policy=Policy.ASK))  # every prompt holds it
    if config.sessions.dir not in ("", "sessions"):
        rows.append(Row(role="sessions", path=f"{config.sessions.dir}/", policy=Policy.CLOSED, kind="session"))
    if not rows:
        return layout
    taken = {row.role for row in rows} - {"note"}
    return replace(layout, others=(*(row for row in layout.others if row.role not in taken), *rows))


def rules_for(
    layout: Layout, config: Config, folder: Named, register: Register, *, clock: Callable[[], datetime], agent: str
) -> Rules:
    """What the configuration and the file table say that a store must know."""
    return Rules(
        clock=clock,
        author=agent,
        is_closed=lambda path: layout.row_of(path).policy is Policy.CLOSED,
        history=config.history.enabled,
        vouched=register.trusts(folder.name, folder.identity),
        head=register.head(folder.name, folder.identity),
        unkept=tuple(sorted({"sessions", config.sessions.dir or "sessions"})),  # what was said is not history's to keep
    )
