"""The canonical state of one home: documents, ledger, logs, small state and history, and the one way to write them.

Promise: behind `Store` a folder, a database or a test's memory keeps a home; nothing above this package knows a descriptor,
a stat, a root path or `.anima`. `Store.write` is the one way to change documents: bases compared, texts, ledger record and
revision, all or nothing. A version is an opaque string: equal means unchanged. Not here: whether a change may happen (gate).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, Self

from anima.errors import BadArguments, BadText, Damaged, NoSuchSession, printable
from anima.ledger import MAX_LINE, Readable, last_line
from anima.model import Change, DocPath, Document, Entry, File, FoundFile, Source, Verdict, kept

if TYPE_CHECKING:
    from threading import Event

    from anima.ledger import Key, Ledger, Log, Record

MACHINE = ".anima"  # the machine's own folder in a home
ASIDE = "aside"  # beneath it: whatever was taken out of its place, by a repair or after a crash
TORN = f"{ASIDE}/torn"
MOST_READ = 256 * 2**20  # bytes of one file that is no document: what is larger nobody looks through
_SET_ASIDE = re.compile(rf"{re.escape(MACHINE)}/{ASIDE}/(?![^/]+/repository[^/]*/)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Changes that are written together or not at all, with the verdict that allows them. `what` and `of` name the batch in
    the ledger: an undo is of a change, an approval of a proposal, and one that was carried out before is not again."""

    changes: tuple[Change, ...]
    verdict: Verdict
    what: str = "write"
    of: str | None = None
    approver: str | None = None
    words: str = ""  # what is new, for its revision alone

    @property
    def is_log(self) -> bool:
        """Whether this is one free append: it conflicts with nobody, and gets its revision with others, later."""
        return len(self.changes) == 1 and self.changes[0].is_free


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of a batch."""

    change: str | None = None  # its number in the ledger; None where nothing changed
    revision: str | None = None
    digests: tuple[str, ...] = ()  # of each document as it stands now
    repeated: bool = False  # whether this approval was carried out before


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for one store, as whoever opens it has read from the home's configuration and layout."""

    clock: Callable[[], datetime]
    author: str  # who commits
    is_closed: Callable[[DocPath], bool]  # whether a document is closed to every writer
    history: bool = True
    unkept: tuple[str, ...] = ("sessions",)  # folders that history leaves out
    vouched: bool = True  # whether this user made the folder or trusts it
    head: Head | None = None  # where the end of the chain is noted


class Head(Protocol):
    """Keeps one (number, hash). Writing raises OSError where it cannot be."""

    def get(self) -> tuple[int, str] | None: ...
    def put(self, n: int, digest: str) -> None: ...
    def drop(self) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a commit says of itself. `author` is the agent's or owner's name; `anchor` the ledger's last record."""

    what: str  # write, undo, sweep, outside …
    actor: str
    author: str
    time: datetime
    session: str | None = None
    rule: str | None = None
    batch: str | None = None
    reason: str = ""
    words: str = ""  # what is new, where it may be told
    anchor: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """One commit, as far as it says. A commit made by a person's own git has the actor `outside`."""

    id: str
    time: datetime
    author: str
    actor: str
    subject: str
    reason: str | None = None
    session: str | None = None
    rule: str | None = None
    batch: str | None = None
    anchor: tuple[int, str] | None = None
    paths: tuple[str, ...] = ()


class OpenFile(NamedTuple):
    """A file as it stands now, read piece by piece: what is appended meanwhile is not read."""

    size: int
    mode: int
    pieces: Iterator[bytes]


def text_of(path: DocPath, data: bytes) -> str:
    """A document's text. Raises BadText for what is none."""
    try:
        return _decoded(data)
    except UnicodeDecodeError as error:
        why = f"it is not UTF-8 text (byte {error.start + 1})"
        raise BadText(path.text, why, hint="save it as UTF-8") from None


_decoded = kept(1)(bytes.decode)


