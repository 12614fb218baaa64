"""The documents of a new home, as Markdown beside this module.

Promise: `texts` gives them in the order of the file table; only IDENTITY.md depends on the arguments, and a fresh one
says the name and emoji given and nothing else. Values are filled in as they are, so a brace in a name is just a brace.
Not here: writing them (memory), and whether a value can be read back (`prompt.fields.check`, which a caller asks first).
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from anima.errors import BadArguments

BOOTSTRAP = "BOOTSTRAP.md"  # only for a brand-new home
RUNBOOK = "README.md"  # only where the dialect has one
NAMES = ("IDENTITY.md", "SOUL.md", "USER.md", "AGENTS.md", "TOOLS.md", "HEARTBEAT.md", "MEMORY.md", BOOTSTRAP)

_NO_NAME = "_(a name that suits you)_"
_NO_EMOJI = "_(one sign to know you by)_"


def texts(name: str, emoji: str | None = None) -> dict[str, str]:
    """Path and text of each document of a new home. Raises BadArguments for a name or emoji of more than one line."""
    emoji = emoji or ""
    for what, value in (("name", name), ("emoji", emoji)):
        if value != "".join(value.splitlines()):
            raise BadArguments(f"{what} must be one line")
    here, names = Path(__file__), (*NAMES[:-1], RUNBOOK, BOOTSTRAP)
    documents = {path: here.with_name(path).read_text(encoding="utf-8") for path in names}
    before, rest = documents["IDENTITY.md"].split("{name}")  # first, so that a name that reads "{emoji}" stays a name
    between, after = rest.split("{emoji}")
    documents["IDENTITY.md"] = before + (name.strip() or _NO_NAME) + between + (emoji.strip() or _NO_EMOJI) + after
    return documents


@cache
def lines() -> frozenset[str]:
    """Every line of them: what every new home says tells nothing of anybody."""
    return frozenset(line.strip() for text in texts("").values() for line in text.split("\n"))
