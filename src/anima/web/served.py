"""What a request needs: the home that is served, its credentials, its news while they happen, and the conversations of its agents.

Promise: an agent's conversation outlives its requests, so that what it read taints what it writes later; its calls have threads
of their own, so that the owner never waits behind them. A look at memory is kept until documents change, or where it takes
long shown as far as it still stands. Whatever process writes, its change is told at the latest half a second after it stands;
a listener that was away misses none, one that is too slow is told to look again. Not here: routes; one conversation (agent).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Protocol, TypeVar

from anyio import CapacityLimiter
from fastapi import Depends, Header, Request
from starlette.responses import StreamingResponse

from anima import Done, ForReview, Home, Proposal, Receipt, Remark, Scope, Session, Suggestion, lines_of, sections
from anima.agent import Brought, Event, Feed
from anima.errors import BadArguments, HomeError, Refused, StaleWrite
from anima.web.guard import RateLimits, who_of
from anima.web.tokens import Keyring, Pass

log = logging.getLogger("anima.web")
T = TypeVar("T")
MOST_SESSIONS = 256
AGENT_THREADS = 2  # what they compute would only be shared out among more
EVERY = 0.5  # seconds between two looks at a home
MOST_AGAIN = 1_000  # changes told again to a listener that was away
MOST_BEGUN = 256  # changes that are meant and not done yet
_BACK = 64  # records before it among which the intent of a change is looked for
QUICK = 0.5  # seconds: a look that takes no longer is made whenever somebody asks


class LiveChat(Protocol):
    """A conversation that goes on in this server, as requests know it (agent.chats)."""

    id: str
    feed: Feed
    used: dict[str, Any] | None

    @property
    def is_running(self) -> bool: ...
    @property
    def model(self) -> str: ...
    async def say(self, text: str, *, apart: bool = False, brought: Brought = ()) -> tuple[int, int]: ...
    async def stop(self, number: int | None = None) -> None: ...
    async def snapshot(self) -> tuple[int, int]: ...
    def cards(self) -> list[dict[str, str]]: ...


class LiveChats(Protocol):
    """Those of one home."""

    @property
    def is_busy(self) -> bool: ...
    def listeners(self) -> int: ...
    async def do(self, work: Coroutine[Any, Any, T]) -> T: ...
    def soon(self, work: Coroutine[Any, Any, T]) -> Any: ...
    async def begin(self) -> LiveChat: ...
    async def get(self, id: str) -> LiveChat: ...
    async def guest(self, id: str, credential: str, begin: Callable[..., Session]) -> LiveChat: ...
    async def go_on(self, id: str) -> None: ...
    def rows(self, limit: int) -> list[dict[str, Any]]: ...
    def hush(self) -> None: ...
    def close(self) -> None: ...


class Served:
    """One home as the web face holds it. Safe to share by threads."""

    def __init__(
        self, home: Home, *, keyring: Keyring, limits: RateLimits, bulletin: Bulletin, chats: LiveChats, hosted: bool
    ) -> None:
        """`hosted`: the machine is not the home's owner's, so nothing of it is theirs to see or to set."""
        self.home, self.hosted = home, hosted
        self.has_begun = False  # whether every step of the guided start was seen to be done
        self._graph: tuple[str, int, Any] | None = None
        self._waits: tuple[Any, tuple[tuple[Proposal, ...], tuple[ForReview, ...]]] | None = None
        self.told: dict[str, list[tuple[str, str]]] = {}  # what revisions wrote, by their ids: it never changes
        self.keyring, self.limits, self.bulletin, self.chats = keyring, limits, bulletin, chats
        self.agents = CapacityLimiter(AGENT_THREADS)  # threads that are kept for them
        self._open: OrderedDict[str, Session] = OrderedDict()
        self._mutex = threading.RLock()
        self._looked: tuple[list[Remark], float, float] = ([], 0.0, 0.0)  # what a look told, when, and what it cost
        self._looking = threading.Lock()
        self.tidiness = Tidiness(home)
        self.snapping = threading.Lock()  # held while a snapshot is taken that somebody asked for

    def remarks(self) -> list[Remark]:
        """What a look at the home tells. Where that takes long, it is done again only after twenty times as long."""
        with self._looking:
            remarks, at, cost = self._looked
            if cost <= QUICK or time.monotonic() - at > 20 * cost:
                began = time.monotonic()
                remarks = self.home.upkeep.doctor()
                self._looked = (remarks, time.monotonic(), time.monotonic() - began)
            return remarks

    def graph(self, most: int) -> Any:
        """Who and what the home speaks of; made again when something changed."""
        stamp, held = _stamp(self.home), self._graph
        if held is None or held[:2] != (stamp, most):
            held = stamp, most, self.home.index.graph(self.home.site.listener(Scope.MAIN), most=most)
            self._graph = held
        return held[2]

    def waits(self) -> tuple[tuple[Proposal, ...], tuple[ForReview, ...]]:
        """The changes and the noted lines that wait; read anew when something was decided or written, or a minute went by."""
        inbox, held = self.home.inbox, self._waits
        stamp = (self.home.past.size(), inbox.ids(), self.home.clock().replace(second=0, microsecond=0))
        if held is None or held[0] != stamp:
            held = self._waits = stamp, (inbox.all(), inbox.noted())
        return held[1]

    def page_of(self, role: str) -> str:
        """The path of a role's document; empty where this dialect has none."""
        return self.home.layout.row(role).path if self.home.layout.has(role) else ""

    def headings(self) -> list[str]:
        """Those of MEMORY.md that a line may go under."""
        with suppress(HomeError):
            found = sections(self.home.read(self.home.layout.curated).text)
            return list(dict.fromkeys(part.title for part in found if part.level == 2 and not part.claimed))[:50]
        return []

    def waiting(self) -> tuple[int, int]:
        """How many of each; none where they cannot be read."""
        try:
            return len(self.waits()[0]), len(self.waits()[1])
        except HomeError:
            return 0, 0

    def shown(self, who: Pass, proposal: Proposal) -> None:
        self.keyring.note_shown(who.id, _face(proposal))

    def seen(self, who: Pass, id: str, content: str) -> Proposal:
        """What waits under this id, if it is what was seen; on the page, only what was drawn whole, as it stands now."""
        found = self.home.inbox.get(id)
        if content != found.content:
            raise StaleWrite(found.path.text, theirs=found.diff, ours=None)
        if who.kind == "page" and not self.keyring.was_shown(who.id, _face(found)):
            hint = "load the page again and look at all of it"
            raise Refused(f"not all of {id} was shown as it is now, so it takes no yes", rule="shown", hint=hint)
        return found

    def decided(self, *proposals: Proposal) -> None:
        """Tells of what the owner decided; a conversation whose call it was goes on."""
        self.bulletin.look_soon()
        for one in proposals:
            if one.call and one.session:
                self.chats.soon(self.chats.go_on(one.session))

    def scope_of(self, who: Pass) -> Scope:
        """The scope of an agent's token. Raises Refused for the owner's, which has none."""
        if who.scope is None:
            hint = "make one: anima token make --scope main"
            raise Refused("this is for an agent's token, and this one is the owner's", rule="agent-only", hint=hint)
        return who.scope

    def session_of(self, who: Pass) -> Session:
        """The conversation that goes on with a token; begun when there is none."""
        with self._mutex:  # held while one begins, so that two first calls share it
            if who.id not in self._open:
                return self.new_session(who)
            self._open.move_to_end(who.id)
            return self._open[who.id]

    def begin_for(self, who: Pass, **more: Any) -> Callable[[], Session]:
        """What begins a conversation of an agent's. Raises Refused for the owner's token."""
        channel = "http" if who.sender is None else None  # a sender says their channel themselves
        begin = partial(self.home.sessions.begin, scope=self.scope_of(who), sender=who.sender, channel=channel)
        return partial(begin, access=who.access, guest=(who.credential, who.name), **more)

    def new_session(self, who: Pass) -> Session:
        """A new conversation in the place of the one before, if there was one. What came in with the token stays read."""
        begun = self.begin_for(who)()
        with self._mutex:
            ended = [found for found in (self._open.pop(who.id, None),) if found]
            self._open[who.id] = begun
            if len(self._open) > MOST_SESSIONS:
                ended.append(self._open.popitem(last=False)[1])
        for session in ended:
            session.close()
        return begun

    def need_machine(self) -> None:
        """Raises Refused where what is asked for concerns a machine that is somebody else's."""
        if self.hosted:
            hint = "ask them; in a home on a machine of your own it is yours"
            raise Refused("this is for whoever runs the servers to do", rule="hosted", hint=hint)

    @property
    def size(self) -> int:
        """About how many bytes the home's index has; none once it was closed."""
        with suppress(BadArguments):
            return self.home.index.held_bytes
        return 0

    @property
    def is_busy(self) -> bool:
        """Whether something goes on that no request waits for."""
        return self.bulletin.listeners > 0 or self.chats.is_busy

    def hush(self) -> None:
        """Ends every stream. Doing it twice does no harm."""
        self.bulletin.stop()
        self.chats.hush()

    def close(self) -> None:
        self.chats.close()
        with self._mutex:
            ended, self._open = list(self._open.values()), OrderedDict()
        for session in ended:
            session.close()


