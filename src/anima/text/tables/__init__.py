"""Tables that come with the package: words, phrases and patterns, as TOML beside the code that reads them.

Promise: a table is read when somebody asks for it, and asked for once by each of its readers. Starting up reads none.
Not here: what a table means; its first lines say that.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[2]


def read_table(place: str, name: str) -> dict[str, Any]:
    """The table of that name in the folder `tables` of a place such as `gate/scan`."""
    return tomllib.loads((_PACKAGE / place / "tables" / f"{name}.toml").read_text(encoding="utf-8"))


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is written as one text."""
    return frozenset(text.split())
