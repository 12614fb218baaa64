"""The values of hygiene: lines, and what is found about them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = Callable[[Sequence[str]], NDArray[np.float32]]  # one row of length one for each text

Kind = Literal["merge", "archive", "choose"]
Sameness = Literal["exact", "punctuation", "dates", "reworded", "contained", "meaning"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldLine:
    """A line of a document. Lines that should rather be kept come first in what is passed in.

    `rank` is lower for places that are kept before others (curated memory before logs); a line that is not `trusted` is
    never kept in place of one that is; one that is `fixed` stays whatever says the same. `under` is the heading that a
    line without a name of its own is about.
    """

    path: str
    number: int
    text: str
    day: date | None = None
    rank: int = 0
    trusted: bool = True
    fixed: bool = False
    under: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Twin:
    """A line that says what another says, how it is the same, and what shows it.

    `covered` tells whether the line that is kept says all of it, so that nothing is lost when this one goes.
    """

    line: ToldLine
    how: Sameness
    score: float
    evidence: str
    covered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Lines that say one thing. Kept is a trusted one, of the best place, the fullest there, or else the first."""

    keep: ToldLine
    twins: tuple[Twin, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two lines that cannot both hold. `newer` is the one of the later day, None when that is not known."""

    one: ToldLine
    other: ToldLine
    why: str
    newer: ToldLine | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """A daily log older than it should be."""

    path: str
    day: date
    age: int  # days


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Something to do, as a sentence and as what it takes: lines to take out, a document to move, or a choice.

    A choice has its two lines in `between`, and takes none out before somebody chose.
    """

    kind: Kind
    sentence: str
    keep: ToldLine | None = None
    remove: tuple[ToldLine, ...] = ()
    between: tuple[ToldLine, ...] = ()
    evidence: tuple[str, ...] = ()  # one for each line that goes; for a choice, why
    path: str = ""
    to: str = ""
