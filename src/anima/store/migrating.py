"""The format of a home as a whole, and the steps from an older one to this one.

The first record of the ledger says which format a home was begun with, and because history is anchored in it, it stays as
it is. A home that was brought up to date since says so in `.anima/format`, and a `format` record in the ledger says when.

    1   as first released: no number but that of the ledger
    2   the home says of itself which format it has, so that an older anima can refuse what it does not know

Promise: a step loses nothing, can be repeated, and killed anywhere leaves the old format or the new one; the number in
`.anima/format` is written last. A newer home is refused before anything is touched. Not here: other files (formats).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from anima.errors import refuse_newer
from anima.ledger.chain import FORMAT, Ledger
from anima.store.folder import Folder
from anima.store.private import Machine

FILE = "format"
_NUMBERED = (f".anima/{FILE}", ".anima/ledger.jsonl")  # in their first lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """From the format before to `to`. `do` may be carried out again after it was interrupted."""

    to: int
    what: str
    do: Callable[[Machine, Ledger], None]


def _stamp(machine: Machine, ledger: Ledger) -> None:
    if not any(record.fields.get("format") == 2 for record in ledger.records(kinds=("format",))):
        ledger.add("format", {"format": 2})
    machine.put(FILE, b'{"format":2}\n')


STEPS: tuple[Step, ...] = (Step(to=2, what="the home says which format it has", do=_stamp),)


def format_of(store: Folder) -> int:
    """The format a home says it has; 0 where nothing was written yet. Costs two small reads."""
    return max(_number(store.first_line(file)) for file in _NUMBERED)


def check(store: Folder) -> None:
    """Raises NewerFormat for a home that a newer anima wrote."""
    for file in _NUMBERED:
        refuse_newer(file, _number(store.first_line(file)), FORMAT)


def due(store: Folder) -> tuple[Step, ...]:
    """The steps a home lacks, in order; none where nothing was written yet."""
    found = format_of(store)
    return tuple(step for step in STEPS if found < step.to) if found else ()


def bring_up(store: Folder, machine: Machine, ledger: Ledger) -> tuple[Step, ...]:
    """Carries out the steps a home lacks. Whoever calls holds the home lock. Raises NewerFormat, or Damaged."""
    steps = due(store)
    if steps:
        for record in ledger.records(kinds=("format",)):
            refuse_newer(".anima/ledger.jsonl", record.fields.get("format"), FORMAT)
    for step in steps:
        step.do(machine, ledger)
    return steps


def _number(line: bytes) -> int:
    """The number in a first line; 0 where there is none. A ledger without one is of no format we know: that is damage,
    and is said by whoever reads the ledger."""
    try:
        found = json.loads(line)["format"] if line else 0
    except (ValueError, KeyError, TypeError, RecursionError):
        return 0
    return found if type(found) is int else 0
