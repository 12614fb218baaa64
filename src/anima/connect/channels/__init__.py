"""Channels: places where people write anyway, and where the agent can be talked to. The seam that each stands behind.

Promise: a channel only carries. It says what came in, by whose id (which nobody can choose or forge), and whether the agent
was meant; words that are not the sender's own are told apart. What came in is told again until it is said to be done, so
that no kill loses it. Contract: `anima.testing.channels`. Not here: who may see and decide what (presence).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from anima.errors import HomeError


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
    """It cannot be reached, or does not take this. `final`: nothing will go better; `gone`: in that chat; `moved`: its name now."""

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
