"""Clashes: pairs of lines that cannot both hold.

Promise: each with the reason; of what there may be several of (likes, friends, visits), and of what happened, nothing is
said. Time grows with the number of lines. Not here: which of the two is right.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import combinations

from anima.upkeep.hygiene.lines import Contradiction, ToldLine
from anima.upkeep.hygiene.reading import Read, as_read
from anima.upkeep.hygiene.words import LIGHT, LIMITS, OPPOSITES, SINGLE, canonical

_STEADY = re.compile(
    r"\b(?:is|are|was born|lives?|resides?|works?|uses?|called|named|costs?|prefers?|drives?|favou?rite|belongs?|starts?|begins?|"
    r"ends?|expires?|due|closes?|opens?|leaves?|weighs?|runs?|serves?|listens?|leads?|"
    r"owns?|performed|operated|born|written|changed|vive|trabaja|usa|cuesta|se llama|es|tiene|caduca|nació|ist|wohnt|arbeitet|"
    r"kostet|heißt|hat|läuft|endet|bekommt|geboren|every|each|daily|nightly|weekly|monthly|cada|jeden|jede|habite|travaille|coûte)\b",
    re.IGNORECASE,
)
_LABEL = re.compile(r"[^:=–—]{2,60}\s?(?:[:=]|[–—] )\s?\S")
_SEVERAL = re.compile(
    r"\b(?:allerg|speak|dogs?\b|cats?\b|pets?\b|child|kids?\b|sons?\b|daughter|brother|sister|friend|hobb|also|another|second|"
    r"like|enjoy|love|visit|met\b|read\b|watch|bought|ate\b|member)",
    re.IGNORECASE,
)
_LASTING = frozenset(["A born B", "A written in B", "A graduated B", "A bought B for V", "A started job B"])
_SEVERAL_OF = re.compile(
    r"\b(?:child(?:ren)?|kids?|sons?|daughters?|brothers?|sisters?|siblings?|cousins?|aunts?|uncles?|friends?|hobby|hobbies|also|"
    r"another|second|other|one of|volunt\w+|freelances?|part-time|sometimes|often)\b",
    re.IGNORECASE,
)
_RIVALS = 4  # of more values than this, none is the one that holds
_NEAR = 8  # denials that one pair of words brings


def find_contradictions(lines: Sequence[ToldLine] | Sequence[Read]) -> tuple[Contradiction, ...]:
    """Pairs of lines of one frame that say different things where only one can hold, or of which one denies the other."""
    seen = as_read(lines)
    found: dict[tuple[int, int], str] = {}
    for one, other in _denials(seen):
        found.setdefault((min(one, other), max(one, other)), "one denies what the other says")
    for one, other, left, right in (*_claims(seen), *_opposites(seen), *_values(seen)):
        found.setdefault((min(one, other), max(one, other)), f"one says {left}, the other {right}")
    return tuple(_contradiction(seen[one].line, seen[other].line, why) for (one, other), why in sorted(found.items()))


# -- denials ---------------------------------------------------------------------------------------------------------------


def _denials(seen: Sequence[Read]) -> Iterator[tuple[int, int]]:
    """A line that denies, and the latest that says just that, or a little more than that."""
    by_pair: dict[tuple[str, str], list[int]] = defaultdict(list)
    for place, one in enumerate(seen):
        if one.denied and len(one.bag) > 1:
            for pair in combinations(sorted(one.bag)[:6], 2):
                by_pair[pair].append(place)
    met: dict[int, int] = {}
    exact = (
        {(one.bag, one.about): place for place, one in enumerate(seen) if not one.denied and len(one.bag) > 1}
        if by_pair
        else {}
    )
    for place, one in enumerate(seen if by_pair else ()):
        same = exact.get((one.bag, one.about)) if one.denied else None
        if same is not None and _is_denied(seen[same], one):
            met[place] = same
    for place, one in enumerate(seen if by_pair else ()):
        if not one.denied and len(one.bag) > 1:
            near = {other for pair in combinations(sorted(one.bag)[:12], 2) for other in by_pair.get(pair, ())[-_NEAR:]}
            met |= {other: place for other in near if _is_denied(one, seen[other])}
    yield from met.items()


def _is_denied(said: Read, denied: Read) -> bool:
    fewer, more = sorted((said, denied), key=lambda one: len(one.bag))
    extra = more.bag - fewer.bag
    if not fewer.bag <= more.bag or len(extra) > (2 if len(fewer.bag) > 2 else 1) or extra & LIMITS:
        return False
    if not fewer.names <= more.names or said.about != denied.about or said.roles[:1] != denied.roles[:1]:
        return False
    return set(fewer.numbers) <= set(more.numbers) and set(fewer.dates) <= set(more.dates)


# -- claims ----------------------------------------------------------------------------------------------------------------


def _claims(seen: Sequence[Read]) -> Iterator[tuple[int, int, str, str]]:
    """Lines that say of one thing what it has only one of, each another: where somebody lives, what a port is."""
    by_key: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, one in enumerate(seen):
        if one.claim and not one.denied and _holds_now(one) and not _SEVERAL_OF.search(one.text):
            by_key[one.claim.kind, one.claim.of, one.about].append(place)
    for places in by_key.values():
        firsts = list({_said(seen[place]): place for place in reversed(places)}.values())[::-1]
        if 2 <= len(firsts) <= _RIVALS:
            for first, second in combinations(firsts, 2):
                if told := _other_value(seen[first], seen[second]):
                    yield first, second, *told


def _holds_now(one: Read) -> bool:
    """Whether a line tells what is, not what was or may come; a birth is past and holds."""
    assert one.claim
    if one.claim.kind == "B owns A" and not _is_definite(one):
        return False
    lasting = one.claim.kind in _LASTING or not {"named", "called"}.isdisjoint(one.plain)
    return not one.mood[0] and not one.once and (lasting or not (one.mood[1] or one.past or one.happened))


def _is_definite(one: Read) -> bool:
    """Whether it is told whose one certain thing is: two may own a camera each, and people belong to several things."""
    if "belongs" in one.plain or "belong" in one.plain:
        return one.plain[0] in ("the", "this", "our", "my")
    return {"a", "an"}.isdisjoint(one.plain)


def _said(one: Read) -> tuple[object, ...]:
    assert one.claim is not None
    return frozenset(map(canonical, one.claim.value)), one.dates


def _other_value(one: Read, other: Read) -> tuple[str, str] | None:
    """The values of two claims, if they are of one kind and neither says the other's: both dates, numbers, names or words."""
    assert one.claim and other.claim
    left, right = one.claim.value, other.claim.value
    if one.dates and other.dates:
        same = any(a[-5:] == b[-5:] and (a == b or min(len(a), len(b)) == 5) for a in one.dates for b in other.dates)
        return None if same or set(left) ^ set(right) else (one.dates[0], other.dates[0])
    if not left or not right or one.dates or other.dates:
        return None
    if (counts := _counts(left, right)) is not None:
        return counts
    mine, theirs = {*map(canonical, left)}, {*map(canonical, right)}
    if canonical(left[0]) in theirs or canonical(right[0]) in mine:
        return (" ".join(left), " ".join(right)) if len(left) == len(right) > 1 and len(mine ^ theirs) == 2 else None
    alike = left[0][0].isdigit() == right[0][0].isdigit() and (
        one.claim.proper == other.claim.proper or left[0] == one.plain[0] or right[0] == other.plain[0]
    )
    return (left[0], right[0]) if alike else None


