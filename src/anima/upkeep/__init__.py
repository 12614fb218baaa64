"""What an owner does now and then: looking after damage, tidying, and numbers. Here: how long a folder of a home keeps what
lies in it before it is archived.

Promise: the nearest folder that says something decides; `[tidy]` of anima.toml speaks in every dialect, and in IronClaw's
the `.config` files of folders do. A `.config` that cannot be read, or asks for something absurd, becomes a sentence and
changes nothing. Nothing is ever deleted. Not here: moving (upkeep).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from anima.config import TidyConfig
from anima.errors import HomeError
from anima.layout import Layout
from anima.model import DocPath, fold
from anima.store import Documents

FILE = ".config"
DEFAULT_DAYS = 30  # of a `.config` that switches hygiene on and says no number
MOST_DAYS = 36_500


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderConfig:
    """What a `.config` says. `days` is None where it says nothing of hygiene, 0 where it switches it off."""

    days: int | None = None
    skip_indexing: bool = False
    notes: tuple[str, ...] = ()


class Retention:
    """The retention of one home, as it stands while it is looked at. Folders are read once."""

    def __init__(self, store: Documents, layout: Layout, asked: TidyConfig) -> None:
        self._store, self._asked = store, asked
        self._reads_files = layout.dialect == "ironclaw"
        self._folders = {fold(folder): days for folder, days in asked.folders}
        self._read: dict[str, FolderConfig | None] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What of the `.config` files read so far could not be honoured, a sentence each."""
        return tuple(note for found in self._read.values() if found for note in found.notes)

    def days_of(self, folder: str) -> int | None:
        """After how many days what lies in a folder is old: 0 is never, None where nothing is said of it."""
        for above in _upwards(folder):
            if (days := self._folders.get(fold(above))) is not None:
                return days
        found = self.nearest(folder)
        return found.days if found else None

    def nearest(self, folder: str) -> FolderConfig | None:
        """The `.config` of a folder or of the nearest one above it; None where there is none, or no dialect for it."""
        for above in _upwards(folder) if self._reads_files else ():
            if above not in self._read:
                self._read[above] = self._load(f"{above}/{FILE}" if above else FILE)
            if found := self._read[above]:
                return found
        return None

    def skips_index(self, path: DocPath) -> bool:
        found = self.nearest(path.parent)
        return found is not None and found.skip_indexing

    def _load(self, path: str) -> FolderConfig | None:
        try:
            raw = self._store.bytes_of(path)
        except HomeError as error:
            return FolderConfig(notes=(f"{path} is not read: {error}",))
        if raw is not None and len(raw) > 65_536:
            return FolderConfig(notes=(f"{path} is larger than a configuration can be, so it is not read",))
        return None if raw is None else folder_config(raw, path)


def folder_config(raw: bytes, path: str) -> FolderConfig:
    """What the bytes of a `.config` say; whatever is wrong with them is said, and left out."""
    try:
        table = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return FolderConfig(notes=(f"{path} is not JSON, so it is not honoured",))
    if not isinstance(table, dict):
        return FolderConfig(notes=(f"{path} holds no object, so it is not honoured",))
    notes: list[str] = []
    if not isinstance(skips := table.get("skip_indexing", False), bool):
        notes.append(f"{path}: skip_indexing must be true or false")
        skips = False
    days, asked = None, table.get("hygiene")
    table = asked if isinstance(asked, dict) else {"enabled": None}
    enabled = table.get("enabled", True)
    if enabled is True:
        days = table.get("retention_days", DEFAULT_DAYS)
        if isinstance(days, bool) or not isinstance(days, int) or not 1 <= days <= MOST_DAYS:
            notes.append(f"{path}: hygiene.retention_days must be a whole number from 1 to {MOST_DAYS:,}")
            days = None
    elif enabled is False:
        days = 0
    elif asked is not None:
        what = "hygiene.enabled must be true or false" if isinstance(asked, dict) else "hygiene must be an object"
        notes.append(f"{path}: {what}")
    return FolderConfig(days=days, skip_indexing=skips, notes=tuple(notes))


def _upwards(folder: str) -> list[str]:
    """A folder and those above it, the top last."""
    parts = [part for part in folder.strip("/").split("/") if part]
    return ["/".join(parts[:count]) for count in range(len(parts), -1, -1)]
