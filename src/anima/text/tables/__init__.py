"""Tables that come with the package: words, phrases and patterns, as TOML beside the code that reads them.

Promise: a table is read when somebody asks for it, and asked for once by each of its readers. Starting up reads none.
Not here: what a table means; its first lines say that.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[2]


def read_table(place: str, name: str) -> dict[str, Any]:
    """The table of that name in the folder `tables` of a place such as `gate/scan`."""
    return tomllib.loads((_PACKAGE / place / "tables" / f"{name}.toml").read_text(encoding="utf-8"))


def one_line(pattern: str) -> str:
    """A pattern that a table has over several lines, without the breaks and the blanks after them."""
    return re.sub(r"\n\s*", "", pattern).strip()


def word_set(text: str) -> frozenset[str]:
    """The words of a list that is written as one text."""
    return frozenset(text.split())
