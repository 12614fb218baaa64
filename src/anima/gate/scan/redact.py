"""Redaction: the secrets of a text as findings, and the text without them.

Promise: `redact` leaves no finding behind, never touches a placeholder (but in a text that is struck out whole, for it holds
a thousand secrets and hardly anything else), and does the same when done twice. A finding
shows a few first characters and no more. Pieces between placeholders are read at once, and only what stands around a find
is looked at again. Not here: what is a secret (secrets).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from re import Pattern

from anima.errors import BadConfig
from anima.gate.scan.secrets import BORDER, CROWDED, Found, Overcrowded, apart, found_in, own
from anima.gate.scan.sights import MOST, Sighting, compiled, findings
from anima.model import Finding, Severity
from anima.text import visible

PLACEHOLDER = re.compile(r"\[REDACTED:[A-Za-z0-9_-]{1,40}\]")
_ROUNDS = 8  # one removed secret can lay another bare
_LEAST_ROOM = 8  # that a secret needs, with what tells of it
_AROUND = 400  # characters on either side of a removed secret that are looked at again


def find_secrets(text: str) -> tuple[Finding, ...]:
    """The secrets of a text, masked."""
    return findings(text, spans(text))


def redact(text: str, patterns: Sequence[Pattern[str]] = ()) -> tuple[str, tuple[Finding, ...]]:
    """The text with each secret replaced by `[REDACTED:<kind>]`, and what was found, placed in the given text."""
    found = _all(text, patterns)
    return (_struck(text, found), findings(text, _spans(text, found))) if found else (text, ())


def _struck(text: str, found: Iterable[Found]) -> str:
    pieces, at = list[str](), 0
    for start, end, kind in found:
        pieces += (text[at:start], f"[REDACTED:{kind}]")
        at = end
    return "".join([*pieces, text[at:]])


def redact_said(text: str, patterns: Sequence[Pattern[str]] = ()) -> tuple[str, tuple[Finding, ...]]:
    """As `redact`, and where the text is JSON, as tools answer, each of its strings is looked at by itself as well.

    Quotes, brackets and escapes (`contrase\\u00f1a`) can hide what stands around a secret and gives it away.
    """
    shown, found = redact(text, patterns)
    if any(finding.kind == CROWDED for finding in found) or not (said := _Strings(shown)).text:
        return shown, found
    secrets = _all(said.text, patterns)
    is_whole = secrets == [(0, len(said.text), CROWDED)]
    inside = [(0, len(shown), CROWDED)] if is_whole else said.places(secrets)
    return (_struck(shown, inside), (*found, *findings(shown, _spans(shown, inside)))) if inside else (shown, found)


class _Strings:
    """The strings of a text that is JSON, each behind the name it stands under, as one text; and where they stand."""

    def __init__(self, text: str) -> None:
        self.text, said, sizes = "", list[str](), list[int]()
        self._at: list[int] = []  # where each string would begin in the text, had its name no escapes
        self._names: list[int] = []  # how long its name is
        name = ""
        for (value, is_name), literal in zip(_said(text), compiled(_LITERAL).finditer(text), strict=False):
            if is_name:
                name = f"{value}: "
                continue
            said.append(name + value)
            self._at.append(literal.start() + 1)
            self._names.append(len(name))
            sizes.append(len(said[-1]) + len(BORDER))
            name = ""
        self._starts = [0, *accumulate(sizes)]
        self.text = BORDER.join(said)
        escapes = list(compiled(_ESCAPE).finditer(text)) if said and "\\" in text else []
        self._escapes = [escape.start() for escape in escapes]
        self._lost = [0, *accumulate(len(escape[0]) - 1 for escape in escapes)]  # characters that the escapes cost
        self._plain = [at - lost for at, lost in zip(self._escapes, self._lost, strict=False)]

    def places(self, found: Iterable[Found]) -> list[Found]:
        """Where in the text secrets of its strings stand, however they are spelt there."""
        placed = list[Found]()
        for start, end, kind in found:
            number = bisect_right(self._starts, start) - 1
            at, shift = self._at[number], self._starts[number] + self._names[number]
            if start >= shift:
                placed.append((self._place(at, start - shift), self._place(at, end - shift), kind))
        return placed

    def _place(self, at: int, count: int) -> int:
        """The place so many characters on, an escape for one of them."""
        plain = at - self._lost[bisect_left(self._escapes, at)] + count
        return plain + self._lost[bisect_left(self._plain, plain)]


_LITERAL = r'"(?:[^"\\]|\\.)*+"'
_ESCAPE = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."


def _said(text: str) -> Iterator[tuple[str, bool]]:
    """The strings of a text that is JSON, in order, and whether each is a name."""
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        waiting: list[Iterator[tuple[str | None, object]]] = [
            iter([(None, json.loads(text, object_pairs_hook=_Named))])
        ]
    except (ValueError, RecursionError):
        return
    while waiting:
        for name, value in waiting[-1]:
            if name is not None:
                yield name, True
            if isinstance(value, str):
                yield value, False
            elif isinstance(value, list):
                waiting.append(iter(value) if isinstance(value, _Named) else iter([(None, each) for each in value]))
                break
        else:
            waiting.pop()


class _Named(list[tuple[str, object]]):
    """The members of an object of JSON, all of them, in their order."""


def compile_patterns(raw: Sequence[str]) -> tuple[Pattern[str], ...]:
    """The owner's own patterns. Raises BadConfig with the pattern that is wrong and why."""
    made = []
    for number, pattern in enumerate(raw):
        where = f"sessions.patterns[{number}]"
        if not isinstance(pattern, str):
            raise BadConfig(f"{pattern!r} is not text", where=where)
        try:
            made.append(re.compile(pattern))
        except (re.error, RecursionError, OverflowError) as error:
            raise BadConfig(f"the pattern {pattern!r} is wrong: {error}", where=where) from error
        if any(not found[0] for found in made[-1].finditer("a b\n1-x")):
            raise BadConfig(f"the pattern {pattern!r} matches where there is nothing", where=where)
    return tuple(made)


