"""Two lines compared: which say the same, in groups with the evidence, and which cannot both hold.

Promise: two lines are twins only with the same numbers, dates and denials, the same names, and the same one acting; where
that cannot be told they are not. Of what there may be several of (likes, friends, visits), and of what happened, nothing
contradicts anything. Time grows with the number of lines, not with its square. Pure.
Not here: how a line is read (reading), what becomes of a twin (the package's own front), which of two is right.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

from anima.upkeep.hygiene.lines import Contradiction, Group, Sameness, ToldLine, Twin
from anima.upkeep.hygiene.reading import WORD, Read, as_read
from anima.upkeep.hygiene.words import (
    DEEDS,
    IS,
    LIGHT,
    LIMITS,
    NEGATIONS,
    OPPOSITES,
    SINGLE,
    SMALL,
    SYMMETRIC,
    canonical,
    pattern,
)

if TYPE_CHECKING:
    from anima.upkeep.hygiene.lines import Vectors

MEANING = 0.905  # the least cosine of two lines that say the same in other words
CROWD = 40  # neighbours one key may bring; a key with more says little
_RIVALS = 4  # of more values than this, none is the one that holds
_NEAR = 8  # denials that one pair of words brings
_STEADY, _SEVERAL, _SEVERAL_OF = map(pattern, ("steady", "several", "several_of"))
_LASTING = frozenset(["A born B", "A written in B", "A graduated B", "A bought B for V", "A started job B"])


def find_duplicates(lines: Sequence[ToldLine] | Sequence[Read], *, vectors: Vectors | None = None) -> tuple[Group, ...]:
    """Lines that say the same, in groups, in the order of the lines.

    With `vectors`, lines that say the same in other words may be twins, too; only texts that come near are asked for.
    """
    seen = as_read(lines)
    homes = _Homes(len(seen))
    for same in _equal(seen):
        for other in same[1:]:
            homes.join(same[0], other, _how(seen[same[0]], seen[other]), 1.0)
    # One line of each group so far, if it says enough to be near another.
    firsts = [place for place in range(len(seen)) if homes.first[place] == place and len(seen[place].bag) >= 3]
    for one, other, how, score in _near(seen, firsts, vectors):
        homes.join(one, other, how, score)
    return tuple(_group(members, seen, homes) for _, members in sorted(homes.members.items()))


def find_contradictions(lines: Sequence[ToldLine] | Sequence[Read]) -> tuple[Contradiction, ...]:
    """Pairs of lines of one frame that say different things where only one can hold, or of which one denies the other."""
    seen = as_read(lines)
    whys: dict[tuple[int, int], str] = {}
    for one, other in _denials(seen):
        whys.setdefault((min(one, other), max(one, other)), "one denies what the other says")
    for one, other, left, right in (*_claims(seen), *_opposites(seen), *_values(seen)):
        whys.setdefault((min(one, other), max(one, other)), f"one says {left}, the other {right}")
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
            by_words[one.plain, one.about, one.noted].append(place)
    yield from (places for places in by_words.values() if len(places) > 1)
    by_facts: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for places in by_words.values():
        one = seen[places[0]]
        if len(one.bag) + len(one.numbers) > 1 and one.bag:
            facts = one.bag, one.numbers, one.denied
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
    if one.names != other.names or not _same_about(one, other) or not _same_mood(one, other):
        return False
    if one.noted and other.noted and one.noted != other.noted:
        return False
    noted = _same_days(one.dates or (one.stamp,), other.dates or (other.stamp,))
    if not (noted or _same_days(one.dates, other.dates)):
        return False
    if one.ways[0] & other.ways[1] or one.ways[1] & other.ways[0]:
        return False
    for mine, theirs in zip(one.after, other.after, strict=True):  # what comes then, or is left for something better
        if mine and theirs and mine.isdisjoint(theirs) and (mine & other.bag or theirs & one.bag):
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


def _same_mood(one: Read, other: Read) -> bool:
    """Whether both tell what is, what was, or what may come; and count the same things."""
    if one.claim and other.claim and one.claim.kind == other.claim.kind == "A born B":
        return True  # a birth is past, and holds
    if one.mood[0] != other.mood[0]:
        return False
    for a, b in ((one, other), (other, one)):
        if a.mood[1] and not b.mood[1] and not IS.isdisjoint(b.plain) and not b.past:
            return False
        if a.past and not b.mood[1] and not b.happened and (told := a.past & b.bag):
            # What a line has as a past or a participle agrees with a past elsewhere.
            in_past = (canonical(word) for word in b.plain if word.endswith(("ed", "en")) or word in DEEDS)
            if not told <= {*in_past}:
                return False
    counts = [(thing, other.counted[number]) for number, thing in one.counted.items() if other.counted.get(number)]
    counts = [(thing, there) for thing, there in counts if thing]
    return len(counts) < 2 or any(thing & there for thing, there in counts)


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
    return all(_same_day(a, b) for a, b in pairs)


def _same_day(one: str, other: str) -> bool:
    return one == other or (one[-5:] == other[-5:] and min(len(one), len(other)) == 5)


def _how(one: Read, other: Read) -> Sameness:
    if one.text == other.text:
        return "exact"
    if [word for word in one.plain if word not in one.dates] == [w for w in other.plain if w not in other.dates]:
        moved = one.dates and WORD.findall(one.text.casefold()) != WORD.findall(other.text.casefold())
        return "dates" if moved else "punctuation"
    return "dates" if one.dates and sorted(one.plain) == sorted(other.plain) else "reworded"


def _near(
    seen: Sequence[Read], places: Sequence[int], vectors: Vectors | None
) -> Iterator[tuple[int, int, Sameness, float]]:
    """Pairs of which one says all the other says and little more, or that mean the same in other words."""
    habits = _Habits.of(seen, places) if vectors is not None else None
    pairs: list[tuple[int, int, bool]] = []
    for one, other in _neighbours(seen, places):
        a, b = seen[one], seen[other]
        if _same_roles(a, b) and ((contained := _is_contained(a, b)) or (habits is not None and habits.allow(a, b))):
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
    if nested and len(extra) <= 0.25 * len(a.bag | b.bag) and not extra & LIMITS and a.owned == b.owned:
        return True
    held = len(a.bag & b.bag) + len(a.numbers) + len(a.dates)
    return 0 < len(extra) <= 3 and held >= 3 and bool(a.names or a.numbers) and extra <= LIGHT


def _neighbours(seen: Sequence[Read], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs that share two of their five rarest words, each once, of lines with the same names, numbers and denial.

    A key that many lines share says little: only the latest of them are looked at.
    """
    counts = Counter(word for place in places for word in seen[place].bag)
    by_pair: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place in places:
        one = seen[place]
        rare = sorted(one.bag, key=lambda word: (counts[word], word))[:5]
        met: set[int] = set()
        for pair in combinations(rare, 2):
            key = (one.names, one.numbers, one.denied, min(pair), max(pair))
            met.update(by_pair[key][-CROWD:])
            by_pair[key].append(place)
        yield from ((other, place) for other in sorted(met))


