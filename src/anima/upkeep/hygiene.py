"""Hygiene: the lines of documents that say something by themselves, which of them say the same, and which cannot both hold.

Promise: two lines are twins only with the same numbers, dates and denials, the same names, and the same one acting; where
that cannot be told they are not. Paraphrases are found by meaning, not by grammar. Of what there may be several of (likes,
friends, visits), and of what happened, nothing contradicts anything. Time grows with the lines, not with their square. Pure.
Not here: how a line is read (text.reading), vectors of texts (they are passed in), what to do about it (upkeep).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Literal, NamedTuple

from anima.text import markdown, reading
from anima.text.markdown import bullet_of, heading_of, lines_of
from anima.text.pages import outside_blocks
from anima.text.phrases import is_strong, said_in
from anima.text.reading import LIGHT, LIMITS, SINGLE, Read, Tense, ToldLine, canonical, wording

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = Callable[[Sequence[str]], NDArray[np.float32]]  # one row of length one for each text

MEANING = 0.905  # the least cosine of two lines that say the same in other words
CROWD = 40  # neighbours one key may bring; a key with more says little
_RIVALS = 4  # of more values than this, none is the one that holds
_STEADY, _SEVERAL = map(reading.pattern, ("steady", "several"))
Sameness = Literal["exact", "punctuation", "dates", "reworded", "contained", "meaning"]
Tie = tuple[int, int, Sameness, float]  # of two lines that say the same, and how surely


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A line that says what another says, how it is the same, and what shows it. `covered` tells whether the line that
    is kept says all of it, so that nothing is lost when this one goes."""

    line: ToldLine
    how: Sameness
    score: float
    evidence: str
    covered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Lines that say one thing. Kept is the one of the best place, the fullest there, or else the first."""

    keep: ToldLine
    twins: tuple[Twin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two lines that cannot both hold. `newer` is the one of the later day, None when that is not known."""

    one: ToldLine
    other: ToldLine
    why: str
    newer: ToldLine | None


def find_duplicates(seen: Sequence[Read], *, vectors: Vectors | None = None) -> tuple[Group, ...]:
    """Lines that say the same, in groups, in the order of the lines. With `vectors`, lines that say the same in other
    words may be twins, too; only texts that come near are asked for."""
    homes = _Homes(len(seen))
    for same in _equal(seen):
        for other in same[1:]:
            homes.join(same[0], other, _how(seen[same[0]], seen[other]), 1.0)
    # One line of each group so far, if it says enough to be near another.
    firsts = [place for place in range(len(seen)) if homes.first[place] == place and len(seen[place].bag) >= 3]
    for one, other, how, score in _near(seen, firsts, vectors):
        homes.join(one, other, how, score)
    return tuple(_group(members, seen, homes) for _, members in sorted(homes.members.items()))


def find_contradictions(seen: Sequence[Read]) -> tuple[Contradiction, ...]:
    """Pairs of lines of one frame that say different things where only one can hold, or of which one denies the other."""
    whys: dict[tuple[int, int], str] = {}
    for one, other, left, right in _rivals(seen):
        denies = "not" in (left, right)
        why = "one denies what the other says" if denies else f"one says {left}, the other {right}"
        whys.setdefault((min(one, other), max(one, other)), why)
    found = []
    for (one, other), why in sorted(whys.items()):
        pair = seen[one].line, seen[other].line
        found.append(Contradiction(one=pair[0], other=pair[1], why=why, newer=newer_of(*pair)))
    return tuple(found)


def newer_of(one: ToldLine, other: ToldLine) -> ToldLine | None:
    """The one of the later day; None where that is not known."""
    if not one.day or not other.day or one.day == other.day:
        return None
    return one if one.day > other.day else other


# -- the same ----------------------------------------------------------------------------------------------------------


def _equal(seen: Sequence[Read]) -> Iterator[list[int]]:
    """Places of lines with the same words, or the same words that carry meaning, the same numbers and dates."""
    by_words: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, one in enumerate(seen):
        if one.plain:
            by_words[one.plain, one.signs, one.about, one.noted].append(place)
    yield from (places for places in by_words.values() if len(places) > 1)
    by_facts: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for places in by_words.values():
        one = seen[places[0]]
        if len(one.bag) + len(one.numbers) > 1 and one.bag:
            facts = one.bag, one.numbers, one.signs, one.denied
            by_facts[(*facts, tuple(day[-5:] for day in one.dates))].append(places[0])
            if one.stamp and not one.dates:  # "2026-05-03: Ana came" is also "Ana came on 3 May"
                by_facts[(*facts, (one.stamp[-5:],))].append(places[0])
    for places in by_facts.values():  # parted by who acts and by the years of their dates
        parts: list[list[int]] = []
        for place in places[:1000]:
            home = next((part for part in parts[:CROWD] if _same_roles(seen[part[0]], seen[place])), None)
            if home is None:
                parts.append([place])
            else:
                home.append(place)
        yield from (part for part in parts if len(part) > 1)


