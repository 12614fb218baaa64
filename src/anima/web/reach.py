"""The parts of a home that this room looks into: the one module of it that reaches past `Home`.

Promise: looking begins nothing where nothing was ever written. Not here: what a page makes of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, tzinfo
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

from anima import (
    Figures,
    Home,
    Remark,
    Scope,
)
from anima.sessions.replay import time_of as time_of

if TYPE_CHECKING:
    from anima.search.current import IndexReport
    from anima.search.graph import About, Graph
    from anima.sessions.find import Mentions, Rows
    from anima.sessions.sessions import Sessions


def credentials_folder(home: Home) -> Path:
    """Where the credentials of a served home lie: in the user's own configuration."""
    from anima.layout.trust import served

    return served(home.env, home.root)


class Reach:
    """What is behind one home."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self._graph: tuple[str, int, Graph] | None = None

    def now(self) -> datetime:
        return self.home.site.now()

    def today(self) -> date:
        return self.home.site.today()

    def zone(self) -> tzinfo | None:
        return self.home.site.zone()

    def commit(self) -> None:
        if self.home.books.begun:
            self.home.books.commit()

    # -- what happens ---------------------------------------------------------------------------------------------------

    def watch(self, stop: Event) -> Iterator[IndexReport]:
        return self.home.index.watch(stop)

    def stamp(self) -> str:
        """Differs when a document, the ledger or the day does. No file is opened for it."""
        made = hashlib.sha256(f"{self.home.past.size()} {self.today()}".encode())
        for entry in self.home.list_all():
            made.update(f"{entry.path}\0{entry.size}\0{entry.time.timestamp()}\n".encode("utf-8", "surrogatepass"))
        return made.hexdigest()

    # -- names ----------------------------------------------------------------------------------------------------------

    def graph(self, most: int) -> Graph:
        """Who and what the home speaks of; made again when something changed."""
        stamp, held = self.stamp(), self._graph
        if held is None or held[:2] != (stamp, most):
            held = self._graph = (stamp, most, self.home.index.graph(self.home.listener(scope=Scope.MAIN), most=most))
        return held[2]

    def about(self, name: str, *, limit: int) -> About:
        return self.home.index.about(name, self.home.listener(scope=Scope.MAIN), limit=limit)

    # -- sessions -------------------------------------------------------------------------------------------------------

    @property
    def talks(self) -> Sessions | None:
        """What was said; None where no transcripts are kept."""
        return self.home.sessions if self.home.sessions.kept else None

    def sessions(self, *, scope: Scope | None, limit: int | None = None) -> Rows:
        """Every session of this agent's, the latest first."""
        talks = self.home.sessions
        return talks.list(replace(talks.owner(), scopes=_only(scope)), limit)

    def find_said(self, query: str, *, scope: Scope | None, limit: int) -> Mentions:
        """Entries of sessions that hold the words."""
        talks = self.home.sessions
        return talks.find(query, replace(talks.owner(), scopes=_only(scope)), limit=limit, max_chars=300)

    # -- dreams ---------------------------------------------------------------------------------------------------------

    @property
    def memory_budget(self) -> int:
        from anima.dream.material import BUDGET

        return BUDGET

    @property
    def diary_opening(self) -> str:
        from anima.dream.diary import OPENING

        return OPENING

    # -- upkeep ---------------------------------------------------------------------------------------------------------

    def figures(self) -> Figures:
        return self.home.upkeep.numbers()

    def look_at_health(self) -> list[Remark]:
        from anima.upkeep.health import look

        return look(self.home)

    def snapshot_place(self) -> str:
        return self.home.config.snapshot.dir or ".anima/snapshots"

    def next_snapshot(self) -> datetime | None:
        from anima.dream.when import following

        at = self.home.config.snapshot.at
        return following(at, str(self.zone() or "UTC"), self.home.clock()) if at else None


def _only(scope: Scope | None) -> frozenset[str] | None:
    return frozenset({str(scope)}) if scope else None
