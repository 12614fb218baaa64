"""The canonical state of one home: documents, ledger, logs, small state and history, and the one way to write them.

Promise: `Store` is the seam behind which a folder, a database or a test's memory keeps a home; nothing above this
package knows a descriptor, a stat, a root path or `.anima`. `Store.write` is the one way to change documents: bases
compared, texts, ledger record and revision, all or nothing. A version is an opaque string: equal means unchanged.
Not here: whether a change may happen (gate), and what can be deleted and made again (search).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Protocol, Self

from anima.errors import BadText, NoSuchSession, Refused, printable
from anima.ledger import Readable
from anima.model import Answer, Change, DocPath, Document, Entry, File, FoundFile, Source, Verdict

if TYPE_CHECKING:
    from threading import Event

    from anima.ledger import Key, Ledger, Log, Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Changes that are written together or not at all, with the verdict that allows them.

    `what` and `of` name the batch in the ledger (an undo is of a change, an approval of a proposal); an approval that was
    carried out before is not carried out again. `words` are for its revision alone: what is new, in a few words.
    """

    changes: tuple[Change, ...]
    verdict: Verdict
    what: str = "write"
    of: str | None = None
    approver: str | None = None
    words: str = ""

    @property
    def is_log(self) -> bool:
        """Whether this is one free append: it conflicts with nobody, and gets its revision with others, later."""
        return len(self.changes) == 1 and self.changes[0].is_free


def must_allow(verdict: Verdict) -> None:
    """Raises Refused for what the gate did not allow."""
    if verdict.answer is not Answer.ALLOW:
        raise Refused(f"the gate said {verdict.answer}: {verdict.reason}", rule=verdict.rule)


def restored_meanwhile() -> Refused:
    """Who had a home open that was restored knows another one."""
    said = "this home was restored from a snapshot while it was open here; nothing was changed"
    return Refused(said, rule="restored", hint="open it again; a server is started again")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What became of a batch: its number in the ledger (None where nothing changed), its revision, and the digest of
    each new text (None for an append). `repeated` says that this approval was carried out before."""

    change: str | None = None
    revision: str | None = None
    digests: tuple[str | None, ...] = ()
    repeated: bool = False


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


class OpenFile(Protocol):
    """A file as it stands now: what is appended meanwhile is not read."""

    size: int
    mode: int

    def pieces(self) -> Iterator[bytes]: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def text_of(path: DocPath, data: bytes) -> str:
    """A document's text. Raises BadText for what is none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        why = f"it is not UTF-8 text (byte {error.start + 1})"
        raise BadText(path.text, why, hint="save it as UTF-8") from None


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
        ...

    def names(self, folder: str) -> tuple[str, ...]:
        return tuple(sorted(self.raw_names(folder)))

    def raw_names(self, folder: str) -> Iterable[str]:
        """Every name in a folder, also of what is no document."""

    def strange(self, folder: str) -> Iterable[tuple[str, str]]:
        """(name, why) of what stands in a folder and can be no document."""

    def bytes_of(self, path: str) -> bytes | None:
        """A file's bytes; None when it is gone. Raises Damaged for one that cannot be read, or is too large to."""

    def opened(self, path: str) -> OpenFile:
        """A file, to be read piece by piece. Raises BadText for what cannot be read."""

    def kind_of(self, path: str) -> str | None:
        """What stands at a path as spelt in the store: file, folder, link or other; None for nothing."""

    def is_folder(self, actual: str) -> bool:
        return self.kind_of(actual) == "folder"

    def make_folder(self, folder: str) -> None:
        """Makes a folder that is to hold documents, where none stands."""

    def list(self, folder: str = "") -> tuple[Entry, ...]: ...

    def list_all(self, folder: str = "") -> Iterator[Entry]: ...


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
    replaced: int  # how often it was written anew by somebody while it was open

    def state(self) -> LogState: ...

    def append(self, record: bytes, *, sync: bool) -> int:
        """Adds a record, newline and all; gives its offset. With `sync` it outlives a crash then. Raises NoSuchSession
        when the log is gone, Damaged with nothing changed."""

    def begin(self, record: bytes) -> None:
        """Adds the first record, durably. Raises BadArguments when there is one."""

    def sync(self) -> None:
        """Everything appended so far outlives a crash when this returns."""

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

    def open(self, id: str) -> OpenLog:
        """A log to read. Raises NoSuchSession or Damaged."""

    def append_to(self, id: str) -> OpenLog:
        """A log that is there, to read and to write. Raises NoSuchSession or Damaged."""

    def create(self, id: str) -> OpenLog:
        """A log to read and to write, made when it is not there. Raises BadArguments for an id that cannot be one."""

    def drop(self, id: str) -> bool:
        """Removes a log; whether there was one."""

    def torn(self, id: str) -> Mapping[str, bytes]:
        """What was put aside of a log, by name."""

    def drop_torn(self, name: str) -> None: ...

    def get(self, name: str) -> bytes | None:
        """A whole file beside the logs; None when it is not there or cannot be read."""

    def put(self, name: str, data: bytes) -> bool:
        """Replaces a whole file beside the logs; False when that cannot be done. For what is derived."""


