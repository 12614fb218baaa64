"""How well a line goes under each section of a page: by the words they share, and by what their words mean.

Promise: the same page and line give the same answer; no model is asked. The meaning of words is a table made beforehand
(`benchmarks/placing.py` makes it anew from word lists and pages that are in the repository; the vectors it begins with are
those of wordllama, MIT): a few numbers for each of some thousand English words, and the weight of each thing that is
looked at. A word that it does not have counts only where both have it, as do the words of all other languages. This module and
its table are read when a line is first placed.
Not here: which section is to be had, and the page with the line in it (pages).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from anima.text import cut, words_in

FILE = Path(__file__).parent / "tables" / "meaning.bin"
TELLS = 0.2  # the weight of a word that says what a line is about
EARLY, FADES = 1.0, 2.0  # how much more the first such word counts, and how fast the rest falls behind
DOUBT = 1.0  # what little is known of a line says little
FIRST = 3  # words of a line that may name its subject
_ASKS, _NAMES = tuple(cut("question")), tuple(cut("person"))
Vector = list[float]


class Meanings:
    """What each word means, in some numbers, with its weight as the last; and how much each feature speaks for a section,
    with what a section must reach as the last. A signed byte is 127 times a number."""

    def __init__(self, words: Sequence[str], numbers: bytes, says: Sequence[float]) -> None:
        self.rows, self.says = {word: at for at, word in enumerate(words)}, says
        self.numbers, self._wide = numbers, len(numbers) // len(words)
        self._read: dict[int, Vector] = {}

    def vector(self, row: int) -> Vector:
        """A word's numbers, each times its weight, and the weight."""
        if row not in self._read:
            raw = memoryview(self.numbers).cast("b")[row * self._wide : (row + 1) * self._wide]
            weight = raw[-1] / 127
            self._read[row] = [number / 127 * weight for number in raw[:-1]] + [weight]
        return self._read[row]

    def packed(self) -> bytes:
        about = json.dumps({"words": len(self.rows), "says": list(self.says)})
        return "\n".join([about, *self.rows, ""]).encode() + self.numbers


@cache
def table() -> Meanings:
    first, rest = FILE.read_bytes().split(b"\n", 1)
    about = json.loads(first)
    *words, numbers = rest.split(b"\n", about["words"])
    return Meanings([word.decode() for word in words], numbers, about["says"])


def likelihoods(heads: Sequence[str], lines: Sequence[Sequence[str]], line: str) -> list[float]:
    """How likely it is that a person would choose each section. What is left of one is for none of them."""
    *says, least = table().says
    rows = features(table(), heads, lines, line)
    odds = [math.exp(min(sum(map(float.__mul__, row, says)) - least, 50)) for row in rows]
    return [each / (1 + sum(odds)) for each in odds]


def features(known: Meanings, heads: Sequence[str], lines: Sequence[Sequence[str]], line: str) -> list[Vector]:
    """What is looked at of each section, as numbers."""
    mine, titles = _read(line), [_read(head) for head in heads]
    under = [[_read(each) for each in some] for some in lines]
    times = [Counter(word for each in some for word in each.words) for some in under]
    spread = Counter(
        w for title, found in zip(titles, times, strict=True) for w in mine.words if w in title.words or found[w]
    )
    length = math.hypot(*mine.meaning)
    about = [number / (length + DOUBT) for number in mine.meaning]
    rares = {word: math.log(1 + len(heads) / count) / math.log(1 + len(heads)) for word, count in spread.items()}
    weights = {word: known.vector(known.rows[word])[-1] if word in known.rows else 1.0 for word in spread}
    subject, found = set(list(mine.words)[:FIRST]), []
    for title, some, seen in zip(titles, under, times, strict=True):
        of_title = _unit(title.meaning)
        of_lines = _unit(list(map(sum, zip(*(_unit(each.meaning) for each in some), strict=True))))
        row = [_dot(about, of_title), _dot(about, of_lines if some else of_title), float(not some), 0.0, 0.0, 0.0, 0.0]
        for word, rare in rares.items():
            told = rare * weights[word]
            row[3] += told * (word in title.words)
            if seen[word]:
                row[4] += told * (1 + math.log(seen[word]) / 2) / math.sqrt(len(mine.words))
                row[5] += told * (word in subject)
                row[6] += rare * (word in mine.names)
        found.append(row)
    return found


class _Read(NamedTuple):
    words: Mapping[str, None]
    names: frozenset[str]
    meaning: Vector


@lru_cache(16_384)
def _read(text: str) -> _Read:
    """The words of a line, each once, those of them that are names, and what it means; a question has one word more,
    and so has one that begins with a name."""
    words, names, rows = dict[str, None](), set[str](), table().rows
    for number, (raw, forms) in enumerate(words_in(text)):
        is_name = raw[:1].isupper() and (number > 0 or not any(form in rows for form in forms))
        words.update(dict.fromkeys(forms))
        names.update(forms if is_name else ())
    leads = bool(words) and next(iter(words)) in names
    asks = dict.fromkeys(_ASKS if text.rstrip().endswith("?") else ())
    words = asks | dict.fromkeys(_NAMES if leads else ()) | words
    return _Read(words, frozenset(names), _meaning(table(), words))


def _meaning(known: Meanings, words: Mapping[str, None]) -> Vector:
    """What some words mean together: their sum, the first of them counting more; zeros where none is known."""
    found, told = [0.0] * (len(known.vector(0)) - 1), 0
    for row in [known.rows[word] for word in words if word in known.rows]:
        share, vector = 1 + EARLY * math.exp(-told / FADES), known.vector(row)
        found = [number + share * more for number, more in zip(found, vector, strict=False)]
        told += vector[-1] >= TELLS
    return found


def _unit(vector: Vector) -> Vector:
    length = math.hypot(*vector)
    return [number / length for number in vector] if length > 1e-9 else vector


def _dot(one: Vector, other: Vector) -> float:
    return sum(map(float.__mul__, one, other))
