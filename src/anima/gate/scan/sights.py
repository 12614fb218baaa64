"""Sights: what the parts of the scan see, before they become findings with line numbers; and the folded text they read.

Promise: `fold` maps each character on its own, so a place in the folded text can be traced back to the original.
Findings come out sorted, at most `MOST` of each kind, and the last of a kind says how many were left out: one kind in
great number cannot crowd out another. A pattern is compiled when first used. Not here: what counts as a finding.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache, partial
from itertools import chain
from typing import AnyStr, NamedTuple

from anima.model import Finding, Severity
from anima.text import INVISIBLE, may_hide, one_line, pieces, rare, read_table


@cache
def _lookalikes() -> dict[str, str]:
    """Characters of other scripts that look like a Latin letter, with the letter."""
    return {other: latin for latin, others in table("lookalikes").items() for other in others}


class _Folds(dict[int, str]):
    """A table for `str.translate` that works out each character once."""

    def __missing__(self, code: int) -> str:
        char, latin = chr(code), _lookalikes()
        plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", char).casefold())
        folded = "".join(latin.get(c, c) for c in plain if unicodedata.category(c) != "Mn")
        self[code] = "" if INVISIBLE.match(char) else latin.get(char, folded)
        return self[code]


_FOLDS = _Folds()
_LONG = 10_000  # characters from which a text is folded by what is rare in it
_FEW = 32  # characters that change, each of which is replaced by itself
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_ENOUGH = 500_000  # characters that show whether most lines of a text are unlike
_IN_NUMBERS = bytes(range(33, 65))  # digits, and signs that can stand with them
LEAST_KEY = 15  # characters of a word that can be a key, or text that is encoded


def each_once(text: str) -> str:
    """The words between the blanks of a text, each once and on a line of its own: what none of them holds is nowhere. Of a
    long text, plain numbers may stand there as zeros."""
    parts = (text,) if len(text) < 100_000 else pieces(_unlike(text))
    return "\n".join(set(chain.from_iterable(map(str.split, parts))))


def _unlike(text: str) -> str:
    """One line for all that differ in their digits alone; but every line that has digits in something else than a number."""
    one, lines, size = set[bytes](), 1, 0
    for piece in pieces(text):
        found = piece.encode("utf-8", "surrogatepass").translate(_ZEROS).split(b"\n")
        one.update(found)
        lines, size = lines + len(found) - 1, size + len(piece)
        if 2 * len(one) > lines and size >= min(len(text), _ENOUGH):
            return text
    named = set[bytes]()
    for kind in one:
        numbered = [word for word in kind.split() if b"0" in word]
        if any(len(word) >= LEAST_KEY or word.translate(None, _IN_NUMBERS) for word in numbered):
            named.add(kind)
    raw = text.encode("utf-8", "surrogatepass") if named else b""
    both = zip(raw.translate(_ZEROS).split(b"\n"), raw.split(b"\n"), strict=True)
    return b"\n".join([*one, *(line for kind, line in both if kind in named)]).decode("utf-8", "surrogatepass")


def fold(text: str, hides: bool | None = None) -> str:
    """The text without case, accents, look-alikes, styled letters and invisible characters; `hides` is what `may_hide` says."""
    if text.isascii() and not (may_hide(text) if hides is None else hides):
        return text.lower()
    changed = {c: _FOLDS[ord(c)] for c in rare(text) if _FOLDS[ord(c)] != c} if len(text) > _LONG else {}
    # One after the other, so none may give what another one takes.
    if len(text) <= _LONG or len(changed) > _FEW or not changed.keys().isdisjoint("".join(changed.values())):
        return text.translate(_FOLDS)
    raw = text.encode("utf-8", "surrogatepass").lower()  # of bytes, that is ASCII alone
    for char, folded in changed.items():
        raw = raw.replace(char.encode("utf-8", "surrogatepass"), folded.encode())
    return raw.decode("utf-8", "surrogatepass")


class Origins:
    """Where the characters of a folded text stand in its original; worked out only where somebody asks."""

    def __init__(self, text: str, folded: str) -> None:
        self._text, self._same = text, text.isascii() and len(text) == len(folded)
        # What is folded to more or less than one character, by how many; where it stands, and where in the folded text.
        self._odd: dict[str, int] = {}
        self._places, self._starts = array("q"), array("q")

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The place in the original of a place in the folded text."""
        if not self._same and not self._odd:
            self._odd = {c: len(_FOLDS[ord(c)]) for c in rare(self._text) if len(_FOLDS[ord(c)]) != 1}
            self._same, shift = not self._odd, 0
            for found in re.finditer(f"[{re.escape(''.join(self._odd))}]", self._text) if self._odd else ():
                self._places.append(found.start())
                self._starts.append(found.start() + shift)
                shift += self._odd[found[0]] - 1
        return (start, end) if self._same else (self._index(start), self._index(end - 1) + 1)

    def _index(self, place: int) -> int:
        """Which character of the original gave the folded character at this place."""
        number = bisect_right(self._starts, place) - 1
        if number < 0:
            return place
        odd = self._places[number]
        return odd + max(0, place - self._starts[number] - self._odd[self._text[odd]] + 1)


