"""Operations: what a model may want done with lines of memory, and whether code lets it stand. Pure.

Promise: no line a model writes is kept unless all its words, names, numbers and negations come from lines it was shown,
and none that matters is left out. The owner's lines are never touched, and one refusal refuses all operations.
Not here: asking (consult), and what counts as a secret or an instruction (a predicate).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from anima.errors import printable
from anima.text.markdown import bullet_text
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
    standing: dict[str, list[Prior]] = {}
    for stands in prior:
        standing.setdefault(stands.text, []).append(stands)
    refusals, added, removed = list[Refusal](), list[str](), list[Prior]()
    left = {text: sorted(lines, key=lambda line: not line.owner) for text, lines in standing.items()}
    for one in operations:
        found = [*_shape(one), *_unknown(one, known, standing)]
        if not found:
            old = [standing[text][0] for text in one.prior]
            line = _line(one, known, old)
            judged = _judged(one, line, known, old, unsafe=unsafe, updates=updates or _same_attribute)
            found = [*_taken(one, left, removed), *judged]
            added.append(line)
        refusals += [Refusal(rule=rule, reason=reason) for rule, reason in found]
    refusals += _wholesale(operations, known)
    lines = [*(line.text for line in _kept(prior, removed)), *added]
    refusals += _result(lines, prior, added, removed, budget)
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


def _unknown(one: Operation, known: Mapping[str, Offer], standing: Mapping[str, Sequence[Prior]]) -> Found:
    for name in one.candidates:
        if name not in known:
            yield "candidate", f"there is no candidate {printable(name, 40)!r}"
        elif not known[name].source.strip():
            yield "source", f"candidate {printable(name, 40)!r} has no source"
    for text in one.prior:
        if text not in standing:
            yield "prior", f"memory has no line {printable(text, 60)!r}"


def _line(one: Operation, known: Mapping[str, Offer], old: Sequence[Prior]) -> str:
    """The line an operation adds. Without words of its own a merge keeps the fullest line."""
    own = [known[name].text for name in one.candidates]
    own += [line.text for line in old if one.verb is not Verb.SUPERSEDE]
    return _bare(one.text or max(own, key=lambda line: (len(_content(line)), len(line))))


def _taken(one: Operation, left: Mapping[str, list[Prior]], removed: list[Prior]) -> Found:
    """Takes the prior lines away, each as often as it stands."""
    for text in one.prior:
        if not left[text]:
            yield "prior", f"a line of memory is removed twice: {printable(text, 60)!r}"
            continue
        line = left[text].pop()
        removed.append(line)
        if line.owner:
            yield "owner", f"the owner's own line would be touched: {printable(text, 60)!r}"


def _judged(
    one: Operation,
    text: str,
    known: Mapping[str, Offer],
    old: Sequence[Prior],
    *,
    unsafe: Unsafe,
    updates: Updates,
) -> Found:
    told = printable(text, 60)
    new = [known[name].text for name in one.candidates]
    before = [found.text for found in old]
    if not text or len(text) > MAX_LINE or not text.isprintable() or text.startswith("#") or "<!--" in text:
        yield "shape", f"this is no single line of at most {MAX_LINE} characters: {told!r}"
        return
    if one.verb is Verb.SUPERSEDE:
        held = (found for found in before if not (_same_attribute(new[0], found) and updates(new[0], found)))
        if untouched := next(held, None):
            yield "unrelated", f"{told!r} does not make {printable(untouched, 60)!r} untrue"
        before = []
    if one.verb is Verb.MERGE and (pair := _differing([*new, *before])):
        yield "merge", f"different facts would become one: {printable(pair[0], 60)!r} and {printable(pair[1], 60)!r}"
    elif why := _unfaithful(text, [*new, *before]):
        yield "source", f"{told!r} {why}"
    if reason := unsafe(text):
        yield "unsafe", f"{reason}: a line like that never enters memory"


def _wholesale(operations: Sequence[Operation], known: Mapping[str, Offer]) -> Iterator[Refusal]:
    used = Counter(name for one in operations for name in one.candidates)
    if twice := [name for name, count in used.items() if count > 1 and name in known]:
        yield Refusal(rule="candidate", reason=f"candidate {twice[0]!r} is used more than once")
    if unused := [name for name in known if name not in used]:
        yield Refusal(rule="candidate", reason=f"{len(unused)} of {len(known)} candidates are left out: {unused[0]!r}")


def _kept(prior: Iterable[Prior], removed: Iterable[Prior]) -> Iterator[Prior]:
    gone = Counter(id(line) for line in removed)
    for line in prior:
        if gone[id(line)] > 0:
            gone[id(line)] -= 1
        else:
            yield line


def _result(
    lines: Sequence[str], prior: Sequence[Prior], added: Sequence[str], removed: Sequence[Prior], budget: int
) -> Iterator[Refusal]:
    if len(removed) > MAX_LOST * len(prior):
        share = 100 * len(removed) / max(1, len(prior))
        yield Refusal(rule="lost", reason=f"{share:.0f} % of the lines of memory would go, and 25 % is the most")
    size = sum(len(line) + 1 for line in lines)
    if size > budget:
        yield Refusal(rule="budget", reason=f"the lines would have {size:,} characters of {budget:,}")
    counts, before = Counter(map(_words, lines)), Counter(_words(line.text) for line in prior)
    if repeated := next((line for line in added if counts[_words(line)] > max(1, before[_words(line)])), None):
        yield Refusal(rule="duplicate", reason=f"memory would say twice: {printable(repeated, 60)!r}")


# -- facts in words ----------------------------------------------------------------------------------------------------

_WORD = re.compile(r"[^\W_]+(?:[.,:/][0-9]+)*(?:['’][^\W_]+)*")
_TAIL = re.compile(r"_\((?:score|hits|days)[^()]*\)_\Z|\((?:since|from|until) [^()]{1,60}\)\Z")
_TABLE = {name: word_set(words) for name, words in read_table("dream", "operations").items()}
_SMALL, _NEGATIONS, _LIMITS = _TABLE["small"], _TABLE["negations"], _TABLE["limits"]
_NOW, _BESIDES, _SEVERAL = _TABLE["now"], _TABLE["besides"], tuple(_TABLE["several"])
_ENDINGS = _TABLE["endings"] | {""}
_NUMBERS = {
    word: str(n) for n, word in enumerate("zero one two three four five six seven eight nine ten eleven twelve".split())
}


def _bare(text: str) -> str:
    """A line without its sign and its tail of dates or scores: what it states."""
    text = bullet_text(text)
    for _ in range(2):
        at = max(text.rfind("_("), text.rfind("("))
        at = at - 1 if at > 0 and text[at - 1 : at + 1] == "_(" else at
        text = text[:at].rstrip() if at >= 0 and _TAIL.match(text, at) else text
    return text


def _words(text: str) -> tuple[str, ...]:
    folded = unicodedata.normalize("NFKC", _bare(text)).casefold().replace("’", "'")
    found: list[str] = []
    for word in _WORD.findall(folded):
        if word.endswith("n't"):
            found += [word[:-3], "not"]
        else:
            found.append(_NUMBERS.get(word, word.removesuffix("'s")))
    return tuple(found)


def _content(text: str) -> frozenset[str]:
    return frozenset(word for word in _words(text) if word not in _SMALL and word not in _NEGATIONS)


def _numbers(text: str) -> Counter[str]:
    return Counter(word for word in _words(text) if any(char.isdigit() for char in word))


def _negations(text: str) -> int:
    return sum(word in _NEGATIONS for word in _words(text)) % 2


def _names(text: str) -> frozenset[str]:
    """Words with a capital that do not only begin the line: names for certain, in most scripts that have capitals."""
    found = _WORD.findall(unicodedata.normalize("NFKC", _bare(text)))
    later = (word for place, word in enumerate(found) if place and word != word.lower())
    return frozenset(word.casefold().replace("’", "'").removesuffix("'s") for word in later) - _SMALL


def _capital(text: str) -> frozenset[str]:
    """Words that stand with a capital wherever they stand, the first one included: names, perhaps."""
    found = _WORD.findall(unicodedata.normalize("NFKC", _bare(text)))
    small = {word.casefold() for word in found if word == word.lower()}
    return frozenset(word.casefold().replace("’", "'").removesuffix("'s") for word in found) - small


def _alike(one: str, other: str) -> bool:
    """Two forms of a word: prefer, prefers, preferred."""
    shared = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return shared >= 3 and one[shared:] in _ENDINGS and other[shared:] in _ENDINGS


def _lacking(text: str, there: str) -> list[str]:
    """The words of a text that another has in no form. A name has one form only."""
    words, present = _content(text), _content(there)
    names, other_names = _capital(text), _capital(there)
    by_start: dict[str, list[str]] = {}
    for word in present:
        by_start.setdefault(word[:3], []).append(word)

    def has_form(word: str) -> bool:
        forms = by_start.get(word[:3], ())
        return any(_alike(word, form) and not (word in names and form in other_names) for form in forms)

    return sorted(word for word in words if word not in present and not has_form(word))


def _differing(lines: Sequence[str]) -> tuple[str, str] | None:
    """The first line that states another fact than the fullest one: each must be that one with words left out."""
    fullest = max(lines, key=lambda line: (len(_content(line)), len(line)))
    for line in lines:
        same = _numbers(line) == _numbers(fullest) and _negations(line) == _negations(fullest)
        strangers = (_names(line) - _content(fullest)) | (_names(fullest) - _content(line))
        if not same or strangers or _lacking(line, fullest):
            return line, fullest
    return None


def _unfaithful(text: str, sources: Sequence[str]) -> str:
    """What a text says that its sources do not, or leaves out of them; empty when it is true to them."""
    together = " ".join(f"{_bare(source)} ." for source in sources)
    if invented := _lacking(text, together):
        return f"says {printable(invented[0], 30)!r}, which no source says"
    fullest = max(sources, key=lambda line: len(_content(line)))
    if _numbers(text) != _numbers(fullest):
        return "has other numbers than its source"
    if _negations(text) != _negations(fullest):
        return "denies what its source says, or the other way about"
    if lost := _names(fullest) - _content(text):
        return f"leaves out {printable(min(lost), 30)!r}"
    missing = _lacking(fullest, text)
    too_much = len(missing) > 0.2 * len(_content(fullest)) or any(word in _LIMITS for word in missing)
    return "leaves out too much of its source" if too_much else ""


def _same_attribute(new: str, old: str) -> bool:
    """Whether two lines tell the same thing of the same subject: each one's first word is in the other, and one more.

    Where one may have several (allergies, dogs, languages), a second is an addition and makes nothing untrue.
    """
    first, second = _first(new), _first(old)
    if not first or not second or first in _lacking(new, old) or second in _lacking(old, new):
        return False
    shared = len(_content(new)) - len(_lacking(new, old))
    several = any(word.startswith(_SEVERAL) for word in _content(new) & _content(old))
    return shared >= 2 and not several and not _content(new) & _BESIDES


def _first(text: str) -> str:
    return next((word for word in _words(text) if word in _content(text) and word not in _NOW), "")
