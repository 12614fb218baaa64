"""The words of the design as types: who listens, who writes, where, what, and what became of it.

Promise: values here are frozen and already checked; whoever holds a `DocPath` need not look at it again.
Not here: any effect, any file, any clock.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol, Self, TypeVar

from anima.errors import BadArguments, BadPath, NoSuchDocument, StaleWrite

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Complete = Callable[[str], str]  # a model, as a host gives it: a question in, an answer out, no tools
# Who knows where a line belongs when no section is sure: given those it may belong under, likeliest first, and the one it goes
# under else, it names one (which is made where there is none), or None for the latter.
Choose = Callable[[Sequence[str], str], str | None]
Purpose = Literal["document", "query"]


class Embedder(Protocol):
    """What gives texts their meaning: one row of length one a text, float32, in the texts' order. `name` changes whenever
    the vectors would, so that vectors of two models are never mixed; `dimension` may be None until the first vectors came;
    `is_remote` says that texts leave this machine. `embed` raises `EmbedderDown` alone."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int | None: ...

    @property
    def is_remote(self) -> bool: ...

    def embed(self, texts: Sequence[str], *, kind: Purpose) -> NDArray[np.float32]: ...

    def close(self) -> None: ...


class Word(StrEnum):
    """A word of these, as a program or a person may write it."""

    @classmethod
    def parse(cls, raw: str) -> Self:
        try:
            return cls(str(raw).casefold())
        except ValueError:
            what, known = cls.__name__.casefold(), ", ".join(cls)
            raise BadArguments(f"there is no {what} {raw!r}; the {what}s are {known}") from None


class Scope(Word):
    """Who is listening. No function that produces text for a model has a default for it."""

    MAIN = "main"  # the owner, alone
    GROUP = "group"
    SUBAGENT = "subagent"
    CRON = "cron"
    HEARTBEAT = "heartbeat"


class Actor(StrEnum):
    """Who writes."""

    OWNER = "owner"
    AGENT = "agent"
    DREAMER = "dreamer"
    IMPORTER = "importer"
    OUTSIDE = "outside"  # an edit that did not come through us


class Origin(Word):
    """Where a text came from. Derived text keeps the least trusted origin of its inputs as its taint."""

    OWNER = "owner"
    AGENT = "agent"
    TOOL = "tool"
    WEB = "web"
    SKILL = "skill"
    PEER = "peer"
    HOST = "host"  # an agent elsewhere, of whose reading nothing is known
    IMPORT = "import"
    DERIVED = "derived"
    OUTSIDE = "outside"


