"""How well a line goes under each section of a page: by the words they share, and by what their words mean.

Promise: the same page and line give the same answer; no model is asked. The meaning of words is a table made beforehand
(`benchmarks/placing.py` makes it anew from word lists and pages that are in the repository; the vectors it begins with are
those of wordllama, MIT): a few numbers for each of some thousand English words, and the weight of each thing that is
looked at. A word that it does not have counts only where both have it, as do the words of all other languages. This module and
its table are read when a line is first placed.
Not here: which section is to be had, and the page with the line in it (pages).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anima.text import cut, words_in

FILE = Path(__file__).parent / "tables" / "meaning.npz"
TELLS = 0.2  # the weight of a word that says what a line is about
EARLY, FADES = 1.0, 2.0  # how much more the first such word counts, and how fast the rest falls behind
DOUBT = 1.0  # what little is known of a line says little
FIRST = 3  # words of a line that may name its subject
_ASKS, _NAMES = tuple(cut("question")), tuple(cut("person"))


class Meanings(NamedTuple):
    """The row of each word, numbers that say what it means, its weight, and how much each feature speaks for a section."""

    rows: dict[str, int]
    vectors: NDArray[np.float32]
    weights: list[float]
    says: NDArray[np.float32]  # the last is what a section must reach


@cache
def table() -> Meanings:
    with np.load(FILE) as file:
        words = file["words"].tobytes().decode().split("\n")
        numbers = file["vectors"].astype(np.float32) / 127
        says = file["says"]
    return Meanings(
        {word: at for at, word in enumerate(words)}, numbers[:, :-1] * numbers[:, -1:], numbers[:, -1].tolist(), says
    )


def likelihoods(heads: Sequence[str], lines: Sequence[Sequence[str]], line: str) -> list[float]:
    """How likely it is that a person would choose each section. What is left of one is for none of them."""
    known = table()
    points = (features(known, heads, lines, line) @ known.says[:-1] - known.says[-1]).tolist()
    odds = [math.exp(min(point, 50)) for point in points]
    return [each / (1 + sum(odds)) for each in odds]


def features(known: Meanings, heads: Sequence[str], lines: Sequence[Sequence[str]], line: str) -> Any:
    mine, titles = _read(line), [_read(head) for head in heads]
    under = [[_read(each) for each in some] for some in lines]
    times = [Counter(word for each in some for word in each.words) for some in under]
    spread = Counter(
        w for title, found in zip(titles, times, strict=True) for w in mine.words if w in title.words or found[w]
    )
    vectors = _vectors(known, [mine, *titles, *(each for some in under for each in some)])
    about, of_titles, of_lines = vectors[0], unit(vectors[1 : len(heads) + 1]), unit(vectors[len(heads) + 1 :])
    length = float(np.linalg.norm(about))
    about = about / (length + DOUBT)
    subject, at = set(list(mine.words)[:FIRST]), 0
    found = np.zeros((len(heads), len(known.says) - 1), dtype=np.float32)
    for row, title, some, seen, vector in zip(found, titles, under, times, of_titles, strict=True):
        own, at = of_lines[at : at + len(some)].sum(axis=0), at + len(some)
        row[0], row[1] = about @ vector, about @ (unit(own) if some else vector)
        row[2] = not some
        for word, sections in spread.items():
            rare = math.log(1 + len(heads) / sections) / math.log(1 + len(heads))
            told = rare * (known.weights[known.rows[word]] if word in known.rows else 1)
            row[3] += told * (word in title.words)
            if seen[word]:
                row[4] += told * (1 + math.log(seen[word]) / 2) / math.sqrt(len(mine.words))
                row[5] += told * (word in subject)
                row[6] += rare * (word in mine.names)
    return found


class _Read(NamedTuple):
    words: dict[str, None]
    names: frozenset[str]


@lru_cache(4096)
def _read(text: str) -> _Read:
    """The words of a line, each once, and those of them that are names; a question has one more,
    and so has one that begins with a name."""
    words, names, rows = dict[str, None](), set[str](), table().rows
    for number, (raw, forms) in enumerate(words_in(text)):
        is_name = raw[:1].isupper() and (number > 0 or not any(form in rows for form in forms))
        words.update(dict.fromkeys(forms))
        names.update(forms if is_name else ())
    leads = bool(words) and next(iter(words)) in names
    asks = dict.fromkeys(_ASKS if text.rstrip().endswith("?") else ())
    return _Read(asks | dict.fromkeys(_NAMES if leads else ()) | words, frozenset(names))


def _vectors(known: Meanings, texts: Sequence[_Read]) -> Any:
    """What each text means: the sum of its words, the first of them counting more; zeros where no word is known."""
    rows, shares, ends = list[int](), list[float](), [0]
    for text in texts:
        told = 0
        for row in [known.rows[word] for word in text.words if word in known.rows]:
            rows.append(row)
            shares.append(1 + EARLY * math.exp(-told / FADES))
            told += known.weights[row] >= TELLS
        ends.append(len(rows))
    summed = np.zeros((len(rows) + 1, known.vectors.shape[1]))
    np.cumsum(known.vectors[rows] * np.array(shares)[:, None], axis=0, out=summed[1:])
    found = summed[ends[1:]] - summed[ends[:-1]]
    return found.astype(np.float32)


def unit(rows: Any) -> Any:
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    return rows / np.where(lengths > 1e-9, lengths, 1)