def _counts(left: Sequence[str], right: Sequence[str]) -> tuple[str, str] | None:
    """The numbers of two values that differ in them alone."""
    numbers = [[word for word in value if word[0].isdigit()] for value in (left, right)]
    words = [{canonical(word) for word in value if not word[0].isdigit()} for value in (left, right)]
    if (
        not all(numbers)
        or not {*numbers[0]}.isdisjoint(numbers[1])
        or (words[0] != words[1] and len(words[0] | words[1]) > 4)
    ):
        return None
    return " ".join(numbers[0]), " ".join(numbers[1])


def _opposites(seen: Sequence[Read]) -> Iterator[tuple[int, int, str, str]]:
    """Lines alike but for a word and its opposite."""
    frames: dict[tuple[object, ...], dict[str, int]] = defaultdict(dict)
    for place, one in enumerate(seen):
        if not one.once and not one.mood[0]:
            for word, pair in ((said, pair) for said in one.bag & OPPOSITES.keys() for pair in OPPOSITES[said]):
                key = (one.bag - pair - LIGHT, pair, one.numbers, one.dates, one.denied, one.about)
                frames[key].setdefault(word, place)
    for found in frames.values():
        if len(found) == 2:
            (left, first), (right, second) = found.items()
            yield first, second, left, right


