"""Score: how much recalls speak for a line, by our rules and by those of two others.

Promise: pure; each component lies between 0 and 1 and can be shown; the presets `nexo` and `openclaw` have the numbers of
those systems. Not here: what else keeps a line out of memory (planning).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from typing import Literal

from anima.errors import BadArguments

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


def preset(name: str) -> Preset:
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
