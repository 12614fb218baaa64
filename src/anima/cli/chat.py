"""Talking with the agent: chat at a terminal, say for scripts.

Promise: an answer appears as it comes, calls as quiet lines, and what waits for the owner as a card that one key decides;
identity files, danger and forgetting want a typed word. Ctrl-C stops a turn and keeps what was said. A line that begins
with a slash is a command. What was typed is remembered in the transcript and nowhere else.
Not here: what a turn is (agent).
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import click

from anima.agent import PRACTICE, need_chat
from anima.cli import show
from anima.cli.command import Reply, command, given_text, is_owner, listed_as, need_trust
from anima.cli.show import counted, decided_call, flat, inert, need_person, one_key, patient, say, shortened, whisper
from anima.errors import BadArguments, HomeError, Refused
from anima.model import Scope

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from rich.live import Live

    from anima import Home, Proposal, Receipt, Session
    from anima.agent.conversation import Answered, Conversation, Happening
    from anima.agent.models import Models

CHANNEL = "chat"
REMEMBERED = 200  # lines that were typed, for the arrow keys
# A slash command that is a command of anima's own, on this home.
SAME = {"review": "review", "undo": "undo", "why": "why", "memory": "read MEMORY.md"}


@command()
def chat(home: Home, session: str | None, model: str | None) -> int:
    need_person("a chat wants somebody at a terminal", hint='anima say "…" is for scripts')
    models, name = chosen(home, model)
    with asyncio.Runner() as runner:
        return _Chat(home, models, name, runner).held(session)


@command(name="say")
def say_once(home: Home, text: str, session: str | None, model: str | None, as_owner: bool) -> Reply:
    said = given_text(text)
    if not said.strip():
        raise BadArguments("there is nothing to say", hint='anima say "hello"')
    if not said.isascii() and said.encode("utf-8", "replace").decode() != said:
        raise BadArguments("what is said holds half a character (a lone surrogate)", hint="write it as UTF-8")
    models, name = chosen(home, model)
    with begun(home, session, name, is_clean=is_owner(as_owner)) as talk:
        with nullcontext() if name == PRACTICE else patient(f"{name} is thinking"):
            answer = asyncio.run(_turn(talk, models, name, said))
        waiting = [each.id for each in home.inbox.all() if each.session == talk.id]
        value = {"session": talk.id, "model": name, "text": answer.text, "calls": answer.calls, "early": answer.early}
        value |= {"tokens": {"input": answer.input_tokens, "output": answer.output_tokens}, "waiting": waiting}

    def shown() -> None:
        sys.stdout.write(inert(answer.text).rstrip("\n") + "\n")
        if waiting:
            whisper(f"anima: waits for you: {', '.join(waiting)}; {show.called('review')} shows it")

    return Reply(value, shown)


def chosen(home: Home, name: str | None) -> tuple[Models, str]:
    """The user's models, and the name of the one that is meant. Raises MissingExtra and BadArguments."""
    from anima.agent.models import Models

    need_chat()
    need_trust(home, may_ask=True)
    models = Models.of(home)
    return models, models.choice(name).name


def meant(home: Home, id: str) -> str:
    """The id of a conversation of the owner's own: in one with somebody else they would speak as that person."""
    own = home.sessions.asker(home.site.listener(Scope.MAIN))
    rows = home.sessions.list(replace(own, scopes=frozenset({str(Scope.MAIN)})))
    return listed_as([row for row in rows if id != "last" or row.source_plugin == CHANNEL], id).id


@contextmanager
def begun(home: Home, id: str | None, model: str, *, is_clean: bool) -> Iterator[Session]:
    """A conversation, begun or taken up; left open for whoever goes on with it."""
    if id is not None:
        session = home.resume(meant(home, id), model=model)
        if not is_clean and session.guest is None:
            session.leave()
            said = "this conversation is the owner's, and nobody is at a terminal; nothing was said"
            hint = "leave --session out, or say --as-owner if you are the owner"
            raise Refused(said, rule="terminal", hint=hint)
    else:
        guest = None if is_clean else ("anima say", "")
        session = home.sessions.begin(scope=Scope.MAIN, channel=CHANNEL, model=model, guest=guest)
    try:
        yield session
        session.flush("said")
    finally:
        session.leave()


def gone_on(home: Home, id: str) -> None:
    """Lets a conversation go on whose calls the owner decided; what is said then goes beside, on standard error."""
    if home.sessions.get(id).scope != Scope.MAIN or home.sessions.get(id).layer:
        whisper("anima: it is made when that conversation goes on")
        return
    models, name = chosen(home, None)
    with begun(home, id, name, is_clean=True) as talk:
        answer = asyncio.run(_turn(talk, models, name, ""))
    whisper(inert(answer.text).rstrip("\n"))