def _same_roles(one: Read, other: Read) -> bool:
    """Whether nothing but their words keeps two lines apart: they hold at one time, of the same, and the same one acts."""
    if one.names != other.names:
        return False
    if one.is_elsewhere(other):
        return False
    if one.tense is not other.tense and Tense.ANY not in (one.tense, other.tense):
        return False
    if one.noted and other.noted and one.noted != other.noted:
        return False
    noted = _same_days(one.dates or (one.stamp,), other.dates or (other.stamp,))
    if not (noted or _same_days(one.dates, other.dates)):
        return False
    if not reading.SYMMETRIC.isdisjoint(one.bag & other.bag):
        return True
    shared = one.tied.keys() & other.tied.keys()
    if any(one.tied[key].isdisjoint(other.tied[key]) for key in shared):
        return False
    if "of" in shared or len(one.names) < 2 or not one.roles or not other.roles:
        return True
    both = {*one.roles} & {*other.roles}
    in_order = [name for name in one.roles if name in both] == [name for name in other.roles if name in both]
    return in_order and one.roles[:1] == other.roles[:1]


def _same_days(one: Sequence[str], other: Sequence[str]) -> bool:
    """The same days, where a date without a year fits any year."""
    pairs = zip(sorted(one, key=lambda d: d[-5:]), sorted(other, key=lambda d: d[-5:]), strict=False)
    return len(one) == len(other) and all(a[-5:] == b[-5:] and (a == b or 5 in (len(a), len(b))) for a, b in pairs)


def _how(one: Read, other: Read) -> Sameness:
    if one.text == other.text:
        return "exact"
    if wording(one.text) == wording(other.text):
        return "punctuation"
    return "dates" if one.dates and sorted(one.plain) == sorted(other.plain) else "reworded"


def _near(seen: Sequence[Read], places: Sequence[int], vectors: Vectors | None) -> Iterator[Tie]:
    """Pairs of which one says all the other says and little more, or that mean the same in other words."""
    pairs: list[tuple[int, int, bool]] = []
    for one, other in _neighbours(seen, places):
        a, b = seen[one], seen[other]
        if _same_roles(a, b) and ((contained := _is_contained(a, b)) or (vectors and _may_mean_the_same(a, b))):
            pairs.append((one, other, contained))
    asked = sorted({place for *pair, contained in pairs if not contained for place in pair})
    rows = dict(zip(asked, vectors([seen[n].line.text for n in asked]), strict=True)) if vectors and asked else {}
    for one, other, contained in pairs:
        if contained:
            mine, yours = seen[one].bag, seen[other].bag
            how: Sameness = "contained" if mine <= yours or yours <= mine else "reworded"
            yield one, other, how, len(mine & yours) / len(mine | yours)
        elif (cosine := float(rows[one] @ rows[other])) >= MEANING:
            yield one, other, "meaning", cosine


def _is_contained(a: Read, b: Read) -> bool:
    """Whether one says all of the other and at most a quarter more, none of it a limit or somebody else's; or two lines
    differ only in verbs that say little: what serves something, and where it can be reached."""
    extra = a.bag ^ b.bag
    nested = (a.bag <= b.bag or b.bag <= a.bag) and min(len(a.bag), len(b.bag)) >= 4
    if (
        nested
        and len(extra) <= 0.25 * len(a.bag | b.bag)
        and not extra & LIMITS
        and len(a.tied.get("of", ())) == len(b.tied.get("of", ()))
    ):
        return True
    held = len(a.bag & b.bag) + len(a.numbers) + len(a.dates)
    return 0 < len(extra) <= 3 and held >= 3 and bool(a.names or a.numbers) and extra <= LIGHT


