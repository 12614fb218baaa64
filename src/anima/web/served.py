"""What a request needs: the home that is served, its credentials, its news, and the conversations of its agents.

Promise: an agent's conversation outlives its requests, so that what it read taints what it writes later. Lives as long
as the application. Not here: routes (api, agents, pages).
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from typing import Annotated

from fastapi import Depends, Request

from anima.errors import Refused
from anima.home import Home
from anima.model import Scope
from anima.sessions.listing import Listed
from anima.sessions.session import Session
from anima.upkeep.damages import Remark
from anima.web.events import Bulletin
from anima.web.guard import Limits, who_of
from anima.web.tidy import Tidiness
from anima.web.tokens import Keyring, Pass

MOST_SESSIONS = 256
QUICK = 0.5  # seconds: a look that takes no longer is done whenever somebody asks


class Served:
    """One home as the web face holds it. Safe to share by threads."""

    def __init__(self, home: Home, *, keyring: Keyring, limits: Limits, bulletin: Bulletin) -> None:
        self.home, self.keyring, self.limits, self.bulletin = home, keyring, limits, bulletin
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._mutex = threading.RLock()
        self._looked: tuple[list[Remark], float, float] = ([], 0.0, 0.0)  # what a look told, when, and what it cost
        self._looking = threading.Lock()
        self.tidiness = Tidiness(home)
        self.snapping = threading.Lock()  # held while a snapshot is taken that somebody asked for

    # -- health ---------------------------------------------------------------------------------------------------------

    def remarks(self) -> list[Remark]:
        """What a look at the home tells. Where that takes long, it is done again only after twenty times as long."""
        from anima.upkeep.health import look

        with self._looking:
            remarks, at, cost = self._looked
            if cost <= QUICK or time.monotonic() - at > 20 * cost:
                began = time.monotonic()
                remarks = look(self.home)
                self._looked = (remarks, time.monotonic(), time.monotonic() - began)
            return remarks

    # -- conversations of agents ----------------------------------------------------------------------------------------

    def scope_of(self, who: Pass) -> Scope:
        """The scope of an agent's token. Raises Refused for the owner's, which has none."""
        if who.scope is None:
            raise Refused(
                "tools belong to an agent's token, and this one is the owner's",
                rule="agent-only",
                hint="make one: anima token make --scope main",
            )
        return who.scope

    def session_of(self, who: Pass) -> Session:
        """The conversation that goes on with a token; begun when there is none."""
        with self._mutex:  # held while one begins, so that two first calls share it
            if who.id not in self._open:
                return self.new_session(who)
            self._open.move_to_end(who.id)
            return self._open[who.id]

    def new_session(self, who: Pass) -> Session:
        """A new conversation in the place of the one before, if there was one."""
        begun = self.home.session(scope=self.scope_of(who), sender=who.sender, channel="http")
        with self._mutex:
            ended = [found for found in (self._open.pop(who.id, None),) if found]
            self._open[who.id] = begun
            if len(self._open) > MOST_SESSIONS:
                ended.append(self._open.popitem(last=False)[1])
        for session in ended:
            session.close()
        return begun

    def close(self) -> None:
        """Ends every conversation."""
        with self._mutex:
            ended, self._open = list(self._open.values()), OrderedDict()
        for session in ended:
            session.close()

    # -- transcripts ----------------------------------------------------------------------------------------------------

    def sessions(self, *, limit: int | None = None) -> Sequence[Listed]:
        """Every session of this agent's, the latest first; none where transcripts are switched off."""
        talks = self.home.transcripts if self.home.config.sessions.dir else None
        return talks.rows(talks.owner(), limit) if talks else ()


async def _served(request: Request) -> Served:
    found: Served = request.app.state.served
    return found


async def _home(request: Request) -> Home:
    found: Served = request.app.state.served
    return found.home


async def _me(request: Request) -> Pass:
    return who_of(request.scope)


Here = Annotated[Served, Depends(_served)]
TheHome = Annotated[Home, Depends(_home)]
Me = Annotated[Pass, Depends(_me)]
