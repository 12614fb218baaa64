"""When something that is to happen by a cron expression is due, in the user's timezone.

Promise: pure; whoever asks (a server's loop, a heartbeat, a command) gets the same answer for the same times. Runs that
were missed count as one. A wall time that a clock change leaves out runs once, when the gap ends; one that comes twice
runs once, the first time. Hours given as `*` are real hours and follow no wall clock.
Not here: the clock, and remembering when something last ran.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from anima.config import timezone as zone_of
from anima.errors import BadArguments, BadConfig, printable

NAMED = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
MAX_EXPRESSION = 200
SKEW = timedelta(days=1)  # a last run further ahead than this was noted by a clock that was wrong
_LOOK_BACK = (1 / 12, 2, 32, 370, 370 * 9, 370 * 45)  # days, widened until a run is found
_SECOND = timedelta(seconds=1)
_HINT = "write five fields (minute hour day month weekday), such as 0 3 * * * for every night at three"


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A run that should happen now. `since` is the first one missed; it equals `at` when none was."""

    at: datetime  # the latest run that should have begun; both are in UTC
    since: datetime

    @property
    def missed(self) -> bool:
        """Whether several runs fell into one."""
        return self.since != self.at


def due(expression: str, timezone: str, last: datetime | None, now: datetime) -> Due | None:
    """The run that is due now, or None. `last` is when it last ran.

    Whatever never ran is due at once. A `last` up to a day ahead of `now` waits; further ahead it counts as never.
    Raises BadConfig for an expression or a zone that is none.
    """
    rule = _rule(expression, timezone)
    now = _utc(now)
    if last is None or _utc(last) - now > SKEW:
        latest = _latest(rule, now, None)
        return Due(at=latest, since=latest) if latest else None
    since = _first(rule, _utc(last))
    if since > now:
        return None
    return Due(at=_latest(rule, now, since) or since, since=since)


def following(expression: str, tz: str, after: datetime) -> datetime:
    """The first run after a moment, in UTC. Raises BadConfig for an expression or a zone that is none."""
    return _first(_rule(expression, tz), _utc(after))


@dataclass(frozen=True, slots=True)
class _Rule:
    expression: str
    zone: ZoneInfo
    by_the_wall: bool  # the hours are named, so they are those of the clock on the wall


@lru_cache(maxsize=64)
def _rule(expression: str, timezone: str) -> _Rule:
    from cronsim import CronSim, CronSimError

    try:
        zone = zone_of(timezone)
    except ValueError as error:
        raise BadConfig(str(error)) from None
    text = NAMED.get(expression.strip().lower(), expression.strip())
    shown = printable(expression.strip(), 60)
    fields = text.split()
    if len(fields) != 5 or len(text) > MAX_EXPRESSION:
        raise BadConfig(f"{shown!r} is not a time to run at", hint=_HINT)
    try:
        next(CronSim(text, datetime(2000, 1, 1)))  # noqa: DTZ001, a wall clock has no zone
    except CronSimError as error:
        raise BadConfig(f"{shown!r} is not a time to run at: {str(error).lower()}", hint=_HINT) from None
    except (StopIteration, AssertionError, ValueError, OverflowError):
        raise BadConfig(f"{shown!r} names a day that never comes", hint=_HINT) from None
    return _Rule(text, zone, not fields[1].startswith("*"))


def _utc(moment: datetime) -> datetime:
    """The moment in UTC: two times of one zone are compared by the wall, which lies while a clock is turned back."""
    if moment.tzinfo is None:
        raise BadArguments("a moment needs a timezone")
    return moment.astimezone(UTC)


def _latest(rule: _Rule, now: datetime, since: datetime | None) -> datetime | None:
    """The last run up to now, not before `since`: looked for in windows that grow, so that it is found in few steps."""
    for days in _LOOK_BACK:
        start = now - timedelta(days=days)
        if since is not None and start < since:
            start = since - _SECOND
        found = None
        for run in _runs(rule, start):
            if run > now:
                break
            found = run
        if found is not None:
            return found
    return None


def _first(rule: _Rule, after: datetime) -> datetime:
    for run in _runs(rule, after):
        return run
    raise BadConfig(f"{printable(rule.expression)!r} names a day that never comes again", hint=_HINT)


def _runs(rule: _Rule, after: datetime) -> Iterator[datetime]:
    """Every run after a moment, in order, each moment once."""
    from cronsim import CronSim

    local = after.astimezone(rule.zone)
    start = local.replace(tzinfo=None, fold=0) if rule.by_the_wall else local
    before = after
    try:
        for run in CronSim(rule.expression, start):
            moment = _moment(run, rule.zone) if rule.by_the_wall else run.astimezone(UTC)
            # Two wall times of one gap are one moment, and after a turn back the wall shows times that have been.
            if moment > before:
                yield moment
                before = moment
    except OverflowError:  # the calendar ends in the year 9999
        return


def _moment(wall: datetime, zone: ZoneInfo) -> datetime:
    """When the clock on the wall shows this for the first time; in a gap, when the gap ends."""
    early = wall.replace(tzinfo=zone).astimezone(UTC)
    if early.astimezone(zone).replace(tzinfo=None, fold=0) == wall:
        return early
    low, high = wall.replace(tzinfo=zone, fold=1).astimezone(UTC), early
    old = low.astimezone(zone).utcoffset()
    while high - low > _SECOND:
        middle = (low + (high - low) / 2).replace(microsecond=0)
        low, high = (middle, high) if middle.astimezone(zone).utcoffset() == old else (low, middle)
    return high
