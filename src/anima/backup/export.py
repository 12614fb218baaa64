"""Moving a home out: as Markdown, as lines of JSON, or as another dialect keeps it.

Promise: an export holds every regular file that is not machine state, byte for byte, and appears whole or not at all.
Where a dialect keeps files elsewhere, `.anima-export.json` in the export leads back, so that home → export → import into an
empty home of the first dialect gives the same documents. Not here: the way in (import_), where a role stands (places),
the lines of JSON (lines).
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from anima.backup.lines import MOST, FileLine, FirstLine, written
from anima.backup.places import Table, TranscriptForm, is_list, planned, talk_at, way_back
from anima.config import FILE as SETTINGS
from anima.config import Config
from anima.errors import BadArguments, BadPath, BadText, printable
from anima.layout.dialects import DIALECTS, layout_for
from anima.ledger import MAX_LINE
from anima.model import DocPath, Entry
from anima.site import Site, detected
from anima.store import Documents, OpenFile
from anima.store.census import GIT
from anima.store.folder import MACHINE
from anima.store.outside import MAP, Crate, expanded, exported_file, exported_folder, private
from anima.store.place import made_as

FORMAT = 1  # of that map
FORMATS = ("markdown", "jsonl", *DIALECTS)
Progress = Callable[[int, int], None]

_MACHINE = frozenset({MACHINE, GIT, MAP})
_DIALECT_LINE = re.compile(r"^[ \t]*dialect[ \t]*=.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export holds: how many documents, transcripts and other files, what stands elsewhere than in the home
    (place there, place here), and what was left out with the reason."""

    target: str
    format: str
    documents: int
    sessions: int
    files: int
    bytes: int
    moved: tuple[tuple[str, str], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


def table_of(site: Site) -> Table:
    return Table(layout=site.layout, sessions=site.config.sessions.dir)


# -- out of a home ------------------------------------------------------------------------------------------------------


def export(
    site: Site,
    target: str | Path | IO[bytes],
    *,
    form: TranscriptForm,
    format: str,
    sessions: bool,
    progress: Progress | None,
) -> Exported:
    """Writes everything to a folder (Markdown, or a dialect's name) or to a file or stream (jsonl)."""
    if format not in FORMATS:
        raise BadArguments(f"there is no format {printable(format)!r}; there are {', '.join(FORMATS)}")
    if not isinstance(target, str | Path) and format != "jsonl":
        raise BadArguments(f"{format} is a folder, and cannot go to a stream", hint="--format jsonl can")
    if isinstance(target, str | Path):
        target = expanded(target)
        try:
            place = target.resolve()
        except (OSError, RuntimeError, ValueError):
            raise BadArguments(f"{printable(str(target))}: this cannot be a path") from None
        if place.is_relative_to(site.store.name):
            why = f"{target} lies inside the home; an export stands beside it"
            raise BadArguments(why, hint="name a place outside the home")
    leaving = _Leaving(site, form, sessions=sessions, progress=progress)
    if format == "jsonl":
        with exported_file(target) if isinstance(target, Path) else nullcontext(target) as out:
            leaving.to_lines(out)
    else:
        assert isinstance(target, Path)
        exact = format == "markdown"
        with exported_folder(target) as crate:
            leaving.to_folder(crate, site.layout.dialect if exact else format, exact=exact)
    return leaving.told(str(target) if isinstance(target, Path) else "-", format)


class _Leaving:
    """One export as it is made."""

    def __init__(self, site: Site, form: TranscriptForm, *, sessions: bool, progress: Progress | None) -> None:
        self.site, self.table, self._form, self._progress = site, table_of(site), form, progress
        self._documents, self._dialect = site.store.documents, site.layout.dialect
        self.left_out: list[tuple[str, str]] = []
        self.entries: list[Entry] = []
        self.moved: dict[str, str] = {}
        self._counts = {"documents": 0, "sessions": 0, "files": 0, "bytes": 0}
        for found in walk(self._documents):
            if not isinstance(found, Entry):
                self.left_out.append(found)
            elif not is_list(found.path, self.table):
                is_said = site.layout.row_of(DocPath.parse(found.path)).kind == "session"
                self.entries += [found] if sessions or not is_said else []

    def told(self, target: str, format: str) -> Exported:
        moved = tuple(sorted((there, here) for there, here in self.moved.items() if there != here))
        return Exported(target=target, format=format, moved=moved, left_out=tuple(self.left_out), **self._counts)

    def to_lines(self, out: IO[bytes]) -> None:
        """To a stream; of one that is cut, the line that ends it is missing."""
        large = [entry for entry in self.entries if entry.size > MOST]
        self.left_out += [
            (entry.path, f"a line of JSON holds at most {MOST:,} bytes; a folder takes it") for entry in large
        ]
        self.entries = [entry for entry in self.entries if entry not in large]
        files = (FileLine(path, b"".join(file.pieces()), private(file.mode)) for path, file in self._opened())
        for line in written(FirstLine(self._dialect, self.table.sessions), files):
            out.write(line)
        out.flush()

    def to_folder(self, crate: Crate, dialect: str, *, exact: bool) -> None:
        there = self.table if dialect == self._dialect else replace(self.table, layout=layout_for(dialect))
        places = planned([entry.path for entry in self.entries], self.table, there, agent_of=self._agent_of)
        for path, file in self._opened():
            if path != SETTINGS or exact:
                crate.put(places[path], file.pieces(), mode=file.mode)
        self.moved = way_back(places, self.table, there, agent_of=lambda path: self.site.agent)
        if not exact:
            self._settle_dialect(crate, there)
        body = {
            "anima": "export",
            "format": FORMAT,
            "from": self._dialect,
            "dialect": there.layout.dialect,
            "sessions": self.table.sessions,
            "settings": any(entry.path == SETTINGS for entry in self.entries),
            "moved": dict(sorted(self.moved.items())),
        }
        crate.put(MAP, [(json.dumps(body, ensure_ascii=False, indent=1) + "\n").encode()], mode=0o600)

    def _opened(self) -> Iterator[tuple[str, OpenFile]]:
        """Every file, open. One that cannot be opened is left out."""
        for number, entry in enumerate(self.entries, start=1):
            try:
                with self._documents.opened(entry.path) as file:
                    is_document = entry.path.casefold().endswith(".md")
                    kind = "sessions" if talk_at(entry.path, self.table) else "documents" if is_document else "files"
                    self._counts[kind] += 1
                    self._counts["bytes"] += file.size
                    yield entry.path, file
            except BadText as error:
                self.left_out.append((entry.path, error.why))
            if self._progress:
                self._progress(number, len(self.entries))

    def _agent_of(self, path: str) -> str:
        with self._documents.opened(path) as file:
            return agent_in(file.pieces(), self._form) or self.site.agent

    def _settle_dialect(self, crate: Crate, there: Table) -> None:
        """Sees to it that the folder opens as the dialect it is: by its names, else by what its anima.toml says."""
        dialect = there.layout.dialect
        if dialect == "carapace":
            crate.store.make_folder(there.layout.daily)
        own = any(entry.path == SETTINGS for entry in self.entries)
        text = self._documents.read(DocPath.parse(SETTINGS)).text if own else None
        told = detected(crate.store, Config(), made_as(crate.store)).dialect == dialect
        if (settings := _settings(text, dialect, told)) is not None:
            crate.put(SETTINGS, [settings.encode("utf-8")], mode=0o600)


def _settings(text: str | None, dialect: str, told: bool) -> str | None:
    """An anima.toml with which a folder is opened in a dialect; None where none is needed."""
    if text is None:
        return None if told else f'dialect = "{dialect}"\n'
    if dialect_in(text) == dialect or (told and dialect_in(text) in (None, "auto")):
        return text
    head, bracket, rest = text.partition("\n[")
    line = f'dialect = "{dialect}"'
    changed = _DIALECT_LINE.sub(line, head, count=1) if _DIALECT_LINE.search(head) else f"{line}\n{head}"
    made = changed + bracket + rest
    return made if dialect_in(made) == dialect else f"{line}\n"


def dialect_in(text: str) -> str | None:
    try:
        found = tomllib.loads(text.removeprefix("\ufeff")).get("dialect")
    except tomllib.TOMLDecodeError:
        return None
    return found if isinstance(found, str) else None


def walk(store: Documents, folder: str = "") -> Iterator[Entry | tuple[str, str]]:
    """Every file beneath a folder in order of path, and (path, why) of what is not moved."""
    prefix = f"{folder}/" if folder else ""
    yield from ((prefix + name, why) for name, why in sorted(store.strange(folder)))
    hidden = sorted(name for name in store.raw_names(folder) if name.startswith("."))
    yield from (
        (prefix + name, "it is hidden, and hidden files are not moved")
        for name in hidden
        if prefix or name not in _MACHINE
    )
    for entry in sorted(store.list(folder), key=lambda entry: entry.path):
        if entry.is_folder:
            yield from walk(store, entry.path)
        else:
            yield entry


def agent_in(pieces: Iterable[bytes], form: TranscriptForm) -> str | None:
    """Whose a transcript is, by its first line; None where that does not say, or could be no folder's name."""
    held = b""
    for piece in pieces:
        held += piece
        if b"\n" in held or len(held) > MAX_LINE:
            break
    header = form.header(held.partition(b"\n")[0])
    agent = header.agent_id if header else ""
    try:
        return agent if "/" not in agent and DocPath.parse(f"agents/{agent}") else None
    except BadPath:
        return None
