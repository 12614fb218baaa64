"""Tallies of recalls, and the score: how much recalls speak for a line, by our rules and by those of two others.

Promise: pure. Tallies fold the ledger's `recall` records one by one, so that a sweep costs what is new since the last;
only searches of the owner's own main sessions count, and the same question on the same day counts once. Each component
of a score lies between 0 and 1 and can be shown; the presets `nexo` and `openclaw` have the numbers of those systems.
Not here: which line a digest belongs to (sweep), what else keeps a line out of memory (plan).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from anima.errors import BadArguments
from anima.ledger.chain import Record

STRONG = 0.85  # of the best hit's score: a hit as high as this, or the first one, is strong
WEIGHTS = {
    "frequency": 0.24,
    "relevance": 0.30,
    "diversity": 0.15,
    "recency": 0.15,
    "consolidation": 0.10,
    "conceptual": 0.06,
}
LIGHT_BOOST, REM_BOOST = 0.06, 0.09
HALF_LIFE = 14.0
HALF_LIVES = {"attribute": 90.0, "rule": 60.0, "decision": 60.0}  # by kind of line; else 14 days
DAILY_SCORE = 0.62  # what a mention in a daily log counts as, where mentions count at all


@dataclass(slots=True)
class Tally:
    """Of one line: every hit, and apart from that the strong ones by question and day."""

    hits: int = 0
    strong: set[tuple[str, str]] = field(default_factory=set)  # (day, question)
    questions: set[str] = field(default_factory=set)  # of any hit
    days: set[str] = field(default_factory=set)
    ranked: float = 0.0  # sum of 1 / rank
    scored: float = 0.0  # sum of the hits' own scores
    relative: float = 0.0  # sum of shares of the best hit's score
    first: str = ""
    last: str = ""

    def add(self, *, day: str, question: str, rank: int, score: float, relative: float) -> None:
        self.hits += 1
        self.questions.add(question)
        self.days.add(day)
        self.ranked += 1 / max(1, rank)
        self.scored += score
        self.relative += relative
        self.first = min(self.first or day, day)
        self.last = max(self.last, day)
        if rank == 1 or relative >= STRONG:
            self.strong.add((day, question))

    def join(self, other: Tally) -> None:
        """Takes another line's tally in: two lines that say the same share their recalls."""
        self.hits += other.hits
        self.strong |= other.strong
        self.questions |= other.questions
        self.days |= other.days
        self.ranked += other.ranked
        self.scored += other.scored
        self.relative += other.relative
        self.first = min(self.first or other.first, other.first or self.first)
        self.last = max(self.last, other.last)

    @property
    def strong_days(self) -> set[str]:
        return {day for day, _ in self.strong}

    @property
    def strong_questions(self) -> set[str]:
        return {question for _, question in self.strong}


