"""A Session: the agent's hand in a home; and Sessions: the conversations of one home, begun, taken up and found.

Promise: an agent reaches documents only through `call`; what it reads passes the scope filter, what it writes passes
the road with its session's taint. What was said is on the disk before `log` returns, and what is worth keeping is
written down before the context is cut. A channel narrows a scope and never widens it, and no agent speaks in the place
of another. Both are safe to share by threads. Not here: what it has read (hand), tools (calls), flushing (flush).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, overload
from weakref import WeakValueDictionary

from anima.errors import BadArguments, HomeError, NoSuchSession, for_a_model
from anima.layout import Listener, Sight, is_groups, place_of
from anima.memory import Proposal
from anima.memory.past import Past
from anima.model import Access, Change, Complete, DocPath, Kind, Nights, Origin, Scope, Seen
from anima.prompt.identity import Subagent
from anima.sessions import CHATS, agent_for, narrowed, route_of
from anima.sessions.calls import Calling, framed, is_others
from anima.sessions.find import TranscriptIndex
from anima.sessions.flush import SIZE, Flushed, Flushing, Pressure
from anima.sessions.hand import Guest, Hand, OpenCall, OutsideCalls, Rooms, no
from anima.sessions.record import Role, Transcript
from anima.sessions.replay import Header, Turn, stamp
from anima.sessions.self_report import SelfReport
from anima.sessions.tools import Format, Tool, chosen, tool_calls, tools_for
from anima.sessions.transcripts import redaction
from anima.site import Site, first_agent
from anima.text.markdown import sections

if TYPE_CHECKING:
    from anima.memory.write import Writer
    from anima.prompt import Prompt
    from anima.prompt.gather import Prompts
    from anima.search.current import Search

ESSENTIAL = frozenset({"every session", "session startup", "red lines", "safety"})  # of AGENTS.md, after a cut
ESSENTIAL_CHARS = 6_000


class Session(Hand):
    """One conversation. Make it with `home.session(scope=…)`, or take one up with `home.resume(id)`."""

    rooms: Sessions

    def __post_init__(self, talk: Transcript | None) -> None:
        super().__post_init__(talk)
        self.rooms._open[id(self)] = self
        self._flush_mutex, self._is_flushing = threading.RLock(), False
        rooms, self._flushing = self.rooms, Flushing(self)
        self._calling = Calling(self, rooms.search, lambda: Past(self.site, rooms.writer()))
        self._self_report = SelfReport(self, self._calling.memory, rooms.nights)
        self.outside = OutsideCalls(self, self._record_call, lambda: self.context()[1])
        if talk is not None and talk.resumed is not None:
            self._carry_on(talk.resumed)
            self._flushing.carry_on(talk.resumed)
            self._note_persona()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def refresh(self) -> Prompt:
        """A new prompt from what is on disk now; until then the one of the session's start holds."""
        before, self.prompt = self.prompt.persona, self.fresh_prompt()
        if self._talk is not None and self.prompt.persona != before:
            self._note_persona()
        return self.prompt

    def _note_persona(self) -> None:
        """Which soul was worn from here on, for the record."""
        fields = {"session": self.id, "file": self.prompt.persona, "scope": str(self.listener.scope)}
        self.site.store.append("persona", {key: value for key, value in fields.items() if value}, sync=False)

    def log(
        self,
        role: Role,
        content: str,
        *,
        message_id: str | None = None,
        sender_id: str | None = None,
        name: str | None = None,
    ) -> Turn | None:
        """Records one line of the conversation, secrets struck out; None where transcripts are switched off. What a
        tool says is text from outside, unless its `name` is one of `own_tools`; so is what another sender says. The
        transcript begins with the first line or call; a session in which nothing happens leaves none."""
        with self.at_work():
            speaker = sender_id if sender_id is not None or role != "user" else self.sender
            said = Turn(timestamp="", role=role, content=content, sender_id=speaker, message_id=message_id, name=name)
            self.take_in(content, turn=said)
            turn = None
            if self.rooms.kept:
                turn = self._begun().log(role, content, message_id=message_id, sender_id=speaker, name=name)
            else:
                text = redaction(self.site.config.sessions)(content)[0]
                self._flushing.said.append(replace(said, timestamp=stamp(self.site.clock()), content=text))
            if role == "user" and self.site.config.prompt.freeze == "turn":
                self.refresh()
            return turn

    def _begun(self) -> Transcript:
        """The transcript; a new one's header says who listened, which soul was worn, and what the prompt was made of."""
        if self._talk is not None:
            return self._talk
        shown = ("path", "role", "status", "chars_shown", "reason")
        manifest = tuple({key: getattr(line, key) for key in shown} for line in self.prompt.manifest)
        header = Header(
            id=self.id,
            timestamp=stamp(self.site.clock()),
            agent_id=self.site.agent,
            source_plugin=self.channel or "",
            scope=str(self.listener.scope),
            sender_id=self.sender,
            layer=self.listener.layer or None,
            persona=self.prompt.persona,
            manifest=manifest,
            parent=self.parent.id if self.parent else None,
            guest=self.guest.mark if self.guest else None,
            access=None if self.access == "rw" else self.access,
        )
        self._talk = self.rooms.create(header)
        if self.tainted or self.flows:
            self._record_trust(self._talk)
        self._note_persona()
        return self._talk

    def close(self) -> None:
        """Writes down what is worth keeping, ends the transcript and commits. Closing twice does no harm."""
        if self._closed:
            return
        with suppress(HomeError):  # what was said is in the transcript; whoever takes the session up again flushes it
            self.flush("close")
        with self._mutex, suppress(BadArguments):  # its home was closed before it, and has let everything go
            self._closed = True
            if self._talk is not None:
                self._talk.close()
                self.rooms.refresh()
            self.site.store.commit()

    def leave(self) -> None:
        """Lets the session go without ending it: whoever holds it, or takes it up again, goes on."""
        with self._mutex:
            self._closed = True
            if self._talk is not None:
                self._talk.abandon()

    @overload
    def tools(self) -> tuple[Tool, ...]: ...

    @overload
    def tools(self, format: Format) -> list[dict[str, Any]]: ...

    def tools(self, format: Format | None = None) -> tuple[Tool, ...] | list[dict[str, Any]]:
        """The tools this session has: those of its scope that the configuration allows its agent. With a format, as that
        service is told of them: `openai` (chat), `responses` (OpenAI's newer API), `anthropic`, `mcp`."""
        found = tools_for(self.site, self.listener.scope)
        return found if format is None else [tool.described(format) for tool in found]

    def tool(self, name: str) -> Tool:
        """The tool of that name. Raises BadArguments; one that exists elsewhere only is not there."""
        return chosen(name, self.tools())

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, id: str | None = None) -> dict[str, Any]:
        """A tool's result as a plain dictionary. A refused write is an answer; a wrong argument raises BadArguments.
        The call is part of the transcript, with the host's own `id` for it; so is one that went wrong."""
        return self._called(name, {} if arguments is None else arguments, id)

    def _called(self, name: str, given: Any, id: str | None) -> dict[str, Any]:
        """A call as a model wishes for it, whatever its arguments are."""

        def work() -> dict[str, Any]:
            checked = chosen(name, self.tools()).checked(given)
            does = getattr(self._calling, f"_{name}", None) or getattr(self._self_report, f"_{name}")
            answer: dict[str, Any] = does(**{("start" if key == "from" else key): checked[key] for key in checked})
            return answer

        return self._recorded_call(name, given, id, work)

    def change(self, kind: Kind | str, path: str, *, to: str | None = None, id: str | None = None) -> dict[str, Any]:
        """Moves or deletes a document (`move` or `delete`), for tools of other makes that can: over the gate, answered and on
        record like a call. Raises NoSuchDocument, also where the listener does not see all of it."""
        kind, given = Kind.parse(kind), {"path": path} | ({"to": to} if to is not None else {})
        if kind not in (Kind.MOVE, Kind.DELETE) or (kind is Kind.DELETE and to is not None):
            raise BadArguments("change moves a document to a place, or deletes it; the tool memory_write writes")
        return self._recorded_call(f"memory_{kind}", given, id, lambda: self._calling.change(kind, path, to))

    def _recorded_call(
        self, name: str, given: Mapping[str, Any], id: str | None, work: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        self._check_open()
        self.catch_up()
        try:
            answer = work()
        except HomeError as error:
            self._record_call(name, given, {"error": str(error)}, id)
            raise
        self._record_call(name, given, answer, id)
        return answer

    def run(self, calls: Any) -> list[Any]:
        """Carries out the tool calls of a model's message, in order, and answers each in the shape it came in. Takes
        `message.tool_calls` or `response.output` of OpenAI's, `message.content` of Anthropic's, the whole message or
        response, or pairs (name, arguments). An error is an answer too, a sentence that a model can act on."""
        self._check_open()
        answers = []
        for each in tool_calls(calls):
            try:
                answers.append(each.answered(self._called(each.name, each.arguments, each.id), False))
            except HomeError as error:
                answers.append(each.answered({"error": for_a_model(error, root=self.site.store.name)}, True))
        return answers

    def _record_call(
        self, name: str, given: object, answer: Mapping[str, Any], id: str | None, *, denied: bool = False
    ) -> None:
        """What the tool did is done: that it cannot be recorded, or not any more, does not undo it."""
        with self._mutex, suppress(HomeError):
            if self.rooms.kept and not self._closed:
                self._begun().call(name, given, answer, read=self.all_read, id=id, denied=denied)

    def news(self) -> tuple[Turn, ...]:
        """What others added to this conversation since it was last asked for: another process that went on with it, or the
        owner's no to a call. It is taken in like all that is said, and so is what they had read."""
        self.catch_up()
        found = self._talk.news() if self._talk is not None else ()
        for turn in found:
            self.take_in(turn.content, turn=turn)
        return found

    def documents(self) -> tuple[Seen, ...]:
        """Every Markdown document this listener may see, in the order of their paths."""
        self._check_open()
        found = []
        for entry in self.site.store.documents.list_all(""):
            path = DocPath.parse(entry.path)
            if path.is_markdown and self._calling.lists(entry.path):
                is_whole = self.listener.sight(self.site.layout, path) is Sight.WHOLE
                found.append(Seen(entry.path, entry.size, entry.time) if is_whole else Seen(entry.path))
        theirs = (seen.path for seen in found if is_others(seen.path) and not seen.path.startswith("unreviewed/"))
        if self.listener.is_owner and any(theirs):
            self.take_in("", origins={Origin.PEER})  # names are words too
        return tuple(sorted(found))

    def read(self, path: str) -> str:
        """A document as this listener may see it, whole. It counts as read, as it does with `memory_get`."""
        self._check_open()
        return self._calling.read(path)

    def _check_open(self) -> None:
        if self._closed:
            raise BadArguments(f"session {self.id} is closed")
        if self.access == "none":
            raise BadArguments("this session has no access to the home")

    def sub(
        self, *, agent: Subagent | None = None, model: str | None = None, complete: Complete | None = None
    ) -> Session:
        """A sub-session: a helper of the agent's, in the SUBAGENT scope, that knows no more than that and keeps no
        memory; of a declared sub-agent it has the page, and may write to its own folder. What taints it taints this
        session too, because its report comes back here."""
        listener = Listener(scope=Scope.SUBAGENT, layer=self.listener.layer, workspace=agent.workspace if agent else "")
        return Session(
            rooms=self.rooms,
            listener=listener,
            id=self.site.new_id(),
            channel=agent.id if agent else self.channel,
            sender=None if agent else self.sender,
            access=self.access,
            model=model or self.model,
            complete=complete,
            parent=self,
            agent=agent,
        )

    def pressure(self, tokens: int) -> Pressure:
        """Says how many tokens the context holds now. Near the limit, once a cycle, memory is flushed."""
        asked = self.site.config.sessions
        limit = asked.window - min(asked.reserve + asked.soft, asked.window // 2)
        with self._mutex:
            size = self._talk.seen.offset - self._flushing.cycle_start if self._talk else 0
        near = tokens >= limit or size >= SIZE
        flushed = self.flush("pressure") if near and not self._flushing.cycle_done else None
        return Pressure(tokens=tokens, limit=limit, near=near, flushed=flushed)

    def flush(self, reason: str, *, complete: Complete | None = None) -> Flushed:
        """Writes down what is worth keeping of everything said since the last flush. For any host, before any cut: near
        the limit, on an overflow, `/new`, `/reset`. Doing it twice writes nothing twice. With a completion function,
        here or given to the session, the model adds its own lines once a cycle."""
        with self._flush_mutex:
            if self._is_flushing or self._closed:  # the host's own model came back here
                return Flushed(reason=reason, status="nothing", through=self._flushing.through)
            self._is_flushing = True
            try:
                self.catch_up()
                done = self._flushing.run(reason, self._talk, complete or self.complete)
                self._flushing.cycle_done |= reason == "pressure"
                if self._talk is not None and self.site.layout.talks:  # others read its list of sessions
                    self.rooms.refresh()
                return done
            finally:
                self._is_flushing = False

    def context(self) -> tuple[str, tuple[Turn, ...]]:
        """What a model that takes this conversation up goes on from: the summary of the last cut, and the entries since."""
        if self._talk is None:
            return "", ()
        boundary, turns = self._talk.in_context()
        return (boundary.summary or "" if boundary else ""), turns

    def after_compaction(
        self, *, tokens: int = 0, summary: str | None = None, kept: int = 0, since: int | None = None
    ) -> str:
        """Says that the context was cut: what was not flushed yet is, the cut is recorded, and a new cycle begins. What
        stays in it is the last `kept` entries, or those `since` one, by its number.
        Gives what the model must be told again: the essential sections of AGENTS.md, the time, and what it noted itself."""
        self.flush("compaction")
        with self.at_work():
            if self._talk is not None:
                first, uuid = self._talk.seen.entries - max(0, kept) if since is None else since, self.site.new_id()
                self._talk.boundary(uuid=uuid, token_count=max(0, tokens), summary=summary, turn_index=max(0, first))
            self._flushing.begin_cycle(self._talk.seen.offset if self._talk else 0)
            return "\n\n".join(filter(None, (self._essentials(), self.noted())))

    def noted(self) -> str:
        """What this conversation added and nobody reviewed, framed, to be told again; "" where its listener sees none that waits."""
        waiting, sees = self.rooms.writer().unreviewed.all(), self.listener.sees
        mine = [entry for entry in waiting if entry.session == self.id and sees(self.site.layout, entry.place)]
        if not mine:
            return ""
        self.take_in("", origins=frozenset[Origin]().union(*(entry.origins for entry in mine)))
        return framed("".join(entry.text for entry in mine)[-ESSENTIAL_CHARS:].strip())

    def _essentials(self) -> str:
        """The sections of AGENTS.md that must come back after a cut: by their names, or marked `<!-- essential -->`."""
        now, layout, end = self.now(), self.site.layout, 0
        kept = "What was worth keeping is in the log of the day."
        told = [f"This conversation was shortened. It is {now:%A, %Y-%m-%d %H:%M}. {kept}"]
        path = DocPath.parse(layout.row("agents").path) if layout.has("agents") else None
        if path is not None and self.listener.sees(layout, path):
            text = ""
            with suppress(HomeError):
                text = self.listener.view(layout, path, self.site.store.documents.read(path).text).text
            for section in sections(text):
                marked = "<!-- essential -->" in text[section.start : section.body]
                if section.start >= end and section.level and (marked or section.title.casefold() in ESSENTIAL):
                    told.append(text[section.start : section.end].strip())
                    end = section.end
        return "\n\n".join(told)[:ESSENTIAL_CHARS]


class Sessions(Rooms):
    """The sessions of one home: what was said in them, and the way to begin one or take one up."""

    writer: Callable[[], Writer]

    def __init__(
        self,
        site: Site,
        *,
        prompts: Prompts,
        writer: Callable[[], Writer],
        search: Callable[[], Search],
        propose: Callable[[Change, Mapping[str, str], str], Proposal | None],
        nights: Callable[[], Nights],
    ) -> None:
        super().__init__(site)
        self.prompts, self.writer, self.search, self.propose, self.nights = prompts, writer, search, propose, nights
        self._open = WeakValueDictionary[int, Session]()  # those that somebody holds, some of them ended
        self._looked_at: dict[str, int] = {}  # how long idle sessions were when they were flushed

    @cached_property
    def index(self) -> TranscriptIndex:
        rows = getattr(self.site.store, "rows", None)
        if rows is None or not rows.engine.needs_tenant:
            return super().index
        from anima.sessions.packed import PackedTranscripts, second_tables

        return PackedTranscripts(second_tables(rows), redact=self.redact)

    def begin(
        self,
        *,
        scope: Scope | str,
        channel: str | None = None,
        sender: str | None = None,
        access: Access = "rw",
        model: str | None = None,
        complete: Complete | None = None,
        account: str | None = None,
        chat: str | None = None,
        chat_type: str | None = None,
        group: str | None = None,
        guest: tuple[str, str] | None = None,
        id: str | None = None,
    ) -> Session:
        """A conversation: the agent's hand in this home. Its prompt is frozen now. Who speaks is `channel:sender`;
        without a channel, `sender` is all of it. Nobody named is the owner, and so is who is named in `owner`; anybody
        else has a layer of their own. In a direct chat the chat is the sender. A group chat (`chat_type`) narrows the
        scope to GROUP; with `group` it has `groups/<channel.id>/` as its own memory. `complete` is the host's model,
        asked once before a cut. With a `guest`, its credential and what the owner calls it, the conversation is one of
        an agent elsewhere, and counts as having read text from outside. With an `id`, the session has that of the
        conversation elsewhere that it is. Raises BadArguments when a binding gives this channel, account and chat to
        another agent, and for an id that there is: what was read in that session must not be lost."""
        if id and self.kept and self.path_of(id) and self.has(id):  # an id that can be none has no path
            raise BadArguments(f"there is a session {id} already; it can be resumed")
        if self.site.config.binding and (channel or account or chat):  # one agent never speaks in the place of another
            agent = self.agent_for(channel=channel, account=account, chat=chat)
            if agent != self.site.agent:
                raise BadArguments(
                    f"a binding gives this to agent {agent!r}, and this home is open as {self.site.agent!r}",
                    hint=f"Home.open(path, agent={agent!r})",
                )
        if sender is None and chat and chat_type and CHATS.get(chat_type.casefold()) is Scope.MAIN:
            sender = chat
        channel, sender = place_of(sender, channel)
        return Session(
            rooms=self,
            listener=self.site.listener(narrowed(Scope.parse(scope), chat_type), sender, channel, group),
            id=id or self.site.new_id(),
            channel=channel,
            sender=sender,
            access=access,
            model=model,
            complete=complete,
            guest=Guest.of(*guest) if guest else None,
        )

    def by_key(
        self,
        key: str,
        *,
        sender: str | None = None,
        access: Access = "rw",
        model: str | None = None,
        complete: Complete | None = None,
        account: str | None = None,
    ) -> Session:
        """A conversation whose scope its session key says, such as `agent:main:telegram:group:42`; unclear is GROUP."""
        route = route_of(key)
        if route.agent and route.agent != self.site.agent:
            raise BadArguments(
                f"this key is agent {route.agent!r}'s, and this home is open as {self.site.agent!r}",
                hint=f"Home.open(path, agent={route.agent!r})",
            )
        return self.begin(
            scope=route.scope,
            channel=route.channel or None,
            sender=sender,
            access=access,
            model=model,
            complete=complete,
            account=account,
            chat=route.chat or None,
            chat_type=route.chat_type or None,
            group=route.chat if route.scope is Scope.GROUP and route.chat else None,
        )

    def resume(
        self, id: str, *, model: str | None = None, access: Access = "rw", complete: Complete | None = None
    ) -> Session:
        """A session taken up again: its listener, what it had read, and how far it was written down. The prompt is new.
        Raises NoSuchSession, for another agent's too."""
        if not self.kept:
            raise NoSuchSession(f"{id}: no transcripts are kept here", hint="sessions.dir in anima.toml is empty")
        talk = self.carry_on(id)
        try:
            header = talk.header
            listener = self.site.listener(header.scope or Scope.GROUP, header.sender_id, header.source_plugin)
            if is_groups(header.layer or "") and listener.scope is Scope.GROUP:
                listener = Listener(scope=Scope.GROUP, layer=header.layer or "")
            if listener.layer != (header.layer or ""):
                raise NoSuchSession(
                    f"{id}: this session was held when other senders were the owner",
                    hint="begin a new one; anima sessions ID reads this one",
                )
            return Session(
                rooms=self,
                listener=listener,
                id=id,
                channel=header.source_plugin or None,
                sender=header.sender_id,
                access=access,
                model=model,
                complete=complete,
                talk=talk,
                guest=Guest(header.guest) if header.guest else None,
            )
        except BaseException:
            talk.abandon()
            raise

    def refuse(self, waiting: Proposal, reason: str = "") -> None:
        """Writes the owner's no into the conversation that waits for a call, as its answer."""
        call = OpenCall.of(waiting)
        try:
            talk = self.carry_on(waiting.session or "")
        except HomeError:
            return  # nobody waits any more
        try:
            if waiting.id not in {turn.message_id for turn in talk.in_context()[1]}:  # or it was only not put away
                talk.call(call.name, call.given, no(reason), read=waiting.changes[0].taint, id=waiting.id, denied=True)
        finally:
            talk.abandon()

    def clear(self, id: str) -> None:
        """The owner vouches for what a session has read so far: what it writes from here on is its own again, once it is
        taken up anew. Raises NoSuchSession, and BadArguments for one that was imported."""
        self.get(id)
        if self.has_arrived(id):
            raise BadArguments(f"{id}: this session was imported; nobody knows what it had read")
        talk = self.carry_on(id)
        try:
            talk.state(taint=(), flows=())
        finally:
            talk.abandon()

    def clear_credentials(self, *credentials: str) -> None:
        """The owner vouches for what came in with some agents' credentials: their conversations begin without it."""
        self.read_outside.clear(Guest.of(credential).mark for credential in credentials)

    def flush_idle(self, idle: timedelta = timedelta(hours=1)) -> tuple[Flushed, ...]:
        """Writes down what is worth keeping of sessions in which nothing was said for so long and that nobody closed,
        such as those of a host that was killed. They can be resumed all the same. For a server's rounds."""
        done, before = [], stamp(self.site.clock() - idle)
        for row in self.list():
            if row.closed or row.updated_at > before or self._looked_at.get(row.id) == row.bytes:
                continue
            self._looked_at[row.id] = row.bytes  # one that does not grow is not looked at twice
            try:
                session = self.resume(row.id)
            except HomeError:
                continue  # nobody knows who listened; what was said stays in the transcript
            try:
                done.append(session.flush("idle"))
            finally:
                session.leave()
        return tuple(done)

    def tools(self, scope: Scope | str) -> tuple[Tool, ...]:
        """The tools an agent has in a scope: those of the table that the configuration allows it."""
        return tools_for(self.site, Scope.parse(scope))

    def tool(self, name: str, scope: Scope | str) -> Tool:
        """The tool of that name. Raises BadArguments; one that exists elsewhere only is not there."""
        return chosen(name, self.tools(scope))

    def agent_for(self, *, channel: str | None = None, account: str | None = None, chat: str | None = None) -> str:
        """Which agent answers there: the first binding that fits, else the first agent of the configuration."""
        config = self.site.config
        return agent_for(config.binding, channel=channel, account=account, chat=chat, default=first_agent(config))
