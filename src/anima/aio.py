"""anima for programs that are async: the same homes and sessions, each call in a thread.

    async with aio.open("~/aria") as home:
        await home.remember("The boat is called Sandpiper")
        async with home.session(scope="main") as session:
            await session.call("memory_search", {"query": "boat"})

Promise: every verb of `Home`, its parts (`home.inbox`, `home.past`, …) and `Session` is there under its own name, with its own arguments,
and is awaited; what is data comes as it is. A call that began is finished, also when its caller was cancelled; a home that was opened for
nobody is closed, a session let go. An async function may be given where a function is wanted (`complete`). A type checker knows
those of both, not of parts. Not here: any verb.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import is_dataclass
from enum import Enum
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast, overload

from anima.home import Home

__all__ = ["Awaited", "AwaitedHome", "AwaitedSession", "Coming", "create", "open"]

P = ParamSpec("P")
T = TypeVar("T")
# What comes when nobody waits any more is let go, by the name of its type.
_UNWANTED: Mapping[str, Callable[[Any], object]] = {"Home": Home.close, "Session": lambda it: it.leave()}


class Awaited:
    """A home, a session or a part of a home whose verbs are awaited. Annotations call it `AwaitedHome` and `AwaitedSession`."""

    def __init__(self, it: Any) -> None:
        self._it = it

    def __getattr__(self, name: str) -> Any:
        found = _wrapped(getattr(self._it, name))  # the index is called, and has verbs
        return _begun(found) if callable(found) and not isinstance(found, Awaited) else found

    def __call__(self, *given: Any, **more: Any) -> Any:
        return Coming(self._it, *given, **more)

    def __repr__(self) -> str:
        return f"<Awaited {self._it!r}>"

    def __dir__(self) -> list[str]:
        return dir(self._it)

    async def __aenter__(self) -> Awaited:
        return self

    async def __aexit__(self, *error: object) -> None:
        await Coming(self._it.close)


class Coming(Coroutine[Any, Any, T]):
    """What a call will give: await it, make a task of it, or enter it where it has an end (`async with home.session(…)`)."""

    def __init__(self, verb: Callable[..., Any], *given: Any, **more: Any) -> None:
        self._work = _done(verb, given, more)
        setattr(self._work, "__qualname__", getattr(verb, "__qualname__", "it"))  # noqa: B010  Python tells it where nobody awaits it

    def __await__(self) -> Generator[Any, Any, T]:
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

    async def __aenter__(self) -> T:
        self._came = await self
        return self._came

    async def __aexit__(self, *error: object) -> None:
        await cast(Any, self._came).__aexit__(*error)


def _begun(verb: Callable[P, Any]) -> Callable[P, Coming[AwaitedHome]]:
    return wraps(verb)(lambda *given, **more: Coming(verb, *given, **more))


async def _done(verb: Callable[..., Any], given: Sequence[Any], more: Mapping[str, Any]) -> Any:
    loop, own = asyncio.get_running_loop(), getattr(getattr(verb, "__self__", None), "complete", None)
    if own or any(map(inspect.iscoroutinefunction, (*given, *more.values()))):
        own = ThreadPoolExecutor(1)  # what waits for the loop takes none of its threads, which the answer may need
    given = [_plain(each, loop) for each in given]
    more = {name: _plain(each, loop) for name, each in more.items()}
    came: Future[Any] = Future()

    def work() -> Any:
        came.set_result(verb(*given, **more))
        return came.result()

    try:
        return _wrapped(await loop.run_in_executor(own, copy_context().run, work))
    except asyncio.CancelledError:
        came.add_done_callback(lambda came: _UNWANTED.get(type(came.result()).__name__, id)(came.result()))
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


# What a type checker knows of it: the verbs as they are, each awaited.
if TYPE_CHECKING:
    _h, _s = Home.open(), Home.open().session(scope="main")

    def _of(verb: Callable[P, T]) -> staticmethod[P, Coming[T]]: ...
    def _talk(verb: Callable[P, object]) -> staticmethod[P, Coming[AwaitedSession]]: ...

    class _Known:
        async def __aenter__(self) -> Self: ...
        async def __aexit__(self, *error: object) -> None: ...

    class AwaitedSession(_Known):
        access, prompt, sender, sub, tool = _s.access, _s.prompt, _s.sender, _talk(_s.sub), _of(_s.tool)
        after_compaction, pressure, wish_forgotten = _of(_s.after_compaction), _of(_s.pressure), _of(_s.wish_forgotten)
        agent, log, may, model, now, run = _s.agent, _of(_s.log), _of(_s.may), _s.model, _of(_s.now), _of(_s.run)
        all_read, complete, flush, listener, noted = _s.all_read, _s.complete, _of(_s.flush), _s.listener, _of(_s.noted)
        at_work, catch_up, context, refresh = _of(_s.at_work), _of(_s.catch_up), _of(_s.context), _of(_s.refresh)
        call, news, read, tainted, wish = _of(_s.call), _of(_s.news), _of(_s.read), _s.tainted, _of(_s.wish)
        change, judged, submit, take_in = _of(_s.change), _of(_s.judged), _of(_s.submit), _of(_s.take_in)
        channel, close, leave, taint, trust = _s.channel, _of(_s.close), _of(_s.leave), _of(_s.taint), _of(_s.trust)
        documents, fresh_prompt, id, owner_typed = _of(_s.documents), _of(_s.fresh_prompt), _s.id, _of(_s.owner_typed)
        parent: AwaitedSession | None

        @overload
        def tools(self) -> Coming[tuple[Any, ...]]: ...
        @overload
        def tools(self, format: str) -> Coming[list[dict[str, Any]]]: ...
        def tools(self, format: str = "") -> Coming[Any]: ...

    class AwaitedHome(_Known):
        inbox = past = upkeep = snapshots = dreams = identity = prompts = index = sessions = cast(Any, None)
        agent, delete, exists, export, prompt = _h.agent, _of(_h.delete), _of(_h.exists), _of(_h.export), _of(_h.prompt)
        append, resume, session, settings = _of(_h.append), _talk(_h.resume), _talk(_h.session), _of(_h.settings)
        backfill, credentials, list_all, remember = _of(_h.backfill), _h.credentials, _of(_h.list_all), _of(_h.remember)
        clock, config, dice, name, tree = _h.clock, _h.config, _h.dice, _h.name, _of(_h.tree)
        close, dialect, dream, forget, search = _of(_h.close), _h.dialect, _of(_h.dream), _of(_h.forget), _of(_h.search)
        configure, import_directory, next_snapshot = _of(_h.configure), _of(_h.import_directory), _of(_h.next_snapshot)
        dream_if_due, import_from, is_vouched_for = _of(_h.dream_if_due), _of(_h.import_from), _h.is_vouched_for
        edit, note, today, trust, write = _of(_h.edit), _of(_h.note), _of(_h.today), _of(_h.trust), _of(_h.write)
        list, move, read, seed, undo = _of(_h.list), _of(_h.move), _of(_h.read), _of(_h.seed), _of(_h.undo)
else:
    AwaitedHome = AwaitedSession = Awaited

open, create = _begun(Home.open), _begun(Home.create)