def parted(proposal: Proposal) -> tuple[list[str], list[str], list[str]]:
    """The lines of a proposed text: those before what is new, what is new, and those after it."""
    new = lines_of(proposal.changes[0].text)
    old = lines_of(proposal.bases[0] or "") if proposal.changes[0].kind == "write" else ()
    most = min(len(old), len(new))
    head = next((n for n in range(most) if old[n] != new[n]), most)
    tail = next((n for n in range(most - head) if old[-1 - n] != new[-1 - n]), most - head)
    return list(new[:head]), list(new[head : len(new) - tail]), list(new[len(new) - tail :])


def _face(proposal: Proposal) -> str:
    """Differs when what a person sees of a proposal does."""
    return hashlib.sha256(f"{proposal.id} {proposal.content}\n{proposal.diff}".encode("utf-8", "replace")).hexdigest()


def _stamp(home: Home) -> str:
    """Differs when a document, the ledger or the day does. No file is opened for it."""
    made = hashlib.sha256(f"{home.past.size()} {home.site.today()}".encode())
    for entry in home.list_all():
        made.update(f"{entry.path}\0{entry.size}\0{entry.time.timestamp()}\n".encode("utf-8", "surrogatepass"))
    return made.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Looked:
    """A look at a home. `outdated` tells that documents changed since, and that only what still stands is in it."""

    at: datetime
    told: Any  # what the home says of it: lines, documents, notes
    found: Mapping[str, Suggestion]  # by id
    stamp: str
    cost: float
    outdated: bool = False


