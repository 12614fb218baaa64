"""The homes that an application serves: the one of this machine, or those of a database, found by who asks.

Promise: a credential alone says whose home a request is for. Homes of a database are held open while they are used and some time
after; a bounded number of them, and of bytes, the longest unused closed first and never one in which something goes on. Their
configuration names no folder, program or address: the machine is not their owner's. What goes wrong with the database is told to
the log alone. Not here: what a credential may do (guard), what the database is asked (home.folders), what homes do unasked (serve).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from anyio import to_thread

from anima.errors import BadArguments, Damaged, HomeError, NoSuchHome, NotFound, OverQuota, Refused, StaleWrite
from anima.home import Home, now
from anima.model import HOSTED, Scope
from anima.web import tokens
from anima.web.guard import Problem, RateLimits, Turned, of_error
from anima.web.served import Bulletin, LiveChats, Served
from anima.web.tokens import MOST_PASSES, Keyring, Kind, Pass, Tickets, digest_of

if TYPE_CHECKING:
    from anima.home.folders import Fleet

log = logging.getLogger("anima.web")
MakeChats = Callable[[Home], LiveChats]
IDLE = 600.0  # seconds after which a home that nobody asks for is closed
TICK = 1.0  # seconds between two looks at every home that somebody listens to
PAUSE = 0.1  # seconds between two looks at all, and between two messages to other servers
AGAIN = 5.0
SOON = 20.0  # seconds until a home is woken that was just opened, or has a schedule
ENDING = 10.0  # seconds that a server may take to end, once it has answered
STILL = 2.0  # seconds for which a stream need not ask whether its credential still works
FRIENDS, STRANGERS = 4, 2  # threads in which credentials are looked for: those that were good here before, and others
MOST_STRANGERS, MOST_KNOWN = 200, 10_000  # that wait, or are looked for; and digests of credentials that were good
AWAY = 5.0  # seconds after which a database that does not answer a probe is away


HOST = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleetwise:
    """How a server of many homes is run. `url` is where people reach it through a balancer; `most` homes, and bytes of
    their indexes, are held open."""

    host: str = HOST
    port: int | None = None
    url: str = ""
    most: int = 500
    most_bytes: int = 2**30
    drain: float = 5.0


class OneHome:
    """The home of this machine, whoever asks."""

    url, is_secure = "", False
    not_this = ("Not this code. It was used, or is older than ten minutes.", "anima token link makes a new one")

    def __init__(self, served: Served) -> None:
        self.served, self.limits, self.hush, self.clock = served, served.limits, served.hush, served.home.clock
        self.cookie, self.tickets = served.keyring.cookie, Tickets(now=time.monotonic)

    async def find(self, secret: str) -> Pass | None:
        return self._own(self.served.keyring.find(secret))

    async def named(self, id: str) -> Pass | None:
        return self._own(self.served.keyring.named(id))

    async def redeem(self, code: str) -> tuple[str, str] | None:
        return await to_thread.run_sync(self.served.keyring.redeem, code)

    def _own(self, found: Pass | None) -> Pass | None:
        return found if found and found.agent in (None, self.served.home.agent) else None

    async def ready(self) -> bool:
        return True

    @asynccontextmanager
    async def held(self, who: Pass) -> AsyncIterator[Served]:
        yield self.served


class Whose(NamedTuple):
    """Which home of a database, and what its tenant is called."""

    tenant: int
    tenant_name: str
    agent: str

    @property
    def place(self) -> tuple[int, str]:
        return self.tenant, self.agent


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantPass(Pass):
    """What a credential of a tenant's allows, in the one home it is for."""

    tenant: int
    tenant_name: str
    agent: str

    @property
    def whose(self) -> Whose:
        return Whose(self.tenant, self.tenant_name, self.agent)


def _pass_of(row: Mapping[str, Any]) -> TenantPass:
    about = {each.name: row[each.name] for each in fields(TenantPass) if each.name in row}
    return TenantPass(**{**about, "scope": Scope(row["scope"]) if row["scope"] else None})