MOST = 200


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


table = partial(read_table, "gate/scan")


@cache
def pattern_of(name: str, pattern: str) -> re.Pattern[str]:
    """A pattern of a table, compiled when first used: most texts never need most of them."""
    whole = one_line(table(name)["patterns"][pattern])
    return re.compile(re.sub("@([a-z]+)@", lambda found: one_line(table(name)["classes"][found[1]]), whole))


def places(text: AnyStr, sign: AnyStr, step: int = 1) -> Iterator[int]:
    """Where a sign stands in a text, one place at least so many characters behind the other."""
    at = text.find(sign)
    while at >= 0:
        yield at
        at = text.find(sign, at + step)


def on_lines(pattern: str, text: str) -> Iterator[re.Match[str]]:
    """The matches of a pattern at the beginning of lines. Line ends are what a search finds fastest."""
    ends = (line.end() for line in compiled(rf"\n(?={pattern})").finditer(text))
    return filter(None, (compiled(pattern).match(text, at) for at in chain((0,), ends)))


def around(pattern: re.Pattern[str], text: str, signs: Iterable[str], reach: int) -> Iterator[re.Match[str]]:
    """The matches of a pattern that always hold one of these signs and are no longer than this: looked for only there."""
    stop = start = 0
    for at in sorted(at for sign in signs for at in places(text, sign)):
        if at - reach > stop:
            yield from pattern.finditer(text, start, stop)
            start = at - reach
        stop = at + reach
    yield from pattern.finditer(text, start, stop)


class Sighting(NamedTuple):
    start: int
    end: int
    kind: str
    severity: Severity
    shown: str
    message: str

    def moved(self, start: int, end: int, *, inside: str) -> Sighting:
        """The same sight, found in text that was decoded from another place."""
        return self._replace(start=start, end=end, message=f"{self.message} (in {inside})")


def findings(text: str, spans: Iterable[Sighting]) -> tuple[Finding, ...]:
    """The spans as findings, sorted by where they start."""
    by_kind: dict[str, list[Sighting]] = {}
    for span in spans:
        by_kind.setdefault(span.kind, []).append(span)
    kept: list[Sighting] = []
    for same in by_kind.values():
        if len(same) > MOST:  # the first and worst, and for the rest a line that counts them
            by_weight = sorted(same, key=lambda span: (-span.severity, span.start))
            same, rest = by_weight[: MOST - 1], by_weight[MOST - 1 :]
            message = f"{len(rest)} further findings of this kind are not listed"
            same += [min(rest)._replace(severity=rest[0].severity, shown=f"{len(rest)} more", message=message)]
        kept += same
    found, line, at = list[Finding](), 1, 0
    for span in sorted(kept):
        line, at = line + text.count("\n", at, span.start), max(at, span.start)
        last = line + text.count("\n", span.start, max(span.start, span.end - 1))
        found.append(Finding(**span._asdict(), line=line, last=last))
    return tuple(found)
