"""A Hand: who listens in one session, what the session has read, and what it may write; the ground under a Session.

Promise: text comes in by `take_in` alone; untrusted text taints the session for good, on the disk too once there is a
transcript, until the owner clears it. What the session writes carries its scope and taint. A tool's answer is text from
outside before anybody hears it, and every call is on record with its answer or the reason of its no; one that waits for
the owner stands there only when it is answered. A quotation is word for word one message's of the owner's, and of
nobody else. Not here: the conversation (session), tools (calls), what becomes of what was said (flush).
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from anima.config import FILE
from anima.errors import BadArguments, HomeError
from anima.gate import FlowEvent, GatePolicy, Situation, flows_after, is_danger, is_secret, may, said
from anima.gate.scan import scan_text
from anima.layout import Listener, Sight, is_unreviewed
from anima.layout.trust import ReadOutside, served
from anima.model import (
    UNTRUSTED,
    Access,
    Actor,
    Answer,
    Change,
    Complete,
    DocPath,
    Document,
    Finding,
    Kind,
    Origin,
    Receipt,
    Runtime,
    Verdict,
)
from anima.sessions.record import Transcript
from anima.sessions.replay import Turn
from anima.sessions.tools import tools_for
from anima.sessions.transcripts import Transcripts, origins
from anima.text import first_person, one_line, read_table, word_set
from anima.text.markdown import ended, lines_of
from anima.text.pages import opening_for, put_into

if TYPE_CHECKING:
    from anima.memory import Proposal, Proposals, Unreviewed, WaitingCalls
    from anima.memory.forgotten import ForgottenList
    from anima.prompt import Prompt
    from anima.prompt.gather import Prompts
    from anima.prompt.identity import Subagent
    from anima.sessions.replay import Resumed

_ACCESS: tuple[Access, ...] = ("none", "ro", "rw")


class Road(Protocol):
    """The road in (memory.write), as far as a session goes it."""

    policy: GatePolicy
    proposals: Proposals
    forgotten: ForgottenList
    unreviewed: Unreviewed
    calls: WaitingCalls

    def judge(
        self, changes: Sequence[Change], bases: Sequence[str | None], situation: Situation
    ) -> tuple[Verdict, tuple[Finding, ...]]: ...

    def submit(self, changes: Sequence[Change], *, situation: Situation, what: str) -> tuple[Receipt, ...]: ...

    def repeated(self, once: Callable[[], Receipt], *, waits: bool) -> Receipt: ...

    def carded(self, path: DocPath, session: str) -> str | None: ...


class Rooms(Transcripts):
    """What was said in the sessions of one home, and what they are given of it: a part that costs something is asked for when
    it is needed. `propose` takes a wish to forget, for the owner to decide."""

    prompts: Prompts
    writer: Callable[[], Road]
    propose: Callable[[Change, Mapping[str, str], str], Proposal | None]

    @property
    def read_outside(self) -> ReadOutside:
        """What came in with the credentials of agents elsewhere."""
        return ReadOutside(served(self.site.env, self.site.store.name))


class Guest(NamedTuple):
    """An agent elsewhere, of whose conversation nothing is seen here but its calls. `mark` stands for its credential;
    `name` is what the owner calls it, and by it alone they can call it clean."""

    mark: str
    name: str = ""

    @classmethod
    def of(cls, credential: str, name: str = "") -> Guest:
        return cls(hashlib.sha256(credential.encode("utf-8", "surrogatepass")).hexdigest()[:16], name)


@dataclass(eq=False, kw_only=True)
class Hand:
    """Who listens, what was read, and the way to write. Safe to share by threads."""

    rooms: Rooms = field(repr=False)
    listener: Listener
    id: str
    channel: str | None = None
    sender: str | None = None
    access: Access = "rw"
    model: str | None = None
    complete: Complete | None = field(default=None, repr=False)
    parent: Hand | None = field(default=None, repr=False)
    agent: Subagent | None = None  # what this is a conversation of, where it is one of a declared sub-agent
    talk: InitVar[Transcript | None] = None
    guest: Guest | None = field(default=None, repr=False)

    def __post_init__(self, talk: Transcript | None) -> None:
        self.site, self._talk, parent = self.rooms.site, talk, self.parent
        held = (self.access, talk.header.access or "rw" if talk else "rw", self.site.own.workspace_access)
        if wrong := [access for access in held if access not in _ACCESS]:
            raise BadArguments(f"access is one of {', '.join(_ACCESS)}, not {wrong[0]!r}")
        self.access = next(access for access in _ACCESS if access in held)  # the narrowest
        self.tainted: frozenset[Origin] = parent.tainted if parent else frozenset()
        self.flows: frozenset[str] = parent.flows if parent else frozenset()
        self._recorded: tuple[frozenset[Origin], frozenset[str]] = (frozenset(), frozenset())  # on the disk
        self._mutex, self._closed = threading.RLock(), False
        self._recent: deque[datetime] = deque()
        self.prompt: Prompt = self.fresh_prompt()
        if self.guest is not None:
            is_clean = bool(self.guest.name) and self.guest.name in self.site.config.clean_agents
            read = self.rooms.read_outside.of(self.guest.mark)
            self.take_in("", origins=read | (set() if is_clean else {Origin.HOST}))

    def fresh_prompt(self) -> Prompt:
        """The prompt as it would be from what is on disk now."""
        tools = tools_for(self.site, self.listener.scope) if self.access != "none" else ()
        own = self.agent
        names = tuple(tool.name for tool in tools if own is None or own.tools is None or tool.name in own.tools)
        runtime = Runtime(model=self.model, channel=self.channel, session=self.id, tools=names)
        if own is not None:
            runtime = replace(runtime, page=own.path, folder=own.workspace or None)
        return self.rooms.prompts.prompt(self.listener, runtime=runtime, for_owner=False)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """One thread at a time."""
        with self._mutex:
            if self._closed:
                raise BadArguments(f"session {self.id} is closed")
            yield

    def now(self) -> datetime:
        """The moment in the timezone of whoever this session is with."""
        return self.site.now(self.listener)

    def take_in(
        self,
        text: str,
        *,
        path: DocPath | None = None,
        sessions: Iterable[str] = (),
        origins: Iterable[Origin] = (),
        turn: Turn | None = None,
        recorded: bool = False,
    ) -> None:
        """The one way by which text comes into a session, and what that does to its trust. It stands in the document at
        `path`, was said in other `sessions`, is a `turn` of this one or of these `origins`; without any of them it is
        the conversation's own. Untrusted origins taint the session and whoever called it; flow rules that watch for
        them, or for the document, are active from now on, on the disk too, unless the transcript has it `recorded`."""
        events = [FlowEvent(path=path, by_tool=True)] if path else []
        talks = self.rooms
        found = {*origins, *self._origins_of(path, text)}
        found |= talks.doubts(set(sessions) - {self.id}, self.listener.layer)
        if turn is not None:
            found |= talks.origins_of(turn, self.listener.layer, self.channel)
        events += [FlowEvent(origin=origin) for origin in sorted(found)]
        with self._mutex:
            self.tainted |= found & UNTRUSTED
            for event in events:
                self.flows = flows_after(self.flows, event, self.rooms.writer().policy)
            if recorded:
                self._recorded = (self.tainted, self.flows)
            elif self._talk is not None and (self.tainted, self.flows) != self._recorded:
                self._record_trust(self._talk)
            if self.guest is not None and (kept := self.tainted - {Origin.HOST}):
                self.rooms.read_outside.add(self.guest.mark, kept)  # with the credential, for its conversations to come
            if found and self.parent is not None:
                self.parent.take_in(text, origins=found)  # what a sub-session reports goes back to whoever called it

    def _origins_of(self, path: DocPath | None, text: str) -> frozenset[Origin]:
        """Where a document's text came from, by where it stands: what nobody reviewed, another person's layer, a skill that
        nobody vouched for."""
        if path is None:
            return frozenset()
        if is_unreviewed(self.site.layout, path):
            return self.rooms.writer().unreviewed.origins_in(path, text) or frozenset({Origin.HOST})
        if self.listener.is_others(path):
            return frozenset({Origin.PEER})
        if self.site.layout.row_of(path).kind != "skill":
            return frozenset()
        store, is_vouched_for = self.site.store, False  # is every line the owner's, or written with the owner's yes?
        if store.begun and store.provenance.knows(path):
            sources = (store.provenance.source(path, line) for line in lines_of(text) if line.strip())
            is_vouched_for = all(source.actor is Actor.OWNER or source.approver for source in sources)
        return frozenset() if is_vouched_for else frozenset({Origin.SKILL})

    def taint(self, origin: Origin | str) -> None:
        """A host says that text of this origin came in."""
        self.take_in("", origins={Origin.parse(origin)})

    def _carry_on(self, last: Resumed) -> None:
        """Takes up what the transcript says was read. Where it cannot be read, the worst is assumed."""
        known = UNTRUSTED
        if not last.damaged and not self.rooms.has_arrived(self.id):
            known = origins(last.state.taint if last.state else ())
            self.flows |= frozenset(last.state.flows if last.state else ())
        self.take_in("", origins=known, recorded=True)
        if asked_by := last.header.parent:  # whose question it was, and who may have read on since
            self.take_in("", sessions=(asked_by,))

    def catch_up(self) -> None:
        """Whatever others read who go on with this same conversation, in another process or by another door, it has read."""
        if self.parent is not None:
            self.parent.catch_up()
        with self._mutex:
            taint, flows = self._talk.read_by_others() if self._talk else ((), ())
            self.tainted, self.flows = self.tainted | origins(taint), self.flows | set(flows)
            if self._talk is not None and (self.tainted, self.flows) != self._recorded:
                self._record_trust(self._talk)  # the last record is what counts, and must hold all of it

    def _record_trust(self, talk: Transcript) -> None:
        self._recorded = (self.tainted, self.flows)
        talk.state(taint=self.tainted, flows=self.flows)
        self.catch_up()  # somebody may have said so in the same moment

    def trust(self) -> None:
        """The owner vouches for what was read so far, by whoever went on with it."""
        with self._mutex:
            self.tainted, self.flows = frozenset(), frozenset()
            self._recorded = (self.tainted, self.flows)
            if self._talk is not None:
                self._talk.state(taint=(), flows=())
                self._talk.read_by_others()

    def may(self, action: str) -> Verdict:
        """What a host asks before it does something, such as sending a message out (`outbound`)."""
        return may(action, self.flows, self.rooms.writer().policy)

    def wish(self, path: DocPath, kind: Kind, text: str = "", *, base: str | None = None) -> Change:
        """A change as this session makes it, with its scope and taint."""
        self.catch_up()
        return Change(
            path=path,
            kind=kind,
            text=text,
            base=base,
            actor=Actor.AGENT,
            origin=Origin.AGENT,
            session=self.id,
            guest=self.guest.mark if self.guest else "",
            scope=self.listener.scope,
            taint=self.all_read,
        )

    @property
    def all_read(self) -> frozenset[Origin]:
        """What this session has read, and whoever called it: its question comes from there."""
        return self.tainted | (self.parent.all_read if self.parent else frozenset())

    def owner_typed(self) -> tuple[str, ...]:
        """What the owner typed in this conversation, as far as this door shows it: an agent elsewhere could make it up."""
        talks, talk = self.rooms, self._talk
        if self.guest is not None or self.parent is not None or not self.listener.sees_all:
            return ()
        if talk is None or talks.has_arrived(self.id):
            return ()
        turns = [turn for turn in talk.since(0)[0] if turn.role == "user"]
        return tuple(turn.content for turn in turns if not talks.origins_of(turn, "", self.channel))

    def judged(self, change: Change) -> tuple[Verdict, tuple[Finding, ...]]:
        """What the gate would say of a change, without making it."""
        with self._mutex:
            situation = Situation(flows=self.flows, access=self.access, layer=self.listener.layer)
            return self.rooms.writer().judge([change], [None], situation)

    def submit(
        self, change: Change, *, what: str = "write", submitted: str | None = None, wish: tuple[object, ...] = ()
    ) -> Receipt:
        """Takes a change the road in, under this session's limits. Where its listener does not see the whole document,
        `submitted` alone is judged: what was handed in for this `wish`, without what stands there. Nothing in the
        receipt hangs on that then."""
        with self._mutex:
            now = self.site.clock()
            while self._recent and now - self._recent[0] > timedelta(minutes=1):
                self._recent.popleft()
            sight = self.listener.sight(self.site.layout, change.path)
            situation = Situation(
                recent=len(self._recent),
                flows=self.flows if change.origin is not Origin.OWNER else frozenset(),
                access=self.access,
                layer=self.listener.layer,
                workspace=self.listener.workspace,
                submitted=None if sight is Sight.WHOLE else change.text if submitted is None else submitted,
                wish=wish,
                unseen=sight is Sight.NONE,
            )
            if change.kind is Kind.APPEND:
                try:
                    document = self.site.store.documents.read(change.path)
                except HomeError:
                    pass  # nothing stands there, or the road in says what is wrong with it
                else:
                    change = self._at_the_end(change, document)
            receipt = self.rooms.writer().submit([_spoken(change)], situation=situation, what=what)[0]
            if receipt.status != "refused":
                self._recent.append(now)
            # A revision has an id only where something changed, and so tells what stood there; so does a place.
            return receipt if sight is Sight.WHOLE else replace(receipt, revision=None, digest=None, section=None)

    def _at_the_end(self, change: Change, document: Document) -> Change:
        """What is added at the end of a page comes under no shared, private or dreamed heading; where something is hidden from
        who adds it, to the end of what they see."""
        part = self.listener.view(self.site.layout, change.path, document.text)
        added = change.text if self.listener.sees_all else ended(change.text)
        if part.whole or not self.listener.sees(self.site.layout, change.path):
            return replace(change, text=opening_for(document.text) + added, added=change.text)
        before = (ended(part.text) or change.opening) + opening_for(part.text)
        page = put(self, change.path, document.text, before + added)
        return replace(change, kind=Kind.WRITE, text=page, base=document.digest, added=change.text)

    def wish_forgotten(self, change: Change, wish: Mapping[str, str]) -> Receipt:
        """A wish to forget: it waits for the owner, always. A session that may not write may not wish either."""
        if self.access != "rw":
            verdict = said(Answer.DENY, "read-only", access=self.access)
            return Receipt(status="refused", path=change.path, rule=verdict.rule, reason=verdict.reason)
        card = self.rooms.propose(_spoken(change), wish, self.listener.layer)
        if card is None:
            why = "enough of whoever asks waits for the owner already; once it is decided, ask again"
            return Receipt(status="refused", path=change.path, rule="too-many-pending", reason=why)
        return Receipt(status="pending", path=change.path, proposal=card.id, rule=card.rule, reason=card.why)


def put(hand: Hand, path: DocPath, text: str | None, wanted: str) -> str:
    """A page with what the listener sees of it become what they want."""
    view = partial(hand.listener.view, hand.site.layout, path)
    return wanted if hand.listener.sees_all else put_into(text or "", wanted, view)


def _spoken(change: Change) -> Change:
    """A change without its reason where that holds a secret or a danger: cards and history show it as it is."""
    is_unfit = any(is_secret(found) or is_danger(found) for found in scan_text(change.reason))
    return replace(change, reason="") if is_unfit else change


# -- the owner's own sentences ----------------------------------------------------------------------------------------


WORTH: dict[str, Any] = read_table("sessions", "worth")
PATTERNS = {name: re.compile(one_line(pattern)) for name, pattern in WORTH["patterns"].items()}
MOST_TYPED = 2_000  # characters of a message; who types more has pasted it
_HOLE = "\0"


def without_blocks(text: str, hole: str = "") -> str:
    """A text without its fences and what stands behind `>`: that is somebody else's."""
    return PATTERNS["block"].sub(hole, text)


