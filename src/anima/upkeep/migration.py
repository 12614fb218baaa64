"""Which formats the files of a home have, and bringing it up to date.

Promise: looking changes nothing; migrating does only what `migrating.STEPS` says, under the home lock, and can be repeated.
A home brings itself up to date before its first write all the same. Not here: the steps (migrating), the table (formats).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anima.errors import HomeError
from anima.ledger.chain import FORMAT
from anima.memory.inbox import FOLDER as PENDING
from anima.sessions.transcript import header_of
from anima.store import migrating
from anima.upkeep.formats import FORMATS

if TYPE_CHECKING:
    from anima.home import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One kind of file in a home: how many have which format (0 for one that does not tell), and what is read here."""

    name: str
    file: str
    found: tuple[tuple[int, int], ...]  # (format, how many)
    reads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """What a home's formats are, and the steps that were carried out, or in a dry run would be."""

    format: int  # of the home, before; 0 where nothing was written yet
    reads: int
    steps: tuple[str, ...]
    files: tuple[Shown, ...]
    dry_run: bool


def migrate(home: Home, *, dry_run: bool) -> Migration:
    found, files = migrating.format_of(home.store), _shown(home)
    steps = migrating.due(home.store)
    if steps and not dry_run:
        with home.books.machine.lock.hold():
            steps = migrating.bring_up(home.store, home.books.machine, home.books.ledger)
    named = tuple(f"{step.to - 1} to {step.to}: {step.what}" for step in steps)
    return Migration(format=found, reads=FORMAT, steps=named, files=files, dry_run=dry_run)


def _shown(home: Home) -> tuple[Shown, ...]:
    counts = {
        "home": Counter({migrating.format_of(home.store) or FORMAT: 1}),
        "transcript": Counter(_transcripts(home)),
        "forgotten": Counter(_numbers(home, ["forgotten"])),
        "proposal": Counter(_numbers(home, [f"{PENDING}/{name}" for name in home.books.machine.names(PENDING)])),
    }
    return tuple(
        Shown(name=row.name, file=row.file, found=tuple(sorted(counts[row.name].items())), reads=row.number)
        for row in FORMATS
        if row.name in counts
    )


def _numbers(home: Home, names: list[str]) -> Iterator[int]:
    for name in names:
        raw = home.books.machine.get(name)
        if raw is not None:
            yield _number(raw)


def _number(raw: bytes) -> int:
    try:
        found = json.loads(raw).get("format", 1)
    except (ValueError, AttributeError, RecursionError):
        return 0
    return found if type(found) is int else 0


def _transcripts(home: Home) -> Iterator[int]:
    for folder in home.transcripts.folders() if home.config.sessions.dir else ():
        for seen in folder.walk():
            try:
                with folder.open(seen.id) as file:
                    header = header_of(file)
            except HomeError:
                header = None
            yield header.version if header else 0
