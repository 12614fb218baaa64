"""The schedule of an agent: what it does while nobody talks to it, when, and for how many tokens; and what it delivered then.

Promise: the same pages, state and moment give the same answer. Missed runs are one. Nothing is due while the schedule is off or was
stopped, in quiet hours, or beyond the day's tokens; a page that asks for nothing is no run, and one that is gone never runs again.
Times are the owner's. A conversation that begins is told once what was delivered since the last, from the transcripts of those runs,
so that what was forgotten there is not told. Not here: the clock, the model, and doing it (rituals).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Literal

from anima.agent import framed
from anima.config import RitualsConfig
from anima.dream import due, following
from anima.errors import BadText, HomeError, refuse_newer
from anima.model import DocPath, Scope
from anima.sessions.session import Session
from anima.sessions.transcripts import Transcripts
from anima.store import Store
from anima.text import bullet_text
from anima.text.dates import between, interval
from anima.text.markdown import comment_after, front_matter, front_matter_end, heading_of, without_code

FORMAT = 1
STATE = "schedule"  # its name among the small things a home keeps
QUIET_WORDS = ("HEARTBEAT_OK", "NO_REPLY")
QUIET_CHARS = 300  # that may stand beside such a word
FAILURES = 3  # in a row, after which nothing runs until the owner says so
BOOT_EVERY = timedelta(hours=1)
KEPT = 50  # deliveries that are remembered
MOST_TOLD = 4_000  # characters of them, for a conversation that begins
MOST_SEEN = 5_000  # documents of a folder that a routine watches
ROUTINES = "routines"
_FIELDS = frozenset("at every watch model tokens tools deliver description name".split())
_BOX = re.compile(r"\[[ xX]?\]\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ritual:
    """Something the agent does by itself: the heartbeat, a routine of the owner's, or what a start asks for."""

    name: str
    kind: Literal["heartbeat", "routine", "boot"]
    path: str
    text: str = field(repr=False)  # of its page, without front matter
    at: str = ""  # a cron expression
    every: timedelta | None = None
    watch: str = ""  # a folder: when a document is new there
    model: str = ""  # empty: the schedule's
    tokens: int = 0  # the most for one run; 0: the schedule's
    tools: tuple[str, ...] | None = None  # names; None: all of its scope
    deliver: bool = True  # what it says goes to the owner

    @property
    def when(self) -> str:
        if self.every is not None:
            minutes = int(self.every.total_seconds() // 60)
            return f"every {minutes} minutes" if minutes % 60 else f"every {minutes // 60} hours"
        if self.at:
            return f"at {self.at}"
        return f"when a document is new in {self.watch}/" if self.watch else "at each start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What is known of one ritual's runs. `seen`: since when it is there; `known`: digests of names it has met."""

    seen: str
    last: str = ""
    outcome: str = ""
    session: str = ""
    tokens: int = 0
    known: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How the schedule of a home stands. `stopped` says why nothing runs, until the owner switches it on again."""

    on: bool = False
    stopped: str = ""
    failures: int = 0
    day: str = ""
    spent: int = 0  # tokens on that day, with those set aside for a run that goes on
    paused: tuple[str, ...] = ()
    ran: Mapping[str, Ran] = field(default_factory=dict)
    delivered: tuple[tuple[str, str, str], ...] = ()  # (time, ritual, session)
    told: str = ""  # deliveries up to here are known to a conversation

    @classmethod
    def read(cls, data: bytes | None) -> Schedule:
        """A state as it was kept. Raises Damaged for one of a newer anima."""
        try:
            kept = json.loads(data or b"{}")
            refuse_newer("the schedule's state", kept.pop("format", FORMAT), FORMAT)
            ran = {name: Ran(**each) for name, each in kept.pop("ran", {}).items()}
            ran |= {
                name: replace(each, known=tuple(each.known)) for name, each in ran.items() if each.known is not None
            }
            delivered = tuple((time, name, session) for time, name, session in kept.pop("delivered", ()))
            return cls(**{**kept, "paused": tuple(kept.get("paused", ()))}, ran=ran, delivered=delivered)
        except (ValueError, TypeError, AttributeError):
            return cls(stopped="what was kept of the schedule could not be read")

    def written(self) -> bytes:
        return json.dumps({"format": FORMAT} | asdict(self), ensure_ascii=False).encode()

    def on_day(self, now: datetime, rituals: Iterable[Ritual]) -> Schedule:
        """The state at a moment: a new day has spent nothing, what is new was seen now, what is gone (but a start) is forgotten."""
        day = now.date().isoformat()
        ran = {name: each for name, each in self.ran.items() if name == "boot"}
        ran |= {each.name: self.ran.get(each.name) or Ran(seen=now.isoformat()) for each in rituals}
        return replace(self, day=day, spent=self.spent if day == self.day else 0, ran=ran)

    def begun(self, ritual: Ritual, now: datetime, tokens: int, known: tuple[str, ...] | None) -> Schedule:
        """A run begins: it counts as done and its tokens as spent, so that a kill repeats and frees nothing."""
        begun = {"last": now.isoformat(), "outcome": "began", "session": ""}
        ran = replace(self.ran[ritual.name], tokens=tokens, known=known, **begun)
        return replace(self, spent=self.spent + tokens, ran={**self.ran, ritual.name: ran})

    def ended(self, ritual: Ritual, now: datetime, *, outcome: str, session: str = "", used: int = 0) -> Schedule:
        """A run ended: what it did not use can be used."""
        ran = self.ran.get(ritual.name) or Ran(seen=now.isoformat(), tokens=used)
        spent = self.spent - (ran.tokens - used if self.day == now.date().isoformat() else 0)
        runs = {**self.ran, ritual.name: replace(ran, outcome=outcome, session=session, tokens=used)}
        delivered = self.delivered
        if outcome == "delivered":
            delivered = (*delivered, (now.isoformat(), ritual.name, session))[-KEPT:]
        failures = self.failures if outcome.startswith("failed") else 0
        return replace(self, spent=max(0, spent), ran=runs, delivered=delivered, failures=failures)

    def failed(self, why: str, *, final: bool) -> Schedule:
        """A run went wrong: after three in a row, or at once where no other would go better, nothing runs any more."""
        failures = self.failures + 1
        stopped = why if final else f"{failures} runs failed in a row: {why}" if failures >= FAILURES else self.stopped
        return replace(self, failures=failures, stopped=stopped)


def state_of(store: Store) -> Schedule:
    return Schedule.read(store.state.get(STATE))


def is_empty(text: str) -> bool:
    """Whether a page asks for nothing: headings, comments, empty boxes and fenced examples."""
    inside = False
    for _, line in without_code(text[front_matter_end(text) :], nested=True):
        before, inside = inside, comment_after(line, inside)
        rest = re.sub(r"<!--.*?-->|<!--.*", "", line) if not before else "" if inside else line.partition("-->")[2]
        said = _BOX.sub("", bullet_text(rest)).strip(" \t\r\n*-+_")
        if said and heading_of(rest) is None:
            return False
    return True


def is_silence(text: str) -> bool:
    """Whether an answer says that nobody need be told."""
    said = text.strip().strip("*_`\"'. \n")
    beside = [said[len(word) :] for word in QUIET_WORDS if said.startswith(word)]
    beside += [said[: -len(word)] for word in QUIET_WORDS if said.endswith(word)]
    return not said or any(len(rest.strip()) <= QUIET_CHARS for rest in beside)


def heartbeat_of(text: str, path: str, asked: RitualsConfig) -> Ritual | None:
    """The heartbeat that a page asks for; None where it asks for nothing, or no time is set."""
    if is_empty(text) or not asked.heartbeat:
        return None
    body, times = text[front_matter_end(text) :].strip(), _times(asked.heartbeat)
    return Ritual(name="heartbeat", kind="heartbeat", path=path, text=body, **times)


@lru_cache(maxsize=1024)  # a page is looked at in every round, and seldom changes
def routine_of(name: str, path: str, text: str) -> Ritual:
    """The routine on a page. Raises BadText with what is wrong in its front matter."""
    if name.casefold() in ("heartbeat", "boot"):
        raise BadText(path, f"a routine is not called {name}, as another ritual is; give the page another name")
    matter = front_matter(text, path)
    if unknown := sorted(set(map(str, matter)) - _FIELDS):
        raise BadText(path, f"its front matter has no field {unknown[0]!r}; there are {', '.join(sorted(_FIELDS))}")
    given = [key for key in ("at", "every", "watch") if matter.get(key)]
    if len(given) != 1:
        raise BadText(path, "its front matter says when it runs by one of at (cron), every (30m) and watch (a folder)")
    said = str(matter[given[0]]).strip()
    times: dict[str, Any] = {"watch": DocPath.parse(said.strip("/")).text} if given == ["watch"] else _times(said)
    if bool(times.get("at")) != (given == ["at"]):
        raise BadText(path, f"{given[0]} cannot be {said!r}")
    tokens, tools = matter.get("tokens", 0), matter.get("tools")
    if not isinstance(tokens, int) or isinstance(tokens, bool) or tokens < 0:
        raise BadText(path, "tokens is a whole number")
    if tools is not None and not (isinstance(tools, list) and all(isinstance(tool, str) for tool in tools)):
        raise BadText(path, "tools is a list of names")
    if (deliver := str(matter.get("deliver", "owner"))) not in ("owner", "nobody"):
        raise BadText(path, "deliver is owner or nobody")
    body, named = text[front_matter_end(text) :].strip(), None if tools is None else tuple(tools)
    times |= {"model": str(matter.get("model") or ""), "tokens": tokens, "tools": named}
    return Ritual(name=name, kind="routine", path=path, text=body, deliver=deliver == "owner", **times)


def _times(said: str) -> dict[str, Any]:
    """An interval such as 30m, or a cron expression. Raises BadConfig for what is neither."""
    return {"every": every} if (every := interval(said)) else {"at": said}


def is_awake(now: datetime, asked: RitualsConfig) -> bool:
    """Whether anything may run at this hour: in the active hours, and not in the quiet ones; both may pass midnight."""
    return (not asked.active or _within(now, asked.active)) and not (asked.quiet and _within(now, asked.quiet))


def _within(now: datetime, hours: str) -> bool:
    start, end = between(hours)
    clock = now.time().replace(tzinfo=None)
    return start <= clock < end if start <= end else clock >= start or clock < end


def is_due(ritual: Ritual, state: Schedule, now: datetime, zone: str, *, new: bool = False) -> bool:
    """Whether a ritual's time has come: `new` says that a document is new where it watches."""
    ran = state.ran[ritual.name]
    if ritual.name in state.paused:
        return False
    since = datetime.fromisoformat(ran.last or ran.seen)
    if ritual.kind == "boot":
        return not ran.last or now - since >= BOOT_EVERY
    if ritual.every is not None:
        return now - since >= ritual.every
    return due(ritual.at, zone, since, now) is not None if ritual.at else new


def allowance(ritual: Ritual, state: Schedule, asked: RitualsConfig, left: int | None = None) -> int:
    """How many tokens a run may have: its own, and never more than the day has left, nor than are `left` beside that."""
    most = max(0, min(ritual.tokens or asked.run_tokens, asked.day_tokens - state.spent))
    return most if left is None else min(most, left)


def next_run(ritual: Ritual, state: Schedule, now: datetime, zone: str) -> datetime | None:
    """When it runs next, should nothing keep it from that; None where no clock says so."""
    ran = state.ran.get(ritual.name)
    since = datetime.fromisoformat(ran.last or ran.seen) if ran else now
    if ritual.every is not None:
        return max(since + ritual.every, now)
    return following(ritual.at, zone, since) if ritual.at else None


def runs_a_day(ritual: Ritual, now: datetime, zone: str) -> int:
    """How often it runs in a day, at most, for an estimate."""
    if ritual.every is not None:
        return max(1, timedelta(days=1) // ritual.every)
    count, at = 0, now
    while ritual.at and count < 1_440 and (at := following(ritual.at, zone, at)) < now + timedelta(days=1):
        count += 1
    return max(1, count)


def news_for(session: Session) -> str:
    """What rituals delivered since the owner's last conversation, for one that begins, which has read then what they had."""
    store = session.site.store
    if session.listener.scope is not Scope.MAIN or session.listener.layer or session.guest is not None:
        return ""
    fresh, lines = delivered(store, state_of(store).told), list[str]()
    for time, name, id in fresh:
        if said := " ".join(said_in(session.rooms, id).split()):
            session.take_in("", sessions=(id,))
            lines.append(f"{time[:16]} {name}: {said}")
    if fresh:
        is_told(store, fresh[-1][0])
    return framed("delivered", "\n".join(lines)[-MOST_TOLD:]) if lines else ""


def delivered(store: Store, since: str) -> list[tuple[str, str, str]]:
    """What rituals delivered after a time, as (time, ritual, session)."""
    return [each for each in state_of(store).delivered if each[0] > since]


def is_told(store: Store, time: str) -> None:
    """Notes that a conversation knows what was delivered up to a time."""
    with store.lock():
        store.state.put(STATE, replace(state_of(store), told=time).written())


def said_in(transcripts: Transcripts, id: str) -> str:
    """What a ritual's session told, of what its transcript still has."""
    try:
        entries = transcripts.read(id, newest=True).entries
    except HomeError:
        return ""
    said = [each.content for each in entries if each.role == "assistant" and each.call is None]
    return "".join(said[-1:])