class History(Protocol):
    """Every version of every document, newest first."""

    def head(self) -> str | None: ...

    def log(self, path: str | None = None, *, limit: int = 50) -> list[Revision]: ...

    def show(self, revision: str, path: str) -> bytes | None: ...

    def tree(self, revision: str) -> Mapping[str, str]: ...

    def diff(self, old: str | None, new: str, path: str | None = None) -> str: ...

    def anchors(self) -> list[tuple[int, str]]: ...

    def commit(self, files: Mapping[str, bytes | None], note: Note) -> str | None: ...

    def versions(self) -> Iterator[tuple[str, str | None, bytes]]:
        """(revision, path, bytes) of every version a revision brought, the newest first; its message has no path."""

    def objects(self) -> Iterator[tuple[str, bytes]]:
        """Everything that is kept, reachable or not, with its id: what a proof of forgetting reads."""

    def others(self) -> Sequence[str]:
        """Lines of revisions that are a person's own: `rewrite` does not carry them over."""

    def rewrite(self, clean: Callable[[str, bytes], bytes | None], message: Callable[[str], str], note: Note) -> object:
        """Puts a history in the place of this one that never held what `clean` takes out of files and `message` out of
        messages. Killed at any point, the old or the new one stands."""

    def check(self) -> list[str]:
        """What is wrong, a sentence each; nothing when every version can be read."""


class Swapping(Protocol):
    """Files that stand ready to take the place of a home's, all or none."""

    def stage(self, path: str, pieces: Iterable[bytes], *, mode: int, mtime: int) -> None: ...
    def restamp(self, path: str, *, mode: int, mtime: int) -> None: ...
    @property
    def place(self) -> str: ...  # the folder in which they lie, each beneath its own path
    def begin(self, puts: Iterable[str], gone: Iterable[str], said: str) -> None:
        """From here on these files count in place of the home's own; `said` is kept in a record."""


class Whole(Protocol):
    """A home as a heap of files: kept in an archive, put back from one, and searched when something must go. It needs no
    ledger and no configuration. A path is of any file of the home, its own (`census`) or whosever (`files`)."""

    @property
    def name(self) -> str: ...
    @property
    def identity(self) -> str: ...
    @property
    def state(self) -> State: ...
    @property
    def snapshots(self) -> str: ...  # the folder of the home's own
    def key(self) -> bytes: ...
    def lock(self) -> AbstractContextManager[None]: ...
    def last_record(self) -> bytes: ...
    def outside(self, folder: str) -> str: ...
    def census(self) -> tuple[list[FoundFile], list[tuple[str, str]]]: ...
    def survey(self) -> dict[str, tuple[File, int]]: ...
    def open(self, path: str) -> AbstractContextManager[tuple[BinaryIO, int]]: ...
    def scratch(self) -> AbstractContextManager[BinaryIO]: ...
    def swapping(self) -> AbstractContextManager[Swapping]: ...
    def is_swapping(self) -> bool: ...
    def check_space(self, sizes: Iterable[int]) -> None: ...
    def check_ways(self, new: Iterable[str], gone: Iterable[str], left: Sequence[tuple[str, str]]) -> None: ...
    def files(self) -> Iterator[tuple[str, int]]: ...
    def traces(self) -> Iterator[str]: ...
    def is_machinery(self, path: str) -> bool: ...
    def read(self, path: str) -> bytes | None: ...
    def replace(self, path: str, data: bytes) -> None: ...
    def set_aside(self) -> Iterator[str]: ...
    def drop_set_aside(self, path: str) -> None: ...
    def names_of(self, path: str) -> int: ...
    def drop_staged(self) -> None: ...
    def drop_old_histories(self) -> None: ...
    @property
    def has_foreign_git(self) -> bool: ...


class Lineage(Protocol):
    """Where each line of a home came from, as its ledger says."""

    def knows(self, path: DocPath) -> bool:
        """Whether a document was ever written or seen."""

    def source(self, path: DocPath, line: str) -> Source: ...


class Store(Protocol):
    """One home's canonical state; bound to one home, and one tenant, when it is opened."""

    @property
    def name(self) -> str:
        """The store's name for people: a folder, or an address without a password."""

    @property
    def identity(self) -> str:
        """What trust in this home is bound to."""

    @property
    def author(self) -> str:
        """Who writes here, as a revision names them."""

    @property
    def documents(self) -> Documents: ...

    @property
    def state(self) -> State: ...

    @property
    def whole(self) -> Whole:
        """The home as a heap of files."""

    def logs(self, folder: str, *, suffix: str = ".jsonl", mend: Mend = never_whole) -> Logs:
        """The logs of one folder whose names end so."""

    @property
    def begun(self) -> bool:
        """Whether anything was ever written through us here."""

    @property
    def key(self) -> Key: ...

    @property
    def ledger(self) -> Ledger:
        """The ledger, begun if it was not; asking for it ends what a crash left half done."""

    @property
    def log(self) -> Log:
        """The ledger's bytes, for whoever verifies or only wants to see whether it grew."""

    def had_ledger(self) -> bool:
        """Whether a ledger was here that is gone."""

    def anchors(self) -> Sequence[tuple[int, str]]:
        """The records of the ledger that are noted elsewhere, in history and out of the home's reach."""

    def need_ledger(self) -> None:
        """Raises Damaged where a ledger was here that is gone: nobody then knows which lines are trusted."""

    def finish(self) -> None:
        """Ends, or takes back, what a crash left half done."""

    def sweep(self) -> None:
        """Drops texts that were made ready for a batch that is over."""

    @property
    def provenance(self) -> Lineage:
        """Where each line came from, folded up to the ledger's end."""

    @property
    def history(self) -> History | None:
        """The history; None when it is switched off or broken (`history_problem` says)."""

    @property
    def history_problem(self) -> str | None: ...

    def kept_history(self) -> AbstractContextManager[History | None]:
        """The history as it stands, also where it is switched off now; None where there is none."""

    def reset_history(self) -> None:
        """Lets go of the history that is open: it was written anew."""

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
