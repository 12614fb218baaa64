"""What the API takes and gives, as OpenAPI tells it.

Promise: every answer has a shape here; what is sent may hold nothing a shape does not name. Not here: any effect.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from anima.model import Scope

Text = Annotated[str, Field(max_length=8 * 2**20)]
Reason = Annotated[str, Field(max_length=1_000)]
Place = Annotated[str, Field(min_length=1, max_length=1_024, description="A path inside the home")]
Path = Annotated[str, BeforeValidator(str)]  # a DocPath becomes its text


class Out(BaseModel):
    """Something the API gives, made from a value of the home."""

    model_config = ConfigDict(from_attributes=True)


class In(BaseModel):
    """Something the API takes."""

    model_config = ConfigDict(extra="forbid")


# -- errors -----------------------------------------------------------------------------------------------------------------


class Problem(BaseModel):
    """What went wrong (RFC 9457). `hint` says what to do; `theirs` is what stands there after a conflict."""

    model_config = ConfigDict(extra="allow")

    type: str
    title: str
    status: int
    detail: str | None = None
    hint: str | None = None
    rule: str | None = None


# -- out --------------------------------------------------------------------------------------------------------------------


class Sourced(Out):
    value: str
    source: str


class Identity(Out):
    name: Sourced
    avatar: Sourced
    creature: Sourced | None
    vibe: Sourced | None
    theme: Sourced | None
    emoji: Sourced | None


class Line(Out):
    """What became of one file in a prompt."""

    path: str
    role: str
    status: str
    chars_raw: int
    chars_shown: int
    reason: str


class PromptLimits(Out):
    file: int
    total: int
    memory: int | None


class Prompt(Out):
    scope: Scope
    dialect: str
    persona: str | None
    stable: str
    volatile: str
    text: str
    manifest: list[Line]
    limits: PromptLimits
    notes: list[str]


class Entry(Out):
    path: str
    is_folder: bool
    size: int
    time: datetime


class Entries(Out):
    """A page of a listing; `next` is the `after` of the page that follows."""

    items: list[Entry]
    next: str | None = None


class Document(Out):
    """A document. Its ETag is the digest, in quotes."""

    path: Path
    text: str
    digest: str
    time: datetime


class Finding(Out):
    kind: str
    severity: int
    line: int
    shown: str
    message: str


class Receipt(Out):
    """What became of a change: `written`, or `pending` when it waits for the owner."""

    status: str
    path: Path
    revision: str | None
    digest: str | None
    proposal: str | None
    rule: str | None
    reason: str | None
    change: str | None
    findings: list[Finding]


class Hit(Out):
    path: Path
    start_line: int
    end_line: int
    text: str
    score: float
    citation: str
    provider: str
    kind: str
    date: date | None
    trusted: bool
    fts_rank: int | None
    vector_rank: int | None
    why: dict[str, float] | None


class Hits(Out):
    """Hits, best first; `notes` says why there are none, or what a reader should know."""

    hits: list[Hit]
    notes: list[str]


class Tree(Out):
    entries: list[str]


class Revision(Out):
    id: str
    time: datetime
    author: str
    actor: str
    subject: str
    reason: str | None
    session: str | None
    rule: str | None
    paths: list[str]


class Revisions(Out):
    items: list[Revision]
    next: int | None = None


class Diff(Out):
    diff: str


class DiffLine(Out):
    """One line of a diff: `add`, `cut`, `same`, or `place` and `note`, which are no content."""

    kind: Literal["place", "add", "cut", "same", "note"]
    text: str
    old: int | None
    new: int | None


class Comparison(Out):
    """`merged` holds both changes in one text, where a base was given and they do not touch the same lines."""

    lines: list[DiffLine]
    merged: str | None


class Done(Out):
    """One carried-out change as the ledger tells it. `id` is what undo takes."""

    id: str
    time: datetime
    what: str
    actor: str
    origin: str
    session: str | None
    rule: str | None
    approver: str | None
    paths: list[str]
    of: str | None


class Dones(Out):
    items: list[Done]
    next: int | None = None


class Source(Out):
    actor: str
    origin: str
    time: datetime | None
    session: str | None
    scope: str | None
    taint: list[str]
    rule: str | None
    approver: str | None
    change: str | None
    trusted_at: datetime | None
    trusted: bool


class Why(Out):
    path: Path
    line: int
    text: str
    sentence: str
    revision: str | None
    source: Source


class Wish(Out):
    """One change of a proposal."""

    path: Path
    kind: str
    text: str
    to: Annotated[str | None, BeforeValidator(lambda path: None if path is None else str(path))]
    actor: str
    origin: str
    scope: str | None
    taint: list[str]
    reason: str


class Proposal(Out):
    """A change that waits for the owner. `content` is what an approval is bound to."""

    id: str
    path: Path
    session: str | None
    created: datetime
    expires: datetime
    rule: str
    why: str
    diff: str
    content: str
    findings: list[Finding]
    changes: list[Wish]


class Proposals(Out):
    items: list[Proposal]


class Trusted(Out):
    trusted_lines: int


class Remark(Out):
    level: Literal["fine", "advice", "damage"]
    about: str
    message: str
    do: str
    name: str


class Health(Out):
    ok: bool
    version: str
    dialect: str
    remarks: list[Remark]


class Audit(Out):
    ok: bool
    records: int
    fault: str | None


class IndexReport(Out):
    documents: int
    put: int
    dropped: int
    units: int
    embedded: int
    seconds: float
    notes: list[str]


class Remembered(Out):
    """A line of memory that hygiene speaks of."""

    path: str
    number: int
    text: str
    day: date | None


class Suggestion(Out):
    """Something to tidy up. `id` is the digest of what it would do; `between` are the lines of a choice."""

    id: str
    kind: Literal["merge", "archive", "choose"]
    sentence: str
    keep: Remembered | None
    remove: list[Remembered]
    between: list[Remembered]
    evidence: list[str]
    path: str
    to: str
    diff: str


class Suggestions(Out):
    """What a look found, of `total`. `outdated`: documents changed since, and only what still stands is told."""

    items: list[Suggestion]
    total: int
    at: datetime
    lines: int
    documents: int
    outdated: bool
    notes: list[str]
    next: int | None = None


class Tidied(Out):
    """What became of an act. `change` is what undo takes; keeping lines is none."""

    done: int
    change: str | None
    receipts: list[Receipt]


class Snapshot(Out):
    """An archive of the home. It is named, not given: it holds the home's key."""

    name: str
    time: datetime
    label: str
    digest: str
    size: int
    sealed: bool


