"""Secrets: keys and passwords that have no business in a memory, and the text without them.

Promise: `redact` leaves no finding behind, never touches a placeholder, and does the same when done twice. A finding
shows a few first characters and no more. Built-in rules read a text in linear time; the owner's own patterns are as
fast as the owner wrote them.
Not here: what becomes of a text with a secret, which is the gate's to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from re import Pattern
from typing import Any

from anima.errors import BadConfig
from anima.gate.scan import context, providers
from anima.gate.scan.lazy import lazy
from anima.gate.scan.letters import long_words, visible
from anima.gate.scan.spans import Span, findings
from anima.model import Finding, Severity

PLACEHOLDER = lazy(r"\[REDACTED:[A-Za-z0-9_-]{1,40}\]")
_LEAST_SECRET = 4
_ROUNDS = 8  # one removed secret can lay another bare
_AWS_SECRET = lazy(r"(?<![A-Za-z0-9+/=])(?=[^\s]*[a-z])(?=[^\s]*[A-Z])[A-Za-z0-9+/]{40}(?![A-Za-z0-9+/=])")
_SHORTEST_KEY = 15
_NEARBY = 400  # characters around an access key in which its secret half is looked for

Found = tuple[int, int, str]


def secrets(text: str) -> tuple[Finding, ...]:
    """The secrets of a text, masked."""
    return findings(text, spans(text))


def redact(text: str, patterns: Sequence[Pattern[str]] = ()) -> tuple[str, tuple[Finding, ...]]:
    """The text with each secret replaced by `[REDACTED:<kind>]`, and what was found, placed in the given text."""
    found = _all(text, patterns)
    if not found:
        return text, ()
    pieces, at = [], 0
    for start, end, kind in found:
        pieces += [text[at:start], f"[REDACTED:{kind}]"]
        at = end
    return "".join([*pieces, text[at:]]), findings(text, _spans(text, found))


def redact_said(text: str, patterns: Sequence[Pattern[str]] = ()) -> tuple[str, tuple[Finding, ...]]:
    """As `redact`, and where the text is JSON, as tools answer, each of its strings is looked at by itself as well.

    Quotes, brackets and escapes (`contrase\\u00f1a`) can hide what stands around a secret and gives it away.
    """
    shown, found = redact(text, patterns)
    for leaf in _leaves(text):
        for finding in redact(leaf, patterns)[1]:
            secret, kind = leaf[finding.start : finding.end], finding.kind.partition(":")[2]
            for spelt in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
                if len(spelt) >= _LEAST_SECRET and spelt in shown:
                    shown, found = shown.replace(spelt, f"[REDACTED:{kind}]"), (*found, finding)
    return shown, found


def _leaves(text: str) -> Iterator[str]:
    """The strings of a text that is JSON."""
    if text.lstrip()[:1] not in ("{", "["):
        return
    try:
        waiting: list[Any] = [json.loads(text)]
    except (ValueError, RecursionError):
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            waiting += [*value.values(), *(f"{key}: {item}" for key, item in value.items() if isinstance(item, str))]
        elif isinstance(value, list):
            waiting += value


def compile_patterns(raw: Sequence[str]) -> tuple[Pattern[str], ...]:
    """The owner's own patterns. Raises BadConfig with the pattern that is wrong and why."""
    return tuple(_compile(pattern, f"sessions.patterns[{number}]") for number, pattern in enumerate(raw))


def _compile(pattern: str, where: str) -> Pattern[str]:
    if not isinstance(pattern, str):
        raise BadConfig(f"{pattern!r} is not text", where=where)
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadConfig(f"the pattern {pattern!r} is wrong: {error}", where=where) from error
    if any(not found[0] for found in compiled.finditer("a b\n1-x")):
        raise BadConfig(f"the pattern {pattern!r} matches where there is nothing", where=where)
    return compiled


def spans(text: str) -> Iterable[Span]:
    """The secrets of a text as the scan shows them."""
    return _spans(text, _all(text, ()))


def placeholders(text: str) -> Iterator[Span]:
    """Marks that stand where a secret was struck out: harmless to read, but no words to be written back."""
    if "[REDACTED:" in text:
        for found in PLACEHOLDER.finditer(text):
            yield Span(
                *found.span(), "placeholder", Severity.NOTE, found[0], "the mark of a secret that was struck out"
            )


def _spans(text: str, found: Iterable[Found]) -> Iterator[Span]:
    for start, end, kind in found:
        yield Span(start, end, f"secret:{kind}", Severity.DANGER, masked(text[start:end]), f"a secret ({kind})")


def masked(secret: str) -> str:
    """The first characters of a secret: four of a long one, fewer of a short one."""
    return visible(secret[: min(4, len(secret) // 4)]) + "…"


def _all(text: str, patterns: Sequence[Pattern[str]]) -> list[Found]:
    """Every secret, in order, none overlapping. Each piece between placeholders and secrets is looked at by itself."""
    done: list[Found] = []
    pieces = list(_between(text, 0, len(text), (found.span() for found in PLACEHOLDER.finditer(text))))
    for _ in range(_ROUNDS):
        fresh = [(piece, _apart(_in_piece(text, *piece, patterns))) for piece in pieces]
        pieces = [
            part for piece, found in fresh if found for part in _between(text, *piece, ((a, b) for a, b, _ in found))
        ]
        done += (each for _, found in fresh for each in found)
        if not pieces:
            break
    return sorted(done)


def _between(text: str, start: int, end: int, cuts: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    for first, last in cuts:
        if first > start:
            yield start, first
        start = last
    if end > start:
        yield start, end


def _in_piece(text: str, start: int, end: int, patterns: Sequence[Pattern[str]]) -> Iterator[Found]:
    piece = text if start == 0 and end == len(text) else text[start:end]
    for first, last, kind in (*_shaped(piece), *context.in_context(piece)):
        yield start + first, start + last, kind
    for pattern in patterns:
        yield from (
            (start + found.start(), start + found.end(), "custom") for found in pattern.finditer(piece) if found[0]
        )


def _apart(found: Iterable[Found]) -> list[Found]:
    """The finds, overlapping ones as one of the kind that begins first."""
    kept: list[Found] = []
    for start, end, kind in sorted(found, key=lambda each: (each[0], -each[1])):
        if not kept or start >= kept[-1][1]:
            kept.append((start, end, kind))
        elif end > kept[-1][1]:
            kept[-1] = (kept[-1][0], end, kept[-1][2])
    return kept


def _shaped(text: str) -> Iterator[Found]:
    if "PRIVATE KEY" in text or "PuTTY" in text:
        yield from ((start, end, "private-key") for start, end in providers.private_keys(text))
    words = long_words(text, _SHORTEST_KEY)
    for shape in _possible(text, words):
        for found in shape.pattern.finditer(text):
            group = "secret" if "secret" in shape.pattern.groupindex else 0
            if not providers.is_dummy(shape.kind, found[group]):
                yield *found.span(group), shape.kind
            if shape.kind == "aws-access-key":
                yield from _aws_secrets(text, *found.span())


def _possible(text: str, words: str) -> Iterable[providers.Shape]:
    """The shapes whose signs are there."""
    signs = providers.signs_in_keys() if words else ()
    found = [shape for sign, shape in signs if sign in words]
    return dict.fromkeys(found + [shape for sign, shape in providers.signs_in_prose() if sign in text])


def _aws_secrets(text: str, start: int, end: int) -> Iterator[Found]:
    for found in _AWS_SECRET.finditer(text, max(0, start - _NEARBY), end + _NEARBY):
        yield *found.span(), "aws-secret-key"
