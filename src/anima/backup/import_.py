"""Moving into a home: from an export, from a folder of another dialect, from any tree of Markdown.

Promise: documents go by the one road; nothing is overwritten unless told to; what was forgotten stays so; what is not taken is
named with the reason. A file of lines is read to its end, and checked, before anything is written. An import that was
stopped has done whole batches, and running it again finishes it. Not here: the way out, and where a role
stands (export).
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import IO, Any, NamedTuple

from anima.backup import export
from anima.backup.archive import Progress
from anima.backup.export import FileLine, Table, TranscriptForm
from anima.config import FILE as SETTINGS
from anima.errors import BadArguments, BadInput, BadPath, BadText, NewerFormat, NotFound, Refused, printable
from anima.gate import judge_file
from anima.layout import UNREVIEWED, Policy, is_unreviewed
from anima.layout.dialects import DIALECTS, dialect_of, layout_for
from anima.ledger import MAX_LINE
from anima.memory import IMPORT, WHOLE, name_of
from anima.memory.write import Writer, owners, scan_added
from anima.model import MAX_BYTES, Actor, Change, DocPath, Kind, Severity, digest_of, fold
from anima.site import Site
from anima.store import MOST_READ, text_of
from anima.store.folder import Folder
from anima.store.outside import MAP, expanded, lines_in, open_file, private
from anima.store.private import made_as

_BATCH, _BATCH_BYTES = 64, 16 * 2**20
_OVERLAP = 1 << 16  # bytes of the piece before that are looked at again, for a phrase that is cut in two


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did: documents copied, those that were there already and are equal, those that differ, those that
    were replaced, and files left out with the reason. `changes` are the ledger's ids, which `undo` takes."""

    copied: tuple[str, ...]
    present: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]
    forgotten: tuple[tuple[str, int], ...] = ()  # documents that lack lines, because the owner had them forgotten
    differs: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()  # transcripts
    files: tuple[str, ...] = ()  # other files
    changes: tuple[str, ...] = ()
    doubtful: tuple[tuple[str, str], ...] = ()  # documents with what the scan warns of: prompts can reach them now
    dry_run: bool = False


class _Found(NamedTuple):
    """One file of a source. Its pieces can be had once."""

    path: str
    size: int
    mode: int
    pieces: Iterator[bytes]


class _FolderSource:
    """A folder: an export of ours, a workspace of another system, or any tree of Markdown."""

    def __init__(self, store: Folder, format: str, form: TranscriptForm) -> None:
        self._store, self._form = store, form
        self.moved: dict[str, str] = {}
        self.entries, self.left_out = export.walk(self._store)
        known = self._map()
        said = format if format in DIALECTS else None
        if known is not None and said in (None, known["dialect"]):
            self.moved = known["moved"]
            if known.get("settings") is False:  # then the export made one, so that the folder opens as what it is
                self.entries = [entry for entry in self.entries if entry.path != SETTINGS]
            self.table = Table(layout=layout_for(known["dialect"]), sessions=known["sessions"])
            self.origin: Table | None = Table(layout=layout_for(known["from"]), sessions=known["sessions"])
        else:
            with suppress(NotFound, BadInput):  # then its names tell
                said = said or export.dialect_in(self._store.read(DocPath.parse(SETTINGS)).text)
            if said is None or said not in DIALECTS:
                said = dialect_of(made_as(self._store), self._store.names, self._store.is_folder).dialect
            self.table, self.origin = Table(layout=layout_for(said)), None
        self.exact, self.paths = format == "markdown", [entry.path for entry in self.entries]

    def agent_of(self, path: str) -> str | None:
        with self._store.opened(path) as file:
            return export.agent_in(file.pieces, self._form)

    def items(self) -> Iterator[_Found]:
        for entry in self.entries:
            try:
                with self._store.opened(entry.path) as file:
                    yield _Found(entry.path, file.size, file.mode, file.pieces)
            except BadText as error:
                self.left_out.append((entry.path, error.why))

    def _map(self) -> dict[str, Any] | None:
        """The map of an export of ours; None where there is none. Raises NewerFormat, or BadText for one that is none."""
        if self._store.stat(MAP) is None:
            return None
        with self._store.opened(MAP) as file:
            if file.size > MOST_READ:
                raise BadText(MAP, "it is too large to be ours")
            raw = b"".join(file.pieces)
        try:
            found = json.loads(raw)
            number = found["format"] if found["anima"] == "export" else 0
            if type(number) is int and number > export.FORMAT:
                raise NewerFormat(MAP, found=number, known=export.FORMAT)
            names = {str(there): str(here) for there, here in found["moved"].items()}
            layout_for(found["dialect"]), layout_for(found["from"])
            return {**found, "moved": names, "sessions": str(found["sessions"])}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError, BadInput):
            hint = "remove it to import the folder as it stands"
            raise BadText(MAP, "it is not a map of an export", hint=hint) from None


