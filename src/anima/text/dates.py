"""When: the day in a file's name, the spans of days that a question names, such as "in June" or "last Friday", and the
hours, intervals, cron expressions and timezones that settings name.

Promise: pure and linear. What is not understood in a question is left alone, and in a setting refused with a sentence. A month
without a year is the last one that has begun. Not here: what a span is worth (`search`), when something is due (`dream`).
English only: other languages give no span.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from anima.errors import BadConfig, printable

_MONTH_NAMES = (
    "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep"
    "|october oct|november nov|december dec"
)
_MONTHS: Final = {name: n for n, names in enumerate(_MONTH_NAMES.split("|"), 1) for name in names.split()}
_DAYS: Final = {name: n for n, name in enumerate("monday tuesday wednesday thursday friday saturday sunday".split())}
_NUMBER_NAMES = "zero|one a an|two couple|three few|four|five|six|seven|eight|nine|ten|eleven|twelve"
_NUMBERS: Final = {name: n for n, names in enumerate(_NUMBER_NAMES.split("|")) for name in names.split()}
_UNITS: Final = {"day": (1, 0), "week": (7, 3), "month": (30, 10), "year": (365, 45)}  # days, and give or take

_MONTH = "(" + "|".join(sorted(_MONTHS, key=len, reverse=True)) + ")"
_NUMBER = r"(\d{1,3}|" + "|".join(_NUMBERS) + ")"
_ORDINAL = r"(\d{1,2})(?:st|nd|rd|th)?"
# Compiled when a question is asked: a prompt, which asks for the day in a name alone, need not wait for them.
_MONTH_DAY = rf"\b{_MONTH}\.? {_ORDINAL}(?:,? ?(\d{{4}}))?\b"
_DAY_MONTH = rf"\b{_ORDINAL}(?: of)? {_MONTH}\.?(?:,? ?(\d{{4}}))?\b"
_BARE_MONTH = rf"\b(?:in|last|this|during|of|since|early|late|mid)[ -]{_MONTH}\b"
_YEAR = r"\b(?:in|during|of|since|by) ((?:19|20)\d\d)\b"
_AGO = rf"\b{_NUMBER}(?: of)? (day|week|month|year)s? (?:ago|earlier)\b"
_PAST = rf"\b(?:last|past|previous) {_NUMBER} (day|week|month|year)s\b"
_LAST = rf"\b(last|this|past|previous) (week|month|year|weekend|{'|'.join(_DAYS)})\b"
_DATED = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[-_ ].*)?\.md\Z", re.IGNORECASE)


def day_in_name(name: str) -> date | None:
    """The day that the name of a Markdown file begins with: `2026-05-08.md`, and `2026-05-08-boat.md` too."""
    found = _DATED.match(name)
    try:
        return date.fromisoformat(found[1]) if found else None
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `first` to `last`. `exact` when the question names a date, not a distance from now."""

    first: date
    last: date
    exact: bool = True

    def nearness(self, day: date) -> float:
        """1 inside, falling to 0 a few days before and a week after: things are told after they happen."""
        early, late = (self.first - day).days / 3, max(0, (day - self.last).days) / 8
        return max(0.0, 1 - (early if early > 0 else late))


def spans_in(text: str, *, at: date | None) -> list[Span]:
    """The spans a question names. Dates that are named silence mere distances."""
    reader = _Reader(text.lower()[:2000], at)
    return reader.exact() if at is None else reader.exact() or reader.relative()


class _Reader:
    """Takes dates out of a text, one pattern after the other."""

    def __init__(self, text: str, at: date | None) -> None:
        self.text, self._at = text, at
        self._found: list[Span] = []

    def exact(self) -> list[Span]:
        self._take(r"\b(\d{4})[-/](\d{1,2})[-/](\d{1,2})\b", lambda m: self._day(m[1], int(m[2]), int(m[3])))
        self._take(_MONTH_DAY, lambda m: self._day(m[3], _MONTHS[m[1]], int(m[2])))
        self._take(_DAY_MONTH, lambda m: self._day(m[3], _MONTHS[m[2]], int(m[1])))
        self._take(rf"\b{_MONTH},? (?:of )?(\d{{4}})\b", lambda m: _month(int(m[2]), _MONTHS[m[1]]))
        self._take(_BARE_MONTH, lambda m: _month(self._year_of(_MONTHS[m[1]], 1), _MONTHS[m[1]]))
        self._take(_YEAR, lambda m: Span(date(int(m[1]), 1, 1), date(int(m[1]), 12, 31)))
        return self._found

    def relative(self) -> list[Span]:
        """What is left to find where nothing exact was."""
        self._take(_AGO, lambda m: self._back(_number(m[1]) * _UNITS[m[2]][0], _UNITS[m[2]][1]))
        self._take(_PAST, lambda m: self._between(_number(m[1]) * _UNITS[m[2]][0], 0))
        self._take(_LAST, lambda m: self._last(m[1], m[2]))
        self._take(r"\b(yesterday|today|tonight)\b", lambda m: self._back(1 if m[1] == "yesterday" else 0, 0))
        return [Span(span.first, span.last, exact=False) for span in self._found]

    def _take(self, pattern: str, read: Callable[[re.Match[str]], Span]) -> None:
        """Takes the spans of a pattern out of the text; what is no date stays in it."""

        def taken(match: re.Match[str]) -> str:
            try:
                self._found.append(read(match))
            except (ValueError, OverflowError):
                return match[0]
            return " "

        self.text = re.sub(pattern, taken, self.text)

    def _day(self, year: str | None, month: int, day: int) -> Span:
        found = date(int(year) if year else self._year_of(month, day), month, day)
        return Span(found, found)

    def _year_of(self, month: int, day: int) -> int:
        """The year in which that day last was; 0, which is none, where nobody knows what day it is."""
        if self._at is None:
            return 0
        return self._at.year if (month, day) <= (self._at.month, self._at.day) else self._at.year - 1

    def _last(self, which: str, what: str) -> Span:
        assert self._at is not None
        at = self._at
        if what in _DAYS:
            return self._back((at.weekday() - _DAYS[what]) % 7 or 7, 0)
        if what == "weekend":
            saturday = (at.weekday() - 5) % 7 or 7
            return self._between(saturday, saturday - 1)
        if what == "week":
            return self._between(7, 0) if which == "this" else self._between(14, 1)
        if what == "month":
            end = at if which == "this" else at.replace(day=1) - timedelta(days=1)
            return Span(end.replace(day=1), end)
        year = at.year if which == "this" else at.year - 1
        return Span(date(year, 1, 1), date(year, 12, 31))

    def _back(self, days: int, slack: int) -> Span:
        return self._between(days + slack, days - slack)

    def _between(self, most: int, least: int) -> Span:
        assert self._at is not None
        return Span(self._at - timedelta(days=most), self._at - timedelta(days=max(0, least)))