@kept(2)
def blob_id(data: bytes) -> str:
    """The id git gives to a file's bytes."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


class Documents(Protocol):
    """The texts of one home, by checked path; a name is found in any case or Unicode form. Reading changes nothing."""

    def read(self, path: DocPath) -> Document:
        """The document. Raises NoSuchDocument, BadText (not UTF-8, too large, not a file) or Damaged."""

    def raw(self, path: DocPath, *, most: int) -> bytes:
        """A file's bytes, for what is no text. Raises NoSuchDocument, or BadText when it has more than `most`."""

    def exists(self, path: DocPath) -> bool:
        actual = self.actual(path)
        return actual is not None and self.kind_of(actual) == "file"

    def actual(self, path: DocPath) -> str | None:
        """How this document's path is spelt in the store; None when it is not there."""

    def spelt(self, path: DocPath) -> str:
        """The path of a document to be, in the spelling of the folders that are there."""
        folder = path.parent
        while folder:
            if (there := self.actual(DocPath.parse(folder))) is not None:
                return there + path.text[len(folder) :]
            folder = folder.rpartition("/")[0]
        return path.text

    def version(self, path: str) -> str | None:
        """What tells that a document, as spelt in the store, changed; None when it is not there. Reads nothing."""

    def versions(self) -> Mapping[str, str] | None:
        """The version of every document, where one question tells them all; else None, and each is asked for."""
        return None

    def names(self, folder: str) -> tuple[str, ...]:
        return tuple(sorted(self.raw_names(folder)))

    def raw_names(self, folder: str) -> Iterable[str]: ...  # every name in a folder, also of what is no document
    def strange(self, folder: str) -> Iterable[tuple[str, str]]:
        """(name, why) of what stands in a folder and can be no document."""
        return ()

    def bytes_of(self, path: str) -> bytes | None:
        """A file's bytes; None when it is gone. Raises Damaged for one that cannot be read, or is too large to."""
        try:
            with self.opened(path) as file:
                if file.size > MOST_READ:
                    raise Damaged(f"it has {file.size:,} bytes, which is more than anima looks through")
                return b"".join(file.pieces)
        except BadText as error:
            if self.kind_of(path) is None:
                return None
            raise Damaged(error.why.removeprefix("it ")) from None

    def opened(self, path: str) -> AbstractContextManager[OpenFile]:
        """A file, to be read piece by piece. Raises BadText for what cannot be read."""

    def kind_of(self, path: str) -> str | None:
        """What stands at a path as spelt in the store: file, folder, link or other; None for nothing."""

    def is_folder(self, actual: str) -> bool:
        return self.kind_of(actual) == "folder"

    def make_folder(self, folder: str) -> None:
        """Makes a folder that is to hold documents, where none stands."""
        return  # where a folder is there with its first file

    def list(self, folder: str = "") -> tuple[Entry, ...]: ...
    def list_all(self, folder: str = "") -> Iterator[Entry]:
        """Every file beneath a folder, in order of path."""
        for entry in sorted(self.list(folder), key=lambda entry: entry.path):
            if entry.is_folder:
                yield from self.list_all(entry.path)
            else:
                yield entry


class State(Protocol):
    """Small things the machine keeps for itself, by name: proposals, marks, lists. No document can have such a name."""

    def get(self, name: str) -> bytes | None: ...
    def put(self, name: str, data: bytes, *, only_new: bool = False) -> None:
        """Replaces it atomically and durably; with `only_new`, leaves one that is there."""

    def remove(self, name: str) -> bool: ...
    def names(self, folder: str) -> Sequence[str]: ...
    def version(self, name: str) -> str | None: ...


Mend = Callable[[bytes, bytes], bytes | None]
"""(an unfinished last line, some bytes before it) -> what completes it, or None when it is torn."""


def never_whole(tail: bytes, before: bytes) -> bytes | None:
    """The strict `Mend`: a line without its end is torn."""
    return None


class LogState(NamedTuple):
    """How a log stands. While `of` is the same it was only added to; an equal `version` means unchanged."""

    id: str
    of: str
    size: int
    version: str
    time: datetime