class Tidiness:
    """The last look at what could be tidied in one home. Safe to share by threads."""

    def __init__(self, home: Home, *, quick: float = QUICK) -> None:
        self._home, self._quick = home, quick
        self._seen: Looked | None = None
        self._tidied: tuple[str, list[Done]] = ("", [])  # the stamp it is of
        self._looking = threading.Lock()

    def tidied(self, looked: Looked) -> list[Done]:
        """What was tidied and not taken back since, the newest first. Asked of the ledger once a look."""
        if self._tidied[0] != looked.stamp:
            self._tidied = (looked.stamp, self._home.past.standing("tidy"))
        return self._tidied[1]

    def known(self) -> Looked | None:
        """The last look, if nothing changed since; nobody waits for it."""
        seen = self._seen
        return seen if seen is not None and seen.stamp == _stamp(self._home) else None

    def look(self, *, afresh: bool = False) -> Looked:
        """What is found now. A look that took long is made again only when it is asked for, `afresh`."""
        with self._looking:
            seen, stamp = self._seen, _stamp(self._home)
            is_quick = seen is not None and seen.cost <= self._quick
            if seen is None or (seen.stamp != stamp and (afresh or is_quick)) or (seen.outdated and afresh):
                began, told = time.monotonic(), self._home.upkeep.look()
                found, cost = {one.id: one for one in told.suggestions}, time.monotonic() - began
                # What is forgotten later is kept in no other place than `found`, which is looked through again.
                told = replace(told, stale=(), duplicates=(), contradictions=(), suggestions=())
                seen = Looked(at=self._home.clock(), told=told, found=found, stamp=stamp, cost=cost)
            elif seen.stamp != stamp:
                seen = self._still(seen, stamp)
            self._seen = seen
            return seen

    def tidy(self, ids: Sequence[str], line: int | None = None) -> tuple[Receipt, ...]:
        """Carries out what was shown as one change; `line` (1 or 2) is the one that holds, of a choice."""
        chosen = self._chosen(ids)
        if line is not None:
            if len(chosen) != 1:
                raise BadArguments("a line is chosen in one contradiction at a time")
            if not 1 <= line <= len(chosen[0].between):
                raise BadArguments("only between two lines that contradict each other one is chosen: 1 or 2")
            chosen = [chosen[0].keeping(chosen[0].between[line - 1])]
        receipts = self._home.upkeep.tidy(chosen)
        if all(receipt.status not in ("refused", "pending") for receipt in receipts):
            self._drop(ids)
        return receipts

    def keep(self, ids: Sequence[str]) -> int:
        """Notes that all lines of what was shown stay; none is noted where one of them is no line."""
        chosen = self._chosen(ids)
        if any(one.to for one in chosen):
            raise BadArguments("only lines can be kept; a log stays by itself until it is archived")
        for one in chosen:
            self._home.upkeep.keep_all(one)
        self._drop(ids)
        return len(chosen)

    def _chosen(self, ids: Sequence[str]) -> list[Suggestion]:
        """What was shown under these ids, as it stands now. Raises StaleWrite for one that is not found any more."""
        seen = self._seen
        if seen is None or not all(id in seen.found for id in ids):
            seen = self.look()
        found = [seen.found.get(id) for id in dict.fromkeys(ids)]
        standing = [self._home.upkeep.again(one) for one in found if one is not None]
        if len(standing) != len(found):
            raise StaleWrite("memory", theirs=None, ours=None)
        return standing

    def _drop(self, ids: Sequence[str]) -> None:
        """What is done is not shown again, also where the next look is far."""
        with self._looking:
            if self._seen is not None:
                left = {id: one for id, one in self._seen.found.items() if id not in ids}
                self._seen = replace(self._seen, found=left)

    def _still(self, seen: Looked, stamp: str) -> Looked:
        """What of a look still stands. What was forgotten since is not in it, nor around it."""
        pages = {page.path: page.digest for one in seen.found.values() for page in one.pages}
        touched = set(pages)
        for path, digest in pages.items():
            with suppress(HomeError):
                touched -= {path} if self._home.read(path).digest == digest else set()
        left = {}
        for id, one in seen.found.items():
            with suppress(HomeError):
                left[id] = self._home.upkeep.again(one) if any(page.path in touched for page in one.pages) else one
        return replace(seen, found=left, stamp=stamp, outdated=True)


