"""Twins: which lines say the same, in groups with the evidence.

Promise: two lines are twins only with the same numbers, dates and denials, the same names, and the same one acting; where
that cannot be told they are not. Time grows with the number of lines, not with its square. Pure.
Not here: how a line is read (reading), what becomes of a twin (the package's own front).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anima.upkeep.hygiene.lines import Group, Sameness, ToldLine, Twin
from anima.upkeep.hygiene.reading import WORD, Read, as_read
from anima.upkeep.hygiene.words import DEEDS, IS, LIGHT, LIMITS, NEGATIONS, SMALL, SYMMETRIC, canonical

if TYPE_CHECKING:
    from anima.upkeep.hygiene.lines import Vectors

MEANING = 0.905  # the least cosine of two lines that say the same in other words
CROWD = 40  # neighbours one key may bring; a key with more says little


def find_duplicates(lines: Sequence[ToldLine] | Sequence[Read], *, vectors: Vectors | None = None) -> tuple[Group, ...]:
    """Lines that say the same, in groups, in the order of the lines.

    With `vectors`, lines that say the same in other words may be twins, too; only texts that come near are asked for.
    """
    seen = as_read(lines)
    homes = _Homes(len(seen))
    for same in _equal(seen):
        for other in same[1:]:
            homes.join(same[0], other, _how(seen[same[0]], seen[other]), 1.0)
    for one, other, how, score in _near(seen, _firsts(seen, homes), vectors):
        homes.join(one, other, how, score)
    return tuple(_group(members, seen, homes) for members in homes.groups())


def _equal(seen: Sequence[Read]) -> Iterator[list[int]]:
    """Places of lines with the same words, or the same words that carry meaning, the same numbers and dates."""
    by_words: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, one in enumerate(seen):
        if one.plain:
            by_words[one.plain, one.about, one.noted].append(place)
    yield from (places for places in by_words.values() if len(places) > 1)
    by_facts: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for places in by_words.values():
        one = seen[places[0]]
        if len(one.bag) + len(one.numbers) > 1 and one.bag:
            by_facts[(*one.facts, tuple(day[-5:] for day in one.dates))].append(places[0])
            if one.stamp and not one.dates:  # "2026-05-03: Ana came" is also "Ana came on 3 May"
                by_facts[(*one.facts, (one.stamp[-5:],))].append(places[0])
    for places in by_facts.values():
        yield from _agreeing(places, seen)


def _agreeing(places: Sequence[int], seen: Sequence[Read]) -> Iterator[list[int]]:
    """Lines of the same words, parted by who acts and by the years of their dates."""
    parts: list[list[int]] = []
    for place in places[:1000]:
        home = next((part for part in parts[:CROWD] if _same_roles(seen[part[0]], seen[place])), None)
        if home is None:
            parts.append([place])
        else:
            home.append(place)
    yield from (part for part in parts if len(part) > 1)


def _same_roles(one: Read, other: Read) -> bool:
    if one.names != other.names or not _same_about(one, other) or not _same_mood(one, other):
        return False
    if one.noted and other.noted and one.noted != other.noted:
        return False
    noted = _same_days(one.dates or (one.stamp,), other.dates or (other.stamp,))
    if not (noted or _same_days(one.dates, other.dates)):
        return False
    if one.whence & other.whither or one.whither & other.whence or not _same_order(one, other):
        return False
    if not SYMMETRIC.isdisjoint(one.bag & other.bag):
        return True
    if one.claim and other.claim and one.claim.of == other.claim.of and {*one.claim.value} == {*other.claim.value}:
        return True
    if one.owners and other.owners:
        return not one.owners.isdisjoint(other.owners)
    if one.passive != other.passive or len(one.names) < 2 or not one.roles or not other.roles:
        return True
    shared = {*one.roles} & {*other.roles}
    in_order = [name for name in one.roles if name in shared] == [name for name in other.roles if name in shared]
    return in_order and one.roles[:1] == other.roles[:1]


def _same_order(one: Read, other: Read) -> bool:
    """Whether what comes then, what is left for something better and what is denied is the same in both."""
    for mine, theirs in zip(one.after, other.after, strict=True):
        if mine and theirs and mine.isdisjoint(theirs) and (mine & other.bag or theirs & one.bag):
            return False
    return True


def _same_mood(one: Read, other: Read) -> bool:
    """Whether both tell what is, what was, or what may come; and count the same things."""
    if one.claim and other.claim and one.claim.kind == other.claim.kind == "A born B":
        return True  # a birth is past, and holds
    if one.mood[0] != other.mood[0] or (one.mood[1] and _is_now(other)) or (other.mood[1] and _is_now(one)):
        return False
    for a, b in ((one, other), (other, one)):
        if a.past and not b.mood[1] and not b.happened and (told := a.past & b.bag) and told - _in_past(b):
            return False
    if not one.counted or not other.counted:
        return True
    after = dict(other.counted)
    counts = [(thing, after[number]) for number, thing in one.counted if thing and after.get(number)]
    return len(counts) < 2 or any(thing & there for thing, there in counts)


def _is_now(one: Read) -> bool:
    return not one.mood[1] and not IS.isdisjoint(one.plain) and not one.past


def _in_past(one: Read) -> frozenset[str]:
    """What a line has as a past or a participle, so that it agrees with a past elsewhere."""
    return frozenset(canonical(word) for word in one.plain if word.endswith(("ed", "en")) or word in DEEDS)


def _same_about(one: Read, other: Read) -> bool:
    """Whether two lines can be about the same, as their headings tell. One without a heading may be about anything."""
    if one.about == other.about:
        return True
    return not (one.about and other.about) and one.speaks_for_itself and other.speaks_for_itself


def _same_days(one: Sequence[str], other: Sequence[str]) -> bool:
    """The same days, where a date without a year fits any year."""
    if len(one) != len(other):
        return False
    pairs = zip(sorted(one, key=lambda d: d[-5:]), sorted(other, key=lambda d: d[-5:]), strict=True)
    return all(a == b or (a[-5:] == b[-5:] and min(len(a), len(b)) == 5) for a, b in pairs)


def _how(one: Read, other: Read) -> Sameness:
    if one.text == other.text:
        return "exact"
    if [word for word in one.plain if word not in one.dates] == [
        word for word in other.plain if word not in other.dates
    ]:
        return "dates" if one.dates and _without_dates(one) != _without_dates(other) else "punctuation"
    return "dates" if one.dates and sorted(one.plain) == sorted(other.plain) else "reworded"


def _without_dates(one: Read) -> list[str]:
    return WORD.findall(one.text.casefold())


def _firsts(seen: Sequence[Read], homes: _Homes) -> list[int]:
    """One line of each group so far, if it says enough to be near another."""
    return [place for place in range(len(seen)) if homes.of(place) == place and len(seen[place].bag) >= 3]


def _near(
    seen: Sequence[Read], places: Sequence[int], vectors: Vectors | None
) -> Iterator[tuple[int, int, Sameness, float]]:
    """Pairs of which one says all the other says and little more, or that mean the same in other words."""
    habits = _habits(seen, places) if vectors is not None else None
    pairs: list[tuple[int, int, bool]] = []
    for one, other in _neighbours(seen, places):
        a, b = seen[one], seen[other]
        if not _same_roles(a, b):
            continue
        if (contained := _is_contained(a, b) or _is_light(a, b)) or (habits is not None and habits.allow(a, b)):
            pairs.append((one, other, contained))
    cosines = _cosines(seen, [pair[:2] for pair in pairs if not pair[2]], vectors)
    for one, other, contained in pairs:
        if contained:
            a, b = seen[one], seen[other]
            how: Sameness = "contained" if a.bag <= b.bag or b.bag <= a.bag else "reworded"
            yield one, other, how, len(a.bag & b.bag) / len(a.bag | b.bag)
        elif (cosine := cosines[one, other]) >= MEANING:
            yield one, other, "meaning", cosine


def _cosines(
    seen: Sequence[Read], pairs: Sequence[tuple[int, int]], vectors: Vectors | None
) -> dict[tuple[int, int], float]:
    if vectors is None or not pairs:
        return {}
    places = sorted({place for pair in pairs for place in pair})
    rows = dict(zip(places, vectors([seen[place].line.text for place in places]), strict=True))
    return {(one, other): float(rows[one] @ rows[other]) for one, other in pairs}


def _is_contained(a: Read, b: Read) -> bool:
    """Whether one says all of the other and at most a quarter more, none of it a limit or somebody else's."""
    extra = a.bag ^ b.bag
    nested = a.bag <= b.bag or b.bag <= a.bag
    return (
        nested
        and min(len(a.bag), len(b.bag)) >= 4
        and len(extra) <= 0.25 * len(a.bag | b.bag)
        and not extra & LIMITS
        and a.owned == b.owned
    )