def sentences(text: str) -> list[str | None]:
    """The sentences of a text in their order, blanks folded; None stands for one that holds what is not its writer's own."""
    own = PATTERNS["inline"].sub(_HOLE, without_blocks(text.replace(_HOLE, " "), _HOLE))
    found: list[str] = []
    for line in own.split("\n"):
        parts: list[str] = []
        for part in PATTERNS["end"].split(line):
            if parts and (PATTERNS["short"].search(parts[-1]) or part[:1].islower()):
                parts[-1] += f" {part}"
            else:
                parts.append(part)
        found += (" ".join(part.split()) for part in parts if part.strip())
    return [None if _HOLE in sentence else sentence for sentence in found]


def quotable(message: str) -> list[str | None]:
    """The sentences of a message that may be quoted: of none that is long, or in which the scan finds anything."""
    return [] if len(message) > MOST_TYPED or scan_text(message) else sentences(message)


def found_in(quote: str, messages: Iterable[str]) -> str | None:
    """A quotation as it stands in one of the messages; None where none of them has it."""
    wanted = sentences(quote)
    if not wanted or None in wanted:
        return None
    for message in messages:
        there = quotable(message)
        for start in range(len(there) - len(wanted) + 1):
            run = [sentence or "" for sentence in there[start : start + len(wanted)]]
            if run == wanted or [*run[:-1], run[-1].removesuffix(".")] == wanted:
                return " ".join(run)
    return None


