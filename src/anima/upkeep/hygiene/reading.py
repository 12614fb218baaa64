"""Reading a line: its words that carry meaning, its numbers, dates and names, whether it denies, and who acts.

Promise: what two notes of one fact share comes out equal, however they are punctuated, dated and ordered: `9 a.m.` and
`09:00`, `43½` and `43 1/2`, `€60` and `60 euros`, `3 May 2026` and `2026-05-03`. Linear in the line. Pure.
Not here: the tables of words (words), which lines are twins (twins).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from anima.text.markdown import bullet_text
from anima.text.words import fold
from anima.upkeep.hygiene.lines import ToldLine
from anima.upkeep.hygiene.words import (
    BE_OR_HAVE,
    DEEDS,
    FORMER,
    HAPPENED,
    IS,
    LASTING,
    MONTHS,
    NEGATIONS,
    NUMBERS,
    PASSING,
    SHORTENED,
    SINGLE,
    SMALL,
    TITLES,
    TO_COME,
    WAS,
    WEEKDAYS,
    Turned,
    canonical,
    is_known,
    phrases,
    turned,
)

_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_DATE = (
    rf"\b(?P<y>\d{{4}})[-/.](?P<m>\d{{1,2}})[-/.](?P<d>\d{{1,2}})\b"
    rf"|\b(?P<d2>\d{{1,2}})(?:st|nd|rd|th|\.|º)?(?: of| de)?[ -](?P<n2>{_MONTH})\b\.?(?:,?[ -](?:de |del )?(?P<y2>\d{{4}})\b)?"
    rf"|\b(?P<n3>{_MONTH})\.? (?P<d3>\d{{1,2}})(?:st|nd|rd|th)?\b(?![:.]\d)(?:,? (?P<y3>\d{{4}})\b)?"
    rf"|\b(?P<d4>\d{{1,2}})(?P<s4>[./-])(?P<m4>\d{{1,2}})[./-](?P<y4>\d{{4}})\b"
)
DATES = re.compile(_DATE, re.IGNORECASE)
_NAMELESS = re.sub(r"\?P<\w+>", "?:", _DATE)
_WEEKDAY = r"(?:(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|satur|sat|sun)(?:day)?\.?,? )?"
_DAY = rf"{_WEEKDAY}(?:{_NAMELESS})(?:[T,]? ?\d{{1,2}}:\d{{2}}(?::\d{{2}})?Z?)?"
_NOTED = r"(?:noted|seen|as of|recorded|updated|added|logged|entry|written|stand|nota del)(?: on| at| from| of| vom)?:?|on|from"
_SHORT_DAY = r"\d{1,2}[./-]\d{1,2}[./-]\d{2}\b"  # a day as it stands before notes, with two digits for the year
_STAMP = re.compile(
    rf"\A(?:[\[(](?:(?:{_NOTED}) )?(?:{_DAY}|{_SHORT_DAY}|\d{{1,2}}:\d{{2}}(?::\d{{2}})?)(?: ?\([^()]{{1,12}}\))?[\])]"
    rf"|(?:(?:noted|seen|as of|recorded|updated|added|logged|entry)(?: on| at| from)? )?"
    rf"(?:{_DAY}|{_SHORT_DAY}|\d{{1,2}}:\d{{2}}(?::\d{{2}})?)(?: ?\([^()]{{1,12}}\))?)[ \t:,;–—-]+",
    re.IGNORECASE,
)
_TOLD = re.compile(
    rf"\A(?:(?:the )?(?:user|owner|he|she|they)(?: has| have| just| also)? "
    rf"(?:said|says|mentioned|mentions|told me|noted|notes|stated|confirmed|reported|asked me|asks me|reminded me|explained)"
    rf"(?: \(?(?:on )?{_DAY}\)?)?:?(?: that| to)?,? |"
    rf"(?:note|fyi|nb|remember|reminder|fact|info|update|til|nota|recordar|merke|notiz|wichtig|important)(?: that|: | - | – )\s*)",
    re.IGNORECASE,
)
_TOLD_TAIL = re.compile(rf"\s*[\[(](?:(?:{_NOTED}) )?{_DAY}[\])]\.?\Z", re.IGNORECASE)
_NOTED_TAIL = re.compile(
    rf"\s*(?:[-–—,;]\s*|[(\[]\s*)(?:noted|seen|as of|recorded|updated|added|logged)(?: on)?:? {_DAY}\s*[)\]]?[\s.;!,。]*\Z",
    re.IGNORECASE,
)
_NOTES = ("noted", "seen", "as of", "recorded", "updated", "added", "logged")
_TITLE = re.compile(r"\A([^\W\d_]+)\s*[:–—-]\s+(?=(?:\S+\s+){3})")
_TAILS = re.compile(
    r"_?\((?:score|hits|days|since|from|until|noted|seen|recorded|updated|as of|added|logged|entry)\b[^()]{0,80}\)_?\Z"
)
WORD = re.compile(r"[^\W\d_]+(?:-?\d{1,3})+(?!\d)[^\W\d_]{0,3}|\d+(?:[.,:/]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)?|[^\W_]+")
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::00)?\Z")
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+\Z")
_AM_PM = re.compile(r"\b([ap])\.? ?m\b\.?", re.IGNORECASE)
_OWNER = re.compile(r"([^\W_][\w-]*)'s |\bof ([^\W_][\w-]*(?: [^\W\d_]\w*)?)")
_VERSION = re.compile(r"\bv(?=\d)", re.IGNORECASE)
_ORDINAL = re.compile(r"(?<=\d)(?:st|nd|rd|th)\b", re.IGNORECASE)
_JOINED = re.compile(r"\b([^\W\d_]{1,2})-(?=[^\W\d_])")
_DRAWN = str.maketrans(
    dict(zip("½¼¾⅓⅔", (" 1/2", " 1/4", " 3/4", " 1/3", " 2/3"), strict=True))
    | {"€": " euro ", "$": " dollar ", "£": " pound ", "%": " percent ", "&": " and ", "’": "'", "‘": "'"}
    | {"`": " ", "*": " ", "_": " ", "\0": None}
    | {"，": ", ", "。": ". ", "：": ": ", "；": "; ", "（": " (", "）": ") ", "、": ", "}
)
_SHORT = re.compile(r"\bw/o\b|\bw/ ?(?=\w)", re.IGNORECASE)
_FROM, _TO = frozenset("from von aus de desde".split()), frozenset("to into nach zu a hasta vers à".split())
_TURNING = (frozenset("then luego dann".split()), frozenset("over than".split()), frozenset("not no nicht".split()))
_BEFORE = frozenset(
    "in at from to with by on of for near about into und mit von bei en con por para de a à chez".split()
)
_PLACES = frozenset("in at from near into en".split())
# Of a day: whether hours go past noon.
_HALVES = {"am": False, "morning": False, "uhr": False, "pm": True, "evening": True}
_CLEFT = re.compile(r"\A(\S{1,60}) is (?:where|what|when)\b")  # "Lima is where Ana lives" is about Ana
_BY = frozenset("by por von par durch da".split())


class Claim(NamedTuple):
    """That something has a value, of which it has one at a time."""

    kind: str
    of: frozenset[str]
    value: tuple[str, ...]  # the words that carry meaning, in their order
    proper: bool  # the value begins with a capital


@dataclass(frozen=True, eq=False)
class Read:
    """What a line states, in parts that can be compared."""

    line: ToldLine
    text: str  # without its sign, stamp, teller and tail
    words: tuple[str, ...]  # in their order, without dates
    bag: frozenset[str]  # what stands for the words that carry meaning
    numbers: tuple[str, ...]
    dates: tuple[str, ...]
    denied: bool
    names: frozenset[str]
    roles: tuple[str, ...]  # the names that no preposition leads in, in their order: the first one acts
    passive: bool
    owned: int  # how often something is somebody's
    stamp: str  # the day it is noted under, where that stands before it
    about: frozenset[str]  # whom it speaks of without a name, as its heading tells
    happened: bool  # it tells what was done or took place, which may be so again
    turned: bool  # it has one of the forms of which is known how many there may be
    claim: Claim | None  # of what it says what, where that has one value at a time

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """Its words and dates."""
        return (*self.words, *self.dates)

    @cached_property
    def once(self) -> bool:
        """Whether it tells what happened on the day it is noted under."""
        first = self.words[0] if self.words else ""
        deed = first in DEEDS or (first.endswith("ed") and len(first) > 4)
        return deed or (first.startswith("ge") and first.endswith("t")) or not PASSING.isdisjoint(self.words)

    @cached_property
    def mood(self) -> tuple[bool, bool]:
        """Whether it is only to come; whether it was and is no more."""
        over = not WAS.isdisjoint(self.words) and IS.isdisjoint(self.words)
        return not TO_COME.isdisjoint(self.words), over or not FORMER.isdisjoint(self.words)

    @cached_property
    def past(self) -> frozenset[str]:
        """Verbs that end in -ed and are no participle, which another line may have in the present."""
        verbs = [word for word in self.words if word.endswith("ed") and len(word) > 4]
        return frozenset(map(canonical, verbs)) if verbs and BE_OR_HAVE.isdisjoint(self.words) else frozenset()

    @cached_property
    def owners(self) -> frozenset[str]:
        """Whose something is, by name: before "'s", and after "of"."""
        if not self.names or not ("'s " in self.text or " of " in self.text):
            return frozenset()
        found = {fold(one) for pair in _OWNER.findall(self.text) for one in WORD.findall(pair[0] or pair[1])}
        return frozenset(found) & self.names

    @cached_property
    def counted(self) -> dict[str, frozenset[str]]:
        """Each number with what stands for the word after it, where there are several."""
        pairs = [(word, after) for word, after in pairwise((*_carrying(self.words), "")) if word[0].isdigit()]
        return {
            word: frozenset([canonical(after)] if after and not after[0].isdigit() else ())
            for word, after in (pairs if len(pairs) > 1 else ())
        }

    @cached_property
    def ways(self) -> tuple[frozenset[str], frozenset[str]]:
        """Whence and whither: the words that such prepositions lead in, articles aside."""
        carrying = [word for word in self.words if word not in SMALL or word in _FROM or word in _TO]
        whence, whither = (
            frozenset(word for before, word in pairwise(carrying) if before in leading) for leading in (_FROM, _TO)
        )
        return whence, whither

    @cached_property
    def after(self) -> tuple[frozenset[str], ...]:
        """What follows "then", "over" and "not": what stands for the two words after the last one."""
        found = []
        for leading in _TURNING:
            last = max((place for place, word in enumerate(self.words) if word in leading), default=len(self.words))
            found.append(frozenset(map(canonical, _carrying(self.words[last + 1 :])[:2])))
        return tuple(found)

    @property
    def noted(self) -> str:
        """The day it happened on, if it tells of one day and does not say which: that of its stamp, or of its log."""
        if self.dates:
            return ""
        if not self.once:
            return self.stamp if self.happened else ""
        return self.stamp or (self.line.day.isoformat() if self.line.day else "")

    @property
    def speaks_for_itself(self) -> bool:
        """Whether a line without a name tells enough to be the same below a heading and without one. "Prefers the
        window seat" does not: somebody else may, too."""
        first = self.plain[0] if self.plain else ""
        acts = first.endswith(("s", "ed")) or first in DEEDS
        return len(self.bag) + len(self.numbers) >= 4 and not acts


