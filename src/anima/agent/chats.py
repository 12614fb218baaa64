"""Chats: the conversations that go on in this server, whoever listens.

Promise: a turn runs here and not in a request, so that it goes on when its listener goes away; what is said while one runs
is heard in it or right after it. The transcript is the record: a chat that this server does not hold is taken up from there,
after a kill too, and one that somebody else went on with meanwhile is read again. Everything of a chat happens on one loop
of our own. Not here: who asks (web, connect.channels), what a turn is (conversation).
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from anima.agent import STOPPED, Brought, Feed, framed, need_chat
from anima.agent.models import ModelChoice, Models
from anima.errors import HomeError, NoSuchSession, TooMany
from anima.model import Scope

if TYPE_CHECKING:
    from anima.agent.conversation import Conversation, Happening
    from anima.home import Home
    from anima.layout import Listener
    from anima.memory import Proposal
    from anima.memory.inbox import ForReview
    from anima.sessions.session import Session

log = logging.getLogger("anima.agent")
T = TypeVar("T")

CHANNEL = "chat"  # the owner's own conversations, as at a terminal
MOST_CHATS = 256
IDLE = timedelta(minutes=30)
MOST_WAITING = 16  # turns of one chat
GUEST_TURNS, GUESTS = 8, 64  # turns of agents at once, and how many chats of theirs may wait for one
MOST_SHOWN = 20_000  # characters of a tool's answer
WAITS = "(It waits for a yes of the owner's.)"  # where a turn ends with a call of a tool from outside


class Queued(NamedTuple):
    """A turn that somebody wants: what the person says, and what came along with that."""

    number: int
    text: str
    brought: Brought = ()
    about: Mapping[str, str] = MappingProxyType({})  # its `message_id` and `sender_id` where a channel has them


class Chat:
    """One conversation. But for its feed, it is used on the loop of the chats alone."""

    def __init__(self, home: Home, session: Session, *, gate: asyncio.Semaphore) -> None:
        self.id, self.session, self.feed = session.id, session, Feed(int(home.clock().timestamp() * 1_000))
        self._home, self._gate, self.seen = home, gate, home.clock()
        self._count, self._running, self._wishes = 0, 0, deque[Queued]()
        self._work: asyncio.Task[None] | None = None
        self._turn: asyncio.Task[dict[str, Any]] | None = None
        self._talk: Conversation | None = None
        self._hearing: Conversation | None = None  # the same, while its turn runs
        self._choice: ModelChoice | None = None
        self._entries, self._began = 0, self.feed.last  # in the transcript; and the event, before the turn that runs
        self._told, self._brought = set[str](), set[str]()
        self._look: asyncio.Task[None] | None = None
        self.used: dict[str, Any] | None = None
        self.holder, self._is_told = "", False  # the credential of whose conversation it is; the end of the last turn

    @property
    def is_running(self) -> bool:
        return self._work is not None and not self._work.done() and not self._is_told

    @property
    def model(self) -> str:
        return self._choice.name if self._choice else self.session.model or ""

    async def say(self, text: str, *, apart: bool = False, brought: Brought = (), **about: str) -> tuple[int, int]:
        """The number of the turn in which it is heard, and that of the last event before. While a turn runs it is heard in
        that one or right after it, unless it is to be `apart`."""
        after = self.feed.last
        if self._hearing is not None and not apart:
            self._hearing.steer(text)
            self.feed.tell("steer", turn=self._running, text=text)
            return self._running, after
        if len(self._wishes) >= MOST_WAITING:
            raise TooMany("too much waits to be said here; wait a little")
        self._count += 1
        self._wishes.append(Queued(self._count, text, brought, about))
        if not self.is_running:
            self._is_told, self._work = False, asyncio.create_task(self._go_on())
        return self._count, after

    async def stop(self, number: int | None = None) -> None:
        """Stops a turn, or the one that runs; what was said is kept. One that only waits is not begun."""
        self._wishes = deque(wish for wish in self._wishes if wish.number != number)
        if self._turn is not None and number in (None, self._running):
            self._turn.cancel()

    async def _go_on(self) -> None:
        while self._wishes:
            wish = self._wishes.popleft()
            async with nullcontext() if self.session.guest is None and self.session.listener.sees_all else self._gate:
                await self._held(wish)

    async def _held(self, wish: Queued) -> None:
        """One turn, whatever becomes of it. Its end is told when everything of it stands."""
        self._running, self._began = wish.number, self.feed.last
        self.feed.tell("turn", turn=wish.number, text=wish.text)
        talk, before = self._talk, self._talk.purse.spent if self._talk else 0
        kind, told = await self._outcome(wish)
        told["spent"] = (self._talk.purse.spent - (before if self._talk is talk else 0)) if self._talk else 0
        self._turn = self._hearing = None
        await self._look_for_cards()
        self._entries, self.seen = await asyncio.to_thread(self._total), self._home.clock()
        if self._talk is not None and (unheard := self._talk.unheard()):
            self._count += 1
            self._wishes.appendleft(Queued(self._count, unheard))
        if kind == "error":
            await self._let_go()  # another key, say, counts from the next turn on
        lost = kind != "done" or told["early"]  # an end that no transcript has: whoever comes next hears of it, too
        self._began = self.feed.last + (not lost)
        self._is_told = not self._wishes  # whoever hears of the end, in whichever thread, finds it ended
        self.feed.tell(kind, turn=wish.number, **told)

    async def _outcome(self, wish: Queued) -> tuple[str, dict[str, Any]]:
        self._turn = asyncio.create_task(self._answered(wish))
        try:
            return "done", await self._turn
        except asyncio.CancelledError:
            if (me := asyncio.current_task()) is not None and me.cancelling():
                raise  # the server ends, and not the turn alone
            return "stopped", {}
        except HomeError as error:
            return "error", {"text": str(error), "hint": error.hint, "status": error.http_status}
        except Exception:
            log.exception("an error of ours in a conversation")
            return "error", {"text": "something went wrong here; what was said is kept", "status": 500}

    async def _answered(self, wish: Queued) -> dict[str, Any]:
        """What a turn came to: its tokens, those of the conversation since this server took it up, and the cost if known."""
        talk = await self._ready()
        await asyncio.to_thread(self._bring, talk, wish.brought)
        self._hearing = talk
        answer = await talk.turn(wish.text, **wish.about)
        total = talk.usage
        cost = float(total.cost) if total.cost else None
        self.used = {"input": total.input_tokens, "output": total.output_tokens, "cost": cost}
        tokens = {"input": answer.input_tokens, "output": answer.output_tokens}
        if answer.waiting:
            self.feed.tell("waits", turn=wish.number, text=WAITS)
        return {"early": answer.early, "model": self.model, "tokens": tokens, "used": self.used}

    def _happened(self, what: Happening) -> None:
        told: dict[str, Any] = {"text": what.text}
        if what.kind in ("tool", "tool_result"):
            text = json.dumps(what.data, ensure_ascii=False, default=str)
            data = json.loads(text) if len(text) <= MOST_SHOWN else {"cut": text[:MOST_SHOWN]}
            told = {"name": what.name, "arguments" if what.kind == "tool" else "answer": data}
        self.feed.tell(what.kind, turn=self._running, **told)
        if what.kind == "tool_result" and what.data.get("status") in ("pending", "noted"):
            self._look = asyncio.create_task(self._look_for_cards())

    async def told(self, text: str, session: str) -> None:
        """What the agent told this person in a session of its own is part of the conversation, with what was read there."""
        await asyncio.to_thread(self.session.take_in, "", sessions=(session,))
        await asyncio.to_thread(self.session.log, "assistant", text)

    async def _ready(self) -> Conversation:
        """The conversation with the model that is used now, made anew where the model or the record changed."""
        choice, entries = await asyncio.to_thread(lambda: (models_of(self._home).choice(), self._total()))
        if self._talk is None or choice != self._choice or entries != self._entries:
            await self._let_go()
            if entries and choice.name != self.session.model:
                self.session.leave()
                self.session = await asyncio.to_thread(self._home.resume, self.id, model=choice.name)

            def made() -> Conversation:
                from anima.agent.conversation import Conversation

                models = models_of(self._home)
                return Conversation(self.session, models.made(choice), heard=self._happened, made=models.named)

            talk = await asyncio.to_thread(made)
            self._talk, self._choice, self._entries = await talk.__aenter__(), choice, entries
        return self._talk

    def _total(self) -> int:
        talks = self._home.sessions
        return talks.get(self.id).entries if talks.kept and talks.has(self.id) else 0

    def _bring(self, talk: Conversation, brought: Brought) -> None:
        """What a program brought along and what is not on record yet is text from outside; it is told once."""
        talks, answer, known = self._home.sessions, "", {"", *self._brought}
        kept = brought and talks.kept and talks.has(self.id)
        for turn in talks.read(self.id, limit=1_000_000).entries if kept else ():
            said = _squeezed(turn.content)  # and what the agent said in one turn as a whole
            answer = answer + said if turn.role == "assistant" else answer if turn.call is not None else ""
            known |= {said, answer, answer.removesuffix(_squeezed(STOPPED)), answer + _squeezed(WAITS)}
        for role, text in brought:
            told = framed("client", text, role=role)
            if _squeezed(text) not in known and _squeezed(told) not in known:
                talk.bring("client", told)
                self._brought.add(_squeezed(text))  # on record a secret in it is struck out

    async def snapshot(self) -> tuple[int, int]:
        """How many entries a listener reads, and after which event it goes on listening: before the turn that runs, or
        before the end of one that failed or was stopped."""
        while not self.is_running:
            last = self.feed.last
            entries = await asyncio.to_thread(self._total)
            if not self.is_running and last == self.feed.last:
                return entries, self._began
        return self._entries, self._began

    async def _look_for_cards(self) -> None:
        if self.session.guest is not None:
            return
        for card in await asyncio.to_thread(self.cards):
            if card["mark"] not in self._told:
                self._told.add(card["mark"])
                self.feed.tell("card", turn=self._running, **card)

    def cards(self) -> list[dict[str, str]]:
        """What it left for the owner to decide, told."""
        asked, noted = waiting(self._home, self.id)
        told = [("call", one.id, one.call["name"], one.id) for one in asked if one.call]
        told += [("proposal", one.id, one.path.text, one.content) for one in asked if not one.call]
        told += [("noted", entry.id, entry.to.text, entry.id) for entry, *_ in noted]
        return [dict(zip(("card", "id", "path", "mark"), each, strict=True)) for each in told]

    async def close(self, *, end: bool = False) -> None:
        """Lets it go; whoever takes it up goes on, unless this is its end."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])
        self.feed.end()
        await self._let_go()
        with suppress(HomeError):  # what was said is in the transcript; whoever takes it up flushes it
            await asyncio.to_thread(self.session.close if end else partial(self.session.flush, "left"))
        self.session.leave()

    async def _let_go(self) -> None:
        talk, self._talk = self._talk, None
        if talk is not None:
            await talk.__aexit__(None, None, None)


