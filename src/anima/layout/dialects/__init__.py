"""The six ways a home can be laid out, and how to tell which one a folder is.

Promise: `detect` looks at names only, says why, and answers `anima` for a folder that fits none. Each module beside
this one holds one table, from that system's own description. Not here: reading a folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from anima.errors import BadConfig
from anima.layout.dialects.agentscope import AGENTSCOPE
from anima.layout.dialects.anima import ANIMA
from anima.layout.dialects.carapace import CARAPACE
from anima.layout.dialects.ironclaw import IRONCLAW
from anima.layout.dialects.nexo import NEXO
from anima.layout.dialects.openclaw import OPENCLAW
from anima.layout.table import Layout
from anima.model import fold
from anima.text.dates import day_in_name

DIALECTS: dict[str, Layout] = {
    layout.dialect: layout for layout in (ANIMA, OPENCLAW, NEXO, CARAPACE, IRONCLAW, AGENTSCOPE)
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """Which dialect a folder is, and the sentence that says why."""

    dialect: str
    why: str


def layout_for(dialect: str) -> Layout:
    """The table of a dialect. Raises BadConfig for a name that is none."""
    try:
        return DIALECTS[dialect]
    except KeyError:
        known = ", ".join(["auto", *DIALECTS])
        raise BadConfig(f"there is no dialect {dialect!r}; there are {known}") from None


def detect(names: Iterable[str]) -> Detection:
    """The dialect of a folder from the names in its first two levels; folders end with a slash."""
    seen = {fold(name) for name in names}
    for dialect, test in _TESTS:
        if why := test(seen):
            return Detection(dialect=dialect, why=why)
    return Detection(dialect="anima", why="nothing in it belongs to another dialect")


def _has(seen: set[str], *names: str) -> bool:
    return all(fold(name) in seen for name in names)


def _dated(seen: set[str], folder: str) -> bool:
    return any(name.startswith(f"{folder}/") and day_in_name(name[len(folder) + 1 :]) for name in seen)


def _carapace(seen: set[str]) -> str | None:
    if _has(seen, "memory/CORE.md"):
        return "it has memory/CORE.md"
    return "it has memory/daily/" if _has(seen, "memory/daily/") else None


def _agentscope(seen: set[str]) -> str | None:
    if _has(seen, "memory/.consolidation_state"):
        return "it has memory/.consolidation_state"
    lean = _has(seen, "AGENTS.md") and not (_has(seen, "SOUL.md") or _has(seen, "IDENTITY.md"))
    if lean and _has(seen, "agents/"):
        return "it has AGENTS.md and agents/, and no SOUL.md"
    return "it has AGENTS.md and knowledge/, and no SOUL.md" if lean and _has(seen, "knowledge/") else None


def _ironclaw(seen: set[str]) -> str | None:
    if _dated(seen, "daily"):
        return "it has dated logs in daily/"
    if _has(seen, "README.md", "MEMORY.md") and any(_has(seen, name) for name in ("context/", "daily/", "projects/")):
        return "it has README.md beside MEMORY.md, and context/, daily/ or projects/"
    return None


def _nexo(seen: set[str]) -> str | None:
    soul = _has(seen, "SOUL.md") or _has(seen, "IDENTITY.md")
    if soul and _dated(seen, "notes"):
        return "it has SOUL.md or IDENTITY.md, and dated notes in notes/"
    lean = _has(seen, "IDENTITY.md", "SOUL.md") and not _has(seen, "TOOLS.md") and not _has(seen, "memory/")
    return (
        "it has IDENTITY.md and SOUL.md with notes/ or DREAMS.md, and no TOOLS.md"
        if lean and (_has(seen, "notes/") or _has(seen, "DREAMS.md"))
        else None
    )


def _openclaw(seen: set[str]) -> str | None:
    core = _has(seen, "AGENTS.md", "SOUL.md", "TOOLS.md")
    more = [name for name in ("IDENTITY.md", "USER.md", "HEARTBEAT.md") if _has(seen, name)]
    return f"it has AGENTS.md, SOUL.md, TOOLS.md and {', '.join(more)}" if core and more else None


# The most telling first: OpenClaw's core files stand in several other layouts too.
_TESTS = (
    ("carapace", _carapace),
    ("ironclaw", _ironclaw),
    ("agentscope", _agentscope),
    ("nexo", _nexo),
    ("openclaw", _openclaw),
)
