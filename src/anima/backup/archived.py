"""Snapshots as homes of their own: unpacked beside the home to be looked into, and packed again without something.

Promise: what is unpacked is gone when the look is over, also after a kill: the next look clears it. A snapshot that is
packed again keeps its time and label, and the old one goes only when the new one has its name. Not here: what is taken
out (forgetting).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from anima.backup.snapshot import Facts, Snapshot, end_late, forget_elsewhere, packed, put, take
from anima.store import archive, seal, swap
from anima.store.archive import Manifest
from anima.store.foreign import folder_aside
from anima.store.shelf import Kept, Shelf

if TYPE_CHECKING:
    from anima.home import Home

_AREA = ".anima/looked"


@contextmanager
def opened(home: Home, kept: Kept) -> Iterator[tuple[Home, Manifest]]:
    """The home in an archive, open, and its manifest. Raises Damaged or Refused for an archive that is not sound."""
    with folder_aside(home.store, _AREA) as folder:
        manifest = _unpack(home, kept, folder)
        with _inner(home, folder) as inner:
            yield inner, manifest


def _unpack(home: Home, kept: Kept, folder: str) -> Manifest:
    with seal.opened(kept.path) as raw:
        manifest, members = archive.read(raw)
        for file, mtime, pieces in members:
            swap.stage(home.store, file.path, pieces, mode=file.mode, mtime=mtime, area=folder, sync=False)
    return manifest


def _inner(home: Home, folder: str) -> Home:
    config = home.config
    settings = {
        "dialect": home.dialect,
        "sessions.dir": config.sessions.dir,
        "history.enabled": config.history.enabled,
        "owner": config.owner,
    }
    return type(home).open(f"{home.root}/{folder}", settings=settings, clock=home.clock, env=home.env)


def repacked(home: Home, kept: Kept, inner: Home, manifest: Manifest) -> None:
    """Puts an archive of what `inner` is now in the place of the one it came from."""
    shelf, was_named = Shelf(os.path.dirname(kept.path)), not kept.digest
    facts = Facts(manifest.dialect, manifest.agent)
    with packed(inner.books.machine, facts, late=lambda: end_late(inner)) as made:
        whole = made._replace(manifest=replace(made.manifest, left_out=manifest.left_out))
        name = kept.name if was_named else ""
        done = put(shelf, whole, at=kept.time, label=kept.label, name=name, over=was_named)
    if done.path != kept.path:
        shelf.remove(kept)
        forget_elsewhere(home, kept.path, done.path)


def removed(home: Home, kept: Kept) -> None:
    Shelf(os.path.dirname(kept.path)).remove(kept)
    forget_elsewhere(home, kept.path)


def taken_anew(home: Home) -> Snapshot:
    """One for those that had to go; where it is not sealed, in the home itself, whose bytes it is."""
    return take(home) if home.config.snapshot.recipients else take(home, to=f"{home.root}/.anima/snapshots/")