def read(lines: Sequence[ToldLine]) -> list[Read]:
    """The lines as they are compared. A capital makes a name only where the word never stands without one."""
    shown = [_stated(line.text) for line in lines]
    cut = [WORD.findall(text) for text, _ in shown]
    small, within = set[str](), set[str]()
    for words in cut:
        for place, word in enumerate(words):
            if word[0].islower():
                small.add(word)
            elif (place or word.endswith("'s")) and word[0].isupper():
                within.add(word.removesuffix("'s"))
    spoken = _Spoken(small, within)
    return [_parsed(line, *said, words, spoken) for line, said, words in zip(lines, shown, cut, strict=True)]


def as_read(lines: Sequence[ToldLine] | Sequence[Read]) -> list[Read]:
    """Lines read, unless they are already: whoever looks for several things reads them once."""
    return [one for one in lines if isinstance(one, Read)] or read([one for one in lines if isinstance(one, ToldLine)])


class _Spoken:
    """How the lines spell words: in small letters anywhere, or with a capital inside a line."""

    def __init__(self, small: set[str], within: set[str]) -> None:
        self.small, self.within = small, within
        self._ordinary: dict[str, bool] = {}

    def is_ordinary(self, word: str) -> bool:
        """Whether a word with a capital is no name: it is known, or written small elsewhere."""
        if word not in self._ordinary:
            self._ordinary[word] = is_known(fold(word)) or word.lower() in self.small
        return self._ordinary[word]

    def is_name(self, words: Sequence[str], place: int) -> bool:
        """Not where the word is an ordinary one, or only begins the line and nowhere else has a capital."""
        word = words[place].removesuffix("'s")
        if self.is_ordinary(word):
            return False
        return place > 0 or word in self.within or (len(words) > 1 and words[1][:1].isupper())