# -- values ----------------------------------------------------------------------------------------------------------------


def _values(seen: Sequence[Read]) -> Iterator[tuple[int, int, str, str]]:
    """Lines alike but for one number, one date or one word, of something that has only one at a time."""
    frames: dict[tuple[object, ...], dict[str, tuple[int, str]]] = defaultdict(dict)
    for place, one in enumerate(seen):
        if (one.numbers or one.dates or not SINGLE.isdisjoint(one.bag)) and _is_steady(one):
            for key, value in _slots(one):
                # The first line for a value is the one to rather keep; it is told as that line spells it.
                frames[*key, one.about, one.denied].setdefault(canonical(value), (place, value))
    for values in frames.values():
        if 2 <= len(values) <= _RIVALS:
            (first, left), *others = values.values()
            for second, right in others:
                if first != second and _are_rivals(seen[first], seen[second], left, right):
                    yield first, second, left, right


def _is_steady(one: Read) -> bool:
    if one.once or one.happened or one.denied or any(one.mood) or _SEVERAL.search(one.text):
        return False
    return bool(one.names or _STEADY.search(one.text) or _LABEL.match(one.text))


def _slots(one: Read) -> Iterator[tuple[tuple[object, ...], str]]:
    """The frame of a line without one of its numbers, its date, or one word that is not the one it is about."""
    bare = one.bag - LIGHT
    if one.numbers and bare:
        for place, number in enumerate(one.numbers[:4]):
            rest = one.numbers[:place] + one.numbers[place + 1 :]
            yield ("number", bare, rest, one.dates), number
    if len(one.dates) == 1 and len(one.bag) > 1 and (_STEADY.search(one.text) or _LABEL.match(one.text)):
        yield ("date", one.bag, one.numbers), one.dates[0]
    if len(one.bag) > 2 and not one.turned and not SINGLE.isdisjoint(one.bag):
        last = next((word for word in reversed(one.plain) if canonical(word) in one.bag), "")
        for word in _movable(one, last):
            if word not in one.names and canonical(word) not in SINGLE:
                yield ("value", one.bag - {canonical(word)}, one.numbers, one.dates), word


def _movable(one: Read, last: str) -> Iterator[str]:
    """The words that may be a value: the last one, and in a longer line names and the last but one."""
    carrying = [word for word in one.plain if canonical(word) in one.bag]
    chosen = [last, *carrying[-2:], *(word for word in carrying[1:] if word in one.names)]
    yield from (word for word in dict.fromkeys(chosen) if word and word not in one.roles[:2] and word != carrying[0])


def _are_rivals(one: Read, other: Read, left: str, right: str) -> bool:
    """Whether two values are of one kind: both names, or neither; and nobody else acts."""
    if (left in one.names) != (right in other.names):
        return False
    return [r for r in one.roles[:1] if r != left] == [r for r in other.roles[:1] if r != right]


def _contradiction(one: ToldLine, other: ToldLine, why: str) -> Contradiction:
    newer = None
    if one.day and other.day and one.day != other.day:
        newer = max(one, other, key=lambda line: line.day or date.min)
    return Contradiction(one=one, other=other, why=why, newer=newer)
