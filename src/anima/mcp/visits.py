"""Visits: which session of ours a caller's requests go through, and what it wrote last.

Promise: one visit per conversation, that is per process on standard input and output, per `Mcp-Session-Id` in the
handshake era, per credential in the stateless era; a write that is only a repetition is answered and not done again.
Everything here blocks, so it is called in a thread. Not here: the protocol (server).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple, TypeVar

from anima import BadArguments, Home, Scope, Session
from anima.model import Access

Answer = dict[str, Any]
Meta = Mapping[str, Any]
Join = Callable[[Meta], AbstractContextManager[Session | None]]
T = TypeVar("T")
NOTHING: Meta = {}

MOST_VISITS = 256
IDLE = timedelta(minutes=30)
SAME = timedelta(seconds=60)  # within it, the same write to the same place is a repetition
KEPT = timedelta(hours=24)  # how long a caller's own key is remembered
MOST_KEPT = 512
MAX_KEY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """Who calls, as the command line or a credential says. `key` names the credential; it is compared, never shown.
    `name` is what the owner calls the agent that has it. `join` gives the session of the host's own conversation, by what
    came with a request, where the host's hooks report of it."""

    home: Home
    scope: Scope
    sender: str | None = None
    access: Access = "rw"
    key: str = ""
    name: str = ""
    join: Join | None = None

    @property
    def place(self) -> tuple[object, ...]:
        """What two requests must have in common to belong to one conversation."""
        return (id(self.home), self.key, self.scope, self.sender, self.access)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A call of a tool, and the caller's own name for it, if there is one."""

    name: str
    arguments: Mapping[str, Any]
    key: str | None = None
    sources: tuple[str, ...] = ()  # where text came from that went into it, as the caller says

    @property
    def call(self) -> str:
        return hashlib.sha256(json.dumps([self.name, self.arguments], sort_keys=True).encode()).hexdigest()

    @property
    def slot(self) -> str:
        """Where a write is remembered: under its key, else as the last one to its place, so that whatever was written
        there in between makes it a new one."""
        if self.key is None:
            return f"last {self.name} {self.arguments.get('target', '')}"
        if not 0 < len(self.key) <= MAX_KEY:
            raise BadArguments(f"an idempotency key is a text of at most {MAX_KEY} characters")
        return f"key {self.key}"


class _Done(NamedTuple):
    call: str
    answer: Answer
    time: datetime


class Visit:
    """One conversation. Safe to share by threads."""

    def __init__(self, visitor: Visitor, session: Session) -> None:
        self.visitor, self.session = visitor, session
        self.users = 0
        self.seen = visitor.home.clock()
        self._mutex = threading.RLock()
        self._done: OrderedDict[str, _Done] = OrderedDict()

    def call(self, wish: Wish) -> Answer:
        """A tool's answer. The same write again gives the first answer, marked `repeated`."""
        for source in wish.sources:
            self.session.taint(source)
        if self.session.tool(wish.name).read_only:
            return self.session.call(wish.name, wish.arguments)
        slot, key = wish.slot, wish.key
        with self._mutex:
            if (held := self._held(slot, SAME if key is None else KEPT)) is not None:
                if held.call == wish.call:
                    return held.answer | {"repeated": True}
                if key is not None:
                    raise BadArguments("this idempotency key was used for another call; take a new one for each write")
            answer = self.session.call(wish.name, wish.arguments)
            # What waits is one proposal however often it is wished for; what was refused or known may not be so by then.
            if key is not None or answer.get("status") not in ("pending", "refused", "known"):
                self._keep(slot, wish.call, answer)
            return answer

    def decided(self, wish: Wish, proposal: str, decide: Callable[[], Answer]) -> Answer:
        """What became of a wish that waited; a decision that arrives twice is made once."""
        slot = f"proposal {proposal}"
        with self._mutex:
            if (held := self._held(slot, KEPT)) is not None:
                return held.answer | {"repeated": True}
            answer = decide()
            self._keep(slot, "", answer)
            if wish.key is not None or answer.get("status") == "written":
                self._keep(wish.slot, wish.call, answer)
            return answer

    def _held(self, slot: str, span: timedelta) -> _Done | None:
        held = self._done.get(slot)
        return held if held is not None and self.visitor.home.clock() - held.time <= span else None

    def _keep(self, slot: str, call: str, answer: Answer) -> None:
        self._done[slot] = _Done(call, answer, self.visitor.home.clock())
        self._done.move_to_end(slot)
        while len(self._done) > MOST_KEPT:
            self._done.popitem(last=False)


