"""What happens in a home, told while it happens: changes, proposals, decisions, files from outside.

Promise: whatever process writes, its change is told once it stands, at the latest half a second later; a listener that
was away asks from where it stopped and misses no change; one that is too slow is told to look again rather than kept
in memory. Not here: what a listener does with it; who may listen (guard); one conversation (agent).
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

from anima.agent import Event, Feed
from anima.errors import HomeError
from anima.home import Home

log = logging.getLogger("anima.web")

EVERY = 0.5
MOST_AGAIN = 1_000  # changes told again to a listener that was away
MOST_BEGUN = 256  # changes that are meant and not done yet
_BACK = 64  # records before it among which the intent of a change is looked for


class Bulletin:
    """Looks at one home's ledger and proposals and tells who listens. Lives from `start` to `stop`; or, where somebody else
    looks for many homes (`look`), who knows of every write and is asked to by `wake`, from the first listener on."""

    def __init__(self, home: Home, *, wake: Callable[[], None] | None = None) -> None:
        self._home, self._is_begun = home, False
        self._wake, self._ended = threading.Event(), threading.Event()
        self._feed, self.listeners = Feed(0), 0
        self._mutex, self._beginning = threading.Lock(), threading.Lock()
        self._thread: threading.Thread | None = None
        self._tell_no_more: Callable[[], None] = lambda: None
        self._size, self._last = -1, 0
        self._waiting: frozenset[str] = frozenset()
        self._begun: dict[str, dict[str, Any]] = {}
        self._ask = wake or self._wake.set

    def start(self) -> None:
        """Begins to look. What happened before is not told."""
        self._begin()
        self._thread = threading.Thread(target=self._run, name="anima-bulletin", daemon=True)
        self._thread.start()

    def _begin(self) -> None:
        with self._beginning:
            if not self._is_begun:
                self._last = self._home.past.tip
                self._look(tell=False)
                if self._ask == self._wake.set:
                    self._tell_no_more = self._home.past.tell(lambda paths: self._ask())
                self._is_begun = True

    def stop(self) -> None:
        """Ends every stream. Stopping twice does no harm."""
        self._ended.set()
        self._wake.set()
        self._feed.end()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5)
        self._tell_no_more()
        self._tell_no_more = lambda: None

    def look_soon(self) -> None:
        """For whoever knows that something happened: it is told now rather than at the next look."""
        self._ask()

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """Something that no ledger knows of, such as files that were indexed."""
        self._feed.tell("told", event=Event(kind=kind, n=self._last, data=data))

    # -- looking --------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ended.is_set():
            self._wake.wait(EVERY)
            self._wake.clear()
            self.look()

    def look(self) -> None:
        """Tells whoever listens what happened since the last look."""
        try:
            if self._is_begun:
                self._look(tell=True)
        except (HomeError, OSError):
            log.warning("the home could not be looked at; trying again")

    def _look(self, *, tell: bool) -> None:
        if self._ended.is_set() or not self._home.past.size():
            return
        found, size = list[Event](), self._home.past.size()
        if size != self._size:
            self._last = 0 if self._last > self._home.past.tip else self._last
            for record in self._home.past.since(self._last):
                self._last = record.n
                found += [event] if (event := _told(record, self._begun)) else []
        self._size = size
        waiting = self._home.inbox.ids()
        found += [Event(kind="proposal", n=self._last, data={"id": name}) for name in sorted(waiting - self._waiting)]
        found += [Event(kind="decided", n=self._last, data={"id": name}) for name in sorted(self._waiting - waiting)]
        self._waiting = waiting
        for event in found if tell else ():
            self._feed.tell("told", event=event)

    # -- listening ------------------------------------------------------------------------------------------------------

    async def stream(self, *, after: int | None, still: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Server-sent events until the client goes, the server stops, or `still` says no."""
        heard, told = self._feed.last, -1 if after is None else after
        with self._mutex:
            self.listeners += 1
        try:
            await asyncio.to_thread(self._begin)
            yield b"retry: 2000\n: listening\n\n"
            for event in await asyncio.to_thread(self._again, after) if after is not None else ():
                told = max(told, event.n)
                yield event.line()
            async for events in self._feed.follow(heard):
                if not await asyncio.to_thread(still):
                    return
                found = [each.data.get("event", Event(kind="resync", n=self._last)) for each in events]
                new = (each.line() for each in found if each.kind != "change" or each.n > told)
                yield b"".join(new) or b": still here\n\n"
        finally:
            with self._mutex:
                self.listeners -= 1
                if self._ask != self._wake.set and not self.listeners:
                    self._is_begun = False  # nobody is to be told, so nobody need look

    def _again(self, after: int) -> list[Event]:
        """The changes since a record, for a listener that was away."""
        begun: dict[str, dict[str, Any]] = {}
        told = (_told(record, begun) for record in self._home.past.since(max(0, after - _BACK)))
        found = [event for event in told if event and event.n > after]
        if len(found) > MOST_AGAIN:
            return [Event(kind="resync", n=found[-1].n)]
        return found


def _told(record: Any, begun: dict[str, dict[str, Any]]) -> Event | None:
    """The event a record makes, if it makes one. A change is told when it is done, not when it is meant."""
    if record.kind == "intent":
        fields, id = record.fields, str(record.fields.get("id"))
        paths = dict.fromkeys(p for edit in fields.get("edits", ()) for p in (edit.get("path"), edit.get("to")) if p)
        begun[id] = {"id": id, "what": fields.get("what"), "paths": list(paths)}
        begun[id] |= {"actor": fields.get("actor"), "session": fields.get("session")}
        if len(begun) > MOST_BEGUN:
            begun.pop(next(iter(begun)))
    if record.kind in ("done", "failed"):
        data = begun.pop(str(record.fields.get("id")), None)
        return Event(kind="change", n=record.n, data=data) if data and record.kind == "done" else None
    if record.kind in ("outside", "found"):
        data = {"id": str(record.n), "what": record.kind, "paths": [record.fields.get("path")]}
        return Event(kind="change", n=record.n, data=data | {"actor": "outside", "session": None})
    return None