def told(words: str) -> str:
    """What a user said, as a line of memory. One sentence that asks to remember something is that something, and without
    a speaker where nobody is spoken of or to; of all else a line says that they said it."""
    found = sentences(words)
    asked = PATTERNS["request"].match(words) if len(found) == 1 else None
    fact = words[asked.end() :].strip() if asked else ""
    if not fact:
        return f"User: {words}"
    fact = fact[:1].upper() + fact[1:] if fact.split()[0].islower() else fact
    addressed = not word_set(WORTH["addressed"]).isdisjoint(re.findall(r"[^\W\d_]+", fact.casefold()))
    return f"User: {fact}" if addressed or first_person(fact) else fact


def quoted(change: Change) -> Change:
    """A change that says nothing but what the owner typed: it is theirs, whatever else was read."""
    return replace(change, origin=Origin.OWNER, taint=frozenset())


# -- tools from outside -------------------------------------------------------------------------------------------------


MOST = 65_536  # characters of the arguments of a call that waits
NO = "the owner said no"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenCall:
    """A call that has no answer yet, by the id of its card in the inbox."""

    id: str
    name: str  # by which a model calls it
    server: str
    tool: str
    given: dict[str, Any]
    card: Proposal

    @classmethod
    def of(cls, card: Proposal) -> OpenCall:
        call = dict(card.call or {})
        given = json.loads(call.pop("text"))
        return cls(id=card.id, card=card, given=given if isinstance(given, dict) else {}, **call)