class TenantKeyring(Keyring):
    """The credentials of one home in a database. Its owner sees and makes those of this home alone."""

    def __init__(self, fleet: Fleet, tenant: int, agent: str, home: Home) -> None:
        super().__init__(home.credentials, clock=home.clock)
        self._fleet, self._tenant, self._agent = fleet, tenant, agent
        self._still: dict[str, tuple[float, dict[str, Any] | None]] = {}

    def all(self) -> tuple[Pass, ...]:
        rows = self._fleet.credentials(self._tenant, self._agent)
        return tuple(_pass_of({**row, "tenant": self._tenant, "tenant_name": ""}) for row in rows)

    def named(self, id: str) -> Pass | None:
        """For streams, which ask often: what was told a moment ago counts."""
        at, row = self._still.get(id, (0.0, None))
        if time.monotonic() - at > STILL:
            row = self._fleet.credential(id=id)
            self._still = {id: (time.monotonic(), row)} | dict(list(self._still.items())[-100:])
        is_own = row is not None and (row["tenant"], row["agent"]) == (self._tenant, self._agent)
        return _pass_of(row) if row and is_own and not row["is_suspended"] else None

    def make(self, kind: Kind, *, by: str | None = None, **about: Any) -> tuple[Pass, str]:
        """What opens everything does not outlive what it was made with."""
        maker = self._fleet.credential(id=by) if by and kind == "owner" else None
        if maker and maker["expires"]:
            left = maker["expires"] - now()
            about["lifetime"] = min(about.get("lifetime") or left, left)
        return super().make(kind, by=by, **about)

    def revoke(self, id: str) -> Pass:
        found = next((one for one in self.all() if one.id == id), None)
        if found is None or not self._fleet.drop_credential(self._tenant, id, self._agent):
            raise NotFound(f"there is no token {id!r}")
        self._still.pop(id, None)
        return found

    def note_shown(self, id: str, face: str) -> None:
        if not super().was_shown(id, face):
            self._fleet.note_shown(self._tenant, id, face)
            super().note_shown(id, face)

    def was_shown(self, id: str, face: str) -> bool:
        return super().was_shown(id, face) or self._fleet.was_shown(self._tenant, id, face)

    def _add(self, made: Pass, digest: str, by: str | None) -> None:
        _keep(self._fleet, self._tenant, self._agent, made, digest, by)


def _keep(fleet: Fleet, tenant: int, agent: str, made: Pass, digest: str, by: str | None) -> None:
    if len(fleet.credentials(tenant, agent)) >= MOST_PASSES:
        raise BadArguments(f"there are {MOST_PASSES:,} tokens already", hint="revoke some")
    about = {each.name: getattr(made, each.name) for each in fields(Pass)}
    about |= {"agent": agent, "scope": made.scope and made.scope.value}
    fleet.add_credential(tenant, about, by=by, digest=bytes.fromhex(digest))


@dataclass(slots=True)
class _Held:
    """A home that is open, or being opened."""

    opening: threading.Lock = field(default_factory=threading.Lock)
    served: Served | None = None
    users: int = 0
    used: float = 0.0
    asked: int = 0  # requests that are not counted in the database yet
    is_over: bool = False  # somebody was turned away, so what is left is asked for
    today: dict[str, tuple[int, int | None]] = field(default_factory=dict)  # of its tenant, when it was last counted


