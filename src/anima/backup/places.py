"""Where a document of one dialect stands in another.

Promise: `planned` gives every path a place of its own; what has a role goes to where the other dialect keeps that role,
everything else stays where it is, and what would take a role it never had, or a place that is taken, goes beneath
`aside/`. Between two tables that are alike every path stays. Pure. Not here: files, and the map that leads back (export).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Protocol

from anima.errors import BadPath
from anima.layout import Layout
from anima.model import DocPath, fold
from anima.store.census import Apart

if TYPE_CHECKING:
    from anima.store import Logs

ASIDE = "aside"
# Roles that change what a file means to the agent: no file may come into one by being moved.
_STRICT = frozenset({"memory", "daily", "sessions", "agent-state", "topic", "archive"})
_FOLDERS = ("topic", "archive")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A dialect, and the folder its transcripts were configured to stand in ("" where none are kept)."""

    layout: Layout
    sessions: str = "sessions"

    @property
    def in_pairs(self) -> bool:
        """Whether each agent has a folder of its own, with two files for each session."""
        return bool(self.layout.talks) and self.sessions == "sessions"


class TranscriptHeader(Protocol):
    """What the first line of a transcript says."""

    @property
    def id(self) -> str: ...
    @property
    def agent_id(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def timestamp(self) -> str: ...


class TranscriptForm(Protocol):
    """What must be known of transcripts to move them."""

    version: int

    def header(self, line: bytes) -> TranscriptHeader | None:
        """What a first line says; None where it is no transcript's."""
        ...

    def without(
        self, lines: Iterable[bytes], holds: Callable[[str], bool], *, now: str, gone: list[int]
    ) -> Iterator[bytes]:
        """The lines that stay; the sizes of the others go into `gone`."""
        ...

    def folder(self, folder: str, suffix: str) -> Logs: ...


class TalkFile(NamedTuple):
    """A transcript by its path: whose, if the path says so, its id, and whether it is what the model still sees."""

    agent: str | None
    id: str
    folder: str
    suffix: str

    @property
    def is_context(self) -> bool:
        return self.agent is not None and self.suffix == ".jsonl"


def talk_at(path: str, table: Table) -> TalkFile | None:
    """The transcript that a path names in a dialect; None where it names none."""
    if not table.sessions:
        return None
    folder, _, name = path.rpartition("/")
    if not table.in_pairs:
        fits = fold(folder) == fold(table.sessions) and name.endswith(".jsonl")
        return TalkFile(None, name.removesuffix(".jsonl"), folder, ".jsonl") if fits else None
    found = re.fullmatch(re.escape(table.layout.talks).replace(r"\{agent\}", "([^/]+)"), folder)
    suffix = next((end for end in (".log.jsonl", ".jsonl") if name.endswith(end)), None)
    return TalkFile(found[1], name.removesuffix(suffix), folder, suffix) if found and suffix else None


def is_list(path: str, table: Table) -> bool:
    """Whether a path is the list of sessions, which is derived."""
    folder, _, name = path.rpartition("/")
    return name == "sessions.json" and talk_at(f"{folder}/x.jsonl", table) is not None


def planned(
    paths: Collection[str],
    here: Table,
    there: Table,
    *,
    agent_of: Callable[[str], str],
    fixed: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Every path of one dialect with its place in another. `agent_of` says whose a transcript is; `fixed` are places
    that are known already (where a document once came from) and go before all others."""
    fixed = fixed or {}
    if here.layout.dialect == there.layout.dialect and here.sessions == there.sessions and not fixed:
        return {path: path for path in paths}
    wanted = {path: (fixed[path], 0) if path in fixed else _place(path, here, there, agent_of) for path in paths}
    taken, given = Apart(), dict[str, str]()
    for path in sorted(paths, key=lambda path: (wanted[path][1], path)):
        place = wanted[path][0]
        given[path] = place if place and taken.take(place) else _aside(path, taken)
    return given


def way_back(places: Mapping[str, str], here: Table, there: Table, *, agent_of: Callable[[str], str]) -> dict[str, str]:
    """Which places must be written down, with where each came from, so that every one of them is found back."""
    return {
        place: path
        for path, place in places.items()
        if place != path or _place(place, there, here, agent_of)[0] != path
    }


def _place(path: str, here: Table, there: Table, agent_of: Callable[[str], str]) -> tuple[str | None, int]:
    """(where a path goes, how early it may choose); nowhere when it would come into a role it never had."""
    if talk := talk_at(path, here):
        if (talk.is_context and not there.in_pairs) or not there.sessions:
            return path, 3
        if here.in_pairs and there.in_pairs:
            return path, 1
        home = there.layout.transcripts_of(talk.agent or agent_of(path), there.sessions)
        return f"{home.folder}/{talk.id}{home.log}", 1
    role, other = _role(path, here), _role(path, there)
    gains = other in _STRICT and other != role
    place = _role_place(path, role, here.layout, there.layout)
    if place is not None and not (gains and place == path):
        return place, 1 if path == here.layout.row(role).path else 2  # of two spellings, the right one goes first
    return (None, 4) if gains else (path, 3)


def _role(path: str, table: Table) -> str:
    """What a file is in a dialect, as far as its place tells."""
    if talk_at(path, table):
        return "sessions"
    try:
        checked = DocPath.parse(path)
    except BadPath:
        return "note"
    role = table.layout.row_of(checked).role
    if role != "archive" and table.layout.date_of(checked) is not None:
        return "daily"
    return "note" if role == "daily" else role


def _role_place(path: str, role: str, here: Layout, there: Layout) -> str | None:
    """Where a role is kept in the other dialect; None for what has no role of its own there."""
    if role == "daily":
        return f"{there.daily}/{path.rpartition('/')[2]}" if fold(here.daily) != fold(there.daily) else path
    if role in ("note", "sessions") or not (here.has(role) and there.has(role)):
        return None
    old, new = here.row(role).path, there.row(role).path
    if not old or not new or old.endswith("/") != new.endswith("/"):
        return None
    if not old.endswith("/"):
        return path if fold(old) == fold(new) else new
    if role not in _FOLDERS or not path.startswith(old):  # a dialect may know a second folder of that kind
        return None if role in _FOLDERS else path
    return path if fold(old) == fold(new) else new + path[len(old) :]


def _aside(path: str, taken: Apart) -> str:
    """A free place for a file that cannot stand where it would."""
    name = path.rpartition("/")[2]
    suffix = "." + name.rpartition(".")[2] if "." in name else ""
    short = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:16] + suffix[:20]
    for n in count(1):
        folder = ASIDE if n == 1 else f"{ASIDE}-{n}"
        for place in (f"{folder}/{path}", f"{folder}/{short}"):
            with suppress(BadPath):
                if DocPath.parse(place) and taken.take(place):
                    return place
    raise AssertionError(path)
