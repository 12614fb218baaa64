"""Globs: `*` and `?` inside a name, `**` for any number of folders, nothing else.

Promise: time grows with pattern times path, never faster, and both are short. A pattern may also be laid over another
pattern; then True means that it covers everything the other covers (and False means nothing).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from anima.errors import BadPath, printable
from anima.model import DocPath, fold

Glob = tuple[str, ...]  # the folded parts between slashes


def read_glob(text: str) -> Glob:
    """A glob from an owner's text; a slash at its end means all that is in the folder. Raises ValueError."""
    folded = fold(text + "**" if text.endswith("/") else text)
    parts = tuple(folded.split("/"))
    if any("**" in part and part != "**" for part in parts):
        raise ValueError(f"{printable(text)}: ** stands alone between slashes")
    try:
        DocPath.parse(folded.replace("*", "x").replace("?", "x"))
    except BadPath as error:
        raise ValueError(f"{printable(text)}: {error.why}") from None
    return parts


def covers(glob: Sequence[str], parts: Sequence[str]) -> bool:
    """Whether a glob covers a folded path, or another glob, given by its parts."""
    return _matches(glob, parts, "**", lambda pattern, part: part != "**" and wild(pattern, part))


def wild(pattern: str, text: str) -> bool:
    """Whether `*` and `?` in a pattern cover a text, or another pattern."""
    return _matches(pattern, text, "*", lambda p, char: p == char or (p == "?" and char != "*"))


def _matches(pattern: Sequence[str], items: Sequence[str], star: str, fits: Callable[[str, str], bool]) -> bool:
    """The leftmost fit after each star is the best one, so only the last star is ever taken up again: no blow-up."""
    p = i = taken = 0
    last_star = -1
    while i < len(items):
        if p < len(pattern) and pattern[p] == star:
            last_star, taken, p = p, i, p + 1
        elif p < len(pattern) and fits(pattern[p], items[i]):
            p, i = p + 1, i + 1
        elif last_star >= 0:
            taken += 1
            p, i = last_star + 1, taken
        else:
            return False
    return all(part == star for part in pattern[p:])
