"""A document as it stood: by a day, by yesterday."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from anima import BadArguments, Home, NoSuchRevision
from anima.testing import Clock

LATE = datetime(2026, 5, 9, 0, 30, tzinfo=UTC)  # still the eighth in New York, so its yesterday is the seventh


def told_on(place: Path, day: int, fact: str) -> None:
    with Home.open(place, clock=lambda: datetime(2026, 5, day, 12, tzinfo=UTC)) as home:
        home.remember(fact, section="People")


@pytest.mark.parametrize(("zone", "stands"), [("UTC", ["seventh", "eighth"]), ("America/New_York", ["seventh"])])
def test_yesterday_is_the_day_before_the_owners_own(tmp_path: Path, zone: str, stands: list[str]) -> None:
    place = tmp_path / "aria"
    Home.create(place, clock=lambda: datetime(2026, 5, 7, 9, tzinfo=UTC), settings={"timezone": zone}).close()
    for day, fact in [(7, "the seventh"), (8, "the eighth"), (9, "the ninth")]:
        told_on(place, day, fact)
    with Home.open(place, clock=lambda: LATE, settings={"timezone": zone}) as home:
        home.past.restore("MEMORY.md", at="Yesterday")

        assert [day for day in ("seventh", "eighth", "ninth") if day in home.read("MEMORY.md").text] == stands


def test_yesterday_ends_when_the_owners_own_does(tmp_path: Path) -> None:
    place, zone = tmp_path / "aria", {"timezone": "America/New_York"}
    Home.create(place, clock=lambda: datetime(2026, 5, 7, 12, tzinfo=UTC), settings=zone).close()
    for moment, fact in [(LATE, "the evening"), (datetime(2026, 5, 9, 12, tzinfo=UTC), "the morning")]:
        with Home.open(place, clock=lambda now=moment: now) as home:
            home.remember(fact, section="People")
    with Home.open(place, clock=lambda: datetime(2026, 5, 9, 13, tzinfo=UTC), settings=zone) as home:
        home.past.restore("MEMORY.md", at="yesterday")

        text = home.read("MEMORY.md").text
    assert "the evening" in text and "the morning" not in text


def test_a_home_that_was_made_today_has_no_yesterday(tmp_path: Path, clock: Clock) -> None:
    with Home.create(tmp_path / "aria", clock=clock) as home:
        with pytest.raises(NoSuchRevision, match="history begins after yesterday"):
            home.past.restore("MEMORY.md", at="yesterday")
        with pytest.raises(BadArguments, match="write a3f9c2, yesterday, 2026-05-08 or"):
            home.past.restore("MEMORY.md", at="last week")
