"""A step of a model that answers only when it is let go."""

from __future__ import annotations

import threading

from anima.testing.models import Received, Spoken


class Held:
    def __init__(self, then: Spoken) -> None:
        self.then, self.asked, self.go = then, threading.Event(), threading.Event()

    def __call__(self, asked: Received) -> Spoken:
        self.asked.set()
        assert self.go.wait(180)
        return self.then

    def reached(self) -> None:
        assert self.asked.wait(120)