async def _turn(session: Session, models: Models, name: str, text: str) -> Answered:
    from anima.agent.conversation import Conversation

    def heard(what: Happening) -> None:
        if line := quiet(what):
            whisper(f"· {line}")

    async with Conversation(session, models.named(name), heard=heard, made=models.named) as conversation:
        return await conversation.turn(text)


def quiet(what: Happening) -> str:
    """What happens beside the answer, on one line; empty for the answer itself."""
    if what.kind == "tool":
        given = ", ".join(f"{key}: {value}" for key, value in what.data.items() if value not in ("", None))
        return f"{flat(what.name)}  {flat(' '.join(given.split()))[:100]}"
    if what.kind == "compaction":
        return f"the conversation was shortened: {what.text}"
    return flat(what.text) if what.kind == "notice" else ""


class _Chat:
    """One sitting: the conversation that is held, and what the person types."""

    def __init__(self, home: Home, models: Models, name: str, runner: asyncio.Runner) -> None:
        self._home, self._models, self._name, self._runner = home, models, name, runner
        self._out, self._seen = show.console(is_live=True), set[str]()
        self._session: Session
        self._talk: Conversation
        self._live: Live | None = None
        self._text = ""

    def held(self, id: str | None) -> int:
        """The whole sitting. Leaving lets the conversation go on later."""
        self._begin(meant(self._home, id) if id else None)
        typing = self._typing()
        try:
            while True:
                try:
                    line = self._runner.run(typing.prompt_async("› ")).strip()
                except KeyboardInterrupt:
                    continue
                except EOFError:
                    return 0
                if line in ("/quit", "/exit"):
                    return 0
                try:
                    if line:
                        self._command(line) if line.startswith("/") else self._turn(line)
                except (click.Abort, KeyboardInterrupt, EOFError):
                    say("it waits: /review")  # Ctrl-C before a card decides nothing
                except HomeError as error:
                    show.complain(error, as_json=False)
        finally:
            self._end()

    def _begin(self, id: str | None = None) -> None:
        from anima.agent.conversation import Conversation

        made, home = self._models.named(self._name), self._home
        begin = partial(home.resume, id) if id else partial(home.session, scope=Scope.MAIN, channel=CHANNEL)
        self._session = begin(model=self._name)
        self._talk = Conversation(self._session, made, heard=self._happened, made=self._models.named)
        self._runner.run(self._talk.__aenter__())
        waiting = len(home.inbox.all()) + len(home.inbox.noted())
        waits, who = f"; {counted(waiting, 'thing')} for you to decide: /review" if waiting else "", home.identity.name
        self._out.print(f"{flat(who)}, through {flat(self._name)}. /help lists what there is{waits}.", style="dim")
        self._note_seen()

    def _end(self, *, close: bool = False) -> None:
        self._runner.run(self._talk.__aexit__(None, None, None))
        if close:
            self._session.close()
        else:
            self._session.flush("left")
            self._session.leave()

    def _turn(self, line: str) -> None:
        from rich.live import Live

        self._text = ""
        with Live(console=self._out, refresh_per_second=8, vertical_overflow="visible") as self._live:
            try:
                answer = self._runner.run(self._talk.turn(line))
                if answer.early:
                    self._quietly("the answer broke off here")
            except KeyboardInterrupt:
                self._quietly("stopped; what was said is kept")
            finally:
                self._live = None
        self._cards()

    def _happened(self, what: Happening) -> None:
        from rich.markdown import Markdown

        if what.kind == "delta" and self._live is not None:
            self._text += what.text
            self._live.update(Markdown(inert(self._text), hyperlinks=False))  # a link shows where it leads
        elif line := quiet(what):
            self._quietly(line)

    def _quietly(self, text: str) -> None:
        """A dim line; what the answer said before it stays above."""
        from rich.markdown import Markdown

        if self._live is not None and self._text:
            self._live.update("")
            self._out.print(Markdown(inert(self._text), hyperlinks=False))
            self._text = ""
        self._out.print(f"· {shortened(text, self._out.width - 6)}", style="dim")

    def _cards(self) -> None:
        """What this turn left for the person to decide."""
        from anima.agent.chats import waiting

        inbox, (asked, noted) = self._home.inbox, waiting(self._home, self._session.id)
        asked = [each for each in asked if not self._seen & {each.id, each.content}]
        calls, asked = [each for each in asked if each.call], [each for each in asked if not each.call]
        for number, proposal in enumerate(asked, start=1):
            show.proposal(proposal, number, len(asked))
            name, how = inbox.confirmed_by(proposal), {"approver": "terminal", "content": proposal.content}
            keep = partial(inbox.approve, proposal.id, **how, **({"typed": name} if name else {}))
            self._decided(inbox.alone(proposal), keep, partial(inbox.deny, proposal.id), name)
        for each in (each for each in noted if each.entry.id not in self._seen):
            show.noted([each], 1)
            keep = partial(inbox.keep, each.entry.id, approver="terminal")
            self._decided("danger" if each.findings else "", keep, partial(inbox.drop, each.entry.id))
        self._note_seen()
        if any(list(map(self._allowed, calls))):
            self._turn("")  # what got its answer is carried out; it goes on once nothing waits

    def _allowed(self, waiting: Proposal) -> bool:
        """A call that waits, decided by one key; False where it is left for later."""
        show.proposal(waiting, 1, 1)
        key = one_key("k yes, call it · d no · any other key: later")
        if not (is_decided := decided_call(self._home, waiting, key)):
            say("it waits: /review")
        return is_decided

    def _note_seen(self) -> None:
        inbox = self._home.inbox
        self._seen |= {each.id if each.call else each.content for each in inbox.all()}
        self._seen |= {each.entry.id for each in inbox.noted()}

    def _decided(
        self, alone: str, keep: Callable[[], Sequence[Receipt]], drop: Callable[[], object], name: str = ""
    ) -> None:
        """One key; what is decided by itself wants the word typed out, and who the agent is its name."""
        if alone:
            verb = "forget" if alone == "forget" else "keep"
            yes = flat(name) or verb
            self._out.print(
                f"{show.table_of('chat')['alone'][alone]}: type {yes} to {verb} it, drop to drop the wish, nothing to leave it."
            )
            word = click.prompt("", default="", show_default=False, prompt_suffix="? ").strip().casefold()
            word = word if word == "drop" else "keep" if word == yes.casefold() else ""  # whatever it is called
        else:
            word = {"k": "keep", "d": "drop"}.get(one_key("k keep · d drop · any other key: later"), "")
        if word == "keep":
            show.receipts(keep())
        elif word == "drop":
            drop()
            say("dropped")
        else:
            say("it waits: /review")

    def _command(self, line: str) -> None:
        name, _, rest = line[1:].partition(" ")
        match name:
            case "new":
                self._end(close=True)
                self._begin()
            case "compact":
                if not self._runner.run(self._talk.compact()):
                    say("there is nothing to cut yet")
            case "prompt":
                say(inert(self._session.prompt.text))
            case "persona":
                say(f"soul worn: {flat(self._session.prompt.persona or 'none')}")
            case "model" if rest := rest.strip():
                self._models.named(rest)  # one that cannot be had changes nothing
                self._name, id = rest, self._session.id
                is_recorded = bool(self._session.context()[1])
                self._end()
                self._begin(id if is_recorded else None)
            case "model":
                say(f"{flat(self._name)}; {show.called('model')} lists others")
            case "cost":
                used = self._talk.usage
                tokens = f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out"
                price = f", about ${used.cost:.4f}" if used.cost else ""
                say(f"{counted(used.requests, 'request')}, {tokens}{price}")
            case "help":
                say(show.table_of("chat")["slashes"])
            case _ if name in SAME:
                run = click.get_current_context().obj  # the command line's own
                run([*SAME[name].split(), *rest.split(), "--home", self._home.name])
                self._note_seen()
            case _:
                whisper(f"anima: there is no /{flat(name)}; /help lists what there is")

    def _typing(self) -> PromptSession[str]:
        """The line that is typed in: several lines with Alt-Enter, and what was typed lately with the arrow keys."""
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import InMemoryHistory
        from prompt_toolkit.key_binding import KeyBindings

        keys = KeyBindings()
        keys.add("enter")(lambda event: event.current_buffer.validate_and_handle())
        keys.add("escape", "enter")(lambda event: event.current_buffer.insert_text("\n"))
        lines, kept = list[str](), self._home.sessions
        for row in kept.list(limit=10) if kept.kept else ():
            turns = kept.read(row.id, limit=100, newest=True).entries if row.source_plugin == CHANNEL else ()
            lines = [turn.content for turn in turns if turn.role == "user"] + lines
        return PromptSession(history=InMemoryHistory(lines[-REMEMBERED:]), key_bindings=keys, multiline=True)