class Tallies:
    """The tallies of all lines. `through` is the number of the last record in them."""

    def __init__(self) -> None:
        self.through = 0
        self._lines: dict[tuple[str, str], Tally] = {}

    def fold(self, record: Record) -> None:
        self.through, fields = record.n, record.fields
        if record.kind != "recall" or fields.get("scope") != "main" or fields.get("layer"):
            return
        day, question, hits = str(fields.get("day", "")), str(fields.get("query", "")), fields.get("hits") or ()
        best = max((float(hit.get("score", 0)) for hit in hits), default=0.0)
        for hit in hits:
            score = float(hit.get("score", 0))
            share = score / best if best > 0 else 0.0
            path, rank = str(hit.get("path", "")), int(hit.get("rank", 99))
            for digest in hit.get("lines", ())[:4]:
                tally = self._lines.setdefault((path, digest), Tally())
                tally.add(day=day, question=question, rank=rank, score=score, relative=share)

    def of(self, path: str, digests: Iterable[str]) -> Tally | None:
        """The tally of the first of these lines that was ever found."""
        return next((found for digest in digests if digest and (found := self._lines.get((path, digest)))), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """Whose rules: the least score, recalls, questions and days, and how many lines a night."""

    name: Literal["anima", "nexo", "openclaw"]
    score: float
    recalls: int
    questions: int
    days: int
    limit: int
    oldest: int | None = None  # days since the last recall
    careful: bool = False  # also weighs how lasting the line is, and replaces what is outdated


PRESETS = {
    "anima": Preset(name="anima", score=0.30, recalls=2, questions=1, days=2, limit=40, careful=True),
    "nexo": Preset(name="nexo", score=0.35, recalls=3, questions=2, days=1, limit=20),
    "openclaw": Preset(name="openclaw", score=0.8, recalls=3, questions=3, days=1, limit=10, oldest=30),
}


def preset_of(name: str) -> Preset:
    if name not in PRESETS:
        raise BadArguments(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
    return PRESETS[name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What recalls say of a line and of those that say the same."""

    recalls: int  # as the preset counts them
    questions: int
    days: int
    relevance: float  # mean, 0 to 1
    first: date
    last: date
    mentions: int = 1  # days on which it was noted
    tags: int = 0
    kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The total, and each component before it is weighed."""

    total: float
    frequency: float
    relevance: float
    diversity: float
    recency: float
    consolidation: float
    conceptual: float
    boost: float = 0.0

    @property
    def weighed(self) -> dict[str, float]:
        """What each component adds to the total, before that is rounded."""
        return {name: weight * getattr(self, name) for name, weight in WEIGHTS.items()} | {"boost": self.boost}


def score(evidence: Evidence, *, today: date, rules: Preset) -> Score:
    formula = {"anima": _ours, "nexo": _nexo, "openclaw": _openclaw}[rules.name]
    parts = {name: max(0.0, min(1.0, value)) for name, value in formula(evidence, today).items()}
    boost = _boost(evidence, today) if rules.name == "openclaw" else 0.0
    total = sum(WEIGHTS[name] * value for name, value in parts.items()) + boost
    rounded = {name: round(value, 4) for name, value in parts.items()}
    return Score(total=round(min(1.0, total), 4), boost=round(boost, 4), **rounded)


def _age(evidence: Evidence, today: date) -> int:
    return max(0, (today - evidence.last).days)


def _ours(e: Evidence, today: date) -> dict[str, float]:
    return {
        "frequency": math.log1p(e.recalls) / math.log(7),
        "relevance": e.relevance,
        "diversity": e.questions / 3,
        "recency": 2 ** (-_age(e, today) / HALF_LIVES.get(e.kind, HALF_LIFE)),
        "consolidation": e.days / 3,
        "conceptual": e.tags / 6,
    }


def _nexo(e: Evidence, today: date) -> dict[str, float]:
    return {
        "frequency": math.log1p(e.recalls) / math.log(7),
        "relevance": e.relevance,
        "diversity": max(e.questions, e.days) / 5,
        "recency": 2 ** (-_age(e, today) / 90),
        "consolidation": e.days / 5,
        "conceptual": 0.0,
    }


def _openclaw(e: Evidence, today: date) -> dict[str, float]:
    signals = e.recalls + e.mentions
    return {
        "frequency": math.log1p(signals) / math.log(11),
        "relevance": (e.relevance * e.recalls + DAILY_SCORE * e.mentions) / signals,
        "diversity": max(e.questions, e.days) / 5,
        "recency": 2 ** (-_age(e, today) / 14),
        "consolidation": _spacing(e),
        "conceptual": e.tags / 6,
    }


def _spacing(e: Evidence) -> float:
    if e.days <= 1:
        return 0.2 * e.days
    return 0.55 * min(1.0, math.log(e.days) / math.log(5)) + 0.45 * min(1.0, (e.last - e.first).days / 7)


def _boost(e: Evidence, today: date) -> float:
    """What light and REM sleep add to a line they saw on several nights."""
    fade = 2 ** (-_age(e, today) / HALF_LIFE)
    light, rem = (min(1.0, math.log1p(nights) / math.log(7)) * fade for nights in (e.days, max(0, e.days - 1)))
    return LIGHT_BOOST * light + REM_BOOST * rem
