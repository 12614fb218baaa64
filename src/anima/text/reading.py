"""Reading a line: its words that carry meaning, its numbers, dates and names, what leads them in, and when it holds.

Promise: what two notes of one fact share comes out equal, however they are punctuated, dated and ordered: `9 a.m.` and
`09:00`, `43½` and `43 1/2`, `€60` and `60 euros`, `3 May 2026` and `2026-05-03`. A sign carries meaning unless it is known to
carry none: 18 is not -18, C not C++, `ssh config` not `~/.ssh/config`. Linear in the line. Pure.
The tables are ordinary language and know no home. Not here: which lines say the same or contradict each other.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from functools import cache, cached_property, lru_cache
from itertools import pairwise

from anima.text import DENSE, bullet_text, fold, one_line, read_table, stem

_TABLE = read_table("text", "reading")


def _set(name: str) -> frozenset[str]:
    return frozenset(fold(word) for word in _TABLE[name].split())


SMALL, NEGATIONS, WEEKDAYS, DEEDS, _PLACES, _BY = map(_set, "small negations weekdays deeds places by".split())
TO_COME, WAS, IS, LEADING = map(_set, ("to_come", "was", "is", "leading"))
FORMER, LASTING, PASSING, SINGLE, OWNERS = map(_set, ("former", "lasting", "passing", "single", "owners"))
TITLES = frozenset(_TABLE["titles"].split())
MONTHS = {name: number for number, names in enumerate(_TABLE["months"], start=1) for name in names.split()}
TURNING = {word: key for key, words in _TABLE["turning"].items() for word in words.split()}
NUMBERS = {word: number for number, words in _TABLE["numbers"].items() for word in words.split()}


def pattern(name: str) -> re.Pattern[str]:
    """A pattern of the table, in which <month>, <day> and <noted> stand for what they say."""
    table = _TABLE["patterns"]
    nameless = re.sub(r"\?P<\w+>", "?:", table["date"])
    said = table[name].replace("<day>", table["day"]).replace("<date>", nameless).replace("<noted>", table["noted"])
    months = "|".join(sorted(MONTHS, key=len, reverse=True))
    return re.compile(one_line(said.replace("<month>", months).replace("<dense>", DENSE)), re.IGNORECASE)


# The word that stands for a word's row: by the word as it is, and by its stem where no two rows share that.
_ROWS: dict[str, str] = {}
for _first, *_others in (fold(row).split() for row in _TABLE["same"].strip().splitlines()):
    for _word in (_first, *_others):
        _ROWS.setdefault(_word, _ROWS.get(_first, _first))
_ROOTS: dict[str, set[str]] = defaultdict(set)
for _word, _first in _ROWS.items():
    _ROOTS[stem(_word)].add(_first)
_KNOWN = SMALL | NEGATIONS | _ROWS.keys()
_STEMS = {root: next(iter(found)) for root, found in _ROOTS.items() if len(found) == 1}
# First word → phrases that begin with it, longest first, and what each is read as; a denial is "not".
_PHRASES: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = defaultdict(list)
for _row in " ".join(_TABLE["phrases"].split()).rstrip(";").split(";"):
    _said, _meant = (tuple(part.split()) for part in _row.split("="))
    _PHRASES[_said[0]].append((_said, _meant))
for _found in _PHRASES.values():
    _found.sort(key=lambda row: -len(row[0]))


@lru_cache(maxsize=65_536)
def canonical(word: str) -> str:
    """What stands for a word and all that say the same."""
    lower = fold(word)
    root, one = stem(lower), lower.removesuffix("s")
    if one.endswith(("er", "est")):  # faster is not fast, nor is a worker work
        return _ROWS.get(lower) or _ROWS.get(one, one)
    return _ROWS.get(lower) or _STEMS.get(root) or root


LIMITS, LIGHT, SYMMETRIC = (frozenset(map(canonical, _set(name))) for name in ("limits", "light", "symmetric"))
_OPPOSED = [frozenset(map(canonical, pair.split())) for pair in _TABLE["opposed"].split(";")]
OPPOSITES: dict[str, list[frozenset[str]]] = {
    word: [pair for pair in _OPPOSED if word in pair] for pair in _OPPOSED for word in pair if len(pair) == 2
}
# Verbs of which one subject has one object, with the prepositions that lead it in.
LEAD_IN = {canonical(verb): frozenset(leads.split()) for verb, leads in _TABLE["lead_in"].items()}


DATES, _FRONT, _BACK, _TITLE, WORD, _CLEFT = map(pattern, ("date", "front", "back", "title", "word", "cleft"))
_CLOCK, _GROUPED, _AM_PM, _VERSION, _JOINED, _SHORT = map(pattern, "clock grouped am_pm version joined short".split())
_WRAPPED, _END, _AROUND, _PLAIN, _ORDINAL = map(pattern, ("wrapped", "end", "around", "plain", "ordinal"))
_EVENED, _DRAWN = (
    {ord(sign): row["as"] for row in _TABLE[name] for sign in row["signs"]} for name in ("even", "drawn")
)
_SHORTENED, _HALVES = _TABLE["shortened"], _TABLE["halves"]
_TAIL = 120  # characters in which something may be noted behind a line


def even(text: str) -> str:
    """A text with one sort of dash and quote, without those and the emphasis that stand around words."""
    plain = text if text.isascii() else unicodedata.normalize("NFC", text).translate(_EVENED)
    for _ in range(2 if any(sign in plain for sign in "*`\"'_") else 0):  # bold inside of quotes
        plain = _WRAPPED.sub(lambda found: found[2] or found[4], plain)
    return plain


def wording(text: str) -> str:
    """A line as it is compared word for word: whatever its case, quotes, bold, dashes between words, and the sign at its end.
    Case counts where it tells words apart: in acronyms, units, names of code."""
    found, loud = list[str](), text.isupper()
    for chunk in even(text).split():
        parts = chunk.strip(",.;:!?()").replace("'", "-").split("-")
        usual = all(part.isalpha() and (loud or len(part) == 1 or part[1:].islower()) for part in parts)
        is_unit = len(chunk) < 4 and bool(found) and found[-1][-1].isdigit()
        found.append(chunk.casefold() if (usual and not is_unit) else chunk)
    return _END.sub("", " ".join(found))


@lru_cache(maxsize=65_536)
def signs(text: str) -> tuple[str, ...]:
    """Whatever of a text is no plain word or number, each with what it hangs on: what only other words may differ around."""
    found, chunks = list[str](), even(text).replace("·", " ").replace("•", " ").split()
    for before, chunk, after in zip(("", *chunks), chunks, (*chunks[1:], ""), strict=False):
        bare = _AROUND.sub("", chunk)
        if not _PLAIN.fullmatch(bare):
            found.append(bare if any(map(str.isalnum, bare)) else f"{before} {bare} {after}".casefold())
    return tuple(sorted(found))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldLine:
    """A line of a document. Lines that should rather be kept come first in what is passed in. `rank` is lower for places that
    are kept before others (curated memory before logs); one that is `fixed` stays whatever says the same. `under` is the
    heading that a line without a name of its own is about."""

    path: str
    number: int
    text: str
    day: date | None = None
    rank: int = 0
    fixed: bool = False
    under: str = ""


class Tense(StrEnum):
    """When a line holds. A birth is past and holds, so it goes with any."""

    NOW = "now"
    PAST = "past"
    COMING = "coming"
    ANY = "any"


@dataclass(frozen=True, eq=False)
class Read:
    """What a line states, in parts that can be compared."""

    line: ToldLine
    text: str  # without its sign, stamp, teller and tail
    stamp: str  # the day it is noted under, where that stands before it
    words: tuple[str, ...]  # in their order, without dates
    dates: tuple[str, ...]
    signs: tuple[str, ...]  # what carries meaning and is no plain word
    led: Mapping[str, str]  # its names, each with the preposition that leads it in, in their order
    names: frozenset[str]
    whose: frozenset[str]  # the names of whom something is
    about: frozenset[str]  # whom it speaks of without a name, as its heading tells

    @cached_property
    def carrying(self) -> tuple[str, ...]:
        """The words that carry meaning, and the numbers, in their order."""
        return tuple([word for word in self.words if word not in SMALL and word not in NEGATIONS])

    @cached_property
    def bag(self) -> frozenset[str]:
        """What stands for the words that carry meaning."""
        return frozenset([canonical(word) for word in self.carrying if not word[0].isdigit()])

    @cached_property
    def numbers(self) -> tuple[str, ...]:
        return tuple(sorted([word for word in self.carrying if word[0].isdigit()]))

    @cached_property
    def denied(self) -> int:
        """How often it denies: two denials are none in one language, and one in another."""
        return sum([word in NEGATIONS for word in self.words])

    @cached_property
    def roles(self) -> tuple[str, ...]:
        """The names that act, the first one first: what "by" leads in, and what no preposition does."""
        by = [name for name, lead in self.led.items() if lead in _BY]
        return (*by, *(name for name, lead in self.led.items() if not lead))

    @cached_property
    def tied(self) -> Mapping[str, frozenset[str]]:
        """What two lines with the same words may still turn round: from and to, this over that, 2 cats and 3 dogs, whose."""
        found: dict[str, set[str]] = defaultdict(set)
        lead, left = "", 0
        for word in self.words:
            if word in TURNING:
                lead, left = TURNING[word], 2
            elif left and word not in SMALL and word not in NEGATIONS:
                found[lead].add(canonical(word))
                left -= 1
        counted = [(word, after) for word, after in pairwise(self.carrying) if word[0].isdigit()]
        for word, after in counted if len(counted) > 1 else ():
            found[word] |= set() if after[0].isdigit() else {canonical(after)}
        found["my"] |= OWNERS.intersection(self.words)
        found["of"] |= self.whose | {name for name, lead in self.led.items() if lead == "of"}
        return {key: frozenset(told) for key, told in found.items() if told}

    @cached_property
    def tense(self) -> Tense:
        """When it holds, by its verbs; "is employed" is now, "has asked" is past."""
        said = frozenset(self.words)
        if said & TO_COME:
            return Tense.COMING
        if said & FORMER:
            return Tense.PAST
        if said & LASTING:
            return Tense.ANY
        return Tense.PAST if (said & WAS or any(map(_is_deed, self.words))) and not said & IS else Tense.NOW

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """Its words and dates."""
        return (*self.words, *self.dates)

    @cached_property
    def once(self) -> bool:
        """Whether it tells what happened on the day it is noted under."""
        first = self.words[0] if self.words else ""
        return _is_deed(first) or (first[:2] == "ge" and first[-1:] == "t") or not PASSING.isdisjoint(self.words)

    @property
    def noted(self) -> str:
        """The day it happened on, if it tells of one day and does not say which: that of its stamp, or of its log."""
        if self.dates or not (self.once or self.tense is Tense.PAST):
            return ""
        return self.stamp or (self.line.day.isoformat() if self.once and self.line.day else "")

    @property
    def speaks_for_itself(self) -> bool:
        """Whether a line without a name tells enough to be the same below a heading and without one. "Prefers the
        window seat" does not: somebody else may, too."""
        first = self.plain[0] if self.plain else ""
        return len(self.bag) + len(self.numbers) >= 4 and not (first.endswith("s") or _is_deed(first))

    def is_elsewhere(self, other: Read) -> bool:
        """Whether two lines are about different things by their headings; one without a heading may be about anything."""
        apart = bool(self.about and other.about) or not (self.speaks_for_itself and other.speaks_for_itself)
        return self.about != other.about and apart