def _stated(text: str) -> tuple[str, str]:
    """What a line states, and the day it is noted under."""
    text = _untitled(_normal(text))
    found = _STAMP.match(text)
    day = DATES.search(found[0]) if found else None
    text = _untitled(text[found.end() :]) if found else text
    at = max(text.rfind(sign, -48) for sign in _NOTES) if len(text) > 48 else max(map(text.rfind, _NOTES))
    if at >= 0:  # when it was noted may stand behind it
        start = max(0, at - 4)
        text = text[:start] + _NOTED_TAIL.sub("", text[start:])
    told = _TOLD.match(text)
    if told:
        text = _TOLD_TAIL.sub("", text[told.end() :])
    for _ in range(2):
        at = text.rfind("(")
        at -= at > 0 and text[at - 1] == "_"
        text = text[:at].rstrip() if at >= 0 and _TAILS.match(text, at) else text
    return text, _day(day) if day else ""


def _untitled(text: str) -> str:
    """A statement without the topic it is filed under: "Health: Ana is allergic to nuts"."""
    found = _TITLE.match(text)
    return text[found.end() :] if found and found[1].lower() in TITLES else text


def _normal(text: str) -> str:
    drawn = bullet_text(text).translate(_DRAWN)
    whole = drawn if drawn.isascii() else unicodedata.normalize("NFKC", drawn)
    whole = whole.replace(" 's ", "'s ")
    if "w/" in whole or "W/" in whole:
        whole = _SHORT.sub(lambda found: "without" if found[0].lower() == "w/o" else "with ", whole)
    return " ".join(whole.split())