Status = Literal["written", "known", "noted", "pending", "refused", "unchanged", "approved"]
Access = Literal["rw", "ro", "none"]  # what a session may do with documents
UNTRUSTED = frozenset({Origin.TOOL, Origin.WEB, Origin.SKILL, Origin.PEER, Origin.HOST, Origin.IMPORT})
_READ = {"web": "a web page", "tool": "a tool's result", "skill": "a skill", "peer": "another person's message"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Who wrote a line, when, in which session, after reading what, by which rule, and who approved it."""

    actor: Actor
    origin: Origin
    time: datetime | None = None
    session: str | None = None
    scope: Scope | None = None
    taint: frozenset[Origin] = frozenset()
    rule: str | None = None
    approver: str | None = None
    change: str | None = None
    place: str | None = None  # where it stood when it was found

    @property
    def trusted(self) -> bool:
        """Whether dreaming may build on it: nothing foreign went into it, or the owner said yes to it."""
        return self.approver is not None or not (({self.origin} | self.taint) & UNTRUSTED)

    @property
    def sentence(self) -> str:
        """One sentence a person understands: "written by the agent on 3 May in session ab12, after it read a web page"."""
        when = f"{self.time:%Y-%m-%d %H:%M} UTC" if self.time else ""
        if self.actor is Actor.OUTSIDE:
            text = "edited outside anima" + (f", first seen {when}" if when else "")
        elif self.time is None:
            text = "here before the ledger began, so it counts as the owner's"
        else:
            who = {Actor.OWNER: "you", Actor.AGENT: "the agent", Actor.DREAMER: "a dream", Actor.IMPORTER: "an import"}
            text = f"written by {who.get(self.actor, self.actor)} on {when}"
        text += f", in session {self.session}" if self.session else ""
        read = " and ".join(_READ.get(origin, str(origin)) for origin in sorted(self.taint))
        text += f", which had read {read}" if read else ""
        text += f"; approved by you ({self.approver})" if self.approver else ""
        return text + ("" if self.trusted else "; nobody reviewed it yet")


OWN_FILE = "owner.toml"  # the owner's own settings, in the user's configuration folder
# Which stand there alone: a project could bring a file, a variable or a flag along.
HOSTED = "ANIMA_HOSTED"  # set where homes are served that are not those of whoever runs the machine
OWNERS_OWN = frozenset({"clean_agents"})

MAX_PATH = 1024
MAX_BYTES = 8 * 2**20  # of one document
MAX_SEGMENT_BYTES, MAX_DEPTH = 255, 32
_RESERVED = {"con", "prn", "aux", "nul", "conin$", "conout$"}
_RESERVED |= {f"{port}{n}" for port in ("com", "lpt") for n in "0123456789¹²³"}
_FORBIDDEN = frozenset('\\:<>"|?*')
# Blank to the eye, although Unicode calls them letters, signs or marks: fillers, joiners and variation selectors.
_BLANK = {chr(each) for each in (*range(0xFE00, 0xFE0E), *range(0xE0100, 0xE01F0))}
_BLANK |= set("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0")
# Only the two selectors of emoji may stand in a name; they make no other name of it.
_EMOJI_STYLES = {0xFE0E: None, 0xFE0F: None}


@dataclass(frozen=True, slots=True, order=True)
class DocPath:
    """A place inside a home, already checked: relative, no dot segments, safe on every file system. Two paths whose `key`
    is equal are the same document, whatever their case or Unicode form."""

    text: str
    key: str = field(compare=False, repr=False, default="")

    @classmethod
    def parse(cls, raw: str | DocPath) -> DocPath:
        """The checked path, in NFC. Raises BadPath with the rule that is broken."""
        if not isinstance(raw, str | DocPath):
            raise BadPath(repr(raw), "a path is text")
        return raw if isinstance(raw, DocPath) else _parse_path(raw)

    @property
    def name(self) -> str:
        return self.text.rpartition("/")[2]

    @property
    def parent(self) -> str:
        """The folder's path, or "" at the top."""
        return self.text.rpartition("/")[0]

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.text.split("/"))

    @property
    def is_markdown(self) -> bool:
        return self.key.endswith(".md")

    def __str__(self) -> str:
        return self.text

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> Mapping[str, object]:
        """A path is text in JSON: for pydantic, which a door may use and nothing here imports."""
        function = {"type": "no-info", "function": cls.parse}
        return {"type": "function-plain", "function": function, "serialization": {"type": "to-string"}}


def cited(raw: str) -> tuple[str, int, int] | None:
    """The document, the first and the last line that a citation names: `MEMORY.md:14`, `MEMORY.md#L14-L16`; None for no citation."""
    found = re.fullmatch(r"([^:]+?)(?::|#L)(\d{1,9})(?:-L?(\d{1,9}))?", raw, re.ASCII)
    return (found[1], int(found[2]), int(found[3] or found[2])) if found else None


def is_address(place: object) -> bool:
    """Whether a home's place is in a database, and no folder."""
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://", "file:", "sqlite:", "libsql:"))