def _number(text: str) -> int:
    return int(text) if text.isdigit() else _NUMBERS[text]


def _month(year: int, month: int) -> Span:
    following = date(year + month // 12, month % 12 + 1, 1)
    return Span(date(year, month, 1), following - timedelta(days=1))


def timezone(name: str) -> ZoneInfo:
    """The timezone of that name. Raises BadConfig."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadConfig(f"{name!r} is not a timezone; write one such as America/Bogota") from None


_NAMED_TIMES = {"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@weekly": "0 0 * * 0"}
_NAMED_TIMES |= {"@monthly": "0 0 1 * *", "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *"}
CRON = "write five fields (minute hour day month weekday), such as 0 3 * * * for every night at three"


@lru_cache(maxsize=64)
def cron(expression: str) -> str:
    """The expression as cronsim reads it. Raises BadConfig for one that is none, or names a day that never comes."""
    from cronsim import CronSim, CronSimError

    text, shown = _NAMED_TIMES.get(expression.strip().lower(), expression.strip()), printable(expression.strip(), 60)
    fields = text.split()
    if len(fields) != 5 or len(text) > 200:
        raise BadConfig(f"{shown!r} is not a time to run at", hint=CRON)
    if not fields[1].startswith("*"):  # whose minutes are those of the wall, too; cronsim takes a star for real time
        text = " ".join([fields[0].replace("*", "0-59"), *fields[1:]])
    try:
        next(CronSim(text, datetime(2000, 1, 1)))  # noqa: DTZ001, a wall clock has no zone
    except CronSimError as error:
        raise BadConfig(f"{shown!r} is not a time to run at: {str(error).lower()}", hint=CRON) from None
    except (StopIteration, AssertionError, ValueError, OverflowError):
        raise BadConfig(f"{shown!r} names a day that never comes", hint=CRON) from None
    return text


_AT = re.compile(r"([0-9]{1,2}):([0-9]{2})")
_DURATION = re.compile(r"(?:([0-9]{1,6})d)?\s*(?:([0-9]{1,6})h)?\s*(?:([0-9]{1,6})m)?\s*(?:([0-9]{1,6})s)?", re.I)


def parse_at(text: str) -> time:
    """An hour of the day such as `23:30`. Raises BadConfig."""
    found = _AT.fullmatch(text.strip())
    if not found or int(found[1]) > 23 or int(found[2]) > 59:
        raise BadConfig(f"{printable(text)!r} is not an hour of the day", hint="write it as 23:30")
    return time(int(found[1]), int(found[2]))


def parse_duration(text: str) -> timedelta:
    """A length of time such as `30m`, `1h30m`, `45s` or `2d`. Raises BadConfig, also for zero."""
    found = _DURATION.fullmatch(text.strip())
    parts = [int(part or 0) for part in found.groups()] if found else []
    if not any(parts):
        raise BadConfig(f"{printable(text)!r} is not a length of time", hint="write it as 30m or 1h30m")
    return timedelta(**dict(zip(("days", "hours", "minutes", "seconds"), parts, strict=True)))


def interval(said: str) -> timedelta | None:
    """How often that is, such as 30m; None where it is an expression of cron. Raises BadConfig for what is neither."""
    if not re.fullmatch(r"[\dsmhdSMHD ]+", said):
        cron(said)
        return None
    if (every := parse_duration(said)) < timedelta(minutes=1):
        raise BadConfig("the shortest interval is a minute")
    return every


def between(hours: str) -> tuple[time, time]:
    """Two hours such as 08:00-23:00. Raises BadConfig."""
    first, _, last = hours.partition("-")
    return parse_at(first), parse_at(last)