class TakenSnapshot(Snapshot):
    """`fresh` is false when nothing had changed since this one."""

    fresh: bool


class Snapshots(Out):
    items: list[Snapshot]


class SessionRow(Out):
    id: str
    summary: str
    updated_at: str
    started_at: str
    entries: int
    agent_id: str
    source_plugin: str
    scope: str
    sender_id: str | None
    persona: str | None
    closed: bool


class SessionRows(Out):
    items: list[SessionRow]
    next: int | None = None


class Turn(Out):
    timestamp: str
    role: str
    content: str
    sender_id: str | None


class Transcript(Out):
    """Some turns of a session, in their order, of `total`. `damaged` are lines that could not be read."""

    id: str
    turns: list[Turn]
    total: int
    damaged: list[str]
    next: int | None = None


class Token(Out):
    id: str
    kind: Literal["owner", "agent", "page"]
    name: str
    made: datetime
    expires: datetime | None
    agent: str | None
    scope: Scope | None
    sender: str | None


class NewToken(Token):
    """`token` is told only now."""

    token: str


class Tokens(Out):
    items: list[Token]


class Tool(Out):
    name: str
    about: str
    arguments: dict[str, Any] = Field(description="JSON Schema of the arguments")
    read_only: bool
    destructive: bool
    idempotent: bool


class Tools(Out):
    items: list[Tool]


class AgentSession(Out):
    id: str
    scope: Scope
    prompt: Prompt


class AgentState(Out):
    id: str
    tainted: list[str]


class Pong(Out):
    ok: bool = True