class _LinesSource:
    """An export as lines of JSON. All of it is read, and checked, before anything is taken from it."""

    def __init__(self, file: IO[bytes], name: str, form: TranscriptForm) -> None:
        self._name, self._file, self._form = name, file, form
        self.moved: Mapping[str, str] = {}
        self.left_out: list[tuple[str, str]] = []
        self.origin, self.exact = None, False
        self._agents: dict[str, str | None] = {}  # of every file, and of transcripts whose they are
        for found in self._read():
            if isinstance(found, FileLine):
                is_talk = found.path.endswith(".jsonl")
                self._agents[found.path] = export.agent_in([found.data], self._form) if is_talk else None
            elif found.dialect not in DIALECTS:
                raise BadText(self._name, f"there is no dialect {printable(found.dialect)!r}")
            else:
                self.table = Table(layout=layout_for(found.dialect), sessions=found.sessions)
        self.paths = list(self._agents)

    def _read(self) -> Iterator[export.FirstLine | FileLine]:
        return export.read_lines(lines_in(self._file, most=export.LINE), name=self._name)

    def agent_of(self, path: str) -> str | None:
        return self._agents.get(path)

    def items(self) -> Iterator[_Found]:
        for found in self._read():
            if isinstance(found, FileLine):
                yield _Found(found.path, len(found.data), found.mode, iter([found.data]))


@contextmanager
def _opened(site: Site, form: TranscriptForm, source: Path, format: str) -> Iterator[_FolderSource | _LinesSource]:
    if format not in ("auto", *export.FORMATS):
        raise BadArguments(f"there is no format {printable(format)!r}; there are auto, {', '.join(export.FORMATS)}")
    try:
        is_folder, is_there, place = source.is_dir(), source.exists(), source.resolve()
    except (OSError, RuntimeError, ValueError):
        raise BadArguments(f"{printable(str(source))}: this cannot be a path") from None
    own = Path(site.store.name)
    if not is_there:
        raise NotFound(f"{source}: there is no such file or folder; nothing was taken in")
    if place == own:
        raise BadArguments(f"{source} is this home itself")
    if own.is_relative_to(place):
        raise BadArguments(f"this home lies inside {source}", hint="name the folder whose files you mean")
    if is_folder and format == "jsonl":
        raise BadArguments(f"{source} is a folder, and jsonl is a file")
    if not is_folder and format not in ("auto", "jsonl"):
        raise BadArguments(f"{source} is a file, and {format} is a folder", hint="--format jsonl reads a file")
    if is_folder:
        with closing(Folder(source)) as store:
            yield _FolderSource(store, format, form)
    else:
        with closing(open_file(source)) as file:
            yield _LinesSource(file, str(source), form)


def _places(site: Site, source: _FolderSource | _LinesSource) -> dict[str, str]:
    """Where in the home every file of a source goes: back to where it came from, and from there to its own dialect's."""
    paths, there = source.paths, export.table_of(site)

    def whose(path: str) -> str:
        return source.agent_of(path) or site.agent

    if source.exact and source.origin is None:
        return {path: path for path in paths}
    if source.origin is None:
        return export.planned(paths, source.table, there, agent_of=whose)
    fixed = {}  # the entries of a map that can be: of files that are there, to paths that are some
    for path in source.moved.keys() & {*paths}:
        with suppress(BadPath):
            fixed[path] = DocPath.parse(source.moved[path]).text
    back = export.planned(paths, source.table, source.origin, agent_of=whose, fixed=fixed)
    came = {place: path for path, place in back.items()}
    on = export.planned(list(came), source.origin, there, agent_of=lambda place: whose(came[place]))
    return {path: on[place] for path, place in back.items()}


def import_from(
    site: Site,
    source: str | Path,
    *,
    writer: Writer,
    form: TranscriptForm,
    format: str = "auto",
    dry_run: bool = False,
    replace: bool = False,
    mine: bool = False,
    files: bool = True,
    sessions: bool = True,
    progress: Progress | None = None,
) -> Imported:
    """Takes in what an export, or a folder of another system, holds. `files` and `sessions` say what beside documents.
    Unless the owner says that it is theirs (`mine`), documents arrive where nobody reviewed them yet."""
    if replace and not mine:
        raise BadArguments("only what is yours replaces what stands here", hint="say that it is: --mine, or mine=True")
    with _opened(site, form, expanded(source), format) as found:
        places, whole = _places(site, found), len(found.paths)
        began = f"{UNREVIEWED}/{IMPORT}{site.now():%Y-%m-%d-%H%M%S}"
        names = chain([began], (f"{began}-{n}" for n in count(2)))  # a folder that no other import has
        free = (each for each in names if site.store.documents.actual(DocPath.parse(each)) is None)
        aside = "" if mine else next(free)
        arriving = _Arriving(site, writer, form, aside, dry_run, replace, files=files, sessions=sessions)
        for number, item in enumerate(found.items(), start=1):
            arriving.take(item, places[item.path])
            if progress:
                progress(number, whole)
        arriving.write()
        return arriving.told(found.left_out)


