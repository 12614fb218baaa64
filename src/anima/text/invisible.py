"""Characters that a reader cannot see: which they are, whether a text holds one, and their visible form.

Promise: every character that can make the scan speak of hidden text is among these (a test goes through all of
Unicode), and looking costs next to nothing. Not here: what such a character means where it stands; most stand in good
company, and the scan tells (gate.scan).
"""

from __future__ import annotations

import re
import unicodedata

TAGS = "\U000e0000-\U000e007f"
SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
BIDI = "\u202a-\u202e\u2066-\u2069"
CONTROLS = "\x00-\x08\x0b\x0e-\x1f\x7f-\x9f"
ZERO_WIDTH = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
)
OTHERS = (
    "\u2028\u2029\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
ALL = f"{CONTROLS}{ZERO_WIDTH}{BIDI}{SELECTORS}{TAGS}{OTHERS}"  # the inside of a character class, as the others are
INVISIBLE = re.compile(f"[{ALL}]")
_PLAIN = bytes([9, 10, 12, 13, *range(32, 127)])


def may_hide(text: str) -> bool:
    """False only when nothing in the text is hidden. Fast, because plain ASCII is dropped first."""
    rest = text.encode("utf-8", "surrogatepass").translate(None, _PLAIN)
    return bool(rest) and INVISIBLE.search(rest.decode("utf-8", "surrogatepass")) is not None


def name_of(char: str) -> str:
    """The visible form of one invisible character."""
    return f"⟨U+{ord(char):04X}⟩"


def visible(text: str, limit: int = 400) -> str:
    """Text that is safe to print and to read: line breaks and invisible characters shown, long text cut."""
    piece = text[:limit].replace("\r\n", "\n").replace("\n", "⏎").replace("\t", " ")
    shown = INVISIBLE.sub(lambda found: name_of(found[0]), piece)
    shown = "".join(c if c.isprintable() else name_of(c) if unicodedata.category(c) != "Zs" else " " for c in shown)
    return shown if len(text) <= limit else shown + "…"
