"""A home's presence on a channel: its account there, who is who, whose conversation it is, what goes back, and cards that ask.

Promise: a channel is attended by one process at a time. Alone with the owner it is the owner's own conversation; alone with anybody
else it is theirs, with a layer which they review themselves; in a group the agent answers when it is meant. Cards and notices go to
the owner alone. A message is answered once, after a kill too: what came in is done when its answer is out. A yes is bound to what the
card showed, and the card showed all of it: what it cannot show, or no press may decide, has no buttons. State holds no text.
Not here: carrying (channels), turns (agent.chats).
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import threading
from collections import defaultdict
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeVar

from anima import ForReview, Home, HomeError, Proposal, Receipt, Scope, Severity, Turn
from anima.agent import Event, need_chat
from anima.agent.chats import Chat, Chats, waiting
from anima.agent.schedule import delivered, is_told, said_in
from anima.connect import read_json, write_json
from anima.connect.channels import Button, Channel, ChannelDown, Heard, Venue
from anima.connect.channels.telegram import Telegram
from anima.errors import BadArguments, Damaged, HomeBusy, NoSuchProposal, NoSuchSession, Refused, printable
from anima.layout import Listener, folder_of, how_to_own
from anima.text import read_table

KINDS = ("telegram",)
LOOK = 2.0  # seconds between two looks whether it is still wanted


class Account(NamedTuple):
    """A home's account on a channel. `stopped` says why it is not used, though it is on."""

    token: str = ""
    url: str = ""
    on: bool = False
    stopped: str = ""


class Accounts:
    """The accounts of one home, in the user's own configuration (0600), beside its tokens and never in it."""

    def __init__(self, home: Home) -> None:
        self._file = os.fspath(home.credentials / "channels.json")

    def get(self, kind: str) -> Account:
        """Raises BadArguments for a channel that there is not."""
        if kind not in KINDS:
            raise BadArguments(f"there is no channel {kind!r}; there is {', '.join(KINDS)}")
        held = (read_json(self._file) or {}).get(kind, {})
        return Account(**{name: held[name] for name in Account._fields if name in held})

    def put(self, kind: str, account: Account) -> None:
        """Raises Damaged."""
        try:
            write_json(self._file, {**(read_json(self._file) or {}), kind: account._asdict()})
        except OSError as error:
            raise Damaged(f"channels.json cannot be written ({os.strerror(error.errno or 0)})") from None


def attend(home: Home, chats: Chats, kind: str, stop: threading.Event) -> None:
    """Is present on a channel until `stop` is set or the owner switches it off. Blocks; one process at a time does so, and
    any other returns. Raises ChannelDown, which is written down where it is final, and MissingExtra."""
    need_chat()
    accounts = Accounts(home)
    account = accounts.get(kind)
    with suppress(HomeBusy), home.site.store.lease("channels", patience=0):
        running = chats.soon(Presence(home, Telegram(account.token, url=account.url), chats).run())
        try:
            while not running.done() and accounts.get(kind) == account and not stop.wait(LOOK):
                pass
            if running.done():
                running.result()
        except ChannelDown as error:
            accounts.put(kind, account._replace(stopped=str(error)))
            raise
        finally:
            running.cancel()


YES, NO = "k", "d"
_SAY = read_table("connect", "channel")
Card = tuple[str, str, tuple[Button, ...]]  # its mark, its text, and what may be pressed


