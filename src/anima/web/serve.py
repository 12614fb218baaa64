"""Serving homes: a socket, the server on it, and a clean end.

Promise: only 127.0.0.1 is bound, unless whoever serves many homes names another address; a signal ends open streams, lets
answers that were begun finish, and returns, so that the caller can close the home. Before that a server of many tells its
balancer that it goes, and goes on answering for a while. No address is logged. Not here: what is served (app).
"""

from __future__ import annotations

import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI

from anima.errors import BadArguments
from anima.home import Home, now
from anima.web.app import Mounted, app_of, create_app
from anima.web.chores import CHORES
from anima.web.guard import RateLimits
from anima.web.homes import ManyHomes, OneHome
from anima.web.telemetry import export
from anima.web.tokens import Keyring
from anima.web.waking import Waking

if TYPE_CHECKING:
    from anima.home.folders import Fleet

HOST, PORT = "127.0.0.1", 4747
_NEARBY = 20
_GRACE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server answers, and the link that lets a browser in once."""

    url: str
    link: str


def bound(port: int | None = None, host: str = HOST) -> socket.socket:
    """A listening socket on this machine: on `port`, on any free one (0), or on ours or one nearby when none is named."""
    wanted = range(PORT, PORT + _NEARBY) if port is None else (port,)
    for number in wanted:
        # Named as TCP, because asyncio asks only such sockets not to wait (40 ms) for more to send.
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((host, number))
            made.listen(1024)
            made.set_inheritable(False)
            return made
        except (OSError, OverflowError):
            made.close()
    raise BadArguments(
        f"port {wanted[0]} is taken" + (" and so are those after it" if port is None else ""),
        hint="end the other program, or say --port 0 for any free port",
    )


class _Server(uvicorn.Server):
    """uvicorn, which ends streams when it is told to end, and gives the signal to nobody else. With `drain`, it answers for
    so many seconds more, unless a second signal comes."""

    def __init__(self, config: uvicorn.Config, homes: OneHome | ManyHomes, drain: float) -> None:
        super().__init__(config)
        self._homes, self._drain = homes, drain

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if isinstance(self._homes, ManyHomes) and self._drain and not self._homes.is_draining:
            self._homes.is_draining = True
            later = threading.Timer(self._drain, self._leave, (sig, None))
            later.daemon = True
            later.start()
        else:
            self._leave(sig, frame)

    def _leave(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        threading.Thread(target=self._homes.hush, daemon=True).start()  # not in a signal's frame

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before: dict[int, Any] = {sig: signal.signal(sig, self.handle_exit) for sig in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for sig, was in before.items():
                signal.signal(sig, was)


def server_for(app: FastAPI, *, drain: float = 0.0) -> uvicorn.Server:
    """A server of an application, for whoever brings a socket: `server.run(sockets=[bound()])`."""
    # A client's mistakes are no warnings of ours: any page of any origin could fill the log with them.
    config = uvicorn.Config(
        app,
        log_config=None if logging.getLogger().handlers else uvicorn.config.LOGGING_CONFIG,
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=_GRACE,
        timeout_keep_alive=30,
        proxy_headers=False,
        h11_max_incomplete_event_size=65_536,
    )
    return _Server(config, app.state.homes, drain)


def serve(
    home: Home, *, port: int | None = None, mcp: Mounted | None = None, ready: Callable[[Address], None] | None = None
) -> None:
    """Serves a home until a signal comes. `ready` is told where, with a link that works once."""
    listening = bound(port)
    try:
        keyring = Keyring.of(home)
        keyring.owner_token()
        url = f"http://{HOST}:{listening.getsockname()[1]}"
        app = create_app(home, keyring=keyring, mcp=mcp, chores=CHORES)
        with keyring.serving(url):
            if ready is not None:
                ready(Address(url=url, link=f"{url}/login#{keyring.code()}"))
            server_for(app).run(sockets=[listening])
    finally:
        listening.close()


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


def fleet_app(fleet: Fleet, env: Mapping[str, str], how: Fleetwise, *, mcp: Mounted | None = None) -> FastAPI:
    """The application of all homes of a database."""
    limits = RateLimits(logins_a_minute=10**9)  # a key cannot be guessed; how many are looked for is bounded (homes)
    left = mcp.left if mcp else lambda home: None
    homes = ManyHomes(
        fleet,
        env,
        limits=limits,
        is_secure=how.url.startswith("https:"),
        most=how.most,
        most_bytes=how.most_bytes,
        left=left,
    )
    waking = Waking(homes, fleet)
    beside = [(homes.start, homes.stop), (waking.start, waking.stop)]
    beside.append((lambda: None, export(env, held=homes.count)))
    return app_of(homes, limits=limits, clock=now, beside=beside, mcp=mcp, url=how.url)


def serve_fleet(
    fleet: Fleet,
    env: Mapping[str, str],
    how: Fleetwise,
    *,
    mcp: Mounted | None = None,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serves the homes of a database until a signal comes. `ready` is told where. The process is for nothing else."""
    listening = bound(how.port, how.host)
    fleet.hide()
    try:
        app = fleet_app(fleet, env, how, mcp=mcp)
        if ready is not None:
            ready(f"http://{how.host}:{listening.getsockname()[1]}")
        server_for(app, drain=how.drain).run(sockets=[listening])
    finally:
        listening.close()
