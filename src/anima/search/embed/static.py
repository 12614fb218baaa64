"""The default embedder: a small static model whose weights lie in an installed package.

Promise: no network, no cache folder, no environment; the weights are mapped and only the rows that are needed are
read, so a cold process pays little. A text's vector is the sum of its words' vectors, made of sub-words as the model
was trained, in linear time; equal texts give equal vectors, whatever they are embedded together with.
Not here: other models (`local`, `client`).
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Sequence
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
TEXTS_AT_ONCE: Final = 2048
SPACE: Final = "▁"

Matrix = NDArray[np.float32]


class StaticEmbedder:
    """The model of the package. Keeps the vectors of words it has met; may be used from several threads."""

    is_remote = False

    def __init__(self) -> None:
        folder = _package_folder()
        self._weights = _mapped(os.path.join(folder, WEIGHTS))
        self._vocabulary_path = os.path.join(folder, VOCABULARY)
        self._vocabulary: dict[str, int] | None = None
        self._lock = threading.Lock()
        self._numbers: dict[str, int] = {}
        self._rows: Matrix = np.zeros((0, 0), dtype=np.float32)
        self._forget()

    @property
    def name(self) -> str:
        return "static:l2_supercat:256"

    @property
    def dimension(self) -> int:
        return int(self._weights.shape[1])

    def embed(self, texts: Sequence[str], *, kind: Purpose) -> Matrix:
        """Rows of length one; a text without any word gives zeros. Queries and documents are treated alike."""
        parts = [self._summed(texts[at : at + TEXTS_AT_ONCE]) for at in range(0, len(texts), TEXTS_AT_ONCE)]
        total = np.concatenate(parts) if parts else np.zeros((0, self.dimension), dtype=np.float32)
        lengths = np.sqrt(np.einsum("ij,ij->i", total, total))[:, None]
        return np.asarray(total / np.where(lengths > 0, lengths, 1), dtype=np.float32)

    def word_vectors(self, words: Sequence[str]) -> Matrix:
        with self._lock:
            numbers = [self._number(word) for word in words]  # first, for new words may need more rows
            return np.asarray(self._rows[numbers])

    def close(self) -> None:
        with self._lock:
            self._forget()

    def _summed(self, texts: Sequence[str]) -> Matrix:
        """The sum of the words' vectors, added in their order, for each text."""
        with self._lock:
            if len(self._numbers) > WORDS_KEPT:
                self._forget()
            numbers = [[self._number(word) for word in text.split()] for text in texts]
            rows = self._rows
        total = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, chosen in enumerate(numbers):
            if not chosen:
                continue
            np.add.reduce(rows.take(chosen, axis=0), axis=0, out=total[row])
        return total

    def _number(self, word: str) -> int:
        """The row of a word's vector, made when the word is met for the first time. The lock is held."""
        number = self._numbers.get(word)
        if number is None:
            number = self._learn(word)
        return number

    def _learn(self, word: str) -> int:
        if len(self._numbers) >= len(self._rows) - 1:
            grown = np.zeros((2 * len(self._rows), self.dimension), dtype=np.float32)
            grown[: len(self._rows)] = self._rows
            self._rows = grown
        number = len(self._numbers) + 1
        ids = self.sub_words(word)
        self._rows[number] = self._weights[ids].astype(np.float32).sum(axis=0)
        self._numbers[word] = number
        return number

    def _forget(self) -> None:
        self._numbers = {}
        self._rows = np.zeros((1024, int(self._weights.shape[1])), dtype=np.float32)  # row 0: no word at all

    def sub_words(self, word: str) -> list[int]:
        """The model's numbers for a word that follows a blank."""
        ids: list[int] = []
        marked = SPACE + word
        for start in range(0, len(marked), LONGEST_WORD):
            ids.extend(self._merged(marked[start : start + LONGEST_WORD]))
        return ids

    def _merged(self, text: str) -> list[int]:
        """Byte-pair merging: of all neighbours that make a known piece together, the earliest learnt first."""
        known = self._known()
        parts = list(text)
        while len(parts) > 1:
            ranks = [known.get(one + other, _NEVER) for one, other in pairwise(parts)]
            best = min(range(len(ranks)), key=ranks.__getitem__)
            if ranks[best] == _NEVER:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        return [number for part in parts for number in self._numbers_of(part, known)]

    def _numbers_of(self, part: str, known: dict[str, int]) -> list[int]:
        if part in known:
            return [known[part]]
        return [known[f"<0x{byte:02X}>"] for byte in part.encode("utf-8", "replace")]

    def _known(self) -> dict[str, int]:
        if self._vocabulary is None:
            with open(self._vocabulary_path, encoding="utf-8") as file:
                self._vocabulary = json.load(file)["model"]["vocab"]
        return self._vocabulary


_NEVER: Final = 1 << 30


def _package_folder() -> str:
    """Where the package with the weights lies. It is looked up, not imported: importing it is slow."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("static", "the embedder static")
    return spec.submodule_search_locations[0]


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
