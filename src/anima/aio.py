"""anima for programs that are async: the same homes and sessions, each call in a thread.

    async with aio.open("~/aria") as home:
        await home.remember("The boat is called Sandpiper")
        async with home.session(scope="main") as session:
            await session.call("memory_search", {"query": "boat"})

Promise: every verb of `Home`, its parts (`home.inbox`, `home.past`, …) and `Session` is there under its own name, with its own
arguments, and is awaited; what is data comes as it is. A call that began is finished, also when its caller was cancelled; a home
that was opened for nobody is closed. An async function may be given where a function is wanted (`complete`).
Not here: any verb.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import is_dataclass
from enum import Enum
from functools import wraps
from pathlib import Path
from typing import Any

from anima.home import Home

__all__ = ["Awaited", "Coming", "create", "open"]


def open(path: str | Path, **more: Any) -> Coming:
    """The home in a folder, as `Home.open` opens it: `async with aio.open(path) as home`, or `home = await aio.open(path)`."""
    return Coming(Home.open, path, **more)


def create(path: str | Path, **more: Any) -> Coming:
    """A new home, as `Home.create` makes it."""
    return Coming(Home.create, path, **more)


class Awaited:
    """A home, a session or a part of a home whose verbs are awaited."""

    def __init__(self, it: Any) -> None:
        self._it = it

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._it, name)
        if callable(found):
            return wraps(found)(lambda *given, **more: Coming(found, *given, **more))
        return _wrapped(found)

    def __dir__(self) -> list[str]:
        return dir(self._it)

    async def __aenter__(self) -> Awaited:
        return self

    async def __aexit__(self, *error: object) -> None:
        await Coming(self._it.close)


class Coming(Coroutine[Any, Any, Any]):
    """What a call will give: await it, make a task of it, or enter it where it has an end (`async with home.session(…)`)."""

    def __init__(self, verb: Callable[..., Any], *given: Any, **more: Any) -> None:
        self._work = _done(verb, given, more)
        setattr(self._work, "__qualname__", getattr(verb, "__qualname__", "it"))  # noqa: B010  Python tells it where nobody awaits it

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._work.__await__()

    def send(self, value: Any) -> Any:
        """For who runs it."""
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """For who runs it."""
        return self._work.throw(*error)

    def close(self) -> None:
        """For who lets it go before it began."""
        self._work.close()

    async def __aenter__(self) -> Any:
        self._came = await self
        return self._came

    async def __aexit__(self, *error: object) -> None:
        await self._came.__aexit__(*error)


async def _done(verb: Callable[..., Any], given: Sequence[Any], more: Mapping[str, Any]) -> Any:
    loop = asyncio.get_running_loop()
    given = [_plain(each, loop) for each in given]
    more = {name: _plain(each, loop) for name, each in more.items()}
    came: Future[Any] = Future()

    def work() -> Any:
        came.set_result(verb(*given, **more))
        return came.result()

    try:
        return _wrapped(await asyncio.to_thread(work))
    except asyncio.CancelledError:
        came.add_done_callback(_close_home)  # at once, or when it comes
        raise


def _wrapped(value: Any) -> Any:
    """Whatever has verbs is wrapped; data, which is frozen, comes as it is."""
    is_ours = type(value).__module__.partition(".")[0] == "anima"
    is_frozen = is_dataclass(value) and getattr(value, "__dataclass_params__").frozen  # noqa: B009
    is_data = is_frozen or isinstance(value, (tuple, str, Enum, BaseException))
    return Awaited(value) if is_ours and not is_data else value


def _plain(value: Any, loop: asyncio.AbstractEventLoop) -> Any:
    """An async function as one that a thread can call, and what is wrapped without its wrapping."""
    if isinstance(value, Awaited):
        return value._it
    if not inspect.iscoroutinefunction(value):
        return value
    return lambda *given: asyncio.run_coroutine_threadsafe(value(*given), loop).result()


def _close_home(came: Future[Any]) -> None:
    """Closes a home that came when nobody waits any more."""
    if isinstance(came.result(), Home):
        came.result().close()
