"""What stays forgotten: keyed digests of phrases, so that nothing brings them back and nobody can read them there.

Promise: a phrase on the list is recognised in any text, whatever its case, punctuation, blanks and line breaks; the
file `.anima/forgotten` holds no text. Eight digests a word at most. Whoever calls `add` or `take_off` holds the home
lock. Not here: forgetting itself (forget), and who is held back by the list (write, backup, sessions).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from anima.errors import Damaged, HomeError, refuse_newer
from anima.ledger import Key
from anima.store import State
from anima.text.markdown import lines_of
from anima.text.phrases import LEAD, Runs, cut, readings, words_of

FILE = "forgotten"
FORMAT = 1


class Phrase(NamedTuple):
    """One phrase: how many words, the digest of all of them, and of the first eight where there are more; and when it was
    last forgotten, where that is known."""

    words: int
    digest: str
    lead: str = ""
    at: str = ""


class ForgottenList:
    """The list of one home. Read again whenever its file changed."""

    def __init__(self, state: State, key: Callable[[], Key], *, only: Container[str] | None = None) -> None:
        """With `only`, those phrases of it that have these digests."""
        self._state, self._key, self._only = state, key, only
        self._seen: object = None
        self._held: dict[str, Phrase] = {}
        self._runs = Runs(self._digest)

    def __len__(self) -> int:
        return len(self._list())

    def is_sound(self) -> bool:
        """Whether the list can be read, or there is none."""
        try:
            self._list()
        except (HomeError, ValueError, OverflowError):
            return False
        return True

    def phrase(self, text: str) -> Phrase | None:
        """A phrase as the list keeps it; None for one without a word."""
        words = words_of(text)
        if not words:
            return None
        return Phrase(len(words), self._digest(words), self._digest(words[:LEAD]) if len(words) > LEAD else "")

    def add(self, phrases: Iterable[str], *, at: datetime) -> int:
        """Puts phrases on the list, those that are on it once more; how many are new."""
        held, when = dict(self._list()), at.astimezone(UTC).isoformat()
        fresh = {found.digest: found._replace(at=when) for text in phrases if (found := self.phrase(text))}
        if fresh:
            self._state.put(FILE, dumped((held | fresh).values()))
        return len(fresh.keys() - held.keys())

    def take_off(self, text: str) -> None:
        """Takes off the list whatever a text holds of it: its owner wants it again."""
        found = {phrase.digest for _, _, phrase in self._matches(text)}
        if found:
            self._state.put(FILE, dumped(phrase for digest, phrase in self._list().items() if digest not in found))

    def holds(self, text: str) -> bool:
        return next(self._matches(text), None) is not None

    def hits(self, text: str) -> set[int]:
        """The numbers, from 0, of the lines of a text that hold something forgotten."""
        return {number for first, last, _ in self._matches(text) for number in range(first, last + 1)}

    def without(self, text: str) -> tuple[str, int]:
        """A text without what is forgotten, and how many lines that cost."""
        hits = self.hits(text)
        left = cut(text, hits) if hits else text
        return left, len(lines_of(text)) - len(lines_of(left))

    def _matches(self, text: str) -> Iterator[tuple[int, int, Phrase]]:
        for found in readings(text) if self._list() else ():
            yield from found.found(self._runs)

    def _digest(self, words: Sequence[str]) -> str:
        return self._key().phrase(" ".join(words))

    def _list(self) -> dict[str, Phrase]:
        seen = self._state.version(FILE)
        if seen != self._seen:
            raw = self._state.get(FILE) if seen is not None else None
            held = {} if raw is None else loaded(raw)
            self._held = {digest: p for digest, p in held.items() if self._only is None or digest in self._only}
            self._runs = Runs(self._digest)
            for phrase in self._held.values():
                self._runs.put(phrase.words, phrase.lead or phrase.digest, phrase.digest, phrase)
            self._seen = seen
        return self._held


def dumped(phrases: Iterable[Phrase]) -> bytes:
    """A list as its file holds it."""
    found = tuple(phrases)
    body = {
        "format": FORMAT,
        "phrases": [[phrase.words, phrase.digest, phrase.lead] for phrase in found],
        "at": {phrase.digest: phrase.at for phrase in found if phrase.at},
    }
    return json.dumps(body, separators=(",", ":")).encode()


def loaded(raw: bytes) -> dict[str, Phrase]:
    """The phrases of such a file, by digest. Raises Damaged, or NewerFormat."""
    try:
        found = json.loads(raw)
        refuse_newer(FILE, found["format"], FORMAT)
        if found["format"] != FORMAT:
            raise ValueError("another format")
        at = dict(found.get("at", {}))
        phrases = [
            Phrase(int(words), str(digest), str(lead), str(at.get(digest, "")))
            for words, digest, lead in found["phrases"]
        ]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged(
            "the list of what is forgotten cannot be read; nothing was written",
            hint="restore it from a backup, or say anima doctor --repair: then nothing is held back",
        ) from error
    return {phrase.digest: phrase for phrase in phrases if phrase.words > 0}
