"""An embedder for tests and for trying things out: no model, the same vectors on every machine.

Promise: deterministic; texts that share words are near one another, others are not.
Not here: meaning.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from anima.model import Purpose

_WORD = re.compile(r"\w+")


class MockEmbedder:
    """Each word points in a direction taken from its digest; a text is the sum of its words."""

    is_remote = False

    def __init__(self, dimension: int = 64) -> None:
        self._dimension = dimension

    @property
    def name(self) -> str:
        return f"mock:{self._dimension}"

    @property
    def dimension(self) -> int:
        return self._dimension

    def embed(self, texts: Sequence[str], *, kind: Purpose) -> NDArray[np.float32]:
        total = np.zeros((len(texts), self._dimension), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in _WORD.findall(text.casefold()):
                total[row] += self._direction(word)
        lengths = np.linalg.norm(total, axis=1, keepdims=True)
        return np.asarray(total / np.where(lengths > 0, lengths, 1), dtype=np.float32)

    def close(self) -> None:
        """Nothing is held."""

    def _direction(self, word: str) -> NDArray[np.float32]:
        size = self._dimension
        digest = hashlib.shake_128(word.encode("utf-8", "surrogatepass")).digest(size)
        return np.frombuffer(digest, dtype=np.uint8).astype(np.float32) - 127.5
