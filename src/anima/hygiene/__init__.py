"""Hygiene: logs that are old, lines that say the same, lines that contradict each other, and what to do about it. Pure.

Promise: works on lines given as values and gives values back, each with its evidence; nothing is changed and nothing is
ever suggested to be deleted that is not said elsewhere. Two lines are twins only with the same numbers, dates and
negations, the same names, and the same one acting; where that cannot be told they are not. Time grows with the number of
lines, not with its square. Not here: reading files, vectors of texts (they are passed in), and writing.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from anima.index.words import stem
from anima.markdown import bullet_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = Callable[[Sequence[str]], NDArray[np.float32]]  # one row of length one for each text

STALE_DAYS = 90
MEANING = 0.905  # the least cosine of two lines that say the same in other words
CROWD = 40  # neighbours one key may bring; a key with more says little
Kind = Literal["merge", "archive", "choose"]
Sameness = Literal["exact", "punctuation", "dates", "reworded", "contained", "meaning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line of a document. Lines that should rather be kept come first in what is passed in.

    `rank` is lower for places that are kept before others (curated memory before logs); a line that is not `trusted` is
    never kept in place of one that is; one that is `fixed` stays whatever says the same. `under` is the heading that a
    line without a name of its own is about.
    """

    path: str
    number: int
    text: str
    day: date | None = None
    rank: int = 0
    trusted: bool = True
    fixed: bool = False
    under: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A line that says what another says, how it is the same, and what shows it.

    `covered` tells whether the line that is kept says all of it, so that nothing is lost when this one goes.
    """

    line: Line
    how: Sameness
    score: float
    evidence: str
    covered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Lines that say one thing. Kept is a trusted one, of the best place, the fullest there, or else the first."""

    keep: Line
    twins: tuple[Twin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two lines that cannot both hold. `newer` is the one of the later day, None when that is not known."""

    one: Line
    other: Line
    why: str
    newer: Line | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """A daily log older than it should be."""

    path: str
    day: date
    age: int  # days


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something to do, as a sentence and as what it takes: lines to take out, a document to move, or a choice.

    A choice has its two lines in `between`, and takes none out before somebody chose.
    """

    kind: Kind
    sentence: str
    keep: Line | None = None
    remove: tuple[Line, ...] = ()
    between: tuple[Line, ...] = ()
    evidence: tuple[str, ...] = ()  # one for each line that goes; for a choice, why
    path: str = ""
    to: str = ""


# -- the four functions ------------------------------------------------------------------------------------------------


def find_stale_logs(logs: Mapping[str, date], *, today: date, days: int = STALE_DAYS) -> tuple[Stale, ...]:
    """The daily logs, by path, that are more than so many days old, oldest first."""
    found = [Stale(path=path, day=day, age=(today - day).days) for path, day in logs.items()]
    return tuple(sorted((one for one in found if one.age > days), key=lambda one: (one.day, one.path)))


def find_duplicates(lines: Sequence[Line], *, vectors: Vectors | None = None) -> tuple[Group, ...]:
    """Lines that say the same, in groups, in the order of the lines.

    With `vectors`, lines that say the same in other words may be twins, too; only texts that come near are asked for.
    """
    read = _read(lines)
    homes = _Homes(len(read))
    for same in _equal(read):
        for other in same[1:]:
            homes.join(same[0], other, _how(read[same[0]], read[other]), 1.0)
    for one, other, how, score in _near(read, _firsts(read, homes), vectors):
        homes.join(one, other, how, score)
    return tuple(_group(members, read, homes) for members in homes.groups())


def find_contradictions(lines: Sequence[Line]) -> tuple[Contradiction, ...]:
    """Pairs of lines of one frame that say different things where only one can hold, or of which one denies the other."""
    read = _read(lines)
    found: dict[tuple[int, int], str] = {}
    for one, other in _denials(read):
        found.setdefault((one, other), "one denies what the other says")
    for one, other, left, right in _values(read):
        found.setdefault((one, other), f"one says {left}, the other {right}")
    return tuple(_contradiction(lines[one], lines[other], why) for (one, other), why in sorted(found.items()))


def suggest_consolidation(
    *, duplicates: Iterable[Group] = (), contradictions: Iterable[Contradiction] = (), stale: Iterable[Stale] = (),
    may_go: Callable[[Line, Line], bool] = lambda gone, kept: True, archive: Callable[[Stale], str] | None = None,
) -> tuple[Advice, ...]:  # fmt: skip
    """What to do about what was found: choices first, then merges, then logs to move to the archive.

    `may_go` is asked of each line that would go and the one that says the same; `archive` says where a log goes.
    """
    found = [_choice(one) for one in contradictions]
    found += [advice for group in duplicates if (advice := _merge(group, may_go))]
    for log in stale:
        to = archive(log) if archive else f"memory/archive/{log.day.year}/{log.path.rpartition('/')[2]}"
        told = f"{log.path} is {log.age} days old; move it to {to}, where search still finds it."
        found.append(Advice(kind="archive", sentence=told, path=log.path, to=to, evidence=(f"{log.age} days old",)))
    return tuple(found)


def _choice(one: Contradiction) -> Advice:
    newer = f"; {_place(one.newer)} is newer" if one.newer else ""
    told = f"{_place(one.one)} and {_place(one.other)} cannot both hold: {one.why}{newer}."
    return Advice(kind="choose", sentence=told, between=(one.one, one.other), evidence=(one.why,))


def _merge(group: Group, may_go: Callable[[Line, Line], bool]) -> Advice | None:
    going = [
        twin for twin in group.twins if twin.covered and not twin.line.fixed and may_go(twin.line, group.keep)
    ]  # fmt: skip
    if not going:
        return None
    places = ", ".join(_place(twin.line) for twin in going[:3])
    more = f" and {len(going) - 3} more" if len(going) > 3 else ""
    told = f"{places}{more} {'says' if len(going) == 1 else 'say'} what {_place(group.keep)} says; keep that one."
    return Advice(kind="merge", sentence=told, keep=group.keep, remove=tuple(twin.line for twin in going),
                  evidence=tuple(f"{twin.how}: {twin.evidence}" for twin in going))  # fmt: skip


def has_date(text: str) -> bool:
    """Whether a text says on which day."""
    return _DATES.search(text) is not None


def _place(line: Line) -> str:
    return f"{line.path}#L{line.number}"


# -- reading lines -----------------------------------------------------------------------------------------------------

_MONTHS = {
    name: number
    for number, names in enumerate(
        """january jan enero januar janvier janeiro gennaio;february feb febrero februar février fevereiro febbraio;
        march mar marzo märz mars março;april apr abril avril aprile;may mayo mai maio maggio;june jun junio juni juin junho
        giugno;july jul julio juli juillet julho luglio;august aug agosto août;september sep sept septiembre septembre
        setembro settembre;october oct octubre oktober octobre outubro ottobre;november nov noviembre novembre novembro;
        december dec diciembre dezember décembre dezembro dicembre""".split(";"),
        start=1,
    )
    for name in names.split()
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DATES = re.compile(
    rf"\b(?P<y>\d{{4}})-(?P<m>\d{{2}})-(?P<d>\d{{2}})\b"
    rf"|\b(?P<d2>\d{{1,2}})(?:st|nd|rd|th|\.|º)?(?: of| de)? (?P<n2>{_MONTH})\b\.?(?:,? (?:de )?(?P<y2>\d{{4}})\b)?"
    rf"|\b(?P<n3>{_MONTH})\.? (?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<y3>\d{{4}})\b)?"
    rf"|\b(?P<d4>\d{{1,2}})\.(?P<m4>\d{{1,2}})\.(?P<y4>\d{{4}})\b",
    re.IGNORECASE,
)
_STAMP = re.compile(r"\A(?:\[?\d{1,2}:\d{2}(?::\d{2})?\]?|\[?\d{4}-\d{2}-\d{2}(?:[T ]\d{1,2}:\d{2})?\]?)[ \t:,–—-]+")
_TAILS = re.compile(r"_?\((?:score|hits|days|since|from|until|noted|seen)\b[^()]{0,80}\)_?\Z")
_WORD = re.compile(r"\d+(?:[.,:/]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?|[^\W_]+")
_SMALL = frozenset(
    """a an the and or of to in on at for with by is are was were be been being am it its this that these those his her hers
    their theirs my your our as from has have had having do does did will would shall he she they we you i him them me us
    there here also who whom which whose what when where so than then very really just quite already currently now el la los
    las un una de del que en y o es son con por para su sus lo al se der die das den dem des ein eine einen und oder ist sind
    mit von im am zu le les du une et est sont pour sur il elle au aux os as um uma e é são com em na da dos das gli di che
    è sono per""".split()
)
_NEGATIONS = frozenset(
    """not no never nor none neither without cannot longer nicht kein keine keinen nie niemals ohne sin nunca ni jamás
    tampoco ne pas jamais sans não nem sem non mai senza""".split()
)
_LIMITS = frozenset(
    stem(word) for word in "only except unless if maybe perhaps sometimes rarely until before after almost".split()
)
_FROM, _TO = frozenset("from von aus de desde".split()), frozenset("to into nach zu a hasta vers à".split())
_BEFORE = frozenset(
    "in at from to with by on of for near about into und mit von bei en con por para de a à chez".split()
)
_PLACES = frozenset("in at from near into en".split())
_CLEFT = re.compile(r"\A(\S{1,60}) is (?:where|what|when)\b")  # "Lima is where Ana lives" is about Ana
_BY = frozenset("by por von par durch da".split())
# What headings are called that name nobody.
_TITLES = frozenset(
    """about allergies basics books calendar car checklist contacts contact context conventions daily data dates day decisions
    deployment details diary docs environment events facts family favourites finance finances food friends general goals habits
    health history hobbies home house household identity ideas important info infrastructure interests job journal key kids
    learned lessons links log logs long-term memories memory misc miscellaneous money notes observations open opinions other
    people personal pets places plans preference preferences profile project projects property questions quotes reading
    recipes reference reminders retain routine routines rules schedule school security servers service services setup social
    stack status study style summary tasks team tech things timeline today todo tools topics travel trips user vehicles
    weekly wishes work yesterday acerca aficiones amigos casa contactos datos decisiones familia fechas general gente hechos
    hogar memoria notas personas planes preferencias proyectos rutinas salud servidores trabajo viajes aufgaben arbeit
    einstellungen entscheidungen fakten familie freunde gesundheit haus leute notizen personen pläne projekte reisen
    vorlieben zuhause""".split()
)
# Words that make no other fact of a line. Each row stands for its first word.
_SYNONYMS = """
    like enjoy love fond favour adore;prefer preference favourite favorite;live reside home dwell;work employ job;use utilise
    utilize;buy bought purchase acquire;begin began begun start commence;end finish conclude;big large;small little tiny;phone
    mobile cellphone smartphone handset;car automobile;doctor physician;meet met meeting;want wish desire;need require;keep
    kept;get got receive obtain;show shown display;fix repair mend;child children kid;name call;tell told inform;ask
    request;help assist;cost price;choose chose chosen pick select;quick fast rapid;often frequently;every each;picture photo
    photograph;flat apartment;movie film;holiday vacation;lesson class;talk talked speak spoke spoken chat;look watch;hate
    dislike detest;allergic allergy;born birth birthday;study learn learnt;teach taught instruct;mum mom mother;dad father;
    go went gone;give gave given;drive drove driven;write wrote written;make made;leave left;take took taken;eat ate eaten;
    see saw seen;say said;think thought;bring brought;sell sold;send sent;pay paid;find found;lose lost;woman women;man
    men;person people;foot feet;sleep slept;run ran;come came;know knew known;sit sat;stand stood;grow grew grown;wear wore
    worn;hear heard;build built;spend spent;become became
"""


@dataclass(frozen=True, slots=True)
class _Read:
    """What a line states, in parts that can be compared."""

    line: Line
    text: str  # without its sign, stamp and tail
    plain: tuple[str, ...]  # its words and dates in their order
    bag: frozenset[str]  # stems of what carries meaning, synonyms as one
    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    denied: bool
    names: frozenset[str]
    roles: tuple[str, ...]  # the names that no preposition leads in, in their order: the first one acts
    passive: bool
    owned: int  # how often something is somebody's
    stamp: str  # the day it is noted under, where that stands before it
    whence: frozenset[str]
    whither: frozenset[str]
    about: frozenset[str]  # whom it speaks of without a name, as its heading tells

    @property
    def facts(self) -> tuple[frozenset[str], tuple[str, ...], bool, frozenset[str]]:
        return self.bag, self.numbers, self.denied, self.about


@lru_cache(maxsize=1)
def _groups() -> dict[str, str]:
    found: dict[str, str] = {}
    for row in _SYNONYMS.split(";"):
        first, *others = row.split()
        for word in (first, *others):
            found.setdefault(stem(word), found.get(stem(first), stem(first)))
    return found


def _read(lines: Sequence[Line]) -> list[_Read]:
    """The lines as they are compared. A capital makes a name only where the word never stands without one."""
    shown = [_stated(line.text) for line in lines]
    small = {word for text in shown for word in _WORD.findall(text) if word[:1].islower()}
    return [_parsed(line, text, small) for line, text in zip(lines, shown, strict=True)]


def _stated(text: str) -> str:
    text = _STAMP.sub("", _normal(text), count=1)
    for _ in range(2):
        at = text.rfind("(")
        at -= at > 0 and text[at - 1] == "_"
        text = text[:at].rstrip() if at >= 0 and _TAILS.match(text, at) else text
    return text


def _normal(text: str) -> str:
    return unicodedata.normalize("NFKC", bullet_text(text)).replace("’", "'").replace("\0", "")


def _parsed(line: Line, text: str, small: set[str]) -> _Read:
    dates: list[str] = []
    bare = _DATES.sub(lambda found: _taken(found, dates), text) if any(map(str.isdigit, text)) else text
    words = [part for word in _WORD.findall(bare.lower()) for part in _parts(word)]
    carrying = [word for word in words if word not in _SMALL and word not in _NEGATIONS]
    names, roles = _names(bare.replace("\0", "0"), small)
    return _Read(
        line, text, (*words, *dates), frozenset(_canonical(word) for word in carrying if not word[0].isdigit()),
        tuple(sorted(word for word in carrying if word[0].isdigit())), tuple(sorted(dates)),
        sum(word in _NEGATIONS for word in words) % 2 == 1, names, roles,
        any(word in _BY for word in words), text.count("'s "), _stamp(line.text), _led(words, _FROM), _led(words, _TO),
        _about(line.under, bare, names, small),
    )  # fmt: skip


def _about(under: str, text: str, names: frozenset[str], small: set[str]) -> frozenset[str]:
    """The names in the headings of a line that says nowhere itself whom it is about: "likes tea", below "Ana"."""
    if not under:
        return frozenset()
    first = _WORD.search(text)
    if first and first[0].casefold().removesuffix("'s") in names:
        return frozenset()
    found, _ = _names(_normal(under), small | _TITLES)
    return frozenset() if found & names else found


def _led(words: Sequence[str], leading: frozenset[str]) -> frozenset[str]:
    """The words that such a preposition leads in, articles aside."""
    carrying = [word for word in words if word not in _SMALL or word in _FROM or word in _TO]
    return frozenset(word for before, word in pairwise(carrying) if before in leading)


def _stamp(text: str) -> str:
    found = _STAMP.match(_normal(text))
    day = _DATES.search(found[0]) if found else None
    return day[0] if day else ""


def _taken(found: re.Match[str], dates: list[str]) -> str:
    """Takes a date out of a text into the list, as 2026-05-03, or as 05-03 where no year is given."""
    parts = found.groupdict()
    year = parts["y"] or parts["y2"] or parts["y3"] or parts["y4"] or ""
    month = _MONTHS.get((parts["n2"] or parts["n3"] or "").lower(), 0) or int(parts["m"] or parts["m4"] or 0)
    day = int(parts["d"] or parts["d2"] or parts["d3"] or parts["d4"])
    dates.append(f"{year}-{month:02}-{day:02}".lstrip("-"))
    return " \0 "  # no word, but it parts what stands before it from what follows


def _parts(word: str) -> tuple[str, ...]:
    if word.endswith("n't"):
        return (word[:-3], "not")
    return (word.removesuffix("'s"),)


@lru_cache(maxsize=65536)
def _canonical(word: str) -> str:
    root = stem(word)
    return _groups().get(root, root)


def _names(text: str, small: set[str]) -> tuple[frozenset[str], tuple[str, ...]]:
    found, roles, before = set[str](), list[str](), ""
    for word in _WORD.findall(_CLEFT.sub(r"in \1", text)):
        if word[0].isupper() and word.lower() not in small and word.lower() not in _SMALL:
            name = word.casefold().removesuffix("'s")
            found.add(name)
            roles += [name] if before not in _BEFORE and name not in roles else []
            # All of "of Ana Paz" is led in; after "in Lima" a new name may begin.
            before = before if before in _BEFORE - _PLACES else ""
            continue
        before = word.lower()
    return frozenset(found), tuple(roles)


# -- twins -------------------------------------------------------------------------------------------------------------


def _equal(read: Sequence[_Read]) -> Iterator[list[int]]:
    """Places of lines with the same words, or the same words that carry meaning, the same numbers and dates."""
    by_words: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place, one in enumerate(read):
        if one.plain:
            by_words[one.plain, one.about].append(place)
    yield from (places for places in by_words.values() if len(places) > 1)
    by_facts: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for places in by_words.values():
        one = read[places[0]]
        if len(one.bag) + len(one.numbers) > 1 and one.bag:
            by_facts[(*one.facts, tuple(day[-5:] for day in one.dates))].append(places[0])
            if one.stamp and not one.dates:  # "2026-05-03: Ana came" is also "Ana came on 3 May"
                by_facts[(*one.facts, (one.stamp[-5:],))].append(places[0])
    for places in by_facts.values():
        yield from _agreeing(places, read)


def _agreeing(places: Sequence[int], read: Sequence[_Read]) -> Iterator[list[int]]:
    """Lines of the same words, parted by who acts and by the years of their dates."""
    parts: list[list[int]] = []
    for place in places[:1000]:
        home = next((part for part in parts[:CROWD] if _same_roles(read[part[0]], read[place])), None)
        if home is None:
            parts.append([place])
        else:
            home.append(place)
    yield from (part for part in parts if len(part) > 1)


def _same_roles(one: _Read, other: _Read) -> bool:
    noted = _same_days(one.dates or (one.stamp,), other.dates or (other.stamp,))
    if one.names != other.names or one.about != other.about or not (noted or _same_days(one.dates, other.dates)):
        return False
    if one.whence & other.whither or one.whither & other.whence:
        return False
    if one.passive != other.passive or len(one.names) < 2 or not one.roles or not other.roles:
        return True
    shared = {*one.roles} & {*other.roles}
    in_order = [name for name in one.roles if name in shared] == [name for name in other.roles if name in shared]
    return in_order and one.roles[:1] == other.roles[:1]


def _same_days(one: Sequence[str], other: Sequence[str]) -> bool:
    """The same days, where a date without a year fits any year."""
    if len(one) != len(other):
        return False
    pairs = zip(sorted(one, key=lambda d: d[-5:]), sorted(other, key=lambda d: d[-5:]), strict=True)
    return all(a == b or (a[-5:] == b[-5:] and min(len(a), len(b)) == 5) for a, b in pairs)


def _how(one: _Read, other: _Read) -> Sameness:
    if one.text == other.text:
        return "exact"
    if [word for word in one.plain if word not in one.dates] == [
        word for word in other.plain if word not in other.dates
    ]:
        return "dates" if one.dates and _without_dates(one) != _without_dates(other) else "punctuation"
    return "dates" if one.dates and sorted(one.plain) == sorted(other.plain) else "reworded"


def _without_dates(one: _Read) -> list[str]:
    return _WORD.findall(one.text.casefold())


def _firsts(read: Sequence[_Read], homes: _Homes) -> list[int]:
    """One line of each group so far, if it says enough to be near another."""
    return [place for place in range(len(read)) if homes.of(place) == place and len(read[place].bag) >= 3]


def _near(
    read: Sequence[_Read], places: Sequence[int], vectors: Vectors | None
) -> Iterator[tuple[int, int, Sameness, float]]:
    """Pairs of which one says all the other says and little more, or that mean the same in other words."""
    habits = _habits(read, places) if vectors is not None else None
    pairs: list[tuple[int, int, bool]] = []
    for one, other in _neighbours(read, places):
        a, b = read[one], read[other]
        if _same_roles(a, b) and ((contained := _is_contained(a, b)) or (habits is not None and habits.allow(a, b))):
            pairs.append((one, other, contained))
    cosines = _cosines(read, [pair[:2] for pair in pairs if not pair[2]], vectors)
    for one, other, contained in pairs:
        if contained:
            a, b = read[one], read[other]
            yield one, other, "contained", len(a.bag & b.bag) / len(a.bag | b.bag)
        elif (cosine := cosines[one, other]) >= MEANING:
            yield one, other, "meaning", cosine


def _cosines(
    read: Sequence[_Read], pairs: Sequence[tuple[int, int]], vectors: Vectors | None
) -> dict[tuple[int, int], float]:
    if vectors is None or not pairs:
        return {}
    places = sorted({place for pair in pairs for place in pair})
    rows = dict(zip(places, vectors([read[place].line.text for place in places]), strict=True))
    return {(one, other): float(rows[one] @ rows[other]) for one, other in pairs}


def _is_contained(a: _Read, b: _Read) -> bool:
    """Whether one says all of the other and at most a quarter more, none of it a limit or somebody else's."""
    extra = a.bag ^ b.bag
    nested = a.bag <= b.bag or b.bag <= a.bag
    return (
        nested and min(len(a.bag), len(b.bag)) >= 4 and len(extra) <= 0.25 * len(a.bag | b.bag) and not extra & _LIMITS
        and a.owned == b.owned
    )  # fmt: skip


def _neighbours(read: Sequence[_Read], places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Pairs that share two of their five rarest words, each once, of lines with the same names, numbers and denial.

    A key that many lines share says little: only the latest of them are looked at.
    """
    counts = Counter(word for place in places for word in read[place].bag)
    by_pair: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for place in places:
        one = read[place]
        same = (one.names, one.numbers, one.denied)
        rare = sorted(one.bag, key=lambda word: (counts[word], word))[:5]
        met: set[int] = set()
        for number, word in enumerate(rare):
            for second in rare[number + 1 :]:
                key = (*same, word, second) if word < second else (*same, second, word)
                met.update(by_pair[key][-CROWD:])
                by_pair[key].append(place)
        yield from ((other, place) for other in sorted(met))


def _frame(bag: frozenset[str], word: str) -> frozenset[str]:
    return bag - {word}


@dataclass(frozen=True, slots=True)
class _Habits:
    """How this home speaks: pairs of words that stand for each other, and words that are values."""

    pairs: frozenset[frozenset[str]]
    values: frozenset[str]

    def allow(self, a: _Read, b: _Read) -> bool:
        """Whether two lines differ in their manner alone, so that their meaning may be asked.

        One word for another is a manner only where the home has the habit; else it may be another value. More words may
        differ when a name or number holds the lines together and what they share stands in another order.
        """
        more, less = a.bag - b.bag, b.bag - a.bag
        if len(more) == len(less) == 1:
            return more | less in self.pairs
        differing, shared = more | less, a.bag & b.bag
        anchored = bool(a.names or a.numbers) and len(shared) >= max(2, 0.5 * min(len(a.bag), len(b.bag)))
        return anchored and not differing & (self.values | _LIMITS) and _order(a, shared) != _order(b, shared)


def _order(one: _Read, shared: frozenset[str]) -> list[str]:
    return [root for word in one.plain if (root := _canonical(word)) in shared]


def _habits(read: Sequence[_Read], places: Sequence[int]) -> _Habits:
    """Words that change places in several frames, and hardly with any other, are a habit; with many, they are values."""
    frames: dict[tuple[object, ...], set[str]] = defaultdict(set)
    for place in places:
        one = read[place]
        for word in one.bag - one.names:
            frames[(_frame(one.bag, word), one.numbers, one.dates)].add(word)
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


def _group(members: Sequence[int], read: Sequence[_Read], homes: _Homes) -> Group:
    keep = min(members, key=lambda place: _worth(read[place], place))
    twins = []
    for place in sorted(members):
        if place != keep:
            loose = homes.why.get(place) or homes.why.get(keep) or ("exact", 1.0)
            how = loose[0] if loose[0] in ("contained", "meaning") else _how(read[keep], read[place])
            twins.append(
                Twin(
                    line=read[place].line,
                    how=how,
                    score=round(loose[1], 3),
                    evidence=_evidence(read[keep], read[place]),
                    covered=how != "contained" or read[place].bag <= read[keep].bag,
                )
            )
    return Group(keep=read[keep].line, twins=tuple(twins))


def _worth(one: _Read, place: int) -> tuple[bool, int, int, int]:
    return not one.line.trusted, one.line.rank, -len(one.bag), place


def _evidence(one: _Read, other: _Read) -> str:
    if one.text == other.text:
        return "the same text"
    if one.bag == other.bag:
        return "the same words that carry meaning: " + ", ".join(_spelt(one, one.bag, 8))
    differ = ", ".join((*_spelt(one, one.bag - other.bag, 3), *_spelt(other, other.bag - one.bag, 3)))
    return f"{len(one.bag & other.bag)} shared words; they differ in: {differ}"


def _spelt(one: _Read, roots: frozenset[str], most: int) -> list[str]:
    """The words of a line that have these roots, as it spells them."""
    return list({root: word for word in reversed(one.plain) if (root := _canonical(word)) in roots}.values())[::-1][
        :most
    ]


# -- contradictions ----------------------------------------------------------------------------------------------------

_STEADY = re.compile(
    r"\b(?:is|are|was born|lives?|resides?|works?|uses?|called|named|costs?|prefers?|drives?|favou?rite|belongs?|starts?|"
    r"closes?|opens?|leaves?|weighs?|vive|trabaja|usa|cuesta|se llama|ist|wohnt|arbeitet|kostet|heißt|habite|travaille|coûte)\b",
    re.IGNORECASE,
)  # fmt: skip
_SEVERAL = re.compile(
    r"\b(?:allerg|speak|dog|cat|pet|child|kid|son|daughter|brother|sister|friend|hobb|also|another|second|like|enjoy|love|"
    r"visit|met|read|watch|bought|ate|friends?|member)", re.IGNORECASE
)  # fmt: skip


def _denials(read: Sequence[_Read]) -> Iterator[tuple[int, int]]:
    sides: dict[tuple[object, ...], tuple[list[int], list[int]]] = {}
    for place, one in enumerate(read):
        if len(one.bag) > 1:
            sides.setdefault((one.bag, one.numbers, one.dates, one.roles[:1], one.about), ([], []))[one.denied].append(
                place
            )
    for said, denied in sides.values():
        yield from ((min(one, denied[-1]), max(one, denied[-1])) for one in said[-1:] if denied)


def _values(read: Sequence[_Read]) -> Iterator[tuple[int, int, str, str]]:
    """Lines alike but for one value at their end or one number, of something that has only one at a time."""
    frames: dict[tuple[object, ...], dict[str, int]] = defaultdict(dict)
    for place, one in enumerate(read):
        if not one.denied and _STEADY.search(one.text) and not _SEVERAL.search(one.text):
            for key, value in _slots(one):
                frames[*key, one.about][value] = place  # the latest line for a value
    for values in frames.values():
        if 2 <= len(values) <= 4:
            (left, first), (right, second) = sorted(values.items(), key=lambda item: item[1])[-2:]
            yield first, second, left, right


def _slots(one: _Read) -> Iterator[tuple[tuple[object, ...], str]]:
    """The frame of a line without its one number, its one date, or its last word, and that value."""
    if len(one.numbers) == 1 and not one.dates and one.bag:
        yield ("number", one.bag), one.numbers[0]
    elif len(one.dates) == 1 and not one.numbers and len(one.bag) > 1:
        yield ("date", one.bag), one.dates[0]
    elif not one.numbers and not one.dates and len(one.bag) > 2:
        last = next((word for word in reversed(one.plain) if _canonical(word) in one.bag), "")
        if last and last not in one.roles[:2]:
            yield ("value", _frame(one.bag, _canonical(last))), last


def _contradiction(one: Line, other: Line, why: str) -> Contradiction:
    newer = None
    if one.day and other.day and one.day != other.day:
        newer = max(one, other, key=lambda line: line.day or date.min)
    return Contradiction(one=one, other=other, why=why, newer=newer)