def _parsed(line: ToldLine, text: str, stamp: str, cut: list[str], spoken: _Spoken) -> Read:
    dates: list[str] = []

    def taken(found: re.Match[str]) -> str:
        """Takes a date out of the text into the list, as 2026-05-03, or as 05-03 where no year is given."""
        day = _day(found)
        dates.extend([day] if day else [])
        return " \0 " if day else found[0]  # no word, but it parts what stands before it from what follows

    bare = text
    if any(map(str.isdigit, text)):
        bare = _ORDINAL.sub("", _VERSION.sub("", _AM_PM.sub(r"\1m", DATES.sub(taken, text))))
    bare = _JOINED.sub(r"\1", bare) if "-" in bare else bare
    raw = cut if bare is text else WORD.findall(bare)
    words = said = _words(raw, bool(dates))
    turn = turned(bare if raw and spoken.is_name(raw, 0) else bare[:1].lower() + bare[1:])
    if turn is not None:
        parted = WORD.findall(turn.words.replace("\0", "0"))
        said = _words(WORD.findall(turn.words), bool(dates))
    else:
        parted = WORD.findall(_CLEFT.sub(r"in \1", bare.replace("\0", "0"))) if dates or " is wh" in bare else raw
    carrying, (names, roles) = _carrying(said), _names(parted, spoken)
    return Read(
        line,
        text,
        words,
        frozenset([canonical(word) for word in carrying if not word[0].isdigit()]),
        tuple(sorted([word for word in carrying if word[0].isdigit()])),
        tuple(sorted(dates)),
        sum([word in NEGATIONS for word in said]) % 2 == 1,
        names,
        roles,
        turn is None and not _BY.isdisjoint(words),
        (turn.words if turn else text).count("'s "),
        stamp,
        _about(line.under, raw, names, spoken),
        _has_happened([word.lower() for word in raw]),
        turn is not None and not turn.noun,
        _claim(turn, names),
    )


def _claim(turn: Turned | None, names: frozenset[str]) -> Claim | None:
    """What a line says of what, where it has a form that tells; of what somebody calls theirs, only what there is one of."""
    if turn is None or not (turn.single or turn.noun):
        return None
    of, noun, value = (_carrying(_words(WORD.findall(part), True)) for part in (turn.of, turn.noun, turn.value))
    if not of or of[0][0].isdigit() or (turn.noun and names.issuperset(noun)):
        return None
    if not turn.single and SINGLE.isdisjoint(map(canonical, noun)):
        return None
    kind = "" if turn.noun and not turn.kind.endswith("expires B") else turn.kind
    return Claim(kind, frozenset(map(canonical, (*of, *noun))), value, turn.value[:1].isupper())


def _carrying(words: Sequence[str]) -> tuple[str, ...]:
    return tuple([word for word in words if word not in SMALL and word not in NEGATIONS])