def card_of(home: Home, waiting: Proposal | ForReview, fits: Callable[[str], bool]) -> Card:
    """What waits, as it is shown: without buttons where that is decided elsewhere. A card's mark tells it from every other."""
    if isinstance(waiting, Proposal):
        id, mark, is_call = waiting.id, waiting.content, waiting.call is not None
        asks = "calls a tool" if is_call else f"changes {waiting.path.text}"
        text = f"{id} {asks}: {waiting.why}\n\n{waiting.diff}"
        alone = home.inbox.alone(waiting).removeprefix("call")  # which is decided here, too
        if not alone and any(finding.severity >= Severity.DANGER for finding in waiting.findings):
            alone = "danger"
    else:
        entry, is_call, alone = waiting.entry, False, "danger" if waiting.findings else ""
        id, mark = entry.id, entry.whole_name[1:]
        read = f" It had read: {', '.join(sorted(entry.origins))}." if entry.origins else ""
        section = f" under “{entry.section}”" if entry.section else ""
        text = f"{id} was noted for {entry.to.text}{section}.{read}\n\n{entry.text}"
    text = "\n".join(printable(line, len(line)) for line in text.rstrip("\n").split("\n"))  # nothing in it is hidden
    if not fits(text):
        text, alone = f"{text.partition(chr(10))[0]}\n\nIt is too long to be shown here.", alone or "long"
    if alone:
        return mark, f"{text}\n\n{_SAY['why'].get(alone, '')} {_SAY['elsewhere']}", ()
    yes = Button("Yes, call it" if is_call else "Keep", f"{YES} {id} {mark[:16]}")
    return mark, text, (yes, Button("No" if is_call else "Drop", f"{NO} {id} {mark[:16]}"))


def decided(home: Home, data: str, fits: Callable[[str], bool]) -> tuple[str, str]:
    """What a press did, in words, and the session that goes on now. Raises NoSuchProposal for what waits no longer, and
    Refused for what is not what the card showed, or what no press decides."""
    verb, _, id = data.rpartition(" ")[0].partition(" ")
    asked = next((each for each in home.inbox.all() if each.id == id), None)
    noted = next((each for each in home.inbox.noted() if each.entry.id == id), None)
    if (waits := asked or noted) is None:
        raise NoSuchProposal("this was decided already, or waits no longer")
    if data not in (button.data for button in card_of(home, waits, fits)[2]):
        raise Refused(f"{id} is not what it was, or is not decided here. {_SAY['elsewhere']}", rule="card")
    receipts: Sequence[Receipt] = ()
    if asked is None:
        receipts = home.inbox.keep(id, approver="channel") if verb == YES else home.inbox.drop(id)
    elif verb == YES:
        receipts = home.inbox.approve(id, approver="channel", content=asked.content)
    else:
        home.inbox.deny(id)
    if wrong := [each for each in receipts if each.status not in ("written", "approved")]:
        raise Refused(wrong[0].reason or "that could not be done", rule=wrong[0].rule)
    word = ("called" if asked and asked.call else "kept") if verb == YES else "dropped"
    return word, (asked.session or "") if asked and asked.call else ""


log = logging.getLogger("anima.channels")
T = TypeVar("T")
WAIT, BUSY, LONGEST = 20.0, 1.0, 60.0  # seconds: until it listens anew, while an answer is owed, between two tries
MOST_VENUES, MOST_CARDS, SHOWN = 500, 50, 10
LOOKED = 400  # entries, the newest, among which a message is looked for
FORGETS = timedelta(days=6)  # after a week without news Telegram begins its numbers anew, anywhere
A_TOKEN = 4  # characters, about
_SIGNS = dict.fromkeys(map(ord, "[]()<>:`"), " ")


@dataclass(slots=True)
class KnownVenue:
    """What is known of a venue: its conversation, how many entries of that are out, and which cards."""

    chat: str
    thread: str = ""
    is_direct: bool = False
    session: str = ""
    sent: int = 0
    cards: list[str] = field(default_factory=list)

    @property
    def venue(self) -> Venue:
        return Venue(self.chat, self.thread, self.is_direct)


@dataclass(slots=True)
class PresenceState:
    """What a kill must not lose. Nothing more is to be done about numbers up to `after`, nor about those in `done`."""

    after: int = 0
    done: list[int] = field(default_factory=list)
    at: str = ""  # when the last of them came
    notified: str = ""
    day: str = ""
    spent: int = 0  # tokens on that day, of everybody but the owner
    venues: dict[str, KnownVenue] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)  # a group's name now, and the one its layer has

    @classmethod
    def read(cls, data: bytes | None) -> PresenceState:
        try:
            held = json.loads(data or b"{}")
            return cls(**held | {"venues": {name: KnownVenue(**each) for name, each in held.get("venues", {}).items()}})
        except (ValueError, TypeError, AttributeError):
            return cls()


