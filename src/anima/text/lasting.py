"""How lasting a note is: a statement of something that stays so, or a remark about a moment.

Promise: a number from 0 to 1 with the reasons for it, from the sentence alone and from how often its like was noted; no
list of things that are worth keeping, only of how people speak of what stays and of what passes. Pure. Not here: shapes
that are junk in any case (junk), recalls (score).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from anima.text import vocabulary
from anima.text.sentences import Sentence, is_past, is_stated

START = 0.4
SURE, POSSIBLE = 0.6, 0.4  # from here on a line needs little, or much, evidence; below, none is enough
_CLOCK = re.compile(r"\b\d{1,2}[:h]\d{2}\b|\b\d{1,2}\.\d{2} ?(?:uhr|h)\b|\b\d{1,2} ?(?:am|pm)\b", re.IGNORECASE)
_NUMBERED = re.compile(r"#\d+|\bv?\d+\.\d+(?:\.\d+)?\b")
_PARTICIPLE = re.compile(r"[a-z]{3,}(?:ad[oa]s?|id[oa]s?)\Z")  # as the first word of a note without a subject
_GOING = re.compile(r"[a-z]{3,}(?:ing|ando|iendo)\Z")
_UNTIL = re.compile(  # a year's end is far off: a contract until 2031 lasts
    r"\b(?:until|till|hasta|jusqu['’]?\w*)\b(?!\s+(?:\w+\s+){0,4}20\d\d)|"
    r"\bbis\s+(?:morgen|heute|abends?|später|nächste|ende|zum|\d{1,2}\.|(?:mon|diens|donners|frei|sams|sonn)tag|mittwoch)",
    re.IGNORECASE,
)
_SOON = re.compile(
    r"(?i)\b(?:back|ready|there|done|da|fertig|vuelve|listo) (?:again )?(?:in|en) \d+ ?(?:min|h|hour|day|stunden|tage)\w*"
)
# Things that have a number because there are ever more of them.
_PASSING_THING = re.compile(
    r"(?i)\b(?:tickets?|issues?|prs?|pull requests?|orders?|builds?|jobs?|tasks?|cases?|parcels?|bookings?|runs?|pedidos?|incidencias?|"
    r"tareas?|bestellung|aufgabe|vorgang|commande|tâche)\s+(?:nr\.?\s*|no\.?\s*|n[º°]\s*)?#?\d{1,7}\b|"
    r"\bon (?:its|the) way\b|\ben camino\b|\bunterwegs\b"
)
_STAYING = frozenset(
    "dating living studying learning training attending renting viviendo estudiando aprendiendo".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lasting:
    """The degree, and what spoke for and against it."""

    degree: float
    reasons: tuple[str, ...]


@lru_cache(maxsize=65_536)
def lasting(sentence: Sentence, alike: int = 0, same: int = 0) -> Lasting:
    """`alike` is on how many other days a note was written that differs in one word, `same` in numbers at most."""
    degree, reasons = START, []
    for weight, reason in [*_signs(sentence, alike), *_routine(same)]:
        degree += weight
        reasons.append(f"{reason} ({weight:+.2f})")
    return Lasting(degree=max(0.0, min(1.0, round(degree, 2))), reasons=tuple(reasons))


def _routine(same: int) -> list[tuple[float, str]]:
    """A fact is noted once, twice, three times; what comes day after day is a report or a phrase."""
    weight = min(0.6, 0.2 * (same - 2))
    return [(-weight, f"the same was noted on {same} other days")] if same > 2 else []


def _signs(sentence: Sentence, alike: int) -> list[tuple[float, str]]:
    tokens, found = sentence.tokens, []
    states = is_stated(sentence)
    ruled = not vocabulary.RULES.isdisjoint(tokens)
    if states:
        found.append((0.2, "it states what is so"))
    if not vocabulary.ATTRIBUTES.isdisjoint(tokens) or _labelled(sentence.core):
        found.append((0.25, "it names a lasting attribute"))
    if ruled:
        found.append((0.25, "it speaks of every time"))
    if not vocabulary.DECISIONS.isdisjoint(tokens):
        found.append((0.3, "it tells a decision"))
    if sentence.changes and not vocabulary.LASTING_PAST.isdisjoint(tokens) and not _did(sentence):
        found.append((0.25, "it tells a change that stays"))
    return found + _against(sentence, states=states, ruled=ruled, alike=alike)


def _labelled(core: str) -> bool:
    """`address of Eva: Oak Street 12`: a short name of something, a colon, a value."""
    label, colon, value = core.partition(": ")
    return bool(colon) and 1 < len(label.split()) <= 6 and 0 < len(value.split()) <= 8 and '"' not in value


def _against(sentence: Sentence, *, states: bool, ruled: bool, alike: int) -> list[tuple[float, str]]:
    tokens, found = sentence.tokens, []
    if _momentary(tokens) or _UNTIL.search(sentence.core) or _SOON.search(sentence.core):
        found.append((-0.6, "it speaks of a moment"))
    if not ruled and _passing(sentence, states=states):
        found.append((-0.3, "it tells a passing state"))
    if _did(sentence) or (sentence.label == 0 and _happened(tokens, states=states)):
        found.append((-0.35, "it tells what happened once"))
    if (tokens and _GOING.match(tokens[0]) and not states and not sentence.label) or _goes_on(tokens):
        found.append((-0.35, "it tells what is going on"))
    if not ruled and not vocabulary.COMING.isdisjoint(tokens[:6]):
        found.append((-0.35, "it tells what is to come"))
    if not states and not ruled and not sentence.label and _CLOCK.search(sentence.core):
        found.append((-0.2, "it names a time of day"))
    if _PASSING_THING.search(sentence.core) and not ruled:
        found.append((-0.5, "it is about one of many that come and go"))
    if _NUMBERED.search(sentence.core) and not states:
        found.append((-0.15, "it names a number of something that passes"))
    if len(tokens) < 3 and not sentence.label and not any(len(token) == 1 for token in tokens):
        found.append((-0.2, "it is only a fragment"))
    if alike > 3:
        found.append((-min(0.4, 0.08 * (alike - 3)), f"its like was noted on {alike} other days"))
    return found


def _did(sentence: Sentence) -> bool:
    """ "moved the card to done": a deed without a doer and with an object; "moved; lives in Porto" is none."""
    tokens, core = sentence.tokens, sentence.core
    if (
        not tokens
        or tokens[0] not in vocabulary.PAST & vocabulary.LASTING_PAST
        or not core[len(tokens[0]) :].startswith(" ")
    ):
        return False
    return len(tokens) > 2 and tokens[1] not in vocabulary.TIES


def _momentary(tokens: tuple[str, ...]) -> bool:
    if not vocabulary.MOMENTS.isdisjoint(tokens):
        return True
    after = (*tokens[1:], "", "")
    if any(
        t in vocabulary.TOMORROWS and (n == 0 or tokens[n - 1] not in vocabulary.OF_MORNINGS)
        for n, t in enumerate(tokens)
    ):
        return True
    # "this week" is a moment; "the last Friday of the month" is every month's.
    return any(
        one in vocabulary.THIS_TIME
        and after[n] in vocabulary.SPANS
        and after[n + 1] not in ("of", "de", "del", "des", "im", "du")
        for n, one in enumerate(tokens)
    )


def _passing(sentence: Sentence, *, states: bool) -> bool:
    """A passing state said of somebody: behind a verb of being, at the end of a fragment, or by an adverb that tells it."""
    tokens, stages = sentence.tokens, vocabulary.STAGES - sentence.names
    pairs = pairwise((*tokens, ""))
    if any(one in vocabulary.ADVERBS_OF_STAGE and not (one == "noch" and two.startswith("ein")) for one, two in pairs):
        return True
    for n, word in enumerate(tokens):
        last, before = not states and n + 1 == len(tokens), tokens[max(0, n - 2) : n]
        if word in stages and before[-1:] not in _NONE and (last or not vocabulary.BE.isdisjoint(before)):
            return True
    return False


_NONE = (("no",), ("kein",), ("sin",))  # "no running" is a rule


def _happened(tokens: tuple[str, ...], *, states: bool) -> bool:
    """A past tense among the first words, unless it is one whose outcome stays."""
    if states:
        return False
    early = tokens[:4]
    if not vocabulary.LASTING_PAST.isdisjoint(early) or not vocabulary.DECISIONS.isdisjoint(early):
        return False
    if early[:1] and early[0] in ("he", "ha", "hemos", "han"):  # "he llamado a …"
        early = early[1:]
    return any(map(is_past, early)) or bool(early and _PARTICIPLE.match(early[0]))


def _goes_on(tokens: tuple[str, ...]) -> bool:
    return any(
        one in vocabulary.BE and _GOING.match(other) and other not in _STAYING for one, other in pairwise(tokens[:7])
    )