def _is_deed(word: str) -> bool:
    return word in DEEDS or (word.endswith("ed") and len(word) > 4)


def read(lines: Sequence[ToldLine]) -> list[Read]:
    """The lines as they are compared. A capital makes a name only where the word never stands without one."""
    shown = [_stated(line.text) for line in lines]
    cut = [WORD.findall(text) for text, _ in shown]
    small = {stem(fold(word)) for words in cut for word in words if word[0].islower()}

    @cache
    def is_name(word: str) -> bool:
        """Whether a word with a capital is no ordinary one: none of the tables, and nowhere written small."""
        plain = fold(word).removesuffix("'s")
        known = plain in _KNOWN or (plain in WEEKDAYS and len(plain) > 2) or stem(plain) in _STEMS
        return not known and stem(plain) not in small

    return [_parsed(line, *said, words, is_name) for line, said, words in zip(lines, shown, cut, strict=True)]


def _stated(text: str) -> tuple[str, str]:
    """What a line states, and the day it is noted under: without stamp, topic, teller, and what is noted behind it."""
    text, day = _normal(text), ""
    for _ in range(4):
        if (found := _TITLE.match(text)) and found[1].lower() not in TITLES:
            found = None  # else a topic it is filed under: "Health: Ana is allergic to nuts"
        if not (found := found or _FRONT.match(text)):
            break
        dated = DATES.search(found[0])
        day, text = day or (_day(dated) if dated else ""), text[found.end() :]
    for _ in range(2):
        text = text[:-_TAIL] + _BACK.sub("", text[-_TAIL:])
    return text, day


