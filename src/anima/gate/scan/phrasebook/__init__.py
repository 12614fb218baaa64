"""The phrasebook: how texts try to command an agent, in nine languages.

Each entry is a reason, the words the scan looks for, what must follow them and, where it matters, what must stand
before them. In the last two a blank stands for any separator, `..` for up to five words, `...` for up to ten, `>>` for
up to ten words of the same sentence, `~` for a few characters (languages without blanks). All of it is folded like the
text before it is compared, so accents and case do not matter here. The words looked for are the rarest of each phrase:
that is what keeps the scan fast.

Promise: bounded patterns only. Not here: a claim to completeness. The gate rests on where a text came from; this marks.
"""

from __future__ import annotations

from anima.gate.scan.phrasebook.eastern import CHINESE, JAPANESE, RUSSIAN
from anima.gate.scan.phrasebook.english import ENGLISH
from anima.gate.scan.phrasebook.entry import OVERRIDE, Entry
from anima.gate.scan.phrasebook.european import FRENCH, GERMAN, ITALIAN, PORTUGUESE, SPANISH

PHRASES: tuple[Entry, ...] = (
    *ENGLISH,
    *SPANISH,
    *GERMAN,
    *FRENCH,
    *PORTUGUESE,
    *ITALIAN,
    *RUSSIAN,
    *CHINESE,
    *JAPANESE,
)

__all__ = ["OVERRIDE", "PHRASES", "Entry"]
