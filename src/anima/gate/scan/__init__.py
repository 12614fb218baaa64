"""The scan: what a text holds that its reader should know before it is stored or shown.

Promise: findings with a place, a severity and the decoded or masked text, never a bare yes or no; hidden text, encoded
text, commanding phrases, tokens of a model's format, our own frame markers, comments, and secrets. Time grows with the
text, whatever it holds. At most 64 Ki characters of one encoded blob, 256 Ki of a text and 1,000 carriers of each sort
are decoded and read, once; a finding "unread" says where that ended.
Not here: what follows from a finding. The gate decides, by where the text came from first of all.
"""

from __future__ import annotations

import json
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from re import Pattern

from anima.gate.scan import hidden, orders, secrets
from anima.gate.scan.hidden import reveal as reveal
from anima.gate.scan.orders import FRAME_NAMES as FRAME_NAMES
from anima.gate.scan.secrets import BORDER, CROWDED, Found, masked_spans, secrets_in, strike
from anima.gate.scan.secrets import PLACEHOLDER as PLACEHOLDER
from anima.gate.scan.secrets import redact as redact
from anima.gate.scan.sights import MOST, Origins, Sighting, compiled, each_once, findings, fold, pattern_of, table
from anima.model import Finding, Severity, kept
from anima.text import INVISIBLE, may_hide, name_of, visible

CARRIERS = 1000  # hidden texts that are read in turn, at most


@kept(4)
def scan_text(text: str) -> tuple[Finding, ...]:
    """Everything the scan sees in a text, sorted by where it starts."""
    tokens, hides = each_once(text), may_hide(text)
    return findings(text, (*_plain(text, tokens, hides), *_carried(text, tokens, hides)))


def _plain(text: str, tokens: str, hides: bool | None = None) -> Iterator[Sighting]:
    """What the text says as it stands."""
    hides = may_hide(text) if hides is None else hides
    folded = fold(text, hides)
    origins = Origins(text, folded)
    # Only hidden characters can make two words one.
    words = frozenset(compiled(orders.WORDS).findall(folded if hides else fold(tokens)))
    found = list(masked_spans(text, secrets_in(text, (), tokens)))
    # With its secrets blanked, because what other findings show must not give them away; of the same length, so that
    # places stay the same.
    pieces, at = list[str](), 0
    for span in found:
        pieces += [text[at : span.start], "•" * (span.end - span.start)]
        at = span.end
    safe = "".join([*pieces, text[at:]]) if found else text
    yield from found
    yield from secrets.placeholders(text, tokens)
    yield from orders.comments(text, safe, tokens)
    yield from orders.marks(safe, folded, origins)
    yield from orders.instructions(safe, folded, origins, words)


def _carried(text: str, tokens: str, hides: bool) -> Iterator[Sighting]:
    """What the text carries out of sight, and what that says in turn."""
    if hides:
        found = hidden.messages(text)
        yield from _hidden(text, found)
        decoded = [(spot, spot.decoded) for spot in found if spot.decoded]
        for spot, said in decoded[:CARRIERS]:
            inside = f"hidden {table('hidden')['names'][spot.kind]}"
            yield from (span.moved(spot.start, spot.end, inside=inside) for span in _plain(said, each_once(said)))
        yield from (_unread(spot.start, spot.end) for spot, _ in decoded[CARRIERS : CARRIERS + 1])
    for blob in hidden.blobs(text, tokens):
        if blob.kind == hidden.UNREAD:
            yield _unread(blob.start, blob.end)
            continue
        message = f"text in {blob.kind}" if blob.whole else f"text in {blob.kind}; only its first part was decoded"
        shown = visible(redact(blob.text[:2000])[0])
        yield Sighting(blob.start, blob.end, blob.kind, Severity.NOTE, shown, message)
        yield from (
            span.moved(blob.start, blob.end, inside=blob.kind) for span in _plain(blob.text, each_once(blob.text))
        )


def _unread(start: int, end: int) -> Sighting:
    message = "too much encoded text; from here on it was not read"
    return Sighting(start, end, hidden.UNREAD, Severity.WARN, "", message)


# -- characters that nobody sees --------------------------------------------------------------------------------------------


def find_hidden(text: str) -> tuple[Finding, ...]:
    """The hidden characters of a text. Runs at every load of a document."""
    return findings(text, _hidden(text, hidden.messages(text))) if may_hide(text) else ()


def _hidden(text: str, found: Iterable[hidden.Spot]) -> Iterator[Sighting]:
    """The spots as the scan shows them. Only as many as can be listed are shown in full."""
    for number, spot in enumerate(found):
        piece = text[spot.start : min(spot.end, spot.start + 2000)]
        shown = name_of(text[spot.start])
        if number < MOST and spot.kind != hidden.BIDI:
            shown = visible(redact((spot.decoded or piece)[:2000])[0])
        elif number < MOST:
            stored, is_turned = redact(INVISIBLE.sub("", piece))[0], pattern_of("hidden", "override").search(piece)
            shown = visible(f"{stored} (displayed as: {stored[::-1]})" if is_turned else stored)
        yield Sighting(spot.start, spot.end, spot.kind, spot.severity, shown, _message(text, spot))


def _message(text: str, spot: hidden.Spot) -> str:
    if spot.decoded and spot.kind == hidden.BIDI:
        return "text that is displayed in another order than it is stored"
    if spot.decoded:
        return f"hidden text in {table('hidden')['names'][spot.kind]}"
    if spot.severity is Severity.WARN:
        return f"a stray invisible character, {unicodedata.name(text[spot.start], 'a control character').lower()}"
    return f"hidden {table('hidden')['names'][spot.kind]}"


# -- strings of JSON, as tools answer -----------------------------------------------------------------------------------


def redact_said(text: str, patterns: Sequence[Pattern[str]] = ()) -> tuple[str, tuple[Finding, ...]]:
    """As `redact`, and where the text is JSON, as tools answer, each of its strings is looked at by itself as well. Quotes,
    brackets and escapes (`contrase\\u00f1a`) can hide what stands around a secret and gives it away."""
    shown, found = redact(text, patterns)
    if any(finding.kind == CROWDED for finding in found) or not (said := _Strings(shown)).text:
        return shown, found
    secrets = secrets_in(said.text, patterns)
    is_whole = secrets == [(0, len(said.text), CROWDED)]
    inside = [(0, len(shown), CROWDED)] if is_whole else said.places(secrets)
    return strike(shown, inside), (*found, *findings(shown, masked_spans(shown, inside)))


class _Strings:
    """The strings of a text that is JSON, each behind the name it stands under, as one text; and where they stand."""

    def __init__(self, text: str) -> None:
        said, sizes, name = list[str](), list[int](), ""
        self._at: list[int] = []  # where each string would begin in the text, had its name no escapes
        self._names: list[int] = []  # how long its name is
        for literal in compiled(_LITERAL).finditer(text) if _is_json(text) else ():
            value = json.loads(literal["said"]) if "\\" in literal["said"] else literal["said"][1:-1]
            if literal["colon"]:
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


_LITERAL = r'(?P<said>"(?:[^"\\]|\\.)*+")(?P<colon>[ \t\r\n]*+:)?'  # in JSON, a string before a colon is a name
_ESCAPE = r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\."


def _is_json(text: str) -> bool:
    try:
        return text.lstrip()[:1] in ("{", "[") and json.loads(text) is not None
    except (ValueError, RecursionError):
        return False