# -- in ---------------------------------------------------------------------------------------------------------------------


class Writing(In):
    text: Text
    reason: Reason = ""


class Comparing(In):
    """Two texts; with `base`, the text both came from."""

    before: Text
    after: Text
    base: Text | None = None


class Appending(In):
    path: Place
    text: Text
    reason: Reason = ""


class Editing(In):
    path: Place
    old: Text
    new: Text
    replace_all: bool = False
    reason: Reason = ""


class Moving(In):
    path: Place
    to: Place
    reason: Reason = ""


class Remembering(In):
    fact: Annotated[str, Field(max_length=20_000)]
    section: Annotated[str | None, Field(max_length=200)] = None
    reason: Reason = ""


class Noting(In):
    content: Annotated[str, Field(max_length=262_144)]
    reason: Reason = ""


class Forgetful(In):
    """What to forget. Only a dry run unless `dry_run` is false; `purge` also takes it out of history."""

    text: Annotated[list[Annotated[str, Field(min_length=1, max_length=4_000)]] | None, Field(max_length=100)] = None
    pattern: Annotated[str | None, Field(max_length=1_000)] = None
    line: Annotated[str | None, Field(max_length=1_100)] = None
    session: Annotated[str | None, Field(max_length=200)] = None
    sender: Annotated[str | None, Field(max_length=200)] = None
    origin: Annotated[str | None, Field(max_length=40)] = None
    since: date | None = None
    until: date | None = None
    purge: bool = False
    dry_run: bool = True


class Forgot(Out):
    """The receipt: counts by place, and whether the proof found nothing left."""

    done: bool
    purge: bool
    counts: dict[str, int]
    phrases: int
    change: str | None
    revision: str | None
    record: int | None
    verified: bool | None
    left: list[str]
    notes: list[str]


class Dreaming(In):
    """A night now. A dry run only tells what would change."""

    dry_run: bool = False
    preset: Annotated[str | None, Field(max_length=40)] = None
    since: date | None = None


class Dreamed(Out):
    """What became of a night."""

    status: str
    said: str
    change: str | None
    revision: str | None
    proposals: list[str]
    diff: str
    promoted: list[str]
    retired: list[str]
    considered: int


class Tidying(In):
    """What to do about suggestions that were shown: `tidy` carries them out as one change, `keep` leaves their lines for
    good. `line` is the one that holds in a contradiction, the first or the second."""

    ids: Annotated[list[Annotated[str, Field(min_length=1, max_length=64)]], Field(min_length=1, max_length=1_000)]
    do: Literal["tidy", "keep"]
    line: Annotated[int | None, Field(ge=1, le=2)] = None


class Undoing(In):
    """One change, everything a session wrote, or the last night's dreaming; the newest change when none is named.
    `content` binds it to what was seen."""

    sweep: bool = False
    change: Annotated[str | None, Field(max_length=40)] = None
    session: Annotated[str | None, Field(max_length=200)] = None
    content: Annotated[str | None, Field(max_length=64)] = None


class Restoring(In):
    path: Place
    at: Annotated[str, Field(max_length=64, description="A revision, a day or a moment")]
    base: Annotated[str | None, Field(max_length=64, description="The digest of what it is to replace")] = None


class Approving(In):
    """`content` binds the yes to what was seen. `text` edits the proposal first."""

    content: Annotated[str, Field(max_length=64)]
    text: Text | None = None


class Trusting(In):
    """One line, all of a document, or all a session wrote."""

    path: Place | None = None
    line: Annotated[int | None, Field(ge=1, le=10_000_000)] = None
    session: Annotated[str | None, Field(max_length=200)] = None


class Indexing(In):
    rebuild: bool = False


class TokenWish(In):
    """A new token: of an agent when a scope is named, else the owner's."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    scope: Scope | None = None
    sender: Annotated[str | None, Field(max_length=200)] = None
    days: Annotated[int, Field(ge=1, le=36_500)] = 90


class Saying(In):
    role: Literal["user", "assistant", "system", "tool"]
    content: Text


class Tainting(In):
    origin: Annotated[str, Field(max_length=40)]