def fold(text: str) -> str:
    """The form in which two names of one document are equal: NFKC and case folded, until nothing changes."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKC", text.translate(_EMOJI_STYLES))
    folded = unicodedata.normalize("NFKC", plain.casefold())
    return folded if folded == text else fold(folded)


@lru_cache(maxsize=4096)
def _parse_path(raw: str) -> DocPath:
    if not raw:
        raise BadPath(raw, "a path cannot be empty")
    if len(raw) > MAX_PATH:
        raise BadPath(raw, f"a path has at most {MAX_PATH} characters")
    text = raw if raw.isascii() else unicodedata.normalize("NFC", raw)
    key = fold(text)
    _check_path(raw, text, _FORBIDDEN)
    # Folding can conjure separators, dots or reserved names out of innocent letters (full-width ones, for example),
    # so the folded form must pass the same rules. A full-width question mark in a title is only a question mark.
    _check_path(raw, key, frozenset("\\"))
    if key.count("/") != text.count("/"):
        raise BadPath(raw, "a path cannot hold a letter that reads as a slash")
    return DocPath(text, key)


def _check_path(raw: str, text: str, forbidden: frozenset[str]) -> None:
    if text.startswith(("/", "~")):
        raise BadPath(raw, "a path is relative to the home")
    for char in text:
        if char in forbidden:
            raise BadPath(raw, f"a path cannot hold {char!r}")
        if not char.isprintable() or char in _BLANK:
            raise BadPath(raw, f"a path cannot hold the invisible character U+{ord(char):04X}")
    parts = text.split("/")
    if len(parts) > MAX_DEPTH:
        raise BadPath(raw, f"a path is at most {MAX_DEPTH} folders deep")
    for part in parts:
        if not part:
            raise BadPath(raw, "a path has no empty parts")
        if part.startswith("."):
            raise BadPath(raw, "no part of a path begins with a dot")
        if part != part.strip() or part.endswith("."):
            raise BadPath(raw, "no part of a path begins or ends with a space, or ends with a dot")
        if part.split(".")[0].rstrip().casefold() in _RESERVED:
            raise BadPath(raw, f"{part!r} is a reserved name on Windows")
        if len(part.encode("utf-8", "surrogatepass")) > MAX_SEGMENT_BYTES:
            raise BadPath(raw, f"each part of a path has at most {MAX_SEGMENT_BYTES} bytes")


SHORT = 50_000  # characters of a text up to which nothing is kept of it
LONG = 1_000_000  # characters of a text from which on it pays to keep what was found out of it
_Text = TypeVar("_Text", bound=Sized)
_Found = TypeVar("_Found")


def kept(few: int) -> Callable[[Callable[[_Text], _Found]], Callable[[_Text], _Found]]:
    """Keeps what a function gives for the last few long texts: a change asks for it several times, and an undo again."""

    def keeping(function: Callable[[_Text], _Found]) -> Callable[[_Text], _Found]:
        known: list[tuple[_Text, _Found]] = []  # another one each time, because threads read it

        @wraps(function)
        def asked(text: _Text) -> _Found:
            nonlocal known
            if len(text) < LONG:
                return function(text)
            if (found := next((each for other, each in known if other == text), None)) is None:
                found = function(text)
                known = [(text, found), *known[: few - 1]]
            return found

        return asked

    return keeping


_grown = ("", hashlib.sha256())  # the last text that is no short one, and its hash so far: a log is only added to


def digest_of(text: str | None) -> str:
    """The digest of a document's text, which serves as its version and as the ETag of the faces; "" where nothing stands."""
    global _grown
    if text is None:
        return ""
    before, hashed = _grown
    if not text.startswith(before):
        before, hashed = "", hashlib.sha256()
    (whole := hashed.copy()).update(text[len(before) :].encode("utf-8", "surrogatepass"))
    if len(text) > SHORT:
        _grown = text, whole
    return whole.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A text file as it stood when read. `text` is exact: encoding it gives the file's bytes back."""

    path: DocPath
    text: str
    digest: str
    time: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a folder's listing."""

    path: str
    is_folder: bool
    size: int
    time: datetime

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class Seen(NamedTuple):
    """A document in a listener's list. How long it is and when it changed is told to those who see the whole of it."""

    path: str
    size: int | None = None
    time: datetime | None = None


class Severity(IntEnum):
    """How bad a finding is. NOTE only marks; WARN is shown to the owner; DANGER asks or refuses."""

    NOTE = 1
    WARN = 2
    DANGER = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something the scan saw. `shown` is the decoded or masked text, safe to print; never a secret in the clear."""

    kind: str  # such as "tag-characters", "bidi", "secret:openai-key", "instruction"
    severity: Severity
    start: int  # offsets into the scanned text, in characters
    end: int
    line: int  # from 1
    shown: str
    message: str
    last: int = 0  # the last line of it, where it runs over several

    @property
    def lines(self) -> range:
        """Every line it stands on."""
        return range(self.line, max(self.line, self.last) + 1)


class Kind(Word):
    """What a change does to its document."""

    WRITE = "write"  # replace the whole text, or create
    APPEND = "append"  # add lines at the end; never conflicts
    MOVE = "move"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nights:
    """All dreaming of a home that was not taken back: when the last was, and how many lines it brought into memory."""

    nights: int = 0
    kept: int = 0
    last: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A wish to write one document. Several in one batch are carried out all or nothing. `text` is the whole new text
    (WRITE) or the lines to add (APPEND); `to` is where a MOVE goes. `base` is the digest that was read: None means whatever
    stands there, "" means nothing may stand there."""

    path: DocPath
    kind: Kind
    text: str = ""
    base: str | None = None
    to: DocPath | None = None
    opening: str = ""  # what an APPEND puts first when the document is not there yet
    added: str = ""  # of a WRITE that does nothing but add: what it adds
    section: str | None = None  # and the heading that was named for it
    under: str | None = None  # and the heading under which it stands in the text
    actor: Actor
    origin: Origin
    session: str | None = None
    guest: str = ""  # the mark of the agent elsewhere whose wish it is, in whichever session
    scope: Scope | None = None
    taint: frozenset[Origin] = frozenset()
    reason: str = ""

    def after(self, base: str | None) -> str | None:
        """What the document's text would be after this change; None when it would be gone."""
        if self.kind in (Kind.DELETE, Kind.MOVE):
            return base if self.kind is Kind.MOVE else None
        if self.kind is Kind.APPEND:
            held = self.opening if base is None else base
            return held + ("" if not held or held.endswith("\n") else "\n") + self.text
        return self.text

    def check_base(self, now: str | None) -> None:
        """Raises StaleWrite when another text stands there than was read, NoSuchDocument when what should go is gone."""
        if self.base is not None and self.base != digest_of(now):
            raise StaleWrite(self.path.text, theirs=now, ours=self.after(now))
        if self.kind in (Kind.DELETE, Kind.MOVE) and now is None:
            raise NoSuchDocument(self.path.text)

    @property
    def is_addition(self) -> bool:
        """Whether nothing that stands there is replaced, moved or taken away."""
        return self.kind is Kind.APPEND or (self.kind is Kind.WRITE and (bool(self.added) or self.base == ""))

    @property
    def is_free(self) -> bool:
        """Whether this is an append that goes with whatever stands there."""
        return self.kind is Kind.APPEND and self.base is None


