"""What is done to the folder of a home that nobody has opened: restored, examined, found where none was named.

Promise: each is one call that leaves nothing open. Not here: an open home (home), and how it is done (backup, upkeep).
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from anima.config import Config, load
from anima.errors import BadConfig, Damaged, HomeError, NoSuchHome
from anima.home import Home, checked_rooms, now
from anima.home.opening import UNREAD
from anima.layout import trust
from anima.layout.trust import Register, default_home
from anima.layout.trust import folder as user_folder
from anima.model import is_address
from anima.site import World
from anima.store.overlay import upper_of

if TYPE_CHECKING:
    from anima.backup.restore import Migration, Restoration
    from anima.backup.snapshot import Snapshots
    from anima.store.outside import Snapshot
    from anima.store.rows.tenants import Fleet as Fleet
    from anima.store.rows.tenants import Tenants as Tenants
    from anima.upkeep.doctor import Health


def restore(
    archive: str | Path,
    path: str | Path,
    *,
    identities: Sequence[str] = (),
    large: bool = False,
    other: bool = False,
    dry_run: bool = False,
    clock: Callable[[], datetime] | None = None,
    env: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Restoration:
    """Puts a snapshot in the place of the home in a folder, all or nothing, after a snapshot of what is there; into a folder that is
    empty or missing, the home it is of. Homes that are open there must be opened again. `large` allows one that unpacks to far more
    than it has bytes, `other` one where another home stands; `dry_run` only tells what would change."""
    from anima.backup.restore import restore
    from anima.sessions.record import without

    given, moment = os.environ if env is None else env, clock or now

    @contextmanager
    def opens(place: str | Path) -> Iterator[Snapshots | None]:
        if is_address(place):
            try:
                held = Home.open(place, clock=moment, env=given, create=True)
            except BadConfig:
                held = Home.open(place, clock=moment, env=given, settings=UNREAD)
            with held:
                yield held.snapshots
            return
        home, place = None, Path(place)
        with suppress(HomeError, OSError):
            home = Home.open(place, clock=moment, env=given)
        with home or nullcontext():
            yield home.snapshots if home else None

    how: dict[str, Any] = {"identities": identities, "large": large, "other": other, "dry_run": dry_run}
    how |= {"register": Register(user_folder(given)), "now": moment(), "progress": progress}
    return restore(str(archive), path, opens=opens, transcript=without, **how)


def migrate(source: str | Path, target: str | Path, *, progress: Callable[[int, int], None] | None = None) -> Migration:
    """Moves a home, with ledger, transcripts and history, to another place: a folder, one file or a database, where nothing stands or
    an earlier state of it. Both are compared afterwards. Killed at any point, it can be run again; the first home stays as it is."""
    from anima.backup.restore import compared, follows
    from anima.backup.snapshot import put
    from anima.store.outside import Shelf

    with Home.open(source) as old:
        books = upper_of(old.site.store)
        with _there(target) as there:
            is_later = follows(books, upper_of(there.site.store)) if there else False
            with suppress(Damaged):
                if there is not None and is_later:
                    return replace(compared(books, upper_of(there.site.store)), was_there=True)
        shelf = Shelf(str(user_folder(os.environ) / "migrating" / books.key.id[:16]))
        with old.snapshots.packed(progress) as made:
            archive = put(shelf, made, at=now())
        restore(archive.path, target, large=True, other=not is_later, progress=progress)
        with Home.open(target) as new:
            done = compared(books, upper_of(new.site.store))
            if old.is_vouched_for:
                new.trust()
    for kept in shelf.all():
        shelf.remove(kept)
    return done


@contextmanager
def _there(place: str | Path) -> Iterator[Home | None]:
    """The home at a place; None where nothing stands."""
    home = None
    with suppress(NoSuchHome):
        home = Home.open(place)
    with home or nullcontext():
        yield home


def tenants(address: str) -> Tenants:
    """The tenants of a database, for whoever owns it."""
    from anima.store.rows.tenants import Tenants

    return Tenants(address)


def export_tenant(address: str, name: str, folder: str | Path) -> list[Snapshot]:
    """An archive of every home of a tenant, of its agent's name: documents, conversations, ledger and history. For whoever
    owns the database; homes are opened as the application's role."""
    role = f"{'&' if '?' in address else '?'}options=-c%20role%3Danima_app"
    opened, made = address.partition("#")[0] + role, []
    Path(folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    for agent in tenants(address).show(name).agents:
        with Home.open(opened, tenant=name, agent=agent) as home:
            made.append(home.snapshots.take(to=Path(folder) / f"{quote(agent, safe='')}.tar.gz"))
    return made


def fleet(address: str) -> Fleet:
    """A database of homes, for a server of all of them. Raises Refused for a role that could see what no tenant may."""
    from anima.store.rows.tenants import Fleet

    return Fleet(address)


default_path = partial(default_home, os.environ)
in_use = partial(trust.in_use, os.environ)


def is_any_in_use() -> bool:
    """Whether a home is in use that is there: one that is gone gives its place to the next."""
    return bool((used := in_use()) and used.exists())


def use(path: str | Path) -> None:
    """Makes a home the one that is taken where nothing names one. Kept in the user's own configuration."""
    trust.use(os.environ, Path(path).absolute())


def default_settings(flags: Mapping[str, Any]) -> Config:
    """The settings where there is no home: defaults, variables and flags."""
    return load(None, env=os.environ, flags=flags, trusted=True)


def doctor(
    path: str | Path,
    *,
    repair: bool = False,
    dry_run: bool = False,
    settings: Mapping[str, Any] | None = None,
    clock: Callable[[], datetime] | None = None,
    env: Mapping[str, str] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> Health:
    """Looks at the health of a home, also of one that does not open, and with `repair` mends what can be mended; with
    `dry_run` it only says what that would be. No document is changed. Raises NoSuchHome, and HomeBusy for a repair."""
    from anima.upkeep.doctor import Doctor, Health

    world = World(clock or now, random.Random(), os.environ if env is None else env)
    asked = Doctor(path, checked_rooms(), world, settings=settings, progress=progress)
    if repair or dry_run:
        return asked.repair(dry_run=dry_run)
    found = tuple(asked.look())
    return Health(found=found, left=found)
