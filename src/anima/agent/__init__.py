"""The room of the agent that speaks: models, conversations, compaction. It needs the extra `anima-home[chat]`. Here: a feed of
what happens in one conversation, told while it happens, by server-sent events or to whoever follows.

Promise: what a model is told and does goes through a `Session` alone. Only the modules of this room import pydantic-ai,
and whoever imports them does so inside a function. A listener that was away asks from where it stopped, and misses nothing
or is told to look again. Not here: the faces that talk with a person (cli), what happens (chats; in a home: web.served).
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from anima.errors import MissingExtra
from anima.text import read_table
from anima.text.markdown import defuse_tags

PRACTICE = "practice"  # the model that is always there
STOPPED = " […]"  # behind what an agent had said when it was stopped, or when its server broke off
HEARTBEAT = 15.0
MOST_KEPT = 4_000  # events of one conversation
WORDS = read_table("agent", "words")
Brought = Sequence[tuple[str, str]]  # what a program sent along, as (role, text)


def framed(kind: str, text: str, **more: str) -> str:
    """A text for a model, as data, in the frame of its kind, which it cannot close."""
    return str(WORDS[kind].format(text=defuse_tags(text, (kind,)), **more))


def need_chat() -> None:
    """Raises MissingExtra where the extra is not installed."""
    from importlib.util import find_spec

    if any(find_spec(name) is None for name in ("pydantic_ai", "openai", "anthropic", "prompt_toolkit")):
        raise MissingExtra("chat", "talking with a model")


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideTool:
    """A tool from outside as a model calls it (`name`), and as its server does (`tool`). One that `asks` waits for the owner."""

    name: str
    server: str
    tool: str
    about: str
    schema: dict[str, Any]
    asks: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened. `n` is the ledger's number, from which a listener may go on."""

    kind: str  # change, proposal, decided, files, resync
    n: int
    data: dict[str, Any] = field(default_factory=dict)

    def line(self) -> bytes:
        return f"id: {self.n}\nevent: {self.kind}\ndata: {json.dumps(self.data, ensure_ascii=True)}\n\n".encode()


class Feed:
    """What happens in one conversation, numbered from `first` on, which grows with time; its end is kept. Safe for threads."""

    def __init__(self, first: int) -> None:
        self.last = first
        self._kept: deque[Event] = deque(maxlen=MOST_KEPT)
        self.waiting: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()
        self._mutex, self._ended = threading.Lock(), False

    def tell(self, kind: str, **data: Any) -> None:
        with self._mutex:
            self.last += 1
            self._kept.append(Event(kind=kind, n=self.last, data=data))
        self._wake()

    def end(self) -> None:
        self._ended = True
        self._wake()

    def _wake(self) -> None:
        with self._mutex:
            waiting = tuple(self.waiting)
        for loop, woken in waiting:
            with suppress(RuntimeError):  # the loop has ended, and so has the listener
                loop.call_soon_threadsafe(woken.set)

    def since(self, after: int) -> list[Event]:
        """What was told after a number, words that follow one another as one; `resync` where not all of it is kept."""
        with self._mutex:
            kept = list(self._kept)
        if not (kept[0].n - 1 if kept else self.last) <= after <= self.last:
            return [Event(kind="resync", n=self.last)]
        found = list[Event]()
        for event in kept:
            if event.n > after and found and event.kind == found[-1].kind in ("delta", "thinking"):
                text = found[-1].data["text"] + event.data["text"]
                found[-1] = replace(event, data={**event.data, "text": text})
            elif event.n > after:
                found.append(event)
        return found

    async def follow(self, after: int) -> AsyncIterator[list[Event]]:
        """What was told, and what is told from now on; nothing where long nothing was."""
        here = (asyncio.get_running_loop(), asyncio.Event())
        with self._mutex:
            self.waiting.add(here)
        try:
            while not self._ended:
                here[1].clear()
                if found := self.since(after):
                    after = found[-1].n
                    yield found
                    continue
                try:
                    await asyncio.wait_for(here[1].wait(), HEARTBEAT)
                except TimeoutError:
                    yield []
        finally:
            with self._mutex:
                self.waiting.discard(here)

    async def stream(self, after: int, *, still: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Server-sent events until the client goes, the server stops, or `still` says no."""
        yield b"retry: 2000\n: listening\n\n"
        async for events in self.follow(after):
            if not await asyncio.to_thread(still):
                return
            yield b"".join(event.line() for event in events) or b": still here\n\n"
