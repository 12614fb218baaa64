"""The three phases of a night: what was gathered, what it was about, what may be so. Pure.

Promise: light sleep counts the last two days, REM sleep the last seven: themes from concept tags, and candidate truths
with a confidence; what deep sleep promotes stands in the plan. Untrusted lines take no part. Not here: the words (diary).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, timedelta

from anima.dream.junk import why_junk
from anima.dream.material import Candidate, Plan, Theme, Truth
from anima.text.lasting import POSSIBLE
from anima.text.words import tags

LIGHT, REM = timedelta(days=2), timedelta(days=7)
STRENGTH, CONFIDENCE = 0.75, 0.45
MOST_THEMES, MOST_TRUTHS = 3, 3
FEWEST = 3  # lines a theme needs


def with_phases(made: Plan, *, today: date) -> Plan:
    """The plan with its themes and candidate truths."""
    week = [c for c in made.considered if today - c.evidence.last <= REM and why_junk(c.note.text) is None]
    return replace(made, themes=tuple(themes(week)), truths=tuple(truths(week)))


def light(made: Plan, *, today: date) -> int:
    """How many lines the searches of the last two days came back to."""
    return sum(today - candidate.evidence.last <= LIGHT for candidate in made.considered)


def themes(candidates: Iterable[Candidate]) -> list[Theme]:
    """Tags that run through many of the week's lines."""
    chosen = [c for c in candidates if c.lasting >= POSSIBLE]
    counts = Counter(tag for c in chosen for tag in tags(c.note.text))
    found = [
        Theme(tag=tag, strength=round(min(1.0, 2 * lines / len(chosen)), 2), lines=lines)
        for tag, lines in counts.most_common(8)
    ]
    strong = [theme for theme in found if theme.lines >= FEWEST and theme.strength >= STRENGTH / 2]
    return strong[:MOST_THEMES]


def truths(candidates: Iterable[Candidate]) -> list[Truth]:
    """What seems to be so and is not kept yet, because it was asked for too seldom."""
    found = []
    for candidate in candidates:
        e = candidate.evidence
        waits = candidate.refusal is not None and candidate.refusal.name in ("recalls", "questions", "days", "score")
        confidence = (
            0.45 * e.relevance + 0.25 * min(1, e.recalls / 3) + 0.2 * min(1, e.days / 3) + 0.1 * min(1, e.tags / 6)
        )
        if waits and e.recalls and candidate.lasting >= POSSIBLE and confidence >= CONFIDENCE:
            found.append(
                Truth(fact=" ".join(candidate.note.text.split()), confidence=round(confidence, 2), note=candidate.note)
            )
    return sorted(found, key=lambda truth: -truth.confidence)[:MOST_TRUTHS]