class _Habits(NamedTuple):
    """How this home speaks: pairs of words that stand for each other, and words that are values."""

    pairs: frozenset[frozenset[str]]
    values: frozenset[str]

    def allow(self, a: Read, b: Read) -> bool:
        """Whether two lines differ in their manner alone, so that their meaning may be asked.

        One word for another is a manner only where the home has the habit; else it may be another value. More words may
        differ when a name or number holds the lines together and what they share stands in another order.
        """
        more, less, shared = a.bag - b.bag, b.bag - a.bag, a.bag & b.bag
        if len(more) == len(less) == 1:
            return more | less in self.pairs
        anchored = bool(a.names or a.numbers) and len(shared) >= max(2, 0.5 * min(len(a.bag), len(b.bag)))
        if not anchored or (more | less) & (self.values | LIMITS):
            return False
        mine, yours = ([root for word in one.plain if (root := canonical(word)) in shared] for one in (a, b))
        return mine != yours

    @classmethod
    def of(cls, seen: Sequence[Read], places: Sequence[int]) -> _Habits:
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
        habit = (pair for pair, count in pairs.items() if count >= 3 and all(len(partners[w]) < 3 for w in pair))
        return cls(frozenset(habit), frozenset(word for word, others in partners.items() if len(others) >= 3))


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
        carrying = [word for word in one.plain if word not in SMALL and word not in NEGATIONS and not word[0].isdigit()]
        return "the same words that carry meaning: " + ", ".join(list(dict.fromkeys(carrying))[:8])
    differ: list[str] = []
    for mine, yours in ((one, other), (other, one)):  # as the lines spell them
        spelt = {root: word for word in reversed(mine.plain) if (root := canonical(word)) in mine.bag - yours.bag}
        differ += [*spelt.values()][::-1][:3]
    return f"{len(one.bag & other.bag)} shared words; they differ in: {', '.join(differ)}"


# -- what cannot both hold ---------------------------------------------------------------------------------------------


def _denials(seen: Sequence[Read]) -> Iterator[tuple[int, int]]:
    """A line that denies, and the latest that says just that, or a little more than that."""
    by_pair: dict[tuple[str, str], list[int]] = defaultdict(list)
    denying = [place for place, one in enumerate(seen) if one.denied and len(one.bag) > 1]
    saying = [place for place, one in enumerate(seen) if not one.denied and len(one.bag) > 1] if denying else []
    exact = {(seen[place].bag, seen[place].about): place for place in saying}
    met: dict[int, int] = {}
    for place in denying:
        one = seen[place]
        for pair in combinations(sorted(one.bag)[:6], 2):
            by_pair[pair].append(place)
        same = exact.get((one.bag, one.about))
        if same is not None and _is_denied(seen[same], one):
            met[place] = same
    for place in saying:
        one = seen[place]
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


