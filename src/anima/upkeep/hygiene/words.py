"""Words of notes: which carry a fact, which say the same, and of which attributes there is one at a time.

Promise: the tables are ordinary language and know no home. Not here: what a line is made of (reading).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from anima.text.words import fold, one_line, read_table, stem

_TABLE = read_table("upkeep/hygiene", "words")


def _set(name: str) -> frozenset[str]:
    return frozenset(fold(word) for word in _TABLE[name].split())


SMALL, NEGATIONS, WEEKDAYS, DEEDS = map(_set, ("small", "negations", "weekdays", "deeds"))
TO_COME, WAS, IS, LEADING = map(_set, ("to_come", "was", "is", "leading"))
FORMER, LASTING, PASSING, SINGLE = map(_set, ("former", "lasting", "passing", "single"))
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
    return re.compile(one_line(said.replace("<month>", months)), re.IGNORECASE)


@cache
def _same() -> tuple[dict[str, str], dict[str, str]]:
    """The word that stands for a word's row: by the word as it is, and by its stem where no two rows share that."""
    words: dict[str, str] = {}
    for row in _TABLE["same"].splitlines():
        first, *others = (fold(word) for word in row.split())
        for word in (first, *others):
            words.setdefault(word, words.get(first, first))
    stems: dict[str, set[str]] = {}
    for word, first in words.items():
        stems.setdefault(stem(word), set()).add(first)
    return words, {root: next(iter(found)) for root, found in stems.items() if len(found) == 1}


def is_known(word: str) -> bool:
    """Whether a word, as `fold` gives it, is one of the tables: no name."""
    words, stems = _same()
    return (
        word in SMALL
        or word in NEGATIONS
        or word in words
        or (word in WEEKDAYS and len(word) > 2)
        or stem(word) in stems
    )


@cache
def phrases() -> dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    """First word → phrases that begin with it, longest first, and what each is read as; a denial is "not"."""
    found: dict[str, list[tuple[tuple[str, ...], tuple[str, ...]]]] = {}
    for row in " ".join(_TABLE["phrases"].split()).split(";"):
        said, equals, meant = row.strip().partition("=")
        if equals:
            words = tuple(said.split())
            read = () if meant == "-" else ("not",) if meant == "~" else tuple(meant.split())
            found.setdefault(words[0], []).append((words, read))
    for rows in found.values():
        rows.sort(key=lambda row: -len(row[0]))
    return found


@lru_cache(maxsize=65_536)
def canonical(word: str) -> str:
    """What stands for a word and all that say the same."""
    words, stems = _same()
    lower = fold(word)
    root = stem(lower)
    return words.get(lower) or stems.get(root) or root


def _canonical(words: Iterable[str]) -> frozenset[str]:
    return frozenset(map(canonical, words))


LIMITS, LIGHT, SYMMETRIC = (_canonical(_TABLE[name].split()) for name in ("limits", "light", "symmetric"))
_OPPOSED = [_canonical(pair.split()) for pair in _TABLE["opposed"].split(";")]
OPPOSITES: dict[str, list[frozenset[str]]] = {
    word: [pair for pair in _OPPOSED if word in pair] for pair in _OPPOSED for word in pair if len(pair) == 2
}
# Verbs of which one subject has one object, with the prepositions that lead it in.
LEAD_IN = {canonical(verb): frozenset(leads.split()) for verb, leads in _TABLE["lead_in"].items()}
