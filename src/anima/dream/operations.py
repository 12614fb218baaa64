"""Operations: what a model may want done with lines of memory, and whether code lets it stand. Pure.

Promise: no line a model writes is kept unless all its words, names, numbers and negations come from lines it was shown,
and none that matters is left out. The owner's lines are never touched, and one refusal refuses all operations.
Not here: asking (consult), and what counts as a secret or an instruction (a predicate).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from anima.errors import printable
from anima.text.changes import Relation, relation
from anima.text.markdown import bullet_text, without_tail
from anima.text.notes import sentence
from anima.text.reading import LIMITS, Read, ToldLine, canonical, read

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
    shown = [*(one.text for one in operations), *(one.text for one in candidates), *(one.text for one in prior)]
    facts = _Facts([*shown, *map(_bare, shown)])
    refusals, added, removed = list[Refusal](), list[str](), list[Prior]()
    for one in operations:
        found = [*_shape(one), *_unknown(one, known, left)]
        if not found:
            new = [known[name].text for name in one.candidates]
            # Without words of its own a merge keeps the fullest line.
            own = new if one.verb is Verb.SUPERSEDE else [*new, *one.prior]
            added.append(_bare(one.text or facts.fullest(own)))
            judged = _judged(one, added[-1], new, facts, unsafe=unsafe, updates=updates)
            found = [*_taken(one, left, removed), *judged]
        refusals += [Refusal(rule=rule, reason=reason) for rule, reason in found]
    gone = {id(line) for line in removed}
    lines = [*(line.text for line in prior if id(line) not in gone), *added]
    refusals += [Refusal(rule=rule, reason=reason) for rule, reason in _wholesale(operations, known)]
    result = _result(lines, prior, added, removed, budget, facts)
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


def _judged(
    one: Operation, text: str, new: Sequence[str], facts: _Facts, *, unsafe: Unsafe, updates: Updates | None
) -> Found:
    told, sources = printable(text, 60), [*new, *one.prior]
    if not text or len(text) > MAX_LINE or not text.isprintable() or text.startswith("#") or "<!--" in text:
        yield "shape", f"this is no single line of at most {MAX_LINE} characters: {told!r}"
        return
    if one.verb is Verb.SUPERSEDE:
        rules = [facts.replaces, *([updates] if updates else [])]
        if untouched := next((old for old in one.prior if not all(rule(new[0], old) for rule in rules)), None):
            yield "unrelated", f"{told!r} does not make {printable(untouched, 60)!r} untrue"
        sources = [*new]
    if one.verb is Verb.MERGE and (pair := facts.differing(sources)):
        yield "merge", f"different facts would become one: {printable(pair[0], 60)!r} and {printable(pair[1], 60)!r}"
    elif why := facts.unfaithful(text, sources):
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
    lines: Sequence[str],
    prior: Sequence[Prior],
    added: Sequence[str],
    removed: Sequence[Prior],
    budget: int,
    facts: _Facts,
) -> Found:
    if len(removed) > MAX_LOST * len(prior):
        share = 100 * len(removed) / max(1, len(prior))
        yield "lost", f"{share:.0f} % of the lines of memory would go, and 25 % is the most"
    size = sum(len(line) + 1 for line in lines)
    if size > budget:
        yield "budget", f"the lines would have {size:,} characters of {budget:,}"
    counts, before = Counter(map(facts.words, lines)), Counter(facts.words(line.text) for line in prior)
    twice = (line for line in added if counts[facts.words(line)] > max(1, before[facts.words(line)]))
    if repeated := next(twice, None):
        yield "duplicate", f"memory would say twice: {printable(repeated, 60)!r}"


# -- facts in words ----------------------------------------------------------------------------------------------------


class _Facts:
    """Lines as they are compared, read together: a capital makes a name only where no line has the word without one."""

    def __init__(self, lines: Iterable[str]) -> None:
        texts = list(dict.fromkeys(lines))
        found = read([ToldLine(path="", number=0, text=_bare(text)) for text in texts])
        self._read = dict(zip(texts, found, strict=True))

    def words(self, line: str) -> tuple[str, ...]:
        return self._read[line].plain

    def fullest(self, lines: Sequence[str]) -> str:
        return max(lines, key=lambda line: (len(self._read[line].bag), len(line)))

    def differing(self, lines: Sequence[str]) -> tuple[str, str] | None:
        """The first line that states another fact than the fullest one: each must be that one with words left out."""
        fullest = self.fullest(lines)
        whole = self._read[fullest]
        for line in lines:
            mine = self._read[line]
            if _figures(mine) != _figures(whole) or mine.names != whole.names or mine.bag - whole.bag:
                return line, fullest
        return None

    def replaces(self, new: str, old: str) -> bool:
        """Whether two lines may tell the same thing of the same: each one's first word is in the other, and one more. Where
        one may have several (allergies, dogs, languages), a second is an addition and makes nothing untrue."""
        mine, theirs, told = self._read[new], self._read[old], sentence(_bare(new))
        firsts = {
            next((root for word in one.words if (root := canonical(word)) in one.bag), "") for one in (mine, theirs)
        }
        adds = told.adds or relation(sentence(_bare(old)), told) is Relation.ADDS
        shared = mine.bag & theirs.bag
        return not adds and len(shared) > 1 and firsts <= shared

    def unfaithful(self, text: str, sources: Sequence[str]) -> str:
        """What a text says that its sources do not, or leaves out of them; empty when it is true to them."""
        told = [self._read[source] for source in sources]
        mine, fullest = self._read[text], max(told, key=lambda one: len(one.bag))
        said = frozenset[str]().union(*(one.bag | one.names for one in told))
        if invented := (mine.bag | mine.names) - said:
            return f"says {printable(min(invented), 30)!r}, which no source says"
        if _figures(mine)[:2] != _figures(fullest)[:2]:
            return "has other numbers than its source"
        if mine.denied != fullest.denied:
            return "denies what its source says, or the other way about"
        if lost := fullest.names - mine.names:
            return f"leaves out {printable(min(lost), 30)!r}"
        missing = fullest.bag - mine.bag
        too_much = len(missing) > 0.2 * len(fullest.bag) or missing & LIMITS
        return "leaves out too much of its source" if too_much else ""


def _figures(one: Read) -> tuple[tuple[str, ...], tuple[str, ...], bool]:
    return one.numbers, one.dates, one.denied


def _bare(text: str) -> str:
    """A line without its sign and its tail of dates or scores: what it states."""
    return without_tail(bullet_text(text), loose=True)
