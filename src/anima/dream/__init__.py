"""Dreaming: what recalls speak for becomes memory, what is no longer so leaves it. Here: when a night, or anything else
that happens by a cron expression, is due in the user's timezone.

Promise: missed runs count as one. A wall time that a clock change leaves out runs once, when the gap ends; one that
comes twice runs the first time only. Hours given as `*` are real hours. Not here: searching, which writes the recalls
down (search), the clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from anima.errors import BadArguments, BadConfig, printable
from anima.text.dates import CRON, cron, timezone

SKEW = timedelta(days=1)  # a last run further ahead than this was noted by a clock that was wrong
TURN = timedelta(hours=3)  # more than any clock is turned back


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A run that should happen now. `since` is the first one missed; it equals `at` when none was."""

    at: datetime  # the latest run that should have begun; both are in UTC
    since: datetime


def due(expression: str, tz: str, last: datetime | None, now: datetime) -> Due | None:
    """The run that is due now, or None. `last` is when it last ran. Whatever never ran is due at once. A `last` up to a
    day ahead of `now` waits; further ahead it counts as never. Raises BadConfig for an expression or a zone that is
    none."""
    now = _utc(now)
    since = None if last is None or _utc(last) - now > SKEW else following(expression, tz, last)
    if since is not None and since > now:
        return None
    latest = next((run for run in _runs(expression, tz, now, back=True) if run <= now), None)
    first = since or latest
    return Due(at=latest or first, since=first) if first else None


@lru_cache(maxsize=1024)  # whoever waits for a run asks again and again
def following(expression: str, tz: str, after: datetime) -> datetime:
    """The first run after a moment, in UTC. Raises BadConfig for an expression or a zone that is none."""
    after = _utc(after)
    # After a turn back the wall shows times that have been.
    if (run := next((run for run in _runs(expression, tz, after) if run > after), None)) is None:
        raise BadConfig(f"{printable(expression.strip())!r} names a day that never comes again", hint=CRON)
    return run


def _utc(moment: datetime) -> datetime:
    """The moment in UTC: two times of one zone are compared by the wall, which lies while a clock is turned back."""
    if moment.tzinfo is None:
        raise BadArguments("a moment needs a timezone")
    return moment.astimezone(UTC)


def _runs(expression: str, tz: str, moment: datetime, *, back: bool = False) -> Iterator[datetime]:
    """Every run after a moment, or backwards every run up to it; near a clock change a few from its other side first."""
    from cronsim import CronSim

    zone, text, start = timezone(tz), cron(expression), moment + TURN if back else moment
    with suppress(OverflowError):  # the calendar ends in the year 9999
        yield from (run.astimezone(UTC) for run in CronSim(text, start.astimezone(zone), reverse=back))
