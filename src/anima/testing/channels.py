"""What every channel promises, as tests: bind it by a subclass with a `town` fixture; and one in memory that keeps it.

A `Town` is the other side: people who write and press, and what they are shown. `MemoryChannel` is both at once.

    class TestMine(ChannelContract):
        @pytest.fixture
        def town(self): ...

Promise: public and independent of any service. Not here: what a home does with what it hears (`tests/connect`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import pytest

from anima.connect.channels import Button, Channel, ChannelDown, Heard, Venue

T = TypeVar("T")
ANA, BEN, CLUB = "7", "66", "-42"
DIRECT, GROUP = Venue(ANA, is_direct=True), Venue(CLUB)


@dataclass
class Shown:
    """A message of the agent's as people see it."""

    venue: Venue
    text: str
    buttons: Sequence[Button] = ()
    id: str = ""


class Town(Protocol):
    """The people of a channel, for tests. `group`, where given, is where it is said."""

    def open(self) -> Channel:
        """The channel, once more, as another process would open it."""

    def says(self, text: str, *, sender: str, group: str = "", meant: bool = True) -> None: ...

    def forwards(self, text: str, *, sender: str) -> None: ...

    def presses(self, data: str, *, sender: str, under: Shown) -> None: ...

    def shown(self) -> list[Shown]:
        """What stands in the chats now, in order."""

    def words(self) -> list[str]:
        """What was told to people who pressed."""

    def cut(self) -> None:
        """The next call finds nobody."""


class ChannelContract:
    """Every channel passes all of this."""

    def do(self, town: Town, work: Callable[[Channel], Coroutine[Any, Any, T]]) -> T:
        async def done() -> T:
            channel = town.open()
            try:
                await channel.begin()
                return await work(channel)
            finally:
                await channel.close()

        return asyncio.run(done())

    def test_it_says_who_speaks_where_and_whether_the_agent_is_meant(self, town: Town) -> None:
        town.says("hello", sender=ANA)
        town.says("hello all", sender=BEN, group=CLUB, meant=False)
        town.says("hello you", sender=BEN, group=CLUB)
        first, second, third = self.do(town, lambda channel: channel.listen(0, wait=5))
        assert (first.kind, first.sender, first.venue, first.text, first.is_meant) == (
            "said",
            ANA,
            DIRECT,
            "hello",
            True,
        )
        assert (second.sender, second.venue, second.is_meant) == (BEN, GROUP, False)
        assert third.is_meant and third.venue == GROUP and "hello you" in third.text
        assert first.number < second.number < third.number and first.message and not first.outside

    def test_what_came_in_is_told_again_until_it_is_done_also_to_another_process(self, town: Town) -> None:
        town.says("one", sender=ANA)
        town.says("two", sender=ANA)

        async def twice(channel: Channel) -> list[Sequence[Heard]]:
            return [await channel.listen(0, wait=5), await channel.listen(0, wait=5)]

        first, again = self.do(town, twice)
        assert list(first) == list(again) == list(self.do(town, lambda channel: channel.listen(0, wait=5)))
        (left,) = self.do(town, lambda channel: channel.listen(first[0].number, wait=5))
        assert left == first[1]
        assert self.do(town, lambda channel: channel.listen(first[1].number, wait=0)) == []

    def test_others_words_are_told_apart(self, town: Town) -> None:
        town.forwards("the bank's number is 5", sender=ANA)
        (heard,) = self.do(town, lambda channel: channel.listen(0, wait=5))
        assert heard.text == "" and [text for _, text in heard.outside] == ["the bank's number is 5"]
        assert heard.sender == ANA and not heard.command

    def test_a_command_is_a_word_and_what_stands_behind_it(self, town: Town) -> None:
        town.says("/keep u1 u2", sender=ANA)
        town.says("/keep", sender=BEN, group=CLUB, meant=False)
        one, other = self.do(town, lambda channel: channel.listen(0, wait=5))
        assert (one.command, one.text) == ("keep", "u1 u2") and other.command == ""

    def test_a_text_of_any_length_arrives_whole(self, town: Town) -> None:
        text = "\n".join(f"{n} \U0001f33f said" for n in range(3_000))
        self.do(town, lambda channel: channel.send(DIRECT, text))
        assert "".join("".join(each.text for each in town.shown()).split()) == "".join(text.split())
        assert all(each.venue == DIRECT for each in town.shown())

    def test_a_short_text_fits_and_a_long_one_does_not(self, town: Town) -> None:
        async def fits(channel: Channel) -> tuple[bool, bool]:
            return channel.fits("x" * 500), channel.fits("x" * 100_000)

        assert self.do(town, fits) == (True, False)

    def test_a_button_comes_back_with_who_pressed_it_and_where(self, town: Town) -> None:
        sent = self.do(town, lambda channel: channel.send(DIRECT, "Keep?", buttons=[Button("Yes", "k 1")]))
        (card,) = town.shown()
        assert card.id == sent and [each.label for each in card.buttons] == ["Yes"]
        town.presses("k 1", sender=BEN, under=card)

        async def answered(channel: Channel) -> Heard:
            (heard,) = await channel.listen(0, wait=5)
            await channel.answer(heard, "not yours")
            await channel.edit(DIRECT, sent, "Kept.")
            return heard

        heard = self.do(town, answered)
        assert (heard.kind, heard.sender, heard.data, heard.message) == ("pressed", BEN, "k 1", sent)
        assert not heard.venue.is_direct and town.words() == ["not yours"]  # it is not their chat
        assert [(each.text, list(each.buttons)) for each in town.shown()] == [("Kept.", [])]

    def test_what_is_sent_to_somebody_reaches_them_alone(self, town: Town) -> None:
        self.do(town, lambda channel: channel.send(channel.direct(ANA), "for you"))
        assert [each.venue for each in town.shown()] == [DIRECT]

    def test_one_that_cannot_be_reached_says_so_and_can_be_reached_later(self, town: Town) -> None:
        async def tried(channel: Channel) -> str:
            town.cut()
            with pytest.raises(ChannelDown) as caught:
                await channel.send(DIRECT, "hello")
            assert not caught.value.final and not caught.value.gone
            return await channel.send(DIRECT, "hello")

        assert self.do(town, tried) and [each.text for each in town.shown()] == ["hello"]


