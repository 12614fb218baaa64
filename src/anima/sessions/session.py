"""A Session: the agent's hand in a home, with the scope, sender and taint it was opened with.

Promise: an agent reaches documents only through `call`; what it reads passes the scope filter, what it writes passes
the road with its session's taint; reading untrusted text taints the session for good, also across a resume, until the
owner clears it. What was said is on the disk before `log` returns, and what is worth keeping of it is written down
before the context is cut. A Session lives from `home.session` to `close` and is safe to share by threads.
Not here: the tool table (tools), what each tool does (calling), how a flush is done (flushing).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from anima.errors import BadArguments, HomeError, NoSuchSession
from anima.gate import FlowEvent, Situation, flows_after, may
from anima.layout.listener import Listener
from anima.model import (
    UNTRUSTED,
    Access,
    Actor,
    Answer,
    Change,
    Complete,
    DocPath,
    Kind,
    Origin,
    Receipt,
    Runtime,
    Scope,
    Verdict,
)
from anima.sessions.calls import Calling
from anima.sessions.flush import SIZE, Flushed, Flushing, Pressure
from anima.sessions.record import Transcript, stamp
from anima.sessions.replay import Header
from anima.sessions.tools import Tool, chosen
from anima.sessions.transcripts import origins
from anima.sessions.worth import Said
from anima.text.markdown import sections

if TYPE_CHECKING:
    from anima.home import Home
    from anima.model import Entry
    from anima.prompt.compose import Prompt
    from anima.sessions.record import Role
    from anima.sessions.replay import Turn

ESSENTIAL = frozenset({"every session", "session startup", "red lines", "safety"})  # of AGENTS.md, after a cut
ESSENTIAL_CHARS = 6_000
_MINUTE = timedelta(minutes=1)
_ACCESS: tuple[Access, ...] = ("none", "ro", "rw")


class Session:
    """One conversation. Make it with `home.session(scope=…)`, or take one up with `home.resume(id)`."""

    def __init__(
        self,
        home: Home,
        listener: Listener,
        *,
        id: str,
        channel: str | None = None,
        sender: str | None = None,
        access: Access = "rw",
        model: str | None = None,
        complete: Complete | None = None,
        parent: Session | None = None,
        talk: Transcript | None = None,
    ) -> None:
        own = next((agent for agent in home.config.agent if agent.id == home.agent), None)
        self.home, self.listener, self.id, self.parent = home, listener, id, parent
        self.channel, self.sender, self.model = channel, sender, model
        self.access: Access = _narrower(access, own.workspace_access if own else "rw")
        self.tainted: frozenset[Origin] = parent.tainted if parent else frozenset()
        self.flows: frozenset[str] = parent.flows if parent else frozenset()
        self._recorded: tuple[frozenset[Origin], frozenset[str]] = (frozenset(), frozenset())  # on the disk
        self._complete = complete
        self._mutex, self._flush_mutex = threading.RLock(), threading.RLock()
        self._is_flushing = self._closed = False
        self._recent: deque[datetime] = deque()
        self._talk = talk
        self._runtime = Runtime(model=model, channel=channel, session=id)
        self.prompt: Prompt = self._fresh_prompt()
        self._calling, self._flushing = Calling(self), Flushing(self)
        if talk is not None:
            self._carry_on(talk)

    def _carry_on(self, talk: Transcript) -> None:
        """Takes up what the transcript says was read and flushed. Where it cannot be read, the worst is assumed."""
        last = talk.resumed
        if last is None:
            return
        if last.damaged or self.home.transcripts.has_arrived(self.id):
            self.tainted |= UNTRUSTED
        elif last.state is not None:
            self.tainted |= origins(last.state.taint)
            self.flows |= frozenset(last.state.flows)
        for origin in self.tainted:
            self.flows = flows_after(self.flows, FlowEvent(origin=origin), self.home.writing.policy)
        self._recorded = (self.tainted, self.flows)
        self._flushing.carry_on(last)
        self._note_persona()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """One thread at a time."""
        with self._mutex:
            if self._closed:
                raise BadArguments(f"session {self.id} is closed")
            yield

    # -- the prompt -----------------------------------------------------------------------------------------------------

    def _fresh_prompt(self) -> Prompt:
        return self.home.prompt_for(self.listener, self._runtime)

    def refresh(self) -> Prompt:
        """A new prompt from what is on disk now; until then the one of the session's start holds."""
        before, self.prompt = self.prompt.persona, self._fresh_prompt()
        if self._talk is not None and self.prompt.persona != before:
            self._note_persona()
        return self.prompt

    def _note_persona(self) -> None:
        """Which soul was worn from here on, for the record."""
        fields = {"session": self.id, "file": self.prompt.persona, "scope": str(self.listener.scope)}
        self.home.books.append("persona", {key: value for key, value in fields.items() if value}, sync=False)

    # -- the record -----------------------------------------------------------------------------------------------------

    def log(
        self, role: Role, content: str, *, message_id: str | None = None, sender_id: str | None = None
    ) -> Turn | None:
        """Records one line of the conversation, secrets struck out; None where transcripts are switched off.

        The transcript begins with the first line, so a session in which nothing is said leaves none.
        """
        with self.at_work():
            turn = self._logged(role, content, message_id, sender_id)
            if role == "user" and self.home.config.prompt.freeze == "turn":
                self.refresh()
            return turn

    def _logged(self, role: Role, content: str, message_id: str | None, sender_id: str | None) -> Turn | None:
        if not self.home.config.sessions.dir:
            text = self.home.redaction()(content)[0]
            self._flushing.heard(Said(role=role, text=text, number=0, time=self.home.clock()))
            return None
        if self._talk is None:
            self._talk = self._begun()
        speaker = sender_id if sender_id is not None or role != "user" else self.sender
        return self._talk.log(role, content, message_id=message_id, sender_id=speaker)

    def _begun(self) -> Transcript:
        """A transcript whose header says who listened, which soul was worn, and what the prompt was made of."""
        home = self.home
        manifest = tuple(
            {
                "path": line.path,
                "role": line.role,
                "status": line.status,
                "chars_shown": line.chars_shown,
                "reason": line.reason,
            }
            for line in self.prompt.manifest
        )
        header = Header(
            id=self.id,
            timestamp=stamp(home.clock()),
            agent_id=home.agent,
            source_plugin=self.channel or "",
            scope=str(self.listener.scope),
            sender_id=self.sender,
            layer=self.listener.layer or None,
            persona=self.prompt.persona,
            manifest=manifest,
            parent=self.parent.id if self.parent else None,
        )
        talk = home.transcripts.begin(header)
        if self.tainted or self.flows:
            self._record_trust(talk)
        self._note_persona()
        return talk

    def close(self) -> None:
        """Writes down what is worth keeping, ends the transcript and commits. Closing twice does no harm."""
        if self._closed:
            return
        try:
            self.flush("close")
        except HomeError:
            pass  # what was said is in the transcript; whoever takes the session up again flushes it
        with self._mutex:
            self._closed = True
            if self._talk is not None:
                self._talk.close()
                self.home.transcripts.listing.refresh()
        self.home.books.commit(reason=f"session {self.id} closed")

    def leave(self) -> None:
        """Lets the session go without ending it: whoever holds it, or takes it up again, goes on."""
        with self._mutex:
            self._closed = True
            if self._talk is not None:
                self._talk.abandon()

    # -- trust ----------------------------------------------------------------------------------------------------------

    def taint(self, origin: Origin | str) -> None:
        """Untrusted text came in. Flow rules that watch for it are active from now on."""
        try:
            found = Origin(origin)
        except ValueError:
            raise BadArguments(f"there is no origin {origin!r}; there are {', '.join(Origin)}") from None
        with self._mutex:
            self.tainted |= {found} & UNTRUSTED
            self.took_in(FlowEvent(origin=found))
            if self.parent is not None:
                self.parent.taint(found)  # what a sub-session reports goes back to whoever called it

    def took_in(self, event: FlowEvent) -> None:
        """Something came in: flow rules it wakes are kept, on the disk too, once there is a record."""
        with self._mutex:
            self.flows = flows_after(self.flows, event, self.home.writing.policy)
            if self._talk is not None and (self.tainted, self.flows) != self._recorded:
                self._record_trust(self._talk)

    def _record_trust(self, talk: Transcript) -> None:
        talk.state(taint=self.tainted, flows=self.flows)
        self._recorded = (self.tainted, self.flows)

    def overhear(self, ids: Iterable[str]) -> None:
        """Words of other sessions came in: what had tainted those taints this one."""
        for origin in self.home.transcripts.doubts(set(ids) - {self.id}):
            self.taint(origin)

    def trust(self) -> None:
        """The owner vouches for what was read so far."""
        with self._mutex:
            self.tainted, self.flows = frozenset(), frozenset()
            if self._talk is not None:
                self._record_trust(self._talk)

    def may(self, action: str) -> Verdict:
        """What a host asks before it does something, such as sending a message out (`outbound`)."""
        return may(action, self.flows, self.home.writing.policy)

    # -- tools ----------------------------------------------------------------------------------------------------------

    def tools(self) -> tuple[Tool, ...]:
        """The tools this session has: those of its scope that the configuration allows its agent."""
        return self.home.tools(self.listener.scope)

    def call(self, name: str, arguments: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """A tool's result as a plain dictionary. A refused write is an answer; a wrong argument raises BadArguments."""
        self._check_open()
        given = chosen(name, self.tools()).checked({} if arguments is None else arguments)
        return self._calling.run(name, given)

    def documents(self) -> tuple[Entry, ...]:
        """Every Markdown document this listener may see, in the order of their paths."""
        self._check_open()
        found = (entry for entry in self.home.store.list_all("") if DocPath.parse(entry.path).is_markdown)
        return tuple(sorted((e for e in found if self._calling.lists(e.path)), key=lambda e: e.path))

    def read(self, path: str) -> str:
        """A document as this listener may see it, whole. It counts as read, as it does with `memory_get`."""
        self._check_open()
        return self._calling.read(path)

    def _check_open(self) -> None:
        if self._closed:
            raise BadArguments(f"session {self.id} is closed")
        if self.access == "none":
            raise BadArguments("this session has no access to the home")

    def wish(self, path: DocPath, kind: Kind, text: str = "", *, base: str | None = None) -> Change:
        """A change as this session makes it, with its scope and taint."""
        return Change(
            path=path,
            kind=kind,
            text=text,
            base=base,
            actor=Actor.AGENT,
            origin=Origin.AGENT,
            session=self.id,
            scope=self.listener.scope,
            taint=self.tainted,
        )

    def submit(self, change: Change, *, what: str = "write") -> Receipt:
        """Takes a change the road in, under this session's limits."""
        with self._mutex:
            now = self.home.clock()
            while self._recent and now - self._recent[0] > _MINUTE:
                self._recent.popleft()
            situation = Situation(
                recent=len(self._recent), flows=self.flows, access=self.access, layer=self.listener.layer
            )
            receipt = self.home.writing.submit([change], situation=situation, what=what)[0]
            if receipt.status != "refused":
                self._recent.append(now)
            return receipt

    def wish_forgotten(self, change: Change, wish: Mapping[str, str]) -> Receipt:
        """A wish to forget: it waits for the owner, always. A session that may not write may not wish either."""
        from anima.forget.forget import propose
        from anima.gate.rules import said

        if self.access != "rw":
            verdict = said(Answer.DENY, "read-only", access=self.access)
            return Receipt(status="refused", path=change.path, rule=verdict.rule, reason=verdict.reason)
        proposal = propose(self.home, change, wish, layer=self.listener.layer)
        if proposal is None:
            return Receipt(
                status="refused",
                path=change.path,
                rule="too-many-pending",
                reason="enough of this session waits for the owner already",
            )
        return Receipt(
            status="pending", path=change.path, proposal=proposal.id, rule=proposal.rule, reason=proposal.why
        )

    def sub(self, *, model: str | None = None, complete: Complete | None = None) -> Session:
        """A sub-session: a helper of the agent's, in the SUBAGENT scope, that knows no more than that and keeps no memory.

        What taints it taints this session too, because its report comes back here.
        """
        listener = Listener(scope=Scope.SUBAGENT, layer=self.listener.layer)
        return Session(
            self.home,
            listener,
            id=self.home.new_id(),
            channel=self.channel,
            sender=self.sender,
            access=self.access,
            model=model or self.model,
            complete=complete,
            parent=self,
        )

    # -- before and after the cut -----------------------------------------------------------------------------------------

    def pressure(self, tokens: int) -> Pressure:
        """Says how many tokens the context holds now. Near the limit, once a cycle, memory is flushed."""
        asked = self.home.config.sessions
        limit = asked.window - min(asked.reserve + asked.soft, asked.window // 2)
        with self._mutex:
            size = self._talk.size - self._flushing.cycle_start if self._talk else 0
        near = tokens >= limit or size >= SIZE
        flushed = self.flush("pressure") if near and not self._flushing.cycle_done else None
        return Pressure(tokens=tokens, limit=limit, near=near, flushed=flushed)

    def flush(self, reason: str, *, complete: Complete | None = None) -> Flushed:
        """Writes down what is worth keeping of everything said since the last flush. For any host, before any cut:
        near the limit, on an overflow, `/new`, `/reset`. Doing it twice writes nothing twice.

        With a completion function, here or given to the session, the model adds its own lines once a cycle.
        """
        with self._flush_mutex:
            if self._is_flushing or self._closed:  # the host's own model came back here
                return Flushed(reason=reason, status="nothing", through=self._flushing.through)
            self._is_flushing = True
            try:
                done = self._flushing.run(reason, self._talk, complete or self._complete)
                self._flushing.cycle_done |= reason == "pressure"
                return done
            finally:
                self._is_flushing = False

    def after_compaction(self, *, tokens: int = 0, summary: str | None = None, kept: int = 0) -> str:
        """Says that the context was cut: what was not flushed yet is, the cut is recorded, and a new cycle begins.
        Gives what the model must be told again: the essential sections of AGENTS.md, and the time."""
        self.flush("compaction")
        with self.at_work():
            if self._talk is not None:
                self._talk.boundary(
                    uuid=self.home.new_id(), token_count=max(0, tokens), summary=summary, kept=max(0, kept)
                )
            self._flushing.begin_cycle(self._talk.size if self._talk else 0)
            return self._essentials()

    def _essentials(self) -> str:
        now = self.now()
        told = [
            f"This conversation was shortened. It is {now:%A, %Y-%m-%d %H:%M}. What was worth keeping is in the log of the day."
        ]
        path = DocPath.parse(self.home.layout.row("agents").path) if self.home.layout.has("agents") else None
        if path is not None and self.listener.sees(self.home.layout, path):
            told += _essential(self._agents(path))
        return "\n\n".join(told)[:ESSENTIAL_CHARS]

    def _agents(self, path: DocPath) -> str:
        try:
            text = self.home.read(path).text
        except HomeError:
            return ""
        return self.listener.view(self.home.layout, path, text).text

    def now(self) -> datetime:
        """The moment in the timezone of whoever this session is with."""
        return self.home.site.now(self.listener)


def resume(home: Home, id: str, *, model: str | None, access: Access, complete: Complete | None) -> Session:
    """A session taken up again, with the listener its transcript names."""
    if not home.config.sessions.dir:
        raise NoSuchSession(f"{id}: no transcripts are kept here", hint="sessions.dir in anima.toml is empty")
    talk = home.transcripts.resume(id)
    try:
        header = talk.header
        listener = home.listener(scope=header.scope or Scope.GROUP, sender=header.sender_id)
        if listener.layer != (header.layer or ""):
            raise NoSuchSession(
                f"{id}: this session was held when other senders were the owner",
                hint="begin a new one; anima session reads this one",
            )
        return Session(
            home,
            listener,
            id=id,
            channel=header.source_plugin or None,
            sender=header.sender_id,
            access=access,
            model=model,
            complete=complete,
            talk=talk,
        )
    except BaseException:
        talk.abandon()
        raise


def _essential(text: str) -> list[str]:
    """The sections of a guide that must come back after a cut: by their names, or marked `<!-- essential -->`."""
    found, end = [], 0
    for section in sections(text):
        marked = "<!-- essential -->" in text[section.start : section.body]
        if section.start >= end and section.level and (marked or section.title.casefold() in ESSENTIAL):
            found.append(text[section.start : section.end].strip())
            end = section.end
    return found


def _narrower(one: str, other: str) -> Access:
    for access in (one, other):
        if access not in _ACCESS:
            raise BadArguments(f"access is one of {', '.join(_ACCESS)}, not {access!r}")
    return next(access for access in _ACCESS if access in (one, other))
