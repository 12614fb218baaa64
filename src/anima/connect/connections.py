"""Connections: a host is connected to a home, taken out again, and asked whether it really reached it.

Promise: what is planned is shown before it is made, and making it twice changes nothing. What a file was before is kept
beside the home's credentials until the host is taken out. A host that runs no hook of ours is told of, not taken for one
that has nothing to report. Not here: what is changed for whom (hosts), files (change).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anima.connect.change import Step, kept_of, make, planned, taken_back
from anima.connect.hosts import HOSTS, Host
from anima.connect.spool import Spool
from anima.connect.wiring import Wiring
from anima.errors import BadArguments, Refused
from anima.layout.trust import folder as user_folder
from anima.model import Remark

if TYPE_CHECKING:
    from anima.home import Home


def host_of(name: str) -> Host:
    """The host of that name. Raises BadArguments."""
    if name not in HOSTS:
        raise BadArguments(f"there is no host {name!r}; there are {', '.join(HOSTS)}", hint="anima connect lists them")
    return HOSTS[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    """How a host stands to a home: since when it is connected, and when its hooks last reported; None is never."""

    host: str
    title: str
    connected: datetime | None
    heard: datetime | None
    silent: datetime | None  # when a conversation came by without a single report
    reports: bool

    @property
    def said(self) -> str:
        """In a sentence."""
        if self.connected is None:
            return "not connected"
        if not self.reports:
            return "connected; it has tools and no hooks"
        if self.is_silent:
            return "connected, and its hooks do not run"
        if self.heard is None:
            return "connected; no session of it has reported yet"
        return f"connected; its hooks last reported {self.heard:%Y-%m-%d %H:%M} UTC"

    @property
    def is_silent(self) -> bool:
        return self.silent is not None and (self.heard is None or self.heard < self.silent)


def contact_of(spool: Spool, host: Host) -> Contact:
    found = spool.connection or {}
    heard = max(spool.ids().values(), default=None)
    return Contact(
        host=host.name,
        title=host.title,
        connected=_moment(found.get("connected")),
        heard=_moment(heard) if found else None,
        silent=_moment(found.get("silent")),
        reports=host.reports,
    )


def _moment(seconds: object) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isinstance(seconds, int | float) else None


def silent_hosts(home: str, env: Mapping[str, str]) -> Iterator[Remark]:
    """What the health of a home tells of hosts: those whose hooks do not run."""
    for host in HOSTS.values():
        stands = contact_of(Spool(os.fspath(user_folder(env)), home, host.name), host)
        if stands.is_silent:
            said = f"{host.title} used this home without a report of its hooks; what was said there is not kept."
            yield Remark(about=host.name, message=said, do=host.then.partition("{")[0])


class Connection:
    """One host and one home, on the way to be connected or taken out."""

    def __init__(self, wiring: Wiring, host: Host, *, identity: str, index: str, now: datetime) -> None:
        self.wiring, self.host, self._now = wiring, host, now
        self._home = {"identity": identity, "index": index}
        self.spool = Spool(wiring.config, wiring.home, host.name)
        self._held: dict[str, Any] = self.spool.connection or {}

    def plan(self, *, remove: bool) -> tuple[Step, ...]:
        """What would change. Raises BadInput for a file of the host's that cannot be read."""
        edits, kept = self.host.edits(self.wiring), self._held.get("files", {})
        return taken_back(edits, kept) if remove else planned(edits, kept)

    def connect(self, steps: tuple[Step, ...]) -> None:
        """Makes the change, and keeps how it is taken back. Raises Refused."""
        files = kept_of(steps, self._held.get("files", {}))
        folders = [*self._held.get("folders", []), *map(str, _missing_folders(steps))]
        since = self._held.get("connected", self._now.timestamp())
        transcripts = self.host.transcripts(self.wiring)
        self._held = {
            **self._home,
            "connected": since,
            "files": files,
            "folders": list(dict.fromkeys(folders)),
            "transcripts": str(transcripts) if transcripts else "",
        }
        self._keep()  # before the files: a crash must not leave them with nobody who knows what they were
        make(steps)

    def remove(self, steps: tuple[Step, ...]) -> None:
        """Takes the host out. Raises Refused."""
        make(steps, top=[Path(folder) for folder in self._held.get("folders", [])])
        self.spool.put_connection(None)
        for id in self.spool.ids():
            self.spool.drop(id)

    def _keep(self) -> None:
        try:
            self.spool.put_connection(self._held)
        except OSError as error:
            raise Refused(f"how to take it back cannot be written down ({error.strerror})", rule="host-file") from None


def wiring_of(home: Home) -> Wiring:
    """How a home is reached by the program that runs now."""
    config = os.fspath(home.site.register.file.parent.absolute())
    return Wiring(program=_program(), home=home.name, config=config, agent=home.identity.name, env=home.site.env)


def connecting_of(home: Home, host: Host) -> Connection:
    store = home.site.store
    index = store.scratch("index.sqlite")
    return Connection(wiring_of(home), host, identity=store.identity, index=index, now=home.clock())


def _program() -> tuple[str, ...]:
    """How a host starts us: by where this program stands, since hosts have search paths of their own."""
    here = os.path.abspath(sys.argv[0])
    if os.path.basename(here) == "anima" and os.access(here, os.X_OK):
        return (here,)
    beside = os.path.join(os.path.dirname(sys.executable), "anima")
    return (beside,) if os.access(beside, os.X_OK) else (sys.executable, "-P", "-m", "anima.cli")


def _missing_folders(steps: tuple[Step, ...]) -> list[Path]:
    """The folders that making a change will make, outermost first."""
    found: dict[Path, None] = {}
    for step in steps:
        found |= dict.fromkeys(folder for folder in reversed(step.path.parents) if not folder.exists())
    return list(found)