class OpenLog(Readable, Protocol):
    """One log that is open. Safe to share by threads; close it."""

    id: str
    logs: Logs
    replaced: int  # how often it was written anew by somebody while it was open

    def state(self) -> LogState: ...
    def size(self) -> int:
        return self.state().size

    def append(self, record: bytes, *, sync: bool) -> int:
        """Adds a record, newline and all; gives its offset. With `sync` it outlives a crash then. Raises NoSuchSession
        when the log is gone, Damaged with nothing changed."""
        if len(record) > MAX_LINE:
            raise BadArguments(f"a record has at most {MAX_LINE:,} bytes, and this one {len(record):,}")
        with self.alone() as size:
            at = self._ended(size)
            self.add(record, at)
        if sync:
            self.sync()
        return at

    def begin(self, record: bytes) -> None:
        """Adds the first record, durably. Raises BadArguments when there is one."""
        with self.alone() as size:
            if size:
                raise BadArguments(f"there is a session {self.id} already; it can be resumed")
            self.append(record, sync=True)

    def _ended(self, size: int) -> int:
        """Where the next record goes, once the last line has an end: it is completed, or put aside."""
        if not size or self.read(size - 1, size) == b"\n":
            return size
        start, tail = last_line(self, size)
        before = self.read(max(0, start - 64), start)  # by which it is known who wrote the log
        ending = self.logs.mend(tail, before) if len(tail) < MAX_LINE else b"\n"
        if ending is not None:
            self.add(ending, size)
            return size + len(ending)
        mark = hashlib.sha256(tail).hexdigest()[:12]
        self.logs.state.put(f"{TORN}/{self.id}.{start}.{mark}", tail)
        self.cut(start)
        return start

    def alone(self) -> AbstractContextManager[int]: ...  # nobody else can append inside; gives the size
    def add(self, data: bytes, at: int) -> None: ...  # puts bytes at the end, which stands at `at`; all or nothing
    def cut(self, size: int) -> None: ...
    def sync(self) -> None: ...  # everything appended so far outlives a crash when this returns
    def follow(self) -> None:
        """Reads what stands there now, should it have been written anew. Raises NoSuchSession when nothing does."""

    def rewrite(self, make: Callable[[], Iterable[bytes]]) -> None:
        """Writes the log anew, all or nothing, while nobody can append to it."""

    def close(self) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


# A log's id: a name that is one on every file system. It cannot end in `.log`, or a full log could be taken for a
# context's file.
ID = re.compile(
    r"(?!(?i:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|\Z))(?!.*\.log\Z)[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,118}[A-Za-z0-9_-])?\Z"
)


class Logs(Protocol):
    """Append-only lines of one kind, a log for each id. Reading needs no lock; writers stand in one line."""

    folder: str
    suffix: str
    mend: Mend
    state: State

    @property
    def name(self) -> str:
        """What tells these logs from others of the store."""
        return f"{self.folder}/*{self.suffix}"

    def path_of(self, id: str) -> str:
        """A log's name for people. Raises NoSuchSession for an id that can be none."""
        if not ID.match(id):
            raise NoSuchSession(f"{printable(id)}: there is no such session")
        return f"{self.folder}/{id}{self.suffix}"

    def versions(self) -> dict[str, str]:
        """The version of every log, by its id; cheap, so that thousands can be compared with what they were."""

    def look(self, id: str) -> LogState | None: ...
    def open(self, id: str) -> OpenLog: ...  # a log to read. Raises NoSuchSession or Damaged
    def append_to(self, id: str) -> OpenLog:
        """A log that is there, to read and to write. Raises NoSuchSession or Damaged."""

    def create(self, id: str) -> OpenLog:
        """A log to read and to write, made when it is not there. Raises BadArguments for an id that cannot be one."""
        if not ID.match(id):
            raise BadArguments(f"{printable(id)} cannot name a session: letters, digits, dots, dashes, 120 at most")
        return self.made(id)

    def made(self, id: str) -> OpenLog: ...
    def drop(self, id: str) -> bool: ...  # removes a log; whether there was one
    def torn(self, id: str) -> Mapping[str, bytes]:
        """What was put aside of a log, by name."""
        names = sorted(f"{TORN}/{name}" for name in self.state.names(TORN) if name.rsplit(".", 2)[0] == id)
        return {name: self.state.get(name) or b"" for name in names}

    def drop_torn(self, name: str) -> None:
        self.state.remove(name)

    def get(self, name: str) -> bytes | None:
        """A whole file beside the logs; None when it is not there or cannot be read."""

    def put(self, name: str, data: bytes) -> bool:
        """Replaces a whole file beside the logs; False when that cannot be done. For what is derived."""


Brought = tuple[str, bytes, bytes, Mapping[str, bytes | None]]
"""A revision that moves: id, person, message, and changed files, None for those that are gone."""


