"""Operations: what a model may want done with lines of memory, and whether code lets it stand. Pure.

Promise: no line a model writes is kept unless all its words, names, numbers and negations come from lines it was shown,
and none that matters is left out. The owner's lines are never touched, and one refusal refuses all operations.
Not here: asking (consult), and what counts as a secret or an instruction (a predicate).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from anima.errors import printable
from anima.text.changes import shared_start
from anima.text.dates import NUMBERS
from anima.text.markdown import bullet_text, without_tail
from anima.text.words import read_table, word_set

MAX_LOST = 0.25  # of the prior lines
MAX_LINE = 400
Unsafe = Callable[[str], str | None]  # why a line may not be added, or None
Updates = Callable[[str, str], bool]  # whether a new line makes an old one untrue


class Verb(StrEnum):
    ADD = "add"
    MERGE = "merge"
    SUPERSEDE = "supersede"
    REWORD = "reword"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A line that passed every gate, with where it stands."""

    id: str
    text: str
    source: str  # such as memory/2026-05-08.md#L7


@dataclass(frozen=True, slots=True, kw_only=True)
class Prior:
    """A line of memory as it stands. The owner's own are shown, and never touched."""

    text: str
    owner: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One thing a model wants done. `prior` are exact lines; an empty `text` means the candidate's own words."""

    verb: Verb
    candidates: tuple[str, ...]
    prior: tuple[str, ...]
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why the operations may not stand: the rule, and a sentence."""

    rule: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the operations come to. With any refusal, `lines` are the prior ones and nothing is added or removed."""

    lines: tuple[str, ...]
    added: tuple[str, ...] = ()
    removed: tuple[Prior, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def accepted(self) -> bool:
        return not self.refusals


# -- judging -----------------------------------------------------------------------------------------------------------


def validate(
    operations: Sequence[Operation],
    *,
    candidates: Sequence[Offer],
    prior: Sequence[Prior],
    budget: int,
    unsafe: Unsafe,
    updates: Updates | None = None,
) -> Outcome:
    """What the operations come to, or every reason why they may not stand.

    `budget` is in characters, for all resulting lines with their ends; `unsafe` says why a line may not be added;
    `updates`, when given, must agree that a candidate makes a line untrue, beside our own rule. Added lines are bare
    words, without a list's sign, scores or dates; lines that stay are exact.
    """
    known = {one.id: one for one in candidates}
    left: dict[str, list[Prior]] = {}  # each line as often as it stands, the owner's first
    for line in sorted(prior, key=lambda line: not line.owner):
        left.setdefault(line.text, []).append(line)
    refusals, added, removed = list[Refusal](), list[str](), list[Prior]()
    for one in operations:
        found = [*_shape(one), *_unknown(one, known, left)]
        if not found:
            new = [known[name].text for name in one.candidates]
            # Without words of its own a merge keeps the fullest line.
            own = new if one.verb is Verb.SUPERSEDE else [*new, *one.prior]
            added.append(_bare(one.text or _fullest(own)))
            found = [*_taken(one, left, removed), *_judged(one, added[-1], new, unsafe=unsafe, updates=updates)]
        refusals += [Refusal(rule=rule, reason=reason) for rule, reason in found]
    gone = {id(line) for line in removed}
    lines = [*(line.text for line in prior if id(line) not in gone), *added]
    refusals += [Refusal(rule=rule, reason=reason) for rule, reason in _wholesale(operations, known)]
    result = _result(lines, prior, added, removed, budget)
    refusals += [Refusal(rule=rule, reason=reason) for rule, reason in result]
    if refusals:
        return Outcome(lines=tuple(line.text for line in prior), refusals=tuple(refusals))
    return Outcome(lines=tuple(lines), added=tuple(added), removed=tuple(removed))


Found = Iterator[tuple[str, str]]
_ARITY = {  # how many candidates, how many prior lines
    Verb.ADD: ((1, 1), (0, 0)),
    Verb.REWORD: ((0, 1), (0, 1)),
    Verb.MERGE: ((0, 50), (0, 50)),
    Verb.SUPERSEDE: ((1, 1), (1, 50)),
}


def _shape(one: Operation) -> Found:
    (least, most), (few, many) = _ARITY[one.verb]
    if not one.candidates and not one.prior:
        yield "source", f"a line of {one.verb} comes from nowhere"
    elif not (least <= len(one.candidates) <= most and few <= len(one.prior) <= many):
        yield "shape", f"{one.verb} does not take {len(one.candidates)} candidates and {len(one.prior)} prior lines"
    elif one.verb is Verb.MERGE and len(one.candidates) + len(one.prior) < 2:
        yield "shape", "a merge takes at least two lines"
    elif one.verb is Verb.REWORD and (len(one.candidates) + len(one.prior) > 1 or not one.text):
        yield "shape", "a reword takes one line and gives its new text"
    elif one.verb is Verb.ADD and one.text:
        yield "shape", "an add keeps the candidate's own words"


def _unknown(one: Operation, known: Mapping[str, Offer], standing: Mapping[str, object]) -> Found:
    for name in one.candidates:
        if name not in known:
            yield "candidate", f"there is no candidate {printable(name, 40)!r}"
        elif not known[name].source.strip():
            yield "source", f"candidate {printable(name, 40)!r} has no source"
    for text in one.prior:
        if text not in standing:
            yield "prior", f"memory has no line {printable(text, 60)!r}"


def _taken(one: Operation, left: Mapping[str, list[Prior]], removed: list[Prior]) -> Found:
    """Takes the prior lines away, each as often as it stands."""
    for text in one.prior:
        if not left[text]:
            yield "prior", f"a line of memory is removed twice: {printable(text, 60)!r}"
            continue
        removed.append(left[text].pop())
        if removed[-1].owner:
            yield "owner", f"the owner's own line would be touched: {printable(text, 60)!r}"


def _judged(one: Operation, text: str, new: Sequence[str], *, unsafe: Unsafe, updates: Updates | None) -> Found:
    told, sources = printable(text, 60), [*new, *one.prior]
    if not text or len(text) > MAX_LINE or not text.isprintable() or text.startswith("#") or "<!--" in text:
        yield "shape", f"this is no single line of at most {MAX_LINE} characters: {told!r}"
        return
    if one.verb is Verb.SUPERSEDE:
        rules = [_same_attribute, *([updates] if updates else [])]
        if untouched := next((old for old in one.prior if not all(rule(new[0], old) for rule in rules)), None):
            yield "unrelated", f"{told!r} does not make {printable(untouched, 60)!r} untrue"
        sources = [*new]
    if one.verb is Verb.MERGE and (pair := _differing(sources)):
        yield "merge", f"different facts would become one: {printable(pair[0], 60)!r} and {printable(pair[1], 60)!r}"
    elif why := _unfaithful(text, sources):
        yield "source", f"{told!r} {why}"
    if reason := unsafe(text):
        yield "unsafe", f"{reason}: a line like that never enters memory"


def _wholesale(operations: Sequence[Operation], known: Mapping[str, Offer]) -> Found:
    used = Counter(name for one in operations for name in one.candidates)
    if twice := [name for name, count in used.items() if count > 1 and name in known]:
        yield "candidate", f"candidate {twice[0]!r} is used more than once"
    if unused := [name for name in known if name not in used]:
        yield "candidate", f"{len(unused)} of {len(known)} candidates are left out: {unused[0]!r}"


def _result(
    lines: Sequence[str], prior: Sequence[Prior], added: Sequence[str], removed: Sequence[Prior], budget: int
) -> Found:
    if len(removed) > MAX_LOST * len(prior):
        share = 100 * len(removed) / max(1, len(prior))
        yield "lost", f"{share:.0f} % of the lines of memory would go, and 25 % is the most"
    size = sum(len(line) + 1 for line in lines)
    if size > budget:
        yield "budget", f"the lines would have {size:,} characters of {budget:,}"
    counts, before = Counter(_said(line).words for line in lines), Counter(_said(line.text).words for line in prior)
    twice = (line for line in added if counts[_said(line).words] > max(1, before[_said(line).words]))
    if repeated := next(twice, None):
        yield "duplicate", f"memory would say twice: {printable(repeated, 60)!r}"


# -- facts in words ----------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W_]+(?:[.,:/][0-9]+)*(?:['’][^\W_]+)*")
_TABLE = {name: word_set(words) for name, words in read_table("dream", "operations").items()}
_SMALL, _NEGATIONS, _LIMITS = _TABLE["small"], _TABLE["negations"], _TABLE["limits"]
_NOW, _BESIDES, _SEVERAL = _TABLE["now"], _TABLE["besides"], tuple(_TABLE["several"])
_ENDINGS = _TABLE["endings"] | {""}


class _Said(NamedTuple):
    """What a line states, in parts that can be compared."""

    words: tuple[str, ...]
    content: frozenset[str]
    figures: tuple[tuple[str, ...], bool]  # its numbers, and whether it denies
    names: frozenset[str]  # words with a capital that do not only begin the line: names for certain
    capital: frozenset[
        str
    ]  # words that stand with a capital wherever they stand, the first one included: names, perhaps


@lru_cache(maxsize=4_096)
def _said(text: str) -> _Said:
    raw = _WORD.findall(unicodedata.normalize("NFKC", _bare(text)).replace("’", "'"))
    words: list[str] = []
    for word in map(str.casefold, raw):
        words += [word[:-3], "not"] if word.endswith("n't") else [str(NUMBERS.get(word, word.removesuffix("'s")))]
    numbers = sorted(word for word in words if any(char.isdigit() for char in word))
    small = {word for word in raw if word == word.lower()}
    plain = [word.casefold().removesuffix("'s") for word in raw]
    later = frozenset(word for word, shown in list(zip(plain, raw, strict=True))[1:] if shown != shown.lower())
    return _Said(
        tuple(words),
        frozenset(words) - _SMALL - _NEGATIONS,
        (tuple(numbers), sum(word in _NEGATIONS for word in words) % 2 == 1),
        later - _SMALL,
        frozenset(plain) - small,
    )


def _bare(text: str) -> str:
    """A line without its sign and its tail of dates or scores: what it states."""
    return without_tail(bullet_text(text), loose=True)


def _fullest(lines: Sequence[str]) -> str:
    return max(lines, key=lambda line: (len(_said(line).content), len(line)))


def _lacking(text: str, there: str) -> list[str]:
    """The words of a text that another has in no form: prefer, prefers, preferred. A name has one form only."""
    mine, theirs = _said(text), _said(there)
    by_start: dict[str, list[str]] = {}
    for word in theirs.content:
        by_start.setdefault(word[:3], []).append(word)

    def has_form(word: str) -> bool:
        for form in by_start.get(word[:3], ()):
            shared = shared_start(word, form)
            is_form = shared >= 3 and word[shared:] in _ENDINGS and form[shared:] in _ENDINGS
            if is_form and not (word in mine.capital and form in theirs.capital):
                return True
        return False

    return sorted(word for word in mine.content - theirs.content if not has_form(word))


def _differing(lines: Sequence[str]) -> tuple[str, str] | None:
    """The first line that states another fact than the fullest one: each must be that one with words left out."""
    fullest = _fullest(lines)
    whole = _said(fullest)
    for line in lines:
        mine = _said(line)
        strangers = (mine.names - whole.content) | (whole.names - mine.content)
        if mine.figures != whole.figures or strangers or _lacking(line, fullest):
            return line, fullest
    return None


def _unfaithful(text: str, sources: Sequence[str]) -> str:
    """What a text says that its sources do not, or leaves out of them; empty when it is true to them."""
    if invented := _lacking(text, " ".join(f"{_bare(source)} ." for source in sources)):
        return f"says {printable(invented[0], 30)!r}, which no source says"
    source = max(sources, key=lambda line: len(_said(line).content))
    mine, fullest = _said(text), _said(source)
    if mine.figures[0] != fullest.figures[0]:
        return "has other numbers than its source"
    if mine.figures[1] != fullest.figures[1]:
        return "denies what its source says, or the other way about"
    if lost := fullest.names - mine.content:
        return f"leaves out {printable(min(lost), 30)!r}"
    missing = _lacking(source, text)
    too_much = len(missing) > 0.2 * len(fullest.content) or any(word in _LIMITS for word in missing)
    return "leaves out too much of its source" if too_much else ""


def _same_attribute(new: str, old: str) -> bool:
    """Whether two lines tell the same thing of the same subject: each one's first word is in the other, and one more.

    Where one may have several (allergies, dogs, languages), a second is an addition and makes nothing untrue.
    """
    mine, theirs, lacking = _said(new), _said(old), _lacking(new, old)
    first, second = (next((w for w in one.words if w in one.content - _NOW), "") for one in (mine, theirs))
    if not first or not second or first in lacking or second in _lacking(old, new):
        return False
    several = any(word.startswith(_SEVERAL) for word in mine.content & theirs.content)
    return len(mine.content) - len(lacking) >= 2 and not several and not mine.content & _BESIDES