def _claims(seen: Sequence[Read]) -> Iterator[tuple[int, int, str, str]]:
    """Lines that say of one thing what it has only one of, each another: where somebody lives, what a port is."""
    by_key: dict[tuple[object, ...], dict[object, int]] = defaultdict(dict)
    for place, one in enumerate(seen):
        if (claim := one.claim) and not one.denied and _holds_now(one, claim.kind) and not _SEVERAL_OF.search(one.text):
            said = frozenset(map(canonical, claim.value)), one.dates
            by_key[claim.kind, claim.of, one.about].setdefault(said, place)
    for firsts in by_key.values():
        for first, second in combinations(firsts.values(), 2) if len(firsts) <= _RIVALS else ():
            if told := _other_value(seen[first], seen[second]):
                yield first, second, *told


def _holds_now(one: Read, kind: str) -> bool:
    """Whether a line tells what is, not what was or may come; a birth is past and holds. Of what is owned, one certain
    thing has to be told of: two may own a camera each, and people belong to several things."""
    if kind == "B owns A":
        belongs = not {"belongs", "belong"}.isdisjoint(one.plain)
        if one.plain[0] not in ("the", "this", "our", "my") if belongs else not {"a", "an"}.isdisjoint(one.plain):
            return False
    lasting = kind in _LASTING or not {"named", "called"}.isdisjoint(one.plain)
    return not one.mood[0] and not one.once and (lasting or not (one.mood[1] or one.past or one.happened))


def _other_value(one: Read, other: Read) -> tuple[str, str] | None:
    """The values of two claims, if they are of one kind and neither says the other's: both dates, numbers, names or words."""
    assert one.claim and other.claim
    left, right = one.claim.value, other.claim.value
    if one.dates and other.dates:
        same = any(_same_day(a, b) for a in one.dates for b in other.dates)
        return None if same or set(left) ^ set(right) else (one.dates[0], other.dates[0])
    if not left or not right or one.dates or other.dates:
        return None
    numbers = [[word for word in value if word[0].isdigit()] for value in (left, right)]
    mine, theirs = ({canonical(word) for word in value} for value in (left, right))
    words = [{root for root in value if not root[0].isdigit()} for value in (mine, theirs)]
    if all(numbers) and {*numbers[0]}.isdisjoint(numbers[1]) and (words[0] == words[1] or len(words[0] | words[1]) < 5):
        return " ".join(numbers[0]), " ".join(numbers[1])
    if canonical(left[0]) in theirs or canonical(right[0]) in mine:
        return (" ".join(left), " ".join(right)) if len(left) == len(right) > 1 and len(mine ^ theirs) == 2 else None
    begun = left[0] == one.plain[0] or right[0] == other.plain[0]
    alike = left[0][0].isdigit() == right[0][0].isdigit() and (one.claim.proper == other.claim.proper or begun)
    return (left[0], right[0]) if alike else None


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


def _values(seen: Sequence[Read]) -> Iterator[tuple[int, int, str, str]]:
    """Lines alike but for one number, one date or one word, of something that has only one at a time."""
    frames: dict[tuple[object, ...], dict[str, tuple[int, str]]] = defaultdict(dict)
    for place, one in enumerate(seen):
        if not (one.numbers or one.dates or not SINGLE.isdisjoint(one.bag)):
            continue
        passes = one.once or one.happened or one.denied or any(one.mood) or _SEVERAL.search(one.text)
        if not passes and (one.names or _STEADY.search(one.text)):
            for key, value in _slots(one):
                # The first line for a value is the one to rather keep; it is told as that line spells it.
                frames[*key, one.about, one.denied].setdefault(canonical(value), (place, value))
    for values in frames.values():
        if 2 <= len(values) <= _RIVALS:
            (first, left), *others = values.values()
            for second, right in others:
                one, other = seen[first], seen[second]
                # Both are names, or neither; and nobody else acts.
                alike = (left in one.names) == (right in other.names)
                acting = [role for role in one.roles[:1] if role != left]
                if first != second and alike and acting == [role for role in other.roles[:1] if role != right]:
                    yield first, second, left, right


def _slots(one: Read) -> Iterator[tuple[tuple[object, ...], str]]:
    """The frame of a line without one of its numbers, its date, or one word that is not the one it is about."""
    bare = one.bag - LIGHT
    if one.numbers and bare:
        for place, number in enumerate(one.numbers[:4]):
            rest = one.numbers[:place] + one.numbers[place + 1 :]
            yield ("number", bare, rest, one.dates), number
    if len(one.dates) == 1 and len(one.bag) > 1 and _STEADY.search(one.text):
        yield ("date", one.bag, one.numbers), one.dates[0]
    if len(one.bag) > 2 and not one.turned and not SINGLE.isdisjoint(one.bag):
        carrying = [word for word in one.plain if canonical(word) in one.bag]
        # The last word may be a value, and in a longer line names and the last but one.
        for word in dict.fromkeys([*carrying[-1:], *carrying[-2:], *(w for w in carrying[1:] if w in one.names)]):
            fixed = {*one.roles[:2], *carrying[:1], *one.names}
            if word not in fixed and canonical(word) not in SINGLE:
                yield ("value", one.bag - {canonical(word)}, one.numbers, one.dates), word