class Answer(StrEnum):
    """What the gate says, the mildest first. What is noted is written down where the owner reviews it."""

    ALLOW = "allow"
    NOTE = "note"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        return tuple(Answer).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the gate says of a change, and which rule said it."""

    answer: Answer
    rule: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What became of a change: written; known (memory says so already); noted, for a review; pending, until the owner says yes;
    refused; unchanged; approved (a call, made once its talk goes on). `revision` is None while history is off or late; `digest`
    that of the document as it then stands, None where nothing was written."""

    status: Status
    path: DocPath
    revision: str | None = None
    digest: str | None = None
    proposal: str | None = None
    rule: str | None = None
    reason: str | None = None
    findings: tuple[Finding, ...] = ()
    change: str | None = None  # the ledger's id, which `undo` takes
    noted: tuple[str, ...] = ()  # the names of its unreviewed entries; of `written` or `known`, those that it settled
    section: str | None = None  # the heading under which a line went that was to be remembered
    likely: tuple[str, ...] = ()  # and others that it may belong under, where that was not sure and nobody was asked

    @property
    def way_back(self) -> str:
        """How to be rid of a secret that was written down; "" where there is none."""
        if self.status != "written" or not any(found.kind.startswith("secret:") for found in self.findings):
            return ""
        purge = "anima forget WORDS --purge takes it out of history and snapshots too"
        return f"to be rid of it: anima undo takes it back, {purge}"


class OutsideServer(NamedTuple):
    """An MCP server whose tools an agent has beside those of its home: a program that is started, or an address."""

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()  # what the program is told; a value such as $TOKEN is the environment's
    url: str = ""
    bearer: str = ""  # the variable of the environment that holds the token for the address
    scopes: frozenset[Scope] = frozenset({Scope.MAIN})
    only: tuple[str, ...] = ()  # the tools that there are, by their own names; empty: all
    reads: tuple[str, ...] = ()  # those that are called without asking
    seen: str = ""  # a digest of the descriptions that the owner vouches for


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """What the host says about itself; it stands in the prompt's last block."""

    host: str | None = None
    model: str | None = None
    channel: str | None = None
    session: str | None = None
    tools: tuple[str, ...] = ()
    folder: str | None = None  # a sub-agent's own
    page: str = ""  # of a sub-agent, whose text is its instructions


Level = Literal["fine", "advice", "damage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One sentence about the health of a home. `name` is the row of the table of damages it speaks of, whose `level` and
    `do` it then gets; `about` is the file or thing, as the store names it. `do` is a command or an action."""

    about: str
    message: str
    name: str = ""
    level: Level = "advice"
    do: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """One thing that was done, or, in a dry run, would be; `ok` is false where it was tried and could not be. `owner` is
    what the owner may still want to do about it."""

    name: str
    about: str
    said: str
    ok: bool = True
    owner: str = ""


class Checked(Protocol):
    """Something that keeps state. Looking changes nothing."""

    def check(self) -> Iterator[Remark]: ...

    def mend(self, found: Remark) -> str:
        """Mends what one of its remarks is about, and says what was done; "" where nothing could, or had to be."""


class File(NamedTuple):
    """One file of a home, as a manifest names it."""

    path: str
    size: int
    sha256: str
    mode: int


class FoundFile(NamedTuple):
    """A file of a home's own, before anybody read it."""

    path: str
    size: int
    mode: int
    mtime: int
