"""What the API takes, and the shapes of what it gives, as OpenAPI tells them.

Promise: what is sent may hold nothing a body does not name. Routes give the values of the home themselves; a shape is
derived from a value's own fields, and says which of its properties are told beside them and which fields are not.
Not here: any effect.
"""

from __future__ import annotations

from datetime import date, datetime
from types import GenericAlias
from typing import Annotated, Any, Literal, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model

import anima
from anima import DocPath, Scope
from anima.model import Change
from anima.web.draw import DiffLine
from anima.web.tokens import Pass

Text = Annotated[str, Field(max_length=8 * 2**20)]
Reason = Annotated[str, Field(max_length=1_000)]
Place = Annotated[str, Field(min_length=1, max_length=1_024, description="A path inside the home")]


class Out(BaseModel):
    """Something the API gives."""

    model_config = ConfigDict(from_attributes=True)


class In(BaseModel):
    """Something the API takes."""

    model_config = ConfigDict(extra="forbid")

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.__name__ = cls.__qualname__ = cls.__name__.removesuffix("In")


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


def shape(name: str, about: str = "", /, *, of: Any = None, without: str = "", like: Any = Out, **told: Any) -> Any:
    """What is given under a name: the fields of the value it is `of`, but those it is `without`, and what is `told` beside
    them, each with its kind; where that is a pair, it may be missing, and the second stands for it."""
    fields = {field: kind for field, kind in get_type_hints(of).items() if field not in without.split()} if of else {}
    fields |= told
    rows: dict[str, Any] = {field: kind if isinstance(kind, tuple) else (kind, ...) for field, kind in fields.items()}
    return create_model(name, __base__=like, __doc__=about or (of.__doc__ if of else None), **rows)


def some(kind: Any) -> Any:
    """A list of a shape."""
    return GenericAlias(list, (kind,))


def items(of: Any) -> Any:
    return shape(f"Items[{of.__name__}]", items=some(of))


def paged(of: Any) -> Any:
    """Some of a list; `next` is the `start` of the page that follows."""
    return shape(f"Paged[{of.__name__}]", items=some(of), next=(int | None, None))


