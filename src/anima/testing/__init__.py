"""Fakes for what a test cannot have: a clock that is set by hand, dice that fall as told, a model that costs nothing.

Promise: these are the only fakes; everything else in a test is the real thing. They are public, so that hosts of a home
can test against it as we do. Beside them stands what engines promise, as tests (`tables`). Not here: anything that
touches a home.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta


class Clock:
    """A clock for `Home.open(clock=…)` that stands still until it is moved."""

    def __init__(self, now: datetime | str = "2026-05-08T19:30:00+00:00") -> None:
        self.now = datetime.fromisoformat(now) if isinstance(now, str) else now
        if self.now.tzinfo is None:
            self.now = self.now.replace(tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **span: float) -> datetime:
        """Moves on by a span in the words of `timedelta`: `clock.forward(hours=3)`."""
        self.now += timedelta(**span)
        return self.now


def dice(seed: int = 7) -> random.Random:
    """Dice that fall the same way every time."""
    return random.Random(seed)


class Model:
    """A completion function that gives prepared answers in turn and keeps what it was asked.

    An answer that is an exception is raised. When the answers are used up, `then` is given for ever.
    """

    def __init__(self, answers: Iterable[str | BaseException] = (), *, then: str | BaseException = "NO_REPLY") -> None:
        self._answers, self._then = list(answers), then
        self.asked: list[str] = []

    def __call__(self, prompt: str) -> str:
        self.asked.append(prompt)
        answer = self._answers.pop(0) if self._answers else self._then
        if isinstance(answer, BaseException):
            raise answer
        return answer
