"""Quotations: whole sentences that the owner typed, told from everything else that a message can hold.

Promise: a quotation stands word for word in one message, sentence after sentence (blanks apart), and is given back as it
stands there. Nothing is quoted from code, from text in quotation marks or behind `>`, from a message of more than 2,000
characters, or from one in which the scan finds anything. A wish to remember is told as what is to be remembered, where
that is certain. Pure. Not here: which messages are the owner's (hand).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from anima.model import Change, Origin
from anima.text import first_person, one_line, read_table, word_set

MOST = 2_000  # characters of a message; who types more has pasted it
_HOLE = "\0"
_BLOCK = re.compile(
    r"^[ \t]*(?P<fence>```|~~~)[\s\S]*?(?:^[ \t]*(?P=fence)[^\n]*$|\Z)"
    r"|^[ \t]*>.*(?:\n(?![ \t]*(?:\n|\Z)).*)*",  # with the lines that Markdown counts to it
    re.MULTILINE,
)
_INLINE = re.compile(
    r"`[^`]*(?:`|\Z)"
    r"|\"[^\"]*(?:\"|\Z)|[“„«「『][^”“»」』]*(?:[”“»」』]|\Z)|‘[^’]*(?:’|\Z)|(?<!\w)'[^'\n]*(?:'(?!\w)|$)",
    re.MULTILINE,
)
_END = re.compile(r"(?<=[.!?…])\s+(?=[^\s\W]|[\d“\"(])|(?<=[。！？])")
_SHORT = re.compile(r"(?:^|\s)(?:mr|mrs|ms|dr|prof|st|no|vs|etc|e\.g|i\.e|z\.b|bzw|sr|sra|[^\W\d_])\.$", re.IGNORECASE)


def without_blocks(text: str, hole: str = "") -> str:
    """A text without its fences and what stands behind `>`: that is somebody else's."""
    return _BLOCK.sub(hole, text)


def sentences(text: str) -> list[str | None]:
    """The sentences of a text in their order, blanks folded; None stands for one that holds what is not its writer's own."""
    own = _INLINE.sub(_HOLE, without_blocks(text.replace(_HOLE, " "), _HOLE))
    found: list[str] = []
    for line in own.split("\n"):
        parts: list[str] = []
        for part in _END.split(line):
            if parts and (_SHORT.search(parts[-1]) or part[:1].islower()):
                parts[-1] += f" {part}"
            else:
                parts.append(part)
        found += (" ".join(part.split()) for part in parts if part.strip())
    return [None if _HOLE in sentence else sentence for sentence in found]


def quotable(message: str) -> list[str | None]:
    """The sentences of a message that may be quoted."""
    from anima.gate.scan import scan_text

    return [] if len(message) > MOST or scan_text(message) else sentences(message)


def found_in(quote: str, messages: Iterable[str]) -> str | None:
    """A quotation as it stands in one of the messages; None where none of them has it."""
    wanted = sentences(quote)
    if not wanted or None in wanted:
        return None
    for message in messages:
        there = quotable(message)
        for start in range(len(there) - len(wanted) + 1):
            run = [sentence or "" for sentence in there[start : start + len(wanted)]]
            if run == wanted or [*run[:-1], run[-1].removesuffix(".")] == wanted:
                return " ".join(run)
    return None


def told(words: str) -> str:
    """What a user said, as a line of memory. One sentence that asks to remember something is that something, and without
    a speaker where nobody is spoken of or to; of all else a line says that they said it."""
    found = sentences(words)
    asked = _request().match(words) if len(found) == 1 else None
    fact = words[asked.end() :].strip() if asked else ""
    if not fact:
        return f"User: {words}"
    fact = fact[:1].upper() + fact[1:] if fact.split()[0].islower() else fact
    addressed = not word_set(_table()["addressed"]).isdisjoint(re.findall(r"[^\W\d_]+", fact.casefold()))
    return f"User: {fact}" if addressed or first_person(fact) else fact


@cache
def _table() -> dict[str, Any]:
    return read_table("sessions", "worth")


@cache
def _request() -> re.Pattern[str]:
    return re.compile(one_line(_table()["request"]), re.IGNORECASE)


def quoted(change: Change) -> Change:
    """A change that says nothing but what the owner typed: it is theirs, whatever else was read."""
    return replace(change, origin=Origin.OWNER, taint=frozenset())
