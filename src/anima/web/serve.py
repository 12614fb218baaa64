"""Serving a home: a socket on this machine, the server on it, and a clean end.

Promise: only 127.0.0.1 is bound; a signal ends open streams, lets answers that were begun finish, and returns, so that
the caller can close the home. No address is logged. Not here: what is served (app).
"""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from anima.errors import BadArguments
from anima.home import Home
from anima.web.app import Mounted, create_app
from anima.web.chores import CHORES
from anima.web.served import Served
from anima.web.tokens import Keyring

HOST, PORT = "127.0.0.1", 4747
_NEARBY = 20
_GRACE = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where a server answers, and the link that lets a browser in once."""

    url: str
    link: str


def bound(port: int | None = None) -> socket.socket:
    """A listening socket on this machine: on `port`, on any free one (0), or on ours or one nearby when none is named."""
    wanted = range(PORT, PORT + _NEARBY) if port is None else (port,)
    for number in wanted:
        # Named as TCP, because asyncio asks only such sockets not to wait (40 ms) for more to send.
        made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((HOST, number))
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
    """uvicorn, which ends streams when it is told to end, and gives the signal to nobody else."""

    def __init__(self, config: uvicorn.Config, served: Served) -> None:
        super().__init__(config)
        self._served = served

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        threading.Thread(target=self._served.hush, daemon=True).start()  # not in a signal's frame

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


def server_for(app: FastAPI) -> uvicorn.Server:
    """A server of an application, for whoever brings a socket: `server.run(sockets=[bound()])`."""
    # A client's mistakes are no warnings of ours: any page of any origin could fill the log with them.
    config = uvicorn.Config(
        app,
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
    return _Server(config, app.state.served)


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
