"""What homes of a database do while nobody asks: nights, rituals, and what sessions left; once, whatever servers there are.

Promise: the database hands a home to one server at a time, and what is done there has a lease with a number that only
rises, so that a server which was given up writes nothing more. A tenant's tokens are those of all its homes on all servers.
One home that fails stops no other. Not here: what is done (the home, agent.rituals), which homes are open (homes).
"""

from __future__ import annotations

import logging
import queue
import threading
from typing import TYPE_CHECKING

from anima.errors import HomeError
from anima.web.homes import ManyHomes, Woken
from anima.web.served import Served

if TYPE_CHECKING:
    from anima.home.folders import Fleet

log = logging.getLogger("anima.web")
THREADS = 4
EVERY = 5.0  # seconds between two questions whose time has come
SPAN = 120.0  # seconds for which nobody else is given a home; what takes longer has its own lease
SOON, LATER, DAY = 20.0, 600.0, 86_400.0  # until the next look: a schedule is on, a session may be left, nothing waits


class Waking:
    """The threads in which homes of a database do what they do by themselves. Lives from `start` to `stop`."""

    def __init__(self, homes: ManyHomes, fleet: Fleet) -> None:
        self._homes, self._fleet = homes, fleet
        self._stop, self._due = threading.Event(), queue.Queue[Woken | None](2 * THREADS)  # None: it is over
        self._threads = [threading.Thread(target=self._ask, name="anima-waking", daemon=True)]
        self._threads += [threading.Thread(target=self._work, name="anima-woken", daemon=True) for _ in range(THREADS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for _ in range(THREADS):
            self._due.put(None)
        for thread in self._threads:
            thread.join(timeout=10)

    def _ask(self) -> None:
        while not self._stop.wait(EVERY):
            try:
                for row in self._fleet.woken(THREADS - self._due.qsize(), SPAN):
                    self._due.put(Woken(*row))
            except HomeError as error:
                log.warning("nobody knows whose time has come: %s; trying again", error)

    def _work(self) -> None:
        while (woken := self._due.get()) is not None and not self._stop.is_set():
            try:
                self.look(woken)
            except Exception as error:
                log.error("a home could not be looked at: %s; trying again later", error, exc_info=True)

    def look(self, woken: Woken) -> None:
        """What a home has to do now; and when it is looked at next."""
        with self._homes.holding(woken) as served:
            home = served.home
            for chore in (home.past.commit, home.sessions.flush_idle, home.dream_if_due):
                try:
                    chore()
                except HomeError as error:
                    log.warning("a home could not do what it had to: %s; trying again later", error)
            is_on = self._rituals(served, woken)
            until = (home.dreams.coming() - home.clock()).total_seconds() if home.config.dream.enabled else DAY
            is_used = self._homes.is_used(woken.place)
        following = SOON if is_on else LATER if is_used else max(LATER, min(until, DAY))
        self._fleet.wake(woken.tenant, woken.agent, following, anew=True)

    def _rituals(self, served: Served, woken: Woken) -> bool:
        """Runs what is due of a schedule, with no more tokens than its tenant has left; whether there is one."""
        from anima.agent.schedule import state_of

        if not state_of(served.home.site.store).on:
            return False
        from anima.agent.rituals import Rituals

        used, most = self._fleet.count(woken.tenant, {}).get("tokens", (0, None))
        for done in Rituals(served.home, left=None if most is None else max(0, most - used)).round():
            self._fleet.count(woken.tenant, {"tokens": done.tokens})
            served.bulletin.tell("ritual", {"name": done.ritual, "status": done.status})
        return True
