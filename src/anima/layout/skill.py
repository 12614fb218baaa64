"""Skills: what a SKILL.md must say to stand in the catalogue.

Promise: `skill_line` gives a catalogue's line or the rule that the file breaks. Not here: reading files.
"""

from __future__ import annotations

import re

from anima.errors import BadText

_NAME = re.compile(r"[^\W_]+(?:-[^\W_]+)*\Z")


def skill_line(folder: str, path: str, matter: object) -> str:
    """One line of the catalogue from a SKILL.md's front matter. Raises BadText with the rule it breaks."""
    fields = dict(matter) if isinstance(matter, dict) else {}
    name, about = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not _NAME.match(name) or len(name) > 64 or name != name.lower():
        raise BadText(path, "its name must be 1 to 64 lower-case letters, digits and single hyphens")
    if name != folder:
        raise BadText(path, f"its name is {name!r}, but its folder is {folder!r}")
    if not isinstance(about, str) or not about.strip() or len(about) > 1024:
        raise BadText(path, "its description must have 1 to 1,024 characters")
    return f"- {name}: {' '.join(about.split())} ({path})"
