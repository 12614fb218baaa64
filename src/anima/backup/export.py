"""Moving a home out: as Markdown, as lines of JSON, or as another dialect keeps it (docs/moving.md).

Promise: an export holds every regular file that is not machine state, byte for byte, and appears whole or not at all.
`planned` gives every path a place of its own in another dialect: what has a role goes to where that dialect keeps the
role, and what would take a role it never had, or a place that is taken, goes beneath `aside/`; `.anima-export.json`
leads back. Lines of JSON that were cut or altered raise BadText, at the latest at their end. Not here: the way in (import_).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from anima.backup.archive import MOST_FILES, Progress
from anima.config import FILE as SETTINGS
from anima.errors import BadArguments, BadConfig, BadPath, BadText, NewerFormat, printable
from anima.layout import Layout
from anima.layout.dialects import DIALECTS, dialect_of, layout_for
from anima.ledger import MAX_LINE
from anima.model import DocPath, Entry, fold
from anima.site import Site
from anima.store import MACHINE, Documents, Logs, OpenFile
from anima.store.folder import Folder
from anima.store.outside import MAP, expanded, exported_file, exported_folder, private
from anima.store.private import GIT, Apart, made_as
from anima.text.toml import edited

FORMAT = 1  # of an export: its map, and its lines
FORMATS = ("markdown", "jsonl", *DIALECTS)
MOST = 64 * 2**20  # of a file that is one line
LINE = 2 * MOST
ASIDE = "aside"
# Roles that change what a file means to the agent: no file may come into one by being moved.
_STRICT = frozenset({"memory", "daily", "sessions", "agent-state", "topic", "archive"})
_FOLDERS = ("topic", "archive")
_HIDDEN = "it is hidden, and hidden files are not moved"
_MACHINE = frozenset({MACHINE, GIT, MAP})
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


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
        with exported_folder(target) as folder:
            leaving.to_folder(folder, site.layout.dialect if exact else format, exact=exact)
    moved = tuple(sorted((there, here) for there, here in leaving.moved.items() if there != here))
    name, left = str(target) if isinstance(target, Path) else "-", tuple(leaving.left_out)
    return Exported(target=name, format=format, moved=moved, left_out=left, **leaving.counts)


class _Leaving:
    """One export as it is made."""

    def __init__(self, site: Site, form: TranscriptForm, *, sessions: bool, progress: Progress | None) -> None:
        self.site, self.table, self._form, self._progress = site, table_of(site), form, progress
        self._documents, self._dialect = site.store.documents, site.layout.dialect
        self.entries: list[Entry] = []
        self.moved: dict[str, str] = {}
        self.counts = {"documents": 0, "sessions": 0, "files": 0, "bytes": 0}
        every, self.left_out = walk(self._documents)
        for found in every:
            is_said = site.layout.row_of(DocPath.parse(found.path)).kind == "session"
            folder, _, name = found.path.rpartition("/")
            is_list = name == "sessions.json" and talk_at(f"{folder}/x.jsonl", self.table)  # which is derived
            if not is_list and (sessions or not is_said):
                self.entries.append(found)

    def to_lines(self, out: IO[bytes]) -> None:
        """To a stream; of one that is cut, the line that ends it is missing."""
        large = [entry for entry in self.entries if entry.size > MOST]
        why = f"a line of JSON holds at most {MOST:,} bytes; a folder takes it"
        self.left_out += [(entry.path, why) for entry in large]
        self.entries = [entry for entry in self.entries if entry not in large]
        files = (FileLine(path, b"".join(file.pieces), private(file.mode)) for path, file in self._opened())
        for line in written_lines(FirstLine(self._dialect, self.table.sessions), files):
            out.write(line)
        out.flush()

    def to_folder(self, folder: Folder, dialect: str, *, exact: bool) -> None:
        there = self.table if dialect == self._dialect else replace(self.table, layout=layout_for(dialect))
        places = planned([entry.path for entry in self.entries], self.table, there, agent_of=self._agent_of)
        for path, file in self._opened():
            if path != SETTINGS or exact:
                folder.fill(places[path], file.pieces, mode=private(file.mode), sync=False)
        self.moved = way_back(places, self.table, there, agent_of=lambda path: self.site.agent)
        if not exact:
            self._settle_dialect(folder, there)
        own = any(entry.path == SETTINGS for entry in self.entries)
        body = {"anima": "export", "format": FORMAT, "from": self._dialect, "dialect": there.layout.dialect}
        body |= {"sessions": self.table.sessions, "settings": own, "moved": dict(sorted(self.moved.items()))}
        made = (json.dumps(body, ensure_ascii=False, indent=1) + "\n").encode()
        folder.fill(MAP, [made], mode=0o600, sync=False)

    def _opened(self) -> Iterator[tuple[str, OpenFile]]:
        """Every file, open. One that cannot be opened is left out."""
        for number, entry in enumerate(self.entries, start=1):
            try:
                with self._documents.opened(entry.path) as file:
                    is_document = entry.path.casefold().endswith(".md")
                    kind = "sessions" if talk_at(entry.path, self.table) else "documents" if is_document else "files"
                    self.counts[kind] += 1
                    self.counts["bytes"] += file.size
                    yield entry.path, file
            except BadText as error:
                self.left_out.append((entry.path, error.why))
            if self._progress:
                self._progress(number, len(self.entries))

    def _agent_of(self, path: str) -> str:
        with self._documents.opened(path) as file:
            return agent_in(file.pieces, self._form) or self.site.agent

    def _settle_dialect(self, folder: Folder, there: Table) -> None:
        """Sees to it that the folder opens as the dialect it is: by its names, else by what its anima.toml says."""
        dialect = there.layout.dialect
        if dialect == "carapace":
            folder.make_folder(there.layout.daily)
        own = any(entry.path == SETTINGS for entry in self.entries)
        text = self._documents.read(DocPath.parse(SETTINGS)).text if own else ""
        is_told = dialect_of(made_as(folder), folder.names, folder.is_folder).dialect == dialect
        if not own and is_told:
            return
        if dialect_in(text) != dialect and not (is_told and dialect_in(text) in (None, "auto")):
            try:
                text = edited(text.removeprefix("\ufeff"), "dialect", dialect)
            except (BadConfig, tomllib.TOMLDecodeError):
                text = f'dialect = "{dialect}"\n'
        folder.fill(SETTINGS, [text.encode("utf-8")], mode=0o600, sync=False)


def dialect_in(text: str) -> str | None:
    try:
        found = tomllib.loads(text.removeprefix("\ufeff")).get("dialect")
    except tomllib.TOMLDecodeError:
        return None
    return found if isinstance(found, str) else None


def walk(store: Documents, folder: str = "") -> tuple[list[Entry], list[tuple[str, str]]]:
    """Every file beneath a folder in order of path, and (path, why) of what is not moved."""
    prefix = f"{folder}/" if folder else ""
    own = () if folder else _MACHINE
    hidden = sorted(name for name in store.raw_names(folder) if name.startswith(".") and name not in own)
    left = [*sorted(store.strange(folder)), *((name, _HIDDEN) for name in hidden)]
    entries, left = list[Entry](), [(prefix + name, why) for name, why in left]
    for entry in sorted(store.list(folder), key=lambda entry: entry.path):
        inside = walk(store, entry.path) if entry.is_folder else ([entry], [])
        entries += inside[0]
        left += inside[1]
    return entries, left


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


# -- where a document of one dialect stands in another ------------------------------------------------------------------


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
    """A transcript by its path: whose, if the path says so, and its id."""

    agent: str | None
    id: str
    folder: str
    suffix: str


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
        is_context = talk.agent is not None and talk.suffix == ".jsonl"  # what the model still sees
        if (is_context and not there.in_pairs) or not there.sessions:
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


# -- lines of JSON ------------------------------------------------------------------------------------------------------


class FirstLine(NamedTuple):
    """The dialect of the paths, and the folder of the transcripts."""

    dialect: str
    sessions: str = "sessions"


class FileLine(NamedTuple):
    """One file; its digest was right."""

    path: str
    data: bytes
    mode: int = 0o600


def written_lines(first: FirstLine, files: Iterable[FileLine]) -> Iterator[bytes]:
    """The lines of one export."""
    whole, count = hashlib.sha256(), 0
    line = _encode({"anima": "export", "format": FORMAT, **first._asdict()}).encode() + b"\n"
    for path, data, mode in files:
        yield line
        whole.update(line)
        count += 1
        rest = {"sha256": hashlib.sha256(data).hexdigest(), "mode": f"{mode:o}"}
        try:
            text = _encode({"path": path, "text": data.decode("utf-8"), **rest})
        except UnicodeDecodeError:
            text = ""
        if not text or len(text) > MOST:  # no text, or one that is nothing but escapes
            text = _encode({"path": path, "base64": base64.b64encode(data).decode("ascii"), **rest})
        line = text.encode("utf-8") + b"\n"
    yield line
    whole.update(line)
    yield _encode({"end": True, "files": count, "sha256": whole.hexdigest()}).encode() + b"\n"


def read_lines(lines: Iterable[bytes], *, name: str) -> Iterator[FirstLine | FileLine]:
    """The first line, then every file in order. `lines` end with their newline and are at most LINE bytes long. Raises
    BadText, or NewerFormat. Until the end nobody knows that all of it is what was written."""
    whole, seen, ended = hashlib.sha256(), set[str](), False
    for number, line in enumerate(lines, start=1):
        try:
            if ended:
                raise ValueError("there is more after the line that ends it")
            fields = _fields(line)
            if number == 1:
                yield _first(fields, name)
            elif fields.get("end") is True:
                if fields.get("files") != len(seen) or fields.get("sha256") != whole.hexdigest():
                    raise ValueError("the digest of the whole file is another: it was altered")
                ended = True
            else:
                found = _file(fields)
                if found.path in seen:
                    raise ValueError(f"{printable(found.path)} stands there twice")
                if len(seen) >= MOST_FILES:
                    raise ValueError(f"it holds more than {MOST_FILES:,} files, and no more are taken in at once")
                seen.add(found.path)
                yield found
        except ValueError as error:
            hint = "nothing was read from it; export the home again"
            raise BadText(name, f"line {number}: {error}", hint=hint) from None
        whole.update(line)
    if not ended:
        why = "it is cut: the line that ends it is missing, so nothing was read from it"
        raise BadText(name, why, hint="export the home again")


def _fields(line: bytes) -> dict[str, Any]:
    if not line.endswith(b"\n"):
        raise ValueError("it is cut, or longer than a line of an export")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        raise ValueError("it is not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("it is not a line of an export")
    return found


def _first(fields: dict[str, Any], name: str) -> FirstLine:
    dialect, sessions, number = fields.get("dialect"), fields.get("sessions"), fields.get("format")
    if fields.get("anima") != "export" or type(number) is not int:
        raise BadText(name, "it is not an export of a home", hint="anima export TARGET --format jsonl makes one")
    if number > FORMAT:
        raise NewerFormat(name, found=number, known=FORMAT)
    if not isinstance(dialect, str) or not isinstance(sessions, str):
        raise ValueError("it does not say which dialect it is")
    return FirstLine(dialect, sessions)


def _file(fields: dict[str, Any]) -> FileLine:
    path, text, based = fields.get("path"), fields.get("text"), fields.get("base64")
    try:
        DocPath.parse(path)  # type: ignore[arg-type]
        mode = int(str(fields.get("mode", "600")), 8) & 0o777
    except BadPath as error:
        raise ValueError(str(error)) from None
    except ValueError:
        raise ValueError("its mode is no number") from None
    try:
        if not (isinstance(text, str) and based is None) and not (isinstance(based, str) and text is None):
            raise ValueError
        data = text.encode("utf-8") if isinstance(text, str) else base64.b64decode(str(based), validate=True)
    except ValueError:
        raise ValueError("it holds neither text nor base64") from None
    if fields.get("sha256") != hashlib.sha256(data).hexdigest():
        raise ValueError(f"{printable(str(path))}: its digest is another: it was altered")
    return FileLine(str(path), data, mode)
