"""The rounds that the server of one home makes while nobody asks: watching files, committing what is late, dreaming when its
time comes, rituals, channels.

Promise: each chore has a thread of its own, a chore that fails is tried again later and stops nobody else, and all end
when the server does. Not here: what a chore does; a new one is a row in CHORES. Homes of a database (homes).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from anima.agent.chats import Chats
from anima.connect.channels.presence import KINDS, Accounts, attend
from anima.errors import HomeError
from anima.home import Home
from anima.web.served import Bulletin

log = logging.getLogger("anima.web")

_AGAIN, _RITUALS, _CHANNELS = 30.0, 20.0, 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chore:
    """Work that goes on beside the server. `work` returns when `stop` is set, or earlier to be called again."""

    name: str
    every: float  # seconds between two calls
    work: Callable[[Home, Bulletin, threading.Event], None]


class Rounds:
    """The threads of a server's chores."""

    def __init__(self, home: Home, bulletin: Bulletin, chores: Sequence[Chore]) -> None:
        self._home, self._bulletin, self._chores = home, bulletin, chores
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        for chore in self._chores:
            thread = threading.Thread(target=self._go, args=(chore,), name=f"anima-{chore.name}", daemon=True)
            self._threads.append(thread)
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=10)

    def _go(self, chore: Chore) -> None:
        while not self._stop.is_set():
            pause = max(chore.every, _AGAIN)
            try:
                chore.work(self._home, self._bulletin, self._stop)
                pause = chore.every
            except (HomeError, OSError) as error:
                log.warning("%s: %s; trying again later", chore.name, error)
            except Exception:
                log.exception("%s failed; trying again later", chore.name)
            self._stop.wait(pause)


def _watch(home: Home, bulletin: Bulletin, stop: threading.Event) -> None:
    """Keeps the index in step with edits from outside, and tells of them."""
    for report in home.index.watch(stop):
        bulletin.tell("files", {"put": report.put, "dropped": report.dropped})


def _flush(home: Home, bulletin: Bulletin, stop: threading.Event) -> None:
    """What was said in a session that a crash ended, or that its host forgot, reaches the log all the same."""
    if any(flushed.lines for flushed in home.sessions.flush_idle()):
        bulletin.tell("files", {"put": 1, "dropped": 0})


def _dream(home: Home, bulletin: Bulletin, stop: threading.Event) -> None:
    """A night whose hour has come."""
    swept = home.dream_if_due()
    if swept is not None and swept.status == "dreamed":
        bulletin.tell("dream", {"change": swept.change, "kept": len(swept.plan.promotions) if swept.plan else 0})


def _snapshot(home: Home, bulletin: Bulletin, stop: threading.Event) -> None:
    """A snapshot whose hour has come, and those that are too old go."""
    made = home.snapshots.if_due()
    if made is not None and made.fresh:
        bulletin.tell("snapshot", {"name": made.name, "size": made.size})


def _rituals(home: Home, bulletin: Bulletin, stop: threading.Event) -> None:
    """What the agent does by itself, once its owner switched that on; nothing heavy is imported before."""
    from anima.agent.schedule import state_of

    starting = True
    while not stop.is_set():
        if state_of(home.site.store).on:
            from anima.agent.rituals import Rituals

            for done in Rituals(home).round(starting=starting):
                bulletin.tell("ritual", {"name": done.ritual, "status": done.status})
        starting = False
        stop.wait(_RITUALS)


def on_channels(chats: Chats) -> list[Chore]:
    """Being present on each channel that the owner switched on; nothing heavy is imported before."""

    def attending(kind: str, home: Home, bulletin: Bulletin, stop: threading.Event) -> None:
        account = Accounts(home).get(kind)
        if account.on and not account.stopped:
            attend(home, chats, kind, stop)

    return [Chore(name=kind, every=_CHANNELS, work=partial(attending, kind)) for kind in KINDS]


CHORES: tuple[Chore, ...] = (
    Chore(name="watch", every=1, work=_watch),
    Chore(name="commit", every=60, work=lambda home, bulletin, stop: home.past.commit()),  # of lines that were appended
    Chore(name="flush", every=600, work=_flush),
    Chore(name="dream", every=60, work=_dream),
    Chore(name="snapshot", every=60, work=_snapshot),
    Chore(name="rituals", every=_RITUALS, work=_rituals),
)