def _is_light(a: Read, b: Read) -> bool:
    """Whether two lines differ only in verbs that say little: what serves something, and where it can be reached."""
    differing = a.bag ^ b.bag
    held = len(a.bag & b.bag) + len(a.numbers) + len(a.dates)
    return 0 < len(differing) <= 3 and held >= 3 and bool(a.names or a.numbers) and differing <= LIGHT


def _neighbours(seen: Sequence[Read], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs that share two of their five rarest words, each once, of lines with the same names, numbers and denial.

    A key that many lines share says little: only the latest of them are looked at.
    """
    counts = Counter(word for place in places for word in seen[place].bag)
    by_pair: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place in places:
        one = seen[place]
        same = (one.names, one.numbers, one.denied)
        rare = sorted(one.bag, key=lambda word: (counts[word], word))[:5]
        met: set[int] = set()
        for number, word in enumerate(rare):
            for second in rare[number + 1 :]:
                key = (*same, word, second) if word < second else (*same, second, word)
                met.update(by_pair[key][-CROWD:])
                by_pair[key].append(place)
        yield from ((other, place) for other in sorted(met))


@dataclass(frozen=True, slots=True)
class _Habits:
    """How this home speaks: pairs of words that stand for each other, and words that are values."""

    pairs: frozenset[frozenset[str]]
    values: frozenset[str]

    def allow(self, a: Read, b: Read) -> bool:
        """Whether two lines differ in their manner alone, so that their meaning may be asked.

        One word for another is a manner only where the home has the habit; else it may be another value. More words may
        differ when a name or number holds the lines together and what they share stands in another order.
        """
        more, less = a.bag - b.bag, b.bag - a.bag
        if len(more) == len(less) == 1:
            return more | less in self.pairs
        differing, shared = more | less, a.bag & b.bag
        anchored = bool(a.names or a.numbers) and len(shared) >= max(2, 0.5 * min(len(a.bag), len(b.bag)))
        return anchored and not differing & (self.values | LIMITS) and _order(a, shared) != _order(b, shared)


def _order(one: Read, shared: frozenset[str]) -> list[str]:
    return [root for word in one.plain if (root := canonical(word)) in shared]


def _habits(seen: Sequence[Read], places: Sequence[int]) -> _Habits:
    """Words that change places in several frames, and hardly with any other, are a habit; with many, they are values."""
    frames: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for place in places:
        one = seen[place]
        whole = sum(map(hash, one.bag))  # less one word's: the same for all that have the rest, whatever the order
        for word in one.bag - one.names:
            frames[whole - hash(word), len(one.bag), one.numbers, one.dates].add(word)
    pairs = Counter(frozenset(words) for words in frames.values() if len(words) == 2)
    partners: dict[str, set[str]] = defaultdict(set)
    for words in frames.values():
        for word in words if 1 < len(words) < CROWD else ():
            partners[word] |= words - {word}
    habit = frozenset(pair for pair, count in pairs.items() if count >= 3 and all(len(partners[w]) < 3 for w in pair))
    return _Habits(habit, frozenset(word for word, others in partners.items() if len(others) >= 3))


class _Homes:
    """Which group each line belongs to. A line joins a group by its first one, so that no chain leads astray."""

    def __init__(self, number: int) -> None:
        self._first = list(range(number))
        self.why: dict[int, tuple[Sameness, float]] = {}
        self._members: dict[int, list[int]] = {}

    def of(self, place: int) -> int:
        return self._first[place]

    def join(self, one: int, other: int, how: Sameness, score: float) -> None:
        """Takes the other's group into the one's, unless either was taken already by a looser tie."""
        one, other = self._first[one], self._first[other]
        if one == other or (how in ("contained", "meaning") and (one in self.why or other in self.why)):
            return
        for place in self._members.pop(other, [other]):
            self._first[place] = one
            self._members.setdefault(one, [one]).append(place)
            self.why.setdefault(place, (how, score))

    def groups(self) -> list[list[int]]:
        return [members for _, members in sorted(self._members.items())]


def _group(members: Sequence[int], seen: Sequence[Read], homes: _Homes) -> Group:
    keep = min(members, key=lambda place: _worth(seen[place], place))
    twins = []
    for place in sorted(members):
        if place != keep:
            loose = homes.why.get(place) or homes.why.get(keep) or ("exact", 1.0)
            how = loose[0] if loose[0] in ("contained", "meaning") else _how(seen[keep], seen[place])
            twins.append(
                Twin(
                    line=seen[place].line,
                    how=how,
                    score=round(loose[1], 3),
                    evidence=_evidence(seen[keep], seen[place]),
                    covered=how != "contained" or seen[place].bag <= seen[keep].bag,
                )
            )
    return Group(keep=seen[keep].line, twins=tuple(twins))


def _worth(one: Read, place: int) -> tuple[int, int, int]:
    return one.line.rank, -len(one.bag), place


def _evidence(one: Read, other: Read) -> str:
    if one.text == other.text:
        return "the same text"
    if one.bag == other.bag:
        carrying = [word for word in one.plain if word not in SMALL and word not in NEGATIONS and not word[0].isdigit()]
        return "the same words that carry meaning: " + ", ".join(list(dict.fromkeys(carrying))[:8])
    differ = ", ".join((*_spelt(one, one.bag - other.bag, 3), *_spelt(other, other.bag - one.bag, 3)))
    return f"{len(one.bag & other.bag)} shared words; they differ in: {differ}"


def _spelt(one: Read, roots: frozenset[str], most: int) -> list[str]:
    """The words of a line that have these roots, as it spells them."""
    return list({root: word for word in reversed(one.plain) if (root := canonical(word)) in roots}.values())[::-1][
        :most
    ]
