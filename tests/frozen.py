"""Text that is kept as it was when somebody last read it, in `tests/golden`.

Promise: a snapshot is compared byte by byte. With `SNAPSHOTS=write` in the environment (`make snapshots`) it is written
instead, and whoever did that reads the difference that git shows.
"""

from __future__ import annotations

import os
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"


def frozen(name: str, text: str) -> str:
    """What a snapshot holds, after it was written anew where that was asked for."""
    place = GOLDEN / name
    if os.environ.get("SNAPSHOTS") == "write":
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    return place.read_text(encoding="utf-8")
