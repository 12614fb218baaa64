"""A call of one of the home's own tools as a transcript keeps it: what was asked and answered, as lines to read.

Promise: pure. Secrets are struck out before anything is cut, so that no half of one stays; what is too long is cut
between two lines where there are any, and says so. What the session had read by then stands in the record, so that a
call's answer is never trusted further than the session that asked for it.
Not here: when a call is recorded (session), how a line is written (record).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

MOST = 2_000  # characters of the arguments, and of the answer
_NAME = 60
_LOOKED_AT = (4_000, 40)  # characters of a text and items of a list that are looked at
_ROOM = ((2_000, 40), (600, 20), (200, 10), (80, 5), (30, 3))  # the same, until all of it fits
_DEEP = 8
_RECEIPT = ("status", "path", "revision", "proposal", "rule")

Kept = tuple[str, dict[str, Any], str, tuple[str, ...]]


def kept(
    name: str,
    arguments: object,
    answer: Mapping[str, Any],
    *,
    read: Iterable[str],
    redact: Callable[[str], tuple[str, tuple[str, ...]]],
) -> Kept:
    """(the tool's name, the record's `call`, its content, the kinds of secrets that were taken out)."""
    whole = _small({"arguments": arguments, "answer": answer}, *_LOOKED_AT)
    text, kinds = redact(json.dumps(whole, ensure_ascii=False))
    try:
        whole = json.loads(text)
    except ValueError:  # a pattern of the owner's took a part of the frame with it
        whole = {"arguments": {}, "answer": text}
    call: dict[str, Any] = {"arguments": _fitted(whole["arguments"])[0]}
    if read := sorted(read):
        call["read"] = read
    if "status" in answer and "path" in answer:
        call["receipt"] = {key: answer[key] for key in _RECEIPT if answer.get(key) is not None}
    return str(name)[:_NAME], call, _fitted(whole["answer"])[1], kinds


def told(value: object) -> str:
    """A value of JSON as lines that a person, a model and a search can read; what says nothing is left out."""
    return "\n".join(_lines(value, ""))


def _lines(value: object, name: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            yield from _lines(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _lines(each, name)
    elif value is not None and value != "":
        said = str(value).lower() if isinstance(value, bool) else str(value)
        yield f"{name}: {said}" if name else said


def _fitted(value: Any) -> tuple[Any, str]:
    """A value of which not too much is left, and its lines."""
    small, text = value, told(value)
    for room in _ROOM:
        if len(text) <= MOST:
            break
        small = _small(value, *room)
        text = told(small)
    return small, _cut(text, MOST)


def _small(value: object, chars: int, items: int, deep: int = _DEEP) -> Any:
    """A value as JSON, whatever it was, with long texts and lists cut."""
    if value is None or isinstance(value, (bool, int)):
        return value
    if isinstance(value, Mapping) and deep:
        return {str(key)[:_NAME]: _small(each, chars, items, deep - 1) for key, each in list(value.items())[:40]}
    if isinstance(value, (list, tuple)) and deep:
        left = [f"… and {len(value) - items:,} more"] if len(value) > items else []
        return [*(_small(each, chars, items, deep - 1) for each in value[:items]), *left]
    return _cut(str(value) if isinstance(value, (str, float)) else f"({type(value).__name__})", chars)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    head = text[:most]
    return f"{head.rpartition(chr(10))[0] or head.rpartition(' ')[0] or head} … ({len(text):,} characters)"