class History(Protocol):
    """Every version of every document, newest first."""

    def head(self) -> str | None: ...
    def log(self, path: str | None = None, *, limit: int = 50) -> list[Revision]: ...
    def show(self, revision: str, path: str) -> bytes | None: ...
    def tree(self, revision: str) -> Mapping[str, str]: ...
    def diff(self, old: str | None, new: str, path: str | None = None) -> str: ...
    def anchors(self) -> list[tuple[int, str]]: ...
    def commit(self, files: Mapping[str, bytes | None], note: Note) -> str | None:
        """A revision in which these files have these bytes (None: they are gone); None where nothing differs. An empty
        mapping makes one that only says its note."""

    def revisions(self) -> Iterator[Brought]: ...  # every revision, the oldest first
    def versions(self) -> Iterator[tuple[str, str | None, bytes]]:
        """(revision, path, bytes) of every version a revision brought, the oldest first; its message has no path."""
        for id, _, message, files in self.revisions():
            yield id, None, message.decode("utf-8", "replace").encode()
            yield from ((id, path, data) for path, data in files.items() if data is not None)

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """Everything that is kept, reachable or not, with its id: what a proof of forgetting reads."""

    def others(self) -> Sequence[str]:
        """Lines of revisions that are a person's own: `rewrite` does not carry them over."""

    def rewrite(self, clean: Callable[[str, bytes], bytes | None], message: Callable[[str], str], note: Note) -> object:
        """Puts a history in the place of this one that never held what `clean` takes out of files and `message` out of
        messages. Killed at any point, the old or the new one stands."""

    def check(self) -> list[str]: ...  # what is wrong, a sentence each; nothing when every version can be read


class Swapping(Protocol):
    """Files that stand ready to take the place of a home's, all or none."""

    def stage(self, path: str, pieces: Iterable[bytes], *, mode: int, mtime: int) -> None: ...
    @property
    def place(self) -> str: ...  # the folder in which they lie, each beneath its own path
    def begin(self, puts: Iterable[str], gone: Iterable[str], said: str) -> None:
        """From here on these files count in place of the home's own; `said` is kept in a record."""


class Whole(Protocol):
    """A home as a heap of files, which needs no ledger and no configuration: kept in an archive, put back from one, searched
    when something must go. A path is of any file of the home, its own (`census`) or whosever (`files`)."""

    name: str
    identity: str
    state: State
    snapshots: str  # the folder of the home's own

    def key(self) -> bytes: ...
    def lock(self) -> AbstractContextManager[None]: ...
    def last_record(self) -> bytes: ...
    def outside(self, folder: str) -> str: ...
    def census(self) -> tuple[list[FoundFile], list[tuple[str, str]]]: ...
    def open(self, path: str) -> AbstractContextManager[tuple[BinaryIO, int]]: ...
    def scratch(self) -> AbstractContextManager[BinaryIO]: ...
    def swapping(self) -> AbstractContextManager[Swapping]: ...
    def is_swapping(self) -> bool:
        """Whether other files count already, though not all are in their place: never where a swap is a transaction."""
        return False

    def check_space(self, sizes: Iterable[int]) -> None:
        return  # where a server says so itself, and nothing is written then

    def check_ways(self, new: Iterable[str], gone: Iterable[str], left: Sequence[tuple[str, str]]) -> None:
        """Raises Refused for what stands where a new file must go, and is not ours to move."""
        return  # where nothing stands in the way of a row

    def files(self) -> Iterator[tuple[str, int]]: ...
    def traces(self) -> Iterator[str]: ...
    def is_machinery(self, path: str) -> bool: ...
    def read(self, path: str) -> bytes | None: ...
    def replace(self, path: str, data: bytes) -> None: ...
    def drop_old_histories(self) -> None: ...
    @property
    def has_foreign_git(self) -> bool: ...

    def survey(self) -> dict[str, tuple[File, int]]:
        """Every file that is the home's own, read and hashed, with its time. Raises Damaged."""
        seen: dict[str, tuple[File, int]] = {}
        for found in self.census()[0]:
            try:
                with self.open(found.path) as (source, size):
                    digest = hashlib.file_digest(source, "sha256").hexdigest()  # type: ignore[arg-type]
                seen[found.path] = (File(found.path, size, digest, found.mode), found.mtime)
            except (FileNotFoundError, PermissionError):
                continue
            except OSError as error:
                said = f"{printable(found.path)} cannot be read ({error.strerror}); nothing was changed"
                raise Damaged(said) from None
        return seen

    def set_aside(self) -> Iterator[str]:
        """The files that were set aside, those of repositories left out: they are deleted as a whole."""
        return (path for path, _ in self.files() if _SET_ASIDE.match(path))

    def drop_set_aside(self, path: str) -> None:
        self.state.remove(path.removeprefix(f"{MACHINE}/"))