def _normal(text: str) -> str:
    drawn = even(bullet_text(text)).translate(_DRAWN)
    whole = drawn if drawn.isascii() else unicodedata.normalize("NFKC", drawn)
    whole = whole.replace(" 's ", "'s ")
    if "w/" in whole or "W/" in whole:
        whole = _SHORT.sub(lambda found: "without" if found[0].lower() == "w/o" else "with ", whole)
    return " ".join(whole.split())


def _parsed(line: ToldLine, text: str, stamp: str, cut: list[str], is_name: Callable[[str], bool]) -> Read:
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
    parted = WORD.findall(_CLEFT.sub(r"in \1", bare.replace("\0", "0"))) if dates or " is wh" in bare else raw
    led = _led(parted, is_name)
    whose = frozenset(name for word in parted if word.endswith("'s") and (name := fold(word).removesuffix("'s")) in led)
    names = frozenset(led)
    about = _about(line.under, raw, names, is_name)
    words, said = _words(raw, bool(dates)), signs(bare.replace("\0", " "))
    return Read(line, text, stamp, words, tuple(sorted(dates)), said, led, names, whose, about)


def _words(raw: list[str], dated: bool) -> tuple[str, ...]:
    """The words in their order: numbers in one notation, phrases as what they are read as."""
    found = [part for word in raw for part in _parts(word)]
    if dated:
        found = [word for word in found if word not in WEEKDAYS or len(word) < 3]
    read, at = list[str](), 0
    while at < len(found):
        rows = _PHRASES.get(found[at], ())
        row = next((row for row in rows if tuple(found[at : at + len(row[0])]) == row[0]), None)
        read += row[1] if row else (found[at],)
        at += len(row[0]) if row else 1
    words: list[str] = []
    for word in read:
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
        return (_SHORTENED.get(word[:-3], word[:-3]), "not")
    if word == "cannot":
        return ("can", "not")
    parts = word.removesuffix("'s").split("'") if "'" in word else (word,)
    return tuple(NUMBERS.get(part, part) for part in parts if part)