def spans(text: str) -> Iterable[Sighting]:
    """The secrets of a text as the scan shows them."""
    return _spans(text, _all(text, ()))


def placeholders(text: str) -> Iterator[Sighting]:
    """Marks that stand where a secret was struck out: harmless to read, but no words to be written back."""
    if "[REDACTED:" in text:
        for found in PLACEHOLDER.finditer(text):
            message = "the mark of a secret that was struck out"
            yield Sighting(*found.span(), "placeholder", Severity.NOTE, found[0], message)


def _spans(text: str, found: Iterable[Found]) -> Iterator[Sighting]:
    of_kind: defaultdict[str, int] = defaultdict(int)
    for start, end, kind in found:
        of_kind[kind] += 1  # no more than MOST of a kind are shown
        shown = masked(text[start:end]) if of_kind[kind] <= MOST else ""
        yield Sighting(start, end, f"secret:{kind}", Severity.DANGER, shown, f"a secret ({kind})")


def masked(secret: str) -> str:
    """The first characters of a secret: four of a long one, fewer of a short one."""
    return visible(secret[: min(4, len(secret) // 4)]) + "…"


def _all(text: str, patterns: Sequence[Pattern[str]]) -> list[Found]:
    """Every secret, in order, none overlapping. Each piece between placeholders and secrets is looked at by itself."""
    done: list[Found] = []
    marks = [found.span() for found in PLACEHOLDER.finditer(text)] if "[REDACTED:" in text else []
    pieces = _between(0, len(text), marks)
    for _ in range(_ROUNDS):
        try:
            fresh = _in_pieces(text, pieces, patterns)
        except Overcrowded:
            return [(0, len(text), CROWDED)]
        if not fresh:
            break
        done += fresh
        pieces = _laid_bare(text, pieces, fresh)
    return sorted(done)


def _between(start: int, end: int, cuts: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    found = []
    for first, last in cuts:
        if first > start:
            found.append((start, first))
        start = last
    return [*found, (start, end)] if end > start else found


def _in_pieces(text: str, pieces: list[tuple[int, int]], patterns: Sequence[Pattern[str]]) -> list[Found]:
    """The secrets of these pieces, which are read as one text."""
    if len(pieces) == 1:
        [(start, end)] = pieces
        piece = text[start:end]
        found = apart(piece, found_in(piece, patterns))
        return [(start + first, start + last, kind) for first, last, kind in found] if start else found
    joined = BORDER.join([text[start:end] for start, end in pieces])
    starts = [0, *accumulate(end - start + len(BORDER) for start, end in pieces)]
    found, number = list[Found](), 0
    for first, last, kind in apart(joined, found_in(joined, ())):
        while starts[number + 1] <= first:
            number += 1
        shift = pieces[number][0] - starts[number]
        found.append((first + shift, last + shift, kind))
    for start, end in pieces if patterns else ():
        found += ((start + first, start + last, kind) for first, last, kind in own(text[start:end], patterns))
    return apart(text, found) if patterns else found


def _laid_bare(text: str, pieces: list[tuple[int, int]], fresh: list[Found]) -> list[tuple[int, int]]:
    """What stands around the secrets that were just found: only there can another come to light."""
    found, ends, number = list[tuple[int, int]](), iter([*fresh[1:], (len(text), 0, "")]), 0
    before = 0
    for (start, end, _), (after, *_rest) in zip(fresh, ends, strict=True):
        while pieces[number][1] < end:
            number += 1
        first, last = max(pieces[number][0], before), min(pieces[number][1], after)
        if start - first >= _LEAST_ROOM and not (found and found[-1][1] == start):
            found.append(
                (_blank(text, max(first, start - _AROUND), start) if start - first > _AROUND else first, start)
            )
        if last - end >= _LEAST_ROOM:
            found.append((end, last if last - end <= 2 * _AROUND else _blank(text, end + _AROUND, last)))
        before = end
    return found


def _blank(text: str, at: int, end: int) -> int:
    """The first place from here on behind a blank, so that no word is cut in two."""
    blank = compiled(r"\s").search(text, at, min(end, at + _AROUND))
    return blank.end() if blank else at
