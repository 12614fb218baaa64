"""Rituals: an agent that is woken by the clock, by a new document or by a start, does what a page says, and tells its owner.

Promise: a run happens once across processes (a lease), counts before it begins, so that a kill repeats none, and never
uses more tokens than its allowance. It has a session of its own, in the scope of heartbeats or of jobs, and reaches the
owner alone. A key that does not work, or an account without credit, stops the schedule at once; three failures do too.
Not here: when, and how the next conversation learns of what was delivered (schedule).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Literal

import pydantic_ai as ai
from pydantic_ai.models import Model as ChatModel

from anima.agent import WORDS, framed, schedule
from anima.agent.conversation import Conversation, ModelDown
from anima.agent.desk import Purse
from anima.agent.lodging import TAKEN_IN, tokens_of
from anima.agent.models import Models
from anima.agent.schedule import ROUTINES, Ritual, Schedule
from anima.errors import HomeBusy, HomeError, NotFound
from anima.home import Home
from anima.model import DocPath, Scope
from anima.sessions.session import Session

TALKING = timedelta(minutes=10)  # since the owner said something: a heartbeat waits
MOST_TOLD = 4_000  # characters of one notice
LEAST = 500  # tokens beyond the prompt, without which no run begins


@dataclass(frozen=True, slots=True, kw_only=True)
class RitualRun:
    """What became of a run. `silent`: it had nothing to tell; `failed`: `text` says why; `budget`: no tokens were left."""

    ritual: str
    status: Literal["delivered", "silent", "failed", "budget"]
    text: str = ""
    session: str = ""
    tokens: int = 0


class Rituals:
    """The rituals of one home; processes agree by its state. `made` gives a model by its name; `left`: tokens beside the configured."""

    def __init__(self, home: Home, *, made: Callable[[str], ChatModel] | None = None, left: int | None = None) -> None:
        self.home, self._asked, self._store, self._left = home, home.config.rituals, home.site.store, left
        self._models = Models.of(home)
        self._made = made or self._models.named

    def state(self) -> Schedule:
        return schedule.state_of(self._store)

    def pages(self) -> tuple[list[Ritual], list[str]]:
        """What pages ask for, and what is wrong with those that cannot be read."""
        found, wrong = list[Ritual](), list[str]()
        layout = self.home.layout
        if layout.has("heartbeat"):
            path = layout.row("heartbeat").path
            found += filter(None, [schedule.heartbeat_of(self._text(path), path, self._asked)])
        for entry in self.home.list(ROUTINES) if self._store.documents.kind_of(ROUTINES) == "folder" else ():
            name = entry.path.rpartition("/")[2].removesuffix(".md")
            if entry.is_folder or not entry.path.endswith(".md"):
                continue
            try:
                routine = schedule.routine_of(name, entry.path, self._text(entry.path))
            except HomeError as error:
                said = str(error)
                wrong.append(said if entry.path in said else f"{entry.path}: {said}")
            else:
                found += [routine] if routine.text else []
        return found, wrong

    def boot(self) -> list[Ritual]:
        """What a start of the server asks for, if anything."""
        path = self.home.layout.row("boot").path
        text = self._text(path)
        return [] if schedule.is_empty(text) else [Ritual(name="boot", kind="boot", path=path, text=text.strip())]

    def _text(self, path: str) -> str:
        try:
            return self.home.read(DocPath.parse(path)).text
        except HomeError:
            return ""

    def estimate(self) -> dict[str, int]:
        """About what a day costs, should nothing be said: `runs`, the `tokens` of their prompts, and the `most`, whatever happens."""
        now, zone = self.now(), self.zone()
        runs = [(each, schedule.runs_a_day(each, now, zone)) for each in self.pages()[0]]
        prompts = {scope: tokens_of(self.home.prompt(scope=scope).text) for scope in (Scope.HEARTBEAT, Scope.CRON)}
        tokens = sum(count * prompts[_scope(each)] for each, count in runs)
        return {"runs": sum(count for _, count in runs), "tokens": tokens, "most": self._asked.day_tokens}

    def switch(self, on: bool) -> Schedule:
        """On, which forgets why it was stopped; or off, which it stays until it is switched on."""
        forgotten: dict[str, Any] = {"stopped": "", "failures": 0} if on else {}
        return self._change(lambda kept: replace(kept, on=on, **forgotten))

    def pause(self, name: str, *, paused: bool) -> Schedule:
        """A ritual rests, or runs again. Raises NotFound."""
        self._named(name)

        def changed(kept: Schedule) -> Schedule:
            others = {*kept.paused} - {name}
            return replace(kept, paused=tuple(sorted({*others, name} if paused else others)))

        return self._change(changed)

    def _named(self, name: str) -> Ritual:
        found = self.pages()[0]
        for each in [*found, *self.boot()]:
            if each.name == name:
                return each
        known, hint = ", ".join(each.name for each in found) or "none", f"a routine is a page {ROUTINES}/NAME.md"
        raise NotFound(f"there is no ritual {name!r}; there is: {known}", hint=hint)

    def _change(self, made: Callable[[Schedule], Schedule]) -> Schedule:
        with self._store.lock():
            state = made(self.state())
            self._store.state.put(schedule.STATE, state.written())
            return state

    def round(self, *, starting: bool = False) -> list[RitualRun]:
        """All that is due now, one after the other; `starting` with a server's first. Nothing for whoever gets no lease."""
        state = self.state()
        if not state.on or state.stopped or not schedule.is_awake(self.now(), self._asked):
            return []
        try:
            with self._store.lease("rituals", patience=0):
                return self._all_due([*self.pages()[0], *(self.boot() if starting else [])])
        except HomeBusy:
            return []

    def _all_due(self, rituals: Sequence[Ritual]) -> list[RitualRun]:
        done, before = list[RitualRun](), self.state()
        if (state := before.on_day(self.now(), rituals)) != before:
            self._change(lambda kept: kept.on_day(self.now(), rituals))
        for ritual in rituals:
            known = self._watched(ritual)
            new = known is not None and not set(known) <= set(state.ran[ritual.name].known or known)
            if known is not None and state.ran[ritual.name].known is None:
                self._remember(ritual.name, known)
            if not schedule.is_due(ritual, state, self.now(), self.zone(), new=new) or self._waits(ritual):
                continue
            done.append(self._run(ritual, known))
            state = self.state()
            if not state.on or state.stopped:
                break
        return done

    def _remember(self, name: str, known: tuple[str, ...]) -> None:
        self._change(lambda kept: replace(kept, ran={**kept.ran, name: replace(kept.ran[name], known=known)}))

    def _watched(self, ritual: Ritual) -> tuple[str, ...] | None:
        """What stands where a routine watches, as digests of names; None for one that does not."""
        if not ritual.watch or self._store.documents.kind_of(ritual.watch) != "folder":
            return () if ritual.watch else None
        names = [entry.path for entry in self.home.list_all(ritual.watch)][: schedule.MOST_SEEN]
        return tuple(blake2b(name.encode(), digest_size=8).hexdigest() for name in names)  # a state holds no text

    def _waits(self, ritual: Ritual) -> bool:
        if ritual.kind != "heartbeat":
            return False
        latest = (self.now() - TALKING).timestamp()
        own = (row for row in self.home.sessions.list() if row.scope == Scope.MAIN and not row.layer)
        return any(datetime.fromisoformat(row.updated_at).timestamp() > latest for row in own if not row.closed)

    def run(self, name: str) -> RitualRun:
        """One run now, because the owner asks: also where the schedule is off. Raises NotFound and HomeBusy."""
        ritual = self._named(name)
        with self._store.lease("rituals"):
            self._change(lambda kept: kept.on_day(self.now(), [*self.pages()[0], ritual]))
            return self._run(ritual, self._watched(ritual))

    def _run(self, ritual: Ritual, known: tuple[str, ...] | None) -> RitualRun:
        most = schedule.allowance(ritual, self.state(), self._asked, self._left)
        name = ritual.model or self._asked.model or self._models.choice().name
        with self.home.sessions.begin(scope=_scope(ritual), channel=ritual.kind, model=name) as session:
            most = most if most >= tokens_of(session.prompt.text) + LEAST else 0
            self._change(lambda kept: kept.begun(ritual, self.now(), most, known))
            done, final = RitualRun(ritual=ritual.name, status="budget", text="no tokens are left for it today"), False
            if most:
                done, final = self._done(ritual, session, name, most)
        self._left = None if self._left is None else max(0, self._left - done.tokens)
        outcome = f"failed: {done.text}" if done.status == "failed" else done.status

        def ended(kept: Schedule) -> Schedule:
            after = kept.ended(ritual, self.now(), outcome=outcome, session=done.session, used=done.tokens)
            return after.failed(done.text, final=final) if done.status == "failed" else after

        self._change(ended)
        if ritual.kind == "routine":
            self.home.note(f"[schedule] {ritual.name}: {done.status}, session {done.session[:8] or 'none'}")
        return done

    def _done(self, ritual: Ritual, session: Session, name: str, most: int) -> tuple[RitualRun, bool]:
        """A run's outcome, and whether every other would go wrong too."""
        told, purse, words = list[str](), Purse(most), WORDS["ritual"]

        async def turn() -> str:
            about: dict[str, Any] = {"toolsets": [_notices(told)], "only": ritual.tools, "made": self._made}
            async with Conversation(session, self._made(name), purse=purse, **about) as talk:
                does = words["heartbeat" if ritual.kind == "heartbeat" else "other"].format(path=ritual.path)
                page = [] if ritual.text in session.prompt.text else [framed("page", ritual.text)]
                begun = words["begins"].format(now=self.now())
                return (await talk.turn("\n\n".join([begun, does, *page, words["ends"]]))).text

        done = RitualRun(ritual=ritual.name, status="silent", session=session.id)
        try:
            said = asyncio.run(turn())
        except HomeError as error:
            done = replace(done, status="failed", text=str(error), tokens=purse.spent)
            return done, isinstance(error, ModelDown) and error.final
        if text := "\n\n".join(told):
            session.log("assistant", text)
        text = text or ("" if schedule.is_silence(said) else said.strip())
        status: Literal["delivered", "silent"] = "delivered" if text and ritual.deliver else "silent"
        return replace(done, status=status, text=text, tokens=purse.spent), False

    def now(self) -> datetime:
        return self.home.site.now()

    def zone(self) -> str:
        return str(self.home.site.zone() or "UTC")


def _scope(ritual: Ritual) -> Scope:
    return Scope.HEARTBEAT if ritual.kind == "heartbeat" else Scope.CRON


def _notices(told: list[str]) -> ai.FunctionToolset[Any]:

    def notify(text: str) -> ai.ToolReturn:
        """Tell your owner something, in at most three sentences. Only they will read it."""
        if text.strip():
            told.append(text.strip()[:MOST_TOLD])
        return ai.ToolReturn("your owner will read it", metadata=TAKEN_IN)  # our own word, and nothing from outside

    return ai.FunctionToolset([notify], id="rituals")
