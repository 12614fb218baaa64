"""Hygiene: logs that are old, lines that say the same, lines that contradict each other, and what to do about it. Pure.

Promise: works on lines given as values and gives values back, each with its evidence; nothing is changed and nothing is
ever suggested to be deleted that is not said elsewhere. Where it cannot be told whether two lines say the same, they do not.
Time grows with the number of lines, not with its square. Not here: reading files, vectors of texts (they are passed in),
and writing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date

from anima.text.reading import DATES, ToldLine, read
from anima.upkeep.hygiene.compare import find_contradictions, find_duplicates, newer_of
from anima.upkeep.hygiene.lines import Advice, Contradiction, Group, Sameness, Stale, Twin

STALE_DAYS = 90


def find_stale_logs(logs: Mapping[str, date], *, today: date, days: int = STALE_DAYS) -> tuple[Stale, ...]:
    """The daily logs, by path, that are more than so many days old, oldest first."""
    found = [Stale(path=path, day=day, age=(today - day).days) for path, day in logs.items()]
    return tuple(sorted((one for one in found if one.age > days), key=lambda one: (one.day, one.path)))


def suggest_consolidation(
    *,
    duplicates: Iterable[Group] = (),
    contradictions: Iterable[Contradiction] = (),
    stale: Iterable[Stale] = (),
    may_go: Callable[[ToldLine, ToldLine], bool] = lambda gone, kept: True,
    archive: Callable[[Stale], str] | None = None,
) -> tuple[Advice, ...]:
    """What to do about what was found: choices first, then merges, then logs to move to the archive.

    `may_go` is asked of each line that would go and the one that says the same; `archive` says where a log goes.
    """
    found = [_choice(one) for one in contradictions]
    found += [advice for group in duplicates if (advice := _merge(group, may_go))]
    for log in stale:
        to = archive(log) if archive else f"memory/archive/{log.day.year}/{log.path.rpartition('/')[2]}"
        told = f"{log.path} is {log.age} days old; move it to {to}, where search still finds it."
        found.append(Advice(kind="archive", sentence=told, path=log.path, to=to, evidence=(f"{log.age} days old",)))
    return tuple(found)


def _choice(one: Contradiction) -> Advice:
    newer = f"; {_place(one.newer)} is newer" if one.newer else ""
    told = f"{_place(one.one)} and {_place(one.other)} cannot both hold: {one.why}{newer}."
    return Advice(kind="choose", sentence=told, between=(one.one, one.other), evidence=(one.why,))


def _merge(group: Group, may_go: Callable[[ToldLine, ToldLine], bool]) -> Advice | None:
    going = [twin for twin in group.twins if twin.covered and not twin.line.fixed and may_go(twin.line, group.keep)]
    if not going:
        return None
    places = ", ".join(_place(twin.line) for twin in going[:3])
    more = f" and {len(going) - 3} more" if len(going) > 3 else ""
    told = f"{places}{more} {'says' if len(going) == 1 else 'say'} what {_place(group.keep)} says; keep that one."
    return Advice(
        kind="merge",
        sentence=told,
        keep=group.keep,
        remove=tuple(twin.line for twin in going),
        evidence=tuple(f"{twin.how}: {twin.evidence}" for twin in going),
    )


def has_date(text: str) -> bool:
    """Whether a text says on which day."""
    return DATES.search(text) is not None


def _place(line: ToldLine) -> str:
    return f"{line.path}#L{line.number}"


__all__ = [
    "STALE_DAYS",
    "Advice",
    "Contradiction",
    "Group",
    "Sameness",
    "Stale",
    "ToldLine",
    "Twin",
    "find_contradictions",
    "find_duplicates",
    "find_stale_logs",
    "has_date",
    "newer_of",
    "read",
    "suggest_consolidation",
]