class Lineage(Protocol):
    """Where each line of a home came from, as its ledger says."""

    def knows(self, path: DocPath) -> bool: ...  # whether a document was ever written or seen
    def source(self, path: DocPath, line: str) -> Source: ...


class Store(Protocol):
    """One home's canonical state; bound to one home, and one tenant, when it is opened."""

    name: str  # for people: a folder, or an address without a password
    identity: str  # what trust in this home is bound to
    author: str  # who writes here, as a revision names them

    @property
    def documents(self) -> Documents: ...
    @property
    def state(self) -> State: ...
    @property
    def whole(self) -> Whole: ...
    def logs(self, folder: str, *, suffix: str = ".jsonl", mend: Mend = never_whole) -> Logs:
        """The logs of one folder whose names end so."""

    @property
    def begun(self) -> bool: ...  # whether anything was ever written through us here
    @property
    def key(self) -> Key: ...
    @property
    def ledger(self) -> Ledger: ...  # the ledger, begun if it was not; asking for it ends what a crash left half done
    @property
    def log(self) -> Log: ...  # the ledger's bytes, for whoever verifies or only wants to see whether it grew
    def had_ledger(self) -> bool: ...  # whether a ledger was here that is gone
    def anchors(self) -> Sequence[tuple[int, str]]:
        """The records of the ledger that are noted elsewhere, in history and out of the home's reach."""

    def need_ledger(self) -> None:
        """Raises Damaged where a ledger was here that is gone: nobody then knows which lines are trusted."""

    def finish(self) -> None: ...  # ends, or takes back, what a crash left half done
    def sweep(self) -> None: ...  # drops what was made ready for a batch, or a restore, that is over
    @property
    def provenance(self) -> Lineage: ...  # where each line came from, folded up to the ledger's end
    @property
    def history(self) -> History | None:
        """The history; None when it is switched off or broken (`history_problem` says)."""

    @property
    def history_problem(self) -> str | None: ...
    def kept_history(self) -> AbstractContextManager[History | None]:
        """The history as it stands, also where it is switched off now; None where there is none."""

    def write(self, batch: Batch) -> Written:
        """Writes a batch, all or nothing. Raises StaleWrite, Refused or Damaged with nothing changed."""

    def bring(self, path: DocPath, pieces: Iterable[bytes], verdict: Verdict, *, mode: int) -> bool:
        """Puts a file that is no document where nothing stands, whole or not at all; False where something does."""

    def check_writable(self, path: DocPath) -> None:
        """Raises Refused for a document that is not ours to write: another owner's, or where a link stands."""

    def append(self, kind: str, fields: Mapping[str, object], *, sync: bool = True) -> Record:
        """One record of another kind in the ledger."""

    def commit(self, *, reason: str = "") -> str | None:
        """Gives every change that no revision holds yet its revision; None when there is nothing."""

    def lock(self, *, patience: float = 30.0) -> AbstractContextManager[None]:
        """The home's lock; a database opens its transaction here. Raises HomeBusy."""

    def lease(self, name: str, *, patience: float = 30.0) -> AbstractContextManager[int]:
        """A lock for long work that must not hold the home's. Gives a number greater than every earlier holder's, so
        that whoever lost the lease can be told from whoever has it. Raises HomeBusy."""

    def changed(self, since: str | None) -> tuple[str, tuple[str, ...] | None]:
        """A mark for now, and the documents that changed or went since an earlier one; None where nobody can tell
        without looking at each version, as in a folder that anybody may write to."""

    def changes(self, stop: Event | None = None) -> Iterator[object]:
        """Something for each time that documents changed from outside, until `stop` is set."""

    def scratch(self, name: str, *, make: bool = False) -> str:
        """Where on this machine's disk a derived file of this name stands: it may be deleted at any time and is made
        again. With `make`, its folder is there afterwards; else nothing is touched."""

    def close(self) -> None: ...