class ManyHomes:
    """The homes of a database. Lives from `start` to `stop`."""

    not_this = ("This key opens nothing here.", "it is the owner's token; whoever runs the servers makes a new one")

    def __init__(
        self, fleet: Fleet, env: Mapping[str, str], how: Fleetwise, *, left: Callable[[Home], None], chats: MakeChats
    ) -> None:
        """`left` is told of each home before it is closed; `chats` makes the conversations of one that is opened."""
        self._fleet, self._env, self._how, self._left, self._chats = fleet, {**env, HOSTED: "1"}, how, left, chats
        self.limits = RateLimits(logins_a_minute=10**9)  # a key cannot be guessed; how many are looked for is bounded
        self.url, self.clock = how.url, now
        self._held: OrderedDict[tuple[int, str], _Held] = OrderedDict()
        self._stale = list[_Held]()  # no longer what they were, and still used by somebody
        self._mutex, self._ended, self._wake = threading.Lock(), threading.Event(), threading.Event()
        self._counting = threading.Lock()
        self._woken, self._told = set[str](), set[str]()  # marks of homes: heard of, and to be told of
        self._friends, self._strangers = (ThreadPoolExecutor(most, "anima-known") for most in (FRIENDS, STRANGERS))
        self._known, self._waiting = dict[Any, None](), 0
        self._probe, self._probed = self._friends.submit(fleet.is_there), time.monotonic()
        targets = ((self._run, "anima-homes"), (self._hear, "anima-heard"))
        self._threads = [threading.Thread(target=work, name=name, daemon=True) for work, name in targets]
        self.is_draining, self.is_secure = False, how.url.startswith("https:")
        self.cookie = "__Host-anima" if self.is_secure else "anima-homes"
        self._seal = fleet.seal(env)
        self.tickets = Tickets(now=time.time, seal=self._seal)

    async def find(self, secret: str) -> Pass | None:
        if not tokens.is_secret(secret):
            return None
        return await self._asked(digest=bytes.fromhex(digest_of(secret)))

    async def named(self, id: str) -> Pass | None:
        return await self._asked(id=id) if id else None

    async def _asked(self, **by: Any) -> Pass | None:
        """Looked for anew each time. Secrets that were somebody's have threads of their own, so that whoever floods us
        with others keeps only such as come for the first time waiting."""
        (key,) = by.values()
        is_known = key in self._known
        if not is_known and self._waiting >= MOST_STRANGERS:
            raise Turned(Problem(429, "too many tries; try again", headers={"Retry-After": "1"}))
        self._waiting += not is_known
        try:
            lane = self._friends if is_known else self._strangers
            row = await asyncio.wrap_future(lane.submit(self._fleet.credential, **by))
        except HomeError as error:
            raise _away(error) from None
        finally:
            self._waiting -= not is_known
        self._known.pop(key, None)
        if row is None:
            return None
        self._known[key] = None
        if len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]
        if row["is_suspended"]:
            raise Turned(Problem(403, "this tenant is suspended", title="Refused", rule="suspended"))
        return _pass_of(row)

    async def redeem(self, secret: str) -> tuple[str, str] | None:
        """Both halves of a page's secret, for an owner's token that works."""
        found = await self.find(secret)
        if not isinstance(found, TenantPass) or found.kind != "owner":
            return None
        left = found.expires - now() if found.expires else tokens.PAGE_LIFETIME
        made = tokens.new_pass(
            "page", name="a browser", scope=None, now=now(), lifetime=min(tokens.PAGE_LIFETIME, left)
        )
        page = tokens.new_secret(made)
        await to_thread.run_sync(_keep, self._fleet, *found.whose.place, made, digest_of(page), found.id)
        return tokens.halved(page)

    async def ready(self) -> bool:
        """Anybody may ask, so the database is asked once a second at most, for all of them."""
        if self._probe.done() and time.monotonic() - self._probed > TICK:
            self._probe, self._probed = self._friends.submit(self._fleet.is_there), time.monotonic()
        with suppress(HomeError, TimeoutError):
            found = await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(self._probe)), AWAY)
            return found and not self.is_draining
        return False

    @asynccontextmanager
    async def held(self, who: Pass) -> AsyncIterator[Served]:
        assert isinstance(who, TenantPass)
        held = self._taken(who.whose)
        try:
            served = held.served if held.served is not None else await to_thread.run_sync(self._opened, held, who.whose)
            with self._mutex:
                used, most = held.today.get("requests", (0, None))
                held.is_over = most is not None and used + held.asked >= most
                if held.is_over:
                    said = f"there is a quota of {most:,} requests a day, and it is used up"
                    wait = 86_400 - int(time.time()) % 86_400
                    raise Turned(
                        Problem(429, said, title="Over quota", rule="quota", headers={"Retry-After": str(wait)})
                    )
                held.asked += 1
            yield served
        finally:
            with self._mutex:
                held.users, held.used = held.users - 1, time.monotonic()

    @contextmanager
    def holding(self, whose: Whose) -> Iterator[Served]:
        """The same for a thread that nobody asked; it does not count as use."""
        held = self._taken(whose)
        try:
            yield self._opened(held, whose)
        finally:
            with self._mutex:
                held.users -= 1

    def _taken(self, whose: Whose) -> _Held:
        with self._mutex:
            held = self._held.setdefault(whose.place, _Held())
            self._held.move_to_end(whose.place)
            held.users += 1
        return held

    def is_used(self, place: tuple[int, str]) -> bool:
        held = self._held.get(place)
        return held is not None and time.monotonic() - held.used < 2 * IDLE

    def _opened(self, held: _Held, who: Whose) -> Served:
        """The home of a pass, opened once however many ask; made where the credential is all there is yet."""
        with held.opening:
            if held.served is None:
                whose = {"tenant": who.tenant_name, "agent": who.agent, "env": self._env}
                try:
                    home = self._found(whose)
                    held.today = self._fleet.count(who.tenant, {})
                    self._fleet.wake(who.tenant, who.agent, SOON)
                except OverQuota as error:
                    raise Turned(of_error(error)) from None
                except HomeError as error:
                    raise _away(error) from None
                keyring = TenantKeyring(self._fleet, *who.place, home)
                changed = partial(self._changed, self._mark(who.place))
                bulletin = Bulletin(home, wake=changed)
                home.past.tell(lambda paths: changed())
                chats = self._chats(home)
                held.served = Served(
                    home, keyring=keyring, limits=self.limits, bulletin=bulletin, chats=chats, hosted=True
                )
            return held.served

    def _found(self, whose: Mapping[str, Any]) -> Home:
        try:
            return Home.open(self._fleet.address, **whose)
        except NoSuchHome:
            with suppress(StaleWrite):  # another server makes it just now
                return Home.create(self._fleet.address, **whose)
            return Home.open(self._fleet.address, **whose)

    def count(self) -> tuple[int, int]:
        """How many homes are held, and about how many bytes their indexes have."""
        served = self._open()
        return len(served), sum(one.size for one in served)

    def told(self, error: HomeError, served: Served | None) -> Exception:
        """An error as whoever asked is told it. A home that is no longer what it was is opened anew by who asks next."""
        is_over = (isinstance(error, Refused) and error.rule == "restored") or isinstance(error, NoSuchHome)
        if is_over and served is not None:
            with self._mutex:
                stale = [at for at, held in self._held.items() if held.served is served]
                self._stale += [self._held.pop(at) for at in stale]
            served.hush()
        return _away(error) if isinstance(error, Damaged) else error

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        looked = 0.0
        while not self._ended.is_set():
            self._wake.wait(TICK)
            self._wake.clear()
            is_time = time.monotonic() - looked >= TICK
            self._look(all=is_time)
            if is_time:
                looked = time.monotonic()
                self._count()
                for served in self._unused():
                    self._close(served)
            self._ended.wait(PAUSE)

    def _look(self, *, all: bool) -> None:
        """Lets listeners know what happened in homes here, and other servers that something did."""
        with self._mutex:
            woken, told, self._woken, self._told = self._woken, self._told, set(), set()
            due = [held for at, held in self._held.items() if all or self._mark(at) in woken | told]
        for served in [held.served for held in due if held.served]:
            served.bulletin.look()
        try:
            self._fleet.tell(told)
        except HomeError as error:  # they look by themselves, too
            log.warning("other servers were not told: %s", error)

    def _mark(self, place: tuple[int, str]) -> str:
        """What servers call a home among each other; whoever else listens to the database learns nothing from it."""
        return hashlib.blake2b(f"{place[0]} {place[1]}".encode(), digest_size=12, key=self._seal).hexdigest()

    def _changed(self, mark: str) -> None:
        with self._mutex:
            self._told.add(mark)
        self._wake.set()

    def _hear(self) -> None:
        while not self._ended.is_set():
            try:
                for marks in self._fleet.heard(self._ended.is_set):
                    with self._mutex:
                        self._woken.update(marks)
                    self._wake.set()
            except HomeError as error:
                log.warning("other servers are not heard: %s; trying again", error)
            self._ended.wait(AGAIN)

    def _count(self) -> None:
        """Tells the database what was asked here, and learns what was asked elsewhere."""
        with self._counting:  # whoever ends us counts once more, and nothing twice
            with self._mutex:
                due = [(place[0], held, held.asked) for place, held in self._held.items() if held.asked or held.is_over]
            for tenant, held, asked in due:
                try:
                    today = self._fleet.count(tenant, {"requests": asked})
                    with self._mutex:
                        held.today, held.asked, held.is_over = today, held.asked - asked, False
                except NoSuchHome:
                    held.asked = 0  # its tenant is erased
                except HomeError as error:
                    log.warning("requests could not be counted: %s; trying again", error)

    def _open(self) -> list[Served]:
        with self._mutex:
            return [held.served for held in self._held.values() if held.served]

    def _unused(self) -> list[Served]:
        """Takes off the list what nobody used for long, and the longest unused where there are too many."""
        count, size = self.count()
        at, found = time.monotonic(), list[Served]()
        with self._mutex:
            for place, held in list(self._held.items()):
                if held.users or held.asked or (held.served and held.served.is_busy):
                    continue
                is_over = count - len(found) > self._how.most or size > self._how.most_bytes
                if is_over or at - held.used > IDLE:
                    del self._held[place]
                    if held.served is not None:
                        found.append(held.served)
                        size -= held.served.size
            found += [held.served for held in self._stale if held.served and not held.users]
            self._stale = [held for held in self._stale if held.users]
        return found

    def _close(self, served: Served) -> None:
        try:
            self._left(served.home)
            served.hush()
            served.close()
            served.home.close()
        except Exception as error:  # what is late is committed by whoever opens it next
            log.error("a home could not be closed: %s", error)

    def hush(self) -> None:
        for served in self._open():
            served.hush()

    def stop(self) -> None:
        self._ended.set()
        self._wake.set()
        for lane in (self._friends, self._strangers):
            lane.shutdown(wait=False, cancel_futures=True)
        ending = threading.Thread(target=self._end, name="anima-ending", daemon=True)
        ending.start()
        await_threads([*self._threads, ending])

    def _end(self) -> None:
        self._count()
        for served in self._open():
            self._close(served)


def await_threads(threads: list[threading.Thread]) -> None:
    """Waits until threads have ended, but no longer than one may take to end; what is late is done by who opens a home next."""
    until = time.monotonic() + ENDING
    for thread in threads:
        if thread.is_alive():
            thread.join(max(0.0, until - time.monotonic()))


def _away(error: HomeError) -> Turned:
    """What whoever asks is told when the database cannot do what it is asked."""
    log.error("the database: %s", error)
    return Turned(Problem(503, "the homes cannot be reached now; nothing was done", headers={"Retry-After": "2"}))