async def _served(request: Request) -> Any:  # coroutines, so that no thread is taken for them
    return request.state.served  # by the guard


async def _me(request: Request) -> Pass:
    return who_of(request.scope)


def known_of(last_event_id: str | None) -> int | None:
    """The event that a listener heard last, by the header of a stream that is taken up; None where it says none."""
    return int(last_event_id) if last_event_id and last_event_id.isascii() and last_event_id.isdigit() else None


def told_live(stream: AsyncIterator[bytes] | AsyncIterator[str]) -> StreamingResponse:
    """Server-sent events; no proxy is to keep them back."""
    return StreamingResponse(stream, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


STREAM: Any = {"response_class": StreamingResponse, "responses": {200: {"content": {"text/event-stream": {}}}}}
LastEvent = Annotated[str | None, Header(max_length=20)]
Here = Annotated[Served, Depends(_served)]
Me = Annotated[Pass, Depends(_me)]


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
        self.look_soon = wake or self._wake.set  # for whoever knows that something happened: it is told now

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
                if self.look_soon == self._wake.set:
                    self._tell_no_more = self._home.past.tell(lambda paths: self.look_soon())
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

    def tell(self, kind: str, data: dict[str, Any]) -> None:
        """Something that no ledger knows of, such as files that were indexed."""
        self._feed.tell("told", event=Event(kind=kind, n=self._last, data=data))

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
                if self.look_soon != self._wake.set and not self.listeners:
                    self._is_begun = False  # nobody is to be told, so nobody need look

    def _again(self, after: int) -> list[Event]:
        """The changes since a record, for a listener that was away."""
        begun: dict[str, dict[str, Any]] = {}
        told = (_told(record, begun) for record in self._home.past.since(max(0, after - _BACK)))
        found = [event for event in told if event and event.n > after]
        return [Event(kind="resync", n=found[-1].n)] if len(found) > MOST_AGAIN else found


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
