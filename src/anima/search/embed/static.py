"""The default embedder: a small static model whose weights lie in an installed package.

Promise: no network, no cache folder, no environment; the weights are mapped and only the rows that are needed are
read, so a cold process pays little. A text's vector is the sum of its words' vectors, made of sub-words as the model
was trained, in linear time; equal texts give equal vectors, whatever they are embedded together with.
Not here: other models (`local`, `client`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anima.errors import MissingExtra
from anima.model import Purpose

PACKAGE: Final = "wordllama"
WEIGHTS: Final = "weights/l2_supercat_256.safetensors"
VOCABULARY: Final = "tokenizers/l2_supercat_tokenizer_config.json"
LONGEST_WORD: Final = 48  # sub-words of a longer run are found in parts, which keeps any input linear
WORDS_KEPT: Final = 200_000
SPACE: Final = "▁"
_NEVER: Final = 1 << 30

Matrix = NDArray[np.float32]


class StaticEmbedder:
    """The model of the package. Keeps the vectors of words it has met; may be used from several threads."""

    name = "static:l2_supercat:256"
    is_remote = False

    def __init__(self) -> None:
        spec = find_spec(PACKAGE)  # looked up, not imported: importing it is slow
        if spec is None or not spec.submodule_search_locations:
            raise MissingExtra("static", "the embedder static")
        folder = spec.submodule_search_locations[0]
        self._weights = _mapped(os.path.join(folder, WEIGHTS))
        self._vocabulary_path = os.path.join(folder, VOCABULARY)
        self._vector = lru_cache(WORDS_KEPT)(self._sum)

    @property
    def dimension(self) -> int:
        return int(self._weights.shape[1])

    def embed(self, texts: Sequence[str], *, kind: Purpose) -> Matrix:
        """Rows of length one; a text without any word gives zeros. Queries and documents are treated alike."""
        total = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for at, text in enumerate(texts):
            if words := text.split():
                np.add.reduce([self._vector(word) for word in words], axis=0, out=total[at])
        lengths = np.sqrt(np.einsum("ij,ij->i", total, total))[:, None]
        return np.asarray(total / np.where(lengths > 0, lengths, 1), dtype=np.float32)

    def word_vectors(self, words: Sequence[str]) -> Matrix:
        found = [self._vector(word) for word in words]
        return np.array(found, dtype=np.float32).reshape(len(words), self.dimension)

    def close(self) -> None:
        self._vector.cache_clear()

    def _sum(self, word: str) -> Matrix:
        return np.asarray(self._weights[self.sub_words(word)].astype(np.float32).sum(axis=0))

    def sub_words(self, word: str) -> list[int]:
        """The model's numbers for a word that follows a blank, by byte-pair merging: of all neighbours that make a known
        piece together, the earliest learnt first."""
        ids, marked, known = list[int](), SPACE + word, _vocabulary(self._vocabulary_path)
        for start in range(0, len(marked), LONGEST_WORD):
            parts = list(marked[start : start + LONGEST_WORD])
            while len(parts) > 1:
                ranks = [known.get(one + other, _NEVER) for one, other in pairwise(parts)]
                best = min(range(len(ranks)), key=ranks.__getitem__)
                if ranks[best] == _NEVER:
                    break
                parts[best : best + 2] = [parts[best] + parts[best + 1]]
            for part in parts:
                signs = [part] if part in known else [f"<0x{byte:02X}>" for byte in part.encode("utf-8", "replace")]
                ids += [known[sign] for sign in signs]
        return ids


@cache
def _vocabulary(path: str) -> dict[str, int]:
    """Once in a process, however many homes are open in it."""
    with open(path, encoding="utf-8") as file:
        found: dict[str, int] = json.load(file)["model"]["vocab"]
    return found


def _mapped(path: str) -> NDArray[Any]:
    """The one tensor of a safetensors file, mapped: eight bytes of length, a header in JSON, then the numbers."""
    with open(path, "rb") as file:
        size = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(size))
    tensor = header["embedding.weight"]
    kind = {"F16": "<f2", "F32": "<f4"}[tensor["dtype"]]
    return np.memmap(
        path, dtype=kind, mode="r", offset=8 + size + tensor["data_offsets"][0], shape=tuple(tensor["shape"])
    )
