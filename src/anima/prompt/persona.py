"""Persona: whether the alternate soul is worn now, and which soul that comes to when its file is looked at.

Promise: the same rule, wall clock and dice give the same answer; the daily window beats chance; the dice is rolled only
where chance decides. Nothing is written: a soul is worn in memory, and a missing one falls back with a sentence.
Not here: reading files, the record of what was worn (sessions), and who may see a soul (layout and prompt).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Literal

from anima.errors import BadArguments, BadConfig, BadPath, printable
from anima.model import DocPath

if TYPE_CHECKING:
    from random import Random  # only the type: the dice comes in by hand

SOUL = "SOUL.md"
DAY = timedelta(days=1)

_AT = re.compile(r"([0-9]{1,2}):([0-9]{2})")
_DURATION = re.compile(
    r"(?:([0-9]{1,6})d)?\s*(?:([0-9]{1,6})h)?\s*(?:([0-9]{1,6})m)?\s*(?:([0-9]{1,6})s)?", re.IGNORECASE
)

Why = Literal["window", "chance", "no"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonaRule:
    """When the alternate soul is worn: by chance, in a daily window, or both. The default is never."""

    file: str = "SOUL_EVIL.md"
    chance: float = 0.0
    at: time | None = None
    duration: timedelta | None = None

    def __post_init__(self) -> None:
        _check_file(self.file)
        if not 0 <= self.chance <= 1:
            raise BadConfig(f"a chance is a number from 0 to 1, not {self.chance}", where="persona.chance")
        if self.at is not None and self.at.tzinfo is not None:
            raise BadConfig("the hour is in the user's timezone and names none itself", where="persona.at")
        if (self.at is None) != (self.duration is None):
            given, lacking = ("at", "duration") if self.duration is None else ("duration", "at")
            raise BadConfig(f"a window needs persona.{lacking} too", where=f"persona.{given}")
        if self.duration is not None and self.duration <= timedelta(0):
            raise BadConfig("a window must last longer than nothing", where="persona.duration")

    @classmethod
    def of(cls, *, file: str = "SOUL_EVIL.md", chance: float = 0.0, at: str = "", duration: str = "") -> PersonaRule:
        """The rule as the configuration writes it, where an empty text means nothing. Raises BadConfig."""
        return cls(
            file=file,
            chance=chance,
            at=parse_at(at) if at else None,
            duration=parse_duration(duration) if duration else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What the rule says now. `file` is the soul to be worn."""

    worn: bool
    why: Why
    file: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Worn:
    """The soul that is worn. `text` is None where even SOUL.md is missing; `warning` says why a wish was not met."""

    file: str
    text: str | None
    warning: str | None = None


def parse_at(text: str) -> time:
    """An hour of the day such as `23:30`. Raises BadConfig."""
    found = _AT.fullmatch(text.strip())
    if not found or int(found[1]) > 23 or int(found[2]) > 59:
        raise BadConfig(f"{printable(text)!r} is not an hour of the day", where="persona.at", hint="write it as 23:30")
    return time(int(found[1]), int(found[2]))


def parse_duration(text: str) -> timedelta:
    """A length of time such as `30m`, `1h30m`, `45s` or `2d`. Raises BadConfig, also for zero."""
    found = _DURATION.fullmatch(text.strip())
    parts = [int(part or 0) for part in found.groups()] if found else []
    if not any(parts):
        raise BadConfig(
            f"{printable(text)!r} is not a length of time", where="persona.duration", hint="write it as 30m or 1h30m"
        )
    days, hours, minutes, seconds = parts
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def decide(rule: PersonaRule, now: datetime, dice: Random) -> Decision:
    """Whether the alternate soul is worn at `now`, an aware time in the user's timezone.

    The window is one of the wall clock: when the clocks go back, an hour that comes twice counts twice; when they go
    forward, an hour that is skipped does not come.
    """
    if now.utcoffset() is None:
        raise BadArguments("the time must say its timezone, and that must be the user's")
    if _in_window(rule, now.time()):
        return Decision(worn=True, why="window", file=rule.file)
    if rule.chance >= 1 or (rule.chance > 0 and dice.random() < rule.chance):
        return Decision(worn=True, why="chance", file=rule.file)
    return Decision(worn=False, why="no", file=SOUL)


def wear(decision: Decision, soul_text: str | None, alternate_text: str | None) -> Worn:
    """The soul that is worn after a look at both files: None is a file that is missing."""
    if not decision.worn:
        return Worn(file=SOUL, text=soul_text)
    name = printable(decision.file)
    if alternate_text is None:
        return Worn(file=SOUL, text=soul_text, warning=f"{name} should be worn but is missing; {SOUL} is worn instead.")
    if _is_blank(alternate_text):
        return Worn(file=SOUL, text=soul_text, warning=f"{name} should be worn but is empty; {SOUL} is worn instead.")
    if soul_text is None:
        # An alternate stands in for a soul. Without one we would show a text where nothing was to be shown.
        return Worn(file=SOUL, text=None, warning=f"{name} should be worn, but there is no {SOUL} for it to replace.")
    return Worn(file=decision.file, text=alternate_text)


def _check_file(file: str) -> None:
    try:
        path = DocPath.parse(file)
    except BadPath as error:
        raise BadConfig(str(error), where="persona.file") from None
    if not path.is_markdown:
        raise BadConfig(f"{printable(file)} is not a Markdown file", where="persona.file")


def _in_window(rule: PersonaRule, clock: time) -> bool:
    if rule.at is None or rule.duration is None:
        return False
    since = (_of_day(clock) - _of_day(rule.at)) % DAY
    return since < rule.duration


def _of_day(clock: time) -> timedelta:
    return timedelta(hours=clock.hour, minutes=clock.minute, seconds=clock.second, microseconds=clock.microsecond)


def _is_blank(text: str) -> bool:
    return not text.replace("\ufeff", "").strip()