def _number(word: str) -> str:
    """A number in one notation: `09:00` is 9, `1.200` and `1,200` are 1200, `2,5` is 2.5."""
    if clock := _CLOCK.match(word):
        return f"{int(clock[1])}" if clock[2] == "00" else f"{int(clock[1])}:{clock[2]}"
    if _GROUPED.match(word):
        return re.sub(r"[.,]", "", word)
    return word.replace(",", ".") if "," in word else word.lstrip("0") or "0"


def _day(found: re.Match[str]) -> str:
    """A date in one notation; of 12/03/2026 the day comes first, unless it cannot. Nothing for what is no date."""
    parts = found.groupdict()
    year = parts["y"] or parts["y2"] or parts["y3"] or parts["y4"] or ""
    month = MONTHS.get((parts["n2"] or parts["n3"] or "").lower(), 0) or int(parts["m"] or parts["m4"] or 0)
    day = int(parts["d"] or parts["d2"] or parts["d3"] or parts["d4"])
    if month > 12 >= day and parts["s4"] == "/":
        month, day = day, month
    return f"{year}-{month:02}-{day:02}".lstrip("-") if 1 <= month <= 12 and 1 <= day <= 31 else ""


def _about(under: str, raw: list[str], names: frozenset[str], is_name: Callable[[str], bool]) -> frozenset[str]:
    """The names in the headings of a line that says nowhere itself whom it is about: "likes tea", below "Ana"."""
    if not under or (raw and fold(raw[0]).removesuffix("'s") in names):
        return frozenset()
    words = [word for title in under.split(" / ") for word in WORD.findall(_normal(title)) if word[0].isupper()]
    named = (word for word in words if word.lower() not in TITLES and is_name(word))
    found = frozenset(fold(word).removesuffix("'s") for word in named)
    return frozenset() if found & names else found


def _led(words: Sequence[str], is_name: Callable[[str], bool]) -> dict[str, str]:
    """The names in a line, in their order, each with the preposition that leads it in."""
    found, before = dict[str, str](), ""
    for word in words:
        # Letters with a number are a name, too, as machines, rooms and parts have one: web-01, C6.
        is_label = word[-1].isdigit() and not word[0].isdigit()
        if is_label or (word[0].isupper() and is_name(word)):
            found.setdefault(fold(word).removesuffix("'s"), before)
            # All of "of Ana Paz" is led in; after "in Lima" a new name may begin.
            before = "" if before in _PLACES else before
            continue
        before = word.lower() if word.lower() in LEADING else ""
    return found