@dataclass(slots=True)
class Visits:
    """The visits of one server. Closing it ends every session; requests that still run are waited for."""

    _open: OrderedDict[tuple[object, ...], Visit] = field(default_factory=OrderedDict)
    _mutex: threading.Lock = field(default_factory=threading.Lock)
    _running: set[asyncio.Future[Any]] = field(default_factory=set)

    async def run(self, work: Callable[[], T]) -> T:
        """Does blocking work in a thread. Work that began is finished, also when its caller has gone."""
        task = asyncio.ensure_future(asyncio.to_thread(work))
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Future[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # it was told to whoever waited, and if nobody did, nobody wants to know

    @contextmanager
    def visit(self, visitor: Visitor, conversation: str = "", meta: Meta = NOTHING) -> Iterator[Visit]:
        with visitor.join(meta) if visitor.join else nullcontext() as joined:
            with self._alone(visitor, conversation) if joined is None else self._joined(visitor, joined) as visit:
                yield visit

    @contextmanager
    def _joined(self, visitor: Visitor, session: Session) -> Iterator[Visit]:
        """A visit to the session of the host's own conversation, which is ours only as long as a request lasts."""
        with self._mutex:
            visit = self._open.setdefault((*visitor.place, "joined", session.id), Visit(visitor, session))
            visit.session, visit.seen = session, visitor.home.clock()
        yield visit

    @contextmanager
    def _alone(self, visitor: Visitor, conversation: str) -> Iterator[Visit]:
        place = (*visitor.place, conversation)
        with self._mutex:
            visit = self._open.get(place)
            if visit is None:
                channel = "mcp" if visitor.sender is None else None  # a sender says their channel themselves
                begin = partial(
                    visitor.home.sessions.begin, scope=visitor.scope, sender=visitor.sender, channel=channel
                )
                session = begin(access=visitor.access, guest=(visitor.key, visitor.name))
                visit = self._open[place] = Visit(visitor, session)
            self._open.move_to_end(place)
            visit.users += 1
            # What nobody used for long is taken off the list, and the longest unused where there are too many.
            over, idle = len(self._open) - MOST_VISITS, list[Visit]()
            for name, each in list(self._open.items()):
                old = each.visitor.home.clock() - each.seen > IDLE
                if not each.users and (old or len(idle) < over):
                    idle.append(self._open.pop(name))
        for left in idle:
            left.session.close()
        try:
            yield visit
        finally:
            with self._mutex:
                visit.users -= 1
                visit.seen = visitor.home.clock()

    def end(self, visitor: Visitor, conversation: str) -> None:
        self._end(lambda place, visit: place == (*visitor.place, conversation))

    def left(self, home: Home) -> None:
        """A home is about to be closed: its conversations end."""
        self._end(lambda place, visit: visit.visitor.home is home)

    async def close(self, *, wait: float = 10) -> None:
        """Waits for what runs, then ends every session."""
        if self._running:
            await asyncio.wait(set(self._running), timeout=wait)
        await asyncio.to_thread(self._end, lambda place, visit: True)

    def _end(self, ends: Callable[[tuple[object, ...], Visit], bool]) -> None:
        with self._mutex:
            gone = [self._open.pop(place) for place, visit in list(self._open.items()) if ends(place, visit)]
        for visit in gone:
            visit.session.close()
