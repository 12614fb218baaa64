"""Coverage: how much of what a question asks for the lines that were found hold.

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
from anima.text import cut

LOOKED_AT: Final = 10  # the best lines
NOT_HERE: Final = 0.3  # where no line holds so much of a question, nothing was found;
DOUBTFUL: Final = 0.55  # where none holds so much of it,
LACKING: Final = 0.4  # or where so much of it is nowhere, the answer says so
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


class Coverage(NamedTuple):
    """How much of a question the best line holds; how much of it, and which words, no line says nor comes near to."""

    share: float
    lack: float
    lacking: tuple[str, ...] = ()

    @property
    def is_here(self) -> bool:
        return self.share >= NOT_HERE

    @property
    def is_certain(self) -> bool:
        return self.share >= DOUBTFUL and self.lack < LACKING

    @property
    def doubts(self) -> tuple[str, ...]:
        """What is to be said where it is not certain that the answer is here."""
        if self.is_certain:
            return ()
        said = f": no line says {' or '.join(self.lacking)}" if self.lacking else ""
        near = f" for certain{said}; these lines only come near" if self.is_here else said
        return (f"nothing here answers this{near}",)


def answered(
    view: FieldView,
    question: str,
    words: Sequence[str],
    lines: Sequence[tuple[int, str]],
    embedder: Embedder | None,
    cosine: Floats,
) -> Coverage:
    """`words` are those that were asked for, `lines` the best ones by their places, and `cosine` is that of every unit."""
    if not 0 < len(words) <= MOST_WORDS:
        return Coverage(1.0, 0.0)
    spelt = {form: raw for raw in _TOKEN.findall(question) for form in cut(raw)}
    asked = [spelt.get(word, word) for word in words]
    found = [view.match(word)[0] for word in words]
    weights = np.array([math.log((view.count + SUPPOSED + 1) / (len(each) + 0.5)) for each in found])
    known = embedder if isinstance(embedder, WordEmbedder) else None
    if known is not None:
        weights *= np.linalg.norm(known.word_vectors(asked), axis=1)
    weights /= max(float(weights.sum()), 1e-9)
    places = [place for place, _ in lines]
    held = np.array([np.isin(places, each) for each in found], dtype=np.float64).T
    absent = np.array([not len(each) for each in found])
    said = Coverage(float((held @ weights).max(initial=0.0)), float(weights[absent].sum()))
    if said.is_certain:
        return said  # what is near can only add to it
    if known is None:
        held = np.maximum(held, np.maximum(UNKNOWN, cosine[places])[:, None])
    else:
        held = np.maximum(held, _nearness(known, asked, [text for _, text in lines]))
    absent &= held.max(axis=0, initial=0.0) < NEAR
    lacking = dict.fromkeys(word for word, is_absent in zip(asked, absent, strict=True) if is_absent)
    return Coverage(float((held @ weights).max(initial=0.0)), float(weights[absent].sum()), tuple(lacking))


def _nearness(known: WordEmbedder, asked: Sequence[str], texts: Sequence[str]) -> Floats:
    """For each text and each word of the question how near the nearest word of the text is to it."""
    own = [_TOKEN.findall(text) for text in texts]
    every = {word: n for n, word in enumerate(dict.fromkeys(word for words in own for word in words))}
    if not every:
        return np.zeros((len(texts), len(asked)))
    near = (_directions(known, list(every)) @ _directions(known, asked).T).clip(0.0, 1.0).astype(np.float64)
    return np.array([near[[every[word] for word in words]].max(axis=0, initial=0.0) for words in own])


def _directions(known: WordEmbedder, words: Sequence[str]) -> NDArray[np.float32]:
    vectors = known.word_vectors(words)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), dtype=np.float32)