Pong = shape("Pong", ok=(bool, True))
Sourced = shape("Sourced", value=str, source=str)
_sourced = dict.fromkeys(("creature", "vibe", "theme", "emoji"), Sourced | None)
Identity = shape("Identity", name=Sourced, avatar=Sourced, **_sourced)
Prompt = shape("Prompt", of=anima.Prompt, text=str)
Entries = shape(
    "Entries",
    "Some of a listing; `next` is the `after` of the page that follows.",
    items=list[anima.Entry],
    next=(str | None, None),
)
Tree = shape("Tree", entries=list[str])
Finding = shape("Finding", of=anima.Finding, without="start end")
Receipt = shape(
    "Receipt",
    "What became of a change: `written`, or `pending` when it waits for the owner.",
    of=anima.Receipt,
    findings=some(Finding),
)
Hit = shape("Hit", of=anima.Hit, without="document_id chunk_id tags", citation=str)
Hits = shape(
    "Hits",
    "Hits, best first; `notes` says why there are none, or what a reader should know.",
    hits=some(Hit),
    notes=list[str],
)
Revision = shape("Revision", of=anima.Revision, without="batch anchor")
Diff = shape("Diff", diff=str)
Comparison = shape(
    "Comparison",
    "`merged` holds both changes in one text, where a base was given and they do not touch the same lines.",
    lines=list[DiffLine],
    merged=str | None,
)
Source = shape("Source", of=anima.Source, without="lost", trusted=bool)
Why = shape("Why", of=anima.Why, source=Source)
Wish = shape("Wish", "One change of a proposal.", of=Change, without="base opening session under")
Proposal = shape(
    "Proposal",
    "A change that waits for the owner. `content` is what an approval is bound to.",
    of=anima.Proposal,
    without="bases forget asked",
    path=DocPath,
    session=str | None,
    findings=some(Finding),
    changes=some(Wish),
)
ApprovedAll = shape(
    "ApprovedAll", "`left` says of each that goes on waiting why it does.", approved=list[str], left=dict[str, str]
)
Noted = shape(
    "Noted",
    "A line, or a whole document, that nobody reviewed yet. `name` follows from what it would add, and where.",
    name=str,
    to=DocPath,
    section=str | None,
    text=str,
    origins=list[str],
    session=str | None,
    time=str,
    recalls=int,
    findings=some(Finding),
)
Health = shape("Health", ok=bool, version=str, dialect=str, remarks=list[anima.Remark])
Audit = shape("Audit", ok=bool, records=int, fault=str | None)
Remembered = shape(
    "Remembered", "A line of memory that could be tidied.", path=str, number=int, text=str, day=date | None
)
Suggestion = shape(
    "Suggestion",
    "Something to tidy up. `id` is the digest of what it would do; `between` are the lines of a choice.",
    of=anima.Suggestion,
    without="pages",
    id=str,
    keep=Remembered | None,
    remove=some(Remembered),
    between=some(Remembered),
    diff=str,
)
Suggestions = shape(
    "Suggestions",
    "What a look found, of `total`. `outdated`: documents changed since, and only what still stands is told.",
    like=paged(Suggestion),
    total=int,
    at=datetime,
    lines=int,
    documents=int,
    outdated=bool,
    notes=list[str],
)
Tidied = shape(
    "Tidied",
    "What became of an act. `change` is what undo takes; keeping lines is none.",
    done=int,
    change=str | None,
    receipts=some(Receipt),
)
Snapshot = shape(
    "Snapshot",
    "An archive of the home. It is named, not given: it holds the home's key.",
    of=anima.Snapshot,
    without="path fresh files left_out",
    name=str,
)
TakenSnapshot = shape(
    "TakenSnapshot", "`fresh` is false when nothing had changed since this one.", like=Snapshot, fresh=bool
)
SessionRow = shape("SessionRow", "A session as the list shows it.", of=anima.Listed, without="bytes lines layer parent")
Turn = shape(
    "Turn",
    "One line of a conversation. `call` is there where it is a call of a tool of the home's own, and `content` its answer.",
    timestamp=str,
    role=str,
    content=str,
    sender_id=str | None,
    name=(str | None, None),
    call=(dict[str, Any] | None, None),
)
Transcript = shape(
    "Transcript",
    "Some turns of a session, in their order, of `total`. `damaged` are lines that could not be read.",
    id=str,
    turns=some(Turn),
    total=int,
    damaged=list[str],
    next=(int | None, None),
)
ChatRow = shape(
    "ChatRow", "A conversation of the owner's own; `running` while a turn goes on.", like=SessionRow, running=bool
)
SaidIn = shape(
    "SaidIn",
    "Where something is heard: the conversation, the turn, and the event after which that turn is told.",
    id=str,
    turn=int,
    after=int,
)
Chat = shape(
    "Chat",
    """A conversation as it stands: the newest turns of `total`, the events to listen to `after` them, the model, the tokens
since this server took it up, with the cost where a price is known, and what waits: a `proposal`, a `call` of a
tool from outside, or a line that was `noted`, by its `id`.""",
    id=str,
    turns=some(Turn),
    total=int,
    after=int,
    running=bool,
    model=str,
    used=dict[str, Any] | None,
    cards=list[dict[str, str]],
)
NewToken = shape("NewToken", "`token` is told only now.", of=Pass, token=str)
Schema = Annotated[dict[str, Any], Field(description="JSON Schema of the arguments")]
Tool = shape("Tool", name=str, about=str, arguments=Schema, read_only=bool, destructive=bool, idempotent=bool)
AgentSession = shape("AgentSession", id=str, scope=Scope, prompt=Prompt)
AgentState = shape("AgentState", id=str, tainted=list[str])
Where = Annotated[str, BeforeValidator(lambda left: left.where)]
Forgot = shape(
    "Forgot",
    "The receipt: counts by place, and whether the proof found nothing left.",
    of=anima.Forgetting,
    without="touched",
    counts=dict[str, int],
    left=list[Where],
)
Dreamed = shape(
    "Dreamed",
    "What became of a night.",
    status=str,
    said=str,
    change=str | None,
    revision=str | None,
    proposals=list[str],
    diff=str,
    promoted=list[str],
    retired=list[str],
    considered=int,
)
ConnectPlan = shape("ConnectPlan", lines=list[DiffLine], content=str, then=str)


# -- in ---------------------------------------------------------------------------------------------------------------------


class WritingIn(In):
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


class Dreaming(In):
    """A night now. A dry run only tells what would change."""

    dry_run: bool = False
    preset: Annotated[str | None, Field(max_length=40)] = None
    since: date | None = None


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
    """`content` binds the yes to what was seen. `text` edits the proposal first; `part` edits only its new lines. `typed` is the
    agent's name, for the card of the first conversation."""

    content: Annotated[str, Field(max_length=64)]
    text: Text | None = None
    part: Text | None = None
    typed: Annotated[str, Field(max_length=200)] = ""


class SeenCard(In):
    id: Annotated[str, Field(max_length=40)]
    content: Annotated[str, Field(max_length=64)]


class ApprovingAll(In):
    """What was seen, each with its `content`: these, and no others."""

    cards: Annotated[list[SeenCard], Field(min_length=1, max_length=1_000)]


class Reviewing(In):
    """The names of noted lines."""

    names: Annotated[list[Annotated[str, Field(max_length=40)]], Field(min_length=1, max_length=1_000)]


class Indexing(In):
    rebuild: bool = False


class Setting(In):
    """A value of a setting; null takes it out of anima.toml."""

    value: str | bool | int | Annotated[list[str], Field(max_length=100)] | None = None


class Connecting(In):
    """`content` is that of the plan that was shown; without it nothing is changed."""

    remove: bool = False
    content: Annotated[str | None, Field(max_length=64)] = None


class TokenWish(In):
    """A new token: of an agent when a scope is named, else the owner's."""

    name: Annotated[str, Field(min_length=1, max_length=80)]
    scope: Scope | None = None
    sender: Annotated[str | None, Field(max_length=200)] = None
    days: Annotated[int, Field(ge=1, le=36_500)] = 90


class Telling(In):
    """What the owner says."""

    text: Annotated[str, Field(min_length=1, max_length=200_000, pattern=r"\S")]


class Saying(In):
    role: Literal["user", "assistant", "system", "tool"]
    content: Text


class Tainting(In):
    origin: Annotated[str, Field(max_length=40)]