class Presence:
    """One home on one channel, on the loop of its chats."""

    def __init__(self, home: Home, channel: Channel, chats: Chats) -> None:
        self.home, self.channel, self._chats = home, channel, chats
        self._name, self._store = f"channel-{channel.name}", home.site.store
        self.state = PresenceState.read(self._store.state.get(self._name))
        self._open, self._owed = set[int](), dict[tuple[str, int], tuple[Heard, int]]()
        self._locks: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._tasks, self._wake, self._saving = set[asyncio.Task[None]](), asyncio.Event(), asyncio.Lock()

    async def run(self) -> None:
        """Until it is cancelled. Raises ChannelDown where it would go on in vain."""
        if not self.home.sessions.kept:
            raise BadArguments("a channel needs transcripts, and none are kept here", hint="set sessions.dir")
        self.state.notified = self.state.notified or self.home.site.now().isoformat()
        self._chats.watchers.append(self._watch)
        try:
            await self._reached(self.channel.begin)
            while True:
                await self._round()
        finally:
            self._chats.watchers.remove(self._watch)
            for task in tuple(self._tasks):
                task.cancel()
            await self.channel.close()

    async def _round(self) -> None:
        state, now = self.state, self.home.clock()
        if state.at and now - datetime.fromisoformat(state.at) > FORGETS and not self._open:
            state.after, state.done, state.at = 0, [], ""
        after = min(self._open) - 1 if self._open else state.after
        self._wake.clear()
        for each in await self._reached(lambda: self.channel.listen(after, wait=0 if self._open else WAIT)):
            if each.number > state.after and each.number not in self._open and each.number not in state.done:
                self._open.add(each.number)
                state.at = now.isoformat()
                self._do(self._handled(each))
        await self._notices()
        if self._open:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), BUSY)

    async def _reached(self, call: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What a call gives, made until it can be. Raises ChannelDown where that is in vain."""
        for failures in count():
            try:
                return await call()
            except ChannelDown as error:
                if error.final or error.gone or error.moved:
                    raise
                log.warning("%s: %s", self.channel.name, error)
                await asyncio.sleep(min(LONGEST, 0.25 * 2 ** min(failures, 10)))
        raise AssertionError("counting has no end")

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _settle(self, number: int, *, save: bool = True) -> None:
        """Nothing more is to be done about what came in with this number."""
        state = self.state
        self._open.discard(number)
        state.done.append(number)
        state.after = max(state.after, min(self._open) - 1 if self._open else max(state.done))
        state.done = [each for each in state.done if each > state.after]
        if save:
            await self._save()
        self._wake.set()

    async def _save(self) -> None:
        async with self._saving:
            for is_direct in (False, True):  # topics of a group push out no conversation between two
                alike = [name for name, known in self.state.venues.items() if known.is_direct == is_direct]
                for name in alike[:-MOST_VENUES]:
                    del self.state.venues[name]
            await asyncio.to_thread(self._store.state.put, self._name, json.dumps(asdict(self.state)).encode())

    async def _handled(self, heard: Heard) -> None:
        is_owed, is_ours = False, heard.is_meant or heard.kind in ("pressed", "gone", "moved")
        try:
            async with self._locks[heard.venue.name]:
                if heard.kind == "pressed":
                    await self._pressed(heard)
                elif heard.kind in ("gone", "moved"):
                    self._left(heard)
                elif is_ours:
                    is_owed = await self._said(heard)
        except HomeError as error:
            log.warning("%s: %s", self.channel.name, error)
            said = f"{error} ({error.hint})" if error.hint else str(error)
            await self._told(heard.venue, said if self._listener(heard).sees_all else _SAY["sorry"])
        except Exception:
            log.exception("an error of ours on a channel")
        if not is_owed:
            await self._settle(heard.number, save=is_ours)

    def _listener(self, heard: Heard) -> Listener:
        site, name = self.home.site, self.channel.name
        if heard.venue.is_direct:
            return site.listener(Scope.MAIN, heard.sender, name)
        return site.listener(Scope.GROUP, None, name, self._group(heard.venue))

    def _group(self, venue: Venue) -> str:
        """The name by which a group's layer is called: the one it had first."""
        return self.state.moved.get(venue.chat, venue.chat)

    async def _said(self, heard: Heard) -> bool:
        """Begins a turn; False where there is none."""
        listener, text = self._listener(heard), heard.text
        known = self.state.venues.pop(heard.venue.name, None) or KnownVenue(*heard.venue)
        self.state.venues[heard.venue.name] = known  # the latest is the last
        if heard.kind == "edited":
            before = await self._entry(known.session, _mark(heard).partition(".")[0])
            if before is None or text in before.content:
                return False  # Telegram tells of more than words that changed
            text = f"`[I changed what I wrote before]`\n{text}"
        if heard.command or (away := self._away(heard, listener)) is not None:
            said = await self._command(heard, listener, known) if heard.command else away
            await self._told(heard.venue, said or "")
            return False
        place: dict[str, Any] = {"chat": heard.venue.chat, "channel": self.channel.name, "scope": listener.scope}
        if heard.venue.is_direct:
            place |= {"sender": heard.sender, "chat_type": "direct"}
        else:
            place |= {"group": self._group(heard.venue), "chat_type": "group"}
            called = " ".join(heard.name.translate(_SIGNS).split()) or "somebody"  # no more than a name
            lines = (f"> {line}" if line.lstrip().startswith("[") else line for line in text.splitlines())
            text = f"[{called}, {heard.sender}] " + "\n".join(lines)  # and no line that passes for another's
        chat = await self._chats.joined(known.session, listener, partial(self.home.sessions.begin, **place))
        if chat.id != known.session:
            known.session, known.sent, known.cards = chat.id, 0, []
        held = 0 if listener.sees_all else len(chat.session.prompt.text) // A_TOKEN  # set aside, as long as it goes on
        self.state.spent += held
        await self._save()
        if await self._entry(chat.id, _mark(heard)) is not None:
            number, _ = await chat.say("", apart=True)  # it was heard before a kill, and goes on
        else:
            brought = [(what, f"message {heard.message}:\n{said}") for what, said in heard.outside]
            about = {"message_id": _mark(heard)} | ({} if heard.venue.is_direct else {"sender_id": heard.sender})
            number, _ = await chat.say(text if heard.text else "", apart=True, brought=brought, **about)
        self._owed[chat.id, number] = (heard, held)
        return True

    async def _entry(self, session: str, mark: str) -> Turn | None:
        entries = await asyncio.to_thread(self._read, session, limit=LOOKED, newest=True)
        return next((each for each in entries if each.message_id == mark), None)

    def _read(self, session: str, **which: Any) -> Sequence[Turn]:
        with suppress(HomeError):
            return self.home.sessions.read(session, **which).entries
        return ()

    def _away(self, heard: Heard, listener: Listener) -> str | None:
        """What somebody who is not the owner is told instead of an answer; None where they get one."""
        asked, state, today = self.home.config.channels, self.state, self.home.site.today().isoformat()
        if listener.sees_all:
            return None
        if asked.others == "none" or (asked.others == "groups" and heard.venue.is_direct):
            return (self._hint(heard) or "I talk with my owner alone.") if heard.venue.is_direct else ""
        state.day, state.spent = today, state.spent if state.day == today else 0
        return "That is all for today: come back tomorrow." if state.spent >= asked.day_tokens else None

    def _hint(self, heard: Heard) -> str:
        return how_to_own(f"{self.channel.name}:{heard.sender}", self.home.config.owner)

    def _left(self, heard: Heard) -> None:
        """The agent was put out of a chat, or the chat has another name."""
        for name, known in list(self.state.venues.items()):
            if known.chat == heard.venue.chat:
                del self.state.venues[name]
                if heard.kind == "moved":
                    known.chat = heard.data
                    self.state.venues[known.venue.name] = known
        if heard.kind == "moved":
            self.state.moved[heard.data] = self._group(heard.venue)

    async def _command(self, heard: Heard, listener: Listener, known: KnownVenue) -> str:
        match heard.command:
            case "new":
                for key in [key for key in self._owed if key[0] == known.session]:
                    await self._settle(self._owed.pop(key)[0].number)
                await self._chats.end(known.session)
                known.session, known.sent = "", 0
                return "What we say from here on is a new conversation."
            case "stop":
                await self._chats.stop(known.session)
                return ""
            case "review" if listener.sees_all:
                asked, noted = await asyncio.to_thread(lambda: (self.home.inbox.all(), self.home.inbox.noted()))
                more = len(asked) + len(noted) - await self._show(known, [*asked, *noted], again=True)
                return f"{more} more: anima review" if more else "" if asked or noted else "Nothing waits for you."
            case "review" | "keep" | "drop" if heard.venue.is_direct and not listener.sees_all:
                return await asyncio.to_thread(self._own, heard, f"{folder_of(listener.layer)}/")
        name = self.home.identity.name
        if not heard.venue.is_direct:
            return f"I am {name}. Call me by my name here, or answer to what I say."
        if listener.sees_all:
            return f"I am {name}, and you are my owner: we talk here as we do at your terminal. {_SAY['help']}"
        return f"I am {name}. What you tell me stays between us. {_SAY['help']} {self._hint(heard)}".rstrip()

    def _own(self, heard: Heard, layer: str) -> str:
        """Lines of somebody's own layer that wait, and their keep and drop of them."""
        inbox, names = self.home.inbox, heard.text.split()
        noted = inbox.noted(layer=layer)
        if names and heard.command == "keep" and any(each.findings for each in noted if each.entry.id in names):
            return "The scan warns of this: it can be dropped, and not kept."
        if names and heard.command != "review":
            act = partial(inbox.keep, approver="person") if heard.command == "keep" else inbox.drop
            try:
                is_done = all(each.status == "written" for each in act(*names, layer=layer))
            except NoSuchProposal:
                return "Nothing of that name waits for you."
            return f"{heard.command}: {', '.join(names)}" if is_done else "That could not be done."
        told = "I noted this and do not count on it before you say so. /keep NAME keeps a line, /drop NAME drops it."
        lines = [f"{each.entry.id}: {each.entry.text.strip()}" for each in noted[:SHOWN]]
        return "\n\n".join([told, *lines]) if lines else "Nothing waits for you."

    async def _show(self, known: KnownVenue, waits: Sequence[Proposal | ForReview], *, again: bool = False) -> int:
        """Shows what waits and was not shown yet; how many."""

        def drawn() -> list[Card]:
            return [card_of(self.home, each, self.channel.fits) for each in waits]

        cards = [card for card in await asyncio.to_thread(drawn) if again or card[0] not in known.cards][:SHOWN]
        for mark, text, buttons in cards:
            await self._reached(partial(self.channel.send, known.venue, text, buttons=buttons))
            known.cards = [*known.cards, mark][-MOST_CARDS:]
        return len(cards)

    async def _pressed(self, heard: Heard) -> None:
        if not (heard.venue.is_direct and self._listener(heard).sees_all):
            return await self.channel.answer(heard, "Only my owner decides this, alone with me.")
        try:
            word, session = await asyncio.to_thread(decided, self.home, heard.data, self.channel.fits)
        except HomeError as error:
            return await self.channel.answer(heard, str(error))
        with suppress(ChannelDown):
            await self.channel.answer(heard, word)
            await self.channel.edit(heard.venue, heard.message, f"{heard.text}\n\n{word}")
        if session:
            with suppress(NoSuchSession):  # a group's goes on by itself
                await self._chats.go_on(session)
        return None

    def _watch(self, chat: Chat) -> None:
        if chat.session.channel == self.channel.name:
            self._do(self._follow(chat, chat.feed.last))

    async def _follow(self, chat: Chat, after: int) -> None:
        async for events in chat.feed.follow(after):
            for event in events:
                if event.kind in ("done", "stopped", "error"):
                    heard, held = self._owed.pop((chat.id, event.data["turn"]), (None, 0))
                    if not chat.session.listener.sees_all:
                        self.state.spent += max(0, int(event.data["spent"]) - held)
                    self._do(self._ended(chat, event, heard))

    async def _ended(self, chat: Chat, event: Event, heard: Heard | None) -> None:
        """A turn is over: its answer goes out, then what it left for the owner to decide."""
        try:
            if known := next((each for each in self.state.venues.values() if each.session == chat.id), None):
                await self._answered(known, chat, event, heard)
        except ChannelDown as error:
            log.warning("%s: %s", self.channel.name, error)
        except Exception:
            log.exception("an error of ours on a channel")
        if heard is not None:
            await self._settle(heard.number)

    async def _answered(self, known: KnownVenue, chat: Chat, event: Event, heard: Heard | None) -> None:
        is_owners = chat.session.listener.sees_all
        to = "" if known.is_direct or heard is None else heard.message.partition(".")[0]
        async with self._locks[known.venue.name]:
            said = await asyncio.to_thread(self._read, known.session, start=known.sent, limit=10_000)
            for number, turn in enumerate(said, start=known.sent + 1):
                if turn.role == "assistant" and turn.call is None:
                    await self._sent(known.venue, turn.content, to)
                known.sent = number
            if is_owners:
                asked, noted = await asyncio.to_thread(waiting, self.home, chat.id)
                await self._show(known, [*asked, *noted])
            if event.kind == "error":
                wrong = f"{event.data['text']} ({event.data.get('hint') or 'what you said is kept'})"
                await self._told(known.venue, wrong if is_owners else _SAY["sorry"])

    async def _sent(self, venue: Venue, text: str, to: str = "") -> None:
        try:
            await self._reached(partial(self.channel.send, venue, text, to=to))
        except ChannelDown as error:
            if not error.moved:
                raise
            self._left(Heard(number=0, kind="moved", venue=venue, data=error.moved))
            await self._sent(venue._replace(chat=error.moved), text)

    async def _told(self, venue: Venue, text: str) -> None:
        """A sentence of ours, to whoever can be reached."""
        with suppress(ChannelDown):
            if text:
                await self._sent(venue, text)

    async def _notices(self) -> None:
        """What rituals told their owner, who is here."""
        name = f"{self.channel.name}:"
        owners = [owner.removeprefix(name) for owner in self.home.config.owner if owner.startswith(name)]
        for time, ritual, id in await asyncio.to_thread(delivered, self._store, self.state.notified) if owners else ():
            said = await asyncio.to_thread(said_in, self.home.sessions, id)
            for person in owners if said else ():
                venue, text, chat = self.channel.direct(person), f"{ritual}: {said}", None
                known = self.state.venues.get(venue.name) or KnownVenue(*venue)
                with suppress(NoSuchSession):
                    chat = await self._chats.get(known.session) if known.session else None
                if chat is not None and chat.is_running:
                    return  # they are talking; it is told later
                await self._told(venue, text)
                if chat is not None:  # that conversation knows it, too
                    await chat.told(text, id)
                    known.sent += 1
                    await asyncio.to_thread(is_told, self._store, time)
            self.state.notified = time
            await self._save()


def _mark(heard: Heard) -> str:
    return f"{heard.venue.chat}:{heard.message}"