def waiting(home: Home, session: str) -> tuple[list[Proposal], list[ForReview]]:
    """What a conversation left for the owner to decide; what a first one agrees on is shown once it says who both are."""
    asked = [each for each in home.inbox.all() if each.session == session]
    asked = [each for each in asked if not each.is_first or home.inbox.confirmed_by(each)]
    return asked, [each for each in home.inbox.noted() if each.entry.session == session]


class Chats:
    """The chats of one home, and their loop. Closing it stops what runs and lets every conversation go."""

    def __init__(self, home: Home) -> None:
        self._home, self._open, self._mutex = home, OrderedDict[str, Chat](), threading.Lock()
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._opening, self._gate = asyncio.Lock(), asyncio.Semaphore(GUEST_TURNS)
        self.watchers = list[Callable[[Chat], None]]()  # are told of each chat that is taken up, on the loop

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Does something on the loop of the chats, for whoever is on another."""
        return await asyncio.wrap_future(self.soon(work))

    def soon(self, work: Coroutine[Any, Any, T]) -> Any:
        """The same, for whoever does not wait."""
        with self._mutex:
            if self._thread is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="anima-chats", daemon=True)
                self._thread.start()
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def listeners(self) -> int:
        return sum(len(chat.feed.waiting) for chat in tuple(self._open.values()))

    @property
    def is_busy(self) -> bool:
        return any(chat.is_running or chat.feed.waiting for chat in tuple(self._open.values()))

    async def begin(self) -> Chat:
        return await self._held("", partial(self._home.session, scope=Scope.MAIN, channel=CHANNEL))

    async def get(self, id: str) -> Chat:
        """A conversation of the owner's own. Raises NoSuchSession, also for somebody else's: they would speak as that person."""
        return await self._held(id, partial(self._home.resume, id), lambda session: session.listener.sees_all)

    async def joined(self, id: str, listener: Listener, begin: Callable[..., Session]) -> Chat:
        """The conversation of this id, if it is with this listener; else a new one, which `begin` makes."""
        try:
            return await self._held(id, partial(self._home.resume, id), lambda one: one.listener == listener)
        except NoSuchSession:
            return await self._held("", begin)

    async def go_on(self, id: str) -> None:
        """Lets a conversation of the owner's go on whose call from outside they decided."""
        await (await self.get(id)).say("", apart=True)

    async def guest(self, id: str, credential: str, begin: Callable[..., Session]) -> Chat:
        """The conversation of this id that an agent elsewhere holds; `begin` makes one where there is none. Whoever knows an
        id, or brought a transcript of that name, is nobody else for it: credential and listener must be the same."""
        if id in self._open and self._open[id].holder == credential:
            return self._open[id]
        if sum(chat.is_running and bool(chat.holder) for chat in self._open.values()) >= GUESTS:
            raise TooMany("too much waits to be said here; wait a little")
        is_there = (talks := self._home.sessions).kept and talks.has(id)
        fresh = await asyncio.to_thread(self._made, partial(begin, id=None) if is_there else begin)
        mine = (fresh.guest and fresh.guest.mark, fresh.listener)
        make = partial(self._home.resume, id) if is_there else lambda model: fresh
        chat = await self._held(id, make, lambda one: (one.guest and one.guest.mark, one.listener) == mine)
        chat.holder = credential
        return chat

    async def _held(
        self, id: str, make: Callable[..., Session], fits: Callable[[Session], bool] = lambda session: True
    ) -> Chat:
        """The chat of this id, if its session fits whoever asks; two who ask at once get the same."""
        async with self._opening:
            chat = self._open.get(id)
            session = chat.session if chat else await asyncio.to_thread(self._made, make)
            if not fits(session):
                if chat is None:
                    session.leave()
                raise NoSuchSession("there is no such conversation of yours")
            if chat is None:
                chat = self._open[session.id] = Chat(self._home, session, gate=self._gate)
                for tell in self.watchers:
                    tell(chat)
                now, over, gone = self._home.clock(), len(self._open) - MOST_CHATS, list[Chat]()
                for old in list(self._open.values())[:-1]:  # what nobody spoke in for long, or was longest unused
                    if not old.is_running and (now - old.seen > IDLE or len(gone) < over):
                        gone.append(self._open.pop(old.id))
                for old in gone:
                    await old.close()
            self._open.move_to_end(chat.id)
            return chat

    async def stop(self, id: str) -> None:
        if (chat := self._open.get(id)) is not None:
            await chat.stop()

    async def end(self, id: str) -> None:
        if (chat := self._open.pop(id, None)) is not None:
            await chat.close(end=True)

    def _made(self, make: Callable[..., Session]) -> Session:
        return make(model=models_of(self._home).choice().name)

    def rows(self, limit: int) -> list[dict[str, Any]]:
        """The owner's own conversations as the list shows them, the latest first."""
        running = {chat.id for chat in tuple(self._open.values()) if chat.is_running}
        talks = self._home.sessions
        own = replace(talks.asker(self._home.site.listener(Scope.MAIN)), scopes=frozenset({str(Scope.MAIN)}))
        rows = [row for row in talks.list(own) if row.source_plugin == CHANNEL][:limit]
        return [{**row._asdict(), "running": row.id in running} for row in rows]

    def hush(self) -> None:
        for chat in tuple(self._open.values()):
            chat.feed.end()

    def close(self) -> None:
        with self._mutex:
            thread, self._thread = self._thread, None
        if thread is None:
            return

        async def ended() -> None:
            chats, self._open = list(self._open.values()), OrderedDict()
            for chat in chats:
                await chat.close()
            await self._loop.shutdown_default_executor()

        asyncio.run_coroutine_threadsafe(ended(), self._loop).result(timeout=20)
        self._loop.call_soon_threadsafe(self._loop.stop)
        thread.join(timeout=5)
        self._loop.close()


def models_of(home: Home) -> Models:
    """Which models there are. Raises MissingExtra."""
    need_chat()
    return Models.of(home)


def _squeezed(text: str) -> str:
    return "".join(text.split())
