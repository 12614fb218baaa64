"""What an entry of the phrasebook is, and the reasons it can give."""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    reason: str
    words: str  # alternatives, separated by |
    follows: str = ""
    led_by: str = ""


OVERRIDE = "asks to drop earlier instructions"
PERSONA = "asks to become somebody else"
CONCEAL = "asks to hide something from the owner"
LEAK = "asks to send or show private text"
TRIGGER = "plants an action for later"
AUTHORITY = "claims an authority it cannot show"
REWRITE = "asks to rewrite memory or identity"
LURE = "asks to run something first"