def _words(raw: list[str], dated: bool) -> tuple[str, ...]:
    """The words in their order: numbers in one notation, phrases as what they are read as."""
    found = [part for word in raw for part in _parts(word)]
    if dated:
        found = [word for word in found if word not in WEEKDAYS or len(word) < 3]
    words: list[str] = []
    for word in _read_phrases(found):
        if word in _HALVES and words and words[-1][0].isdigit():
            hour, colon, minutes = words[-1].partition(":")
            if hour.isdigit() and int(hour) <= 12:
                words[-1] = f"{int(hour) % 12 + 12 if _HALVES[word] else int(hour)}{colon}{minutes}"
        else:
            words.append(_number(word) if word[0].isdigit() else word)
    return tuple(words)


@lru_cache(maxsize=65_536)
def _parts(raw: str) -> tuple[str, ...]:
    """The words in one: without accents, what is drawn together apart, and a number that is a word as a number."""
    word = fold(raw)
    if word.endswith("n't"):
        return (SHORTENED.get(word[:-3], word[:-3]), "not")
    if word == "cannot":
        return ("can", "not")
    parts = word.removesuffix("'s").split("'") if "'" in word else (word,)
    return tuple(NUMBERS.get(part, part) for part in parts if part)


def _read_phrases(words: list[str]) -> list[str]:
    known, found, at = phrases(), list[str](), 0
    if known.keys().isdisjoint(words):
        return words
    while at < len(words):
        rows = known.get(words[at])
        row = next((row for row in rows if tuple(words[at : at + len(row[0])]) == row[0]), None) if rows else None
        found += row[1] if row else (words[at],)
        at += len(row[0]) if row else 1
    return found


def _number(word: str) -> str:
    """A number in one notation: `09:00` is 9, `1.200` and `1,200` are 1200, `2,5` is 2.5."""
    if clock := _CLOCK.match(word):
        return f"{int(clock[1])}" if clock[2] == "00" else f"{int(clock[1])}:{clock[2]}"
    if _GROUPED.match(word):
        return re.sub(r"[.,]", "", word)
    return word.replace(",", ".") if "," in word else word.lstrip("0") or "0"


def _has_happened(words: Sequence[str]) -> bool:
    """Whether a line tells of the past what is no lasting state."""
    if not LASTING.isdisjoint(words):
        return False
    if not BE_OR_HAVE.isdisjoint(words):
        return not HAPPENED.isdisjoint(words)
    return "did" in words or not DEEDS.isdisjoint(words) or any(word.endswith("ed") and len(word) > 4 for word in words)


def _day(found: re.Match[str]) -> str:
    """A date in one notation; of 12/03/2026 the day comes first, unless it cannot. Nothing for what is no date."""
    parts = found.groupdict()
    year = parts["y"] or parts["y2"] or parts["y3"] or parts["y4"] or ""
    month = MONTHS.get((parts["n2"] or parts["n3"] or "").lower(), 0) or int(parts["m"] or parts["m4"] or 0)
    day = int(parts["d"] or parts["d2"] or parts["d3"] or parts["d4"])
    if month > 12 >= day and parts["s4"] == "/":
        month, day = day, month
    return f"{year}-{month:02}-{day:02}".lstrip("-") if 1 <= month <= 12 and 1 <= day <= 31 else ""


def _about(under: str, raw: list[str], names: frozenset[str], spoken: _Spoken) -> frozenset[str]:
    """The names in the headings of a line that says nowhere itself whom it is about: "likes tea", below "Ana"."""
    found: set[str] = set()
    if not under or (raw and fold(raw[0]).removesuffix("'s") in names):
        return frozenset()
    for title in under.split(" / "):
        words = WORD.findall(_normal(title))
        # The first has a capital anyway, so in a longer heading it has to be a name elsewhere.
        for word in words[len(words) > 2 and words[0].removesuffix("'s") not in spoken.within :]:
            if word[0].isupper() and word.lower() not in TITLES and not spoken.is_ordinary(word):
                found.add(fold(word).removesuffix("'s"))
    return frozenset() if found & names else frozenset(found)


def _names(words: Sequence[str], spoken: _Spoken) -> tuple[frozenset[str], tuple[str, ...]]:
    found, roles, before = set[str](), list[str](), ""
    for place, word in enumerate(words):
        # Letters with a number are a name, too, as machines, rooms and parts have one: web-01, C6.
        is_label = word[-1].isdigit() and not word[0].isdigit()
        if is_label or (word[0].isupper() and spoken.is_name(words, place)):
            name = fold(word).removesuffix("'s")
            found.add(name)
            roles += [name] if before not in _BEFORE and name not in roles else []
            # All of "of Ana Paz" is led in; after "in Lima" a new name may begin.
            before = before if before in _BEFORE - _PLACES else ""
            continue
        before = word.lower()
    return frozenset(found), tuple(roles)
