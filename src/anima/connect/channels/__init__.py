"""Channels: places where people write anyway, and where the agent can be talked to. The seam that each stands behind.

Promise: a channel only carries. It says what came in, by whose id (which nobody can choose or forge), and whether the agent
was meant; words that are not the sender's own are told apart. What came in is told again until it is said to be done, so
that no kill loses it. Contract: `anima.testing.channels`. Not here: who may see and decide what (presence).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from anima.connect.spool import read_json, write_json
from anima.errors import BadArguments, Damaged, HomeBusy, HomeError

if TYPE_CHECKING:
    from anima.agent.chats import Chats
    from anima.home import Home


class Venue(NamedTuple):
    """Where something is said: a chat, in some a thread of it. A direct one is between one person and the agent."""

    chat: str
    thread: str = ""
    is_direct: bool = False

    @property
    def name(self) -> str:
        return f"{self.chat}/{self.thread}" if self.thread else self.chat


class Button(NamedTuple):
    """What may be pressed under a message: what it says, and what comes back, in at most 64 bytes."""

    label: str
    data: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """One thing that came in. `number` grows; `message` is its name in its chat, the same however often it is told.

    `said`: `text` is the sender's own words, `outside` are others' that came along, as (what they are, text); `command` is
    the word of a command that is for the agent. `edited`: the same, anew. `pressed`: a button with `data` under `message`.
    `gone`: the agent was put out of that chat; `moved`: it is called `data` from now on; `nothing`: not for the agent."""

    number: int
    kind: Literal["said", "edited", "pressed", "gone", "moved", "nothing"]
    venue: Venue
    sender: str = ""
    name: str = ""  # what they call themselves: for the eye, and never who they are
    message: str = ""
    text: str = ""
    outside: tuple[tuple[str, str], ...] = ()
    command: str = ""
    is_meant: bool = False  # the agent: alone with them, by its name, by a reply or by a command
    data: str = ""
    press: str = ""  # what the channel calls the press


class ChannelDown(HomeError):
    """It cannot be reached, or does not take this. `final`: nothing will go better; `gone`: this will not, in that chat;
    `moved`: the name of the chat in its place."""

    def __init__(
        self, message: str, *, final: bool = False, gone: bool = False, moved: str = "", hint: str = ""
    ) -> None:
        self.final, self.gone, self.moved = final, gone, moved
        super().__init__(message, hint=hint or None)


class Channel(Protocol):
    """A channel, open. Its `name` is what ids of people on it begin with, as `name:id`. Everything raises ChannelDown."""

    name: str

    async def begin(self) -> str:
        """What the agent is called there."""

    async def listen(self, after: int, *, wait: float) -> Sequence[Heard]:
        """What came in with a number beyond `after`, and all of it again until `after` is beyond it; once something is
        there, or after some seconds. 0: whatever nobody said was done."""

    async def send(self, venue: Venue, text: str, *, buttons: Sequence[Button] = (), to: str = "") -> str:
        """Sends a text of any length, in pieces where it must be, in answer `to` a message; the name of the last piece,
        which has the buttons. What the text says is shown as it is, and nothing in it is fetched by anybody."""

    def fits(self, text: str) -> bool:
        """Whether a text is one message."""

    async def edit(self, venue: Venue, message: str, text: str) -> None:
        """Puts another text in the place of a message, without buttons."""

    async def answer(self, pressed: Heard, text: str) -> None:
        """A short word to whoever pressed a button."""

    def direct(self, person: str) -> Venue:
        """Where somebody is alone with the agent."""

    async def close(self) -> None: ...


# -- which channels a home is on -----------------------------------------------------------------------------------------

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
    from anima.agent import need_chat
    from anima.connect.channels.presence import Presence
    from anima.connect.channels.telegram import Telegram

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