# -- in memory -----------------------------------------------------------------------------------------------------------------


@dataclass
class MemoryChannel:
    """A channel in this process, with its people. What was said is told again until it is done."""

    name: str = "memory"
    most: int = 4_000
    waiting: list[Heard] = field(default_factory=list)
    sent: list[Shown] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    is_cut: bool = False
    count: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    quiet: asyncio.Event = field(default_factory=asyncio.Event)  # set while nothing is left to be done

    def open(self) -> MemoryChannel:
        return self

    async def begin(self) -> str:
        return self.name

    async def listen(self, after: int, *, wait: float) -> Sequence[Heard]:
        self._reach()
        self.waiting = [each for each in self.waiting if each.number > after]
        if not self.waiting:
            self.quiet.set()
            self.changed.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self.changed.wait(), wait)
        return list(self.waiting)

    async def send(self, venue: Venue, text: str, *, buttons: Sequence[Button] = (), to: str = "") -> str:
        self._reach()
        pieces = [text[at : at + self.most] for at in range(0, len(text), self.most)]
        for number, piece in enumerate(pieces, start=1):
            self.count += 1
            self.sent.append(Shown(venue, piece, tuple(buttons) if number == len(pieces) else (), str(self.count)))
        return str(self.count)

    def fits(self, text: str) -> bool:
        return len(text) <= self.most

    async def edit(self, venue: Venue, message: str, text: str) -> None:
        self.sent = [replace(each, text=text, buttons=()) if each.id == message else each for each in self.sent]

    async def answer(self, pressed: Heard, text: str) -> None:
        self.told.append(text)

    def direct(self, person: str) -> Venue:
        return Venue(person, is_direct=True)

    async def close(self) -> None:
        """Nothing is held."""

    def _reach(self) -> None:
        if self.is_cut:
            self.is_cut = False
            raise ChannelDown("nobody is there")

    # -- its people -------------------------------------------------------------------------------------------------------

    def push(self, **heard: Any) -> None:
        """Something comes in; on the loop that listens."""
        self.count += 1
        self.waiting.append(Heard(number=self.count, message=heard.pop("message", str(self.count)), **heard))
        self.quiet.clear()
        self.changed.set()

    def says(self, text: str, *, sender: str, group: str = "", meant: bool = True) -> None:
        venue = Venue(group) if group else Venue(sender, is_direct=True)
        command, _, rest = text[1:].partition(" ") if text.startswith("/") and meant else ("", "", text)
        self.push(kind="said", venue=venue, sender=sender, text=rest, command=command, is_meant=meant)

    def forwards(self, text: str, *, sender: str) -> None:
        venue = Venue(sender, is_direct=True)
        self.push(kind="said", venue=venue, sender=sender, outside=(("forwarded", text),), is_meant=True)

    def presses(self, data: str, *, sender: str, under: Shown) -> None:
        venue = under.venue._replace(is_direct=under.venue.is_direct and under.venue.chat == sender)
        self.push(kind="pressed", venue=venue, sender=sender, data=data, message=under.id, text=under.text)

    def shown(self) -> list[Shown]:
        return self.sent

    def words(self) -> list[str]:
        return self.told

    def cut(self) -> None:
        self.is_cut = True
