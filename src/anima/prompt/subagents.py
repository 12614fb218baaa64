"""Sub-agents as pages, `subagents/<id>.md` and `agents/<id>.md`: what each is for, what it may use and how far it goes.

Promise: the page's name is the sub-agent's id, whatever it says of itself; its text, without front matter, is its
instructions. A page that cannot be used is left out and said. Fields of other systems that we do not have are passed
over, and what a page asks for only narrows. Not here: running one (agent.delegates), who sees what (layout.listener).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from anima.errors import BadText, HomeError
from anima.text.markdown import front_matter

FOLDERS = ("subagents", "agents")
_ID = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,38}[a-z0-9])?\Z")
_ABOUT = 1_024
_LIMITS = {"tokens": 1_000_000, "requests": 200, "seconds": 3_600}  # what a page may ask for at most


@dataclass(frozen=True, slots=True, kw_only=True)
class Subagent:
    """A sub-agent as its page declares it. `tokens` and `requests` are for all that it does, `seconds` for one answer."""

    id: str
    path: str
    about: str
    model: str = ""  # empty: that of whoever calls it
    tools: tuple[str, ...] | None = None  # names; None: all of its scope
    isolated: bool = True
    tokens: int = 50_000
    requests: int = 20
    seconds: int = 600

    @property
    def workspace(self) -> str:
        """The folder it may write to; "" for one that shares its caller's home, where a sub-agent writes nothing."""
        return f"agents/{self.id}/workspace" if self.isolated else ""


@lru_cache(maxsize=1024)  # a page is looked at in every prompt, and seldom changes
def subagent_of(path: str, text: str) -> Subagent:
    """The sub-agent on a page. Raises BadText with what is wrong."""
    matter = front_matter(text, path)
    id, about = path.rpartition("/")[2].removesuffix(".md").casefold(), matter.get("description")
    if not _ID.match(id):
        raise BadText(path, "a sub-agent's name is up to 40 letters, digits, hyphens and underscores")
    if not isinstance(about, str) or not about.strip() or len(about) > _ABOUT:
        raise BadText(path, f"its front matter needs a description of at most {_ABOUT:,} characters")
    model = matter.get("model")
    return Subagent(
        id=id,
        path=path,
        about=" ".join(about.split()),
        model="" if model in (None, "inherit") else str(model),
        tools=_tools(path, matter.get("tools")),
        isolated=_mode(path, matter.get("workspace")) == "isolated",
        **_limits(path, matter),
    )


def _tools(path: str, raw: Any) -> tuple[str, ...] | None:
    names = [name.strip() for name in raw.split(",")] if isinstance(raw, str) else raw
    if names is None or (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        return None if names is None else tuple(filter(None, names))
    raise BadText(path, "tools is a list of names")


def _mode(path: str, raw: Any) -> str:
    mode = (raw.get("mode") if isinstance(raw, Mapping) else raw) or "isolated"
    if mode not in ("isolated", "shared"):
        raise BadText(path, "workspace is isolated or shared")
    return str(mode)


def _limits(path: str, matter: Mapping[str, Any]) -> dict[str, int]:
    given = matter.get("limits") or {}
    if not isinstance(given, Mapping) or not set(given) <= set(_LIMITS):
        raise BadText(path, f"limits has {', '.join(_LIMITS)} and nothing else")
    if matter.get("maxIters") is not None:  # AgentScope's word
        given = {"requests": matter["maxIters"], **given}
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= _LIMITS[name]:
            raise BadText(path, f"{name} is a whole number from 1 to {_LIMITS[name]:,}")
    return dict(given)


def declared(
    names: Callable[[str], Sequence[str]], text_of: Callable[[str], str]
) -> tuple[dict[str, Subagent], list[str]]:
    """The sub-agents of a home by their ids, and what is said of pages that are none. Of two with one id the first counts."""
    found, wrong = dict[str, Subagent](), list[str]()
    for folder in FOLDERS:
        for name in names(folder):
            if not name.casefold().endswith(".md") or name.startswith(("_", ".")):
                continue
            path = f"{folder}/{name}"
            try:
                page = subagent_of(path, text_of(path))
            except HomeError as error:
                wrong.append(f"sub-agent left out: {error}")
                continue
            if page.id in found:
                wrong.append(f"sub-agent left out: {path}: {found[page.id].path} has this name already")
            found.setdefault(page.id, page)
    return found, wrong
