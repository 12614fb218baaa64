"""Answered: how much of what a question asks for the lines that were found hold.

Promise: a share between 0 and 1, a pure function of the question and of what its listener may see. Each word of the
question weighs as much as it tells: by its rarity here and, where an embedder knows words, by the length of its vector,
for a model gives the words that any sentence may have the shortest ones. A line holds a word that it or a heading above
it says; a word that it does not say it holds as far as one of its own words is near to it.
Not here: which lines are found, and in which order (`rank`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from anima.model import Embedder
from anima.search.field import FieldView, Floats
from anima.text.words import cut

LOOKED_AT: Final = 10  # the best lines
MOST_WORDS: Final = 16  # a longer text is no question, and no line holds the half of it
SUPPOSED: Final = 200  # lines that a home is taken to have beside its own: in a small one no word is common
UNKNOWN: Final = 0.2  # how near a word counts where nothing can say it
NEAR: Final = 0.45  # a word this near says the same perhaps
_TOKEN = re.compile(r"[^\W_]+")


@runtime_checkable
class WordEmbedder(Protocol):
    """An embedder whose vector of a text is the sum of its words', so that a query's words can be weighed."""

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """One row for each word, not normalised."""
        ...


class Answered(NamedTuple):
    """How much of a question the best line holds; how much of it, and which words, no line says nor comes near to."""

    share: float
    lack: float
    lacking: tuple[str, ...]


def answered(
    view: FieldView,
    question: str,
    words: Sequence[str],
    lines: Sequence[tuple[int, str]],
    embedder: Embedder | None,
    cosine: Floats,
) -> Answered:
    """`words` are those that were asked for, `lines` the best ones by their places, and `cosine` is that of every unit."""
    if not 0 < len(words) <= MOST_WORDS:
        return Answered(1.0, 0.0, ())
    spelt = {form: raw for raw in _TOKEN.findall(question) for form in cut(raw)}
    asked = [spelt.get(word, word) for word in words]
    found = [view.match(word)[0] for word in words]
    weights = np.array([math.log((view.count + SUPPOSED + 1) / (len(each) + 0.5)) for each in found])
    known = embedder if isinstance(embedder, WordEmbedder) else None
    if known is not None:
        weights *= np.linalg.norm(known.word_vectors(asked), axis=1)
    weights /= max(float(weights.sum()), 1e-9)
    held = np.zeros((len(lines) + 1, len(words)))  # the last row is of no line at all
    for row, (place, text) in enumerate(lines):
        held[row] = max(UNKNOWN, float(cosine[place])) if known is None else _nearness(known, asked, text)
        held[row, [place in each for each in found]] = 1.0
    lacking = [n for n, each in enumerate(found) if not len(each) and held[:, n].max() < NEAR]
    return Answered(
        float((held @ weights).max()), float(weights[lacking].sum()), tuple(dict.fromkeys(asked[n] for n in lacking))
    )


def _nearness(known: WordEmbedder, asked: Sequence[str], text: str) -> Floats:
    """For each word of the question how near the nearest word of a text is to it."""
    own = _TOKEN.findall(text)
    if not own:
        return np.zeros(len(asked))
    near: Floats = (_directions(known, asked) @ _directions(known, own).T).max(axis=1).clip(0.0, 1.0).astype(np.float64)
    return near


def _directions(known: WordEmbedder, words: Sequence[str]) -> NDArray[np.float32]:
    vectors = known.word_vectors(words)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
