"""Whether a text may hold anything a reader does not see: one look, before the scan is even imported.

Promise: every character that can make the scan speak of hidden text is among these (a test goes through all of
Unicode). Not here: what such a character means; most stand in good company, and the scan tells (scan).
"""

from __future__ import annotations

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)


def may_hide(text: str) -> bool:
    """False only when nothing in the text is hidden."""
    return _UNSEEN.search(text) is not None