class OutsideCalls:
    """The calls of one session."""

    def __init__(self, hand: Hand, record: Callable[..., None], turns: Callable[[], Iterable[Turn]]) -> None:
        self._hand, self._record, self._turns = hand, record, turns

    def heard(
        self, name: str, given: Mapping[str, Any], text: str, id: str | None, *, agent: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """The answer of a tool from outside, taken in and on record; with `agent`, of another agent, and who that is."""
        answer = {**(agent or {}), "outside": text}
        said = Turn(timestamp="", role="tool", content=text, name=name)
        self._hand.take_in(text, turn=None if agent else said, origins={Origin.PEER} if agent else ())
        return self.told(name, given, answer, id)

    def told(self, name: str, given: Mapping[str, Any], answer: dict[str, Any], id: str | None) -> dict[str, Any]:
        """What the runtime itself answers to a call, on record."""
        self._record(name, given, answer, id)
        return answer

    def refused(self, name: str, given: Mapping[str, Any], reason: str, id: str | None) -> dict[str, Any]:
        """A call that was not made, on record with the reason."""
        answer = no(reason)
        self._record(name, given, answer, id, denied=True)
        return answer

    def ask(self, name: str, server: str, tool: str, given: Mapping[str, Any]) -> OpenCall | str:
        """A call that waits for the owner from now on; or why it cannot."""
        text = json.dumps(given, ensure_ascii=False)
        if len(text) > MOST:
            return f"its arguments are longer than {MOST:,} characters, which nobody would read before a yes"
        change = self._hand.wish(DocPath.parse(FILE), Kind.APPEND)  # says who asks; no tool writes this file
        card = self.waiting.ask(change, {"name": name, "server": server, "tool": tool, "text": text})
        return OpenCall.of(card) if card else "enough of this conversation waits for the owner already"

    def open(self) -> list[OpenCall]:
        """The calls of this session that have no answer yet. One whose answer is on record was only not put away."""
        found = [OpenCall.of(card) for card in self.waiting.of(self._hand.id)]
        on_record = {turn.message_id for turn in self._turns()} if found else set()
        for each in found:
            if each.id in on_record:
                self.waiting.answered(each.card)
        return [each for each in found if each.id not in on_record]

    @property
    def waiting(self) -> WaitingCalls:
        return self._hand.rooms.writer().calls


def no(reason: str) -> dict[str, Any]:
    """What a model hears of a call that was not made."""
    return {"denied": reason or NO, "done": False}