@dataclass
class _Arriving:
    """One import as it goes."""

    site: Site
    writer: Writer
    form: TranscriptForm
    aside: str  # the folder in which documents wait for the owner; "" where they go to their places
    dry_run: bool
    replacing: bool
    files: bool
    sessions: bool
    done: dict[str, list[Any]] = field(default_factory=dict)
    _batch: list[Change] = field(default_factory=list)
    _keys: set[str] = field(default_factory=set)
    _folders: set[str] = field(default_factory=set)

    @cached_property
    def _waiting(self) -> frozenset[str]:
        """The names of what waits for the owner already."""
        return frozenset(entry.whole_name for entry in self.writer.unreviewed.all())

    def told(self, left_out: Iterable[tuple[str, str]]) -> Imported:
        names = ("copied", "present", "forgotten", "differs", "replaced", "sessions", "files", "changes", "doubtful")
        fields: dict[str, Any] = {name: tuple(self.done.get(name, ())) for name in names}
        return Imported(**fields, left_out=(*left_out, *self.done.get("left_out", ())), dry_run=self.dry_run)

    def _note(self, what: str, value: Any) -> None:
        self.done.setdefault(what, []).append(value)

    def take(self, item: _Found, place: str) -> None:
        """What becomes of one file. What is wrong with it alone is noted; what is wrong with the home is raised."""
        try:
            path = DocPath.parse(place)
            self._check(path)
            if talk := export.talk_at(path.text, export.table_of(self.site)):
                self._take_talk(item, path, talk)
            elif (row := self.site.layout.row_of(path)).role == "agent-state":
                self._take_file(item, path)  # what another agent keeps for itself: no document of this home's
            elif row.policy is Policy.CLOSED:
                raise BadText(path.text, "it belongs to the home's own machinery")
            elif path.is_markdown:
                self._take_document(item, path)
            else:
                self._take_file(item, path)
        except (BadInput, NotFound, Refused) as error:
            why = getattr(error, "why", None) or str(error)
            self._note("left_out", (item.path, why.removeprefix(f"{item.path}: ")))

    def _check(self, path: DocPath) -> None:
        if path.key == fold(SETTINGS):
            raise BadText(path.text, "it is configuration, which only the owner's own editor writes")
        if path.key in self._keys:
            raise BadText(path.text, "another file of that name, but for case or Unicode form, was taken before it")
        above = [path.key[:n] for n, char in enumerate(path.key) if char == "/"]
        if path.key in self._folders or not self._keys.isdisjoint(above):
            raise BadText(path.text, "a file would stand where a folder must be")
        documents = self.site.store.documents
        for folder in (DocPath.parse(path.text[:n]) for n, char in enumerate(path.text) if char == "/"):
            # What is in the way of one document is found before it could be in the way of its whole batch.
            actual = documents.actual(folder) if folder.key not in self._folders else None
            if actual is not None and documents.kind_of(actual) not in (None, "folder"):
                raise BadText(path.text, f"in the home, a link or a file stands where its folder {folder} must be")
        self._keys.add(path.key)
        self._folders.update(above)

    def _take_document(self, item: _Found, path: DocPath) -> None:
        if item.size > MAX_BYTES:
            raise BadText(path.text, f"it has {item.size:,} bytes; a document has at most {MAX_BYTES:,}")
        text = text_of(path, b"".join(item.pieces))
        if "\x00" in text:
            raise BadText(path.text, "the text holds a NUL character")
        text, lines = self.writer.forgotten.without(text)
        if lines:
            self._note("forgotten", (path.text, lines))
            if not text.strip():
                return
        now = self.site.text_of(path)
        if now == text or (self.aside and name_of(path, None, text, WHOLE) in self._waiting):
            self._note("present", path.text)
        elif now is None or self.replacing:
            self.site.store.check_writable(path)  # raises Refused for what is not ours to write
            if self.aside and not is_unreviewed(self.site.layout, path):
                path = DocPath.parse(f"{self.aside}/{path.text}")
            change = owners(path, Kind.WRITE, text, base=digest_of(now), reason="import")
            # It is the owner's own decision, so what the scan sees does not stop it; but it is said, before and after.
            for found in scan_added(now, change):
                if found.severity >= Severity.WARN:
                    self._note("doubtful", (change.path.text, f"line {found.line}: {found.message}"))
            self._batch.append(replace(change, actor=Actor.IMPORTER))
            full = len(self._batch) >= _BATCH or sum(len(each.text) for each in self._batch) >= _BATCH_BYTES
            if full or self.writer.policy.ready:  # with rules of the owner's, one must not decide for its neighbours
                self.write()
        else:
            self._note("differs", path.text)

    def write(self) -> None:
        """Writes what is waiting, all or nothing."""
        batch, self._batch = self._batch, []
        receipts = self.writer.submit(batch, what="import") if batch and not self.dry_run else ()
        for change, receipt in zip(batch, receipts or [None] * len(batch), strict=True):
            if receipt is not None and receipt.status != "written":
                self._note("left_out", (change.path.text, f"{receipt.status} by rule {receipt.rule}: {receipt.reason}"))
            else:
                self._note("replaced" if change.base else "copied", change.path.text)
        for name in dict.fromkeys(receipt.change for receipt in receipts if receipt.change):
            self._note("changes", name)

    def _take_file(self, item: _Found, path: DocPath) -> None:
        if not self.files:
            raise BadText(path.text, "only Markdown is copied")
        if (actual := self.site.store.documents.actual(path)) is not None:
            self._compare(path, actual, item.pieces)
            return
        store, digest, pieces = self.site.store, hashlib.sha256(), self._unforgotten(item.pieces, path)
        if self.dry_run:
            deque(pieces, maxlen=0)  # everything is looked at, and nothing kept
            self._note("files", path.text)
            return

        def told() -> Iterator[bytes]:
            for piece in pieces:
                digest.update(piece)
                yield piece

        # No document, so no change: it is put where nothing stands, and the ledger says that it came.
        with store.lock():
            store.finish()
            verdict = judge_file(path, self.site.layout.row_of(path), Actor.IMPORTER)
            if not store.bring(path, told(), verdict, mode=private(item.mode)):
                raise BadText(path.text, "somebody put a file there meanwhile")
            fields = {"path": path.text, "size": item.size, "digest": store.key.of(digest.hexdigest())}
            store.ledger.add("file", fields, sync=False)
        self._note("files", path.text)

    def _compare(self, path: DocPath, actual: str, pieces: Iterable[bytes]) -> None:
        with self.site.store.documents.opened(actual) as standing:
            same = _digest(standing.pieces) == _digest(pieces)
            self._note("present" if same else "differs", path.text)

    def _unforgotten(self, pieces: Iterable[bytes], path: DocPath) -> Iterator[bytes]:
        """The bytes of a file, if it holds nothing that was forgotten. Raises BadText before the last of them."""
        forgotten, before = self.writer.forgotten, b""
        for piece in pieces:
            if forgotten and forgotten.holds((before + piece).decode("utf-8", "replace")):
                raise BadText(path.text, "it holds something that you had forgotten")
            before = piece[-_OVERLAP:]
            yield piece

    def _take_talk(self, item: _Found, path: DocPath, talk: export.TalkFile) -> None:
        if not self.sessions:
            raise BadText(path.text, "it belongs to the home's own machinery")
        lines = _lines(item.pieces, path)
        first = next(lines, b"")
        lines = chain([first], lines)
        header = self.form.header(first.rstrip(b"\n"))
        if header is None and talk.agent is not None:  # AgentScope's own, beside ours
            self._take_file(item._replace(pieces=lines), path)
            return
        if header is None or header.id != talk.id:
            raise BadText(path.text, "it does not read as a transcript of that name")
        if header.version > self.form.version:
            raise NewerFormat(path.text, found=header.version, known=self.form.version)
        folder = self.form.folder(talk.folder, talk.suffix)
        folder.path_of(talk.id)
        gone: list[int] = []
        forgotten = self.writer.forgotten
        left = self.form.without(lines, forgotten.holds, now=header.timestamp, gone=gone) if forgotten else lines
        seen, store = folder.look(talk.id), self.site.store
        if seen is not None and seen.size:
            self._compare(path, folder.path_of(talk.id), left)
        elif self.dry_run:
            deque(left, maxlen=0)
            self._note("sessions", path.text)
        else:
            with store.lock():
                store.finish()
                store.ledger.add("file", {"path": path.text, "session": talk.id})  # so that nobody takes it for our own
            with folder.create(talk.id) as file:  # empty until its lines take its place, all at once
                file.rewrite(lambda: left)
            self._note("sessions", path.text)
        if gone:
            self._note("forgotten", (path.text, len(gone)))


def _lines(pieces: Iterable[bytes], path: DocPath) -> Iterator[bytes]:
    """Every line with its newline. Raises BadText for one that no transcript can hold."""
    held = b""
    for piece in pieces:
        *whole, held = (held + piece).split(b"\n")
        yield from (line + b"\n" for line in whole)
        if len(held) > MAX_LINE:
            raise BadText(path.text, f"it has a line of more than {MAX_LINE:,} bytes")
    if held:
        yield held


def _digest(pieces: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.digest()
