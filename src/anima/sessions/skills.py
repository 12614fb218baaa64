"""Skills as an agent uses them: opened when one is needed, and drafted.

Promise: what is opened has a front matter that holds to the format, and is seen as its listener sees it; nothing of it is
ever run. A draft is a document like any other on the road in, and stands in no catalogue until the owner moves it there.
Not here: the catalogue (prompt.gather), what the format says (layout), whose words they are (hand).
"""

from __future__ import annotations

import json
from collections.abc import Callable

from anima.errors import BadArguments, BadText
from anima.layout import skill_line
from anima.model import DocPath
from anima.store import Documents
from anima.text.markdown import front_matter

FOLDER, DRAFTS, PAGE = "skills", "skills/_drafts", "SKILL.md"
MOST_FILES = 100


def opened(seen: Callable[[str], tuple[DocPath, str]], name: str, file: str) -> tuple[DocPath, str]:
    """A file of a skill, as its listener sees it. Raises BadArguments where the skill is none, NoSuchDocument without one."""
    path = f"{FOLDER}/{name}/{PAGE}"
    page = seen(path)
    try:
        skill_line(name.rpartition("/")[2], path, front_matter(page[1], path))
    except BadText as error:
        raise BadArguments(f"skill_read: {error}") from None
    return page if file == PAGE else seen(f"{FOLDER}/{name}/{file}")


def files(documents: Documents, name: str) -> list[str]:
    """What a skill has beside its page, by names that `skill_read` takes."""
    folder = documents.actual(DocPath.parse(f"{FOLDER}/{name}")) or f"{FOLDER}/{name}"
    found = sorted(entry.path[len(folder) + 1 :] for entry in documents.list_all(folder))
    return [path for path in found if path != PAGE][:MOST_FILES]


def draft(name: str, description: str, body: str) -> tuple[DocPath, str]:
    """Where a draft goes, and its page. Raises BadArguments for what is no skill."""
    path = DocPath.parse(f"{DRAFTS}/{name}/{PAGE}")
    about = " ".join(description.split())
    try:
        skill_line(name, path.text, {"name": name, "description": about})
    except BadText as error:
        raise BadArguments(f"skill_draft: {error}") from None
    return path, f"---\nname: {name}\ndescription: {json.dumps(about, ensure_ascii=False)}\n---\n\n{body.strip()}\n"