def _neighbours(seen: Sequence[Read], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs that share two of their five rarest words, each once, of lines with the same names, numbers and denial. A
    key that many lines share says little: only the latest of them are looked at."""
    counts = Counter(word for place in places for word in seen[place].bag)
    by_pair: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place in places:
        one = seen[place]
        rare = sorted(one.bag, key=lambda word: (counts[word], word))[:5]
        met: set[int] = set()
        for pair in combinations(rare, 2):
            key = (one.names, one.numbers, one.signs, one.denied, min(pair), max(pair))
            met.update(by_pair[key][-CROWD:])
            by_pair[key].append(place)
        yield from ((other, place) for other in sorted(met))


def _may_mean_the_same(a: Read, b: Read) -> bool:
    """Whether two lines may differ in their manner alone, so that their meaning may be asked: one word for another may be
    another value; more may differ when a name or number holds them together and what they share stands in another order.
    """
    differ, shared = a.bag ^ b.bag, a.bag & b.bag
    anchored = bool(a.names or a.numbers) and len(shared) >= max(2, 0.5 * min(len(a.bag), len(b.bag)))
    if not anchored or differ & LIMITS or len(a.bag - b.bag) == len(b.bag - a.bag) == 1:
        return False
    mine, yours = ([root for word in one.plain if (root := canonical(word)) in shared] for one in (a, b))
    return mine != yours


class _Homes:
    """Which group each line belongs to. A line joins a group by its first one, so that no chain leads astray."""

    def __init__(self, number: int) -> None:
        self.first = list(range(number))
        self.why: dict[int, tuple[Sameness, float]] = {}
        self.members: dict[int, list[int]] = {}

    def join(self, one: int, other: int, how: Sameness, score: float) -> None:
        """Takes the other's group into the one's, unless either was taken already by a looser tie."""
        one, other = self.first[one], self.first[other]
        if one == other or (how in ("contained", "meaning") and (one in self.why or other in self.why)):
            return
        for place in self.members.pop(other, [other]):
            self.first[place] = one
            self.members.setdefault(one, [one]).append(place)
            self.why.setdefault(place, (how, score))


def _group(members: Sequence[int], seen: Sequence[Read], homes: _Homes) -> Group:
    keep = min(members, key=lambda place: (seen[place].line.rank, -len(seen[place].bag), place))
    kept, twins = seen[keep], []
    for place in sorted({*members} - {keep}):
        how, score = homes.why.get(place) or homes.why.get(keep) or ("exact", 1.0)
        how = how if how in ("contained", "meaning") else _how(kept, seen[place])
        covered = how != "contained" or seen[place].bag <= kept.bag
        evidence = _evidence(kept, seen[place])
        twins.append(Twin(line=seen[place].line, how=how, score=round(score, 3), evidence=evidence, covered=covered))
    return Group(keep=kept.line, twins=tuple(twins))


def _evidence(one: Read, other: Read) -> str:
    if one.text == other.text:
        return "the same text"
    if one.bag == other.bag:
        told = dict.fromkeys(word for word in one.carrying if not word[0].isdigit())
        return "the same words that carry meaning: " + ", ".join([*told][:8])
    differ: list[str] = []
    for mine, yours in ((one, other), (other, one)):  # as the lines spell them
        spelt = {root: word for word in reversed(mine.plain) if (root := canonical(word)) in mine.bag - yours.bag}
        differ += [*spelt.values()][::-1][:3]
    return f"{len(one.bag & other.bag)} shared words; they differ in: {', '.join(differ)}"


# -- what cannot both hold ---------------------------------------------------------------------------------------------


def _rivals(seen: Sequence[Read]) -> Iterator[tuple[int, int, str, str]]:
    """Lines alike but for what only one of them can be right about, with what each of the two says."""
    frames: dict[tuple[object, ...], dict[str, tuple[int, str]]] = defaultdict(dict)
    for place, one in enumerate(seen):
        for key, value in _slots(one) if len(one.bag) > 1 or one.numbers else ():
            # The first line for a value is the one to rather keep; it is told as that line spells it.
            frames[*key, one.about].setdefault(canonical(value), (place, value))
    for values in frames.values():
        if 2 <= len(values) <= _RIVALS:
            (first, left), *others = values.values()
            for second, right in others:
                one, other = seen[first], seen[second]
                # Both are names, or neither; and nobody else acts.
                alike = (left in one.names) == (right in other.names)
                acting = [
                    role for read, value in ((one, left), (other, right)) for role in read.roles[:1] if role != value
                ]
                if first != second and alike and len({*acting}) < 2:
                    yield first, second, left, right


def _slots(one: Read) -> Iterator[tuple[tuple[object, ...], str]]:
    """The frames of a line, each without what it says where another may say something else: whether it is so, a word that
    has an opposite, and of what there is one at a time a number, a date or a word."""
    if one.tense is Tense.COMING:
        return
    if len(one.bag - LIGHT) > 1:
        yield ("is", one.bag - LIGHT, one.numbers, one.dates), "not" if one.denied else ""
    for word, pair in ((said, pair) for said in one.bag & reading.OPPOSITES.keys() for pair in reading.OPPOSITES[said]):
        if not one.once:
            yield ("opposite", one.bag - pair - LIGHT, pair, one.numbers, one.dates, one.denied), word
    passes = one.once or one.denied or one.tense is Tense.PAST or _SEVERAL.search(one.text)
    if passes or not (one.names or _STEADY.search(one.text)):
        return
    for place, number in enumerate(one.numbers[:4]) if one.bag - LIGHT else ():
        yield ("number", one.bag - LIGHT, one.numbers[:place] + one.numbers[place + 1 :], one.dates), number
    if len(one.dates) == 1 and _STEADY.search(one.text):
        yield ("date", one.bag, one.numbers), one.dates[0]
    for word in _single(one) if len(one.bag) > 2 else ():
        yield ("value", one.bag - {canonical(word)}, one.numbers, one.dates), word


def _single(one: Read) -> set[str]:
    """The words that may be the value of something that has one at a time: where somebody lives, whose boss somebody is."""
    leads = frozenset[str]().union(*(reading.LEAD_IN[verb] for verb in reading.LEAD_IN.keys() & one.bag))
    found = {name for name, lead in one.led.items() if lead in leads}
    if not SINGLE.isdisjoint(one.words):
        # What is somebody's has a name of its own; else the last word may be a value, and in a longer line the last but one.
        carrying = [word for word in one.carrying if not word[0].isdigit()]
        fixed = {*one.roles[:2], *carrying[:1], *one.names}
        found |= {word for word in carrying[-2:] if word not in fixed and word not in SINGLE}
        found |= {*one.roles} - one.tied["of"] if "of" in one.tied else set()
    return found


# -- statements -----------------------------------------------------------------------------------------------------------

_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*\Z")
_NOT_SAID = re.compile(r"\s*(?:[|>]|!\[|\[[^\]]*\]:|<|(?:[-*_]\s*){3,}\Z)")


class Statement(NamedTuple):
    """A line that says something. `under` are the headings above it, from the outermost; `marked` is for some eyes only."""

    number: int
    text: str
    under: tuple[str, ...]
    marked: bool


def statements(text: str) -> Iterator[Statement]:
    """The lines that say something by themselves, in order."""
    if "anima:kept" in text:
        text = outside_blocks(text)
    lines, marks, marked = lines_of(text), markdown.marks_in(text), bytearray(len(text))
    markdown.paint(marked, marks.private, b"\x01")
    markdown.paint(marked, ((start, end) for start, end, _ in marks.shared), b"\x01")
    kinds = _kinds(text)
    at, under = 0, list[tuple[int, str]]()
    for place, (line, kind) in enumerate(zip(lines, kinds, strict=True)):
        if kind == "heading":
            heading = heading_of(line) or (2, line.strip())
            under = [above for above in under if above[0] < heading[0]] + [heading]
        elif kind in ("item", "plain") and len(line) <= 1_000 and _is_alone(lines, kinds, place):
            # What is longer is no note of one fact.
            said = Statement(place + 1, line.strip(), tuple(title for _, title in under), bool(marked[at]))
            yield from [said] if is_strong(said_in(line)) else []
        at += len(line)


def _kinds(text: str) -> list[str]:
    """What each line is: blank, heading, item, plain, hanging (it belongs to the one above), or other."""
    kinds: list[str] = []
    depth = -1  # of the list we are in
    for line, place in markdown.lines_with_place(text):
        kind = "other" if place else _kind(line)
        if kind == "item":  # one that is deeper than its list hangs on the one above it
            indent = len(line) - len(line.lstrip())
            kind, depth = ("hanging", depth) if 0 <= depth < indent else (kind, indent)
        elif kind in ("heading", "plain"):
            depth = -1
        if kind in ("plain", "other") and kinds[-1:] == ["plain"] and _UNDERLINE.match(line):
            kinds[-1], kind = "heading", "other"
        kinds.append(kind)
    return kinds


def _kind(line: str) -> str:
    if not line.strip():
        return "blank"
    if heading_of(line):
        return "heading"
    item = bullet_of(line, dots=True)
    if item and len(item.indent.expandtabs(4)) <= 3:
        return "other" if item.box or "<!--" in line else "item"
    if line[0] in " \t":
        return "hanging"
    return "other" if _NOT_SAID.match(line) or "<!--" in line else "plain"


def _is_alone(lines: list[str], kinds: list[str], place: int) -> bool:
    """Whether a line hangs together with no other. Prose that is wrapped goes on in small letters."""
    kind, after = kinds[place], kinds[place + 1 : place + 3]
    if next((each for each in after if each != "blank"), "") == "hanging":
        return False
    if after[:1] == ["plain"] and (kind == "item" or lines[place + 1][:1].islower()):
        return False
    before = kinds[place - 1] if place else "blank"
    return kind == "item" or before in ("blank", "heading") or (before == "plain" and not lines[place][:1].islower())
