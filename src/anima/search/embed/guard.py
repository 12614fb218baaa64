"""What embedders that can fail share: one error, patience between attempts, a breaker, prefixes, and normalising.

Promise: a caller sees `EmbedderDown` and no foreign error; a provider that is down is left alone for a while, so that
a search pays for it once and not every time. Time and chance come in by hand.
Not here: asking a provider (`http`), running a model (`local`), and what a search does without vectors.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from anima.errors import HomeError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Clock = Callable[[], datetime]

LONGEST_REST: Final = 3600.0


class EmbedderDown(HomeError):
    """No vectors this time. Search goes on with words and says `why`; `lasting` means that waiting will not help.

    The message names the provider and a reason of ours: never a key, an address, or text that was to be embedded.
    """

    def __init__(self, provider: str, why: str, *, lasting: bool = False, hint: str | None = None) -> None:
        self.provider, self.why, self.lasting = provider, why, lasting
        super().__init__(f"the embedder {provider} gave no vectors: {why}", hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long one request may take and how often it is repeated; times in seconds.

    `repeats_slow` says whether a request that ran into its timeout is made again.
    """

    attempts: int
    timeout: float
    repeats_slow: bool
    first_pause: float
    longest_pause: float
    total_pause: float

    def pause(self, attempt: int, *, dice: random.Random, asked: float | None) -> float:
        """How long to wait after an attempt (from 0): jittered, and never less than the provider asked for."""
        step = min(self.longest_pause, self.first_pause * 2.0 ** min(attempt, 30))
        if asked is None:
            return step * dice.uniform(0.5, 1.0)
        return asked + self.first_pause * dice.uniform(0.0, 0.5)


DOCUMENT_PATIENCE: Final = Patience(
    attempts=5, timeout=60.0, repeats_slow=True, first_pause=0.5, longest_pause=8.0, total_pause=60.0
)
# Somebody waits for a search, and words alone answer it well.
QUERY_PATIENCE: Final = Patience(
    attempts=2, timeout=3.0, repeats_slow=False, first_pause=0.1, longest_pause=0.2, total_pause=0.5
)


class Breaker:
    """Opens after `failures` in a row; then lets one caller try per `rest` seconds, until one succeeds.

    It lives as long as its embedder and may be used from several threads. A caller that was let in and never reports
    back costs one rest, no more. A clock that jumps back cannot keep it open longer than one rest.
    """

    def __init__(self, *, clock: Clock, failures: int = 5, rest: float = 30.0) -> None:
        self._clock, self._limit, self._rest = clock, failures, rest
        self._failures = 0
        self._until: datetime | None = None
        self._span = timedelta(0)
        self._lock = threading.Lock()

    @property
    def is_open(self) -> bool:
        return self._until is not None

    def admit(self) -> bool:
        """Whether a request may be made now. While open, True is said to one caller per rest."""
        with self._lock:
            if self._until is None:
                return True
            left = self._until - self._clock()
            if timedelta(0) < left <= self._span:
                return False
            self._shut(self._rest)
            return True

    def succeeded(self) -> None:
        with self._lock:
            self._failures, self._until = 0, None

    def failed(self) -> None:
        """Count one failure; the last of the row opens the breaker, and a failed trial keeps it open."""
        with self._lock:
            self._failures += 1
            if self._failures >= self._limit or self._until is not None:
                self._shut(self._rest)

    def open(self, rest: float | None = None) -> None:
        """Open at once, for at least `rest` seconds: the provider said so, or asking again cannot help."""
        with self._lock:
            self._failures += 1
            self._shut(max(self._rest, min(rest or 0.0, LONGEST_REST)))

    def _shut(self, rest: float) -> None:
        self._span = timedelta(seconds=rest)
        self._until = self._clock() + self._span


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """What a model wants to read before a document and before a question."""

    document: str = ""
    query: str = ""


NO_PREFIXES: Final = Prefixes()
_PASSAGES: Final = "Represent this sentence for searching relevant passages: "
_KNOWN: Final[tuple[tuple[str, Prefixes], ...]] = (
    ("nomic-embed-text", Prefixes(document="search_document: ", query="search_query: ")),
    ("embeddinggemma", Prefixes(document="title: none | text: ", query="task: search result | query: ")),
    ("mxbai-embed-large", Prefixes(query=_PASSAGES)),
    ("bge-small-en", Prefixes(query=_PASSAGES)),
    ("bge-base-en", Prefixes(query=_PASSAGES)),
    ("bge-large-en", Prefixes(query=_PASSAGES)),
    ("multilingual-e5-small", Prefixes(document="passage: ", query="query: ")),
    ("multilingual-e5-base", Prefixes(document="passage: ", query="query: ")),
    ("multilingual-e5-large", Prefixes(document="passage: ", query="query: ")),
    ("e5-small-v2", Prefixes(document="passage: ", query="query: ")),
    ("e5-base-v2", Prefixes(document="passage: ", query="query: ")),
    ("e5-large-v2", Prefixes(document="passage: ", query="query: ")),
)


def prefixes_for(model: str) -> Prefixes:
    """The prefixes a well-known model was trained with; none for a model we do not know."""
    name = model.casefold()
    if "instruct" in name:  # these take a task description instead, which only their user can write
        return NO_PREFIXES
    return next((prefixes for part, prefixes in _KNOWN if part in name), NO_PREFIXES)


def normalised(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1; a row of zeros stays. Lengths are reckoned in doubles, so that no float32 overflows."""
    import numpy as np

    wide = matrix.astype(np.float64)
    lengths = np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    lengths[lengths == 0.0] = 1.0
    return np.asarray(wide / lengths, dtype=np.float32)
